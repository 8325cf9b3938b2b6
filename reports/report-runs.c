/*
 * The list of runs, and the ceilings of a machine.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/report-run.h"
#include "reports/table.h"

static int runs_json(struct rg_str *out, const struct rg_run *runs, int n)
{
	struct rg_json j;
	json_t *list;

	rg_json_init(&j);
	list = rg_json_put(&j, j.root, "runs", json_array());
	for (int i = 0; i < n; i++)
		rg_report_json_recording(&j, list, NULL, &runs[i]);
	return rg_json_finish(&j, out);
}

static int runs_csv(struct rg_str *out, const struct rg_run *runs, int n, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "run" }, { "tag" }, { "model" }, { "model_name" }, { "status" }, { "started_unix_ns" },
		{ "threads" }, { "n_iterations" }, { "p50_ns" },
	};
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		rg_table_addf(&t, "%" PRId64, runs[i].id);
		rg_table_add(&t, runs[i].tag);
		rg_table_add(&t, runs[i].model);
		rg_table_add(&t, runs[i].model_name);
		rg_table_add(&t, rg_run_status_name(runs[i].status));
		rg_table_addf(&t, "%" PRId64, runs[i].started_unix_ns);
		rg_table_addf(&t, "%d", runs[i].threads);
		rg_table_addf(&t, "%" PRId64, runs[i].n_iterations);
		rg_table_addf(&t, isfinite(runs[i].p50_ns) ? "%.15g" : "-", runs[i].p50_ns);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

int rg_report_runs(struct rg_str *out, const struct rg_run *runs, int n, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "run", RG_ALIGN_RIGHT, 0, 0 },
		{ "model", RG_ALIGN_LEFT, 14, 0 },
		{ "tag", RG_ALIGN_LEFT, 6, 2 },
		{ "started (UTC)", RG_ALIGN_LEFT, 0, 3 },
		{ "threads", RG_ALIGN_RIGHT, 0, 4 },
		{ "n", RG_ALIGN_RIGHT, 0, 0 },
		{ "median", RG_ALIGN_RIGHT, 0, 0 },
		{ "status", RG_ALIGN_LEFT, 0, 0 },
	};
	struct rg_table t;
	char text[64];
	int rc;

	if (st->format == RG_FORMAT_JSON)
		return runs_json(out, runs, n);
	if (st->format == RG_FORMAT_CSV)
		return runs_csv(out, runs, n, st);
	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		rg_table_addf(&t, "%" PRId64, runs[i].id);
		rg_table_add(&t,
				 runs[i].model_name && *runs[i].model_name ? runs[i].model_name : runs[i].model);
		rg_table_add(&t, runs[i].tag && *runs[i].tag ? runs[i].tag : "-");
		rg_report_date(text, runs[i].started_unix_ns, "%Y-%m-%d %H:%M:%S");
		rg_table_add(&t, text);
		rg_table_addf(&t, "%d", runs[i].threads);
		rg_table_addf(&t, "%" PRId64, runs[i].n_iterations);
		rg_table_add(&t, rg_fmt_ns(text, runs[i].p50_ns));
		rg_table_add(&t, rg_run_status_name(runs[i].status));
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static void fact_text(struct rg_table *t, const struct rg_fact *f)
{
	char num[64];

	if (f->kind == 0)
		rg_table_add(t, f->text);
	else if (f->kind == 1)
		rg_table_add(t, rg_num_unit(num, (double)f->integer, f->unit ? f->unit : ""));
	else if (f->kind == 2)
		rg_table_add(t, rg_num_unit(num, f->real, f->unit ? f->unit : ""));
	else
		rg_table_addf(t, "- (%s)", f->text ? f->text : "unknown");
}

static int facts_table(struct rg_str *out, const struct rg_fact *facts, int n, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "fact", RG_ALIGN_LEFT, 0, 0 },
		{ "value", RG_ALIGN_LEFT, 16, 0 },
		{ "from", RG_ALIGN_LEFT, 0, 0 },
	};
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		rg_table_add(&t, facts[i].key);
		fact_text(&t, &facts[i]);
		rg_table_add(&t, rg_provenance_name(facts[i].provenance));
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	rg_str_add(out, "\n");
	return rc;
}

static int ceilings_table(struct rg_str *out, const struct rg_ceiling_row *rows, int n,
			  const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "roof", RG_ALIGN_LEFT, 0, 0 },
		{ "value", RG_ALIGN_RIGHT, 0, 0 },
		{ "low", RG_ALIGN_RIGHT, 0, 4 },
		{ "high", RG_ALIGN_RIGHT, 0, 4 },
		{ "type", RG_ALIGN_LEFT, 0, 6 },
		{ "ISA", RG_ALIGN_LEFT, 0, 6 },
		{ "threads", RG_ALIGN_RIGHT, 0, 0 },
		{ "working set", RG_ALIGN_RIGHT, 0, 5 },
		{ "n", RG_ALIGN_RIGHT, 0, 7 },
		{ "from", RG_ALIGN_LEFT, 0, 0 },
		{ "method", RG_ALIGN_LEFT, 16, 8 },
	};
	struct rg_table t;
	char text[64];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		const char *unit = rows[i].unit ? rows[i].unit : "";

		rg_table_add(&t, rows[i].level);
		rg_table_add(&t, rg_num_unit(text, rows[i].value, unit));
		rg_table_add(&t, rg_num_unit(text, rows[i].low, unit));
		rg_table_add(&t, rg_num_unit(text, rows[i].high, unit));
		rg_table_add(&t, rows[i].dtype);
		rg_table_add(&t, rows[i].isa);
		rg_table_addf(&t, "%d", rows[i].threads);
		rg_table_add(&t, rg_fmt_bytes(text, rows[i].working_set_bytes < 0 ? NAN
								: (double)rows[i].working_set_bytes));
		rg_table_addf(&t, "%d", rows[i].samples);
		rg_table_add(&t, rg_provenance_name(rows[i].provenance));
		rg_table_add(&t, rows[i].method);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static int ceilings_csv(struct rg_str *out, const struct rg_ceiling_row *rows, int n,
			const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{"kind"},   {"level"}, {"dtype"}, {"isa"},     {"threads"},           {"value"},
		{"low"},    {"high"},  {"unit"},  {"samples"}, {"working_set_bytes"}, {"provenance"},
		{"method"},
	};
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		const double v[] = { rows[i].value, rows[i].low, rows[i].high };

		rg_table_add(&t, rows[i].kind);
		rg_table_add(&t, rows[i].level);
		rg_table_add(&t, rows[i].dtype);
		rg_table_add(&t, rows[i].isa);
		rg_table_addf(&t, "%d", rows[i].threads);
		for (int k = 0; k < 3; k++)
			rg_table_addf(&t, isfinite(v[k]) ? "%.15g" : "-", v[k]);
		rg_table_add(&t, rows[i].unit);
		rg_table_addf(&t, "%d", rows[i].samples);
		if (rows[i].working_set_bytes >= 0)
			rg_table_addf(&t, "%" PRId64, rows[i].working_set_bytes);
		else
			rg_table_add(&t, "-");
		rg_table_add(&t, rg_provenance_name(rows[i].provenance));
		rg_table_add(&t, rows[i].method);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* The intensity at which the last level's diagonal meets the peak, both with
 * the largest number of threads that was measured. */
static double ridge(const struct rg_ceiling_row *rows, int n)
{
	double peak = NAN, dram = NAN;
	int threads = 0;

	for (int i = 0; i < n; i++)
		threads = rows[i].threads > threads ? rows[i].threads : threads;
	for (int i = 0; i < n; i++) {
		if (rows[i].threads != threads)
			continue;
		if (strcmp(rows[i].kind, "compute") == 0 && strcmp(rows[i].dtype, "float32") == 0 &&
		    !(rows[i].value <= peak))
			peak = rows[i].value;
		else if (strcmp(rows[i].level, "DRAM") == 0 && !(rows[i].value <= dram))
			dram = rows[i].value;
	}
	return peak / dram;
}

int rg_report_ceilings(struct rg_str *out, const struct rg_fact *machine, int n_facts,
			   const struct rg_ceiling_row *rows, int n, const struct rg_style *st)
{
	char num[64];
	int rc;

	if (st->format == RG_FORMAT_JSON) {
		struct rg_json j;

		rg_json_init(&j);
		rg_report_json_facts(&j, j.root, "facts", machine, n_facts);
		rg_report_json_ceilings(&j, j.root, "ceilings", rows, n);
		rg_json_num(&j, j.root, "ridge_intensity", ridge(rows, n));
		return rg_json_finish(&j, out);
	}
	if (st->format == RG_FORMAT_CSV)
		return ceilings_csv(out, rows, n, st);
	rc = n_facts > 0 ? facts_table(out, machine, n_facts, st) : 0;
	if (rc == 0)
		rc = ceilings_table(out, rows, n, st);
	if (rc == 0 && isfinite(ridge(rows, n)))
		rg_str_printf(out, "\nridge point: %s FLOP/byte (peak over DRAM bandwidth)\n",
				  rg_num3(num, ridge(rows, n)));
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
