/*
 * GroupQueryAttention of ONNX Runtime: types, shapes, costs.
 *
 * Costs: attention as rg_attention_cost says, every sequence at full length;
 * 6 flops a pair of elements that is rotated.
 *
 * The cache that comes out is as long as total_sequence_length says, so its
 * value must be known (models compute it from a shape), or as the one that comes
 * in, if that is longer. Refused by name: quantised caches, caches of the size of
 * the window, normalised queries and keys.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-mha.h"
#include "graph/op-types.h"

static bool is_3d(const struct rg_shape *s, int64_t a, int64_t b, int64_t c)
{
	return s->rank == 3 && s->dim[0] == a && s->dim[1] == b && s->dim[2] == c;
}

static bool is_list(const struct rg_shape *s, int64_t n)
{
	return s->rank == 1 && s->dim[0] == n;
}

static int unsupported(const struct rg_node *n, const char *what, struct rg_error *err)
{
	return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s is not supported", n->op_type, what);
}

static int check_implemented(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_error *err)
{
	if (in->at[RG_GQA_K_SCALE] || in->at[RG_GQA_V_SCALE] ||
	    strcmp(rg_node_string(n, "k_quant_type", "NONE"), "NONE") ||
	    strcmp(rg_node_string(n, "v_quant_type", "NONE"), "NONE"))
		return unsupported(n, "a quantised cache", err);
	if (rg_node_int(n, "sliding_window_cache", 0))
		return unsupported(n, "sliding_window_cache", err);
	if (in->at[RG_GQA_Q_NORM] || in->at[RG_GQA_K_NORM])
		return unsupported(n, "normalising queries and keys (q_norm_weight, k_norm_weight)", err);
	return 0;
}

static int resolve_qkv(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_gqa *g, struct rg_error *err)
{
	const struct rg_shape *q = in->at[RG_GQA_QUERY], *k = in->at[RG_GQA_KEY], *v = in->at[RG_GQA_VALUE];
	struct rg_attention *s = &g->size;

	if (q->rank != 3)
		return rg_attention_fail(n, err, "query has rank %d, not 3", q->rank);
	if (!k != !v)
		return rg_attention_fail(n, err, "key and value must be given together");
	s->batch = q->dim[0];
	s->q_seq = s->kv_seq = q->dim[1];
	g->packed = !k;
	if (rg_attention_divide(n, "query", q->dim[2], g->packed ? s->q_heads + 2 * s->kv_heads : s->q_heads, &s->head,
				err))
		return err->code;
	s->v_head = s->head;
	if (k && (!is_3d(k, s->batch, s->q_seq, s->kv_heads * s->head) || !rg_shape_equal(k, v)))
		return rg_attention_fail(n, err, "key and value must be %" PRId64 "x%" PRId64 "x%" PRId64, s->batch, s->q_seq,
					 s->kv_heads * s->head);
	return 0;
}

static int resolve_past(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_gqa *g, struct rg_error *err)
{
	const struct rg_shape *k = in->at[RG_GQA_PAST_KEY], *v = in->at[RG_GQA_PAST_VALUE];
	struct rg_attention *s = &g->size;

	if (!k != !v)
		return rg_attention_fail(n, err, "past_key and past_value must be given together");
	if (!k)
		return 0;
	if (!rg_shape_equal(k, v) || k->rank != 4 || k->dim[0] != s->batch || k->dim[1] != s->kv_heads ||
	    k->dim[3] != s->head)
		return rg_attention_fail(n, err, "past_key and past_value must be %" PRId64 "x%" PRId64 "xNx%" PRId64,
					 s->batch, s->kv_heads, s->head);
	s->past = k->dim[2];
	return 0;
}

static int resolve_rotary(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_gqa *g,
			  struct rg_error *err)
{
	const struct rg_shape *cosines = in->at[RG_GQA_COS], *sines = in->at[RG_GQA_SIN];
	const struct rg_shape *ids = in->at[RG_GQA_POSITION_IDS];
	char text[160];

	g->rotary = rg_node_int(n, "do_rotary", 0) != 0;
	g->interleaved = rg_node_int(n, "rotary_interleaved", 0) != 0;
	if (!g->rotary)
		return 0;
	if (!cosines || !sines || cosines->rank != 2 || !rg_shape_equal(cosines, sines))
		return rg_attention_fail(n, err, "do_rotary needs cos_cache and sin_cache of one shape and rank 2");
	if (cosines->dim[1] > g->size.head / 2)
		return rg_attention_fail(n, err, "caches of shape %s are for heads larger than %" PRId64,
					 rg_shape_text(text, cosines), g->size.head);
	g->rotary_dim = 2 * cosines->dim[1];
	g->positions = cosines->dim[0];
	if (ids && (ids->rank != 2 || ids->dim[0] != g->size.batch || ids->dim[1] != g->size.q_seq))
		return rg_attention_fail(n, err, "position_ids have shape %s, not %" PRId64 "x%" PRId64,
					 rg_shape_text(text, ids), g->size.batch, g->size.q_seq);
	return 0;
}

static int resolve_window(const struct rg_node *n, struct rg_gqa *g, struct rg_error *err)
{
	int64_t causal = rg_node_int(n, "causal", 1);

	g->window = rg_node_int(n, "local_window_size", -1);
	if (g->window != -1 && g->window < 1)
		return rg_attention_fail(n, err, "local_window_size is %" PRId64, g->window);
	if (causal != 0 && causal != 1)
		return rg_attention_fail(n, err, "causal is %" PRId64 ", not 0 or 1", causal);
	g->causal = causal == 1;
	if (!g->causal && g->window != -1)
		return rg_attention_fail(n, err, "local_window_size needs causal attention");
	return 0;
}

int rg_gqa_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_gqa *out, struct rg_error *err)
{
	const struct rg_shape *lens = in->at[RG_GQA_SEQLENS_K], *sink = in->at[RG_GQA_HEAD_SINK];
	const struct rg_shape *valid = in->at[RG_GQA_QUERY_SEQLENS];
	struct rg_attention *s = &out->size;
	int rc;

	memset(out, 0, sizeof(*out));
	s->q_heads = rg_node_int(n, "num_heads", 0);
	s->kv_heads = rg_node_int(n, "kv_num_heads", 0);
	if (s->kv_heads < 1 || s->q_heads < 1 || s->q_heads > INT32_MAX || s->q_heads % s->kv_heads)
		return rg_attention_fail(n, err, "num_heads %" PRId64 " is no multiple of kv_num_heads %" PRId64, s->q_heads,
					 s->kv_heads);
	rc = check_implemented(n, in, err);
	if (!rc)
		rc = resolve_qkv(n, in, out, err);
	if (!rc)
		rc = resolve_past(n, in, out, err);
	if (!rc)
		rc = resolve_rotary(n, in, out, err);
	if (!rc)
		rc = resolve_window(n, out, err);
	if (rc)
		return rc;
	if (!lens || !in->at[RG_GQA_TOTAL])
		return rg_attention_fail(n, err, "seqlens_k and total_sequence_length must be given");
	if (rg_shape_count(lens) != s->batch || (valid && !is_list(valid, s->batch)))
		return rg_attention_fail(n, err, "seqlens_k and query_seqlens must have one element for each of the %" PRId64
					 " sequences", s->batch);
	if (sink && !is_list(sink, s->q_heads))
		return rg_attention_fail(n, err, "head_sink must have one element for each of the %" PRId64 " heads",
					 s->q_heads);
	return 0;
}

/* ---- inference ---- */

static int check_types(struct rg_infer *c, struct rg_error *err)
{
	static const int like_query[] = { RG_GQA_KEY, RG_GQA_VALUE, RG_GQA_COS, RG_GQA_SIN, RG_GQA_BIAS,
					  RG_GQA_HEAD_SINK };
	static const int past[] = { RG_GQA_PAST_KEY, RG_GQA_PAST_VALUE };
	static const int counts[] = { RG_GQA_SEQLENS_K, RG_GQA_TOTAL, RG_GQA_QUERY_SEQLENS };
	int rc = rg_infer_type(c, RG_GQA_QUERY, RG_SET_FLOAT, err);

	for (size_t i = 0; i < sizeof(like_query) / sizeof(*like_query) && !rc; i++)
		rc = rg_infer_like(c, like_query[i], RG_GQA_QUERY, err);
	for (size_t i = 0; i < 2 && !rc; i++)
		if (rg_infer_in(c, past[i]) && rg_infer_in(c, past[i])->dtype != c->in[0]->dtype)
			rc = unsupported(c->node, "a cache of another type than query", err);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts) && !rc; i++)
		if (rg_infer_in(c, counts[i]))
			rc = rg_infer_type(c, counts[i], RG_BIT(RG_I32), err);
	if (!rc && rg_infer_in(c, RG_GQA_POSITION_IDS))
		rc = rg_infer_type(c, RG_GQA_POSITION_IDS, RG_BIT(RG_I64), err);
	return rc;
}

static int check_bias(struct rg_infer *c, const struct rg_attention *s, int64_t total, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, RG_GQA_BIAS);
	const struct rg_shape *b = v ? &v->shape : NULL;
	char text[160];

	if (b && (b->rank != 4 || (b->dim[0] != 1 && b->dim[0] != s->batch) ||
		  (b->dim[1] != 1 && b->dim[1] != s->q_heads) || b->dim[2] != s->q_seq || b->dim[3] != total))
		return rg_infer_fail(c, err, "an attention bias of shape %s does not go with %" PRId64 "x%" PRId64 "x%" PRId64
				     "x%" PRId64, rg_shape_text(text, b), s->batch, s->q_heads, s->q_seq, total);
	return 0;
}

static int infer_gqa(struct rg_infer *c, struct rg_error *err)
{
	int64_t output = rg_node_int(c->node, "qk_output", 0), total, room;
	struct rg_in_shapes in;
	struct rg_shape shape;
	struct rg_attention *s;
	struct rg_gqa g;
	int rc = check_types(c, err);

	if (rc)
		return rc;
	rg_shapes_of_infer(c, &in);
	rc = rg_gqa_resolve(c->node, &in, &g, err);
	if (rc)
		return rc;
	s = &g.size;
	rc = rg_infer_ints(c, RG_GQA_TOTAL, &total, 1, err);
	if (rc < 0)
		return rc;
	/* nothing but the rows of the cache that comes in and the new ones is there to be seen */
	if (rc != 1 || __builtin_add_overflow(s->past, s->q_seq, &room) || total < 0 || total > room)
		return rg_infer_fail(c, err, "total_sequence_length is %" PRId64 "; the cache has %" PRId64 " rows and %" PRId64
				     " come", rc == 1 ? total : -1, s->past, s->q_seq);
	rc = check_bias(c, s, total, err);
	if (rc)
		return rc;
	if (output < 0 || output > 2)
		return rg_infer_fail(c, err, "qk_output is %" PRId64 ", not 0, 1 or 2", output);
	if (output == 0 && c->node->n_out > 3 && c->node->out[3] >= 0)
		return rg_infer_fail(c, err, "output_qk is wanted, but qk_output is 0");
	shape = *in.at[RG_GQA_QUERY];
	shape.dim[2] = s->q_heads * s->head; /* not more than query has */
	rg_infer_out(c, 0, c->in[0]->dtype, &shape);
	shape = rg_shape_of(4, (const int64_t[]){ s->batch, s->kv_heads, s->past > total ? s->past : total, s->head });
	rg_infer_out(c, 1, c->in[0]->dtype, &shape);
	rg_infer_out(c, 2, c->in[0]->dtype, &shape);
	shape = rg_shape_of(4, (const int64_t[]){ s->batch, s->q_heads, s->q_seq, total });
	rg_infer_out(c, 3, c->in[0]->dtype, &shape);
	return 0;
}

static void cost_gqa(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_attention_work w = { 0 };
	struct rg_in_shapes in;
	struct rg_gqa g;
	int64_t total;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (!c->in[RG_GQA_TOTAL].data || rg_gqa_resolve(c->node, &in, &g, &err))
		return;
	total = *(const int32_t *)c->in[RG_GQA_TOTAL].data;
	g.size.total = total;
	g.size.past = total > g.size.q_seq ? total - g.size.q_seq : 0;
	w.causal = g.causal;
	w.window = g.window;
	w.mask = in.at[RG_GQA_BIAS] != NULL;
	w.softcap = rg_node_float(c->node, "softcap", 0) > 0;
	rg_attention_cost(&g.size, &w, out);
	if (g.rotary)
		out->flops = rg_cost_add(out->flops, rg_cost_mul(rg_cost_mul(g.size.batch, g.size.q_seq), rg_cost_mul(
			rg_cost_add(g.size.q_heads, g.size.kv_heads), 3 * g.rotary_dim)));
}

const struct rg_op rg_ops_gqa[] = {
	{ "com.microsoft", "GroupQueryAttention", RG_KIND_ATTENTION, 0, 1, RG_GQA_INPUTS, 1, 4, { 1 }, 1, 1, infer_gqa,
	  cost_gqa },
};
RG_OP_FAMILY_END(gqa);
