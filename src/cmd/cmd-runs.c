/*
 * ridge runs: what is in the database.
 */
#include "cmd/verbs.h"

int rg_cmd_runs(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_store *s = NULL;
	struct rg_run *runs = NULL;
	struct rg_str out = { 0 };
	int n = 0;

	if (rg_cmd_open_read(a, &s, err) != 0)
		return rg_cmd_exit_code(err);
	if (rg_store_list_runs(s, &runs, &n, err) == 0) {
		if (rg_report_runs(&out, runs, n, &st) != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
	return rg_cmd_exit_code(err);
}
