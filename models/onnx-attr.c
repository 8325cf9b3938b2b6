/*
 * AttributeProto into struct rg_attr. A subgraph in an attribute is where the
 * reader recurses, here and nowhere else; it is counted here.
 */
#include <string.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

struct attr_ctx {
	struct onnx_reader *r;
	struct rg_graph *g;         /* the graph of the node */
	struct onnx_text name, ref;
	struct rg_attr *a;
	size_t floats_cap, ints_cap, strings_cap;
	bool seen_s, seen_t, seen_floats, seen_ints, seen_strings, seen_type;
	const char *unsupported;    /* what kind of value it holds that we cannot take */
};

void onnx_attr_free(struct rg_attr *a, bool data)
{
	rg_free((void *)a->name);
	rg_free((void *)a->s);
	rg_free((void *)a->ref);
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
	case onnx_AttributeProto_tp_tag: c->seen_type = true; break;
	default: c->unsupported = "a list of types"; break;
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
	if (c->ref.text && c->ref.text[0]) {
		if (!c->r->in_function)
			return rg_error_set(err, -EINVAL, "ref_attr_name stands outside a function");
		a->ref = c->ref.text;
		c->ref.text = NULL;
		a->type = (enum rg_attr_type)type; /* 0: any */
		return 0;
	}
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
	case RG_ATTR_TYPE: fits = c->seen_type; break;
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

int onnx_read_attr(struct onnx_reader *r, pb_istream_t *stream, struct rg_graph *g, struct rg_attr *a)
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
