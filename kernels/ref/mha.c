/*
 * Attention and MultiHeadAttention of ONNX Runtime. Projections, and queries,
 * keys and values with a bias added, are made first, in double.
 *
 * Two things are as the runtime does them, because a model meets them: where
 * all keys of a row are padding, each has mask_filter_value added, and at -10000
 * a float32 keeps three decimals, which decides the row; and the last row of a
 * causal mask sees every key, also when there are more keys than queries.
 */
#include <math.h>
#include <string.h>

#include "graph/op-mha.h"
#include "kernels/ref/attention.h"
#include "kernels/tables.h"

struct mask_ctx {
	struct rg_mha m;
	const struct rg_tensor *bias; /* added to the scores; NULL: none */
	const int32_t *mask;
	double filter;                /* what a masked key gets added */
};

/* Whether the padding mask leaves key j to row i. */
static bool is_kept(const struct mask_ctx *x, int64_t b, int64_t i, int64_t j)
{
	const struct rg_attention *s = &x->m.size;

	switch (x->m.mask) {
	case RG_MHA_LENGTHS:
		return j < x->mask[b];
	case RG_MHA_END_START:
		return j < x->mask[b] && j >= x->mask[s->batch + b];
	case RG_MHA_KEYS:
		return x->mask[b * s->total + j] > 0;
	case RG_MHA_ROWS:
		return x->mask[(b * s->q_seq + i) * s->total + j] > 0;
	case RG_MHA_SQUARE:
		return x->mask[(b * x->m.mask_width + s->past + i) * x->m.mask_width + j] > 0;
	default:
		return true;
	}
}

static void add_mask(const struct rg_attn *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     double *scores)
{
	const struct mask_ctx *x = a->ctx;
	const struct rg_attention *s = &x->m.size;
	int64_t heads = x->m.bias_head ? s->q_heads : 1, row;

	row = ((x->m.bias_batch ? b : 0) * heads + (x->m.bias_head ? h : 0)) * s->q_seq + i;
	for (int64_t j = from; j < to; j++) {
		if (!is_kept(x, b, i, j))
			scores[j] = (double)(float)(scores[j] + x->filter);
		if (x->bias)
			scores[j] += rg_ref_get(x->bias, row * s->total + j);
		if (x->m.causal && j > s->past + i && i < s->q_seq - 1)
			scores[j] = -HUGE_VAL;
	}
}

/* ---- Q, K, V ---- */

/* One of the three, batch x seq x (heads * width), in double. */
struct made {
	struct rg_tensor t;
	int64_t width, column; /* of all heads; the first in weights and bias */
};

static void make_tensors(const struct rg_mha *m, void *memory, struct made out[3])
{
	const struct rg_attention *s = &m->size;
	const int64_t width[3] = { s->q_heads * s->head, s->q_heads * s->head, s->q_heads * s->v_head };
	double *p = memory;

	for (int i = 0; i < 3; i++) {
		int64_t seq = i == 0 ? s->q_seq : s->kv_seq;

		out[i].t = (struct rg_tensor){ .dtype = RG_F64, .data = p,
					       .shape = rg_shape_of(3, (const int64_t[]){ s->batch, seq, width[i] }) };
		out[i].width = width[i];
		out[i].column = i == 0 ? 0 : out[i - 1].column + width[i - 1];
		p += s->batch * seq * width[i];
	}
}

/* Elements of the three; -1 when that overflows. */
static int64_t made_count(const struct rg_mha *m)
{
	const struct rg_attention *s = &m->size;
	int64_t rows = rg_cost_mul(s->batch, s->q_heads);
	int64_t q = rg_cost_mul(s->q_seq, s->head), kv = rg_cost_mul(s->kv_seq, rg_cost_add(s->head, s->v_head));

	return rg_cost_mul(rows, rg_cost_add(q, kv));
}

/* y = input times weights, of the columns of one of the three, plus bias. */
static void project(const struct rg_call *c, const struct rg_mha *m, const struct made *y)
{
	const struct rg_tensor *bias = rg_attn_in(c, 2);
	int64_t rows = m->size.batch * m->size.q_seq, columns = c->in[1].shape.dim[1];
	double *out = y->t.data, w[RG_REF_CHUNK], x;

	for (int64_t r = 0; r < rows; r++, out += y->width) {
		if (bias)
			rg_ref_load(bias, y->column, 1, y->width, out);
		else
			memset(out, 0, (size_t)y->width * sizeof(*out));
		for (int64_t k = 0; k < m->input; k++) {
			x = rg_ref_get(&c->in[0], r * m->input + k);
			for (int64_t i = 0, n; i < y->width; i += n) {
				n = y->width - i < RG_REF_CHUNK ? y->width - i : RG_REF_CHUNK;
				rg_ref_load(&c->in[1], k * columns + y->column + i, 1, n, w);
				for (int64_t j = 0; j < n; j++)
					out[i + j] += x * w[j];
			}
		}
	}
}

/* y = rows plus bias. */
static void add_bias(const struct rg_call *c, const struct rg_mha *m, const struct rg_attn_rows *rows,
		     const struct made *y)
{
	const struct rg_tensor *bias = &c->in[3];
	int64_t seq = y->t.shape.dim[1], size = y->width / m->size.q_heads;
	struct rg_attn_rows to = rg_attn_heads_last(&y->t, m->size.q_heads, seq, size);
	double *out = y->t.data;

	rg_attn_copy_rows(rows, &to, m->size.batch, m->size.q_heads, seq, size);
	for (int64_t r = 0; r < m->size.batch * seq; r++)
		for (int64_t i = 0; i < y->width; i++)
			*out++ += rg_ref_get(bias, y->column + i);
}

/* Rows of one of `parts` tensors that are interleaved head by head. */
static struct rg_attn_rows packed_rows(const struct rg_tensor *t, const struct rg_attention *s, int64_t seq, int parts,
				       int part)
{
	struct rg_attn_rows r = rg_attn_heads_last(t, s->q_heads, seq, parts * s->head);

	r.first = part * s->head;
	return r;
}

static void find_rows(const struct rg_call *c, const struct rg_mha *m, struct rg_attn *a)
{
	const struct rg_attention *s = &m->size;

	switch (m->layout) {
	case RG_MHA_PACKED_QKV:
		a->q = packed_rows(&c->in[0], s, s->q_seq, 3, 0);
		a->k = packed_rows(&c->in[0], s, s->q_seq, 3, 1);
		a->v = packed_rows(&c->in[0], s, s->q_seq, 3, 2);
		break;
	case RG_MHA_PACKED_KV:
		a->q = rg_attn_heads_last(&c->in[0], s->q_heads, s->q_seq, s->head);
		a->k = packed_rows(&c->in[1], s, s->kv_seq, 2, 0);
		a->v = packed_rows(&c->in[1], s, s->kv_seq, 2, 1);
		break;
	default:
		a->q = rg_attn_heads_last(&c->in[0], s->q_heads, s->q_seq, s->head);
		a->k = rg_attn_rows_of(&c->in[1], s->q_heads, s->kv_seq, s->head);
		a->v = rg_attn_rows_of(&c->in[2], s->q_heads, s->kv_seq, s->v_head);
		break;
	}
}

static void prepare_rows(const struct rg_call *c, const struct rg_mha *m, void *memory, struct made made[3],
			 struct rg_attn *a)
{
	struct rg_attn_rows *rows[3] = { &a->q, &a->k, &a->v };

	if (m->layout != RG_MHA_PROJECTED)
		find_rows(c, m, a);
	if (m->layout != RG_MHA_PROJECTED && !m->has_bias)
		return;
	make_tensors(m, memory, made);
	for (int i = 0; i < 3; i++) {
		int64_t size = made[i].width / m->size.q_heads;

		if (m->layout == RG_MHA_PROJECTED)
			project(c, m, &made[i]);
		else
			add_bias(c, m, rows[i], &made[i]);
		*rows[i] = rg_attn_heads_last(&made[i].t, m->size.q_heads, made[i].t.shape.dim[1], size);
	}
}

/* ---- past and present ---- */

static void write_present(const struct rg_attn *a, const struct rg_attn_rows *past, const struct rg_attn_rows *now,
			  struct rg_attn_rows to, int64_t width)
{
	const struct rg_attention *s = &a->size;

	if (past->t)
		rg_attn_copy_rows(past, &to, s->batch, s->kv_heads, s->past, width);
	to.first += s->past * width;
	rg_attn_copy_rows(now, &to, s->batch, s->kv_heads, s->kv_seq, width);
}

static void find_past(const struct rg_call *c, const struct rg_mha *m, struct rg_attn *a)
{
	bool is_attention = m->layout == RG_MHA_PROJECTED;
	const struct rg_attention *s = &m->size;

	if (!m->has_past)
		return;
	a->k_past = rg_attn_heads_first(&c->in[is_attention ? 4 : 6], s->q_heads, s->past, s->head);
	a->v_past = rg_attn_heads_first(&c->in[is_attention ? 4 : 7], s->q_heads, s->past, s->v_head);
	if (is_attention)
		a->v_past.first = s->batch * s->q_heads * s->past * s->head;
}

static void write_presents(const struct rg_call *c, const struct rg_mha *m, const struct rg_attn *a)
{
	bool is_attention = m->layout == RG_MHA_PROJECTED;
	const struct rg_tensor *k = rg_attn_out(c, 1), *v = rg_attn_out(c, is_attention ? 1 : 2);
	const struct rg_attention *s = &m->size;
	struct rg_attn_rows to;

	if (k)
		write_present(a, &a->k_past, &a->k, rg_attn_heads_first(k, s->q_heads, s->total, s->head), s->head);
	if (!v)
		return;
	to = rg_attn_heads_first(v, s->q_heads, s->total, s->v_head);
	if (is_attention)
		to.first = s->batch * s->q_heads * s->total * s->head;
	write_present(a, &a->v_past, &a->v, to, s->v_head);
}

/* ---- the whole ---- */

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_mha_inputs at = rg_mha_inputs(c->node);
	const struct rg_tensor *mask = rg_attn_in(c, at.mask);
	struct mask_ctx x = { .mask = mask ? mask->data : NULL, .bias = rg_attn_in(c, at.attention_bias) };
	struct rg_attn a = { .mask = add_mask, .ctx = &x, .scratch = c->scratch };
	struct rg_in_shapes in;
	struct made made[3];
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_mha_resolve(c->node, &in, &x.m, err);
	if (rc)
		return rc;
	x.filter = (double)rg_node_float(c->node, "mask_filter_value", -10000);
	a.size = x.m.size;
	a.scale = (double)rg_node_float(c->node, "scale", 0);
	if (a.scale == 0)
		a.scale = 1 / sqrt((double)a.size.head);
	prepare_rows(c, &x.m, a.scratch + a.size.head + a.size.v_head + a.size.total, made, &a);
	find_past(c, &x.m, &a);
	write_presents(c, &x.m, &a);
	a.y = rg_attn_heads_last(&c->out[0], a.size.q_heads, a.size.q_seq, a.size.v_head);
	if (x.m.layout != RG_MHA_PROJECTED)
		a.qk = rg_attn_out(c, 3);
	a.qk_stage = RG_ATTN_MASKED;
	rg_attn_run(&a);
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_mha m;
	int64_t n = 0;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_mha_resolve(c->node, &in, &m, &err))
		return 0;
	if (m.layout == RG_MHA_PROJECTED || m.has_bias)
		n = made_count(&m);
	if (n < 0 || n > INT64_MAX / 16)
		return SIZE_MAX / 4;
	return rg_attn_scratch_bytes(&m.size) + (size_t)n * sizeof(double);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Attention", .domain = "com.microsoft", .name = "ref", .scratch_bytes = scratch_bytes, .run = run },
	{ .op_type = "MultiHeadAttention", .domain = "com.microsoft", .name = "ref", .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_mha, kernels);
