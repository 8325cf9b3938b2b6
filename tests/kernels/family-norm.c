/* Calls of normalising operators. See check.h. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/contrib.h"
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
	bool log = !strcmp(t->node.op_type, "LogSoftmax");
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

				/* the logarithm makes the sum's relative error absolute */
				if (log)
					out[at] = (12 + far + (double)r.n) * UNIT + 4 * UNIT * fabs((double)want[at]);
				else
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

/* A row that is normalised. */
struct row {
	int64_t n, plane;        /* elements; those that share one scale and bias, 0: each its own */
	const float *x, *scale, *bias;
	double eps, before;      /* error of x, in units of its size */
	bool rms;                /* no mean is taken away */
};

/*
 * y = (x - m) r s + b with r = 1 / sqrt(v + eps), and d = mean|x|, the size of what
 * is summed: the mean is off by n u d at most; x - m by that and a rounding; v by
 * about 2 n u v + 2 n u d sqrt(v) + (n u d)^2, r by half of that relative to v + eps.
 */
static void row_bound(const struct row *w, double *out)
{
	double n = (double)w->n, mean = 0, size = 0, var = 0, nu = (n + 4) * UNIT, a, off, rel;

	for (int64_t i = 0; i < w->n; i++) {
		mean += w->rms ? 0 : (double)w->x[i] / n;
		size += fabs((double)w->x[i]) / n;
	}
	for (int64_t i = 0; i < w->n; i++)
		var += ((double)w->x[i] - mean) * ((double)w->x[i] - mean) / n;
	a = 1 / sqrt(var + w->eps);
	off = (w->rms ? 0 : nu * size) + w->before;
	rel = (nu * var + off * sqrt(var) + off * off) * a * a + 4 * UNIT;
	for (int64_t i = 0; i < w->n; i++) {
		int64_t at = w->plane ? i / w->plane : i;
		double s = fabs((double)w->scale[at]), d = fabs((double)w->x[i] - mean), b = w->bias ? (double)w->bias[at] : 0;

		out[i] = (off + (UNIT + rel) * d) * a * s + 2 * UNIT * (fabs(b) + d * a * s) + 0x1p-126;
	}
}

static void layer_norm_bound(const struct nn_case *t, const float *want, double *out)
{
	struct row w = { .eps = (double)rg_node_float(&t->node, "epsilon", 1e-5f), .scale = t->in[1].data,
			 .bias = t->node.n_in > 2 ? t->in[2].data : NULL };
	struct rg_rows r;
	int axis;

	if (!rg_layernorm_rows(&t->node, &t->in[0].shape, &r, &axis))
		return;
	w.n = r.n;
	for (int64_t o = 0; o < r.outer; o++) {
		w.x = (const float *)t->in[0].data + o * r.n;
		row_bound(&w, out + o * r.n);
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

/* ---- GroupNormalization, InstanceNormalization: one row a group of planes ---- */

static void planes(struct nn_case *t, struct ck_gen *g)
{
	bool groups = !strcmp(t->node.op_type, "GroupNormalization");
	int64_t count = groups ? ck_between(g, 1, 4) : 1;
	int64_t dim[4] = { ck_between(g, 1, 2), count * ck_some(g, 9), ck_some(g, 30), ck_some(g, 30) };
	int rank = (int)ck_between(g, 3, 4);

	if (groups)
		nn_int(t, "num_groups", count);
	if (ck_chance(g, 50))
		nn_float(t, "epsilon", 1e-3f);
	nn_input(t, fill(g), rank, dim);
	nn_input(t, NN_UNIFORM, 1, dim + 1);
	nn_input(t, NN_UNIFORM, 1, dim + 1);
	t->weights = 6;
}

static void planes_bound(const struct nn_case *t, const float *want, double *out)
{
	const struct rg_shape *s = &t->in[0].shape;
	int64_t plane = rg_shape_count_range(s, 2, s->rank), groups = rg_node_int(&t->node, "num_groups", s->dim[1]);
	int64_t n = groups ? s->dim[1] / groups * plane : 0;
	struct row r = { .n = n, .eps = (double)rg_node_float(&t->node, "epsilon", 1e-5f), .plane = plane };

	for (int64_t i = 0; n && i < rg_shape_count(s) / n; i++) {
		r.x = (const float *)t->in[0].data + i * n;
		r.scale = (const float *)t->in[1].data + i % groups * (n / plane);
		r.bias = (const float *)t->in[2].data + i % groups * (n / plane);
		row_bound(&r, out + i * n);
	}
}

/* ---- without the mean ---- */

static void rms_norm(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4];
	int rank = shape(g, 1, dim), axis = ck_chance(g, 60) ? rank - 1 : (int)ck_between(g, 0, rank - 1);

	for (int d = 0; d < rank; d++)
		dim[d] += dim[d] == 0;
	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	if (ck_chance(g, 50))
		nn_float(t, "epsilon", 1e-3f);
	nn_input(t, fill(g), rank, dim);
	nn_input(t, NN_UNIFORM, rank - axis, dim + axis);
	t->weights = 2;
}

/* All terms have one sign: half of n units from the sum of squares, and a few. */
static void rms_bound(const struct nn_case *t, const float *want, double *out)
{
	double n = (double)rg_shape_count(&t->in[1].shape);

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = (n / 2 + 8) * UNIT * fabs((double)want[i]) + 0x1p-126;
}

/* ---- with a sum in front: x + skip + bias ---- */

static void skip_norm(struct nn_case *t, struct ck_gen *g)
{
	bool simple = !strcmp(t->node.op_type, "SkipSimplifiedLayerNormalization");
	int64_t dim[3] = { ck_between(g, 1, 3), ck_some(g, 9), ck_some(g, 900) };

	nn_float(t, "epsilon", 1e-5f);
	nn_input(t, NN_UNIFORM, 3, dim);
	nn_input(t, NN_UNIFORM, 3, dim);
	nn_input(t, NN_UNIFORM, 1, dim + 2);
	if (!simple && ck_chance(g, 80))
		nn_input(t, NN_UNIFORM, 1, dim + 2); /* beta */
	else if (!simple)
		nn_absent(t);
	if (ck_chance(g, 50))
		nn_input(t, NN_UNIFORM, 1, dim + 2);
	t->weights = 0x1c;
}

/* The sum of inputs below 1 is off by 6 units at most; that goes through like an error
 * of the mean, which the row's bound has with n units of the row's size. */
static void skip_norm_bound(const struct nn_case *t, const float *want, double *out)
{
	bool simple = !strcmp(t->node.op_type, "SkipSimplifiedLayerNormalization");
	const float *x = t->in[0].data, *skip = t->in[1].data, *scale = t->in[2].data;
	int last = simple ? 3 : 4;
	const float *beta = !simple && t->node.n_in > 3 ? t->in[3].data : NULL;
	const float *bias = t->node.n_in > last ? t->in[last].data : NULL;
	int64_t n = t->in[0].shape.dim[2], rows = rg_shape_count(&t->in[0].shape) / n;
	float *sum = malloc((size_t)n * sizeof(*sum));

	for (int64_t o = 0; o < rows && sum; o++) {
		struct row r = { .n = n, .eps = 1e-5, .x = sum, .scale = scale, .bias = beta, .rms = simple, .before = 6 * UNIT };

		for (int64_t i = 0; i < n; i++)
			sum[i] = x[o * n + i] + skip[o * n + i] + (bias ? bias[i] : 0);
		row_bound(&r, out + o * n);
	}
	free(sum);
}

/* ---- LRN, LpNormalization ---- */

static void lrn(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4] = { ck_between(g, 1, 2), ck_some(g, 20), ck_some(g, 12), ck_some(g, 20) };

	nn_int(t, "size", ck_between(g, 1, 7));
	if (ck_chance(g, 50))
		nn_float(t, "alpha", 0.25f);
	if (ck_chance(g, 50))
		nn_float(t, "bias", 2);
	nn_input(t, NN_UNIFORM, 4, dim);
}

static void lrn_bound(const struct nn_case *t, const float *want, double *out)
{
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = ((double)rg_node_int(&t->node, "size", 1) + 16) * UNIT * fabs((double)want[i]) + 0x1p-126;
}

static void lp_norm(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4];
	int rank = shape(g, 1, dim);

	nn_int(t, "axis", ck_chance(g, 60) ? rank - 1 : ck_between(g, -rank, rank - 1));
	nn_int(t, "p", ck_between(g, 1, 2));
	nn_input(t, NN_UNIFORM, rank, dim);
}

static void lp_norm_bound(const struct nn_case *t, const float *want, double *out)
{
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = (900 + 8) * UNIT * fabs((double)want[i]) + 0x1p-126;
}

static const struct ck_family families[] = {
	{ .op_type = "BatchNormalization", .make = batch_norm, .measure = CK_OWN, .tolerance = batch_norm_bound },
	{ .op_type = "GroupNormalization", .make = planes, .measure = CK_OWN, .tolerance = planes_bound },
	{ .op_type = "InstanceNormalization", .make = planes, .measure = CK_OWN, .tolerance = planes_bound },
	{ .op_type = "LRN", .make = lrn, .measure = CK_OWN, .tolerance = lrn_bound },
	{ .op_type = "LayerNormalization", .make = layer_norm, .measure = CK_OWN, .tolerance = layer_norm_bound,
	  .bench = bench_layer_norm },
	{ .op_type = "LogSoftmax", .make = softmax, .measure = CK_OWN, .tolerance = softmax_bound, .bench = bench_softmax },
	{ .op_type = "LpNormalization", .make = lp_norm, .measure = CK_OWN, .tolerance = lp_norm_bound },
	{ .op_type = "RMSNormalization", .make = rms_norm, .measure = CK_OWN, .tolerance = rms_bound },
	{ .op_type = "SimplifiedLayerNormalization", .make = rms_norm, .measure = CK_OWN, .tolerance = rms_bound },
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = "SkipLayerNormalization", .make = skip_norm, .measure = CK_OWN,
	  .tolerance = skip_norm_bound },
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = "SkipSimplifiedLayerNormalization", .make = skip_norm, .measure = CK_OWN,
	  .tolerance = skip_norm_bound },
	{ .op_type = "Softmax", .make = softmax, .measure = CK_OWN, .tolerance = softmax_bound, .bench = bench_softmax },
};
CK_FAMILY_TABLE(ck_families_norm, families);
