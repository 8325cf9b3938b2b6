/*
 * The promises of the steady state, held on whole models: an inference allocates
 * nothing (neither through base/alloc.h nor by malloc), takes no lock, and makes no
 * system call but futex, with which lanes sleep and wake.
 *
 * Each model runs in a child process on two pinned lanes. After three inferences
 * malloc and pthread_mutex_lock are counted, and a seccomp filter on every thread
 * traps all other system calls; the trap names the call. Built-in models and those
 * that scripts/fetch-models has fetched, at the smallest shapes that they take; 1,000
 * inferences each, or as many as fit into some seconds, which is said (all 1,000 with
 * RIDGE_STEADY_ALL=1). Models with dynamic steps allocate what these make: skipped.
 * OpenBLAS locks and allocates on its own account: its kernels are left out.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "models/builtin.h"
#include "models/model.h"
#include "session/prepare.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { INFERENCES = 1000, LEAST = 20, MAX_MODELS = 64, LANES = 2 };
#define SLOW_NS UINT64_C(4000000000)

/* ---- counting ---- */

static atomic_long n_mallocs, n_locks;

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTS_MALLOC 1

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t n)
{
	atomic_fetch_add(&n_mallocs, 1);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add(&n_mallocs, 1);
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
	atomic_fetch_add(&n_mallocs, 1);
	return __libc_realloc(old, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	atomic_fetch_add(&n_mallocs, 1);
	return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	atomic_fetch_add(&n_mallocs, 1);
	*out = __libc_memalign(align, n);
	return *out ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*real)(pthread_mutex_t *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	atomic_fetch_add(&n_locks, 1);
	return real(m);
}
#endif

/* ---- trapping ---- */

/* What the child says; it lies in memory that both share. */
struct verdict {
	char error[400];          /* it cannot be run, and why */
	char shapes[300];
	int dynamic;              /* steps */
	int steps;
	atomic_int inferences;
	long allocations, mallocs, locks;
	bool filtered;            /* seccomp works here */
	atomic_int trapped;       /* number of a system call + 1 */
	bool done;
};

static struct verdict *shared;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	shared->trapped = info->si_syscall + 1;
	_exit(3);
}

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* From here on every thread may wake, sleep and end; false: not possible here. */
static bool filter(void)
{
#ifdef THIS_ARCH
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	const struct sigaction act = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	return !sigaction(SIGSYS, &act, NULL) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
#else
	return false;
#endif
}

/* ---- a model, in the child ---- */

/* Sizes for open dimensions, the smallest first: see session/suggest.c for why. */
static const struct rg_example_sizes sizes[] = {
	{ 3, 32, 32, 8, 1 },        { 3, 48, 64, 16, 1 },      { 3, 32, 64, 64, 128 },    { 3, 48, 320, 576, 1 },
	{ 3, 32, 320, 256, 128 },   { 1, 32, 320, 512, 512 },  { 3, 256, 256, 320, 80 }, { 1, 28, 28, 16000, 16000 },
	{ 3, 224, 224, 128, 1 },
};

static int prepare(struct rg_session_options *o, const char *name, struct rg_prepared *p, struct rg_error *err)
{
	static const struct { const char *symbol; int64_t value; } small[] = { { "seq", 4 }, { "height", 16 }, { "width", 16 } };
	bool builtin = !strncmp(name, "builtin:", 8);
	struct rg_model *m = NULL;
	int rc = -1;

	if (builtin) {
		const struct rg_builtin *b = rg_builtin_find(name + 8);

		o->bindings.dims = rg_calloc(3, sizeof(*o->bindings.dims));
		for (size_t i = 0; i < 3 && o->bindings.dims; i++) {
			if (!strstr(b->dims, small[i].symbol))
				continue;
			o->bindings.dims[o->bindings.n_dims].symbol = small[i].symbol;
			o->bindings.dims[o->bindings.n_dims++].value = small[i].value;
		}
		return rg_prepare(o, p, err);
	}
	if (rg_model_open(name, NULL, &m, err))
		return err->code;
	o->bindings.shapes = rg_calloc((size_t)m->graph->n_inputs + 1, sizeof(*o->bindings.shapes));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && o->bindings.shapes && rc; i++) {
		struct rg_bindings none = { 0 };

		rg_error_clear(err);
		o->bindings.n_shapes = 0;
		if (rg_graph_example(m->graph, &none, &sizes[i], &o->bindings) < 0)
			break;
		rc = rg_prepare(o, p, err);
	}
	return rc;
}

static void name_shapes(const struct rg_prepared *p, char *out, size_t size)
{
	const struct rg_graph *g = p->model->graph;
	char text[160];
	size_t at = 0;

	for (int i = 0; i < g->n_inputs && at + 200 < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "",
				       rg_shape_text(text, &p->plan->tensors[g->inputs[i]].shape));
}

/* What a broken executor would do, for the test of the test. */
enum fault { NONE, ALLOCATES, CALLS, LOCKS };
static enum fault fault;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *volatile kept;

static void do_wrong(void)
{
	if (fault == ALLOCATES) {
		kept = malloc(10);
		free(kept);
	} else if (fault == CALLS) {
		syscall(SYS_getppid);
	} else if (fault == LOCKS) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

/* By the quickest of a few. Later no clock is read: where that is a system call, it
 * would be trapped. */
static int affordable(const struct rg_prepared *p, struct rg_error *err)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t start = rg_clock_now_ns(), took;

		if (rg_exec_run(p->exec, err))
			break;
		took = rg_clock_now_ns() - start;
		best = took < best ? took : best;
	}
	if (best < SLOW_NS / INFERENCES)
		return INFERENCES;
	return SLOW_NS / best < LEAST ? LEAST : (int)(SLOW_NS / best);
}

/* Waits until all other threads have a lane's name and sleep: one that is still
 * starting makes the system calls of its start. */
static void settle(void)
{
	for (int round = 0; round < 5000; round++) {
		DIR *dir = opendir("/proc/self/task");
		int asleep = 0;
		struct dirent *e;

		while (dir && (e = readdir(dir))) {
			char path[300], line[200] = "", *at;
			FILE *f;

			snprintf(path, sizeof(path), "/proc/self/task/%s/stat", e->d_name);
			f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
			if (!f)
				continue;
			at = fgets(line, sizeof(line), f) ? strstr(line, "(ridge-lane-") : NULL;
			at = at ? strchr(at, ')') : NULL;
			asleep += at && at[2] == 'S';
			fclose(f);
		}
		if (dir)
			closedir(dir);
		if (asleep == LANES - 1)
			return;
		usleep(1000);
	}
	snprintf(shared->error, sizeof(shared->error), "the lanes do not go to sleep");
	_exit(2);
}

static void child(const char *name)
{
	const char *without[] = { "openblas" };
	struct rg_session_options o;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_prepared p;
	uint64_t count;
	int inferences;
	bool all = getenv("RIDGE_STEADY_ALL") != NULL;

	rg_session_defaults(&o);
	o.model = name;
	o.threads = LANES;
	/* an error where no kernel is called so, as without OpenBLAS */
	if (rg_kernel_find("", "MatMul", "openblas")) {
		o.n_without = 1;
		o.without = without;
	}
	if (prepare(&o, name, &p, &err)) {
		snprintf(shared->error, sizeof(shared->error), "%.100s: %.250s", err.where, err.message);
		_exit(2);
	}
	name_shapes(&p, shared->shapes, sizeof(shared->shapes));
	shared->steps = p.plan->n_steps;
	shared->dynamic = p.plan->n_dynamic;
	if (shared->dynamic)
		_exit(0);
	for (int i = 0; i < 3; i++) {
		if (rg_exec_run(p.exec, &err)) {
			snprintf(shared->error, sizeof(shared->error), "%.100s: %.250s", err.where, err.message);
			_exit(2);
		}
	}
	inferences = all ? INFERENCES : affordable(&p, &err);
	settle();
	shared->filtered = filter();
	count = rg_alloc_count();
	atomic_store(&n_mallocs, 0);
	atomic_store(&n_locks, 0);
	for (int i = 0; i < inferences; i++) {
		if (rg_exec_run(p.exec, &err))
			_exit(2);
		if (fault)
			do_wrong();
		shared->inferences++;
	}
	shared->allocations = (long)(rg_alloc_count() - count);
	shared->mallocs = atomic_load(&n_mallocs);
	shared->locks = atomic_load(&n_locks);
	shared->done = true;
	_exit(0);
}

/* ---- the points ---- */

static int n_points, n_failed;

static void point(bool ok, const char *name, const char *what, const char *why)
{
	printf("%sok %d - %s: %s%s%s\n", ok ? "" : "not ", ++n_points, name, what, why[0] ? " # " : "", why);
	fflush(stdout);
	n_failed += !ok;
}

static int run(const char *name)
{
	int status = 0;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(name);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

static void check(const char *path, const char *name)
{
	const struct verdict *v = shared;
	char why[600] = "";
	int status = run(path);

	if (v->dynamic) {
		snprintf(why, sizeof(why), "SKIP %d of %d steps are dynamic, and these allocate", v->dynamic, v->steps);
		point(true, name, "steady", why);
		return;
	}
	printf("# %s (%s): %d steps, %d inferences%s\n", name, v->shapes, v->steps, v->inferences,
	       v->inferences < INFERENCES ? ", all that time allows" : "");
	if (v->error[0] || (!v->done && !v->trapped)) {
		snprintf(why, sizeof(why), "%s (status %d)", v->error[0] ? v->error : "it crashed", status);
		point(false, name, "runs", why);
		return;
	}
	if (v->trapped)
		snprintf(why, sizeof(why), "system call %d in inference %d", v->trapped - 1, v->inferences + 1);
	else if (!v->filtered)
		snprintf(why, sizeof(why), "SKIP system calls cannot be filtered here");
	point(!v->trapped, name, "no system call but futex", why);
	if (v->trapped)
		return;
	why[0] = '\0';
	if (v->allocations || v->mallocs)
		snprintf(why, sizeof(why), "%ld through base/alloc.h, %ld of malloc", v->allocations, v->mallocs);
	point(!why[0], name, "no allocation", why);
	why[0] = '\0';
	if (v->locks)
		snprintf(why, sizeof(why), "%ld", v->locks);
	point(!v->locks, name, "no lock", why);
}

/* Each fault is seen. */
static void check_faults(void)
{
	fault = CALLS;
	run("builtin:mlp");
	point(shared->trapped == SYS_getppid + 1 || !shared->filtered, "the test", "sees a system call",
	      shared->filtered || shared->trapped ? "" : "SKIP system calls cannot be filtered here");
#ifdef COUNTS_MALLOC
	fault = ALLOCATES;
	run("builtin:mlp");
	point(shared->done && shared->mallocs == shared->inferences, "the test", "sees malloc", "");
	fault = LOCKS;
	run("builtin:mlp");
	point(shared->done && shared->locks == shared->inferences, "the test", "sees a lock", "");
#endif
	fault = NONE;
}

static int list_fetched(const char *dir, char (*paths)[4096], int most)
{
	char command[4400];
	FILE *f;
	int n = 0;

	snprintf(command, sizeof(command), "find '%s' -name '*.onnx' 2>/dev/null | sort", dir);
	f = popen(command, "r");
	while (f && n < most && fgets(paths[n], 4096, f)) {
		paths[n][strcspn(paths[n], "\n")] = '\0';
		n++;
	}
	if (f)
		pclose(f);
	return n;
}

int main(int argc, char **argv)
{
	static char paths[MAX_MODELS][4096];
	const char *dir = getenv("RIDGE_MODELS_DIR");
	int fetched;

#ifdef SANITIZED
	printf("1..0 # SKIP sanitizers allocate, lock and make system calls of their own\n");
	return 0;
#endif
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (argc > 1) { /* only these */
		for (int i = 1; i < argc; i++)
			check(argv[i], argv[i]);
	} else {
		check_faults();
		for (int i = 0; i < rg_builtin_count(); i++) {
			char name[80];

			snprintf(name, sizeof(name), "builtin:%s", rg_builtin_at(i)->name);
			check(name, name);
		}
		fetched = list_fetched(dir ? dir : RG_SOURCE_ROOT "/models/fetched", paths, MAX_MODELS);
		for (int i = 0; i < fetched; i++)
			check(paths[i], strrchr(paths[i], '/') + 1);
		if (!fetched)
			point(true, "fetched models", "steady", "SKIP none is there; run  scripts/fetch-models");
	}
	printf("1..%d\n", n_points);
	return n_failed ? 1 : 0;
}
