/*
 * See quantize.h: QuantizeLinear and DequantizeLinear.
 *
 * A value that a quantised operator makes is quantised for all who read it, since the operator then stores
 * eight bits: its producer writes "NAME:exact", and DequantizeLinear gives NAME. A value that is only
 * read by quantised operators is quantised for those alone; others keep reading it as it is.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/quantize.h"

struct rewriter {
	struct rg_graph *g;
	const struct rg_quantize_options *o;
	const struct rg_quantize_sites *s;
	const bool *on;
	const struct rg_range *ranges;
	int *dequantized;           /* by value: what quantised operators read of it; -1: not made yet */
	struct rg_quantize_weight *made; /* by site */
	int n_values;
};

/* Operators whose outputs are values of their first input, none of them changed, on whose bytes they work as well. */
static bool only_moves(const struct rg_node *n)
{
	static const char *const names[] = { "MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten",
					     "Slice",   "Split",   "Gather",    "Identity", "Expand",   "Tile" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!n->domain[0] && strcmp(names[i], n->op_type) == 0)
			return true;
	return false;
}

static bool is_output_of_site(const struct rg_quantize_sites *s, const bool *on, int value)
{
	for (int i = 0; i < s->n; i++)
		if (on[i] && s->v[i].output == value)
			return true;
	return false;
}

struct rg_qparams rg_quantize_params(const struct rg_graph *g, const struct rg_quantize_options *o,
				     const struct rg_quantize_sites *s, const bool *on,
				     const struct rg_range *ranges, int value)
{
	int from = value, steps = 0;
	const struct rg_range *r;
	double most;

	/* the graph has no cycle, so this ends */
	while (from >= 0 && !is_output_of_site(s, on, from)) {
		int by = g->values[from].producer;

		if (by < 0 || g->nodes[by].n_in < 1 || !only_moves(&g->nodes[by]) || steps++ > g->n_nodes)
			from = -1;
		else
			from = g->nodes[by].in[0];
	}
	r = &ranges[from >= 0 ? from : value];
	if (!o->symmetric)
		return rg_qparams_u8(r->low, r->high);
	most = -r->low > r->high ? -r->low : r->high;
	return rg_qparams_s8(most);
}

/* QuantizeLinear and DequantizeLinear of `from`; `to` (-1: a new value) is what they give. Returns it. */
static int add_pair(struct rewriter *w, int from, int to, const char *name, const struct rg_qparams *p,
		    struct rg_error *err)
{
	struct rg_graph *g = w->g;
	enum rg_dtype t = p->least < 0 ? RG_I8 : RG_U8;
	int scale = rg_quantize_scalar(g, name, ":scale", RG_F32, (double)p->scale, err), zero, q, rc;

	if (scale < 0)
		return scale;
	zero = rg_quantize_scalar(g, name, ":zero", t, p->zero, err);
	if (zero < 0)
		return zero;
	q = rg_quantize_value(g, name, ":quantized", err);
	if (q >= 0 && to < 0)
		to = rg_quantize_value(g, name, ":dequantized", err);
	if (q < 0 || to < 0)
		return q < 0 ? q : to;
	rc = rg_quantize_add_node(g, "QuantizeLinear", name, 3, (int[]){ from, scale, zero }, q, -1, err);
	if (rc >= 0)
		rc = rg_quantize_add_node(g, "DequantizeLinear", name, 3, (int[]){ q, scale, zero }, to, -1, err);
	return rc < 0 ? rc : to;
}

static struct rg_qparams params(const struct rewriter *w, int value)
{
	return rg_quantize_params(w->g, w->o, w->s, w->on, w->ranges, value);
}

static int quantize_output(struct rewriter *w, const struct rg_quantize_site *s, struct rg_error *err)
{
	struct rg_graph *g = w->g;
	struct rg_qparams p = params(w, s->output);
	int exact = rg_quantize_value(g, g->values[s->output].name, ":exact", err), rc;

	if (exact < 0)
		return exact;
	rc = add_pair(w, exact, s->output, g->values[s->output].name, &p, err);
	if (rc < 0)
		return rc;
	g->nodes[s->last].out[0] = exact;
	w->dequantized[s->output] = s->output;
	return 0;
}

static int quantize_inputs(struct rewriter *w, const struct rg_quantize_site *s, struct rg_error *err)
{
	struct rg_graph *g = w->g;

	for (int k = 0; k < s->n_act; k++) {
		int value = s->act[k];

		if (w->dequantized[value] < 0) {
			struct rg_qparams p = params(w, value);
			int to = add_pair(w, value, -1, g->values[value].name, &p, err);

			if (to < 0)
				return to;
			w->dequantized[value] = to;
		}
		g->nodes[s->node].in[s->slot[k]] = w->dequantized[value];
	}
	return 0;
}

/* The last site before this one that has quantised the same weight along the same axis; -1. */
static int with_same_weight(const struct rewriter *w, int site)
{
	const struct rg_quantize_site *v = w->s->v;

	for (int i = site - 1; i >= 0; i--)
		if (w->on[i] && v[i].weight == v[site].weight && v[i].axis == v[site].axis)
			return i;
	return -1;
}

static int quantize_weight(struct rewriter *w, int site, struct rg_error *err)
{
	const struct rg_quantize_site *s = &w->s->v[site];
	struct rg_graph *g = w->g;
	int before = with_same_weight(w, site), out, rc;
	const struct rg_quantize_weight *same = before >= 0 ? &w->made[before] : NULL;
	struct rg_quantize_weight q;

	rc = rg_quantize_make_weight(g, s, params(w, s->act[0]).scale, false, same, &q, err);
	if (rc)
		return rc;
	w->made[site] = q;
	if (same && q.q == same->q) {
		g->nodes[s->node].in[1] = g->nodes[w->s->v[before].node].in[1];
	} else {
		out = rg_quantize_value(g, g->values[q.q].name, ":dequantized", err);
		if (out < 0)
			return out;
		rc = rg_quantize_add_node(g, "DequantizeLinear", g->values[q.q].name, 3,
					  (int[]){ q.q, q.scale, q.zero }, out, q.channels > 1 ? s->axis : -1, err);
		if (rc < 0)
			return rc;
		g->nodes[s->node].in[1] = out;
	}
	if (q.bias < 0)
		return 0;
	out = rg_quantize_value(g, g->values[q.bias].name, ":dequantized", err);
	if (out < 0)
		return out;
	rc = rg_quantize_add_node(g, "DequantizeLinear", g->values[q.bias].name, 2, (int[]){ q.bias, q.bias_scale }, out,
				  q.channels > 1 ? 0 : -1, err);
	if (rc < 0)
		return rc;
	g->nodes[s->node].in[2] = out;
	return 0;
}

int rg_quantize_static(struct rg_graph *g, const struct rg_quantize_options *o, const struct rg_quantize_sites *s,
		       const bool *on, const struct rg_range *ranges, struct rg_error *err)
{
	struct rewriter w = { .g = g, .o = o, .s = s, .on = on, .ranges = ranges, .n_values = g->n_values };
	unsigned char none = 0;
	int rc = 0;

	w.dequantized = rg_calloc((size_t)g->n_values + 1, sizeof(*w.dequantized));
	w.made = rg_calloc((size_t)s->n + 1, sizeof(*w.made));
	if (!w.dequantized || !w.made) {
		rg_free(w.dequantized);
		rg_free(w.made);
		return rg_error_nomem(err, (size_t)g->n_values * sizeof(*w.dequantized));
	}
	for (int v = 0; v < g->n_values; v++)
		w.dequantized[v] = -1;
	/* outputs first: who reads them reads what is there already */
	for (int i = 0; i < s->n && !rc; i++)
		if (on[i] && s->v[i].output >= 0)
			rc = quantize_output(&w, &s->v[i], err);
	for (int i = 0; i < s->n && !rc; i++) {
		if (!on[i])
			continue;
		rc = quantize_inputs(&w, &s->v[i], err);
		if (!rc && s->v[i].weight >= 0)
			rc = quantize_weight(&w, i, err);
	}
	rg_free(w.dequantized);
	rg_free(w.made);
	return rc ? rc : rg_graph_drop_nodes(g, &none, 0, err);
}
