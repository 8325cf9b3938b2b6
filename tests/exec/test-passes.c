/*
 * Graph passes: a planted graph for each rewrite and each reason to decline; random
 * graphs with every pass alone and all together against the graph as it is; a second
 * round that changes nothing; every allocation failing once.
 */
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
#include "compile/fold.h"
#include "compile/pass.h"
#include "make-pass.h"

/* ---- what is rewritten ---- */

/* Two convolutions with BatchNormalization, added, then Relu; then one with Clip. */
static struct rg_graph *make_block(uint64_t seed)
{
	static const float low = -0.5f, high = 6;
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x4x6x5");
	make_conv(g, "x", "a", seed & 1, seed);
	make_batchnorm(g, "a", "b", seed);
	make_conv(g, "x", "c", seed & 2, seed);
	make_batchnorm(g, "c", "d", seed);
	make_node(g, "Add", "b,d", "e");
	make_node(g, "Relu", "e", "f");
	make_conv(g, "f", "h", true, seed);
	make_floats(g, "low", "", &low);
	make_floats(g, "high", "", &high);
	make_node(g, "Clip", "h,low,high", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_block(void **state)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct rg_graph *g = make_block(seed);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);

		assert_int_equal(p->n_steps, 3); /* three convolutions and nothing else */
		assert_int_equal(p->passes.n_rewritten, 5);
		rg_plan_free(p);
		rg_graph_free(g);
		assert_int_equal(compare(make_block, seed, 3, 0, NULL), 5);
		assert_int_equal(compare(make_block, seed, 1, 0, NULL), 2);
	}
}

static void test_disabled(void **state)
{
	static const char *const one[] = { "conv-affine" }, *const bad[] = { "conv-nothing" };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pass_log log = { 0 };
	struct rg_graph *g = make_block(1);
	struct rg_pass_options o = { 3, 1, bad };

	assert_int_equal(compare(make_block, 1, 3, 1, one), 2); /* Clip, and Relu with the sum before it */
	assert_int_equal(rg_passes_run(g, &o, &log, &err), -EINVAL);
	assert_non_null(strstr(err.message, "conv-nothing"));
	rg_pass_log_free(&log);
	rg_graph_free(g);
}

static int count_rewrites(const struct rg_pass_options *o, struct rg_graph *g)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pass_log log = { 0 };
	int n;

	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, o, &log, &err), 0);
	n = log.n_rewritten;
	rg_pass_log_free(&log);
	rg_graph_free(g);
	return n;
}

/* Patterns are found up to the limit; the last may be one of two nodes. */
static void test_limit(void **state)
{
	for (int limit = 1; limit < 7; limit++) {
		struct rg_pass_options o = { .level = 3, .limit = limit };

		int n = count_rewrites(&o, make_block(1));

		assert_true(limit < 5 ? n == limit || n == limit + 1 : n == 5);
	}
}

static int count_call(void *ctx, const struct rg_pass *pass, struct rg_graph *g, const struct rg_pass_log *log,
		      struct rg_error *err)
{
	assert_string_equal(log->notes[log->n_notes - 1].pass, pass->name);
	++*(int *)ctx;
	return strcmp(pass->name, "conv-epilogue") ? 0 : rg_error_set(err, -EDOM, "enough");
}

static int never_runs(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	fail_msg("a pass ran that is not for this kind of model");
	return 0;
}

/* The caller is shown the graph behind each pass that did something, and can end it; passes
 * that are for ridge alone stay out of a portable model. */
static void test_options(void **state)
{
	static const struct rg_pass ours = { "ours", "fails when it runs", 1, never_runs, .own_only = "slower" },
		theirs = { "theirs", "fails when it runs", 1, never_runs, .foreign = true };
	static const struct rg_plan_options po = { .lanes = 1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pass_log log = { 0 };
	struct rg_graph *g = make_block(1);
	int calls = 0, count = rg_pass_count();
	struct rg_pass_options o = { .level = 3, .portable = true, .after = count_call, .after_ctx = &calls };

	rg_pass_inject(&ours);
	assert_int_equal(rg_pass_count(), count + 1);
	assert_ptr_equal(rg_pass_at(count), &ours);
	o.after = NULL;
	count_rewrites(&o, make_block(1));
	rg_pass_inject(&theirs);
	o.portable = false;
	count_rewrites(&o, make_block(1));
	o.portable = true;
	o.after = count_call;
	rg_pass_inject(NULL);
	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, &o, &log, &err), -EDOM);
	assert_int_equal(calls, 2); /* conv-affine, conv-epilogue */
	rg_pass_log_free(&log);
	rg_graph_free(g);
}

/* y = x times Clip(x + 3, 0, 6) over 6; bit 0: the sixth first, 1: operands the other way round,
 * 2: a product with 1/6, 3: no product with x. */
static void make_taken_apart(struct rg_graph *g, const char *x, const char *y, int how)
{
	static const float three = 3, zero = 0, six = 6, sixth = 1.0f / 6;
	const char *by = how & 4 ? "sixth" : "six", *op = how & 4 ? "Mul" : "Div", *last;
	char t[3][32], in[80];

	if (rg_graph_find_value(g, "three") < 0) {
		make_floats(g, "three", "", &three);
		make_floats(g, "zero", "", &zero);
		make_floats(g, "six", "", &six);
		make_floats(g, "sixth", "1", &sixth);
	}
	for (int i = 0; i < 3; i++)
		snprintf(t[i], sizeof(t[i]), "%s-%d", y, i);
	snprintf(in, sizeof(in), how & 2 ? "three,%s" : "%s,three", x);
	make_node(g, "Add", in, t[0]);
	snprintf(in, sizeof(in), "%s,zero,six", t[0]);
	make_node(g, "Clip", in, t[1]);
	last = t[1];
	if (!(how & 8) && !(how & 1)) {
		snprintf(in, sizeof(in), how & 2 ? "%s,%s" : "%2$s,%1$s", x, t[1]);
		make_node(g, "Mul", in, t[2]);
		last = t[2];
	}
	snprintf(in, sizeof(in), how & 2 && how & 4 ? "%2$s,%1$s" : "%s,%s", last, by);
	make_node(g, op, in, how & 8 || !(how & 1) ? y : t[2]);
	if (how & 8 || !(how & 1))
		return;
	snprintf(in, sizeof(in), how & 2 ? "%s,%s" : "%2$s,%1$s", x, t[2]);
	make_node(g, "Mul", in, y);
}

/* A convolution scaled and shifted by numbers and by channel, then HardSwish in parts. */
static struct rg_graph *make_swish(uint64_t how)
{
	static const float f = 0.75f;
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "1x4x6x5");
	make_conv(g, "x", "a", true, how);
	make_floats(g, "f", "1", &f);
	random_floats(g, "c", "4x1x1", CHANNELS, how, 0.5f);
	make_node(g, "Mul", "a,f", "b");
	make_node(g, "Add", "c,b", "c1");
	make_node(g, "Div", "c1,c", "d");
	make_node(g, "Sub", "d,f", "e");
	make_taken_apart(g, "e", "y", (int)how);
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_swish(void **state)
{
	for (uint64_t how = 0; how < 16; how++) {
		struct rg_graph *g = make_swish(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);
		int last = p->n_steps - 1;

		assert_int_equal(p->n_steps, 2);
		assert_string_equal(g->nodes[p->steps[last].node].op_type, how & 8 ? "HardSigmoid" : "HardSwish");
		rg_plan_free(p);
		rg_graph_free(g);
		compare(make_swish, how, 1, 0, NULL);
	}
}

/* Elementwise operators that fit one chain: x times its sigmoid, clipped, where it is greater than a row,
 * else that row, times a column. */
static struct rg_graph *make_chain(uint64_t seed)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "3x4x5");
	make_input(g, "row", RG_F32, "5");
	random_floats(g, "col", "4x1", 4, seed, 0.5f);
	make_node(g, "Sigmoid", "x", "a");
	make_node(g, "Mul", "x,a", "b");
	make_node(g, "Relu", "b", "c");
	make_node(g, "Greater", "c,row", "d");
	make_node(g, "Where", "d,c,row", "e");
	make_node(g, seed & 1 ? "Mul" : "Sub", seed & 2 ? "e,col" : "col,e", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_chain(void **state)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct rg_graph *g = make_chain(seed);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);

		assert_int_equal(p->n_steps, 1);
		assert_string_equal(rg_step_kernel_name(&p->steps[0])[0] == 'l' ? "loops" : "another", "loops");
		assert_true(p->steps[0].cost.flops >= 60 * 5); /* of all its operators */
		rg_plan_free(p);
		rg_graph_free(g);
		assert_int_equal(compare(make_chain, seed, 3, 0, NULL), 5);
	}
}

/* A product with an activation in each of its ways, by bits of `how`: 0 a residual, 1 a factor and a number
 * added behind it, 2 reshaped to three dimensions between. */
static struct rg_graph *make_finished(uint64_t how)
{
	static const char *const activations[] = { "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "LeakyRelu", "Relu", "Clip" };
	static const int64_t three[] = { 2, 3, 5 };
	static const float f = 0.75f, bound = -0.25f;
	const char *activation = activations[how / 8];
	struct rg_graph *g = make_graph();
	const char *last = "a";

	make_input(g, "x", RG_F32, "6x7");
	make_input(g, "r", RG_F32, "6x5");
	random_floats(g, "w", "7x5", 35, how, -0.5f);
	random_floats(g, "b", "5", 5, how, -0.5f);
	make_floats(g, "f", "1", &f);
	make_floats(g, "bound", "", &bound);
	make_node(g, "Gemm", "x,w,b", "a");
	if (how & 1 && !(how & 4))
		make_node(g, "Add", "r,a", last = "a1");
	if (how & 4) {
		make_ints(g, "shape", 3, three);
		make_node(g, "Reshape", "a,shape", last = "a2");
	}
	make_node(g, activation, !strcmp(activation, "Clip") ? (last[1] == '2' ? "a2,bound" : last[1] ? "a1,bound" : "a,bound") :
		  last, how & 2 ? "c" : "y");
	if (how & 2) {
		make_node(g, "Mul", "f,c", "d");
		make_node(g, "Add", "d,f", "y");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_finished(void **state)
{
	for (uint64_t how = 0; how < 7 * 8; how++) {
		struct rg_graph *g = make_finished(how);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);

		assert_int_equal(p->n_steps, 1);
		assert_string_equal(g->nodes[p->steps[0].node].op_type, "FusedGemm");
		rg_plan_free(p);
		rg_graph_free(g);
		assert_true(compare(make_finished, how, 3, 0, NULL) > 0);
	}
}

/* A transposed convolution in `how` / 2 + 1 groups, of four channels to four, scaled and shifted by channel;
 * with a stride that leaves pixels to the bias alone. Bit 0: with a bias. */
static struct rg_graph *make_transposed(uint64_t how)
{
	static const int64_t strides[] = { 3, 2 };
	struct rg_attr attrs[] = { ints_attr("strides", 2, strides), int_attr("group", (int64_t)how / 2 + 1) };
	struct rg_graph *g = make_graph();
	int group = (int)how / 2 + 1;

	make_input(g, "x", RG_F32, "1x4x3x4");
	random_floats(g, "w", group == 1 ? "4x4x2x2" : "4x2x2x2", group == 1 ? 64 : 32, how, -0.5f);
	random_floats(g, "b", "4", CHANNELS, how, -0.5f);
	random_floats(g, "c", "4x1x1", CHANNELS, how, 0.5f);
	make_node_attrs(g, "ConvTranspose", how & 1 ? "x,w,b" : "x,w", "a", 2, attrs);
	make_node(g, "Add", "a,c", "d");
	make_node(g, "Mul", "c,d", "e");
	make_batchnorm(g, "e", "y", how);
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_transposed(void **state)
{
	for (uint64_t how = 0; how < 4; how++) {
		struct rg_graph *g = make_transposed(how);
		struct rg_plan *p = plan_at(g, 1, 0, NULL);

		assert_int_equal(p->n_steps, 1);
		rg_plan_free(p);
		rg_graph_free(g);
		assert_int_equal(compare(make_transposed, how, 1, 0, NULL), 3);
	}
}

/* ---- what is declined ---- */

struct planted {
	struct rg_graph *g;
	const char *node;           /* output of the node that could have been fused */
	enum rg_decline why;
};

static struct planted plant(int i)
{
	struct rg_graph *g = make_graph();
	struct planted p = { g, "y", RG_DECLINE_NONE };

	make_input(g, "x", RG_F32, "1x4x6x5");
	switch (i) {
	case 0: /* somebody else reads the convolution */
		make_conv(g, "x", "a", true, 1);
		make_batchnorm(g, "a", "y", 1);
		make_node(g, "Abs", "a", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 1: /* it is an output itself */
		make_conv(g, "x", "a", true, 1);
		make_batchnorm(g, "a", "y", 1);
		make_output(g, "a");
		p.why = RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 2: /* the mean is given at run time */
		make_conv(g, "x", "a", true, 1);
		make_input(g, "mean", RG_F32, "4");
		random_floats(g, "s", "4", CHANNELS, 1, 0.5f);
		make_node(g, "BatchNormalization", "a,s,s,mean,s", "y");
		p.why = RG_DECLINE_NOT_CONSTANT;
		break;
	case 3: /* added to something smaller */
		make_conv(g, "x", "a", true, 1);
		make_input(g, "r", RG_F32, "4x1x1");
		make_node(g, "Add", "a,r", "y");
		p.why = RG_DECLINE_BROADCASTING;
		break;
	case 4: /* a sum behind a depthwise convolution */
	{
		struct rg_attr attr = int_attr("group", CHANNELS);

		random_floats(g, "w", "4x1x1x1", 4, 1, -0.5f);
		make_node_attrs(g, "Conv", "x,w", "a", 1, &attr);
		make_node(g, "Add", "a,x", "y");
		p.why = RG_DECLINE_KERNEL;
		break;
	}
	case 5: /* bounds of Clip at run time */
		make_conv(g, "x", "a", true, 1);
		make_input(g, "low", RG_F32, "");
		make_node(g, "Clip", "a,low", "y");
		p.why = RG_DECLINE_NOT_CONSTANT;
		break;
	case 6: /* a factor beyond what a weight can take */
	{
		static const float big = 1e25f;

		make_conv(g, "x", "a", true, 1);
		make_floats(g, "big", "", &big);
		make_node(g, "Mul", "a,big", "y");
		p.why = RG_DECLINE_RANGE;
		break;
	}
	case 7: /* a constant that is neither one number nor one a channel */
		make_conv(g, "x", "a", true, 1);
		random_floats(g, "row", "5", 5, 1, 0.5f);
		make_node(g, "Mul", "a,row", "y");
		p.why = RG_DECLINE_BROADCASTING;
		break;
	case 8: /* elementwise, and an output itself */
		make_node(g, "Sigmoid", "x", "a");
		make_node(g, "Mul", "a,x", "y");
		make_output(g, "a");
		p = (struct planted){ g, "a", RG_DECLINE_GRAPH_OUTPUT };
		break;
	case 9: /* elementwise, and something else than a part of the chain reads it too */
		make_node(g, "Sigmoid", "x", "a");
		make_node(g, "Mul", "a,x", "y");
		make_node(g, "GlobalMaxPool", "a", "z");
		make_output(g, "z");
		p = (struct planted){ g, "a", RG_DECLINE_SECOND_CONSUMER };
		break;
	case 10: /* elementwise, on something smaller */
		make_input(g, "r", RG_F32, "4x1x1");
		make_node(g, "Sigmoid", "r", "a");
		make_node(g, "Mul", "a,x", "y");
		p = (struct planted){ g, "a", RG_DECLINE_BROADCASTING };
		break;
	default: /* Relu of an addition that somebody else reads too */
		make_conv(g, "x", "a", true, 1);
		make_node(g, "Add", "a,x", "b");
		make_node(g, "Relu", "b", "y");
		make_node(g, "Abs", "b", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
	}
	make_output(g, "y");
	make_finish(g);
	return p;
}

enum { N_PLANTED = 12 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++) {
		struct planted t = plant(i);
		struct rg_plan *p = plan_at(t.g, 3, 0, NULL);
		int found = 0;
		char name[32];

		snprintf(name, sizeof(name), "n:%s", t.node);
		for (int k = 0; k < p->passes.n_notes; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			if (!n->decline || n->decline == RG_DECLINE_NO_PATTERN)
				continue;
			found++;
			assert_string_equal(n->node, name);
			if (n->decline != t.why)
				fail_msg("graph %d: %s, not %s", i, rg_decline_name(n->decline), rg_decline_name(t.why));
		}
		if (found != 1)
			fail_msg("graph %d: %d declines", i, found);
		rg_plan_free(p);
		rg_graph_free(t.g);
		compare(planted_graph, (uint64_t)i, 3, 0, NULL);
	}
}

/* A graph of before there were opsets keeps the meaning of its operators when ONNX Runtime's domain comes in:
 * the second convolution is rewritten after the first has brought it. */
static struct rg_graph *make_ancient(uint64_t seed)
{
	struct rg_graph *g = rg_graph_new(NULL);

	assert_non_null(g);
	make_input(g, "x", RG_F32, "1x4x6x5");
	make_conv(g, "x", "a", true, seed);
	make_node(g, "Relu", "a", "b");
	make_conv(g, "b", "c", true, seed);
	make_node(g, "HardSigmoid", "c", "d");
	make_conv(g, "d", "e", true, seed);
	make_node(g, "Relu", "e", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_ancient(void **state)
{
	struct rg_graph *g = make_ancient(1);
	struct rg_plan *p = plan_at(g, 3, 0, NULL);

	assert_int_equal(rg_graph_opset(g, ""), 1);
	assert_int_equal(p->n_steps, 3);
	rg_plan_free(p);
	rg_graph_free(g);
	compare(make_ancient, 1, 3, 0, NULL);
}

/* --kernel: what a kernel was asked for by type or by name stays as it is, and all else is rewritten. */
static void test_pinned(void **state)
{
	static const struct { const char *op; int steps; } asked[] = { { "Relu", 4 }, { "n:y", 4 }, { "Conv", 7 }, { "n:a", 4 } };
	struct rg_error err = RG_ERROR_INIT;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 }, .n_overrides = 1 };
		struct rg_graph *g = make_block(1);
		struct rg_plan *p;
		int found = 0;

		opt.overrides = malloc(sizeof(*opt.overrides));
		opt.overrides[0].op = asked[i].op;
		opt.overrides[0].kernel = "ref";
		assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
		for (int s = 0; s < p->n_steps; s++) {
			const struct rg_node *n = &g->nodes[p->steps[s].node];

			if (strcmp(n->op_type, asked[i].op) && strcmp(n->name, asked[i].op))
				continue;
			assert_string_equal(rg_step_kernel_name(&p->steps[s]), "ref");
			found++;
		}
		assert_true(found > 0);
		if (p->n_steps != asked[i].steps)
			fail_msg("%s: %d steps", asked[i].op, p->n_steps);
		free(opt.overrides);
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

/* ---- properties ---- */

/* Convolutions, BatchNormalizations, Relus and sums on values of one shape, read at random. */
static struct rg_graph *make_any(uint64_t seed)
{
	struct rg_graph *g = make_graph();
	uint64_t stream = rg_rng_stream(seed, "passes");
	int n = 3 + (int)rg_rng_integer(stream, 0, 0, 12);
	char names[20][16];

	make_input(g, "v0", RG_F32, "1x4x5x7");
	strcpy(names[0], "v0");
	for (int i = 1; i <= n; i++) {
		uint64_t at = (uint64_t)i * 4;
		/* mostly the value before, so that patterns come up */
		int from = rg_rng_integer(stream, at, 0, 3) ? i - 1 : (int)rg_rng_integer(stream, at + 1, 0, i - 1);
		char in[40];

		snprintf(names[i], sizeof(names[i]), "v%d", i);
		switch (rg_rng_integer(stream, at + 2, 0, 10)) {
		case 9: case 10:
		{
			static const char *const ops[] = { "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "LeakyRelu", "Clip" };

			make_node(g, ops[(seed + (uint64_t)i) % 6], names[from], names[i]);
			break;
		}
		case 6: make_taken_apart(g, names[from], names[i], (int)(seed + (uint64_t)i) % 16); break;
		case 7: case 8:
		{
			static const char *const ops[] = { "Mul", "Add", "Sub", "Div" };
			char k[20];

			snprintf(k, sizeof(k), "%s-k", names[i]);
			random_floats(g, k, i & 1 ? "4x1x1" : "1", i & 1 ? CHANNELS : 1, seed, 0.5f);
			snprintf(in, sizeof(in), "%s,%s", names[from], k);
			make_node(g, ops[(seed + (uint64_t)i) % 4], in, names[i]);
			break;
		}
		case 0: case 1: make_conv(g, names[from], names[i], i & 1, seed + (uint64_t)i); break;
		case 2: make_batchnorm(g, names[from], names[i], seed + (uint64_t)i); break;
		case 3: make_node(g, seed % 3 ? "Relu" : "Neg", names[from], names[i]); break;
		default:
			snprintf(in, sizeof(in), "%s,%s", names[from], names[rg_rng_integer(stream, at + 3, 0, i - 1)]);
			make_node(g, "Add", in, names[i]);
		}
		if (rg_rng_integer(stream, at + 3, 0, 9) == 0)
			make_output(g, names[i]);
	}
	if (!g->values[rg_graph_find_value(g, names[n])].is_output)
		make_output(g, names[n]);
	make_finish(g);
	return g;
}

static void test_random(void **state)
{
	int rewritten = 0;

	for (uint64_t seed = 0; seed < 150; seed++) {
		rewritten += compare(make_any, seed, 3, 0, NULL);
		for (int pass = 0; pass < rg_pass_count(); pass++) { /* each alone */
			const char *others[64];
			int n = 0;

			for (int k = 0; k < rg_pass_count(); k++)
				if (k != pass)
					others[n++] = rg_pass_at(k)->name;
			compare(make_any, seed, RG_PASS_LEVELS, n, others);
		}
	}
	assert_true(rewritten > 100);
}

static void test_idempotent(void **state)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	static const struct rg_pass_options o = { .level = RG_PASS_LEVELS };

	for (uint64_t seed = 0; seed < 100; seed++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = seed % 4 ? make_any(seed) : make_block(seed);
		struct rg_pass_log first = { 0 }, second = { 0 };
		int nodes;

		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		assert_int_equal(rg_passes_run(g, &o, &first, &err), 0);
		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		nodes = g->n_nodes;
		assert_int_equal(rg_passes_run(g, &o, &second, &err), 0);
		if (second.n_rewritten)
			fail_msg("seed %d: %s of %s again", (int)seed, second.notes[0].pass, second.notes[0].node);
		assert_int_equal(g->n_nodes, nodes);
		rg_pass_log_free(&first);
		rg_pass_log_free(&second);
		rg_graph_free(g);
	}
}

static void fail_each_allocation(make_fn *make)
{
	int fails = 0, rc;

	do {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 } };
		struct rg_graph *g = make(3);
		struct rg_plan *p = NULL;

		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_plan_make(g, &opt, &p, &err);
		rg_alloc_fail_at(0);
		if (rc)
			assert_int_equal(rc, -ENOMEM);
		rg_plan_free(p);
		rg_graph_free(g);
	} while (rc && fails < 5000);
	assert_int_equal(rc, 0);
	assert_true(fails > 20);
}

static void test_allocation_failures(void **state)
{
	fail_each_allocation(make_block);
	fail_each_allocation(make_chain);
	fail_each_allocation(make_finished);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_swish),
		cmocka_unit_test(test_transposed),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_disabled),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_ancient),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
