/*
 * ONNX Runtime's fused operators on floats: types, shapes, costs.
 *
 * Costs: a fused operator costs what its parts do: the convolution or product,
 * an addition for each element of a bias or of Z, and the activation
 * (contrib.c). Gelu is four flops and an erf, its approximation FastGelu eight
 * and a tanh, QuickGelu three, an exp and a division. The inverse of an n x n
 * matrix is 2 n^3 flops and n divisions.
 */
#include <string.h>

#include "graph/contrib.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

#define SET_F16_TO_64 (RG_BIT(RG_F32) | RG_BIT(RG_F64) | RG_BIT(RG_F16))

static bool present(const struct rg_cost_in *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED;
}

/* An addition for each element of the output. */
static void add_one(const struct rg_cost_in *c, struct rg_cost *out)
{
	out->flops = rg_cost_add(out->flops, rg_shape_count(&c->out[0].shape));
}

/* Input i is absent, or a list as long as the last dimension of the first, and of its type. */
static int check_bias(struct rg_infer *c, int i, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape;
	struct rg_shape list = { .rank = 1 };
	int rc = rg_infer_like(c, i, 0, err);

	if (rc || !rg_infer_in(c, i))
		return rc;
	if (x->rank < 1)
		return rg_infer_fail(c, err, "a scalar has no dimension that a bias could be for");
	list.dim[0] = x->dim[x->rank - 1];
	return rg_infer_shape_is(c, i, &list, err);
}

/* ---- FusedConv, FusedGemm, FusedMatMul ---- */

static int infer_conv(struct rg_infer *c, struct rg_error *err)
{
	struct rg_activation act;
	const char *bad = rg_conv_activation(c->node, &act);
	int rc;

	if (bad)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s ('%.40s')", c->node->op_type, bad,
				    rg_node_string(c->node, "activation", ""));
	rc = rg_infer_type(c, 0, SET_F16_TO_64, err);
	return rc ? rc : rg_infer_conv_sum(c, err);
}

static void cost_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_activation act;

	rg_cost_as(c, out, "Conv", 11);
	if (present(c, 3))
		add_one(c, out);
	if (!rg_conv_activation(c->node, &act))
		rg_activation_cost(&act, rg_shape_count(&c->out[0].shape), out);
}

static int infer_gemm(struct rg_infer *c, struct rg_error *err)
{
	struct rg_activation act;
	const char *bad = rg_gemm_activation(c->node, &act);
	int rc;

	if (bad)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s ('%.40s')", c->node->op_type, bad,
				    rg_node_string(c->node, "activation", ""));
	rc = rg_infer_type(c, 0, SET_F16_TO_64, err);
	return rc ? rc : rg_infer_as(c, "Gemm", 13, err);
}

static void cost_gemm(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_activation act;

	rg_cost_as(c, out, "Gemm", 13);
	if (!rg_gemm_activation(c->node, &act))
		rg_activation_cost(&act, rg_shape_count(&c->out[0].shape), out);
}

static int infer_matmul(struct rg_infer *c, struct rg_error *err)
{
	struct rg_fused_matmul m;
	char a[160], b[160];
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_FLOAT, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (rc)
		return rc;
	if (!rg_fused_matmul_shape(c->node, &c->in[0]->shape, &c->in[1]->shape, &m))
		return rg_infer_fail(c, err, "shapes %s and %s, read as the attributes say, do not multiply",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[1]->shape));
	rg_infer_out(c, 0, c->in[0]->dtype, &m.p.out);
	return 0;
}

static void cost_matmul(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_fused_matmul m;
	int64_t mn;

	if (!rg_fused_matmul_shape(c->node, &c->in[0].shape, &c->in[1].shape, &m))
		return;
	mn = rg_cost_mul(rg_shape_count(&m.p.batch), rg_cost_mul(m.p.m, m.p.n));
	out->flops = rg_cost_mul(rg_cost_mul(2, m.p.k), mn);
	if (rg_node_float(c->node, "alpha", 1) != 1)
		out->flops = rg_cost_add(out->flops, mn);
	out->iops = out->sfu = 0;
}

/* ---- Gelu and its kin ---- */

static int infer_gelu(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = check_bias(c, 1, err);
	return rc ? rc : rg_infer_same(c, err);
}

static void cost_gelu(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 4, 1);
	if (present(c, 1))
		add_one(c, out);
}

static void cost_fast_gelu(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 8, 1);
	if (present(c, 1))
		add_one(c, out);
}

static void cost_quick_gelu(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 3, 2);
}

/* The left half of the sum with the bias times Gelu of the right half. */
static int infer_split_gelu(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_BIT(RG_F32) | RG_BIT(RG_F16), err);
	struct rg_shape out;

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_FLOAT, err);
	if (!rc)
		rc = check_bias(c, 1, err);
	if (rc)
		return rc;
	out = c->in[0]->shape;
	if (out.rank != 3 || out.dim[2] % 2)
		return rg_infer_fail(c, err, "the input must have three dimensions, the last one even");
	out.dim[2] /= 2;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_split_gelu(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 7, 1); /* two additions and a product more */
}

static int infer_bias_add(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_BIT(RG_F32) | RG_BIT(RG_F16), err);

	if (!rc)
		rc = check_bias(c, 1, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 2, &c->in[0]->shape, err);
	return rc ? rc : rg_infer_same(c, err);
}

static void cost_bias_add(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 2, 0);
}

/* ---- BiasSoftmax ---- */

/* Over all dimensions from the axis on, as Softmax did before version 13. */
static int infer_bias_softmax(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, SET_F16_TO_64, err);
	struct rg_shape both;
	char a[160], b[160];

	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (rc)
		return rc;
	if (!rg_shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &both) ||
	    !rg_shape_equal(&both, &c->in[0]->shape))
		return rg_infer_fail(c, err, "a bias of shape %s does not broadcast to %s",
				     rg_shape_text(b, &c->in[1]->shape), rg_shape_text(a, &c->in[0]->shape));
	return rg_infer_as(c, "Softmax", 11, err);
}

static void cost_bias_softmax(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "Softmax", 11);
	add_one(c, out);
}

/* ---- Inverse ---- */

static int infer_inverse(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, SET_F16_TO_64, err);
	const struct rg_shape *s;
	char text[160];

	if (rc)
		return rc;
	s = &c->in[0]->shape;
	if (s->rank < 2 || s->dim[s->rank - 1] != s->dim[s->rank - 2])
		return rg_infer_fail(c, err, "a matrix of shape %s is not square", rg_shape_text(text, s));
	if (s->dim[s->rank - 1] > 64)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "Inverse of matrices beyond 64x64 is not supported");
	return rg_infer_same(c, err);
}

static void cost_inverse(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t n = s->dim[s->rank - 1], batch = rg_shape_count_range(s, 0, s->rank - 2);

	out->flops = rg_cost_mul(batch, rg_cost_mul(rg_cost_mul(n, n), 2 * n));
	out->sfu = rg_cost_mul(batch, n);
	out->iops = 0;
}

/* ---- standard operators under this domain ---- */

static int infer_gather_nd(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_as(c, "GatherND", 11, err);
}

static void cost_gather_nd(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_as(c, out, "GatherND", 11);
}

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_CONTRIB_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_contrib_fused[] = {
	OP("BiasAdd", RG_KIND_ELEMENTWISE, 3, 3, infer_bias_add, cost_bias_add),
	OP("BiasGelu", RG_KIND_ELEMENTWISE, 2, 2, infer_gelu, cost_gelu),
	OP("BiasSoftmax", RG_KIND_NORM, 2, 2, infer_bias_softmax, cost_bias_softmax),
	OP("BiasSplitGelu", RG_KIND_ELEMENTWISE, 2, 2, infer_split_gelu, cost_split_gelu),
	OP("FastGelu", RG_KIND_ELEMENTWISE, 1, 2, infer_gelu, cost_fast_gelu),
	OP("FusedConv", RG_KIND_CONV, 2, 4, infer_conv, cost_conv),
	OP("FusedGemm", RG_KIND_GEMM, 2, 3, infer_gemm, cost_gemm),
	OP("FusedMatMul", RG_KIND_GEMM, 2, 2, infer_matmul, cost_matmul),
	OP("GatherND", RG_KIND_MOVE, 2, 2, infer_gather_nd, cost_gather_nd),
	OP("Gelu", RG_KIND_ELEMENTWISE, 1, 1, infer_gelu, cost_gelu),
	OP("Inverse", RG_KIND_OTHER, 1, 1, infer_inverse, cost_inverse),
	OP("QuickGelu", RG_KIND_ELEMENTWISE, 1, 1, infer_gelu, cost_quick_gelu),
	OP("TransposeMatMul", RG_KIND_GEMM, 2, 2, infer_matmul, cost_matmul),
};
RG_OP_FAMILY_END(contrib_fused);
