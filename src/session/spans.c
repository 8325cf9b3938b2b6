/* Per-lane span buffers and the hook that fills them. */
#include "session/spans.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/stats.h"

struct span {
	uint64_t start_ns, end_ns;
	int32_t step, iteration;
	int32_t lane; /* -1: the whole step */
};

/* Each lane writes its own line of the cache. */
struct lane_buffer {
	_Alignas(64) struct span *v;
	int64_t n, cap, dropped;
};

struct rg_spans {
	struct rg_exec_hook hook;
	int lanes, iteration;
	struct lane_buffer *buffers;
};

static void on_span(void *ctx, int lane, int step, uint64_t start_ns, uint64_t end_ns)
{
	struct rg_spans *s = ctx;
	/* whole spans are reported by the caller, which is lane 0 */
	struct lane_buffer *b = &s->buffers[lane < 0 ? 0 : lane];

	if (b->n == b->cap) {
		b->dropped++;
		return;
	}
	b->v[b->n++] = (struct span){ start_ns, end_ns, step, s->iteration, lane };
}

int rg_spans_new(int lanes, int64_t per_lane, struct rg_spans **out, struct rg_error *err)
{
	struct rg_spans *s = rg_calloc(1, sizeof(*s));
	size_t bytes;

	if (per_lane < 1 || __builtin_mul_overflow((size_t)per_lane, sizeof(struct span), &bytes))
		bytes = SIZE_MAX / 2;
	if (s) {
		s->lanes = lanes;
		s->buffers = rg_alloc_aligned(64, (size_t)lanes * sizeof(*s->buffers));
		if (s->buffers)
			memset(s->buffers, 0, (size_t)lanes * sizeof(*s->buffers));
	}
	for (int i = 0; s && s->buffers && i < lanes; i++) {
		s->buffers[i].v = rg_alloc_aligned(64, bytes);
		if (!s->buffers[i].v)
			break;
		/* touched now, so that no page fault falls into a timed inference */
		memset(s->buffers[i].v, 0, bytes);
		s->buffers[i].cap = per_lane;
	}
	if (!s || !s->buffers || !s->buffers[lanes - 1].v) {
		rg_spans_free(s);
		return rg_error_nomem(err, bytes);
	}
	s->hook.span = on_span;
	s->hook.ctx = s;
	*out = s;
	return 0;
}

void rg_spans_free(struct rg_spans *s)
{
	if (!s)
		return;
	for (int i = 0; s->buffers && i < s->lanes; i++)
		rg_free(s->buffers[i].v);
	rg_free(s->buffers);
	rg_free(s);
}

const struct rg_exec_hook *rg_spans_hook(struct rg_spans *s)
{
	return &s->hook;
}

void rg_spans_iteration(struct rg_spans *s, int iteration)
{
	s->iteration = iteration;
}

void rg_spans_forget(struct rg_spans *s)
{
	for (int i = 0; i < s->lanes; i++) {
		struct lane_buffer *b = &s->buffers[i];

		while (b->n > 0 && b->v[b->n - 1].iteration == s->iteration)
			b->n--;
	}
}

int rg_spans_take(struct rg_spans *s, uint64_t epoch_ns, struct rg_span_row **out, int64_t *n, struct rg_error *err)
{
	struct rg_span_row *rows;
	int64_t total = 0, at = 0;

	for (int i = 0; i < s->lanes; i++)
		total += s->buffers[i].n;
	rows = rg_calloc((size_t)total + 1, sizeof(*rows));
	if (!rows)
		return rg_error_nomem(err, (size_t)total * sizeof(*rows));
	for (int i = 0; i < s->lanes; i++) {
		for (int64_t k = 0; k < s->buffers[i].n; k++) {
			const struct span *v = &s->buffers[i].v[k];

			rows[at].iteration = v->iteration;
			rows[at].step = v->step;
			rows[at].lane = v->lane < 0 ? 0 : v->lane;
			rows[at].whole = v->lane < 0;
			rows[at].start_ns = (int64_t)(v->start_ns - epoch_ns);
			rows[at].end_ns = (int64_t)(v->end_ns - epoch_ns);
			at++;
		}
		s->buffers[i].n = 0;
	}
	*out = rows;
	*n = total;
	return 0;
}

int64_t rg_spans_dropped(const struct rg_spans *s)
{
	int64_t sum = 0;

	for (int i = 0; i < s->lanes; i++)
		sum += s->buffers[i].dropped;
	return sum;
}

bool rg_spans_room(const struct rg_spans *s, int64_t per_lane)
{
	for (int i = 0; i < s->lanes; i++)
		if (s->buffers[i].cap - s->buffers[i].n < per_lane)
			return false;
	return true;
}

double rg_spans_cost_ns(void)
{
	enum { ROUNDS = 31, SPANS = 500 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_spans *s;
	double cost[ROUNDS];

	if (rg_spans_new(1, SPANS, &s, &err))
		return (double)NAN;
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t start = rg_clock_now_ns();

		/* what a watched step costs more than an unwatched one: two readings
		 * of the clock and one entry */
		for (int i = 0; i < SPANS; i++) {
			uint64_t a = rg_clock_now_ns(), b = rg_clock_now_ns();

			s->hook.span(s, -1, i, a, b);
		}
		cost[r] = (double)(rg_clock_now_ns() - start) / SPANS;
		s->buffers[0].n = 0;
	}
	rg_spans_free(s);
	return rg_stats_median(cost, ROUNDS);
}
