/*
 * The inner loops of a depthwise convolution: one output plane from one input plane
 * that has its padding around it (plane.h), sums in registers over all taps.
 */
#ifndef RG_KERNELS_GENERIC_DEPTHWISE_H
#define RG_KERNELS_GENERIC_DEPTHWISE_H

#include "kernels/generic/plane.h"
#include "kernels/generic/tile.h"

/* Sums at a time: enough to hide the latency of a multiply-add. */
enum { RG_DEPTHWISE_SUMS = 8 };

/*
 * `count` rows (at most `lines`) times `vecs` vectors of columns, of which `cols` are
 * stored. Where a row is one block wide, what is stored too much falls on the next row,
 * which comes later; `room` says how many floats from y on may be written.
 */
RG_INLINE void rg_depthwise_block(const struct rg_plane *p, const int64_t *taps, const float *in, const float *wt, float bias,
		     float *y, int64_t count, int64_t cols, int64_t room, const struct rg_epilogue *e, const int lines,
		     const int vecs, const int64_t n_taps)
{
	int64_t next = rg_plane_row(p);
	const float *row[RG_DEPTHWISE_SUMS];
	rg_vec sum[RG_DEPTHWISE_SUMS];

	/* rows beyond the last one repeat it: they are computed and not stored */
	for (int l = 0; l < lines; l++)
		row[l] = in + (l < count ? l : count - 1) * next;
	for (int i = 0; i < lines * vecs; i++)
		sum[i] = rg_vec_all(bias);
	for (int64_t t = 0; t < n_taps; t++) {
		rg_vec f = rg_vec_all(wt[t]);

		for (int l = 0; l < lines; l++)
			for (int v = 0; v < vecs; v++)
				sum[l * vecs + v] = rg_vec_fma(f, rg_vec_load(row[l] + taps[t] + v * RG_VEC), sum[l * vecs + v]);
	}
	if (e->clip)
		for (int i = 0; i < lines * vecs; i++)
			sum[i] = rg_vec_clip(sum[i], rg_vec_all(e->low), rg_vec_all(e->high));
	for (int l = 0; l < lines; l++, y += p->ow, room -= p->ow) {
		if (l >= count)
			break;
		for (int v = 0; v < vecs; v++) {
			int64_t at = (int64_t)v * RG_VEC;

			if (cols - at >= RG_VEC || (cols == p->ow && at < cols && room - at >= RG_VEC))
				rg_vec_store(y + at, sum[l * vecs + v]);
			else
				for (int64_t i = 0; i < cols - at; i++)
					y[at + i] = sum[l * vecs + v][i];
		}
	}
}

RG_INLINE void rg_depthwise_taps(const struct rg_plane *p, const int64_t *taps, const float *plane, const float *wt, float bias,
		    float *y, const struct rg_epilogue *e, const int64_t n_taps)
{
	int64_t lines = p->ow > 2 * RG_VEC ? 2 : p->ow > RG_VEC ? 4 : 8, wide = RG_DEPTHWISE_SUMS / lines * RG_VEC;

	for (int64_t r = 0; r < p->oh; r += lines) {
		const float *row = plane + r * rg_plane_row(p);
		int64_t count = p->oh - r < lines ? p->oh - r : lines;

		for (int64_t at = 0; at < p->ow; at += wide) {
			int64_t cols = p->ow - at < wide ? p->ow - at : wide, room = (p->oh - r) * p->ow - at;
			float *to = y + r * p->ow + at;

			if (lines == 8)
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 8, 1, n_taps);
			else if (lines == 4)
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 4, 2, n_taps);
			else if (cols > 3 * RG_VEC)
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 4, n_taps);
			else if (cols > 2 * RG_VEC)
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 3, n_taps);
			else if (cols > RG_VEC)
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 2, n_taps);
			else
				rg_depthwise_block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 1, n_taps);
		}
		if (e->finish)
			e->finish(y + r * p->ow, count * p->ow, e);
	}
}

/* One output plane. taps: where each lies in the plane (rg_plane_tap), row by row. Of e only clip and finish. */
RG_INLINE void rg_depthwise_rows(const struct rg_plane *p, const int64_t *taps, const float *plane, const float *wt, float bias,
				 float *y, const struct rg_epilogue *e)
{
	if (p->kh == 3 && p->kw == 3)
		rg_depthwise_taps(p, taps, plane, wt, bias, y, e, 9);
	else if (p->kh == 5 && p->kw == 5)
		rg_depthwise_taps(p, taps, plane, wt, bias, y, e, 25);
	else
		rg_depthwise_taps(p, taps, plane, wt, bias, y, e, p->kh * p->kw);
}

#endif
