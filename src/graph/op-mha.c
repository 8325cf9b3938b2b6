/*
 * Attention and MultiHeadAttention of ONNX Runtime: types, shapes, costs.
 *
 * Costs: attention as rg_attention_cost says; Attention adds its projection,
 * 2 input a column of the weights and token, 1 for the bias.
 *
 * Refused by name: buffers shared by past and present, beams (cache_indirection),
 * rotary embedding inside of Attention, the masks of packed sequences.
 */
#include "graph/op-mha.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

static bool is_attention(const struct rg_node *n)
{
	return strcmp(n->op_type, "Attention") == 0;
}

struct rg_mha_inputs rg_mha_inputs(const struct rg_node *n)
{
	/* Attention: input weights bias mask_index past attention_bias past_sequence_length
	 * MultiHeadAttention: query key value bias key_padding_mask attention_bias
	 * past_key past_value past_sequence_length cache_indirection */
	if (is_attention(n))
		return (struct rg_mha_inputs){ .mask = 3, .attention_bias = 5, .bias = 2 };
	return (struct rg_mha_inputs){ .mask = 4, .attention_bias = 5, .bias = 3 };
}

static int unsupported(const struct rg_node *n, const char *what, struct rg_error *err)
{
	return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: %s is not supported", n->op_type, what);
}

static bool has_dims(const struct rg_shape *s, int rank, const int64_t *dims)
{
	struct rg_shape want = rg_shape_of(rank, dims);

	return rg_shape_equal(s, &want);
}
#define HAS_DIMS(S, ...) \
	has_dims(S, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })

/* ---- Q, K, V ---- */

/* Widths of Q and K, and of V, of the projection. */
static int projected_widths(const struct rg_node *n, int64_t columns, int64_t *qk, int64_t *v, struct rg_error *err)
{
	const int64_t *sizes;
	int count = rg_node_ints(n, "qkv_hidden_sizes", &sizes);

	*qk = *v = columns / 3;
	if (count > 0) {
		if (count != 3 || sizes[0] != sizes[1])
			return rg_attention_fail(n, err, "qkv_hidden_sizes must be three sizes, of which the first two are equal");
		*qk = sizes[0];
		*v = sizes[2];
	}
	if (*qk < 1 || *v < 1 || *qk > columns || *v > columns || columns - *qk - *qk != *v)
		return rg_attention_fail(n, err, "%" PRId64 " columns of weights do not split into Q, K and V", columns);
	return 0;
}

static int resolve_projected(const struct rg_node *n, const struct rg_in_shapes *in, int64_t heads, struct rg_mha *m,
			     struct rg_error *err)
{
	const struct rg_shape *x = in->at[0], *w = in->at[1], *past = in->at[4];
	struct rg_attention *s = &m->size;
	int64_t qk, v;

	m->layout = RG_MHA_PROJECTED;
	if (x->rank != 3 || w->rank != 2 || w->dim[0] != x->dim[2])
		return rg_attention_fail(n, err, "input and weights must be batch x sequence x width and width x columns");
	s->batch = x->dim[0];
	s->q_seq = s->kv_seq = x->dim[1];
	m->input = x->dim[2];
	if (projected_widths(n, w->dim[1], &qk, &v, err) ||
	    rg_attention_divide(n, "a query", qk, heads, &s->head, err) ||
	    rg_attention_divide(n, "a value", v, heads, &s->v_head, err))
		return err->code;
	if (!past)
		return 0;
	s->past = past->rank == 5 ? past->dim[3] : 0;
	if (s->head != s->v_head || !HAS_DIMS(past, 2, s->batch, heads, s->past, s->head))
		return rg_attention_fail(n, err, "past must be 2x%" PRId64 "x%" PRId64 "xNx%" PRId64, s->batch, heads,
					 s->head);
	m->has_past = true;
	return 0;
}

static int resolve_keys(const struct rg_node *n, const struct rg_in_shapes *in, int64_t heads, struct rg_mha *m,
			struct rg_error *err)
{
	const struct rg_shape *k = in->at[1], *v = in->at[2];
	struct rg_attention *s = &m->size;

	if (k->rank == 5) {
		m->layout = RG_MHA_PACKED_KV;
		s->kv_seq = k->dim[1];
		s->v_head = s->head;
		if (v || !HAS_DIMS(k, s->batch, s->kv_seq, heads, 2, s->head))
			return rg_attention_fail(n, err, "a packed key must be %" PRId64 "xNx%" PRId64 "x2x%" PRId64
						 ", without value", s->batch, heads, s->head);
		return 0;
	}
	if (!v || v->rank != k->rank || (k->rank != 3 && k->rank != 4))
		return rg_attention_fail(n, err, "key and value must both have rank 3 or both rank 4");
	m->layout = k->rank == 3 ? RG_MHA_SEPARATE : RG_MHA_HEADS_FIRST;
	s->kv_seq = k->dim[k->rank == 3 ? 1 : 2];
	s->v_head = v->dim[3];
	if (k->rank == 3 && rg_attention_divide(n, "value", v->dim[2], heads, &s->v_head, err))
		return err->code;
	if (k->rank == 3 ? !HAS_DIMS(k, s->batch, s->kv_seq, heads * s->head) ||
			   !HAS_DIMS(v, s->batch, s->kv_seq, heads * s->v_head) :
			   !HAS_DIMS(k, s->batch, heads, s->kv_seq, s->head) ||
			   !HAS_DIMS(v, s->batch, heads, s->kv_seq, s->v_head))
		return rg_attention_fail(n, err, "key and value do not go with %" PRId64 " queries of %" PRId64 " heads of %"
					 PRId64, s->batch, heads, s->head);
	return 0;
}

static int resolve_multi_head(const struct rg_node *n, const struct rg_in_shapes *in, int64_t heads,
			      struct rg_mha *m, struct rg_error *err)
{
	const struct rg_shape *q = in->at[0], *pk = in->at[6], *pv = in->at[7];
	struct rg_attention *s = &m->size;

	if (q->rank != (in->at[1] || in->at[2] ? 3 : 5))
		return rg_attention_fail(n, err, "query has rank %d, not %d", q->rank, q->rank == 3 ? 5 : 3);
	s->batch = q->dim[0];
	s->q_seq = q->dim[1];
	if (q->rank == 5) {
		m->layout = RG_MHA_PACKED_QKV;
		s->kv_seq = s->q_seq;
		s->head = s->v_head = q->dim[4];
		if (s->head < 1 || !HAS_DIMS(q, s->batch, s->q_seq, heads, 3, s->head))
			return rg_attention_fail(n, err, "a packed query must be BxNx%" PRId64 "x3xH", heads);
	} else {
		if (!in->at[1])
			return rg_attention_fail(n, err, "there is a value and no key");
		if (rg_attention_divide(n, "query", q->dim[2], heads, &s->head, err) ||
		    resolve_keys(n, in, heads, m, err))
			return err->code;
	}
	if (!pk != !pv)
		return rg_attention_fail(n, err, "past_key and past_value must be given together");
	if (!pk)
		return 0;
	s->past = pk->rank == 4 ? pk->dim[2] : 0;
	if (m->layout == RG_MHA_HEADS_FIRST || !HAS_DIMS(pk, s->batch, heads, s->past, s->head) ||
	    !HAS_DIMS(pv, s->batch, heads, s->past, s->v_head))
		return rg_attention_fail(n, err, "past_key and past_value do not go with query, key and value");
	m->has_past = true;
	return 0;
}

/* ---- masks ---- */

static int resolve_mask(const struct rg_node *n, const struct rg_shape *mask, struct rg_mha *m, struct rg_error *err)
{
	const struct rg_attention *s = &m->size;
	char text[160];

	if (mask->rank == 1 && mask->dim[0] == s->batch)
		m->mask = RG_MHA_LENGTHS;
	else if (mask->rank == 1 && is_attention(n) && mask->dim[0] == rg_cost_mul(2, s->batch))
		m->mask = RG_MHA_END_START;
	else if (mask->rank == 1 && mask->dim[0] == rg_cost_add(rg_cost_mul(3, s->batch), 2))
		return unsupported(n, "a mask of packed sequences", err);
	else if (HAS_DIMS(mask, s->batch, s->total))
		m->mask = RG_MHA_KEYS;
	else if (is_attention(n) && mask->rank == 2 && mask->dim[1] == 1 &&
		 (mask->dim[0] == s->batch || mask->dim[0] == 1))
		m->mask = RG_MHA_NO_MASK; /* one value for all keys changes nothing */
	else if (HAS_DIMS(mask, s->batch, s->q_seq, s->total))
		m->mask = RG_MHA_ROWS;
	else if (is_attention(n) && mask->rank == 4 && mask->dim[2] >= s->total && !m->causal &&
		 HAS_DIMS(mask, s->batch, 1, mask->dim[2], mask->dim[2]))
		m->mask = RG_MHA_SQUARE;
	else
		return rg_attention_fail(n, err, "a mask of shape %s does not go with %" PRId64 " sequences of %" PRId64
					 " queries and %" PRId64 " keys", rg_shape_text(text, mask), s->batch, s->q_seq,
					 s->total);
	m->mask_width = m->mask == RG_MHA_SQUARE ? mask->dim[2] : 0;
	return 0;
}

static int resolve_attention_bias(const struct rg_node *n, const struct rg_shape *b, struct rg_mha *m,
				  struct rg_error *err)
{
	const struct rg_attention *s = &m->size;
	char text[160];

	if (b->rank != 4 || (b->dim[0] != 1 && b->dim[0] != s->batch) || (b->dim[1] != 1 && b->dim[1] != s->q_heads) ||
	    b->dim[2] != s->q_seq || b->dim[3] != s->total)
		return rg_attention_fail(n, err, "an attention bias of shape %s does not go with %" PRId64 "x%" PRId64 "x%"
					 PRId64 "x%" PRId64, rg_shape_text(text, b), s->batch, s->q_heads, s->q_seq,
					 s->total);
	m->has_attention_bias = true;
	m->bias_batch = b->dim[0] != 1;
	m->bias_head = b->dim[1] != 1;
	return 0;
}

static int check_implemented(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_error *err)
{
	if (rg_node_int(n, "past_present_share_buffer", 0) || in->at[is_attention(n) ? 6 : 8])
		return unsupported(n, "a buffer shared by past and present (past_sequence_length)", err);
	if (!is_attention(n) && in->at[9])
		return unsupported(n, "cache_indirection", err);
	if (is_attention(n) && rg_node_int(n, "do_rotary", 0))
		return unsupported(n, "do_rotary", err);
	return 0;
}

int rg_mha_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_mha *out, struct rg_error *err)
{
	struct rg_mha_inputs at = rg_mha_inputs(n);
	int64_t heads = rg_node_int(n, "num_heads", 0), columns;
	struct rg_attention *s = &out->size;
	int rc;

	memset(out, 0, sizeof(*out));
	if (heads < 1 || heads > INT32_MAX)
		return rg_attention_fail(n, err, "num_heads is %" PRId64, heads);
	s->q_heads = s->kv_heads = heads;
	out->causal = rg_node_int(n, "unidirectional", 0) != 0;
	rc = check_implemented(n, in, err);
	if (!rc)
		rc = is_attention(n) ? resolve_projected(n, in, heads, out, err) :
				       resolve_multi_head(n, in, heads, out, err);
	if (rc)
		return rc;
	if (__builtin_add_overflow(s->past, s->kv_seq, &s->total))
		return rg_attention_fail(n, err, "the sequence is too long");
	out->has_bias = in->at[at.bias] != NULL;
	columns = rg_cost_mul(heads, rg_cost_add(2 * s->head, s->v_head));
	if (out->has_bias && (out->layout == RG_MHA_HEADS_FIRST || !HAS_DIMS(in->at[at.bias], columns)))
		return rg_attention_fail(n, err, "bias must have one element for each of the %" PRId64 " columns of Q, K and "
					 "V", columns);
	if (in->at[at.mask])
		rc = resolve_mask(n, in->at[at.mask], out, err);
	if (!rc && in->at[at.attention_bias])
		rc = resolve_attention_bias(n, in->at[at.attention_bias], out, err);
	return rc;
}

/* ---- inference ---- */

static int check_types(struct rg_infer *c, struct rg_error *err)
{
	struct rg_mha_inputs at = rg_mha_inputs(c->node);
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	for (int i = 1; i < c->node->n_in && !rc; i++) {
		bool is_int = i == at.mask || i == (is_attention(c->node) ? 6 : 8) || i == 9;

		if (!is_int)
			rc = rg_infer_like(c, i, 0, err);
		else if (rg_infer_in(c, i))
			rc = rg_infer_type(c, i, RG_BIT(RG_I32), err);
	}
	return rc;
}

static int infer_mha(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_attention *s;
	struct rg_in_shapes in;
	struct rg_shape shape;
	struct rg_mha m;
	int64_t width;
	int rc = check_types(c, err);

	if (rc)
		return rc;
	rg_shapes_of_infer(c, &in);
	rc = rg_mha_resolve(c->node, &in, &m, err);
	if (rc)
		return rc;
	s = &m.size;
	if (__builtin_mul_overflow(s->q_heads, s->v_head, &width))
		return rg_infer_fail(c, err, "the output is too large");
	shape = rg_shape_of(3, (const int64_t[]){ s->batch, s->q_seq, width });
	rg_infer_out(c, 0, c->in[0]->dtype, &shape);
	if (is_attention(c->node)) {
		if (s->head != s->v_head && c->node->n_out > 1 && c->node->out[1] >= 0)
			return rg_infer_fail(c, err, "present needs heads of K and V of one size");
		shape = rg_shape_of(5, (const int64_t[]){ 2, s->batch, s->q_heads, s->total, s->head });
		rg_infer_out(c, 1, c->in[0]->dtype, &shape);
		return 0;
	}
	shape = rg_shape_of(4, (const int64_t[]){ s->batch, s->q_heads, s->total, s->head });
	rg_infer_out(c, 1, c->in[0]->dtype, &shape);
	shape.dim[3] = s->v_head;
	rg_infer_out(c, 2, c->in[0]->dtype, &shape);
	shape = rg_shape_of(4, (const int64_t[]){ s->batch, s->q_heads, s->q_seq, s->total });
	rg_infer_out(c, 3, c->in[0]->dtype, &shape);
	return 0;
}

static void cost_mha(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_attention_work w = { .window = -1 };
	struct rg_in_shapes in;
	struct rg_mha m;
	int64_t columns, tokens;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_mha_resolve(c->node, &in, &m, &err))
		return;
	w.causal = m.causal;
	w.mask = m.mask != RG_MHA_NO_MASK || m.has_attention_bias;
	rg_attention_cost(&m.size, &w, out);
	columns = rg_cost_mul(m.size.q_heads, rg_cost_add(2 * m.size.head, m.size.v_head));
	tokens = rg_cost_mul(m.size.batch, m.size.q_seq);
	if (m.layout == RG_MHA_PROJECTED)
		out->flops = rg_cost_add(out->flops, rg_cost_mul(rg_cost_mul(tokens, columns),
								 rg_cost_add(rg_cost_mul(2, m.input), m.has_bias)));
	else if (m.has_bias) /* rows of K and V as many as kv_seq */
		out->flops = rg_cost_add(out->flops, rg_cost_mul(
			rg_cost_mul(m.size.batch, m.size.q_heads),
			rg_cost_add(rg_cost_mul(m.size.q_seq, m.size.head),
				    rg_cost_mul(m.size.kv_seq, rg_cost_add(m.size.head, m.size.v_head)))));
}

const struct rg_op rg_ops_mha[] = {
	{ "com.microsoft", "Attention", RG_KIND_ATTENTION, 0, 2, 7, 1, 2, { 1 }, 1, 1, infer_mha, cost_mha },
	{ "com.microsoft", "MultiHeadAttention", RG_KIND_ATTENTION, 0, 1, 10, 1, 4, { 1 }, 1, 1, infer_mha, cost_mha },
};
RG_OP_FAMILY_END(mha);
