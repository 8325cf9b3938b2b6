/*
 * ridge's own operators (domain "ridge"): what the graph passes of level 3 make for
 * the executor here, where neither ONNX nor ONNX Runtime has an operator that says
 * the same. They are never written to a model file by ridge.
 *
 *	FusedConv   X, W, B?, Z?   Conv's attributes
 *	FusedGemm   A, B, C?, Z?   Gemm's attributes
 *		y = scale * activation(result + Z) + shift
 *		attributes activation, activation_params, scale (1), shift (0); Z has
 *		the result's shape
 *	Chain       1 to 8 inputs  attribute body: a graph of elementwise operators
 *		its inputs in their order, one output, which has the shape that all
 *		inputs broadcast to, as has every value between
 *	LookUp      X, T
 *		y = T[x]: X of int8 or uint8, whose bits are the index; T 256 of either,
 *		whose type is the result's
 */
#ifndef RG_GRAPH_OWN_H
#define RG_GRAPH_OWN_H

#include "graph/contrib.h"

#define RG_OWN_DOMAIN "ridge"

enum { RG_CHAIN_MAX_IN = 8 };

/* What is done to a result before it is stored. */
struct rg_finish {
	struct rg_activation act;
	float scale, shift;
};

/* Of FusedConv and FusedGemm. NULL, or what is wrong, as a sentence. */
const char *rg_own_finish(const struct rg_node *node, struct rg_finish *out);

/* Whether a Chain may hold it: it computes each element of its output from one of each input. */
bool rg_chain_may_hold(const struct rg_node *node);
/* The body of a Chain, where it can be run: typed and shaped, one output, made by its last node, every
 * value between of that shape. NULL: it has none, or another, as a file might. */
const struct rg_graph *rg_chain_body(const struct rg_node *node);

#endif
