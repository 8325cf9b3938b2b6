/*
 * ridge bench: single operators, kernel by kernel, against the roof.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmd/ladder.h"
#include "cmd/verbs.h"
#include "models/model.h"
#include "reports/json.h"
#include "reports/report-run.h"
#include "reports/table.h"
#include "session/bench.h"
#include "sys/cpu.h"

static int json(struct rg_str *out, const struct rg_bench_report *r)
{
	struct rg_json j;
	json_t *list, *o, *t;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "threads", r->threads);
	rg_json_bool(&j, j.root, "pinned", r->pinned);
	rg_json_text(&j, j.root, "isa", rg_isa_level_name(r->isa));
	list = rg_json_put(&j, j.root, "results", json_array());
	for (int i = 0; i < r->n_results; i++) {
		const struct rg_bench_result *v = &r->results[i];

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "case", v->c->name);
		rg_json_int(&j, o, "times", v->c->times);
		rg_json_text(&j, o, "op_type", v->op_type);
		rg_json_text(&j, o, "kernel", v->kernel);
		rg_json_bool(&j, o, "chosen", v->chosen);
		t = rg_json_put(&j, o, "time_ns", json_object());
		rg_json_num(&j, t, "median", v->time_ns.value);
		rg_json_num(&j, t, "low", v->time_ns.low);
		rg_json_num(&j, t, "high", v->time_ns.high);
		rg_json_num(&j, t, "best", v->best_ns);
		rg_json_text(&j, t, "provenance", rg_provenance_name(RG_PROV_MEASURED));
		rg_json_int(&j, o, "rounds", v->rounds);
		rg_json_int(&j, o, "calls", v->calls);
		rg_json_num(&j, o, "flops", v->flops);
		rg_json_num(&j, o, "bytes", v->bytes);
		rg_json_num(&j, o, "flop_per_s", v->flop_rate);
		rg_json_num(&j, o, "bytes_per_s", v->byte_rate);
		rg_json_int(&j, o, "prepared_bytes", v->prepared_bytes);
		rg_json_text(&j, o, "bound", v->bound);
		rg_json_num(&j, o, "roof_ns", v->roof_ns);
		rg_json_num(&j, o, "share_of_roof", v->share);
	}
	rg_report_json_ceilings(&j, j.root, "ceilings", r->ceilings, r->n_ceilings);
	return rg_json_finish(&j, out);
}

/* The figures of a row: plain numbers for CSV, else for people. */
static void add_time(struct rg_table *t, double ns, bool plain)
{
	char text[64];

	if (!plain)
		rg_table_add(t, rg_fmt_ns(text, ns));
	else if (isfinite(ns))
		rg_table_addf(t, "%.9g", ns);
	else
		rg_table_add(t, "-");
}

static void add_number(struct rg_table *t, double v, double scale, bool plain)
{
	char text[64];

	if (!plain)
		rg_table_add(t, rg_num3(text, v * scale));
	else if (isfinite(v))
		rg_table_addf(t, "%.9g", v);
	else
		rg_table_add(t, "-");
}

static void ceilings_line(struct rg_str *out, const struct rg_bench_report *r)
{
	char low[64], high[64];

	rg_str_printf(
	    out, "\n%d thread%s%s, %s; measured best of this run (least of its measurements):", r->threads,
	    r->threads == 1 ? "" : "s", r->pinned ? "" : ", not pinned", rg_isa_level_name(r->isa));
	for (int i = 0; i < r->n_ceilings; i++)
		rg_str_printf(out, "%s %s %s (%s) m", i ? "," : "", r->ceilings[i].level,
			      rg_num_unit(high, r->ceilings[i].value, r->ceilings[i].unit),
			      rg_num_unit(low, r->ceilings[i].low, r->ceilings[i].unit));
	rg_str_add(out,
		   "\ntimes and rates m: median of the rounds, 95 % interval; roof ~: from shapes and these "
		   "ceilings; * a plan takes this kernel\n" RG_PROVENANCE_LEGEND "\n");
}

static int table(struct rg_str *out, const struct rg_bench_report *r, const struct rg_style *st)
{
	static const struct rg_column people[] = {
	    {"case", RG_ALIGN_LEFT, 24, 0},       {"kernel", RG_ALIGN_LEFT, 0, 0},
	    {"time", RG_ALIGN_RIGHT, 0, 0},       {"low", RG_ALIGN_RIGHT, 0, 3},
	    {"high", RG_ALIGN_RIGHT, 0, 3},       {"GFLOP/s", RG_ALIGN_RIGHT, 0, 0},
	    {"GB/s", RG_ALIGN_RIGHT, 0, 0},       {"bound", RG_ALIGN_LEFT, 0, 0},
	    {"% of\nroof", RG_ALIGN_RIGHT, 0, 0}, {"best", RG_ALIGN_RIGHT, 0, 6},
	    {"rounds", RG_ALIGN_RIGHT, 0, 4},     {"calls", RG_ALIGN_RIGHT, 0, 5},
	};
	static const struct rg_column csv[] = {
	    {"case"},        {"kernel"}, {"time_ns"},       {"low_ns"},  {"high_ns"}, {"flop_per_s"},
	    {"bytes_per_s"}, {"bound"},  {"share_of_roof"}, {"best_ns"}, {"rounds"},  {"calls"},
	};
	bool plain = st->format == RG_FORMAT_CSV;
	struct rg_table t;
	int rc;

	rg_table_init(&t, plain ? csv : people, sizeof(people) / sizeof(people[0]));
	for (int i = 0; i < r->n_results; i++) {
		const struct rg_bench_result *v = &r->results[i];

		rg_table_add(&t, v->c->name);
		rg_table_addf(&t, "%s%s", v->kernel, v->chosen && !plain ? " *" : "");
		add_time(&t, v->time_ns.value, plain);
		add_time(&t, v->time_ns.low, plain);
		add_time(&t, v->time_ns.high, plain);
		add_number(&t, v->flop_rate, 1e-9, plain);
		add_number(&t, v->byte_rate, 1e-9, plain);
		rg_table_add(&t, v->bound ? v->bound : "-");
		add_number(&t, v->share, 100, plain);
		add_time(&t, v->best_ns, plain);
		rg_table_addf(&t, "%d", v->rounds);
		rg_table_addf(&t, "%" PRId64, v->calls);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (rc == 0 && !plain)
		ceilings_line(out, r);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* Shapes and models of the command line; neither: the default ones. */
static int make_set(struct rg_args *a, enum rg_bench_kind kind, struct rg_bench_set *s, struct rg_error *err)
{
	int rc = 0, left_out;

	if (a->n_positional == 1 && !a->n_bare_shapes)
		return rg_bench_add_default(s, kind, err);
	for (int i = 0; i < a->n_bare_shapes && !rc; i++)
		rc = rg_bench_add(s, kind, a->bare_shapes[i], err);
	for (int i = 1; i < a->n_positional && !rc; i++) {
		if (!rg_model_looks_like(a->positional[i])) {
			rc = rg_bench_add(s, kind, a->positional[i], err);
			continue;
		}
		a->session.model = a->positional[i];
		rc = rg_bench_add_model(s, kind, &a->session, &left_out, err);
		if (!rc && left_out) {
			char text[160];

			snprintf(text, sizeof(text),
				 "%.80s: %d nodes are left out: no shape says what they are",
				 a->positional[i], left_out);
			rg_cmd_warn(a, text);
		}
	}
	if (!rc && s->n == 0) {
		rg_error_set(err, -ENOENT, "there is nothing to measure in it");
		rc = rg_error_at(err, "%s", a->positional[a->n_positional - 1]);
	}
	return rc;
}

/* Options that only the ladder has. */
static int refuse_ladders(const struct rg_args *a, struct rg_error *err)
{
	const char *option = a->n_rungs ? "rung" : a->weights ? "weights" : a->misses ? "misses" :
			     a->output ? "output" : a->width ? "size" : NULL;

	if (!option)
		return 0;
	rg_error_set(err, RG_EUSAGE, "ridge bench %s takes no --%s", a->positional[0], option);
	return rg_error_hint(err, "ridge bench ladder does");
}

static int bench(struct rg_args *a, struct rg_error *err)
{
	struct rg_bench_options o = { .session = &a->session, .rounds = a->rounds, .quick = a->quick };
	struct rg_style st = rg_cmd_style(a);
	struct rg_bench_report *r = NULL;
	struct rg_bench_set set = { 0 };
	struct rg_str out = { 0 };
	enum rg_bench_kind kind;
	int rc = rg_bench_kind_parse(a->positional[0], &kind, err);

	if (!rc)
		rc = refuse_ladders(a, err);
	a->session.progress = rg_cmd_progress;
	a->session.progress_ctx = a;
	rg_cmd_catch_interrupt();
	if (!rc)
		rc = make_set(a, kind, &set, err);
	if (!rc)
		rc = rg_bench_measure(&set, &o, &r, err);
	rg_cmd_progress_end(a);
	if (!rc) {
		if (a->format == RG_FORMAT_JSON ? json(&out, r) : table(&out, r, &st))
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_bench_report_free(r);
	rg_bench_set_free(&set);
	return rg_cmd_exit_code(err);
}

int rg_cmd_bench(struct rg_args *a, struct rg_error *err)
{
	return strcmp(a->positional[0], "ladder") == 0 ? rg_cmd_ladder(a, err) : bench(a, err);
}
