/* ridge bench below the command line: shapes, the graphs that they mean, and what a measurement says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/window.h"
#include "session/bench-text.h"
#include "session/bench.h"

static struct rg_error err;

static void add(struct rg_bench_set *s, enum rg_bench_kind kind, const char *text)
{
	if (rg_bench_add(s, kind, text, &err))
		fail_msg("%s: %s", text, err.message);
}

/* A text, and the one that it is told as. */
static void texts_come_back(void **state)
{
	static const struct { enum rg_bench_kind kind; const char *text, *name;
	} v[] = {
	    {RG_BENCH_GEMM, "3x4x5,b=var", "m=3,k=4,n=5,b=var"},
	    {RG_BENCH_GEMM, "k=4,n=5,b=const,m=3", "m=3,k=4,n=5,b=const"},
	    {RG_BENCH_GEMM, "3x4x5,tb=1,ta=1,bias=1,b=const", "m=3,k=4,n=5,ta=1,tb=1,bias=1,b=const"},
	    {RG_BENCH_GEMM, "3x4x5,batch=2,ta=0,b=var", "m=3,k=4,n=5,batch=2,b=var"},
	    {RG_BENCH_CONV, "c=3,h=7,w=9,m=8,k=3", "c=3,h=7,w=9,m=8,k=3"},
	    {RG_BENCH_CONV, "c=3,h=7,w=9,m=8,k=3x3,pad=1x1", "c=3,h=7,w=9,m=8,k=3"},
	    {RG_BENCH_CONV, "k=5x1,stride=2x1,dilation=1x2,c=4,group=2,m=6,w=9,h=7,n=3,bias=1,pad=0x1x2x3",
	     "c=4,h=7,w=9,m=6,k=5x1,stride=2x1,pad=0x1x2x3,dilation=1x2,group=2,n=3,bias=1"},
	    {RG_BENCH_CONV, "c=3,h=7,w=9,m=8,k=3,pad=0", "c=3,h=7,w=9,m=8,k=3,pad=0"},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		struct rg_bench_set s = { 0 };

		add(&s, v[i].kind, v[i].text);
		assert_int_equal(s.n, 1);
		assert_string_equal(s.v[0].name, v[i].name);
		add(&s, v[i].kind, s.v[0].name); /* it means itself */
		assert_int_equal(s.n, 1);
		assert_int_equal(s.v[0].times, 2);
		rg_bench_set_free(&s);
	}
}

static void graphs_are_of_that_shape(void **state)
{
	struct rg_bench_set s = { 0 };
	const struct rg_graph *g;
	struct rg_window w;

	add(&s, RG_BENCH_GEMM, "3x4x5");
	assert_int_equal(s.n, 2);
	for (size_t i = 0; i < 2; i++) {
		g = s.v[i].graph;
		assert_int_equal(g->n_nodes, 1);
		assert_string_equal(g->nodes[0].op_type, "MatMul");
		assert_int_equal(g->n_inputs, 2 - i);
		assert_int_equal(g->values[g->nodes[0].in[1]].origin,
				 i ? RG_CONST_INITIALIZER : RG_CONST_NONE);
	}
	add(&s, RG_BENCH_GEMM, "3x4x5,ta=1,tb=1,b=const");
	g = s.v[2].graph;
	assert_string_equal(g->nodes[0].op_type, "Gemm");
	assert_int_equal(g->values[g->nodes[0].in[0]].declared[0].value, 4);
	assert_int_equal(g->values[g->nodes[0].in[1]].shape.dim[0], 5);
	add(&s, RG_BENCH_CONV, "c=4,h=7,w=9,m=6,k=3x1,stride=2,pad=1x0x2x0,group=2,n=3,bias=1");
	g = s.v[3].graph;
	assert_int_equal(rg_window_conv(&g->nodes[0], &(struct rg_shape){ 4, { 3, 4, 7, 9 } },
					&g->values[g->nodes[0].in[1]].shape, &w, &err), 0);
	assert_int_equal(w.c_out, 6);
	assert_int_equal(w.group, 2);
	assert_int_equal(w.out[0], (7 + 3 - 3) / 2 + 1);
	assert_int_equal(w.out[1], (9 - 1) / 2 + 1);
	assert_int_equal(g->nodes[0].n_in, 3);
	rg_bench_set_free(&s);
}

static void refused(enum rg_bench_kind kind, const char *text)
{
	struct rg_bench_set s = { 0 };

	if (rg_bench_add(&s, kind, text, &err) != RG_EUSAGE)
		fail_msg("'%s' is taken", text);
	assert_true(err.hint[0]);
	rg_bench_set_free(&s);
}

static void nonsense_is_refused(void **state)
{
	static const char *const gemms[] = {"",
					    ",",
					    "x",
					    "1x2",
					    "1x2x3x4",
					    "1x2x-3",
					    "1x2x3,b",
					    "1x2x3,b=",
					    "1x2x3,b=1",
					    "1x2x3,b=constant",
					    "1x2x3,ta=2",
					    "m=1,k=2",
					    "m=1,k=2,n=3,m=1",
					    "1x2x3,m=1",
					    "m=1x1,k=2,n=3",
					    "1x2x3,b=var,b=const",
					    "99999999999999999999x1x1",
					    "16777216x1x16777216",
					    "2x2x2,batch=2,bias=1"};
	static const char *const convs[] = {"c=1,h=1,w=1,m=1",
					    "c=1,h=1,w=1,m=1,k=1,pad=1x1x1",
					    "c=1,h=1,w=1,m=1,k=0",
					    "c=3,h=4,w=4,m=4,k=3,group=3",
					    "c=1,h=2,w=2,m=1,k=3,dilation=2,pad=0",
					    "c=1,h=1,w=1,m=1,k=1,stride=0",
					    "1x2x3"};

	for (size_t i = 0; i < sizeof(gemms) / sizeof(gemms[0]); i++)
		refused(RG_BENCH_GEMM, gemms[i]);
	for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++)
		refused(RG_BENCH_CONV, convs[i]);
}

static int count(const struct rg_bench_set *s)
{
	int n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->v[i].times;
	return n;
}

/* ResNet-50 has 53 convolutions, MobileNetV2 52; BERT's layers are all alike. */
static void models_give_each_shape_once(void **state)
{
	struct rg_bench_set s = { 0 };
	struct rg_session_options o;
	int left_out;

	assert_int_equal(rg_bench_add_default(&s, RG_BENCH_CONV, &err), 0);
	assert_int_equal(count(&s), 53 + 52);
	assert_true(s.n > 30 && s.n < 60);
	assert_string_equal(s.v[0].name, "c=3,h=224,w=224,m=64,k=7,stride=2");
	rg_bench_set_free(&s);
	assert_int_equal(rg_bench_add_default(&s, RG_BENCH_GEMM, &err), 0);
	assert_int_equal(s.n, 12);
	rg_bench_set_free(&s);
	rg_session_defaults(&o);
	o.model = "builtin:mlp";
	assert_int_equal(rg_bench_add_model(&s, RG_BENCH_GEMM, &o, &left_out, &err), 0);
	assert_int_equal(left_out, 0);
	assert_true(s.n >= 2);
	assert_int_equal(rg_bench_add_model(&s, RG_BENCH_CONV, &o, &left_out, &err), 0);
	rg_bench_set_free(&s);
}

static void a_report_adds_up(void **state)
{
	struct rg_session_options so;
	const struct rg_bench_options o = { .session = &so, .rounds = 7, .quick = true };
	struct rg_bench_report *r;
	struct rg_bench_set s = { 0 };
	bool chosen = false;

	rg_session_defaults(&so);
	so.threads = 1;
	add(&s, RG_BENCH_CONV, "c=8,h=9,w=9,m=8,k=3");
	assert_int_equal(rg_bench_measure(&s, &o, &r, &err), 0);
	assert_int_equal(r->threads, 1);
	assert_true(r->n_results >= 2); /* the portable direct kernel, and what this machine has */
	for (int i = 0; i < r->n_results; i++) {
		const struct rg_bench_result *v = &r->results[i];

		assert_ptr_equal(v->c, &s.v[0]);
		assert_string_equal(v->op_type, "Conv");
		assert_string_not_equal(v->kernel, "ref");
		assert_true(v->time_ns.low > 0 && v->time_ns.low <= v->time_ns.value &&
			    v->time_ns.value <= v->time_ns.high);
		assert_true(v->best_ns <= v->time_ns.value);
		assert_true(v->flops == 2.0 * 9 * 9 * 8 * 8 * 9);
		assert_true(v->bytes == 4.0 * (2 * 8 * 81 + 8 * 8 * 9));
		assert_true(fabs(v->flop_rate * v->time_ns.value / 1e9 / v->flops - 1) < 1e-9);
		assert_int_equal(v->rounds, 7);
		chosen |= v->chosen;
	}
	assert_true(chosen);
	rg_bench_report_free(r);
	/* A kernel that is left out is neither chosen nor measured; one that is named, is. */
	so.without = (const char *[]){ "openblas" };
	so.n_without = 1;
	assert_int_equal(rg_bench_measure(&s, &o, &r, &err), 0);
	for (int i = 0; i < r->n_results; i++)
		assert_string_not_equal(r->results[i].kernel, "openblas");
	rg_bench_report_free(r);
	so.without = (const char *[]){ "nosuch" };
	assert_int_equal(rg_bench_measure(&s, &o, &r, &err), RG_EUSAGE);
	rg_bench_set_free(&s);
}

/* Every allocation fails once while a set is made: an error, and nothing leaks (the sanitizers look). */
static void memory_runs_out(void **state)
{
	for (uint64_t n = 1; n < 10000; n++) {
		struct rg_bench_set s = { 0 };
		bool failed;
		int rc;

		rg_error_clear(&err);
		rg_alloc_fail_at(n);
		rc = rg_bench_add(&s, RG_BENCH_CONV, "c=2,h=3,w=3,m=2,k=3,bias=1", &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_bench_set_free(&s);
		if (!failed)
			return;
		if (rc != -ENOMEM)
			fail_msg("allocation %d: %s", (int)n, err.message);
	}
	fail_msg("it never came through");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_back),
		cmocka_unit_test(graphs_are_of_that_shape),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(models_give_each_shape_once),
		cmocka_unit_test(a_report_adds_up),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
