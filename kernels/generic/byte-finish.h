/*
 * What becomes of 32-bit sums of products of bytes, a row of a tile at a time: numbers, or
 * bytes again. Scales are one a column.
 */
#ifndef RG_KERNELS_GENERIC_BYTE_FINISH_H
#define RG_KERNELS_GENERIC_BYTE_FINISH_H

#include "kernels/generic/byte-tile.h"

RG_INLINE rg_vec rg_ivec_to_floats(rg_ivec v)
{
	return __builtin_convertvector(v, rg_vec);
}

/* To the nearest, ties to even; |v| < 2^31. */
RG_INLINE rg_ivec rg_vec_to_ints(rg_vec v)
{
#if defined(RG_GENERIC_AVX512)
	return (rg_ivec)_mm512_cvtps_epi32((__m512)v);
#elif defined(RG_GENERIC_AVX2)
	return (rg_ivec)_mm256_cvtps_epi32((__m256)v);
#elif defined(__SSE2__)
	return (rg_ivec)_mm_cvtps_epi32((__m128)v);
#else
	rg_ivec out;

	for (int i = 0; i < RG_VEC; i++)
		out[i] = (int32_t)__builtin_rintf(v[i]);
	return out;
#endif
}

/* The low byte of each. */
RG_INLINE void rg_ivec_store_bytes(uint8_t *to, rg_ivec v)
{
#if defined(RG_GENERIC_AVX512)
	_mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(RG_GENERIC_AVX2)
	const __m256i low = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1,
					     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	__m256i x = _mm256_shuffle_epi8((__m256i)v, low);
	__m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

	_mm_storel_epi64((__m128i *)to, both);
#else
	for (int i = 0; i < RG_VEC; i++)
		to[i] = (uint8_t)v[i];
#endif
}

/* To [low, high]; NaN becomes low. */
RG_INLINE rg_vec rg_vec_clip_to_low(rg_vec v, rg_vec low, rg_vec high)
{
#if defined(RG_GENERIC_AVX512)
	return (rg_vec)_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)low), (__m512)high);
#elif defined(RG_GENERIC_AVX2)
	return (rg_vec)_mm256_min_ps(_mm256_max_ps((__m256)v, (__m256)low), (__m256)high);
#elif defined(__SSE2__)
	return (rg_vec)_mm_min_ps(_mm_max_ps((__m128)v, (__m128)low), (__m128)high);
#else
	v = rg_vec_pick(v > low, v, low);
	return rg_vec_pick(v < high, v, high);
#endif
}

/*
 * y = clip(round(sum * scale) + zero) as bytes. The clip is to what the type holds, less the zero point,
 * before rounding: its ends are whole, so that is the same. `to` has room for whole vectors.
 */
struct rg_byte_round {
	float low, high;         /* of the type, less the zero point */
	int32_t zero;
};

RG_INLINE struct rg_byte_round rg_byte_round_of(bool is_signed, int32_t zero)
{
	float low = is_signed ? -128 : 0;

	return (struct rg_byte_round){ low - (float)zero, low + 255 - (float)zero, zero };
}

RG_INLINE rg_ivec rg_byte_requantize(rg_ivec sum, rg_vec scale, const struct rg_byte_round *k)
{
	rg_vec v = rg_ivec_to_floats(sum) * scale;

	return rg_vec_to_ints(rg_vec_clip_to_low(v, rg_vec_all(k->low), rg_vec_all(k->high))) + rg_ivec_all(k->zero);
}

#endif
