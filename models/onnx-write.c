/*
 * The ONNX writer. Everything but the bytes of initialisers is built in
 * memory; those go from the graph straight into the file. A message is written
 * behind its length, so each is built before it is appended to its parent.
 * Numbers of fields come from the messages that nanopb reads with.
 */
#include "models/onnx-write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "graph/contrib.h"
#include "graph/op.h"
#include "graph/own.h"
#include "onnx.pb.h"

/* Of opset 17; a graph read from a file says its own. */
#define IR_VERSION 8
#define MAX_MESSAGE_BYTES INT32_MAX

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- the wire format ---- */

static void varint(struct rg_str *s, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	rg_str_addn(s, bytes, n);
}

static void tag(struct rg_str *s, uint32_t field, unsigned wire)
{
	varint(s, (uint64_t)field << 3 | wire);
}

static void put_int(struct rg_str *s, uint32_t field, int64_t v)
{
	tag(s, field, WIRE_VARINT);
	varint(s, (uint64_t)v);
}

static void put_float(struct rg_str *s, uint32_t field, float f)
{
	uint32_t bits;
	char bytes[4];

	memcpy(&bits, &f, sizeof(bits));
	for (int i = 0; i < 4; i++)
		bytes[i] = (char)(bits >> 8 * i & 0xff);
	tag(s, field, WIRE_FIXED32);
	rg_str_addn(s, bytes, sizeof(bytes));
}

static void put_bytes(struct rg_str *s, uint32_t field, const void *p, size_t n)
{
	tag(s, field, WIRE_BYTES);
	varint(s, n);
	if (n)
		rg_str_addn(s, p, n);
}

static void put_text(struct rg_str *s, uint32_t field, const char *text)
{
	put_bytes(s, field, text, strlen(text));
}

/* Appends a finished message and frees it. */
static void put_message(struct rg_str *s, uint32_t field, struct rg_str *message)
{
	if (message->failed)
		s->failed = true;
	put_bytes(s, field, message->text, message->len);
	rg_str_free(message);
}

/* ---- messages ---- */

/* What is being written: a graph, and which of its constants. */
struct source {
	const struct rg_graph *g;
	const unsigned char *values; /* NULL: all */
	int *order;                 /* n_values: all of them, in the order in which nodes read them */
};

static void put_in_order(int value, int *order, int *n, unsigned char *seen)
{
	if (value < 0 || seen[value])
		return;
	seen[value] = 1;
	order[(*n)++] = value;
}

/* Constants stand in the order of their readers, so that what is read and written again is the same file. */
static int source_begin(struct source *w, const struct rg_graph *g, const unsigned char *values,
			struct rg_error *err)
{
	size_t room = (size_t)g->n_values + 1;
	unsigned char *seen = rg_calloc(room, 1);
	int n = 0;

	*w = (struct source){ g, values, rg_calloc(room, sizeof(*w->order)) };
	if (!seen || !w->order) {
		rg_free(seen);
		rg_free(w->order);
		w->order = NULL;
		return rg_error_nomem(err, room * sizeof(*w->order));
	}
	for (int i = 0; i < g->n_nodes; i++) {
		for (int k = 0; k < g->nodes[i].n_in; k++)
			put_in_order(g->nodes[i].in[k], w->order, &n, seen);
		for (int k = 0; k < g->nodes[i].n_captured; k++)
			put_in_order(g->nodes[i].captured[k], w->order, &n, seen);
	}
	for (int i = 0; i < g->n_values; i++)
		put_in_order(i, w->order, &n, seen);
	rg_free(seen);
	return 0;
}

static bool is_written(const struct source *w, const struct rg_value *v)
{
	return !v->from_outer && (!w->values || w->values[v - w->g->values]);
}

/* A constant as data. What was folded has its nodes still, unless a pass took them away or
 * made the value itself. */
static bool is_initializer(const struct source *w, int value)
{
	const struct rg_value *v = &w->g->values[value];

	return is_written(w, v) &&
	       (v->origin == RG_CONST_INITIALIZER || (v->origin == RG_CONST_FOLDED && v->producer < 0));
}

static bool is_constant_node(const struct source *w, int value)
{
	const struct rg_value *v = &w->g->values[value];

	return v->origin == RG_CONST_NODE && is_written(w, v);
}

/* Bytes of a tensor as they lie in memory; 0 for strings, which stand in the head of their message; -1: no size. */
static int64_t raw_bytes(enum rg_dtype t, const struct rg_shape *shape)
{
	return t == RG_STRING ? 0 : rg_tensor_bytes(t, shape);
}

/* A TensorProto up to its raw bytes, whose field and length come last. */
static void tensor_head(struct rg_str *s, const char *name, enum rg_dtype t, const struct rg_shape *shape,
			const void *data, uint64_t bytes)
{
	for (int d = 0; d < shape->rank; d++)
		put_int(s, onnx_TensorProto_dims_tag, shape->dim[d]);
	put_int(s, onnx_TensorProto_data_type_tag, t);
	if (name)
		put_text(s, onnx_TensorProto_name_tag, name);
	for (int64_t i = 0; t == RG_STRING && i < rg_shape_count(shape); i++)
		put_text(s, onnx_TensorProto_string_data_tag, ((const char *const *)data)[i]);
	if (t == RG_STRING)
		return;
	tag(s, onnx_TensorProto_raw_data_tag, WIRE_BYTES);
	varint(s, bytes);
}

static int not_written(const char *what, const char *name, struct rg_error *err)
{
	rg_error_set(err, RG_ENOTSUP_MODEL, "'%s': %s cannot be written", name, what);
	return rg_error_hint(err, "export another model");
}

static int graph_message(struct rg_str *s, const struct source *w, struct rg_error *err);

static int subgraph(struct rg_str *attr, const struct rg_graph *g, struct rg_error *err)
{
	struct source w;
	struct rg_str s = { 0 };
	int rc = source_begin(&w, g, NULL, err);

	if (!rc)
		rc = graph_message(&s, &w, err);
	if (rc)
		rg_str_free(&s);
	else
		put_message(attr, onnx_AttributeProto_g_tag, &s);
	rg_free(w.order);
	return rc;
}

static int attribute(struct rg_str *node, const struct rg_node *n, const struct rg_attr *a, struct rg_error *err)
{
	struct rg_str s = { 0 }, t = { 0 };
	int64_t bytes;
	int rc = 0;

	put_text(&s, onnx_AttributeProto_name_tag, a->name);
	put_int(&s, onnx_AttributeProto_type_tag, a->type);
	switch (a->type) {
	case RG_ATTR_FLOAT:
		put_float(&s, onnx_AttributeProto_f_tag, a->f);
		break;
	case RG_ATTR_INT:
		put_int(&s, onnx_AttributeProto_i_tag, a->i);
		break;
	case RG_ATTR_STRING:
		put_bytes(&s, onnx_AttributeProto_s_tag, a->s, a->s_len);
		break;
	case RG_ATTR_TENSOR:
		bytes = raw_bytes(a->t.dtype, &a->t.shape);
		if (bytes < 0) {
			rc = not_written("a tensor without plain bytes", n->name, err);
			break;
		}
		tensor_head(&t, NULL, a->t.dtype, &a->t.shape, a->t.data, (uint64_t)bytes);
		if (bytes)
			rg_str_addn(&t, a->t.data, (size_t)bytes);
		put_message(&s, onnx_AttributeProto_t_tag, &t);
		break;
	case RG_ATTR_GRAPH:
		rc = subgraph(&s, a->g, err);
		break;
	case RG_ATTR_FLOATS:
		for (int i = 0; i < a->count; i++)
			put_float(&s, onnx_AttributeProto_floats_tag, a->floats[i]);
		break;
	case RG_ATTR_INTS:
		for (int i = 0; i < a->count; i++)
			put_int(&s, onnx_AttributeProto_ints_tag, a->ints[i]);
		break;
	case RG_ATTR_STRINGS:
		for (int i = 0; i < a->count; i++)
			put_text(&s, onnx_AttributeProto_strings_tag, a->strings[i]);
		break;
	default:
		rc = not_written("an attribute of unknown type", n->name, err);
	}
	if (rc)
		rg_str_free(&s);
	else
		put_message(node, onnx_NodeProto_attribute_tag, &s);
	return rc;
}

/* Absent inputs and outputs are empty names; behind the last one there is none. */
static void put_names(struct rg_str *s, uint32_t field, const struct rg_graph *g, int n, const int *values)
{
	while (n && values[n - 1] < 0)
		n--;
	for (int i = 0; i < n; i++)
		put_text(s, field, values[i] < 0 ? "" : g->values[values[i]].name);
}

/* A file has one opset a domain: each node must be of the version that it selects. */
static int check_node(const struct rg_graph *g, const struct rg_node *n, struct rg_error *err)
{
	int64_t opset = rg_graph_opset(g, "");

	if (strcmp(n->domain, RG_OWN_DOMAIN) == 0) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "node '%s': %s is an operator of ridge's own executor", n->name,
			     n->op_type);
		return rg_error_hint(err, "leave out the pass that made it");
	}
	if (n->domain[0] || !n->op || n->unsupported || rg_op_version(n->op, opset) == n->version)
		return 0;
	rg_error_set(err, RG_ENOTSUP_MODEL, "node '%s': %s is of version %d, and opset %lld of the model has another",
		     n->name, n->op_type, n->version, (long long)opset);
	return rg_error_hint(err, "export the model with another opset");
}

static int check_graph(const struct source *w, struct rg_error *err)
{
	for (int i = 0; i < w->g->n_nodes; i++) {
		const struct rg_node *n = &w->g->nodes[i];

		for (int k = 0; k < n->n_attrs; k++)
			if (n->attrs[k].g && check_graph(&(struct source){ n->attrs[k].g, NULL, NULL }, err))
				return err->code;
		if (check_node(w->g, n, err))
			return err->code;
	}
	return 0;
}

static int node(struct rg_str *graph, const struct rg_graph *g, const struct rg_node *n, struct rg_error *err)
{
	struct rg_str s = { 0 };
	int rc = 0;

	put_names(&s, onnx_NodeProto_input_tag, g, n->n_in, n->in);
	put_names(&s, onnx_NodeProto_output_tag, g, n->n_out, n->out);
	put_text(&s, onnx_NodeProto_name_tag, n->name);
	put_text(&s, onnx_NodeProto_op_type_tag, n->op_type);
	if (*n->domain)
		put_text(&s, onnx_NodeProto_domain_tag, n->domain);
	for (int i = 0; i < n->n_attrs && !rc; i++)
		rc = attribute(&s, n, &n->attrs[i], err);
	if (rc)
		rg_str_free(&s);
	else
		put_message(graph, onnx_GraphProto_node_tag, &s);
	return rc;
}

/* A constant that was a Constant node becomes one again: it is no parameter. */
static int constant(struct rg_str *graph, const struct rg_value *v, struct rg_error *err)
{
	struct rg_attr value = { .name = "value", .type = RG_ATTR_TENSOR,
				 .t = { v->dtype, v->shape, (void *)(uintptr_t)v->data } };
	struct rg_node n = { .name = v->name };
	struct rg_str s = { 0 };
	int rc;

	put_text(&s, onnx_NodeProto_output_tag, v->name);
	put_text(&s, onnx_NodeProto_op_type_tag, "Constant");
	rc = attribute(&s, &n, &value, err);
	if (rc)
		rg_str_free(&s);
	else
		put_message(graph, onnx_GraphProto_node_tag, &s);
	return rc;
}

static void shape_of_declaration(struct rg_str *tensor_type, const struct rg_value *v)
{
	struct rg_str shape = { 0 };

	for (int d = 0; d < v->declared_rank; d++) {
		struct rg_str dim = { 0 };

		if (v->declared[d].value >= 0)
			put_int(&dim, onnx_TensorShapeProto_Dimension_dim_value_tag, v->declared[d].value);
		else if (v->declared[d].symbol)
			put_text(&dim, onnx_TensorShapeProto_Dimension_dim_param_tag, v->declared[d].symbol);
		put_message(&shape, onnx_TensorShapeProto_dim_tag, &dim);
	}
	put_message(tensor_type, onnx_TypeProto_Tensor_shape_tag, &shape);
}

/* Wraps a type into one that holds it, a sequence or an optional. */
static void wrap_type(struct rg_str *type, uint32_t holder)
{
	struct rg_str inner = *type, message = { 0 };

	_Static_assert(onnx_TypeProto_Sequence_elem_type_tag == onnx_TypeProto_Optional_elem_type_tag,
		       "one writer makes both");
	*type = (struct rg_str){ 0 };
	put_message(&message, onnx_TypeProto_Sequence_elem_type_tag, &inner);
	put_message(type, holder, &message);
}

static int interface(struct rg_str *graph, uint32_t field, const struct rg_graph *g, const struct rg_value *v,
		     struct rg_error *err)
{
	enum rg_dtype t = v->has_declared && v->declared_dtype ? v->declared_dtype : v->dtype;
	struct rg_str info = { 0 }, type = { 0 }, tensor = { 0 };

	/* of a subgraph's inputs and outputs a file may leave the type open */
	if (!t && !g->outer)
		return not_written("an input or output of unknown type", v->name, err);
	put_text(&info, onnx_ValueInfoProto_name_tag, v->name);
	if (t) {
		put_int(&tensor, onnx_TypeProto_Tensor_elem_type_tag, t);
		if (v->has_declared && v->declared_rank >= 0)
			shape_of_declaration(&tensor, v);
		put_message(&type, onnx_TypeProto_tensor_type_tag, &tensor);
		if (v->kind == RG_VALUE_SEQUENCE || v->kind == RG_VALUE_OPTIONAL_SEQUENCE)
			wrap_type(&type, onnx_TypeProto_sequence_type_tag);
		if (v->kind == RG_VALUE_OPTIONAL || v->kind == RG_VALUE_OPTIONAL_SEQUENCE)
			wrap_type(&type, onnx_TypeProto_optional_type_tag);
		put_message(&info, onnx_ValueInfoProto_type_tag, &type);
	}
	put_message(graph, field, &info);
	return 0;
}

/* Everything of a graph but its initialisers. */
static int graph_body(struct rg_str *s, const struct source *w, struct rg_error *err)
{
	const struct rg_graph *g = w->g;
	int rc = 0;

	put_text(s, onnx_GraphProto_name_tag, g->name && *g->name ? g->name : "graph");
	for (int i = 0; i < g->n_values && !rc; i++)
		if (is_constant_node(w, w->order[i]))
			rc = constant(s, &g->values[w->order[i]], err);
	for (int i = 0; i < g->n_nodes && !rc; i++)
		rc = node(s, g, &g->nodes[i], err);
	for (int i = 0; i < g->n_inputs && !rc; i++)
		rc = interface(s, onnx_GraphProto_input_tag, g, &g->values[g->inputs[i]], err);
	for (int i = 0; i < g->n_outputs && !rc; i++)
		rc = interface(s, onnx_GraphProto_output_tag, g, &g->values[g->outputs[i]], err);
	return rc;
}

/* The field of an initialiser up to its raw bytes. */
static int initializer_head(struct rg_str *s, const struct rg_value *v, int64_t *bytes, struct rg_error *err)
{
	struct rg_str head = { 0 };

	*bytes = raw_bytes(v->dtype, &v->shape);
	if (*bytes < 0)
		return not_written("a tensor without plain bytes", v->name, err);
	tensor_head(&head, v->name, v->dtype, &v->shape, v->data, (uint64_t)*bytes);
	tag(s, onnx_GraphProto_initializer_tag, WIRE_BYTES);
	varint(s, head.len + (uint64_t)*bytes);
	rg_str_addn(s, rg_str_text(&head), head.len);
	s->failed |= head.failed;
	rg_str_free(&head);
	return 0;
}

/* A whole graph in memory: those of subgraphs are small. */
static int graph_message(struct rg_str *s, const struct source *w, struct rg_error *err)
{
	int rc = graph_body(s, w, err);

	for (int i = 0; i < w->g->n_values && !rc; i++) {
		const struct rg_value *v = &w->g->values[w->order[i]];
		int64_t bytes;

		if (!is_initializer(w, w->order[i]))
			continue;
		rc = initializer_head(s, v, &bytes, err);
		if (!rc && bytes)
			rg_str_addn(s, v->data, (size_t)bytes);
	}
	return rc;
}

/* ---- the file ---- */

static int initializer_sizes(const struct source *w, uint64_t *total, struct rg_error *err)
{
	for (int i = 0; i < w->g->n_values; i++) {
		struct rg_str s = { 0 };
		int64_t bytes;
		int rc;

		if (!is_initializer(w, i))
			continue;
		rc = initializer_head(&s, &w->g->values[i], &bytes, err);
		if (!rc && s.failed)
			rc = rg_error_nomem(err, s.len);
		/* A sum of what lies in memory cannot overflow. */
		if (!rc)
			*total += s.len + (uint64_t)bytes;
		rg_str_free(&s);
		if (rc)
			return rc;
	}
	return 0;
}

static int write_out(FILE *f, const void *p, size_t n, struct rg_error *err)
{
	if (fwrite(p, 1, n, f) == n)
		return 0;
	rg_error_set(err, errno ? -errno : -EIO, "cannot be written: %s", strerror(errno ? errno : EIO));
	return rg_error_hint(err, "name another place with -o FILE.onnx");
}

static int write_initializers(FILE *f, const struct source *w, struct rg_error *err)
{
	for (int i = 0; i < w->g->n_values; i++) {
		const struct rg_value *v = &w->g->values[w->order[i]];
		struct rg_str s = { 0 };
		int64_t bytes;
		int rc;

		if (!is_initializer(w, w->order[i]))
			continue;
		rc = initializer_head(&s, v, &bytes, err);
		if (!rc && s.failed)
			rc = rg_error_nomem(err, s.len);
		if (!rc)
			rc = write_out(f, s.text, s.len, err);
		if (!rc && bytes)
			rc = write_out(f, v->data, (size_t)bytes, err);
		rg_str_free(&s);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * The IR version that came with an opset: a reader that knows the one knows the other.
 * Below 4 every initialiser would have to be an input, too.
 */
static int64_t ir_version(const struct rg_graph *g)
{
	static const struct { short opset, ir; } known[] = {
		{ 10, 5 }, { 11, 6 }, { 12, 7 }, { 15, 8 }, { 19, 9 }, { 21, 10 }, { 23, 11 }, { 24, 12 }, { 25, 13 },
	};
	int64_t ir = g->ir_version ? g->ir_version : IR_VERSION;

	ir = ir < 4 ? 4 : ir;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (rg_graph_opset(g, "") >= known[i].opset && ir < known[i].ir)
			ir = known[i].ir;
	return ir;
}

static void put_opset(struct rg_str *s, const char *domain, int64_t version)
{
	struct rg_str opset = { 0 };

	put_text(&opset, onnx_OperatorSetIdProto_domain_tag, domain);
	put_int(&opset, onnx_OperatorSetIdProto_version_tag, version);
	put_message(s, onnx_ModelProto_opset_import_tag, &opset);
}

static bool uses_contrib(const struct rg_graph *g)
{
	for (int i = 0; i < g->n_nodes; i++) {
		if (strcmp(g->nodes[i].domain, RG_CONTRIB_DOMAIN) == 0)
			return true;
		for (int k = 0; k < g->nodes[i].n_attrs; k++)
			if (g->nodes[i].attrs[k].g && uses_contrib(g->nodes[i].attrs[k].g))
				return true;
	}
	return false;
}

/* The model up to and with the length of its graph, which comes last. */
static int model_head(struct rg_str *s, const struct rg_graph *g, uint64_t graph_bytes)
{
	put_int(s, onnx_ModelProto_ir_version_tag, ir_version(g));
	put_text(s, onnx_ModelProto_producer_name_tag, g->producer ? g->producer : "");
	for (int i = 0; i < g->n_opsets; i++)
		put_opset(s, g->opsets[i].domain, g->opsets[i].version);
	if (g->n_opsets == 0) /* files older than IR 3 name none */
		put_opset(s, "", rg_graph_opset(g, ""));
	if (!rg_graph_opset(g, RG_CONTRIB_DOMAIN) && uses_contrib(g))
		put_opset(s, RG_CONTRIB_DOMAIN, 1);
	tag(s, onnx_ModelProto_graph_tag, WIRE_BYTES);
	varint(s, graph_bytes);
	return s->failed ? -ENOMEM : 0;
}

static int write_file(const struct source *w, const char *path, const struct rg_str *head,
		      const struct rg_str *body, struct rg_error *err)
{
	FILE *f = fopen(path, "wbe");
	struct stat st;
	int rc;

	if (!f) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		return rg_error_hint(err, "name another place with -o FILE.onnx");
	}
	errno = 0;
	rc = write_out(f, head->text, head->len, err);
	if (!rc)
		rc = write_out(f, body->text, body->len, err);
	if (!rc)
		rc = write_initializers(f, w, err);
	if (fclose(f) && !rc) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		rc = rg_error_hint(err, "name another place with -o FILE.onnx");
	}
	if (rc && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
	return rc;
}

int rg_onnx_write_values(const struct rg_graph *g, const unsigned char *values, const char *path,
			 struct rg_error *err)
{
	struct source w;
	struct rg_str head = { 0 }, body = { 0 };
	uint64_t graph_bytes = 0;
	int rc = source_begin(&w, g, values, err);

	if (!rc)
		rc = check_graph(&w, err);
	if (!rc)
		rc = graph_body(&body, &w, err);
	if (!rc)
		rc = initializer_sizes(&w, &graph_bytes, err);
	graph_bytes += body.len;
	if (!rc && (body.failed || model_head(&head, g, graph_bytes)))
		rc = rg_error_nomem(err, body.len);
	if (!rc && head.len + graph_bytes > MAX_MESSAGE_BYTES) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "the model takes %llu bytes, an ONNX file of one piece at most %d",
			     (unsigned long long)(head.len + graph_bytes), MAX_MESSAGE_BYTES);
		rc = rg_error_hint(err, "export a smaller model");
	}
	if (!rc)
		rc = write_file(&w, path, &head, &body, err);
	rg_free(w.order);
	rg_str_free(&head);
	rg_str_free(&body);
	return rc ? rg_error_at(err, "%s", path) : 0;
}

int rg_onnx_write(const struct rg_graph *g, const char *path, struct rg_error *err)
{
	return rg_onnx_write_values(g, NULL, path, err);
}

int rg_onnx_digest(const struct rg_graph *g, const unsigned char *values, char hex[65], struct rg_error *err)
{
	struct source w;
	struct rg_str s = { 0 };
	struct rg_sha256 *h = NULL;
	int rc = source_begin(&w, g, values, err);

	if (!rc)
		rc = graph_body(&s, &w, err);
	for (int i = 0; i < g->n_values && !rc; i++)
		if (is_initializer(&w, i))
			rc = initializer_head(&s, &g->values[i], &(int64_t){ 0 }, err);
	if (!rc && !s.failed)
		h = rg_sha256_new();
	if (!rc && !h)
		rc = rg_error_nomem(err, s.len);
	if (!rc) {
		rg_sha256_add(h, rg_str_text(&s), s.len);
		/* what stands in the file is what its name says */
		for (int i = 0; i < g->n_values; i++)
			if (is_initializer(&w, i) && g->values[i].origin == RG_CONST_FOLDED)
				rg_sha256_add(h, g->values[i].data ? g->values[i].data : "",
					      (size_t)raw_bytes(g->values[i].dtype, &g->values[i].shape));
		rg_sha256_finish(h, hex);
	}
	rg_free(w.order);
	rg_str_free(&s);
	return rc;
}

int rg_onnx_node_digest(const struct rg_graph *g, int at, char hex[65], struct rg_error *err)
{
	const struct rg_node *n = &g->nodes[at];
	struct rg_str s = { 0 };
	struct rg_sha256 *h = NULL;
	int rc = node(&s, g, n, err);

	if (!rc && !s.failed)
		h = rg_sha256_new();
	if (!rc && !h)
		rc = rg_error_nomem(err, s.len);
	if (!rc) {
		rg_sha256_add(h, rg_str_text(&s), s.len);
		for (int k = 0; k < n->n_in; k++) {
			const struct rg_value *v = n->in[k] >= 0 ? &g->values[n->in[k]] : NULL;

			if (v && v->origin == RG_CONST_FOLDED && v->producer < 0 && v->data)
				rg_sha256_add(h, v->data, (size_t)raw_bytes(v->dtype, &v->shape));
		}
		rg_sha256_finish(h, hex);
	}
	rg_str_free(&s);
	return rc;
}
