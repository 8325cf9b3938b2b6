/*
 * The critical path of one recorded inference, walked backward from its end,
 * and the longest chain of data edges with the slack of every step.
 */
#include "analyzer/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/schedule.h"
#include "base/alloc.h"

struct path {
	struct rg_path p; /* first: this is what callers see */
	struct rg_arena *arena;
};

/* Sums of hostile times must not wrap. */
static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int nearest_to_median(const struct rg_recording *rec, const int *list, int n, struct rg_arena *arena,
			     int *iteration, struct rg_error *err)
{
	double *v = rg_arena_alloc(arena, (size_t)n, sizeof(*v));
	double median, best = INFINITY;

	if (!v)
		return rg_error_nomem(err, (size_t)n * sizeof(*v));
	for (int i = 0; i < n; i++)
		v[i] = (double)(rec->iterations[list[i]].end_ns - rec->iterations[list[i]].start_ns);
	median = rg_stats_median(v, (size_t)n);
	for (int i = 0; i < n; i++) {
		const struct rg_iteration_row *it = &rec->iterations[list[i]];
		double off = fabs((double)(it->end_ns - it->start_ns) - median);

		if (off < best) {
			best = off;
			*iteration = list[i];
		}
	}
	return 0;
}

/* Fills segments from the back; each is put in front of the one before. */
struct walk {
	struct rg_segment *at; /* the newest segment */
	int n;
};

static void push(struct walk *w, enum rg_segment_kind kind, int step, int64_t start_ns, int64_t end_ns)
{
	if (kind == RG_SEG_GAP && start_ns == end_ns)
		return;
	*--w->at = (struct rg_segment){ kind, step, start_ns, end_ns };
	w->n++;
}

/*
 * Each span is visited at most once, since dependencies stand before what
 * depends on them: at most one step and one gap a span, and a gap at the end.
 */
static int walk_back(struct path *x, const struct rg_schedule *s, struct rg_error *err)
{
	size_t room = 2 * (size_t)s->n + 1;
	struct rg_segment *segments = rg_arena_alloc(x->arena, room, sizeof(*segments));
	struct walk w = { segments + room, 0 };
	enum rg_segment_kind kind = RG_SEG_STEP;
	int64_t t = s->end_ns; /* everything from here on is given away */

	if (!segments)
		return rg_error_nomem(err, room * sizeof(*segments));
	for (int i = s->n - 1; i >= 0;) {
		const struct rg_sched_span *span = &s->spans[i];
		int next = -1;

		push(&w, RG_SEG_GAP, -1, span->end_ns, t);
		push(&w, kind, span->step, span->start_ns, span->end_ns);
		t = span->start_ns;
		for (int d = 0; d < span->n_data; d++)
			if (s->data[span->data_at + d] > next)
				next = s->data[span->data_at + d];
		kind = RG_SEG_STEP;
		/* Spans stand by their end: the lane's is later only when it ended later. */
		if (span->lane_dep > next && (next < 0 || s->spans[span->lane_dep].end_ns > s->spans[next].end_ns)) {
			next = span->lane_dep;
			kind = RG_SEG_RESOURCE;
		}
		i = next;
	}
	push(&w, RG_SEG_GAP, -1, s->start_ns, t);
	x->p.segments = w.at;
	x->p.n_segments = w.n;
	return 0;
}

/* Longest chain of data edges. Steps are in topological order, since every edge
 * leads to a higher number. */
static int data_path(struct path *x, const struct rg_schedule *s, const struct rg_producers *producers, int n_steps,
		     struct rg_error *err)
{
	struct rg_path *p = &x->p;
	int64_t *time = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*time));
	int64_t *until = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*until)); /* chain up to its end */
	int64_t *behind = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*behind)); /* chain after its end */
	int *before = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*before));
	int last = -1, at;
	double sum = 0;

	p->slack_ns = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*p->slack_ns));
	p->data_path = rg_arena_alloc(x->arena, (size_t)n_steps, sizeof(*p->data_path));
	if (!time || !until || !behind || !before || !p->slack_ns || !p->data_path)
		return rg_error_nomem(err, (size_t)n_steps * 44);
	for (int i = 0; i < s->n; i++) {
		int64_t ns = s->spans[i].end_ns - s->spans[i].start_ns;

		time[s->spans[i].step] = add(time[s->spans[i].step], ns);
		sum += (double)ns;
	}
	for (int i = 0; i < n_steps; i++) {
		before[i] = -1;
		for (int e = producers->at[i]; e < producers->at[i + 1]; e++) {
			int from = producers->from[e];

			if (before[i] < 0 || until[from] > until[before[i]])
				before[i] = from;
		}
		until[i] = add(before[i] < 0 ? 0 : until[before[i]], time[i]);
		if (last < 0 || until[i] > until[last])
			last = i;
	}
	for (int i = n_steps - 1; i >= 0; i--) {
		for (int e = producers->at[i]; e < producers->at[i + 1]; e++) {
			int from = producers->from[e];
			int64_t chain = add(behind[i], time[i]);

			if (chain > behind[from])
				behind[from] = chain;
		}
	}
	p->data_path_ns = last < 0 ? 0 : until[last];
	for (int i = 0; i < n_steps; i++)
		p->slack_ns[i] = p->data_path_ns - add(until[i], behind[i]);
	for (at = last; at >= 0; at = before[at])
		p->n_data_path++;
	at = last;
	for (int i = p->n_data_path - 1; i >= 0; i--, at = before[at])
		p->data_path[i] = at;
	p->parallelism = p->data_path_ns > 0 ? sum / (double)p->data_path_ns : NAN;
	return 0;
}

int rg_path_find(const struct rg_analysis *a, struct rg_path **out, struct rg_error *err)
{
	const struct rg_recording *rec = a->rec;
	struct rg_arena *arena = rg_arena_new(), *scratch = rg_arena_new();
	struct rg_producers producers;
	struct rg_schedule s;
	struct path *x = arena ? rg_arena_alloc(arena, 1, sizeof(*x)) : NULL;
	int *list, n, rc = 0;

	*out = NULL;
	if (!x || !scratch)
		rc = rg_error_nomem(err, sizeof(*x));
	else
		x->arena = arena;
	rc = rc ? rc : rg_schedule_iterations(rec, scratch, &list, &n, err);
	rc = rc ? rc : nearest_to_median(rec, list, n, scratch, &x->p.iteration, err);
	if (!rc)
		x->p.cold = strcmp(rec->iterations[x->p.iteration].pass, "timing") != 0;
	rc = rc ? rc : rg_producers_build(rec, scratch, &producers, err);
	rc = rc ? rc : rg_schedule_build(rec, &producers, x->p.iteration, scratch, &s, err);
	rc = rc ? rc : walk_back(x, &s, err);
	rc = rc ? rc : data_path(x, &s, &producers, rec->n_steps, err);
	rg_arena_free(scratch);
	if (rc) {
		rg_arena_free(arena);
		return rc;
	}
	x->p.wall_ns = s.end_ns - s.start_ns;
	*out = &x->p;
	return 0;
}

void rg_path_free(struct rg_path *p)
{
	if (p)
		rg_arena_free(((struct path *)p)->arena);
}
