/*
 * Reductions and ArgMax, ArgMin against sums over all elements by index
 * arithmetic, for every set of axes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math-case.h"

static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I32, RG_I64, RG_U32, RG_U64 };
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static const int64_t dims[] = { 3, 1, 5, 4 };
enum { RANK = 4, COUNT = 60 };

enum what { SUM, MEAN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP, MAX, MIN };
static const struct {
	const char *op;
	int newest;
	int axes_from; /* the version that takes axes as an input */
} ops[] = {
	[SUM] = { "ReduceSum", 13, 13 },
	[MEAN] = { "ReduceMean", 18, 18 },
	[PROD] = { "ReduceProd", 18, 18 },
	[L1] = { "ReduceL1", 18, 18 },
	[L2] = { "ReduceL2", 18, 18 },
	[SUM_SQUARE] = { "ReduceSumSquare", 18, 18 },
	[LOG_SUM] = { "ReduceLogSum", 28, 18 },
	[LOG_SUM_EXP] = { "ReduceLogSumExp", 18, 18 },
	[MAX] = { "ReduceMax", 20, 18 },
	[MIN] = { "ReduceMin", 20, 18 },
};

/* The definition, over values in any order. */
static double reduce(enum what w, const double *v, int n)
{
	double s = w == PROD ? 1 : w == MAX ? -INFINITY : w == MIN ? INFINITY : 0;

	for (int i = 0; i < n; i++) {
		switch (w) {
		case PROD:
			s *= v[i];
			break;
		case L1:
			s += fabs(v[i]);
			break;
		case L2:
		case SUM_SQUARE:
			s += v[i] * v[i];
			break;
		case LOG_SUM_EXP:
			s += exp(v[i]);
			break;
		case MAX:
			s = v[i] > s ? v[i] : s;
			break;
		case MIN:
			s = v[i] < s ? v[i] : s;
			break;
		default:
			s += v[i];
			break;
		}
	}
	if (w == MEAN)
		return s / n;
	if (w == L2)
		return sqrt(s);
	return w == LOG_SUM || w == LOG_SUM_EXP ? log(s) : s;
}

/* Every result against the elements whose kept indices are the same. */
static void check(const struct math_case *t, enum what w, unsigned mask)
{
	double values[COUNT], tol = 4 * mc_tolerance(t->out[0].dtype);
	bool is_float = rg_dtype_is_float(t->out[0].dtype);

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++) {
		int n = 0;

		for (int64_t e = 0; e < COUNT; e++) {
			int64_t rest = e, index[RANK], at = 0;

			for (int d = RANK - 1; d >= 0; d--) {
				index[d] = rest % dims[d];
				rest /= dims[d];
			}
			for (int d = 0; d < RANK; d++)
				at = mask >> d & 1 ? at : at * dims[d] + index[d];
			if (at == i)
				values[n++] = mc_get(&t->in[0], e);
		}
		assert_true(n > 0);
		if (is_float)
			mc_expect(t, 0, i, reduce(w, values, n), tol, tol);
		else
			mc_expect(t, 0, i, trunc(reduce(w, values, n)), 0, 0);
	}
}

static void check_set(enum what w, enum rg_dtype type, unsigned mask, bool keep, int version)
{
	int64_t axes[RANK], want[RANK];
	bool is_float = rg_dtype_is_float(type), is_input = version >= ops[w].axes_from;
	int n = 0, rank = 0;
	struct math_case t;

	for (int d = 0; d < RANK; d++) {
		if (mask >> d & 1)
			axes[n++] = d % 2 ? d : d - RANK; /* negative ones among them */
		if (!(mask >> d & 1))
			want[rank++] = dims[d];
		else if (keep)
			want[rank++] = 1;
	}
	mc_start(&t, ops[w].op, version);
	mc_int(&t, "keepdims", keep);
	if (!is_input)
		mc_ints(&t, "axes", n, axes);
	/* products of 60 stay in range; whole numbers reach 1 and 2 */
	if (is_float)
		mc_in_random(&t, type, RANK, dims, 0.9, 1.1);
	else
		mc_in_random(&t, type, RANK, dims, 1, w == PROD ? 1.5 : 5);
	if (is_input) {
		mc_in(&t, RG_I64, 1, MC_DIMS(n));
		for (int i = 0; i < n; i++)
			((int64_t *)t.in[1].data)[i] = axes[i];
	}
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, rank, want);
	assert_int_equal(t.out[0].dtype, type);
	check(&t, w, mask);
	mc_free(&t);
}

static void test_all_sets(void **state)
{
	for (int w = SUM; w <= MIN; w++)
		for (int k = 0; k < N_TYPES; k++)
			for (unsigned mask = 1; mask < 1u << RANK; mask++)
				for (int form = 0; form < 4; form++)
					check_set((enum what)w, types[k], mask, form & 1,
						  form & 2 ? 11 : ops[w].newest);
}

/* No axes: all of them, or none at all with noop_with_empty_axes. */
static void test_no_axes(void **state)
{
	struct math_case t;

	for (int w = SUM; w <= MIN; w++) {
		for (int noop = 0; noop < 2; noop++) {
			for (int empty_list = 0; empty_list < 2; empty_list++) {
				mc_start(&t, ops[w].op, ops[w].newest);
				mc_int(&t, "noop_with_empty_axes", noop);
				mc_int(&t, "keepdims", 0);
				mc_in_random(&t, RG_F32, RANK, dims, 0.9, 1.1);
				if (empty_list)
					mc_in(&t, RG_I64, 1, MC_DIMS(0));
				mc_must_run(&t, 1);
				mc_expect_shape(&t, 0, noop ? RANK : 0, dims);
				check(&t, (enum what)w, noop ? 0 : 15);
				mc_free(&t);
			}
		}
		mc_start(&t, ops[w].op, 1); /* a scalar, an attribute's version */
		mc_in_list(&t, RG_F64, 0, NULL, MC_LIST(1.5));
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, reduce((enum what)w, MC_LIST(1.5), 1), 1e-14, 0);
		mc_free(&t);
	}
}

static void test_empty_sets(void **state)
{
	static const double want[] = { 0, NAN, 1, 0, 0, 0, -INFINITY, -INFINITY, -INFINITY, INFINITY };
	struct math_case t;

	for (int w = SUM; w <= MIN; w++) {
		mc_start(&t, ops[w].op, ops[w].newest);
		mc_in(&t, RG_F32, 3, MC_DIMS(2, 0, 3));
		mc_in_list(&t, RG_I64, 1, MC_DIMS(1), MC_LIST(1));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 3, MC_DIMS(2, 1, 3));
		for (int i = 0; i < 6; i++)
			mc_expect(&t, 0, i, want[w], 0, 0);
		mc_free(&t);
		mc_start(&t, ops[w].op, ops[w].newest); /* no result either */
		mc_in(&t, RG_F32, 2, MC_DIMS(0, 3));
		mc_in_list(&t, RG_I64, 1, MC_DIMS(1), MC_LIST(1));
		mc_must_run(&t, 1);
		mc_free(&t);
	}
	mc_start(&t, "ReduceMax", 20);
	mc_in(&t, RG_I8, 1, MC_DIMS(0));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, -128, 0, 0);
	mc_free(&t);
	mc_start(&t, "ReduceMin", 20);
	mc_in(&t, RG_U32, 1, MC_DIMS(0));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 4294967295.0, 0, 0);
	mc_free(&t);
}

static void test_special_values(void **state)
{
	struct math_case t;

	for (int w = MAX; w <= MIN; w++) {
		mc_start(&t, ops[w].op, 13);
		mc_in_list(&t, RG_F32, 1, MC_DIMS(4), MC_LIST(1, NAN, INFINITY, -INFINITY));
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, NAN, 0, 0);
		mc_free(&t);
		mc_start(&t, ops[w].op, 20);
		mc_in_list(&t, RG_BOOL, 2, MC_DIMS(2, 2), MC_LIST(0, 1, 0, 0));
		mc_in_list(&t, RG_I64, 1, MC_DIMS(1), MC_LIST(1));
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, w == MAX, 0, 0);
		mc_expect(&t, 0, 1, 0, 0, 0);
		mc_free(&t);
		mc_start(&t, ops[w].op, 18); /* beyond what a double holds exactly */
		mc_in(&t, RG_I64, 1, MC_DIMS(2));
		((int64_t *)t.in[0].data)[0] = INT64_MAX - 1;
		((int64_t *)t.in[0].data)[1] = INT64_MAX;
		mc_must_run(&t, 1);
		assert_int_equal(*(int64_t *)t.out[0].data, w == MAX ? INT64_MAX : INT64_MAX - 1);
		mc_free(&t);
	}
	mc_start(&t, "ReduceLogSumExp", 18); /* would overflow without the shift */
	mc_in_list(&t, RG_F64, 1, MC_DIMS(3), MC_LIST(1000, 1000, -INFINITY));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 1000 + log(2), 1e-14, 0);
	mc_free(&t);
	mc_start(&t, "ReduceLogSumExp", 18);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(2), MC_LIST(INFINITY, 1));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, INFINITY, 0, 0);
	mc_free(&t);
	mc_start(&t, "ReduceSum", 13); /* a long row of a type that could not count so far */
	mc_in(&t, RG_F16, 1, MC_DIMS(5000));
	for (int i = 0; i < 5000; i++)
		mc_set(&t.in[0], i, 1);
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 5000, 0, 0);
	mc_free(&t);
}

static void test_refused(void **state)
{
	struct math_case t;

	mc_start(&t, "ReduceSum", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in_list(&t, RG_I64, 1, MC_DIMS(1), MC_LIST(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "ReduceSum", 11);
	mc_ints(&t, "axes", 2, MC_DIMS(1, -1)); /* the same one twice */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "ReduceSum", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_I64, 1, MC_DIMS(1));
	t.variable[1] = true;
	assert_int_equal(mc_run(&t, 1), RG_ENEED_VALUE);
	mc_free(&t);
	mc_start(&t, "ArgMax", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 0));
	mc_int(&t, "axis", 1);
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "ReduceMax", 18);
	mc_in(&t, RG_BOOL, 1, MC_DIMS(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

/* ---- ArgMax, ArgMin ---- */

static void check_arg(bool largest, enum rg_dtype type, int axis, bool last, bool keep)
{
	int64_t n, inner = 1, want[RANK];
	int rank = 0, a = axis < 0 ? axis + RANK : axis;
	struct math_case t;

	mc_start(&t, largest ? "ArgMax" : "ArgMin", 13);
	mc_int(&t, "axis", axis);
	mc_int(&t, "keepdims", keep);
	mc_int(&t, "select_last_index", last);
	mc_in(&t, type, RANK, dims);
	for (int64_t i = 0; i < COUNT; i++) /* many equal ones */
		mc_set(&t.in[0], i, (double)(i * 7 % 11 / 4));
	mc_must_run(&t, 1);
	for (int d = 0; d < RANK; d++)
		if (d != a || keep)
			want[rank++] = d == a ? 1 : dims[d];
	mc_expect_shape(&t, 0, rank, want);
	assert_int_equal(t.out[0].dtype, RG_I64);
	n = dims[a];
	for (int d = a + 1; d < RANK; d++)
		inner *= dims[d];
	for (int64_t i = 0; i < COUNT / n; i++) {
		int64_t first = i / inner * n * inner + i % inner, best = 0;

		for (int64_t k = 1; k < n; k++) {
			double v = mc_get(&t.in[0], first + k * inner),
			       b = mc_get(&t.in[0], first + best * inner);

			if ((largest ? v > b : v < b) || (last && v == b))
				best = k;
		}
		mc_expect(&t, 0, i, (double)best, 0, 0);
	}
	mc_free(&t);
}

static void test_arg(void **state)
{
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++)
		for (int axis = -RANK; axis < RANK; axis++)
			for (int form = 0; form < 8; form++)
				check_arg(form & 1, types[k], axis, form & 2, form & 4);
	for (int largest = 0; largest < 2; largest++) {
		mc_start(&t, largest ? "ArgMax" : "ArgMin", 13);
		mc_in_list(&t, RG_F32, 1, MC_DIMS(5), MC_LIST(1, INFINITY, NAN, NAN, -INFINITY));
		mc_must_run(&t, 1);
		mc_expect(&t, 0, 0, 2, 0, 0);
		mc_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sets),
		cmocka_unit_test(test_no_axes),
		cmocka_unit_test(test_empty_sets),
		cmocka_unit_test(test_special_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_arg),
	};

	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
