/*
 * Elementwise operators of several inputs: broadcasting against index
 * arithmetic, values against formulas, the ends of integer types, the
 * attributes that broadcasting needed before version 7.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I8, RG_I16, RG_I32, RG_I64,
				       RG_U8, RG_U16, RG_U32, RG_U64 };
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

struct shape {
	int rank;
	int64_t dim[6];
};

static const struct {
	struct shape a, b, out;
} pairs[] = {
	{ { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
	{ { 1, { 7 } }, { 1, { 7 } }, { 1, { 7 } } },
	{ { 1, { 300 } }, { 0, { 0 } }, { 1, { 300 } } },
	{ { 0, { 0 } }, { 1, { 300 } }, { 1, { 300 } } },
	{ { 2, { 3, 5 } }, { 1, { 5 } }, { 2, { 3, 5 } } },
	{ { 2, { 3, 5 } }, { 2, { 3, 1 } }, { 2, { 3, 5 } } },
	{ { 2, { 1, 5 } }, { 2, { 3, 1 } }, { 2, { 3, 5 } } },
	{ { 4, { 2, 3, 4, 5 } }, { 3, { 3, 1, 1 } }, { 4, { 2, 3, 4, 5 } } },
	{ { 4, { 2, 3, 1, 5 } }, { 4, { 1, 3, 4, 1 } }, { 4, { 2, 3, 4, 5 } } },
	{ { 5, { 2, 1, 3, 1, 2 } }, { 4, { 4, 1, 5, 1 } }, { 5, { 2, 4, 3, 5, 2 } } },
	{ { 2, { 1, 1 } }, { 3, { 2, 3, 1 } }, { 3, { 2, 3, 1 } } },
	{ { 2, { 0, 5 } }, { 1, { 5 } }, { 2, { 0, 5 } } },
	{ { 2, { 3, 1 } }, { 2, { 1, 0 } }, { 2, { 3, 0 } } },
	{ { 2, { 2, 257 } }, { 2, { 1, 257 } }, { 2, { 2, 257 } } },
	{ { 3, { 6, 1, 2 } }, { 3, { 6, 3, 2 } }, { 3, { 6, 3, 2 } } },
};
enum { N_PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

static double f_add(double x, double y) { return x + y; }
static double f_sub(double x, double y) { return x - y; }
static double f_mul(double x, double y) { return x * y; }
static double f_div(double x, double y) { return x / y; }
static double f_min(double x, double y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }
static double f_max(double x, double y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static double f_eq(double x, double y) { return x == y; }
static double f_gt(double x, double y) { return x > y; }
static double f_lt(double x, double y) { return x < y; }
static double f_ge(double x, double y) { return x >= y; }
static double f_le(double x, double y) { return x <= y; }
static double f_mean(double x, double y) { return (x + y) / 2; }
static double f_prelu(double x, double y) { return x < 0 ? x * y : x; }

/* What they compute, and what for. */
static const struct {
	const char *op;
	int version;
	double (*f)(double, double);
	bool test, floats_only, one_way; /* one_way: b must not widen a */
} ops[] = {
	{ "Add", 14, f_add, false, false, false },
	{ "Sub", 13, f_sub, false, false, false },
	{ "Mul", 7, f_mul, false, false, false },
	{ "Div", 14, f_div, false, false, false },
	{ "Min", 13, f_min, false, false, false },
	{ "Max", 8, f_max, false, false, false },
	{ "Sum", 13, f_add, false, true, false },
	{ "Mean", 8, f_mean, false, true, false },
	{ "Equal", 19, f_eq, true, false, false },
	{ "Greater", 13, f_gt, true, false, false },
	{ "Less", 9, f_lt, true, false, false },
	{ "GreaterOrEqual", 16, f_ge, true, false, false },
	{ "LessOrEqual", 12, f_le, true, false, false },
	{ "PRelu", 16, f_prelu, false, false, true },
};

static void check_pair(int o, int p, enum rg_dtype type, bool special)
{
	const struct shape *a = &pairs[p].a, *b = &pairs[p].b, *out = &pairs[p].out;
	bool is_float = rg_dtype_is_float(type);
	double tol = 2 * mc_tolerance(type);
	struct math_case t;

	mc_start(&t, ops[o].op, ops[o].version);
	/* whole numbers: a is at least b, both fit an unsigned byte as sum and product */
	mc_in_random(&t, type, a->rank, a->dim, is_float ? -3 : 8, is_float ? 3 : 14);
	mc_in_random(&t, type, b->rank, b->dim, is_float ? -3 : 1, is_float ? 3 : 9);
	if (special) {
		mc_special(&t, 0);
		mc_special(&t, 1);
	}
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, out->rank, out->dim);
	assert_int_equal(t.out[0].dtype, ops[o].test ? RG_BOOL : type);
	for (int64_t i = 0; i < rg_shape_count(&t.out[0].shape); i++) {
		double x = mc_get(&t.in[0], mc_broadcast_index(&t.in[0].shape, &t.out[0].shape, i));
		double y = mc_get(&t.in[1], mc_broadcast_index(&t.in[1].shape, &t.out[0].shape, i));
		double want = ops[o].f(x, y);

		mc_expect(&t, 0, i, is_float || ops[o].test ? want : trunc(want), tol, 0);
	}
	mc_free(&t);
}

static void test_broadcasting(void **state)
{
	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		for (int p = 0; p < N_PAIRS; p++) {
			bool widens = pairs[p].a.rank != pairs[p].out.rank ||
				      memcmp(pairs[p].a.dim, pairs[p].out.dim, sizeof(pairs[p].a.dim)) != 0;

			if (ops[o].one_way && widens)
				continue;
			for (int k = 0; k < N_TYPES; k++) {
				bool is_float = rg_dtype_is_float(types[k]);

				if (ops[o].floats_only && !is_float)
					continue;
				check_pair((int)o, p, types[k], false);
				/* sums of huge numbers round before the mean does */
				if (is_float && ops[o].f != f_mean && types[k] != RG_F64)
					check_pair((int)o, p, types[k], true);
			}
		}
	}
}

static void test_shapes_that_do_not_fit(void **state)
{
	struct math_case t;

	mc_start(&t, "Add", 14);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 1, MC_DIMS(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Add", 14);
	mc_in(&t, RG_F32, 1, MC_DIMS(2));
	mc_in(&t, RG_F64, 1, MC_DIMS(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "PRelu", 16); /* the slope may not widen the input */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 1));
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Max", 6); /* no broadcasting before version 8 */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

/* Before version 7: b stands in a from dimension `axis` on. */
static void test_legacy_broadcast(void **state)
{
	static const struct {
		struct shape b;
		int axis; /* -9: no attribute */
		int first; /* where b then stands */
		bool fits;
	} cases[] = {
		{ { 1, { 4 } }, -9, 2, true },	     { { 2, { 3, 4 } }, -9, 1, true },
		{ { 1, { 3 } }, 1, 1, true },	     { { 2, { 2, 3 } }, 0, 0, true },
		{ { 1, { 2 } }, 0, 0, true },	     { { 1, { 2 } }, 1, 0, false },
		{ { 2, { 3, 4 } }, 2, 0, false },    { { 0, { 0 } }, -9, 3, true },
		{ { 4, { 1, 2, 3, 4 } }, 0, 0, false }, { { 1, { 3 } }, -2, 1, true },
		{ { 1, { 3 } }, 99, 0, false },
	};
	static const int64_t dims[] = { 2, 3, 4 };
	struct math_case t;

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		mc_start(&t, "Sub", 6);
		mc_int(&t, "broadcast", 1);
		if (cases[k].axis != -9)
			mc_int(&t, "axis", cases[k].axis);
		mc_in_random(&t, RG_F32, 3, dims, -1, 1);
		mc_in_random(&t, RG_F32, cases[k].b.rank, cases[k].b.dim, -1, 1);
		if (!cases[k].fits) {
			assert_int_equal(mc_run(&t, 1), -EINVAL);
			mc_free(&t);
			continue;
		}
		mc_must_run(&t, 1);
		for (int64_t i = 0; i < 24; i++) {
			int64_t index[] = { i / 12, i / 4 % 3, i % 4 }, at = 0;

			for (int d = 0; d < cases[k].b.rank; d++)
				at = at * cases[k].b.dim[d] + index[cases[k].first + d];
			mc_expect(&t, 0, i, mc_get(&t.in[0], i) - mc_get(&t.in[1], at), 1e-6, 0);
		}
		mc_free(&t);
	}
	/* without the attribute, shapes are equal */
	mc_start(&t, "Mul", 1);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 1, MC_DIMS(3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	/* PRelu's slope is one a channel */
	mc_start(&t, "PRelu", 6);
	mc_in_random(&t, RG_F32, 3, dims, -1, 1);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(3), MC_LIST(1, 2, 3));
	mc_must_run(&t, 1);
	for (int64_t i = 0; i < 24; i++)
		mc_expect(&t, 0, i, f_prelu(mc_get(&t.in[0], i), (double)(i / 4 % 3 + 1)), 1e-6, 0);
	mc_free(&t);
}

static void binary(struct math_case *t, const char *op, int version, enum rg_dtype type, double x, double y)
{
	mc_start(t, op, version);
	mc_in_list(t, type, 1, MC_DIMS(1), MC_LIST(x));
	mc_in_list(t, type, 1, MC_DIMS(1), MC_LIST(y));
}

static void test_integer_ends(void **state)
{
	struct math_case t;

	for (int k = 4; k < N_TYPES; k++) {
		bool is_signed = rg_dtype_is_signed(types[k]);
		double min = is_signed ? -ldexp(1, rg_dtype_bits(types[k]) - 1) : 0;

		binary(&t, "Div", 14, types[k], 7, 0);
		assert_int_equal(mc_run(&t, 1), -EDOM);
		mc_free(&t);
		binary(&t, "Mod", 13, types[k], 7, 0);
		assert_int_equal(mc_run(&t, 1), -EDOM);
		mc_free(&t);
		binary(&t, "Div", 14, types[k], 7, 2);
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, 3, 0, 0);
		mc_free(&t);
		if (!is_signed)
			continue;
		binary(&t, "Div", 14, types[k], min, -1);
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, min, 0, 0);
		mc_free(&t);
		binary(&t, "Mod", 13, types[k], min, -1);
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, 0, 0, 0);
		mc_free(&t);
		binary(&t, "Sub", 14, types[k], min, 1); /* wraps to the largest */
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, types[k] == RG_I64 ? -min : -min - 1, 0, 0);
		mc_free(&t);
		binary(&t, "Div", 14, types[k], -7, 2);
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, -3, 0, 0);
		mc_free(&t);
	}
	/* nothing is divided when there is nothing */
	mc_start(&t, "Div", 14);
	mc_in(&t, RG_I32, 1, MC_DIMS(0));
	mc_in(&t, RG_I32, 1, MC_DIMS(1));
	mc_must_run(&t, 1);
	mc_free(&t);
}

static void test_mod(void **state)
{
	static const double x[] = { 7, 7, -7, -7, 6, -6, 0, 5.5 }, y[] = { 3, -3, 3, -3, 3, 3, -3, -2 };
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++) {
		bool is_float = rg_dtype_is_float(types[k]), is_signed = rg_dtype_is_signed(types[k]);

		for (int fmode = 0; fmode < 2; fmode++) {
			mc_start(&t, "Mod", is_float ? 28 : 13);
			mc_int(&t, "fmod", fmode);
			for (int in = 0; in < 2; in++) {
				mc_in(&t, types[k], 1, MC_DIMS(8));
				for (int i = 0; i < 8; i++) {
					double v = in ? y[i] : x[i];

					mc_set(&t.in[in], i, is_float || is_signed ? v : fabs(v));
				}
			}
			mc_must_run(&t, 1);
			for (int i = 0; i < 8; i++) {
				double a = mc_get(&t.in[0], i), b = mc_get(&t.in[1], i);
				double q = fmode ? trunc(a / b) : floor(a / b);

				mc_expect(&t, 0, i, a - q * b, 0, 0);
			}
			mc_free(&t);
		}
	}
	/* the special cases that version 28 lists for floor */
	mc_start(&t, "Mod", 28);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(6), MC_LIST(INFINITY, 1, 2, -2, NAN, -0.0));
	mc_in_list(&t, RG_F32, 1, MC_DIMS(6), MC_LIST(2, 0, INFINITY, INFINITY, 1, 3));
	mc_must_run(&t, 1);
	for (int i = 0; i < 6; i++)
		mc_expect(&t, 0, i, MC_LIST(NAN, NAN, 2, INFINITY, NAN, 0)[i], 0, 0);
	mc_free(&t);
	/* before, floats need fmod = 1 */
	binary(&t, "Mod", 13, RG_F32, 5, 3);
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_bits(void **state)
{
	static const char *const names[] = { "BitwiseAnd", "BitwiseOr", "BitwiseXor" };
	struct math_case t;

	for (int k = 4; k < N_TYPES; k++) {
		for (int o = 0; o < 3; o++) {
			binary(&t, names[o], 18, types[k], 12, 10);
			mc_must_run(&t, 1);
			mc_expect(&t, 0, 0, MC_LIST(8, 14, 6)[o], 0, 0);
			mc_free(&t);
		}
		for (int by = 0; by <= 70; by += by < 9 ? 1 : 15) {
			int bits = rg_dtype_bits(types[k]);
			bool is_signed = rg_dtype_is_signed(types[k]);

			binary(&t, "BitShift", 28, types[k], 5, by);
			mc_string(&t, "direction", "LEFT");
			mc_must_run(&t, 1);
			if (by + 3 < bits) /* nothing is lost */
				mc_expect(&t, 0, 0, ldexp(5, by), 0, 0);
			if (by >= bits)
				mc_expect(&t, 0, 0, 0, 0, 0);
			mc_free(&t);
			binary(&t, "BitShift", 28, types[k], is_signed ? -100 : 100, by);
			mc_string(&t, "direction", "RIGHT");
			mc_must_run(&t, 1);
			mc_expect(&t, 0, 0, floor(ldexp(is_signed ? -100 : 100, -by)), 0, 0);
			mc_free(&t);
		}
	}
	binary(&t, "BitShift", 28, RG_I32, -5, -1);
	mc_string(&t, "direction", "RIGHT");
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, -1, 0, 0);
	mc_free(&t);
	binary(&t, "BitShift", 11, RG_U8, 1, 1);
	assert_int_equal(mc_run(&t, 1), -EINVAL); /* no direction */
	mc_free(&t);
	binary(&t, "BitShift", 11, RG_I8, 1, 1);
	mc_string(&t, "direction", "LEFT");
	assert_int_equal(mc_run(&t, 1), -EINVAL); /* signed only from 28 on */
	mc_free(&t);
}

static void test_logic(void **state)
{
	static const char *const names[] = { "And", "Or", "Xor", "Equal" };
	static const int versions[] = { 7, 7, 7, 19 };
	struct math_case t;

	for (int o = 0; o < 4; o++) {
		mc_start(&t, names[o], versions[o]);
		mc_in_list(&t, RG_BOOL, 2, MC_DIMS(2, 1), MC_LIST(0, 1));
		mc_in_list(&t, RG_BOOL, 1, MC_DIMS(2), MC_LIST(0, 1));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 2, MC_DIMS(2, 2));
		for (int i = 0; i < 4; i++) {
			int x = i / 2, y = i % 2;

			mc_expect(&t, 0, i, MC_LIST(x && y, x || y, x != y, x == y)[o], 0, 0);
		}
		mc_free(&t);
	}
}

static void test_pow(void **state)
{
	static const enum rg_dtype bases[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I32, RG_I64 };
	static const double x[] = { 0, 1, 2, 3, 4 }, y[] = { 0, 1, 2, 3, 2 };
	struct math_case t;

	for (int b = 0; b < 6; b++) {
		for (int k = 0; k < N_TYPES; k++) {
			mc_start(&t, "Pow", 15);
			mc_in_list(&t, bases[b], 1, MC_DIMS(5), x);
			mc_in_list(&t, types[k], 1, MC_DIMS(5), y);
			mc_must_run(&t, 1);
			assert_int_equal(t.out[0].dtype, bases[b]);
			for (int i = 0; i < 5; i++)
				mc_expect(&t, 0, i, pow(x[i], y[i]), mc_tolerance(bases[b]), 0);
			mc_free(&t);
		}
	}
	/* a scalar exponent, among them the square that has a loop of its own */
	for (int e = -4; e <= 6; e++) {
		mc_start(&t, "Pow", 13);
		mc_in_random(&t, RG_F32, 2, MC_DIMS(3, 7), 0, 2);
		mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(e / 2.0));
		mc_must_run(&t, 1);
		for (int i = 0; i < 21; i++)
			mc_expect(&t, 0, i, pow(mc_get(&t.in[0], i), e / 2.0), 1e-6, 0);
		mc_free(&t);
	}
	mc_start(&t, "Pow", 15); /* integers to negative powers */
	mc_in_list(&t, RG_I32, 1, MC_DIMS(4), MC_LIST(1, -1, -1, 2));
	mc_in_list(&t, RG_I32, 1, MC_DIMS(4), MC_LIST(-3, -3, -2, -1));
	mc_must_run(&t, 1);
	for (int i = 0; i < 4; i++)
		mc_expect(&t, 0, i, MC_LIST(1, -1, 1, 0)[i], 0, 0);
	mc_free(&t);
	binary(&t, "Pow", 15, RG_I32, 0, -1);
	assert_int_equal(mc_run(&t, 1), -EDOM);
	mc_free(&t);
	binary(&t, "Pow", 7, RG_F32, 2, 3);
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 8, 0, 0);
	mc_free(&t);
}

static void test_variadic(void **state)
{
	static const char *const names[] = { "Max", "Min", "Sum", "Mean" };
	static const struct shape shapes[] = {{2, {3, 1}}, {1, {4}}, {3, {2, 1, 4}}, {0, {0}}};
	struct math_case t;

	for (int o = 0; o < 4; o++) {
		for (int n = 1; n <= 4; n++) {
			for (int k = 0; k < 4; k++) {
				mc_start(&t, names[o], 13);
				for (int i = 0; i < n; i++)
					mc_in_random(&t, types[k], shapes[i].rank, shapes[i].dim, -2, 2);
				mc_must_run(&t, 1);
				for (int64_t i = 0; i < rg_shape_count(&t.out[0].shape); i++) {
					double want = 0;

					for (int j = 0; j < n; j++) {
						double v =
						    mc_get(&t.in[j], mc_broadcast_index(&t.in[j].shape,
											&t.out[0].shape, i));

						want = j == 0 ? v : o == 0 ? f_max(want, v) :
						       o == 1 ? f_min(want, v) : want + v;
					}
					mc_expect(&t, 0, i, o == 3 ? want / n : want,
						  2 * mc_tolerance(types[k]), 8 * mc_tolerance(types[k]));
				}
				mc_free(&t);
			}
		}
	}
}

static void test_where(void **state)
{
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++) {
		for (int p = 0; p < N_PAIRS; p++) {
			const struct shape *a = &pairs[p].a, *b = &pairs[p].b, *o = &pairs[p].out;

			mc_start(&t, "Where", 16);
			mc_in_random(&t, RG_BOOL, a->rank, a->dim, 0, 2);
			mc_in_random(&t, types[k], b->rank, b->dim, 1, 100);
			mc_in_random(&t, types[k], o->rank, o->dim, 1, 100);
			mc_must_run(&t, 1);
			mc_expect_shape(&t, 0, o->rank, o->dim);
			for (int64_t i = 0; i < rg_shape_count(&t.out[0].shape); i++) {
				bool c =
				    mc_get(&t.in[0], mc_broadcast_index(&t.in[0].shape, &t.out[0].shape, i));
				int from = c ? 1 : 2;

				mc_expect(&t, 0, i,
					  mc_get(&t.in[from],
						 mc_broadcast_index(&t.in[from].shape, &t.out[0].shape, i)),
					  0, 0);
			}
			mc_free(&t);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broadcasting),
		cmocka_unit_test(test_shapes_that_do_not_fit),
		cmocka_unit_test(test_legacy_broadcast),
		cmocka_unit_test(test_integer_ends),
		cmocka_unit_test(test_mod),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_logic),
		cmocka_unit_test(test_pow),
		cmocka_unit_test(test_variadic),
		cmocka_unit_test(test_where),
	};

	return cmocka_run_group_tests_name("binary", tests, NULL, NULL);
}
