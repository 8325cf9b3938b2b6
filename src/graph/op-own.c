/*
 * ridge's own fused operators: types, shapes, costs. See own.h.
 *
 * A fused operator costs what its parts do.
 */
#include "graph/own.h"

#include <math.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

const char *rg_own_finish(const struct rg_node *node, struct rg_finish *out)
{
	const char *bad = rg_activation_read(RG_ACT_OF_OWN, node, &out->act);

	out->scale = rg_node_float(node, "scale", 1);
	out->shift = rg_node_float(node, "shift", 0);
	if (!bad && !(isfinite(out->scale) && isfinite(out->shift)))
		bad = "attributes scale and shift must be finite";
	return bad;
}

static int check_finish(struct rg_infer *c, struct rg_error *err)
{
	struct rg_finish f;
	const char *bad = rg_own_finish(c->node, &f);

	if (!bad)
		return rg_infer_type(c, 0, RG_BIT(RG_F32), err);
	return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s ('%.40s')", c->node->op_type, bad,
			    rg_node_string(c->node, "activation", ""));
}

static void finish_cost(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->out[0].shape);
	struct rg_finish f;

	if (c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED)
		out->flops = rg_cost_add(out->flops, n);
	if (rg_own_finish(c->node, &f))
		return;
	rg_activation_cost(&f.act, n, out);
	if (f.scale != 1)
		out->flops = rg_cost_add(out->flops, n);
	if (f.shift != 0)
		out->flops = rg_cost_add(out->flops, n);
}

static int infer_conv(struct rg_infer *c, struct rg_error *err)
{
	int rc = check_finish(c, err);

	return rc ? rc : rg_infer_conv_sum(c, err);
}

static void cost_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "Conv", 11);
	finish_cost(c, out);
}

static int infer_gemm(struct rg_infer *c, struct rg_error *err)
{
	int rc = check_finish(c, err);
	struct rg_shape out = { .rank = 2 };

	if (!rc)
		rc = rg_infer_as(c, "Gemm", 13, err);
	if (!rc)
		rc = rg_infer_like(c, 3, 0, err);
	if (rc || !rg_infer_in(c, 3))
		return rc;
	if (!rg_gemm_shape(c->node, &c->in[0]->shape, &c->in[1]->shape, &out.dim[0], &out.dim[1], &(int64_t){ 0 }))
		return rg_infer_fail(c, err, "the matrices do not multiply");
	return rg_infer_shape_is(c, 3, &out, err);
}

static void cost_gemm(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "Gemm", 13);
	finish_cost(c, out);
}

/* ---- Chain ---- */

static bool is_known(const struct rg_graph *g, int value)
{
	const struct rg_value *v = value >= 0 ? &g->values[value] : NULL;

	/* what a body would read of the graph around it does not reach its kernels */
	return v && v->shaped && !v->dynamic && !v->from_outer && v->origin == RG_CONST_NONE;
}

bool rg_chain_may_hold(const struct rg_node *node)
{
	return node->op && (node->op->kind == RG_KIND_ELEMENTWISE || (!node->domain[0] && !strcmp(node->op_type, "Cast")));
}

const struct rg_graph *rg_chain_body(const struct rg_node *node)
{
	const struct rg_attr *a = rg_node_attr(node, "body");
	const struct rg_graph *g = a ? a->g : NULL;
	const struct rg_value *y;

	if (!g || g->n_outputs != 1 || g->n_nodes < 1 || g->n_inputs != node->n_in || !is_known(g, g->outputs[0]) ||
	    g->values[g->outputs[0]].producer != g->n_nodes - 1)
		return NULL;
	y = &g->values[g->outputs[0]];
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (n->n_out != 1 || !is_known(g, n->out[0]) || !rg_shape_equal(&g->values[n->out[0]].shape, &y->shape) ||
		    !rg_chain_may_hold(n))
			return NULL;
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] >= 0 && !is_known(g, n->in[k]))
				return NULL;
	}
	return g;
}

static int infer_chain(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_graph *body = rg_chain_body(c->node);

	if (!body)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "Chain: attribute body is no graph that the passes here make");
	for (int i = 0; i < body->n_inputs; i++) {
		const struct rg_value *v = &body->values[body->inputs[i]];

		if (!c->in[i] || v->dtype != c->in[i]->dtype || !rg_shape_equal(&v->shape, &c->in[i]->shape))
			return rg_infer_fail(c, err, "input %d is not of the type and shape that the body was made for", i);
	}
	rg_infer_out(c, 0, body->values[body->outputs[0]].dtype, &body->values[body->outputs[0]].shape);
	return 0;
}

static void cost_chain(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_graph *body = rg_chain_body(c->node);
	struct rg_tensor in[RG_CHAIN_MAX_IN], y;

	out->flops = out->iops = out->sfu = 0;
	for (int i = 0; body && i < body->n_nodes; i++) {
		const struct rg_node *n = &body->nodes[i];
		struct rg_cost_in part = { .node = n, .in = in, .out = &y };
		struct rg_cost cost;

		if (n->n_in > RG_CHAIN_MAX_IN) {
			out->flops = out->iops = out->sfu = -1;
			return;
		}
		for (int k = 0; k < n->n_in; k++) {
			in[k] = (struct rg_tensor){ 0 };
			if (n->in[k] < 0)
				continue;
			in[k].dtype = body->values[n->in[k]].dtype;
			in[k].shape = body->values[n->in[k]].shape;
		}
		y = (struct rg_tensor){ .dtype = body->values[n->out[0]].dtype, .shape = body->values[n->out[0]].shape };
		rg_op_cost(n->op, &part, &cost);
		out->flops = rg_cost_add(out->flops, cost.flops);
		out->iops = rg_cost_add(out->iops, cost.iops);
		out->sfu = rg_cost_add(out->sfu, cost.sfu);
	}
}

/* ---- LookUp ---- */

static int infer_look_up(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape table = { .rank = 1, .dim = { 256 } };
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 1, &table, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[1]->dtype, &c->in[0]->shape);
	return rc;
}

static void cost_look_up(const struct rg_cost_in *c, struct rg_cost *out)
{
	(void)c;
	out->flops = out->iops = out->sfu = 0; /* it moves bytes */
}

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_OWN_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_own[] = {
	OP("Chain", RG_KIND_ELEMENTWISE, 1, RG_CHAIN_MAX_IN, infer_chain, cost_chain),
	OP("FusedConv", RG_KIND_CONV, 2, 4, infer_conv, cost_conv),
	OP("FusedGemm", RG_KIND_GEMM, 2, 4, infer_gemm, cost_gemm),
	OP("LookUp", RG_KIND_MOVE, 2, 2, infer_look_up, cost_look_up),
};
RG_OP_FAMILY_END(own);
