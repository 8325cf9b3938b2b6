/*
 * Local functions of a model: calls are replaced by the function's nodes, before
 * the graph is finished.
 */
#ifndef RG_GRAPH_FUNCTION_H
#define RG_GRAPH_FUNCTION_H

#include "graph/graph.h"
#include "graph/inline.h"

/* Calls within calls, at most. */
#define RG_MAX_CALL_DEPTH 256

struct rg_function {
	const char *domain, *name, *overload;
	/* Not finished. Its inputs and outputs are the formal ones, in order; its
	 * opsets are those of the function; attributes may refer (rg_attr.ref) to the
	 * function's. No constants but in Constant nodes. */
	struct rg_graph *body;
	int n_defaults; /* attributes that a caller may leave out */
	struct rg_attr *defaults;
	bool active;    /* while it is being expanded; starts false */
};

/* Sets *out to the function of that name, which stays the finder's, or to NULL
 * when there is none (the node is then an operator's). */
typedef int rg_function_find(void *ctx, const char *domain, const char *name, const char *overload,
			     struct rg_function **out, struct rg_error *err);

/*
 * Inlines every call in g and its subgraphs, calls in functions included. Names
 * of what a function holds get the name of the calling node in front
 * ("encoder/layer.0/Add_3"). A function that calls itself, however indirectly, is
 * an error that names it. On failure the graph is fit only to be freed.
 */
int rg_graph_inline_functions(struct rg_graph *g, rg_function_find *find, void *ctx,
			      struct rg_clone_limits *limits, struct rg_error *err);

#endif
