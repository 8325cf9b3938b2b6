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
const volatile unsigned char rg_roof_byte = RG_ROOF_BYTE;
const volatile signed char rg_roof_weight_any = -128, rg_roof_weight_pairs = -64, rg_roof_weight_quads = -32;

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

/* 4 chains cover a latency of 3 to 4 cycles on the one multiplier. */
#define BYTE_CHAINS 4
#define BYTE_STEP(a) do { __asm__("" : "+r"(w)); (a) += x * w; __asm__("" : "+r"(a)); } while (0)
#define BYTE_STEP_ALL() do { BYTE_STEP(a0); BYTE_STEP(a1); BYTE_STEP(a2); BYTE_STEP(a3); } while (0)

static int64_t iops_scalar(int64_t rounds, uint32_t *sink)
{
	/* The product modulo 2^32 is the same instruction, and its sum may wrap. */
	uint32_t x = rg_roof_byte, w = (uint32_t)rg_roof_weight_any, a0 = 0, a1 = 0, a2 = 0, a3 = 0;
	int64_t i;

	for (i = 0; i < rounds; i++) {
		BYTE_STEP_ALL();
		BYTE_STEP_ALL();
		BYTE_STEP_ALL();
		BYTE_STEP_ALL();
	}
	*sink = a0 + a1 + a2 + a3;
	return rounds * 4 * BYTE_CHAINS * 2;
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

#define FLOPS(function) .flops = (function)
#define READ(function) .read = (function)
#define ANY(function, name, how) \
	.iops = (function), .form = (name), .weights = RG_ROOF_ANY, .factor = { RG_ROOF_BYTE, -128 }, .method = (how)
#define PAIRS(function, how) \
	.iops = (function), .form = "pairs", .weights = RG_ROOF_PAIRS, .factor = { RG_ROOF_BYTE, -64 }, .method = (how)
#define QUADS(function, how) \
	.iops = (function), .form = "quads", .weights = RG_ROOF_QUADS, .factor = { RG_ROOF_BYTE, -32 }, .method = (how)
#define BY_WIDEN "vpmaddwd of 16 bits, vpaddd: exact for any weights"
#define BY_PAIRS "vpmaddubsw, vpmaddwd, vpaddd: exact where same-sign weights of 2 sum to 128 at most"
#define BY_QUADS "2 vpmaddubsw, vpaddw, vpmaddwd, vpaddd: exact where same-sign weights of 4 sum to 128 at most"
#define BY_VNNI "vpdpbusd: exact for any weights"
/* No test machine has AVX-VNNI: nobody has seen what it reaches. */
#define BY_AVX_VNNI "vpdpbusd: exact for any weights; on no test machine so far, so its sum is checked first"

static const struct rg_roof_kernel kernels[] = {
	{ "fma-f32-scalar", "scalar", 0, FLOPS(flops_scalar) },
	{ "mac-i8-scalar", "scalar", 0, ANY(iops_scalar, "widen", "multiplication and addition of 32 bits: exact for any weights") },
	{ "read-scalar", "scalar", 0, READ(read_scalar) },
#if defined(__x86_64__)
	{ "fma-f32-avx2", "avx2", RG_ISA_AVX2 | RG_ISA_FMA, FLOPS(rg_roof_flops_avx2) },
	{ "mac-i8-widen-avx2", "avx2", RG_ISA_AVX2, ANY(rg_roof_widen_avx2, "widen", BY_WIDEN) },
	{ "mac-i8-pairs-avx2", "avx2", RG_ISA_AVX2, PAIRS(rg_roof_pairs_avx2, BY_PAIRS) },
	{ "mac-i8-quads-avx2", "avx2", RG_ISA_AVX2, QUADS(rg_roof_quads_avx2, BY_QUADS) },
	{ "mac-i8-vnni-avx2", "avx-vnni", RG_ISA_AVX2 | RG_ISA_AVX_VNNI, ANY(rg_roof_vnni_avx2, "vnni", BY_AVX_VNNI) },
	{ "read-avx2", "avx2", RG_ISA_AVX2, READ(rg_roof_read_avx2) },
	{ "fma-f32-avx512", "avx512", RG_ISA_AVX512F, FLOPS(rg_roof_flops_avx512) },
	{ "mac-i8-widen-avx512", "avx512", RG_ISA_AVX512F | RG_ISA_AVX512BW, ANY(rg_roof_widen_avx512, "widen", BY_WIDEN) },
	{ "mac-i8-pairs-avx512", "avx512", RG_ISA_AVX512F | RG_ISA_AVX512BW, PAIRS(rg_roof_pairs_avx512, BY_PAIRS) },
	{ "mac-i8-quads-avx512", "avx512", RG_ISA_AVX512F | RG_ISA_AVX512BW, QUADS(rg_roof_quads_avx512, BY_QUADS) },
	{ "mac-i8-vnni-avx512", "avx512-vnni", RG_ISA_AVX512F | RG_ISA_AVX512_VNNI, ANY(rg_roof_vnni_avx512, "vnni", BY_VNNI) },
	{ "read-avx512", "avx512", RG_ISA_AVX512F, READ(rg_roof_read_avx512) },
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

bool rg_roof_check(const struct rg_roof_kernel *k)
{
	for (int64_t rounds = 0; rounds < 4; rounds++) {
		uint32_t sink = 1;
		int64_t macs = k->iops(rounds, &sink) / 2;

		if ((macs > 0) != (rounds > 0) || sink != (uint32_t)(macs * k->factor[0] * k->factor[1]))
			return false;
	}
	return true;
}
