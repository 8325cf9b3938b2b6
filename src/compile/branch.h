/*
 * Ifs whose condition is known before the model runs: the branch taken replaces
 * the node, so that its steps are planned like all others.
 */
#ifndef RG_COMPILE_BRANCH_H
#define RG_COMPILE_BRANCH_H

#include "base/error.h"
#include "graph/graph.h"

/* Replaces each such If of the main graph by the nodes of its branch; what was
 * nested in it comes up in the next call, after inference. Returns how many, or
 * a negative errno: then the graph is only fit to be freed. */
int rg_inline_branches(struct rg_graph *g, struct rg_error *err);

#endif
