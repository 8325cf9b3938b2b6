/*
 * BatchNormalization behind a convolution goes into its weights and bias:
 *
 *	scale (W x + b - mean) / sqrt(var + epsilon) + shift
 *	  = (f W) x + (f (b - mean) + shift),   f = scale / sqrt(var + epsilon)
 *
 * for each output channel, computed in double. It saves a pass over the output.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/match.h"
#include "compile/passes.h"

/* Of one output channel each. */
struct batchnorm {
	const float *scale, *shift, *mean, *var;
	double epsilon;
};

static enum rg_decline read_batchnorm(const struct rg_graph *g, const struct rg_node *n, int64_t channels,
				      struct batchnorm *b)
{
	const float **to[] = { &b->scale, &b->shift, &b->mean, &b->var };

	if (n->n_in != 5 || rg_node_int(n, "training_mode", 0) || !rg_node_int(n, "spatial", 1) || n->version < 7)
		return RG_DECLINE_ATTRIBUTE;
	for (int k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return RG_DECLINE_ATTRIBUTE;
	for (int k = 0; k < 4; k++) {
		int64_t count = 0;

		*to[k] = rg_match_floats(g, n->in[k + 1], &count);
		if (!*to[k])
			return RG_DECLINE_NOT_CONSTANT;
		if (count != channels)
			return RG_DECLINE_BROADCASTING;
	}
	b->epsilon = (double)rg_node_float(n, "epsilon", 1e-5f);
	return RG_DECLINE_NONE;
}

/* A new constant named after `node`, with a number where that name is taken; negative errno. Takes data over. */
static int add_floats(struct rg_graph *g, const char *node, const char *what, const struct rg_shape *shape, float *data,
		      struct rg_error *err)
{
	size_t size = strlen(node) + strlen(what) + 12;
	char *name = rg_alloc(size);
	int value = -ENOMEM, rc;

	if (name) {
		snprintf(name, size, "%s%s", node, what);
		for (int i = 2; rg_graph_find_value(g, name) >= 0; i++)
			snprintf(name, size, "%s%s%d", node, what, i);
		value = rg_graph_value(g, name, err);
	} else {
		rg_error_nomem(err, size);
	}
	rg_free(name);
	if (value < 0) {
		rg_free(data);
		return value;
	}
	rc = rg_graph_add_const(g, value, RG_CONST_FOLDED, RG_F32, shape, data, err);
	return rc ? rc : value;
}

/* Weights and bias of the one convolution that does both; -1 for the values where one cannot be made. */
static int make_constants(struct rg_graph *g, const struct rg_node *conv, const struct batchnorm *b, int *weights,
			  int *bias, struct rg_error *err)
{
	const struct rg_value *w = &g->values[conv->in[1]];
	struct rg_shape shape = w->shape, list = { .rank = 1, .dim = { w->shape.dim[0] } };
	int64_t m = shape.dim[0], all = rg_shape_count(&shape), each = m ? all / m : 0, count;
	const float *from = w->data, *old = conv->n_in > 2 ? rg_match_floats(g, conv->in[2], &count) : NULL;
	float *to = rg_alloc_aligned(64, (size_t)all * sizeof(*to)), *sum = rg_alloc_aligned(64, (size_t)m * sizeof(*sum));

	if (!to || !sum) {
		rg_free(to);
		rg_free(sum);
		return rg_error_nomem(err, (size_t)all * sizeof(*to));
	}
	for (int64_t i = 0; i < m; i++) {
		double f = (double)b->scale[i] / sqrt((double)b->var[i] + b->epsilon);

		for (int64_t k = 0; k < each; k++)
			to[i * each + k] = (float)(f * (double)from[i * each + k]);
		sum[i] = (float)(f * ((old ? (double)old[i] : 0) - (double)b->mean[i]) + (double)b->shift[i]);
	}
	*weights = add_floats(g, conv->name, ":weights", &shape, to, err);
	if (*weights < 0) {
		rg_free(sum);
		return *weights;
	}
	*bias = add_floats(g, conv->name, ":bias", &list, sum, err);
	return *bias < 0 ? *bias : 0;
}

static enum rg_decline can_be_one(const struct rg_match *m, const struct rg_node *conv, const struct rg_node *bn,
				  struct batchnorm *b)
{
	const struct rg_graph *g = m->g;
	int64_t count;

	if (g->values[conv->out[0]].dtype != RG_F32)
		return RG_DECLINE_TYPE;
	if (!rg_match_floats(g, conv->in[1], &count) || count == 0 ||
	    (conv->n_in > 2 && conv->in[2] >= 0 && !rg_match_floats(g, conv->in[2], &count)))
		return RG_DECLINE_NOT_CONSTANT;
	return read_batchnorm(g, bn, g->values[conv->in[1]].shape.dim[0], b);
}

static int rewrite(struct rg_match *m, int conv_at, int bn_at, const struct batchnorm *b, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct rg_node conv = g->nodes[conv_at]; /* its array moves as nodes are added */
	int in[3] = { conv.in[0], -1, -1 }, out[1] = { g->nodes[bn_at].out[0] };
	int rc = make_constants(g, &conv, b, &in[1], &in[2], err);

	if (rc)
		return rc;
	rc = rg_graph_add_node(g, "", "Conv", conv.name, 3, in, 1, out, conv.n_attrs, conv.attrs, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = conv.opset;
	m->gone[conv_at] = m->gone[bn_at] = 1;
	m->n_rewrites++;
	return rg_match_note(m, bn_at, conv_at, RG_DECLINE_NONE, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_conv_batchnorm.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++) {
		struct batchnorm b;
		enum rg_decline why;
		int bn;

		if (!rg_match_is(&m, i, "Conv"))
			continue;
		bn = rg_match_reader(&m, i, "BatchNormalization", false, &why);
		if (bn < 0)
			continue;
		if (!why)
			why = can_be_one(&m, &g->nodes[i], &g->nodes[bn], &b);
		rc = why ? rg_match_note(&m, bn, i, why, err) : rewrite(&m, i, bn, &b, err);
	}
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_conv_batchnorm = {
	"conv-batchnorm", "BatchNormalization into the weights of the convolution before it", 1, run
};
