/*
 * Operators that draw random numbers, in row-major order, with the generator of
 * ONNX's reference implementation: a seed gives the numbers that it gives there
 * (but for Bernoulli, whose body in the definition is followed instead, and
 * Multinomial, which has none there). Without a seed the node's name gives one,
 * so that a run can be repeated.
 */
#include <math.h>
#include <string.h>

#include "base/mt19937.h"
#include "base/rng.h"
#include "graph/op-random.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static void start(const struct rg_node *n, struct rg_mt19937 *mt)
{
	const struct rg_attr *a = rg_node_attr(n, "seed");
	uint32_t seed = (uint32_t)rg_rng_stream(0, n->name);

	if (a && a->type == RG_ATTR_INT)
		seed = (uint32_t)a->i;
	else if (a && a->type == RG_ATTR_FLOAT && fabsf(a->f) < 0x1p63f)
		seed = (uint32_t)(int64_t)a->f;
	rg_mt19937_seed(mt, seed);
}

/* Rounded as a value of that type. */
static double as(enum rg_dtype t, double v)
{
	switch (t) {
	case RG_F32:
		return (double)(float)v;
	case RG_F16:
		return (double)rg_f16_to_f32(rg_f32_to_f16((float)v));
	case RG_BF16:
		return (double)rg_bf16_to_f32(rg_f32_to_bf16((float)v));
	default:
		return v;
	}
}

/* draw * factor + offset, each step rounded to the output's type. */
static int draw(const struct rg_call *c, double (*next)(struct rg_mt19937 *), double factor, double offset)
{
	enum rg_dtype t = c->out[0].dtype;
	int64_t n = rg_shape_count(&c->out[0].shape);
	struct rg_mt19937 mt;

	start(c->node, &mt);
	for (int64_t i = 0; i < n; i++)
		rg_ref_set(&c->out[0], i, as(t, as(t, next(&mt)) * factor) + offset);
	return 0;
}

static int run_uniform(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	float low = rg_node_float(c->node, "low", 0), high = rg_node_float(c->node, "high", 1);

	return draw(c, rg_mt19937_unit, (double)(high - low), (double)low);
}

static int run_normal(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return draw(c, rg_mt19937_normal, (double)rg_node_float(c->node, "scale", 1),
		    (double)rg_node_float(c->node, "mean", 0));
}

static int run_bernoulli(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->out[0].shape);
	struct rg_mt19937 mt;

	start(c->node, &mt);
	for (int64_t i = 0; i < n; i++)
		rg_ref_set(&c->out[0], i, rg_mt19937_unit(&mt) < rg_ref_get(&c->in[0], i));
	return 0;
}

/* The largest of a row that is finite; sum: of exp(x - largest). */
static void row_sum(const struct rg_tensor *x, int64_t first, int64_t n, double *largest, double *sum)
{
	*largest = -INFINITY;
	*sum = 0;
	for (int64_t i = 0; i < n; i++) {
		double v = rg_ref_get(x, first + i);

		if (isfinite(v) && v > *largest)
			*largest = v;
	}
	for (int64_t i = 0; i < n; i++) {
		double v = rg_ref_get(x, first + i);

		if (isfinite(v))
			*sum += exp(v - *largest);
	}
}

/* Where the running sum of exp(x - largest) passes `target`; the last class that
 * has a chance when rounding keeps it below. */
static int64_t pick(const struct rg_tensor *x, int64_t first, int64_t n, double largest, double target)
{
	int64_t last = 0;
	double sum = 0;

	for (int64_t i = 0; i < n; i++) {
		double v = rg_ref_get(x, first + i), p = isfinite(v) ? exp(v - largest) : 0;

		if (p == 0)
			continue;
		last = i;
		sum += p;
		if (sum > target)
			break;
	}
	return last;
}

static int run_multinomial(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *x = &c->in[0];
	int64_t classes = x->shape.dim[1], samples = c->out[0].shape.dim[1];
	struct rg_mt19937 mt;
	double largest, sum;

	start(c->node, &mt);
	for (int64_t row = 0; row < x->shape.dim[0]; row++) {
		row_sum(x, row * classes, classes, &largest, &sum);
		if (!(sum > 0) && samples > 0)
			return rg_error_set(err, -EINVAL, "no class of row %lld has a finite log-probability",
					    (long long)row);
		for (int64_t i = 0; i < samples; i++) {
			int64_t k = pick(x, row * classes, classes, largest, rg_mt19937_unit(&mt) * sum);

			if (c->out[0].dtype == RG_I64)
				((int64_t *)c->out[0].data)[row * samples + i] = k;
			else
				((int32_t *)c->out[0].data)[row * samples + i] = (int32_t)k;
		}
	}
	return 0;
}

/* ---- Dropout ---- */

static bool dropout_supports(const struct rg_call *c)
{
	enum rg_dtype mask = c->node->n_out > 1 ? c->out[1].dtype : RG_UNDEFINED;

	return rg_dtype_bits(c->in[0].dtype) != 0 && (mask == RG_UNDEFINED || mask == RG_BOOL ||
						      rg_in_set(mask, RG_SET_FLOAT));
}

static double ratio_of(const struct rg_call *c, enum rg_dtype *t)
{
	*t = RG_F32;
	if (c->node->version < 12)
		return (double)rg_node_float(c->node, "ratio", 0.5f);
	if (c->node->n_in < 2 || c->in[1].dtype == RG_UNDEFINED)
		return 0.5;
	*t = c->in[1].dtype;
	return rg_ref_get(&c->in[1], 0);
}

static int run_dropout(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *mask = c->node->n_out > 1 && c->out[1].data ? &c->out[1] : NULL, *y = &c->out[0];
	int64_t n = rg_shape_count(&c->in[0].shape), bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	enum rg_dtype t = RG_F32;
	double ratio = rg_dropout_trains(c->node, c->in) ? ratio_of(c, &t) : 0, scale;
	struct rg_mt19937 mt;

	if (!(ratio >= 0 && ratio < 1))
		return rg_error_set(err, -EINVAL, "the ratio is %g, not in [0, 1)", ratio);
	if (ratio == 0) {
		/* the same pointer when the planner aliased them after all */
		if (bytes > 0 && y->data && y->data != c->in[0].data)
			memcpy(y->data, c->in[0].data, (size_t)bytes);
		for (int64_t i = 0; mask && i < n; i++)
			rg_ref_set(mask, i, 1);
		return 0;
	}
	start(c->node, &mt);
	scale = as(t, 1 / as(t, 1 - ratio)); /* in the ratio's arithmetic */
	for (int64_t i = 0; i < n; i++) {
		bool keep = rg_mt19937_unit(&mt) >= ratio;

		if (y->data)
			rg_ref_set(y, i, rg_ref_get(&c->in[0], i) * (keep ? scale : 0));
		if (mask)
			rg_ref_set(mask, i, keep);
	}
	return 0;
}

#define K(OP, RUN) { .op_type = OP, .domain = "", .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Bernoulli", run_bernoulli),
	{ .op_type = "Dropout", .domain = "", .name = "ref", .supports = dropout_supports,
	  .traffic = rg_copy_traffic, .run = run_dropout },
	K("Multinomial", run_multinomial),
	K("RandomNormal", run_normal),
	K("RandomNormalLike", run_normal),
	K("RandomUniform", run_uniform),
	K("RandomUniformLike", run_uniform),
};
RG_KERNEL_TABLE(rg_kernels_ref_random, kernels);
