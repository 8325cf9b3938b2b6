/*
 * Operators that an exporter has taken apart (pass-gelu.c and the like): every order of
 * their parts is put together and computes the same, what is nearly one is left alone
 * with the reason, and what is not one is not looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make-pattern.h"

/* One step of that type is all that is left, and computes the same. */
static void check_becomes(make_fn *make, uint64_t how, int level, const char *op_type)
{
	struct rg_graph *g = make(how);
	struct rg_plan *p = plan_at(g, level, 0, NULL);

	if (p->n_steps != 1 || count_op(p, op_type) != 1)
		fail_msg("order %d: %d steps, the first a %s, not one %s", (int)how, p->n_steps,
			 g->nodes[p->steps[0].node].op_type, op_type);
	rg_plan_free(p);
	rg_graph_free(g);
	compare(make, how, level, 0, NULL);
}

/* ---- GELU ---- */

enum { GELU_ORDERS = 2 * 5 * 5 * 4, SILU_ORDERS = 2 * 4 };

/* x/2 (1 + t) in one of five ways. */
static void make_half_product(struct rg_graph *g, const char *x, const char *t, const char *y, int way, bool swap)
{
	make_number(g, "half", 0.5f);
	make_number(g, "one", 1);
	make_number(g, "two", 2);
	if (way < 4)
		make_pair(g, "Add", t, "one", "w1", swap);
	switch (way) {
	case 0:
		make_pair(g, "Mul", x, "half", "w2", swap);
		make_pair(g, "Mul", "w2", "w1", y, swap);
		break;
	case 1:
		make_pair(g, "Mul", "w1", "half", "w2", swap);
		make_pair(g, "Mul", x, "w2", y, swap);
		break;
	case 2:
		make_pair(g, "Mul", x, "w1", "w2", swap);
		make_pair(g, "Mul", "w2", "half", y, swap);
		break;
	case 3:
		make_pair(g, "Mul", x, "w1", "w2", swap);
		make_pair(g, "Div", "w2", "two", y, false);
		break;
	default:
		make_pair(g, "Mul", x, "half", "w1", swap);
		make_pair(g, "Mul", "w1", t, "w2", swap);
		make_pair(g, "Add", "w1", "w2", y, swap);
	}
}

/* sqrt(2 / pi) (x + 0.044715 x^3) */
static void make_cubic(struct rg_graph *g, const char *x, const char *y, int way, bool swap)
{
	make_number(g, "root", 0.7978845608f);
	make_number(g, "cube", 0.044715f);
	make_number(g, "three", 3);
	make_number(g, "one", 1);
	if (way < 2) {
		if (way) {
			make_node(g, "Pow", "x,three", "c1");
		} else {
			make_pair(g, "Mul", x, x, "c0", false);
			make_pair(g, "Mul", x, "c0", "c1", swap);
		}
		make_pair(g, "Mul", "c1", "cube", "c2", swap);
		make_pair(g, "Add", x, "c2", "c3", swap);
		make_pair(g, "Mul", "c3", "root", y, swap);
		return;
	}
	make_pair(g, "Mul", x, "cube", "c0", swap); /* x root (1 + cube x x) */
	make_pair(g, "Mul", "c0", x, "c1", swap);
	make_pair(g, "Add", "c1", "one", "c2", swap);
	make_pair(g, "Mul", x, "root", "c3", swap);
	make_pair(g, "Mul", "c3", "c2", y, swap);
}

static struct rg_graph *make_gelu(uint64_t how)
{
	struct rg_graph *g = make_graph();
	bool swap = choose(&how, 2);
	int inner = choose(&how, 5), way = choose(&how, 5), more = choose(&how, 4);

	make_input(g, "x", RG_F32, "2x3x5");
	if (inner < 2) {
		make_number(g, "by", inner ? 0.70710678f : 1.41421356f);
		make_pair(g, inner ? "Mul" : "Div", "x", "by", "u", inner && swap);
		make_node(g, "Erf", "u", "t");
	} else {
		make_cubic(g, "x", "u", inner - 2, swap);
		make_node(g, "Tanh", "u", "t");
	}
	make_half_product(g, "x", "t", more ? "z" : "y", way, swap);
	if (more == 1) /* what becomes of it does not matter */
		make_node(g, "Neg", "z", "y");
	else if (more == 2)
		make_pair(g, "Mul", "z", "x", "y", swap);
	else if (more)
		make_node(g, "Softplus", "z", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_gelu(void **state)
{
	for (uint64_t how = 0; how < GELU_ORDERS; how++) {
		struct rg_graph *g = make_gelu(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		bool by_tanh = how / 2 % 5 >= 2;

		if (p->n_steps != (how < 50 ? 1 : 2))
			fail_msg("order %d: %d steps", (int)how, p->n_steps);
		assert_string_equal(rg_node_string(node_of(p, "Gelu"), "approximate", "none"), by_tanh ? "tanh" : "none");
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_gelu, how, 1, 0, NULL);
	}
}

/* ---- SiLU ---- */

static struct rg_graph *make_silu(uint64_t how)
{
	struct rg_graph *g = make_graph();
	bool swap = choose(&how, 2);
	int inner = choose(&how, 4);

	make_input(g, "x", RG_F32, "2x3x5");
	make_number(g, "a", 1.702f);
	make_number(g, "one", 1);
	if (inner)
		make_pair(g, inner == 3 ? "Div" : "Mul", "x", inner == 1 ? "one" : "a", "u", inner < 3 && swap);
	make_node(g, "Sigmoid", inner ? "u" : "x", "t");
	make_pair(g, "Mul", "x", "t", "y", swap);
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_silu(void **state)
{
	static const float alphas[] = { 1, 1, 1.702f, 1 / 1.702f };

	for (uint64_t how = 0; how < SILU_ORDERS; how++) {
		struct rg_graph *g = make_silu(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_float_equal(rg_node_float(node_of(p, "Swish"), "alpha", 1), alphas[how / 2], 1e-6);
		rg_plan_free(p);
		rg_graph_free(g);
		check_becomes(make_silu, how, 1, "Swish");
	}
}

/* ---- normalisation of rows ---- */

enum { NORM_ORDERS = 2 * 2 * 2 * 4 * 5 * 2 };

static struct rg_graph *make_norm(uint64_t how)
{
	struct rg_graph *g = make_graph();
	bool swap = choose(&how, 2), rms = choose(&how, 2), power = choose(&how, 2);
	int root = choose(&how, 4), rows = choose(&how, 5), axes = choose(&how, 2);
	const int64_t list[] = { axes ? 1 : -1, 2 };
	struct rg_attr attr = ints_attr("axes", axes ? 2 : 1, list);
	const char *d = rms ? "x" : "d", *n = "n";

	make_input(g, "x", RG_F32, "2x3x5");
	make_number(g, "two", 2);
	make_number(g, "epsilon", 1e-3f);
	make_number(g, "half", root & 1 ? -0.5f : 0.5f);
	random_floats(g, "scale", axes ? "3x5" : "5", axes ? 15 : 5, 1, 0.5f);
	random_floats(g, "bias", axes ? "3x5" : "5", axes ? 15 : 5, 2, -0.5f);
	random_floats(g, "column", axes ? "1x1" : "3x1", axes ? 1 : 3, 2, -0.5f);
	if (!rms) {
		make_node_attrs(g, "ReduceMean", "x", "mean", 1, &attr);
		make_node(g, "Sub", "x,mean", "d");
		if (swap)
			make_node(g, "Sub", "x,mean", "d2");
	}
	make_pair(g, power ? "Pow" : "Mul", d, power ? "two" : d, "square", false);
	make_node_attrs(g, "ReduceMean", "square", "variance", 1, &attr);
	make_pair(g, "Add", "variance", "epsilon", "sum", swap);
	make_node(g, root < 2 ? "Sqrt" : "Pow", root < 2 ? "sum" : "sum,half", "root");
	if (!rms && swap)
		d = "d2";
	if (root == 1)
		make_node(g, "Reciprocal", "root", "inverse");
	if (rows == 0)
		n = "y";
	make_pair(g, root & 1 ? "Mul" : "Div", d, root == 1 ? "inverse" : "root", n, (root & 1) && swap);
	switch (rows) {
	case 1: make_pair(g, "Mul", "n", "scale", "y", swap); break;
	case 2: make_pair(g, "Add", "n", "bias", "y", swap); break;
	case 3:
		make_pair(g, "Mul", "n", "scale", "m", swap);
		make_pair(g, "Add", "m", "bias", "y", swap);
		break;
	case 4: make_pair(g, "Mul", "n", "column", "y", swap); break; /* not one row for all */
	default: break;
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_norm(void **state)
{
	for (uint64_t how = 0; how < NORM_ORDERS; how++) {
		struct rg_graph *g = make_norm(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		bool rms = how / 2 % 2;
		int rows = (int)(how / 32 % 5), axes = (int)(how / 160);
		const struct rg_node *n = node_of(p, rms ? "RMSNormalization" : "LayerNormalization");

		if (p->n_steps != 1 + (rows == 4 || (rms && (rows == 2 || rows == 3))))
			fail_msg("order %d: %d steps", (int)how, p->n_steps);
		assert_int_equal(rg_node_int(n, "axis", 0), axes ? -2 : -1);
		assert_float_equal(rg_node_float(n, "epsilon", 0), 1e-3f, 0);
		assert_int_equal(n->n_in, !rms && (rows == 2 || rows == 3) ? 3 : 2);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_norm, how, 1, 0, NULL);
	}
}

/* ---- a residual before it ---- */

enum { SKIP_ORDERS = 2 * 2 * 4 * 3 * 2 };

static struct rg_graph *make_skip(uint64_t how)
{
	struct rg_graph *g = make_graph();
	bool swap = choose(&how, 2), rms = choose(&how, 2);
	int bias = choose(&how, 4), reads = choose(&how, 3), rank = choose(&how, 2);
	struct rg_attr epsilon = { .name = "epsilon", .type = RG_ATTR_FLOAT, .f = 1e-3f };
	const char *x = "x", *skip = "skip";

	make_input(g, "x", RG_F32, rank ? "2x3x8" : "3x8");
	make_input(g, "skip", RG_F32, rank ? "2x3x8" : "3x8");
	random_floats(g, "row", "8", 8, 3, -0.5f);
	random_floats(g, "scale", "8", 8, 1, 0.5f);
	random_floats(g, "bias", "8", 8, 2, -0.5f);
	if (bias & 1) {
		make_pair(g, "Add", "x", "row", "xb", swap);
		x = "xb";
	}
	if (bias & 2) {
		make_pair(g, "Add", "skip", "row", "skipb", swap);
		skip = "skipb";
	}
	make_pair(g, "Add", x, skip, "sum", swap);
	if (rms) { /* younger than the graph: as its parts */
		make_pair(g, "Mul", "sum", "sum", "square", false);
		make_node_attrs(g, "ReduceMean", "square", "mean", 1, ATTRS(ints_attr("axes", 1, INTS(-1))));
		make_number(g, "epsilon", 1e-3f);
		make_node(g, "Add", "mean,epsilon", "more");
		make_node(g, "Sqrt", "more", "root");
		make_node(g, "Div", "sum,root", "n");
		make_node(g, "Mul", "n,scale", "y");
	} else {
		make_node_attrs(g, "LayerNormalization", swap ? "sum,scale" : "sum,scale,bias", "y", 1, &epsilon);
	}
	if (reads == 1)
		make_output(g, "sum");
	if (reads == 2) {
		make_node(g, "Softplus", "sum", "z");
		make_output(g, "z");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_skip(void **state)
{
	for (uint64_t how = 0; how < SKIP_ORDERS; how++) {
		struct rg_graph *g = make_skip(how);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);
		bool rms = how / 2 % 2;
		int bias = (int)(how / 4 % 4), reads = (int)(how / 16 % 3);
		const struct rg_node *n = node_of(p, rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization");

		/* one row of the two goes in */
		if (p->n_steps != 1 + (reads == 2) + (bias == 3))
			fail_msg("order %d: %d steps", (int)how, p->n_steps);
		assert_int_equal(n->n_out, reads ? 4 : 1);
		assert_float_equal(rg_node_float(n, "epsilon", 0), 1e-3f, 0);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_skip, how, 3, 0, NULL);
	}
}

/* ---- what is declined, and what is none ---- */

static void plant_erf(struct rg_graph *g, const char *by, const char *one)
{
	make_input(g, "x", RG_F32, "2x3x5");
	make_node_attrs(g, "Div", by, "u", 0, NULL);
	make_node(g, "Erf", "u", "t");
	make_number(g, "half", 0.5f);
	make_pair(g, "Add", "t", one, "w", false);
	make_pair(g, "Mul", "x", "half", "h", false);
	make_pair(g, "Mul", "h", "w", "y", false);
}

/* From what is squared on, over an axis: "variance", "deviation", "y" = over / deviation. */
static void plant_norm(struct rg_graph *g, const char *square, const char *over, int64_t axis)
{
	struct rg_attr attr = ints_attr("axes", 1, &axis);

	make_number(g, "epsilon", 1e-3f);
	make_pair(g, "Mul", square, square, "square", false);
	make_node_attrs(g, "ReduceMean", "square", "variance", 1, &attr);
	make_node(g, "Add", "variance,epsilon", "sum");
	make_node(g, "Sqrt", "sum", "deviation");
	make_pair(g, "Div", over, "deviation", "y", false);
}

static struct planted plant(int i)
{
	struct planted p = { make_graph(), "gelu", "t", RG_DECLINE_NONE };
	struct rg_graph *g = p.g;
	static const float ones[] = { 1, 1, 1, 1, 1 };

	make_number(g, "one", 1);
	make_number(g, "root", i == 3 ? 1.4142f : 1.41421356f);
	switch (i) {
	case 0: /* the sum is read by somebody else */
		plant_erf(g, "x,root", "one");
		make_node(g, "Neg", "w", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 1: /* erf is an output */
		plant_erf(g, "x,root", "one");
		make_output(g, "t");
		p.why = RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 2: /* 2 - erf: another function */
		make_number(g, "two", 2);
		plant_erf(g, "x,root", "two");
		break;
	case 3: /* a root of too few digits */
		plant_erf(g, "x,root", "one");
		break;
	case 4: /* a divisor of run time */
		make_input(g, "r", RG_F32, "");
		plant_erf(g, "x,r", "one");
		break;
	case 5: /* ones that are no number */
		make_floats(g, "ones", "5", ones);
		plant_erf(g, "x,root", "ones");
		break;
	case 6: /* a sigmoid that somebody else reads */
		make_input(g, "x", RG_F32, "2x3x5");
		make_node(g, "Sigmoid", "x", "t");
		make_pair(g, "Mul", "x", "t", "y", false);
		make_node(g, "Neg", "t", "z");
		make_output(g, "z");
		p.pass = "silu";
		p.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 7: /* the gate of another tensor */
		make_input(g, "x", RG_F32, "2x3x5");
		make_input(g, "v", RG_F32, "2x3x5");
		make_node(g, "Sigmoid", "v", "t");
		make_pair(g, "Mul", "x", "t", "y", false);
		break;
	case 8: /* somebody else reads the root */
		make_input(g, "x", RG_F32, "2x3x5");
		plant_norm(g, "x", "x", -1);
		make_node(g, "Neg", "deviation", "z");
		make_output(g, "z");
		p.pass = "layer-norm";
		p.node = "deviation";
		p.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 9: /* the mean square is an output */
		make_input(g, "x", RG_F32, "2x3x5");
		plant_norm(g, "x", "x", -1);
		make_output(g, "variance");
		p.pass = "layer-norm";
		p.node = "deviation";
		p.why = RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 10: /* not the last dimension */
		make_input(g, "x", RG_F32, "2x3x5");
		plant_norm(g, "x", "x", 1);
		p.pass = "layer-norm";
		break;
	case 11: /* another tensor's root */
		make_input(g, "x", RG_F32, "2x3x5");
		make_input(g, "v", RG_F32, "2x3x5");
		plant_norm(g, "x", "v", -1);
		p.pass = "layer-norm";
		break;
	case 12: /* a residual of one sequence for all of the batch */
		make_input(g, "x", RG_F32, "2x3x8");
		make_input(g, "skip", RG_F32, "3x8");
		random_floats(g, "scale", "8", 8, 1, 0.5f);
		make_node(g, "Add", "x,skip", "t");
		make_node(g, "LayerNormalization", "t,scale", "y");
		p.pass = "skip-layer-norm";
		p.why = RG_DECLINE_BROADCASTING;
		break;
	default: /* a gate of another shape */
		make_input(g, "x", RG_F32, "2x1x5");
		make_number(g, "a", 2);
		make_floats(g, "grow", "3x1", ones);
		make_pair(g, "Mul", "x", "grow", "v", false);
		make_node(g, "Sigmoid", "v", "t");
		make_pair(g, "Mul", "x", "t", "y", false);
	}
	make_output(g, "y");
	make_finish(g);
	return p;
}

enum { N_PLANTED = 14 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++)
		check_planted(plant(i), i, i == 12 ? 3 : 1, planted_graph);
}

/* ---- properties ---- */

static void test_idempotent(void **state)
{
	for (uint64_t how = 0; how < GELU_ORDERS; how += 7)
		check_settles(make_gelu, how);
	for (uint64_t how = 0; how < SILU_ORDERS; how++)
		check_settles(make_silu, how);
	for (uint64_t how = 0; how < NORM_ORDERS; how += 3)
		check_settles(make_norm, how);
	for (uint64_t how = 0; how < SKIP_ORDERS; how++)
		check_settles(make_skip, how);
}

static void test_allocation_failures(void **state)
{
	check_allocations(make_gelu, 14);
	check_allocations(make_silu, 6);
	check_allocations(make_norm, 0);
	check_allocations(make_norm, 3 * 32);
	check_allocations(make_skip, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gelu),
		cmocka_unit_test(test_silu),
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
