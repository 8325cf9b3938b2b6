/*
 * A graph's standard opset, raised so that one number says the version of every node.
 * In memory a node may be of another version than the graph's opset selects: a pass made
 * it of an operator that is younger (HardSwish came with opset 14), or it came out of a
 * function that has an opset of its own. A file knows one opset a domain.
 */
#ifndef RG_COMPILE_OPSET_H
#define RG_COMPILE_OPSET_H

#include "base/error.h"
#include "graph/graph.h"

/*
 * The lowest opset, not below the graph's own, that can hold all nodes; where that is
 * another one, whether every node can be carried to it. RG_ENOTSUP_MODEL: it cannot,
 * the message names a node and the reason. Changes nothing.
 */
int rg_opset_needed(const struct rg_graph *g, int64_t *opset, struct rg_error *err);
/*
 * Carries every node of a finished graph and its subgraphs to that opset, or to `least` where that is
 * more: attributes that
 * have become inputs since (axes, pads, bounds) get a constant, what was the default of an
 * old version and is no more is written out. On failure the graph is only fit to be freed.
 */
int rg_opset_raise(struct rg_graph *g, int64_t least, struct rg_error *err);

#endif
