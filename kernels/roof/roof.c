/*
 * The table of roof kernels, and the scalar ones: one element an instruction,
 * a multiplication and an addition where others have a fused one. Empty asm
 * statements tie each chain to a register of its own, so that the vectoriser
 * cannot join them.
 */
#include "kernels/roof/roof.h"

#include "kernels/roof/table.h"
#include "sys/cpu.h"

const volatile float rg_roof_factor = 0.5f, rg_roof_addend = 1.0f;

float rg_roof_fold(uint64_t x)
{
	return (float)((x ^ x >> 16 ^ x >> 32 ^ x >> 48) & 0xffff);
}

#if defined(__x86_64__)
#define TIE(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define TIE(x) __asm__("" : "+w"(x))
#else
#define TIE(x) __asm__("" : "+m"(x))
#endif

/* 14 chains and two constants fill the 16 registers of x86. */
#define CHAINS 14
#define STEP(a) do { (a) = (a) * m + c; TIE(a); } while (0)
#define STEP_ALL() do { \
	STEP(a0); STEP(a1); STEP(a2); STEP(a3); STEP(a4); STEP(a5); STEP(a6); \
	STEP(a7); STEP(a8); STEP(a9); STEP(a10); STEP(a11); STEP(a12); STEP(a13); \
} while (0)

static int64_t flops_scalar(int64_t rounds, float *sink)
{
	float m = rg_roof_factor, c = rg_roof_addend;
	float a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0;
	float a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0, a12 = 0, a13 = 0;
	int64_t i;

	for (i = 0; i < rounds; i++) {
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
		STEP_ALL();
	}
	*sink = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13;
	return rounds * 4 * CHAINS * 2;
}

static int64_t read_scalar(const void *data, size_t size_bytes, float *sink)
{
	const uint64_t *p = data;
	uint64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
	size_t i, n = size_bytes / sizeof(*p);

	for (i = 0; i + 8 <= n; i += 8) {
		a0 ^= p[i];
		a1 ^= p[i + 1];
		a2 ^= p[i + 2];
		a3 ^= p[i + 3];
		__asm__("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3));
		a0 ^= p[i + 4];
		a1 ^= p[i + 5];
		a2 ^= p[i + 6];
		a3 ^= p[i + 7];
		__asm__("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3));
	}
	*sink = rg_roof_fold(a0 ^ a1 ^ a2 ^ a3);
	return (int64_t)(i * sizeof(*p));
}

static const struct rg_roof_kernel kernels[] = {
	{ "fma-f32-scalar", "scalar", 0, flops_scalar, NULL },
	{ "read-scalar", "scalar", 0, NULL, read_scalar },
#if defined(__x86_64__)
	{ "fma-f32-avx2", "avx2", RG_ISA_AVX2 | RG_ISA_FMA, rg_roof_flops_avx2, NULL },
	{ "read-avx2", "avx2", RG_ISA_AVX2, NULL, rg_roof_read_avx2 },
	{ "fma-f32-avx512", "avx512", RG_ISA_AVX512F, rg_roof_flops_avx512, NULL },
	{ "read-avx512", "avx512", RG_ISA_AVX512F, NULL, rg_roof_read_avx512 },
#endif
};

int rg_roof_count(void)
{
	return (int)(sizeof(kernels) / sizeof(kernels[0]));
}

const struct rg_roof_kernel *rg_roof_at(int i)
{
	return i >= 0 && i < rg_roof_count() ? &kernels[i] : NULL;
}
