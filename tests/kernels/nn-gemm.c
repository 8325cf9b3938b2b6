/*
 * Matrix products of every variant against the reference: transposes, factors,
 * biases of each broadcast kind, batches, vectors, odd sizes. Tolerance as for
 * convolutions: sums of products of numbers below 1 in float, in any order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "kernels/blas/blas.h"
#include "nn-case.h"
#include "sys/cpu.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })

static void test_gemm(void **state)
{
	static const int64_t sizes[][3] = { { 1, 1, 1 }, { 1, 100, 50 }, { 37, 1, 20 }, { 3, 5, 7 }, { 17, 33, 65 },
					    { 64, 48, 32 }, { 5, 1000, 30 }, { 130, 20, 1 }, { 0, 4, 5 } };
	int runs = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int v = 0; v < 20; v++) {
			int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
			bool ta = v & 1, tb = v & 2;
			struct nn_case t;

			nn_start(&t, "Gemm", 13);
			nn_int(&t, "transA", ta);
			nn_int(&t, "transB", tb);
			nn_float(&t, "alpha", v < 8 ? 1 : 0.5f);
			nn_float(&t, "beta", v < 12 ? 1 : -2);
			nn_input(&t, NN_UNIFORM, 2, ta ? D(k, m) : D(m, k));
			nn_input(&t, NN_UNIFORM, 2, tb ? D(n, k) : D(k, n));
			switch (v / 4) {
			case 0: break;
			case 1: nn_input(&t, NN_UNIFORM, 1, D(n)); break;
			case 2: nn_input(&t, NN_UNIFORM, 2, D(m, n)); break;
			case 3: nn_input(&t, NN_UNIFORM, 2, D(m, 1)); break;
			default: nn_input(&t, NN_UNIFORM, 0, NULL); break;
			}
			t.variable = (i + (size_t)v) % 3 == 0 ? 0 : 7;
			runs += nn_check_all(&t, 1e-4, 1e-5, false);
		}
	}
	assert_true(runs > 0);
}

static void test_matmul(void **state)
{
	static const struct {
		int ra, rb;
		int64_t a[4], b[4];
	} cases[] = {
		{ 2, 2, { 3, 5 }, { 5, 7 } },           { 1, 1, { 9 }, { 9 } },
		{ 1, 2, { 9 }, { 9, 4 } },              { 2, 1, { 4, 9 }, { 9 } },
		{ 3, 2, { 6, 17, 30 }, { 30, 50 } },    { 2, 3, { 17, 30 }, { 6, 30, 50 } },
		{ 4, 4, { 2, 3, 16, 8 }, { 2, 3, 8, 16 } }, { 4, 4, { 2, 1, 5, 8 }, { 1, 3, 8, 9 } },
		{ 4, 3, { 2, 3, 5, 8 }, { 3, 8, 9 } },  { 4, 3, { 2, 3, 1, 8 }, { 3, 8, 70 } },
		{ 3, 1, { 3, 4, 8 }, { 8 } },           { 1, 3, { 8 }, { 3, 8, 4 } },
		{ 2, 2, { 1, 768 }, { 768, 300 } },     { 2, 2, { 100, 64 }, { 64, 100 } },
		{ 3, 3, { 0, 4, 5 }, { 0, 5, 6 } },
	};
	int runs = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nn_case t;

		nn_start(&t, "MatMul", 13);
		nn_input(&t, NN_UNIFORM, cases[i].ra, cases[i].a);
		nn_input(&t, NN_UNIFORM, cases[i].rb, cases[i].b);
		t.variable = i % 2 ? 0 : 3;
		runs += nn_check_all(&t, 1e-4, 1e-5, false);
	}
	assert_true(runs > 0);
}

/* Around the sizes of tiles, panels and blocks, where the loops change their way. */
static void test_sizes(void **state)
{
	static const int64_t near[] = { 1, 2, 5, 6, 7, 8, 12, 13, 15, 16, 17, 24, 31, 32, 33, 64, 100 };
	static const int64_t big[][3] = { { 1, 600, 300 }, { 2, 130, 700 },  { 3, 64, 1024 }, { 200, 520, 300 },
					  { 50, 515, 600 }, { 300, 40, 257 }, { 7, 1030, 30 },  { 129, 513, 65 } };
	const size_t count = sizeof(near) / sizeof(near[0]), n_big = sizeof(big) / sizeof(big[0]);
	int runs = 0;

	for (size_t i = 0; i < count * count * 3 + 4 * n_big; i++) {
		size_t l = i - count * count * 3;
		bool large = i >= count * count * 3;
		int64_t m = large ? big[l / 4][0] : near[i % count], n = large ? big[l / 4][1] : near[i / count % count];
		int64_t k = large ? big[l / 4][2] : (int64_t[]){ 1, 19, 40 }[i / count / count];
		bool ta = i & 1, tb = large ? l & 2 : i % 5 < 2;
		struct nn_case t;

		nn_start(&t, "Gemm", 13);
		nn_int(&t, "transA", ta);
		nn_int(&t, "transB", tb);
		nn_input(&t, NN_UNIFORM, 2, ta ? D(k, m) : D(m, k));
		nn_input(&t, NN_UNIFORM, 2, tb ? D(n, k) : D(k, n));
		if (i % 4 == 0)
			nn_input(&t, NN_UNIFORM, 1, D(n));
		t.variable = i % 3 == 0 ? 0 : 7;
		runs += nn_check_all(&t, 1e-4, 4e-5, false);
	}
	assert_true(runs > 0);
}

/* Columns of B that are the same give the same to the last bit, whichever tile, vector or rest
 * they fall in: a product that is rounded once in one of them and twice in the next decides
 * which of equal logits is the largest. */
static void test_equal_columns(void **state)
{
	static const int64_t rows[] = { 1, 2, 3, 4, 5, 7, 13, 33 };
	static const int64_t columns[] = { 5, 31, 100, 501 };
	const int64_t k = 517;
	struct rg_cpu cpu;
	int compared = 0;

	rg_cpu_detect("", &cpu);
	for (int i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *kernel = rg_kernel_at(i);

		/* OpenBLAS makes no such promise */
		if (strcmp(kernel->op_type, "MatMul") || kernel->domain[0] || !strcmp(kernel->name, "openblas") ||
		    (kernel->isa & ~cpu.isa))
			continue;
		for (size_t v = 0; v < 2 * 8 * 4; v++) {
			int64_t m = rows[v / 2 % 8], n = columns[v / 16];
			struct nn_case t;
			float *b, *y;

			nn_start(&t, "MatMul", 13);
			nn_input(&t, NN_UNIFORM, 2, D(m, k));
			b = nn_input(&t, NN_UNIFORM, 2, D(k, n));
			for (int64_t j = 0; j < k * n; j++)
				b[j] = b[j / n * n];
			t.variable = v % 2 ? 0 : 3;
			assert_int_equal(nn_infer(&t, 1, NULL), 0);
			if (nn_run(&t, kernel->name, 1 + (int)(v % 3), false, &y)) {
				for (int64_t j = 0; j < m * n; j++)
					if (y[j] != y[j / n * n])
						fail_msg("%s, %d x %d x %d: row %d, column %d is %.9g, column 0 %.9g", kernel->name,
							 (int)m, (int)k, (int)n, (int)(j / n), (int)(j % n), y[j], y[j / n * n]);
				compared++;
			}
			nn_free(&t);
		}
	}
	assert_true(compared > 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gemm),
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_equal_columns),
	};

	print_message("# %s\n", rg_blas_describe());
	return cmocka_run_group_tests_name("nn-gemm", tests, NULL, NULL);
}
