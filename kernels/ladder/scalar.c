/*
 * The scalar rungs: the same multiply-adds in another order. See ladder.h for the flags
 * that keep the compiler from adding ideas of its own.
 */
#include <string.h>

#include "kernels/ladder/rungs.h"

/* The definition: one sum at a time. B is walked down its columns, a new line each step. */
void rg_ladder_naive(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const float *a = p->a, *b = p->b;
	float *c = p->c;

	for (int64_t i = row0; i < row1; i++) {
		for (int64_t j = 0; j < p->n; j++) {
			float sum = 0;

			for (int64_t l = 0; l < p->k; l++)
				sum += a[i * p->k + l] * b[l * p->n + j];
			c[i * p->n + j] = sum;
		}
	}
}

/* One row of B after the other: all that is read lies in order. */
void rg_ladder_ikj(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const float *a = p->a, *b = p->b;

	for (int64_t i = row0; i < row1; i++) {
		float *c = (float *)p->c + i * p->n;

		memset(c, 0, (size_t)p->n * sizeof(*c));
		for (int64_t l = 0; l < p->k; l++) {
			float x = a[i * p->k + l];

			for (int64_t j = 0; j < p->n; j++)
				c[j] += x * b[l * p->n + j];
		}
	}
}

/* 32 rows of B by 256 columns are 32 KiB, and are used for 32 rows of A before the next. */
#define TILE_ROWS 32
#define TILE_K 32
#define TILE_COLUMNS 256

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* C += A * B of one tile, rows of A k apart, of B and C n apart. */
static void tile(const float *a, int64_t k, const float *b, int64_t n, float *c, int64_t rows, int64_t depth,
		 int64_t columns)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t l = 0; l < depth; l++) {
			float x = a[i * k + l];

			for (int64_t j = 0; j < columns; j++)
				c[i * n + j] += x * b[l * n + j];
		}
}

void rg_ladder_tiled(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const float *a = p->a, *b = p->b;
	float *c = p->c;

	memset(c + row0 * p->n, 0, (size_t)(row1 - row0) * (size_t)p->n * sizeof(*c));
	for (int64_t i0 = row0; i0 < row1; i0 += TILE_ROWS)
		for (int64_t j0 = 0; j0 < p->n; j0 += TILE_COLUMNS)
			for (int64_t l0 = 0; l0 < p->k; l0 += TILE_K)
				tile(a + i0 * p->k + l0, p->k, b + l0 * p->n + j0, p->n, c + i0 * p->n + j0,
				     least(TILE_ROWS, row1 - i0), least(TILE_K, p->k - l0), least(TILE_COLUMNS, p->n - j0));
}

/* Rows of B in order, as in ikj; sums wrap like those of every other int8 rung. */
void rg_ladder_int8_scalar(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const uint8_t *a = p->a;
	const int8_t *b = p->b;

	for (int64_t i = row0; i < row1; i++) {
		uint32_t *c = (uint32_t *)p->c + i * p->n;

		memset(c, 0, (size_t)p->n * sizeof(*c));
		for (int64_t l = 0; l < p->k; l++) {
			int32_t x = a[i * p->k + l];

			for (int64_t j = 0; j < p->n; j++)
				c[j] += (uint32_t)(x * b[l * p->n + j]);
		}
	}
}
