/*
 * What is cut out of a tensor or joined to one without a copy: each form as a planted graph, forms that
 * have to stay steps, dependencies through parts, and random graphs against the graph as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make-pass.h"

static struct rg_attr axis_attr(int64_t axis)
{
	return int_attr("axis", axis);
}

/* ---- one cut of a (2x1x6x5, or 1x6x1x5), which Sin made of x ---- */

struct cut {
	const char *op, *shape, *args; /* inputs behind a: names of constants */
	int64_t v[4][4];            /* their values */
	int n;                      /* elements of each */
	int64_t axis;
	bool goes;
};

static const struct cut cuts[] = {
	{ "Slice", "1x6x1x5", "b,e,x1", { { 2 }, { 5 }, { 1 } }, 1, 0, true },
	{ "Slice", "1x6x1x5", "b,e,x1", { { 0, 2 }, { 1, 9 }, { 0, 1 } }, 2, 0, true },
	{ "Slice", "1x6x1x5", "b,e,x1", { { -1, 1 }, { 99, 3 }, { 1, 3 } }, 2, 0, true }, /* within one row */
	{ "Slice", "1x6x1x5", "b,e,x1", { { 1, 1 }, { 3, 3 }, { 1, 3 } }, 2, 0, false },
	{ "Slice", "1x6x1x5", "b,e,x1", { { 1 }, { 3 }, { 3 } }, 1, 0, false },
	{ "Slice", "1x6x1x5", "b,e,x1,s", { { 0 }, { 6 }, { 1 }, { 2 } }, 1, 0, false },
	{ "Slice", "1x6x1x5", "b,e,x1,s", { { 5 }, { 4 }, { 1 }, { -1 } }, 1, 0, true }, /* one, backwards */
	{ "Slice", "1x6x1x5", "b,e,x1,s", { { 5 }, { 2 }, { 1 }, { -1 } }, 1, 0, false },
	{ "Slice", "2x1x6x5", "b,e,x1", { { 2 }, { 5 }, { 2 } }, 1, 0, false },
	{ "Slice", "2x1x6x5", "b,e,x1", { { 1, 2 }, { 2, 5 }, { 0, 2 } }, 2, 0, true },
	{ "Gather", "1x6x1x5", "b", { { 4 } }, 1, 1, true },
	{ "Gather", "1x6x1x5", "b", { { -1 } }, 1, 1, true },
	{ "Gather", "1x6x1x5", "b", { { 1, 2 } }, 2, 1, false },
	{ "Gather", "1x6x1x5", "b", { { 3 } }, 1, 3, false },
	{ "Gather", "2x1x6x5", "b", { { 1 } }, 1, 0, true },
	{ "Split", "1x6x1x5", "b", { { 1, 3, 2 } }, 3, 1, true },
	{ "Split", "1x6x1x5", "b", { { 2, 1, 2 } }, 3, 3, false },
};
enum { N_CUTS = sizeof(cuts) / sizeof(cuts[0]) };

static struct rg_graph *make_cut(uint64_t i)
{
	static const char *const names[] = { "b", "e", "x1", "s" };
	const struct cut *c = &cuts[i];
	struct rg_attr axis = axis_attr(c->axis);
	struct rg_graph *g = make_graph();
	bool split = !strcmp(c->op, "Split");
	char in[80];
	int n = 1;

	make_input(g, "x", RG_F32, c->shape);
	for (const char *p = c->args; *p; p++)
		n += *p == ',';
	for (int k = 0; k < n; k++)
		make_ints(g, names[k], c->n, c->v[k]);
	make_node(g, "Sin", "x", "a");
	snprintf(in, sizeof(in), "a,%s", c->args);
	make_node_attrs(g, c->op, in, split ? "t,t1,t2" : "t", strcmp(c->op, "Slice") ? 1 : 0, &axis);
	make_node(g, "Cos", "t", "y");
	make_output(g, "y");
	if (split) {
		make_node(g, "Exp", "t1", "z");
		make_output(g, "z");
		make_output(g, "t2"); /* lies in the arena, like all of a */
	}
	make_finish(g);
	return g;
}

static void test_cuts(void **state)
{
	for (uint64_t i = 0; i < N_CUTS; i++) {
		struct rg_graph *g = make_cut(i), *plain = make_cut(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL), *before = plan_at(plain, 0, 0, NULL);

		if (before->n_steps - p->n_steps != cuts[i].goes)
			fail_msg("case %d: %d steps, %d before", (int)i, p->n_steps, before->n_steps);
		rg_plan_free(p);
		rg_plan_free(before);
		rg_graph_free(g);
		rg_graph_free(plain);
		compare(make_cut, i, 1, 0, NULL);
	}
}

/* A part of the caller's memory may be read where it lies, and must be copied to be an output. */
static struct rg_graph *make_input_cut(uint64_t i)
{
	static const int64_t one = 1;
	struct rg_attr axis = axis_attr(0);
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "2x3");
	make_ints(g, "i", 1, &one);
	make_node_attrs(g, "Gather", "x,i", "t", 1, &axis);
	make_node(g, "Neg", "t", "y");
	make_output(g, "y");
	if (i)
		make_output(g, "t");
	make_finish(g);
	return g;
}

static void test_input_cut(void **state)
{
	for (uint64_t i = 0; i < 2; i++) {
		struct rg_graph *g = make_input_cut(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_int_equal(p->n_steps, i ? 2 : 1);
		if (!i)
			assert_int_equal(plan_value(p, "t")->part_bytes, 12);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_input_cut, i, 1, 0, NULL);
	}
}

/* Something large for a moment: beside it, nothing else counts for the load. Three steps. */
static void make_large(struct rg_graph *g)
{
	make_floats(g, "large", "40x1x1", NULL);
	make_node(g, "Mul", "x,large", "large-1");
	make_node(g, "Neg", "large-1", "large-2");
	make_node(g, "ReduceMax", "large-2", "large-3");
	make_output(g, "large-3");
}

/* ---- joined ---- */

enum { JOINED, ALONG_ROWS, OF_INPUT, TWICE, OF_A_PART, TOO_EARLY, NESTED, N_JOINS };

static struct rg_graph *make_join(uint64_t i)
{
	struct rg_graph *g = make_graph();
	struct rg_attr axis = axis_attr(i == ALONG_ROWS ? 2 : 1);
	static const int64_t from = 0, to = 2, along = 1;

	make_input(g, "x", RG_F32, "1x4x6");
	if (i == OF_A_PART)
		make_large(g);
	make_node(g, "Sin", "x", "a");
	make_node(g, "Exp", "a", "b");
	switch (i) {
	case OF_INPUT: make_node_attrs(g, "Concat", "a,x", "t", 1, &axis); break;
	case TWICE: make_node_attrs(g, "Concat", "a,a", "t", 1, &axis); break;
	case OF_A_PART:
		make_ints(g, "from", 1, &from);
		make_ints(g, "to", 1, &to);
		make_ints(g, "along", 1, &along);
		make_node(g, "Slice", "b,from,to,along", "b1");
		make_node_attrs(g, "Concat", "a,b1", "t", 1, &axis);
		break;
	case TOO_EARLY: /* room for b, held while something large is alive */
		make_node(g, "Neg", "a", "l");
		make_floats(g, "wide", "9x1x1", NULL);
		make_node(g, "Mul", "l,wide", "l1");
		make_node(g, "Sin", "l1", "l2");
		make_node(g, "ReduceMax", "l2", "l3");
		make_node(g, "Add", "a,l3", "l4");
		make_node_attrs(g, "Concat", "a,l4", "t", 1, &axis);
		break;
	case NESTED:
		make_node_attrs(g, "Concat", "a,b", "t1", 1, &axis);
		make_node(g, "Neg", "b", "c");
		make_node_attrs(g, "Concat", "t1,c", "t", 1, &axis);
		break;
	default: make_node_attrs(g, "Concat", "a,b", "t", 1, &axis);
	}
	make_node(g, "Cos", "t", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static int count_edges(const struct rg_plan *p, const char *reader)
{
	int n = 0, to = plan_step(p, reader);

	for (int i = 0; i < p->n_edges; i++)
		n += p->edges[i].to_step == to;
	return n;
}

static void test_joins(void **state)
{
	for (uint64_t i = 0; i < N_JOINS; i++) {
		struct rg_graph *g = make_join(i), *plain = make_join(i);
		struct rg_plan *p = plan_at(g, 1, 0, NULL), *before = plan_at(plain, 0, 0, NULL);
		bool goes = i == JOINED || i == NESTED;

		if ((plan_step(p, "t") < 0) != goes)
			fail_msg("case %d: t is %smade by a step", (int)i, goes ? "" : "not ");
		if (p->arena_lower_bound_bytes > before->arena_lower_bound_bytes)
			fail_msg("case %d: %d bytes at once, %d before", (int)i,
				 (int)p->arena_lower_bound_bytes, (int)before->arena_lower_bound_bytes);
		if (goes)
			assert_int_equal(count_edges(p, "y"), i == NESTED ? 3 : 2);
		rg_plan_free(p);
		rg_plan_free(before);
		rg_graph_free(g);
		rg_graph_free(plain);
		compare(make_join, i, 1, 0, NULL);
	}
}

/* Who reads a part of what was joined depends on who made that part. */
static void test_edges(void **state)
{
	static const int64_t four = 4;
	struct rg_attr axis = axis_attr(0);
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "4x6");
	make_ints(g, "halves", 2, (const int64_t[]){ four, four });
	make_large(g);
	make_node(g, "Sin", "x", "a");
	make_node(g, "Cos", "x", "b");
	make_node_attrs(g, "Concat", "a,b", "t", 1, &axis);
	make_node_attrs(g, "Split", "t,halves", "l,r", 1, &axis);
	make_node(g, "Exp", "r", "y");
	make_node(g, "Neg", "l", "z");
	make_node(g, "Add", "l,a", "w");
	make_output(g, "y");
	make_output(g, "z");
	make_output(g, "w");
	make_finish(g);
	p = plan_at(g, 1, 0, NULL);
	assert_int_equal(p->n_steps, 3 + 5);
	assert_int_equal(p->n_edges, 2 + 3);
	for (int i = 0; i < p->n_edges; i++)
		if (p->edges[i].to_step > 2)
			assert_int_equal(p->edges[i].from_step,
					 plan_step(p, p->edges[i].to_step == plan_step(p, "y") ? "b" : "a"));
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- properties ---- */

/* Values of n x 3 numbers, cut and joined along n at random. */
static struct rg_graph *make_any(uint64_t seed)
{
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "parts");
	struct rg_attr axis = axis_attr(0);
	int n = 6 + (int)rg_rng_integer(stream, 0, 0, 16);
	int64_t rows[32] = { 6 }, at = 10;
	char names[32][16] = { "v0" };

	make_input(g, "v0", RG_F32, "6x3");
	for (int i = 1; i <= n; i++) {
		int from =
		    rg_rng_integer(stream, at, 0, 2) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		int other = (int)rg_rng_integer(stream, at + 2, 0, i - 1);
		int64_t cut = rows[from] > 1 ? rg_rng_integer(stream, at + 3, 1, rows[from] - 1) : 0;
		char in[80], c[16], both[40];

		snprintf(names[i], sizeof(names[i]), "v%d", i);
		snprintf(c, sizeof(c), "c%d", i);
		rows[i] = rows[from];
		switch (rg_rng_integer(stream, at + 4, 0, 6)) {
		case 0: case 1:
			snprintf(in, sizeof(in), "%s,%s", names[from], names[other]);
			if (rows[from] + rows[other] > 60)
				goto plain;
			rows[i] = rows[from] + rows[other];
			make_node_attrs(g, "Concat", in, names[i], 1, &axis);
			break;
		case 2:
			if (!cut)
				goto plain;
			make_ints(g, c, 2, (const int64_t[]){ cut, rows[from] - cut });
			snprintf(in, sizeof(in), "%s,%s", names[from], c);
			snprintf(both, sizeof(both), "%s,%s-rest", names[i], names[i]);
			rows[i] = cut;
			make_node_attrs(g, "Split", in, both, 1, &axis);
			break;
		case 3:
			make_ints(g, c, 1, &cut);
			snprintf(in, sizeof(in), "%s,%s", names[from], c);
			rows[i] = 1;
			make_node_attrs(g, "Gather", in, names[i], 1, &axis);
			break;
		default:
plain:
			make_node(g, i & 1 ? "Sin" : "Neg", names[from], names[i]);
		}
		at += 5;
		if (rg_rng_integer(stream, at, 0, 7) == 0)
			make_output(g, names[i]);
	}
	if (!g->values[rg_graph_find_value(g, names[n])].is_output)
		make_output(g, names[n]);
	make_finish(g);
	return g;
}

/* An output 0 that nobody wants is no memory to join anything in (found by fuzzing). */
static struct rg_graph *make_absent_output(uint64_t seed)
{
	struct rg_attr size = int_attr("hidden_size", 2);
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x3x2");
	random_floats(g, "w", "1x6x2", 12, seed, -0.5f);
	random_floats(g, "r", "1x6x2", 12, seed, -0.5f);
	make_node_attrs(g, "GRU", "x,w,r", ",h", 1, &size);
	make_output(g, "h");
	make_finish(g);
	return g;
}

static void test_absent_output(void **state)
{
	assert_int_equal(compare(make_absent_output, 1, 3, 0, NULL), 0);
}

static void test_random(void **state)
{
	int saved = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rg_graph *g = make_any(seed), *plain = make_any(seed);
		struct rg_plan *p = plan_at(g, 1, 0, NULL), *before = plan_at(plain, 0, 0, NULL);

		saved += before->n_steps - p->n_steps;
		for (int i = 0; i < p->n_edges; i++)
			assert_true(p->edges[i].from_step < p->edges[i].to_step);
		rg_plan_free(p);
		rg_plan_free(before);
		rg_graph_free(g);
		rg_graph_free(plain);
		compare(make_any, seed, 1, 0, NULL);
	}
	assert_true(saved > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_input_cut),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_absent_output),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
