/* Cutting and joining along axes: Slice, Split, Concat. */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/tables.h"

static int slice(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK], first = 0;
	size_t size = rg_dtype_bytes(c->in[0].dtype);
	struct rg_slice_args a;
	struct rg_copy k = { 0 };
	int need = -1, rc = rg_args_slice(c->node, c->in, &a, &need, err);

	if (rc)
		return rc;
	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		if (a.count[i] != c->out[0].shape.dim[i])
			return rg_error_set(err, -EINVAL, "the bounds changed after the shapes were planned");
		if (a.count[i] == 0)
			return 0;
		first += a.start[i] * from[i];
		rg_copy_dim(&k, a.count[i], from[i] * a.step[i], to[i]);
	}
	rg_copy_run(&k, (const char *)c->in[0].data + first * (int64_t)size, c->out[0].data, size);
	return 0;
}

/* Rows of `part` bytes out of rows of `whole` bytes, or the other way round. */
static void copy_rows(const char *from, int64_t from_bytes, char *to, int64_t to_bytes, int64_t rows)
{
	int64_t part = from_bytes < to_bytes ? from_bytes : to_bytes;

	for (int64_t i = 0; i < rows && part > 0; i++)
		memcpy(to + i * to_bytes, from + i * from_bytes, (size_t)part);
}

static int split(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank), need = -1, rc;
	int64_t length[RG_ARGS_MAX_SPLIT], rows, inner, at = 0;

	rc = rg_args_split(c->node, c->in, &axis, length, &need, err);
	if (rc)
		return rc;
	rows = rg_shape_count_range(s, 0, axis);
	inner = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->in[0].dtype);
	for (int i = 0; i < c->node->n_out; i++) {
		if (c->out[i].dtype != RG_UNDEFINED) {
			if (c->out[i].shape.dim[axis] != length[i])
				return rg_error_set(err, -EINVAL, "the lengths changed after the shapes were planned");
			if (length[i] * inner > 0)
				copy_rows((const char *)c->in[0].data + at * inner, s->dim[axis] * inner,
					  c->out[i].data, length[i] * inner, rows);
		}
		at += length[i];
	}
	return 0;
}

static int concat(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 1), s->rank);
	int64_t rows = rg_shape_count_range(s, 0, axis), at = 0;
	int64_t inner = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->out[0].dtype);

	for (int i = 0; i < c->node->n_in; i++) {
		int64_t length = c->in[i].shape.dim[axis];

		if (length * inner > 0)
			copy_rows(c->in[i].data, length * inner, (char *)c->out[0].data + at * inner,
				  s->dim[axis] * inner, rows);
		at += length;
	}
	return 0;
}

#define COPY(NAME, RUN) { .op_type = NAME, .domain = "", .name = "ref", .supports = rg_copy_supports, \
			  .traffic = rg_copy_traffic, .run = RUN }

static const struct rg_kernel kernels[] = {
	COPY("Slice", slice),
	COPY("Split", split),
	COPY("Concat", concat),
};
RG_KERNEL_TABLE(rg_kernels_ref_slice, kernels);
