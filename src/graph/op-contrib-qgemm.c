/*
 * ONNX Runtime's products and convolutions of bytes: types, shapes, costs.
 *
 * Costs: the product is iops (2 m n k); an element of a float result one flop
 * for its scale and one for the bias; of a byte result four (scale, round, zero
 * point, bounds); a C of integers one iop. DynamicQuantizeMatMul quantises A
 * first: six flops and an sfu an element, as DynamicQuantizeLinear.
 */
#include "graph/contrib.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

/* Input i is absent, or has one value or one for each of n columns. */
static int check_columns(struct rg_infer *c, int i, int64_t n, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char text[160];

	if (!v || rg_shape_count(&v->shape) == 1 || (v->shape.rank == 1 && v->shape.dim[0] == n))
		return 0;
	return rg_infer_fail(c, err, "input %d ('%s') of shape %s is neither one value nor a list of %lld", i,
			     v->name, rg_shape_text(text, &v->shape), (long long)n);
}

static int check_scale(struct rg_infer *c, int i, int64_t n, struct rg_error *err)
{
	int rc = rg_infer_type(c, i, RG_BIT(RG_F32), err);

	return rc ? rc : check_columns(c, i, n, err);
}

static int check_zero(struct rg_infer *c, int i, int like, int64_t n, struct rg_error *err)
{
	int rc = rg_infer_like(c, i, like, err);

	return rc ? rc : check_columns(c, i, n, err);
}

/* ---- DynamicQuantizeMatMul, MatMulIntegerToFloat ---- */

/* The product, the scale, zero point and bias of B's columns. */
static int check_product(struct rg_infer *c, int b_scale, int b_zero, int bias, struct rg_matmul *p,
			 struct rg_error *err)
{
	struct rg_shape list = { .rank = 1 };
	char a[160], b[160];
	int rc = rg_infer_type(c, 1, RG_SET_INT8, err);

	if (rc)
		return rc;
	if (!rg_matmul_shape(&c->in[0]->shape, &c->in[1]->shape, p))
		return rg_infer_fail(c, err, "shapes %s and %s do not multiply",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[1]->shape));
	rc = check_scale(c, b_scale, p->n, err);
	if (!rc)
		rc = check_zero(c, b_zero, 1, p->n, err);
	if (!rc && rg_infer_in(c, bias)) {
		list.dim[0] = p->n;
		rc = rg_infer_type(c, bias, RG_BIT(RG_F32), err);
		if (!rc)
			rc = rg_infer_shape_is(c, bias, &list, err);
	}
	if (!rc)
		rg_infer_out(c, 0, RG_F32, &p->out);
	return rc;
}

static int infer_dynamic(struct rg_infer *c, struct rg_error *err)
{
	struct rg_matmul p;
	int rc = rg_infer_type(c, 0, RG_BIT(RG_F32), err);

	return rc ? rc : check_product(c, 2, 3, 4, &p, err);
}

static int infer_to_float(struct rg_infer *c, struct rg_error *err)
{
	struct rg_matmul p;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = check_product(c, 3, 5, 6, &p, err);
	if (!rc)
		rc = check_scale(c, 2, p.n, err); /* the fusion that writes it may have swapped the scales */
	return rc ? rc : check_zero(c, 4, 0, 1, err);
}

static void cost_product(const struct rg_cost_in *c, struct rg_cost *out, int bias)
{
	struct rg_matmul p;
	int64_t mn = rg_shape_count(&c->out[0].shape);

	if (!rg_matmul_shape(&c->in[0].shape, &c->in[1].shape, &p))
		return;
	out->iops = rg_cost_mul(rg_cost_mul(2, p.k), mn);
	out->flops = rg_cost_mul(bias < c->node->n_in && c->in[bias].dtype != RG_UNDEFINED ? 2 : 1, mn);
	out->sfu = 0;
}

static void cost_dynamic(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	cost_product(c, out, 4);
	out->flops = rg_cost_add(out->flops, rg_cost_mul(6, n));
	out->sfu = n;
}

static void cost_to_float(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_product(c, out, 6);
}

/* ---- QGemm: A a_scale a_zero B b_scale b_zero C y_scale y_zero ---- */

static int check_c(struct rg_infer *c, const struct rg_shape *out, struct rg_error *err)
{
	struct rg_shape both;
	char a[160], b[160];
	int rc;

	if (!rg_infer_in(c, 6))
		return 0;
	rc = rg_infer_type(c, 6, RG_BIT(RG_I32), err);
	if (!rc && (!rg_shape_broadcast(&c->in[6]->shape, out, &both) || !rg_shape_equal(&both, out)))
		rc = rg_infer_fail(c, err, "C of shape %s does not broadcast to %s",
				   rg_shape_text(a, &c->in[6]->shape), rg_shape_text(b, out));
	return rc;
}

static int infer_gemm(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape out = { .rank = 2 };
	char a[160], b[160];
	int64_t k;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_infer_type(c, 3, RG_SET_INT8, err);
	if (rc)
		return rc;
	if (!rg_gemm_shape(c->node, &c->in[0]->shape, &c->in[3]->shape, &out.dim[0], &out.dim[1], &k))
		return rg_infer_fail(c, err, "matrices %s and %s do not multiply",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[3]->shape));
	rc = check_scale(c, 1, 1, err);
	if (!rc)
		rc = check_zero(c, 2, 0, 1, err);
	if (!rc)
		rc = check_scale(c, 4, out.dim[1], err);
	if (!rc)
		rc = check_zero(c, 5, 3, out.dim[1], err);
	if (!rc)
		rc = check_c(c, &out, err);
	if (!rc && !rg_infer_in(c, 7) != !rg_infer_in(c, 8))
		rc = rg_infer_fail(c, err, "y_scale and y_zero_point go together");
	if (!rc && rg_infer_in(c, 7))
		rc = check_scale(c, 7, 1, err);
	if (!rc && rg_infer_in(c, 8)) {
		rc = rg_infer_type(c, 8, RG_SET_INT8, err);
		if (!rc)
			rc = rg_infer_scalar(c, 8, err);
	}
	if (!rc)
		rg_infer_out(c, 0, rg_infer_in(c, 8) ? c->in[8]->dtype : RG_F32, &out);
	return rc;
}

static void cost_gemm(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t m, n, k, mn;

	if (!rg_gemm_shape(c->node, &c->in[0].shape, &c->in[3].shape, &m, &n, &k))
		return;
	mn = rg_cost_mul(m, n);
	out->iops = rg_cost_mul(rg_cost_mul(2, k), mn);
	if (c->node->n_in > 6 && c->in[6].dtype != RG_UNDEFINED)
		out->iops = rg_cost_add(out->iops, mn);
	out->flops = rg_cost_mul(c->out[0].dtype == RG_F32 ? 1 : 4, mn);
	out->sfu = 0;
}

/* ---- QLinearConv ---- */

static int infer_conv(struct rg_infer *c, struct rg_error *err)
{
	if (rg_node_int(c->node, "channels_last", 0) != 0)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s with channels_last is not supported",
				    c->node->op_type);
	return rg_infer_as(c, "QLinearConv", 10, err);
}

static void cost_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "QLinearConv", 10);
}

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_CONTRIB_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_contrib_qgemm[] = {
	OP("DynamicQuantizeMatMul", RG_KIND_GEMM, 3, 5, infer_dynamic, cost_dynamic),
	OP("MatMulIntegerToFloat", RG_KIND_GEMM, 4, 7, infer_to_float, cost_to_float),
	OP("QGemm", RG_KIND_GEMM, 6, 9, infer_gemm, cost_gemm),
	OP("QLinearConv", RG_KIND_CONV, 8, 9, infer_conv, cost_conv),
};
RG_OP_FAMILY_END(contrib_qgemm);
