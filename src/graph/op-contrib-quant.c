/*
 * ONNX Runtime's elementwise operators and pools on bytes: types, shapes, costs.
 *
 * Costs, by the definition (real kernels look up tables): to read a byte as a
 * number is two flops (subtract the zero point, scale), to write one an sfu
 * (divide) and four flops (round, zero point, two bounds), as in op-quant.c;
 * between these stands what the operator of floats costs. Where the definition
 * works on integers, those are iops, and the result is written with four flops.
 */
#include "graph/contrib.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

/* Input i is a float32, and input i + 1 absent or a byte of the type of input `like`. */
static int check_params(struct rg_infer *c, int i, int like, struct rg_error *err)
{
	int rc = rg_infer_type(c, i, RG_BIT(RG_F32), err);

	if (!rc)
		rc = rg_infer_scalar(c, i, err);
	if (!rc)
		rc = rg_infer_like(c, i + 1, like, err);
	return rc ? rc : rg_infer_scalar(c, i + 1, err);
}

static void set_cost(struct rg_cost *out, int64_t n, int flops, int iops, int sfu)
{
	out->flops = rg_cost_mul(n, flops);
	out->iops = rg_cost_mul(n, iops);
	out->sfu = rg_cost_mul(n, sfu);
}

static int64_t out_count(const struct rg_cost_in *c)
{
	return rg_shape_count(&c->out[0].shape);
}

/* ---- two operands: A A_scale A_zero B B_scale B_zero C_scale C_zero ---- */

static int infer_binary(struct rg_infer *c, struct rg_error *err)
{
	char a[160], b[160];
	struct rg_shape out;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_infer_type(c, 3, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_like(c, 3, 0, err);
	if (!rc)
		rc = check_params(c, 1, 0, err);
	if (!rc)
		rc = check_params(c, 4, 0, err);
	if (!rc)
		rc = check_params(c, 6, 0, err);
	if (rc)
		return rc;
	if (!rg_shape_broadcast(&c->in[0]->shape, &c->in[3]->shape, &out))
		return rg_infer_fail(c, err, "shapes %s and %s do not broadcast",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[3]->shape));
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_add(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 9, 0, 1);
}

static void cost_mul(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 4, 3, 0);
}

/* ---- one operand: X X_scale X_zero Y_scale Y_zero ---- */

static int check_unary(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = check_params(c, 1, 0, err);
	return rc ? rc : check_params(c, 3, 0, err);
}

static int infer_unary(struct rg_infer *c, struct rg_error *err)
{
	int rc = check_unary(c, err);

	return rc ? rc : rg_infer_same(c, err);
}

static void cost_leaky_relu(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 8, 0, 1);
}

static void cost_sigmoid(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 8, 0, 3);
}

static int infer_softmax(struct rg_infer *c, struct rg_error *err)
{
	struct rg_rows rows;
	int rc = check_unary(c, err);

	if (rc)
		return rc;
	if (!rg_node_attr(c->node, "opset"))
		return rg_infer_fail(c, err, "attribute opset is missing");
	if (!rg_byte_softmax_rows(c->node, &c->in[0]->shape, &rows))
		return rg_infer_fail(c, err, "the axis is outside of the input");
	return rg_infer_same(c, err);
}

static void cost_softmax(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 9, 0, 3);
}

/* ---- Where, Concat ---- */

static int infer_where(struct rg_infer *c, struct rg_error *err)
{
	char a[160], b[160];
	struct rg_shape out;
	int rc = rg_infer_type(c, 0, RG_BIT(RG_BOOL), err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_like(c, 4, 1, err);
	for (int i = 2; i <= 7 && !rc; i += i == 2 ? 3 : 2)
		rc = check_params(c, i, 1, err);
	if (rc)
		return rc;
	if (!rg_shape_broadcast(&c->in[1]->shape, &c->in[4]->shape, &out) ||
	    !rg_shape_broadcast(&out, &c->in[0]->shape, &out))
		return rg_infer_fail(c, err, "shapes %s and %s do not broadcast, or not to that of the condition",
				     rg_shape_text(a, &c->in[1]->shape), rg_shape_text(b, &c->in[4]->shape));
	rg_infer_out(c, 0, c->in[1]->dtype, &out);
	return 0;
}

static void cost_again(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 6, 0, 1);
}

/* Y_scale, Y_zero, then X, X_scale, X_zero of each part. */
static int infer_concat(struct rg_infer *c, struct rg_error *err)
{
	char a[160], b[160];
	struct rg_shape out;
	int rc = rg_infer_type(c, 1, RG_SET_INT8, err), axis;

	if (!rc)
		rc = check_params(c, 0, 1, err);
	if (rc)
		return rc;
	if ((c->node->n_in - 2) % 3)
		return rg_infer_fail(c, err, "the inputs are not threes of a tensor, a scale and a zero point");
	for (int i = 2; i < c->node->n_in && !rc; i += 3) {
		rc = rg_infer_type(c, i, RG_SET_INT8, err);
		if (!rc)
			rc = rg_infer_like(c, i, 1, err);
		if (!rc)
			rc = check_params(c, i + 1, 1, err);
	}
	if (rc)
		return rc;
	if (!rg_node_attr(c->node, "axis"))
		return rg_infer_fail(c, err, "attribute axis is missing");
	out = c->in[2]->shape;
	axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), out.rank, err);
	if (axis < 0)
		return axis;
	for (int i = 5; i < c->node->n_in; i += 3) {
		struct rg_shape s = c->in[i]->shape;

		if (s.rank == out.rank && !__builtin_add_overflow(out.dim[axis], s.dim[axis], &out.dim[axis]))
			s.dim[axis] = out.dim[axis];
		if (!rg_shape_equal(&s, &out))
			return rg_infer_fail(c, err, "shapes %s and %s do not join along axis %d",
					     rg_shape_text(a, &c->in[2]->shape),
					     rg_shape_text(b, &c->in[i]->shape), axis);
	}
	rg_infer_out(c, 0, c->in[1]->dtype, &out);
	return 0;
}

/* ---- pools ---- */

static bool channels_last(const struct rg_node *n)
{
	return rg_node_int(n, "channels_last", 0) != 0;
}

static int infer_average_pool(struct rg_infer *c, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	int rc = check_unary(c, err);

	if (!rc)
		rc = rg_byte_pool_window(c->node, &c->in[0]->shape, channels_last(c->node), &w, &out, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return rc;
}

static void cost_average_pool(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;
	struct rg_shape s;

	if (rg_byte_pool_window(c->node, &c->in[0].shape, channels_last(c->node), &w, &s, &err))
		return;
	/* two flops to read a tap, one to add it; a division more for the mean */
	set_cost(out, out_count(c), 4, 0, 2);
	out->flops = rg_cost_add(out->flops, rg_cost_mul(3, rg_cost_mul(out_count(c), w.kernel_count)));
}

static int infer_global_pool(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape out;
	int rc = check_unary(c, err);

	if (rc)
		return rc;
	out = c->in[0]->shape;
	if (out.rank < 3)
		return rg_infer_fail(c, err, "the input has rank %d; N, C and a spatial dimension are needed",
				     out.rank);
	for (int d = channels_last(c->node) ? 1 : 2; d < out.rank - (channels_last(c->node) ? 1 : 0); d++)
		out.dim[d] = 1;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_global_pool(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(out, out_count(c), 4, 0, 0);
	out->iops = rg_shape_count(&c->in[0].shape);
}

static int infer_max_pool(struct rg_infer *c, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_byte_pool_window(c->node, &c->in[0]->shape, true, &w, &out, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return rc;
}

static void cost_max_pool(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;
	struct rg_shape s;

	if (rg_byte_pool_window(c->node, &c->in[0].shape, true, &w, &s, &err))
		return;
	set_cost(out, rg_cost_mul(out_count(c), w.kernel_count), 0, 1, 0);
}

/* ---- standard operators under this domain ---- */

/* Without the attribute axis there is one scale; the standard operator's default is axis 1. */
static int check_axis(struct rg_infer *c, struct rg_error *err)
{
	return rg_node_attr(c->node, "axis") ? 0 : rg_infer_scalar(c, 1, err);
}

static int infer_quantize(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_BIT(RG_F32) | RG_BIT(RG_F16), err);

	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = check_axis(c, err);
	return rc ? rc : rg_infer_as(c, "QuantizeLinear", 21, err);
}

static void cost_quantize(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "QuantizeLinear", 21);
}

static int infer_dequantize(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 1, RG_BIT(RG_F32) | RG_BIT(RG_F16), err);

	if (!rc)
		rc = check_axis(c, err);
	return rc ? rc : rg_infer_as(c, "DequantizeLinear", 21, err);
}

static void cost_dequantize(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "DequantizeLinear", 21);
}

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_CONTRIB_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_contrib_quant[] = {
	OP("DequantizeLinear", RG_KIND_QUANT, 2, 3, infer_dequantize, cost_dequantize),
	OP("NhwcMaxPool", RG_KIND_POOL, 1, 1, infer_max_pool, cost_max_pool),
	OP("QLinearAdd", RG_KIND_ELEMENTWISE, 2, 8, infer_binary, cost_add),
	OP("QLinearAveragePool", RG_KIND_POOL, 2, 5, infer_average_pool, cost_average_pool),
	OP("QLinearConcat", RG_KIND_MOVE, 5, -1, infer_concat, cost_again),
	OP("QLinearGlobalAveragePool", RG_KIND_POOL, 2, 5, infer_global_pool, cost_global_pool),
	OP("QLinearLeakyRelu", RG_KIND_ELEMENTWISE, 2, 5, infer_unary, cost_leaky_relu),
	OP("QLinearMul", RG_KIND_ELEMENTWISE, 2, 8, infer_binary, cost_mul),
	OP("QLinearSigmoid", RG_KIND_ELEMENTWISE, 2, 5, infer_unary, cost_sigmoid),
	OP("QLinearSoftmax", RG_KIND_NORM, 2, 5, infer_softmax, cost_softmax),
	OP("QLinearWhere", RG_KIND_ELEMENTWISE, 8, 9, infer_where, cost_again),
	OP("QuantizeLinear", RG_KIND_QUANT, 2, 3, infer_quantize, cost_quantize),
};
RG_OP_FAMILY_END(contrib_quant);
