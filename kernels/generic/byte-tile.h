/*
 * The inner loop of the products of bytes: one tile of the result, a few rows times
 * two vectors of columns, 32-bit sums in registers. Sums are exact modulo 2^32 over
 * the whole range of both operands.
 *
 * k goes in groups of four: a group of a row of A is the 4 bytes of a dword, which is
 * broadcast; a group of a panel of B is a vector of dwords, one a column.
 *
 *	VNNI     A is u8, B is s8: one instruction multiplies and sums four products in 32 bits,
 *	         and nothing can go wrong.
 *	signs    AVX2 and AVX-512 without it: vpmaddubsw multiplies u8 by s8 and sums two
 *	         products in 16 bits, where it saturates. See below.
 *	wide     else: 16 bits times 16 bits, two products in 32.
 *
 * How "signs" stays exact. A is s8 here, and comes as |A| and the mask s of its signs (0 or -1). b ^ s
 * is b, or -b - 1 where a is negative, so that
 *
 *	sum |a| (b ^ s)  =  sum a b  -  sum over a < 0 of |a|
 *
 * and what is taken away does not depend on the column: it is added to the sums of the row at the start. A
 * product is |a| <= 127 times b in [-128, 127], or |a| <= 128 times -b - 1 in [-128, 127]: it lies in
 * [-16384, 16256]. The sum of two lies in [-32768, 32512], which 16 bits hold: nothing saturates, whatever the weights and
 * whatever A. ("pair": 4 of k in xor, multiply, widen, add.)
 *
 * Most weights are small, and then four products have room in 16 bits: with
 *
 *	up(b)  = the most that a product with b can be   = max(127 b, 128 (-b - 1), 0)
 *	low(b) = the least, negative                     = max(-127 b, 128 (b + 1), 0)
 *
 * the sum of four saturates for no A exactly where the four up() sum to at most 32767 and the four low() to at most 32768. The
 * weights are known when they are packed (byte-pack.h), and where that holds for all columns of a panel two
 * results of vpmaddubsw are added before they are widened: "two", 8 of k.
 *
 * Instructions a row and vector of columns and 8 of k (of which multiplications): two 7 (3), pair 8 (4), wide
 * 8 (4) and the widening of A, VNNI 2 (2). Fused multiply-adds of floats would be 8 (8).
 */
#ifndef RG_KERNELS_GENERIC_BYTE_TILE_H
#define RG_KERNELS_GENERIC_BYTE_TILE_H

#include "kernels/generic/generic.h"

#if defined(__SSE2__) && !defined(RG_GENERIC_AVX2) && !defined(RG_GENERIC_AVX512)
#include <emmintrin.h>
#endif

/* Whether A comes as |A| and signs, and the weights decide how they are multiplied, and so in which order. */
#if (defined(RG_GENERIC_AVX2) || defined(RG_GENERIC_AVX512)) && !defined(RG_GENERIC_VNNI) && \
	!defined(RG_GENERIC_AVXVNNI)
#define RG_BYTE_SIGNS 1
#else
#define RG_BYTE_SIGNS 0
#endif
#define RG_BYTE_WIDE (RG_VEC == 4)

/* As many rows as leave room for what a step needs beside the sums. */
#if RG_VEC == 16
#define RG_BYTE_ROWS (RG_BYTE_SIGNS ? 8 : 12)
#elif RG_VEC == 8
#define RG_BYTE_ROWS (RG_BYTE_SIGNS ? 4 : 6)
#else
#define RG_BYTE_ROWS 4
#endif
enum { RG_BYTE_VECS = 2, RG_BYTE_COLS = RG_BYTE_VECS * RG_VEC };

typedef int32_t rg_ivec __attribute__((vector_size(4 * RG_VEC), aligned(4), may_alias));
typedef uint32_t rg_uvec __attribute__((vector_size(4 * RG_VEC), aligned(4), may_alias)); /* where sums may wrap */
typedef uint32_t rg_dword __attribute__((aligned(1), may_alias));

RG_INLINE rg_ivec rg_ivec_load(const void *p)
{
	return *(const rg_ivec *)p;
}

RG_INLINE void rg_ivec_store(void *p, rg_ivec v)
{
	*(rg_ivec *)p = v;
}

RG_INLINE rg_ivec rg_ivec_all(int32_t x)
{
	return x - (rg_ivec){ 0 };
}

/* Modulo 2^32. */
RG_INLINE rg_ivec rg_ivec_add(rg_ivec a, rg_ivec b)
{
	return (rg_ivec)((rg_uvec)a + (rg_uvec)b);
}

/* One panel of packed B. */
struct rg_byte_panel {
	int32_t n_two, n_one;    /* steps of 8 of k, then steps of 4 */
	int64_t order, data;     /* bytes from the start of the packed matrix: numbers of groups (signs only), weights */
};

/* One tile. */
struct rg_byte_tile {
	const uint32_t *a;       /* group g of row r: a[at[g] + r] */
	int64_t signs;           /* its signs are so many dwords further; signs only */
	const int32_t *at;
	const char *packed;      /* B, of which this panel */
	const struct rg_byte_panel *panel;
	const int32_t *start;    /* RG_BYTE_COLS numbers that the sums begin with */
	const int32_t *row_start; /* and one a row; signs only */
	int32_t *c;              /* rows of RG_BYTE_COLS (or RG_VEC) sums, c_row apart */
	int64_t c_row;
};

#ifdef RG_BYTE_COUNT
/* Where a test builds these loops: how many 16-bit sums were checked, and how many were not what they
 * should be. */
extern int64_t rg_byte_sums, rg_byte_saturated;

/* sum: of pairs of products of a and b, and `more` (NULL: nothing). */
static void rg_byte_count(rg_ivec sum, rg_ivec a, rg_ivec b, const rg_ivec *more)
{
	int16_t s[2 * RG_VEC], m[2 * RG_VEC] = { 0 };
	uint8_t x[4 * RG_VEC];
	int8_t w[4 * RG_VEC];

	memcpy(s, &sum, sizeof(s));
	memcpy(x, &a, sizeof(x));
	memcpy(w, &b, sizeof(w));
	if (more)
		memcpy(m, more, sizeof(m));
	for (int i = 0; i < 2 * RG_VEC; i++) {
		rg_byte_sums++;
		rg_byte_saturated += x[2 * i] * w[2 * i] + x[2 * i + 1] * w[2 * i + 1] + m[i] != s[i];
	}
}
#define RG_BYTE_CHECK(SUM, A, B, MORE) rg_byte_count(SUM, A, B, MORE)
#else
#define RG_BYTE_CHECK(SUM, A, B, MORE) ((void)0)
#endif

/* ---- one step ---- */

#if defined(RG_GENERIC_AVX512)
#define RG_I(v) ((__m512i)(v))
#define rg_maddubs(a, b) ((rg_ivec)_mm512_maddubs_epi16(RG_I(a), RG_I(b)))
#define rg_madd(a, b) ((rg_ivec)_mm512_madd_epi16(RG_I(a), RG_I(b)))
#define rg_add16(a, b) ((rg_ivec)_mm512_add_epi16(RG_I(a), RG_I(b)))
#define rg_ones() ((rg_ivec)_mm512_set1_epi16(1))
#define rg_odd(a) ((rg_ivec)_mm512_srli_epi16(RG_I(a), 8))
#elif defined(RG_GENERIC_AVX2)
#define RG_I(v) ((__m256i)(v))
#define rg_maddubs(a, b) ((rg_ivec)_mm256_maddubs_epi16(RG_I(a), RG_I(b)))
#define rg_madd(a, b) ((rg_ivec)_mm256_madd_epi16(RG_I(a), RG_I(b)))
#define rg_add16(a, b) ((rg_ivec)_mm256_add_epi16(RG_I(a), RG_I(b)))
#define rg_ones() ((rg_ivec)_mm256_set1_epi16(1))
#define rg_odd(a) ((rg_ivec)_mm256_srli_epi16(RG_I(a), 8))
#elif defined(__SSE2__)
#define rg_madd(a, b) ((rg_ivec)_mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#define rg_odd(a) ((rg_ivec)_mm_srli_epi16((__m128i)(a), 8))
#else
RG_INLINE rg_ivec rg_madd(rg_ivec a, rg_ivec b)
{
	return rg_ivec_add((a << 16 >> 16) * (b << 16 >> 16), (a >> 16) * (b >> 16));
}
#define rg_odd(a) ((rg_ivec)(((a) >> 8) & rg_ivec_all(0x00ff00ff)))
#endif
#define rg_even(a) ((a) & rg_ivec_all(0x00ff00ff))

/* A dword in all places. Compilers that see what is done with it do part of that with the one dword, and then need two
 * broadcasts from a general register, each slower than one from memory. */
RG_INLINE rg_ivec rg_byte_broadcast(const uint32_t *a)
{
	rg_ivec x = rg_ivec_all((int32_t)*a);

#if defined(RG_GENERIC_AVX512)
	__asm__("" : "+v"(x));
#elif defined(__SSE2__)
	__asm__("" : "+x"(x));
#endif
	return x;
}

#define RG_BYTE_EACH(ROWS, VECS) \
	_Pragma("GCC unroll 12") for (int r = 0; r < (ROWS); r++) \
		_Pragma("GCC unroll 2") for (int v = 0; v < (VECS); v++)

enum { RG_BYTE_STEP = 4 * RG_BYTE_COLS }; /* bytes of 4 of k of a panel */

/* One group of k. rows and vecs are constants at every call. */
RG_INLINE void rg_byte_step(rg_ivec (*sum)[RG_BYTE_VECS], const uint32_t *a, int64_t signs, const int8_t *b, const int rows,
			    const int vecs)
{
	_Pragma("GCC unroll 12") for (int r = 0; r < rows; r++) {
		rg_ivec x = rg_byte_broadcast(a + r);
#if RG_BYTE_SIGNS
		rg_ivec s = rg_byte_broadcast(a + signs + r);
#elif RG_BYTE_WIDE
		rg_ivec even = rg_even(x), odd = rg_odd(x);
#endif

		_Pragma("GCC unroll 2") for (int v = 0; v < vecs; v++) {
			rg_ivec w = rg_ivec_load(b + v * 4 * RG_VEC);
#if defined(RG_GENERIC_VNNI)
			sum[r][v] = (rg_ivec)_mm512_dpbusd_epi32(RG_I(sum[r][v]), RG_I(x), RG_I(w));
#elif defined(RG_GENERIC_AVXVNNI)
			sum[r][v] = (rg_ivec)_mm256_dpbusd_avx_epi32(RG_I(sum[r][v]), RG_I(x), RG_I(w));
#elif RG_BYTE_SIGNS
			rg_ivec two = rg_maddubs(x, w ^ s);

			RG_BYTE_CHECK(two, x, w ^ s, NULL);
			sum[r][v] = rg_ivec_add(sum[r][v], rg_madd(two, rg_ones()));
#else
			sum[r][v] = rg_ivec_add(sum[r][v], rg_madd(even, w));
			sum[r][v] = rg_ivec_add(sum[r][v], rg_madd(odd, rg_ivec_load(b + RG_BYTE_STEP + v * 4 * RG_VEC)));
#endif
		}
	}
}

#if RG_BYTE_SIGNS
/* Two groups whose sums of four are proven. */
RG_INLINE void rg_byte_step_two(rg_ivec (*sum)[RG_BYTE_VECS], const uint32_t *a0, const uint32_t *a1, int64_t signs,
				const int8_t *b, const int rows, const int vecs)
{
	_Pragma("GCC unroll 12") for (int r = 0; r < rows; r++) {
		rg_ivec x0 = rg_byte_broadcast(a0 + r), x1 = rg_byte_broadcast(a1 + r);
		rg_ivec s0 = rg_byte_broadcast(a0 + signs + r), s1 = rg_byte_broadcast(a1 + signs + r);

		_Pragma("GCC unroll 2") for (int v = 0; v < vecs; v++) {
			rg_ivec w0 = rg_ivec_load(b + v * 4 * RG_VEC) ^ s0;
			rg_ivec w1 = rg_ivec_load(b + RG_BYTE_STEP + v * 4 * RG_VEC) ^ s1;
			rg_ivec two = rg_maddubs(x0, w0), four = rg_add16(two, rg_maddubs(x1, w1));

			RG_BYTE_CHECK(two, x0, w0, NULL);
			RG_BYTE_CHECK(four, x1, w1, &two);
			sum[r][v] = rg_ivec_add(sum[r][v], rg_madd(four, rg_ones()));
		}
	}
}
#endif

/* rows and vecs are constants at every call. */
RG_INLINE void rg_byte_tile_run(const struct rg_byte_tile *t, const int rows, const int vecs)
{
	const struct rg_byte_panel *p = t->panel;
	const int8_t *b = (const int8_t *)(t->packed + p->data);
	rg_ivec sum[RG_BYTE_ROWS][RG_BYTE_VECS];
	const int32_t *at = t->at;
	int64_t i = 0;

	RG_BYTE_EACH(rows, vecs)
		sum[r][v] = rg_ivec_load(t->start + v * RG_VEC);
#if RG_BYTE_SIGNS
	const uint32_t *order = (const uint32_t *)(t->packed + p->order);

	RG_BYTE_EACH(rows, vecs)
		sum[r][v] = rg_ivec_add(sum[r][v], rg_ivec_all(t->row_start[r]));
	for (int64_t q = 0; q < p->n_two; q++, order += 2, b += 2 * RG_BYTE_STEP)
		rg_byte_step_two(sum, t->a + at[order[0]], t->a + at[order[1]], t->signs, b, rows, vecs);
	for (; i < p->n_one; i++, b += RG_BYTE_STEP)
		rg_byte_step(sum, t->a + at[order[i]], t->signs, b, rows, vecs);
#else
	const int64_t step = RG_BYTE_WIDE ? 2 * RG_BYTE_STEP : RG_BYTE_STEP;

	for (; i + 2 <= p->n_one; i += 2, b += 2 * step)
		_Pragma("GCC unroll 2") for (int q = 0; q < 2; q++) {
			for (int v = 0; v < step; v += 64)
				__builtin_prefetch(b + 16 * RG_BYTE_STEP + q * step + v, 0, 3);
			rg_byte_step(sum, t->a + at[i + q], 0, b + q * step, rows, vecs);
		}
	for (; i < p->n_one; i++, b += step)
		rg_byte_step(sum, t->a + at[i], 0, b, rows, vecs);
#endif
	RG_BYTE_EACH(rows, vecs)
		rg_ivec_store(t->c + r * t->c_row + v * RG_VEC, sum[r][v]);
}

#endif
