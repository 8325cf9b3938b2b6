/*
 * Which strategy places the buffers of a plan.
 */
#ifndef RG_COMPILE_ARENA_H
#define RG_COMPILE_ARENA_H

#include "base/error.h"
#include "compile/buffers.h"

struct rg_arena_result {
	int64_t height_bytes; /* where the highest buffer ends */
	int64_t load_bytes;   /* largest sum of bytes alive at once: the lower bound */
	const char *made_by;  /* "greedy-size", "search", ...; static */
};

/*
 * Places b[0..n): the lowest of the strategies that do not look back (strategies.h),
 * and where that ends more than 1 % above the load, the search (search.h) with as
 * much work as takes some tens of milliseconds. (Above 8,192 buffers: greedy by birth
 * or by size, whichever is lower, and no search.) Its limit is counted work, not time: the same
 * buffers get the same offsets on every machine. Errors: those of rg_buffers_validate,
 * -ENOMEM; offsets are undefined then.
 */
int rg_arena_place(struct rg_buffer *b, int n, struct rg_arena_result *out, struct rg_error *err);

/*
 * The search alone, from load_bytes upward but below limit_bytes: *height_bytes is what it
 * reached, or -1 when it found nothing (offsets are -1 then). time_limit_ns is for all
 * of it; -1: its work is counted instead, as above.
 */
int rg_arena_search_low(struct rg_buffer *b, int n, int64_t load_bytes, int64_t limit_bytes, int64_t time_limit_ns,
			int64_t *height_bytes, struct rg_error *err);

#endif
