/* Which kernel a node gets: rank, then the least estimate, what was asked for, and the reason given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "compile/select.h"
#include "kernels/kernel.h"
#include "tests/compile/make-graph.h"

static int run_nothing(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return 0;
}

static int64_t elements(const struct rg_call *c)
{
	return rg_shape_count(&c->in[0].shape);
}

/* Good at much, slow to start. */
static double cost_wide(const struct rg_call *c)
{
	return 1000 + (double)elements(c);
}

static double cost_small(const struct rg_call *c)
{
	return 20 * (double)elements(c);
}

static double cost_never(const struct rg_call *c)
{
	return 1e12;
}

static bool supports_none(const struct rg_call *c)
{
	return false;
}

/* Rank 1000 is above everything that is compiled in. */
static const struct rg_kernel fakes[] = {
	{ .op_type = "Relu", .domain = "", .name = "fake-unknown", .rank = 1000, .run = run_nothing },
	{ .op_type = "Relu", .domain = "", .name = "fake-wide", .rank = 1000, .cost = cost_wide, .run = run_nothing },
	{ .op_type = "Relu", .domain = "", .name = "fake-small", .rank = 1000, .cost = cost_small, .run = run_nothing },
	{ .op_type = "Relu", .domain = "", .name = "fake-unable", .rank = 2000, .supports = supports_none, .run = run_nothing },
	/* a higher rank wins whatever it costs */
	{ .op_type = "Neg", .domain = "", .name = "fake-low", .rank = 1000, .cost = cost_small, .run = run_nothing },
	{ .op_type = "Neg", .domain = "", .name = "fake-high", .rank = 1001, .cost = cost_never, .run = run_nothing },
	/* without an estimate the first of the tables */
	{ .op_type = "Abs", .domain = "", .name = "fake-first", .rank = 1000, .run = run_nothing },
	{ .op_type = "Abs", .domain = "", .name = "fake-second", .rank = 1000, .run = run_nothing },
};
static RG_KERNEL_TABLE(fake_table, fakes);

static struct rg_plan *plan_of(const char *op, const char *shape, struct rg_graph **graph)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, shape);
	make_node(g, op, "x", "y");
	make_output(g, "y");
	make_finish(g);
	*graph = g;
	return make_plan(g, 1);
}

static void check(const char *op, const char *shape, const char *kernel, const char *reason)
{
	struct rg_graph *g;
	struct rg_plan *p = plan_of(op, shape, &g);

	assert_int_equal(p->n_steps, 1);
	assert_string_equal(p->steps[0].kernel->name, kernel);
	if (!strstr(p->steps[0].reason, reason))
		fail_msg("%s: '%s' is not in '%s'", op, reason, p->steps[0].reason);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_cost(void **state)
{
	/* 20 n against 1000 + n: equal at 52.6 */
	check("Relu", "52", "fake-small", "least estimate of 3 of rank 1000: 0.00104 million vector multiply-adds, 'fake-wide' 0.00105");
	check("Relu", "53", "fake-wide", "'fake-small' 0.00106");
	check("Neg", "8", "fake-high", "rank 1001, the highest of ");
	check("Abs", "8", "fake-first", "rank 1000, the highest of ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
	};

	rg_kernel_inject(&fake_table);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
