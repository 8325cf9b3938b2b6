/*
 * A histogram of fixed bins over a known range, of the values that a tensor takes. Exact zeros are
 * counted apart: they are represented exactly whatever the range, and behind a Relu they are most of all.
 */
#ifndef RG_BASE_HISTOGRAM_H
#define RG_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rg_histogram {
	double low, high;       /* bins split [low, high] evenly; high > low */
	int n;                  /* bins */
	uint64_t *bins;         /* n counts, zeros not among them */
	uint64_t zeros;
	uint64_t below, above;  /* outside of the range */
	uint64_t nan;
};

/* Makes one for [low, high], which are finite; where they are equal it is widened. -ENOMEM. */
int rg_histogram_make(struct rg_histogram *h, double low, double high, int n);
void rg_histogram_free(struct rg_histogram *h);
void rg_histogram_add(struct rg_histogram *h, const float *v, size_t n);
/* Values in bins and zeros. */
uint64_t rg_histogram_count(const struct rg_histogram *h);
/* The middle of bin i. */
double rg_histogram_middle(const struct rg_histogram *h, int i);
/* The least x, an edge of a bin, with at least the share q of all values at or below it. */
double rg_histogram_quantile(const struct rg_histogram *h, double q);

#endif
