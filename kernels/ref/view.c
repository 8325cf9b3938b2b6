/*
 * Operators whose output is their input with another shape. The planner makes
 * aliases of them where it can; these copies are for where it cannot (a graph
 * input that is an output, a Dropout whose mask is wanted).
 */
#include <string.h>

#include "kernels/ref/copy.h"
#include "kernels/tables.h"

static bool any(const struct rg_call *c)
{
	return rg_dtype_bits(c->in[0].dtype) != 0;
}

static int view(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);

	/* The same pointer when the planner aliased them after all. */
	if (bytes > 0 && c->out[0].data && c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, (size_t)bytes);
	return 0;
}

/* Nothing was dropped: the mask is ones, of the data's type up to version 7. */
static bool dropout_supports(const struct rg_call *c)
{
	enum rg_dtype mask = c->node->n_out > 1 ? c->out[1].dtype : RG_UNDEFINED;

	return any(c) && (mask == RG_UNDEFINED || mask == RG_BOOL || mask == RG_F32 || mask == RG_F64 ||
			  mask == RG_F16);
}

static int dropout(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *mask = c->node->n_out > 1 ? &c->out[1] : NULL;
	int64_t n;

	view(c, par, err);
	if (!mask || mask->dtype == RG_UNDEFINED)
		return 0;
	n = rg_shape_count(&mask->shape);
	for (int64_t i = 0; i < n; i++) {
		switch (mask->dtype) {
		case RG_F32: ((float *)mask->data)[i] = 1; break;
		case RG_F64: ((double *)mask->data)[i] = 1; break;
		case RG_F16: ((uint16_t *)mask->data)[i] = 0x3c00; break;
		default: ((uint8_t *)mask->data)[i] = 1; break;
		}
	}
	return 0;
}

#define VIEW(NAME) { .op_type = NAME, .domain = "", .name = "ref", .supports = any, .traffic = rg_copy_traffic, \
		     .run = view }

static const struct rg_kernel kernels[] = {
	VIEW("Identity"),
	VIEW("Reshape"),
	VIEW("Flatten"),
	VIEW("Squeeze"),
	VIEW("Unsqueeze"),
	{ .op_type = "Dropout", .domain = "", .name = "ref", .supports = dropout_supports,
	  .traffic = rg_copy_traffic, .run = dropout },
};
RG_KERNEL_TABLE(rg_kernels_ref_view, kernels);
