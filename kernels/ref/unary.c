/*
 * Elementwise operators of one input, and those whose further inputs are
 * scalars (Clip).
 *
 * Floats: one expression an operator, compiled for float and for double
 * (tgmath picks the function); float16 and bfloat16 run the float loop over a
 * chunk on the stack and round once. The float loops are plain, so that the
 * compiler vectorises what has no call in it. Source of the formulas: the
 * operators' definitions in the ONNX operator documentation.
 */
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Parameters of one call: attributes, or Clip's bounds. */
struct args {
	double a, b;
};

typedef void loop_f32(const float *x, float *y, int64_t n, const struct args *p);
typedef void loop_f64(const double *x, double *y, int64_t n, const struct args *p);

static void run_loops(const struct rg_call *c, loop_f32 *f32, loop_f64 *f64, const struct args *p)
{
	const struct rg_tensor *in = &c->in[0];
	int64_t n = rg_shape_count(&in->shape);
	float x[RG_REF_CHUNK], y[RG_REF_CHUNK];

	if (in->dtype == RG_F32) {
		f32(in->data, c->out[0].data, n, p);
		return;
	}
	if (in->dtype == RG_F64) {
		f64(in->data, c->out[0].data, n, p);
		return;
	}
	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;
		const uint16_t *h = (const uint16_t *)in->data + i;
		uint16_t *o = (uint16_t *)c->out[0].data + i;

		for (int64_t j = 0; j < m; j++)
			x[j] = in->dtype == RG_F16 ? rg_f16_to_f32(h[j]) : rg_bf16_to_f32(h[j]);
		f32(x, y, m, p);
		for (int64_t j = 0; j < m; j++)
			o[j] = in->dtype == RG_F16 ? rg_f32_to_f16(y[j]) : rg_f32_to_bf16(y[j]);
	}
}

/* v is the element, T its type, A and B the parameters in that type. */
#define LOOP(NAME, CTYPE, SUFFIX, EXPR) \
	static void NAME##_##SUFFIX(const CTYPE *restrict x, CTYPE *restrict y, int64_t n, \
				    const struct args *p) \
	{ \
		typedef CTYPE T; \
		const T A = (T)p->a, B = (T)p->b; \
		(void)A, (void)B; \
		for (int64_t i = 0; i < n; i++) { \
			const T v = x[i]; \
			y[i] = (T)(EXPR); \
		} \
	}
#define LOOPS(NAME, EXPR) LOOP(NAME, float, f32, EXPR) LOOP(NAME, double, f64, EXPR)

#define PLAIN(NAME, EXPR) \
	LOOPS(NAME, EXPR) \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		static const struct args none; \
		run_loops(c, NAME##_f32, NAME##_f64, &none); \
		return 0; \
	}

/* Attributes a and b with their defaults; DA and DB may depend on the version. */
#define WITH_ATTRS(NAME, ATTR_A, DA, ATTR_B, DB, EXPR) \
	LOOPS(NAME, EXPR) \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		const struct args p = { rg_node_float(c->node, ATTR_A, DA), \
					rg_node_float(c->node, ATTR_B, DB) }; \
		run_loops(c, NAME##_f32, NAME##_f64, &p); \
		return 0; \
	}

/* Bounds that let NaN through: a comparison with it is false. */
#define AT_LEAST(V, LO) ((V) < (LO) ? (LO) : (V))
#define AT_MOST(V, HI) ((V) > (HI) ? (HI) : (V))
/* log(1 + e^v) without overflow for large v. */
#define SOFTPLUS(V) ((V) > 0 ? (V) + log1p(exp(-(V))) : log1p(exp(V)))

PLAIN(abs, fabs(v))
PLAIN(neg, -v)
PLAIN(sign, v > 0 ? (T)1 : v < 0 ? (T)-1 : v) /* keeps NaN and the sign of 0 */
PLAIN(ceil, ceil(v))
PLAIN(floor, floor(v))
PLAIN(round, rint(v)) /* the default rounding mode: half to even */
PLAIN(sqrt, sqrt(v))
PLAIN(reciprocal, (T)1 / v)
PLAIN(exp, exp(v))
PLAIN(log, log(v))
PLAIN(sin, sin(v))
PLAIN(cos, cos(v))
PLAIN(tan, tan(v))
PLAIN(asin, asin(v))
PLAIN(acos, acos(v))
PLAIN(atan, atan(v))
PLAIN(sinh, sinh(v))
PLAIN(cosh, cosh(v))
PLAIN(tanh, tanh(v))
PLAIN(asinh, asinh(v))
PLAIN(acosh, acosh(v))
PLAIN(atanh, atanh(v))
PLAIN(erf, erf(v))
PLAIN(sigmoid, (T)1 / ((T)1 + exp(-v)))
PLAIN(hardswish, v * AT_MOST(AT_LEAST(v / (T)6 + (T)0.5, (T)0), (T)1))
PLAIN(relu, AT_LEAST(v, (T)0))
PLAIN(softplus, SOFTPLUS(v))
PLAIN(softsign, v / ((T)1 + fabs(v)))
PLAIN(mish, v * tanh(SOFTPLUS(v)))
/* 1 + erf and 1 + tanh lose all digits for negative v: 1 + erf(a) = erfc(-a), and
 * (1 + tanh(a)) / 2 = 1 / (1 + exp(-2 a)). sqrt(2 / pi) = 2/sqrt(pi) * 1/sqrt(2). */
PLAIN(gelu_erf, (T)(0.5 * (double)v * erfc(-(double)v * M_SQRT1_2)))
PLAIN(gelu_tanh, (T)((double)v / (1 + exp(-2 * M_2_SQRTPI * M_SQRT1_2 *
					  ((double)v + 0.044715 * (double)v * (double)v * (double)v)))))
WITH_ATTRS(hardsigmoid, "alpha", 0.2f, "beta", 0.5f, AT_MOST(AT_LEAST(A * v + B, (T)0), (T)1))
WITH_ATTRS(leakyrelu, "alpha", 0.01f, "", 0, v < 0 ? A * v : v)
WITH_ATTRS(thresholdedrelu, "alpha", 1, "", 0, v > A ? v : (T)0)
WITH_ATTRS(elu, "alpha", 1, "", 0, v < 0 ? A * expm1(v) : v)
WITH_ATTRS(celu, "alpha", 1, "", 0, v < 0 ? A * expm1(v / A) : v)
WITH_ATTRS(swish, "alpha", 1, "", 0, v / ((T)1 + exp(-A * v)))
WITH_ATTRS(shrink_float, "lambd", 0.5f, "bias", 0, v < -A ? v + B : v > A ? v - B : (T)0)
/* Version 1 has other defaults, with fewer digits. */
WITH_ATTRS(selu, "alpha", c->node->version < 6 ? 1.6732f : 1.67326319217681884765625f,
	   "gamma", c->node->version < 6 ? 1.0507f : 1.05070102214813232421875f,
	   v > 0 ? B * v : B * (A * expm1(v)))
LOOPS(clip, AT_MOST(AT_LEAST(v, A), B))

static int run_gelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const char *how = rg_node_string(c->node, "approximate", "none");

	return !strcmp(how, "tanh") ? run_gelu_tanh(c, par, err) : run_gelu_erf(c, par, err);
}

/* ---- integers: wrap around as two's complement does ---- */

#define INT_CASE(TYPE, CTYPE, EXPR) \
	case TYPE: { \
		typedef CTYPE T; \
		const T *x = c->in[0].data; \
		T *y = c->out[0].data; \
		for (int64_t i = 0; i < n; i++) { \
			const T v = x[i]; \
			y[i] = (T)(EXPR); \
		} \
		return 0; \
	}

#define INT_OP(NAME, EXPR) \
	static int NAME(const struct rg_call *c) \
	{ \
		int64_t n = rg_shape_count(&c->in[0].shape); \
		switch (c->in[0].dtype) { \
		INT_CASE(RG_I8, int8_t, EXPR) INT_CASE(RG_I16, int16_t, EXPR) \
		INT_CASE(RG_I32, int32_t, EXPR) INT_CASE(RG_I64, int64_t, EXPR) \
		INT_CASE(RG_U8, uint8_t, EXPR) INT_CASE(RG_U16, uint16_t, EXPR) \
		INT_CASE(RG_U32, uint32_t, EXPR) INT_CASE(RG_U64, uint64_t, EXPR) \
		default: return -EINVAL; \
		} \
	}

INT_OP(int_abs, v > 0 ? (uint64_t)v : (uint64_t)0 - (uint64_t)v)
INT_OP(int_neg, (uint64_t)0 - (uint64_t)v)
INT_OP(int_not, ~v)
INT_OP(int_sign, v > 0 ? 1 : v ? -1 : 0)
INT_OP(int_relu, v > 0 ? v : 0)

#define FLOAT_OR_INT(NAME, INT_NAME) \
	static int run_##NAME##_any(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		if (rg_dtype_is_float(c->in[0].dtype)) \
			return run_##NAME(c, par, err); \
		return INT_NAME(c); \
	}
FLOAT_OR_INT(abs, int_abs)
FLOAT_OR_INT(neg, int_neg)
FLOAT_OR_INT(sign, int_sign)
FLOAT_OR_INT(relu, int_relu)

static int run_bitnot(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return int_not(c);
}

/* Integers are shrunk in double; what leaves the type's range is held at its end. */
static int run_shrink(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const double lambd = rg_node_float(c->node, "lambd", 0.5f), bias = rg_node_float(c->node, "bias", 0);
	int64_t n = rg_shape_count(&c->in[0].shape);
	int bits = rg_dtype_bits(c->in[0].dtype), top = bits - rg_dtype_is_signed(c->in[0].dtype);
	double lo = rg_dtype_is_signed(c->in[0].dtype) ? -ldexp(1, top) : 0;
	/* the largest double that converts back */
	double hi = bits == 64 ? nextafter(ldexp(1, top), 0) : ldexp(1, top) - 1;

	if (rg_dtype_is_float(c->in[0].dtype))
		return run_shrink_float(c, par, err);
	for (int64_t i = 0; i < n; i++) {
		double v = rg_ref_get(&c->in[0], i);

		v = v < -lambd ? v + bias : v > lambd ? v - bias : 0;
		rg_ref_set(&c->out[0], i, AT_MOST(AT_LEAST(v, lo), hi));
	}
	return 0;
}

/* ---- Clip: bounds are attributes before version 11 and scalar inputs after ---- */

static const struct rg_tensor *bound(const struct rg_call *c, int i)
{
	if (c->node->version < 11 || i >= c->node->n_in || c->in[i].dtype == RG_UNDEFINED)
		return NULL;
	return &c->in[i];
}

#define CLIP_CASE(TYPE, CTYPE) \
	case TYPE: { \
		const CTYPE *x = c->in[0].data; \
		CTYPE *y = c->out[0].data; \
		const CTYPE *plo = lo ? lo->data : NULL, *phi = hi ? hi->data : NULL; \
		for (int64_t i = 0; i < n; i++) { \
			CTYPE v = x[i]; \
			v = plo && v < *plo ? *plo : v; \
			y[i] = phi && v > *phi ? *phi : v; \
		} \
		return 0; \
	}

static int run_clip(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *lo = bound(c, 1), *hi = bound(c, 2);
	int64_t n = rg_shape_count(&c->in[0].shape);
	struct args p = { -HUGE_VAL, HUGE_VAL };

	switch (c->in[0].dtype) {
	RG_FOR_INTS(CLIP_CASE)
	default:
		break;
	}
	if (c->node->version < 11) {
		p.a = rg_node_float(c->node, "min", -HUGE_VALF);
		p.b = rg_node_float(c->node, "max", HUGE_VALF);
	}
	if (lo)
		p.a = rg_ref_get(lo, 0);
	if (hi)
		p.b = rg_ref_get(hi, 0);
	run_loops(c, clip_f32, clip_f64, &p);
	return 0;
}

/* ---- tests: bool out ---- */

static int run_isnan(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape);
	uint8_t *y = c->out[0].data;

	for (int64_t i = 0; i < n; i++)
		y[i] = isnan(rg_ref_get(&c->in[0], i));
	return 0;
}

static int run_isinf(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool neg = rg_node_int(c->node, "detect_negative", 1),
	     pos = rg_node_int(c->node, "detect_positive", 1);
	int64_t n = rg_shape_count(&c->in[0].shape);
	uint8_t *y = c->out[0].data;

	for (int64_t i = 0; i < n; i++) {
		double v = rg_ref_get(&c->in[0], i);

		y[i] = isinf(v) && (v < 0 ? neg : pos);
	}
	return 0;
}

static int run_not(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape);
	const uint8_t *x = c->in[0].data;
	uint8_t *y = c->out[0].data;

	for (int64_t i = 0; i < n; i++)
		y[i] = !x[i];
	return 0;
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static bool takes_num(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

static bool takes_int(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_INT);
}

static bool takes_bool(const struct rg_call *c)
{
	return c->in[0].dtype == RG_BOOL;
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Abs", takes_num, run_abs_any),
	K("Acos", takes_float, run_acos),
	K("Acosh", takes_float, run_acosh),
	K("Asin", takes_float, run_asin),
	K("Asinh", takes_float, run_asinh),
	K("Atan", takes_float, run_atan),
	K("Atanh", takes_float, run_atanh),
	K("BitwiseNot", takes_int, run_bitnot),
	K("Ceil", takes_float, run_ceil),
	K("Celu", takes_float, run_celu),
	K("Clip", takes_num, run_clip),
	K("Cos", takes_float, run_cos),
	K("Cosh", takes_float, run_cosh),
	K("Elu", takes_float, run_elu),
	K("Erf", takes_float, run_erf),
	K("Exp", takes_float, run_exp),
	K("Floor", takes_float, run_floor),
	K("Gelu", takes_float, run_gelu),
	K("HardSigmoid", takes_float, run_hardsigmoid),
	K("HardSwish", takes_float, run_hardswish),
	K("IsInf", takes_float, run_isinf),
	K("IsNaN", takes_float, run_isnan),
	K("LeakyRelu", takes_float, run_leakyrelu),
	K("Log", takes_float, run_log),
	K("Mish", takes_float, run_mish),
	K("Neg", takes_num, run_neg_any),
	K("Not", takes_bool, run_not),
	K("Reciprocal", takes_float, run_reciprocal),
	K("Relu", takes_num, run_relu_any),
	K("Round", takes_float, run_round),
	K("Selu", takes_float, run_selu),
	K("Shrink", takes_num, run_shrink),
	K("Sigmoid", takes_float, run_sigmoid),
	K("Sign", takes_num, run_sign_any),
	K("Sin", takes_float, run_sin),
	K("Sinh", takes_float, run_sinh),
	K("Softplus", takes_float, run_softplus),
	K("Softsign", takes_float, run_softsign),
	K("Sqrt", takes_float, run_sqrt),
	K("Swish", takes_float, run_swish),
	K("Tan", takes_float, run_tan),
	K("Tanh", takes_float, run_tanh),
	K("ThresholdedRelu", takes_float, run_thresholdedrelu),
};
RG_KERNEL_TABLE(rg_kernels_ref_unary, kernels);
