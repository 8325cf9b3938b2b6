/* A writer of protobuf's wire format, for tests. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

void wire_free(struct wire *w)
{
	free(w->p);
	memset(w, 0, sizeof(*w));
}

void wire_raw(struct wire *w, const void *p, size_t n)
{
	if (w->len + n > w->cap) {
		w->cap = (w->len + n) * 2;
		w->p = realloc(w->p, w->cap);
		if (!w->p)
			abort();
	}
	if (n)
		memcpy(w->p + w->len, p, n);
	w->len += n;
}

void wire_varint(struct wire *w, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	do {
		b[n] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		n++;
		v >>= 7;
	} while (v);
	wire_raw(w, b, n);
}

void wire_tag(struct wire *w, uint32_t field, int type)
{
	wire_varint(w, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_int(struct wire *w, uint32_t field, int64_t v)
{
	wire_tag(w, field, 0);
	wire_varint(w, (uint64_t)v);
}

void wire_f32(struct wire *w, uint32_t field, float v)
{
	wire_tag(w, field, 5);
	wire_raw(w, &v, sizeof(v));
}

void wire_bytes(struct wire *w, uint32_t field, const void *p, size_t n)
{
	wire_tag(w, field, 2);
	wire_varint(w, n);
	wire_raw(w, p, n);
}

void wire_str(struct wire *w, uint32_t field, const char *s)
{
	wire_bytes(w, field, s, strlen(s));
}

void wire_msg(struct wire *w, uint32_t field, struct wire *sub)
{
	wire_bytes(w, field, sub->p, sub->len);
	wire_free(sub);
}

struct wire wire_node(const char *op, const char *in0, const char *in1, const char *out)
{
	struct wire n = { 0 };

	if (in0)
		wire_str(&n, NODE_INPUT, in0);
	if (in1)
		wire_str(&n, NODE_INPUT, in1);
	if (out)
		wire_str(&n, NODE_OUTPUT, out);
	if (op)
		wire_str(&n, NODE_OP, op);
	return n;
}

struct wire wire_value(const char *name, enum rg_dtype dtype, int rank, const int64_t *dims)
{
	struct wire v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };

	for (int i = 0; i < rank; i++) {
		if (dims[i] >= -1)
			wire_int(&dim, 1, dims[i]);
		wire_msg(&shape, 1, &dim);
	}
	wire_int(&tensor, 1, dtype);
	if (rank >= 0)
		wire_msg(&tensor, 2, &shape);
	wire_msg(&type, 1, &tensor);
	wire_str(&v, 1, name);
	wire_msg(&v, 2, &type);
	return v;
}

struct wire wire_tensor(const char *name, enum rg_dtype dtype, int rank, const int64_t *dims)
{
	struct wire t = { 0 };

	for (int i = 0; i < rank; i++)
		wire_int(&t, TENSOR_DIMS, dims[i]);
	wire_int(&t, TENSOR_TYPE, dtype);
	if (name)
		wire_str(&t, TENSOR_NAME, name);
	return t;
}

void wire_external(struct wire *tensor, const char *location, const char *offset, const char *length)
{
	const char *keys[] = { "location", "offset", "length" }, *values[] = { location, offset, length };

	for (int i = 0; i < 3; i++) {
		struct wire e = { 0 };

		if (!values[i])
			continue;
		wire_str(&e, 1, keys[i]);
		wire_str(&e, 2, values[i]);
		wire_msg(tensor, TENSOR_EXTERNAL, &e);
	}
	wire_int(tensor, TENSOR_LOCATION, 1);
}

struct wire wire_model(int64_t ir, int64_t opset, struct wire *graph)
{
	struct wire m = { 0 }, o = { 0 };

	wire_int(&m, MODEL_IR, ir);
	wire_str(&m, MODEL_PRODUCER, "wire");
	wire_str(&m, MODEL_PRODUCER_VERSION, "2.1");
	wire_msg(&m, MODEL_GRAPH, graph);
	if (opset >= 0) {
		wire_str(&o, 1, "");
		wire_int(&o, 2, opset);
		wire_msg(&m, MODEL_OPSET, &o);
	}
	return m;
}

static void add_attr(struct wire *node, const char *name, int type, struct wire *value)
{
	struct wire a = { 0 };

	wire_str(&a, ATTR_NAME, name);
	wire_raw(&a, value->p, value->len);
	wire_int(&a, ATTR_TYPE, type);
	wire_free(value);
	wire_msg(node, NODE_ATTR, &a);
}

struct wire wire_small_model(void)
{
	const int64_t dims[] = { 2, 3 }, open[] = { -1, 3 };
	struct wire g = { 0 }, n, t, v = { 0 }, sub = { 0 }, node;
	float data[6] = { 1, 2, 3, 4, 5, 6 };
	int64_t ints[2] = { 7, -8 };

	t = wire_tensor("w", RG_F32, 2, dims);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	t = wire_tensor("b", RG_F32, 2, dims);
	wire_bytes(&t, TENSOR_FLOAT, data, sizeof(data));
	wire_msg(&g, GRAPH_INITIALIZER, &t);

	n = wire_node("Add", "x", "w", "y");
	wire_str(&n, NODE_NAME, "sum");
	wire_f32(&v, ATTR_F, 0.5f);
	add_attr(&n, "f", 1, &v);
	wire_int(&v, ATTR_I, -3);
	add_attr(&n, "i", 2, &v);
	wire_str(&v, ATTR_S, "text");
	add_attr(&n, "s", 3, &v);
	wire_bytes(&v, ATTR_FLOATS, data, sizeof(data));
	add_attr(&n, "floats", 6, &v);
	wire_int(&v, ATTR_INTS, ints[0]);
	wire_int(&v, ATTR_INTS, ints[1]);
	add_attr(&n, "ints", 7, &v);
	wire_str(&v, ATTR_STRINGS, "one");
	wire_str(&v, ATTR_STRINGS, "");
	add_attr(&n, "strings", 8, &v);
	t = wire_tensor("", RG_I64, 1, dims);
	wire_int(&t, TENSOR_INT64, 9);
	wire_int(&t, TENSOR_INT64, -9);
	wire_msg(&v, ATTR_T, &t);
	add_attr(&n, "t", 4, &v);
	node = wire_node("Add", "b", "x", "inner");
	wire_msg(&sub, GRAPH_NODE, &node);
	node = wire_value("inner", RG_F32, -1, NULL);
	wire_msg(&sub, GRAPH_OUTPUT, &node);
	wire_msg(&v, ATTR_G, &sub);
	add_attr(&n, "g", 5, &v);
	wire_msg(&g, GRAPH_NODE, &n);

	wire_str(&g, GRAPH_NAME, "small");
	v = wire_value("x", RG_F32, 2, open);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("w", RG_F32, 2, dims);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, 2, open);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	return wire_model(8, 13, &g);
}
