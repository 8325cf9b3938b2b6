/*
 * GraphProto, NodeProto and ValueInfoProto into the graph.
 *
 * Recursion happens in one place only, attribute -> subgraph (onnx-attr.c), and
 * is counted there. Everything else is a loop inside nanopb.
 */
#include <string.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

#define NODE_OVERLOAD 8 /* a field of NodeProto since IR version 10 */
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
int onnx_value_index(struct onnx_reader *r, struct rg_graph *g, const char *name)
{
	int before = g->n_values;
	int v = rg_graph_value(g, name, r->err);

	if (v >= 0 && g->n_values > before && ++r->n_values > r->max_values)
		return rg_error_set(r->err, -E2BIG, "more than %llu values in a file of %llu bytes",
				    (unsigned long long)r->max_values, (unsigned long long)r->src.size);
	return v;
}

/* ---- nodes ---- */

struct node_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;
	struct onnx_text name, op_type, domain, overload;
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
		v = onnx_value_index(c->r, c->g, t.text);
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
	if (onnx_read_attr(r, stream, c->g, a))
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
	if (rc < 0 || !c->overload.text || !c->overload.text[0])
		return rc < 0 ? rc : 0;
	c->g->nodes[rc].overload = rg_arena_strdup(c->g->arena, c->overload.text);
	if (c->g->nodes[rc].overload)
		return 0;
	c->g->nodes[rc].overload = "";
	return rg_error_nomem(c->r->err, strlen(c->overload.text));
}

static bool overload_cb(pb_istream_t *stream, void *arg)
{
	return onnx_text_cb(stream, NULL, &arg);
}

int onnx_read_node(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g)
{
	struct node_ctx c = { .r = r, .g = g, .name = { r, "name", NULL }, .op_type = { r, "op_type", NULL },
			      .domain = { r, "domain", NULL }, .overload = { r, "overload", NULL } };
	onnx_NodeProto m = onnx_NodeProto_init_zero;
	uint64_t at = r->src.pos, bytes = stream->bytes_left;
	int rc = 0, index = g->n_nodes;

	onnx_set_cb(&m.input, io_cb, &c);
	onnx_set_cb(&m.output, io_cb, &c);
	onnx_set_cb(&m.name, onnx_text_cb, &c.name);
	onnx_set_cb(&m.op_type, onnx_text_cb, &c.op_type);
	onnx_set_cb(&m.domain, onnx_text_cb, &c.domain);
	onnx_set_cb(&m.attribute, attribute_cb, &c);
	if (!pb_decode(stream, onnx_NodeProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "a node");
	if (!rc && r->has_overloads && !onnx_each_field(r, at, bytes, NODE_OVERLOAD, overload_cb, &c.overload))
		rc = onnx_decode_failed(r, stream, "a node");
	if (!rc)
		rc = add_node(&c);
	if (rc && c.name.text && c.name.text[0])
		rg_error_at(r->err, "node '%.100s' (%.40s)", c.name.text,
			    c.op_type.text ? c.op_type.text : "?");
	else if (rc)
		rg_error_at(r->err, "node %d (%.40s)", index, c.op_type.text ? c.op_type.text : "?");
	for (size_t i = 0; i < c.n_attrs; i++)
		onnx_attr_free(&c.attrs[i], true);
	rg_free(c.attrs);
	rg_free(c.in.v);
	rg_free(c.out.v);
	rg_free(c.name.text);
	rg_free(c.op_type.text);
	rg_free(c.domain.text);
	rg_free(c.overload.text);
	return rc;
}

/* ---- inputs and outputs ---- */

struct type_ctx {
	struct onnx_reader *r;
	bool seen, has_shape;
	const char *other;  /* "a map": nothing that can be taken */
	enum rg_value_kind kind;
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

static bool type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* A sequence or an optional: the type of what it holds stands inside. Both
 * messages have one field, elem_type, under the same number. */
static bool holder_type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TypeProto_Sequence m = onnx_TypeProto_Sequence_init_zero;
	bool sequence = field->tag == onnx_TypeProto_sequence_type_tag;

	_Static_assert(onnx_TypeProto_Sequence_elem_type_tag == onnx_TypeProto_Optional_elem_type_tag,
		       "one decoder reads both");
	if (sequence ? c->kind == RG_VALUE_SEQUENCE || c->kind == RG_VALUE_OPTIONAL_SEQUENCE :
		       c->kind != RG_VALUE_TENSOR) {
		c->other = sequence ? "a sequence of sequences" : "an optional inside of another type";
		return onnx_stream_skip(stream);
	}
	if (sequence)
		c->kind = c->kind == RG_VALUE_OPTIONAL ? RG_VALUE_OPTIONAL_SEQUENCE : RG_VALUE_SEQUENCE;
	else
		c->kind = RG_VALUE_OPTIONAL;
	onnx_set_cb(&m.elem_type, type_cb, c);
	return pb_decode(stream, onnx_TypeProto_Sequence_fields, &m) ||
	       onnx_decode_failed(c->r, stream, "a type") == 0;
}

static bool other_type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;

	switch (field->tag) {
	case onnx_TypeProto_map_type_tag: c->other = "a map"; break;
	default: c->other = "a sparse tensor"; break;
	}
	return onnx_stream_skip(stream);
}

static bool type_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct type_ctx *c = *arg;
	onnx_TypeProto m = onnx_TypeProto_init_zero;

	onnx_set_cb(&m.tensor_type, tensor_type_cb, c);
	onnx_set_cb(&m.sequence_type, holder_type_cb, c);
	onnx_set_cb(&m.map_type, other_type_cb, c);
	onnx_set_cb(&m.optional_type, holder_type_cb, c);
	onnx_set_cb(&m.sparse_tensor_type, other_type_cb, c);
	return pb_decode(stream, onnx_TypeProto_fields, &m) ||
	       onnx_decode_failed(c->r, stream, "a type") == 0;
}

/* Reads a graph input or output and declares its type; returns the value. */
static int read_value_info(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g, const char *what,
			   bool required)
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
	else if (c.other && !required)
		c.seen = false;
	else if (c.other)
		rc = rg_error_set(r->err, RG_ENOTSUP_MODEL, "it is %s; only tensors, and sequences "
				  "and optionals of tensors, are supported", c.other);
	if (!rc) {
		v = onnx_value_index(r, g, name.text);
		rc = v < 0 ? v : 0;
	}
	if (!rc && c.seen)
		rc = rg_graph_declare(g, v, c.dtype, c.has_shape && c.kind == RG_VALUE_TENSOR ? c.rank : -1, c.dim,
				      r->err);
	if (!rc)
		rc = rg_graph_declare_kind(g, v, c.kind, r->err);
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

	return is_message(c, stream, "a node") && onnx_read_node(c->r, stream, c->g) == 0;
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
		v = onnx_value_index(r, c->g, t.name);
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
	v = read_value_info(c->r, stream, c->g, "input", true);
	return v >= 0 && push_int(c->r, &c->inputs, v) == 0;
}

static bool output_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;
	int v;

	if (!is_message(c, stream, "an output"))
		return false;
	v = read_value_info(c->r, stream, c->g, "output", true);
	return v >= 0 && rg_graph_add_output(c->g, v, c->r->err) == 0;
}

/* What the file says of a value in between: of use only where inference cannot tell. */
static bool value_info_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct graph_ctx *c = *arg;

	if (!c->r->lenient)
		return onnx_stream_skip(stream);
	return is_message(c, stream, "a value") && read_value_info(c->r, stream, c->g, "value", false) >= 0;
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
	onnx_set_cb(&m.value_info, value_info_cb, &c);
	if (!pb_decode(stream, onnx_GraphProto_fields, &m))
		rc = onnx_decode_failed(r, stream, "a graph");
	/* Up to IR version 3 every initializer is listed as an input, too: those
	 * are constants, not inputs. Known only now, since fields come in any order. */
	for (size_t i = 0; !rc && i < c.inputs.n; i++)
		if (g->values[c.inputs.v[i]].origin == RG_CONST_NONE)
			rc = rg_graph_add_input(g, c.inputs.v[i], r->err);
		else
			g->values[c.inputs.v[i]].was_input = true;
	if (!rc && c.name.text) {
		g->name = rg_arena_strdup(g->arena, c.name.text);
		if (!g->name)
			rc = rg_error_nomem(r->err, strlen(c.name.text));
	}
	rg_free(c.name.text);
	rg_free(c.inputs.v);
	return rc;
}
