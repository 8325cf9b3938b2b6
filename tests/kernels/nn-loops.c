/*
 * The vectorised elementwise, normalising, pooling and moving loops against the
 * reference, over sizes around a vector's length, with special values where the
 * operator takes them one by one; and the functions of vmath.h against libm in
 * double over their whole range.
 *
 * Tolerances: elementwise functions 2e-6 relative and 1e-37 absolute (results
 * below the smallest normal number are lost where the formula divides); sums
 * over a row of up to 3,000 elements 1e-5.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/generic/vmath.h"
#include "nn-case.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })

static const int64_t sizes[] = { 0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 1000, 4097 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_unary(void **state)
{
	static const struct {
		const char *op;
		int version;
		double rtol, atol;
	} ops[] = {
		{ "Abs", 13, 0, 0 }, { "Erf", 13, 1.5e-6, 5e-7 }, { "Exp", 13, 3e-7, 2e-45 }, { "HardSwish", 14, 3e-7, 1e-44 },
		{ "Neg", 13, 0, 0 }, { "Relu", 14, 0, 0 }, { "Sigmoid", 13, 5e-7, 2e-38 }, { "Sqrt", 13, 1e-7, 0 },
		{ "Tanh", 13, 1e-6, 1e-44 }, { "HardSigmoid", 6, 3e-7, 1e-7 }, { "LeakyRelu", 6, 1e-7, 2e-45 },
		{ "Clip", 13, 0, 0 },
	};

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		for (size_t i = 0; i < N_SIZES; i++) {
			struct nn_case t;
			float *x;

			nn_start(&t, ops[o].op, ops[o].version);
			x = nn_input(&t, NN_SPECIAL, 1, &sizes[i]);
			for (int64_t k = 0; k < sizes[i]; k += 2) /* beyond [-1, 1) too */
				x[k] *= 9;
			if (!strcmp(ops[o].op, "Clip")) {
				*nn_input(&t, NN_UNIFORM, 0, NULL) = -0.25f;
				*nn_input(&t, NN_UNIFORM, 0, NULL) = 0.5f;
			}
			assert_true(nn_check_all(&t, ops[o].rtol, ops[o].atol, true) >= 3);
		}
	}
}

static void test_clip_attributes(void **state)
{
	struct nn_case t;

	nn_start(&t, "Clip", 6);
	nn_float(&t, "min", 0);
	nn_float(&t, "max", 0.5f);
	nn_input(&t, NN_SPECIAL, 1, D(100));
	assert_true(nn_check_all(&t, 0, 0, true) >= 3);
	nn_start(&t, "Clip", 13);
	nn_input(&t, NN_SPECIAL, 1, D(100));
	nn_absent(&t);
	*nn_input(&t, NN_UNIFORM, 0, NULL) = 0.25f;
	assert_true(nn_check_all(&t, 0, 0, true) >= 3);
}

static void test_binary(void **state)
{
	static const char *const ops[] = { "Add", "Sub", "Mul", "Div" };
	static const struct {
		int ra, rb;
		int64_t a[4], b[4];
	} shapes[] = {
		{ 4, 4, { 2, 3, 5, 7 }, { 2, 3, 5, 7 } },  { 4, 1, { 2, 3, 5, 33 }, { 33 } },
		{ 1, 4, { 33 }, { 2, 3, 5, 33 } },         { 4, 4, { 2, 6, 5, 7 }, { 1, 6, 1, 1 } },
		{ 4, 4, { 1, 6, 1, 1 }, { 2, 6, 5, 7 } },  { 3, 0, { 4, 5, 6 }, { 0 } },
		{ 0, 3, { 0 }, { 4, 5, 6 } },              { 0, 0, { 0 }, { 0 } },
		{ 2, 2, { 17, 1 }, { 1, 19 } },            { 4, 3, { 2, 1, 4, 1 }, { 3, 1, 5 } },
		{ 2, 1, { 3, 9001 }, { 9001 } },           { 3, 3, { 0, 5, 6 }, { 1, 5, 6 } },
		{ 3, 3, { 2, 1, 6 }, { 2, 5, 1 } },        { 1, 1, { 100000 }, { 1 } },
	};

	for (size_t o = 0; o < 4; o++) {
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			struct nn_case t;

			nn_start(&t, ops[o], 13);
			nn_input(&t, NN_SPECIAL, shapes[i].ra, shapes[i].a);
			nn_input(&t, NN_SPECIAL, shapes[i].rb, shapes[i].b);
			assert_true(nn_check_all(&t, 0, 0, true) >= 3);
		}
	}
}

static void test_norm(void **state)
{
	static const int64_t lengths[] = { 1, 2, 7, 8, 16, 31, 33, 64, 100, 768, 3001 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int64_t n = lengths[i];
		struct nn_case t;
		float *x;

		for (int version = 11; version <= 13; version += 2) {
			nn_start(&t, "Softmax", version);
			nn_int(&t, "axis", 2);
			x = nn_input(&t, NN_UNIFORM, 3, D(2, 3, n));
			for (int64_t k = 0; k < 6 * n; k++)
				x[k] *= 20;
			assert_true(nn_check_all(&t, 1e-5, 1e-9, false) >= 3);
		}
		nn_start(&t, "LayerNormalization", 17);
		nn_input(&t, NN_UNIFORM, 3, D(2, 3, n));
		nn_input(&t, NN_UNIFORM, 1, D(n));
		if (i % 2)
			nn_input(&t, NN_UNIFORM, 1, D(n));
		assert_true(nn_check_all(&t, 1e-5, 2e-5, false) >= 3);
		nn_start(&t, "BatchNormalization", 15);
		nn_input(&t, NN_UNIFORM, 3, D(2, 3, n));
		for (int k = 0; k < 4; k++)
			nn_input(&t, NN_POSITIVE, 1, D(3));
		assert_true(nn_check_all(&t, 1e-5, 1e-6, false) >= 3);
		nn_start(&t, "ReduceMean", 13);
		nn_ints(&t, "axes", 2, D(-1, 1));
		nn_input(&t, NN_UNIFORM, 3, D(5, 2, n));
		assert_true(nn_check_all(&t, 1e-5, 1e-6, false) >= 3);
		nn_start(&t, "GlobalAveragePool", 1);
		nn_input(&t, NN_UNIFORM, 4, D(2, 3, 1, n));
		assert_true(nn_check_all(&t, 1e-5, 1e-6, false) >= 3);
	}
}

/* A mean over leading axes is not contiguous: it must be refused, not wrong. */
static void test_mean_refuses(void **state)
{
	struct nn_case t;

	nn_start(&t, "ReduceMean", 13);
	nn_ints(&t, "axes", 1, D(0));
	nn_input(&t, NN_UNIFORM, 2, D(4, 5));
	assert_int_equal(nn_check_all(&t, 0, 0, false), 0);
}

static void test_transpose(void **state)
{
	static const struct {
		int rank;
		int64_t dim[5], perm[5];
	} cases[] = {
		{ 2, { 33, 47 }, { 1, 0 } },           { 2, { 1, 47 }, { 1, 0 } },
		{ 3, { 5, 17, 19 }, { 0, 2, 1 } },     { 3, { 5, 17, 19 }, { 2, 1, 0 } },
		{ 4, { 2, 9, 12, 64 }, { 0, 2, 1, 3 } }, { 4, { 2, 9, 12, 20 }, { 0, 2, 3, 1 } },
		{ 4, { 2, 9, 12, 20 }, { 0, 3, 1, 2 } }, { 4, { 2, 3, 4, 5 }, { 3, 2, 1, 0 } },
		{ 4, { 2, 3, 4, 5 }, { 1, 0, 3, 2 } }, { 4, { 2, 3, 4, 5 }, { 0, 1, 2, 3 } },
		{ 5, { 2, 1, 3, 4, 5 }, { 4, 1, 0, 3, 2 } }, { 3, { 0, 4, 5 }, { 2, 0, 1 } },
		{ 1, { 17 }, { 0 } },                  { 0, { 0 }, { 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nn_case t;

		nn_start(&t, "Transpose", 13);
		nn_ints(&t, "perm", cases[i].rank, cases[i].perm);
		nn_input(&t, NN_UNIFORM, cases[i].rank, cases[i].dim);
		assert_true(nn_check_all(&t, 0, 0, false) >= 3);
	}
}

static void test_pool(void **state)
{
	static const struct {
		int n;
		int64_t in[2], kernel[2], stride[2], dilation[2], pads[4], ceil, with_pad;
	} cases[] = {
		{ 2, { 112, 37 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0 },
		{ 2, { 9, 9 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0 }, 0, 0 },
		{ 2, { 9, 9 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0 }, 1, 1 },
		{ 2, { 9, 10 }, { 3, 2 }, { 3, 2 }, { 1, 1 }, { 1, 1, 2, 0 }, 1, 1 },
		{ 2, { 8, 33 }, { 5, 5 }, { 1, 1 }, { 1, 1 }, { 2, 2, 2, 2 }, 0, 1 },
		{ 2, { 8, 33 }, { 5, 5 }, { 1, 1 }, { 1, 1 }, { 4, 3, 2, 1 }, 0, 0 },
		{ 2, { 12, 13 }, { 3, 2 }, { 1, 3 }, { 2, 3 }, { 1, 0, 0, 1 }, 1, 1 },
		{ 2, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }, 0, 0 },
		{ 1, { 100 }, { 3 }, { 2 }, { 1 }, { 1, 1 }, 0, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int max = 0; max < 2; max++) {
			struct nn_case t;

			nn_start(&t, max ? "MaxPool" : "AveragePool", max ? 12 : 19);
			nn_ints(&t, "kernel_shape", cases[i].n, cases[i].kernel);
			nn_ints(&t, "strides", cases[i].n, cases[i].stride);
			nn_ints(&t, "dilations", cases[i].n, cases[i].dilation);
			nn_ints(&t, "pads", 2 * cases[i].n, cases[i].pads);
			nn_int(&t, "ceil_mode", cases[i].ceil);
			if (!max)
				nn_int(&t, "count_include_pad", cases[i].with_pad);
			nn_input(&t, max ? NN_SPECIAL : NN_UNIFORM, cases[i].n + 2,
				 D(2, 3, cases[i].in[0], cases[i].in[1]));
			assert_true(nn_check_all(&t, max ? 0 : 1e-5, max ? 0 : 1e-6, max) >= 3);
		}
	}
}

static double ulps(float got, double want)
{
	float near = (float)want;
	double ulp = (double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near);

	return fabs((double)got - want) / ulp;
}

/* The bounds that vmath.h states, on every 1,009th float of the whole range. */
static void test_vmath_bounds(void **state)
{
	double worst_exp = 0, worst_sigmoid = 0, worst_tanh = 0, worst_erf = 0, worst_erf_rel = 0;

	for (uint64_t u = 0; u < UINT64_C(0x100000000); u += 1009) {
		uint32_t bits = (uint32_t)u;
		double d, e;
		float x;

		memcpy(&x, &bits, sizeof(x));
		if (isnan(x)) {
			assert_true(isnan(rg_vexpf(x)) && isnan(rg_vtanhf(x)) && isnan(rg_verff(x)));
			continue;
		}
		d = (double)x;
		if (exp(d) <= 3.4028234e38)
			worst_exp = fmax(worst_exp, ulps(rg_vexpf(x), exp(d)));
		else if (exp(d) > 3.4028236e38)
			assert_true(isinf(rg_vexpf(x)));
		if (x > -87)
			worst_sigmoid = fmax(worst_sigmoid, ulps(rg_vsigmoidf(x), 1 / (1 + exp(-d))));
		else
			assert_true(fabs((double)rg_vsigmoidf(x) - 1 / (1 + exp(-d))) < 2e-38);
		worst_tanh = fmax(worst_tanh, ulps(rg_vtanhf(x), tanh(d)));
		e = fabs((double)rg_verff(x) - erf(d));
		worst_erf = fmax(worst_erf, e);
		if (fabs(d) > 1e-30)
			worst_erf_rel = fmax(worst_erf_rel, e / fabs(erf(d)));
	}
	print_message("# exp %.2f, sigmoid %.2f, tanh %.2f ulp; erf %.2g absolute, %.2g relative\n", worst_exp,
		      worst_sigmoid, worst_tanh, worst_erf, worst_erf_rel);
	assert_true(worst_exp <= 2 && worst_sigmoid <= 4 && worst_tanh <= 8);
	assert_true(worst_erf <= 5e-7 && worst_erf_rel <= 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unary),
		cmocka_unit_test(test_clip_attributes),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_mean_refuses),
		cmocka_unit_test(test_transpose),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_vmath_bounds),
	};

	return cmocka_run_group_tests_name("nn-loops", tests, NULL, NULL);
}
