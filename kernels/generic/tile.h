/*
 * The inner loop of the matrix products: one tile of the result, a few rows
 * times two vectors of columns, summed over k with all sums in registers
 * (Goto, van de Geijn 2008; Van Zee, van de Geijn 2015: "micro-kernel").
 *
 * Rows a tile: as many as leave room for the two vectors of B and one element
 * of A. Each step of k is two loads of B, a broadcast a row, and two multiply-adds
 * a row.
 *
 *	AVX2      6 x 16   12 sums in 16 registers
 *	AVX-512  12 x 32   24 sums in 32 registers
 *	else      4 x  8    8 sums in 16 registers
 */
#ifndef RG_KERNELS_GENERIC_TILE_H
#define RG_KERNELS_GENERIC_TILE_H

#include <stdbool.h>

#include "kernels/generic/generic.h"

enum {
	RG_TILE_ROWS = RG_VEC == 16 ? 12 : RG_VEC == 8 ? 6 : 4,
	RG_TILE_VECS = 2,
	RG_TILE_COLS = RG_TILE_VECS * RG_VEC,
	/*
	 * Steps of k in one turn of the loop. One step of four rows is a loop that takes 10 cycles and
	 * not 8 on a family 23 EPYC; four steps of 12 rows by AVX-512 take 97 % of the peak of a Xeon
	 * (model 207), two 94 %. Four with AVX2 are 3 % slower than two there.
	 */
	RG_TILE_STEPS = RG_VEC == 16 ? 4 : 2,
	/* Whether such a turn fetches what comes next (struct rg_tile, next). */
	RG_TILE_FETCHES = RG_VEC == 16,
};

/* For estimates of cost (kernels/kernel.h), measured on AVX2: the loop takes this much more
 * than its multiply-adds, the start and end of a tile this many of them. */
#define RG_TILE_SLOWER 1.05
#define RG_TILE_ENDS 65

/*
 * What happens to sums before they are stored:
 *
 *	y = finish(clip(alpha * sum + beta * bias + residual))
 *
 * What finishes is a function of rows that have just been stored and are still in
 * L1 (activate.h): any activation, without a copy of each tile for each of them.
 *
 * Bias is one a row, one a column, or a matrix with strides of its own (row or
 * column stride 0: broadcast). Pointers are to the element of row 0, column 0 of
 * the whole result.
 */
struct rg_epilogue {
	float alpha, beta;
	const float *bias;          /* NULL: none */
	int64_t bias_row, bias_col; /* strides; bias_col is 0 or 1 */
	const float *residual;      /* NULL: none; columns are contiguous */
	int64_t residual_row;
	bool clip;                  /* to [low, high]; NaN stays */
	float low, high;
	/* n elements in place; NULL: they are finished. a, b: of the activation */
	void (*finish)(float *y, int64_t n, const struct rg_epilogue *e);
	float a, b, scale, shift;   /* scale * activation + shift */
};

/* Where one tile goes. */
struct rg_tile {
	float *c;                   /* its first element */
	int64_t c_row;
	int64_t cols;               /* of it that are stored: <= vecs * RG_VEC */
	int64_t row, col;           /* place in the whole result, for the epilogue */
	bool add;                   /* to what is there: not the first block of k */
	bool last;                  /* block of k: the epilogue is due */
	const struct rg_epilogue *e;
	/* What will be read soon, which the loop fetches into L2, three lines in RG_TILE_STEPS steps of
	 * k (two are a row of B); NULL: nothing. Only where RG_TILE_FETCHES. */
	const float *next;
	int64_t next_step;          /* floats from three lines to the next three */
};

/* A tile that is not a whole number of vectors wide: from a copy, element by element. */
static void rg_tile_store_part(const struct rg_tile *t, const float *sum, int64_t rows)
{
	const struct rg_epilogue *e = t->e;

	for (int64_t r = 0; r < rows; r++, sum += RG_TILE_COLS) {
		float *to = t->c + r * t->c_row;

		for (int64_t i = 0; i < t->cols; i++) {
			float v = e->alpha * sum[i];

			if (t->add)
				v += to[i];
			if (t->last && e->bias)
				v = rg_fma(e->beta, e->bias[(t->row + r) * e->bias_row + (t->col + i) * e->bias_col], v);
			if (t->last && e->residual)
				v += e->residual[(t->row + r) * e->residual_row + t->col + i];
			if (t->last && e->clip) {
				v = e->low > v ? e->low : v; /* NaN compares false and stays */
				v = e->high < v ? e->high : v;
			}
			to[i] = v;
		}
		if (t->last && e->finish)
			e->finish(to, t->cols, e);
	}
}

/* Unrolled at once, before the compiler decides what lives in memory. */
#define RG_TILE_EACH(ROWS, VECS) \
	_Pragma("GCC unroll 12") for (int r = 0; r < (ROWS); r++) \
		_Pragma("GCC unroll 2") for (int v = 0; v < (VECS); v++)

/* To [low, high]; NaN compares false and stays. The instructions give their second operand then, which compilers
 * do not use for a choice by a mask. */
RG_INLINE rg_vec rg_vec_clip(rg_vec v, rg_vec low, rg_vec high)
{
#if defined(RG_GENERIC_AVX512)
	return (rg_vec)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)v));
#elif defined(RG_GENERIC_AVX2)
	return (rg_vec)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)v));
#else
	v = rg_vec_pick(low > v, low, v);
	return rg_vec_pick(high < v, high, v);
#endif
}

/* Stage by stage, so that each choice is one branch for the whole tile. */
RG_INLINE void rg_tile_store(const struct rg_tile *t, rg_vec (*sum)[RG_TILE_VECS], const int rows,
			     const int vecs)
{
	const struct rg_epilogue *e = t->e;

	if (t->cols != vecs * RG_VEC) {
		float copy[RG_TILE_ROWS * RG_TILE_COLS];

		RG_TILE_EACH(rows, vecs)
			rg_vec_store(copy + r * RG_TILE_COLS + v * RG_VEC, sum[r][v]);
		rg_tile_store_part(t, copy, rows);
		return;
	}
	if (e->alpha != 1)
		RG_TILE_EACH(rows, vecs)
			sum[r][v] *= rg_vec_all(e->alpha);
	if (t->add)
		RG_TILE_EACH(rows, vecs)
			sum[r][v] += rg_vec_load(t->c + r * t->c_row + v * RG_VEC);
	if (t->last && e->bias) {
		const float *from = e->bias + t->row * e->bias_row + t->col * e->bias_col;
		rg_vec beta = rg_vec_all(e->beta);

		if (e->bias_col)
			RG_TILE_EACH(rows, vecs)
				sum[r][v] = rg_vec_fma(beta, rg_vec_load(from + r * e->bias_row + v * RG_VEC), sum[r][v]);
		else
			RG_TILE_EACH(rows, vecs)
				sum[r][v] = rg_vec_fma(beta, rg_vec_all(from[r * e->bias_row]), sum[r][v]);
	}
	if (t->last && e->residual)
		RG_TILE_EACH(rows, vecs)
			sum[r][v] += rg_vec_load(e->residual + (t->row + r) * e->residual_row + t->col + v * RG_VEC);
	if (t->last && e->clip) {
		rg_vec low = rg_vec_all(e->low), high = rg_vec_all(e->high);

		RG_TILE_EACH(rows, vecs)
			sum[r][v] = rg_vec_clip(sum[r][v], low, high);
	}
	RG_TILE_EACH(rows, vecs)
		rg_vec_store(t->c + r * t->c_row + v * RG_VEC, sum[r][v]);
	if (t->last && e->finish)
		for (int64_t r = 0; r < rows; r++)
			e->finish(t->c + r * t->c_row, vecs * RG_VEC, e);
}

/* One step of k: rows of A are a_row apart. */
RG_INLINE void rg_tile_step(rg_vec (*sum)[RG_TILE_VECS], const float *a, int64_t a_row, const float *b, int64_t ahead,
			    const int rows, const int vecs)
{
	rg_vec bv[RG_TILE_VECS];

	if (ahead)
		for (int v = 0; v < vecs; v += 64 / sizeof(rg_vec) ? 64 / (int)sizeof(rg_vec) : 1)
			__builtin_prefetch(b + ahead + v * RG_VEC, 0, 3);
	for (int v = 0; v < vecs; v++)
		bv[v] = rg_vec_load(b + v * RG_VEC);
	_Pragma("GCC unroll 12") for (int r = 0; r < rows; r++) {
		rg_vec f = rg_vec_all(a[r * a_row]);

		for (int v = 0; v < vecs; v++)
			sum[r][v] = rg_vec_fma(f, bv[v], sum[r][v]);
	}
}

/*
 * rows, vecs and by_row are constants at every call. Element (r, i) of A:
 *	by_row   a[r * a_stride + i]   as a matrix lies
 *	else     a[i * a_stride + r]   packed, or the transpose of one
 * Row i of B: b + i * b_step. `ahead`: rows of B that are fetched before they are used,
 * where few rows of A read each only once or twice and memory sets the pace; 0: none.
 */
RG_INLINE void rg_tile_run(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_step,
			   const struct rg_tile *t, const int rows, const int vecs, const bool by_row,
			   const int ahead)
{
	const bool fetches = RG_TILE_FETCHES && !ahead;
	const float *next = t->next ? t->next : b;
	int64_t next_step = t->next ? t->next_step : 0, i = 0;
	rg_vec sum[RG_TILE_ROWS][RG_TILE_VECS];

	RG_TILE_EACH(rows, vecs)
		sum[r][v] = (rg_vec){ 0 };
	/* Where the sums go is needed only at the end, and is far apart. */
	_Pragma("GCC unroll 12") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 2") for (int v = 0; v < vecs * RG_VEC; v += 16)
			__builtin_prefetch(t->c + r * t->c_row + v, 1, RG_VEC == 16 ? 2 : 3);
	for (; i + RG_TILE_STEPS <= k; i += RG_TILE_STEPS, next += next_step)
		_Pragma("GCC unroll 4") for (int s = 0; s < RG_TILE_STEPS; s++, b += b_step) {
			if (fetches && s < 3)
				__builtin_prefetch(next + s * 16, 0, 2);
			rg_tile_step(sum, by_row ? a + i + s : a + (i + s) * a_stride, by_row ? a_stride : 1, b,
				     ahead * b_step, rows, vecs);
		}
	for (; i < k; i++, b += b_step)
		rg_tile_step(sum, by_row ? a + i : a + i * a_stride, by_row ? a_stride : 1, b, ahead * b_step, rows, vecs);
	rg_tile_store(t, sum, rows, vecs);
}

typedef void rg_tile_fn(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_step,
			const struct rg_tile *t);

#endif
