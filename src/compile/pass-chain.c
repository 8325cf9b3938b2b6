/*
 * Elementwise operators that read each other become one step: ridge's own Chain,
 * which takes a piece of the tensor through all of them while it is in L1. It
 * saves writing and reading what lies between.
 *
 * A group grows from its last node backward: a producer joins when all its readers are in the
 * group, it is no output of the graph, and its output has the shape of the
 * result (a smaller one would be computed again for each element that it is
 * broadcast to). So no path leaves the group and comes back, and the group can run
 * where its last node stood. What a program holds (kernels/ewise.h) bounds its size.
 */
#include <stdio.h>
#include <string.h>

#include "compile/match.h"
#include "compile/passes.h"
#include "graph/own.h"
#include "kernels/chain.h"

struct group {
	int n, node[RG_EW_MAX_OPS];    /* ascending, so in an order in which they can run */
	int n_in, in[RG_EW_MAX_IN];    /* values from outside */
};

static bool has(const struct group *p, int node)
{
	for (int i = 0; i < p->n; i++)
		if (p->node[i] == node)
			return true;
	return false;
}

/* One output, known, by a kernel that can be part of a program. */
static bool is_candidate(const struct rg_match *m, int at)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n;
	const struct rg_value *y;

	if (!rg_match_open(m, at))
		return false;
	n = &g->nodes[at];
	if (n->unsupported || n->n_out != 1 || n->out[0] < 0 || !rg_chain_may_hold(n) || n->n_captured || strcmp(n->domain, RG_OWN_DOMAIN) == 0)
		return false;
	for (int i = 0; i < n->n_attrs; i++)
		if (n->attrs[i].type == RG_ATTR_TENSOR || n->attrs[i].type == RG_ATTR_GRAPH)
			return false;
	y = &g->values[n->out[0]];
	if (y->dynamic || !y->shaped || y->origin != RG_CONST_NONE || rg_shape_count(&y->shape) < 1)
		return false;
	for (int i = 0; i < n->n_in; i++)
		if (n->in[i] >= 0 && (!g->values[n->in[i]].shaped || g->values[n->in[i]].dynamic))
			return false;
	return true;
}

/* What the group reads from outside; false: more than a program takes. */
static bool find_inputs(const struct rg_graph *g, struct group *p)
{
	p->n_in = 0;
	for (int i = 0; i < p->n; i++) {
		const struct rg_node *n = &g->nodes[p->node[i]];

		for (int k = 0; k < n->n_in; k++) {
			int v = n->in[k], at = 0;

			if (v < 0 || (g->values[v].origin == RG_CONST_NONE && has(p, g->values[v].producer)))
				continue;
			while (at < p->n_in && p->in[at] != v)
				at++;
			if (at < p->n_in)
				continue;
			if (p->n_in == RG_EW_MAX_IN)
				return false;
			p->in[p->n_in++] = v;
		}
	}
	return p->n_in > 0;
}

/* The group with `node`, which comes before its last one, where that is a program. */
static bool add(const struct rg_graph *g, struct group *p, int node)
{
	struct group more = { 0 };
	struct rg_ew e;
	int i = 0;

	if (p->n == RG_EW_MAX_OPS)
		return false;
	for (; i < p->n && p->node[i] < node; i++)
		more.node[more.n++] = p->node[i];
	more.node[more.n++] = node;
	for (; i < p->n; i++)
		more.node[more.n++] = p->node[i];
	/* the portable level has all that the others have */
	if (!find_inputs(g, &more) || !rg_chain_program(&e, g, more.n, more.node, more.n_in, more.in, 0))
		return false;
	*p = more;
	return true;
}

static enum rg_decline may_join(const struct rg_match *m, const struct group *p, int node)
{
	const struct rg_graph *g = m->g;
	int y = g->nodes[node].out[0], last = g->nodes[p->node[p->n - 1]].out[0];

	if (g->values[y].is_output)
		return RG_DECLINE_GRAPH_OUTPUT;
	for (int u = m->first_use[y]; u >= 0; u = m->uses[u].next)
		if (!has(p, m->uses[u].node))
			return RG_DECLINE_SECOND_CONSUMER;
	return rg_shape_equal(&g->values[y].shape, &g->values[last].shape) ? RG_DECLINE_NONE : RG_DECLINE_BROADCASTING;
}

/* Takes in producers, the latest first, until none can join. */
static void grow(const struct rg_match *m, struct group *p)
{
	const struct rg_graph *g = m->g;
	int refused[RG_EW_MAX_IN], n_refused = 0; /* a program that is full for one may have room for others */

	for (;;) {
		int best = -1;

		if (!find_inputs(g, p))
			return;
		for (int i = 0; i < p->n_in; i++) {
			int at = g->values[p->in[i]].origin == RG_CONST_NONE ? g->values[p->in[i]].producer : -1, k = 0;

			while (k < n_refused && refused[k] != at)
				k++;
			if (at > best && k == n_refused && is_candidate(m, at) && !may_join(m, p, at))
				best = at;
		}
		if (best < 0)
			return;
		if (!add(g, p, best)) {
			if (n_refused == RG_EW_MAX_IN)
				return;
			refused[n_refused++] = best;
		}
	}
}

/* ---- rewriting ---- */

static int body_value(struct rg_graph *body, const struct rg_graph *g, int from, int number, struct rg_error *err)
{
	char name[32];
	int v;

	snprintf(name, sizeof(name), "chain:%d", number);
	v = rg_graph_value(body, name, err);
	if (v < 0)
		return v;
	body->values[v].shaped = true;
	body->values[v].dtype = g->values[from].dtype;
	body->values[v].shape = g->values[from].shape;
	return v;
}

/* Value `from` of the group in its body: inputs first, then what its nodes make. */
static int body_of(const struct rg_graph *g, const struct group *p, int from)
{
	if (from < 0)
		return -1;
	for (int i = 0; i < p->n_in; i++)
		if (p->in[i] == from)
			return i;
	for (int i = 0; i < p->n; i++)
		if (g->nodes[p->node[i]].out[0] == from)
			return p->n_in + i;
	return -1;
}

static int fill_body(struct rg_graph *body, const struct rg_graph *g, const struct group *p, struct rg_error *err)
{
	int rc = 0;

	for (int i = 0; i < p->n_in + p->n && rc >= 0; i++) /* their indices are their numbers */
		rc = body_value(body, g, i < p->n_in ? p->in[i] : g->nodes[p->node[i - p->n_in]].out[0], i, err);
	for (int i = 0; i < p->n_in && rc >= 0; i++)
		rc = rg_graph_add_input(body, i, err);
	for (int i = 0; i < p->n && rc >= 0; i++) {
		const struct rg_node *n = &g->nodes[p->node[i]];
		int in[RG_EW_MAX_IN], out = p->n_in + i;

		for (int k = 0; k < n->n_in; k++)
			in[k] = body_of(g, p, n->in[k]);
		rc = rg_graph_add_node(body, n->domain, n->op_type, n->name, n->n_in, in, 1, &out, n->n_attrs, n->attrs, err);
		if (rc >= 0)
			body->nodes[rc].opset = n->opset;
	}
	if (rc >= 0)
		rc = rg_graph_add_output(body, p->n_in + p->n - 1, err);
	return rc < 0 ? rc : rg_graph_finish(body, err);
}

static int rewrite(struct rg_match *m, const struct group *p, struct rg_error *err)
{
	struct rg_graph *g = m->g, *body = rg_graph_new(g);
	struct rg_attr attr = { .name = "body", .type = RG_ATTR_GRAPH, .g = body };
	int last = p->node[p->n - 1], out[1] = { g->nodes[last].out[0] }, rc;

	if (!body)
		return rg_error_nomem(err, sizeof(*body));
	rc = fill_body(body, g, p, err);
	if (rc) {
		rg_graph_free(body);
		return rc;
	}
	rc = rg_graph_add_node(g, RG_OWN_DOMAIN, "Chain", g->nodes[last].name, p->n_in, p->in, 1, out, 1, &attr, err);
	if (rc < 0)
		return rc;
	m->n_rewrites++;
	rc = 0;
	for (int i = 0; i < p->n && !rc; i++) {
		m->gone[p->node[i]] = 1;
		if (i < p->n - 1)
			rc = rg_match_note(m, p->node[i], last, RG_DECLINE_NONE, err);
	}
	return rc;
}

/* Why elementwise producers stayed outside; a group is not looked at again. */
static int note_declines(struct rg_match *m, const struct group *p, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	int rc = 0;

	for (int i = 0; i < p->n_in && !rc; i++) {
		int at = g->values[p->in[i]].origin == RG_CONST_NONE ? g->values[p->in[i]].producer : -1;
		enum rg_decline why;

		if (!is_candidate(m, at))
			continue;
		why = may_join(m, p, at);
		rc = rg_match_note_settled(m, at, p->node[p->n - 1], why ? why : RG_DECLINE_KERNEL, err);
	}
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_chain.name, log, err);

	for (int i = m.n_nodes - 1; i >= 0 && !rc; i--) {
		struct group p = { .n = 1, .node = { i } };

		if (!is_candidate(&m, i))
			continue;
		grow(&m, &p);
		rc = note_declines(&m, &p, err);
		if (!rc && p.n > 1)
			rc = rewrite(&m, &p, err);
	}
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_chain = {
	.name = "chain",
	.what = "elementwise operators that read each other into one step over pieces that stay in L1",
	.level = 3,
	.own_only = "it makes operators that only ridge's own executor knows",
	.run = run,
};
