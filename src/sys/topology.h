/*
 * Cores, caches, memory and what of them this process may use: sysfs, procfs,
 * the affinity mask and the cgroup quota. Everything is read under a root that
 * tests can replace; what cannot be read is 0 or -1 as each field says.
 */
#ifndef RG_SYS_TOPOLOGY_H
#define RG_SYS_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define RG_MAX_CPUS 1024
#define RG_MAX_CACHES 4

struct rg_cache {
	int level;             /* 1, 2, 3, 4; data or unified */
	int64_t size_bytes;
	int64_t line_bytes;    /* 0 unknown */
	int ways;              /* 0 unknown */
	int shared_by_cpus;    /* logical CPUs that share one instance; 0 unknown */
};

struct rg_topology {
	int online_cpus;       /* logical; -1 unknown */
	int cores;             /* physical cores among the allowed CPUs; -1 unknown */
	bool smt;              /* two allowed CPUs share a core */
	int n_allowed;         /* CPUs in the affinity mask */
	int allowed[RG_MAX_CPUS];
	int core_of[RG_MAX_CPUS]; /* for allowed[i]: a number that is the same for CPUs of one core */
	double quota_cpus;     /* cgroup limit in CPUs, NAN for none */
	int n_caches;          /* data and unified caches, by level */
	struct rg_cache caches[RG_MAX_CACHES];
	int64_t memory_bytes;  /* MemTotal, or the cgroup's limit where smaller; 0 unknown */
	char governor[32];     /* cpufreq of the first allowed CPU; "" unknown */
	char thp[32];          /* transparent huge pages: "always", "madvise", "never"; "" unknown */
	char kernel[96];       /* uname -r */
};

void rg_topology_read(const char *root, struct rg_topology *out);
/* How many workers by default: one per core, within affinity and quota; >= 1. */
int rg_topology_default_threads(const struct rg_topology *t);
/* The allowed CPUs in the order in which lanes take them: one of each core first,
 * then the second threads of the cores. `cpus` has room for t->n_allowed. */
void rg_topology_pin_order(const struct rg_topology *t, int *cpus);
/* Pins the calling thread to one CPU. */
int rg_thread_pin(int cpu, struct rg_error *err);

#endif
