/*
 * What only names the same elements in the same order by another shape: Reshape, Squeeze, Unsqueeze,
 * Flatten, Transpose of dimensions of 1, reductions over dimensions of 1, Expand to more of them. A chain of
 * these becomes one Reshape of its source; the others become Reshape, which costs nothing when it runs.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

static bool is_one_of(const char *op_type, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(op_type, *list))
			return true;
	return false;
}

static bool moves_ones(const struct rg_graph *g, const struct rg_node *n)
{
	int64_t perm[RG_MAX_RANK];

	rg_rewrite_perm(g, n, perm);
	return rg_rewrite_keeps_order(&g->values[n->in[0]].shape, perm);
}

/* 1: a view already, 2: one that the graph does not call so; 0: neither. */
static int is_view(const struct rg_match *m, int at)
{
	static const char *const views[] = { "Reshape", "Squeeze", "Unsqueeze", "Flatten", NULL };
	static const char *const hidden[] = { "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd",
		"ReduceSum", "Expand", NULL };
	const struct rg_graph *g = m->g;
	const struct rg_node *n;
	const struct rg_value *from, *to;

	if (at < 0 || at >= m->n_nodes || !rg_match_is(m, at, g->nodes[at].op_type))
		return 0;
	n = &g->nodes[at];
	if (!rg_rewrite_is_plain(g, n))
		return 0;
	from = &g->values[n->in[0]];
	to = &g->values[n->out[0]];
	if (from->origin != RG_CONST_NONE || from->dtype != to->dtype || rg_shape_count(&from->shape) < 1 ||
	    rg_shape_count(&from->shape) != rg_shape_count(&to->shape))
		return 0;
	if (is_one_of(n->op_type, views))
		return 1;
	return is_one_of(n->op_type, hidden) || (!strcmp(n->op_type, "Transpose") && moves_ones(g, n)) ? 2 :
													 0;
}

/* The shape of a Reshape that does not depend on what its input looks like. */
static bool keeps_shape_input(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *s;

	if (strcmp(n->op_type, "Reshape") || n->n_in < 2 || n->in[1] < 0)
		return false;
	s = &g->values[n->in[1]];
	if (s->origin == RG_CONST_NONE || s->dtype != RG_I64 || !s->data)
		return false;
	for (int64_t i = 0; i < rg_shape_count(&s->shape); i++)
		if (((const int64_t *)s->data)[i] == 0)
			return false;
	return true;
}

static int rewrite(struct rg_match *m, int at, int source, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node n = g->nodes[at];
	struct rg_pass_note note = { .pass = m->pass, .node = n.name, .op_type = n.op_type };
	const struct rg_shape from = g->values[source].shape, to = g->values[n.out[0]].shape;
	int in[2] = { source, n.n_in > 1 ? n.in[1] : -1 }, rc = 0;

	if (rg_shape_equal(&from, &to) && !rg_rewrite_may_skip(m, at, source))
		return rg_rewrite_skip(m, at, source, err);
	note.into = g->values[source].producer >= 0 ? g->nodes[g->values[source].producer].name :
						      g->values[source].name;
	if (!keeps_shape_input(g, &n))
		in[1] = rg_rewrite_shape(g, n.name, &from, &to, err);
	if (in[1] < 0)
		return in[1];
	rc = rg_rewrite_node(m, at, "Reshape", 5, 2, in, 0, NULL, err);
	return rc < 0 ? rc : rg_pass_note(m->log, &note, err);
}

/* Whether somebody reads what a view gives who is none himself; the others will read its source. */
static bool is_last(const struct rg_match *m, int out, const unsigned char *kind)
{
	if (m->g->values[out].is_output || m->captured[out])
		return true;
	for (int u = m->first_use[out]; u >= 0; u = m->uses[u].next)
		if (!kind[m->uses[u].node] || m->g->nodes[m->uses[u].node].in[0] != out)
			return true;
	return false;
}

static int merge(struct rg_match *m, unsigned char *kind, int *source, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	int rc = 0;

	for (int v = 0; v < m->n_values; v++)
		source[v] = v;
	/* nodes are in topological order */
	for (int i = 0; i < m->n_nodes; i++) {
		kind[i] = (unsigned char)is_view(m, i);
		if (kind[i])
			source[g->nodes[i].out[0]] = source[g->nodes[i].in[0]];
	}
	for (int i = 0; i < m->n_nodes && !rc; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (kind[i] && (kind[i] == 2 || source[n->in[0]] != n->in[0]) &&
		    is_last(m, n->out[0], kind) && rg_match_is(m, i, n->op_type))
			rc = rewrite(m, i, rg_rewrite_now(m, source[n->in[0]]), err);
	}
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_reshape_merge.name, log, err);
	unsigned char *kind = rg_calloc((size_t)m.n_nodes + 1, 1);
	int *source = rg_calloc((size_t)m.n_values + 1, sizeof(*source));

	if (!rc && (!kind || !source))
		rc = rg_error_nomem(err, (size_t)m.n_values * sizeof(*source));
	if (!rc)
		rc = merge(&m, kind, source, err);
	rg_free(kind);
	rg_free(source);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_reshape_merge = {
	.name = "reshape-merge",
	.what = "chains of reshapes to one, and what is a reshape by its shapes",
	.level = 1,
	.run = run,
};
