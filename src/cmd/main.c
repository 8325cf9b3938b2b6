/*
 * Entry: reads the environment and the terminal, parses, calls the verb, and
 * prints the error if there was one. The only place that decides exit codes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cmd.h"

/*
 * A closed standard stream leaves its number to the next file that is opened,
 * and what is meant for a person would land in the database. The places are
 * taken by something that gives an error for it.
 */
static void hold_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

static void read_surroundings(struct rg_args *a)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *db = getenv("RIDGE_DB");
	struct winsize w;

	a->stdout_tty = isatty(STDOUT_FILENO);
	a->stderr_tty = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
	a->colour = a->stdout_tty && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	if (a->stdout_tty) {
		a->columns = 80;
		a->rows = 24;
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) {
			a->columns = w.ws_col;
			a->rows = w.ws_row;
		}
	}
	if (db && *db)
		a->db = db;
}

static void print_error(const struct rg_error *err)
{
	fprintf(stderr, "ridge: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->message);
	if (err->hint[0])
		fprintf(stderr, "  %s\n", err->hint);
}

/* Help, version, or the verb. */
static int dispatch(struct rg_args *a, struct rg_error *err)
{
	struct rg_str out = { 0 };
	int rc;

	if (!a->help && !a->version)
		return a->cmd->run(a, err);
	if (a->version)
		rg_str_printf(&out, "ridge %s\n", rg_cmd_version);
	else if (a->cmd)
		rg_help_verb(&out, a->cmd, a->columns ? a->columns : 80);
	else
		rg_help_summary(&out, a->columns ? a->columns : 80);
	rc = out.failed ? rg_error_nomem(err, out.len) : rg_cmd_print(rg_str_text(&out), err);
	rg_str_free(&out);
	return rc ? rg_cmd_exit_code(err) : 0;
}

/* The command line as one string, for the record. NULL: out of memory. */
static bool join(struct rg_str *out, int argc, char **argv)
{
	rg_str_add(out, "ridge");
	for (int i = 1; i < argc; i++) {
		rg_str_add(out, " ");
		rg_str_shell(out, argv[i]);
	}
	return !out->failed;
}

int main(int argc, char **argv)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_args a = { 0 };
	struct rg_str command = { 0 };
	int code;

	hold_standard_streams();
	/* A closed pipe comes back as EPIPE, so that a recording is not lost to it. */
	signal(SIGPIPE, SIG_IGN);
	read_surroundings(&a);
	if (rg_args_parse(&a, argc, argv, &err) != 0) {
		code = rg_cmd_exit_code(&err);
	} else if (!join(&command, argc, argv)) {
		rg_error_nomem(&err, command.len);
		code = 1;
	} else {
		a.session.command = rg_str_text(&command);
		a.session.progress = rg_cmd_progress;
		a.session.progress_ctx = &a;
		a.session.warn = rg_cmd_warn;
		a.session.warn_ctx = &a;
		code = dispatch(&a, &err);
	}
	rg_cmd_progress_end(&a);
	if (err.code != 0 && err.code != -EPIPE)
		print_error(&err);
	rg_str_free(&command);
	rg_args_free(&a);
	return code;
}
