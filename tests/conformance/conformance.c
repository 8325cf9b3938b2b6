/*
 * Runs every case of ONNX's own test data (Debian's libonnx-testdata, or what
 * --data names) and holds the outputs against the expected ones. Each case runs
 * in a child of its own with a time limit, so that a crash is named and counted.
 *
 * The cases that pass are listed in passed.txt (a table for each data set:
 * --table), which only moves up: a listed case that does not pass is a failure;
 * one that newly passes is reported with the command that adds it.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/case.h"
#include "tests/conformance/names.h"
#include "tests/conformance/summary.h"

#define DEFAULT_DATA "/usr/share/libonnx-testdata/data"
#define LIMIT_S 60 /* the slowest case takes under a second; sanitizers are slow */

/* The nine models under real/ hold only links to files that are elsewhere;
 * scripts/conformance makes light/, the same nine with made-up weights. */
static const char *const groups[] = { "light", "node", "pytorch-converted", "pytorch-operator", "simple" };

struct options {
	const char *data, *table, *summary;
	const char *only;     /* --case: part of a name */
	bool list, verbose, tap, update, reasons;
};

/* Every GROUP/NAME that holds a model. */
static void find_cases(const char *data, struct names *out)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		char path[4096], name[512];
		struct dirent *e;
		struct stat st;
		DIR *d;

		snprintf(path, sizeof(path), "%s/%s", data, groups[g]);
		d = opendir(path);
		while (d && (e = readdir(d))) {
			snprintf(name, sizeof(name), "%s/%s", groups[g], e->d_name);
			snprintf(path, sizeof(path), "%s/%s/model.onnx", data, name);
			if (e->d_name[0] != '.' && stat(path, &st) == 0)
				names_add(out, name);
		}
		if (d)
			closedir(d);
	}
	names_sort(out);
}

/* passed.txt: one name a line, '#' starts a comment. False: cannot be read. */
static bool read_table(const char *path, struct names *out)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (line[0] && line[0] != '#')
			names_add(out, line);
	}
	fclose(f);
	names_sort(out);
	return true;
}

static bool write_table(const char *path, const struct names *passed)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		fprintf(stderr, "conformance: %s: %s\n", path, strerror(errno));
		return false;
	}
	fprintf(f, "# Cases of ONNX's test data that pass, sorted. It only moves up; written by\n"
		   "# conformance --update (see conformance.c).\n");
	for (size_t i = 0; i < passed->n; i++)
		if (i == 0 || strcmp(passed->v[i], passed->v[i - 1]))
			fprintf(f, "%s\n", passed->v[i]);
	if (fclose(f)) {
		fprintf(stderr, "conformance: %s: %s\n", path, strerror(errno));
		return false;
	}
	return true;
}

static void died(struct case_result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void died(struct case_result *r, const char *fmt, ...)
{
	va_list ap;

	r->outcome = CASE_CRASHED;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
}

/* Runs one case in a child. */
static void run_isolated(const char *data, const char *name, struct case_result *r)
{
	size_t have = 0;
	int fds[2], status;
	ssize_t got;
	pid_t pid;

	memset(r, 0, sizeof(*r));
	if (pipe(fds)) {
		died(r, "pipe: %s", strerror(errno));
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		died(r, "fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return;
	}
	if (pid == 0) {
		close(fds[0]);
		alarm(LIMIT_S);
		case_run(data, name, r);
		/* One write of less than PIPE_BUF: whole or not at all. */
		if (write(fds[1], r, sizeof(*r)) != (ssize_t)sizeof(*r))
			_exit(1);
		exit(0); /* not _exit: a leak checker looks now */
	}
	close(fds[1]);
	while (have < sizeof(*r)) {
		got = read(fds[0], (char *)r + have, sizeof(*r) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		died(r, "took longer than %d s", LIMIT_S);
	else if (WIFSIGNALED(status))
		died(r, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		died(r, "ended with exit status %d", WEXITSTATUS(status));
	else if (have < sizeof(*r))
		died(r, "ended without a result");
}

static void print_case(const struct options *o, size_t number, const char *name,
		       const struct case_result *r, bool regressed)
{
	bool skip = r->outcome == CASE_UNSUPPORTED && !regressed;

	if (o->tap) {
		if (r->outcome == CASE_PASSED)
			printf("ok %zu - %s\n", number, name);
		else if (skip)
			printf("ok %zu - %s # SKIP unsupported: %s\n", number, name, r->reason);
		else
			printf("not ok %zu - %s: %s%s: %s\n", number, name, case_outcome_name(r->outcome),
			       regressed ? " (it passed before)" : "", r->reason);
	} else if (o->verbose || regressed || r->outcome == CASE_WRONG || r->outcome == CASE_CRASHED) {
		printf("%-11s %s%s%s%s%s%s\n", case_outcome_name(r->outcome), name, r->reason[0] ? ": " : "",
		       r->where[0] ? r->where : "", r->where[0] ? ": " : "", r->reason,
		       regressed ? " (it passed before)" : "");
	}
}

/* Returns how many ran. */
static size_t run_all(const struct options *o, const struct names *cases, const struct names *listed,
		      struct summary *sum)
{
	size_t number = 0;

	for (size_t i = 0; i < cases->n; i++) {
		const char *name = cases->v[i];
		bool is_listed = names_has(listed, name);
		struct case_result r;

		if (o->only && !strstr(name, o->only))
			continue;
		run_isolated(o->data, name, &r);
		summary_add(sum, name, &r, is_listed);
		print_case(o, ++number, name, &r, is_listed && r.outcome != CASE_PASSED);
	}
	return number;
}

static int usage(FILE *f)
{
	fprintf(f, "usage: conformance [options]\n"
		   "  --case TEXT    only cases whose name contains TEXT\n"
		   "  --list         list the cases and stop\n"
		   "  --reasons      what stops cases, by how many\n"
		   "  --summary FILE outcomes, reasons and ULP errors as Markdown\n"
		   "  --update       add newly passing cases to the table\n"
		   "  --tap          Test Anything Protocol\n"
		   "  --data DIR     default: RIDGE_ONNX_TESTDATA, then " DEFAULT_DATA "\n"
		   "  --table FILE   default: the repository's passed.txt\n"
		   "  -v             a line for every case, with its reason\n");
	return f == stdout ? 0 : 2;
}

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char **value = NULL;
		bool *flag = NULL;

		if (!strcmp(argv[i], "--case"))
			value = &o->only;
		else if (!strcmp(argv[i], "--data"))
			value = &o->data;
		else if (!strcmp(argv[i], "--table"))
			value = &o->table;
		else if (!strcmp(argv[i], "--summary"))
			value = &o->summary;
		else if (!strcmp(argv[i], "--list"))
			flag = &o->list;
		else if (!strcmp(argv[i], "--reasons"))
			flag = &o->reasons;
		else if (!strcmp(argv[i], "--update"))
			flag = &o->update;
		else if (!strcmp(argv[i], "--tap"))
			flag = &o->tap;
		else if (!strcmp(argv[i], "-v"))
			flag = &o->verbose;
		if (flag)
			*flag = true;
		else if (value && i + 1 < argc)
			*value = argv[++i];
		else
			return -1;
	}
	return 0;
}

static bool write_summary(const char *path, struct summary *sum)
{
	FILE *f = fopen(path, "w");

	if (f) {
		summary_print(sum, f);
		if (fclose(f) == 0)
			return true;
	}
	fprintf(stderr, "conformance: %s: %s\n", path, strerror(errno));
	return false;
}

/* False when something that was asked for could not be written. */
static bool finish(const struct options *o, const struct names *listed, struct summary *sum)
{
	const char *mark = o->tap ? "# " : "";
	bool good = true;

	if (o->reasons)
		summary_print_reasons(sum, stdout, false);
	if (o->summary)
		good = write_summary(o->summary, sum);
	if (sum->newly.n == 0)
		return good;
	if (!o->update) {
		printf("%s%zu newly passing; add them to the table:  conformance --update\n", mark,
		       sum->newly.n);
		return good;
	}
	for (size_t i = 0; i < listed->n; i++)
		names_add(&sum->newly, listed->v[i]);
	names_sort(&sum->newly);
	if (!write_table(o->table, &sum->newly))
		return false;
	printf("%s%s: %zu cases\n", mark, o->table, sum->newly.n);
	return good;
}

int main(int argc, char **argv)
{
	struct options o = { .data = getenv("RIDGE_ONNX_TESTDATA"), .table = RG_CONFORMANCE_TABLE };
	struct names cases = { 0 }, listed = { 0 };
	struct summary sum = { 0 };
	bool good;
	size_t n;

	if (!o.data)
		o.data = DEFAULT_DATA;
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	if (parse(argc, argv, &o))
		return usage(stderr);
	find_cases(o.data, &cases);
	if (cases.n == 0) {
		printf("%sno test data in %s (package libonnx-testdata)\n",
		       o.tap ? "1..0 # SKIP " : "conformance: ", o.data);
		names_free(&cases);
		return o.tap ? 0 : 1;
	}
	if (o.list) {
		for (size_t i = 0; i < cases.n; i++)
			printf("%s\n", cases.v[i]);
		names_free(&cases);
		return 0;
	}
	good = read_table(o.table, &listed) || o.update;
	if (!good)
		fprintf(stderr, "conformance: %s: %s\n", o.table, strerror(errno));
	n = run_all(&o, &cases, &listed, &sum);
	/* A listed case that is gone was not run: that is no pass. */
	for (size_t i = 0; i < listed.n && !o.only; i++) {
		if (names_has(&cases, listed.v[i]))
			continue;
		n++;
		if (o.tap)
			printf("not ok %zu - %s: listed, but not in the test data\n", n, listed.v[i]);
		else
			printf("%-11s %s: listed, but not in the test data\n", "missing", listed.v[i]);
		sum.regressed++;
	}
	good = finish(&o, &listed, &sum) && good;
	if (o.tap)
		printf("1..%zu\n# ", n);
	printf("conformance: %zu passed, %zu unsupported, %zu wrong of %zu\n", sum.count[CASE_PASSED],
	       sum.count[CASE_UNSUPPORTED], sum.count[CASE_WRONG] + sum.count[CASE_CRASHED], n);
	good = good && n && !sum.count[CASE_WRONG] && !sum.count[CASE_CRASHED] && !sum.regressed;
	names_free(&cases);
	names_free(&listed);
	summary_free(&sum);
	return good ? 0 : 1;
}
