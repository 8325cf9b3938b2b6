/*
 * HardSwish and HardSigmoid that an exporter has taken apart, for runtimes of its time:
 *
 *	u = Clip(x + 3, 0, 6)
 *	x * u / 6  or  x * (u / 6)    HardSwish(x)
 *	u / 6                         HardSigmoid(x), alpha 1/6, beta 1/2
 *
 * with operands in either order and a product with 1/6 for a division by 6. Four passes
 * over a tensor become one.
 */
#include <math.h>
#include <string.h>

#include "compile/match.h"
#include "compile/passes.h"

static bool near(float a, double b)
{
	return fabs((double)a - b) <= 1e-6 * fabs(b);
}

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

/* The operand of a node with two that is not `value`. */
static int other_operand(const struct rg_node *n, int value)
{
	return n->in[n->in[0] == value];
}

/* A node that divides what `node` makes by 6, or multiplies it by 1/6; -1 none. */
static int find_sixth(const struct rg_match *m, int node, enum rg_decline *why)
{
	float f;
	int at = rg_match_reader(m, node, "Div", false, why);

	if (at >= 0 && rg_match_number(m->g, node_at(m, at)->in[1], &f) && near(f, 6))
		return at;
	at = rg_match_reader(m, node, "Mul", true, why);
	if (at >= 0 && rg_match_number(m->g, other_operand(node_at(m, at), node_at(m, node)->out[0]), &f) && near(f, 1 / 6.0))
		return at;
	return -1;
}

/* A node that multiplies what `node` makes by x; -1 none. */
static int find_product(const struct rg_match *m, int node, int x, enum rg_decline *why)
{
	int at = rg_match_reader(m, node, "Mul", true, why);

	return at >= 0 && other_operand(node_at(m, at), node_at(m, node)->out[0]) == x ? at : -1;
}

struct pattern {
	int x;                      /* value */
	int n, node[4];             /* nodes, the last one makes the result */
	bool swish;
};

/* Clip(x + 3, 0, 6): false where it is no such thing. */
static bool begins(const struct rg_match *m, int clip, struct pattern *p)
{
	const struct rg_graph *g = m->g;
	const struct rg_value *in = &g->values[node_at(m, clip)->in[0]];
	float low, high, three;
	int add = in->producer;

	if (!rg_match_is(m, add, "Add") || !rg_match_clip(g, node_at(m, clip), &low, &high) || low != 0 || !near(high, 6) ||
	    in->dtype != RG_F32)
		return false;
	for (int k = 0; k < 2; k++)
		if (rg_match_number(g, node_at(m, add)->in[k], &three) && near(three, 3)) {
			p->x = node_at(m, add)->in[1 - k];
			p->node[0] = add;
			p->node[1] = clip;
			p->n = 2;
			/* a constant of higher rank would give the sum another shape */
			return g->values[p->x].shaped && rg_shape_equal(&g->values[p->x].shape, &in->shape);
		}
	return false;
}

/* The rest of the pattern; *why: what keeps it from being one, at node p->node[p->n - 1]. */
static void finish(const struct rg_match *m, struct pattern *p, enum rg_decline *why)
{
	int clip = p->node[1], at = find_product(m, clip, p->x, why), next;
	enum rg_decline then;

	if (at >= 0) {
		next = find_sixth(m, at, &then);
		if (next < 0)
			return;
		p->node[p->n++] = at;
		p->node[p->n++] = next;
		*why = *why ? *why : then;
		p->swish = true;
		return;
	}
	at = find_sixth(m, clip, why);
	if (at < 0)
		return;
	p->node[p->n++] = at;
	next = find_product(m, at, p->x, &then);
	if (next < 0 || then) /* somebody else reads it: it is a HardSigmoid */
		return;
	p->node[p->n++] = next;
	p->swish = true;
}

static int rewrite(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	static const struct rg_attr sigmoid[] = {
		{ .name = "alpha", .type = RG_ATTR_FLOAT, .f = 1.0f / 6 },
		{ .name = "beta", .type = RG_ATTR_FLOAT, .f = 0.5f },
	};
	const struct rg_node *last = node_at(m, p->node[p->n - 1]);
	int in[1] = { p->x }, out[1] = { last->out[0] };
	int rc = rg_graph_add_node(m->g, "", p->swish ? "HardSwish" : "HardSigmoid", last->name, 1, in, 1, out,
				   p->swish ? 0 : 2, sigmoid, err);

	if (rc < 0)
		return rc;
	/* HardSwish is younger than most models that have it in parts */
	m->g->nodes[rc].opset = p->swish ? 14 : 0;
	m->n_rewrites++;
	rc = 0;
	for (int k = 0; k < p->n && !rc; k++) {
		m->gone[p->node[k]] = 1;
		if (k < p->n - 1)
			rc = rg_match_note(m, p->node[k], p->node[p->n - 1], RG_DECLINE_NONE, err);
	}
	return rc;
}

static int look_at(struct rg_match *m, int clip, struct rg_error *err)
{
	struct pattern p = { 0 };
	enum rg_decline why, between;

	if (!begins(m, clip, &p))
		return 0;
	finish(m, &p, &why);
	if (p.n < 3)
		return 0;
	between = rg_match_inside(m, node_at(m, p.node[0])->out[0]);
	why = why ? why : between;
	return why ? rg_match_note(m, clip, p.node[p.n - 1], why, err) : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_hard_swish.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Clip"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_hard_swish = {
	.name = "hard-swish",
	.what = "HardSwish and HardSigmoid that were taken apart into one operator",
	.level = 1,
	.run = run,
};
