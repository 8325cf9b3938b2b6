/*
 * Softmax, normalisations and reductions against the reference: any axis, lengths
 * around a vector's, one and many lanes, rows far from 0, huge and tiny ones.
 *
 * Tolerances: sums of up to a few thousand floats 2e-6 of the sum of magnitudes,
 * which for data in [-1, 1) that is normalised to deviation 1 gives 1e-5; exp of a
 * rounded difference of up to 40, 5e-6.
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
#define COUNT(A) (sizeof(A) / sizeof((A)[0]))

static const int64_t lengths[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 257, 768, 1025, 3001 };

static void scale(float *x, int64_t n, float factor, float shift)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = x[i] * factor + shift;
}

static void test_softmax(void **state)
{
	static const char *const ops[] = { "Softmax", "LogSoftmax" };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		for (int o = 0; o < 2; o++) {
			for (int axis = 0; axis < 3; axis++) {
				int64_t dim[3] = { 3, 2, lengths[i] }, n = 6 * lengths[i];
				struct nn_case t;

				if (axis < 2) { /* the length in the middle or in front, then columns behind */
					dim[axis] = lengths[i];
					dim[2] = 3;
					n = dim[0] * dim[1] * dim[2];
				}
				nn_start(&t, ops[o], i % 2 ? 11 : 13);
				nn_int(&t, "axis", axis);
				scale(nn_input(&t, NN_UNIFORM, 3, dim), n, 20, 0);
				assert_true(nn_check_all(&t, 5e-6, o ? 5e-6 : 1e-30, false) >= 3);
			}
		}
	}
	for (int64_t columns = 255; columns <= 513; columns += 129) {
		for (int o = 0; o < 2; o++) {
			struct nn_case t;

			nn_start(&t, ops[o], 13);
			nn_int(&t, "axis", 1);
			scale(nn_input(&t, NN_UNIFORM, 3, D(2, 5, columns)), 10 * columns, 20, 0);
			assert_true(nn_check_all(&t, 5e-6, o ? 5e-6 : 1e-30, false) >= 3);
		}
	}
}

/* Masked rows, rows of nothing but infinities, NaN. */
static void test_softmax_special(void **state)
{
	for (int o = 0; o < 2; o++) {
		for (int axis = 0; axis < 2; axis++) {
			struct nn_case t;
			float *x;

			nn_start(&t, o ? "LogSoftmax" : "Softmax", 13);
			nn_int(&t, "axis", axis);
			x = nn_input(&t, NN_UNIFORM, 2, D(37, 37));
			for (int i = 0; i < 37; i++) {
				for (int k = 0; k < 37; k++) {
					float *v = axis ? &x[i * 37 + k] : &x[k * 37 + i];

					*v = i == 0 ? -INFINITY : i == 1 && k == 20 ? INFINITY : i == 2 && k == 36 ? NAN :
					     i == 3 && k > 4 ? -INFINITY : i == 4 ? 3e38f : i == 5 ? -3e38f : *v * 100;
				}
			}
			assert_true(nn_check_all(&t, 2e-6, 1e-4, true) >= 3);
		}
	}
}

static void test_layer(void **state)
{
	static const struct {
		const char *domain, *op;
		int version, outputs, bias;
	} ops[] = {
		{ "", "LayerNormalization", 17, 3, 1 },
		{ "", "RMSNormalization", 23, 1, 0 },
		{ "", "SimplifiedLayerNormalization", 1, 2, 0 },
	};

	for (size_t o = 0; o < COUNT(ops); o++) {
		for (size_t i = 0; i < COUNT(lengths); i++) {
			for (int shift = 0; shift < 2; shift++) {
				int64_t n = lengths[i];
				struct nn_case t;

				nn_start_in(&t, ops[o].domain, ops[o].op, ops[o].version);
				/* far from 0, where a mean in float would count */
				scale(nn_input(&t, NN_UNIFORM, 3, D(2, 3, n)), 6 * n, 1, shift ? 1000 : 0);
				nn_input(&t, NN_UNIFORM, 1, D(n));
				if (ops[o].bias && i % 2)
					nn_input(&t, NN_UNIFORM, 1, D(n));
				assert_true(nn_check_outputs(&t, ops[o].outputs, 1e-5, 1e-5, false) >= 3);
			}
		}
	}
}

/* Scales that numpy's rules broadcast to the input in any way; axes before the last. */
static void test_layer_shapes(void **state)
{
	static const struct {
		int rank;
		int64_t dim[4];
	} scales[] = {
		{ 1, { 1 } }, { 0, { 0 } }, { 1, { 7 } }, { 2, { 5, 1 } }, { 2, { 5, 7 } }, { 2, { 1, 7 } },
		{ 3, { 3, 5, 7 } }, { 3, { 3, 1, 1 } }, { 4, { 2, 1, 5, 1 } }, { 4, { 2, 3, 5, 7 } },
	};

	for (size_t i = 0; i < COUNT(scales); i++) {
		for (int axis = 1; axis < 4; axis++) {
			for (int rms = 0; rms < 2; rms++) {
				struct nn_case t;

				nn_start(&t, rms ? "RMSNormalization" : "LayerNormalization", rms ? 23 : 17);
				nn_int(&t, "axis", axis);
				nn_input(&t, NN_UNIFORM, 4, D(2, 3, 5, 7));
				nn_input(&t, NN_UNIFORM, scales[i].rank, scales[i].dim);
				if (!rms)
					nn_input(&t, NN_UNIFORM, scales[COUNT(scales) - 1 - i].rank,
						 scales[COUNT(scales) - 1 - i].dim);
				assert_true(nn_check_outputs(&t, rms ? 1 : 3, 1e-5, 1e-5, false) >= 3);
			}
		}
	}
}

static void test_skip(void **state)
{
	for (int simple = 0; simple < 2; simple++) {
		for (size_t i = 0; i < COUNT(lengths); i++) {
			for (int way = 0; way < 8; way++) {
				const int64_t n = lengths[i];
				struct nn_case t;

				nn_start_in(&t, "com.microsoft",
					    simple ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", 1);
				nn_float(&t, "epsilon", 1e-5f);
				nn_input(&t, NN_UNIFORM, 3, D(2, 3, n));
				nn_input(&t, NN_UNIFORM, way & 1 ? 2 : 3, way & 1 ? D(3, n) : D(2, 3, n));
				nn_input(&t, NN_UNIFORM, 1, D(n));
				if (!simple && way & 2)
					nn_input(&t, NN_UNIFORM, 1, D(n));
				else if (!simple)
					nn_absent(&t);
				if (way & 4)
					nn_input(&t, NN_UNIFORM, 1, D(n));
				assert_true(nn_check_all(&t, 1e-5, 1e-5, false) >= 3);
			}
		}
	}
}

static void test_channels(void **state)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		int64_t n = lengths[i];
		struct nn_case t;

		nn_start(&t, "BatchNormalization", 15);
		nn_input(&t, NN_SPECIAL, 3, D(2, 3, n));
		for (int k = 0; k < 4; k++)
			nn_input(&t, NN_POSITIVE, 1, D(3));
		assert_true(nn_check_all(&t, 1e-6, 1e-6, true) >= 3);
		nn_start(&t, "BatchNormalization", 9);
		nn_input(&t, NN_UNIFORM, 2, D(5, n));
		for (int k = 0; k < 4; k++)
			nn_input(&t, NN_POSITIVE, 1, D(n));
		assert_true(nn_check_all(&t, 1e-6, 1e-6, false) >= 3);
		/* not further from 0: the reference keeps the mean of a channel in float */
		for (int shift = 0; shift < 2; shift++) {
			nn_start(&t, "InstanceNormalization", 6);
			scale(nn_input(&t, NN_UNIFORM, 4, D(2, 3, 1, n)), 6 * n, 1, shift ? 20 : 0);
			nn_input(&t, NN_UNIFORM, 1, D(3));
			nn_input(&t, NN_UNIFORM, 1, D(3));
			assert_true(nn_check_all(&t, 1e-5, 2e-5, false) >= 3);
			for (int version = 18; version <= 21; version += 3) {
				nn_start(&t, "GroupNormalization", version);
				nn_int(&t, "num_groups", 2);
				scale(nn_input(&t, NN_UNIFORM, 4, D(2, 6, 1, n)), 12 * n, 1, shift ? 20 : 0);
				nn_input(&t, NN_UNIFORM, 1, D(version < 21 ? 2 : 6));
				nn_input(&t, NN_UNIFORM, 1, D(version < 21 ? 2 : 6));
				assert_true(nn_check_all(&t, 1e-5, 2e-5, false) >= 3);
			}
		}
	}
}

static void test_lrn(void **state)
{
	for (int64_t size = 1; size <= 6; size++) {
		for (int beta = 0; beta < 2; beta++) {
			struct nn_case t;

			nn_start(&t, "LRN", 13);
			nn_int(&t, "size", size);
			nn_float(&t, "alpha", 0.5f);
			nn_float(&t, "beta", beta ? 0.6f : 0.75f);
			nn_float(&t, "bias", 1.5f);
			nn_input(&t, NN_UNIFORM, 4, D(2, 7, 3, 211));
			assert_true(nn_check_all(&t, 1e-6, 1e-37, false) >= 3);
		}
	}
}

static void test_lp(void **state)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		for (int p = 1; p <= 2; p++) {
			for (int axis = 0; axis < 2; axis++) {
				struct nn_case t;

				nn_start(&t, "LpNormalization", 1);
				nn_int(&t, "p", p);
				nn_int(&t, "axis", axis);
				nn_input(&t, NN_UNIFORM, 2, axis ? D(5, lengths[i]) : D(lengths[i], 300));
				assert_true(nn_check_all(&t, 2e-6, 1e-37, false) >= 3);
			}
		}
	}
	for (int k = 0; k < 4; k++) {
		static const float values[] = { 0, 1e-30f, 1e30f, 1e-20f };
		struct nn_case t;

		nn_start(&t, "LpNormalization", 1);
		scale(nn_input(&t, NN_UNIFORM, 2, D(3, 50)), 150, values[k], 0);
		assert_true(nn_check_all(&t, 2e-6, 1e-37, false) >= 3);
	}
}

static const char *const reductions[] = { "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
					  "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp" };

/* Every set of axes of a tensor with lengths of all kinds. */
static void test_reduce(void **state)
{
	static const int64_t shapes[][4] = { { 3, 4, 5, 6 }, { 2, 1, 33, 17 }, { 3, 2, 1, 700 }, { 65, 1, 3, 2 },
					     { 1, 2, 300, 8 } };

	for (size_t o = 0; o < COUNT(reductions); o++) {
		for (size_t s = 0; s < COUNT(shapes); s++) {
			for (int mask = 1; mask < 16; mask++) {
				int64_t axes[4];
				struct nn_case t;
				int n = 0;

				for (int d = 0; d < 4; d++)
					if (mask >> d & 1)
						axes[n++] = d % 2 ? d - 4 : d;
				/* ReduceSum takes its axes as an input from 13 on */
				nn_start(&t, reductions[o], 13);
				nn_int(&t, "keepdims", mask % 2);
				nn_input(&t, o == 4 || o == 8 ? NN_POSITIVE : NN_UNIFORM, 4, shapes[s]);
				if (o) {
					nn_ints(&t, "axes", n, axes);
				} else {
					memcpy(nn_input_typed(&t, RG_I64, 1, D(n)), axes, (size_t)n * sizeof(int64_t));
				}
				/* sums of up to 4,800 numbers of up to 1 */
				assert_true(nn_check_all(&t, 2e-6, o < 2 ? 2e-4 : 2e-6, true) >= 3);
			}
		}
	}
}

/* NaN and infinities where they count; squares that a float would lose. */
static void test_reduce_special(void **state)
{
	for (size_t o = 0; o < COUNT(reductions); o++) {
		for (int axis = 0; axis < 2; axis++) {
			for (int row = 0; row < 4; row++) {
				static const float factor[] = { 1, 1e30f, 1e-25f, 1 };
				struct nn_case t;
				float *x;

				nn_start(&t, reductions[o], o ? 13 : 11);
				nn_ints(&t, "axes", 1, D(axis));
				x = nn_input(&t, row ? NN_POSITIVE : NN_SPECIAL, 2, axis ? D(20, 77) : D(77, 20));
				if (row)
					scale(x, 77 * 20, factor[row], row == 3 ? 1e6f : 0);
				/* adding numbers of both signs near the largest: sides may overflow apart */
				if (row == 0 && (o < 2 || o == 4 || o == 7))
					for (int i = 0; i < 77 * 20; i++)
						x[i] = fabsf(x[i]);
				assert_true(nn_check_all(&t, 2e-6, 1e-37, true) >= 3);
			}
		}
	}
}

/* A million floats of one sign: the sum of many is as exact as that of few. */
static void test_long_sum(void **state)
{
	struct nn_case t;

	nn_start(&t, "ReduceSum", 11);
	nn_int(&t, "keepdims", 0);
	nn_input(&t, NN_POSITIVE, 1, D(1000003));
	assert_true(nn_check_all(&t, 3e-7, 0, false) >= 3);
}

static void test_arg(void **state)
{
	for (int way = 0; way < 4; way++) {
		for (size_t i = 0; i < COUNT(lengths); i++) {
			for (int axis = 0; axis < 3; axis++) {
				struct nn_case t;
				float *x;

				nn_start(&t, way & 1 ? "ArgMax" : "ArgMin", 13);
				nn_int(&t, "axis", axis);
				nn_int(&t, "select_last_index", way >> 1);
				x = nn_input(&t, i % 2 ? NN_SPECIAL : NN_UNIFORM, 3,
					     axis == 0 ? D(lengths[i], 2, 131) : axis == 1 ? D(2, lengths[i], 3) :
					     D(3, 2, lengths[i]));
				for (int64_t k = 0; k < rg_shape_count(&t.in[0].shape); k++)
					if (i % 3 == 0) /* many the same */
						x[k] = rintf(x[k] * 2);
				assert_true(nn_check_all(&t, 0, 0, true) >= 3);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_softmax),      cmocka_unit_test(test_softmax_special),
		cmocka_unit_test(test_layer),        cmocka_unit_test(test_layer_shapes),
		cmocka_unit_test(test_skip),         cmocka_unit_test(test_channels),
		cmocka_unit_test(test_lrn),          cmocka_unit_test(test_lp),
		cmocka_unit_test(test_reduce),       cmocka_unit_test(test_reduce_special),
		cmocka_unit_test(test_long_sum),     cmocka_unit_test(test_arg),
	};

	return cmocka_run_group_tests_name("nn-norm", tests, NULL, NULL);
}
