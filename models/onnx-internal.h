/*
 * What the files of the ONNX reader share. Not for others: see onnx.h.
 */
#ifndef RG_MODELS_ONNX_INTERNAL_H
#define RG_MODELS_ONNX_INTERNAL_H

#include <pb_decode.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "models/onnx.h"
#include "onnx.pb.h"

/* Longer names and strings are nobody's; beyond it the file is refused. */
#define ONNX_MAX_NAME_BYTES 65535
#define ONNX_MAX_SUBGRAPHS 4096

/*
 * Where the bytes come from: memory, or a file through a window of 64 KiB.
 * `pos` is the position of the decoder in it.
 */
struct onnx_source {
	const uint8_t *mem; /* NULL: a file */
	int fd;             /* -1: memory */
	uint64_t size, pos;
	uint8_t *window;    /* the part of the file that was read last */
	uint64_t window_at;
	size_t window_len;
};

/* A local function: where it lies in the file, and its body once a call was met. */
struct onnx_function {
	struct rg_function f; /* domain, name, overload: rg_free */
	uint64_t at, bytes;
	size_t n_defaults_cap; /* of f.defaults */
	bool read;
};

/* A file of external data, and how many bytes tensors took from it so far. */
struct onnx_data_file {
	uint64_t dev, ino, size, claimed;
};

struct onnx_external {
	char *location; /* of the file used last, which stays open; NULL: none */
	int fd;
	size_t current; /* its index in files[] */
	struct onnx_data_file *files;
	size_t n_files, files_cap;
};

struct onnx_reader {
	struct onnx_source src;
	struct rg_error *err;
	int dir_fd;               /* the model's folder; -1: no external data */
	int64_t max_tensor_bytes;
	bool lenient;             /* keeps value_info */
	uint64_t max_values;      /* what a file of this size can honestly name */
	uint64_t max_subgraphs;   /* each takes an arena block of 64 KiB */
	uint64_t n_values, n_nodes, n_subgraphs;
	struct onnx_external external;
	struct onnx_function *functions; /* sorted by name, domain, overload */
	size_t n_functions, functions_cap;
	bool in_function;         /* attributes may refer to those of a function */
	bool has_overloads;       /* some function has one: nodes are looked through for theirs */
};

/* ---- onnx-stream.c: bytes and text ---- */
int onnx_reader_open(struct onnx_reader *r, const char *path, int64_t max_file_bytes,
		     struct rg_error *err);
int onnx_reader_memory(struct onnx_reader *r, const void *data, size_t size_bytes,
		       struct rg_error *err);
void onnx_reader_close(struct onnx_reader *r);
/* Reads bytes at a position without moving the decoder. */
int onnx_source_read(struct onnx_reader *r, uint64_t at, void *buf, uint64_t count);
/* A nanopb stream over [at, at + count), which moves the decoder to `at`. */
pb_istream_t onnx_stream(struct onnx_reader *r, uint64_t at, uint64_t count);
/* Whether a callback was handed bytes of the file. A field that carries the
 * wrong wire type reaches a callback as a small buffer of nanopb's instead. */
bool onnx_stream_is_file(const pb_istream_t *stream);
/* Passes over what is left of the stream. */
bool onnx_stream_skip(pb_istream_t *stream);
/* Passes over a field that nothing here reads: a callback. */
bool onnx_skip_cb(pb_istream_t *stream, const pb_field_t *field, void **arg);
/*
 * Calls `found` for each field of that number in the message at [at, at + bytes),
 * for fields newer than the onnx.proto that the reader was generated from. False
 * when `found` says so or the message is damaged; the decoder stays where it is.
 */
bool onnx_each_field(struct onnx_reader *r, uint64_t at, uint64_t bytes, uint32_t number,
		     bool (*found)(pb_istream_t *stream, void *arg), void *arg);
/* Fills the error for a failed pb_decode unless a callback already did;
 * returns its code. */
int onnx_decode_failed(struct onnx_reader *r, const pb_istream_t *stream, const char *message);

/* A text field: arg of onnx_text_cb. `text` stays NULL where it is absent. */
struct onnx_text {
	struct onnx_reader *r;
	const char *field; /* for errors */
	char *text;        /* NUL-terminated, rg_free */
};
/* Checked to be short, UTF-8 and without control characters. */
bool onnx_text_cb(pb_istream_t *stream, const pb_field_t *field, void **arg);
/* The whole stream as bytes with a NUL behind; NULL with the error filled. */
char *onnx_bytes(struct onnx_reader *r, pb_istream_t *stream, const char *field, uint64_t limit);
void onnx_set_cb(pb_callback_t *cb, bool (*decode)(pb_istream_t *, const pb_field_t *, void **), void *arg);

/* ---- onnx-tensor.c ---- */
struct onnx_tensor {
	char *name;         /* rg_free; NULL: absent */
	struct rg_tensor t; /* data: rg_free */
};
/* Reads the TensorProto that the stream holds. */
int onnx_read_tensor(struct onnx_reader *r, pb_istream_t *stream, struct onnx_tensor *out);

/* ---- onnx-external.c ---- */
/* Opens `location` below dir_fd and checks that [offset, offset + length) lies in
 * it and holds exactly `bytes`; length -1: up to the end of the file. */
int onnx_external_check(struct onnx_reader *r, const char *location, int64_t offset, int64_t length,
			uint64_t bytes);
/* Reads from the file that was checked last. */
int onnx_external_read(struct onnx_reader *r, int64_t offset, void *dst, uint64_t bytes);

/* ---- onnx-attr.c ---- */
/* Decodes one attribute into *a, which the caller frees also on failure. `g` is
 * the graph of its node. */
int onnx_read_attr(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g, struct rg_attr *a);
/* Frees what an attribute holds; `data` also what a node would take over. */
void onnx_attr_free(struct rg_attr *a, bool data);

/* ---- onnx-function.c ---- */
/* Lists the functions of the model file; their bodies are read when called. */
int onnx_find_functions(struct onnx_reader *r);
/* Replaces calls in the graph, which is not finished yet. */
int onnx_inline_functions(struct onnx_reader *r, struct rg_graph *g);
void onnx_free_functions(struct onnx_reader *r);
/* Reads an OperatorSetIdProto into the graph. */
bool onnx_read_opset(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g);

/* ---- onnx-graph.c ---- */
/* Index of the named value, made when it does not exist; negative: an error. */
int onnx_value_index(struct onnx_reader *r, struct rg_graph *g, const char *name);
/* Reads a node and appends it. */
int onnx_read_node(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g);
int onnx_read_graph(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g);

#endif
