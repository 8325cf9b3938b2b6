/*
 * The five dimensions and the changes that would buy the most.
 *
 * What a step takes above its roof is lost, and each loss is given to one
 * dimension only, so that they can be added: first what uneven or idle lanes
 * explain (parallelism), the rest by what the roof says (compute or data
 * movement), and all of it where the step is so small that starting it is what
 * costs (scheduling, with the gaps of the critical path). A step without a known
 * roof loses nothing that is known. Where steps as a whole beat their roof, the
 * roof was measured too low, and what they lose is unknown, not nothing. headroom is the speed-up of the
 * whole inference if the dimension lost nothing (Amdahl), ceiling the fraction of the inference that it
 * loses.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/alloc.h"
#include "base/str.h"

enum { COMPUTE, MOVEMENT, PARALLELISM, PRECISION, SCHEDULING, DIMENSIONS };

static const char *const names[DIMENSIONS] = {"compute", "data movement", "parallelism", "precision",
					      "scheduling"};

struct losses {
	double lost_ns[DIMENSIONS];
	double of_step_ns[DIMENSIONS]; /* the largest loss of one step */
	int step[DIMENSIONS];          /* which that is; -1 none */
	double time_ns[DIMENSIONS];    /* operator time counted there */
	double roof_ns[DIMENSIONS];
	double gaps_ns; /* of the critical path; NAN */
	bool any_roof;
};

/* Faster than the roof by more than rounding: then the roof says nothing. */
static bool roof_is_beaten(const struct losses *l, int d)
{
	return l->roof_ns[d] > 1.05 * l->time_ns[d];
}

static void lose(struct losses *l, int dimension, int step, double ns)
{
	if (!(ns > 0))
		return;
	l->lost_ns[dimension] += ns;
	if (ns > l->of_step_ns[dimension]) {
		l->of_step_ns[dimension] = ns;
		l->step[dimension] = step;
	}
}

/* What even work on all lanes would save. A step without shares of lanes ran on
 * one lane alone. */
static double uneven_ns(const struct rg_analysis *a, const struct rg_op_stat *op)
{
	int lanes = a->rec->run.threads;

	if (lanes < 2)
		return 0;
	if (isnan(op->imbalance))
		return op->time_ns * (1 - 1.0 / lanes);
	return op->time_ns * (1 - 1 / op->imbalance);
}

static void attribute(const struct rg_check *c, struct losses *l)
{
	const struct rg_analysis *a = c->a;

	for (int d = 0; d < DIMENSIONS; d++)
		l->step[d] = -1;
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[i];
		double loss = op->time_ns - op->roof_ns, uneven;
		int rest;

		if (isnan(loss) || !op->bound)
			continue;
		l->any_roof = true;
		if (strcmp(op->bound, "overhead") == 0) {
			lose(l, SCHEDULING, i, loss);
			continue;
		}
		rest = op->flops > 0 && op->flops / a->peak.value * 1e9 >= op->roof_ns * (1 - 1e-9)
			   ? COMPUTE
			   : MOVEMENT;
		l->time_ns[rest] += op->time_ns;
		l->roof_ns[rest] += op->roof_ns;
		if (loss <= 0)
			continue;
		uneven = fmin(uneven_ns(a, op), loss);
		lose(l, PARALLELISM, i, uneven);
		lose(l, rest, i, loss - uneven);
	}
	l->gaps_ns = NAN;
	if (c->path) {
		l->gaps_ns = 0;
		for (int i = 0; i < c->path->n_segments; i++)
			if (c->path->segments[i].kind == RG_SEG_GAP)
				l->gaps_ns +=
				    (double)(c->path->segments[i].end_ns - c->path->segments[i].start_ns);
		l->lost_ns[SCHEDULING] += l->gaps_ns;
	}
}

static const char *gain_text(struct rg_check *c, double saved_ns, double wall_ns)
{
	char ns[32];

	rg_fmt_ns(ns, saved_ns);
	return rg_check_text(c, "saves up to %s, %.2fx on the whole", ns,
			     wall_ns > saved_ns ? wall_ns / (wall_ns - saved_ns) : INFINITY);
}

static void describe(struct rg_check *c, const struct losses *l, double wall_ns, int d,
		     struct rg_dimension *out)
{
	const struct rg_analysis *a = c->a;
	const struct rg_op_stat *op = l->step[d] < 0 ? NULL : &a->ops[l->step[d]];
	char p1[32], p2[32];

	rg_check_percent(p1, l->time_ns[d] / a->ops_total_ns);
	rg_check_percent(p2, l->time_ns[d] > 0 ? l->roof_ns[d] / l->time_ns[d] : NAN);
	switch (d) {
	case COMPUTE:
	case MOVEMENT:
		if (l->time_ns[d] == 0)
			out->stands = d == COMPUTE ? "no step is bound by arithmetic"
						   : "no step is bound by a memory level";
		else
			out->stands = rg_check_text(
			    c, "steps bound by %s take %s of the operator time and reach %s of their roof%s",
			    d == COMPUTE ? "arithmetic" : "a memory level", p1, p2,
			    roof_is_beaten(l, d)
				? ": that roof was measured too low (a busy machine?) or the "
				  "costs are wrong, so record again"
				: "");
		if (op)
			out->change =
			    rg_check_text(c, "a better kernel for %s, now %.40s at %.2f times its roof: %s",
					  rg_check_label(c, op->step), op->step->kernel, op->headroom,
					  gain_text(c, l->of_step_ns[d], wall_ns));
		break;
	case PARALLELISM:
		if (a->rec->run.threads < 2)
			out->stands = "the run used one thread, so nothing can be uneven; record with more "
				      "--threads to see what they buy";
		else
			out->stands =
			    rg_check_text(c, "uneven or idle lanes cost %s of the time on %d threads",
					  rg_check_percent(p1, l->lost_ns[d] / wall_ns), a->rec->run.threads);
		if (op)
			out->change = rg_check_text(
			    c, "%s %s: %s", isnan(op->imbalance) ? "run on all lanes" : "split more evenly",
			    rg_check_label(c, op->step), gain_text(c, l->of_step_ns[d], wall_ns));
		break;
	case SCHEDULING:
		if (isnan(l->gaps_ns))
			out->stands = "no spans were recorded, so the time between steps is not known";
		else
			out->stands = rg_check_text(
			    c,
			    "the time between steps is %s of an inference, and steps so small that starting "
			    "them is what costs lose another %s",
			    rg_check_percent(p1, l->gaps_ns / wall_ns),
			    rg_check_percent(p2, (l->lost_ns[d] - l->gaps_ns) / wall_ns));
		if (l->lost_ns[d] > 0)
			out->change = rg_check_text(c, "fewer steps, by fusing small ones: %s",
						    gain_text(c, l->lost_ns[d], wall_ns));
		break;
	default:
		out->stands = "one precision was run, so what another would buy is not known";
	}
}

static void fill_dimensions(struct rg_check *c, const struct losses *l, double wall_ns,
			    struct rg_checklist *out)
{
	double best = 1;

	out->binding = -1;
	for (int d = 0; d < DIMENSIONS; d++) {
		struct rg_dimension *dim = &out->dimensions[d];
		bool known =
		    d != PRECISION && wall_ns > 0 && (d == SCHEDULING ? !isnan(l->gaps_ns) : l->any_roof);

		*dim = (struct rg_dimension){.name = names[d],
					     .verdict = RG_VERDICT_UNKNOWN,
					     .ceiling = NAN,
					     .headroom = NAN,
					     .stands = "",
					     .change = ""};
		if (!known && d != PRECISION) {
			dim->stands = d == SCHEDULING
					  ? "no spans were recorded, so the time between steps is not known"
					  : "no step has both a time and a roof: record with ceilings (ridge "
					    "record MODEL)";
			continue;
		}
		describe(c, l, wall_ns, d, dim);
		if (!known || roof_is_beaten(l, d))
			continue;
		dim->ceiling = fmin(l->lost_ns[d] / wall_ns, 1);
		dim->headroom = dim->ceiling < 1 ? 1 / (1 - dim->ceiling) : INFINITY;
		dim->verdict = rg_check_grade(dim->headroom, 1.1, 1.5);
		if (dim->headroom > best) {
			best = dim->headroom;
			out->binding = d;
		}
	}
}

/* Steps of one type on one kernel are one change: the same work mends them all. */
struct change {
	const struct rg_step_row *largest;
	double saved_ns, time_ns, roof_ns;
	int n;
};

static void fill_changes(struct rg_check *c, const struct losses *l, double wall_ns, struct rg_checklist *out)
{
	const struct rg_analysis *a = c->a;
	struct change *v = rg_arena_alloc(c->arena, (size_t)a->n_ops, sizeof(*v));
	bool gaps_told = false;
	int n = 0;

	if (!v) {
		c->failed = true;
		return;
	}
	for (int i = 0; i < a->n_ops; i++) { /* longest first, so the first of a group is its largest */
		const struct rg_op_stat *op = &a->ops[c->order[i]];
		double saved = op->time_ns - op->roof_ns;
		int k = 0;

		if (isnan(saved))
			continue;
		while (k < n && (strcmp(v[k].largest->op_type, op->step->op_type) != 0 ||
				 strcmp(v[k].largest->kernel, op->step->kernel) != 0))
			k++;
		if (k == n)
			v[n++].largest = op->step;
		v[k].n++;
		v[k].saved_ns += fmax(saved, 0);
		v[k].time_ns += op->time_ns;
		v[k].roof_ns += op->roof_ns;
	}
	while (out->n_changes < 3 && wall_ns > 0) {
		double least = 0.01 * wall_ns;
		int best = -1;

		for (int k = 0; k < n; k++)
			if (v[k].saved_ns > (best < 0 ? least : v[best].saved_ns))
				best = k;
		if (!gaps_told && l->gaps_ns > (best < 0 ? least : v[best].saved_ns)) {
			gaps_told = true;
			out->changes[out->n_changes++] =
			    rg_check_text(c, "shorten the time between steps, by fewer of them: %s",
					  gain_text(c, l->gaps_ns, wall_ns));
			continue;
		}
		if (best < 0)
			break;
		out->changes[out->n_changes++] =
		    rg_check_text(c,
				  "bring %.40s on kernel %.40s (%d step%s, the largest %s) from %.2f times "
				  "its roof to the roof: %s",
				  v[best].largest->op_type, v[best].largest->kernel, v[best].n,
				  v[best].n == 1 ? "" : "s", rg_check_label(c, v[best].largest),
				  v[best].time_ns / v[best].roof_ns, gain_text(c, v[best].saved_ns, wall_ns));
		v[best].saved_ns = 0;
	}
}

void rg_check_summarise(struct rg_check *c, struct rg_checklist *out)
{
	struct losses l = {.gaps_ns = NAN};
	/* Steps were timed with the hook on: against the shorter time without it,
	 * their sum could exceed the whole. */
	double wall_ns = c->path ? fmax(c->wall_ns, (double)c->path->wall_ns) : c->wall_ns;

	attribute(c, &l);
	fill_dimensions(c, &l, wall_ns, out);
	fill_changes(c, &l, wall_ns, out);
}
