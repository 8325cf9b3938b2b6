/*
 * exp, tanh, sigmoid and erf in single precision, written so that a loop over
 * them vectorises: no branches, no tables, no calls.
 *
 * Errors against the exact value, measured by tests/kernels/nn-loops.c over
 * every range:
 *	exp      2 ulp, denormal results exact to 1 unit of the smallest number
 *	sigmoid  4 ulp, 0 below -88.7
 *	tanh     8 ulp
 *	erf      5e-7 absolute, 1e-6 relative
 * NaN gives NaN, infinities and overflow as in C's own functions.
 */
#ifndef RG_KERNELS_GENERIC_VMATH_H
#define RG_KERNELS_GENERIC_VMATH_H

#include <stdint.h>
#include <string.h>

#include "kernels/generic/generic.h"

RG_INLINE uint32_t rg_float_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

RG_INLINE float rg_bits_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/*
 * exp(x) = 2^n * exp(r) with n the nearest integer to x / ln 2, so |r| <= 0.347,
 * where the Taylor series to r^7 is off by less than 1e-8. ln 2 is taken away
 * in two parts, the first with few enough bits that n times it is exact. 2^n is
 * applied in two factors, for results that overflow or are denormal.
 */
RG_INLINE float rg_vexpf(float x)
{
	const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
	float t, n, r, p;
	uint32_t k, half;

	x = x < -105.0f ? -105.0f : x;
	x = x > 89.0f ? 89.0f : x;
	t = x * 1.44269504f + shift;
	n = t - shift;
	r = x - n * 0.693359375f;
	r = r + n * 2.12194440e-4f;
	p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	k = rg_float_bits(t) - rg_float_bits(shift);
	half = (uint32_t)((int32_t)k >> 1);
	return p * rg_bits_float((half + 127) << 23) * rg_bits_float((k - half + 127) << 23);
}

RG_INLINE float rg_vsigmoidf(float x)
{
	return 1.0f / (1.0f + rg_vexpf(-x));
}

/* Near 0 by its series, since 1 - 2 / (exp(2x) + 1) cancels there. */
RG_INLINE float rg_vtanhf(float x)
{
	float a = x < 0 ? -x : x, s = x * x, big, small;

	big = 1.0f - 2.0f / (rg_vexpf(2.0f * a) + 1.0f);
	big = x < 0 ? -big : big;
	small = 62.0f / 2835;
	small = small * s - 17.0f / 315;
	small = small * s + 2.0f / 15;
	small = small * s - 1.0f / 3;
	small = x + x * (s * small);
	return a < 0.3f ? small : big;
}

/* Below 0.5 by its series to x^13; above by Abramowitz and Stegun 7.1.26,
 * whose error is 1.5e-7. */
RG_INLINE float rg_verff(float x)
{
	float a = x < 0 ? -x : x, s = x * x, t, big, small;

	t = 1.0f / (1.0f + 0.3275911f * a);
	big = 1.061405429f;
	big = big * t - 1.453152027f;
	big = big * t + 1.421413741f;
	big = big * t - 0.284496736f;
	big = big * t + 0.254829592f;
	big = 1.0f - big * t * rg_vexpf(-s);
	big = x < 0 ? -big : big;
	small = 1.0f / 9360;
	small = small * s - 1.0f / 1320;
	small = small * s + 1.0f / 216;
	small = small * s - 1.0f / 42;
	small = small * s + 1.0f / 10;
	small = small * s - 1.0f / 3;
	small = small * s + 1.0f;
	small = small * x * 1.128379167f;
	return a < 0.5f ? small : big;
}

#endif
