/*
 * ridge record: runs, measures, keeps; then says in a paragraph what came of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/verbs.h"
#include "reports/json.h"

/* With fewer samples the 99th percentile is the largest of them, or a guess. */
#define P99_MIN 100

/* Whether a command needs --db to find the database again. */
static bool needs_db(const char *db)
{
	const char *env = getenv("RIDGE_DB");

	return strcmp(db, env && *env ? env : "ridge.db") != 0;
}

void rg_cmd_recorded(const struct rg_args *a, struct rg_store *s, int64_t run_id)
{
	struct rg_error ignored = RG_ERROR_INIT;
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;
	char ref[24], median[32], p99[32];
	struct rg_str option = { 0 };
	const char *db;

	if (a->quiet)
		return;
	if (needs_db(a->db)) {
		rg_str_add(&option, " --db ");
		rg_str_shell(&option, a->db);
	}
	db = rg_str_text(&option);
	snprintf(ref, sizeof(ref), "%" PRId64, run_id);
	fprintf(stderr, "run %s", ref);
	if (a->session.tag && *a->session.tag)
		fprintf(stderr, " (%s)", a->session.tag);
	/* The summary is a courtesy: the run is in the database whatever comes of it. */
	if (rg_cmd_load(s, ref, &rec, &an, &ignored) == 0) {
		fprintf(stderr, " of %s is %s", rec->run.model_name, rg_run_status_name(rec->run.status));
		if (an->n_latency > 0)
			fprintf(stderr, ": median %s%s%s over %d inference%s with %d thread%s",
				rg_fmt_ns(median, an->p50.value), an->n_latency >= P99_MIN ? ", P99 " : "",
				an->n_latency >= P99_MIN ? rg_fmt_ns(p99, an->p99.value) : "", an->n_latency,
				an->n_latency == 1 ? "" : "s", rec->run.threads,
				rec->run.threads == 1 ? "" : "s");
		if (isfinite(an->overhead.value))
			fprintf(stderr, "; with over without instrumentation %.4f", an->overhead.value);
		if (isfinite(an->overhead.value) && isfinite(an->overhead.low) && isfinite(an->overhead.high))
			fprintf(stderr, " [%.4f, %.4f]", an->overhead.low, an->overhead.high);
	}
	fprintf(stderr, ". Kept in %s.\nNext:  ridge report %s%s   ridge plot roofline %s%s   "
			"ridge check %s%s\n", a->db, ref, db, ref, db, ref, db);
	rg_str_free(&option);
	rg_analysis_free(an);
	rg_recording_free(rec);
}

int rg_cmd_record(struct rg_args *a, struct rg_error *err)
{
	struct rg_error second = RG_ERROR_INIT;
	struct rg_str out = { 0 };
	struct rg_store *s = NULL;
	int64_t run_id = -1;
	int rc;

	a->session.model = a->positional[0];
	if (rg_cmd_open_write(a, &s, err) != 0)
		return rg_cmd_exit_code(err);
	rg_cmd_catch_interrupt();
	rc = rg_session_record(s, &a->session, &run_id, err);
	rg_cmd_progress_end(a);
	if (run_id >= 0 && (rc == 0 || rc == RG_EINTERRUPTED))
		rg_cmd_recorded(a, s, run_id);
	if (run_id >= 0 && rc == RG_EINTERRUPTED && needs_db(a->db)) {
		struct rg_str db = { 0 };

		rg_str_shell(&db, a->db);
		rg_error_hint(err, "look at it:  ridge report %" PRId64 " --db %s", run_id, rg_str_text(&db));
		rg_str_free(&db);
	}
	if (run_id >= 0 && a->format == RG_FORMAT_JSON) {
		struct rg_json j;

		rg_json_init(&j);
		rg_json_int(&j, j.root, "run", run_id);
		rg_json_text(&j, j.root, "tag", a->session.tag && *a->session.tag ? a->session.tag : NULL);
		rg_json_text(&j, j.root, "db", a->db);
		rg_json_text(&j, j.root, "status",
				 rc == 0                 ? "complete"
				 : rc == RG_EINTERRUPTED ? "interrupted"
							 : "failed");
		if (rg_json_finish(&j, &out) != 0)
			rg_error_nomem(&second, out.len);
		else
			rg_cmd_print(rg_str_text(&out), &second);
	}
	rg_str_free(&out);
	rg_store_close(s);
	/* The first error is the one that matters. */
	if (err->code == 0 && second.code != 0)
		*err = second;
	return rg_cmd_exit_code(err);
}
