/*
 * Questions about the compiler: fusion, layout, folding.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

void rg_check_compiler_fusion(struct rg_check *c, struct rg_answer *q)
{
	rg_check_unknown(q, "no operators were fused: this version has no fusion pass",
			 "a fusion pass that says why a pair did not fuse; what fusing could save stands "
			 "under compute.cheap");
}

void rg_check_compiler_layout(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double share = 0, bytes = 0;
	int n = 0;
	char p[32], b[32];

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
		    "not computed",
		    n, b, rg_check_percent(p, a->ops_total_ns > 0 ? share : NAN));
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
	int first, left;

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
		    "constants alone, first %s; duplicates were not looked for",
		    folded, dead, left, rg_check_label(c, &c->rec->steps[first]));
	else
		q->answer = rg_check_text(
		    c,
		    "nodes folded: %.0f, dead ones removed: %.0f, and no step is left that computes "
		    "from constants alone; duplicates were not looked for",
		    folded, dead);
	q->evidence =
	    rg_check_text(c, "sqlite3 %s \"SELECT kind, subject, text FROM note WHERE run_id = %lld\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_fact(c, q, "folded", "plan.folded");
	rg_check_fact(c, q, "dead", "plan.dead");
	rg_check_figure(q, "views", views, "", RG_PROV_MODELLED);
	rg_check_figure(q, "constant_steps_left", left, "", RG_PROV_MODELLED);
}
