/* See ladder-sim.h. */
#include "session/ladder-sim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

#define LINE_BYTES 64
#define WAYS 8

struct rg_sim_cache rg_sim_cache_of(const struct rg_cache *c)
{
	struct rg_sim_cache s = { .line_bytes = c->line_bytes, .ways = c->ways };
	int64_t sets = 1, room;

	if (s.line_bytes < 16 || (s.line_bytes & (s.line_bytes - 1)))
		s.line_bytes = LINE_BYTES;
	if (s.ways < 1)
		s.ways = WAYS;
	room = c->size_bytes / (s.line_bytes * s.ways);
	while (sets * 2 <= room)
		sets *= 2;
	s.size_bytes = sets * s.line_bytes * s.ways;
	s.changed = s.size_bytes != c->size_bytes || s.line_bytes != c->line_bytes || s.ways != c->ways;
	return s;
}

static void describe(struct rg_str *out, const char *name, const struct rg_sim_cache *s, const struct rg_cache *c)
{
	char a[32], b[32];

	rg_str_printf(out, "%s %s of %d ways and lines of %d bytes", name, rg_fmt_bytes(a, (double)s->size_bytes),
		      s->ways, (int)s->line_bytes);
	if (s->size_bytes != c->size_bytes)
		rg_str_printf(out, " (here %s)", rg_fmt_bytes(b, (double)c->size_bytes));
	else if (s->changed)
		rg_str_add(out, " (ways or lines assumed)");
}

int rg_sim_caches_of(const struct rg_topology *t, struct rg_sim_caches *out, struct rg_error *err)
{
	const struct rg_cache *first = NULL, *last = NULL;
	struct rg_str text = { 0 };

	for (int i = 0; i < t->n_caches; i++) {
		const struct rg_cache *c = &t->caches[i];

		if (c->size_bytes < 1024)
			continue;
		if (c->level == 1)
			first = c;
		if (c->level > 1 && (!last || c->level > last->level))
			last = c;
	}
	if (!first || !last) {
		rg_error_set(err, -ENOENT, "the caches of this machine are not known, so none can be simulated");
		return rg_error_hint(err, "/sys/devices/system/cpu/cpu0/cache says what they are, where it is mounted");
	}
	out->first = rg_sim_cache_of(first);
	out->last = rg_sim_cache_of(last);
	describe(&text, "L1", &out->first, first);
	rg_str_add(&text, ", LL ");
	describe(&text, "", &out->last, last);
	snprintf(out->text, sizeof(out->text), "%s", rg_str_text(&text));
	if (text.failed)
		return rg_error_nomem(err, 200);
	rg_str_free(&text);
	return 0;
}

/* ---- what callgrind wrote ---- */

/* The line that begins with `key`, after it; NULL. */
static const char *line_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, n) == 0)
			return p + n;
	}
	return NULL;
}

int rg_sim_parse(const char *text, struct rg_sim_result *out, struct rg_error *err)
{
	const char *names = line_of(text, "events:"), *totals = line_of(text, "totals:");
	double ir = 0, l1 = 0, ll = 0;
	bool cache = false;

	while (names && totals) {
		char name[16];
		int used;
		char *end;
		double v;

		names += strspn(names, " ");
		if (*names == '\n' || sscanf(names, "%15[A-Za-z0-9]%n", name, &used) != 1)
			break;
		names += used;
		/* counts that are zero at the end of the line are left out */
		totals += strspn(totals, " ");
		v = *totals == '\n' || !*totals ? 0 : strtod(totals, &end);
		if (*totals != '\n' && *totals) {
			if (end == totals)
				break;
			totals = end;
		}
		cache |= strcmp(name, "D1mr") == 0;
		ir += strcmp(name, "Ir") == 0 ? v : 0;
		l1 += strcmp(name, "D1mr") == 0 || strcmp(name, "D1mw") == 0 ? v : 0;
		ll += strcmp(name, "DLmr") == 0 || strcmp(name, "DLmw") == 0 ? v : 0;
	}
	if (!cache || !(ir > 0)) {
		rg_error_set(err, -EINVAL, cache ? "the simulator counted no instruction" :
						   "the simulator's file holds no counts of caches");
		return rg_error_hint(err, "it needs a program with its symbols: build without stripping");
	}
	*out = (struct rg_sim_result){ l1, ll };
	return 0;
}

/* ---- the child ---- */

static void no_memory(struct rg_error *err)
{
	rg_error_nomem(err, 4096);
}

/* Everything that fd holds. */
static int slurp(int fd, struct rg_str *out, struct rg_error *err)
{
	char buf[4096];
	ssize_t n = 1;

	if (lseek(fd, 0, SEEK_SET) != 0)
		return rg_error_set(err, -errno, "cannot read back what the simulator wrote: %s", strerror(errno));
	while (n) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno != EINTR)
			return rg_error_set(err, -errno, "cannot read what the simulator wrote: %s", strerror(errno));
		rg_str_addn(out, buf, n > 0 ? (size_t)n : 0);
	}
	if (out->failed)
		no_memory(err);
	return out->failed ? -ENOMEM : 0;
}

/* In the child, after fork: only what is async-signal-safe. */
static void become_valgrind(char *const *argv, int said)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
	    dup2(said, STDERR_FILENO) < 0)
		_exit(126);
	execvp("valgrind", argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static int explain(int status, int said, struct rg_error *err)
{
	struct rg_str text = { 0 };
	char line[160] = "";
	int rc;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		rg_error_set(err, -ENOENT, "valgrind is not installed");
		return rg_error_hint(err, "apt-get install valgrind");
	}
	rc = slurp(said, &text, err);
	/* valgrind puts its lines between "==" and the process; what the program said is one that does not */
	for (const char *p = rc ? NULL : rg_str_text(&text); p && *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strncmp(p, "==", 2) != 0 && strncmp(p, "--", 2) != 0 && *p != '\n' && !line[0])
			snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
	rg_str_free(&text);
	if (rc)
		return rc;
	if (strstr(line, "dwarf")) { /* Valgrind 3.19 and clang's DWARF 5 */
		rg_error_set(err, -ENOTSUP, "this Valgrind does not read the debug information that the compiler wrote: %s", line);
		return rg_error_hint(err, "build with gcc, or with -Dc_args=-gdwarf-4");
	}
	if (WIFSIGNALED(status))
		return rg_error_set(err, -EIO, "the simulated run was ended by signal %d", WTERMSIG(status));
	return rg_error_set(err, -EIO, "the simulated run failed: %s", line[0] ? line : "it did not say why");
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

#define CACHE_FORMAT "%lld,%d,%lld"
#define CACHE(c) (long long)(c)->size_bytes, (c)->ways, (long long)(c)->line_bytes

/* Sanitizers map memory where Valgrind has its own: the child would not start. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static int simulate(const struct rg_sim_job *j, struct rg_sim_result *out, struct rg_error *err)
{
	char program[4096] = "", file[64], shape[96], i1[96], d1[96], ll[96];
	char *argv[] = { "valgrind", "--tool=callgrind", "--cache-sim=yes", "--collect-atstart=no",
			 "--toggle-collect=rg_ladder_counted", i1, d1, ll, file, program, "ladder-once",
			 (char *)j->rung, shape, (char *)j->weights, (char *)j->kernel, NULL };
	int counts = memfd_create("ridge-callgrind", 0), said = memfd_create("ridge-stderr", MFD_CLOEXEC);
	struct rg_str text = { 0 };
	int rc = counts < 0 || said < 0 ? -errno : 0, status = 0;
	pid_t pid = -1;

	snprintf(file, sizeof(file), "--callgrind-out-file=/proc/self/fd/%d", counts);
	snprintf(shape, sizeof(shape), "%lldx%lldx%lld", (long long)j->shape.m, (long long)j->shape.k,
		 (long long)j->shape.n);
	snprintf(i1, sizeof(i1), "--I1=" CACHE_FORMAT, CACHE(&j->caches->first));
	snprintf(d1, sizeof(d1), "--D1=" CACHE_FORMAT, CACHE(&j->caches->first));
	snprintf(ll, sizeof(ll), "--LL=" CACHE_FORMAT, CACHE(&j->caches->last));
	if (j->program)
		snprintf(program, sizeof(program), "%s", j->program);
	else if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		rc = -errno;
	if (!rc) {
		pid = fork();
		if (pid == 0)
			become_valgrind(argv, said);
		rc = pid < 0 ? -errno : 0;
	}
	if (rc) {
		rg_error_set(err, rc, "cannot start the simulator: %s", strerror(-rc));
	} else {
		status = wait_for(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			rc = explain(status, said, err);
		if (!rc)
			rc = slurp(counts, &text, err);
		if (!rc)
			rc = rg_sim_parse(rg_str_text(&text), out, err);
	}
	rg_str_free(&text);
	if (counts >= 0)
		close(counts);
	if (said >= 0)
		close(said);
	return rc;
}

int rg_sim_run(const struct rg_sim_job *j, struct rg_sim_result *out, struct rg_error *err)
{
	if (!SANITIZED)
		return simulate(j, out, err);
	rg_error_set(err, -ENOTSUP, "this ridge is built with a sanitizer, which does not run under Valgrind");
	return rg_error_hint(err, "build it without -Db_sanitize");
}
