/*
 * The parallel-for of one lane: everything runs on the caller.
 */
#include "kernels/par.h"

static void run_serial(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	if (n > 0)
		fn(arg, 0, n, 0);
}

const struct rg_par rg_par_serial = { .lanes = 1, .run = run_serial };
