/*
 * ridge tui: the terminal UI, with a key that records when a model was named.
 */
#include "cmd/verbs.h"
#include "models/model.h"
#include "tui/tui.h"

struct recorder {
	struct rg_args *args;
	struct rg_store *store;
};

static int record(void *ctx, int64_t *run_id, struct rg_error *err)
{
	struct recorder *r = ctx;
	int rc;

	rg_cmd_catch_interrupt();
	rc = rg_session_record(r->store, &r->args->session, run_id, err);
	rg_cmd_progress_end(r->args);
	return rc;
}

int rg_cmd_tui(struct rg_args *a, struct rg_error *err)
{
	const char *what = a->n_positional ? a->positional[0] : NULL;
	bool model = what && rg_model_looks_like(what);
	struct rg_tui_options o = { .run = model ? NULL : what, .db = a->db };
	struct recorder r = { .args = a };

	if ((model ? rg_cmd_open_write(a, &r.store, err) : rg_cmd_open_read(a, &r.store, err)) != 0) {
		rg_cmd_missing_model(what, err);
		return rg_cmd_exit_code(err);
	}
	if (model) {
		a->session.model = what;
		o.record = record;
		o.record_ctx = &r;
	}
	rg_tui_run(r.store, &o, err);
	if (!model)
		rg_cmd_missing_model(what, err);
	rg_store_close(r.store);
	return rg_cmd_exit_code(err);
}
