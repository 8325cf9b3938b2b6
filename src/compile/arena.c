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
 * The lowest offset for the item among those in the list, which is ascending by
 * offset; those that live at other times are passed over.
 */
static int64_t first_fit(struct rg_arena_item *const *list, int n, const struct rg_arena_item *item)
{
	int64_t end = 0; /* of everything that is alive at the same time and lies below */
	int i;

	for (i = 0; i < n; i++) {
		const struct rg_arena_item *p = list[i];

		if (p->last < item->first || p->first > item->last)
			continue;
		if (p->offset_bytes - end >= item->size_bytes)
			break;
		if (p->offset_bytes + p->size_bytes > end)
			end = align_up(p->offset_bytes + p->size_bytes);
	}
	return end;
}

/*
 * The items that have an offset. In a long graph most of them live at other times
 * than the next one: a tree over the items in order of their first step, which
 * knows the latest last step below each node, finds those that do not. Where many
 * live at once, one pass over all of them in order of offset is cheaper; that
 * list is brought up to date when it is needed.
 */
#define FEW 256

struct placer {
	struct rg_arena_item **by_first; /* all n items */
	int *latest;                     /* heap of 2 * width; -1: nothing placed below */
	int *rank;                       /* of item i of the caller in by_first */
	struct rg_arena_item **placed;   /* the first n_sorted ascend by offset */
	int n, width, n_placed, n_sorted;
	struct rg_arena_item *found[FEW];
	int n_found;
};

static int by_first_step(const void *pa, const void *pb)
{
	const struct rg_arena_item *a = *(struct rg_arena_item *const *)pa;
	const struct rg_arena_item *b = *(struct rg_arena_item *const *)pb;

	return a->first < b->first ? -1 : a->first > b->first;
}

static int by_offset(const void *pa, const void *pb)
{
	const struct rg_arena_item *a = *(struct rg_arena_item *const *)pa;
	const struct rg_arena_item *b = *(struct rg_arena_item *const *)pb;

	return a->offset_bytes < b->offset_bytes ? -1 : a->offset_bytes > b->offset_bytes;
}

/* Gathers the placed items below node `at` that live while `item` does; false
 * when they are many. Depth is log2 of their number. */
static bool gather(struct placer *p, int at, const struct rg_arena_item *item, int low, int high)
{
	if (low >= p->n || p->latest[at] < item->first || p->by_first[low]->first > item->last)
		return true;
	if (high - low == 1) {
		if (p->n_found == FEW)
			return false;
		p->found[p->n_found++] = p->by_first[low];
		return true;
	}
	return gather(p, 2 * at, item, low, (low + high) / 2) &&
	       gather(p, 2 * at + 1, item, (low + high) / 2, high);
}

/* Sorts what came since the last time and merges it, from the back, into the rest. */
static void sort_placed(struct placer *p, struct rg_arena_item **room)
{
	int n_new = p->n_placed - p->n_sorted, i = p->n_sorted - 1, k = n_new - 1, at = p->n_placed - 1;

	if (n_new == 0)
		return;
	memcpy(room, p->placed + p->n_sorted, (size_t)n_new * sizeof(room[0]));
	qsort(room, (size_t)n_new, sizeof(room[0]), by_offset);
	for (; k >= 0; at--) {
		if (i >= 0 && p->placed[i]->offset_bytes > room[k]->offset_bytes)
			p->placed[at] = p->placed[i--];
		else
			p->placed[at] = room[k--];
	}
	p->n_sorted = p->n_placed;
}

static void place(struct placer *p, struct rg_arena_item *item, int rank, struct rg_arena_item **room)
{
	int at = p->width + rank;

	p->n_found = 0;
	if (gather(p, 1, item, 0, p->width)) {
		qsort(p->found, (size_t)p->n_found, sizeof(p->found[0]), by_offset);
		item->offset_bytes = first_fit(p->found, p->n_found, item);
	} else {
		sort_placed(p, room);
		item->offset_bytes = first_fit(p->placed, p->n_placed, item);
	}
	p->placed[p->n_placed++] = item;
	for (; at >= 1 && p->latest[at] < item->last; at /= 2)
		p->latest[at] = item->last;
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
	struct placer p = { .n = n, .width = 1 };
	struct rg_arena_item **order, **room;
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
	while (p.width < n)
		p.width *= 2;
	order = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	room = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	p.by_first = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	p.placed = rg_calloc((size_t)n, sizeof(struct rg_arena_item *));
	p.rank = rg_calloc((size_t)n, sizeof(*p.rank));
	p.latest = rg_calloc((size_t)p.width * 2, sizeof(*p.latest));
	if (!order || !room || !p.by_first || !p.placed || !p.rank || !p.latest) {
		rc = rg_error_nomem(err, (size_t)n * sizeof(struct rg_arena_item *));
		goto out;
	}
	for (i = 0; i < 2 * p.width; i++)
		p.latest[i] = -1;
	for (i = 0; i < n; i++)
		order[i] = p.by_first[i] = &items[i];
	qsort(order, (size_t)n, sizeof(order[0]), by_size);
	qsort(p.by_first, (size_t)n, sizeof(p.by_first[0]), by_first_step);
	for (i = 0; i < n; i++)
		p.rank[p.by_first[i] - items] = i;
	for (i = 0; i < n; i++) {
		place(&p, order[i], p.rank[order[i] - items], room);
		if (order[i]->offset_bytes + order[i]->size_bytes > height)
			height = order[i]->offset_bytes + order[i]->size_bytes;
	}
	*arena_bytes = align_up(height);
out:
	rg_free(order);
	rg_free(room);
	rg_free(p.by_first);
	rg_free(p.placed);
	rg_free(p.rank);
	rg_free(p.latest);
	return rc;
}
