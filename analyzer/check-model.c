/*
 * Questions about the model: its size, its shapes, what dominates.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

static const char no_steps[] = "the recording holds no steps";
static const char record_again[] = "a recording that got as far as the plan: ridge record MODEL";

void rg_check_model_size(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	const struct rg_fact *params = rg_recording_fact(c->rec, "model.params");
	char count[32], flops[32], batch[32] = "an unknown batch size", share[32];
	double unknown_share = 0;

	if (isnan(a->params) && isnan(a->flops)) {
		rg_check_unknown(q, "neither parameters nor FLOPs of this run are known", record_again);
		return;
	}
	for (int i = 0; i < a->n_ops; i++)
		if (isnan(a->ops[i].flops) && !isnan(a->ops[i].share))
			unknown_share += a->ops[i].share;
	if (isnan(a->params))
		strcpy(count, "an unknown number of");
	else
		rg_fmt_count(count, (int64_t)fmin(a->params, 9e18));
	if (a->batch > 0)
		snprintf(batch, sizeof(batch), "batch %lld", (long long)a->batch);
	rg_fmt_si(flops, a->flops, "flop");
	q->verdict = a->n_unknown_cost ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	if (a->n_unknown_cost && !(a->ops_total_ns > 0))
		q->answer = rg_check_text(
		    c,
		    "%s parameters; one forward pass at %s does at least %s: the cost of %d of "
		    "%d steps is unknown, and none was timed",
		    count, batch, flops, a->n_unknown_cost, a->n_ops);
	else if (a->n_unknown_cost)
		q->answer = rg_check_text(
		    c,
		    "%s parameters; one forward pass at %s does at least %s: the cost of %d of "
		    "%d steps, %s of the time, is unknown",
		    count, batch, flops, a->n_unknown_cost, a->n_ops, rg_check_percent(share, unknown_share));
	else
		q->answer =
		    rg_check_text(c, "%s parameters; one forward pass at %s does %s", count, batch, flops);
	rg_check_figure(q, "params", a->params, "", params ? params->provenance : RG_PROV_MODELLED);
	rg_check_figure(q, "flops", a->flops, "flop", RG_PROV_MODELLED);
	rg_check_figure(q, "sfu", a->sfu, "op", RG_PROV_MODELLED);
	rg_check_figure(q, "batch", a->batch > 0 ? (double)a->batch : NAN, "", RG_PROV_DECLARED);
	rg_check_figure(q, "steps_of_unknown_cost", a->n_unknown_cost, "", RG_PROV_MODELLED);
}

static bool is_degenerate(const struct rg_step_row *s)
{
	return s->gemm_m == 1 || s->gemm_n == 1;
}

/* "1x512x1x1": two spatial dimensions, both 1. */
static bool has_no_space(const char *shape)
{
	size_t len = strlen(shape);
	int dims = 1;

	for (const char *p = shape; *p; p++)
		dims += *p == 'x';
	return dims == 4 && len > 4 && strcmp(shape + len - 4, "x1x1") == 0;
}

void rg_check_model_shapes(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	int gemms = 0, degenerate = 0, bare = 0, spaceless = 0, worst = -1;
	double share = 0, bare_share = 0;
	char percent[32];

	if (a->n_ops == 0) {
		rg_check_unknown(q, no_steps, record_again);
		return;
	}
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[c->order[i]];

		spaceless += has_no_space(op->step->shape);
		if (op->step->gemm_m < 0)
			continue;
		gemms++;
		if (!is_degenerate(op->step))
			continue;
		degenerate++;
		share += isnan(op->share) ? 0 : op->share;
		if (op->step->special_form)
			continue;
		bare++;
		bare_share += isnan(op->share) ? 0 : op->share;
		if (worst < 0)
			worst = c->order[i];
	}
	q->verdict = rg_check_grade(bare_share, 0.02, 0.2);
	if (degenerate == 0) {
		q->answer = rg_check_text(c, "none of the %d matrix-like steps has M or N of 1", gemms);
	} else if (worst < 0) {
		q->answer =
		    rg_check_text(c,
				  "%d of %d matrix-like steps have M or N of 1, and the kernel of each has a "
				  "form for it",
				  degenerate, gemms);
	} else {
		const struct rg_step_row *s = a->ops[worst].step;

		q->answer = rg_check_text(
		    c,
		    "%d of %d matrix-like steps have M or N of 1; for %d of them, %s of the time, "
		    "the kernel has no special form, first %s with M=%lld N=%lld K=%lld by %.40s: "
		    "a larger batch or a vector kernel would help",
		    degenerate, gemms, bare, rg_check_percent(percent, bare_share), rg_check_label(c, s),
		    (long long)s->gemm_m, (long long)s->gemm_n, (long long)s->gemm_k, s->kernel);
	}
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT step, name, shape, kernel, gemm_m, gemm_n, gemm_k, "
			  "special_form FROM step WHERE run_id = %lld AND 1 IN (gemm_m, gemm_n)\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "batch", a->batch > 0 ? (double)a->batch : NAN, "", RG_PROV_DECLARED);
	rg_check_figure(q, "matrix_steps", gemms, "", RG_PROV_MODELLED);
	rg_check_figure(q, "degenerate_steps", degenerate, "", RG_PROV_MODELLED);
	rg_check_figure(q, "degenerate_share", a->ops_total_ns > 0 ? share : NAN, "fraction",
			RG_PROV_MEASURED);
	rg_check_figure(q, "without_special_form", bare, "", RG_PROV_MODELLED);
	rg_check_figure(q, "without_special_form_share", a->ops_total_ns > 0 ? bare_share : NAN, "fraction",
			RG_PROV_MEASURED);
	rg_check_figure(q, "steps_with_spatial_1x1", spaceless, "", RG_PROV_MODELLED);
}

/* The operator type with the largest sum of what `get` gives, its sum, and the
 * single largest step of all. */
static const char *dominant_type(const struct rg_analysis *a, double (*get)(const struct rg_op_stat *),
				 double *sum, double *total, int *largest)
{
	const char *best = NULL;

	*total = 0;
	*sum = 0;
	*largest = -1;
	for (int i = 0; i < a->n_ops; i++) {
		double v = get(&a->ops[i]), of_type = 0;
		bool first = true;

		if (!isnan(v))
			*total += v;
		if (v > 0 && (*largest < 0 || v > get(&a->ops[*largest])))
			*largest = i;
		for (int j = 0; j < i && first; j++)
			first = strcmp(a->ops[j].step->op_type, a->ops[i].step->op_type) != 0;
		for (int j = i; j < a->n_ops && first; j++)
			if (strcmp(a->ops[j].step->op_type, a->ops[i].step->op_type) == 0 &&
			    get(&a->ops[j]) > 0)
				of_type += get(&a->ops[j]);
		if (of_type > *sum) {
			*sum = of_type;
			best = a->ops[i].step->op_type;
		}
	}
	return best;
}

static double get_params(const struct rg_op_stat *op)
{
	return op->step->params < 0 ? NAN : (double)op->step->params;
}

static double get_flops(const struct rg_op_stat *op)
{
	return op->flops;
}

void rg_check_model_dominant(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double params, all_params, flops, all_flops;
	int big_params, big_flops;
	const char *by_params = dominant_type(a, get_params, &params, &all_params, &big_params);
	const char *by_flops = dominant_type(a, get_flops, &flops, &all_flops, &big_flops);
	char p1[32], p2[32], p3[32], p4[32];

	if (!by_flops) {
		rg_check_unknown(q, "no step has known FLOPs", record_again);
		return;
	}
	rg_check_percent(p3, flops / all_flops);
	rg_check_percent(p4, a->ops[big_flops].flops / all_flops);
	if (!by_params) {
		q->verdict = RG_VERDICT_GOOD;
		q->answer =
		    rg_check_text(c,
				  "%.40s holds %s of the FLOPs, the largest being %s with %s; no step has "
				  "parameters",
				  by_flops, p3, rg_check_label(c, a->ops[big_flops].step), p4);
	} else {
		bool same = strcmp(by_params, by_flops) == 0;

		rg_check_percent(p1, params / all_params);
		rg_check_percent(p2, get_params(&a->ops[big_params]) / all_params);
		q->verdict = same ? RG_VERDICT_GOOD : RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "parameters: %.40s holds %s, the largest being %s with %s; FLOPs: %.40s holds "
		    "%s, the largest being %s with %s%s",
		    by_params, p1, rg_check_label(c, a->ops[big_params].step), p2, by_flops, p3,
		    rg_check_label(c, a->ops[big_flops].step), p4,
		    same ? "" : "; they are not the same: shrinking the one will not speed up the other");
		rg_check_words(q, "params_type", by_params, RG_PROV_MODELLED);
		rg_check_figure(q, "params_type_share", params / all_params, "fraction", RG_PROV_MODELLED);
		rg_check_words(q, "params_largest", a->ops[big_params].step->name, RG_PROV_MODELLED);
	}
	rg_check_words(q, "flops_type", by_flops, RG_PROV_MODELLED);
	rg_check_figure(q, "flops_type_share", flops / all_flops, "fraction", RG_PROV_MODELLED);
	rg_check_words(q, "flops_largest", a->ops[big_flops].step->name, RG_PROV_MODELLED);
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT op_type, SUM(params), SUM(flops) FROM step WHERE "
			  "run_id = %lld GROUP BY op_type ORDER BY 3 DESC\"",
			  c->db, (long long)c->rec->run.id);
}
