/*
 * QAttention: input and weights as numbers, then Attention. A difference of two
 * bytes times a scale is rounded to float32 once; the sums are in double.
 */
#include <string.h>

#include "graph/contrib.h"
#include "kernels/ref/byte.h"
#include "kernels/tables.h"

static const struct rg_kernel *attention(void)
{
	for (int i = 0; i < rg_kernels_ref_mha.count; i++)
		if (!strcmp(rg_kernels_ref_mha.kernels[i].op_type, "Attention"))
			return &rg_kernels_ref_mha.kernels[i];
	return NULL;
}

/* The call that Attention gets: the numbers lie behind its own scratch. */
static void as_attention(const struct rg_call *c, struct rg_node *node, struct rg_tensor *in, struct rg_call *out)
{
	*node = *c->node;
	node->op_type = "Attention";
	node->n_in = RG_QATTENTION_INPUTS;
	memset(in, 0, RG_QATTENTION_INPUTS * sizeof(*in));
	for (int i = 0; i < RG_QATTENTION_INPUTS; i++)
		if (rg_qattention_input(i) < c->node->n_in)
			in[i] = c->in[rg_qattention_input(i)];
	in[0].dtype = in[1].dtype = RG_F32;
	*out = *c;
	out->node = node;
	out->in = in;
}

static size_t own_scratch(const struct rg_call *as)
{
	return (attention()->scratch_bytes(as, 1) + 63) & ~(size_t)63;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_tensor in[RG_QATTENTION_INPUTS];
	struct rg_node node;
	struct rg_call as;

	as_attention(c, &node, in, &as);
	return own_scratch(&as) +
	       (size_t)(rg_shape_count(&in[0].shape) + rg_shape_count(&in[1].shape)) * sizeof(float);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n_x = rg_shape_count(&c->in[0].shape), n_w = rg_shape_count(&c->in[1].shape);
	int64_t columns = c->in[1].shape.dim[1];
	struct rg_tensor in[RG_QATTENTION_INPUTS];
	struct rg_node node;
	struct rg_call as;
	float *x, *w;

	as_attention(c, &node, in, &as);
	x = (float *)((char *)c->scratch + own_scratch(&as));
	w = x + n_x;
	for (int64_t i = 0; i < n_x; i++)
		x[i] = (float)(rg_byte_at(&c->in[0], i) - rg_byte_zero(c, 6, 0)) * rg_byte_scale(c, 3, 0);
	for (int64_t i = 0; i < n_w; i++)
		w[i] = (float)(rg_byte_at(&c->in[1], i) - rg_byte_zero(c, 7, i % columns)) *
		       rg_byte_scale(c, 4, i % columns);
	in[0].data = x;
	in[1].data = w;
	return attention()->run(&as, par, err);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "QAttention", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_qattention, kernels);
