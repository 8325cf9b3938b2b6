/*
 * The search against trying every offset on tiny instances, and on public
 * instances; what it finds is proven by the checker, which is tested here as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/buffers-csv.h"
#include "compile/search.h"

static bool meet(const struct rg_buffer *a, const struct rg_buffer *b)
{
	return a->lower < b->upper && b->lower < a->upper && a->offset_bytes < b->offset_bytes + b->size_bytes &&
	       b->offset_bytes < a->offset_bytes + a->size_bytes && a->size_bytes > 0 && b->size_bytes > 0;
}

/* Every offset of every buffer. */
static bool brute_force(struct rg_buffer *b, int n, int at, int64_t capacity)
{
	int k;

	if (at == n)
		return true;
	for (b[at].offset_bytes = 0; b[at].offset_bytes + b[at].size_bytes <= capacity;
	     b[at].offset_bytes += b[at].align_bytes) {
		for (k = 0; k < at && !meet(&b[k], &b[at]); k++)
			;
		if (k == at && brute_force(b, n, at + 1, capacity))
			return true;
	}
	return false;
}

static enum rg_search_result search(struct rg_buffer *b, int n, int64_t capacity)
{
	struct rg_error err = RG_ERROR_INIT;
	enum rg_search_result result;

	assert_int_equal(rg_arena_search(b, n, capacity, -1, -1, &result, NULL, &err), 0);
	if (result == RG_SEARCH_FITS && rg_buffers_check(b, n, capacity, &err))
		fail_msg("%s", err.message);
	return result;
}

static void test_tiny(void **state)
{
	int round, fits = 0, tight = 0;

	for (round = 0; round < 6000; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "search"), k = 0;
		int n = (int)rg_rng_integer(s, k++, 1, 7), i;
		struct rg_buffer b[7], c[7];
		struct rg_error err = RG_ERROR_INIT;
		int64_t capacity, load;
		bool expected;

		for (i = 0; i < n; i++) {
			b[i].lower = rg_rng_integer(s, k++, -4, 4);
			b[i].upper = rg_rng_integer(s, k++, b[i].lower + 1, 6);
			b[i].size_bytes = rg_rng_integer(s, k++, round % 5 ? 1 : 0, 5);
			b[i].align_bytes = round % 3 ? 1 : rg_rng_integer(s, k++, 1, 4);
		}
		assert_int_equal(rg_buffers_max_load(b, n, &load, &err), 0);
		capacity = load + rg_rng_integer(s, k++, load > 0 ? -1 : 0, 1);
		memcpy(c, b, sizeof(c));
		expected = brute_force(c, n, 0, capacity);
		fits += expected;
		tight += !expected && capacity >= load;
		if (search(b, n, capacity) != (expected ? RG_SEARCH_FITS : RG_SEARCH_INFEASIBLE))
			fail_msg("round %d: %d buffers below %lld %s", round, n, (long long)capacity,
				 expected ? "fit" : "do not fit");
	}
	/* Both answers, and the one that the load alone does not give, came up often. */
	assert_true(fits > 1000 && tight > 100);
}

/* The checker against every pair. */
static void test_checker(void **state)
{
	int round, bad = 0;

	for (round = 0; round < 4000; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "checker"), k = 0;
		struct rg_error err = RG_ERROR_INIT;
		struct rg_buffer b[6];
		int n = (int)rg_rng_integer(s, k++, 1, 6), i, j;
		bool wrong = false;

		for (i = 0; i < n; i++) {
			b[i].lower = rg_rng_integer(s, k++, 0, 6);
			b[i].upper = rg_rng_integer(s, k++, b[i].lower + 1, 8);
			b[i].size_bytes = rg_rng_integer(s, k++, 0, 4);
			b[i].align_bytes = rg_rng_integer(s, k++, 1, 2);
			b[i].offset_bytes = rg_rng_integer(s, k++, 0, 20);
			wrong |= b[i].offset_bytes % b[i].align_bytes != 0;
			wrong |= b[i].size_bytes > 0 && b[i].offset_bytes + b[i].size_bytes > 23;
			for (j = 0; j < i; j++)
				wrong |= meet(&b[i], &b[j]);
		}
		bad += wrong;
		assert_int_equal(rg_buffers_check(b, n, 23, &err), wrong ? -EFAULT : 0);
	}
	assert_true(bad > 500 && bad < 3500);
}

static void test_answers(void **state)
{
	struct rg_buffer b[2] = { { 0, 2, 6, 1, 0 }, { 1, 3, 5, 1, 0 } };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_search_stats stats;
	enum rg_search_result result;

	assert_int_equal(search(NULL, 0, 0), RG_SEARCH_FITS);
	assert_int_equal(search(b, 2, 11), RG_SEARCH_FITS);
	assert_int_equal(search(b, 2, 10), RG_SEARCH_INFEASIBLE);
	assert_int_equal(b[0].offset_bytes, -1);
	assert_int_equal(search(b, 2, -1), RG_SEARCH_INFEASIBLE);
	assert_int_equal(search(b, 2, INT64_MAX), RG_SEARCH_FITS);
	/* One ends as the other begins: they share all bytes, in two stretches of time. */
	b[1].lower = 2;
	assert_int_equal(rg_arena_search(b, 2, 6, -1, -1, &result, &stats, &err), 0);
	assert_int_equal(result, RG_SEARCH_FITS);
	assert_int_equal(stats.parts, 2);
	/* Of no bytes: anywhere. */
	b[1].size_bytes = 0;
	assert_int_equal(search(b, 2, 6), RG_SEARCH_FITS);
	assert_int_equal(b[1].offset_bytes, 0);
}

static void refuse(struct rg_buffer b0, struct rg_buffer b1, int code)
{
	struct rg_buffer b[2] = { b0, b1 };
	struct rg_error err = RG_ERROR_INIT;
	enum rg_search_result result;

	assert_int_equal(rg_arena_search(b, 2, 100, -1, -1, &result, NULL, &err), code);
	assert_true(err.message[0] != '\0');
}

static void test_hostile(void **state)
{
	struct rg_buffer good = { 0, 1, 1, 1, 0 };
	struct rg_buffer wide[3] = { { INT64_MIN, INT64_MAX, INT64_MAX / 16, 1, 0 },
				     { INT64_MIN, 0, INT64_MAX / 16, 64, 0 }, { 0, INT64_MAX, 7, 1, 0 } };

	refuse((struct rg_buffer){ 1, 1, 1, 1, 0 }, good, -EINVAL);
	refuse((struct rg_buffer){ 2, 1, 1, 1, 0 }, good, -EINVAL);
	refuse((struct rg_buffer){ 0, 1, -1, 1, 0 }, good, -EINVAL);
	refuse((struct rg_buffer){ 0, 1, 1, 0, 0 }, good, -EINVAL);
	refuse((struct rg_buffer){ 0, 1, INT64_MAX, 1, 0 }, good, -EOVERFLOW);
	refuse((struct rg_buffer){ 0, 1, 1, INT64_MAX, 0 }, good, -EOVERFLOW);
	refuse((struct rg_buffer){ 0, 1, INT64_MAX / 2, 1, 0 }, (struct rg_buffer){ 0, 1, INT64_MAX / 2, 1, 0 },
	       -EOVERFLOW);
	assert_int_equal(search(wide, 3, INT64_MAX), RG_SEARCH_FITS);
	assert_int_equal(search(wide, 3, INT64_MAX / 8), RG_SEARCH_FITS);
	assert_int_equal(search(wide, 3, INT64_MAX / 8 - 64), RG_SEARCH_INFEASIBLE);
}

/* Many buffers that no bound excludes: it would look for years, and stops at once. */
static void test_time_limit(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	enum rg_search_result result;
	struct rg_buffer b[200];
	int i;

	for (i = 0; i < 200; i++) {
		b[i] = (struct rg_buffer){ i % 50, i % 50 + 3 + i % 7, 100 + (i * 37) % 91, 1, 0 };
		b[i].size_bytes = b[i].size_bytes * 2 + 1;
	}
	assert_int_equal(rg_buffers_max_load(b, 200, &b[0].offset_bytes, &err), 0);
	assert_int_equal(rg_arena_search(b, 200, b[0].offset_bytes, 0, -1, &result, NULL, &err), 0);
	if (result == RG_SEARCH_TIMEOUT)
		assert_int_equal(b[0].offset_bytes, -1);
}

static void test_no_memory(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	enum rg_search_result result;
	int fails, rc = 0;

	for (fails = 1; fails < 200; fails++) {
		struct rg_buffer b[8] = { { 0, 2, 32, 1, 0 }, { 1, 5, 28, 1, 0 }, { 2, 6, 36, 1, 0 }, { 3, 6, 16, 1, 0 },
					  { 4, 6, 8, 1, 0 },  { 5, 8, 64, 1, 0 }, { 6, 9, 10, 1, 0 }, { 7, 9, 40, 1, 0 } };

		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_arena_search(b, 8, 124, -1, -1, &result, NULL, &err);
		if (!rc && result == RG_SEARCH_FITS)
			rc = rg_buffers_check(b, 8, 124, &err);
		if (!rg_alloc_did_fail())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_int_equal(rc, 0);
	assert_int_equal(result, RG_SEARCH_FITS);
	assert_true(fails > 1 && fails < 200);
}

static int load(const char *name, struct rg_buffer_table *t)
{
	const char *shared = getenv("RIDGE_SHARED");
	struct rg_error err = RG_ERROR_INIT;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/data/planner/minimalloc/%s.1048576.csv",
		 shared ? shared : RG_SOURCE_ROOT "/../shared", name);
	f = fopen(path, "r");
	if (!f) {
		fprintf(stderr, "# skipped: no planner instances at %s (set RIDGE_SHARED)\n", path);
		return -1;
	}
	fclose(f);
	if (rg_buffers_csv_load(path, t, &err))
		fail_msg("%s: %s", err.where, err.message);
	return 0;
}

/* As they are, backwards in time, and three times as large. The others of A to K take
 * longer: scripts/bench-planner. */
static void test_public_instances(void **state)
{
	static const char *const names[] = { "F", "G", "J", "K", "H", "C" };
	size_t i;
	int k;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rg_buffer_table t;

		if (load(names[i], &t) < 0)
			skip();
		assert_int_equal(search(t.buffers, t.n, 1048576), RG_SEARCH_FITS);
		for (k = 0; k < t.n; k++) {
			int64_t lower = t.buffers[k].lower;

			t.buffers[k].lower = -t.buffers[k].upper;
			t.buffers[k].upper = -lower;
			t.buffers[k].size_bytes *= 3;
		}
		assert_int_equal(search(t.buffers, t.n, 3 * 1048576), RG_SEARCH_FITS);
		rg_buffers_csv_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiny),	  cmocka_unit_test(test_checker),
		cmocka_unit_test(test_answers),	  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_time_limit), cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_public_instances),
	};

	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
