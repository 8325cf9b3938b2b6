/* Constants are freed once nothing reads them, and never before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "compile/internal.h"
#include "make-graph.h"
#include "sys/cpu.h"

static const struct rg_value *value(const struct rg_graph *g, const char *name)
{
	int v = rg_graph_find_value(g, name);

	assert_true(v >= 0);
	return &g->values[v];
}

static struct rg_plan *plan_with_release(struct rg_graph *g)
{
	const struct rg_plan_options opt = { .lanes = 1, .release = true };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan *p = NULL;

	if (rg_plan_make(g, &opt, &p, &err))
		fail_msg("%s: %s", err.where, err.message);
	return p;
}

/* What was folded into something else goes; what steps, outputs and views of
 * either read stays. */
static void test_folded(void **state)
{
	const struct rg_plan_options opt = { .lanes = 1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	int64_t before, params, weights;
	struct rg_plan *p, *again = NULL;

	make_input(g, "x", RG_F32, "1024");
	make_floats(g, "source", "1024x1024", NULL);
	make_floats(g, "read", "1024", NULL);
	make_floats(g, "given", "16", NULL);
	make_floats(g, "viewed", "32x32", NULL);
	make_floats(g, "dead", "1024x16", NULL);
	make_ints(g, "flat", 1, (int64_t[]){ 1024 });
	make_node(g, "Neg", "source", "folded");
	make_node(g, "Add", "folded,x", "y");
	make_node(g, "Add", "read,x", "z");
	make_node(g, "Identity", "viewed", "v");
	make_node(g, "Reshape", "viewed,flat", "w");
	make_node(g, "Add", "w,x", "u");
	make_node(g, "Neg", "dead", "nobody");
	make_output(g, "y");
	make_output(g, "z");
	make_output(g, "u");
	make_output(g, "given");
	make_finish(g);
	params = rg_graph_count_params(g);
	before = rg_alloc_live_bytes();
	p = plan_with_release(g);
	assert_null(value(g, "source")->data);
	assert_true(value(g, "source")->released);
	assert_int_equal(value(g, "source")->origin, RG_CONST_INITIALIZER);
	assert_true(value(g, "dead")->released);
	assert_non_null(value(g, "folded")->data);
	assert_non_null(value(g, "read")->data);
	assert_non_null(value(g, "given")->data);
	assert_non_null(plan_value(p, "w")->data);
	assert_float_equal(((const float *)plan_value(p, "w")->data)[1000], 1000, 0);
	assert_true(p->released_bytes >= (4 << 20) + 1024 * 16 * 4);
	/* 4 MiB came and 4 MiB went. */
	assert_true(rg_alloc_live_bytes() - before < 1 << 20);
	/* Counts need shapes alone. */
	weights = rg_graph_weight_bytes(g);
	assert_int_equal(rg_graph_count_params(g), params);
	assert_true(weights >= 4 << 20);
	assert_int_equal(rg_plan_make(g, &opt, &again, &err), -EINVAL);
	assert_non_null(strstr(err.message, "planned before"));
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_without_the_option(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "16");
	make_floats(g, "source", "16", NULL);
	make_node(g, "Neg", "source", "folded");
	make_node(g, "Add", "folded,x", "y");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	assert_non_null(value(g, "source")->data);
	assert_int_equal(p->released_bytes, 0);
	rg_plan_free(p);
	p = make_plan(g, 1); /* as often as one likes */
	rg_plan_free(p);
	rg_graph_free(g);
}

/* Weights w and s through a kernel that packs input 1. No kernel of ours does yet,
 * so the passes are called as the planner calls them, with one that says so. */
static void test_packed(void **state)
{
	static const struct rg_plan_options opt = { .lanes = 1, .release = true };
	static const struct rg_kernel packing = { .op_type = "MatMul", .name = "packing", .packs = 1u << 1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct builder b = { .g = g, .opt = &opt, .arena = rg_arena_new() };
	int first, second, third, fourth;

	make_input(g, "x", RG_F32, "4x4");
	make_floats(g, "w", "4x4", NULL);  /* packed by two */
	make_floats(g, "s", "4x4", NULL);  /* packed by one, read by another */
	make_floats(g, "o", "4x4", NULL);  /* packed, and a graph output */
	make_node(g, "MatMul", "x,w", "a");
	make_node(g, "MatMul", "a,w", "b");
	make_node(g, "MatMul", "b,s", "c");
	make_node(g, "MatMul", "c,o", "d");
	make_node(g, "Add", "d,s", "y");
	make_output(g, "y");
	make_output(g, "o");
	make_finish(g);
	b.plan = make_plan(g, 1);
	first = plan_step(b.plan, "a");
	second = plan_step(b.plan, "b");
	third = plan_step(b.plan, "c");
	fourth = plan_step(b.plan, "d");
	for (int i = 0; i < 4; i++) {
		struct rg_step *s = &b.plan->steps[(int[]){ first, second, third, fourth }[i]];

		s->kernel = &packing;
		s->prepared_bytes = 64;
	}
	assert_int_equal(rg_release_begin(&b, &err), 0);
	assert_non_null(value(g, "w")->data);
	rg_release_step(&b, &b.plan->steps[first]);
	assert_non_null(value(g, "w")->data);
	rg_release_step(&b, &b.plan->steps[second]);
	assert_null(value(g, "w")->data);
	assert_null(plan_value(b.plan, "w")->data);
	rg_release_step(&b, &b.plan->steps[third]);
	rg_release_step(&b, &b.plan->steps[fourth]);
	rg_release_end(&b);
	assert_non_null(value(g, "s")->data);
	assert_non_null(value(g, "o")->data);
	assert_int_equal(b.plan->released_bytes, 64);
	rg_plan_free(b.plan);
	rg_arena_free(b.arena);
	rg_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_without_the_option),
		cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
