/* What the kernels on bytes ask of their calls: which inputs there are, and bytes by their type. */
#ifndef RG_KERNELS_GENERIC_BYTE_ARGS_H
#define RG_KERNELS_GENERIC_BYTE_ARGS_H

#include "kernels/generic/generic.h"

/* i: an input, or -1: the operator has none such. */
RG_INLINE bool rg_arg_given(const struct rg_call *c, int i)
{
	return i >= 0 && i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED;
}

/* Its elements; 0 where it is absent. */
RG_INLINE int64_t rg_arg_count(const struct rg_call *c, int i)
{
	return rg_arg_given(c, i) ? rg_shape_count(&c->in[i].shape) : 0;
}

/* Absent, one of it, or n. */
RG_INLINE bool rg_arg_one_or(const struct rg_call *c, int i, int64_t n)
{
	int64_t have = rg_arg_count(c, i);

	return !rg_arg_given(c, i) || have == 1 || have == n;
}

RG_INLINE bool rg_is_bytes(enum rg_dtype t)
{
	return t == RG_I8 || t == RG_U8;
}

RG_INLINE int32_t rg_arg_byte(const struct rg_tensor *t, int64_t i)
{
	return t->dtype == RG_I8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* Of scratch: parts of it begin on pairs of cache lines, as rg_lane_room has them. */
RG_INLINE int64_t rg_scratch_bytes(int64_t bytes)
{
	return rg_ceil_div(bytes, 128) * 128;
}

#endif
