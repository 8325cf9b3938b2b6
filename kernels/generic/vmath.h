/*
 * The functions of activations in single precision, written so that a loop over
 * them vectorises: no branches, no tables, no calls.
 *
 * Errors against the exact value, in units of the last place of the result (of
 * the smallest normal number for results below it). tests/kernels/nn-vmath.c
 * measures them on every level of instructions that the machine has, over every
 * exponent of both signs, and fails beyond:
 *
 *	exp           2      expm1     2      log       2      log1p on [0, 1] 2
 *	sigmoid       4      silu      4      tanh      4      softplus 3
 *	erf           3      mish      6      sin, cos  2      pow      2
 *	gelu          8      gelu_tanh: 2^-21 of |x|
 *
 * sin and cos are for |x| <= 1e6. sigmoid is 0 below -88.73, where exp(-x)
 * overflows, so silu is as well. NaN gives NaN; infinities and overflow are as in
 * C's own functions.
 */
#ifndef RG_KERNELS_GENERIC_VMATH_H
#define RG_KERNELS_GENERIC_VMATH_H

#include <stdbool.h>
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
 * applied in two factors, for results that overflow or are denormal. `low`, up to
 * 0.08, is a part of the exponent that x could not hold.
 */
RG_INLINE float rg_vexp_sum(float x, float low)
{
	const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
	float t, n, r, p;
	uint32_t k, half;

	x = x < -105.0f ? -105.0f : x;
	x = x > 89.0f ? 89.0f : x;
	t = x * 1.44269504f + shift;
	n = t - shift;
	r = x - n * 0.693359375f;
	r = r + (n * 2.12194440e-4f + low);
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

RG_INLINE float rg_vexpf(float x)
{
	return rg_vexp_sum(x, -0.0f); /* which adds nothing to any number: no operation is left */
}

RG_INLINE float rg_vsigmoidf(float x)
{
	return 1.0f / (1.0f + rg_vexpf(-x));
}

RG_INLINE float rg_vsiluf(float x)
{
	return x / (1.0f + rg_vexpf(-x));
}

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), halved on the way for n = 128. */
RG_INLINE float rg_vexpm1f(float x)
{
	const float shift = 12582912.0f;
	float t, n, r, p, half;

	x = x < -20.0f ? -20.0f : x;
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
	p = r + r * r * p;
	half = rg_bits_float((rg_float_bits(t) - rg_float_bits(shift) + 126) << 23);
	return 2.0f * (half * p + (half - 0.5f));
}

/*
 * log(x / 2^scaled) = n ln 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f),
 * log(1 + f) = 2 atanh(s) is f - (f^2/2 - s (f^2/2 + R(s))), which keeps f exact:
 * the form of FreeBSD's msun, e_log.c.
 */
RG_INLINE float rg_vlogf_normal(float x, float scaled)
{
	uint32_t u = rg_float_bits(x) + (0x3f800000 - 0x3f3504f3);
	float n, f, s, z, r, h;

	n = (float)((int32_t)(u >> 23) - 127) - scaled;
	f = rg_bits_float((u & 0x007fffff) + 0x3f3504f3) - 1.0f;
	s = f / (2.0f + f);
	z = s * s;
	r = 2.0f / 11;
	r = r * z + 2.0f / 9;
	r = r * z + 2.0f / 7;
	r = r * z + 2.0f / 5;
	r = r * z + 2.0f / 3;
	r = r * z;
	h = 0.5f * f * f;
	return n * 0.693359375f - ((h - (s * (h + r) - n * 2.12194440e-4f)) - f);
}

RG_INLINE float rg_vlogf(float x)
{
	bool tiny = x < 1.17549435e-38f;
	float y = rg_vlogf_normal(tiny ? x * 8388608.0f : x, tiny ? 23.0f : 0.0f);

	y = x == 0.0f ? -__builtin_inff() : y;
	y = x < 0.0f ? __builtin_nanf("") : y;
	return x == __builtin_inff() || x != x ? x : y;
}

/* log(1 + x) for x in [0, 1]: of the rounded sum, and what the rounding took. */
RG_INLINE float rg_vlog1pf_small(float x)
{
	float u = 1.0f + x;

	return rg_vlogf_normal(u, 0.0f) + (x - (u - 1.0f)) / u;
}

RG_INLINE float rg_vsoftplusf(float x)
{
	float above = x < 0 ? 0.0f : x; /* NaN too */

	return above + rg_vlog1pf_small(rg_vexpf(x < 0 ? x : -x));
}

/* x tanh(softplus(x)) = x w / (w + 2), w = e^x (e^x + 2). */
RG_INLINE float rg_vmishf(float x)
{
	float e = rg_vexpf(x > 20.0f ? 20.0f : x), w = e * (e + 2.0f);

	return x > 20.0f ? x : x * w / (w + 2.0f);
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

/* erf(x) for |x| < 0.9: x times a polynomial in x^2, least largest error. */
RG_INLINE float rg_verf_small(float x)
{
	float s = x * x, p = 8.51314605e-05f;

	p = p * s - 0.000817565041f;
	p = p * s + 0.00520386029f;
	p = p * s - 0.026860509f;
	p = p * s + 0.11283715f;
	p = p * s - 0.37612635f;
	p = p * s + 1.12837917f;
	return p * x;
}

/*
 * factor * erfc(x) for x in [0.85, 10.5]: exp(-x^2) times a polynomial in
 * 1 / (1 + 0.4 x). x^2 is scale * root^2, and is split, since its rounding (and
 * that of x) would count x^2 times over.
 */
RG_INLINE float rg_verfc_large(float x, float root, float scale, float factor)
{
	float t = 1.0f / (1.0f + 0.4f * x), p = -0.115433343f, high, low;

	p = p * t + 0.24108779f;
	p = p * t + 0.0114398265f;
	p = p * t + 0.21090033f;
	p = p * t + 0.199623384f;
	p = p * t + 0.226502717f;
	p = p * t + 0.225649919f;
	p = p * t - 1.13926486e-06f;
	high = rg_bits_float(rg_float_bits(root) & 0xfffff000);
	low = (root - high) * (root + high);
	return factor * p * rg_vexp_sum(-scale * (high * high), -scale * low);
}

/*
 * 1 - erf(x) for x in [0.88, 3.95] to 5e-9, which is enough beside a result near 1:
 * a shorter polynomial in 1 / (1 + 0.4 x), an exponent without parts, and one factor
 * 2^n, since n is above -24.
 */
RG_INLINE float rg_verfc_rough(float x)
{
	const float shift = 12582912.0f;
	float t = 1.0f / (1.0f + 0.4f * x), p = 0.660985066f, e = -x * x, k = e * 1.44269504f + shift, r, q;

	p = p * t - 0.320011414f;
	p = p * t + 0.494542431f;
	p = p * t + 0.158526743f;
	p = p * t + 0.00659502099f;
	r = e - (k - shift) * 0.693147181f;
	q = 1.0f / 720;
	q = q * r + 1.0f / 120;
	q = q * r + 1.0f / 24;
	q = q * r + 1.0f / 6;
	q = q * r + 0.5f;
	q = q * r + 1.0f;
	q = q * r + 1.0f;
	return p * q * rg_bits_float((rg_float_bits(k) - rg_float_bits(shift) + 127) << 23);
}

RG_INLINE float rg_verff(float x)
{
	float a = x < 0 ? -x : x, big;

	big = 1.0f - rg_verfc_rough(a > 3.95f ? 3.95f : a);
	big = x < 0 ? -big : big;
	return a < 0.9f ? rg_verf_small(x) : big;
}

/* x/2 (1 + erf(x / sqrt 2)); where x is below 0, x/2 erfc(-x / sqrt 2). */
RG_INLINE float rg_vgeluf(float x)
{
	float a = x < 0 ? -x : x, m = a > 14.5f ? 14.5f : a, h = 0.5f * x, tail, large;

	tail = rg_verfc_large(m * 0.707106781f, m, 0.5f, h);
	large = x < 0 ? tail : x > 6.0f ? x : x - tail;
	large = x < -14.5f ? x * 0.0f : large;
	return a < 1.25f ? h + h * rg_verf_small(x * 0.707106781f) : large;
}

RG_INLINE float rg_vgelu_tanhf(float x)
{
	/* u doubled: x/2 (1 + tanh(u)) = x sigmoid(2u) */
	return x * rg_vsigmoidf(1.59576912f * (x + 0.044715f * x * x * x));
}

/*
 * sin and cos: x - n pi/2 in double, pi/2 in two parts of which n times the first
 * is exact, then the series of sin or of cos, whichever n mod 4 says.
 */
RG_INLINE float rg_vsincosf(float x, const int quarter)
{
	const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
	double d = (double)x, t = d * 0.63661977236758138 + shift, n = t - shift, r, z, s, c;
	int32_t q = (int32_t)n + quarter;

	r = (d - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11;
	z = r * r;
	s = 1.0 / 362880;
	s = s * z - 1.0 / 5040;
	s = s * z + 1.0 / 120;
	s = s * z - 1.0 / 6;
	s = r + r * z * s;
	c = -1.0 / 3628800;
	c = c * z + 1.0 / 40320;
	c = c * z - 1.0 / 720;
	c = c * z + 1.0 / 24;
	c = c * z - 0.5;
	c = 1.0 + z * c;
	s = q & 1 ? c : s;
	return (float)(q & 2 ? -s : s);
}

/*
 * pow in double: 2^(y log2 |x|), the logarithm by 2 atanh(s) as above, then what
 * C's pow says of signs, zeros, infinities and NaN.
 */
RG_INLINE float rg_vpowf(float x, float y)
{
	float a = x < 0 ? -x : x, up = a < 1.17549435e-38f ? a * 8388608.0f : a, res, half, whole;
	uint32_t u = rg_float_bits(up) + (0x3f800000 - 0x3f3504f3);
	double m, s, z, l, e, n, r, p;
	bool odd, integer;
	int64_t k;

	n = (double)((int32_t)(u >> 23) - 127) - (a < 1.17549435e-38f ? 23.0 : 0.0);
	m = (double)rg_bits_float((u & 0x007fffff) + 0x3f3504f3);
	s = (m - 1) / (m + 1);
	z = s * s;
	l = 1.0 / 11;
	l = l * z + 1.0 / 9;
	l = l * z + 1.0 / 7;
	l = l * z + 1.0 / 5;
	l = l * z + 1.0 / 3;
	l = l * z + 1.0;
	e = (double)y * (n + 2.8853900817779268147 * s * l);
	e = e > 200 ? 200 : e;
	e = e < -200 ? -200 : e;
	n = (e + 6755399441055744.0) - 6755399441055744.0;
	r = (e - n) * 0.69314718055994530942;
	p = 1.0 / 5040;
	p = p * r + 1.0 / 720;
	p = p * r + 1.0 / 120;
	p = p * r + 1.0 / 24;
	p = p * r + 1.0 / 6;
	p = p * r + 0.5;
	p = p * r + 1.0;
	p = p * r + 1.0;
	n = n == n ? n : 0; /* the result is not a number anyhow: p is not */
	k = (int64_t)(int32_t)n + 1023;
	memcpy(&m, &(int64_t){ (int64_t)((uint64_t)k << 52) }, sizeof(m));
	res = (float)(p * m);
	/* |x| of 0, infinity or 1 */
	res = a == 0.0f ? (y < 0 ? __builtin_inff() : 0.0f) : res;
	res = a == __builtin_inff() ? (y < 0 ? 0.0f : __builtin_inff()) : res;
	res = a == 1.0f ? 1.0f : res;
	/* y of infinity: above 1 it grows */
	half = y < 0 ? -y : y;
	res = half == __builtin_inff() && a != 1.0f ? ((a > 1.0f) == (y > 0) ? __builtin_inff() : 0.0f) : res;
	/* whole numbers: above 2^24 all are even */
	whole = (half + 8388608.0f) - 8388608.0f;
	integer = half >= 8388608.0f || whole == half;
	odd = half < 16777216.0f && integer && ((int32_t)(half < 16777216.0f ? half : 0.0f) & 1);
	res = rg_float_bits(x) >> 31 && odd ? -res : res;
	res = x < 0 && !integer && a != __builtin_inff() ? __builtin_nanf("") : res;
	res = x != x || y != y ? x + y : res;
	return y == 0.0f || x == 1.0f ? 1.0f : res;
}

/* Bounds: a comparison with NaN is false, so NaN passes both. */
RG_INLINE float rg_at_least(float v, float low)
{
	return v < low ? low : v;
}

RG_INLINE float rg_at_most(float v, float high)
{
	return v > high ? high : v;
}

RG_INLINE float rg_vhard_sigmoidf(float v, float a, float b)
{
	return rg_at_most(rg_at_least(a * v + b, 0.0f), 1.0f);
}

RG_INLINE float rg_vhard_swishf(float v)
{
	return v * rg_vhard_sigmoidf(v, 1.0f / 6.0f, 0.5f);
}

RG_INLINE float rg_vswishf(float v, float a)
{
	return v / (1.0f + rg_vexpf(-a * v));
}

#endif
