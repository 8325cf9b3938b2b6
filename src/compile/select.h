/*
 * Which kernel runs a node: what the person asked for (--kernel), else the
 * highest rank among those that support the call within the allowed ISA, and of
 * several the least estimate (kernels/kernel.h).
 */
#ifndef RG_COMPILE_SELECT_H
#define RG_COMPILE_SELECT_H

#include "base/arena.h"
#include "compile/plan.h"

/* Every override must fit a node of the graph, or RG_EUSAGE. */
int rg_select_check(const struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err);
/*
 * Chooses. *reason is text in `arena`. An override by node name that cannot
 * run is an error; one by operator type leaves the nodes that it cannot run to
 * the others and says so in the reason. RG_ENOTSUP_MODEL: no kernel at all.
 */
int rg_select_kernel(const struct rg_call *call, const struct rg_plan_options *opt, struct rg_arena *arena,
		     const struct rg_kernel **kernel, const char **reason, struct rg_error *err);
/* The error for a call that no kernel can run: names operator, version, types
 * and shapes. Returns RG_ENOTSUP_MODEL. */
int rg_select_no_kernel(const struct rg_call *call, struct rg_error *err);

#endif
