/*
 * Softmax and the normalisations: types, shapes, costs.
 *
 * Costs, with n elements in r rows (or groups, channels):
 *   Softmax             3n flops (maximum, subtract, add), 2n sfu (exp, divide)
 *   LogSoftmax          4n flops, n + r sfu (exp; log)
 *   Hardmax             n flops
 *   LayerNormalization, InstanceNormalization, GroupNormalization
 *                       7n flops (mean 1, deviation 1, variance 2, times the
 *                       inverse 1, scale 1, bias 1), 4r sfu
 *   RMSNormalization    4n flops, 3r sfu
 *   BatchNormalization  2n flops (scale and shift, made once a channel: 4r
 *                       flops and 2r sfu); in training 5n (mean, variance)
 *   LpNormalization     2n flops, n sfu, and r for the square roots of p = 2
 *   MeanVarianceNormalization  5n flops, n sfu (the roots and means are not
 *                       counted: their number depends on the axes)
 *   LRN                 (2 size + 2) n flops, 2n sfu (pow, divide)
 */
#include "graph/op-norm.h"

#include "graph/op-families.h"
#include "graph/op-types.h"

static bool split(const struct rg_shape *s, int from, int to, struct rg_rows *out)
{
	out->outer = rg_shape_count_range(s, 0, from);
	out->n = rg_shape_count_range(s, from, to);
	out->inner = rg_shape_count_range(s, to, s->rank);
	return true;
}

bool rg_axis_rows(const struct rg_node *node, const struct rg_shape *s, int64_t dflt, struct rg_rows *out)
{
	int64_t axis = rg_node_int(node, "axis", dflt);

	if (axis < -s->rank || axis >= s->rank)
		return false;
	axis += axis < 0 ? s->rank : 0;
	return split(s, (int)axis, (int)axis + 1, out);
}

bool rg_softmax_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out)
{
	int64_t axis = rg_node_int(node, "axis", 1);

	if (node->version >= 13)
		return rg_axis_rows(node, s, -1, out);
	/* the axis behind the last dimension makes rows of one element */
	if (axis < -s->rank || axis > s->rank)
		return false;
	axis += axis < 0 ? s->rank : 0;
	return split(s, (int)axis, s->rank, out);
}

bool rg_layernorm_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out, int *axis)
{
	int64_t a = rg_node_int(node, "axis", -1);

	if (a < -s->rank || a >= s->rank)
		return false;
	*axis = (int)(a + (a < 0 ? s->rank : 0));
	return split(s, *axis, s->rank, out);
}

bool rg_batchnorm_trains(const struct rg_node *node)
{
	return node->version >= 14 && rg_node_int(node, "training_mode", 0) != 0;
}

/* ---- inference ---- */

static int bad_axis(struct rg_infer *c, struct rg_error *err)
{
	return rg_infer_fail(c, err, "the axis is outside of a tensor of rank %d", c->in[0]->shape.rank);
}

static int infer_softmax(struct rg_infer *c, struct rg_error *err)
{
	struct rg_rows rows;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	if (!rg_softmax_rows(c->node, &c->in[0]->shape, &rows))
		return bad_axis(c, err);
	return rg_infer_same(c, err);
}

/* Scale or bias of a layer norm: broadcasts to X without widening it. */
static int check_affine(struct rg_infer *c, int i, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	struct rg_shape both;
	char a[160], b[160];

	if (!v)
		return 0;
	if (!rg_shape_broadcast(&v->shape, &c->in[0]->shape, &both) ||
	    !rg_shape_equal(&both, &c->in[0]->shape))
		return rg_infer_fail(c, err, "input %d ('%s') of shape %s does not broadcast to %s", i,
				     v->name, rg_shape_text(a, &v->shape),
				     rg_shape_text(b, &c->in[0]->shape));
	return 0;
}

static int infer_layernorm(struct rg_infer *c, struct rg_error *err)
{
	int64_t stash = rg_node_int(c->node, "stash_type", RG_F32);
	struct rg_shape stats;
	struct rg_rows rows;
	int axis, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_FLOAT, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (rc)
		return rc;
	if (!rg_layernorm_rows(c->node, &c->in[0]->shape, &rows, &axis))
		return bad_axis(c, err);
	for (int i = 1; i <= 2 && !rc; i++)
		rc = check_affine(c, i, err);
	if (rc)
		return rc;
	if (!rg_in_set((enum rg_dtype)stash, RG_SET_FLOAT))
		return rg_infer_fail(c, err, "attribute stash_type is %lld, not a float type",
				     (long long)stash);
	stats = c->in[0]->shape;
	for (int d = axis; d < stats.rank; d++)
		stats.dim[d] = 1;
	rg_infer_out(c, 1, (enum rg_dtype)stash, &stats);
	rg_infer_out(c, 2, (enum rg_dtype)stash, &stats);
	return rg_infer_same(c, err);
}

static int infer_rmsnorm(struct rg_infer *c, struct rg_error *err)
{
	struct rg_rows rows;
	int axis, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_FLOAT, err);
	if (rc)
		return rc;
	if (!rg_layernorm_rows(c->node, &c->in[0]->shape, &rows, &axis))
		return bad_axis(c, err);
	rc = check_affine(c, 1, err);
	if (!rc)
		rg_infer_out(c, 0, c->in[1]->dtype, &c->in[0]->shape);
	return rc;
}

/* Inputs 1 to `last`: floats of `length` elements in one dimension. */
static int check_channels(struct rg_infer *c, int last, int64_t length, struct rg_error *err)
{
	struct rg_shape s = { .rank = 1, .dim = { length } };
	int rc = 0;

	for (int i = 1; i <= last && !rc; i++) {
		rc = rg_infer_type(c, i, RG_SET_FLOAT, err);
		if (!rc)
			rc = rg_infer_shape_is(c, i, &s, err);
	}
	return rc;
}

static int infer_instance(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc && c->in[0]->shape.rank < 2)
		rc = rg_infer_fail(c, err, "input 0 has no channel dimension");
	if (!rc)
		rc = check_channels(c, 2, c->in[0]->shape.dim[1], err);
	return rc ? rc : rg_infer_same(c, err);
}

static int infer_group(struct rg_infer *c, struct rg_error *err)
{
	int64_t groups = rg_node_int(c->node, "num_groups", 0), channels;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	if (c->in[0]->shape.rank < 2)
		return rg_infer_fail(c, err, "input 0 has no channel dimension");
	channels = c->in[0]->shape.dim[1];
	if (groups < 1 || channels % groups)
		return rg_infer_fail(c, err, "%lld channels do not split into num_groups = %lld",
				     (long long)channels, (long long)groups);
	rc = check_channels(c, 2, c->node->version < 21 ? groups : channels, err);
	return rc ? rc : rg_infer_same(c, err);
}

static int infer_batch(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_node *n = c->node;
	bool spatial = n->version >= 9 || rg_node_int(n, "spatial", 1);
	const struct rg_shape *x;
	struct rg_shape flat;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	if (n->version < 7 && !rg_node_int(n, "is_test", 0))
		return rg_error_set(err, RG_ENOTSUP_MODEL, "BatchNormalization-%d in training mode is not supported",
				    n->version);
	for (int i = 1; i < n->n_out; i++)
		if (n->out[i] >= 0 && (i > 2 || !rg_batchnorm_trains(n)))
			return rg_error_set(
			    err, RG_ENOTSUP_MODEL,
			    "BatchNormalization with outputs of training mode is not supported");
	x = &c->in[0]->shape;
	if (x->rank < 1)
		return rg_infer_fail(c, err, "input 0 is a scalar");
	if (spatial) {
		rc = check_channels(c, 4, x->rank > 1 ? x->dim[1] : 1, err);
	} else {
		flat = rg_shape_of(x->rank - 1, x->dim + 1);
		for (int i = 1; i <= 4 && !rc; i++) {
			rc = rg_infer_type(c, i, RG_SET_FLOAT, err);
			if (!rc)
				rc = rg_infer_shape_is(c, i, &flat, err);
		}
	}
	if (rc)
		return rc;
	rg_infer_out(c, 1, c->in[3]->dtype, &c->in[3]->shape);
	rg_infer_out(c, 2, c->in[4]->dtype, &c->in[4]->shape);
	return rg_infer_same(c, err);
}

static int infer_lp(struct rg_infer *c, struct rg_error *err)
{
	int64_t p = rg_node_int(c->node, "p", 2);
	struct rg_rows rows;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	if (p != 1 && p != 2)
		return rg_infer_fail(c, err, "attribute p is %lld, not 1 or 2", (long long)p);
	if (!rg_axis_rows(c->node, &c->in[0]->shape, -1, &rows))
		return bad_axis(c, err);
	return rg_infer_same(c, err);
}

static int infer_mvn(struct rg_infer *c, struct rg_error *err)
{
	static const int64_t dflt[] = { 0, 2, 3 };
	const int64_t *axes = dflt;
	int n, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	n = rg_node_ints(c->node, "axes", &axes);
	if (n < 0) {
		axes = dflt;
		n = 3;
	}
	for (int i = 0; i < n; i++) {
		rc = rg_infer_axis(c, axes[i], c->in[0]->shape.rank, err);
		if (rc < 0)
			return rc;
	}
	return rg_infer_same(c, err);
}

static int infer_lrn(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	if (c->in[0]->shape.rank < 2)
		return rg_infer_fail(c, err, "input 0 has no channel dimension");
	if (rg_node_int(c->node, "size", 0) < 1)
		return rg_infer_fail(c, err, "attribute size is missing or below 1");
	return rg_infer_same(c, err);
}

/* ---- costs ---- */

/* a flops and b sfu an element, d sfu a row. */
static void set_cost(const struct rg_cost_in *c, struct rg_cost *out, int64_t a, int64_t b, int64_t rows,
		     int64_t d)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	out->flops = rg_cost_mul(n, a);
	out->sfu = rg_cost_add(rg_cost_mul(n, b), rg_cost_mul(rows, d));
	out->iops = 0;
}

static int64_t row_count(const struct rg_rows *r)
{
	return rg_cost_mul(r->outer, r->inner);
}

static void cost_softmax(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 3, 2, 0, 0);
}

static void cost_logsoftmax(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_rows rows;

	if (rg_softmax_rows(c->node, &c->in[0].shape, &rows))
		set_cost(c, out, 4, 1, row_count(&rows), 1);
}

static void cost_hardmax(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 1, 0, 0, 0);
}

static void cost_layernorm(const struct rg_cost_in *c, struct rg_cost *out)
{
	bool has_bias = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED;
	struct rg_rows rows;
	int axis;

	if (rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		set_cost(c, out, has_bias ? 7 : 6, 0, row_count(&rows), 4);
}

static void cost_rmsnorm(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_rows rows;
	int axis;

	if (rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		set_cost(c, out, 4, 0, row_count(&rows), 3);
}

static void cost_instance(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 7, 0, rg_shape_count_range(&c->in[0].shape, 0, 2), 4);
}

static void cost_group(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 7, 0, rg_cost_mul(c->in[0].shape.dim[0], rg_node_int(c->node, "num_groups", 1)), 4);
}

static void cost_batch(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t channels = rg_shape_count(&c->in[1].shape);

	set_cost(c, out, rg_batchnorm_trains(c->node) ? 5 : 2, 0, channels, 2);
	out->flops = rg_cost_add(out->flops, rg_cost_mul(channels, 4));
}

static void cost_lp(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_rows rows;

	if (rg_axis_rows(c->node, &c->in[0].shape, -1, &rows))
		set_cost(c, out, 2, 1, row_count(&rows), rg_node_int(c->node, "p", 2) == 2);
}

static void cost_mvn(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, 5, 1, 0, 0);
}

static void cost_lrn(const struct rg_cost_in *c, struct rg_cost *out)
{
	set_cost(c, out, rg_cost_add(rg_cost_mul(2, rg_node_int(c->node, "size", 1)), 2), 2, 0, 0);
}

#define OP(NAME, MIN, MAX, MAX_OUT, FROM, TO, INFER, COST_FN, ...) \
	{ "", NAME, RG_KIND_NORM, 0, MIN, MAX, 1, MAX_OUT, { __VA_ARGS__ }, FROM, TO, INFER, COST_FN }

const struct rg_op rg_ops_norm[] = {
	OP("BatchNormalization", 5, 5, 5, 1, 15, infer_batch, cost_batch, 1, 6, 7, 9, 14, 15),
	OP("GroupNormalization", 3, 3, 1, 18, 21, infer_group, cost_group, 18, 21),
	OP("Hardmax", 1, 1, 1, 1, 13, infer_softmax, cost_hardmax, 1, 11, 13),
	OP("InstanceNormalization", 3, 3, 1, 1, 22, infer_instance, cost_instance, 1, 6, 22),
	OP("LRN", 1, 1, 1, 1, 13, infer_lrn, cost_lrn, 1, 13),
	/* version 1 is ONNX Runtime's, in models of any opset that it optimised */
	OP("LayerNormalization", 2, 3, 3, 1, 17, infer_layernorm, cost_layernorm, 1, 17),
	OP("LogSoftmax", 1, 1, 1, 1, 13, infer_softmax, cost_logsoftmax, 1, 11, 13),
	OP("LpNormalization", 1, 1, 1, 1, 22, infer_lp, cost_lp, 1, 22),
	OP("MeanVarianceNormalization", 1, 1, 1, 9, 13, infer_mvn, cost_mvn, 9, 13),
	OP("RMSNormalization", 2, 2, 1, 23, 23, infer_rmsnorm, cost_rmsnorm, 23),
	OP("Softmax", 1, 1, 1, 1, 13, infer_softmax, cost_softmax, 1, 11, 13),
};
RG_OP_FAMILY_END(norm);
