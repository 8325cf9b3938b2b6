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

	if (stride == 1) {
		for (; i + RG_VEC <= n; i += RG_VEC)
			rg_vec_store(to + i, rg_vec_load(in + i));
		if (i < n && n >= RG_VEC) { /* again the end of it */
			rg_vec_store(to + n - RG_VEC, rg_vec_load(in + n - RG_VEC));
			return;
		}
	}
	for (; i < n; i++)
		to[i] = in[i * stride];
}

RG_INLINE void rg_plane_zero(float *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = 0;
}

/* Rows [r0, r1) of one phase, whose elements [first, end) lie in the input from `in` on. */
RG_INLINE void rg_plane_copy_rows(const struct rg_plane *p, const float *in, float *to, int64_t r0, int64_t r1,
				  int64_t first, int64_t end, const int64_t stride)
{
	for (int64_t r = r0; r < r1; r++, to += p->pitch, in += p->row_step * p->iw) {
		rg_plane_zero(to, first);
		rg_plane_copy_row(to + first, in, end - first, stride);
		rg_plane_zero(to + end, p->phase - end);
	}
}

/* Input plane x to `to`; every element of its rows is written. */
__attribute__((unused)) static void rg_plane_copy(const struct rg_plane *p, const float *x, float *to)
{
	/* rows [r0, r1) are rows of the input */
	int64_t r0 = (p->top + p->row_step - 1) / p->row_step, r1 = (p->ih + p->top - 1) / p->row_step + 1;

	r0 = r0 > p->rows ? p->rows : r0;
	r1 = r1 > p->rows ? p->rows : r1 < r0 ? r0 : r1;
	rg_plane_zero(to, r0 * p->pitch);
	rg_plane_zero(to + r1 * p->pitch, (p->rows - r1) * p->pitch);
	for (int64_t s = 0; s < p->phases; s++) {
		/* element i is column i * sw + s - left of the input */
		int64_t base = s - p->left, first = base < 0 ? (-base + p->sw - 1) / p->sw : 0;
		int64_t end = base >= p->iw ? 0 : (p->iw - base + p->sw - 1) / p->sw;
		float *row = to + r0 * p->pitch + s * p->phase;
		const float *in;

		first = first > p->phase ? p->phase : first;
		end = end > p->phase ? p->phase : end < first ? first : end;
		in = x + (r0 * p->row_step - p->top) * p->iw + base + first * p->sw;
		if (p->sw == 1)
			rg_plane_copy_rows(p, in, row, r0, r1, first, end, 1);
		else if (p->sw == 2)
			rg_plane_copy_rows(p, in, row, r0, r1, first, end, 2);
		else
			rg_plane_copy_rows(p, in, row, r0, r1, first, end, p->sw);
	}
}

#endif
