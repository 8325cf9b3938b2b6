/*
 * Quantisation: types, shapes, costs. To and from integers of 2 to 16 bits,
 * float8 and float4e2m1.
 *
 * Costs an element: QuantizeLinear one sfu (divide) and four flops (round, add
 * the zero point, two bounds); DequantizeLinear two flops (subtract,
 * multiply); DynamicQuantizeLinear two flops more, for minimum and maximum.
 */
#include "graph/op-quant.h"

#include "graph/op-families.h"
#include "graph/op-types.h"

#define SET_QUANT \
	(RG_SET_INT8 | RG_BIT(RG_I16) | RG_BIT(RG_U16) | RG_SET_F8 | RG_SET_SMALL_INT | RG_BIT(RG_F4E2M1))
#define SET_REAL (RG_BIT(RG_F32) | RG_BIT(RG_F16) | RG_BIT(RG_BF16))
#define SET_SCALE (SET_REAL | RG_BIT(RG_F8E8M0))

const char *rg_quant_layout(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *scale,
			    struct rg_quant *out)
{
	int64_t axis = rg_node_int(node, "axis", 1), block = rg_node_int(node, "block_size", 0), blocks;
	struct rg_quant q = { .outer = 1, .n = rg_shape_count(x), .inner = 1, .block = 1 };

	*out = q;
	if (rg_shape_count(scale) == 1 && block == 0)
		return NULL;
	if (node->version < 13)
		return "the scale is not a single value";
	if (axis < -x->rank || axis >= x->rank)
		return "the axis is outside of the input";
	axis += axis < 0 ? x->rank : 0;
	q.outer = rg_shape_count_range(x, 0, (int)axis);
	q.n = x->dim[axis];
	q.inner = rg_shape_count_range(x, (int)axis + 1, x->rank);
	if (block == 0) {
		if (scale->rank != 1 || scale->dim[0] != q.n)
			return "the scale has neither one value nor one for each position of the axis";
		q.si = 1;
		*out = q;
		return NULL;
	}
	if (block < 0 || scale->rank != x->rank)
		return "the scale has another rank than the input, or block_size is negative";
	blocks = q.n / block + (q.n % block != 0);
	for (int d = 0; d < x->rank; d++)
		if (scale->dim[d] != (d == axis ? blocks : x->dim[d]))
			return "the scale's shape does not follow from the input's and block_size";
	q.block = block;
	q.so = blocks * q.inner;
	q.si = q.inner;
	q.sj = 1;
	*out = q;
	return NULL;
}

enum rg_dtype rg_quant_precision(const struct rg_node *node, enum rg_dtype x, enum rg_dtype scale)
{
	int64_t asked = node->version < 23 ? RG_F32 : rg_node_int(node, "precision", RG_UNDEFINED);

	if (asked != RG_UNDEFINED)
		return asked > 0 && asked < RG_DTYPE_COUNT ? (enum rg_dtype)asked : RG_UNDEFINED;
	if (rg_in_set(scale, SET_REAL))
		return scale;
	/* a scale that is a power of two, or an integer, has no arithmetic of its own */
	return rg_in_set(x, SET_REAL) ? x : scale == RG_I32 ? RG_F64 : RG_F32;
}

static int check_layout(struct rg_infer *c, struct rg_error *err)
{
	struct rg_quant q;
	const char *bad = rg_quant_layout(c->node, &c->in[0]->shape, &c->in[1]->shape, &q);
	const struct rg_value *zero = rg_infer_in(c, 2);

	if (bad)
		return rg_infer_fail(c, err, "%s", bad);
	if (zero && !rg_shape_equal(&zero->shape, &c->in[1]->shape) &&
	    (rg_shape_count(&zero->shape) != 1 || rg_shape_count(&c->in[1]->shape) != 1))
		return rg_infer_fail(c, err, "scale and zero point differ in shape");
	return 0;
}

/* Attribute output_dtype: one of `set`, or RG_UNDEFINED where there is none. */
static int output_type(struct rg_infer *c, uint32_t set, enum rg_dtype *out, struct rg_error *err)
{
	int64_t t = rg_node_int(c->node, "output_dtype", RG_UNDEFINED);

	if (t != RG_UNDEFINED && (t < 0 || t >= RG_DTYPE_COUNT || !rg_in_set((enum rg_dtype)t, set)))
		return rg_infer_fail(c, err, "output_dtype cannot be %s", t < 0 || t >= RG_DTYPE_COUNT ?
				     "that number" : rg_dtype_name((enum rg_dtype)t));
	*out = (enum rg_dtype)t;
	return 0;
}

static int infer_quantize(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *zero = rg_infer_in(c, 2);
	enum rg_dtype t;
	int rc = rg_infer_type(c, 0, SET_REAL | RG_BIT(RG_I32), err);

	if (!rc)
		rc = rg_infer_type(c, 1, SET_SCALE | RG_BIT(RG_I32), err);
	if (!rc && zero)
		rc = rg_infer_type(c, 2, SET_QUANT, err);
	if (!rc)
		rc = output_type(c, SET_QUANT, &t, err);
	if (rc)
		return rc;
	if (zero && t != RG_UNDEFINED && t != zero->dtype)
		return rg_infer_fail(c, err, "output_dtype is not the zero point's type %s",
				     rg_dtype_name(zero->dtype));
	if (!rg_in_set(rg_quant_precision(c->node, c->in[0]->dtype, c->in[1]->dtype), RG_SET_FLOAT))
		return rg_infer_fail(c, err, "attribute precision is not float32, float64, float16 or bfloat16");
	if (zero)
		t = zero->dtype;
	if (t == RG_UNDEFINED)
		t = RG_U8;
	rc = check_layout(c, err);
	if (!rc)
		rg_infer_out(c, 0, t, &c->in[0]->shape);
	return rc;
}

static int infer_dequantize(struct rg_infer *c, struct rg_error *err)
{
	enum rg_dtype t;
	int rc = rg_infer_type(c, 0, SET_QUANT | RG_BIT(RG_I32), err);

	if (!rc)
		rc = rg_infer_type(c, 1, SET_SCALE, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (!rc)
		rc = output_type(c, SET_REAL, &t, err);
	if (!rc)
		rc = check_layout(c, err);
	if (rc)
		return rc;
	if (t == RG_UNDEFINED)
		t = c->in[1]->dtype;
	if (!rg_in_set(t, SET_REAL))
		return rg_infer_fail(c, err, "output_dtype is missing: the scale's type %s cannot be the output's",
				     rg_dtype_name(t));
	rg_infer_out(c, 0, t, &c->in[0]->shape);
	return 0;
}

static int infer_dynamic(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape scalar = { 0 };
	int rc = rg_infer_type(c, 0, RG_BIT(RG_F32), err);

	if (rc)
		return rc;
	rg_infer_out(c, 0, RG_U8, &c->in[0]->shape);
	rg_infer_out(c, 1, RG_F32, &scalar);
	rg_infer_out(c, 2, RG_U8, &scalar);
	return 0;
}

static void set_cost(const struct rg_cost_in *c, struct rg_cost *out, int flops, int sfu)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	out->flops = rg_cost_mul(n, flops);
	out->sfu = rg_cost_mul(n, sfu);
	out->iops = 0;
}

static void cost_quantize(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 4, 1);
}

static void cost_dequantize(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 2, 0);
}

static void cost_dynamic(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 6, 1);
}

const struct rg_op rg_ops_quant[] = {
	{ "", "DequantizeLinear", RG_KIND_QUANT, 0, 2, 3, 1, 1, { 10, 13, 19, 21, 23, 24, 25, 28 }, 10, 28,
	  infer_dequantize, cost_dequantize },
	{ "", "DynamicQuantizeLinear", RG_KIND_QUANT, 0, 1, 1, 3, 3, { 11 }, 11, 11, infer_dynamic, cost_dynamic },
	{ "", "QuantizeLinear", RG_KIND_QUANT, 0, 2, 3, 1, 1, { 10, 13, 19, 21, 23, 24, 25, 28 }, 10, 28,
	  infer_quantize, cost_quantize },
};
RG_OP_FAMILY_END(quant);
