/* See quantize-work.h: the ranges of activations on calibration data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "session/quantize-work.h"

/* Eight bins a step of eight bits. */
enum { BINS = 2048 };

struct seen {
	double low, high;
	int64_t bad;                /* NaN and infinite ones */
	bool any;
};

static void see_range(void *ctx, int k, const float *v, int64_t n)
{
	struct seen *s = (struct seen *)ctx + k;
	float low = s->any ? (float)s->low : INFINITY, high = s->any ? (float)s->high : -INFINITY;

	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(v[i])) {
			s->bad++;
			continue;
		}
		low = v[i] < low ? v[i] : low;
		high = v[i] > high ? v[i] : high;
	}
	if (low > high)
		return;
	s->low = (double)low;
	s->high = (double)high;
	s->any = true;
}

static void see_histogram(void *ctx, int k, const float *v, int64_t n)
{
	rg_histogram_add((struct rg_histogram *)ctx + k, v, (size_t)n);
}

static int run_all(struct quantize_work *w, see_fn *see, void *ctx, const char *what, struct rg_error *err)
{
	struct trial t = { .w = w, .n_watched = w->n_watched, .watched = w->watched, .see = see, .ctx = ctx };
	int rc = 0;

	for (int i = 0; i < w->calibration.n && !rc; i++) {
		rc = rg_quantize_tell(w, what, (double)i / w->calibration.n, err);
		if (!rc)
			rc = rg_trial_run(&t, &w->calibration, i, err);
	}
	rg_trial_free(&t);
	return rc;
}

static int check_seen(const struct quantize_work *w, const struct seen *s, struct rg_error *err)
{
	for (int k = 0; k < w->n_watched; k++) {
		const char *name = w->r->ranges[k].value;

		if (s[k].bad) {
			rg_error_set(err, -EINVAL, "'%.200s' takes %lld values that are NaN or infinite", name,
				     (long long)s[k].bad);
			return rg_error_hint(err, "it has no range; --keep its operator in float32, or look at the data");
		}
		if (!s[k].any) {
			rg_error_set(err, -EINVAL, "'%.200s' was never computed", name);
			return rg_error_hint(err, "other samples may reach it; --keep leaves its operator in float32");
		}
	}
	return 0;
}

static int find_ranges(struct quantize_work *w, struct rg_error *err)
{
	struct rg_histogram *h = rg_calloc((size_t)w->n_watched + 1, sizeof(*h));
	int rc = h ? 0 : rg_error_nomem(err, (size_t)w->n_watched * sizeof(*h));

	for (int k = 0; k < w->n_watched && !rc; k++) {
		const struct rg_range *r = &w->seen[w->watched[k]];

		if (rg_histogram_make(&h[k], r->low, r->high, BINS))
			rc = rg_error_nomem(err, BINS * sizeof(uint64_t));
	}
	if (!rc)
		rc = run_all(w, see_histogram, h, "histograms", err);
	for (int k = 0; k < w->n_watched && !rc; k++) {
		struct rg_range *r = &w->ranges[w->watched[k]];

		if (w->o->rule == RG_RANGE_PERCENTILE)
			*r = rg_range_percentile(&h[k], w->o->percent);
		else if (w->o->rule == RG_RANGE_ENTROPY)
			*r = rg_range_entropy(&h[k]);
		else
			*r = rg_range_mse(&h[k]);
		if (isnan(r->low))
			rc = rg_error_nomem(err, BINS * sizeof(double));
	}
	for (int k = 0; h && k < w->n_watched; k++)
		rg_histogram_free(&h[k]);
	rg_free(h);
	return rc;
}

int rg_quantize_calibrate(struct quantize_work *w, struct rg_error *err)
{
	struct seen *s;
	int rc;

	if (w->o->how.dynamic)
		return 0;
	s = rg_calloc((size_t)w->n_watched + 1, sizeof(*s));
	if (!s)
		return rg_error_nomem(err, (size_t)w->n_watched * sizeof(*s));
	rc = run_all(w, see_range, s, "ranges", err);
	if (!rc)
		rc = check_seen(w, s, err);
	for (int k = 0; k < w->n_watched && !rc; k++) {
		struct rg_quantized_range *r = &w->r->ranges[k];

		w->seen[w->watched[k]] = w->ranges[w->watched[k]] = (struct rg_range){ s[k].low, s[k].high };
		r->seen_low = s[k].low;
		r->seen_high = s[k].high;
	}
	rg_free(s);
	if (!rc && w->o->rule != RG_RANGE_MINMAX)
		rc = find_ranges(w, err);
	return rc;
}
