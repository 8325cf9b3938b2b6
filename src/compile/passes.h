/* The passes, one a file. The order in which they run stands in pass.c. */
#ifndef RG_COMPILE_PASSES_H
#define RG_COMPILE_PASSES_H

#include "compile/pass.h"

extern const struct rg_pass rg_pass_chain;         /* pass-chain.c */
extern const struct rg_pass rg_pass_no_op;         /* pass-no-op.c */
extern const struct rg_pass rg_pass_common;         /* pass-common.c */
extern const struct rg_pass rg_pass_pad_merge;      /* pass-pad-merge.c */
extern const struct rg_pass rg_pass_expand;         /* pass-expand.c */
extern const struct rg_pass rg_pass_conv_input;     /* pass-conv-input.c */
extern const struct rg_pass rg_pass_matmul_add;     /* pass-matmul-add.c */
extern const struct rg_pass rg_pass_matmul_flat;    /* pass-matmul-add.c */
extern const struct rg_pass rg_pass_transpose_merge; /* pass-transpose-merge.c */
extern const struct rg_pass rg_pass_reshape_merge; /* pass-reshape-merge.c */
extern const struct rg_pass rg_pass_hard_swish;    /* pass-hard-swish.c */
extern const struct rg_pass rg_pass_attention;     /* pass-attention.c */
extern const struct rg_pass rg_pass_gelu;          /* pass-gelu.c */
extern const struct rg_pass rg_pass_layer_norm;    /* pass-layer-norm.c */
extern const struct rg_pass rg_pass_skip_layer_norm; /* pass-skip-layer-norm.c */
extern const struct rg_pass rg_pass_softmax;       /* pass-softmax.c */
extern const struct rg_pass rg_pass_rotary;        /* pass-rotary.c */
extern const struct rg_pass rg_pass_silu;          /* pass-silu.c */
extern const struct rg_pass rg_pass_conv_affine;   /* pass-conv-affine.c */
extern const struct rg_pass rg_pass_affine_blocked; /* pass-affine-blocked.c */
extern const struct rg_pass rg_pass_conv_epilogue; /* pass-conv-epilogue.c */
extern const struct rg_pass rg_pass_qdq_move;       /* pass-qdq-move.c */
extern const struct rg_pass rg_pass_qdq_product;    /* pass-qdq-product.c */
extern const struct rg_pass rg_pass_qdq_ewise;      /* pass-qdq-ewise.c */
extern const struct rg_pass rg_pass_dynamic_product; /* pass-dynamic-product.c */
extern const struct rg_pass rg_pass_epilogue;      /* pass-epilogue.c */

#endif
