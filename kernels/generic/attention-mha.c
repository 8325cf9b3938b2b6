/*
 * Attention and MultiHeadAttention of ONNX Runtime on attend.h, float32. What the
 * reference says about masks of nothing but padding and about the last row of a
 * causal mask holds here too. Attention's projection of Q, K and V is one product
 * (multiply.h), its weights packed at plan time when they are constant.
 *
 * The output of the scores (qk) is left to the reference.
 */
#include "graph/op-mha.h"

#include <math.h>

#include "graph/contrib.h"
#include "graph/op-types.h"
#include "kernels/generic/attend.h"
#include "kernels/tables.h"

struct mask_ctx {
	struct rg_mha m;
	const int32_t *mask;
	const float *bias;   /* added to the scores; NULL: none */
	float filter;        /* what a masked key gets added */
};

static const struct rg_tensor *input(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static void *wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED ? c->out[i].data : NULL;
}

/* ---- masks ---- */

static void range(const struct rg_attend *a, int64_t b, int64_t i, int64_t *from, int64_t *to)
{
	const struct rg_attention *s = &a->plan.size;

	(void)b;
	*from = 0;
	*to = i == s->q_seq - 1 || s->past + i + 1 > s->total ? s->total : s->past + i + 1;
}

static void add_mask(const struct rg_attend *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     float *restrict scores)
{
	const struct mask_ctx *x = a->ctx;
	const struct rg_attention *s = &x->m.size;
	const int32_t *restrict keep = x->mask;
	int64_t heads = x->m.bias_head ? s->q_heads : 1, row;
	float filter = x->filter;

	switch (x->m.mask) {
	case RG_MHA_LENGTHS:
	case RG_MHA_END_START:
		for (int64_t j = from; j < to; j++)
			if (j >= keep[b] || (x->m.mask == RG_MHA_END_START && j < keep[s->batch + b]))
				scores[j - from] += filter;
		break;
	case RG_MHA_KEYS:
	case RG_MHA_ROWS:
	case RG_MHA_SQUARE:
		keep += from + (x->m.mask == RG_MHA_KEYS ? b * s->total
				: x->m.mask == RG_MHA_ROWS
					? (b * s->q_seq + i) * s->total
					: (b * x->m.mask_width + s->past + i) * x->m.mask_width);
		for (int64_t j = 0; j < to - from; j++)
			scores[j] += keep[j] > 0 ? 0 : filter;
		break;
	default:
		break;
	}
	if (!x->bias)
		return;
	row = ((x->m.bias_batch ? b : 0) * heads + (x->m.bias_head ? h : 0)) * s->q_seq + i;
	for (int64_t j = 0; j < to - from; j++)
		scores[j] += x->bias[row * s->total + from + j];
}

/* ---- planning ---- */

static bool resolve(const struct rg_call *c, struct rg_mha *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;

	rg_shapes_of_tensors(c->node, c->in, &in);
	return rg_mha_resolve(c->node, &in, m, &err) == 0;
}

static int64_t columns_of(const struct rg_mha *m)
{
	return m->size.q_heads * (2 * m->size.head + m->size.v_head);
}

/* The projection; strides only. */
static bool plan_projection(const struct rg_mha *m, bool packed, int lanes, struct rg_multiply *mul)
{
	int64_t columns = columns_of(m);

	mul->a = (struct rg_matrix){ .row = m->input, .col = 1 };
	mul->b = (struct rg_matrix){ .row = columns, .col = 1 };
	mul->c_row = columns;
	return rg_multiply_plan_make(&mul->plan, m->size.batch * m->size.q_seq, columns, m->input, 1, &mul->a,
				     false, &mul->b, packed, lanes);
}

/* Floats of Q, K and V where they are made here; -1 when that overflows. */
static int64_t made_floats(const struct rg_mha *m)
{
	const struct rg_attention *s = &m->size;
	int64_t rows = rg_cost_mul(s->batch, s->q_heads), n;

	if (m->layout != RG_MHA_PROJECTED && !m->has_bias)
		return 0;
	n = rg_cost_mul(rows, rg_cost_add(rg_cost_mul(s->q_seq, s->head),
					  rg_cost_mul(s->kv_seq, rg_cost_add(s->head, s->v_head))));
	return n < 0 || n > INT64_MAX / 64 ? -1 : (n + 15) / 16 * 16;
}

static bool supports(const struct rg_call *c)
{
	struct rg_mha_inputs at = rg_mha_inputs(c->node);
	struct rg_attend_plan plan;
	struct rg_multiply mul;
	struct rg_mha m;

	for (int i = 0; i < c->node->n_in; i++)
		if (i != at.mask && input(c, i) && c->in[i].dtype != RG_F32)
			return false;
	if (!resolve(c, &m) || made_floats(&m) < 0 || !rg_attend_plan_make(&plan, &m.size, 1))
		return false;
	if (m.layout == RG_MHA_PROJECTED)
		return plan_projection(&m, c->in[1].data != NULL, 1, &mul);
	return c->node->n_out < 4 || c->out[3].dtype == RG_UNDEFINED;
}

/* Behind what was made, the product and the attention use the same memory, one after the other. */
static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_attend_plan plan;
	struct rg_multiply mul;
	size_t most, product = 0;
	struct rg_mha m;

	if (!resolve(c, &m) || made_floats(&m) < 0 || !rg_attend_plan_make(&plan, &m.size, lanes))
		return 0;
	most = rg_attend_scratch_bytes(&plan);
	if (m.layout == RG_MHA_PROJECTED && plan_projection(&m, c->in[1].data != NULL, lanes, &mul))
		product = rg_multiply_scratch_bytes(&mul.plan);
	return (size_t)made_floats(&m) * sizeof(float) + (product > most ? product : most);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rg_mha m;

	if (!c->in[1].data || !resolve(c, &m))
		return 0;
	return (size_t)rg_multiply_packed_b_floats(columns_of(&m), m.input) * sizeof(float);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct rg_matrix weights = { .data = c->in[1].data, .row = c->in[1].shape.dim[1], .col = 1 };
	int64_t columns = c->in[1].shape.dim[1];

	(void)err;
	rg_multiply_pack_b(&weights, columns, c->in[1].shape.dim[0], 0,
			   (columns + RG_TILE_COLS - 1) / RG_TILE_COLS, prepared);
	return 0;
}

/* ---- Q, K, V ---- */

/* Part `part` of heads whose parts stand one after the other. */
static struct rg_attend_rows part_of(const struct rg_tensor *t, const struct rg_attention *s, int64_t seq,
				     int parts, int part)
{
	struct rg_attend_rows r = rg_attend_heads_last(t->data, s->q_heads, seq, parts * s->head);

	r.data += part * s->head;
	return r;
}

static void find_rows(const struct rg_call *c, const struct rg_mha *m, struct rg_attend *a)
{
	const struct rg_attention *s = &m->size;

	if (m->layout == RG_MHA_PACKED_QKV) {
		a->q = part_of(&c->in[0], s, s->q_seq, 3, 0);
		a->k = part_of(&c->in[0], s, s->q_seq, 3, 1);
		a->v = part_of(&c->in[0], s, s->q_seq, 3, 2);
		return;
	}
	a->q = rg_attend_heads_last(c->in[0].data, s->q_heads, s->q_seq, s->head);
	if (m->layout == RG_MHA_PACKED_KV) {
		a->k = part_of(&c->in[1], s, s->kv_seq, 2, 0);
		a->v = part_of(&c->in[1], s, s->kv_seq, 2, 1);
		return;
	}
	a->k = rg_attend_rows_of(&c->in[1], s->q_heads, s->kv_seq, s->head);
	a->v = rg_attend_rows_of(&c->in[2], s->q_heads, s->kv_seq, s->v_head);
}

/* Q, K and V side by side in each row. */
static void project(const struct rg_call *c, const struct rg_mha *m, struct rg_attend *a, float *made,
		    void *scratch, const struct rg_par *par)
{
	const struct rg_attention *s = &m->size;
	int64_t width = s->q_heads * s->head, row = columns_of(m);
	struct rg_epilogue e = { .alpha = 1, .beta = 1, .bias_col = 1 };
	struct rg_multiply mul = { .c = made, .e = &e, .scratch = scratch };

	plan_projection(m, c->prepared != NULL, par->lanes, &mul);
	mul.a.data = c->in[0].data;
	mul.b.data = c->in[1].data;
	mul.b.packed = c->prepared;
	e.bias = m->has_bias ? c->in[2].data : NULL;
	rg_multiply_run(&mul, par);
	a->q = (struct rg_attend_rows){ made, s->q_seq * row, s->head, row };
	a->k = a->v = a->q;
	a->k.data = made + width;
	a->v.data = made + 2 * width;
	a->v.head = s->v_head;
}

struct bias_job {
	struct rg_attend_rows from, to;
	const float *bias;
	int64_t seq, heads, width;
};

/* Items are positions of all sequences. */
static void work_bias(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct bias_job *j = arg;

	(void)lane;
	for (int64_t i = begin; i < end; i++) {
		for (int64_t h = 0; h < j->heads; h++) {
			const float *restrict x = j->from.data + i / j->seq * j->from.batch +
						  h * j->from.head + i % j->seq * j->from.seq;
			const float *restrict bias = j->bias + h * j->width;
			float *restrict y = j->to.data + i / j->seq * j->to.batch + h * j->to.head +
					    i % j->seq * j->to.seq;

			for (int64_t d = 0; d < j->width; d++)
				y[d] = x[d] + bias[d];
		}
	}
}

/* Q, K and V with their biases, one after the other. */
static void add_biases(const struct rg_call *c, const struct rg_mha *m, struct rg_attend *a, float *made,
		       const struct rg_par *par)
{
	struct rg_attend_rows *rows[3] = { &a->q, &a->k, &a->v };
	const struct rg_attention *s = &m->size;
	const float *bias = c->in[3].data;

	for (int i = 0; i < 3; i++) {
		struct bias_job j = {
			.from = *rows[i], .bias = bias, .seq = i ? s->kv_seq : s->q_seq, .heads = s->q_heads,
			.width = i == 2 ? s->v_head : s->head,
		};
		int64_t width = j.heads * j.width;

		j.to = rg_attend_heads_last(made, j.heads, j.seq, j.width);
		par->run(par, s->batch * j.seq, rg_grain(width), work_bias, &j);
		*rows[i] = j.to;
		made += s->batch * j.seq * width;
		bias += width;
	}
}

/* ---- past and present ---- */

static void find_past(const struct rg_call *c, const struct rg_mha *m, struct rg_attend *a)
{
	bool projected = m->layout == RG_MHA_PROJECTED;
	const struct rg_attention *s = &m->size;

	if (!m->has_past)
		return;
	a->k_past = rg_attend_heads_first(c->in[projected ? 4 : 6].data, s->q_heads, s->past, s->head);
	a->v_past = rg_attend_heads_first(c->in[projected ? 4 : 7].data, s->q_heads, s->past, s->v_head);
	if (projected)
		a->v_past.data += s->batch * s->q_heads * s->past * s->head;
}

static void write_presents(const struct rg_call *c, const struct rg_mha *m, const struct rg_attend *a,
			   const struct rg_par *par)
{
	bool projected = m->layout == RG_MHA_PROJECTED;
	const struct rg_attention *s = &m->size;

	for (int i = 0; i < 2; i++) {
		int64_t width = i ? s->v_head : s->head;
		float *to = wanted(c, i && !projected ? 2 : 1);
		struct rg_attend_copies copies = {
			.from = i ? a->v_past : a->k_past,
			.then = i ? a->v : a->k,
			.batch = s->batch,
			.heads = s->q_heads,
			.from_seq = s->past,
			.then_seq = s->kv_seq,
			.width = width,
		};

		if (!to)
			continue;
		if (i && projected)
			to += s->batch * s->q_heads * s->total * s->head;
		copies.to = rg_attend_heads_first(to, s->q_heads, s->total, width);
		rg_attend_copy(&copies, par);
	}
}

/* ---- the whole ---- */

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_mha_inputs at = rg_mha_inputs(c->node);
	const struct rg_tensor *mask = input(c, at.mask), *bias = input(c, at.attention_bias);
	struct mask_ctx x = { .mask = mask ? mask->data : NULL, .bias = bias ? bias->data : NULL };
	struct rg_attend a = { .ctx = &x };
	const struct rg_attention *s = &x.m.size;
	float *made = c->scratch;

	if (!resolve(c, &x.m) || !rg_attend_plan_make(&a.plan, s, par->lanes))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	x.filter = rg_node_float(c->node, "mask_filter_value", -10000);
	a.scale = rg_node_float(c->node, "scale", 0);
	if (a.scale == 0)
		a.scale = (float)(1 / sqrt((double)s->head));
	if (x.m.causal)
		a.range = range;
	if (x.m.mask != RG_MHA_NO_MASK || x.bias)
		a.mask = add_mask;
	a.scratch = made + made_floats(&x.m);
	if (x.m.layout == RG_MHA_PROJECTED)
		project(c, &x.m, &a, made, a.scratch, par);
	else
		find_rows(c, &x.m, &a);
	if (x.m.layout != RG_MHA_PROJECTED && x.m.has_bias)
		add_biases(c, &x.m, &a, made, par);
	find_past(c, &x.m, &a);
	write_presents(c, &x.m, &a, par);
	a.y = rg_attend_heads_last(c->out[0].data, s->q_heads, s->q_seq, s->v_head);
	rg_attend_run(&a, par);
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Attention",
	  .domain = RG_CONTRIB_DOMAIN,
	  .name = RG_LEVEL_NAME("blocks"),
	  .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK,
	  .supports = supports,
	  .scratch_bytes = scratch_bytes,
	  .prepared_bytes = prepared_bytes,
	  .prepare = prepare,
	  .packs = 1u << 1,
	  .run = run },
	{ .op_type = "MultiHeadAttention",
	  .domain = RG_CONTRIB_DOMAIN,
	  .name = RG_LEVEL_NAME("blocks"),
	  .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK,
	  .supports = supports,
	  .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(attention_mha), kernels);
