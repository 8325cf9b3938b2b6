/* Measuring ceilings: shared by recording and by `ridge machine`. */
#ifndef RG_SESSION_CEILINGS_H
#define RG_SESSION_CEILINGS_H

#include "session/session.h"
#include "sys/topology.h"

enum {
	RG_CEIL_PEAK = 1,
	RG_CEIL_CACHES = 2,
	RG_CEIL_DRAM = 4,
	RG_CEIL_ALL = 7,
};
#define RG_CEIL_MAX_ROWS 8

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

#endif
