/*
 * Questions about performance: latency and its tail, throughput, energy.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/alloc.h"
#include "base/str.h"

static const char need_timing[] = "a recording with a timing pass: ridge record MODEL";

/*
 * What makes the tail: over the slowest twentieth of the inferences with spans,
 * which step, or the time between steps (-1), is longest above its usual time.
 * Returns false when fewer than 40 were recorded.
 */
static bool find_tail(struct rg_check *c, int *culprit, double *excess_ns, double *share, int *n_slow)
{
	const struct rg_recording *rec = c->rec;
	const struct rg_analysis *a = c->a;
	double *wall = rg_arena_alloc(c->arena, (size_t)rec->n_iterations, sizeof(*wall));
	double *sorted = rg_arena_alloc(c->arena, (size_t)rec->n_iterations, sizeof(*sorted));
	double *sum = rg_arena_alloc(c->arena, (size_t)rec->n_steps + 1, sizeof(*sum));
	double limit, median, all = 0, between = 0;
	int n = 0;

	if (!wall || !sorted || !sum) {
		c->failed = true;
		return false;
	}
	for (int i = 0; i < rec->n_iterations; i++)
		wall[i] = NAN;
	for (int64_t i = 0; i < rec->n_spans; i++) {
		const struct rg_iteration_row *it = &rec->iterations[rec->spans[i].iteration];

		if (strcmp(it->pass, "timing") != 0 || !isnan(wall[it->index]))
			continue;
		wall[it->index] = (double)(it->end_ns - it->start_ns);
		sorted[n++] = wall[it->index];
	}
	if (n < 40)
		return false;
	rg_stats_sort(sorted, (size_t)n);
	limit = rg_stats_quantile_sorted(sorted, (size_t)n, 0.95);
	median = rg_stats_quantile_sorted(sorted, (size_t)n, 0.5);
	*n_slow = 0;
	for (int i = 0; i < rec->n_iterations; i++) {
		if (wall[i] >= limit) {
			++*n_slow;
			all += wall[i] - median;
			between += wall[i];
		}
	}
	for (int64_t i = 0; i < rec->n_spans; i++) {
		const struct rg_span_row *s = &rec->spans[i];

		if (s->whole && wall[s->iteration] >= limit) {
			sum[s->step] += (double)(s->end_ns - s->start_ns);
			between -= (double)(s->end_ns - s->start_ns);
		}
	}
	/* Between steps, usually: the median inference less the median steps. */
	*culprit = -1;
	*excess_ns = between / *n_slow - (median - a->ops_total_ns);
	for (int i = 0; i < rec->n_steps; i++) {
		double excess = sum[i] / *n_slow - a->ops[i].time_ns;

		if (excess > *excess_ns) {
			*excess_ns = excess;
			*culprit = i;
		}
	}
	*share = all > 0 ? *excess_ns / (all / *n_slow) : NAN;
	return *excess_ns > 0 && *share > 0;
}

void rg_check_performance_latency(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double spread = a->p99.value / a->p50.value, excess_ns = NAN, share = NAN;
	char p50[32], p95[32], p99[32], low[32], high[32], percent[32];
	const char *tail = "";
	int culprit = -1, n_slow = 0;
	bool known = false;

	if (a->n_latency == 0) {
		rg_check_unknown(q, "no inference was timed", need_timing);
		return;
	}
	known = find_tail(c, &culprit, &excess_ns, &share, &n_slow);
	if (known)
		tail = rg_check_text(
		    c, "; in the slowest 5 %% of the traced ones %s makes %s of what they take longer",
		    culprit < 0 ? "the time between steps" : rg_check_label(c, c->a->ops[culprit].step),
		    rg_check_percent(percent, share));
	rg_fmt_ns(p50, a->p50.value);
	rg_fmt_ns(p95, a->p95.value);
	rg_fmt_ns(p99, a->p99.value);
	rg_fmt_ns(low, a->p50.low);
	rg_fmt_ns(high, a->p50.high);
	q->verdict = rg_check_grade(spread, 1.25, 2);
	/* Without a bound on P99 it is an anecdote. */
	if (q->verdict == RG_VERDICT_GOOD && isnan(a->p99.high))
		q->verdict = RG_VERDICT_ATTENTION;
	q->answer = rg_check_text(
	    c, "median %s (95 %% interval %s to %s), P95 %s, P99 %s over %d inferences%s%s", p50, low, high,
	    p95, p99, a->n_latency, tail,
	    isnan(a->p99.high) ? "; too few to bound P99: about 370 are needed, with --iterations" : "");
	q->evidence = rg_check_text(c, "ridge plot tail %lld -o tail.svg%s", (long long)c->rec->run.id,
				    c->db_option);
	rg_check_figure(q, "p50_ns", a->p50.value, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p50_low_ns", a->p50.low, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p50_high_ns", a->p50.high, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p95_ns", a->p95.value, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p95_low_ns", a->p95.low, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p95_high_ns", a->p95.high, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p99_ns", a->p99.value, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p99_low_ns", a->p99.low, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "p99_high_ns", a->p99.high, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "n", a->n_latency, "", RG_PROV_MEASURED);
	rg_check_figure(q, "p99_over_p50", spread, "", RG_PROV_MEASURED);
	rg_check_figure(q, "tail_excess_ns", known ? excess_ns : NAN, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "tail_share", known ? share : NAN, "fraction", RG_PROV_MEASURED);
}

void rg_check_performance_throughput(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	int top = rg_check_dominant(c);
	const struct rg_op_stat *op = top < 0 ? NULL : &a->ops[top];
	double samples = a->batch > 0 ? a->throughput_per_s * (double)a->batch : NAN;
	double reached = op && op->headroom > 0 ? 1 / op->headroom : NAN;
	char per_s[32], per_sample[32], percent[32], where[96] = "";

	if (isnan(a->throughput_per_s)) {
		rg_check_unknown(q, "no inference was timed", need_timing);
		return;
	}
	rg_fmt_si(per_s, a->throughput_per_s, "");
	if (a->batch > 0)
		snprintf(where, sizeof(where), " at batch %lld (%s samples/s)", (long long)a->batch,
			 rg_fmt_si(per_sample, samples, ""));
	rg_check_percent(percent, reached);
	if (isnan(reached)) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "%s inferences/s%s; where the dominant operator stands under its Roofline is not known",
		    per_s, where);
	} else {
		q->verdict = op->above_roof ? RG_VERDICT_ATTENTION : rg_check_grade(op->headroom, 1.5, 3);
		q->answer = rg_check_text(
		    c, "%s inferences/s%s; the dominant operator %s reaches %s of its Roofline (bound: %s%s)",
		    per_s, where, rg_check_label(c, op->step), percent, op->bound,
		    op->above_roof ? "; more than all of it: a ceiling or a cost is wrong" : "");
	}
	q->evidence = rg_check_text(c, "ridge plot roofline %lld -o roofline.svg%s", (long long)c->rec->run.id,
				    c->db_option);
	rg_check_figure(q, "inferences_per_s", a->throughput_per_s, "1/s", RG_PROV_MEASURED);
	rg_check_figure(q, "samples_per_s", samples, "1/s", RG_PROV_MEASURED);
	rg_check_figure(q, "batch", a->batch > 0 ? (double)a->batch : NAN, "", RG_PROV_DECLARED);
	rg_check_figure(q, "dominant_over_roofline", reached, "fraction", RG_PROV_MODELLED);
	rg_check_figure(q, "flop_rate", a->flops * a->throughput_per_s, "flop/s", RG_PROV_MEASURED);
}

void rg_check_performance_energy(struct rg_check *c, struct rg_answer *q)
{
	rg_check_unknown(q, "energy was not measured",
			 "an energy pass, which this version does not make; whether this machine "
			 "has energy counters says  ridge doctor");
	rg_check_figure(q, "energy_j", NAN, "J", RG_PROV_UNAVAILABLE);
}
