/*
 * The families of the operator table: one file each, joined in op.c.
 *
 * A family file exports a constant array and its length; a family that does not
 * exist yet is only declared here, op.c lists those that do.
 */
#ifndef RG_GRAPH_OP_FAMILIES_H
#define RG_GRAPH_OP_FAMILIES_H

#include "graph/op.h"

#define RG_OP_FAMILY(name) \
	extern const struct rg_op rg_ops_##name[]; \
	extern const int rg_n_ops_##name

RG_OP_FAMILY(move);   /* data movement */
RG_OP_FAMILY(index);  /* data movement by index: Gather, Scatter, TopK, ... */
RG_OP_FAMILY(math);   /* elementwise arithmetic and functions */
RG_OP_FAMILY(logic);  /* comparison, boolean, Where */
RG_OP_FAMILY(random); /* draws, and Dropout */
RG_OP_FAMILY(reduce); /* Reduce*, ArgMax, ... */
RG_OP_FAMILY(norm);   /* normalisation, softmax */
RG_OP_FAMILY(attention);
RG_OP_FAMILY(linear_attention); /* and CausalConvWithState */
RG_OP_FAMILY(gqa);
RG_OP_FAMILY(skip_norm);
RG_OP_FAMILY(mha); /* Attention and its like of ONNX Runtime */
RG_OP_FAMILY(gemm);   /* MatMul, Gemm, Einsum */
RG_OP_FAMILY(loss);   /* losses of training graphs */
RG_OP_FAMILY(nn);     /* convolution and its like */
RG_OP_FAMILY(pool);
RG_OP_FAMILY(rnn);
RG_OP_FAMILY(quant);
RG_OP_FAMILY(ml);     /* ai.onnx.ml: trees, linear models, encoders */
RG_OP_FAMILY(signal); /* Fourier transforms, windows */
RG_OP_FAMILY(contrib_fused);   /* com.microsoft: fused float operators */
RG_OP_FAMILY(contrib_qattention);
RG_OP_FAMILY(contrib_qgemm);   /* com.microsoft: products of bytes */
RG_OP_FAMILY(contrib_quant);   /* com.microsoft: other operators on bytes */
RG_OP_FAMILY(contrib_weights); /* com.microsoft: weights of a few bits */
RG_OP_FAMILY(own);    /* ridge: what only its own passes make */
RG_OP_FAMILY(distinct); /* NonMaxSuppression, Unique */
RG_OP_FAMILY(geometry); /* images: Col2Im, AffineGrid, DeformConv, CenterCropPad */
RG_OP_FAMILY(text);   /* operators on strings */
RG_OP_FAMILY(control); /* If, Loop, Scan, sequences, optionals */
RG_OP_FAMILY(train); /* optimisers */

/* The usual last line of a family file. */
#define RG_OP_FAMILY_END(name) \
	const int rg_n_ops_##name = (int)(sizeof(rg_ops_##name) / sizeof(rg_ops_##name[0]))

#endif
