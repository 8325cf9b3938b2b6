/*
 * The two-operand loops, for the kernels that fold many operands with them.
 */
#ifndef RG_KERNELS_REF_BINARY_H
#define RG_KERNELS_REF_BINARY_H

#include "graph/tensor.h"

/* n elements; sa and sb are the operands' strides in elements, 0 allowed. y may
 * be the very memory of a or b when that one has stride 1. */
typedef void rg_ref_binary_loop(const void *a, int64_t sa, const void *b, int64_t sb, void *y, int64_t n);

struct rg_ref_binary { /* by element type; float16 and bfloat16 use RG_F32 */
	rg_ref_binary_loop *loops[RG_DTYPE_COUNT];
};
extern const struct rg_ref_binary rg_ref_add, rg_ref_min, rg_ref_max;

/* y = op(a, b), broadcast to y's shape; the table has a loop for the type. */
void rg_ref_binary_run(const struct rg_ref_binary *table, const struct rg_tensor *a,
		       const struct rg_tensor *b, const struct rg_tensor *y);

#endif
