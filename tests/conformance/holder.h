/*
 * ONNX test data of values that are no plain tensors: SequenceProto and
 * OptionalProto files (onnx-data.proto), as items of the executor.
 */
#ifndef TESTS_CONFORMANCE_HOLDER_H
#define TESTS_CONFORMANCE_HOLDER_H

#include <stdbool.h>

#include "exec/item.h"
#include "graph/graph.h"

/* Reads a file that holds a value of this kind; NULL with the error set. */
struct rg_item *holder_load(const char *path, enum rg_value_kind kind, struct rg_error *err);
/* Whether two items agree, element by element (compare.h). */
bool holders_agree(const struct rg_item *got, const struct rg_item *want, double rtol, double atol, char *why,
		   size_t why_size);

#endif
