/* Calls of operators that copy elements to other places. See check.h. */
#include "check.h"

#include <string.h>

static enum rg_dtype any_type(struct ck_gen *g)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F32, RG_F32, RG_I32, RG_I64, RG_F16, RG_U8, RG_BOOL, RG_F64 };

	return CK_PICK(g, types);
}

static int shape(struct ck_gen *g, int64_t *dim, bool empty)
{
	int rank = (int)ck_between(g, 1, 4);

	for (int d = 0; d < rank; d++)
		dim[d] = empty ? ck_size(g, rank > 2 ? 20 : 70) : ck_some(g, rank > 2 ? 20 : 70);
	return rank;
}

static void concat(struct nn_case *t, struct ck_gen *g)
{
	enum rg_dtype type = any_type(g);
	int64_t dim[4];
	int rank = shape(g, dim, true), n = (int)ck_between(g, 1, 5), axis = (int)ck_between(g, 0, rank - 1);

	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	for (int i = 0; i < n; i++) {
		dim[axis] = ck_size(g, 20);
		nn_input_bytes(t, type, rank, dim);
	}
}

static void split(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4], parts[4];
	int rank = shape(g, dim, true), axis = (int)ck_between(g, 0, rank - 1);

	t->node.version = 13;
	t->n_out = (int)ck_between(g, 1, 4);
	dim[axis] = 0;
	for (int i = 0; i < t->n_out; i++)
		dim[axis] += parts[i] = ck_size(g, 20);
	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	nn_input_bytes(t, any_type(g), rank, dim);
	nn_input_ints(t, t->n_out, parts);
}

static void expand(struct nn_case *t, struct ck_gen *g)
{
	int64_t to[5], from[5];
	int rank = (int)ck_between(g, 1, 4), skip = (int)ck_between(g, 0, rank);

	for (int d = 0; d < rank; d++) {
		to[d] = ck_size(g, rank > 2 ? 12 : 70);
		from[d] = ck_chance(g, 50) ? 1 : to[d];
	}
	nn_input_bytes(t, any_type(g), rank - skip, from + skip);
	nn_input_ints(t, rank, to);
}

static void tile(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4], repeats[4];
	int rank = shape(g, dim, true);

	for (int d = 0; d < rank; d++) {
		dim[d] = dim[d] > 20 ? 20 : dim[d];
		repeats[d] = ck_chance(g, 5) ? 0 : ck_between(g, 1, 4);
	}
	nn_input_bytes(t, any_type(g), rank, dim);
	nn_input_ints(t, rank, repeats);
}

static void gather(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4], at[2];
	int rank = shape(g, dim, false), axis = (int)ck_between(g, 0, rank - 1), n = (int)ck_between(g, 0, 2);
	bool narrow = ck_chance(g, 40);
	int64_t count;
	void *x;

	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	nn_input_bytes(t, any_type(g), rank, dim);
	for (int d = 0; d < n; d++)
		at[d] = ck_size(g, 12);
	x = nn_input_typed(t, narrow ? RG_I32 : RG_I64, n, at);
	count = rg_shape_count(&t->in[1].shape);
	for (int64_t i = 0; i < count; i++) {
		int64_t v = ck_between(g, -dim[axis], dim[axis] - 1);

		if (narrow)
			((int32_t *)x)[i] = (int32_t)v;
		else
			((int64_t *)x)[i] = v;
	}
	t->weights = ck_chance(g, 50) ? 1 : 2;
}

static void slice(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[4], start[4], end[4], axes[4], steps[4];
	int rank = shape(g, dim, true), n = 0;

	for (int d = 0; d < rank; d++) {
		if (ck_chance(g, 40))
			continue;
		axes[n] = ck_chance(g, 50) ? d : d - rank;
		steps[n] = ck_chance(g, 70) ? 1 : ck_chance(g, 50) ? ck_between(g, 2, 3) : -ck_between(g, 1, 2);
		start[n] = ck_between(g, -dim[d] - 1, dim[d]);
		end[n] = ck_chance(g, 20) ? (steps[n] > 0 ? INT64_MAX : INT64_MIN) : ck_between(g, -dim[d] - 1, dim[d]);
		n++;
	}
	nn_input_bytes(t, any_type(g), rank, dim);
	nn_input_ints(t, n, start);
	nn_input_ints(t, n, end);
	nn_input_ints(t, n, axes);
	nn_input_ints(t, n, steps);
}

static void pad(struct nn_case *t, struct ck_gen *g)
{
	static const char *const modes[] = { "constant", "constant", "reflect", "edge" };
	const char *mode = CK_PICK(g, modes);
	int64_t dim[4], pads[8];
	int rank = shape(g, dim, false);

	t->node.version = 13;
	for (int d = 0; d < 2 * rank; d++) {
		int64_t most = mode[0] == 'r' ? dim[d % rank] - 1 : 5;

		pads[d] = ck_chance(g, 40) ? 0 : ck_between(g, 0, most < 5 ? most : 5);
		if (mode[0] == 'c' && ck_chance(g, 10) && dim[d % rank] > 3)
			pads[d] = -1;
	}
	nn_string(t, "mode", mode);
	nn_input_bytes(t, RG_F32, rank, dim);
	nn_input_ints(t, 2 * rank, pads);
	if (ck_chance(g, 50))
		*nn_input(t, NN_UNIFORM, 0, NULL) = 1.5f;
	t->known |= 6;
}

static void depth_space(struct nn_case *t, struct ck_gen *g)
{
	bool to_space = !strcmp(t->node.op_type, "DepthToSpace");
	int64_t block = ck_between(g, 1, 4), dim[4] = { ck_between(g, 1, 2), ck_some(g, 12), ck_some(g, 20), ck_some(g, 20) };

	nn_int(t, "blocksize", block);
	if (to_space && ck_chance(g, 60))
		nn_string(t, "mode", ck_chance(g, 50) ? "CRD" : "DCR");
	if (to_space)
		dim[1] *= block * block;
	else
		dim[2] *= block, dim[3] *= block;
	nn_input_bytes(t, any_type(g), 4, dim);
}

#define COPY(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_EXACT }

static const struct ck_family families[] = {
	COPY("Concat", concat),
	COPY("DepthToSpace", depth_space),
	COPY("Expand", expand),
	COPY("Gather", gather),
	COPY("Pad", pad),
	COPY("Slice", slice),
	COPY("SpaceToDepth", depth_space),
	COPY("Split", split),
	COPY("Tile", tile),
};
CK_FAMILY_TABLE(ck_families_copy, families);
