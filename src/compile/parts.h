/*
 * Parts of a tensor that lie together in its memory: what is cut out of it there, or joined
 * there, need not be copied.
 */
#ifndef RG_COMPILE_PARTS_H
#define RG_COMPILE_PARTS_H

#include "graph/graph.h"

/*
 * Whether output k of a node is a contiguous part of its input 0: of Slice, Split, or Gather of one
 * constant index, along the outermost dimension that is not 1. *at_bytes: where it begins there.
 */
bool rg_part_of(const struct rg_graph *g, const struct rg_node *n, int k, int64_t *at_bytes);

/* Whether a node is a Concat whose inputs lie one behind the other in its output. */
bool rg_parts_join(const struct rg_graph *g, const struct rg_node *n);

#endif
