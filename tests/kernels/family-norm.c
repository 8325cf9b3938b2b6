/* Calls of normalising and reducing operators. See check.h. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/op-norm.h"

#define UNIT 0x1p-24

static enum nn_fill fill(struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WIDE, NN_WHOLE, NN_TINY, NN_NAN, NN_INF };

	return CK_PICK(g, fills);
}

/* A few dimensions of which one is long; returns the rank. */
static int shape(struct ck_gen *g, int least, int64_t *dim)
{
	int rank = (int)ck_between(g, least, 4), at = (int)ck_between(g, 0, rank > 0 ? rank - 1 : 0);

	for (int d = 0; d < rank; d++)
		dim[d] = d == at ? ck_size(g, 900) : ck_size(g, 9);
	return rank;
}

/* ---- Softmax ---- */

static void softmax(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4];
	int rank = shape(g, 1, dim);

	if (ck_chance(g, 30))
		t->node.version = 11;
	if (ck_chance(g, 70))
		nn_int(t, "axis", ck_chance(g, 60) ? rank - 1 : ck_between(g, -rank, rank - 1));
	nn_input(t, fill(g), rank, dim);
}

/*
 * exp(x - max) has a relative error of |x - max| units (from rounding the
 * difference) and 4 of its own; the sum's is the largest of its terms' and n units,
 * all of one sign; a term with a large difference counts for nothing in it.
 */
static void softmax_bound(const struct nn_case *t, const float *want, double *out)
{
	const float *x = t->in[0].data;
	struct rg_rows r;

	if (!rg_softmax_rows(&t->node, &t->in[0].shape, &r))
		return;
	for (int64_t o = 0; o < r.outer; o++) {
		for (int64_t j = 0; j < r.inner; j++) {
			const float *row = x + o * r.n * r.inner + j;
			double max = -INFINITY;

			for (int64_t i = 0; i < r.n; i++)
				max = fmax(max, (double)row[i * r.inner]);
			for (int64_t i = 0; i < r.n; i++) {
				int64_t at = (o * r.n + i) * r.inner + j;
				double far = fmin(max - (double)row[i * r.inner], 104);

				out[at] = (12 + far + (double)r.n) * UNIT * fabs((double)want[at]) + 0x1p-126;
			}
		}
	}
}

static bool bench_softmax(struct nn_case *t, int i)
{
	static const int64_t dim[][2] = { { 1, 1000 }, { 1536, 128 }, { 128, 30522 } };

	if (i == 3)
		return false;
	nn_input(t, NN_UNIFORM, 2, dim[i]);
	return true;
}

/* ---- LayerNormalization ---- */

static void layer_norm(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4];
	int rank = shape(g, 1, dim), axis = ck_chance(g, 60) ? rank - 1 : (int)ck_between(g, 0, rank - 1);

	for (int d = 0; d < rank; d++)
		dim[d] += dim[d] == 0; /* the mean of nothing */
	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	if (ck_chance(g, 50))
		nn_float(t, "epsilon", 1e-3f);
	nn_input(t, fill(g), rank, dim);
	nn_input(t, NN_UNIFORM, rank - axis, dim + axis);
	if (ck_chance(g, 70))
		nn_input(t, NN_UNIFORM, rank - axis, dim + axis);
	t->weights = 6;
}

/*
 * y = (x - m) r s + b with r = 1 / sqrt(v + eps), and d = mean|x|, the size of what
 * is summed: the mean is off by n u d at most; x - m by that and a rounding; v by
 * about 2 n u v + 2 n u d sqrt(v) + (n u d)^2, r by half of that relative to v + eps.
 */
static void layer_norm_bound(const struct nn_case *t, const float *want, double *out)
{
	const float *x = t->in[0].data, *scale = t->in[1].data, *bias = t->node.n_in > 2 ? t->in[2].data : NULL;
	double eps = (double)rg_node_float(&t->node, "epsilon", 1e-5f);
	struct rg_rows r;
	int axis;

	if (!rg_layernorm_rows(&t->node, &t->in[0].shape, &r, &axis))
		return;
	for (int64_t o = 0; o < r.outer; o++) {
		const float *row = x + o * r.n;
		double n = (double)r.n, mean = 0, size = 0, var = 0, nu = (n + 4) * UNIT, a, off, rel;

		for (int64_t i = 0; i < r.n; i++) {
			mean += (double)row[i] / n;
			size += fabs((double)row[i]) / n;
		}
		for (int64_t i = 0; i < r.n; i++)
			var += ((double)row[i] - mean) * ((double)row[i] - mean) / n;
		a = 1 / sqrt(var + eps);
		off = nu * size;
		rel = (nu * var + off * sqrt(var) + off * off) * a * a + 4 * UNIT;
		for (int64_t i = 0; i < r.n; i++) {
			double s = fabs((double)scale[i]), d = fabs((double)row[i] - mean), b = bias ? (double)bias[i] : 0;

			out[o * r.n + i] = (off + (UNIT + rel) * d) * a * s + 2 * UNIT * (fabs(b) + d * a * s) + 0x1p-126;
		}
	}
}

static bool bench_layer_norm(struct nn_case *t, int i)
{
	static const int64_t dim[][2] = { { 128, 768 }, { 197, 1024 } };

	if (i == 2)
		return false;
	nn_input(t, NN_UNIFORM, 2, dim[i]);
	nn_input(t, NN_UNIFORM, 1, dim[i] + 1);
	nn_input(t, NN_UNIFORM, 1, dim[i] + 1);
	return true;
}

/* ---- BatchNormalization ---- */

static void batch_norm(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4];
	int rank = shape(g, 2, dim);

	if (ck_chance(g, 50))
		nn_float(t, "epsilon", 1e-3f);
	nn_input(t, fill(g), rank, dim);
	for (int k = 0; k < 3; k++)
		nn_input(t, NN_UNIFORM, 1, dim + 1);
	nn_input(t, NN_POSITIVE, 1, dim + 1);
	t->weights = 0x1e;
}

/* Whether written as (x - m) a + b or as x a + (b - m a). */
static void batch_norm_bound(const struct nn_case *t, const float *want, double *out)
{
	const struct rg_shape *s = &t->in[0].shape;
	const float *x = t->in[0].data, *scale = t->in[1].data, *bias = t->in[2].data, *mean = t->in[3].data,
		    *var = t->in[4].data;
	double eps = (double)rg_node_float(&t->node, "epsilon", 1e-5f);
	int64_t plane = rg_shape_count_range(s, 2, s->rank);

	for (int64_t i = 0; i < rg_shape_count(s); i++) {
		int64_t c = i / plane % s->dim[1];
		double a = fabs((double)scale[c]) / sqrt((double)var[c] + eps);

		out[i] = 8 * UNIT * ((fabs((double)x[i]) + fabs((double)mean[c])) * a + fabs((double)bias[c])) + 0x1p-126;
	}
}

/* ---- ReduceMean ---- */

static void reduce(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4], axes[4];
	int rank = shape(g, 1, dim), n = 0, from = (int)ck_between(g, 0, rank - 1);

	for (int d = 0; d < rank; d++) {
		dim[d] += dim[d] == 0;
		/* trailing ones mostly */
		if (ck_chance(g, d >= from ? 90 : 10))
			axes[n++] = ck_chance(g, 50) ? d : d - rank;
	}
	if (ck_chance(g, 50))
		nn_int(t, "keepdims", ck_between(g, 0, 1));
	if (ck_chance(g, 50)) {
		t->node.version = 13;
		if (n)
			nn_ints(t, "axes", n, axes);
		nn_input(t, ck_fill(g), rank, dim);
		return;
	}
	nn_input(t, ck_fill(g), rank, dim);
	if (n)
		nn_input_ints(t, n, axes);
}

static double reduced(const struct nn_case *t)
{
	int64_t out = rg_shape_count(&t->out[0].shape);

	return out ? (double)(rg_shape_count(&t->in[0].shape) / out) : 0;
}

static bool bench_reduce(struct nn_case *t, int i)
{
	static const int64_t dim[][4] = { { 1, 2048, 7, 7 }, { 1, 64, 112, 112 } };

	if (i == 2)
		return false;
	t->node.version = 13;
	nn_ints(t, "axes", 2, (const int64_t[]){ 2, 3 });
	nn_input(t, NN_UNIFORM, 4, dim[i]);
	return true;
}

static const struct ck_family families[] = {
	{ .op_type = "BatchNormalization", .make = batch_norm, .measure = CK_OWN, .tolerance = batch_norm_bound },
	{ .op_type = "LayerNormalization", .make = layer_norm, .measure = CK_OWN, .tolerance = layer_norm_bound,
	  .bench = bench_layer_norm },
	{ .op_type = "ReduceMean", .make = reduce, .measure = CK_SUM, .terms = reduced, .ulps = 2, .mean = true,
	  .bench = bench_reduce },
	{ .op_type = "Softmax", .make = softmax, .measure = CK_OWN, .tolerance = softmax_bound, .bench = bench_softmax },
};
CK_FAMILY_TABLE(ck_families_norm, families);
