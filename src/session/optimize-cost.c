/* What the steps of a graph are and how much they read and write, to tell what a pass has saved. */
#include "session/optimize-work.h"

#include <stdint.h>

#include "base/alloc.h"
#include "compile/needed.h"
#include "graph/op-random.h"
#include "graph/op.h"

static void add_bytes(const struct rg_graph *g, const struct rg_node *n, struct rg_tensor *room,
		      struct rg_optimize_cost *c)
{
	struct rg_cost_in in = { n, room, room + n->n_in };
	struct rg_cost cost;

	for (int k = 0; k < n->n_in + n->n_out; k++) {
		int value = k < n->n_in ? n->in[k] : n->out[k - n->n_in];

		room[k] = (struct rg_tensor){ 0 };
		if (value < 0)
			continue;
		if (!g->values[value].shaped) {
			c->bytes = -1;
			return;
		}
		room[k] = (struct rg_tensor){ g->values[value].dtype, g->values[value].shape,
					      (void *)(uintptr_t)g->values[value].data };
	}
	rg_op_cost(n->op, &in, &cost);
	if (cost.read_bytes < 0 || cost.write_bytes < 0)
		c->bytes = -1;
	else
		c->bytes += cost.read_bytes + cost.write_bytes;
}

static int add_graph(const struct rg_graph *g, struct rg_optimize_cost *c, struct rg_error *err);

/* How often a subgraph runs is not known, and so not what it moves. */
static int add_subgraphs(const struct rg_node *n, struct rg_optimize_cost *c, struct rg_error *err)
{
	for (int k = 0; k < n->n_attrs; k++) {
		if (!n->attrs[k].g)
			continue;
		c->bytes = -1;
		if (add_graph(n->attrs[k].g, c, err))
			return err->code;
	}
	return 0;
}

static int add_graph(const struct rg_graph *g, struct rg_optimize_cost *c, struct rg_error *err)
{
	unsigned char *values = rg_calloc((size_t)g->n_values + 1, 1),
		      *nodes = rg_calloc((size_t)g->n_nodes + 1, 1);
	struct rg_tensor *room = NULL;
	int widest = 1, rc = 0;

	for (int i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].n_in + g->nodes[i].n_out > widest)
			widest = g->nodes[i].n_in + g->nodes[i].n_out;
	room = rg_calloc((size_t)widest, sizeof(*room));
	if (!values || !nodes || !room)
		rc = rg_error_nomem(err, (size_t)g->n_values);
	else
		rg_mark_needed(g, false, values, nodes);
	for (int i = 0; i < g->n_nodes && !rc; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!nodes[i] || (!n->dynamic && rg_node_is_view(g, n)))
			continue;
		c->steps++;
		if (c->bytes >= 0)
			add_bytes(g, n, room, c);
		rc = add_subgraphs(n, c, err);
	}
	rg_free(values);
	rg_free(nodes);
	rg_free(room);
	return rc;
}

int rg_optimize_measure(const struct rg_graph *g, struct rg_optimize_cost *c, struct rg_error *err)
{
	*c = (struct rg_optimize_cost){ 0 };
	return add_graph(g, c, err);
}
