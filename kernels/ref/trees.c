/*
 * ai.onnx.ml: tree ensembles. Nodes that are named by tree and node id are found
 * by hash tables in scratch, made anew in each run. Sums in double.
 */
#include <math.h>
#include <string.h>

#include "kernels/ref/ml.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Indices of entries by two keys; -1: free. */
struct table {
	const int64_t *a, *b; /* b may be NULL */
	int32_t *slot;
	uint64_t mask;
};

struct forest {
	struct rg_forest f;
	struct table node, vote, tree;
	int32_t *next;      /* the next vote of the same leaf, -1: none */
	int64_t *first;     /* not by_index: the first node of each tree */
	const int64_t *root;
	int64_t *set;       /* by_index: where a node's members begin */
	int64_t n_roots;
	double *score;
	bool *voted;
};

static uint64_t slots_for(int64_t n)
{
	uint64_t size = 2;

	while (size < 2 * (uint64_t)n)
		size *= 2;
	return size;
}

/* The slot that holds the keys, or the free one where they belong. */
static int32_t *find(const struct table *t, int64_t a, int64_t b)
{
	uint64_t h = ((uint64_t)a * UINT64_C(0x9E3779B97F4A7C15)) ^ ((uint64_t)b * UINT64_C(0xC2B2AE3D27D4EB4F));

	for (h ^= h >> 29;; h++) {
		int32_t *slot = &t->slot[h & t->mask];

		if (*slot < 0 || (t->a[*slot] == a && (!t->b || t->b[*slot] == b)))
			return slot;
	}
}

static int32_t lookup(const struct table *t, int64_t a, int64_t b)
{
	return *find(t, a, t->b ? b : 0);
}

/* ---- scratch ---- */

struct room {
	char *base; /* NULL: only the size is asked for */
	size_t used;
};

static void *take(struct room *r, size_t bytes)
{
	void *p = r->base ? r->base + r->used : NULL;

	r->used += (bytes + 7) & ~(size_t)7;
	return p;
}

static void take_table(struct table *t, const int64_t *a, const int64_t *b, int64_t n, struct room *r)
{
	t->a = a;
	t->b = b;
	t->mask = slots_for(n) - 1;
	t->slot = take(r, (t->mask + 1) * sizeof(*t->slot));
}

static void lay_out(struct forest *s, struct room *r)
{
	const struct rg_forest *f = &s->f;

	s->score = take(r, (size_t)f->n_targets * sizeof(*s->score));
	s->voted = take(r, (size_t)f->n_targets);
	if (f->by_index) {
		s->set = take(r, (size_t)f->n * sizeof(*s->set));
		return;
	}
	s->first = take(r, (size_t)f->n * sizeof(*s->first));
	s->next = take(r, (size_t)f->n_votes * sizeof(*s->next));
	take_table(&s->node, f->tree, f->id, f->n, r);
	take_table(&s->tree, f->tree, NULL, f->n, r);
	take_table(&s->vote, f->vote_tree, f->vote_node, f->n_votes, r);
}

static size_t scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct room r = { .base = NULL };
	struct forest s;

	memset(&s, 0, sizeof(s));
	if (rg_forest_resolve(c->node, &s.f, &err))
		return 0;
	lay_out(&s, &r);
	return r.used;
}

static void clear(struct table *t)
{
	memset(t->slot, 0xff, (t->mask + 1) * sizeof(*t->slot));
}

static int index_names(struct forest *s, struct rg_error *err)
{
	const struct rg_forest *f = &s->f;

	clear(&s->node);
	clear(&s->tree);
	clear(&s->vote);
	for (int64_t i = 0; i < f->n; i++) {
		int32_t *node = find(&s->node, f->tree[i], f->id[i]), *tree = find(&s->tree, f->tree[i], 0);

		if (*node >= 0)
			return rg_error_set(err, -EINVAL, "tree %lld has two nodes %lld", (long long)f->tree[i],
					    (long long)f->id[i]);
		*node = (int32_t)i;
		if (*tree >= 0)
			continue;
		*tree = (int32_t)i;
		s->first[s->n_roots++] = i;
	}
	for (int64_t i = f->n_votes - 1; i >= 0; i--) { /* backwards: chains are in order */
		int32_t *vote = find(&s->vote, f->vote_tree[i], f->vote_node[i]);

		s->next[i] = *vote;
		*vote = (int32_t)i;
	}
	return 0;
}

static void index_members(struct forest *s)
{
	int64_t at = 0;

	for (int64_t i = 0; i < s->f.n; i++) {
		s->set[i] = at;
		if (rg_forest_branch(&s->f, i) != RG_BRANCH_MEMBER)
			continue;
		while (!isnan(rg_ml_at(&s->f.members, at)))
			at++;
		at++;
	}
}

/* ---- a row ---- */

static bool is_member(const struct forest *s, int64_t i, double v)
{
	for (int64_t at = s->set[i];; at++) {
		double m = rg_ml_at(&s->f.members, at);

		if (isnan(m) || m == v)
			return !isnan(m);
	}
}

static bool takes_yes(const struct forest *s, int64_t i, enum rg_ml_branch b, double v)
{
	double split = b == RG_BRANCH_MEMBER ? 0 : rg_ml_at(&s->f.split, i);

	if (isnan(v))
		return s->f.missing && s->f.missing[i] != 0;
	switch (b) {
	case RG_BRANCH_LEQ: return v <= split;
	case RG_BRANCH_LT: return v < split;
	case RG_BRANCH_GTE: return v >= split;
	case RG_BRANCH_GT: return v > split;
	case RG_BRANCH_EQ: return v == split;
	case RG_BRANCH_NEQ: return v != split;
	default: return is_member(s, i, v);
	}
}

static void vote(struct forest *s, int64_t i)
{
	int64_t t = s->f.vote_target[i];
	double w = rg_ml_at(&s->f.weight, i);

	if (!s->voted[t])
		s->score[t] = w;
	else if (s->f.aggregate == RG_AGGREGATE_MIN)
		s->score[t] = fmin(s->score[t], w);
	else if (s->f.aggregate == RG_AGGREGATE_MAX)
		s->score[t] = fmax(s->score[t], w);
	else
		s->score[t] += w;
	s->voted[t] = true;
}

static int walk(struct forest *s, const struct rg_tensor *x, int64_t first, int64_t i, struct rg_error *err)
{
	const struct rg_forest *f = &s->f;

	for (int64_t steps = 0; steps < f->n; steps++) {
		enum rg_ml_branch b = rg_forest_branch(f, i);
		int64_t tree = f->by_index ? 0 : f->tree[i];
		bool yes;

		if (b == RG_BRANCH_LEAF) {
			for (int32_t v = lookup(&s->vote, tree, f->id[i]); v >= 0; v = s->next[v])
				vote(s, v);
			return 0;
		}
		yes = takes_yes(s, i, b, rg_ref_get(x, first + f->feature[i]));
		if (f->by_index && (yes ? f->yes_leaf : f->no_leaf)[i]) {
			vote(s, (yes ? f->yes : f->no)[i]);
			return 0;
		}
		if (f->by_index)
			i = (yes ? f->yes : f->no)[i];
		else
			i = lookup(&s->node, tree, (yes ? f->yes : f->no)[i]);
		if (i < 0)
			return rg_error_set(err, -EINVAL, "a node of tree %lld names a child that does not exist",
					    (long long)tree);
	}
	return rg_error_set(err, -EINVAL, "a tree of the ensemble runs in a circle");
}

static int row_scores(struct forest *s, const struct rg_tensor *x, int64_t first, struct rg_error *err)
{
	const struct rg_forest *f = &s->f;

	for (int64_t t = 0; t < f->n_targets; t++) {
		s->score[t] = 0;
		s->voted[t] = false;
	}
	for (int64_t r = 0; r < s->n_roots; r++) {
		int rc = walk(s, x, first, s->root[r], err);

		if (rc)
			return rc;
	}
	for (int64_t t = 0; t < f->n_targets; t++) {
		if (f->aggregate == RG_AGGREGATE_AVERAGE)
			s->score[t] /= (double)s->n_roots;
		if (t < f->base.n)
			s->score[t] += rg_ml_at(&f->base, t);
		if (f->classifies) /* the class is that of the scores as they are given out */
			s->score[t] = (double)(float)s->score[t];
	}
	return 0;
}

/* Two classes by the score of one of them: a probability where all votes are
 * positive, else positive for the second class. */
static int64_t one_score(struct forest *s)
{
	double p = s->score[0];

	s->score[1] = p;
	s->score[0] = s->f.positive && s->f.post == RG_POST_NONE ? 1 - p : -p;
	return p > (s->f.positive ? 0.5 : 0);
}

static int prepare(const struct rg_call *c, struct forest *s, struct rg_error *err)
{
	struct room r = { .base = c->scratch };
	int rc;

	memset(s, 0, sizeof(*s));
	rc = rg_forest_resolve(c->node, &s->f, err);
	if (rc)
		return rc;
	lay_out(s, &r);
	if (!s->f.by_index) {
		s->root = s->first;
		return index_names(s, err);
	}
	index_members(s);
	s->root = s->f.root;
	s->n_roots = s->f.n_roots;
	return 0;
}

static int trees(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *scores = NULL;
	int64_t rows, features;
	struct forest s;
	int rc = prepare(c, &s, err);

	if (rc)
		return rc;
	if (c->node->n_out > s.f.classifies)
		scores = &c->out[s.f.classifies];
	rg_ml_rows(&c->in[0].shape, &rows, &features);
	for (int64_t r = 0; r < rows; r++) {
		int64_t best;

		rc = row_scores(&s, &c->in[0], r * features, err);
		if (rc)
			return rc;
		best = s.f.one_score ? one_score(&s) : rg_ref_ml_best(s.score, s.f.n_targets);
		if (s.f.classifies && c->out[0].dtype != RG_UNDEFINED)
			((int64_t *)c->out[0].data)[r] = s.f.label[best];
		rg_ref_ml_post(s.f.post, s.score, s.f.n_targets);
		if (scores && scores->dtype != RG_UNDEFINED)
			rg_ref_store(scores, r * s.f.n_targets, 1, s.f.n_targets, s.score);
	}
	return 0;
}

#define ENTRY(NAME) \
	{ .op_type = NAME, .domain = "ai.onnx.ml", .name = "ref", .scratch_bytes = scratch, .run = trees }

static const struct rg_kernel kernels[] = {
	ENTRY("TreeEnsemble"),
	ENTRY("TreeEnsembleClassifier"),
	ENTRY("TreeEnsembleRegressor"),
};
RG_KERNEL_TABLE(rg_kernels_ref_trees, kernels);
