/* Attention of few query rows: K and V are read once, where they lie. See attend.h. */
#include "kernels/generic/attend-lane.h"
#include "kernels/generic/shuffle.h"

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
				sum[r * keys + j] = rg_vec_fma(f, rg_vec_load(q + r * q_row + i), sum[r * keys + j]);
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
				to[r * to_row + j] = rg_fma(q[r * q_row + i], k[j * step + i], to[r * to_row + j]);
}

/* Rows are used several at a time, or by columns: better to fetch them whole, in
 * order, before. */
RG_INLINE void fetch_rows(const float *v, int64_t step, int64_t width)
{
	for (int64_t j = 0; j < RG_VEC; j++)
		for (int64_t i = 0; i < width; i += 16)
			__builtin_prefetch(v + j * step + i);
}

static void few_scores(const struct rg_attend_lane *l, const struct rg_attend_block *b)
{
	const float *k = b->k, *v = b->v;
	int64_t step = b->k_step, v_step = b->v_step, n = b->n;
	int64_t head = l->a->plan.size.head, width = rg_attend_round_up(head, RG_VEC), j = 0, r;
	const float *q = l->q;

	for (; j + RG_VEC <= n; j += RG_VEC) {
		float *to = l->s + j;

		if (j + 2 * RG_VEC <= b->left)
			fetch_rows(k + (j + RG_VEC) * step, step, head);
		fetch_rows(v + j * v_step, v_step, l->a->plan.size.v_head);
		for (r = 0; r + 2 <= l->rows; r += 2)
			for (int64_t i = 0; i < RG_VEC; i += RG_VEC / 2)
				dot_keys(q + r * width, width, k + (j + i) * step, step, head,
					 to + r * l->s_row + i, l->s_row, 2, RG_VEC / 2);
		if (r < l->rows)
			dot_keys(q + r * width, width, k + j * step, step, head, to + r * l->s_row, l->s_row,
				 1, RG_VEC);
	}
	for (; j < n; j++)
		for (r = 0; r < l->rows; r++)
			dot_keys(q + r * width, width, k + j * step, step, head, l->s + r * l->s_row + j,
				 l->s_row, 1, 1);
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
				sum[r][c] = rg_vec_fma(f, rg_vec_load(v + c * RG_VEC), sum[r][c]);
		}
	}
	_Pragma("GCC unroll 2") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 8") for (int c = 0; c < vecs; c++)
			rg_vec_store(y + r * y_row + c * RG_VEC, sum[r][c]);
}

RG_INLINE void few_values(const struct rg_attend_lane *l, int64_t r, const float *p, const float *v,
			  int64_t step, int64_t n, const int rows)
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
				y[k * l->y_row + d] = rg_fma(p[k * l->s_row + j], v[j * step + d], y[k * l->y_row + d]);
}

void rg_attend_few(struct rg_attend_lane *l, const struct rg_attend_block *b)
{
	few_scores(l, b);
	for (int64_t r = 0, step; r < l->rows; r += step) {
		int64_t from = rg_attend_max(l->from[r] - b->key, 0),
			to = rg_attend_min(l->to[r] - b->key, b->n);
		float *p = l->s + r * l->s_row;
		const float *v = b->v + from * b->v_step;

		step = r + 1 < l->rows && l->from[r] == l->from[r + 1] && l->to[r] == l->to[r + 1] ? 2 : 1;
		if (from >= to)
			continue;
		rg_attend_soften(l, r, b->key, from, to, p);
		if (step == 2) {
			rg_attend_soften(l, r + 1, b->key, from, to, p + l->s_row);
			few_values(l, r, p + from, v, b->v_step, to - from, 2);
		} else {
			few_values(l, r, p + from, v, b->v_step, to - from, 1);
		}
	}
}
