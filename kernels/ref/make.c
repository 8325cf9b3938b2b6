/* Data made from shapes and numbers: Shape, Size, ConstantOfShape, EyeLike,
 * Range, OneHot. */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int shape(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t start, end, *to = c->out[0].data;

	rg_args_shape_range(c->node, c->in[0].shape.rank, &start, &end);
	for (int64_t i = start; i < end; i++)
		*to++ = c->in[0].shape.dim[i];
	return 0;
}

static int size(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	*(int64_t *)c->out[0].data = rg_shape_count(&c->in[0].shape);
	return 0;
}

static int constant_of_shape(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_attr *a = rg_node_attr(c->node, "value");
	size_t bytes = rg_dtype_bytes(c->out[0].dtype);
	int64_t n = rg_shape_count(&c->out[0].shape);
	/* One element, read again and again. */
	struct rg_copy k = { .rank = 1, .dim = { n }, .from = { 0 }, .to = { 1 } };

	if (a)
		rg_copy_run(&k, a->t.data, c->out[0].data, bytes);
	else if (n > 0)
		memset(c->out[0].data, 0, (size_t)n * bytes);
	return 0;
}

static bool numbers(const struct rg_call *c)
{
	return rg_in_set(c->out[0].dtype, RG_SET_NUM | RG_BIT(RG_BOOL));
}

static int eye_like(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int64_t k = rg_node_int(c->node, "k", 0), bytes = rg_tensor_bytes(c->out[0].dtype, s);

	if (bytes > 0)
		memset(c->out[0].data, 0, (size_t)bytes);
	for (int64_t i = 0; i < s->dim[0]; i++) {
		int64_t column;

		if (!__builtin_add_overflow(i, k, &column) && column >= 0 && column < s->dim[1])
			rg_ref_set(&c->out[0], i * s->dim[1] + column, 1);
	}
	return 0;
}

static int range(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->out[0].shape), start, delta;

	if (rg_dtype_is_float(c->out[0].dtype)) {
		double s = rg_ref_get(&c->in[0], 0), d = rg_ref_get(&c->in[2], 0);

		for (int64_t i = 0; i < n; i++) {
			/* In the type's own arithmetic, as start + i * delta. */
			if (c->out[0].dtype == RG_F64)
				((double *)c->out[0].data)[i] = s + (double)i * d;
			else
				rg_ref_set(&c->out[0], i, (float)s + (float)i * (float)d);
		}
		return 0;
	}
	if (rg_args_scalar(&c->in[0], &start) || rg_args_scalar(&c->in[2], &delta))
		return rg_error_set(err, -EINVAL, "start and delta must be whole numbers");
	for (int64_t i = 0; i < n; i++) {
		/* The result is in range; the product alone may not be. */
		int64_t v = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);

		switch (c->out[0].dtype) {
		case RG_I64: ((int64_t *)c->out[0].data)[i] = v; break;
		case RG_I32: ((int32_t *)c->out[0].data)[i] = (int32_t)v; break;
		default: ((int16_t *)c->out[0].data)[i] = (int16_t)v; break;
		}
	}
	return 0;
}

static bool range_supports(const struct rg_call *c)
{
	return rg_in_set(c->out[0].dtype, RG_SET_FLOAT | RG_BIT(RG_I16) | RG_BIT(RG_I32) | RG_BIT(RG_I64));
}

/* An index outside [-depth, depth) gives a line of off values: ONNX says so. */
static int one_hot(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", -1), s->rank + 1);
	int64_t outer = rg_shape_count_range(s, 0, axis), inner = rg_shape_count_range(s, axis, s->rank);
	int64_t depth = c->out[0].shape.dim[axis], size_bytes = (int64_t)rg_dtype_bytes(c->out[0].dtype);
	int64_t n = rg_shape_count(&c->out[0].shape);
	struct rg_copy k = { .rank = 1, .dim = { n }, .from = { 0 }, .to = { 1 } };

	rg_copy_run(&k, c->in[2].data, c->out[0].data, (size_t)size_bytes);
	for (int64_t i = 0; i < outer * inner; i++) {
		double v = rg_ref_get(&c->in[0], i);
		int64_t at;

		if (!(v >= (double)-depth && v < (double)depth))
			continue;
		at = (int64_t)v;
		at = at < 0 ? at + depth : at;
		at = (i / inner * depth + at) * inner + i % inner;
		memcpy((char *)c->out[0].data + at * size_bytes, (const char *)c->in[2].data + size_bytes,
		       (size_t)size_bytes);
	}
	return 0;
}

static bool one_hot_supports(const struct rg_call *c)
{
	return rg_copy_supports(c) && rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Shape", .domain = "", .name = "ref", .run = shape },
	{ .op_type = "Size", .domain = "", .name = "ref", .run = size },
	{ .op_type = "ConstantOfShape", .domain = "", .name = "ref", .supports = rg_copy_supports,
	  .run = constant_of_shape },
	{ .op_type = "EyeLike", .domain = "", .name = "ref", .supports = numbers, .run = eye_like },
	{ .op_type = "Range", .domain = "", .name = "ref", .supports = range_supports, .run = range },
	{ .op_type = "OneHot", .domain = "", .name = "ref", .supports = one_hot_supports, .run = one_hot },
};
RG_KERNEL_TABLE(rg_kernels_ref_make, kernels);
