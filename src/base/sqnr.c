/* See sqnr.h. */
#include "base/sqnr.h"

#include <math.h>

void rg_sqnr_add(struct rg_sqnr *s, const float *exact, const float *other, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double x = (double)exact[i], d = x - (double)other[i];

		if (!isfinite(x))
			continue;
		if (!isfinite(d)) {
			s->broken = true;
			continue;
		}
		s->signal += x * x;
		s->noise += d * d;
		s->count++;
	}
}

double rg_sqnr_db(const struct rg_sqnr *s)
{
	if (s->broken)
		return -INFINITY;
	if (s->count == 0)
		return NAN;
	if (s->noise == 0)
		return INFINITY;
	return 10 * log10(s->signal / s->noise);
}
