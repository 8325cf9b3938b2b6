/*
 * ONNX Runtime's operators on weights of a few bits: types, shapes, costs.
 *
 * Costs: the product counts as one of floats, 2 m n k; unpacking a weight is two
 * flops (subtract the zero point, multiply by the scale), a table look-up of
 * MatMulBnb4 one. Compulsory bytes are those of the packed weights.
 */
#include "graph/contrib.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

#define SET_T (RG_BIT(RG_F32) | RG_BIT(RG_F16) | RG_BIT(RG_BF16))

static int unsupported(struct rg_infer *c, const char *what, struct rg_error *err)
{
	return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s", c->node->op_type, what);
}

/* Input i is absent, or has one of two shapes. */
static int check_shape(struct rg_infer *c, int i, const struct rg_shape *s, const struct rg_shape *other,
		       struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);

	return v && rg_shape_equal(&v->shape, other) ? 0 : rg_infer_shape_is(c, i, s, err);
}

static struct rg_shape list_of(int64_t n)
{
	return rg_shape_of(1, &n);
}

/* The output of a product with k x n weights: the input with another last dimension. */
static int set_product(struct rg_infer *c, int64_t k, int64_t n, struct rg_error *err)
{
	struct rg_shape out = c->in[0]->shape;
	char text[160];

	if (out.rank < 1 || out.dim[out.rank - 1] != k)
		return rg_infer_fail(c, err, "the last dimension of %s is not %lld, as the attributes say",
				     rg_shape_text(text, &out), (long long)k);
	out.dim[out.rank - 1] = n;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static int64_t product_flops(const struct rg_shape *a, int64_t k, int64_t n)
{
	return rg_cost_mul(rg_cost_mul(2, rg_shape_count_range(a, 0, a->rank - 1)), rg_cost_mul(k, n));
}

/* ---- MatMulNBits ---- */

static int check_zero_points(struct rg_infer *c, const struct rg_nbits *l, struct rg_error *err)
{
	const struct rg_value *zero = rg_infer_in(c, 3);
	struct rg_shape flat, rows;
	int64_t per_row;
	int rc;

	if (!zero)
		return 0;
	rc = zero->dtype == RG_U8 ? 0 : rg_infer_like(c, 3, 0, err);
	per_row = zero->dtype == RG_U8 ? l->zero_row_bytes : l->blocks;
	rows = rg_shape_of(2, (const int64_t[]){ l->n, per_row });
	flat = list_of(l->n * per_row);
	return rc ? rc : check_shape(c, 3, &rows, &flat, err);
}

static int infer_nbits(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape b, scales, flat, padded;
	struct rg_nbits l;
	const char *bad = rg_nbits_layout(c->node, &l);
	int64_t weights, unused;
	int rc;

	if (bad)
		return unsupported(c, bad, err);
	if (__builtin_mul_overflow(l.n, l.blocks, &unused) || __builtin_mul_overflow(unused, l.block, &weights))
		return rg_infer_fail(c, err, "there are too many weights");
	b = rg_shape_of(3, (const int64_t[]){ l.n, l.blocks, l.blob_bytes });
	scales = rg_shape_of(2, b.dim);
	flat = list_of(l.n * l.blocks);
	rc = rg_infer_type(c, 0, SET_T, err);
	if (!rc)
		rc = rg_infer_type(c, 1, RG_BIT(RG_U8), err);
	if (!rc && rg_shape_count(&c->in[1]->shape) == 0)
		return unsupported(c, "weights that are left out are not supported", err);
	if (!rc)
		rc = rg_infer_shape_is(c, 1, &b, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (!rc)
		rc = check_shape(c, 2, &scales, &flat, err);
	if (!rc)
		rc = check_zero_points(c, &l, err);
	if (!rc && rg_infer_in(c, 4)) {
		rc = rg_infer_type(c, 4, RG_BIT(RG_I32), err);
		flat = list_of(l.k);
		padded = list_of(l.blocks * l.block);
		if (!rc)
			rc = check_shape(c, 4, &flat, &padded, err);
	}
	flat = list_of(l.n);
	if (!rc)
		rc = rg_infer_like(c, 5, 0, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 5, &flat, err);
	return rc ? rc : set_product(c, l.k, l.n, err);
}

static void cost_nbits(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_nbits l;

	if (rg_nbits_layout(c->node, &l))
		return;
	out->flops = rg_cost_add(product_flops(&c->in[0].shape, l.k, l.n), rg_cost_mul(2, rg_cost_mul(l.k, l.n)));
	if (c->node->n_in > 5 && c->in[5].dtype != RG_UNDEFINED)
		out->flops = rg_cost_add(out->flops, rg_shape_count(&c->out[0].shape));
	out->iops = out->sfu = 0;
}

/* ---- MatMulBnb4 ---- */

static int infer_bnb4(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape b, absmax;
	struct rg_bnb4 l;
	const char *bad = rg_bnb4_layout(c->node, &l);
	int64_t count;
	int rc;

	if (bad)
		return unsupported(c, bad, err);
	if (__builtin_mul_overflow(l.n, l.k, &count))
		return rg_infer_fail(c, err, "there are too many weights");
	b = list_of(count / 2 + count % 2);
	absmax = list_of(count / l.block + (count % l.block != 0));
	rc = rg_infer_type(c, 0, SET_T, err);
	if (!rc)
		rc = rg_infer_type(c, 1, RG_BIT(RG_U8), err);
	if (!rc)
		rc = rg_infer_shape_is(c, 1, &b, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 2, &absmax, err);
	return rc ? rc : set_product(c, l.transposed ? l.k : l.n, l.transposed ? l.n : l.k, err);
}

static void cost_bnb4(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_bnb4 l;

	if (rg_bnb4_layout(c->node, &l))
		return;
	out->flops = rg_cost_add(product_flops(&c->in[0].shape, l.k, l.n), rg_cost_mul(l.k, l.n));
	out->iops = out->sfu = 0;
}

/* ---- GatherBlockQuantized ---- */

static int infer_gather(struct rg_infer *c, struct rg_error *err)
{
	struct rg_gather_blocks g;
	const char *bad;
	int rc = rg_infer_type(c, 1, RG_BIT(RG_I32) | RG_BIT(RG_I64), err);

	if (!rc && !rg_in_set(c->in[0]->dtype, RG_BIT(RG_U8) | RG_BIT(RG_U4) | RG_BIT(RG_I4)))
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s of type %s is not supported", c->node->op_type,
				    rg_dtype_name(c->in[0]->dtype));
	if (!rc)
		rc = rg_infer_type(c, 2, SET_T, err);
	if (!rc)
		rc = rg_infer_like(c, 3, 0, err);
	if (rc)
		return rc;
	bad = rg_gather_blocks_layout(c->node, c->in[0]->dtype, &c->in[0]->shape, &c->in[1]->shape, &g);
	if (bad)
		return rg_infer_fail(c, err, "%s", bad);
	rc = rg_infer_shape_is(c, 2, &g.scales, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 3, &g.zeros, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[2]->dtype, &g.out);
	return rc;
}

static void cost_gather(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->out[0].shape), rows = rg_shape_count(&c->in[1].shape), bytes, most;
	struct rg_gather_blocks g;

	if (rg_gather_blocks_layout(c->node, c->in[0].dtype, &c->in[0].shape, &c->in[1].shape, &g))
		return;
	out->flops = rg_cost_mul(2, n);
	out->iops = out->sfu = 0;
	/* the rows that are touched, at most all of them: their share of data, scales and zero points */
	bytes = rg_tensor_bytes(c->in[1].dtype, &c->in[1].shape);
	most = out->read_bytes >= bytes ? out->read_bytes - bytes : -1;
	if (most >= 0 && g.dim > 0 && rows < g.dim)
		out->read_bytes = rg_cost_add(bytes, (int64_t)((double)most * (double)rows / (double)g.dim));
}

#define OP(NAME, KIND, MIN, MAX, INFER, COST) \
	{ RG_CONTRIB_DOMAIN, NAME, KIND, 0, MIN, MAX, 1, 1, { 1 }, 1, 1, INFER, COST }

const struct rg_op rg_ops_contrib_weights[] = {
	OP("GatherBlockQuantized", RG_KIND_MOVE, 3, 4, infer_gather, cost_gather),
	OP("MatMulBnb4", RG_KIND_GEMM, 3, 3, infer_bnb4, cost_bnb4),
	OP("MatMulNBits", RG_KIND_GEMM, 3, 6, infer_nbits, cost_nbits),
};
RG_OP_FAMILY_END(contrib_weights);
