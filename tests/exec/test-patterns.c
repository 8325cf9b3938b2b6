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

#include "base/alloc.h"
#include "compile/fold.h"
#include "make-pass.h"

/* "y = op(a, b)", the operands swapped where the operator does not mind and `swap` is set. */
static void make_pair(struct rg_graph *g, const char *op, const char *a, const char *b, const char *y, bool swap)
{
	char in[80];

	snprintf(in, sizeof(in), "%s,%s", swap ? b : a, swap ? a : b);
	make_node(g, op, in, y);
}

static void make_number(struct rg_graph *g, const char *name, float f)
{
	if (rg_graph_find_value(g, name) < 0)
		make_floats(g, name, "", &f);
}

/* The next of a handful of choices that a number holds. */
static int choose(uint64_t *how, int n)
{
	int c = (int)(*how % (uint64_t)n);

	*how /= (uint64_t)n;
	return c;
}

static int count_op(const struct rg_plan *p, const char *op_type)
{
	int n = 0;

	for (int i = 0; i < p->n_steps; i++)
		n += !strcmp(p->graph->nodes[p->steps[i].node].op_type, op_type);
	return n;
}

static const struct rg_node *node_of(const struct rg_plan *p, const char *op_type)
{
	for (int i = 0; i < p->n_steps; i++)
		if (!strcmp(p->graph->nodes[p->steps[i].node].op_type, op_type))
			return &p->graph->nodes[p->steps[i].node];
	fail_msg("no step %s", op_type);
	return NULL;
}

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

/* ---- what is declined, and what is none ---- */

struct planted {
	struct rg_graph *g;
	const char *pass, *node;    /* output of the node that is noted */
	enum rg_decline why;        /* none: nobody may say a word */
};

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

enum { N_PLANTED = 9 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++) {
		struct planted t = plant(i);
		struct rg_plan *p = plan_at(t.g, 1, 0, NULL);
		int found = 0;
		char name[32];

		snprintf(name, sizeof(name), "n:%s", t.node);
		for (int k = 0; k < p->passes.n_notes; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			if (strcmp(n->pass, t.pass))
				continue;
			found++;
			assert_string_equal(n->node, name);
			if (n->decline != t.why)
				fail_msg("graph %d: %s, not %s", i, rg_decline_name(n->decline), rg_decline_name(t.why));
		}
		if (found != (t.why ? 1 : 0))
			fail_msg("graph %d: %d notes of pass %s", i, found, t.pass);
		rg_plan_free(p);
		rg_graph_free(t.g);
		compare(planted_graph, (uint64_t)i, 3, 0, NULL);
	}
}

/* ---- properties ---- */

static void check_settles(make_fn *make, uint64_t how)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	static const struct rg_pass_options o = { .level = RG_PASS_LEVELS };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make(how);
	struct rg_pass_log log[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		assert_int_equal(rg_passes_run(g, &o, &log[i], &err), 0);
	}
	if (log[1].n_rewritten)
		fail_msg("order %d: %s of %s again", (int)how, log[1].notes[0].pass, log[1].notes[0].node);
	rg_pass_log_free(&log[0]);
	rg_pass_log_free(&log[1]);
	rg_graph_free(g);
}

static void test_idempotent(void **state)
{
	for (uint64_t how = 0; how < GELU_ORDERS; how += 7)
		check_settles(make_gelu, how);
	for (uint64_t how = 0; how < SILU_ORDERS; how++)
		check_settles(make_silu, how);
}

static void check_allocations(make_fn *make, uint64_t how)
{
	int fails = 0, rc;

	do {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 } };
		struct rg_graph *g = make(how);
		struct rg_plan *p = NULL;

		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_plan_make(g, &opt, &p, &err);
		rg_alloc_fail_at(0);
		if (rc)
			assert_int_equal(rc, -ENOMEM);
		rg_plan_free(p);
		rg_graph_free(g);
	} while (rc && fails < 5000);
	assert_int_equal(rc, 0);
	assert_true(fails > 20);
}

static void test_allocation_failures(void **state)
{
	check_allocations(make_gelu, 14);
	check_allocations(make_silu, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gelu),
		cmocka_unit_test(test_silu),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
