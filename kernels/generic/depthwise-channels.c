/*
 * Depthwise convolution with channels in vectors, in one and two dimensions, on
 * NCHW.
 *
 * A vector's worth of channels is turned on the way in, row by row, so that a
 * pixel of all of them is one vector (blocks of 4 x 4 in registers), and turned back
 * on the way out. Turning costs two moves an element; in return no vector is cut
 * short by the end of a row and a stride costs nothing, so small planes and strides
 * gain most. Rows live in a ring that is as high as the kernel and stays in L1.
 */
#include <math.h>

#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/generic/conv-epilogue.h"
#include "kernels/generic/turn.h"
#include "kernels/tables.h"

enum { PIXELS = 8 };  /* sums at a time: enough to hide the latency of a multiply-add */

struct job {
	struct rg_window w;
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
	int64_t ring;         /* rows of it */
	int64_t width;        /* pixels of a row of it: what the last output pixel sees is inside */
	int64_t blocks;       /* of channels */
	int64_t band, bands;  /* output rows of an item */
	int64_t lane_floats;
	const float *x, *wt, *bias;
	float *y, *scratch;
	struct rg_epilogue e; /* only its clip and finish */
};

static int setup(const struct rg_call *c, int lanes, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int rc, last;
	int64_t out_width, floats;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	if (w->n < 1 || w->n > 2 || w->group != w->c_in || w->c_out != w->c_in ||
	    w->group < RG_VEC / 2)
		return rg_error_set(err, -ENOTSUP, "not a depthwise convolution of one or two dimensions");
	last = w->n - 1;
	j->iw = w->in[last], j->ow = w->out[last], j->kw = w->kernel[last];
	j->sw = w->stride[last], j->dw = w->dilation[last], j->left = w->pad_begin[last];
	j->ih = j->oh = j->kh = j->sh = j->dh = 1;
	if (w->n == 2) {
		j->ih = w->in[0], j->oh = w->out[0], j->kh = w->kernel[0];
		j->sh = w->stride[0], j->dh = w->dilation[0], j->top = w->pad_begin[0];
	}
	j->blocks = (w->c_in + RG_VEC - 1) / RG_VEC;
	if (j->ow == 0 || j->oh == 0)
		return 0;
	j->ring = (j->kh - 1) * j->dh + 1;
	out_width = (j->ow + PIXELS - 1) / PIXELS * PIXELS; /* whole blocks of pixels are computed */
	if (__builtin_mul_overflow(out_width, j->sw, &j->width) || j->width > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "a row is too long");
	j->width += (j->kw - 1) * j->dw + 4; /* turned by fours */
	if (__builtin_mul_overflow(j->ring, j->width, &floats) || floats > INT32_MAX / 64)
		return rg_error_set(err, -EOVERFLOW, "the rows of a kernel are too long");
	j->lane_floats = rg_lane_room((floats + out_width + w->kernel_count + 1) * RG_VEC);
	j->bands = 1;
	if (j->blocks * w->batch < 4 * (int64_t)lanes && lanes > 1)
		j->bands = 4 * (int64_t)lanes / (j->blocks * w->batch > 0 ? j->blocks * w->batch : 1);
	j->band = (j->oh + j->bands - 1) / j->bands;
	j->band = j->band < 4 * j->kh ? 4 * j->kh : j->band; /* rows that two bands need are turned twice */
	j->bands = (j->oh + j->band - 1) / j->band;
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, lanes, &j, &err) ? 0 : (size_t)j.lane_floats * sizeof(float) * (size_t)lanes;
}

/* Pixels i to i + 3 of four channels. */
RG_INLINE void turn_in4(const float *const *row, int64_t i, float *to)
{
	rg_vec4 r[4];

	for (int k = 0; k < 4; k++)
		r[k] = *(const rg_vec4 *)(row[k] + i);
	rg_turn4(r);
	for (int k = 0; k < 4; k++)
		*(rg_vec4 *)(to + (i + k) * RG_VEC) = r[k];
}

RG_INLINE void turn_out4(const float *from, int64_t i, int64_t plane, float *out)
{
	rg_vec4 r[4];

	for (int k = 0; k < 4; k++)
		r[k] = *(const rg_vec4 *)(from + (i + k) * RG_VEC);
	rg_turn4(r);
	for (int k = 0; k < 4; k++)
		*(rg_vec4 *)(out + k * plane + i) = r[k];
}

/* n pixels of RG_VEC channels, `plane` apart, to vectors; `count` channels exist, the others repeat the last. */
static void turn_in(const float *in, int64_t plane, int64_t count, int64_t n, float *to)
{
	for (int64_t c = 0; c < RG_VEC; c += 4) {
		const float *row[4];
		int64_t i = 0;

		for (int64_t k = 0; k < 4; k++)
			row[k] = in + (c + k < count ? c + k : count - 1) * plane;
		for (; i + 4 <= n; i += 4)
			turn_in4(row, i, to + c);
		if (i < n && n >= 4) {
			turn_in4(row, n - 4, to + c); /* some again */
			continue;
		}
		for (; i < n; i++)
			for (int k = 0; k < 4; k++)
				to[i * RG_VEC + c + k] = row[k][i];
	}
}

static void turn_out(const float *from, int64_t plane, int64_t count, int64_t n, float *out)
{
	for (int64_t c = 0; c < count; c += 4) {
		int64_t i = 0;

		for (; i + 4 <= n && c + 4 <= count; i += 4)
			turn_out4(from + c, i, plane, out + c * plane);
		if (i < n && n >= 4 && c + 4 <= count) {
			turn_out4(from + c, n - 4, plane, out + c * plane);
			continue;
		}
		for (; i < n; i++)
			for (int64_t k = c; k < c + 4 && k < count; k++)
				out[k * plane + i] = from[i * RG_VEC + k];
	}
}

/*
 * PIXELS pixels of an output row. rows[r]: the first pixel that the first of them sees in
 * kernel row r. An input pixel is loaded once and added wherever it counts: kw and sw are
 * constants, or kw is 0 and the taps are walked.
 */
RG_INLINE void pixels(const struct job *j, const float *const *rows, int64_t at, const float *wt, rg_vec bias,
		      float *to, const int kw, const int sw)
{
	rg_vec sum[PIXELS];

	for (int p = 0; p < PIXELS; p++)
		sum[p] = bias;
	for (int64_t r = 0; r < j->kh; r++, wt += j->kw * RG_VEC) {
		const float *in = rows[r] + at * j->sw * RG_VEC;

		if (kw) {
			rg_vec f[5];

			_Pragma("GCC unroll 5") for (int k = 0; k < kw; k++)
				f[k] = rg_vec_load(wt + k * RG_VEC);
			_Pragma("GCC unroll 24") for (int i = 0; i < (PIXELS - 1) * sw + kw; i++) {
				rg_vec v = rg_vec_load(in + i * RG_VEC);

				_Pragma("GCC unroll 5") for (int k = 0; k < kw; k++)
					if (i >= k && (i - k) % sw == 0 && (i - k) / sw < PIXELS)
						sum[(i - k) / sw] = rg_vec_fma(v, f[k], sum[(i - k) / sw]);
			}
			continue;
		}
		for (int64_t k = 0; k < j->kw; k++, in += j->dw * RG_VEC) {
			rg_vec f = rg_vec_load(wt + k * RG_VEC);

			for (int p = 0; p < PIXELS; p++)
				sum[p] = rg_vec_fma(f, rg_vec_load(in + p * j->sw * RG_VEC), sum[p]);
		}
	}
	if (j->e.clip)
		for (int p = 0; p < PIXELS; p++)
			sum[p] = rg_vec_clip(sum[p], rg_vec_all(j->e.low), rg_vec_all(j->e.high));
	for (int p = 0; p < PIXELS; p++)
		rg_vec_store(to + p * RG_VEC, sum[p]);
}

enum { MAX_KERNEL_ROWS = 32 };

static void out_row(const struct job *j, const float *const *rows, const float *wt, rg_vec bias, float *to)
{
	for (int64_t at = 0; at < j->ow; at += PIXELS, to += PIXELS * RG_VEC) {
		if (j->kw == 3 && j->sw == 1 && j->dw == 1)
			pixels(j, rows, at, wt, bias, to, 3, 1);
		else if (j->kw == 3 && j->sw == 2 && j->dw == 1)
			pixels(j, rows, at, wt, bias, to, 3, 2);
		else if (j->kw == 5 && j->sw == 1 && j->dw == 1)
			pixels(j, rows, at, wt, bias, to, 5, 1);
		else if (j->kw == 5 && j->sw == 2 && j->dw == 1)
			pixels(j, rows, at, wt, bias, to, 5, 2);
		else
			pixels(j, rows, at, wt, bias, to, 0, 1);
	}
}

/* Row r of the padded input into its place in the ring. Pixels outside were zeroed and stay so. */
static void fill_row(const struct job *j, const float *x, int64_t r, int64_t count, float *ring)
{
	float *to = ring + r % j->ring * j->width * RG_VEC;
	int64_t n = j->width - 4 - j->left;

	if (j->left >= j->width - 4)
		return;
	n = n < j->iw ? n : j->iw;
	if (r < j->top || r >= j->top + j->ih)
		memset(to + j->left * RG_VEC, 0, (size_t)(n * RG_VEC) * sizeof(*to));
	else
		turn_in(x + (r - j->top) * j->iw, j->w.in_count, count, n, to + j->left * RG_VEC);
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *ring = j->scratch + lane * j->lane_floats, *out = ring + j->ring * j->width * RG_VEC;
	int64_t out_width = (j->ow + PIXELS - 1) / PIXELS * PIXELS;
	float *wt = out + out_width * RG_VEC, *bias = wt + j->w.kernel_count * RG_VEC;
	const float *rows[MAX_KERNEL_ROWS];

	memset(ring, 0, (size_t)(j->ring * j->width * RG_VEC) * sizeof(*ring));
	for (int64_t i = begin; i < end; i++) {
		int64_t y0 = i % j->bands * j->band, y1 = y0 + j->band < j->oh ? y0 + j->band : j->oh;
		int64_t c0 = i / j->bands % j->blocks * RG_VEC, n = i / j->bands / j->blocks;
		int64_t count = j->w.c_in - c0 < RG_VEC ? j->w.c_in - c0 : RG_VEC, next = y0 * j->sh;
		const float *x = j->x + (n * j->w.c_in + c0) * j->w.in_count;
		float *y = j->y + (n * j->w.c_in + c0) * j->w.out_count;

		for (int64_t c = 0; c < RG_VEC; c++) {
			int64_t from = c0 + (c < count ? c : count - 1);

			for (int64_t t = 0; t < j->w.kernel_count; t++)
				wt[t * RG_VEC + c] = j->wt[from * j->w.kernel_count + t];
			bias[c] = j->bias ? j->bias[from] : 0;
		}
		for (int64_t o = y0; o < y1; o++) {
			next = next > o * j->sh ? next : o * j->sh;
			for (; next < o * j->sh + j->ring; next++)
				fill_row(j, x, next, count, ring);
			for (int64_t r = 0; r < j->kh; r++)
				rows[r] = ring + (o * j->sh + r * j->dh) % j->ring * j->width * RG_VEC;
			out_row(j, rows, wt, rg_vec_load(bias), out);
			if (j->e.finish)
				j->e.finish(out, j->ow * RG_VEC, &j->e);
			turn_out(out, j->w.out_count, count, j->ow, y + o * j->ow);
		}
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int rc = setup(c, par->lanes, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	rg_conv_epilogue(c, &j.e);
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.blocks * j.bands,
		 rg_grain(j.band * (j.ow * (j.w.kernel_count + RG_VEC) + j.sh * j.iw * RG_VEC)), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED) /* a residual */
		return false;
	return c->in[0].dtype == RG_F32 && !setup(c, 1, &j, &err) && j.kh <= MAX_KERNEL_ROWS && rg_conv_epilogue(c, &j.e);
}

/* Turning a pixel of a vector of channels takes as long as five multiply-adds. */
static double cost(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	double in, out, sums;
	struct job j;

	if (setup(c, 1, &j, &err))
		return INFINITY;
	in = (double)j.w.in_count;
	out = (double)j.w.out_count;
	sums = (double)j.oh * (double)(rg_ceil_div(j.ow, PIXELS) * PIXELS) * (double)j.w.kernel_count;
	return (double)j.w.batch * (double)j.blocks * (1.45 * sums + 5.4 * (in + out) * RG_VEC / 8 + 600);
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("depthwise-channels"), .isa = RG_LEVEL_ISA, \
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes, .cost = cost, .run = run }

static const struct rg_kernel kernels[] = {
	K("Conv", ""),
	K("FusedConv", RG_CONTRIB_DOMAIN),
	K("FusedConv", RG_OWN_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(depthwise_channels), kernels);
