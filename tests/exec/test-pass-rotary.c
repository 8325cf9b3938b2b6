/*
 * Rotary embedding that an exporter has taken apart (pass-rotary.c): ways to split halves,
 * to make the angles and to come by heads, each with each, and with attention behind it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make-pattern.h"

enum { BATCH = 2, SEQ = 5, HEADS = 3, SIZE = 8, HALF = SIZE / 2 };

enum angles {
	ROWS, ONE, EACH, MADE, MADE_ONE, MADE_EACH, N_ANGLES
};
enum { N_ORDERS = N_ANGLES * 2 * 2 * 2 };

static void turn(struct rg_graph *g, const char *in, const char *out)
{
	make_node_attrs(g, "Transpose", in, out, 1, ATTRS(ints_attr("perm", 4, INTS(0, 2, 1, 3))));
}

static void reshape(struct rg_graph *g, const char *in, const char *out, int n, const int64_t *dims)
{
	char shape[32], both[80];

	snprintf(shape, sizeof(shape), "%s-shape", out);
	make_ints(g, shape, n, dims);
	snprintf(both, sizeof(both), "%s,%s", in, shape);
	make_node(g, "Reshape", both, out);
}

/* "cos" and "sin", both halves of which are equal but where `spoil` is set. */
static void make_angles(struct rg_graph *g, enum angles a, bool spoil)
{
	static const char *const names[] = { "cos", "sin" };
	bool made = a >= MADE;
	char in[60], out[40];
	float all[BATCH * SEQ * SIZE];

	if (made) {
		make_input(g, "f", RG_F32, a == MADE ? "5x4" : a == MADE_ONE ? "1x5x4" : "2x5x4");
		make_node_attrs(g, "Concat", "f,f", "ff", 1, ATTRS(int_attr("axis", -1)));
		make_number(g, "scaling", 1.25f);
		make_ints(g, "at", 1, INTS(a == MADE ? 0 : 1));
	}
	for (int i = 0; i < 2; i++) {
		if (!made) {
			for (int k = 0; k < BATCH * SEQ * SIZE; k++)
				all[k] = (float)((k / SIZE * 7 + k % HALF * 3 + i * 5) % 19) / 19;
			if (spoil && i)
				all[HALF] += 0.125f;
			make_floats(g, names[i], a == ROWS ? "5x8" : a == ONE ? "1x1x5x8" : "2x1x5x8", all);
			continue;
		}
		snprintf(out, sizeof(out), "%s-1", names[i]);
		make_node(g, i ? "Sin" : "Cos", "ff", out);
		snprintf(in, sizeof(in), "%s,scaling", out);
		snprintf(out, sizeof(out), "%s-2", names[i]);
		make_node(g, "Mul", in, out);
		snprintf(in, sizeof(in), "%s,at", out);
		make_node(g, "Unsqueeze", in, names[i]);
	}
}

/* y out of x of four dimensions. */
static void make_parts(struct rg_graph *g, const char *x, const char *y, bool by_split, bool swap)
{
	static const char *const parts[] = { "first", "second", "minus", "turned", "xc", "ts" };
	char t[6][32], in[120];

	for (int i = 0; i < 6; i++)
		snprintf(t[i], sizeof(t[i]), "%s-%s", y, parts[i]);
	if (rg_graph_find_value(g, "zero") < 0) {
		make_ints(g, "zero", 1, INTS(0));
		make_ints(g, "half", 1, INTS(HALF));
		make_ints(g, "end", 1, INTS(INT64_MAX));
		make_ints(g, "last", 1, INTS(3));
		make_ints(g, "halves", 2, INTS(HALF, HALF));
	}
	if (by_split) {
		char out[70];

		snprintf(in, sizeof(in), "%s,halves", x);
		snprintf(out, sizeof(out), "%s,%s", t[0], t[1]);
		make_node_attrs(g, "Split", in, out, 1, ATTRS(int_attr("axis", -1)));
	} else {
		snprintf(in, sizeof(in), "%s,zero,half,last", x);
		make_node(g, "Slice", in, t[0]);
		snprintf(in, sizeof(in), "%s,half,end,last", x);
		make_node(g, "Slice", in, t[1]);
	}
	make_node(g, "Neg", t[1], t[2]);
	snprintf(in, sizeof(in), "%s,%s", t[2], t[0]);
	make_node_attrs(g, "Concat", in, t[3], 1, ATTRS(int_attr("axis", swap ? 3 : -1)));
	make_pair(g, "Mul", x, "cos", t[4], swap);
	make_pair(g, "Mul", t[3], "sin", t[5], swap);
	make_pair(g, "Add", t[4], t[5], y, swap);
}

static struct rg_graph *make_rotary(uint64_t how)
{
	struct rg_graph *g = make_graph();
	enum angles a = (enum angles)choose(&how, N_ANGLES);
	bool swap = choose(&how, 2), by_split = choose(&how, 2), heads = choose(&how, 2);

	make_angles(g, a, false);
	make_input(g, "x", RG_F32, heads ? "2x5x24" : "2x3x5x8");
	if (heads) {
		reshape(g, "x", "x5", 4, INTS(BATCH, SEQ, HEADS, SIZE));
		turn(g, "x5", "x4");
	}
	make_parts(g, heads ? "x4" : "x", "y", by_split, swap);
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_orders(void **state)
{
	for (uint64_t how = 0; how < N_ORDERS; how++) {
		struct rg_graph *g = make_rotary(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		bool made = how % N_ANGLES >= MADE, heads = how >= N_ORDERS / 2;
		const struct rg_node *n = node_of(p, "RotaryEmbedding");

		/* cosines and sines of half the angles, each times the scale */
		if (p->n_steps != 1 + heads + (made ? 4 + (how % N_ANGLES != MADE_EACH) : 0))
			fail_msg("order %d: %d steps", (int)how, p->n_steps);
		assert_int_equal(rg_node_int(n, "num_heads", 0), heads ? HEADS : 0);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_rotary, how, 1, 0, NULL);
	}
}

/* Queries and keys turned, then attention: nothing but these, and the angles once. */
static struct rg_graph *make_attention(uint64_t how)
{
	static const char *const names[] = { "q", "k", "v" };
	struct rg_graph *g = make_graph();
	char t[3][16];

	make_angles(g, (enum angles)how, false);
	for (int i = 0; i < 3; i++) {
		make_input(g, names[i], RG_F32, "2x5x24");
		snprintf(t[0], sizeof(t[0]), "%s5", names[i]);
		snprintf(t[1], sizeof(t[1]), "%s4", names[i]);
		snprintf(t[2], sizeof(t[2]), "%sr", names[i]);
		reshape(g, names[i], t[0], 4, INTS(BATCH, SEQ, HEADS, SIZE));
		turn(g, t[0], t[1]);
		if (i < 2)
			make_parts(g, t[1], t[2], false, false);
	}
	make_node_attrs(g, "Transpose", "kr", "kt", 1, ATTRS(ints_attr("perm", 4, INTS(0, 1, 3, 2))));
	make_node(g, "MatMul", "qr,kt", "scores");
	make_node_attrs(g, "Softmax", "scores", "weights", 1, ATTRS(int_attr("axis", -1)));
	make_node(g, "MatMul", "weights,v4", "mixed");
	turn(g, "mixed", "joined");
	reshape(g, "joined", "y", 3, INTS(BATCH, SEQ, HEADS * SIZE));
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_attention(void **state)
{
	for (uint64_t how = 0; how < N_ANGLES; how++) {
		struct rg_graph *g = make_attention(how);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);

		assert_int_equal(count_op(p, "RotaryEmbedding"), 2);
		assert_int_equal(count_op(p, "MultiHeadAttention"), 1);
		assert_int_equal(count_op(p, "Transpose"), 0);
		assert_true(count_op(p, "Cos") + count_op(p, "Sin") <= 2);
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_attention, how, 3, 0, NULL);
	}
}

static struct planted plant(int i)
{
	struct planted p = { make_graph(), "rotary", "y-second", RG_DECLINE_NONE };
	struct rg_graph *g = p.g;

	make_input(g, "x", RG_F32, "2x3x5x8");
	if (i == 1) {
		make_input(g, "cos", RG_F32, "5x8");
		make_input(g, "sin", RG_F32, "5x8");
	} else if (i == 2) {
		random_floats(g, "cos", "3x5x8", 120, 1, 0);
		random_floats(g, "sin", "3x5x8", 120, 2, 0);
	} else {
		make_angles(g, ROWS, i == 0);
	}
	make_parts(g, "x", "y", false, false);
	switch (i) {
	case 0: /* angles of their own for each half */
		p.why = RG_DECLINE_ATTRIBUTE;
		break;
	case 1: /* angles of run time, of which nothing is known */
		p.why = RG_DECLINE_NOT_CONSTANT;
		break;
	case 2: /* angles of their own for each head */
		p.why = RG_DECLINE_BROADCASTING;
		break;
	case 3: /* somebody else reads what is turned */
		make_node(g, "Abs", "y-turned", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	default: /* it is an output */
		make_output(g, "y-turned");
		p.why = RG_DECLINE_GRAPH_OUTPUT;
	}
	make_output(g, "y");
	make_finish(g);
	return p;
}

enum { N_PLANTED = 5 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++)
		check_planted(plant(i), i, 1, planted_graph);
}

static void test_idempotent(void **state)
{
	for (uint64_t how = 0; how < N_ORDERS; how++)
		check_settles(make_rotary, how);
	for (uint64_t how = 0; how < N_ANGLES; how++)
		check_settles(make_attention, how);
}

static void test_allocation_failures(void **state)
{
	check_allocations(make_rotary, MADE_ONE + N_ORDERS / 2);
	check_allocations(make_rotary, EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-rotary", tests, NULL, NULL);
}
