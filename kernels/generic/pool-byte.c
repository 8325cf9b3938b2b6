/*
 * Pools on bytes in one and two dimensions: MaxPool, and ONNX Runtime's QLinearAveragePool.
 *
 * A mean takes its taps in the order of the reference, each for a whole row of outputs, so that
 * every sum has the reference's roundings (kernels/meson.build: nothing is contracted).
 */
#include <math.h>

#include "graph/contrib.h"
#include "kernels/generic/generic.h"
#include "kernels/ref/byte.h"
#include "kernels/tables.h"

#define ROUND 0x1.8p23f /* adding it rounds a small number, ties to even: the low bits are the integer */
#define ROUND_BITS 0x4b400000

struct job {
	const struct rg_call *c;
	int64_t planes, ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
	int64_t wide; /* MaxPool: columns of a row with its paddings */
	bool is_signed;
	uint8_t *room; /* room_bytes() a lane */
	/* of means */
	float scale, y_scale, y_zero;
	int32_t zero;
	bool with_pad;
	int64_t kernel_count;
};

static void set_window(struct job *j, const struct rg_window *w)
{
	int l = w->n - 1;
	bool two = w->n == 2;

	j->planes = w->batch * w->c_in;
	j->iw = w->in[l];
	j->ow = w->out[l];
	j->kw = w->kernel[l];
	j->sw = w->stride[l];
	j->dw = w->dilation[l];
	j->left = w->pad_begin[l];
	j->ih = two ? w->in[0] : 1;
	j->oh = two ? w->out[0] : 1;
	j->kh = two ? w->kernel[0] : 1;
	j->sh = two ? w->stride[0] : 1;
	j->dh = two ? w->dilation[0] : 1;
	j->top = two ? w->pad_begin[0] : 0;
	j->wide = (j->ow - 1) * j->sw + (j->kw - 1) * j->dw + 1;
	j->wide = rg_max(j->wide, j->left + j->iw);
	j->kernel_count = w->kernel_count;
}

/* ---- the largest ---- */

#define LARGEST(TYPE)                                                                                        \
	RG_INLINE void fold_##TYPE(TYPE *restrict to, const TYPE *restrict x, int64_t n, const int64_t step) \
	{                                                                                                    \
		for (int64_t i = 0; i < n; i++)                                                              \
			to[i] = x[i * step] > to[i] ? x[i * step] : to[i];                                   \
	}                                                                                                    \
	/* Rows first, into one that stands between paddings; then its columns. */                           \
	static void row_##TYPE(const struct job *j, const TYPE *x, int64_t oy, TYPE *row, TYPE *y)           \
	{                                                                                                    \
		for (int64_t k = 0; k < j->kh; k++) {                                                        \
			int64_t iy = oy * j->sh - j->top + k * j->dh;                                        \
                                                                                                             \
			if (iy >= 0 && iy < j->ih)                                                           \
				fold_##TYPE(row + j->left, x + iy * j->iw, j->iw, 1);                        \
		}                                                                                            \
		for (int64_t k = 0; k < j->kw; k++) {                                                        \
			if (j->sw == 1)                                                                      \
				fold_##TYPE(y, row + k * j->dw, j->ow, 1);                                   \
			else if (j->sw == 2)                                                                 \
				fold_##TYPE(y, row + k * j->dw, j->ow, 2);                                   \
			else                                                                                 \
				fold_##TYPE(y, row + k * j->dw, j->ow, j->sw);                               \
		}                                                                                            \
	}
LARGEST(int8_t)
LARGEST(uint8_t)

static void work_max(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const uint8_t *x = j->c->in[0].data;
	uint8_t *y = j->c->out[0].data, *row = j->room + lane * rg_ceil_div(j->wide, 64) * 64;
	int least = j->is_signed ? 0x80 : 0;

	for (int64_t r = begin; r < end; r++) { /* rows of outputs */
		const uint8_t *plane = x + r / j->oh * j->ih * j->iw;
		uint8_t *to = y + r * j->ow;

		memset(row, least, (size_t)j->wide);
		memset(to, least, (size_t)j->ow);
		if (j->is_signed)
			row_int8_t(j, (const int8_t *)plane, r % j->oh, (int8_t *)row, (int8_t *)to);
		else
			row_uint8_t(j, plane, r % j->oh, row, to);
	}
}

static bool max_window(const struct rg_call *c, struct rg_window *w)
{
	struct rg_error err = RG_ERROR_INIT;

	return !rg_window_pool(c->node, &c->in[0].shape, w, &err) && w->n <= 2;
}

static size_t max_scratch(const struct rg_call *c, int lanes)
{
	struct rg_window w;
	struct job j = {.c = c};

	if (!max_window(c, &w) || w.out_count < 1)
		return 0;
	set_window(&j, &w);
	return (size_t)(lanes * rg_ceil_div(j.wide, 64) * 64);
}

static int run_max(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = {.c = c, .is_signed = c->in[0].dtype == RG_I8, .room = c->scratch};
	struct rg_window w;
	int rc = rg_window_pool(c->node, &c->in[0].shape, &w, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	set_window(&j, &w);
	par->run(par, j.planes * j.oh, rg_grain((j.kh * j.iw + j.kw * j.ow) / 8 + 40), work_max, &j);
	return 0;
}

static bool takes_max(const struct rg_call *c)
{
	struct rg_window w;

	return rg_in_set(c->in[0].dtype, RG_SET_INT8) &&
	       (c->node->n_out < 2 || c->out[1].dtype == RG_UNDEFINED) && max_window(c, &w);
}

/* ---- the mean ---- */

#define MEAN(TYPE)                                                                                           \
	static void add_##TYPE(float *restrict sum, const TYPE *restrict x, int64_t n, int64_t step,         \
			       float scale, int32_t zero)                                                    \
	{                                                                                                    \
		if (step == 1)                                                                               \
			for (int64_t i = 0; i < n; i++)                                                      \
				sum[i] += scale * (float)(x[i] - zero);                                      \
		else                                                                                         \
			for (int64_t i = 0; i < n; i++)                                                      \
				sum[i] += scale * (float)(x[i * step] - zero);                               \
	}
MEAN(int8_t)
MEAN(uint8_t)

/* Outputs [*first, *last) whose tap kx lies in the row. */
static void inside(const struct job *j, int64_t kx, int64_t *first, int64_t *last)
{
	int64_t at = kx * j->dw - j->left; /* of output 0 */

	*first = at < 0 ? rg_ceil_div(-at, j->sw) : 0;
	*last = at >= j->iw ? 0 : rg_min(j->ow, (j->iw - 1 - at) / j->sw + 1);
}

static void add_taps(const struct job *j, int64_t plane, int64_t iy, int64_t kx, float *sum, float *count)
{
	int64_t first, last, from;

	inside(j, kx, &first, &last);
	if (first >= last)
		return;
	from = (plane * j->ih + iy) * j->iw + first * j->sw + kx * j->dw - j->left;
	if (j->is_signed)
		add_int8_t(sum + first, (const int8_t *)j->c->in[0].data + from, last - first, j->sw,
			   j->scale, j->zero);
	else
		add_uint8_t(sum + first, (const uint8_t *)j->c->in[0].data + from, last - first, j->sw,
			    j->scale, j->zero);
	for (int64_t i = first; i < last; i++)
		count[i]++;
}

static void finish_row(const struct job *j, const float *restrict sum, const float *restrict count,
		       uint8_t *restrict y)
{
	const float least = j->is_signed ? -128 : 0, all = (float)j->kernel_count;

	for (int64_t i = 0; i < j->ow; i++) {
		float v = sum[i] / (j->with_pad ? all : count[i]);
		int32_t bits;

		v = v / j->y_scale + j->y_zero;
		v = v >= least ? v : least;
		v = v <= least + 255 ? v : least + 255;
		v += ROUND;
		memcpy(&bits, &v, sizeof(bits));
		y[i] = (uint8_t)(bits - ROUND_BITS);
	}
}

static void work_mean(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *sum = (float *)(void *)j->room + lane * 2 * rg_lane_room(j->ow),
	      *count = sum + rg_lane_room(j->ow);

	for (int64_t r = begin; r < end; r++) {
		memset(sum, 0, (size_t)j->ow * sizeof(*sum));
		memset(count, 0, (size_t)j->ow * sizeof(*count));
		for (int64_t ky = 0; ky < j->kh; ky++) {
			int64_t iy = r % j->oh * j->sh - j->top + ky * j->dh;

			for (int64_t kx = 0; kx < j->kw && iy >= 0 && iy < j->ih; kx++)
				add_taps(j, r / j->oh, iy, kx, sum, count);
		}
		finish_row(j, sum, count, (uint8_t *)j->c->out[0].data + r * j->ow);
	}
}

static bool mean_window(const struct rg_call *c, struct rg_window *w)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape out;

	return rg_node_int(c->node, "channels_last", 0) == 0 &&
	       !rg_byte_pool_window(c->node, &c->in[0].shape, false, w, &out, &err) && w->n <= 2;
}

/* One window over a whole plane is rounded otherwise: the reference does that. */
static bool is_global(const struct rg_window *w)
{
	for (int d = 0; d < w->n; d++)
		if (w->out[d] != 1 || w->kernel[d] != w->in[d] || w->pad_begin[d] + w->pad_end[d] != 0)
			return false;
	return true;
}

static bool takes_mean(const struct rg_call *c)
{
	struct rg_window w;

	return mean_window(c, &w) && !is_global(&w);
}

static size_t mean_scratch(const struct rg_call *c, int lanes)
{
	struct rg_window w;

	if (!mean_window(c, &w))
		return 0;
	return (size_t)(lanes * 2 * rg_lane_room(w.out[w.n - 1])) * sizeof(float);
}

static int run_mean(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = {.c = c,
			.is_signed = c->in[0].dtype == RG_I8,
			.room = c->scratch,
			.scale = rg_byte_scale(c, 1, 0),
			.y_scale = rg_byte_scale(c, 3, 0),
			.y_zero = (float)rg_byte_zero(c, 4, 0),
			.zero = rg_byte_zero(c, 2, 0),
			.with_pad = rg_node_int(c->node, "count_include_pad", 0) != 0};
	struct rg_shape out;
	struct rg_window w;
	int rc = rg_byte_pool_window(c->node, &c->in[0].shape, false, &w, &out, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	set_window(&j, &w);
	par->run(par, j.planes * j.oh, rg_grain(j.kh * j.kw * j.ow + 40), work_mean, &j);
	return 0;
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = -1;
	out->write_bytes = rg_shape_count(&c->out[0].shape);
}

#define K(DOMAIN, OP, SUPPORTS, SCRATCH, RUN)                                                                \
	{                                                                                                    \
		.op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("bytes"), .isa = RG_LEVEL_ISA,        \
		.rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .scratch_bytes = SCRATCH,                  \
		.traffic = traffic, .run = RUN                                                               \
	}
static const struct rg_kernel kernels[] = {
    K("", "MaxPool", takes_max, max_scratch, run_max),
    K(RG_CONTRIB_DOMAIN, "QLinearAveragePool", takes_mean, mean_scratch, run_mean),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(pool_byte), kernels);
