/* Calls of reductions. See check.h. */
#include "check.h"

#include <math.h>
#include <string.h>

#define UNIT 0x1p-24

/* Dimensions of which one is long, none empty; axes, trailing ones mostly. */
static int shape(struct ck_gen *g, int64_t *dim, int64_t *axes, int *n_axes)
{
	int rank = (int)ck_between(g, 1, 4), at = (int)ck_between(g, 0, rank - 1), from = (int)ck_between(g, 0, rank - 1);

	*n_axes = 0;
	for (int d = 0; d < rank; d++) {
		dim[d] = ck_some(g, d == at ? 900 : 9);
		if (ck_chance(g, d >= from ? 90 : 10))
			axes[(*n_axes)++] = ck_chance(g, 50) ? d : d - rank;
	}
	return rank;
}

static void call(struct nn_case *t, struct ck_gen *g, enum nn_fill fill)
{
	int64_t dim[4], axes[4];
	int n, rank = shape(g, dim, axes, &n);

	if (ck_chance(g, 50))
		nn_int(t, "keepdims", ck_between(g, 0, 1));
	if (ck_chance(g, 50)) { /* axes were an attribute once */
		t->node.version = 11;
		if (n)
			nn_ints(t, "axes", n, axes);
		nn_input(t, fill, rank, dim);
		return;
	}
	nn_input(t, fill, rank, dim);
	if (n)
		nn_input_ints(t, n, axes);
}

static void reduce(struct nn_case *t, struct ck_gen *g)
{
	call(t, g, ck_fill(g));
}

/* Squares neither vanish nor overflow. */
static void reduce_squares(struct nn_case *t, struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_WHOLE, NN_WIDE, NN_NAN, NN_INF };

	call(t, g, CK_PICK(g, fills));
}

static void reduce_positive(struct nn_case *t, struct ck_gen *g)
{
	call(t, g, NN_POSITIVE);
}

static double terms(const struct nn_case *t)
{
	int64_t out = rg_shape_count(&t->out[0].shape);

	return out ? (double)(rg_shape_count(&t->in[0].shape) / out) : 0;
}

/*
 * Where a sum of n terms of one sign, off by n units relative to itself, goes through a
 * function: a root halves that, a logarithm makes it absolute. exp(x - max) adds
 * |x - max| units, below 40 for what these cases hold. A product is off by n units.
 */
static void bound(const struct nn_case *t, const float *want, double *out)
{
	const char *op = t->node.op_type;
	double n = terms(t), absolute = 0x1p-126;

	if (!strcmp(op, "ReduceLogSum"))
		absolute = (n + 4) * UNIT;
	else if (!strcmp(op, "ReduceLogSumExp"))
		absolute = (n + 48) * UNIT;
	else if (!strcmp(op, "ReduceProd"))
		absolute = 1e-30; /* partial products that are denormal */
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = (n + 6) * UNIT * fabs((double)want[i]) + absolute;
}

/* Ties are for the first, or the last where it is asked for. */
static void arg(struct nn_case *t, struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_WHOLE, NN_WHOLE, NN_WIDE, NN_INF, NN_DENORMAL };
	int64_t dim[4], axes[4];
	int n, rank = shape(g, dim, axes, &n);

	nn_int(t, "axis", ck_chance(g, 50) ? rank - 1 : ck_between(g, -rank, rank - 1));
	nn_int(t, "keepdims", ck_between(g, 0, 1));
	if (ck_chance(g, 40))
		nn_int(t, "select_last_index", ck_between(g, 0, 1));
	nn_input(t, CK_PICK(g, fills), rank, dim);
}

static bool bench(struct nn_case *t, int i)
{
	static const int64_t dim[][4] = { { 1, 2048, 7, 7 }, { 1, 64, 112, 112 } };

	if (i == 2)
		return false;
	t->node.version = 11;
	nn_ints(t, "axes", 2, (const int64_t[]){ 2, 3 });
	nn_input(t, NN_UNIFORM, 4, dim[i]);
	return true;
}

#define SUM(OP) \
	{ .op_type = OP, .make = reduce, .measure = CK_SUM, .terms = terms, .ulps = 2, .whole_is_exact = true, \
	  .bench = bench }
#define OWN(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_OWN, .tolerance = bound, .bench = bench }

static const struct ck_family families[] = {
	{ .op_type = "ArgMax", .make = arg, .measure = CK_EXACT },
	{ .op_type = "ArgMin", .make = arg, .measure = CK_EXACT },
	SUM("ReduceL1"),
	OWN("ReduceL2", reduce_squares),
	OWN("ReduceLogSum", reduce_positive),
	OWN("ReduceLogSumExp", reduce_squares),
	{ .op_type = "ReduceMax", .make = reduce, .measure = CK_ULPS, .bench = bench },
	{ .op_type = "ReduceMean", .make = reduce, .measure = CK_SUM, .terms = terms, .ulps = 2, .mean = true, .bench = bench },
	{ .op_type = "ReduceMin", .make = reduce, .measure = CK_ULPS, .bench = bench },
	OWN("ReduceProd", reduce_positive),
	SUM("ReduceSum"),
	{ .op_type = "ReduceSumSquare", .make = reduce_squares, .measure = CK_SUM, .terms = terms, .ulps = 2,
	  .whole_is_exact = true, .bench = bench },
};
CK_FAMILY_TABLE(ck_families_reduce, families);
