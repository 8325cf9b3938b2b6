/*
 * Questions about the runtime: slow paths, copies, the memory planner.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

static const char need_timing[] = "a recording with a timing pass: ridge record MODEL";

static int count_kernel(const struct rg_analysis *a, const char *kernel)
{
	int n = 0;

	for (int i = 0; i < a->n_ops; i++)
		n += strcmp(a->ops[i].step->kernel, kernel) == 0;
	return n;
}

void rg_check_runtime_fallback(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	const char *types[3];
	struct rg_str list = {0};
	double share = 0;
	int n = 0, n_types = 0, none = count_kernel(a, "none"), dynamic = count_kernel(a, "dynamic");
	enum rg_provenance from = a->ops_total_ns > 0 ? RG_PROV_MEASURED : RG_PROV_MODELLED;
	char p[32];

	if (a->n_ops == 0) {
		rg_check_unknown(q, "the recording holds no steps", need_timing);
		return;
	}
	for (int i = 0; i < a->n_ops; i++) { /* longest first */
		const struct rg_op_stat *op = &a->ops[c->order[i]];
		bool listed = false;

		if (strcmp(op->step->kernel, "ref") != 0)
			continue;
		n++;
		share += isnan(op->share) ? 0 : op->share;
		for (int k = 0; k < n_types; k++)
			listed |= strcmp(types[k], op->step->op_type) == 0;
		if (!listed && n_types < 3)
			types[n_types++] = op->step->op_type;
	}
	for (int k = 0; k < n_types; k++)
		rg_str_printf(&list, "%s%.40s", k ? ", " : "", types[k]);
	c->failed |= list.failed;
	rg_check_percent(p, share);
	if (none > 0)
		q->answer = rg_check_text(c, "%d of %d steps have no kernel at all, so the model cannot run here; of the "
					  "others %d are to run on the reference kernel", none, a->n_ops, n);
	else if (n == 0 && dynamic > 0)
		q->answer = rg_check_text(c, "none of the %d planned steps is on the reference kernel; the kernels of %d "
					  "dynamic steps are chosen as they run and are not known", a->n_ops - dynamic,
					  dynamic);
	else if (n == 0)
		q->answer = rg_check_text(c, "none of the %d steps %s on the reference kernel", a->n_ops,
					  a->ops_total_ns > 0 ? "ran" : "is to run");
	else if (!(a->ops_total_ns > 0))
		q->answer = rg_check_text(
		    c, "%d of %d steps run on the scalar reference kernel, first of type %s; none was timed",
		    n, a->n_ops, rg_str_text(&list));
	else
		q->answer = rg_check_text(
		    c,
		    "%d of %d steps ran on the scalar reference kernel and take %s of the time, most in "
		    "%s: these types want a kernel first",
		    n, a->n_ops, p, rg_str_text(&list));
	q->verdict = none > 0              ? RG_VERDICT_PROBLEM
		     : n == 0 && dynamic > 0 ? RG_VERDICT_UNKNOWN
		     : n == 0              ? RG_VERDICT_GOOD
		     : a->ops_total_ns > 0 ? rg_check_grade(share, 0.01, 0.1)
					   : RG_VERDICT_ATTENTION;
	if (q->verdict == RG_VERDICT_UNKNOWN)
		q->missing = "kernels of dynamic steps are not recorded";
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT step, name, op_type, time_ns, share_percent FROM op_time "
	    "WHERE run_id = %lld AND kernel = 'ref' ORDER BY time_ns DESC\"",
	    c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "reference_steps", n, "", from);
	rg_check_figure(q, "steps_without_kernel", none, "", from);
	rg_check_figure(q, "dynamic_steps", dynamic, "", from);
	rg_check_figure(q, "steps", a->n_ops, "", from);
	rg_check_figure(q, "time_share", a->ops_total_ns > 0 ? share : NAN, "fraction", RG_PROV_MEASURED);
	rg_str_free(&list);
}

/* Operators that only give bytes another shape: a view would do. */
static bool is_reshape(const char *op_type)
{
	static const char *const types[] = {"Reshape",   "Flatten",  "Squeeze",
					    "Unsqueeze", "Identity", "Dropout"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(op_type, types[i]) == 0)
			return true;
	return false;
}

void rg_check_runtime_copies(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double share = 0, bytes = 0, reshape_bytes = 0, staged_ns = NAN;
	int n = 0, reshapes = 0;
	char p[32], b[32], b2[32];

	if (!(a->ops_total_ns > 0)) {
		rg_check_unknown(q, "no operator was timed", need_timing);
		return;
	}
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[i];

		if (strcmp(op->step->op_kind, "move") != 0)
			continue;
		n++;
		share += isnan(op->share) ? 0 : op->share;
		bytes += isnan(op->bytes) ? 0 : op->bytes;
		if (is_reshape(op->step->op_type)) {
			reshapes++;
			reshape_bytes += isnan(op->bytes) ? 0 : op->bytes;
		}
	}
	for (int i = 0; i < c->rec->n_phases; i++)
		if (strcmp(c->rec->phases[i].name, "stage") == 0)
			staged_ns = (double)(c->rec->phases[i].end_ns - c->rec->phases[i].start_ns);
	rg_check_percent(p, share);
	rg_fmt_bytes(b, bytes);
	rg_fmt_bytes(b2, reshape_bytes);
	q->verdict = rg_check_grade(share, 0.02, 0.15);
	if (n == 0)
		q->answer = "no step only moves data";
	else
		q->answer = rg_check_text(
		    c,
		    "%d steps only move data: %s an inference and %s of the time; %d of them (%s) are "
		    "reshapes that a view would replace",
		    n, b, p, reshapes, b2);
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT step, name, op_type, read_bytes + write_bytes FROM step WHERE "
	    "run_id = %lld AND op_kind = 'move' ORDER BY 4 DESC\"",
	    c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "moving_steps", n, "", RG_PROV_MEASURED);
	rg_check_figure(q, "moved_bytes", bytes, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "time_share", share, "fraction", RG_PROV_MEASURED);
	rg_check_figure(q, "reshapes_left", reshapes, "", RG_PROV_MODELLED);
	rg_check_figure(q, "reshaped_bytes", reshape_bytes, "bytes", RG_PROV_MODELLED);
	rg_check_fact(c, q, "views", "plan.views");
	rg_check_figure(q, "input_staging_ns", staged_ns, "ns", RG_PROV_MEASURED);
}

/* Share of the operator time that steps on the dynamic path take; NAN: not timed. */
static double dynamic_share(const struct rg_check *c)
{
	double share = 0;

	for (int i = 0; i < c->a->n_ops; i++)
		if (strcmp(c->a->ops[i].step->kernel, "dynamic") == 0)
			share += c->a->ops[i].share;
	return share;
}

/* Some steps were not planned: which, why, and what it costs. */
static void answer_dynamic(struct rg_check *c, struct rg_answer *q, double steps, const char *arena, const char *bound)
{
	const struct rg_note_row *first = NULL;
	double share = dynamic_share(c);
	char percent[32];

	for (int i = 0; i < c->rec->n_notes && !first; i++)
		if (strcmp(c->rec->notes[i].kind, "dynamic") == 0)
			first = &c->rec->notes[i];
	q->verdict = RG_VERDICT_ATTENTION;
	q->answer = rg_check_text(
	    c,
	    "%.0f of %d steps take the dynamic path, %s of the operator time: shapes, kernels and memory are found "
	    "as they run; first '%.60s' (%.120s). The rest is planned: arena %s, lower bound %s",
	    steps, c->a->n_ops, rg_check_percent(percent, share), first ? first->subject : "?",
	    first ? first->text : "the reason was not kept", arena, bound);
	rg_check_figure(q, "dynamic_share", share, "fraction", RG_PROV_MEASURED);
}

void rg_check_runtime_planner(struct rg_check *c, struct rg_answer *q)
{
	double dynamic = rg_recording_number(c->rec, "plan.dynamic"); /* NAN: older than the dynamic path */
	double arena = rg_recording_number(c->rec, "plan.arena_bytes");
	double bound = rg_recording_number(c->rec, "plan.arena_lower_bound_bytes");
	double bound_inputs = rg_recording_number(c->rec, "plan.bound_inputs"), ratio;
	const char *first = NULL;
	char b[2][32];

	if (isnan(arena) || isnan(bound_inputs)) {
		rg_check_unknown(q, "what the memory planner did is not known",
				 "a recording that got as far as the plan: ridge record MODEL");
		return;
	}
	for (int i = 0; i < c->rec->n_notes && !first; i++)
		if (strcmp(c->rec->notes[i].kind, "bound-input") == 0)
			first = c->rec->notes[i].subject;
	rg_fmt_bytes(b[0], arena);
	rg_fmt_bytes(b[1], bound);
	ratio = bound > 0 ? arena / bound : NAN;
	q->verdict = bound_inputs > 0 || ratio > 1.2 ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	if (dynamic > 0)
		answer_dynamic(c, q, dynamic, b[0], b[1]);
	else if (bound_inputs > 0)
		q->answer = rg_check_text(
		    c,
		    "every shape was known when memory was planned (arena %s, lower bound %s), because "
		    "%.0f input%s%s%.60s%s bound to the value of this recording: with another value the plan "
		    "does not hold",
		    b[0], b[1], bound_inputs, bound_inputs == 1 ? "" : "s", first ? ", first '" : "",
		    first ? first : "",
		    first               ? bound_inputs == 1 ? "', was" : "', were"
		    : bound_inputs == 1 ? " was"
					: " were");
	else
		q->answer = rg_check_text(
		    c,
		    "every shape was known when memory was planned and nothing took a dynamic path: arena "
		    "%s, lower bound %s%s",
		    b[0], b[1], ratio > 1.2 ? ": more than a fifth above it is lost to fragments" : "");
	q->evidence = rg_check_text(
	    c,
	    "sqlite3 %s \"SELECT key, value, unit FROM fact WHERE run_id = %lld AND key LIKE "
	    "'plan.%%'\"",
	    c->db, (long long)c->rec->run.id);
	rg_check_fact(c, q, "arena_bytes", "plan.arena_bytes");
	rg_check_fact(c, q, "arena_lower_bound_bytes", "plan.arena_lower_bound_bytes");
	rg_check_figure(q, "arena_over_lower_bound", ratio, "", RG_PROV_MODELLED);
	rg_check_fact(c, q, "planner", "plan.planner");
	rg_check_fact(c, q, "arena_strategy", "plan.arena_strategy");
	rg_check_fact(c, q, "bound_inputs", "plan.bound_inputs");
	rg_check_fact(c, q, "dynamic_steps", "plan.dynamic");
}
