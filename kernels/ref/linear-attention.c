/*
 * LinearAttention, token by token as its recurrence is defined, and
 * CausalConvWithState. States and sums are in double; a state is rounded once,
 * when it leaves.
 */
#include <math.h>
#include <string.h>

#include "kernels/ref/attention.h"
#include "kernels/tables.h"

/* ---- LinearAttention ---- */

struct recurrence {
	const struct rg_call *c;
	struct rg_linear_attention n;
	double scale;
	double *state;  /* d_k x d_v */
	double *k, *q;  /* d_k */
	double *v, *y;  /* d_v */
};

/* The state after token t of K and V head h. */
static void advance(struct recurrence *r, int64_t b, int64_t h, int64_t t)
{
	const struct rg_linear_attention *n = &r->n;
	const struct rg_call *c = r->c;
	int64_t token = b * n->seq + t, d_k = n->d_k, d_v = n->d_v;

	rg_ref_load(&c->in[1], (token * n->kv_heads + h) * d_k, 1, d_k, r->k);
	rg_ref_load(&c->in[2], (token * n->kv_heads + h) * d_v, 1, d_v, r->v);
	for (int64_t i = 0; n->gated && i < d_k; i++) {
		double g = exp(rg_ref_get(&c->in[4], (token * n->kv_heads + h) * n->decay + (n->decay > 1 ? i : 0)));

		for (int64_t j = 0; j < d_v; j++)
			r->state[i * d_v + j] *= g;
	}
	if (n->delta) {
		double beta = rg_ref_get(&c->in[5], token * n->beta + (n->beta > 1 ? h : 0));

		memset(r->y, 0, (size_t)d_v * sizeof(double));
		for (int64_t i = 0; i < d_k; i++)
			for (int64_t j = 0; j < d_v; j++)
				r->y[j] += r->state[i * d_v + j] * r->k[i];
		for (int64_t j = 0; j < d_v; j++)
			r->v[j] = beta * (r->v[j] - r->y[j]);
	}
	for (int64_t i = 0; i < d_k; i++)
		for (int64_t j = 0; j < d_v; j++)
			r->state[i * d_v + j] += r->k[i] * r->v[j];
}

static void read_state(struct recurrence *r, int64_t b, int64_t q_head, int64_t t)
{
	const struct rg_linear_attention *n = &r->n;
	int64_t row = (b * n->seq + t) * n->q_heads + q_head;

	rg_ref_load(&r->c->in[0], row * n->d_k, 1, n->d_k, r->q);
	memset(r->y, 0, (size_t)n->d_v * sizeof(double));
	for (int64_t i = 0; i < n->d_k; i++)
		for (int64_t j = 0; j < n->d_v; j++)
			r->y[j] += r->q[i] * r->state[i * n->d_v + j];
	for (int64_t j = 0; j < n->d_v; j++)
		r->y[j] *= r->scale;
	rg_ref_store(&r->c->out[0], row * n->d_v, 1, n->d_v, r->y);
}

static int run_linear_attention(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *past = rg_attn_in(c, 3), *present = rg_attn_out(c, 1);
	struct recurrence r = { .c = c };
	const struct rg_linear_attention *n = &r.n;
	struct rg_in_shapes in;
	int64_t group, size;
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_linear_attention_resolve(c->node, &in, &r.n, err);
	if (rc)
		return rc;
	r.scale = (double)rg_node_float(c->node, "scale", 0);
	if (r.scale == 0)
		r.scale = 1 / sqrt((double)n->d_k);
	group = n->q_heads / n->kv_heads;
	size = n->d_k * n->d_v;
	r.state = c->scratch;
	r.k = r.state + size;
	r.q = r.k + n->d_k;
	r.v = r.q + n->d_k;
	r.y = r.v + n->d_v;
	for (int64_t b = 0; b < n->batch; b++) {
		for (int64_t h = 0; h < n->kv_heads; h++) {
			memset(r.state, 0, (size_t)size * sizeof(double));
			if (past)
				rg_ref_load(past, (b * n->kv_heads + h) * size, 1, size, r.state);
			for (int64_t t = 0; t < n->seq; t++) {
				advance(&r, b, h, t);
				for (int64_t g = 0; g < group; g++)
					read_state(&r, b, h * group + g, t);
			}
			if (present)
				rg_ref_store(present, (b * n->kv_heads + h) * size, 1, size, r.state);
		}
	}
	return 0;
}

static size_t linear_attention_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_linear_attention n;
	struct rg_in_shapes in;
	int64_t size;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_linear_attention_resolve(c->node, &in, &n, &err))
		return 0;
	size = rg_cost_add(rg_cost_mul(n.d_k, n.d_v), rg_cost_mul(2, rg_cost_add(n.d_k, n.d_v)));
	return size < 0 || size > INT64_MAX / 16 ? SIZE_MAX / 4 : (size_t)size * sizeof(double);
}

/* ---- CausalConvWithState ---- */

/* Element `at` of a channel with its state in front. */
static double padded(const struct rg_call *c, int64_t channel, int64_t state, int64_t at)
{
	const struct rg_tensor *past = rg_attn_in(c, 3);

	if (at >= state)
		return rg_ref_get(&c->in[0], channel * c->in[0].shape.dim[2] + at - state);
	return past ? rg_ref_get(past, channel * state + at) : 0;
}

static int run_causal_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *bias = rg_attn_in(c, 2), *present = rg_attn_out(c, 1);
	bool silu = strcmp(rg_node_string(c->node, "activation", "none"), "none") != 0;
	const struct rg_shape *x = &c->in[0].shape;
	int64_t length = x->dim[2], k = c->in[1].shape.dim[2], ch;
	double sum;

	for (int64_t row = 0; row < x->dim[0] * x->dim[1]; row++) {
		ch = row % x->dim[1];
		for (int64_t i = 0; i < length; i++) {
			sum = bias ? rg_ref_get(bias, ch) : 0;
			for (int64_t j = 0; j < k; j++)
				sum += rg_ref_get(&c->in[1], ch * k + j) * padded(c, row, k - 1, i + j);
			rg_ref_set(&c->out[0], row * length + i, silu ? sum / (1 + exp(-sum)) : sum);
		}
		for (int64_t j = 0; present && j < k - 1; j++)
			rg_ref_set(present, row * (k - 1) + j, padded(c, row, k - 1, length + j));
	}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "CausalConvWithState", .domain = "", .name = "ref", .run = run_causal_conv },
	{ .op_type = "CausalConvWithState", .domain = "com.microsoft", .name = "ref", .run = run_causal_conv },
	{ .op_type = "LinearAttention", .domain = "", .name = "ref", .scratch_bytes = linear_attention_scratch,
	  .run = run_linear_attention },
	{ .op_type = "LinearAttention", .domain = "com.microsoft", .name = "ref",
	  .scratch_bytes = linear_attention_scratch, .run = run_linear_attention },
};
RG_KERNEL_TABLE(rg_kernels_ref_linear_attention, kernels);
