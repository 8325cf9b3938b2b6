/*
 * Convolution on OpenBLAS: for every image and group
 *
 *	Y (channels x pixels) = W (channels x taps) * col (taps x pixels)
 *
 * where col is the input itself for a kernel of 1 with stride 1, and else the
 * pixels that each tap sees ("im2col"; Chellapilla, Puri, Simard 2006), made a
 * slice of pixels at a time so that it stays in the cache between being
 * written and being multiplied.
 *
 * Two ways to share the work: over slices, each lane with a col of its own;
 * or, where an image has too few pixels for that (7 x 7), over output channels
 * with one col of all pixels that the lanes fill together first.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "graph/window.h"
#include "kernels/blas/blas.h"
#include "kernels/im2col.h"
#include "kernels/tables.h"

/* Room for one lane's col: half of a common second-level cache. */
#define SLICE_FLOATS ((int64_t)128 * 1024)
enum { MIN_SLICE = 96, MAX_SLICE = 4096, ALIGN_FLOATS = 16, CHANNEL_TILE = 16 };

struct job {
	struct rg_window w;
	bool direct;             /* the input is col as it is */
	bool by_channels;
	int64_t taps;            /* channels of a group times kernel */
	int64_t m;               /* output channels of a group */
	int64_t slice, slices;   /* pixels a slice; slices an image */
	int64_t col_floats;      /* of one lane, or of the shared one */
	const float *x, *wt, *bias;
	float *y, *scratch;
	int64_t image, group;    /* by_channels: the ones being worked on */
};

static int64_t round_up(int64_t v, int64_t to)
{
	return (v + to - 1) / to * to;
}

/* 0 or a negative errno. */
static int setup(const struct rg_call *c, int lanes, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int64_t rows;
	bool pads = false, strides = false;
	int rc;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	for (int d = 0; d < w->n; d++) {
		pads = pads || w->pad_begin[d] || w->pad_end[d];
		strides = strides || w->stride[d] != 1;
	}
	j->direct = w->kernel_count == 1 && !pads && !strides;
	if (__builtin_mul_overflow(w->c_in / w->group, w->kernel_count, &j->taps))
		return rg_error_set(err, -EOVERFLOW, "the number of taps overflows");
	j->m = w->c_out / w->group;
	rows = j->taps > j->m ? j->taps : j->m;
	j->slice = rows ? SLICE_FLOATS / rows / ALIGN_FLOATS * ALIGN_FLOATS : MAX_SLICE;
	j->slice = j->slice < MIN_SLICE ? MIN_SLICE : j->slice > MAX_SLICE ? MAX_SLICE : j->slice;
	j->by_channels = lanes > 1 && w->batch * w->group == 1 && w->out_count < (int64_t)MIN_SLICE * lanes &&
			 j->m >= (int64_t)CHANNEL_TILE * lanes;
	if (j->by_channels)
		j->slice = w->out_count;
	else if (w->batch * w->group < lanes && j->slice * lanes > w->out_count) /* something for everyone */
		j->slice = round_up((w->out_count + lanes - 1) / lanes, ALIGN_FLOATS);
	if (j->slice > w->out_count)
		j->slice = w->out_count;
	j->slices = j->slice ? (w->out_count + j->slice - 1) / j->slice : 0;
	j->col_floats = 0;
	if (!j->direct && (__builtin_mul_overflow(j->taps, j->slice, &j->col_floats) ||
			   j->col_floats > INT64_MAX / 1024))
		return rg_error_set(err, -EOVERFLOW, "scratch for the convolution overflows");
	j->col_floats = round_up(j->col_floats, ALIGN_FLOATS);
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (setup(c, lanes, &j, &err))
		return 0;
	return (size_t)j.col_floats * sizeof(float) * (size_t)(j.by_channels ? 1 : lanes);
}

/* Output channels [m0, m0 + m) of a group, pixels [p0, p0 + count). */
static void multiply(const struct job *j, int64_t image, int64_t group, int64_t m0, int64_t m, int64_t p0,
		     int64_t count, const float *col, int64_t ld_col)
{
	const struct rg_window *w = &j->w;
	int64_t channel = group * j->m + m0;
	float *y = j->y + (image * w->c_out + channel) * w->out_count + p0;

	rg_blas_sgemm(false, false, m, count, j->taps, 1, j->wt + channel * j->taps, j->taps, col, ld_col, 0, y,
		      w->out_count);
	for (int64_t i = 0; i < m && j->bias; i++) {
		float add = j->bias[channel + i], *row = y + i * w->out_count;

		for (int64_t p = 0; p < count; p++)
			row[p] += add;
	}
}

static const float *input_of(const struct job *j, int64_t image, int64_t group)
{
	if (!j->x) /* no elements */
		return NULL;
	return j->x + (image * j->w.c_in + group * (j->w.c_in / j->w.group)) * j->w.in_count;
}

static void do_slices(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *col = j->scratch ? j->scratch + lane * j->col_floats : NULL;

	for (int64_t i = begin; i < end; i++) {
		int64_t p0 = i % j->slices * j->slice, g = i / j->slices % j->w.group, n = i / j->slices / j->w.group;
		int64_t count = j->w.out_count - p0 < j->slice ? j->w.out_count - p0 : j->slice;
		const float *x = input_of(j, n, g);

		if (!j->direct)
			rg_im2col(&j->w, x, 0, j->taps, p0, count, count, col);
		multiply(j, n, g, 0, j->m, p0, count, j->direct ? x + p0 : col, j->direct ? j->w.in_count : count);
	}
}

static void do_fill(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	rg_im2col(&j->w, input_of(j, j->image, j->group), begin, end, 0, j->w.out_count, j->w.out_count, j->scratch);
}

static void do_channels(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t m0 = begin * CHANNEL_TILE, to = end * CHANNEL_TILE < j->m ? end * CHANNEL_TILE : j->m;

	multiply(j, j->image, j->group, m0, to - m0, 0, j->w.out_count,
		 j->direct ? input_of(j, j->image, j->group) : j->scratch, j->w.out_count);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int64_t units;
	int rc = setup(c, par->lanes, &j, err);

	if (rc)
		return rc;
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	if (j.by_channels) {
		units = (j.m + CHANNEL_TILE - 1) / CHANNEL_TILE;
		if (!j.direct)
			par->run(par, j.taps, rg_blas_grain(j.taps, 40.0 * (double)j.w.out_count, par->lanes), do_fill,
				 &j);
		par->run(par, units,
			 rg_blas_grain(units, 2.0 * CHANNEL_TILE * (double)j.taps * (double)j.w.out_count, par->lanes),
			 do_channels, &j);
		return 0;
	}
	units = j.w.batch * j.w.group * j.slices;
	/* Slices are small: chunks of any number of them balance the lanes. */
	par->run(par, units, 1 + (int64_t)(1e6 / (2.0 * (double)j.m * (double)j.taps * (double)j.slice + 1)), do_slices,
		 &j);
	return 0;
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;
	double flops;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (setup(c, 1, &j, &err))
		return;
	/* Padding is multiplied too; what OpenBLAS moves between registers and L1 it
	 * does not say. */
	flops = 2.0 * (double)j.w.batch * (double)j.w.c_out * (double)j.w.out_count * (double)j.taps;
	if (c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED)
		flops += (double)j.w.batch * (double)j.w.c_out * (double)j.w.out_count;
	if (flops < 9e18)
		out->executed_flops = (int64_t)flops;
}

/* Not for depthwise: a product with one row of 9 taps has nothing to reuse. */
static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return c->in[0].dtype == RG_F32 && !setup(c, 1, &j, &err) && j.taps > 0 && rg_blas_fits(j.m) &&
	       rg_blas_fits(j.taps) && rg_blas_fits(j.w.out_count) && rg_blas_fits(j.w.in_count) &&
	       !(j.w.group > 1 && j.w.group == j.w.c_in) && rg_blas_available();
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Conv", .domain = "", .name = "openblas", .rank = 50, .supports = supports,
	  .scratch_bytes = scratch_bytes, .traffic = traffic, .run = run },
};
RG_KERNEL_TABLE(rg_kernels_blas_conv, kernels);
