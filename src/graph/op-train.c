/*
 * The optimisers of ai.onnx.preview.training: types, shapes, costs.
 *
 * Costs an element: Adam 13 flops and 2 sfu (square root, division), Adagrad 7
 * flops and 2 sfu, Momentum 7 flops, 9 in Nesterov's form. What is done once for
 * all of them is not counted.
 */
#include "graph/op-train.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

#define DOMAIN "ai.onnx.preview.training"
#define SET_REAL (RG_BIT(RG_F32) | RG_BIT(RG_F64))

bool rg_optimiser_of(const struct rg_node *node, struct rg_optimiser *out)
{
	int states = !strcmp(node->op_type, "Adam") ? 2 : 1, tensors = node->n_in - 2;

	out->states = states;
	out->n = tensors / (2 + states);
	return out->n > 0 && tensors % (2 + states) == 0 && node->n_out == out->n * (1 + states);
}

static int infer_optimiser(struct rg_infer *c, struct rg_error *err)
{
	struct rg_optimiser o;
	int rc;

	if (!rg_optimiser_of(c->node, &o))
		return rg_infer_fail(c, err, "%d inputs do not go with %d outputs", c->node->n_in, c->node->n_out);
	rc = rg_infer_type(c, 0, SET_REAL, err);
	if (!rc)
		rc = rg_infer_scalar(c, 0, err);
	if (!rc)
		rc = rg_infer_type(c, 1, RG_BIT(RG_I64), err);
	if (!rc)
		rc = rg_infer_scalar(c, 1, err);
	for (int i = 2; i < c->node->n_in && !rc; i++) {
		int tensor = 2 + (i - 2) % o.n;

		rc = rg_infer_type(c, i, SET_REAL, err);
		if (!rc)
			rc = rg_infer_like(c, i, tensor, err);
		if (!rc)
			rc = rg_infer_shape_is(c, i, &c->in[tensor]->shape, err);
	}
	for (int i = 0; i < c->node->n_out && !rc; i++)
		rg_infer_out(c, i, c->in[2 + i % o.n]->dtype, &c->in[2 + i % o.n]->shape);
	return rc;
}

static int infer_momentum(struct rg_infer *c, struct rg_error *err)
{
	const char *mode = rg_node_string(c->node, "mode", "");
	static const char *const needed[] = { "alpha", "beta", "norm_coefficient" };

	if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
		return rg_infer_fail(c, err, "mode '%s' is neither standard nor nesterov", mode);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!rg_node_attr(c->node, needed[i]))
			return rg_infer_fail(c, err, "attribute %s is missing", needed[i]);
	return infer_optimiser(c, err);
}

static void set_cost(const struct rg_cost_in *c, struct rg_cost *out, int flops, int sfu)
{
	struct rg_optimiser o;
	int64_t n = 0;

	if (!rg_optimiser_of(c->node, &o))
		return;
	for (int i = 0; i < o.n; i++)
		n = rg_cost_add(n, rg_shape_count(&c->in[2 + i].shape));
	out->flops = rg_cost_mul(n, flops);
	out->sfu = rg_cost_mul(n, sfu);
	out->iops = 0;
}

static void cost_adam(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 13, 2);
}

static void cost_adagrad(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 7, 2);
}

static void cost_momentum(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, strcmp(rg_node_string(c->node, "mode", ""), "nesterov") ? 7 : 9, 0);
}

const struct rg_op rg_ops_train[] = {
	{ DOMAIN, "Adagrad", RG_KIND_OTHER, 0, 5, -1, 2, -1, { 1 }, 1, 1, infer_optimiser, cost_adagrad },
	{ DOMAIN, "Adam", RG_KIND_OTHER, 0, 6, -1, 3, -1, { 1 }, 1, 1, infer_optimiser, cost_adam },
	{ DOMAIN, "Momentum", RG_KIND_OTHER, 0, 5, -1, 2, -1, { 1 }, 1, 1, infer_momentum,
	  cost_momentum },
};
RG_OP_FAMILY_END(train);
