/*
 * Constants by channel in front of a convolution: into its weights, or as a convolution of their own
 * for ONNX Runtime. Random chains before every kind of convolution against the graph as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compile/fold.h"
#include "make-dynamic.h"

enum { CHANNELS = 32 };

static void random_floats(struct rg_graph *g, const char *name, const char *shape, int n, uint64_t seed,
			  float low)
{
	uint64_t stream = rg_rng_stream(seed, name);
	float *v = calloc((size_t)n, sizeof(*v));

	assert_non_null(v);
	for (int i = 0; i < n; i++)
		v[i] = rg_rng_uniform(stream, (uint64_t)i, low, low + 1);
	make_floats(g, name, shape, v);
	free(v);
}

/* y = Conv(x) of 32 channels with a window of 3x3 or 1x1. */
static void make_conv(struct rg_graph *g, const char *x, const char *y, int group, bool wide, bool padded,
		      bool bias, uint64_t seed)
{
	struct rg_attr attrs[2] = {int_attr("group", group),
				   ints_attr("pads", 4, INTS(padded, 0, padded, padded))};
	int per_group = CHANNELS / group, area = wide ? 9 : 1;
	char w[32], b[32], shape[32], in[100];

	snprintf(w, sizeof(w), "%s-w", y);
	snprintf(b, sizeof(b), "%s-b", y);
	snprintf(shape, sizeof(shape), "%dx%dx%dx%d", CHANNELS, per_group, wide ? 3 : 1, wide ? 3 : 1);
	random_floats(g, w, shape, CHANNELS * per_group * area, seed, -0.5f);
	if (bias)
		random_floats(g, b, "32", CHANNELS, seed, -0.5f);
	snprintf(in, sizeof(in), bias ? "%s,%s,%s" : "%s,%s", x, w, b);
	make_node_attrs(g, "Conv", in, y, 2, attrs);
}

/* One of the nodes that change a channel, of x. */
static void make_affine(struct rg_graph *g, const char *x, const char *y, int kind, uint64_t seed)
{
	static const char *const ops[] = { "Mul", "Add", "Sub", "Div" };
	char k[32], in[100];

	if (kind == 4) {
		static const char *const parts[] = { "scale", "shift", "mean", "var" };
		int at = snprintf(in, sizeof(in), "%s", x);

		for (int i = 0; i < 4; i++) {
			snprintf(k, sizeof(k), "%s-%s", y, parts[i]);
			random_floats(g, k, "32", CHANNELS, seed, i == 3 ? 0.1f : -0.5f);
			at += snprintf(in + at, sizeof(in) - (size_t)at, ",%s", k);
		}
		make_node(g, "BatchNormalization", in, y);
		return;
	}
	snprintf(k, sizeof(k), "%s-k", y);
	random_floats(g, k, seed & 1 ? "32x1x1" : "1", seed & 1 ? CHANNELS : 1, seed, 0.5f);
	snprintf(in, sizeof(in), kind < 2 && seed & 2 ? "%2$s,%1$s" : "%s,%s", x, k);
	make_node(g, ops[kind], in, y);
}

/* Conv, HardSwish, a chain of nodes, Conv. */
static struct rg_graph *make_net(uint64_t seed)
{
	static const int groups[] = { 1, 4, CHANNELS };
	uint64_t stream = rg_rng_stream(seed, "affine");
	int length = 1 + (int)rg_rng_integer(stream, 0, 0, 3),
	    group = groups[rg_rng_integer(stream, 1, 0, 2)];
	bool wide = rg_rng_integer(stream, 2, 0, 1), padded = rg_rng_integer(stream, 3, 0, 1);
	struct rg_graph *g = make_graph();
	char from[16] = "b", to[16];

	make_input(g, "x", RG_F32, "1x32x5x7");
	make_conv(g, "x", "a", 1, false, false, true, seed);
	make_node(g, "HardSwish", "a", "b");
	for (int i = 0; i < length; i++) {
		snprintf(to, sizeof(to), "c%d", i);
		make_affine(g, from, to, (int)rg_rng_integer(stream, 10 + (uint64_t)i, 0, 4),
			    seed + (uint64_t)i);
		strcpy(from, to);
	}
	make_conv(g, from, "y", group, wide, padded, seed & 1, seed + 50);
	if (seed % 5 == 0)
		make_output(g, from);
	make_output(g, "y");
	make_finish(g);
	return g;
}

/* Rewrites for another runtime, with that pass alone or (NULL) with all. */
static int rewrite(struct rg_graph *g, const char *only, struct rg_pass_log *log)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	struct rg_error err = RG_ERROR_INIT;
	const char *others[64];
	struct rg_pass_options o = { .level = 2, .disabled = others, .portable = true };

	for (int i = 0; i < rg_pass_count() && only; i++)
		if (strcmp(rg_pass_at(i)->name, only))
			others[o.n_disabled++] = rg_pass_at(i)->name;
	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	if (rg_passes_run(g, &o, log, &err))
		fail_msg("%s", err.message);
	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	return log->n_rewritten;
}

static float *outputs_of(struct rg_graph *g, int *count)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan *p = make_plan(g, 1);
	float *all = calloc(1 << 14, sizeof(*all));
	struct rg_exec *e;
	struct rg_tensor t;

	assert_non_null(all);
	*count = 0;
	assert_int_equal(rg_exec_new(p, NULL, &e, &err), 0);
	t = rg_exec_input(e, 0);
	for (int64_t i = 0; i < rg_shape_count(&t.shape); i++)
		((float *)t.data)[i] = (float)(i * 37 % 101) / 50 - 1;
	assert_int_equal(rg_exec_run(e, &err), 0);
	for (int i = 0; i < g->n_outputs; i++) {
		t = rg_exec_output(e, i);
		memcpy(all + *count, t.data, (size_t)rg_shape_count(&t.shape) * sizeof(*all));
		*count += (int)rg_shape_count(&t.shape);
	}
	rg_exec_free(e);
	rg_plan_free(p);
	return all;
}

static int compare(uint64_t seed, const char *only)
{
	struct rg_graph *plain = make_net(seed), *g = make_net(seed);
	struct rg_pass_log log = { 0 };
	int n, n_after, done = rewrite(g, only, &log);
	float *want = outputs_of(plain, &n), *got = outputs_of(g, &n_after), largest = 0;

	assert_int_equal(n, n_after);
	for (int i = 0; i < n; i++)
		largest = fmaxf(largest, fabsf(want[i]));
	for (int i = 0; i < n; i++)
		if (!(fabsf(got[i] - want[i]) <= 2e-5f * largest))
			fail_msg("seed %d, %s: output %d is %.9g, not %.9g", (int)seed, only, i,
				 (double)got[i], (double)want[i]);
	free(want);
	free(got);
	rg_pass_log_free(&log);
	rg_graph_free(plain);
	rg_graph_free(g);
	return done;
}

static void test_random(void **state)
{
	int into = 0, blocked = 0;

	for (uint64_t seed = 0; seed < 120; seed++) {
		into += compare(seed, "conv-input");
		blocked += compare(seed, "affine-blocked");
		compare(seed, NULL);
	}
	assert_true(into > 50);
	assert_true(blocked > 50);
}

/* ---- one by one ---- */

struct planted { const char *chain; bool wide, padded, reader; };

/* A chain of these nodes (M, A, S, D, B) between x and y. */
static struct rg_graph *plant(const struct planted *p)
{
	static const char kinds[] = "MASDB";
	struct rg_graph *g = make_graph();
	char from[16] = "b", to[16];

	make_input(g, "x", RG_F32, "1x32x5x7");
	make_conv(g, "x", "a", 1, false, false, true, 3);
	make_node(g, "HardSwish", "a", "b");
	for (int i = 0; p->chain[i]; i++) {
		snprintf(to, sizeof(to), "c%d", i);
		make_affine(g, from, to, (int)(strchr(kinds, p->chain[i]) - kinds), 7);
		strcpy(from, to);
	}
	make_conv(g, from, "y", 1, p->wide, p->padded, true, 9);
	if (p->reader) {
		make_node(g, "Neg", from, "z");
		make_output(g, "z");
	}
	make_output(g, "y");
	make_finish(g);
	return g;
}

static int count_type(const struct rg_graph *g, const char *op_type)
{
	int n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		n += !strcmp(g->nodes[i].op_type, op_type);
	return n;
}

static void test_blocked(void **state)
{
	static const struct planted padded = {"MA", .wide = true, .padded = true, .reader = true},
				    norm = {"B"};
	static const struct rg_plan_options po = { .lanes = 1 };
	struct rg_pass_options o = { .level = 3 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pass_log log = { 0 };
	struct rg_graph *g = plant(&padded);

	/* both nodes are one convolution of 32 groups, that others may read too */
	assert_int_equal(rewrite(g, "affine-blocked", &log), 2);
	assert_int_equal(count_type(g, "Conv"), 3);
	assert_int_equal(count_type(g, "Mul") + count_type(g, "Add"), 0);
	/* and so it stays */
	rg_pass_log_free(&log);
	assert_int_equal(rewrite(g, NULL, &log), 0);
	rg_pass_log_free(&log);
	rg_graph_free(g);
	/* BatchNormalization alone has a layout of its own there */
	g = plant(&norm);
	assert_int_equal(rewrite(g, "affine-blocked", &log), 0);
	rg_pass_log_free(&log);
	rg_graph_free(g);
	/* not for ridge */
	g = plant(&padded);
	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, &o, &log, &err), 0);
	for (int i = 0; i < log.n_notes; i++)
		assert_string_not_equal(log.notes[i].pass, "affine-blocked");
	assert_int_equal(count_type(g, "Conv") + count_type(g, "FusedConv"), 2);
	rg_pass_log_free(&log);
	rg_graph_free(g);
}

static void test_allocation_failures(void **state)
{
	static const struct planted both = { "MA" };
	int fails = 0, rc;

	do {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_pass_options o = { .level = 2, .portable = true };
		struct rg_plan_options po = { .lanes = 1 };
		struct rg_pass_log log = { 0 };
		struct rg_graph *g = plant(&both);

		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_passes_run(g, &o, &log, &err);
		rg_alloc_fail_at(0);
		if (rc)
			assert_int_equal(rc, -ENOMEM);
		rg_pass_log_free(&log);
		rg_graph_free(g);
	} while (rc && fails < 5000);
	assert_int_equal(rc, 0);
	assert_true(fails > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-affine", tests, NULL, NULL);
}
