/* Reading by index: Gather, GatherElements, GatherND. An index outside is an
 * error, never a read outside. */
#include <inttypes.h>
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/index.h"
#include "kernels/tables.h"

static int gather(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank);
	int64_t outer = rg_shape_count_range(s, 0, axis), dim = s->dim[axis];
	int64_t row = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->in[0].dtype);
	int64_t n = rg_shape_count(&c->in[1].shape), at;
	const char *from = c->in[0].data;
	char *to = c->out[0].data;

	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	for (int64_t o = 0; o < outer; o++) {
		for (int64_t i = 0; i < n; i++) {
			if (rg_index_at(&c->in[1], i, dim, &at, err))
				return err->code;
			memcpy(to, from + (o * dim + at) * row, (size_t)row);
			to += row;
		}
	}
	return 0;
}

static int gather_elements(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *idx = &c->in[1].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank);
	int64_t stride[RG_MAX_RANK], pos[RG_MAX_RANK] = { 0 }, n = rg_shape_count(idx);
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype), at;

	rg_shape_strides(s, stride);
	for (int64_t i = 0; i < n; i++) {
		int64_t from = 0;

		if (rg_index_at(&c->in[1], i, s->dim[axis], &at, err))
			return err->code;
		for (int d = 0; d < s->rank; d++)
			from += (d == axis ? at : pos[d]) * stride[d];
		memcpy((char *)c->out[0].data + i * size, (const char *)c->in[0].data + from * size, (size_t)size);
		rg_index_next(idx, pos);
	}
	return 0;
}

static int gather_nd(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *idx = &c->in[1].shape;
	int batch = c->node->version >= 12 ? (int)rg_node_int(c->node, "batch_dims", 0) : 0;
	int depth = (int)idx->dim[idx->rank - 1];
	int64_t batches = rg_shape_count_range(idx, 0, batch), per = rg_shape_count_range(idx, batch, idx->rank - 1);
	int64_t whole = rg_shape_count_range(s, batch, s->rank);
	int64_t row = rg_shape_count_range(s, batch + depth, s->rank), from;
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	char *to = c->out[0].data;

	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	for (int64_t b = 0; b < batches; b++) {
		for (int64_t i = 0; i < per; i++) {
			if (rg_index_nd(&c->in[1], (b * per + i) * depth, depth, s, batch, &from, err))
				return err->code;
			memcpy(to, (const char *)c->in[0].data + (b * whole + from) * size, (size_t)(row * size));
			to += row * size;
		}
	}
	return 0;
}

#define GATHER(NAME, RUN) { .op_type = NAME, .domain = "", .name = "ref", .supports = rg_copy_supports, \
			    .traffic = rg_copy_traffic, .run = RUN }

static const struct rg_kernel kernels[] = {
	GATHER("Gather", gather),
	GATHER("GatherElements", gather_elements),
	GATHER("GatherND", gather_nd),
};
RG_KERNEL_TABLE(rg_kernels_ref_gather, kernels);
