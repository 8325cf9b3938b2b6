/* See ladder.h. */
#include "session/ladder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/stats.h"
#include "session/bench-roof.h"
#include "session/ceilings.h"
#include "session/ladder-misses.h"
#include "session/ladder-run.h"

#define ROUND_NS 3e6
#define ROUNDS 15
#define QUICK_ROUNDS 7
#define LONG_NS 1.2e9     /* rounds of a rung together take no longer, but for one */
#define CEILING_NS 30e6

static const struct rg_ladder_shape default_shapes[] = {
	{ 64, 64, 64 },	   { 128, 128, 128 },	 { 256, 256, 256 },
	{ 512, 512, 512 }, { 1024, 1024, 1024 }, { 128, 768, 3072 },
};

/* The report with what it points at. */
struct whole {
	struct rg_ladder_report report; /* first: it is what the caller gets */
	struct rg_arena *arena;
};

struct racer {
	struct rg_ladder_run run;
	struct rg_ladder_row *row;
	double *ns; /* by round */
	int rounds, wanted;
	int64_t calls;
};

struct ladder {
	const struct rg_ladder_options *o;
	const struct rg_session_options *so;
	struct rg_bench_machine *machine;
	struct whole *whole;
	struct rg_pool *pool;
	struct rg_ladder_misses *misses;
	const struct rg_ladder_name *names[RG_LADDER_RUNGS];
	int n_names;
	struct racer racers[RG_LADDER_RUNGS];
	int n_racers;
	double at, of; /* progress */
};

static void progress(struct ladder *l, const char *what)
{
	if (l->so->progress)
		l->so->progress(l->so->progress_ctx, what, l->at / l->of);
}

static int interrupted(struct rg_error *err)
{
	return rg_session_interrupted() ? rg_error_set(err, RG_EINTERRUPTED, "interrupted") : 0;
}

/* ---- roofs ---- */

static int measure_roofs(struct ladder *l, unsigned what, struct rg_error *err)
{
	struct rg_ladder_report *r = &l->whole->report;
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS];
	int n, rc = rg_ceilings_measure(&l->machine->topo, l->machine->threads, l->machine->isa, what, "alone",
					what & RG_CEIL_INT8 ? 2 * CEILING_NS : CEILING_NS, NULL, NULL, rows, &n, err);

	for (int i = 0; i < n && !rc; i++)
		rg_bench_keep_ceiling(r->ceilings, &r->n_ceilings, &rows[i]);
	return rc;
}

/* The compute roof of a row: float32's peak, or the fastest form of the exact int8 product that its weights allow. */
static const struct rg_ceiling_row *roof_of(const struct rg_ladder_report *r, bool int8, enum rg_roof_weights form)
{
	if (int8)
		return rg_ceilings_int8(r->ceilings, r->n_ceilings, form, NULL);
	for (int i = 0; i < r->n_ceilings; i++)
		if (strcmp(r->ceilings[i].level, "peak") == 0)
			return &r->ceilings[i];
	return NULL;
}

/* What each row's rate is of its roof, once the roofs of the whole run are known. */
static void place(struct ladder *l)
{
	struct rg_ladder_report *r = &l->whole->report;

	for (int i = 0; i < r->n_rows; i++) {
		struct rg_ladder_row *v = &r->rows[i];
		enum rg_roof_weights form = rg_ladder_weights_form(v->pairs_share, v->quads_share);
		const struct rg_ceiling_row *roof = roof_of(r, v->int8, form), *memory;
		double mk = (double)v->m * (double)v->k, kn = (double)v->k * (double)v->n, mn = (double)v->m * (double)v->n;
		double bytes = v->int8 ? mk + kn + 4 * mn : 4 * (mk + kn + mn);

		memory = rg_bench_level(l->machine, r->ceilings, r->n_ceilings, bytes);
		if (!v->rounds)
			continue;
		v->memory_ns = memory && memory->value > 0 ? bytes / memory->value * 1e9 : NAN;
		if (!roof || !(roof->value > 0))
			continue;
		v->roof = roof->level;
		v->roof_fraction = v->gops * 1e9 / roof->value;
	}
}

/* ---- one shape ---- */

static const char *keep(struct ladder *l, const char *text)
{
	return *text ? rg_arena_strdup(l->whole->arena, text) : "";
}

static int round_of(struct racer *r, double *call_ns, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	int rc = 0;

	for (int64_t i = 0; i < r->calls && !rc; i++)
		rc = rg_ladder_run_call(&r->run, err);
	*call_ns = (double)(rg_clock_now_ns() - start) / (double)r->calls;
	return rc;
}

/* First calls, the errors of their result, and how many calls and rounds to take. A first call of
 * LONG_NS is the only round: what it does more than a second one is nothing beside that. */
static int prepare(struct ladder *l, struct racer *r, const struct rg_ladder_data *d, double *first_ns,
		   struct rg_error *err)
{
	double round_ns = l->o->quick ? ROUND_NS / 2 : ROUND_NS, call_ns;
	struct rg_ladder_errors e;
	int rc;

	r->calls = 1;
	rc = round_of(r, &call_ns, err);
	if (rc)
		return rc;
	e = rg_ladder_errors_of(d, r->row->int8, rg_ladder_run_result(&r->run));
	r->row->max_error = e.max;
	r->row->relative_error = e.relative;
	r->row->wrong = e.wrong;
	*first_ns = call_ns >= LONG_NS && !l->o->rounds ? call_ns : NAN;
	if (*first_ns > 0) {
		r->wanted = 1;
		return 0;
	}
	while (!rc && call_ns * (double)r->calls < round_ns && r->calls < INT64_MAX / 16) {
		double grow = call_ns > 0 ? round_ns / call_ns / (double)r->calls * 1.2 : 8;

		if (r->calls > 1 || call_ns < round_ns / 8)
			rc = round_of(r, &call_ns, err);
		if (!rc && call_ns * (double)r->calls < round_ns)
			r->calls = (int64_t)((double)r->calls * fmin(grow, 8)) + 1;
	}
	r->wanted = l->o->rounds ? l->o->rounds : l->o->quick ? QUICK_ROUNDS : ROUNDS;
	if (!l->o->rounds && call_ns * (double)r->calls * r->wanted > LONG_NS)
		r->wanted = (int)fmax(1, LONG_NS / (call_ns * (double)r->calls));
	return rc;
}

static int add_racer(struct ladder *l, const struct rg_ladder_name *name, const struct rg_ladder_data *d,
		     struct rg_error *err)
{
	struct rg_ladder_report *report = &l->whole->report;
	struct racer *r = &l->racers[l->n_racers++];
	struct rg_ladder_row *row = &report->rows[report->n_rows++];
	const struct rg_ladder_shape *s = &d->shape;
	double first_ns;
	int rc;

	*row = (struct rg_ladder_row){ s->m, s->k, s->n, .rung = name->rung, .int8 = name->int8, .kernel = "",
				       .threads = l->machine->threads, .calls = -1, .ns = NAN, .ns_low = NAN,
				       .ns_high = NAN, .gops = NAN, .roof_fraction = NAN, .memory_ns = NAN,
				       .max_error = NAN, .relative_error = NAN, .wrong = -1,
				       .pairs_share = d->pairs_share, .quads_share = d->quads_share, .l1_misses = NAN,
				       .ll_misses = NAN, .misses_provenance = RG_PROV_UNAVAILABLE, .misses_reason = "",
				       .reason = "" };
	*r = (struct racer){ .row = row };
	rc = rg_ladder_run_new(name, NULL, d, l->machine, l->so, rg_pool_par(l->pool), &r->run, err);
	if (rc)
		return rc;
	row->kernel = keep(l, r->run.kernel);
	row->reason = keep(l, r->run.reason);
	if (!row->kernel || !row->reason)
		return rg_error_nomem(err, 160);
	if (*row->reason)
		return 0;
	rc = prepare(l, r, d, &first_ns, err);
	if (rc)
		return rc;
	r->ns = rg_calloc((size_t)r->wanted, sizeof(*r->ns));
	if (!r->ns)
		return rg_error_nomem(err, (size_t)r->wanted * sizeof(*r->ns));
	if (first_ns > 0)
		r->ns[r->rounds++] = first_ns;
	return 0;
}

static int race(struct ladder *l, struct rg_error *err)
{
	bool more = true;
	int rc = 0;

	for (int turn = 0; more && !rc; turn++) {
		more = false;
		for (int i = 0; i < l->n_racers && !rc; i++) {
			struct racer *r = &l->racers[turn % 2 ? l->n_racers - 1 - i : i];

			if (r->rounds >= r->wanted)
				continue;
			rc = round_of(r, &r->ns[r->rounds++], err);
			if (!rc)
				rc = interrupted(err);
			more = true;
		}
	}
	return rc;
}

static void finish(struct racer *r)
{
	struct rg_ladder_row *row = r->row;

	if (!r->rounds)
		return;
	rg_stats_sort(r->ns, (size_t)r->rounds);
	row->rounds = r->rounds;
	row->calls = r->calls;
	row->ns = rg_stats_quantile_sorted(r->ns, (size_t)r->rounds, 0.5);
	if (r->rounds > 1) {
		row->ns_low = r->ns[0];
		row->ns_high = r->ns[r->rounds - 1];
	}
	row->gops = 2 * (double)row->m * (double)row->k * (double)row->n / row->ns;
}

static void free_racers(struct ladder *l)
{
	for (int i = 0; i < l->n_racers; i++) {
		rg_ladder_run_free(&l->racers[i].run);
		rg_free(l->racers[i].ns);
	}
	l->n_racers = 0;
}

static int count_misses(struct ladder *l, const struct rg_ladder_data *d, struct rg_error *err)
{
	int rc = 0;

	for (int i = 0; i < l->n_racers && !rc; i++) {
		struct rg_ladder_row *row = l->racers[i].row;
		char reason[RG_LADDER_REASON] = "";

		if (*row->reason)
			continue;
		rc = rg_ladder_misses_count(l->misses, l->racers[i].run.name, l->racers[i].run.kernel, l->racers[i].run.isa,
					    d, row, reason, err);
		if (!rc)
			row->misses_reason = keep(l, reason);
		if (!rc && !row->misses_reason)
			rc = rg_error_nomem(err, sizeof(reason));
		l->at += 0.5 / l->n_racers;
		progress(l, row->rung);
		if (!rc)
			rc = interrupted(err);
	}
	return rc;
}

static int one_shape(struct ladder *l, const struct rg_ladder_shape *s, struct rg_error *err)
{
	struct rg_ladder_data d;
	int rc = rg_ladder_data_new(s, l->o->weights, l->so->seed, true, &d, err);

	if (rc)
		return rc;
	for (int i = 0; i < l->n_names && !rc; i++) {
		rc = add_racer(l, l->names[i], &d, err);
		if (!rc)
			rc = interrupted(err);
	}
	if (!rc)
		rc = race(l, err);
	for (int i = 0; i < l->n_racers && !rc; i++)
		finish(&l->racers[i]);
	if (!rc)
		rc = count_misses(l, &d, err);
	free_racers(l);
	rg_ladder_data_free(&d);
	return rc ? rc : measure_roofs(l, RG_CEIL_PEAK | RG_CEIL_INT8, err);
}

/* ---- the whole ---- */

static int choose_rungs(struct ladder *l, struct rg_error *err)
{
	for (int i = 0; i < l->o->n_rungs; i++) {
		if (rg_ladder_name_find(l->o->rungs[i]))
			continue;
		rg_error_set(err, RG_EUSAGE, "there is no rung '%s'", l->o->rungs[i]);
		return rg_error_hint(err, "naive, ikj, tiled, simd, ridge, openblas, int8-scalar, int8-simd, int8-blocked, "
				     "int8-ridge");
	}
	for (int i = 0; i < RG_LADDER_RUNGS; i++) {
		bool wanted = l->o->n_rungs == 0;

		for (int k = 0; k < l->o->n_rungs; k++)
			wanted |= strcmp(l->o->rungs[k], rg_ladder_names[i].rung) == 0;
		if (wanted)
			l->names[l->n_names++] = &rg_ladder_names[i];
	}
	return 0;
}

static int open_all(struct ladder *l, int n_shapes, struct rg_error *err)
{
	struct rg_ladder_report *r;
	int cpus[RG_MAX_CPUS], rc;

	l->machine = rg_calloc(1, sizeof(*l->machine));
	l->whole = rg_calloc(1, sizeof(*l->whole));
	if (!l->machine || !l->whole)
		return rg_error_nomem(err, sizeof(*l->machine));
	l->whole->arena = rg_arena_new();
	r = &l->whole->report;
	r->rows = rg_calloc((size_t)n_shapes * (size_t)l->n_names, sizeof(*r->rows));
	r->ceilings = rg_calloc(RG_CEIL_MAX_ROWS, sizeof(*r->ceilings));
	if (!l->whole->arena || !r->rows || !r->ceilings)
		return rg_error_nomem(err, (size_t)n_shapes * RG_LADDER_RUNGS * sizeof(*r->rows));
	rc = rg_bench_machine(l->so, l->machine, err);
	if (rc)
		return rc;
	rg_topology_pin_order(&l->machine->topo, cpus);
	r->threads = l->machine->threads;
	r->pinned = l->machine->pinned;
	r->isa = rg_isa_level_name(l->machine->isa);
	r->weights = rg_ladder_weights_name(l->o->weights);
	rc = rg_pool_new(l->machine->threads, l->machine->pinned ? cpus : NULL, &l->pool, err);
	if (!rc)
		rc = rg_ladder_misses_new(&l->machine->topo, l->machine->cpu.isa, l->o, &l->misses, err);
	return rc;
}

int rg_ladder_measure(const struct rg_ladder_options *o, struct rg_ladder_report **out, struct rg_error *err)
{
	const struct rg_ladder_shape *shapes = o->n_shapes ? o->shapes : default_shapes;
	int n = o->n_shapes ? o->n_shapes : (int)(sizeof(default_shapes) / sizeof(default_shapes[0])), rc;
	struct ladder *l = rg_calloc(1, sizeof(*l));

	if (!l)
		return rg_error_nomem(err, sizeof(*l));
	l->o = o;
	l->so = o->session;
	l->of = n;
	rc = choose_rungs(l, err);
	if (!rc)
		rc = open_all(l, n, err);
	if (!rc) {
		progress(l, "measuring roofs");
		rc = measure_roofs(l, RG_CEIL_ALL, err);
	}
	for (int i = 0; i < n && !rc; i++) {
		char text[96];

		snprintf(text, sizeof(text), "%lldx%lldx%lld", (long long)shapes[i].m, (long long)shapes[i].k,
			 (long long)shapes[i].n);
		l->at = i;
		progress(l, text);
		rc = one_shape(l, &shapes[i], err);
	}
	if (!rc) {
		l->whole->report.simulator = keep(l, rg_ladder_misses_simulator(l->misses));
		if (!l->whole->report.simulator)
			rc = rg_error_nomem(err, 200);
		place(l);
	}
	if (!rc)
		*out = &l->whole->report;
	else if (l->whole)
		rg_ladder_report_free(&l->whole->report);
	rg_ladder_misses_free(l->misses);
	if (l->pool)
		rg_pool_free(l->pool);
	rg_free(l->machine);
	rg_free(l);
	return rc;
}

void rg_ladder_report_free(struct rg_ladder_report *r)
{
	struct whole *w = (struct whole *)r;

	if (!w)
		return;
	rg_free(r->rows);
	rg_free(r->ceilings);
	rg_arena_free(w->arena);
	rg_free(w);
}
