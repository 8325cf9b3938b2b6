/*
 * The inner loop of the matrix products here: a few rows of A times a panel of
 * B, which is as wide as a few vectors and packed row after row, so that it is
 * read from start to end. All sums of a block stay in registers.
 *
 * Rows and vectors a block: as many as leave room for one row of the panel and
 * one element of A in 32 (AVX-512) or 16 vector registers.
 */
#ifndef RG_KERNELS_GENERIC_PANEL_H
#define RG_KERNELS_GENERIC_PANEL_H

#include "kernels/generic/generic.h"

enum { RG_PANEL_VECS = 3, RG_PANEL_WIDTH = RG_PANEL_VECS * RG_VEC, RG_PANEL_ROWS = RG_VEC == 16 ? 8 : 4 };

/* A block of `rows` rows and `vecs` vectors; both constants at every call. */
RG_INLINE void rg_panel_block(const float *a, int64_t a_row, int64_t a_step, const float *panel, int64_t k,
			      const float *bias, float *y, int64_t y_row, int64_t count, const int rows,
			      const int vecs)
{
	rg_vec sum[8][RG_PANEL_VECS];
	float tail[RG_PANEL_WIDTH];

	for (int r = 0; r < rows; r++)
		for (int v = 0; v < vecs; v++)
			sum[r][v] = rg_vec_all(bias ? bias[r] : 0);
	for (int64_t t = 0; t < k; t++, panel += RG_PANEL_WIDTH) {
		rg_vec b[RG_PANEL_VECS];

		for (int v = 0; v < vecs; v++)
			b[v] = rg_vec_load(panel + v * RG_VEC);
		for (int r = 0; r < rows; r++) {
			rg_vec f = rg_vec_all(a[r * a_row + t * a_step]);

			for (int v = 0; v < vecs; v++)
				sum[r][v] = rg_vec_fma(f, b[v], sum[r][v]);
		}
	}
	for (int r = 0; r < rows; r++, y += y_row) {
		if (count == vecs * RG_VEC) {
			for (int v = 0; v < vecs; v++)
				rg_vec_store(y + v * RG_VEC, sum[r][v]);
		} else {
			for (int v = 0; v < vecs; v++)
				rg_vec_store(tail + v * RG_VEC, sum[r][v]);
			memcpy(y, tail, (size_t)count * sizeof(*y));
		}
	}
}

RG_INLINE void rg_panel_rows(const float *a, int64_t a_row, int64_t a_step, const float *panel, int64_t k,
			     const float *bias, float *y, int64_t y_row, int64_t count, const int rows)
{
	if (count > 2 * RG_VEC)
		rg_panel_block(a, a_row, a_step, panel, k, bias, y, y_row, count, rows, 3);
	else if (count > RG_VEC)
		rg_panel_block(a, a_row, a_step, panel, k, bias, y, y_row, count, rows, 2);
	else
		rg_panel_block(a, a_row, a_step, panel, k, bias, y, y_row, count, rows, 1);
}

/*
 * Y (m x count, rows y_row apart) = A * panel + bias, with element (r, t) of A
 * at a[r * a_row + t * a_step], the panel k x RG_PANEL_WIDTH, of which `count`
 * columns matter, and bias one a row or NULL.
 */
static void rg_panel_multiply(const float *a, int64_t a_row, int64_t a_step, const float *panel, int64_t k,
			      const float *bias, float *y, int64_t y_row, int64_t m, int64_t count)
{
	int64_t r = 0;

	for (; r + RG_PANEL_ROWS <= m; r += RG_PANEL_ROWS)
		rg_panel_rows(a + r * a_row, a_row, a_step, panel, k, bias ? bias + r : NULL, y + r * y_row, y_row,
			      count, RG_PANEL_ROWS);
	for (; r < m; r++)
		rg_panel_rows(a + r * a_row, a_row, a_step, panel, k, bias ? bias + r : NULL, y + r * y_row, y_row,
			      count, 1);
}

#endif
