/*
 * Quantisation to and from integers of 2 to 16 bits, float8 and float4e2m1.
 * Rounding is to the nearest even; the quotient has the precision that the
 * definition gives it, products are in float32.
 */
#include <math.h>

#include "graph/narrow.h"
#include "graph/op-quant.h"
#include "kernels/ref/byte.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct range {
	double lo, hi;
};

static struct range range_of(enum rg_dtype t)
{
	int bits = rg_dtype_bits(t) - (rg_dtype_is_signed(t) ? 1 : 0);

	return (struct range){ rg_dtype_is_signed(t) ? -ldexp(1, bits) : 0, ldexp(1, bits) - 1 };
}

/* Rounds, shifts, saturates; NaN becomes the low end. */
static double to_integer(double quotient, double zero, struct range r)
{
	double v = rint(quotient) + zero;

	v = v >= r.lo ? v : r.lo;
	return v <= r.hi ? v : r.hi;
}

/* A quotient of two floats is right when it is rounded from double, one of two
 * halves when it is rounded from float: both have twice the bits and two more. */
static double round_to(enum rg_dtype t, double v)
{
	switch (t) {
	case RG_F64:
		return v;
	case RG_F16:
		return (double)rg_f16_to_f32(rg_f32_to_f16((float)v));
	case RG_BF16:
		return (double)rg_bf16_to_f32(rg_f32_to_bf16((float)v));
	default:
		return (double)(float)v;
	}
}

static const struct rg_tensor *zero_point(const struct rg_call *c)
{
	return c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED ? &c->in[2] : NULL;
}

/* Elements from `at` on that have scale k in common, at most RG_REF_CHUNK. */
static int64_t run_at(const struct rg_quant *q, int64_t at, int64_t *k)
{
	int64_t run = q->sj ? 1 : q->si ? q->inner : q->n * q->inner, left = run - at % run;

	*k = at / (q->n * q->inner) * q->so + at / q->inner % q->n / q->block * q->si + at % q->inner * q->sj;
	return left < RG_REF_CHUNK ? left : RG_REF_CHUNK;
}

/* A zero point of a float8 type is zero in practice, and must then not make +0 of
 * -0: ONNX's own function does not add it. It does add that of float4e2m1. */
static void store_floats(const struct rg_tensor *y, int64_t at, int64_t n, const double *v, double zero,
			 bool saturate)
{
	const struct rg_narrow_rule rule = { .saturate = saturate };
	bool add = zero != 0 || y->dtype == RG_F4E2M1;
	int bits = rg_dtype_bits(y->dtype);

	for (int64_t i = 0; i < n; i++)
		rg_narrow_set(y->data, bits, at + i, rg_narrow_encode(y->dtype, add ? v[i] + zero : v[i], rule));
}

static int run_quantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	enum rg_dtype precision = rg_quant_precision(c->node, c->in[0].dtype, c->in[1].dtype);
	bool to_float = rg_dtype_is_float(c->out[0].dtype), saturate = rg_node_int(c->node, "saturate", 1) != 0;
	int64_t count = rg_shape_count(&c->in[0].shape), k, m;
	const struct rg_tensor *zero = zero_point(c);
	struct range r = range_of(c->out[0].dtype);
	double buf[RG_REF_CHUNK], scale, z;
	const char *bad;
	struct rg_quant q;

	bad = rg_quant_layout(c->node, &c->in[0].shape, &c->in[1].shape, &q);
	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	rg_ref_clear(&c->out[0]);
	for (int64_t at = 0; at < count; at += m) {
		m = run_at(&q, at, &k);
		scale = round_to(precision, rg_ref_get(&c->in[1], k));
		z = zero ? rg_ref_get(zero, k) : 0;
		rg_ref_load(&c->in[0], at, 1, m, buf);
		if (precision == RG_F32)
			for (int64_t i = 0; i < m; i++)
				buf[i] = (double)((float)buf[i] / (float)scale);
		else
			for (int64_t i = 0; i < m; i++)
				buf[i] = round_to(precision, round_to(precision, buf[i]) / scale);
		if (to_float) {
			store_floats(&c->out[0], at, m, buf, z, saturate);
			continue;
		}
		for (int64_t i = 0; i < m; i++)
			buf[i] = to_integer(buf[i], z, r);
		rg_ref_store(&c->out[0], at, 1, m, buf);
	}
	return 0;
}

static int run_dequantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t count = rg_shape_count(&c->in[0].shape), k, m;
	const struct rg_tensor *zero = zero_point(c);
	double buf[RG_REF_CHUNK], z;
	const char *bad;
	struct rg_quant q;
	float scale;

	bad = rg_quant_layout(c->node, &c->in[0].shape, &c->in[1].shape, &q);
	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	for (int64_t at = 0; at < count; at += m) {
		m = run_at(&q, at, &k);
		scale = (float)rg_ref_get(&c->in[1], k);
		z = zero ? rg_ref_get(zero, k) : 0;
		rg_ref_load(&c->in[0], at, 1, m, buf);
		/* the difference is exact in double, 32-bit integers included */
		for (int64_t i = 0; i < m; i++)
			buf[i] = (double)((float)(buf[i] - z) * scale);
		rg_ref_store(&c->out[0], at, 1, m, buf);
	}
	return 0;
}

int32_t rg_byte_quantize(const float *x, int64_t n, uint8_t *to, float *scale)
{
	const struct range r = { 0, 255 };
	float lo = 0, hi = 0, zero;

	for (int64_t i = 0; i < n; i++) {
		lo = x[i] < lo ? x[i] : lo;
		hi = x[i] > hi ? x[i] : hi;
	}
	*scale = (hi - lo) / 255;
	*scale = *scale > 0 ? *scale : 1;
	zero = -lo / *scale;
	zero = rintf(zero < 255 ? zero : 255);
	for (int64_t i = 0; i < n && to; i++)
		to[i] = (uint8_t)to_integer((double)(x[i] / *scale), (double)zero, r);
	return (int32_t)zero;
}

static int run_dynamic(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	float scale;
	int32_t zero = rg_byte_quantize(c->in[0].data, rg_shape_count(&c->in[0].shape), c->out[0].data, &scale);

	if (c->node->n_out > 1 && c->out[1].data)
		*(float *)c->out[1].data = scale;
	if (c->node->n_out > 2 && c->out[2].data)
		*(uint8_t *)c->out[2].data = (uint8_t)zero;
	return 0;
}

static bool takes_dynamic(const struct rg_call *c)
{
	return c->in[0].dtype == RG_F32;
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("DequantizeLinear", NULL, run_dequantize),
	K("DynamicQuantizeLinear", takes_dynamic, run_dynamic),
	K("QuantizeLinear", NULL, run_quantize),
};
RG_KERNEL_TABLE(rg_kernels_ref_quant, kernels);
