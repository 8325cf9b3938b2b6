/* Inference over whole graphs: folding with a small evaluator of the test's own,
 * what is reported when a value is missing, and counting parameters. */
#include <stdio.h>

#include "tests/graph/build.h"

static int n_evaluated;

/* Enough for the graphs below: Shape, Gather along axis 0, Concat along axis 0,
 * Cast int32 to int64, all to int64. Anything else has no kernel. */
static int eval(void *ctx, const struct rg_graph *g, const struct rg_node *node, const struct rg_tensor *in,
		struct rg_tensor *out, struct rg_error *err)
{
	int64_t *to = out[0].data;

	if (out[0].dtype != RG_I64)
		return -ENOSYS;
	if (strcmp(node->op_type, "Shape") == 0) {
		assert_null(in[0].data);
		for (int i = 0; i < in[0].shape.rank; i++)
			to[i] = in[0].shape.dim[i];
	} else if (strcmp(node->op_type, "Gather") == 0) {
		int64_t n = rg_shape_count(&in[1].shape);

		for (int64_t i = 0; i < n; i++)
			to[i] = ((const int64_t *)in[0].data)[((const int64_t *)in[1].data)[i]];
	} else if (strcmp(node->op_type, "Concat") == 0) {
		for (int i = 0; i < node->n_in; i++)
			for (int64_t k = 0; k < in[i].shape.dim[0]; k++)
				*to++ = ((const int64_t *)in[i].data)[k];
	} else if (strcmp(node->op_type, "Cast") == 0) {
		for (int64_t i = 0; i < rg_shape_count(&in[0].shape); i++)
			to[i] = ((const int32_t *)in[0].data)[i];
	} else if (strcmp(node->op_type, "ReverseSequence") == 0) {
		return rg_error_set(err, -ERANGE, "too long");
	} else {
		return -ENOSYS;
	}
	n_evaluated++;
	return 0;
}

static const struct rg_infer_options folding = { .eval = eval };

/* y = reshape(x, concat(gather(shape(x), 0), [-1])), as exporters write a flatten. */
static struct build shape_arithmetic(void)
{
	struct build b = build_new(13);
	struct rg_attr axis = attr_int("axis", 0);

	build_input(&b, "x", RG_F32, LIST(2, 3, 5));
	build_ints(&b, "zero", LIST(0));
	build_ints(&b, "rest", LIST(-1));
	build_node(&b, "Shape", "x", "shape", 0, NULL);
	build_node(&b, "Gather", "shape zero", "first", 0, NULL);
	build_node(&b, "Concat", "first rest", "to", 1, &axis);
	build_node(&b, "Reshape", "x to", "y", 0, NULL);
	build_node(&b, "Flatten", "y", "z", 0, NULL);
	build_output(&b, "z");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	return b;
}

static void test_folding(void **state)
{
	struct build b = shape_arithmetic();

	n_evaluated = 0;
	assert_int_equal(rg_graph_infer(b.g, &folding, NULL, &b.err), 0);
	assert_int_equal(n_evaluated, 3);
	assert_shape(&b, "y", "2x15");
	assert_shape(&b, "z", "2x15");
	assert_int_equal(build_get(&b, "to")->origin, RG_CONST_FOLDED);
	assert_int_equal(((const int64_t *)build_get(&b, "to")->data)[0], 2);
	assert_int_equal(((const int64_t *)build_get(&b, "to")->data)[1], -1);
	assert_int_equal(build_get(&b, "y")->origin, RG_CONST_NONE);
	/* Again: nothing is computed twice. */
	assert_int_equal(rg_graph_infer(b.g, &folding, NULL, &b.err), 0);
	assert_int_equal(n_evaluated, 3);
	rg_graph_free(b.g);
}

static void test_without_folding(void **state)
{
	struct build b = shape_arithmetic();
	int need = 0;

	assert_int_equal(rg_graph_infer(b.g, NULL, &need, &b.err), RG_ENEED_VALUE);
	/* The value comes from a shape, which binding no input would make known. */
	assert_int_equal(need, -1);
	assert_contains(b.err.where, "node 'y' (Reshape)");
	rg_graph_free(b.g);
}

static void test_fold_limit(void **state)
{
	struct rg_infer_options small = { .eval = eval, .fold_limit_bytes = 8 };
	struct build b = shape_arithmetic();

	/* shape(x) takes 24 bytes: it stays, and then the Reshape has no shape. */
	assert_int_equal(rg_graph_infer(b.g, &small, NULL, &b.err), RG_ENEED_VALUE);
	assert_int_equal(build_get(&b, "shape")->origin, RG_CONST_NONE);
	rg_graph_free(b.g);
}

static void test_fold_error(void **state)
{
	struct build b = build_new(13);
	int64_t data[4] = { 0 }, lengths[2] = { 9, 9 };

	build_const(&b, "d", RG_I64, LIST(2, 2), data);
	build_const(&b, "l", RG_I64, LIST(2), lengths);
	build_node(&b, "ReverseSequence", "d l", "y", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, &folding, NULL, &b.err), -ERANGE);
	assert_contains(b.err.where, "(ReverseSequence)");
	rg_graph_free(b.g);
}

/* The new shape is a graph input behind a Cast and a Concat. */
static void test_need_value(void **state)
{
	struct build b = build_new(13);
	struct rg_attr axis = attr_int("axis", 0), to = attr_int("to", RG_I64);
	struct rg_shape one = { .rank = 1, .dim = { 1 } };
	int32_t rows = 6;
	int need = -1, want;

	build_input(&b, "x", RG_F32, LIST(12));
	want = build_input(&b, "rows", RG_I32, LIST(1));
	build_ints(&b, "rest", LIST(-1));
	build_node(&b, "Cast", "rows", "wide", 1, &to);
	build_node(&b, "Concat", "wide rest", "shape", 1, &axis);
	build_node(&b, "Reshape", "x shape", "y", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, &folding, &need, &b.err), RG_ENEED_VALUE);
	assert_int_equal(need, want);
	assert_contains(b.err.hint, "--input rows=");
	assert_int_equal(rg_graph_add_const(b.g, need, RG_CONST_BOUND, RG_I32, &one, build_copy(&rows, 4), &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, &folding, &need, &b.err), 0);
	assert_int_equal(need, -1);
	assert_shape(&b, "y", "6x2");
	assert_int_equal(b.g->n_inputs, 2); /* a bound input is still an input */
	rg_graph_free(b.g);
}

/* The number of non-zeros of a large image is computed data. */
static void test_need_computed(void **state)
{
	struct build b = build_new(13);
	int need = 0;

	build_input(&b, "x", RG_F32, LIST(1, 1000, 1000));
	build_node(&b, "NonZero", "x", "y", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, &folding, &need, &b.err), RG_ENEED_VALUE);
	assert_int_equal(need, -1);
	assert_contains(b.err.hint, "computed data");
	rg_graph_free(b.g);
}

static void test_errors_name_the_node(void **state)
{
	struct build b = build_new(13);
	struct rg_attr perm = attr_ints("perm", LIST(0, 0));

	build_input(&b, "x", RG_F32, LIST(2, 3));
	assert_true(rg_graph_add_node(b.g, "", "Transpose", "turn", 1, (int[]){ 0 }, 1,
				      (int[]){ build_value(&b, "y") }, 1, &perm, &b.err) >= 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, NULL, NULL, &b.err), -EINVAL);
	assert_string_equal(b.err.where, "node 'turn' (Transpose)");
	assert_contains(b.err.message, "axis 0 is given twice");
	rg_graph_free(b.g);
}

/* Repeats that multiply up beyond any memory are refused, not wrapped. */
static void test_overflow(void **state)
{
	struct build b = build_new(13);

	build_input(&b, "x", RG_F32, LIST(2, 2));
	build_ints(&b, "r", LIST(INT64_C(1) << 40, INT64_C(1) << 40));
	build_node(&b, "Tile", "x r", "y", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, NULL, NULL, &b.err), -EINVAL);
	assert_contains(b.err.message, "impossible shape");
	rg_graph_free(b.g);
}

/* Tied weights once, integers and dead weights not, what was folded as it was read. */
static void test_params(void **state)
{
	struct build b = build_new(13);
	struct rg_attr axis = attr_int("axis", 0), to = attr_int("to", RG_I64);
	float w[12] = { 0 };
	int32_t small[3] = { 1, 2, 3 };

	build_input(&b, "x", RG_F32, LIST(2, 6));
	build_const(&b, "w", RG_F32, LIST(2, 6), w);
	build_const(&b, "dead", RG_F32, LIST(3), w);
	build_const(&b, "i32", RG_I32, LIST(3), small);
	build_node(&b, "Concat", "x w w", "y", 1, &axis);
	build_node(&b, "Concat", "dead dead", "unused", 1, &axis);
	build_node(&b, "Cast", "i32", "i64", 1, &to);
	build_output(&b, "y");
	build_output(&b, "i64");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_count_params(b.g), 12);
	assert_int_equal(rg_graph_weight_bytes(b.g), 12 * 4 + 3 * 4);
	/* one value: weights of a Constant node are parameters too, a factor is none */
	{
		struct rg_value v = b.g->values[rg_graph_find_value(b.g, "w")];

		assert_int_equal(rg_value_params(&v), 12);
		v.origin = RG_CONST_NODE;
		assert_int_equal(rg_value_params(&v), 12);
		v.shape = rg_shape_of(0, NULL);
		assert_int_equal(rg_value_params(&v), 0);
		assert_int_equal(rg_value_params(&b.g->values[rg_graph_find_value(b.g, "x")]), 0);
		assert_int_equal(rg_value_params(&b.g->values[rg_graph_find_value(b.g, "i32")]), 0);
	}
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), 0);
	assert_int_equal(rg_graph_infer(b.g, &folding, NULL, &b.err), 0);
	assert_int_equal(rg_graph_count_params(b.g), 12);
	assert_int_equal(rg_graph_weight_bytes(b.g), 12 * 4 + 3 * 8);
	rg_graph_free(b.g);
}

static void test_batch_norm_params(void **state)
{
	struct build b = build_new(15);
	float c[4] = { 1, 1, 1, 1 };

	build_input(&b, "x", RG_F32, LIST(1, 4, 2, 2));
	build_const(&b, "scale", RG_F32, LIST(4), c);
	build_const(&b, "bias", RG_F32, LIST(4), c);
	build_const(&b, "mean", RG_F32, LIST(4), c);
	build_const(&b, "var", RG_F32, LIST(4), c);
	build_node(&b, "BatchNormalization", "x scale bias mean var", "y", 0, NULL);
	build_output(&b, "y");
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(rg_graph_count_params(b.g), 8);
	assert_int_equal(rg_graph_weight_bytes(b.g), 64);
	rg_graph_free(b.g);
}

static void test_allocation_failures(void **state)
{
	int failed = 0;

	for (uint64_t n = 1;; n++) {
		struct build b = shape_arithmetic();
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_graph_infer(b.g, &folding, NULL, &b.err);
		if (!rg_alloc_did_fail()) {
			rg_alloc_fail_at(0);
			assert_int_equal(rc, 0);
			rg_graph_free(b.g);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		/* And the graph is whole: a second try goes through. */
		assert_int_equal(rg_graph_infer(b.g, &folding, NULL, &b.err), 0);
		assert_shape(&b, "y", "2x15");
		rg_graph_free(b.g);
		failed++;
	}
	assert_true(failed >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folding), cmocka_unit_test(test_without_folding),
		cmocka_unit_test(test_fold_limit), cmocka_unit_test(test_fold_error),
		cmocka_unit_test(test_need_value), cmocka_unit_test(test_need_computed),
		cmocka_unit_test(test_errors_name_the_node), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_params), cmocka_unit_test(test_batch_norm_params),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
