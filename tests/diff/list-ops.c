/* Prints the operator table: domain (- is the standard one), name, first and last
 * implemented version. */
#include <stdio.h>

#include "graph/op.h"

int main(void)
{
	for (int i = 0; i < rg_op_count(); i++) {
		const struct rg_op *op = rg_op_at(i);

		printf("%s %s %d %d\n", op->domain[0] ? op->domain : "-", op->name, op->supported_from, op->supported_to);
	}
	return 0;
}
