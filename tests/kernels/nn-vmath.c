/*
 * The error bounds that kernels/generic/vmath.h states, measured through the
 * kernels of every level of instructions that this machine has: every 4,099th
 * float of all there are, so every exponent of both signs, against libm in double.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "nn-case.h"
#include "sys/cpu.h"

enum { STEP = 4099, N = (int)((UINT64_C(0x100000000) + STEP - 1) / STEP) };

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static double softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double mish(double x)
{
	return x * tanh(softplus(x));
}

static double gelu(double x)
{
	return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_tanh(double x)
{
	return x * sigmoid(2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x));
}

static double elu(double x)
{
	return x < 0 ? expm1(x) : x;
}

enum unit { ULP, OF_X }; /* ulp of the result, or 2^-24 of |x| */

static const struct {
	const char *op;
	int version;
	const char *approximate;
	double (*exact)(double);
	double bound;
	float from, to;
	enum unit unit;
} functions[] = {
	{ "Exp", 13, NULL, exp, 2, -INFINITY, INFINITY, ULP },
	{ "Elu", 6, NULL, elu, 2, -INFINITY, INFINITY, ULP },
	{ "Log", 13, NULL, log, 2, 0, INFINITY, ULP },
	{ "Sigmoid", 13, NULL, sigmoid, 4, -88, INFINITY, ULP },
	{ "Swish", 24, NULL, silu, 4, -88, INFINITY, ULP },
	{ "Tanh", 13, NULL, tanh, 4, -INFINITY, INFINITY, ULP },
	{ "Softplus", 1, NULL, softplus, 3, -INFINITY, INFINITY, ULP },
	{ "Erf", 13, NULL, erf, 3, -INFINITY, INFINITY, ULP },
	{ "Mish", 18, NULL, mish, 6, -88, INFINITY, ULP },
	{ "Gelu", 20, "none", gelu, 8, -INFINITY, INFINITY, ULP },
	{ "Gelu", 20, "tanh", gelu_tanh, 8, -INFINITY, INFINITY, OF_X },
	{ "Sin", 7, NULL, sin, 2, -1e6f, 1e6f, ULP },
	{ "Cos", 7, NULL, cos, 2, -1e6f, 1e6f, ULP },
	{ "Sqrt", 13, NULL, sqrt, 0.5, 0, INFINITY, ULP },
};

/* In units of the last place; below the smallest normal number, of that. */
static double ulps(double got, double want)
{
	double size = fmax(fabs(want), 0x1p-126);

	return fabs(got - want) / exp2(floor(log2(size)) - 23);
}

/* The largest error of y over the elements within the range. */
static double worst(size_t f, const float *x, const float *y, float *at)
{
	double w = 0;

	for (int i = 0; i < N; i++) {
		double want = functions[f].exact((double)x[i]), e;

		if (isnan(x[i])) {
			assert_true(isnan(y[i]));
			continue;
		}
		if (!(x[i] >= functions[f].from && x[i] <= functions[f].to) || isnan(want))
			continue;
		if (fabs(want) > 3.4028234e38) { /* beyond float, or an infinity: it, or the largest, rounded */
			assert_true(fabsf(y[i]) >= 3.4028e38f && !signbit(y[i]) == !signbit(want));
			continue;
		}
		e = functions[f].unit == ULP ? ulps((double)y[i], want) :
					       fabs((double)y[i] - want) / fmax(fabs((double)x[i]), 0x1p-126) * 0x1p24;
		if (!(e <= w)) {
			w = e;
			*at = x[i];
		}
	}
	return w;
}

static void test_bounds(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		const struct rg_kernel *const *list;
		int64_t n = N;
		struct nn_case t;
		int count, runs = 0;
		float *x, *y;

		nn_start(&t, functions[f].op, functions[f].version);
		if (functions[f].approximate)
			nn_string(&t, "approximate", functions[f].approximate);
		x = nn_input(&t, NN_UNIFORM, 1, &n);
		for (int i = 0; i < N; i++)
			memcpy(&x[i], &(uint32_t){ (uint32_t)i * STEP }, sizeof(float));
		assert_int_equal(nn_infer(&t, 1, &err), 0);
		count = rg_kernel_list("", functions[f].op, &list);
		for (int k = 0; k < count; k++) {
			float at = 0;
			double w;

			if (!strcmp(list[k]->name, "ref") || (list[k]->isa & ~cpu.isa))
				continue;
			assert_true(nn_run(&t, list[k]->name, 1, true, &y));
			w = worst(f, x, y, &at);
			print_message("# %s %s: %.2f at %g\n", t.what, list[k]->name, w, (double)at);
			if (!(w <= functions[f].bound))
				fail_msg("%s with %s is off by %.2f units at %.9g, the bound is %g", t.what, list[k]->name, w,
					 (double)at, functions[f].bound);
			runs++;
		}
		assert_true(runs > 0);
		nn_free(&t);
	}
}

/* Bases of every exponent to powers that stay within float, and all pairs of numbers
 * that C's pow has a rule for. */
static void test_pow(void **state)
{
	static const float special[] = { 0.0f, -0.0f, 1, -1, 2, -2, 3, -3, 0.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e30f,
					 -1e30f, 1e-30f, 1e-45f, -1e-45f, 16777215, 16777216, -16777215, 8388609,
					 33554432, -33554432, 0.99999994f, 1.0000001f };
	enum { S = sizeof(special) / sizeof(special[0]), RANDOM = 300000, ALL = RANDOM + S * S };
	uint64_t stream = rg_rng_stream(7, "pow");
	struct rg_error err = RG_ERROR_INIT;
	const struct rg_kernel *const *list;
	int64_t n = ALL;
	struct rg_cpu cpu;
	struct nn_case t;
	float *x, *p, *y;
	int count;

	rg_cpu_detect("", &cpu);
	nn_start(&t, "Pow", 13);
	x = nn_input(&t, NN_UNIFORM, 1, &n);
	p = nn_input(&t, NN_UNIFORM, 1, &n);
	for (int i = 0; i < RANDOM; i++) {
		memcpy(&x[i], &(uint32_t){ (uint32_t)rg_rng_u64(stream, (uint64_t)i) & 0x7fffffff }, sizeof(float));
		p[i] *= i % 2 ? 130 / fabsf(log2f(x[i])) : 3;
		if (i % 5 == 0) {
			x[i] = -x[i];
			p[i] = rintf(p[i] * 4);
		}
	}
	for (int i = 0; i < S * S; i++) {
		x[RANDOM + i] = special[i / S];
		p[RANDOM + i] = special[i % S];
	}
	assert_int_equal(nn_infer(&t, 1, &err), 0);
	count = rg_kernel_list("", "Pow", &list);
	for (int k = 0; k < count; k++) {
		double w = 0;

		if (!strcmp(list[k]->name, "ref") || (list[k]->isa & ~cpu.isa))
			continue;
		assert_true(nn_run(&t, list[k]->name, 1, true, &y));
		for (int i = 0; i < ALL; i++) {
			double want = pow((double)x[i], (double)p[i]);

			if (isnan(want) || fabs(want) > 3.4028234e38) {
				if (!isnan(want) != !isnan(y[i]) ||
				    (!isnan(want) && !(fabsf(y[i]) >= 3.4028e38f && !signbit(y[i]) == !signbit(want))))
					fail_msg("%s: %.9g to the power of %.9g is %g, not %g", list[k]->name, (double)x[i],
						 (double)p[i], (double)y[i], want);
				continue;
			}
			if (i >= RANDOM && want == 0)
				assert_true(y[i] == 0 && !signbit(y[i]) == !signbit(want));
			w = fmax(w, ulps((double)y[i], want));
		}
		print_message("# Pow %s: %.2f\n", list[k]->name, w);
		assert_true(w <= 2);
	}
	nn_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_pow),
	};

	return cmocka_run_group_tests_name("nn-vmath", tests, NULL, NULL);
}
