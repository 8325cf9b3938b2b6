/*
 * How the normalising operators split a shape into rows: element i of row
 * (o, j) stands at (o * n + i) * inner + j, for o < outer and j < inner.
 * Shared by shape inference, costs and kernels.
 */
#ifndef RG_GRAPH_OP_NORM_H
#define RG_GRAPH_OP_NORM_H

#include "graph/graph.h"

struct rg_rows {
	int64_t outer, n, inner;
};

/* Softmax, LogSoftmax, Hardmax: along one axis from version 13 on; before, the
 * shape is flattened to two dimensions at the axis. False: a bad axis. */
bool rg_softmax_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out);
/* LayerNormalization, RMSNormalization: from the axis on to the end. Puts the
 * axis into *axis. */
bool rg_layernorm_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out, int *axis);
/* BatchNormalization: statistics of the batch are computed, and running ones are
 * outputs 1 and 2. Version 14 on; older ones are refused in training mode. */
bool rg_batchnorm_trains(const struct rg_node *node);
/* One axis, `dflt` where the node has no attribute of that name. */
bool rg_axis_rows(const struct rg_node *node, const struct rg_shape *s, int64_t dflt, struct rg_rows *out);

#endif
