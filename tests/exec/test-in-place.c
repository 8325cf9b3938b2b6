/*
 * Outputs over the memory of an input: where it must not be, and random graphs that give
 * the same bits with and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "exec/exec.h"
#include "sys/cpu.h"
#include "tests/compile/make-graph.h"

static struct rg_plan *plan(struct rg_graph *g, bool keep_inputs, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan_options o = { .lanes = lanes, .keep_inputs = keep_inputs };
	struct rg_cpu cpu;
	struct rg_plan *p;

	rg_cpu_detect("", &cpu);
	o.isa = cpu.isa;
	if (rg_plan_make(g, &o, &p, &err) || rg_plan_check(p, &err))
		fail_msg("%s: %s", err.where, err.message);
	return p;
}

static bool written_over(const struct rg_plan *p, const char *out, const char *in)
{
	int over = plan_value(p, out)->over;

	return over >= 0 && strcmp(p->graph->values[over].name, in) == 0;
}

static void test_where(void **state)
{
	const int64_t square[] = { 8, 8 };
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "8x8");
	make_input(g, "row", RG_F32, "8");
	make_ints(g, "square", 2, square);
	make_node(g, "Relu", "x", "a");         /* x is the caller's */
	make_node(g, "Neg", "a", "b");          /* a is read later */
	make_node(g, "Add", "a,b", "c");        /* either dies: the first of them */
	make_node(g, "Abs", "row", "r");        /* the caller's again */
	make_node(g, "Neg", "r", "r2");         /* over r */
	make_node(g, "Add", "r2,c", "d");       /* r2 is broadcast, c is not */
	make_node(g, "MatMul", "d,x", "e");     /* a product cannot */
	make_node(g, "Neg", "e", "f");          /* an output of the graph keeps its memory */
	make_node(g, "Reshape", "f,square", "v");
	make_node(g, "Exp", "v", "h");          /* through a view of f, which dies */
	make_node(g, "Mul", "h,h", "k");        /* twice the same */
	make_node(g, "Greater", "k,k", "m");    /* of another type */
	make_node(g, "Not", "m", "n");
	make_output(g, "e");
	make_output(g, "n");
	make_finish(g);
	p = plan(g, false, 1);
	assert_int_equal(plan_value(p, "a")->over, -1);
	assert_int_equal(plan_value(p, "b")->over, -1);
	assert_true(written_over(p, "c", "a"));
	assert_int_equal(plan_value(p, "r")->over, -1);
	assert_true(written_over(p, "r2", "r"));
	assert_true(written_over(p, "d", "c"));
	assert_int_equal(plan_value(p, "e")->over, -1);
	assert_int_equal(plan_value(p, "f")->over, -1);
	assert_true(written_over(p, "h", "f"));
	assert_true(written_over(p, "k", "h"));
	assert_int_equal(plan_value(p, "m")->over, -1);
	assert_true(written_over(p, "n", "m"));
	assert_int_equal(p->n_in_place, 6);
	rg_plan_free(p);
	p = plan(g, true, 1);
	assert_int_equal(p->n_in_place, 0);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* x of 1x8 and 8x1 are views of one memory: the sum of them walks it in two orders. */
static void test_two_views(void **state)
{
	const int64_t across[] = { 1, 8 }, down[] = { 8, 1 };
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "1x8");
	make_ints(g, "across", 2, across);
	make_ints(g, "down", 2, down);
	make_node(g, "Relu", "x", "a");
	make_node(g, "Reshape", "a,down", "b");
	make_node(g, "Reshape", "a,across", "c");
	make_node(g, "Add", "b,c", "y");        /* 8x8: too large for either */
	make_node(g, "Neg", "y", "z");
	make_output(g, "z");
	make_finish(g);
	p = plan(g, false, 1);
	assert_int_equal(plan_value(p, "y")->over, -1);
	assert_true(written_over(p, "z", "y"));
	rg_plan_free(p);
	rg_graph_free(g);
}

/* The outputs, one behind the other; returns how many bytes. */
static size_t run(const struct rg_graph *g, const struct rg_plan *p, uint64_t seed, char *out, size_t cap)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_exec_options o = { 0 };
	struct rg_exec *x;
	size_t at = 0;
	int i, again;

	if (rg_exec_new(p, &o, &x, &err))
		fail_msg("%s", err.message);
	for (i = 0; i < g->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(x, i);
		int64_t k, n = rg_shape_count(&t.shape);

		for (k = 0; k < n; k++)
			((float *)t.data)[k] = (float)(2 * rg_rng_unit(rg_rng_stream(seed, "in-place"), (uint64_t)(k + 7 * i)) - 1);
	}
	/* twice: the first run must not have changed what the second needs */
	for (again = 0; again < 2; again++) {
		if (rg_exec_run(x, &err))
			fail_msg("%s", err.message);
		for (i = 0, at = 0; i < g->n_outputs; i++) {
			struct rg_tensor t = rg_exec_output(x, i);
			size_t n = (size_t)rg_tensor_bytes(t.dtype, &t.shape);

			assert_true(at + n <= cap);
			if (again)
				assert_memory_equal(out + at, t.data, n);
			memcpy(out + at, t.data, n);
			at += n;
		}
	}
	rg_exec_free(x);
	return at;
}

static void test_same_bits(void **state)
{
	static char apart[1 << 20], over[1 << 20];
	int64_t less = 0, all = 0;
	int n_in_place = 0;
	uint64_t seed;

	for (seed = 0; seed < 150; seed++) {
		struct rg_graph *g = make_random(seed + 900, 5 + (int)(seed % 90));
		struct rg_plan *a = plan(g, true, 1), *b = plan(g, false, 1 + (int)(seed % 3));
		size_t n = run(g, a, seed, apart, sizeof(apart));

		assert_int_equal(run(g, b, seed, over, sizeof(over)), n);
		assert_memory_equal(apart, over, n);
		assert_int_equal(a->n_in_place, 0);
		assert_true(b->arena_lower_bound_bytes <= a->arena_lower_bound_bytes);
		assert_int_equal(a->n_edges, b->n_edges);
		n_in_place += b->n_in_place;
		all += a->arena_bytes;
		less += a->arena_bytes - b->arena_bytes;
		rg_plan_free(a);
		rg_plan_free(b);
		rg_graph_free(g);
	}
	assert_true(n_in_place > 300);
	assert_true(less > all / 20);
	print_message("# %d steps in place, %lld of %lld bytes less\n", n_in_place, (long long)less, (long long)all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where), cmocka_unit_test(test_two_views), cmocka_unit_test(test_same_bits),
	};

	return cmocka_run_group_tests_name("in-place", tests, NULL, NULL);
}
