/*
 * What the reference kernels share: moving elements of any numeric type
 * through double, and walking broadcast operands.
 *
 * The reference computes float16 and bfloat16 in float32 or wider and rounds
 * once at the end; integers never pass through here when they could lose bits.
 */
#ifndef RG_KERNELS_REF_REF_H
#define RG_KERNELS_REF_REF_H

#include "graph/op-types.h"
#include "kernels/kernel.h"

/* Expands X(enum value, C type) for each integer type. */
#define RG_FOR_INTS(X) \
	X(RG_I8, int8_t) X(RG_I16, int16_t) X(RG_I32, int32_t) X(RG_I64, int64_t) \
	X(RG_U8, uint8_t) X(RG_U16, uint16_t) X(RG_U32, uint32_t) X(RG_U64, uint64_t)

/* Elements that fit a buffer on the stack; loops over long rows go by this. */
#define RG_REF_CHUNK 256

/*
 * n elements of t, the first at index `first` and `stride` apart, to or from
 * doubles. Any float or integer type; 64-bit integers round to double. Storing
 * to an integer type truncates towards zero and the value must be in range.
 */
void rg_ref_load(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, double *buf);
void rg_ref_store(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, const double *buf);
/* One element. */
double rg_ref_get(const struct rg_tensor *t, int64_t i);
void rg_ref_set(const struct rg_tensor *t, int64_t i, double v);

/*
 * Walks up to three operands as if they had the output's shape. Neighbouring
 * dimensions are merged where all operands allow it, so that the innermost one
 * is as long as it can be:
 *
 *   rg_walk_start(&w, out_shape, n, shapes);
 *   while (rg_walk_next(&w))
 *           w.inner elements: the output from w.out on, contiguous; operand k
 *           from w.at[k] on, w.step[k] (0 or more) apart
 */
struct rg_walk {
	int n, rank;                        /* operands; outer dimensions */
	int64_t dim[RG_MAX_RANK], index[RG_MAX_RANK];
	int64_t stride[3][RG_MAX_RANK];
	int64_t inner, step[3];
	int64_t out, at[3];
	bool started, empty;
};
void rg_walk_start(struct rg_walk *w, const struct rg_shape *out, int n,
		   const struct rg_shape *const *shapes);
bool rg_walk_next(struct rg_walk *w);

#endif
