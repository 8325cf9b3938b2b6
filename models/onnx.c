/*
 * The ONNX reader: ModelProto, and how a hostile file is kept within bounds.
 *
 * The wire format is decoded by nanopb, from code that is generated at build
 * time out of the onnx.proto that the system installs. Why nanopb and not
 * protobuf-c: protobuf-c unpacks a whole file into objects before anybody can
 * look at it. 10,000 nested subgraphs end it in a crash, 10 MB of empty nodes
 * take 740 MB, and every weight is copied twice. With nanopb each field reaches
 * a callback of ours as it is met: it allocates nothing, it recurses only where
 * our callbacks do, and a weight is read from the file straight into the memory
 * that kernels use.
 *
 * What a file may claim, and what holds it:
 *
 *   nesting      only attribute -> subgraph recurses, at most
 *                RG_MAX_SUBGRAPH_DEPTH deep, ONNX_MAX_SUBGRAPHS in all
 *   sizes        a tensor is decoded twice: the first pass counts the elements
 *                that are really there, the second writes. Memory is taken only
 *                after type, shape and count agree, so at most 8 bytes a byte of
 *                the file (an int64 may be a varint of one byte)
 *   counts       values and subgraphs are held against the size of the file,
 *                attributes and inputs against fixed limits; a node without
 *                op_type, or without inputs and outputs, is an error at once. A
 *                file takes at most some tens of bytes of memory a byte
 *   offsets      external data: see onnx-external.c
 *   functions    their bodies are read when a call is met and inlined with a
 *                budget for nodes, subgraphs and bytes (src/graph/inline.h)
 *   names        bounded, UTF-8, no control characters: see onnx-stream.c
 *   changes      the file is read with pread, never mapped: if somebody cuts a
 *                mapped file short, the next access is SIGBUS; here it is an
 *                error. Peak memory is the weights once, not twice
 *   graph        cycles, duplicate names and missing producers are
 *                rg_graph_finish's to find
 *
 * The weights are copied rather than used in place because kernels want 64-byte
 * alignment, and raw_data lies wherever the bytes before it end.
 */
#include "models/onnx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

#define IR_VERSION_NEWEST 14
#define MAX_FILE_BYTES ((int64_t)8 << 30)

/* ---- files that are something else ---- */

static const struct {
	const char *magic;
	size_t len, at;
	const char *what, *hint;
} kinds[] = {
	{ "\x89PNG", 4, 0, "a PNG image", NULL },
	{ "\xff\xd8\xff", 3, 0, "a JPEG image", NULL },
	{ "GIF8", 4, 0, "a GIF image", NULL },
	{ "%PDF", 4, 0, "a PDF document", NULL },
	{ "PK\x03\x04", 4, 0, "a ZIP archive (a PyTorch checkpoint?)", "unpack it, or export it with torch.onnx.export" },
	{ "\x1f\x8b", 2, 0, "a gzip archive", "unpack it first:  gunzip" },
	{ "\xfd" "7zXZ", 5, 0, "an xz archive", "unpack it first:  unxz" },
	{ "ustar", 5, 257, "a tar archive", "unpack it first:  tar -xf" },
	{ "\x89HDF", 4, 0, "an HDF5 file (a Keras model?)", "convert it with tf2onnx" },
	{ "TFL3", 4, 4, "a TensorFlow Lite model", "convert it with tf2onnx" },
	{ "GGUF", 4, 0, "a GGUF model", NULL },
	{ "ORTM", 4, 4, "an ONNX Runtime (.ort) model", "use the .onnx file that it was made from" },
	{ "\x93NUMPY", 6, 0, "a NumPy array", NULL },
	{ "\x7f" "ELF", 4, 0, "an ELF program", NULL },
	{ "SQLite format 3", 15, 0, "an SQLite database", NULL },
	{ "version https://git-lfs", 23, 0, "a Git LFS pointer, not the file itself", "fetch it:  git lfs pull" },
	{ "<!DOCTYPE", 9, 0, "a web page", "the download failed: fetch the file itself" },
	{ "<html", 5, 0, "a web page", "the download failed: fetch the file itself" },
};

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') || p[i] == 0x7f)
			return false;
	return n > 0;
}

/*
 * Replaces the decoder's complaint by what the file is, if its first bytes tell.
 * Asked only once decoding has failed, so that no model is refused for how it
 * begins.
 */
static void name_other_format(struct onnx_reader *r)
{
	struct rg_error unused = RG_ERROR_INIT, *err = r->err;
	uint8_t head[512];
	size_t n = r->src.size < sizeof(head) ? (size_t)r->src.size : sizeof(head);

	r->err = &unused;
	if (onnx_source_read(r, 0, head, n))
		n = 0;
	r->err = err;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].at + kinds[i].len > n ||
		    memcmp(head + kinds[i].at, kinds[i].magic, kinds[i].len) != 0)
			continue;
		rg_error_set(err, -EINVAL, "this is %s, not an ONNX model", kinds[i].what);
		rg_error_hint(err, "%s", kinds[i].hint ? kinds[i].hint : "give the path of an .onnx file");
		return;
	}
	if (is_text(head, n)) {
		rg_error_set(err, -EINVAL, "this is text, not an ONNX model");
		rg_error_hint(err, "give the path of a binary .onnx file");
	}
}

/* ---- the model ---- */

struct model_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;
	bool has_graph;
	int n_opsets;
};

static bool graph_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct model_ctx *c = *arg;

	if (c->has_graph) {
		rg_error_set(c->r->err, -EINVAL, "the file holds two graphs");
		return false;
	}
	c->has_graph = true;
	return onnx_read_graph(c->r, stream, c->g) == 0;
}

static bool opset_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct model_ctx *c = *arg;

	if (++c->n_opsets > 1024) {
		rg_error_set(c->r->err, -E2BIG, "there are more than 1024 opset_imports");
		return false;
	}
	return onnx_read_opset(c->r, stream, c->g);
}

static int check_versions(struct model_ctx *c, const onnx_ModelProto *m)
{
	struct rg_error *err = c->r->err;

	if (!c->has_graph)
		return rg_error_set(err, -EINVAL, "the file holds no graph: it is not an ONNX model");
	if (!m->has_ir_version || m->ir_version < 1)
		return rg_error_set(err, -EINVAL, "ir_version is missing: this is not an ONNX model");
	if (m->ir_version > IR_VERSION_NEWEST) {
		rg_error_set(err, RG_ENOTSUP_MODEL,
			     "ir_version %" PRId64 " is newer than %d, the newest known", m->ir_version,
			     IR_VERSION_NEWEST);
		return rg_error_hint(err, "export the model with an older IR version");
	}
	c->g->ir_version = m->ir_version;
	if (c->n_opsets > 0)
		return 0;
	/* Before IR version 3 there was only the first operator set. */
	if (m->ir_version < 3)
		return rg_graph_set_opset(c->g, "", 1, err);
	rg_error_set(err, -EINVAL, "opset_import is missing");
	return rg_error_hint(err, "the file is damaged: export the model again");
}

static int set_producer(struct onnx_reader *r, struct rg_graph *g, const char *name, const char *version)
{
	if (!name || !name[0])
		return 0;
	g->producer = rg_arena_printf(g->arena, "%s%s%s", name, version && version[0] ? " " : "",
				      version ? version : "");
	if (g->producer)
		return 0;
	g->producer = "";
	return rg_error_nomem(r->err, strlen(name));
}

static int read_model(struct onnx_reader *r, struct rg_graph *g)
{
	struct model_ctx c = { .r = r, .g = g };
	struct onnx_text producer = { r, "producer_name", NULL }, version = { r, "producer_version", NULL };
	onnx_ModelProto m = onnx_ModelProto_init_zero;
	pb_istream_t stream = onnx_stream(r, 0, r->src.size);
	int rc;

	/* The smallest node that makes a value takes 14 bytes, the smallest branch of
	 * an If about 60. */
	r->max_values = 1024 + r->src.size / 8;
	r->max_subgraphs = 256 + r->src.size / 64;
	if (r->max_subgraphs > ONNX_MAX_SUBGRAPHS)
		r->max_subgraphs = ONNX_MAX_SUBGRAPHS;
	onnx_set_cb(&m.graph, graph_cb, &c);
	onnx_set_cb(&m.opset_import, opset_cb, &c);
	onnx_set_cb(&m.functions, onnx_skip_cb, &c);
	onnx_set_cb(&m.producer_name, onnx_text_cb, &producer);
	onnx_set_cb(&m.producer_version, onnx_text_cb, &version);
	/* Which functions there are must be known before nodes are read. */
	rc = onnx_find_functions(r);
	if (!rc && !pb_decode(&stream, onnx_ModelProto_fields, &m))
		rc = onnx_decode_failed(r, &stream, "the model");
	if (!rc)
		rc = check_versions(&c, &m);
	if (!rc)
		rc = set_producer(r, g, producer.text, version.text);
	rg_free(producer.text);
	rg_free(version.text);
	if (rc && rc != -ENOMEM && rc != RG_ENOTSUP_MODEL)
		name_other_format(r);
	if (!rc && r->n_functions)
		rc = onnx_inline_functions(r, g);
	if (!rc)
		rc = rg_graph_finish(g, r->err);
	if (!rc && g->n_outputs == 0) {
		rg_error_set(r->err, -EINVAL, "the model has no outputs: there is nothing that it computes");
		rc = rg_error_hint(r->err, "export the model again, with its outputs");
	}
	return rc;
}

static int load(struct onnx_reader *r, struct rg_graph **out)
{
	struct rg_graph *g = rg_graph_new(NULL);
	int rc;

	if (!g)
		return rg_error_nomem(r->err, sizeof(*g));
	g->lenient = r->lenient;
	rc = read_model(r, g);
	if (rc)
		rg_graph_free(g);
	else
		*out = g;
	return rc;
}

int rg_onnx_load(const char *path, const struct rg_onnx_limits *limits, struct rg_graph **out,
		 struct rg_error *err)
{
	struct onnx_reader r;
	int rc;

	*out = NULL;
	rc = onnx_reader_open(
	    &r, path, limits && limits->max_file_bytes ? limits->max_file_bytes : MAX_FILE_BYTES, err);
	if (!rc) {
		if (limits && limits->max_tensor_bytes)
			r.max_tensor_bytes = limits->max_tensor_bytes;
		r.lenient = limits && limits->lenient;
		rc = load(&r, out);
		onnx_reader_close(&r);
	}
	return rc ? rg_error_at(err, "%s", path) : 0;
}

int rg_onnx_load_memory(const void *data, size_t size_bytes, const char *name, struct rg_graph **out,
			struct rg_error *err)
{
	struct onnx_reader r;
	int rc;

	*out = NULL;
	rc = onnx_reader_memory(&r, data, size_bytes, err);
	if (!rc)
		rc = load(&r, out);
	onnx_reader_close(&r);
	return rc ? rg_error_at(err, "%s", name) : 0;
}

int rg_onnx_load_tensor(const char *path, struct rg_tensor *t, char **name, struct rg_error *err)
{
	struct onnx_tensor found = { 0 };
	struct onnx_reader r;
	pb_istream_t stream;
	int rc;

	memset(t, 0, sizeof(*t));
	if (name)
		*name = NULL;
	rc = onnx_reader_open(&r, path, MAX_FILE_BYTES, err);
	if (!rc) {
		stream = onnx_stream(&r, 0, r.src.size);
		rc = onnx_read_tensor(&r, &stream, &found);
		onnx_reader_close(&r);
	}
	if (rc) {
		rg_free(found.name);
		return rg_error_at(err, "%s", path);
	}
	*t = found.t;
	if (name)
		*name = found.name;
	else
		rg_free(found.name);
	return 0;
}

int rg_onnx_load_tensor_memory(const void *data, size_t size_bytes, struct rg_tensor *t, struct rg_error *err)
{
	struct onnx_tensor found = { 0 };
	struct onnx_reader r;
	pb_istream_t stream;
	int rc = onnx_reader_memory(&r, data, size_bytes, err);

	memset(t, 0, sizeof(*t));
	if (!rc) {
		stream = onnx_stream(&r, 0, r.src.size);
		rc = onnx_read_tensor(&r, &stream, &found);
	}
	onnx_reader_close(&r);
	rg_free(found.name);
	if (!rc)
		*t = found.t;
	return rc;
}
