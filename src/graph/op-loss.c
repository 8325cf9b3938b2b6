/*
 * Losses: types, shapes, costs. They occur in exported training graphs.
 *
 * Costs: NegativeLogLikelihoodLoss two flops a sample (weight, sum), and one
 * division for the mean; SoftmaxCrossEntropyLoss adds those of a LogSoftmax
 * over the scores (4n flops, n exp, one log a sample).
 */
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

/* Scores (N, C, d...), labels (N, d...), weights (C). */
static int infer_loss(struct rg_infer *c, struct rg_error *err)
{
	const char *how = rg_node_string(c->node, "reduction", "mean");
	struct rg_shape labels, weights = { .rank = 1 }, scalar = { 0 };
	const struct rg_shape *x;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_BIT(RG_I32) | RG_BIT(RG_I64), err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (rc)
		return rc;
	x = &c->in[0]->shape;
	if (x->rank < 2)
		return rg_infer_fail(c, err, "input 0 has no class dimension");
	labels = *x;
	labels.rank--;
	for (int d = 1; d < labels.rank; d++)
		labels.dim[d] = x->dim[d + 1];
	weights.dim[0] = x->dim[1];
	rc = rg_infer_shape_is(c, 1, &labels, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 2, &weights, err);
	if (rc)
		return rc;
	if (strcmp(how, "none") && strcmp(how, "sum") && strcmp(how, "mean"))
		return rg_infer_fail(c, err, "attribute reduction is '%s', not 'none', 'sum' or 'mean'", how);
	rg_infer_out(c, 0, c->in[0]->dtype, strcmp(how, "none") ? &scalar : &labels);
	rg_infer_out(c, 1, c->in[0]->dtype, x);
	return 0;
}

static void cost_nll(const struct rg_cost_in *c, struct rg_cost *out)
{
	out->flops = rg_cost_mul(2, rg_shape_count(&c->in[1].shape));
	out->sfu = !strcmp(rg_node_string(c->node, "reduction", "mean"), "mean");
	out->iops = 0;
}

static void cost_cross_entropy(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	cost_nll(c, out);
	out->flops = rg_cost_add(out->flops, rg_cost_mul(4, n));
	out->sfu = rg_cost_add(out->sfu, rg_cost_add(n, rg_shape_count(&c->in[1].shape)));
}

const struct rg_op rg_ops_loss[] = {
	{ "", "NegativeLogLikelihoodLoss", RG_KIND_OTHER, 0, 2, 3, 1, 1, { 12, 13, 22 }, 12, 22, infer_loss, cost_nll },
	{ "", "SoftmaxCrossEntropyLoss", RG_KIND_OTHER, 0, 2, 3, 1, 2, { 12, 13 }, 12, 13, infer_loss,
	  cost_cross_entropy },
};
RG_OP_FAMILY_END(loss);
