/*
 * The report of one run as JSON; docs/json.md is its description.
 */
#include <math.h>

#include "base/alloc.h"
#include "reports/report-run.h"

void rg_report_json_facts(struct rg_json *j, json_t *to, const char *key, const struct rg_fact *facts, int n)
{
	json_t *list = rg_json_put(j, to, key, json_array());

	for (int i = 0; i < n; i++) {
		json_t *o = rg_json_put(j, list, NULL, json_object());

		rg_json_text(j, o, "key", facts[i].key);
		switch (facts[i].kind) {
		case 0:
			rg_json_text(j, o, "value", facts[i].text);
			break;
		case 1:
			rg_json_put(j, o, "value", json_integer(facts[i].integer));
			break;
		case 2:
			rg_json_num(j, o, "value", facts[i].real);
			break;
		default:
			rg_json_text(j, o, "value", NULL);
			rg_json_text(j, o, "reason", facts[i].text);
			break;
		}
		rg_json_text(j, o, "unit", facts[i].unit);
		rg_json_text(j, o, "provenance", rg_provenance_name(facts[i].provenance));
		rg_json_text(j, o, "method", facts[i].method);
	}
}

void rg_report_json_ceilings(struct rg_json *j, json_t *to, const char *key,
				 const struct rg_ceiling_row *rows, int n)
{
	json_t *list = rg_json_put(j, to, key, json_array());

	for (int i = 0; i < n; i++) {
		const struct rg_ceiling_row *c = &rows[i];
		json_t *o = rg_json_put(j, list, NULL, json_object());

		rg_json_text(j, o, "kind", c->kind);
		rg_json_text(j, o, "level", c->level);
		rg_json_text(j, o, "dtype", c->dtype);
		rg_json_text(j, o, "isa", c->isa);
		rg_json_int(j, o, "threads", c->threads);
		rg_json_num(j, o, "value", c->value);
		rg_json_num(j, o, "low", c->low);
		rg_json_num(j, o, "high", c->high);
		rg_json_int(j, o, "samples", c->samples);
		rg_json_text(j, o, "unit", c->unit);
		rg_json_text(j, o, "when", c->when);
		rg_json_text(j, o, "method", c->method);
		rg_json_int(j, o, "working_set_bytes", c->working_set_bytes);
		rg_json_text(j, o, "provenance", rg_provenance_name(c->provenance));
	}
}

void rg_report_json_recording(struct rg_json *j, json_t *to, const char *key, const struct rg_run *run)
{
	json_t *o = rg_json_put(j, to, key, json_object());

	rg_json_int(j, o, "run", run->id);
	rg_json_text(j, o, "tag", run->tag && *run->tag ? run->tag : NULL);
	rg_json_text(j, o, "model", run->model);
	rg_json_text(j, o, "model_name", run->model_name);
	rg_json_text(j, o, "model_sha256",
			 run->model_sha256 && *run->model_sha256 ? run->model_sha256 : NULL);
	rg_json_text(j, o, "status", rg_run_status_name(run->status));
	rg_json_text(j, o, "message", run->message && *run->message ? run->message : NULL);
	rg_json_int(j, o, "started_unix_ns", run->started_unix_ns);
	rg_json_int(j, o, "ended_unix_ns", run->ended_unix_ns);
	rg_json_text(j, o, "command", run->command);
	rg_json_text(j, o, "version", run->version);
	rg_json_int(j, o, "threads", run->threads);
	rg_json_int(j, o, "warmup_iterations", run->warmup_iterations);
	rg_json_int(j, o, "iterations", run->iterations);
	rg_json_int(j, o, "duration_ns", run->duration_ns);
	rg_json_int(j, o, "seed", run->seed);
	rg_json_int(j, o, "n_iterations", run->n_iterations);
	rg_json_num(j, o, "p50_ns", run->p50_ns);
}

static void quantile(struct rg_json *j, json_t *o, const char *value, const char *low, const char *high,
			 const struct rg_interval *q)
{
	rg_json_num(j, o, value, q->value);
	rg_json_num(j, o, low, q->low);
	rg_json_num(j, o, high, q->high);
}

static void latency(struct rg_json *j, const struct rg_analysis *a)
{
	json_t *o = rg_json_put(j, j->root, "latency", json_object());
	bool any = a->n_latency > 0;

	quantile(j, o, "p50_ns", "p50_low_ns", "p50_high_ns", &a->p50);
	quantile(j, o, "p90_ns", "p90_low_ns", "p90_high_ns", &a->p90);
	quantile(j, o, "p95_ns", "p95_low_ns", "p95_high_ns", &a->p95);
	quantile(j, o, "p99_ns", "p99_low_ns", "p99_high_ns", &a->p99);
	quantile(j, o, "p999_ns", "p999_low_ns", "p999_high_ns", &a->p999);
	rg_json_num(j, o, "min_ns", any ? a->min_ns : NAN);
	rg_json_num(j, o, "max_ns", any ? a->max_ns : NAN);
	rg_json_num(j, o, "mean_ns", any ? a->mean_ns : NAN);
	rg_json_num(j, o, "stddev_ns", any ? a->stddev_ns : NAN);
	rg_json_int(j, o, "n", a->n_latency);
	rg_json_num(j, o, "confidence", 0.95);
	rg_json_text(j, o, "provenance", any ? "measured" : "unavailable");
}

static void op(struct rg_json *j, json_t *list, const struct rg_op_stat *s)
{
	json_t *o = rg_json_put(j, list, NULL, json_object());

	rg_json_int(j, o, "index", s->step->index);
	rg_json_text(j, o, "name", s->step->name);
	rg_json_text(j, o, "op_type", s->step->op_type);
	rg_json_text(j, o, "kernel", s->step->kernel);
	rg_json_text(j, o, "dtype", s->step->dtype);
	rg_json_shape(j, o, "shape", s->step->shape);
	rg_json_num(j, o, "time_ns", s->time_ns);
	rg_json_num(j, o, "time_low_ns", s->low_ns);
	rg_json_num(j, o, "time_high_ns", s->high_ns);
	rg_json_num(j, o, "share", s->share);
	rg_json_num(j, o, "flops", s->flops);
	rg_json_num(j, o, "bytes", s->bytes);
	rg_json_num(j, o, "intensity", s->intensity);
	rg_json_num(j, o, "flop_per_s", s->flop_rate);
	rg_json_num(j, o, "byte_per_s", s->byte_rate);
	rg_json_text(j, o, "bound", s->bound);
	rg_json_num(j, o, "roof_ns", s->roof_ns);
	rg_json_num(j, o, "headroom", s->headroom);
	rg_json_bool(j, o, "above_roof", s->above_roof);
	rg_json_num(j, o, "imbalance", s->imbalance);
	rg_json_text(j, o, "kernel_reason", s->step->kernel_reason);
}

static void roof(struct rg_json *j, json_t *list, const struct rg_roof *r, const char *unit)
{
	json_t *o = rg_json_put(j, list, NULL, json_object());

	rg_json_text(j, o, "level", r->level);
	rg_json_num(j, o, "value", r->value);
	rg_json_num(j, o, "low", r->low);
	rg_json_num(j, o, "high", r->high);
	rg_json_text(j, o, "unit", unit);
	rg_json_num(j, o, "capacity_bytes", r->capacity_bytes);
	rg_json_text(j, o, "provenance",
			 rg_provenance_name(isfinite(r->value) ? r->provenance : RG_PROV_UNAVAILABLE));
}

static void roofs(struct rg_json *j, const struct rg_analysis *a)
{
	json_t *list = rg_json_put(j, j->root, "roofs", json_array());
	struct rg_roof peak = a->peak;

	peak.level = "peak";
	roof(j, list, &peak, "flop/s");
	if (a->int8_peak.value > 0)
		roof(j, list, &a->int8_peak, "op/s");
	for (int i = 0; i < a->n_roofs; i++)
		roof(j, list, &a->roofs[i], "byte/s");
	rg_json_num(j, j->root, "ridge_intensity", a->ridge_intensity);
}

/* Which provenance the figures of `ops` carry, once for all of them. */
static void ops_provenance(struct rg_json *j)
{
	json_t *o = rg_json_put(j, j->root, "ops_provenance", json_object());

	rg_json_text(j, o, "time_ns", "measured");
	rg_json_text(j, o, "share", "measured");
	rg_json_text(j, o, "flops", "modelled");
	rg_json_text(j, o, "bytes", "modelled");
	rg_json_text(j, o, "intensity", "modelled");
	rg_json_text(j, o, "flop_per_s", "modelled");
	rg_json_text(j, o, "byte_per_s", "modelled");
	rg_json_text(j, o, "bound", "modelled");
	rg_json_text(j, o, "roof_ns", "modelled");
	rg_json_text(j, o, "headroom", "modelled");
}

int rg_report_run_json(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	const struct rg_recording *r = a->rec;
	struct rg_json j;
	json_t *o;
	int shown = 0;
	int *order = rg_report_order(a, st, &shown);

	if (!order)
		return -ENOMEM;
	rg_json_init(&j);
	rg_json_int(&j, j.root, "run", r->run.id);
	rg_report_json_recording(&j, j.root, "recording", &r->run);
	rg_json_int(&j, j.root, "batch", a->batch);
	latency(&j, a);
	rg_json_num(&j, j.root, "throughput_per_s", a->throughput_per_s);
	o = rg_json_put(&j, j.root, "totals", json_object());
	rg_json_num(&j, o, "params", a->params);
	rg_json_num(&j, o, "flops", a->flops);
	rg_json_num(&j, o, "sfu", a->sfu);
	rg_json_num(&j, o, "weight_bytes", a->weight_bytes);
	rg_json_num(&j, o, "peak_bytes", a->peak_bytes);
	rg_json_num(&j, o, "peak_rss_bytes", rg_recording_number(r, "process.peak_rss_bytes"));
	rg_json_int(&j, o, "n_unknown_cost", a->n_unknown_cost);
	o = rg_json_put(&j, j.root, "overhead", json_object());
	quantile(&j, o, "ratio", "low", "high", &a->overhead);
	rg_json_num(&j, o, "span_cost_ns", rg_recording_number(r, "session.span_cost_ns"));
	roofs(&j, a);
	o = rg_json_put(&j, j.root, "ops", json_array());
	for (int i = 0; i < shown; i++)
		op(&j, o, &a->ops[order[i]]);
	ops_provenance(&j);
	rg_json_int(&j, j.root, "n_ops", a->n_ops);
	rg_json_text(&j, j.root, "outputs_sha256", rg_recording_text(r, "outputs.sha256", NULL));
	o = rg_json_put(&j, j.root, "notes", json_array());
	for (int i = 0; i < r->n_notes; i++) {
		json_t *n = rg_json_put(&j, o, NULL, json_object());

		rg_json_text(&j, n, "kind", r->notes[i].kind);
		rg_json_text(&j, n, "subject", r->notes[i].subject);
		rg_json_text(&j, n, "text", r->notes[i].text);
	}
	rg_report_json_facts(&j, j.root, "facts", r->facts, r->n_facts);
	rg_report_json_ceilings(&j, j.root, "ceilings", r->ceilings, r->n_ceilings);
	rg_free(order);
	return rg_json_finish(&j, out);
}
