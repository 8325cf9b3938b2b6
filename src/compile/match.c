/* See match.h. */
#include "compile/match.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/needed.h"
#include "compile/rewrite.h"

static bool is_const(const struct rg_graph *g, int value)
{
	return g->values[value].origin != RG_CONST_NONE;
}

static void read_by(struct rg_match *m, int value, int node, int *used)
{
	if (value < 0)
		return;
	m->uses[*used] = (struct rg_match_use){ node, m->first_use[value] };
	m->first_use[value] = (*used)++;
	m->n_uses[value]++;
}

int rg_match_begin(struct rg_match *m, struct rg_graph *g, const char *pass, struct rg_pass_log *log,
		   struct rg_error *err)
{
	size_t n = (size_t)g->n_values + 1, all = 1;
	unsigned char *needed = rg_calloc(n, 1);
	int used = 0;

	*m = (struct rg_match){ .g = g, .pass = pass, .log = log, .n_nodes = g->n_nodes,
				.n_values = g->n_values };
	for (int i = 0; i < g->n_nodes; i++)
		all += (size_t)g->nodes[i].n_in + (size_t)g->nodes[i].n_captured;
	m->live = rg_calloc((size_t)g->n_nodes + 1, 1);
	m->gone = rg_calloc((size_t)g->n_nodes + 1, 1);
	m->pinned = rg_calloc((size_t)g->n_nodes + 1, 1);
	m->first_use = rg_calloc(n, sizeof(*m->first_use));
	m->n_uses = rg_calloc(n, sizeof(*m->n_uses));
	m->uses = rg_calloc(all, sizeof(*m->uses));
	m->captured = rg_calloc(n, 1);
	m->instead = rg_calloc(n, sizeof(*m->instead));
	if (!needed || !m->live || !m->gone || !m->pinned || !m->first_use || !m->n_uses || !m->uses ||
	    !m->captured || !m->instead) {
		rg_free(needed);
		return rg_error_nomem(err, all * sizeof(*m->uses));
	}
	rg_mark_needed(g, false, needed, m->live);
	rg_free(needed);
	for (int v = 0; v < g->n_values; v++) {
		m->first_use[v] = -1;
		m->instead[v] = v;
	}
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < log->n_pinned && !m->pinned[i]; k++)
			m->pinned[i] = !strcmp(g->nodes[i].op_type, log->pinned[k]) ||
				       !strcmp(g->nodes[i].name, log->pinned[k]);
	for (int i = 0; i < g->n_nodes; i++) {
		if (!m->live[i])
			continue;
		for (int k = 0; k < g->nodes[i].n_in; k++)
			read_by(m, g->nodes[i].in[k], i, &used);
		for (int k = 0; k < g->nodes[i].n_captured; k++)
			read_by(m, g->nodes[i].captured[k], i, &used);
	}
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i].n_captured; k++)
			m->captured[g->nodes[i].captured[k]] = 1;
	return 0;
}

/* Nodes are in topological order: what a dropped one made is missing before it is read. */
static int drop_dead_readers(struct rg_match *m, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	unsigned char *missing = rg_calloc((size_t)g->n_values + 1, 1);

	if (!missing)
		return rg_error_nomem(err, (size_t)g->n_values);
	for (int v = 0; v < g->n_values; v++)
		missing[v] = !g->values[v].is_input && !g->values[v].from_outer && !is_const(g, v);
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i].n_out && (i >= m->n_nodes || !m->gone[i]); k++)
			if (g->nodes[i].out[k] >= 0)
				missing[g->nodes[i].out[k]] = 0;
	for (int i = 0; i < m->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];
		bool reads = false;

		for (int k = 0; k < n->n_in && !m->live[i]; k++)
			reads = reads || (n->in[k] >= 0 && missing[n->in[k]] && !is_const(g, n->in[k]));
		for (int k = 0; k < n->n_captured && !m->live[i]; k++)
			reads = reads || (missing[n->captured[k]] && !is_const(g, n->captured[k]));
		if (!reads || m->gone[i])
			continue;
		m->gone[i] = 1;
		m->log->n_dead++;
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0)
				missing[n->out[k]] = 1;
	}
	rg_free(missing);
	return 0;
}

static void read_instead(struct rg_match *m)
{
	for (int i = 0; i < m->g->n_nodes; i++)
		for (int k = 0; k < m->g->nodes[i].n_in; k++)
			m->g->nodes[i].in[k] = rg_rewrite_now(m, m->g->nodes[i].in[k]);
}

int rg_match_end(struct rg_match *m, int rc, struct rg_error *err)
{
	if (!rc && m->n_rewrites)
		read_instead(m);
	if (!rc && m->n_rewrites)
		rc = drop_dead_readers(m, err);
	if (!rc && m->n_rewrites)
		rc = rg_graph_drop_nodes(m->g, m->gone, m->n_nodes, err);
	rg_free(m->live);
	rg_free(m->gone);
	rg_free(m->pinned);
	rg_free(m->first_use);
	rg_free(m->n_uses);
	rg_free(m->uses);
	rg_free(m->captured);
	rg_free(m->instead);
	return rc ? rc : m->n_rewrites;
}

bool rg_match_open(const struct rg_match *m, int node)
{
	return node >= 0 && node < m->n_nodes && !m->gone[node] && !m->pinned[node] && m->live[node] &&
	       !(m->log->limit && m->log->n_rewritten >= m->log->limit);
}

bool rg_match_is(const struct rg_match *m, int node, const char *op_type)
{
	return rg_match_is_of(m, node, "", op_type);
}

bool rg_match_is_of(const struct rg_match *m, int node, const char *domain, const char *op_type)
{
	const struct rg_node *n;

	if (!rg_match_open(m, node))
		return false;
	n = &m->g->nodes[node];
	return !n->unsupported && !strcmp(n->op_type, op_type) && !strcmp(n->domain, domain);
}

int rg_match_maker(const struct rg_match *m, int value, const char *op_type)
{
	int at = value >= 0 ? m->g->values[value].producer : -1;

	return rg_match_is(m, at, op_type) && m->g->nodes[at].out[0] == value ? at : -1;
}

enum rg_decline rg_match_inside(const struct rg_match *m, int value)
{
	const struct rg_value *v = &m->g->values[value];

	return v->is_output ? RG_DECLINE_GRAPH_OUTPUT : m->n_uses[value] > 1 ? RG_DECLINE_SECOND_CONSUMER :
	       v->dynamic || !v->shaped ? RG_DECLINE_DYNAMIC : RG_DECLINE_NONE;
}

int rg_match_reader(const struct rg_match *m, int node, const char *op_type, bool commutes,
		    enum rg_decline *why)
{
	return rg_match_reader_of(m, node, "", op_type, commutes, why);
}

int rg_match_reader_of(const struct rg_match *m, int node, const char *domain, const char *op_type,
		       bool commutes, enum rg_decline *why)
{
	const struct rg_node *n = &m->g->nodes[node];

	*why = RG_DECLINE_NONE;
	for (int k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return -1;
	if (n->n_out < 1 || n->out[0] < 0)
		return -1;
	for (int u = m->first_use[n->out[0]]; u >= 0; u = m->uses[u].next) {
		const struct rg_node *reader = &m->g->nodes[m->uses[u].node];

		if (!rg_match_is_of(m, m->uses[u].node, domain, op_type) ||
		    (reader->in[0] != n->out[0] &&
		     !(commutes && reader->n_in > 1 && reader->in[1] == n->out[0])))
			continue;
		*why = rg_match_inside(m, n->out[0]);
		return m->uses[u].node;
	}
	return -1;
}

const float *rg_match_floats(const struct rg_graph *g, int value, int64_t *count)
{
	const struct rg_value *v = value >= 0 ? &g->values[value] : NULL;

	/* a graph input that has become a constant stays one that a caller gives */
	if (!v || v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND || v->dtype != RG_F32 || !v->data)
		return NULL;
	*count = rg_shape_count(&v->shape);
	return v->data;
}

bool rg_match_number(const struct rg_graph *g, int value, float *out)
{
	int64_t count;
	const float *f = rg_match_floats(g, value, &count);

	if (!f || count != 1)
		return false;
	*out = *f;
	return true;
}

bool rg_match_clip(const struct rg_graph *g, const struct rg_node *n, float *low, float *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	if (n->version < 11) {
		*low = rg_node_float(n, "min", *low);
		*high = rg_node_float(n, "max", *high);
	} else if ((n->n_in > 1 && n->in[1] >= 0 && !rg_match_number(g, n->in[1], low)) ||
		   (n->n_in > 2 && n->in[2] >= 0 && !rg_match_number(g, n->in[2], high))) {
		return false;
	}
	return !isnan(*low) && !isnan(*high);
}

int rg_match_note(struct rg_match *m, int node, int into, enum rg_decline why, struct rg_error *err)
{
	const struct rg_node *n = &m->g->nodes[node];
	struct rg_pass_note note = { m->pass, n->name, n->op_type, m->g->nodes[into].name, why, false };

	return rg_pass_note(m->log, &note, err);
}

int rg_match_note_settled(struct rg_match *m, int node, int into, enum rg_decline why, struct rg_error *err)
{
	int rc = rg_match_note(m, node, into, why, err);

	if (!rc)
		m->log->notes[m->log->n_notes - 1].settled = true;
	return rc;
}
