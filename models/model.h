/*
 * Opens a model by what a person types: a path to an ONNX file, or
 * "builtin:NAME". The graph comes back finished (graph.h), not yet bound.
 */
#ifndef RG_MODELS_MODEL_H
#define RG_MODELS_MODEL_H

#include "base/error.h"
#include "graph/graph.h"

struct rg_model {
	struct rg_graph *graph;
	char *source;        /* the path, or "builtin:resnet50" */
	char sha256[65];     /* of the file's bytes; "" for built-in models */
	int64_t file_bytes;  /* -1 for built-in models */
	uint64_t read_ns;    /* reading and decoding */
};

/*
 * `b` (may be NULL) is only looked at, not applied: a dimension that a built-in
 * model does not have is reported before its weights are made. The hash is
 * taken after read_ns has been measured. A file that changes meanwhile is an
 * error.
 */
int rg_model_open(const char *name, const struct rg_bindings *b, struct rg_model **out,
		  struct rg_error *err);
/* The same, for analysis without running: a file whose operators cannot all run
 * opens, too (rg_graph.lenient). */
int rg_model_open_lenient(const char *name, const struct rg_bindings *b, struct rg_model **out,
			  struct rg_error *err);
/* rg_graph_bind, with the documented defaults of a built-in model for what `b`
 * (may be NULL) leaves open. */
int rg_model_bind(struct rg_model *m, const struct rg_bindings *b, struct rg_error *err);
void rg_model_free(struct rg_model *m);
/* Whether `name` names a model (an existing file or builtin:), not a run. */
int rg_model_looks_like(const char *name);

#endif
