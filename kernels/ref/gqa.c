/*
 * GroupQueryAttention of ONNX Runtime, one sequence of the batch after the other,
 * because each has its own number of cached keys.
 *
 * seqlens_k[b] + 1 keys are in the cache after the step. The last of them are
 * new: as many as query_seqlens says, or all queries, or all keys if those are
 * fewer (a prompt that is padded on the right). What padding gives is not
 * specified; here it attends to all keys, and goes into the cache where
 * query_seqlens does not keep it out, as the runtime does. The rest of the cache
 * is 0.
 *
 * The first prompt is where the queries are all there is (total_sequence_length is
 * their number, and query_seqlens is absent): of position_ids only the first
 * element counts then, and the tokens of every sequence follow it.
 */
#include <math.h>
#include <string.h>

#include "graph/op-mha.h"
#include "kernels/ref/attention.h"
#include "kernels/tables.h"

struct gqa {
	const struct rg_call *c;
	struct rg_gqa g;
	int64_t keys, fresh;          /* of the sequence at hand: all, new ones */
	int64_t kept;                 /* rows that go into the cache, padding included */
	bool first_prompt;
	const struct rg_tensor *bias; /* NULL: none */
	double *angles;               /* rotary_dim: cosines, then sines */
	struct rg_tensor q, k;        /* rotated, in double: heads x seq x head */
};

static void range(const struct rg_attn *a, int64_t b, int64_t i, int64_t *from, int64_t *to)
{
	const struct gqa *x = a->ctx;
	int64_t seen = x->keys - x->fresh + i + 1;

	*from = 0;
	*to = x->g.causal && seen < x->keys ? seen : x->keys;
	if (x->g.window > 0 && seen > x->g.window)
		*from = seen - x->g.window;
}

static void add_bias(const struct rg_attn *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     double *scores)
{
	const struct gqa *x = a->ctx;
	const struct rg_shape *s;
	int64_t row;

	if (!x->bias)
		return;
	s = &x->bias->shape;
	row = ((s->dim[0] == 1 ? 0 : b) * s->dim[1] + (s->dim[1] == 1 ? 0 : h)) * s->dim[2] + i;
	for (int64_t j = from; j < to; j++)
		scores[j] += rg_ref_get(x->bias, row * s->dim[3] + j);
}

/* How many keys sequence b has, and how many of them are new. */
static int count_keys(struct gqa *x, int64_t b, int64_t total, struct rg_error *err)
{
	const int32_t *lens = x->c->in[RG_GQA_SEQLENS_K].data;
	const struct rg_tensor *valid = rg_attn_in(x->c, RG_GQA_QUERY_SEQLENS);
	const struct rg_attention *s = &x->g.size;

	x->keys = (int64_t)lens[b] + 1;
	if (x->keys < 1 || x->keys > total)
		return rg_error_set(err, -EINVAL, "seqlens_k[%lld] is %d; total_sequence_length is %lld", (long long)b,
				    lens[b], (long long)total);
	x->fresh = x->keys < s->q_seq ? x->keys : s->q_seq;
	if (valid) {
		int32_t n = ((const int32_t *)valid->data)[b];

		if (n < 0 || n > x->fresh)
			return rg_error_set(err, -EINVAL, "query_seqlens[%lld] is %d, at most %lld make sense", (long long)b, n,
					    (long long)x->fresh);
		x->fresh = n;
	}
	x->kept = valid ? x->fresh : s->q_seq;
	if (x->keys - x->fresh > s->past)
		return rg_error_set(err, -EINVAL, "sequence %lld has %lld keys before the %lld new ones; the cache has %lld",
				    (long long)b, (long long)(x->keys - x->fresh), (long long)x->fresh,
				    (long long)s->past);
	return 0;
}

/* ---- rotation ---- */

static int load_angles(const struct gqa *x, int64_t b, int64_t i, struct rg_error *err)
{
	const struct rg_tensor *ids = rg_attn_in(x->c, RG_GQA_POSITION_IDS);
	int64_t half = x->g.rotary_dim / 2, at = x->keys - x->fresh + i;

	if (ids && x->first_prompt)
		at = __builtin_add_overflow(((const int64_t *)ids->data)[0], i, &at) ? -1 : at;
	else if (ids)
		at = ((const int64_t *)ids->data)[b * x->g.size.q_seq + i];
	if (i >= x->fresh && at >= x->g.positions)
		at = x->g.positions - 1; /* padding may lie beyond */
	if (at < 0 || at >= x->g.positions)
		return rg_error_set(err, -EINVAL, "the position of token %lld of sequence %lld is %lld; the caches have %lld "
				    "rows", (long long)i, (long long)b, (long long)at, (long long)x->g.positions);
	rg_ref_load(&x->c->in[RG_GQA_COS], at * half, 1, half, x->angles);
	rg_ref_load(&x->c->in[RG_GQA_SIN], at * half, 1, half, x->angles + half);
	return 0;
}

/* Token i of all heads of one sequence, rotated into `to`. */
static void rotate_token(const struct gqa *x, const struct rg_attn_rows *from, const struct rg_tensor *to, int64_t b,
			 int64_t heads, int64_t i)
{
	const struct rg_attention *s = &x->g.size;

	for (int64_t h = 0; h < heads; h++) {
		double *row = (double *)to->data + (h * s->q_seq + i) * s->head;

		rg_ref_load(from->t, rg_attn_at(from, b, h, i), 1, s->head, row);
		rg_attn_rotate(row, x->angles, x->angles + x->g.rotary_dim / 2, x->g.rotary_dim, x->g.interleaved);
	}
}

/* a->q and a->k of sequence b: rotated where that is asked for. */
static int rotate(const struct gqa *x, const struct rg_attn *rows, int64_t b, struct rg_attn *a, struct rg_error *err)
{
	const struct rg_attention *s = &x->g.size;

	a->q = rows->q;
	a->k = rows->k;
	if (!x->g.rotary)
		return 0;
	for (int64_t i = 0; i < s->q_seq; i++) {
		int rc = load_angles(x, b, i, err);

		if (rc)
			return rc;
		rotate_token(x, &rows->q, &x->q, b, s->q_heads, i);
		rotate_token(x, &rows->k, &x->k, b, s->kv_heads, i);
	}
	a->q = rg_attn_heads_first(&x->q, s->q_heads, s->q_seq, s->head);
	a->k = rg_attn_heads_first(&x->k, s->kv_heads, s->q_seq, s->head);
	a->q.batch = a->k.batch = 0; /* there is one sequence at a time */
	return 0;
}

/* ---- the cache ---- */

static void write_present(const struct gqa *x, int out, int64_t b, const struct rg_attn_rows *past,
			  const struct rg_attn_rows *now)
{
	const struct rg_tensor *present = rg_attn_out(x->c, out);
	const struct rg_attention *s = &x->g.size;
	struct rg_attn_rows from = *past, to;
	int64_t length, first = x->keys - x->fresh, kept;
	size_t row;

	if (!present)
		return;
	length = present->shape.dim[2];
	kept = x->kept < length - first ? x->kept : length - first;
	row = (size_t)s->head * rg_dtype_bytes(present->dtype);
	to = rg_attn_heads_first(present, s->kv_heads, length, s->head);
	to.first = b * to.batch;
	memset((char *)present->data + (size_t)(b * s->kv_heads * length) * row, 0,
	       (size_t)(s->kv_heads * length) * row);
	from.first += b * from.batch;
	if (past->t)
		rg_attn_copy_rows(&from, &to, 1, s->kv_heads, first, s->head);
	from = *now;
	from.first += b * from.batch;
	to.first += first * s->head;
	rg_attn_copy_rows(&from, &to, 1, s->kv_heads, kept, s->head);
}

/* ---- the whole ---- */

/* Where queries, keys and values of all sequences lie, as they come. */
static void find_rows(const struct rg_call *c, const struct rg_gqa *g, struct rg_attn *rows)
{
	const struct rg_attention *s = &g->size;
	int64_t heads = s->q_heads + 2 * s->kv_heads;

	if (g->packed) {
		rows->q = rows->k = rows->v = rg_attn_heads_last(&c->in[RG_GQA_QUERY], heads, s->q_seq, s->head);
		rows->k.first = s->q_heads * s->head;
		rows->v.first = (s->q_heads + s->kv_heads) * s->head;
	} else {
		rows->q = rg_attn_heads_last(&c->in[RG_GQA_QUERY], s->q_heads, s->q_seq, s->head);
		rows->k = rg_attn_heads_last(&c->in[RG_GQA_KEY], s->kv_heads, s->q_seq, s->head);
		rows->v = rg_attn_heads_last(&c->in[RG_GQA_VALUE], s->kv_heads, s->q_seq, s->head);
	}
	if (rg_attn_in(c, RG_GQA_PAST_KEY)) {
		rows->k_past = rg_attn_heads_first(&c->in[RG_GQA_PAST_KEY], s->kv_heads, s->past, s->head);
		rows->v_past = rg_attn_heads_first(&c->in[RG_GQA_PAST_VALUE], s->kv_heads, s->past, s->head);
	}
}

static void set_options(const struct rg_call *c, struct rg_attn *a)
{
	static const enum rg_attn_stage stages[] = { RG_ATTN_NEVER, RG_ATTN_MASKED, RG_ATTN_PROBABILITIES };

	a->scale = (double)rg_node_float(c->node, "scale", 0);
	if (a->scale == 0)
		a->scale = 1 / sqrt((double)a->size.head);
	a->softcap = (double)rg_node_float(c->node, "softcap", 0);
	a->sink = rg_attn_in(c, RG_GQA_HEAD_SINK);
	a->has_sink = a->sink || rg_node_int(c->node, "smooth_softmax", 0) == 1;
	a->qk = rg_attn_out(c, 3);
	a->qk_stage = stages[rg_node_int(c->node, "qk_output", 0)];
}

/* Scratch behind what the core needs: angles, q, k. */
static int64_t extra_count(const struct rg_gqa *g)
{
	int64_t heads = rg_cost_mul(g->size.q_seq, rg_cost_add(g->size.q_heads, g->size.kv_heads));

	return g->rotary ? rg_cost_add(g->rotary_dim, rg_cost_mul(heads, g->size.head)) : 0;
}

static void place_scratch(struct gqa *x, double *p)
{
	const struct rg_attention *s = &x->g.size;

	x->angles = p;
	x->q = (struct rg_tensor){ .dtype = RG_F64, .data = p + x->g.rotary_dim };
	x->k = (struct rg_tensor){ .dtype = RG_F64, .data = (double *)x->q.data + s->q_heads * s->q_seq * s->head };
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct gqa x = { .c = c, .bias = rg_attn_in(c, RG_GQA_BIAS) };
	struct rg_attn a = { .range = range, .mask = add_bias, .ctx = &x, .scratch = c->scratch }, rows = { 0 };
	int64_t total = *(const int32_t *)c->in[RG_GQA_TOTAL].data;
	struct rg_in_shapes in;
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_gqa_resolve(c->node, &in, &x.g, err);
	if (rc)
		return rc;
	find_rows(c, &x.g, &rows);
	a.size = x.g.size;
	a.size.total = total;
	x.first_prompt = total == a.size.q_seq && !rg_attn_in(c, RG_GQA_QUERY_SEQLENS);
	set_options(c, &a);
	place_scratch(&x, a.scratch + a.size.head + a.size.v_head + total);
	a.v = rows.v;
	a.k_past = rows.k_past;
	a.v_past = rows.v_past;
	a.y = rg_attn_heads_last(&c->out[0], a.size.q_heads, a.size.q_seq, a.size.head);
	for (int64_t b = 0; b < a.size.batch; b++) {
		rc = count_keys(&x, b, total, err);
		if (!rc)
			rc = rotate(&x, &rows, b, &a, err);
		if (rc)
			return rc;
		a.size.past = x.keys - x.fresh;
		write_present(&x, 1, b, &a.k_past, &a.k);
		write_present(&x, 2, b, &a.v_past, &a.v);
		rg_attn_run_batch(&a, b);
	}
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_gqa g;
	int64_t n;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_gqa_resolve(c->node, &in, &g, &err) || !c->in[RG_GQA_TOTAL].data)
		return 0;
	g.size.total = *(const int32_t *)c->in[RG_GQA_TOTAL].data;
	n = extra_count(&g);
	if (n < 0 || n > INT64_MAX / 16)
		return SIZE_MAX / 4;
	return rg_attn_scratch_bytes(&g.size) + (size_t)n * sizeof(double);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "GroupQueryAttention", .domain = "com.microsoft", .name = "ref", .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(rg_kernels_ref_gqa, kernels);
