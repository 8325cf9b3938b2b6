/*
 * Elementwise arithmetic and functions: types, shapes, costs.
 *
 * Costs an element, as computed plainly: an add, multiply, compare, minimum,
 * absolute value or rounding is one flop; exp, log, trigonometry, tanh, erf,
 * sqrt, pow, division and remainder are one sfu each and no flop. A choice
 * (x < 0 ? a : b) is one flop for the compare plus its dearer side. For integer
 * types the same counts are iops.
 */
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-legacy.h"
#include "graph/op-types.h"

/* ---- one input ---- */

static int infer_unary(struct rg_infer *c, uint32_t set, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, set, err);

	return rc ? rc : rg_infer_same(c, err);
}

static int infer_float(struct rg_infer *c, struct rg_error *err)
{
	return infer_unary(c, RG_SET_FLOAT, err);
}

static int infer_num(struct rg_infer *c, struct rg_error *err)
{
	return infer_unary(c, RG_SET_NUM, err);
}

static int infer_signed(struct rg_infer *c, struct rg_error *err)
{
	return infer_unary(c, RG_SET_FLOAT | RG_SET_SINT, err);
}

static int infer_gelu(struct rg_infer *c, struct rg_error *err)
{
	const char *how = rg_node_string(c->node, "approximate", "none");

	if (strcmp(how, "none") && strcmp(how, "tanh"))
		return rg_infer_fail(c, err, "attribute approximate is '%s', not 'none' or 'tanh'", how);
	return infer_float(c, err);
}

static int infer_clip(struct rg_infer *c, struct rg_error *err)
{
	int rc = infer_num(c, err);

	for (int i = 1; i <= 2 && !rc && c->node->version >= 11; i++) {
		rc = rg_infer_like(c, i, 0, err);
		if (!rc)
			rc = rg_infer_scalar(c, i, err);
	}
	if (!rc && c->node->version < 11 && !rg_dtype_is_float(c->in[0]->dtype))
		rc = rg_infer_fail(c, err, "bounds that are attributes are for float types only");
	return rc;
}

/* ---- two inputs ---- */

static int infer_arithmetic(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_pair(c, RG_SET_NUM, RG_UNDEFINED, err);
}

static int infer_mod(struct rg_infer *c, struct rg_error *err)
{
	int rc = infer_arithmetic(c, err);

	if (!rc && c->node->version < 28 && rg_dtype_is_float(c->in[0]->dtype) &&
	    !rg_node_int(c->node, "fmod", 0))
		rc = rg_infer_fail(c, err, "float types need the attribute fmod = 1 before version 28");
	return rc;
}

/* The exponent may be of another type from version 12 on. */
static int infer_pow(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape out;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_I64), err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_NUM, err);
	if (!rc && c->node->version < 12)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = rg_infer_legacy_broadcast(c, &out, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return rc;
}

static int infer_prelu(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape slope, out;
	char ta[160], tb[160];
	int rc = rg_infer_type(c, 0, RG_SET_NUM, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_NUM, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (rc)
		return rc;
	if (!rg_op_legacy_slope(c->node, &c->in[0]->shape, &c->in[1]->shape, &slope) ||
	    !rg_shape_broadcast(&c->in[0]->shape, &slope, &out) || !rg_shape_equal(&out, &c->in[0]->shape))
		return rg_infer_fail(c, err, "the slope %s does not broadcast to %s",
				     rg_shape_text(tb, &c->in[1]->shape),
				     rg_shape_text(ta, &c->in[0]->shape));
	return rg_infer_same(c, err);
}

/* ---- any number of inputs ---- */

static int infer_variadic(struct rg_infer *c, uint32_t set, struct rg_error *err)
{
	struct rg_shape out = { 0 };
	char ta[160], tb[160];
	int rc;

	for (int i = 0; i < c->node->n_in; i++) {
		rc = rg_infer_type(c, i, set, err);
		if (!rc)
			rc = rg_infer_like(c, i, 0, err);
		if (!rc && c->node->version < 8)
			rc = rg_infer_shape_is(c, i, &c->in[0]->shape, err);
		if (rc)
			return rc;
		if (!rg_shape_broadcast(&out, &c->in[i]->shape, &out))
			return rg_infer_fail(c, err, "shapes %s and %s do not broadcast",
					     rg_shape_text(ta, &out), rg_shape_text(tb, &c->in[i]->shape));
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static int infer_variadic_num(struct rg_infer *c, struct rg_error *err)
{
	return infer_variadic(c, RG_SET_NUM, err);
}

static int infer_variadic_float(struct rg_infer *c, struct rg_error *err)
{
	return infer_variadic(c, RG_SET_FLOAT, err);
}

/* ---- costs ---- */

#define COST(NAME, FLOPS, SFU) \
	static void cost_##NAME(const struct rg_cost_in *c, struct rg_cost *out) \
	{ \
		rg_cost_elementwise(c, out, FLOPS, SFU); \
	}

COST(1, 1, 0)           /* Abs, Add, Ceil, ... */
COST(2, 2, 0)           /* Clip, LeakyRelu, PRelu, Shrink */
COST(sfu, 0, 1)         /* Exp, Div, Sqrt, ... */
COST(sigmoid, 2, 2)     /* negate, exp, add, divide */
COST(hardsigmoid, 4, 0) /* multiply, add, two bounds */
COST(hardswish, 5, 0)
COST(elu, 3, 1)         /* compare, subtract, multiply; exp */
COST(selu, 4, 1)
COST(celu, 3, 2)        /* the quotient too */
COST(softplus, 1, 2)    /* exp, log */
COST(softsign, 2, 1)
COST(mish, 2, 3)
COST(swish, 3, 2)

static void cost_gelu(const struct rg_cost_in *c, struct rg_cost *out)
{
	bool is_tanh = !strcmp(rg_node_string(c->node, "approximate", "none"), "tanh");

	rg_cost_elementwise(c, out, is_tanh ? 8 : 4, 1);
}

static void cost_fold(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, c->node->n_in - 1, 0);
}

static void cost_mean(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, c->node->n_in - 1, 1);
}

#define OP(NAME, MIN, MAX, FROM, TO, INFER, COST_FN, ...) \
	{ "", NAME, RG_KIND_ELEMENTWISE, 0, MIN, MAX, 1, 1, { __VA_ARGS__ }, FROM, TO, INFER, COST_FN }

const struct rg_op rg_ops_math[] = {
	OP("Abs", 1, 1, 1, 13, infer_num, cost_1, 1, 6, 13),
	OP("Acos", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Acosh", 1, 1, 9, 22, infer_float, cost_sfu, 9, 22),
	OP("Add", 2, 2, 1, 14, infer_arithmetic, cost_1, 1, 6, 7, 13, 14),
	OP("Asin", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Asinh", 1, 1, 9, 22, infer_float, cost_sfu, 9, 22),
	OP("Atan", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Atanh", 1, 1, 9, 22, infer_float, cost_sfu, 9, 22),
	OP("Ceil", 1, 1, 1, 13, infer_float, cost_1, 1, 6, 13),
	OP("Celu", 1, 1, 12, 28, infer_float, cost_celu, 12, 28),
	OP("Clip", 1, 3, 1, 13, infer_clip, cost_2, 1, 6, 11, 12, 13),
	OP("Cos", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Cosh", 1, 1, 9, 22, infer_float, cost_sfu, 9, 22),
	OP("Div", 2, 2, 1, 14, infer_arithmetic, cost_sfu, 1, 6, 7, 13, 14),
	OP("Elu", 1, 1, 1, 22, infer_float, cost_elu, 1, 6, 22),
	OP("Erf", 1, 1, 9, 13, infer_float, cost_sfu, 9, 13),
	OP("Exp", 1, 1, 1, 13, infer_float, cost_sfu, 1, 6, 13),
	OP("Floor", 1, 1, 1, 13, infer_float, cost_1, 1, 6, 13),
	OP("Gelu", 1, 1, 20, 20, infer_gelu, cost_gelu, 20),
	OP("HardSigmoid", 1, 1, 1, 22, infer_float, cost_hardsigmoid, 1, 6, 22),
	OP("HardSwish", 1, 1, 14, 22, infer_float, cost_hardswish, 14, 22),
	OP("LeakyRelu", 1, 1, 1, 16, infer_float, cost_2, 1, 6, 16),
	OP("Log", 1, 1, 1, 13, infer_float, cost_sfu, 1, 6, 13),
	OP("Max", 1, -1, 1, 13, infer_variadic_num, cost_fold, 1, 6, 8, 12, 13),
	OP("Mean", 1, -1, 1, 13, infer_variadic_float, cost_mean, 1, 6, 8, 13),
	OP("Min", 1, -1, 1, 13, infer_variadic_num, cost_fold, 1, 6, 8, 12, 13),
	OP("Mish", 1, 1, 18, 22, infer_float, cost_mish, 18, 22),
	OP("Mod", 2, 2, 10, 28, infer_mod, cost_sfu, 10, 13, 28),
	OP("Mul", 2, 2, 1, 14, infer_arithmetic, cost_1, 1, 6, 7, 13, 14),
	OP("Neg", 1, 1, 1, 13, infer_signed, cost_1, 1, 6, 13),
	OP("PRelu", 2, 2, 1, 16, infer_prelu, cost_2, 1, 6, 7, 9, 16),
	OP("Pow", 2, 2, 1, 15, infer_pow, cost_sfu, 1, 7, 12, 13, 15),
	OP("Reciprocal", 1, 1, 1, 13, infer_float, cost_sfu, 1, 6, 13),
	OP("Relu", 1, 1, 1, 14, infer_signed, cost_1, 1, 6, 13, 14),
	OP("Round", 1, 1, 11, 22, infer_float, cost_1, 11, 22),
	OP("Selu", 1, 1, 1, 22, infer_float, cost_selu, 1, 6, 22),
	OP("Shrink", 1, 1, 9, 9, infer_num, cost_2, 9),
	OP("Sigmoid", 1, 1, 1, 13, infer_float, cost_sigmoid, 1, 6, 13),
	OP("Sign", 1, 1, 9, 13, infer_num, cost_1, 9, 13),
	OP("Sin", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Sinh", 1, 1, 9, 22, infer_float, cost_sfu, 9, 22),
	OP("Softplus", 1, 1, 1, 22, infer_float, cost_softplus, 1, 22),
	OP("Softsign", 1, 1, 1, 22, infer_float, cost_softsign, 1, 22),
	OP("Sqrt", 1, 1, 1, 13, infer_float, cost_sfu, 1, 6, 13),
	OP("Sub", 2, 2, 1, 14, infer_arithmetic, cost_1, 1, 6, 7, 13, 14),
	OP("Sum", 1, -1, 1, 13, infer_variadic_float, cost_fold, 1, 6, 8, 13),
	OP("Swish", 1, 1, 24, 24, infer_float, cost_swish, 24),
	OP("Tan", 1, 1, 7, 22, infer_float, cost_sfu, 7, 22),
	OP("Tanh", 1, 1, 1, 13, infer_float, cost_sfu, 1, 6, 13),
	OP("ThresholdedRelu", 1, 1, 10, 22, infer_float, cost_1, 10, 22),
};
RG_OP_FAMILY_END(math);
