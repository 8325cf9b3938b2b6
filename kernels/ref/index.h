/* Indices that come as data: checked before anything is read or written. */
#ifndef RG_KERNELS_REF_INDEX_H
#define RG_KERNELS_REF_INDEX_H

#include <inttypes.h>

#include "base/error.h"
#include "graph/tensor.h"

/* Index i of an int32 or int64 tensor, negative ones from the end, in [0, dim). */
static inline int rg_index_at(const struct rg_tensor *t, int64_t i, int64_t dim, int64_t *out,
			      struct rg_error *err)
{
	int64_t v = t->dtype == RG_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];

	if (v < -dim || v >= dim) {
		rg_error_set(err, -ERANGE, "index %" PRId64 " is outside of a dimension of %" PRId64, v, dim);
		rg_error_hint(err, "check the values of the inputs that the indices come from");
		return -ERANGE;
	}
	*out = v < 0 ? v + dim : v;
	return 0;
}

/* A tuple of `depth` indices from element `first` on, into dimensions
 * [from, from + depth) of s: the element offset within those and later ones. */
static inline int rg_index_nd(const struct rg_tensor *t, int64_t first, int depth, const struct rg_shape *s,
			      int from, int64_t *out, struct rg_error *err)
{
	int64_t at = 0, i;

	for (int k = 0; k < depth; k++) {
		if (rg_index_at(t, first + k, s->dim[from + k], &i, err))
			return -ERANGE;
		at = at * s->dim[from + k] + i;
	}
	*out = at * rg_shape_count_range(s, from + depth, s->rank);
	return 0;
}

/* The next position in row-major order. */
static inline void rg_index_next(const struct rg_shape *s, int64_t *pos)
{
	for (int d = s->rank - 1; d >= 0 && ++pos[d] == s->dim[d]; d--)
		pos[d] = 0;
}

#endif
