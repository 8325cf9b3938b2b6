/*
 * Cache misses of one rung by simulation: a child under Valgrind's callgrind runs the same
 * kernel at the same shape on one thread, twice; only the second product is counted, so that
 * it finds in the caches what the first one left there. The geometry of the caches is that of this machine,
 * rounded where the simulator takes only powers of two. It knows two levels: the first and
 * the last.
 */
#ifndef RG_SESSION_LADDER_SIM_H
#define RG_SESSION_LADDER_SIM_H

#include "session/ladder-data.h"
#include "sys/topology.h"

struct rg_sim_cache {
	int64_t size_bytes, line_bytes;
	int ways;
	bool changed;      /* rounded, or partly assumed */
};
/* A cache as the simulator takes it: the number of sets is a power of two, at most that of c. */
struct rg_sim_cache rg_sim_cache_of(const struct rg_cache *c);

struct rg_sim_caches {
	struct rg_sim_cache first, last;
	char text[200];    /* for people, with what was changed */
};
/* The data cache next to the core and the last level. -ENOENT: sysfs names no caches. */
int rg_sim_caches_of(const struct rg_topology *t, struct rg_sim_caches *out, struct rg_error *err);

struct rg_sim_result { double l1_misses, ll_misses; };
/* Reads what callgrind wrote. Data only, reads and writes. -EINVAL: it is not that, or it counted nothing. */
int rg_sim_parse(const char *text, struct rg_sim_result *out, struct rg_error *err);

struct rg_sim_job {
	const char *program;   /* this one; NULL: /proc/self/exe */
	const char *rung, *kernel, *weights;
	struct rg_ladder_shape shape;
	const struct rg_sim_caches *caches;
};
/* Errors name what was missing (-ENOENT: no valgrind; -ENOTSUP: a build with sanitizers, or whose
 * debug information it does not read), or what the child said. */
int rg_sim_run(const struct rg_sim_job *j, struct rg_sim_result *out, struct rg_error *err);

/* What the child does: one product that is not counted, and one in a function whose name
 * callgrind is told. RG_EUSAGE: no such rung. */
int rg_ladder_once(const char *rung, const char *kernel, const char *shape, const char *weights,
		   struct rg_error *err);

#endif
