/*
 * Weights are held once. A constant stays while anything may read its bytes: a
 * graph output, a step whose kernel reads it as it is, a step on the dynamic path
 * and what that step's subgraphs capture. One that every reader packs is freed
 * after the last of them has, one that has no reader left (it was folded into
 * others, or is dead) before the first.
 */
#include "compile/internal.h"

#include "base/alloc.h"

static bool packs(const struct rg_step *s, int input)
{
	return s->kernel && !s->dynamic && s->prepared_bytes > 0 && input < 32 && s->kernel->packs >> input & 1;
}

static void release(struct builder *b, int value)
{
	struct rg_value *v = &b->g->values[value];
	int64_t bytes = rg_tensor_bytes(v->dtype, &v->shape);

	/* Strings stay: what was folded from them may point at their characters. */
	if (v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND || v->from_outer || !v->data ||
	    v->dtype == RG_STRING)
		return;
	rg_free((void *)v->data);
	v->data = NULL;
	v->released = true;
	b->plan->released_bytes += bytes > 0 ? bytes : 0;
	b->plan->tensors[value].data = NULL;
}

int rg_release_begin(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	const struct rg_graph *g = b->g;
	int i, k;

	b->packers = rg_arena_alloc(b->arena, (size_t)g->n_values + 1, sizeof(*b->packers));
	if (!b->packers)
		return rg_error_nomem(err, (size_t)g->n_values * sizeof(*b->packers));
	for (i = 0; i < g->n_outputs; i++)
		b->packers[rg_plan_root(p, g->outputs[i])] = -1;
	for (i = 0; i < p->n_steps; i++) {
		const struct rg_step *s = &p->steps[i];

		for (k = 0; k < s->n_in; k++) {
			int *n = s->in[k] >= 0 ? &b->packers[rg_plan_root(p, s->in[k])] : NULL;

			if (n && *n >= 0)
				*n = packs(s, k) ? *n + 1 : -1;
		}
	}
	for (i = 0; i < g->n_values; i++)
		if (b->packers[i] == 0)
			release(b, i);
	return 0;
}

void rg_release_step(struct builder *b, const struct rg_step *s)
{
	int k;

	for (k = 0; k < s->n_in; k++) {
		int root = s->in[k] >= 0 ? rg_plan_root(b->plan, s->in[k]) : -1;

		if (root >= 0 && b->packers[root] > 0 && packs(s, k) && --b->packers[root] == 0)
			release(b, root);
	}
}

void rg_release_end(struct builder *b)
{
	int i, k;

	for (i = 0; i < b->plan->n_views; i++) {
		const struct rg_node *n = &b->g->nodes[b->plan->views[i]];

		for (k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0 && b->g->values[rg_plan_root(b->plan, n->out[k])].released)
				b->plan->tensors[n->out[k]].data = NULL;
	}
}
