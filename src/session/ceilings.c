/*
 * Measures the ceilings of this machine: peak multiply-add rate, the rate of each form
 * of the exact int8 product, and read bandwidth a level of memory, by kernels/roof.
 *
 * All threads start together behind a barrier, each on a CPU and a buffer of
 * its own. A window is the time from the first start to the last end. Many
 * short windows, and the best one counts: a neighbour or an interrupt can only
 * make a window slower, never faster. The spread is kept beside it.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/stats.h"
#include "kernels/roof/roof.h"
#include "session/ceilings.h"
#include "sys/cpu.h"
#include "sys/topology.h"

#define PAGE_BYTES 4096
#define MAX_WINDOWS 400
#define WINDOW_NS 1e6 /* long beside the start of a team, short beside a time slice */

struct team; /* forward */

struct member {
	struct team *team;
	int index;
	int cpu; /* -1: not pinned */
	pthread_t thread;
	unsigned char *data;
	uint64_t start_ns, end_ns;
	int64_t work;
	float sink;
};

struct team {
	const struct rg_roof_kernel *kernel;
	int threads;
	size_t size_bytes;  /* a thread; 0 for compute */
	int64_t rounds;     /* of the kernel in a window */
	pthread_barrier_t gate;
	bool quit;
	struct member *members;
};

static void work(struct member *m)
{
	const struct team *t = m->team;

	m->work = 0;
	m->start_ns = rg_clock_now_ns();
	if (t->kernel->flops) {
		m->work = t->kernel->flops(t->rounds, &m->sink);
	} else if (t->kernel->iops) {
		uint32_t sum;

		m->work = t->kernel->iops(t->rounds, &sum);
		m->sink = (float)sum;
	} else {
		for (int64_t r = 0; r < t->rounds; r++)
			m->work += t->kernel->read(m->data, t->size_bytes, &m->sink);
	}
	m->end_ns = rg_clock_now_ns();
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct rg_error ignored; /* an unpinned thread still measures, only with more spread */

	if (m->cpu >= 0)
		rg_thread_pin(m->cpu, &ignored);
	if (m->data) {
		for (size_t i = 0; i < m->team->size_bytes; i++)
			m->data[i] = 0; /* first touch by the thread that reads */
	}
	for (;;) {
		pthread_barrier_wait(&m->team->gate);
		if (m->team->quit)
			return NULL;
		work(m);
		pthread_barrier_wait(&m->team->gate);
	}
}

/* One window of the whole team; its length, from the first start to the last
 * end, goes to *length_ns. Returns the work done. */
static int64_t window(struct team *t, double *length_ns)
{
	uint64_t first = UINT64_MAX, last = 0;
	int64_t sum = 0;

	pthread_barrier_wait(&t->gate);
	pthread_barrier_wait(&t->gate);
	for (int i = 0; i < t->threads; i++) {
		const struct member *m = &t->members[i];

		if (m->start_ns < first)
			first = m->start_ns;
		if (m->end_ns > last)
			last = m->end_ns;
		sum += m->work;
	}
	*length_ns = (double)(last - first);
	return sum;
}

/* How many rounds make a window of about window_ns. The time that one member
 * worked counts, not the window: waking the team can take longer than the work,
 * and a window of mostly waking would measure the scheduler. */
static void calibrate(struct team *t, double window_ns)
{
	t->rounds = 1;
	while (t->rounds < INT64_MAX / 16 && !rg_session_interrupted()) {
		double least = INFINITY, ignored;

		/* the least of a few: one may be hit by an interrupt */
		for (int k = 0; k < 3; k++) {
			window(t, &ignored);
			for (int i = 0; i < t->threads; i++)
				least = fmin(least, (double)(t->members[i].end_ns - t->members[i].start_ns));
		}
		if (least >= window_ns / 2)
			break;
		t->rounds *= least * 8 < window_ns ? 8 : 2;
	}
}

static int start_team(struct team *t, const struct rg_topology *topo, struct rg_error *err)
{
	int cpus[RG_MAX_CPUS], started = 0, rc = 0;

	t->members = rg_calloc((size_t)t->threads, sizeof(*t->members));
	if (!t->members)
		return rg_error_nomem(err, (size_t)t->threads * sizeof(*t->members));
	rg_topology_pin_order(topo, cpus);
	pthread_barrier_init(&t->gate, NULL, (unsigned)t->threads + 1);
	for (int i = 0; i < t->threads && !rc; i++) {
		struct member *m = &t->members[i];

		m->team = t;
		m->index = i;
		m->cpu = t->threads <= topo->n_allowed ? cpus[i] : -1;
		if (t->size_bytes) {
			m->data = rg_alloc_aligned(PAGE_BYTES, t->size_bytes);
			if (!m->data)
				rc = rg_error_nomem(err, t->size_bytes);
		}
	}
	for (int i = 0; i < t->threads && !rc; i++) {
		int e = pthread_create(&t->members[i].thread, NULL, member_main, &t->members[i]);

		if (e)
			rc = rg_error_set(err, -e, "cannot start a thread: %s", strerror(e));
		else
			started++;
	}
	if (!rc)
		return 0;
	/* those that did start wait at the gate for a full team: let them go */
	for (int i = 0; i < started; i++)
		pthread_cancel(t->members[i].thread);
	for (int i = 0; i < started; i++)
		pthread_join(t->members[i].thread, NULL);
	for (int i = 0; i < t->threads; i++)
		rg_free(t->members[i].data);
	rg_free(t->members);
	return rc;
}

static void stop_team(struct team *t)
{
	t->quit = true;
	pthread_barrier_wait(&t->gate);
	for (int i = 0; i < t->threads; i++)
		pthread_join(t->members[i].thread, NULL);
	pthread_barrier_destroy(&t->gate);
	for (int i = 0; i < t->threads; i++)
		rg_free(t->members[i].data);
	rg_free(t->members);
}

/* Measures one kernel on one working set for about budget_ns. */
static int measure(const struct rg_roof_kernel *k, int threads, size_t size_bytes, double budget_ns,
		   const struct rg_topology *topo, struct rg_ceiling_row *row, struct rg_error *err)
{
	struct team t = { .kernel = k, .threads = threads, .size_bytes = size_bytes };
	double rate[MAX_WINDOWS];
	uint64_t start;
	int n = 0, rc = start_team(&t, topo, err);

	if (rc)
		return rc;
	calibrate(&t, WINDOW_NS);
	start = rg_clock_now_ns();
	while (n < MAX_WINDOWS && !rg_session_interrupted() &&
	       (n < 5 || (double)(rg_clock_now_ns() - start) < budget_ns)) {
		double length_ns;
		int64_t done = window(&t, &length_ns);

		if (length_ns > 0)
			rate[n++] = (double)done / length_ns * 1e9;
	}
	stop_team(&t);
	if (rg_session_interrupted())
		return rg_error_set(err, RG_EINTERRUPTED, "interrupted before the ceilings were measured");
	rg_stats_sort(rate, (size_t)n);
	row->value = rate[n - 1];
	row->low = rg_stats_quantile_sorted(rate, (size_t)n, 0.1);
	row->high = rate[n - 1];
	row->samples = n;
	row->threads = threads;
	row->dtype = k->iops ? "int8" : "float32";
	row->isa = k->isa_name;
	row->provenance = RG_PROV_MEASURED;
	row->working_set_bytes = size_bytes ? (int64_t)size_bytes * threads : -1;
	return 0;
}

/* The widest kernel of a sort that this CPU may run: the table of kernels/roof
 * goes from narrow to wide. */
static const struct rg_roof_kernel *widest(bool compute, uint32_t isa)
{
	const struct rg_roof_kernel *best = NULL;

	for (int i = 0; i < rg_roof_count(); i++) {
		const struct rg_roof_kernel *k = rg_roof_at(i);

		if ((compute ? !k->flops : !k->read) || (k->isa & ~isa) != 0)
			continue;
		best = k;
	}
	return best;
}

/* The same among the int8 kernels of a form. One that does not get its sum right is passed over. */
static const struct rg_roof_kernel *widest_int8(const char *form, uint32_t isa)
{
	const struct rg_roof_kernel *best = NULL;

	for (int i = 0; i < rg_roof_count(); i++) {
		const struct rg_roof_kernel *k = rg_roof_at(i);

		if (k->iops && strcmp(k->form, form) == 0 && !(k->isa & ~isa) && rg_roof_check(k))
			best = k;
	}
	return best;
}

/* In the order of the rows. `level`: "peak" means float32 to all readers of ceilings. */
static const struct {
	const char *form, *level;
	enum rg_roof_weights weights;
} int8_forms[] = {
	{ "widen", "int8 widen", RG_ROOF_ANY },
	{ "pairs", "int8 pairs", RG_ROOF_PAIRS },
	{ "quads", "int8 quads", RG_ROOF_QUADS },
	{ "vnni", "int8 vnni", RG_ROOF_ANY },
};
#define INT8_FORMS (sizeof(int8_forms) / sizeof(int8_forms[0]))

const struct rg_ceiling_row *rg_ceilings_int8(const struct rg_ceiling_row *rows, int n, enum rg_roof_weights most,
					      enum rg_roof_weights *needs)
{
	const struct rg_ceiling_row *best = NULL;

	for (int i = 0; i < n; i++) {
		for (size_t f = 0; f < INT8_FORMS; f++) {
			if (strcmp(rows[i].level, int8_forms[f].level) != 0 || int8_forms[f].weights > most ||
			    !(rows[i].value > (best ? best->value : 0)))
				continue;
			best = &rows[i];
			if (needs)
				*needs = int8_forms[f].weights;
		}
	}
	return best;
}

struct level {
	const char *name;
	size_t size_bytes; /* a thread */
};

static size_t round_page(double bytes)
{
	size_t n = bytes < PAGE_BYTES ? PAGE_BYTES : (size_t)bytes;

	return n / PAGE_BYTES * PAGE_BYTES;
}

/*
 * A working set that sits inside a level and well outside the one before it.
 * Where sysfs says nothing about caches only DRAM is measured, by a size that
 * no cache holds.
 */
static int plan_levels(const struct rg_topology *topo, int threads, struct level *levels)
{
	double below = 0; /* bytes of the level before, a core */
	double memory = topo->memory_bytes > 0 ? (double)topo->memory_bytes : 4e9;
	double largest = 32e6, dram;
	int n = 0;

	for (int i = 0; i < topo->n_caches; i++) {
		const struct rg_cache *c = &topo->caches[i];
		static const char *const names[] = { "L1", "L2", "L3" };
		double share, want;

		if (c->level < 1 || c->level > 3 || c->size_bytes <= 0)
			continue;
		/* a shared cache is divided among the threads that share it */
		share = (double)c->size_bytes;
		if (c->shared_by_cpus > 1)
			share /= threads < c->shared_by_cpus ? threads : c->shared_by_cpus;
		want = share / 2;
		if (below > 0 && want > below * 8)
			want = below * 8;
		if ((double)c->size_bytes > largest)
			largest = (double)c->size_bytes;
		if (want <= below * 1.5)
			continue; /* no size tells this level from the one before */
		levels[n].name = names[c->level - 1];
		levels[n].size_bytes = round_page(want);
		n++;
		below = share;
	}
	dram = 2 * largest / threads;
	if (dram * threads > memory / 4)
		dram = memory / 4 / threads;
	levels[n].name = "DRAM";
	levels[n].size_bytes = round_page(dram);
	return n + 1;
}

int rg_ceilings_measure(const struct rg_topology *topo, int threads, uint32_t isa, unsigned what,
			const char *when, double budget_ns, rg_progress_fn *progress, void *ctx, struct rg_ceiling_row *rows, int *n,
			struct rg_error *err)
{
	struct level levels[RG_MAX_CACHES + 1];
	const struct rg_roof_kernel *compute = widest(true, isa), *read = widest(false, isa);
	int n_levels, rc = 0;

	*n = 0;
	n_levels = plan_levels(topo, threads, levels);
	if (compute && (what & RG_CEIL_PEAK)) {
		struct rg_ceiling_row *r = &rows[*n];

		memset(r, 0, sizeof(*r));
		if (progress)
			progress(ctx, "measuring the peak", NAN);
		rc = measure(compute, threads, 0, budget_ns, topo, r, err);
		if (rc)
			return rc;
		r->kind = "compute";
		r->level = "peak";
		r->unit = "flop/s";
		r->when = when;
		r->method = "independent multiply-add chains, best of short windows";
		(*n)++;
	}
	for (size_t f = 0; (what & RG_CEIL_INT8) && f < INT8_FORMS; f++) {
		const struct rg_roof_kernel *k = widest_int8(int8_forms[f].form, isa);
		struct rg_ceiling_row *r = &rows[*n];

		if (!k)
			continue;
		memset(r, 0, sizeof(*r));
		if (progress)
			progress(ctx, "measuring the int8 peak", NAN);
		rc = measure(k, threads, 0, budget_ns / 4, topo, r, err);
		if (rc)
			return rc;
		r->kind = "compute";
		r->level = int8_forms[f].level;
		r->unit = "op/s";
		r->when = when;
		r->method = k->method;
		(*n)++;
	}
	for (int i = 0; read && i < n_levels; i++) {
		struct rg_ceiling_row *r = &rows[*n];
		bool dram = i == n_levels - 1;

		if (!(what & (dram ? RG_CEIL_DRAM : RG_CEIL_CACHES)))
			continue;
		memset(r, 0, sizeof(*r));
		if (progress)
			progress(ctx, dram ? "measuring DRAM bandwidth" : "measuring cache bandwidth", NAN);
		rc = measure(read, threads, levels[i].size_bytes, budget_ns, topo, r, err);
		if (rc)
			return rc;
		r->kind = "bandwidth";
		r->level = levels[i].name;
		r->unit = "byte/s";
		r->when = when;
		r->method = "reads of a working set inside the level, best of short windows";
		(*n)++;
	}
	return 0;
}

int rg_session_ceilings(int threads, uint32_t isa, bool quick, rg_progress_fn *progress, void *ctx,
			struct rg_ceiling_row **rows, int *n, struct rg_error *err)
{
	struct rg_topology topo;
	struct rg_cpu cpu;
	struct rg_ceiling_row *v;
	int rc, most, counts[2], n_counts = 0, total = 0;

	rg_cpu_detect("", &cpu);
	rg_topology_read("", &topo);
	most = threads ? threads : rg_topology_default_threads(&topo);
	counts[n_counts++] = 1;
	if (most > 1)
		counts[n_counts++] = most;
	v = rg_calloc((size_t)n_counts * RG_CEIL_MAX_ROWS, sizeof(*v));
	if (!v)
		return rg_error_nomem(err, sizeof(*v));
	for (int i = 0; i < n_counts; i++) {
		int got = 0;

		rc = rg_ceilings_measure(&topo, counts[i], isa ? cpu.isa & isa : cpu.isa, RG_CEIL_ALL, "alone",
					 quick ? 0.15e9 : 1e9, progress, ctx, v + total, &got, err);
		if (rc) {
			rg_free(v);
			return rc;
		}
		total += got;
	}
	*rows = v;
	*n = total;
	return 0;
}
