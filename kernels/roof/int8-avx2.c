/*
 * The peak of exact int8 products with 256-bit registers. Only the addition waits for
 * the step before it, so 10 chains are enough and leave registers for the factors and
 * what lies between; the dot product of AVX-VNNI takes 4 to 5 cycles on two units,
 * which they just cover.
 */
#include "kernels/roof/table.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAINS 10
#define VEC __m256i
#define OP(name) _mm256_##name
#define ZERO _mm256_setzero_si256()
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define DOT(a, x, w) _mm256_dpbusd_avx_epi32(a, x, w)
#define REG "x"
#define TARGET "avx2"
#define TARGET_DOT "avx2,avxvnni"
#define FUNCTION(form) rg_roof_##form##_avx2
#include "kernels/roof/int8-forms.h"
#endif
