/*
 * What holds for any set of buffers and any placement, whoever made it.
 */
#include "compile/buffers.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

int rg_buffers_validate(const struct rg_buffer *b, int n, int64_t *end_to_end_bytes, struct rg_error *err)
{
	int64_t sum = 0, with_gap;
	int i;

	for (i = 0; i < n; i++) {
		if (b[i].lower >= b[i].upper)
			return rg_error_set(err, -EINVAL, "buffer %d lives from %lld to %lld, which is no interval", i,
					    (long long)b[i].lower, (long long)b[i].upper);
		if (b[i].size_bytes < 0)
			return rg_error_set(err, -EINVAL, "buffer %d has %lld bytes", i, (long long)b[i].size_bytes);
		if (b[i].align_bytes < 1)
			return rg_error_set(err, -EINVAL, "buffer %d has the alignment %lld", i,
					    (long long)b[i].align_bytes);
		if (__builtin_add_overflow(b[i].size_bytes, b[i].align_bytes - 1, &with_gap) ||
		    __builtin_add_overflow(sum, with_gap, &sum) || sum > INT64_MAX / 4)
			return rg_error_set(err, -EOVERFLOW, "the buffers together exceed 2^61 bytes");
	}
	if (end_to_end_bytes)
		*end_to_end_bytes = sum;
	return 0;
}

int64_t rg_buffers_height(const struct rg_buffer *b, int n)
{
	int64_t height = 0;
	int i;

	for (i = 0; i < n; i++)
		if (b[i].size_bytes > 0 && b[i].offset_bytes + b[i].size_bytes > height)
			height = b[i].offset_bytes + b[i].size_bytes;
	return height;
}

struct event {
	int64_t time;
	int index;
	bool begin;
};

/* What ends at a moment goes before what begins then. */
static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin ? 1 : -1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Begins and ends in order of time; NULL: no memory. */
static struct event *events(const struct rg_buffer *b, int n)
{
	struct event *e = rg_calloc((size_t)n * 2 + 1, sizeof(*e));
	int i;

	if (!e)
		return NULL;
	for (i = 0; i < n; i++) {
		e[2 * i] = (struct event){ b[i].lower, i, true };
		e[2 * i + 1] = (struct event){ b[i].upper, i, false };
	}
	qsort(e, (size_t)n * 2, sizeof(*e), by_time);
	return e;
}

int rg_buffers_max_load(const struct rg_buffer *b, int n, int64_t *load_bytes, struct rg_error *err)
{
	struct event *e = events(b, n);
	int64_t sum = 0, most = 0;
	int i;

	if (!e)
		return rg_error_nomem(err, ((unsigned long)n * 2 + 1) * sizeof(*e));
	for (i = 0; i < 2 * n; i++) {
		sum += e[i].begin ? b[e[i].index].size_bytes : -b[e[i].index].size_bytes;
		most = sum > most ? sum : most;
	}
	rg_free(e);
	*load_bytes = most;
	return 0;
}

static int check_one(const struct rg_buffer *b, int i, int64_t capacity_bytes, struct rg_error *err)
{
	int64_t end;

	if (b->offset_bytes < 0)
		return rg_error_set(err, -EFAULT, "buffer %d has no offset", i);
	if (b->offset_bytes % b->align_bytes)
		return rg_error_set(err, -EFAULT, "buffer %d at %lld is not aligned to %lld", i,
				    (long long)b->offset_bytes, (long long)b->align_bytes);
	if (b->size_bytes > 0 && (__builtin_add_overflow(b->offset_bytes, b->size_bytes, &end) || end > capacity_bytes))
		return rg_error_set(err, -EFAULT, "buffer %d of %lld bytes at %lld ends above the capacity %lld", i,
				    (long long)b->size_bytes, (long long)b->offset_bytes, (long long)capacity_bytes);
	return 0;
}

/*
 * The buffers alive at the moment of the sweep, ascending by offset. As long as
 * they share no byte, a new one can only meet its two neighbours.
 */
static int enter(int *alive, int *n_alive, const struct rg_buffer *b, int i, struct rg_error *err)
{
	int lo = 0, hi = *n_alive, k, other = -1;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (b[alive[mid]].offset_bytes < b[i].offset_bytes)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < *n_alive && b[alive[lo]].offset_bytes < b[i].offset_bytes + b[i].size_bytes)
		other = alive[lo];
	if (lo > 0 && b[alive[lo - 1]].offset_bytes + b[alive[lo - 1]].size_bytes > b[i].offset_bytes)
		other = alive[lo - 1];
	if (other >= 0)
		return rg_error_set(err, -EFAULT, "buffers %d and %d are alive at once and overlap", other, i);
	for (k = (*n_alive)++; k > lo; k--)
		alive[k] = alive[k - 1];
	alive[lo] = i;
	return 0;
}

static void leave(int *alive, int *n_alive, int i)
{
	int k;

	for (k = 0; alive[k] != i; k++)
		;
	for ((*n_alive)--; k < *n_alive; k++)
		alive[k] = alive[k + 1];
}

int rg_buffers_check(const struct rg_buffer *b, int n, int64_t capacity_bytes, struct rg_error *err)
{
	struct event *e;
	int *alive, n_alive = 0, i, rc = 0;

	for (i = 0; i < n; i++) {
		rc = check_one(&b[i], i, capacity_bytes, err);
		if (rc)
			return rc;
	}
	e = events(b, n);
	alive = rg_calloc((size_t)n + 1, sizeof(*alive));
	if (!e || !alive)
		rc = rg_error_nomem(err, ((unsigned long)n * 2 + 1) * sizeof(*e));
	for (i = 0; !rc && i < 2 * n; i++) {
		if (b[e[i].index].size_bytes == 0)
			continue;
		if (e[i].begin)
			rc = enter(alive, &n_alive, b, e[i].index, err);
		else
			leave(alive, &n_alive, e[i].index);
	}
	rg_free(e);
	rg_free(alive);
	return rc;
}
