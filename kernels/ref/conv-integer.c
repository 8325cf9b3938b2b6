/*
 * Convolutions on bytes: ConvInteger (sums as they are) and QLinearConv (sums
 * scaled back to bytes). Sums are exact in 32 bits modulo 2^32, as ONNX has it;
 * padding holds the input's zero point, so it adds nothing.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

#include "graph/window.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int32_t byte_at(const struct rg_tensor *t, int64_t i)
{
	return t->dtype == RG_U8 ? ((const uint8_t *)t->data)[i] : ((const int8_t *)t->data)[i];
}

/* Element m of a tensor that has one element or one a channel; 0 when absent. */
static int32_t zero_point(const struct rg_call *c, int input, int64_t m)
{
	if (input >= c->node->n_in || !c->in[input].data)
		return 0;
	return byte_at(&c->in[input], rg_shape_count(&c->in[input].shape) == 1 ? 0 : m);
}

static float scale_at(const struct rg_tensor *t, int64_t m)
{
	return ((const float *)t->data)[rg_shape_count(&t->shape) == 1 ? 0 : m];
}

static uint32_t sum_taps(const struct rg_tensor *x, const struct rg_tensor *wt, const struct rg_window *w, int64_t n,
			 int64_t m, const int64_t *o, int32_t xz, int32_t wz)
{
	int64_t channels = w->c_in / w->group, first = m / (w->c_out / w->group) * channels;
	int64_t k[RG_MAX_SPATIAL] = { 0 };
	uint32_t sum = 0;

	for (int64_t q = 0; q < w->kernel_count; q++) {
		int64_t at = 0;
		bool inside = true;

		for (int d = 0; d < w->n; d++) {
			int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

			inside = inside && i >= 0 && i < w->in[d];
			at = at * w->in[d] + i;
		}
		for (int64_t i = 0; i < channels && inside; i++)
			sum += (uint32_t)((byte_at(x, (n * w->c_in + first + i) * w->in_count + at) - xz) *
					  (byte_at(wt, (m * channels + i) * w->kernel_count + q) - wz));
		rg_odometer_next(w->n, w->kernel, k);
	}
	return sum;
}

static int run_conv_integer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_window w;
	int rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &w, err);
	int32_t *out = c->out[0].data;

	if (rc)
		return rc;
	for (int64_t n = 0; n < w.batch; n++)
		for (int64_t m = 0; m < w.c_out; m++) {
			int64_t o[RG_MAX_SPATIAL] = { 0 };

			for (int64_t p = 0; p < w.out_count; p++) {
				*out++ = (int32_t)sum_taps(&c->in[0], &c->in[1], &w, n, m, o, zero_point(c, 2, m),
							   zero_point(c, 3, m));
				rg_odometer_next(w.n, w.out, o);
			}
		}
	return 0;
}

static int run_qlinear_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int32_t *bias = c->node->n_in > 8 ? c->in[8].data : NULL;
	bool is_u8 = c->out[0].dtype == RG_U8;
	float lo = is_u8 ? 0.0f : -128.0f, hi = is_u8 ? 255.0f : 127.0f;
	uint8_t *out = c->out[0].data;
	struct rg_window w;
	int rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[3].shape, &w, err);

	if (rc)
		return rc;
	for (int64_t n = 0; n < w.batch; n++)
		for (int64_t m = 0; m < w.c_out; m++) {
			float scale = scale_at(&c->in[1], 0) * scale_at(&c->in[4], m) / scale_at(&c->in[6], 0);
			int64_t o[RG_MAX_SPATIAL] = { 0 };

			for (int64_t p = 0; p < w.out_count; p++) {
				uint32_t sum = sum_taps(&c->in[0], &c->in[3], &w, n, m, o, zero_point(c, 2, 0),
							zero_point(c, 5, m));
				float y;

				sum += bias ? (uint32_t)bias[m] : 0;
				/* ties to even, the default rounding mode */
				y = nearbyintf((float)(int32_t)sum * scale) + (float)zero_point(c, 7, 0);
				y = y > hi ? hi : y >= lo ? y : lo; /* NaN ends at lo */
				*out++ = is_u8 ? (uint8_t)y : (uint8_t)(int8_t)y;
				rg_odometer_next(w.n, w.out, o);
			}
		}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "ConvInteger", .domain = "", .name = "ref", .run = run_conv_integer },
	{ .op_type = "QLinearConv", .domain = "", .name = "ref", .run = run_qlinear_conv },
};
RG_KERNEL_TABLE(rg_kernels_ref_conv_integer, kernels);
