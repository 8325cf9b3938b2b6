/*
 * The scalar pools, resizing and recurrent layers against
 * values worked out by hand and against theory. ONNX's own cases are in
 * tests/conformance; what they do not reach is here.
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

static void expect(struct nn_case *t, int n, const float *want, double tolerance)
{
	struct rg_error err = RG_ERROR_INIT;
	float *y;

	if (nn_infer(t, 1, &err))
		fail_msg("%s: %s", t->what, err.message);
	assert_int_equal(rg_shape_count(&t->out[0].shape), n);
	assert_true(nn_run(t, "ref", 1, false, &y));
	nn_compare(t, "ref", want, y, 0, tolerance);
	nn_free(t);
}

static void fill(float *x, int n)
{
	for (int i = 0; i < n; i++)
		x[i] = (float)(i + 1);
}

static void test_pool_values(void **state)
{
	struct nn_case t;

	/* 1 2 3 / 4 5 6 / 7 8 9, window 2, stride 2, with ceil_mode: the last ones see less */
	for (int avg = 0; avg < 2; avg++) {
		nn_start(&t, avg ? "AveragePool" : "MaxPool", avg ? 11 : 12);
		nn_ints(&t, "kernel_shape", 2, D(2, 2));
		nn_ints(&t, "strides", 2, D(2, 2));
		nn_int(&t, "ceil_mode", 1);
		fill(nn_input(&t, NN_UNIFORM, 4, D(1, 1, 3, 3)), 9);
		expect(&t, 4, avg ? (const float[]){ 3, 4.5f, 7.5f, 9 } : (const float[]){ 5, 6, 8, 9 }, 1e-6);
	}
	/* padding counts in the mean only when asked to */
	for (int with = 0; with < 2; with++) {
		nn_start(&t, "AveragePool", 11);
		nn_ints(&t, "kernel_shape", 1, D(3));
		nn_ints(&t, "pads", 2, D(1, 1));
		nn_int(&t, "count_include_pad", with);
		fill(nn_input(&t, NN_UNIFORM, 3, D(1, 1, 3)), 3);
		expect(&t, 3, with ? (const float[]){ 1, 2, 5 / 3.0f } : (const float[]){ 1.5f, 2, 2.5f }, 1e-6);
	}
	nn_start(&t, "LpPool", 18);
	nn_ints(&t, "kernel_shape", 1, D(2));
	nn_int(&t, "p", 2);
	fill(nn_input(&t, NN_UNIFORM, 3, D(1, 1, 4)), 4);
	expect(&t, 3, (const float[]){ sqrtf(5), sqrtf(13), 5 }, 1e-6);
}

/* MaxPool tells where; MaxUnpool puts it back there. */
static void test_indices_round_trip(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct nn_case t, u;
	const int64_t *where;
	float *y;

	nn_start(&t, "MaxPool", 12);
	nn_ints(&t, "kernel_shape", 2, D(2, 2));
	nn_ints(&t, "strides", 2, D(2, 2));
	nn_input(&t, NN_UNIFORM, 4, D(2, 3, 6, 4));
	assert_int_equal(nn_infer(&t, 2, &err), 0);
	assert_int_equal(t.out[1].dtype, RG_I64);
	/* nn_run frees every output but the first: run by hand */
	{
		const struct rg_kernel *k = rg_kernel_find("", "MaxPool", "ref");
		struct rg_call c = { .node = &t.node, .in = t.in, .out = t.out };
		static float out[36];
		static int64_t at[36];

		assert_non_null(k);
		t.out[0].data = out;
		t.out[1].data = at;
		assert_int_equal(k->run(&c, &rg_par_serial, &err), 0);
		where = at;
		for (int i = 0; i < 36; i++)
			assert_true(((float *)t.in[0].data)[where[i]] == out[i]);
	}
	nn_start(&u, "MaxUnpool", 11);
	nn_ints(&u, "kernel_shape", 2, D(2, 2));
	nn_ints(&u, "strides", 2, D(2, 2));
	memcpy(nn_input(&u, NN_UNIFORM, 4, D(2, 3, 3, 2)), t.out[0].data, 36 * sizeof(float));
	memcpy(nn_input_typed(&u, RG_I64, 4, D(2, 3, 3, 2)), where, 36 * sizeof(int64_t));
	assert_int_equal(nn_infer(&u, 1, &err), 0);
	assert_true(rg_shape_equal(&u.out[0].shape, &t.in[0].shape));
	assert_true(nn_run(&u, "ref", 1, false, &y));
	for (int i = 0; i < 144; i++) {
		bool is_max = false;

		for (int k = 0; k < 36; k++)
			is_max = is_max || where[k] == i;
		assert_true(y[i] == (is_max ? ((float *)t.in[0].data)[i] : 0));
	}
	((int64_t *)u.in[1].data)[5] = 144; /* outside */
	{
		const struct rg_kernel *k = rg_kernel_find("", "MaxUnpool", "ref");
		struct rg_call c = { .node = &u.node, .in = u.in, .out = u.out };

		assert_int_equal(k->run(&c, &rg_par_serial, &err), -EINVAL);
		((int64_t *)u.in[1].data)[5] = -1;
		assert_int_equal(k->run(&c, &rg_par_serial, &err), -EINVAL);
	}
	nn_free(&t);
	nn_free(&u);
}

/* A straight line stays one under linear and cubic interpolation, wherever no
 * sample leaves the input. */
static void test_resize_line(void **state)
{
	static const char *const modes[] = { "linear", "cubic" };
	static const char *const coords[] = { "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel" };

	for (int m = 0; m < 2; m++) {
		for (int k = 0; k < 4; k++) {
			struct rg_error err = RG_ERROR_INIT;
			struct nn_case t;
			float *y;

			nn_start(&t, "Resize", 13);
			nn_string(&t, "mode", modes[m]);
			nn_string(&t, "coordinate_transformation_mode", coords[k]);
			/* the one coefficient for which a cubic reproduces lines (Keys 1981) */
			nn_float(&t, "cubic_coeff_a", -0.5f);
			fill(nn_input(&t, NN_UNIFORM, 1, D(10)), 10);
			nn_absent(&t);
			*nn_input(&t, NN_UNIFORM, 1, D(1)) = 3;
			assert_int_equal(nn_infer(&t, 1, &err), 0);
			assert_int_equal(t.out[0].shape.dim[0], 30);
			assert_true(nn_run(&t, "ref", 1, false, &y));
			for (int i = 6; i < 24; i++) {
				double at = k == 1 ? i * 9 / 29.0 : k == 2 ? i / 3.0 : (i + 0.5) / 3 - 0.5;

				assert_true(fabs((double)y[i] - (at + 1)) < 1e-5);
			}
			nn_free(&t);
		}
	}
}

static void test_resize_refusals(void **state)
{
	static const float bad[] = { 0, -1, NAN, INFINITY, 1e30f };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct nn_case t;

		nn_start(&t, "Resize", 13);
		nn_input(&t, NN_UNIFORM, 1, D(10));
		nn_absent(&t);
		*nn_input(&t, NN_UNIFORM, 1, D(1)) = bad[i];
		assert_true(nn_infer(&t, 1, &err) < 0 && err.message[0]);
		nn_free(&t);
	}
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* One step, one unit, all weights 1: equations by hand. */
static void test_rnn_by_hand(void **state)
{
	static const char *const ops[] = { "RNN", "GRU", "LSTM" };
	static const int gates[] = { 1, 3, 4 };
	const float x = 0.5f, h = 0.25f, s = sigmoid(x + h);
	const float want[] = {
		tanhf(x + h),
		(1 - s) * tanhf(x + s * h) + s * h,
		s * tanhf(s * 0.125f + s * tanhf(x + h)),
	};

	for (int k = 0; k < 3; k++) {
		struct nn_case t;
		float *w;

		nn_start(&t, ops[k], 14);
		nn_int(&t, "hidden_size", 1);
		*nn_input(&t, NN_UNIFORM, 3, D(1, 1, 1)) = x;
		for (int j = 0; j < 2; j++) {
			w = nn_input(&t, NN_UNIFORM, 3, D(1, gates[k], 1));
			for (int i = 0; i < gates[k]; i++)
				w[i] = 1;
		}
		nn_absent(&t);
		nn_absent(&t);
		*nn_input(&t, NN_UNIFORM, 3, D(1, 1, 1)) = h;
		if (k == 2)
			*nn_input(&t, NN_UNIFORM, 3, D(1, 1, 1)) = 0.125f;
		expect(&t, 1, &want[k], 1e-6);
	}
}

/* Running backwards over a reversed sequence is running forwards; with both
 * directions and equal weights, so are the halves of the output. */
static void test_rnn_directions(void **state)
{
	static const char *const ops[] = { "RNN", "GRU", "LSTM" };
	static const int gates[] = { 1, 3, 4 };
	enum { SEQ = 5, BATCH = 2, IN = 3, HID = 4, STEP = BATCH * IN };

	for (int k = 0; k < 3; k++) {
		struct rg_error err = RG_ERROR_INIT;
		struct nn_case t[2];
		float *y[2], *x[2];

		for (int r = 0; r < 2; r++) {
			nn_start(&t[r], ops[k], 14);
			nn_string(&t[r], "direction", r ? "reverse" : "forward");
			x[r] = nn_input(&t[r], NN_UNIFORM, 3, D(SEQ, BATCH, IN));
			nn_input(&t[r], NN_UNIFORM, 3, D(1, gates[k] * HID, IN));
			nn_input(&t[r], NN_UNIFORM, 3, D(1, gates[k] * HID, HID));
			nn_input(&t[r], NN_UNIFORM, 2, D(1, 2 * gates[k] * HID));
			assert_int_equal(nn_infer(&t[r], 1, &err), 0);
		}
		for (int s = 0; s < SEQ; s++)
			memcpy(x[1] + s * STEP, x[0] + (SEQ - 1 - s) * STEP, STEP * sizeof(float));
		for (int r = 0; r < 2; r++)
			assert_true(nn_run(&t[r], "ref", 1, false, &y[r]));
		for (int s = 0; s < SEQ; s++)
			assert_memory_equal(y[0] + s * BATCH * HID, y[1] + (SEQ - 1 - s) * BATCH * HID,
					    BATCH * HID * sizeof(float));
		for (int r = 0; r < 2; r++)
			nn_free(&t[r]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_values),
		cmocka_unit_test(test_indices_round_trip),
		cmocka_unit_test(test_resize_line),
		cmocka_unit_test(test_resize_refusals),
		cmocka_unit_test(test_rnn_by_hand),
		cmocka_unit_test(test_rnn_directions),
	};

	return cmocka_run_group_tests_name("nn-ref", tests, NULL, NULL);
}
