/* The ONNX reader on files that are right: every encoding of tensors, external
 * data, attributes, dimensions, versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "folder.h"
#include "models/onnx.h"
#include "wire.h"

/* ---- tensors ---- */

enum how { RAW, PACKED, UNPACKED, CHUNKS };

/* Writes values as `field` in one of the ways that protobuf allows. */
static void put_ints(struct wire *t, uint32_t field, const int64_t *v, int n, enum how how)
{
	struct wire list = { 0 };

	if (how == UNPACKED) {
		for (int i = 0; i < n; i++)
			wire_int(t, field, v[i]);
		return;
	}
	for (int i = 0; i < n; i++) {
		wire_varint(&list, (uint64_t)v[i]);
		if (how == CHUNKS && i == n / 2)
			wire_msg(t, field, &list);
	}
	wire_msg(t, field, &list);
}

static void put_fixed(struct wire *t, uint32_t field, const void *data, size_t width, int n, enum how how)
{
	const uint8_t *p = data;
	int first = how == CHUNKS ? 1 : n;

	for (int i = 0; how == UNPACKED && i < n; i++) {
		wire_tag(t, field, width == 4 ? 5 : 1);
		wire_raw(t, p + (size_t)i * width, width);
	}
	if (how == UNPACKED)
		return;
	wire_bytes(t, field, p, (size_t)first * width);
	wire_bytes(t, field, p + (size_t)first * width, (size_t)(n - first) * width);
}

static void expect_tensor(struct wire *t, enum rg_dtype dtype, const void *want, size_t bytes)
{
	const char *path = folder_write("t.pb", t->p, t->len);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor got;
	char *name;

	wire_free(t);
	if (rg_onnx_load_tensor(path, &got, &name, &err))
		fail_msg("%s: %s: %s", rg_dtype_name(dtype), err.where, err.message);
	assert_string_equal(name, "t");
	assert_int_equal(got.dtype, dtype);
	assert_int_equal(rg_tensor_bytes(got.dtype, &got.shape), bytes);
	assert_int_equal((uintptr_t)got.data % 64, 0);
	assert_memory_equal(got.data, want, bytes);
	rg_free(name);
	rg_free(got.data);
}

static void int_encodings(void **state)
{
	static const struct {
		enum rg_dtype dtype;
		uint32_t field;
		int64_t v[4];
		uint8_t want[32];
		size_t bytes;
	} cases[] = {
		{ RG_I32, TENSOR_INT32, { 1, -2, INT32_MAX, INT32_MIN },
		  "\x01\0\0\0\xfe\xff\xff\xff\xff\xff\xff\x7f\0\0\0\x80", 16 },
		{ RG_I16, TENSOR_INT32, { 1, -2, 32767, -32768 }, "\x01\0\xfe\xff\xff\x7f\0\x80", 8 },
		{ RG_U16, TENSOR_INT32, { 1, 2, 65535, 32768 }, "\x01\0\x02\0\xff\xff\0\x80", 8 },
		{ RG_I8, TENSOR_INT32, { 1, -2, 127, -128 }, "\x01\xfe\x7f\x80", 4 },
		{ RG_U8, TENSOR_INT32, { 1, 2, 255, 128 }, "\x01\x02\xff\x80", 4 },
		{ RG_BOOL, TENSOR_INT32, { 1, 0, 0, 1 }, "\x01\0\0\x01", 4 },
		{ RG_F16, TENSOR_INT32, { 0x3c00, 0xc000, 0, 0x7bff }, "\0\x3c\0\xc0\0\0\xff\x7b", 8 },
		{ RG_BF16, TENSOR_INT32, { 0x3f80, 0xbf80, 0, 1 }, "\x80\x3f\x80\xbf\0\0\x01\0", 8 },
		{ RG_F8E4M3FN, TENSOR_INT32, { 0, 255, 128, 1 }, "\0\xff\x80\x01", 4 },
		{ RG_I64, TENSOR_INT64, { 1, -2, INT64_MAX, INT64_MIN },
		  "\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\x80", 32 },
		{ RG_U32, TENSOR_UINT64, { 1, 2, UINT32_MAX, 0 }, "\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\0\0\0\0", 16 },
		{ RG_U64, TENSOR_UINT64, { 1, 2, -1, 0 },
		  "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 32 },
	};
	const int64_t dims[] = { 2, 2 };

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		for (int how = RAW; how <= CHUNKS; how++) {
			struct wire t = wire_tensor("t", cases[c].dtype, 2, dims);

			if (how == RAW)
				wire_bytes(&t, TENSOR_RAW, cases[c].want, cases[c].bytes);
			else
				put_ints(&t, cases[c].field, cases[c].v, 4, (enum how)how);
			expect_tensor(&t, cases[c].dtype, cases[c].want, cases[c].bytes);
		}
	}
}

static void float_encodings(void **state)
{
	const float f[4] = { 1.5f, -0.0f, 3e38f, 1e-40f };
	const double d[4] = { 1.5, -0.0, 1e308, 5e-324 };
	const int64_t four[] = { 4 }, two[] = { 2 };

	for (int how = RAW; how <= CHUNKS; how++) {
		struct wire t[4];

		t[0] = wire_tensor("t", RG_F32, 1, four);
		t[1] = wire_tensor("t", RG_F64, 1, four);
		t[2] = wire_tensor("t", RG_C64, 1, two);
		t[3] = wire_tensor("t", RG_C128, 1, two);
		for (int i = 0; i < 4; i++) {
			const void *data = i % 2 ? (const void *)d : (const void *)f;
			size_t width = i % 2 ? 8 : 4;

			if (how == RAW)
				wire_bytes(&t[i], TENSOR_RAW, data, 4 * width);
			else
				put_fixed(&t[i], i % 2 ? TENSOR_DOUBLE : TENSOR_FLOAT, data, width, 4,
					  (enum how)how);
		}
		expect_tensor(&t[0], RG_F32, f, sizeof(f));
		expect_tensor(&t[1], RG_F64, d, sizeof(d));
		expect_tensor(&t[2], RG_C64, f, sizeof(f));
		expect_tensor(&t[3], RG_C128, d, sizeof(d));
	}
}

/* Two elements a byte, four of 2 bits; an entry of int32_data is one byte. */
static void packed_encodings(void **state)
{
	const int64_t five[] = { 5 }, bytes[] = { 0x21, 0xf3, 0x05 };
	static const enum rg_dtype nibbles[] = { RG_U4, RG_I4, RG_F4E2M1 };
	struct wire t;

	for (int i = 0; i < 3; i++) {
		t = wire_tensor("t", nibbles[i], 1, five);
		wire_bytes(&t, TENSOR_RAW, "\x21\xf3\x05", 3);
		expect_tensor(&t, nibbles[i], "\x21\xf3\x05", 3);
		t = wire_tensor("t", nibbles[i], 1, five);
		put_ints(&t, TENSOR_INT32, bytes, 3, PACKED);
		expect_tensor(&t, nibbles[i], "\x21\xf3\x05", 3);
	}
	t = wire_tensor("t", RG_I2, 1, five);
	put_ints(&t, TENSOR_INT32, bytes, 2, PACKED);
	expect_tensor(&t, RG_I2, "\x21\xf3", 2);
}

static void fields_in_any_order(void **state)
{
	struct wire t = { 0 };

	wire_bytes(&t, TENSOR_RAW, "\x05\x00\x07", 3); /* data before type and shape */
	wire_str(&t, 12, "a doc string");
	wire_str(&t, TENSOR_NAME, "t");
	wire_int(&t, TENSOR_TYPE, RG_BOOL);
	wire_bytes(&t, TENSOR_DIMS, "\x03", 1);          /* packed, which proto3 writers do */
	wire_int(&t, 999, 4);                            /* a field of a later version */
	expect_tensor(&t, RG_BOOL, "\x01\x00\x01", 3);   /* booleans come out as 0 and 1 */
}

static void empty_and_scalar(void **state)
{
	const int64_t none[] = { 0, 5 };
	struct wire t = wire_tensor("t", RG_F32, 2, none);

	expect_tensor(&t, RG_F32, "", 0);
	t = wire_tensor("t", RG_U8, 0, NULL);
	wire_bytes(&t, TENSOR_RAW, "\x2a", 1);
	expect_tensor(&t, RG_U8, "\x2a", 1);
}

static void external_data(void **state)
{
	const int64_t two[] = { 2 };
	struct wire t;

	folder_write("weights.bin", "abcdefgh", 8);
	t = wire_tensor("t", RG_U8, 1, two);
	wire_external(&t, "weights.bin", "3", "2");
	expect_tensor(&t, RG_U8, "de", 2);
	t = wire_tensor("t", RG_U8, 1, two);
	wire_external(&t, "weights.bin", "6", NULL); /* up to the end */
	expect_tensor(&t, RG_U8, "gh", 2);
	/* A link inside the folder is fine. */
	assert_int_equal(symlink("weights.bin", folder_path("link.bin")), 0);
	t = wire_tensor("t", RG_U8, 1, two);
	wire_external(&t, "link.bin", "0", "2");
	expect_tensor(&t, RG_U8, "ab", 2);
}

/* ---- models ---- */

static struct rg_graph *load(struct wire *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g;

	if (rg_onnx_load_memory(m->p, m->len, "test", &g, &err))
		fail_msg("%s: %s", err.where, err.message);
	wire_free(m);
	return g;
}

static void small_model(void **state)
{
	struct wire m = wire_small_model();
	struct rg_graph *g = load(&m);
	const struct rg_node *n;
	const struct rg_attr *a;
	const struct rg_value *v;
	const int64_t *ints;
	const float *floats;

	assert_string_equal(g->name, "small");
	assert_string_equal(g->producer, "wire 2.1");
	assert_int_equal(g->ir_version, 8);
	assert_int_equal(g->n_opsets, 1);
	assert_int_equal(g->opsets[0].version, 13);
	/* w is an initialiser, so it is no input although it is listed. */
	assert_int_equal(g->n_inputs, 1);
	assert_string_equal(g->values[g->inputs[0]].name, "x");
	assert_int_equal(g->n_outputs, 1);
	v = &g->values[rg_graph_find_value(g, "w")];
	assert_int_equal(v->origin, RG_CONST_INITIALIZER);
	assert_int_equal((uintptr_t)v->data % 64, 0);
	assert_true(((const float *)v->data)[5] == 6);

	assert_int_equal(g->n_nodes, 1);
	n = &g->nodes[0];
	assert_string_equal(n->name, "sum");
	assert_true(rg_node_float(n, "f", 0) == 0.5f);
	assert_int_equal(rg_node_int(n, "i", 0), -3);
	assert_string_equal(rg_node_string(n, "s", ""), "text");
	assert_int_equal(rg_node_floats(n, "floats", &floats), 6);
	assert_true(floats[5] == 6);
	assert_int_equal(rg_node_ints(n, "ints", &ints), 2);
	assert_int_equal(ints[1], -8);
	a = rg_node_attr(n, "strings");
	assert_int_equal(a->count, 2);
	assert_string_equal(a->strings[0], "one");
	assert_string_equal(a->strings[1], "");
	a = rg_node_attr(n, "t");
	assert_int_equal(a->t.dtype, RG_I64);
	assert_int_equal(((const int64_t *)a->t.data)[1], -9);
	a = rg_node_attr(n, "g");
	assert_ptr_equal(a->g->outer, g);
	assert_int_equal(a->g->n_nodes, 1);
	assert_true(a->g->values[rg_graph_find_value(a->g, "x")].from_outer);
	rg_graph_free(g);
}

/* Files of the first IR version state no attribute types. */
static void attribute_types_are_inferred(void **state)
{
	struct wire g = { 0 }, n = wire_node("Relu", "x", NULL, "y"), a = { 0 }, v, m;
	struct rg_graph *graph;

	wire_str(&a, ATTR_NAME, "alpha");
	wire_f32(&a, ATTR_F, 2);
	wire_msg(&n, NODE_ATTR, &a);
	wire_str(&a, ATTR_NAME, "axes");
	wire_int(&a, ATTR_INTS, 4);
	wire_msg(&n, NODE_ATTR, &a);
	wire_msg(&g, GRAPH_NODE, &n);
	v = wire_value("x", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	graph = load(&m);
	assert_int_equal(rg_node_attr(&graph->nodes[0], "alpha")->type, RG_ATTR_FLOAT);
	assert_int_equal(rg_node_attr(&graph->nodes[0], "axes")->type, RG_ATTR_INTS);
	assert_string_equal(graph->nodes[0].name, "Relu_0");
	rg_graph_free(graph);
}

static void open_dimensions(void **state)
{
	const int64_t dims[] = { -1, -2, 0, 7 }; /* negative, absent, zero, given */
	struct wire g = { 0 }, n = wire_node("Relu", "x", NULL, "y"), v, m, dim = { 0 }, shape = { 0 },
		    tensor = { 0 }, type = { 0 };
	struct rg_graph *graph;
	const struct rg_value *x, *z;

	wire_msg(&g, GRAPH_NODE, &n);
	n = wire_node("Relu", "z", NULL, "u");
	wire_msg(&g, GRAPH_NODE, &n);
	v = wire_value("x", RG_F32, 4, dims);
	wire_msg(&g, GRAPH_INPUT, &v);
	wire_str(&dim, 2, "batch");
	wire_msg(&shape, 1, &dim);
	wire_str(&dim, 2, "");
	wire_msg(&shape, 1, &dim);
	wire_int(&tensor, 1, RG_F32);
	wire_msg(&tensor, 2, &shape);
	wire_msg(&type, 1, &tensor);
	wire_str(&v, 1, "z");
	wire_msg(&v, 2, &type);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	graph = load(&m);
	x = &graph->values[rg_graph_find_value(graph, "x")];
	assert_int_equal(x->declared_rank, 4);
	assert_int_equal(x->declared[0].value, -1);
	assert_int_equal(x->declared[1].value, -1);
	assert_int_equal(x->declared[2].value, 0);
	assert_int_equal(x->declared[3].value, 7);
	assert_null(x->declared[0].symbol);
	z = &graph->values[rg_graph_find_value(graph, "z")];
	assert_string_equal(z->declared[0].symbol, "batch");
	assert_int_equal(z->declared[0].value, -1);
	assert_null(z->declared[1].symbol);
	assert_int_equal(z->declared[1].value, -1);
	assert_int_equal(graph->values[rg_graph_find_value(graph, "y")].declared_rank, -1);
	rg_graph_free(graph);
}

static struct wire relu_graph(void)
{
	struct wire g = { 0 }, n = wire_node("Relu", "x", NULL, "y"), v = wire_value("x", RG_F32, -1, NULL);

	wire_msg(&g, GRAPH_NODE, &n);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	return g;
}

/* A model may carry functions; only calling one is refused. */
static void uncalled_functions(void **state)
{
	struct wire g = relu_graph(), m = wire_model(8, 13, &g), f = { 0 };
	struct rg_graph *graph;

	wire_str(&f, 1, "Gelu");
	wire_str(&f, 10, "local");
	wire_msg(&m, MODEL_FUNCTION, &f);
	graph = load(&m);
	assert_int_equal(graph->n_nodes, 1);
	rg_graph_free(graph);
}

static void old_models_mean_opset_1(void **state)
{
	struct wire g = { 0 }, t, v, m;
	struct rg_graph *graph;
	const int64_t one[] = { 1 };

	t = wire_tensor("y", RG_U8, 1, one);
	wire_bytes(&t, TENSOR_RAW, "\x01", 1);
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	v = wire_value("y", RG_U8, 1, one);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(2, -1, &g);
	graph = load(&m);
	assert_int_equal(graph->n_opsets, 1);
	assert_int_equal(graph->opsets[0].version, 1);
	rg_graph_free(graph);
}

static void add_constant(struct wire *g, const char *name, int n)
{
	const float data[3] = { 1, 2, 3 };
	const int64_t dims[] = { n };
	struct wire node = wire_node("Constant", NULL, NULL, name), a = { 0 };
	struct wire t = wire_tensor("", RG_F32, n == 1 ? 0 : 1, dims);

	wire_bytes(&t, TENSOR_RAW, data, (size_t)n * sizeof(float));
	wire_str(&a, ATTR_NAME, "value");
	wire_msg(&a, ATTR_T, &t);
	wire_int(&a, ATTR_TYPE, 4);
	wire_msg(&node, NODE_ATTR, &a);
	wire_msg(g, GRAPH_NODE, &node);
}

/* As Paddle's exporter writes them; factors of formulas are no parameters. */
static void weights_in_constant_nodes(void **state)
{
	struct wire g = { 0 }, v = wire_value("x", RG_F32, -1, NULL), m, n;
	struct rg_graph *graph;

	wire_msg(&g, GRAPH_INPUT, &v);
	add_constant(&g, "weight", 3);
	add_constant(&g, "half", 1);
	n = wire_node("Add", "x", "weight", "t");
	wire_msg(&g, GRAPH_NODE, &n);
	n = wire_node("Add", "t", "half", "y");
	wire_msg(&g, GRAPH_NODE, &n);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	graph = load(&m);
	assert_int_equal(graph->n_nodes, 2);
	assert_int_equal(rg_graph_count_params(graph), 3);
	assert_int_equal(rg_graph_weight_bytes(graph), 16);
	rg_graph_free(graph);
}

/* A file is read through a window; a field that crosses its edge must not differ
 * from the same model in memory. */
static void file_equals_memory(void **state)
{
	static float data[50000];
	const int64_t dims[] = { 50000 }, three[] = { 3 };
	struct wire g = relu_graph(), t, m;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *a, *b;

	for (int i = 0; i < 50000; i++)
		data[i] = (float)i;
	for (int i = 0; i < 3000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "small%d", i);
		t = wire_tensor(name, RG_U8, 1, three);
		wire_bytes(&t, TENSOR_RAW, name + 5, 3);
		wire_msg(&g, GRAPH_INITIALIZER, &t);
	}
	t = wire_tensor("raw", RG_F32, 1, dims);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	t = wire_tensor("list", RG_F32, 1, dims);
	wire_bytes(&t, TENSOR_FLOAT, data, sizeof(data));
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	m = wire_model(8, 13, &g);
	if (rg_onnx_load(folder_write("m.onnx", m.p, m.len), NULL, &a, &err))
		fail_msg("%s: %s", err.where, err.message);
	b = load(&m);
	assert_int_equal(a->n_values, b->n_values);
	for (int i = 0; i < a->n_values; i++) {
		const struct rg_value *x = &a->values[i], *y = &b->values[i];

		assert_string_equal(x->name, y->name);
		if (x->origin != RG_CONST_NONE)
			assert_memory_equal(x->data, y->data, (size_t)rg_tensor_bytes(x->dtype, &x->shape));
	}
	assert_memory_equal(a->values[rg_graph_find_value(a, "raw")].data, data, sizeof(data));
	assert_memory_equal(a->values[rg_graph_find_value(a, "list")].data, data, sizeof(data));
	rg_graph_free(a);
	rg_graph_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(int_encodings),
		cmocka_unit_test(float_encodings),
		cmocka_unit_test(packed_encodings),
		cmocka_unit_test(fields_in_any_order),
		cmocka_unit_test(empty_and_scalar),
		cmocka_unit_test(external_data),
		cmocka_unit_test(small_model),
		cmocka_unit_test(attribute_types_are_inferred),
		cmocka_unit_test(open_dimensions),
		cmocka_unit_test(uncalled_functions),
		cmocka_unit_test(old_models_mean_opset_1),
		cmocka_unit_test(weights_in_constant_nodes),
		cmocka_unit_test(file_equals_memory),
	};

	return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
