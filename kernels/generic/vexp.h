/*
 * exp of what is not above 0, a vector at a time: what a softmax takes after its
 * maximum is taken away. exp(x) = 2^n exp(r) as in vmath.h; exp(r) is a polynomial of
 * degree 6 fitted to it on |r| <= ln 2 / 2 (largest relative error 2e-9), taken in pairs,
 * which is shorter than one term after the other. Results below the smallest normal
 * number are 0, so 2^n needs one factor.
 *
 * Error 2 ulp from -87.3 up. -inf gives 0, NaN gives NaN; +inf, which is not for
 * this function, gives no more than rubbish.
 */
#ifndef RG_KERNELS_GENERIC_VEXP_H
#define RG_KERNELS_GENERIC_VEXP_H

#include "kernels/generic/generic.h"

RG_INLINE rg_vec rg_vec_exp_below_0(rg_vec x)
{
	const rg_vec shift = rg_vec_all(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
	const rg_vec least = rg_vec_all(-87.3f);
	rg_mask gone = x < least;
	rg_vec t, n, r, s, p;

	x = rg_vec_pick(gone, least, x);
	t = x * rg_vec_all(1.44269504f) + shift;
	n = t - shift;
	r = x - n * rg_vec_all(0.693359375f);
	r = r + n * rg_vec_all(2.12194440e-4f);
	s = r * r;
	p = s * rg_vec_all(0.001384364441f) + (r * rg_vec_all(0.008374162950f) + rg_vec_all(0.041668001562f));
	p = s * p + (r * rg_vec_all(0.166664317250f) + rg_vec_all(0.499999940395f));
	p = s * p + (r + rg_vec_all(1.0f));
	p = p * (rg_vec)(((rg_mask)t - (rg_mask)shift + 127) << 23);
	return (rg_vec)(~gone & (rg_mask)p);
}

#endif
