/*
 * Reductions: types, shapes, costs.
 *
 * Costs, with n elements folded into r results: an element costs one flop to
 * fold in (add, multiply, maximum), which makes n - r of them; ReduceL1,
 * ReduceL2 and ReduceSumSquare take n more for the absolute value or square.
 * ReduceLogSumExp takes n exp, and 3n - r flops (maximum, subtract, add).
 * Means divide, and logarithms and roots are taken, once a result: r sfu.
 * ArgMax and ArgMin compare: n - r. Integers count the same as iops.
 */
#include "graph/op-reduce.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

bool rg_reduce_axes_are_input(const struct rg_node *node)
{
	return node->version >= (strcmp(node->op_type, "ReduceSum") ? 18 : 13);
}

bool rg_reduce_mask(const struct rg_node *node, int rank, const int64_t *axes, int n, uint32_t *mask)
{
	bool is_input = rg_reduce_axes_are_input(node);

	*mask = 0;
	if (!is_input)
		n = rg_node_ints(node, "axes", &axes);
	if (n <= 0) {
		if (!is_input || !rg_node_int(node, "noop_with_empty_axes", 0))
			*mask = (1u << rank) - 1;
		return true;
	}
	for (int i = 0; i < n; i++) {
		int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];

		if (a < 0 || a >= rank || *mask >> a & 1)
			return false;
		*mask |= 1u << a;
	}
	return true;
}

static int infer_reduce(struct rg_infer *c, uint32_t set, struct rg_error *err)
{
	int64_t axes[RG_MAX_RANK];
	const struct rg_shape *s;
	struct rg_shape out = { 0 };
	bool keep = rg_node_int(c->node, "keepdims", 1);
	uint32_t mask;
	int n = 0, rc = rg_infer_type(c, 0, set, err);

	if (rc)
		return rc;
	s = &c->in[0]->shape;
	if (rg_reduce_axes_are_input(c->node)) {
		if (rg_infer_in(c, 1)) {
			n = rg_infer_ints(c, 1, axes, RG_MAX_RANK, err);
			if (n < 0)
				return n;
		}
	} else if (c->node->n_in > 1) {
		return rg_infer_fail(c, err, "version %d takes axes as an attribute, not as an input",
				     c->node->version);
	}
	if (!rg_reduce_mask(c->node, s->rank, axes, n, &mask))
		return rg_infer_fail(c, err, "an axis is outside of a tensor of rank %d, or named twice",
				     s->rank);
	for (int d = 0; d < s->rank; d++) {
		if (!(mask >> d & 1))
			out.dim[out.rank++] = s->dim[d];
		else if (keep)
			out.dim[out.rank++] = 1;
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

#define SET_SUM (RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_I64) | RG_BIT(RG_U32) | RG_BIT(RG_U64))

static int infer_sum(struct rg_infer *c, struct rg_error *err)
{
	return infer_reduce(c, SET_SUM, err);
}

static int infer_max(struct rg_infer *c, struct rg_error *err)
{
	return infer_reduce(c, SET_SUM | RG_SET_INT8 | (c->node->version >= 20 ? RG_BIT(RG_BOOL) : 0), err);
}

static int infer_arg(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape out;
	int axis, rc = rg_infer_type(c, 0, RG_SET_NUM, err);

	if (rc)
		return rc;
	axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), c->in[0]->shape.rank, err);
	if (axis < 0)
		return axis;
	out = c->in[0]->shape;
	if (out.dim[axis] == 0)
		return rg_infer_fail(c, err, "there is no largest or smallest of 0 elements");
	out.dim[axis] = 1;
	if (!rg_node_int(c->node, "keepdims", 1)) {
		for (int d = axis; d + 1 < out.rank; d++)
			out.dim[d] = out.dim[d + 1];
		out.rank--;
	}
	rg_infer_out(c, 0, RG_I64, &out);
	return 0;
}

/* a operations an element less b a result; d sfu an element, e a result. */
static void set_cost(const struct rg_cost_in *c, struct rg_cost *out, int a, int b, int d, int e)
{
	int64_t n = rg_shape_count(&c->in[0].shape), r = rg_shape_count(&c->out[0].shape), ops, sfu;

	ops = rg_cost_mul(n, a);
	if (ops >= 0 && r >= 0)
		ops = ops > b * r ? ops - b * r : 0;
	sfu = rg_cost_add(rg_cost_mul(n, d), rg_cost_mul(r, e));
	if (rg_dtype_is_float(c->in[0].dtype)) {
		out->flops = ops;
		out->sfu = sfu;
		out->iops = 0;
	} else {
		out->iops = rg_cost_add(ops, sfu);
		out->flops = out->sfu = 0;
	}
}

#define COST(NAME, A, B, D, E) \
	static void cost_##NAME(const struct rg_cost_in *c, struct rg_cost *out) \
	{ \
		set_cost(c, out, A, B, D, E); \
	}
COST(fold, 1, 1, 0, 0)
COST(mean, 1, 1, 0, 1)
COST(square, 2, 1, 0, 0)
COST(l2, 2, 1, 0, 1)
COST(logsumexp, 3, 1, 1, 1)

#define OP(NAME, MAX, TO, INFER, COST_FN, ...) \
	{ "", NAME, RG_KIND_REDUCE, 0, 1, MAX, 1, 1, { __VA_ARGS__ }, 1, TO, INFER, COST_FN }

const struct rg_op rg_ops_reduce[] = {
	OP("ArgMax", 1, 13, infer_arg, cost_fold, 1, 11, 12, 13),
	OP("ArgMin", 1, 13, infer_arg, cost_fold, 1, 11, 12, 13),
	OP("ReduceL1", 2, 18, infer_sum, cost_square, 1, 11, 13, 18),
	OP("ReduceL2", 2, 18, infer_sum, cost_l2, 1, 11, 13, 18),
	OP("ReduceLogSum", 2, 28, infer_sum, cost_mean, 1, 11, 13, 18, 28),
	OP("ReduceLogSumExp", 2, 28, infer_sum, cost_logsumexp, 1, 11, 13, 18, 28),
	OP("ReduceMax", 2, 20, infer_max, cost_fold, 1, 11, 12, 13, 18, 20),
	OP("ReduceMean", 2, 18, infer_sum, cost_mean, 1, 11, 13, 18),
	OP("ReduceMin", 2, 20, infer_max, cost_fold, 1, 11, 12, 13, 18, 20),
	OP("ReduceProd", 2, 18, infer_sum, cost_fold, 1, 11, 13, 18),
	OP("ReduceSum", 2, 13, infer_sum, cost_fold, 1, 11, 13),
	OP("ReduceSumSquare", 2, 18, infer_sum, cost_square, 1, 11, 13, 18),
};
RG_OP_FAMILY_END(reduce);
