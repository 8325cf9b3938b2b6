/*
 * Input planes of a convolution in one or two dimensions, laid out so that no tap
 * leaves the plane and that output pixels next to each other in a row read
 * elements next to each other, whatever the stride.
 *
 * A plane is copied with its padding around it. For a column stride s the columns
 * of a row are sorted by their remainder modulo s ("phases"): the tap in column k
 * sees, for output column x, element x + k * dilation / s of phase
 * k * dilation % s. A kernel of one row or one column reads only every s-th row or
 * column, and only those are copied.
 */
#ifndef RG_KERNELS_GENERIC_PLANE_H
#define RG_KERNELS_GENERIC_PLANE_H

#include "graph/window.h"
#include "kernels/generic/generic.h"

struct rg_plane {
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
	int64_t rows;        /* of the padded plane */
	int64_t row_step;    /* input rows from one row of the plane to the next */
	int64_t phases;
	int64_t phase;       /* columns of one phase, with room to read a vector from any output column */
	int64_t pitch;       /* floats a row: phases * phase */
	int64_t floats;      /* of a whole plane, a multiple of 16 */
};

/* -ENOTSUP: more than two dimensions. -EOVERFLOW: the plane is too large. */
RG_INLINE int rg_plane_setup(const struct rg_window *w, struct rg_plane *p, struct rg_error *err)
{
	int last = w->n - 1;

	memset(p, 0, sizeof(*p));
	if (w->n < 1 || w->n > 2)
		return rg_error_set(err, -ENOTSUP, "not a convolution of one or two dimensions");
	p->iw = w->in[last], p->ow = w->out[last];
	p->kw = w->kernel[last], p->sw = w->stride[last], p->dw = w->dilation[last];
	p->left = w->pad_begin[last];
	p->ih = p->oh = p->kh = p->sh = p->dh = 1;
	if (w->n == 2) {
		p->ih = w->in[0], p->oh = w->out[0];
		p->kh = w->kernel[0], p->sh = w->stride[0], p->dh = w->dilation[0];
		p->top = w->pad_begin[0];
	}
	p->row_step = p->kh == 1 ? p->sh : 1;
	p->phases = p->kw == 1 ? 1 : p->sw;
	if (p->ow == 0 || p->oh == 0)
		return 0;
	p->rows = p->kh == 1 ? p->oh : (p->oh - 1) * p->sh + (p->kh - 1) * p->dh + 1;
	p->phase = (p->ow + RG_VEC - 1) / RG_VEC * RG_VEC + (p->kw - 1) * p->dw / p->sw + 1;
	p->pitch = p->phases * p->phase;
	if (__builtin_mul_overflow(p->rows, p->phase, &p->floats) ||
	    __builtin_mul_overflow(p->floats, p->phases, &p->floats) || p->floats > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "the padded plane is too large");
	p->floats = (p->floats + 15) / 16 * 16;
	return 0;
}

/* Where the tap in row r and column k sees the first output pixel. */
RG_INLINE int64_t rg_plane_tap(const struct rg_plane *p, int64_t r, int64_t k)
{
	int64_t at = k * p->dw;

	return r * p->dh * p->pitch + at % p->sw * p->phase + at / p->sw;
}

/* Floats from one output row to the next. */
RG_INLINE int64_t rg_plane_row(const struct rg_plane *p)
{
	return (p->kh == 1 ? 1 : p->sh) * p->pitch;
}

/* A library call would cost more than most rows are long. */
RG_INLINE void rg_plane_copy_row(float *restrict to, const float *restrict in, int64_t n, const int64_t stride)
{
	int64_t i = 0;

	if (stride == 1)
		for (; i + RG_VEC <= n; i += RG_VEC)
			rg_vec_store(to + i, rg_vec_load(in + i));
	for (; i < n; i++)
		to[i] = in[i * stride];
}

/* Input plane x to `to`; every element of it is written. */
static void rg_plane_copy(const struct rg_plane *p, const float *x, float *to)
{
	for (int64_t r = 0; r < p->rows; r++) {
		int64_t from_row = r * p->row_step - p->top;
		const float *in = x + from_row * p->iw;

		for (int64_t s = 0; s < p->phases; s++, to += p->phase) {
			/* element i is column i * sw + s - left of the input */
			int64_t base = s - p->left, first, end;

			first = base < 0 ? (-base + p->sw - 1) / p->sw : 0;
			end = base >= p->iw ? 0 : (p->iw - base + p->sw - 1) / p->sw;
			end = end > p->phase ? p->phase : end;
			if (from_row < 0 || from_row >= p->ih || end <= first)
				first = end = p->phase;
			for (int64_t i = 0; i < first; i++)
				to[i] = 0;
			if (p->sw == 1)
				rg_plane_copy_row(to + first, in + base + first, end - first, 1);
			else if (p->sw == 2)
				rg_plane_copy_row(to + first, in + base + first * 2, end - first, 2);
			else
				rg_plane_copy_row(to + first, in + base + first * p->sw, end - first, p->sw);
			for (int64_t i = end; i < p->phase; i++)
				to[i] = 0;
		}
	}
}

#endif
