/*
 * Data cache misses of the calling thread by hardware counters: first level and last level,
 * user mode.
 */
#ifndef RG_PROBES_MISSES_H
#define RG_PROBES_MISSES_H

#include "base/error.h"

struct rg_misses { int l1, ll; }; /* descriptors */

/* 0, or the errno of perf_event_open with what it means; *m is closed then. */
int rg_misses_open(struct rg_misses *m, struct rg_error *err);
void rg_misses_close(struct rg_misses *m);
void rg_misses_start(struct rg_misses *m);
/* Counts since the start; NAN where the kernel did not let the event run all the time: then the
 * counter was shared, and the figure would be an estimate. */
void rg_misses_stop(struct rg_misses *m, double *l1, double *ll);

#endif
