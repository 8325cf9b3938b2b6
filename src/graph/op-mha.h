/*
 * Attention, MultiHeadAttention and GroupQueryAttention of ONNX Runtime
 * (domain com.microsoft): sizes, layouts and masks, resolved once for shape
 * inference and kernels.
 */
#ifndef RG_GRAPH_OP_MHA_H
#define RG_GRAPH_OP_MHA_H

#include "graph/op-attention.h"

enum rg_mha_layout {
	RG_MHA_PROJECTED,   /* Attention: made of input, weights and bias */
	RG_MHA_SEPARATE,    /* batch x seq x (heads * head), three tensors */
	RG_MHA_HEADS_FIRST, /* K and V are batch x heads x seq x head */
	RG_MHA_PACKED_KV,   /* K is batch x seq x heads x 2 x head */
	RG_MHA_PACKED_QKV,  /* Q is batch x seq x heads x 3 x head */
};

enum rg_mha_mask {
	RG_MHA_NO_MASK,
	RG_MHA_LENGTHS,   /* batch: keys from there on are padding */
	RG_MHA_END_START, /* 2 * batch: ends, then starts */
	RG_MHA_KEYS,      /* batch x total */
	RG_MHA_ROWS,      /* batch x seq x total */
	RG_MHA_SQUARE,    /* batch x 1 x max x max, row past + i */
};

struct rg_mha {
	struct rg_attention size; /* q_heads and kv_heads are both num_heads */
	enum rg_mha_layout layout;
	enum rg_mha_mask mask;
	int64_t mask_width;       /* RG_MHA_SQUARE: max */
	int64_t input;            /* RG_MHA_PROJECTED: width of the input */
	bool has_bias, causal;
	bool bias_batch, bias_head; /* the attention bias has more than one of these */
	bool has_attention_bias, has_past;
};

/* Where the two operators have the inputs that they share. */
struct rg_mha_inputs {
	int mask, attention_bias, bias;
};
struct rg_mha_inputs rg_mha_inputs(const struct rg_node *n);
/* Attention or MultiHeadAttention; what is not implemented is RG_ENOTSUP_MODEL. */
int rg_mha_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_mha *out, struct rg_error *err);

/* GroupQueryAttention; total_sequence_length is not among these. */
struct rg_gqa {
	struct rg_attention size; /* past: rows of the cache that comes in; total: 0 */
	bool packed;              /* Q, K, V in one tensor, batch x seq x (heads * head) */
	bool rotary, interleaved, causal;
	int64_t rotary_dim, positions; /* rows of the caches of angles */
	int64_t window;           /* -1: none */
	bool bias_batch, bias_head;
};
enum { /* inputs */
	RG_GQA_QUERY, RG_GQA_KEY, RG_GQA_VALUE, RG_GQA_PAST_KEY, RG_GQA_PAST_VALUE, RG_GQA_SEQLENS_K, RG_GQA_TOTAL,
	RG_GQA_COS, RG_GQA_SIN, RG_GQA_POSITION_IDS, RG_GQA_BIAS, RG_GQA_HEAD_SINK, RG_GQA_K_SCALE, RG_GQA_V_SCALE,
	RG_GQA_Q_NORM, RG_GQA_K_NORM, RG_GQA_QUERY_SEQLENS, RG_GQA_INPUTS
};
int rg_gqa_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_gqa *out, struct rg_error *err);

#endif
