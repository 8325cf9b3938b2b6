/* Running a call as the standard operator that it is under another domain, or
 * that it begins with. */
#ifndef RG_KERNELS_REF_STANDARD_H
#define RG_KERNELS_REF_STANDARD_H

#include <string.h>

#include "kernels/kernel.h"

/* `table` holds a reference kernel for that operator, which needs no scratch. */
static inline int rg_ref_run_as(const struct rg_kernel_table *table, const char *op_type, int version,
				const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_node node = *c->node;
	struct rg_call standard = *c;

	node.domain = "";
	node.op_type = op_type;
	node.version = version;
	standard.node = &node;
	for (int i = 0; i < table->count; i++)
		if (!strcmp(table->kernels[i].op_type, op_type))
			return table->kernels[i].run(&standard, par, err);
	return rg_error_set(err, -ENOSYS, "there is no kernel for %s", op_type);
}

#endif
