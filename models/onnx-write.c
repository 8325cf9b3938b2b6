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

#include "base/str.h"
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

/* A TensorProto up to its raw bytes, whose field and length come last. */
static void tensor_head(struct rg_str *s, const char *name, enum rg_dtype t, const struct rg_shape *shape,
			uint64_t bytes)
{
	for (int d = 0; d < shape->rank; d++)
		put_int(s, onnx_TensorProto_dims_tag, shape->dim[d]);
	put_int(s, onnx_TensorProto_data_type_tag, t);
	if (name)
		put_text(s, onnx_TensorProto_name_tag, name);
	tag(s, onnx_TensorProto_raw_data_tag, WIRE_BYTES);
	varint(s, bytes);
}

static int not_written(const char *what, const char *name, struct rg_error *err)
{
	rg_error_set(err, RG_ENOTSUP_MODEL, "'%s': %s cannot be written", name, what);
	return rg_error_hint(err, "export another model");
}

/* Bytes of a tensor that has them as they lie in memory. */
static int64_t raw_bytes(enum rg_dtype t, const struct rg_shape *shape)
{
	return t == RG_STRING ? -1 : rg_tensor_bytes(t, shape);
}

static int attribute(struct rg_str *node, const struct rg_node *n, const struct rg_attr *a, struct rg_error *err)
{
	struct rg_str s = { 0 }, t = { 0 };
	int64_t bytes;

	if (a->type == RG_ATTR_GRAPH)
		return not_written("a subgraph", n->name, err);
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
			rg_str_free(&s);
			return not_written("a tensor without plain bytes", n->name, err);
		}
		tensor_head(&t, NULL, a->t.dtype, &a->t.shape, (uint64_t)bytes);
		if (bytes)
			rg_str_addn(&t, a->t.data, (size_t)bytes);
		put_message(&s, onnx_AttributeProto_t_tag, &t);
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
		rg_str_free(&s);
		return not_written("an attribute of unknown type", n->name, err);
	}
	put_message(node, onnx_NodeProto_attribute_tag, &s);
	return 0;
}

/* Absent inputs and outputs are empty names; behind the last one there is none. */
static void put_names(struct rg_str *s, uint32_t field, const struct rg_graph *g, int n, const int *values)
{
	while (n && values[n - 1] < 0)
		n--;
	for (int i = 0; i < n; i++)
		put_text(s, field, values[i] < 0 ? "" : g->values[values[i]].name);
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

static int interface(struct rg_str *graph, uint32_t field, const struct rg_value *v, struct rg_error *err)
{
	enum rg_dtype t = v->has_declared && v->declared_dtype ? v->declared_dtype : v->dtype;
	struct rg_str info = { 0 }, type = { 0 }, tensor = { 0 };

	if (!t)
		return not_written("an input or output of unknown type", v->name, err);
	put_int(&tensor, onnx_TypeProto_Tensor_elem_type_tag, t);
	if (v->has_declared && v->declared_rank >= 0)
		shape_of_declaration(&tensor, v);
	put_message(&type, onnx_TypeProto_tensor_type_tag, &tensor);
	put_text(&info, onnx_ValueInfoProto_name_tag, v->name);
	put_message(&info, onnx_ValueInfoProto_type_tag, &type);
	put_message(graph, field, &info);
	return 0;
}

/* Everything of the graph but its initialisers. */
static int graph_body(struct rg_str *s, const struct rg_graph *g, struct rg_error *err)
{
	int rc = 0;

	put_text(s, onnx_GraphProto_name_tag, g->name && *g->name ? g->name : "graph");
	for (int i = 0; i < g->n_values && !rc; i++)
		if (g->values[i].origin == RG_CONST_NODE)
			rc = constant(s, &g->values[i], err);
	for (int i = 0; i < g->n_nodes && !rc; i++)
		rc = node(s, g, &g->nodes[i], err);
	for (int i = 0; i < g->n_inputs && !rc; i++)
		rc = interface(s, onnx_GraphProto_input_tag, &g->values[g->inputs[i]], err);
	for (int i = 0; i < g->n_outputs && !rc; i++)
		rc = interface(s, onnx_GraphProto_output_tag, &g->values[g->outputs[i]], err);
	return rc;
}

/* ---- the file ---- */

static bool is_initializer(const struct rg_value *v)
{
	return v->origin == RG_CONST_INITIALIZER;
}

/* The field of an initialiser up to its raw bytes. */
static int initializer_head(struct rg_str *s, const struct rg_value *v, int64_t *bytes, struct rg_error *err)
{
	struct rg_str head = { 0 };

	*bytes = raw_bytes(v->dtype, &v->shape);
	if (*bytes < 0)
		return not_written("a tensor without plain bytes", v->name, err);
	tensor_head(&head, v->name, v->dtype, &v->shape, (uint64_t)*bytes);
	tag(s, onnx_GraphProto_initializer_tag, WIRE_BYTES);
	varint(s, head.len + (uint64_t)*bytes);
	rg_str_addn(s, rg_str_text(&head), head.len);
	s->failed |= head.failed;
	rg_str_free(&head);
	return 0;
}

static int initializer_sizes(const struct rg_graph *g, uint64_t *total, struct rg_error *err)
{
	for (int i = 0; i < g->n_values; i++) {
		struct rg_str s = { 0 };
		int64_t bytes;
		int rc;

		if (!is_initializer(&g->values[i]))
			continue;
		rc = initializer_head(&s, &g->values[i], &bytes, err);
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

static int write_initializers(FILE *f, const struct rg_graph *g, struct rg_error *err)
{
	for (int i = 0; i < g->n_values; i++) {
		const struct rg_value *v = &g->values[i];
		struct rg_str s = { 0 };
		int64_t bytes;
		int rc;

		if (!is_initializer(v))
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

/* The model up to and with the length of its graph, which comes last. */
static int model_head(struct rg_str *s, const struct rg_graph *g, uint64_t graph_bytes)
{
	put_int(s, onnx_ModelProto_ir_version_tag, g->ir_version ? g->ir_version : IR_VERSION);
	put_text(s, onnx_ModelProto_producer_name_tag, g->producer ? g->producer : "");
	for (int i = 0; i < g->n_opsets; i++) {
		struct rg_str opset = { 0 };

		put_text(&opset, onnx_OperatorSetIdProto_domain_tag, g->opsets[i].domain);
		put_int(&opset, onnx_OperatorSetIdProto_version_tag, g->opsets[i].version);
		put_message(s, onnx_ModelProto_opset_import_tag, &opset);
	}
	tag(s, onnx_ModelProto_graph_tag, WIRE_BYTES);
	varint(s, graph_bytes);
	return s->failed ? -ENOMEM : 0;
}

static int write_file(const struct rg_graph *g, const char *path, const struct rg_str *head,
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
		rc = write_initializers(f, g, err);
	if (fclose(f) && !rc) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		rc = rg_error_hint(err, "name another place with -o FILE.onnx");
	}
	if (rc && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
	return rc;
}

int rg_onnx_write(const struct rg_graph *g, const char *path, struct rg_error *err)
{
	struct rg_str head = { 0 }, body = { 0 };
	uint64_t graph_bytes = 0;
	int rc = graph_body(&body, g, err);

	if (!rc)
		rc = initializer_sizes(g, &graph_bytes, err);
	graph_bytes += body.len;
	if (!rc && (body.failed || model_head(&head, g, graph_bytes)))
		rc = rg_error_nomem(err, body.len);
	if (!rc && head.len + graph_bytes > MAX_MESSAGE_BYTES) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "the model takes %llu bytes, an ONNX file of one piece at most %d",
			     (unsigned long long)(head.len + graph_bytes), MAX_MESSAGE_BYTES);
		rc = rg_error_hint(err, "export a smaller model");
	}
	if (!rc)
		rc = write_file(g, path, &head, &body, err);
	rg_str_free(&head);
	rg_str_free(&body);
	return rc ? rg_error_at(err, "%s", path) : 0;
}
