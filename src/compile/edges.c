/*
 * True data dependencies between steps, through views: who made the bytes that
 * a step reads, several where they were made in parts. Orders that come only from sharing the arena are not
 * edges.
 */
#include "compile/internal.h"

#include "base/alloc.h"

struct makers {
	int *step_of;               /* by value: the step that makes it, -1 none */
	int *first_piece; /* by value that is the root of memory: what steps make in parts of it; -1 */
	int *next_piece;            /* by value: of the same memory */
};

static bool overlap(const struct rg_plan *p, int a, int b)
{
	const struct rg_plan_tensor *x = &p->tensors[a], *y = &p->tensors[b];

	return x->part_bytes < y->part_bytes + y->size_bytes && y->part_bytes < x->part_bytes + x->size_bytes;
}

/* Did the same step read of what `piece` is at an earlier input already? */
static bool seen_before(const struct rg_plan *p, const struct rg_step *s, int k, int piece, bool whole)
{
	int i;

	for (i = 0; i < k; i++)
		if (s->in[i] >= 0 && rg_plan_root(p, s->in[i]) == rg_plan_root(p, s->in[k]) &&
		    (whole || overlap(p, s->in[i], piece)))
			return true;
	return false;
}

static void add_edge(struct rg_edge *edges, int *n, int from, int to, int value)
{
	if (edges)
		edges[*n] = (struct rg_edge){ from, to, value };
	(*n)++;
}

static void collect(const struct rg_plan *p, const struct makers *m, struct rg_edge *edges, int *n)
{
	int s, k, v;

	*n = 0;
	for (s = 0; s < p->n_steps; s++) {
		const struct rg_step *step = &p->steps[s];

		for (k = 0; k < step->n_in; k++) {
			int root = step->in[k] >= 0 ? rg_plan_root(p, step->in[k]) : -1;

			if (root < 0)
				continue;
			if (m->step_of[root] >= 0 && !seen_before(p, step, k, root, true))
				add_edge(edges, n, m->step_of[root], s, step->in[k]);
			for (v = m->first_piece[root]; v >= 0; v = m->next_piece[v])
				if (overlap(p, v, step->in[k]) && m->step_of[v] < s &&
				    !seen_before(p, step, k, v, false))
					add_edge(edges, n, m->step_of[v], s, step->in[k]);
		}
	}
}

static int collect_all(struct builder *b, struct makers *m, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	int i, k;

	for (i = 0; i < p->n_tensors; i++)
		m->step_of[i] = m->first_piece[i] = m->next_piece[i] = -1;
	for (i = 0; i < p->n_steps; i++)
		for (k = 0; k < p->steps[i].n_out; k++) {
			int v = p->steps[i].out[k], root = v >= 0 ? rg_plan_root(p, v) : -1;

			if (v < 0)
				continue;
			m->step_of[v] = i;
			if (root == v)
				continue;
			m->next_piece[v] = m->first_piece[root];
			m->first_piece[root] = v;
		}
	collect(p, m, NULL, &p->n_edges);
	p->edges = rg_arena_alloc(b->arena, (size_t)p->n_edges, sizeof(p->edges[0]));
	if (!p->edges)
		return rg_error_nomem(err, (size_t)p->n_edges * sizeof(p->edges[0]));
	collect(p, m, p->edges, &p->n_edges);
	return 0;
}

int rg_plan_edges(struct builder *b, struct rg_error *err)
{
	size_t n = (size_t)b->plan->n_tensors + 1;
	struct makers m = { rg_calloc(n, sizeof(int)), rg_calloc(n, sizeof(int)), rg_calloc(n, sizeof(int)) };
	int rc = m.step_of && m.first_piece && m.next_piece ? collect_all(b, &m, err) :
							      rg_error_nomem(err, n * sizeof(int));

	rg_free(m.step_of);
	rg_free(m.first_piece);
	rg_free(m.next_piece);
	return rc;
}
