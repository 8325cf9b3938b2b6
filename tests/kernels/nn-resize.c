/*
 * Resize by rows against the reference: modes, coordinates, growing and
 * shrinking, sizes around a vector's length, channels before and behind, several
 * lanes.
 *
 * Tolerance 2e-6 of the largest element, 1: two sums of up to 4 products in
 * float instead of double. Infinities are left out of interpolation, where the
 * reference leaves out taps of weight 0 and the vector loops do not.
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

static const char *const coords[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
				      "asymmetric", "tf_half_pixel_for_nn" };

struct shape_case {
	int rank;
	int64_t in[5];
	float scale[5];
};

static const struct shape_case shapes[] = {
	{ 4, { 2, 3, 5, 7 }, { 1, 1, 2, 2 } },      { 4, { 1, 2, 9, 33 }, { 1, 1, 2, 2 } },
	{ 4, { 1, 2, 8, 40 }, { 1, 1, 4, 4 } },     { 4, { 1, 1, 3, 16 }, { 1, 1, 8, 8 } },
	{ 4, { 1, 2, 17, 31 }, { 1, 1, 1.5f, 2.3f } }, { 4, { 1, 2, 33, 65 }, { 1, 1, 0.5f, 0.4f } },
	{ 4, { 1, 2, 40, 31 }, { 1, 1, 0.13f, 3 } },   { 4, { 2, 2, 6, 9 }, { 1, 1, 1, 2 } },
	{ 4, { 2, 2, 6, 9 }, { 1, 1, 2, 1 } },      { 4, { 2, 7, 9, 3 }, { 1, 2, 1.7f, 1 } },
	{ 4, { 1, 5, 6, 17 }, { 1, 2, 2, 1 } },     { 3, { 2, 3, 50 }, { 1, 1, 2 } },
	{ 3, { 2, 50, 3 }, { 1, 0.3f, 1 } },        { 2, { 9, 11 }, { 2, 3 } },
	{ 1, { 33 }, { 4 } },                       { 5, { 1, 2, 3, 4, 5 }, { 1, 1, 1, 2, 2 } },
	{ 4, { 1, 2, 1, 1 }, { 1, 1, 5, 7 } },      { 4, { 0, 2, 3, 3 }, { 1, 1, 2, 2 } },
	{ 4, { 1, 1, 12, 12 }, { 1, 1, 0.05f, 0.5f } },
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void start(struct nn_case *t, const struct shape_case *s, const char *mode, const char *coord,
		  enum nn_fill fill)
{
	nn_start(t, "Resize", 19);
	nn_string(t, "mode", mode);
	nn_string(t, "coordinate_transformation_mode", coord);
	nn_input(t, fill, s->rank, s->in);
	nn_absent(t);
	memcpy(nn_input(t, NN_UNIFORM, 1, D(s->rank)), s->scale, (size_t)s->rank * sizeof(float));
}

static void test_interpolation(void **state)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		for (size_t k = 0; k < sizeof(coords) / sizeof(coords[0]); k++) {
			for (int cubic = 0; cubic < 2; cubic++) {
				struct nn_case t;

				start(&t, &shapes[i], cubic ? "cubic" : "linear", coords[k], NN_UNIFORM);
				assert_true(nn_check_all(&t, 0, 2e-6, false) >= 3);
			}
		}
	}
}

static void test_nearest(void **state)
{
	static const char *const rounding[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };

	for (size_t i = 0; i < N_SHAPES; i++) {
		for (size_t k = 0; k < sizeof(coords) / sizeof(coords[0]); k++) {
			for (size_t n = 0; n < 4; n++) {
				struct nn_case t;

				start(&t, &shapes[i], "nearest", coords[k], NN_SPECIAL);
				nn_string(&t, "nearest_mode", rounding[n]);
				assert_true(nn_check_all(&t, 0, 0, true) >= 3);
			}
		}
	}
}

static void test_antialias(void **state)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		for (int way = 0; way < 4; way++) {
			struct nn_case t;

			start(&t, &shapes[i], way & 1 ? "cubic" : "linear", "half_pixel", NN_UNIFORM);
			nn_int(&t, way & 2 ? "antialias" : "exclude_outside", 1);
			/* nothing at all where the taps would reach over more rows than the ring has */
			if (!nn_check_all(&t, 0, 2e-6, false))
				assert_true(way & 2 && (shapes[i].scale[2] < 0.15f));
		}
	}
}

/* Huge, tiny and denormal elements: the sum of two products of their size. */
static void test_magnitudes(void **state)
{
	static const float values[] = { 1e30f, -1e30f, 1e-30f, 1e-41f, -1e-41f, 0.0f, -0.0f, 3e38f };

	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		struct nn_case t;

		nn_start(&t, "Resize", 13);
		nn_string(&t, "mode", "linear");
		{
			float *x = nn_input(&t, NN_UNIFORM, 4, D(1, 2, 9, 13));

			for (int i = 0; i < 2 * 9 * 13; i++)
				x[i] = values[v];
		}
		nn_absent(&t);
		nn_absent(&t);
		memcpy(nn_input_typed(&t, RG_I64, 1, D(4)), D(1, 2, 21, 26), 4 * sizeof(int64_t));
		assert_true(nn_check_all(&t, 1e-6, 6e-45, false) >= 3);
	}
}

static void test_upsample(void **state)
{
	for (int linear = 0; linear < 2; linear++) {
		struct nn_case t;

		nn_start(&t, "Upsample", 9);
		nn_string(&t, "mode", linear ? "linear" : "nearest");
		nn_input(&t, NN_UNIFORM, 4, D(1, 3, 10, 11));
		memcpy(nn_input(&t, NN_UNIFORM, 1, D(4)), ((const float[]){ 1, 1, 2, 2 }), 4 * sizeof(float));
		assert_true(nn_check_all(&t, 0, 1e-6, false) >= 3);
	}
}

/* Integers are picked, not interpolated; three axes are left to the reference. */
static void test_refuses(void **state)
{
	static const struct shape_case volume = { 5, { 1, 1, 3, 3, 3 }, { 1, 1, 2, 2, 2 } };
	struct nn_case t;

	start(&t, &volume, "linear", "half_pixel", NN_UNIFORM);
	assert_int_equal(nn_check_all(&t, 0, 0, false), 0);
	for (int linear = 0; linear < 2; linear++) {
		nn_start(&t, "Resize", 13);
		nn_string(&t, "mode", linear ? "linear" : "nearest");
		for (int32_t i = 0, *x = nn_input_typed(&t, RG_I32, 4, D(1, 1, 4, 5)); i < 20; i++)
			x[i] = 1 << i;
		nn_absent(&t);
		memcpy(nn_input(&t, NN_UNIFORM, 1, D(4)), ((const float[]){ 1, 1, 2, 3 }), 4 * sizeof(float));
		assert_int_equal(nn_check_all(&t, 0, 0, false) >= 3, !linear);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpolation), cmocka_unit_test(test_nearest), cmocka_unit_test(test_antialias),
		cmocka_unit_test(test_magnitudes),    cmocka_unit_test(test_upsample), cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests_name("nn-resize", tests, NULL, NULL);
}
