/*
 * DequantizeLinear moves down through what only moves elements, or picks the largest: that works on
 * bytes then, a quarter of the memory, and a QuantizeLinear or a product further down finds the
 * bytes. Nothing is rounded otherwise.
 */
#include <string.h>

#include "compile/passes.h"
#include "compile/quantised.h"

static const struct {
	const char *op_type;
	int64_t least; /* opset that takes bytes; 0: any */
} movers[] = {
    {"Reshape", 0}, {"Transpose", 0}, {"Squeeze", 0},      {"Unsqueeze", 0},    {"Flatten", 0},
    {"Slice", 0},   {"Gather", 0},    {"DepthToSpace", 0}, {"SpaceToDepth", 0}, {"MaxPool", 12},
};

static int find(const struct rg_node *n)
{
	for (size_t k = 0; k < sizeof(movers) / sizeof(movers[0]); k++)
		if (!n->domain[0] && strcmp(n->op_type, movers[k].op_type) == 0)
			return (int)k;
	return -1;
}

/* Somebody else keeps the floats: then it pays only where the bytes are what is wanted behind it. */
static bool pays(const struct rg_match *m, int value, int out)
{
	if (!rg_match_inside(m, value))
		return true;
	for (int u = m->first_use[out]; u >= 0; u = m->uses[u].next)
		if (!rg_match_is(m, m->uses[u].node, "QuantizeLinear"))
			return false;
	return m->first_use[out] >= 0;
}

static int move(struct rg_match *m, int at, const struct rg_quantised *x, int64_t least, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct rg_node n = g->nodes[at], d = g->nodes[x->node]; /* their array moves as nodes are added */
	struct rg_shape shape = g->values[n.out[0]].shape;
	int in[8], bytes = rg_rewrite_value(g, n.name, ":bytes", x->type, &shape, err), rc;

	if (bytes < 0)
		return bytes;
	memcpy(in, n.in, (size_t)n.n_in * sizeof(*in));
	in[0] = x->value;
	rc = rg_graph_add_node(g, "", n.op_type, n.name, n.n_in, in, 1, &bytes, n.n_attrs, n.attrs, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = rg_rewrite_opset(g, &n, least);
	memcpy(in, d.in, (size_t)d.n_in * sizeof(*in));
	in[0] = bytes;
	/* one scale: an axis would be of another shape */
	rc = rg_graph_add_node(g, "", "DequantizeLinear", d.name, d.n_in, in, 1, &n.out[0], 0, NULL, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = d.opset;
	m->gone[at] = 1;
	m->n_rewrites++;
	return rg_match_note(m, x->node, at, RG_DECLINE_NONE, err);
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	const struct rg_node *n = &m->g->nodes[at];
	struct rg_quantised x;
	int k = find(n);

	if (k < 0 || !rg_match_open(m, at) || n->unsupported || n->n_in < 1 || n->n_in > 8 ||
	    !rg_rewrite_is_plain(m->g, n) || !rg_quantised_from(m, n->in[0], &x) ||
	    !rg_match_open(m, x.node) || m->gone[x.node])
		return 0;
	/* what it says of itself besides */
	if (m->g->nodes[x.node].n_attrs > 1 ||
	    (m->g->nodes[x.node].n_attrs == 1 && strcmp(m->g->nodes[x.node].attrs[0].name, "axis") != 0) ||
	    x.n != 1)
		return rg_match_note(m, x.node, at, RG_DECLINE_ATTRIBUTE, err);
	if (movers[k].least &&
	    m->g->values[n->out[0]].shape.rank > 4) /* a pool of more than two dimensions */
		return rg_match_note(m, x.node, at, RG_DECLINE_KERNEL, err);
	if (!pays(m, n->in[0], n->out[0]))
		return rg_match_note(m, x.node, at, rg_match_inside(m, n->in[0]), err);
	return move(m, at, &x, movers[k].least, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_qdq_move.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_qdq_move = {
    .name = "qdq-move",
    .what = "DequantizeLinear behind what only moves elements, which then moves bytes",
    .level = 3,
    .own_only = "ONNX Runtime moves the pairs itself",
    .run = run,
};
