/*
 * Opening: is this a database, is it ours, is it of a version that we know, may
 * we write it. Then migrations and the marking of runs whose process vanished.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/internal.h"
#include "store/memory.h"

#define BUSY_TIMEOUT_MS 10000

static pthread_once_t heap_once = PTHREAD_ONCE_INIT;

/* "file:" URI of a path: everything that a URI gives a meaning is escaped. */
static char *immutable_uri(const char *path)
{
	struct rg_str uri = { 0 };
	char *text;

	rg_str_add(&uri, path[0] == '/' ? "file://" : "file:");
	for (const char *p = path; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("/._-", c))
			rg_str_addn(&uri, p, 1);
		else
			rg_str_printf(&uri, "%%%02X", c);
	}
	rg_str_add(&uri, "?immutable=1");
	text = uri.failed ? NULL : rg_strdup(rg_str_text(&uri));
	rg_str_free(&uri);
	return text;
}

static void close_db(struct rg_store *s)
{
	sqlite3_close(s->db);
	s->db = NULL;
}

/* Opens s->path and reads its first page, so that what is wrong shows here. */
static int connect_db(struct rg_store *s, const char *name, int flags, struct rg_error *err)
{
	int on = 1, rc;

	rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
		sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, RG_STORE_MAX_TEXT_BYTES);
		sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
		/* The file may have been made by anyone: its schema gets no powers. */
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, on, NULL);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		rc = sqlite3_exec(s->db, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;"
					 "PRAGMA cell_size_check = ON;"
					 "SELECT COUNT(*) FROM sqlite_schema", NULL, NULL, NULL);
	}
	return rc == SQLITE_OK ? 0 : rg_store_fail(s, rc, err, "opening the database");
}

/*
 * A reader of a WAL database needs the -shm file, which it makes if it may.
 * In a folder that it may not write it cannot, and SQLite refuses. When no -wal
 * file holds anything, the database file is all there is, and since nobody who
 * could write there is at work now, it may be read as one that does not change.
 * When a -wal holds commits, reading without it would show the past as the
 * present: then this is an error that says so.
 */
static int connect_for_reading(struct rg_store *s, struct rg_error *err)
{
	struct stat st;
	char *wal, *uri;
	int rc = connect_db(s, s->path, SQLITE_OPEN_READONLY, err);

	if (rc == 0 || (rc != -EACCES && rc != -EIO && rc != -ENOENT && rc != -EROFS) ||
	    access(s->path, R_OK) != 0)
		return rc;
	wal = rg_asprintf("%s-wal", s->path);
	if (!wal)
		return rg_error_nomem(err, strlen(s->path) + 5);
	if (stat(wal, &st) == 0 && st.st_size > 0) {
		rg_free(wal);
		rg_error_hint(err, "its newest commits are in the -wal file beside it: copy both files to a "
				   "folder that you may write and name the copy with --db FILE");
		return rc;
	}
	rg_free(wal);
	close_db(s);
	rg_error_clear(err);
	uri = immutable_uri(s->path);
	if (!uri)
		return rg_error_nomem(err, 3 * strlen(s->path) + 32);
	rc = connect_db(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
	rg_free(uri);
	return rc;
}

/* Reads whose file this is. *version: user_version; 0 with *empty: a new file. */
static int identify(struct rg_store *s, int64_t *version, bool *empty, struct rg_error *err)
{
	int64_t id, objects;
	int rc = rg_store_get_i64(s, "PRAGMA application_id", 0, 0, &id, err);

	rc = rc ? rc : rg_store_get_i64(s, "PRAGMA user_version", 0, 0, version, err);
	rc = rc ? rc : rg_store_get_i64(s, "SELECT COUNT(*) FROM sqlite_schema", 0, 0, &objects, err);
	if (rc)
		return rc;
	*empty = id == 0 && *version == 0 && objects == 0;
	if (*empty)
		return 0;
	if (id != RG_STORE_APPLICATION_ID) {
		rg_error_set(err, -EBADMSG, "this is an SQLite database, but not one of ridge (application_id "
			     "0x%08" PRIx64 ", ours is 0x%08x)", (uint64_t)id & 0xffffffff,
			     RG_STORE_APPLICATION_ID);
		rg_error_hint(err, "name a file that ridge made, or a new one, with --db FILE");
		return rg_error_at(err, "%s", s->path);
	}
	if (*version > rg_store_n_migrations) {
		rg_error_set(err, -EPROTONOSUPPORT, "the database has version %" PRId64
			     ", made by a newer ridge; this one knows up to version %d", *version,
			     rg_store_n_migrations);
		rg_error_hint(err, "use the newer ridge, or name another database with --db FILE");
		return rg_error_at(err, "%s", s->path);
	}
	if (*version < 1) {
		rg_error_set(err, -EBADMSG, "the database has the impossible version %" PRId64, *version);
		return rg_error_at(err, "%s", s->path);
	}
	return 0;
}

/* A file from elsewhere could hold a view without end under a table's name. */
static int check_tables(struct rg_store *s, struct rg_error *err)
{
	sqlite3_stmt *st;
	int rc = rg_store_prepare(s, "SELECT COUNT(*) FROM pragma_table_list WHERE schema = 'main' AND "
				     "name = ?1 AND type = 'table' AND strict = 1", &st, err);

	if (rc)
		return rc;
	for (int i = 0; rg_store_tables[i] && !rc; i++) {
		sqlite3_bind_text(st, 1, rg_store_tables[i], -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW) {
			rc = rg_store_fail(s, rc, err, "reading the schema");
		} else if (sqlite3_column_int64(st, 0) != 1) {
			rg_error_set(err, -EBADMSG, "the database lacks the table '%s' as ridge makes it",
				     rg_store_tables[i]);
			rg_error_hint(err, "it was changed by hand; name another with --db FILE");
			rc = rg_error_at(err, "%s", s->path);
		} else {
			rc = 0;
		}
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

/* Changing to WAL takes a lock that SQLite does not wait for by itself. */
static int use_wal(struct rg_store *s, struct rg_error *err)
{
	int rc = SQLITE_OK;

	for (int waited_ms = 0; waited_ms <= BUSY_TIMEOUT_MS; waited_ms += 10) {
		rc = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		if ((rc & 0xff) != SQLITE_BUSY)
			break;
		sqlite3_sleep(10);
	}
	return rc == SQLITE_OK ? 0 : rg_store_fail(s, rc, err, "switching to write-ahead logging");
}

/* All migrations that are due, in one transaction: the file is old or new. */
static int migrate(struct rg_store *s, struct rg_error *err)
{
	int64_t version;
	char pragma[96];
	bool empty;
	int rc = rg_store_begin(s, err);

	if (rc)
		return rc;
	rc = identify(s, &version, &empty, err); /* again: another process may have been faster */
	/* Migrations may write to the schema table; nobody else may. */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	for (int64_t v = version; !rc && v < rg_store_n_migrations; v++) {
		int code = sqlite3_exec(s->db, rg_store_migrations[v], NULL, NULL, NULL);

		if (code != SQLITE_OK)
			rc = rg_store_fail(s, code, err, "migrating the database to version %" PRId64, v + 1);
	}
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (!rc && version < rg_store_n_migrations) {
		snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %d",
			 RG_STORE_APPLICATION_ID, rg_store_n_migrations);
		rc = rg_store_exec(s, pragma, err);
	}
	if (!rc)
		return rg_store_commit(s, err);
	rg_store_rollback(s);
	return rc;
}

/* What the file system alone can say, in better words than SQLite's. */
static int check_path(const char *path, enum rg_store_mode mode, struct rg_error *err)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	char *dir;
	int code;

	if (!*path) {
		rg_error_set(err, -EINVAL, "the name of the database is empty");
		return rg_error_hint(err, "name a file with --db FILE, or unset RIDGE_DB");
	}
	if (stat(path, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return 0;
		rg_error_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, "%s, not a database file",
			     S_ISDIR(st.st_mode) ? "this is a folder" : "this is not a regular file");
		rg_error_hint(err, "name a file with --db FILE");
		return rg_error_at(err, "%s", path);
	}
	if (errno != ENOENT) {
		rg_error_set(err, -errno, "cannot reach the database: %s", strerror(errno));
		return rg_error_at(err, "%s", path);
	}
	if (mode == RG_STORE_READ) {
		rg_error_set(err, -ENOENT, "there is no database here");
		rg_error_hint(err, "record a run first (ridge record builtin:resnet50), or name a database "
				   "with --db FILE");
		return rg_error_at(err, "%s", path);
	}
	dir = slash ? rg_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : rg_strdup(".");
	if (!dir)
		return rg_error_nomem(err, strlen(path) + 1);
	code = access(dir, W_OK | X_OK) == 0 ? 0 : -errno;
	if (code) {
		rg_error_set(err, code, "the database cannot be created: the folder '%s' %s", dir,
			     code == -ENOENT ? "does not exist" : code == -ENOTDIR ? "is not a folder" :
			     "is read-only");
		rg_error_hint(err, "name a database elsewhere with --db FILE or RIDGE_DB");
		rg_error_at(err, "%s", path);
	}
	rg_free(dir);
	return code;
}

static int open_for_writing(struct rg_store *s, struct rg_error *err)
{
	int64_t version;
	bool empty;
	int rc = connect_db(s, s->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (rc)
		return rc;
	if (sqlite3_db_readonly(s->db, "main") == 1)
		return rg_store_fail(s, SQLITE_READONLY, err, "opening for writing");
	rc = identify(s, &version, &empty, err);
	rc = rc ? rc : use_wal(s, err);
	if (!rc && version < rg_store_n_migrations)
		rc = migrate(s, err);
	rc = rc ? rc : check_tables(s, err);
	return rc ? rc : rg_store_mark_killed(s, err);
}

static int open_for_reading(struct rg_store *s, struct rg_error *err)
{
	int64_t version;
	bool empty;
	int rc = connect_for_reading(s, err);

	rc = rc ? rc : identify(s, &version, &empty, err);
	if (rc)
		return rc;
	if (empty) {
		rg_error_set(err, -ENODATA, "the database is empty");
		rg_error_hint(err, "record a run first: ridge record builtin:resnet50");
		return rg_error_at(err, "%s", s->path);
	}
	if (version < rg_store_n_migrations) {
		rg_error_set(err, -EPROTONOSUPPORT, "the database has the old version %" PRId64
			     "; this ridge reads version %d", version, rg_store_n_migrations);
		rg_error_hint(err, "recording into it once brings it up to date");
		return rg_error_at(err, "%s", s->path);
	}
	return check_tables(s, err);
}

static int open_scratch(struct rg_store *s, struct rg_error *err)
{
	int rc = connect_db(s, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	return rc ? rc : migrate(s, err);
}

int rg_store_open(const char *path, enum rg_store_mode mode, struct rg_store **out, struct rg_error *err)
{
	struct rg_store *s;
	int rc;

	*out = NULL;
	pthread_once(&heap_once, rg_store_use_our_heap);
	rc = mode == RG_STORE_SCRATCH ? 0 : check_path(path, mode, err);
	if (rc)
		return rc;
	s = rg_calloc(1, sizeof(*s));
	if (!s)
		return rg_error_nomem(err, sizeof(*s));
	s->mode = mode;
	s->path = rg_strdup(path);
	if (!s->path)
		rc = rg_error_nomem(err, strlen(path) + 1);
	else if (mode == RG_STORE_SCRATCH)
		rc = open_scratch(s, err);
	else
		rc = mode == RG_STORE_WRITE ? open_for_writing(s, err) : open_for_reading(s, err);
	if (rc) {
		rg_store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void rg_store_close(struct rg_store *s)
{
	if (!s)
		return;
	close_db(s);
	rg_free(s->path);
	rg_free(s);
}
