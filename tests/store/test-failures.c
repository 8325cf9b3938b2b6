/*
 * What goes wrong outside: kill -9 at any moment, two writers at once, a full
 * disk, a read-only folder, files that are no database of ours.
 *
 * Two tests need another surrounding and start this program again inside it
 * with the name of a part: a full disk is a small tmpfs in a private mount
 * namespace, missing permissions need another user than root.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "make-run.h"

#define EXIT_SKIP 77

static char dir[64], path[128], self[256];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/ridge-store-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/ridge.db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
}

static struct rg_store *open_db(const char *name, enum rg_store_mode mode)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;

	if (rg_store_open(name, mode, &s, &err))
		fail_msg("%s: %s (%s)", err.where, err.message, err.hint);
	return s;
}

/* Every iteration of the run has all of its spans and no other number. */
static int check_batches(struct rg_store *s, int64_t id)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_recording *r;
	int spans[20000] = { 0 }, n;

	if (rg_store_load(s, id, &r, &err))
		fail_msg("run %lld: %s: %s", (long long)id, err.where, err.message);
	n = r->n_iterations;
	assert_true(n < 20000);
	assert_int_equal(n % 4, 0); /* batches of four, whole */
	for (int64_t i = 0; i < r->n_spans; i++)
		spans[r->spans[i].iteration]++;
	for (int i = 0; i < n; i++)
		assert_int_equal(spans[i], r->iterations[i].hook_on ? RUN_SPANS_PER_ITERATION : 0);
	if (n)
		assert_true(r->n_steps == RUN_STEPS && r->n_tensors == 4);
	rg_recording_free(r);
	return n;
}

/* Writes batches until it is killed. */
static void write_until_killed(void)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	int64_t id;

	if (rg_store_open(path, RG_STORE_WRITE, &s, &err) || run_begin(s, "killed", &id, &err))
		_exit(1);
	for (int i = 0; i < 4000; i += 4)
		if (run_iterate(s, id, i, 4, &err))
			_exit(1);
	pause();
}

static void kill_9_leaves_whole_batches(void **state)
{
	enum { ROUNDS = 200 };
	struct rg_error err = RG_ERROR_INIT;
	unsigned seed = 7;
	int with_iterations = 0, began = 0;
	struct rg_store *s;
	struct rg_run *runs;
	int n;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec wait = { 0, (long)(rand_r(&seed) % 40000) * 1000 };
		pid_t child = fork();
		int status;

		if (child == 0)
			write_until_killed();
		nanosleep(&wait, NULL);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status)); /* it did not fail by itself */
		if (access(path, F_OK) != 0)
			continue; /* killed before there was a file */
		s = open_db(path, RG_STORE_WRITE);
		assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(runs[i].status, RG_RUN_KILLED);
		if (n > began) { /* this round's run got as far as beginning */
			int whole;

			assert_int_equal(n, began + 1);
			began = n;
			whole = check_batches(s, runs[0].id);
			with_iterations += whole > 0;
			assert_int_equal(runs[0].n_iterations, whole / 2);
			assert_true(whole == 0 || runs[0].p50_ns > 500);
		}
		rg_store_free_runs(runs, n);
		rg_store_close(s);
	}
	print_message("# %d of %d rounds began a run, %d wrote iterations\n", began, ROUNDS, with_iterations);
	assert_true(began > 10 && with_iterations > 5);
	s = open_db(path, RG_STORE_READ);
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	for (int i = 0; i < n; i++)
		check_batches(s, runs[i].id);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
}

static void a_reader_tells_a_killed_run_from_one_that_goes_on(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s = NULL;
	struct rg_run *runs;
	pid_t child = fork();
	int n = 0, status;

	if (child == 0)
		write_until_killed();
	for (int tries = 0; tries < 1000 && n == 0; tries++) { /* until it has begun */
		usleep(10000);
		if (rg_store_open(path, RG_STORE_READ, &s, &err))
			continue;
		assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
		if (n)
			assert_int_equal(runs[0].status, RG_RUN_RECORDING);
		rg_store_free_runs(runs, n);
		rg_store_close(s);
	}
	assert_int_equal(n, 1);
	/* Opening for writing does not mark a run that goes on. */
	s = open_db(path, RG_STORE_WRITE);
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(runs[0].status, RG_RUN_RECORDING);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	s = open_db(path, RG_STORE_READ);
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(runs[0].status, RG_RUN_KILLED);
	assert_int_equal(runs[0].ended_unix_ns, -1); /* nobody wrote that it ended */
	rg_store_free_runs(runs, n);
	rg_store_close(s);
}

static void two_processes_write_at_once(void **state)
{
	enum { BATCHES = 60 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	struct rg_run *runs;
	pid_t child[2];
	int n, status;

	for (int p = 0; p < 2; p++) {
		child[p] = fork();
		if (child[p] == 0) {
			int64_t id;
			int rc = rg_store_open(path, RG_STORE_WRITE, &s, &err); /* both create the file */

			rc = rc ? rc : run_begin(s, p ? "b" : "a", &id, &err);
			for (int i = 0; i < BATCHES && !rc; i++)
				rc = run_iterate(s, id, 4 * i, 4, &err);
			rc = rc ? rc : rg_store_end_run(s, id, RG_RUN_COMPLETE, "", &err);
			if (rc)
				fprintf(stderr, "# %s: %s\n", err.where, err.message);
			else
				rg_store_close(s);
			_exit(rc != 0);
		}
	}
	for (int p = 0; p < 2; p++) {
		assert_int_equal(waitpid(child[p], &status, 0), child[p]);
		assert_int_equal(status, 0);
	}
	s = open_db(path, RG_STORE_READ);
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(n, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(runs[i].status, RG_RUN_COMPLETE);
		assert_int_equal(check_batches(s, runs[i].id), 4 * BATCHES);
	}
	rg_store_free_runs(runs, n);
	rg_store_close(s);
}

static void expect_refusal(const char *name, enum rg_store_mode mode, int code, const char *word)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	int rc = rg_store_open(name, mode, &s, &err);

	if (rc != code || !strstr(err.message, word))
		fail_msg("%s: got %d '%s', want %d '%s'", name, rc, err.message, code, word);
	assert_null(s);
	assert_true(err.hint[0]);
	assert_non_null(strstr(err.where, name));
}

static void what_is_no_database_of_ours_is_refused(void **state)
{
	static const unsigned char png[128] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R' };
	struct rg_error err = RG_ERROR_INIT;
	char name[160], text[4000];
	struct rg_store *s;
	struct stat before, after;
	sqlite3 *db;

	memset(text, 'x', sizeof(text));
	for (int mode = RG_STORE_READ; mode <= RG_STORE_WRITE; mode++) {
		snprintf(name, sizeof(name), "%s/picture.png", dir);
		write_file(name, png, sizeof(png));
		expect_refusal(name, mode, -EBADMSG, "not a database");
		snprintf(name, sizeof(name), "%s/short.txt", dir);
		write_file(name, "hello\n", 6);
		expect_refusal(name, mode, -EBADMSG, "not a database");
		assert_int_equal(stat(name, &after), 0);
		assert_int_equal(after.st_size, 6); /* and is left as it was */
		snprintf(name, sizeof(name), "%s/long.txt", dir);
		write_file(name, text, sizeof(text));
		expect_refusal(name, mode, -EBADMSG, "not a database");
		expect_refusal(dir, mode, -EISDIR, "folder");
		snprintf(name, sizeof(name), "%s/nowhere/ridge.db", dir);
		expect_refusal(name, mode, -ENOENT, mode == RG_STORE_READ ? "no database" : "does not exist");

		/* A database, but of another program. */
		snprintf(name, sizeof(name), "%s/other.db", dir);
		unlink(name);
		assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
		sqlite3_exec(db, "CREATE TABLE song (title TEXT)", NULL, NULL, NULL);
		sqlite3_close(db);
		expect_refusal(name, mode, -EBADMSG, "not one of ridge");
	}
	expect_refusal(path, RG_STORE_READ, -ENOENT, "no database");
	assert_int_equal(rg_store_open("", RG_STORE_WRITE, &s, &err), -EINVAL);

	/* An empty file is a database without runs, and may be written. */
	write_file(path, "", 0);
	expect_refusal(path, RG_STORE_READ, -ENODATA, "empty");
	rg_store_close(open_db(path, RG_STORE_WRITE));

	/* Newer than this program: both versions are named, the file is not touched. */
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA user_version = 4711", NULL, NULL, NULL);
	sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
	sqlite3_close(db);
	assert_int_equal(stat(path, &before), 0);
	expect_refusal(path, RG_STORE_READ, -EPROTONOSUPPORT, "4711");
	expect_refusal(path, RG_STORE_WRITE, -EPROTONOSUPPORT, "up to version 4");
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

/* Starts this program again by `how`, with the name of a part and the folder. */
static void run_part(const char *how, const char *part, const char *why_not)
{
	char command[700];
	int status;

	snprintf(command, sizeof(command), "%s '%s' %s '%s'", how, self, part, dir);
	status = system(command);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == EXIT_SKIP || WEXITSTATUS(status) == 127) {
		print_message("# skipped: %s\n", why_not);
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a private mount namespace: fills a tmpfs of 1 MiB. */
static int part_full_disk(void)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	int64_t id, before;
	char command[200];
	int i, rc;

	snprintf(command, sizeof(command), "mount -t tmpfs -o size=1m none '%s' 2>/dev/null", dir);
	if (system(command))
		return EXIT_SKIP;
	s = open_db(path, RG_STORE_WRITE);
	assert_int_equal(run_begin(s, "full", &id, &err), 0);
	for (i = 0; (rc = run_iterate(s, id, i, 4, &err)) == 0; i += 4)
		assert_true(i < 100000);
	if (rc != -ENOSPC || !strstr(err.message, "full") || !err.hint[0])
		fail_msg("a full disk gave %d: %s", rc, err.message);
	before = i;
	/* The handle is still good: what was committed can be read through it. */
	assert_int_equal(check_batches(s, id), before);
	rg_store_close(s);
	s = open_db(path, RG_STORE_READ);
	assert_int_equal(check_batches(s, id), before);
	rg_store_close(s);
	/* A second database has no room at all. */
	snprintf(command, sizeof(command), "dd if=/dev/zero of='%s/fill' bs=1k 2>/dev/null", dir);
	assert_int_not_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/second.db", dir);
	assert_int_equal(rg_store_open(command, RG_STORE_WRITE, &s, &err), -ENOSPC);
	assert_true(err.hint[0]);
	return 0;
}

static void a_full_disk_keeps_what_was_committed(void **state)
{
	if (system("unshare -m true 2>/dev/null")) {
		print_message("# skipped: unshare -m is not permitted here\n");
		skip();
	}
	run_part("exec unshare -m", "full-disk", "a tmpfs cannot be mounted here");
}

/* As another user: the folder and the database in it may only be read. */
static int part_read_only(void)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	struct rg_run *runs;
	char name[160];
	int n;

	if (access(dir, W_OK) == 0)
		return EXIT_SKIP;
	s = open_db(path, RG_STORE_READ); /* no -wal file is there */
	assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(check_batches(s, runs[0].id), 8);
	rg_store_free_runs(runs, n);
	rg_store_close(s);
	expect_refusal(path, RG_STORE_WRITE, -EACCES, "read-only");
	snprintf(name, sizeof(name), "%s/new.db", dir);
	expect_refusal(name, RG_STORE_WRITE, -EACCES, "read-only");
	/* With commits in a -wal file, reading without it would show the past. */
	snprintf(name, sizeof(name), "%s/with # ? %%41 wal.db", dir);
	if (rg_store_open(name, RG_STORE_READ, &s, &err) == 0) {
		assert_int_equal(rg_store_list_runs(s, &runs, &n, &err), 0);
		assert_int_equal(n, 2); /* never fewer than there are */
		rg_store_free_runs(runs, n);
		rg_store_close(s);
	} else {
		assert_non_null(strstr(err.hint, "-wal"));
	}
	/* Names that mean something in a URI. */
	snprintf(name, sizeof(name), "%s/odd # ? %%41 name.db", dir);
	s = open_db(name, RG_STORE_READ);
	rg_store_close(s);
	return 0;
}

static void a_read_only_folder_can_be_read(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s = open_db(path, RG_STORE_WRITE);
	char command[600];
	int64_t id;

	assert_int_equal(run_begin(s, "t", &id, &err), 0);
	assert_int_equal(run_iterate(s, id, 0, 8, &err), 0);
	assert_int_equal(rg_store_end_run(s, id, RG_RUN_COMPLETE, "", &err), 0);
	rg_store_close(s);
	snprintf(command, sizeof(command), "cp '%s' '%s/odd # ? %%41 name.db'; cp '%s' '%s/with # ? %%41 wal.db'", path, dir,
		 path, dir);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/with # ? %%41 wal.db", dir);
	s = open_db(command, RG_STORE_WRITE);
	assert_int_equal(run_begin(s, "in the wal", &id, &err), 0);
	/* A copy of both files, as a writer that vanished leaves them. */
	snprintf(command, sizeof(command), "cd '%s' && cp 'with # ? %%41 wal.db-wal' keep && cp 'with # ? %%41 wal.db' kept", dir);
	assert_int_equal(system(command), 0);
	rg_store_close(s);
	snprintf(command, sizeof(command), "cd '%s' && rm -f with*shm && mv keep 'with # ? %%41 wal.db-wal' && "
					   "mv kept 'with # ? %%41 wal.db' && chmod 644 * && chmod 555 .", dir);
	assert_int_equal(system(command), 0);
	if (geteuid() != 0) {
		run_part("exec", "read-only", "the folder is writable all the same");
		assert_int_equal(chmod(dir, 0755), 0);
		return;
	}
	if (system("setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null")) {
		print_message("# skipped: setpriv is not there or not permitted\n");
		skip();
	}
	snprintf(command, sizeof(command), "setpriv --reuid 65534 --regid 65534 --clear-groups test -x '%s'", self);
	if (system(command)) {
		print_message("# skipped: another user cannot reach the test program\n");
		skip();
	}
	run_part("exec setpriv --reuid 65534 --regid 65534 --clear-groups", "read-only",
		 "the folder is writable all the same");
}

static void a_file_that_vanished_is_told(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s = open_db(path, RG_STORE_WRITE);
	int64_t id;

	(void)state;
	assert_int_equal(run_begin(s, "t", &id, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rg_store_end_run(s, id, RG_RUN_COMPLETE, "", &err), -ENOENT);
	assert_non_null(strstr(err.message, "deleted or moved"));
	rg_store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(kill_9_leaves_whole_batches),
		TEST(a_reader_tells_a_killed_run_from_one_that_goes_on),
		TEST(two_processes_write_at_once),
		TEST(what_is_no_database_of_ours_is_refused),
		TEST(a_full_disk_keeps_what_was_committed),
		TEST(a_read_only_folder_can_be_read),
		TEST(a_file_that_vanished_is_told),
	};
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		return 1;
	if (argc == 3) {
		snprintf(dir, sizeof(dir), "%s", argv[2]);
		snprintf(path, sizeof(path), "%s/ridge.db", dir);
		return strcmp(argv[1], "full-disk") == 0 ? part_full_disk() : part_read_only();
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
