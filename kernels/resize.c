/* Taps of Resize, by the formulas of the ONNX operator document. */
#include "kernels/resize.h"

#include <math.h>

/* Without antialias at most 4; with it the support of a cubic (4) is stretched by
 * in/out (and half a pixel where a size was rounded). */
int64_t rg_resize_width(const struct rg_node *node, int64_t in, int64_t out)
{
	if (!rg_node_int(node, "antialias", 0) || out <= 0 || in <= out)
		return 4;
	return 8 * (in / out + 1) + 8;
}

static double cubic(double x, double a)
{
	x = fabs(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t clamp(int64_t v, int64_t hi)
{
	return v < 0 ? 0 : v > hi ? hi : v;
}

static int64_t nearest(const struct rg_resize *r, int a, double x)
{
	switch (r->nearest) {
	case RG_NEAREST_ROUND_PREFER_FLOOR:
		return (int64_t)ceil(x - 0.5);
	case RG_NEAREST_ROUND_PREFER_CEIL:
		return (int64_t)floor(x + 0.5);
	case RG_NEAREST_FLOOR:
		return (int64_t)floor(x);
	case RG_NEAREST_CEIL:
		return (int64_t)ceil(x);
	case RG_NEAREST_SIMPLE:
		break;
	}
	return r->scale[a] < 1 ? (int64_t)ceil(x) : (int64_t)floor(x);
}

/* Taps of the coordinate that lies at x in the input. */
static int64_t interpolate(const struct rg_resize *r, int a, double x, struct rg_resize_tap *taps, int64_t width,
			   struct rg_error *err)
{
	int64_t base = (int64_t)floor(x), last = r->in[a] - 1, first, end, n = 0;
	double shrink = r->antialias && r->scale[a] < 1 ? r->scale[a] : 1, sum = 0, reach;

	reach = (r->mode == RG_RESIZE_LINEAR ? 1 : 2) / shrink;
	first = (int64_t)floor(-reach) + 1;
	end = 1 - first;
	for (int64_t i = first; i <= end; i++) {
		double t = ((double)(base + i) - x) * shrink;
		double weight = r->mode == RG_RESIZE_LINEAR ? fmax(0, 1 - fabs(t)) : cubic(t, r->cubic_a);

		if (weight == 0)
			continue;
		if (r->exclude_outside && (base + i < 0 || base + i > last))
			continue;
		if (n == width)
			return rg_error_set(err, -EINVAL, "axis %d shrinks too much for antialiasing", a);
		taps[n++] = (struct rg_resize_tap){ clamp(base + i, last), weight };
		sum += weight;
	}
	if (r->exclude_outside || r->antialias)
		for (int64_t i = 0; i < n; i++)
			taps[i].weight /= sum;
	return n;
}

int64_t rg_resize_taps(const struct rg_resize *r, int axis, int64_t i, struct rg_resize_tap *taps, int64_t width,
		       bool *outside, struct rg_error *err)
{
	double at;

	*outside = false;
	if (r->axis_kept[axis]) {
		taps[0] = (struct rg_resize_tap){ i, 1 };
		return 1;
	}
	at = rg_resize_source(r, axis, i, outside);
	if (!(fabs(at) < 1e15))
		return rg_error_set(err, -EINVAL, "coordinate %lld of axis %d maps to %g", (long long)i, axis, at);
	if (*outside)
		return 0;
	if (r->mode != RG_RESIZE_NEAREST)
		return interpolate(r, axis, at, taps, width, err);
	taps[0] = (struct rg_resize_tap){ clamp(nearest(r, axis, at), r->in[axis] - 1), 1 };
	return 1;
}
