/*
 * One recorded inference as a schedule: its whole spans, and for each the spans
 * that had to end before it could start. Shared by path.c and whatif.c.
 */
#ifndef RG_ANALYZER_SCHEDULE_H
#define RG_ANALYZER_SCHEDULE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

/* Producers by consumer: those of step s are from[at[s]] .. from[at[s + 1]]. */
struct rg_producers {
	int *at;
	int *from;
};
int rg_producers_build(const struct rg_recording *rec, struct rg_arena *arena, struct rg_producers *out,
		       struct rg_error *err);

struct rg_sched_span {
	int step, lane;
	int64_t start_ns, end_ns; /* clipped to the iteration */
	int lane_dep;             /* span that the lane ran before; -1 none */
	int n_data, data_at;      /* data dependencies: data[data_at] ... */
};

struct rg_schedule {
	int64_t start_ns, end_ns; /* of the iteration */
	int n;
	struct rg_sched_span *spans; /* by end: dependencies stand before what depends on them */
	int *data;                /* indices of spans, for n_data and data_at */
};

/*
 * The schedule of one iteration, in `arena`. A dependency is the newest span of
 * the producing step, or of the lane, that ended no later than this one began;
 * n is 0 when the iteration has no whole spans.
 */
int rg_schedule_build(const struct rg_recording *rec, const struct rg_producers *producers, int iteration,
		      struct rg_arena *arena, struct rg_schedule *out, struct rg_error *err);

/*
 * The iterations that have whole spans: of the timing pass, or of any pass when
 * the timing pass has none. *list of *n row indices, in `arena`. -ENODATA: none.
 */
int rg_schedule_iterations(const struct rg_recording *rec, struct rg_arena *arena, int **list, int *n,
			   struct rg_error *err);

#endif
