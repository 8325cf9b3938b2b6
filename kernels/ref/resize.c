/*
 * Resize and Upsample. Interpolation is a weighted sum per axis: the taps of
 * every output coordinate of every axis are tabled first (in scratch), then
 * each output element sums over the product of its axes' taps, in double.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/resize.h"
#include "kernels/tables.h"

struct axis {
	struct rg_resize_tap *taps; /* out * width entries */
	int64_t *counts; /* out entries; -1: the extrapolation value */
	int64_t width; /* room for the taps of one coordinate */
};

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	size_t total = 0;

	for (int a = 0; a < c->in[0].shape.rank; a++) {
		int64_t out = c->out[0].shape.dim[a];
		size_t width = (size_t)rg_resize_width(c->node, c->in[0].shape.dim[a], out);

		total += (size_t)out * (width * sizeof(struct rg_resize_tap) + sizeof(int64_t));
	}
	return total;
}

static int make_axis(const struct rg_resize *r, int a, struct axis *x, struct rg_error *err)
{
	for (int64_t i = 0; i < r->out[a]; i++) {
		bool outside;

		x->counts[i] = rg_resize_taps(r, a, i, x->taps + i * x->width, x->width, &outside, err);
		if (x->counts[i] < 0)
			return (int)x->counts[i];
		if (outside)
			x->counts[i] = -1;
	}
	return 0;
}

/* Sum over the product of the taps of axes [a, rank). */
static double sum_taps(const struct rg_call *c, const struct axis *axes, const int64_t *o, int a, int64_t at)
{
	const struct axis *x = &axes[a];
	const struct rg_resize_tap *taps;
	double sum = 0;

	if (a == c->in[0].shape.rank)
		return rg_ref_get(&c->in[0], at);
	taps = x->taps + o[a] * x->width;
	for (int64_t i = 0; i < x->counts[o[a]]; i++)
		sum += taps[i].weight * sum_taps(c, axes, o, a + 1, at * c->in[0].shape.dim[a] + taps[i].at);
	return sum;
}

static void copy_element(const struct rg_call *c, const struct axis *axes, const int64_t *o, int64_t to)
{
	size_t size = rg_dtype_bytes(c->in[0].dtype);
	int64_t at = 0;

	for (int a = 0; a < c->in[0].shape.rank; a++)
		at = at * c->in[0].shape.dim[a] + axes[a].taps[o[a] * axes[a].width].at;
	memcpy((char *)c->out[0].data + (size_t)to * size, (const char *)c->in[0].data + (size_t)at * size, size);
}

static int64_t int_limit(enum rg_dtype t, bool low)
{
	switch (t) {
	case RG_I8: return low ? INT8_MIN : INT8_MAX;
	case RG_U8: return low ? 0 : UINT8_MAX;
	case RG_I16: return low ? INT16_MIN : INT16_MAX;
	case RG_U16: return low ? 0 : UINT16_MAX;
	case RG_I32: return low ? INT32_MIN : INT32_MAX;
	default: return low ? 0 : UINT32_MAX;
	}
}

static double to_type(enum rg_dtype t, double v)
{
	double lo, hi;

	if (rg_dtype_is_float(t))
		return v;
	lo = (double)int_limit(t, true);
	hi = (double)int_limit(t, false);
	return v > hi ? hi : v >= lo ? v : lo;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct axis axes[RG_MAX_RANK + 1];
	int64_t o[RG_MAX_RANK] = { 0 }, n = rg_shape_count(&c->out[0].shape);
	enum rg_dtype t = c->out[0].dtype;
	char *scratch = c->scratch;
	struct rg_resize r;
	int need, rc = rg_resize_resolve(c->node, c->in, &r, &need, err);

	if (rc)
		return rc;
	memset(axes, 0, sizeof(axes));
	for (int a = 0; a < r.rank; a++) {
		if (r.out[a] != c->out[0].shape.dim[a])
			return rg_error_set(err, -EINVAL, "scales or sizes changed since the plan was made");
		axes[a].width = rg_resize_width(c->node, r.in[a], r.out[a]);
		axes[a].taps = (struct rg_resize_tap *)scratch;
		scratch += (size_t)r.out[a] * (size_t)axes[a].width * sizeof(struct rg_resize_tap);
		axes[a].counts = (int64_t *)scratch;
		scratch += (size_t)r.out[a] * sizeof(int64_t);
		if ((rc = make_axis(&r, a, &axes[a], err)))
			return rc;
	}
	for (int64_t i = 0; i < n; i++) {
		bool outside = false;

		for (int a = 0; a < r.rank; a++)
			outside = outside || axes[a].counts[o[a]] < 0;
		if (outside)
			rg_ref_set(&c->out[0], i, to_type(t, r.extrapolation_value));
		else if (r.mode == RG_RESIZE_NEAREST)
			copy_element(c, axes, o, i);
		else
			rg_ref_set(&c->out[0], i, to_type(t, sum_taps(c, axes, o, 0, 0)));
		rg_odometer_next(r.rank, r.out, o);
	}
	return 0;
}

/* Nearest copies any whole-byte type; interpolation and the extrapolation value
 * need arithmetic that 64-bit integers would lose bits in. */
static bool supports(const struct rg_call *c)
{
	uint32_t arithmetic = (RG_SET_NUM & ~(RG_BIT(RG_I64) | RG_BIT(RG_U64)));
	bool copies = !strcmp(rg_node_string(c->node, "mode", "nearest"), "nearest") &&
		      strcmp(rg_node_string(c->node, "coordinate_transformation_mode", ""), "tf_crop_and_resize");

	return copies ? rg_dtype_bytes(c->in[0].dtype) > 0 : rg_in_set(c->in[0].dtype, arithmetic);
}

#define K(OP) \
	{ .op_type = OP, .domain = "", .name = "ref", .supports = supports, .scratch_bytes = scratch_bytes, .run = run }
static const struct rg_kernel kernels[] = {
	K("Resize"),
	K("Upsample"),
};
RG_KERNEL_TABLE(rg_kernels_ref_resize, kernels);
