/*
 * Types and shapes for a whole graph, before anything runs.
 *
 * Nodes are visited once in topological order. A node whose inputs are all
 * constants and whose output is small is evaluated on the spot, so integer
 * shape arithmetic (Shape, Gather, Concat, ...) folds away with the very
 * kernels that would run it. Evaluation is a callback, because kernels live in
 * a higher layer: there is no second implementation of integer arithmetic.
 */
#ifndef RG_GRAPH_INFER_H
#define RG_GRAPH_INFER_H

#include "graph/graph.h"

/* Evaluates one node on constant inputs. `in[i].data` is set (absent inputs:
 * RG_UNDEFINED); `out[i]` has type, shape and 64-aligned zeroed memory.
 * -ENOSYS: no kernel; the node is then left alone. */
typedef int rg_eval_fn(void *ctx, const struct rg_graph *g, const struct rg_node *node,
		       const struct rg_tensor *in, struct rg_tensor *out, struct rg_error *err);

/* What becomes of a node whose types and shapes cannot be told beforehand: it
 * is control flow, works on sequences, or depends on the value of something. */
enum rg_infer_dynamic {
	RG_DYNAMIC_REFUSE = 0, /* an error */
	RG_DYNAMIC_COMPUTED,   /* marked dynamic, unless the value of a graph input would settle
	                        * it: then RG_ENEED_VALUE */
	RG_DYNAMIC_ALL,        /* marked dynamic */
};

struct rg_infer_options {
	rg_eval_fn *eval;        /* NULL: nothing is folded */
	void *eval_ctx;
	int64_t fold_limit_bytes;/* outputs up to this are evaluated; 0: 64 KiB.
	                            Larger ones are left to the compiler's folding pass */
	enum rg_infer_dynamic dynamic;
};

/*
 * Requires rg_graph_bind. Errors name the node. RG_ENEED_VALUE: the shape of a
 * node depends on the value of a graph input or on data; *need_value (may be
 * NULL) gets the index of the graph input to bind, or -1 when it depends on
 * computed data, or on a graph input of more than 16 elements. Constants found are added as RG_CONST_FOLDED. May be called
 * again after more was bound.
 *
 * A dynamic node says why in rg_node.dynamic, its outputs and the nodes that
 * read them are dynamic too (rg_value.dynamic, not shaped). Subgraphs are not
 * looked into: their nodes are inferred as they run.
 */
int rg_graph_infer(struct rg_graph *g, const struct rg_infer_options *opt, int *need_value,
		   struct rg_error *err);

#endif
