/*
 * Nodes that give what they were given: Identity, Dropout in inference, Cast to the
 * same type, Reshape, Transpose, Pad, Slice, Expand, Tile, Resize and reductions that change
 * nothing, joining and choosing among one, times 1, plus 0, twice what undoes itself, twice what
 * does the same the second time. Readers read their input instead.
 *
 * "Changes nothing" is taken bit by bit: x + 0 is none of them, since it makes -0 of a
 * float +0 (x - 0, and x + -0, are).
 */
#include <string.h>

#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/op-args.h"
#include "graph/op-random.h"
#include "graph/resize.h"

static bool is_one_of(const char *op_type, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(op_type, *list))
			return true;
	return false;
}

static bool same_type_and_shape(const struct rg_graph *g, int a, int b)
{
	const struct rg_value *x = &g->values[a], *y = &g->values[b];

	return x->dtype == y->dtype && rg_shape_equal(&x->shape, &y->shape);
}

/* One element of input `k` is what an element of the output is, whatever the node computes. */
static bool is_neutral(const struct rg_graph *g, const struct rg_node *n, int k)
{
	int other = n->in[1 - k];

	switch (n->op_type[0]) {
	case 'M': return rg_rewrite_all(g, other, 1);
	case 'D': return k == 0 && rg_rewrite_all(g, other, 1);
	case 'P': return k == 0 && rg_rewrite_all(g, other, 1); /* Pow */
	case 'A': return rg_rewrite_all(g, other, -0.0);
	default:  return k == 0 && rg_rewrite_all(g, other, 0); /* Sub */
	}
}

/* Integers have one zero. */
static bool adds_integer_zero(const struct rg_graph *g, const struct rg_node *n, int k)
{
	enum rg_dtype t = g->values[n->in[k]].dtype;

	return n->op_type[0] == 'A' && (t == RG_I32 || t == RG_I64) && rg_rewrite_all(g, n->in[1 - k], 0);
}

static int find_neutral(const struct rg_graph *g, const struct rg_node *n)
{
	if (n->n_in != 2 || n->version < 7) /* before, shapes met by an attribute */
		return -1;
	for (int k = 0; k < 2; k++)
		if (same_type_and_shape(g, n->in[k], n->out[0]) &&
		    (is_neutral(g, n, k) || adds_integer_zero(g, n, k)))
			return n->in[k];
	return -1;
}

static bool keeps_order(const struct rg_graph *g, const struct rg_node *n)
{
	int64_t perm[RG_MAX_RANK];

	rg_rewrite_perm(g, n, perm);
	for (int i = 0; i < g->values[n->in[0]].shape.rank; i++)
		if (perm[i] != i)
			return false;
	return true;
}

static bool pads_nothing(const struct rg_graph *g, const struct rg_node *n)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_REWRITE_INPUTS];
	struct rg_pad_args a;
	int need;

	if (!rg_rewrite_args(g, n, in) || rg_args_pad(n, in, &a, &need, &err))
		return false;
	for (int i = 0; i < in[0].shape.rank; i++)
		if (a.before[i] || a.after[i])
			return false;
	return true;
}

/* The shape is that of the input: it begins at 0 where it does not go backwards. */
static bool cuts_nothing(const struct rg_graph *g, const struct rg_node *n)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_REWRITE_INPUTS];
	struct rg_slice_args a;
	int need;

	if (!rg_rewrite_args(g, n, in) || rg_args_slice(n, in, &a, &need, &err))
		return false;
	for (int i = 0; i < in[0].shape.rank; i++)
		if (a.step[i] < 1 && in[0].shape.dim[i] > 1)
			return false;
	return true;
}

static bool resizes_nothing(const struct rg_graph *g, const struct rg_node *n)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_REWRITE_INPUTS];
	struct rg_resize r;
	int need;

	if (!rg_rewrite_args(g, n, in) || rg_resize_resolve(n, in, &r, &need, &err))
		return false;
	for (int i = 0; i < r.rank; i++)
		if (!r.axis_kept[i])
			return false;
	return true;
}

/* All elements of the condition are the same: the operand that is taken; -1 they are not, or it is given at
 * run time. */
static int chosen(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *c = &g->values[n->in[0]];
	const unsigned char *b = c->data;

	if (c->origin == RG_CONST_NONE || c->origin == RG_CONST_BOUND || c->dtype != RG_BOOL || !b)
		return -1;
	for (int64_t i = 1; i < rg_shape_count(&c->shape); i++)
		if (!b[i] != !b[0])
			return -1;
	return n->in[b[0] ? 1 : 2];
}

/* What the node gives, where its shape and type stay; -1: it does something. */
static int find_unchanged(const struct rg_match *m, const struct rg_node *n)
{
	static const char *const by_shape[] = { "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand",
		"Tile", "Cast", "CastLike", NULL };
	static const char *const of_one[] = { "Concat", "Sum", "Max", "Min", "Mean", NULL };
	static const char *const reductions[] = { "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd",
						  NULL };
	static const char *const undone[] = { "Neg", "Not", NULL };
	static const char *const same_again[] = { "Relu", "Abs", "Floor", "Ceil", "Round", "Sign", NULL };
	static const char *const with_two[] = { "Mul", "Div", "Pow", "Add", "Sub", NULL };
	const struct rg_graph *g = m->g;
	const char *op = n->op_type;
	int before = g->values[rg_rewrite_now(m, n->in[0])].producer;

	if (is_one_of(op, with_two))
		return find_neutral(g, n);
	if (!strcmp(op, "Where")) {
		int from = chosen(g, n);

		return from >= 0 && same_type_and_shape(g, from, n->out[0]) ? from : -1;
	}
	if (!same_type_and_shape(g, n->in[0], n->out[0]))
		return -1;
	if (is_one_of(op, by_shape) || (is_one_of(op, of_one) && n->n_in == 1) || is_one_of(op, reductions) ||
	    (!strcmp(op, "Transpose") && keeps_order(g, n)) || (!strcmp(op, "Pad") && pads_nothing(g, n)) ||
	    (!strcmp(op, "Slice") && cuts_nothing(g, n)) ||
	    ((!strcmp(op, "Resize") || !strcmp(op, "Upsample")) && resizes_nothing(g, n)))
		return n->in[0];
	/* of a folded producer nothing is left to read */
	if (before < 0 || !rg_match_is(m, before, op))
		return -1;
	return is_one_of(op, undone) ? g->nodes[before].in[0] : is_one_of(op, same_again) ? n->in[0] : -1;
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[at];
	bool identity = !strcmp(n->op_type, "Identity");
	enum rg_decline why;
	int by = -1;

	if (identity ||
	    (!strcmp(n->op_type, "Dropout") && rg_node_is_view(g, n) && rg_rewrite_is_plain(g, n)))
		by = n->in[0];
	else if (rg_rewrite_is_plain(g, n))
		by = find_unchanged(m, n);
	if (by < 0 || n->out[0] < 0)
		return 0;
	why = rg_rewrite_may_skip(m, at, by);
	if (!why)
		return rg_rewrite_skip(m, at, by, err);
	/* an output that is a copy of an input or of another output: as cheap as can be already */
	if (identity)
		return 0;
	if (why == RG_DECLINE_GRAPH_OUTPUT) {
		struct rg_pass_note note = { m->pass,         n->name, n->op_type, g->values[by].name,
					     RG_DECLINE_NONE, false };
		int rc = rg_rewrite_node(m, at, "Identity", 1, 1, &by, 0, NULL, err);

		return rc < 0 ? rc : rg_pass_note(m->log, &note, err);
	}
	return rg_match_note(m, at, at, why, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_no_op.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, g->nodes[i].op_type) && g->nodes[i].n_in > 0 &&
		    g->nodes[i].in[0] >= 0 && g->nodes[i].n_out > 0)
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_no_op = {
	.name = "no-op",
	.what = "nodes that give what they were given",
	.level = 1,
	.run = run,
};
