/* What the files of this folder share. */
#ifndef RG_KERNELS_ROOF_TABLE_H
#define RG_KERNELS_ROOF_TABLE_H

#include "kernels/roof/roof.h"

/*
 * Each chain is acc = acc * 0.5 + 1, which settles at 2 and so stays normal,
 * whatever the number of rounds. The two constants are read through a volatile
 * so that no compiler can see that.
 */
extern const volatile float rg_roof_factor, rg_roof_addend;

/*
 * Factors of the int8 chains, read in the same way. With the largest unsigned byte
 * each form runs at the edge of what it is exact for: 255 * -128 for those that take
 * any weights, pairs of -64 and fours of -32 for the others, 255 * 128 in 16 bits.
 */
#define RG_ROOF_BYTE 255
extern const volatile unsigned char rg_roof_byte;
extern const volatile signed char rg_roof_weight_any, rg_roof_weight_pairs, rg_roof_weight_quads;

/* A checksum of all words as a number that a float holds exactly. */
float rg_roof_fold(uint64_t x);

int64_t rg_roof_flops_avx2(int64_t rounds, float *sink);
int64_t rg_roof_flops_avx512(int64_t rounds, float *sink);
int64_t rg_roof_widen_avx2(int64_t rounds, uint32_t *sink);
int64_t rg_roof_pairs_avx2(int64_t rounds, uint32_t *sink);
int64_t rg_roof_quads_avx2(int64_t rounds, uint32_t *sink);
int64_t rg_roof_vnni_avx2(int64_t rounds, uint32_t *sink);
int64_t rg_roof_widen_avx512(int64_t rounds, uint32_t *sink);
int64_t rg_roof_pairs_avx512(int64_t rounds, uint32_t *sink);
int64_t rg_roof_quads_avx512(int64_t rounds, uint32_t *sink);
int64_t rg_roof_vnni_avx512(int64_t rounds, uint32_t *sink);
int64_t rg_roof_read_avx2(const void *data, size_t size_bytes, float *sink);
int64_t rg_roof_read_avx512(const void *data, size_t size_bytes, float *sink);

#endif
