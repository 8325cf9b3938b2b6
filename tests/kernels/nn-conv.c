/*
 * Convolutions: the reference against hand-made cases and against theory, and
 * every faster variant against the reference, over odd sizes, pads, strides,
 * dilations and groups.
 *
 * Tolerance: sums of up to 2,000 products of numbers below 1; the reference
 * sums in double, the others in float in any order: rtol 1e-4, atol 1e-4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/blas/blas.h"
#include "nn-case.h"
#include "sys/cpu.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })
#define RTOL 1e-4
#define ATOL 1e-4

struct conv {
	int n;                       /* spatial dimensions */
	int64_t batch, c_in, c_out, group;
	int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
	const char *auto_pad;        /* NULL: pads */
	bool bias;
};

static const struct conv cases[] = {
	{ 2, 1, 3, 5, 1, { 7, 9 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 2, 4, 6, 1, { 8, 8 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }, NULL, true },
	{ 2, 1, 4, 6, 1, { 9, 5 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, { 0 }, NULL, false },
	{ 2, 1, 16, 40, 1, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }, NULL, true },
	{ 2, 1, 8, 64, 1, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 70, 96, 1, { 7, 7 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }, NULL, false },
	{ 2, 1, 3, 16, 1, { 31, 29 }, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 }, NULL, true },
	{ 2, 1, 3, 17, 1, { 30, 33 }, { 5, 3 }, { 3, 1 }, { 1, 1 }, { 0, 2, 1, 0 }, NULL, true },
	{ 2, 1, 2, 3, 1, { 11, 13 }, { 3, 3 }, { 1, 1 }, { 2, 3 }, { 2, 3, 2, 3 }, NULL, true },
	{ 2, 1, 2, 3, 1, { 11, 13 }, { 3, 3 }, { 2, 3 }, { 3, 2 }, { 1, 0, 4, 5 }, NULL, false },
	{ 2, 1, 6, 9, 3, { 10, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 2, 8, 8, 2, { 5, 6 }, { 2, 2 }, { 1, 2 }, { 1, 1 }, { 0, 1, 1, 0 }, NULL, true },
	{ 2, 1, 8, 8, 8, { 14, 15 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 8, 8, 8, { 15, 14 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, false },
	{ 2, 2, 7, 7, 7, { 19, 37 }, { 5, 5 }, { 1, 1 }, { 1, 1 }, { 2, 2, 2, 2 }, NULL, true },
	{ 2, 1, 5, 5, 5, { 12, 70 }, { 5, 5 }, { 2, 2 }, { 1, 1 }, { 2, 2, 2, 2 }, NULL, true },
	{ 2, 1, 5, 5, 5, { 6, 50 }, { 3, 3 }, { 2, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 4, 8, 4, { 9, 9 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 4, 4, 4, { 9, 21 }, { 3, 3 }, { 1, 1 }, { 2, 2 }, { 2, 2, 2, 2 }, NULL, true },
	{ 2, 1, 4, 4, 4, { 4, 4 }, { 9, 9 }, { 1, 1 }, { 1, 1 }, { 4, 4, 4, 4 }, NULL, true },
	{ 2, 1, 3, 3, 3, { 1, 1 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 3, 4, 1, { 10, 11 }, { 3, 4 }, { 2, 3 }, { 1, 1 }, { 0 }, "SAME_UPPER", true },
	{ 2, 1, 3, 4, 1, { 10, 11 }, { 4, 3 }, { 3, 2 }, { 1, 1 }, { 0 }, "SAME_LOWER", true },
	{ 2, 1, 3, 4, 1, { 10, 11 }, { 4, 3 }, { 3, 2 }, { 2, 1 }, { 0 }, "VALID", true },
	{ 1, 2, 5, 7, 1, { 33 }, { 4 }, { 2 }, { 1 }, { 1, 2 }, NULL, true },
	{ 1, 1, 6, 6, 6, { 33 }, { 3 }, { 1 }, { 1 }, { 1, 1 }, NULL, true },
	{ 3, 1, 3, 4, 1, { 5, 6, 7 }, { 3, 2, 3 }, { 1, 2, 1 }, { 1, 1, 2 }, { 1, 0, 2, 1, 1, 2 }, NULL, true },
	{ 3, 1, 4, 4, 4, { 5, 6, 7 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 33, 65, 1, { 28, 27 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 0, 3, 5, 1, { 7, 9 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	{ 2, 1, 200, 24, 1, { 20, 20 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static void build(struct nn_case *t, const struct conv *v, bool transpose)
{
	int64_t x[5] = { v->batch, v->c_in }, w[5];

	nn_start(t, transpose ? "ConvTranspose" : "Conv", 11);
	w[0] = transpose ? v->c_in : v->c_out;
	w[1] = (transpose ? v->c_out : v->c_in) / v->group;
	memcpy(x + 2, v->in, sizeof(v->in));
	memcpy(w + 2, v->kernel, sizeof(v->kernel));
	nn_ints(t, "kernel_shape", v->n, v->kernel);
	nn_ints(t, "strides", v->n, v->stride);
	nn_ints(t, "dilations", v->n, v->dilation);
	nn_int(t, "group", v->group);
	if (v->auto_pad)
		nn_string(t, "auto_pad", v->auto_pad);
	else
		nn_ints(t, "pads", 2 * v->n, v->pads);
	nn_input(t, NN_UNIFORM, v->n + 2, x);
	nn_input(t, NN_UNIFORM, v->n + 2, w);
	if (v->bias)
		nn_input(t, NN_UNIFORM, 1, D(v->c_out));
}

/*
 * Winograd's transforms enlarge the rounding errors: it is held to the bound that its
 * file states, in units of the error bound of one product in float, 2^-24 * sum |x| |w|,
 * which is the reference run on absolute values. Says what it found.
 */
#define WINOGRAD_UNITS 80

/* The output of a kernel, to be freed; with absolute inputs when asked. NULL: it does not support them. */
static float *output_of(const struct conv *v, const char *kernel, bool absolute, int64_t *n)
{
	struct rg_error err = RG_ERROR_INIT;
	float *y, *copy = NULL;
	struct nn_case t;

	build(&t, v, false);
	assert_int_equal(nn_infer(&t, 1, &err), 0);
	*n = rg_shape_count(&t.out[0].shape);
	for (int i = 0; i < t.node.n_in && absolute; i++)
		for (int64_t k = 0; k < rg_shape_count(&t.in[i].shape); k++)
			((float *)t.in[i].data)[k] = fabsf(((float *)t.in[i].data)[k]);
	t.variable = 1;
	if (nn_run(&t, kernel, 2, false, &y)) {
		copy = malloc((size_t)*n * sizeof(*copy));
		assert_non_null(copy);
		memcpy(copy, y, (size_t)*n * sizeof(*copy));
	}
	nn_free(&t);
	return copy;
}

/* The largest error in those units; -1: the kernel does not support the case. */
static double error_units(const struct conv *v, const char *kernel)
{
	int64_t n;
	float *got = output_of(v, kernel, false, &n), *want, *sum;
	double worst = 0;

	if (!got)
		return -1;
	want = output_of(v, "ref", false, &n);
	sum = output_of(v, "ref", true, &n);
	for (int64_t i = 0; i < n; i++) {
		double units = fabs((double)got[i] - (double)want[i]) / ((double)sum[i] * 0x1p-24);

		worst = units > worst ? units : worst;
	}
	free(got);
	free(want);
	free(sum);
	return worst;
}

static void test_winograd(void **state)
{
	static const struct conv shapes[] = {
		{ 2, 1, 16, 16, 1, { 30, 31 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
		{ 2, 2, 64, 33, 1, { 17, 40 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 0, 2, 1, 0 }, NULL, false },
		{ 2, 1, 300, 20, 1, { 14, 14 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
		{ 2, 1, 20, 100, 1, { 18, 13 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, NULL, true },
	};
	struct rg_cpu cpu;
	int runs = 0;

	rg_cpu_detect("", &cpu);
	for (int k = 0; k < rg_kernel_count(); k++) {
		const struct rg_kernel *kernel = rg_kernel_at(k);
		double worst = 0;

		if (strcmp(kernel->op_type, "Conv") || strncmp(kernel->name, "winograd", 8) || kernel->isa & ~cpu.isa)
			continue;
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			double units = error_units(&shapes[i], kernel->name);

			assert_true(units >= 0);
			worst = units > worst ? units : worst;
			runs++;
		}
		print_message("# %s: at most %.1f units of 2^-24 sum |x| |w|; the direct sum %.1f\n", kernel->name,
			      worst, error_units(&shapes[0], "direct"));
		assert_true(worst <= WINOGRAD_UNITS);
	}
	assert_true(runs > 0);
}

/* Every faster kernel of Conv; those by Winograd have a test of their own. */
static int check_direct(struct nn_case *t)
{
	int runs = 0;

	for (int k = 0; k < rg_kernel_count(); k++) {
		const struct rg_kernel *kernel = rg_kernel_at(k);

		if (!strcmp(kernel->op_type, "Conv") && !kernel->domain[0] && strcmp(kernel->name, "ref") &&
		    strncmp(kernel->name, "winograd", 8))
			runs += nn_check(t, kernel->name, RTOL, ATOL, false);
	}
	nn_free(t);
	return runs;
}

static void test_variants(void **state)
{
	int runs = 0, blas = 0;

	for (size_t i = 0; i < N_CASES; i++) {
		struct nn_case t;

		build(&t, &cases[i], false);
		blas += nn_check(&t, "openblas", RTOL, ATOL, false);
		runs += check_direct(&t);
	}
	/* Where the library is there, it must have been compared. */
	assert_true(blas > 0 || !rg_blas_available());
	if (!runs)
		skip();
}

static int64_t pick(uint64_t *seed, int64_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(*seed >> 33) % n;
}

/* Seeded: the ways to cut a convolution change with every size. */
static void test_random(void **state)
{
	uint64_t seed = 7;
	int runs = 0;

	for (int i = 0; i < 250; i++) {
		struct conv v = { .n = 1 + (i % 4 > 0), .batch = 1 + (i % 9 == 0) };
		struct nn_case t;

		v.group = pick(&seed, 4) ? 1 : 1 + pick(&seed, 5);
		v.c_in = v.group * (1 + pick(&seed, i % 5 ? 12 : 70));
		v.c_out = v.group * (1 + pick(&seed, i % 7 ? 40 : 150));
		for (int d = 0; d < v.n; d++) {
			v.kernel[d] = 1 + pick(&seed, pick(&seed, 3) ? 3 : 6);
			v.stride[d] = 1 + (pick(&seed, 3) ? 0 : pick(&seed, 4));
			v.dilation[d] = 1 + (pick(&seed, 4) ? 0 : pick(&seed, 3));
			v.pads[d] = pick(&seed, 2) ? 0 : pick(&seed, 4);
			v.pads[d + v.n] = pick(&seed, 2) ? 0 : pick(&seed, 4);
			v.in[d] = (v.kernel[d] - 1) * v.dilation[d] + 1 + pick(&seed, i % 6 ? 16 : 40);
		}
		if (v.n == 2 && i % 10 < 2) { /* a picture of one column */
			v.kernel[1] = v.in[1] = v.dilation[1] = 1;
			v.pads[1] = v.pads[3] = 0;
			v.in[0] += 60;
		}
		v.bias = pick(&seed, 2);
		build(&t, &v, false);
		t.variable = pick(&seed, 4) ? 1 : 7;
		runs += check_direct(&t);
	}
	assert_true(runs > 0);
}

static void test_transpose_variants(void **state)
{
	int runs = 0;

	for (size_t i = 0; i < N_CASES; i++) {
		struct conv v = cases[i];
		struct nn_case t;

		/* pads cut the output here: some of the cases would leave nothing */
		if (v.in[0] * v.stride[0] < v.pads[0] + v.pads[v.n])
			continue;
		build(&t, &v, true);
		t.variable = i % 2 ? 1 : 7;
		runs += nn_check_all(&t, RTOL, ATOL, false);
	}
	assert_true(runs > 0 || !rg_blas_available());
	if (!runs)
		skip();
}

/* Output sizes known from the operator's document. */
static void test_shapes(void **state)
{
	static const struct {
		const char *auto_pad;
		int64_t in, kernel, stride, dilation, out;
	} known[] = {
		{ "VALID", 10, 3, 2, 1, 4 }, { "SAME_UPPER", 10, 3, 2, 1, 5 }, { "SAME_LOWER", 11, 3, 2, 1, 6 },
		{ "SAME_UPPER", 10, 1, 3, 1, 4 }, { "VALID", 10, 3, 1, 2, 6 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct nn_case t;

		nn_start(&t, "Conv", 11);
		nn_string(&t, "auto_pad", known[i].auto_pad);
		nn_ints(&t, "strides", 1, &known[i].stride);
		nn_ints(&t, "dilations", 1, &known[i].dilation);
		nn_input(&t, NN_UNIFORM, 3, D(1, 1, known[i].in));
		nn_input(&t, NN_UNIFORM, 3, D(1, 1, known[i].kernel));
		assert_int_equal(nn_infer(&t, 1, &err), 0);
		assert_int_equal(t.out[0].shape.dim[2], known[i].out);
		nn_free(&t);
	}
}

/* What a file may say and must not get away with. */
static void test_refusals(void **state)
{
	static const struct {
		const char *attr;
		int n;
		int64_t v[4];
	} bad[] = {
		{ "strides", 2, { 0, 1 } }, { "strides", 2, { 1, -1 } }, { "strides", 1, { 1 } },
		{ "strides", 2, { 1, INT64_MAX } }, { "dilations", 2, { 1, INT64_MAX } }, { "dilations", 2, { 0, 0 } },
		{ "pads", 4, { -1, 0, 0, 0 } }, { "pads", 4, { INT64_MAX, 0, INT64_MAX, 0 } }, { "pads", 2, { 1, 1 } },
		{ "kernel_shape", 2, { 3, 4 } }, { "dilations", 2, { 100, 1 } },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct nn_case t;

		nn_start(&t, "Conv", 11);
		nn_ints(&t, bad[i].attr, bad[i].n, bad[i].v);
		nn_input(&t, NN_UNIFORM, 4, D(1, 2, 8, 8));
		nn_input(&t, NN_UNIFORM, 4, D(1, 2, 3, 3));
		if (nn_infer(&t, 1, &err) >= 0)
			fail_msg("%s was accepted", t.what);
		assert_true(err.message[0]);
		nn_free(&t);
	}
}

/* ONNX's published example of a 5 x 5 input with a kernel of ones. */
static void test_known_values(void **state)
{
	static const float want[] = { 54, 63, 72, 99, 108, 117, 144, 153, 162 };
	struct rg_error err = RG_ERROR_INIT;
	struct nn_case t;
	float *x, *w, *y;

	nn_start(&t, "Conv", 11);
	x = nn_input(&t, NN_UNIFORM, 4, D(1, 1, 5, 5));
	w = nn_input(&t, NN_UNIFORM, 4, D(1, 1, 3, 3));
	for (int i = 0; i < 25; i++)
		x[i] = (float)i;
	for (int i = 0; i < 9; i++)
		w[i] = 1;
	assert_int_equal(nn_infer(&t, 1, &err), 0);
	assert_true(nn_run(&t, "ref", 1, false, &y));
	assert_memory_equal(y, want, sizeof(want));
	nn_free(&t);
}

static double inner(const float *a, const float *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

/* ConvTranspose is the adjoint of Conv: <conv(x), y> = <x, conv_transpose(y)>,
 * with the same weights, where output_padding makes the sizes meet. */
static void test_adjoint(void **state)
{
	int done = 0;

	for (size_t i = 0; i < N_CASES; i++) {
		struct conv v = cases[i];
		struct rg_error err = RG_ERROR_INIT;
		struct nn_case f, b;
		int64_t extra[3], out[3];
		float *fy, *by, *y;
		double left, right;

		if (v.auto_pad || v.batch == 0)
			continue;
		v.bias = false;
		build(&f, &v, false);
		assert_int_equal(nn_infer(&f, 1, &err), 0);
		assert_true(nn_run(&f, "ref", 1, false, &fy));
		for (int d = 0; d < v.n; d++) {
			out[d] = f.out[0].shape.dim[2 + d];
			extra[d] = v.in[d] - ((out[d] - 1) * v.stride[d] + (v.kernel[d] - 1) * v.dilation[d] + 1 -
					      v.pads[d] - v.pads[v.n + d]);
		}
		nn_start(&b, "ConvTranspose", 11);
		b.salt = 77;
		nn_ints(&b, "strides", v.n, v.stride);
		nn_ints(&b, "dilations", v.n, v.dilation);
		nn_ints(&b, "pads", 2 * v.n, v.pads);
		nn_ints(&b, "output_padding", v.n, extra);
		nn_int(&b, "group", v.group);
		y = nn_input(&b, NN_UNIFORM, f.out[0].shape.rank, f.out[0].shape.dim);
		memcpy(nn_input(&b, NN_UNIFORM, f.in[1].shape.rank, f.in[1].shape.dim), f.in[1].data,
		       (size_t)rg_tensor_bytes(RG_F32, &f.in[1].shape));
		assert_int_equal(nn_infer(&b, 1, &err), 0);
		assert_true(rg_shape_equal(&b.out[0].shape, &f.in[0].shape));
		assert_true(nn_run(&b, "ref", 1, false, &by));
		left = inner(fy, y, rg_shape_count(&f.out[0].shape));
		right = inner(f.in[0].data, by, rg_shape_count(&f.in[0].shape));
		if (!(left - right < 1e-3 && right - left < 1e-3))
			fail_msg("%s: %.9g against %.9g", f.what, left, right);
		nn_free(&f);
		nn_free(&b);
		done++;
	}
	assert_true(done > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_adjoint),
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_winograd),
		cmocka_unit_test(test_transpose_variants),
	};

	print_message("# %s\n", rg_blas_describe());
	return cmocka_run_group_tests_name("nn-conv", tests, NULL, NULL);
}
