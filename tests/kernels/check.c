/* Runs the cases of one kernel, in a child process. See check.h. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "sys/cpu.h"

enum { MARGIN_BYTES = 256, MODES = 2, MOST_LANES = 3, DEFAULT_SECONDS = 30 };

/* One run of a kernel. */
struct attempt {
	const struct rg_kernel *k;
	const struct ck_family *f;
	struct nn_case *t;
	struct ck_result *res;
	struct rg_tensor planned[NN_MAX_IO];  /* inputs as the planner sees them */
	void *want[NN_MAX_IO];
	double *tolerance[NN_MAX_IO];
	struct rg_tensor given[NN_MAX_IO];    /* and as it gets them when it runs */
	struct guard out[NN_MAX_IO], scratch, prepared;
	uint64_t packed;                      /* a hash of what prepare() wrote */
	int lanes;
	int over;                             /* input whose memory is output 0's; -1: none */
};

static bool fail(struct attempt *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct attempt *a, const char *fmt, ...)
{
	va_list ap;

	a->res->status = CK_FAILED;
	va_start(ap, fmt);
	vsnprintf(a->res->message, sizeof(a->res->message), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- crashes ---- */

static sigjmp_buf escape;
static volatile sig_atomic_t in_kernel; /* else it is the harness that crashed */
static volatile sig_atomic_t caught;
static void *volatile caught_at;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (!in_kernel) {
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	in_kernel = 0;
	caught = sig;
	caught_at = info->si_addr;
	siglongjmp(escape, 1);
}

static void catch_signals(void)
{
	static unsigned char stack[64 * 1024];
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM };
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaltstack(&alt, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &act, NULL);
}

/* "12 bytes past the end of input 1" */
static bool name_place(const struct guard *g, const char *what, int number, char *out, size_t size)
{
	int64_t at;

	if (!guard_holds(g, caught_at, &at))
		return false;
	if (number >= 0)
		snprintf(out, size, " at byte %lld of %s %d, which has %zu", (long long)at, what, number,
			 g->size_bytes);
	else
		snprintf(out, size, " at byte %lld of %s, which has %zu", (long long)at, what, g->size_bytes);
	return true;
}

static bool fail_signal(struct attempt *a)
{
	char place[120] = "";
	bool found = name_place(&a->scratch, "its scratch", -1, place, sizeof(place)) ||
		     name_place(&a->prepared, "what it packed", -1, place, sizeof(place));

	for (int i = 0; i < a->t->n_blocks && !found; i++)
		for (int k = 0; k < a->t->node.n_in && !found; k++)
			if (a->t->in[k].data == a->t->blocks[i].data)
				found = name_place(&a->t->blocks[i], "input", k, place, sizeof(place));
	for (int i = 0; i < a->t->node.n_out && !found; i++)
		found = name_place(&a->out[i], "output", i, place, sizeof(place));
	if (caught == SIGALRM)
		return fail(a, "it had not returned after the time that a case may take");
	if (!found && (caught == SIGSEGV || caught == SIGBUS))
		snprintf(place, sizeof(place), " at address %p", caught_at);
	return fail(a, "crashed: %s%s", strsignal(caught), place);
}

/* ---- a parallel-for as unkind as the interface allows ---- */

struct scatter {
	struct rg_par par;
	uint64_t stream, at;
};

/* More chunks than lanes, in any order, on any lane, however large the grain. */
static void run_scattered(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	struct scatter *s = par->ctx;
	int64_t chunks = n < 3 * par->lanes ? n : 3 * par->lanes, from;

	if (n <= 0)
		return;
	from = rg_rng_integer(s->stream, s->at++, 0, chunks - 1);
	for (int64_t k = 0; k < chunks; k++) {
		int64_t i = (from + chunks - k) % chunks; /* backwards from anywhere */

		fn(arg, n * i / chunks, n * (i + 1) / chunks,
		   (int)rg_rng_integer(s->stream, s->at++, 0, par->lanes - 1));
	}
}

/* ---- one run ---- */

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001B3);
	return h;
}

static uint64_t hash_inputs(const struct nn_case *t)
{
	uint64_t h = UINT64_C(0xCBF29CE484222325);

	for (int i = 0; i < t->node.n_in; i++)
		if (t->in[i].data)
			h = hash(h, t->in[i].data, (size_t)rg_tensor_bytes(t->in[i].dtype, &t->in[i].shape));
	return h;
}

static bool room(struct attempt *a, struct guard *g, size_t bytes, size_t align, int fill)
{
	if (!guard_new(g, bytes, align, MARGIN_BYTES, a->t->side))
		return fail(a, "no memory for %zu bytes", bytes);
	memset(g->data, fill, bytes);
	return true;
}

static void free_attempt(struct attempt *a)
{
	for (int o = 0; o < NN_MAX_IO; o++)
		guard_free(&a->out[o]);
	guard_free(&a->scratch);
	guard_free(&a->prepared);
}

static bool intact(struct attempt *a, const struct guard *g, const char *what, int number)
{
	char which[40] = "";
	int64_t at;

	if (!g->map || guard_intact(g, &at))
		return true;
	if (number >= 0)
		snprintf(which, sizeof(which), " %d", number);
	return fail(a, "wrote outside of %s%s: byte %lld of %zu", what, which, (long long)at, g->size_bytes);
}

static bool all_intact(struct attempt *a)
{
	for (int o = 0; o < a->t->node.n_out; o++)
		if (!intact(a, &a->out[o], "output", o))
			return false;
	return intact(a, &a->scratch, "its scratch", -1) && intact(a, &a->prepared, "what it packs", -1);
}

static bool prepare(struct attempt *a, struct rg_call *c, int fill)
{
	struct rg_call plan = { .node = c->node, .in = a->planned, .out = c->out };
	struct rg_error err = RG_ERROR_INIT;
	size_t bytes = a->k->prepared_bytes ? a->k->prepared_bytes(&plan) : 0;

	if (!bytes)
		return true;
	if (!room(a, &a->prepared, bytes, 64, fill))
		return false;
	if (a->k->prepare(&plan, a->prepared.data, &err))
		return fail(a, "prepare: %s", err.message);
	c->prepared = a->prepared.data;
	a->packed = hash(0, a->prepared.data, bytes);
	return intact(a, &a->prepared, "what it packs", -1);
}

static bool call_kernel(struct attempt *a, struct rg_call *c, const struct rg_par *par, int fill)
{
	struct rg_error err = RG_ERROR_INIT;
	size_t scratch;

	a->packed = 0;
	if (!prepare(a, c, fill))
		return false;
	scratch = a->k->scratch_bytes ? a->k->scratch_bytes(&(struct rg_call){ .node = c->node, .in = a->planned,
									       .out = c->out }, a->lanes) : 0;
	if (scratch) {
		if (!room(a, &a->scratch, scratch, 64, fill))
			return false;
		c->scratch = a->scratch.data;
	}
	memcpy(a->given, a->t->in, sizeof(a->given));
	for (int i = 0; c->prepared && i < a->t->node.n_in; i++)
		if (a->k->packs >> i & 1 && a->planned[i].data)
			a->given[i].data = NULL;
	if (a->over >= 0)
		a->given[a->over].data = c->out[0].data;
	c->in = a->given;
	if (a->k->run(c, par, &err))
		return fail(a, "returned an error: %s", err.message);
	return true;
}

/* What a signal interrupts here is the kernel. */
static bool call_caught(struct attempt *a, struct rg_call *c, const struct rg_par *par, int fill)
{
	bool ok;

	if (sigsetjmp(escape, 1))
		return fail_signal(a);
	in_kernel = 1;
	ok = call_kernel(a, c, par, fill);
	in_kernel = 0;
	return ok;
}

static bool attempt(struct attempt *a, int lanes, int over)
{
	/* Of bytes that a kernel leaves alone at least one pattern differs from what
	 * should be there; the first is NaN. */
	static const int fills[] = { 0xff, 0x11, 0xee };
	struct nn_case *t = a->t;
	struct scatter s = { .par = { .lanes = lanes, .run = run_scattered, .ctx = &s },
			     .stream = rg_rng_stream(t->salt, "lanes") };
	struct rg_tensor out[NN_MAX_IO];
	struct rg_call c = { .node = &t->node, .in = t->in, .out = out };
	uint64_t inputs = hash_inputs(t);
	char why[300];

	a->lanes = lanes;
	a->over = over;
	memcpy(out, t->out, sizeof(out));
	for (int o = 0; o < t->node.n_out; o++) {
		size_t bytes = (size_t)rg_tensor_bytes(out[o].dtype, &out[o].shape), align = rg_dtype_bytes(out[o].dtype);

		if (!room(a, &a->out[o], bytes, align ? align : 1, fills[lanes - 1]))
			return false;
		out[o].data = a->out[o].data;
	}
	if (over >= 0 && a->out[0].size_bytes)
		memcpy(out[0].data, t->in[over].data, a->out[0].size_bytes);
	if (!call_caught(a, &c, lanes == 1 ? &rg_par_serial : &s.par, fills[lanes - 1]) || !all_intact(a))
		return false;
	if (hash_inputs(t) != inputs)
		return fail(a, "changed one of its inputs");
	/* It serves every inference: the next must find it as it was. */
	if (hash(0, a->prepared.data, a->prepared.size_bytes) != a->packed)
		return fail(a, "changed what it had packed while it ran");
	for (int o = 0; o < t->node.n_out; o++) {
		const struct rg_tensor want = { out[o].dtype, out[o].shape, a->want[o] };

		if (!ck_compare(a->f, &want, &out[o], a->tolerance[o], &a->res->worst, why, sizeof(why)))
			return fail(a, "output %d: %s", o, why);
		a->res->elements += rg_shape_count(&out[o].shape);
	}
	a->res->runs++;
	return true;
}

/* ---- one case ---- */

/* Which inputs have data while planning: 0 those that it must know, 1 weights too. */
static void plan_inputs(struct attempt *a, int mode)
{
	uint32_t known = a->t->known | (mode ? a->t->weights : 0);

	memcpy(a->planned, a->t->in, sizeof(a->planned));
	for (int i = 0; i < a->t->node.n_in; i++)
		if (!(known >> i & 1))
			a->planned[i].data = NULL;
}

static bool supported(struct attempt *a)
{
	struct rg_call c = { .node = &a->t->node, .in = a->planned, .out = a->t->out };
	bool yes;

	if (sigsetjmp(escape, 1))
		return fail_signal(a);
	in_kernel = 1;
	yes = !a->k->supports || a->k->supports(&c);
	in_kernel = 0;
	return yes;
}

static bool make_want(struct attempt *a)
{
	struct rg_error err = RG_ERROR_INIT;
	char why[300];

	if (ck_reference(a->t, a->want, &err))
		return fail(a, "the reference cannot run the call: %s", err.message);
	for (int o = 0; o < a->t->node.n_out; o++) {
		struct rg_tensor want = { a->t->out[o].dtype, a->t->out[o].shape, a->want[o] };
		int64_t n = rg_shape_count(&want.shape);

		a->t->out[o].data = NULL;
		a->tolerance[o] = malloc((size_t)(n > 0 ? n : 1) * sizeof(double));
		if (!a->tolerance[o])
			return fail(a, "no memory for the bounds of %lld elements", (long long)n);
		if (!ck_tolerance(a->f, a->k, a->t, o, &want, a->tolerance[o], why, sizeof(why)))
			return fail(a, "%s", why);
	}
	return true;
}

/* The next input after k over which the kernel says it may write output 0; -1: none. */
static int next_over(const struct attempt *a, int k)
{
	const struct nn_case *t = a->t;

	for (k++; k < t->node.n_in && k < 32; k++)
		if (a->k->in_place >> k & 1 && t->in[k].data && t->in[k].dtype == t->out[0].dtype &&
		    rg_shape_equal(&t->in[k].shape, &t->out[0].shape) && !(a->k->packs >> k & 1 && a->planned[k].data))
			return k;
	return -1;
}

/* false: failed. */
static bool run_modes(struct attempt *a, const char *what)
{
	bool taken = false;

	for (int mode = 0; mode < MODES; mode++) {
		if (mode && !a->t->weights)
			break;
		plan_inputs(a, mode);
		snprintf(a->res->what, sizeof(a->res->what), "%.300s, while planning", what);
		if (!supported(a)) {
			if (a->res->status == CK_FAILED)
				return false;
			continue;
		}
		if (!a->want[0] && !make_want(a))
			return false;
		taken = true;
		for (int lanes = 1; lanes <= MOST_LANES; lanes++) {
			int over = -1;

			do {
				char place[40] = "";
				bool ok;

				if (over >= 0)
					snprintf(place, sizeof(place), ", in place of input %d", over);
				snprintf(a->res->what, sizeof(a->res->what), "%.300s, %d lane%s%s%s", what, lanes,
					 lanes > 1 ? "s" : "", mode ? ", weights known beforehand" : "", place);
				ok = attempt(a, lanes, over);
				free_attempt(a);
				if (!ok)
					return false;
				a->res->in_place += over >= 0;
			} while ((over = next_over(a, over)) >= 0);
		}
	}
	a->res->cases += taken;
	return true;
}

static bool check_case(const struct rg_kernel *k, const struct ck_family *f, uint64_t seed, struct ck_result *res)
{
	static struct nn_case t;
	struct rg_error err = RG_ERROR_INIT;
	struct attempt a = { .k = k, .f = f, .t = &t, .res = res };
	bool ok;

	snprintf(res->what, sizeof(res->what), "%s: making the call, or running the reference", f->op_type);
	if (!ck_make(f, seed, &t, &err)) {
		snprintf(res->what, sizeof(res->what), "%s", t.what);
		return fail(&a, "its family made an invalid call: %s", err.message);
	}
	ok = run_modes(&a, t.what);
	for (int o = 0; o < NN_MAX_IO; o++) {
		free(a.want[o]);
		free(a.tolerance[o]);
	}
	nn_free(&t);
	return ok;
}

void ck_check_here(const struct rg_kernel *k, const struct ck_family *f, const struct ck_options *opt,
		   struct ck_result *out)
{
	catch_signals();
	for (int i = 0; i < opt->cases; i++) {
		out->seed = opt->seed + (uint64_t)i;
		alarm((unsigned)(opt->seconds ? opt->seconds : DEFAULT_SECONDS));
		if (!check_case(k, f, out->seed, out))
			break;
	}
	alarm(0);
	if (out->status == CK_FAILED)
		return;
	out->status = out->runs ? CK_PASSED : CK_SKIPPED;
	if (!out->runs)
		snprintf(out->message, sizeof(out->message), "it supports none of %d calls", opt->cases);
}

/* ---- a child for each kernel ---- */

/* The child's own alarm names lanes and call, but does not ring in a loop of a program
 * under ThreadSanitizer, which keeps signals for the next call of a library. */
static bool wait_child(pid_t child, const volatile struct ck_result *shared, int seconds, int *status)
{
	const int pause_ms = 2;
	uint64_t seed = shared->seed;
	int waited_ms = 0;

	while (waitpid(child, status, WNOHANG) == 0) {
		usleep(pause_ms * 1000);
		waited_ms = shared->seed == seed ? waited_ms + pause_ms : 0;
		seed = shared->seed;
		if (waited_ms < (seconds + 2) * 1000)
			continue;
		kill(child, SIGKILL);
		waitpid(child, status, 0);
		return false;
	}
	return true;
}

static void watch_child(pid_t child, struct ck_result *shared, int seconds, struct ck_result *out)
{
	int status = 0;
	bool ended = wait_child(child, shared, seconds, &status);

	memcpy(out, shared, sizeof(*out));
	if (!ended) {
		out->status = CK_FAILED;
		snprintf(out->message, sizeof(out->message), "it had not returned after the time that a case may take");
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	out->status = CK_FAILED;
	if (WIFSIGNALED(status))
		snprintf(out->message, sizeof(out->message), "the process was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(out->message, sizeof(out->message), "the process ended with exit status %d",
			 WEXITSTATUS(status));
}

void ck_check(const struct rg_kernel *k, const struct ck_options *opt, struct ck_result *out)
{
	const struct ck_family *f = ck_family_find(k->domain, k->op_type);
	struct ck_result *shared;
	pid_t child;

	memset(out, 0, sizeof(*out));
	if (!f) {
		out->status = CK_FAILED;
		snprintf(out->message, sizeof(out->message),
			 "nothing makes calls of %s: add a family to tests/kernels/family-*.c", k->op_type);
		return;
	}
	if (k->isa & ~opt->isa) {
		out->status = CK_SKIPPED;
		snprintf(out->message, sizeof(out->message), "needs %s, which this CPU or --isa does not allow",
			 rg_isa_level_name(k->isa));
		return;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		out->status = CK_FAILED;
		snprintf(out->message, sizeof(out->message), "no memory to share with a child");
		return;
	}
	fflush(NULL);
	child = fork();
	if (child == 0) {
		ck_check_here(k, f, opt, shared);
		_exit(0);
	}
	if (child < 0) {
		out->status = CK_FAILED;
		snprintf(out->message, sizeof(out->message), "cannot start a child process");
	} else {
		watch_child(child, shared, opt->seconds ? opt->seconds : DEFAULT_SECONDS, out);
	}
	munmap(shared, sizeof(*shared));
}
