/* The ONNX reader on files that are wrong: every one must come back as an error
 * that says what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/rng.h"
#include "expect.h"
#include "folder.h"
#include "models/onnx.h"
#include "wire.h"

/* ---- not ONNX ---- */

static void other_formats(void **state)
{
	static const struct { const char *data; size_t n; const char *what; } files[] = {
		{ "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "this is a PNG image, not an ONNX model" },
		{ "PK\x03\x04\x14\0\0\0", 8, "this is a ZIP archive" },
		{ "\x1c\0\0\0TFL3\0\0", 10, "this is a TensorFlow Lite model" },
		{ "GGUF\x03\0\0\0", 8, "this is a GGUF model" },
		{ "version https://git-lfs.github.com/spec/v1\n", 43, "this is a Git LFS pointer" },
		{ "<!DOCTYPE html><html>", 21, "this is a web page" },
		{ "hello, I am text\n", 17, "this is text, not an ONNX model" },
		{ ": \n", 3, "this is text, not an ONNX model" }, /* ':' is the tag of the graph */
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		expect_file_error(folder_write("model.onnx", files[i].data, files[i].n), -EINVAL,
				  files[i].what);
	expect_file_error(folder_write("model.onnx", "\0\0\0\0", 4), -EBADMSG, "zero");
	expect_file_error(folder_write("model.onnx", "", 0), -EINVAL, "the file is empty");
	expect_file_error(folder_path("."), -EISDIR, "this is a directory");
	expect_file_error(folder_path("missing.onnx"), -ENOENT, "cannot be opened");
	expect_file_error("/dev/zero", -EINVAL, "not a regular file");
	assert_int_equal(mkfifo(folder_path("fifo.onnx"), 0600), 0);
	expect_file_error(folder_path("fifo.onnx"), -EINVAL, "not a regular file");
}

/* Whatever is missing at the end: an error, or (never here) a valid model. */
static void truncated_at_every_byte(void **state)
{
	struct wire m = wire_small_model();
	int valid = 0;

	for (size_t n = 0; n < m.len; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;
		/* A copy of exactly that size, so that a sanitizer sees a read behind it. */
		uint8_t *copy = malloc(n ? n : 1);
		int rc;

		memcpy(copy, m.p, n);
		rc = rg_onnx_load_memory(copy, n, "m", &g, &err);
		free(copy);
		rg_graph_free(g);
		if (rc == 0)
			valid++;
		else
			assert_true(err.code == rc && err.message[0]);
	}
	assert_int_equal(valid, 0); /* opset_import stands last */
	wire_free(&m);
}

static void mutated(void **state)
{
	struct wire m = wire_small_model();
	uint64_t stream = rg_rng_stream(1, "mutations");
	int accepted = 0, refused = 0;

	for (uint64_t i = 0; i < 20000; i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;
		size_t at = (size_t)rg_rng_integer(stream, 2 * i, 0, (int64_t)m.len - 1);
		uint8_t old = m.p[at];

		m.p[at] = (uint8_t)rg_rng_u64(stream, 2 * i + 1);
		if (rg_onnx_load_memory(m.p, m.len, "m", &g, &err) == 0) {
			accepted++;
			rg_graph_free(g);
		} else {
			assert_null(g);
			assert_true(err.message[0]);
			refused++;
		}
		m.p[at] = old;
	}
	wire_free(&m);
	/* Both must happen, or the test looks at nothing. */
	assert_true(accepted > 100);
	assert_true(refused > 1000);
}

/* ---- tensors that lie ---- */

static void dims_that_overflow(void **state)
{
	const int64_t huge[] = { INT64_MAX, INT64_MAX }, big[] = { 1 << 20, 1 << 20, 1 << 20 },
		      edge[] = { (int64_t)1 << 61 }, negative[] = { 2, -3 }, two_gib[] = { 1 << 29 };
	int64_t deep[13];
	struct wire t;

	for (int i = 0; i < 13; i++)
		deep[i] = 1;
	t = wire_tensor("w", RG_F32, 2, huge);
	t = model_with_tensor(&t);
	expect_error(&t, -EOVERFLOW, "initializer 'w'");
	t = wire_tensor("w", RG_F32, 3, big);
	t = model_with_tensor(&t);
	expect_error(&t, -EFBIG, "1048576x1048576x1048576");
	t = wire_tensor("w", RG_F64, 1, edge);
	t = model_with_tensor(&t);
	expect_error(&t, -EOVERFLOW, "more than can be counted");
	t = wire_tensor("w", RG_F32, 2, negative);
	t = model_with_tensor(&t);
	expect_error(&t, -EINVAL, "dims[1] is -3");
	t = wire_tensor("w", RG_U8, 13, deep);
	wire_bytes(&t, TENSOR_RAW, "x", 1);
	t = model_with_tensor(&t);
	expect_error(&t, RG_ENOTSUP_MODEL, "rank 13 is more than 12");
	t = wire_tensor("w", RG_F32, 1, two_gib);
	wire_bytes(&t, TENSOR_RAW, "tiny", 4);
	t = model_with_tensor(&t);
	expect_error(&t, -EINVAL, "raw_data holds 4 bytes, but float32 of shape 536870912 needs 2147483648");
}

static void data_that_does_not_fit(void **state)
{
	const int64_t two[] = { 2 };
	struct wire t;

#define CASE(dtype, put, code, text) do { \
		t = wire_tensor("w", dtype, 1, two); \
		put; \
		t = model_with_tensor(&t); \
		expect_error(&t, code, text); \
	} while (0)
	CASE(RG_F32, wire_bytes(&t, TENSOR_RAW, "1234567", 7), -EINVAL, "holds 7 bytes");
	CASE(RG_F32, wire_bytes(&t, TENSOR_RAW, "123456789", 9), -EINVAL, "holds 9 bytes");
	CASE(RG_F32, wire_bytes(&t, TENSOR_FLOAT, "1234", 4), -EINVAL, "float_data holds 1 entries");
	CASE(RG_F32, wire_bytes(&t, TENSOR_FLOAT, "12345", 5), -EBADMSG, "ends inside an element");
	CASE(RG_F32, wire_int(&t, TENSOR_INT32, 1), -EINVAL, "cannot stand in int32_data");
	CASE(RG_F32, (void)0, -EINVAL, "there is no data");
	CASE(RG_I8, wire_bytes(&t, TENSOR_INT32, "\x01\xac\x02", 3), -ERANGE,
	     "int32_data holds 300, which int8 cannot");
	CASE(RG_BOOL, wire_bytes(&t, TENSOR_INT32, "\x01\x02", 2), -ERANGE, "which bool cannot");
	CASE(RG_I64, wire_bytes(&t, TENSOR_INT64, "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),
	     -EBADMSG, "damaged");
	CASE(RG_U8, (wire_bytes(&t, TENSOR_RAW, "ab", 2), wire_int(&t, TENSOR_INT32, 1)), -EINVAL,
	     "in both int32_data and raw_data");
	CASE(RG_U8, (wire_bytes(&t, TENSOR_RAW, "ab", 2), wire_bytes(&t, TENSOR_RAW, "ab", 2)), -EINVAL,
	     "raw_data stands twice");
	CASE(RG_U8, wire_int(&t, TENSOR_RAW, 1), -EBADMSG, "raw_data has the wrong wire type");
	CASE(RG_STRING, wire_str(&t, TENSOR_STRING, "a"), -EINVAL, "string_data holds 1 entries");
	CASE(RG_STRING, (wire_str(&t, TENSOR_STRING, "a"), wire_bytes(&t, TENSOR_STRING, "a\0b", 3)),
	     RG_ENOTSUP_MODEL, "a string holds a NUL byte");
	CASE(RG_STRING, wire_bytes(&t, TENSOR_RAW, "0123456789abcdef", 16), -EINVAL, "cannot stand in raw_data");
	CASE(RG_DTYPE_COUNT, (void)0, RG_ENOTSUP_MODEL, "element type 27 is not known");
	CASE(RG_UNDEFINED, (void)0, -EINVAL, "data_type is missing");
	CASE(RG_U8, wire_bytes(&t, TENSOR_SEGMENT, "", 0), RG_ENOTSUP_MODEL, "segments");
#undef CASE
	t = wire_tensor(NULL, RG_U8, 1, two);
	wire_bytes(&t, TENSOR_RAW, "ab", 2);
	t = model_with_tensor(&t);
	expect_error(&t, -EINVAL, "the name is missing");
}

/* ---- graphs ---- */

static void versions(void **state)
{
	struct wire g, m, o = { 0 };

#define CASE(ir, opset, code, text) do { \
		g = relu_graph(); \
		m = wire_model(ir, opset, &g); \
		expect_error(&m, code, text); \
	} while (0)
	CASE(8, 0, -EINVAL, "opset version 0");
	CASE(8, 99, RG_ENOTSUP_MODEL, "opset 99");
	CASE(8, INT64_MAX, RG_ENOTSUP_MODEL, "opset 9223372036854775807");
	CASE(8, -1, -EINVAL, "opset_import is missing");
	CASE(0, 13, -EINVAL, "ir_version is missing");
	CASE(99, 13, RG_ENOTSUP_MODEL, "ir_version 99 is newer");
#undef CASE
	g = relu_graph();
	m = wire_model(8, 13, &g);
	wire_int(&o, 2, 14);
	wire_msg(&m, MODEL_OPSET, &o);
	expect_error(&m, -EINVAL, "imported twice");
	g = relu_graph();
	m = wire_model(8, 13, &g);
	g = relu_graph();
	wire_msg(&m, MODEL_GRAPH, &g);
	expect_error(&m, -EINVAL, "two graphs");
	memset(&m, 0, sizeof(m));
	wire_int(&m, MODEL_IR, 8);
	expect_error(&m, -EINVAL, "holds no graph");
}

static void names(void **state)
{
	static const struct { const char *name; const char *what; } bad[] = {
		{ "a\x1b[2Jb", "holds a control character" },
		{ "a\nb", "holds a control character" },
		{ "a\x7f", "holds a control character" },
		{ "a\xc2\x9b" "b", "holds a control character" }, /* C1: CSI in one character */
		{ "a\xff", "is not valid UTF-8" },
		{ "a\xc3", "is not valid UTF-8" },
		{ "\xc0\x80", "is not valid UTF-8" },             /* overlong */
		{ "\xed\xa0\x80", "is not valid UTF-8" },         /* a surrogate */
		{ "\xf4\x90\x80\x80", "is not valid UTF-8" },     /* beyond U+10FFFF */
	};
	struct wire g, m, n;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *graph;
	char *longest = malloc(70001);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = wire_node("Relu", "x", NULL, bad[i].name);
		g = graph_of(&n);
		m = wire_model(8, 13, &g);
		expect_error(&m, -EINVAL, bad[i].what);
	}
	n = wire_node("Relu", "x", NULL, NULL);
	wire_bytes(&n, NODE_OUTPUT, "y\0z", 3);
	g = graph_of(&n);
	m = wire_model(8, 13, &g);
	expect_error(&m, -EINVAL, "holds a control character");
	memset(longest, 'a', 70000);
	longest[70000] = '\0';
	n = wire_node("Relu", "x", NULL, longest);
	g = graph_of(&n);
	m = wire_model(8, 13, &g);
	expect_error(&m, -E2BIG, "more than the limit");
	free(longest);
	/* Other languages are welcome. */
	n = wire_node("Relu", "x", NULL, "y");
	wire_str(&n, NODE_NAME, "\xe5\xb1\xa4-\xf0\x9f\x99\x82-\xc3\xa9");
	g = graph_of(&n);
	m = wire_model(8, 13, &g);
	assert_int_equal(rg_onnx_load_memory(m.p, m.len, "m", &graph, &err), 0);
	rg_graph_free(graph);
	wire_free(&m);
}

static void nodes(void **state)
{
	struct wire g, m, n, a = { 0 };
	const int64_t one[] = { 1 };

#define CASE(code, text) do { \
		g = graph_of(&n); \
		m = wire_model(8, 13, &g); \
		expect_error(&m, code, text); \
	} while (0)
#define ATTR(put) do { \
		n = wire_node("Relu", "x", NULL, "y"); \
		wire_str(&a, ATTR_NAME, "k"); \
		put; \
		wire_msg(&n, NODE_ATTR, &a); \
	} while (0)
	n = wire_node(NULL, "x", NULL, "y");
	CASE(-EINVAL, "node 0 (?): op_type is missing");
	n = wire_node("Nonsense", "x", NULL, "y");
	CASE(RG_ENOTSUP_MODEL, "Nonsense");
	n = wire_node("Relu", "x", NULL, "y");
	wire_str(&n, NODE_DOMAIN, "com.example");
	CASE(RG_ENOTSUP_MODEL, "com.example.Relu");
	n = wire_node("Relu", "nowhere", NULL, "y");
	CASE(-EINVAL, "nowhere");
	n = wire_node("Relu", "x", NULL, "x");
	CASE(-EINVAL, "'x'");
	n = wire_node("Add", "y", "x", "y");
	CASE(-EINVAL, "cycle");
	n = wire_node("LeakyRelu", "x", NULL, "y");
	wire_str(&n, NODE_NAME, "leak");
	wire_str(&a, ATTR_NAME, "alpha");
	wire_int(&a, ATTR_I, 1);
	wire_msg(&n, NODE_ATTR, &a);
	CASE(-EINVAL, "attribute 'alpha' of node 'leak' (LeakyRelu) is an integer, but must be a float");
	n = wire_node("Relu", "x", NULL, "y");
	wire_int(&n, NODE_ATTR, 5);
	CASE(-EBADMSG, "wrong wire type");
	n = wire_node("Relu", "x", NULL, "y");
	wire_int(&n, NODE_NAME, 5);
	CASE(-EBADMSG, "wrong wire type");

	ATTR((void)0);
	CASE(-EINVAL, "attribute 'k': the attribute has no value");
	ATTR((wire_int(&a, ATTR_I, 1), wire_int(&a, ATTR_TYPE, 4)));
	CASE(-EINVAL, "does not hold what its type");
	ATTR((wire_int(&a, ATTR_INTS, 1), wire_f32(&a, ATTR_FLOATS, 1)));
	CASE(-EINVAL, "lists of two types");
	ATTR((wire_int(&a, ATTR_TYPE, 99)));
	CASE(RG_ENOTSUP_MODEL, "attribute type 99");
	ATTR((wire_bytes(&a, ATTR_TENSORS, "", 0), wire_int(&a, ATTR_TYPE, 9)));
	CASE(RG_ENOTSUP_MODEL, "a list of tensors");
	ATTR((wire_str(&a, ATTR_REF, "outer"), wire_int(&a, ATTR_I, 1)));
	CASE(-EINVAL, "outside a function");
	ATTR(wire_bytes(&a, ATTR_STRINGS, "a\0b", 3));
	CASE(RG_ENOTSUP_MODEL, "NUL");
	ATTR(wire_int(&a, ATTR_I, 1));
	wire_str(&a, ATTR_NAME, "k");
	wire_int(&a, ATTR_I, 2);
	wire_msg(&n, NODE_ATTR, &a);
	CASE(-EINVAL, "attribute 'k' stands twice");
#undef ATTR
#undef CASE
	g = relu_graph();
	n = wire_node("Relu", "x", NULL, "y");
	wire_msg(&g, GRAPH_NODE, &n);
	m = wire_model(8, 13, &g);
	expect_error(&m, -EINVAL, "produced by two nodes");

	g = relu_graph();
	for (int i = 0; i < 2; i++) {
		n = wire_tensor("w", RG_U8, 1, one);
		wire_bytes(&n, TENSOR_RAW, "a", 1);
		wire_msg(&g, GRAPH_INITIALIZER, &n);
	}
	m = wire_model(8, 13, &g);
	expect_error(&m, -EINVAL, "initializer 'w'");

	g = relu_graph();
	n = wire_value("x", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_INPUT, &n);
	m = wire_model(8, 13, &g);
	expect_error(&m, -EINVAL, "listed twice");

	g = relu_graph();
	a = wire_tensor("sparse", RG_F32, 1, one);
	wire_msg(&n, 1, &a);
	wire_msg(&g, GRAPH_SPARSE, &n);
	m = wire_model(8, 13, &g);
	expect_error(&m, RG_ENOTSUP_MODEL, "initializer 'sparse': sparse initializers");
}

/* A model whose input 'odd' has the type whose TypeProto is `bytes`. */
static struct wire model_with_type(const void *bytes, size_t n)
{
	struct wire g = relu_graph(), v = { 0 }, type = { 0 };

	wire_raw(&type, bytes, n);
	wire_str(&v, 1, "odd");
	wire_msg(&v, 2, &type);
	wire_msg(&g, GRAPH_INPUT, &v);
	return wire_model(8, 13, &g);
}

/* TypeProto: 4 sequence, 5 map, 8 sparse, 9 optional; their element type is 1. */
static void other_types(void **state)
{
	struct wire m;

	m = model_with_type("\x2a\x00", 2);
	expect_error(&m, RG_ENOTSUP_MODEL, "input 'odd': it is a map");
	m = model_with_type("\x42\x00", 2);
	expect_error(&m, RG_ENOTSUP_MODEL, "input 'odd': it is a sparse tensor");
	/* sequence(map), sequence(sequence(tensor)), optional(optional(tensor)) */
	m = model_with_type("\x22\x04\x0a\x02\x2a\x00", 6);
	expect_error(&m, RG_ENOTSUP_MODEL, "input 'odd': it is a map");
	m = model_with_type("\x22\x08\x0a\x06\x22\x04\x0a\x02\x0a\x00", 10);
	expect_error(&m, RG_ENOTSUP_MODEL, "input 'odd': it is a sequence of sequences");
	m = model_with_type("\x4a\x08\x0a\x06\x4a\x04\x0a\x02\x0a\x00", 10);
	expect_error(&m, RG_ENOTSUP_MODEL, "input 'odd': it is an optional inside of another type");
}

static void empty_graph(void **state)
{
	struct wire g = { 0 }, m = wire_model(8, 13, &g), v;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *graph = NULL;

	expect_error(&m, -EINVAL, "the model has no outputs");
	v = wire_value("x", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("x", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	assert_int_equal(rg_onnx_load_memory(m.p, m.len, "m", &graph, &err), 0);
	assert_int_equal(graph->n_nodes, 0);
	assert_int_equal(graph->n_values, 1);
	rg_graph_free(graph);
	wire_free(&m);
}

static void a_long_chain(void **state)
{
	struct wire g = { 0 }, v = wire_value("v0", RG_F32, -1, NULL), m, n;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *graph = NULL;
	enum { LENGTH = 100000 };
	char in[16], out[16];

	wire_msg(&g, GRAPH_INPUT, &v);
	/* Backwards, so that sorting has to walk the whole chain. */
	for (int i = LENGTH; i > 0; i--) {
		snprintf(in, sizeof(in), "v%d", i - 1);
		snprintf(out, sizeof(out), "v%d", i);
		n = wire_node("Relu", in, NULL, out);
		wire_msg(&g, GRAPH_NODE, &n);
	}
	snprintf(out, sizeof(out), "v%d", LENGTH);
	v = wire_value(out, RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	if (rg_onnx_load_memory(m.p, m.len, "m", &graph, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(graph->n_nodes, LENGTH);
	assert_string_equal(graph->values[graph->nodes[0].in[0]].name, "v0");
	rg_graph_free(graph);
	wire_free(&m);
}

static void deep_subgraphs(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	struct wire m = nested_model("Relu", "body", RG_MAX_SUBGRAPH_DEPTH);

	if (rg_onnx_load_memory(m.p, m.len, "m", &g, &err))
		fail_msg("%s: %s", err.where, err.message);
	rg_graph_free(g);
	wire_free(&m);
	m = nested_model("Relu", "body", RG_MAX_SUBGRAPH_DEPTH + 1);
	expect_error(&m, RG_ENOTSUP_MODEL, "nested deeper than 32");
	m = nested_model("If", "then_branch", 10000);
	expect_error(&m, RG_ENOTSUP_MODEL, "nested deeper than 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(other_formats),
		TEST(truncated_at_every_byte),
		TEST(mutated),
		TEST(dims_that_overflow),
		TEST(data_that_does_not_fit),
		TEST(versions),
		TEST(names),
		TEST(nodes),
		TEST(other_types),
		TEST(empty_graph),
		TEST(a_long_chain),
		TEST(deep_subgraphs),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
