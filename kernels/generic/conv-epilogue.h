/*
 * What a convolution does to its sums before they are stored: nothing (Conv), or the
 * activation of com.microsoft.FusedConv, of which Relu and Clip are done here.
 */
#ifndef RG_KERNELS_GENERIC_CONV_EPILOGUE_H
#define RG_KERNELS_GENERIC_CONV_EPILOGUE_H

#include "graph/contrib.h"
#include "kernels/generic/multiply.h"

/* Bias by row is set; whose it is, and the residual, are the caller's. false: another activation. */
RG_INLINE bool rg_conv_epilogue(const struct rg_call *c, struct rg_epilogue *e)
{
	struct rg_activation act = { .kind = RG_ACT_NONE };

	*e = (struct rg_epilogue){ .alpha = 1, .beta = 1, .bias_row = 1 };
	if (strcmp(c->node->op_type, "FusedConv") == 0 && rg_conv_activation(c->node, &act))
		return false;
	return rg_epilogue_activate(e, &act);
}

#endif
