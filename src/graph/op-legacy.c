/*
 * Broadcasting before version 7, as shapes that numpy's rules understand.
 */
#include "graph/op-legacy.h"

#include "graph/op-types.h"

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

int rg_infer_legacy_broadcast(struct rg_infer *c, struct rg_shape *out, struct rg_error *err)
{
	struct rg_shape b;
	char ta[160], tb[160];

	if (rg_op_legacy_operand(c->node, &c->in[0]->shape, &c->in[1]->shape, &b) &&
	    rg_shape_broadcast(&c->in[0]->shape, &b, out))
		return 0;
	return rg_infer_fail(c, err, "shapes %s and %s do not broadcast", rg_shape_text(ta, &c->in[0]->shape),
			     rg_shape_text(tb, &c->in[1]->shape));
}

int rg_infer_pair(struct rg_infer *c, uint32_t types, enum rg_dtype out, struct rg_error *err)
{
	struct rg_shape s;
	int rc = rg_infer_type(c, 0, types, err);

	if (!rc)
		rc = rg_infer_type(c, 1, types, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = rg_infer_legacy_broadcast(c, &s, err);
	if (!rc)
		rg_infer_out(c, 0, out == RG_UNDEFINED ? c->in[0]->dtype : out, &s);
	return rc;
}
