/*
 * ridge check: the checklist, of a run that is there or of a model that is
 * recorded first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/verbs.h"
#include "models/model.h"

static int print_check(struct rg_args *a, struct rg_store *s, const char *ref, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;
	struct rg_checklist *c = NULL;
	struct rg_str out = { 0 };

	if (rg_cmd_load(s, ref, &rec, &an, err) == 0 && rg_check_run(an, a->db, &c, err) == 0) {
		if (rg_report_check(&out, an, c, &st) != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_checklist_free(c);
	rg_analysis_free(an);
	rg_recording_free(rec);
	return rg_cmd_exit_code(err);
}

int rg_cmd_check(struct rg_args *a, struct rg_error *err)
{
	const char *what = a->n_positional ? a->positional[0] : "last";
	bool model = rg_model_looks_like(what);
	struct rg_store *s = NULL;
	int64_t run_id = -1;
	char ref[24];
	int rc;

	if (a->plan_only) {
		if (rg_cmd_plan(a, a->n_positional ? what : NULL, &s, err) != 0)
			return rg_cmd_exit_code(err);
		rc = print_check(a, s, "last", err);
		rg_store_close(s);
		return rc;
	}
	if ((model ? rg_cmd_open_write(a, &s, err) : rg_cmd_open_read(a, &s, err)) != 0) {
		rg_cmd_missing_model(what, err);
		return rg_cmd_exit_code(err);
	}
	if (model) {
		a->session.model = what;
		rg_cmd_catch_interrupt();
		rc = rg_session_record(s, &a->session, &run_id, err);
		rg_cmd_progress_end(a);
		if (run_id >= 0 && (rc == 0 || rc == RG_EINTERRUPTED))
			rg_cmd_recorded(a, s, run_id);
		if (rc != 0) {
			rg_store_close(s);
			return rg_cmd_exit_code(err);
		}
		snprintf(ref, sizeof(ref), "%" PRId64, run_id);
		what = ref;
	}
	rc = print_check(a, s, what, err);
	if (!model)
		rg_cmd_missing_model(what, err);
	rg_store_close(s);
	return rc;
}
