/* ai.onnx.ml: linear models, and what is done to scores afterwards. In double. */
#include <math.h>

#include "kernels/ref/ml.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static double logistic(double v)
{
	return 1 / (1 + exp(-v));
}

/* The inverse of the normal distribution by Winitzki's approximation of the
 * inverse error function (2008, a = 0.147), which the definition's runtimes use. */
static double probit(double p)
{
	double x = 2 * p - 1, l = log((1 - x) * (1 + x));
	double a = 2 / (M_PI * 0.147) + l / 2;
	double root = sqrt(-a + sqrt(a * a - l / 0.147));

	if (p == 0 || p == 1)
		return p == 0 ? -INFINITY : INFINITY;
	return M_SQRT2 * (x < 0 ? -root : root);
}

/* SOFTMAX_ZERO: zeros stay zeros. */
static void softmax(double *v, int64_t n, bool zero)
{
	double most = -INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmax(most, v[i]);
	for (int64_t i = 0; i < n; i++) {
		v[i] = zero && fabs(v[i]) <= 1e-7 ? v[i] * exp(-most) : exp(v[i] - most);
		sum += v[i];
	}
	for (int64_t i = 0; i < n; i++)
		v[i] = sum == 0 ? 0.5 : v[i] / sum;
}

void rg_ref_ml_post(enum rg_ml_post post, double *v, int64_t n)
{
	if (post == RG_POST_SOFTMAX || post == RG_POST_SOFTMAX_ZERO)
		softmax(v, n, post == RG_POST_SOFTMAX_ZERO);
	for (int64_t i = 0; i < n; i++) {
		if (post == RG_POST_LOGISTIC)
			v[i] = logistic(v[i]);
		else if (post == RG_POST_PROBIT)
			v[i] = probit(v[i]);
	}
}

int64_t rg_ref_ml_best(const double *v, int64_t n)
{
	int64_t best = 0;

	for (int64_t i = 1; i < n; i++)
		if (v[i] > v[best] || (isnan(v[best]) && !isnan(v[i])))
			best = i;
	return best;
}

/* Scores of a row, one a target. */
static void scores_of(const struct rg_call *c, int64_t row, int64_t features, int64_t targets, double *score)
{
	const float *w, *b;
	int biased;

	rg_node_floats(c->node, "coefficients", &w);
	biased = rg_node_floats(c->node, "intercepts", &b) > 0;
	for (int64_t t = 0; t < targets; t++) {
		double sum = biased ? (double)b[t] : 0;

		for (int64_t i = 0; i < features; i++)
			sum += rg_ref_get(&c->in[0], row * features + i) * (double)w[t * features + i];
		score[t] = (double)(float)sum; /* the class is that of the scores as they are given out */
	}
}

static size_t regressor_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)c->out[0].shape.dim[1] * sizeof(double);
}

static int regressor(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t rows, features, targets = c->out[0].shape.dim[1];
	enum rg_ml_post post;
	int rc = rg_ml_post(c->node, &post, err);

	rg_ml_rows(&c->in[0].shape, &rows, &features);
	for (int64_t r = 0; r < rows && !rc; r++) {
		scores_of(c, r, features, targets, c->scratch);
		rg_ref_ml_post(post, c->scratch, targets);
		rg_ref_store(&c->out[0], r * targets, 1, targets, c->scratch);
	}
	return rc;
}

/* The classes there are, whether their scores are wanted or not. */
static int64_t classes_of(const struct rg_call *c, const int64_t **labels)
{
	return rg_node_ints(c->node, "classlabels_ints", labels);
}

static size_t classifier_scratch(const struct rg_call *c, int lanes)
{
	const int64_t *labels;

	return (size_t)classes_of(c, &labels) * sizeof(double);
}

static int classifier(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int64_t *labels;
	const float *w;
	int64_t rows, features, classes = classes_of(c, &labels), targets;
	double *score = c->scratch;
	enum rg_ml_post post;
	int rc = rg_ml_post(c->node, &post, err);

	rg_ml_rows(&c->in[0].shape, &rows, &features);
	targets = rg_node_floats(c->node, "coefficients", &w) / features;
	for (int64_t r = 0; r < rows && !rc; r++) {
		scores_of(c, r, features, targets, score);
		if (targets == 1) { /* of the second class; the first has the opposite */
			score[1] = score[0];
			score[0] = -score[1];
		}
		/* Before the transform, which may round two of them to one. */
		if (c->out[0].dtype != RG_UNDEFINED)
			((int64_t *)c->out[0].data)[r] = labels[rg_ref_ml_best(score, classes)];
		rg_ref_ml_post(post, score, classes);
		if (c->node->n_out > 1 && c->out[1].dtype != RG_UNDEFINED)
			rg_ref_store(&c->out[1], r * classes, 1, classes, score);
	}
	return rc;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "LinearClassifier", .domain = "ai.onnx.ml", .name = "ref", .scratch_bytes = classifier_scratch,
	  .run = classifier },
	{ .op_type = "LinearRegressor", .domain = "ai.onnx.ml", .name = "ref", .scratch_bytes = regressor_scratch,
	  .run = regressor },
};
RG_KERNEL_TABLE(rg_kernels_ref_ml_linear, kernels);
