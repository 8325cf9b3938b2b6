/* See activate.h. */
#include "kernels/generic/activate.h"

#include "kernels/generic/vmath.h"

/* v is the element, a and b the parameters. The product with a scale of 1 and the sum with a
 * shift of 0 change nothing but the sign of a zero. */
#define FINISH(NAME, EXPR) \
	static void finish_##NAME(float *y, int64_t n, const struct rg_epilogue *e) \
	{ \
		const float a = e->a, b = e->b, scale = e->scale, shift = e->shift; \
\
		(void)a; \
		(void)b; \
		for (int64_t i = 0; i < n; i++) { \
			float v = y[i]; \
\
			y[i] = rg_fma(scale, (EXPR), shift); \
		} \
	}

FINISH(affine, v)
FINISH(hard_sigmoid, rg_vhard_sigmoidf(v, a, b))
FINISH(hard_swish, rg_vhard_swishf(v))
FINISH(leaky_relu, v < 0 ? a * v : v)
FINISH(sigmoid, rg_vsigmoidf(v))
FINISH(silu, rg_vsiluf(v))
FINISH(swish, rg_vswishf(v, a))
FINISH(tanh, rg_vtanhf(v))
FINISH(gelu, rg_vgeluf(v))
FINISH(gelu_tanh, rg_vgelu_tanhf(v))

bool rg_activate_find(const struct rg_finish *f, rg_finish_fn **fn)
{
	static rg_finish_fn *const all[RG_ACT_COUNT] = {
		[RG_ACT_NONE] = finish_affine,
		[RG_ACT_RELU] = finish_affine,
		[RG_ACT_CLIP] = finish_affine,
		[RG_ACT_HARD_SIGMOID] = finish_hard_sigmoid,
		[RG_ACT_HARD_SWISH] = finish_hard_swish,
		[RG_ACT_LEAKY_RELU] = finish_leaky_relu,
		[RG_ACT_SIGMOID] = finish_sigmoid,
		[RG_ACT_SILU] = finish_silu,
		[RG_ACT_SWISH] = finish_swish,
		[RG_ACT_TANH] = finish_tanh,
		[RG_ACT_GELU] = finish_gelu,
		[RG_ACT_GELU_TANH] = finish_gelu_tanh,
	};

	*fn = all[f->act.kind];
	if (!*fn)
		return false;
	if (*fn == finish_affine && f->scale == 1 && f->shift == 0)
		*fn = NULL;
	return true;
}
