/* 8-bit elements, their scales and zero points. */
#ifndef RG_KERNELS_REF_BYTE_H
#define RG_KERNELS_REF_BYTE_H

#include <math.h>

#include "kernels/ref/ref.h"

static inline int32_t rg_byte_at(const struct rg_tensor *t, int64_t i)
{
	return t->dtype == RG_I8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

static inline bool rg_byte_given(const struct rg_call *c, int input)
{
	return input < c->node->n_in && c->in[input].dtype != RG_UNDEFINED;
}

/* Element i of a list, or the only one. */
static inline float rg_byte_scale(const struct rg_call *c, int input, int64_t i)
{
	const struct rg_tensor *t = &c->in[input];

	return ((const float *)t->data)[rg_shape_count(&t->shape) == 1 ? 0 : i];
}

/* The same of zero points; 0 where they are absent. */
static inline int32_t rg_byte_zero(const struct rg_call *c, int input, int64_t i)
{
	if (!rg_byte_given(c, input))
		return 0;
	return rg_byte_at(&c->in[input], rg_shape_count(&c->in[input].shape) == 1 ? 0 : i);
}

/* DynamicQuantizeLinear of n numbers: the scale, and returned the zero point.
 * Nothing but zeros has the scale 1, as in ONNX Runtime: the definition divides
 * by zero there. `to` may be NULL. */
int32_t rg_byte_quantize(const float *x, int64_t n, uint8_t *to, float *scale);

/* Writes a number that was already divided by the scale and rounded, plus the
 * zero point: at the ends of the type where it is outside; NaN at the low one. */
static inline void rg_byte_set(const struct rg_tensor *t, int64_t i, float v)
{
	float lo = t->dtype == RG_I8 ? -128 : 0;

	v = v >= lo ? v : lo;
	v = v <= lo + 255 ? v : lo + 255;
	((uint8_t *)t->data)[i] = (uint8_t)(int32_t)v; /* the low bits are the same for int8 */
}

#endif
