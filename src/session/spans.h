/*
 * Span buffers: one a lane, allocated and touched before the run, filled by
 * the executor's hook without locks. A full buffer drops spans and counts them.
 */
#ifndef RG_SESSION_SPANS_H
#define RG_SESSION_SPANS_H

#include "exec/exec.h"
#include "store/store.h"

struct rg_spans;

/* per_lane: spans each lane can hold. */
int rg_spans_new(int lanes, int64_t per_lane, struct rg_spans **out, struct rg_error *err);
void rg_spans_free(struct rg_spans *s);
/* The hook that fills them. Valid as long as the buffers. */
const struct rg_exec_hook *rg_spans_hook(struct rg_spans *s);
/* Spans recorded from now on belong to this iteration. Between runs only. */
void rg_spans_iteration(struct rg_spans *s, int iteration);
/* Forgets the spans of the current iteration, which did not end. Between runs only. */
void rg_spans_forget(struct rg_spans *s);
/* All spans so far as rows, times relative to epoch_ns; *out from rg_alloc.
 * Empties the buffers. */
int rg_spans_take(struct rg_spans *s, uint64_t epoch_ns, struct rg_span_row **out, int64_t *n, struct rg_error *err);
/* Spans that found no room since the start. */
int64_t rg_spans_dropped(const struct rg_spans *s);
/* Whether another iteration of `steps` steps surely fits. */
bool rg_spans_room(const struct rg_spans *s, int64_t per_lane);
/* Cost of recording one span by this hook, median of many, in nanoseconds. */
double rg_spans_cost_ns(void);

#endif
