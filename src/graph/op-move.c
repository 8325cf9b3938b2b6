/* Operators that move or reshape data and compute nothing. */
#include "graph/op-families.h"

const struct rg_op rg_ops_move[] = {
	{ "", "Identity", RG_KIND_MOVE, RG_OP_VIEW, 1, 1, 1, 1, { 1, 13, 14, 16, 19, 21, 23, 24, 25 }, 1, 25,
	  rg_infer_same, NULL },
};
RG_OP_FAMILY_END(move);
