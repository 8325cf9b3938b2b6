/* Resolves Resize and Upsample: scales, sizes, region, modes, coordinates. */
#include "graph/resize.h"

#include <math.h>
#include <string.h>

#define DIM_MAX ((int64_t)1 << 40)

static int choose(const struct rg_node *node, const char *attr, const char *dflt, const char *const *names,
		  int *out, struct rg_error *err)
{
	const char *s = rg_node_string(node, attr, dflt);
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(names[i], s)) {
			*out = i;
			return 0;
		}
	return rg_error_set(err, -EINVAL, "attribute %s is '%.40s', which the operator does not have", attr, s);
}

static int read_modes(const struct rg_node *node, struct rg_resize *r, struct rg_error *err)
{
	static const char *const modes[] = { "nearest", "linear", "cubic", "bilinear", NULL };
	static const char *const coords[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
					      "align_corners", "asymmetric", "tf_half_pixel_for_nn",
					      "tf_crop_and_resize", NULL };
	static const char *const nearest[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
	bool old = !strcmp(node->op_type, "Upsample") || node->version < 11;
	int mode = 0, coord = RG_COORD_ASYMMETRIC, near = RG_NEAREST_SIMPLE, rc;

	if ((rc = choose(node, "mode", "nearest", modes, &mode, err)))
		return rc;
	if (mode == 3)
		mode = RG_RESIZE_LINEAR;
	if (old && mode == RG_RESIZE_CUBIC)
		return rg_error_set(err, -EINVAL, "cubic mode exists from Resize 11 on");
	if (!old && ((rc = choose(node, "coordinate_transformation_mode", "half_pixel", coords, &coord, err)) ||
		     (rc = choose(node, "nearest_mode", "round_prefer_floor", nearest, &near, err))))
		return rc;
	r->mode = (enum rg_resize_mode)mode;
	r->coord = (enum rg_resize_coord)coord;
	r->nearest = (enum rg_resize_nearest)near;
	r->cubic_a = (double)rg_node_float(node, "cubic_coeff_a", -0.75f);
	r->extrapolation_value = (double)rg_node_float(node, "extrapolation_value", 0.0f);
	r->exclude_outside = rg_node_int(node, "exclude_outside", 0) != 0;
	r->antialias = rg_node_int(node, "antialias", 0) != 0 && r->mode != RG_RESIZE_NEAREST;
	if (r->antialias && r->coord == RG_COORD_TF_CROP_AND_RESIZE) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "antialias together with tf_crop_and_resize is not supported");
		return rg_error_hint(err, "resize outside the model, or without antialias");
	}
	return 0;
}

/* The axes that scales, sizes and roi speak of; all of them by default. */
static int read_axes(const struct rg_node *node, const struct rg_resize *r, int *axes, int *count,
		     struct rg_error *err)
{
	bool seen[RG_MAX_RANK] = { false };
	const int64_t *v;
	int n = rg_node_ints(node, "axes", &v), i;

	*count = n < 0 ? r->rank : n;
	if (*count > r->rank)
		return rg_error_set(err, -EINVAL, "attribute axes has %d entries for rank %d", n, r->rank);
	for (i = 0; i < *count; i++) {
		int64_t a = n < 0 ? i : v[i];

		if (a < -r->rank || a >= r->rank)
			return rg_error_set(err, -EINVAL, "attribute axes has %lld for rank %d", (long long)a, r->rank);
		a += a < 0 ? r->rank : 0;
		if (seen[a])
			return rg_error_set(err, -EINVAL, "attribute axes has axis %lld twice", (long long)a);
		seen[a] = true;
		axes[i] = (int)a;
	}
	return 0;
}

static bool present(const struct rg_node *node, const struct rg_tensor *in, int i)
{
	return i < node->n_in && in[i].dtype != RG_UNDEFINED && rg_shape_count(&in[i].shape) > 0;
}

static int read_numbers(const struct rg_tensor *t, int count, double *out, struct rg_error *err)
{
	int i;

	if (rg_shape_count(&t->shape) != count)
		return rg_error_set(err, -EINVAL, "an input has %lld entries, %d are needed",
				    (long long)rg_shape_count(&t->shape), count);
	for (i = 0; i < count; i++) {
		switch (t->dtype) {
		case RG_F32: out[i] = (double)((const float *)t->data)[i]; break;
		case RG_F64: out[i] = ((const double *)t->data)[i]; break;
		case RG_F16: out[i] = (double)rg_f16_to_f32(((const uint16_t *)t->data)[i]); break;
		case RG_I64: out[i] = (double)((const int64_t *)t->data)[i]; break;
		default:
			return rg_error_set(err, -EINVAL, "an input has type %s", rg_dtype_name(t->dtype));
		}
		if (!isfinite(out[i]))
			return rg_error_set(err, -EINVAL, "a scale, size or region is not finite");
	}
	return 0;
}

static int apply_scales(struct rg_resize *r, const int *axes, int n, const double *scales, struct rg_error *err)
{
	int i;

	for (i = 0; i < n; i++) {
		int a = axes[i];
		double len = (double)r->in[a];

		if (!(scales[i] > 0))
			return rg_error_set(err, -EINVAL, "the scale of axis %d is %g; it must be positive", a, scales[i]);
		if (r->coord == RG_COORD_TF_CROP_AND_RESIZE)
			len *= r->roi_end[a] - r->roi_begin[a];
		/* In float, as exporters computed the scale: 0.6f * 5 is 3, not 3.0000001. */
		len = (double)floorf((float)len * (float)scales[i]);
		if (!(len >= 0 && len <= (double)DIM_MAX))
			return rg_error_set(err, -EINVAL, "axis %d would get a size of %g", a, len);
		r->scale[a] = scales[i];
		r->out[a] = (int64_t)len;
	}
	return 0;
}

static int apply_sizes(const struct rg_node *node, struct rg_resize *r, const int *axes, int n, const double *sizes,
		       struct rg_error *err)
{
	static const char *const policies[] = { "stretch", "not_larger", "not_smaller", NULL };
	int policy = 0, i, rc;
	double one = NAN;

	if ((rc = choose(node, "keep_aspect_ratio_policy", "stretch", policies, &policy, err)))
		return rc;
	for (i = 0; i < n; i++) {
		int a = axes[i];
		double s;

		if (!(sizes[i] >= 0 && sizes[i] <= (double)DIM_MAX))
			return rg_error_set(err, -EINVAL, "the size of axis %d is %g", a, sizes[i]);
		if (r->in[a] == 0 && sizes[i] > 0)
			return rg_error_set(err, -EINVAL, "axis %d has size 0 and cannot be resized to %g", a, sizes[i]);
		s = r->in[a] ? sizes[i] / (double)r->in[a] : 1.0;
		r->scale[a] = s;
		r->out[a] = (int64_t)sizes[i];
		if (isnan(one) || (policy == 1 ? s < one : s > one))
			one = s;
	}
	for (i = 0; i < n && policy != 0; i++) {
		r->scale[axes[i]] = one;
		r->out[axes[i]] = (int64_t)floor((double)r->in[axes[i]] * one + 0.5);
	}
	return 0;
}

int rg_resize_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_resize *r,
		      int *need_value, struct rg_error *err)
{
	bool old = !strcmp(node->op_type, "Upsample") || node->version < 11;
	int i_scales = old ? 1 : 2, i_sizes = old ? -1 : 3, i_roi = old ? -1 : 1;
	double v[2 * RG_MAX_RANK];
	int axes[RG_MAX_RANK], n, i, rc;

	memset(r, 0, sizeof(*r));
	r->rank = in[0].shape.rank;
	for (i = 0; i < r->rank; i++) {
		r->in[i] = r->out[i] = in[0].shape.dim[i];
		r->scale[i] = 1;
		r->roi_end[i] = 1;
	}
	if ((rc = read_modes(node, r, err)) || (rc = read_axes(node, r, axes, &n, err)))
		return rc;
	if (r->coord == RG_COORD_TF_CROP_AND_RESIZE) {
		if (!present(node, in, i_roi))
			return rg_error_set(err, -EINVAL, "tf_crop_and_resize needs the input roi");
		if (!in[i_roi].data) {
			*need_value = i_roi;
			return RG_ENEED_VALUE;
		}
		if ((rc = read_numbers(&in[i_roi], 2 * n, v, err)))
			return rc;
		for (i = 0; i < n; i++) {
			r->roi_begin[axes[i]] = v[i];
			r->roi_end[axes[i]] = v[n + i];
		}
	}
	if (!strcmp(node->op_type, "Upsample") && node->version < 9) {
		const float *f;

		if (rg_node_floats(node, "scales", &f) != n)
			return rg_error_set(err, -EINVAL, "attribute scales must have %d entries", n);
		for (i = 0; i < n; i++)
			v[i] = (double)f[i];
		rc = apply_scales(r, axes, n, v, err);
	} else if (i_sizes > 0 && present(node, in, i_sizes)) {
		if (!in[i_sizes].data) {
			*need_value = i_sizes;
			return RG_ENEED_VALUE;
		}
		if (!(rc = read_numbers(&in[i_sizes], n, v, err)))
			rc = apply_sizes(node, r, axes, n, v, err);
	} else if (present(node, in, i_scales)) {
		if (!in[i_scales].data) {
			*need_value = i_scales;
			return RG_ENEED_VALUE;
		}
		if (!(rc = read_numbers(&in[i_scales], n, v, err)))
			rc = apply_scales(r, axes, n, v, err);
	} else {
		return rg_error_set(err, -EINVAL, "neither scales nor sizes are given");
	}
	for (i = 0; i < r->rank && !rc; i++) {
		r->axis_kept[i] = r->in[i] == r->out[i] && r->scale[i] == 1 && r->roi_begin[i] == 0 &&
				  r->roi_end[i] == 1;
		if (r->in[i] == 0 && r->out[i] > 0)
			rc = rg_error_set(err, -EINVAL, "axis %d has size 0 and cannot be resized", i);
	}
	return rc;
}

double rg_resize_source(const struct rg_resize *r, int a, int64_t x, bool *outside)
{
	double in = (double)r->in[a], out = r->scale[a] * in, s = r->scale[a], at;

	*outside = false;
	switch (r->coord) {
	case RG_COORD_ALIGN_CORNERS:
		return out == 1 ? 0 : (double)x * (in - 1) / (out - 1);
	case RG_COORD_ASYMMETRIC:
		return (double)x / s;
	case RG_COORD_TF_HALF_PIXEL_FOR_NN:
		return ((double)x + 0.5) / s;
	case RG_COORD_PYTORCH_HALF_PIXEL:
		return r->out[a] > 1 ? ((double)x + 0.5) / s - 0.5 : 0;
	case RG_COORD_HALF_PIXEL_SYMMETRIC:
		return in / 2 * (1 - (double)r->out[a] / out) + ((double)x + 0.5) / s - 0.5;
	case RG_COORD_TF_CROP_AND_RESIZE:
		if (r->out[a] > 1)
			at = r->roi_begin[a] * (in - 1) + (double)x * (r->roi_end[a] - r->roi_begin[a]) * (in - 1) /
			     (double)(r->out[a] - 1);
		else
			at = 0.5 * (r->roi_begin[a] + r->roi_end[a]) * (in - 1);
		*outside = at < 0 || at > in - 1;
		return at;
	case RG_COORD_HALF_PIXEL:
		break;
	}
	return ((double)x + 0.5) / s - 0.5;
}
