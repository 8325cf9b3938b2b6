/* Pooling: versions, shapes and costs. */
#include "graph/op.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/window.h"

static int64_t mul(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

static int infer_pool(struct rg_infer *c, struct rg_error *err)
{
	bool max = !strcmp(c->node->op_type, "MaxPool");
	enum rg_dtype t = c->in[0]->dtype;
	struct rg_window w;
	struct rg_shape out;
	int rc;

	if (!rg_dtype_is_float(t) && !(max && (t == RG_I8 || t == RG_U8)))
		return rg_infer_fail(c, err, "type %s cannot be pooled", rg_dtype_name(t));
	if ((rc = rg_window_pool(c->node, &c->in[0]->shape, &w, err)))
		return rc;
	rg_window_out_shape(&w, &out);
	rg_infer_out(c, 0, t, &out);
	if (max && c->node->n_out > 1)
		rg_infer_out(c, 1, RG_I64, &out);
	return 0;
}

static int infer_global(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape;
	struct rg_shape out = *x;
	int i;

	if (x->rank < 2)
		return rg_infer_fail(c, err, "the input has rank %d, N x C at least is needed", x->rank);
	if (!rg_dtype_is_float(c->in[0]->dtype))
		return rg_infer_fail(c, err, "type %s cannot be pooled", rg_dtype_name(c->in[0]->dtype));
	for (i = 2; i < x->rank; i++)
		out.dim[i] = 1;
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

/* out = (in - 1) * stride - pads + kernel, unless the third input says it. */
static int infer_max_unpool(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape;
	const int64_t *kernel, *stride, *pads;
	int64_t want[RG_MAX_RANK], len;
	struct rg_shape out = *x;
	int n = x->rank - 2, n_kernel, n_stride, n_pads, i, count;

	if (n < 1 || !rg_shape_equal(x, &c->in[1]->shape) || c->in[1]->dtype != RG_I64)
		return rg_infer_fail(c, err, "X and I must have the same shape N x C x sizes, I of type int64");
	if (c->node->n_in > 2 && c->in[2]) {
		count = rg_infer_ints(c, 2, want, RG_MAX_RANK, err);
		if (count < 0)
			return count;
		if (count != x->rank || want[0] != x->dim[0] || want[1] != x->dim[1])
			return rg_infer_fail(c, err, "output_shape does not go with the input's rank, N and C");
		for (i = 0; i < n; i++)
			if (want[2 + i] < 0)
				return rg_infer_fail(c, err, "output_shape has %lld", (long long)want[2 + i]);
		out = rg_shape_of(count, want);
		rg_infer_out(c, 0, c->in[0]->dtype, &out);
		return 0;
	}
	n_kernel = rg_node_ints(c->node, "kernel_shape", &kernel);
	n_stride = rg_node_ints(c->node, "strides", &stride);
	n_pads = rg_node_ints(c->node, "pads", &pads);
	if (n_kernel != n || (n_stride > 0 && n_stride != n) || (n_pads > 0 && n_pads != 2 * n))
		return rg_infer_fail(c, err, "kernel_shape, strides or pads have the wrong length for rank %d",
				     x->rank);
	for (i = 0; i < n; i++) {
		int64_t s = n_stride > 0 ? stride[i] : 1, cut = 0;

		if (kernel[i] < 1 || kernel[i] > INT32_MAX || s < 1 || s > INT32_MAX)
			return rg_infer_fail(c, err, "kernel or stride %d is out of range", i);
		if (n_pads > 0) {
			if (pads[i] < 0 || pads[i] > INT32_MAX || pads[n + i] < 0 || pads[n + i] > INT32_MAX)
				return rg_infer_fail(c, err, "pad %d is out of range", i);
			cut = pads[i] + pads[n + i];
		}
		if (__builtin_mul_overflow(x->dim[2 + i] - 1, s, &len) ||
		    __builtin_add_overflow(len, kernel[i] - cut, &len) || len < 0)
			return rg_infer_fail(c, err, "output size %d is out of range", i);
		out.dim[2 + i] = len;
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static int infer_max_roi_pool(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0]->shape, *rois = &c->in[1]->shape;
	struct rg_shape out = { 4, { 0 } };
	const int64_t *size;

	if (x->rank != 4 || rois->rank != 2 || rois->dim[1] != 5)
		return rg_infer_fail(c, err, "X must be N x C x H x W and rois R x 5");
	if (rg_node_ints(c->node, "pooled_shape", &size) != 2 || size[0] < 1 || size[1] < 1 ||
	    size[0] > INT32_MAX || size[1] > INT32_MAX)
		return rg_infer_fail(c, err, "attribute pooled_shape must be two positive sizes");
	out.dim[0] = rois->dim[0];
	out.dim[1] = x->dim[1];
	out.dim[2] = size[0];
	out.dim[3] = size[1];
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

/*
 * One operation a tap (a comparison, an addition), padding left out of account;
 * an average divides once an output. Lp raises to a power and takes a root,
 * whose cost depends on p: p 1 and 2 are counted, others unknown.
 */
static void count_taps(const struct rg_cost_in *c, int64_t taps, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->out[0].shape), p = rg_node_int(c->node, "p", 2);
	bool is_float = rg_dtype_is_float(c->in[0].dtype);
	const char *name = c->node->op_type;

	out->flops = is_float ? mul(n, taps) : 0;
	out->iops = is_float ? 0 : mul(n, taps);
	out->sfu = 0;
	if (strstr(name, "Average"))
		out->sfu = n;
	if (strstr(name, "Lp")) {
		out->flops = p == 1 || p == 2 ? mul(out->flops, 2) : -1;
		out->sfu = p == 1 ? 0 : p == 2 ? n : -1;
	}
}

static void cost_pool(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;

	if (rg_window_pool(c->node, &c->in[0].shape, &w, &err)) {
		out->flops = out->iops = out->sfu = -1;
		return;
	}
	count_taps(c, w.kernel_count, out);
}

static void cost_global(const struct rg_cost_in *c, struct rg_cost *out)
{
	count_taps(c, rg_shape_count_range(&c->in[0].shape, 2, c->in[0].shape.rank), out);
}

static void cost_move(const struct rg_cost_in *c, struct rg_cost *out)
{
	(void)c;
	out->flops = out->iops = out->sfu = 0;
}

static void cost_unknown(const struct rg_cost_in *c, struct rg_cost *out)
{
	(void)c;
	out->flops = out->iops = out->sfu = -1;
}

/* Versions 1 of LpPool and GlobalLpPool have a float p and are not supported. */
const struct rg_op rg_ops_pool[] = {
	{ "", "AveragePool", RG_KIND_POOL, 0, 1, 1, 1, 1, { 1, 7, 10, 11, 19, 22 }, 1, 22, infer_pool, cost_pool },
	{ "", "GlobalAveragePool", RG_KIND_POOL, 0, 1, 1, 1, 1, { 1, 22 }, 1, 22, infer_global, cost_global },
	{ "", "GlobalLpPool", RG_KIND_POOL, 0, 1, 1, 1, 1, { 1, 2, 22 }, 2, 22, infer_global, cost_global },
	{ "", "GlobalMaxPool", RG_KIND_POOL, 0, 1, 1, 1, 1, { 1, 22 }, 1, 22, infer_global, cost_global },
	{ "", "LpPool", RG_KIND_POOL, 0, 1, 1, 1, 1, { 1, 2, 11, 18, 22 }, 2, 22, infer_pool, cost_pool },
	{ "", "MaxPool", RG_KIND_POOL, 0, 1, 1, 1, 2, { 1, 8, 10, 11, 12, 22 }, 1, 22, infer_pool, cost_pool },
	{ "", "MaxRoiPool", RG_KIND_POOL, 0, 2, 2, 1, 1, { 1, 22 }, 1, 22, infer_max_roi_pool, cost_unknown },
	{ "", "MaxUnpool", RG_KIND_POOL, 0, 2, 3, 1, 1, { 9, 11, 22 }, 9, 22, infer_max_unpool, cost_move },
};
RG_OP_FAMILY_END(pool);
