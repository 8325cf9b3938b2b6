/* See chain.h. */
#include "kernels/chain.h"

#include "graph/own.h"

_Static_assert((int)RG_CHAIN_MAX_IN == (int)RG_EW_MAX_IN, "what the operator takes is what a program takes");

static struct rg_tensor type_of(const struct rg_graph *g, int value)
{
	struct rg_tensor t = { 0 };

	if (value >= 0) {
		t.dtype = g->values[value].dtype;
		t.shape = g->values[value].shape;
	}
	return t;
}

/* The best node function for a call within these instructions; NULL: none. */
static rg_ew_node *find_node(const struct rg_call *c, uint32_t isa)
{
	const struct rg_kernel *const *list, *best = NULL;
	int n = rg_kernel_list(c->node->domain, c->node->op_type, &list);
	rg_ew_node *found = NULL;

	for (int i = 0; i < n; i++) {
		rg_ew_node *node = list[i]->isa & ~isa || (best && list[i]->rank < best->rank) ? NULL : rg_ew_node_of(list[i]);

		if (!node || (list[i]->supports && !list[i]->supports(c)))
			continue;
		best = list[i];
		found = node;
	}
	return found;
}

/* Where a value is while the program runs. */
struct place {
	int value, reg;
};

static int reg_of(const struct place *places, int n, int value)
{
	for (int i = 0; i < n; i++)
		if (places[i].value == value)
			return places[i].reg;
	return -ENOENT;
}

bool rg_chain_program(struct rg_ew *e, const struct rg_graph *g, int n_nodes, const int *nodes, int n_in, const int *in,
		      uint32_t isa)
{
	const struct rg_shape *shapes[RG_EW_MAX_IN], *out;
	struct place places[RG_EW_MAX_IN + RG_EW_MAX_OPS];
	int bytes[RG_EW_MAX_IN], n_places = 0;

	if (n_in < 1 || n_in > RG_EW_MAX_IN || n_nodes < 1 || n_nodes > RG_EW_MAX_OPS)
		return false;
	for (int i = 0; i < n_in; i++) {
		shapes[i] = &g->values[in[i]].shape;
		bytes[i] = (int)rg_dtype_bytes(g->values[in[i]].dtype);
		places[n_places++] = (struct place){ in[i], i };
		if (bytes[i] < 1)
			return false;
	}
	out = &g->values[g->nodes[nodes[n_nodes - 1]].out[0]].shape;
	if (!rg_ew_start(e, out, n_in, shapes, bytes))
		return false;
	for (int k = 0; k < n_nodes; k++) {
		const struct rg_node *n = &g->nodes[nodes[k]];
		struct rg_tensor args[RG_EW_MAX_IN], result;
		struct rg_call c = { .node = n, .in = args, .out = &result };
		int regs[RG_EW_MAX_IN], reg;
		rg_ew_node *add;

		if (n->n_in > RG_EW_MAX_IN || n->n_out != 1 || n->out[0] < 0 ||
		    !rg_shape_equal(&g->values[n->out[0]].shape, out))
			return false;
		result = type_of(g, n->out[0]);
		for (int i = 0; i < n->n_in; i++) {
			args[i] = type_of(g, n->in[i]);
			regs[i] = n->in[i] >= 0 ? reg_of(places, n_places, n->in[i]) : -1;
			if (regs[i] < 0 && n->in[i] >= 0)
				return false;
		}
		add = find_node(&c, isa);
		reg = add ? add(e, &c, regs) : -ENOTSUP;
		if (reg < RG_EW_RESULT)
			return false; /* an input handed through is no result */
		places[n_places++] = (struct place){ n->out[0], reg };
	}
	/* the last operation's result is what a program stores */
	return places[n_places - 1].reg == RG_EW_RESULT + e->n_ops - 1;
}

bool rg_chain_call_program(struct rg_ew *e, const struct rg_call *c, uint32_t isa)
{
	const struct rg_graph *body = rg_chain_body(c->node);
	int nodes[RG_EW_MAX_OPS];

	if (!body || body->n_nodes > RG_EW_MAX_OPS)
		return false;
	for (int i = 0; i < body->n_nodes; i++)
		nodes[i] = i;
	for (int i = 0; i < body->n_inputs; i++) {
		const struct rg_value *v = &body->values[body->inputs[i]];

		if (v->dtype != c->in[i].dtype || !rg_shape_equal(&v->shape, &c->in[i].shape))
			return false;
	}
	return rg_chain_program(e, body, body->n_nodes, nodes, body->n_inputs, body->inputs, isa);
}
