/*
 * Elementwise operators of one input against formulas in double, in every
 * element type, over odd sizes and special values.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype floats[] = { RG_F32, RG_F64, RG_F16, RG_BF16 };
static const int64_t sizes[] = { 0, 1, 3, 7, 8, 9, 255, 256, 257, 1023 };

static double f_abs(double x) { return fabs(x); }
static double f_neg(double x) { return -x; }
static double f_sign(double x) { return isnan(x) ? NAN : x > 0 ? 1 : x < 0 ? -1 : 0; }
static double f_recip(double x) { return 1 / x; }
static double f_sigmoid(double x) { return 0.5 * (1 + tanh(x / 2)); }
static double f_hardsigmoid(double x) { return isnan(x) ? x : fmax(0, fmin(1, (double)0.2f * x + 0.5)); }
static double f_hardsigmoid2(double x) { return isnan(x) ? x : fmax(0, fmin(1, 0.5 * x + 0.25)); }
static double f_hardswish(double x) { return isnan(x) ? x : x * fmax(0, fmin(1, x / 6 + 0.5)); }
static double f_relu(double x) { return isnan(x) ? x : fmax(x, 0); }
static double f_leaky(double x) { return x >= 0 ? x : 0.25 * x; }
static double f_threshold(double x) { return x > 0.5 ? x : 0; }
static double f_elu(double x) { return x >= 0 ? x : 0.5 * expm1(x); }
static double f_celu(double x) { return isnan(x) ? x : fmax(0, x) + fmin(0, 2 * expm1(x / 2)); }
static double f_selu(double x)
{
	/* the defaults are floats */
	double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;

	return x > 0 ? gamma * x : gamma * alpha * expm1(x);
}
static double f_gelu(double x) { return x * 0.5 * erfc(-x / sqrt(2)); }
static double f_gelu_tanh(double x)
{
	return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * pow(x, 3))));
}
static double f_softplus(double x) { return x > 30 ? x : log(1 + exp(x)); }
static double f_softsign(double x) { return x / (1 + fabs(x)); }
static double f_mish(double x) { return x * tanh(f_softplus(x)); }
static double f_swish(double x) { return x * f_sigmoid(0.5 * x); }
static double f_shrink(double x) { return x < -1.5 ? x + 0.5 : x > 1.5 ? x - 0.5 : 0; }
static double f_clip(double x) { return isnan(x) ? x : fmin(fmax(x, -0.5), 0.75); }

static const struct formula {
	const char *op;
	int version;
	double (*f)(double);
	double lo, hi;
	const char *attr[2];
	float value[2];
	const char *approximate;
	double loss; /* how many rounding errors may add up */
	bool plain;  /* special values too; no cancellation, so that errors are relative */
} formulas[] = {
	{ "Abs", 13, f_abs, -9, 9, .loss = 1, .plain = true },
	{ "Neg", 13, f_neg, -9, 9, .loss = 1, .plain = true },
	{ "Sign", 13, f_sign, -9, 9, .loss = 1, .plain = true },
	{ "Ceil", 13, ceil, -9, 9, .loss = 1, .plain = true },
	{ "Floor", 6, floor, -9, 9, .loss = 1, .plain = true },
	{ "Round", 11, rint, -9, 9, .loss = 1, .plain = true },
	{ "Sqrt", 13, sqrt, -1, 9, .loss = 1, .plain = true },
	{ "Reciprocal", 6, f_recip, -9, 9, .loss = 1, .plain = true },
	{ "Exp", 13, exp, -9, 9, .loss = 1, .plain = true },
	{ "Log", 13, log, 0.5, 9, .loss = 2, .plain = true },
	{ "Sin", 22, sin, -9, 9, .loss = 2 },
	{ "Cos", 7, cos, -9, 9, .loss = 2 },
	{ "Tan", 7, tan, -1, 1, .loss = 2 },
	{ "Asin", 7, asin, -1, 1, .loss = 2, .plain = true },
	{ "Acos", 7, acos, -1, 1, .loss = 2, .plain = true },
	{ "Atan", 7, atan, -9, 9, .loss = 2, .plain = true },
	{ "Sinh", 9, sinh, -9, 9, .loss = 2, .plain = true },
	{ "Cosh", 9, cosh, -9, 9, .loss = 2, .plain = true },
	{ "Tanh", 6, tanh, -9, 9, .loss = 2, .plain = true },
	{ "Asinh", 9, asinh, -9, 9, .loss = 2, .plain = true },
	{ "Acosh", 9, acosh, 1, 9, .loss = 2, .plain = true },
	{ "Atanh", 9, atanh, -0.9, 0.9, .loss = 2, .plain = true },
	{ "Erf", 9, erf, -4, 4, .loss = 2, .plain = true },
	{ "Sigmoid", 13, f_sigmoid, -9, 9, .loss = 4, .plain = true },
	{ "HardSigmoid", 6, f_hardsigmoid, -9, 9, .loss = 4, .plain = true },
	{ "HardSigmoid", 22, f_hardsigmoid2, -9, 9, { "alpha", "beta" }, { 0.5f, 0.25f }, .loss = 4, .plain = true },
	{ "HardSwish", 14, f_hardswish, -9, 9, .loss = 8 },
	{ "Relu", 14, f_relu, -9, 9, .loss = 1, .plain = true },
	{ "LeakyRelu", 16, f_leaky, -9, 9, { "alpha" }, { 0.25f }, .loss = 1, .plain = true },
	{ "ThresholdedRelu", 10, f_threshold, -2, 2, { "alpha" }, { 0.5f }, .loss = 1, .plain = true },
	{ "Elu", 6, f_elu, -9, 9, { "alpha" }, { 0.5f }, .loss = 2, .plain = true },
	{ "Celu", 28, f_celu, -9, 9, { "alpha" }, { 2 }, .loss = 4, .plain = true },
	{ "Selu", 6, f_selu, -9, 9, .loss = 4, .plain = true },
	{ "Gelu", 20, f_gelu, -2, 4, .loss = 32 },
	{ "Gelu", 20, f_gelu_tanh, -2, 4, .approximate = "tanh", .loss = 32 },
	{ "Softplus", 1, f_softplus, -9, 9, .loss = 4 },
	{ "Softsign", 22, f_softsign, -9, 9, .loss = 4 },
	{ "Mish", 18, f_mish, -9, 9, .loss = 8 },
	{ "Swish", 24, f_swish, -9, 9, { "alpha" }, { 0.5f }, .loss = 8 },
	{ "Shrink", 9, f_shrink, -4, 4, { "lambd", "bias" }, { 1.5f, 0.5f }, .loss = 1, .plain = true },
	{ "Clip", 6, f_clip, -2, 2, { "min", "max" }, { -0.5f, 0.75f }, .loss = 1, .plain = true },
};

static void check_formula(const struct formula *f, enum rg_dtype type, int64_t n)
{
	double tol = f->loss * mc_tolerance(type);
	struct math_case t;

	mc_start(&t, f->op, f->version);
	for (int k = 0; k < 2 && f->attr[k]; k++)
		mc_float(&t, f->attr[k], f->value[k]);
	if (f->approximate)
		mc_string(&t, "approximate", f->approximate);
	mc_in_random(&t, type, 1, MC_DIMS(n), f->lo, f->hi);
	if (f->plain)
		mc_special(&t, 0);
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, 1, MC_DIMS(n));
	assert_int_equal(t.out[0].dtype, type);
	for (int64_t i = 0; i < n; i++)
		mc_expect(&t, 0, i, f->f(mc_get(&t.in[0], i)), tol, f->plain ? tol * 1e-3 : tol);
	mc_free(&t);
}

static void test_formulas(void **state)
{
	for (size_t k = 0; k < sizeof(formulas) / sizeof(formulas[0]); k++)
		for (size_t f = 0; f < 4; f++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
				check_formula(&formulas[k], floats[f], sizes[s]);
}

/* Negative zero stays what it is where the operator keeps the sign. */
static void test_signed_zero(void **state)
{
	static const char *const ops[] = { "Abs", "Neg", "Ceil", "Floor", "Sqrt", "Tanh", "Erf", "Relu", "Round" };
	static const bool negative[] = { false, false, true, true, true, true, true, true, true };
	static const int versions[] = { 13, 13, 13, 13, 13, 13, 13, 14, 22 };
	struct math_case t;

	for (int k = 0; k < 9; k++) {
		mc_start(&t, ops[k], versions[k]);
		mc_in_list(&t, RG_F32, 1, MC_DIMS(1), MC_LIST(-0.0));
		mc_must_run(&t, 1);
		assert_true(mc_get(&t.out[0], 0) == 0);
		if (!!signbit(mc_get(&t.out[0], 0)) != negative[k])
			fail_msg("%s of -0 has the wrong sign", ops[k]);
		mc_free(&t);
	}
}

static void test_round_half_even(void **state)
{
	static const double want[] = { 0, 2, 2, -0.0, -2, -2, 0, 1 };
	struct math_case t;

	mc_start(&t, "Round", 22);
	mc_in_list(&t, RG_F16, 1, MC_DIMS(8), MC_LIST(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 0.75));
	mc_must_run(&t, 1);
	for (int i = 0; i < 8; i++)
		mc_expect(&t, 0, i, want[i], 0, 0);
	mc_free(&t);
}

/* The ends of each integer type, where negation wraps. */
static void test_integers(void **state)
{
	static const enum rg_dtype types[] = { RG_I8, RG_I16, RG_I32, RG_I64 };
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		double min = -ldexp(1, rg_dtype_bits(types[k]) - 1);
		const double x[] = { min, -7, 0, 9 };

		mc_start(&t, "Abs", 13);
		mc_in_list(&t, types[k], 1, MC_DIMS(4), x);
		mc_must_run(&t, 1);
		for (int i = 0; i < 4; i++)
			mc_expect(&t, 0, i, i ? fabs(x[i]) : min, 0, 0);
		mc_free(&t);
		mc_start(&t, "Neg", 13);
		mc_in_list(&t, types[k], 1, MC_DIMS(4), x);
		mc_must_run(&t, 1);
		for (int i = 0; i < 4; i++)
			mc_expect(&t, 0, i, i ? -x[i] : min, 0, 0);
		mc_free(&t);
		mc_start(&t, "Sign", 13);
		mc_in_list(&t, types[k], 1, MC_DIMS(4), x);
		mc_must_run(&t, 1);
		for (int i = 0; i < 4; i++)
			mc_expect(&t, 0, i, (x[i] > 0) - (x[i] < 0), 0, 0);
		mc_free(&t);
		mc_start(&t, "Relu", 14);
		mc_in_list(&t, types[k], 1, MC_DIMS(4), x);
		mc_must_run(&t, 1);
		for (int i = 0; i < 4; i++)
			mc_expect(&t, 0, i, x[i] > 0 ? x[i] : 0, 0, 0);
		mc_free(&t);
		mc_start(&t, "BitwiseNot", 18);
		mc_in_list(&t, types[k], 1, MC_DIMS(3), x + 1);
		mc_must_run(&t, 1);
		for (int i = 0; i < 3; i++)
			mc_expect(&t, 0, i, -x[i + 1] - 1, 0, 0);
		mc_free(&t);
	}
	mc_start(&t, "Sign", 13);
	mc_in_list(&t, RG_U64, 1, MC_DIMS(2), MC_LIST(0, 1.8e19));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 0, 0, 0);
	mc_expect(&t, 0, 1, 1, 0, 0);
	mc_free(&t);
	mc_start(&t, "Shrink", 9);
	mc_float(&t, "lambd", 1);
	mc_float(&t, "bias", 3);
	mc_in_list(&t, RG_U8, 1, MC_DIMS(4), MC_LIST(0, 1, 2, 255));
	mc_must_run(&t, 1);
	for (int i = 0; i < 4; i++)
		mc_expect(&t, 0, i, i == 3 ? 252 : 0, 0, 0); /* 2 - 3 does not fit: held at 0 */
	mc_free(&t);
}

static void test_clip_inputs(void **state)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_I8, RG_U16, RG_I32, RG_I64, RG_U64 };
	struct math_case t;

	for (int k = 0; k < 8; k++) {
		for (int form = 0; form < 4; form++) { /* which bounds are there */
			mc_start(&t, "Clip", 13);
			mc_in_list(&t, types[k], 1, MC_DIMS(5), MC_LIST(0, 3, 5, 8, 100));
			if (form & 1)
				mc_in_list(&t, types[k], 0, NULL, MC_LIST(4));
			else
				mc_absent(&t);
			if (form & 2)
				mc_in_list(&t, types[k], 0, NULL, MC_LIST(7));
			mc_must_run(&t, 1);
			for (int i = 0; i < 5; i++) {
				double v = mc_get(&t.in[0], i);

				v = form & 1 && v < 4 ? 4 : v;
				v = form & 2 && v > 7 ? 7 : v;
				mc_expect(&t, 0, i, v, 0, 0);
			}
			mc_free(&t);
		}
	}
	/* bounds the wrong way round: everything is the upper one */
	mc_start(&t, "Clip", 12);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(3), MC_LIST(-1, 1, 3));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(2));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(1));
	mc_must_run(&t, 1);
	for (int i = 0; i < 3; i++)
		mc_expect(&t, 0, i, 1, 0, 0);
	mc_free(&t);
	/* a bound of another type or of two elements is refused */
	mc_start(&t, "Clip", 13);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(1), MC_LIST(1));
	mc_in_list(&t, RG_F64, 0, NULL, MC_LIST(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Clip", 13);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(1), MC_LIST(1));
	mc_in_list(&t, RG_F32, 1, MC_DIMS(2), MC_LIST(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_tests(void **state)
{
	static const double x[] = { NAN, INFINITY, -INFINITY, 0, 1 };
	struct math_case t;

	for (int f = 0; f < 4; f++) {
		mc_start(&t, "IsNaN", 20);
		mc_in_list(&t, floats[f], 1, MC_DIMS(5), x);
		mc_must_run(&t, 1);
		assert_int_equal(t.out[0].dtype, RG_BOOL);
		for (int i = 0; i < 5; i++)
			mc_expect(&t, 0, i, i == 0, 0, 0);
		mc_free(&t);
		for (int form = 0; form < 4; form++) {
			mc_start(&t, "IsInf", 10);
			mc_int(&t, "detect_positive", form & 1);
			mc_int(&t, "detect_negative", form >> 1);
			mc_in_list(&t, floats[f], 1, MC_DIMS(5), x);
			mc_must_run(&t, 1);
			for (int i = 0; i < 5; i++)
				mc_expect(&t, 0, i, (i == 1 && form & 1) || (i == 2 && form & 2), 0, 0);
			mc_free(&t);
		}
	}
	mc_start(&t, "Not", 1);
	mc_in_list(&t, RG_BOOL, 1, MC_DIMS(2), MC_LIST(0, 1));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 1, 0, 0);
	mc_expect(&t, 0, 1, 0, 0, 0);
	mc_free(&t);
}

static void test_wrong_types(void **state)
{
	struct math_case t;

	mc_start(&t, "Exp", 13);
	mc_in(&t, RG_I32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Not", 1);
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Neg", 13);
	mc_in(&t, RG_U8, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Relu", 14);
	mc_absent(&t);
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_signed_zero),
		cmocka_unit_test(test_round_half_even),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_clip_inputs),
		cmocka_unit_test(test_tests),
		cmocka_unit_test(test_wrong_types),
	};

	return cmocka_run_group_tests_name("unary", tests, NULL, NULL);
}
