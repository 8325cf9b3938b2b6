/*
 * Steps in the order that has least alive: a planted graph, dependencies and outputs of
 * random ones, and nothing changed where nothing is won.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "exec/exec.h"
#include "sys/cpu.h"
#include "tests/compile/make-graph.h"

static struct rg_plan *plan(struct rg_graph *g, bool for_memory, bool keep_inputs)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan_options o = { .lanes = 1, .order_for_memory = for_memory, .keep_inputs = keep_inputs };
	struct rg_cpu cpu;
	struct rg_plan *p;

	rg_cpu_detect("", &cpu);
	o.isa = cpu.isa;
	if (rg_plan_make(g, &o, &p, &err) || rg_plan_check(p, &err))
		fail_msg("%s: %s", err.where, err.message);
	return p;
}

/* Four large values that are reduced at once, all made first, as exporters do it. */
static struct rg_graph *make_wide(void)
{
	struct rg_graph *g = make_graph();
	char in[40], out[40];
	int i;

	make_input(g, "x", RG_F32, "64x64");
	for (i = 0; i < 4; i++) {
		snprintf(in, sizeof(in), "%s", "x,x");
		snprintf(out, sizeof(out), "big%d", i);
		make_node(g, "MatMul", in, out);
	}
	for (i = 0; i < 4; i++) {
		snprintf(in, sizeof(in), "big%d", i);
		snprintf(out, sizeof(out), "small%d", i);
		make_node(g, "ReduceMax", in, out);
		make_output(g, out);
	}
	make_finish(g);
	return g;
}

static void test_planted(void **state)
{
	struct rg_graph *g = make_wide();
	struct rg_plan *a = plan(g, false, false), *b = plan(g, true, false);
	int i;
	char big[40], small[40];

	assert_int_equal(a->graph_order_bound_bytes, 0); /* not asked */
	assert_false(a->reordered);
	assert_true(a->arena_lower_bound_bytes >= 4 * 64 * 64 * 4);
	assert_true(b->reordered);
	assert_int_equal(b->graph_order_bound_bytes, a->arena_lower_bound_bytes);
	assert_true(b->arena_lower_bound_bytes < a->arena_lower_bound_bytes / 2);
	for (i = 0; i < 4; i++) {
		snprintf(big, sizeof(big), "big%d", i);
		snprintf(small, sizeof(small), "small%d", i);
		assert_int_equal(plan_step(b, small), plan_step(b, big) + 1);
	}
	rg_plan_free(a);
	rg_plan_free(b);
	rg_graph_free(g);
}

/* Which step of the plan a node is; -1: none. */
static int *steps_of(const struct rg_plan *p)
{
	int *at = calloc((size_t)p->graph->n_nodes + 1, sizeof(*at)), i;

	for (i = 0; i < p->graph->n_nodes; i++)
		at[i] = -1;
	for (i = 0; i < p->n_steps; i++) {
		assert_int_equal(at[p->steps[i].node], -1); /* each once */
		at[p->steps[i].node] = i;
	}
	return at;
}

/* What depends on what is the same, and leads forward in both. */
static void check_dependencies(const struct rg_plan *a, const struct rg_plan *b)
{
	int *at = steps_of(b), i, k;

	assert_int_equal(a->n_steps, b->n_steps);
	assert_int_equal(a->n_edges, b->n_edges);
	for (i = 0; i < a->n_edges; i++) {
		int from = at[a->steps[a->edges[i].from_step].node], to = at[a->steps[a->edges[i].to_step].node];

		assert_true(from >= 0 && from < to);
		for (k = 0; k < b->n_edges; k++)
			if (b->edges[k].from_step == from && b->edges[k].to_step == to)
				break;
		assert_true(k < b->n_edges);
	}
	free(at);
}

static size_t run(const struct rg_graph *g, const struct rg_plan *p, uint64_t seed, char *out, size_t cap)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_exec_options o = { 0 };
	struct rg_exec *x;
	size_t at = 0;
	int i;

	if (rg_exec_new(p, &o, &x, &err))
		fail_msg("%s", err.message);
	for (i = 0; i < g->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(x, i);
		int64_t k, n = rg_shape_count(&t.shape);

		for (k = 0; k < n; k++)
			((float *)t.data)[k] = (float)(2 * rg_rng_unit(rg_rng_stream(seed, "order"), (uint64_t)(k + 7 * i)) - 1);
	}
	if (rg_exec_run(x, &err))
		fail_msg("%s", err.message);
	for (i = 0; i < g->n_outputs; i++) {
		struct rg_tensor t = rg_exec_output(x, i);
		size_t n = (size_t)rg_tensor_bytes(t.dtype, &t.shape);

		assert_true(at + n <= cap);
		memcpy(out + at, t.data, n);
		at += n;
	}
	rg_exec_free(x);
	return at;
}

static void test_random(void **state)
{
	static char first[1 << 20], second[1 << 20];
	int reordered = 0;
	uint64_t seed;

	for (seed = 0; seed < 150; seed++) {
		struct rg_graph *g = make_random(seed + 4000, 5 + (int)(seed % 90));
		bool keep = seed % 2;
		struct rg_plan *a = plan(g, false, keep), *b = plan(g, true, keep), *again = plan(g, true, keep);
		size_t n = run(g, a, seed, first, sizeof(first));
		int i;

		assert_int_equal(b->graph_order_bound_bytes, a->arena_lower_bound_bytes);
		if (b->reordered)
			assert_true(b->arena_lower_bound_bytes < a->arena_lower_bound_bytes);
		else
			assert_int_equal(b->arena_lower_bound_bytes, a->arena_lower_bound_bytes);
		for (i = 0; i < a->n_steps; i++) {
			assert_true(b->reordered || b->steps[i].node == a->steps[i].node);
			assert_int_equal(b->steps[i].node, again->steps[i].node); /* the same each time */
		}
		check_dependencies(a, b);
		assert_int_equal(run(g, b, seed, second, sizeof(second)), n);
		assert_memory_equal(first, second, n);
		reordered += b->reordered;
		rg_plan_free(a);
		rg_plan_free(b);
		rg_plan_free(again);
		rg_graph_free(g);
	}
	assert_true(reordered > 40);
	print_message("# %d of 150 graphs in another order\n", reordered);
}

/* Steps whose shapes are found as they run stay in order among themselves. */
static void test_dynamic(void **state)
{
	struct rg_graph *h = make_graph();
	struct rg_plan *p;
	int first, second, third;

	make_input(h, "x", RG_F32, "64x64");
	make_node(h, "MatMul", "x,x", "big0");
	make_node(h, "MatMul", "big0,x", "big1");
	make_node(h, "MatMul", "big0,big0", "big2");
	make_node(h, "NonZero", "big2", "z2");
	make_node(h, "NonZero", "big0", "z0");
	make_node(h, "NonZero", "big1", "z1");
	make_output(h, "z0");
	make_output(h, "z1");
	make_output(h, "z2");
	make_finish(h);
	p = plan(h, true, false);
	assert_int_equal(p->n_dynamic, 3);
	first = plan_step(p, "z2");
	second = plan_step(p, "z0");
	third = plan_step(p, "z1");
	assert_true(first < second && second < third);
	rg_plan_free(p);
	rg_graph_free(h);
}

static void test_no_memory(void **state)
{
	struct rg_plan_options o = { .lanes = 1, .order_for_memory = true };
	int fails, rc = -1;

	for (fails = 1; fails < 2000; fails++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = make_wide();
		struct rg_plan *p;
		bool failed;

		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_plan_make(g, &o, &p, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		if (failed) {
			assert_int_equal(rc, -ENOMEM);
			assert_null(p);
		}
		rg_plan_free(p);
		rg_graph_free(g);
		if (!failed)
			break;
	}
	assert_int_equal(rc, 0);
	assert_true(fails > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_planted), cmocka_unit_test(test_random), cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
