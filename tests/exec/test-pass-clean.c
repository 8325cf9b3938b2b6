/*
 * Passes that clean up: a planted graph for each thing that they take out and each that they
 * leave; random graphs against the graph as it is; a second round that changes nothing; every
 * allocation failing once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "compile/fold.h"
#include "make-pass.h"

/* ---- no-op: x (1x4x6x5) through one node, then Neg ---- */

struct case_of_no_op {
	const char *op, *in;        /* its inputs, x among them */
	bool goes;
	int n_attrs;
	struct rg_attr attrs[2];
};

static const int64_t kept_order[] = { 0, 1, 2, 3 }, other_order[] = { 0, 1, 3, 2 }, last_axis[] = { 0 };
static const char nearest[] = "nearest", asymmetric[] = "asymmetric";

static const struct case_of_no_op no_ops[] = {
	{ "Identity", "x", true, 0, { { 0 } } },
	{ "Dropout", "x", true, 0, { { 0 } } },
	{ "Cast", "x", true, 1, { { .name = "to", .type = RG_ATTR_INT, .i = 1 } } },
	{ "Cast", "x", false, 1, { { .name = "to", .type = RG_ATTR_INT, .i = 11 } } },
	{ "Reshape", "x,shape", true, 0, { { 0 } } },
	{ "Expand", "x,shape", true, 0, { { 0 } } },
	{ "Tile", "x,ones", true, 0, { { 0 } } },
	{ "Transpose", "x", true, 1, { { .name = "perm", .type = RG_ATTR_INTS, .count = 4, .ints = kept_order } } },
	{ "Transpose", "x", false, 1, { { .name = "perm", .type = RG_ATTR_INTS, .count = 4, .ints = other_order } } },
	{ "Pad", "x,zeros8", true, 0, { { 0 } } },
	{ "Pad", "x,shift8", false, 0, { { 0 } } }, /* the same shape, one row further down */
	{ "Slice", "x,zeros,shape,axes", true, 0, { { 0 } } },
	{ "Slice", "x,ends,begins,axes,backwards", false, 0, { { 0 } } }, /* the same shape, in reverse */
	{ "Resize", "x,,scales", true, 2, { { .name = "mode", .type = RG_ATTR_STRING, .s = nearest, .s_len = 7 },
		{ .name = "coordinate_transformation_mode", .type = RG_ATTR_STRING, .s = asymmetric, .s_len = 10 } } },
	{ "Concat", "x", true, 1, { { .name = "axis", .type = RG_ATTR_INT, .i = 1 } } },
	{ "Max", "x", true, 0, { { 0 } } },
	{ "ReduceMean", "x", true, 1, { { .name = "axes", .type = RG_ATTR_INTS, .count = 1, .ints = last_axis } } },
	{ "Mul", "one,x", true, 0, { { 0 } } },
	{ "Mul", "x,wide", false, 0, { { 0 } } }, /* ones, but more of them */
	{ "Div", "x,one", true, 0, { { 0 } } },
	{ "Div", "one,x", false, 0, { { 0 } } },
	{ "Pow", "x,one", true, 0, { { 0 } } },
	{ "Add", "x,minus", true, 0, { { 0 } } },
	{ "Add", "x,zero", false, 0, { { 0 } } }, /* -0 would stay -0 */
	{ "Sub", "x,zero", true, 0, { { 0 } } },
	{ "Sub", "x,minus", false, 0, { { 0 } } },
	{ "Sub", "zero,x", false, 0, { { 0 } } },
	{ "Where", "yes,x,zero", true, 0, { { 0 } } },
	{ "Where", "no,zero,x", true, 0, { { 0 } } },
	{ "Where", "mixed,x,zero", false, 0, { { 0 } } },
};
enum { N_NO_OPS = sizeof(no_ops) / sizeof(no_ops[0]) };

static void make_bools(struct rg_graph *g, const char *name, int n, const char *v)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape shape = { .rank = 1, .dim = { n } };
	char *data = rg_alloc_aligned(64, (size_t)n);

	assert_non_null(data);
	memcpy(data, v, (size_t)n);
	assert_int_equal(rg_graph_add_const(g, rg_graph_value(g, name, &err), RG_CONST_INITIALIZER, RG_BOOL, &shape, data,
					    &err), 0);
}

static void make_parts(struct rg_graph *g)
{
	static const float one = 1, zero = 0, minus = -0.0f, ones[4] = { 1, 1, 1, 1 }, wide[2] = { 1, 1 };
	static const int64_t shape[] = { 1, 4, 6, 5 }, zeros8[8], shift8[] = { 0, 0, 1, 0, 0, 0, -1, 0 },
			     begins[] = { -9, -9, -9, -9 }, ends[] = { 8, 8, 8, 8 }, axes[] = { 0, 1, 2, 3 },
			     backwards[] = { -1, -1, -1, -1 }, ones4[] = { 1, 1, 1, 1 };

	make_floats(g, "one", "1", &one);
	make_floats(g, "zero", "", &zero);
	make_floats(g, "minus", "1x1", &minus);
	make_floats(g, "scales", "4", ones);
	make_floats(g, "wide", "2x1x1x1", wide);
	make_ints(g, "shape", 4, shape);
	make_ints(g, "ones", 4, ones4);
	make_ints(g, "zeros8", 8, zeros8);
	make_ints(g, "shift8", 8, shift8);
	make_ints(g, "zeros", 4, zeros8);
	make_ints(g, "begins", 4, begins);
	make_ints(g, "ends", 4, ends);
	make_ints(g, "axes", 4, axes);
	make_ints(g, "backwards", 4, backwards);
	make_bools(g, "yes", 1, "\1");
	make_bools(g, "no", 5, "\0\0\0\0\0");
	make_bools(g, "mixed", 5, "\1\1\0\1\1");
}

static struct rg_graph *make_no_op(uint64_t i)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x0", RG_F32, "1x4x6x5");
	make_parts(g);
	make_node(g, "Sin", "x0", "x");
	make_node_attrs(g, no_ops[i].op, no_ops[i].in, "t", no_ops[i].n_attrs, no_ops[i].attrs);
	if (no_ops[i].n_attrs && no_ops[i].attrs[0].i == 11) {
		struct rg_attr back = int_attr("to", 1);

		make_node_attrs(g, "Cast", "t", "t2", 1, &back);
		make_node(g, "Cos", "t2", "y");
	} else {
		make_node(g, "Cos", "t", "y");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static int count_nodes(const struct rg_graph *g, const char *op_type)
{
	int n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		n += !strcmp(g->nodes[i].op_type, op_type);
	return n;
}

static void test_no_op(void **state)
{
	for (int i = 0; i < N_NO_OPS; i++) {
		struct rg_graph *g = make_no_op((uint64_t)i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		if ((count_nodes(g, no_ops[i].op) > 0) == no_ops[i].goes)
			fail_msg("case %d: %s(%s) %s", i, no_ops[i].op, no_ops[i].in,
				 no_ops[i].goes ? "stayed" : "went");
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_no_op, (uint64_t)i, 1, 0, NULL);
	}
}

/* Twice what undoes itself, and what does the same again; outputs of the graph keep their names. */
static struct rg_graph *make_twice(uint64_t i)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "3x4");
	make_node(g, "Neg", "x", "a");
	make_node(g, "Neg", "a", "b");
	make_node(g, "Relu", "b", "c");
	make_node(g, "Relu", "c", "d");
	make_node(g, "Identity", "d", "y");    /* what makes d takes the name y */
	make_node(g, "Identity", "x", "z");    /* an input cannot take the name z */
	make_node(g, "Neg", "z", "z1");
	make_node(g, "Neg", "z1", "w");
	make_output(g, "y");
	make_output(g, "z");
	make_output(g, "w");
	if (i)
		make_output(g, "a");
	make_finish(g);
	return g;
}

static void test_twice(void **state)
{
	for (uint64_t i = 0; i < 2; i++) {
		struct rg_graph *g = make_twice(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_int_equal(count_nodes(g, "Relu"), 1);
		assert_string_equal(g->nodes[g->values[rg_graph_find_value(g, "y")].producer].op_type, "Relu");
		/* z is a copy of x, which is the caller's memory; w is z */
		assert_int_equal(p->n_steps, i ? 3 : 2);
		assert_string_equal(g->nodes[g->values[rg_graph_find_value(g, "w")].producer].op_type, "Identity");
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_twice, i, 1, 0, NULL);
	}
}

/* A subgraph reads a value by its name: the node that makes it stays. */
static struct rg_graph *make_captured(uint64_t i)
{
	struct rg_graph *g = make_graph(), *yes = make_body(g), *no = make_body(g);
	struct rg_attr branches[2];

	make_input(g, "x", RG_F32, "3x4");
	make_input(g, "c", RG_F32, "1");
	make_node(g, "Neg", "x", "a");
	make_node(g, "Identity", "a", "t");
	make_node(g, "Exp", "t", "y");
	make_floats(g, "zero", "", FLOATS(0));
	make_computed(g, "c", "c0");
	make_node(g, "Greater", "c0,zero", "c1");
	make_node(g, "Relu", "t", "yes");
	make_output(g, "y");
	branches[0] = graph_attr("then_branch", yes);
	branches[1] = graph_attr("else_branch", no);
	make_node(yes, "Abs", "t", "yes-y");
	make_output(yes, "yes-y");
	make_node(no, "Neg", "t", "no-y");
	make_output(no, "no-y");
	make_node_attrs(g, "If", "c1", "z", 2, branches);
	make_output(g, "z");
	make_finish(g);
	return g;
}

static void test_captured(void **state)
{
	struct rg_graph *g = make_captured(0);
	struct rg_plan *p = plan_at(g, 3, 0, NULL);

	assert_int_equal(count_nodes(g, "Identity"), 1);
	rg_plan_free(p);
	rg_graph_free(g);
	compare(make_captured, 0, 3, 0, NULL);
}

/* ---- properties ---- */

/* Nodes of all kinds that these passes look at, on values of one shape, read at random. */
static struct rg_graph *make_any(uint64_t seed)
{
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "clean");
	int n = 4 + (int)rg_rng_integer(stream, 0, 0, 12);
	char names[20][16];

	make_input(g, "v0", RG_F32, "1x4x6x5");
	make_parts(g);
	strcpy(names[0], "v0");
	for (int i = 1; i <= n; i++) {
		static const char *const ops[] = { "Neg", "Relu", "Abs", "Sin", "Identity", "Floor" };
		uint64_t at = (uint64_t)i * 4;
		int from = rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		int kind = (int)rg_rng_integer(stream, at + 2, 0, 11);
		char in[80];

		snprintf(names[i], sizeof(names[i]), "v%d", i);
		if (kind < 6) {
			make_node(g, ops[kind], names[from], names[i]);
		} else if (kind < 10) {
			const struct case_of_no_op *c = &no_ops[rg_rng_integer(stream, at + 3, 0, N_NO_OPS - 1)];
			char *x;

			if (!strcmp(c->op, "Cast") || !strcmp(c->in, "x,wide") || (c->n_attrs && c->attrs[0].ints == other_order)) {
				make_node(g, "Identity", names[from], names[i]);
				goto made;
			}
			snprintf(in, sizeof(in), "%s", c->in);
			x = strchr(in, 'x');
			while (x != in && x[-1] != ',')
				x = strchr(x + 1, 'x');
			snprintf(in, sizeof(in), "%.*s%s%s", (int)(x - in), c->in, names[from], c->in + (x - in) + 1);
			make_node_attrs(g, c->op, in, names[i], c->n_attrs, c->attrs);
		} else {
			snprintf(in, sizeof(in), "%s,%s", names[from], names[rg_rng_integer(stream, at + 3, 0, i - 1)]);
			make_node(g, "Add", in, names[i]);
		}
made:
		if (rg_rng_integer(stream, at + 3, 0, 9) == 0)
			make_output(g, names[i]);
	}
	if (!g->values[rg_graph_find_value(g, names[n])].is_output)
		make_output(g, names[n]);
	make_finish(g);
	return g;
}

static void test_random(void **state)
{
	int rewritten = 0;

	for (uint64_t seed = 0; seed < 150; seed++) {
		rewritten += compare(make_any, seed, 3, 0, NULL);
		for (int pass = 0; pass < rg_pass_count(); pass++) { /* each alone */
			const char *others[64];
			int n = 0;

			for (int k = 0; k < rg_pass_count(); k++)
				if (k != pass)
					others[n++] = rg_pass_at(k)->name;
			compare(make_any, seed, RG_PASS_LEVELS, n, others);
		}
	}
	assert_true(rewritten > 100);
}

static void test_idempotent(void **state)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	static const struct rg_pass_options o = { .level = RG_PASS_LEVELS };

	for (uint64_t seed = 0; seed < 200; seed++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = make_any(seed);
		struct rg_pass_log first = { 0 }, second = { 0 };

		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		assert_int_equal(rg_passes_run(g, &o, &first, &err), 0);
		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		assert_int_equal(rg_passes_run(g, &o, &second, &err), 0);
		if (second.n_rewritten)
			fail_msg("seed %d: %s of %s again", (int)seed, second.notes[0].pass, second.notes[0].node);
		rg_pass_log_free(&first);
		rg_pass_log_free(&second);
		rg_graph_free(g);
	}
}

static void test_allocation_failures(void **state)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		int fails = 0, rc;

		do {
			struct rg_error err = RG_ERROR_INIT;
			struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 } };
			struct rg_graph *g = make_any(seed);
			struct rg_plan *p = NULL;

			rg_alloc_fail_at((uint64_t)++fails);
			rc = rg_plan_make(g, &opt, &p, &err);
			rg_alloc_fail_at(0);
			if (rc)
				assert_int_equal(rc, -ENOMEM);
			rg_plan_free(p);
			rg_graph_free(g);
		} while (rc && fails < 20000);
		assert_int_equal(rc, 0);
		assert_true(fails > 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_op),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-clean", tests, NULL, NULL);
}
