/*
 * The memory planner: an instance from the literature, the public instances
 * with the heights that greedy by size reaches on them, and random instances
 * checked pair by pair.
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
#include "compile/plan.h"

/* Two buffers alive at the same step share no byte, and all lie in the arena. */
static void check_placement(const struct rg_arena_item *it, int n, int64_t arena, int64_t bound)
{
	int a, b;

	assert_true(arena >= bound);
	assert_int_equal(arena % 64, 0);
	for (a = 0; a < n; a++) {
		assert_int_equal(it[a].offset_bytes % 64, 0);
		assert_true(it[a].offset_bytes >= 0 && it[a].offset_bytes + it[a].size_bytes <= arena);
		for (b = 0; b < a; b++) {
			if (it[a].last < it[b].first || it[b].last < it[a].first)
				continue;
			if (it[a].offset_bytes < it[b].offset_bytes + it[b].size_bytes &&
			    it[b].offset_bytes < it[a].offset_bytes + it[a].size_bytes)
				fail_msg("buffers %d and %d overlap", a, b);
		}
	}
}

/* The largest sum of live bytes, step by step. */
static int64_t brute_force_bound(const struct rg_arena_item *it, int n, int steps)
{
	int64_t most = 0, sum;
	int s, i;

	for (s = 0; s < steps; s++) {
		for (sum = 0, i = 0; i < n; i++)
			if (it[i].first <= s && s <= it[i].last)
				sum += it[i].size_bytes;
		most = sum > most ? sum : most;
	}
	return most;
}

static const struct rg_arena_item literature[] = {
	{ 32, 0, 1, 0 }, { 28, 1, 4, 0 }, { 36, 2, 5, 0 }, { 16, 3, 5, 0 },
	{ 8, 4, 5, 0 }, { 64, 5, 7, 0 }, { 10, 6, 8, 0 }, { 40, 7, 8, 0 },
};

static void test_literature(void **state)
{
	const int n = sizeof(literature) / sizeof(literature[0]);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_item it[8];
	int64_t arena, bound, sum = 0;
	int i;

	memcpy(it, literature, sizeof(it));
	assert_int_equal(rg_arena_place(it, n, &arena, &bound, &err), 0);
	assert_int_equal(bound, 124);
	check_placement(it, n, arena, bound);
	/* In units of 64 bytes alignment costs nothing, and the optimum is reached. */
	for (i = 0; i < n; i++) {
		it[i].size_bytes *= 64;
		sum += it[i].size_bytes;
	}
	assert_int_equal(sum, 234 * 64);
	assert_int_equal(rg_arena_place(it, n, &arena, &bound, &err), 0);
	assert_int_equal(bound, 124 * 64);
	assert_int_equal(arena, 124 * 64);
	check_placement(it, n, arena, bound);
}

static void test_random(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_item it[200];
	int64_t arena, bound;
	int round;

	for (round = 0; round < 300; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "arena"), k = 0;
		int n = (int)rg_rng_integer(s, k++, 1, 200), steps = (int)rg_rng_integer(s, k++, 1, 60), i;

		for (i = 0; i < n; i++) {
			it[i].first = (int)rg_rng_integer(s, k++, 0, steps - 1);
			it[i].last = (int)rg_rng_integer(s, k++, it[i].first, steps - 1);
			it[i].size_bytes = rg_rng_integer(s, k++, 0, round % 3 ? 5000 : 3);
			it[i].size_bytes *= round % 2 ? 1 : 64;
			it[i].offset_bytes = -1;
		}
		assert_int_equal(rg_arena_place(it, n, &arena, &bound, &err), 0);
		check_placement(it, n, arena, bound);
		assert_int_equal(bound, brute_force_bound(it, n, steps));
	}
}

static int plain_by_size(const void *pa, const void *pb)
{
	const struct rg_arena_item *a = *(struct rg_arena_item *const *)pa, *b = *(struct rg_arena_item *const *)pb;

	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Greedy by size as it is written down: every item against every placed one, at
 * the lowest multiple of 64 where it fits. */
static void plain_place(struct rg_arena_item *it, int n)
{
	struct rg_arena_item **order = calloc((size_t)n, sizeof(*order));
	int i, k;

	for (i = 0; i < n; i++)
		order[i] = &it[i];
	qsort(order, (size_t)n, sizeof(order[0]), plain_by_size);
	for (i = 0; i < n; i++) {
		int64_t at = 0;

		for (k = 0; k < i; k++) {
			const struct rg_arena_item *p = order[k];

			if (p->last < order[i]->first || p->first > order[i]->last ||
			    p->offset_bytes >= at + order[i]->size_bytes ||
			    p->offset_bytes + p->size_bytes <= at || p->size_bytes == 0)
				continue;
			at = (p->offset_bytes + p->size_bytes + 63) / 64 * 64;
			k = -1; /* again, from the new place */
		}
		order[i]->offset_bytes = at;
	}
	free(order);
}

/* The index over steps finds what the plain scan finds, few alive at once or many. */
static void test_same_as_plain(void **state)
{
	static struct rg_arena_item it[1500], plain[1500];
	struct rg_error err = RG_ERROR_INIT;
	int64_t arena, bound;
	int round, i;

	for (round = 0; round < 12; round++) {
		uint64_t s = rg_rng_stream((uint64_t)round, "plain"), k = 0;
		int n = 200 + round * 100, steps = round % 3 == 0 ? 5 : round % 3 == 1 ? 5000 : 100;

		for (i = 0; i < n; i++) {
			it[i].first = (int)rg_rng_integer(s, k++, 0, steps - 1);
			it[i].last = (int)rg_rng_integer(s, k++, it[i].first,
							 round % 3 == 1 ? it[i].first + 4 : steps - 1);
			it[i].size_bytes = rg_rng_integer(s, k++, 1, 1000);
			plain[i] = it[i];
		}
		assert_int_equal(rg_arena_place(it, n, &arena, &bound, &err), 0);
		plain_place(plain, n);
		for (i = 0; i < n; i++)
			assert_int_equal(it[i].offset_bytes, plain[i].offset_bytes);
	}
}

/* A long chain: each buffer meets two others. Quadratic, this took 20 s. */
static void test_chain_is_linear(void **state)
{
	enum { N = 200000 };
	struct rg_arena_item *it = calloc(N, sizeof(*it));
	struct rg_error err = RG_ERROR_INIT;
	int64_t arena, bound;
	int i;

	for (i = 0; i < N; i++)
		it[i] = (struct rg_arena_item){ 64, i, i + 1, -1 };
	assert_int_equal(rg_arena_place(it, N, &arena, &bound, &err), 0);
	assert_int_equal(arena, 128);
	assert_int_equal(bound, 128);
	free(it);
}

/* Ratio of height to bound, as the instances' README gives it for "by size". */
static const struct { const char *name; int n; int64_t bound; double by_size; } instances[] = {
	{ "A", 154, 1048576, 1.290 }, { "B", 170, 1048576, 1.347 }, { "C", 203, 1039360, 1.364 },
	{ "D", 213, 986112, 1.309 }, { "E", 215, 1048576, 1.369 }, { "F", 296, 1048576, 1.375 },
	{ "G", 308, 1048576, 1.332 }, { "H", 316, 1048576, 1.355 }, { "I", 374, 1048576, 1.410 },
	{ "J", 409, 989184, 1.318 }, { "K", 454, 1048576, 1.290 },
};

static int load(const char *name, struct rg_arena_item *it, int cap)
{
	const char *shared = getenv("RIDGE_SHARED");
	char path[4096], line[256];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/data/planner/minimalloc/%s.1048576.csv",
		 shared ? shared : RG_SOURCE_ROOT "/../shared", name);
	f = fopen(path, "r");
	if (!f) {
		fprintf(stderr, "# skipped: no planner instances at %s (set RIDGE_SHARED)\n", path);
		return -1;
	}
	while (n < cap && fgets(line, sizeof(line), f)) {
		long long size;
		int id, lower, upper;

		if (sscanf(line, "%d,%d,%d,%lld", &id, &lower, &upper, &size) != 4)
			continue;
		it[n].first = lower;
		it[n].last = upper - 1; /* half-open there */
		it[n++].size_bytes = size;
	}
	fclose(f);
	return n;
}

static void test_public_instances(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_item it[512];
	int64_t arena, bound;
	size_t i;

	for (i = 0; i < sizeof(instances) / sizeof(instances[0]); i++) {
		int n = load(instances[i].name, it, 512);
		double ratio;

		if (n < 0)
			skip();
		assert_int_equal(n, instances[i].n);
		assert_int_equal(rg_arena_place(it, n, &arena, &bound, &err), 0);
		check_placement(it, n, arena, bound);
		assert_int_equal(bound, instances[i].bound);
		ratio = (double)arena / (double)bound;
		if (ratio < instances[i].by_size - 0.0006 || ratio > instances[i].by_size + 0.0006)
			fail_msg("%s: %.3f times the bound, greedy by size reaches %.3f", instances[i].name,
				 ratio,
				 instances[i].by_size);
		print_message("# %s: %.3f\n", instances[i].name, ratio);
	}
}

static void test_refusals(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_item it[2] = { { INT64_MAX, 0, 1, 0 }, { 1, 0, 1, 0 } };
	int64_t arena, bound;

	assert_int_equal(rg_arena_place(NULL, 0, &arena, &bound, &err), 0);
	assert_int_equal(arena, 0);
	assert_int_equal(rg_arena_place(it, 2, &arena, &bound, &err), -EOVERFLOW);
	it[0].size_bytes = it[1].size_bytes = INT64_MAX / 2 + 1;
	assert_int_equal(rg_arena_place(it, 2, &arena, &bound, &err), -EOVERFLOW);
	it[0].size_bytes = -1;
	assert_int_equal(rg_arena_place(it, 2, &arena, &bound, &err), -EINVAL);
	it[0].size_bytes = 1;
	it[0].first = 2;
	assert_int_equal(rg_arena_place(it, 2, &arena, &bound, &err), -EINVAL);
}

static void test_no_memory(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_arena_item it[8];
	int64_t arena, bound;
	int fails, rc;

	for (fails = 1; fails < 100; fails++) {
		memcpy(it, literature, sizeof(it));
		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_arena_place(it, 8, &arena, &bound, &err);
		if (!rg_alloc_did_fail())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(fails > 1 && fails < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_literature),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_same_as_plain),
		cmocka_unit_test(test_chain_is_linear),
		cmocka_unit_test(test_public_instances),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
