/*
 * What stands for an operator that cannot run, in a lenient graph: what its
 * outputs are is taken from the file where that declares it, and else unknown.
 */
#include <string.h>

#include "graph/op.h"
#include "graph/private.h"

/* The size of an open dimension: that of the graph input with the same symbol; -1 unknown. */
static int64_t size_of_symbol(const struct rg_graph *g, const char *symbol)
{
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		for (int d = 0; v->shaped && d < v->declared_rank && d < v->shape.rank; d++)
			if (v->declared[d].symbol && strcmp(v->declared[d].symbol, symbol) == 0)
				return v->shape.dim[d];
	}
	return -1;
}

static bool take_declared(const struct rg_graph *g, const struct rg_value *v, struct rg_tensor *out)
{
	if (v->kind != RG_VALUE_TENSOR || v->declared_rank < 0 || rg_dtype_bits(v->declared_dtype) == 0)
		return false;
	out->dtype = v->declared_dtype;
	out->shape.rank = v->declared_rank;
	for (int d = 0; d < v->declared_rank; d++) {
		int64_t n = v->declared[d].value;

		if (n < 0 && v->declared[d].symbol)
			n = size_of_symbol(g, v->declared[d].symbol);
		if (n < 0)
			return false;
		out->shape.dim[d] = n;
	}
	return true;
}

static int infer_declared(struct rg_infer *c, struct rg_error *err)
{
	for (int o = 0; o < c->node->n_out; o++) {
		if (c->node->out[o] < 0 || take_declared(c->graph, &c->graph->values[c->node->out[o]], &c->out[o]))
			continue;
		c->need_value = -1;
		return rg_error_set(err, RG_ENEED_VALUE, "%s", c->node->unsupported);
	}
	return 0;
}

const struct rg_op rg_op_unsupported = {
	.domain = "", .name = "unsupported", .kind = RG_KIND_OTHER, .flags = RG_OP_IMPURE, .max_in = -1, .max_out = -1,
	.versions = { 1 }, .supported_from = 1, .supported_to = 1, .infer = infer_declared,
};
