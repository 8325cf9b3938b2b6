/*
 * Writing and loading: what goes in comes out, rules hold, hostile databases
 * give errors, every allocation may fail.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "make-run.h"
#include "store/internal.h"

static char dir[64], path[128];

static int make_dir(void **state)
{
	/* In memory where possible: thousands of commits are waited for here. */
	strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ridge-store-XXXXXX" : "/tmp/ridge-store-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/ridge.db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char name[160];

	rg_alloc_fail_at(0);
	snprintf(name, sizeof(name), "rm -rf '%s'", dir);
	return system(name);
}

static struct rg_store *open_db(enum rg_store_mode mode)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;

	if (rg_store_open(path, mode, &s, &err))
		fail_msg("%s: %s (%s)", err.where, err.message, err.hint);
	return s;
}

/* Runs SQL past all rules, as someone with an editor could. */
static void tamper(const char *sql)
{
	sqlite3 *db;
	char *why = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF", NULL, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}

static int64_t whole_run(struct rg_store *s, const char *tag)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t id;

	assert_int_equal(run_begin(s, tag, &id, &err), 0);
	assert_int_equal(run_iterate(s, id, 0, 6, &err), 0);
	assert_int_equal(run_iterate(s, id, 6, 4, &err), 0);
	assert_int_equal(rg_store_end_run(s, id, RG_RUN_COMPLETE, "", &err), 0);
	return id;
}

static void what_goes_in_comes_out(void **state)
{
	struct rg_store *s = open_db(RG_STORE_WRITE);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_recording *r;
	int64_t id = whole_run(s, "base");

	rg_store_close(s);
	s = open_db(RG_STORE_READ);
	assert_int_equal(rg_store_load(s, id, &r, &err), 0);
	assert_string_equal(r->run.tag, "base");
	assert_string_equal(r->run.model_sha256, "");
	assert_int_equal(r->run.seed, -7);
	assert_int_equal(r->run.warmup_iterations, -1);
	assert_int_equal(r->run.iterations, 10);
	assert_int_equal(r->run.duration_ns, -1);
	assert_int_equal(r->run.status, RG_RUN_COMPLETE);
	assert_true(r->run.ended_unix_ns > 1700000000000000000);
	assert_int_equal(r->run.n_iterations, 5);           /* the odd ones: 501 503 505 507 509 */
	assert_true(r->run.p50_ns == 505);
	assert_int_equal(r->n_facts, 5);
	assert_string_equal(rg_recording_text(r, "machine.cpu", ""), "A CPU");
	assert_int_equal(rg_recording_fact(r, "model.params")->integer, INT64_MAX);
	assert_true(rg_recording_number(r, "session.span_cost_ns") == 31.25);
	assert_int_equal(rg_recording_fact(r, "energy.joules")->kind, 3);
	assert_string_equal(rg_recording_fact(r, "energy.joules")->text, "no counter opens");
	assert_int_equal(rg_recording_fact(r, "process.load")->kind, 3); /* NaN is missing */
	assert_int_equal(rg_recording_fact(r, "process.load")->provenance, RG_PROV_UNAVAILABLE);
	assert_true(isnan(rg_recording_number(r, "nothing")));
	assert_true(isnan(rg_recording_number(r, "machine.cpu")));
	assert_int_equal(r->n_ceilings, 2);
	assert_true(r->ceilings[0].value == 1e11 && isnan(r->ceilings[1].value));
	assert_int_equal(r->ceilings[0].working_set_bytes, -1);
	assert_string_equal(r->ceilings[1].when, "after");
	assert_int_equal(r->n_tensors, 4);
	assert_int_equal(r->tensors[3].alias_of, 2);
	assert_int_equal(r->tensors[3].last_step, 2);       /* "until after the last" is the last */
	assert_true(r->tensors[1].is_param && r->tensors[0].is_input && r->tensors[3].is_output);
	assert_int_equal(r->n_steps, 3);
	assert_int_equal(r->steps[0].gemm_k, 4);
	assert_int_equal(r->steps[2].flops, -1);
	assert_int_equal(r->steps[0].iops, 0);              /* 0 stays 0 */
	assert_true(r->steps[2].special_form);
	assert_int_equal(r->steps[1].scratch_offset_bytes, 128);
	assert_int_equal(r->steps[2].scratch_offset_bytes, -1);
	assert_string_equal(r->steps[2].domain, "com.example");
	assert_int_equal(r->n_io, 8);
	assert_int_equal(r->n_edges, 2);                    /* read twice, needed once */
	assert_int_equal(r->n_phases, 2);
	assert_int_equal(r->n_iterations, 10);
	assert_int_equal(r->n_spans, 5 * RUN_SPANS_PER_ITERATION);
	for (int64_t i = 1; i < r->n_spans; i++)
		assert_true(r->spans[i].iteration > r->spans[i - 1].iteration ||
			    (r->spans[i].iteration == r->spans[i - 1].iteration &&
			     r->spans[i].start_ns >= r->spans[i - 1].start_ns));
	assert_int_equal(r->n_notes, 1);
	assert_string_equal(r->notes[0].subject, "shape");
	rg_recording_free(r);
	assert_int_equal(rg_store_load(s, 99, &r, &err), -ENOENT);
	assert_int_equal(rg_store_begin_run(s, &(struct rg_run){ .threads = 1 }, &id, &err), -EROFS);
	rg_store_close(s);
}

static void runs_are_found_by_last_number_and_tag(void **state)
{
	struct rg_store *s = open_db(RG_STORE_WRITE);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_run *runs;
	int64_t id, a, b, c;
	int n;

	assert_int_equal(rg_store_find_run(s, "last", &id, &err), -ENOENT);
	assert_non_null(strstr(err.message, "no runs"));
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(n, 0);
	rg_store_free_runs(runs, n);
	a = whole_run(s, "x");
	b = whole_run(s, "x");
	assert_int_equal(run_begin(s, "", &c, &err), 0);
	assert_int_equal(rg_store_find_run(s, "last", &id, &err), 0);
	assert_int_equal(id, c);
	assert_int_equal(rg_store_find_run(s, NULL, &id, &err), 0);
	assert_int_equal(id, c);
	assert_int_equal(rg_store_find_run(s, "x", &id, &err), 0);
	assert_int_equal(id, b);
	assert_int_equal(rg_store_find_run(s, "1", &id, &err), 0);
	assert_int_equal(id, a);
	assert_int_equal(rg_store_find_run(s, "77", &id, &err), -ENOENT);
	assert_int_equal(rg_store_find_run(s, "nobody", &id, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "'x'"));
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(runs[0].id, c);
	assert_int_equal(runs[0].status, RG_RUN_RECORDING); /* by this process */
	assert_true(isnan(runs[0].p50_ns));
	assert_int_equal(runs[2].status, RG_RUN_COMPLETE);
	assert_string_equal(runs[2].tag, "x");
	rg_store_free_runs(runs, n);
	rg_store_close(s);
	/* Opened anew it is still recording: its process is alive. */
	s = open_db(RG_STORE_WRITE);
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(runs[0].status, RG_RUN_RECORDING);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
}

static void rules_of_the_schema_hold(void **state)
{
	struct rg_store *s = open_db(RG_STORE_WRITE);
	struct rg_error err = RG_ERROR_INIT;
	int64_t id, other;
	struct rg_fact f = { "machine.cpu", 0, "another", 0, 0, "", RG_PROV_DECLARED, "" };
	struct rg_iteration_row it = { 5, "timing", true, 10, 20 };
	struct rg_span_row sp = { 0, 0, 0, 1, 1, 2 };
	struct rg_phase_row backward = { "x", 20, 10 };
	struct rg_recording *r;

	assert_int_equal(run_begin(s, "t", &id, &err), 0);
	assert_int_equal(rg_store_begin_run(s, &(struct rg_run){ .tag = "last", .threads = 1 }, &other, &err), -EINVAL);
	assert_int_equal(rg_store_begin_run(s, &(struct rg_run){ .tag = "12", .threads = 1 }, &other, &err), -EINVAL);
	assert_int_equal(rg_store_begin_run(s, &(struct rg_run){ .threads = 0 }, &other, &err), -EINVAL);
	assert_int_equal(rg_store_put_facts(s, id, &f, 1, &err), -EEXIST); /* written once */
	assert_non_null(strstr(err.message, "machine.cpu"));
	assert_int_equal(rg_store_put_facts(s, 55, &f, 1, &err), -EINVAL); /* no such run */
	assert_int_equal(rg_store_put_phases(s, id, &backward, 1, &err), -EINVAL);
	assert_int_equal(rg_store_put_iterations(s, id, &it, 1, NULL, 0, &err), -EINVAL); /* a gap in numbers */
	it.index = 0;
	sp.step = 3;
	assert_int_equal(rg_store_put_iterations(s, id, &it, 1, &sp, 1, &err), -EINVAL); /* no such step */
	it.pass = "lunch";
	assert_int_equal(rg_store_put_iterations(s, id, &it, 1, NULL, 0, &err), -EINVAL);
	/* Nothing of what was refused is there, not even the iteration of a bad span. */
	assert_int_equal(rg_store_load(s, id, &r, &err), 0);
	assert_int_equal(r->n_iterations, 0);
	assert_int_equal(r->n_phases, 2);
	rg_recording_free(r);
	assert_int_equal(rg_store_end_run(s, id, RG_RUN_FAILED, "no reason", &err), 0);
	assert_int_equal(rg_store_end_run(s, id, RG_RUN_COMPLETE, "", &err), -EEXIST);
	rg_store_close(s);
}

static void facts_are_never_updated(void **state)
{
	static const char *const tables[] = { "run SET tag = 'x'", "run_end SET message = 'x'", "fact SET unit = 'x'",
		"ceiling SET level = 'x'", "tensor SET name = 'x'", "step SET name = 'x'", "step_io SET slot = slot",
		"data_edge SET tensor = tensor", "phase SET name = 'x'", "iteration SET end_ns = end_ns",
		"span SET lane = lane", "note SET text = 'x'" };
	sqlite3 *db;

	rg_store_close(({ struct rg_store *s = open_db(RG_STORE_WRITE); whole_run(s, "t"); s; }));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char sql[80];

		snprintf(sql, sizeof(sql), "UPDATE %s", tables[i]);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_CONSTRAINT);
	}
	sqlite3_close(db);
}

static double query(const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *st;
	double v;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	v = sqlite3_column_double(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return v;
}

static void views_say_what_the_program_says(void **state)
{
	struct rg_store *s = open_db(RG_STORE_WRITE);
	struct rg_error err = RG_ERROR_INIT;
	int64_t id;

	whole_run(s, "t");
	assert_int_equal(run_begin(s, "open", &id, &err), 0);
	rg_store_close(s);
	assert_true(query("SELECT p50_ns FROM latency WHERE run_id = 1") == 505);
	assert_true(fabs(query("SELECT p95_ns FROM latency WHERE run_id = 1") - 508.6) < 1e-9); /* type 7: 507 + 0.8 * 2 */
	assert_true(query("SELECT n FROM latency WHERE run_id = 1") == 5);
	assert_true(query("SELECT time_ns FROM op_time WHERE run_id = 1 AND step = 1") == 90);
	assert_true(fabs(query("SELECT SUM(share_percent) FROM op_time WHERE run_id = 1") - 100) < 1e-9);
	assert_true(query("SELECT n FROM op_time WHERE run_id = 1 AND step = 0") == 5);
	assert_true(query("SELECT status = 'complete' FROM run_status WHERE run_id = 1") == 1);
	assert_true(query("SELECT status = 'recording' FROM run_status WHERE run_id = 2") == 1);
	/* Every table is STRICT and every table and view says what a row is. */
	assert_true(query("SELECT COUNT(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND "
			  "name NOT LIKE 'sqlite_%' AND strict = 0") == 0);
	assert_true(query("SELECT COUNT(*) FROM sqlite_schema WHERE type IN ('table','view') AND sql NOT LIKE "
			  "'%-- A row is%'") == 0);
	assert_true(query("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'view'") == 4);
	assert_true(query("SELECT COUNT(*) FROM pragma_foreign_key_check") == 0);
}

/* A view that looks at all rows for each row takes minutes on a large run. */
static void views_take_time_in_proportion(void **state)
{
	static const char *const views[] = { "run_status", "latency_sample", "latency", "op_time" };
	sqlite3 *db;

	rg_store_close(open_db(RG_STORE_WRITE));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		char sql[80];
		sqlite3_stmt *st;

		snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN SELECT * FROM %s", views[i]);
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
		while (sqlite3_step(st) == SQLITE_ROW)
			assert_null(strstr((const char *)sqlite3_column_text(st, 3), "CORRELATED"));
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}

/* Each is a database that was edited past all rules; loading must refuse it. */
static void edited_databases_are_refused(void **state)
{
	static const char *const edits[] = {
		"UPDATE span SET step = 99 WHERE seq = 1",
		"UPDATE span SET step = -1 WHERE seq = 1",
		"UPDATE span SET iteration = 77 WHERE iteration = 2",
		"UPDATE span SET lane = 70000 WHERE seq = 1",
		"UPDATE span SET end_ns = start_ns - 1 WHERE seq = 1",
		"UPDATE span SET start_ns = -9223372036854775807 WHERE seq = 1",
		"UPDATE iteration SET end_ns = 9223372036854775807 WHERE iteration = 0",
		"UPDATE iteration SET iteration = 4000000000 WHERE iteration = 9",
		"DELETE FROM iteration WHERE iteration = 3",
		"UPDATE step SET step = 7 WHERE step = 1",
		"DELETE FROM step",
		"UPDATE step_io SET tensor = 44 WHERE step = 0",
		"UPDATE step_io SET step = -3 WHERE step = 0 AND slot = 1",
		"UPDATE step_io SET slot = -3 WHERE step = 0 AND slot = 1",
		"UPDATE data_edge SET to_step = from_step",
		"UPDATE data_edge SET from_step = 2, to_step = 0 WHERE from_step = 0",
		"UPDATE data_edge SET tensor = 9999999999",
		"UPDATE tensor SET alias_of = 3 WHERE tensor = 2",     /* a circle with 3 -> 2 */
		"UPDATE tensor SET alias_of = 2 WHERE tensor = 2",
		"UPDATE tensor SET alias_of = 400 WHERE tensor = 2",
		"UPDATE tensor SET last_step = 100 WHERE tensor = 2",
		"UPDATE tensor SET tensor = 10 WHERE tensor = 3",
		"UPDATE ceiling SET threads = 0 WHERE level = 'peak'",
		"UPDATE ceiling SET value = -1 WHERE level = 'peak'",
		"UPDATE ceiling SET samples = -1 WHERE level = 'peak'",
		"UPDATE phase SET end_ns = 0",
		"UPDATE run_end SET status = 'lost'",
		"UPDATE fact SET value = x'00' WHERE key = 'machine.cpu'",
	};
	struct rg_error err = RG_ERROR_INIT;
	char copy[160], command[400];

	rg_store_close(({ struct rg_store *s = open_db(RG_STORE_WRITE); whole_run(s, "t"); s; }));
	/* The triggers that forbid updates go first, as an editor would do. */
	tamper("DROP TRIGGER span_is_written_once; DROP TRIGGER iteration_is_written_once; DROP TRIGGER "
	       "step_is_written_once; DROP TRIGGER step_io_is_written_once; DROP TRIGGER data_edge_is_written_once; "
	       "DROP TRIGGER tensor_is_written_once; DROP TRIGGER ceiling_is_written_once; DROP TRIGGER "
	       "phase_is_written_once; DROP TRIGGER run_end_is_written_once; DROP TRIGGER fact_is_written_once;"
	       "PRAGMA journal_mode = DELETE");
	snprintf(copy, sizeof(copy), "%s/copy.db", dir);
	snprintf(command, sizeof(command), "cp '%s' '%s'", path, copy);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "cp '%s' '%s'", copy, path);
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		struct rg_recording *r = NULL;
		struct rg_store *s;
		int rc;

		assert_int_equal(system(command), 0);
		tamper(edits[i]);
		s = open_db(RG_STORE_READ);
		rc = rg_store_load(s, 1, &r, &err);
		if (rc != -EBADMSG)
			fail_msg("%s: gave %d", edits[i], rc);
		assert_null(r);
		assert_true(err.message[0] && err.where[0]);
		rg_store_close(s);
	}
	/* Counts below zero are missing counts. */
	{
		struct rg_recording *r;
		struct rg_store *s;

		assert_int_equal(system(command), 0);
		tamper("UPDATE step SET flops = -5, read_bytes = -9223372036854775807 - 1; UPDATE tensor SET size_bytes = -1");
		s = open_db(RG_STORE_READ);
		assert_int_equal(rg_store_load(s, 1, &r, &err), 0);
		assert_int_equal(r->steps[0].flops, -1);
		assert_int_equal(r->steps[0].read_bytes, -1);
		assert_int_equal(r->tensors[0].size_bytes, -1);
		rg_recording_free(r);
		rg_store_close(s);
	}
}

static void a_view_in_place_of_a_table_is_refused(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;

	rg_store_close(open_db(RG_STORE_WRITE));
	tamper("DROP VIEW op_time; DROP TABLE span; CREATE VIEW span AS WITH RECURSIVE r(run_id, iteration, step) AS "
	       "(SELECT 1, 1, 1 UNION ALL SELECT 1, 1, 1 FROM r) SELECT * FROM r");
	assert_int_equal(rg_store_open(path, RG_STORE_READ, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "'span'"));
	assert_int_equal(rg_store_open(path, RG_STORE_WRITE, &s, &err), -EBADMSG);
}

/* Random bytes of the file are changed: an error or a recording, no crash. */
static void a_damaged_file_never_crashes(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	unsigned char *image, *bad;
	unsigned seed = 1;
	int refused = 0;
	long size;
	FILE *f;

	rg_store_close(({ struct rg_store *s = open_db(RG_STORE_WRITE); whole_run(s, "t"); s; }));
	tamper("PRAGMA journal_mode = DELETE");
	f = fopen(path, "rb");
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	image = malloc((size_t)size);
	bad = malloc((size_t)size);
	assert_int_equal(fread(image, 1, (size_t)size, f), (size_t)size);
	fclose(f);
	for (int round = 0; round < 300; round++) {
		struct rg_recording *r;
		struct rg_store *s;
		struct rg_run *runs;
		int n;

		memcpy(bad, image, (size_t)size);
		for (int k = 0; k <= round % 20; k++)
			bad[(size_t)rand_r(&seed) % (size_t)size] = (unsigned char)rand_r(&seed);
		f = fopen(path, "wb");
		assert_int_equal(fwrite(bad, 1, round % 7 ? (size_t)size : (size_t)rand_r(&seed) % (size_t)size, f) > 0, 1);
		fclose(f);
		if (rg_store_open(path, RG_STORE_READ, &s, &err)) {
			refused++;
			continue;
		}
		if (rg_store_list_runs(s, &runs, &n, &err) == 0)
			rg_store_free_runs(runs, n);
		if (rg_store_load(s, 1, &r, &err) == 0)
			rg_recording_free(r);
		else
			refused++;
		rg_store_close(s);
	}
	assert_true(refused > 20);
	free(image);
	free(bad);
}

/* One open, write, list, find, load and close in which allocation n fails. */
static int exercise(struct rg_error *err)
{
	struct rg_recording *r = NULL;
	struct rg_run *runs = NULL;
	struct rg_store *s;
	int64_t id;
	int n = 0, rc = rg_store_open(path, RG_STORE_WRITE, &s, err);

	if (rc)
		return rc;
	rc = run_begin(s, "t", &id, err);
	rc = rc ? rc : run_iterate(s, id, 0, 2, err);
	rc = rc ? rc : rg_store_end_run(s, id, RG_RUN_COMPLETE, "", err);
	rc = rc ? rc : rg_store_list_runs(s, &runs, &n, err);
	rc = rc ? rc : rg_store_find_run(s, "t", &id, err);
	rc = rc ? rc : rg_store_load(s, id, &r, err);
	if (!rc) {
		assert_int_equal(r->n_iterations, 2);
		assert_int_equal(r->n_steps, RUN_STEPS);
		assert_int_equal(r->n_spans, RUN_SPANS_PER_ITERATION);
	}
	rg_recording_free(r);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
	return rc;
}

static void every_allocation_may_fail(void **state)
{
	uint64_t n = 1, failed = 0, passed_without = 0, step = 1;

	for (;; n += step) {
		struct rg_error err = RG_ERROR_INIT;
		int rc;

		rg_alloc_fail_at(n);
		rc = exercise(&err);
		if (!rg_alloc_did_fail()) {
			assert_int_equal(rc, 0);
			break;
		}
		if (rc == 0) {
			passed_without++; /* SQLite can do without its caches */
		} else {
			failed++;
			if (rc != -ENOMEM)
				fail_msg("allocation %llu: %d %s", (unsigned long long)n, rc, err.message);
			assert_true(err.message[0]);
		}
		rg_alloc_fail_at(0);
		/* Every one at first, then a sample: there are many thousands. */
		if (n > 1500)
			step = 37;
	}
	rg_alloc_fail_at(0);
	assert_true(failed > 100);
	/* After all that the database is whole. */
	assert_true(query("SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'") == 0);
	assert_true(query("SELECT COUNT(*) FROM pragma_foreign_key_check") == 0);
	print_message("# %llu allocations made to fail: %llu errors, %llu done without\n",
		      (unsigned long long)(failed + passed_without), (unsigned long long)failed,
		      (unsigned long long)passed_without);
}

/* A database of the first version, with a row, opens as one of the newest. */
static void an_older_database_is_migrated(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_recording *r;
	struct rg_store *s;
	sqlite3 *db;
	char *why = NULL, *sql;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, rg_store_migrations[0], NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sql = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = 1;"
			      "INSERT INTO run VALUES (1,NULL,'m','m',NULL,'','',1,1,NULL,NULL,NULL,1,1,1,'');"
			      "INSERT INTO tensor VALUES (1,0,'x','float32','1',4,'unused',NULL,NULL,NULL,NULL,0,0,0);"
			      "INSERT INTO step VALUES (1,0,'n','Relu','',14,'elementwise','ref','','float32','1',1,0,0,"
			      "1,4,4,0,0,64,0,NULL,NULL,NULL,0)", RG_STORE_APPLICATION_ID);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sqlite3_free(sql);
	sqlite3_close(db);
	s = open_db(RG_STORE_WRITE);
	if (rg_store_load(s, 1, &r, &err))
		fail_msg("%s", err.message);
	assert_int_equal(r->n_steps, 1);
	assert_int_equal(r->steps[0].scratch_bytes, 64);
	assert_int_equal(r->steps[0].scratch_offset_bytes, -1); /* what older rows lack is not known */
	rg_recording_free(r);
	rg_store_close(s);
	assert_true(query("PRAGMA user_version") == rg_store_n_migrations);
	assert_true(query("SELECT COUNT(*) FROM tensor WHERE place = 'unused'") == 1);
	assert_true(query("SELECT COUNT(*) FROM step WHERE scratch_bytes = 64 AND scratch_offset_bytes IS NULL") == 1);
	assert_true(query("SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'") == 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "INSERT INTO tensor VALUES (1,1,'y','','',NULL,'dynamic',NULL,NULL,NULL,NULL,"
					  "0,0,0)", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "INSERT INTO tensor VALUES (1,2,'z','','',NULL,'elsewhere',NULL,NULL,NULL,"
					  "NULL,0,0,0)", NULL, NULL, NULL), SQLITE_CONSTRAINT);
	sqlite3_close(db);
}

/* A run finds the newest quantisation of its model, and no other's. */
static void a_run_knows_its_models_quantisation(void **state)
{
	struct rg_quantized_row ops[] = {
		{ "conv", "Conv", 1, "", 31.5, 40, 0.25, NAN, 12, 45, 30, 45 },
		{ "fc", "Gemm", 0, "its error alone is too large", INFINITY, NAN, 0, 0.5, NAN, NAN, NAN, NAN },
	};
	struct rg_quantization q = { .model_sha256 = "", .made_unix_ns = 5, .form = "static", .weights = "per channel",
				     .ranges = "mse", .synthetic = 1, .samples = 7, .validation_samples = 2,
				     .sqnr_db = 20.5, .validation_sqnr_db = NAN, .n_operators = 2, .operators = ops };
	struct rg_store *s = open_db(RG_STORE_WRITE);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_recording *r;
	int64_t id = whole_run(s, "a");

	assert_int_equal(rg_store_load(s, id, &r, &err), 0);
	assert_null(r->quantization);
	q.model = r->run.model;
	assert_int_equal(rg_store_put_quantization(s, &q, &err), 0);
	q.sqnr_db = 21.5;
	assert_int_equal(rg_store_put_quantization(s, &q, &err), 0);
	q.model = "another.onnx";
	assert_int_equal(rg_store_put_quantization(s, &q, &err), 0);
	rg_recording_free(r);
	assert_int_equal(rg_store_load(s, id, &r, &err), 0);
	assert_non_null(r->quantization);
	assert_int_equal(r->quantization->id, 2);
	assert_true(r->quantization->sqnr_db == 21.5 && isnan(r->quantization->validation_sqnr_db));
	assert_int_equal(r->quantization->n_operators, 2);
	assert_string_equal(r->quantization->operators[1].why_not, "its error alone is too large");
	assert_true(r->quantization->operators[1].sqnr_db == (double)INFINITY);
	assert_true(isnan(r->quantization->operators[0].drifted) && r->quantization->operators[0].clipped == 0.25);
	assert_true(r->quantization->operators[0].weight_spread == 12);
	rg_recording_free(r);
	q.form = "other"; /* the schema's rule */
	assert_int_equal(rg_store_put_quantization(s, &q, &err), -EINVAL);
	for (uint64_t n = 1; n < 400; n++) {
		rg_alloc_fail_at(n);
		if (!rg_store_load(s, id, &r, &err))
			rg_recording_free(r);
		rg_alloc_fail_at(0);
	}
	rg_store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(runs_are_found_by_last_number_and_tag),
		TEST(rules_of_the_schema_hold),
		TEST(facts_are_never_updated),
		TEST(views_say_what_the_program_says),
		TEST(views_take_time_in_proportion),
		TEST(edited_databases_are_refused),
		TEST(a_view_in_place_of_a_table_is_refused),
		TEST(a_damaged_file_never_crashes),
		TEST(every_allocation_may_fail),
		TEST(an_older_database_is_migrated),
		TEST(a_run_knows_its_models_quantisation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
