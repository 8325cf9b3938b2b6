/*
 * Fast ways to place buffers into one arena. None looks back; each gives a valid
 * placement of whatever height it reaches. Compare with rg_buffers_max_load, below
 * which nothing can be, and with search.h, which aims at a given capacity.
 */
#ifndef RG_COMPILE_STRATEGIES_H
#define RG_COMPILE_STRATEGIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "compile/buffers.h"

enum rg_strategy {
	RG_STRATEGY_NAIVE,          /* end to end: no byte is shared */
	RG_STRATEGY_GREEDY_BIRTH,   /* as they come to life, each at the lowest offset that is free all
	                               its life. With equal sizes it reaches the greatest load exactly: the
	                               lowest slot not in use is below the number alive */
	RG_STRATEGY_GREEDY_SIZE,    /* the largest first, lowest offset that is free */
	RG_STRATEGY_GREEDY_SIZE_BEST, /* the largest first, smallest hole that is large enough */
	RG_STRATEGY_GREEDY_LOWEST,  /* the next is the one that can begin lowest (lowest-first.c) */
	RG_STRATEGY_GREEDY_LOWEST_BACK, /* the same, as if time ran backwards */
	RG_STRATEGY_PORTFOLIO,      /* the lowest of the above; the earlier one when they are equal */
	RG_STRATEGY_COUNT
};

const char *rg_strategy_name(enum rg_strategy s); /* "greedy-size" */
bool rg_strategy_parse(const char *name, enum rg_strategy *s);

/*
 * Sets every offset, and *height_bytes to where the highest buffer ends. *won, which may be
 * NULL, is the strategy that made it, which differs from `s` for the portfolio. Where few live at once, time is
 * in proportion to n log n; at worst it is quadratic. Errors: those of rg_buffers_validate, -ENOMEM.
 */
int rg_strategy_place(enum rg_strategy s, struct rg_buffer *b, int n, int64_t *height_bytes,
		      enum rg_strategy *won, struct rg_error *err);

#endif
