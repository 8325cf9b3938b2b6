/* An example of shapes for the inputs that a file leaves open. */
#include "graph/graph.h"
#include "graph/private.h"

/* A picture is of rank 4, with channels second or last. */
static int64_t size_of(const struct rg_value *v, int d, const struct rg_example_sizes *sizes)
{
	bool last = v->declared_rank == 4 && v->declared[1].value < 0 && v->declared[3].value >= 0;

	if (d == 0)
		return 1;
	if (v->declared_rank == 3 && d == 1 && v->declared[0].value >= 0 && v->declared[2].value >= 0)
		return sizes->middle;
	if (v->declared_rank != 4)
		return sizes->length;
	if (last)
		return d == 1 ? sizes->height : sizes->width;
	return d == 1 ? sizes->channels : d == 2 ? sizes->height : sizes->width;
}

int rg_graph_example(const struct rg_graph *g, const struct rg_bindings *b, const struct rg_example_sizes *sizes,
		     struct rg_bindings *out)
{
	out->n_dims = b->n_dims;
	out->dims = b->dims;
	out->n_shapes = b->n_shapes;
	for (int i = 0; i < b->n_shapes; i++)
		out->shapes[i] = b->shapes[i];
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		struct rg_shape s = { .rank = v->declared_rank };
		bool open = false;

		if (v->origin != RG_CONST_NONE || rg_bind_shape(out, v->name))
			continue;
		if (v->declared_rank < 0)
			return -1;
		for (int d = 0; d < s.rank; d++) {
			s.dim[d] = v->declared[d].value;
			if (s.dim[d] < 0 && v->declared[d].symbol)
				s.dim[d] = rg_bind_symbol(g, out, v->declared[d].symbol);
			if (s.dim[d] < 0) {
				s.dim[d] = size_of(v, d, sizes);
				open = true;
			}
		}
		if (!open)
			continue;
		out->shapes[out->n_shapes].input = v->name;
		out->shapes[out->n_shapes++].shape = s;
	}
	return out->n_shapes - b->n_shapes;
}
