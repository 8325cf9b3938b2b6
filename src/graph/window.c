/* Resolves the geometry of convolutions and pools from attributes and shapes. */
#include "graph/window.h"

#include <string.h>

/* No attribute beyond this is meant seriously; with it, sums and products of
 * two of them fit an int64. */
#define ATTR_MAX ((int64_t)1 << 30)
#define DIM_MAX ((int64_t)1 << 31)

enum pad_mode { PAD_EXPLICIT, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID };

static int pad_mode(const struct rg_node *node, enum pad_mode *mode, struct rg_error *err)
{
	const char *s = rg_node_string(node, "auto_pad", "NOTSET");

	if (!strcmp(s, "NOTSET") || !*s)
		*mode = PAD_EXPLICIT;
	else if (!strcmp(s, "SAME_UPPER"))
		*mode = PAD_SAME_UPPER;
	else if (!strcmp(s, "SAME_LOWER"))
		*mode = PAD_SAME_LOWER;
	else if (!strcmp(s, "VALID"))
		*mode = PAD_VALID;
	else
		return rg_error_set(err, -EINVAL, "auto_pad is '%.40s'; NOTSET, SAME_UPPER, SAME_LOWER or VALID "
				    "are known", s);
	return 0;
}

/* Reads a list of exactly n integers in [lo, ATTR_MAX], or fills the default. */
static int read_ints(const struct rg_node *node, const char *name, int n, int64_t lo, int64_t dflt,
		     int64_t *out, struct rg_error *err)
{
	const int64_t *v;
	int count = rg_node_ints(node, name, &v), i;

	if (count < 0 || (count == 0 && n > 0)) {
		for (i = 0; i < n; i++)
			out[i] = dflt;
		return 0;
	}
	if (count != n)
		return rg_error_set(err, -EINVAL, "attribute %s has %d entries, %d are needed", name, count, n);
	for (i = 0; i < n; i++) {
		if (v[i] < lo || v[i] > ATTR_MAX)
			return rg_error_set(err, -EINVAL, "attribute %s[%d] is %lld, outside [%lld, %lld]", name, i,
					    (long long)v[i], (long long)lo, (long long)ATTR_MAX);
		out[i] = v[i];
	}
	return 0;
}

static int product(const int64_t *v, int n, int64_t *out, struct rg_error *err)
{
	int i;

	*out = 1;
	for (i = 0; i < n; i++)
		if (__builtin_mul_overflow(*out, v[i], out))
			return rg_error_set(err, -EOVERFLOW, "the product of the spatial sizes overflows");
	return 0;
}

static int64_t effective(const struct rg_window *w, int i)
{
	return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

static int finish(struct rg_window *w, struct rg_error *err)
{
	int rc;

	if ((rc = product(w->in, w->n, &w->in_count, err)) || (rc = product(w->out, w->n, &w->out_count, err)))
		return rc;
	return product(w->kernel, w->n, &w->kernel_count, err);
}

/* Fields that do not depend on the kind: spatial rank, sizes, strides, dilations, pads. */
static int begin(const struct rg_node *node, const struct rg_shape *x, struct rg_window *w, enum pad_mode *mode,
		 struct rg_error *err)
{
	int64_t pads[2 * RG_MAX_SPATIAL];
	int i, rc;

	memset(w, 0, sizeof(*w));
	if (x->rank < 3)
		return rg_error_set(err, -EINVAL, "the input has rank %d; N x C and at least one spatial dimension "
				    "are needed", x->rank);
	w->n = x->rank - 2;
	w->batch = x->dim[0];
	w->c_in = x->dim[1];
	w->group = 1;
	for (i = 0; i < w->n; i++) {
		w->in[i] = x->dim[2 + i];
		if (w->in[i] > DIM_MAX)
			return rg_error_set(err, -EINVAL, "spatial dimension %d is %lld: too large", i,
					    (long long)w->in[i]);
	}
	if ((rc = pad_mode(node, mode, err)))
		return rc;
	if ((rc = read_ints(node, "strides", w->n, 1, 1, w->stride, err)) ||
	    (rc = read_ints(node, "dilations", w->n, 1, 1, w->dilation, err)) ||
	    (rc = read_ints(node, "pads", 2 * w->n, 0, 0, pads, err)))
		return rc;
	/* With auto_pad the attribute pads means nothing, though some files have it. */
	for (i = 0; i < w->n && *mode == PAD_EXPLICIT; i++) {
		w->pad_begin[i] = pads[i];
		w->pad_end[i] = pads[w->n + i];
	}
	return 0;
}

/* Output sizes of a window that slides over the input (Conv, pools). */
static int slide(struct rg_window *w, enum pad_mode mode, bool ceil_mode, struct rg_error *err)
{
	int64_t span, total;
	int i;

	for (i = 0; i < w->n; i++) {
		if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
			w->out[i] = w->in[i] / w->stride[i] + (w->in[i] % w->stride[i] != 0);
			total = w->out[i] ? (w->out[i] - 1) * w->stride[i] + effective(w, i) - w->in[i] : 0;
			if (total < 0)
				total = 0;
			w->pad_begin[i] = mode == PAD_SAME_UPPER ? total / 2 : total - total / 2;
			w->pad_end[i] = total - w->pad_begin[i];
			continue;
		}
		span = w->in[i] + w->pad_begin[i] + w->pad_end[i] - effective(w, i);
		if (span < 0)
			return rg_error_set(err, -EINVAL, "spatial dimension %d: a window of %lld does not fit an input "
					    "of %lld with pads %lld and %lld", i, (long long)effective(w, i),
					    (long long)w->in[i], (long long)w->pad_begin[i],
					    (long long)w->pad_end[i]);
		w->out[i] = span / w->stride[i] + 1;
		if (ceil_mode && mode == PAD_EXPLICIT && span % w->stride[i] != 0 &&
		    w->out[i] * w->stride[i] < w->in[i] + w->pad_begin[i])
			w->out[i]++;
	}
	return finish(w, err);
}

static int read_group(const struct rg_node *node, struct rg_window *w, struct rg_error *err)
{
	w->group = rg_node_int(node, "group", 1);
	if (w->group < 1 || w->group > ATTR_MAX)
		return rg_error_set(err, -EINVAL, "attribute group is %lld", (long long)w->group);
	return 0;
}

/* The kernel's size is that of the weights; the attribute may repeat it. */
static int kernel_of_weights(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *wt,
			     struct rg_window *w, struct rg_error *err)
{
	const int64_t *v;
	int count, i;

	if (wt->rank != x->rank)
		return rg_error_set(err, -EINVAL, "the input has rank %d, the weights have rank %d", x->rank, wt->rank);
	count = rg_node_ints(node, "kernel_shape", &v);
	if (count > 0 && count != w->n)
		return rg_error_set(err, -EINVAL, "attribute kernel_shape has %d entries, %d are needed", count, w->n);
	for (i = 0; i < w->n; i++) {
		w->kernel[i] = wt->dim[2 + i];
		if (w->kernel[i] < 1 || w->kernel[i] > ATTR_MAX)
			return rg_error_set(err, -EINVAL, "the weights have a kernel size of %lld",
					    (long long)w->kernel[i]);
		if (count > 0 && v[i] != w->kernel[i])
			return rg_error_set(err, -EINVAL, "attribute kernel_shape[%d] is %lld, the weights have %lld", i,
					    (long long)v[i], (long long)w->kernel[i]);
	}
	return 0;
}

int rg_window_conv(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *wt,
		   struct rg_window *w, struct rg_error *err)
{
	enum pad_mode mode;
	int rc;

	if ((rc = begin(node, x, w, &mode, err)) || (rc = read_group(node, w, err)) ||
	    (rc = kernel_of_weights(node, x, wt, w, err)))
		return rc;
	w->c_out = wt->dim[0];
	if (w->c_in % w->group || w->c_in / w->group != wt->dim[1])
		return rg_error_set(err, -EINVAL, "the input has %lld channels, the weights want %lld in each of %lld "
				    "groups", (long long)w->c_in, (long long)wt->dim[1], (long long)w->group);
	if (w->c_out % w->group)
		return rg_error_set(err, -EINVAL, "%lld output channels do not divide into %lld groups",
				    (long long)w->c_out, (long long)w->group);
	return slide(w, mode, false, err);
}

int rg_window_conv_transpose(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *wt,
			     struct rg_window *w, struct rg_error *err)
{
	int64_t extra[RG_MAX_SPATIAL], full, total;
	const int64_t *want;
	enum pad_mode mode;
	int rc, i, n_want;

	if ((rc = begin(node, x, w, &mode, err)) || (rc = read_group(node, w, err)) ||
	    (rc = kernel_of_weights(node, x, wt, w, err)) ||
	    (rc = read_ints(node, "output_padding", w->n, 0, 0, extra, err)))
		return rc;
	if (wt->dim[0] != w->c_in || w->c_in % w->group)
		return rg_error_set(err, -EINVAL, "the input has %lld channels, the weights want %lld in %lld groups",
				    (long long)w->c_in, (long long)wt->dim[0], (long long)w->group);
	if (__builtin_mul_overflow(wt->dim[1], w->group, &w->c_out))
		return rg_error_set(err, -EOVERFLOW, "the number of output channels overflows");
	n_want = rg_node_ints(node, "output_shape", &want);
	if (n_want == w->n + 2)
		want += 2; /* some exporters write the whole shape */
	else if (n_want > 0 && n_want != w->n)
		return rg_error_set(err, -EINVAL, "attribute output_shape has %d entries, %d are needed", n_want, w->n);
	for (i = 0; i < w->n; i++) {
		full = w->in[i] ? w->stride[i] * (w->in[i] - 1) + extra[i] + effective(w, i) : 0;
		if (n_want > 0 || mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
			w->out[i] = n_want > 0 ? want[i] : w->in[i] * w->stride[i];
			if (w->out[i] < 0 || w->out[i] > DIM_MAX)
				return rg_error_set(err, -EINVAL, "output size %d is %lld", i, (long long)w->out[i]);
			total = full > w->out[i] ? full - w->out[i] : 0;
			w->pad_begin[i] = mode == PAD_SAME_UPPER ? total / 2 : total - total / 2;
			w->pad_end[i] = total - w->pad_begin[i];
			continue;
		}
		w->out[i] = full - w->pad_begin[i] - w->pad_end[i];
		if (w->out[i] < 0)
			return rg_error_set(err, -EINVAL, "spatial dimension %d: pads %lld and %lld leave nothing of an "
					    "output of %lld", i, (long long)w->pad_begin[i],
					    (long long)w->pad_end[i], (long long)full);
	}
	return finish(w, err);
}

int rg_window_pool(const struct rg_node *node, const struct rg_shape *x, struct rg_window *w,
		   struct rg_error *err)
{
	enum pad_mode mode;
	const int64_t *v;
	int rc, i;

	if ((rc = begin(node, x, w, &mode, err)))
		return rc;
	if (rg_node_ints(node, "kernel_shape", &v) <= 0)
		return rg_error_set(err, -EINVAL, "attribute kernel_shape is missing");
	if ((rc = read_ints(node, "kernel_shape", w->n, 1, 1, w->kernel, err)))
		return rc;
	w->c_out = w->c_in;
	for (i = 0; i < w->n; i++)
		if (w->pad_begin[i] >= effective(w, i) || w->pad_end[i] >= effective(w, i))
			return rg_error_set(err, -EINVAL, "spatial dimension %d: pads %lld and %lld are not smaller than "
					    "the window of %lld, which would see nothing but padding", i,
					    (long long)w->pad_begin[i], (long long)w->pad_end[i],
					    (long long)effective(w, i));
	return slide(w, mode, rg_node_int(node, "ceil_mode", 0) != 0, err);
}

void rg_window_out_shape(const struct rg_window *w, struct rg_shape *out)
{
	int i;

	out->rank = w->n + 2;
	out->dim[0] = w->batch;
	out->dim[1] = w->c_out;
	for (i = 0; i < w->n; i++)
		out->dim[2 + i] = w->out[i];
}
