/*
 * BatchNormalization (inference), LayerNormalization, Softmax over a
 * contiguous axis and ReduceMean over trailing axes, float32.
 *
 * Sums run side by side in vectors and are joined in double: as exact as one
 * sum in float over a vector's share of the row.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/op-norm.h"
#include "graph/op-reduce.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

enum { SUMS = 2 * RG_VEC };

struct job {
	int64_t n, channels;     /* elements a row; BatchNormalization: rows an image */
	float eps;
	const float *x, *scale, *bias, *mean, *var;
	float *y;
};

static double sum_row(const float *x, int64_t n)
{
	float sum[SUMS] = { 0 };
	double total = 0;
	int64_t i = 0;

	for (; i + SUMS <= n; i += SUMS)
		for (int k = 0; k < SUMS; k++)
			sum[k] += x[i + k];
	for (int k = 0; i + k < n; k++)
		sum[k] += x[i + k];
	for (int k = 0; k < SUMS; k++)
		total += (double)sum[k];
	return total;
}

static double sum_squares(const float *x, float mean, int64_t n)
{
	float sum[SUMS] = { 0 };
	double total = 0;
	int64_t i = 0;

	for (; i + SUMS <= n; i += SUMS) {
		for (int k = 0; k < SUMS; k++) {
			float d = x[i + k] - mean;

			sum[k] += d * d;
		}
	}
	for (int k = 0; i + k < n; k++) {
		float d = x[i + k] - mean;

		sum[k] += d * d;
	}
	for (int k = 0; k < SUMS; k++)
		total += (double)sum[k];
	return total;
}

/* ---- BatchNormalization: one plane an item ---- */

static void work_batch(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		int64_t c = p % j->channels;
		float a = j->scale[c] / sqrtf(j->var[c] + j->eps), mean = j->mean[c], b = j->bias[c];
		const float *restrict x = j->x + p * j->n;
		float *restrict y = j->y + p * j->n;

		for (int64_t i = 0; i < j->n; i++)
			y[i] = (x[i] - mean) * a + b;
	}
}

static int run_batch(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	struct job j = {
		.n = rg_shape_count_range(s, 2, s->rank),
		.channels = s->dim[1],
		.eps = rg_node_float(c->node, "epsilon", 1e-5f),
		.x = c->in[0].data,
		.scale = c->in[1].data,
		.bias = c->in[2].data,
		.mean = c->in[3].data,
		.var = c->in[4].data,
		.y = c->out[0].data,
	};

	par->run(par, s->dim[0] * s->dim[1], rg_grain(j.n + 20), work_batch, &j);
	return 0;
}

static bool all_f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	for (int i = 1; i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED)
			return false;
	return true;
}

static bool supports_batch(const struct rg_call *c)
{
	return all_f32(c) && c->in[0].shape.rank >= 2 &&
	       (c->node->version >= 9 || rg_node_int(c->node, "spatial", 1)) &&
	       !rg_node_int(c->node, "training_mode", 0);
}

/* ---- LayerNormalization: one row an item ---- */

static void work_layer(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * j->n, *restrict scale = j->scale, *restrict bias = j->bias;
		float *restrict y = j->y + r * j->n;
		float mean = (float)(sum_row(x, j->n) / (double)j->n);
		float a = (float)(1 / sqrt(sum_squares(x, mean, j->n) / (double)j->n + (double)j->eps));

		if (bias)
			for (int64_t i = 0; i < j->n; i++)
				y[i] = (x[i] - mean) * a * scale[i] + bias[i];
		else
			for (int64_t i = 0; i < j->n; i++)
				y[i] = (x[i] - mean) * a * scale[i];
	}
}

static int run_layer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_rows rows;
	struct job j = { 0 };
	int axis;

	if (!rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	j.n = rows.n;
	j.eps = rg_node_float(c->node, "epsilon", 1e-5f);
	j.x = c->in[0].data;
	j.scale = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	par->run(par, rows.outer, rg_grain(3 * j.n + 40), work_layer, &j);
	return 0;
}

/* A scale that is itself broadcast over the row is left to the reference. */
static bool supports_layer(const struct rg_call *c)
{
	struct rg_rows rows;
	int axis;

	if (!all_f32(c) || !rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis) || rows.inner != 1)
		return false;
	for (int i = 1; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_UNDEFINED && rg_shape_count(&c->in[i].shape) != rows.n)
			return false;
	return true;
}

/* ---- Softmax: one row an item ---- */

static void work_softmax(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * j->n;
		float *restrict y = j->y + r * j->n;
		float best[SUMS], max;
		int64_t i = 0;

		for (int k = 0; k < SUMS; k++)
			best[k] = -INFINITY;
		for (; i + SUMS <= j->n; i += SUMS)
			for (int k = 0; k < SUMS; k++)
				best[k] = x[i + k] > best[k] ? x[i + k] : best[k];
		max = -INFINITY;
		for (int k = 0; k < SUMS; k++)
			max = best[k] > max ? best[k] : max;
		for (; i < j->n; i++)
			max = x[i] > max ? x[i] : max;
		for (i = 0; i < j->n; i++)
			y[i] = rg_vexpf(x[i] - max);
		max = (float)(1 / sum_row(y, j->n));
		for (i = 0; i < j->n; i++)
			y[i] *= max;
	}
}

static int run_softmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_rows rows;
	struct job j = { .x = c->in[0].data, .y = c->out[0].data };

	if (!rg_softmax_rows(c->node, &c->in[0].shape, &rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	j.n = rows.n;
	par->run(par, rows.outer, rg_grain(8 * j.n + 40), work_softmax, &j);
	return 0;
}

static bool supports_softmax(const struct rg_call *c)
{
	struct rg_rows rows;

	return c->in[0].dtype == RG_F32 && rg_softmax_rows(c->node, &c->in[0].shape, &rows) && rows.inner == 1;
}

/* ---- ReduceMean over trailing axes: one result an item ---- */

static void work_mean(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t r = begin; r < end; r++)
		j->y[r] = (float)(sum_row(j->x + r * j->n, j->n) / (double)j->n);
}

static int run_mean(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t out = rg_shape_count(&c->out[0].shape);
	struct job j = { .x = c->in[0].data, .y = c->out[0].data };

	j.n = out ? rg_shape_count(&c->in[0].shape) / out : 0;
	par->run(par, out, rg_grain(j.n + 20), work_mean, &j);
	return 0;
}

/* Axes must be known and be the last ones, so that what is folded is contiguous. */
static bool supports_mean(const struct rg_call *c)
{
	int64_t axes[RG_MAX_RANK], n = 0;
	int rank = c->in[0].shape.rank, kept = 0;
	uint32_t mask;

	if (c->in[0].dtype != RG_F32 || rg_shape_count(&c->in[0].shape) <= 0)
		return false;
	if (rg_reduce_axes_are_input(c->node) && c->node->n_in > 1 && c->in[1].dtype != RG_UNDEFINED) {
		n = rg_shape_count(&c->in[1].shape);
		if (n > RG_MAX_RANK || c->in[1].dtype != RG_I64 || (n > 0 && !c->in[1].data))
			return false;
		for (int64_t i = 0; i < n; i++)
			axes[i] = ((const int64_t *)c->in[1].data)[i];
	}
	if (!rg_reduce_mask(c->node, rank, axes, (int)n, &mask))
		return false;
	while (kept < rank && !(mask >> kept & 1))
		kept++;
	for (int d = kept; d < rank; d++)
		if (!(mask >> d & 1))
			return false;
	return true;
}

#define K(OP, SUPPORTS, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("BatchNormalization", supports_batch, run_batch),
	K("LayerNormalization", supports_layer, run_layer),
	K("ReduceMean", supports_mean, run_mean),
	K("Softmax", supports_softmax, run_softmax),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(norm), kernels);
