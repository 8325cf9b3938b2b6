/* What rg_onnx_write writes, rg_onnx_load reads again: the same graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
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

static void same_graph(const struct rg_graph *a, const struct rg_graph *b);

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
	if (a->type == RG_ATTR_GRAPH)
		same_graph(a->g, b->g);
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
	assert_int_equal(a->kind, b->kind);
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
		if (!x->data || x->from_outer)
			continue;
		assert_int_equal(x->dtype, b->values[at].dtype);
		assert_true(rg_shape_equal(&x->shape, &b->values[at].shape));
		if (x->dtype == RG_STRING)
			for (int64_t k = 0; k < rg_shape_count(&x->shape); k++)
				assert_string_equal(((const char *const *)x->data)[k],
						    ((const char *const *)b->values[at].data)[k]);
		else
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

static int value(struct rg_graph *g, const char *name)
{
	int v = rg_graph_value(g, name, &err);

	assert_true(v >= 0);
	return v;
}

static int number(struct rg_graph *g, const char *name, enum rg_const_origin origin, float number)
{
	float *data = rg_alloc_aligned(64, sizeof(number));
	int v = value(g, name);

	assert_non_null(data);
	*data = number;
	assert_int_equal(rg_graph_add_const(g, v, origin, RG_F32, &(struct rg_shape){ 0 }, data, &err), 0);
	return v;
}

static int add_node(struct rg_graph *g, const char *op, int n_in, const int *in, const char *out, int n_attrs,
		    const struct rg_attr *attrs)
{
	int at = rg_graph_add_node(g, "", op, NULL, n_in, in, 1, (int[]){ value(g, out) }, n_attrs, attrs, &err);

	assert_true(at >= 0);
	return at;
}

/* out = x + k, with x of the graph around it and k an initialiser or a Constant node. */
static struct rg_graph *branch(struct rg_graph *outer, const char *out, enum rg_const_origin origin)
{
	struct rg_graph *g = rg_graph_new(outer);
	char k[32];

	assert_non_null(g);
	snprintf(k, sizeof(k), "%s-k", out);
	add_node(g, "Add", 2, (int[]){ value(g, "x"), number(g, k, origin, 3) }, out, 0, NULL);
	assert_int_equal(rg_graph_add_output(g, value(g, out), &err), 0);
	return g;
}

static void test_subgraphs(void **state)
{
	struct rg_graph *g = rg_graph_new(NULL), *back;
	struct rg_attr attrs[2] = { { .name = "then_branch", .type = RG_ATTR_GRAPH },
				    { .name = "else_branch", .type = RG_ATTR_GRAPH } };

	assert_non_null(g);
	assert_int_equal(rg_graph_set_opset(g, "", 17, &err), 0);
	assert_int_equal(rg_graph_declare(g, value(g, "c"), RG_BOOL, 0, NULL, &err), 0);
	assert_int_equal(rg_graph_declare(g, value(g, "x"), RG_F32, 1, &(struct rg_dim)RG_B_OPEN("n"), &err), 0);
	assert_int_equal(rg_graph_add_input(g, value(g, "c"), &err), 0);
	assert_int_equal(rg_graph_add_input(g, value(g, "x"), &err), 0);
	attrs[0].g = branch(g, "a", RG_CONST_INITIALIZER);
	attrs[1].g = branch(g, "b", RG_CONST_NODE);
	add_node(g, "If", 1, (int[]){ value(g, "c") }, "y", 2, attrs);
	assert_int_equal(rg_graph_declare(g, value(g, "y"), RG_F32, -1, NULL, &err), 0);
	assert_int_equal(rg_graph_add_output(g, value(g, "y"), &err), 0);
	assert_int_equal(rg_graph_finish(g, &err), 0);
	back = round_trip(g);
	same_graph(g, back);
	assert_int_equal(back->nodes[0].n_captured, 2); /* once a branch */
	rg_graph_free(back);
	rg_graph_free(g);
}

/* Words, and inputs that are a sequence and an optional sequence. */
static void test_other_types(void **state)
{
	static const char *const words[] = { "", "one", "a longer one" };
	struct rg_graph *g = rg_graph_new(NULL), *back;
	int64_t three = 3;
	struct rg_shape shape = rg_shape_of(1, &three);
	int v;

	assert_non_null(g);
	assert_int_equal(rg_graph_set_opset(g, "", 17, &err), 0);
	for (int i = 0; i < 2; i++) {
		v = value(g, i ? "maybe" : "list");
		assert_int_equal(rg_graph_declare(g, v, RG_F32, -1, NULL, &err), 0);
		assert_int_equal(rg_graph_declare_kind(g, v, i ? RG_VALUE_OPTIONAL_SEQUENCE : RG_VALUE_SEQUENCE, &err), 0);
		assert_int_equal(rg_graph_add_input(g, v, &err), 0);
	}
	v = value(g, "words");
	assert_int_equal(rg_graph_add_const(g, v, RG_CONST_INITIALIZER, RG_STRING, &shape,
					    rg_tensor_copy_data(&(struct rg_tensor){ RG_STRING, shape, (void *)words }), &err), 0);
	add_node(g, "Identity", 1, &v, "y", 0, NULL);
	assert_int_equal(rg_graph_declare(g, value(g, "y"), RG_STRING, -1, NULL, &err), 0);
	assert_int_equal(rg_graph_add_output(g, value(g, "y"), &err), 0);
	assert_int_equal(rg_graph_finish(g, &err), 0);
	back = round_trip(g);
	same_graph(g, back);
	rg_graph_free(back);
	rg_graph_free(g);
}

/* y = -(x + made), beside a node and a constant that nothing needs: `made` has no node behind it,
 * as a pass leaves it, and `folded` has one. */
static struct rg_graph *half_folded(float made)
{
	struct rg_graph *g = rg_graph_new(NULL);
	int k;

	assert_non_null(g);
	assert_int_equal(rg_graph_set_opset(g, "", 7, &err), 0);
	g->ir_version = 3;
	assert_int_equal(rg_graph_declare(g, value(g, "x"), RG_F32, 1, &(struct rg_dim)RG_B_OPEN("n"), &err), 0);
	assert_int_equal(rg_graph_add_input(g, value(g, "x"), &err), 0);
	k = number(g, "k", RG_CONST_INITIALIZER, 2);
	add_node(g, "Exp", 1, &k, "folded", 0, NULL);
	add_node(g, "Add", 2, (int[]){ value(g, "x"), value(g, "folded") }, "a", 0, NULL);
	add_node(g, "Sub", 2, (int[]){ value(g, "a"), number(g, "made", RG_CONST_FOLDED, made) }, "y", 0, NULL);
	add_node(g, "Sub", 2, (int[]){ value(g, "x"), number(g, "spare", RG_CONST_INITIALIZER, 9) }, "z", 0, NULL);
	assert_int_equal(rg_graph_declare(g, value(g, "y"), RG_F32, -1, NULL, &err), 0);
	assert_int_equal(rg_graph_add_output(g, value(g, "y"), &err), 0);
	assert_int_equal(rg_graph_finish(g, &err), 0);
	number(g, "folded", RG_CONST_FOLDED, 7);
	return g;
}

static void test_values(void **state)
{
	const char *path = folder_path("values.onnx");
	struct rg_graph *g = half_folded(5), *other = half_folded(6), *back = NULL;
	unsigned char values[16], first_gone[] = { 1, 0, 0 }, last_gone[] = { 0, 0, 0, 1 };
	char first[65], second[65];

	memset(values, 1, sizeof(values));
	values[value(g, "spare")] = 0;
	assert_int_equal(rg_graph_drop_nodes(g, last_gone, 4, &err), 0);
	assert_int_equal(rg_graph_drop_nodes(other, last_gone, 4, &err), 0);
	assert_int_equal(rg_onnx_write_values(g, values, path, &err), 0);
	assert_int_equal(rg_onnx_load(path, NULL, &back, &err), 0);
	assert_int_equal(back->n_nodes, 3);
	assert_int_equal(rg_graph_find_value(back, "spare"), -1);
	assert_int_equal(back->values[rg_graph_find_value(back, "folded")].origin, RG_CONST_NONE);
	assert_int_equal(back->values[rg_graph_find_value(back, "made")].origin, RG_CONST_INITIALIZER);
	assert_true(*(const float *)back->values[rg_graph_find_value(back, "made")].data == 5);
	assert_int_equal(back->ir_version, 4);
	rg_graph_free(back);
	/* without the node its result is written */
	assert_int_equal(rg_graph_drop_nodes(g, first_gone, 3, &err), 0);
	assert_int_equal(rg_graph_drop_nodes(other, first_gone, 3, &err), 0);
	assert_int_equal(rg_onnx_write_values(g, values, path, &err), 0);
	assert_int_equal(rg_onnx_load(path, NULL, &back, &err), 0);
	assert_int_equal(back->n_nodes, 2);
	assert_true(*(const float *)back->values[rg_graph_find_value(back, "folded")].data == 7);
	rg_graph_free(back);
	/* what a pass made is hashed, what is not written is not */
	assert_int_equal(rg_onnx_digest(g, NULL, first, &err), 0);
	assert_int_equal(rg_onnx_digest(other, NULL, second, &err), 0);
	assert_string_not_equal(first, second);
	values[value(g, "made")] = 0;
	assert_int_equal(rg_onnx_digest(g, values, first, &err), 0);
	assert_int_equal(rg_onnx_digest(other, values, second, &err), 0);
	assert_string_equal(first, second);
	rg_graph_free(other);
	rg_graph_free(g);
}

static void refuses(struct rg_graph *g, const char *what)
{
	const char *path = folder_path("refused.onnx");

	err = (struct rg_error)RG_ERROR_INIT;
	assert_int_equal(rg_onnx_write(g, path, &err), RG_ENOTSUP_MODEL);
	assert_non_null(strstr(err.message, what));
	assert_true(err.hint[0] != 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_refused(void **state)
{
	struct rg_attr type = { .name = "type", .type = RG_ATTR_TYPE };
	struct rg_graph *g = odd_graph("Relu", 1, &type);

	refuses(g, "attribute of unknown type");
	rg_graph_free(g);

	g = odd_graph("Relu", 0, NULL);
	g->nodes[0].domain = "ridge";
	refuses(g, "own executor");
	rg_graph_free(g);

	/* opset 17 means Relu of version 14 */
	g = odd_graph("Relu", 0, NULL);
	g->nodes[0].opset = 13;
	assert_int_equal(rg_graph_finish(g, &err), 0);
	assert_int_equal(g->nodes[0].version, 13);
	refuses(g, "version 13");
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
		TEST(test_subgraphs),
		TEST(test_other_types),
		TEST(test_values),
		TEST(test_refused),
		TEST(test_out_of_memory),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
