/* See range.h. */
#include <math.h>

#include "base/range.h"

struct rg_range rg_range_percentile(const struct rg_histogram *h, double percent)
{
	double tail = (1 - percent / 100) / 2, width = (h->high - h->low) / (double)h->n;
	struct rg_range r = { h->low, h->high };

	/* quantiles are upper edges: the bin below the low one is the first that stays */
	if (h->low < 0)
		r.low = fmin(fmax(rg_histogram_quantile(h, tail) - width, h->low), 0);
	if (h->high > 0)
		r.high = fmax(fmin(rg_histogram_quantile(h, 1 - tail), h->high), 0);
	return r;
}
