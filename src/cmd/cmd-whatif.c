/*
 * ridge whatif: an operator made faster, replayed.
 */
#include "cmd/verbs.h"

int rg_cmd_whatif(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_store *s = NULL;
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;
	struct rg_whatif w;
	struct rg_str out = { 0 };

	if (!a->op) {
		rg_error_set(err, RG_EUSAGE, "ridge whatif needs --op NAME");
		rg_error_hint(
			err,
			"ridge report lists the operators; an operator type (Conv) stands for all of that type");
		return rg_cmd_exit_code(err);
	}
	if (rg_cmd_open_read(a, &s, err) != 0)
		return rg_cmd_exit_code(err);
	if (rg_cmd_load(s, a->positional[0], &rec, &an, err) == 0 &&
		rg_whatif_speedup(an, a->op, a->speedup, &w, err) == 0) {
		if (rg_report_whatif(&out, an, a->op, &w, &st) != 0)
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
