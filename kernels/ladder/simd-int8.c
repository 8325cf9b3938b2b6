/*
 * int8 by SIMD, exact for any bytes: both sides are widened to 16 bits and two steps of k
 * meet in one 32-bit lane (pmaddwd: two products of 16 bits and their sum). Untiled:
 * widened where it is used, one vector of C at a time. Blocked: B is widened and put in
 * order beforehand, A once a product, and a block of C stays in registers over a part of
 * k whose panel of B stays in L1.
 */
#include "kernels/ladder/rungs.h"
#include "kernels/ladder/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#if LANES == 16
typedef __m512i vec;
#define ROWS 8
#define ZERO() _mm512_setzero_si512()
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define SPREAD(x) _mm512_set1_epi32(x)
#define ADD(a, b) _mm512_add_epi32(a, b)
#define PRODUCTS(a, b) _mm512_madd_epi16(a, b)
#elif LANES == 8
typedef __m256i vec;
#define ROWS 4
#define ZERO() _mm256_setzero_si256()
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define SPREAD(x) _mm256_set1_epi32(x)
#define ADD(a, b) _mm256_add_epi32(a, b)
#define PRODUCTS(a, b) _mm256_madd_epi16(a, b)
#else
typedef __m128i vec;
#define ROWS 4
#define ZERO() _mm_setzero_si128()
#define LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(p), v)
#define SPREAD(x) _mm_set1_epi32(x)
#define ADD(a, b) _mm_add_epi32(a, b)
#define PRODUCTS(a, b) _mm_madd_epi16(a, b)
#endif

/* gcc 12 forgets it where a loop of 512 bits ends in code without vectors, and whoever runs
 * next pays: the scalar rungs took six times as long behind one that left upper halves set. */
#if LANES > 4
#define LEAVE() _mm256_zeroupper()
#else
#define LEAVE() ((void)0)
#endif

/* LANES columns of two rows of B, neighbours of a column side by side, 16 bits each. */
static inline vec widen_pair(const int8_t *b0, const int8_t *b1)
{
#if LANES == 16
	__m128i x = _mm_loadu_si128((const __m128i *)b0), y = _mm_loadu_si128((const __m128i *)b1);

	return _mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(x, y), _mm_unpacklo_epi8(x, y)));
#elif LANES == 8
	__m128i x = _mm_loadl_epi64((const __m128i *)b0), y = _mm_loadl_epi64((const __m128i *)b1);

	return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
#else
	int32_t x, y;
	__m128i pair;

	memcpy(&x, b0, sizeof(x));
	memcpy(&y, b1, sizeof(y));
	pair = _mm_unpacklo_epi8(_mm_cvtsi32_si128(x), _mm_cvtsi32_si128(y));
	/* SSE2 widens by putting the byte above itself and shifting it down with its sign */
	return _mm_srai_epi16(_mm_unpacklo_epi8(pair, pair), 8);
#endif
}

/* Columns that fill no vector. */
static void rest(const struct rg_ladder_product *p, int64_t i, int64_t j)
{
	const uint8_t *a = (const uint8_t *)p->a + i * p->k;
	const int8_t *b = p->b;

	for (; j < p->n; j++) {
		uint32_t sum = 0;

		for (int64_t l = 0; l < p->k; l++)
			sum += (uint32_t)(a[l] * b[l * p->n + j]);
		((uint32_t *)p->c)[i * p->n + j] = sum;
	}
}

void LEVEL(rg_ladder_int8_simd)(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	static const int8_t none[LANES];
	const int8_t *b = p->b;
	const int64_t whole = p->n / LANES * LANES;

	for (int64_t i = row0; i < row1; i++) {
		const uint8_t *a = (const uint8_t *)p->a + i * p->k;

		for (int64_t j = 0; j < whole; j += LANES) {
			vec sum = ZERO();

			for (int64_t l = 0; l < p->k; l += 2) {
				bool two = l + 1 < p->k;
				int32_t x = a[l] | (two ? a[l + 1] << 16 : 0);
				vec w = widen_pair(b + l * p->n + j, two ? b + (l + 1) * p->n + j : none);

				sum = ADD(sum, PRODUCTS(SPREAD(x), w));
			}
			STORE((int32_t *)p->c + i * p->n + j, sum);
		}
		rest(p, i, whole);
	}
	LEAVE();
}

/* ---- blocked ---- */

#define COLUMNS (2 * LANES)
#define PAIRS 128 /* of k: a panel of B is 128 x COLUMNS x 2 x 16 bits, 8 KiB with AVX2 */

static int64_t pairs(int64_t k)
{
	return (k + 1) / 2;
}

/* Panel after panel of whole blocks of columns: for each pair of k, COLUMNS pairs. */
size_t LEVEL(rg_ladder_int8_pack_bytes)(int64_t k, int64_t n)
{
	return (size_t)(n / COLUMNS) * (size_t)pairs(k) * COLUMNS * 2 * sizeof(int16_t);
}

void LEVEL(rg_ladder_int8_pack)(int64_t k, int64_t n, const void *b, void *packed)
{
	const int8_t *w = b;
	int16_t *to = packed;

	for (int64_t j = 0; j + COLUMNS <= n; j += COLUMNS)
		for (int64_t l = 0; l < k; l += 2)
			for (int64_t c = j; c < j + COLUMNS; c++) {
				*to++ = w[l * n + c];
				*to++ = l + 1 < k ? w[(l + 1) * n + c] : 0;
			}
}

/* `rows` is a constant wherever this is called. a: pairs of A, b: a panel of B, both from
 * the first of `count` pairs on; the block of C gets their products added unless `first`. */
static inline __attribute__((always_inline)) void block(const int32_t *a, int64_t a_stride, const int16_t *b,
							 int64_t count, int32_t *c, int64_t n, bool first, int rows)
{
	vec sum[ROWS][2];

	for (int r = 0; r < rows; r++)
		for (int v = 0; v < 2; v++)
			sum[r][v] = first ? ZERO() : LOAD(c + r * n + v * LANES);
	for (int64_t l = 0; l < count; l++) {
		vec b0 = LOAD(b + l * 2 * COLUMNS), b1 = LOAD(b + l * 2 * COLUMNS + COLUMNS);

#pragma GCC unroll 8
		for (int r = 0; r < rows; r++) {
			vec x = SPREAD(a[r * a_stride + l]);

			sum[r][0] = ADD(sum[r][0], PRODUCTS(x, b0));
			sum[r][1] = ADD(sum[r][1], PRODUCTS(x, b1));
		}
	}
	for (int r = 0; r < rows; r++)
		for (int v = 0; v < 2; v++)
			STORE(c + r * n + v * LANES, sum[r][v]);
}

void LEVEL(rg_ladder_int8_blocked)(const struct rg_ladder_product *p, int64_t row0, int64_t row1)
{
	const int64_t all = pairs(p->k), panels = p->n / COLUMNS;
	int32_t *wide = p->wide, *c = p->c;

	for (int64_t i = row0; i < row1; i++) {
		const uint8_t *a = (const uint8_t *)p->a + i * p->k;

		for (int64_t l = 0; l < all; l++)
			wide[i * all + l] = a[2 * l] | (2 * l + 1 < p->k ? a[2 * l + 1] << 16 : 0);
	}
	for (int64_t l = 0; l < all; l += PAIRS) {
		int64_t count = all - l < PAIRS ? all - l : PAIRS;

		for (int64_t panel = 0; panel < panels; panel++) {
			const int16_t *b = (const int16_t *)p->packed + (panel * all + l) * 2 * COLUMNS;
			int64_t i = row0;

			for (; i + ROWS <= row1; i += ROWS)
				block(wide + i * all + l, all, b, count, c + i * p->n + panel * COLUMNS, p->n, l == 0,
				      ROWS);
			for (; i < row1; i++)
				block(wide + i * all + l, all, b, count, c + i * p->n + panel * COLUMNS, p->n, l == 0, 1);
		}
	}
	for (int64_t i = row0; i < row1; i++)
		rest(p, i, panels * COLUMNS);
	LEAVE();
}
#endif
