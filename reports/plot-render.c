/*
 * Runs gnuplot. Script, picture and complaints go through files without a name
 * (memfd) rather than pipes, so neither side can block the other or die of a
 * closed pipe, and no shell ever sees a word of the script.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "reports/plot.h"

static int write_all(int fd, const char *text, size_t left)
{
	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Appends at most `limit` bytes of fd, read from its beginning. */
static void read_back(int fd, struct rg_str *out, size_t limit)
{
	char buf[4096];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) != 0)
		return;
	while (limit > 0) {
		n = read(fd, buf, limit < sizeof(buf) ? limit : sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		rg_str_addn(out, buf, (size_t)n);
		limit -= (size_t)n;
	}
}

/* In the child, after fork: only what is async-signal-safe. */
static void become_gnuplot(int in, int out, int complaints)
{
	/* -d: nobody's start-up file changes the picture. */
	static char *const argv[] = { "gnuplot", "-d", "-", NULL };

	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(complaints, STDERR_FILENO) < 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	execvp("gnuplot", argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static int explain(int status, int complaints, struct rg_error *err)
{
	struct rg_str text = { 0 };
	const char *line;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		rg_error_set(err, -ENOENT, "gnuplot is not installed");
		return rg_error_hint(
		    err, "install it:  apt-get install gnuplot-nox   (or keep the script with -o FILE.gp)");
	}
	if (WIFSIGNALED(status)) {
		rg_error_set(err, -EIO, "gnuplot was ended by signal %d", WTERMSIG(status));
		return rg_error_hint(err, "-o FILE.gp keeps the script, to run it by hand");
	}
	/* gnuplot shows the line and a caret first; the sentence comes last. */
	read_back(complaints, &text, 16384);
	while (text.len && (text.text[text.len - 1] == '\n' || text.text[text.len - 1] == ' '))
		text.text[--text.len] = '\0';
	line = strrchr(rg_str_text(&text), '\n');
	line = line ? line + 1 : rg_str_text(&text);
	line += strspn(line, " \t");
	rg_error_set(err, -EIO, "gnuplot failed: %s", *line ? line : "it did not say why");
	rg_str_free(&text);
	return rg_error_hint(err, "-o FILE.gp keeps the script, to run it by hand");
}

static int run(const char *script, int out, struct rg_error *err)
{
	int in = memfd_create("ridge-script", MFD_CLOEXEC),
	    complaints = memfd_create("ridge-stderr", MFD_CLOEXEC);
	int rc = in < 0 || complaints < 0 ? -errno : 0, status = 0;
	pid_t pid = -1;

	if (rc == 0)
		rc = write_all(in, script, strlen(script));
	if (rc == 0 && lseek(in, 0, SEEK_SET) != 0)
		rc = -errno;
	if (rc == 0) {
		pid = fork();
		if (pid == 0)
			become_gnuplot(in, out, complaints);
		rc = pid < 0 ? -errno : 0;
	}
	if (rc != 0) {
		rg_error_set(err, rc, "cannot start gnuplot: %s", strerror(-rc));
	} else {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			rc = explain(status, complaints, err);
	}
	if (in >= 0)
		close(in);
	if (complaints >= 0)
		close(complaints);
	return rc;
}

/* Runs the script and leaves what it drew in a file without a name: 0 and an
 * open *fd, or an error. */
static int picture(const char *script, int *fd, struct rg_error *err)
{
	struct stat st;
	int rc;

	*fd = memfd_create("ridge-plot", MFD_CLOEXEC);
	if (*fd < 0) {
		rc = -errno;
		return rg_error_set(err, rc, "cannot make room for the plot: %s", strerror(-rc));
	}
	rc = run(script, *fd, err);
	if (rc == 0 && (fstat(*fd, &st) != 0 || st.st_size == 0)) {
		rc = rg_error_set(err, -EIO, "gnuplot drew nothing");
		rg_error_hint(err, "-o FILE.gp keeps the script, to run it by hand");
	}
	if (rc != 0) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

static int cannot_write(const char *path, int rc, struct rg_error *err)
{
	rg_error_set(err, rc, "cannot write the picture: %s", strerror(-rc));
	if (rc == -ENOSPC)
		rg_error_hint(err, "free some space, or name another folder");
	else if (rc == -EACCES || rc == -EROFS)
		rg_error_hint(err, "name a folder that you may write to");
	else if (rc == -ENOENT)
		rg_error_hint(err, "make the folder first");
	else
		rg_error_hint(err, "name another file with -o FILE");
	return rg_error_at(err, "%s", path);
}

static int copy(int from, int to)
{
	char buf[65536];
	ssize_t n = 1;
	int rc = lseek(from, 0, SEEK_SET) == 0 ? 0 : -errno;

	while (rc == 0 && n != 0) {
		n = read(from, buf, sizeof(buf));
		if (n < 0)
			rc = errno == EINTR ? 0 : -errno;
		else
			rc = write_all(to, buf, (size_t)n);
	}
	return rc;
}

/* A temporary name beside the target, then renamed: never half a picture. */
static int to_file(int from, const char *path, struct rg_error *err)
{
	char *tmp = rg_asprintf("%s.XXXXXX", path);
	mode_t mask;
	int fd, rc;

	if (!tmp)
		return rg_error_nomem(err, strlen(path) + 8);
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0) {
		rc = cannot_write(path, -errno, err);
		rg_free(tmp);
		return rc;
	}
	rc = copy(from, fd);
	/* mkostemp makes it private; a picture gets the mode that any new file has. */
	mask = umask(0);
	umask(mask);
	if (rc == 0 && fchmod(fd, 0666 & ~mask) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) != 0)
		rc = -errno;
	if (rc != 0) {
		unlink(tmp);
		cannot_write(path, rc, err);
	}
	rg_free(tmp);
	return rc;
}

/* Blanks at the ends of lines are not worth a copy and paste, and gnuplot 5.4
 * begins a page with a form feed even when told not to. */
static void trim_lines(struct rg_str *s, size_t from)
{
	size_t to = from;

	for (size_t i = from; i < s->len; i++) {
		if (s->text[i] == '\f')
			continue;
		if (s->text[i] == '\n')
			while (to > from && s->text[to - 1] == ' ')
				to--;
		s->text[to++] = s->text[i];
	}
	while (to > from && s->text[to - 1] == ' ')
		to--;
	if (s->text) {
		s->text[to] = '\0';
		s->len = to;
	}
	if (to > from && s->text[to - 1] != '\n')
		rg_str_add(s, "\n");
}

int rg_plot_render(const char *script, const struct rg_plot_options *o, struct rg_str *terminal,
		   struct rg_error *err)
{
	int fd, rc = picture(script, &fd, err);

	if (rc != 0)
		return rc;
	if (o->output && strcmp(o->output, "-") != 0) {
		rc = to_file(fd, o->output, err);
	} else {
		size_t from = terminal->len;

		read_back(fd, terminal, 16u << 20);
		trim_lines(terminal, from);
		if (terminal->failed)
			rc = rg_error_nomem(err, (unsigned long)terminal->len);
	}
	close(fd);
	return rc;
}
