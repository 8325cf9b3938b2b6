/*
 * GridSample: the output pixel says where in the input it looks, in
 * coordinates from -1 to 1; nearest, N-linear, and cubic for two dimensions.
 * In double.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

enum { MAX_SPATIAL = 3, MAX_TAPS = 4 };
enum mode { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC };
enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };

struct job {
	enum mode mode;
	enum padding padding;
	bool align;
	int n; /* spatial dimensions */
	int64_t in[MAX_SPATIAL], out[MAX_SPATIAL];
	int64_t in_count, out_count;
};

/* -1 and 1 are the centres of the corner pixels (align), or their outer edges. */
static double denormalise(const struct job *j, double x, int64_t size)
{
	return j->align ? (x + 1) / 2 * (double)(size - 1) : ((x + 1) * (double)size - 1) / 2;
}

/* Mirrors x into [lo, hi], as often as it takes. */
static double reflect(double x, double lo, double hi)
{
	double range = hi - lo, beyond, times;

	if (range <= 0)
		return lo;
	beyond = x < lo ? lo - x : x > hi ? x - hi : 0;
	if (beyond == 0)
		return x;
	times = floor(beyond / range);
	beyond -= times * range;
	if (x < lo)
		return fmod(times, 2) == 0 ? lo + beyond : hi - beyond;
	return fmod(times, 2) == 0 ? hi - beyond : lo + beyond;
}

/* The pixel at whole coordinate x of one dimension; -1: zero padding. */
static int64_t pixel(const struct job *j, double x, int64_t size)
{
	double lo = j->align ? 0 : -0.5, hi = j->align ? (double)(size - 1) : (double)size - 0.5;

	if (x >= 0 && x <= (double)(size - 1))
		return (int64_t)x;
	if (j->padding == PAD_ZEROS || !isfinite(x))
		return -1;
	if (j->padding == PAD_REFLECTION)
		x = reflect(x, lo, hi);
	x = x < 0 ? 0 : x > (double)(size - 1) ? (double)(size - 1) : x;
	return (int64_t)x;
}

static double cubic(double x)
{
	const double a = -0.75;

	x = fabs(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Pixels and weights of one dimension; returns their number. */
static int taps(const struct job *j, double x, int64_t size, int64_t at[MAX_TAPS], double weight[MAX_TAPS])
{
	double lo = j->align ? 0 : -0.5, hi = j->align ? (double)(size - 1) : (double)size - 0.5, base;
	int first, count;

	/* Between pixels, coordinates are clipped or mirrored before rounding. */
	if (j->padding == PAD_BORDER && isfinite(x) && j->mode != MODE_CUBIC)
		x = fmin(fmax(x, 0), (double)(size - 1));
	else if (j->padding == PAD_REFLECTION && isfinite(x) && j->mode != MODE_CUBIC)
		x = reflect(x, lo, hi);
	if (j->mode == MODE_NEAREST) {
		at[0] = pixel(j, nearbyint(x), size);
		weight[0] = 1;
		return 1;
	}
	first = j->mode == MODE_LINEAR ? 0 : -1;
	count = j->mode == MODE_LINEAR ? 2 : 4;
	base = floor(x);
	for (int i = 0; i < count; i++) {
		double distance = x - (base + first + i);

		at[i] = pixel(j, base + first + i, size);
		weight[i] = j->mode == MODE_LINEAR ? 1 - fabs(distance) : cubic(distance);
	}
	return count;
}

static void sample(const struct rg_call *c, const struct job *j, int64_t n, int64_t p)
{
	int64_t at[MAX_SPATIAL][MAX_TAPS], dim[MAX_SPATIAL], channels = c->in[0].shape.dim[1];
	double weight[MAX_SPATIAL][MAX_TAPS];

	for (int d = 0; d < j->n; d++) { /* the grid has x first, the last dimension */
		double g = rg_ref_get(&c->in[1], (n * j->out_count + p) * j->n + (j->n - 1 - d));

		dim[d] = taps(j, denormalise(j, g, j->in[d]), j->in[d], at[d], weight[d]);
	}
	for (int64_t ch = 0; ch < channels; ch++) {
		int64_t k[MAX_SPATIAL] = { 0 }, plane = (n * channels + ch) * j->in_count;
		double sum = 0;

		do {
			double w = 1;
			int64_t from = 0;
			bool inside = true;

			for (int d = 0; d < j->n; d++) {
				w *= weight[d][k[d]];
				inside = inside && at[d][k[d]] >= 0;
				from = from * j->in[d] + at[d][k[d]];
			}
			if (inside && w != 0)
				sum += w * rg_ref_get(&c->in[0], plane + from);
		} while (rg_odometer_next(j->n, dim, k));
		rg_ref_set(&c->out[0], (n * channels + ch) * j->out_count + p, sum);
	}
}

static bool setup(const struct rg_call *c, struct job *j)
{
	const char *mode = rg_node_string(c->node, "mode", c->node->version < 20 ? "bilinear" : "linear");
	const char *padding = rg_node_string(c->node, "padding_mode", "zeros");

	memset(j, 0, sizeof(*j));
	j->n = c->in[0].shape.rank - 2;
	if (j->n < 1 || j->n > MAX_SPATIAL)
		return false;
	j->mode = !strcmp(mode, "nearest") ? MODE_NEAREST :
		  !strcmp(mode, "cubic") || !strcmp(mode, "bicubic") ? MODE_CUBIC : MODE_LINEAR;
	if (j->mode == MODE_LINEAR && strcmp(mode, "linear") && strcmp(mode, "bilinear"))
		return false;
	j->padding = !strcmp(padding, "border") ? PAD_BORDER :
		     !strcmp(padding, "reflection") ? PAD_REFLECTION : PAD_ZEROS;
	if (j->padding == PAD_ZEROS && strcmp(padding, "zeros"))
		return false;
	j->align = rg_node_int(c->node, "align_corners", 0) != 0;
	j->in_count = j->out_count = 1;
	for (int d = 0; d < j->n; d++) {
		j->in[d] = c->in[0].shape.dim[2 + d];
		j->out[d] = c->out[0].shape.dim[2 + d];
		if (j->in[d] == 0) /* nowhere to look */
			return false;
		j->in_count *= j->in[d];
		j->out_count *= j->out[d];
	}
	return true;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;

	if (!setup(c, &j))
		return rg_error_set(err, -EINVAL, "unknown mode or padding_mode");
	for (int64_t n = 0; n < c->in[0].shape.dim[0]; n++)
		for (int64_t p = 0; p < j.out_count; p++)
			sample(c, &j, n, p);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct job j;

	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT) && rg_in_set(c->in[1].dtype, RG_SET_FLOAT) && setup(c, &j);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "GridSample", .domain = "", .name = "ref", .supports = supports, .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_grid_sample, kernels);
