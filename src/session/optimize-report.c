/*
 * What people read of a rewriting: which passes there were, what each saved or why it was left out,
 * which sizes are fixed, and which inputs are none any more.
 */
#include "session/optimize-work.h"

#include <string.h>

#include "base/arena.h"

static void report_pass(const struct work *w, const struct rewriting *a, struct rg_optimized_pass *p)
{
	if (p->pass->own_only)
		p->left_out = p->pass->own_only;
	else if (rg_optimize_is_disabled(w, p->pass))
		p->left_out = "--disable";
	for (int i = 0; i < w->n_out; i++)
		if (w->out[i].pass == p->pass)
			p->left_out = w->out[i].why;
	p->bytes_known = true;
	for (int i = 1; i < a->n_stages; i++) {
		const struct stage *then = &a->stages[i], *before = then - 1;

		if (then->pass != p->pass)
			continue;
		p->n_rewritten += then->n_rewritten - before->n_rewritten;
		p->steps_saved += before->cost.steps - then->cost.steps;
		p->bytes_saved += before->cost.bytes - then->cost.bytes;
		p->bytes_known = p->bytes_known && before->cost.bytes >= 0 && then->cost.bytes >= 0;
	}
}

int rg_optimize_report_defaults(struct work *w, const struct rg_graph *g, struct rg_error *err)
{
	struct rg_optimized *r = w->r;
	int n = 0;

	if (g->ir_version <= 3) /* there all initialisers are listed, which says nothing */
		return 0;
	for (int i = 0; i < g->n_values; i++)
		n += g->values[i].was_input;
	r->defaults = rg_arena_alloc(r->arena, (size_t)n + 1, sizeof(*r->defaults));
	if (!r->defaults)
		return rg_error_nomem(err, (size_t)n * sizeof(*r->defaults));
	for (int i = 0; i < g->n_values; i++) {
		if (!g->values[i].was_input)
			continue;
		r->defaults[r->n_defaults] = rg_arena_strdup(r->arena, g->values[i].name);
		if (!r->defaults[r->n_defaults++])
			return rg_error_nomem(err, strlen(g->values[i].name));
	}
	return 0;
}

int rg_optimize_report(struct work *w, struct rewriting *a, struct rg_error *err)
{
	struct rg_optimized *r = w->r;

	r->passes = rg_arena_alloc(r->arena, (size_t)rg_pass_count() + 1, sizeof(*r->passes));
	r->fixed = rg_arena_alloc(r->arena, (size_t)w->sizes.n + 1, sizeof(*r->fixed));
	if (!r->passes || !r->fixed)
		return rg_error_nomem(err, (size_t)rg_pass_count() * sizeof(*r->passes));
	r->before = a->stages[0].cost;
	r->after = a->stages[a->n_stages - 1].cost;
	for (int k = 0; k < rg_pass_count(); k++) {
		if (rg_pass_at(k)->level > r->level)
			continue;
		r->passes[r->n_passes] = (struct rg_optimized_pass){ .pass = rg_pass_at(k) };
		report_pass(w, a, &r->passes[r->n_passes++]);
	}
	for (int i = 0; i < w->sizes.n; i++) {
		const struct rg_open_size *s = &w->sizes.v[i];
		const char *input = r->model->graph->values[r->model->graph->inputs[s->input]].name;
		const char *name = s->symbol ? rg_arena_strdup(r->arena, s->symbol) :
				   rg_arena_printf(r->arena, "dimension %d of %s", s->dim, input);

		if (!name)
			return rg_error_nomem(err, strlen(input));
		if (s->fixed)
			r->fixed[r->n_fixed++] = (struct rg_optimized_size){ name, s->first, s->why };
	}
	return 0;
}
