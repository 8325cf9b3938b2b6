/*
 * Comparison, boolean and bit operators, tests, Where: types, shapes, costs.
 *
 * Costs: each is one integer operation an output element, whatever the inputs
 * are; none computes a floating-point result.
 */
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-legacy.h"
#include "graph/op-types.h"

static int infer_compare(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_pair(c, RG_SET_NUM, RG_BOOL, err);
}

static int infer_equal(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_pair(c, RG_SET_NUM | RG_BIT(RG_BOOL) | (c->node->version >= 19 ? RG_BIT(RG_STRING) : 0),
			     RG_BOOL, err);
}

static int infer_bool_pair(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_pair(c, RG_BIT(RG_BOOL), RG_BOOL, err);
}

static int infer_bits(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_pair(c, RG_SET_INT, RG_UNDEFINED, err);
}

static int infer_shift(struct rg_infer *c, struct rg_error *err)
{
	const char *dir = rg_node_string(c->node, "direction", "");

	if (strcmp(dir, "LEFT") && strcmp(dir, "RIGHT"))
		return rg_infer_fail(c, err, "attribute direction is '%s', not 'LEFT' or 'RIGHT'", dir);
	return rg_infer_pair(c, c->node->version < 28 ? RG_SET_UINT : RG_SET_INT, RG_UNDEFINED, err);
}

static int infer_not(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_BIT(RG_BOOL), err);

	return rc ? rc : rg_infer_same(c, err);
}

static int infer_bit_not(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_INT, err);

	return rc ? rc : rg_infer_same(c, err);
}

static int infer_test(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rg_infer_out(c, 0, RG_BOOL, &c->in[0]->shape);
	return rc;
}

#define WHERE_TYPES (RG_SET_NUM | RG_BIT(RG_BOOL) | RG_BIT(RG_C64) | RG_BIT(RG_STRING))

static int infer_where(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s;
	char a[160], b[160], d[160];
	int rc = rg_infer_type(c, 0, RG_BIT(RG_BOOL), err);

	if (!rc)
		rc = rg_infer_type(c, 1, WHERE_TYPES, err);
	if (!rc)
		rc = rg_infer_type(c, 2, WHERE_TYPES, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 1, err);
	if (rc)
		return rc;
	if (!rg_shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &s) ||
	    !rg_shape_broadcast(&s, &c->in[2]->shape, &s))
		return rg_infer_fail(c, err, "shapes %s, %s and %s do not broadcast",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[1]->shape),
				     rg_shape_text(d, &c->in[2]->shape));
	rg_infer_out(c, 0, c->in[1]->dtype, &s);
	return 0;
}

static void cost_one(const struct rg_cost_in *c, struct rg_cost *out)
{
	if (c->node->n_out < 1)
		return;
	out->iops = rg_shape_count(&c->out[0].shape);
	out->flops = out->sfu = 0;
}

#define OP(NAME, N_IN, FROM, TO, INFER, ...) \
	{ "", NAME, RG_KIND_ELEMENTWISE, 0, N_IN, N_IN, 1, 1, { __VA_ARGS__ }, FROM, TO, INFER, cost_one }

const struct rg_op rg_ops_logic[] = {
	OP("And", 2, 1, 7, infer_bool_pair, 1, 7),
	OP("BitShift", 2, 11, 28, infer_shift, 11, 28),
	OP("BitwiseAnd", 2, 18, 18, infer_bits, 18),
	OP("BitwiseNot", 1, 18, 18, infer_bit_not, 18),
	OP("BitwiseOr", 2, 18, 18, infer_bits, 18),
	OP("BitwiseXor", 2, 18, 18, infer_bits, 18),
	OP("Equal", 2, 1, 19, infer_equal, 1, 7, 11, 13, 19),
	OP("Greater", 2, 1, 13, infer_compare, 1, 7, 9, 13),
	OP("GreaterOrEqual", 2, 12, 16, infer_compare, 12, 16),
	OP("IsInf", 1, 10, 20, infer_test, 10, 20),
	OP("IsNaN", 1, 9, 20, infer_test, 9, 13, 20),
	OP("Less", 2, 1, 13, infer_compare, 1, 7, 9, 13),
	OP("LessOrEqual", 2, 12, 16, infer_compare, 12, 16),
	OP("Not", 1, 1, 1, infer_not, 1),
	OP("Or", 2, 1, 7, infer_bool_pair, 1, 7),
	OP("Where", 3, 9, 16, infer_where, 9, 16),
	OP("Xor", 2, 1, 7, infer_bool_pair, 1, 7),
};
RG_OP_FAMILY_END(logic);
