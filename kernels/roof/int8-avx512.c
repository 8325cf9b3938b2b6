/*
 * The peak of exact int8 products with 512-bit registers. 16 chains cover the 4 to 5
 * cycles of the dot product of AVX512-VNNI on two units.
 */
#include "kernels/roof/table.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAINS 16
#define VEC __m512i
#define OP(name) _mm512_##name
#define ZERO _mm512_setzero_si512()
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define DOT(a, x, w) _mm512_dpbusd_epi32(a, x, w)
#define REG "v"
#define TARGET "avx512f,avx512bw"
#define TARGET_DOT "avx512f,avx512vnni"
#define FUNCTION(form) rg_roof_##form##_avx512
#include "kernels/roof/int8-forms.h"
#endif
