/* Which level of the memory serves an operator that is measured alone. */
#ifndef RG_SESSION_BENCH_ROOF_H
#define RG_SESSION_BENCH_ROOF_H

#include "session/bench-run.h"
#include "store/store.h"

/* The bandwidth of the smallest level that holds `bytes` for all threads of m together,
 * among rows in the order of rg_ceilings_measure; NULL: none is known. */
const struct rg_ceiling_row *rg_bench_level(const struct rg_bench_machine *m, const struct rg_ceiling_row *rows, int n,
					    double bytes);
/* Keeps the better of what stands in rows and c; low becomes the least of all best values. rows has room for
 * RG_CEIL_MAX_ROWS. */
void rg_bench_keep_ceiling(struct rg_ceiling_row *rows, int *n, const struct rg_ceiling_row *c);

#endif
