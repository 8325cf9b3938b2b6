/*
 * NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. A sample whose label
 * is ignore_index has loss 0 and, in a mean, weight 0.
 */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Scores as (batch, classes, inner); samples are (batch, inner). */
struct loss {
	const struct rg_call *c;
	int64_t batch, classes, inner, ignore;
	bool has_ignore;
	const struct rg_tensor *weights; /* NULL: all 1 */
};

static void prepare(struct loss *l, const struct rg_call *c)
{
	const struct rg_shape *x = &c->in[0].shape;

	l->c = c;
	l->batch = x->dim[0];
	l->classes = x->dim[1];
	l->inner = rg_shape_count_range(x, 2, x->rank);
	l->has_ignore = rg_node_attr(c->node, "ignore_index");
	l->ignore = rg_node_int(c->node, "ignore_index", 0);
	l->weights = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED ? &c->in[2] : NULL;
}

static int64_t label_at(const struct rg_tensor *t, int64_t i)
{
	return t->dtype == RG_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

/* log(sum(exp(scores))) of sample (b, j). */
static double log_sum_exp(const struct loss *l, int64_t b, int64_t j)
{
	double max = -HUGE_VAL, sum = 0, v;

	for (int64_t k = 0; k < l->classes; k++) {
		v = rg_ref_get(&l->c->in[0], (b * l->classes + k) * l->inner + j);
		max = v > max ? v : max;
	}
	if (!isfinite(max))
		max = 0;
	for (int64_t k = 0; k < l->classes; k++)
		sum += exp(rg_ref_get(&l->c->in[0], (b * l->classes + k) * l->inner + j) - max);
	return max + log(sum);
}

static int run_loss(const struct rg_call *c, bool is_scores, struct rg_error *err)
{
	const char *how = rg_node_string(c->node, "reduction", "mean");
	bool keep = !strcmp(how, "none");
	const struct rg_tensor *log_prob = c->node->n_out > 1 && c->out[1].data ? &c->out[1] : NULL;
	double total = 0, total_weight = 0, shift, v, w;
	int64_t label, at;
	struct loss l;

	prepare(&l, c);
	for (int64_t i = 0; i < l.batch * l.inner; i++) {
		int64_t b = i / l.inner, j = i % l.inner;

		shift = is_scores ? log_sum_exp(&l, b, j) : 0;
		for (int64_t k = 0; k < l.classes && log_prob; k++) {
			at = (b * l.classes + k) * l.inner + j;
			rg_ref_set(log_prob, at, rg_ref_get(&c->in[0], at) - shift);
		}
		label = label_at(&c->in[1], i);
		if (l.has_ignore && label == l.ignore) {
			v = w = 0;
		} else if (label < 0 || label >= l.classes) {
			return rg_error_set(err, -ERANGE,
					    "label %lld of sample %lld is outside of the %lld classes",
					    (long long)label, (long long)i, (long long)l.classes);
		} else {
			w = l.weights ? rg_ref_get(l.weights, label) : 1;
			v = -(rg_ref_get(&c->in[0], (b * l.classes + label) * l.inner + j) - shift) * w;
		}
		if (keep)
			rg_ref_set(&c->out[0], i, v);
		total += v;
		total_weight += w;
	}
	if (!keep)
		rg_ref_set(&c->out[0], 0, strcmp(how, "mean") ? total : total / total_weight);
	return 0;
}

static int run_nll(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_loss(c, false, err);
}

static int run_cross_entropy(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_loss(c, true, err);
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT) &&
	       rg_in_set(c->in[1].dtype, RG_BIT(RG_I32) | RG_BIT(RG_I64));
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "NegativeLogLikelihoodLoss", .domain = "", .name = "ref", .supports = takes_float,
	  .run = run_nll },
	{ .op_type = "SoftmaxCrossEntropyLoss", .domain = "", .name = "ref", .supports = takes_float,
	  .run = run_cross_entropy },
};
RG_KERNEL_TABLE(rg_kernels_ref_loss, kernels);
