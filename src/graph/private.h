/* What the files of this folder share about a graph, and nobody else sees. */
#ifndef RG_GRAPH_PRIVATE_H
#define RG_GRAPH_PRIVATE_H

#include "graph/graph.h"
#include "graph/names.h"

struct rg_graph_private {
	struct rg_names names;
	size_t cap_values, cap_nodes, cap_inputs, cap_outputs, cap_opsets;
	bool finished;
	uint64_t serial; /* behind names that are made up */
};

/* Frees what the attributes of a node own (tensor data, subgraphs). */
void rg_graph_drop_attrs(struct rg_node *n);
/* Makes a node one that cannot run, for the reason in err, which is cleared. 0 or -ENOMEM. */
int rg_node_give_up(const struct rg_graph *g, struct rg_node *n, struct rg_error *err);
/* Whether the attributes of a bound node are of the types that operators read. */
int rg_graph_check_attrs(const struct rg_node *n, struct rg_error *err);
/* The --shape of an input, or NULL. */
const struct rg_shape *rg_bind_shape(const struct rg_bindings *b, const char *input);
/* A symbol's value: --dim, else what a --shape of another input says; -1 open. */
int64_t rg_bind_symbol(const struct rg_graph *g, const struct rg_bindings *b, const char *symbol);

#endif
