/*
 * Quantisation and losses against their formulas.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype quants[] = { RG_I8, RG_U8, RG_I16, RG_U16 };
static const double lows[] = { -128, 0, -32768, 0 }, highs[] = { 127, 255, 32767, 65535 };
static const int64_t dims[] = { 3, 4, 10 };
enum { COUNT = 120 };

/* Ways to give the scale, and which of its values element i has. */
enum form { TENSOR, AXIS0, AXIS1, BLOCKS, FORMS };

static int64_t scale_index(enum form f, int64_t i)
{
	switch (f) {
	case TENSOR:
		return 0;
	case AXIS0:
		return i / 40;
	case AXIS1:
		return i / 10 % 4;
	default: /* three along the last dimension: a block of 4, 4 and 2 */
		return i / 10 * 3 + i % 10 / 4;
	}
}

static void add_scale(struct math_case *t, enum form f, enum rg_dtype scale, enum rg_dtype zero, double lo,
		      double hi)
{
	static const int ranks[] = { 0, 1, 1, 3 };
	static const int64_t shapes[][3] = { { 0 }, { 3 }, { 4 }, { 3, 4, 3 } };

	if (f != TENSOR)
		mc_int(t, "axis", f == AXIS0 ? -3 : f == AXIS1 ? 1 : 2);
	if (f == BLOCKS)
		mc_int(t, "block_size", 4);
	mc_in_random(t, scale, ranks[f], shapes[f], 0.25, 2);
	if (zero != RG_UNDEFINED)
		mc_in_random(t, zero, ranks[f], shapes[f], lo, hi);
}

static void test_quantize(void **state)
{
	struct math_case t;

	for (int f = 0; f < FORMS; f++) {
		for (int k = 0; k < 4; k++) {
			mc_start(&t, "QuantizeLinear", f == BLOCKS ? 21 : 19);
			mc_in_random(&t, RG_F32, 3, dims, lows[k] * 2 - 9,
				     highs[k] * 2 + 9); /* some saturate */
			mc_set(&t.in[0], 7, INFINITY);
			mc_set(&t.in[0], 8, -INFINITY);
			add_scale(&t, (enum form)f, RG_F32, quants[k], 0, 100);
			mc_must_run(&t, 1);
			assert_int_equal(t.out[0].dtype, quants[k]);
			for (int64_t i = 0; i < COUNT; i++) {
				int64_t s = scale_index((enum form)f, i);
				/* the quotient is a float, its ties count */
				float q = (float)mc_get(&t.in[0], i) / (float)mc_get(&t.in[1], s);
				double v = rint((double)q) + mc_get(&t.in[2], s);

				mc_expect(&t, 0, i, fmin(fmax(v, lows[k]), highs[k]), 0, 0);
			}
			mc_free(&t);
		}
	}
	mc_start(&t, "QuantizeLinear", 10); /* ties to even; no zero point makes uint8 */
	mc_in_list(&t, RG_F32, 1, MC_DIMS(6), MC_LIST(1, 3, 5, -1, 1000, 4.9));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(2));
	mc_must_run(&t, 1);
	assert_int_equal(t.out[0].dtype, RG_U8);
	for (int i = 0; i < 6; i++)
		mc_expect(&t, 0, i, MC_LIST(0, 2, 2, 0, 255, 2)[i], 0, 0);
	mc_free(&t);
	mc_start(&t, "QuantizeLinear", 21); /* the type by attribute; types that are no output */
	mc_int(&t, "output_dtype", RG_I16);
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(-1000));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(1));
	mc_must_run(&t, 1);
	assert_int_equal(t.out[0].dtype, RG_I16);
	mc_expect(&t, 0, 0, -1000, 0, 0);
	t.attrs[0].i = RG_I32;
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	t.attrs[0].i = INT64_C(1) << 40;
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "QuantizeLinear", 13); /* a scale of the wrong length */
	mc_in(&t, RG_F32, 3, dims);
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "QuantizeLinear", 10); /* per axis from 13 on only */
	mc_in(&t, RG_F32, 3, dims);
	mc_in(&t, RG_F32, 1, MC_DIMS(4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_dequantize(void **state)
{
	static const enum rg_dtype scales[] = { RG_F32, RG_F16, RG_BF16 };
	struct math_case t;

	for (int f = 0; f < FORMS; f++) {
		for (int k = 0; k < 4; k++) {
			for (int s = 0; s < 3; s++) {
				mc_start(&t, "DequantizeLinear", 28);
				mc_in_random(&t, quants[k], 3, dims, lows[k], highs[k]);
				add_scale(&t, (enum form)f, scales[s], quants[k], 0, 100);
				mc_must_run(&t, 1);
				assert_int_equal(t.out[0].dtype, scales[s]);
				for (int64_t i = 0; i < COUNT; i++) {
					int64_t at = scale_index((enum form)f, i);

					mc_expect(&t, 0, i,
						  (mc_get(&t.in[0], i) - mc_get(&t.in[2], at)) *
						      mc_get(&t.in[1], at),
						  mc_tolerance(scales[s]), 0);
				}
				mc_free(&t);
			}
		}
	}
	mc_start(&t, "DequantizeLinear", 10); /* int32, as biases are stored */
	mc_in_list(&t, RG_I32, 1, MC_DIMS(2), MC_LIST(-2147483648.0, 5));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(0.5));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, -1073741824.0, 0, 0);
	mc_expect(&t, 0, 1, 2.5, 0, 0);
	mc_free(&t);
}

static void check_dynamic(int n, const double *x)
{
	struct math_case t;
	double lo = 0, hi = 0, scale, zero;

	mc_start(&t, "DynamicQuantizeLinear", 11);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(n), x);
	mc_must_run(&t, 3);
	for (int i = 0; i < n; i++) {
		lo = fmin(lo, x[i]);
		hi = fmax(hi, x[i]);
	}
	scale = hi > lo ? (hi - lo) / 255 : 1; /* ONNX Runtime's choice where the definition divides by 0 */
	zero = fmin(255, rint(-lo / scale));
	mc_expect(&t, 1, 0, scale, 1e-6, 0);
	mc_expect(&t, 2, 0, zero, 0, 0);
	for (int i = 0; i < n; i++) {
		/* with the scale as it came out, in float: -2.5 is a tie with it */
		float q = (float)x[i] / (float)mc_get(&t.out[1], 0);

		mc_expect(&t, 0, i, fmin(255, fmax(0, rint((double)q) + zero)), 0, 0);
	}
	mc_free(&t);
}

static void test_dynamic(void **state)
{
	check_dynamic(6, MC_LIST(0, 2, -3, -2.5, 1.34, 0.5));
	check_dynamic(6, MC_LIST(-1, -2.1, -1.3, -2.5, -3.34, -4));
	check_dynamic(4, MC_LIST(1, 2.1, 1.3, 2.5));
	check_dynamic(3, MC_LIST(0, 0, 0));
}

/* ---- losses ---- */

static void check_loss(bool scores, enum rg_dtype type, enum rg_dtype label, const char *how, int form)
{
	static const int64_t shape[] = { 3, 5, 2, 2 }, label_shape[] = { 3, 2, 2 };
	bool weighted = form & 1, ignore = form & 2, none = how[0] == 'n', mean = how[0] == 'm';
	double tol = 16 * mc_tolerance(type), total = 0, total_weight = 0;
	struct math_case t;

	mc_start(&t, scores ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", 13);
	mc_string(&t, "reduction", how);
	if (ignore)
		mc_int(&t, "ignore_index", -7);
	mc_in_random(&t, type, 4, shape, -3, 3);
	mc_in_random(&t, label, 3, label_shape, 0, 5);
	if (ignore)
		mc_set(&t.in[1], 4, -7);
	if (weighted)
		mc_in_random(&t, type, 1, shape + 1, 0.5, 2);
	mc_must_run(&t, scores ? 2 : 1);
	mc_expect_shape(&t, 0, none ? 3 : 0, label_shape);
	for (int i = 0; i < 12; i++) {
		int b = i / 4, j = i % 4, c = (int)mc_get(&t.in[1], i);
		double shift = 0, w = c < 0 ? 0 : weighted ? mc_get(&t.in[2], c) : 1, loss = 0;

		for (int k = 0; k < 5 && scores; k++)
			shift += exp(mc_get(&t.in[0], b * 20 + k * 4 + j));
		shift = scores ? log(shift) : 0;
		for (int k = 0; k < 5 && scores; k++)
			mc_expect(&t, 1, b * 20 + k * 4 + j, mc_get(&t.in[0], b * 20 + k * 4 + j) - shift,
				  tol, tol);
		if (c >= 0)
			loss = -(mc_get(&t.in[0], b * 20 + c * 4 + j) - shift) * w;
		if (none)
			mc_expect(&t, 0, i, loss, tol, tol);
		total += loss;
		total_weight += w;
	}
	if (!none)
		mc_expect(&t, 0, 0, mean ? total / total_weight : total, tol, tol);
	mc_free(&t);
}

static void test_losses(void **state)
{
	static const enum rg_dtype floats[] = { RG_F32, RG_F64, RG_F16, RG_BF16 };
	static const char *const hows[] = { "none", "sum", "mean" };
	struct math_case t;

	for (int k = 0; k < 4; k++)
		for (int h = 0; h < 3; h++)
			for (int form = 0; form < 8; form++)
				check_loss(form & 4, floats[k], form & 1 ? RG_I64 : RG_I32, hows[h],
					   form & 3);
	mc_start(&t, "NegativeLogLikelihoodLoss", 13); /* a label that is no class */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in_list(&t, RG_I64, 1, MC_DIMS(2), MC_LIST(1, 3));
	assert_int_equal(mc_run(&t, 1), -ERANGE);
	mc_free(&t);
	mc_start(&t, "SoftmaxCrossEntropyLoss", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_I64, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantize),
		cmocka_unit_test(test_dequantize),
		cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_losses),
	};

	return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
