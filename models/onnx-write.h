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
 * attributes, initialisers and Constant nodes (what was folded or bound is
 * computed again by whoever reads it),
 * inputs as declared, with their symbols. Every output must have a declared
 * or an inferred type.
 *
 * RG_ENOTSUP_MODEL: what is not written: subgraphs, text tensors, and models
 * of 2 GiB or more, which a protobuf message cannot hold. A failed write
 * leaves no file.
 */
int rg_onnx_write(const struct rg_graph *g, const char *path, struct rg_error *err);

#endif
