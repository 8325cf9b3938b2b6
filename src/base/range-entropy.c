/*
 * See range.h. For a threshold behind bin i of the magnitudes:
 *
 *	P   the first i bins, what lies above added to the last one
 *	Q   the first i bins, gathered into L levels, and each level spread evenly over those of its bins that are
 *	    not empty
 *	D(P || Q) = sum P log(P / Q), both of sum 1
 *
 * D of a threshold that clips much is large since P's last bin is, of one that clips nothing since levels are
 * wide. Zeros are exact at every threshold and take no part.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/range.h"

/* A bin that Q says cannot be has infinite divergence; this stands for it. */
#define RARE 1e-9
/* More thresholds than that tell no more apart. */
enum { THRESHOLDS = 512 };

/* Magnitudes in bins of the histogram's width, from 0. NULL: out of memory. */
static double *magnitudes(const struct rg_histogram *h, int *n)
{
	double width = (h->high - h->low) / (double)h->n, most = fmax(fabs(h->low), fabs(h->high));
	double *m;

	*n = (int)ceil(most / width - 1e-9);
	*n = *n > 0 ? *n : 1;
	m = rg_calloc((size_t)*n, sizeof(*m));
	for (int i = 0; m && i < h->n; i++) {
		int at = (int)(fabs(rg_histogram_middle(h, i)) / width);

		m[at < *n ? at : *n - 1] += (double)h->bins[i];
	}
	return m;
}

static double divergence(const double *m, int n, int i, int levels)
{
	double outside = 0, inside = 0, d = 0;

	for (int k = 0; k < n; k++)
		*(k < i ? &inside : &outside) += m[k];
	if (inside <= 0)
		return INFINITY;
	for (int l = 0; l < levels; l++) {
		int from = (int)((int64_t)l * i / levels), to = (int)((int64_t)(l + 1) * i / levels), used = 0;
		double sum = 0;

		for (int k = from; k < to; k++) {
			sum += m[k];
			used += m[k] > 0;
		}
		for (int k = from; k < to; k++) {
			double p = (m[k] + (k == i - 1 ? outside : 0)) / (inside + outside);
			double q = m[k] > 0 ? sum / (double)used / inside : 0;

			if (p > 0)
				d += p * log(p / fmax(q, RARE));
		}
	}
	return d;
}

struct rg_range rg_range_entropy(const struct rg_histogram *h)
{
	bool one_sided = h->low >= 0 || h->high <= 0;
	struct rg_range r = { h->low, h->high };
	double width = (h->high - h->low) / (double)h->n, least = INFINITY;
	int levels = one_sided ? 256 : 128, n, best, step;
	double *m = magnitudes(h, &n);

	if (!m)
		return (struct rg_range){ NAN, NAN };
	best = n;
	step = n / THRESHOLDS > 1 ? n / THRESHOLDS : 1;
	for (int i = n - (n - levels) / step * step; i <= n; i += step) {
		double d = divergence(m, n, i, levels);

		/* of two that are as good, the wider */
		if (d <= least) {
			least = d;
			best = i;
		}
	}
	rg_free(m);
	if (best < n) {
		r.low = fmax(r.low, -(double)best * width);
		r.high = fmin(r.high, (double)best * width);
	}
	return r;
}
