/*
 * Operators whose output is their input with another shape, or with another type
 * of as many bits (BitCast). The planner makes aliases of the former where it
 * can; these copies are for where it cannot (a graph input that is an output).
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

#define VIEW(NAME) { .op_type = NAME, .domain = "", .name = "ref", .supports = any, .traffic = rg_copy_traffic, \
		     .run = view }

static const struct rg_kernel kernels[] = {
	VIEW("BitCast"),
	VIEW("Identity"),
	VIEW("Reshape"),
	VIEW("Flatten"),
	VIEW("Squeeze"),
	VIEW("Unsqueeze"),
};
RG_KERNEL_TABLE(rg_kernels_ref_view, kernels);
