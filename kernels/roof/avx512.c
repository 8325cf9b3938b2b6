/*
 * Peak and read bandwidth with 512-bit registers. 16 chains cover a latency of
 * 4 cycles on two units twice over.
 */
#include "kernels/roof/table.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAINS 16
#define LANES 16
#define STEP(a) do { (a) = _mm512_fmadd_ps(a, m, c); __asm__("" : "+v"(a)); } while (0)
#define STEP_ALL() do { \
	STEP(a0); STEP(a1); STEP(a2); STEP(a3); STEP(a4); STEP(a5); STEP(a6); STEP(a7); \
	STEP(a8); STEP(a9); STEP(a10); STEP(a11); STEP(a12); STEP(a13); STEP(a14); STEP(a15); \
} while (0)

__attribute__((target("avx512f")))
int64_t rg_roof_flops_avx512(int64_t rounds, float *sink)
{
	__m512 m = _mm512_set1_ps(rg_roof_factor), c = _mm512_set1_ps(rg_roof_addend);
	__m512 zero = _mm512_setzero_ps();
	__m512 a0 = zero, a1 = zero, a2 = zero, a3 = zero, a4 = zero, a5 = zero, a6 = zero, a7 = zero;
	__m512 a8 = zero, a9 = zero, a10 = zero, a11 = zero, a12 = zero, a13 = zero, a14 = zero, a15 = zero;
	float out[LANES], sum = 0;
	int64_t i;

	for (i = 0; i < rounds; i++) {
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
	}
	a0 = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)),
			   _mm512_add_ps(_mm512_add_ps(a4, a5), _mm512_add_ps(a6, a7)));
	a8 = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(a8, a9), _mm512_add_ps(a10, a11)),
			   _mm512_add_ps(_mm512_add_ps(a12, a13), _mm512_add_ps(a14, a15)));
	_mm512_storeu_ps(out, _mm512_add_ps(a0, a8));
	for (i = 0; i < LANES; i++)
		sum += out[i];
	*sink = sum;
	return rounds * 4 * CHAINS * LANES * 2;
}

/* Exclusive-or: as cheap as an addition, and no bit pattern slows it down. */
#define READ(a, k) do { (a) = _mm512_xor_si512(a, _mm512_load_si512(p + i + (k))); } while (0)

__attribute__((target("avx512f")))
int64_t rg_roof_read_avx512(const void *data, size_t size_bytes, float *sink)
{
	const __m512i *p = data;
	__m512i a0 = _mm512_setzero_si512(), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
	size_t i, n = size_bytes / sizeof(*p);
	uint64_t out[8];

	for (i = 0; i + 16 <= n; i += 16) {
		READ(a0, 0); READ(a1, 1); READ(a2, 2); READ(a3, 3);
		READ(a4, 4); READ(a5, 5); READ(a6, 6); READ(a7, 7);
		READ(a0, 8); READ(a1, 9); READ(a2, 10); READ(a3, 11);
		READ(a4, 12); READ(a5, 13); READ(a6, 14); READ(a7, 15);
	}
	a0 = _mm512_xor_si512(_mm512_xor_si512(a0, a1), _mm512_xor_si512(a2, a3));
	a4 = _mm512_xor_si512(_mm512_xor_si512(a4, a5), _mm512_xor_si512(a6, a7));
	_mm512_storeu_si512(out, _mm512_xor_si512(a0, a4));
	*sink = rg_roof_fold(out[0] ^ out[1] ^ out[2] ^ out[3] ^ out[4] ^ out[5] ^ out[6] ^ out[7]);
	return (int64_t)(i * sizeof(*p));
}
#endif
