/* One rung of the ladder at one shape, ready to run: a loop of kernels/ladder, or a kernel of the registry. */
#ifndef RG_SESSION_LADDER_RUN_H
#define RG_SESSION_LADDER_RUN_H

#include "exec/pool.h"
#include "kernels/ladder/ladder.h"
#include "session/bench-run.h"
#include "session/ladder-data.h"

struct rg_ladder_name {
	const char *rung;    /* "int8-blocked" */
	const char *loop;    /* of kernels/ladder; NULL: of the registry */
	bool int8;
};
/* In the order of the ladder. */
#define RG_LADDER_RUNGS 10
extern const struct rg_ladder_name rg_ladder_names[RG_LADDER_RUNGS];
const struct rg_ladder_name *rg_ladder_name_find(const char *rung); /* NULL */

struct rg_ladder_run {
	const struct rg_ladder_name *name;
	const char *kernel;            /* of the registry, or the loop's level */
	uint32_t isa;                  /* bits that it needs */
	char reason[160];              /* why it cannot run here; "" */
	/* either */
	const struct rg_ladder_rung *loop;
	struct rg_ladder_product product;
	void *packed, *wide;
	const struct rg_par *par;
	int lanes;
	/* or */
	struct rg_bench_run bench;
};

/*
 * kernel NULL: the fastest that m->isa allows. par runs the loops, those of the registry get a
 * pool of their own of m->threads. Where it cannot run, reason says why and nothing is an
 * error. d and par must outlive it. rg_ladder_run_free in any case.
 */
int rg_ladder_run_new(const struct rg_ladder_name *name, const char *kernel, const struct rg_ladder_data *d,
		      const struct rg_bench_machine *m, const struct rg_session_options *o, const struct rg_par *par,
		      struct rg_ladder_run *r, struct rg_error *err);
void rg_ladder_run_free(struct rg_ladder_run *r);
/* One product. */
int rg_ladder_run_call(struct rg_ladder_run *r, struct rg_error *err);
/* C of the last call, valid until the next. */
const void *rg_ladder_run_result(struct rg_ladder_run *r);

#endif
