/*
 * ONNX Runtime's own operators (domain com.microsoft): what inference, costs and
 * kernels must read alike. Source of the meaning: the schemas of ONNX Runtime
 * 1.32 (docs/ContribOperators.md) and its results; they have one version.
 */
#ifndef RG_GRAPH_CONTRIB_H
#define RG_GRAPH_CONTRIB_H

#include "graph/op-gemm.h"
#include "graph/op-norm.h"
#include "graph/op.h"
#include "graph/window.h"

#define RG_CONTRIB_DOMAIN "com.microsoft"

/*
 * Many of them are a standard operator in one of its versions under another
 * domain, or with something behind it. These treat the node as that one.
 */
int rg_infer_as(struct rg_infer *c, const char *op_type, int version, struct rg_error *err);
void rg_cost_as(const struct rg_cost_in *c, struct rg_cost *out, const char *op_type, int version);

/* A convolution whose input 3, if it has one, is added to its result and has its type and shape. */
int rg_infer_conv_sum(struct rg_infer *c, struct rg_error *err);

/* ---- activations behind a convolution or a product ---- */

enum rg_activation_kind {
	RG_ACT_NONE, RG_ACT_RELU, RG_ACT_TANH, RG_ACT_SIGMOID, RG_ACT_SILU, RG_ACT_LEAKY_RELU, RG_ACT_CLIP,
	RG_ACT_HARD_SIGMOID, RG_ACT_ELU, RG_ACT_SELU, RG_ACT_SOFTPLUS, RG_ACT_SOFTSIGN, RG_ACT_THRESHOLDED_RELU,
	RG_ACT_PARAMETRIC_SOFTPLUS, RG_ACT_SCALED_TANH,
	/* ridge's own operators only (own.h) */
	RG_ACT_HARD_SWISH, RG_ACT_GELU, RG_ACT_GELU_TANH, RG_ACT_SWISH, RG_ACT_COUNT
};

struct rg_activation {
	enum rg_activation_kind kind;
	double a, b; /* alpha and beta (Selu: gamma), or Clip's bounds */
};

/* Whose node a name of an activation stands in: each knows some of them. */
enum rg_activation_of { RG_ACT_OF_CONV, RG_ACT_OF_GEMM, RG_ACT_OF_OWN };
/* The activation of that name with its number of parameters, -1: it is unknown there. */
int rg_activation_find(enum rg_activation_of of, const char *name, enum rg_activation_kind *kind);
const char *rg_activation_name(enum rg_activation_kind kind);
/* Attributes activation and activation_params, of all but FusedGemm. NULL, or what is wrong, as a sentence. */
const char *rg_activation_read(enum rg_activation_of of, const struct rg_node *node, struct rg_activation *out);

/* FusedConv: attributes activation and activation_params. NULL, or what is wrong, as a sentence. */
const char *rg_conv_activation(const struct rg_node *node, struct rg_activation *out);
/* FusedGemm: attributes activation, activation_alpha, _beta and _gamma. */
const char *rg_gemm_activation(const struct rg_node *node, struct rg_activation *out);
/* Adds what it costs an element of n. */
void rg_activation_cost(const struct rg_activation *a, int64_t n, struct rg_cost *out);

/* ---- FusedMatMul ---- */

/* A product of operands that are read transposed: strides in elements, the
 * batches' for each dimension of p.batch, 0 where an operand repeats. */
struct rg_fused_matmul {
	struct rg_matmul p;
	int64_t a_row, a_col, b_row, b_col;
	int64_t a_batch[RG_MAX_RANK], b_batch[RG_MAX_RANK];
};
bool rg_fused_matmul_shape(const struct rg_node *node, const struct rg_shape *a, const struct rg_shape *b,
			   struct rg_fused_matmul *out);

/* ---- on bytes ---- */

/* Pools: the window of an input whose channels are its last dimension, or the
 * second one; *out is the output's shape in the same order. */
int rg_byte_pool_window(const struct rg_node *node, const struct rg_shape *x, bool channels_last,
			struct rg_window *win, struct rg_shape *out, struct rg_error *err);
/* QLinearSoftmax: its attribute opset says which Softmax it is. False: a bad axis. */
bool rg_byte_softmax_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out);

/* QAttention: how many inputs it shares with Attention, and which one is Attention's i-th. */
#define RG_QATTENTION_INPUTS 5
int rg_qattention_input(int i);

/* ---- weights in blocks of a few bits ---- */

/* MatMulNBits: row n of the weights is `blocks` blocks of blob_bytes bytes. */
struct rg_nbits {
	int64_t k, n, bits, block, blocks, blob_bytes, zero_row_bytes;
};
const char *rg_nbits_layout(const struct rg_node *node, struct rg_nbits *out);

/* MatMulBnb4: element i of the n x k weights is code i of B times absmax i / block. */
struct rg_bnb4 {
	int64_t k, n, block;
	bool nf4, transposed; /* NormalFloat, else FP4; y = a w^T, else y = a w */
};
const char *rg_bnb4_layout(const struct rg_node *node, struct rg_bnb4 *out);

/*
 * GatherBlockQuantized: data as outer x dim x inner elements around the gathered
 * axis; element e of it (flat) has the scale at
 * e / (q_dim * q_inner) * q_blocks * q_inner + e / q_inner % q_dim / block * q_inner + e % q_inner.
 */
struct rg_gather_blocks {
	int bits;
	bool is_signed;
	int64_t outer, dim, inner;
	int64_t block, q_dim, q_inner, q_blocks;
	int64_t zero_row; /* zero points are packed in rows of so many, each from a whole byte on; 0: no rows */
	double zero;      /* where there are no zero points */
	struct rg_shape data, out, scales, zeros;
};
const char *rg_gather_blocks_layout(const struct rg_node *node, enum rg_dtype type, const struct rg_shape *data,
				    const struct rg_shape *indices, struct rg_gather_blocks *out);

#endif
