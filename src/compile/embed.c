/*
 * Cutting and joining without copies.
 *
 * What Slice, Split and Gather cut out is often contiguous: it is an alias into their input then, and the
 * step goes. Where the inputs of a Concat lie one behind the other in its output, and each is made by a step
 * into memory of its own, they are made inside the output at once.
 *
 * Neither is always a win. A small part holds on to all that it was cut from. A joined output lives from its
 * first piece on; where pieces are made at very different times (a skip connection) room for the late one is
 * held from the early one on. On the other side the copy and its source never live at once any more. So each
 * is done only where the largest sum of live bytes, scratch not counted, does not grow.
 */
#include "compile/internal.h"

#include "base/alloc.h"
#include "compile/parts.h"

struct span { int first, last; }; /* steps; first -1: never */

struct embedder {
	struct rg_plan *p;
	struct span *live;          /* by value: of the memory that it is the root of */
	int64_t *load_bytes;        /* by step */
	int64_t most_bytes;
	unsigned char *made;        /* by value: a step makes it, or made it */
	unsigned char *given;       /* by root: a graph output lies in it */
	int *marks;                 /* by root: the node that it was last a piece of */
	int64_t work;               /* steps looked at for loads */
};

/* A graph of many long-lived parts would take the square of its length: the rest of them is copied. */
#define MOST_WORK ((int64_t)1 << 27)

/* Where memory lies while aliases may still lead to aliases. */
static int find_root(const struct rg_plan *p, int value, int64_t *part_bytes)
{
	*part_bytes = 0;
	for (; p->tensors[value].alias_of >= 0; value = p->tensors[value].alias_of)
		*part_bytes += p->tensors[value].part_bytes;
	return value;
}

static void touch(struct embedder *e, int value, int step)
{
	int64_t part;
	struct span *s = value >= 0 ? &e->live[find_root(e->p, value, &part)] : NULL;

	if (!s)
		return;
	s->first = s->first < 0 ? step : s->first;
	s->last = step;
}

static void add_load(struct embedder *e, struct span s, int64_t bytes)
{
	for (int i = s.first; i >= 0 && i <= s.last; i++)
		e->load_bytes[i] += bytes;
}

static void find_load(struct embedder *e)
{
	struct rg_plan *p = e->p;

	for (int s = 0; s < p->n_steps; s++) {
		for (int k = 0; k < p->steps[s].n_in; k++)
			touch(e, p->steps[s].in[k], s);
		for (int k = 0; k < p->steps[s].n_out; k++)
			touch(e, p->steps[s].out[k], s);
	}
	for (int i = 0; i < p->graph->n_outputs; i++) {
		int64_t part;

		touch(e, p->graph->outputs[i], p->n_steps - 1);
		e->given[find_root(p, p->graph->outputs[i], &part)] = 1;
	}
	/* as sums of changes first: a long graph has many values */
	for (int v = 0; v < p->n_tensors; v++) {
		const struct rg_plan_tensor *t = &p->tensors[v];

		if (t->place != RG_PLACE_ARENA || t->alias_of >= 0 || e->live[v].first < 0)
			continue;
		e->load_bytes[e->live[v].first] += t->size_bytes;
		e->load_bytes[e->live[v].last + 1] -= t->size_bytes;
	}
	for (int s = 1; s < p->n_steps; s++)
		e->load_bytes[s] += e->load_bytes[s - 1];
	for (int s = 0; s < p->n_steps; s++)
		e->most_bytes = e->load_bytes[s] > e->most_bytes ? e->load_bytes[s] : e->most_bytes;
}

static bool in_arena(const struct rg_plan *p, int root)
{
	return p->tensors[root].place == RG_PLACE_ARENA;
}

/*
 * Whether the load allows that these values, roots of their own until now, lie inside `root` from now on; it
 * is then up to date.
 */
static bool try_load(struct embedder *e, int root, int n, const int *values)
{
	const struct rg_plan *p = e->p;
	struct span *out = &e->live[root], all = *out;
	int64_t most = 0;

	if (!in_arena(p, root)) /* not the arena's matter */
		all = e->live[values[0]];
	for (int k = 0; k < n; k++) {
		const struct span *s = values[k] >= 0 ? &e->live[values[k]] : &all;

		all.first = s->first < all.first ? s->first : all.first;
		all.last = s->last > all.last ? s->last : all.last;
	}
	e->work += ((int64_t)all.last - all.first + 1) * ((int64_t)n + 2);
	if (e->work > MOST_WORK)
		return false;
	for (int turn = 0; turn < 2; turn++) {
		int64_t sign = turn ? -1 : 1;

		for (int k = 0; k < n; k++)
			if (values[k] >= 0)
				add_load(e, e->live[values[k]], -sign * p->tensors[values[k]].size_bytes);
		if (in_arena(p, root)) {
			add_load(e, *out, -sign * p->tensors[root].size_bytes);
			add_load(e, all, sign * p->tensors[root].size_bytes);
		}
		for (int s = all.first; turn == 0 && s <= all.last; s++)
			most = e->load_bytes[s] > most ? e->load_bytes[s] : most;
		if (turn == 0 && most <= e->most_bytes) {
			*out = in_arena(p, root) ? all : *out;
			return true;
		}
	}
	return false;
}

/* ---- cutting ---- */

static bool cut(struct embedder *e, const struct rg_node *n)
{
	struct rg_plan *p = e->p;
	int64_t at;
	int from, n_wanted = 0;

	if (n->n_in < 1 || n->in[0] < 0)
		return false;
	from = find_root(p, n->in[0], &at);
	if (p->tensors[from].place == RG_PLACE_DYNAMIC || p->tensors[from].place == RG_PLACE_UNUSED)
		return false;
	for (int k = 0; k < n->n_out; k++) {
		if (n->out[k] < 0)
			continue;
		/* an output must neither change with the next input nor be a writable constant */
		if (!rg_part_of(p->graph, n, k, &at) || (e->given[n->out[k]] && !in_arena(p, from)))
			return false;
		n_wanted++;
	}
	if (n_wanted == 0 || !try_load(e, from, n->n_out, n->out))
		return false;
	for (int k = 0; k < n->n_out; k++) {
		if (n->out[k] < 0)
			continue;
		rg_part_of(p->graph, n, k, &at);
		p->tensors[n->out[k]].alias_of = n->in[0];
		p->tensors[n->out[k]].part_bytes = at;
		e->given[from] |= e->given[n->out[k]];
	}
	return true;
}

/* ---- joining ---- */

/* Each piece is all of the memory of a value that a step makes, and no two are the same; `roots` has room for
 * them. */
static bool can_join(struct embedder *e, const struct rg_node *n, int node, int *roots)
{
	const struct rg_plan *p = e->p;

	for (int k = 0; k < n->n_in; k++) {
		int64_t part;
		int root = find_root(p, n->in[k], &part);

		if (!in_arena(p, root) || !e->made[root] || part != 0 || e->marks[root] == node + 1 ||
		    p->tensors[root].size_bytes != p->tensors[n->in[k]].size_bytes)
			return false;
		e->marks[root] = node + 1;
		roots[k] = root;
	}
	return true;
}

/* 1: joined, 0: not; or a negative errno. */
static int join(struct embedder *e, int node, struct rg_error *err)
{
	struct rg_plan *p = e->p;
	const struct rg_node *n = &p->graph->nodes[node];
	int64_t at = 0;
	int *roots, joined = 0;

	if (n->n_out < 1 || n->out[0] < 0 || !in_arena(p, n->out[0]) || !rg_parts_join(p->graph, n))
		return 0;
	roots = rg_calloc((size_t)n->n_in, sizeof(*roots));
	if (!roots)
		return rg_error_nomem(err, (size_t)n->n_in * sizeof(*roots));
	joined = can_join(e, n, node, roots) && try_load(e, n->out[0], n->n_in, roots);
	for (int k = 0; k < n->n_in && joined; k++) {
		p->tensors[roots[k]].alias_of = n->out[0];
		p->tensors[roots[k]].part_bytes = at;
		at += p->tensors[roots[k]].size_bytes;
		e->given[n->out[0]] |= e->given[roots[k]];
	}
	rg_free(roots);
	return joined;
}

/* Aliases name the value whose memory it is, never an alias. */
static void straighten(struct rg_plan *p)
{
	for (int v = 0; v < p->n_tensors; v++) {
		int64_t part;
		int root = find_root(p, v, &part);

		for (int at = v; at != root;) {
			struct rg_plan_tensor *t = &p->tensors[at];
			int next = t->alias_of;
			int64_t own = t->part_bytes;

			t->alias_of = root;
			t->part_bytes = part;
			t->place = p->tensors[root].place;
			t->data = p->tensors[root].data ? (const char *)p->tensors[root].data + part : NULL;
			part -= own;
			at = next;
		}
	}
}

static int embed_all(struct embedder *e, struct rg_error *err)
{
	struct rg_plan *p = e->p;
	int kept = 0, rc = 0;

	find_load(e);
	for (int s = 0; s < p->n_steps; s++)
		for (int k = 0; k < p->steps[s].n_out; k++)
			if (p->steps[s].out[k] >= 0)
				e->made[p->steps[s].out[k]] = 1;
	for (int s = 0; s < p->n_steps; s++) {
		int node = p->steps[s].node;

		if (!rc && !p->steps[s].dynamic)
			rc = cut(e, &p->graph->nodes[node]) ? 1 : join(e, node, err);
		if (rc > 0) {
			p->views[p->n_views++] = node;
			rc = 0;
		} else {
			p->steps[kept++] = p->steps[s];
		}
	}
	p->n_steps = kept;
	straighten(p);
	return rc;
}

int rg_plan_embed(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	size_t n = (size_t)p->n_tensors + 1, steps = (size_t)p->n_steps + 1;
	struct embedder e = { .p = p, .live = rg_calloc(n, sizeof(*e.live)), .made = rg_calloc(n, 1),
			      .given = rg_calloc(n, 1), .marks = rg_calloc(n, sizeof(*e.marks)),
			      .load_bytes = rg_calloc(steps, sizeof(*e.load_bytes)) };
	int rc = 0;

	if (!e.live || !e.made || !e.given || !e.marks || !e.load_bytes)
		rc = rg_error_nomem(err, n * sizeof(*e.live));
	for (int v = 0; v < p->n_tensors && !rc; v++)
		e.live[v].first = -1;
	if (!rc && p->n_steps > 0)
		rc = embed_all(&e, err);
	rg_free(e.live);
	rg_free(e.made);
	rg_free(e.given);
	rg_free(e.marks);
	rg_free(e.load_bytes);
	return rc;
}
