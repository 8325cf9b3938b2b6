/*
 * Local functions: FunctionProto. They stand behind the graph in most files, but
 * who reads nodes must know them, so the first look at a file lists where they
 * lie. A body is read when the first call of it is met, so that a function which
 * nobody calls may hold what it likes.
 *
 * onnx.proto of Debian's libonnx-dev is that of IR version 8: later fields are
 * found by their numbers (onnx_each_field).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "models/onnx-internal.h"

enum { MODEL_FUNCTIONS = 25, FUNCTION_ATTRIBUTE_PROTO = 11, FUNCTION_OVERLOAD = 13 };

#define MAX_FUNCTIONS 1000000
#define MAX_DEFAULTS 4096
/* What inlining may make of any file, and of a large one in proportion. */
#define INLINE_NODES 65536
#define INLINE_BYTES ((int64_t)64 << 20)

bool onnx_read_opset(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g)
{
	struct onnx_text domain = { r, "opset_import domain", NULL };
	onnx_OperatorSetIdProto m = onnx_OperatorSetIdProto_init_zero;

	onnx_set_cb(&m.domain, onnx_text_cb, &domain);
	if (!pb_decode(stream, onnx_OperatorSetIdProto_fields, &m))
		onnx_decode_failed(r, stream, "opset_import");
	else if (rg_graph_set_opset(g, domain.text ? domain.text : "", m.version, r->err))
		rg_error_at(r->err, "opset_import");
	rg_free(domain.text);
	return r->err->code == 0;
}

/* ---- the list ---- */

static int compare(const char *name, const char *domain, const char *overload, const struct rg_function *f)
{
	int c = strcmp(name, f->name);

	if (!c)
		c = strcmp(domain, f->domain);
	return c ? c : strcmp(overload, f->overload);
}

static int compare_functions(const void *a, const void *b)
{
	const struct onnx_function *x = a, *y = b;

	return compare(x->f.name, x->f.domain, x->f.overload, &y->f);
}

static bool overload_cb(pb_istream_t *stream, void *arg)
{
	return onnx_text_cb(stream, NULL, &arg);
}

/* Reads what identifies a function; *f holds texts to free also on failure. */
static int read_identity(struct onnx_reader *r, pb_istream_t *stream, struct onnx_function *f)
{
	struct onnx_text name = { r, "function name", NULL }, domain = { r, "function domain", NULL },
			 overload = { r, "function overload", NULL };
	onnx_FunctionProto m = onnx_FunctionProto_init_zero;
	int rc = 0;

	onnx_set_cb(&m.name, onnx_text_cb, &name);
	onnx_set_cb(&m.domain, onnx_text_cb, &domain);
	onnx_set_cb(&m.input, onnx_skip_cb, NULL);
	onnx_set_cb(&m.output, onnx_skip_cb, NULL);
	onnx_set_cb(&m.node, onnx_skip_cb, NULL);
	if (!pb_decode(stream, onnx_FunctionProto_fields, &m) ||
	    !onnx_each_field(r, f->at, f->bytes, FUNCTION_OVERLOAD, overload_cb, &overload))
		rc = onnx_decode_failed(r, stream, "a function");
	else if (!name.text || !name.text[0])
		rc = rg_error_set(r->err, -EINVAL, "a function has no name");
	if (!rc && (!domain.text || strcmp(domain.text, "ai.onnx") == 0)) {
		rg_free(domain.text);
		domain.text = rg_strdup("");
	}
	if (!rc && !overload.text)
		overload.text = rg_strdup("");
	if (!rc && (!domain.text || !overload.text))
		rc = rg_error_nomem(r->err, 1);
	f->f.name = name.text;
	f->f.domain = domain.text;
	f->f.overload = overload.text;
	return rc;
}

static bool list_cb(pb_istream_t *stream, void *arg)
{
	struct onnx_reader *r = arg;
	struct onnx_function *f;

	if (r->n_functions >= MAX_FUNCTIONS) {
		rg_error_set(r->err, RG_ENOTSUP_MODEL, "there are more than %d functions", MAX_FUNCTIONS);
		return false;
	}
	f = rg_grow(r->functions, &r->functions_cap, r->n_functions + 1, sizeof(*f));
	if (!f) {
		rg_error_nomem(r->err, (r->n_functions + 1) * sizeof(*f));
		return false;
	}
	r->functions = f;
	f += r->n_functions++;
	*f = (struct onnx_function){ .at = r->src.pos, .bytes = stream->bytes_left };
	if (read_identity(r, stream, f))
		return false;
	r->has_overloads = r->has_overloads || f->f.overload[0];
	return true;
}

int onnx_find_functions(struct onnx_reader *r)
{
	/* A damaged file is the model decoder's to explain: only what was said counts. */
	onnx_each_field(r, 0, r->src.size, MODEL_FUNCTIONS, list_cb, r);
	if (r->err->code)
		return r->err->code;
	if (r->n_functions)
		qsort(r->functions, r->n_functions, sizeof(*r->functions), compare_functions);
	for (size_t i = 1; i < r->n_functions; i++) {
		const struct rg_function *f = &r->functions[i].f;

		if (compare_functions(&r->functions[i - 1], &r->functions[i]) == 0)
			return rg_error_set(r->err, -EINVAL, "function %s%s%s is defined twice", f->domain,
					    f->domain[0] ? "." : "", f->name);
	}
	return 0;
}

void onnx_free_functions(struct onnx_reader *r)
{
	for (size_t i = 0; i < r->n_functions; i++) {
		struct rg_function *f = &r->functions[i].f;

		for (int a = 0; a < f->n_defaults; a++)
			onnx_attr_free(&f->defaults[a], true);
		rg_free(f->defaults);
		rg_graph_free(f->body);
		rg_free((void *)f->domain);
		rg_free((void *)f->name);
		rg_free((void *)f->overload);
	}
	rg_free(r->functions);
	r->functions = NULL;
	r->n_functions = 0;
}

/* ---- a body ---- */

struct body_ctx {
	struct onnx_reader *r;
	struct onnx_function *f;
	int n_opsets;
};

static bool io_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct body_ctx *c = *arg;
	bool input = field->tag == onnx_FunctionProto_input_tag;
	struct onnx_text t = { c->r, input ? "input" : "output", NULL };
	struct rg_graph *g = c->f->f.body;
	void *targ = &t;
	int v;

	if (!onnx_text_cb(stream, field, &targ))
		return false;
	v = onnx_value_index(c->r, g, t.text);
	rg_free(t.text);
	if (v < 0)
		return false;
	return (input ? rg_graph_add_input : rg_graph_add_output)(g, v, c->r->err) == 0;
}

static bool node_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct body_ctx *c = *arg;

	if (!onnx_stream_is_file(stream)) {
		rg_error_set(c->r->err, -EBADMSG, "damaged: a node has the wrong wire type");
		return false;
	}
	return onnx_read_node(c->r, stream, c->f->f.body) == 0;
}

static bool opset_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct body_ctx *c = *arg;

	if (++c->n_opsets > 1024) {
		rg_error_set(c->r->err, -E2BIG, "there are more than 1024 opset_imports");
		return false;
	}
	return onnx_read_opset(c->r, stream, c->f->f.body);
}

static bool default_cb(pb_istream_t *stream, void *arg)
{
	struct body_ctx *c = arg;
	struct rg_function *f = &c->f->f;
	struct rg_attr *a;

	if (f->n_defaults >= MAX_DEFAULTS) {
		rg_error_set(c->r->err, -E2BIG, "the function has more than %d attributes", MAX_DEFAULTS);
		return false;
	}
	a = rg_grow(f->defaults, &c->f->n_defaults_cap, (size_t)f->n_defaults + 1, sizeof(*a));
	if (!a) {
		rg_error_nomem(c->r->err, sizeof(*a));
		return false;
	}
	f->defaults = a;
	a += f->n_defaults++;
	memset(a, 0, sizeof(*a));
	return onnx_read_attr(c->r, stream, f->body, a) == 0;
}

/* What rg_graph_finish checks of a graph, and a body that is never finished would
 * get past. */
static int check_body(struct onnx_reader *r, const struct rg_graph *g)
{
	int64_t opset = 0;

	for (int i = 0; i < g->n_opsets; i++)
		if (!g->opsets[i].domain[0])
			opset = g->opsets[i].version;
	if (opset > RG_ONNX_OPSET_NEWEST) {
		rg_error_set(r->err, RG_ENOTSUP_MODEL, "the function is of opset %" PRId64 ", the newest known is %d",
			     opset, RG_ONNX_OPSET_NEWEST);
		return rg_error_hint(r->err, "export the model with opset %d or older", RG_ONNX_OPSET_NEWEST);
	}
	for (int i = 0; i < g->n_nodes; i++) {
		for (int o = 0; o < g->nodes[i].n_out; o++) {
			int v = g->nodes[i].out[o];

			if (v >= 0 && g->values[v].is_input)
				return rg_error_set(r->err, -EINVAL, "value '%s' is an input of the function and also "
						    "an output of node '%s'", g->values[v].name, g->nodes[i].name);
		}
	}
	return 0;
}

static int read_body(struct onnx_reader *r, struct onnx_function *f)
{
	struct body_ctx c = { .r = r, .f = f };
	onnx_FunctionProto m = onnx_FunctionProto_init_zero;
	uint64_t back = r->src.pos;
	pb_istream_t stream;
	int rc = 0;

	/* A body is a graph like a branch of an If, and takes as much. */
	if (++r->n_subgraphs > r->max_subgraphs)
		return rg_error_set(r->err, RG_ENOTSUP_MODEL, "more than %llu functions and subgraphs in a file of "
				    "%llu bytes", (unsigned long long)r->max_subgraphs,
				    (unsigned long long)r->src.size);
	f->f.body = rg_graph_new(NULL);
	if (!f->f.body)
		return rg_error_nomem(r->err, sizeof(struct rg_graph));
	onnx_set_cb(&m.input, io_cb, &c);
	onnx_set_cb(&m.output, io_cb, &c);
	onnx_set_cb(&m.node, node_cb, &c);
	onnx_set_cb(&m.opset_import, opset_cb, &c);
	r->in_function = true;
	stream = onnx_stream(r, f->at, f->bytes);
	if (!pb_decode(&stream, onnx_FunctionProto_fields, &m))
		rc = onnx_decode_failed(r, &stream, "a function");
	r->in_function = false;
	if (!rc && !onnx_each_field(r, f->at, f->bytes, FUNCTION_ATTRIBUTE_PROTO, default_cb, &c))
		rc = onnx_decode_failed(r, &stream, "a function");
	if (!rc)
		rc = check_body(r, f->f.body);
	r->src.pos = back;
	return rc;
}

/* ---- calls ---- */

static int find(void *ctx, const char *domain, const char *name, const char *overload,
		struct rg_function **out, struct rg_error *err)
{
	struct onnx_reader *r = ctx;
	const struct onnx_function key = { .f = { .name = name, .domain = domain, .overload = overload } };
	struct onnx_function *f = bsearch(&key, r->functions, r->n_functions, sizeof(key), compare_functions);

	*out = NULL;
	if (!f)
		return 0;
	if (!f->read && read_body(r, f))
		return rg_error_at(err, "function %s%s%s", domain, domain[0] ? "." : "", name);
	f->read = true;
	*out = &f->f;
	return 0;
}

int onnx_inline_functions(struct onnx_reader *r, struct rg_graph *g)
{
	struct rg_clone_limits limits = {
		.nodes = INLINE_NODES + (int64_t)(r->src.size / 16),
		.graphs = (int64_t)(r->max_subgraphs - r->n_subgraphs),
		.bytes = INLINE_BYTES + 4 * (int64_t)r->src.size,
	};

	if (limits.nodes > RG_MAX_NODES)
		limits.nodes = RG_MAX_NODES;
	return rg_graph_inline_functions(g, find, r, &limits, r->err);
}
