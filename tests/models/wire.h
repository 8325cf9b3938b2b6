/*
 * A writer of protobuf's wire format for the tests, small enough to write wrong
 * files on purpose, and the few messages of ONNX that the tests are made of.
 * Writers abort when memory runs out.
 */
#ifndef RG_TESTS_MODELS_WIRE_H
#define RG_TESTS_MODELS_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "graph/dtype.h"

/* Zero-initialise. */
struct wire {
	uint8_t *p;
	size_t len, cap;
};

void wire_free(struct wire *w);
void wire_raw(struct wire *w, const void *p, size_t n);
void wire_varint(struct wire *w, uint64_t v);
void wire_tag(struct wire *w, uint32_t field, int type);
void wire_int(struct wire *w, uint32_t field, int64_t v);
void wire_f32(struct wire *w, uint32_t field, float v);
void wire_bytes(struct wire *w, uint32_t field, const void *p, size_t n);
void wire_str(struct wire *w, uint32_t field, const char *s);
/* Appends sub as a message and frees it. */
void wire_msg(struct wire *w, uint32_t field, struct wire *sub);

/* Numbers of the fields in onnx.proto that the tests write. */
enum {
	MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8,
	MODEL_FUNCTION = 25,
	GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
	GRAPH_SPARSE = 15,
	NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7,
	ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_T = 5, ATTR_G = 6, ATTR_FLOATS = 7, ATTR_INTS = 8,
	ATTR_STRINGS = 9, ATTR_TENSORS = 10, ATTR_TYPE = 20, ATTR_REF = 21,
	TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_SEGMENT = 3, TENSOR_FLOAT = 4, TENSOR_INT32 = 5, TENSOR_STRING = 6,
	TENSOR_INT64 = 7, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOUBLE = 10, TENSOR_UINT64 = 11,
	TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14,
};

/* A node with up to two inputs (NULL: fewer) and one output. */
struct wire wire_node(const char *op, const char *in0, const char *in1, const char *out);
/* ValueInfoProto of a tensor; a dim below -1 is written without value or name. */
struct wire wire_value(const char *name, enum rg_dtype dtype, int rank, const int64_t *dims);
/* Type, dims and name of a TensorProto, without data. */
struct wire wire_tensor(const char *name, enum rg_dtype dtype, int rank, const int64_t *dims);
/* Adds external data; NULL leaves an entry out. */
void wire_external(struct wire *tensor, const char *location, const char *offset, const char *length);
/* Frees graph. opset < 0: no opset_import. */
struct wire wire_model(int64_t ir, int64_t opset, struct wire *graph);
/* A valid model that uses all that the reader knows: initialisers, attributes of
 * every type, a subgraph, open dimensions. */
struct wire wire_small_model(void);

#endif
