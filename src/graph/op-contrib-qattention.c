/*
 * QAttention: Attention of ONNX Runtime whose input and weights are bytes.
 *
 * Costs: as Attention, but that the product with the weights is of integers
 * (iops), and one flop scales each of its elements.
 */
#include <string.h>

#include "graph/contrib.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

/* Inputs: input weight bias input_scale weight_scale mask input_zero weight_zero past; those of
 * Attention that are here too, in its order. */
static const int attention_inputs[RG_QATTENTION_INPUTS] = { 0, 1, 2, 5, 8 };

int rg_qattention_input(int i)
{
	return attention_inputs[i];
}

static int check_list(struct rg_infer *c, int i, int64_t n, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char text[160];

	if (!v || rg_shape_count(&v->shape) == 1 || (v->shape.rank == 1 && v->shape.dim[0] == n))
		return 0;
	return rg_infer_fail(c, err, "input %d ('%s') of shape %s is neither one value nor one a column", i,
			     v->name, rg_shape_text(text, &v->shape));
}

static int check_params(struct rg_infer *c, struct rg_error *err)
{
	int64_t columns = c->in[1]->shape.rank == 2 ? c->in[1]->shape.dim[1] : 1;
	int rc = rg_infer_type(c, 3, RG_BIT(RG_F32), err);

	if (!rc)
		rc = rg_infer_scalar(c, 3, err);
	if (!rc)
		rc = rg_infer_type(c, 4, RG_BIT(RG_F32), err);
	if (!rc)
		rc = check_list(c, 4, columns, err);
	if (!rc)
		rc = rg_infer_like(c, 6, 0, err);
	if (!rc)
		rc = rg_infer_scalar(c, 6, err);
	if (!rc)
		rc = rg_infer_like(c, 7, 1, err);
	return rc ? rc : check_list(c, 7, columns, err);
}

static int infer_qattention(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_op *op = rg_op_find(RG_CONTRIB_DOMAIN, "Attention");
	const struct rg_value *in[RG_QATTENTION_INPUTS];
	struct rg_value input, weights;
	struct rg_node node = *c->node;
	struct rg_infer as = *c;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_type(c, 2, RG_BIT(RG_F32), err);
	if (!rc)
		rc = check_params(c, err);
	if (rc)
		return rc;
	input = *c->in[0];
	weights = *c->in[1];
	input.dtype = weights.dtype = RG_F32;
	for (int i = 0; i < RG_QATTENTION_INPUTS; i++)
		in[i] = rg_infer_in(c, attention_inputs[i]);
	in[0] = &input;
	in[1] = &weights;
	node.op_type = "Attention";
	node.n_in = RG_QATTENTION_INPUTS;
	as.node = &node;
	as.in = in;
	return op->infer(&as, err);
}

static void cost_qattention(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_op *op = rg_op_find(RG_CONTRIB_DOMAIN, "Attention");
	struct rg_tensor in[RG_QATTENTION_INPUTS];
	const struct rg_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
	struct rg_node node = *c->node;
	struct rg_cost_in as = *c;
	int64_t made = rg_cost_mul(rg_shape_count_range(x, 0, 2), w->dim[1]);

	memset(in, 0, sizeof(in));
	for (int i = 0; i < RG_QATTENTION_INPUTS; i++)
		if (attention_inputs[i] < c->node->n_in)
			in[i] = c->in[attention_inputs[i]];
	in[0].dtype = in[1].dtype = RG_F32;
	node.op_type = "Attention";
	node.n_in = RG_QATTENTION_INPUTS;
	as.node = &node;
	as.in = in;
	op->cost(&as, out);
	out->iops = rg_cost_mul(rg_cost_mul(2, x->dim[2]), made);
	if (out->flops >= 0 && out->iops >= 0)
		out->flops = out->flops - out->iops + made;
}

const struct rg_op rg_ops_contrib_qattention[] = {
	{ RG_CONTRIB_DOMAIN, "QAttention", RG_KIND_ATTENTION, 0, 5, 9, 1, 2, { 1 }, 1, 1, infer_qattention,
	  cost_qattention },
};
RG_OP_FAMILY_END(contrib_qattention);
