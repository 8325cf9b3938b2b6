/* See bench.h. */
#include "session/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/kernel.h"
#include "session/bench-roof.h"
#include "session/bench-run.h"

#define ROUND_NS 5e6
#define QUICK_ROUND_NS 1.5e6
#define ROUNDS 15
#define QUICK_ROUNDS 7
#define SLOW_NS 10e9 /* rounds of a kernel take no longer than that together */
#define LEAST_ROUNDS 3
#define CEILING_NS 30e6
#define MAX_KERNELS 32

/* One kernel of the case that is being measured. */
struct racer {
	const struct rg_kernel *kernel;
	struct rg_bench_run run;
	double *call_ns;  /* by round */
	int rounds, wanted;
};

struct bench {
	const struct rg_bench_options *o;
	const struct rg_session_options *so;
	struct rg_bench_machine *machine;
	struct rg_bench_report *report;
	size_t cap_results;
	/* just before and just after the current case */
	struct rg_ceiling_row before[2], after[2];
	struct racer racers[MAX_KERNELS];
	int n_racers;
	int at, of; /* progress: cases */
};

static void progress(struct bench *b, const char *what)
{
	if (b->so->progress)
		b->so->progress(b->so->progress_ctx, what, (double)b->at / b->of);
}

/* ---- ceilings ---- */

static int measure_ceilings(struct bench *b, unsigned what, const char *when, double budget_ns,
			    struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS], struct rg_error *err)
{
	int n, rc = rg_ceilings_measure(&b->machine->topo, b->machine->threads, b->machine->isa, what, when,
					budget_ns, NULL, NULL, rows, &n, err);

	for (int i = 0; i < n && !rc; i++)
		rg_bench_keep_ceiling(b->report->ceilings, &b->report->n_ceilings, &rows[i]);
	return rc;
}

/* Peak and DRAM bandwidth, in this order, zero where there is none. */
static int measure_short(struct bench *b, const char *when, struct rg_ceiling_row out[2],
			 struct rg_error *err)
{
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS] = { { 0 } };
	int rc = measure_ceilings(b, RG_CEIL_PEAK | RG_CEIL_DRAM, when, CEILING_NS, rows, err);

	memset(out, 0, 2 * sizeof(*out));
	for (int i = 0; i < 2 && !rc; i++)
		if (rows[i].level)
			out[strcmp(rows[i].level, "peak") == 0 ? 0 : 1] = rows[i];
	return rc;
}

static void place(struct bench *b, struct rg_bench_result *r)
{
	double peak = fmax(b->before[0].value, b->after[0].value), memory = NAN, compute_ns, memory_ns = NAN;
	const struct rg_ceiling_row *serves =
	    rg_bench_level(b->machine, b->report->ceilings, b->report->n_ceilings, r->bytes);
	const char *level = serves ? serves->level : NULL;

	r->bound = NULL;
	r->roof_ns = r->share = NAN;
	if (serves)
		memory = strcmp(level, "DRAM") == 0 ? fmax(b->before[1].value, b->after[1].value) : serves->value;
	compute_ns = peak > 0 && r->flops >= 0 ? r->flops / peak * 1e9 : NAN;
	if (memory > 0)
		memory_ns = r->bytes / memory * 1e9;
	if (!(compute_ns >= 0) || !(memory_ns >= 0))
		return;
	r->bound = compute_ns >= memory_ns ? "compute" : level;
	r->roof_ns = fmax(compute_ns, memory_ns);
	r->share = r->roof_ns / r->time_ns.value;
}

/* ---- one case ---- */

static bool named(const struct bench *b, const char *kernel)
{
	for (int i = 0; i < b->so->n_overrides; i++)
		if (strcmp(b->so->overrides[i].kernel, kernel) == 0)
			return true;
	return false;
}

static int add_racer(struct bench *b, const struct rg_bench_case *c, const struct rg_kernel *k,
		     struct rg_error *err)
{
	struct racer *r = &b->racers[b->n_racers];
	int rc;

	if (b->n_racers == MAX_KERNELS)
		return rg_error_set(err, -E2BIG, "%s has more than %d kernels", k->op_type, MAX_KERNELS);
	rc = rg_bench_run_new(c, b->machine, b->so, k->name, &r->run, err);
	if (rc || !r->run.exec)
		return rc;
	b->n_racers++; /* from here on it is released with the others */
	r->kernel = k;
	r->rounds = 0;
	r->wanted = b->o->rounds ? b->o->rounds : b->o->quick ? QUICK_ROUNDS : ROUNDS;
	r->call_ns = rg_calloc((size_t)r->wanted, sizeof(*r->call_ns));
	return r->call_ns ? 0 : rg_error_nomem(err, (size_t)r->wanted * sizeof(*r->call_ns));
}

static int add_racers(struct bench *b, const struct rg_bench_case *c, struct rg_error *err)
{
	const struct rg_node *n = &c->graph->nodes[0];
	const struct rg_kernel *const *list, *ref = NULL;
	int count = rg_kernel_list(n->domain, n->op_type, &list), rc = 0;

	for (int i = 0; i < count && !rc; i++) {
		if (list[i]->isa & ~b->machine->isa)
			continue;
		if (b->so->n_overrides ? !named(b, list[i]->name) :
					 rg_kernel_is_one_of(list[i], b->so->n_without, b->so->without))
			continue;
		if (!b->so->n_overrides && strcmp(list[i]->name, "ref") == 0)
			ref = list[i];
		else
			rc = add_racer(b, c, list[i], err);
	}
	if (!rc && !b->n_racers && ref)
		rc = add_racer(b, c, ref, err);
	return rc;
}

static void free_racers(struct bench *b)
{
	for (int i = 0; i < b->n_racers; i++) {
		rg_bench_run_free(&b->racers[i].run);
		rg_free(b->racers[i].call_ns);
	}
	b->n_racers = 0;
}

static int calibrate(struct bench *b, struct rg_error *err)
{
	int rc = 0;

	for (int i = 0; i < b->n_racers && !rc; i++) {
		struct racer *r = &b->racers[i];
		double call_ns, round_ns;

		rc = rg_bench_run_calibrate(&r->run, b->o->quick ? QUICK_ROUND_NS : ROUND_NS, &call_ns, err);
		round_ns = call_ns * (double)r->run.calls;
		if (!rc && round_ns * r->wanted > SLOW_NS && !b->o->rounds)
			r->wanted = (int)fmax(LEAST_ROUNDS, SLOW_NS / round_ns);
	}
	return rc;
}

static int race(struct bench *b, struct rg_error *err)
{
	bool more = true;
	int rc = 0;

	for (int turn = 0; more && !rc; turn++) {
		more = false;
		for (int i = 0; i < b->n_racers && !rc; i++) {
			struct racer *r = &b->racers[turn % 2 ? b->n_racers - 1 - i : i];

			if (r->rounds == r->wanted)
				continue;
			rc = rg_bench_run_round(&r->run, &r->call_ns[r->rounds], err);
			r->rounds++;
			more = true;
		}
	}
	return rc;
}

static int add_result(struct bench *b, const struct rg_bench_case *c, struct racer *r, const char *chosen,
		      struct rg_error *err)
{
	const struct rg_step *step = &r->run.plan->steps[0];
	struct rg_bench_result *v =
	    rg_grow(b->report->results, &b->cap_results, (size_t)b->report->n_results + 1, sizeof(*v));

	if (!v)
		return rg_error_nomem(err, sizeof(*v));
	b->report->results = v;
	v += b->report->n_results++;
	*v = (struct rg_bench_result){ .c = c, .op_type = r->kernel->op_type, .kernel = r->kernel->name,
				       .chosen = strcmp(chosen, r->kernel->name) == 0, .rounds = r->rounds,
				       .calls = r->run.calls, .prepared_bytes = step->prepared_bytes };
	rg_stats_sort(r->call_ns, (size_t)r->rounds);
	v->best_ns = r->call_ns[0];
	v->time_ns = rg_stats_quantile_ci(r->call_ns, (size_t)r->rounds, 0.5, 0.95);
	v->flops = step->cost.flops >= 0 ? (double)step->cost.flops : NAN;
	v->bytes = step->cost.read_bytes >= 0 && step->cost.write_bytes >= 0 ?
			   (double)step->cost.read_bytes + (double)step->cost.write_bytes : NAN;
	v->flop_rate = v->flops / v->time_ns.value * 1e9;
	v->byte_rate = v->bytes / v->time_ns.value * 1e9;
	place(b, v);
	return 0;
}

/* The name of the kernel that a plan takes for the case. */
static int find_chosen(struct bench *b, const struct rg_bench_case *c, const char **name,
		       struct rg_error *err)
{
	struct rg_bench_run r;
	int rc = rg_bench_run_new(c, b->machine, b->so, NULL, &r, err);

	*name = rc ? "" : rg_step_kernel_name(&r.plan->steps[0]); /* of the registry */
	if (!rc)
		rg_bench_run_free(&r);
	return rc;
}

static int one_case(struct bench *b, const struct rg_bench_case *c, struct rg_error *err)
{
	const char *chosen;
	int rc = find_chosen(b, c, &chosen, err);

	memcpy(b->before, b->after, sizeof(b->before));
	if (!rc)
		rc = add_racers(b, c, err);
	if (!rc)
		rc = calibrate(b, err);
	if (!rc)
		rc = race(b, err);
	if (!rc)
		rc = measure_short(b, "after", b->after, err);
	for (int i = 0; i < b->n_racers && !rc; i++)
		rc = add_result(b, c, &b->racers[i], chosen, err);
	free_racers(b);
	return rc;
}

static int all_cases(struct bench *b, const struct rg_bench_set *s, struct rg_error *err)
{
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS];
	int rc;

	progress(b, "measuring ceilings");
	rc = measure_ceilings(b, RG_CEIL_F32, "before", b->o->quick ? CEILING_NS : 0.1e9, rows, err);
	if (!rc)
		rc = measure_short(b, "before", b->after, err);
	for (size_t i = 0; i < s->n && !rc; i++) {
		b->at = (int)i;
		progress(b, s->v[i].name);
		rc = one_case(b, &s->v[i], err);
		if (!rc && rg_session_interrupted())
			rc = rg_error_set(err, RG_EINTERRUPTED, "interrupted");
	}
	if (!rc && !b->report->n_results) {
		rg_error_set(err, RG_EUSAGE, "no kernel that was asked for runs any of these cases");
		rc = rg_error_hint(err, "without --kernel all that run a case are measured, and named");
	}
	return rc;
}

int rg_bench_measure(const struct rg_bench_set *s, const struct rg_bench_options *o,
		     struct rg_bench_report **out, struct rg_error *err)
{
	struct bench *b = rg_calloc(1, sizeof(*b));
	int rc = 0;

	if (!b)
		return rg_error_nomem(err, sizeof(*b));
	b->o = o;
	b->so = o->session;
	b->of = (int)s->n;
	b->machine = rg_calloc(1, sizeof(*b->machine));
	b->report = rg_calloc(1, sizeof(*b->report));
	if (b->report)
		b->report->ceilings = rg_calloc(RG_CEIL_MAX_ROWS, sizeof(*b->report->ceilings));
	if (!b->machine || !b->report || !b->report->ceilings)
		rc = rg_error_nomem(err, sizeof(*b->machine));
	if (!rc)
		rc = rg_bench_machine(b->so, b->machine, err);
	if (!rc) {
		b->report->threads = b->machine->threads;
		b->report->pinned = b->machine->pinned;
		b->report->isa = b->machine->isa;
		rc = all_cases(b, s, err);
	}
	if (rc)
		rg_bench_report_free(b->report);
	else
		*out = b->report;
	rg_free(b->machine);
	rg_free(b);
	return rc;
}

void rg_bench_report_free(struct rg_bench_report *r)
{
	if (!r)
		return;
	rg_free(r->results);
	rg_free(r->ceilings);
	rg_free(r);
}
