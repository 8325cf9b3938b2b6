/*
 * Questions about the compiler: fusion, layout, folding.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "analyzer/fusion.h"
#include "base/str.h"

/* "epilogue 82, hard-swish 72"; what there is beyond `most` is counted together. */
static const char *list_groups(struct rg_check *c, const struct rg_fusion_group *g, int n, int most)
{
	const char *text = "";
	int rest = 0;

	for (int i = 0; i < n; i++) {
		if (i < most)
			text = rg_check_text(c, "%s%s%s %d", text, i ? ", " : "", g[i].name, g[i].count);
		else
			rest += g[i].count;
	}
	return rest ? rg_check_text(c, "%s, others %d", text, rest) : text;
}

/* How much of the time goes into steps that fusing is about: those that do little arithmetic for the bytes
 * they move. */
static double cheap_share(const struct rg_analysis *a)
{
	double share = 0;

	if (!(a->ops_total_ns > 0))
		return NAN;
	for (int i = 0; i < a->n_ops; i++)
		if (rg_check_kind_is_cheap(a->ops[i].step->op_kind) && !isnan(a->ops[i].share))
			share += a->ops[i].share;
	return share;
}

static const struct rg_fusions *fusions(struct rg_check *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_fusions *f = NULL;

	if (!c->fusions && rg_fusions_new(c->rec, &f, &err))
		c->failed = true;
	if (f)
		c->fusions = f;
	return c->fusions;
}

/* A run without passes says nothing about what they could do; only planning it again does. */
static void not_tried(struct rg_check *c, struct rg_answer *q, const char *what)
{
	rg_check_unknown(
	    q, rg_check_text(c, "%s was not tried: graph passes did not run (--optimize 0)", what),
	    rg_check_text(c,
			  "a recording with passes: ridge record %s --optimize 3; without running it: "
			  "ridge report --static %s --compiler",
			  c->rec->run.model, c->rec->run.model));
}

void rg_check_compiler_fusion(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_fusions *f = fusions(c);
	double steps = rg_recording_number(c->rec, "plan.steps"),
	       before = rg_recording_number(c->rec, "plan.steps_before");
	double share = cheap_share(c->a);
	const char *from = "", *left = "";
	char p[32];

	if (!f)
		return;
	if (f->level < 0 || isnan(steps)) {
		rg_check_unknown(q, "the recording does not say which graph passes ran",
				 "a recording that got as far as the plan: ridge record MODEL");
		return;
	}
	if (f->level == 0) {
		not_tried(c, q, "fusing");
		return;
	}
	if (!isnan(before))
		from = rg_check_text(c, " instead of %.0f", before);
	if (f->n_left)
		left = rg_check_text(
		    c,
		    "; %d pairs of steps stayed two: %s; the most frequent with an example: %s behind %s, "
		    "'%s' behind '%s' (%s)",
		    f->n_left, list_groups(c, f->reasons, f->n_reasons, 5), f->pairs[0].op_type,
		    *f->pairs[0].into_type ? f->pairs[0].into_type : "another", f->pairs[0].example->node,
		    f->pairs[0].example->into, f->pairs[0].name);
	q->verdict = f->n_left == 0 ? RG_VERDICT_GOOD :
		     isnan(share)   ? RG_VERDICT_ATTENTION :
				      rg_check_grade(share, 0.1, 0.3);
	q->answer = rg_check_text(
	    c,
	    "%.0f steps%s: %d rewrites (%s)%s; element-wise steps, moves and norms that are left take %s of "
	    "the time",
	    steps, from, f->n_done, f->n_done ? list_groups(c, f->passes, f->n_passes, 5) : "none", left,
	    rg_check_percent(p, share));
	q->evidence =
	    rg_check_text(c, "ridge report --compiler %lld%s", (long long)c->rec->run.id, c->db_option);
	rg_check_figure(q, "fused", f->n_done, "", RG_PROV_MODELLED);
	rg_check_figure(q, "not_fused", f->n_left, "", RG_PROV_MODELLED);
	rg_check_figure(q, "steps", steps, "", RG_PROV_MODELLED);
	rg_check_figure(q, "steps_before", before, "", RG_PROV_MODELLED);
	rg_check_figure(q, "cheap_time_share", share, "fraction", RG_PROV_MEASURED);
}

/* Rewrites of one pass. */
static int count_pass(const struct rg_fusions *f, const char *pass)
{
	for (int i = 0; i < f->n_passes; i++)
		if (!strcmp(f->passes[i].name, pass))
			return f->passes[i].count;
	return 0;
}

void rg_check_compiler_layout(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	const struct rg_fusions *f = fusions(c);
	double share = 0, bytes = 0;
	int n = 0;
	char p[32], b[32];

	if (!f)
		return;
	if (a->n_ops == 0) {
		rg_check_unknown(q, "the recording holds no steps",
				 "a recording that got as far as the plan: ridge record MODEL");
		return;
	}
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[i];

		if (strcmp(op->step->op_type, "Transpose") != 0)
			continue;
		n++;
		share += isnan(op->share) ? 0 : op->share;
		bytes += isnan(op->bytes) ? 0 : op->bytes;
	}
	rg_fmt_bytes(b, bytes);
	q->verdict = n == 0                ? RG_VERDICT_GOOD
		     : a->ops_total_ns > 0 ? rg_check_grade(share, 0.02, 0.15)
					   : RG_VERDICT_ATTENTION;
	if (n == 0)
		q->answer = "no layout transform is left, which is the least possible";
	else
		q->answer = rg_check_text(
		    c,
		    "%d transposes are left, which move %s and take %s of the time; the least possible was "
		    "not computed%s",
		    n, b, rg_check_percent(p, a->ops_total_ns > 0 ? share : NAN),
		    f->level == 0 ? ", and taking them together was not tried (--optimize 0)" :
		    f->level > 0  ? rg_check_text(c, "; %d met others and went",
						  count_pass(f, "transpose-merge")) :
				    "");
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT step, name, shape, read_bytes + write_bytes FROM step WHERE run_id "
	    "= %lld AND op_type = 'Transpose'\"",
	    c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "transposes", n, "", RG_PROV_MODELLED);
	rg_check_figure(q, "moved_bytes", bytes, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "time_share", a->ops_total_ns > 0 ? share : NAN, "fraction", RG_PROV_MEASURED);
	rg_check_figure(q, "least_possible", n == 0 ? 0 : NAN, "", RG_PROV_MODELLED);
}

/* Steps all inputs of which are constants (and which have some). */
static int count_constant_steps(struct rg_check *c, int *first)
{
	const struct rg_recording *rec = c->rec;
	int n = 0, i = 0;

	*first = -1;
	while (i < rec->n_io) {
		int step = rec->io[i].step, inputs = 0, constant = 0;

		for (; i < rec->n_io && rec->io[i].step == step; i++) {
			if (rec->io[i].output)
				continue;
			inputs++;
			constant += strcmp(rec->tensors[rec->io[i].tensor].place, "const") == 0;
		}
		if (inputs == 0 || constant < inputs)
			continue;
		if (n++ == 0)
			*first = step;
	}
	return n;
}

void rg_check_compiler_folding(struct rg_check *c, struct rg_answer *q)
{
	double folded = rg_recording_number(c->rec, "plan.folded"),
	       dead = rg_recording_number(c->rec, "plan.dead");
	double views = rg_recording_number(c->rec, "plan.views");
	const struct rg_fusions *f = fusions(c);
	const char *twice = "duplicates were not looked for (--optimize 0)";
	int first, left;

	if (!f)
		return;
	if (f->level > 0)
		twice = rg_check_text(c, "constants and nodes that were there twice: %d",
				      count_pass(f, "common"));
	else if (f->level < 0)
		twice = "whether duplicates were looked for is not known";

	if (isnan(folded) || isnan(dead)) {
		rg_check_unknown(q, "what was folded is not known",
				 "a recording that got as far as the plan: ridge record MODEL");
		return;
	}
	left = count_constant_steps(c, &first);
	q->verdict = left ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	if (left)
		q->answer = rg_check_text(
		    c,
		    "nodes folded: %.0f, dead ones removed: %.0f, but %d steps still compute from "
		    "constants alone, first %s; %s",
		    folded, dead, left, rg_check_label(c, &c->rec->steps[first]), twice);
	else
		q->answer = rg_check_text(
		    c,
		    "nodes folded: %.0f, dead ones removed: %.0f, and no step is left that computes "
		    "from constants alone; %s",
		    folded, dead, twice);
	q->evidence =
	    rg_check_text(c, "sqlite3 %s \"SELECT kind, subject, text FROM note WHERE run_id = %lld\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_fact(c, q, "folded", "plan.folded");
	rg_check_fact(c, q, "dead", "plan.dead");
	rg_check_figure(q, "views", views, "", RG_PROV_MODELLED);
	rg_check_figure(q, "constant_steps_left", left, "", RG_PROV_MODELLED);
	rg_check_figure(q, "duplicates", f->level > 0 ? count_pass(f, "common") : NAN, "", RG_PROV_MODELLED);
}
