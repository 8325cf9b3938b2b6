/* See attention.h. Products and the softmax are summed in double, in order. */
#include "kernels/ref/attention.h"

#include <math.h>
#include <string.h>

static int64_t chunk(int64_t left)
{
	return left < RG_REF_CHUNK ? left : RG_REF_CHUNK;
}

/* ---- rows ---- */

struct rg_attn_rows rg_attn_heads_first(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width)
{
	return (struct rg_attn_rows){ .t = t, .batch = heads * seq * width, .head = seq * width, .seq = width };
}

struct rg_attn_rows rg_attn_heads_last(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width)
{
	return (struct rg_attn_rows){ .t = t, .batch = heads * seq * width, .head = width, .seq = heads * width };
}

struct rg_attn_rows rg_attn_rows_of(const struct rg_tensor *t, int64_t heads, int64_t seq, int64_t width)
{
	return t->shape.rank == 4 ? rg_attn_heads_first(t, heads, seq, width) :
				    rg_attn_heads_last(t, heads, seq, width);
}

void rg_attn_copy_rows(const struct rg_attn_rows *from, const struct rg_attn_rows *to, int64_t batch, int64_t heads,
		       int64_t seq, int64_t width)
{
	double buf[RG_REF_CHUNK];

	for (int64_t b = 0; b < batch; b++) {
		for (int64_t h = 0; h < heads; h++) {
			for (int64_t s = 0; s < seq; s++) {
				for (int64_t d = 0, m; d < width; d += m) {
					m = chunk(width - d);
					rg_ref_load(from->t, rg_attn_at(from, b, h, s) + d, 1, m, buf);
					rg_ref_store(to->t, rg_attn_at(to, b, h, s) + d, 1, m, buf);
				}
			}
		}
	}
}

const struct rg_tensor *rg_attn_in(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

const struct rg_tensor *rg_attn_out(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED && c->out[i].data ? &c->out[i] : NULL;
}

/* ---- one row of scores ---- */

/* Sum of x[i] times element first + i of t. */
static double dot(const struct rg_tensor *t, int64_t first, const double *x, int64_t n)
{
	double buf[RG_REF_CHUNK], sum = 0;

	if (t->dtype == RG_F32) {
		const float *p = (const float *)t->data + first;

		for (int64_t i = 0; i < n; i++)
			sum += x[i] * (double)p[i];
		return sum;
	}
	for (int64_t i = 0, m; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(t, first + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			sum += x[i + j] * buf[j];
	}
	return sum;
}

/* y[i] += weight times element first + i of t. */
static void accumulate(const struct rg_tensor *t, int64_t first, double weight, double *y, int64_t n)
{
	double buf[RG_REF_CHUNK];

	if (t->dtype == RG_F32) {
		const float *p = (const float *)t->data + first;

		for (int64_t i = 0; i < n; i++)
			y[i] += weight * (double)p[i];
		return;
	}
	for (int64_t i = 0, m; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(t, first + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			y[i + j] += weight * buf[j];
	}
}

/* Where key or value row j lies. */
static const struct rg_attn_rows *row_of(const struct rg_attn *a, const struct rg_attn_rows *past,
					 const struct rg_attn_rows *now, int64_t *j)
{
	if (*j < a->size.past)
		return past;
	*j -= a->size.past;
	return now;
}

static void emit(const struct rg_attn *a, enum rg_attn_stage stage, int64_t b, int64_t h, int64_t i,
		 const double *scores)
{
	if (a->qk && a->qk_stage == stage)
		rg_ref_store(a->qk, ((b * a->size.q_heads + h) * a->size.q_seq + i) * a->size.total, 1, a->size.total,
			     scores);
}

/* scores to probabilities, those outside of [from, to) to 0. */
static void softmax(const struct rg_attn *a, int64_t h, int64_t from, int64_t to, double *scores)
{
	double max = -HUGE_VAL, sum = 0, sink = 0;
	bool none = !a->has_sink;

	if (a->has_sink) {
		sink = a->sink ? rg_ref_get(a->sink, h) : 0;
		max = sink;
	}
	for (int64_t j = from; j < to; j++) {
		max = scores[j] > max ? scores[j] : max;
		none &= scores[j] == -HUGE_VAL;
	}
	if (none) {
		memset(scores, 0, (size_t)a->size.total * sizeof(*scores));
		return;
	}
	for (int64_t j = from; j < to; j++) {
		scores[j] = exp(scores[j] - max);
		sum += scores[j];
	}
	if (a->has_sink)
		sum += exp(sink - max);
	for (int64_t j = 0; j < a->size.total; j++)
		scores[j] = j >= from && j < to ? scores[j] / sum : 0;
}

static void score_row(const struct rg_attn *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		      const double *q, double *scores)
{
	int64_t kv = h / (a->size.q_heads / a->size.kv_heads);

	/* what is not seen has no score either */
	memset(scores, 0, (size_t)a->size.total * sizeof(*scores));
	for (int64_t j = from; j < to; j++) {
		int64_t at = j;
		const struct rg_attn_rows *k = row_of(a, &a->k_past, &a->k, &at);

		scores[j] = a->scale * dot(k->t, rg_attn_at(k, b, kv, at), q, a->size.head);
	}
	emit(a, RG_ATTN_SCALED, b, h, i, scores);
	if (a->softcap > 0)
		for (int64_t j = from; j < to; j++)
			scores[j] = a->softcap * tanh(scores[j] / a->softcap);
	emit(a, RG_ATTN_CAPPED, b, h, i, scores);
	if (a->mask)
		a->mask(a, b, h, i, from, to, scores);
	emit(a, RG_ATTN_MASKED, b, h, i, scores);
	softmax(a, h, from, to, scores);
	emit(a, RG_ATTN_PROBABILITIES, b, h, i, scores);
}

static void attend_row(const struct rg_attn *a, int64_t b, int64_t h, int64_t i)
{
	int64_t kv = h / (a->size.q_heads / a->size.kv_heads), from = 0, to = a->size.total;
	double *q = a->scratch, *y = q + a->size.head, *scores = y + a->size.v_head;

	if (a->range)
		a->range(a, b, i, &from, &to);
	rg_ref_load(a->q.t, rg_attn_at(&a->q, b, h, i), 1, a->size.head, q);
	score_row(a, b, h, i, from, to, q, scores);
	memset(y, 0, (size_t)a->size.v_head * sizeof(*y));
	for (int64_t j = from; j < to; j++) {
		int64_t at = j;
		const struct rg_attn_rows *v = row_of(a, &a->v_past, &a->v, &at);

		accumulate(v->t, rg_attn_at(v, b, kv, at), scores[j], y, a->size.v_head);
	}
	rg_ref_store(a->y.t, rg_attn_at(&a->y, b, h, i), 1, a->size.v_head, y);
}

size_t rg_attn_scratch_bytes(const struct rg_attention *size)
{
	int64_t n = rg_cost_add(rg_cost_add(size->head, size->v_head), size->total);

	/* what no input of these sizes can have: the planner refuses it */
	if (n < 0 || n > INT64_MAX / 16)
		return SIZE_MAX / 4;
	return (size_t)n * sizeof(double);
}

void rg_attn_run_batch(const struct rg_attn *a, int64_t b)
{
	for (int64_t h = 0; h < a->size.q_heads; h++)
		for (int64_t i = 0; i < a->size.q_seq; i++)
			attend_row(a, b, h, i);
}

void rg_attn_run(const struct rg_attn *a)
{
	for (int64_t b = 0; b < a->size.batch; b++)
		rg_attn_run_batch(a, b);
}

void rg_attn_rotate(double *x, const double *cosines, const double *sines, int64_t dim, bool interleaved)
{
	for (int64_t j = 0; j < dim / 2; j++) {
		double *re = &x[interleaved ? 2 * j : j], *im = &x[interleaved ? 2 * j + 1 : j + dim / 2];
		double r = *re * cosines[j] - *im * sines[j], m = *re * sines[j] + *im * cosines[j];

		*re = r;
		*im = m;
	}
}
