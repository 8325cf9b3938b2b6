/*
 * Quantisation, its error and the choice of ranges, held against theory and against
 * brute force over all ranges.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/quantize.h"
#include "base/range.h"
#include "base/rng.h"
#include "base/sqnr.h"

enum { N = 200000 };

static float *make(const char *name, float (*shape)(uint64_t stream, uint64_t i))
{
	float *v = rg_alloc(N * sizeof(*v));
	uint64_t stream = rg_rng_stream(1, name);

	assert_non_null(v);
	for (int i = 0; i < N; i++)
		v[i] = shape(stream, (uint64_t)i);
	return v;
}

static float uniform(uint64_t s, uint64_t i)
{
	return rg_rng_uniform(s, i, -1, 1);
}

/* Box and Muller. */
static float normal(uint64_t s, uint64_t i)
{
	double u = (double)rg_rng_unit(s, 2 * i) + 1e-9, w = (double)rg_rng_unit(s, 2 * i + 1);

	return (float)(sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * w));
}

/* One in 10000 is a hundred times as large. */
static float outliers(uint64_t s, uint64_t i)
{
	return normal(s, i) * (i % 10000 == 77 ? 100.0f : 1.0f);
}

static float relu(uint64_t s, uint64_t i)
{
	return fmaxf(normal(s, i), 0);
}

static double sqnr_of(const float *v, const struct rg_qparams *p)
{
	struct rg_sqnr s = { 0 };

	for (int i = 0; i < N; i++) {
		float back = rg_dequantize(rg_quantize(v[i], p), p);

		rg_sqnr_add(&s, &v[i], &back, 1);
	}
	assert_int_equal(s.count, N);
	return rg_sqnr_db(&s);
}

static void parameters_hold_the_range(void **state)
{
	static const struct { double low, high; } cases[] = {
		{ -1, 1 }, { 0, 6 }, { -3, 0 }, { 2, 5 }, { -5, -2 }, { -0.001, 100 }, { -1e-30, 1e-30 }, { 0, 0 },
		{ -3e38, 3e38 }, { -1e-40, 3 }, { -128, 127 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rg_qparams p = rg_qparams_u8(cases[i].low, cases[i].high);
		double low, high, width = fmax(cases[i].high, 0) - fmin(cases[i].low, 0);

		rg_qparams_range(&p, &low, &high);
		assert_true(p.scale > 0 && isfinite(p.scale) && isnormal(p.scale));
		assert_in_range(p.zero, 0, 255);
		assert_int_equal(rg_quantize(0, &p), p.zero);
		assert_true(rg_dequantize(p.zero, &p) == 0);
		/* rounding the zero point moves the range by half a step at most */
		assert_true(low <= cases[i].low + 1e-6 * width && high >= cases[i].high - 1e-6 * width);
		assert_true(high - low <= 256.0001 * (double)p.scale);
		if (width > 1e-10)
			assert_true(fabs((double)p.scale * 255 / width - 1) < 1e-6);
	}
}

static void quantising_rounds_to_even_and_clips(void **state)
{
	struct rg_qparams p = { .scale = 2, .zero = 3, .least = 0, .most = 255 };
	struct rg_qparams s = rg_qparams_s8(127);

	assert_int_equal(rg_quantize(1, &p), 3);   /* 0.5 to 0 */
	assert_int_equal(rg_quantize(3, &p), 5);   /* 1.5 to 2 */
	assert_int_equal(rg_quantize(-100, &p), 0);
	assert_int_equal(rg_quantize(1e9f, &p), 255);
	assert_int_equal(rg_quantize(INFINITY, &p), 255);
	assert_int_equal(rg_quantize(-INFINITY, &p), 0);
	assert_int_equal(rg_quantize(NAN, &p), 3);
	assert_true(s.scale == 1);
	assert_int_equal(rg_quantize(-500, &s), -127);
	assert_int_equal(rg_quantize(126.4f, &s), 126);
}

static void uniform_noise_has_6_db_a_bit(void **state)
{
	float *v = make("uniform", uniform);

	for (int bits = 2; bits <= 8; bits++) {
		/* 2^b steps over the range: the signal has (2^b step)^2 / 12, the noise step^2 / 12 */
		struct rg_qparams p = { .scale = ldexpf(2, -bits), .zero = 1 << (bits - 1), .least = 0,
					.most = (1 << bits) - 1 };
		double db, want;

		for (int i = 0; i < N; i++) /* in the middle of the range's steps, so that nothing is clipped */
			v[i] = rg_rng_uniform(rg_rng_stream(1, "uniform"), (uint64_t)i, -1 - p.scale / 2,
					      1 - p.scale / 2);
		db = sqnr_of(v, &p);
		/* 6.02 dB a bit, and what the mean of -step / 2 adds to the power of 1/3 */
		want = 20 * log10(2) * bits + 10 * log10(1 + 3 * pow((double)p.scale / 2, 2));
		if (fabs(db - want) > 0.05)
			fail_msg("%d bits: %.3f dB, in theory %.3f", bits, db, want);
	}
	rg_free(v);
}

static void normal_noise_is_as_wide_as_the_step(void **state)
{
	float *v = make("normal", normal);
	struct rg_qparams p = rg_qparams_u8(-5, 5);

	/* power 1 against step^2 / 12 */
	assert_true(fabs(sqnr_of(v, &p) - 10 * log10(12 / pow(10.0 / 255, 2))) < 0.1);
	rg_free(v);
}

static void sqnr_has_its_edges(void **state)
{
	struct rg_sqnr s = { 0 };
	const float a[] = { 3, 4, INFINITY, NAN }, b[] = { 3, 4, 1, 1 }, c[] = { 3, 4.5f, 0, 0 }, d[] = { NAN, 4, 0, 0 };

	assert_true(isnan(rg_sqnr_db(&s)));
	rg_sqnr_add(&s, a, b, 4);
	assert_int_equal(s.count, 2);
	assert_true(rg_sqnr_db(&s) == (double)INFINITY);
	rg_sqnr_add(&s, a, c, 4);
	assert_true(fabs(rg_sqnr_db(&s) - 10 * log10(50 / 0.25)) < 1e-9);
	rg_sqnr_add(&s, a, d, 4);
	assert_true(rg_sqnr_db(&s) == (double)-INFINITY);
}

static void fill(struct rg_histogram *h, const float *v, int bins)
{
	double low = 0, high = 0;

	for (int i = 0; i < N; i++) {
		low = fmin(low, (double)v[i]);
		high = fmax(high, (double)v[i]);
	}
	assert_int_equal(rg_histogram_make(h, low, high, bins), 0);
	rg_histogram_add(h, v, N);
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static void histogram_counts_everything_once(void **state)
{
	const float v[] = { -1, -0.5f, 0, -0.0f, 0.5f, 1, 2, -3, NAN, INFINITY, -INFINITY };
	struct rg_histogram h;

	assert_int_equal(rg_histogram_make(&h, -1, 1, 4), 0);
	rg_histogram_add(&h, v, 11);
	assert_int_equal(h.zeros, 2);
	assert_int_equal(h.below, 2);
	assert_int_equal(h.above, 2);
	assert_int_equal(h.nan, 1);
	assert_int_equal(h.bins[0], 1);
	assert_int_equal(h.bins[1], 1);
	assert_int_equal(h.bins[2], 0);
	assert_int_equal(h.bins[3], 2);
	assert_int_equal(rg_histogram_count(&h), 6);
	assert_true(rg_histogram_middle(&h, 0) == -0.75);
	rg_histogram_free(&h);
	/* a range of one point holds it */
	assert_int_equal(rg_histogram_make(&h, 7, 7, 4), 0);
	rg_histogram_add(&h, &(float){ 7 }, 1);
	assert_int_equal(rg_histogram_count(&h), 1);
	rg_histogram_free(&h);
	rg_alloc_fail_at(1);
	assert_int_equal(rg_histogram_make(&h, 0, 1, 4), -ENOMEM);
	rg_alloc_fail_at(0);
}

static void quantiles_are_those_of_sorted_values(void **state)
{
	static const double qs[] = { 0.0001, 0.01, 0.25, 0.5, 0.9, 0.999, 1 };
	float (*const shapes[])(uint64_t, uint64_t) = { normal, uniform, outliers, relu };

	for (int k = 0; k < 4; k++) {
		float *v = make("quantile", shapes[k]);
		struct rg_histogram h;

		fill(&h, v, 4096);
		qsort(v, N, sizeof(*v), by_value);
		for (int i = 0; i < 7; i++) {
			double want = (double)v[(int)ceil(qs[i] * N) - 1], got = rg_histogram_quantile(&h, qs[i]);

			if (fabs(got - want) > (h.high - h.low) / 4096 + 1e-9)
				fail_msg("shape %d, q %g: %g, sorted %g", k, qs[i], got, want);
		}
		rg_histogram_free(&h);
		rg_free(v);
	}
}

static void percentile_leaves_out_what_it_says(void **state)
{
	float (*const shapes[])(uint64_t, uint64_t) = { normal, uniform, outliers, relu };
	static const double percents[] = { 90, 99, 99.9, 99.99, 100 };

	for (int k = 0; k < 4; k++) {
		float *v = make("percentile", shapes[k]);
		struct rg_histogram h;

		fill(&h, v, 4096);
		for (int i = 0; i < 5; i++) {
			struct rg_range r = rg_range_percentile(&h, percents[i]);
			int out = 0;

			for (int j = 0; j < N; j++)
				out += (double)v[j] < r.low - 1e-6 || (double)v[j] > r.high + 1e-6;
			assert_true(r.low <= 0 && r.high >= 0);
			if (out > N * (1 - percents[i] / 100) + 1)
				fail_msg("shape %d, %g %%: %d of %d left out", k, percents[i], out, N);
			/* and not far fewer: bins are finer than a hundredth */
			if (k < 3 && percents[i] < 99.5 && out < N * (1 - percents[i] / 100) * 0.8 && k != 2)
				fail_msg("shape %d, %g %%: only %d of %d left out", k, percents[i], out, N);
		}
		rg_histogram_free(&h);
		rg_free(v);
	}
}

/* The least error over all pairs of ends on a grid. */
static double least_error(const struct rg_histogram *h, int grid)
{
	double least = INFINITY;

	for (int i = 0; i <= grid; i++)
		for (int j = 0; j <= grid; j++) {
			struct rg_range r = { h->low * i / grid, h->high * j / grid };

			if (i + j > 0)
				least = fmin(least, rg_range_error(h, &r));
		}
	return least;
}

static void mse_is_near_the_best_of_all_pairs(void **state)
{
	float (*const shapes[])(uint64_t, uint64_t) = { normal, uniform, outliers, relu };

	for (int k = 0; k < 4; k++) {
		float *v = make("mse", shapes[k]);
		struct rg_histogram h;
		struct rg_range r, whole;
		double best, got, all;

		fill(&h, v, 512);
		whole = (struct rg_range){ h.low, h.high };
		best = least_error(&h, 64);
		r = rg_range_mse(&h);
		got = rg_range_error(&h, &r);
		all = rg_range_error(&h, &whole);
		if (!(got <= best * 1.05) || !(got <= all))
			fail_msg("shape %d: [%g, %g] has %g, brute force %g, all of it %g", k, r.low, r.high, got, best,
				 all);
		if (k == 0 && !(got < all * 0.9))
			fail_msg("the tails of a normal distribution are not cut: %g of %g", got, all);
		rg_histogram_free(&h);
		rg_free(v);
	}
}

/* The error on the histogram is that on the values themselves. */
static void error_of_a_histogram_is_that_of_its_values(void **state)
{
	static const struct rg_range ranges[] = { { -5, 5 }, { -2, 3 }, { -0.5, 4 }, { 0, 1 } };
	float *v = make("error", normal);
	struct rg_histogram h;

	fill(&h, v, 8192);
	for (int i = 0; i < 4; i++) {
		struct rg_qparams p = rg_qparams_u8(ranges[i].low, ranges[i].high);
		double sum = 0, got = rg_range_error(&h, &ranges[i]);

		for (int j = 0; j < N; j++) {
			double d = (double)(v[j] - rg_dequantize(rg_quantize(v[j], &p), &p));

			sum += d * d;
		}
		if (fabs(got / (sum / N) - 1) > 0.02)
			fail_msg("range %d: %g, of the values %g", i, got, sum / N);
	}
	rg_histogram_free(&h);
	rg_free(v);
}

/* The definition in the other order: P and Q written out whole, then compared. */
static double relative_entropy(const double *m, int n, int i, int levels)
{
	double *p = calloc((size_t)i, sizeof(*p)), *q = calloc((size_t)i, sizeof(*q)), sp = 0, sq = 0, d = 0;

	assert_true(p && q);
	for (int k = 0; k < n; k++)
		p[k < i ? k : i - 1] += m[k];
	for (int k = 0; k < i; k++) {
		/* the level that bin k is in, and what that level holds */
		int l = 0, from, to, used = 0;
		double sum = 0;

		while ((int)((int64_t)(l + 1) * i / levels) <= k)
			l++;
		from = (int)((int64_t)l * i / levels);
		to = (int)((int64_t)(l + 1) * i / levels);
		for (int j = from; j < to; j++) {
			sum += m[j];
			used += m[j] > 0;
		}
		q[k] = m[k] > 0 ? sum / used : 0;
		sp += p[k];
		sq += q[k];
	}
	for (int k = 0; k < i; k++)
		if (p[k] > 0)
			d += p[k] / sp * log(p[k] / sp / fmax(sq > 0 ? q[k] / sq : 0, 1e-9));
	free(p);
	free(q);
	return sq > 0 ? d : INFINITY;
}

static void entropy_is_the_least_of_all_thresholds(void **state)
{
	float (*const shapes[])(uint64_t, uint64_t) = { relu, outliers, normal };

	for (int k = 0; k < 3; k++) {
		enum { BINS = 512 };
		float *v = make("entropy", shapes[k]);
		struct rg_histogram h;
		double m[BINS] = { 0 }, width, least = INFINITY, most;
		struct rg_range r;
		int n, best = 0, levels;

		/* magnitudes alone, so that both see the same bins */
		for (int i = 0; i < N; i++)
			v[i] = fabsf(v[i]);
		fill(&h, v, BINS);
		assert_true(h.low == 0);
		width = h.high / BINS;
		n = BINS;
		levels = 256;
		for (int i = 0; i < n; i++)
			m[i] = (double)h.bins[i];
		for (int i = levels; i <= n; i++) {
			double d = relative_entropy(m, n, i, levels);

			if (d <= least + 1e-12) {
				least = fmin(d, least);
				best = i;
			}
		}
		r = rg_range_entropy(&h);
		most = best == n ? h.high : best * width;
		assert_true(r.low == 0);
		if (fabs(r.high - most) > width * 1.01)
			fail_msg("shape %d: %g, brute force %g (D %g)", k, r.high, most, least);
		rg_histogram_free(&h);
		rg_free(v);
	}
}

static void entropy_cuts_outliers_and_keeps_what_is_uniform(void **state)
{
	float *v = make("cut", outliers);
	struct rg_histogram h;
	struct rg_range r;

	fill(&h, v, 4096);
	r = rg_range_entropy(&h);
	assert_true(r.high < h.high / 4 && r.low > h.low / 4 && r.high > 2 && r.low < -2);
	rg_histogram_free(&h);
	rg_free(v);
	v = make("keep", uniform);
	fill(&h, v, 4096);
	r = rg_range_entropy(&h);
	assert_true(r.high > 0.9 && r.low < -0.9);
	rg_alloc_fail_at(1);
	r = rg_range_entropy(&h);
	rg_alloc_fail_at(0);
	assert_true(isnan(r.low));
	rg_histogram_free(&h);
	rg_free(v);
}

static void rules_have_names(void **state)
{
	enum rg_range_rule r;

	for (int i = 0; i < 4; i++) {
		assert_true(rg_range_rule_parse(rg_range_rule_name((enum rg_range_rule)i), &r));
		assert_int_equal(r, i);
	}
	assert_false(rg_range_rule_parse("median", &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_hold_the_range),
		cmocka_unit_test(quantising_rounds_to_even_and_clips),
		cmocka_unit_test(uniform_noise_has_6_db_a_bit),
		cmocka_unit_test(normal_noise_is_as_wide_as_the_step),
		cmocka_unit_test(sqnr_has_its_edges),
		cmocka_unit_test(histogram_counts_everything_once),
		cmocka_unit_test(quantiles_are_those_of_sorted_values),
		cmocka_unit_test(percentile_leaves_out_what_it_says),
		cmocka_unit_test(error_of_a_histogram_is_that_of_its_values),
		cmocka_unit_test(mse_is_near_the_best_of_all_pairs),
		cmocka_unit_test(entropy_is_the_least_of_all_thresholds),
		cmocka_unit_test(entropy_cuts_outliers_and_keeps_what_is_uniform),
		cmocka_unit_test(rules_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
