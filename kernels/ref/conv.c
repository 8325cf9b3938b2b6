/*
 * Convolution as its definition says: every output element is one sum over
 * taps and channels, in double. The oracle of all other convolutions.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "graph/window.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Offset into one channel of the input that tap `k` of output `o` reads; -1: padding. */
static int64_t tap_offset(const struct rg_window *w, const int64_t *o, const int64_t *k)
{
	int64_t at = 0;

	for (int d = 0; d < w->n; d++) {
		int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

		if (i < 0 || i >= w->in[d])
			return -1;
		at = at * w->in[d] + i;
	}
	return at;
}

static double dot_f32(const float *x, int64_t x_step, const float *wt, int64_t w_step, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i * x_step] * (double)wt[i * w_step];
	return sum;
}

static double dot_any(const struct rg_tensor *x, int64_t x0, int64_t x_step, const struct rg_tensor *wt, int64_t w0,
		      int64_t w_step, int64_t n)
{
	double sum = 0;

	if (x->dtype == RG_F32)
		return dot_f32((const float *)x->data + x0, x_step, (const float *)wt->data + w0, w_step, n);
	for (int64_t i = 0; i < n; i++)
		sum += rg_ref_get(x, x0 + i * x_step) * rg_ref_get(wt, w0 + i * w_step);
	return sum;
}

/* One output channel of one image. */
static void conv_plane(const struct rg_call *c, const struct rg_window *w, int64_t n, int64_t m)
{
	int64_t o[RG_MAX_SPATIAL] = { 0 }, k[RG_MAX_SPATIAL];
	int64_t channels = w->c_in / w->group, first = m / (w->c_out / w->group) * channels;
	int64_t x0 = (n * w->c_in + first) * w->in_count, w0 = m * channels * w->kernel_count;
	double bias = c->node->n_in > 2 && c->in[2].data ? rg_ref_get(&c->in[2], m) : 0;

	for (int64_t p = 0; p < w->out_count; p++) {
		double sum = bias;

		memset(k, 0, sizeof(k));
		for (int64_t q = 0; q < w->kernel_count; q++) {
			int64_t at = tap_offset(w, o, k);

			if (at >= 0)
				sum += dot_any(&c->in[0], x0 + at, w->in_count, &c->in[1], w0 + q, w->kernel_count,
					       channels);
			rg_odometer_next(w->n, w->kernel, k);
		}
		rg_ref_set(&c->out[0], (n * w->c_out + m) * w->out_count + p, sum);
		rg_odometer_next(w->n, w->out, o);
	}
}

static int run_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_window w;
	int rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &w, err);

	if (rc)
		return rc;
	for (int64_t n = 0; n < w.batch; n++)
		for (int64_t m = 0; m < w.c_out; m++)
			conv_plane(c, &w, n, m);
	return 0;
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Conv", .domain = "", .name = "ref", .supports = takes_float, .run = run_conv },
};
RG_KERNEL_TABLE(rg_kernels_ref_conv, kernels);
