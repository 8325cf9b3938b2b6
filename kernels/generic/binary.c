/* Arithmetic of two operands with broadcasting: float32, and int32 and int64 where
 * they wrap without a check. PRelu and Pow. */
#include <math.h>

#include "kernels/generic/ewise-kernel.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

RG_EW_PAIR(add_f32, float, float, x + z)
RG_EW_PAIR(sub_f32, float, float, x - z)
RG_EW_PAIR(mul_f32, float, float, x * z)
RG_EW_PAIR(div_f32, float, float, x / z)
RG_EW_PAIR(prelu_f32, float, float, x < 0 ? x * z : x)
RG_EW_PAIR(add_i32, uint32_t, uint32_t, x + z)
RG_EW_PAIR(sub_i32, uint32_t, uint32_t, x - z)
RG_EW_PAIR(mul_i32, uint32_t, uint32_t, x * z)
RG_EW_PAIR(add_i64, uint64_t, uint64_t, x + z)
RG_EW_PAIR(sub_i64, uint64_t, uint64_t, x - z)
RG_EW_PAIR(mul_i64, uint64_t, uint64_t, x * z)

/* Before version 7 broadcasting was another one, by attributes. */
static int pair(struct rg_ew *e, const struct rg_call *c, const int *in, rg_ew_fn *f32, rg_ew_fn *i32, rg_ew_fn *i64)
{
	enum rg_dtype t = c->in[0].dtype;
	rg_ew_fn *fn = t == RG_F32 ? f32 : t == RG_I32 ? i32 : t == RG_I64 ? i64 : NULL;

	if (c->node->version < 7 || !fn || !rg_ew_is(c, 1, t))
		return -ENOTSUP;
	return rg_ew_apply(e, fn, RG_EW_EITHER, 2, in, 0, 0, (int)rg_dtype_bytes(t), 2);
}

#define NODE(NAME, F32, I32, I64) \
	static int node_##NAME(struct rg_ew *e, const struct rg_call *c, const int *in) \
	{ \
		return pair(e, c, in, F32, I32, I64); \
	}
NODE(add, add_f32, add_i32, add_i64)
NODE(sub, sub_f32, sub_i32, sub_i64)
NODE(mul, mul_f32, mul_i32, mul_i64)
NODE(div, div_f32, NULL, NULL)
NODE(prelu, prelu_f32, NULL, NULL)

/* ---- Pow: exponents that have a name, as one element, have a loop ---- */

/* Two doubles at a time are no faster than C's own. */
RG_INLINE float power(float x, float exponent)
{
	return RG_VEC > 4 ? rg_vpowf(x, exponent) : powf(x, exponent);
}

#define POWER(EXPR) do { \
		RG_EW_LOOP \
		for (int64_t i = 0; i < n; i++) { \
			const float x = a[i]; \
\
			y[i] = (EXPR); \
		} \
	} while (0)

static void power_row(float *y, const float *a, float exponent, int64_t n)
{
	if (exponent == 2)
		POWER(x * x);
	else if (exponent == 3)
		POWER(x * x * x);
	else if (exponent == 1)
		POWER(x);
	else if (exponent == -1)
		POWER(1.0f / x);
	else if (exponent == 0.5f)
		POWER(x == -INFINITY ? INFINITY : sqrtf(x + 0.0f));
	else
		POWER(power(x, exponent));
}

static void pow_f32(void *out, const struct rg_ew_args *p, int64_t n)
{
	const float *a = p->in[0], *b = p->in[1];
	float *y = out;

	if (p->single == 2)
		power_row(y, a, *b, n);
	else
		RG_EW_LOOP
		for (int64_t i = 0; i < n; i++)
			y[i] = power(a[i], b[i]);
}

/* Above 2^24 a whole number may not be a float. */
#define WHOLE_EXPONENT(NAME, T) \
	static void NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const float *a = p->in[0]; \
		const T *b = p->in[1]; \
		float *y = out; \
\
		if (p->single == 2 && *b >= -(1 << 24) && *b <= 1 << 24) \
			power_row(y, a, (float)*b, n); \
		else \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) \
				y[i] = (float)pow((double)a[i], (double)b[p->single == 2 ? 0 : i]); \
	}
WHOLE_EXPONENT(pow_i32, int32_t)
WHOLE_EXPONENT(pow_i64, int64_t)

static int node_pow(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	enum rg_dtype t = c->node->n_in > 1 ? c->in[1].dtype : RG_UNDEFINED;
	rg_ew_fn *fn = t == RG_F32 ? pow_f32 : t == RG_I32 ? pow_i32 : t == RG_I64 ? pow_i64 : NULL;

	if (c->node->version < 7 || !fn || !rg_ew_is(c, 0, RG_F32))
		return -ENOTSUP;
	return rg_ew_apply(e, fn, 1 << 0 | 1 << 2, 2, in, 0, 0, 4, 20);
}

#define LIST(X) \
	X("", "Add", add) X("", "Div", div) X("", "Mul", mul) X("", "PRelu", prelu) X("", "Pow", pow) \
	X("", "Sub", sub)
RG_EW_FAMILY(binary, LIST);
