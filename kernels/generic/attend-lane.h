/*
 * What the files of attention (attend.h) share: one lane at work on an item, and
 * the two ways through a block of keys.
 */
#ifndef RG_KERNELS_GENERIC_ATTEND_LANE_H
#define RG_KERNELS_GENERIC_ATTEND_LANE_H

#include "kernels/generic/attend.h"

struct rg_attend_lane {
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

/* A block of keys of one head. */
struct rg_attend_block {
	const float *k, *v;
	int64_t k_step, v_step; /* floats from key to key */
	int64_t key, n;         /* the first one's number; how many */
	int64_t left;           /* how many lie there, of which n are due */
};

RG_INLINE int64_t rg_attend_div_up(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

RG_INLINE int64_t rg_attend_round_up(int64_t a, int64_t b)
{
	return rg_attend_div_up(a, b) * b;
}

RG_INLINE int64_t rg_attend_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

RG_INLINE int64_t rg_attend_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

#define rg_attend_few RG_LEVEL_FN(rg_attend_few)
#define rg_attend_many RG_LEVEL_FN(rg_attend_many)
#define rg_attend_soften RG_LEVEL_FN(rg_attend_soften)

/* Few rows: K and V are used where they lie. */
void rg_attend_few(struct rg_attend_lane *l, const struct rg_attend_block *b);
/* Many rows: they are packed in panels. */
void rg_attend_many(struct rg_attend_lane *l, const struct rg_attend_block *b);

/*
 * Scores of row r for keys [key + from, key + to), s[0] that of `key`, become
 * exponentials; the row's maximum, sum and result so far are brought to the same
 * maximum. A vector behind them is overwritten.
 */
void rg_attend_soften(struct rg_attend_lane *l, int64_t r, int64_t key, int64_t from, int64_t to, float *s);

#endif
