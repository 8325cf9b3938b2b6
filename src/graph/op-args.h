/*
 * Arguments that inference and kernels must read alike, by operator version:
 * what was an attribute in one version is an input in the next. `in` has
 * node->n_in entries (absent ones RG_UNDEFINED); the argument inputs must have
 * data, else RG_ENEED_VALUE with *need set to the input.
 */
#ifndef RG_GRAPH_OP_ARGS_H
#define RG_GRAPH_OP_ARGS_H

#include "graph/graph.h"

/* Elements of an int32 or int64 tensor. The count, or a negative errno: more
 * than cap, another type, or RG_ENEED_VALUE when it has no data. */
int rg_args_ints(const struct rg_tensor *t, int64_t *vals, int cap);
/* Axis in [-rank, rank) to [0, rank); -1 when outside. */
int rg_args_axis(int64_t axis, int rank);

/* Slice: element i of dimension d of the output is element start + i * step. */
struct rg_slice_args {
	int64_t start[RG_MAX_RANK], step[RG_MAX_RANK], count[RG_MAX_RANK];
};
int rg_args_slice(const struct rg_node *n, const struct rg_tensor *in, struct rg_slice_args *out,
		  int *need, struct rg_error *err);

enum rg_pad_mode { RG_PAD_CONSTANT, RG_PAD_REFLECT, RG_PAD_EDGE, RG_PAD_WRAP };
struct rg_pad_args {
	enum rg_pad_mode mode;
	int64_t before[RG_MAX_RANK], after[RG_MAX_RANK]; /* negative ones crop */
};
int rg_args_pad(const struct rg_node *n, const struct rg_tensor *in, struct rg_pad_args *out,
		int *need, struct rg_error *err);

/* Shape: the range of dimensions [start, end) that it gives (all before version
 * 15); empty when end <= start. */
void rg_args_shape_range(const struct rg_node *n, int rank, int64_t *start, int64_t *end);

/* Split: at most so many outputs. */
#define RG_ARGS_MAX_SPLIT 1024
/* Split: the axis, and the length of each of node->n_out pieces. */
int rg_args_split(const struct rg_node *n, const struct rg_tensor *in, int *axis, int64_t *length,
		  int *need, struct rg_error *err);

/* Tile: how often along each dimension of input 0. */
int rg_args_tile(const struct rg_node *n, const struct rg_tensor *in, int64_t repeats[RG_MAX_RANK],
		 int *need, struct rg_error *err);

/* TopK, OneHot and their like: one integer out of a tensor of one element, of
 * any integer type, or of a float that holds one. */
int rg_args_scalar(const struct rg_tensor *t, int64_t *out);

/* NonZero: whether an element is (-0.0 is zero, NaN is not). Whole-byte types. */
bool rg_args_is_nonzero(enum rg_dtype t, const void *element);

#endif
