/*
 * SQLite's codes into errors for people, and small helpers around statements.
 */
#include "store/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int rg_store_fail(struct rg_store *s, int rc, struct rg_error *err, const char *fmt, ...)
{
	const char *what = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
	int sys = s->db ? sqlite3_system_errno(s->db) : 0;
	char doing[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(doing, sizeof(doing), fmt, ap);
	va_end(ap);
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		rg_error_set(err, -ENOMEM, "out of memory while %s", doing);
		rg_error_hint(err, "free memory and try again; what was committed is kept");
		break;
	case SQLITE_FULL:
	full:
		rg_error_set(err, -ENOSPC, "the disk is full: %s failed", doing);
		rg_error_hint(err, "free space there, or name a database elsewhere with --db FILE; "
				   "what was committed is kept");
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		rg_error_set(err, -EBUSY, "the database is locked by another process: %s failed", doing);
		rg_error_hint(err, "wait for the other program to end, or name another database with --db FILE");
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		rg_error_set(err, -EACCES, "the database or its folder is read-only: %s failed", doing);
		rg_error_hint(err, "name a database elsewhere with --db FILE or RIDGE_DB");
		break;
	case SQLITE_CANTOPEN:
		if (sys == ENOSPC || sys == EDQUOT)
			goto full;
		rg_error_set(err, sys == EACCES || sys == EROFS ? -EACCES : sys == ENOENT ? -ENOENT : -EIO,
			     "cannot open the database: %s%s%s", what, sys ? ": " : "", sys ? strerror(sys) : "");
		rg_error_hint(err, "the folder must exist and be writable (SQLite keeps -wal and -shm files "
				   "beside the database); name one elsewhere with --db FILE");
		break;
	case SQLITE_NOTADB:
		rg_error_set(err, -EBADMSG, "this file is not a database");
		rg_error_hint(err, "name a file that ridge made, or a new one, with --db FILE");
		break;
	case SQLITE_CORRUPT:
		rg_error_set(err, -EBADMSG, "the database is damaged (%s): %s failed", what, doing);
		rg_error_hint(err, "what can be saved:  sqlite3 FILE .recover | sqlite3 saved.db");
		break;
	case SQLITE_IOERR:
		if (sys == ENOSPC || sys == EDQUOT)
			goto full;
		rg_error_set(err, -EIO, "%s failed: %s%s%s", doing, what, sys ? ": " : "",
			     sys ? strerror(sys) : "");
		break;
	case SQLITE_CONSTRAINT:
		if (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE) {
			rg_error_set(err, -EEXIST, "%s failed: it is already there (%s)", doing, what);
			break;
		}
		rg_error_set(err, -EINVAL, "%s failed: %s", doing, what);
		break;
	case SQLITE_TOOBIG:
		rg_error_set(err, -EFBIG, "%s failed: a text is longer than %d bytes", doing,
			     RG_STORE_MAX_TEXT_BYTES);
		break;
	default:
		rg_error_set(err, -EIO, "%s failed: %s (SQLite code %d)", doing, what, rc);
	}
	return rg_error_at(err, "%s", s->path);
}

int rg_store_exec(struct rg_store *s, const char *sql, struct rg_error *err)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : rg_store_fail(s, rc, err, "%.60s", sql);
}

int rg_store_prepare(struct rg_store *s, const char *sql, sqlite3_stmt **stmt, struct rg_error *err)
{
	int rc = sqlite3_prepare_v2(s->db, sql, -1, stmt, NULL);

	return rc == SQLITE_OK ? 0 : rg_store_fail(s, rc, err, "%.60s", sql);
}

int rg_store_get_i64(struct rg_store *s, const char *sql, int64_t bind, int64_t dflt, int64_t *out,
		     struct rg_error *err)
{
	sqlite3_stmt *st;
	int rc = rg_store_prepare(s, sql, &st, err);

	if (rc)
		return rc;
	if (sqlite3_bind_parameter_count(st) > 0)
		sqlite3_bind_int64(st, 1, bind);
	*out = dflt;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		if (sqlite3_column_type(st, 0) != SQLITE_NULL)
			*out = sqlite3_column_int64(st, 0);
	} else if (rc != SQLITE_DONE) {
		rc = rg_store_fail(s, rc, err, "%.60s", sql);
		sqlite3_finalize(st);
		return rc;
	}
	sqlite3_finalize(st);
	return 0;
}

int rg_store_begin(struct rg_store *s, struct rg_error *err)
{
	int rc;

	if (s->mode == RG_STORE_READ) {
		rg_error_set(err, -EROFS, "the database was opened for reading");
		return rg_error_at(err, "%s", s->path);
	}
	rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : rg_store_fail(s, rc, err, "beginning a transaction");
}

int rg_store_commit(struct rg_store *s, struct rg_error *err)
{
	int rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		return 0;
	rg_store_fail(s, rc, err, "committing");
	rg_store_rollback(s);
	return err->code;
}

void rg_store_rollback(struct rg_store *s)
{
	/* A full disk or lack of memory may have rolled back already. */
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

void rg_store_bind_count(sqlite3_stmt *st, int at, int64_t v)
{
	if (v < 0)
		sqlite3_bind_null(st, at);
	else
		sqlite3_bind_int64(st, at, v);
}

void rg_store_bind_text(sqlite3_stmt *st, int at, const char *v)
{
	sqlite3_bind_text(st, at, v ? v : "", -1, SQLITE_STATIC);
}

void rg_store_bind_text_or_null(sqlite3_stmt *st, int at, const char *v)
{
	if (v && *v)
		sqlite3_bind_text(st, at, v, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}

int64_t rg_store_column_count(sqlite3_stmt *st, int at)
{
	int64_t v;

	if (sqlite3_column_type(st, at) == SQLITE_NULL)
		return -1;
	v = sqlite3_column_int64(st, at);
	return v < 0 ? -1 : v;
}

double rg_store_column_real(sqlite3_stmt *st, int at)
{
	return sqlite3_column_type(st, at) == SQLITE_NULL ? NAN : sqlite3_column_double(st, at);
}
