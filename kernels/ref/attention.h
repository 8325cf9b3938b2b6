/*
 * Scaled dot-product attention, the part that all attention operators share.
 * What differs between them is where rows lie, which keys a query may see, and
 * what is added to its scores.
 *
 * A row that sees no key, or all of whose scores are -inf, gives 0 as ONNX
 * Runtime does; the formula would divide by 0.
 */
#ifndef RG_KERNELS_REF_ATTENTION_H
#define RG_KERNELS_REF_ATTENTION_H

#include "graph/op-attention.h"
#include "kernels/ref/ref.h"

/* Rows of contiguous elements: that of batch b, head h, position s begins at
 * element first + b * batch + h * head + s * seq of t. */
struct rg_attn_rows {
	const struct rg_tensor *t; /* NULL: there are none */
	int64_t first, batch, head, seq;
};
/* Over a tensor of batch x heads x seq x width. */
struct rg_attn_rows rg_attn_heads_first(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width);
/* Over a tensor of batch x seq x (heads * width). */
struct rg_attn_rows rg_attn_heads_last(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width);
/* Whichever of the two the rank says. */
struct rg_attn_rows rg_attn_rows_of(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width);

static inline int64_t rg_attn_at(const struct rg_attn_rows *r, int64_t b, int64_t h, int64_t s)
{
	return r->first + b * r->batch + h * r->head + s * r->seq;
}

/* Where scores are written to qk. */
enum rg_attn_stage { RG_ATTN_SCALED, RG_ATTN_CAPPED, RG_ATTN_MASKED, RG_ATTN_PROBABILITIES, RG_ATTN_NEVER };

struct rg_attn {
	struct rg_attention size;
	struct rg_attn_rows q, y;
	struct rg_attn_rows k, v;           /* positions past to total */
	struct rg_attn_rows k_past, v_past; /* positions 0 to past */
	double scale, softcap;              /* softcap 0: none */
	/* Which keys [*from, *to) row i of batch b sees: the others have probability
	 * 0 and are not read. NULL: all. */
	void (*range)(const struct rg_attn *a, int64_t b, int64_t i, int64_t *from, int64_t *to);
	/* Adds to scores[from, to) of a row. NULL: nothing. */
	void (*mask)(const struct rg_attn *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     double *scores);
	const void *ctx;                    /* for these two */
	bool has_sink;                      /* one more logit in the sum of the softmax: */
	const struct rg_tensor *sink;       /* one a head of Q; NULL: 0 */
	enum rg_attn_stage qk_stage;
	const struct rg_tensor *qk;         /* batch x q_heads x q_seq x total */
	double *scratch;                    /* rg_attn_scratch_bytes() */
};
size_t rg_attn_scratch_bytes(const struct rg_attention *size);
void rg_attn_run(const struct rg_attn *a);
void rg_attn_run_batch(const struct rg_attn *a, int64_t b);

/* Copies positions [0, seq) of `from` to `to`, of any float types. */
void rg_attn_copy_rows(const struct rg_attn_rows *from, const struct rg_attn_rows *to, int64_t batch, int64_t heads,
		       int64_t seq, int64_t width);
/* The tensor of an input or output, NULL when it is absent or unwanted. */
const struct rg_tensor *rg_attn_in(const struct rg_call *c, int i);
const struct rg_tensor *rg_attn_out(const struct rg_call *c, int i);

/* Rotates the first `dim` of n elements in place by the angle of each pair: pair j
 * is (j, j + dim / 2), or (2j, 2j + 1) when interleaved. */
void rg_attn_rotate(double *x, const double *cosines, const double *sines, int64_t dim, bool interleaved);

#endif
