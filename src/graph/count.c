/* Parameters and weight bytes of the part of a graph that its outputs need. */
#include <string.h>

#include "base/alloc.h"
#include "graph/graph.h"

enum { LIVE = 1, PARAM = 2 };

/* Inputs 3 and 4 of BatchNormalization are statistics, not parameters. */
static bool is_statistic(const struct rg_node *n, int input)
{
	return (input == 3 || input == 4) && n->domain[0] == '\0' &&
	       strcmp(n->op_type, "BatchNormalization") == 0;
}

static bool is_live(const struct rg_node *n, const unsigned char *mark)
{
	for (int o = 0; o < n->n_out; o++)
		if (n->out[o] >= 0 && mark[n->out[o]] & LIVE)
			return true;
	return false;
}

/* What a subgraph takes from here is used here; whether it is a parameter there
 * is not looked into: a captured weight counts. */
static void mark_captured(const struct rg_graph *g, const struct rg_node *n, unsigned char *mark)
{
	for (int a = 0; a < n->n_attrs; a++) {
		const struct rg_graph *sub = n->attrs[a].g;

		for (int v = 0; sub && v < sub->n_values; v++) {
			int at = sub->values[v].from_outer ? rg_graph_find_value(g, sub->values[v].name) : -1;

			if (at >= 0)
				mark[at] |= LIVE | PARAM;
		}
	}
}

/* One mark a value. Nodes are in order, so one pass from the back is enough.
 * `through_folded`: look behind constants that were computed. */
static unsigned char *mark_live(const struct rg_graph *g, bool through_folded)
{
	unsigned char *mark = rg_calloc((size_t)g->n_values + 1, 1);

	if (!mark)
		return NULL;
	for (int i = 0; i < g->n_outputs; i++)
		mark[g->outputs[i]] |= LIVE | PARAM;
	for (int i = g->n_nodes - 1; i >= 0; i--) {
		const struct rg_node *n = &g->nodes[i];
		bool folded = n->n_out > 0 && n->out[0] >= 0 &&
			      g->values[n->out[0]].origin == RG_CONST_FOLDED;

		if (!is_live(n, mark) || (folded && !through_folded))
			continue;
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] >= 0)
				mark[n->in[k]] |= is_statistic(n, k) ? LIVE : LIVE | PARAM;
		mark_captured(g, n, mark);
	}
	return mark;
}

/* Some exporters (Paddle's) write every weight as a Constant node. A single
 * element in one is a factor of a formula, not something that was trained. */
int64_t rg_value_params(const struct rg_value *v)
{
	int64_t n = rg_shape_count(&v->shape);

	if (!rg_dtype_is_float(v->dtype))
		return 0;
	return v->origin == RG_CONST_INITIALIZER || (v->origin == RG_CONST_NODE && n != 1) ? n : 0;
}

static int64_t bytes_of(const struct rg_value *v)
{
	/* A bound input is the caller's data, not a weight. */
	if (v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND)
		return 0;
	return rg_tensor_bytes(v->dtype, &v->shape);
}

/* Sum over live values and live nodes' subgraphs (bounded in depth). -1: unknown. */
static int64_t sum(const struct rg_graph *g, bool through_folded, unsigned char wanted,
		   int64_t (*measure)(const struct rg_value *))
{
	unsigned char *mark = mark_live(g, through_folded);
	int64_t total = 0, n;

	if (!mark)
		return -1;
	for (int v = 0; v < g->n_values && total >= 0; v++) {
		if (!(mark[v] & wanted) || g->values[v].from_outer)
			continue;
		n = measure(&g->values[v]);
		if (n < 0 || __builtin_add_overflow(total, n, &total))
			total = -1;
	}
	for (int i = 0; i < g->n_nodes && total >= 0; i++) {
		for (int a = 0; a < g->nodes[i].n_attrs && total >= 0; a++) {
			if (!g->nodes[i].attrs[a].g || !is_live(&g->nodes[i], mark))
				continue;
			n = sum(g->nodes[i].attrs[a].g, through_folded, wanted, measure);
			if (n < 0 || __builtin_add_overflow(total, n, &total))
				total = -1;
		}
	}
	rg_free(mark);
	return total;
}

int64_t rg_graph_count_params(const struct rg_graph *g)
{
	return sum(g, true, PARAM, rg_value_params);
}

int64_t rg_graph_weight_bytes(const struct rg_graph *g)
{
	return sum(g, false, LIVE, bytes_of);
}
