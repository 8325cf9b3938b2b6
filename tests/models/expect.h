/*
 * What the tests of the ONNX reader expect of an error, and the graphs that they
 * put their faults into.
 */
#ifndef RG_TESTS_MODELS_EXPECT_H
#define RG_TESTS_MODELS_EXPECT_H

#include "base/error.h"
#include "wire.h"

void expect_in(const char *text, const char *part);
/* The code, a part of "where: message", and no control characters in either. */
void expect_code(int rc, const struct rg_error *err, int code, const char *part);
/* Loads from memory and frees the bytes. */
void expect_error(struct wire *m, int code, const char *part);
/* Loads from a file; the error must name it. */
void expect_file_error(const char *path, int code, const char *part);

/* Input x, output y, and the node (NULL: none), which is freed. */
struct wire graph_of(struct wire *node);
/* y = Relu(x) */
struct wire relu_graph(void);
/* That graph with an initialiser, which is freed, as a model. */
struct wire model_with_tensor(struct wire *t);
/* A node with a subgraph in the attribute `name`, which holds a node with a
 * subgraph ... */
struct wire nested_model(const char *op, const char *name, int levels);

#endif
