/*
 * The pool must hand out every item exactly once, on lanes that nobody else
 * holds, whatever the sizes and however the lanes are delayed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "exec/pool.h"

#define MAX_ITEMS 4096
#define MAX_LANES 8

struct job {
	unsigned char hits[MAX_ITEMS];
	int64_t n, grain;
	int lanes;
	atomic_int busy[MAX_LANES];
	atomic_int wrong;
	int delay_lane; /* -1: none */
};

static void count_items(void *arg, int64_t begin, int64_t end, int lane)
{
	struct job *j = arg;
	int64_t i;

	if (lane < 0 || lane >= j->lanes || begin < 0 || end > j->n || begin >= end ||
	    (end - begin < j->grain && j->n >= j->grain)) {
		atomic_fetch_add(&j->wrong, 1);
		return;
	}
	if (atomic_exchange(&j->busy[lane], 1))
		atomic_fetch_add(&j->wrong, 1);
	if (lane == j->delay_lane)
		sched_yield();
	for (i = begin; i < end; i++)
		j->hits[i]++; /* plain: a second writer is a race that TSan reports */
	atomic_store(&j->busy[lane], 0);
}

static void check_job(const struct rg_par *par, struct job *j, int64_t n, int64_t grain)
{
	int64_t i;

	memset(j->hits, 0, sizeof(j->hits));
	j->n = n;
	j->grain = grain < 1 ? 1 : grain;
	j->lanes = par->lanes;
	par->run(par, n, grain, count_items, j);
	assert_int_equal(atomic_load(&j->wrong), 0);
	for (i = 0; i < MAX_ITEMS; i++)
		if (j->hits[i] != (i < n))
			fail_msg("n %d, grain %d: item %d done %d times", (int)n, (int)grain, (int)i,
				 j->hits[i]);
}

static void test_every_item_once(void **state)
{
	static const int64_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 31, 64, 100, 1000, MAX_ITEMS };
	static const int64_t grains[] = { -1, 0, 1, 2, 3, 16, 999, 1000, 1001, INT64_MAX };
	struct rg_error err = RG_ERROR_INIT;
	struct job *j = calloc(1, sizeof(*j));
	size_t a, b;
	int lanes;

	assert_non_null(j);
	for (lanes = 1; lanes <= MAX_LANES; lanes++) {
		struct rg_pool *p;

		assert_int_equal(rg_pool_new(lanes, NULL, &p, &err), 0);
		assert_int_equal(rg_pool_par(p)->lanes, lanes);
		for (a = 0; a < sizeof(sizes) / sizeof(sizes[0]); a++)
			for (b = 0; b < sizeof(grains) / sizeof(grains[0]); b++)
				check_job(rg_pool_par(p), j, sizes[a], grains[b]);
		rg_pool_free(p);
	}
	free(j);
}

/* Back-to-back jobs with pauses on either side of the spin time, so that lanes
 * are met spinning, falling asleep and asleep. */
static void test_stress(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job *j = calloc(1, sizeof(*j));
	struct rg_pool *p;
	uint64_t rng = rg_rng_stream(7, "pool stress");
	int i;

	assert_non_null(j);
	assert_int_equal(rg_pool_new(3, NULL, &p, &err), 0);
	for (i = 0; i < 4000; i++) {
		int64_t pause = rg_rng_integer(rng, (uint64_t)i * 4, 0, 63);

		j->delay_lane = (int)rg_rng_integer(rng, (uint64_t)i * 4 + 1, -1, 2);
		check_job(rg_pool_par(p), j, rg_rng_integer(rng, (uint64_t)i * 4 + 2, 0, 300),
			  rg_rng_integer(rng, (uint64_t)i * 4 + 3, 1, 40));
		if (pause < 4)
			usleep((useconds_t)(pause * 75));
	}
	rg_pool_free(p);
	free(j);
}

/* Lane 0 begins with the first items, and lane 1, if it comes, with those of the second half. */
struct beginnings {
	_Atomic int64_t first[2];
};

static void note_first(void *arg, int64_t begin, int64_t end, int lane)
{
	struct beginnings *b = arg;
	int64_t none = -1;

	atomic_compare_exchange_strong(&b->first[lane], &none, begin);
	usleep(20);
}

static void test_own_share_first(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pool *p;
	int both = 0;

	assert_int_equal(rg_pool_new(2, NULL, &p, &err), 0);
	for (int i = 0; i < 200; i++) {
		struct beginnings b = { { -1, -1 } };
		int64_t n = 64 + i;

		rg_pool_par(p)->run(rg_pool_par(p), n, 1, note_first, &b);
		assert_int_equal(b.first[0], 0);
		if (b.first[1] < 0)
			continue;
		both++;
		/* unless lane 0 was there before it */
		if (b.first[1] < n / 2 - 1)
			fail_msg("of %d items lane 1 began with %d", (int)n, (int)b.first[1]);
	}
	rg_pool_free(p);
	if (!both)
		skip();
}

static void test_starts_and_stops(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pool *p;
	int i;

	for (i = 0; i < 200; i++) {
		assert_int_equal(rg_pool_new(1 + i % 4, NULL, &p, &err), 0);
		if (i % 3 == 0)
			usleep(60);
		rg_pool_free(p);
	}
	rg_pool_free(NULL);
}

struct share {
	uint64_t start, end;
	int count;
};

static void on_share(void *ctx, int lane, uint64_t start_ns, uint64_t end_ns)
{
	struct share *s = ctx;

	s[lane].start = start_ns;
	s[lane].end = end_ns;
	s[lane].count++;
}

static void busy_items(void *arg, int64_t begin, int64_t end, int lane)
{
	uint64_t until = rg_clock_now_ns() + (uint64_t)(end - begin) * 200000;

	while (rg_clock_now_ns() < until)
		continue;
}

static void test_watch(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct share s[2];
	struct rg_pool *p;
	uint64_t before, after;
	int i, k, both = 0;

	assert_int_equal(rg_pool_new(2, NULL, &p, &err), 0);
	rg_pool_watch(p, on_share, s);
	for (i = 0; i < 20; i++) {
		memset(s, 0, sizeof(s));
		before = rg_clock_now_ns();
		rg_pool_par(p)->run(rg_pool_par(p), 16, 1, busy_items, NULL);
		after = rg_clock_now_ns();
		/* A lane that came too late has no share; on a busy machine that can be the caller. */
		assert_true(s[0].count <= 1 && s[1].count <= 1 && s[0].count + s[1].count >= 1);
		for (k = 0; k < 2; k++)
			if (s[k].count)
				assert_true(s[k].start >= before && s[k].end <= after &&
					    s[k].end > s[k].start);
		both += s[1].count;
	}
	assert_true(both > 0);
	memset(s, 0, sizeof(s));
	rg_pool_par(p)->run(rg_pool_par(p), 1, 1, busy_items, NULL); /* nothing to split */
	assert_int_equal(s[0].count, 0);
	assert_int_equal(s[1].count, 0);
	rg_pool_watch(p, NULL, NULL);
	rg_pool_par(p)->run(rg_pool_par(p), 16, 1, busy_items, NULL);
	assert_int_equal(s[0].count, 0);
	rg_pool_free(p);
}

static void find_cpu(void *arg, int64_t begin, int64_t end, int lane)
{
	int *cpu = arg;

	cpu[lane] = sched_getcpu();
}

static void test_pinning(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	cpu_set_t mask, later;
	struct rg_pool *p;
	int cpus[2], seen[2] = { -1, -1 }, n = 0, i;

	assert_int_equal(sched_getaffinity(0, sizeof(mask), &mask), 0);
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &mask))
			cpus[n++] = i;
	if (n < 2)
		skip();
	assert_int_equal(rg_pool_new(2, cpus, &p, &err), 0);
	for (i = 0; i < 1000 && seen[1] < 0; i++)
		rg_pool_par(p)->run(rg_pool_par(p), 64, 1, find_cpu, seen);
	assert_int_equal(seen[0], cpus[0]);
	if (seen[1] >= 0)
		assert_int_equal(seen[1], cpus[1]);
	rg_pool_free(p);
	assert_int_equal(sched_getaffinity(0, sizeof(later), &later), 0);
	assert_true(CPU_EQUAL(&mask, &later)); /* the caller has its own back */
	cpus[1] = CPU_SETSIZE - 1; /* a CPU that is not there */
	assert_true(rg_pool_new(2, cpus, &p, &err) < 0);
	assert_null(p);
	cpus[1] = -5;
	assert_true(rg_pool_new(2, cpus, &p, &err) < 0);
	assert_true(err.message[0] && err.hint[0]);
}

static void test_bad_counts_and_no_memory(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pool *p;

	assert_int_equal(rg_pool_new(0, NULL, &p, &err), -EINVAL);
	assert_int_equal(rg_pool_new(1 << 30, NULL, &p, &err), -EINVAL);
	rg_alloc_fail_at(1);
	assert_int_equal(rg_pool_new(2, NULL, &p, &err), -ENOMEM);
	assert_true(rg_alloc_did_fail());
	rg_alloc_fail_at(0);
	assert_null(p);
}

static void test_run_does_not_allocate(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job *j = calloc(1, sizeof(*j));
	struct rg_pool *p;
	uint64_t before;
	int i;

	assert_non_null(j);
	j->delay_lane = -1;
	assert_int_equal(rg_pool_new(2, NULL, &p, &err), 0);
	before = rg_alloc_count();
	for (i = 0; i < 1000; i++)
		check_job(rg_pool_par(p), j, 64, 8);
	assert_int_equal(rg_alloc_count(), before);
	rg_pool_free(p);
	free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_item_once),
		cmocka_unit_test(test_stress),
		cmocka_unit_test(test_own_share_first),
		cmocka_unit_test(test_starts_and_stops),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_pinning),
		cmocka_unit_test(test_bad_counts_and_no_memory),
		cmocka_unit_test(test_run_does_not_allocate),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
