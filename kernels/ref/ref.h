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
 * doubles. Any float or integer type, packed ones too; 64-bit integers round to
 * double. Storing to an integer type truncates towards zero and the value must
 * be in range; storing to a narrow float type saturates. What pads the last byte
 * of a packed type is left as it is (rg_ref_clear).
 */
void rg_ref_load(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, double *buf);
void rg_ref_store(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, const double *buf);
/* For outputs of a packed type, before their elements are stored: all bytes zero. */
void rg_ref_clear(const struct rg_tensor *t);
/* n elements from flat index `first` of shape `out` on, t broadcast to it; n > 0. */
void rg_ref_load_broadcast(const struct rg_tensor *t, const struct rg_shape *out, int64_t first, int64_t n,
			   double *buf);
/* In a fixed order, four partial sums. */
double rg_ref_sum(const double *buf, int64_t n);
/* The kernel of Cast among numbers and booleans. */
int rg_ref_cast(const struct rg_call *c, const struct rg_par *par, struct rg_error *err);
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

/*
 * A shape split into the dimensions that a reduction keeps and those that it
 * folds (bits of `axes`), neighbours of a kind merged. The innermost folded
 * dimension stands apart as `run` elements `step` apart:
 *
 *   index and at start at 0, at least one element on each side
 *   do {
 *           inner = at; do { run elements from inner on } while (next(&reduced, ...));
 *   } while (rg_ref_dims_next(&kept, index, &at));
 */
struct rg_ref_dims {
	int n;
	int64_t count; /* elements, the run included */
	int64_t dim[RG_MAX_RANK], stride[RG_MAX_RANK];
};
struct rg_ref_split {
	struct rg_ref_dims kept, reduced;
	int64_t run, step;
};
void rg_ref_split(const struct rg_shape *s, uint32_t axes, struct rg_ref_split *out);
/* Moves *at to the next element; false, and back at the start, after the last. */
bool rg_ref_dims_next(const struct rg_ref_dims *d, int64_t *index, int64_t *at);

#endif
