/*
 * Register-blocked SIMD: a block of C stays in registers over the whole of k, so that each
 * number of A is used for two vectors of columns and each vector of B for all rows. B is
 * read as it lies: no packing, no blocks for the caches.
 */
#include "kernels/ladder/rungs.h"
#include "kernels/ladder/simd.h"

#if LANES == 16
#define ROWS 12 /* 24 sums of 32 registers */
#elif LANES == 8
#define ROWS 6  /* 12 of 16 */
#else
#define ROWS 4  /* 8 of 16 */
#endif

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* `rows` is a constant wherever this is called, so that the sums are registers. */
static inline __attribute__((always_inline)) void block(const struct rg_ladder_product *p, int64_t i, int64_t j,
							 int rows)
{
	const float *a = (const float *)p->a + i * p->k, *b = (const float *)p->b + j;
	float *c = (float *)p->c + i * p->n + j;
	vec sum[ROWS][2];

	for (int r = 0; r < rows; r++)
		sum[r][0] = sum[r][1] = (vec){ 0 };
	for (int64_t l = 0; l < p->k; l++) {
		vec b0 = *(const vec *)(b + l * p->n), b1 = *(const vec *)(b + l * p->n + LANES);

#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			sum[r][0] += a[r * p->k + l] * b0;
			sum[r][1] += a[r * p->k + l] * b1;
		}
	}
	for (int r = 0; r < rows; r++) {
		*(vec *)(c + r * p->n) = sum[r][0];
		*(vec *)(c + r * p->n + LANES) = sum[r][1];
	}
}

/* Columns that fill no block. */
static void rest(const struct rg_ladder_product *p, int64_t i, int64_t j)
{
	const float *a = (const float *)p->a + i * p->k, *b = p->b;

	for (; j < p->n; j++) {
		float sum = 0;

		for (int64_t l = 0; l < p->k; l++)
			sum += a[l] * b[l * p->n + j];
		((float *)p->c)[i * p->n + j] = sum;
	}
}

void LEVEL(rg_ladder_f32_simd)(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const int64_t whole = p->n / (2 * LANES) * (2 * LANES);
	int64_t i = row0;

	for (; i + ROWS <= row1; i += ROWS)
		for (int64_t j = 0; j < whole; j += 2 * LANES)
			block(p, i, j, ROWS);
	for (; i < row1; i++)
		for (int64_t j = 0; j < whole; j += 2 * LANES)
			block(p, i, j, 1);
	for (i = row0; i < row1 && whole < p->n; i++)
		rest(p, i, whole);
}
