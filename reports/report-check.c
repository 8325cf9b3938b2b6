/*
 * The checklist: 24 answers in order, the five dimensions, and the changes that
 * would buy the most.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "reports/report-run.h"
#include "reports/table.h"

static int check_json(struct rg_str *out, const struct rg_analysis *a, const struct rg_checklist *c)
{
	struct rg_json j;
	json_t *list, *o, *figures, *f;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "run", a->rec->run.id);
	rg_report_json_recording(&j, j.root, "recording", &a->rec->run);
	list = rg_json_put(&j, j.root, "answers", json_array());
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		const struct rg_answer *q = &c->answers[i];

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "id", q->id);
		rg_json_text(&j, o, "question", q->question);
		rg_json_text(&j, o, "verdict", rg_verdict_name(q->verdict));
		rg_json_text(&j, o, "answer", q->answer);
		figures = rg_json_put(&j, o, "figures", json_array());
		for (int k = 0; k < q->n_figures; k++) {
			f = rg_json_put(&j, figures, NULL, json_object());
			rg_json_text(&j, f, "name", q->figures[k].name);
			if (q->figures[k].text)
				rg_json_text(&j, f, "value", q->figures[k].text);
			else
				rg_json_num(&j, f, "value", q->figures[k].value);
			rg_json_text(&j, f, "unit", q->figures[k].unit);
			rg_json_text(&j, f, "provenance", rg_provenance_name(q->figures[k].provenance));
		}
		rg_json_text(&j, o, "evidence", q->evidence);
		rg_json_text(&j, o, "missing", q->missing);
	}
	list = rg_json_put(&j, j.root, "dimensions", json_array());
	for (int i = 0; i < 5; i++) {
		const struct rg_dimension *d = &c->dimensions[i];

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "name", d->name);
		rg_json_text(&j, o, "verdict", rg_verdict_name(d->verdict));
		rg_json_text(&j, o, "stands", d->stands);
		rg_json_num(&j, o, "ceiling", d->ceiling);
		rg_json_num(&j, o, "headroom", d->headroom);
		rg_json_text(&j, o, "change", d->change && *d->change ? d->change : NULL);
	}
	rg_json_text(&j, j.root, "binding",
			 c->binding >= 0 && c->binding < 5 ? c->dimensions[c->binding].name : NULL);
	list = rg_json_put(&j, j.root, "changes", json_array());
	for (int i = 0; i < c->n_changes; i++)
		rg_json_text(&j, list, NULL, c->changes[i]);
	return rg_json_finish(&j, out);
}

static const char *verdict_sgr(enum rg_verdict v)
{
	switch (v) {
	case RG_VERDICT_GOOD:
		return "32";
	case RG_VERDICT_ATTENTION:
		return "33";
	case RG_VERDICT_PROBLEM:
		return "31";
	case RG_VERDICT_UNKNOWN:
		break;
	}
	return "2";
}

/* "params 25,557,032 ~, weights 97.5 MiB ~" */
static void figures(struct rg_str *s, const struct rg_answer *q)
{
	char num[64];

	for (int k = 0; k < q->n_figures; k++) {
		const struct rg_figure *f = &q->figures[k];

		rg_str_printf(s, "%s%s ", k ? "; " : "", f->name);
		if (f->text)
			rg_str_add(s, f->text);
		else
			rg_str_add(s, rg_num_unit(num, f->value, f->unit ? f->unit : ""));
		if (f->text || isfinite(f->value))
			rg_str_printf(s, " %s", rg_provenance_mark(f->provenance));
	}
}

static void heading(struct rg_str *out, const struct rg_style *st, int number, const char *name,
			enum rg_verdict v)
{
	if (st->format == RG_FORMAT_MD) {
		if (number > 0)
			rg_str_printf(out, "### %d. %s: %s\n\n", number, name, rg_verdict_name(v));
		else
			rg_str_printf(out, "### %s: %s\n\n", name, rg_verdict_name(v));
		return;
	}
	if (number > 0)
		rg_str_printf(out, "%2d ", number);
	rg_text_styled(out, st, "1", name);
	rg_str_printf(out, "%*s", number > 0 ? 24 - rg_text_width(name) : 27 - rg_text_width(name), "");
	rg_text_styled(out, st, verdict_sgr(v), rg_verdict_name(v));
	rg_str_add(out, "\n");
}

/* A line of an answer: indented in text, a list item in Markdown. */
static void line(struct rg_str *out, const struct rg_style *st, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	if (st->format == RG_FORMAT_TABLE)
		rg_str_add(out, "   ");
	if (st->format == RG_FORMAT_TABLE) {
		char padded[16];

		snprintf(padded, sizeof(padded), "%-9s", key);
		rg_text_paragraph(
			out, &(struct rg_style){.format = st->format, .width = st->width > 3 ? st->width - 3 : 0},
			padded, 9, text);
	} else {
		rg_text_paragraph(out, st, key, 0, text);
	}
}

static void dimensions(struct rg_str *out, const struct rg_checklist *c, const struct rg_style *st)
{
	char num[64];

	for (int i = 0; i < 5; i++) {
		const struct rg_dimension *d = &c->dimensions[i];

		heading(out, st, 0, d->name, d->verdict);
		line(out, st, "stands", d->stands);
		if (isfinite(d->ceiling))
			line(out, st, "ceiling", rg_num3(num, d->ceiling));
		if (isfinite(d->headroom))
			line(out, st, "headroom", rg_num_times(num, d->headroom));
		line(out, st, "change", d->change);
		rg_str_add(out, "\n");
	}
}

static void summary(struct rg_str *out, const struct rg_analysis *a, const struct rg_checklist *c,
			const struct rg_style *st)
{
	struct rg_str s = { 0 };
	int count[4] = { 0 };

	for (int i = 0; i < RG_CHECK_QUESTIONS; i++)
		count[c->answers[i].verdict]++;
	rg_str_printf(&s, "%s, run %" PRId64, a->rec->run.model_name, a->rec->run.id);
	rg_text_paragraph(out, st, "model", 12, rg_str_text(&s));
	rg_str_free(&s);
	rg_str_printf(&s, "%d good, %d attention, %d problem, %d unknown", count[RG_VERDICT_GOOD],
			  count[RG_VERDICT_ATTENTION], count[RG_VERDICT_PROBLEM], count[RG_VERDICT_UNKNOWN]);
	rg_text_paragraph(out, st, "verdicts", 12, rg_str_text(&s));
	rg_str_free(&s);
	rg_text_paragraph(out, st, "binding", 12,
			  c->binding >= 0 && c->binding < 5 ? c->dimensions[c->binding].name
								: "- (not known)");
	for (int i = 0; i < c->n_changes; i++) {
		rg_str_printf(&s, "%d. %s", i + 1, c->changes[i]);
		rg_text_paragraph(out, st, i ? "" : "changes", 12, rg_str_text(&s));
		rg_str_free(&s);
	}
	rg_text_paragraph(out, st, "marks", 12, RG_PROVENANCE_LEGEND);
	rg_str_add(out, "\n");
}

int rg_report_check(struct rg_str *out, const struct rg_analysis *a, const struct rg_checklist *c,
			const struct rg_style *st)
{
	if (st->format == RG_FORMAT_JSON)
		return check_json(out, a, c);
	if (st->format == RG_FORMAT_CSV)
		return -EINVAL;
	summary(out, a, c, st);
	dimensions(out, c, st);
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		const struct rg_answer *q = &c->answers[i];
		struct rg_str s = { 0 };

		heading(out, st, i + 1, q->id, q->verdict);
		line(out, st, "question", q->question);
		line(out, st, "answer", q->answer);
		figures(&s, q);
		line(out, st, "figures", rg_str_text(&s));
		line(out, st, "missing", q->missing);
		line(out, st, "evidence", q->evidence);
		if (s.failed)
			out->failed = true;
		rg_str_free(&s);
		rg_str_add(out, "\n");
	}
	return out->failed ? -ENOMEM : 0;
}
