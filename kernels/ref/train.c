/*
 * The optimisers of ai.onnx.preview.training, element by element in double, by
 * the pseudo code of their definitions.
 */
#include <math.h>
#include <string.h>

#include "graph/op-train.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

#define DOMAIN "ai.onnx.preview.training"

/* What is the same for all elements of a call. */
struct rule {
	double rate, alpha, beta, epsilon, norm, post;
	bool nesterov;
};

/* One element: value, gradient and state in, value and state out. */
typedef void step_fn(const struct rule *r, double *x, double g, double *state);

static double attr(const struct rg_call *c, const char *name, float dflt)
{
	return (double)rg_node_float(c->node, name, dflt);
}

static void store(const struct rg_call *c, int output, int64_t i, double v)
{
	if (c->out[output].data)
		rg_ref_set(&c->out[output], i, v);
}

static int run(const struct rg_call *c, const struct rule *r, step_fn *step, struct rg_error *err)
{
	struct rg_optimiser o;

	if (!rg_optimiser_of(c->node, &o))
		return rg_error_set(err, -EINVAL, "inputs and outputs do not go together");
	for (int t = 0; t < o.n; t++) {
		int64_t n = rg_shape_count(&c->in[2 + t].shape);

		for (int64_t i = 0; i < n; i++) {
			double x = rg_ref_get(&c->in[2 + t], i), state[2];

			for (int s = 0; s < o.states; s++)
				state[s] = rg_ref_get(&c->in[2 + (2 + s) * o.n + t], i);
			step(r, &x, rg_ref_get(&c->in[2 + o.n + t], i), state);
			store(c, t, i, x);
			for (int s = 0; s < o.states; s++)
				store(c, (1 + s) * o.n + t, i, state[s]);
		}
	}
	return 0;
}

static void adam(const struct rule *r, double *x, double g, double *state)
{
	g += r->norm * *x;
	state[0] = r->alpha * state[0] + (1 - r->alpha) * g;
	state[1] = r->beta * state[1] + (1 - r->beta) * g * g;
	*x = (1 - r->post) * (*x - r->rate * state[0] / (sqrt(state[1]) + r->epsilon));
}

static int run_adam(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t t = *(const int64_t *)c->in[1].data;
	struct rule r = {
		.rate = rg_ref_get(&c->in[0], 0), .alpha = attr(c, "alpha", 0.9f), .beta = attr(c, "beta", 0.999f),
		.epsilon = attr(c, "epsilon", 1e-6f), .norm = attr(c, "norm_coefficient", 0),
		.post = attr(c, "norm_coefficient_post", 0),
	};

	if (t > 0) /* the averages began at zero */
		r.rate *= sqrt(1 - pow(r.beta, (double)t)) / (1 - pow(r.alpha, (double)t));
	return run(c, &r, adam, err);
}

static void adagrad(const struct rule *r, double *x, double g, double *state)
{
	g += r->norm * *x;
	state[0] += g * g;
	*x -= r->rate * g / (sqrt(state[0]) + r->epsilon);
}

static int run_adagrad(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double t = (double)*(const int64_t *)c->in[1].data;
	struct rule r = {
		.rate = rg_ref_get(&c->in[0], 0) / (1 + t * attr(c, "decay_factor", 0)),
		.epsilon = attr(c, "epsilon", 1e-6f), .norm = attr(c, "norm_coefficient", 0),
	};

	return run(c, &r, adagrad, err);
}

static void momentum(const struct rule *r, double *x, double g, double *state)
{
	g += r->norm * *x;
	state[0] = r->alpha * state[0] + r->beta * g;
	*x -= r->rate * (r->nesterov ? g + r->alpha * state[0] : state[0]);
}

static int run_momentum(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rule r = {
		.rate = rg_ref_get(&c->in[0], 0), .alpha = attr(c, "alpha", 0),
		/* the first gradient counts whole */
		.beta = *(const int64_t *)c->in[1].data > 0 ? attr(c, "beta", 0) : 1,
		.norm = attr(c, "norm_coefficient", 0),
		.nesterov = !strcmp(rg_node_string(c->node, "mode", ""), "nesterov"),
	};

	return run(c, &r, momentum, err);
}

#define K(OP, RUN) { .op_type = OP, .domain = DOMAIN, .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Adagrad", run_adagrad),
	K("Adam", run_adam),
	K("Momentum", run_momentum),
};
RG_KERNEL_TABLE(rg_kernels_ref_train, kernels);
