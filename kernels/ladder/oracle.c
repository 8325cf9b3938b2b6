/* What every rung must give: the sums in a type that loses nothing that matters. */
#include <string.h>

#include "kernels/ladder/ladder.h"

void rg_ladder_oracle_f32(int64_t m, int64_t k, int64_t n, const float *a, const float *b, double *c)
{
	memset(c, 0, (size_t)m * (size_t)n * sizeof(*c));
	for (int64_t i = 0; i < m; i++)
		for (int64_t l = 0; l < k; l++)
			for (int64_t j = 0; j < n; j++)
				c[i * n + j] += (double)a[i * k + l] * b[l * n + j];
}

void rg_ladder_oracle_int8(int64_t m, int64_t k, int64_t n, const uint8_t *a, const int8_t *b, int64_t *c)
{
	memset(c, 0, (size_t)m * (size_t)n * sizeof(*c));
	for (int64_t i = 0; i < m; i++)
		for (int64_t l = 0; l < k; l++)
			for (int64_t j = 0; j < n; j++)
				c[i * n + j] += (int64_t)a[i * k + l] * b[l * n + j];
}
