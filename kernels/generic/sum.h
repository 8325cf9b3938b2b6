/*
 * Sums over contiguous floats. Four vectors run side by side, each adds at most 16
 * numbers before they are joined and go on in double; so a float never holds a sum
 * of more than 64 terms a lane, and the error is at most 2^-20 of the sum of
 * magnitudes however long the row is; in practice some 2^-23.
 */
#ifndef RG_KERNELS_GENERIC_SUM_H
#define RG_KERNELS_GENERIC_SUM_H

#include "kernels/generic/generic.h"

typedef double rg_dvec __attribute__((vector_size(8 * RG_VEC)));

RG_INLINE rg_vec rg_vec_abs(rg_vec v)
{
	return (rg_vec)((rg_mask)v & 0x7fffffff);
}

/* EXPR of v, a vector or a float, and m, a float. */
#define RG_SUM(NAME, VECTOR_EXPR, FLOAT_EXPR) \
	RG_INLINE double NAME(const float *x, const float m, int64_t n) \
	{ \
		rg_dvec total = { 0 }; \
		double rest = 0; \
		int64_t i = 0; \
\
		(void)m; \
		while (n - i >= RG_VEC) { \
			rg_vec s[4] = { { 0 }, { 0 }, { 0 }, { 0 } }, v; \
			int64_t end = (n - i) / RG_VEC < 64 ? i + (n - i) / RG_VEC * RG_VEC : i + 64 * RG_VEC; \
\
			for (; i + 4 * RG_VEC <= end; i += 4 * RG_VEC) { \
				v = rg_vec_load(x + i); \
				s[0] += VECTOR_EXPR; \
				v = rg_vec_load(x + i + RG_VEC); \
				s[1] += VECTOR_EXPR; \
				v = rg_vec_load(x + i + 2 * RG_VEC); \
				s[2] += VECTOR_EXPR; \
				v = rg_vec_load(x + i + 3 * RG_VEC); \
				s[3] += VECTOR_EXPR; \
			} \
			for (; i < end; i += RG_VEC) { \
				v = rg_vec_load(x + i); \
				s[0] += VECTOR_EXPR; \
			} \
			s[0] = (s[0] + s[1]) + (s[2] + s[3]); \
			total += __builtin_convertvector(s[0], rg_dvec); \
		} \
		for (; i < n; i++) { \
			float v = x[i]; \
\
			rest += (double)(FLOAT_EXPR); \
		} \
		for (int k = 0; k < RG_VEC; k++) \
			rest += total[k]; \
		return rest; \
	}

RG_SUM(rg_fast_sum, v, v)
RG_SUM(rg_fast_sum_abs, rg_vec_abs(v), v < 0 ? -v : v)
RG_SUM(rg_fast_sum_squares, (v - m) * (v - m), (v - m) * (v - m))

/* The same in double, for rows whose sums a float cannot hold. */
#define RG_SLOW_SUM(NAME, EXPR) \
	static double __attribute__((noinline, unused)) NAME(const float *x, double m, int64_t n) \
	{ \
		double sum = 0; \
\
		(void)m; \
		for (int64_t i = 0; i < n; i++) { \
			double v = (double)x[i]; \
\
			sum += (EXPR); \
		} \
		return sum; \
	}
RG_SLOW_SUM(rg_slow_sum, v)
RG_SLOW_SUM(rg_slow_sum_abs, v < 0 ? -v : v)
RG_SLOW_SUM(rg_slow_sum_squares, (v - m) * (v - m))

RG_INLINE double rg_sum(const float *x, int64_t n)
{
	double s = rg_fast_sum(x, 0, n);

	return s - s == 0 ? s : rg_slow_sum(x, 0, n);
}

RG_INLINE double rg_sum_abs(const float *x, int64_t n)
{
	double s = rg_fast_sum_abs(x, 0, n);

	return s - s == 0 ? s : rg_slow_sum_abs(x, 0, n);
}

/* Squares of what is below 1e-19 vanish in a float: that matters where the sum is
 * that small. */
RG_INLINE double rg_sum_squares(const float *x, int64_t n)
{
	double s = rg_fast_sum_squares(x, 0, n);

	return s > 1e-30 && s - s == 0 ? s : rg_slow_sum_squares(x, 0, n);
}

/* Sums of the distances from m and of their squares, n a multiple of 4 RG_VEC, at
 * most 64 of them. */
RG_INLINE void rg_moments_block(const float *x, const float m, int64_t n, rg_vec *sum, rg_vec *squares)
{
	rg_vec a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, p = { 0 }, q = { 0 }, r = { 0 }, s = { 0 }, v;

	for (int64_t i = 0; i < n; i += 4 * RG_VEC) {
		v = rg_vec_load(x + i) - m;
		a += v;
		p += v * v;
		v = rg_vec_load(x + i + RG_VEC) - m;
		b += v;
		q += v * v;
		v = rg_vec_load(x + i + 2 * RG_VEC) - m;
		c += v;
		r += v * v;
		v = rg_vec_load(x + i + 3 * RG_VEC) - m;
		d += v;
		s += v * v;
	}
	*sum = (a + b) + (c + d);
	*squares = (p + q) + (r + s);
}

/*
 * Mean and variance of n > 0 floats. The mean of a sum in float is a first guess,
 * which a row far from 0 leaves some ulp off; what the distances from it sum to
 * puts mean and variance right. The mean is m + *rest.
 */
RG_INLINE float rg_moments(const float *x, int64_t n, double *rest, double *variance)
{
	float m = (float)(rg_sum(x, n) / (double)n);
	double sum = 0, squares = 0;
	int64_t i = 0;

	while (n - i >= 4 * RG_VEC) {
		int64_t end = n - i < 64 * RG_VEC ? i + (n - i) / (4 * RG_VEC) * 4 * RG_VEC : i + 64 * RG_VEC;
		rg_vec a, b;

		rg_moments_block(x + i, m, end - i, &a, &b);
		for (int k = 0; k < RG_VEC; k++) {
			sum += (double)a[k];
			squares += (double)b[k];
		}
		i = end;
	}
	for (; i < n; i++) {
		float d = x[i] - m;

		sum += (double)d;
		squares += (double)d * (double)d;
	}
	if (!(squares > 1e-30 && squares - squares == 0)) {
		sum = rg_slow_sum(x, 0, n) - (double)m * (double)n;
		squares = rg_slow_sum_squares(x, (double)m, n);
	}
	*rest = sum / (double)n;
	*variance = squares / (double)n - *rest * *rest;
	return m;
}

/* The larger of v and b, or the lesser; v where it is NaN, and b where b is. */
RG_INLINE rg_vec rg_vec_extreme(rg_vec v, rg_vec b, const bool is_max)
{
	return rg_vec_pick((rg_mask)(is_max ? v > b : v < b) | (rg_mask)(v != v), v, b);
}

/* The largest or least of `best` and n floats. A NaN is both. */
RG_INLINE float rg_extreme(const float *x, int64_t n, float best, const bool is_max)
{
	rg_vec b[2] = { rg_vec_all(best), rg_vec_all(best) };
	int64_t i = 0;

	for (; i + 2 * RG_VEC <= n; i += 2 * RG_VEC) {
		b[0] = rg_vec_extreme(rg_vec_load(x + i), b[0], is_max);
		b[1] = rg_vec_extreme(rg_vec_load(x + i + RG_VEC), b[1], is_max);
	}
	b[0] = rg_vec_extreme(b[1], b[0], is_max);
	for (int k = 0; k < RG_VEC; k++)
		best = (is_max ? b[0][k] > best : b[0][k] < best) || b[0][k] != b[0][k] ? b[0][k] : best;
	for (; i < n; i++)
		best = (is_max ? x[i] > best : x[i] < best) || x[i] != x[i] ? x[i] : best;
	return best;
}

#endif
