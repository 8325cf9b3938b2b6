/*
 * A parallel-for that splits like a real one but calls its lanes in sequence,
 * so that a test of a split kernel is deterministic: items are cut into as many
 * chunks as lanes (fewer when a chunk would be under the grain), chunk i runs
 * as lane i, the last chunk first, since kernels may not rely on an order.
 */
#ifndef RG_TESTS_KERNELS_FAKE_PAR_H
#define RG_TESTS_KERNELS_FAKE_PAR_H

#include "kernels/par.h"

static void fake_par_run(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	int64_t chunks = n / (grain < 1 ? 1 : grain);

	if (chunks > par->lanes)
		chunks = par->lanes;
	if (chunks < 1)
		chunks = 1;
	for (int64_t i = chunks - 1; i >= 0 && n > 0; i--)
		fn(arg, n * i / chunks, n * (i + 1) / chunks, (int)i);
}

/* As above, but any grain counts as 1, so that even small cases are split. */
static void fake_par_run_eager(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	(void)grain;
	fake_par_run(par, n, 1, fn, arg);
}

static inline struct rg_par fake_par(int lanes, int eager)
{
	struct rg_par par = { .lanes = lanes, .run = eager ? fake_par_run_eager : fake_par_run };

	return par;
}

#endif
