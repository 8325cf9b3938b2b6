/*
 * LSTM, GRU and RNN of every variant against the reference: directions, layouts,
 * lengths, peepholes, clipping, functions, sizes around vectors and panels, long
 * sequences, states that do not fit a cache.
 *
 * Tolerance: sums of products of numbers below 1 in float, and a state that carries
 * its errors on; gates keep them from growing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nn-case.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(A) (sizeof(A) / sizeof((A)[0]))

struct shape {
	int64_t seq, batch, input, hidden;
};

struct options {
	const char *op, *direction;
	bool batch_first, bias, lengths, states, peepholes, couple, linear;
	float clip;
	uint32_t variable;
};

static int gates_of(const char *op)
{
	return !strcmp(op, "LSTM") ? 4 : !strcmp(op, "GRU") ? 3 : 1;
}

/* Weights as trained ones are: the sum over a row stays near 1. */
static void weights(struct nn_case *t, int64_t dirs, int64_t rows, int64_t n)
{
	float *w = nn_input(t, NN_UNIFORM, 3, D(dirs, rows, n)), f = n > 4 ? 2 / sqrtf((float)n) : 1;

	for (int64_t i = 0; i < dirs * rows * n; i++)
		w[i] *= f;
}

static void start(struct nn_case *t, const struct shape *s, const struct options *o)
{
	int64_t dirs = strcmp(o->direction, "bidirectional") ? 1 : 2, rows = gates_of(o->op) * s->hidden;

	nn_start(t, o->op, 14);
	nn_string(t, "direction", o->direction);
	nn_int(t, "hidden_size", s->hidden);
	nn_int(t, "layout", o->batch_first);
	if (o->clip > 0)
		nn_float(t, "clip", o->clip);
	if (gates_of(o->op) == 4)
		nn_int(t, "input_forget", o->couple);
	if (gates_of(o->op) == 3)
		nn_int(t, "linear_before_reset", o->linear);
	nn_input(t, NN_UNIFORM, 3,
		 o->batch_first ? D(s->batch, s->seq, s->input) : D(s->seq, s->batch, s->input));
	weights(t, dirs, rows, s->input);
	weights(t, dirs, rows, s->hidden);
	if (o->bias)
		nn_input(t, NN_UNIFORM, 2, D(dirs, 2 * rows));
	else
		nn_absent(t);
	if (o->lengths) {
		int32_t *len = nn_input_typed(t, RG_I32, 1, &s->batch);

		for (int64_t b = 0; b < s->batch; b++)
			len[b] = (int32_t)((b * 5 + 2) % (s->seq + 1));
	} else {
		nn_absent(t);
	}
	for (int i = 0; i < (gates_of(o->op) == 4 ? 2 : 1); i++) {
		if (o->states)
			nn_input(t, NN_UNIFORM, 3,
				 o->batch_first ? D(s->batch, dirs, s->hidden)
						: D(dirs, s->batch, s->hidden));
		else
			nn_absent(t);
	}
	if (o->peepholes && gates_of(o->op) == 4)
		nn_input(t, NN_UNIFORM, 2, D(dirs, 3 * s->hidden));
	t->variable = o->variable;
}

static int check(const struct shape *s, const struct options *o)
{
	struct nn_case t;

	start(&t, s, o);
	return nn_check_outputs(&t, gates_of(o->op) == 4 ? 3 : 2, 1e-4, 2e-5, false);
}

static const char *const ops[] = { "LSTM", "GRU", "RNN" };
static const char *const directions[] = { "forward", "reverse", "bidirectional" };

static void test_options(void **state)
{
	static const struct shape shapes[] = {
		{ 1, 1, 1, 1 },  { 5, 1, 3, 7 },   { 4, 3, 10, 16 }, { 9, 2, 17, 33 },
		{ 1, 1, 64, 128 }, { 7, 8, 5, 24 }, { 3, 13, 40, 65 },
	};

	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (int v = 0; v < 72; v++) {
			const struct options o = {
				.op = ops[v % 3],
				.direction = directions[v / 3 % 3],
				.batch_first = v / 9 % 2,
				.bias = v % 4 != 1,
				.lengths = v % 5 > 2,
				.states = v % 7 > 2,
				.peepholes = v % 2,
				.couple = v % 11 > 6,
				.linear = v % 6 > 2,
				.clip = v % 8 == 5 ? 0.4f : 0,
				.variable = v % 3 == 1 ? ~0u
					    : v % 4    ? ~0xeu
						       : ~4u,
			};

			assert_true(check(&shapes[i], &o) >= 3);
		}
	}
}

static void test_sizes(void **state)
{
	static const struct shape shapes[] = {
		{ 300, 1, 20, 40 },   /* long */
		{ 60, 2, 64, 128 },
		{ 3, 1, 30, 420 },    /* more weights than L2 holds: lanes share a step */
		{ 2, 3, 512, 300 },
		{ 2, 70, 12, 50 },    /* many sequences */
	};

	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (int v = 0; v < 9; v++) {
			const struct options o = {
				.op = ops[v % 3],
				.direction = directions[v / 3],
				.bias = true,
				.states = v % 2,
				.linear = v % 4 == 1,
				.lengths = v % 4 == 3,
				.variable = v % 2 ? ~0u : 1,
			};

			assert_true(check(&shapes[i], &o) >= 3);
		}
	}
}

static void test_empty(void **state)
{
	static const struct shape shapes[] = { { 0, 2, 3, 8 }, { 3, 0, 3, 8 } };

	for (size_t i = 0; i < COUNT(shapes); i++)
		for (int v = 0; v < 6; v++)
			assert_true(check(&shapes[i], &(struct options){ .op = ops[v % 3],
									 .direction = directions[v / 3 * 2],
									 .states = v % 2 }) >= 3);
}

/* What is not a number stays with its sequence, and clipping takes it as the reference does. */
static void test_special(void **state)
{
	for (int v = 0; v < 12; v++) {
		const struct options o = {
			.op = ops[v % 3], .direction = "forward", .bias = true, .clip = v / 3 % 2 ? 2 : 0
		};
		const struct shape s = { 6, 3, 9, 20 };
		struct nn_case t;
		float *x;

		start(&t, &s, &o);
		x = t.in[0].data;
		x[1 * 9 + 4] = NAN;
		x[(2 * 3 + 2) * 9 + 5] = v < 6 ? INFINITY : -1e38f;
		assert_true(nn_check_outputs(&t, 2, 1e-4, 2e-5, true) >= 3);
	}
}

static void activations(struct nn_case *t, int n, const char **names)
{
	struct rg_attr *a = &t->attrs[t->node.n_attrs++];

	a->name = "activations";
	a->type = RG_ATTR_STRINGS;
	a->strings = names;
	a->count = n;
}

static void test_functions(void **state)
{
	static const char *relu[] = { "Relu", "RELU" }, *other[] = { "HardSigmoid", "Tanh", "Tanh" };
	static const char *usual[] = { "sigmoid", "Tanh", "TANH", "Sigmoid", "tanh", "Tanh" };
	const struct options both = { .op = "RNN", .direction = "bidirectional" };
	const struct options lstm = { .op = "LSTM", .direction = "forward" };
	const struct options two = { .op = "LSTM", .direction = "bidirectional" };
	const struct shape s = { 4, 2, 5, 19 };
	struct nn_case t;

	start(&t, &s, &both);
	activations(&t, 2, relu);
	assert_true(nn_check_outputs(&t, 2, 1e-4, 2e-5, false) >= 3);
	start(&t, &s, &two);
	activations(&t, 6, usual);
	assert_true(nn_check_outputs(&t, 3, 1e-4, 2e-5, false) >= 3);
	start(&t, &s, &lstm);
	activations(&t, 3, other);
	assert_int_equal(nn_check_outputs(&t, 3, 0, 0, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests_name("nn-rnn", tests, NULL, NULL);
}
