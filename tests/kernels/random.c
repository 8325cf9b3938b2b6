/*
 * Operators that draw: a seed gives the numbers that ONNX's reference
 * implementation (onnx 1.22 over numpy) draws from it, no seed gives each node
 * its own, and what is drawn has the distribution that was asked for.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mt19937.h"
#include "math-case.h"

/* From the paper's own output, and numpy.random.RandomState(0).randn(4). */
static void test_generator(void **state)
{
	static const double normal[] = { 1.764052345967664, 0.4001572083672233, 0.9787379841057392,
					 2.240893199201458 };
	struct rg_mt19937 mt;

	rg_mt19937_seed(&mt, 5489);
	assert_int_equal(rg_mt19937_u32(&mt), 3499211612u);
	for (int i = 2; i < 10000; i++)
		rg_mt19937_u32(&mt);
	assert_int_equal(rg_mt19937_u32(&mt), 4123659995u);
	rg_mt19937_seed(&mt, 0);
	for (int i = 0; i < 4; i++)
		assert_true(fabs(rg_mt19937_normal(&mt) - normal[i]) < 1e-14);
}

static void test_seeded(void **state)
{
	static const struct { const char *op; enum rg_dtype t; float seed; double want[5]; } cases[] = {
		{ "RandomNormal", RG_F32, 7.9f, { 0x1.3752a6p+2, -0x1.ea8306p-1, 0x1.8df0f4p-2, 0x1.6679acp+0,
						 -0x1.d480ecp+0 } },
		{ "RandomNormal", RG_F64, 7.9f, { 0x1.3752a622e4612p+2, -0x1.ea83070c842f2p-1,
						 0x1.8df0f2a318215p-2, 0x1.6679aad336ebdp+0,
						 -0x1.d480ec307ec8ap+0 } },
		{ "RandomNormal", RG_F16, 7.9f, { 0x1.374p+2, -0x1.ea8p-1, 0x1.8ep-2, 0x1.668p+0, -0x1.d4cp+0 } },
		{ "RandomUniform", RG_F32, 3, { 0x1.8ba104p-1, 0x1.4ec59ap+0, -0x1.c6582p-4, 0x1.460c78p-1,
					       0x1.ef9efep+0 } },
		{ "RandomUniform", RG_F64, 3, { 0x1.8ba1065f67438p-1, 0x1.4ec599aa3e69ep+0,
					       -0x1.c6581f53eafc8p-4, 0x1.460c781e5a246p-1,
					       0x1.ef9efcca1a792p+0 } },
		{ "RandomUniform", RG_F16, 3, { 0x1.8bcp-1, 0x1.4e8p+0, -0x1.c58p-4, 0x1.45cp-1, 0x1.fp+0 } },
	};
	struct math_case t;

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		mc_start(&t, cases[k].op, 22);
		mc_int(&t, "dtype", cases[k].t);
		mc_float(&t, "seed", cases[k].seed);
		mc_ints(&t, "shape", 1, MC_DIMS(5));
		mc_float(&t, "mean", 0.3f);
		mc_float(&t, "scale", 2.7f);
		mc_float(&t, "low", -1.1f);
		mc_float(&t, "high", 2.3f);
		mc_must_run(&t, 1);
		for (int i = 0; i < 5; i++) /* log differs in the last bit between libraries */
			mc_expect(&t, 0, i, cases[k].want[i], cases[k].t == RG_F64 ? 1e-15 : 0, 0);
		mc_free(&t);
	}
}

static void test_unseeded(void **state)
{
	static const char *const names[] = { "a", "b", "a" };
	struct math_case t[3];

	for (int k = 0; k < 3; k++) {
		mc_start(&t[k], "RandomUniformLike", 22);
		t[k].node.name = names[k];
		mc_in(&t[k], RG_F32, 2, MC_DIMS(4, 25));
		mc_must_run(&t[k], 1);
		for (int i = 0; i < 100; i++)
			assert_true(mc_get(&t[k].out[0], i) >= 0 && mc_get(&t[k].out[0], i) <= 1);
	}
	assert_memory_not_equal(t[0].out[0].data, t[1].out[0].data, 400);
	assert_memory_equal(t[0].out[0].data, t[2].out[0].data, 400);
	for (int k = 0; k < 3; k++)
		mc_free(&t[k]);
}

/* Four standard deviations wide: it is the same every time, and is right now. */
static void expect_share(double hits, double n, double p)
{
	if (fabs(hits - n * p) > 4 * sqrt(n * p * (1 - p)))
		fail_msg("%g hits of %g with probability %g", hits, n, p);
}

static void test_bernoulli(void **state)
{
	static const double p[] = { 0, 1, 0.25, 0.9 };
	enum { N = 4000 };
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		double hits = 0;

		mc_start(&t, "Bernoulli", 15);
		mc_int(&t, "dtype", RG_I64);
		mc_float(&t, "seed", (float)k);
		mc_in(&t, RG_F64, 1, MC_DIMS(N));
		for (int i = 0; i < N; i++)
			mc_set(&t.in[0], i, p[k]);
		mc_must_run(&t, 1);
		for (int i = 0; i < N; i++) {
			double v = mc_get(&t.out[0], i);

			assert_true(v == 0 || v == 1);
			hits += v;
		}
		expect_share(hits, N, p[k]);
		mc_free(&t);
	}
}

static void test_multinomial(void **state)
{
	enum { N = 8000 };
	struct math_case t;

	for (int k = 0; k < 2; k++) {
		double hits[2][4] = { { 0 } };

		mc_start(&t, "Multinomial", 22);
		mc_int(&t, "sample_size", N);
		mc_int(&t, "dtype", k ? RG_I64 : RG_I32);
		mc_float(&t, "seed", 11);
		/* 1 : 2 : 0 : 1, and one that only its neighbours' size keeps from overflow */
		mc_in_list(&t, RG_F32, 2, MC_DIMS(2, 4), MC_LIST(0, log(2), -INFINITY, 0, 5000, 5000, -5000, 4999));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 2, MC_DIMS(2, N));
		for (int i = 0; i < 2 * N; i++) {
			double v = mc_get(&t.out[0], i);

			assert_true(v == 0 || v == 1 || v == 2 || v == 3);
			hits[i / N][(int)v]++;
		}
		expect_share(hits[0][0], N, 0.25);
		expect_share(hits[0][1], N, 0.5);
		assert_true(hits[0][2] == 0);
		expect_share(hits[1][0], N, 1 / (2 + exp(-1)));
		expect_share(hits[1][3], N, exp(-1) / (2 + exp(-1)));
		mc_free(&t);
	}
	mc_start(&t, "Multinomial", 7); /* nothing to draw from */
	mc_in_list(&t, RG_F32, 2, MC_DIMS(1, 2), MC_LIST(-INFINITY, NAN));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

/* What is kept is scaled, what is not is zero, and the mask says which. */
static void test_dropout(void **state)
{
	static const struct { int version; double ratio; } cases[] = { { 6, 0.25 }, { 12, 0.25 }, { 22, 0.75 } };
	enum { N = 2000 };
	struct math_case t;

	for (int k = 0; k < 3; k++) {
		double kept = 0, scale = 1 / (1 - cases[k].ratio);

		mc_start(&t, "Dropout", cases[k].version);
		if (cases[k].version < 12)
			mc_float(&t, "ratio", (float)cases[k].ratio);
		else
			mc_int(&t, "seed", 5);
		mc_in_random(&t, RG_F16, 1, MC_DIMS(N), 1, 2);
		if (cases[k].version >= 12) {
			mc_in_list(&t, RG_F32, 0, NULL, &cases[k].ratio);
			mc_in_list(&t, RG_BOOL, 0, NULL, MC_LIST(1));
			t.variable[1] = true; /* it comes at run time */
		}
		mc_must_run(&t, 2);
		assert_int_equal(t.out[1].dtype, cases[k].version < 10 ? RG_F16 : RG_BOOL);
		for (int i = 0; i < N; i++) {
			double keep = mc_get(&t.out[1], i);

			mc_expect(&t, 0, i, mc_get(&t.in[0], i) * scale * keep, mc_tolerance(RG_F16), 0);
			kept += keep;
		}
		expect_share(kept, N, 1 - cases[k].ratio);
		mc_free(&t);
	}
	mc_start(&t, "Dropout", 13); /* everything would be dropped, by a scale of infinity */
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(1));
	mc_in_list(&t, RG_BOOL, 0, NULL, MC_LIST(1));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Dropout", 13); /* whether it trains decides what its memory is */
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(0.5));
	mc_in_list(&t, RG_BOOL, 0, NULL, MC_LIST(1));
	t.variable[2] = true;
	assert_int_equal(mc_run(&t, 1), RG_ENEED_VALUE);
	mc_free(&t);
}

static void refused(struct math_case *t)
{
	assert_int_equal(mc_run(t, 1), -EINVAL);
	mc_free(t);
}

static void test_refused(void **state)
{
	struct math_case t;

	mc_start(&t, "RandomNormal", 1);
	refused(&t); /* no shape */
	mc_start(&t, "RandomNormal", 1);
	mc_ints(&t, "shape", 2, MC_DIMS(3, -1));
	refused(&t);
	mc_start(&t, "RandomUniform", 1);
	mc_ints(&t, "shape", 1, MC_DIMS(3));
	mc_int(&t, "dtype", RG_I32);
	refused(&t);
	mc_start(&t, "RandomUniformLike", 1); /* no dtype, and that of the input is none to draw */
	mc_in(&t, RG_I32, 1, MC_DIMS(3));
	refused(&t);
	mc_start(&t, "Bernoulli", 15);
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	mc_int(&t, "dtype", INT64_MIN);
	refused(&t);
	mc_start(&t, "Multinomial", 7);
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 0));
	refused(&t);
	mc_start(&t, "Multinomial", 7);
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 2));
	mc_int(&t, "sample_size", -1);
	refused(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generator), cmocka_unit_test(test_seeded), cmocka_unit_test(test_unseeded),
		cmocka_unit_test(test_bernoulli), cmocka_unit_test(test_multinomial),
		cmocka_unit_test(test_dropout), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
