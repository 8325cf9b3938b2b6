/* Building and finishing graphs: what is refused, in which words, and in what
 * order nodes come out. */
#include <stdio.h>

#include "base/clock.h"
#include "tests/graph/build.h"

static void finish_fails(struct build *b, int code, const char *part)
{
	assert_int_equal(rg_graph_finish(b->g, &b->err), code);
	assert_int_equal(b->err.code, code);
	assert_contains(b->err.message, part);
	rg_graph_free(b->g);
}

static void test_order_is_kept(void **state)
{
	struct build b = build_new(13);

	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Identity", "x", "b1", 0, NULL);
	build_node(&b, "Identity", "x", "a1", 0, NULL);
	build_node(&b, "Identity", "a1", "a2", 0, NULL);
	build_node(&b, "Identity", "b1", "b2", 0, NULL);
	build_output(&b, "a2");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(b.g->n_nodes, 4);
	assert_string_equal(b.g->nodes[0].name, "b1");
	assert_string_equal(b.g->nodes[1].name, "a1");
	assert_string_equal(b.g->nodes[2].name, "a2");
	assert_string_equal(b.g->nodes[3].name, "b2");
	assert_int_equal(b.g->nodes[0].version, 13);
	assert_ptr_equal(b.g->nodes[0].op, rg_op_find("ai.onnx", "Identity"));
	assert_int_equal(build_get(&b, "x")->n_consumers, 2);
	assert_int_equal(build_get(&b, "a2")->producer, 2);
	rg_graph_free(b.g);
}

static void test_sorted(void **state)
{
	struct build b = build_new(13);

	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Concat", "m l", "z", 1, (struct rg_attr[]){ attr_int("axis", 0) });
	build_node(&b, "Identity", "l", "m", 0, NULL);
	build_node(&b, "Identity", "x", "l", 0, NULL);
	build_output(&b, "z");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_string_equal(b.g->nodes[0].name, "l");
	assert_string_equal(b.g->nodes[1].name, "m");
	assert_string_equal(b.g->nodes[2].name, "z");
	for (int i = 0; i < 3; i++)
		assert_int_equal(b.g->values[b.g->nodes[i].out[0]].producer, i);
	rg_graph_free(b.g);
}

static void test_cycles(void **state)
{
	struct build b = build_new(13);

	build_node(&b, "Identity", "b", "a", 0, NULL);
	build_node(&b, "Identity", "a", "b", 0, NULL);
	finish_fails(&b, -EINVAL, "cycle: node 'a'");
	b = build_new(13);
	build_node(&b, "Identity", "self", "self", 0, NULL);
	finish_fails(&b, -EINVAL, "cycle: node 'self'");
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Identity", "x", "free", 0, NULL);
	build_node(&b, "Concat", "free q", "p", 1, (struct rg_attr[]){ attr_int("axis", 0) });
	build_node(&b, "Identity", "p", "q", 0, NULL);
	finish_fails(&b, -EINVAL, "cycle");
}

static void test_duplicates(void **state)
{
	struct build b = build_new(13);
	struct rg_shape s = { .rank = 1, .dim = { 1 } };
	float one = 1;

	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Identity", "x", "y", 0, NULL);
	b.err.code = 0;
	assert_true(rg_graph_add_node(b.g, "", "Identity", "other", 1, (int[]){ 0 }, 1,
				      (int[]){ build_value(&b, "y") }, 0, NULL, &b.err) >= 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), -EINVAL);
	assert_contains(b.err.message, "'y'");
	assert_contains(b.err.message, "'other'");
	rg_graph_free(b.g);

	b = build_new(13);
	build_const(&b, "w", RG_F32, LIST(1), &one);
	assert_int_equal(rg_graph_add_const(b.g, 0, RG_CONST_INITIALIZER, RG_F32, &s, build_copy(&one, 4), &b.err),
			 -EINVAL);
	assert_contains(b.err.message, "'w' is given twice");
	build_node(&b, "Identity", "w", "w", 0, NULL);
	finish_fails(&b, -EINVAL, "'w' is an initialiser and also an output");

	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	assert_int_equal(rg_graph_add_input(b.g, 0, &b.err), -EINVAL);
	build_node(&b, "Identity", "x", "x", 0, NULL);
	finish_fails(&b, -EINVAL, "'x' is a graph input and also an output");
}

static void test_missing(void **state)
{
	struct build b = build_new(13);

	build_node(&b, "Identity", "ghost", "y", 0, NULL);
	finish_fails(&b, -EINVAL, "node 'y' (Identity) reads 'ghost' as input 0");
	b = build_new(13);
	build_output(&b, "nowhere");
	finish_fails(&b, -EINVAL, "graph output 'nowhere'");
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Concat", "x -", "y", 1, (struct rg_attr[]){ attr_int("axis", 0) });
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0); /* variadic: inference refuses it */
	rg_graph_free(b.g);
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Expand", "x -", "y", 0, NULL);
	finish_fails(&b, -EINVAL, "lacks input 1");
}

static void test_operators(void **state)
{
	struct build b = build_new(13);

	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Frobnicate", "x", "y", 0, NULL);
	assert_int_equal(rg_graph_finish(b.g, &b.err), RG_ENOTSUP_MODEL);
	assert_contains(b.err.message, "operator Frobnicate (opset 13) of node 'y'");
	assert_true(b.err.hint[0] != '\0');
	rg_graph_free(b.g);

	b = build_new(RG_ONNX_OPSET_NEWEST + 1);
	finish_fails(&b, RG_ENOTSUP_MODEL, "the newest known is 28");

	b = build_new(7);
	build_input(&b, "x", RG_F32, LIST(2));
	build_input(&b, "s", RG_I64, LIST(1));
	build_node(&b, "Expand", "x s", "y", 0, NULL);
	finish_fails(&b, RG_ENOTSUP_MODEL, "came with opset 8");

	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	assert_true(rg_graph_add_node(b.g, "com.example", "Fused", "n", 1, (int[]){ 0 }, 1,
				      (int[]){ build_value(&b, "y") }, 0, NULL, &b.err) >= 0);
	finish_fails(&b, RG_ENOTSUP_MODEL, "com.example.Fused");

	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	assert_true(rg_graph_add_node(b.g, "com.microsoft", "Frobnicate", "n", 1, (int[]){ 0 }, 1,
				      (int[]){ build_value(&b, "y") }, 0, NULL, &b.err) >= 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), RG_ENOTSUP_MODEL);
	assert_contains(b.err.message, "operator com.microsoft.Frobnicate of node 'n'");
	assert_contains(b.err.hint, "ONNX Runtime");
	rg_graph_free(b.g);

	/* Without any opset the first is meant; its Reshape has its shape as an attribute. */
	b = (struct build){ .g = rg_graph_new(NULL) };
	build_input(&b, "x", RG_F32, LIST(2));
	build_node(&b, "Reshape", "x", "y", 1, (struct rg_attr[]){ attr_ints("shape", LIST(2, 1)) });
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(b.g->nodes[0].version, 1);
	rg_graph_free(b.g);
}

static void test_opsets(void **state)
{
	struct build b = build_new(13);

	assert_int_equal(rg_graph_set_opset(b.g, "ai.onnx", 13, &b.err), 0);
	assert_int_equal(b.g->n_opsets, 1);
	assert_int_equal(rg_graph_set_opset(b.g, "", 12, &b.err), -EINVAL);
	assert_int_equal(rg_graph_set_opset(b.g, "x", 0, &b.err), -EINVAL);
	rg_graph_free(b.g);
}

static void test_constants(void **state)
{
	struct build b = build_new(13);
	float f[3] = { 1, 2, 3 };
	struct rg_attr tensor = { .name = "value", .type = RG_ATTR_TENSOR };
	struct rg_attr fl = { .name = "value_float", .type = RG_ATTR_FLOAT, .f = 0.5f };
	struct rg_attr fls = { .name = "value_floats", .type = RG_ATTR_FLOATS, .count = 3, .floats = f };
	struct rg_attr in = attr_int("value_int", 7), ins = attr_ints("value_ints", LIST(4, 5));

	tensor.t.dtype = RG_F32;
	tensor.t.shape = rg_shape_of(LIST(3));
	tensor.t.data = build_copy(f, sizeof(f));
	build_node(&b, "Constant", "", "t", 1, &tensor);
	build_node(&b, "Constant", "", "f", 1, &fl);
	build_node(&b, "Constant", "", "fs", 1, &fls);
	build_node(&b, "Identity", "t", "y", 0, NULL);
	build_node(&b, "Constant", "", "i", 1, &in);
	build_node(&b, "Constant", "", "is", 1, &ins);
	build_output(&b, "y");
	build_output(&b, "is"); /* a constant may be an output */
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(b.g->n_nodes, 1);
	assert_int_equal(build_get(&b, "y")->producer, 0);
	assert_int_equal(build_get(&b, "t")->producer, -1);
	assert_int_equal(build_get(&b, "t")->origin, RG_CONST_NODE);
	assert_memory_equal(build_get(&b, "t")->data, f, sizeof(f));
	assert_int_equal(build_get(&b, "f")->shape.rank, 0);
	assert_true(*(const float *)build_get(&b, "f")->data == 0.5f);
	assert_memory_equal(build_get(&b, "fs")->data, f, sizeof(f));
	assert_int_equal(*(const int64_t *)build_get(&b, "i")->data, 7);
	assert_int_equal(((const int64_t *)build_get(&b, "is")->data)[1], 5);
	rg_graph_free(b.g);

	b = build_new(13);
	build_node(&b, "Constant", "", "s", 1, (struct rg_attr[]){ attr_string("value_string", "hello") });
	build_node(&b, "Constant", "", "ss", 1, (struct rg_attr[]){ attr_strings("value_strings", 2,
		   (const char *[]){ "", "two" }) });
	build_node(&b, "Constant", "", "none", 1, (struct rg_attr[]){ attr_strings("value_strings", 0, NULL) });
	build_output(&b, "s");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(build_get(&b, "s")->dtype, RG_STRING);
	assert_int_equal(build_get(&b, "s")->shape.rank, 0);
	assert_string_equal(*(const char *const *)build_get(&b, "s")->data, "hello");
	assert_int_equal(build_get(&b, "ss")->shape.dim[0], 2);
	assert_string_equal(((const char *const *)build_get(&b, "ss")->data)[1], "two");
	assert_int_equal(build_get(&b, "none")->shape.dim[0], 0);
	rg_graph_free(b.g);

	b = build_new(13);
	build_node(&b, "Constant", "", "s", 1, (struct rg_attr[]){ { .name = "value_string", .type = RG_ATTR_STRING,
		   .s = "a\0b", .s_len = 3 } });
	finish_fails(&b, RG_ENOTSUP_MODEL, "NUL");
	b = build_new(13);
	build_node(&b, "Constant", "", "s", 1, (struct rg_attr[]){ attr_string("sparse_value", "?") });
	finish_fails(&b, RG_ENOTSUP_MODEL, "'sparse_value'");
	b = build_new(13);
	build_node(&b, "Constant", "", "s", 0, NULL);
	finish_fails(&b, -EINVAL, "has no value");
}

/* Initialisers that are listed as inputs, too: up to IR 3 all are, later those that are a default. */
static void test_initialised_inputs(void **state)
{
	struct build b = build_new(9);
	float w = 2;

	build_input(&b, "w", RG_F32, LIST(1));
	build_input(&b, "x", RG_F32, LIST(1));
	build_const(&b, "w", RG_F32, LIST(1), &w);
	build_output(&b, "x"); /* an input may be an output */
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(b.g->n_inputs, 1);
	assert_string_equal(b.g->values[b.g->inputs[0]].name, "x");
	assert_false(build_get(&b, "w")->is_input);
	assert_true(build_get(&b, "w")->was_input);
	assert_false(build_get(&b, "x")->was_input);
	rg_graph_free(b.g);
}

static double chain_ns(int n, bool backwards)
{
	struct build b = build_new(13);
	uint64_t start = rg_clock_now_ns();
	char in[32], out[32];

	build_input(&b, "v0", RG_F32, LIST(2));
	for (int i = 0; i < n; i++) {
		int at = backwards ? n - 1 - i : i;

		snprintf(in, sizeof(in), "v%d", at);
		snprintf(out, sizeof(out), "v%d", at + 1);
		assert_true(build_node(&b, "Identity", in, out, 0, NULL) >= 0);
	}
	build_output(&b, out);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(b.g->values[b.g->nodes[i].out[0]].producer, i);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, NULL, NULL, &b.err), 0);
	rg_graph_free(b.g);
	return (double)(rg_clock_now_ns() - start);
}

/* No recursion, and linear time: ten times the nodes must not take a hundred
 * times as long. The bound leaves room for a noisy machine. */
static void test_long_chain(void **state)
{
	double small = chain_ns(10000, false), large = chain_ns(100000, false);

	assert_true(large < 40 * small + 1e8);
	chain_ns(100000, true);
}

static struct rg_graph *subgraph(struct build *outer, const char *captured)
{
	struct build s = { .g = rg_graph_new(outer->g) };

	assert_non_null(s.g);
	build_node(&s, "Identity", captured, "inner", 0, NULL);
	build_output(&s, "inner");
	return s.g;
}

static void test_subgraphs(void **state)
{
	struct build b = build_new(13);
	struct rg_attr body = { .name = "body", .type = RG_ATTR_GRAPH };
	struct build sub;

	/* The node that holds the subgraph comes before the one it captures from. */
	build_input(&b, "x", RG_F32, LIST(2));
	body.g = subgraph(&b, "late");
	sub.g = body.g;
	build_node(&b, "Identity", "x", "y", 1, &body);
	build_node(&b, "Identity", "x", "late", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_string_equal(b.g->nodes[0].name, "late");
	assert_true(build_get(&sub, "late")->from_outer);
	assert_int_equal(build_get(&b, "late")->n_consumers, 1);
	rg_graph_free(b.g);

	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	body.g = subgraph(&b, "ghost");
	build_node(&b, "Identity", "x", "y", 1, &body);
	finish_fails(&b, -EINVAL, "a subgraph of node 'y' (Identity) reads 'ghost'");

	/* A subgraph that captures the output of its own node. */
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2));
	body.g = subgraph(&b, "y");
	build_node(&b, "Identity", "x", "y", 1, &body);
	finish_fails(&b, -EINVAL, "cycle: node 'y'");
}

/* Every allocation fails once: an error comes back, nothing leaks or crashes. */
static int build_and_finish(struct rg_error *err)
{
	struct rg_graph *g = rg_graph_new(NULL), *sub;
	struct rg_shape s = { .rank = 1, .dim = { 4 } };
	struct rg_dim dims[2] = { { -1, "batch" }, { 4, NULL } };
	int64_t axis = 0;
	struct rg_attr attrs[3] = { { .name = "axes", .type = RG_ATTR_INTS, .count = 1, .ints = &axis },
				    { .name = "mode", .type = RG_ATTR_STRING, .s = "x", .s_len = 1 },
				    { .name = "body", .type = RG_ATTR_GRAPH } };
	struct rg_attr value = { .name = "value", .type = RG_ATTR_TENSOR, .t = { RG_F32, s, NULL } };
	int in, out, c, rc = -ENOMEM;

	rg_error_clear(err);
	if (!g)
		return -ENOMEM;
	rc = rg_graph_set_opset(g, "", 13, err);
	in = rc ? rc : rg_graph_value(g, "in", err);
	out = in < 0 ? in : rg_graph_value(g, "out", err);
	c = out < 0 ? out : rg_graph_value(g, "c", err);
	rc = c < 0 ? c : rg_graph_declare(g, in, RG_F32, 2, dims, err);
	if (!rc)
		rc = rg_graph_add_input(g, in, err);
	if (!rc) {
		value.t.data = rg_alloc_aligned(64, 16);
		if (!value.t.data)
			rc = -ENOMEM;
		else
			memset(value.t.data, 0, 16);
	}
	if (!rc)
		rc = rg_graph_add_node(g, "", "Constant", NULL, 0, NULL, 1, &c, 1, &value, err);
	if (rc >= 0) {
		sub = rg_graph_new(g);
		rc = sub ? rg_graph_value(sub, "in", err) : -ENOMEM;
		attrs[2].g = sub;
		if (rc >= 0)
			rc = rg_graph_add_output(sub, 0, err);
		if (rc >= 0)
			rc = rg_graph_add_node(g, "", "Identity", "node", 1, &in, 1, &out, 3, attrs, err);
		else
			rg_graph_free(sub);
	}
	if (rc >= 0)
		rc = rg_graph_add_output(g, out, err);
	if (!rc)
		rc = rg_graph_finish(g, err);
	rg_graph_free(g);
	return rc;
}

static void test_allocation_failures(void **state)
{
	struct rg_error err;
	int failed = 0;

	for (uint64_t n = 1;; n++) {
		int rc;

		rg_alloc_fail_at(n);
		rc = build_and_finish(&err);
		if (!rg_alloc_did_fail()) {
			rg_alloc_fail_at(0);
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		failed++;
	}
	assert_true(failed > 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_is_kept), cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_cycles), cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_missing), cmocka_unit_test(test_operators),
		cmocka_unit_test(test_opsets), cmocka_unit_test(test_constants),
		cmocka_unit_test(test_initialised_inputs), cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_subgraphs), cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
