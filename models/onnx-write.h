/*
 * Writes a graph as an ONNX model file, so that the built-in models can be run
 * elsewhere too.
 */
#ifndef RG_MODELS_ONNX_WRITE_H
#define RG_MODELS_ONNX_WRITE_H

#include "base/error.h"
#include "graph/graph.h"

/*
 * Writes a finished graph to `path`, which is replaced: nodes with their
 * attributes and subgraphs, initialisers and Constant nodes, inputs and outputs
 * as declared, with their symbols. What was folded or bound is computed again by
 * whoever reads it; a constant that has no node behind it (a pass made it)
 * becomes an initialiser. Every output must have a declared or an inferred type.
 * The IR version is raised to what the opset came with, and to 4.
 *
 * RG_ENOTSUP_MODEL: what is not written: a node of another version than the
 * opset of the file selects, operators of ridge's own executor, and models of
 * 2 GiB or more, which a protobuf message cannot hold. A failed write leaves no file.
 */
int rg_onnx_write(const struct rg_graph *g, const char *path, struct rg_error *err);
/* The same without the constants of the main graph whose byte in `values` (n_values; NULL: all) is 0. No node
 * may read them. */
int rg_onnx_write_values(const struct rg_graph *g, const unsigned char *values, const char *path,
			 struct rg_error *err);
/*
 * A hash of what would be written, without what was read from the file: two graphs
 * of one model that have been rewritten alike have the same. A few milliseconds,
 * however large the weights.
 */
int rg_onnx_digest(const struct rg_graph *g, const unsigned char *values, char hex[65], struct rg_error *err);
/* The same of one node, with the constants that passes made for it. */
int rg_onnx_node_digest(const struct rg_graph *g, int node, char hex[65], struct rg_error *err);

#endif
