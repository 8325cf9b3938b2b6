/*
 * Training: BatchNormalization with statistics of the batch, and the optimisers,
 * against their formulas element by element; CumProd and BitCast.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype floats[] = { RG_F32, RG_F64, RG_F16, RG_BF16 };

static void check_batch(enum rg_dtype x, enum rg_dtype stats, int rank, const int64_t *dims)
{
	struct rg_shape s = rg_shape_of(rank, dims);
	int64_t channels = rank > 1 ? dims[1] : 1, inner = rank > 2 ? rg_shape_count_range(&s, 2, rank) : 1;
	double tol = mc_tolerance(x == RG_F64 && stats != RG_F64 ? stats : x) * 4;
	struct math_case t;

	mc_start(&t, "BatchNormalization", 15);
	mc_int(&t, "training_mode", 1);
	mc_float(&t, "momentum", 0.75f);
	mc_float(&t, "epsilon", 0.01f);
	mc_in_random(&t, x, rank, dims, -2, 3);
	mc_in_random(&t, x, 1, &channels, 0.5, 2);
	mc_in_random(&t, x, 1, &channels, -1, 1);
	mc_in_random(&t, stats, 1, &channels, -1, 1);
	mc_in_random(&t, stats, 1, &channels, 0.5, 2);
	mc_must_run(&t, 3);
	assert_int_equal(t.out[1].dtype, stats);
	for (int64_t k = 0; k < channels; k++) {
		double sum = 0, square = 0, mean, var, n = (double)(dims[0] * inner);

		for (int64_t i = 0; i < dims[0] * inner; i++)
			sum += mc_get(&t.in[0], (i / inner * channels + k) * inner + i % inner);
		mean = sum / n;
		for (int64_t i = 0; i < dims[0] * inner; i++)
			square += pow(mc_get(&t.in[0], (i / inner * channels + k) * inner + i % inner) - mean, 2);
		var = square / n;
		mc_expect(&t, 1, k, 0.75 * mc_get(&t.in[3], k) + 0.25 * mean, mc_tolerance(stats) * 4, 1e-3 * tol);
		mc_expect(&t, 2, k, 0.75 * mc_get(&t.in[4], k) + 0.25 * var, mc_tolerance(stats) * 4, 1e-3 * tol);
		for (int64_t i = 0; i < dims[0] * inner; i++) {
			int64_t at = (i / inner * channels + k) * inner + i % inner;

			mc_expect(&t, 0, at,
				  (mc_get(&t.in[0], at) - mean) / sqrt(var + (double)0.01f) * mc_get(&t.in[1], k) +
				      mc_get(&t.in[2], k), tol, tol);
		}
	}
	mc_free(&t);
}

static void test_batch_training(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		check_batch(floats[k], floats[k], 4, MC_DIMS(3, 5, 4, 2));
		check_batch(floats[k], RG_F32, 2, MC_DIMS(6, 3));
		check_batch(floats[k], RG_F64, 1, MC_DIMS(7));
		check_batch(floats[k], floats[k], 3, MC_DIMS(1, 2, 300));
	}
	mc_start(&t, "BatchNormalization", 15); /* running statistics only in training */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	for (int i = 0; i < 4; i++)
		mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 3), RG_ENOTSUP_MODEL);
	mc_free(&t);
}

/* One step of the definitions' pseudo code, for the test's fixed coefficients. */
enum { R, ALPHA, BETA, EPS, NORM, POST };
static const float co[] = { 0.1f, 0.9f, 0.95f, 1e-3f, 0.01f, 0.02f };

static void step(const char *op, int64_t count, bool nesterov, double *x, double g, double *v, double *h)
{
	double rate = (double)co[R], alpha = (double)co[ALPHA], beta = (double)co[BETA], eps = (double)co[EPS];

	g += (double)co[NORM] * *x;
	if (!strcmp(op, "Adagrad")) {
		*v += g * g;
		*x -= rate / (1 + (double)count * (double)co[ALPHA]) * g / (sqrt(*v) + eps);
	} else if (!strcmp(op, "Momentum")) {
		*v = alpha * *v + (count > 0 ? beta : 1) * g;
		*x -= rate * (nesterov ? g + alpha * *v : *v);
	} else {
		*v = alpha * *v + (1 - alpha) * g;
		*h = beta * *h + (1 - beta) * g * g;
		if (count > 0)
			rate = rate * sqrt(1 - pow(beta, (double)count)) / (1 - pow(alpha, (double)count));
		*x = (1 - (double)co[POST]) * (*x - rate * *v / (sqrt(*h) + eps));
	}
}

/* Two tensors of different type and shape, optimised together. */
static void check_optimiser(const char *op, int64_t count, bool nesterov)
{
	int states = !strcmp(op, "Adam") ? 2 : 1;
	struct math_case t;
	int n_out = 2 * (1 + states);

	mc_start_in(&t, "ai.onnx.preview.training", op, 1);
	mc_float(&t, "alpha", co[ALPHA]);
	mc_float(&t, "decay_factor", co[ALPHA]);
	mc_float(&t, "beta", co[BETA]);
	mc_float(&t, "epsilon", co[EPS]);
	mc_float(&t, "norm_coefficient", co[NORM]);
	mc_float(&t, "norm_coefficient_post", co[POST]);
	mc_string(&t, "mode", nesterov ? "nesterov" : "standard");
	mc_in_list(&t, RG_F32, 0, NULL, (const double[]){ (double)co[R] });
	mc_in_list(&t, RG_I64, 0, NULL, (const double[]){ (double)count });
	for (int part = 0; part < 2 + states; part++) {
		mc_in_random(&t, RG_F32, 2, MC_DIMS(3, 4), part < 2 ? -2 : 0, 2);
		mc_in_random(&t, RG_F64, 1, MC_DIMS(5), part < 2 ? -2 : 0, 2);
	}
	mc_must_run(&t, n_out);
	for (int k = 0; k < 2; k++) {
		double tol = k ? 1e-12 : 1e-6;

		assert_int_equal(t.out[k].dtype, k ? RG_F64 : RG_F32);
		for (int64_t i = 0; i < (k ? 5 : 12); i++) {
			double x = mc_get(&t.in[2 + k], i), v = mc_get(&t.in[6 + k], i);
			double h = states > 1 ? mc_get(&t.in[8 + k], i) : 0;

			step(op, count, nesterov, &x, mc_get(&t.in[4 + k], i), &v, &h);
			mc_expect(&t, k, i, x, tol, tol);
			mc_expect(&t, 2 + k, i, v, tol, tol);
			if (states > 1)
				mc_expect(&t, 4 + k, i, h, tol, tol);
		}
	}
	mc_free(&t);
}

static void test_optimisers(void **state)
{
	static const char *const ops[] = { "Adam", "Adagrad", "Momentum" };
	struct math_case t;

	for (int k = 0; k < 3; k++)
		for (int64_t count = 0; count < 3; count++)
			for (int nesterov = 0; nesterov < 2; nesterov++)
				check_optimiser(ops[k], count, nesterov);
	for (int k = 0; k < 3; k++) { /* a gradient of another shape; inputs that make no groups */
		mc_start_in(&t, "ai.onnx.preview.training", ops[k], 1);
		mc_string(&t, "mode", "standard");
		for (int i = 0; i < 3; i++)
			mc_float(&t, i == 0 ? "alpha" : i == 1 ? "beta" : "norm_coefficient", 0);
		mc_in(&t, RG_F32, 0, NULL);
		mc_in(&t, RG_I64, 0, NULL);
		for (int i = 0; i < (k ? 3 : 4); i++)
			mc_in(&t, RG_F32, 1, i == 1 ? MC_DIMS(2) : MC_DIMS(3));
		assert_int_equal(mc_run(&t, k ? 2 : 3), -EINVAL);
		assert_int_equal(mc_run(&t, k ? 3 : 2), -EINVAL);
		mc_free(&t);
	}
}

static void test_cum_prod(void **state)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I32, RG_I64, RG_U32, RG_U64 };
	struct math_case t;

	for (int k = 0; k < 8 * 4; k++) {
		bool exclusive = k & 1, reverse = k & 2;
		enum rg_dtype type = types[k / 4];

		mc_start(&t, "CumProd", 26);
		mc_int(&t, "exclusive", exclusive);
		mc_int(&t, "reverse", reverse);
		mc_in_random(&t, type, 3, MC_DIMS(2, 5, 3), 1, 4);
		mc_in_list(&t, RG_I64, 0, NULL, MC_LIST(-2));
		mc_must_run(&t, 1);
		for (int i = 0; i < 30; i++) {
			double want = 1;

			for (int j = 0; j < 5; j++) {
				int here = i / 3 % 5, at = i + (j - here) * 3;

				if (reverse ? j > here : j < here)
					want *= mc_get(&t.in[0], at);
				else if (j == here && !exclusive)
					want *= mc_get(&t.in[0], at);
			}
			mc_expect(&t, 0, i, want, rg_dtype_is_float(type) ? mc_tolerance(type) : 0, 0);
		}
		mc_free(&t);
	}
	mc_start(&t, "CumProd", 26); /* integers wrap around */
	mc_in_list(&t, RG_I32, 1, MC_DIMS(3), MC_LIST(65536, 65537, -1));
	mc_in_list(&t, RG_I32, 0, NULL, MC_LIST(0));
	mc_must_run(&t, 1);
	for (int i = 0; i < 3; i++)
		mc_expect(&t, 0, i, MC_LIST(65536, 65536, -65536)[i], 0, 0);
	mc_free(&t);
}

static void test_bit_cast(void **state)
{
	static const enum rg_dtype groups[][9] = {
		{ RG_I2, RG_U2 },
		{ RG_I4, RG_U4, RG_F4E2M1 },
		{ RG_I8, RG_U8, RG_BOOL, RG_F8E4M3FN, RG_F8E4M3FNUZ, RG_F8E5M2, RG_F8E5M2FNUZ, RG_F8E8M0 },
		{ RG_I16, RG_U16, RG_F16, RG_BF16 },
		{ RG_I32, RG_U32, RG_F32 },
		{ RG_I64, RG_U64, RG_F64, RG_C64 },
	};
	struct math_case t;

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (int a = 0; a < 9 && groups[g][a]; a++)
			for (int b = 0; b < 9 && groups[g][b]; b++) {
				mc_start(&t, "BitCast", 26);
				mc_int(&t, "to", groups[g][b]);
				mc_in(&t, groups[g][a], 2, MC_DIMS(3, 5));
				for (int64_t i = 0; i < rg_tensor_bytes(groups[g][a], &t.in[0].shape); i++)
					((unsigned char *)t.in[0].data)[i] = (unsigned char)(i * 37 + 1);
				mc_must_run(&t, 1);
				assert_int_equal(t.out[0].dtype, groups[g][b]);
				mc_expect_shape(&t, 0, 2, MC_DIMS(3, 5));
				assert_memory_equal(t.in[0].data, t.out[0].data,
						    rg_tensor_bytes(groups[g][a], &t.in[0].shape));
				mc_free(&t);
			}
	mc_start(&t, "BitCast", 26);
	mc_int(&t, "to", RG_F64);
	mc_in(&t, RG_F32, 1, MC_DIMS(4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	t.attrs[0].i = RG_STRING;
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	t.attrs[0].i = -3;
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_training), cmocka_unit_test(test_optimisers),
		cmocka_unit_test(test_cum_prod), cmocka_unit_test(test_bit_cast),
	};

	return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
