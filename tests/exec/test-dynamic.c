/*
 * The dynamic path: shapes that change from run to run, memory that comes and
 * goes, strings, failing allocations, and stopping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/exec/make-dynamic.h"

/* ---- shapes that change ---- */

/* y = (elements of x that are not 0, as a column) * w + b, z: the same through two
 * products, whose weights a kernel may pack for each shape anew. */
static struct rg_graph *chain(void)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "8");
	make_floats(g, "w", "1x3", FLOATS(1, 10, 100));
	make_floats(g, "b", "3", FLOATS(0.5f, 0.25f, 0));
	make_floats(g, "w2", "3x40", NULL);
	make_ints(g, "column", 2, INTS(-1, 1));
	make_computed(g, "x", "x2");
	make_node(g, "NonZero", "x2", "at");
	make_node(g, "Gather", "x,at", "picked");
	make_node(g, "Reshape", "picked,column", "rows");
	make_node(g, "MatMul", "rows,w", "product");
	make_node(g, "Add", "product,b", "y");
	make_node(g, "MatMul", "y,w2", "z");
	make_output(g, "y");
	make_output(g, "z");
	make_output(g, "at");
	return g;
}

static void check_chain(const struct made *m, const float *x)
{
	float y[24];
	char shape[32];
	int n = 0;

	for (int i = 0; i < 8; i++) {
		if (x[i] == 0)
			continue;
		y[3 * n] = x[i] + 0.5f;
		y[3 * n + 1] = 10 * x[i] + 0.25f;
		y[3 * n + 2] = 100 * x[i];
		n++;
	}
	snprintf(shape, sizeof(shape), "%dx3", n);
	check_floats(rg_exec_output(m->e, 0), shape, y);
	assert_int_equal(rg_exec_output(m->e, 1).shape.dim[0], n);
	for (int i = 0; i < n; i++) {
		const float *z = (const float *)rg_exec_output(m->e, 1).data + 40 * i;

		for (int k = 0; k < 40; k++)
			assert_float_equal(z[k], y[3 * i] * (float)k + y[3 * i + 1] * (float)(40 + k) +
					   y[3 * i + 2] * (float)(80 + k), 0.25);
	}
	assert_int_equal(rg_exec_output(m->e, 2).shape.dim[0], 1);
	assert_int_equal(rg_exec_output(m->e, 2).shape.dim[1], n);
}

static void test_changing_shapes(void **state)
{
	static const float xs[][8] = {
		{ 1, 0, 2, 0, 0, 0, 0, 3 }, { 0 }, { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 2, 3, 4, 5, 6, 7, 9 },
		{ 0, 0, 0, 5, 0, 0, 0, 0 }, { 1, 0, 2, 0, 0, 0, 0, 3 },
	};

	for (int lanes = 1; lanes <= 2; lanes++) {
		struct made m = make_run(chain(), lanes, NULL);

		assert_int_equal(m.p->n_dynamic, 8);
		for (size_t i = 0; i < 3 * sizeof(xs) / sizeof(xs[0]); i++) {
			const float *x = xs[i % (sizeof(xs) / sizeof(xs[0]))];

			memcpy(made_input(&m, "x"), x, sizeof(xs[0]));
			made_run(&m);
			check_chain(&m, x);
		}
		made_free(&m);
	}
}

/* Weights that are made anew in each run are not packed, and the kernel needs room for
 * what it does in their place. The last panel of 40 columns is a part of one. */
static void test_weights_that_change(void **state)
{
	struct rg_graph *g = make_graph();
	struct made m;

	make_input(g, "x", RG_F32, "8");
	make_input(g, "w", RG_F32, "1x40");
	make_input(g, "v", RG_F32, "40x1x1x1");
	make_ints(g, "column", 2, INTS(-1, 1));
	make_ints(g, "image", 4, INTS(1, 1, -1, 1));
	make_computed(g, "x", "x2");
	make_node(g, "NonZero", "x2", "at");
	make_node(g, "Gather", "x,at", "picked");
	make_node(g, "Reshape", "picked,column", "rows");
	make_node(g, "Reshape", "picked,image", "plane");
	make_node(g, "MatMul", "rows,w", "y");
	make_node(g, "Conv", "plane,v", "z");
	make_output(g, "y");
	make_output(g, "z");
	m = make_run(g, 1, NULL);
	for (int run = 0; run < 3; run++) {
		float *x = made_input(&m, "x"), *w = made_input(&m, "w"), *v = made_input(&m, "v");
		const float *y, *z;

		for (int i = 0; i < 8; i++)
			x[i] = i < 3 + run ? (float)(i + 1) : 0;
		for (int k = 0; k < 40; k++)
			w[k] = v[k] = (float)(k - 20 + run);
		made_run(&m);
		y = rg_exec_output(m.e, 0).data;
		z = rg_exec_output(m.e, 1).data;
		assert_int_equal(rg_exec_output(m.e, 0).shape.dim[0], 3 + run);
		assert_int_equal(rg_exec_output(m.e, 1).shape.dim[2], 3 + run);
		for (int i = 0; i < 3 + run; i++)
			for (int k = 0; k < 40; k++) {
				assert_true(y[i * 40 + k] == x[i] * w[k]);
				assert_true(z[k * (3 + run) + i] == x[i] * v[k]);
			}
	}
	made_free(&m);
}

/* ---- strings ---- */

/* Text that the last run made is gone, and its outputs are new. */
static void test_text(void **state)
{
	struct rg_graph *g = make_graph_of(20), *body = make_body(g);
	struct made m;

	make_input(g, "m", RG_I64, "");
	make_input(g, "s", RG_STRING, "2");
	make_formal(body, "i");
	make_formal(body, "go");
	make_formal(body, "a");
	make_node(body, "StringConcat", "a,s", "b");
	make_output(body, "go");
	make_output(body, "b");
	make_node_attrs(g, "Loop", "m,,s", "long", 1, ATTRS(graph_attr("body", body)));
	make_node(g, "StringConcat", "s,s", "twice"); /* planned */
	make_output(g, "long");
	make_output(g, "twice");
	m = make_run(g, 1, NULL);
	for (int64_t trips = 0; trips < 4; trips++) {
		static const char *const want[] = { "ab", "abab", "ababab", "abababab" };
		const char **s = made_input(&m, "s"), *const *y;

		*(int64_t *)made_input(&m, "m") = trips;
		s[0] = "ab";
		s[1] = NULL; /* the empty string */
		made_run(&m);
		y = rg_exec_output(m.e, 0).data;
		assert_string_equal(y[0], want[trips]);
		assert_true(!y[1] || !y[1][0]);
		y = rg_exec_output(m.e, 1).data;
		assert_string_equal(y[0], "abab");
	}
	made_free(&m);
}

/* ---- memory ---- */

/* A Loop whose state is 4 MiB: what an iteration made goes with it. Without that,
 * 200 of them would leave 1.6 GiB behind. */
static void test_memory_comes_back(void **state)
{
	struct rg_graph *g = make_graph(), *body = make_body(g);
	struct rusage before, after;
	struct made m;

	make_input(g, "m", RG_I64, "");
	make_input(g, "x", RG_F32, "1048576");
	make_formal(body, "i");
	make_formal(body, "go");
	make_formal(body, "a");
	make_node(body, "Neg", "a", "b");
	make_node(body, "Neg", "b", "c");
	make_output(body, "go");
	make_output(body, "c");
	make_node_attrs(g, "Loop", "m,,x", "y", 1, ATTRS(graph_attr("body", body)));
	make_output(g, "y");
	m = make_run(g, 1, NULL);
	*(int64_t *)made_input(&m, "m") = 3;
	*(float *)made_input(&m, "x") = 5;
	made_run(&m);
	getrusage(RUSAGE_SELF, &before);
	*(int64_t *)made_input(&m, "m") = 200;
	made_run(&m);
	getrusage(RUSAGE_SELF, &after);
	assert_float_equal(*(const float *)rg_exec_output(m.e, 0).data, 5, 0);
	/* a sanitizer keeps up to 256 MiB of freed memory back */
	assert_true(after.ru_maxrss - before.ru_maxrss < 400 * 1024);
	made_free(&m);
}

/* Of everything one: If, Loop with a scan and a sequence, Scan, sequences, text. */
static struct rg_graph *everything(void)
{
	struct rg_graph *g = make_graph_of(20), *yes = make_body(g), *no = make_body(g), *body = make_body(g);
	struct rg_graph *scan = make_body(g), *each = make_body(g);

	make_input(g, "x", RG_F32, "4");
	make_input(g, "c", RG_BOOL, "");
	make_input(g, "m", RG_I64, "");
	make_input(g, "text", RG_STRING, "2");
	make_floats(g, "k", "4", NULL);
	make_ints(g, "column", 2, INTS(-1, 1));
	make_floats(g, "w", "1x32", NULL);
	make_node(g, "Add", "x,k", "planned");
	make_computed(g, "x", "x2");
	make_node(g, "NonZero", "x2", "at");
	make_node(g, "Gather", "x,at", "picked");
	make_node(g, "Reshape", "picked,column", "rows");
	make_node(g, "MatMul", "rows,w", "product");
	make_output(yes, "planned");
	make_output(yes, "product");
	make_node(no, "Neg", "k", "n");
	make_output(no, "n");
	make_output(no, "picked");
	make_node_attrs(g, "If", "c", "y,z", 2, ATTRS(graph_attr("then_branch", yes), graph_attr("else_branch", no)));
	make_formal(body, "i");
	make_formal(body, "go");
	make_formal(body, "a");
	make_formal(body, "list");
	make_node(body, "Add", "a,planned", "b");
	make_node(body, "SequenceInsert", "list,b", "longer");
	make_output(body, "go");
	make_output(body, "b");
	make_output(body, "longer");
	make_output(body, "b");
	make_node(g, "SequenceConstruct", "x,x", "begin");
	make_node_attrs(g, "Loop", "m,,x,begin", "u,all,stacked", 1, ATTRS(graph_attr("body", body)));
	make_formal(scan, "s");
	make_formal(scan, "e");
	make_node(scan, "Add", "s,e", "t");
	make_output(scan, "t");
	make_output(scan, "s");
	make_node_attrs(g, "Scan", "x,stacked", "v,sums", 2, ATTRS(graph_attr("body", scan),
			int_attr("num_scan_inputs", 1)));
	make_formal(each, "e");
	make_node(each, "Neg", "e", "n");
	make_output(each, "n");
	make_node_attrs(g, "SequenceMap", "all", "negative", 1, ATTRS(graph_attr("body", each)));
	make_node_attrs(g, "ConcatFromSequence", "negative", "joined", 1, ATTRS(int_attr("axis", 0)));
	make_node(g, "SplitToSequence", "joined", "pieces");
	make_node(g, "Optional", "pieces", "maybe");
	make_computed(g, "text", "text2");
	make_node(g, "StringConcat", "text,text2", "long");
	make_node_attrs(g, "StringSplit", "long", "words,count", 0, NULL);
	for (const char *const *o = (const char *const[]){ "y", "z", "u", "v", "sums", "joined", "maybe", "words", NULL };
	     *o; o++)
		make_output(g, *o);
	return g;
}

static int run_everything(const struct rg_plan *p, struct rg_error *err)
{
	struct rg_exec *e;
	int rc = rg_exec_new(p, NULL, &e, err);

	for (int round = 0; round < 2 && !rc; round++) {
		((const char **)rg_exec_input(e, 3).data)[0] = "a b";
		memcpy(rg_exec_input(e, 0).data, FLOATS(1, (float)round, 3, 4), 16);
		*(uint8_t *)rg_exec_input(e, 1).data = round == 0;
		*(int64_t *)rg_exec_input(e, 2).data = 2;
		rc = rg_exec_run(e, err);
	}
	if (!rc)
		check_floats(rg_exec_output(e, 2), "4", FLOATS(3, 5, 13, 18));
	if (rc != 0 || rg_exec_output_item(e, 6)->n != 16)
		rc = rc ? rc : -1;
	rg_exec_free(e);
	return rc;
}

static void test_failing_allocations(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = everything();
	struct rg_plan *p;
	uint64_t n = 0;

	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(run_everything(p, &err), 0);
	for (;;) {
		int rc;

		rg_error_clear(&err);
		rg_alloc_fail_at(++n);
		rc = run_everything(p, &err);
		if (!rg_alloc_did_fail())
			break;
		rg_alloc_fail_at(0);
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(err.code, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_true(n > 200);
	assert_int_equal(run_everything(p, &err), 0);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- stopping ---- */

struct patience {
	int left;
};

static bool is_over(void *ctx)
{
	return ((struct patience *)ctx)->left-- <= 0;
}

/* A Loop without an end, and one whose body has no nodes. */
static void test_stop(void **state)
{
	for (int empty = 0; empty < 2; empty++) {
		struct rg_graph *g = make_graph(), *body = make_body(g);
		struct patience patience = { 1000 };
		const struct rg_exec_options opt = { .stop = is_over, .stop_ctx = &patience };
		struct rg_error err;
		struct made m;

		make_input(g, "m", RG_I64, "");
		make_input(g, "x", RG_F32, "1");
		make_formal(body, "i");
		make_formal(body, "go");
		make_formal(body, "a");
		if (!empty)
			make_node(body, "Neg", "a", "b");
		make_output(body, "go");
		make_output(body, empty ? "a" : "b");
		make_node_attrs(g, "Loop", "m,,x", "y", 1, ATTRS(graph_attr("body", body)));
		make_output(g, "y");
		m = make_run(g, 1, &opt);
		*(int64_t *)made_input(&m, "m") = INT64_MAX;
		made_fails(&m, "interrupted", &err);
		assert_int_equal(err.code, RG_EINTERRUPTED);
		assert_int_equal(patience.left, -1);
		assert_non_null(strstr(err.where, "iteration"));
		patience.left = 1000; /* and once more, to the end */
		*(int64_t *)made_input(&m, "m") = 4;
		*(float *)made_input(&m, "x") = 2;
		made_run(&m);
		check_floats(rg_exec_output(m.e, 0), "1", FLOATS(2));
		patience.left = 0; /* before the first step */
		made_fails(&m, "interrupted", &err);
		made_free(&m);
	}
}

/* Planned steps are asked for, too. */
static void test_stop_planned(void **state)
{
	struct rg_graph *g = make_graph();
	struct patience patience = { 1 };
	const struct rg_exec_options opt = { .stop = is_over, .stop_ctx = &patience };
	struct rg_error err;
	struct made m;

	make_input(g, "x", RG_F32, "1");
	make_node(g, "Neg", "x", "a");
	make_node(g, "Relu", "a", "y");
	make_output(g, "y");
	m = make_run(g, 1, &opt);
	made_fails(&m, "interrupted", &err);
	patience.left = 2;
	made_run(&m);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changing_shapes),
		cmocka_unit_test(test_weights_that_change),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_failing_allocations),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_planned),
	};

	return cmocka_run_group_tests_name("dynamic", tests, NULL, NULL);
}
