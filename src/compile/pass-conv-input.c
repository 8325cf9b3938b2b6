/*
 * What multiplies and shifts the channels of what a convolution reads goes into its weights and bias:
 * BatchNormalization, Neg, and Mul, Div, Add and Sub of constants that are one number or one a channel.
 *
 *	W (f x + s) + b  =  (W f) x + (b + sum of W s)
 *
 * Where the convolution pads, what it pads with is not shifted: then only a factor may go. What lies between
 * two convolutions has gone into the one before it (pass-conv-affine.c).
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* f x + s, one a channel. */
struct affine {
	int node, x;                /* what computes it, and the value that it reads */
	int64_t channels;
	double *f, *s;
	bool shifts;
};

/* Elements from one channel to the next, 0 or 1; -1: the constant is neither one number nor one a channel. */
static int channel_step(const struct rg_shape *s, int rank, int64_t channels)
{
	int at = s->rank - (rank - 1); /* the dimension that meets the channels */

	if (s->rank > rank)
		return -1;
	if (rg_shape_count(s) == 1)
		return 0;
	return at >= 0 && s->dim[at] == channels && rg_shape_count(s) == channels ? 1 : -1;
}

static enum rg_decline read_batchnorm(const struct rg_graph *g, const struct rg_node *n, struct affine *a)
{
	const float *p[4];          /* scale, shift, mean, var */
	double epsilon = (double)rg_node_float(n, "epsilon", 1e-5f);

	if (n->n_in != 5 || rg_node_int(n, "training_mode", 0) || !rg_node_int(n, "spatial", 1) ||
	    n->version < 7)
		return RG_DECLINE_ATTRIBUTE;
	for (int k = 0; k < 4; k++) {
		int64_t count = 0;

		p[k] = rg_match_floats(g, n->in[k + 1], &count);
		if (!p[k])
			return RG_DECLINE_NOT_CONSTANT;
		if (count != a->channels)
			return RG_DECLINE_BROADCASTING;
	}
	for (int64_t i = 0; i < a->channels; i++) {
		a->f[i] = (double)p[0][i] / sqrt((double)p[3][i] + epsilon);
		a->s[i] = (double)p[1][i] - a->f[i] * (double)p[2][i];
	}
	a->x = n->in[0];
	a->shifts = true;
	return RG_DECLINE_NONE;
}

static enum rg_decline read_constant(const struct rg_graph *g, const struct rg_node *n, struct affine *a)
{
	int rank = g->values[n->out[0]].shape.rank, k, step;
	int64_t count;
	const float *v = NULL;

	for (k = 1; k >= 0 && !v; k--)
		v = rg_match_floats(g, n->in[k], &count);
	k++; /* the constant is input k */
	if (!v)
		return RG_DECLINE_NOT_CONSTANT;
	if (k == 0 && (n->op_type[0] == 'D' || n->op_type[0] == 'S'))
		return RG_DECLINE_ATTRIBUTE;
	step = channel_step(&g->values[n->in[k]].shape, rank, a->channels);
	if (step < 0)
		return RG_DECLINE_BROADCASTING;
	a->x = n->in[1 - k];
	for (int64_t i = 0; i < a->channels; i++) {
		double c = (double)v[step * i];

		switch (n->op_type[0]) {
		case 'M': a->f[i] = c; break;
		case 'D': a->f[i] = 1 / c; break;
		case 'A': a->s[i] = c; break;
		default:  a->s[i] = -c; break;
		}
	}
	a->shifts = n->op_type[0] == 'A' || n->op_type[0] == 'S';
	return RG_DECLINE_NONE;
}

static enum rg_decline read_affine(const struct rg_graph *g, struct affine *a)
{
	const struct rg_node *n = &g->nodes[a->node];
	enum rg_decline why = RG_DECLINE_NONE;

	for (int64_t i = 0; i < a->channels; i++)
		a->f[i] = n->op_type[0] == 'N' ? -1 : 1;
	a->x = n->in[0];
	if (n->op_type[0] != 'N')
		why = n->op_type[0] == 'B' ? read_batchnorm(g, n, a) : read_constant(g, n, a);
	if (!why && !rg_shape_equal(&g->values[a->x].shape, &g->values[n->out[0]].shape))
		why = RG_DECLINE_BROADCASTING;
	for (int64_t i = 0; i < a->channels && !why; i++)
		if (!(fabs(a->f[i]) < 1e18) || !(fabs(a->f[i]) > 1e-18 || a->f[i] == 0) ||
		    !(fabs(a->s[i]) < 1e30))
			why = RG_DECLINE_RANGE;
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

static int rewrite(struct rg_match *m, int at, const struct affine *a, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node conv = g->nodes[at]; /* its array moves as nodes are added */
	const struct rg_shape shape = g->values[conv.in[1]].shape;
	int64_t all = rg_shape_count(&shape), outs = shape.dim[0], each = shape.dim[1],
		taps = all / (outs * each), count;
	int64_t group_outs = outs / (a->channels / each);
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

				to[(o * each + i) * taps + k] = (float)(v * a->f[c]);
				sum += v * a->s[c];
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
	int at = rg_rewrite_is_plain(g, &g->nodes[node]) ? rg_match_reader(m, node, "Conv", false, &why) : -1,
	    rc = 0;
	const struct rg_node *conv = at >= 0 ? &g->nodes[at] : NULL;
	struct affine a = { .node = node };
	int64_t count;

	if (!conv || !rg_rewrite_is_plain(g, conv) || g->values[conv->out[0]].dtype != RG_F32 ||
	    !rg_match_floats(g, conv->in[1], &count) || count == 0 || g->values[conv->in[1]].shape.rank < 3 ||
	    (conv->n_in > 2 && conv->in[2] >= 0 && !rg_match_floats(g, conv->in[2], &count)))
		return 0;
	/* two tensors: nobody's pattern */
	if (g->nodes[node].n_in == 2 && !rg_match_floats(g, g->nodes[node].in[0], &count) &&
	    !rg_match_floats(g, g->nodes[node].in[1], &count))
		return 0;
	a.channels = g->values[conv->in[0]].shape.dim[1];
	if (a.channels < 1 || a.channels % g->values[conv->in[1]].shape.dim[1])
		return 0;
	a.f = rg_calloc((size_t)a.channels, sizeof(*a.f));
	a.s = rg_calloc((size_t)a.channels, sizeof(*a.s));
	if (!a.f || !a.s)
		rc = rg_error_nomem(err, (size_t)a.channels * sizeof(*a.f));
	if (!rc && !why)
		why = m->n_uses[conv->in[1]] > 1 ? RG_DECLINE_SECOND_CONSUMER : read_affine(g, &a);
	if (!rc && !why && a.shifts && pads(conv))
		why = RG_DECLINE_ATTRIBUTE;
	if (!rc)
		rc = why ? rg_match_note(m, node, at, why, err) : rewrite(m, at, &a, err);
	rg_free(a.f);
	rg_free(a.s);
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
	"conv-input", "BatchNormalization and constants by channel into the convolution behind them", 1, run,
	false
};
