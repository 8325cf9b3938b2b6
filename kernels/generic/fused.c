/* ONNX Runtime's fused elementwise operators, float32: Gelu with a bias, its
 * approximations, and sums of three. */
#include "graph/contrib.h"
#include "kernels/generic/ewise-kernel.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

RG_EW_PAIR(add, float, float, x + z)

#define ROW(NAME, EXPR) \
	static void row_##NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const float *x = p->in[0], a = p->a; \
		float *y = out; \
\
		(void)a; \
		RG_EW_LOOP \
		for (int64_t i = 0; i < n; i++) { \
			float v = x[i]; \
\
			y[i] = (EXPR); \
		} \
	}
ROW(gelu, rg_vgeluf(v))
ROW(fast_gelu, rg_vgelu_tanhf(v))
ROW(quick_gelu, rg_vswishf(v, a))
/* Of a sum: in one pass, since that is what they are for. */
RG_EW_PAIR(bias_gelu, float, float, rg_vgeluf(x + z))
RG_EW_PAIR(bias_fast_gelu, float, float, rg_vgelu_tanhf(x + z))

static bool all_f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	return true;
}

static int biased(struct rg_ew *e, const struct rg_call *c, const int *in, rg_ew_fn *plain, rg_ew_fn *with_bias,
		  int cost)
{
	if (!all_f32(c))
		return -ENOTSUP;
	if (c->node->n_in > 1 && in[1] >= 0)
		return rg_ew_apply(e, with_bias, RG_EW_EITHER, 2, in, 0, 0, 4, cost);
	return rg_ew_apply(e, plain, RG_EW_ROWS, 1, in, 0, 0, 4, cost);
}

static int node_gelu(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return biased(e, c, in, row_gelu, bias_gelu, 10);
}

static int node_biased_gelu(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return node_gelu(e, c, in);
}

static int node_fast_gelu(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return biased(e, c, in, row_fast_gelu, bias_fast_gelu, 6);
}

static int node_quick_gelu(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	if (!all_f32(c))
		return -ENOTSUP;
	return rg_ew_apply(e, row_quick_gelu, RG_EW_ROWS, 1, in, rg_node_float(c->node, "alpha", 1.702f), 0, 4, 5);
}

/* A bias of the last dimension, and another tensor. */
static int node_bias_add(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	int sum;

	if (!all_f32(c))
		return -ENOTSUP;
	sum = rg_ew_apply(e, add, RG_EW_EITHER, 2, in, 0, 0, 4, 2);
	return sum < 0 ? sum : rg_ew_apply(e, add, RG_EW_EITHER, 2, (const int[]){ sum, in[2] }, 0, 0, 4, 2);
}

#define LIST(X) \
	X(RG_CONTRIB_DOMAIN, "BiasAdd", bias_add) X(RG_CONTRIB_DOMAIN, "BiasGelu", biased_gelu) \
	X(RG_CONTRIB_DOMAIN, "FastGelu", fast_gelu) \
	X(RG_CONTRIB_DOMAIN, "Gelu", gelu) X(RG_CONTRIB_DOMAIN, "QuickGelu", quick_gelu)
RG_EW_FAMILY(fused, LIST);
