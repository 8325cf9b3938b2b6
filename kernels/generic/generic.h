/*
 * Portable kernels that the compiler vectorises. The same sources are compiled
 * once for every level of vector instructions (meson.build), each time giving
 * tables of kernels that need those bits: "loops", "loops-avx2",
 * "loops-avx512". So the level of the machine, or --isa, decides which runs,
 * and the name in a report says which did. Products of bytes (byte-*.c) have two
 * levels more, of instructions that sum four products: "-avxvnni" and "-vnni".
 *
 * The levels with FMA let the compiler contract a * b + c into one rounding;
 * the reference never does. That difference is within the tests' tolerance.
 * Sums of products ask for it by name (rg_vec_fma, rg_fma): whether a compiler
 * contracts can differ from one column of a result to the next.
 *
 * All of them have been run by the tests at every level (AVX-512: a Xeon, model
 * 207). One that is written where no machine with AVX-512 runs the tests has
 * RG_KERNEL_UNPROVEN at that level.
 *
 * Vectors are GCC's vector extension, which clang has too; loads and stores
 * need no alignment.
 */
#ifndef RG_KERNELS_GENERIC_GENERIC_H
#define RG_KERNELS_GENERIC_GENERIC_H

#include <stdint.h>
#include <string.h>

#if defined(RG_GENERIC_AVX512) || defined(RG_GENERIC_AVX2)
#include <immintrin.h>
#endif

#include "kernels/kernel.h"
#include "sys/cpu.h"

#if defined(RG_GENERIC_VNNI)
#define RG_LEVEL_ISA (RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI | RG_ISA_FMA | RG_ISA_AVX2)
#define RG_LEVEL_NAME(base) base "-vnni"
#define RG_LEVEL_TABLE(name) rg_kernels_generic_##name##_vnni
#define RG_LEVEL_RANK 4
#define RG_VEC 16
#elif defined(RG_GENERIC_AVXVNNI)
#define RG_LEVEL_ISA (RG_ISA_AVX_VNNI | RG_ISA_AVX2 | RG_ISA_FMA)
#define RG_LEVEL_NAME(base) base "-avxvnni"
#define RG_LEVEL_TABLE(name) rg_kernels_generic_##name##_avxvnni
#define RG_LEVEL_RANK 3
#define RG_VEC 8
#elif defined(RG_GENERIC_AVX512)
#define RG_LEVEL_ISA (RG_ISA_AVX512_ALL | RG_ISA_FMA | RG_ISA_AVX2)
#define RG_LEVEL_NAME(base) base "-avx512"
#define RG_LEVEL_TABLE(name) rg_kernels_generic_##name##_avx512
#define RG_LEVEL_EWISE(name) rg_ewise_##name##_avx512
#define RG_LEVEL_RANK 2
#define RG_VEC 16
#elif defined(RG_GENERIC_AVX2)
#define RG_LEVEL_ISA (RG_ISA_AVX2 | RG_ISA_FMA)
#define RG_LEVEL_NAME(base) base "-avx2"
#define RG_LEVEL_TABLE(name) rg_kernels_generic_##name##_avx2
#define RG_LEVEL_EWISE(name) rg_ewise_##name##_avx2
#define RG_LEVEL_RANK 1
#define RG_VEC 8
#else
#define RG_LEVEL_ISA 0u
#define RG_LEVEL_NAME(base) base
#define RG_LEVEL_TABLE(name) rg_kernels_generic_##name
#define RG_LEVEL_EWISE(name) rg_ewise_##name
#define RG_LEVEL_RANK 0
#define RG_VEC 4
#endif

/* A function that one file of a level gives to others of the same level. */
#define RG_LEVEL_FN2(name, level) name##_##level
#if defined(RG_GENERIC_VNNI)
#define RG_LEVEL_FN(name) RG_LEVEL_FN2(name, vnni)
#elif defined(RG_GENERIC_AVXVNNI)
#define RG_LEVEL_FN(name) RG_LEVEL_FN2(name, avxvnni)
#elif defined(RG_GENERIC_AVX512)
#define RG_LEVEL_FN(name) RG_LEVEL_FN2(name, avx512)
#elif defined(RG_GENERIC_AVX2)
#define RG_LEVEL_FN(name) RG_LEVEL_FN2(name, avx2)
#else
#define RG_LEVEL_FN(name) RG_LEVEL_FN2(name, base)
#endif

#define RG_INLINE static inline __attribute__((always_inline))

RG_INLINE int64_t rg_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

RG_INLINE int64_t rg_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Both positive. */
RG_INLINE int64_t rg_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Room of a lane in floats, in whole pairs of cache lines: the processor fetches the other of a
 * pair too, and lanes that wrote to one would take it from each other all the time. */
RG_INLINE int64_t rg_lane_room(int64_t floats)
{
	return rg_ceil_div(floats, 32) * 32;
}

/* RG_VEC floats at any address of a float. */
typedef float rg_vec __attribute__((vector_size(4 * RG_VEC), aligned(4), may_alias));

RG_INLINE rg_vec rg_vec_load(const float *p)
{
	return *(const rg_vec *)p;
}

RG_INLINE void rg_vec_store(float *p, rg_vec v)
{
	*(rg_vec *)p = v;
}

RG_INLINE rg_vec rg_vec_all(float f)
{
	return f - (rg_vec){ 0 };
}

/* a * b + c, rounded once where the level has such an instruction, else twice. */
RG_INLINE rg_vec rg_vec_fma(rg_vec a, rg_vec b, rg_vec c)
{
#if defined(RG_GENERIC_AVX512)
	return (rg_vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(RG_GENERIC_AVX2)
	return (rg_vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	return a * b + c;
#endif
}

/* The same for one element. */
RG_INLINE float rg_fma(float a, float b, float c)
{
#if defined(RG_GENERIC_AVX512) || defined(RG_GENERIC_AVX2)
	return __builtin_fmaf(a, b, c);
#else
	return a * b + c;
#endif
}

typedef int32_t rg_mask __attribute__((vector_size(4 * RG_VEC), aligned(4), may_alias));

/* a where the mask, which a comparison made, is set; else b. */
RG_INLINE rg_vec rg_vec_pick(rg_mask mask, rg_vec a, rg_vec b)
{
	return (rg_vec)((mask & (rg_mask)a) | (~mask & (rg_mask)b));
}

/* Elements that are worth waking another lane for when each takes `cost`
 * quarter-nanoseconds or so: 20 us of work. */
RG_INLINE int64_t rg_grain(int64_t cost)
{
	return 80000 / (cost < 1 ? 1 : cost) + 1;
}

#endif
