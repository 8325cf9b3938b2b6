/* ridge's own LookUp: each byte's place in a table of 256. See graph/own.h. */
#include "graph/own.h"
#include "kernels/kernel.h"
#include "kernels/tables.h"

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const uint8_t *x = c->in[0].data, *table = c->in[1].data;
	int64_t n = rg_shape_count(&c->in[0].shape);
	uint8_t *y = c->out[0].data;

	for (int64_t i = 0; i < n; i++)
		y[i] = table[x[i]];
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "LookUp", .domain = RG_OWN_DOMAIN, .name = "ref", .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_look_up, kernels);
