/* The level that a file of this folder is compiled for, and how wide its vectors are. */
#ifndef RG_KERNELS_LADDER_SIMD_H
#define RG_KERNELS_LADDER_SIMD_H

#if defined(RG_LADDER_AVX512)
#define LEVEL(name) name##_avx512
#define LANES 16 /* of 32 bits */
#elif defined(RG_LADDER_AVX2)
#define LEVEL(name) name##_avx2
#define LANES 8
#else
#define LEVEL(name) name##_base
#define LANES 4
#endif

#endif
