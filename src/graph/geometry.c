/* Resolves Col2Im and CenterCropPad; see geometry.h. */
#include "graph/geometry.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op-args.h"

#define DIM_MAX ((int64_t)1 << 40)

/* Sizes that an input lists. */
static int sizes(const struct rg_node *n, const struct rg_tensor *in, int i, int64_t least, int64_t *v, int cap,
		 int *need_value, struct rg_error *err)
{
	int count = rg_args_ints(&in[i], v, cap);

	if (count == RG_ENEED_VALUE) {
		*need_value = i;
		return rg_error_set(err, count, "%s: the output shape depends on the value of input %d",
				    n->op_type, i);
	}
	if (count < 0 || in[i].shape.rank != 1)
		return rg_error_set(err, -EINVAL, "%s: input %d must list at most %d sizes", n->op_type, i, cap);
	for (int k = 0; k < count; k++)
		if (v[k] < least || v[k] > DIM_MAX)
			return rg_error_set(err, -EINVAL, "%s: input %d has the size %" PRId64, n->op_type, i,
					    v[k]);
	return count;
}

static int attr_ints(const struct rg_node *n, const char *name, int count, int64_t least, int64_t *v,
		     struct rg_error *err)
{
	const int64_t *list;
	int have = rg_node_ints(n, name, &list);

	for (int i = 0; i < count; i++)
		v[i] = have < 0 ? least : i < have ? list[i] : -1;
	if (have >= 0 && have != count)
		return rg_error_set(err, -EINVAL, "%s: attribute %s has %d entries, not %d", n->op_type, name,
				    have, count);
	for (int i = 0; i < count; i++)
		if (v[i] < least || v[i] > DIM_MAX)
			return rg_error_set(err, -EINVAL, "%s: attribute %s has %" PRId64, n->op_type, name,
					    v[i]);
	return 0;
}

/* Positions of the window along dimension d of the image. */
static int slide(const struct rg_node *n, struct rg_window *w, int d, struct rg_error *err)
{
	int64_t span, room = w->in[d] + w->pad_begin[d] + w->pad_end[d];

	if (__builtin_mul_overflow(w->kernel[d] - 1, w->dilation[d], &span) || span >= room)
		return rg_error_set(err, -EINVAL, "%s: the block does not fit dimension %d of the image",
				    n->op_type, d);
	w->out[d] = (room - span - 1) / w->stride[d] + 1;
	if (__builtin_mul_overflow(w->in_count, w->in[d], &w->in_count) ||
	    __builtin_mul_overflow(w->out_count, w->out[d], &w->out_count) ||
	    __builtin_mul_overflow(w->kernel_count, w->kernel[d], &w->kernel_count))
		return rg_error_set(err, -EOVERFLOW, "%s: the sizes overflow", n->op_type);
	return 0;
}

int rg_col2im_resolve(const struct rg_node *n, const struct rg_tensor *in, struct rg_window *w,
		      struct rg_shape *image, int *need_value, struct rg_error *err)
{
	const struct rg_shape *s = &in[0].shape;
	int64_t pads[2 * RG_MAX_SPATIAL];
	int count, rc;

	memset(w, 0, sizeof(*w));
	if (s->rank != 3)
		return rg_error_set(err, -EINVAL, "%s: the input must be N x channels * block x blocks",
				    n->op_type);
	w->n = sizes(n, in, 1, 0, w->in, RG_MAX_SPATIAL, need_value, err);
	if (w->n < 0)
		return w->n;
	count = sizes(n, in, 2, 1, w->kernel, RG_MAX_SPATIAL, need_value, err);
	if (count < 0)
		return count;
	if (count != w->n || count == 0)
		return rg_error_set(err, -EINVAL, "%s: an image of %d dimensions and a block of %d",
				    n->op_type, w->n, count);
	if ((rc = attr_ints(n, "strides", w->n, 1, w->stride, err)) ||
	    (rc = attr_ints(n, "dilations", w->n, 1, w->dilation, err)) ||
	    (rc = attr_ints(n, "pads", 2 * w->n, 0, pads, err)))
		return rc;
	w->batch = s->dim[0];
	w->group = 1;
	w->in_count = w->out_count = w->kernel_count = 1;
	for (int d = 0; d < w->n; d++) {
		w->pad_begin[d] = pads[d];
		w->pad_end[d] = pads[w->n + d];
		if ((rc = slide(n, w, d, err)))
			return rc;
	}
	if (s->dim[1] % w->kernel_count || s->dim[2] != w->out_count)
		return rg_error_set(err, -EINVAL,
				    "%s: %" PRId64 " x %" PRId64 " columns do not make blocks of %" PRId64
				    " elements at %" PRId64 " positions",
				    n->op_type, s->dim[1], s->dim[2], w->kernel_count, w->out_count);
	w->c_in = w->c_out = s->dim[1] / w->kernel_count;
	*image = (struct rg_shape){ .rank = 2 + w->n, .dim = { w->batch, w->c_in } };
	memcpy(image->dim + 2, w->in, (size_t)w->n * sizeof(*w->in));
	return 0;
}

int rg_crop_pad_resolve(const struct rg_node *n, const struct rg_tensor *in, struct rg_crop_pad *a,
			int *need_value, struct rg_error *err)
{
	const struct rg_shape *s = &in[0].shape;
	int64_t want[RG_MAX_RANK];
	const int64_t *axes = NULL;
	int n_axes = rg_node_ints(n, "axes", &axes),
	    count = sizes(n, in, 1, 0, want, RG_MAX_RANK, need_value, err);
	unsigned seen = 0;

	memset(a, 0, sizeof(*a));
	if (count < 0)
		return count;
	if (count != (n_axes < 0 ? s->rank : n_axes))
		return rg_error_set(err, -EINVAL, "%s: %d sizes for %d axes", n->op_type, count,
				    n_axes < 0 ? s->rank : n_axes);
	a->out = *s;
	memcpy(a->count, s->dim, sizeof(a->count));
	for (int i = 0; i < count; i++) {
		int d = rg_args_axis(n_axes < 0 ? i : axes[i], s->rank);

		if (d < 0 || seen >> d & 1)
			return rg_error_set(err, -EINVAL,
					    "%s: axis %" PRId64
					    " is outside of a tensor of rank %d, or there "
					    "twice",
					    n->op_type, n_axes < 0 ? i : axes[i], s->rank);
		seen |= 1u << d;
		a->out.dim[d] = want[i];
		a->count[d] = want[i] < s->dim[d] ? want[i] : s->dim[d];
		a->from[d] = (s->dim[d] - a->count[d]) / 2;
		a->to[d] = (want[i] - a->count[d]) / 2;
	}
	return 0;
}
