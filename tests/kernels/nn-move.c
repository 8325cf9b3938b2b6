/*
 * Movement by rows and strided copies against the reference, bit by bit: elements
 * of every size, dimensions around the blocks, several lanes, edges of every mode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nn-case.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(A) (sizeof(A) / sizeof((A)[0]))

static const enum rg_dtype types[] = { RG_F32, RG_U8, RG_F16, RG_I64, RG_C128 };

/* Bytes that tell elements apart and are no NaN. */
static void input(struct nn_case *t, enum rg_dtype type, int rank, const int64_t *dim)
{
	unsigned char *x = nn_input_typed(t, type, rank, dim);
	int64_t n = rg_tensor_bytes(type, &t->in[t->node.n_in - 1].shape);

	for (int64_t i = 0; i < n; i++)
		x[i] = (unsigned char)((i * 37 + i / 251 + t->node.n_in) % 113);
}

static void list(struct nn_case *t, int n, const int64_t *v)
{
	memcpy(nn_input_typed(t, RG_I64, 1, D(n)), v, (size_t)n * sizeof(*v));
}

static void check(struct nn_case *t, int n_out)
{
	assert_true(nn_check_outputs(t, n_out, 0, 0, false) >= 3);
}

static void test_transpose(void **state)
{
	static const struct {
		int rank;
		int64_t dim[5], perm[5];
	} cases[] = {
		{ 2, { 33, 47 }, { 1, 0 } },           { 2, { 1, 47 }, { 1, 0 } },
		{ 2, { 64, 64 }, { 1, 0 } },           { 2, { 3, 1000 }, { 1, 0 } },
		{ 2, { 1000, 3 }, { 1, 0 } },          { 3, { 5, 17, 19 }, { 0, 2, 1 } },
		{ 3, { 5, 17, 19 }, { 2, 1, 0 } },     { 4, { 2, 9, 12, 64 }, { 0, 2, 1, 3 } },
		{ 4, { 2, 9, 12, 20 }, { 0, 2, 3, 1 } }, { 4, { 2, 9, 12, 20 }, { 0, 3, 1, 2 } },
		{ 4, { 2, 3, 4, 5 }, { 3, 2, 1, 0 } }, { 4, { 2, 3, 4, 5 }, { 1, 0, 3, 2 } },
		{ 4, { 2, 3, 4, 5 }, { 0, 1, 2, 3 } }, { 4, { 18, 3, 17, 2 }, { 3, 1, 0, 2 } },
		{ 5, { 2, 1, 3, 4, 5 }, { 4, 1, 0, 3, 2 } }, { 3, { 0, 4, 5 }, { 2, 0, 1 } },
		{ 1, { 17 }, { 0 } },                  { 0, { 0 }, { 0 } },
		{ 1, { 200000 }, { 0 } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t k = 0; k < COUNT(types); k++) {
			struct nn_case t;

			nn_start(&t, "Transpose", 13);
			nn_ints(&t, "perm", cases[i].rank, cases[i].perm);
			input(&t, types[k], cases[i].rank, cases[i].dim);
			check(&t, 1);
		}
	}
}

static void test_slice(void **state)
{
	static const struct {
		int64_t start[3], end[3], step[3];
	} cases[] = {
		{ { 0, 0, 0 }, { 9, 33, 70 }, { 1, 1, 1 } },    { { 2, 0, 0 }, { 7, 33, 70 }, { 1, 1, 1 } },
		{ { 0, 5, 3 }, { 9, 30, 69 }, { 1, 1, 1 } },    { { 0, 0, 1 }, { 9, 33, 70 }, { 1, 2, 3 } },
		{ { 8, 32, 69 }, { -99, -99, -99 }, { -1, -2, -1 } }, { { 4, 0, 9 }, { 5, 33, 10 }, { 1, 1, 1 } },
		{ { 3, 0, 0 }, { 3, 33, 70 }, { 1, 1, 1 } },    { { 0, 0, 0 }, { 9, 33, 70 }, { 4, 16, 70 } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t k = 0; k < COUNT(types); k++) {
			struct nn_case t;

			nn_start(&t, "Slice", 13);
			input(&t, types[k], 3, D(9, 33, 70));
			list(&t, 3, cases[i].start);
			list(&t, 3, cases[i].end);
			list(&t, 3, D(0, 1, 2));
			list(&t, 3, cases[i].step);
			check(&t, 1);
		}
	}
}

static void test_expand_and_tile(void **state)
{
	static const struct {
		int64_t in[4], by[4];
	} cases[] = {
		{ { 1, 3, 1, 5 }, { 2, 1, 4, 1 } }, { { 2, 1, 33, 1 }, { 1, 7, 1, 20 } },
		{ { 1, 1, 1, 1 }, { 3, 4, 5, 6 } }, { { 2, 3, 4, 5 }, { 1, 1, 1, 1 } },
		{ { 1, 1, 1, 700 }, { 2, 3, 4, 1 } }, { { 1, 2, 1, 3 }, { 0, 1, 1, 1 } },
		{ { 1, 1, 1, 1 }, { 1, 1, 1, 1024 } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t k = 0; k < COUNT(types); k++) {
			int64_t shape[4];
			struct nn_case t;

			for (int d = 0; d < 4; d++)
				shape[d] = cases[i].in[d] * cases[i].by[d];
			nn_start(&t, "Expand", 13);
			input(&t, types[k], 4, cases[i].in);
			list(&t, 4, shape);
			check(&t, 1);
			nn_start(&t, "Tile", 13);
			input(&t, types[k], 4, cases[i].in);
			list(&t, 4, D(3, 2, 1, cases[i].by[3]));
			check(&t, 1);
		}
	}
}

static void test_blocks(void **state)
{
	for (int64_t b = 1; b <= 4; b++) {
		for (int crd = 0; crd < 2; crd++) {
			for (size_t k = 0; k < COUNT(types) - 1; k++) {
				struct nn_case t;

				nn_start(&t, "DepthToSpace", 13);
				nn_int(&t, "blocksize", b);
				nn_string(&t, "mode", crd ? "CRD" : "DCR");
				input(&t, types[k], 4, D(2, 3 * b * b, 5, 18));
				check(&t, 1);
				nn_start(&t, "SpaceToDepth", 13);
				nn_int(&t, "blocksize", b);
				input(&t, types[k], 4, D(2, 3, 5 * b, 7 * b));
				check(&t, 1);
			}
		}
	}
}

static void test_concat_and_split(void **state)
{
	static const int64_t lengths[][4] = { { 1, 2, 3, 4 }, { 0, 5, 0, 33 }, { 7, 0, 0, 0 }, { 300, 1, 40, 9 } };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		for (int axis = 0; axis < 3; axis++) {
			for (size_t k = 0; k < COUNT(types); k++) {
				int64_t dim[3] = { 5, 6, 35 };
				struct nn_case t;

				nn_start(&t, "Concat", 13);
				nn_int(&t, "axis", axis);
				for (int p = 0; p < 4; p++) {
					dim[axis] = lengths[i][p];
					input(&t, types[k], 3, dim);
				}
				check(&t, 1);
				dim[axis] = lengths[i][0] + lengths[i][1] + lengths[i][2] + lengths[i][3];
				nn_start(&t, "Split", 13);
				nn_int(&t, "axis", axis);
				input(&t, types[k], 3, dim);
				list(&t, 4, lengths[i]);
				check(&t, 4);
			}
		}
	}
}

/* More than one piece a row, and pieces that end within one. */
static void test_large_concat(void **state)
{
	struct nn_case t;

	nn_start(&t, "Concat", 13);
	nn_int(&t, "axis", 1);
	input(&t, RG_F32, 2, D(3, 50001));
	input(&t, RG_F32, 2, D(3, 7));
	input(&t, RG_F32, 2, D(3, 20000));
	check(&t, 1);
}

static void test_gather(void **state)
{
	for (int axis = 0; axis < 3; axis++) {
		for (size_t k = 0; k < COUNT(types); k++) {
			for (int wide = 0; wide < 2; wide++) {
				static const int64_t at[] = { 3, -1, 0, -4, 2, 2 };
				struct nn_case t;
				void *to;

				nn_start(&t, "Gather", 13);
				nn_int(&t, "axis", axis);
				input(&t, types[k], 3, axis == 0 ? D(4, 3, 40) : axis == 1 ? D(3, 4, 9) : D(3, 5, 4));
				to = nn_input_typed(&t, wide ? RG_I64 : RG_I32, 2, D(2, 3));
				for (int i = 0; i < 6; i++) {
					if (wide)
						((int64_t *)to)[i] = at[i];
					else
						((int32_t *)to)[i] = (int32_t)at[i];
				}
				check(&t, 1);
			}
		}
	}
}

static void test_gather_outside(void **state)
{
	static const int64_t bad[] = { 4, -5, INT64_MAX, INT64_MIN };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_call c;
		struct nn_case t;
		float out[4];

		nn_start(&t, "Gather", 13);
		input(&t, RG_F32, 2, D(4, 2));
		list(&t, 2, D(0, bad[i]));
		assert_int_equal(nn_infer(&t, 1, &err), 0);
		t.out[0].data = out;
		c = (struct rg_call){ .node = &t.node, .in = t.in, .out = t.out };
		assert_int_equal(rg_kernel_find("", "Gather", "loops")->run(&c, &rg_par_serial, &err), -ERANGE);
		assert_non_null(strstr(err.message, "outside"));
		nn_free(&t);
	}
}

static void test_pad(void **state)
{
	static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
	static const struct {
		int64_t pads[6];
		bool any_mode; /* within what reflection can show */
	} cases[] = {
		{ { 0, 0, 0, 0, 0, 0 }, true },  { { 1, 2, 3, 0, 1, 2 }, true }, { { 0, 1, 0, 0, 2, 0 }, true },
		{ { 1, 0, 0, 1, 0, 0 }, true },  { { 0, 0, 5, 0, 0, 7 }, true }, { { 0, -1, -2, -1, 1, 0 }, true },
		{ { 0, 0, 100, 9, 0, 30 }, false }, { { -2, 0, 0, 0, 0, -30 }, false },
	};

	for (size_t m = 0; m < COUNT(modes); m++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			for (size_t k = 0; k < COUNT(types); k++) {
				struct nn_case t;

				if (m && !cases[i].any_mode)
					continue;
				nn_start(&t, "Pad", 19);
				nn_string(&t, "mode", modes[m]);
				input(&t, types[k], 3, D(3, 4, 37));
				list(&t, 6, cases[i].pads);
				if (i % 2)
					input(&t, types[k], 0, NULL);
				check(&t, 1);
			}
		}
	}
	{
		struct nn_case t;

		nn_start(&t, "Pad", 2);
		nn_ints(&t, "pads", 4, D(1, 2, 0, 3));
		nn_float(&t, "value", 1.5f);
		input(&t, RG_F32, 2, D(4, 5));
		check(&t, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transpose),        cmocka_unit_test(test_slice),
		cmocka_unit_test(test_expand_and_tile),  cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_concat_and_split), cmocka_unit_test(test_large_concat),
		cmocka_unit_test(test_gather),           cmocka_unit_test(test_gather_outside),
		cmocka_unit_test(test_pad),
	};

	return cmocka_run_group_tests_name("nn-move", tests, NULL, NULL);
}
