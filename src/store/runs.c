/*
 * Runs: beginning and ending one, listing them, finding one by what a person
 * typed, and telling a run that goes on from one whose process vanished.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "store/internal.h"
#include "sys/procfs.h"

static const char *const status_names[] = {"recording", "complete", "interrupted", "failed", "killed"};

const char *rg_run_status_name(enum rg_run_status s)
{
	return (unsigned)s < sizeof(status_names) / sizeof(status_names[0]) ? status_names[s] : "unknown";
}

static bool parse_status(const char *name, enum rg_run_status *out)
{
	for (unsigned i = 1; i < sizeof(status_names) / sizeof(status_names[0]); i++) {
		if (strcmp(name, status_names[i]) == 0) {
			*out = (enum rg_run_status)i;
			return true;
		}
	}
	return false;
}

/* A pid is used again, so it counts only with the start and the boot that were
 * written beside it. */
bool rg_store_owner_alive(int64_t pid, int64_t start_ticks, const char *boot_id)
{
	char boot[40];

	if (pid <= 0 || pid > INT32_MAX || start_ticks <= 0)
		return false;
	rg_proc_boot_id(boot);
	if (strcmp(boot, boot_id) != 0)
		return false;
	return rg_proc_start_ticks((int)pid) == (uint64_t)start_ticks;
}

int rg_store_begin_run(struct rg_store *s, const struct rg_run *run, int64_t *id, struct rg_error *err)
{
	sqlite3_stmt *st;
	int64_t number;
	char boot[40];
	int rc;

	if (run->tag &&
	    (strcmp(run->tag, "last") == 0 || rg_parse_i64(run->tag, INT64_MIN, INT64_MAX, &number))) {
		rg_error_set(err, -EINVAL, "'%s' cannot be a tag: it already names a run", run->tag);
		return rg_error_hint(err, "choose a word that is not 'last' and not a number");
	}
	rc = rg_store_begin(s, err);
	if (rc)
		return rc;
	rc =
	    rg_store_prepare(s,
			     "INSERT INTO run (tag, model, model_name, model_sha256, command, ridge_version, "
			     "started_unix_ns, threads, warmup_iterations, iterations, duration_ns, seed, "
			     "owner_pid, owner_start_ticks, owner_boot_id) "
			     "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
			     &st, err);
	if (rc) {
		rg_store_rollback(s);
		return rc;
	}
	rg_proc_boot_id(boot);
	rg_store_bind_text_or_null(st, 1, run->tag);
	rg_store_bind_text(st, 2, run->model);
	rg_store_bind_text(st, 3, run->model_name);
	rg_store_bind_text_or_null(st, 4, run->model_sha256);
	rg_store_bind_text(st, 5, run->command);
	rg_store_bind_text(st, 6, run->version);
	sqlite3_bind_int64(st, 7, run->started_unix_ns);
	sqlite3_bind_int(st, 8, run->threads);
	rg_store_bind_count(st, 9, run->warmup_iterations);
	rg_store_bind_count(st, 10, run->iterations);
	rg_store_bind_count(st, 11, run->duration_ns);
	sqlite3_bind_int64(st, 12, run->seed);
	sqlite3_bind_int64(st, 13, getpid());
	sqlite3_bind_int64(st, 14, (int64_t)rg_proc_start_ticks(getpid()));
	rg_store_bind_text(st, 15, boot);
	rc = sqlite3_step(st);
	rc = rc == SQLITE_DONE ? 0 : rg_store_fail(s, rc, err, "beginning a run");
	sqlite3_finalize(st);
	if (rc) {
		rg_store_rollback(s);
		return rc;
	}
	*id = sqlite3_last_insert_rowid(s->db);
	return rg_store_commit(s, err);
}

int rg_store_summary(struct rg_store *s, int64_t run, double *p50_ns, int64_t *n, struct rg_error *err)
{
	sqlite3_stmt *st;
	int rc;

	*p50_ns = NAN;
	*n = 0;
	/* As the view `latency`, of one run only: a view over all runs would read
	 * every iteration of the database. */
	rc = rg_store_prepare(
	    s,
	    "WITH own AS (SELECT hook_on, end_ns - start_ns AS t FROM iteration"
	    "             WHERE run_id = ?1 AND pass = 'timing'),"
	    " ranked AS (SELECT t, ROW_NUMBER() OVER (ORDER BY t) - 1 AS at, COUNT(*) OVER () AS n"
	    "            FROM own WHERE hook_on = (SELECT MIN(hook_on) FROM own))"
	    "SELECT SUM(t * MAX(0.0, 1.0 - ABS(at - 0.5 * (n - 1)))), COUNT(*) FROM ranked",
	    &st, err);
	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, run);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*p50_ns = rg_store_column_real(st, 0);
		*n = sqlite3_column_int64(st, 1);
		rc = 0;
	} else {
		rc = rg_store_fail(s, rc, err, "summing up run %" PRId64, run);
	}
	sqlite3_finalize(st);
	return rc;
}

/* Inside a transaction. */
static int insert_end(struct rg_store *s, int64_t run, enum rg_run_status status, const char *message,
		      struct rg_error *err)
{
	sqlite3_stmt *st;
	double p50_ns;
	int64_t n;
	int rc = rg_store_summary(s, run, &p50_ns, &n, err);

	rc = rc ? rc
		: rg_store_prepare(s,
				   "INSERT INTO run_end (run_id, status, message, ended_unix_ns, p50_ns, "
				   "n_iterations) VALUES (?1,?2,?3,?4,?5,?6)",
				   &st, err);
	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, run);
	rg_store_bind_text(st, 2, rg_run_status_name(status));
	rg_store_bind_text_or_null(st, 3, message);
	sqlite3_bind_int64(st, 4, (int64_t)rg_clock_wall_ns());
	sqlite3_bind_double(st, 5, p50_ns);
	sqlite3_bind_int64(st, 6, n);
	rc = sqlite3_step(st);
	rc = rc == SQLITE_DONE ? 0 : rg_store_fail(s, rc, err, "ending run %" PRId64, run);
	sqlite3_finalize(st);
	return rc;
}

/* SQLite writes on into a file that was deleted or moved, and nobody finds it. */
static int still_there(struct rg_store *s, struct rg_error *err)
{
	int moved = 0;

	if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || !moved)
		return 0;
	rg_error_set(err, -ENOENT, "the database was deleted or moved during the recording: "
				   "what was recorded is lost");
	rg_error_hint(err, "record again, and leave the file where it is");
	return rg_error_at(err, "%s", s->path);
}

int rg_store_end_run(struct rg_store *s, int64_t run, enum rg_run_status status, const char *message,
		     struct rg_error *err)
{
	int rc = rg_store_begin(s, err);

	if (rc)
		return rc;
	rc = insert_end(s, run, status, message, err);
	if (!rc) {
		rc = rg_store_commit(s, err);
		return rc ? rc : still_there(s, err);
	}
	rg_store_rollback(s);
	return rc;
}

int rg_store_mark_killed(struct rg_store *s, struct rg_error *err)
{
	static const char sql[] = "SELECT run_id, owner_pid, owner_start_ticks, owner_boot_id FROM run "
				  "WHERE run_id NOT IN (SELECT run_id FROM run_end)";
	int64_t *gone = NULL;
	size_t n = 0, cap = 0;
	sqlite3_stmt *st;
	int rc = rg_store_prepare(s, sql, &st, err), step = SQLITE_DONE;

	if (rc)
		return rc;
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		const char *boot = (const char *)sqlite3_column_text(st, 3);
		int64_t *more;

		if (boot &&
		    rg_store_owner_alive(sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2), boot))
			continue;
		more = rg_grow(gone, &cap, n + 1, sizeof(*gone));
		if (!more) {
			rc = rg_error_nomem(err, (n + 1) * sizeof(*gone));
			break;
		}
		gone = more;
		gone[n++] = sqlite3_column_int64(st, 0);
	}
	if (!rc && step != SQLITE_DONE)
		rc = rg_store_fail(s, step, err, "looking for broken runs");
	sqlite3_finalize(st);
	if (!rc && n)
		rc = rg_store_begin(s, err);
	for (size_t i = 0; i < n && !rc; i++) {
		int64_t ended;

		/* Another process may have marked it, or its owner ended it, since. */
		rc = rg_store_get_i64(s, "SELECT COUNT(*) FROM run_end WHERE run_id = ?1", gone[i], 0, &ended,
				      err);
		if (!rc && !ended)
			rc = insert_end(s, gone[i], RG_RUN_KILLED, "the recording process vanished", err);
	}
	if (n && !rc)
		rc = rg_store_commit(s, err);
	else if (n)
		rg_store_rollback(s);
	rg_free(gone);
	return rc;
}

/* ---- reading ---- */

#define RUN_COLUMNS                                                                                          \
	"SELECT run.run_id, tag, model, model_name, model_sha256, command, ridge_version, "                  \
	"started_unix_ns, threads, warmup_iterations, iterations, duration_ns, seed, owner_pid, "            \
	"owner_start_ticks, owner_boot_id, status, message, ended_unix_ns, p50_ns, n_iterations "            \
	"FROM run LEFT JOIN run_end USING (run_id) "

static const char *copy_text(sqlite3_stmt *st, int at, struct rg_arena *arena)
{
	const char *t = (const char *)sqlite3_column_text(st, at);

	return rg_arena_strdup(arena, t ? t : "");
}

static int read_row(struct rg_store *s, sqlite3_stmt *st, struct rg_arena *arena, struct rg_run *r,
		    struct rg_error *err)
{
	const char *status, *boot;
	int64_t threads = sqlite3_column_int64(st, 8), warmup = rg_store_column_count(st, 9);

	*r = (struct rg_run){
	    .id = sqlite3_column_int64(st, 0),
	    .tag = copy_text(st, 1, arena),
	    .model = copy_text(st, 2, arena),
	    .model_name = copy_text(st, 3, arena),
	    .model_sha256 = copy_text(st, 4, arena),
	    .command = copy_text(st, 5, arena),
	    .version = copy_text(st, 6, arena),
	    .started_unix_ns = sqlite3_column_int64(st, 7),
	    .threads = threads >= 1 && threads <= 65536 ? (int)threads : 1,
	    .warmup_iterations = warmup <= INT32_MAX ? (int)warmup : INT32_MAX,
	    .iterations = rg_store_column_count(st, 10),
	    .duration_ns = rg_store_column_count(st, 11),
	    .seed = sqlite3_column_int64(st, 12),
	    .message = copy_text(st, 17, arena),
	    .ended_unix_ns = rg_store_column_count(st, 18),
	    .p50_ns = rg_store_column_real(st, 19),
	    .n_iterations = rg_store_column_count(st, 20),
	};
	status = copy_text(st, 16, arena);
	boot = copy_text(st, 15, arena);
	if (!r->tag || !r->model || !r->model_name || !r->model_sha256 || !r->command || !r->version ||
	    !r->message || !status || !boot)
		return rg_error_nomem(err, 64);
	if (sqlite3_column_type(st, 16) == SQLITE_NULL) {
		bool alive =
		    rg_store_owner_alive(sqlite3_column_int64(st, 13), sqlite3_column_int64(st, 14), boot);

		r->status = alive ? RG_RUN_RECORDING : RG_RUN_KILLED;
		if (!alive)
			r->message = "the recording process vanished";
		return rg_store_summary(s, r->id, &r->p50_ns, &r->n_iterations, err);
	}
	if (!parse_status(status, &r->status)) {
		rg_error_set(err, -EBADMSG, "run %" PRId64 " has the unknown status '%s'", r->id, status);
		return rg_error_at(err, "%s", s->path);
	}
	return 0;
}

int rg_store_read_run(struct rg_store *s, int64_t id, struct rg_arena *arena, struct rg_run *out,
		      struct rg_error *err)
{
	sqlite3_stmt *st;
	int step, rc = rg_store_prepare(s, RUN_COLUMNS "WHERE run.run_id = ?1", &st, err);

	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, id);
	step = sqlite3_step(st);
	if (step == SQLITE_ROW) {
		rc = read_row(s, st, arena, out, err);
	} else if (step == SQLITE_DONE) {
		rg_error_set(err, -ENOENT, "there is no run %" PRId64, id);
		rc = rg_error_at(err, "%s", s->path);
	} else {
		rc = rg_store_fail(s, step, err, "reading run %" PRId64, id);
	}
	sqlite3_finalize(st);
	return rc;
}

/* The array and its texts live in one arena, found again in front of the array. */
struct run_list {
	struct rg_arena *arena;
	struct rg_run runs[];
};

int rg_store_list_runs(struct rg_store *s, struct rg_run **out, int *n, struct rg_error *err)
{
	struct rg_arena *arena = rg_arena_new();
	struct run_list *list = NULL;
	sqlite3_stmt *st = NULL;
	int64_t count = 0;
	int rc, step = SQLITE_DONE, got = 0;

	*out = NULL;
	*n = 0;
	if (!arena)
		return rg_error_nomem(err, sizeof(*list));
	/* One snapshot for both statements. */
	rc = rg_store_exec(s, "BEGIN", err);
	if (rc) {
		rg_arena_free(arena);
		return rc;
	}
	rc = rg_store_get_i64(s, "SELECT COUNT(*) FROM run", 0, 0, &count, err);
	if (!rc && count > INT32_MAX)
		rc = rg_error_set(err, -EOVERFLOW, "too many runs: %" PRId64, count);
	if (!rc && count == 0)
		goto out;
	if (!rc) {
		list = rg_arena_alloc(arena, 1, sizeof(*list) + (size_t)count * sizeof(list->runs[0]));
		if (!list)
			rc = rg_error_nomem(err, (size_t)count * sizeof(list->runs[0]));
	}
	rc = rc ? rc : rg_store_prepare(s, RUN_COLUMNS "ORDER BY run.run_id DESC", &st, err);
	while (!rc && got < count && (step = sqlite3_step(st)) == SQLITE_ROW)
		rc = read_row(s, st, arena, &list->runs[got++], err);
	if (!rc && step != SQLITE_ROW && step != SQLITE_DONE)
		rc = rg_store_fail(s, step, err, "listing runs");
	sqlite3_finalize(st);
out:
	rg_store_rollback(s); /* nothing was written: this ends the snapshot */
	if (rc || !list) {
		rg_arena_free(arena);
		return rc;
	}
	list->arena = arena;
	*out = list->runs;
	*n = got;
	return 0;
}

void rg_store_free_runs(struct rg_run *runs, int n)
{
	if (runs)
		rg_arena_free(((struct run_list *)((char *)runs - offsetof(struct run_list, runs)))->arena);
}

/* "there are runs 1 to 12 and the tags a, b": what could have been meant. */
static int no_such_run(struct rg_store *s, const char *ref, struct rg_error *err)
{
	struct rg_error ignored = RG_ERROR_INIT;
	struct rg_str tags = {0};
	int64_t last = 0;
	sqlite3_stmt *st;

	if (rg_store_get_i64(s, "SELECT MAX(run_id) FROM run", 0, 0, &last, err))
		return err->code;
	if (last == 0) {
		rg_error_set(err, -ENOENT, "the database holds no runs");
		rg_error_hint(err, "record one: ridge record builtin:resnet50");
		return rg_error_at(err, "%s", s->path);
	}
	if (rg_store_prepare(s,
			     "SELECT tag FROM run WHERE tag IS NOT NULL GROUP BY tag "
			     "ORDER BY MAX(run_id) DESC LIMIT 8",
			     &st, &ignored) == 0) {
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *tag = (const char *)sqlite3_column_text(st, 0);

			rg_str_printf(&tags, "%s'%.40s'", tags.len ? ", " : "", tag ? tag : "");
		}
		sqlite3_finalize(st);
	}
	rg_error_set(err, -ENOENT, "there is no run '%s'", ref);
	rg_error_hint(err, "the newest run is %" PRId64 "%s%s; see:  ridge runs", last,
		      tags.len ? "; tags: " : "", rg_str_text(&tags));
	rg_str_free(&tags);
	return rg_error_at(err, "%s", s->path);
}

int rg_store_find_run(struct rg_store *s, const char *ref, int64_t *id, struct rg_error *err)
{
	sqlite3_stmt *st;
	int64_t number, found = -1;
	int rc, step;

	if (!ref || !*ref)
		ref = "last";
	if (strcmp(ref, "last") == 0) {
		rc = rg_store_get_i64(s, "SELECT MAX(run_id) FROM run", 0, -1, &found, err);
	} else if (rg_parse_i64(ref, INT64_MIN, INT64_MAX, &number)) {
		rc = rg_store_get_i64(s, "SELECT run_id FROM run WHERE run_id = ?1", number, -1, &found, err);
	} else {
		rc = rg_store_prepare(s, "SELECT MAX(run_id) FROM run WHERE tag = ?1", &st, err);
		if (rc)
			return rc;
		rg_store_bind_text(st, 1, ref);
		step = sqlite3_step(st);
		if (step == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
			found = sqlite3_column_int64(st, 0);
		else if (step != SQLITE_ROW)
			rc = rg_store_fail(s, step, err, "looking for run '%.40s'", ref);
		sqlite3_finalize(st);
	}
	if (rc)
		return rc;
	if (found < 0)
		return no_such_run(s, ref, err);
	*id = found;
	return 0;
}
