/*
 * Sets of element types, and the checks of inputs that inference functions
 * share. An operator's entry accepts only what its definition allows, so that
 * a kernel never sees another type.
 */
#ifndef RG_GRAPH_OP_TYPES_H
#define RG_GRAPH_OP_TYPES_H

#include "graph/op.h"

#define RG_BIT(t) (1u << (t))
#define RG_SET_FLOAT (RG_BIT(RG_F32) | RG_BIT(RG_F64) | RG_BIT(RG_F16) | RG_BIT(RG_BF16))
#define RG_SET_SINT (RG_BIT(RG_I8) | RG_BIT(RG_I16) | RG_BIT(RG_I32) | RG_BIT(RG_I64))
#define RG_SET_UINT (RG_BIT(RG_U8) | RG_BIT(RG_U16) | RG_BIT(RG_U32) | RG_BIT(RG_U64))
#define RG_SET_INT (RG_SET_SINT | RG_SET_UINT)
#define RG_SET_NUM (RG_SET_FLOAT | RG_SET_INT)
#define RG_SET_F8 \
	(RG_BIT(RG_F8E4M3FN) | RG_BIT(RG_F8E4M3FNUZ) | RG_BIT(RG_F8E5M2) | RG_BIT(RG_F8E5M2FNUZ))
#define RG_SET_SMALL_INT (RG_BIT(RG_U4) | RG_BIT(RG_I4) | RG_BIT(RG_U2) | RG_BIT(RG_I2))
#define RG_SET_NARROW (RG_SET_F8 | RG_SET_SMALL_INT | RG_BIT(RG_F4E2M1) | RG_BIT(RG_F8E8M0))
#define RG_SET_INT8 (RG_BIT(RG_I8) | RG_BIT(RG_U8))

static inline bool rg_in_set(enum rg_dtype t, uint32_t set)
{
	return (unsigned)t < 32 && (set >> t & 1);
}

/* Input i, or NULL when it is absent. */
const struct rg_value *rg_infer_in(const struct rg_infer *c, int i);
/* Input i is there and its type is in `set`. */
int rg_infer_type(struct rg_infer *c, int i, uint32_t set, struct rg_error *err);
/* Input i is absent, or has the type of input `like`, which is there. */
int rg_infer_like(struct rg_infer *c, int i, int like, struct rg_error *err);
/* Input i is absent, or has one element. */
int rg_infer_scalar(struct rg_infer *c, int i, struct rg_error *err);
/* Input i is absent, or has exactly this shape. */
int rg_infer_shape_is(struct rg_infer *c, int i, const struct rg_shape *s, struct rg_error *err);

/* flops and sfu an element of the first output, as integer operations (sum of
 * both) when that output is of an integer type. */
void rg_cost_elementwise(const struct rg_cost_in *c, struct rg_cost *out, int flops, int sfu);
/* Products and sums of counts; unknown (-1) or overflowing stays -1. */
int64_t rg_cost_mul(int64_t a, int64_t b);
int64_t rg_cost_add(int64_t a, int64_t b);

#endif
