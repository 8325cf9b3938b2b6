/* Attention of many query rows: blocks of K and V in panels, on tiles. See attend.h. */
#include "kernels/generic/attend-lane.h"
#include "kernels/generic/shuffle.h"

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

static void tile_values(const struct rg_attend_lane *l, int64_t r, int64_t rows, int64_t from, int64_t to,
			int64_t n)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	struct rg_tile t = { .c_row = l->y_row, .add = true, .e = &none };
	const float *p = l->s + r % RG_TILE_ROWS * l->s_row + from;

	if (from >= to)
		return;
	for (int64_t c = 0; c < l->y_row; c += RG_TILE_COLS) {
		t.c = l->y + r * l->y_row + c;
		t.cols = l->a->plan.size.v_head - c > RG_VEC ? RG_TILE_COLS : RG_VEC;
		rg_multiply_tile(rows, to - from, p, l->s_row, true, l->v + c * n + from * RG_TILE_COLS,
				 RG_TILE_COLS, &t);
	}
}

/* Rows [r, r + rows) of a block of n keys. */
static void many_tile(struct rg_attend_lane *l, int64_t r, int64_t rows, int64_t key, int64_t n, bool finite)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	struct rg_tile t = { .c_row = l->s_row, .e = &none };
	int64_t head = l->a->plan.size.head, low = n, high = 0;
	bool even = true;

	for (int64_t i = r; i < r + rows; i++) {
		low = rg_attend_min(low, rg_attend_max(l->from[i] - key, 0));
		high = rg_attend_max(high, rg_attend_min(l->to[i] - key, n));
		even &= l->from[i] == l->from[r] && l->to[i] == l->to[r];
	}
	if (low >= high)
		return;
	for (int64_t j = low / RG_TILE_COLS * RG_TILE_COLS; j < high; j += RG_TILE_COLS) {
		t.c = l->s + j;
		t.cols = high - j > RG_VEC ? RG_TILE_COLS : RG_VEC;
		rg_multiply_tile(rows, head, l->q + r * head, RG_TILE_ROWS, false, l->k + j * head,
				 RG_TILE_COLS, &t);
	}
	for (int64_t i = r; i < r + rows; i++) {
		int64_t from = rg_attend_max(l->from[i] - key, 0), to = rg_attend_min(l->to[i] - key, n);
		float *s = l->s + (i - r) * l->s_row;

		if (from < to)
			rg_attend_soften(l, i, key, from, to, s);
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
		int64_t rows = rg_attend_min(n - j, RG_VEC), i = 0;

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

void rg_attend_many(struct rg_attend_lane *l, const struct rg_attend_block *b)
{
	const struct rg_attention *s = &l->a->plan.size;
	struct rg_matrix values = { .data = b->v, .row = b->v_step, .col = 1 };
	bool finite;

	pack_keys(b->k, b->k_step, b->n, s->head, l->k);
	rg_multiply_pack_b(&values, s->v_head, b->n, 0, l->y_row / RG_TILE_COLS, l->v);
	finite = !l->a->range || is_finite(l->v, b->n * l->y_row);
	for (int64_t r = 0; r < l->rows; r += RG_TILE_ROWS)
		many_tile(l, r, rg_attend_min(RG_TILE_ROWS, l->rows - r), b->key, b->n, finite);
}
