/* What the files of this folder share: the loops that ladder.c lists. */
#ifndef RG_KERNELS_LADDER_RUNGS_H
#define RG_KERNELS_LADDER_RUNGS_H

#include "kernels/ladder/ladder.h"

void rg_ladder_naive(const struct rg_ladder_product *p, int64_t row0, int64_t row1);
void rg_ladder_ikj(const struct rg_ladder_product *p, int64_t row0, int64_t row1);
void rg_ladder_tiled(const struct rg_ladder_product *p, int64_t row0, int64_t row1);
void rg_ladder_int8_scalar(const struct rg_ladder_product *p, int64_t row0, int64_t row1);

/* The SIMD rungs of a level; simd.h names the levels. */
#define RG_LADDER_SIMD(level) \
	void rg_ladder_f32_simd_##level(const struct rg_ladder_product *p, int64_t row0, int64_t row1); \
	void rg_ladder_int8_simd_##level(const struct rg_ladder_product *p, int64_t row0, int64_t row1); \
	void rg_ladder_int8_blocked_##level(const struct rg_ladder_product *p, int64_t row0, int64_t row1); \
	size_t rg_ladder_int8_pack_bytes_##level(int64_t k, int64_t n); \
	void rg_ladder_int8_pack_##level(int64_t k, int64_t n, const void *b, void *packed);
RG_LADDER_SIMD(base)
RG_LADDER_SIMD(avx2)
RG_LADDER_SIMD(avx512)

#endif
