/* See optimize-sizes.h. */
#include "session/optimize-sizes.h"

#include <string.h>

#include "base/alloc.h"

/* The open size that dimension d of this input is; -1: it is not open, or not listed. */
static int size_at(const struct rg_open_sizes *s, const struct rg_graph *g, int input, int d)
{
	const struct rg_dim *dim = &g->values[g->inputs[input]].declared[d];

	if (dim->value >= 0)
		return -1;
	for (int i = 0; i < s->n; i++) {
		const struct rg_open_size *o = &s->v[i];

		if (o->symbol && dim->symbol ? strcmp(o->symbol, dim->symbol) == 0 :
					       !o->symbol && !dim->symbol && o->input == input && o->dim == d)
			return i;
	}
	return -1;
}

static int add_size(const struct rg_value *v, int input, int d, struct rg_arena *arena,
		    struct rg_open_sizes *s, struct rg_error *err)
{
	const char *symbol = v->declared[d].symbol;

	if (symbol) {
		symbol = rg_arena_strdup(arena, symbol);
		if (!symbol)
			return rg_error_nomem(err, strlen(v->declared[d].symbol));
	}
	s->v[s->n++] = (struct rg_open_size){symbol, input, d, v->shape.dim[d], v->shape.dim[d], false, NULL};
	return 0;
}

int rg_open_sizes_find(const struct rg_graph *g, struct rg_arena *arena, struct rg_open_sizes *s,
		       struct rg_error *err)
{
	size_t most = 1;

	*s = (struct rg_open_sizes){ 0 };
	for (int i = 0; i < g->n_inputs; i++)
		most += (size_t)(g->values[g->inputs[i]].declared_rank + 1);
	s->v = rg_calloc(most, sizeof(*s->v));
	if (!s->v)
		return rg_error_nomem(err, most * sizeof(*s->v));
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		/* an input without a declared rank stays as the person has given it */
		for (int d = 0; d < v->declared_rank; d++)
			if (v->declared[d].value < 0 && size_at(s, g, i, d) < 0 &&
			    add_size(v, i, d, arena, s, err))
				return err->code;
	}
	return 0;
}

void rg_open_sizes_free(struct rg_open_sizes *s)
{
	rg_free(s->v);
	*s = (struct rg_open_sizes){ 0 };
}

int64_t rg_open_size_try(const struct rg_open_sizes *s, int i, int k)
{
	int64_t a = s->v[i].first;

	/* Pictures come in multiples of 32; a step of its own for each size, so that no two that
	 * differ meet. */
	switch (k) {
	case 0: return a >= 32 && a % 32 == 0 ? a + 32 * (i + 1) : a + i + 1;
	case 1: return a > 0 ? 2 * a : 2;
	case 2: return a >= 64 ? a / 2 : a + 1;
	case 3: return 3 * a;
	case 4: return a > 1 ? 1 : 0;
	default: return 0;
	}
}

int rg_open_sizes_bind(const struct rg_open_sizes *s, bool second, const struct rg_shape *bound,
		       struct rg_graph *g, struct rg_error *err)
{
	struct rg_bindings b = { 0 };
	int rc;

	b.shapes = rg_calloc((size_t)g->n_inputs + 1, sizeof(*b.shapes));
	if (!b.shapes)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*b.shapes));
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		struct rg_shape shape = bound[i];

		if (v->kind != RG_VALUE_TENSOR)
			continue;
		for (int d = 0; d < v->declared_rank && second; d++) {
			int at = size_at(s, g, i, d);

			if (at >= 0)
				shape.dim[d] = s->v[at].second;
		}
		b.shapes[b.n_shapes].input = v->name;
		b.shapes[b.n_shapes++].shape = shape;
	}
	rc = rg_graph_bind(g, &b, err);
	rg_free(b.shapes);
	return rc;
}

int rg_open_sizes_fix(const struct rg_open_sizes *s, struct rg_graph *g, struct rg_error *err)
{
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		struct rg_dim dims[RG_MAX_RANK];
		bool changed = false;

		for (int d = 0; d < v->declared_rank; d++) {
			int at = size_at(s, g, i, d);

			dims[d] = v->declared[d];
			if (at < 0 || !s->v[at].fixed)
				continue;
			dims[d] = (struct rg_dim){ s->v[at].first, NULL };
			changed = true;
		}
		if (changed &&
		    rg_graph_declare(g, g->inputs[i], v->declared_dtype, v->declared_rank, dims, err))
			return err->code;
	}
	return 0;
}
