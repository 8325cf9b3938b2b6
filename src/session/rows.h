/*
 * A plan as rows for the store: tensors, steps, what they read and write,
 * data edges, and notes on what planning did.
 */
#ifndef RG_SESSION_ROWS_H
#define RG_SESSION_ROWS_H

#include "session/prepare.h"
#include "store/store.h"

/* Writes them all. */
int rg_rows_put_plan(struct rg_store *s, int64_t run, const struct rg_prepared *p, struct rg_error *err);

#endif
