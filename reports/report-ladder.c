/* The ladder as a table with its sentences, as JSON, and as CSV. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reports/json.h"
#include "reports/ladder.h"
#include "reports/report-run.h"
#include "reports/table.h"

static void shape_text(char out[64], const struct rg_ladder_row *r)
{
	snprintf(out, 64, "%" PRId64 "x%" PRId64 "x%" PRId64, r->m, r->k, r->n);
}

/* ---- JSON ---- */

static int json(struct rg_str *out, const struct rg_ladder_report *r)
{
	struct rg_json j;
	struct rg_str text = { 0 };
	json_t *list, *o;
	char shape[64];
	int rc;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "threads", r->threads);
	rg_json_bool(&j, j.root, "pinned", r->pinned);
	rg_json_text(&j, j.root, "isa", r->isa);
	rg_json_text(&j, j.root, "weights", r->weights);
	rg_json_text(&j, j.root, "simulator", *r->simulator ? r->simulator : NULL);
	list = rg_json_put(&j, j.root, "results", json_array());
	for (int i = 0; i < r->n_rows; i++) {
		const struct rg_ladder_row *v = &r->rows[i];
		bool ran = v->rounds > 0, counted = v->misses_provenance != RG_PROV_UNAVAILABLE;

		o = rg_json_put(&j, list, NULL, json_object());
		shape_text(shape, v);
		rg_json_text(&j, o, "shape", shape);
		rg_json_text(&j, o, "rung", v->rung);
		rg_json_text(&j, o, "dtype", v->int8 ? "int8" : "float32");
		rg_json_text(&j, o, "kernel", ran ? v->kernel : NULL);
		rg_json_int(&j, o, "threads", v->threads);
		rg_json_num(&j, o, "gops", v->gops);
		rg_json_num(&j, o, "ns", v->ns);
		rg_json_num(&j, o, "ns_low", v->ns_low);
		rg_json_num(&j, o, "ns_high", v->ns_high);
		rg_json_int(&j, o, "rounds", v->rounds);
		rg_json_int(&j, o, "calls", ran ? v->calls : -1);
		rg_json_text(&j, o, "roof", v->roof);
		rg_json_num(&j, o, "roof_fraction", v->roof_fraction);
		rg_json_num(&j, o, "memory_ns", v->memory_ns);
		rg_json_num(&j, o, "max_error", v->max_error);
		rg_json_num(&j, o, "relative_error", v->relative_error);
		rg_json_int(&j, o, "wrong", v->wrong);
		rg_json_num(&j, o, "pairs_share", v->int8 ? v->pairs_share : NAN);
		rg_json_num(&j, o, "quads_share", v->int8 ? v->quads_share : NAN);
		rg_json_num(&j, o, "l1_misses", v->l1_misses);
		rg_json_num(&j, o, "ll_misses", v->ll_misses);
		rg_json_text(&j, o, "provenance", rg_provenance_name(ran ? RG_PROV_MEASURED : RG_PROV_UNAVAILABLE));
		rg_json_text(&j, o, "reason", ran ? NULL : v->reason);
		rg_json_text(&j, o, "misses_provenance", rg_provenance_name(v->misses_provenance));
		rg_json_text(&j, o, "misses_reason", counted ? NULL : v->misses_reason);
	}
	rg_ladder_say(&text, r->rows, r->n_rows);
	list = rg_json_put(&j, j.root, "text", json_array());
	for (char *p = text.text, *end; p && (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		rg_json_put(&j, list, NULL, json_string(p));
	}
	rg_report_json_ceilings(&j, j.root, "ceilings", r->ceilings, r->n_ceilings);
	rc = text.failed ? -ENOMEM : 0;
	rg_str_free(&text);
	return rg_json_finish(&j, out) ? -ENOMEM : rc;
}

/* ---- CSV ---- */

static void add_number(struct rg_table *t, double v)
{
	if (isfinite(v))
		rg_table_addf(t, "%.9g", v);
	else
		rg_table_add(t, "-");
}

static int csv(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "shape" }, { "rung" }, { "dtype" }, { "kernel" }, { "threads" }, { "gops" }, { "ns" }, { "ns_low" },
		{ "ns_high" }, { "rounds" }, { "roof" }, { "roof_fraction" }, { "max_error" }, { "relative_error" },
		{ "wrong" }, { "l1_misses" }, { "ll_misses" }, { "misses_provenance" },
	};
	struct rg_table t;
	char shape[64];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < r->n_rows; i++) {
		const struct rg_ladder_row *v = &r->rows[i];
		const double a[] = { v->gops, v->ns, v->ns_low, v->ns_high };

		shape_text(shape, v);
		rg_table_add(&t, shape);
		rg_table_add(&t, v->rung);
		rg_table_add(&t, v->int8 ? "int8" : "float32");
		rg_table_add(&t, v->rounds ? v->kernel : "-");
		rg_table_addf(&t, "%d", v->threads);
		for (int k = 0; k < 4; k++)
			add_number(&t, a[k]);
		rg_table_addf(&t, "%d", v->rounds);
		rg_table_add(&t, v->roof ? v->roof : "-");
		add_number(&t, v->roof_fraction);
		add_number(&t, v->max_error);
		add_number(&t, v->relative_error);
		add_number(&t, v->wrong >= 0 ? (double)v->wrong : NAN);
		add_number(&t, v->l1_misses);
		add_number(&t, v->ll_misses);
		rg_table_add(&t, rg_provenance_name(v->misses_provenance));
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* ---- table ---- */

static void add_error(struct rg_table *t, const struct rg_ladder_row *v)
{
	char num[32];

	if (v->rounds == 0)
		rg_table_add(t, "-");
	else if (!v->int8)
		rg_table_addf(t, "%.1e", v->max_error);
	else if (v->wrong == 0)
		rg_table_add(t, "exact");
	else
		rg_table_addf(t, "%s wrong", rg_fmt_count(num, v->wrong));
}

static int rows_table(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "shape", RG_ALIGN_LEFT, 0, 0 },     { "rung", RG_ALIGN_LEFT, 0, 0 },
		{ "kernel", RG_ALIGN_LEFT, 0, 4 },    { "GOP/s", RG_ALIGN_RIGHT, 0, 0 },
		{ "time", RG_ALIGN_RIGHT, 0, 0 },     { "least", RG_ALIGN_RIGHT, 0, 2 },
		{ "most", RG_ALIGN_RIGHT, 0, 2 },     { "% of\nroof", RG_ALIGN_RIGHT, 0, 0 },
		{ "error", RG_ALIGN_RIGHT, 0, 0 },    { "L1\nmisses", RG_ALIGN_RIGHT, 0, 0 },
		{ "LL\nmisses", RG_ALIGN_RIGHT, 0, 0 }, { "rounds", RG_ALIGN_RIGHT, 0, 3 },
	};
	struct rg_table t;
	char text[64];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < r->n_rows; i++) {
		const struct rg_ladder_row *v = &r->rows[i];
		bool first = i == 0 || v->m != v[-1].m || v->k != v[-1].k || v->n != v[-1].n;

		shape_text(text, v);
		rg_table_add(&t, first || st->format != RG_FORMAT_TABLE ? text : "");
		rg_table_add(&t, v->rung);
		rg_table_add(&t, v->rounds ? v->kernel : "-");
		rg_table_add(&t, rg_num3(text, v->gops));
		rg_table_add(&t, rg_fmt_ns(text, v->ns));
		rg_table_add(&t, rg_fmt_ns(text, v->ns_low));
		rg_table_add(&t, rg_fmt_ns(text, v->ns_high));
		rg_table_add(&t, rg_num_percent(text, v->roof_fraction));
		add_error(&t, v);
		rg_table_add(&t, rg_fmt_si(text, v->l1_misses, ""));
		rg_table_add(&t, rg_fmt_si(text, v->ll_misses, ""));
		rg_table_addf(&t, "%d", v->rounds);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static void note(struct rg_str *out, const struct rg_style *st, struct rg_str *line)
{
	rg_text_paragraph(out, st, "note", 6, rg_str_text(line));
	out->failed |= line->failed;
	rg_str_free(line);
}

static const char *why_of(const struct rg_ladder_row *v, bool misses)
{
	return misses ? v->misses_reason : v->reason;
}

static bool seen_before(const struct rg_ladder_report *r, int at, bool misses)
{
	for (int i = 0; i < at; i++)
		if (strcmp(why_of(&r->rows[i], misses), why_of(&r->rows[at], misses)) == 0)
			return true;
	return false;
}

/* Each reason once, with the rungs that it stands for, or for all. */
static void reasons(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st, bool misses)
{
	for (int i = 0; i < r->n_rows; i++) {
		const char *why = why_of(&r->rows[i], misses);
		struct rg_str names = { 0 }, line = { 0 };
		int of = 0;

		if (!*why || seen_before(r, i, misses))
			continue;
		for (int k = i; k < r->n_rows; k++) {
			bool named = false;

			if (strcmp(why_of(&r->rows[k], misses), why) != 0)
				continue;
			of++;
			for (int h = i; h < k && !named; h++)
				named = strcmp(r->rows[h].rung, r->rows[k].rung) == 0 &&
					strcmp(why_of(&r->rows[h], misses), why) == 0;
			if (!named)
				rg_str_printf(&names, "%s%s", names.len ? ", " : "", r->rows[k].rung);
		}
		if (of == r->n_rows)
			rg_str_printf(&line, "%s: %s", misses ? "No misses" : "Nothing was run", why);
		else
			rg_str_printf(&line, "%s%s%s: %s", misses ? "No misses of " : "", rg_str_text(&names),
				      misses ? "" : " not run", why);
		line.failed |= names.failed;
		rg_str_free(&names);
		note(out, st, &line);
	}
}

static void say(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st)
{
	struct rg_str text = { 0 };

	rg_ladder_say(&text, r->rows, r->n_rows);
	for (char *p = text.text, *end; p && (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		rg_text_paragraph(out, st, "finds", 6, p);
	}
	out->failed |= text.failed;
	rg_str_free(&text);
}

static void footer(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st)
{
	struct rg_str line = { 0 };
	double pairs = INFINITY, fours = INFINITY;
	char num[64];

	rg_str_printf(&line, "%d thread%s%s, %s. Roofs, best of this run:", r->threads, r->threads == 1 ? "" : "s",
		      r->pinned ? "" : ", not pinned", r->isa);
	for (int i = 0; i < r->n_ceilings; i++)
		if (strcmp(r->ceilings[i].kind, "compute") == 0)
			rg_str_printf(&line, "%s %s %s m", i ? "," : "",
				      strcmp(r->ceilings[i].level, "peak") == 0 ? "float32" : r->ceilings[i].level,
				      rg_num_unit(num, r->ceilings[i].value, r->ceilings[i].unit));
	note(out, st, &line);
	rg_str_printf(&line, "Weights: %s", r->weights);
	for (int i = 0; i < r->n_rows; i++) { /* NAN loses */
		pairs = fmin(pairs, r->rows[i].pairs_share);
		fours = fmin(fours, r->rows[i].quads_share);
	}
	if (isfinite(pairs)) {
		rg_str_printf(&line, "; at least %s %% of their pairs and ", rg_num_percent(num, pairs));
		rg_str_printf(&line, "%s %% of their fours cannot saturate in 16 bits", rg_num_percent(num, fours));
	}
	rg_str_add(&line, ". Times: median, fastest and slowest of the rounds; error: the largest against sums in "
			  "double or int64.");
	note(out, st, &line);
	if (*r->simulator) {
		rg_str_printf(&line, "Misses s: one product on one thread, after another one, in Valgrind's callgrind: %s.",
			      r->simulator);
		note(out, st, &line);
	}
	reasons(out, r, st, false);
	reasons(out, r, st, true);
}

int rg_report_ladder(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st)
{
	int rc;

	if (st->format == RG_FORMAT_JSON)
		return json(out, r);
	if (st->format == RG_FORMAT_CSV)
		return csv(out, r, st);
	rc = rows_table(out, r, st);
	if (rc)
		return rc;
	rg_str_add(out, "\n");
	say(out, r, st);
	rg_str_add(out, "\n");
	footer(out, r, st);
	return out->failed ? -ENOMEM : 0;
}
