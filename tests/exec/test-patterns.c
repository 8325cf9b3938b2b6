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

/* ---- Softmax ---- */

enum { SOFTMAX_ORDERS = 2 * 2 * 2 * 3 };

/* "y" out of "x", along an axis of three. */
static void make_softmax_parts(struct rg_graph *g, const char *x, const char *y, bool maximum, bool reciprocal, bool swap,
			       int axis)
{
	struct rg_attr axes = ints_attr("axes", 1, INTS(axis));
	char list[32], in[80], t[6][32];

	for (int i = 0; i < 6; i++)
		snprintf(t[i], sizeof(t[i]), "%s-s%d", y, i);
	snprintf(list, sizeof(list), "%s-axes", y);
	make_ints(g, list, 1, INTS(axis));
	if (maximum) {
		make_node_attrs(g, "ReduceMax", x, t[0], 1, &axes);
		make_pair(g, "Sub", x, t[0], t[1], false);
		x = t[1];
	}
	make_node(g, "Exp", x, t[2]);
	snprintf(in, sizeof(in), "%s,%s", t[2], list);
	make_node(g, "ReduceSum", in, t[3]);
	if (reciprocal)
		make_node(g, "Reciprocal", t[3], t[4]);
	make_pair(g, reciprocal ? "Mul" : "Div", t[2], t[reciprocal ? 4 : 3], y, reciprocal && swap);
}

static struct rg_graph *make_softmax(uint64_t how)
{
	struct rg_graph *g = make_graph();
	bool swap = choose(&how, 2), maximum = choose(&how, 2), reciprocal = choose(&how, 2);

	make_input(g, "x", RG_F32, "2x3x5");
	make_softmax_parts(g, "x", "y", maximum, reciprocal, swap, choose(&how, 3) - 1);
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_softmax(void **state)
{
	for (uint64_t how = 0; how < SOFTMAX_ORDERS; how++) {
		struct rg_graph *g = make_softmax(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_int_equal(rg_node_int(node_of(p, "Softmax"), "axis", -5), how / 8 == 0 ? 2 : (int)(how / 8) - 1);
		rg_plan_free(p);
		rg_graph_free(g);
		check_becomes(make_softmax, how, 1, "Softmax");
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
	case 13: /* the sum is an output */
		make_input(g, "x", RG_F32, "2x3x5");
		make_softmax_parts(g, "x", "y", true, false, false, -1);
		make_output(g, "y-s3");
		p.pass = "softmax";
		p.node = "y-s2";
		p.why = RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 14: /* the maximum of another dimension is one all the same, of what is left */
		make_input(g, "x", RG_F32, "2x3x5");
		make_node_attrs(g, "ReduceMax", "x", "m", 1, ATTRS(ints_attr("axes", 1, INTS(1))));
		make_pair(g, "Sub", "x", "m", "d", false);
		make_softmax_parts(g, "d", "y", false, false, false, -1);
		make_output(g, "y-s2");
		p.pass = "softmax";
		p.node = "y-s2";
		p.why = RG_DECLINE_GRAPH_OUTPUT;
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

enum { N_PLANTED = 16 };

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

/* Operators whole and in parts, on values of one shape that are read at random. */
static struct rg_graph *make_random_parts(uint64_t seed)
{
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "patterns");
	int n = 4 + (int)rg_rng_integer(stream, 0, 0, 8);
	char v[16][16];

	make_input(g, "v0", RG_F32, "2x3x8");
	strcpy(v[0], "v0");
	make_number(g, "one", 1);
	make_number(g, "half", 0.5f);
	make_number(g, "by", 1.41421356f);
	make_number(g, "epsilon", 1e-2f);
	random_floats(g, "scale", "8", 8, 1, 0.5f);
	random_floats(g, "row", "8", 8, 2, -0.5f);
	for (int i = 1; i <= n; i++) {
		uint64_t at = (uint64_t)i * 8;
		int from = rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		bool swap = rg_rng_integer(stream, at + 2, 0, 1);
		/* what a part may be read by instead of the next part */
		const char *x = v[from], *any = v[rg_rng_integer(stream, at + 3, 0, i - 1)];
		struct rg_attr axes = ints_attr("axes", 1, INTS(-1));
		char t[8][24], in[80];

		snprintf(v[i], sizeof(v[i]), "v%d", i);
		for (int k = 0; k < 8; k++)
			snprintf(t[k], sizeof(t[k]), "%s-t%d", v[i], k);
		switch (rg_rng_integer(stream, at + 4, 0, 8)) {
		case 0:
			make_pair(g, "Div", x, "by", t[0], false);
			make_node(g, "Erf", t[0], t[1]);
			make_pair(g, "Add", t[1], "one", t[2], swap);
			make_pair(g, "Mul", rg_rng_integer(stream, at + 5, 0, 3) ? x : any, t[2], t[3], swap);
			make_pair(g, "Mul", t[3], "half", v[i], swap);
			break;
		case 1:
			make_node(g, "Sigmoid", x, t[0]);
			make_pair(g, "Mul", rg_rng_integer(stream, at + 5, 0, 3) ? x : any, t[0], v[i], swap);
			break;
		case 2:
		case 3:
			make_node_attrs(g, "ReduceMean", x, t[0], 1, &axes);
			make_pair(g, "Sub", x, t[0], t[1], false);
			make_pair(g, "Mul", t[1], t[1], t[2], false);
			make_node_attrs(g, "ReduceMean", t[2], t[3], 1, &axes);
			make_pair(g, "Add", t[3], "epsilon", t[4], swap);
			make_node(g, "Sqrt", t[4], t[5]);
			make_pair(g, "Div", t[1], t[5], t[6], false);
			make_pair(g, "Mul", t[6], "scale", t[7], swap);
			make_pair(g, "Add", t[7], "row", v[i], swap);
			break;
		case 4: make_softmax_parts(g, x, v[i], swap, !swap, swap, 2); break;
		case 5:
			snprintf(in, sizeof(in), "%s,scale,row", x);
			make_node(g, "LayerNormalization", in, v[i]);
			break;
		case 6: make_pair(g, "Add", x, "row", v[i], swap); break;
		default: make_pair(g, "Add", x, any, v[i], swap);
		}
		if (rg_rng_integer(stream, at + 6, 0, 9) == 0)
			make_output(g, v[i]);
		else if (rg_rng_integer(stream, at + 7, 0, 9) == 0 && rg_graph_find_value(g, t[2]) >= 0)
			make_output(g, t[2]);
	}
	if (!g->values[rg_graph_find_value(g, v[n])].is_output)
		make_output(g, v[n]);
	make_finish(g);
	return g;
}

static void test_random(void **state)
{
	static const char *const mine[] = { "gelu", "silu", "layer-norm", "softmax", "skip-layer-norm" };
	int rewritten = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		rewritten += compare(make_random_parts, seed, 1, 0, NULL);
		compare(make_random_parts, seed, RG_PASS_LEVELS, 0, NULL);
		for (int i = 0; i < 5; i++) { /* each alone */
			const char *others[64];
			int n = 0;

			for (int k = 0; k < rg_pass_count(); k++)
				if (strcmp(rg_pass_at(k)->name, mine[i]))
					others[n++] = rg_pass_at(k)->name;
			compare(make_random_parts, seed, RG_PASS_LEVELS, n, others);
		}
		check_settles(make_random_parts, seed);
	}
	assert_true(rewritten > 1000);
}

static void test_idempotent(void **state)
{
	for (uint64_t how = 0; how < GELU_ORDERS; how += 7)
		check_settles(make_gelu, how);
	for (uint64_t how = 0; how < SILU_ORDERS; how++)
		check_settles(make_silu, how);
	for (uint64_t how = 0; how < NORM_ORDERS; how += 3)
		check_settles(make_norm, how);
	for (uint64_t how = 0; how < SOFTMAX_ORDERS; how++)
		check_settles(make_softmax, how);
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
	check_allocations(make_softmax, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gelu),
		cmocka_unit_test(test_silu),
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
