/*
 * ONNX Runtime's elementwise fusions: Gelu with a bias and its approximations,
 * and softmax of a sum. In double, rounded once.
 */
#include <math.h>

#include "graph/contrib.h"
#include "graph/op-norm.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static double gelu(double x)
{
	return 0.5 * x * erfc(-x * M_SQRT1_2); /* 1 + erf loses all digits for negative x */
}

/* sqrt(2 / pi) = 2/sqrt(pi) * 1/sqrt(2) */
static double gelu_tanh(double x)
{
	return x / (1 + exp(-2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

/* y = f(x + bias), the bias a list for the last dimension, or absent. */
static void map(const struct rg_call *c, double (*f)(double))
{
	const struct rg_shape *s = &c->in[0].shape;
	bool has_bias = c->node->n_in > 1 && c->in[1].dtype != RG_UNDEFINED;
	int64_t n = rg_shape_count(s);
	double x[RG_REF_CHUNK], b[RG_REF_CHUNK];

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;

		rg_ref_load(&c->in[0], i, 1, m, x);
		if (has_bias)
			rg_ref_load_broadcast(&c->in[1], s, i, m, b);
		for (int64_t j = 0; j < m; j++)
			x[j] = f(has_bias ? x[j] + b[j] : x[j]);
		rg_ref_store(&c->out[0], i, 1, m, x);
	}
}

static int run_gelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	map(c, gelu);
	return 0;
}

static int run_fast_gelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	map(c, gelu_tanh);
	return 0;
}

static int run_quick_gelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double alpha = (double)rg_node_float(c->node, "alpha", 1.702f), x[RG_REF_CHUNK];
	int64_t n = rg_shape_count(&c->in[0].shape);

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;

		rg_ref_load(&c->in[0], i, 1, m, x);
		for (int64_t j = 0; j < m; j++)
			x[j] = x[j] / (1 + exp(-alpha * x[j]));
		rg_ref_store(&c->out[0], i, 1, m, x);
	}
	return 0;
}

static int run_split_gelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t rows = rg_shape_count_range(s, 0, 2), half = s->dim[2] / 2;

	for (int64_t r = 0; r < rows; r++)
		for (int64_t j = 0; j < half; j++) {
			double left = rg_ref_get(&c->in[0], r * 2 * half + j) + rg_ref_get(&c->in[1], j);
			double right = rg_ref_get(&c->in[0], r * 2 * half + half + j) +
				       rg_ref_get(&c->in[1], half + j);

			rg_ref_set(&c->out[0], r * half + j, left * gelu(right));
		}
	return 0;
}

static int run_bias_add(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t n = rg_shape_count(s), last = s->dim[s->rank - 1];

	for (int64_t i = 0; i < n; i++)
		rg_ref_set(&c->out[0], i, rg_ref_get(&c->in[0], i) + rg_ref_get(&c->in[1], i % last) +
						  rg_ref_get(&c->in[2], i));
	return 0;
}

/* Element i of the sum with the bias. */
static double biased(const struct rg_call *c, int64_t i)
{
	double b;

	rg_ref_load_broadcast(&c->in[1], &c->in[0].shape, i, 1, &b);
	return rg_ref_get(&c->in[0], i) + b;
}

static int run_bias_softmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_node node = *c->node;
	struct rg_rows rows;

	node.version = 11; /* every dimension from the axis on */
	if (!rg_softmax_rows(&node, &c->in[0].shape, &rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t r = 0; r < rows.outer; r++) {
		double top = -INFINITY, sum = 0;

		for (int64_t i = 0; i < rows.n; i++) {
			double v = biased(c, r * rows.n + i);

			top = v > top || isnan(v) ? v : top;
		}
		for (int64_t i = 0; i < rows.n; i++)
			sum += exp(biased(c, r * rows.n + i) - top);
		for (int64_t i = 0; i < rows.n; i++)
			rg_ref_set(&c->out[0], r * rows.n + i, exp(biased(c, r * rows.n + i) - top) / sum);
	}
	return 0;
}

#define K(OP, RUN) { .op_type = OP, .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("BiasAdd", run_bias_add),
	K("BiasGelu", run_gelu),
	K("BiasSoftmax", run_bias_softmax),
	K("BiasSplitGelu", run_split_gelu),
	K("FastGelu", run_fast_gelu),
	K("Gelu", run_gelu),
	K("QuickGelu", run_quick_gelu),
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_gelu, kernels);
