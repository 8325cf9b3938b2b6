/*
 * The recorded schedule, replayed with some steps faster.
 */
#include "analyzer/whatif.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyzer/schedule.h"
#include "base/alloc.h"
#include "base/str.h"

/*
 * A span starts when the last of its dependencies has ended, plus the delay that
 * was recorded between the two; a span without dependencies keeps its delay from
 * the beginning. Whatever came after the last span keeps its length as well.
 */
static int replay(const struct rg_schedule *s, const bool *faster, double speedup, struct rg_arena *arena,
		  double *after_ns, double *own_ns, struct rg_error *err)
{
	double *ended = rg_arena_alloc(arena, (size_t)s->n, sizeof(*ended)); /* replayed, from the start */
	double all_ended = 0;
	int64_t all_ended_ns = s->start_ns;

	if (!ended)
		return rg_error_nomem(err, (size_t)s->n * sizeof(*ended));
	*own_ns = 0;
	for (int i = 0; i < s->n; i++) {
		const struct rg_sched_span *span = &s->spans[i];
		double length = (double)(span->end_ns - span->start_ns), ready = 0;
		int64_t ready_ns = s->start_ns;

		for (int d = -1; d < span->n_data; d++) {
			int dep = d < 0 ? span->lane_dep : s->data[span->data_at + d];

			if (dep < 0)
				continue;
			ready = fmax(ready, ended[dep]);
			if (s->spans[dep].end_ns > ready_ns)
				ready_ns = s->spans[dep].end_ns;
		}
		if (faster[span->step]) {
			*own_ns += length;
			length /= speedup;
		}
		ended[i] = ready + (double)(span->start_ns - ready_ns) + length;
		all_ended = fmax(all_ended, ended[i]);
		if (span->end_ns > all_ended_ns)
			all_ended_ns = span->end_ns;
	}
	*after_ns = all_ended + (double)(s->end_ns - all_ended_ns);
	return 0;
}

/* Number of edits that turn a into b, as long as both are short. */
static int edit_distance(const char *a, const char *b)
{
	int row[48];
	size_t m = strlen(a), n = strlen(b);

	if (m >= 48 || n >= 48)
		return 1000;
	for (size_t j = 0; j <= n; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= m; i++) {
		int diagonal = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= n; j++) {
			int best = diagonal + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

static bool is_close(const char *typed, const char *name)
{
	return *name && (strcasestr(name, typed) || edit_distance(typed, name) <= 2);
}

static bool seen(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int no_such_op(const struct rg_recording *rec, const char *op, struct rg_error *err)
{
	const char *names[6];
	struct rg_str list = { 0 };
	int n = 0;

	for (int i = 0; i < rec->n_steps && n < 6; i++) /* types first: there are few */
		if (is_close(op, rec->steps[i].op_type) && !seen(names, n, rec->steps[i].op_type))
			names[n++] = rec->steps[i].op_type;
	for (int i = 0; i < rec->n_steps && n < 6; i++)
		if (is_close(op, rec->steps[i].name) && !seen(names, n, rec->steps[i].name))
			names[n++] = rec->steps[i].name;
	if (n == 0) /* nothing close: what there is */
		for (int i = 0; i < rec->n_steps && n < 6; i++)
			if (!seen(names, n, rec->steps[i].op_type))
				names[n++] = rec->steps[i].op_type;
	for (int i = 0; i < n; i++)
		rg_str_printf(&list, "%s'%.60s'", i ? ", " : "", names[i]);
	rg_error_set(err, -ENOENT, "run %lld has no operator and no operator type '%s'", (long long)rec->run.id, op);
	rg_error_hint(err, "close to it: %s; all of them:  ridge report", n ? rg_str_text(&list) : "none");
	rg_str_free(&list);
	return err->code;
}

/* Marks the steps that `op` names: a node's name, or else a type. */
static int match(const struct rg_recording *rec, const char *op, bool *faster)
{
	int n = 0;

	for (int i = 0; i < rec->n_steps; i++)
		n += faster[i] = strcmp(rec->steps[i].name, op) == 0;
	for (int i = 0; i < rec->n_steps && n == 0; i++) {
		if (strcmp(rec->steps[i].op_type, op) != 0)
			continue;
		for (; i < rec->n_steps; i++)
			n += faster[i] = strcmp(rec->steps[i].op_type, op) == 0;
	}
	return n;
}

/*
 * What Amdahl's law makes of the wall time: the median over iterations of what
 * is left when the operator's own time is divided by s. The replay of an
 * iteration is never shorter than this, so neither is its median; a law applied
 * to the median share would not be a bound.
 */
static double amdahl_gain(const double *wall_ns, const double *share, double *scratch, int n, double s,
			  double before_ns)
{
	double after;

	for (int i = 0; i < n; i++)
		scratch[i] = wall_ns[i] * (1 - share[i] + share[i] / s);
	after = rg_stats_median(scratch, (size_t)n);
	return after > 0 ? before_ns / after : INFINITY;
}

int rg_whatif_speedup(const struct rg_analysis *a, const char *op, double speedup,
		      struct rg_whatif *out, struct rg_error *err)
{
	const struct rg_recording *rec = a->rec;
	struct rg_arena *arena;
	struct rg_producers producers;
	struct rg_interval after;
	double *before_v, *after_v, *share_v, *scratch_v;
	bool *faster;
	int *list, n, rc;

	memset(out, 0, sizeof(*out));
	if (!(speedup > 0)) {
		rg_error_set(err, -EINVAL, "a speedup of %g makes no sense", speedup);
		return rg_error_hint(err, "give a number above 0: 2 is twice as fast, inf removes the operator");
	}
	arena = rg_arena_new();
	if (!arena)
		return rg_error_nomem(err, 64);
	faster = rg_arena_alloc(arena, (size_t)rec->n_steps, sizeof(*faster));
	rc = faster ? 0 : rg_error_nomem(err, (size_t)rec->n_steps);
	if (!rc) {
		out->n_steps = match(rec, op, faster);
		if (out->n_steps == 0)
			rc = no_such_op(rec, op, err);
	}
	rc = rc ? rc : rg_schedule_iterations(rec, arena, &list, &n, err);
	rc = rc ? rc : rg_producers_build(rec, arena, &producers, err);
	if (rc)
		goto out;
	before_v = rg_arena_alloc(arena, (size_t)n, sizeof(*before_v));
	after_v = rg_arena_alloc(arena, (size_t)n, sizeof(*after_v));
	share_v = rg_arena_alloc(arena, (size_t)n, sizeof(*share_v));
	scratch_v = rg_arena_alloc(arena, (size_t)n, sizeof(*scratch_v));
	if (!before_v || !after_v || !share_v || !scratch_v)
		rc = rg_error_nomem(err, (size_t)n * sizeof(*before_v));
	for (int i = 0; i < n && !rc; i++) {
		struct rg_arena *scratch = rg_arena_new();
		struct rg_schedule s;
		double own_ns = 0;

		rc = scratch ? 0 : rg_error_nomem(err, 64);
		rc = rc ? rc : rg_schedule_build(rec, &producers, list[i], scratch, &s, err);
		rc = rc ? rc : replay(&s, faster, speedup, scratch, &after_v[i], &own_ns, err);
		rg_arena_free(scratch);
		if (rc)
			break;
		before_v[i] = (double)(s.end_ns - s.start_ns);
		share_v[i] = before_v[i] > 0 ? fmin(own_ns / before_v[i], 1) : 0;
	}
	if (rc)
		goto out;
	out->n_iterations = n;
	out->speedup = speedup;
	out->cold = n > 0 && strcmp(rec->iterations[list[0]].pass, "timing") != 0;
	memcpy(scratch_v, before_v, (size_t)n * sizeof(*scratch_v));
	out->before_ns = rg_stats_median(scratch_v, (size_t)n);
	out->amdahl_gain = amdahl_gain(before_v, share_v, scratch_v, n, speedup, out->before_ns);
	out->limit_gain = amdahl_gain(before_v, share_v, scratch_v, n, INFINITY, out->before_ns);
	out->share = rg_stats_median(share_v, (size_t)n);
	rg_stats_sort(after_v, (size_t)n);
	after = rg_stats_quantile_ci(after_v, (size_t)n, 0.5, 0.95);
	out->after_ns = after.value;
	out->after_low_ns = after.low;
	out->after_high_ns = after.high;
	out->gain = after.value > 0 ? out->before_ns / after.value : INFINITY;
out:
	rg_arena_free(arena);
	return rc;
}
