/* How the optimisers of ai.onnx.preview.training order their inputs. */
#ifndef RG_GRAPH_OP_TRAIN_H
#define RG_GRAPH_OP_TRAIN_H

#include "graph/graph.h"

/*
 * Behind the learning rate and the update count stand `n` tensors, then as many
 * gradients, then one or two states of each; the outputs are the new tensors and
 * their states. Part p of tensor i is input 2 + p * n + i, or output p * n + i.
 */
struct rg_optimiser {
	int n;
	int states; /* momenta, squared gradients: 1 or 2 */
};
/* False: the node is none, or the numbers of its inputs and outputs do not fit. */
bool rg_optimiser_of(const struct rg_node *node, struct rg_optimiser *out);

#endif
