/* See proof-calls.h. Sizes are odd, and beyond two vectors of 16 in what is innermost. */
#include "kernels/proof-calls.h"

#include <string.h>

#include "graph/op.h"

#define INTS(NAME, N, ...) { .name = NAME, .n = N, .v = { __VA_ARGS__ } }
#define INT(NAME, V) { .name = NAME, .v = { V } }
#define TEXT(NAME, S) { .name = NAME, .n = -1, .s = S }
#define PADS(P) INTS("pads", 4, P, P, P, P)

static const struct rg_proof_call calls[] = {
	{ NULL, .n_in = 1, .in = { { 1, { 101 } } } },
	{ NULL, .n_in = 1, .in = { { 3, { 3, 5, 33 } } } },
	{ NULL, .n_in = 2, .in = { { 2, { 5, 77 } }, { 1, { 77 } } } },
	{ NULL, .n_in = 2, .in = { { 4, { 2, 3, 5, 49 } }, { 4, { 1, 3, 1, 1 } } } },
	{ "AveragePool", 0, true, { INTS("kernel_shape", 2, 3, 3), PADS(1), INTS("strides", 2, 2, 2) }, 1,
	  { { 4, { 1, 5, 17, 39 } } } },
	{ "Attention", 23, false, { { 0 } }, 3, { { 4, { 1, 3, 19, 37 } }, { 4, { 1, 3, 45, 37 } }, { 4, { 1, 3, 45, 37 } } } },
	{ "BatchNormalization", 0, true, { { 0 } }, 5,
	  { { 4, { 2, 7, 5, 9 } }, { 1, { 7 } }, { 1, { 7 } }, { 1, { 7 } }, { 1, { 7 } } } },
	{ "BiasAdd", 0, false, { { 0 } }, 3, { { 3, { 2, 5, 101 } }, { 1, { 101 } }, { 3, { 2, 5, 101 } } } },
	{ "BiasGelu", 0, false, { { 0 } }, 2, { { 3, { 2, 5, 101 } }, { 1, { 101 } } } },
	{ "Conv", 11, false, { PADS(1) }, 3, { { 4, { 1, 5, 11, 23 } }, { 4, { 37, 5, 3, 3 } }, { 1, { 37 } } } },
	{ "Conv", 11, false, { { 0 } }, 3, { { 4, { 2, 33, 7, 9 } }, { 4, { 40, 33, 1, 1 } }, { 1, { 40 } } } },
	{ "Conv", 11, false, { PADS(1), INT("group", 9) }, 3,
	  { { 4, { 1, 9, 12, 39 } }, { 4, { 9, 1, 3, 3 } }, { 1, { 9 } } } },
	{ "Conv", 11, false, { PADS(3), INTS("strides", 2, 2, 2) }, 2, { { 4, { 1, 3, 41, 37 } }, { 4, { 16, 3, 7, 7 } } } },
	{ "Conv", 11, false, { PADS(1), INT("group", 2) }, 2, { { 4, { 1, 32, 9, 9 } }, { 4, { 64, 16, 3, 3 } } } },
	{ "Conv", 11, false, { PADS(1) }, 3, { { 4, { 1, 20, 21, 27 } }, { 4, { 37, 20, 3, 3 } }, { 1, { 37 } } } },
	{ "ConvInteger", 0, false, { PADS(1) }, 4, { { 4, { 1, 6, 9, 37 }, RG_U8 }, { 4, { 37, 6, 3, 3 }, RG_I8 }, { .dtype = RG_U8 },
						    { 1, { 37 }, RG_I8 } } },
	{ "ConvTranspose", 11, false, { INTS("strides", 2, 2, 2) }, 2,
	  { { 4, { 1, 6, 9, 11 } }, { 4, { 6, 17, 3, 3 } } } },
	{ "DynamicQuantizeMatMul", 0, true, { { 0 } }, 5,
	  { { 2, { 17, 45 } }, { 2, { 45, 101 }, RG_I8 }, { 1, { 101 } }, { 1, { 101 }, RG_I8 }, { 1, { 101 } } } },
	{ "FusedConv", 0, false, { PADS(1), TEXT("activation", "Relu") }, 3,
	  { { 4, { 1, 5, 11, 23 } }, { 4, { 37, 5, 3, 3 } }, { 1, { 37 } } } },
	{ "FusedConv", 0, false, { PADS(1), TEXT("activation", "Relu") }, 3,
	  { { 4, { 1, 20, 21, 27 } }, { 4, { 37, 20, 3, 3 } }, { 1, { 37 } } } },
	{ "FusedGemm", 0, false, { TEXT("activation", "Relu"), INT("transB", 1) }, 3,
	  { { 2, { 17, 45 } }, { 2, { 101, 45 } }, { 1, { 101 } } } },
	{ "FusedMatMul", 0, false, { INT("transA", 1), INT("transB", 1) }, 2, { { 2, { 45, 19 } }, { 2, { 101, 45 } } } },
	{ "GRU", 0, false, { INT("hidden_size", 37) }, 3, { { 3, { 5, 2, 45 } }, { 3, { 1, 111, 45 } }, { 3, { 1, 111, 37 } } } },
	{ "Gemm", 0, false, { INT("transB", 1) }, 3, { { 2, { 17, 45 } }, { 2, { 101, 45 } }, { 1, { 101 } } } },
	{ "Gemm", 0, false, { INT("transA", 1) }, 2, { { 2, { 45, 33 } }, { 2, { 45, 37 } } } },
	{ "GlobalAveragePool", 0, true, { { 0 } }, 1, { { 4, { 2, 9, 7, 11 } } } },
	{ "GlobalMaxPool", 0, false, { { 0 } }, 1, { { 4, { 2, 9, 7, 11 } } } },
	{ "GroupNormalization", 0, false, { INT("num_groups", 3) }, 3, { { 4, { 2, 9, 7, 11 } }, { 1, { 9 } }, { 1, { 9 } } } },
	{ "InstanceNormalization", 0, false, { { 0 } }, 3, { { 4, { 2, 9, 7, 11 } }, { 1, { 9 } }, { 1, { 9 } } } },
	{ "LRN", 0, false, { INT("size", 5) }, 1, { { 4, { 2, 19, 5, 37 } } } },
	{ "LSTM", 0, false, { INT("hidden_size", 37) }, 3, { { 3, { 5, 2, 45 } }, { 3, { 1, 148, 45 } }, { 3, { 1, 148, 37 } } } },
	{ "LayerNormalization", 0, false, { { 0 } }, 3, { { 2, { 7, 101 } }, { 1, { 101 } }, { 1, { 101 } } } },
	{ "LogSoftmax", 0, false, { { 0 } }, 1, { { 2, { 7, 101 } } } },
	{ "LpNormalization", 0, false, { { 0 } }, 1, { { 2, { 7, 101 } } } },
	{ "MatMul", 0, false, { { 0 } }, 2, { { 2, { 19, 45 } }, { 2, { 45, 101 } } } },
	{ "MatMul", 0, false, { { 0 } }, 2, { { 2, { 1, 301 } }, { 2, { 301, 70 } } } },
	{ "MatMul", 0, false, { { 0 } }, 2, { { 4, { 2, 3, 5, 33 } }, { 3, { 3, 33, 17 } } } },
	{ "MatMulInteger", 0, false, { { 0 } }, 4, { { 2, { 19, 45 }, RG_U8 }, { 2, { 45, 101 }, RG_I8 }, { .dtype = RG_U8 }, { .dtype = RG_I8 } } },
	{ "MatMulInteger", 0, false, { { 0 } }, 4, { { 3, { 3, 5, 301 }, RG_I8 }, { 3, { 3, 301, 33 }, RG_U8 }, { .dtype = RG_I8 }, { 1, { 33 }, RG_U8 } } },
	{ "MatMulIntegerToFloat", 0, true, { { 0 } }, 7,
	  { { 2, { 19, 45 }, RG_U8 }, { 2, { 45, 101 }, RG_I8 }, { 0 }, { 1, { 101 } }, { .dtype = RG_U8 }, { 1, { 101 }, RG_I8 }, { 1, { 101 } } } },
	{ "MaxPool", 0, false, { INTS("kernel_shape", 2, 3, 3), PADS(1), INTS("strides", 2, 2, 2) }, 1,
	  { { 4, { 1, 5, 17, 39 } } } },
	{ "MultiHeadAttention", 0, false, { INT("num_heads", 3) }, 3,
	  { { 3, { 1, 19, 111 } }, { 3, { 1, 45, 111 } }, { 3, { 1, 45, 111 } } } },
	{ "QGemm", 0, true, { INT("transB", 1) }, 9,
	  { { 2, { 17, 45 }, RG_U8 }, { 0 }, { .dtype = RG_U8 }, { 2, { 101, 45 }, RG_I8 }, { 1, { 101 } }, { 1, { 101 }, RG_I8 },
	    { 1, { 101 }, RG_I32 }, { 0 }, { .dtype = RG_U8 } } },
	{ "QLinearConv", 0, true, { PADS(1) }, 9,
	  { { 4, { 1, 20, 11, 37 }, RG_U8 }, { 0 }, { .dtype = RG_U8 }, { 4, { 37, 20, 3, 3 }, RG_I8 }, { 1, { 37 } }, { 1, { 37 }, RG_I8 },
	    { 0 }, { .dtype = RG_U8 }, { 1, { 37 }, RG_I32 } } },
	{ "QLinearMatMul", 0, true, { { 0 } }, 8,
	  { { 2, { 19, 45 }, RG_U8 }, { 0 }, { .dtype = RG_U8 }, { 2, { 45, 101 }, RG_I8 }, { 1, { 101 } }, { 1, { 101 }, RG_I8 }, { 0 },
	    { .dtype = RG_U8 } } },
	{ "RMSNormalization", 0, false, { { 0 } }, 2, { { 2, { 7, 101 } }, { 1, { 101 } } } },
	{ "RNN", 0, false, { INT("hidden_size", 37) }, 3, { { 3, { 5, 2, 45 } }, { 3, { 1, 37, 45 } }, { 3, { 1, 37, 37 } } } },
	{ "ReduceL1", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceL1", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceL2", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceL2", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceLogSum", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceLogSum", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceLogSumExp", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceLogSumExp", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceMax", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceMax", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceMean", 13, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceMin", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceMin", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceProd", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceProd", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceSum", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceSum", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceSumSquare", 11, true, { INTS("axes", 1, -1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "ReduceSumSquare", 11, true, { INTS("axes", 1, 1) }, 1, { { 3, { 3, 5, 101 } } } },
	{ "SimplifiedLayerNormalization", 0, false, { { 0 } }, 2, { { 2, { 7, 101 } }, { 1, { 101 } } } },
	{ "SkipLayerNormalization", 0, false, { { 0 } }, 4,
	  { { 3, { 2, 5, 101 } }, { 3, { 2, 5, 101 } }, { 1, { 101 } }, { 1, { 101 } } } },
	{ "SkipSimplifiedLayerNormalization", 0, false, { { 0 } }, 3,
	  { { 3, { 2, 5, 101 } }, { 3, { 2, 5, 101 } }, { 1, { 101 } } } },
	{ "Softmax", 0, false, { { 0 } }, 1, { { 2, { 7, 101 } } } },
	{ "Transpose", 0, false, { INTS("perm", 4, 0, 2, 3, 1) }, 1, { { 4, { 2, 19, 5, 37 } } } },
	{ "TransposeMatMul", 0, false, { { 0 } }, 2, { { 2, { 19, 45 } }, { 2, { 45, 101 } } } },
};
#define N_CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

static bool fits(const struct rg_proof_call *c, const struct rg_op *op)
{
	if (c->op_type)
		return !strcmp(c->op_type, op->name);
	return op->kind == RG_KIND_ELEMENTWISE && op->min_in == c->n_in;
}

const struct rg_proof_call *rg_proof_call_at(const struct rg_op *op, int i)
{
	for (int k = 0; k < N_CALLS; k++)
		if (fits(&calls[k], op) && i-- == 0)
			return &calls[k];
	return NULL;
}
