/*
 * What multiplies and shifts the channels of what a convolution reads goes into its weights and bias:
 * BatchNormalization, Neg, and Mul, Div, Add and Sub of constants that are one number or one a channel.
 *
 *	W (f x + s) + b  =  (W f) x + (b + sum of W s)
 *
 * Where the convolution pads, what it pads with is not shifted: then only a factor may go. What lies between
 * two convolutions has gone into the one before it (pass-conv-affine.c).
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/affine.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* What computes f x + s, and the value x that it reads. */
struct input {
	int node, x;
	struct rg_affine by;
	bool shifts;
};

/* The value that a node of this kind changes: not its constant. */
static int changed(const struct rg_graph *g, const struct rg_node *n)
{
	int64_t count;

	return n->in[n->n_in == 2 && !rg_match_floats(g, n->in[1], &count) && rg_match_floats(g, n->in[0], &count)];
}

static enum rg_decline read_input(const struct rg_match *m, struct input *a)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[a->node];
	enum rg_decline why;

	a->x = changed(g, n);
	why = rg_affine_take(m, a->node, a->x, &a->by);
	if (!why && !rg_shape_equal(&g->values[a->x].shape, &g->values[n->out[0]].shape))
		why = RG_DECLINE_BROADCASTING;
	a->shifts = n->op_type[0] == 'A' || n->op_type[0] == 'S' || n->op_type[0] == 'B';
	return why;
}

static bool pads(const struct rg_node *conv)
{
	const char *automatic = rg_node_string(conv, "auto_pad", "NOTSET");
	const int64_t *v;
	int n = rg_node_ints(conv, "pads", &v);

	for (int i = 0; i < n; i++)
		if (v[i])
			return true;
	return strcmp(automatic, "NOTSET") && strcmp(automatic, "VALID") && *automatic;
}

static int rewrite(struct rg_match *m, int at, const struct input *a, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node conv = g->nodes[at]; /* its array moves as nodes are added */
	const struct rg_shape shape = g->values[conv.in[1]].shape;
	int64_t all = rg_shape_count(&shape), outs = shape.dim[0], each = shape.dim[1],
		taps = all / (outs * each), count;
	int64_t group_outs = outs / (a->by.channels / each);
	const float *w = g->values[conv.in[1]].data,
		    *old = conv.n_in > 2 ? rg_match_floats(g, conv.in[2], &count) : NULL;
	struct rg_shape list = { .rank = 1, .dim = { outs } };
	float *to = rg_alloc_aligned(64, (size_t)all * sizeof(*to)),
	      *bias = rg_alloc_aligned(64, (size_t)outs * sizeof(*bias));
	int in[3] = { a->x, -1, conv.n_in > 2 ? conv.in[2] : -1 }, rc;

	if (!to || !bias) {
		rg_free(to);
		rg_free(bias);
		return rg_error_nomem(err, (size_t)all * sizeof(*to));
	}
	for (int64_t o = 0; o < outs; o++) {
		double sum = old ? (double)old[o] : 0;

		for (int64_t i = 0; i < each; i++) {
			int64_t c = o / group_outs * each + i;

			for (int64_t k = 0; k < taps; k++) {
				double v = (double)w[(o * each + i) * taps + k];

				to[(o * each + i) * taps + k] = (float)(v * a->by.f[c]);
				sum += v * a->by.s[c];
			}
		}
		bias[o] = (float)sum;
	}
	in[1] = rg_rewrite_const(g, conv.name, ":weights", RG_F32, &shape, to, err);
	if (in[1] >= 0 && a->shifts)
		in[2] = rg_rewrite_const(g, conv.name, ":bias", RG_F32, &list, bias, err);
	else
		rg_free(bias);
	if (in[1] < 0 || (a->shifts && in[2] < 0))
		return in[1] < 0 ? in[1] : in[2];
	rc = rg_match_note(m, a->node, at, RG_DECLINE_NONE, err);
	m->gone[a->node] = 1;
	if (!rc)
		rc = rg_rewrite_node(m, at, "Conv", 1, in[2] >= 0 ? 3 : 2, in, conv.n_attrs, conv.attrs, err);
	return rc < 0 ? rc : 0;
}

static int look_at(struct rg_match *m, int node, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	enum rg_decline why;
	int at = rg_rewrite_is_plain(g, &g->nodes[node]) ? rg_match_reader(m, node, "Conv", false, &why) : -1, rc;
	const struct rg_node *conv = at >= 0 ? &g->nodes[at] : NULL;
	struct input a = { .node = node };
	int64_t count, channels;

	if (!conv || !rg_rewrite_is_plain(g, conv) || g->values[conv->out[0]].dtype != RG_F32 ||
	    !rg_match_floats(g, conv->in[1], &count) || count == 0 || g->values[conv->in[1]].shape.rank < 3 ||
	    (conv->n_in > 2 && conv->in[2] >= 0 && !rg_match_floats(g, conv->in[2], &count)))
		return 0;
	/* two tensors: nobody's pattern */
	if (g->nodes[node].n_in == 2 && !rg_match_floats(g, g->nodes[node].in[0], &count) &&
	    !rg_match_floats(g, g->nodes[node].in[1], &count))
		return 0;
	channels = g->values[conv->in[0]].shape.dim[1];
	if (channels < 1 || channels % g->values[conv->in[1]].shape.dim[1])
		return 0;
	rc = rg_affine_init(&a.by, channels, false, err);
	if (!rc && !why)
		why = m->n_uses[conv->in[1]] > 1 ? RG_DECLINE_SECOND_CONSUMER : read_input(m, &a);
	if (!rc && !why && a.shifts && pads(conv))
		why = RG_DECLINE_ATTRIBUTE;
	if (!rc)
		rc = why ? rg_match_note(m, node, at, why, err) : rewrite(m, at, &a, err);
	rg_affine_free(&a.by);
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	static const char *const known[] = { "BatchNormalization", "Mul", "Add", "Sub", "Div", "Neg" };
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_conv_input.name, log, err);

	/* from the end: what was put into the weights is out of the way of what lies before it in the next
	 * round */
	for (int i = m.n_nodes - 1; i >= 0 && !rc; i--)
		for (int k = 0; k < 6 && !rc; k++)
			if (rg_match_is(&m, i, known[k]))
				rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_conv_input = {
	.name = "conv-input",
	.what = "BatchNormalization and constants by channel into the convolution behind them",
	.level = 1,
	.run = run,
};
