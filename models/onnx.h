/*
 * Reads ONNX model files and TensorProto files. See the essay in onnx.c for
 * how a hostile file is kept within bounds.
 */
#ifndef RG_MODELS_ONNX_H
#define RG_MODELS_ONNX_H

#include "base/error.h"
#include "graph/graph.h"

/* Bounds beyond which a file is refused. */
struct rg_onnx_limits {
	int64_t max_file_bytes;      /* 0: 8 GiB */
	int64_t max_tensor_bytes;    /* 0: 16 GiB */
	bool lenient;                /* for analysis without running: rg_graph.lenient, and what the
	                                file declares of values in between is kept */
};

/*
 * Decodes a model file into a finished graph. External data is read from
 * files beside the model, never outside its folder. The error names the file,
 * node and field. `limits` may be NULL.
 */
int rg_onnx_load(const char *path, const struct rg_onnx_limits *limits, struct rg_graph **out,
		 struct rg_error *err);
/* The same from memory, for fuzzing; external data is refused. */
int rg_onnx_load_memory(const void *data, size_t size_bytes, const char *name,
			struct rg_graph **out, struct rg_error *err);
/*
 * Reads one TensorProto file (the test data of ONNX). t->data comes from
 * rg_alloc_aligned and is the caller's to rg_free. `name`, when not NULL, gets
 * the tensor's name (rg_free).
 */
int rg_onnx_load_tensor(const char *path, struct rg_tensor *t, char **name, struct rg_error *err);
/* The same from memory; external data is refused. */
int rg_onnx_load_tensor_memory(const void *data, size_t size_bytes, struct rg_tensor *t, struct rg_error *err);

#endif
