#include "base/clock.h"

#include <time.h>

#include "base/stats.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rg_clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC_RAW);
}

uint64_t rg_clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

double rg_clock_cost_ns(void)
{
	enum { ROUNDS = 31, CALLS = 1000 };
	double per_call[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t start = rg_clock_now_ns(), end = start;

		for (int i = 0; i < CALLS; i++)
			end = rg_clock_now_ns();
		per_call[r] = (double)(end - start) / CALLS;
	}
	return rg_stats_median(per_call, ROUNDS);
}
