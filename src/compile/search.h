/*
 * Places buffers below a given capacity, or proves that they do not fit: a
 * branch and bound search. Where the strategies of strategies.h fit, they are faster.
 */
#ifndef RG_COMPILE_SEARCH_H
#define RG_COMPILE_SEARCH_H

#include <stdint.h>

#include "base/error.h"
#include "compile/buffers.h"

enum rg_search_result {
	RG_SEARCH_FITS,       /* every offset_bytes is set */
	RG_SEARCH_INFEASIBLE, /* proven: no placement fits; offsets are -1 */
	RG_SEARCH_TIMEOUT,    /* neither found nor excluded within the limits; offsets are -1 */
};

struct rg_search_stats {
	int64_t nodes;    /* partial placements looked at */
	int64_t restarts; /* begun anew with another order */
	int parts;        /* stretches of time that share no buffer, solved one by one */
};

/*
 * Places b[0..n) below capacity_bytes. It stops time_limit_ns after it began (0:
 * at once, negative: never); the clock is read every few hundred nodes. It also stops
 * after work_limit looks at a buffer in one stretch of time (negative: never), some
 * 500 million of which fit into a second. The same input gives the same offsets,
 * whatever the speed of the machine, unless it runs out of time; running out of work
 * does not depend on the machine.
 * One thread, no state beyond the call; `stats` may be NULL.
 *
 * Returns 0 with *result set, or the error of rg_buffers_validate, or -ENOMEM.
 */
int rg_arena_search(struct rg_buffer *b, int n, int64_t capacity_bytes, int64_t time_limit_ns,
		    int64_t work_limit, enum rg_search_result *result, struct rg_search_stats *stats,
		    struct rg_error *err);

#endif
