/*
 * Statistics on samples of time. All functions take unsorted samples unless
 * they say otherwise; NaN never enters. A result that needs more samples than
 * there are is NAN, never 0.
 */
#ifndef RG_BASE_STATS_H
#define RG_BASE_STATS_H

#include <stddef.h>

struct rg_interval {
	double value, low, high; /* NAN where unknown */
};

/* Sorts ascending, in place. */
void rg_stats_sort(double *v, size_t n);
/* Quantile q in [0,1] of sorted samples, linear interpolation between order
 * statistics (type 7 of Hyndman and Fan, The American Statistician 1996). */
double rg_stats_quantile_sorted(const double *sorted, size_t n, double q);
/* Median of unsorted samples; allocates nothing, reorders v. */
double rg_stats_median(double *v, size_t n);
double rg_stats_mean(const double *v, size_t n);
double rg_stats_stddev(const double *v, size_t n); /* n - 1 in the denominator */
/*
 * Quantile with a distribution-free confidence interval from order statistics
 * (binomial; Conover, Practical Nonparametric Statistics, 3.2), confidence in
 * (0,1), e.g. 0.95. low or high is NAN where the sample is too small to bound
 * that side.
 */
struct rg_interval rg_stats_quantile_ci(const double *sorted, size_t n, double q, double confidence);
/*
 * Ratio of medians on/off of interleaved pairs, with a bootstrap percentile
 * interval (Efron and Tibshirani 1993, chapter 13), resampling pairs, seeded.
 * on[i] and off[i] were measured next to each other.
 */
struct rg_interval rg_stats_ratio_ci(const double *on, const double *off, size_t pairs,
				     double confidence, unsigned long seed);

#endif
