/* See region.h. */
#include "compile/region.h"

#include <string.h>

#include "compile/rewrite.h"

bool rg_region_has(const struct rg_region *r, int node)
{
	for (int i = 0; i < r->n; i++)
		if (r->node[i] == node)
			return true;
	return false;
}

bool rg_region_add(struct rg_region *r, int node)
{
	if (rg_region_has(r, node))
		return true;
	if (r->n == RG_REGION_MOST)
		return false;
	r->kept[r->n] = false;
	r->node[r->n++] = node;
	return true;
}

bool rg_region_keep(struct rg_region *r, int node)
{
	if (!rg_region_add(r, node))
		return false;
	for (int i = 0; i < r->n; i++)
		r->kept[i] = r->kept[i] || r->node[i] == node;
	return true;
}

static enum rg_decline value_inside(const struct rg_match *m, const struct rg_region *r, int value)
{
	const struct rg_value *v = &m->g->values[value];

	if (v->is_output)
		return RG_DECLINE_GRAPH_OUTPUT;
	for (int u = m->first_use[value]; u >= 0; u = m->uses[u].next)
		if (!rg_region_has(r, m->uses[u].node))
			return RG_DECLINE_SECOND_CONSUMER;
	return v->dynamic || !v->shaped ? RG_DECLINE_DYNAMIC : RG_DECLINE_NONE;
}

enum rg_decline rg_region_closed(const struct rg_match *m, const struct rg_region *r, int last)
{
	enum rg_decline why = RG_DECLINE_NONE;

	for (int i = 0; i < r->n && !why; i++) {
		const struct rg_node *n = &m->g->nodes[r->node[i]];

		for (int k = 0; k < n->n_out && !why && r->node[i] != last && !r->kept[i]; k++)
			if (n->out[k] >= 0)
				why = value_inside(m, r, n->out[k]);
	}
	return why;
}

int rg_region_replace(struct rg_match *m, const struct rg_region *r, int last, const struct rg_replacement *by,
		      struct rg_error *err)
{
	struct rg_graph *g = m->g;
	int rc = by->domain[0] ? rg_rewrite_import_contrib(g, err) : 0;

	if (!rc)
		rc = rg_graph_add_node(g, by->domain, by->op_type, g->nodes[last].name, by->n_in, by->in,
				       by->n_out ? by->n_out : 1, by->n_out ? by->out : g->nodes[last].out, by->n_attrs,
				       by->attrs, err);
	if (rc < 0)
		return rc;
	if (!by->domain[0] && by->opset > rg_graph_opset(g, ""))
		g->nodes[rc].opset = by->opset;
	m->n_rewrites++;
	rc = 0;
	for (int i = 0; i < r->n && !rc; i++) {
		m->gone[r->node[i]] = 1;
		if (r->node[i] != last)
			rc = rg_match_note(m, r->node[i], last, RG_DECLINE_NONE, err);
	}
	return rc;
}
