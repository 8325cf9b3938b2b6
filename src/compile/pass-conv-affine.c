/*
 * What multiplies and shifts the channels of a convolution, transposed or not, goes into
 * its weights and bias: BatchNormalization, Neg, and Mul, Div, Add and Sub of constants that are one number
 * or one a channel, as many of them as follow each other.
 *
 *	f (W x + b) + s  =  (f W) x + (f b + s)
 *
 * f and s are gathered in double over the whole chain, and rounded once. It saves a
 * pass over the output for each.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/affine.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* A convolution, and what of the chain behind it was taken. */
struct chain {
	int conv, last;             /* nodes; last == conv: nothing yet */
	int64_t channels;           /* of the output */
	int64_t rows;               /* of the weights: stretches of one output channel */
	int64_t group_rows;         /* ConvTranspose: rows of an input channel, and how many of those are in a */
	int64_t group_inputs;       /* group; else 0 */
	struct rg_affine by;
};

/* The next node of the chain that the pass knows; -1 where it ends. */
static int find_next(const struct rg_match *m, const struct chain *c, enum rg_decline *why)
{
	static const struct { const char *op_type; bool commutes; } known[] = {
		{ "BatchNormalization", false }, { "Mul", true }, { "Add", true }, { "Div", false }, { "Sub", false },
	};

	int negated = rg_match_reader(m, c->last, "Neg", false, why);

	if (negated >= 0)
		return negated;
	for (int k = 0; k < 5; k++) {
		int at = rg_match_reader(m, c->last, known[k].op_type, known[k].commutes, why);
		const struct rg_node *n = at >= 0 ? &m->g->nodes[at] : NULL;
		int64_t count;

		/* two tensors: another pass's matter */
		if (n && (k == 0 || rg_match_floats(m->g, n->in[n->in[0] == m->g->nodes[c->last].out[0]], &count)))
			return at;
	}
	return -1;
}

/* The output channel of a row of weights. ConvTranspose's are input channels x output channels of the group. */
static int64_t channel_of(const struct chain *c, int64_t row)
{
	return c->group_rows ? row / c->group_rows / c->group_inputs * c->group_rows + row % c->group_rows : row;
}

static int make_constants(struct rg_graph *g, const struct rg_node *conv, const struct chain *c, int *weights, int *bias,
			  struct rg_error *err)
{
	const struct rg_value *w = &g->values[conv->in[1]];
	struct rg_shape shape = w->shape, list = { .rank = 1, .dim = { c->channels } };
	int64_t all = rg_shape_count(&shape), each = all / c->rows, count;
	const float *from = w->data, *old = conv->n_in > 2 ? rg_match_floats(g, conv->in[2], &count) : NULL;
	float *to = rg_alloc_aligned(64, (size_t)all * sizeof(*to));
	float *sum = rg_alloc_aligned(64, (size_t)c->channels * sizeof(*sum));

	if (!to || !sum) {
		rg_free(to);
		rg_free(sum);
		return rg_error_nomem(err, (size_t)all * sizeof(*to));
	}
	for (int64_t r = 0; r < c->rows; r++)
		for (int64_t k = 0; k < each; k++)
			to[r * each + k] = (float)(c->by.f[channel_of(c, r)] * (double)from[r * each + k]);
	for (int64_t i = 0; i < c->channels; i++)
		sum[i] = (float)(c->by.f[i] * (old ? (double)old[i] : 0) + c->by.s[i]);
	*weights = rg_rewrite_const(g, conv->name, ":weights", RG_F32, &shape, to, err);
	if (*weights < 0) {
		rg_free(sum);
		return *weights;
	}
	*bias = rg_rewrite_const(g, conv->name, ":bias", RG_F32, &list, sum, err);
	return *bias < 0 ? *bias : 0;
}

static int rewrite(struct rg_match *m, const struct chain *c, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct rg_node conv = g->nodes[c->conv]; /* its array moves as nodes are added */
	int in[3] = { conv.in[0], -1, -1 }, out[1] = { g->nodes[c->last].out[0] };
	int rc = make_constants(g, &conv, c, &in[1], &in[2], err);

	if (rc)
		return rc;
	rc = rg_graph_add_node(g, "", conv.op_type, conv.name, 3, in, 1, out, conv.n_attrs, conv.attrs, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = conv.opset;
	m->gone[c->conv] = 1;
	m->n_rewrites++;
	return 0;
}

/* Takes what follows, node by node, as long as it can. */
static int follow(struct rg_match *m, struct chain *c, struct rg_error *err)
{
	int rc = 0;

	while (!rc) {
		enum rg_decline why;
		int at = find_next(m, c, &why);

		if (at < 0)
			return 0;
		if (!why)
			why = rg_affine_take(m, at, m->g->nodes[c->last].out[0], &c->by);
		if (why)
			return c->last != c->conv ? rg_match_note_settled(m, at, c->conv, why, err) :
						    rg_match_note(m, at, c->conv, why, err);
		rc = rg_match_note(m, at, c->conv, RG_DECLINE_NONE, err);
		m->gone[at] = 1;
		c->last = at;
	}
	return rc;
}

/* How its weights lie. false: not as those of a convolution. */
static bool find_channels(const struct rg_graph *g, const struct rg_node *conv, struct chain *c)
{
	const struct rg_shape *w = &g->values[conv->in[1]].shape;
	int64_t group = rg_node_int(conv, "group", 1);

	if (w->rank < 3 || group < 1)
		return false;
	c->channels = c->rows = w->dim[0];
	if (strcmp(conv->op_type, "Conv") == 0)
		return true;
	c->group_rows = w->dim[1];
	c->group_inputs = w->dim[0] / group;
	c->rows = w->dim[0] * w->dim[1];
	c->channels = group * w->dim[1];
	return c->group_inputs > 0 && w->dim[0] % group == 0;
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *conv = &g->nodes[at];
	struct chain c = { .conv = at, .last = at };
	int64_t count;
	int rc;

	/* weights that are computed, and outputs of other types, are nobody's pattern */
	if (conv->n_out != 1 || conv->out[0] < 0 || g->values[conv->out[0]].dtype != RG_F32 ||
	    !rg_match_floats(g, conv->in[1], &count) || count == 0 ||
	    (conv->n_in > 2 && conv->in[2] >= 0 && !rg_match_floats(g, conv->in[2], &count)))
		return 0;
	if (!find_channels(g, conv, &c))
		return 0;
	rc = rg_affine_init(&c.by, c.channels, false, err);
	if (!rc)
		rc = follow(m, &c, err);
	if (!rc && c.last != at)
		rc = rewrite(m, &c, err);
	rg_affine_free(&c.by);
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_conv_affine.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Conv") || rg_match_is(&m, i, "ConvTranspose"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_conv_affine = {
	.name = "conv-affine",
	.what = "BatchNormalization and constants by channel into the convolution before them",
	.level = 1,
	.run = run,
};
