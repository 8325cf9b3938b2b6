/*
 * RoiAlign (He et al., Mask R-CNN, 2017) and MaxRoiPool (Girshick, Fast R-CNN,
 * 2015), in double.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct align {
	bool max, half_pixel;
	int64_t sampling;
	double scale;
	int64_t channels, h, w, oh, ow;
};

/*
 * The four neighbours of a point, weighted. A point more than one pixel outside
 * adds nothing. `max` takes the largest weighted neighbour, as ONNX's
 * definition has it, rather than their sum.
 */
static double sample(const struct rg_tensor *x, int64_t plane, const struct align *a, double py, double px)
{
	int64_t y0, x0, y1, x1;
	double ly, lx, v[4];

	if (!(py >= -1 && py <= (double)a->h && px >= -1 && px <= (double)a->w))
		return 0;
	py = fmax(py, 0);
	px = fmax(px, 0);
	y0 = (int64_t)py;
	x0 = (int64_t)px;
	if (y0 >= a->h - 1) {
		y0 = a->h - 1;
		py = (double)y0;
	}
	if (x0 >= a->w - 1) {
		x0 = a->w - 1;
		px = (double)x0;
	}
	y1 = y0 < a->h - 1 ? y0 + 1 : y0;
	x1 = x0 < a->w - 1 ? x0 + 1 : x0;
	ly = py - (double)y0;
	lx = px - (double)x0;
	v[0] = (1 - ly) * (1 - lx) * rg_ref_get(x, plane + y0 * a->w + x0);
	v[1] = (1 - ly) * lx * rg_ref_get(x, plane + y0 * a->w + x1);
	v[2] = ly * (1 - lx) * rg_ref_get(x, plane + y1 * a->w + x0);
	v[3] = ly * lx * rg_ref_get(x, plane + y1 * a->w + x1);
	return a->max ? fmax(fmax(v[0], v[1]), fmax(v[2], v[3])) : v[0] + v[1] + v[2] + v[3];
}

static double align_bin(const struct rg_tensor *x, int64_t plane, const struct align *a, const double roi[4], int64_t by,
			int64_t bx)
{
	double shift = a->half_pixel ? 0.5 : 0;
	double left = roi[0] * a->scale - shift, top = roi[1] * a->scale - shift;
	double width = roi[2] * a->scale - shift - left, height = roi[3] * a->scale - shift - top;
	double sum = 0, best = 0, bin_h, bin_w;
	int64_t ny, nx;

	if (!a->half_pixel) {
		width = fmax(width, 1);
		height = fmax(height, 1);
	}
	bin_h = height / (double)a->oh;
	bin_w = width / (double)a->ow;
	ny = a->sampling > 0 ? a->sampling : (int64_t)ceil(bin_h);
	nx = a->sampling > 0 ? a->sampling : (int64_t)ceil(bin_w);
	for (int64_t iy = 0; iy < ny; iy++) {
		for (int64_t ix = 0; ix < nx; ix++) {
			double v = sample(x, plane, a, top + ((double)by + ((double)iy + 0.5) / (double)ny) * bin_h,
					  left + ((double)bx + ((double)ix + 0.5) / (double)nx) * bin_w);

			best = iy + ix == 0 ? v : fmax(best, v);
			sum += v;
		}
	}
	return a->max ? best : ny * nx > 0 ? sum / (double)(ny * nx) : 0;
}

static int run_align(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *o = &c->out[0].shape;
	struct align a = {
		.max = !strcmp(rg_node_string(c->node, "mode", "avg"), "max"),
		.half_pixel = c->node->version >= 16 &&
			      !strcmp(rg_node_string(c->node, "coordinate_transformation_mode", "half_pixel"),
				      "half_pixel"),
		.sampling = rg_node_int(c->node, "sampling_ratio", 0),
		.scale = (double)rg_node_float(c->node, "spatial_scale", 1),
		.channels = s->dim[1], .h = s->dim[2], .w = s->dim[3], .oh = o->dim[2], .ow = o->dim[3],
	};
	int64_t out = 0;

	if (a.sampling < 0 || a.sampling > INT16_MAX)
		return rg_error_set(err, -EINVAL, "attribute sampling_ratio is %lld", (long long)a.sampling);
	for (int64_t r = 0; r < o->dim[0]; r++) {
		int64_t n = ((const int64_t *)c->in[2].data)[r];
		double roi[4];

		rg_ref_load(&c->in[1], r * 4, 1, 4, roi);
		if (n < 0 || n >= s->dim[0])
			return rg_error_set(err, -EINVAL, "batch index %lld lies outside the batch", (long long)n);
		for (int k = 0; k < 4; k++) /* bounds the work where sampling adapts to the size */
			if (!(fabs(roi[k] * a.scale) < 1e6))
				return rg_error_set(err, -EINVAL, "region %lld is not usable: %g", (long long)r, roi[k]);
		for (int64_t ch = 0; ch < a.channels; ch++)
			for (int64_t y = 0; y < a.oh; y++)
				for (int64_t x = 0; x < a.ow; x++)
					rg_ref_set(&c->out[0], out++,
						   align_bin(&c->in[0], (n * a.channels + ch) * a.h * a.w, &a, roi, y, x));
	}
	return 0;
}

static int64_t clamp(double v, int64_t hi)
{
	return v < 0 ? 0 : v > (double)hi ? hi : (int64_t)v;
}

static int run_max(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *o = &c->out[0].shape;
	int64_t h = s->dim[2], w = s->dim[3], oh = o->dim[2], ow = o->dim[3], out = 0;
	double scale = (double)rg_node_float(c->node, "spatial_scale", 1);

	for (int64_t r = 0; r < o->dim[0]; r++) {
		double roi[5], height, width;

		rg_ref_load(&c->in[1], r * 5, 1, 5, roi);
		if (!(roi[0] >= 0 && roi[0] < (double)s->dim[0]))
			return rg_error_set(err, -EINVAL, "batch index %g lies outside the batch", roi[0]);
		for (int k = 1; k < 5; k++)
			roi[k] = round(roi[k] * scale);
		width = fmax(roi[3] - roi[1] + 1, 1);
		height = fmax(roi[4] - roi[2] + 1, 1);
		for (int64_t ch = 0; ch < s->dim[1]; ch++) {
			int64_t plane = ((int64_t)roi[0] * s->dim[1] + ch) * h * w;

			for (int64_t i = 0; i < oh * ow; i++) {
				double y = (double)(i / ow), x = (double)(i % ow), best = -INFINITY;
				int64_t y0 = clamp(floor(y * height / (double)oh) + roi[2], h);
				int64_t y1 = clamp(ceil((y + 1) * height / (double)oh) + roi[2], h);
				int64_t x0 = clamp(floor(x * width / (double)ow) + roi[1], w);
				int64_t x1 = clamp(ceil((x + 1) * width / (double)ow) + roi[1], w);

				for (int64_t yy = y0; yy < y1; yy++)
					for (int64_t xx = x0; xx < x1; xx++)
						best = fmax(best, rg_ref_get(&c->in[0], plane + yy * w + xx));
				rg_ref_set(&c->out[0], out++, y1 > y0 && x1 > x0 ? best : 0);
			}
		}
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT) && c->in[1].dtype == c->in[0].dtype &&
	       c->in[0].shape.dim[2] > 0 && c->in[0].shape.dim[3] > 0;
}

static bool supports_align(const struct rg_call *c)
{
	return supports(c) && c->in[2].dtype == RG_I64;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "MaxRoiPool", .domain = "", .name = "ref", .supports = supports, .run = run_max },
	{ .op_type = "RoiAlign", .domain = "", .name = "ref", .supports = supports_align, .run = run_align },
};
RG_KERNEL_TABLE(rg_kernels_ref_roi, kernels);
