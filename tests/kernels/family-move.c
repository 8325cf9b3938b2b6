/* Calls of operators that move elements, or mix neighbours. See check.h. */
#include "check.h"

#include <math.h>
#include <string.h>

static enum rg_dtype any_type(struct ck_gen *g)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F32, RG_F32, RG_I32, RG_I64, RG_F16, RG_U8, RG_BOOL, RG_F64 };

	return CK_PICK(g, types);
}

static void transpose(struct nn_case *t, struct ck_gen *g)
{
	int rank = (int)ck_between(g, 0, 5);
	int64_t dim[5], perm[5];

	for (int d = 0; d < rank; d++) {
		dim[d] = ck_size(g, rank > 3 ? 18 : rank > 2 ? 35 : 130);
		perm[d] = d;
	}
	for (int d = rank - 1; d > 0; d--) {
		int64_t k = ck_between(g, 0, d), keep = perm[d];

		perm[d] = perm[k];
		perm[k] = keep;
	}
	if (ck_chance(g, 85))
		nn_ints(t, "perm", rank, perm);
	nn_input_bytes(t, any_type(g), rank, dim);
}

static bool bench_transpose(struct nn_case *t, int i)
{
	static const int64_t dim[][4] = { { 1, 128, 12, 64 }, { 1, 64, 56, 56 }, { 1, 1, 1000, 1000 } };
	static const int64_t perm[][4] = { { 0, 2, 1, 3 }, { 0, 2, 3, 1 }, { 0, 1, 3, 2 } };

	if (i == 3)
		return false;
	nn_ints(t, "perm", 4, perm[i]);
	nn_input(t, NN_UNIFORM, 4, dim[i]);
	return true;
}

/* ---- Resize ---- */

static void resize(struct nn_case *t, struct ck_gen *g)
{
	static const char *const modes[] = { "nearest", "linear", "linear", "cubic" };
	static const char *const coords[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
					      "align_corners", "asymmetric", "tf_half_pixel_for_nn" };
	static const char *const rounding[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
	static const float factors[] = { 2, 2, 4, 0.5f, 1.5f, 0.3f, 2.3f };
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WIDE, NN_BIG, NN_TINY };
	const char *mode = CK_PICK(g, modes);
	int rank = ck_chance(g, 70) ? 4 : (int)ck_between(g, 1, 4);
	float scale[4];
	int64_t dim[4];

	t->node.version = 19;
	nn_string(t, "mode", mode);
	if (ck_chance(g, 80))
		nn_string(t, "coordinate_transformation_mode", CK_PICK(g, coords));
	if (mode[0] == 'n' && ck_chance(g, 80))
		nn_string(t, "nearest_mode", CK_PICK(g, rounding));
	if (mode[0] != 'n' && ck_chance(g, 20))
		nn_int(t, "antialias", 1);
	if (mode[0] == 'c' && ck_chance(g, 30))
		nn_int(t, "exclude_outside", 1);
	for (int d = 0; d < rank; d++) {
		bool still = d < rank - 2 && ck_chance(g, 95);

		dim[d] = ck_some(g, d < rank - 2 ? 6 : 40);
		scale[d] = still ? 1 : CK_PICK(g, factors);
	}
	nn_input(t, mode[0] == 'n' ? ck_fill_elements(g) : CK_PICK(g, fills), rank, dim);
	nn_absent(t);
	memcpy(nn_input(t, NN_UNIFORM, 1, (const int64_t[]){ rank }), scale, (size_t)rank * sizeof(float));
	t->known = 4;
}

/* Sums of up to four taps an axis whose weights come from a division and sum to at most
 * 2, in magnitudes, an axis: held against the largest element. */
static void resize_bound(const struct nn_case *t, const float *want, double *out)
{
	const float *x = t->in[0].data;
	double largest = 0;

	for (int64_t i = 0; i < rg_shape_count(&t->in[0].shape); i++)
		largest = fmax(largest, fabs((double)x[i]));
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = !strcmp(rg_node_string(&t->node, "mode", "nearest"), "nearest") ? 0 : 34 * 0x1p-24 * largest;
}

static bool bench_resize(struct nn_case *t, int i)
{
	t->node.version = 19;
	nn_string(t, "mode", i ? "linear" : "nearest");
	nn_input(t, NN_UNIFORM, 4, (const int64_t[]){ 1, 64, 40, 40 });
	nn_absent(t);
	memcpy(nn_input(t, NN_UNIFORM, 1, (const int64_t[]){ 4 }), (const float[]){ 1, 1, 2, 2 }, 4 * sizeof(float));
	t->known = 4;
	return i < 2;
}

static void upsample(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4] = { 1, ck_some(g, 5), ck_some(g, 30), ck_some(g, 30) };
	float scale[4] = { 1, 1, (float)ck_between(g, 1, 4), (float)ck_between(g, 1, 4) };

	t->node.version = 9;
	if (ck_chance(g, 70))
		nn_string(t, "mode", ck_chance(g, 50) ? "linear" : "nearest");
	nn_input(t, NN_UNIFORM, 4, dim);
	memcpy(nn_input(t, NN_UNIFORM, 1, (const int64_t[]){ 4 }), scale, sizeof(scale));
	t->known = 2;
}

static const struct ck_family families[] = {
	{ .op_type = "Resize", .make = resize, .measure = CK_OWN, .tolerance = resize_bound, .bench = bench_resize },
	{ .op_type = "Transpose", .make = transpose, .measure = CK_EXACT, .bench = bench_transpose },
	{ .op_type = "Upsample", .make = upsample, .measure = CK_OWN, .tolerance = resize_bound },
};
CK_FAMILY_TABLE(ck_families_move, families);
