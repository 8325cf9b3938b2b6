/*
 * Control flow on the dynamic path: If, Loop, Scan and sequences by hand, what
 * subgraphs read of the graphs around them, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/exec/make-dynamic.h"

static const int lanes[] = { 1, 2 };

/* ---- If ---- */

/* The nested one reads a planned value, a dynamic one and a constant from two
 * levels out; the branches give what they computed, what they captured, and a
 * constant. */
static struct rg_graph *nested_ifs(void)
{
	struct rg_graph *g = make_graph(), *yes = make_body(g), *no = make_body(g), *in[2];

	make_input(g, "x", RG_F32, "3");
	make_input(g, "c", RG_BOOL, "");
	make_input(g, "c2", RG_BOOL, "1");
	make_floats(g, "k", "3", FLOATS(10, 20, 30));
	make_node(g, "Neg", "x", "planned");
	make_computed(g, "x", "x2");
	make_node(g, "NonZero", "x2", "at");
	make_node(g, "Gather", "x,at", "picked");
	make_node_attrs(g, "ReduceSum", "picked", "sum", 1, ATTRS(int_attr("keepdims", 0)));
	for (int i = 0; i < 2; i++) {
		in[i] = make_body(yes);
		make_node(in[i], i ? "Mul" : "Add", "planned,k", "deep");
		make_node(in[i], i ? "Neg" : "Identity", "sum", "deep-sum");
		make_output(in[i], "deep");
		make_output(in[i], "deep-sum");
	}
	make_node_attrs(yes, "If", "c2", "a,b", 2, ATTRS(graph_attr("then_branch", in[0]),
							  graph_attr("else_branch", in[1])));
	make_output(yes, "a");
	make_output(yes, "b");
	make_output(no, "planned");
	make_output(no, "k");
	make_node_attrs(g, "If", "c", "y,z", 2, ATTRS(graph_attr("then_branch", yes),
						       graph_attr("else_branch", no)));
	make_output(g, "y");
	make_output(g, "z");
	return g;
}

static void test_if(void **state)
{
	for (int l = 0; l < 2; l++) {
		struct made m = make_run(nested_ifs(), lanes[l], NULL);
		uint8_t *c = made_input(&m, "c"), *c2 = made_input(&m, "c2");

		for (int round = 0; round < 3; round++) {
			memcpy(made_input(&m, "x"), FLOATS(1, 0, 3), 12);
			*c = *c2 = 1;
			made_run(&m);
			check_floats(rg_exec_output(m.e, 0), "3", FLOATS(9, 20, 27));
			check_floats(rg_exec_output(m.e, 1), "scalar", FLOATS(4));
			*c2 = 0;
			memcpy(made_input(&m, "x"), FLOATS(1, 2, 3), 12);
			made_run(&m);
			check_floats(rg_exec_output(m.e, 0), "3", FLOATS(-10, -40, -90));
			check_floats(rg_exec_output(m.e, 1), "scalar", FLOATS(-6));
			*c = 0;
			made_run(&m);
			check_floats(rg_exec_output(m.e, 0), "3", FLOATS(-1, -2, -3));
			check_floats(rg_exec_output(m.e, 1), "3", FLOATS(10, 20, 30));
		}
		made_free(&m);
	}
}

/* ---- Loop ---- */

/* body(i, go, a): b = a + 1; goes on while the sum of b is below `limit`. Scans:
 * b, b again, i (a formal input), a constant, and a captured value. */
static struct rg_graph *counting(const char *inputs)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);

	make_input(g, "m", RG_I64, "");
	make_input(g, "go", RG_BOOL, "");
	make_input(g, "x", RG_F32, "2");
	make_input(g, "limit", RG_F32, "");
	make_formal(body, "i");
	make_formal(body, "go-in");
	make_formal(body, "a");
	make_floats(body, "one", "1", FLOATS(1));
	make_floats(body, "k", "1", FLOATS(7));
	make_node(body, "Add", "a,one", "b");
	make_node_attrs(body, "ReduceSum", "b", "sum", 1, ATTRS(int_attr("keepdims", 0)));
	make_node(body, "Less", "sum,limit", "go-out");
	make_output(body, "go-out");
	make_output(body, "b");
	make_output(body, "b");
	make_output(body, "b");
	make_output(body, "i");
	make_output(body, "k");
	make_output(body, "x");
	/* what stacking nothing gives has to be declared */
	for (int o = 1; o < body->n_outputs; o++) {
		struct rg_error err = RG_ERROR_INIT;
		const struct rg_dim dim[] = { { o == 5 ? 1 : 2, NULL } };

		assert_int_equal(rg_graph_declare(body, body->outputs[o], o == 4 ? RG_I64 : RG_F32, o == 4 ? 0 : 1,
						  dim, &err), 0);
	}
	make_node_attrs(g, "Loop", inputs, "y,s1,s2,is,ks,xs", 1, ATTRS(graph_attr("body", body)));
	make_output(g, "y");
	make_output(g, "s1");
	make_output(g, "s2");
	make_output(g, "is");
	make_output(g, "ks");
	make_output(g, "xs");
	return g;
}

/* So many rounds from x = (0, 10). */
static void check_rounds(const struct made *m, int n)
{
	float s[40], k[40], x[40];
	struct rg_tensor is = rg_exec_output(m->e, 3);
	char rows[32], one[32];

	for (int i = 0; i < n; i++) {
		s[2 * i] = (float)(i + 1);
		s[2 * i + 1] = (float)(i + 11);
		k[i] = 7;
		x[2 * i] = 0;
		x[2 * i + 1] = 10;
	}
	snprintf(rows, sizeof(rows), "%dx2", n);
	snprintf(one, sizeof(one), "%dx1", n);
	check_floats(rg_exec_output(m->e, 0), "2", FLOATS((float)n, (float)(n + 10)));
	check_floats(rg_exec_output(m->e, 1), rows, s);
	check_floats(rg_exec_output(m->e, 2), rows, s);
	check_floats(rg_exec_output(m->e, 4), one, k);
	check_floats(rg_exec_output(m->e, 5), rows, x);
	assert_int_equal(is.dtype, RG_I64);
	assert_int_equal(is.shape.rank, 1);
	assert_int_equal(is.shape.dim[0], n);
	for (int i = 0; i < n; i++)
		assert_int_equal(((const int64_t *)is.data)[i], i);
}

static void test_loop(void **state)
{
	/* m, go, limit: rounds. The sum of b is 12, 14, 16, ... */
	static const struct { int64_t m; int go; float limit; int both, no_m, no_go, neither; } t[] = {
		{ 0, 1, 1000, 0, -1, 0, -1 }, { 1, 1, 1000, 1, -1, 1, -1 }, { 9, 1, 1000, 9, -1, 9, -1 },
		{ -5, 1, 20, 0, 5, 0, 5 },    { 99, 1, 20, 5, 5, 5, 5 },    { 3, 1, 20, 3, 5, 3, 5 },
		{ 99, 0, 20, 0, 0, 5, 5 },    { 99, 1, 0, 1, 1, 1, 1 },
	};
	static const char *const inputs[] = { "m,go,x", ",go,x", "m,,x", ",,x" };

	for (int l = 0; l < 2; l++) {
		for (int form = 0; form < 4; form++) {
			struct made m = make_run(counting(inputs[form]), lanes[l], NULL);

			for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
				const int want[] = { t[i].both, t[i].no_m, t[i].no_go, t[i].neither };

				if (want[form] < 0)
					continue; /* it would not end soon */
				memcpy(made_input(&m, "m"), &t[i].m, sizeof(t[i].m));
				*(uint8_t *)made_input(&m, "go") = (uint8_t)t[i].go;
				memcpy(made_input(&m, "x"), FLOATS(0, 10), 8);
				memcpy(made_input(&m, "limit"), &t[i].limit, sizeof(t[i].limit));
				made_run(&m);
				check_rounds(&m, want[form]);
			}
			made_free(&m);
		}
	}
}

/* A sequence goes from round to round and grows; what was there stays the same. */
static struct rg_graph *collecting(void)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);

	make_input(g, "m", RG_I64, "");
	make_input(g, "x", RG_F32, "2");
	make_formal(body, "i");
	make_formal(body, "go");
	make_formal(body, "a");
	make_formal(body, "list");
	make_node(body, "Add", "a,x", "b");
	make_node(body, "SequenceInsert", "list,b", "longer");
	make_node(body, "Identity", "longer", "same");
	make_output(body, "go");
	make_output(body, "b");
	make_output(body, "same");
	make_node(g, "SequenceConstruct", "x,x", "begin");
	make_node_attrs(g, "Loop", "m,,x,begin", "y,all", 1, ATTRS(graph_attr("body", body)));
	make_node_attrs(g, "ConcatFromSequence", "all", "joined", 1, ATTRS(int_attr("axis", 0)));
	make_output(g, "joined");
	make_output(g, "all");
	make_output(g, "begin");
	return g;
}

static void test_loop_sequence(void **state)
{
	struct made m = make_run(collecting(), 2, NULL);
	int64_t *trips = made_input(&m, "m");

	for (int round = 0; round < 3; round++) {
		const struct rg_item *all;

		memcpy(made_input(&m, "x"), FLOATS(1, 2), 8);
		*trips = 2;
		made_run(&m);
		check_floats(rg_exec_output(m.e, 0), "8", FLOATS(1, 2, 1, 2, 2, 4, 3, 6));
		all = rg_exec_output_item(m.e, 1);
		assert_int_equal(all->kind, RG_ITEM_SEQUENCE);
		assert_int_equal(all->n, 4);
		check_floats(all->v[3]->t, "2", FLOATS(3, 6));
		assert_int_equal(rg_exec_output_item(m.e, 2)->n, 2); /* not changed */
		*trips = 0;
		made_run(&m);
		check_floats(rg_exec_output(m.e, 0), "4", FLOATS(1, 2, 1, 2));
	}
	made_free(&m);
}

/* ---- Scan ---- */

static struct rg_graph *scan_body(struct rg_graph *g)
{
	struct rg_graph *body = make_body(g);

	make_formal(body, "s");
	make_formal(body, "e");
	make_node(body, "Add", "s,e", "t");
	make_node(body, "Identity", "t", "u");
	make_output(body, "t");
	make_output(body, "u");
	return body;
}

/* A running sum over the columns of x, from the last to the first; the sums are
 * columns again, the last one first. */
static void test_scan(void **state)
{
	struct rg_graph *g = make_graph();
	struct made m;

	make_input(g, "x", RG_F32, "3x2");
	make_input(g, "s", RG_F32, "3");
	make_node_attrs(g, "Scan", "s,x", "y,sums", 6, ATTRS(graph_attr("body", scan_body(g)),
			int_attr("num_scan_inputs", 1), ints_attr("scan_input_axes", 1, INTS(-1)),
			ints_attr("scan_input_directions", 1, INTS(1)), ints_attr("scan_output_axes", 1, INTS(1)),
			ints_attr("scan_output_directions", 1, INTS(1))));
	make_output(g, "y");
	make_output(g, "sums");
	m = make_run(g, 2, NULL);
	for (int round = 0; round < 3; round++) {
		memcpy(made_input(&m, "x"), FLOATS(1, 2, 3, 4, 5, 6), 24);
		memcpy(made_input(&m, "s"), FLOATS(0, 0, 100), 12);
		made_run(&m);
		check_floats(rg_exec_output(m.e, 0), "3", FLOATS(3, 7, 111));
		check_floats(rg_exec_output(m.e, 1), "3x2", FLOATS(3, 2, 7, 4, 111, 106));
	}
	made_free(&m);
}

/* Version 8: a batch of sequences of 3, 1 and 0 elements; the rest is zeros. */
static void test_scan_8(void **state)
{
	struct rg_graph *g = make_graph_of(8), *body;
	struct rg_error err = RG_ERROR_INIT;
	const struct rg_dim dim[] = { { 1, NULL } };
	struct made m;

	make_input(g, "x", RG_F32, "3x3x1");
	make_input(g, "s", RG_F32, "3x1");
	make_input(g, "lens", RG_I64, "3");
	body = scan_body(g);
	assert_int_equal(rg_graph_declare(body, body->outputs[1], RG_F32, 1, dim, &err), 0);
	make_node_attrs(g, "Scan", "lens,s,x", "y,sums", 3, ATTRS(graph_attr("body", body),
			int_attr("num_scan_inputs", 1), ints_attr("directions", 1, INTS(1))));
	make_output(g, "y");
	make_output(g, "sums");
	m = make_run(g, 1, NULL);
	memcpy(made_input(&m, "x"), FLOATS(1, 2, 3, 4, 5, 6, 7, 8, 9), 36);
	memcpy(made_input(&m, "s"), FLOATS(0, 10, 20), 12);
	memcpy(made_input(&m, "lens"), INTS(3, 1, 0), 24);
	made_run(&m);
	check_floats(rg_exec_output(m.e, 0), "3x1", FLOATS(6, 14, 20));
	check_floats(rg_exec_output(m.e, 1), "3x3x1", FLOATS(3, 5, 6, 14, 0, 0, 0, 0, 0));
	memcpy(made_input(&m, "lens"), INTS(3, 4, 0), 24);
	made_fails(&m, "sequence_lens[1] is 4", &err);
	made_free(&m);
}

/* ---- sequences and optionals ---- */

static void test_sequence_map(void **state)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_item *v[2], *seq;
	const struct rg_item *out;
	struct made m;

	make_holder(g, "list", RG_VALUE_SEQUENCE);
	make_input(g, "x", RG_F32, "1");
	make_formal(body, "e");
	make_formal(body, "f");
	make_node(body, "Add", "e,f", "sum");
	make_output(body, "sum");
	make_node_attrs(g, "SequenceMap", "list,x", "mapped", 1, ATTRS(graph_attr("body", body)));
	make_output(g, "mapped");
	m = make_run(g, 1, NULL);
	made_fails(&m, "'list' has no value", &err);
	for (int k = 0; k < 2; k++) { /* borrowed: the executor makes a copy of each */
		const int64_t n = k + 1;
		struct rg_tensor t = { RG_F32, rg_shape_of(1, &n), (void *)FLOATS(1, 2) };

		v[k] = rg_item_copy(&t, &err);
		assert_non_null(v[k]);
	}
	seq = rg_item_sequence(RG_F32, 2, v, &err);
	assert_int_equal(rg_exec_set_input(m.e, 0, seq, &err), 0);
	rg_item_unref(seq);
	for (int round = 0; round < 3; round++) {
		*(float *)made_input(&m, "x") = (float)round;
		made_run(&m);
		out = rg_exec_output_item(m.e, 0);
		assert_int_equal(out->n, 2);
		check_floats(out->v[0]->t, "1", FLOATS((float)(1 + round)));
		check_floats(out->v[1]->t, "2", FLOATS((float)(1 + round), (float)(2 + round)));
	}
	made_free(&m);
}

/* ---- errors and hostile graphs ---- */

/* The error names the outer node, the iteration, and the node inside. */
static void test_error_places(void **state)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);
	struct rg_error err;
	struct made m;

	make_input(g, "m", RG_I64, "");
	make_input(g, "x", RG_F32, "3");
	make_formal(body, "i");
	make_formal(body, "go");
	make_node(body, "Gather", "x,i", "one"); /* i = 3 is outside */
	make_output(body, "go");
	make_output(body, "one");
	make_node_attrs(g, "Loop", "m,", "all", 1, ATTRS(graph_attr("body", body)));
	make_output(g, "all");
	m = make_run(g, 1, NULL);
	*(int64_t *)made_input(&m, "m") = 5;
	made_fails(&m, "3", &err);
	assert_string_equal(err.where, "node 'n:all' (Loop): iteration 3: node 'n:one' (Gather)");
	*(int64_t *)made_input(&m, "m") = 3; /* and it works again */
	memcpy(made_input(&m, "x"), FLOATS(4, 5, 6), 12);
	made_run(&m);
	check_floats(rg_exec_output(m.e, 0), "3", FLOATS(4, 5, 6));
	made_free(&m);
}

enum hostile { NO_BOOL, FEW_OUTPUTS, MANY_OUTPUTS, FEW_INPUTS, NO_BODY, NO_VALUE, PACKED, UNDECLARED,
	       SEQUENCE_STACKED, N_HOSTILE };

/* A Loop with something wrong about its body. */
static struct rg_graph *hostile_loop(enum hostile h)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);
	struct rg_attr attr = graph_attr("body", body);

	make_input(g, "m", RG_I64, "");
	make_input(g, "x", RG_F32, "2");
	make_input(g, "packed", RG_I4, "3");
	make_formal(body, "i");
	if (h != FEW_INPUTS)
		make_formal(body, "go");
	make_formal(body, "a");
	make_node(body, "Identity", h == PACKED ? "packed" : "x", "b");
	make_node(body, "SequenceEmpty", "", "list");
	if (h != FEW_OUTPUTS && h != FEW_INPUTS)
		make_output(body, h == NO_BOOL ? "i" : "go");
	if (h == FEW_INPUTS)
		make_output(body, "i");
	make_output(body, h == NO_VALUE ? "a" : "b");
	if (h != FEW_OUTPUTS)
		make_output(body, h == SEQUENCE_STACKED ? "list" : "b");
	if (h == NO_BODY) {
		rg_graph_free(body);
		attr = int_attr("body", 1);
	}
	make_node_attrs(g, "Loop", h == NO_VALUE ? "m,,," : "m,,x", h == MANY_OUTPUTS ? "y,s,t" : "y,s",
			1, &attr);
	make_output(g, "y");
	make_output(g, "s");
	return g;
}

static void test_hostile(void **state)
{
	static const char *const want[N_HOSTILE] = {
		[NO_BOOL] = "must be one bool", [FEW_OUTPUTS] = "do not go with a body", [MANY_OUTPUTS] = "do not go with",
		[FEW_INPUTS] = "do not go with a body", [PACKED] = "cannot be cut or joined",
		[UNDECLARED] = "does not say of what type", [SEQUENCE_STACKED] = "only tensors",
	};

	for (int h = 0; h < N_HOSTILE; h++) {
		struct rg_graph *g = hostile_loop((enum hostile)h);
		struct rg_error err = RG_ERROR_INIT;
		struct made m;

		if (h == NO_BODY) { /* already the graph is refused */
			assert_int_equal(rg_graph_finish(g, &err), -EINVAL);
			rg_graph_free(g);
			continue;
		}
		m = make_run(g, 1, NULL);
		*(int64_t *)made_input(&m, "m") = h == UNDECLARED ? 0 : 2;
		if (want[h])
			made_fails(&m, want[h], &err);
		else
			made_run(&m);
		made_free(&m);
	}
}

/* Each element would be a sequence, and so on with each round of a loop. */
static void test_sequence_of_sequences(void **state)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);
	struct rg_error err;
	struct made m;

	make_input(g, "x", RG_F32, "2");
	make_node(g, "SequenceConstruct", "x,x", "list");
	make_formal(body, "e");
	make_output(body, "list");
	make_node_attrs(g, "SequenceMap", "list", "lists", 1, ATTRS(graph_attr("body", body)));
	make_output(g, "lists");
	m = make_run(g, 1, NULL);
	made_fails(&m, "what is no tensor", &err);
	assert_string_equal(err.where, "node 'n:lists' (SequenceMap): element 0");
	made_free(&m);
}

/* No bytes, and as many pieces as anybody likes. */
static void test_many_pieces(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_error err;
	struct made m;

	make_input(g, "x", RG_F32, "2147483647x0");
	make_input(g, "each", RG_I64, "");
	make_node(g, "SplitToSequence", "x", "list");
	make_node(g, "SplitToSequence", "x,each", "lists");
	make_output(g, "list");
	make_output(g, "lists");
	m = make_run(g, 1, NULL);
	*(int64_t *)made_input(&m, "each") = 3;
	made_fails(&m, "pieces", &err);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_if),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_loop_sequence),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_scan_8),
		cmocka_unit_test(test_sequence_map),
		cmocka_unit_test(test_error_places),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_sequence_of_sequences),
		cmocka_unit_test(test_many_pieces),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
