/*
 * Which scale belongs to which element of QuantizeLinear and DequantizeLinear:
 * per tensor, per axis, or per block along an axis.
 */
#ifndef RG_GRAPH_OP_QUANT_H
#define RG_GRAPH_OP_QUANT_H

#include "graph/graph.h"

/* Element ((o * n) + i) * inner + j uses scale o * so + i / block * si + j * sj. */
struct rg_quant {
	int64_t outer, n, inner;
	int64_t block, so, si, sj;
};
/* NULL on success, else what is wrong, as a sentence. */
const char *rg_quant_layout(const struct rg_node *node, const struct rg_shape *x,
			    const struct rg_shape *scale, struct rg_quant *out);
/*
 * The type that QuantizeLinear divides in: attribute precision, else the
 * scale's (version 23 says so; before, float32). RG_UNDEFINED: no such type.
 */
enum rg_dtype rg_quant_precision(const struct rg_node *node, enum rg_dtype x, enum rg_dtype scale);

#endif
