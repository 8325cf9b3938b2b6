/*
 * ridge report: where the time of one run went, or (--static) what a plan says;
 * --compiler: what graph passes did.
 */
#include "cmd/verbs.h"

int rg_cmd_report(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_store *s = NULL;
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;
	struct rg_str out = { 0 };

	if ((a->plan_only ? rg_cmd_plan(a, a->positional[0], &s, err) : rg_cmd_open_read(a, &s, err)) != 0)
		return rg_cmd_exit_code(err);
	if (rg_cmd_load(s, a->plan_only ? "last" : a->positional[0], &rec, &an, err) == 0) {
		if ((a->compiler ? rg_report_compiler : rg_report_run)(&out, an, &st) != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_analysis_free(an);
	rg_recording_free(rec);
	rg_store_close(s);
	return rg_cmd_exit_code(err);
}
