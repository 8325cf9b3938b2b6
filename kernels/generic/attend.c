/* See attend.h. */
#include "kernels/generic/attend.h"

#include <math.h>

#include "kernels/cache.h"
#include "kernels/generic/attend-lane.h"
#include "kernels/generic/vexp.h"
#include "kernels/generic/vmath.h"

enum {
	FEW_ROWS = 12,       /* up to which K and V are used where they lie */
	MANY_KEYS = 128,     /* a block of them: packed, both stay in L2, V's panel in L1 */
	HEAD_MOST = 4096,
	SCORES = (RG_TILE_ROWS > FEW_ROWS ? RG_TILE_ROWS : FEW_ROWS),
};

/* ---- the plan ---- */

/* Floats from one row of accumulators to the next: whole panels. */
static int64_t y_width(const struct rg_attend_plan *p)
{
	return rg_attend_round_up(p->size.v_head, RG_TILE_COLS);
}

/* Rows of a block whose queries and sums stay in half of L2, beside K and V. */
static int64_t rows_that_fit(const struct rg_attention *s)
{
	int64_t width = s->head + rg_attend_round_up(s->v_head, RG_TILE_COLS);
	int64_t room = rg_kernel_caches()->l2_bytes / 2 / (int64_t)sizeof(float) - MANY_KEYS * width;

	return rg_attend_max(48, rg_attend_min(384, room / rg_attend_max(width, 1))) / RG_TILE_ROWS *
	       RG_TILE_ROWS;
}

static void cut(struct rg_attend_plan *p)
{
	const struct rg_attention *s = &p->size;
	int64_t fit = rows_that_fit(s), group = s->q_heads / s->kv_heads, groups = s->batch * s->kv_heads;
	int64_t want = p->lanes > 1 ? 4 * p->lanes : 1;

	if (s->q_seq >= fit || s->q_seq == 0) {
		p->heads = 1;
		p->queries = fit;
	} else {
		p->heads = rg_attend_min(group, fit / s->q_seq);
		p->queries = s->q_seq;
	}
	/* smaller blocks where there are not enough for the lanes, while they keep packing worth it */
	while (groups * rg_attend_div_up(group, p->heads) * rg_attend_div_up(s->q_seq, p->queries) < want) {
		if (p->heads > 1 && p->heads * p->queries >= 4 * RG_TILE_ROWS)
			p->heads = rg_attend_div_up(p->heads, 2);
		else if (p->heads == 1 && p->queries >= 8 * RG_TILE_ROWS)
			p->queries = rg_attend_round_up(rg_attend_div_up(p->queries, 2), RG_TILE_ROWS);
		else
			break;
	}
	p->head_blocks = rg_attend_div_up(group, p->heads);
	p->query_blocks = rg_attend_div_up(s->q_seq, p->queries);
	p->rows = p->heads * rg_attend_min(p->queries, s->q_seq);
	p->few = p->rows <= FEW_ROWS;
	p->keys = !p->few ? MANY_KEYS : p->rows <= 2 ? 128 : 32;
	p->items = groups * p->head_blocks * p->query_blocks;
	p->splits = 1;
	/* a split should be long enough to be worth joining */
	if (p->few && p->items > 0 && p->items < want)
		p->splits = rg_attend_max(1, rg_attend_min(rg_attend_div_up(want, p->items), s->total / 256));
	p->items *= p->splits;
}

bool rg_attend_plan_make(struct rg_attend_plan *p, const struct rg_attention *size, int lanes)
{
	int64_t groups, rows;

	memset(p, 0, sizeof(*p));
	p->size = *size;
	p->lanes = lanes;
	if (size->head > HEAD_MOST || size->v_head > HEAD_MOST || size->kv_heads < 1 ||
	    size->q_heads % size->kv_heads || size->q_heads < 1 || size->q_seq < 0 || size->total < 0 ||
	    __builtin_mul_overflow(size->batch, size->q_heads, &groups) ||
	    __builtin_mul_overflow(groups, rg_attend_max(size->q_seq, 1), &rows) ||
	    rows > INT64_MAX / (1 << 16))
		return false;
	cut(p);
	rows = p->rows;
	p->lane_floats = rg_attend_round_up(rows, RG_TILE_ROWS) *
				 (rg_attend_round_up(size->head, RG_VEC) + y_width(p)) +
			 SCORES * (p->keys + 2 * RG_TILE_COLS) + 6 * rg_attend_round_up(rows, 16);
	if (!p->few)
		p->lane_floats += p->keys * (size->head + y_width(p));
	p->lane_floats = rg_attend_round_up(p->lane_floats, 16);
	p->part_floats = rows * (y_width(p) + 2);
	return p->items <= INT64_MAX / 1024 / rg_attend_max(p->part_floats, 1);
}

/* ---- one item ---- */

static void place(struct rg_attend_lane *l, const struct rg_attend *a, int lane)
{
	const struct rg_attend_plan *p = &a->plan;
	int64_t rows = rg_attend_round_up(p->rows, 16), panels = rg_attend_round_up(p->rows, RG_TILE_ROWS);
	float *at = a->scratch + lane * p->lane_floats;

	l->a = a;
	l->y_row = y_width(p);
	l->s_row = p->keys + 2 * RG_TILE_COLS;
	l->from = (int64_t *)(void *)at;
	l->to = l->from + rows;
	l->max = at + 4 * rows;
	l->sum = l->max + rows;
	l->q = l->sum + rows;
	l->y = l->q + panels * rg_attend_round_up(p->size.head, RG_VEC);
	l->s = l->y + panels * l->y_row;
	l->k = l->s + SCORES * l->s_row;
	l->v = l->k + p->keys * p->size.head;
}

static float *row_at(const struct rg_attend_rows *r, int64_t b, int64_t h, int64_t s)
{
	return r->data + b * r->batch + h * r->head + s * r->seq;
}

/* Finds the block of an item, what its rows see, and how they start. */
static void start(struct rg_attend_lane *l, int64_t item)
{
	const struct rg_attend *a = l->a;
	const struct rg_attend_plan *p = &a->plan;
	const struct rg_attention *s = &p->size;
	int64_t group = s->q_heads / s->kv_heads, split = item % p->splits, width, block;

	item /= p->splits;
	block = item % p->query_blocks;
	item /= p->query_blocks;
	l->query = block * p->queries;
	l->queries = rg_attend_min(p->queries, s->q_seq - l->query);
	block = item % p->head_blocks;
	item /= p->head_blocks;
	l->kv = item % s->kv_heads;
	l->b = item / s->kv_heads;
	l->head = l->kv * group + block * p->heads;
	l->rows = rg_attend_min(p->heads, group - block * p->heads) * l->queries;
	l->past = a->past ? a->past(a, l->b) : s->past;
	l->low = s->total;
	l->high = 0;
	for (int64_t r = 0; r < l->rows; r++) {
		bool sink = a->has_sink && split == 0;

		l->from[r] = 0;
		l->to[r] = s->total;
		if (a->range)
			a->range(a, l->b, l->query + r % l->queries, &l->from[r], &l->to[r]);
		if (l->from[r] < l->to[r]) {
			l->low = rg_attend_min(l->low, l->from[r]);
			l->high = rg_attend_max(l->high, l->to[r]);
		}
		l->max[r] = !sink ? -INFINITY : a->sink ? a->sink[l->head + r / l->queries] : 0;
		l->sum[r] = sink ? 1 : 0;
	}
	width = rg_attend_max(0, l->high - l->low);
	l->high = l->low + width * (split + 1) / p->splits;
	l->low += width * split / p->splits;
	memset(l->y, 0, (size_t)(l->rows * l->y_row) * sizeof(float));
}

/* Row r of Q times scale: element i to `to` + i * step. */
static void load_query(const struct rg_attend_lane *l, int64_t r, float *restrict to, int64_t step)
{
	const float *restrict q = row_at(&l->a->q, l->b, l->head + r / l->queries, l->query + r % l->queries);

	for (int64_t i = 0; i < l->a->plan.size.head; i++)
		to[i * step] = q[i] * l->a->scale;
}

/* ---- scores to probabilities ---- */

static float largest(const float *s, int64_t n)
{
	rg_vec best = rg_vec_all(-INFINITY);
	float lane[RG_VEC], most = -INFINITY;

	for (int64_t i = 0; i < n; i += RG_VEC) {
		rg_vec x = rg_vec_load(s + i);

		best = rg_vec_pick(x > best, x, best); /* NaN is not larger */
	}
	rg_vec_store(lane, best);
	for (int k = 0; k < RG_VEC; k++)
		most = lane[k] > most ? lane[k] : most;
	return most;
}

/* s = exp(s - most); returns the sum. */
static float exponentials(float *s, int64_t n, float most)
{
	rg_vec sum = { 0 };
	float lane[RG_VEC], total = 0;

	for (int64_t i = 0; i < n; i += RG_VEC) {
		rg_vec e = rg_vec_exp_below_0(rg_vec_load(s + i) - rg_vec_all(most));

		rg_vec_store(s + i, e);
		sum += e;
	}
	rg_vec_store(lane, sum);
	for (int k = 0; k < RG_VEC; k++)
		total += lane[k];
	return total;
}

void rg_attend_soften(struct rg_attend_lane *l, int64_t r, int64_t key, int64_t from, int64_t to, float *s)
{
	const struct rg_attend *a = l->a;
	int64_t n = to - from;
	float most, base;

	s += from;
	if (a->softcap > 0) {
		float cap = a->softcap, part = 1 / cap;

		for (int64_t i = 0; i < n; i++)
			s[i] = cap * rg_vtanhf(s[i] * part);
	}
	if (a->mask)
		a->mask(a, l->b, l->head + r / l->queries, l->query + r % l->queries, key + from, key + to,
			s);
	for (int k = 0; k < RG_VEC; k++)
		s[n + k] = -INFINITY; /* what is beyond counts for nothing in the last vector */
	most = largest(s, n);
	most = most > l->max[r] ? most : l->max[r];
	base = most == -INFINITY ? 0 : most; /* so far nothing but -inf: exponentials of 0 */
	if (most != l->max[r]) {
		float shrink = rg_vexpf(l->max[r] - base), *restrict y = l->y + r * l->y_row;

		l->sum[r] *= shrink;
		for (int64_t i = 0; i < l->y_row; i++)
			y[i] *= shrink;
		l->max[r] = most;
	}
	l->sum[r] += exponentials(s, n, base);
}

/* ---- the whole ---- */

static void store_rows(const struct rg_attend_lane *l)
{
	const struct rg_attend *a = l->a;

	for (int64_t r = 0; r < l->rows; r++) {
		float *restrict to = row_at(&a->y, l->b, l->head + r / l->queries, l->query + r % l->queries);
		const float *restrict y = l->y + r * l->y_row;
		float f = l->sum[r] == 0 ? 0 : 1 / l->sum[r];

		for (int64_t i = 0; i < a->plan.size.v_head; i++)
			to[i] = y[i] * f;
	}
}

static float *part_at(const struct rg_attend *a, int64_t item)
{
	return a->scratch + a->plan.lane_floats * a->plan.lanes + item * a->plan.part_floats;
}

static void store_part(const struct rg_attend_lane *l, int64_t item)
{
	float *to = part_at(l->a, item);

	memcpy(to, l->max, (size_t)l->rows * sizeof(float));
	memcpy(to + l->rows, l->sum, (size_t)l->rows * sizeof(float));
	memcpy(to + 2 * l->rows, l->y, (size_t)(l->rows * l->y_row) * sizeof(float));
}

static void do_item(struct rg_attend_lane *l, int64_t item)
{
	const struct rg_attend *a = l->a;
	const struct rg_attend_plan *p = &a->plan;
	int64_t head = p->size.head;

	start(l, item);
	for (int64_t r = 0; r < l->rows; r++) {
		if (p->few)
			load_query(l, r, l->q + r * rg_attend_round_up(head, RG_VEC), 1);
		else
			load_query(l, r, l->q + r / RG_TILE_ROWS * RG_TILE_ROWS * head + r % RG_TILE_ROWS,
				   RG_TILE_ROWS);
	}
	for (int64_t key = l->low, n, left; key < l->high; key += n) {
		bool is_past = key < l->past;
		const struct rg_attend_rows *k = is_past ? &a->k_past : &a->k,
					    *v = is_past ? &a->v_past : &a->v;
		int64_t at = is_past ? key : key - l->past;

		left = rg_attend_min(l->high, is_past ? l->past : l->high) - key;
		n = rg_attend_min(p->keys, left);
		(p->few ? rg_attend_few : rg_attend_many)(
			l, &(struct rg_attend_block){ row_at(k, l->b, l->kv, at), row_at(v, l->b, l->kv, at),
						      k->seq, v->seq, key, n, left });
	}
	if (p->splits > 1)
		store_part(l, item);
	else
		store_rows(l);
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	struct rg_attend_lane l;

	place(&l, arg, lane);
	for (int64_t i = begin; i < end; i++)
		do_item(&l, i);
}

/* Joins the parts of the keys: items [begin, end) without splits. */
static void work_join(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_attend *a = arg;
	const struct rg_attend_plan *p = &a->plan;
	struct rg_attend_lane l;

	place(&l, a, lane);
	for (int64_t item = begin; item < end; item++) {
		start(&l, item * p->splits);
		for (int64_t r = 0; r < l.rows; r++) {
			float *restrict y = l.y + r * l.y_row, most = -INFINITY;

			for (int64_t i = 0; i < p->splits; i++) {
				float part = part_at(a, item * p->splits + i)[r];

				most = part > most ? part : most;
			}
			most = most == -INFINITY ? 0 : most;
			l.sum[r] = 0;
			for (int64_t i = 0; i < p->splits; i++) {
				const float *part = part_at(a, item * p->splits + i);
				const float *restrict from = part + 2 * l.rows + r * l.y_row;
				float f = rg_vexpf(part[r] - most);

				l.sum[r] += part[l.rows + r] * f;
				for (int64_t d = 0; d < l.y_row; d++)
					y[d] += from[d] * f;
			}
		}
		store_rows(&l);
	}
}

void rg_attend_run(const struct rg_attend *a, const struct rg_par *par)
{
	const struct rg_attend_plan *p = &a->plan;
	int64_t whole = p->splits ? p->items / p->splits : 0;
	/* 20 us at some 16 operations a nanosecond, or 8 bytes of memory */
	double keys = (double)p->size.total / (double)rg_attend_max(p->splits, 1) + 8,
	       width = (double)(p->size.head + p->size.v_head);
	double ns = keys * width * ((double)p->rows / 8 + (p->few ? 0.5 : 0.25));

	if (p->items == 0)
		return;
	par->run(par, p->items, 1 + (int64_t)(20e3 / (ns + 1)), work, (void *)a);
	if (p->splits > 1)
		par->run(par, whole, rg_grain(p->rows * p->splits * y_width(p)), work_join, (void *)a);
}
