/*
 * Dropout is a view of its input in inference and draws random numbers in
 * training; who aliases or runs it asks here.
 */
#ifndef RG_GRAPH_OP_RANDOM_H
#define RG_GRAPH_OP_RANDOM_H

#include "graph/op.h"

/*
 * Whether this Dropout drops anything. `in` has node->n_in entries, with data
 * where the value is known: training_mode must be (inference asks for it); a
 * ratio that is known to be 0 drops nothing.
 */
bool rg_dropout_trains(const struct rg_node *n, const struct rg_tensor *in);
/* Whether output 0 is input 0: the flag, unless it is a Dropout that trains. */
bool rg_node_is_view(const struct rg_graph *g, const struct rg_node *n);

#endif
