/*
 * The memory planner: places buffers that live over intervals of steps into
 * one arena.
 *
 * Greedy by size, first fit: the largest buffer first, each at the lowest
 * offset where it meets no buffer that is alive at the same time (Pisarchyk
 * and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
 * arXiv:2001.03288, call it greedy by size for offset calculation). Large
 * buffers decide the height of the arena, so they get the free choice.
 */
#include "compile/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ALIGN_BYTES 64

static int by_size(const void *pa, const void *pb)
{
	const struct rg_arena_item *a = *(struct rg_arena_item *const *)pa;
	const struct rg_arena_item *b = *(struct rg_arena_item *const *)pb;

	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a < b ? -1 : a > b; /* one array: the order is that of the caller */
}

static int64_t align_up(int64_t v)
{
	return (v + (ALIGN_BYTES - 1)) & ~(int64_t)(ALIGN_BYTES - 1);
}

/*
 * `placed` holds the items that have an offset, ascending by it. Returns the
 * position at which the new item keeps that order.
 */
static int first_fit(struct rg_arena_item *const *placed, int n, struct rg_arena_item *item)
{
	int64_t end = 0; /* of everything that is alive at the same time and lies below */
	int i, at;

	for (i = 0; i < n; i++) {
		const struct rg_arena_item *p = placed[i];

		if (p->last < item->first || p->first > item->last)
			continue;
		if (p->offset_bytes - end >= item->size_bytes)
			break;
		if (p->offset_bytes + p->size_bytes > end)
			end = align_up(p->offset_bytes + p->size_bytes);
	}
	item->offset_bytes = end;
	for (at = n; at > 0 && placed[at - 1]->offset_bytes > end; at--)
		continue;
	return at;
}

struct event {
	int step;
	int64_t delta_bytes;
};

/* Ends before starts at the same step: an end is filed at last + 1. */
static int by_step(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return (a->delta_bytes > b->delta_bytes) - (a->delta_bytes < b->delta_bytes);
}

/* The largest sum of bytes alive at once: no arena can be smaller. */
static int max_load(const struct rg_arena_item *items, int n, int64_t *out, struct rg_error *err)
{
	struct event *e = rg_calloc((size_t)n * 2, sizeof(*e));
	int64_t sum = 0, most = 0;
	int i;

	if (!e)
		return rg_error_nomem(err, (size_t)n * 2 * sizeof(*e));
	for (i = 0; i < n; i++) {
		e[2 * i].step = items[i].first;
		e[2 * i].delta_bytes = items[i].size_bytes;
		e[2 * i + 1].step = items[i].last + 1;
		e[2 * i + 1].delta_bytes = -items[i].size_bytes;
	}
	qsort(e, (size_t)n * 2, sizeof(*e), by_step);
	for (i = 0; i < 2 * n; i++) {
		sum += e[i].delta_bytes;
		if (sum > most)
			most = sum;
	}
	rg_free(e);
	*out = most;
	return 0;
}

/* The sum of all aligned sizes bounds every sum and offset below. */
static int check_items(const struct rg_arena_item *items, int n, struct rg_error *err)
{
	int64_t total = 0;
	int i;

	for (i = 0; i < n; i++) {
		const struct rg_arena_item *it = &items[i];

		if (it->size_bytes < 0 || it->first > it->last || it->last == INT32_MAX)
			return rg_error_set(err, -EINVAL, "buffer %d: %lld bytes over steps %d to %d is no "
					    "buffer", i,
					    (long long)it->size_bytes, it->first, it->last);
		if (it->size_bytes > INT64_MAX - ALIGN_BYTES ||
		    __builtin_add_overflow(total, align_up(it->size_bytes), &total))
			return rg_error_set(err, -EOVERFLOW, "the activations of this model together exceed "
					    "2^63 bytes");
	}
	return 0;
}

int rg_arena_place(struct rg_arena_item *items, int n, int64_t *arena_bytes, int64_t *lower_bound_bytes,
		   struct rg_error *err)
{
	struct rg_arena_item **order, **placed;
	int64_t height = 0;
	int i, rc;

	*arena_bytes = *lower_bound_bytes = 0;
	if (n == 0)
		return 0;
	rc = check_items(items, n, err);
	if (!rc)
		rc = max_load(items, n, lower_bound_bytes, err);
	if (rc)
		return rc;
	order = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	placed = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	if (!order || !placed) {
		rg_free(order);
		rg_free(placed);
		return rg_error_nomem(err, (size_t)n * sizeof(struct rg_arena_item *));
	}
	for (i = 0; i < n; i++)
		order[i] = &items[i];
	qsort(order, (size_t)n, sizeof(order[0]), by_size);
	for (i = 0; i < n; i++) {
		int at = first_fit(placed, i, order[i]);
		int64_t end = order[i]->offset_bytes + order[i]->size_bytes;

		memmove(placed + at + 1, placed + at, (size_t)(i - at) * sizeof(placed[0]));
		placed[at] = order[i];
		if (end > height)
			height = end;
	}
	rg_free(order);
	rg_free(placed);
	*arena_bytes = align_up(height);
	return 0;
}
