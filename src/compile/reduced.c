/* See reduced.h. */
#include "compile/reduced.h"

bool rg_reduced_axes(const struct rg_graph *g, const struct rg_node *n, unsigned *axes)
{
	const struct rg_value *list = n->n_in > 1 && n->in[1] >= 0 ? &g->values[n->in[1]] : NULL;
	const struct rg_value *x = &g->values[n->in[0]];
	const int64_t *axis;
	int64_t count = rg_node_ints(n, "axes", &axis);

	if (list) {
		if (list->origin == RG_CONST_NONE || list->origin == RG_CONST_BOUND || list->dtype != RG_I64 ||
		    !list->data)
			return false;
		axis = list->data;
		count = rg_shape_count(&list->shape);
	}
	if (!x->shaped || x->dynamic || count < 1 || !rg_node_int(n, "keepdims", 1))
		return false;
	*axes = 0;
	for (int64_t i = 0; i < count; i++) {
		int64_t d = axis[i] < 0 ? axis[i] + x->shape.rank : axis[i];

		if (d < 0 || d >= x->shape.rank)
			return false;
		*axes |= 1u << d;
	}
	return true;
}
