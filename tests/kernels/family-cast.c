/* Calls of Cast between the types that have vector kernels, and some that have none. See check.h. */
#include "check.h"

#include <string.h>

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static void cast(struct nn_case *t, struct ck_gen *g)
{
	static const enum rg_dtype types[] = { RG_BOOL, RG_U8, RG_I8, RG_I32, RG_I64, RG_F32 };
	static const enum nn_fill fills[] = { NN_SPECIAL, NN_WHOLE, NN_NAN, NN_INF };
	enum rg_dtype from = CK_PICK(g, types), to = CK_PICK(g, types);
	const int64_t *dims = DIMS(ck_size(g, 6), ck_chance(g, 40) ? ck_length(g) : ck_some(g, 40));

	nn_int(t, "to", to);
	if (from == RG_F32)
		nn_input(t, CK_PICK(g, fills), 2, dims);
	else
		nn_input_bytes(t, from, 2, dims);
}

static const struct ck_family families[] = {
	{ .domain = "", .op_type = "Cast", .make = cast, .measure = CK_EXACT },
};
CK_FAMILY_TABLE(ck_families_cast, families);
