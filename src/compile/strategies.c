/*
 * Placement without looking back. Greedy by size is from Pisarchyk and Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020,
 * arXiv:2001.03288; first and best fit are as old as allocators.
 *
 * Of a long network most buffers live at other times than the next one. A tree over
 * the buffers in order of birth, which knows the latest death among the placed ones
 * below each node, finds those that do not: a chain of any length takes a time in
 * proportion to n log n. Where many live at once, one pass over all placed ones in
 * order of offset is cheaper; that list is brought up to date when it is needed.
 */
#include "compile/strategies.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/lowest-first.h"

static const char *const names[RG_STRATEGY_COUNT] = {
	[RG_STRATEGY_NAIVE] = "naive",
	[RG_STRATEGY_GREEDY_BIRTH] = "greedy-birth",
	[RG_STRATEGY_GREEDY_SIZE] = "greedy-size",
	[RG_STRATEGY_GREEDY_SIZE_BEST] = "greedy-size-best",
	[RG_STRATEGY_GREEDY_LOWEST] = "greedy-lowest",
	[RG_STRATEGY_GREEDY_LOWEST_BACK] = "greedy-lowest-back",
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

static int by_offset(const void *pa, const void *pb)
{
	const struct rg_buffer *a = *(struct rg_buffer *const *)pa, *b = *(struct rg_buffer *const *)pb;

	return a->offset_bytes < b->offset_bytes ? -1 : a->offset_bytes > b->offset_bytes;
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

/* Where the buffer fits among those in the list, which ascend by offset; those that
 * live at other times are passed over. */
static int64_t fit(struct rg_buffer *const *list, int n, const struct rg_buffer *b, bool best)
{
	int64_t end = 0, chosen = -1, least = INT64_MAX;
	int i;

	for (i = 0; i < n; i++) {
		const struct rg_buffer *p = list[i];
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

#define FEW 256

struct placer {
	struct rg_buffer *b;
	struct rg_buffer **order;    /* in which they are placed */
	struct rg_buffer **by_birth; /* all n */
	int64_t *latest;             /* heap of 2 * width: end of life; INT64_MIN: nothing placed below */
	int *rank;                   /* of buffer i of the caller in by_birth */
	struct rg_buffer **placed;   /* the first n_sorted ascend by offset */
	struct rg_buffer **room;     /* for sorting */
	int64_t *least;              /* offsets of the lowest placement so far */
	int n, width, n_placed, n_sorted;
	struct rg_buffer *found[FEW];
	int n_found;
};

/* Gathers the placed buffers below node `at` that live while `b` does; false when
 * they are many. Depth is log2 of their number. */
static bool gather(struct placer *p, int at, const struct rg_buffer *b, int low, int high)
{
	if (low >= p->n || p->latest[at] <= b->lower || p->by_birth[low]->lower >= b->upper)
		return true;
	if (high - low == 1) {
		if (p->n_found == FEW)
			return false;
		p->found[p->n_found++] = p->by_birth[low];
		return true;
	}
	return gather(p, 2 * at, b, low, low + (high - low) / 2) &&
	       gather(p, 2 * at + 1, b, low + (high - low) / 2, high);
}

/* Sorts what came since the last time and merges it, from the back, into the rest. */
static void sort_placed(struct placer *p)
{
	int n_new = p->n_placed - p->n_sorted, i = p->n_sorted - 1, k = n_new - 1, at = p->n_placed - 1;

	if (n_new == 0)
		return;
	memcpy(p->room, p->placed + p->n_sorted, (size_t)n_new * sizeof(p->room[0]));
	qsort(p->room, (size_t)n_new, sizeof(p->room[0]), by_offset);
	for (; k >= 0; at--) {
		if (i >= 0 && p->placed[i]->offset_bytes > p->room[k]->offset_bytes)
			p->placed[at] = p->placed[i--];
		else
			p->placed[at] = p->room[k--];
	}
	p->n_sorted = p->n_placed;
}

static void place_one(struct placer *p, struct rg_buffer *b, bool best)
{
	int at = p->width + p->rank[b - p->b];

	if (b->size_bytes == 0) {
		b->offset_bytes = 0;
		return;
	}
	p->n_found = 0;
	if (gather(p, 1, b, 0, p->width)) {
		qsort(p->found, (size_t)p->n_found, sizeof(p->found[0]), by_offset);
		b->offset_bytes = fit(p->found, p->n_found, b, best);
	} else {
		sort_placed(p);
		b->offset_bytes = fit(p->placed, p->n_placed, b, best);
	}
	p->placed[p->n_placed++] = b;
	for (; at >= 1 && p->latest[at] < b->upper; at /= 2)
		p->latest[at] = b->upper;
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

static int place(struct placer *p, enum rg_strategy s, struct rg_error *err)
{
	int i;

	if (s == RG_STRATEGY_GREEDY_LOWEST || s == RG_STRATEGY_GREEDY_LOWEST_BACK)
		return rg_place_lowest_first(p->b, p->n, s == RG_STRATEGY_GREEDY_LOWEST_BACK, err);
	if (s == RG_STRATEGY_NAIVE) {
		end_to_end(p->b, p->n);
		return 0;
	}
	p->n_placed = p->n_sorted = 0;
	for (i = 0; i < 2 * p->width; i++)
		p->latest[i] = INT64_MIN;
	memcpy(p->order, p->by_birth, (size_t)p->n * sizeof(p->order[0]));
	if (s != RG_STRATEGY_GREEDY_BIRTH)
		qsort(p->order, (size_t)p->n, sizeof(p->order[0]), by_size);
	for (i = 0; i < p->n; i++)
		place_one(p, p->order[i], s == RG_STRATEGY_GREEDY_SIZE_BEST);
	return 0;
}

static int make_room(struct placer *p, struct rg_error *err)
{
	size_t n = (size_t)p->n + 1;
	int i;

	for (p->width = 1; p->width < p->n;)
		p->width *= 2;
	p->order = rg_calloc(n, sizeof(struct rg_buffer *));
	p->by_birth = rg_calloc(n, sizeof(struct rg_buffer *));
	p->placed = rg_calloc(n, sizeof(struct rg_buffer *));
	p->room = rg_calloc(n, sizeof(struct rg_buffer *));
	p->rank = rg_calloc(n, sizeof(*p->rank));
	p->least = rg_calloc(n, sizeof(*p->least));
	p->latest = rg_calloc((size_t)p->width * 2, sizeof(*p->latest));
	if (!p->order || !p->by_birth || !p->placed || !p->room || !p->rank || !p->least || !p->latest)
		return rg_error_nomem(err, n * sizeof(struct rg_buffer *));
	for (i = 0; i < p->n; i++)
		p->by_birth[i] = &p->b[i];
	qsort(p->by_birth, (size_t)p->n, sizeof(p->by_birth[0]), by_birth);
	for (i = 0; i < p->n; i++)
		p->rank[p->by_birth[i] - p->b] = i;
	return 0;
}

static void free_room(struct placer *p)
{
	rg_free(p->order);
	rg_free(p->by_birth);
	rg_free(p->placed);
	rg_free(p->room);
	rg_free(p->rank);
	rg_free(p->least);
	rg_free(p->latest);
}

/* The lowest of all. Nothing is below the load, so one that reaches it is the last tried. */
static int place_lowest(struct placer *p, int64_t load_bytes, enum rg_strategy *won, struct rg_error *err)
{
	int64_t least_bytes = INT64_MAX;
	enum rg_strategy s;
	int i, rc;

	for (s = RG_STRATEGY_NAIVE; s < RG_STRATEGY_PORTFOLIO && least_bytes > load_bytes; s++) {
		int64_t height;

		rc = place(p, s, err);
		if (rc)
			return rc;
		height = rg_buffers_height(p->b, p->n);
		if (height >= least_bytes)
			continue;
		least_bytes = height;
		*won = s;
		for (i = 0; i < p->n; i++)
			p->least[i] = p->b[i].offset_bytes;
	}
	for (i = 0; i < p->n; i++)
		p->b[i].offset_bytes = p->least[i];
	return 0;
}

int rg_strategy_place(enum rg_strategy s, struct rg_buffer *b, int n, int64_t *height_bytes,
		      enum rg_strategy *won, struct rg_error *err)
{
	struct placer p = { .b = b, .n = n };
	enum rg_strategy made_by = s;
	int64_t load_bytes = 0;
	int rc = rg_buffers_validate(b, n, NULL, err);

	if (!rc && s == RG_STRATEGY_PORTFOLIO)
		rc = rg_buffers_max_load(b, n, &load_bytes, err);
	if (rc)
		return rc;
	rc = make_room(&p, err);
	if (!rc)
		rc = s == RG_STRATEGY_PORTFOLIO ? place_lowest(&p, load_bytes, &made_by, err) : place(&p, s, err);
	if (!rc)
		*height_bytes = rg_buffers_height(b, n);
	if (!rc && won)
		*won = made_by;
	free_room(&p);
	return rc;
}
