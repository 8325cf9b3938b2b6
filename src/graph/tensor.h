/*
 * Shapes, and views of dense row-major memory.
 */
#ifndef RG_GRAPH_TENSOR_H
#define RG_GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/dtype.h"

#define RG_MAX_RANK 12

struct rg_shape {
	int rank;                 /* 0: a scalar, one element */
	int64_t dim[RG_MAX_RANK]; /* each >= 0 */
};

/*
 * A view: it owns nothing. `data` is NULL while only type and shape are known.
 * An absent optional input has dtype RG_UNDEFINED.
 */
struct rg_tensor {
	enum rg_dtype dtype;
	struct rg_shape shape;
	void *data;
};

/* Elements; -1 when the product overflows int64 or a dimension is negative. */
int64_t rg_shape_count(const struct rg_shape *s);
/* Product of dims [from, to). -1 on overflow. */
int64_t rg_shape_count_range(const struct rg_shape *s, int from, int to);
/* Bytes of a tensor of this type and shape, packed types rounded up; -1 on
 * overflow or for types without a size. */
int64_t rg_tensor_bytes(enum rg_dtype t, const struct rg_shape *s);
/*
 * A copy of a tensor's bytes in one block, 64-aligned, the caller's to rg_free;
 * the characters of strings lie in the same block. NULL: out of memory, or
 * nothing to copy (0 elements).
 */
void *rg_tensor_copy_data(const struct rg_tensor *t);
bool rg_shape_equal(const struct rg_shape *a, const struct rg_shape *b);
struct rg_shape rg_shape_of(int rank, const int64_t *dims);
/* "1x3x640x640", "scalar" for rank 0. Returns out, of at least 160 bytes. */
char *rg_shape_text(char *out, const struct rg_shape *s);
/* Parses "1x3x640x640" (also ',' between). */
int rg_shape_parse(const char *text, struct rg_shape *out, struct rg_error *err);
/* Numpy broadcasting of two shapes (ONNX docs/Broadcasting.md); false when they
 * do not go together. `out` may alias a or b. */
bool rg_shape_broadcast(const struct rg_shape *a, const struct rg_shape *b, struct rg_shape *out);
/* Row-major strides in elements. */
void rg_shape_strides(const struct rg_shape *s, int64_t strides[RG_MAX_RANK]);
/* Strides to walk `s` as if it had shape `to`: 0 along broadcast dimensions;
 * right-aligned. `s` must broadcast to `to`. */
void rg_shape_broadcast_strides(const struct rg_shape *s, const struct rg_shape *to,
				int64_t strides[RG_MAX_RANK]);

#endif
