/*
 * Critical path and replay against brute force on random graphs and against
 * Amdahl's law on serial chains.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/path.h"
#include "analyzer/whatif.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "make-recording.h"

static uint64_t stream, draws;

static int64_t pick(int64_t lo, int64_t hi)
{
	return rg_rng_integer(stream, draws++, lo, hi);
}

static struct rg_analysis *analyze(struct mk *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_analysis *a;

	assert_int_equal(rg_analyze(&m->rec, &a, &err), 0);
	return a;
}

static struct rg_path *find(struct rg_analysis *a)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_path *p;

	assert_int_equal(rg_path_find(a, &p, &err), 0);
	return p;
}

/* A random DAG of n steps, run by a random but possible schedule on `lanes`
 * lanes: a step starts after its producers and after its lane is free. */
static struct mk *random_run(int n, int lanes, int iterations)
{
	static const char *const types[] = { "Conv", "Add", "Relu" };
	static char names[64][16];
	struct mk *m = mk_new(lanes);

	for (int i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		mk_step(m, names[i], types[pick(0, 2)], "other", 10, 10);
		for (int from = 0; from < i; from++)
			if (pick(0, 3) == 0)
				mk_edge(m, from, i);
	}
	for (int k = 0; k < iterations; k++) {
		int64_t start = pick(0, 1000000), free_at[8], end[64], last = start;
		int it = mk_iteration(m, "timing", true, start, 0);

		for (int l = 0; l < lanes; l++)
			free_at[l] = start;
		for (int i = 0; i < n; i++) {
			int lane = (int)pick(0, lanes - 1);
			int64_t t = free_at[lane];

			for (int e = 0; e < m->rec.n_edges; e++)
				if (m->edges[e].to_step == i && end[m->edges[e].from_step] > t)
					t = end[m->edges[e].from_step];
			t += pick(0, 2) ? pick(0, 50) : 0;
			end[i] = t + pick(0, 200); /* also steps of no time at all */
			mk_span(m, it, i, lane, 1, t, end[i]);
			free_at[lane] = end[i];
			last = end[i] > last ? end[i] : last;
		}
		m->iterations[it].end_ns = last + pick(0, 30);
	}
	return m;
}

/* Longest chain from `step` on, by trying all of them. */
static int64_t longest_from(const struct mk *m, const int64_t *time, int step)
{
	int64_t best = 0;

	for (int e = 0; e < m->rec.n_edges; e++) {
		if (m->edges[e].from_step == step) {
			int64_t v = longest_from(m, time, m->edges[e].to_step);

			best = v > best ? v : best;
		}
	}
	return time[step] + best;
}

static bool has_edge(const struct mk *m, int from, int to)
{
	for (int e = 0; e < m->rec.n_edges; e++)
		if (m->edges[e].from_step == from && m->edges[e].to_step == to)
			return true;
	return false;
}

static void segments_sum_to_the_wall_time(void **state)
{
	stream = rg_rng_stream(1, "segments");
	for (int round = 0; round < 300; round++) {
		int n = (int)pick(1, 14);
		struct mk *m = random_run(n, (int)pick(1, 3), 1);
		struct rg_analysis *a = analyze(m);
		struct rg_path *p = find(a);
		const struct rg_iteration_row *it = &m->iterations[p->iteration];
		int64_t sum = 0, at = it->start_ns;

		for (int i = 0; i < p->n_segments; i++) {
			const struct rg_segment *s = &p->segments[i];

			assert_int_equal(s->start_ns, at);
			assert_true(s->end_ns >= s->start_ns);
			at = s->end_ns;
			sum += s->end_ns - s->start_ns;
			if (s->kind == RG_SEG_GAP) {
				assert_int_equal(s->step, -1);
			} else {
				/* It is a recorded span, moved by nothing. */
				bool found = false;

				for (int k = 0; k < m->rec.n_spans; k++)
					found |= m->spans[k].step == s->step && m->spans[k].start_ns == s->start_ns &&
						 m->spans[k].end_ns == s->end_ns;
				assert_true(found);
			}
		}
		assert_int_equal(at, it->end_ns);
		assert_int_equal(sum, p->wall_ns);
		assert_int_equal(sum, it->end_ns - it->start_ns);
		/* A step on the path by a data edge has one to the next step on it. */
		for (int i = 0, before = -1; i < p->n_segments; i++) {
			if (p->segments[i].kind == RG_SEG_GAP)
				continue;
			if (before >= 0 && p->segments[before].kind == RG_SEG_STEP)
				assert_true(has_edge(m, p->segments[before].step, p->segments[i].step));
			before = i;
		}
		rg_path_free(p);
		rg_analysis_free(a);
		mk_free(m);
	}
}

static void data_path_equals_brute_force(void **state)
{
	stream = rg_rng_stream(1, "data path");
	for (int round = 0; round < 200; round++) {
		int n = (int)pick(1, 12);
		struct mk *m = random_run(n, (int)pick(1, 3), 1);
		struct rg_analysis *a = analyze(m);
		struct rg_path *p = find(a);
		int64_t time[64] = { 0 }, best = 0, sum = 0, along = 0;

		for (int k = 0; k < m->rec.n_spans; k++) {
			time[m->spans[k].step] += m->spans[k].end_ns - m->spans[k].start_ns;
			sum += m->spans[k].end_ns - m->spans[k].start_ns;
		}
		for (int i = 0; i < n; i++) {
			int64_t v = longest_from(m, time, i);

			best = v > best ? v : best;
		}
		assert_int_equal(p->data_path_ns, best);
		for (int i = 0; i < p->n_data_path; i++) {
			along += time[p->data_path[i]];
			if (i)
				assert_true(has_edge(m, p->data_path[i - 1], p->data_path[i]));
		}
		assert_int_equal(along, best);
		if (best > 0)
			assert_true(fabs(p->parallelism - (double)sum / (double)best) < 1e-12);
		/* Slack: so much longer changes nothing, one more does. */
		for (int i = 0; i < n; i++) {
			int64_t kept = time[i], with = 0, beyond = 0;

			assert_true(p->slack_ns[i] >= 0);
			time[i] = kept + p->slack_ns[i];
			for (int j = 0; j < n; j++) {
				int64_t v = longest_from(m, time, j);

				with = v > with ? v : with;
			}
			time[i]++;
			for (int j = 0; j < n; j++) {
				int64_t v = longest_from(m, time, j);

				beyond = v > beyond ? v : beyond;
			}
			assert_int_equal(with, best);
			assert_int_equal(beyond, best + 1);
			time[i] = kept;
		}
		rg_path_free(p);
		rg_analysis_free(a);
		mk_free(m);
	}
}

static void a_busy_lane_is_a_resource_edge(void **state)
{
	struct mk *m = mk_new(1);
	struct rg_analysis *a;
	struct rg_path *p;

	mk_step(m, "a", "Op", "other", 1, 1);
	mk_step(m, "b", "Op", "other", 1, 1);
	mk_step(m, "c", "Op", "other", 1, 1);
	mk_edge(m, 0, 2); /* c needs a only; b keeps the lane */
	mk_iteration(m, "timing", true, 0, 100);
	mk_span(m, 0, 0, 0, 1, 5, 20);
	mk_span(m, 0, 1, 0, 1, 20, 60);
	mk_span(m, 0, 2, 0, 1, 65, 90);
	a = analyze(m);
	p = find(a);
	assert_int_equal(p->n_segments, 6);
	assert_int_equal(p->segments[0].kind, RG_SEG_GAP);
	assert_int_equal(p->segments[1].kind, RG_SEG_RESOURCE); /* b needs nothing of a */
	assert_int_equal(p->segments[1].step, 0);
	assert_int_equal(p->segments[2].kind, RG_SEG_RESOURCE);
	assert_int_equal(p->segments[2].step, 1);
	assert_int_equal(p->segments[3].kind, RG_SEG_GAP);
	assert_int_equal(p->segments[4].kind, RG_SEG_STEP);
	assert_int_equal(p->segments[4].step, 2);
	assert_int_equal(p->segments[5].kind, RG_SEG_GAP);
	assert_int_equal(p->data_path_ns, 40);
	rg_path_free(p);
	rg_analysis_free(a);
	mk_free(m);
}

static void the_iteration_nearest_the_median_is_taken(void **state)
{
	struct mk *m = mk_new(1);
	static const int64_t wall[] = { 100, 900, 310, 300, 200, 700, 305 };
	struct rg_analysis *a;
	struct rg_path *p;
	struct rg_error err = RG_ERROR_INIT;

	mk_step(m, "a", "Op", "other", 1, 1);
	for (int i = 0; i < 7; i++) {
		mk_iteration(m, "timing", true, 0, wall[i]);
		if (i != 6) /* the last has no spans and does not count */
			mk_span(m, i, 0, 0, 1, 0, 50);
	}
	a = analyze(m);
	p = find(a); /* median of 100 200 300 310 700 900 is 305 */
	assert_true(p->iteration == 2 || p->iteration == 3);
	rg_path_free(p);
	rg_analysis_free(a);
	m->rec.n_spans = 0;
	a = analyze(m);
	assert_int_equal(rg_path_find(a, &p, &err), -ENODATA);
	assert_true(err.hint[0]);
	rg_analysis_free(a);
	mk_free(m);
}

static void a_serial_chain_obeys_amdahl(void **state)
{
	static const double speedups[] = { 0.5, 1, 1.5, 2, 10, INFINITY };

	stream = rg_rng_stream(1, "amdahl");
	for (int round = 0; round < 50; round++) {
		struct mk *m = mk_new(1);
		struct rg_analysis *a;
		int n = (int)pick(2, 20);
		int64_t t = 100, length[32], gap[32];

		for (int i = 0; i < n; i++) {
			mk_step(m, i == 1 ? "hot" : "x", "Op", "other", 1, 1);
			if (i)
				mk_edge(m, i - 1, i);
			length[i] = pick(1, 1000);
			gap[i] = pick(0, 20);
		}
		for (int k = 0; k < 5; k++) {
			int it = mk_iteration(m, "timing", true, t, 0);

			for (int i = 0; i < n; i++) {
				t += gap[i];
				mk_span(m, it, i, 0, 1, t, t + length[i]);
				t += length[i];
			}
			m->iterations[it].end_ns = t += 7;
		}
		a = analyze(m);
		for (size_t i = 0; i < sizeof(speedups) / sizeof(speedups[0]); i++) {
			struct rg_error err = RG_ERROR_INIT;
			struct rg_whatif w;
			double wall = (double)(m->iterations[0].end_ns - m->iterations[0].start_ns);
			double p = (double)length[1] / wall;

			assert_int_equal(rg_whatif_speedup(a, "hot", speedups[i], &w, &err), 0);
			assert_int_equal(w.n_steps, 1);
			assert_int_equal(w.n_iterations, 5);
			assert_true(fabs(w.share - p) < 1e-12);
			assert_true(fabs(w.before_ns - wall) < 1e-9);
			assert_true(fabs(w.gain - 1 / (1 - p + p / speedups[i])) < 1e-9);
			assert_true(fabs(w.gain - w.amdahl_gain) < 1e-9);
			assert_true(fabs(w.limit_gain - 1 / (1 - p)) < 1e-9);
		}
		rg_analysis_free(a);
		mk_free(m);
	}
}

/* When does span `i` end if the matching steps are faster: by recursion over
 * its dependencies, found anew by trying all spans. */
static double brute_end(const struct mk *m, int it, int i, const char *op, double speedup)
{
	const struct rg_span_row *s = &m->spans[i];
	double ready = 0, length = (double)(s->end_ns - s->start_ns);
	int64_t ready_ns = m->iterations[it].start_ns;

	for (int k = 0; k < m->rec.n_spans; k++) {
		const struct rg_span_row *d = &m->spans[k];
		double e;

		if (k == i || d->iteration != it || d->end_ns > s->start_ns ||
		    !(has_edge(m, d->step, s->step) || d->lane == s->lane))
			continue;
		e = brute_end(m, it, k, op, speedup);
		ready = e > ready ? e : ready;
		ready_ns = d->end_ns > ready_ns ? d->end_ns : ready_ns;
	}
	if (strcmp(m->steps[s->step].op_type, op) == 0)
		length /= speedup;
	return ready + (double)(s->start_ns - ready_ns) + length;
}

/* Medians over iterations of different length must not break the bound. */
static void a_replay_never_beats_amdahl(void **state)
{
	int tried = 0;

	stream = rg_rng_stream(1, "bound");
	for (int round = 0; round < 300; round++) {
		struct mk *m = random_run((int)pick(2, 7), (int)pick(1, 3), (int)pick(1, 8));
		struct rg_error err = RG_ERROR_INIT;
		struct rg_analysis *a = analyze(m);
		struct rg_whatif w;

		if (rg_whatif_speedup(a, "Conv", round % 3 ? (double)pick(2, 20) / 2 : INFINITY, &w, &err) == 0) {
			assert_true(w.gain <= w.amdahl_gain * (1 + 1e-9));
			assert_true(w.amdahl_gain <= w.limit_gain * (1 + 1e-9));
			assert_false(w.cold);
			tried++;
		}
		rg_analysis_free(a);
		mk_free(m);
	}
	assert_true(tried > 100);
}

/* A run stopped before the timing pass has only its first inference. */
static void a_cold_inference_is_called_cold(void **state)
{
	struct mk *m = mk_new(1);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_analysis *a;
	struct rg_whatif w;
	struct rg_path *p;

	mk_step(m, "a", "Op", "other", 1, 1);
	mk_iteration(m, "first", true, 0, 100);
	mk_span(m, 0, 0, 0, 1, 0, 50);
	a = analyze(m);
	p = find(a);
	assert_true(p->cold);
	assert_int_equal(rg_whatif_speedup(a, "a", 2, &w, &err), 0);
	assert_true(w.cold);
	rg_path_free(p);
	rg_analysis_free(a);
	mk_iteration(m, "timing", true, 200, 290);
	mk_span(m, 1, 0, 0, 1, 200, 250);
	a = analyze(m);
	p = find(a);
	assert_false(p->cold);
	assert_int_equal(p->iteration, 1);
	rg_path_free(p);
	rg_analysis_free(a);
	mk_free(m);
}

static void replay_equals_brute_force(void **state)
{
	int tried = 0;

	stream = rg_rng_stream(1, "replay");
	for (int round = 0; round < 200; round++) {
		struct mk *m = random_run((int)pick(2, 7), (int)pick(1, 3), 1);
		struct rg_error err = RG_ERROR_INIT;
		struct rg_analysis *a;
		struct rg_whatif w;
		double end = 0, speedup = (double)pick(1, 8) / 2;
		int64_t last = 0;
		bool zero = false;

		/* Spans of no time could depend on one another in a circle in the
		 * brute force, which knows no order among them. */
		for (int i = 0; i < m->rec.n_spans; i++)
			zero |= m->spans[i].start_ns == m->spans[i].end_ns;
		a = analyze(m);
		if (!zero && rg_whatif_speedup(a, "Conv", speedup, &w, &err) == 0) {
			for (int i = 0; i < m->rec.n_spans; i++) {
				double e = brute_end(m, 0, i, "Conv", speedup);

				end = e > end ? e : end;
				last = m->spans[i].end_ns > last ? m->spans[i].end_ns : last;
			}
			end += (double)(m->iterations[0].end_ns - last);
			assert_true(fabs(w.after_ns - end) < 1e-6);
			if (speedup == 1)
				assert_true(fabs(w.gain - 1) < 1e-12);
			tried++;
		}
		rg_analysis_free(a);
		mk_free(m);
	}
	assert_true(tried > 50);
}

static void an_unknown_operator_lists_close_ones(void **state)
{
	struct mk *m = random_run(6, 1, 1);
	struct rg_analysis *a;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_whatif w;

	m->steps[3].op_type = "MatMul";
	a = analyze(m);
	assert_int_equal(rg_whatif_speedup(a, "matmull", 2, &w, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "'MatMul'"));
	assert_int_equal(rg_whatif_speedup(a, "MatMul", 0, &w, &err), -EINVAL);
	assert_int_equal(rg_whatif_speedup(a, "MatMul", -1, &w, &err), -EINVAL);
	assert_int_equal(rg_whatif_speedup(a, "MatMul", NAN, &w, &err), -EINVAL);
	rg_analysis_free(a);
	mk_free(m);
}

static void every_allocation_may_fail(void **state)
{
	struct mk *m;
	struct rg_analysis *a;

	stream = rg_rng_stream(1, "alloc");
	m = random_run(10, 2, 3);
	a = analyze(m);
	for (uint64_t n = 1;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_path *p;
		struct rg_whatif w;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_path_find(a, &p, &err);
		if (rc == 0)
			rg_path_free(p);
		else
			assert_true(rc == -ENOMEM && rg_alloc_did_fail());
		if (rc == 0) {
			rc = rg_whatif_speedup(a, m->steps[4].name, 2, &w, &err);
			if (rc)
				assert_true(rc == -ENOMEM && rg_alloc_did_fail());
			else if (!rg_alloc_did_fail())
				break;
		}
	}
	rg_alloc_fail_at(0);
	rg_analysis_free(a);
	mk_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_sum_to_the_wall_time),
		cmocka_unit_test(data_path_equals_brute_force),
		cmocka_unit_test(a_busy_lane_is_a_resource_edge),
		cmocka_unit_test(the_iteration_nearest_the_median_is_taken),
		cmocka_unit_test(a_serial_chain_obeys_amdahl),
		cmocka_unit_test(a_replay_never_beats_amdahl),
		cmocka_unit_test(a_cold_inference_is_called_cold),
		cmocka_unit_test(replay_equals_brute_force),
		cmocka_unit_test(an_unknown_operator_lists_close_ones),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
