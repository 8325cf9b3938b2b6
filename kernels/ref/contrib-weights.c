/*
 * ONNX Runtime's operators on weights of a few bits: a row of weights is
 * unpacked to doubles and then used as any weights are. Sums are in double,
 * whatever accuracy_level allows.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/contrib.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static bool present(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED;
}

/* Code i of a row of bytes that holds codes of 2, 4 or 8 bits, low bits first. */
static int code_at(const uint8_t *row, int64_t i, int64_t bits)
{
	return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

/* Sum of n products of an operand's elements with doubles. */
static double dot(const struct rg_tensor *a, int64_t at, const double *w, int64_t n)
{
	double x[RG_REF_CHUNK], sum = 0;

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;

		rg_ref_load(a, at + i, 1, m, x);
		for (int64_t j = 0; j < m; j++)
			sum += x[j] * w[i + j];
	}
	return sum;
}

/* ---- MatMulNBits ---- */

static double nbits_zero(const struct rg_call *c, const struct rg_nbits *l, int64_t row, int64_t block)
{
	const struct rg_tensor *zero = &c->in[3];

	if (!present(c, 3))
		return 1 << (l->bits - 1);
	if (zero->dtype == RG_U8)
		return code_at((const uint8_t *)zero->data + row * l->zero_row_bytes, block, l->bits);
	return rg_ref_get(zero, row * l->blocks + block);
}

static int unpack_row(const struct rg_call *c, const struct rg_nbits *l, int64_t row, double *w,
		      struct rg_error *err)
{
	const uint8_t *codes = (const uint8_t *)c->in[1].data + row * l->blocks * l->blob_bytes;
	const int32_t *group = present(c, 4) ? c->in[4].data : NULL;
	double scale = 0, zero = 0;
	int64_t last = -1;

	for (int64_t k = 0; k < l->k; k++) {
		int64_t block = group ? group[k] : k / l->block;

		if (block < 0 || block >= l->blocks)
			return rg_error_set(err, -ERANGE, "g_idx[%" PRId64 "] is %" PRId64 ", there are %" PRId64
					    " groups", k, block, l->blocks);
		if (block != last) {
			scale = rg_ref_get(&c->in[2], row * l->blocks + block);
			zero = nbits_zero(c, l, row, block);
			last = block;
		}
		/* the blob of a block is whole bytes, so codes follow each other without gaps */
		w[k] = (float)((code_at(codes, k, l->bits) - zero) * scale);
	}
	return 0;
}

static size_t nbits_scratch(const struct rg_call *c, int lanes)
{
	struct rg_nbits l;

	return rg_nbits_layout(c->node, &l) ? 0 : (size_t)l.k * sizeof(double);
}

static int run_nbits(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t rows = rg_shape_count_range(s, 0, s->rank - 1);
	struct rg_nbits l;
	double *w = c->scratch;
	const char *bad = rg_nbits_layout(c->node, &l);

	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	for (int64_t n = 0; n < l.n; n++) {
		double bias = present(c, 5) ? rg_ref_get(&c->in[5], n) : 0;
		int rc = unpack_row(c, &l, n, w, err);

		if (rc)
			return rc;
		for (int64_t m = 0; m < rows; m++)
			rg_ref_set(&c->out[0], m * l.n + n, dot(&c->in[0], m * l.k, w, l.k) + bias);
	}
	return 0;
}

/* ---- MatMulBnb4 ---- */

/* What a code stands for, times 12 for FP4: sign, two bits of exponent and one
 * of mantissa, and 1/16 for the only denormal (bitsandbytes, arXiv 2305.14314). */
static const double fp4_times_12[8] = { 0, 0.0625, 8, 12, 4, 6, 2, 3 };
/* NF4: quantiles of the normal distribution (the same paper, appendix E). */
static const float nf4[16] = {
	-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
	-0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
	0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
	0.7229568362236023f, 1.0f,
};

static double bnb4_weight(const struct rg_call *c, const struct rg_bnb4 *l, int64_t i)
{
	int code = ((const uint8_t *)c->in[1].data)[i / 2] >> (i % 2 ? 0 : 4) & 15; /* the high half comes first */
	double v = (double)(float)(fp4_times_12[code & 7] / 12 * (code & 8 ? -1 : 1));

	if (l->nf4)
		v = (double)nf4[code];
	return v * rg_ref_get(&c->in[2], i / l->block);
}

static size_t bnb4_scratch(const struct rg_call *c, int lanes)
{
	struct rg_bnb4 l;

	if (rg_bnb4_layout(c->node, &l))
		return 0;
	return (size_t)(l.transposed ? l.k : l.n) * sizeof(double);
}

static int run_bnb4(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t rows = rg_shape_count_range(s, 0, s->rank - 1), depth, wide;
	struct rg_bnb4 l;
	double *w = c->scratch;
	const char *bad = rg_bnb4_layout(c->node, &l);

	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	depth = l.transposed ? l.k : l.n;
	wide = l.transposed ? l.n : l.k;
	for (int64_t j = 0; j < wide; j++) {
		for (int64_t i = 0; i < depth; i++)
			w[i] = bnb4_weight(c, &l, l.transposed ? j * l.k + i : i * l.k + j);
		for (int64_t m = 0; m < rows; m++)
			rg_ref_set(&c->out[0], m * wide + j, dot(&c->in[0], m * depth, w, depth));
	}
	return 0;
}

/* ---- GatherBlockQuantized ---- */

/* Element i of packed codes: in rows of `row` elements that each begin with a
 * whole byte, or in one row for row 0. */
static int packed_at(const struct rg_gather_blocks *g, const uint8_t *p, int64_t i, int64_t row)
{
	int v = row ? code_at(p + i / row * ((row * g->bits + 7) / 8), i % row, g->bits) : code_at(p, i, g->bits);

	return g->is_signed && v >= 8 ? v - 16 : v;
}

static double gathered(const struct rg_call *c, const struct rg_gather_blocks *g, int64_t e)
{
	int64_t at = e / (g->q_dim * g->q_inner) * g->q_blocks * g->q_inner +
		     e / g->q_inner % g->q_dim / g->block * g->q_inner + e % g->q_inner;
	double zero = present(c, 3) ? packed_at(g, c->in[3].data, at, g->zero_row) : g->zero;

	return (packed_at(g, c->in[0].data, e, 0) - zero) * rg_ref_get(&c->in[2], at);
}

static int run_gather(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *indices = &c->in[1];
	int64_t n = rg_shape_count(&indices->shape), to = 0;
	struct rg_gather_blocks g;
	const char *bad = rg_gather_blocks_layout(c->node, c->in[0].dtype, &c->in[0].shape, &indices->shape, &g);

	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	for (int64_t o = 0; o < g.outer; o++)
		for (int64_t i = 0; i < n; i++) {
			int64_t v = indices->dtype == RG_I64 ? ((const int64_t *)indices->data)[i] :
							       ((const int32_t *)indices->data)[i];
			/* unlike Gather: an index outside gives zeros */
			bool outside = v < -g.dim || v >= g.dim;

			v += v < 0 ? g.dim : 0;
			for (int64_t j = 0; j < g.inner; j++)
				rg_ref_set(&c->out[0], to++,
					   outside ? 0 : gathered(c, &g, (o * g.dim + v) * g.inner + j));
		}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "GatherBlockQuantized", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = run_gather },
	{ .op_type = "MatMulBnb4", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .scratch_bytes = bnb4_scratch,
	  .run = run_bnb4 },
	{ .op_type = "MatMulNBits", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .scratch_bytes = nbits_scratch,
	  .run = run_nbits },
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_weights, kernels);
