/* The activations that ONNX Runtime fuses behind convolutions and products. */
#ifndef RG_KERNELS_REF_ACTIVATION_H
#define RG_KERNELS_REF_ACTIVATION_H

#include <math.h>

#include "graph/contrib.h"

static inline double rg_ref_softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* NaN stays NaN; Clip's lower bound comes first, as in Clip. */
static inline double rg_ref_activate(const struct rg_activation *act, double x)
{
	double a = act->a, b = act->b;

	switch (act->kind) {
	case RG_ACT_RELU:
		return x < 0 ? 0 : x;
	case RG_ACT_TANH:
		return tanh(x);
	case RG_ACT_SIGMOID:
		return 1 / (1 + exp(-x));
	case RG_ACT_SILU:
		return x / (1 + exp(-x));
	case RG_ACT_LEAKY_RELU:
		return x < 0 ? a * x : x;
	case RG_ACT_CLIP:
		x = x < a ? a : x;
		return x > b ? b : x;
	case RG_ACT_HARD_SIGMOID:
		x = a * x + b;
		x = x < 0 ? 0 : x;
		return x > 1 ? 1 : x;
	case RG_ACT_ELU:
		return x < 0 ? a * expm1(x) : x;
	case RG_ACT_SELU:
		return x > 0 ? b * x : b * a * expm1(x);
	case RG_ACT_SOFTPLUS:
		return rg_ref_softplus(x);
	case RG_ACT_SOFTSIGN:
		return x / (1 + fabs(x));
	case RG_ACT_THRESHOLDED_RELU:
		return x > a ? x : 0;
	case RG_ACT_PARAMETRIC_SOFTPLUS:
		return a * rg_ref_softplus(b * x);
	case RG_ACT_SCALED_TANH:
		return a * tanh(b * x);
	case RG_ACT_HARD_SWISH:
		a = x / 6 + 0.5;
		a = a < 0 ? 0 : a;
		return x * (a > 1 ? 1 : a);
	case RG_ACT_GELU:
		return 0.5 * x * erfc(-x * 0.70710678118654752440);
	case RG_ACT_GELU_TANH:
		return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
	case RG_ACT_SWISH:
		return x / (1 + exp(-a * x));
	default:
		return x;
	}
}

#endif
