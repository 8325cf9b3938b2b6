/* See parts.h. */
#include "compile/parts.h"

#include <string.h>

#include "graph/op-args.h"

/* Bytes of an element; 0 for types that share bytes, and for strings, which are pointers. */
static int64_t element_bytes(enum rg_dtype t)
{
	int bits = rg_dtype_bits(t);

	return t == RG_STRING || bits % 8 ? 0 : bits / 8;
}

static bool is_known(const struct rg_graph *g, int value)
{
	return value >= 0 && g->values[value].shaped && !g->values[value].dynamic &&
	       rg_shape_count(&g->values[value].shape) > 0;
}

static bool is_outermost(const struct rg_shape *s, int axis)
{
	for (int i = 0; i < axis; i++)
		if (s->dim[i] != 1)
			return false;
	return true;
}

/* Elements from one index of a dimension to the next. */
static int64_t inner(const struct rg_shape *s, int axis)
{
	return rg_shape_count_range(s, axis + 1, s->rank);
}

static bool slice_at(const struct rg_node *n, const struct rg_tensor *in, int64_t *at)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_slice_args a;
	bool whole = true; /* of all dimensions further out one index is taken */
	int need;

	if (rg_args_slice(n, in, &a, &need, &err))
		return false;
	*at = 0;
	for (int d = 0; d < in[0].shape.rank; d++) {
		int64_t dim = in[0].shape.dim[d];

		*at += a.start[d] * inner(&in[0].shape, d);
		if (a.count[d] == dim && (a.step[d] == 1 || dim == 1)) {
			whole = whole && dim == 1;
			continue;
		}
		/* a part of this one: then of what lies around it there is one, too */
		if (!whole || (a.step[d] != 1 && a.count[d] != 1))
			return false;
		whole = a.count[d] == 1;
	}
	return true;
}

static bool split_at(const struct rg_node *n, const struct rg_tensor *in, int k, int64_t *at)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t length[RG_ARGS_MAX_SPLIT];
	int axis, need;

	if (rg_args_split(n, in, &axis, length, &need, &err) || !is_outermost(&in[0].shape, axis))
		return false;
	*at = 0;
	for (int i = 0; i < k; i++)
		*at += length[i] * inner(&in[0].shape, axis);
	return true;
}

static bool gather_at(const struct rg_node *n, const struct rg_tensor *in, int64_t *at)
{
	int axis = rg_args_axis(rg_node_int(n, "axis", 0), in[0].shape.rank);
	int64_t index;

	if (axis < 0 || !in[1].data || rg_shape_count(&in[1].shape) != 1 ||
	    rg_args_ints(&in[1], &index, 1) != 1 || !is_outermost(&in[0].shape, axis))
		return false;
	if (index < 0)
		index += in[0].shape.dim[axis];
	if (index < 0 || index >= in[0].shape.dim[axis])
		return false; /* the kernel says what is wrong */
	*at = index * inner(&in[0].shape, axis);
	return true;
}

bool rg_part_of(const struct rg_graph *g, const struct rg_node *n, int k, int64_t *at_bytes)
{
	enum { MOST_IN = 5 };
	struct rg_tensor in[MOST_IN] = { 0 };
	int64_t size, at;
	bool found;

	if (n->domain[0] || n->unsupported || n->n_in < 1 || n->n_in > MOST_IN || !is_known(g, n->in[0]) ||
	    !is_known(g, n->out[k]))
		return false;
	for (int i = 0; i < n->n_in; i++) {
		const struct rg_value *v = n->in[i] >= 0 ? &g->values[n->in[i]] : NULL;

		if (v && (!v->shaped || (i > 0 && v->origin == RG_CONST_NONE)))
			return false;
		if (v)
			in[i] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	}
	size = element_bytes(in[0].dtype);
	if (size == 0 || g->values[n->out[k]].dtype != in[0].dtype)
		return false;
	if (!strcmp(n->op_type, "Slice"))
		found = slice_at(n, in, &at);
	else if (!strcmp(n->op_type, "Split"))
		found = split_at(n, in, k, &at);
	else
		found = !strcmp(n->op_type, "Gather") && n->n_in == 2 && gather_at(n, in, &at);
	if (found)
		*at_bytes = at * size;
	return found;
}

bool rg_parts_join(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *out;
	int axis;

	if (n->domain[0] || strcmp(n->op_type, "Concat") || n->dynamic || n->n_in < 2 ||
	    !is_known(g, n->out[0]))
		return false;
	out = &g->values[n->out[0]];
	/* before version 4 the axis was 1 where none was given */
	axis = rg_args_axis(rg_node_int(n, "axis", 1), out->shape.rank);
	for (int k = 0; k < n->n_in; k++)
		if (!is_known(g, n->in[k]) || g->values[n->in[k]].dtype != out->dtype)
			return false;
	return axis >= 0 && element_bytes(out->dtype) > 0 && is_outermost(&out->shape, axis);
}
