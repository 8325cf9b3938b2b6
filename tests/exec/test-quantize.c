/*
 * The rewriting of graphs into eight bits: what is written where, and that the rewritten graph computes the same
 * within what eight bits can.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/sqnr.h"
#include "compile/fold.h"
#include "compile/quantize.h"
#include "exec/exec.h"
#include "sys/cpu.h"
#include "tests/compile/make-graph.h"

static struct rg_error err;
static const struct rg_plan_options fold = { .lanes = 1, .any_value = true };

static void random_floats(struct rg_graph *g, const char *name, const char *shape, int n, float scale)
{
	uint64_t stream = rg_rng_stream(3, name);
	float v[4096];

	assert_true(n <= 4096);
	for (int i = 0; i < n; i++)
		v[i] = rg_rng_uniform(stream, (uint64_t)i, -scale, scale);
	make_floats(g, name, shape, v);
}

/* Convolution, Relu, MaxPool, convolution, Reshape, Gemm; MatMul of two activations beside. */
static struct rg_graph *network(void)
{
	static const int64_t two[] = { 2, 2 }, flat[] = { 2, -1 };
	struct rg_attr pool[] = { { .name = "kernel_shape", .type = RG_ATTR_INTS, .count = 2, .ints = two },
				  { .name = "strides", .type = RG_ATTR_INTS, .count = 2, .ints = two } };
	struct rg_attr trans = { .name = "transB", .type = RG_ATTR_INT, .i = 1 };
	struct rg_graph *g = make_graph();

	err = (struct rg_error)RG_ERROR_INIT;
	make_input(g, "x", RG_F32, "2x3x8x8");
	random_floats(g, "w1", "4x3x3x3", 108, 0.5f);
	random_floats(g, "b1", "4", 4, 0.5f);
	random_floats(g, "w2", "5x4x3x3", 180, 0.5f);
	random_floats(g, "w3", "6x5", 30, 1);
	random_floats(g, "b3", "6", 6, 1);
	make_ints(g, "flat", 2, flat);
	make_node(g, "Conv", "x,w1,b1", "c1");
	make_node(g, "Relu", "c1", "r1");
	make_node_attrs(g, "MaxPool", "r1", "p1", 2, pool);
	make_node(g, "Conv", "p1,w2", "c2");
	make_node(g, "Reshape", "c2,flat", "f");
	make_node_attrs(g, "Gemm", "f,w3,b3", "y", 1, &trans);
	make_node(g, "Sigmoid", "y", "s");
	make_node(g, "Transpose", "s", "t");
	make_node(g, "MatMul", "t,y", "z");
	make_output(g, "y");
	make_output(g, "z");
	make_finish(g);
	if (rg_fold_graph(g, &fold, &err))
		fail_msg("%s: %s", err.where, err.message);
	return g;
}

struct outputs { float y[12], z[36]; };

/* Runs it on a seeded input; ranges of all values, if asked for. */
static void run(struct rg_graph *g, struct outputs *out, struct rg_range *ranges)
{
	struct rg_cpu cpu;
	struct rg_plan_options po = { .lanes = 1, .any_value = true, .keep_inputs = true };
	struct rg_exec_options xo = { 0 };
	struct rg_plan *plan;
	struct rg_exec *e = NULL;
	struct rg_tensor t;
	int n = g->n_values;

	rg_cpu_detect("", &cpu);
	po.isa = cpu.isa;
	/* every value stays where it can be read: it is an output */
	for (int v = 0; ranges && v < n; v++)
		if (!g->values[v].is_output && g->values[v].producer >= 0)
			assert_int_equal(rg_graph_add_output(g, v, &err), 0);
	if (rg_plan_make(g, &po, &plan, &err) || rg_exec_new(plan, &xo, &e, &err))
		fail_msg("%s: %s", err.where, err.message);
	t = rg_exec_input(e, 0);
	rg_rng_fill_f32(rg_rng_stream(7, "x"), -1, 2, t.data, (size_t)rg_shape_count(&t.shape));
	assert_int_equal(rg_exec_run(e, &err), 0);
	memcpy(out->y, rg_exec_output(e, 0).data, sizeof(out->y));
	memcpy(out->z, rg_exec_output(e, 1).data, sizeof(out->z));
	for (int v = 0; ranges && v < n; v++) {
		t = rg_exec_value(e, v);
		ranges[v] = (struct rg_range){ 0, 0 };
		for (int64_t i = 0; t.dtype == RG_F32 && t.data && i < rg_shape_count(&t.shape); i++) {
			double x = (double)((const float *)t.data)[i];

			ranges[v].low = fmin(ranges[v].low, x);
			ranges[v].high = fmax(ranges[v].high, x);
		}
	}
	rg_exec_free(e);
	rg_plan_free(plan);
}

static int count(const struct rg_graph *g, const char *op_type)
{
	int n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		n += strcmp(g->nodes[i].op_type, op_type) == 0;
	return n;
}

static const struct rg_node *maker(const struct rg_graph *g, int value)
{
	assert_true(value >= 0 && g->values[value].producer >= 0);
	return &g->nodes[g->values[value].producer];
}

static const struct rg_node *maker_of(const struct rg_graph *g, const char *name)
{
	return maker(g, rg_graph_find_value(g, name));
}

static float number(const struct rg_graph *g, int value)
{
	assert_non_null(g->values[value].data);
	return *(const float *)g->values[value].data;
}

static double outputs_db(const struct outputs *a, const struct outputs *b)
{
	struct rg_sqnr y = { 0 }, z = { 0 };

	rg_sqnr_add(&y, a->y, b->y, 12);
	rg_sqnr_add(&z, a->z, b->z, 36);
	return fmin(rg_sqnr_db(&y), rg_sqnr_db(&z));
}

static struct rg_graph *quantised(const struct rg_quantize_options *o, struct rg_range *ranges, bool *on, int n_on)
{
	struct rg_graph *g = network();
	struct rg_quantize_sites s;

	assert_int_equal(rg_quantize_find(g, o, &s, &err), 0);
	assert_int_equal(s.n, n_on);
	if (o->dynamic ? rg_quantize_dynamic(g, o, &s, on, &err) : rg_quantize_static(g, o, &s, on, ranges, &err))
		fail_msg("%s: %s", err.where, err.message);
	rg_quantize_sites_free(&s);
	return g;
}

static void find_ranges(struct outputs *exact, struct rg_range *ranges)
{
	struct rg_graph *g = network();

	assert_true(g->n_values < 64);
	run(g, exact, ranges);
	rg_graph_free(g);
}

static void static_form_is_what_runtimes_know(void **state)
{
	struct rg_quantize_options o = { 0 };
	bool on[4] = { true, true, true, true };
	struct rg_range ranges[64];
	struct outputs exact, got;
	struct rg_graph *g;
	const struct rg_node *conv, *dq, *q;

	find_ranges(&exact, ranges);
	g = quantised(&o, ranges, on, 4);
	/* x, Relu's output, the pool's, conv 2's, the reshaped one, both inputs of MatMul */
	assert_int_equal(count(g, "QuantizeLinear"), 7);
	/* the same, three weights, and the two biases */
	assert_int_equal(count(g, "DequantizeLinear"), 7 + 3 + 2);
	/* the pool hands on what the Relu's quantisation made, with the same numbers */
	conv = maker_of(g, "c2:exact");
	dq = maker(g, conv->in[0]);
	assert_string_equal(dq->op_type, "DequantizeLinear");
	q = maker(g, dq->in[0]);
	assert_string_equal(q->op_type, "QuantizeLinear");
	assert_string_equal(maker(g, q->in[0])->op_type, "MaxPool");
	assert_true(number(g, q->in[1]) == number(g, maker_of(g, "r1")->in[1]));
	assert_int_equal(g->values[q->in[2]].dtype, RG_U8);
	/* no rounding between the convolution and its Relu */
	assert_string_equal(maker_of(g, "c1")->op_type, "Conv");
	assert_string_equal(maker_of(g, "r1:exact")->op_type, "Relu");
	/* a bias in steps of both scales, exactly */
	conv = maker_of(g, "c1");
	for (int c = 0; c < 4; c++) {
		const struct rg_node *w = maker(g, conv->in[1]), *b = maker(g, conv->in[2]);
		const float *sw = g->values[w->in[1]].data, *sb = g->values[b->in[1]].data;
		float sx = number(g, maker(g, conv->in[0])->in[1]);

		assert_int_equal(rg_node_int(w, "axis", -1), 0);
		assert_int_equal(rg_node_int(b, "axis", -1), 0);
		assert_int_equal(g->values[b->in[0]].dtype, RG_I32);
		assert_true(sb[c] == sw[c] * sx);
	}
	/* a Gemm that is stored transposed has its channels in rows */
	assert_int_equal(rg_node_int(maker(g, maker_of(g, "y")->in[1]), "axis", -1), 0);
	run(g, &got, NULL);
	assert_true(outputs_db(&exact, &got) > 30);
	assert_true(outputs_db(&exact, &got) < 60); /* it is quantised */
	rg_graph_free(g);
}

static void one_operator_alone_leaves_the_others(void **state)
{
	struct rg_quantize_options o = { 0 };
	struct rg_range ranges[64];
	struct outputs exact, got;
	double all, sum = 0;
	bool every[4] = { true, true, true, true };
	struct rg_graph *g;

	find_ranges(&exact, ranges);
	for (int i = 0; i < 4; i++) {
		bool on[4] = { false };

		on[i] = true;
		g = quantised(&o, ranges, on, 4);
		assert_int_equal(count(g, "QuantizeLinear"), i == 2 ? 1 : 2);
		run(g, &got, NULL);
		sum += pow(10, -outputs_db(&exact, &got) / 10);
		rg_graph_free(g);
	}
	g = quantised(&o, ranges, every, 4);
	run(g, &got, NULL);
	all = pow(10, -outputs_db(&exact, &got) / 10);
	/* noises of small operators are as good as independent: powers add up, within what correlates */
	assert_true(all < 8 * sum && all > sum / 8);
	rg_graph_free(g);
}

static void options_change_what_is_written(void **state)
{
	struct rg_range ranges[64];
	struct outputs exact, got, fine;
	bool on[4] = { true, true, true, true };
	struct rg_quantize_options o = { .per_tensor = true, .symmetric = true };
	struct rg_graph *g;
	const struct rg_node *conv, *q;

	find_ranges(&exact, ranges);
	g = quantised(&o, ranges, on, 4);
	conv = maker_of(g, "c1");
	assert_int_equal(g->values[maker(g, conv->in[1])->in[1]].shape.rank, 0);
	q = maker(g, maker(g, conv->in[0])->in[0]);
	assert_int_equal(g->values[q->in[2]].dtype, RG_I8);
	assert_int_equal(*(const int8_t *)g->values[q->in[2]].data, 0);
	run(g, &got, NULL);
	assert_true(outputs_db(&exact, &got) > 25);
	rg_graph_free(g);
	o = (struct rg_quantize_options){ 0 };
	g = quantised(&o, ranges, on, 4);
	run(g, &fine, NULL);
	rg_graph_free(g);
	assert_memory_not_equal(&got, &fine, sizeof(got));
}

static void other_types_are_quantised_when_asked(void **state)
{
	const char *also[] = { "Sigmoid" };
	struct rg_quantize_options o = { .n_also = 1, .also = also };
	struct rg_range ranges[64];
	struct outputs exact, got;
	bool on[5] = { true, true, true, true, true };
	struct rg_graph *g;

	find_ranges(&exact, ranges);
	g = quantised(&o, ranges, on, 5);
	assert_string_equal(maker_of(g, "s:exact")->op_type, "Sigmoid");
	run(g, &got, NULL);
	assert_true(outputs_db(&exact, &got) > 25);
	rg_graph_free(g);
	assert_true(rg_quantize_may("Add"));
	assert_false(rg_quantize_may("Softmax"));
}

static void dynamic_form_is_what_runtimes_know(void **state)
{
	struct rg_quantize_options o = { .dynamic = true };
	bool on[1] = { true };
	struct rg_range ranges[64];
	struct outputs exact, got;
	struct rg_graph *g;
	const struct rg_node *add;

	find_ranges(&exact, ranges);
	g = quantised(&o, NULL, on, 1);
	assert_int_equal(count(g, "MatMulInteger"), 1);
	assert_int_equal(count(g, "DynamicQuantizeLinear"), 1);
	assert_int_equal(count(g, "Gemm"), 0);
	add = maker_of(g, "y");
	assert_string_equal(add->op_type, "Add");
	assert_string_equal(maker(g, add->in[0])->op_type, "Mul");
	run(g, &got, NULL);
	assert_true(outputs_db(&exact, &got) > 35 && outputs_db(&exact, &got) < 70);
	rg_graph_free(g);
}

static void a_weight_that_two_read_is_there_once(void **state)
{
	struct rg_quantize_options o = { 0 };
	struct rg_range ranges[64] = { { 0 } };
	bool on[2] = { true, true };
	struct rg_quantize_sites s;
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "5x4");
	make_floats(g, "w", "4x4", NULL);
	make_node(g, "MatMul", "x,w", "a");
	make_node(g, "MatMul", "a,w", "y");
	make_output(g, "y");
	make_finish(g);
	for (int v = 0; v < g->n_values; v++)
		ranges[v] = (struct rg_range){ -1, 1 };
	assert_int_equal(rg_fold_graph(g, &fold, &err), 0);
	assert_int_equal(rg_quantize_find(g, &o, &s, &err), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(rg_quantize_static(g, &o, &s, on, ranges, &err), 0);
	assert_int_equal(count(g, "DequantizeLinear"), 3);
	assert_int_equal(maker_of(g, "a")->in[1], maker_of(g, "y")->in[1]);
	rg_quantize_sites_free(&s);
	rg_graph_free(g);
}

/* A channel of zeros with a large bias: the scale is widened, so that 32 bits hold it, and no further. */
static void a_bias_fits_32_bits(void **state)
{
	static const float w[] = { 1e-7f, 0, 1, 1 }, b[] = { 1000, 3, 0.5f, 0 };
	struct rg_graph *g = make_graph();
	struct rg_quantize_options o = { 0 };
	struct rg_quantize_sites s;
	struct rg_quantize_weight q;
	const int32_t *bias;
	const float *scale;

	make_input(g, "x", RG_F32, "5x1");
	make_floats(g, "w", "1x4", w);
	make_floats(g, "b", "4", b);
	make_node(g, "Gemm", "x,w,b", "y");
	make_output(g, "y");
	make_finish(g);
	assert_int_equal(rg_fold_graph(g, &fold, &err), 0);
	assert_int_equal(rg_quantize_find(g, &o, &s, &err), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(rg_quantize_make_weight(g, &s.v[0], 0.01f, false, NULL, &q, &err), 0);
	bias = g->values[q.bias].data;
	scale = g->values[q.bias_scale].data;
	for (int c = 0; c < 4; c++) {
		assert_true((double)abs(bias[c]) + 255.0 * 127 <= 2147483647.0);
		assert_true(fabs((double)bias[c] * (double)scale[c] - (double)b[c]) <= (double)scale[c] + 1e-6 * (double)b[c]);
	}
	rg_quantize_sites_free(&s);
	rg_graph_free(g);
}

static void what_cannot_be_quantised_says_why(void **state)
{
	struct rg_quantize_options o = { 0 };
	struct rg_quantize_sites s;
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "4x4");
	make_input(g, "d", RG_F64, "4x4");
	make_floats(g, "w", "4x4", NULL);
	make_node(g, "MatMul", "w,x", "a");
	make_node(g, "MatMul", "d,d", "b");
	make_node(g, "MatMul", "x,w", "c");
	make_node(g, "MatMul", "x,x", "nobody-reads-this");
	make_output(g, "a");
	make_output(g, "b");
	make_output(g, "c");
	make_finish(g);
	assert_int_equal(rg_fold_graph(g, &fold, &err), 0);
	assert_int_equal(rg_quantize_find(g, &o, &s, &err), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.n_left, 2);
	assert_string_equal(s.left[0].why, "the constant stands on the left");
	assert_string_equal(s.left[1].why, "its input is not float32");
	rg_quantize_sites_free(&s);
	rg_graph_free(g);
}

static void any_allocation_may_fail(void **state)
{
	struct rg_range ranges[64];
	struct outputs exact;
	bool on[4] = { true, true, true, true };

	find_ranges(&exact, ranges);
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		struct rg_quantize_options o = { .dynamic = dynamic };

		for (uint64_t n = 1;; n++) {
			struct rg_graph *g = network();
			struct rg_quantize_sites s = { 0 };
			int rc;

			rg_alloc_fail_at(n);
			rc = rg_quantize_find(g, &o, &s, &err);
			if (!rc)
				rc = dynamic ? rg_quantize_dynamic(g, &o, &s, on, &err) :
					       rg_quantize_static(g, &o, &s, on, ranges, &err);
			rg_quantize_sites_free(&s);
			if (!rg_alloc_did_fail()) {
				rg_alloc_fail_at(0);
				assert_int_equal(rc, 0);
				rg_graph_free(g);
				break;
			}
			rg_alloc_fail_at(0);
			assert_int_equal(rc, -ENOMEM);
			rg_graph_free(g);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(static_form_is_what_runtimes_know),
		cmocka_unit_test(one_operator_alone_leaves_the_others),
		cmocka_unit_test(options_change_what_is_written),
		cmocka_unit_test(other_types_are_quantised_when_asked),
		cmocka_unit_test(dynamic_form_is_what_runtimes_know),
		cmocka_unit_test(a_weight_that_two_read_is_there_once),
		cmocka_unit_test(a_bias_fits_32_bits),
		cmocka_unit_test(what_cannot_be_quantised_says_why),
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
