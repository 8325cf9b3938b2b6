/*
 * The executor: hand-computed graphs, random graphs against an interpreter
 * that gives every value memory of its own, and the promises of the steady
 * state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "exec/exec.h"
#include "tests/compile/make-graph.h"

static struct rg_exec *make_exec(const struct rg_plan *p)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_exec *e;

	if (rg_exec_new(p, NULL, &e, &err))
		fail_msg("%s: %s", err.where, err.message);
	return e;
}

static void run(struct rg_exec *e)
{
	struct rg_error err = RG_ERROR_INIT;

	if (rg_exec_run(e, &err))
		fail_msg("%s: %s", err.where, err.message);
}

/* y = relu(x * w + b), z = -y + x0, by hand. */
static void test_by_hand(void **state)
{
	const float w[] = { 1, 2, 3, 4, 5, 6 }, b[] = { -10, 0, 10 };
	struct rg_graph *g = make_graph();
	struct rg_tensor x, y, s;
	struct rg_plan *p;
	struct rg_exec *e;
	const float *out;

	make_input(g, "x", RG_F32, "2x2");
	make_floats(g, "w", "2x3", w);
	make_floats(g, "b", "3", b);
	make_node(g, "MatMul", "x,w", "xw");
	make_node(g, "Add", "xw,b", "xwb");
	make_node(g, "Relu", "xwb", "y");
	make_node(g, "Neg", "y", "z");
	make_output(g, "z");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	e = make_exec(p);
	x = rg_exec_input(e, 0);
	assert_int_equal(x.dtype, RG_F32);
	assert_int_equal(x.shape.rank, 2);
	assert_int_equal((uintptr_t)x.data % 64, 0);
	memcpy(x.data, (const float[]){ 1, 0, -1, 2 }, 4 * sizeof(float));
	run(e);
	/* x*w = [1 2 3; 7 8 9], plus b = [-9 2 13; -3 8 19] */
	y = rg_exec_output(e, 1);
	out = y.data;
	assert_memory_equal(out, ((const float[]){ 0, 2, 13, 0, 8, 19 }), 6 * sizeof(float));
	s = rg_exec_output(e, 0);
	out = s.data;
	assert_float_equal(out[5], -19, 0);
	assert_ptr_equal(rg_exec_value(e, rg_graph_find_value(g, "y")).data, y.data);
	/* again, with other data: nothing is left over */
	memcpy(x.data, (const float[]){ 0, 0, 0, 0 }, 4 * sizeof(float));
	run(e);
	assert_memory_equal(y.data, ((const float[]){ 0, 0, 10, 0, 0, 10 }), 6 * sizeof(float));
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* Outputs that no step makes: a constant, and an input as it is. */
static void test_outputs_without_steps(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	struct rg_exec *e;

	make_input(g, "x", RG_F32, "2");
	make_input(g, "empty", RG_F32, "0");
	make_floats(g, "c", "2", NULL);
	make_node(g, "Neg", "c", "n");
	make_node(g, "Relu", "empty", "none");
	make_output(g, "n");
	make_output(g, "x");
	make_output(g, "none");
	make_finish(g);
	p = make_plan(g, 1);
	e = make_exec(p);
	memcpy(rg_exec_input(e, 0).data, (const float[]){ 5, 6 }, 8);
	run(e);
	assert_float_equal(((float *)rg_exec_output(e, 0).data)[1], -1, 0);
	assert_float_equal(((float *)rg_exec_output(e, 1).data)[1], 6, 0);
	assert_int_equal(rg_exec_output(e, 2).shape.dim[0], 0);
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- random graphs against an interpreter ---- */

#define ROOM 1000 /* the largest random shape */

static void interpret(const struct rg_graph *g, float (*v)[ROOM])
{
	int i, k;

	for (i = 0; i < g->n_values; i++)
		if (g->values[i].origin == RG_CONST_INITIALIZER && g->values[i].dtype == RG_F32)
			memcpy(v[i], g->values[i].data,
			       (size_t)rg_shape_count(&g->values[i].shape) * sizeof(float));
	for (i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];
		const float *a = v[n->in[0]], *b = n->n_in > 1 ? v[n->in[1]] : NULL;
		int64_t count = rg_shape_count(&g->values[n->out[0]].shape);
		float *out = v[n->out[0]];

		for (k = 0; k < count; k++) {
			if (!strcmp(n->op_type, "Relu"))
				out[k] = a[k] > 0 ? a[k] : 0;
			else if (!strcmp(n->op_type, "Neg"))
				out[k] = -a[k];
			else if (!strcmp(n->op_type, "Abs"))
				out[k] = fabsf(a[k]);
			else if (!strcmp(n->op_type, "Add"))
				out[k] = a[k] + b[k];
			else if (!strcmp(n->op_type, "Sub"))
				out[k] = a[k] - b[k];
			else if (!strcmp(n->op_type, "Max"))
				out[k] = a[k] > b[k] ? a[k] : b[k];
			else
				out[k] = a[k]; /* Reshape, Identity */
		}
	}
}

static void test_random_graphs(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < 60; seed++) {
		struct rg_graph *g = make_random(seed, 10 + (int)(seed % 60));
		struct rg_plan *p = make_plan(g, 1 + (int)(seed % 3));
		struct rg_exec *e = make_exec(p);
		float (*v)[ROOM] = calloc((size_t)g->n_values, sizeof(*v));
		int round, i;
		int64_t k;

		assert_non_null(v);
		for (round = 0; round < 3; round++) {
			for (i = 0; i < g->n_inputs; i++) {
				struct rg_tensor in = rg_exec_input(e, i);
				int64_t n = rg_shape_count(&in.shape);

				rg_rng_fill_f32(rg_rng_stream(seed * 10 + (uint64_t)round,
							      g->values[g->inputs[i]].name),
						-1, 1, v[g->inputs[i]], (size_t)n);
				memcpy(in.data, v[g->inputs[i]], (size_t)n * sizeof(float));
			}
			interpret(g, v);
			run(e);
			for (i = 0; i < g->n_outputs; i++) {
				struct rg_tensor out = rg_exec_output(e, i);
				const float *got = out.data;

				for (k = 0; k < rg_shape_count(&out.shape); k++)
					if (got[k] != v[g->outputs[i]][k])
						fail_msg("seed %d, output %d, element %d: %g, expected %g",
							 (int)seed, i,
							 (int)k, (double)got[k], (double)v[g->outputs[i]][k]);
			}
		}
		free(v);
		rg_exec_free(e);
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

/* ---- several lanes ---- */

static struct rg_graph *layers(void)
{
	struct rg_graph *g = make_graph();
	float *w = malloc(96 * 96 * sizeof(float));

	assert_non_null(w);
	rg_rng_fill_f32(rg_rng_stream(1, "w"), -0.1f, 0.1f, w, 96 * 96);
	make_input(g, "x", RG_F32, "64x96");
	make_floats(g, "w", "96x96", w);
	make_node(g, "MatMul", "x,w", "a");
	make_node(g, "Relu", "a", "b");
	make_node(g, "MatMul", "b,w", "c");
	make_node(g, "Softmax", "c", "d");
	make_output(g, "d");
	make_finish(g);
	free(w);
	return g;
}

static void test_lanes_agree(void **state)
{
	float first[64 * 96];
	int lanes;

	for (lanes = 1; lanes <= 3; lanes++) {
		struct rg_graph *g = layers();
		struct rg_plan *p = make_plan(g, lanes);
		struct rg_exec *e = make_exec(p);
		const float *out;
		int i;

		rg_rng_fill_f32(rg_rng_stream(1, "x"), -1, 1, rg_exec_input(e, 0).data, 64 * 96);
		for (i = 0; i < 20; i++)
			run(e);
		out = rg_exec_output(e, 0).data;
		if (lanes == 1)
			memcpy(first, out, sizeof(first));
		for (i = 0; i < 64 * 96; i++)
			assert_float_equal(out[i], first[i], 1e-6);
		rg_exec_free(e);
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

static void test_steady_state_does_not_allocate(void **state)
{
	struct rg_graph *g = layers();
	struct rg_plan *p = make_plan(g, 2);
	struct rg_exec *e = make_exec(p);
	uint64_t before;
	int i;

	run(e);
	before = rg_alloc_count();
	for (i = 0; i < 1000; i++)
		run(e);
	assert_int_equal(rg_alloc_count(), before);
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- the hook ---- */

#define MAX_SPANS 256

struct spans {
	struct { int lane, step; uint64_t start, end; } s[MAX_SPANS];
	atomic_int n;
};

static void on_span(void *ctx, int lane, int step, uint64_t start_ns, uint64_t end_ns)
{
	struct spans *t = ctx;
	int i = atomic_fetch_add(&t->n, 1);

	if (i >= MAX_SPANS)
		return;
	t->s[i].lane = lane;
	t->s[i].step = step;
	t->s[i].start = start_ns;
	t->s[i].end = end_ns;
}

static void test_hook(void **state)
{
	static struct spans t;
	struct rg_exec_hook hook = { on_span, &t };
	struct rg_graph *g = layers();
	struct rg_plan *p = make_plan(g, 2);
	struct rg_exec *e = make_exec(p);
	uint64_t before, after, last = 0;
	int i, k, next = 0;

	rg_exec_set_hook(e, &hook);
	before = rg_clock_now_ns();
	run(e);
	after = rg_clock_now_ns();
	assert_true(t.n >= p->n_steps && t.n <= MAX_SPANS);
	for (i = 0; i < t.n; i++) {
		assert_true(t.s[i].start >= before && t.s[i].end <= after && t.s[i].start <= t.s[i].end);
		assert_true(t.s[i].lane >= -1 && t.s[i].lane < 2);
		if (t.s[i].lane >= 0)
			continue;
		/* whole steps: in order, one after the other, each around its shares */
		assert_int_equal(t.s[i].step, next++);
		assert_true(t.s[i].start >= last);
		last = t.s[i].end;
		for (k = 0; k < t.n; k++)
			if (t.s[k].step == t.s[i].step)
				assert_true(t.s[k].start >= t.s[i].start && t.s[k].end <= t.s[i].end);
	}
	assert_int_equal(next, p->n_steps);
	rg_exec_set_hook(e, NULL);
	t.n = 0;
	run(e);
	assert_int_equal(t.n, 0);
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- what can go wrong ---- */

static const struct rg_tensor *give_shape(void *ctx, const char *name)
{
	static int64_t shape[] = { 8, 8 };
	static struct rg_tensor t = { RG_I64, { 1, { 2 } }, shape };

	return &t;
}

static void test_specialised_input(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan_options opt = { .lanes = 1, .input_value = give_shape };
	struct rg_plan *p;
	struct rg_exec *e;

	make_input(g, "x", RG_F32, "64");
	make_input(g, "shape", RG_I64, "2");
	make_node(g, "Reshape", "x,shape", "a");
	make_node(g, "Relu", "a", "y");
	make_output(g, "y");
	make_finish(g);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	e = make_exec(p);
	assert_non_null(rg_exec_input(e, 0).data);
	assert_null(rg_exec_input(e, 1).data);
	assert_int_equal(rg_exec_input(e, 1).dtype, RG_I64);
	run(e);
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* A kernel's error comes back with the node's name, and the next run works. */
static void test_error_names_node(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	struct rg_exec *e;
	int64_t *index;

	make_input(g, "x", RG_F32, "4");
	make_input(g, "i", RG_I64, "1");
	make_node(g, "Gather", "x,i", "y");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	e = make_exec(p);
	index = rg_exec_input(e, 1).data;
	*index = 1000;
	assert_true(rg_exec_run(e, &err) < 0);
	assert_non_null(strstr(err.where, "n:y"));
	*index = 3;
	((float *)rg_exec_input(e, 0).data)[3] = 7;
	run(e);
	assert_float_equal(*(float *)rg_exec_output(e, 0).data, 7, 0);
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_too_large(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	struct rg_exec *e;

	make_input(g, "x", RG_F32, "1000000x1000000x100");
	make_node(g, "Relu", "x", "y");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(rg_exec_new(p, NULL, &e, &err), -ENOMEM);
	assert_null(e);
	assert_true(err.hint[0]);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_bad_pinning(void **state)
{
	const int cpus[] = { 0 };
	struct rg_exec_options opt = { .pin = true, .n_cpus = 1, .cpus = cpus };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = layers();
	struct rg_plan *p = make_plan(g, 2);
	struct rg_exec *e;

	assert_int_equal(rg_exec_new(p, &opt, &e, &err), -EINVAL);
	assert_null(e);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_no_memory(void **state)
{
	struct rg_graph *g = layers();
	struct rg_plan *p = make_plan(g, 2);
	int fails, rc = -1;

	for (fails = 1; fails < 100; fails++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_exec *e;
		bool failed;

		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_exec_new(p, NULL, &e, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		if (!failed) {
			rg_exec_free(e);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_null(e);
	}
	assert_int_equal(rc, 0);
	assert_true(fails > 5);
	rg_exec_free(NULL);
	rg_plan_free(p);
	rg_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_outputs_without_steps),
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_lanes_agree),
		cmocka_unit_test(test_steady_state_does_not_allocate),
		cmocka_unit_test(test_hook),
		cmocka_unit_test(test_specialised_input),
		cmocka_unit_test(test_error_names_node),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_bad_pinning),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
