/*
 * Networks are easier than the instances that the search was made for: greedy by
 * size ends at the load for most of them. So the search comes last, and begins
 * at the load itself, which most often can be reached; where its work runs out
 * there, it tries again a little above.
 */
#include "compile/arena.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "compile/search.h"
#include "compile/strategies.h"

#define GOOD_ENOUGH 1.01
#define SEARCH_WORK (INT64_C(1) << 23) /* for each capacity */
#define SEARCH_MAX_BUFFERS 4096        /* a node looks at all of them */
#define PORTFOLIO_MAX_BUFFERS 8192     /* half a second, where all live at once */

int rg_arena_search_low(struct rg_buffer *b, int n, int64_t load_bytes, int64_t limit_bytes, int64_t time_limit_ns,
			int64_t *height_bytes, struct rg_error *err)
{
	static const double over_load[] = { 1, 1.0025, 1.01, 1.03, 1.1 };
	uint64_t begin_ns = rg_clock_now_ns();
	int64_t left_ns = time_limit_ns, work = time_limit_ns < 0 ? SEARCH_WORK : -1;
	enum rg_search_result result = RG_SEARCH_TIMEOUT;
	size_t k;
	int i, rc = 0;

	*height_bytes = -1;
	for (i = 0; i < n; i++)
		b[i].offset_bytes = -1;
	for (k = 0; k < sizeof(over_load) / sizeof(over_load[0]) && !rc && result != RG_SEARCH_FITS; k++) {
		int64_t capacity = (int64_t)((double)load_bytes * over_load[k]);

		if (capacity >= limit_bytes || (k > 0 && time_limit_ns >= 0 && left_ns <= 0))
			break;
		/* the first, which is worth the most, may take half of the time */
		rc = rg_arena_search(b, n, capacity, time_limit_ns < 0 ? -1 : (left_ns + 1) / 2, work, &result, NULL, err);
		left_ns = time_limit_ns - (int64_t)(rg_clock_now_ns() - begin_ns);
	}
	if (!rc && result == RG_SEARCH_FITS)
		*height_bytes = rg_buffers_height(b, n);
	return rc;
}

/* Keeps what is there where the search finds nothing lower. */
static int search(struct rg_buffer *b, int n, struct rg_arena_result *r, struct rg_error *err)
{
	int64_t *offsets = rg_calloc((size_t)n, sizeof(*offsets)), height;
	int i, rc;

	if (!offsets)
		return rg_error_nomem(err, (size_t)n * sizeof(*offsets));
	for (i = 0; i < n; i++)
		offsets[i] = b[i].offset_bytes;
	rc = rg_arena_search_low(b, n, r->load_bytes, r->height_bytes, -1, &height, err);
	if (!rc && height >= 0) {
		r->height_bytes = height;
		r->made_by = "search";
	} else {
		for (i = 0; i < n; i++)
			b[i].offset_bytes = offsets[i];
	}
	rg_free(offsets);
	return rc;
}

/* Of very many buffers that live at once the portfolio takes seconds: then by birth, which
 * is optimal for chains, or by size. */
static int place_many(struct rg_buffer *b, int n, struct rg_arena_result *out, struct rg_error *err)
{
	static const enum rg_strategy order[] = { RG_STRATEGY_GREEDY_BIRTH, RG_STRATEGY_GREEDY_SIZE,
						  RG_STRATEGY_GREEDY_BIRTH };
	int64_t birth_bytes = 0;
	int k, rc = 0;

	for (k = 0; k < 3 && !rc; k++) {
		rc = rg_strategy_place(order[k], b, n, &out->height_bytes, NULL, err);
		out->made_by = rg_strategy_name(order[k]);
		birth_bytes = k == 0 ? out->height_bytes : birth_bytes;
		if (k == 0 ? out->height_bytes == out->load_bytes : out->height_bytes <= birth_bytes)
			break;
	}
	return rc;
}

int rg_arena_place(struct rg_buffer *b, int n, struct rg_arena_result *out, struct rg_error *err)
{
	enum rg_strategy won = RG_STRATEGY_NAIVE;
	int rc = rg_buffers_validate(b, n, NULL, err);

	if (!rc)
		rc = rg_buffers_max_load(b, n, &out->load_bytes, err);
	if (rc)
		return rc;
	if (n > PORTFOLIO_MAX_BUFFERS)
		return place_many(b, n, out, err);
	rc = rg_strategy_place(RG_STRATEGY_PORTFOLIO, b, n, &out->height_bytes, &won, err);
	out->made_by = rg_strategy_name(won);
	if (!rc && n <= SEARCH_MAX_BUFFERS && (double)out->height_bytes > (double)out->load_bytes * GOOD_ENOUGH)
		return search(b, n, out, err);
	return rc;
}
