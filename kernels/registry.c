/*
 * The registry: one list of the tables, and look-ups over it. A look-up walks
 * the few hundred entries; it happens once a step while planning, never during
 * a run.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "kernels/tables.h"

static const struct rg_kernel_table *const tables[] = {
	&rg_kernels_blas_conv,
	&rg_kernels_blas_conv_transpose,
	&rg_kernels_blas_gemm,
	RG_GENERIC_TABLE_LIST(binary),
	RG_GENERIC_TABLE_LIST(depthwise),
	RG_GENERIC_TABLE_LIST(direct),
	RG_GENERIC_TABLE_LIST(norm),
	RG_GENERIC_TABLE_LIST(pool),
	RG_GENERIC_TABLE_LIST(transpose),
	RG_GENERIC_TABLE_LIST(unary),
	&rg_kernels_ref_attention,
	&rg_kernels_ref_binary,
	&rg_kernels_ref_cast,
	&rg_kernels_ref_contrib_fused,
	&rg_kernels_ref_contrib_gelu,
	&rg_kernels_ref_contrib_qgemm,
	&rg_kernels_ref_contrib_qlinear,
	&rg_kernels_ref_contrib_qpool,
	&rg_kernels_ref_contrib_weights,
	&rg_kernels_ref_conv,
	&rg_kernels_ref_conv_integer,
	&rg_kernels_ref_conv_transpose,
	&rg_kernels_ref_deform_conv,
	&rg_kernels_ref_dft,
	&rg_kernels_ref_distinct,
	&rg_kernels_ref_einsum,
	&rg_kernels_ref_gather,
	&rg_kernels_ref_geometry,
	&rg_kernels_ref_gqa,
	&rg_kernels_ref_grid_sample,
	&rg_kernels_ref_linear_attention,
	&rg_kernels_ref_loss,
	&rg_kernels_ref_make,
	&rg_kernels_ref_matmul,
	&rg_kernels_ref_matmul_integer,
	&rg_kernels_ref_mha,
	&rg_kernels_ref_ml,
	&rg_kernels_ref_ml_linear,
	&rg_kernels_ref_norm,
	&rg_kernels_ref_pad,
	&rg_kernels_ref_pool,
	&rg_kernels_ref_quant,
	&rg_kernels_ref_random,
	&rg_kernels_ref_reduce,
	&rg_kernels_ref_resize,
	&rg_kernels_ref_rnn,
	&rg_kernels_ref_roi,
	&rg_kernels_ref_rotary,
	&rg_kernels_ref_scatter,
	&rg_kernels_ref_select,
	&rg_kernels_ref_slice,
	&rg_kernels_ref_softmax,
	&rg_kernels_ref_topk,
	&rg_kernels_ref_transpose,
	&rg_kernels_ref_trees,
	&rg_kernels_ref_unary,
	&rg_kernels_ref_variadic,
	&rg_kernels_ref_view,
	&rg_kernels_ref_window,
};
#define N_TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

int rg_kernel_count(void)
{
	int n = 0;

	for (int t = 0; t < N_TABLES; t++)
		n += tables[t]->count;
	return n;
}

const struct rg_kernel *rg_kernel_at(int i)
{
	if (i < 0)
		return NULL;
	for (int t = 0; t < N_TABLES; t++) {
		if (i < tables[t]->count)
			return &tables[t]->kernels[i];
		i -= tables[t]->count;
	}
	return NULL;
}

/* "ai.onnx" and no domain at all are the standard one. */
static const char *plain_domain(const char *domain)
{
	return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}

static bool is_for(const struct rg_kernel *k, const char *domain, const char *op_type)
{
	return !strcmp(k->op_type, op_type) && !strcmp(plain_domain(k->domain), plain_domain(domain));
}

const struct rg_kernel *rg_kernel_find(const char *domain, const char *op_type, const char *name)
{
	for (int t = 0; t < N_TABLES; t++) {
		for (int i = 0; i < tables[t]->count; i++) {
			const struct rg_kernel *k = &tables[t]->kernels[i];

			if (is_for(k, domain, op_type) && !strcmp(k->name, name))
				return k;
		}
	}
	return NULL;
}

const struct rg_kernel *rg_kernel_select(const struct rg_call *c, uint32_t isa)
{
	const struct rg_kernel *best = NULL;

	for (int t = 0; t < N_TABLES; t++) {
		for (int i = 0; i < tables[t]->count; i++) {
			const struct rg_kernel *k = &tables[t]->kernels[i];

			if (!is_for(k, c->node->domain, c->node->op_type) || (k->isa & ~isa))
				continue;
			if (best && k->rank <= best->rank)
				continue;
			if (!k->supports || k->supports(c))
				best = k;
		}
	}
	return best;
}
