/*
 * True data dependencies between steps, through views: who made the bytes that
 * a step reads. Orders that come only from sharing the arena are not edges.
 */
#include "compile/internal.h"

#include "base/alloc.h"

/* Did the same step read that memory at an earlier input already? */
static bool seen_before(const struct rg_plan *p, const struct rg_step *s, int k)
{
	int i;

	for (i = 0; i < k; i++)
		if (s->in[i] >= 0 && rg_plan_root(p, s->in[i]) == rg_plan_root(p, s->in[k]))
			return true;
	return false;
}

static void collect(const struct rg_plan *p, const int *step_of, struct rg_edge *edges, int *n)
{
	int s, k;

	*n = 0;
	for (s = 0; s < p->n_steps; s++) {
		const struct rg_step *step = &p->steps[s];

		for (k = 0; k < step->n_in; k++) {
			int from;

			if (step->in[k] < 0)
				continue;
			from = step_of[rg_plan_root(p, step->in[k])];
			if (from < 0 || seen_before(p, step, k))
				continue;
			if (edges)
				edges[*n] = (struct rg_edge){ from, s, step->in[k] };
			(*n)++;
		}
	}
}

int rg_plan_edges(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	int *step_of = rg_calloc((size_t)p->n_tensors, sizeof(*step_of)); /* by value */
	int i, k;

	if (!step_of)
		return rg_error_nomem(err, (size_t)p->n_tensors * sizeof(*step_of));
	for (i = 0; i < p->n_tensors; i++)
		step_of[i] = -1;
	for (i = 0; i < p->n_steps; i++)
		for (k = 0; k < p->steps[i].n_out; k++)
			if (p->steps[i].out[k] >= 0)
				step_of[p->steps[i].out[k]] = i;
	collect(p, step_of, NULL, &p->n_edges);
	p->edges = rg_arena_alloc(b->arena, (size_t)p->n_edges, sizeof(p->edges[0]));
	if (p->edges)
		collect(p, step_of, p->edges, &p->n_edges);
	rg_free(step_of);
	return p->edges ? 0 : rg_error_nomem(err, (size_t)p->n_edges * sizeof(p->edges[0]));
}
