/*
 * Which nodes become something else at other sizes: both rewritings are looked at behind the stage
 * at which they part, and what differs is followed back to the nodes that it was made of. Those are
 * pinned: passes leave them as they are.
 */
#include "session/optimize-work.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "models/onnx-write.h"

struct named { const char *name; int node; };

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *sort_names(const struct rg_graph *g, struct rg_error *err)
{
	struct named *list = rg_calloc((size_t)g->n_nodes + 1, sizeof(*list));

	if (!list) {
		rg_error_nomem(err, (size_t)g->n_nodes * sizeof(*list));
		return NULL;
	}
	for (int i = 0; i < g->n_nodes; i++)
		list[i] = (struct named){ g->nodes[i].name, i };
	qsort(list, (size_t)g->n_nodes, sizeof(*list), by_name);
	return list;
}

static int pin(struct work *w, const char *name, struct rg_error *err)
{
	struct rg_optimized *r = w->r;
	const char **p;

	for (int i = 0; i < r->n_pinned; i++)
		if (strcmp(r->pinned[i], name) == 0)
			return 0;
	p = rg_grow(r->pinned, &w->cap_pinned, (size_t)r->n_pinned + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	r->pinned = p;
	p[r->n_pinned] = rg_arena_strdup(r->arena, name);
	if (!p[r->n_pinned])
		return rg_error_nomem(err, strlen(name));
	r->n_pinned++;
	return 0;
}

/* Whether the last stage rewrote a node of that name, or something into it. */
static bool was_rewritten(const struct rewriting *t, const char *name)
{
	const struct rg_pass_log *log = &t->log;
	int begin = t->stages[t->n_stages - 2].n_rewritten, n = 0;

	for (int i = 0; i < log->n_notes; i++)
		if (!log->notes[i].decline && n++ >= begin &&
		    (strcmp(log->notes[i].node, name) == 0 || strcmp(log->notes[i].into, name) == 0))
			return true;
	return false;
}

/* Pins what became this node: itself by its name, or one beside it, since a pass may make more than one of
 * one. */
static int pin_origin(struct work *w, const struct rewriting *t, int at, struct rg_error *err)
{
	const struct rg_graph *g = t->g;
	const struct rg_node *n = &g->nodes[at];
	int rc = 0;

	if (was_rewritten(t, n->name))
		return pin(w, n->name, err);
	for (int k = 0; k < n->n_in && !rc; k++) {
		int from = n->in[k] >= 0 ? g->values[n->in[k]].producer : -1;

		if (from >= 0 && was_rewritten(t, g->nodes[from].name))
			rc = pin(w, g->nodes[from].name, err);
	}
	for (int i = at + 1; i < g->n_nodes && !rc; i++)
		for (int k = 0; k < g->nodes[i].n_in && !rc; k++)
			if (n->n_out > 0 && g->nodes[i].in[k] == n->out[0] && n->out[0] >= 0 &&
			    was_rewritten(t, g->nodes[i].name))
				rc = pin(w, g->nodes[i].name, err);
	return rc;
}

/* Pins where the nodes of `t` come from that `other` has not, or has in another way. */
static int pin_others(struct work *w, const struct rewriting *t, const struct rewriting *other,
		      struct rg_error *err)
{
	const struct rg_graph *a = t->g, *b = other->g;
	struct named *names = sort_names(b, err);
	int rc = names ? 0 : err->code;

	for (int i = 0; i < a->n_nodes && !rc; i++) {
		const struct named key = { a->nodes[i].name, i };
		const struct named *same = bsearch(&key, names, (size_t)b->n_nodes, sizeof(key), by_name);
		char da[65] = "", db[65] = "";

		if (same) {
			rc = rg_onnx_node_digest(a, i, da, err);
			if (!rc)
				rc = rg_onnx_node_digest(b, same->node, db, err);
		}
		if (!rc && (!same || strcmp(da, db) != 0))
			rc = pin_origin(w, t, i, err);
	}
	rg_free(names);
	return rc;
}

int rg_optimize_pin_dependent(struct work *w, int stage, int *found, struct rg_error *err)
{
	struct rewriting a = { .w = w, .stop_stage = stage }, b = { .w = w, .stop_stage = stage };
	int before = w->r->n_pinned, rc = rg_optimize_rewrite(&a, false, err);

	if (!rc)
		rc = rg_optimize_rewrite(&b, true, err);
	if (!rc && a.stopped)
		rc = pin_others(w, &a, &b, err);
	if (!rc && b.stopped)
		rc = pin_others(w, &b, &a, err);
	rg_optimize_rewriting_free(&a);
	rg_optimize_rewriting_free(&b);
	*found = w->r->n_pinned - before;
	return rc;
}
