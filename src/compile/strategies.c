/*
 * Placement without looking back. Greedy by size is from Pisarchyk and Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020,
 * arXiv:2001.03288; first and best fit are as old as allocators.
 */
#include "compile/strategies.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const char *const names[RG_STRATEGY_COUNT] = {
	[RG_STRATEGY_NAIVE] = "naive",
	[RG_STRATEGY_GREEDY_BIRTH] = "greedy-birth",
	[RG_STRATEGY_GREEDY_SIZE] = "greedy-size",
	[RG_STRATEGY_GREEDY_SIZE_BEST] = "greedy-size-best",
	[RG_STRATEGY_PORTFOLIO] = "portfolio",
};

const char *rg_strategy_name(enum rg_strategy s)
{
	return names[s];
}

bool rg_strategy_parse(const char *name, enum rg_strategy *s)
{
	int i;

	for (i = 0; i < RG_STRATEGY_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*s = (enum rg_strategy)i;
			return true;
		}
	}
	return false;
}

static int64_t align_up(int64_t v, int64_t align)
{
	int64_t over = v % align;

	return over ? v + (align - over) : v;
}

static int by_birth(const void *pa, const void *pb)
{
	const struct rg_buffer *a = *(struct rg_buffer *const *)pa, *b = *(struct rg_buffer *const *)pb;

	if (a->lower != b->lower)
		return a->lower < b->lower ? -1 : 1;
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes > b->size_bytes ? -1 : 1;
	return a < b ? -1 : a > b; /* one array: the order is that of the caller */
}

static int by_size(const void *pa, const void *pb)
{
	const struct rg_buffer *a = *(struct rg_buffer *const *)pa, *b = *(struct rg_buffer *const *)pb;

	if (a->size_bytes != b->size_bytes)
		return a->size_bytes > b->size_bytes ? -1 : 1;
	if (a->lower != b->lower)
		return a->lower < b->lower ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Where the buffer fits among those placed, which ascend by offset. */
static int64_t fit(struct rg_buffer *const *placed, int n, const struct rg_buffer *b, bool best)
{
	int64_t end = 0, chosen = -1, least = INT64_MAX;
	int i;

	for (i = 0; i < n; i++) {
		const struct rg_buffer *p = placed[i];
		int64_t at = align_up(end, b->align_bytes), hole = p->offset_bytes - end;

		if (p->upper <= b->lower || b->upper <= p->lower)
			continue;
		if (p->offset_bytes - at >= b->size_bytes && hole < least) {
			chosen = at;
			least = hole;
			if (!best)
				break;
		}
		if (p->offset_bytes + p->size_bytes > end)
			end = p->offset_bytes + p->size_bytes;
	}
	return chosen >= 0 ? chosen : align_up(end, b->align_bytes);
}

static void place_one(struct rg_buffer **placed, int *n, struct rg_buffer *b, bool best)
{
	int i;

	if (b->size_bytes == 0) {
		b->offset_bytes = 0;
		return;
	}
	b->offset_bytes = fit(placed, *n, b, best);
	for (i = (*n)++; i > 0 && placed[i - 1]->offset_bytes > b->offset_bytes; i--)
		placed[i] = placed[i - 1];
	placed[i] = b;
}

static void end_to_end(struct rg_buffer *b, int n)
{
	int64_t end = 0;
	int i;

	for (i = 0; i < n; i++) {
		b[i].offset_bytes = align_up(end, b[i].align_bytes);
		end = b[i].offset_bytes + b[i].size_bytes;
	}
}

/* `order` and `placed` have room for n. */
static void place(enum rg_strategy s, struct rg_buffer *b, int n, struct rg_buffer **order,
		  struct rg_buffer **placed)
{
	int i, n_placed = 0;

	if (s == RG_STRATEGY_NAIVE) {
		end_to_end(b, n);
		return;
	}
	for (i = 0; i < n; i++)
		order[i] = &b[i];
	qsort(order, (size_t)n, sizeof(order[0]), s == RG_STRATEGY_GREEDY_BIRTH ? by_birth : by_size);
	for (i = 0; i < n; i++)
		place_one(placed, &n_placed, order[i], s == RG_STRATEGY_GREEDY_SIZE_BEST);
}

int rg_strategy_place(enum rg_strategy s, struct rg_buffer *b, int n, int64_t *height_bytes,
		      enum rg_strategy *won, struct rg_error *err)
{
	enum rg_strategy least = s, k;
	struct rg_buffer **order, **placed;
	int64_t least_bytes = INT64_MAX;
	int rc = rg_buffers_validate(b, n, NULL, err);

	if (rc)
		return rc;
	order = rg_calloc((size_t)n + 1, sizeof(struct rg_buffer *));
	placed = rg_calloc((size_t)n + 1, sizeof(struct rg_buffer *));
	if (!order || !placed) {
		rc = rg_error_nomem(err, ((unsigned long)n + 1) * sizeof(struct rg_buffer *));
		goto out;
	}
	if (s == RG_STRATEGY_PORTFOLIO) {
		for (k = RG_STRATEGY_NAIVE; k < RG_STRATEGY_PORTFOLIO; k++) {
			int64_t height;

			place(k, b, n, order, placed);
			height = rg_buffers_height(b, n);
			if (height < least_bytes) {
				least_bytes = height;
				least = k;
			}
		}
	}
	place(least, b, n, order, placed);
	*height_bytes = rg_buffers_height(b, n);
	if (won)
		*won = least;
out:
	rg_free(order);
	rg_free(placed);
	return rc;
}
