/* Calls of elementwise operators. See check.h. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

/* One input: a vector of every interesting length, or a few dimensions. */
static void one(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[3];
	float *x;
	int64_t n;

	if (ck_chance(g, 80)) {
		dim[0] = ck_length(g);
		x = nn_input(t, ck_fill_elements(g), 1, dim);
	} else {
		for (int d = 0; d < 3; d++)
			dim[d] = ck_size(g, 20);
		x = nn_input(t, ck_fill_elements(g), (int)ck_between(g, 0, 3), dim);
	}
	/* where exponentials leave the range */
	n = rg_shape_count(&t->in[0].shape);
	for (int64_t i = 0; i < n && ck_chance(g, 20); i += 5)
		x[i] *= 90;
}

static void hard_sigmoid(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "alpha", (float)ck_between(g, 1, 50) / 64);
	if (ck_chance(g, 60))
		nn_float(t, "beta", (float)ck_between(g, 0, 64) / 64);
	one(t, g);
}

static void with_alpha(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "alpha", (float)ck_between(g, 1, 200) / 64);
	one(t, g);
}

static void clip(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 30)) {
		t->node.version = 6;
		if (ck_chance(g, 70))
			nn_float(t, "min", -0.25f);
		if (ck_chance(g, 70))
			nn_float(t, "max", 0.5f);
		one(t, g);
		return;
	}
	one(t, g);
	if (ck_chance(g, 80))
		*nn_input(t, NN_UNIFORM, 0, NULL) -= 0.75f;
	else
		nn_absent(t);
	if (ck_chance(g, 80))
		*nn_input(t, NN_UNIFORM, 0, NULL) += 0.75f;
	t->weights = 6;
}

static bool bench_one(struct nn_case *t, int i)
{
	static const int64_t n[] = { 1000, 100352, 3000000 };

	if (i == 3)
		return false;
	nn_input(t, NN_UNIFORM, 1, &n[i]);
	return true;
}

/* ---- two operands ---- */

static void two(struct nn_case *t, struct ck_gen *g)
{
	int rank = (int)ck_between(g, 0, 5);
	bool wide = ck_chance(g, 30);
	int64_t dim[2][5];
	int skip[2] = { 0, 0 };

	for (int d = 0; d < rank; d++) {
		int64_t n = ck_size(g, rank > 3 || wide ? 6 : 35);

		if (d == rank - 1 && wide)
			n = ck_length(g);
		else if (d < rank - 3 && wide)
			n = 1;

		for (int k = 0; k < 2; k++)
			dim[k][d] = n;
		if (ck_chance(g, 35))
			dim[ck_between(g, 0, 1)][d] = 1;
	}
	if (rank && ck_chance(g, 30))
		skip[ck_between(g, 0, 1)] = (int)ck_between(g, 1, rank);
	for (int k = 0; k < 2; k++)
		nn_input(t, ck_fill_elements(g), rank - skip[k], dim[k] + skip[k]);
	t->weights = 1u << ck_between(g, 0, 1);
}

static bool bench_two(struct nn_case *t, int i)
{
	static const int64_t dim[] = { 1, 64, 56, 56 }, channel[] = { 64, 1, 1 }, rows[] = { 128, 768 }, row[] = { 768 };

	if (i == 0) {
		nn_input(t, NN_UNIFORM, 4, dim);
		nn_input(t, NN_UNIFORM, 4, dim);
	} else if (i == 1) {
		nn_input(t, NN_UNIFORM, 4, dim);
		nn_input(t, NN_UNIFORM, 3, channel);
	} else if (i == 2) {
		nn_input(t, NN_UNIFORM, 2, rows);
		nn_input(t, NN_UNIFORM, 1, row);
	}
	return i < 3;
}

static double four(const struct nn_case *t)
{
	return 4;
}

/* x times a normal distribution's share: near 0 for negative x, where the sum 1 + erf
 * has lost its digits. */
static void gelu(const struct nn_case *t, const float *want, double *out)
{
	const float *x = t->in[0].data;

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = 4e-7 * fmin(fabs((double)x[i]), 14) + 4 * 0x1p-24 * fabs((double)want[i]) + 0x1p-149;
}

#define UNARY(OP, MAKE, ULPS, FLOOR) \
	{ .op_type = OP, .make = MAKE, .measure = CK_ULPS, .ulps = ULPS, .floor = FLOOR, .bench = bench_one }
/* Straight lines with a bend: errors are those of the sums before it is cut. */
#define LINES(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = four, .bench = bench_one }
#define BINARY(OP, ULPS) { .op_type = OP, .make = two, .measure = CK_ULPS, .ulps = ULPS, .bench = bench_two }

/* The bounds of functions are those that kernels/generic/vmath.h states. */
static const struct ck_family families[] = {
	UNARY("Abs", one, 0, 0),
	UNARY("Ceil", one, 0, 0),
	UNARY("Clip", clip, 0, 0),
	UNARY("Elu", with_alpha, 8, 0x1p-149),
	UNARY("Erf", one, 18, 1e-37),
	UNARY("Exp", one, 2, 0x1p-149),
	UNARY("Floor", one, 0, 0),
	{ .op_type = "Gelu", .make = one, .measure = CK_OWN, .tolerance = gelu, .bench = bench_one },
	LINES("HardSigmoid", hard_sigmoid),
	LINES("HardSwish", one),
	UNARY("LeakyRelu", with_alpha, 0, 0),
	UNARY("Neg", one, 0, 0),
	UNARY("Reciprocal", one, 1, 0),
	UNARY("Relu", one, 0, 0),
	UNARY("Sigmoid", one, 4, 2e-38),
	UNARY("Sqrt", one, 1, 0),
	UNARY("Tanh", one, 8, 0x1p-149),
	BINARY("Add", 0),
	BINARY("Div", 0),
	BINARY("Mul", 0),
	BINARY("Sub", 0),
};
CK_FAMILY_TABLE(ck_families_math, families);
