/*
 * Attention of the standard domain. The softmax is computed in double whatever
 * softmax_precision asks for.
 *
 * Where nonpad_kv_seqlen says how many keys there are, the queries are the last
 * of them: a causal row i then sees keys up to nonpad_kv_seqlen - q_seq + i. The
 * operator's text leaves that open; ONNX Runtime reads it so, and a decoder that
 * keeps its cache outside would see nothing but the first key otherwise.
 */
#include <math.h>
#include <string.h>

#include "kernels/ref/attention.h"
#include "kernels/tables.h"

struct mask_ctx {
	const struct rg_tensor *mask;    /* NULL: none */
	const int64_t *lengths;          /* nonpad_kv_seqlen */
	struct rg_attention_mask rows;
	bool causal;
};

/* What a mask adds: -inf where a bool one says no. */
static double mask_value(const struct mask_ctx *m, int64_t row, int64_t j)
{
	if (m->rows.one)
		j = 0;
	else if (j >= m->rows.length)
		return -HUGE_VAL;
	if (m->mask->dtype == RG_BOOL)
		return ((const uint8_t *)m->mask->data)[row + j] ? 0 : -HUGE_VAL;
	return rg_ref_get(m->mask, row + j);
}

static void add_mask(const struct rg_attn *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     double *scores)
{
	const struct mask_ctx *m = a->ctx;
	int64_t row = b * m->rows.batch + h * m->rows.head + i * m->rows.row;
	int64_t last = (m->lengths ? m->lengths[b] - a->size.q_seq : a->size.past) + i;

	for (int64_t j = from; j < to; j++) {
		if (m->mask)
			scores[j] += mask_value(m, row, j);
		if (m->causal && j > last)
			scores[j] += -HUGE_VAL;
		if (m->lengths && j >= m->lengths[b])
			scores[j] += -HUGE_VAL;
	}
}

/* present = past, then what is new. */
static void write_present(const struct rg_call *c, const struct rg_attention *a, int out, int width,
			  const struct rg_attn_rows *past, const struct rg_attn_rows *now)
{
	const struct rg_tensor *present = rg_attn_out(c, out);
	struct rg_attn_rows to;

	if (!present)
		return;
	to = rg_attn_heads_first(present, a->kv_heads, a->total, width);
	if (past->t)
		rg_attn_copy_rows(past, &to, a->batch, a->kv_heads, a->past, width);
	to.first += a->past * width;
	rg_attn_copy_rows(now, &to, a->batch, a->kv_heads, a->kv_seq, width);
}

static int resolve(const struct rg_call *c, struct rg_attn *a, struct mask_ctx *m, struct rg_error *err)
{
	const struct rg_tensor *lengths = rg_attn_in(c, 6);
	struct rg_attention *s = &a->size;
	struct rg_in_shapes in;
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_attention_resolve(c->node, &in, s, err);
	if (rc)
		return rc;
	m->mask = rg_attn_in(c, 3);
	m->causal = rg_node_int(c->node, "is_causal", 0) != 0;
	m->lengths = lengths ? lengths->data : NULL;
	if (m->mask)
		rc = rg_attention_mask(c->node, s, &m->mask->shape, &m->rows, err);
	for (int64_t b = 0; m->lengths && b < s->batch && !rc; b++)
		if (m->lengths[b] < 0 || m->lengths[b] > s->total)
			rc = rg_error_set(err, -EINVAL, "nonpad_kv_seqlen[%lld] is %lld; there are %lld keys",
					  (long long)b, (long long)m->lengths[b], (long long)s->total);
	return rc;
}

static int run_attention(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct mask_ctx m = { NULL };
	struct rg_attn a = { .mask = add_mask, .ctx = &m, .scratch = c->scratch };
	const struct rg_attention *s = &a.size;
	int rc = resolve(c, &a, &m, err);

	if (rc)
		return rc;
	a.q = rg_attn_rows_of(&c->in[0], s->q_heads, s->q_seq, s->head);
	a.k = rg_attn_rows_of(&c->in[1], s->kv_heads, s->kv_seq, s->head);
	a.v = rg_attn_rows_of(&c->in[2], s->kv_heads, s->kv_seq, s->v_head);
	a.y = rg_attn_rows_of(&c->out[0], s->q_heads, s->q_seq, s->v_head);
	if (rg_attn_in(c, 4)) {
		a.k_past = rg_attn_heads_first(&c->in[4], s->kv_heads, s->past, s->head);
		a.v_past = rg_attn_heads_first(&c->in[5], s->kv_heads, s->past, s->v_head);
	}
	a.scale = (double)rg_node_float(c->node, "scale", 0);
	if (!rg_node_attr(c->node, "scale"))
		a.scale = 1 / sqrt((double)s->head);
	a.softcap = (double)rg_node_float(c->node, "softcap", 0);
	a.qk = rg_attn_out(c, 3);
	a.qk_stage = (enum rg_attn_stage)rg_node_int(c->node, "qk_matmul_output_mode", 0);
	write_present(c, s, 1, (int)s->head, &a.k_past, &a.k);
	write_present(c, s, 2, (int)s->v_head, &a.v_past, &a.v);
	rg_attn_run(&a);
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_attention a;

	rg_shapes_of_tensors(c->node, c->in, &in);
	return rg_attention_resolve(c->node, &in, &a, &err) ? 0 : rg_attn_scratch_bytes(&a);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Attention", .domain = "", .name = "ref", .scratch_bytes = scratch_bytes, .run = run_attention },
};
RG_KERNEL_TABLE(rg_kernels_ref_attention, kernels);
