/*
 * Elementwise functions of one operand, float32, any size: activations mostly.
 * What each does with NaN follows the reference.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

struct job {
	const float *x;
	float *y;
	float a, b;
};

/* A comparison with NaN is false, so NaN passes both. */
#define AT_LEAST(v, lo) ((v) < (lo) ? (lo) : (v))
#define AT_MOST(v, hi) ((v) > (hi) ? (hi) : (v))

#define LOOP(NAME, EXPR) \
	static void loop_##NAME(void *arg, int64_t begin, int64_t end, int lane) \
	{ \
		const struct job *j = arg; \
		const float *restrict x = j->x; \
		float *restrict y = j->y; \
		const float a = j->a, b = j->b; \
\
		(void)a; \
		(void)b; \
		for (int64_t i = begin; i < end; i++) { \
			float v = x[i]; \
\
			y[i] = (EXPR); \
		} \
	}

LOOP(abs, v < 0 ? -v : v + 0.0f)
LOOP(clip, AT_MOST(AT_LEAST(v, a), b))
LOOP(erf, rg_verff(v))
LOOP(exp, rg_vexpf(v))
LOOP(hard_sigmoid, AT_MOST(AT_LEAST(a * v + b, 0.0f), 1.0f))
LOOP(hard_swish, v * AT_MOST(AT_LEAST(v / 6.0f + 0.5f, 0.0f), 1.0f))
LOOP(leaky_relu, v < 0 ? a * v : v)
LOOP(neg, -v)
LOOP(relu, AT_LEAST(v, 0.0f))
LOOP(sigmoid, rg_vsigmoidf(v))
LOOP(sqrt, sqrtf(v))
LOOP(tanh, rg_vtanhf(v))

static int run_loop(const struct rg_call *c, const struct rg_par *par, rg_par_fn *fn, int64_t cost, struct job *j)
{
	j->x = c->in[0].data;
	j->y = c->out[0].data;
	par->run(par, rg_shape_count(&c->in[0].shape), rg_grain(cost), fn, j);
	return 0;
}

#define RUN(NAME, COST) \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		struct job j = { 0 }; \
\
		return run_loop(c, par, loop_##NAME, COST, &j); \
	}
RUN(abs, 1)
RUN(erf, 8)
RUN(exp, 4)
RUN(hard_swish, 1)
RUN(neg, 1)
RUN(relu, 1)
RUN(sigmoid, 5)
RUN(sqrt, 2)
RUN(tanh, 6)

static int run_hard_sigmoid(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = { .a = rg_node_float(c->node, "alpha", 0.2f), .b = rg_node_float(c->node, "beta", 0.5f) };

	return run_loop(c, par, loop_hard_sigmoid, 1, &j);
}

static int run_leaky_relu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = { .a = rg_node_float(c->node, "alpha", 0.01f) };

	return run_loop(c, par, loop_leaky_relu, 1, &j);
}

/* Bounds are attributes before version 11 and optional inputs from then on. */
static int run_clip(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = { .a = -INFINITY, .b = INFINITY };

	if (c->node->version < 11) {
		j.a = rg_node_float(c->node, "min", -INFINITY);
		j.b = rg_node_float(c->node, "max", INFINITY);
	} else {
		if (c->node->n_in > 1 && c->in[1].data)
			j.a = *(const float *)c->in[1].data;
		if (c->node->n_in > 2 && c->in[2].data)
			j.b = *(const float *)c->in[2].data;
	}
	return run_loop(c, par, loop_clip, 1, &j);
}

static bool supports(const struct rg_call *c)
{
	return c->in[0].dtype == RG_F32;
}

/* Each element is loaded and stored once. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = out->write_bytes = rg_tensor_bytes(RG_F32, &c->in[0].shape);
}

#define K(OP, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .traffic = traffic, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("Abs", run_abs),
	K("Clip", run_clip),
	K("Erf", run_erf),
	K("Exp", run_exp),
	K("HardSigmoid", run_hard_sigmoid),
	K("HardSwish", run_hard_swish),
	K("LeakyRelu", run_leaky_relu),
	K("Neg", run_neg),
	K("Relu", run_relu),
	K("Sigmoid", run_sigmoid),
	K("Sqrt", run_sqrt),
	K("Tanh", run_tanh),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(unary), kernels);
