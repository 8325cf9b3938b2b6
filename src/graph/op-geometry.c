/* Operators of image geometry: versions, shapes and costs. */
#include <inttypes.h>

#include "graph/geometry.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

enum { MAX_IN = 3 };

static void as_tensors(const struct rg_infer *c, struct rg_tensor *t)
{
	for (int i = 0; i < MAX_IN; i++) {
		const struct rg_value *v = rg_infer_in(c, i);

		t[i] = (struct rg_tensor){ .dtype = RG_UNDEFINED };
		if (v)
			t[i] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	}
}

static int infer_col2im(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor in[MAX_IN];
	struct rg_shape image;
	struct rg_window w;
	int rc = rg_infer_type(c, 0, RG_SET_NUM, err);

	as_tensors(c, in);
	if (rc || (rc = rg_col2im_resolve(c->node, in, &w, &image, &c->need_value, err)))
		return rc;
	rg_infer_out(c, 0, in[0].dtype, &image);
	return 0;
}

/* At most one addition for each element that comes in; the first one to a place
 * is a copy, and what falls on the padding is dropped. */
static void cost_col2im(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->in[0].shape);
	bool is_float = rg_dtype_is_float(c->in[0].dtype);

	out->flops = is_float ? n : 0;
	out->iops = is_float ? 0 : n;
	out->sfu = 0;
}

static int infer_crop_pad(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor in[MAX_IN];
	struct rg_crop_pad a;
	int rc;

	as_tensors(c, in);
	if (in[0].dtype == RG_UNDEFINED || in[1].dtype == RG_UNDEFINED)
		return rg_infer_fail(c, err, "data or shape is missing");
	rc = rg_crop_pad_resolve(c->node, in, &a, &c->need_value, err);
	if (rc)
		return rc;
	rg_infer_out(c, 0, in[0].dtype, &a.out);
	return 0;
}

static void cost_crop_pad(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape kept = c->in[0].shape;
	struct rg_crop_pad a;
	int need;

	if (rg_crop_pad_resolve(c->node, c->in, &a, &need, &err))
		return;
	for (int d = 0; d < kept.rank; d++)
		kept.dim[d] = a.count[d];
	out->read_bytes = rg_cost_add(rg_tensor_bytes(c->in[0].dtype, &kept),
				      rg_tensor_bytes(c->in[1].dtype, &c->in[1].shape));
}

/* theta: N x n x (n + 1); size: N, C and n sizes; the grid: N x sizes x n. */
static int infer_affine_grid(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *t;
	struct rg_shape s = { 0 };
	int64_t size[RG_MAX_RANK];
	int n, count, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (rc)
		return rc;
	t = &c->in[0]->shape;
	count = rg_infer_ints(c, 1, size, 5, err);
	if (count < 0)
		return count;
	n = count - 2;
	if (n < 2 || c->in[1]->shape.rank != 1 || t->rank != 3 || t->dim[1] != n || t->dim[2] != n + 1)
		return rg_infer_fail(c, err,
				     "theta must be N x 2 x 3 with a size of 4 entries, or N x 3 x 4 with 5");
	if (size[0] != t->dim[0])
		return rg_infer_fail(c, err, "the size is for a batch of %" PRId64 ", theta for %" PRId64,
				     size[0], t->dim[0]);
	s.rank = n + 2;
	s.dim[0] = size[0];
	s.dim[n + 1] = n;
	for (int d = 0; d < n; d++) {
		if (size[2 + d] < 0 || size[2 + d] > INT32_MAX)
			return rg_infer_fail(c, err, "the size has the entry %" PRId64, size[2 + d]);
		s.dim[1 + d] = size[2 + d];
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

/* n multiply-adds a coordinate; a grid's own coordinates are few and not counted. */
static void cost_affine_grid(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_shape *s = &c->out[0].shape;

	out->flops = rg_cost_mul(rg_shape_count(s), 2 * s->dim[s->rank - 1]);
	out->iops = out->sfu = 0;
}

static int infer_deform_conv(struct rg_infer *c, struct rg_error *err)
{
	uint32_t types = c->node->version < 22 ? RG_SET_FLOAT & ~RG_BIT(RG_BF16) : RG_SET_FLOAT;
	int64_t groups = rg_node_int(c->node, "offset_group", 1), channels;
	struct rg_shape out, want;
	struct rg_window w;
	int rc = rg_infer_type(c, 0, types, err);

	for (int i = 1; i < 5 && !rc; i++)
		rc = i < 3 && !rg_infer_in(c, i) ? rg_infer_fail(c, err, "input %d is missing", i) :
						   rg_infer_like(c, i, 0, err);
	if (rc || (rc = rg_window_conv(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err)))
		return rc;
	if (groups < 1 || w.c_in % groups)
		return rg_infer_fail(c, err,
				     "%" PRId64 " channels do not split into %" PRId64 " offset groups",
				     w.c_in, groups);
	rg_window_out_shape(&w, &out);
	want = out;
	channels = rg_cost_mul(groups, w.kernel_count);
	want.dim[1] = rg_cost_mul(channels, w.n);
	if (want.dim[1] < 0)
		return rg_infer_fail(c, err, "the number of offsets overflows");
	if ((rc = rg_infer_shape_is(c, 2, &want, err)))
		return rc;
	want.dim[1] = channels;
	if ((rc = rg_infer_shape_is(c, 4, &want, err)) ||
	    (rc = rg_infer_shape_is(c, 3, &(struct rg_shape){ .rank = 1, .dim = { w.c_out } }, err)))
		return rc;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

/*
 * The convolution, and before it one sample for each channel, tap and position:
 * linear interpolation over n dimensions is 2^n - 1 steps of 3 operations, the
 * mask one more.
 */
static void cost_deform_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t positions, samples, products;
	struct rg_window w;
	bool masked = c->node->n_in > 4 && c->in[4].dtype != RG_UNDEFINED;

	if (rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &w, &err))
		return;
	positions = rg_cost_mul(w.batch, rg_cost_mul(w.out_count, w.kernel_count));
	samples = rg_cost_mul(rg_cost_mul(positions, w.c_in), 3 * (((int64_t)1 << w.n) - 1) + masked);
	products = rg_cost_mul(rg_cost_mul(positions, w.c_out), rg_cost_mul(w.c_in / w.group, 2));
	out->flops = rg_cost_add(samples, products);
	if (c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED)
		out->flops = rg_cost_add(out->flops, rg_shape_count(&c->out[0].shape));
	out->iops = out->sfu = 0;
}

const struct rg_op rg_ops_geometry[] = {
	{ "", "AffineGrid", RG_KIND_OTHER, 0, 2, 2, 1, 1, { 20 }, 20, 20, infer_affine_grid, cost_affine_grid },
	{ "", "CenterCropPad", RG_KIND_MOVE, 0, 2, 2, 1, 1, { 18 }, 18, 18, infer_crop_pad, cost_crop_pad },
	{ "", "Col2Im", RG_KIND_OTHER, 0, 3, 3, 1, 1, { 18 }, 18, 18, infer_col2im, cost_col2im },
	{ "", "DeformConv", RG_KIND_CONV, 0, 3, 5, 1, 1, { 19, 22 }, 19, 22, infer_deform_conv, cost_deform_conv },
};
RG_OP_FAMILY_END(geometry);
