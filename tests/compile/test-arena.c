/*
 * The arena of a plan: an instance from the literature, random networks that are
 * never above what the strategies reach, and the search where those end high.
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
#include "compile/arena.h"
#include "compile/buffers-csv.h"
#include "compile/strategies.h"

static struct rg_arena_result place(struct rg_buffer *b, int n)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_result r = { 0 };
	int64_t load;

	assert_int_equal(rg_arena_place(b, n, &r, &err), 0);
	if (rg_buffers_check(b, n, r.height_bytes, &err))
		fail_msg("%s", err.message);
	assert_int_equal(rg_buffers_height(b, n), r.height_bytes);
	assert_int_equal(rg_buffers_max_load(b, n, &load, &err), 0);
	assert_int_equal(load, r.load_bytes);
	assert_true(r.height_bytes >= load);
	return r;
}

static const struct rg_buffer literature[] = {
	{ 0, 2, 32, 1, 0 }, { 1, 5, 28, 1, 0 }, { 2, 6, 36, 1, 0 }, { 3, 6, 16, 1, 0 },
	{ 4, 6, 8, 1, 0 },  { 5, 8, 64, 1, 0 }, { 6, 9, 10, 1, 0 }, { 7, 9, 40, 1, 0 },
};

static void test_literature(void **state)
{
	struct rg_buffer b[8];
	struct rg_arena_result r;

	memcpy(b, literature, sizeof(b));
	r = place(b, 8);
	assert_int_equal(r.load_bytes, 124);
	assert_int_equal(r.height_bytes, 124);
	r = place(b, 0);
	assert_int_equal(r.height_bytes, 0);
	assert_int_equal(r.load_bytes, 0);
}

static int make(int round, struct rg_buffer *b)
{
	uint64_t s = rg_rng_stream((uint64_t)round, "arena"), k = 0;
	int n = (int)rg_rng_integer(s, k++, 1, 60), i;
	int64_t steps = rg_rng_integer(s, k++, 1, 40);

	for (i = 0; i < n; i++) {
		b[i].lower = rg_rng_integer(s, k++, 0, steps - 1);
		b[i].upper = 1 + rg_rng_integer(s, k++, b[i].lower, steps - 1);
		b[i].size_bytes = 64 * rg_rng_integer(s, k++, 0, round % 3 ? 50 : 3);
		b[i].align_bytes = 64;
		b[i].offset_bytes = -1;
	}
	return n;
}

/* What the strategies leave above the load by more than 1 % is searched, and never gets worse. */
static void test_random(void **state)
{
	int round, searched = 0, good = 0;

	for (round = 0; round < 600; round++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_arena_result r;
		struct rg_buffer b[60];
		int64_t least;
		int n = make(round, b);

		assert_int_equal(rg_strategy_place(RG_STRATEGY_PORTFOLIO, b, n, &least, NULL, &err), 0);
		r = place(b, n);
		assert_true(r.height_bytes <= least);
		if ((double)least <= (double)r.load_bytes * 1.01) {
			assert_string_not_equal(r.made_by, "search");
			continue;
		}
		searched++;
		good += (double)r.height_bytes <= (double)r.load_bytes * 1.01;
		assert_true(strcmp(r.made_by, "search") != 0 || (double)r.height_bytes <= (double)r.load_bytes * 1.01);
	}
	assert_true(searched > 10);
	assert_true(good > searched * 9 / 10);
	print_message("# searched %d, within 1 %% of the load %d\n", searched, good);
}

/* Sets too large for the portfolio: a chain is exact, and of two strategies the lower one is taken. */
static void test_many(void **state)
{
	enum { N = 9000 };
	struct rg_buffer *b = calloc(N, sizeof(*b));
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_result r;
	int round, i;

	for (i = 0; i < N; i++)
		b[i] = (struct rg_buffer){ i, i + 2, 64, 64, -1 };
	r = place(b, N);
	assert_int_equal(r.height_bytes, 128);
	assert_string_equal(r.made_by, "greedy-birth");
	for (round = 0; round < 4; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "many"), k = 0;
		int64_t birth, size;

		for (i = 0; i < N; i++) {
			b[i].lower = rg_rng_integer(s, k++, 0, 1000);
			b[i].upper = b[i].lower + 1 + rg_rng_integer(s, k++, 0, round % 2 ? 3 : 30);
			b[i].size_bytes = 64 * rg_rng_integer(s, k++, 1, round < 2 ? 3 : 1000);
		}
		assert_int_equal(rg_strategy_place(RG_STRATEGY_GREEDY_BIRTH, b, N, &birth, NULL, &err), 0);
		assert_int_equal(rg_strategy_place(RG_STRATEGY_GREEDY_SIZE, b, N, &size, NULL, &err), 0);
		r = place(b, N);
		assert_int_equal(r.height_bytes, birth < size ? birth : size);
		assert_string_equal(r.made_by, size <= birth && birth > r.load_bytes ? "greedy-size" : "greedy-birth");
	}
	free(b);
}

/* Counted work, not time: the same input gives the same offsets. */
static void test_repeats(void **state)
{
	struct rg_buffer b[300], again[300];
	uint64_t s = rg_rng_stream(7, "repeats"), k = 0;
	int i;

	for (i = 0; i < 300; i++) {
		b[i].lower = rg_rng_integer(s, k++, 0, 99);
		b[i].upper = 1 + rg_rng_integer(s, k++, b[i].lower, 99);
		b[i].size_bytes = 64 * rg_rng_integer(s, k++, 1, 5000);
		b[i].align_bytes = 64;
	}
	memcpy(again, b, sizeof(again));
	place(b, 300);
	place(again, 300);
	for (i = 0; i < 300; i++)
		assert_int_equal(b[i].offset_bytes, again[i].offset_bytes);
}

/* Of MiniMalloc's, those that the counted work suffices for. */
static void test_public_instances(void **state)
{
	static const char *const names[] = { "minimalloc/F.1048576.csv", "minimalloc/G.1048576.csv",
					     "minimalloc/K.1048576.csv" };
	const char *shared = getenv("RIDGE_SHARED");
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_buffer_table t;
		struct rg_arena_result r;
		char path[4096];
		FILE *f;

		snprintf(path, sizeof(path), "%s/data/planner/%s", shared ? shared : RG_SOURCE_ROOT "/../shared", names[i]);
		f = fopen(path, "r");
		if (!f) {
			fprintf(stderr, "# skipped: no planner instances at %s (set RIDGE_SHARED)\n", path);
			skip();
		}
		fclose(f);
		if (rg_buffers_csv_load(path, &t, &err))
			fail_msg("%s: %s", err.where, err.message);
		r = place(t.buffers, t.n);
		assert_string_equal(r.made_by, "search");
		assert_int_equal(r.height_bytes, r.load_bytes);
		print_message("# %s: %.3f by %s\n", names[i], (double)r.height_bytes / (double)r.load_bytes, r.made_by);
		rg_buffers_csv_free(&t);
	}
}

static void test_refusals(void **state)
{
	struct rg_buffer b[2] = { { 0, 2, INT64_MAX, 64, 0 }, { 0, 2, 1, 64, 0 } };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_result r;

	assert_int_equal(rg_arena_place(b, 2, &r, &err), -EOVERFLOW);
	b[0].size_bytes = -1;
	assert_int_equal(rg_arena_place(b, 2, &r, &err), -EINVAL);
	b[0].size_bytes = 1;
	b[0].lower = 2;
	assert_int_equal(rg_arena_place(b, 2, &r, &err), -EINVAL);
}

static void test_no_memory(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer b[60];
	struct rg_arena_result r = { 0 };
	int fails, round = 0, rc = 0, n;

	do
		n = make(round++, b);
	while (strcmp(place(b, n).made_by, "search") != 0);

	for (fails = 1; fails < 300; fails++) {
		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_arena_place(b, n, &r, &err);
		if (!rg_alloc_did_fail())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_int_equal(rc, 0);
	assert_string_equal(r.made_by, "search");
	assert_true(fails > 20 && fails < 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_literature), cmocka_unit_test(test_random),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_repeats),	   cmocka_unit_test(test_public_instances),
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
