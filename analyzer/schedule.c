/*
 * Spans of one inference joined by what had to end before each could start.
 */
#include "analyzer/schedule.h"

#include <stdlib.h>
#include <string.h>

/* Dependencies of one iteration, at most: a bound for databases made to hurt. */
#define MAX_DEPENDENCIES (64 * 1024 * 1024)

int rg_producers_build(const struct rg_recording *rec, struct rg_arena *arena, struct rg_producers *out,
		       struct rg_error *err)
{
	size_t n = (size_t)rec->n_steps;
	int *fill = rg_arena_alloc(arena, n, sizeof(*fill));

	out->at = rg_arena_alloc(arena, n + 1, sizeof(*out->at));
	out->from = rg_arena_alloc(arena, (size_t)rec->n_edges, sizeof(*out->from));
	if (!fill || !out->at || !out->from)
		return rg_error_nomem(err, (n + (size_t)rec->n_edges) * sizeof(int));
	for (int i = 0; i < rec->n_edges; i++)
		out->at[rec->edges[i].to_step + 1]++;
	for (size_t i = 0; i < n; i++)
		out->at[i + 1] += out->at[i];
	for (int i = 0; i < rec->n_edges; i++) {
		int to = rec->edges[i].to_step;

		out->from[out->at[to] + fill[to]++] = rec->edges[i].from_step;
	}
	return 0;
}

/* First span of an iteration or of a later one; spans are sorted by iteration. */
static int64_t first_span(const struct rg_recording *rec, int iteration)
{
	int64_t lo = 0, hi = rec->n_spans;

	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;

		if (rec->spans[mid].iteration < iteration)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int by_end(const void *a, const void *b)
{
	const struct rg_sched_span *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* Spans grouped by a small number (step or lane), each group by end. */
struct groups {
	int *at;    /* n_keys + 1 */
	int *spans;
};

static int group(const struct rg_schedule *s, int n_keys, bool by_lane, struct rg_arena *arena, struct groups *g,
		 struct rg_error *err)
{
	int *fill = rg_arena_alloc(arena, (size_t)n_keys, sizeof(*fill));

	g->at = rg_arena_alloc(arena, (size_t)n_keys + 1, sizeof(*g->at));
	g->spans = rg_arena_alloc(arena, (size_t)s->n, sizeof(*g->spans));
	if (!fill || !g->at || !g->spans)
		return rg_error_nomem(err, ((size_t)n_keys + (size_t)s->n) * sizeof(int));
	for (int i = 0; i < s->n; i++)
		g->at[(by_lane ? s->spans[i].lane : s->spans[i].step) + 1]++;
	for (int i = 0; i < n_keys; i++)
		g->at[i + 1] += g->at[i];
	for (int i = 0; i < s->n; i++) {
		int key = by_lane ? s->spans[i].lane : s->spans[i].step;

		g->spans[g->at[key] + fill[key]++] = i;
	}
	return 0;
}

/* The newest span of a group that stands before span `i` and ended before it
 * began; -1: none. */
static int newest_before(const struct rg_schedule *s, const struct groups *g, int key, int i)
{
	int lo = g->at[key], hi = g->at[key + 1];

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2, span = g->spans[mid];

		if (span < i && s->spans[span].end_ns <= s->spans[i].start_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > g->at[key] ? g->spans[lo - 1] : -1;
}

static int join(const struct rg_recording *rec, const struct rg_producers *p, struct rg_schedule *s, int n_lanes,
		struct rg_arena *arena, struct rg_error *err)
{
	struct groups steps, lanes;
	int64_t total = 0;
	int used = 0;
	int rc = group(s, rec->n_steps, false, arena, &steps, err);

	rc = rc ? rc : group(s, n_lanes, true, arena, &lanes, err);
	if (rc)
		return rc;
	for (int i = 0; i < s->n; i++)
		total += p->at[s->spans[i].step + 1] - p->at[s->spans[i].step];
	if (total > MAX_DEPENDENCIES)
		return rg_error_set(err, -E2BIG, "one inference has %lld dependencies between its spans",
				    (long long)total);
	s->data = rg_arena_alloc(arena, (size_t)total, sizeof(*s->data));
	if (!s->data)
		return rg_error_nomem(err, (size_t)total * sizeof(*s->data));
	for (int i = 0; i < s->n; i++) {
		struct rg_sched_span *span = &s->spans[i];

		span->lane_dep = newest_before(s, &lanes, span->lane, i);
		span->data_at = used;
		for (int e = p->at[span->step]; e < p->at[span->step + 1]; e++) {
			int dep = newest_before(s, &steps, p->from[e], i);

			if (dep >= 0)
				s->data[used++] = dep;
		}
		span->n_data = used - span->data_at;
	}
	return 0;
}

int rg_schedule_build(const struct rg_recording *rec, const struct rg_producers *producers, int iteration,
		      struct rg_arena *arena, struct rg_schedule *out, struct rg_error *err)
{
	const struct rg_iteration_row *it = &rec->iterations[iteration];
	int64_t first = first_span(rec, iteration), last = first_span(rec, iteration + 1);
	int n_lanes = 0;

	*out = (struct rg_schedule){ .start_ns = it->start_ns, .end_ns = it->end_ns };
	if (last - first > INT32_MAX)
		return rg_error_set(err, -E2BIG, "one inference has %lld spans", (long long)(last - first));
	out->spans = rg_arena_alloc(arena, (size_t)(last - first), sizeof(*out->spans));
	if (!out->spans)
		return rg_error_nomem(err, (size_t)(last - first) * sizeof(*out->spans));
	for (int64_t i = first; i < last; i++) {
		const struct rg_span_row *p = &rec->spans[i];
		struct rg_sched_span *s = &out->spans[out->n];

		if (!p->whole || p->end_ns < it->start_ns || p->start_ns > it->end_ns)
			continue;
		s->step = p->step;
		s->lane = p->lane;
		s->start_ns = p->start_ns < it->start_ns ? it->start_ns : p->start_ns;
		s->end_ns = p->end_ns > it->end_ns ? it->end_ns : p->end_ns;
		if (s->lane >= n_lanes)
			n_lanes = s->lane + 1;
		out->n++;
	}
	if (out->n > 1)
		qsort(out->spans, (size_t)out->n, sizeof(*out->spans), by_end);
	return join(rec, producers, out, n_lanes, arena, err);
}

int rg_schedule_iterations(const struct rg_recording *rec, struct rg_arena *arena, int **list, int *n,
			   struct rg_error *err)
{
	bool *has = rg_arena_alloc(arena, (size_t)rec->n_iterations, sizeof(*has));
	bool timing = false;

	*n = 0;
	*list = rg_arena_alloc(arena, (size_t)rec->n_iterations, sizeof(**list));
	if (!has || !*list)
		return rg_error_nomem(err, (size_t)rec->n_iterations * sizeof(**list));
	for (int64_t i = 0; i < rec->n_spans; i++) {
		int it = rec->spans[i].iteration;

		if (rec->spans[i].whole) {
			has[it] = true;
			timing |= strcmp(rec->iterations[it].pass, "timing") == 0;
		}
	}
	for (int i = 0; i < rec->n_iterations; i++)
		if (has[i] && (!timing || strcmp(rec->iterations[i].pass, "timing") == 0))
			(*list)[(*n)++] = i;
	if (*n)
		return 0;
	rg_error_set(err, -ENODATA, "run %lld has no recorded spans", (long long)rec->run.id);
	return rg_error_hint(err, "record it again: it ended before the timing pass began");
}
