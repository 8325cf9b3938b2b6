/*
 * The thread pool: implements rg_par for kernels. Lanes spin briefly, then
 * sleep on a futex; the caller is lane 0.
 */
#ifndef RG_EXEC_POOL_H
#define RG_EXEC_POOL_H

#include "base/error.h"
#include "kernels/par.h"

struct rg_pool;

/* cpus: NULL for no pinning, else at least `lanes` entries. */
int rg_pool_new(int lanes, const int *cpus, struct rg_pool **out, struct rg_error *err);
void rg_pool_free(struct rg_pool *p);
/* Valid as long as the pool. */
const struct rg_par *rg_pool_par(struct rg_pool *p);
/*
 * When set, each lane that works on a parallel-for reports start and end of its
 * share, on that lane; one that is too small to be split, and so runs on the
 * caller alone, reports nothing. NULL switches it off (no clock is then read).
 * Not while a parallel-for runs.
 */
typedef void rg_pool_watch_fn(void *ctx, int lane, uint64_t start_ns, uint64_t end_ns);
void rg_pool_watch(struct rg_pool *p, rg_pool_watch_fn *fn, void *ctx);

#endif
