/* Measuring ceilings: shared by recording and by `ridge machine`. */
#ifndef RG_SESSION_CEILINGS_H
#define RG_SESSION_CEILINGS_H

#include "kernels/roof/roof.h"
#include "session/session.h"
#include "sys/topology.h"

enum {
	RG_CEIL_PEAK = 1,
	RG_CEIL_CACHES = 2,
	RG_CEIL_DRAM = 4,
	RG_CEIL_INT8 = 8, /* a row for each form of the exact int8 product (kernels/roof/roof.h) */
	RG_CEIL_F32 = RG_CEIL_PEAK | RG_CEIL_CACHES | RG_CEIL_DRAM,
	RG_CEIL_ALL = RG_CEIL_F32 | RG_CEIL_INT8,
};
#define RG_CEIL_MAX_ROWS 12

/*
 * Measures what `what` names with `threads` threads, about budget_ns each, into
 * rows (room for RG_CEIL_MAX_ROWS; strings static). The caller's own threads
 * must be idle. `topo` is the machine as it was before any thread was pinned: a
 * caller that an executor has pinned to one CPU would see only that one, and the
 * threads measured here would share it. RG_EINTERRUPTED when a person stops it; *n
 * rows are whole then.
 */
int rg_ceilings_measure(const struct rg_topology *topo, int threads, uint32_t isa, unsigned what,
			const char *when, double budget_ns, rg_progress_fn *progress, void *ctx, struct rg_ceiling_row *rows, int *n,
			struct rg_error *err);

/*
 * The fastest int8 ceiling among rows that is exact for weights of a sort (RG_ROOF_ANY:
 * only forms that take all of them), or NULL. What its form needs of the weights goes to
 * *needs, which may be NULL.
 */
const struct rg_ceiling_row *rg_ceilings_int8(const struct rg_ceiling_row *rows, int n, enum rg_roof_weights most,
					      enum rg_roof_weights *needs);

#endif
