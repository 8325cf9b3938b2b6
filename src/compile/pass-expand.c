/*
 * Expand, or Tile of dimensions of 1, before what broadcasts anyway: the reader takes what was
 * expanded, and its output is as large as before for its other operands.
 */
#include <string.h>

#include "compile/passes.h"
#include "compile/rewrite.h"

static bool broadcasts(const struct rg_node *n)
{
	static const char *const list[] = { "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean",
		"Where", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
		"Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", NULL };

	for (int i = 0; list[i]; i++)
		if (!strcmp(n->op_type, list[i]))
			return n->version >= 7;
	return false;
}

/* What the node gives when it reads `by` for `from`: still the same shape? */
static bool keeps_shape(const struct rg_graph *g, const struct rg_node *n, int from, int by)
{
	struct rg_shape shape = { 0 };

	for (int k = 0; k < n->n_in; k++) {
		int v = n->in[k] == from ? by : n->in[k];

		if (v < 0 || !g->values[v].shaped || g->values[v].dynamic ||
		    !rg_shape_broadcast(&shape, &g->values[v].shape, &shape))
			return false;
	}
	return rg_shape_equal(&shape, &g->values[n->out[0]].shape);
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[at];
	int by, out, rc = 0;
	struct rg_shape wide;

	if (!rg_rewrite_is_plain(g, n))
		return 0;
	by = n->in[0];
	out = n->out[0];
	if (g->values[by].origin != RG_CONST_NONE ||
	    !rg_shape_broadcast(&g->values[by].shape, &g->values[out].shape, &wide) ||
	    !rg_shape_equal(&wide, &g->values[out].shape))
		return 0;
	for (int u = m->first_use[out]; u >= 0 && !rc; u = m->uses[u].next) {
		int reader = m->uses[u].node;
		struct rg_node *r = &g->nodes[reader];
		int found = 0;

		if (!rg_match_is(m, reader, r->op_type) || !broadcasts(r) || !rg_rewrite_is_plain(g, r))
			continue;
		if (!keeps_shape(g, r, out, by)) {
			rc = rg_match_note(m, at, reader, RG_DECLINE_BROADCASTING, err);
			continue;
		}
		for (int k = 0; k < r->n_in; k++)
			if (r->in[k] == out) {
				r->in[k] = by;
				found++;
			}
		if (!found) /* read twice, and seen before */
			continue;
		m->n_rewrites++;
		rc = rg_match_note(m, at, reader, RG_DECLINE_NONE, err);
	}
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_expand.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Expand") || rg_match_is(&m, i, "Tile"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_expand = {
	.name = "expand",
	.what = "Expand before what broadcasts anyway",
	.level = 1,
	.run = run,
};
