/* Hann, Hamming and Blackman windows, and the mel filter bank, in double. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* a - b cos(x) + c cos(2 x) over one period. A symmetric window of one point is
 * 0 / 0 by its formula: NaN. */
static int cosine_sum(const struct rg_call *c, double a, double b, double d, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->out[0].shape);
	int64_t period = rg_node_int(c->node, "periodic", 1) ? n : n - 1;

	if (n == 1 && period == 0 && rg_dtype_is_int(c->out[0].dtype))
		return rg_error_set(err, -ERANGE,
				    "a symmetric window of one point is 0 / 0, which no integer holds");
	for (int64_t i = 0; i < n; i++) {
		double x = 2 * M_PI * (double)i / (double)period;

		rg_ref_set(&c->out[0], i, a - b * cos(x) + d * cos(2 * x));
	}
	return 0;
}

static int hann(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return cosine_sum(c, 0.5, 0.5, 0, err);
}

static int hamming(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return cosine_sum(c, 25.0 / 46, 21.0 / 46, 0, err);
}

static int blackman(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return cosine_sum(c, 0.42, 0.5, 0.08, err);
}

/* ---- MelWeightMatrix ---- */

static double mel_of(double hertz)
{
	return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel)
{
	return 700 * (pow(10, mel / 2595) - 1);
}

static double one_of(const struct rg_tensor *t)
{
	return rg_ref_get(t, 0);
}

/* The bin below corner `i` of the triangles; corners are equally far apart in mel.
 * false: outside of the spectrum. */
static bool corner(const struct rg_call *c, int64_t i, int64_t *out)
{
	double length = one_of(&c->in[1]), rate = one_of(&c->in[2]);
	double low = mel_of(one_of(&c->in[3])), high = mel_of(one_of(&c->in[4]));
	double step = (high - low) / (double)(c->out[0].shape.dim[1] + 2);
	double at = floor((length + 1) * hertz_of(low + (double)i * step) / rate);

	if (!(at >= 0 && at < (double)c->out[0].shape.dim[0]))
		return false;
	*out = (int64_t)at;
	return true;
}

/* Column `band`: rises from the left corner to 1 at the centre, falls to the right one. */
static void triangle(const struct rg_tensor *y, int64_t band, int64_t left, int64_t centre, int64_t right)
{
	int64_t bands = y->shape.dim[1];

	if (centre == left)
		rg_ref_set(y, centre * bands + band, 1);
	for (int64_t i = left; centre > left && i <= centre; i++)
		rg_ref_set(y, i * bands + band, (double)(i - left) / (double)(centre - left));
	for (int64_t i = centre; i < right; i++)
		rg_ref_set(y, i * bands + band, (double)(right - i) / (double)(right - centre));
}

static int mel(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t bands = c->out[0].shape.dim[1], bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
	int64_t at[3];

	if (bytes > 0)
		memset(c->out[0].data, 0, (size_t)bytes);
	for (int64_t band = 0; band < bands; band++) {
		for (int k = 0; k < 3; k++) {
			if (corner(c, band + k, &at[k]) && (k == 0 || at[k] >= at[k - 1]))
				continue;
			rg_error_set(err, -ERANGE,
				     "the mel bands from %g to %g Hz do not fit a spectrum of %lld bins at "
				     "%g samples a second",
				     one_of(&c->in[3]), one_of(&c->in[4]), (long long)c->out[0].shape.dim[0],
				     one_of(&c->in[2]));
			return rg_error_hint(err, "the edges must rise, from 0 up to half the sample rate");
		}
		triangle(&c->out[0], band, at[0], at[1], at[2]);
	}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "BlackmanWindow", .domain = "", .name = "ref", .run = blackman },
	{ .op_type = "HammingWindow", .domain = "", .name = "ref", .run = hamming },
	{ .op_type = "HannWindow", .domain = "", .name = "ref", .run = hann },
	{ .op_type = "MelWeightMatrix", .domain = "", .name = "ref", .run = mel },
};
RG_KERNEL_TABLE(rg_kernels_ref_window, kernels);
