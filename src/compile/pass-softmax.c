/*
 * Softmax that an exporter has taken apart:
 *
 *	e = exp(x - max(x))  or  exp(x)
 *	e / sum(e)           or  e times the reciprocal of the sum
 *
 * over one dimension. Without the maximum, large numbers overflow in the parts; they do not
 * in the operator.
 */
#include "compile/passes.h"
#include "compile/reduced.h"
#include "compile/region.h"

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

/* A node of that type that reads a value, whoever else does. */
static int reader(const struct rg_match *m, int value, const char *op_type)
{
	for (int u = m->first_use[value]; u >= 0; u = m->uses[u].next)
		if (rg_match_is(m, m->uses[u].node, op_type))
			return m->uses[u].node;
	return -1;
}

/* The quotient of e and its sum; -1: there is none. *axes: of the sum. */
static int find_quotient(const struct rg_match *m, int e, unsigned *axes, struct rg_region *r)
{
	int sum = reader(m, e, "ReduceSum"), at, by;

	if (sum < 0 || node_at(m, sum)->in[0] != e || !rg_reduced_axes(m->g, node_at(m, sum), axes) ||
	    !rg_region_add(r, sum))
		return -1;
	by = node_at(m, sum)->out[0];
	at = reader(m, by, "Reciprocal");
	if (at >= 0) {
		by = node_at(m, at)->out[0];
		if (!rg_region_add(r, at))
			return -1;
		at = reader(m, by, "Mul");
		if (at < 0 || node_at(m, at)->in[node_at(m, at)->in[0] == by] != e)
			return -1;
		return rg_region_add(r, at) ? at : -1;
	}
	at = reader(m, by, "Div");
	return at >= 0 && node_at(m, at)->in[0] == e && node_at(m, at)->in[1] == by && rg_region_add(r, at) ? at : -1;
}

/* What the maximum was taken from, or the value itself. */
static int before_maximum(const struct rg_match *m, int value, unsigned axes, struct rg_region *r)
{
	int at = rg_match_maker(m, value, "Sub"), max;
	unsigned of;

	if (at < 0)
		return value;
	max = rg_match_maker(m, node_at(m, at)->in[1], "ReduceMax");
	if (max < 0 || node_at(m, max)->in[0] != node_at(m, at)->in[0] ||
	    !rg_reduced_axes(m->g, node_at(m, max), &of) || of != axes || !rg_region_add(r, at) || !rg_region_add(r, max))
		return value;
	return node_at(m, at)->in[0];
}

static int look_at(struct rg_match *m, int exp, struct rg_error *err)
{
	struct rg_attr axis = { .name = "axis", .type = RG_ATTR_INT };
	struct rg_region r = { 0 };
	const struct rg_value *v;
	enum rg_decline why;
	unsigned axes;
	int last, x;

	if (!rg_region_add(&r, exp))
		return 0;
	last = find_quotient(m, node_at(m, exp)->out[0], &axes, &r);
	if (last < 0)
		return 0;
	x = before_maximum(m, node_at(m, exp)->in[0], axes, &r);
	v = &m->g->values[x];
	if (!v->shaped || v->dynamic || v->dtype != RG_F32 || (axes & (axes - 1)))
		return 0;
	why = rg_region_closed(m, &r, last);
	if (why)
		return rg_match_note(m, exp, last, why, err);
	while (!(axes >> axis.i & 1))
		axis.i++;
	return rg_region_replace(m, &r, last, &(struct rg_replacement){
		.domain = "", .op_type = "Softmax", .opset = 13, .n_in = 1, .in = &x, .n_attrs = 1, .attrs = &axis,
	}, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_softmax.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Exp"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_softmax = {
	.name = "softmax",
	.what = "Softmax that was taken apart into one operator",
	.level = 1,
	.run = run,
};
