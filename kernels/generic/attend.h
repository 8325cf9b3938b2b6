/*
 * Scaled dot-product attention in float32 that never stores the matrix of scores:
 * keys go by in blocks, and each query row keeps the maximum and the sum of the
 * exponentials so far (Rabe and Staats 2021; Dao et al. 2022). What differs between
 * the attention operators is where rows lie, which keys a query may see, and what
 * is added to its scores.
 *
 * An item of work is a sequence of the batch, a head of K and V, and a block of
 * rows of Q: some queries of one head or, where there are few queries, some of the
 * heads that share K and V. Many rows: blocks of K and V are packed into panels and
 * multiplied on tiles (tile.h). Few rows (decoding): K and V are read once, where
 * they lie, at the speed of memory, and long ones are split among lanes.
 *
 * A row that sees no key, or all of whose scores are -inf, gives 0, as the
 * reference has it. Keys outside of a row's range are not read for it, whatever
 * they hold.
 */
#ifndef RG_KERNELS_GENERIC_ATTEND_H
#define RG_KERNELS_GENERIC_ATTEND_H

#include "graph/op-attention.h"
#include "kernels/generic/multiply.h"

/* Rows of contiguous elements: that of batch b, head h, position s begins at
 * data + b * batch + h * head + s * seq. */
struct rg_attend_rows {
	float *data; /* NULL: there are none */
	int64_t batch, head, seq;
};

/* Over a tensor of batch x heads x seq x width, or of batch x seq x (heads * width). */
RG_INLINE struct rg_attend_rows rg_attend_heads_first(void *data, int64_t heads, int64_t seq, int64_t width)
{
	return (struct rg_attend_rows){ data, heads * seq * width, seq * width, width };
}

RG_INLINE struct rg_attend_rows rg_attend_heads_last(void *data, int64_t heads, int64_t seq, int64_t width)
{
	return (struct rg_attend_rows){ data, heads * seq * width, width, heads * width };
}

/* Whichever of the two the rank of a tensor says. */
RG_INLINE struct rg_attend_rows rg_attend_rows_of(const struct rg_tensor *t, int64_t heads, int64_t seq,
						  int64_t width)
{
	return t->shape.rank == 4 ? rg_attend_heads_first(t->data, heads, seq, width) :
				    rg_attend_heads_last(t->data, heads, seq, width);
}

/* The work of a call, cut: a function of sizes, lanes and caches alone. */
struct rg_attend_plan {
	struct rg_attention size;
	int lanes;
	int64_t heads, queries;    /* of a block: one of them is 1, or queries is all of them */
	int64_t head_blocks, query_blocks, splits, items;
	int64_t rows, keys;        /* of a block, at most */
	bool few;
	int64_t lane_floats, part_floats; /* scratch: of a lane, of an item when keys are split */
};

struct rg_attend {
	struct rg_attend_plan plan;
	struct rg_attend_rows q, y;
	struct rg_attend_rows k, v;           /* positions past and on */
	struct rg_attend_rows k_past, v_past; /* positions before past; NULL: past is 0 */
	float scale, softcap;                 /* softcap 0: none */
	/* Positions that are past in sequence b. NULL: size.past. */
	int64_t (*past)(const struct rg_attend *a, int64_t b);
	/* Which keys [*from, *to) within [0, size.total) row i of sequence b sees. NULL: all. */
	void (*range)(const struct rg_attend *a, int64_t b, int64_t i, int64_t *from, int64_t *to);
	/* Adds to the scores of keys [from, to) of a row. NULL: nothing. */
	void (*mask)(const struct rg_attend *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     float *scores);
	const void *ctx;                      /* for these */
	bool has_sink;                        /* one more logit in the sum of the softmax: */
	const float *sink;                    /* one a head of Q; NULL: 0 */
	float *scratch;                       /* rg_attend_scratch_bytes() */
};

#define rg_attend_plan_make RG_LEVEL_FN(rg_attend_plan_make)
#define rg_attend_run RG_LEVEL_FN(rg_attend_run)
#define rg_attend_copy RG_LEVEL_FN(rg_attend_copy)

/* false: the sizes are not for these loops (heads of more than 4,096 elements, or what overflows). */
bool rg_attend_plan_make(struct rg_attend_plan *p, const struct rg_attention *size, int lanes);

RG_INLINE size_t rg_attend_scratch_bytes(const struct rg_attend_plan *p)
{
	return (size_t)(p->lane_floats * p->lanes + (p->splits > 1 ? p->part_floats * p->items : 0)) *
	       sizeof(float);
}

/* Runs it; par->lanes must be what the plan was made for, or less. */
void rg_attend_run(const struct rg_attend *a, const struct rg_par *par);

/* Rows [0, seq) of `from`, then those of `then`, to `to`: a cache that grows. */
struct rg_attend_copies {
	struct rg_attend_rows from, then, to;
	int64_t batch, heads, from_seq, then_seq, width;
};
void rg_attend_copy(const struct rg_attend_copies *c, const struct rg_par *par);

#endif
