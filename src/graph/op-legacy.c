/*
 * Broadcasting before version 7, as shapes that numpy's rules understand.
 */
#include "graph/op-legacy.h"

/* b with ones behind it up to a's rank, starting at dimension `axis` of a. */
static bool place(const struct rg_shape *a, const struct rg_shape *b, int64_t axis, struct rg_shape *out)
{
	struct rg_shape s = { .rank = a->rank };

	if (axis < 0 || axis + b->rank > a->rank)
		return false;
	for (int d = 0; d < a->rank; d++) {
		bool inside = d >= axis && d < axis + b->rank;

		s.dim[d] = inside ? b->dim[d - axis] : 1;
		if (s.dim[d] != 1 && s.dim[d] != a->dim[d])
			return false;
	}
	*out = s;
	return true;
}

bool rg_op_legacy_operand(const struct rg_node *n, const struct rg_shape *a, const struct rg_shape *b,
			  struct rg_shape *out)
{
	int64_t axis;

	if (n->version >= 7) {
		*out = *b;
		return true;
	}
	if (!rg_node_int(n, "broadcast", 0)) {
		*out = *b;
		return rg_shape_equal(a, b);
	}
	if (b->rank > a->rank)
		return false;
	/* Without the attribute the last dimensions match. */
	axis = rg_node_int(n, "axis", a->rank - b->rank);
	if (axis < 0)
		axis += a->rank;
	return place(a, b, axis, out);
}

bool rg_op_legacy_slope(const struct rg_node *n, const struct rg_shape *x, const struct rg_shape *slope,
			struct rg_shape *out)
{
	if (n->version >= 7 || rg_shape_count(slope) == 1) {
		*out = *slope;
		return true;
	}
	if (slope->rank == 1)
		return place(x, slope, x->rank > 1 ? 1 : 0, out);
	*out = *slope;
	return rg_shape_broadcast(x, slope, &(struct rg_shape){ 0 });
}
