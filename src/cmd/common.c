/*
 * What the verbs share: printing, opening the database, loading a run, exit
 * codes, progress, and Ctrl-C.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/cmd.h"

int rg_cmd_print(const char *text, struct rg_error *err)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(STDOUT_FILENO, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int e = errno;

			rg_error_set(err, -e, "%s", strerror(e));
			if (e == ENOSPC)
				rg_error_hint(err, "free some space; what was written so far is not whole");
			return rg_error_at(err, "standard output");
		}
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

int rg_cmd_exit_code(const struct rg_error *err)
{
	switch (err->code) {
	case 0:
	case -EPIPE: /* the reader has seen enough */
		return 0;
	case RG_EUSAGE:
		return 2;
	case RG_ECANT_MEASURE:
		return 3;
	case RG_EINTERRUPTED:
		return 130;
	default:
		return 1;
	}
}

static int nothing_recorded(const struct rg_args *a, struct rg_error *err)
{
	rg_error_set(err, -ENOENT, "nothing is recorded yet");
	rg_error_hint(
	    err,
	    "record a run first:  ridge record builtin:resnet50   (or --db FILE names another database)");
	return rg_error_at(err, "%s", a->db);
}

int rg_cmd_open_read(const struct rg_args *a, struct rg_store **s, struct rg_error *err)
{
	struct stat st;

	if (stat(a->db, &st) != 0 && errno == ENOENT)
		return nothing_recorded(a, err);
	return rg_store_open(a->db, RG_STORE_READ, s, err);
}

int rg_cmd_open_write(const struct rg_args *a, struct rg_store **s, struct rg_error *err)
{
	return rg_store_open(a->db, RG_STORE_WRITE, s, err);
}

int rg_cmd_plan(struct rg_args *a, const char *name, struct rg_store **s, struct rg_error *err)
{
	int64_t run;
	int rc;

	*s = NULL;
	if (!name) {
		rg_error_set(err, RG_EUSAGE, "--static needs a model");
		return rg_error_hint(err, "an ONNX file, or builtin:resnet50");
	}
	rc = rg_store_open("the plan", RG_STORE_SCRATCH, s, err);
	if (rc)
		return rc;
	a->session.model = name;
	a->session.lenient = true;
	rg_cmd_catch_interrupt();
	rc = rg_session_plan(*s, &a->session, &run, err);
	rg_cmd_progress_end(a);
	if (rc == -ENOENT && access(name, F_OK)) /* the number or tag of a run, perhaps */
		rc = rg_error_hint(err, "--static takes a model: an ONNX file, or builtin:resnet50");
	if (rc) {
		rg_store_close(*s);
		*s = NULL;
	}
	return rc;
}

int rg_cmd_load(struct rg_store *s, const char *ref, struct rg_recording **rec, struct rg_analysis **a,
		struct rg_error *err)
{
	int64_t id;
	int rc = rg_store_find_run(s, ref ? ref : "last", &id, err);

	*rec = NULL;
	*a = NULL;
	if (rc != 0) {
		struct rg_error ignored = RG_ERROR_INIT;
		struct rg_run *runs = NULL;
		int n = 0;

		/* A database without runs deserves a better word than "no such run". */
		if (rg_store_list_runs(s, &runs, &n, &ignored) == 0 && n == 0) {
			rg_error_set(err, -ENOENT, "nothing is recorded yet");
			rg_error_hint(err, "record a run first:  ridge record builtin:resnet50");
		}
		rg_store_free_runs(runs, n);
		return rc;
	}
	rc = rg_store_load(s, id, rec, err);
	if (rc == 0)
		rc = rg_analyze(*rec, a, err);
	if (rc != 0) {
		rg_recording_free(*rec);
		*rec = NULL;
	}
	return rc;
}

void rg_cmd_missing_model(const char *what, struct rg_error *err)
{
	const char *dot = what ? strrchr(what, '.') : NULL;

	if (err->code != -ENOENT || !dot || strcmp(dot, ".onnx") != 0)
		return;
	rg_error_set(err, -ENOENT, "there is no such file");
	rg_error_hint(err, "check the path; no run has that name either");
	rg_error_at(err, "%s", what);
}

struct rg_style rg_cmd_style(const struct rg_args *a)
{
	return (struct rg_style){
	    .format = a->format, .colour = a->colour, .width = a->columns, .top = a->top, .why = a->why};
}

/* Whether a progress line stands on the terminal. One process, one terminal. */
static bool progress_drawn;

void rg_cmd_progress(void *args, const char *what, double fraction)
{
	static uint64_t last_ns;
	static char last_what[64];
	struct rg_args *a = args;
	uint64_t now = rg_clock_now_ns();
	char line[128];

	if (a->quiet || !a->stderr_tty)
		return;
	/* Ten times a second is enough for people, and keeps the terminal out of
	 * the measurement. */
	if (progress_drawn && now - last_ns < 100000000 &&
	    strncmp(what, last_what, sizeof(last_what) - 1) == 0)
		return;
	last_ns = now;
	snprintf(last_what, sizeof(last_what), "%s", what);
	if (isfinite(fraction))
		snprintf(line, sizeof(line), "%.60s %3.0f %%", what, fraction * 100);
	else
		snprintf(line, sizeof(line), "%.60s", what);
	fprintf(stderr, "\r\033[K%s", line);
	fflush(stderr);
	progress_drawn = true;
}

void rg_cmd_progress_end(struct rg_args *a)
{
	if (!progress_drawn)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress_drawn = false;
}

void rg_cmd_warn(void *args, const char *text)
{
	struct rg_args *a = args;

	if (a->quiet)
		return;
	rg_cmd_progress_end(a);
	fprintf(stderr, "ridge: note: %s\n", text);
}

static void on_signal(int sig)
{
	if (rg_session_interrupted()) {
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	rg_session_interrupt();
}

void rg_cmd_catch_interrupt(void)
{
	static const int signals[] = { SIGINT, SIGTERM };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old, act = { .sa_handler = on_signal };

		/* Ignored by our parent (nohup, a job in the background): stays ignored. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigemptyset(&act.sa_mask);
		sigaction(signals[i], &act, NULL);
	}
}
