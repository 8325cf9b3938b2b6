/* Max, Min, Sum and Mean of up to eight inputs, float32, folded from the first on:
 * partial results stay in L1. Max and Min of int32 and int64 as well. */
#include "kernels/generic/ewise-kernel.h"
#include "kernels/tables.h"

/* NaN on either side is the result. */
RG_EW_PAIR(max_f32, float, float, ((x > z) | (x != x)) ? x : z)
RG_EW_PAIR(min_f32, float, float, ((x < z) | (x != x)) ? x : z)
RG_EW_PAIR(max_i32, int32_t, int32_t, x > z ? x : z)
RG_EW_PAIR(min_i32, int32_t, int32_t, x < z ? x : z)
RG_EW_PAIR(max_i64, int64_t, int64_t, x > z ? x : z)
RG_EW_PAIR(min_i64, int64_t, int64_t, x < z ? x : z)
RG_EW_PAIR(sum_f32, float, float, x + z)
RG_EW_PAIR(divide_f32, float, float, x / z)

static void copy_4(void *out, const struct rg_ew_args *p, int64_t n)
{
	memmove(out, p->in[0], (size_t)n * 4);
}

static void copy_8(void *out, const struct rg_ew_args *p, int64_t n)
{
	memmove(out, p->in[0], (size_t)n * 8);
}

/* Before version 8 there was no broadcasting; the shapes are then the same. */
static int fold(struct rg_ew *e, const struct rg_call *c, const int *in, rg_ew_fn *f32, rg_ew_fn *i32, rg_ew_fn *i64)
{
	enum rg_dtype t = c->in[0].dtype;
	rg_ew_fn *fn = t == RG_F32 ? f32 : t == RG_I32 ? i32 : t == RG_I64 ? i64 : NULL;
	int bytes = (int)rg_dtype_bytes(t), reg = in[0];

	for (int i = 0; i < c->node->n_in; i++)
		if (!fn || !rg_ew_is(c, i, t))
			return -ENOTSUP;
	if (c->node->n_in == 1)
		return rg_ew_apply(e, bytes == 4 ? copy_4 : copy_8, RG_EW_ROWS, 1, in, 0, 0, bytes, 1);
	for (int i = 1; i < c->node->n_in && reg >= 0; i++)
		reg = rg_ew_apply(e, fn, RG_EW_EITHER, 2, (const int[]){ reg, in[i] }, 0, 0, bytes, 2);
	return reg;
}

static int node_max(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return fold(e, c, in, max_f32, max_i32, max_i64);
}

static int node_min(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return fold(e, c, in, min_f32, min_i32, min_i64);
}

static int node_sum(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return fold(e, c, in, sum_f32, NULL, NULL);
}

static int node_mean(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	int sum = fold(e, c, in, sum_f32, NULL, NULL), n = rg_ew_constant(e, (float)c->node->n_in);

	if (sum < 0 || c->node->n_in == 1)
		return sum;
	return n < 0 ? n : rg_ew_apply(e, divide_f32, RG_EW_EITHER, 2, (const int[]){ sum, n }, 0, 0, 4, 2);
}

#define LIST(X) X("", "Max", max) X("", "Mean", mean) X("", "Min", min) X("", "Sum", sum)
RG_EW_FAMILY(variadic, LIST);
