/*
 * TfIdfVectorizer. The n-grams of each length are sorted once, so that a search
 * takes a few comparisons, however large the pool is.
 *
 * Of n-grams that share a place in the output, IDF keeps the weight of the one
 * that was met last; for the other modes their sum is right.
 */
#include <string.h>

#include "graph/text.h"
#include "graph/tfidf.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* ---- the sorted n-grams ---- */

static int compare_entries(const struct rg_attr *pool, int a, int b)
{
	if (pool->type == RG_ATTR_STRINGS)
		return strcmp(pool->strings[a], pool->strings[b]);
	return (pool->ints[a] > pool->ints[b]) - (pool->ints[a] < pool->ints[b]);
}

struct grams {
	const struct rg_attr *pool;
	int from, len;
};

static int compare_grams(const struct grams *g, int a, int b)
{
	int c = 0;

	for (int i = 0; i < g->len && c == 0; i++)
		c = compare_entries(g->pool, g->from + a * g->len + i, g->from + b * g->len + i);
	return c;
}

static void sift_down(const struct grams *g, int *heap, int n, int at)
{
	int v = heap[at];

	for (int child = 2 * at + 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && compare_grams(g, heap[child], heap[child + 1]) < 0)
			child++;
		if (compare_grams(g, v, heap[child]) >= 0)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = v;
}

static void sort(const struct grams *g, int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n / 2 - 1; i >= 0; i--)
		sift_down(g, order, n, i);
	for (int left = n - 1; left > 0; left--) {
		int greatest = order[0];

		order[0] = order[left];
		order[left] = greatest;
		sift_down(g, order, left, 0);
	}
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tfidf a;

	return rg_tfidf_resolve(c->node, &a, &err) ? 0 : (size_t)a.n_grams * sizeof(int);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct rg_tfidf a;

	if (rg_tfidf_resolve(c->node, &a, err))
		return err->code;
	for (int len = 1; len <= a.counts->count; len++) {
		struct rg_tfidf_grams all = rg_tfidf_grams(&a, len);
		struct grams g = { a.pool, all.from, len };
		int *order = (int *)prepared + all.first;

		sort(&g, order, all.count);
		for (int i = 1; i < all.count; i++)
			if (compare_grams(&g, order[i - 1], order[i]) == 0)
				return rg_error_set(err, -EINVAL, "the pool lists an n-gram of length %d twice", len);
	}
	return 0;
}

/* ---- counting ---- */

struct row {
	const struct rg_tfidf *a;
	const struct rg_tensor *x;
	int64_t first, length;   /* of the input row */
	const int *order;
	int64_t *counts;         /* by n-gram */
	float *y;
};

static int compare_element(const struct row *r, int64_t at, int entry)
{
	int64_t v;

	if (r->x->dtype == RG_STRING)
		return strcmp(rg_text_at(r->x, at), r->a->pool->strings[entry]);
	v = r->x->dtype == RG_I64 ? ((const int64_t *)r->x->data)[at] : ((const int32_t *)r->x->data)[at];
	return (v > r->a->pool->ints[entry]) - (v < r->a->pool->ints[entry]);
}

/* The n-gram that begins at `start` with elements `step` apart, or -1. */
static int find(const struct row *r, int64_t start, int64_t step, int len)
{
	struct rg_tfidf_grams g = rg_tfidf_grams(r->a, len);
	const int *order = r->order + g.first;
	int low = 0, high = g.count;

	while (low < high) {
		int mid = low + (high - low) / 2, c = 0;

		for (int i = 0; i < len && c == 0; i++)
			c = compare_element(r, r->first + start + i * step, g.from + order[mid] * len + i);
		if (c == 0)
			return g.first + order[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return -1;
}

static void met(const struct row *r, int gram)
{
	r->counts[gram]++;
	if (r->a->mode == RG_TFIDF_IDF)
		r->y[r->a->columns[gram]] = r->a->weights ? r->a->weights[gram] : 1;
}

/* Single elements are counted once, since no skip changes them. */
static void count_row(const struct row *r)
{
	const struct rg_tfidf *a = r->a;

	for (int64_t step = 1; step <= r->length && step - 1 <= a->max_skip; step++) {
		int shortest = step > 1 && a->min_len == 1 ? 2 : a->min_len;

		if (shortest > a->max_len)
			break;
		for (int64_t start = 0; start < r->length; start++) {
			for (int len = shortest; len <= a->max_len; len++) {
				int gram;

				if (len - 1 > (r->length - 1 - start) / step)
					break;
				gram = find(r, start, step, len);
				if (gram >= 0)
					met(r, gram);
			}
		}
	}
	for (int i = 0; i < a->n_grams && a->mode != RG_TFIDF_IDF; i++) {
		double weight = a->mode == RG_TFIDF_TFIDF && a->weights ? (double)a->weights[i] : 1;

		if (r->counts[i])
			r->y[a->columns[i]] += (float)(weight * (double)r->counts[i]);
	}
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tfidf a;

	return rg_tfidf_resolve(c->node, &a, &err) ? 0 : (size_t)a.n_grams * sizeof(int64_t);
}

static int tfidf(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t rows = rg_shape_count_range(s, 0, s->rank - 1);
	struct rg_tfidf a;
	struct row r = { .a = &a, .x = &c->in[0], .length = s->dim[s->rank - 1], .order = c->prepared,
			 .counts = c->scratch, .y = c->out[0].data };

	if (rg_tfidf_resolve(c->node, &a, err))
		return err->code;
	for (int64_t i = 0; i < rows; i++) {
		memset(r.counts, 0, (size_t)a.n_grams * sizeof(*r.counts));
		memset(r.y, 0, (size_t)a.n_columns * sizeof(*r.y));
		count_row(&r);
		r.first += r.length;
		r.y += a.n_columns;
	}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "TfIdfVectorizer", .domain = "", .name = "ref", .prepared_bytes = prepared_bytes,
	  .prepare = prepare, .scratch_bytes = scratch_bytes, .run = tfidf },
};
RG_KERNEL_TABLE(rg_kernels_ref_tfidf, kernels);
