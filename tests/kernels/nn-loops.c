/*
 * The pools by rows and columns against the reference, over sizes around a
 * vector's length. Sums over a row of up to 3,000 elements: 1e-5.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nn-case.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })

static void test_global_average(void **state)
{
	static const int64_t lengths[] = { 1, 2, 7, 8, 16, 31, 33, 64, 100, 768, 3001 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct nn_case t;

		nn_start(&t, "GlobalAveragePool", 1);
		nn_input(&t, NN_UNIFORM, 4, D(2, 3, 1, lengths[i]));
		assert_true(nn_check_all(&t, 1e-5, 1e-6, false) >= 3);
		nn_start(&t, "GlobalMaxPool", 1);
		nn_input(&t, NN_SPECIAL, 4, D(2, 3, 1, lengths[i]));
		assert_true(nn_check_all(&t, 0, 0, true) >= 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_global_average),
		cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests_name("nn-loops", tests, NULL, NULL);
}
