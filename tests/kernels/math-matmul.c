/*
 * Matrix products, Gemm, Einsum, Det against sums by index arithmetic, and the
 * costs that the operator table gives them.
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

static void in_small(struct math_case *t, enum rg_dtype type, int rank, const int64_t *dims)
{
	bool is_float = rg_dtype_is_float(type);

	mc_in_random(t, type, rank, dims, is_float ? -1 : 0, is_float ? 1 : 9);
}

static void cost_of(const struct math_case *t, struct rg_cost *cost)
{
	static int slots[MC_MAX_IO] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct rg_node node = t->node;
	const struct rg_cost_in c = { .node = &node, .in = t->in, .out = t->out };

	node.in = node.out = slots;
	rg_op_cost(node.op, &c, cost);
}

static const struct {
	int ra, rb, ro;
	int64_t a[5], b[5], out[5];
	int64_t m, n, k;
	int64_t batch_a[4], batch_b[4]; /* which matrix each of the four batches uses at most */
} products[] = {
	{ 2, 2, 2, { 3, 5 }, { 5, 4 }, { 3, 4 }, 3, 4, 5, { 0 }, { 0 } },
	{ 2, 2, 2, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1, 1, 1, { 0 }, { 0 } },
	{ 2, 2, 2, { 7, 300 }, { 300, 131 }, { 7, 131 }, 7, 131, 300, { 0 }, { 0 } },
	{ 1, 2, 1, { 5 }, { 5, 4 }, { 4 }, 1, 4, 5, { 0 }, { 0 } },
	{ 2, 1, 1, { 3, 5 }, { 5 }, { 3 }, 3, 1, 5, { 0 }, { 0 } },
	{ 1, 1, 0, { 5 }, { 5 }, { 0 }, 1, 1, 5, { 0 }, { 0 } },
	{ 3, 2, 3, { 2, 3, 5 }, { 5, 4 }, { 2, 3, 4 }, 3, 4, 5, { 0, 1 }, { 0, 0 } },
	{ 4, 3, 4, { 2, 1, 3, 5 }, { 2, 5, 4 }, { 2, 2, 3, 4 }, 3, 4, 5, { 0, 0, 1, 1 }, { 0, 1, 0, 1 } },
	{ 1, 3, 2, { 5 }, { 2, 5, 4 }, { 2, 4 }, 1, 4, 5, { 0, 0 }, { 0, 1 } },
	{ 2, 2, 2, { 3, 0 }, { 0, 4 }, { 3, 4 }, 3, 4, 0, { 0 }, { 0 } },
	{ 2, 2, 2, { 0, 5 }, { 5, 4 }, { 0, 4 }, 0, 4, 5, { 0 }, { 0 } },
};

static void check_product(size_t p, enum rg_dtype type)
{
	int64_t m = products[p].m, n = products[p].n, k = products[p].k, total;
	double tol = 4 * mc_tolerance(type);
	struct rg_cost cost;
	struct math_case t;

	mc_start(&t, "MatMul", 13);
	in_small(&t, type, products[p].ra, products[p].a);
	in_small(&t, type, products[p].rb, products[p].b);
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, products[p].ro, products[p].out);
	total = rg_shape_count(&t.out[0].shape);
	for (int64_t at = 0; at < total; at++) {
		int64_t b = at / (m * n), i = at / n % m, j = at % n;
		double sum = 0;

		for (int64_t l = 0; l < k; l++)
			sum += mc_get(&t.in[0], (products[p].batch_a[b] * m + i) * k + l) *
			       mc_get(&t.in[1], (products[p].batch_b[b] * k + l) * n + j);
		mc_expect(&t, 0, at, sum, tol, tol);
	}
	cost_of(&t, &cost);
	assert_int_equal(rg_dtype_is_float(type) ? cost.flops : cost.iops, 2 * total * k);
	assert_int_equal(rg_dtype_is_float(type) ? cost.iops : cost.flops, 0);
	mc_free(&t);
}

static void test_matmul(void **state)
{
	struct math_case t;

	for (size_t p = 0; p < sizeof(products) / sizeof(products[0]); p++)
		for (int k = 0; k < N_TYPES; k++)
			check_product(p, types[k]);
	mc_start(&t, "MatMul", 13); /* wraps */
	mc_in_list(&t, RG_I32, 2, MC_DIMS(1, 2), MC_LIST(2147483647, 1));
	mc_in_list(&t, RG_I32, 2, MC_DIMS(2, 1), MC_LIST(1, 1));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, -2147483648.0, 0, 0);
	mc_free(&t);
	mc_start(&t, "MatMul", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "MatMul", 13);
	mc_in(&t, RG_F32, 0, NULL);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

/* Infinity times 0 and NaN are not lost in a sum. */
static void test_matmul_special(void **state)
{
	struct math_case t;

	mc_start(&t, "MatMul", 13);
	mc_in_list(&t, RG_F32, 2, MC_DIMS(3, 2), MC_LIST(0, 1, NAN, 0, 1, INFINITY));
	mc_in_list(&t, RG_F32, 2, MC_DIMS(2, 1), MC_LIST(INFINITY, 1));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, NAN, 0, 0);
	mc_expect(&t, 0, 1, NAN, 0, 0);
	mc_expect(&t, 0, 2, INFINITY, 0, 0);
	mc_free(&t);
}

static void check_gemm(enum rg_dtype type, int form, int bias, float alpha, float beta)
{
	static const struct { int rank; int64_t dim[2];
	} shapes[] = {
	    {2, {5, 67}}, {1, {67}}, {2, {5, 1}}, {0, {0}}, {1, {1}}, {2, {1, 67}},
	};
	bool ta = form & 1, tb = form & 2;
	int64_t m = 5, n = 67, k = 9, ops = 2 * m * n * k;
	double tol = 4 * mc_tolerance(type);
	struct rg_cost cost;
	struct math_case t;

	mc_start(&t, "Gemm", 13);
	mc_int(&t, "transA", ta);
	mc_int(&t, "transB", tb);
	mc_float(&t, "alpha", alpha);
	mc_float(&t, "beta", beta);
	in_small(&t, type, 2, ta ? MC_DIMS(k, m) : MC_DIMS(m, k));
	in_small(&t, type, 2, tb ? MC_DIMS(n, k) : MC_DIMS(k, n));
	if (bias >= 0)
		in_small(&t, type, shapes[bias].rank, shapes[bias].dim);
	mc_must_run(&t, 1);
	mc_expect_shape(&t, 0, 2, MC_DIMS(m, n));
	for (int64_t at = 0; at < m * n; at++) {
		int64_t i = at / n, j = at % n;
		double sum = 0;

		for (int64_t l = 0; l < k; l++)
			sum += mc_get(&t.in[0], ta ? l * m + i : i * k + l) *
			       mc_get(&t.in[1], tb ? j * k + l : l * n + j);
		sum *= (double)alpha;
		if (bias >= 0)
			sum += (double)beta *
			       mc_get(&t.in[2], mc_broadcast_index(&t.in[2].shape, &t.out[0].shape, at));
		mc_expect(&t, 0, at, sum, tol, tol);
	}
	ops += alpha != 1 ? m * n : 0;
	ops += bias < 0 ? 0 : beta != 1 ? 2 * m * n : m * n;
	cost_of(&t, &cost);
	assert_int_equal(rg_dtype_is_float(type) ? cost.flops : cost.iops, ops);
	mc_free(&t);
}

static void test_gemm(void **state)
{
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++)
		for (int form = 0; form < 4; form++)
			for (int bias = -1; bias < 6; bias++) {
				check_gemm(types[k], form, bias, 1, 1);
				check_gemm(types[k], form, bias, 2, 3);
				if (rg_dtype_is_float(types[k]))
					check_gemm(types[k], form, bias, 0.5f, -0.25f);
			}
	mc_start(&t, "Gemm", 13); /* beta 0: C is not looked at */
	mc_float(&t, "beta", 0);
	mc_in_list(&t, RG_F32, 2, MC_DIMS(1, 1), MC_LIST(2));
	mc_in_list(&t, RG_F32, 2, MC_DIMS(1, 1), MC_LIST(3));
	mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(NAN));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 6, 0, 0);
	mc_free(&t);
	mc_start(&t, "Gemm", 6); /* C of another shape wants the attribute */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 4));
	mc_in(&t, RG_F32, 1, MC_DIMS(4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	t.node.n_attrs = 0;
	mc_int(&t, "broadcast", 1);
	mc_must_run(&t, 1);
	mc_free(&t);
	mc_start(&t, "Gemm", 13);
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 4));
	mc_in(&t, RG_F32, 3, MC_DIMS(1, 2, 4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
	mc_start(&t, "Gemm", 9); /* C is optional from 11 on */
	mc_in(&t, RG_F32, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_F32, 2, MC_DIMS(3, 4));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_matmul_integer(void **state)
{
	static const enum rg_dtype bytes[] = { RG_I8, RG_U8 };
	struct math_case t;

	for (int form = 0; form < 16; form++) {
		enum rg_dtype ta = bytes[form & 1], tb = bytes[form >> 1 & 1];
		bool per_row = form & 4, per_column = form & 8;

		mc_start(&t, "MatMulInteger", 10);
		mc_in_random(&t, ta, 3, MC_DIMS(2, 3, 5), ta == RG_I8 ? -128 : 0, ta == RG_I8 ? 128 : 256);
		mc_in_random(&t, tb, 2, MC_DIMS(5, 4), tb == RG_I8 ? -128 : 0, tb == RG_I8 ? 128 : 256);
		mc_in_random(&t, ta, per_row, MC_DIMS(3), 0, 100);
		mc_in_random(&t, tb, per_column, MC_DIMS(4), 0, 100);
		mc_must_run(&t, 1);
		assert_int_equal(t.out[0].dtype, RG_I32);
		mc_expect_shape(&t, 0, 3, MC_DIMS(2, 3, 4));
		for (int64_t at = 0; at < 24; at++) {
			int64_t i = at / 4, j = at % 4;
			double sum = 0;

			for (int64_t l = 0; l < 5; l++)
				sum += (mc_get(&t.in[0], i * 5 + l) - mc_get(&t.in[2], per_row ? i % 3 : 0)) *
				       (mc_get(&t.in[1], l * 4 + j) - mc_get(&t.in[3], per_column ? j : 0));
			mc_expect(&t, 0, at, sum, 0, 0);
		}
		mc_free(&t);
	}
	mc_start(&t, "MatMulInteger", 10); /* zero points may be absent */
	mc_in_list(&t, RG_U8, 2, MC_DIMS(1, 2), MC_LIST(255, 255));
	mc_in_list(&t, RG_U8, 2, MC_DIMS(2, 1), MC_LIST(255, 255));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 2 * 255 * 255, 0, 0);
	mc_free(&t);
	mc_start(&t, "MatMulInteger", 10);
	mc_in(&t, RG_U8, 2, MC_DIMS(3, 2));
	mc_in(&t, RG_U8, 2, MC_DIMS(2, 1));
	mc_in(&t, RG_U8, 1, MC_DIMS(2));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

static void test_qlinear_matmul(void **state)
{
	static const enum rg_dtype bytes[] = { RG_I8, RG_U8 };
	struct math_case t;

	for (int form = 0; form < 8; form++) {
		enum rg_dtype tb = bytes[form & 1], ty = bytes[form >> 1 & 1];
		bool per_column = form & 4;
		double lo = ty == RG_I8 ? -128 : 0;

		mc_start(&t, "QLinearMatMul", 21);
		mc_in_random(&t, RG_U8, 2, MC_DIMS(3, 5), 0, 256);
		mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(0.03125));
		mc_in_list(&t, RG_U8, 0, NULL, MC_LIST(100));
		mc_in_random(&t, tb, 2, MC_DIMS(5, 4), tb == RG_I8 ? -128 : 0, tb == RG_I8 ? 128 : 256);
		mc_in_list(&t, RG_F32, per_column, MC_DIMS(4), MC_LIST(0.0625, 0.125, 0.25, 0.5));
		mc_in_list(&t, tb, per_column, MC_DIMS(4), MC_LIST(3, 5, 7, 9));
		mc_in_list(&t, RG_F32, 0, NULL, MC_LIST(0.75));
		mc_in_list(&t, ty, 0, NULL, MC_LIST(11));
		mc_must_run(&t, 1);
		assert_int_equal(t.out[0].dtype, ty);
		for (int64_t at = 0; at < 12; at++) {
			int64_t i = at / 4, j = at % 4, c = per_column ? j : 0;
			double sum = 0;

			for (int64_t l = 0; l < 5; l++)
				sum += (mc_get(&t.in[0], i * 5 + l) - 100) *
				       (mc_get(&t.in[3], l * 4 + j) - mc_get(&t.in[5], c));
			sum = rint(sum * 0.03125 * mc_get(&t.in[4], c) / 0.75) + 11;
			mc_expect(&t, 0, at, fmin(fmax(sum, lo), lo + 255), 0, 0);
		}
		mc_free(&t);
	}
}

static void test_einsum(void **state)
{
	struct math_case t;

	for (int k = 0; k < N_TYPES; k++) {
		double tol = 4 * mc_tolerance(types[k]);

		mc_start(&t, "Einsum", 12); /* a contraction with a batch */
		mc_string(&t, "equation", "bij, bjk -> bik");
		in_small(&t, types[k], 3, MC_DIMS(2, 3, 4));
		in_small(&t, types[k], 3, MC_DIMS(2, 4, 5));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 3, MC_DIMS(2, 3, 5));
		for (int at = 0; at < 30; at++) {
			int b = at / 15, i = at / 5 % 3, l = at % 5;
			double sum = 0;

			for (int j = 0; j < 4; j++)
				sum += mc_get(&t.in[0], (b * 3 + i) * 4 + j) *
				       mc_get(&t.in[1], (b * 4 + j) * 5 + l);
			mc_expect(&t, 0, at, sum, tol, tol);
		}
		mc_free(&t);
		mc_start(&t, "Einsum", 12); /* a diagonal under an ellipsis */
		mc_string(&t, "equation", "...ii->...i");
		in_small(&t, types[k], 3, MC_DIMS(2, 3, 3));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 2, MC_DIMS(2, 3));
		for (int at = 0; at < 6; at++)
			mc_expect(&t, 0, at, mc_get(&t.in[0], at / 3 * 9 + at % 3 * 4), 0, 0);
		mc_free(&t);
		mc_start(&t, "Einsum", 12); /* no arrow: labels by letter, upper case first */
		mc_string(&t, "equation", "bA");
		in_small(&t, types[k], 2, MC_DIMS(2, 3));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 2, MC_DIMS(3, 2));
		for (int at = 0; at < 6; at++)
			mc_expect(&t, 0, at, mc_get(&t.in[0], at % 2 * 3 + at / 2), 0, 0);
		mc_free(&t);
		mc_start(&t, "Einsum", 12); /* an ellipsis that broadcasts */
		mc_string(&t, "equation", "...a,...a->...");
		in_small(&t, types[k], 3, MC_DIMS(2, 1, 3));
		in_small(&t, types[k], 2, MC_DIMS(4, 3));
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 2, MC_DIMS(2, 4));
		for (int at = 0; at < 8; at++) {
			double sum = 0;

			for (int a = 0; a < 3; a++)
				sum += mc_get(&t.in[0], at / 4 * 3 + a) * mc_get(&t.in[1], at % 4 * 3 + a);
			mc_expect(&t, 0, at, sum, tol, tol);
		}
		mc_free(&t);
	}
}

static void test_einsum_refused(void **state)
{
	static const char *const wrong[] = {"ij",   "ijkl->i", "i j k->q", "ijk->ii", "ij.k->i", "ijk,i->j",
					    "ijk-", "......k", "ijk->i,j", "iik",     ""};
	struct math_case t;

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		mc_start(&t, "Einsum", 12);
		mc_string(&t, "equation", wrong[k]);
		mc_in(&t, RG_F32, 3, MC_DIMS(2, 3, 4));
		if (mc_run(&t, 1) != -EINVAL)
			fail_msg("'%s' was not refused", wrong[k]);
		mc_free(&t);
	}
}

static void test_det(void **state)
{
	struct math_case t;

	for (int k = 0; k < 4; k++) {
		double tol = 16 * mc_tolerance(types[k]);

		mc_start(&t, "Det", 22);
		mc_in_random(&t, types[k], 3, MC_DIMS(4, 3, 3), -1, 1);
		mc_set(&t.in[0], 0, 0); /* a pivot that has to be looked for */
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 1, MC_DIMS(4));
		for (int b = 0; b < 4; b++) {
			double m[9];

			for (int i = 0; i < 9; i++)
				m[i] = mc_get(&t.in[0], b * 9 + i);
			mc_expect(&t, 0, b,
				  m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
					  m[2] * (m[3] * m[7] - m[4] * m[6]),
				  tol, tol);
		}
		mc_free(&t);
	}
	mc_start(&t, "Det", 11); /* two equal rows */
	mc_in_list(&t, RG_F64, 2, MC_DIMS(2, 2), MC_LIST(1, 2, 1, 2));
	mc_must_run(&t, 1);
	mc_expect(&t, 0, 0, 0, 0, 0);
	mc_free(&t);
	mc_start(&t, "Det", 11);
	mc_in(&t, RG_F64, 2, MC_DIMS(2, 3));
	assert_int_equal(mc_run(&t, 1), -EINVAL);
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_matmul_special),
		cmocka_unit_test(test_gemm),
		cmocka_unit_test(test_matmul_integer),
		cmocka_unit_test(test_qlinear_matmul),
		cmocka_unit_test(test_einsum),
		cmocka_unit_test(test_einsum_refused),
		cmocka_unit_test(test_det),
	};

	return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
