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

/* A checksum of all words as a number that a float holds exactly. */
float rg_roof_fold(uint64_t x);

int64_t rg_roof_flops_avx2(int64_t rounds, float *sink);
int64_t rg_roof_flops_avx512(int64_t rounds, float *sink);
int64_t rg_roof_read_avx2(const void *data, size_t size_bytes, float *sink);
int64_t rg_roof_read_avx512(const void *data, size_t size_bytes, float *sink);

#endif
