/*
 * GraphProto, NodeProto, AttributeProto and ValueInfoProto into the graph.
 *
 * Recursion happens in one place only, attribute -> subgraph, and is counted
 * there. Everything else is a loop inside nanopb.
 */
#include <string.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

#define MAX_ATTRS 256 /* of one node; the operator with the most has about 15 */

struct ints {
	int *v;
	size_t n, cap;
};

static int push_int(struct onnx_reader *r, struct ints *list, int v)
{
	int *p = rg_grow(list->v, &list->cap, list->n + 1, sizeof(*p));

	if (!p)
		return rg_error_nomem(r->err, (list->n + 1) * sizeof(*p));
	list->v = p;
	p[list->n++] = v;
	return 0;
}

/* Index of the named value. The number of distinct names is held against the
 * size of the file, since a value takes far more memory than a name of two
 * bytes does in a file. */
static int value_index(struct onnx_reader *r, struct rg_graph *g, const char *name)
{
	int before = g->n_values;
	int v = rg_graph_value(g, name, r->err);

	if (v >= 0 && g->n_values > before && ++r->n_values > r->max_values)
		return rg_error_set(r->err, -E2BIG, "more than %llu values in a file of %llu bytes",
				    (unsigned long long)r->max_values, (unsigned long long)r->src.size);
	return v;
}

/* ---- attributes ---- */

struct attr_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;         /* the graph of the node */
	struct onnx_text name, ref;
	struct rg_attr *a;
	size_t floats_cap, ints_cap, strings_cap;
	bool seen_s, seen_t, seen_floats, seen_ints, seen_strings;
	const char *unsupported;    /* what kind of value it holds that we cannot take */
};

/* Frees what an attribute holds; `data` also what a node would take over. */
static void attr_free(struct rg_attr *a, bool data)
{
	rg_free((void *)a->name);
	rg_free((void *)a->s);
	rg_free((void *)a->floats);
	rg_free((void *)a->ints);
	if (a->strings)
		for (int i = 0; i < a->count; i++)
			rg_free((void *)a->strings[i]);
	rg_free((void *)a->strings);
	if (data) {
		rg_free(a->t.data);
		rg_graph_free(a->g);
	}
	memset(a, 0, sizeof(*a));
}

static int list_room(struct attr_ctx *c, const void *list, size_t *cap, size_t more, size_t size, void **out)
{
	size_t need;

	if (__builtin_add_overflow((size_t)c->a->count, more, &need) || need > INT32_MAX)
		return rg_error_set(c->r->err, -E2BIG, "the list has more than %d entries", INT32_MAX);
	*out = rg_grow((void *)list, cap, need, size);
	return *out ? 0 : rg_error_nomem(c->r->err, need * size);
}

static bool one_list(struct attr_ctx *c, bool *seen)
{
	if (!*seen && c->seen_floats + c->seen_ints + c->seen_strings > 0) {
		rg_error_set(c->r->err, -EINVAL, "the attribute holds lists of two types");
		return false;
	}
	*seen = true;
	return true;
}

static bool floats_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	size_t n = stream->bytes_left / 4;
	void *p;

	if (!one_list(c, &c->seen_floats))
		return false;
	if (n == 0)
		return pb_read(stream, NULL, stream->bytes_left);
	if (list_room(c, c->a->floats, &c->floats_cap, n, 4, &p))
		return false;
	c->a->floats = p;
	if (!pb_read(stream, (pb_byte_t *)p + (size_t)c->a->count * 4, n * 4))
		return false;
	c->a->count += (int)n;
	return true;
}

static bool ints_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	uint64_t v;
	void *p;

	if (!one_list(c, &c->seen_ints))
		return false;
	while (stream->bytes_left) {
		if (!pb_decode_varint(stream, &v) || list_room(c, c->a->ints, &c->ints_cap, 1, 8, &p))
			return false;
		c->a->ints = p;
		memcpy((char *)p + (size_t)c->a->count++ * 8, &v, 8);
	}
	return true;
}

static bool strings_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	uint64_t len = stream->bytes_left;
	void *p;
	char *s;

	if (!one_list(c, &c->seen_strings) ||
	    list_room(c, c->a->strings, &c->strings_cap, 1, sizeof(char *), &p))
		return false;
	c->a->strings = p;
	s = onnx_bytes(c->r, stream, "strings", UINT32_MAX);
	if (!s)
		return false;
	((char **)p)[c->a->count++] = s;
	if (strlen(s) != len) {
		rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "a string of the list holds a NUL byte");
		return false;
	}
	return true;
}

static bool string_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	size_t len = stream->bytes_left;
	char *s = onnx_bytes(c->r, stream, "s", UINT32_MAX);

	if (!s)
		return false;
	rg_free((void *)c->a->s);
	c->a->s = s;
	c->a->s_len = len;
	c->seen_s = true;
	return true;
}

static bool tensor_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	struct onnx_tensor t;
	int rc;

	if (c->seen_t) {
		rg_error_set(c->r->err, -EINVAL, "the attribute holds two tensors");
		return false;
	}
	rc = onnx_read_tensor(c->r, stream, &t);
	rg_free(t.name);
	c->a->t = t.t;
	c->seen_t = true;
	return rc == 0;
}

static bool graph_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;
	struct onnx_reader *r = c->r;

	if (c->a->g) {
		rg_error_set(r->err, -EINVAL, "the attribute holds two graphs");
		return false;
	}
	if (c->g->depth + 1 > RG_MAX_SUBGRAPH_DEPTH) {
		rg_error_set(r->err, RG_ENOTSUP_MODEL, "subgraphs are nested deeper than %d",
			     RG_MAX_SUBGRAPH_DEPTH);
		return false;
	}
	if (++r->n_subgraphs > r->max_subgraphs) {
		rg_error_set(r->err, RG_ENOTSUP_MODEL, "more than %llu subgraphs in a file of %llu bytes",
			     (unsigned long long)r->max_subgraphs, (unsigned long long)r->src.size);
		return false;
	}
	c->a->g = rg_graph_new(c->g);
	if (!c->a->g) {
		rg_error_nomem(r->err, sizeof(struct rg_graph));
		return false;
	}
	return onnx_read_graph(r, stream, c->a->g) == 0;
}

static bool unsupported_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct attr_ctx *c = *arg;

	switch (field->tag) {
	case onnx_AttributeProto_tensors_tag: c->unsupported = "a list of tensors"; break;
	case onnx_AttributeProto_graphs_tag: c->unsupported = "a list of graphs"; break;
	case onnx_AttributeProto_sparse_tensor_tag:
	case onnx_AttributeProto_sparse_tensors_tag: c->unsupported = "a sparse tensor"; break;
	default: c->unsupported = "a type"; break;
	}
	return onnx_stream_skip(stream);
}

/* The type that the file states, or the one that the field which is there tells
 * (files of IR versions below 2 state none). */
static int attr_type(struct attr_ctx *c, const onnx_AttributeProto *m)
{
	struct rg_attr *a = c->a;

	if (m->has_type && m->type != onnx_AttributeProto_AttributeType_UNDEFINED)
		return (int)m->type;
	if (m->has_f) return RG_ATTR_FLOAT;
	if (m->has_i) return RG_ATTR_INT;
	if (c->seen_s) return RG_ATTR_STRING;
	if (c->seen_t) return RG_ATTR_TENSOR;
	if (a->g) return RG_ATTR_GRAPH;
	if (c->seen_floats) return RG_ATTR_FLOATS;
	if (c->seen_ints) return RG_ATTR_INTS;
	if (c->seen_strings) return RG_ATTR_STRINGS;
	return 0;
}

static int check_attr(struct attr_ctx *c, const onnx_AttributeProto *m)
{
	struct rg_error *err = c->r->err;
	struct rg_attr *a = c->a;
	int type = attr_type(c, m);
	bool list = c->seen_floats || c->seen_ints || c->seen_strings, fits = true;

	if (!c->name.text || !c->name.text[0])
		return rg_error_set(err, -EINVAL, "an attribute has no name");
	if (c->ref.text && c->ref.text[0])
		return rg_error_set(err, -EINVAL, "ref_attr_name stands outside a function");
	if (c->unsupported)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "attributes that hold %s are not supported",
				    c->unsupported);
	switch (type) {
	case RG_ATTR_FLOAT: a->f = m->f; break;
	case RG_ATTR_INT: a->i = m->i; break;
	case RG_ATTR_STRING:
		if (!a->s)
			a->s = rg_strdup("");
		if (!a->s)
			return rg_error_nomem(err, 1);
		break;
	case RG_ATTR_TENSOR: fits = c->seen_t; break;
	case RG_ATTR_GRAPH: fits = a->g != NULL; break;
	case RG_ATTR_FLOATS: fits = c->seen_floats || !list; break;
	case RG_ATTR_INTS: fits = c->seen_ints || !list; break;
	case RG_ATTR_STRINGS: fits = c->seen_strings || !list; break;
	case 0: return rg_error_set(err, -EINVAL, "the attribute has no value");
	default: return rg_error_set(err, RG_ENOTSUP_MODEL, "attribute type %d is not supported", type);
	}
	if (!fits)
		return rg_error_set(err, -EINVAL, "the attribute does not hold what its type %d says", type);
	a->type = (enum rg_attr_type)type;
	return 0;
}

/* Decodes one attribute into *a, which the caller frees also on failure. */
static int read_attr(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g, struct rg_attr *a)
{
	struct attr_ctx c = { .r = r, .g = g, .a = a,
			      .name = { r, "attribute name", NULL }, .ref = { r, "ref_attr_name", NULL } };
	onnx_AttributeProto m = onnx_AttributeProto_init_zero;
	int rc = 0;

	onnx_set_cb(&m.name, onnx_text_cb, &c.name);
	onnx_set_cb(&m.ref_attr_name, onnx_text_cb, &c.ref);
	onnx_set_cb(&m.s, string_cb, &c);
	onnx_set_cb(&m.t, tensor_cb, &c);
	onnx_set_cb(&m.g, graph_cb, &c);
	onnx_set_cb(&m.floats, floats_cb, &c);
	onnx_set_cb(&m.ints, ints_cb, &c);
	onnx_set_cb(&m.strings, strings_cb, &c);
	onnx_set_cb(&m.tensors, unsupported_cb, &c);
	onnx_set_cb(&m.graphs, unsupported_cb, &c);
	onnx_set_cb(&m.tp, unsupported_cb, &c);
	onnx_set_cb(&m.type_protos, unsupported_cb, &c);
	onnx_set_cb(&m.sparse_tensor, unsupported_cb, &c);
	onnx_set_cb(&m.sparse_tensors, unsupported_cb, &c);
	if (!pb_decode(stream, onnx_AttributeProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "an attribute");
	if (!rc)
		rc = check_attr(&c, &m);
	if (rc && c.name.text)
		rg_error_at(r->err, "attribute '%.60s'", c.name.text);
	a->name = c.name.text;
	rg_free(c.ref.text);
	return rc;
}

/* ---- nodes ---- */

struct node_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;
	struct onnx_text name, op_type, domain;
	struct ints in, out;
	struct rg_attr *attrs;
	size_t n_attrs, attrs_cap;
};

static bool io_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct node_ctx *c = *arg;
	bool input = field->tag == onnx_NodeProto_input_tag;
	struct ints *list = input ? &c->in : &c->out;
	struct onnx_text t = { c->r, input ? "input" : "output", NULL };
	void *targ = &t;
	int v = -1;

	if (list->n >= RG_MAX_NODE_IO) {
		rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "the node has more than %d %ss", RG_MAX_NODE_IO,
			     t.field);
		return false;
	}
	if (!onnx_text_cb(stream, field, &targ))
		return false;
	if (t.text[0])
		v = value_index(c->r, c->g, t.text);
	rg_free(t.text);
	if (c->r->err->code)
		return false;
	return push_int(c->r, list, v) == 0;
}

static bool attribute_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct node_ctx *c = *arg;
	struct onnx_reader *r = c->r;
	struct rg_attr *a;

	if (!onnx_stream_is_file(stream)) {
		rg_error_set(r->err, -EBADMSG, "damaged: an attribute has the wrong wire type");
		return false;
	}
	if (c->n_attrs >= MAX_ATTRS) {
		rg_error_set(r->err, -E2BIG, "the node has more than %d attributes", MAX_ATTRS);
		return false;
	}
	a = rg_grow(c->attrs, &c->attrs_cap, c->n_attrs + 1, sizeof(*a));
	if (!a) {
		rg_error_nomem(r->err, (c->n_attrs + 1) * sizeof(*a));
		return false;
	}
	c->attrs = a;
	a += c->n_attrs++;
	memset(a, 0, sizeof(*a));
	if (read_attr(r, stream, c->g, a))
		return false;
	for (size_t i = 0; i + 1 < c->n_attrs; i++) {
		if (strcmp(c->attrs[i].name, a->name) == 0) {
			rg_error_set(r->err, -EINVAL, "attribute '%.60s' stands twice", a->name);
			return false;
		}
	}
	return true;
}

static int add_node(struct node_ctx *c)
{
	const char *domain = c->domain.text ? c->domain.text : "";
	int rc;

	if (!c->op_type.text || !c->op_type.text[0])
		return rg_error_set(c->r->err, -EINVAL, "op_type is missing");
	if (c->in.n == 0 && c->out.n == 0)
		return rg_error_set(c->r->err, -EINVAL, "the node has neither inputs nor outputs");
	if (++c->r->n_nodes > RG_MAX_NODES)
		return rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "there are more than %d nodes",
				    RG_MAX_NODES);
	if (strcmp(domain, "ai.onnx") == 0)
		domain = "";
	rc = rg_graph_add_node(c->g, domain, c->op_type.text, c->name.text ? c->name.text : "", (int)c->in.n,
			       c->in.v, (int)c->out.n, c->out.v, (int)c->n_attrs, c->attrs, c->r->err);
	/* Tensors and subgraphs are the graph's now, whatever came back. */
	for (size_t i = 0; i < c->n_attrs; i++) {
		c->attrs[i].t.data = NULL;
		c->attrs[i].g = NULL;
	}
	return rc < 0 ? rc : 0;
}

static bool node_cb(pb_istream_t *stream, const pb_field_t *field, void **arg);

static int read_node(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g)
{
	struct node_ctx c = { .r = r, .g = g, .name = { r, "name", NULL }, .op_type = { r, "op_type", NULL },
			      .domain = { r, "domain", NULL } };
	onnx_NodeProto m = onnx_NodeProto_init_zero;
	int rc = 0, index = g->n_nodes;

	onnx_set_cb(&m.input, io_cb, &c);
	onnx_set_cb(&m.output, io_cb, &c);
	onnx_set_cb(&m.name, onnx_text_cb, &c.name);
	onnx_set_cb(&m.op_type, onnx_text_cb, &c.op_type);
	onnx_set_cb(&m.domain, onnx_text_cb, &c.domain);
	onnx_set_cb(&m.attribute, attribute_cb, &c);
	if (!pb_decode(stream, onnx_NodeProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "a node");
	if (!rc)
		rc = add_node(&c);
	if (rc && c.name.text && c.name.text[0])
		rg_error_at(r->err, "node '%.100s' (%.40s)", c.name.text,
			    c.op_type.text ? c.op_type.text : "?");
	else if (rc)
		rg_error_at(r->err, "node %d (%.40s)", index, c.op_type.text ? c.op_type.text : "?");
	for (size_t i = 0; i < c.n_attrs; i++)
		attr_free(&c.attrs[i], true);
	rg_free(c.attrs);
	rg_free(c.in.v);
	rg_free(c.out.v);
	rg_free(c.name.text);
	rg_free(c.op_type.text);
	rg_free(c.domain.text);
	return rc;
}

/* ---- inputs and outputs ---- */

struct type_ctx {
	struct onnx_reader *r;
	bool seen, has_shape;
	const char *other;  /* "a sequence": not a tensor */
	enum rg_dtype dtype;
	int rank;
	struct rg_dim dim[RG_MAX_RANK];
	char *symbol[RG_MAX_RANK];
};

static bool dim_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TensorShapeProto_Dimension m = onnx_TensorShapeProto_Dimension_init_zero;
	struct onnx_text symbol = { c->r, "dim_param", NULL };

	if (c->rank >= RG_MAX_RANK) {
		rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "the shape has more than %d dimensions",
			     RG_MAX_RANK);
		return false;
	}
	onnx_set_cb(&m.dim_param, onnx_text_cb, &symbol);
	if (!pb_decode(stream, onnx_TensorShapeProto_Dimension_fields, &m)) {
		onnx_decode_failed(c->r, stream, "a dimension");
		rg_free(symbol.text);
		return false;
	}
	/* Exporters write -1, or "?" as a name, for a dimension that is open. */
	if (symbol.text && !symbol.text[0]) {
		rg_free(symbol.text);
		symbol.text = NULL;
	}
	c->symbol[c->rank] = symbol.text;
	c->dim[c->rank].symbol = symbol.text;
	c->dim[c->rank].value = !symbol.text && m.has_dim_value && m.dim_value >= 0 ? m.dim_value : -1;
	c->rank++;
	return true;
}

static bool shape_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TensorShapeProto m = onnx_TensorShapeProto_init_zero;

	c->has_shape = true;
	onnx_set_cb(&m.dim, dim_cb, c);
	return pb_decode(stream, onnx_TensorShapeProto_fields, &m) ||
	       onnx_decode_failed(c->r, stream, "a shape") == 0;
}

static bool tensor_type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TypeProto_Tensor m = onnx_TypeProto_Tensor_init_zero;

	onnx_set_cb(&m.shape, shape_cb, c);
	if (!pb_decode(stream, onnx_TypeProto_Tensor_fields, &m)) {
		onnx_decode_failed(c->r, stream, "a type");
		return false;
	}
	if (m.elem_type < 0 || m.elem_type >= RG_DTYPE_COUNT) {
		rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "element type %d is not known", m.elem_type);
		return false;
	}
	c->dtype = (enum rg_dtype)m.elem_type;
	c->seen = true;
	return true;
}

static bool other_type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;

	switch (field->tag) {
	case onnx_TypeProto_sequence_type_tag: c->other = "a sequence"; break;
	case onnx_TypeProto_map_type_tag: c->other = "a map"; break;
	case onnx_TypeProto_optional_type_tag: c->other = "an optional"; break;
	default: c->other = "a sparse tensor"; break;
	}
	return onnx_stream_skip(stream);
}

static bool type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TypeProto m = onnx_TypeProto_init_zero;

	onnx_set_cb(&m.tensor_type, tensor_type_cb, c);
	onnx_set_cb(&m.sequence_type, other_type_cb, c);
	onnx_set_cb(&m.map_type, other_type_cb, c);
	onnx_set_cb(&m.optional_type, other_type_cb, c);
	onnx_set_cb(&m.sparse_tensor_type, other_type_cb, c);
	return pb_decode(stream, onnx_TypeProto_fields, &m) ||
	       onnx_decode_failed(c->r, stream, "a type") == 0;
}

/* Reads a graph input or output and declares its type; returns the value. */
static int read_value_info(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g, const char *what)
{
	struct type_ctx c = { .r = r };
	struct onnx_text name = { r, "name", NULL };
	onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
	int v = -1, rc = 0;

	onnx_set_cb(&m.name, onnx_text_cb, &name);
	onnx_set_cb(&m.type, type_cb, &c);
	if (!pb_decode(stream, onnx_ValueInfoProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "a graph input or output");
	else if (!name.text || !name.text[0])
		rc = rg_error_set(r->err, -EINVAL, "the name is missing");
	else if (c.other)
		rc = rg_error_set(r->err, RG_ENOTSUP_MODEL, "it is %s; only tensors are supported", c.other);
	if (!rc) {
		v = value_index(r, g, name.text);
		rc = v < 0 ? v : 0;
	}
	if (!rc && c.seen)
		rc = rg_graph_declare(g, v, c.dtype, c.has_shape ? c.rank : -1, c.dim, r->err);
	if (rc)
		rg_error_at(r->err, "%s '%.100s'", what, name.text ? name.text : "?");
	for (int i = 0; i < c.rank; i++)
		rg_free(c.symbol[i]);
	rg_free(name.text);
	return rc ? rc : v;
}

/* ---- the graph ---- */

struct graph_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;
	struct onnx_text name;
	struct ints inputs;
};

static bool is_message(struct graph_ctx *c, const pb_istream_t *stream, const char *what)
{
	if (onnx_stream_is_file(stream))
		return true;
	rg_error_set(c->r->err, -EBADMSG, "damaged: %s has the wrong wire type", what);
	return false;
}

static bool node_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;

	return is_message(c, stream, "a node") && read_node(c->r, stream, c->g) == 0;
}

static bool initializer_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;
	struct onnx_reader *r = c->r;
	struct onnx_tensor t;
	int rc, v;

	if (!is_message(c, stream, "an initializer"))
		return false;
	rc = onnx_read_tensor(r, stream, &t);
	if (!rc && (!t.name || !t.name[0]))
		rc = rg_error_set(r->err, -EINVAL, "the name is missing");
	if (!rc) {
		v = value_index(r, c->g, t.name);
		rc = v < 0 ? v : 0;
	}
	if (rc) {
		rg_free(t.t.data);
	} else {
		rc = rg_graph_add_const(c->g, v, RG_CONST_INITIALIZER, t.t.dtype, &t.t.shape, t.t.data,
					r->err);
	}
	if (rc)
		rg_error_at(r->err, "initializer '%.100s'", t.name ? t.name : "?");
	rg_free(t.name);
	return rc == 0;
}

static bool sparse_values_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	onnx_TensorProto m = onnx_TensorProto_init_zero;

	onnx_set_cb(&m.name, onnx_text_cb, *arg);
	return pb_decode(stream, onnx_TensorProto_fields, &m);
}

static bool sparse_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;
	struct onnx_text name = { c->r, "name", NULL };
	onnx_SparseTensorProto m = onnx_SparseTensorProto_init_zero;

	onnx_set_cb(&m.values, sparse_values_cb, &name);
	if (!pb_decode(stream, onnx_SparseTensorProto_fields, &m)) {
		onnx_decode_failed(c->r, stream, "a sparse initializer");
	} else {
		rg_error_set(c->r->err, RG_ENOTSUP_MODEL, "sparse initializers are not supported");
		rg_error_hint(c->r->err, "export the model with dense weights");
		rg_error_at(c->r->err, "initializer '%.100s'", name.text ? name.text : "?");
	}
	rg_free(name.text);
	return false;
}

static bool input_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;
	int v;

	if (!is_message(c, stream, "an input"))
		return false;
	v = read_value_info(c->r, stream, c->g, "input");
	return v >= 0 && push_int(c->r, &c->inputs, v) == 0;
}

static bool output_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;
	int v;

	if (!is_message(c, stream, "an output"))
		return false;
	v = read_value_info(c->r, stream, c->g, "output");
	return v >= 0 && rg_graph_add_output(c->g, v, c->r->err) == 0;
}

int onnx_read_graph(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g)
{
	struct graph_ctx c = { .r = r, .g = g, .name = { r, "graph name", NULL } };
	onnx_GraphProto m = onnx_GraphProto_init_zero;
	int rc = 0;

	if (!is_message(&c, stream, "a graph"))
		return r->err->code;
	onnx_set_cb(&m.node, node_cb, &c);
	onnx_set_cb(&m.name, onnx_text_cb, &c.name);
	onnx_set_cb(&m.initializer, initializer_cb, &c);
	onnx_set_cb(&m.sparse_initializer, sparse_cb, &c);
	onnx_set_cb(&m.input, input_cb, &c);
	onnx_set_cb(&m.output, output_cb, &c);
	if (!pb_decode(stream, onnx_GraphProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "a graph");
	/* Up to IR version 3 every initializer is listed as an input, too: those
	 * are constants, not inputs. Known only now, since fields come in any order. */
	for (size_t i = 0; !rc && i < c.inputs.n; i++)
		if (g->values[c.inputs.v[i]].origin == RG_CONST_NONE)
			rc = rg_graph_add_input(g, c.inputs.v[i], r->err);
	if (!rc && c.name.text) {
		g->name = rg_arena_strdup(g->arena, c.name.text);
		if (!g->name)
			rc = rg_error_nomem(r->err, strlen(c.name.text));
	}
	rg_free(c.name.text);
	rg_free(c.inputs.v);
	return rc;
}
