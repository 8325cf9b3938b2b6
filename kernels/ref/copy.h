/*
 * Strided copies: most movement operators are one of these, with strides that
 * say which (0 repeats, negative runs backwards).
 */
#ifndef RG_KERNELS_REF_COPY_H
#define RG_KERNELS_REF_COPY_H

#include "kernels/kernel.h"

enum { RG_COPY_MAX_RANK = 2 * RG_MAX_RANK };

/* Zero-initialise; dimensions from outermost to innermost, strides in elements. */
struct rg_copy {
	int rank;
	int64_t dim[RG_COPY_MAX_RANK], from[RG_COPY_MAX_RANK], to[RG_COPY_MAX_RANK];
};

/* Adds the next inner dimension; merges it with the one before where it goes on
 * where that one ends. */
void rg_copy_dim(struct rg_copy *c, int64_t dim, int64_t from_stride, int64_t to_stride);
/* size_bytes: of an element, 1, 2, 4, 8 or 16. */
void rg_copy_run(const struct rg_copy *c, const void *from, void *to, size_t size_bytes);
/* The same for elements of fewer than 8 bits; the bytes of `to` must be set to
 * zero before, when their number of elements does not fill the last one. */
void rg_copy_run_packed(const struct rg_copy *c, const void *from, void *to, int bits);
/* supports(): all present tensors have elements of whole bytes. */
bool rg_copy_supports(const struct rg_call *c);
/* Strided copies read and write what the output has. */
void rg_copy_traffic(const struct rg_call *c, struct rg_traffic *out);

#endif
