#include "base/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void rg_stats_sort(double *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof(*v), ascending);
}

double rg_stats_quantile_sorted(const double *sorted, size_t n, double q)
{
	double at, whole, frac;
	size_t i;

	if (n == 0 || !(q >= 0 && q <= 1))
		return NAN;
	at = q * (double)(n - 1);
	whole = floor(at);
	frac = at - whole;
	i = (size_t)whole;
	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + frac * (sorted[i + 1] - sorted[i]);
}

double rg_stats_median(double *v, size_t n)
{
	rg_stats_sort(v, n);
	return rg_stats_quantile_sorted(v, n, 0.5);
}

double rg_stats_mean(const double *v, size_t n)
{
	double sum = 0;

	if (n == 0)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

double rg_stats_stddev(const double *v, size_t n)
{
	double mean = rg_stats_mean(v, n), sum = 0;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return sqrt(sum / (double)(n - 1));
}

/*
 * X(r) <= quantile happens with probability P(Bin(n, q) >= r), so for a
 * two-sided interval take the largest r with P(Bin <= r - 1) <= alpha / 2 and
 * the smallest s with P(Bin <= s - 1) >= 1 - alpha / 2, ranks counted from 1.
 */
struct rg_interval rg_stats_quantile_ci(const double *sorted, size_t n, double q, double confidence)
{
	struct rg_interval ci = { rg_stats_quantile_sorted(sorted, n, q), NAN, NAN };
	double tail = (1 - confidence) / 2, cdf = 0;
	double log_q = log(q), log_p = log1p(-q), log_n = lgamma((double)n + 1);
	size_t low = 0, high = 0;

	if (n == 0 || !(q > 0 && q < 1))
		return ci;
	for (size_t k = 0; k < n; k++) { /* after adding, cdf is P(Bin <= k) */
		double log_pmf = log_n - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
				 (double)k * log_q + (double)(n - k) * log_p;

		cdf += exp(log_pmf);
		if (cdf <= tail)
			low = k + 1;
		if (cdf >= 1 - tail) {
			high = k + 1;
			break;
		}
	}
	if (low)
		ci.low = sorted[low - 1];
	if (high)
		ci.high = sorted[high - 1];
	return ci;
}

struct rg_interval rg_stats_ratio_ci(const double *on, const double *off, size_t pairs,
				     double confidence, unsigned long seed)
{
	enum { RESAMPLES = 999 };
	struct rg_interval ci = { NAN, NAN, NAN };
	uint64_t stream = rg_rng_stream(seed, "bootstrap"), draw = 0;
	double ratio[RESAMPLES], *a, *b;

	if (pairs == 0)
		return ci;
	a = rg_calloc(2 * pairs, sizeof(*a));
	if (!a)
		return ci;
	b = a + pairs;
	for (size_t i = 0; i < pairs; i++) {
		a[i] = on[i];
		b[i] = off[i];
	}
	ci.value = rg_stats_median(a, pairs) / rg_stats_median(b, pairs);
	if (pairs >= 4) {
		for (int r = 0; r < RESAMPLES; r++) {
			for (size_t i = 0; i < pairs; i++) {
				size_t j = (size_t)(rg_rng_u64(stream, draw++) % pairs);

				a[i] = on[j];
				b[i] = off[j];
			}
			ratio[r] = rg_stats_median(a, pairs) / rg_stats_median(b, pairs);
		}
		rg_stats_sort(ratio, RESAMPLES);
		ci.low = rg_stats_quantile_sorted(ratio, RESAMPLES, (1 - confidence) / 2);
		ci.high = rg_stats_quantile_sorted(ratio, RESAMPLES, (1 + confidence) / 2);
	}
	rg_free(a);
	return ci;
}
