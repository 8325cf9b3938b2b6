/*
 * Pad of zeros into the convolution or the average that reads it, whose own pads do the same; Pad of what
 * never wins into MaxPool; Slice into the Pad behind it, which crops where its pads are negative.
 *
 * Between Pad and convolution a reshape may lie that only adds dimensions of 1: it comes before then.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/op-args.h"

enum { MOST_ATTRS = 16 };

/* What a Pad does, by dimension of its output. */
struct padding {
	int node;
	struct rg_pad_args args;
	bool zero;                  /* what it pads with */
	bool lowest;                /* minus infinity */
};

static bool read_value(const struct rg_graph *g, const struct rg_node *n, float *value)
{
	*value = n->version < 11 ? rg_node_float(n, "value", 0) : 0;
	return n->version < 11 || n->n_in < 3 || n->in[2] < 0 || rg_match_number(g, n->in[2], value);
}

/* RG_DECLINE_NONE: it is read. Only what pads with one constant number. */
static enum rg_decline read_padding(const struct rg_match *m, int at, struct padding *p)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_REWRITE_INPUTS];
	const struct rg_node *n = &m->g->nodes[at];
	float value;
	int need;

	p->node = at;
	if (!rg_rewrite_args(m->g, n, in))
		return RG_DECLINE_DYNAMIC;
	for (int k = 1; k < n->n_in; k++)
		if (n->in[k] >= 0 && (m->g->values[n->in[k]].origin == RG_CONST_NONE ||
				      m->g->values[n->in[k]].origin == RG_CONST_BOUND))
			return RG_DECLINE_NOT_CONSTANT;
	if (in[0].dtype != RG_F32)
		return RG_DECLINE_TYPE;
	if (rg_args_pad(n, in, &p->args, &need, &err) || p->args.mode != RG_PAD_CONSTANT ||
	    !read_value(m->g, n, &value))
		return RG_DECLINE_ATTRIBUTE;
	p->zero = value == 0;
	p->lowest = isinf(value) && value < 0;
	return RG_DECLINE_NONE;
}

/* ---- into a window ---- */

struct target {
	int node;                   /* Conv or a pool */
	int view;                   /* a reshape between, -1 none */
	int rank;
	int64_t before[RG_MAX_RANK], after[RG_MAX_RANK]; /* of its input 0 */
	struct rg_shape unpadded;   /* what its input 0 is without them */
};

/* Pads in terms of what the target reads; false where the view between does more than to add or drop
 * dimensions of 1. */
static bool map_pads(const struct rg_graph *g, const struct padding *p, struct target *t)
{
	const struct rg_shape *padded = &g->values[g->nodes[p->node].out[0]].shape;
	const struct rg_shape *from = &g->values[g->nodes[p->node].in[0]].shape;
	const struct rg_shape *to = t->view >= 0 ? &g->values[g->nodes[t->view].out[0]].shape : padded;
	int k = 0;

	if (rg_shape_count(from) < 1)
		return false;
	t->rank = to->rank;
	t->unpadded = *to;
	if (t->view < 0) {
		t->unpadded = *from;
		memcpy(t->before, p->args.before, sizeof(t->before));
		memcpy(t->after, p->args.after, sizeof(t->after));
		return true;
	}
	for (int i = 0; i < padded->rank; i++) {
		if (padded->dim[i] == 1) {
			if (p->args.before[i] || p->args.after[i])
				return false;
			continue;
		}
		while (k < to->rank && to->dim[k] == 1)
			k++;
		if (k == to->rank || to->dim[k] != padded->dim[i])
			return false;
		t->before[k] = p->args.before[i];
		t->after[k] = p->args.after[i];
		t->unpadded.dim[k++] = from->dim[i];
	}
	while (k < to->rank && to->dim[k] == 1)
		k++;
	return k == to->rank;
}

static bool never_negative(const struct rg_match *m, int value)
{
	int at = m->g->values[value].producer;

	return rg_match_is(m, at, "Relu") || rg_match_is(m, at, "Sigmoid") ||
	       rg_match_is(m, at, "HardSigmoid");
}

static enum rg_decline check_window(const struct rg_match *m, const struct padding *p, const struct target *t)
{
	const struct rg_node *n = &m->g->nodes[t->node];
	const char *automatic = rg_node_string(n, "auto_pad", "NOTSET");
	const int64_t *pads, *kernel;
	bool conv = !strcmp(n->op_type, "Conv"), maximum = !strcmp(n->op_type, "MaxPool"), own = false;
	int n_pads = rg_node_ints(n, "pads", &pads), spatial = t->rank - 2;

	if (strcmp(automatic, "NOTSET") && strcmp(automatic, "VALID") && *automatic)
		return RG_DECLINE_ATTRIBUTE;
	if (spatial < 1 || t->before[0] || t->after[0] || t->before[1] || t->after[1] ||
	    n->n_attrs + 2 > MOST_ATTRS || (n_pads >= 0 && n_pads != 2 * spatial))
		return RG_DECLINE_ATTRIBUTE;
	for (int i = 0; i < spatial; i++)
		if (t->before[i + 2] < 0 || t->after[i + 2] < 0)
			return RG_DECLINE_ATTRIBUTE;
	if (conv)
		return p->zero ? RG_DECLINE_NONE : RG_DECLINE_ATTRIBUTE;
	for (int i = 0; i < n_pads; i++)
		own = own || pads[i];
	if (rg_node_int(n, "ceil_mode", 0) || rg_node_ints(n, "kernel_shape", &kernel) != spatial)
		return RG_DECLINE_ATTRIBUTE;
	for (int i = 0; i < spatial; i++) {
		int64_t before = t->before[i + 2] + (n_pads > 0 ? pads[i] : 0);
		int64_t after = t->after[i + 2] + (n_pads > 0 ? pads[spatial + i] : 0);

		/* a window that sees nothing but padding: runtimes refuse it */
		if (before >= kernel[i] || after >= kernel[i])
			return RG_DECLINE_ATTRIBUTE;
	}
	if (maximum) /* of zeros, what is never below them wins or is the same */
		return p->lowest || (p->zero && !own && never_negative(m, m->g->nodes[p->node].in[0])) ?
			   RG_DECLINE_NONE :
			   RG_DECLINE_ATTRIBUTE;
	return p->zero && n->version >= 7 && (!own || rg_node_int(n, "count_include_pad", 0)) ?
		   RG_DECLINE_NONE :
		   RG_DECLINE_ATTRIBUTE;
}

static int merge_window(struct rg_match *m, const struct padding *p, const struct target *t,
			struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node n = g->nodes[t->node]; /* its array moves as nodes are added */
	int spatial = t->rank - 2, count = 0, in[RG_REWRITE_INPUTS], rc;
	int64_t sum[2 * RG_MAX_RANK] = { 0 };
	struct rg_attr attrs[MOST_ATTRS];
	const int64_t *pads;
	bool own = rg_node_ints(&n, "pads", &pads) > 0;

	for (int i = 0; i < spatial; i++) {
		sum[i] = t->before[i + 2] + (own ? pads[i] : 0);
		sum[spatial + i] = t->after[i + 2] + (own ? pads[spatial + i] : 0);
	}
	for (int i = 0; i < n.n_attrs; i++)
		if (strcmp(n.attrs[i].name, "pads") && strcmp(n.attrs[i].name, "auto_pad") &&
		    strcmp(n.attrs[i].name, "count_include_pad"))
			attrs[count++] = n.attrs[i];
	attrs[count++] =
	    (struct rg_attr){ .name = "pads", .type = RG_ATTR_INTS, .count = 2 * spatial, .ints = sum };
	if (!strcmp(n.op_type, "AveragePool"))
		attrs[count++] = (struct rg_attr){ .name = "count_include_pad", .type = RG_ATTR_INT, .i = 1 };
	memcpy(in, n.in, (size_t)n.n_in * sizeof(*in));
	in[0] = g->nodes[p->node].in[0];
	if (t->view >= 0) {
		int list[2] = { in[0], rg_rewrite_shape(g, g->nodes[t->view].name, &g->values[in[0]].shape,
							&t->unpadded, err) };

		if (list[1] < 0)
			return list[1];
		in[0] = rg_rewrite_value(g, g->nodes[t->view].name, ":unpadded", RG_F32, &t->unpadded, err);
		rc = in[0] < 0 ? in[0] :
				 rg_graph_add_node(g, "", "Reshape", g->nodes[t->view].name, 2, list, 1, in,
						   0, NULL, err);
		if (rc < 0)
			return rc;
		g->nodes[rc].opset = rg_rewrite_opset(g, &n, 5);
		m->gone[t->view] = 1;
	}
	m->gone[p->node] = 1;
	rc = rg_match_note(m, p->node, t->node, RG_DECLINE_NONE, err);
	if (!rc)
		rc = rg_rewrite_node(m, t->node, n.op_type, 1, n.n_in, in, count, attrs, err);
	return rc < 0 ? rc : 0;
}

/* The window that reads what the Pad makes, be it behind a reshape; -1 none. */
static int find_window(const struct rg_match *m, int from, struct target *t, enum rg_decline *why)
{
	static const char *const windows[] = { "Conv", "AveragePool", "MaxPool" };
	static const char *const views[] = { "Reshape", "Unsqueeze", "Squeeze" };
	enum rg_decline between;

	t->view = -1;
	for (int k = 0; k < 3; k++) {
		t->node = rg_match_reader(m, from, windows[k], false, why);
		if (t->node >= 0)
			return t->node;
	}
	for (int v = 0; v < 3; v++) {
		t->view = rg_match_reader(m, from, views[v], false, &between);
		for (int k = 0; k < 3 && t->view >= 0; k++) {
			t->node = rg_match_reader(m, t->view, windows[k], false, why);
			*why = between ? between : *why;
			if (t->node >= 0)
				return t->node;
		}
	}
	return -1;
}

/* ---- a Slice into the Pad behind it ---- */

static enum rg_decline crop(const struct rg_match *m, int slice, struct padding *p)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_REWRITE_INPUTS];
	const struct rg_node *n = &m->g->nodes[slice];
	struct rg_slice_args a;
	int need;

	if (!rg_rewrite_args(m->g, n, in))
		return RG_DECLINE_DYNAMIC;
	for (int k = 1; k < n->n_in; k++)
		if (n->in[k] >= 0 && (m->g->values[n->in[k]].origin == RG_CONST_NONE ||
				      m->g->values[n->in[k]].origin == RG_CONST_BOUND))
			return RG_DECLINE_NOT_CONSTANT;
	if (rg_args_slice(n, in, &a, &need, &err))
		return RG_DECLINE_NOT_CONSTANT;
	for (int i = 0; i < in[0].shape.rank; i++) {
		int64_t before = a.start[i], after = in[0].shape.dim[i] - a.start[i] - a.count[i];

		/* where it crops and pads on the same side, the constant comes between */
		if ((a.step[i] != 1 && (a.count[i] != 1 || in[0].shape.dim[i] != 1)) ||
		    (before && p->args.before[i] > 0) || (after && p->args.after[i] > 0) || a.count[i] == 0)
			return RG_DECLINE_ATTRIBUTE;
		p->args.before[i] -= before;
		p->args.after[i] -= after;
	}
	return RG_DECLINE_NONE;
}

static int merge_slice(struct rg_match *m, int slice, const struct padding *p, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node pad = g->nodes[p->node], cut = g->nodes[slice];
	int rank = g->values[cut.in[0]].shape.rank, in[3] = { cut.in[0], -1, -1 }, rc;
	struct rg_shape scalar = { 0 };
	int64_t pads[2 * RG_MAX_RANK];
	float value = 0, *data;

	for (int i = 0; i < rank; i++) {
		pads[i] = p->args.before[i];
		pads[rank + i] = p->args.after[i];
	}
	in[1] = rg_rewrite_ints(g, pad.name, ":pads", pads, 2 * rank, err);
	if (in[1] < 0)
		return in[1];
	read_value(g, &pad, &value);
	if (pad.version >= 11 && pad.n_in > 2) {
		in[2] = pad.in[2];
	} else if (value != 0) {
		data = rg_alloc_aligned(64, sizeof(*data));
		if (!data)
			return rg_error_nomem(err, sizeof(*data));
		*data = value;
		in[2] = rg_rewrite_const(g, pad.name, ":value", RG_F32, &scalar, data, err);
		if (in[2] < 0)
			return in[2];
	}
	rc = rg_match_note(m, slice, p->node, RG_DECLINE_NONE, err);
	m->gone[slice] = 1;
	if (!rc)
		rc = rg_rewrite_node(m, p->node, "Pad", 11, in[2] >= 0 ? 3 : 2, in, 0, NULL, err);
	return rc < 0 ? rc : 0;
}

static int look_at_slice(struct rg_match *m, int slice, struct rg_error *err)
{
	struct padding p;
	enum rg_decline between, why;
	int at = rg_rewrite_is_plain(m->g, &m->g->nodes[slice]) ?
		     rg_match_reader(m, slice, "Pad", false, &between) :
		     -1;

	if (at < 0 || !rg_rewrite_is_plain(m->g, &m->g->nodes[at]))
		return 0;
	why = between ? between : read_padding(m, at, &p);
	why = why ? why : crop(m, slice, &p);
	return why ? rg_match_note(m, slice, at, why, err) : merge_slice(m, slice, &p, err);
}

static int look_at_pad(struct rg_match *m, int pad, struct rg_error *err)
{
	struct target t = { 0 };
	struct padding p;
	enum rg_decline between, why;

	if (!rg_rewrite_is_plain(m->g, &m->g->nodes[pad]) || find_window(m, pad, &t, &between) < 0 ||
	    !rg_rewrite_is_plain(m->g, &m->g->nodes[t.node]) || m->g->nodes[t.node].n_in > RG_REWRITE_INPUTS)
		return 0;
	why = between ? between : read_padding(m, pad, &p);
	if (!why && !map_pads(m->g, &p, &t))
		why = RG_DECLINE_ATTRIBUTE;
	why = why ? why : check_window(m, &p, &t);
	return why ? rg_match_note(m, pad, t.node, why, err) : merge_window(m, &p, &t, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_pad_merge.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++) {
		if (rg_match_is(&m, i, "Slice"))
			rc = look_at_slice(&m, i, err);
		else if (rg_match_is(&m, i, "Pad"))
			rc = look_at_pad(&m, i, err);
	}
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_pad_merge = {
	.name = "pad-merge",
	.what = "Pad into the window that reads it, Slice into Pad",
	.level = 1,
	.run = run,
	.own_only = "ONNX Runtime takes longer with it (basic-pitch 1.09 times), and merges what it wants itself",
};
