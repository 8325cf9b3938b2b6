/*
 * Which axes a reduction folds, for shape inference and kernels.
 */
#ifndef RG_GRAPH_OP_REDUCE_H
#define RG_GRAPH_OP_REDUCE_H

#include "graph/graph.h"

/* Whether this version takes its axes as input 1 rather than as attribute. */
bool rg_reduce_axes_are_input(const struct rg_node *node);
/*
 * Bits of the axes to fold in a tensor of `rank`. For versions with axes as
 * input, axes and n are that input's values (n 0 when it is absent or empty);
 * otherwise they are ignored. False: an axis outside of the tensor or twice.
 */
bool rg_reduce_mask(const struct rg_node *node, int rank, const int64_t *axes, int n, uint32_t *mask);

#endif
