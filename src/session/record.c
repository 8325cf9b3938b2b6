/*
 * `ridge record`: the passes of a recording (docs/architecture.md) over one
 * plan, each written to the store as it ends.
 *
 * Nothing is written while a timed inference runs. Between batches, after a
 * write, one inference is run and thrown away, so that what the database did
 * to the caches is not in the figures.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/stats.h"
#include "session/ceilings.h"
#include "session/facts.h"
#include "session/prepare.h"
#include "session/rows.h"
#include "session/spans.h"
#include "sys/procfs.h"
#include "version.h"

#define WARMUP_WINDOW 5
#define WARMUP_TOLERANCE 0.025
#define WARMUP_LIMIT_ITERATIONS 200
#define WARMUP_LIMIT_NS 8e9
#define TIMING_LIMIT_NS 10e9      /* without --iterations or --duration */
#define TIMING_MIN_PAIRS 10
#define TIMING_MAX_PAIRS 500
#define TIMING_CHECK_PAIRS 100    /* how often the interval is looked at */
#define TIMING_RATIO_WIDTH 0.005  /* narrow enough: half a percent */
#define FLUSH_NS 2e9
#define SPAN_BUFFER 200000

struct recorder {
	struct rg_store *store;
	const struct rg_session_options *o;
	struct rg_prepared p;
	int64_t run;
	uint64_t epoch_ns;
	struct rg_spans *spans;
	int64_t spans_per_iteration; /* most that one lane can report */
	struct rg_iteration_row *pending;
	size_t n_pending, cap_pending;
	int n_iterations;            /* of the run so far, all passes */
	uint64_t last_flush_ns;
	double *on, *off;            /* timed pairs */
	size_t n_on, n_off, cap_on, cap_off;
	bool steady;
	/* the buffers of the ceilings must not count as the model's */
	int64_t rss_bytes, peak_rss_bytes; /* -1: not known */
	uint64_t steal_before, ticks_before;
	bool has_ticks;
	char hash[65];             /* "": no inference ended */
	bool cut;                  /* a person stopped an inference before its end */
};

static void progress(const struct recorder *r, const char *what, double fraction)
{
	if (r->o->progress)
		r->o->progress(r->o->progress_ctx, what, fraction);
}

static int64_t since_epoch(const struct recorder *r, uint64_t ns)
{
	return (int64_t)(ns - r->epoch_ns);
}

static int put_phase(struct recorder *r, const char *name, uint64_t start_ns, uint64_t end_ns, struct rg_error *err)
{
	struct rg_phase_row row = { name, since_epoch(r, start_ns), since_epoch(r, end_ns) };

	return rg_store_put_phases(r->store, r->run, &row, 1, err);
}

/* ---- iterations ---- */

static int flush(struct recorder *r, struct rg_error *err)
{
	struct rg_span_row *rows = NULL;
	int64_t n = 0;
	int rc;

	if (r->n_pending == 0)
		return 0;
	rc = rg_spans_take(r->spans, r->epoch_ns, &rows, &n, err);
	if (!rc)
		rc = rg_store_put_iterations(r->store, r->run, r->pending, (int)r->n_pending, rows, n, err);
	rg_free(rows);
	r->n_pending = 0;
	r->last_flush_ns = rg_clock_now_ns();
	return rc;
}

/* What a person stopped has not failed: whoever asked sees rg_session_interrupted. */
static int run_once(struct recorder *r, struct rg_error *err)
{
	int rc = rg_exec_run(r->p.exec, err);

	if (rc != RG_EINTERRUPTED)
		return rc;
	rg_error_clear(err);
	r->cut = true;
	return 0;
}

/* One inference; its row waits for the next flush. *took may be NULL, and is left
 * alone when the inference was stopped. */
static int iterate(struct recorder *r, const char *pass, bool hook, double *took, struct rg_error *err)
{
	struct rg_iteration_row *row;
	uint64_t start, end;
	int rc;

	if (hook && !rg_spans_room(r->spans, r->spans_per_iteration)) {
		rc = flush(r, err);
		if (!rc)
			rc = run_once(r, err); /* thrown away: warms the caches again */
		if (rc)
			return rc;
	}
	row = rg_grow(r->pending, &r->cap_pending, r->n_pending + 1, sizeof(*row));
	if (!row)
		return rg_error_nomem(err, (r->n_pending + 1) * sizeof(*row));
	r->pending = row;
	rg_spans_iteration(r->spans, r->n_iterations);
	rg_exec_set_hook(r->p.exec, hook ? rg_spans_hook(r->spans) : NULL);
	start = rg_clock_now_ns();
	rc = run_once(r, err);
	end = rg_clock_now_ns();
	rg_exec_set_hook(r->p.exec, NULL);
	if (rc || r->cut) {
		rg_spans_forget(r->spans);
		return rc;
	}
	r->pending[r->n_pending++] = (struct rg_iteration_row){
		r->n_iterations++, pass, hook, since_epoch(r, start), since_epoch(r, end),
	};
	if (took)
		*took = (double)(end - start);
	return 0;
}

static int first_inference(struct recorder *r, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	int rc;

	progress(r, "first inference", NAN);
	rc = iterate(r, "first", true, NULL, err);
	if (!rc && !r->cut)
		rc = rg_prepared_hash_outputs(&r->p, r->hash, err);
	if (!rc)
		rc = put_phase(r, "first", start, rg_clock_now_ns(), err);
	return rc;
}

/* Until the medians of two windows in a row agree, or the limit is reached. */
static int warm_up(struct recorder *r, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	double before = NAN, v[WARMUP_WINDOW];
	int fixed = r->o->warmup, done = 0, rc = 0;

	progress(r, "warming up", NAN);
	while (!rc && !rg_session_interrupted() && !(fixed >= 0 && done >= fixed)) {
		int n = 0;

		for (; n < WARMUP_WINDOW && !(fixed >= 0 && done >= fixed) && !rc && !rg_session_interrupted(); n++, done++)
			rc = iterate(r, "warmup", false, &v[n], err);
		if (rc || r->cut || n < WARMUP_WINDOW)
			continue;
		{
			double now = rg_stats_median(v, WARMUP_WINDOW);

			r->steady = !isnan(before) && fabs(now - before) <= WARMUP_TOLERANCE * before;
			before = now;
		}
		if (fixed < 0 && (r->steady || done >= WARMUP_LIMIT_ITERATIONS ||
				  (double)(rg_clock_now_ns() - start) > WARMUP_LIMIT_NS))
			break;
	}
	if (!rc)
		rc = put_phase(r, "warmup", start, rg_clock_now_ns(), err);
	return rc;
}

static bool narrow_enough(const struct recorder *r)
{
	struct rg_interval ci = rg_stats_ratio_ci(r->on, r->off, r->n_off < r->n_on ? r->n_off : r->n_on, 0.95, 1);

	return ci.high - ci.low < TIMING_RATIO_WIDTH;
}

/* Whether the timing pass may end after `pairs` pairs and `spent` ns. */
static bool timing_done(const struct recorder *r, int64_t pairs, double spent)
{
	if (rg_session_interrupted())
		return true;
	if (r->o->iterations >= 0)
		return pairs >= r->o->iterations;
	if (r->o->duration_ns >= 0)
		return pairs > 0 && spent >= (double)r->o->duration_ns;
	if (pairs >= TIMING_MAX_PAIRS)
		return true;
	if (pairs < TIMING_MIN_PAIRS)
		return false;
	if (spent > TIMING_LIMIT_NS)
		return true;
	return pairs % TIMING_CHECK_PAIRS == 0 && narrow_enough(r);
}

static int remember(double **v, size_t *n, size_t *cap, double x, struct rg_error *err)
{
	double *more = rg_grow(*v, cap, *n + 1, sizeof(*more));

	if (!more)
		return rg_error_nomem(err, (*n + 1) * sizeof(*more));
	*v = more;
	more[(*n)++] = x;
	return 0;
}

/* Pairs with and without the hook: on, off, off, on, ... so that a drift of the
 * machine falls on both alike. */
static int timing(struct recorder *r, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	int64_t pairs = 0;
	int rc = 0;

	r->last_flush_ns = start;
	while (!rc) {
		double spent = (double)(rg_clock_now_ns() - start);
		bool on_first = pairs % 2 == 0;

		if (timing_done(r, pairs, spent))
			break;
		if (r->o->iterations > 0)
			progress(r, "timing", (double)pairs / (double)r->o->iterations);
		else
			progress(r, "timing", spent / (r->o->duration_ns >= 0 ? (double)r->o->duration_ns
									      : TIMING_LIMIT_NS));
		for (int half = 0; half < 2 && !rc; half++) {
			bool on = (half == 0) == on_first;
			double took = NAN;

			rc = iterate(r, "timing", on, &took, err);
			if (!rc && !r->cut)
				rc = on ? remember(&r->on, &r->n_on, &r->cap_on, took, err)
					: remember(&r->off, &r->n_off, &r->cap_off, took, err);
		}
		pairs++;
		if (!rc && (double)(rg_clock_now_ns() - r->last_flush_ns) > FLUSH_NS) {
			rc = flush(r, err);
			if (!rc)
				rc = run_once(r, err);
		}
	}
	if (!rc)
		rc = flush(r, err);
	if (!rc)
		rc = put_phase(r, "timing", start, rg_clock_now_ns(), err);
	return rc;
}

/* ---- facts ---- */

static int put_facts(struct recorder *r, struct rg_facts *f, struct rg_error *err)
{
	int rc = f->failed ? rg_error_nomem(err, f->n * sizeof(*f->v))
			   : rg_store_put_facts(r->store, r->run, f->v, (int)f->n, err);

	rg_facts_free(f);
	return rc;
}

static int facts_before(struct recorder *r, struct rg_error *err)
{
	const struct rg_prepared *p = &r->p;
	const struct rg_plan *plan = p->plan;
	const struct rg_graph *g = plan->graph;
	const enum rg_provenance model = RG_PROV_MODELLED;
	struct rg_facts f = { 0 };
	struct rg_shape in0 = { 0 };
	char opsets[200] = "";
	size_t at = 0;

	rg_facts_machine(&f, &p->cpu, &p->topo);
	rg_facts_text(&f, "session.static", p->exec ? "no" : "yes", RG_PROV_DECLARED, "--static: planned, not run");
	rg_facts_text(&f, "session.pinned", p->pinned ? "yes" : "no", RG_PROV_MEASURED, "one lane a CPU");
	rg_facts_integer(&f, "session.optimize", p->plan->passes.level, "", RG_PROV_DECLARED, "--optimize");
	rg_facts_text(&f, "session.isa", rg_isa_level_name(p->isa), RG_PROV_DECLARED, "what --isa left of the CPU's");
	rg_facts_integer(&f, "model.params", p->params, "", model, "initialisers of the graph as read, tied ones once");
	rg_facts_integer(&f, "model.weight_bytes", rg_graph_weight_bytes(g), "bytes", model, "constants in use");
	rg_facts_integer(&f, "model.nodes", p->n_nodes_read, "", model, "nodes of the graph as read, constants apart");
	rg_facts_integer(&f, "model.file_bytes", p->model->file_bytes, "bytes", RG_PROV_MEASURED,
			 "a built-in model has no file");
	rg_facts_text(&f, "model.producer", g->producer, RG_PROV_DECLARED, "the file does not say");
	for (int i = 0; i < g->n_opsets && at < sizeof(opsets); i++)
		at += (size_t)snprintf(opsets + at, sizeof(opsets) - at, "%s%s%s%lld", i ? " " : "",
				       g->opsets[i].domain[0] ? g->opsets[i].domain : "ai.onnx", ":",
				       (long long)g->opsets[i].version);
	rg_facts_text(&f, "model.opset", opsets, RG_PROV_DECLARED, "opset_import");
	if (g->n_inputs)
		in0 = g->values[g->inputs[0]].shape;
	rg_facts_integer(&f, "model.batch", in0.rank > 0 ? in0.dim[0] : -1, "", model,
			 "first dimension of the first input");
	rg_facts_integer(&f, "plan.arena_bytes", plan->arena_bytes, "bytes", model, "activations and scratch, as placed");
	rg_facts_text(&f, "plan.planner", rg_planner_name(RG_PLANNER_RIDGE), model, "ridge plan --planner asks others");
	rg_facts_text(&f, "plan.arena_strategy", plan->arena_made_by, model, "lowest of the portfolio, or the search");
	rg_facts_integer(&f, "plan.arena_lower_bound_bytes", plan->arena_lower_bound_bytes, "bytes", model,
			 "largest sum of live bytes at any step, each rounded up to 64");
	rg_facts_text(&f, "plan.order", plan->reordered ? "memory" : "graph", model, "of the steps");
	rg_facts_integer(&f, "plan.peak_step", plan->peak_step, "", model, "where that is");
	rg_facts_integer(&f, "plan.prepared_bytes", plan->prepared_bytes, "bytes", model, "packed weights");
	rg_facts_integer(&f, "plan.steps", plan->n_steps, "", model, "kernel calls an inference");
	rg_facts_integer(&f, "plan.steps_before", plan->n_steps_before, "", model, "the same at --optimize 0");
	rg_facts_integer(&f, "plan.views", plan->n_views, "", model, "nodes that became aliases");
	rg_facts_integer(&f, "plan.in_place", plan->n_in_place, "", model, "steps that write over an input");
	rg_facts_integer(&f, "plan.folded", plan->n_folded, "", model, "nodes computed at plan time");
	rg_facts_integer(&f, "plan.dead", plan->n_dead, "", model, "nodes that no output needs");
	rg_facts_integer(&f, "plan.dynamic", plan->n_dynamic, "", model,
			 "steps whose shapes are found as they run");
	rg_facts_integer(&f, "plan.unsupported", plan->n_unsupported, "", model, "steps that cannot run");
	rg_facts_integer(&f, "plan.bound_inputs", plan->n_bound_inputs, "", model,
			 "inputs whose value the plan was made for");
	for (int i = 0; i < g->n_inputs; i++) {
		char key[128], shape[160], text[400];
		const struct rg_value *v = &g->values[g->inputs[i]];

		snprintf(key, sizeof(key), "input.%.100s", v->name);
		snprintf(text, sizeof(text), "%s %s: %s", rg_dtype_name(v->dtype), rg_shape_text(shape, &v->shape),
			 p->uses[i]);
		rg_facts_text(&f, key, text, RG_PROV_DECLARED, "--input, --input-range, or the seed");
	}
	return put_facts(r, &f, err);
}

/* Since the recording began; NAN when /proc/stat says nothing. */
static double steal_fraction(const struct recorder *r)
{
	uint64_t steal, ticks;

	if (!r->has_ticks || !rg_proc_steal_ticks("", &steal, &ticks) || ticks <= r->ticks_before)
		return NAN;
	return (double)(steal - r->steal_before) / (double)(ticks - r->ticks_before);
}

static int facts_after(struct recorder *r, struct rg_error *err)
{
	struct rg_facts f = { 0 };
	char hash[65];
	int rc = r->cut ? 0 : rg_prepared_hash_outputs(&r->p, hash, err);

	if (rc)
		return rc;
	if (r->hash[0])
		rg_facts_text(&f, "outputs.sha256", r->hash, RG_PROV_MEASURED, "type, shape and bytes of every output, first inference");
	if (!r->cut)
		rg_facts_text(&f, "outputs.stable", strcmp(hash, r->hash) == 0 ? "yes" : "no", RG_PROV_MEASURED,
		      "the last inference gave the same bytes as the first");
	rg_facts_text(&f, "session.steady", r->steady ? "yes" : "no", RG_PROV_MEASURED,
		      "medians of consecutive warm-up windows within 2.5 %");
	rg_facts_real(&f, "session.span_cost_ns", rg_spans_cost_ns(), "ns", RG_PROV_MEASURED,
		      "two clock readings and one entry, median of many");
	rg_facts_real(&f, "session.clock_cost_ns", rg_clock_cost_ns(), "ns", RG_PROV_MEASURED, "median of many");
	rg_facts_integer(&f, "session.spans_dropped", rg_spans_dropped(r->spans), "", RG_PROV_MEASURED,
			 "spans that found no room");
	rg_facts_integer(&f, "process.rss_bytes", r->rss_bytes, "bytes", RG_PROV_MEASURED, "VmRSS after the timing pass");
	rg_facts_integer(&f, "process.peak_rss_bytes", r->peak_rss_bytes, "bytes", RG_PROV_MEASURED,
			 r->peak_rss_bytes < 0 ? "VmHWM also holds the buffers of the ceilings: /proc/self/clear_refs "
						 "could not be written"
					       : "VmHWM of loading, planning and running, without the ceilings");
	rg_facts_real(&f, "machine.steal_fraction", steal_fraction(r), "fraction", RG_PROV_MEASURED,
		      "CPU time that the hypervisor gave to others, /proc/stat");
	rg_facts_real(&f, "machine.load1_after", rg_proc_load1(""), "", RG_PROV_MEASURED, "/proc/loadavg");
	return put_facts(r, &f, err);
}

/* ---- the whole ---- */

static int ceilings(struct recorder *r, unsigned what, const char *when, const char *phase, struct rg_error *err)
{
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS];
	uint64_t start = rg_clock_now_ns();
	int n, rc;

	if (r->o->no_ceilings || rg_session_interrupted())
		return 0;
	rc = rg_ceilings_measure(&r->p.topo, r->p.threads, r->p.isa, what, when, 0.15e9, r->o->progress, r->o->progress_ctx,
				 rows, &n, err);
	if (rc == RG_EINTERRUPTED) {
		/* what was measured so far is kept; the end of the run says the rest */
		rg_error_clear(err);
		rc = 0;
	}
	if (!rc)
		rc = rg_store_put_ceilings(r->store, r->run, rows, n, err);
	if (!rc)
		rc = put_phase(r, phase, start, rg_clock_now_ns(), err);
	return rc;
}

/* "resnet50" of "builtin:resnet50", "det" of "dir/det.onnx". */
static char *short_name(const char *model)
{
	const char *base = strrchr(model, '/');
	size_t len;

	base = base ? base + 1 : model;
	if (strncmp(base, "builtin:", 8) == 0)
		base += 8;
	len = strlen(base);
	if (len > 5 && strcmp(base + len - 5, ".onnx") == 0)
		len -= 5;
	return rg_strndup(base, len);
}

static int begin(struct recorder *r, uint64_t started_wall_ns, struct rg_error *err)
{
	struct rg_run run = { 0 };
	char *name = short_name(r->o->model);
	int rc;

	if (!name)
		return rg_error_nomem(err, strlen(r->o->model));
	run.tag = r->o->tag ? r->o->tag : "";
	run.model = r->o->model;
	run.model_name = name;
	run.model_sha256 = r->p.model->sha256;
	run.command = r->o->command ? r->o->command : "";
	run.version = RIDGE_VERSION;
	run.started_unix_ns = (int64_t)started_wall_ns;
	run.threads = r->p.threads;
	run.warmup_iterations = r->o->warmup;
	run.iterations = r->o->iterations;
	run.duration_ns = r->o->duration_ns;
	run.seed = (int64_t)r->o->seed;
	rc = rg_store_begin_run(r->store, &run, &r->run, err);
	rg_free(name);
	return rc;
}

static int phases_before(struct recorder *r, struct rg_error *err)
{
	const struct rg_prepared *p = &r->p;
	uint64_t at = p->plan_start_ns;
	int rc = put_phase(r, "read", p->read_start_ns, p->read_end_ns, err);

	if (!rc)
		rc = put_phase(r, "optimise", at, at + p->plan->optimise_ns, err);
	at += p->plan->optimise_ns;
	if (!rc)
		rc = put_phase(r, "plan", at, at + p->plan->plan_ns, err);
	at += p->plan->plan_ns;
	if (!rc)
		rc = put_phase(r, "pack", at, at + p->plan->pack_ns, err);
	if (!rc && p->exec)
		rc = put_phase(r, "stage", p->stage_start_ns, p->stage_end_ns, err);
	return rc;
}

static int passes(struct recorder *r, struct rg_error *err)
{
	int64_t steps = r->p.plan->n_steps;
	int rc = phases_before(r, err);

	if (!rc)
		rc = facts_before(r, err);
	if (!rc)
		rc = rg_rows_put_plan(r->store, r->run, &r->p, err);
	r->has_ticks = rg_proc_steal_ticks("", &r->steal_before, &r->ticks_before);
	r->peak_rss_bytes = rg_proc_peak_rss_bytes();
	if (!rc)
		rc = ceilings(r, RG_CEIL_ALL, "before", "ceilings-before", err);
	if (!r->o->no_ceilings && !rg_proc_reset_peak_rss())
		r->peak_rss_bytes = -1;
	/* the whole step, and a share for each of up to four parallel-fors in it */
	r->spans_per_iteration = steps * 5 + 16;
	if (!rc)
		rc = rg_spans_new(r->p.threads, r->spans_per_iteration > SPAN_BUFFER ? r->spans_per_iteration : SPAN_BUFFER,
				  &r->spans, err);
	if (!rc)
		rc = first_inference(r, err);
	if (!rc)
		rc = warm_up(r, err);
	if (!rc)
		rc = timing(r, err);
	r->rss_bytes = rg_proc_rss_bytes();
	if (r->peak_rss_bytes >= 0 && rg_proc_peak_rss_bytes() > r->peak_rss_bytes)
		r->peak_rss_bytes = rg_proc_peak_rss_bytes();
	if (!rc)
		rc = ceilings(r, RG_CEIL_PEAK | RG_CEIL_DRAM, "after", "ceilings-after", err);
	if (!rc)
		rc = facts_after(r, err);
	return rc;
}

int rg_session_plan(struct rg_store *s, const struct rg_session_options *o, int64_t *run_id, struct rg_error *err)
{
	struct recorder r = { .store = s, .o = o };
	uint64_t wall = rg_clock_wall_ns();
	int rc;

	r.epoch_ns = rg_clock_now_ns();
	progress(&r, "reading the model", NAN);
	rc = rg_prepare(o, &r.p, err);
	if (rc)
		return rc;
	rc = begin(&r, wall, err);
	*run_id = r.run;
	if (!rc)
		rc = phases_before(&r, err);
	if (!rc)
		rc = facts_before(&r, err);
	if (!rc)
		rc = rg_rows_put_plan(s, r.run, &r.p, err);
	if (!rc)
		rc = ceilings(&r, RG_CEIL_ALL, "before", "ceilings-before", err);
	if (!rc)
		rc = rg_store_end_run(s, r.run, RG_RUN_COMPLETE, "", err);
	rg_prepared_free(&r.p);
	return rc;
}

int rg_session_record(struct rg_store *s, const struct rg_session_options *o, int64_t *run_id, struct rg_error *err)
{
	struct recorder r = { .store = s, .o = o };
	uint64_t wall = rg_clock_wall_ns();
	int rc;

	r.epoch_ns = rg_clock_now_ns();
	progress(&r, "reading the model", NAN);
	rc = rg_prepare(o, &r.p, err);
	if (rc)
		return rc;
	rc = begin(&r, wall, err);
	if (!rc) {
		*run_id = r.run;
		rc = passes(&r, err);
		if (rc) {
			struct rg_error second = RG_ERROR_INIT;

			/* what is pending may still be saved; the first error is the one to tell */
			if (r.spans)
				flush(&r, &second);
			rg_store_end_run(s, r.run, RG_RUN_FAILED, err->message, &second);
		} else if (rg_session_interrupted()) {
			rc = rg_store_end_run(s, r.run, RG_RUN_INTERRUPTED, "stopped by a signal", err);
			if (!rc) {
				rc = rg_error_set(err, RG_EINTERRUPTED, "interrupted; what was recorded is kept as run %lld",
						  (long long)r.run);
				rg_error_hint(err, "look at it:  ridge report %lld", (long long)r.run);
			}
		} else {
			rc = rg_store_end_run(s, r.run, RG_RUN_COMPLETE, "", err);
		}
	}
	rg_spans_free(r.spans);
	rg_free(r.pending);
	rg_free(r.on);
	rg_free(r.off);
	rg_prepared_free(&r.p);
	return rc;
}
