/* The table of rungs. */
#include "kernels/ladder/ladder.h"

#include <string.h>

#include "kernels/ladder/rungs.h"
#include "sys/cpu.h"

static size_t wide_bytes(int64_t m, int64_t k)
{
	return (size_t)m * (size_t)((k + 1) / 2) * sizeof(int32_t);
}

#define F32(name, idea, level, isa, run) { name, idea, level, false, isa, run, NULL, NULL, NULL }
#define INT8(name, idea, level, isa, run) { name, idea, level, true, isa, run, NULL, NULL, NULL }
#define BLOCKED(level, isa, suffix) \
	{ "blocked", "B widened and in order beforehand; a block of C in registers, a panel of B in L1", level, true, isa, \
	  rg_ladder_int8_blocked_##suffix, rg_ladder_int8_pack_bytes_##suffix, rg_ladder_int8_pack_##suffix, wide_bytes }
#define BY_REGISTERS "a block of C in registers over all of k, vectors of columns; B as it lies"
#define BY_VECTORS "one vector of C at a time; both sides widened to 16 bits where they are used"
#define AVX512 (RG_ISA_AVX512F | RG_ISA_AVX512BW)

static const struct rg_ladder_rung rungs[] = {
	F32("naive", "i, j, k: the definition, B down its columns", "scalar", 0, rg_ladder_naive),
	F32("ikj", "i, k, j: all that is read lies in order", "scalar", 0, rg_ladder_ikj),
	F32("tiled", "ikj in tiles of 32 x 32 x 256, so that B comes from L1", "scalar", 0, rg_ladder_tiled),
#if defined(__x86_64__)
	F32("simd", BY_REGISTERS, "sse2", RG_ISA_SSE2, rg_ladder_f32_simd_base),
	F32("simd", BY_REGISTERS, "avx2", RG_ISA_AVX2 | RG_ISA_FMA, rg_ladder_f32_simd_avx2),
	F32("simd", BY_REGISTERS, "avx512", RG_ISA_AVX512F, rg_ladder_f32_simd_avx512),
#else
	F32("simd", BY_REGISTERS, "base", 0, rg_ladder_f32_simd_base),
#endif
	INT8("scalar", "i, k, j, a byte at a time", "scalar", 0, rg_ladder_int8_scalar),
#if defined(__x86_64__)
	INT8("simd", BY_VECTORS, "sse2", RG_ISA_SSE2, rg_ladder_int8_simd_base),
	INT8("simd", BY_VECTORS, "avx2", RG_ISA_AVX2, rg_ladder_int8_simd_avx2),
	INT8("simd", BY_VECTORS, "avx512", AVX512, rg_ladder_int8_simd_avx512),
	BLOCKED("sse2", RG_ISA_SSE2, base),
	BLOCKED("avx2", RG_ISA_AVX2, avx2),
	BLOCKED("avx512", AVX512, avx512),
#endif
};

int rg_ladder_count(void)
{
	return (int)(sizeof(rungs) / sizeof(rungs[0]));
}

const struct rg_ladder_rung *rg_ladder_at(int i)
{
	return i >= 0 && i < rg_ladder_count() ? &rungs[i] : NULL;
}

const struct rg_ladder_rung *rg_ladder_find(const char *name, bool int8, uint32_t isa)
{
	const struct rg_ladder_rung *best = NULL;

	for (int i = 0; i < rg_ladder_count(); i++)
		if (rungs[i].int8 == int8 && strcmp(rungs[i].name, name) == 0 && !(rungs[i].isa & ~isa))
			best = &rungs[i];
	return best;
}
