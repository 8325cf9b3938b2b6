/* ridge's own Chain by the reference kernels of its operators, each over the whole tensor. */
#include "graph/own.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static size_t room(const struct rg_value *v)
{
	int64_t bytes = rg_tensor_bytes(v->dtype, &v->shape);

	return bytes > 0 ? ((size_t)bytes + 63) / 64 * 64 : 0;
}

static const struct rg_kernel *reference(const struct rg_node *n)
{
	const struct rg_kernel *k = n->n_in <= RG_CHAIN_MAX_IN && n->n_out == 1 ? rg_kernel_find(n->domain, n->op_type, "ref") : NULL;

	return k && !k->scratch_bytes && !k->prepared_bytes ? k : NULL;
}

static bool supports(const struct rg_call *c)
{
	const struct rg_graph *body = rg_chain_body(c->node);

	for (int i = 0; body && i < body->n_nodes; i++)
		if (!reference(&body->nodes[i]))
			return false;
	return body != NULL;
}

/* Every value between has a place of its own. */
static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	const struct rg_graph *body = rg_chain_body(c->node);
	size_t all = 0;

	(void)lanes;
	for (int i = 0; i < body->n_nodes; i++)
		all += room(&body->values[body->nodes[i].out[0]]);
	return all;
}

/* Where value `v` of the body is. */
static void *find(const struct rg_call *c, const struct rg_graph *body, int v)
{
	size_t at = 0;

	if (v == body->outputs[0])
		return c->out[0].data;
	for (int i = 0; i < body->n_inputs; i++)
		if (body->inputs[i] == v)
			return c->in[i].data;
	for (int i = 0; i < body->n_nodes && body->nodes[i].out[0] != v; i++)
		at += room(&body->values[body->nodes[i].out[0]]);
	return c->scratch ? (char *)c->scratch + at : NULL; /* values without elements take no room */
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_graph *body = rg_chain_body(c->node);
	int rc = 0;

	for (int i = 0; i < body->n_nodes && !rc; i++) {
		const struct rg_node *n = &body->nodes[i];
		struct rg_tensor in[RG_CHAIN_MAX_IN] = { { 0 } }, out = { 0 };
		struct rg_call part = { .node = n, .in = in, .out = &out };

		for (int k = 0; k < n->n_in; k++) {
			if (n->in[k] < 0)
				continue;
			in[k].dtype = body->values[n->in[k]].dtype;
			in[k].shape = body->values[n->in[k]].shape;
			in[k].data = find(c, body, n->in[k]);
		}
		out.dtype = body->values[n->out[0]].dtype;
		out.shape = body->values[n->out[0]].shape;
		out.data = find(c, body, n->out[0]);
		rc = reference(n)->run(&part, par, err);
	}
	return rc;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Chain", .domain = RG_OWN_DOMAIN, .name = "ref", .supports = supports, .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_chain, kernels);
