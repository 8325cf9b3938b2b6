/*
 * The strategies that do not look back: valid placements always, the lower bound
 * exactly where theory promises it, and how far from it they end on public instances.
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
#include "compile/strategies.h"

static int64_t place(enum rg_strategy s, struct rg_buffer *b, int n)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t height, load;

	assert_int_equal(rg_strategy_place(s, b, n, &height, NULL, &err), 0);
	assert_int_equal(rg_buffers_max_load(b, n, &load, &err), 0);
	if (rg_buffers_check(b, n, height, &err))
		fail_msg("%s: %s", rg_strategy_name(s), err.message);
	assert_true(height >= load);
	return height;
}

/* Random intervals; of one size when `size` is not 0. */
static int make(int round, struct rg_buffer *b, int64_t size)
{
	uint64_t s = rg_rng_stream((uint64_t)round, "strategies"), k = 0;
	int n = (int)rg_rng_integer(s, k++, 1, 120), i;
	int64_t steps = rg_rng_integer(s, k++, 2, 80);

	for (i = 0; i < n; i++) {
		b[i].lower = rg_rng_integer(s, k++, 0, steps - 1);
		b[i].upper = rg_rng_integer(s, k++, b[i].lower + 1, steps);
		b[i].size_bytes = size ? size : rg_rng_integer(s, k++, 0, 1000);
		b[i].align_bytes = size ? 1 : rg_rng_integer(s, k++, 1, 64);
		b[i].offset_bytes = -1;
	}
	return n;
}

/* Interval graphs are perfect, and colouring them in order of birth is optimal. */
static void test_equal_sizes(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer b[120];
	int64_t load;
	int round;

	for (round = 0; round < 500; round++) {
		int n = make(round, b, 1 + round % 7 * 64);

		assert_int_equal(rg_buffers_max_load(b, n, &load, &err), 0);
		assert_int_equal(place(RG_STRATEGY_GREEDY_BIRTH, b, n), load);
		assert_int_equal(place(RG_STRATEGY_PORTFOLIO, b, n), load);
	}
}

/* With unequal ones a hole of 1 is left at the bottom, into which 2 does not go. */
static void test_unequal_sizes(void **state)
{
	struct rg_buffer b[3] = { { 0, 1, 1, 1, 0 }, { 0, 2, 1, 1, 0 }, { 1, 2, 2, 1, 0 } };
	struct rg_error err = RG_ERROR_INIT;
	int64_t load;

	assert_int_equal(rg_buffers_max_load(b, 3, &load, &err), 0);
	assert_int_equal(load, 3);
	assert_int_equal(place(RG_STRATEGY_GREEDY_BIRTH, b, 3), 4);
	assert_int_equal(place(RG_STRATEGY_GREEDY_SIZE, b, 3), 3);
}

static void test_random(void **state)
{
	struct rg_buffer b[120];
	int round, s;

	for (round = 0; round < 300; round++) {
		int n = make(round, b, 0);
		int64_t least = INT64_MAX;

		for (s = 0; s < RG_STRATEGY_PORTFOLIO; s++) {
			int64_t height = place((enum rg_strategy)s, b, n);

			least = height < least ? height : least;
		}
		assert_int_equal(place(RG_STRATEGY_PORTFOLIO, b, n), least);
	}
}

/* The larger one first, then the earlier one, then as the caller gave them. */
static int plain_by_size(const void *pa, const void *pb)
{
	const struct rg_buffer *a = *(struct rg_buffer *const *)pa, *b = *(struct rg_buffer *const *)pb;

	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? 1 : -1;
	if (a->lower != b->lower)
		return a->lower < b->lower ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Greedy by size as it is written down: every buffer against every placed one, at
 * the lowest multiple of its alignment where it fits. */
static void plain_place(struct rg_buffer *b, int n)
{
	struct rg_buffer **order = calloc((size_t)n, sizeof(struct rg_buffer *));
	int i, k;

	for (i = 0; i < n; i++)
		order[i] = &b[i];
	qsort(order, (size_t)n, sizeof(order[0]), plain_by_size);
	for (i = 0; i < n; i++) {
		int64_t at = 0, align = order[i]->align_bytes;

		for (k = 0; k < i; k++) {
			const struct rg_buffer *p = order[k];

			if (p->upper <= order[i]->lower || p->lower >= order[i]->upper ||
			    p->offset_bytes >= at + order[i]->size_bytes ||
			    p->offset_bytes + p->size_bytes <= at || p->size_bytes == 0)
				continue;
			at = (p->offset_bytes + p->size_bytes + align - 1) / align * align;
			k = -1; /* again, from the new place */
		}
		order[i]->offset_bytes = at;
	}
	free(order);
}

/* Lowest first, as it is written down: look at all that are left, each time. */
static void plain_lowest(struct rg_buffer *b, int n, int64_t *offsets)
{
	bool *placed = calloc((size_t)n, sizeof(*placed));
	int round, i, next;

	for (i = 0; i < n; i++)
		offsets[i] = 0;
	for (round = 0; round < n; round++) {
		for (i = 0, next = -1; i < n; i++) {
			if (placed[i])
				continue;
			if (next < 0 || offsets[i] < offsets[next] ||
			    (offsets[i] == offsets[next] &&
			     (b[i].upper > b[next].upper || (b[i].upper == b[next].upper && b[i].lower < b[next].lower))))
				next = i;
		}
		placed[next] = true;
		for (i = 0; i < n; i++) {
			int64_t end = offsets[next] + b[next].size_bytes;

			end = (end + b[i].align_bytes - 1) / b[i].align_bytes * b[i].align_bytes;
			if (!placed[i] && b[i].lower < b[next].upper && b[next].lower < b[i].upper && end > offsets[i])
				offsets[i] = end;
		}
	}
	free(placed);
}

/* The index over births finds what the plain scan finds, few alive at once or many. */
static void test_same_as_plain(void **state)
{
	static struct rg_buffer b[1500], plain[1500];
	static int64_t offsets[1500];
	int round, i;

	for (round = 0; round < 12; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "plain"), k = 0;
		int n = 200 + round * 100, steps = round % 3 == 0 ? 5 : round % 3 == 1 ? 5000 : 100;

		for (i = 0; i < n; i++) {
			b[i].lower = rg_rng_integer(s, k++, 0, steps - 1);
			b[i].upper = 1 + rg_rng_integer(s, k++, b[i].lower,
							round % 3 == 1 ? b[i].lower + 4 : steps - 1);
			b[i].size_bytes = rg_rng_integer(s, k++, 1, 1000);
			b[i].align_bytes = round % 2 ? 64 : rg_rng_integer(s, k++, 1, 48);
			plain[i] = b[i];
		}
		place(RG_STRATEGY_GREEDY_SIZE, b, n);
		plain_place(plain, n);
		for (i = 0; i < n; i++)
			assert_int_equal(b[i].offset_bytes, plain[i].offset_bytes);
		place(RG_STRATEGY_GREEDY_LOWEST, b, n);
		plain_lowest(b, n, offsets);
		for (i = 0; i < n; i++)
			assert_int_equal(b[i].offset_bytes, offsets[i]);
		place(RG_STRATEGY_GREEDY_LOWEST_BACK, b, n);
		for (i = 0; i < n; i++) {
			plain[i] = b[i];
			plain[i].lower = -b[i].upper;
			plain[i].upper = -b[i].lower;
		}
		plain_lowest(plain, n, offsets);
		for (i = 0; i < n; i++)
			assert_int_equal(b[i].offset_bytes, offsets[i]);
	}
}

/* A long chain: each buffer meets two others. Quadratic, this took 20 s. */
static void test_chain_is_linear(void **state)
{
	enum { N = 200000 };
	struct rg_buffer *b = calloc(N, sizeof(*b));
	int i, s;

	for (s = RG_STRATEGY_GREEDY_BIRTH; s <= RG_STRATEGY_PORTFOLIO; s++) {
		for (i = 0; i < N; i++)
			b[i] = (struct rg_buffer){ i, i + 2, 64, 64, -1 };
		assert_int_equal(place((enum rg_strategy)s, b, N), 128);
	}
	free(b);
}

/* Clocks at the ends of their range, and nothing at all. */
static void test_extremes(void **state)
{
	struct rg_buffer b[3] = { { INT64_MIN, INT64_MAX, 10, 1, -1 }, { INT64_MIN, INT64_MIN + 1, 5, 1, -1 },
				  { INT64_MAX - 1, INT64_MAX, 5, 1, -1 } };
	int s;

	for (s = RG_STRATEGY_GREEDY_BIRTH; s < RG_STRATEGY_COUNT; s++) {
		assert_int_equal(place((enum rg_strategy)s, b, 3), 15);
		assert_int_equal(place((enum rg_strategy)s, b, 0), 0);
	}
}

static void test_names(void **state)
{
	enum rg_strategy s;
	int i;

	for (i = 0; i < RG_STRATEGY_COUNT; i++) {
		assert_true(rg_strategy_parse(rg_strategy_name((enum rg_strategy)i), &s));
		assert_int_equal(s, i);
	}
	assert_false(rg_strategy_parse("", &s));
	assert_false(rg_strategy_parse("search", &s));
}

static void test_no_memory(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer b[3] = { { 0, 1, 1, 1, 0 }, { 0, 2, 1, 1, 0 }, { 1, 2, 2, 1, 0 } };
	int64_t height;
	int fails, rc = 0;

	for (fails = 1; fails < 50; fails++) {
		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_strategy_place(RG_STRATEGY_PORTFOLIO, b, 3, &height, NULL, &err);
		if (!rc)
			rc = rg_buffers_max_load(b, 3, &height, &err);
		if (!rg_alloc_did_fail())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(fails > 1 && fails < 50);
}

/* As the instances' README gives them: first fit, over the lower bound. */
static const struct { const char *name; int n; int64_t load; double by_size, by_birth; } instances[] = {
	{ "A", 154, 1048576, 1.290, 1.707 }, { "B", 170, 1048576, 1.347, 1.604 }, { "C", 203, 1039360, 1.364, 1.686 },
	{ "D", 213, 986112, 1.309, 1.415 },  { "E", 215, 1048576, 1.369, 1.836 }, { "F", 296, 1048576, 1.375, 1.200 },
	{ "G", 308, 1048576, 1.332, 1.170 }, { "H", 316, 1048576, 1.355, 1.258 }, { "I", 374, 1048576, 1.410, 1.822 },
	{ "J", 409, 989184, 1.318, 1.842 },  { "K", 454, 1048576, 1.290, 2.273 },
};

static void test_public_instances(void **state)
{
	const char *shared = getenv("RIDGE_SHARED");
	size_t i;

	for (i = 0; i < sizeof(instances) / sizeof(instances[0]); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_buffer_table t;
		char path[4096];
		int64_t load, by_birth;
		double ratio;
		FILE *f;

		snprintf(path, sizeof(path), "%s/data/planner/minimalloc/%s.1048576.csv",
			 shared ? shared : RG_SOURCE_ROOT "/../shared", instances[i].name);
		f = fopen(path, "r");
		if (!f) {
			fprintf(stderr, "# skipped: no planner instances at %s (set RIDGE_SHARED)\n", path);
			skip();
		}
		fclose(f);
		if (rg_buffers_csv_load(path, &t, &err))
			fail_msg("%s: %s", err.where, err.message);
		assert_int_equal(t.n, instances[i].n);
		assert_int_equal(rg_buffers_max_load(t.buffers, t.n, &load, &err), 0);
		assert_int_equal(load, instances[i].load);
		ratio = (double)place(RG_STRATEGY_GREEDY_SIZE, t.buffers, t.n) / (double)load;
		if (ratio < instances[i].by_size - 0.0006 || ratio > instances[i].by_size + 0.0006)
			fail_msg("%s by size: %.3f, not %.3f", instances[i].name, ratio, instances[i].by_size);
		by_birth = place(RG_STRATEGY_GREEDY_BIRTH, t.buffers, t.n);
		print_message("# %s: by size %.3f, by birth %.3f\n", instances[i].name, ratio,
			      (double)by_birth / (double)load);
		rg_buffers_csv_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_sizes), cmocka_unit_test(test_unequal_sizes),
		cmocka_unit_test(test_random),	    cmocka_unit_test(test_names),
		cmocka_unit_test(test_same_as_plain), cmocka_unit_test(test_chain_is_linear),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_no_memory),   cmocka_unit_test(test_public_instances),
	};

	return cmocka_run_group_tests_name("strategies", tests, NULL, NULL);
}
