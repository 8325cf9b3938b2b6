/* The operator table: its entries are consistent, versions are chosen by the
 * changelog's rule, and costs of movement are what they should be. */
#include <stdio.h>

#include "tests/graph/build.h"

static void test_table(void **state)
{
	assert_true(rg_op_count() > 30);
	assert_null(rg_op_at(-1));
	assert_null(rg_op_at(rg_op_count()));
	for (int i = 0; i < rg_op_count(); i++) {
		const struct rg_op *op = rg_op_at(i);
		bool from = false, to = false;

		assert_ptr_equal(rg_op_find(op->domain, op->name), op); /* no two of one name */
		assert_non_null(op->infer);
		assert_true(op->min_in >= 0 && op->min_out >= 0 && op->max_out != 0);
		assert_true(op->max_in < 0 || op->max_in >= op->min_in);
		assert_true(op->max_out < 0 || op->max_out >= op->min_out);
		assert_true(op->versions[0] >= 1);
		for (int v = 0; v < RG_OP_MAX_VERSIONS && op->versions[v]; v++) {
			if (op->domain[0] == '\0')
				assert_true(op->versions[v] <= RG_ONNX_OPSET_NEWEST);
			assert_true(v == 0 || op->versions[v] > op->versions[v - 1]);
			from |= op->versions[v] == op->supported_from;
			to |= op->versions[v] == op->supported_to;
		}
		assert_true(from && to && op->supported_from <= op->supported_to);
		assert_true(strcmp(rg_op_kind_name(op->kind), "other") != 0 || op->kind == RG_KIND_OTHER);
	}
	assert_null(rg_op_find("", "Frobnicate"));
	assert_null(rg_op_find("com.example", "Identity"));
}

static void test_versions(void **state)
{
	const struct rg_op *slice = rg_op_find("", "Slice"), *expand = rg_op_find("", "Expand");

	assert_int_equal(rg_op_version(slice, 1), 1);
	assert_int_equal(rg_op_version(slice, 9), 1);
	assert_int_equal(rg_op_version(slice, 10), 10);
	assert_int_equal(rg_op_version(slice, 12), 11);
	assert_int_equal(rg_op_version(slice, 28), 13);
	assert_int_equal(rg_op_version(expand, 7), 0);
}

/* Cost of node 0 of a bound graph. */
static struct rg_cost cost_of(struct build *b)
{
	struct rg_tensor in[8], out[8];
	struct rg_cost_in c = { .in = in, .out = out };
	struct rg_cost cost;

	assert_int_equal(rg_graph_finish(b->g, &b->err), 0);
	assert_int_equal(rg_graph_bind(b->g, NULL, &b->err), 0);
	assert_int_equal(rg_graph_infer(b->g, NULL, NULL, &b->err), 0);
	c.node = &b->g->nodes[0];
	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	for (int k = 0; k < 2; k++) {
		int n = k ? c.node->n_out : c.node->n_in;
		const int *index = k ? c.node->out : c.node->in;
		struct rg_tensor *t = k ? out : in;

		for (int i = 0; i < n; i++) {
			const struct rg_value *v = &b->g->values[index[i]];

			t[i] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
		}
	}
	rg_op_cost(c.node->op, &c, &cost);
	rg_graph_free(b->g);
	return cost;
}

static void assert_bytes(struct build *b, int64_t read, int64_t written)
{
	struct rg_cost c = cost_of(b);

	assert_int_equal(c.read_bytes, read);
	assert_int_equal(c.write_bytes, written);
	assert_int_equal(c.flops, 0);
	assert_int_equal(c.iops, 0);
	assert_int_equal(c.sfu, 0);
}

static void test_costs(void **state)
{
	struct rg_attr axis = attr_int("axis", 0);
	struct build b = build_new(13);

	/* Known indices: rows 1 and 2 of 10, however often and from whichever end. */
	build_input(&b, "x", RG_F32, LIST(10, 4));
	build_ints(&b, "i", LIST(1, 2, 1, -9));
	build_node(&b, "Gather", "x i", "y", 0, NULL);
	assert_bytes(&b, 2 * 16 + 4 * 8, 4 * 16);
	/* Unknown ones: at most one row each, never more than there are. */
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(10, 4));
	build_input(&b, "i", RG_I32, LIST(3));
	build_node(&b, "Gather", "x i", "y", 0, NULL);
	assert_bytes(&b, 3 * 16 + 3 * 4, 3 * 16);
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2, 4));
	build_input(&b, "i", RG_I32, LIST(3));
	build_node(&b, "Gather", "x i", "y", 0, NULL);
	assert_bytes(&b, 2 * 16 + 3 * 4, 3 * 16);
	/* An input that is used twice is read once. */
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2, 4));
	build_node(&b, "Concat", "x x", "y", 1, &axis);
	assert_bytes(&b, 32, 64);
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2, 4));
	build_node(&b, "Flatten", "x", "y", 0, NULL);
	assert_bytes(&b, 0, 0);
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(2, 4));
	build_node(&b, "Shape", "x", "y", 0, NULL);
	assert_bytes(&b, 0, 16);
	/* A slice reads what it takes, and its bounds. */
	b = build_new(13);
	build_input(&b, "x", RG_F32, LIST(10, 4));
	build_ints(&b, "from", LIST(2));
	build_ints(&b, "to", LIST(5));
	build_node(&b, "Slice", "x from to", "y", 0, NULL);
	assert_bytes(&b, 3 * 16 + 16, 3 * 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table), cmocka_unit_test(test_versions), cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
