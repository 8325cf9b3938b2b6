/* Convolutions and resizing: versions, shapes and costs. */
#include "graph/op.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/resize.h"
#include "graph/window.h"

/* a * b, or -1 for unknown: a count that overflows is not a count. */
static int64_t mul(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? -1 : r;
}

static bool in_present(const struct rg_infer *c, int i)
{
	return i < c->node->n_in && c->in[i] != NULL;
}

static int need_float(struct rg_infer *c, int input, struct rg_error *err)
{
	if (!rg_dtype_is_float(c->in[input]->dtype))
		return rg_infer_fail(c, err, "input %d has type %s, a floating-point type is needed", input,
				     rg_dtype_name(c->in[input]->dtype));
	return 0;
}

static int infer_conv_like(struct rg_infer *c, bool transpose, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	int rc;

	if ((rc = need_float(c, 0, err)))
		return rc;
	if (c->in[1]->dtype != c->in[0]->dtype)
		return rg_infer_fail(c, err, "input has type %s, weights have type %s",
				     rg_dtype_name(c->in[0]->dtype), rg_dtype_name(c->in[1]->dtype));
	rc = transpose ? rg_window_conv_transpose(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err) :
			 rg_window_conv(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err);
	if (rc)
		return rc;
	if (in_present(c, 2) && (c->in[2]->shape.rank != 1 || c->in[2]->shape.dim[0] != w.c_out ||
				 c->in[2]->dtype != c->in[0]->dtype))
		return rg_infer_fail(c, err, "the bias must be a list of %lld of type %s", (long long)w.c_out,
				     rg_dtype_name(c->in[0]->dtype));
	rg_window_out_shape(&w, &out);
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static int infer_conv(struct rg_infer *c, struct rg_error *err)
{
	return infer_conv_like(c, false, err);
}

static int infer_conv_transpose(struct rg_infer *c, struct rg_error *err)
{
	return infer_conv_like(c, true, err);
}

/* 2 * N * Cout * out * (Cin / group) * kernel, without the bias. */
static int64_t conv_ops(const struct rg_window *w)
{
	return mul(mul(mul(2, mul(w->batch, w->c_out)), w->out_count), mul(w->c_in / w->group, w->kernel_count));
}

static void cost_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;

	out->flops = -1;
	out->iops = out->sfu = 0;
	if (rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &w, &err))
		return;
	out->flops = conv_ops(&w);
	if (c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED)
		out->flops = add(out->flops, rg_shape_count(&c->out[0].shape));
}

/* Each input element meets each tap once, whatever is cut off at the edges. */
static void cost_conv_transpose(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;

	out->flops = -1;
	out->iops = out->sfu = 0;
	if (rg_window_conv_transpose(c->node, &c->in[0].shape, &c->in[1].shape, &w, &err))
		return;
	out->flops = mul(mul(mul(2, mul(w.batch, w.c_in)), w.in_count), mul(w.c_out / w.group, w.kernel_count));
	if (c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED)
		out->flops = add(out->flops, rg_shape_count(&c->out[0].shape));
}

static bool is_byte(const struct rg_value *v)
{
	return v->dtype == RG_U8 || v->dtype == RG_I8;
}

static int infer_conv_integer(struct rg_infer *c, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	int rc;

	if (!is_byte(c->in[0]) || !is_byte(c->in[1]))
		return rg_infer_fail(c, err, "input and weights must be int8 or uint8");
	if ((rc = rg_window_conv(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err)))
		return rc;
	if (in_present(c, 2) && (rg_shape_count(&c->in[2]->shape) != 1 || c->in[2]->dtype != c->in[0]->dtype))
		return rg_infer_fail(c, err, "x_zero_point must be one element of the input's type");
	if (in_present(c, 3) && (c->in[3]->dtype != c->in[1]->dtype ||
				 (rg_shape_count(&c->in[3]->shape) != 1 &&
				  rg_shape_count(&c->in[3]->shape) != w.c_out)))
		return rg_infer_fail(c, err, "w_zero_point must be one element or one an output channel, of the "
				     "weights' type");
	rg_window_out_shape(&w, &out);
	rg_infer_out(c, 0, RG_I32, &out);
	return 0;
}

static int infer_qlinear_conv(struct rg_infer *c, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	int rc, i;

	if (!is_byte(c->in[0]) || !is_byte(c->in[3]) || !is_byte(c->in[7]))
		return rg_infer_fail(c, err, "input, weights and y_zero_point must be int8 or uint8");
	if ((rc = rg_window_conv(c->node, &c->in[0]->shape, &c->in[3]->shape, &w, err)))
		return rc;
	for (i = 1; i < 8; i++) {
		int64_t n = rg_shape_count(&c->in[i]->shape);
		bool a_scale = i == 1 || i == 4 || i == 6;

		if (i == 3)
			continue;
		if (a_scale && c->in[i]->dtype != RG_F32)
			return rg_infer_fail(c, err, "input %d is a scale and must be float32", i);
		if (n != 1 && !((i == 4 || i == 5) && n == w.c_out))
			return rg_infer_fail(c, err, "input %d has %lld elements; one is needed%s", i, (long long)n,
					     i == 4 || i == 5 ? ", or one an output channel" : "");
	}
	if (c->in[2]->dtype != c->in[0]->dtype || c->in[5]->dtype != c->in[3]->dtype)
		return rg_infer_fail(c, err, "a zero point has another type than what it belongs to");
	if (in_present(c, 8) && (c->in[8]->dtype != RG_I32 || rg_shape_count(&c->in[8]->shape) != w.c_out))
		return rg_infer_fail(c, err, "the bias must be a list of %lld of type int32", (long long)w.c_out);
	rg_window_out_shape(&w, &out);
	rg_infer_out(c, 0, c->in[7]->dtype, &out);
	return 0;
}

static void cost_conv_integer(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	bool quant = !strcmp(c->node->op_type, "QLinearConv");
	struct rg_window w;

	out->iops = -1;
	out->flops = out->sfu = 0;
	if (rg_window_conv(c->node, &c->in[0].shape, &c->in[quant ? 3 : 1].shape, &w, &err)) {
		out->flops = out->sfu = -1;
		return;
	}
	out->iops = conv_ops(&w);
	if (quant) { /* bias in integers; the scale is one product an output */
		if (c->node->n_in > 8 && c->in[8].dtype != RG_UNDEFINED)
			out->iops = add(out->iops, rg_shape_count(&c->out[0].shape));
		out->flops = rg_shape_count(&c->out[0].shape);
	}
}

static void as_tensors(const struct rg_infer *c, struct rg_tensor *t, int cap)
{
	int i;

	for (i = 0; i < cap; i++) {
		memset(&t[i], 0, sizeof(t[i]));
		if (in_present(c, i)) {
			t[i].dtype = c->in[i]->dtype;
			t[i].shape = c->in[i]->shape;
			t[i].data = (void *)(uintptr_t)c->in[i]->data;
		}
	}
}

static int infer_resize(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor in[4];
	struct rg_resize r;
	struct rg_shape out;
	int rc;

	as_tensors(c, in, 4);
	rc = rg_resize_resolve(c->node, in, &r, &c->need_value, err);
	if (rc == RG_ENEED_VALUE)
		return rg_error_set(err, rc, "the output's shape depends on the value of input %d", c->need_value);
	if (rc)
		return rc;
	if (r.mode != RG_RESIZE_NEAREST && !rg_dtype_is_float(in[0].dtype) && !rg_dtype_is_int(in[0].dtype))
		return rg_infer_fail(c, err, "type %s cannot be interpolated", rg_dtype_name(in[0].dtype));
	out = rg_shape_of(r.rank, r.out);
	rg_infer_out(c, 0, in[0].dtype, &out);
	return 0;
}

/*
 * Interpolation is separable: per resized axis a linear step is 3 operations an
 * element of that axis's intermediate (a subtraction, a multiply-add), a cubic
 * one 7. Counted on the output, which bounds every intermediate when growing.
 */
static void cost_resize(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_resize r;
	int need, i;
	int64_t axes = 0;

	out->flops = out->iops = out->sfu = -1;
	if (rg_resize_resolve(c->node, c->in, &r, &need, &err))
		return;
	for (i = 0; i < r.rank; i++)
		axes += !r.axis_kept[i];
	out->iops = out->sfu = 0;
	out->flops = r.mode == RG_RESIZE_NEAREST ? 0 : mul(mul(axes, r.mode == RG_RESIZE_LINEAR ? 3 : 7),
							   rg_shape_count(&c->out[0].shape));
	if (r.antialias)
		out->flops = -1;
}

static int infer_grid_sample(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape, *g = &c->in[1]->shape;
	struct rg_shape out;
	int i;

	if (x->rank < 3 || g->rank != x->rank)
		return rg_infer_fail(c, err, "input has rank %d, grid has rank %d", x->rank, g->rank);
	if (x->rank != 4 && c->node->version < 20)
		return rg_infer_fail(c, err, "before version 20 the input must have rank 4, not %d", x->rank);
	if (g->dim[0] != x->dim[0] || g->dim[g->rank - 1] != x->rank - 2)
		return rg_infer_fail(c, err, "the grid must be N x sizes x %d with the input's N", x->rank - 2);
	out = *x;
	for (i = 2; i < x->rank; i++)
		out.dim[i] = g->dim[i - 1];
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_unknown(const struct rg_cost_in *c, struct rg_cost *out)
{
	(void)c;
	out->flops = out->iops = out->sfu = -1;
}

static int infer_roi_align(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape, *rois = &c->in[1]->shape;
	int64_t h = rg_node_int(c->node, "output_height", 1), w = rg_node_int(c->node, "output_width", 1);
	struct rg_shape out = { 4, { 0 } };

	if (x->rank != 4 || rois->rank != 2 || rois->dim[1] != 4 || c->in[2]->shape.rank != 1 ||
	    c->in[2]->shape.dim[0] != rois->dim[0])
		return rg_infer_fail(c, err, "X must be N x C x H x W, rois R x 4, batch_indices R");
	if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
		return rg_infer_fail(c, err, "the output size is %lld x %lld", (long long)h, (long long)w);
	out.dim[0] = rois->dim[0];
	out.dim[1] = x->dim[1];
	out.dim[2] = h;
	out.dim[3] = w;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

const struct rg_op rg_ops_nn[] = {
	{ "", "Conv", RG_KIND_CONV, 0, 2, 3, 1, 1, { 1, 11, 22 }, 1, 22, infer_conv, cost_conv },
	{ "", "ConvInteger", RG_KIND_CONV, 0, 2, 4, 1, 1, { 10 }, 10, 10, infer_conv_integer, cost_conv_integer },
	{ "", "ConvTranspose", RG_KIND_CONV, 0, 2, 3, 1, 1, { 1, 11, 22 }, 1, 22, infer_conv_transpose,
	  cost_conv_transpose },
	{ "", "GridSample", RG_KIND_OTHER, 0, 2, 2, 1, 1, { 16, 20, 22 }, 16, 22, infer_grid_sample, cost_unknown },
	{ "", "QLinearConv", RG_KIND_CONV, 0, 8, 9, 1, 1, { 10 }, 10, 10, infer_qlinear_conv, cost_conv_integer },
	{ "", "Resize", RG_KIND_OTHER, 0, 1, 4, 1, 1, { 10, 11, 13, 18, 19 }, 10, 19, infer_resize, cost_resize },
	{ "", "RoiAlign", RG_KIND_POOL, 0, 3, 3, 1, 1, { 10, 16, 22 }, 10, 22, infer_roi_align, cost_unknown },
	{ "", "Upsample", RG_KIND_OTHER, 0, 1, 2, 1, 1, { 1, 7, 9, 10 }, 7, 9, infer_resize, cost_resize },
};
RG_OP_FAMILY_END(nn);
