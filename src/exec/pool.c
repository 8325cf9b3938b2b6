/*
 * The thread pool. Each helper lane has one state word, in a cache line of its
 * own, which is also the futex that it sleeps on:
 *
 *   IDLE ──post──► POSTED ──take──► TAKEN ──done──► IDLE
 *     │  ▲            │               └─the caller sleeps─► TAKEN_WAITED ──done──► IDLE
 *     ▼  └──withdraw──┘
 *   ASLEEP ──post, wake──► POSTED
 *
 * Each lane has a share of the chunks of a job, and takes from the others' when its own is
 * done. The caller posts a job, works on it as lane 0, and when no chunk is left
 * withdraws it from every lane that has not taken it yet: a lane that is slow
 * to wake costs nothing. Only lanes that took the job are waited for. A lane
 * that took a job reads the job's fields after the exchange that took it, so
 * these need no atomics of their own.
 */
#include "exec/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "sys/topology.h"

/* How long a lane looks for work before it sleeps: about what a wake-up costs. */
#define SPIN_NS 100000
/* The least that is taken of a lane's share, as a part of it. */
#define CHUNKS_PER_LANE 32

enum lane_state { IDLE, ASLEEP, POSTED, TAKEN, TAKEN_WAITED, STOP };

struct lane {
	_Alignas(64) _Atomic uint32_t state;
	_Alignas(64) _Atomic uint64_t share; /* of the job: the chunks that nobody has; share_of() */
	_Alignas(64) struct rg_pool *pool;
	pthread_t thread;
	int index;
};

struct rg_pool {
	struct rg_par par;
	int started;          /* helper threads that run: lanes[1 .. started] */
	int spins;
	bool restore_affinity;
	cpu_set_t affinity;   /* of the caller, before it was pinned */
	rg_pool_watch_fn *watch;
	void *watch_ctx;
	/* the job */
	rg_par_fn *fn;
	void *arg;
	int64_t n, n_chunks;
	int n_shares;         /* lanes that have one: 0 .. n_shares - 1 */
	_Alignas(64) struct lane lanes[];
};

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Chunks [begin, end) in one word. */
static uint64_t share_of(uint32_t begin, uint32_t end)
{
	return (uint64_t)begin << 32 | end;
}

/*
 * Takes chunks from what is left of a share: its owner the first half, another lane the last.
 * So a lane makes few calls, the last ones are short, and one that was held up, or runs at
 * half the speed, leaves what it has not begun to others (guided self-scheduling, Polychronopoulos
 * and Kuck 1987, with a share a lane). false: nothing is left.
 */
static bool take_chunks(struct lane *l, bool own, int64_t *begin, int64_t *end)
{
	uint64_t was = atomic_load_explicit(&l->share, memory_order_relaxed);

	for (;;) {
		uint32_t b = (uint32_t)(was >> 32), e = (uint32_t)was, half = b < e ? (e - b + 1) / 2 : 0;

		if (!half)
			return false;
		if (atomic_compare_exchange_weak_explicit(&l->share, &was,
							  own ? share_of(b + half, e) : share_of(b, e - half),
							  memory_order_relaxed, memory_order_relaxed)) {
			*begin = own ? b : e - half;
			*end = own ? b + half : e;
			return true;
		}
	}
}

/*
 * Works on the lane's own share, then on what is left of the others'. A lane has the same
 * items each time that a loop of this length runs, and about the same part of a tensor in the
 * loop that writes it and in the loop that reads it, so that what is read lies in its own
 * caches.
 */
static void work(struct rg_pool *p, int lane)
{
	int64_t base = p->n / p->n_chunks, rest = p->n % p->n_chunks, begin, end;
	rg_pool_watch_fn *watch = p->watch;
	uint64_t start = 0;
	bool any = false;

	for (int i = 0; i < p->n_shares; i++) {
		while (take_chunks(&p->lanes[(lane + i) % p->n_shares], i == 0, &begin, &end)) {
			if (!any && watch)
				start = rg_clock_now_ns();
			any = true;
			/* The first `rest` chunks are one item longer. */
			p->fn(p->arg, begin * base + (begin < rest ? begin : rest), end * base + (end < rest ? end : rest), lane);
		}
	}
	if (any && watch)
		watch(p->watch_ctx, lane, start, rg_clock_now_ns());
}

/* Waits until there is a job for this lane and takes it. false: stop. */
static bool take(struct lane *l)
{
	int spin = 0;

	for (;;) {
		uint32_t s = atomic_load_explicit(&l->state, memory_order_relaxed);

		switch (s) {
		case POSTED:
			if (atomic_compare_exchange_strong(&l->state, &s, TAKEN))
				return true;
			break; /* withdrawn, or stop */
		case STOP:
			return false;
		case ASLEEP:
			futex_wait(&l->state, ASLEEP);
			spin = 0;
			break;
		default:
			if (spin++ < l->pool->spins)
				cpu_relax();
			else
				atomic_compare_exchange_strong(&l->state, &s, ASLEEP);
		}
	}
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	char name[16];

	snprintf(name, sizeof(name), "ridge-lane-%d", l->index % 1000);
	pthread_setname_np(pthread_self(), name);
	while (take(l)) {
		work(l->pool, l->index);
		if (atomic_exchange(&l->state, IDLE) == TAKEN_WAITED)
			futex_wake(&l->state);
	}
	return NULL;
}

static void post(struct lane *l)
{
	if (atomic_exchange(&l->state, POSTED) == ASLEEP)
		futex_wake(&l->state);
}

/* Returns when the lane does not work on the job and never will. */
static void settle(struct lane *l)
{
	uint32_t s = POSTED;
	int spin;

	if (atomic_compare_exchange_strong(&l->state, &s, IDLE))
		return;
	for (spin = 0; spin < l->pool->spins; spin++) {
		s = atomic_load_explicit(&l->state, memory_order_acquire);
		if (s == IDLE || s == ASLEEP)
			return;
		cpu_relax();
	}
	s = TAKEN;
	if (!atomic_compare_exchange_strong(&l->state, &s, TAKEN_WAITED))
		return; /* done meanwhile: the failed exchange has seen it */
	while (atomic_load_explicit(&l->state, memory_order_acquire) == TAKEN_WAITED)
		futex_wait(&l->state, TAKEN_WAITED);
}

static void pool_run(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	struct rg_pool *p = par->ctx;
	int64_t n_chunks = n / (grain < 1 ? 1 : grain), most = (int64_t)par->lanes * CHUNKS_PER_LANE;
	int helpers, i;

	if (n <= 0)
		return;
	if (n_chunks > most)
		n_chunks = most;
	if (n_chunks <= 1 || par->lanes == 1) {
		fn(arg, 0, n, 0);
		return;
	}
	if (n_chunks > par->lanes) /* as many for each lane */
		n_chunks -= n_chunks % par->lanes;
	helpers = n_chunks < par->lanes ? (int)n_chunks - 1 : par->lanes - 1;
	p->fn = fn;
	p->arg = arg;
	p->n = n;
	p->n_chunks = n_chunks;
	p->n_shares = helpers + 1;
	for (i = 0; i <= helpers; i++)
		atomic_store_explicit(&p->lanes[i].share,
				      share_of((uint32_t)(n_chunks * i / (helpers + 1)),
					       (uint32_t)(n_chunks * (i + 1) / (helpers + 1))),
				      memory_order_relaxed);
	for (i = 1; i <= helpers; i++)
		post(&p->lanes[i]);
	work(p, 0);
	for (i = 1; i <= helpers; i++)
		settle(&p->lanes[i]);
}

/* How many pauses make SPIN_NS: a pause takes 10 to 140 cycles, by CPU. */
static int calibrate_spins(void)
{
	const int probe = 2000;
	uint64_t start = rg_clock_now_ns(), took;
	int i;

	for (i = 0; i < probe; i++)
		cpu_relax();
	took = rg_clock_now_ns() - start;
	if (took < 1)
		took = 1;
	/* An interruption in the loop makes spinning short, which is harmless. */
	return (int)((uint64_t)probe * SPIN_NS / took) + 1;
}

static int start_lane(struct rg_pool *p, int i, const int *cpus, struct rg_error *err)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int rc;

	p->lanes[i].pool = p;
	p->lanes[i].index = i;
	atomic_init(&p->lanes[i].state, IDLE);
	rc = pthread_attr_init(&attr);
	if (rc)
		return rg_error_set(err, -rc, "cannot start thread %d: %s", i, strerror(rc));
	if (cpus && (cpus[i] < 0 || cpus[i] >= CPU_SETSIZE)) {
		rc = EINVAL;
	} else if (cpus) {
		CPU_ZERO(&one);
		CPU_SET(cpus[i], &one);
		rc = pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	}
	if (!rc)
		rc = pthread_create(&p->lanes[i].thread, &attr, lane_main, &p->lanes[i]);
	pthread_attr_destroy(&attr);
	if (rc) {
		if (cpus)
			rg_error_set(err, -rc, "cannot start thread %d of %d on CPU %d: %s", i, p->par.lanes,
				     cpus[i], strerror(rc));
		else
			rg_error_set(err, -rc, "cannot start thread %d of %d: %s", i, p->par.lanes,
				     strerror(rc));
		return rg_error_hint(err, "use fewer threads (--threads), or see  ulimit -u");
	}
	p->started = i;
	return 0;
}

int rg_pool_new(int lanes, const int *cpus, struct rg_pool **out, struct rg_error *err)
{
	sigset_t all, old;
	struct rg_pool *p;
	size_t size;
	int i, rc = 0;

	*out = NULL;
	if (lanes < 1 || lanes > RG_MAX_CPUS)
		return rg_error_set(err, -EINVAL, "%d threads asked for; 1 to %d are possible", lanes,
				    RG_MAX_CPUS);
	size = sizeof(*p) + (size_t)lanes * sizeof(p->lanes[0]);
	p = rg_alloc_aligned(64, size);
	if (!p)
		return rg_error_nomem(err, size);
	memset(p, 0, size);
	p->par.lanes = lanes;
	p->par.run = pool_run;
	p->par.ctx = p;
	p->spins = calibrate_spins();
	/* Signals belong to the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (i = 1; i < lanes && !rc; i++)
		rc = start_lane(p, i, cpus, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc && cpus && sched_getaffinity(0, sizeof(p->affinity), &p->affinity) == 0) {
		rc = rg_thread_pin(cpus[0], err);
		p->restore_affinity = !rc;
	}
	if (rc) {
		rg_pool_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void rg_pool_free(struct rg_pool *p)
{
	int i;

	if (!p)
		return;
	for (i = 1; i <= p->started; i++)
		if (atomic_exchange(&p->lanes[i].state, STOP) == ASLEEP)
			futex_wake(&p->lanes[i].state);
	for (i = 1; i <= p->started; i++)
		pthread_join(p->lanes[i].thread, NULL);
	if (p->restore_affinity)
		sched_setaffinity(0, sizeof(p->affinity), &p->affinity);
	rg_free(p);
}

const struct rg_par *rg_pool_par(struct rg_pool *p)
{
	return &p->par;
}

void rg_pool_watch(struct rg_pool *p, rg_pool_watch_fn *fn, void *ctx)
{
	p->watch = fn;
	p->watch_ctx = ctx;
}
