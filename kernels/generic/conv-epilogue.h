/*
 * What a convolution does to its sums before they are stored: nothing (Conv), the
 * activation of com.microsoft.FusedConv, or what ridge's own FusedConv says.
 */
#ifndef RG_KERNELS_GENERIC_CONV_EPILOGUE_H
#define RG_KERNELS_GENERIC_CONV_EPILOGUE_H

#include "graph/own.h"
#include "kernels/generic/multiply.h"

/* Bias by row is set; whose it is, and the residual, are the caller's. false: another activation. */
RG_INLINE bool rg_conv_epilogue(const struct rg_call *c, struct rg_epilogue *e)
{
	struct rg_finish f = { .scale = 1 };
	const char *bad = NULL;

	*e = (struct rg_epilogue){ .alpha = 1, .beta = 1, .bias_row = 1 };
	if (strcmp(c->node->domain, RG_OWN_DOMAIN) == 0)
		bad = rg_own_finish(c->node, &f);
	else if (strcmp(c->node->op_type, "FusedConv") == 0)
		bad = rg_conv_activation(c->node, &f.act);
	return !bad && rg_epilogue_activate(e, &f);
}

#endif
