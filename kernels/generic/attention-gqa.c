/*
 * GroupQueryAttention of ONNX Runtime on attend.h, float32. Which keys a sequence
 * has, and what padding gives, is as the reference has it; the output of the scores
 * (qk) is left to it.
 *
 * Queries and keys are rotated once into scratch; then caches are copied and
 * attention runs.
 */
#include "graph/op-mha.h"

#include <math.h>

#include "graph/contrib.h"
#include "graph/op-types.h"
#include "kernels/generic/attend.h"
#include "kernels/tables.h"

struct gqa {
	struct rg_gqa g;
	const int32_t *lens, *valid; /* seqlens_k; query_seqlens, NULL: none */
	const int64_t *ids;          /* position_ids; NULL: none */
	bool first_prompt;           /* of which only the first counts */
	const float *cosines, *sines;
	const struct rg_tensor *bias;
	struct rg_attend_rows q, k;  /* as they come */
	struct rg_attend a;
};

static const struct rg_tensor *input(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static void *data_of(const struct rg_call *c, int i)
{
	return input(c, i) ? c->in[i].data : NULL;
}

/* ---- keys of a sequence ---- */

static int64_t keys_of(const struct gqa *x, int64_t b)
{
	return (int64_t)x->lens[b] + 1;
}

/* New ones among them. */
static int64_t fresh_of(const struct gqa *x, int64_t b)
{
	return x->valid ? x->valid[b] : rg_min(keys_of(x, b), x->g.size.q_seq);
}

static int64_t past_of(const struct rg_attend *a, int64_t b)
{
	const struct gqa *x = a->ctx;

	return keys_of(x, b) - fresh_of(x, b);
}

static void range(const struct rg_attend *a, int64_t b, int64_t i, int64_t *from, int64_t *to)
{
	const struct gqa *x = a->ctx;
	int64_t keys = keys_of(x, b), seen = past_of(a, b) + i + 1;

	*from = x->g.window > 0 && seen > x->g.window ? seen - x->g.window : 0;
	*to = x->g.causal ? rg_min(seen, keys) : keys;
}

static void add_bias(const struct rg_attend *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     float *restrict scores)
{
	const struct gqa *x = a->ctx;
	const struct rg_shape *s = &x->bias->shape;
	int64_t row = ((s->dim[0] == 1 ? 0 : b) * s->dim[1] + (s->dim[1] == 1 ? 0 : h)) * s->dim[2] + i;
	const float *restrict bias = (const float *)x->bias->data + row * s->dim[3] + from;

	for (int64_t j = 0; j < to - from; j++)
		scores[j] += bias[j];
}

static int check_sequence(const struct gqa *x, int64_t b, struct rg_error *err)
{
	const struct rg_attention *s = &x->g.size;
	int64_t keys = keys_of(x, b), fresh, past;

	if (keys < 1 || keys > x->a.plan.size.total)
		return rg_error_set(err, -EINVAL, "seqlens_k[%lld] is %d; total_sequence_length is %lld",
				    (long long)b, x->lens[b], (long long)x->a.plan.size.total);
	fresh = fresh_of(x, b);
	past = keys - fresh;
	if (fresh < 0 || fresh > rg_min(keys, s->q_seq))
		return rg_error_set(err, -EINVAL, "query_seqlens[%lld] is %lld, at most %lld make sense",
				    (long long)b, (long long)fresh, (long long)rg_min(keys, s->q_seq));
	if (past > s->past)
		return rg_error_set(
			err, -EINVAL,
			"sequence %lld has %lld keys before the %lld new ones; the cache has %lld",
			(long long)b, (long long)past, (long long)fresh, (long long)s->past);
	return 0;
}

/* ---- rotation ---- */

/* The row of the caches of angles for token i; what padding has may lie beyond. */
static int64_t position(const struct gqa *x, int64_t b, int64_t i)
{
	int64_t at = x->ids && !x->first_prompt ? x->ids[b * x->g.size.q_seq + i] : past_of(&x->a, b) + i;

	if (x->ids && x->first_prompt && __builtin_add_overflow(x->ids[0], i, &at))
		return -1;
	return i >= fresh_of(x, b) && at >= x->g.positions ? x->g.positions - 1 : at;
}

static int check_positions(const struct gqa *x, int64_t b, struct rg_error *err)
{
	for (int64_t i = 0; i < x->g.size.q_seq && x->g.rotary; i++) {
		int64_t at = position(x, b, i);

		if (at < 0 || at >= x->g.positions)
			return rg_error_set(err, -EINVAL,
					    "the position of token %lld of sequence %lld is %lld; the caches "
					    "have %lld rows",
					    (long long)i, (long long)b, (long long)at,
					    (long long)x->g.positions);
	}
	return 0;
}

static void rotate_row(const struct gqa *x, const float *restrict from, float *restrict to, int64_t at)
{
	int64_t half = x->g.rotary_dim / 2;
	const float *restrict c = x->cosines + at * half, *restrict s = x->sines + at * half;

	if (x->g.interleaved) {
		for (int64_t j = 0; j < half; j++) {
			to[2 * j] = from[2 * j] * c[j] - from[2 * j + 1] * s[j];
			to[2 * j + 1] = from[2 * j] * s[j] + from[2 * j + 1] * c[j];
		}
	} else {
		for (int64_t j = 0; j < half; j++) {
			to[j] = from[j] * c[j] - from[j + half] * s[j];
			to[j + half] = from[j] * s[j] + from[j + half] * c[j];
		}
	}
	for (int64_t j = 2 * half; j < x->g.size.head; j++)
		to[j] = from[j];
}

/* Items are tokens of all sequences. */
static void work_rotate(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct gqa *x = arg;
	const struct rg_attention *s = &x->g.size;

	(void)lane;
	for (int64_t item = begin; item < end; item++) {
		int64_t b = item / s->q_seq, i = item % s->q_seq, at = position(x, b, i);

		for (int64_t h = 0; h < s->q_heads + s->kv_heads; h++) {
			bool is_key = h >= s->q_heads;
			int64_t head = is_key ? h - s->q_heads : h;
			const struct rg_attend_rows *from = is_key ? &x->k : &x->q,
						    *to = is_key ? &x->a.k : &x->a.q;

			rotate_row(x, from->data + b * from->batch + head * from->head + i * from->seq,
				   to->data + b * to->batch + head * to->head + i * to->seq, at);
		}
	}
}

static void rotate(struct gqa *x, float *room, const struct rg_par *par)
{
	const struct rg_attention *s = &x->g.size;
	int64_t heads = s->q_heads + s->kv_heads;

	x->a.q = rg_attend_heads_first(room, s->q_heads, s->q_seq, s->head);
	x->a.k = rg_attend_heads_first(room + s->batch * s->q_heads * s->q_seq * s->head, s->kv_heads,
				       s->q_seq, s->head);
	par->run(par, s->batch * s->q_seq, rg_grain(2 * heads * s->head), work_rotate, x);
}

/* ---- the cache ---- */

struct cache_job {
	const struct gqa *x;
	const struct rg_attend_rows *past, *now;
	float *present;
	int64_t length;
};

/* Items are heads of all sequences: what was there, what is new, and 0. */
static void work_cache(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct cache_job *j = arg;
	const struct rg_attention *s = &j->x->g.size;
	size_t row = (size_t)s->head * sizeof(float);

	(void)lane;
	for (int64_t i = begin; i < end; i++) {
		int64_t b = i / s->kv_heads, h = i % s->kv_heads, first = past_of(&j->x->a, b);
		int64_t kept = rg_min(j->x->valid ? fresh_of(j->x, b) : s->q_seq, j->length - first);
		float *to = j->present + i * j->length * s->head;

		if (first > 0)
			memcpy(to, j->past->data + b * j->past->batch + h * j->past->head,
			       (size_t)first * row);
		to += first * s->head;
		for (int64_t r = 0; r < kept; r++, to += s->head)
			memcpy(to, j->now->data + b * j->now->batch + h * j->now->head + r * j->now->seq,
			       row);
		memset(to, 0, (size_t)(j->length - first - kept) * row);
	}
}

static void write_present(const struct gqa *x, const struct rg_tensor *present,
			  const struct rg_attend_rows *past, const struct rg_attend_rows *now,
			  const struct rg_par *par)
{
	struct cache_job j = { x, past, now, present->data, present->shape.dim[2] };

	if (present->dtype != RG_UNDEFINED && present->data)
		par->run(par, x->g.size.batch * x->g.size.kv_heads,
			 rg_grain(j.length * x->g.size.head / 2 + 16), work_cache, &j);
}

/* ---- the whole ---- */

static bool resolve(const struct rg_call *c, int lanes, struct rg_gqa *g, struct rg_attend_plan *plan)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_attention size;
	struct rg_in_shapes in;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_gqa_resolve(c->node, &in, g, &err) || !c->in[RG_GQA_TOTAL].data)
		return false;
	size = g->size;
	size.total = *(const int32_t *)c->in[RG_GQA_TOTAL].data;
	return rg_attend_plan_make(plan, &size, lanes);
}

/* Floats of rotated queries and keys; -1 when that overflows. */
static int64_t rotated_floats(const struct rg_gqa *g)
{
	int64_t heads = rg_cost_mul(g->size.batch, rg_cost_add(g->size.q_heads, g->size.kv_heads));
	int64_t n = g->rotary ? rg_cost_mul(rg_cost_mul(heads, g->size.q_seq), g->size.head) : 0;

	return n < 0 || n > INT64_MAX / 64 ? -1 : (n + 15) / 16 * 16;
}

static bool supports(const struct rg_call *c)
{
	static const int floats[] = { RG_GQA_QUERY,    RG_GQA_KEY,        RG_GQA_VALUE,
				      RG_GQA_PAST_KEY, RG_GQA_PAST_VALUE, RG_GQA_COS,
				      RG_GQA_SIN,      RG_GQA_BIAS,       RG_GQA_HEAD_SINK };
	struct rg_attend_plan plan;
	struct rg_gqa g;

	for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
		if (input(c, floats[i]) && c->in[floats[i]].dtype != RG_F32)
			return false;
	if (c->node->n_out > 3 && c->out[3].dtype != RG_UNDEFINED)
		return false;
	return resolve(c, 1, &g, &plan) && rotated_floats(&g) >= 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_attend_plan plan;
	struct rg_gqa g;

	if (!resolve(c, lanes, &g, &plan) || rotated_floats(&g) < 0)
		return 0;
	return (size_t)rotated_floats(&g) * sizeof(float) + rg_attend_scratch_bytes(&plan);
}

static void find_rows(const struct rg_call *c, struct gqa *x)
{
	const struct rg_attention *s = &x->g.size;
	int64_t heads = s->q_heads + 2 * s->kv_heads;

	if (x->g.packed) {
		x->q = x->k = x->a.v =
			rg_attend_heads_last(c->in[RG_GQA_QUERY].data, heads, s->q_seq, s->head);
		x->k.data += s->q_heads * s->head;
		x->a.v.data += (s->q_heads + s->kv_heads) * s->head;
	} else {
		x->q = rg_attend_heads_last(c->in[RG_GQA_QUERY].data, s->q_heads, s->q_seq, s->head);
		x->k = rg_attend_heads_last(c->in[RG_GQA_KEY].data, s->kv_heads, s->q_seq, s->head);
		x->a.v = rg_attend_heads_last(c->in[RG_GQA_VALUE].data, s->kv_heads, s->q_seq, s->head);
	}
	x->a.q = x->q;
	x->a.k = x->k;
	if (input(c, RG_GQA_PAST_KEY)) {
		x->a.k_past =
			rg_attend_heads_first(c->in[RG_GQA_PAST_KEY].data, s->kv_heads, s->past, s->head);
		x->a.v_past =
			rg_attend_heads_first(c->in[RG_GQA_PAST_VALUE].data, s->kv_heads, s->past, s->head);
	}
	x->a.y = rg_attend_heads_last(c->out[0].data, s->q_heads, s->q_seq, s->head);
}

static void set_options(const struct rg_call *c, struct gqa *x)
{
	struct rg_attend *a = &x->a;

	a->scale = rg_node_float(c->node, "scale", 0);
	if (a->scale == 0)
		a->scale = (float)(1 / sqrt((double)x->g.size.head));
	a->softcap = rg_node_float(c->node, "softcap", 0);
	a->sink = data_of(c, RG_GQA_HEAD_SINK);
	a->has_sink = a->sink || rg_node_int(c->node, "smooth_softmax", 0) == 1;
	a->past = past_of;
	a->range = range;
	a->mask = x->bias ? add_bias : NULL;
	a->ctx = x;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct gqa x = {
		.lens = c->in[RG_GQA_SEQLENS_K].data, .valid = data_of(c, RG_GQA_QUERY_SEQLENS),
		.ids = data_of(c, RG_GQA_POSITION_IDS), .cosines = data_of(c, RG_GQA_COS),
		.sines = data_of(c, RG_GQA_SIN), .bias = input(c, RG_GQA_BIAS),
	};

	if (!resolve(c, par->lanes, &x.g, &x.a.plan))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	x.first_prompt = x.a.plan.size.total == x.g.size.q_seq && !x.valid;
	set_options(c, &x);
	for (int64_t b = 0; b < x.g.size.batch; b++)
		if (check_sequence(&x, b, err) || check_positions(&x, b, err))
			return err->code;
	find_rows(c, &x);
	if (x.g.rotary)
		rotate(&x, c->scratch, par);
	x.a.scratch = (float *)c->scratch + rotated_floats(&x.g);
	if (c->node->n_out > 1)
		write_present(&x, &c->out[1], &x.a.k_past, &x.a.k, par);
	if (c->node->n_out > 2)
		write_present(&x, &c->out[2], &x.a.v_past, &x.a.v, par);
	rg_attend_run(&x.a, par);
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "GroupQueryAttention",
	  .domain = RG_CONTRIB_DOMAIN,
	  .name = RG_LEVEL_NAME("blocks"),
	  .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK,
	  .supports = supports,
	  .scratch_bytes = scratch_bytes,
	  .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(attention_gqa), kernels);
