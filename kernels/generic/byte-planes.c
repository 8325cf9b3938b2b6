/* See byte-planes.h. */
#include "kernels/generic/byte-planes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* n pixels of four channels, as dwords. */
static void interleave(const uint8_t *const *c, int64_t n, uint32_t flip, uint32_t *restrict to)
{
	int64_t i = 0;

#if defined(__SSE2__)
	__m128i f = _mm_set1_epi32((int32_t)flip);

	for (; i + 16 <= n; i += 16) {
		__m128i x0 = _mm_loadu_si128((const __m128i *)(c[0] + i)), x1 = _mm_loadu_si128((const __m128i *)(c[1] + i));
		__m128i x2 = _mm_loadu_si128((const __m128i *)(c[2] + i)), x3 = _mm_loadu_si128((const __m128i *)(c[3] + i));
		__m128i a0 = _mm_unpacklo_epi8(x0, x1), a1 = _mm_unpackhi_epi8(x0, x1);
		__m128i b0 = _mm_unpacklo_epi8(x2, x3), b1 = _mm_unpackhi_epi8(x2, x3);

		_mm_storeu_si128((__m128i *)(to + i), _mm_xor_si128(f, _mm_unpacklo_epi16(a0, b0)));
		_mm_storeu_si128((__m128i *)(to + i + 4), _mm_xor_si128(f, _mm_unpackhi_epi16(a0, b0)));
		_mm_storeu_si128((__m128i *)(to + i + 8), _mm_xor_si128(f, _mm_unpacklo_epi16(a1, b1)));
		_mm_storeu_si128((__m128i *)(to + i + 12), _mm_xor_si128(f, _mm_unpackhi_epi16(a1, b1)));
	}
#endif
	for (; i < n; i++) {
		uint8_t b[4] = { c[0][i], c[1][i], c[2][i], c[3][i] };
		uint32_t x;

		memcpy(&x, b, 4);
		to[i] = x ^ flip;
	}
}

static void set(uint32_t *to, int64_t n, uint32_t x)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = x;
}

/* One phase of a row of the plane, whose dword i is pixel i * sw + base of the input row. */
static void put_phase(const struct rg_plane *p, const uint32_t *row, int64_t base, uint32_t fill, uint32_t *restrict to)
{
	int64_t first = base < 0 ? rg_min((-base + p->sw - 1) / p->sw, p->phase) : 0;
	int64_t end = base >= p->iw ? 0 : rg_min((p->iw - base + p->sw - 1) / p->sw, p->phase);

	end = rg_max(first, end);
	set(to, first, fill);
	if (p->sw == 1)
		memcpy(to + first, row + base + first, (size_t)(end - first) * sizeof(*to));
	else
		for (int64_t i = first; i < end; i++)
			to[i] = row[i * p->sw + base];
	set(to + end, p->phase - end, fill);
}

#if RG_BYTE_SIGNS
/* Makes |x| and the masks of the signs of n dwords. */
static void split(uint32_t *restrict x, uint32_t *restrict signs, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		uint32_t s = (x[i] >> 7 & 0x01010101u) * 255;

		x[i] = (x[i] ^ s) + (s & 0x01010101u); /* at most 127 + 1: no carry */
		signs[i] = s;
	}
}
#endif

void rg_byte_planes_fill(const struct rg_byte_planes *b, const uint8_t *x, uint32_t flip, uint8_t zero, int64_t first,
			 int64_t end, uint32_t *planes, void *row)
{
	const struct rg_plane *p = &b->p;
	uint8_t *none = (uint8_t *)row + 4 * rg_ceil_div(rg_max(p->iw, 1), 16) * 16;
	uint32_t fill = zero * 0x01010101u;
	int64_t area = p->ih * p->iw;

	memset(none, (uint8_t)(zero ^ (uint8_t)flip), (size_t)p->iw);
	for (int64_t q = first; q < end; q++) {
		int64_t channel = q / b->quads * b->channels + q % b->quads * 4;
		int64_t there = rg_min(4, b->channels - q % b->quads * 4);
		uint32_t *to = planes + q * p->floats, *start = to;

		for (int64_t r = 0; r < p->rows; r++, to += p->pitch) {
			int64_t iy = r * p->row_step - p->top;
			const uint8_t *c[4];

			if (iy < 0 || iy >= p->ih) {
				set(to, p->pitch, fill);
				continue;
			}
			for (int i = 0; i < 4; i++)
				c[i] = i < there ? x + (channel + i) * area + iy * p->iw : none;
			interleave(c, p->iw, flip, row);
			for (int64_t s = 0; s < p->phases; s++)
				put_phase(p, row, s - p->left, fill, to + s * p->phase);
		}
#if RG_BYTE_SIGNS
		split(start, start + b->dwords, to - start);
#else
		(void)start;
#endif
	}
}

/* Sums of the four bytes. */
RG_INLINE uint32_t sum_of(uint32_t x)
{
	x = (x & 0x00ff00ffu) + (x >> 8 & 0x00ff00ffu);
	return (x & 0xffffu) + (x >> 16);
}

void rg_byte_planes_sum(const struct rg_byte_planes *b, const uint32_t *planes, int64_t group, int64_t first, int64_t end,
			int32_t *sums, int32_t *negative)
{
	for (int64_t i = first; i < end; i++) {
		if (sums)
			sums[i] = 0;
		if (negative)
			negative[i] = 0;
	}
	for (int64_t q = 0; q < b->quads; q++) {
		const uint32_t *from = planes + (group * b->quads + q) * b->p.floats;

#if RG_BYTE_SIGNS
		const uint32_t *signs = from + b->dwords;

		for (int64_t i = first; i < end && negative; i++)
			negative[i] += (int32_t)sum_of(from[i] & signs[i]);
		for (int64_t i = first; i < end && sums; i++)
			sums[i] += (int32_t)(sum_of(from[i] & ~signs[i]) - sum_of(from[i] & signs[i]));
#else
		for (int64_t i = first; i < end && sums; i++)
			sums[i] += (int32_t)sum_of(from[i]);
#endif
	}
}
