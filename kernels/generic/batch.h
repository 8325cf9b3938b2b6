/* The products of a batch whose operands broadcast: where each begins, and which of them are one product. */
#ifndef RG_KERNELS_GENERIC_BATCH_H
#define RG_KERNELS_GENERIC_BATCH_H

#include "kernels/generic/generic.h"

struct rg_batch {
	int64_t count;
	int rank;
	int64_t dim[RG_MAX_RANK], a_step[RG_MAX_RANK], b_step[RG_MAX_RANK]; /* in elements */
};

/* Products that share B, and whose A, m rows a_row apart, lie behind each other, become one with more rows. */
RG_INLINE void rg_batch_join(struct rg_batch *b, int64_t *m, int64_t a_row, int64_t a_col)
{
	int64_t expect = *m * a_row;

	if (a_col != 1 || b->count <= 1)
		return;
	for (int d = b->rank - 1; d >= 0; d--) {
		if (b->dim[d] != 1 && (b->b_step[d] != 0 || b->a_step[d] != expect))
			return;
		expect *= b->dim[d];
	}
	*m *= b->count;
	b->count = 1;
	b->rank = 0;
}

/* Where A and B of product i begin. */
RG_INLINE void rg_batch_at(const struct rg_batch *b, int64_t i, int64_t *a_at, int64_t *b_at)
{
	*a_at = *b_at = 0;
	for (int d = b->rank - 1; d >= 0; d--) {
		*a_at += i % b->dim[d] * b->a_step[d];
		*b_at += i % b->dim[d] * b->b_step[d];
		i /= b->dim[d];
	}
}

#endif
