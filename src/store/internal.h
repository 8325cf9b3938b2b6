/*
 * What the files of this folder share: the handle, errors from SQLite, and the
 * few helpers around statements. Nobody outside src/store includes it.
 */
#ifndef RG_STORE_INTERNAL_H
#define RG_STORE_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "store/store.h"

/* "RIDG", at offset 68 of the file: how file(1) and we know our own. */
#define RG_STORE_APPLICATION_ID 0x52494447
/* Longest text or row that is read or written; a bound for hostile files. */
#define RG_STORE_MAX_TEXT_BYTES (16 * 1024 * 1024)

struct rg_store {
	sqlite3 *db;
	char *path;
	enum rg_store_mode mode;
};

/* Migrations, oldest first: migration i takes user_version i to i + 1. */
extern const char *const rg_store_migrations[];
extern const int rg_store_n_migrations;
/* Tables that must be real STRICT tables before anything is read from them. */
extern const char *const rg_store_tables[];

/* Turns SQLite's code for `doing` ("writing facts of run 3") into an error. */
int rg_store_fail(struct rg_store *s, int rc, struct rg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Runs SQL that takes no values and returns no rows. */
int rg_store_exec(struct rg_store *s, const char *sql, struct rg_error *err);
int rg_store_prepare(struct rg_store *s, const char *sql, sqlite3_stmt **stmt, struct rg_error *err);
/* One integer from the first column of the first row; `dflt` when there is no
 * row or it is NULL. `bind` goes to ?1. */
int rg_store_get_i64(struct rg_store *s, const char *sql, int64_t bind, int64_t dflt, int64_t *out,
		     struct rg_error *err);

/* BEGIN IMMEDIATE; then rg_store_commit, or rg_store_rollback on any failure. */
int rg_store_begin(struct rg_store *s, struct rg_error *err);
int rg_store_commit(struct rg_store *s, struct rg_error *err);
void rg_store_rollback(struct rg_store *s);

/* Negative means missing and becomes NULL. */
void rg_store_bind_count(sqlite3_stmt *st, int at, int64_t v);
/* NULL pointer becomes "". The text must live until the statement is reset. */
void rg_store_bind_text(sqlite3_stmt *st, int at, const char *v);
/* "" and NULL become NULL. */
void rg_store_bind_text_or_null(sqlite3_stmt *st, int at, const char *v);

/* Column as a count: NULL or negative gives -1. */
int64_t rg_store_column_count(sqlite3_stmt *st, int at);
/* Column as a double: NULL gives NAN. */
double rg_store_column_real(sqlite3_stmt *st, int at);

/* Whether the process that began a run is still there. */
bool rg_store_owner_alive(int64_t pid, int64_t start_ticks, const char *boot_id);
/* Median and number of the timed iterations of a run, as run_end stores them. */
int rg_store_summary(struct rg_store *s, int64_t run, double *p50_ns, int64_t *n, struct rg_error *err);
/* Gives every run without an end whose owner is gone an end of 'killed'. */
int rg_store_mark_killed(struct rg_store *s, struct rg_error *err);
/* The newest quantisation of a run's model, in `arena`; *out NULL: there is none. */
int rg_store_read_quantization(struct rg_store *s, int64_t run, struct rg_arena *arena, struct rg_quantization **out,
			       struct rg_error *err);
/* Reads the row of one run, deriving its status, with texts in `arena`. */
int rg_store_read_run(struct rg_store *s, int64_t id, struct rg_arena *arena, struct rg_run *out,
		      struct rg_error *err);

#endif
