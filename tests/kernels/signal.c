/*
 * Fourier transforms, image geometry, Unique, NonMaxSuppression and ai.onnx.ml:
 * what theory says of them, and random calls that inference refuses or the
 * reference runs within its memory. Most useful under a sanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "graph/op-families.h"
#include "math-case.h"

enum { TRIES = 600 };

/* ---- theory ---- */

/* A onesided transform of any length, and back. */
static void test_irfft(void **state)
{
	for (int64_t n = 1; n <= 9; n++) {
		struct math_case t, u;

		mc_start(&t, "DFT", 20);
		mc_in_random(&t, RG_F64, 3, MC_DIMS(2, n, 1), -1, 1);
		mc_int(&t, "onesided", 1);
		mc_must_run(&t, 1);
		mc_expect_shape(&t, 0, 3, MC_DIMS(2, n / 2 + 1, 2));
		mc_start(&u, "DFT", 20);
		mc_in(&u, RG_F64, 3, MC_DIMS(2, n / 2 + 1, 2));
		mc_in_list(&u, RG_I64, 0, NULL, MC_LIST((double)n));
		mc_int(&u, "onesided", 1);
		mc_int(&u, "inverse", 1);
		for (int64_t i = 0; i < rg_shape_count(&u.in[0].shape); i++)
			mc_set(&u.in[0], i, mc_get(&t.out[0], i));
		mc_must_run(&u, 1);
		mc_expect_shape(&u, 0, 3, MC_DIMS(2, n, 1));
		for (int64_t i = 0; i < 2 * n; i++)
			mc_expect(&u, 0, i, mc_get(&t.in[0], i), 1e-14, 1e-14);
		mc_free(&t);
		mc_free(&u);
	}
}

/* Parseval: the energy of the spectrum is n times that of the signal. */
static void test_energy(void **state)
{
	for (int64_t n = 1; n <= 33; n += 8) {
		double time = 0, spectrum = 0;
		struct math_case t;

		mc_start(&t, "DFT", 17);
		mc_in_random(&t, RG_F64, 3, MC_DIMS(1, n, 2), -1, 1);
		mc_must_run(&t, 1);
		for (int64_t i = 0; i < 2 * n; i++) {
			time += mc_get(&t.in[0], i) * mc_get(&t.in[0], i);
			spectrum += mc_get(&t.out[0], i) * mc_get(&t.out[0], i);
		}
		assert_true(fabs(spectrum - (double)n * time) < 1e-12 * spectrum);
		mc_free(&t);
	}
}

static void test_unique_types(void **state)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I8, RG_I16, RG_I32, RG_I64,
					       RG_U8, RG_U16, RG_U32, RG_U64, RG_BOOL };

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		bool negative = rg_dtype_is_signed(types[k]) || rg_dtype_is_float(types[k]);
		double first = types[k] == RG_BOOL ? 1 : negative ? -3 : 3;
		struct math_case t;

		mc_start(&t, "Unique", 11);
		mc_in_list(&t, types[k], 1, MC_DIMS(5), MC_LIST(1, 0, first, 1, 0));
		mc_must_run(&t, 4);
		mc_expect_shape(&t, 0, 1, MC_DIMS(types[k] == RG_BOOL ? 2 : 3));
		mc_expect(&t, 0, 0, negative ? -3 : 0, 0, 0);
		mc_expect(&t, 1, 0, negative ? 2 : 1, 0, 0);
		mc_expect(&t, 2, 2, negative ? 0 : types[k] == RG_BOOL ? 1 : 2, 0, 0);
		mc_free(&t);
	}
}

/* NaN is one value, the last. */
static void test_unique_nan(void **state)
{
	struct math_case t;

	mc_start(&t, "Unique", 11);
	mc_in_list(&t, RG_F32, 1, MC_DIMS(6), MC_LIST(NAN, 1, -INFINITY, NAN, INFINITY, -0.0));
	mc_must_run(&t, 4);
	mc_expect_shape(&t, 0, 1, MC_DIMS(5));
	mc_expect(&t, 0, 0, -INFINITY, 0, 0);
	mc_expect(&t, 0, 3, INFINITY, 0, 0);
	mc_expect(&t, 0, 4, NAN, 0, 0);
	mc_expect(&t, 3, 4, 2, 0, 0);
	mc_free(&t);
}

/* Slices of no elements are equal to each other, as numpy.unique has it, and an
 * empty tensor may have more of them than memory holds. */
static void test_unique_blank(void **state)
{
	struct math_case t;

	mc_start(&t, "Unique", 11);
	mc_int(&t, "axis", 1);
	mc_in(&t, RG_F32, 2, MC_DIMS(0, 4));
	mc_must_run(&t, 4);
	mc_expect_shape(&t, 0, 2, MC_DIMS(0, 1));
	mc_expect(&t, 1, 0, 0, 0, 0);
	mc_expect_shape(&t, 2, 1, MC_DIMS(4));
	mc_expect(&t, 2, 3, 0, 0, 0);
	mc_expect(&t, 3, 0, 4, 0, 0);
	mc_free(&t);
}

/* A shape that data decides is not guessed. */
static void test_needs_values(void **state)
{
	struct math_case t;

	mc_start(&t, "Unique", 11);
	mc_in(&t, RG_F32, 1, MC_DIMS(4));
	t.variable[0] = true;
	assert_int_equal(mc_run(&t, 1), RG_ENEED_VALUE);
	mc_free(&t);
	mc_start(&t, "NonMaxSuppression", 11);
	mc_in(&t, RG_F32, 3, MC_DIMS(1, 4, 4));
	mc_in(&t, RG_F32, 3, MC_DIMS(1, 1, 4));
	t.variable[1] = true;
	assert_int_equal(mc_run(&t, 1), RG_ENEED_VALUE);
	mc_free(&t);
	mc_start(&t, "DFT", 20);
	mc_in(&t, RG_F32, 3, MC_DIMS(1, 4, 2));
	mc_absent(&t);
	mc_in(&t, RG_I64, 0, NULL);
	t.variable[2] = true;
	assert_int_equal(mc_run(&t, 1), RG_ENEED_VALUE);
	mc_free(&t);
}

/* No offsets: the convolution; offsets of whole elements: the moved one. */
static void test_deform_conv(void **state)
{
	for (int shift = 0; shift < 2; shift++) {
		struct math_case t, u;

		mc_start(&t, "DeformConv", 22);
		mc_in_random(&t, RG_F64, 4, MC_DIMS(1, 2, 5, 6), -1, 1);
		mc_in_random(&t, RG_F64, 4, MC_DIMS(3, 2, 2, 2), -1, 1);
		mc_in(&t, RG_F64, 4, MC_DIMS(1, 8, 4, 5));
		for (int64_t i = 0; i < 8 * 4 * 5; i++)
			mc_set(&t.in[2], i, shift);
		mc_must_run(&t, 1);
		mc_start(&u, "Conv", 22);
		mc_in(&u, RG_F64, 4, MC_DIMS(1, 2, 5, 6));
		mc_in(&u, RG_F64, 4, MC_DIMS(3, 2, 2, 2));
		memcpy(u.in[0].data, t.in[0].data, 60 * sizeof(double));
		memcpy(u.in[1].data, t.in[1].data, 24 * sizeof(double));
		mc_must_run(&u, 1);
		for (int64_t m = 0; m < 3; m++)
			for (int64_t y = 0; y + shift < 4; y++)
				for (int64_t x = 0; x + shift < 5; x++)
					mc_expect(&t, 0, (m * 4 + y) * 5 + x,
						  mc_get(&u.out[0], (m * 4 + y + shift) * 5 + x + shift), 1e-14, 1e-14);
		mc_free(&t);
		mc_free(&u);
	}
}

/* ---- hostile ---- */

struct dice {
	uint64_t stream, at;
};

static int64_t roll(struct dice *d, int64_t lo, int64_t hi)
{
	return rg_rng_integer(d->stream, d->at++, lo, hi);
}

/* Mostly small; those at the ends are refused or overflow. */
static int64_t number(struct dice *d)
{
	switch (roll(d, 0, 31)) {
	case 0: return INT64_MIN;
	case 1: return INT64_MAX;
	case 2: return (int64_t)1 << 62;
	default: return roll(d, -3, 9);
	}
}

static const char *const mode_names[] = { "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF",
				     "BRANCH_NEQ", "LEAF", "nonsense", "LEAF", "LEAF", "LEAF" };

/* TreeEnsemble takes tensors, and indices in place of ids. */
static void add_tensors(struct math_case *t, struct dice *d, int n)
{
	double modes[MC_MAX_LIST], weights[MC_MAX_LIST], members[MC_MAX_LIST];

	for (int i = 0; i < MC_MAX_LIST; i++) {
		modes[i] = (double)(roll(d, 0, 30) ? roll(d, 0, 6) : 200);
		weights[i] = (double)roll(d, -2, 2);
		members[i] = roll(d, 0, 1) ? NAN : (double)roll(d, 0, 3);
	}
	mc_tensor(t, "nodes_modes", RG_U8, n, modes);
	mc_tensor(t, "nodes_splits", RG_F32, n, weights);
	mc_tensor(t, "leaf_weights", RG_F32, n, weights);
	mc_tensor(t, "membership_values", RG_F32, MC_MAX_LIST, members);
}

/* Lists of trees that fit together, as often as not. */
static void add_trees(struct math_case *t, struct dice *d)
{
	static const char *const nodes[] = { "nodes_treeids", "nodes_nodeids", "nodes_featureids",
					     "nodes_truenodeids", "nodes_falsenodeids", "target_treeids",
					     "target_nodeids", "target_ids", "class_treeids", "class_nodeids",
					     "class_ids", "nodes_trueleafs", "nodes_falseleafs", "leaf_targetids",
					     "tree_roots" };
	int n = (int)roll(d, 1, 8);
	float values[MC_MAX_LIST];

	for (size_t k = 0; k < sizeof(nodes) / sizeof(nodes[0]); k++) {
		int64_t list[MC_MAX_LIST];

		for (int i = 0; i < n; i++) /* 0: the tree; 1: the node */
			list[i] = k == 0 || k == 5 || k == 8 || (k == 14 && i == 0) ? 0 : k == 1 ? i : roll(d, 0, 30) ? roll(d, 0, n - 1) : number(d);
		if (k == 2 || k == 7 || (k >= 10 && k <= 13))
			for (int i = 0; i < n; i++)
				list[i] = roll(d, 0, 60) ? roll(d, 0, 1) : number(d);
		mc_ints(t, nodes[k], roll(d, 0, 60) ? n : n - 1, list);
	}
	for (int i = 0; i < n; i++)
		values[i] = (float)roll(d, -2, 2);
	mc_floats(t, "nodes_values", n, values);
	mc_floats(t, "target_weights", n, values);
	mc_floats(t, "class_weights", n, values);
	if (strcmp(t->node.op_type, "TreeEnsemble") == 0)
		add_tensors(t, d, n);
	else
		mc_strings(t, "nodes_modes", n, mode_names + (roll(d, 0, 9) ? 0 : 3));
	mc_int(t, "n_targets", roll(d, 1, 3));
	mc_ints(t, "classlabels_int64s", (int)roll(d, 1, 3), MC_DIMS(7, 8, 9));
}

static void add_attrs(struct math_case *t, struct dice *d)
{
	static const char *const ints[] = { "axis", "inverse", "onesided", "periodic", "sorted", "center_point_box",
					    "align_corners", "offset_group", "group", "targets" };
	static const char *const lists[] = { "axes", "pads", "strides", "dilations", "cats_int64s", "classlabels_ints" };
	int64_t list[4];
	float floats[4];

	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++)
		if (roll(d, 0, 3) == 0)
			mc_int(t, ints[i], number(d));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (int k = 0; k < 4; k++)
			list[k] = roll(d, 0, 9) ? roll(d, 0, 2) : number(d);
		if (roll(d, 0, 2) == 0)
			mc_ints(t, lists[i], (int)roll(d, 0, 4), list);
	}
	if (roll(d, 0, 3) == 0)
		mc_int(t, "output_datatype", roll(d, 0, 20));
	for (int k = 0; k < 4; k++)
		floats[k] = (float)roll(d, -2, 2);
	mc_floats(t, "coefficients", (int)roll(d, 0, 4), floats);
	mc_floats(t, "scale", (int)roll(d, 0, 3), floats);
	mc_floats(t, "offset", (int)roll(d, 0, 3), floats);
	if (strcmp(t->node.op_type, "LabelEncoder") == 0) {
		mc_ints(t, "keys_int64s", (int)roll(d, 0, 4), list);
		mc_floats(t, "values_floats", (int)roll(d, 2, 4), floats);
	}
	if (strcmp(t->node.op_type, "Imputer") == 0) {
		mc_floats(t, "imputed_value_floats", (int)roll(d, 1, 3), floats);
		mc_ints(t, "imputed_value_int64s", (int)roll(d, 1, 3), list);
	}
	mc_string(t, "post_transform", roll(d, 0, 1) ? "NONE" : "SOFTMAX");
}

static void add_inputs(struct math_case *t, struct dice *d, int n)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F32, RG_F32, RG_F64, RG_I64, RG_I32, RG_F16, RG_U8, RG_BOOL };
	enum rg_dtype main_type = types[roll(d, 0, 8)];
	int64_t dims[5];

	for (int k = 0; k < 5; k++)
		dims[k] = roll(d, 0, 4);
	dims[roll(d, 2, 4)] = roll(d, 1, 4);
	for (int i = 0; i < n; i++) {
		enum rg_dtype type = i == 0 || roll(d, 0, 1) ? main_type : types[roll(d, 0, 8)];
		int rank = i == 0 ? (int)roll(d, 0, 5) : (int)roll(d, 0, 2);
		int k;

		if (i > 0 && roll(d, 0, 9) == 0) {
			mc_absent(t);
			continue;
		}
		if (i > 0 && roll(d, 0, 1)) { /* sizes and lists of them */
			int64_t len = roll(d, 1, 4);

			k = mc_in(t, RG_I64, roll(d, 0, 1), &len);
			for (int64_t e = 0; e < rg_shape_count(&t->in[k].shape); e++)
				((int64_t *)t->in[k].data)[e] = number(d);
			continue;
		}
		mc_in_random(t, type, rank, dims, 0, 4);
	}
}

/* An input of a call that is valid: `list` holds the values of a list of int64. */
struct input {
	enum rg_dtype dtype;
	int rank;
	int64_t dims[4], list[4];
};

/* Inputs that fit together; 0 for operators whose random ones often do. */
static int fitting(const char *op, struct dice *d, struct input *in)
{
	int64_t n = roll(d, 1, 2), h = roll(d, 2, 4), w = roll(d, 2, 5);

	if (strcmp(op, "AffineGrid") == 0) {
		in[0] = (struct input){ RG_F32, 3, { n, 2, 3 } };
		in[1] = (struct input){ RG_I64, 1, { 4 }, { n, 1, h, w } };
		return 2;
	}
	if (strcmp(op, "CenterCropPad") == 0) {
		in[0] = (struct input){ RG_U8, 3, { n, h, w } };
		in[1] = (struct input){ RG_I64, 1, { 3 }, { h, w, n } };
		return 2;
	}
	if (strcmp(op, "Col2Im") == 0) {
		in[0] = (struct input){ RG_I16, 3, { n, 8, (h - 1) * (w - 1) } };
		in[1] = (struct input){ RG_I64, 1, { 2 }, { h, w } };
		in[2] = (struct input){ RG_I64, 1, { 2 }, { 2, 2 } };
		return 3;
	}
	if (strcmp(op, "DeformConv") == 0) {
		in[0] = (struct input){ RG_F32, 4, { n, 4, h, w } };
		in[1] = (struct input){ RG_F32, 4, { 2, 4, 2, 2 } };
		in[2] = (struct input){ RG_F32, 4, { n, 8, h - 1, w - 1 } };
		in[3] = (struct input){ RG_F32, 1, { 2 } };
		in[4] = (struct input){ RG_F32, 4, { n, 4, h - 1, w - 1 } };
		return (int)roll(d, 3, 5);
	}
	if (strcmp(op, "NonMaxSuppression") == 0) {
		in[0] = (struct input){ RG_F32, 3, { n, w, 4 } };
		in[1] = (struct input){ RG_F32, 3, { n, h, w } };
		in[2] = (struct input){ RG_I64, 1, { 1 }, { h } };
		return (int)roll(d, 2, 3);
	}
	if (strncmp(op, "Linear", 6) == 0) {
		in[0] = (struct input){ RG_F32, 2, { n, 2 } };
		return 1;
	}
	if (strcmp(op, "DFT") == 0) {
		in[0] = (struct input){ RG_F32, 3, { n, h, roll(d, 1, 2) } };
		in[1] = (struct input){ RG_I64, 1, { 1 }, { w } };
		return (int)roll(d, 1, 2);
	}
	if (strcmp(op, "STFT") == 0) {
		in[0] = (struct input){ RG_F32, 3, { n, h + w, 1 } };
		in[1] = (struct input){ RG_I64, 1, { 1 }, { h } };
		in[2] = (struct input){ RG_F32, 1, { w } };
		in[3] = (struct input){ RG_I64, 1, { 1 }, { w } };
		return (int)roll(d, 2, 4);
	}
	if (strcmp(op, "MelWeightMatrix") == 0) {
		in[0] = (struct input){ RG_I64, 1, { 1 }, { h } };
		in[1] = (struct input){ RG_I64, 1, { 1 }, { 4 * w } };
		in[2] = (struct input){ RG_I64, 1, { 1 }, { 8000 } };
		in[3] = in[4] = (struct input){ RG_F32, 1, { 1 } };
		return 5;
	}
	return 0;
}

/* Every second call has one thing changed. */
static bool add_fitting(struct math_case *t, struct dice *d)
{
	struct input in[5], *victim;
	int n = fitting(t->node.op_type, d, in);

	if (n == 0)
		return false;
	victim = &in[roll(d, 0, n - 1)];
	if (roll(d, 0, 1) && victim->dtype == RG_I64)
		victim->list[roll(d, 0, 3)] = number(d);
	else if (roll(d, 0, 1))
		victim->dims[roll(d, 0, victim->rank - 1)] = roll(d, 0, 4);
	for (int i = 0; i < n; i++) {
		if (in[i].dtype != RG_I64) {
			mc_in_random(t, in[i].dtype, in[i].rank, in[i].dims, -3, 5);
			if (rg_dtype_is_float(in[i].dtype))
				mc_special(t, i);
			continue;
		}
		mc_in(t, RG_I64, in[i].rank, in[i].dims);
		for (int64_t e = 0; e < in[i].dims[0]; e++)
			((int64_t *)t->in[i].data)[e] = in[i].list[e];
	}
	if (strncmp(t->node.op_type, "Linear", 6) == 0) {
		mc_floats(t, "coefficients", roll(d, 0, 3) ? 4 : 3, (const float[]){ 1, 2, 3, 4 });
		mc_int(t, "targets", roll(d, 0, 5) ? 2 : number(d));
		mc_ints(t, "classlabels_ints", (int)roll(d, 1, 2), MC_DIMS(7, 8));
	}
	if (roll(d, 0, 3) == 0)
		add_attrs(t, d);
	return true;
}

/* The sizes that attributes and inputs ask for are small, or refused. */
static int try_op(const struct rg_op *op, int seed)
{
	struct dice d = { .stream = rg_rng_stream((uint64_t)seed, op->name) };
	int n_versions = 0, max_in = op->max_in < 0 ? 3 : op->max_in, rc;
	struct math_case t;

	while (n_versions < RG_OP_MAX_VERSIONS && op->versions[n_versions])
		n_versions++;
	mc_start_in(&t, op->domain, op->name, op->versions[roll(&d, 0, n_versions - 1)]);
	if (t.node.version < op->supported_from)
		return 0;
	if (!add_fitting(&t, &d)) {
		if (strncmp(op->name, "Tree", 4) == 0)
			add_trees(&t, &d);
		else
			add_attrs(&t, &d);
		add_inputs(&t, &d, (int)roll(&d, op->min_in, max_in));
	}
	rc = mc_run(&t, (int)roll(&d, op->min_out, op->max_out));
	if (rc && rc != -ENOSYS)
		assert_true(t.err.code == rc && t.err.message[0]);
	mc_free(&t);
	return rc == 0;
}

static void test_random_calls(void **state)
{
	static const struct {
		const struct rg_op *ops;
		const int *n;
	} families[] = {
		{ rg_ops_signal, &rg_n_ops_signal },
		{ rg_ops_geometry, &rg_n_ops_geometry },
		{ rg_ops_distinct, &rg_n_ops_distinct },
		{ rg_ops_ml, &rg_n_ops_ml },
	};

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		for (int i = 0; i < *families[f].n; i++) {
			int ran = 0;

			for (int seed = 0; seed < TRIES; seed++)
				ran += try_op(&families[f].ops[i], seed);
			if (ran < 5)
				fail_msg("of %d calls of %s only %d ran", TRIES, families[f].ops[i].name, ran);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_irfft),        cmocka_unit_test(test_energy),
		cmocka_unit_test(test_unique_types), cmocka_unit_test(test_unique_nan),
		cmocka_unit_test(test_unique_blank),
		cmocka_unit_test(test_needs_values), cmocka_unit_test(test_deform_conv),
		cmocka_unit_test(test_random_calls),
	};

	return cmocka_run_group_tests_name("signal", tests, NULL, NULL);
}
