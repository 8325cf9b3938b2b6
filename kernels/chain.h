/*
 * Elementwise programs (ewise.h) from the nodes of a graph: for the kernels that
 * run ridge's own operator Chain, and for the pass that makes it.
 */
#ifndef RG_KERNELS_CHAIN_H
#define RG_KERNELS_CHAIN_H

#include "kernels/ewise.h"

/*
 * The program of `nodes` (indices into g, in an order in which they can run), which read the
 * values in[0 .. n_in) from outside; the last node's output 0 is the result. All values are typed
 * and shaped; every node's output has the shape of the result.
 *
 * false: a node that is not elementwise within `isa` or for its types, an input that is missing,
 * or more than a program holds. Looks at no data.
 */
bool rg_chain_program(struct rg_ew *e, const struct rg_graph *g, int n_nodes, const int *nodes, int n_in, const int *in,
		      uint32_t isa);

/* The body of a Chain node as such a program; false also for a body that does not fit the call. */
bool rg_chain_call_program(struct rg_ew *e, const struct rg_call *c, uint32_t isa);

#endif
