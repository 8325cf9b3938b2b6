/*
 * Questions about compute: what holds the FLOPs, what binds the dominant
 * operator, what is cheap in FLOPs and dear in time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

void rg_check_compute_type(struct rg_check *c, struct rg_answer *q)
{
	static const char *const kinds[] = {"conv", "gemm", "attention", "elementwise", "norm",    "reduce",
					    "pool", "rnn",  "move",      "quant",       "control", "other"};
	enum { N = sizeof(kinds) / sizeof(kinds[0]) };
	double flops[N] = {0}, share[N] = {0};
	char p1[32], p2[32];
	int best = -1;

	if (!(c->a->flops > 0)) {
		rg_check_unknown(q, "no step has known FLOPs",
				 "a recording that got as far as the plan: ridge record MODEL");
		return;
	}
	for (int i = 0; i < c->a->n_ops; i++) {
		const struct rg_op_stat *op = &c->a->ops[i];
		int k = 0;

		while (k < N - 1 && strcmp(op->step->op_kind, kinds[k]) != 0)
			k++;
		flops[k] += isnan(op->flops) ? 0 : op->flops;
		share[k] += isnan(op->share) ? 0 : op->share;
	}
	for (int k = 0; k < N; k++)
		if (best < 0 || flops[k] > flops[best])
			best = k;
	q->verdict = RG_VERDICT_GOOD;
	q->answer = rg_check_text(c, "%s holds %s of the FLOPs and takes %s of the operator time",
				  kinds[best], rg_check_percent(p1, flops[best] / c->a->flops),
				  rg_check_percent(p2, c->a->ops_total_ns > 0 ? share[best] : NAN));
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT op_kind, SUM(flops), SUM(share_percent) FROM op_time JOIN "
	    "step USING (run_id, step) WHERE run_id = %lld GROUP BY op_kind\"",
	    c->db, (long long)c->rec->run.id);
	for (int k = 0; k < N; k++) {
		if (flops[k] == 0 && share[k] < 0.001)
			continue;
		rg_check_figure(q, rg_check_text(c, "%s_flops_share", kinds[k]), flops[k] / c->a->flops,
				"fraction", RG_PROV_MODELLED);
		if (c->a->ops_total_ns > 0)
			rg_check_figure(q, rg_check_text(c, "%s_time_share", kinds[k]), share[k], "fraction",
					RG_PROV_MEASURED);
	}
}

/* Why the bound of an operator is not known, and what to do. */
static const char *why_unbound(const struct rg_check *c, const struct rg_op_stat *op)
{
	if (isnan(op->flops) || isnan(op->bytes))
		return "a cost formula for this operator, which the operator table lacks; see ridge report";
	if (isnan(c->a->peak.value) || c->a->n_roofs == 0)
		return "ceilings for this number of threads: ridge record measures them unless told not to";
	return "a ceiling for this data type: only float32 is measured in this version";
}

void rg_check_compute_bound(struct rg_check *c, struct rg_answer *q)
{
	static const char *const bounds[] = {"compute", "L1", "L2", "L3", "DRAM", "overhead", "imbalance"};
	enum { N = sizeof(bounds) / sizeof(bounds[0]) };
	const struct rg_analysis *a = c->a;
	int top = rg_check_dominant(c);
	const struct rg_op_stat *op;
	double share[N] = {0};
	char p[32], ridge[64] = "";

	if (top < 0) {
		rg_check_unknown(q, "no operator was timed",
				 "a recording with a timing pass: ridge record MODEL");
		return;
	}
	op = &a->ops[top];
	rg_check_percent(p, op->share);
	if (!op->bound) {
		rg_check_unknown(
		    q,
		    rg_check_text(c, "what binds the dominant operator %s, %s of the time, is not known",
				  rg_check_label(c, op->step), p),
		    why_unbound(c, op));
		return;
	}
	for (int i = 0; i < a->n_ops; i++)
		for (int k = 0; k < N; k++)
			if (a->ops[i].bound && strcmp(a->ops[i].bound, bounds[k]) == 0 &&
			    !isnan(a->ops[i].share))
				share[k] += a->ops[i].share;
	/* DRAM's ridge point says nothing about a step whose data a nearer cache holds */
	if (!isnan(a->ridge_intensity) &&
	    (strcmp(op->bound, "DRAM") == 0 ||
	     (strcmp(op->bound, "compute") == 0 && op->intensity >= a->ridge_intensity)))
		snprintf(ridge, sizeof(ridge), " against a ridge point of %.3g", a->ridge_intensity);
	q->verdict = rg_check_grade(op->headroom, 1.5, 3);
	if (strcmp(op->bound, "overhead") == 0) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "the dominant operator %s, %s of the time, is so small that starting it is what "
		    "costs: fuse steps or use a larger batch",
		    rg_check_label(c, op->step), p);
	} else if (strcmp(op->bound, "imbalance") == 0) {
		q->answer = rg_check_text(
		    c,
		    "the dominant operator %s, %s of the time, waits for its longest lane (%.2f times "
		    "the mean): split it finer; its roof is %.2f times away",
		    rg_check_label(c, op->step), p, op->imbalance, op->headroom);
	} else {
		if (op->above_roof) /* a ceiling that is beaten judges nothing */
			q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "the dominant operator %s, %s of the time, is bound by %s (%.3g flop/byte%s) and "
		    "takes %.2f times its roof%s",
		    rg_check_label(c, op->step), p, op->bound, op->intensity, ridge, op->headroom,
		    op->above_roof ? ": faster than the roof allows, so a ceiling or a cost is wrong"
		    : q->verdict == RG_VERDICT_GOOD ? ""
						    : ": a better kernel would pay");
	}
	rg_check_words(q, "operator", op->step->name, RG_PROV_MEASURED);
	rg_check_words(q, "bound", op->bound, RG_PROV_MODELLED);
	rg_check_figure(q, "time_ns", op->time_ns, "ns", RG_PROV_MEASURED);
	rg_check_figure(q, "roof_ns", op->roof_ns, "ns", RG_PROV_MODELLED);
	rg_check_figure(q, "headroom", op->headroom, "", RG_PROV_MODELLED);
	rg_check_figure(q, "intensity", op->intensity, "flop/byte", RG_PROV_MODELLED);
	rg_check_figure(q, "ridge_intensity", a->ridge_intensity, "flop/byte", RG_PROV_MEASURED);
	rg_check_figure(q, "flop_rate", op->flop_rate, "flop/s", RG_PROV_MEASURED);
	rg_check_figure(q, "imbalance", op->imbalance, "", RG_PROV_MEASURED);
	for (int k = 0; k < N; k++)
		if (share[k] > 0)
			rg_check_figure(q, rg_check_text(c, "time_share_bound_by_%s", bounds[k]), share[k],
					"fraction", RG_PROV_MODELLED);
}

/* A batch normalisation at inference is a multiply and an add an element. */
static bool is_pointwise(const struct rg_step_row *s)
{
	return strcmp(s->op_kind, "elementwise") == 0 || strcmp(s->op_type, "BatchNormalization") == 0;
}

/*
 * Whether a pointwise step could be computed where its input is made: one of
 * its inputs is made by a step, read by nobody else, and no output of the graph.
 */
static bool could_fuse(const struct rg_check *c, const int *readers, const int *maker, int step, int first_io)
{
	const struct rg_recording *rec = c->rec;

	for (int i = first_io; i < rec->n_io && rec->io[i].step == step; i++) {
		int t = rec->io[i].tensor;

		if (!rec->io[i].output && maker[t] > 0 && readers[t] == 1 && !rec->tensors[t].is_output)
			return true;
	}
	return false;
}

void rg_check_compute_cheap(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	const struct rg_recording *rec = c->rec;
	int *readers = rg_arena_alloc(c->arena, (size_t)rec->n_tensors, sizeof(*readers));
	int *maker = rg_arena_alloc(c->arena, (size_t)rec->n_tensors, sizeof(*maker)); /* step + 1 */
	double share = 0, flops = 0, saved_ns = 0;
	int n = 0, fusable = 0, worst = -1;
	char p1[32], p2[32], saved[32];

	if (!readers || !maker) {
		c->failed = true;
		return;
	}
	if (!(a->ops_total_ns > 0)) {
		rg_check_unknown(q, "no operator was timed",
				 "a recording with a timing pass: ridge record MODEL");
		return;
	}
	for (int i = 0; i < rec->n_io; i++) {
		if (rec->io[i].output)
			maker[rec->io[i].tensor] = rec->io[i].step + 1;
		else
			readers[rec->io[i].tensor]++;
	}
	for (int i = 0, io = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[i];
		double arithmetic_ns =
		    isnan(a->peak.value) || isnan(op->flops) ? 0 : op->flops / a->peak.value * 1e9;

		while (io < rec->n_io && rec->io[io].step < i)
			io++;
		if (!rg_check_kind_is_cheap(op->step->op_kind) || isnan(op->time_ns))
			continue;
		n++;
		share += op->share;
		flops += isnan(op->flops) ? 0 : op->flops;
		if (worst < 0 || op->time_ns > a->ops[worst].time_ns)
			worst = i;
		if (is_pointwise(op->step) && could_fuse(c, readers, maker, i, io)) {
			fusable++;
			saved_ns += fmax(0, op->time_ns - arithmetic_ns);
		}
	}
	q->verdict = rg_check_grade(share, 0.1, 0.3);
	rg_check_percent(p1, share);
	rg_check_percent(p2, a->flops > 0 ? flops / a->flops : NAN);
	rg_fmt_ns(saved, saved_ns);
	if (n == 0)
		q->answer = "no step is elementwise, a normalisation, a reduction or a move of data";
	else
		q->answer = rg_check_text(
		    c,
		    "%d elementwise, normalising, reducing and moving steps take %s of the time for %s "
		    "of the FLOPs, most of all %s; %d of them could be fused into the step that feeds "
		    "them, which would save up to %s an inference",
		    n, p1, p2, rg_check_label(c, a->ops[worst].step), fusable, saved);
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT op_kind, op_time.* FROM op_time JOIN step USING (run_id, "
	    "step) WHERE run_id = %lld ORDER BY time_ns DESC\"",
	    c->db, (long long)rec->run.id);
	rg_check_figure(q, "steps", n, "", RG_PROV_MEASURED);
	rg_check_figure(q, "time_share", share, "fraction", RG_PROV_MEASURED);
	rg_check_figure(q, "flops_share", a->flops > 0 ? flops / a->flops : NAN, "fraction",
			RG_PROV_MODELLED);
	rg_check_figure(q, "fusable_steps", fusable, "", RG_PROV_MODELLED);
	rg_check_figure(q, "saved_at_most_ns", saved_ns, "ns", RG_PROV_MODELLED);
}
