/*
 * What a parallel-for costs. No test: it prints times and judges nothing.
 *
 *   bench-pool [LANES]
 *
 * Kinds are timed in turns in one process, since a machine is never quiet; of each
 * the least and the median of many rounds. Chunks are set by the grain, as kernels
 * do it; "work" is a chain of multiply-adds that touches no memory.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/pool.h"
#include "sys/topology.h"

enum { ROUNDS = 400 };

/* Set before each run. */
static int64_t steps_of_item; /* of the chain */
static volatile float sink;

static void nothing(void *arg, int64_t begin, int64_t end, int lane)
{
	__asm__ volatile("");
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	float x = 1;

	for (int64_t i = 0; i < (end - begin) * steps_of_item; i++) {
		x = x * 0.999f + 0.001f;
		__asm__ volatile("" : "+x"(x));
	}
	sink = x;
}

struct kind {
	const char *what;
	rg_par_fn *fn;
	int64_t items, chunks;   /* chunks: at most; the grain is items / chunks */
	int64_t total_steps;     /* of the chain, in all items together */
	int calls;               /* back to back, each counted */
	int pause_us;            /* before: beyond what a lane spins */
	bool serial;
	uint64_t ns[ROUNDS];
};

static struct kind kinds[] = {
	{ "a function called, no pool", nothing, 2, 1, 0, 1000, 0, true },
	{ "one chunk: the caller alone", nothing, 2, 1, 0, 1000, 0, false },
	{ "empty, 2 chunks, lanes awake", nothing, 2, 2, 0, 100, 0, false },
	{ "empty, 8 chunks, lanes awake", nothing, 8, 8, 0, 100, 0, false },
	{ "empty, 2 chunks, lanes asleep", nothing, 2, 2, 0, 1, 300, false },
	{ "10 us of work, serial", work, 64, 1, 2500, 20, 0, true },
	{ "10 us of work, 2 chunks", work, 64, 2, 2500, 20, 0, false },
	{ "10 us of work, 8 chunks", work, 64, 8, 2500, 20, 0, false },
	{ "10 us of work, 8 chunks, asleep", work, 64, 8, 2500, 1, 300, false },
	{ "40 us of work, serial", work, 64, 1, 10000, 10, 0, true },
	{ "40 us of work, 2 chunks", work, 64, 2, 10000, 10, 0, false },
	{ "40 us of work, 8 chunks", work, 64, 8, 10000, 10, 0, false },
	{ "40 us of work, 8 chunks, asleep", work, 64, 8, 10000, 1, 300, false },
	{ "400 us of work, serial", work, 64, 1, 100000, 2, 0, true },
	{ "400 us of work, 2 chunks", work, 64, 2, 100000, 2, 0, false },
	{ "400 us of work, 8 chunks", work, 64, 8, 100000, 2, 0, false },
	{ "400 us of work, 32 chunks", work, 64, 32, 100000, 2, 0, false },
};
#define N_KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

static void time_kind(struct kind *k, const struct rg_par *pool, int round)
{
	const struct rg_par *par = k->serial ? &rg_par_serial : pool;
	uint64_t start;

	steps_of_item = k->total_steps / k->items;
	if (k->pause_us)
		usleep((useconds_t)k->pause_us);
	else
		par->run(par, k->items, k->items / k->chunks, k->fn, NULL); /* wakes them */
	start = rg_clock_now_ns();
	for (int i = 0; i < k->calls; i++)
		par->run(par, k->items, k->items / k->chunks, k->fn, NULL);
	k->ns[round] = (rg_clock_now_ns() - start) / (uint64_t)k->calls;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static struct rg_topology topo;
	static int cpus[RG_MAX_CPUS];
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pool *pool;
	int lanes;

	rg_topology_read("", &topo);
	rg_topology_pin_order(&topo, cpus);
	lanes = argc > 1 ? atoi(argv[1]) : rg_topology_default_threads(&topo);
	if (rg_pool_new(lanes, lanes <= topo.n_allowed ? cpus : NULL, &pool, &err)) {
		fprintf(stderr, "bench-pool: %s\n", err.message);
		return 1;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < N_KINDS; i++)
			time_kind(&kinds[i], rg_pool_par(pool), r);
	printf("%d lanes, %d rounds, ns each          least     median\n", lanes, ROUNDS);
	for (int i = 0; i < N_KINDS; i++) {
		qsort(kinds[i].ns, ROUNDS, sizeof(kinds[i].ns[0]), compare);
		printf("%-36s %8llu   %8llu\n", kinds[i].what, (unsigned long long)kinds[i].ns[0],
		       (unsigned long long)kinds[i].ns[ROUNDS / 2]);
	}
	rg_pool_free(pool);
	return 0;
}
