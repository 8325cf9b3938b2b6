/*
 * Recurrent layers (RNN, GRU, LSTM): sizes, resolved once for shape inference
 * and kernels. With layout 0, X is seq x batch x input; with layout 1, batch
 * comes first.
 */
#ifndef RG_GRAPH_RNN_H
#define RG_GRAPH_RNN_H

#include <stdbool.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

struct rg_rnn {
	int gates;       /* 1 RNN, 3 GRU, 4 LSTM */
	int directions;  /* 1 or 2 */
	bool reverse;    /* the only direction runs backwards */
	bool batch_first;
	int64_t seq, batch, input, hidden;
};

int rg_rnn_resolve(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *w,
		   const struct rg_shape *r, struct rg_rnn *out, struct rg_error *err);

#endif
