/* One case with one kernel, ready to run. */
#ifndef RG_SESSION_BENCH_RUN_H
#define RG_SESSION_BENCH_RUN_H

#include "compile/plan.h"
#include "exec/exec.h"
#include "session/bench-case.h"
#include "sys/cpu.h"
#include "sys/topology.h"

struct rg_bench_machine {
	struct rg_cpu cpu;
	struct rg_topology topo; /* as before any thread was pinned */
	uint32_t isa;
	int threads;
	bool pinned;
};
/* RG_EUSAGE: a thread count that cannot be. */
int rg_bench_machine(const struct rg_session_options *o, struct rg_bench_machine *m, struct rg_error *err);

struct rg_bench_run {
	struct rg_plan *plan;
	struct rg_exec *exec;
	int64_t calls;       /* in a round */
};

/*
 * Plans the case for `kernel` (NULL: as a plan chooses) and fills its inputs.
 * The graph is planned again and again, so it keeps its constants. *r is empty
 * without an error when that kernel cannot run the case.
 */
int rg_bench_run_new(const struct rg_bench_case *c, const struct rg_bench_machine *m,
		     const struct rg_session_options *o, const char *kernel, struct rg_bench_run *r,
		     struct rg_error *err);
void rg_bench_run_free(struct rg_bench_run *r);
/* One call, thrown away, then as many as make a round of at least `round_ns`; *call_ns is
 * about what one takes. */
int rg_bench_run_calibrate(struct rg_bench_run *r, double round_ns, double *call_ns, struct rg_error *err);
/* A round: nanoseconds a call. */
int rg_bench_run_round(struct rg_bench_run *r, double *call_ns, struct rg_error *err);

#endif
