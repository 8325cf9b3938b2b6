/*
 * Elementwise operators with broadcasting against the reference, over sizes around
 * a vector's length, with special values; and chains of them in one program, which
 * must give the very bits of the operators one by one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fake-par.h"
#include "kernels/ewise.h"
#include "nn-case.h"
#include "sys/cpu.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(A) (sizeof(A) / sizeof((A)[0]))

static const int64_t sizes[] = { 0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 1000, 4097, 20000 };

static void test_unary(void **state)
{
	/* relative and absolute: results below the smallest normal number may be lost
	 * where a formula divides; the reference's own float formulas are some ulp off */
	static const struct {
		const char *domain, *op;
		int version;
		double rtol, atol;
	} ops[] = {
		{ "", "Abs", 13, 0, 0 },          { "", "Ceil", 13, 0, 0 },
		{ "", "Celu", 12, 5e-7, 1e-7 },   { "", "Cos", 7, 3e-7, 1e-7 },
		{ "", "Elu", 6, 5e-7, 2e-45 },    { "", "Erf", 13, 5e-7, 0 },
		{ "", "Exp", 13, 3e-7, 2e-45 },   { "", "Floor", 13, 0, 0 },
		{ "", "Gelu", 20, 2e-6, 1e-6 },   { "", "HardSigmoid", 6, 3e-7, 1e-7 },
		{ "", "HardSwish", 14, 3e-7, 3e-7 }, { "", "IsInf", 10, 0, 0 },
		{ "", "IsNaN", 13, 0, 0 },        { "", "LeakyRelu", 6, 1e-7, 2e-45 },
		{ "", "Log", 13, 3e-7, 0 },       { "", "Mish", 18, 1e-6, 1e-37 },
		{ "", "Neg", 13, 0, 0 },          { "", "Reciprocal", 13, 0, 0 },
		{ "", "Relu", 14, 0, 0 },         { "", "Round", 11, 0, 0 },
		{ "", "Selu", 6, 5e-7, 3e-45 },   { "", "Shrink", 9, 1e-7, 0 },
		{ "", "Sigmoid", 13, 5e-7, 2e-38 }, { "", "Sign", 13, 0, 0 },
		{ "", "Sin", 7, 3e-7, 1e-7 },     { "", "Softplus", 1, 5e-7, 2e-45 },
		{ "", "Softsign", 1, 1e-7, 0 },   { "", "Sqrt", 13, 0, 0 },
		{ "", "Swish", 24, 5e-7, 1e-36 }, { "", "Tanh", 13, 5e-7, 1e-44 },
		{ "", "ThresholdedRelu", 10, 0, 0 },
		{ "com.microsoft", "Gelu", 1, 2e-6, 1e-6 }, { "com.microsoft", "FastGelu", 1, 2e-6, 1e-6 },
		{ "com.microsoft", "QuickGelu", 1, 1e-6, 1e-36 },
	};

	for (size_t o = 0; o < COUNT(ops); o++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct nn_case t;
			float *x;

			nn_start_in(&t, ops[o].domain, ops[o].op, ops[o].version);
			x = nn_input(&t, NN_SPECIAL, 1, &sizes[i]);
			for (int64_t k = 0; k < sizes[i]; k += 2) /* beyond [-1, 1) too */
				x[k] *= 9;
			assert_true(nn_check_all(&t, ops[o].rtol, ops[o].atol, true) >= 3);
		}
	}
}

static void test_attributes(void **state)
{
	static const char *const ops[] = { "Elu", "Celu", "LeakyRelu", "Selu", "ThresholdedRelu", "HardSigmoid" };

	for (size_t o = 0; o < COUNT(ops); o++) {
		struct nn_case t;

		nn_start(&t, ops[o], !strcmp(ops[o], "Celu") ? 12 : !strcmp(ops[o], "ThresholdedRelu") ? 10 : 6);
		nn_float(&t, "alpha", 0.75f);
		if (o == 3 || o == 5)
			nn_float(&t, o == 3 ? "gamma" : "beta", 1.25f);
		nn_input(&t, NN_UNIFORM, 1, D(100));
		assert_true(nn_check_all(&t, 5e-7, 1e-7, true) >= 3);
	}
	for (int way = 0; way < 4; way++) {
		struct nn_case t;

		nn_start(&t, "IsInf", 10);
		nn_int(&t, "detect_negative", way & 1);
		nn_int(&t, "detect_positive", way >> 1);
		nn_input(&t, NN_SPECIAL, 1, D(1000));
		assert_true(nn_check_all(&t, 0, 0, true) >= 3);
	}
}

static void test_clip(void **state)
{
	for (int way = 0; way < 4; way++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct nn_case t;

			nn_start(&t, "Clip", 13);
			nn_input(&t, NN_SPECIAL, 1, &sizes[i]);
			if (way & 1)
				*nn_input(&t, NN_UNIFORM, 0, NULL) = -0.25f;
			else
				nn_absent(&t);
			if (way & 2)
				*nn_input(&t, NN_UNIFORM, 0, NULL) = 0.25f;
			assert_true(nn_check_all(&t, 0, 0, true) >= 3);
		}
	}
	{
		struct nn_case t;

		nn_start(&t, "Clip", 6);
		nn_float(&t, "min", 0);
		nn_float(&t, "max", 0.5f);
		nn_input(&t, NN_SPECIAL, 2, D(10, 10));
		assert_true(nn_check_all(&t, 0, 0, true) >= 3);
	}
}

static const struct {
	int ra, rb;
	int64_t a[5], b[5];
} pairs[] = {
	{ 4, 4, { 2, 3, 5, 7 }, { 2, 3, 5, 7 } },  { 4, 1, { 2, 3, 5, 33 }, { 33 } },
	{ 1, 4, { 33 }, { 2, 3, 5, 33 } },         { 4, 4, { 2, 6, 5, 7 }, { 1, 6, 1, 1 } },
	{ 4, 4, { 1, 6, 1, 1 }, { 2, 6, 5, 7 } },  { 3, 0, { 4, 5, 6 }, { 0 } },
	{ 0, 3, { 0 }, { 4, 5, 6 } },              { 0, 0, { 0 }, { 0 } },
	{ 2, 2, { 17, 1 }, { 1, 19 } },            { 4, 3, { 2, 1, 4, 1 }, { 3, 1, 5 } },
	{ 2, 1, { 3, 9001 }, { 9001 } },           { 3, 3, { 0, 5, 6 }, { 1, 5, 6 } },
	{ 3, 3, { 2, 1, 6 }, { 2, 5, 1 } },        { 1, 1, { 100000 }, { 1 } },
	{ 3, 1, { 40, 50, 3 }, { 3 } },            { 3, 3, { 40, 50, 3 }, { 40, 50, 1 } },
	{ 3, 3, { 40, 50, 3 }, { 1, 50, 1 } },     { 4, 4, { 3, 1, 50, 2 }, { 1, 7, 1, 2 } },
	{ 5, 5, { 2, 3, 1, 5, 4 }, { 1, 3, 7, 1, 4 } }, { 2, 2, { 700, 3 }, { 700, 1 } },
	{ 2, 2, { 1, 3 }, { 700, 1 } },            { 3, 3, { 5, 600, 1 }, { 5, 1, 15 } },
	{ 1, 1, { 1 }, { 1 } },                    { 2, 2, { 1, 17 }, { 16, 1 } },
};

static void test_pairs(void **state)
{
	static const struct {
		const char *op;
		int version;
		double rtol;
	} ops[] = {
		{ "Add", 14, 0 }, { "Sub", 14, 0 }, { "Mul", 14, 0 }, { "Div", 14, 0 }, { "Max", 13, 0 }, { "Min", 13, 0 },
		{ "Sum", 13, 0 }, { "Mean", 13, 1e-7 }, { "Pow", 15, 3e-7 }, { "Equal", 13, 0 }, { "Greater", 13, 0 },
		{ "GreaterOrEqual", 16, 0 }, { "Less", 13, 0 }, { "LessOrEqual", 16, 0 },
	};

	for (size_t o = 0; o < COUNT(ops); o++) {
		for (size_t i = 0; i < COUNT(pairs); i++) {
			enum nn_fill fill;
			struct nn_case t;

			nn_start(&t, ops[o].op, ops[o].version);
			/* the reference's sums are double and cannot overflow on the way */
			fill = strcmp(ops[o].op, "Mean") ? NN_SPECIAL : NN_UNIFORM;
			nn_input(&t, fill, pairs[i].ra, pairs[i].a);
			nn_input(&t, fill, pairs[i].rb, pairs[i].b);
			assert_true(nn_check_all(&t, ops[o].rtol, 2e-45, true) >= 3);
		}
	}
}

static void fill_ints(void *data, enum rg_dtype t, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t v = i % 3 ? i * 7919 % 11 - 5 : (int64_t)((uint64_t)i * 0x4000000040000001);

		if (t == RG_I64)
			((int64_t *)data)[i] = v;
		else if (t == RG_I32)
			((int32_t *)data)[i] = (int32_t)v;
		else
			((uint8_t *)data)[i] = v & 1;
	}
}

static void test_integers(void **state)
{
	static const char *const numeric[] = { "Add", "Sub", "Mul", "Equal", "Greater", "GreaterOrEqual", "Less",
					       "LessOrEqual", "Max", "Min" };
	static const char *const logic[] = { "And", "Or", "Xor", "Equal" };

	for (size_t i = 0; i < COUNT(pairs); i++) {
		for (size_t o = 0; o < COUNT(numeric) * 2 + COUNT(logic); o++) {
			bool is_bool = o >= COUNT(numeric) * 2;
			const char *op = is_bool ? logic[o - COUNT(numeric) * 2] : numeric[o / 2];
			enum rg_dtype type = is_bool ? RG_BOOL : o % 2 ? RG_I32 : RG_I64;
			struct nn_case t;
			void *a, *b;

			nn_start(&t, op, strstr(op, "OrEqual") ? 16 : 13);
			a = nn_input_typed(&t, type, pairs[i].ra, pairs[i].a);
			b = nn_input_typed(&t, type, pairs[i].rb, pairs[i].b);
			fill_ints(a, type, rg_shape_count(&t.in[0].shape));
			fill_ints(b, type, rg_shape_count(&t.in[1].shape));
			assert_true(nn_check_all(&t, 0, 0, true) >= 3);
		}
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct nn_case t;

		nn_start(&t, "Not", 1);
		fill_ints(nn_input_typed(&t, RG_BOOL, 1, &sizes[i]), RG_BOOL, sizes[i]);
		assert_true(nn_check_all(&t, 0, 0, true) >= 3);
	}
}

/* Division of integers checks its divisor: not here. */
static void test_refuses(void **state)
{
	struct nn_case t;

	nn_start(&t, "Div", 14);
	fill_ints(nn_input_typed(&t, RG_I64, 1, D(5)), RG_I64, 5);
	memcpy(nn_input_typed(&t, RG_I64, 1, D(5)), D(1, 2, 3, 4, 5), 5 * sizeof(int64_t));
	assert_int_equal(nn_check_all(&t, 0, 0, false), 0);
}

static void test_pow(void **state)
{
	static const float exponents[] = { 2, 3, 1, -1, 0.5f, 0, -2, 1.7f, NAN, INFINITY };

	for (size_t i = 0; i < COUNT(exponents); i++) {
		for (int type = 0; type < 3; type++) {
			struct nn_case t;

			nn_start(&t, "Pow", 15);
			nn_input(&t, NN_SPECIAL, 1, D(1003));
			if (type == 0)
				*nn_input(&t, NN_UNIFORM, 0, NULL) = exponents[i];
			else if (!isfinite(exponents[i]))
				*nn_input(&t, NN_UNIFORM, 1, D(1)) = exponents[i];
			else if (type == 1)
				*(int64_t *)nn_input_typed(&t, RG_I64, 1, D(1)) = (int64_t)exponents[i] + (i == 9 ? 1 << 30 : 0);
			else
				*(int32_t *)nn_input_typed(&t, RG_I32, 0, NULL) = (int32_t)exponents[i];
			assert_true(nn_check_all(&t, 5e-7, 3e-45, true) >= 3);
		}
	}
}

static void test_prelu(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct nn_case t;

		nn_start(&t, "PRelu", 16);
		nn_input(&t, NN_SPECIAL, 4, D(2, 5, 6, 7));
		nn_input(&t, NN_UNIFORM, way == 0 ? 3 : 1,
			 way == 0 ? D(5, 1, 1) : way == 1 ? D(7) : D(1));
		assert_true(nn_check_all(&t, 0, 0, true) >= 3);
	}
}

static void test_where(void **state)
{
	static const struct {
		int rank[3];
		int64_t dim[3][4];
	} shapes[] = {
		{ { 1, 1, 1 }, { { 1000 }, { 1000 }, { 1000 } } },
		{ { 4, 4, 0 }, { { 1, 1, 33, 40 }, { 2, 3, 33, 40 }, { 0 } } },
		{ { 4, 0, 4 }, { { 1, 1, 33, 40 }, { 0 }, { 2, 3, 33, 40 } } },
		{ { 2, 0, 0 }, { { 9, 70 }, { 0 }, { 0 } } },
		{ { 2, 2, 1 }, { { 9, 1 }, { 1, 70 }, { 70 } } },
		{ { 2, 2, 2 }, { { 90, 1 }, { 1, 3 }, { 90, 3 } } },
		{ { 0, 2, 1 }, { { 0 }, { 9, 70 }, { 1 } } },
	};
	static const enum rg_dtype types[] = { RG_F32, RG_I64, RG_BOOL, RG_F16 };

	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (size_t k = 0; k < COUNT(types); k++) {
			struct nn_case t;

			nn_start(&t, "Where", 16);
			fill_ints(nn_input_typed(&t, RG_BOOL, shapes[i].rank[0], shapes[i].dim[0]), RG_BOOL,
				  rg_shape_count(&t.in[0].shape));
			for (int s = 1; s < 3; s++) {
				unsigned char *x = nn_input_typed(&t, types[k], shapes[i].rank[s], shapes[i].dim[s]);

				for (int64_t b = 0; b < rg_tensor_bytes(types[k], &t.in[s].shape); b++)
					x[b] = (unsigned char)((b * 31 + s) % 120);
			}
			assert_true(nn_check_all(&t, 0, 0, true) >= 3);
		}
	}
}

/* More than two inputs, each broadcast another way. */
static void test_many(void **state)
{
	static const char *const ops[] = { "Sum", "Mean", "Max", "Min" };

	for (size_t o = 0; o < COUNT(ops); o++) {
		for (int n = 1; n <= 8; n++) {
			struct nn_case t;

			nn_start(&t, ops[o], 13);
			for (int i = 0; i < n; i++)
				nn_input(&t, NN_UNIFORM, 3, i % 3 ? D(2, i % 2 ? 5 : 1, 67) : D(2, 5, i % 2 ? 67 : 1));
			assert_true(nn_check_all(&t, 1e-6, 1e-6, false) >= 3);
		}
	}
	{
		struct nn_case t;

		nn_start(&t, "Sum", 13);
		for (int i = 0; i < 9; i++)
			nn_input(&t, NN_UNIFORM, 1, D(5));
		assert_int_equal(nn_check_all(&t, 0, 0, false), 0);
	}
}

static void test_contrib(void **state)
{
	static const int64_t lengths[] = { 1, 3, 17, 768 };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct nn_case t;

		for (int k = 0; k < 2; k++) {
			nn_start_in(&t, "com.microsoft", k ? "BiasGelu" : "FastGelu", 1);
			nn_input(&t, NN_UNIFORM, 3, D(2, 5, lengths[i]));
			nn_input(&t, NN_UNIFORM, 1, &lengths[i]);
			assert_true(nn_check_all(&t, 1e-6, 5e-7, false) >= 3);
		}
		nn_start_in(&t, "com.microsoft", "BiasAdd", 1);
		nn_input(&t, NN_UNIFORM, 3, D(2, 5, lengths[i]));
		nn_input(&t, NN_UNIFORM, 1, &lengths[i]);
		nn_input(&t, NN_UNIFORM, 3, D(2, 5, lengths[i]));
		assert_true(nn_check_all(&t, 1e-6, 2e-7, false) >= 3);
	}
}

/* ---- chains ---- */

/* One node of a chain: input 0 is what came before; input 1, where there is one, is
 * input `other` of the chain. */
struct link {
	const char *op;
	int version, other;
};

static const struct rg_kernel *best(struct nn_case *t, uint32_t isa)
{
	struct rg_call c = { .node = &t->node, .in = t->in, .out = t->out };
	const struct rg_kernel *k = rg_kernel_select(&c, isa);

	assert_non_null(k);
	return k;
}

static void check_chain(const struct link *links, int n, int n_in, const int *rank, const int64_t (*dim)[4],
			int lanes)
{
	const struct rg_shape *shapes[RG_EW_MAX_IN];
	const void *data[RG_EW_MAX_IN];
	int bytes[RG_EW_MAX_IN], reg = 0;
	struct rg_par par = fake_par(lanes, 1);
	struct rg_error err = RG_ERROR_INIT;
	struct nn_case in, t[8];
	struct rg_cpu cpu;
	struct rg_ew e;
	float *out;
	int64_t count;

	rg_cpu_detect("", &cpu);
	nn_start(&in, "Sum", 13);
	for (int i = 0; i < n_in; i++) {
		data[i] = nn_input(&in, NN_UNIFORM, rank[i], dim[i]);
		shapes[i] = &in.in[i].shape;
		bytes[i] = 4;
	}
	assert_true(rg_ew_start(&e, shapes[0], n_in, shapes, bytes));
	for (int i = 0; i < n; i++) {
		struct rg_call c = { .node = &t[i].node, .in = t[i].in, .out = t[i].out };
		int regs[2] = { reg, links[i].other };
		rg_ew_node *node;

		nn_start(&t[i], links[i].op, links[i].version);
		t[i].in[t[i].node.n_in++] = i ? t[i - 1].out[0] : in.in[0];
		if (links[i].other >= 0)
			t[i].in[t[i].node.n_in++] = in.in[links[i].other];
		assert_int_equal(nn_infer(&t[i], 1, &err), 0);
		node = rg_ew_node_of(best(&t[i], cpu.isa));
		assert_non_null(node);
		reg = node(&e, &c, regs);
		assert_true(reg >= 0);
		assert_true(nn_run(&t[i], best(&t[i], cpu.isa)->name, 1, false, &out));
	}
	count = rg_shape_count(&t[n - 1].out[0].shape);
	out = rg_alloc_aligned(64, (size_t)(count ? count : 1) * sizeof(float));
	assert_non_null(out);
	rg_ew_run(&e, data, out, &par);
	assert_memory_equal(out, t[n - 1].out[0].data, (size_t)count * sizeof(float));
	rg_free(out);
	for (int i = 0; i < n; i++)
		nn_free(&t[i]);
	nn_free(&in);
}

static void test_chains(void **state)
{
	static const struct link scale_shift[] = { { "Mul", 14, 1 }, { "Add", 14, 2 }, { "Relu", 14, -1 } };
	static const struct link gate[] = { { "Sub", 14, 1 }, { "Sigmoid", 13, -1 }, { "Mul", 14, 2 }, { "Tanh", 13, -1 },
					    { "Add", 14, 0 }, { "Abs", 13, -1 } };
	static const int rank[] = { 4, 4, 1 };
	static const int64_t dims[][3][4] = {
		{ { 2, 5, 6, 70 }, { 1, 5, 1, 1 }, { 70 } }, { { 2, 5, 60, 3 }, { 2, 1, 60, 1 }, { 3 } },
		{ { 1, 1, 1, 1 }, { 1, 1, 1, 1 }, { 1 } },   { { 1, 3, 1, 5000 }, { 1, 3, 1, 5000 }, { 1 } },
		{ { 2, 0, 6, 7 }, { 1, 1, 1, 1 }, { 7 } },
	};

	for (size_t i = 0; i < COUNT(dims); i++) {
		for (int lanes = 1; lanes <= 3; lanes++) {
			check_chain(scale_shift, 3, 3, rank, dims[i], lanes);
			check_chain(gate, 6, 3, rank, dims[i], lanes);
		}
	}
}

static void copy_row(void *restrict out, const struct rg_ew_args *p, int64_t n)
{
	memcpy(out, p->in[0], (size_t)n * 4);
}

/* A program that is full says so; a forgotten result cannot be read. */
static void test_limits(void **state)
{
	struct rg_shape s = rg_shape_of(1, D(4));
	const struct rg_shape *shapes[RG_EW_MAX_IN + 1];
	int bytes[RG_EW_MAX_IN + 1], reg = 0, first;
	struct rg_ew e;

	for (int i = 0; i <= RG_EW_MAX_IN; i++) {
		shapes[i] = &s;
		bytes[i] = 4;
	}
	assert_false(rg_ew_start(&e, &s, RG_EW_MAX_IN + 1, shapes, bytes));
	assert_true(rg_ew_start(&e, &s, 1, shapes, bytes));
	first = rg_ew_apply(&e, copy_row, 1, 1, &reg, 0, 0, 4, 1);
	reg = first;
	for (int i = 1; i < RG_EW_MAX_OPS; i++) {
		reg = rg_ew_apply(&e, copy_row, 1, 1, &reg, 0, 0, 4, 1);
		assert_true(reg >= 0);
	}
	assert_true(e.n_temps <= 2);
	assert_int_equal(rg_ew_apply(&e, copy_row, 1, 1, &reg, 0, 0, 4, 1), -ENOSPC);
	e.n_ops--;
	assert_int_equal(rg_ew_apply(&e, copy_row, 1, 1, &first, 0, 0, 4, 1), -ENOSPC);
	for (int i = 0; i < RG_EW_MAX_CONST; i++)
		assert_true(rg_ew_constant(&e, (float)i) >= RG_EW_CONST);
	assert_int_equal(rg_ew_constant(&e, 0), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unary),    cmocka_unit_test(test_attributes), cmocka_unit_test(test_clip),
		cmocka_unit_test(test_pairs),    cmocka_unit_test(test_integers),   cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_pow),      cmocka_unit_test(test_prelu),      cmocka_unit_test(test_where),
		cmocka_unit_test(test_many),     cmocka_unit_test(test_contrib),    cmocka_unit_test(test_chains),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("nn-ewise", tests, NULL, NULL);
}
