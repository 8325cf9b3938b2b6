/*
 * The built-in calls of the self-check (proof.h). A kernel may carry
 * RG_KERNEL_UNPROVEN when its operator has calls here; elementwise operators of one
 * and of two inputs have them all.
 */
#ifndef RG_KERNELS_PROOF_CALLS_H
#define RG_KERNELS_PROOF_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/dtype.h"

enum { RG_PROOF_INPUTS = 9, RG_PROOF_ATTRS = 3 };

struct rg_proof_call {
	const char *op_type;     /* NULL: elementwise operators with n_in inputs */
	int version;             /* 0: the newest that is supported */
	bool positive;           /* inputs from 0.1 to 1.1, not -1 to 1: variances */
	struct {
		const char *name;
		int n;           /* a list of n; 0: one number; -1: text */
		int64_t v[4];
		const char *s;
	} attrs[RG_PROOF_ATTRS];
	int n_in;
	struct {
		int rank;
		int64_t dim[4];
		enum rg_dtype dtype; /* 0: float32; int8, uint8 or int32 */
	} in[RG_PROOF_INPUTS];
};

/* Call number i for an operator, NULL after the last. */
struct rg_op;
const struct rg_proof_call *rg_proof_call_at(const struct rg_op *op, int i);

#endif
