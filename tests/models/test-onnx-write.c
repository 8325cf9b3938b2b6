/* What rg_onnx_write writes, rg_onnx_load reads again: the same graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "folder.h"
#include "models/builder.h"
#include "models/builtin.h"
#include "models/onnx.h"
#include "models/onnx-write.h"

static struct rg_error err;

static struct rg_graph *builtin(const char *name)
{
	struct rg_graph *g = rg_graph_new(NULL);

	assert_non_null(g);
	assert_int_equal(rg_builtin_find(name)->build(g, &err), 0);
	assert_int_equal(rg_graph_finish(g, &err), 0);
	return g;
}

static struct rg_graph *round_trip(const struct rg_graph *g)
{
	const char *path = folder_path("written.onnx");
	struct rg_graph *back = NULL;

	if (rg_onnx_write(g, path, &err) || rg_onnx_load(path, NULL, &back, &err))
		fail_msg("%s: %s", err.where, err.message);
	return back;
}

static void same_names(const struct rg_graph *a, const struct rg_graph *b, int n, const int *va, const int *vb)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(va[i] < 0, vb[i] < 0);
		if (va[i] >= 0)
			assert_string_equal(a->values[va[i]].name, b->values[vb[i]].name);
	}
}

static void same_attr(const struct rg_attr *a, const struct rg_attr *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->i, b->i);
	assert_memory_equal(&a->f, &b->f, sizeof(a->f));
	if (a->type == RG_ATTR_STRING) {
		assert_int_equal(a->s_len, b->s_len);
		assert_memory_equal(a->s, b->s, a->s_len);
	}
	if (a->type == RG_ATTR_TENSOR) {
		assert_int_equal(a->t.dtype, b->t.dtype);
		assert_true(rg_shape_equal(&a->t.shape, &b->t.shape));
		assert_memory_equal(a->t.data, b->t.data, (size_t)rg_tensor_bytes(a->t.dtype, &a->t.shape));
	}
	for (int i = 0; i < a->count; i++) {
		if (a->type == RG_ATTR_INTS)
			assert_int_equal(a->ints[i], b->ints[i]);
		if (a->type == RG_ATTR_FLOATS)
			assert_memory_equal(&a->floats[i], &b->floats[i], sizeof(float));
		if (a->type == RG_ATTR_STRINGS)
			assert_string_equal(a->strings[i], b->strings[i]);
	}
}

static void same_declaration(const struct rg_value *a, const struct rg_value *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->declared_dtype, b->declared_dtype);
	assert_int_equal(a->declared_rank, b->declared_rank);
	for (int d = 0; d < a->declared_rank; d++) {
		assert_int_equal(a->declared[d].value, b->declared[d].value);
		assert_int_equal(!a->declared[d].symbol, !b->declared[d].symbol);
		if (a->declared[d].symbol)
			assert_string_equal(a->declared[d].symbol, b->declared[d].symbol);
	}
}

static void same_graph(const struct rg_graph *a, const struct rg_graph *b)
{
	assert_int_equal(a->n_nodes, b->n_nodes);
	for (int i = 0; i < a->n_nodes; i++) {
		const struct rg_node *x = &a->nodes[i], *y = &b->nodes[i];

		assert_string_equal(x->name, y->name);
		assert_string_equal(x->op_type, y->op_type);
		assert_string_equal(x->domain, y->domain);
		assert_int_equal(x->version, y->version);
		assert_int_equal(x->n_in, y->n_in);
		assert_int_equal(x->n_out, y->n_out);
		same_names(a, b, x->n_in, x->in, y->in);
		same_names(a, b, x->n_out, x->out, y->out);
		assert_int_equal(x->n_attrs, y->n_attrs);
		for (int k = 0; k < x->n_attrs; k++)
			same_attr(&x->attrs[k], &y->attrs[k]);
	}
	assert_int_equal(a->n_inputs, b->n_inputs);
	for (int i = 0; i < a->n_inputs; i++)
		same_declaration(&a->values[a->inputs[i]], &b->values[b->inputs[i]]);
	assert_int_equal(a->n_outputs, b->n_outputs);
	for (int i = 0; i < a->n_outputs; i++)
		same_declaration(&a->values[a->outputs[i]], &b->values[b->outputs[i]]);
	for (int i = 0; i < a->n_values; i++) {
		const struct rg_value *x = &a->values[i];
		int at = rg_graph_find_value(b, x->name);

		assert_true(at >= 0);
		assert_int_equal(x->origin, b->values[at].origin);
		if (!x->data)
			continue;
		assert_int_equal(x->dtype, b->values[at].dtype);
		assert_true(rg_shape_equal(&x->shape, &b->values[at].shape));
		assert_memory_equal(x->data, b->values[at].data, (size_t)rg_tensor_bytes(x->dtype, &x->shape));
	}
	assert_int_equal(rg_graph_count_params(a), rg_graph_count_params(b));
}

/* Several outputs, absent inputs, symbols, 79 MB of weights. */
static void test_lstm(void **state)
{
	struct rg_graph *g = builtin("lstm"), *back = round_trip(g);

	same_graph(g, back);
	assert_string_equal(back->producer, g->producer);
	assert_int_equal(back->n_opsets, 1);
	assert_int_equal(back->opsets[0].version, 17);
	rg_graph_free(back);
	rg_graph_free(g);
}

static void test_mobilenet_v2(void **state)
{
	struct rg_graph *g = builtin("mobilenet-v2"), *back = round_trip(g);

	same_graph(g, back);
	rg_graph_free(back);
	rg_graph_free(g);
}

/* One node, and dimensions with a symbol, without one, and fixed. */
static struct rg_graph *odd_graph(const char *op, int n, const struct rg_attr *attrs)
{
	struct rg_dim dims[] = { RG_B_OPEN("n"), { .value = -1 }, RG_B_DIM(3) };
	struct rg_graph *g = rg_graph_new(NULL);
	struct rg_builder b;
	int x;

	assert_non_null(g);
	rg_b_start(&b, g, "odd", 17, &err);
	x = rg_b_input(&b, "x", RG_F32, 3, dims);
	x = rg_b_node(&b, op, "odd", RG_B_IN(x), (struct rg_b_attrs){ n, attrs });
	rg_b_output(&b, x, 3, dims);
	assert_int_equal(rg_b_done(&b), 0);
	return g;
}

static void test_every_attribute(void **state)
{
	static const float floats[] = { 1.5f, -0.0f, 3e38f };
	static const int64_t ints[] = { INT64_MIN, -1, 0, 127, 128, INT64_MAX };
	static const char *const strings[] = { "", "tanh", "Sigmoid" };
	int64_t three = 3;
	struct rg_attr attrs[] = {
		{ .name = "f", .type = RG_ATTR_FLOAT, .f = -2.75f },
		{ .name = "i", .type = RG_ATTR_INT, .i = -5 },
		{ .name = "s", .type = RG_ATTR_STRING, .s = "constant", .s_len = 8 },
		{ .name = "t", .type = RG_ATTR_TENSOR, .t = { .dtype = RG_I16, .shape = rg_shape_of(1, &three) } },
		{ .name = "fs", .type = RG_ATTR_FLOATS, .floats = floats, .count = 3 },
		{ .name = "is", .type = RG_ATTR_INTS, .ints = ints, .count = 6 },
		{ .name = "ss", .type = RG_ATTR_STRINGS, .strings = strings, .count = 3 },
	};
	struct rg_graph *g, *back;

	attrs[3].t.data = rg_alloc_aligned(64, 6);
	assert_non_null(attrs[3].t.data);
	memcpy(attrs[3].t.data, (int16_t[]){ -1, 0, 300 }, 6);
	/* Relu takes no attribute, and nothing looks at those it does not take. */
	g = odd_graph("Relu", 7, attrs);
	assert_int_equal(rg_graph_finish(g, &err), 0);
	back = round_trip(g);
	same_graph(g, back);
	rg_graph_free(back);
	rg_graph_free(g);
}

static void test_refused(void **state)
{
	struct rg_attr sub = { .name = "body", .type = RG_ATTR_GRAPH, .g = rg_graph_new(NULL) };
	const char *path = folder_path("refused.onnx");
	struct rg_graph *g;

	assert_non_null(sub.g);
	g = odd_graph("Relu", 1, &sub);
	assert_int_equal(rg_onnx_write(g, path, &err), RG_ENOTSUP_MODEL);
	assert_non_null(strstr(err.message, "subgraph"));
	assert_int_equal(access(path, F_OK), -1);
	rg_graph_free(g);

	g = builtin("mlp");
	err = (struct rg_error)RG_ERROR_INIT;
	assert_int_equal(rg_onnx_write(g, folder_path("no/such/folder.onnx"), &err), -ENOENT);
	assert_true(err.hint[0] != 0);
	/* A full disk. */
	if (access("/dev/full", W_OK) == 0) {
		err = (struct rg_error)RG_ERROR_INIT;
		assert_int_equal(rg_onnx_write(g, "/dev/full", &err), -ENOSPC);
		assert_int_equal(access("/dev/full", F_OK), 0);
	}
	rg_graph_free(g);
}

static void test_out_of_memory(void **state)
{
	const char *path = folder_path("memory.onnx");
	struct rg_graph *g = builtin("mlp");

	for (uint64_t n = 1;; n++) {
		bool failed;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_onnx_write(g, path, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		if (!failed) {
			assert_int_equal(rc, 0);
			assert_true(n > 10);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(access(path, F_OK), -1);
	}
	rg_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(test_lstm),
		TEST(test_mobilenet_v2),
		TEST(test_every_attribute),
		TEST(test_refused),
		TEST(test_out_of_memory),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
