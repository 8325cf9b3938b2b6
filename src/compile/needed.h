/* Which nodes and values the outputs of a graph need. */
#ifndef RG_COMPILE_NEEDED_H
#define RG_COMPILE_NEEDED_H

#include "graph/graph.h"

/*
 * Walks backward from the outputs of a finished graph; its nodes are sorted, so once does.
 * What a constant was computed from counts as needed only with through_constants: the
 * difference between folded and dead. value_needed: g->n_values, node_needed: g->n_nodes bytes,
 * overwritten.
 */
void rg_mark_needed(const struct rg_graph *g, bool through_constants, unsigned char *value_needed,
		    unsigned char *node_needed);

#endif
