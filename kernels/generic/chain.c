/*
 * ridge's own Chain: elementwise operators one after the other over pieces that
 * stay in L1, as one program of ewise.h, which is built once for the shapes.
 */
#include "kernels/generic/generic.h"

#include "graph/own.h"
#include "kernels/chain.h"
#include "kernels/tables.h"

static bool supports(const struct rg_call *c)
{
	struct rg_ew e;

	return rg_chain_call_program(&e, c, RG_LEVEL_ISA);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	(void)c;
	return sizeof(struct rg_ew);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	if (!rg_chain_call_program(prepared, c, RG_LEVEL_ISA))
		return rg_error_set(err, -ENOTSUP, "the chain does not fit a program");
	return 0;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const void *data[RG_EW_MAX_IN];

	(void)err;
	for (int i = 0; i < c->node->n_in; i++)
		data[i] = c->in[i].data;
	rg_ew_run(c->prepared, data, c->out[0].data, par);
	return 0;
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_ew e;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (rg_chain_call_program(&e, c, RG_LEVEL_ISA))
		rg_ew_traffic(&e, out);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Chain", .domain = RG_OWN_DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .prepared_bytes = prepared_bytes, .prepare = prepare,
	  .in_place = UINT32_MAX, .traffic = traffic, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(chain), kernels);
