/*
 * Broadcasting as it was before version 7: the attributes `broadcast` and
 * `axis` of Add, Sub, Mul, Div, Pow, And, Or, Xor, Equal, Greater, Less.
 * Shared by shape inference and the kernels, so that they cannot disagree.
 */
#ifndef RG_GRAPH_OP_LEGACY_H
#define RG_GRAPH_OP_LEGACY_H

#include "graph/graph.h"
#include "graph/op.h"

/*
 * The shape that numpy's rules need in place of the second operand's: `b`
 * itself from version 7 on and for broadcast = 0, else `b` with ones behind
 * it, so that its first dimension meets dimension `axis` of `a`. False when
 * the version does not allow that pair of shapes.
 */
bool rg_op_legacy_operand(const struct rg_node *n, const struct rg_shape *a, const struct rg_shape *b,
			  struct rg_shape *out);

/* The broadcast of inputs 0 and 1 by these rules; the error names both shapes. */
int rg_infer_legacy_broadcast(struct rg_infer *c, struct rg_shape *out, struct rg_error *err);
/* Two inputs of one type within the set of types, broadcast; output 0 is of type
 * `out`, or of that of the inputs for RG_UNDEFINED. */
int rg_infer_pair(struct rg_infer *c, uint32_t types, enum rg_dtype out, struct rg_error *err);

/*
 * What rg_op_legacy_operand is, for PRelu's slope before version 7: one value, or one for each
 * channel (dimension 1).
 */
bool rg_op_legacy_slope(const struct rg_node *n, const struct rg_shape *x, const struct rg_shape *slope,
			struct rg_shape *out);

#endif
