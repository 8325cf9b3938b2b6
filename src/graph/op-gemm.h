/*
 * The matrix shapes behind MatMul, MatMulInteger, QLinearMatMul and Gemm, for
 * shape inference, costs and every kernel of theirs.
 */
#ifndef RG_GRAPH_OP_GEMM_H
#define RG_GRAPH_OP_GEMM_H

#include "graph/graph.h"

/*
 * numpy's matmul: batches of (m x k) times (k x n). A one-dimensional first
 * operand is a row, a one-dimensional second one a column; the dimension added
 * for it is missing from `out`. batch_a and batch_b broadcast to batch.
 */
struct rg_matmul {
	int64_t m, n, k;
	struct rg_shape batch_a, batch_b, batch; /* dimensions before the last two */
	struct rg_shape out;
};
bool rg_matmul_shape(const struct rg_shape *a, const struct rg_shape *b, struct rg_matmul *out);

/* m, n, k of a Gemm node from the shapes of A and B and its attributes. */
bool rg_gemm_shape(const struct rg_node *node, const struct rg_shape *a, const struct rg_shape *b,
		   int64_t *m, int64_t *n, int64_t *k);

/*
 * An Einsum equation against the shapes of its operands. Labels are numbered
 * in order of appearance; the dimensions of an ellipsis get labels of their
 * own. An operand dimension of 1 broadcasts under an ellipsis.
 */
#define RG_EINSUM_MAX_IN 8
#define RG_EINSUM_MAX_LABELS 32
struct rg_einsum {
	int n_labels, n_in, n_out;
	int64_t dim[RG_EINSUM_MAX_LABELS];
	int rank[RG_EINSUM_MAX_IN];
	int label[RG_EINSUM_MAX_IN][RG_MAX_RANK]; /* of each operand's dimensions */
	int out[RG_MAX_RANK];                     /* of the output's dimensions */
};
/* NULL on success, else what is wrong, as a sentence. */
const char *rg_einsum_parse(const char *equation, int n_in, const struct rg_shape *const *shapes,
			    struct rg_einsum *out);

#endif
