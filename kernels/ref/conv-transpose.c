/*
 * Transposed convolution, gathered: each output element sums the input elements
 * whose spread reaches it, in double.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "graph/window.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Offset into one input channel that reaches output `o` through tap `k`; -1: none. */
static int64_t source_offset(const struct rg_window *w, const int64_t *o, const int64_t *k)
{
	int64_t at = 0;

	for (int d = 0; d < w->n; d++) {
		int64_t t = o[d] + w->pad_begin[d] - k[d] * w->dilation[d];

		if (t < 0 || t % w->stride[d] || t / w->stride[d] >= w->in[d])
			return -1;
		at = at * w->in[d] + t / w->stride[d];
	}
	return at;
}

static void plane(const struct rg_call *c, const struct rg_window *w, int64_t n, int64_t m)
{
	int64_t o[RG_MAX_SPATIAL] = { 0 }, k[RG_MAX_SPATIAL];
	int64_t channels = w->c_in / w->group, per_group = w->c_out / w->group, g = m / per_group;
	double bias = c->node->n_in > 2 && c->in[2].data ? rg_ref_get(&c->in[2], m) : 0;

	for (int64_t p = 0; p < w->out_count; p++) {
		double sum = bias;

		memset(k, 0, sizeof(k));
		for (int64_t q = 0; q < w->kernel_count; q++) {
			int64_t at = source_offset(w, o, k);

			for (int64_t i = 0; i < channels && at >= 0; i++) {
				int64_t ch = g * channels + i;
				int64_t wi = (ch * per_group + m % per_group) * w->kernel_count + q;

				sum += rg_ref_get(&c->in[0], (n * w->c_in + ch) * w->in_count + at) *
				       rg_ref_get(&c->in[1], wi);
			}
			rg_odometer_next(w->n, w->kernel, k);
		}
		rg_ref_set(&c->out[0], (n * w->c_out + m) * w->out_count + p, sum);
		rg_odometer_next(w->n, w->out, o);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_window w;
	int rc = rg_window_conv_transpose(c->node, &c->in[0].shape, &c->in[1].shape, &w, err);

	if (rc)
		return rc;
	for (int64_t n = 0; n < w.batch; n++)
		for (int64_t m = 0; m < w.c_out; m++)
			plane(c, &w, n, m);
	return 0;
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "ConvTranspose", .domain = "", .name = "ref", .supports = takes_float, .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_conv_transpose, kernels);
