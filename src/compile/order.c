/*
 * The order of steps, chosen for memory. Any order in which each step comes behind
 * those whose bytes it reads gives the same outputs; how much is alive at once differs.
 * Finding the best one is hard (it contains register sufficiency), so several
 * orders are made by list scheduling: of the steps that are ready, the next is one that
 *   - leaves least alive behind it, or
 *   - needs least while it runs, or
 *   - became ready last, which finishes one branch before it begins the next,
 * equals in the order of the graph. Each order is then measured as the planner will
 * see it, outputs in place of inputs and all, and the best is taken only where
 * it has less alive at its peak than the order of the graph.
 *
 * Steps on the dynamic path stay in order among themselves.
 */
#include "compile/internal.h"

#include <string.h>

#include "base/alloc.h"

enum rule { LEAST_BEHIND, LEAST_WHILE, LATEST, LEAST_BEHIND_LATEST, N_RULES };

struct scheduler {
	const struct rg_plan *p;
	int *first_next, *next; /* by step into `next`: steps that wait for it */
	int *waits;             /* by step: for how many */
	int *ready, n_ready;    /* in the order in which they became so */
	int *left;              /* by root: steps that have not touched it yet */
	bool *there;            /* by root: a step touched it */
	bool *kept;             /* by root: a graph output lies in it */
	int *seen, stamp;       /* by root: the last question about it */
	int *order, *best;      /* old numbers of steps */
};

/* What a step changes: bytes that come, that go, and that it needs beside. */
struct change {
	int64_t more, less, scratch;
};

static int value_at(const struct rg_step *s, int k)
{
	return k < s->n_in ? s->in[k] : s->out[k - s->n_in];
}

static struct change look(struct scheduler *c, int step)
{
	const struct rg_step *s = &c->p->steps[step];
	struct change d = { .scratch = s->scratch_bytes };
	int k;

	c->stamp++;
	for (k = 0; k < s->n_in + s->n_out; k++) {
		int root = value_at(s, k) >= 0 ? rg_plan_root(c->p, value_at(s, k)) : -1;
		const struct rg_plan_tensor *t = root >= 0 ? &c->p->tensors[root] : NULL;

		if (!t || t->place != RG_PLACE_ARENA || c->seen[root] == c->stamp)
			continue;
		c->seen[root] = c->stamp;
		if (!c->there[root])
			d.more += t->size_bytes;
		if (c->left[root] == 1 && !c->kept[root])
			d.less += t->size_bytes;
	}
	return d;
}

static void take(struct scheduler *c, int step)
{
	const struct rg_step *s = &c->p->steps[step];
	int k;

	c->stamp++;
	for (k = 0; k < s->n_in + s->n_out; k++) {
		int root = value_at(s, k) >= 0 ? rg_plan_root(c->p, value_at(s, k)) : -1;

		if (root < 0 || c->seen[root] == c->stamp)
			continue;
		c->seen[root] = c->stamp;
		c->there[root] = true;
		c->left[root]--;
	}
	for (k = c->first_next[step]; k < c->first_next[step + 1]; k++)
		if (--c->waits[c->next[k]] == 0)
			c->ready[c->n_ready++] = c->next[k];
}

/* Is the step x, with its change, a better choice than y? Later ones are asked first. */
static bool better(enum rule rule, const struct change *x, const struct change *y, int step_x, int step_y)
{
	int64_t behind_x = x->more - x->less, behind_y = y->more - y->less;
	int64_t while_x = x->more + x->scratch, while_y = y->more + y->scratch;

	if (rule == LATEST)
		return false;
	if (rule == LEAST_WHILE && while_x != while_y)
		return while_x < while_y;
	if (behind_x != behind_y)
		return behind_x < behind_y;
	if (rule == LEAST_BEHIND_LATEST)
		return false;
	if (while_x != while_y)
		return while_x < while_y;
	return step_x < step_y;
}

static int choose(struct scheduler *c, enum rule rule)
{
	int chosen = c->n_ready - 1, i, step;
	struct change least = look(c, c->ready[chosen]);

	for (i = c->n_ready - 2; i >= 0 && rule != LATEST; i--) {
		struct change d = look(c, c->ready[i]);

		if (!better(rule, &d, &least, c->ready[i], c->ready[chosen]))
			continue;
		chosen = i;
		least = d;
	}
	step = c->ready[chosen];
	c->n_ready--;
	memmove(&c->ready[chosen], &c->ready[chosen + 1], (size_t)(c->n_ready - chosen) * sizeof(c->ready[0]));
	return step;
}

/* In-degrees, and how often each root is touched. */
static void begin(struct scheduler *c)
{
	const struct rg_plan *p = c->p;
	int i, k;

	memset(c->waits, 0, (size_t)p->n_steps * sizeof(c->waits[0]));
	memset(c->left, 0, (size_t)p->n_tensors * sizeof(c->left[0]));
	memset(c->there, 0, (size_t)p->n_tensors * sizeof(c->there[0]));
	for (i = 0; i < c->first_next[p->n_steps]; i++)
		c->waits[c->next[i]]++;
	c->n_ready = 0;
	for (i = 0; i < p->n_steps; i++) {
		c->stamp++;
		for (k = 0; k < p->steps[i].n_in + p->steps[i].n_out; k++) {
			int v = value_at(&p->steps[i], k), root = v >= 0 ? rg_plan_root(p, v) : -1;

			if (root < 0 || c->seen[root] == c->stamp)
				continue;
			c->seen[root] = c->stamp;
			c->left[root]++;
		}
	}
	/* the first of the graph last, so that it is the latest */
	for (i = p->n_steps - 1; i >= 0; i--)
		if (c->waits[i] == 0)
			c->ready[c->n_ready++] = i;
}

static void make_order(struct scheduler *c, enum rule rule)
{
	int n = 0;

	begin(c);
	while (c->n_ready > 0) {
		c->order[n] = choose(c, rule);
		take(c, c->order[n++]);
	}
}

/* Steps as `order` has them; without one, back. */
static void put(struct rg_plan *p, const struct rg_step *steps, const int *order)
{
	int i;

	for (i = 0; i < p->n_steps; i++)
		p->steps[i] = steps[order ? order[i] : i];
}

/* Edges by their first step, and one from each dynamic step to the next. */
static void list_next(struct scheduler *c)
{
	const struct rg_plan *p = c->p;
	int pass, i, last;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < p->n_edges; i++) {
			if (pass)
				c->next[--c->first_next[p->edges[i].from_step + 1]] = p->edges[i].to_step;
			else
				c->first_next[p->edges[i].from_step + 1]++;
		}
		for (i = 0, last = -1; i < p->n_steps; i++) {
			if (!p->steps[i].dynamic)
				continue;
			if (last >= 0 && pass)
				c->next[--c->first_next[last + 1]] = i;
			else if (last >= 0)
				c->first_next[last + 1]++;
			last = i;
		}
		for (i = 0; i < p->n_steps && !pass; i++)
			c->first_next[i + 1] += c->first_next[i];
	}
	/* what was the end of each list is its beginning now */
	for (i = 0; i < p->n_steps; i++)
		c->first_next[i] = c->first_next[i + 1];
	c->first_next[p->n_steps] = p->n_edges;
	for (i = 0, last = -1; i < p->n_steps; i++) {
		if (p->steps[i].dynamic) {
			c->first_next[p->n_steps] += last >= 0;
			last = i;
		}
	}
}

static int make_room(struct scheduler *c, struct rg_step **steps, struct rg_error *err)
{
	size_t n = (size_t)c->p->n_steps + 2, m = (size_t)c->p->n_tensors + 1;
	size_t edges = (size_t)c->p->n_edges + n;

	c->first_next = rg_calloc(n, sizeof(int));
	c->next = rg_calloc(edges, sizeof(int));
	c->waits = rg_calloc(n, sizeof(int));
	c->ready = rg_calloc(n, sizeof(int));
	c->order = rg_calloc(n, sizeof(int));
	c->best = rg_calloc(n, sizeof(int));
	c->left = rg_calloc(m, sizeof(int));
	c->seen = rg_calloc(m, sizeof(int));
	c->there = rg_calloc(m, sizeof(bool));
	c->kept = rg_calloc(m, sizeof(bool));
	*steps = rg_calloc(n, sizeof(**steps));
	if (!c->first_next || !c->next || !c->waits || !c->ready || !c->order || !c->best || !c->left || !c->seen ||
	    !c->there || !c->kept || !*steps)
		return rg_error_nomem(err, edges * sizeof(int));
	return 0;
}

static void free_room(struct scheduler *c, struct rg_step *steps)
{
	rg_free(c->first_next);
	rg_free(c->next);
	rg_free(c->waits);
	rg_free(c->ready);
	rg_free(c->order);
	rg_free(c->best);
	rg_free(c->left);
	rg_free(c->seen);
	rg_free(c->there);
	rg_free(c->kept);
	rg_free(steps);
}

int rg_plan_order(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	struct scheduler c = { .p = p };
	struct rg_step *steps = NULL;
	int64_t least, load;
	int rule, i, rc = rg_plan_edges(b, err);

	if (!rc)
		rc = make_room(&c, &steps, err);
	if (!rc)
		rc = rg_plan_load(b, &least, err);
	if (rc || p->n_steps == 0)
		goto out;
	p->graph_order_bound_bytes = least;
	memcpy(steps, p->steps, (size_t)p->n_steps * sizeof(*steps));
	for (i = 0; i < p->graph->n_outputs; i++)
		c.kept[rg_plan_root(p, p->graph->outputs[i])] = true;
	list_next(&c);
	for (rule = 0; rule < N_RULES && !rc; rule++) {
		make_order(&c, (enum rule)rule);
		put(p, steps, c.order);
		rc = rg_plan_load(b, &load, err);
		put(p, steps, NULL);
		if (rc || load >= least)
			continue;
		least = load;
		memcpy(c.best, c.order, (size_t)p->n_steps * sizeof(c.best[0]));
		p->reordered = true;
	}
	if (p->reordered && !rc)
		put(p, steps, c.best);
out:
	free_room(&c, steps);
	return rc;
}
