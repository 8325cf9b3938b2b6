/* Pad: each output element comes from one input element, or is the constant. */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* The input index along a dimension that output index i shows; -1: the constant. */
static int64_t source(enum rg_pad_mode mode, int64_t i, int64_t dim)
{
	if (i >= 0 && i < dim)
		return i;
	switch (mode) {
	case RG_PAD_REFLECT:
		return i < 0 ? -i : 2 * (dim - 1) - i;
	case RG_PAD_EDGE:
		return i < 0 ? 0 : dim - 1;
	case RG_PAD_WRAP:
		i %= dim;
		return i < 0 ? i + dim : i;
	default:
		return -1;
	}
}

static void fill(void *to, int64_t n, const void *value, size_t size)
{
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)to + i * (int64_t)size, value, size);
}

/* Elements [begin, end) of one output line, each by its source. */
static void pad_part(const struct rg_pad_args *a, int last, int64_t dim, const char *from, char *to,
		     int64_t begin, int64_t end, const void *value, size_t size)
{
	for (int64_t i = begin; i < end; i++) {
		int64_t at = source(a->mode, i - a->before[last], dim);

		memcpy(to + i * (int64_t)size, at < 0 ? value : from + at * (int64_t)size, size);
	}
}

/* One output line of n along the last dimension; from: the input line, NULL
 * when all of it is the constant. */
static void pad_line(const struct rg_pad_args *a, int last, int64_t dim, const char *from, char *to, int64_t n,
		     const void *value, size_t size)
{
	int64_t first = a->before[last] > 0 ? a->before[last] : 0;
	int64_t skip = a->before[last] < 0 ? -a->before[last] : 0;
	int64_t end = first + dim - skip; /* where the input's elements end */

	if (!from) {
		fill(to, n, value, size);
		return;
	}
	first = first < n ? first : n;
	end = end < n ? end : n;
	if (end > first)
		memcpy(to + first * (int64_t)size, from + skip * (int64_t)size, (size_t)(end - first) * size);
	pad_part(a, last, dim, from, to, 0, first, value, size);
	pad_part(a, last, dim, from, to, end, n, value, size);
}

static const void *pad_value(const struct rg_call *c, unsigned char buf[16])
{
	memset(buf, 0, 16);
	if (c->node->version >= 11) {
		bool given = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED;

		return given ? c->in[2].data : buf;
	}
	rg_ref_set(&(struct rg_tensor){ c->in[0].dtype, { 0 }, buf }, 0, rg_node_float(c->node, "value", 0));
	return buf;
}

static bool supports(const struct rg_call *c)
{
	return rg_copy_supports(c) &&
	       (c->node->version >= 11 || rg_in_set(c->in[0].dtype, RG_SET_NUM));
}

static int pad(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *o = &c->out[0].shape;
	size_t size = rg_dtype_bytes(c->in[0].dtype);
	int64_t from_stride[RG_MAX_RANK], at[RG_MAX_RANK] = { 0 }, lines;
	_Alignas(16) unsigned char buf[16];
	const void *value = pad_value(c, buf);
	struct rg_pad_args a;
	int need = -1, last = s->rank - 1, rc = rg_args_pad(c->node, c->in, &a, &need, err);
	char *to = c->out[0].data;

	if (rc)
		return rc;
	for (int d = 0; d < s->rank; d++)
		if (o->dim[d] != s->dim[d] + a.before[d] + a.after[d])
			return rg_error_set(err, -EINVAL, "the pads changed after the shapes were planned");
	if (rg_shape_count(o) == 0)
		return 0;
	if (s->rank == 0) {
		memcpy(to, c->in[0].data, size);
		return 0;
	}
	rg_shape_strides(s, from_stride);
	lines = rg_shape_count_range(o, 0, last);
	for (int64_t l = 0; l < lines; l++) {
		int64_t offset = 0;

		for (int d = 0; d < last && offset >= 0; d++) {
			int64_t i = source(a.mode, at[d] - a.before[d], s->dim[d]);

			offset = i < 0 ? -1 : offset + i * from_stride[d];
		}
		pad_line(&a, last, s->dim[last], offset < 0 ? NULL :
			 (const char *)c->in[0].data + offset * (int64_t)size, to, o->dim[last], value, size);
		to += o->dim[last] * (int64_t)size;
		for (int d = last - 1; d >= 0 && ++at[d] == o->dim[d]; d--)
			at[d] = 0;
	}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Pad", .domain = "", .name = "ref", .supports = supports, .traffic = rg_copy_traffic,
	  .run = pad },
};
RG_KERNEL_TABLE(rg_kernels_ref_pad, kernels);
