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
	{ "Transpose",
	  "x",
	  true,
	  1,
	  { { .name = "perm", .type = RG_ATTR_INTS, .count = 4, .ints = kept_order } } },
	{ "Transpose",
	  "x",
	  false,
	  1,
	  { { .name = "perm", .type = RG_ATTR_INTS, .count = 4, .ints = other_order } } },
	{ "Pad", "x,zeros8", true, 0, { { 0 } } },
	{ "Pad", "x,shift8", false, 0, { { 0 } } }, /* the same shape, one row further down */
	{ "Slice", "x,zeros,shape,axes", true, 0, { { 0 } } },
	{ "Slice", "x,ends,begins,axes,backwards", false, 0, { { 0 } } }, /* the same shape, in reverse */
	{ "Resize",
	  "x,,scales",
	  true,
	  2,
	  { { .name = "mode", .type = RG_ATTR_STRING, .s = nearest, .s_len = 7 },
	    { .name = "coordinate_transformation_mode",
	      .type = RG_ATTR_STRING,
	      .s = asymmetric,
	      .s_len = 10 } } },
	{ "Concat", "x", true, 1, { { .name = "axis", .type = RG_ATTR_INT, .i = 1 } } },
	{ "Max", "x", true, 0, { { 0 } } },
	{ "ReduceMean",
	  "x",
	  true,
	  1,
	  { { .name = "axes", .type = RG_ATTR_INTS, .count = 1, .ints = last_axis } } },
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
	assert_int_equal(rg_graph_add_const(g, rg_graph_value(g, name, &err), RG_CONST_INITIALIZER, RG_BOOL,
					    &shape, data, &err),
			 0);
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
		assert_string_equal(g->nodes[g->values[rg_graph_find_value(g, "y")].producer].op_type,
				    "Relu");
		/* z is a copy of x, which is the caller's memory; w is z */
		assert_int_equal(p->n_steps, i ? 3 : 2);
		assert_string_equal(g->nodes[g->values[rg_graph_find_value(g, "w")].producer].op_type,
				    "Identity");
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

/* ---- transposes and reshapes ---- */

static void make_transpose(struct rg_graph *g, const char *x, const char *y, int n, const int64_t *perm)
{
	struct rg_attr attr = ints_attr("perm", n, perm);

	make_node_attrs(g, "Transpose", x, y, 1, &attr);
}

enum { UNARY, BOTH, CHAIN, JOIN, CUT, REDUCE, ONES, OUTPUT, SECOND, MEET, N_MOVES };

/* x (2x3x4) to y; for each, how many Transpose are left. */
static const int left_over[N_MOVES] = { [OUTPUT] = 2, [SECOND] = 2, [MEET] = 1, [JOIN] = 1 };

static struct rg_graph *make_moves(uint64_t i)
{
	static const int64_t to[] = { 2, 0, 1 }, back[] = { 1, 2, 0 }, ones[] = { 1, 0, 2, 3 },
			     swap[] = { 0, 2, 1 };
	struct rg_attr axis = int_attr("axis", 1), axes = ints_attr("axes", 1, &ones[0]);
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "2x3x4");
	make_floats(g, "half", "1", FLOATS(0.5f));
	make_ints(g, "from", 1, INTS(1));
	make_ints(g, "end", 1, INTS(3));
	make_ints(g, "along", 1, INTS(-3));
	make_node(g, "Sin", "x", "a");
	make_transpose(g, "a", "b", 3, to);
	switch (i) {
	case UNARY: make_node(g, "Neg", "b", "c"); break;
	case BOTH: /* the same value twice, and a number */
		make_node(g, "Mul", "b,b", "b1");
		make_node(g, "Sub", "half,b1", "c");
		break;
	case CHAIN:
		make_transpose(g, "b", "b1", 3, to), make_transpose(g, "b1", "c1", 3, to),
		    make_transpose(g, "c1", "c", 3, to);
		break;
	case JOIN: /* three become one */
		make_node(g, "Cos", "x", "a2");
		make_transpose(g, "a2", "b2", 3, to);
		make_node_attrs(g, "Concat", "b,b2", "c2", 1, &axis);
		make_transpose(g, "c2", "c", 3, to);
		break;
	case CUT: make_node(g, "Slice", "b,from,end,along", "c"); break;
	case REDUCE: make_node_attrs(g, "ReduceMax", "b", "c", 1, &axes); break;
	case ONES: /* through a dimension of 1 that comes and goes */
		make_ints(g, "shape", 5, INTS(4, 1, 2, 3, 1));
		make_ints(g, "where", 2, INTS(1, 4));
		make_node(g, "Reshape", "b,shape", "b1");
		make_node(g, "Exp", "b1", "b2");
		make_node(g, "Squeeze", "b2,where", "c");
		break;
	case OUTPUT: make_node(g, "Neg", "b", "c"), make_output(g, "b"); break;
	case SECOND:
		make_node(g, "Neg", "b", "c"), make_node(g, "Softmax", "b", "z"), make_output(g, "z");
		break;
	default: make_node(g, "Softmax", "b", "c"); /* minds the order */
	}
	if (i == MEET)
		make_node(g, "Abs", "c", "d");
	else
		make_transpose(g, "c", "d", 3, back);
	make_node(g, "Cos", "d", "y");
	if (i == JOIN) {
		make_transpose(g, "y", "w", 3, swap);
		make_node(g, "Softmax", "w", "y2");
		make_output(g, "y2");
	} else {
		make_output(g, "y");
	}
	make_finish(g);
	return g;
}

static void test_moves(void **state)
{
	for (uint64_t i = 0; i < N_MOVES; i++) {
		struct rg_graph *g = make_moves(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		if (count_nodes(g, "Transpose") != left_over[i])
			fail_msg("case %d: %d transposes, not %d", (int)i, count_nodes(g, "Transpose"),
				 left_over[i]);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_moves, i, 1, 0, NULL);
	}
}

/* Chains of what only has another shape. */
static struct rg_graph *make_shapes(uint64_t i)
{
	static const int64_t perm[] = { 1, 2, 0, 3 }, first = 0;
	struct rg_attr axes = ints_attr("axes", 1, &first), axis = int_attr("axis", 2),
		       keep[2] = { axes, int_attr("keepdims", 0) };
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x4x6x5");
	make_node(g, "Sin", "x", "a");
	make_transpose(g, "a", "b", 4, perm);       /* 4x6x1x5 */
	make_ints(g, "s1", 2, INTS(24, 5));
	make_node(g, "Reshape", "b,s1", "c");
	make_ints(g, "s2", 3, INTS(0, 1, -1));
	make_node(g, "Reshape", "c,s2", "d");       /* 24x1x5 */
	make_node_attrs(g, "Flatten", "d", "e", 1, &axis);
	make_ints(g, "s3", 1, INTS(0));
	make_node(g, "Unsqueeze", "e,s3", "f");     /* 1x24x5 */
	make_node_attrs(g, "ReduceMean", "f", "h", 2, keep);
	if (i == 1)
		make_node(g, "Exp", "d", "z"), make_output(g, "z");
	if (i == 2) {
		make_ints(g, "s4", 4, INTS(1, 4, 6, 5));
		make_node(g, "Reshape", "h,s4", "y");   /* what a was */
	} else {
		make_node(g, "Cos", "h", "y");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_shapes(void **state)
{
	static const int left[] = { 1, 2, 0 }, steps[] = { 2, 3, 1 };

	for (uint64_t i = 0; i < 3; i++) {
		struct rg_graph *g = make_shapes(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_int_equal(p->n_views, left[i]);
		assert_int_equal(p->n_steps, steps[i]);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_shapes, i, 1, 0, NULL);
	}
}

/* ---- products ---- */

/* Bits: 0 three dimensions, 1 Gemm (of two) with transB and factors, 2 a bias that it has, 3 what follows. */
static struct rg_graph *make_product(uint64_t i)
{
	struct rg_attr attrs[3] = { int_attr("transB", 1),
				    { .name = "alpha", .type = RG_ATTR_FLOAT, .f = 0.5f },
				    { .name = "beta", .type = RG_ATTR_FLOAT, .f = 2 } };
	bool gemm = (i & 3) == 2;
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, i & 1 ? "2x3x5" : "3x5");
	random_floats(g, "w", gemm ? "4x5" : "5x4", 20, i, -0.5f);
	random_floats(g, "b", "4", 4, i, -0.5f);
	random_floats(g, "c", "1x4", 4, i, 0.5f);
	make_floats(g, "two", "", FLOATS(2));
	make_node(g, "Sin", "x", "x1");
	make_node_attrs(g, gemm ? "Gemm" : "MatMul", gemm && i & 4 ? "x1,w,c" : "x1,w", "a", gemm ? 3 : 0,
			attrs);
	if (i & 8) {
		make_node(g, "Mul", "a,two", "a1");
		make_node(g, "Add", "b,a1", "a2");
		make_node(g, "Div", "a2,c", "a3");
		make_node(g, "Sub", "a3,two", "a4");
		make_node(g, "Cos", "a4", "y");
	} else {
		make_node(g, "Add", "b,a", "a1");
		make_node(g, "Cos", "a1", "y");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_products(void **state)
{
	for (uint64_t i = 0; i < 16; i++) {
		struct rg_graph *g = make_product(i);
		struct rg_plan *p = plan_at(g, 2, 0, NULL);

		if (p->n_steps != 3 || count_nodes(g, "Gemm") != 1)
			fail_msg("case %d: %d steps", (int)i, p->n_steps);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_product, i, 2, 0, NULL);
		if (i & 1) { /* of three dimensions it stays at level 1 */
			g = make_product(i);
			p = plan_at(g, 1, 0, NULL);
			assert_int_equal(count_nodes(g, "Gemm"), 0);
			rg_plan_free(p);
			rg_graph_free(g);
		}
	}
}

/* ---- twice ---- */

static struct rg_graph *make_common(uint64_t i)
{
	struct rg_attr four[] = { int_attr("axis", 0) }, other[] = { int_attr("axis", 1) };
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "4x5");
	random_floats(g, "c", "5", 5, 1, 0.5f);
	random_floats(g, "d", "5", 5, 1, 0.5f);
	memcpy((void *)g->values[rg_graph_find_value(g, "d")].data,
	       g->values[rg_graph_find_value(g, "c")].data, 20);
	make_node(g, "Mul", "x,c", "a");
	make_node(g, "Mul", "x,d", "b");            /* d is c */
	make_node(g, "Sin", "a", "a1");
	make_node(g, "Sin", "b", "b1");             /* so this is a1 */
	make_node_attrs(g, "Softmax", "a1", "a2", 1, four);
	make_node_attrs(g, "Softmax", "b1", "b2", 1, i == 1 ? other : four);
	make_node(g, "Exp", "a2", "a3");
	make_node(g, "Cos", "b2", "b3");
	make_node(g, "Sub", "a3,b3", "y");
	make_output(g, "y");
	if (i >= 2)
		make_output(g, "b1");           /* of the two, one may take the name; of two outputs, none */
	if (i == 3)
		make_output(g, "a1");
	make_finish(g);
	return g;
}

static void test_common(void **state)
{
	static const int steps[] = { 6, 7, 6, 8 };

	for (uint64_t i = 0; i < 4; i++) {
		struct rg_graph *g = make_common(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		int declined = 0;

		assert_int_equal(p->n_steps, steps[i]);
		for (int k = 0; k < p->passes.n_notes; k++)
			if (!strcmp(p->passes.notes[k].pass, "common") && p->passes.notes[k].decline) {
				assert_int_equal(p->passes.notes[k].decline, RG_DECLINE_GRAPH_OUTPUT);
				assert_string_equal(p->passes.notes[k].node, "n:b1");
				declined++;
			}
		assert_int_equal(declined, i == 3);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_common, i, 1, 0, NULL);
	}
}

/* ---- what is expanded before it broadcasts ---- */

/* 0: the other operand is as large; 1: it is not; 2: a third reader needs it; 3: Tile of a 1, twice into one
 * node */
static struct rg_graph *make_expand(uint64_t i)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x5");
	make_input(g, "z", RG_F32, i == 1 ? "1x5" : "3x5");
	make_ints(g, "shape", 2, INTS(3, 5));
	make_ints(g, "times", 2, INTS(3, 1));
	make_node(g, "Sin", "x", "a");
	make_node(g, i == 3 ? "Tile" : "Expand", i == 3 ? "a,times" : "a,shape", "b");
	make_node(g, i == 3 ? "Max" : "Mul", i == 3 ? "b,z,b" : "z,b", "y");
	make_output(g, "y");
	if (i == 2)
		make_node(g, "Softmax", "b", "w"), make_output(g, "w");
	make_finish(g);
	return g;
}

static void test_expand(void **state)
{
	static const int steps[] = { 2, 3, 4, 2 };

	for (uint64_t i = 0; i < 4; i++) {
		struct rg_graph *g = make_expand(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		int declined = 0, done = 0;

		assert_int_equal(p->n_steps, steps[i]);
		for (int k = 0; k < p->passes.n_notes; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			if (strcmp(n->pass, "expand"))
				continue;
			declined += n->decline == RG_DECLINE_BROADCASTING;
			done += !n->decline;
		}
		assert_int_equal(declined, i == 1);
		assert_int_equal(done, i != 1);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_expand, i, 1, 0, NULL);
	}
}

/* ---- what comes before a convolution ---- */

enum {
	IN_NORM,
	IN_SCALE,
	IN_SCALE_PADDED,
	IN_SHIFT,
	IN_SIGN,
	IN_GROUPS,
	N_IN_GO,
	IN_SHIFT_PADDED = N_IN_GO,
	IN_ROW,
	IN_BACKWARDS,
	IN_SECOND,
	N_IN
};

static struct rg_graph *make_input_affine(uint64_t i)
{
	static const int64_t one[] = { 1, 1, 1, 1 };
	struct rg_attr attrs[2] = { int_attr("group", i == IN_GROUPS ? 2 : 1), ints_attr("pads", 4, one) };
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x4x6x5");
	random_floats(g, "c", "4x1x1", 4, i, 0.5f);
	random_floats(g, "r", "5", 5, i, 0.5f);
	random_floats(g, "w", "4x4x3x3", 144, i, -0.5f);
	random_floats(g, "v", "6x2x3x3", 108, i, -0.5f);
	random_floats(g, "b", "6", 6, i, -0.5f);
	make_node(g, "Sin", "x", "a");
	switch (i) {
	case IN_NORM: case IN_GROUPS: make_batchnorm(g, "a", "t", i); break;
	case IN_SCALE:
	case IN_SCALE_PADDED:
		make_node(g, i == IN_SCALE ? "Mul" : "Div", i == IN_SCALE ? "c,a" : "a,c", "t");
		break;
	case IN_SHIFT: case IN_SHIFT_PADDED: case IN_SECOND: make_node(g, "Sub", "a,c", "t"); break;
	case IN_SIGN: make_node(g, "Neg", "a", "t"); break;
	case IN_ROW: make_node(g, "Mul", "a,r", "t"); break;
	default: make_node(g, "Div", "c,a", "t"); break;
	}
	make_node_attrs(g, "Conv", i == IN_GROUPS ? "t,v,b" : "t,w", "y",
			i == IN_SCALE_PADDED || i == IN_SHIFT_PADDED ? 2 : 1, attrs);
	make_output(g, "y");
	if (i == IN_SECOND)
		make_node(g, "Cos", "t", "z"), make_output(g, "z");
	make_finish(g);
	return g;
}

static void test_input_affine(void **state)
{
	for (uint64_t i = 0; i < N_IN; i++) {
		struct rg_graph *g = make_input_affine(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		enum rg_decline why = RG_DECLINE_NONE;
		int done = 0;

		for (int k = 0; k < p->passes.n_notes; k++) {
			if (strcmp(p->passes.notes[k].pass, "conv-input"))
				continue;
			done += !p->passes.notes[k].decline;
			why = p->passes.notes[k].decline;
		}
		if (done != (i < N_IN_GO) || (i < N_IN_GO && p->n_steps != 2))
			fail_msg("case %d: %d went, %d steps", (int)i, done, p->n_steps);
		if (i >= N_IN_GO)
			assert_int_equal(why, i == IN_ROW    ? RG_DECLINE_BROADCASTING :
					      i == IN_SECOND ? RG_DECLINE_SECOND_CONSUMER :
							       RG_DECLINE_ATTRIBUTE);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_input_affine, i, 1, 0, NULL);
	}
}

/* ---- pads ---- */

enum {
	PAD_CONV,
	PAD_OWN,
	PAD_VIEW,
	PAD_MEAN,
	PAD_MEAN_COUNTED,
	PAD_MAX,
	PAD_MAX_RELU,
	PAD_SLICE,
	N_PADS_GO,
	PAD_ONE = N_PADS_GO,
	PAD_CHANNEL,
	PAD_REFLECT,
	PAD_MEAN_OWN,
	PAD_MAX_ZERO,
	PAD_WIDE,
	PAD_CROP,
	PAD_SAME_SIDE,
	PAD_SECOND,
	PAD_GIVEN,
	N_PADS
};

/* Pad and what reads it; those before N_PADS_GO go, the others are declined. */
static struct rg_graph *make_pad(uint64_t i)
{
	static const int64_t two[] = { 3, 3 }, own[] = { 1, 0, 1, 1 }, some[] = { 0, 0, 1, 2, 0, 0, 0, 1 },
			     channel[] = { 0, 1, 0, 0, 0, 0, 0, 0 }, wide[] = { 0, 0, 3, 0, 0, 0, 0, 0 },
			     crop[] = { 0, 0, -1, 0, 0, 0, 0, 0 }, end[] = { 0, 0, 0, 0, 0, 0, 2, 0 },
			     begin[] = { 0, 0, 2, 0, 0, 0, 0, 0 }, three[] = { 0, 1, 0, 0, 0, 2 };
	bool conv = i <= PAD_VIEW || i == PAD_ONE || i == PAD_CHANNEL || i == PAD_REFLECT || i == PAD_CROP ||
		    i == PAD_SECOND || i == PAD_GIVEN,
	     slice = i == PAD_SLICE || i == PAD_SAME_SIDE,
	     max = i == PAD_MAX || i == PAD_MAX_RELU || i == PAD_MAX_ZERO || i == PAD_WIDE;
	struct rg_attr attrs[4] = { ints_attr("kernel_shape", 2, two) },
		       mode = { .name = "mode", .type = RG_ATTR_STRING, .s = "reflect", .s_len = 7 };
	struct rg_graph *g = make_graph();
	const char *from = "a", *to = "p";
	int n = 1;

	make_input(g, "x", RG_F32, i == PAD_VIEW ? "4x6x5" : "1x4x6x5");
	make_node(g, i == PAD_MAX_RELU ? "Relu" : "Sin", "x", "a");
	make_floats(g, "lowest", "", FLOATS(-INFINITY));
	make_floats(g, "one", "", FLOATS(1));
	if (slice) {
		make_ints(g, "from", 1, INTS(2));
		make_ints(g, "end", 1, INTS(99));
		make_ints(g, "axis", 1, INTS(2));
		make_node(g, "Slice", "a,from,end,axis", "s");
		from = "s";
	}
	if (i == PAD_GIVEN)
		make_input(g, "pads", RG_I64, "8");
	else
		make_ints(g, "pads", i == PAD_VIEW ? 6 : 8,
			  i == PAD_VIEW      ? three :
			  i == PAD_CHANNEL   ? channel :
			  i == PAD_WIDE      ? wide :
			  i == PAD_CROP      ? crop :
			  i == PAD_SLICE     ? end :
			  i == PAD_SAME_SIDE ? begin :
					       some);
	{
		char in[40];

		snprintf(in, sizeof(in), "%s,pads%s", from,
			 i == PAD_MAX ? ",lowest" :
			 i == PAD_ONE ? ",one" :
					"");
		make_node_attrs(g, "Pad", in, "p", i == PAD_REFLECT, &mode);
	}
	if (i == PAD_VIEW) {
		make_ints(g, "first", 1, INTS(0));
		make_node(g, "Unsqueeze", "p,first", "p1");
		to = "p1";
	}
	if (conv) {
		char in[40];

		random_floats(g, "w", i == PAD_CHANNEL ? "4x5x3x3" : "4x4x3x3", i == PAD_CHANNEL ? 180 : 144,
			      i, -0.5f);
		if (i == PAD_OWN)
			attrs[n++] = ints_attr("pads", 4, own);
		snprintf(in, sizeof(in), "%s,w", to);
		make_node_attrs(g, "Conv", in, "y", n, attrs);
	} else if (slice) {
		make_node(g, "Cos", "p", "y");
	} else {
		if (i == PAD_MEAN_COUNTED || i == PAD_MEAN_OWN)
			attrs[n++] = ints_attr("pads", 4, own);
		if (i == PAD_MEAN_COUNTED)
			attrs[n++] = int_attr("count_include_pad", 1);
		make_node_attrs(g, max ? "MaxPool" : "AveragePool", "p", "y", n, attrs);
	}
	if (i == PAD_SECOND)
		make_node(g, "Exp", "p", "z"), make_output(g, "z");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static const int64_t *given_pads(void)
{
	static const int64_t v[] = { 0, 0, 1, 1, 0, 0, 0, 0 };

	return v;
}

static const struct rg_tensor *value_of(void *ctx, const char *name)
{
	static struct rg_tensor t;

	t = (struct rg_tensor){ RG_I64, { 1, { 8 } }, (void *)given_pads() };
	return strcmp(name, "pads") ? NULL : &t;
}

static void test_pads(void **state)
{
	for (uint64_t i = 0; i < N_PADS; i++) {
		struct rg_graph *g = make_pad(i);
		struct rg_plan_options po = { .lanes = 1, .input_value = value_of };
		struct rg_pass_options o = { .level = 1 };
		struct rg_pass_log log = { 0 };
		struct rg_error err = RG_ERROR_INIT;
		int done = 0, declined = 0;

		if (rg_fold_graph(g, &po, &err))
			fail_msg("case %d: %s: %s", (int)i, err.where, err.message);
		assert_int_equal(rg_passes_run(g, &o, &log, &err), 0);
		for (int k = 0; k < log.n_notes; k++) {
			if (strcmp(log.notes[k].pass, "pad-merge"))
				continue;
			done += !log.notes[k].decline;
			declined += log.notes[k].decline != 0;
			if (log.notes[k].decline)
				assert_int_equal(log.notes[k].decline,
						 i == PAD_SECOND ? RG_DECLINE_SECOND_CONSUMER :
						 i == PAD_GIVEN  ? RG_DECLINE_NOT_CONSTANT :
								   RG_DECLINE_ATTRIBUTE);
		}
		if (done != (i < N_PADS_GO) || declined != (i >= N_PADS_GO))
			fail_msg("case %d: %d merged, %d declined", (int)i, done, declined);
		rg_pass_log_free(&log);
		rg_graph_free(g);
		if (i != PAD_GIVEN)
			compare(make_pad, i, 1, 0, NULL);
	}
}

/* ---- what is declined ---- */

struct planted {
	struct rg_graph *g;
	const char *pass, *node;    /* who declines; output of the node that could have gone */
	enum rg_decline why;
};

static struct planted plant(int i)
{
	struct rg_graph *g = make_graph();
	struct planted t = { g, "matmul-add", "n:y", RG_DECLINE_NONE };

	make_input(g, "x", RG_F32, "3x5");
	random_floats(g, "w", "5x4", 20, 1, -0.5f);
	random_floats(g, "b", "4", 4, 1, -0.5f);
	make_node(g, "MatMul", "x,w", "a");
	switch (i) {
	case 0: /* somebody else reads the product */
		make_node(g, "Add", "a,b", "y");
		make_node(g, "Neg", "a", "z");
		make_output(g, "z");
		t.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 1:
		make_node(g, "Add", "a,b", "y");
		make_output(g, "a");
		t.why = RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 2: /* one a row */
		random_floats(g, "r", "3x1", 3, 1, -0.5f);
		make_node(g, "Add", "a,r", "y");
		t.why = RG_DECLINE_BROADCASTING;
		break;
	case 3: /* the other way round */
		make_node(g, "Sub", "b,a", "y");
		t.why = RG_DECLINE_ATTRIBUTE;
		break;
	case 4: /* weights that another product needs as they are */
		make_node(g, "Mul", "a,b", "y");
		make_node(g, "Sin", "x", "x1");
		make_node(g, "MatMul", "x1,w", "z");
		make_output(g, "z");
		t.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	default: /* factors beyond what a weight can take */
		make_floats(g, "big", "", FLOATS(1e25f));
		make_node(g, "Mul", "a,big", "y");
		t.why = RG_DECLINE_RANGE;
	}
	make_output(g, "y");
	make_finish(g);
	return t;
}

enum { N_PLANTED = 6 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++) {
		struct planted t = plant(i);
		struct rg_plan *p = plan_at(t.g, 2, 0, NULL);
		int found = 0;

		for (int k = 0; k < p->passes.n_notes; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			if (!n->decline || strcmp(n->pass, t.pass))
				continue;
			found++;
			assert_string_equal(n->node, t.node);
			if (n->decline != t.why)
				fail_msg("graph %d: %s, not %s", i, rg_decline_name(n->decline),
					 rg_decline_name(t.why));
		}
		if (found != 1)
			fail_msg("graph %d: %d declines", i, found);
		rg_plan_free(p);
		rg_graph_free(t.g);
		compare(planted_graph, (uint64_t)i, 2, 0, NULL);
	}
}

/* Two that no pass knows, and one pair of which a pass says why. */
static void test_no_pattern(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	int none = 0, second = 0;

	make_input(g, "x", RG_F32, "3x5");
	random_floats(g, "w", "5x4", 20, 1, -0.5f);
	random_floats(g, "b", "4", 4, 1, -0.5f);
	make_node(g, "MatMul", "x,w", "a");
	make_node(g, "Add", "a,b", "y");
	make_node(g, "Softmax", "a", "z");
	make_output(g, "y");
	make_output(g, "z");
	make_finish(g);
	p = plan_at(g, 1, 0, NULL);
	for (int i = 0; i < p->passes.n_notes; i++) {
		const struct rg_pass_note *n = &p->passes.notes[i];

		assert_string_equal(n->into, "n:a");
		assert_string_equal(n->node, n->decline == RG_DECLINE_NO_PATTERN ? "n:z" : "n:y");
		none += n->decline == RG_DECLINE_NO_PATTERN;
		second += n->decline == RG_DECLINE_SECOND_CONSUMER;
	}
	assert_int_equal(none, 1);
	assert_int_equal(second, 1);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- properties ---- */

/* Products with square weights, and what may go into them. */
static struct rg_graph *make_any_products(uint64_t seed)
{
	static const char *const ops[] = { "Add", "Mul", "Sub", "Div" };
	static const char *const shapes[] = { "5", "1x5", "", "1", "3x1" };
	static const int counts[] = { 5, 5, 1, 1, 3 };
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "products"), at = 9;
	int n = 3 + (int)rg_rng_integer(stream, 0, 0, 9);
	char names[16][16] = { "v0" };

	make_input(g, "v0", RG_F32, seed & 1 ? "2x3x5" : "3x5");
	random_floats(g, "w", "5x5", 25, seed, -0.5f);
	for (int i = 1; i <= n; i++, at += 8) {
		int from =
		    rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		int kind = (int)rg_rng_integer(stream, at + 2, 0, 9),
		    shape = (int)rg_rng_integer(stream, at + 3, 0, 4);
		char in[64], c[16];

		snprintf(names[i], sizeof(names[i]), "v%d", i);
		snprintf(c, sizeof(c), "c%d", i);
		if (kind < 3) {
			if (kind)
				random_floats(g, c, "5x5", 25, seed + (uint64_t)i, -0.5f);
			snprintf(in, sizeof(in), "%s,%s", names[from], kind ? c : "w");
			make_node(g, kind == 2 && !(seed & 1) ? "Gemm" : "MatMul", in, names[i]);
		} else if (kind < 9) {
			random_floats(g, c, shapes[shape], counts[shape], seed + (uint64_t)i, 0.5f);
			snprintf(in, sizeof(in), i & 1 ? "%s,%s" : "%2$s,%1$s", names[from], c);
			make_node(g, ops[(seed / 2 + (uint64_t)kind) % 4], in, names[i]);
		} else {
			make_node(g, "Relu", names[from], names[i]);
		}
		if (rg_rng_integer(stream, at + 7, 0, 9) == 0)
			make_output(g, names[i]);
	}
	if (!g->values[rg_graph_find_value(g, names[n])].is_output)
		make_output(g, names[n]);
	make_finish(g);
	return g;
}

/* Values whose shapes are 2, 3 and 4 in some order, with a 1 among them or not. */
static struct rg_graph *make_any_moves(uint64_t seed)
{
	static const int64_t perms[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	static const char *const unary[] = { "Neg", "Relu", "Sin", "Exp", "Softmax" };
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "moves"), at = 9;
	int n = 5 + (int)rg_rng_integer(stream, 0, 0, 14);
	char names[24][16] = { "v0" };
	struct rg_shape shapes[24] = { { 3, { 2, 3, 4 } } };

	make_input(g, "v0", RG_F32, "2x3x4");
	make_floats(g, "half", "1", FLOATS(0.5f));
	for (int i = 1; i <= n; i++, at += 8) {
		int from =
		    rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		int other = (int)rg_rng_integer(stream, at + 2, 0, i - 1),
		    axis = (int)rg_rng_integer(stream, at + 3, 0, 2);
		struct rg_shape *s = &shapes[i];
		char in[64], c[16];

		while (other > 0 && !rg_shape_equal(&shapes[other], &shapes[from]))
			other--;
		if (!rg_shape_equal(&shapes[other], &shapes[from]))
			other = from;
		*s = shapes[from];
		snprintf(names[i], sizeof(names[i]), "v%d", i);
		snprintf(c, sizeof(c), "c%d", i);
		switch (rg_rng_integer(stream, at + 4, 0, 11)) {
		case 0: case 1: case 2: case 3:
		{
			int64_t perm[4] = { 0, 1, 2, 3 };
			const int64_t *p = perms[rg_rng_integer(stream, at + 5, 0, 5)];

			for (int k = 0; k < 3; k++)
				perm[k] = p[k];
			for (int k = 0; k < s->rank; k++)
				s->dim[k] = shapes[from].dim[perm[k]];
			make_transpose(g, names[from], names[i], s->rank, perm);
			break;
		}
		case 4:
			snprintf(in, sizeof(in), "%s,%s", names[from], names[other]);
			make_node(g, "Add", in, names[i]);
			break;
		case 5:
			if (s->dim[axis] > 8)
				goto plain;
			snprintf(in, sizeof(in), "%s,%s", names[from], names[other]);
			make_node_attrs(g, "Concat", in, names[i], 1, ATTRS(int_attr("axis", axis)));
			s->dim[axis] *= 2;
			break;
		case 6: /* a 1 comes or goes */
			if (s->rank == 4 && s->dim[3] != 1 && s->dim[0] != 1)
				goto plain;
			if (s->rank == 4) {
				int64_t gone = s->dim[3] == 1 ? 3 : 0;

				make_ints(g, c, 1, &gone);
				snprintf(in, sizeof(in), "%s,%s", names[from], c);
				make_node(g, "Squeeze", in, names[i]);
				for (int k = (int)gone; k < 3; k++)
					s->dim[k] = s->dim[k + 1];
				s->rank = 3;
			} else {
				make_ints(g, c, 1, INTS(axis));
				snprintf(in, sizeof(in), "%s,%s", names[from], c);
				make_node(g, "Unsqueeze", in, names[i]);
				for (int k = 3; k > axis; k--)
					s->dim[k] = s->dim[k - 1];
				s->dim[axis] = 1;
				s->rank = 4;
			}
			break;
		case 7:
			make_node_attrs(g, "ReduceMean", names[from], names[i], 1,
					ATTRS(ints_attr("axes", 1, INTS(axis))));
			s->dim[axis] = 1;
			break;
		case 8:
			if (s->dim[axis] < 2)
				goto plain;
			make_ints(g, c, 1, INTS(1));
			snprintf(in, sizeof(in), "%s,%s,big,axis%d", names[from], c, axis);
			if (rg_graph_find_value(g, "big") < 0)
				make_ints(g, "big", 1, INTS(99));
			if (rg_graph_find_value(g, strrchr(in, ',') + 1) < 0)
				make_ints(g, strrchr(in, ',') + 1, 1, INTS(axis));
			make_node(g, "Slice", in, names[i]);
			s->dim[axis]--;
			break;
		case 9:
			snprintf(in, sizeof(in), "half,%s", names[from]);
			make_node(g, "Mul", in, names[i]);
			break;
		default:
plain:
			make_node(g, unary[rg_rng_integer(stream, at + 6, 0, 4)], names[from], names[i]);
		}
		if (rg_rng_integer(stream, at + 7, 0, 9) == 0)
			make_output(g, names[i]);
	}
	if (!g->values[rg_graph_find_value(g, names[n])].is_output)
		make_output(g, names[n]);
	make_finish(g);
	return g;
}

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
		int from =
		    rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		int kind = (int)rg_rng_integer(stream, at + 2, 0, 11);
		char in[80];

		snprintf(names[i], sizeof(names[i]), "v%d", i);
		if (kind < 6) {
			make_node(g, ops[kind], names[from], names[i]);
		} else if (kind < 10) {
			const struct case_of_no_op *c =
			    &no_ops[rg_rng_integer(stream, at + 3, 0, N_NO_OPS - 1)];
			char *x;

			if (!strcmp(c->op, "Cast") || !strcmp(c->in, "x,wide") ||
			    (c->n_attrs && c->attrs[0].ints == other_order)) {
				make_node(g, "Identity", names[from], names[i]);
				goto made;
			}
			snprintf(in, sizeof(in), "%s", c->in);
			x = strchr(in, 'x');
			while (x != in && x[-1] != ',')
				x = strchr(x + 1, 'x');
			snprintf(in, sizeof(in), "%.*s%s%s", (int)(x - in), c->in, names[from],
				 c->in + (x - in) + 1);
			make_node_attrs(g, c->op, in, names[i], c->n_attrs, c->attrs);
		} else {
			snprintf(in, sizeof(in), "%s,%s", names[from],
				 names[rg_rng_integer(stream, at + 3, 0, i - 1)]);
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

static make_fn *const generators[] = { make_any, make_any_moves, make_any_products };
enum { N_GENERATORS = sizeof(generators) / sizeof(generators[0]) };

static void test_random(void **state)
{
	for (int k = 0; k < N_GENERATORS; k++) {
		int rewritten = 0;

		for (uint64_t seed = 0; seed < 150; seed++) {
			rewritten += compare(generators[k], seed, 3, 0, NULL);
			for (int pass = 0; pass < rg_pass_count() && seed % 4 == 0; pass++) { /* each alone */
				const char *others[64];
				int n = 0;

				for (int i = 0; i < rg_pass_count(); i++)
					if (i != pass)
						others[n++] = rg_pass_at(i)->name;
				compare(generators[k], seed, RG_PASS_LEVELS, n, others);
			}
		}
		assert_true(rewritten > 100);
	}
}

static void check_idempotent(make_fn *make, uint64_t seed)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	static const struct rg_pass_options o = { .level = RG_PASS_LEVELS };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make(seed);
	struct rg_pass_log first = { 0 }, second = { 0 };

	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, &o, &first, &err), 0);
	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, &o, &second, &err), 0);
	for (int i = 0; i < second.n_notes; i++)
		if (!second.notes[i].decline)
			fail_msg("seed %d: %s of %s again", (int)seed, second.notes[i].pass,
				 second.notes[i].node);
	rg_pass_log_free(&first);
	rg_pass_log_free(&second);
	rg_graph_free(g);
}

static void test_idempotent(void **state)
{
	for (int k = 0; k < N_GENERATORS; k++)
		for (uint64_t seed = 0; seed < 300; seed++)
			check_idempotent(generators[k], seed);
}

static void test_allocation_failures(void **state)
{
	for (uint64_t seed = 0; seed < 2 * N_GENERATORS; seed++) {
		int fails = 0, rc;

		do {
			struct rg_error err = RG_ERROR_INIT;
			struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 } };
			struct rg_graph *g = generators[seed % N_GENERATORS](seed);
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
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_common),
		cmocka_unit_test(test_expand),
		cmocka_unit_test(test_input_affine),
		cmocka_unit_test(test_pads),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_no_pattern),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-clean", tests, NULL, NULL);
}
