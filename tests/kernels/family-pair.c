/* Calls of elementwise operators of two operands and more, broadcast. See check.h. */
#include "check.h"

#include <string.h>

enum { MOST = 8, RANK = 5 };

/* Shapes for n operands that go together; returns the rank. */
static int shapes(struct ck_gen *g, int n, int64_t (*dim)[RANK], int *skip)
{
	int rank = (int)ck_between(g, 0, RANK);
	bool wide = ck_chance(g, 30);

	memset(skip, 0, (size_t)n * sizeof(*skip));
	for (int d = 0; d < rank; d++) {
		int64_t size = ck_size(g, rank > 3 || wide ? 6 : 35);

		if (d == rank - 1 && wide)
			size = ck_length(g);
		else if (d < rank - 3 && wide)
			size = 1;
		for (int k = 0; k < n; k++)
			dim[k][d] = size;
		if (ck_chance(g, 35))
			dim[ck_between(g, 0, n - 1)][d] = 1;
	}
	if (rank && ck_chance(g, 30))
		skip[ck_between(g, 0, n - 1)] = (int)ck_between(g, 1, rank);
	return rank;
}

/* Whole numbers, some large, some equal to each other. */
static void integers(struct nn_case *t, struct ck_gen *g, enum rg_dtype type, int rank, const int64_t *dim)
{
	void *x = nn_input_bytes(t, type, rank, dim);
	int64_t n = rg_shape_count(&t->in[t->node.n_in - 1].shape);

	for (int64_t i = 0; i < n; i++) {
		int64_t v = (i * 7919 + (int64_t)g->at) % 11 - 5;

		if (i % 3 && type == RG_I64)
			((int64_t *)x)[i] = v;
		else if (i % 3 && type == RG_I32)
			((int32_t *)x)[i] = (int32_t)v;
	}
}

static void operands(struct nn_case *t, struct ck_gen *g, int n, enum rg_dtype type)
{
	int64_t dim[MOST][RANK];
	int skip[MOST], rank = shapes(g, n, dim, skip);

	for (int k = 0; k < n; k++) {
		if (type == RG_F32)
			nn_input(t, ck_fill_elements(g), rank - skip[k], dim[k] + skip[k]);
		else
			integers(t, g, type, rank - skip[k], dim[k] + skip[k]);
	}
	t->weights = 1u << ck_between(g, 0, n - 1);
}

static enum rg_dtype number(struct ck_gen *g)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F32, RG_F32, RG_I32, RG_I64 };

	return CK_PICK(g, types);
}

static void two(struct nn_case *t, struct ck_gen *g)
{
	operands(t, g, 2, number(g));
}

/* Division by 0 is an error where it is not infinity. */
static void two_floats(struct nn_case *t, struct ck_gen *g)
{
	operands(t, g, 2, RG_F32);
}

static void two_bools(struct nn_case *t, struct ck_gen *g)
{
	operands(t, g, 2, RG_BOOL);
}

static void equal(struct nn_case *t, struct ck_gen *g)
{
	operands(t, g, 2, ck_chance(g, 20) ? RG_BOOL : number(g));
}

static void many(struct nn_case *t, struct ck_gen *g)
{
	operands(t, g, ck_chance(g, 50) ? 2 : (int)ck_between(g, 1, MOST), number(g));
}

/* Sums: magnitudes of one kind a case, or a sum would hide the small ones. */
static void many_sums(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[MOST][RANK];
	int n = ck_chance(g, 50) ? 2 : (int)ck_between(g, 1, MOST), skip[MOST], rank = shapes(g, n, dim, skip);
	enum nn_fill fill = ck_fill(g);

	for (int k = 0; k < n; k++)
		nn_input(t, fill, rank - skip[k], dim[k] + skip[k]);
}

static double operand_count(const struct nn_case *t)
{
	return t->node.n_in;
}

/* Exponents of three types, often one for all. */
static void power(struct nn_case *t, struct ck_gen *g)
{
	static const float exponents[] = { 2, 3, 1, -1, 0.5f, 0, -2, 1.7f };
	int64_t dim[2][RANK], n = ck_length(g), one = 1;
	int skip[2], rank = shapes(g, 2, dim, skip);

	switch (ck_between(g, 0, 3)) {
	case 0:
		for (int k = 0; k < 2; k++)
			nn_input(t, k ? NN_UNIFORM : ck_fill_elements(g), rank - skip[k], dim[k] + skip[k]);
		break;
	case 1:
		nn_input(t, ck_fill_elements(g), 1, &n);
		*(int64_t *)nn_input_typed(t, RG_I64, 1, &one) = ck_between(g, -3, 5);
		break;
	case 2:
		nn_input(t, ck_fill_elements(g), 1, &n);
		*(int32_t *)nn_input_typed(t, RG_I32, 0, NULL) = (int32_t)ck_between(g, -3, 5);
		break;
	default:
		nn_input(t, ck_fill_elements(g), 1, &n);
		*nn_input(t, NN_UNIFORM, 0, NULL) = CK_PICK(g, exponents);
	}
	t->weights = 2;
}

/* The slope is broadcast to the input, never the other way. */
static void prelu(struct nn_case *t, struct ck_gen *g)
{
	int rank = (int)ck_between(g, 1, 4), skip = (int)ck_between(g, 0, rank);
	int64_t dim[4], slope[4];

	for (int d = 0; d < rank; d++) {
		dim[d] = ck_size(g, d == rank - 1 ? 90 : 9);
		slope[d] = ck_chance(g, 40) ? 1 : dim[d];
	}
	nn_input(t, ck_fill_elements(g), rank, dim);
	nn_input(t, NN_UNIFORM, rank - skip, slope + skip);
	t->weights = 2;
}

static void where(struct nn_case *t, struct ck_gen *g)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F32, RG_I64, RG_I32, RG_BOOL, RG_F16, RG_U8, RG_F64 };
	int64_t dim[3][RANK];
	int skip[3], rank = shapes(g, 3, dim, skip);
	enum rg_dtype type = CK_PICK(g, types);

	for (int k = 0; k < 3; k++)
		nn_input_bytes(t, k ? type : RG_BOOL, rank - skip[k], dim[k] + skip[k]);
}

static bool bench(struct nn_case *t, int i)
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

#define SAME(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_ULPS, .bench = bench }
#define LOGIC(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_ULPS }

static const struct ck_family families[] = {
	SAME("Add", two),
	LOGIC("And", two_bools),
	SAME("Div", two_floats),
	SAME("Equal", equal),
	SAME("Greater", two),
	SAME("GreaterOrEqual", two),
	SAME("Less", two),
	SAME("LessOrEqual", two),
	SAME("Max", many),
	{ .op_type = "Mean", .make = many_sums, .measure = CK_SUM, .terms = operand_count, .ulps = 2, .mean = true },
	SAME("Min", many),
	SAME("Mul", two),
	LOGIC("Or", two_bools),
	SAME("PRelu", prelu),
	{ .op_type = "Pow", .make = power, .measure = CK_ULPS, .ulps = 3, .floor = 0x1p-149 },
	SAME("Sub", two),
	{ .op_type = "Sum", .make = many_sums, .measure = CK_SUM, .terms = operand_count, .ulps = 1, .whole_is_exact = true },
	LOGIC("Where", where),
	LOGIC("Xor", two_bools),
};
CK_FAMILY_TABLE(ck_families_pair, families);
