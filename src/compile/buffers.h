/*
 * Buffers to be placed into one arena: what the memory planner works on, apart
 * from any graph.
 *
 * A buffer lives in the half-open interval [lower, upper) of some clock (steps,
 * nanoseconds: only the order matters) and takes size_bytes at an offset that is
 * a multiple of align_bytes. Two buffers overlap when they are alive at once and
 * share a byte. The caller owns the arrays; nothing here keeps a pointer.
 */
#ifndef RG_COMPILE_BUFFERS_H
#define RG_COMPILE_BUFFERS_H

#include <stdint.h>

#include "base/error.h"

struct rg_buffer {
	int64_t lower, upper;  /* lower < upper */
	int64_t size_bytes;    /* >= 0; of 0 bytes: any offset will do, and it overlaps nothing */
	int64_t align_bytes;   /* >= 1, need not be a power of two */
	int64_t offset_bytes;  /* result; -1: not placed */
};

/*
 * Refuses what no planner may be given: an empty or inverted interval, a negative
 * size, an alignment below 1 (-EINVAL), and sets that end to end, alignment
 * included, pass INT64_MAX / 4 bytes (-EOVERFLOW). *end_to_end_bytes, which may
 * be NULL, is then the height of any arrangement that leaves no needless hole.
 */
int rg_buffers_validate(const struct rg_buffer *b, int n, int64_t *end_to_end_bytes, struct rg_error *err);

/* The largest sum of bytes alive at once: no arena can be smaller. */
int rg_buffers_max_load(const struct rg_buffer *b, int n, int64_t *load_bytes, struct rg_error *err);

/* The end of the highest buffer; 0 for none. All must have been placed. */
int64_t rg_buffers_height(const struct rg_buffer *b, int n);

/*
 * Proves a placement: every offset is set, aligned, and ends at or below
 * capacity_bytes, and no two buffers alive at once share a byte. 0, or -EFAULT
 * naming the buffers by their index; -ENOMEM. It shares no code with those who place,
 * and sweeps over time, so that it also serves for tens of thousands of buffers.
 */
int rg_buffers_check(const struct rg_buffer *b, int n, int64_t capacity_bytes, struct rg_error *err);

#endif
