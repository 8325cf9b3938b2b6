/*
 * The report of one run for people: a header block (model, machine,
 * configuration, latency, totals, overhead, roofs), then the operators by time.
 * docs/report.md explains every line and column.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "reports/report-run.h"
#include "reports/table.h"

#define INDENT 12

bool rg_format_parse(const char *name, enum rg_format *out)
{
	static const char *const names[] = {
		[RG_FORMAT_TABLE] = "table", [RG_FORMAT_JSON] = "json",
		[RG_FORMAT_CSV] = "csv", [RG_FORMAT_MD] = "md",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum rg_format)i;
			return true;
		}
	}
	return false;
}

void rg_report_date(char out[32], int64_t unix_ns, const char *format)
{
	time_t t = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	if (unix_ns < 0 || !gmtime_r(&t, &tm) || strftime(out, 32, format, &tm) == 0)
		strcpy(out, "-");
}

/* A line of the header block, built by appending to `s`, printed, and emptied. */
static void flush(struct rg_str *out, const struct rg_style *st, const char *key, struct rg_str *s)
{
	if (s->failed)
		out->failed = true;
	if (s->len)
		rg_text_paragraph(out, st, key, INDENT, rg_str_text(s));
	rg_str_free(s);
}

static void sep(struct rg_str *s)
{
	if (s->len)
		rg_str_add(s, ", ");
}

void rg_report_model_line(struct rg_str *s, const struct rg_recording *r)
{
	char date[32];

	rg_str_add(s, r->run.model_name && *r->run.model_name ? r->run.model_name : "(no name)");
	if (r->run.model && r->run.model_name && strcmp(r->run.model, r->run.model_name) != 0)
		rg_str_printf(s, " (%s)", r->run.model);
	rg_report_date(date, r->run.started_unix_ns, "%Y-%m-%d %H:%M:%S UTC");
	if (!rg_report_is_static(r))
		rg_str_printf(s, ", run %" PRId64, r->run.id);
	if (r->run.tag && *r->run.tag)
		rg_str_printf(s, " tagged %s", r->run.tag);
	rg_str_printf(s, ", %s, %s", date, rg_run_status_name(r->run.status));
	if (r->run.message && *r->run.message)
		rg_str_printf(s, ": %s", r->run.message);
}

static void machine_line(struct rg_str *s, const struct rg_recording *r)
{
	char num[64];
	double cores = rg_recording_number(r, "machine.cores");
	double memory = rg_recording_number(r, "machine.memory_bytes");
	const char *v;

	rg_str_add(s, rg_recording_text(r, "machine.cpu", ""));
	if (isfinite(cores)) {
		sep(s);
		rg_str_printf(s, "%.0f cores", cores);
	}
	v = rg_recording_text(r, "session.isa", rg_recording_text(r, "machine.isa", ""));
	if (*v) {
		sep(s);
		rg_str_add(s, v);
	}
	if (isfinite(memory)) {
		sep(s);
		rg_str_printf(s, "%s memory", rg_fmt_bytes(num, memory));
	}
	v = rg_recording_text(r, "machine.kernel", "");
	if (*v) {
		sep(s);
		rg_str_printf(s, "Linux %s", v);
	}
	v = rg_recording_text(r, "machine.governor", "");
	if (*v) {
		sep(s);
		rg_str_printf(s, "governor %s", v);
	}
	if (strcmp(rg_recording_text(r, "machine.hypervisor", "no"), "yes") == 0) {
		sep(s);
		rg_str_add(s, "under a hypervisor");
	}
	if (!s->len)
		rg_str_add(s, "- (this run has no facts about its machine)");
}

static void config_line(struct rg_str *s, const struct rg_analysis *a)
{
	const struct rg_run *run = &a->rec->run;
	char num[64];
	int warm = 0;

	rg_str_printf(s, "%d thread%s", run->threads, run->threads == 1 ? "" : "s");
	if (a->batch >= 0)
		rg_str_printf(s, ", batch %" PRId64, a->batch);
	for (int i = 0; i < a->rec->n_iterations; i++)
		warm += strcmp(a->rec->iterations[i].pass, "warmup") == 0;
	if (rg_report_is_static(a->rec))
		rg_str_add(s, ", static");
	else if (run->warmup_iterations < 0)
		rg_str_printf(s, ", warm-up until steady (%d)", warm);
	else
		rg_str_printf(s, ", warm-up %d", warm);
	if (run->duration_ns >= 0)
		rg_str_printf(s, ", for %s", rg_fmt_ns(num, (double)run->duration_ns));
	else if (run->iterations >= 0)
		rg_str_printf(s, ", %" PRId64 " iterations asked for", run->iterations);
	if (run->seed >= 0)
		rg_str_printf(s, ", seed %" PRId64, run->seed);
	if (run->version && *run->version)
		rg_str_printf(s, ", ridge %s", run->version);
}

/* "P95 22.14 ms m [22.08, 22.23]": the interval in the unit of the value, with
 * four digits, since a confidence interval is often narrower than three. */
static void interval(struct rg_str *s, const char *name, const struct rg_interval *q)
{
	static const struct { double ns; const char *unit; } units[] = {
		{ 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" },
	};
	double v = fabs(q->value), scale;
	int u = 0, digits;

	sep(s);
	if (!isfinite(q->value)) {
		rg_str_printf(s, "%s -", name);
		return;
	}
	while (u < 3 && v < units[u].ns)
		u++;
	scale = units[u].ns;
	digits = v / scale >= 1000 ? 0 : v / scale >= 100 ? 1 : v / scale >= 10 ? 2 : 3;
	rg_str_printf(s, "%s %.*f %s m", name, digits, q->value / scale, units[u].unit);
	if (isfinite(q->low) && isfinite(q->high))
		rg_str_printf(s, " [%.*f, %.*f]", digits, q->low / scale, digits, q->high / scale);
	else if (isfinite(q->low))
		rg_str_printf(s, " [%.*f, ?]", digits, q->low / scale);
}

static void latency_line(struct rg_str *s, const struct rg_analysis *a)
{
	char num[64];

	if (a->n_latency == 0) {
		rg_str_add(s, "- (no timed iteration without the hook was recorded)");
		return;
	}
	interval(s, "median", &a->p50);
	interval(s, "P95", &a->p95);
	interval(s, "P99", &a->p99);
	rg_str_printf(s, ", n %d ([ ]: 95 %% confidence)", a->n_latency);
	if (isfinite(a->throughput_per_s))
		rg_str_printf(s, "; %s inferences/s", rg_num3(num, a->throughput_per_s));
}

static void totals_line(struct rg_str *s, const struct rg_analysis *a)
{
	double rss = rg_recording_number(a->rec, "process.peak_rss_bytes");
	char num[64];

	if (isfinite(a->params))
		rg_str_printf(s, "%s parameters ~", rg_fmt_count(num, (int64_t)a->params));
	else
		rg_str_add(s, "- parameters");
	rg_str_printf(s, ", %s%s", isfinite(a->flops) ? rg_num_si(num, a->flops, "FLOP") : "- FLOP",
			  isfinite(a->flops) ? " ~" : "");
	if (a->n_unknown_cost > 0)
		rg_str_printf(s, " (without %d operators of unknown cost)", a->n_unknown_cost);
	rg_str_printf(s, ", weights %s%s", rg_fmt_bytes(num, a->weight_bytes),
			  isfinite(a->weight_bytes) ? " ~" : "");
	rg_str_printf(s, ", peak memory %s%s", rg_fmt_bytes(num, a->peak_bytes),
			  isfinite(a->peak_bytes) ? " ~ (planned)" : "");
	if (isfinite(rss))
		rg_str_printf(s, ", resident at most %s m", rg_fmt_bytes(num, rss));
}

static void overhead_line(struct rg_str *s, const struct rg_analysis *a)
{
	double cost = rg_recording_number(a->rec, "session.span_cost_ns");
	char num[64], each[64], all[64];
	double spans = 0, share;

	if (!isfinite(a->overhead.value)) {
		rg_str_add(s, "- (no pairs of iterations with and without the hook)");
	} else {
		rg_str_printf(s, "on/off %.4f m", a->overhead.value);
		if (isfinite(a->overhead.low) && isfinite(a->overhead.high))
			rg_str_printf(s, " [%.4f, %.4f]", a->overhead.low, a->overhead.high);
	}
	if (!isfinite(cost) || a->rec->n_spans <= 0)
		return;
	for (int i = 0; i < a->rec->n_iterations; i++)
		spans += a->rec->iterations[i].hook_on;
	if (spans <= 0)
		return;
	spans = (double)a->rec->n_spans / spans;
	share = spans * cost / a->p50.value;
	rg_str_printf(s, "; %.0f spans x %s = %s an inference", spans, rg_fmt_ns(each, cost),
			  rg_fmt_ns(all, spans * cost));
	if (isfinite(share))
		rg_str_printf(s, " (%s %%) ~", rg_num3(num, share * 100));
}

static void roofs_line(struct rg_str *s, const struct rg_analysis *a)
{
	char num[64];

	if (isfinite(a->peak.value))
		rg_str_printf(s, "peak %s %s", rg_num_si(num, a->peak.value, "FLOP/s"),
				  rg_provenance_mark(a->peak.provenance));
	if (a->int8_peak.value > 0) {
		sep(s);
		rg_str_printf(s, "%s %s %s", a->int8_peak.level, rg_num_si(num, a->int8_peak.value, "OP/s"),
			      rg_provenance_mark(a->int8_peak.provenance));
	}
	for (int i = 0; i < a->n_roofs; i++) {
		if (!isfinite(a->roofs[i].value))
			continue;
		sep(s);
		rg_str_printf(s, "%s %s %s", a->roofs[i].level, rg_num_si(num, a->roofs[i].value, "B/s"),
				  rg_provenance_mark(a->roofs[i].provenance));
	}
	if (isfinite(a->ridge_intensity))
		rg_str_printf(s, "; ridge point (DRAM) at %s FLOP/byte", rg_num3(num, a->ridge_intensity));
	if (!s->len)
		rg_str_add(s, "- (not measured in this run)");
}

static void header(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	struct rg_str s = { 0 };
	const struct rg_recording *r = a->rec;

	rg_report_model_line(&s, r);
	flush(out, st, "model", &s);
	machine_line(&s, r);
	flush(out, st, "machine", &s);
	config_line(&s, a);
	flush(out, st, "config", &s);
	if (rg_report_is_static(r))
		rg_report_static_latency(&s, a);
	else
		latency_line(&s, a);
	flush(out, st, "latency", &s);
	totals_line(&s, a);
	flush(out, st, "totals", &s);
	if (rg_report_is_static(r))
		rg_report_static_memory(&s, a);
	else
		overhead_line(&s, a);
	flush(out, st, rg_report_is_static(r) ? "memory" : "overhead", &s);
	roofs_line(&s, a);
	flush(out, st, "roofs", &s);
	rg_str_add(&s, rg_recording_text(r, "outputs.sha256", ""));
	if (s.len)
		rg_str_add(&s, " (SHA-256)");
	flush(out, st, "outputs", &s);
	if (r->run.threads > rg_recording_number(r, "machine.cores"))
		rg_str_printf(&s, "%d threads on %.0f cores: lanes wait for each other", r->run.threads,
			      rg_recording_number(r, "machine.cores"));
	flush(out, st, "warning", &s);
	if (strcmp(rg_recording_text(r, "session.steady", "yes"), "no") == 0)
		rg_str_add(
			&s,
			"the warm-up ended before times were steady: another load, a clock that changes, or too "
			"few iterations (--warmup N)");
	flush(out, st, "warning", &s);
	if (strcmp(rg_recording_text(r, "outputs.stable", "yes"), "no") == 0)
		rg_str_add(&s, "the last inference gave other output bytes than the first");
	flush(out, st, "warning", &s);
	if (rg_recording_number(r, "session.spans_dropped") > 0)
		rg_str_printf(&s, "%.0f spans found no room and are missing from the times of operators",
				  rg_recording_number(r, "session.spans_dropped"));
	flush(out, st, "warning", &s);
	for (int i = 0; i < r->n_notes; i++) {
		if (strcmp(r->notes[i].kind, "warning") != 0)
			continue;
		if (r->notes[i].subject && *r->notes[i].subject)
			rg_str_printf(&s, "%s: ", r->notes[i].subject);
		rg_str_add(&s, r->notes[i].text);
		flush(out, st, "warning", &s);
	}
	rg_str_add(out, "\n");
}

/* Longest first; the caller frees. NULL: out of memory. */
int *rg_report_order(const struct rg_analysis *a, const struct rg_style *st, int *shown)
{
	int *order = rg_calloc((size_t)(a->n_ops > 0 ? a->n_ops : 1), sizeof(*order));

	if (!order)
		return NULL;
	if (a->n_ops > 0)
		rg_analysis_by_time(a, order);
	*shown = st->top > 0 && st->top < a->n_ops ? st->top : a->n_ops;
	return order;
}

static const struct rg_column op_columns[] = {
	{ "name", RG_ALIGN_LEFT, 12, 0 },
	{ "type", RG_ALIGN_LEFT, 6, 0 },
	{ "kernel", RG_ALIGN_LEFT, 6, 2 },
	{ "shape", RG_ALIGN_LEFT, 10, 1 },
	{ "time\nms", RG_ALIGN_RIGHT, 0, 0 },
	{ "share\n%", RG_ALIGN_RIGHT, 0, 0 },
	{ "GFLOP\n/s", RG_ALIGN_RIGHT, 0, 0 },
	{ "GB\n/s", RG_ALIGN_RIGHT, 0, 0 },
	{ "FLOP\n/byte", RG_ALIGN_RIGHT, 0, 0 },
	{ "bound", RG_ALIGN_LEFT, 0, 0 },
	{ "head-\nroom", RG_ALIGN_RIGHT, 0, 0 },
};

static void op_row(struct rg_table *t, const struct rg_op_stat *op)
{
	char num[64];

	rg_table_add(t, op->step->name);
	rg_table_add(t, op->step->op_type);
	rg_table_add(t, op->step->kernel);
	rg_table_add(t, op->step->shape);
	if (isfinite(op->time_ns))
		rg_table_addf(t, "%.3f", op->time_ns / 1e6);
	else
		rg_table_add(t, "-");
	rg_table_add(t, rg_num_percent(num, op->share));
	rg_table_add(t, rg_num3(num, op->flop_rate / 1e9));
	rg_table_add(t, rg_num3(num, op->byte_rate / 1e9));
	rg_table_add(t, rg_num3(num, op->intensity));
	rg_table_add(t, op->bound ? op->bound : "-");
	rg_table_addf(t, "%s%s", rg_num_times(num, op->headroom), op->above_roof ? "!" : "");
}

static int operators(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	struct rg_table t;
	int shown, above = 0, rc;
	int *order = rg_report_order(a, st, &shown);
	double rest = 0;
	char num[64];

	if (!order)
		return -ENOMEM;
	rg_table_init(&t, op_columns, sizeof(op_columns) / sizeof(op_columns[0]));
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[order[i]];

		if (i < shown) {
			op_row(&t, op);
			above += op->above_roof;
		} else if (isfinite(op->share)) {
			rest += op->share;
		}
	}
	rg_free(order);
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (rc != 0)
		return rc;
	if (a->n_ops == 0)
		rg_str_add(out, "(no operators were recorded)\n");
	if (shown < a->n_ops)
		rg_str_printf(out, "%s(%d more operators, %s %% of the time)\n",
				  st->format == RG_FORMAT_MD ? "\n" : "", a->n_ops - shown,
				  rg_num_percent(num, rest));
	rg_str_add(out, "\n");
	if (above)
		rg_text_paragraph(
			out, st, "!", 2,
			"faster than its roof by more than the uncertainty of both: shown as measured; the "
			"compulsory bytes or the roof do not describe this operator (data was already in a "
			"nearer cache, or the kernel does less work than counted).");
	rg_text_paragraph(
		out, st, "marks", 6,
		RG_PROVENANCE_LEGEND
		". time and share m; rates, FLOP/byte, bound and headroom ~ (work counted from shapes, over "
		"measured time and roofs). headroom: time over roof.");
	return out->failed ? -ENOMEM : 0;
}

/* The operators as raw numbers, one row each, for spreadsheets. */
static int operators_csv(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{"index"}, {"name"},    {"op_type"},     {"kernel"},       {"dtype"},
		{"shape"}, {"time_ns"}, {"time_low_ns"}, {"time_high_ns"}, {"share"},
		{"flops"}, {"bytes"},   {"flop_per_s"},  {"byte_per_s"},   {"intensity"},
		{"bound"}, {"roof_ns"}, {"headroom"},    {"above_roof"},
	};
	struct rg_table t;
	int shown, rc;
	int *order = rg_report_order(a, st, &shown);

	if (!order)
		return -ENOMEM;
	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < shown; i++) {
		const struct rg_op_stat *op = &a->ops[order[i]];
		const double before[] = {op->time_ns, op->low_ns,    op->high_ns,   op->share,    op->flops,
					 op->bytes,   op->flop_rate, op->byte_rate, op->intensity};
		const double after[] = { op->roof_ns, op->headroom };

		rg_table_addf(&t, "%d", op->step->index);
		rg_table_add(&t, op->step->name);
		rg_table_add(&t, op->step->op_type);
		rg_table_add(&t, op->step->kernel);
		rg_table_add(&t, op->step->dtype);
		rg_table_add(&t, op->step->shape);
		for (size_t k = 0; k < sizeof(before) / sizeof(before[0]); k++)
			rg_table_addf(&t, isfinite(before[k]) ? "%.15g" : "-", before[k]);
		rg_table_add(&t, op->bound);
		for (size_t k = 0; k < sizeof(after) / sizeof(after[0]); k++)
			rg_table_addf(&t, isfinite(after[k]) ? "%.15g" : "-", after[k]);
		rg_table_add(&t, op->above_roof ? "1" : "0");
	}
	rg_free(order);
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

int rg_report_run(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	int rc;

	switch (st->format) {
	case RG_FORMAT_JSON:
		return rg_report_run_json(out, a, st);
	case RG_FORMAT_CSV:
		return operators_csv(out, a, st);
	case RG_FORMAT_TABLE:
	case RG_FORMAT_MD:
		break;
	}
	header(out, a, st);
	rc = rg_report_is_static(a->rec) ? rg_report_static_operators(out, a, st) : operators(out, a, st);
	return rc || !st->why ? rc : rg_report_why(out, a, st);
}
