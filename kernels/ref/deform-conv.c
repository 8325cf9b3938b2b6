/*
 * DeformConv (Dai et al., 2017; Zhu et al., 2019): a convolution whose taps read
 * between elements, each at its own place. In double.
 */
#include <math.h>

#include "graph/window.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct deform {
	struct rg_window w;
	int64_t groups; /* of offsets */
	const struct rg_tensor *x, *offset, *mask;
};

/* Linear between the 2^n neighbours of a point; those outside count as zero. */
static double sample(const struct deform *a, int64_t plane, const double *at)
{
	const struct rg_window *w = &a->w;
	int64_t low[RG_MAX_SPATIAL];
	double part[RG_MAX_SPATIAL], sum = 0;

	for (int d = 0; d < w->n; d++) {
		if (!(at[d] > -1 && at[d] < (double)w->in[d])) /* NaN too */
			return 0;
		low[d] = (int64_t)floor(at[d]);
		part[d] = at[d] - (double)low[d];
	}
	for (unsigned corner = 0; corner < 1u << w->n; corner++) {
		int64_t index = 0;
		double weight = 1;
		bool inside = true;

		for (int d = 0; d < w->n; d++) {
			bool high = corner >> d & 1;
			int64_t i = low[d] + high;

			inside &= i >= 0 && i < w->in[d];
			index = index * w->in[d] + i;
			weight *= high ? part[d] : 1 - part[d];
		}
		if (inside && weight != 0)
			sum += weight * rg_ref_get(a->x, plane + index);
	}
	return sum;
}

/* What tap q of an output position sees in every channel. */
static void sample_tap(const struct deform *a, int64_t n, int64_t p, const int64_t *o, int64_t q,
		       const int64_t *k, double *columns)
{
	const struct rg_window *w = &a->w;
	int64_t per_group = w->c_in / a->groups;

	for (int64_t g = 0; g < a->groups; g++) {
		int64_t tap = (n * a->groups + g) * w->kernel_count + q;
		double at[RG_MAX_SPATIAL], m = a->mask ? rg_ref_get(a->mask, tap * w->out_count + p) : 1;

		for (int d = 0; d < w->n; d++)
			at[d] = (double)(o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d]) +
				rg_ref_get(a->offset, (tap * w->n + d) * w->out_count + p);
		for (int64_t c = g * per_group; c < (g + 1) * per_group; c++)
			columns[c * w->kernel_count + q] = m * sample(a, (n * w->c_in + c) * w->in_count, at);
	}
}

static void position(const struct rg_call *c, const struct deform *a, int64_t n, int64_t p, const int64_t *o)
{
	const struct rg_window *w = &a->w;
	bool biased = c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED;
	int64_t k[RG_MAX_SPATIAL] = { 0 }, run = w->c_in / w->group * w->kernel_count;
	double *columns = c->scratch;

	for (int64_t q = 0; q < w->kernel_count; q++) {
		sample_tap(a, n, p, o, q, k, columns);
		rg_odometer_next(w->n, w->kernel, k);
	}
	for (int64_t m = 0; m < w->c_out; m++) {
		const double *x = columns + m / (w->c_out / w->group) * run;
		double sum = biased ? rg_ref_get(&c->in[3], m) : 0;

		for (int64_t i = 0; i < run; i++)
			sum += x[i] * rg_ref_get(&c->in[1], m * run + i);
		rg_ref_set(&c->out[0], (n * w->c_out + m) * w->out_count + p, sum);
	}
}

static int deform_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct deform a = {
		.groups = rg_node_int(c->node, "offset_group", 1),
		.x = &c->in[0],
		.offset = &c->in[2],
		.mask = c->node->n_in > 4 && c->in[4].dtype != RG_UNDEFINED ? &c->in[4] : NULL,
	};
	int rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &a.w, err);

	if (rc)
		return rc;
	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	for (int64_t n = 0; n < a.w.batch; n++) {
		int64_t o[RG_MAX_SPATIAL] = { 0 };

		for (int64_t p = 0; p < a.w.out_count; p++) {
			position(c, &a, n, p, o);
			rg_odometer_next(a.w.n, a.w.out, o);
		}
	}
	return 0;
}

/* The columns of one position. */
static size_t scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_window w;

	if (rg_shape_count(&c->out[0].shape) == 0 ||
	    rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &w, &err))
		return 0;
	return (size_t)(w.c_in * w.kernel_count) * sizeof(double);
}

static bool supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "DeformConv", .domain = "", .name = "ref", .supports = supports, .scratch_bytes = scratch,
	  .run = deform_conv },
};
RG_KERNEL_TABLE(rg_kernels_ref_deform_conv, kernels);
