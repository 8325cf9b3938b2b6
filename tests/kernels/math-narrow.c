/*
 * Quantisation to and from the narrow types: float8, float4e2m1 and the packed
 * integers. How a value becomes a code is tested in cast.c; here which scale and
 * which zero point an element gets, in which precision it is divided, and what
 * is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/narrow.h"
#include "math-case.h"

static const enum rg_dtype types[] = {
	RG_F8E4M3FN, RG_F8E4M3FNUZ, RG_F8E5M2, RG_F8E5M2FNUZ, RG_F4E2M1, RG_U4, RG_I4, RG_U2, RG_I2,
};
enum { N_TYPES = 9, COUNT = 3 * 5 * 7 };
static const int64_t dims[] = { 3, 5, 7 };

enum form { TENSOR, AXIS, LAST, BLOCKS, MIDDLE, FORMS };

static int64_t scale_index(enum form f, int64_t i)
{
	switch (f) {
	case TENSOR:
		return 0;
	case AXIS:
		return i / 7 % 5;
	case LAST:
		return i % 7;
	case BLOCKS: /* 3, 3 and 1 of the last dimension */
		return i / 7 * 3 + i % 7 / 3;
	default: /* 2, 2 and 1 of the middle one */
		return (i / 35 * 3 + i / 7 % 5 / 2) * 7 + i % 7;
	}
}

static void add_scale(struct math_case *t, enum form f, enum rg_dtype scale, enum rg_dtype zero, double lo,
		      double hi)
{
	static const int ranks[] = { 0, 1, 1, 3, 3 };
	static const int64_t shapes[][3] = { { 0 }, { 5 }, { 7 }, { 3, 5, 3 }, { 3, 3, 7 } };

	if (f != TENSOR)
		mc_int(t, "axis", f == AXIS || f == MIDDLE ? 1 : -1);
	if (f >= BLOCKS)
		mc_int(t, "block_size", f == BLOCKS ? 3 : 2);
	mc_in_random(t, scale, ranks[f], shapes[f], 0.5, 2);
	if (zero != RG_UNDEFINED)
		mc_in_random(t, zero, ranks[f], shapes[f], lo, hi);
}

static void bounds(enum rg_dtype t, double *lo, double *hi)
{
	*lo = rg_dtype_is_signed(t) ? -ldexp(1, rg_dtype_bits(t) - 1) : 0;
	*hi = *lo + ldexp(1, rg_dtype_bits(t)) - 1;
}

static double quantized(enum rg_dtype t, double quotient, double zero)
{
	const struct rg_narrow_rule rule = { .saturate = true };
	double lo, hi;

	if (rg_dtype_is_float(t))
		return (double)rg_narrow_decode(t, rg_narrow_encode(t, quotient + zero, rule));
	bounds(t, &lo, &hi);
	return fmin(fmax(rint(quotient) + zero, lo), hi);
}

static void test_quantize(void **state)
{
	struct math_case t;

	for (int f = 0; f < FORMS; f++)
		for (int k = 0; k < N_TYPES; k++) {
			mc_start(&t, "QuantizeLinear", 25);
			mc_in_random(&t, RG_F32, 3, dims, -20, 20);
			add_scale(&t, (enum form)f, RG_F32, types[k], 0, 2);
			mc_must_run(&t, 1);
			assert_int_equal(t.out[0].dtype, types[k]);
			for (int64_t i = 0; i < COUNT; i++) {
				int64_t s = scale_index((enum form)f, i);
				float q = (float)mc_get(&t.in[0], i) / (float)mc_get(&t.in[1], s);

				mc_expect(&t, 0, i, quantized(types[k], (double)q, mc_get(&t.in[2], s)), 0, 0);
			}
			mc_free(&t);
		}
}

static void test_dequantize(void **state)
{
	static const enum rg_dtype scales[] = { RG_F32, RG_F16, RG_BF16, RG_F8E8M0 };
	struct math_case t;

	for (int f = 0; f < FORMS; f++)
		for (int k = 0; k < N_TYPES * 4; k++) {
			enum rg_dtype x = types[k / 4], scale = scales[k % 4];
			double lo = -100, hi = 100;

			if (!rg_dtype_is_float(x))
				bounds(x, &lo, &hi);
			mc_start(&t, "DequantizeLinear", 25);
			if (scale == RG_F8E8M0)
				mc_int(&t, "output_dtype", RG_F16);
			mc_in_random(&t, x, 3, dims, lo, hi + 1);
			add_scale(&t, (enum form)f, scale, x, 0, 2);
			mc_must_run(&t, 1);
			assert_int_equal(t.out[0].dtype, scale == RG_F8E8M0 ? RG_F16 : scale);
			for (int64_t i = 0; i < COUNT; i++) {
				int64_t s = scale_index((enum form)f, i);

				mc_expect(&t, 0, i,
					  (mc_get(&t.in[0], i) - mc_get(&t.in[2], s)) * mc_get(&t.in[1], s),
					  mc_tolerance(t.out[0].dtype), 0);
			}
			mc_free(&t);
		}
}

/* 2049 / 2 is 1024.5 in float32, which rounds to 1024; as a half 2049 is 2048, and
 * 1025 / 2 = 512.5 lies between two halves. */
static void test_precision(void **state)
{
	static const double x[] = { 2049, 2051, 1027 };
	static const struct { int version; int64_t precision; enum rg_dtype scale; double want[3]; } cases[] = {
		{ 25, 0, RG_F32, { 1024, 1026, 514 } },        /* 1024.5, 1025.5, 513.5 */
		{ 25, 0, RG_F16, { 1024, 1026, 514 } },        /* 2048 / 2, 2052 / 2, 513.5 */
		{ 25, 0, RG_BF16, { 1024, 1024, 512 } },       /* 2048, 2048, 1024, each over 2 */
		{ 25, RG_BF16, RG_F32, { 1024, 1024, 512 } },
		{ 25, RG_F64, RG_F16, { 1024, 1026, 514 } },
		{ 21, 0, RG_F16, { 1024, 1026, 514 } },
		{ 25, 0, RG_F8E8M0, { 1024, 1026, 514 } },     /* the input's own */
	};
	struct math_case t;

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		mc_start(&t, "QuantizeLinear", cases[k].version);
		if (cases[k].precision)
			mc_int(&t, "precision", cases[k].precision);
		mc_int(&t, "output_dtype", RG_I16);
		mc_in_list(&t, RG_F32, 1, MC_DIMS(3), x);
		mc_in_list(&t, cases[k].scale, 0, NULL, MC_LIST(2));
		mc_must_run(&t, 1);
		for (int i = 0; i < 3; i++)
			mc_expect(&t, 0, i, cases[k].want[i], 0, 0);
		mc_free(&t);
	}
}

static void test_saturate(void **state)
{
	static const unsigned want[2][3] = { { 0x7f, 0xff, 0x38 }, { 0x7e, 0xfe, 0x38 } };
	struct math_case t;

	for (int saturate = 0; saturate < 2; saturate++) {
		mc_start(&t, "QuantizeLinear", 19);
		mc_int(&t, "saturate", saturate);
		mc_in_list(&t, RG_F32, 1, MC_DIMS(3), MC_LIST(1000, -INFINITY, 2));
		mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(2));
		mc_in_list(&t, RG_F8E4M3FN, 0, NULL, MC_LIST(0));
		mc_must_run(&t, 1);
		for (int i = 0; i < 3; i++)
			assert_int_equal(((uint8_t *)t.out[0].data)[i], want[saturate][i]);
		mc_free(&t);
	}
	mc_start(&t, "QuantizeLinear", 23); /* -0 stays: a zero point of 0 is not added */
	mc_int(&t, "output_dtype", RG_F8E5M2);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(1), MC_LIST(-0.0));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(2));
	mc_must_run(&t, 1);
	assert_int_equal(*(uint8_t *)t.out[0].data, 0x80);
	mc_free(&t);
}

/* Packed elements are permuted one by one; 105 of them leave part of a byte over. */
static void test_transpose(void **state)
{
	static const int64_t perm[] = { 2, 0, 1 };
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++) {
		mc_start(&t, "Transpose", 25);
		mc_ints(&t, "perm", 3, perm);
		mc_in_random(&t, types[k], 3, dims, rg_dtype_is_signed(types[k]) ? -2 : 0, 2);
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 3, MC_DIMS(7, 3, 5));
		for (int64_t i = 0; i < COUNT; i++)
			mc_expect(&t, 0, i % 7 * 15 + i / 7, mc_get(&t.in[0], i), 0, 0);
		mc_free(&t);
	}
	mc_start(&t, "Transpose", 25);
	mc_in(&t, RG_I4, 2, MC_DIMS(0, 3));
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, 2, MC_DIMS(3, 0));
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

	mc_start(&t, "DequantizeLinear", 24); /* the scale's type cannot be the output's */
	mc_in(&t, RG_I4, 1, MC_DIMS(3));
	mc_in(&t, RG_F8E8M0, 0, NULL);
	refused(&t);
	mc_start(&t, "QuantizeLinear", 24); /* a precision that is no float type */
	mc_int(&t, "precision", RG_I8);
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	mc_in(&t, RG_F32, 0, NULL);
	refused(&t);
	mc_start(&t, "QuantizeLinear", 24); /* float8e8m0 is a scale, not a result */
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	mc_in(&t, RG_F32, 0, NULL);
	mc_in(&t, RG_F8E8M0, 0, NULL);
	refused(&t);
	mc_start(&t, "QuantizeLinear", 24); /* as many zero points, but in another order */
	mc_int(&t, "block_size", 3);
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 6));
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 2));
	mc_in(&t, RG_I4, 2, MC_DIMS(2, 3));
	refused(&t);
	mc_start(&t, "DequantizeLinear", 24); /* zero points of another type */
	mc_in(&t, RG_I4, 1, MC_DIMS(3));
	mc_in(&t, RG_F32, 0, NULL);
	mc_in(&t, RG_U4, 0, NULL);
	refused(&t);
	mc_start(&t, "DequantizeLinear", 24);
	mc_int(&t, "output_dtype", -1);
	mc_in(&t, RG_I4, 1, MC_DIMS(3));
	mc_in(&t, RG_F32, 0, NULL);
	refused(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantize), cmocka_unit_test(test_dequantize),
		cmocka_unit_test(test_precision), cmocka_unit_test(test_saturate),
		cmocka_unit_test(test_transpose),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("narrow", tests, NULL, NULL);
}
