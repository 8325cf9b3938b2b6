/*
 * Softmax and the normalisations against their formulas in double, element by
 * element with index arithmetic of the test's own.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype floats[] = { RG_F32, RG_F64, RG_F16, RG_BF16 };
static const int64_t dims[] = { 2, 6, 3, 100 };
enum { RANK = 4, COUNT = 3600 };

/* Mean and variance of the elements whose group is g. */
static void stats(const struct math_case *t, const int64_t *group, int64_t g, double *mean, double *var)
{
	double sum = 0, n = 0;

	for (int64_t i = 0; i < COUNT; i++) {
		sum += group[i] == g ? mc_get(&t->in[0], i) : 0;
		n += group[i] == g;
	}
	*mean = sum / n;
	sum = 0;
	for (int64_t i = 0; i < COUNT; i++)
		sum += group[i] == g ? pow(mc_get(&t->in[0], i) - *mean, 2) : 0;
	*var = sum / n;
}

/* ---- softmax ---- */

static void check_softmax(const char *op, int version, int axis, enum rg_dtype type)
{
	int64_t inner = 1, n = 1;
	int a = axis < 0 ? axis + RANK : axis, end = version >= 13 ? a + 1 : RANK;
	double tol = 16 * mc_tolerance(type);
	struct math_case t;

	for (int d = a; d < end; d++)
		n *= dims[d];
	for (int d = end; d < RANK; d++)
		inner *= dims[d];
	mc_start(&t, op, version);
	mc_int(&t, "axis", axis);
	mc_in_random(&t, type, RANK, dims, -20, 20);
	mc_must_run(&t, 1);
	for (int64_t r = 0; r < COUNT / n; r++) {
		int64_t first = r / inner * n * inner + r % inner, best = 0;
		double max = -INFINITY, sum = 0;

		for (int64_t i = 0; i < n; i++) {
			double v = mc_get(&t.in[0], first + i * inner);

			best = v > max ? i : best;
			max = v > max ? v : max;
		}
		for (int64_t i = 0; i < n; i++)
			sum += exp(mc_get(&t.in[0], first + i * inner) - max);
		for (int64_t i = 0; i < n; i++) {
			double v = mc_get(&t.in[0], first + i * inner) - max;

			if (op[0] == 'S')
				mc_expect(&t, 0, first + i * inner, exp(v) / sum, tol, tol * 1e-3);
			else if (op[0] == 'L')
				mc_expect(&t, 0, first + i * inner, v - log(sum), tol, tol);
			else
				mc_expect(&t, 0, first + i * inner, i == best, 0, 0);
		}
	}
	mc_free(&t);
}

static void test_softmax(void **state)
{
	static const char *const ops[] = { "Softmax", "LogSoftmax", "Hardmax" };
	static const int versions[] = { 1, 11, 13 };

	for (int o = 0; o < 3; o++)
		for (int v = 0; v < 3; v++)
			for (int axis = -RANK; axis < RANK; axis++)
				for (int k = 0; k < 4; k++)
					check_softmax(ops[o], versions[v], axis, floats[k]);
}

static void test_softmax_edges(void **state)
{
	struct math_case t;

	mc_start(&t, "Softmax", 13); /* large ones do not overflow */
	mc_in_list(&t, RG_F32, 2, MC_DIMS(3, 2), MC_LIST(3e38, 3e38, 1e4, -INFINITY, NAN, 1));
	mc_must_run(&t, 1);
	for (int i = 0; i < 6; i++)
		mc_expect(&t, 0, i, MC_LIST(0.5, 0.5, 1, 0, NAN, NAN)[i], 0, 0);
	mc_free(&t);
	mc_start(&t, "Softmax", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 0));
	mc_must_run(&t, 1);
	mc_free(&t);
	mc_start(&t, "Softmax", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 2));
	mc_int(&t, "axis", 2);
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Hardmax", 13); /* the first of equal ones */
	mc_in_list(&t, RG_F32, 1, MC_DIMS(4), MC_LIST(-1, 3, 3, 2));
	mc_must_run(&t, 1);
	for (int i = 0; i < 4; i++)
		mc_expect(&t, 0, i, i == 1, 0, 0);
	mc_free(&t);
}

/* ---- layer norms ---- */

static void check_layernorm(int axis, enum rg_dtype type, int bias, bool small_scale)
{
	static int64_t group[COUNT];
	int a = axis < 0 ? axis + RANK : axis;
	int64_t n = 1, stat_dims[RANK];
	double tol = 16 * mc_tolerance(type), mean, var;
	struct math_case t;

	for (int d = 0; d < RANK; d++) {
		n *= d >= a ? dims[d] : 1;
		stat_dims[d] = d >= a ? 1 : dims[d];
	}
	for (int64_t i = 0; i < COUNT; i++)
		group[i] = i / n;
	mc_start(&t, "LayerNormalization", 17);
	mc_int(&t, "axis", axis);
	mc_float(&t, "epsilon", 0.125f);
	mc_in_random(&t, type, RANK, dims, -1, 3);
	/* the whole normalised shape, or a part that broadcasts to it */
	mc_in_random(&t, type, small_scale ? 2 : RANK - a, small_scale ? MC_DIMS(3, 1) : dims + a, -2, 2);
	if (bias)
		mc_in_random(&t, type, 1, dims + 3, -2, 2);
	mc_must_run(&t, 3);
	mc_expect_shape(&t, 0, RANK, dims);
	mc_expect_shape(&t, 1, RANK, stat_dims);
	assert_int_equal(t.out[1].dtype, RG_F32);
	assert_int_equal(t.out[2].dtype, RG_F32);
	for (int64_t g = 0; g < COUNT / n; g++) {
		stats(&t, group, g, &mean, &var);
		mc_expect(&t, 1, g, mean, 1e-5, 1e-5);
		mc_expect(&t, 2, g, 1 / sqrt(var + 0.125), 1e-5, 0);
		for (int64_t i = g * n; i < (g + 1) * n; i++) {
			double y = (mc_get(&t.in[0], i) - mean) / sqrt(var + 0.125);

			y *= mc_get(&t.in[1], mc_broadcast_index(&t.in[1].shape, &t.in[0].shape, i));
			y += bias ? mc_get(&t.in[2], i % dims[3]) : 0;
			mc_expect(&t, 0, i, y, tol, tol);
		}
	}
	mc_free(&t);
}

static void test_layernorm(void **state)
{
	struct math_case t;

	for (int axis = 1; axis < RANK; axis++)
		for (int k = 0; k < 4; k++)
			for (int form = 0; form < 4; form++)
				check_layernorm(form & 1 ? axis : axis - RANK, floats[k], form & 1, form & 2);
	mc_start(&t, "LayerNormalization", 17);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 1, MC_DIMS(4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_rmsnorm(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		double tol = 16 * mc_tolerance(floats[k]);

		mc_start(&t, "RMSNormalization", 23);
		mc_int(&t, "axis", 2);
		mc_in_random(&t, floats[k], RANK, dims, -1, 3);
		mc_in_random(&t, floats[k], 2, dims + 2, -2, 2);
		mc_must_run(&t, 1);
		for (int64_t g = 0; g < COUNT / 300; g++) {
			double sum = 0;

			for (int64_t i = 0; i < 300; i++)
				sum += pow(mc_get(&t.in[0], g * 300 + i), 2);
			for (int64_t i = 0; i < 300; i++)
				mc_expect(&t, 0, g * 300 + i,
					  mc_get(&t.in[0], g * 300 + i) / sqrt(sum / 300 + (double)1e-5f) *
						  mc_get(&t.in[1], i),
					  tol, tol);
		}
		mc_free(&t);
	}
}

/* ---- by channels ---- */

static void check_channels(const char *op, int version, enum rg_dtype type, int64_t groups)
{
	static int64_t group[COUNT];
	int64_t params = version == 18 ? groups : 6, each = 6 / groups;
	double tol = 16 * mc_tolerance(type), mean = 0, var = 0;
	struct math_case t;

	mc_start(&t, op, version);
	if (op[0] == 'G')
		mc_int(&t, "num_groups", groups);
	mc_float(&t, "epsilon", 0.125f);
	mc_in_random(&t, type, RANK, dims, -1, 3);
	mc_in_random(&t, type, 1, MC_DIMS(params), -2, 2);
	mc_in_random(&t, type, 1, MC_DIMS(params), -2, 2);
	mc_must_run(&t, 1);
	for (int64_t i = 0; i < COUNT; i++)
		group[i] = i / (300 * each);
	for (int64_t i = 0; i < COUNT; i++) {
		int64_t c = i / 300 % 6, p = version == 18 ? c / each : c;

		if (i % (300 * each) == 0)
			stats(&t, group, group[i], &mean, &var);
		mc_expect(&t, 0, i,
			  (mc_get(&t.in[0], i) - mean) / sqrt(var + 0.125) * mc_get(&t.in[1], p) +
				  mc_get(&t.in[2], p),
			  tol, 4 * tol);
	}
	mc_free(&t);
}

static void test_instance_and_group(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		check_channels("InstanceNormalization", 6, floats[k], 6);
		for (int64_t g = 1; g <= 6; g++) {
			if (6 % g)
				continue;
			check_channels("GroupNormalization", 18, floats[k], g);
			check_channels("GroupNormalization", 21, floats[k], g);
		}
	}
	mc_start(&t, "GroupNormalization", 21);
	mc_int(&t, "num_groups", 4);
	mc_in(&t, RG_F32, RANK, dims);
	mc_in(&t, RG_F32, 1, MC_DIMS(6));
	mc_in(&t, RG_F32, 1, MC_DIMS(6));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void batchnorm(struct math_case *t, int version, enum rg_dtype type, int rank, const int64_t *shape)
{
	mc_start(t, "BatchNormalization", version);
	if (version < 7)
		mc_int(t, "is_test", 1);
	mc_in_random(t, type, 4, dims, -1, 3);
	for (int i = 1; i < 4; i++)
		mc_in_random(t, type, rank, shape, -2, 2);
	mc_in_random(t, type, rank, shape, 0.5, 2);
}

static void test_batchnorm(void **state)
{
	static const int versions[] = { 1, 6, 7, 9, 14, 15 };
	struct math_case t;

	for (int v = 0; v < 6; v++) {
		for (int k = 0; k < 4; k++) {
			double tol = 16 * mc_tolerance(floats[k]);

			for (int per_activation = 0; per_activation <= (versions[v] < 9); per_activation++) {
				batchnorm(&t, versions[v], floats[k], per_activation ? 3 : 1, dims + 1);
				if (per_activation)
					mc_int(&t, "spatial", 0);
				mc_must_run(&t, 1);
				for (int64_t i = 0; i < COUNT; i++) {
					int64_t p = per_activation ? i % 1800 : i / 300 % 6;

					mc_expect(&t, 0, i,
						  (mc_get(&t.in[0], i) - mc_get(&t.in[3], p)) /
								  sqrt(mc_get(&t.in[4], p) + (double)1e-5f) *
								  mc_get(&t.in[1], p) +
							  mc_get(&t.in[2], p),
						  tol, 4 * tol);
				}
				mc_free(&t);
			}
		}
	}
	batchnorm(&t, 6, RG_F32, 1, dims + 1); /* training as old versions ask for it */
	t.node.n_attrs = 0;
	assert_int_equal(mc_run(&t, 1), RG_ENOTSUP_MODEL);
	mc_free(&t);
	batchnorm(&t, 15, RG_F32, 1, dims + 1); /* it has three outputs now (train.c), not five */
	mc_int(&t, "training_mode", 1);
	assert_int_equal(mc_run(&t, 5), RG_ENOTSUP_MODEL);
	mc_free(&t);
	batchnorm(&t, 9, RG_F32, 1, dims + 1);
	assert_int_equal(mc_run(&t, 3), RG_ENOTSUP_MODEL);
	mc_free(&t);
	batchnorm(&t, 15, RG_F32, 1, dims + 2); /* not one a channel */
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

/* ---- the others ---- */

static void test_lp(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		for (int p = 1; p <= 2; p++) {
			double tol = 4 * mc_tolerance(floats[k]);

			mc_start(&t, "LpNormalization", 22);
			mc_int(&t, "axis", 1);
			mc_int(&t, "p", p);
			mc_in_random(&t, floats[k], RANK, dims, -1, 3);
			for (int c = 0; c < 6; c++) /* a norm of 0 */
				mc_set(&t.in[0], c * 300 + 5, 0);
			mc_must_run(&t, 1);
			for (int64_t i = 0; i < COUNT; i++) {
				double sum = 0, x = mc_get(&t.in[0], i);

				for (int c = 0; c < 6; c++)
					sum += pow(
					    fabs(mc_get(&t.in[0], i / 1800 * 1800 + c * 300 + i % 300)), p);
				mc_expect(&t, 0, i, sum == 0 ? 0 : x / pow(sum, 1.0 / p), tol, 0);
			}
			mc_free(&t);
		}
	}
	mc_start(&t, "LpNormalization", 1);
	mc_int(&t, "p", 3);
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_mvn(void **state)
{
	static int64_t group[COUNT];
	struct math_case t;
	double mean[100], var[100];

	for (int k = 0; k < 4; k++) {
		for (int form = 0; form < 2; form++) {
			double tol = 16 * mc_tolerance(floats[k]);

			mc_start(&t, "MeanVarianceNormalization", 13);
			if (form) /* all but the last axis */
				mc_ints(&t, "axes", 3, MC_DIMS(0, -3, 2));
			mc_in_random(&t, floats[k], RANK, dims, -1, 3);
			mc_must_run(&t, 1);
			for (int64_t i = 0; i < COUNT; i++)
				group[i] = form ? i % 100 : i / 300 % 6;
			for (int64_t g = 0; g < (form ? 100 : 6); g++)
				stats(&t, group, g, &mean[g], &var[g]);
			for (int64_t i = 0; i < COUNT; i++)
				mc_expect(&t, 0, i,
					  (mc_get(&t.in[0], i) - mean[group[i]]) /
					      (sqrt(var[group[i]]) + 1e-9),
					  tol, tol);
			mc_free(&t);
		}
	}
	mc_start(&t, "MeanVarianceNormalization", 13); /* the default axes need four dimensions */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_lrn(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		for (int size = 1; size <= 9; size++) {
			double tol = 8 * mc_tolerance(floats[k]);

			mc_start(&t, "LRN", 13);
			mc_int(&t, "size", size);
			mc_float(&t, "alpha", 0.5f);
			mc_float(&t, "beta", 0.25f);
			mc_float(&t, "bias", 2);
			mc_in_random(&t, floats[k], RANK, dims, -3, 3);
			mc_must_run(&t, 1);
			for (int64_t i = 0; i < COUNT; i++) {
				int c = (int)(i / 300 % 6), from = c - (size - 1) / 2, to = c + size / 2;
				double sum = 0;

				for (int j = from < 0 ? 0 : from; j <= to && j < 6; j++)
					sum += pow(mc_get(&t.in[0], i + (j - c) * 300), 2);
				mc_expect(&t, 0, i, mc_get(&t.in[0], i) / pow(2 + 0.5 / size * sum, 0.25),
					  tol, 0);
			}
			mc_free(&t);
		}
	}
	mc_start(&t, "LRN", 13);
	mc_in(&t, RG_F32, RANK, dims);
	assert_int_equal(mc_run(&t, 1), -EINVAL); /* no size */
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_softmax_edges),
		cmocka_unit_test(test_layernorm),
		cmocka_unit_test(test_rmsnorm),
		cmocka_unit_test(test_instance_and_group),
		cmocka_unit_test(test_batchnorm),
		cmocka_unit_test(test_lp),
		cmocka_unit_test(test_mvn),
		cmocka_unit_test(test_lrn),
	};

	return cmocka_run_group_tests_name("norm", tests, NULL, NULL);
}
