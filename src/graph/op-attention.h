/*
 * Attention of the standard domain, and its neighbours: sizes, resolved once
 * for shape inference and kernels.
 */
#ifndef RG_GRAPH_OP_ATTENTION_H
#define RG_GRAPH_OP_ATTENTION_H

#include "graph/op.h"

/* Shapes of the inputs of a node; NULL where one is absent. */
#define RG_SHAPES_MAX 18
struct rg_in_shapes {
	const struct rg_shape *at[RG_SHAPES_MAX];
};
void rg_shapes_of_infer(const struct rg_infer *c, struct rg_in_shapes *out);
void rg_shapes_of_tensors(const struct rg_node *n, const struct rg_tensor *in, struct rg_in_shapes *out);

/* Sizes that all kinds of attention have. */
struct rg_attention {
	int64_t batch, q_heads, kv_heads;
	int64_t q_seq, kv_seq;     /* rows of Q; new rows of K and V */
	int64_t past, total;       /* cached rows; total = past + kv_seq */
	int64_t head, v_head;      /* elements of a row of Q and K, of V */
};

/* Attention-23 and -24: inputs Q K V attn_mask past_key past_value
 * nonpad_kv_seqlen. 0, or an error that names the operator. */
int rg_attention_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_attention *out,
			 struct rg_error *err);
/* The mask as rows: how many elements each has (the rest of `total` is masked
 * out), and the strides of its batch, head and query dimension (0: broadcast).
 * A one-element row of version 23 is broadcast: *length is then 1. */
struct rg_attention_mask {
	int64_t length, batch, head, row;
	bool one; /* the only element of a row counts for all */
};
int rg_attention_mask(const struct rg_node *n, const struct rg_attention *a, const struct rg_shape *mask,
		      struct rg_attention_mask *out, struct rg_error *err);

/* RotaryEmbedding, standard and com.microsoft. */
struct rg_rotary {
	bool heads_first; /* batch x heads x seq x head, else batch x seq x (heads * head) */
	int64_t batch, seq, heads, head;
	int64_t dim;      /* the first so many elements of a head are rotated */
	int64_t cache;    /* rows of the caches (positions); 0: they have batch x seq rows */
};
int rg_rotary_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_rotary *out,
		      struct rg_error *err);

/* LinearAttention. Decay is absent, one a head (decay 1) or one a key element
 * (decay == d_k); beta likewise 0, or 1 (for all heads) or kv_heads a row. */
struct rg_linear_attention {
	int64_t batch, seq, q_heads, kv_heads, d_k, d_v, decay, beta;
	bool gated, delta;
};
int rg_linear_attention_resolve(const struct rg_node *n, const struct rg_in_shapes *in,
				struct rg_linear_attention *out, struct rg_error *err);

/* TensorScatter: a cache of outer x length x inner, `rows` of them written. */
struct rg_tensor_scatter {
	int64_t batch, per_batch, length, rows, inner; /* outer = batch * per_batch */
	bool circular;
};
int rg_tensor_scatter_resolve(const struct rg_node *n, const struct rg_in_shapes *in,
			      struct rg_tensor_scatter *out, struct rg_error *err);

/* ---- shared by the attention operators of all domains ---- */

/* An error for resolve functions: "Attention: ...". */
int rg_attention_fail(const struct rg_node *n, struct rg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets *size to width / parts when it divides and is at least 1. */
int rg_attention_divide(const struct rg_node *n, const char *what, int64_t width, int64_t parts, int64_t *size,
			struct rg_error *err);
/*
 * Flops and sfu of attention proper: for every query row and every key it sees
 * 2 head + 2 v_head, 1 to scale, 3 for the softmax (maximum, subtract, add), and
 * as sfu its exp and division; a mask adds 1, a softcap 2 and a tanh. A causal
 * row i sees min(total, past + i + 1) keys, at most `window` when that is >= 0.
 */
struct rg_attention_work {
	bool causal, mask, softcap;
	int64_t window; /* -1: none */
};
void rg_attention_cost(const struct rg_attention *a, const struct rg_attention_work *w, struct rg_cost *out);

#endif
