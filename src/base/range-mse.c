/*
 * See range.h. The error of a bin is that of its middle: rounded to the nearest step inside of the range,
 * the distance to the last step outside. Bins are an eighth of a step where the
 * range is whole, so that roundings average out.
 */
#include <math.h>

#include "base/quantize.h"
#include "base/range.h"

enum { CANDIDATES = 128, ROUNDS = 8 };

double rg_range_error(const struct rg_histogram *h, const struct rg_range *r)
{
	struct rg_qparams p = rg_qparams_u8(r->low, r->high);
	double sum = 0, n = (double)rg_histogram_count(h);

	for (int i = 0; i < h->n; i++) {
		double x, d;

		if (!h->bins[i])
			continue;
		x = rg_histogram_middle(h, i);
		d = x - (double)rg_dequantize(rg_quantize((float)x, &p), &p);
		sum += (double)h->bins[i] * d * d;
	}
	return n > 0 ? sum / n : 0;
}

/* Moves one end to where the error is least. Returns whether it moved. */
static bool move_end(const struct rg_histogram *h, struct rg_range *best, double *least, bool top)
{
	double end = top ? h->high : h->low;
	bool moved = false;

	if (top ? end <= 0 : end >= 0)
		return false;
	for (int i = 1; i <= CANDIDATES; i++) {
		struct rg_range r = *best;
		double e;

		*(top ? &r.high : &r.low) = end * (double)i / CANDIDATES;
		e = rg_range_error(h, &r);
		/* a gain below what a bin's middle is worth is none */
		if (e < *least * (1 - 1e-9)) {
			*least = e;
			*best = r;
			moved = true;
		}
	}
	return moved;
}

struct rg_range rg_range_mse(const struct rg_histogram *h)
{
	struct rg_range best = { h->low, h->high };
	double least = rg_range_error(h, &best);

	for (int i = 0; i < ROUNDS; i++) {
		bool high = move_end(h, &best, &least, true);

		if (!move_end(h, &best, &least, false) && !high)
			break;
	}
	return best;
}
