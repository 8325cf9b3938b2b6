/*
 * Statistics against definitions, tables and repeated sampling; the generator
 * against its own description.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/stats.h"

static void close_to(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
		fail_msg("got %.17g, want %.17g", got, want);
}

static void quantiles_are_of_type_7(void **state)
{
	const double v[] = { 1, 2, 4, 8 };
	double unsorted[] = { 9, 1, 5, 3 };

	close_to(rg_stats_quantile_sorted(v, 4, 0), 1);
	close_to(rg_stats_quantile_sorted(v, 4, 1), 8);
	close_to(rg_stats_quantile_sorted(v, 4, 0.5), 3);
	close_to(rg_stats_quantile_sorted(v, 4, 0.25), 1.75);
	close_to(rg_stats_quantile_sorted(v, 4, 0.9), 4 + 0.7 * 4);
	close_to(rg_stats_quantile_sorted(v, 1, 0.7), 1);
	assert_true(isnan(rg_stats_quantile_sorted(v, 0, 0.5)));
	assert_true(isnan(rg_stats_quantile_sorted(v, 4, -0.1)));
	assert_true(isnan(rg_stats_quantile_sorted(v, 4, 1.1)));
	assert_true(isnan(rg_stats_quantile_sorted(v, 4, NAN)));
	close_to(rg_stats_median(unsorted, 4), 4);
}

static void moments(void **state)
{
	const double v[] = { 2, 4, 4, 4, 5, 5, 7, 9 };

	close_to(rg_stats_mean(v, 8), 5);
	close_to(rg_stats_stddev(v, 8), sqrt(32.0 / 7));
	assert_true(isnan(rg_stats_mean(v, 0)));
	assert_true(isnan(rg_stats_stddev(v, 1)));
}

/* P(Bin(n, q) <= k), by adding products: another way than the code's. */
static double binomial_cdf(int n, double q, int k)
{
	double sum = 0;

	for (int i = 0; i <= k; i++) {
		double p = 1;

		for (int j = 1; j <= i; j++)
			p *= q * (n - i + j) / j;
		sum += p * pow(1 - q, n - i);
	}
	return sum;
}

static void intervals_are_order_statistics(void **state)
{
	double v[600];

	for (int i = 0; i < 600; i++)
		v[i] = i + 1; /* the value is the rank */
	for (int n = 2; n <= 60; n++) {
		static const double qs[] = { 0.1, 0.5, 0.9, 0.95 };

		for (int k = 0; k < 4; k++) {
			struct rg_interval ci = rg_stats_quantile_ci(v, (size_t)n, qs[k], 0.95);

			/* The largest r with P(Bin <= r - 1) <= 0.025, or none. */
			if (isnan(ci.low)) {
				assert_true(binomial_cdf(n, qs[k], 0) > 0.025);
			} else {
				assert_true(binomial_cdf(n, qs[k], (int)ci.low - 1) <= 0.025 + 1e-12);
				assert_true(binomial_cdf(n, qs[k], (int)ci.low) > 0.025 - 1e-12);
			}
			/* The smallest s with P(Bin <= s - 1) >= 0.975, or none. */
			if (isnan(ci.high)) {
				assert_true(binomial_cdf(n, qs[k], n - 1) < 0.975);
			} else {
				assert_true(binomial_cdf(n, qs[k], (int)ci.high - 1) >= 0.975 - 1e-12);
				if (ci.high > 1)
					assert_true(binomial_cdf(n, qs[k], (int)ci.high - 2) < 0.975 + 1e-12);
			}
		}
	}
	/* Conover's table: n 10, median: ranks 2 and 9. */
	close_to(rg_stats_quantile_ci(v, 10, 0.5, 0.95).low, 2);
	close_to(rg_stats_quantile_ci(v, 10, 0.5, 0.95).high, 9);
	/* P99 is bounded from above only from 368 samples on. */
	assert_true(isnan(rg_stats_quantile_ci(v, 367, 0.99, 0.95).high));
	assert_false(isnan(rg_stats_quantile_ci(v, 368, 0.99, 0.95).high));
	assert_true(isnan(rg_stats_quantile_ci(v, 0, 0.5, 0.95).value));
}

static void intervals_cover_as_often_as_they_say(void **state)
{
	enum { ROUNDS = 2000, N = 40 };
	uint64_t stream = rg_rng_stream(3, "coverage");
	double v[N];
	int covered = 0;

	for (int r = 0; r < ROUNDS; r++) {
		struct rg_interval ci;

		for (int i = 0; i < N; i++) /* exponential: its median is log 2 */
			v[i] = -log1p(-(double)rg_rng_unit(stream, (uint64_t)r * N + (uint64_t)i));
		rg_stats_sort(v, N);
		ci = rg_stats_quantile_ci(v, N, 0.5, 0.95);
		covered += ci.low <= log(2) && log(2) <= ci.high;
	}
	/* At least 95 %, and not much more; four standard errors are 2 %. */
	assert_in_range(covered, ROUNDS * 93 / 100, ROUNDS * 99 / 100);
}

static void ratios_of_pairs(void **state)
{
	enum { N = 64 };
	uint64_t stream = rg_rng_stream(4, "ratio");
	double on[N], off[N];
	struct rg_interval ci, again;

	for (int i = 0; i < N; i++) {
		off[i] = 100 + rg_rng_unit(stream, (uint64_t)i);
		on[i] = 1.1 * (100 + rg_rng_unit(stream, 1000 + (uint64_t)i));
	}
	ci = rg_stats_ratio_ci(on, off, N, 0.95, 1);
	assert_true(ci.low <= ci.value && ci.value <= ci.high);
	assert_true(ci.low > 1.09 && ci.high < 1.11 && ci.low < 1.1 && ci.high > 1.098);
	again = rg_stats_ratio_ci(on, off, N, 0.95, 1);
	assert_memory_equal(&ci, &again, sizeof(ci)); /* seeded */
	assert_true(isnan(rg_stats_ratio_ci(on, off, 0, 0.95, 1).value));
	ci = rg_stats_ratio_ci(on, off, 3, 0.95, 1);
	assert_false(isnan(ci.value));
	assert_true(isnan(ci.low) && isnan(ci.high)); /* too few to resample */
	rg_alloc_fail_at(1);
	ci = rg_stats_ratio_ci(on, off, N, 0.95, 1);
	rg_alloc_fail_at(0);
	assert_true(isnan(ci.value));
}

/* As base/rng.h writes it down, once more. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static void the_generator_is_as_documented(void **state)
{
	uint64_t h = 0xCBF29CE484222325u, stream;
	float many[5000];

	for (const char *p = "input"; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001B3u;
	stream = mix(42 ^ h);
	assert_true(rg_rng_stream(42, "input") == stream);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t u = mix(stream + (i + 1) * 0x9E3779B97F4A7C15u);
		float unit = (float)(u >> 40) * 0x1p-24f;

		assert_true(rg_rng_u64(stream, i) == u);
		assert_true(rg_rng_unit(stream, i) == unit);
		assert_true(rg_rng_uniform(stream, i, -2, 3) == -2 + (3.0f - -2.0f) * unit);
		assert_true(rg_rng_integer(stream, i, -5, 5) == -5 + (int64_t)(u % 11));
	}
	/* The first number of SplitMix64 seeded with 0, as its authors publish it. */
	assert_true(rg_rng_u64(0, 0) == 0xE220A8397B1DCDAFu);
	/* Filling is the same as asking one by one. */
	rg_rng_fill_f32(stream, -1, 1, many, 5000);
	for (uint64_t i = 0; i < 5000; i++)
		assert_true(many[i] == rg_rng_uniform(stream, i, -1, 1));
	/* Another name, another stream. */
	assert_true(rg_rng_stream(42, "input") != rg_rng_stream(42, "input2"));
	assert_true(rg_rng_stream(42, "input") != rg_rng_stream(43, "input"));
	/* The whole range of integers, where the size of the range wraps to 0. */
	for (uint64_t i = 0; i < 10; i++)
		(void)rg_rng_integer(stream, i, INT64_MIN, INT64_MAX);
	assert_int_equal(rg_rng_integer(stream, 0, 9, 9), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_of_type_7),
		cmocka_unit_test(moments),
		cmocka_unit_test(intervals_are_order_statistics),
		cmocka_unit_test(intervals_cover_as_often_as_they_say),
		cmocka_unit_test(ratios_of_pairs),
		cmocka_unit_test(the_generator_is_as_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
