/* Nodes of old versions, carried to newer opsets, compute what they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "compile/opset.h"
#include "graph/op.h"
#include "make-dynamic.h"

static struct rg_attr float_attr(const char *name, float f)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_FLOAT, .f = f };
}

static struct rg_attr string_attr(const char *name, const char *s)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_STRING, .s = s, .s_len = strlen(s) };
}

static struct rg_attr floats_attr(const char *name, int n, const float *v)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_FLOATS, .count = n, .floats = v };
}

#define LIST(name, ...)                                                                                      \
	ints_attr(name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})
#define NUMBERS(name, ...)                                                                                   \
	floats_attr(name, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

enum { N_ATTRS = 3 };

/* An operator of opset `from` on x of 1x4x6x5, with extra inputs behind it. */
struct old {
	int from;
	const char *op, *more;
	int n_attrs;
	struct rg_attr attrs[N_ATTRS];
};

static void make_made(struct rg_graph *g, const struct old *o)
{
	static const float some[4] = { 0.5f, 1, 1.5f, 2 }, scales[4] = { 1, 1, 2, 3 };
	struct rg_attr attrs[N_ATTRS];
	char in[32];

	make_input(g, "x", RG_F32, "1x4x6x5");
	make_floats(g, "s", "4", some);
	make_floats(g, "scales", "4", scales);
	memcpy(attrs, o->attrs, sizeof(attrs));
	snprintf(in, sizeof(in), "x%s", o->more);
	make_node_attrs(g, o->op, in, strcmp(o->op, "TopK") ? "y" : "y,index", o->n_attrs, attrs);
}

/* The operator as `o` says, and a node that needs opset `target` beside it; 0: none. */
static struct rg_graph *make_old(const struct old *o, int target)
{
	struct rg_graph *g = make_graph_of(o->from);

	make_made(g, o);
	make_node(g, "Identity", "x", "z");
	if (target)
		g->nodes[g->n_nodes - 1].opset = target;
	make_output(g, "y");
	make_output(g, "z");
	make_finish(g);
	return g;
}

static float *run(struct rg_graph *g, int *count)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan *p = make_plan(g, 1);
	struct rg_exec *e;
	struct rg_tensor t;
	float *copy;

	assert_int_equal(rg_exec_new(p, NULL, &e, &err), 0);
	t = rg_exec_input(e, 0);
	for (int64_t i = 0; i < rg_shape_count(&t.shape); i++)
		((float *)t.data)[i] = (float)(i * 37 % 101) / 50 - 1;
	assert_int_equal(rg_exec_run(e, &err), 0);
	t = rg_exec_output(e, 0);
	*count = (int)rg_shape_count(&t.shape);
	copy = malloc((size_t)*count * sizeof(*copy) + 1);
	assert_non_null(copy);
	memcpy(copy, t.data, (size_t)*count * sizeof(*copy));
	rg_exec_free(e);
	rg_plan_free(p);
	return copy;
}

static void raise_to(struct rg_graph *g, int64_t want)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t opset = 0;

	rg_plan_free(make_plan(g, 1)); /* types and shapes */
	assert_int_equal(rg_opset_needed(g, &opset, &err), 0);
	assert_int_equal(opset, want);
	if (rg_opset_raise(g, 0, &err))
		fail_msg("%s", err.message);
	assert_int_equal(g->opsets[0].version, want);
	for (int i = 0; i < g->n_nodes; i++) {
		assert_int_equal(g->nodes[i].version, rg_op_version(g->nodes[i].op, want));
		assert_int_equal(g->nodes[i].opset, 0);
	}
}

static void test_same(void **state)
{
	static const int targets[] = { 14, 19, 21 };
	const struct old list[] = {
		{ 7, "Clip", "", 2, { float_attr("min", -0.25f), float_attr("max", 0.5f) } },
		{ 10, "Clip", "", 1, { float_attr("max", 0.5f) } },
		{ 7, "BatchNormalization", ",s,s,s,s", 1, { int_attr("spatial", 1) } },
		{ 7, "BatchNormalization", ",s,s,s,s", 0, { { 0 } } },
		{ 7, "Dropout", "", 1, { float_attr("ratio", 0.75f) } },
		{ 11, "Softmax", "", 1, { int_attr("axis", 3) } },
		{ 11, "LogSoftmax", "", 1, { int_attr("axis", -1) } },
		{ 11, "Hardmax", "", 1, { int_attr("axis", 3) } },
		{ 9, "Pad", "", 2, { LIST("pads", 0, 0, 1, 2, 0, 0, 3, 0), float_attr("value", 1.5f) } },
		{ 9, "Pad", "", 2, { LIST("pads", 0, 0, 1, 2, 0, 0, 3, 0), string_attr("mode", "reflect") } },
		{ 11, "ReduceMean", "", 2, { LIST("axes", 2, -1), int_attr("keepdims", 0) } },
		{ 11, "ReduceMax", "", 0, { { 0 } } },
		{ 11, "ReduceSum", "", 1, { LIST("axes", 1) } },
		{ 7, "ReduceL2", "", 1, { LIST("axes", 3) } },
		{ 10, "Resize", ",scales", 1, { string_attr("mode", "nearest") } },
		{ 10, "Resize", ",scales", 1, { string_attr("mode", "linear") } },
		{ 7, "Upsample", "", 2, { NUMBERS("scales", 1, 1, 2, 3), string_attr("mode", "nearest") } },
		{ 9, "Upsample", ",scales", 1, { string_attr("mode", "linear") } },
		{ 9, "Slice", "", 3, { LIST("starts", 1, -4), LIST("ends", 3, 100), LIST("axes", 1, 2) } },
		{ 9, "Slice", "", 2, { LIST("starts", 0, 1), LIST("ends", 1, 3) } },
		{ 11, "Split", "", 2, { int_attr("axis", 1), LIST("split", 4) } },
		{ 11, "Squeeze", "", 1, { LIST("axes", 0) } },
		{ 11, "Unsqueeze", "", 1, { LIST("axes", 0, 5) } },
		{ 9, "TopK", "", 2, { int_attr("k", 2), int_attr("axis", 1) } },
		{ 11, "Concat", ",x", 1, { int_attr("axis", -2) } },
		{ 8, "MaxPool", "", 1, { LIST("kernel_shape", 2, 2) } },
		{ 7, "Flatten", "", 1, { int_attr("axis", 2) } },
		{ 13, "Split", "", 1, { int_attr("axis", 1) } },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		for (int t = 0; t < 3; t++) {
			struct rg_graph *old = make_old(&list[i], 0), *g = make_old(&list[i], targets[t]);
			int count, count_after;
			float *want, *got;

			raise_to(g, targets[t]);
			want = run(old, &count);
			got = run(g, &count_after);
			assert_int_equal(count, count_after);
			if (memcmp(want, got, (size_t)count * sizeof(*want)))
				fail_msg("%s of opset %d means something else at %d", list[i].op,
					 list[i].from, targets[t]);
			free(want);
			free(got);
			rg_graph_free(old);
			rg_graph_free(g);
		}
	}
}

static void refused(const struct old *o, int target, const char *why)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_old(o, target);
	int64_t opset;

	rg_plan_free(make_plan(g, 1));
	assert_int_equal(rg_opset_needed(g, &opset, &err), RG_ENOTSUP_MODEL);
	if (!strstr(err.message, why) || !strstr(err.message, o->op))
		fail_msg("%s", err.message);
	assert_true(err.hint[0] != 0);
	assert_int_equal(rg_opset_raise(g, 0, &err), RG_ENOTSUP_MODEL);
	rg_graph_free(g);
}

static void test_refused(void **state)
{
	const struct old softmax = { 11, "Softmax", "", 1, { int_attr("axis", 1) } },
		resize = { 11, "Resize", ",,scales", 1,
			   { string_attr("coordinate_transformation_mode", "tf_half_pixel_for_nn") } };

	refused(&softmax, 14, "more than the last dimension");
	refused(&resize, 14, "tf_half_pixel_for_nn");
}

/* Nothing to do: neither a node that fits, nor one whose number says more than it needs. */
static void test_nothing(void **state)
{
	const struct old relu = { 17, "Relu", "", 0, { { 0 } } };
	struct rg_graph *g = make_old(&relu, 18);
	struct rg_error err = RG_ERROR_INIT;
	int64_t opset;

	assert_int_equal(rg_opset_needed(g, &opset, &err), 0);
	assert_int_equal(opset, 17); /* Identity of 18 is that of 16 */
	assert_int_equal(rg_opset_raise(g, 0, &err), 0);
	assert_int_equal(g->opsets[0].version, 17);
	/* but where somebody wants more */
	assert_int_equal(rg_opset_raise(g, 19, &err), 0);
	assert_int_equal(g->opsets[0].version, 19);
	assert_int_equal(g->nodes[1].version, 19);
	rg_graph_free(g);
}

/* Two nodes with the same axes share a constant. */
static void test_shared(void **state)
{
	struct rg_graph *g = make_graph_of(11);
	struct rg_error e = RG_ERROR_INIT;

	make_input(g, "x", RG_F32, "1x2");
	for (int i = 0; i < 2; i++) {
		struct rg_attr axes = LIST("axes", 0);

		make_node_attrs(g, "Squeeze", "x", i ? "b" : "a", 1, &axes);
	}
	make_node(g, "Add", "a,b", "c");
	make_node(g, "HardSwish", "c", "y");
	g->nodes[g->n_nodes - 1].opset = 14;
	make_output(g, "y");
	make_finish(g);
	assert_int_equal(rg_opset_raise(g, 0, &e), 0);
	assert_int_equal(g->nodes[0].in[1], g->nodes[1].in[1]);
	rg_graph_free(g);
}

/* A Squeeze in both branches of an If. */
static void test_subgraph(void **state)
{
	struct rg_graph *g = make_graph_of(11);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_attr attrs[2];

	make_input(g, "c", RG_BOOL, "");
	make_input(g, "x", RG_F32, "1x2");
	for (int i = 0; i < 2; i++) {
		struct rg_graph *body = make_body(g);
		struct rg_attr axes = LIST("axes", 0);

		make_node_attrs(body, "Squeeze", "x", "s", 1, &axes);
		make_output(body, "s");
		attrs[i] = graph_attr(i ? "else_branch" : "then_branch", body);
	}
	make_node_attrs(g, "If", "c", "y", 2, attrs);
	make_node(g, "Identity", "x", "z");
	g->nodes[g->n_nodes - 1].opset = 14;
	make_output(g, "y");
	make_output(g, "z");
	make_finish(g);
	assert_int_equal(rg_opset_raise(g, 0, &err), 0);
	for (int i = 0; i < 2; i++) {
		const struct rg_graph *body = g->nodes[0].attrs[i].g;

		assert_int_equal(body->nodes[0].version, 13);
		assert_int_equal(body->nodes[0].n_in, 2);
		assert_int_equal(*(const int64_t *)body->values[body->nodes[0].in[1]].data, 0);
	}
	rg_graph_free(g);
}

static void test_allocation_failures(void **state)
{
	const struct old slice = { 9, "Slice", "", 2, { LIST("starts", 0, 1), LIST("ends", 1, 3) } };
	int fails = 0, rc;

	do {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = make_old(&slice, 14);

		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_opset_raise(g, 0, &err);
		rg_alloc_fail_at(0);
		if (rc)
			assert_int_equal(rc, -ENOMEM);
		rg_graph_free(g);
	} while (rc && fails < 1000);
	assert_int_equal(rc, 0);
	assert_true(fails > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_subgraph),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("opset", tests, NULL, NULL);
}
