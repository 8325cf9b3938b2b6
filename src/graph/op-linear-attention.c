/*
 * LinearAttention and CausalConvWithState: types, shapes, costs.
 *
 * Costs: LinearAttention, a token and a head of K and V, with the state of
 * d_k x d_v: d_k d_v to let it decay (and an exp an element of decay), 2 d_k d_v
 * to look up what the state holds for the key and 2 d_v to correct the value,
 * 2 d_k d_v to write; a head of Q reads it in 2 d_k d_v and scales d_v.
 * CausalConvWithState: 2 k flops an output element, 1 for a bias, for silu 2 and
 * 2 sfu (exp, divide).
 */
#include <inttypes.h>
#include <string.h>

#include "graph/op-attention.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

/* ---- LinearAttention: query key value past_state decay beta ---- */

static int resolve_rule(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_linear_attention *a,
			struct rg_error *err)
{
	const char *rule = rg_node_string(n, "update_rule", "gated_delta");

	a->gated = strncmp(rule, "gated", strlen("gated")) == 0;
	a->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
	if (strcmp(rule, "linear") && strcmp(rule, "gated") && !a->delta)
		return rg_attention_fail(n, err, "update_rule is '%.40s'", rule);
	if (a->gated != (in->at[4] != NULL))
		return rg_attention_fail(n, err, "update_rule '%s' goes %s decay", rule, a->gated ? "with" : "without");
	if (a->delta != (in->at[5] != NULL))
		return rg_attention_fail(n, err, "update_rule '%s' goes %s beta", rule, a->delta ? "with" : "without");
	return 0;
}

static bool is_rows(const struct rg_shape *s, const struct rg_linear_attention *a)
{
	return s->rank == 3 && s->dim[0] == a->batch && s->dim[1] == a->seq;
}

int rg_linear_attention_resolve(const struct rg_node *n, const struct rg_in_shapes *in,
				struct rg_linear_attention *out, struct rg_error *err)
{
	const struct rg_shape *q = in->at[0], *k = in->at[1], *v = in->at[2], *past = in->at[3];
	const struct rg_shape *decay = in->at[4], *beta = in->at[5];
	struct rg_linear_attention *a = out;

	memset(a, 0, sizeof(*a));
	if (resolve_rule(n, in, a, err))
		return err->code;
	a->q_heads = rg_node_int(n, "q_num_heads", 0);
	a->kv_heads = rg_node_int(n, "kv_num_heads", 0);
	if (a->kv_heads < 1 || a->q_heads < 1 || a->q_heads % a->kv_heads)
		return rg_attention_fail(n, err, "q_num_heads %" PRId64 " is no multiple of kv_num_heads %" PRId64,
					 a->q_heads, a->kv_heads);
	if (q->rank != 3)
		return rg_attention_fail(n, err, "query has rank %d, not 3", q->rank);
	a->batch = q->dim[0];
	a->seq = q->dim[1];
	if (!is_rows(k, a) || !is_rows(v, a))
		return rg_attention_fail(n, err, "query, key and value differ in batch or length");
	if (rg_attention_divide(n, "query", q->dim[2], a->q_heads, &a->d_k, err) ||
	    rg_attention_divide(n, "value", v->dim[2], a->kv_heads, &a->d_v, err))
		return err->code;
	if (k->dim[2] % a->kv_heads || k->dim[2] / a->kv_heads != a->d_k)
		return rg_attention_fail(n, err, "the heads of query have %" PRId64 " elements, those of key do not",
					 a->d_k);
	if (past && (past->rank != 4 || past->dim[0] != a->batch || past->dim[1] != a->kv_heads ||
		     past->dim[2] != a->d_k || past->dim[3] != a->d_v))
		return rg_attention_fail(n, err, "past_state is not %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, a->batch,
					 a->kv_heads, a->d_k, a->d_v);
	if (decay && is_rows(decay, a))
		a->decay = decay->dim[2] == a->kv_heads ? 1 : decay->dim[2] == k->dim[2] ? a->d_k : 0;
	if (decay && a->decay == 0)
		return rg_attention_fail(n, err, "decay has neither one value a head nor one an element of key");
	if (beta && is_rows(beta, a))
		a->beta = beta->dim[2] == a->kv_heads ? a->kv_heads : beta->dim[2] == 1;
	if (beta && a->beta == 0)
		return rg_attention_fail(n, err, "beta has neither one value a token nor one a head");
	return 0;
}

/* ONNX Runtime's operators of these names do more; the rest means the same. */
static int check_plain(struct rg_infer *c, struct rg_error *err)
{
	static const struct {
		const char *name;
		int64_t plain;
	} more[] = { { "state_window", 0 }, { "ndim", 1 }, { "dilation", 1 }, { "channels_last", 0 },
		     { "state_channels_last", -1 }, { "state_length", 0 }, { "state_update_capacity", 0 },
		     { "input_channel_offset", 0 }, { "input_channels", 0 } };

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (rg_node_int(c->node, more[i].name, more[i].plain) != more[i].plain)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s is not supported", c->node->op_type,
					    more[i].name);
	return 0;
}

static int infer_linear_attention(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *past = rg_infer_in(c, 3);
	struct rg_linear_attention a;
	struct rg_in_shapes in;
	struct rg_shape s;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	for (int i = 1; i <= 5 && !rc; i++)
		if (i != 3)
			rc = rg_infer_like(c, i, 0, err);
	if (!rc && past)
		rc = rg_infer_type(c, 3, RG_SET_FLOAT, err);
	if (!rc)
		rc = check_plain(c, err);
	if (rc)
		return rc;
	rg_shapes_of_infer(c, &in);
	rc = rg_linear_attention_resolve(c->node, &in, &a, err);
	if (rc)
		return rc;
	s = *in.at[0];
	if (__builtin_mul_overflow(a.q_heads, a.d_v, &s.dim[2]))
		return rg_infer_fail(c, err, "the output is too large");
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	s = rg_shape_of(4, (const int64_t[]){ a.batch, a.kv_heads, a.d_k, a.d_v });
	rg_infer_out(c, 1, past ? past->dtype : c->in[0]->dtype, &s);
	return 0;
}

static void cost_linear_attention(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_linear_attention a;
	int64_t tokens, state, kv, q;
	struct rg_in_shapes in;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_linear_attention_resolve(c->node, &in, &a, &err))
		return;
	tokens = rg_cost_mul(a.batch, a.seq);
	state = rg_cost_mul(a.d_k, a.d_v);
	kv = rg_cost_mul(state, 2 + a.gated + 2 * a.delta);
	kv = rg_cost_add(kv, a.delta ? rg_cost_mul(2, a.d_v) : 0);
	q = rg_cost_add(rg_cost_mul(2, state), a.d_v);
	out->flops = rg_cost_mul(tokens, rg_cost_add(rg_cost_mul(a.kv_heads, kv), rg_cost_mul(a.q_heads, q)));
	out->sfu = rg_cost_mul(tokens, rg_cost_mul(a.kv_heads, a.decay));
	out->iops = 0;
}

/* ---- CausalConvWithState: input weight bias past_state ---- */

static int infer_causal_conv(struct rg_infer *c, struct rg_error *err)
{
	const char *activation = rg_node_string(c->node, "activation", "none");
	const struct rg_shape *x, *w;
	struct rg_shape state;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	for (int i = 1; i <= 3 && !rc; i++)
		rc = rg_infer_like(c, i, 0, err);
	if (!rc)
		rc = check_plain(c, err);
	if (rc)
		return rc;
	x = &c->in[0]->shape;
	w = &c->in[1]->shape;
	if (strcmp(activation, "none") && strcmp(activation, "silu") && strcmp(activation, "swish"))
		return rg_infer_fail(c, err, "activation is '%.40s', not 'none', 'silu' or 'swish'", activation);
	if (x->rank != 3 || w->rank != 3 || w->dim[0] != x->dim[1] || w->dim[1] != 1 || w->dim[2] < 1)
		return rg_infer_fail(c, err, "input and weight must be N x C x L and C x 1 x k");
	state = *x;
	state.dim[2] = w->dim[2] - 1;
	rc = rg_infer_shape_is(c, 2, &(struct rg_shape){ .rank = 1, .dim = { x->dim[1] } }, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 3, &state, err);
	if (rc)
		return rc;
	rg_infer_out(c, 1, c->in[0]->dtype, &state);
	return rg_infer_same(c, err);
}

static void cost_causal_conv(const struct rg_cost_in *c, struct rg_cost *out)
{
	bool has_bias = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED;
	bool silu = strcmp(rg_node_string(c->node, "activation", "none"), "none") != 0;
	int64_t n = rg_shape_count(&c->in[0].shape);

	out->flops = rg_cost_mul(n, rg_cost_add(rg_cost_mul(2, c->in[1].shape.dim[2]), has_bias + 2 * silu));
	out->sfu = rg_cost_mul(n, 2 * silu);
	out->iops = 0;
}

const struct rg_op rg_ops_linear_attention[] = {
	{ "", "CausalConvWithState", RG_KIND_CONV, 0, 2, 4, 1, 2, { 27 }, 27, 27, infer_causal_conv, cost_causal_conv },
	{ "", "LinearAttention", RG_KIND_ATTENTION, 0, 3, 6, 1, 2, { 27 }, 27, 27, infer_linear_attention,
	  cost_linear_attention },
	{ "com.microsoft", "CausalConvWithState", RG_KIND_CONV, 0, 2, 4, 1, 2, { 1 }, 1, 1, infer_causal_conv,
	  cost_causal_conv },
	{ "com.microsoft", "LinearAttention", RG_KIND_ATTENTION, 0, 3, 6, 1, 2, { 1 }, 1, 1, infer_linear_attention,
	  cost_linear_attention },
};
RG_OP_FAMILY_END(linear_attention);
