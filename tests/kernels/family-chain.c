/* Calls of ridge's own Chain: random elementwise operators that read each other. See check.h. */
#include "check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/own.h"

enum { RANK = 4, MOST_IN = 6, MOST_OPS = 10 };

/* A value of the body of this shape; its index is `number`. */
static void value(struct rg_graph *body, int number, const struct rg_shape *s)
{
	struct rg_error err = RG_ERROR_INIT;
	char name[16];
	int v;

	snprintf(name, sizeof(name), "v%d", number);
	v = rg_graph_value(body, name, &err);
	assert_int_equal(v, number);
	body->values[v].shaped = true;
	body->values[v].dtype = RG_F32;
	body->values[v].shape = *s;
}

/* Operators that round once, so that the result is the reference's but for the last one's own error. */
static void chain(struct nn_case *t, struct ck_gen *g)
{
	static const char *const pairs[] = { "Add", "Sub", "Mul", "Max", "Min" }, *const ones[] = { "Relu", "Neg", "Abs" };
	static const char *const ends[] = { "Sigmoid", "Tanh", "Softplus", "Exp", "Sqrt" };
	int n_in = (int)ck_between(g, 1, MOST_IN), n_ops = (int)ck_between(g, 1, MOST_OPS), rank = (int)ck_between(g, 0, RANK);
	struct rg_graph *body = rg_graph_new(NULL);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape full = { .rank = rank };
	int64_t dim[RANK];

	assert_non_null(body);
	assert_int_equal(rg_graph_set_opset(body, "", 22, &err), 0);
	for (int d = 0; d < rank; d++)
		full.dim[d] = dim[d] = d == rank - 1 && ck_chance(g, 30) ? ck_length(g) : ck_some(g, 12);
	for (int i = 0; i < n_in; i++) {
		int skip = i && ck_chance(g, 30) ? (int)ck_between(g, 0, rank) : 0;
		int64_t own[RANK];

		for (int d = 0; d < rank; d++)
			own[d] = i && ck_chance(g, 35) ? 1 : dim[d];
		nn_input(t, ck_chance(g, 20) ? NN_SPECIAL : NN_WHOLE, rank - skip, own + skip);
		value(body, i, &t->in[i].shape);
		assert_int_equal(rg_graph_add_input(body, i, &err), 0);
	}
	for (int i = 0; i < n_ops; i++) {
		/* the one before has the result's shape, as input 0 has; some values are read again later */
		int in[2] = { i ? n_in + i - 1 : 0, (int)ck_between(g, 0, n_in - 1) }, out = n_in + i;
		bool end = i == n_ops - 1 && ck_chance(g, 30), one = end || ck_chance(g, 25);

		if (!one && i > 1 && ck_chance(g, 20))
			in[1] = n_in + i - 2;
		if (!one && ck_chance(g, 30)) {
			int first = in[0];

			in[0] = in[1];
			in[1] = first;
		}
		value(body, out, &full);
		assert_true(rg_graph_add_node(body, "", end ? CK_PICK(g, ends) : one ? CK_PICK(g, ones) : CK_PICK(g, pairs), "",
					      one ? 1 : 2, in, 1, &out, 0, NULL, &err) >= 0);
	}
	assert_int_equal(rg_graph_add_output(body, n_in + n_ops - 1, &err), 0);
	if (rg_graph_finish(body, &err))
		fail_msg("%s", err.message);
	nn_graph(t, "body", body);
	t->weights = 1u << ck_between(g, 0, n_in - 1);
}

static const struct ck_family families[] = {
	{ .domain = RG_OWN_DOMAIN, .op_type = "Chain", .make = chain, .measure = CK_ULPS, .ulps = 6 },
};
CK_FAMILY_TABLE(ck_families_chain, families);
