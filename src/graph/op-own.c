/*
 * ridge's own fused operators: types, shapes, costs. See own.h.
 *
 * A fused operator costs what its parts do.
 */
#include "graph/own.h"

#include <math.h>

#include "graph/op-families.h"
#include "graph/op-types.h"
#include "graph/window.h"

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
	struct rg_window w;
	struct rg_shape out;

	if (!rc)
		rc = rg_infer_as(c, "Conv", 11, err);
	if (!rc)
		rc = rg_infer_like(c, 3, 0, err);
	if (rc || !rg_infer_in(c, 3))
		return rc;
	rc = rg_window_conv(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err);
	if (rc)
		return rc;
	rg_window_out_shape(&w, &out);
	return rg_infer_shape_is(c, 3, &out, err);
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

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_OWN_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_own[] = {
	OP("FusedConv", RG_KIND_CONV, 2, 4, infer_conv, cost_conv),
	OP("FusedGemm", RG_KIND_GEMM, 2, 4, infer_gemm, cost_gemm),
};
RG_OP_FAMILY_END(own);
