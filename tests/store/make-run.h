/* A small run written into a database, for tests of the store. */
#ifndef RG_TESTS_MAKE_RUN_H
#define RG_TESTS_MAKE_RUN_H

#include "store/store.h"

#define RUN_STEPS 3
#define RUN_SPANS_PER_ITERATION (2 * RUN_STEPS) /* a whole and a share of each step */

/* Begins a run with facts, ceilings, tensors, steps, phases and notes. */
int run_begin(struct rg_store *s, const char *tag, int64_t *id, struct rg_error *err);
/* One batch of `n` timed iterations, numbered from `first`, each with all its
 * spans; the odd ones without the hook and so without spans. */
int run_iterate(struct rg_store *s, int64_t id, int first, int n, struct rg_error *err);

#endif
