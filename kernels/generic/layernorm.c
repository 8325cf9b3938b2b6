/*
 * LayerNormalization, RMSNormalization and ONNX Runtime's forms of them (skip
 * connections, simplified), float32, a row an item. Means are kept in two floats,
 * so a row far from 0 loses nothing that a double would keep (sum.h).
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/contrib.h"
#include "graph/op-norm.h"
#include "kernels/generic/sum.h"
#include "kernels/tables.h"

/* Scale or bias: of every row the same, or broadcast to the input in another way. */
struct factor {
	const float *data;   /* NULL: none */
	bool same;
	int64_t stride[RG_MAX_RANK];
};

struct job {
	const struct rg_shape *shape;
	int axis;
	int64_t n;
	bool simple;         /* root of the mean square, no mean */
	double eps;
	struct factor scale, bias;
	const float *x, *skip, *skip_bias;
	int64_t skips;       /* rows of skip, which is repeated */
	float *y, *sum, *mean, *inv;
	float *scratch;      /* 3 n floats a lane where something is laid out */
};

/* The elements of row r that a broadcast factor has. */
static const float *factor_row(const struct job *j, const struct factor *f, int64_t r, float *room)
{
	const struct rg_shape *s = j->shape;
	int64_t index[RG_MAX_RANK], at = 0;

	if (!f->data || f->same)
		return f->data;
	for (int d = j->axis - 1; d >= 0; d--) {
		at += r % s->dim[d] * f->stride[d];
		r /= s->dim[d];
	}
	for (int d = j->axis; d < s->rank; d++)
		index[d] = 0;
	for (int64_t i = 0; i < j->n; i++) {
		room[i] = f->data[at];
		for (int d = s->rank - 1; d >= j->axis; d--) {
			at += f->stride[d];
			if (++index[d] < s->dim[d])
				break;
			at -= f->stride[d] * s->dim[d];
			index[d] = 0;
		}
	}
	return room;
}

/* y = ((x - high) - low) * inv * scale + bias */
static void apply(const float *restrict x, float *restrict y, int64_t n, float high, float low, float inv,
		  const float *restrict scale, const float *restrict bias)
{
	if (bias)
		for (int64_t i = 0; i < n; i++)
			y[i] = ((x[i] - high) - low) * inv * scale[i] + bias[i];
	else
		for (int64_t i = 0; i < n; i++)
			y[i] = ((x[i] - high) - low) * inv * scale[i];
}

static void apply_simple(const float *restrict x, float *restrict y, int64_t n, float inv, const float *restrict scale)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = x[i] * inv * scale[i];
}

static void add_skip(const struct job *j, int64_t r, float *restrict to)
{
	const float *restrict x = j->x + r * j->n, *restrict skip = j->skip + r % j->skips * j->n;
	const float *restrict bias = j->skip_bias;

	if (bias)
		for (int64_t i = 0; i < j->n; i++)
			to[i] = x[i] + skip[i] + bias[i];
	else
		for (int64_t i = 0; i < j->n; i++)
			to[i] = x[i] + skip[i];
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *room = j->scratch ? j->scratch + lane * rg_lane_room(3 * j->n) : NULL;

	for (int64_t r = begin; r < end; r++) {
		const float *x = j->x + r * j->n, *scale = factor_row(j, &j->scale, r, room);
		double low = 0, variance, inv;
		float high = 0;

		if (j->skip) {
			float *sum = j->sum ? j->sum + r * j->n : room + 2 * j->n;

			add_skip(j, r, sum);
			x = sum;
		}
		if (j->simple)
			variance = rg_sum_squares(x, j->n) / (double)j->n;
		else
			high = rg_moments(x, j->n, &low, &variance);
		inv = 1 / sqrt(variance + j->eps);
		if (j->simple)
			apply_simple(x, j->y + r * j->n, j->n, (float)inv, scale);
		else
			apply(x, j->y + r * j->n, j->n, high, (float)low, (float)inv, scale,
			      factor_row(j, &j->bias, r, room ? room + j->n : NULL));
		if (j->mean)
			j->mean[r] = (float)((double)high + low);
		if (j->inv)
			j->inv[r] = (float)inv;
	}
}

static float *wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype == RG_F32 ? c->out[i].data : NULL;
}

static bool has(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED;
}

static const float *optional(const struct rg_call *c, int i)
{
	return has(c, i) ? c->in[i].data : NULL;
}

static bool all_f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (has(c, i) && c->in[i].dtype != RG_F32)
			return false;
	for (int i = 0; i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED && c->out[i].dtype != RG_F32)
			return false;
	return true;
}

/* Whether every row has the same elements of it, in order. */
static bool is_same(const struct rg_tensor *t, const struct rg_shape *x, int axis, struct factor *f)
{
	int64_t at = 1;
	bool same = true;

	rg_shape_broadcast_strides(&t->shape, x, f->stride);
	for (int d = x->rank - 1; d >= 0; d--) {
		same = same && (x->dim[d] == 1 || f->stride[d] == (d >= axis ? at : 0));
		at *= x->dim[d];
	}
	return same;
}

static bool set_factor(const struct rg_call *c, int i, int axis, struct factor *f)
{
	struct rg_shape both;

	if (!has(c, i))
		return true;
	if (!rg_shape_broadcast(&c->in[0].shape, &c->in[i].shape, &both) || !rg_shape_equal(&both, &c->in[0].shape))
		return false;
	f->same = is_same(&c->in[i], &c->in[0].shape, axis, f);
	f->data = c->in[i].data;
	return true;
}

static bool setup(const struct rg_call *c, bool simple, struct job *j, int64_t *rows)
{
	struct rg_rows r;

	*j = (struct job){ .shape = &c->in[0].shape, .simple = simple };
	if (!all_f32(c) || !rg_layernorm_rows(c->node, &c->in[0].shape, &r, &j->axis) || r.inner != 1)
		return false;
	j->n = r.n;
	*rows = r.outer;
	return set_factor(c, 1, j->axis, &j->scale) && (simple || set_factor(c, 2, j->axis, &j->bias));
}

static int run(const struct rg_call *c, const struct rg_par *par, struct job *j, int64_t rows)
{
	j->x = c->in[0].data;
	j->y = c->out[0].data;
	j->scratch = c->scratch;
	par->run(par, rows, rg_grain(3 * j->n + 60), work, j);
	return 0;
}

static bool supports_layer(const struct rg_call *c)
{
	int64_t rows;
	struct job j;

	return setup(c, false, &j, &rows);
}

static bool supports_rms(const struct rg_call *c)
{
	int64_t rows;
	struct job j;

	return setup(c, true, &j, &rows);
}

static size_t scratch_rows(const struct rg_call *c, int lanes)
{
	bool simple = strcmp(c->node->op_type, "LayerNormalization") != 0;
	int64_t rows;
	struct job j;

	if (!setup(c, simple, &j, &rows) || ((!has(c, 1) || j.scale.same) && (simple || !has(c, 2) || j.bias.same)))
		return 0;
	return (size_t)(lanes * rg_lane_room(3 * j.n)) * sizeof(float);
}

static int run_layer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t rows;
	struct job j;

	if (!setup(c, false, &j, &rows))
		return rg_error_set(err, -EINVAL, "the axis or a scale does not fit the input");
	j.eps = (double)rg_node_float(c->node, "epsilon", 1e-5f);
	j.mean = wanted(c, 1);
	j.inv = wanted(c, 2);
	return run(c, par, &j, rows);
}

/* RMSNormalization and SimplifiedLayerNormalization; the latter tells the inverse. */
static int run_rms(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t rows;
	struct job j;

	if (!setup(c, true, &j, &rows))
		return rg_error_set(err, -EINVAL, "the axis or a scale does not fit the input");
	j.eps = (double)rg_node_float(c->node, "epsilon", 1e-5f);
	j.inv = wanted(c, 1);
	return run(c, par, &j, rows);
}

/* ---- with a skip connection: input skip gamma [beta] bias; output, -, -, sum ---- */

static bool is_simple(const struct rg_call *c)
{
	return strstr(c->node->op_type, "Simplified") != NULL;
}

static bool supports_skip(const struct rg_call *c)
{
	const struct rg_shape *s = &c->in[0].shape;

	/* outputs 1 and 2 are left to the reference */
	for (int i = 1; i < 3 && i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED)
			return false;
	return all_f32(c) && s->rank > 0 && c->in[1].shape.rank > 0;
}

static size_t scratch_skip(const struct rg_call *c, int lanes)
{
	return (size_t)(lanes * rg_lane_room(3 * c->in[0].shape.dim[c->in[0].shape.rank - 1])) * sizeof(float);
}

static int run_skip(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool simple = is_simple(c);
	const struct rg_shape *s = &c->in[0].shape;
	struct job j = {
		.shape = s,
		.axis = s->rank - 1,
		.n = s->dim[s->rank - 1],
		.simple = simple,
		.eps = (double)rg_node_float(c->node, "epsilon", 1e-12f),
		.scale = { .data = c->in[2].data, .same = true },
		.bias = { .data = simple ? NULL : optional(c, 3), .same = true },
		.skip = c->in[1].data,
		.skip_bias = optional(c, simple ? 3 : 4),
		.skips = rg_shape_count_range(&c->in[1].shape, 0, c->in[1].shape.rank - 1),
		.sum = wanted(c, 3),
	};

	if (rg_shape_count(s) == 0)
		return 0;
	return run(c, par, &j, rg_shape_count_range(s, 0, s->rank - 1));
}

#define K(DOMAIN, OP, SUPPORTS, SCRATCH, RUN_FN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .scratch_bytes = SCRATCH, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("", "LayerNormalization", supports_layer, scratch_rows, run_layer),
	K("", "RMSNormalization", supports_rms, scratch_rows, run_rms),
	K("", "SimplifiedLayerNormalization", supports_rms, scratch_rows, run_rms),
	K(RG_CONTRIB_DOMAIN, "SkipLayerNormalization", supports_skip, scratch_skip, run_skip),
	K(RG_CONTRIB_DOMAIN, "SkipSimplifiedLayerNormalization", supports_skip, scratch_skip, run_skip),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(layernorm), kernels);
