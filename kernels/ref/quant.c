/*
 * Quantisation to and from 8- and 16-bit integers. Divisions and products are
 * in float, as the definitions want, and rounding is to the nearest even.
 */
#include <math.h>

#include "graph/op-quant.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct range {
	float lo, hi;
};

static struct range range_of(enum rg_dtype t)
{
	switch (t) {
	case RG_I8:
		return (struct range){ -128, 127 };
	case RG_U8:
		return (struct range){ 0, 255 };
	case RG_I16:
		return (struct range){ -32768, 32767 };
	default:
		return (struct range){ 0, 65535 };
	}
}

/* Rounds, shifts, saturates; NaN becomes the low end. */
static float quantize(float x, float scale, float zero, struct range r)
{
	float v = rintf(x / scale) + zero;

	v = v >= r.lo ? v : r.lo;
	return v <= r.hi ? v : r.hi;
}

static const struct rg_tensor *zero_point(const struct rg_call *c)
{
	return c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED ? &c->in[2] : NULL;
}

static int run_quantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *zero = zero_point(c);
	struct range r = range_of(c->out[0].dtype);
	const char *bad;
	struct rg_quant q;
	int64_t at = 0, k;

	bad = rg_quant_layout(c->node, &c->in[0].shape, &c->in[1].shape, &q);
	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	for (int64_t o = 0; o < q.outer; o++)
		for (int64_t i = 0; i < q.n; i++)
			for (int64_t j = 0; j < q.inner; j++, at++) {
				k = o * q.so + i / q.block * q.si + j * q.sj;
				rg_ref_set(&c->out[0], at,
					   quantize((float)rg_ref_get(&c->in[0], at),
						    (float)rg_ref_get(&c->in[1], k),
						    zero ? (float)rg_ref_get(zero, k) : 0, r));
			}
	return 0;
}

static int run_dequantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *zero = zero_point(c);
	const char *bad;
	struct rg_quant q;
	int64_t at = 0, k;
	double v;

	bad = rg_quant_layout(c->node, &c->in[0].shape, &c->in[1].shape, &q);
	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	for (int64_t o = 0; o < q.outer; o++)
		for (int64_t i = 0; i < q.n; i++)
			for (int64_t j = 0; j < q.inner; j++, at++) {
				k = o * q.so + i / q.block * q.si + j * q.sj;
				/* the difference is exact in double, 32-bit integers included */
				v = rg_ref_get(&c->in[0], at) - (zero ? rg_ref_get(zero, k) : 0);
				rg_ref_set(&c->out[0], at, (float)v * (float)rg_ref_get(&c->in[1], k));
			}
	return 0;
}

static int run_dynamic(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const float *x = c->in[0].data;
	int64_t n = rg_shape_count(&c->in[0].shape);
	const struct range r = { 0, 255 };
	float lo = 0, hi = 0, scale, zero = 0;
	uint8_t *y = c->out[0].data;

	for (int64_t i = 0; i < n; i++) {
		lo = x[i] < lo ? x[i] : lo;
		hi = x[i] > hi ? x[i] : hi;
	}
	scale = (hi - lo) / 255;
	/* all zero: any scale serves, and the quotient is not a number */
	if (scale > 0) {
		zero = -lo / scale;
		zero = rintf(zero < 255 ? zero : 255);
	}
	if (y)
		for (int64_t i = 0; i < n; i++)
			y[i] = (uint8_t)(scale > 0 ? quantize(x[i], scale, zero, r) : 0);
	if (c->node->n_out > 1 && c->out[1].data)
		*(float *)c->out[1].data = scale;
	if (c->node->n_out > 2 && c->out[2].data)
		*(uint8_t *)c->out[2].data = (uint8_t)zero;
	return 0;
}

#define SET_QUANT (RG_SET_INT8 | RG_BIT(RG_I16) | RG_BIT(RG_U16))
#define SET_SCALE (RG_BIT(RG_F32) | RG_BIT(RG_F16) | RG_BIT(RG_BF16))

static bool takes_quantize(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, SET_SCALE | RG_BIT(RG_I32)) && rg_in_set(c->out[0].dtype, SET_QUANT);
}

static bool takes_dequantize(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, SET_QUANT | RG_BIT(RG_I32)) && rg_in_set(c->out[0].dtype, SET_SCALE);
}

static bool takes_dynamic(const struct rg_call *c)
{
	return c->in[0].dtype == RG_F32;
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("DequantizeLinear", takes_dequantize, run_dequantize),
	K("DynamicQuantizeLinear", takes_dynamic, run_dynamic),
	K("QuantizeLinear", takes_quantize, run_quantize),
};
RG_KERNEL_TABLE(rg_kernels_ref_quant, kernels);
