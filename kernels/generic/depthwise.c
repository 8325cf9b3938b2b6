/*
 * Depthwise convolution in one and two dimensions: every output channel looks
 * at one input channel.
 *
 * A plane is first copied into the lane's scratch with its padding around it
 * and, for a column stride s, with its columns sorted by their remainder modulo
 * s. After that no tap can leave the plane, and output pixels that are next to
 * each other read elements that are next to each other, whatever the stride:
 * the loops have neither borders nor gaps, and sums stay in registers over all
 * taps.
 */
#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/tables.h"

enum { COLUMN_VECS = 4 };

struct job {
	struct rg_window w;
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
	int64_t rows;        /* of the padded plane */
	int64_t phase;       /* columns of one remainder, with room for the last vector */
	int64_t plane;       /* floats of the whole */
	int64_t multiplier;  /* output channels an input channel */
	const float *x, *wt, *bias;
	float *y, *scratch;
};

static int setup(const struct rg_call *c, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int rc, last;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	if (w->n > 2 || w->group != w->c_in || w->group < 1)
		return rg_error_set(err, -ENOTSUP, "not a depthwise convolution of one or two dimensions");
	last = w->n - 1;
	j->iw = w->in[last];
	j->ow = w->out[last];
	j->kw = w->kernel[last];
	j->sw = w->stride[last];
	j->dw = w->dilation[last];
	j->left = w->pad_begin[last];
	j->ih = w->n == 2 ? w->in[0] : 1;
	j->oh = w->n == 2 ? w->out[0] : 1;
	j->kh = w->n == 2 ? w->kernel[0] : 1;
	j->sh = w->n == 2 ? w->stride[0] : 1;
	j->dh = w->n == 2 ? w->dilation[0] : 1;
	j->top = w->n == 2 ? w->pad_begin[0] : 0;
	j->multiplier = w->c_out / w->group;
	if (j->ow == 0 || j->oh == 0)
		return 0;
	j->rows = (j->oh - 1) * j->sh + (j->kh - 1) * j->dh + 1;
	j->phase = (j->ow + RG_VEC - 1) / RG_VEC * RG_VEC + (j->kw - 1) * j->dw / j->sw + 1;
	if (__builtin_mul_overflow(j->rows, j->phase, &j->plane) ||
	    __builtin_mul_overflow(j->plane, j->sw, &j->plane) || j->plane > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "the padded plane is too large");
	j->plane = (j->plane + 15) / 16 * 16;
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, &j, &err) ? 0 : (size_t)j.plane * sizeof(float) * (size_t)lanes;
}

/* A library call would cost more than most rows are long. */
RG_INLINE void copy_row(float *restrict to, const float *restrict in, int64_t n, const int64_t stride)
{
	int64_t i = 0;

	if (stride == 1)
		for (; i + RG_VEC <= n; i += RG_VEC)
			rg_vec_store(to + i, rg_vec_load(in + i));
	for (; i < n; i++)
		to[i] = in[i * stride];
}

/* Only what lies inside: the padding was zeroed once and stays. */
static void copy_plane(const struct job *j, const float *x, float *to)
{
	int64_t top = j->top < j->rows ? j->top : j->rows, end_row = j->top + j->ih;

	for (int64_t r = top; r < end_row && r < j->rows; r++) {
		const float *in = x + (r - j->top) * j->iw;

		for (int64_t s = 0; s < j->sw; s++) {
			/* element i is column i * sw + s - left of the input */
			int64_t base = s - j->left;
			int64_t first = base < 0 ? (-base + j->sw - 1) / j->sw : 0;
			int64_t end = base >= j->iw ? 0 : (j->iw - base + j->sw - 1) / j->sw;
			float *row = to + (r * j->sw + s) * j->phase + first;
			int64_t n = (end > j->phase ? j->phase : end) - first;

			if (j->sw == 1)
				copy_row(row, in + base + first, n, 1);
			else if (j->sw == 2)
				copy_row(row, in + base + first * 2, n, 2);
			else
				copy_row(row, in + base + first * j->sw, n, j->sw);
		}
	}
}

/* `vecs` vectors of one output row; kh and kw are constants where the caller's are. */
RG_INLINE void row_part(const struct job *j, const float *row, const float *wt, float bias, float *y, int64_t count,
			const int vecs, const int64_t kh, const int64_t kw)
{
	rg_vec sum[COLUMN_VECS];
	float tail[COLUMN_VECS * RG_VEC];

	for (int v = 0; v < vecs; v++)
		sum[v] = rg_vec_all(bias);
	for (int64_t r = 0; r < kh; r++) {
		const float *in = row + r * j->dh * j->sw * j->phase;

		for (int64_t k = 0; k < kw; k++) {
			int64_t at = k * j->dw;
			const float *p = in + at % j->sw * j->phase + at / j->sw;
			rg_vec f = rg_vec_all(wt[r * kw + k]);

			for (int v = 0; v < vecs; v++)
				sum[v] += f * rg_vec_load(p + v * RG_VEC);
		}
	}
	if (count == vecs * RG_VEC) {
		for (int v = 0; v < vecs; v++)
			rg_vec_store(y + v * RG_VEC, sum[v]);
	} else {
		for (int v = 0; v < vecs; v++)
			rg_vec_store(tail + v * RG_VEC, sum[v]);
		memcpy(y, tail, (size_t)count * sizeof(*y));
	}
}

RG_INLINE void rows(const struct job *j, const float *plane, const float *wt, float bias, float *y, const int64_t kh,
		    const int64_t kw)
{
	for (int64_t r = 0; r < j->oh; r++, y += j->ow) {
		const float *row = plane + r * j->sh * j->sw * j->phase;
		int64_t at = 0;

		for (; at + (COLUMN_VECS - 1) * RG_VEC < j->ow; at += COLUMN_VECS * RG_VEC)
			row_part(j, row + at, wt, bias, y + at,
				 j->ow - at < COLUMN_VECS * RG_VEC ? j->ow - at : COLUMN_VECS * RG_VEC, COLUMN_VECS, kh,
				 kw);
		for (; at < j->ow; at += RG_VEC)
			row_part(j, row + at, wt, bias, y + at, j->ow - at < RG_VEC ? j->ow - at : RG_VEC, 1, kh, kw);
	}
}

/* Items are output planes: image * c_out + channel. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *plane = j->scratch + lane * j->plane;
	int64_t have = -1; /* the input plane that scratch holds */

	memset(plane, 0, (size_t)j->plane * sizeof(*plane));
	for (int64_t i = begin; i < end; i++) {
		int64_t m = i % j->w.c_out, from = i / j->multiplier;
		const float *wt = j->wt + m * j->w.kernel_count;
		float bias = j->bias ? j->bias[m] : 0, *y = j->y + i * j->w.out_count;

		if (from != have)
			copy_plane(j, j->x + from * j->w.in_count, plane);
		have = from;
		if (j->kh == 3 && j->kw == 3)
			rows(j, plane, wt, bias, y, 3, 3);
		else if (j->kh == 5 && j->kw == 5)
			rows(j, plane, wt, bias, y, 5, 5);
		else
			rows(j, plane, wt, bias, y, j->kh, j->kw);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int rc = setup(c, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.w.c_out, rg_grain(j.plane + j.w.out_count * j.w.kernel_count / 4), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return c->in[0].dtype == RG_F32 && !setup(c, &j, &err);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Conv", .domain = "", .name = RG_LEVEL_NAME("depthwise"), .isa = RG_LEVEL_ISA,
	  .rank = 60 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(depthwise), kernels);
