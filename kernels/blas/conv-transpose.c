/*
 * Transposed convolution on OpenBLAS: for every image and group
 *
 *	col (channels * kernel x input pixels) = W^T * X
 *
 * and then each row of col is added into the output where its tap spreads to
 * ("col2im"). Lanes share output channels, so no two write the same element.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "graph/window.h"
#include "kernels/blas/blas.h"
#include "kernels/tables.h"

/* Room for one lane's col, unless a single channel needs more. */
#define COL_FLOATS ((int64_t)256 * 1024)
enum { ALIGN_FLOATS = 16 };

struct job {
	struct rg_window w;
	int64_t m;           /* output channels of a group */
	int64_t at_once;     /* channels whose col fits */
	int64_t col_floats;  /* of one lane */
	const float *x, *wt, *bias;
	float *y, *scratch;
};

/* 0 or a negative errno. */
static int setup(const struct rg_call *c, struct job *j, struct rg_error *err)
{
	int64_t one;
	int rc = rg_window_conv_transpose(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err);

	if (rc)
		return rc;
	if (__builtin_mul_overflow(j->w.kernel_count, j->w.in_count, &one) || one > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "one output channel needs too much scratch");
	j->m = j->w.c_out / j->w.group;
	j->at_once = one && one < COL_FLOATS ? COL_FLOATS / one : 1;
	if (j->at_once > j->m)
		j->at_once = j->m;
	j->col_floats = (j->at_once * one + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, &j, &err) ? 0 : (size_t)j.col_floats * sizeof(float) * (size_t)lanes;
}

/* Adds one row of input pixels, spread by the stride, into a row of the output. */
static void spread_row(float *out, int64_t width, const float *from, int64_t count, int64_t base, int64_t stride)
{
	int64_t left = base < 0 ? (-base + stride - 1) / stride : 0;
	int64_t right = base >= width ? 0 : (width - base + stride - 1) / stride;

	if (right > count)
		right = count;
	for (int64_t i = left; i < right; i++)
		out[base + i * stride] += from[i];
}

/* Adds one row of col, made by tap q, into one output plane. */
static void add_tap(const struct rg_window *w, int64_t q, const float *from, float *out)
{
	int64_t k[RG_MAX_SPATIAL], i[RG_MAX_SPATIAL] = { 0 }, rows = 1;
	int last = w->n - 1, d;

	for (d = last; d >= 0; d--) {
		k[d] = q % w->kernel[d];
		q /= w->kernel[d];
	}
	for (d = 0; d < last; d++)
		rows *= w->in[d];
	for (int64_t r = 0; r < rows; r++) {
		int64_t at = 0;
		bool inside = true;

		for (d = 0; d < last; d++) {
			int64_t o = i[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

			inside = inside && o >= 0 && o < w->out[d];
			at = at * w->out[d] + o;
		}
		if (inside)
			spread_row(out + at * w->out[last], w->out[last], from + r * w->in[last], w->in[last],
				   k[last] * w->dilation[last] - w->pad_begin[last], w->stride[last]);
		for (d = last - 1; d >= 0 && ++i[d] == w->in[d]; d--)
			i[d] = 0;
	}
}

/* Items are output channels of all images: image * c_out + channel. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const struct rg_window *w = &j->w;
	int64_t channels = w->c_in / w->group, row = j->m * w->kernel_count;
	float *col = j->scratch ? j->scratch + lane * j->col_floats : NULL;

	while (begin < end) {
		int64_t n = begin / w->c_out, m = begin % w->c_out, g = m / j->m, first = m % j->m, count = j->m - first;

		count = count < j->at_once ? count : j->at_once;
		count = count < end - begin ? count : end - begin;
		rg_blas_sgemm(true, false, count * w->kernel_count, w->in_count, channels, 1,
			      j->wt + g * channels * row + first * w->kernel_count, row,
			      j->x + (n * w->c_in + g * channels) * w->in_count, w->in_count, 0, col, w->in_count);
		for (int64_t i = 0; i < count; i++) {
			float *out = j->y + (begin + i) * w->out_count, fill = j->bias ? j->bias[m + i] : 0;

			for (int64_t p = 0; p < w->out_count; p++)
				out[p] = fill;
			for (int64_t q = 0; q < w->kernel_count; q++)
				add_tap(w, q, col + (i * w->kernel_count + q) * w->in_count, out);
		}
		begin += count;
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	double flops;
	int rc = setup(c, &j, err);

	if (rc)
		return rc;
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	flops = 2.0 * (double)(j.w.c_in / j.w.group) * (double)j.w.kernel_count * (double)j.w.in_count;
	par->run(par, j.w.batch * j.w.c_out, rg_blas_grain(j.w.batch * j.w.c_out, flops, par->lanes), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return c->in[0].dtype == RG_F32 && !setup(c, &j, &err) && j.w.c_in > 0 && j.w.in_count > 0 &&
	       rg_blas_fits(j.at_once * j.w.kernel_count) && rg_blas_fits(j.m * j.w.kernel_count) &&
	       rg_blas_fits(j.w.c_in) && rg_blas_available();
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "ConvTranspose", .domain = "", .name = "openblas", .rank = 50, .supports = supports,
	  .scratch_bytes = scratch_bytes, .run = run },
};
RG_KERNEL_TABLE(rg_kernels_blas_conv_transpose, kernels);
