/*
 * What passes share to change a graph once match.h has found something: a value that
 * takes another's place, new constants and values, arguments of a node. What readers
 * read instead comes into force with rg_match_end.
 */
#ifndef RG_COMPILE_REWRITE_H
#define RG_COMPILE_REWRITE_H

#include "compile/match.h"

/* The value that readers of `value` will read: itself, unless this round put another in its place. */
int rg_rewrite_now(const struct rg_match *m, int value);
/*
 * Why output 0 of `node` cannot be left out for `by`, of the same type and shape: a subgraph reads it by its
 * name, or it is an output of the graph and nothing can make `by` under that name.
 */
enum rg_decline rg_rewrite_may_skip(const struct rg_match *m, int node, int by);
/*
 * Takes `node` out; who read its output 0 reads `by`. An output of the graph keeps its name: what made
 * `by` makes it then. Only where rg_rewrite_may_skip has nothing against it. Notes the rewrite.
 */
int rg_rewrite_skip(struct rg_match *m, int node, int by, struct rg_error *err);

/*
 * A new constant, or a value that a new node will make, named `base` and `what`, with a number where that
 * name is taken. Takes data over, also on failure. Returns the value, or a negative errno.
 */
int rg_rewrite_const(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype,
		     const struct rg_shape *shape, void *data, struct rg_error *err);
int rg_rewrite_value(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype,
		     const struct rg_shape *shape, struct rg_error *err);
/* A constant list of int64. */
int rg_rewrite_ints(struct rg_graph *g, const char *base, const char *what, const int64_t *v, int n,
		    struct rg_error *err);
/*
 * The constant that makes a Reshape of `from` one to `to`: 0 for leading dimensions that stay, -1 for a last
 * one, so that it holds for other sizes where that can be said. The shape has no dimension of 0.
 */
int rg_rewrite_shape(struct rg_graph *g, const char *name, const struct rg_shape *from,
		     const struct rg_shape *to, struct rg_error *err);
/*
 * Puts a standard operator in the place of `node`: its name and its outputs, other inputs and attributes.
 * `least`: the opset that the operator needs; a model of an older one gets it for this node alone. Returns
 * the new node or a negative errno. Counts a rewrite, and notes none.
 */
int rg_rewrite_node(struct rg_match *m, int node, const char *op_type, int64_t least, int n_in, const int *in,
		    int n_attrs, const struct rg_attr *attrs, struct rg_error *err);

/* For nodes of ONNX Runtime's domain, whose operators have one version: whichever a model imports will do. */
int rg_rewrite_import_contrib(struct rg_graph *g, struct rg_error *err);
/* rg_node.opset for a standard node that takes the place of `n` and needs that opset. */
int64_t rg_rewrite_opset(const struct rg_graph *g, const struct rg_node *n, int64_t least);

enum { RG_REWRITE_INPUTS = 8 };
/* Inputs of a node as rg_args_* take them, data where it is constant. false: there is no room for all. */
bool rg_rewrite_args(const struct rg_graph *g, const struct rg_node *n,
		     struct rg_tensor in[RG_REWRITE_INPUTS]);
/* Its output 0 is wanted and nothing else, and types and shapes of it and of input 0 are known before it
 * runs. */
bool rg_rewrite_is_plain(const struct rg_graph *g, const struct rg_node *n);
/* The order of a Transpose whose input has a known shape: output dimension i is perm[i] of the input. */
void rg_rewrite_perm(const struct rg_graph *g, const struct rg_node *n, int64_t perm[RG_MAX_RANK]);
/* Whether dimensions other than 1 keep their order: the elements do, too. */
bool rg_rewrite_keeps_order(const struct rg_shape *s, const int64_t perm[RG_MAX_RANK]);
/* A constant whose elements all are `x`, 0 told from -0; false for types other than float32, float64, int32
 * and int64. */
bool rg_rewrite_all(const struct rg_graph *g, int value, double x);

#endif
