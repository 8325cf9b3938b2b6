/*
 * Measures operators alone: each case (bench-case.h) with each kernel that can
 * run it, by the executor, on its pool, as a model of one node.
 *
 * A round is a batch of calls between two readings of the clock, long enough to
 * be timed. Rounds of all kernels of a case take turns, forwards and backwards,
 * so that drift falls on all of them. The first calls are thrown away. Peak and
 * DRAM bandwidth are measured just before and just after each case and the better
 * figure counts; caches are measured once, at the start.
 */
#ifndef RG_SESSION_BENCH_H
#define RG_SESSION_BENCH_H

#include "base/stats.h"
#include "session/bench-case.h"
#include "session/ceilings.h"

struct rg_bench_options {
	/* threads, isa, seed, overrides, without, progress and warn count. Overrides with
	 * the empty operator name the kernels to measure; without any it is all but
	 * "ref", or "ref" where nothing else runs the case. */
	const struct rg_session_options *session;
	int rounds;                 /* 0: 15, with quick 7 */
	bool quick;                 /* shorter rounds */
};

struct rg_bench_result {
	const struct rg_bench_case *c; /* borrowed from the set */
	const char *op_type;        /* of the registry, like the kernel's name */
	const char *kernel;
	bool chosen;                /* a plan would take it (--without-kernel counts) */
	int rounds;
	int64_t calls;              /* in a round */
	struct rg_interval time_ns; /* of a call: median of the rounds, 95 % interval */
	double best_ns;             /* of the fastest round */
	double flops, bytes;        /* useful, compulsory; NAN unknown */
	double flop_rate, byte_rate;/* per second, of the median */
	int64_t prepared_bytes;     /* packed weights */
	/* The roof: the longer of flops over peak and bytes over the bandwidth of the
	 * smallest level that holds them. NULL and NAN: not known. */
	const char *bound;          /* "compute", "L1", ... "DRAM" */
	double roof_ns;
	double share;               /* of the roof: roof_ns over the median */
};

struct rg_bench_report {
	int threads;
	bool pinned;
	uint32_t isa;
	int n_results, n_ceilings;
	struct rg_bench_result *results;
	struct rg_ceiling_row *ceilings; /* best of the run, one a level; low: the least of the best */
};

/* The set must outlive the report. RG_EUSAGE: a kernel that was named runs none
 * of the cases. RG_EINTERRUPTED: nothing is reported. */
int rg_bench_measure(const struct rg_bench_set *s, const struct rg_bench_options *o,
		     struct rg_bench_report **out, struct rg_error *err);
void rg_bench_report_free(struct rg_bench_report *r);

#endif
