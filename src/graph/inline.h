/*
 * Clones the nodes of one graph into another: the body of a local function into
 * its caller, the branch of an If into the graph around it.
 *
 * What is named inside gets a name of its own outside: prefix + name, and a
 * number behind it where that is taken. Inputs and outputs are mapped to values
 * of the target, subgraphs in attributes come along with what they capture
 * renamed, constants of the source become constants of the target.
 *
 * Ownership. Everything in the clone belongs to the target. Tensor data (of
 * constants and of attributes) is copied, or with `move` taken over: the source
 * is then left without it and fit only to be freed.
 *
 * Works before rg_graph_finish and after it: what the source knows about a node
 * (op, version) comes along, but producers, consumers and order of the target
 * are the caller's to complete.
 */
#ifndef RG_GRAPH_INLINE_H
#define RG_GRAPH_INLINE_H

#include "graph/graph.h"

/* Entries of rg_clone.map. */
#define RG_CLONE_FRESH (-1)  /* a value of its own in the target */
#define RG_CLONE_ABSENT (-2) /* an input that the caller leaves out */

/*
 * What clones may still take, all together, so that a small file cannot ask for
 * much. Counted down; what would go below zero is refused with -E2BIG.
 */
struct rg_clone_limits {
	int64_t nodes, graphs, bytes; /* bytes: names, lists and tensor data */
};

struct rg_clone {
	struct rg_graph *from, *to;
	const char *prefix;      /* in front of every name: "layer.0/" */
	/* from->n_values entries: the value of `to` that stands for each, or one of
	 * the two above. Filled in on return. */
	int *map;
	/* Values of `to` that become the outputs of `from`, in order; -1: not wanted.
	 * At most from->n_outputs. An output that no node of `from` makes (an input
	 * handed through, a constant, a captured value) is written by an Identity. */
	int n_out;
	const int *out;
	/* What `from` reads and does not define is the value of `to` with that name
	 * (subgraphs); otherwise it is an error (functions). */
	bool captures;
	bool move;
	/* The value for a reference to an attribute, NULL when there is none: the
	 * attribute is then absent. Without it references stay references. */
	const struct rg_attr *(*attr)(void *ctx, const char *name);
	void *attr_ctx;
	struct rg_clone_limits *limits; /* NULL: no bound but the graph's own */
};

/*
 * Appends the clones to to->nodes, in the order of `from`. On failure the target
 * may hold a part of them and is to be freed.
 */
int rg_graph_clone_nodes(const struct rg_clone *c, struct rg_error *err);

#endif
