/*
 * A square of vectors, turned or summed: neighbours trade halves, quarters, pairs and
 * single elements.
 */
#ifndef RG_KERNELS_GENERIC_SHUFFLE_H
#define RG_KERNELS_GENERIC_SHUFFLE_H

#include "kernels/generic/generic.h"

/* Of each group of lanes of that size the first (_0) or second (_1) half, of a and of b in turn. */
#if RG_VEC == 16
#define RG_HALVES_0(a, b)                                                                                    \
	__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define RG_HALVES_1(a, b)                                                                                    \
	__builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define RG_QUARTERS_0(a, b)                                                                                  \
	__builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define RG_QUARTERS_1(a, b)                                                                                  \
	__builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define RG_PAIRS_0(a, b)                                                                                     \
	__builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define RG_PAIRS_1(a, b)                                                                                     \
	__builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define RG_EACH_0(a, b)                                                                                      \
	__builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define RG_EACH_1(a, b)                                                                                      \
	__builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#elif RG_VEC == 8
#define RG_QUARTERS_0(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define RG_QUARTERS_1(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define RG_PAIRS_0(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define RG_PAIRS_1(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define RG_EACH_0(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define RG_EACH_1(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#else
#define RG_PAIRS_0(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define RG_PAIRS_1(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#define RG_EACH_0(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define RG_EACH_1(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#endif

/* The sums of each of RG_VEC vectors, in order; x is used up. */
RG_INLINE rg_vec rg_vec_sums(rg_vec x[RG_VEC])
{
#if RG_VEC >= 16
	_Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)
		x[i] = RG_HALVES_0(x[i], x[i + 8]) + RG_HALVES_1(x[i], x[i + 8]);
#endif
#if RG_VEC >= 8
	_Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
		x[i] = RG_QUARTERS_0(x[i], x[i + 4]) + RG_QUARTERS_1(x[i], x[i + 4]);
#endif
	_Pragma("GCC unroll 2") for (int i = 0; i < 2; i++)
		x[i] = RG_PAIRS_0(x[i], x[i + 2]) + RG_PAIRS_1(x[i], x[i + 2]);
	return RG_EACH_0(x[0], x[1]) + RG_EACH_1(x[0], x[1]);
}

/* Trades between vectors i and i + DISTANCE of each group of twice as many. */
#define RG_TRADE(NAME, DISTANCE) \
	_Pragma("GCC unroll 16") for (int i = 0; i < RG_VEC; i++) { \
		if (i & (DISTANCE)) \
			continue; \
		rg_vec t = NAME##_0(x[i], x[i + (DISTANCE)]); \
		x[i + (DISTANCE)] = NAME##_1(x[i], x[i + (DISTANCE)]); \
		x[i] = t; \
	}

/* RG_VEC vectors: element j of vector i becomes element i of vector j. */
RG_INLINE void rg_vec_turn(rg_vec x[RG_VEC])
{
#if RG_VEC >= 16
	RG_TRADE(RG_HALVES, 8)
#endif
#if RG_VEC >= 8
	RG_TRADE(RG_QUARTERS, 4)
#endif
	RG_TRADE(RG_PAIRS, 2)
	RG_TRADE(RG_EACH, 1)
}

#endif
