/*
 * Elementwise functions of one operand, float32: activations mostly. What each
 * does with NaN follows the reference; errors are in vmath.h.
 */
#include <math.h>

#include "kernels/generic/ewise-kernel.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

/* v is the element, a and b the parameters. */
#define ROW(NAME, R, EXPR) \
	static void row_##NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const float *x = p->in[0]; \
		const float a = p->a, b = p->b; \
		R *y = out; \
\
		(void)a; \
		(void)b; \
		RG_EW_LOOP \
		for (int64_t i = 0; i < n; i++) { \
			float v = x[i]; \
\
			y[i] = (EXPR); \
		} \
	}

ROW(abs, float, v < 0 ? -v : v + 0.0f)
ROW(ceil, float, ceilf(v))
ROW(celu, float, v < 0 ? a * rg_vexpm1f(v / a) : v)
ROW(elu, float, v < 0 ? a * rg_vexpm1f(v) : v)
ROW(erf, float, rg_verff(v))
ROW(exp, float, rg_vexpf(v))
ROW(floor, float, floorf(v))
ROW(gelu_erf, float, rg_vgeluf(v))
ROW(gelu_tanh, float, rg_vgelu_tanhf(v))
ROW(hard_sigmoid, float, rg_vhard_sigmoidf(v, a, b))
ROW(hard_swish, float, rg_vhard_swishf(v))
ROW(is_inf, uint8_t, (v == INFINITY && b != 0) | (v == -INFINITY && a != 0))
ROW(is_nan, uint8_t, v != v)
ROW(leaky_relu, float, v < 0 ? a * v : v)
ROW(log, float, rg_vlogf(v))
ROW(mish, float, rg_vmishf(v))
ROW(neg, float, -v)
ROW(reciprocal, float, 1.0f / v)
ROW(relu, float, rg_at_least(v, 0.0f))
ROW(round, float, rintf(v))
ROW(selu, float, v > 0 ? b * v : b * (a * rg_vexpm1f(v)))
ROW(shrink, float, v < -a ? v + b : v > a ? v - b : 0.0f)
ROW(sigmoid, float, rg_vsigmoidf(v))
ROW(sign, float, v > 0 ? 1.0f : v < 0 ? -1.0f : v)
ROW(softplus, float, rg_vsoftplusf(v))
ROW(softsign, float, v / (1.0f + fabsf(v)))
ROW(sqrt, float, sqrtf(v))
ROW(swish, float, rg_vswishf(v, a))
ROW(tanh, float, rg_vtanhf(v))
ROW(thresholded_relu, float, v > a ? v : 0.0f)

/* Beyond what the reduction of vmath.h is made for, C's own, for the whole row. */
static bool is_moderate(const float *x, int64_t n)
{
	int bad = 0;

	for (int64_t i = 0; i < n; i++)
		bad |= !(fabsf(x[i]) <= 1e6f);
	return !bad;
}

#define WAVE(NAME, QUARTER, LIBM) \
	static void row_##NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const float *x = p->in[0]; \
		float *y = out; \
\
		if (is_moderate(x, n)) \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) \
				y[i] = rg_vsincosf(x[i], QUARTER); \
		else \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) \
				y[i] = LIBM(x[i]); \
	}
WAVE(sin, 0, sinf)
WAVE(cos, 1, cosf)

static int unary(struct rg_ew *e, const struct rg_call *c, const int *in, rg_ew_fn *fn, int cost, float a, float b)
{
	if (!rg_ew_is(c, 0, RG_F32))
		return -ENOTSUP;
	return rg_ew_apply(e, fn, RG_EW_ROWS, 1, in, a, b, (int)rg_dtype_bytes(c->out[0].dtype), cost);
}

#define PLAIN(NAME, COST) \
	static int node_##NAME(struct rg_ew *e, const struct rg_call *c, const int *in) \
	{ \
		return unary(e, c, in, row_##NAME, COST, 0, 0); \
	}
#define WITH_ATTRS(NAME, COST, ATTR_A, DA, ATTR_B, DB) \
	static int node_##NAME(struct rg_ew *e, const struct rg_call *c, const int *in) \
	{ \
		return unary(e, c, in, row_##NAME, COST, rg_node_float(c->node, ATTR_A, DA), \
			     rg_node_float(c->node, ATTR_B, DB)); \
	}
PLAIN(abs, 1)
PLAIN(ceil, 1)
PLAIN(cos, 12)
PLAIN(erf, 8)
PLAIN(exp, 4)
PLAIN(floor, 1)
PLAIN(is_nan, 1)
PLAIN(hard_swish, 2)
PLAIN(log, 6)
PLAIN(mish, 6)
PLAIN(neg, 1)
PLAIN(reciprocal, 2)
PLAIN(relu, 1)
PLAIN(round, 1)
PLAIN(sigmoid, 5)
PLAIN(sign, 1)
PLAIN(sin, 12)
PLAIN(softplus, 12)
PLAIN(softsign, 2)
PLAIN(sqrt, 2)
PLAIN(tanh, 6)
WITH_ATTRS(celu, 6, "alpha", 1, "", 0)
WITH_ATTRS(elu, 5, "alpha", 1, "", 0)
WITH_ATTRS(hard_sigmoid, 1, "alpha", 0.2f, "beta", 0.5f)
WITH_ATTRS(leaky_relu, 1, "alpha", 0.01f, "", 0)
/* Version 1 has other defaults, with fewer digits. */
WITH_ATTRS(selu, 5, "alpha", c->node->version < 6 ? 1.6732f : 1.67326319217681884765625f, "gamma",
	   c->node->version < 6 ? 1.0507f : 1.05070102214813232421875f)
WITH_ATTRS(shrink, 1, "lambd", 0.5f, "bias", 0)
WITH_ATTRS(swish, 5, "alpha", 1, "", 0)
WITH_ATTRS(thresholded_relu, 1, "alpha", 1, "", 0)

static int node_gelu(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	bool by_tanh = !strcmp(rg_node_string(c->node, "approximate", "none"), "tanh");

	return unary(e, c, in, by_tanh ? row_gelu_tanh : row_gelu_erf, by_tanh ? 6 : 10, 0, 0);
}

static int node_is_inf(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return unary(e, c, in, row_is_inf, 1, rg_node_int(c->node, "detect_negative", 1) ? 1 : 0,
		     rg_node_int(c->node, "detect_positive", 1) ? 1 : 0);
}

/* ---- Clip: bounds are attributes before version 11, optional scalars from then on ---- */

static void row_clip(void *out, const struct rg_ew_args *p, int64_t n)
{
	const float *x = p->in[0], lo = *(const float *)p->in[1], hi = *(const float *)p->in[2];
	float *y = out;

	RG_EW_LOOP
	for (int64_t i = 0; i < n; i++) {
		float v = rg_at_least(x[i], lo);

		y[i] = rg_at_most(v, hi);
	}
}

/* One element, by type and count; -1 when it is not there. */
static int bound(struct rg_ew *e, const struct rg_call *c, const int *in, int i, const char *attr, float absent)
{
	if (c->node->version < 11)
		return rg_ew_constant(e, rg_node_float(c->node, attr, absent));
	if (i >= c->node->n_in || in[i] < 0)
		return rg_ew_constant(e, absent);
	return rg_ew_is(c, i, RG_F32) && rg_shape_count(&c->in[i].shape) == 1 && in[i] < RG_EW_RESULT ? in[i] : -ENOTSUP;
}

static int node_clip(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	int regs[3] = { in[0], bound(e, c, in, 1, "min", -INFINITY), bound(e, c, in, 2, "max", INFINITY) };

	if (!rg_ew_is(c, 0, RG_F32))
		return -ENOTSUP;
	return rg_ew_apply(e, row_clip, 1 << 6, 3, regs, 0, 0, 4, 1);
}

#define LIST(X) \
	X("", "Abs", abs) X("", "Ceil", ceil) X("", "Celu", celu) X("", "Clip", clip) X("", "Cos", cos) \
	X("", "Elu", elu) X("", "Erf", erf) X("", "Exp", exp) X("", "Floor", floor) X("", "Gelu", gelu) \
	X("", "HardSigmoid", hard_sigmoid) X("", "HardSwish", hard_swish) X("", "IsInf", is_inf) \
	X("", "IsNaN", is_nan) X("", "LeakyRelu", leaky_relu) X("", "Log", log) X("", "Mish", mish) \
	X("", "Neg", neg) X("", "Reciprocal", reciprocal) X("", "Relu", relu) X("", "Round", round) \
	X("", "Selu", selu) X("", "Shrink", shrink) X("", "Sigmoid", sigmoid) X("", "Sign", sign) \
	X("", "Sin", sin) X("", "Softplus", softplus) X("", "Softsign", softsign) X("", "Sqrt", sqrt) \
	X("", "Swish", swish) X("", "Tanh", tanh) X("", "ThresholdedRelu", thresholded_relu)
RG_EW_FAMILY(unary, LIST);
