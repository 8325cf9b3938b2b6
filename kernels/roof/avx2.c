/*
 * Peak and read bandwidth with 256-bit registers. 12 chains cover a latency of
 * 4 to 5 cycles on two units, and leave registers for the constants.
 */
#include "kernels/roof/table.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAINS 12
#define LANES 8
#define STEP(a) do { (a) = _mm256_fmadd_ps(a, m, c); __asm__("" : "+x"(a)); } while (0)
#define STEP_ALL() do { \
	STEP(a0); STEP(a1); STEP(a2); STEP(a3); STEP(a4); STEP(a5); \
	STEP(a6); STEP(a7); STEP(a8); STEP(a9); STEP(a10); STEP(a11); \
} while (0)

__attribute__((target("avx2,fma")))
int64_t rg_roof_flops_avx2(int64_t rounds, float *sink)
{
	__m256 m = _mm256_set1_ps(rg_roof_factor), c = _mm256_set1_ps(rg_roof_addend);
	__m256 zero = _mm256_setzero_ps();
	__m256 a0 = zero, a1 = zero, a2 = zero, a3 = zero, a4 = zero, a5 = zero;
	__m256 a6 = zero, a7 = zero, a8 = zero, a9 = zero, a10 = zero, a11 = zero;
	float out[LANES], sum = 0;
	int64_t i;

	for (i = 0; i < rounds; i++) {
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
	}
	a0 = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(a0, a1), _mm256_add_ps(a2, a3)),
			   _mm256_add_ps(_mm256_add_ps(a4, a5), _mm256_add_ps(a6, a7)));
	a0 = _mm256_add_ps(a0, _mm256_add_ps(_mm256_add_ps(a8, a9), _mm256_add_ps(a10, a11)));
	_mm256_storeu_ps(out, a0);
	for (i = 0; i < LANES; i++)
		sum += out[i];
	*sink = sum;
	return rounds * 4 * CHAINS * LANES * 2;
}

/* Exclusive-or: as cheap as an addition, and no bit pattern slows it down. */
#define READ(a, k) do { (a) = _mm256_xor_si256(a, _mm256_load_si256(p + i + (k))); } while (0)

__attribute__((target("avx2")))
int64_t rg_roof_read_avx2(const void *data, size_t size_bytes, float *sink)
{
	const __m256i *p = data;
	__m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
	size_t i, n = size_bytes / sizeof(*p);
	uint64_t out[4];

	for (i = 0; i + 16 <= n; i += 16) {
		READ(a0, 0); READ(a1, 1); READ(a2, 2); READ(a3, 3);
		READ(a4, 4); READ(a5, 5); READ(a6, 6); READ(a7, 7);
		READ(a0, 8); READ(a1, 9); READ(a2, 10); READ(a3, 11);
		READ(a4, 12); READ(a5, 13); READ(a6, 14); READ(a7, 15);
	}
	a0 = _mm256_xor_si256(_mm256_xor_si256(a0, a1), _mm256_xor_si256(a2, a3));
	a4 = _mm256_xor_si256(_mm256_xor_si256(a4, a5), _mm256_xor_si256(a6, a7));
	_mm256_storeu_si256((__m256i *)out, _mm256_xor_si256(a0, a4));
	*sink = rg_roof_fold(out[0] ^ out[1] ^ out[2] ^ out[3]);
	return (int64_t)(i * sizeof(*p));
}
#endif
