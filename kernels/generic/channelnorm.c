/*
 * Normalisation of channels, float32, channels before space: BatchNormalization
 * (inference), InstanceNormalization, GroupNormalization, LRN. A plane, or a group
 * of them, is an item.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/op-norm.h"
#include "kernels/generic/sum.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

struct job {
	int64_t n, channels;     /* elements of a plane; planes of an image */
	int64_t each, groups;    /* planes of a group; groups of an image */
	bool per_channel;        /* scale and bias of channels, not of groups */
	double eps;
	float alpha, beta, k;    /* LRN */
	int64_t before, after;
	const float *x, *scale, *bias, *mean;
	const float *factor;     /* BatchNormalization: scale over the deviation */
	float *y;
};

static bool all_f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32)
			return false;
	for (int i = 1; i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED)
			return false;
	return c->in[0].shape.rank >= 2;
}

/* y = ((x - high) - low) a + b, the mean being high + low. */
static void scale_plane(const float *restrict x, float *restrict y, int64_t n, float high, float low, float a,
			float b)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = ((x[i] - high) - low) * a + b;
}

/* ---- BatchNormalization ---- */

static void work_batch(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		const float *restrict x = j->x + p * j->n;
		const float a = j->factor[p % j->channels], b = j->bias[p % j->channels], m = j->mean[p % j->channels];
		float *restrict y = j->y + p * j->n;

		for (int64_t i = 0; i < j->n; i++)
			y[i] = (x[i] - m) * a + b;
	}
}

/* Planes of one element: an image is a row of channels. */
static void work_batch_flat(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const float *restrict a = j->factor, *restrict b = j->bias, *restrict m = j->mean;

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * j->channels;
		float *restrict y = j->y + r * j->channels;

		for (int64_t i = 0; i < j->channels; i++)
			y[i] = (x[i] - m[i]) * a[i] + b[i];
	}
}

static int run_batch(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	const float *scale = c->in[1].data, *var = c->in[4].data;
	double eps = (double)rg_node_float(c->node, "epsilon", 1e-5f);
	float *factor = c->scratch;
	struct job j = {
		.n = rg_shape_count_range(s, 2, s->rank),
		.channels = s->dim[1],
		.x = c->in[0].data,
		.bias = c->in[2].data,
		.mean = c->in[3].data,
		.factor = factor,
		.y = c->out[0].data,
	};

	if (rg_shape_count(s) == 0)
		return 0;
	for (int64_t k = 0; k < j.channels; k++)
		factor[k] = (float)((double)scale[k] / sqrt((double)var[k] + eps));
	if (j.n == 1)
		par->run(par, s->dim[0], rg_grain(j.channels + 20), work_batch_flat, &j);
	else
		par->run(par, s->dim[0] * s->dim[1], rg_grain(j.n + 20), work_batch, &j);
	return 0;
}

static size_t scratch_batch(const struct rg_call *c, int lanes)
{
	return (size_t)c->in[0].shape.dim[1] * sizeof(float);
}

static bool supports_batch(const struct rg_call *c)
{
	return all_f32(c) && (c->node->version >= 9 || rg_node_int(c->node, "spatial", 1)) &&
	       !rg_node_int(c->node, "training_mode", 0);
}

/* ---- InstanceNormalization and GroupNormalization: one group an item ---- */

static void work_group(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t size = j->each * j->n;

	for (int64_t g = begin; g < end; g++) {
		const float *x = j->x + g * size;
		double low, variance, inv;
		float high = rg_moments(x, size, &low, &variance);

		inv = 1 / sqrt(variance + j->eps);
		for (int64_t k = 0; k < j->each; k++) {
			int64_t p = j->per_channel ? g % j->groups * j->each + k : g % j->groups;

			scale_plane(x + k * j->n, j->y + g * size + k * j->n, j->n, high, (float)low,
				    (float)((double)j->scale[p] * inv), j->bias[p]);
		}
	}
}

static int run_group(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool instance = !strcmp(c->node->op_type, "InstanceNormalization");
	const struct rg_shape *s = &c->in[0].shape;
	struct job j = {
		.n = rg_shape_count_range(s, 2, s->rank),
		.groups = instance ? s->dim[1] : rg_node_int(c->node, "num_groups", 1),
		.per_channel = !instance && c->node->version >= 21,
		.eps = (double)rg_node_float(c->node, "epsilon", 1e-5f),
		.x = c->in[0].data,
		.scale = c->in[1].data,
		.bias = c->in[2].data,
		.y = c->out[0].data,
	};

	if (rg_shape_count(s) == 0)
		return 0;
	j.each = s->dim[1] / j.groups;
	par->run(par, s->dim[0] * j.groups, rg_grain(3 * j.each * j.n + 60), work_group, &j);
	return 0;
}

static bool supports_group(const struct rg_call *c)
{
	return all_f32(c) && rg_node_int(c->node, "num_groups", 1) > 0;
}

/* ---- LRN: x / (k + alpha / size * squares of neighbours)^beta ---- */

enum { BLOCK = 512 };

/* A power of -3/4 is two square roots; others take pow. */
static void divide(const struct job *j, const float *restrict x, const float *restrict sum, float *restrict y, int64_t n)
{
	if (j->beta == 0.75f) {
		for (int64_t i = 0; i < n; i++) {
			float s = sqrtf(j->k + j->alpha * sum[i]);

			y[i] = x[i] / (s * sqrtf(s));
		}
	} else {
		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] / rg_vpowf(j->k + j->alpha * sum[i], j->beta);
	}
}

static void work_lrn(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float sum[BLOCK];

	for (int64_t p = begin; p < end; p++) {
		int64_t base = p / j->channels * j->channels, k = p - base;
		int64_t from = k > j->before ? k - j->before : 0;
		int64_t to = j->channels - 1 - k > j->after ? k + j->after : j->channels - 1;

		for (int64_t at = 0; at < j->n; at += BLOCK) {
			int64_t m = j->n - at < BLOCK ? j->n - at : BLOCK;

			for (int64_t i = 0; i < m; i++)
				sum[i] = 0;
			for (int64_t q = from; q <= to; q++) {
				const float *restrict x = j->x + (base + q) * j->n + at;

				for (int64_t i = 0; i < m; i++)
					sum[i] += x[i] * x[i];
			}
			divide(j, j->x + p * j->n + at, sum, j->y + p * j->n + at, m);
		}
	}
}

static int run_lrn(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t size = rg_node_int(c->node, "size", 1);
	struct job j = {
		.n = rg_shape_count_range(s, 2, s->rank),
		.channels = s->dim[1],
		.alpha = (float)((double)rg_node_float(c->node, "alpha", 1e-4f) / (double)size),
		.beta = rg_node_float(c->node, "beta", 0.75f),
		.k = rg_node_float(c->node, "bias", 1),
		.before = (size - 1) / 2,
		.after = size - 1 - (size - 1) / 2,
		.x = c->in[0].data,
		.y = c->out[0].data,
	};

	if (rg_shape_count(s) == 0)
		return 0;
	par->run(par, s->dim[0] * s->dim[1], rg_grain(j.n * (4 + size) + 40), work_lrn, &j);
	return 0;
}

/* Sums of a few thousand squares in float are well within its error. */
static bool supports_lrn(const struct rg_call *c)
{
	int64_t size = rg_node_int(c->node, "size", 1);

	return all_f32(c) && size >= 1 && size <= 4096;
}

static void traffic_batch(const struct rg_call *c, struct rg_traffic *out)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	*out = (struct rg_traffic){ 3 * n, 4 * n, 4 * n };
}

#define K(OP, SUPPORTS, SCRATCH, TRAFFIC, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .scratch_bytes = SCRATCH, .traffic = TRAFFIC, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("BatchNormalization", supports_batch, scratch_batch, traffic_batch, run_batch),
	K("GroupNormalization", supports_group, NULL, NULL, run_group),
	K("InstanceNormalization", supports_group, NULL, NULL, run_group),
	K("LRN", supports_lrn, NULL, NULL, run_lrn),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(channelnorm), kernels);
