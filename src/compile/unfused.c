/*
 * Steps that follow each other and stayed two: for each pair of which no pass has said why, the reason is
 * that no pass has a pattern for it, or that one of them is known only while it runs. With the passes' own
 * declines, every data dependency of the plan is accounted for.
 */
#include "compile/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct pair { const char *a, *b; };

static int by_names(const void *pa, const void *pb)
{
	const struct pair *x = pa, *y = pb;
	int c = strcmp(x->a, y->a);

	return c ? c : strcmp(x->b, y->b);
}

/* Either may be what would have gone into the other. */
static struct pair in_order(const char *a, const char *b)
{
	return strcmp(a, b) <= 0 ? (struct pair){ a, b } : (struct pair){ b, a };
}

int rg_plan_note_unfused(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	const struct rg_graph *g = b->g;
	int n_said = 0, declined = p->passes.n_notes, rc = 0;
	struct pair *said = rg_calloc((size_t)declined + (size_t)p->n_edges + 1, sizeof(*said));

	if (!said)
		return rg_error_nomem(err, ((size_t)declined + 1) * sizeof(*said));
	for (int i = 0; i < declined; i++)
		if (p->passes.notes[i].decline)
			said[n_said++] = in_order(p->passes.notes[i].node, p->passes.notes[i].into);
	qsort(said, (size_t)n_said, sizeof(*said), by_names);
	for (int i = 0; i < p->n_edges && !rc; i++) {
		const struct rg_step *from = &p->steps[p->edges[i].from_step],
				     *to = &p->steps[p->edges[i].to_step];
		const struct rg_node *producer = &g->nodes[from->node], *reader = &g->nodes[to->node];
		struct pair pair = in_order(producer->name, reader->name);
		struct rg_pass_note note = { .pass = "",
					     .node = reader->name,
					     .op_type = reader->op_type,
					     .into = producer->name,
					     .decline = from->dynamic || to->dynamic ?
							    RG_DECLINE_DYNAMIC :
							    RG_DECLINE_NO_PATTERN };

		if (!bsearch(&pair, said, (size_t)n_said, sizeof(*said), by_names))
			rc = rg_pass_note(&p->passes, &note, err);
	}
	rg_free(said);
	return rc;
}
