/* Picking by a condition or a place: Compress, NonZero, Trilu, ReverseSequence. */
#include <inttypes.h>
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/index.h"
#include "kernels/tables.h"

static int compress(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	const uint8_t *condition = c->in[1].data;
	int64_t n = rg_shape_count(&c->in[1].shape), size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	int64_t outer = 1, dim = rg_shape_count(s), row = size, room = rg_shape_count(&c->out[0].shape) * size;
	char *to = c->out[0].data;

	if (rg_node_attr(c->node, "axis")) {
		int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank);

		outer = rg_shape_count_range(s, 0, axis);
		dim = s->dim[axis];
		row = rg_shape_count_range(s, axis + 1, s->rank) * size;
	}
	for (int64_t o = 0; o < outer; o++) {
		for (int64_t i = 0; i < dim && i < n; i++) {
			if (!condition[i] || row == 0)
				continue;
			if (room < row)
				return rg_error_set(err, -EINVAL, "the condition changed after the shapes were planned");
			memcpy(to, (const char *)c->in[0].data + (o * dim + i) * row, (size_t)row);
			to += row;
			room -= row;
		}
	}
	return 0;
}

static int non_zero(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t pos[RG_MAX_RANK] = { 0 }, n = rg_shape_count(s), columns = c->out[0].shape.dim[1], at = 0;
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype);

	for (int64_t i = 0; i < n; i++) {
		if (rg_args_is_nonzero(c->in[0].dtype, (const char *)c->in[0].data + i * size)) {
			if (at == columns)
				return rg_error_set(err, -EINVAL, "the data changed after the shapes were planned");
			for (int d = 0; d < s->rank; d++)
				((int64_t *)c->out[0].data)[d * columns + at] = pos[d];
			at++;
		}
		rg_index_next(s, pos);
	}
	return 0;
}

/* Upper keeps columns from row + k on, lower keeps columns up to row + k. */
static int trilu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t rows = s->dim[s->rank - 2], columns = s->dim[s->rank - 1], k = 0;
	int64_t lines = rg_shape_count_range(s, 0, s->rank - 1), size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	bool upper = rg_node_int(c->node, "upper", 1) != 0;

	if (c->node->n_in > 1 && c->in[1].dtype != RG_UNDEFINED && rg_args_scalar(&c->in[1], &k))
		return rg_error_set(err, -EINVAL, "k must be one whole number");
	if (rg_shape_count(s) == 0)
		return 0;
	/* Beyond these every element is on the same side. */
	k = k < -rows - 1 ? -rows - 1 : k > columns + 1 ? columns + 1 : k;
	for (int64_t line = 0; line < lines; line++) {
		int64_t edge = line % rows + k + !upper, begin, end;
		const char *from = (const char *)c->in[0].data + line * columns * size;
		char *to = (char *)c->out[0].data + line * columns * size;

		edge = edge < 0 ? 0 : edge > columns ? columns : edge;
		begin = upper ? edge : 0;
		end = upper ? columns : edge;
		memset(to, 0, (size_t)(columns * size));
		memcpy(to + begin * size, from + begin * size, (size_t)((end - begin) * size));
	}
	return 0;
}

static int reverse_sequence(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	bool batch_first = rg_node_int(c->node, "batch_axis", 1) == 0;
	int64_t steps = s->dim[batch_first ? 1 : 0], batch = s->dim[batch_first ? 0 : 1];
	int64_t row = rg_shape_count_range(s, 2, s->rank) * (int64_t)rg_dtype_bytes(c->in[0].dtype);

	for (int64_t b = 0; b < batch; b++) {
		int64_t length = ((const int64_t *)c->in[1].data)[b];

		if (length < 0 || length > steps)
			return rg_error_set(err, -ERANGE, "sequence %" PRId64 " has length %" PRId64 ", there are %" PRId64
					    " steps", b, length, steps);
		for (int64_t t = 0; t < steps && row > 0; t++) {
			int64_t src = t < length ? length - 1 - t : t;
			int64_t from = batch_first ? b * steps + src : src * batch + b;
			int64_t to = batch_first ? b * steps + t : t * batch + b;

			memcpy((char *)c->out[0].data + to * row, (const char *)c->in[0].data + from * row, (size_t)row);
		}
	}
	return 0;
}

#define COPY(NAME, RUN) { .op_type = NAME, .domain = "", .name = "ref", .supports = rg_copy_supports, \
			  .traffic = rg_copy_traffic, .run = RUN }

static const struct rg_kernel kernels[] = {
	COPY("Compress", compress),
	{ .op_type = "NonZero", .domain = "", .name = "ref", .supports = rg_copy_supports, .run = non_zero },
	COPY("Trilu", trilu),
	COPY("ReverseSequence", reverse_sequence),
};
RG_KERNEL_TABLE(rg_kernels_ref_select, kernels);
