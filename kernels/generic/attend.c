/* See attend.h. */
#include "kernels/generic/attend.h"

#include <math.h>

#include "kernels/cache.h"
#include "kernels/generic/shuffle.h"
#include "kernels/generic/vexp.h"
#include "kernels/generic/vmath.h"

enum {
	FEW_ROWS = 12,       /* up to which K and V are used where they lie */
	MANY_KEYS = 128,     /* a block of them: packed, both stay in L2, V's panel in L1 */
	HEAD_MOST = 4096,
	SCORES = (RG_TILE_ROWS > FEW_ROWS ? RG_TILE_ROWS : FEW_ROWS),
};

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t b)
{
	return ceil_div(a, b) * b;
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- the plan ---- */

/* Floats from one row of accumulators to the next: whole panels. */
static int64_t y_width(const struct rg_attend_plan *p)
{
	return round_up(p->size.v_head, RG_TILE_COLS);
}

/* Rows of a block whose queries and sums stay in half of L2, beside K and V. */
static int64_t rows_that_fit(const struct rg_attention *s)
{
	int64_t width = s->head + round_up(s->v_head, RG_TILE_COLS);
	int64_t room = rg_kernel_caches()->l2_bytes / 2 / (int64_t)sizeof(float) - MANY_KEYS * width;

	return max(48, min(384, room / max(width, 1))) / RG_TILE_ROWS * RG_TILE_ROWS;
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
		p->heads = min(group, fit / s->q_seq);
		p->queries = s->q_seq;
	}
	/* smaller blocks where there are not enough for the lanes, while they keep packing worth it */
	while (groups * ceil_div(group, p->heads) * ceil_div(s->q_seq, p->queries) < want) {
		if (p->heads > 1 && p->heads * p->queries >= 4 * RG_TILE_ROWS)
			p->heads = ceil_div(p->heads, 2);
		else if (p->heads == 1 && p->queries >= 8 * RG_TILE_ROWS)
			p->queries = round_up(ceil_div(p->queries, 2), RG_TILE_ROWS);
		else
			break;
	}
	p->head_blocks = ceil_div(group, p->heads);
	p->query_blocks = ceil_div(s->q_seq, p->queries);
	p->rows = p->heads * min(p->queries, s->q_seq);
	p->few = p->rows <= FEW_ROWS;
	p->keys = !p->few ? MANY_KEYS : p->rows <= 2 ? 128 : 32;
	p->items = groups * p->head_blocks * p->query_blocks;
	p->splits = 1;
	/* a split should be long enough to be worth joining */
	if (p->few && p->items > 0 && p->items < want)
		p->splits = max(1, min(ceil_div(want, p->items), s->total / 256));
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
	    __builtin_mul_overflow(groups, max(size->q_seq, 1), &rows) || rows > INT64_MAX / (1 << 16))
		return false;
	cut(p);
	rows = p->rows;
	p->lane_floats = round_up(rows, RG_TILE_ROWS) * (round_up(size->head, RG_VEC) + y_width(p)) +
			 SCORES * (p->keys + 2 * RG_TILE_COLS) + 6 * round_up(rows, 16);
	if (!p->few)
		p->lane_floats += p->keys * (size->head + y_width(p));
	p->lane_floats = round_up(p->lane_floats, 16);
	p->part_floats = rows * (y_width(p) + 2);
	return p->items <= INT64_MAX / 1024 / max(p->part_floats, 1);
}

/* ---- one item ---- */

struct lane {
	const struct rg_attend *a;
	int64_t b, kv;         /* sequence; head of K and V */
	int64_t head, query;   /* of row 0 */
	int64_t queries, rows; /* in this block */
	int64_t past;          /* of this sequence */
	int64_t low, high;     /* keys that some row sees, within this split */
	int64_t y_row, s_row;  /* floats from row to row */
	float *q;              /* few: rows; many: panels of RG_TILE_ROWS; times scale */
	float *y, *s, *k, *v;  /* sums; scores; packed blocks of K and V */
	float *max, *sum;      /* of each row so far */
	int64_t *from, *to;    /* keys that each row sees */
};

static void place(struct lane *l, const struct rg_attend *a, int lane)
{
	const struct rg_attend_plan *p = &a->plan;
	int64_t rows = round_up(p->rows, 16), panels = round_up(p->rows, RG_TILE_ROWS);
	float *at = a->scratch + lane * p->lane_floats;

	l->a = a;
	l->y_row = y_width(p);
	l->s_row = p->keys + 2 * RG_TILE_COLS;
	l->from = (int64_t *)(void *)at;
	l->to = l->from + rows;
	l->max = at + 4 * rows;
	l->sum = l->max + rows;
	l->q = l->sum + rows;
	l->y = l->q + panels * round_up(p->size.head, RG_VEC);
	l->s = l->y + panels * l->y_row;
	l->k = l->s + SCORES * l->s_row;
	l->v = l->k + p->keys * p->size.head;
}

static float *row_at(const struct rg_attend_rows *r, int64_t b, int64_t h, int64_t s)
{
	return r->data + b * r->batch + h * r->head + s * r->seq;
}

/* Finds the block of an item, what its rows see, and how they start. */
static void start(struct lane *l, int64_t item)
{
	const struct rg_attend *a = l->a;
	const struct rg_attend_plan *p = &a->plan;
	const struct rg_attention *s = &p->size;
	int64_t group = s->q_heads / s->kv_heads, split = item % p->splits, width, block;

	item /= p->splits;
	block = item % p->query_blocks;
	item /= p->query_blocks;
	l->query = block * p->queries;
	l->queries = min(p->queries, s->q_seq - l->query);
	block = item % p->head_blocks;
	item /= p->head_blocks;
	l->kv = item % s->kv_heads;
	l->b = item / s->kv_heads;
	l->head = l->kv * group + block * p->heads;
	l->rows = min(p->heads, group - block * p->heads) * l->queries;
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
			l->low = min(l->low, l->from[r]);
			l->high = max(l->high, l->to[r]);
		}
		l->max[r] = !sink ? -INFINITY : a->sink ? a->sink[l->head + r / l->queries] : 0;
		l->sum[r] = sink ? 1 : 0;
	}
	width = max(0, l->high - l->low);
	l->high = l->low + width * (split + 1) / p->splits;
	l->low += width * split / p->splits;
	memset(l->y, 0, (size_t)(l->rows * l->y_row) * sizeof(float));
}

/* Row r of Q times scale: element i to `to` + i * step. */
static void load_query(const struct lane *l, int64_t r, float *restrict to, int64_t step)
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

/*
 * Scores of row r for keys [key + from, key + to), s[0] that of `key`, become
 * exponentials; the row's maximum, sum and result so far are brought to the same
 * maximum.
 */
static void soften(struct lane *l, int64_t r, int64_t key, int64_t from, int64_t to, float *s)
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
		a->mask(a, l->b, l->head + r / l->queries, l->query + r % l->queries, key + from, key + to, s);
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

/* ---- few rows: K and V where they lie ---- */

/*
 * Scores of `rows` queries, q_row and to_row apart, for `keys` keys: as many sums as
 * lanes, or one.
 */
RG_INLINE void dot_keys(const float *q, int64_t q_row, const float *k, int64_t step, int64_t head, float *to,
			int64_t to_row, const int rows, const int keys)
{
	rg_vec sum[RG_VEC];
	float lane[RG_VEC];
	int64_t i = 0;

	_Pragma("GCC unroll 16") for (int j = 0; j < rows * keys; j++)
		sum[j] = (rg_vec){ 0 };
	for (; i + RG_VEC <= head; i += RG_VEC) {
		_Pragma("GCC unroll 16") for (int j = 0; j < keys; j++) {
			rg_vec f = rg_vec_load(k + j * step + i);

			_Pragma("GCC unroll 2") for (int r = 0; r < rows; r++)
				sum[r * keys + j] += f * rg_vec_load(q + r * q_row + i);
		}
	}
	if (rows * keys == RG_VEC) {
		rg_vec_store(lane, rg_vec_sums(sum));
	} else {
		rg_vec_store(lane, sum[0]);
		for (int j = 1; j < RG_VEC; j++)
			lane[0] += lane[j];
	}
	for (int r = 0; r < rows; r++)
		memcpy(to + r * to_row, lane + r * keys, (size_t)keys * sizeof(float));
	for (; i < head; i++)
		for (int r = 0; r < rows; r++)
			for (int j = 0; j < keys; j++)
				to[r * to_row + j] += q[r * q_row + i] * k[j * step + i];
}

/* Rows are used several at a time, or by columns: better to fetch them whole, in
 * order, before. */
RG_INLINE void fetch_rows(const float *v, int64_t step, int64_t width)
{
	for (int64_t j = 0; j < RG_VEC; j++)
		for (int64_t i = 0; i < width; i += 16)
			__builtin_prefetch(v + j * step + i);
}

/* `left` keys lie there, of which n are due. */
static void few_scores(const struct lane *l, const float *k, int64_t step, const float *v, int64_t v_step, int64_t n,
		       int64_t left)
{
	int64_t head = l->a->plan.size.head, width = round_up(head, RG_VEC), j = 0, r;
	const float *q = l->q;

	for (; j + RG_VEC <= n; j += RG_VEC) {
		float *to = l->s + j;

		if (j + 2 * RG_VEC <= left)
			fetch_rows(k + (j + RG_VEC) * step, step, head);
		fetch_rows(v + j * v_step, v_step, l->a->plan.size.v_head);
		for (r = 0; r + 2 <= l->rows; r += 2)
			for (int64_t i = 0; i < RG_VEC; i += RG_VEC / 2)
				dot_keys(q + r * width, width, k + (j + i) * step, step, head, to + r * l->s_row + i, l->s_row, 2,
					 RG_VEC / 2);
		if (r < l->rows)
			dot_keys(q + r * width, width, k + j * step, step, head, to + r * l->s_row, l->s_row, 1, RG_VEC);
	}
	for (; j < n; j++)
		for (r = 0; r < l->rows; r++)
			dot_keys(q + r * width, width, k + j * step, step, head, l->s + r * l->s_row + j, l->s_row, 1, 1);
}

/* y += p V for some rows and vectors of columns, sums in registers. */
RG_INLINE void add_values(const float *p, int64_t p_row, const float *v, int64_t step, int64_t n, float *y,
			  int64_t y_row, const int rows, const int vecs)
{
	rg_vec sum[2][8];

	_Pragma("GCC unroll 2") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 8") for (int c = 0; c < vecs; c++)
			sum[r][c] = rg_vec_load(y + r * y_row + c * RG_VEC);
	for (int64_t j = 0; j < n; j++, v += step) {
		_Pragma("GCC unroll 2") for (int r = 0; r < rows; r++) {
			rg_vec f = rg_vec_all(p[r * p_row + j]);

			_Pragma("GCC unroll 8") for (int c = 0; c < vecs; c++)
				sum[r][c] += f * rg_vec_load(v + c * RG_VEC);
		}
	}
	_Pragma("GCC unroll 2") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 8") for (int c = 0; c < vecs; c++)
			rg_vec_store(y + r * y_row + c * RG_VEC, sum[r][c]);
}

RG_INLINE void few_values(const struct lane *l, int64_t r, const float *p, const float *v, int64_t step, int64_t n,
			  const int rows)
{
	int64_t width = l->a->plan.size.v_head, i = 0;
	float *y = l->y + r * l->y_row;

	for (; i + 8 / rows * RG_VEC <= width; i += 8 / rows * RG_VEC)
		add_values(p, l->s_row, v + i, step, n, y + i, l->y_row, rows, 8 / rows);
	for (; i + 2 * RG_VEC <= width; i += 2 * RG_VEC)
		add_values(p, l->s_row, v + i, step, n, y + i, l->y_row, rows, 2);
	for (; i + RG_VEC <= width; i += RG_VEC)
		add_values(p, l->s_row, v + i, step, n, y + i, l->y_row, rows, 1);
	for (int64_t j = 0; j < n && i < width; j++)
		for (int64_t d = i; d < width; d++)
			for (int k = 0; k < rows; k++)
				y[k * l->y_row + d] += p[k * l->s_row + j] * v[j * step + d];
}

/* Keys [key, key + n), with `left` in all before `past` or the end. */
static void few_block(struct lane *l, const float *k, int64_t k_step, const float *v, int64_t v_step, int64_t key,
		      int64_t n, int64_t left)
{
	few_scores(l, k, k_step, v, v_step, n, left);
	for (int64_t r = 0, step; r < l->rows; r += step) {
		int64_t from = max(l->from[r] - key, 0), to = min(l->to[r] - key, n);
		float *p = l->s + r * l->s_row;

		step = r + 1 < l->rows && l->from[r] == l->from[r + 1] && l->to[r] == l->to[r + 1] ? 2 : 1;
		if (from >= to)
			continue;
		soften(l, r, key, from, to, p);
		if (step == 2) {
			soften(l, r + 1, key, from, to, p + l->s_row);
			few_values(l, r, p + from, v + from * v_step, v_step, to - from, 2);
		} else {
			few_values(l, r, p + from, v + from * v_step, v_step, to - from, 1);
		}
	}
}

/* ---- many rows: blocks of K and V in panels ---- */

/* 0 times anything finite is 0. */
static bool is_finite(const float *x, int64_t n)
{
	rg_vec sum = { 0 };
	float lane[RG_VEC];
	bool finite = true;

	for (int64_t i = 0; i < n; i += RG_VEC)
		sum += rg_vec_load(x + i) * rg_vec_all(0);
	rg_vec_store(lane, sum);
	for (int k = 0; k < RG_VEC; k++)
		finite &= lane[k] == 0;
	return finite;
}

static void tile_values(const struct lane *l, int64_t r, int64_t rows, int64_t from, int64_t to, int64_t n)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	struct rg_tile t = { .c_row = l->y_row, .add = true, .e = &none };
	const float *p = l->s + r % RG_TILE_ROWS * l->s_row + from;

	if (from >= to)
		return;
	for (int64_t c = 0; c < l->y_row; c += RG_TILE_COLS) {
		t.c = l->y + r * l->y_row + c;
		t.cols = l->a->plan.size.v_head - c > RG_VEC ? RG_TILE_COLS : RG_VEC;
		rg_multiply_tile(rows, to - from, p, l->s_row, true, l->v + c * n + from * RG_TILE_COLS, RG_TILE_COLS, &t);
	}
}

/* Rows [r, r + rows) of a block of n keys. */
static void many_tile(struct lane *l, int64_t r, int64_t rows, int64_t key, int64_t n, bool finite)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	struct rg_tile t = { .c_row = l->s_row, .e = &none };
	int64_t head = l->a->plan.size.head, low = n, high = 0;
	bool even = true;

	for (int64_t i = r; i < r + rows; i++) {
		low = min(low, max(l->from[i] - key, 0));
		high = max(high, min(l->to[i] - key, n));
		even &= l->from[i] == l->from[r] && l->to[i] == l->to[r];
	}
	if (low >= high)
		return;
	for (int64_t j = low / RG_TILE_COLS * RG_TILE_COLS; j < high; j += RG_TILE_COLS) {
		t.c = l->s + j;
		t.cols = high - j > RG_VEC ? RG_TILE_COLS : RG_VEC;
		rg_multiply_tile(rows, head, l->q + r * head, RG_TILE_ROWS, false, l->k + j * head, RG_TILE_COLS, &t);
	}
	for (int64_t i = r; i < r + rows; i++) {
		int64_t from = max(l->from[i] - key, 0), to = min(l->to[i] - key, n);
		float *s = l->s + (i - r) * l->s_row;

		if (from < to)
			soften(l, i, key, from, to, s);
		else
			from = to = high;
		for (int64_t j = low; j < from; j++)
			s[j] = 0;
		for (int64_t j = to; j < high; j++)
			s[j] = 0;
		if (!even && !finite)
			tile_values(l, i, 1, from, to, n);
	}
	if (even || finite)
		tile_values(l, r, rows, low, high, n);
}

/* Panels of RG_TILE_COLS keys, element i of all of them side by side; what is missing
 * in the last one is 0. */
static void pack_keys(const float *k, int64_t step, int64_t n, int64_t head, float *to)
{
	for (int64_t j = 0; j < n; j += RG_VEC) {
		float *panel = to + j / RG_TILE_COLS * RG_TILE_COLS * head + j % RG_TILE_COLS;
		int64_t rows = min(n - j, RG_VEC), i = 0;

		for (; rows == RG_VEC && i + RG_VEC <= head; i += RG_VEC) {
			rg_vec x[RG_VEC];

			_Pragma("GCC unroll 16") for (int r = 0; r < RG_VEC; r++)
				x[r] = rg_vec_load(k + (j + r) * step + i);
			rg_vec_turn(x);
			_Pragma("GCC unroll 16") for (int r = 0; r < RG_VEC; r++)
				rg_vec_store(panel + (i + r) * RG_TILE_COLS, x[r]);
		}
		for (; i < head; i++)
			for (int64_t r = 0; r < RG_VEC; r++)
				panel[i * RG_TILE_COLS + r] = r < rows ? k[(j + r) * step + i] : 0;
	}
	if (n % RG_TILE_COLS && n % RG_TILE_COLS <= RG_VEC)
		for (int64_t i = 0; i < head; i++)
			memset(to + n / RG_TILE_COLS * RG_TILE_COLS * head + i * RG_TILE_COLS + RG_VEC, 0,
			       RG_VEC * sizeof(float));
}

static void many_block(struct lane *l, const float *k, int64_t k_step, const float *v, int64_t v_step, int64_t key,
		       int64_t n, int64_t left)
{
	const struct rg_attention *s = &l->a->plan.size;
	struct rg_matrix values = { .data = v, .row = v_step, .col = 1 };
	bool finite;

	(void)left;
	pack_keys(k, k_step, n, s->head, l->k);
	rg_multiply_pack_b(&values, s->v_head, n, 0, l->y_row / RG_TILE_COLS, l->v);
	finite = !l->a->range || is_finite(l->v, n * l->y_row);
	for (int64_t r = 0; r < l->rows; r += RG_TILE_ROWS)
		many_tile(l, r, min(RG_TILE_ROWS, l->rows - r), key, n, finite);
}

/* ---- the whole ---- */

static void store_rows(const struct lane *l)
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

static void store_part(const struct lane *l, int64_t item)
{
	float *to = part_at(l->a, item);

	memcpy(to, l->max, (size_t)l->rows * sizeof(float));
	memcpy(to + l->rows, l->sum, (size_t)l->rows * sizeof(float));
	memcpy(to + 2 * l->rows, l->y, (size_t)(l->rows * l->y_row) * sizeof(float));
}

static void do_item(struct lane *l, int64_t item)
{
	const struct rg_attend *a = l->a;
	const struct rg_attend_plan *p = &a->plan;
	int64_t head = p->size.head;

	start(l, item);
	for (int64_t r = 0; r < l->rows; r++) {
		if (p->few)
			load_query(l, r, l->q + r * round_up(head, RG_VEC), 1);
		else
			load_query(l, r, l->q + r / RG_TILE_ROWS * RG_TILE_ROWS * head + r % RG_TILE_ROWS, RG_TILE_ROWS);
	}
	for (int64_t key = l->low, n, left; key < l->high; key += n) {
		bool is_past = key < l->past;
		const struct rg_attend_rows *k = is_past ? &a->k_past : &a->k, *v = is_past ? &a->v_past : &a->v;
		int64_t at = is_past ? key : key - l->past;

		left = min(l->high, is_past ? l->past : l->high) - key;
		n = min(p->keys, left);
		(p->few ? few_block : many_block)(l, row_at(k, l->b, l->kv, at), k->seq, row_at(v, l->b, l->kv, at), v->seq,
						  key, n, left);
	}
	if (p->splits > 1)
		store_part(l, item);
	else
		store_rows(l);
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	struct lane l;

	place(&l, arg, lane);
	for (int64_t i = begin; i < end; i++)
		do_item(&l, i);
}

/* Joins the parts of the keys: items [begin, end) without splits. */
static void work_join(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_attend *a = arg;
	const struct rg_attend_plan *p = &a->plan;
	struct lane l;

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
	double keys = (double)p->size.total / (double)max(p->splits, 1) + 8, width = (double)(p->size.head + p->size.v_head);
	double ns = keys * width * ((double)p->rows / 8 + (p->few ? 0.5 : 0.25));

	if (p->items == 0)
		return;
	par->run(par, p->items, 1 + (int64_t)(20e3 / (ns + 1)), work, (void *)a);
	if (p->splits > 1)
		par->run(par, whole, rg_grain(p->rows * p->splits * y_width(p)), work_join, (void *)a);
}
