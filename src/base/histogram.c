/* See histogram.h. */
#include "base/histogram.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

int rg_histogram_make(struct rg_histogram *h, double low, double high, int n)
{
	double wide = fmax(fmax(fabs(low), fabs(high)) * 1e-6, 1e-30);

	memset(h, 0, sizeof(*h));
	h->low = low;
	h->high = high > low + wide ? high : low + wide;
	h->n = n;
	h->bins = rg_calloc((size_t)n, sizeof(*h->bins));
	return h->bins ? 0 : -ENOMEM;
}

void rg_histogram_free(struct rg_histogram *h)
{
	rg_free(h->bins);
	memset(h, 0, sizeof(*h));
}

void rg_histogram_add(struct rg_histogram *h, const float *v, size_t n)
{
	double per_unit = (double)h->n / (h->high - h->low);

	for (size_t i = 0; i < n; i++) {
		double x = (double)v[i];
		int at;

		if (isnan(x)) {
			h->nan++;
		} else if (x == 0) {
			h->zeros++;
		} else if (x < h->low) {
			h->below++;
		} else if (x > h->high) {
			h->above++;
		} else {
			at = (int)((x - h->low) * per_unit);
			h->bins[at < h->n ? at : h->n - 1]++;
		}
	}
}

uint64_t rg_histogram_count(const struct rg_histogram *h)
{
	uint64_t sum = h->zeros;

	for (int i = 0; i < h->n; i++)
		sum += h->bins[i];
	return sum;
}

double rg_histogram_middle(const struct rg_histogram *h, int i)
{
	return h->low + ((double)i + 0.5) * (h->high - h->low) / (double)h->n;
}

double rg_histogram_quantile(const struct rg_histogram *h, double q)
{
	double want = q * (double)rg_histogram_count(h), width = (h->high - h->low) / (double)h->n, sum = 0;
	bool zeros_in = h->zeros == 0;

	for (int i = 0; i < h->n; i++) {
		double edge = i + 1 == h->n ? h->high : h->low + (double)(i + 1) * width;

		if (!zeros_in && edge >= 0) {
			zeros_in = true;
			sum += (double)h->zeros;
			if (sum >= want && edge - width <= 0)
				return 0;
		}
		sum += (double)h->bins[i];
		if (sum >= want && sum > 0)
			return edge;
	}
	return h->high;
}
