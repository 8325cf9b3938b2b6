/*
 * What the compiler did to a graph (ridge report --compiler): what each pass rewrote, which steps that follow
 * each other stayed two and why, what is left of layouts, and what was folded.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyzer/fusion.h"
#include "reports/report-run.h"
#include "reports/table.h"

#define INDENT 10
enum { MOST_PAIRS = 25 };

static double fact(const struct rg_analysis *a, const char *key)
{
	return rg_recording_number(a->rec, key);
}

static int duplicates(const struct rg_fusions *f)
{
	for (int i = 0; i < f->n_passes; i++)
		if (!strcmp(f->passes[i].name, "common"))
			return f->passes[i].count;
	return 0;
}

static void count(struct rg_str *s, double v)
{
	if (isfinite(v))
		rg_str_printf(s, "%.0f", v);
	else
		rg_str_add(s, "-");
}

static void paragraph(struct rg_str *out, const struct rg_style *st, const char *key, struct rg_str *s)
{
	if (s->failed)
		out->failed = true;
	else
		rg_text_paragraph(out, st, key, INDENT, rg_str_text(s));
	rg_str_free(s);
	*s = (struct rg_str){ 0 };
}

static void header(struct rg_str *out, const struct rg_analysis *a, const struct rg_fusions *f,
		   const struct rg_style *st)
{
	struct rg_str s = { 0 };

	rg_report_model_line(&s, a->rec);
	paragraph(out, st, "model", &s);
	if (f->level > 0)
		rg_str_printf(&s, "level %d: %d rewrites", f->level, f->n_done);
	else if (f->level == 0)
		rg_str_add(&s, "none ran (--optimize 0): what could be taken together was not tried");
	else
		rg_str_add(&s, "- (the recording does not say which passes ran)");
	paragraph(out, st, "passes", &s);
	count(&s, fact(a, "plan.steps"));
	rg_str_add(&s, " kernel calls an inference ~");
	if (f->level > 0) {
		rg_str_add(&s, ", without passes ");
		count(&s, fact(a, "plan.steps_before"));
		rg_str_add(&s, " ~");
	}
	rg_str_add(&s, "; views, which cost nothing: ");
	count(&s, fact(a, "plan.views"));
	paragraph(out, st, "steps", &s);
	rg_str_add(&s, "nodes computed from constants: ");
	count(&s, fact(a, "plan.folded"));
	rg_str_add(&s, "; nodes that no output needs: ");
	count(&s, fact(a, "plan.dead"));
	if (f->level > 0)
		rg_str_printf(&s, "; there twice, kept once: %d", duplicates(f));
	paragraph(out, st, "folded", &s);
	rg_str_printf(&s, "%d Transpose left", f->n_transposes);
	paragraph(out, st, "layout", &s);
}

static void who(struct rg_table *t, const struct rg_fusion *f, bool done)
{
	if (done)
		rg_table_addf(t, "%s %s into %s", f->op_type, f->node, f->into);
	else
		rg_table_addf(t, "%s behind %s", f->node, f->into);
}

static int passes_table(struct rg_str *out, const struct rg_fusions *f, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "pass", RG_ALIGN_LEFT, 0, 0 },
		{ "rewrites", RG_ALIGN_RIGHT, 0, 0 },
		{ "for example", RG_ALIGN_LEFT, 20, 0 },
	};
	struct rg_table t;
	int rc;

	if (f->n_passes == 0)
		return 0;
	rg_str_add(out, "\n");
	rg_table_init(&t, columns, 3);
	for (int i = 0; i < f->n_passes; i++) {
		rg_table_add(&t, f->passes[i].name);
		rg_table_addf(&t, "%d", f->passes[i].count);
		who(&t, f->passes[i].example, true);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static int pairs_table(struct rg_str *out, const struct rg_fusions *f, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "stayed two", RG_ALIGN_LEFT, 12, 0 },  { "pairs", RG_ALIGN_RIGHT, 0, 0 },
		{ "operator", RG_ALIGN_LEFT, 8, 0 },     { "behind", RG_ALIGN_LEFT, 8, 0 },
		{ "for example", RG_ALIGN_LEFT, 14, 1 },
	};
	int most = st->top > 0 ? st->top : st->width ? MOST_PAIRS : f->n_pairs, shown = 0, rc;
	struct rg_table t;

	if (f->n_pairs == 0)
		return 0;
	rg_str_add(out, "\n");
	rg_table_init(&t, columns, 5);
	for (; shown < f->n_pairs && shown < most; shown++) {
		const struct rg_fusion_group *g = &f->pairs[shown];

		rg_table_add(&t, shown && !strcmp(g->name, g[-1].name) && st->format == RG_FORMAT_TABLE ?
				     "" :
				     g->name);
		rg_table_addf(&t, "%d", g->count);
		rg_table_add(&t, g->op_type);
		rg_table_add(&t, *g->into_type ? g->into_type : "-");
		who(&t, g->example, false);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (!rc && shown < f->n_pairs)
		rg_str_printf(out, "%s(%d more kinds of pairs)\n", st->format == RG_FORMAT_MD ? "\n" : "",
			      f->n_pairs - shown);
	return rc;
}

static void reasons_line(struct rg_str *out, const struct rg_fusions *f, const struct rg_style *st)
{
	struct rg_str s = { 0 };

	if (f->level <= 0)
		return;
	if (f->n_left == 0)
		rg_str_add(&s, "no two steps follow each other that were not taken together");
	for (int i = 0; i < f->n_reasons; i++)
		rg_str_printf(&s, "%s%s %d", i ? ", " : "", f->reasons[i].name, f->reasons[i].count);
	paragraph(out, st, "left", &s);
}

static int csv(struct rg_str *out, const struct rg_fusions *f, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "fused" }, { "op_type" }, { "node" }, { "into" }, { "into_type" }, { "pass" }, { "reason" },
	};
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, 7);
	for (int i = 0; i < f->n_done + f->n_left; i++) {
		const struct rg_fusion *v = i < f->n_done ? &f->done[i] : &f->left[i - f->n_done];

		rg_table_add(&t, i < f->n_done ? "1" : "0");
		rg_table_add(&t, v->op_type);
		rg_table_add(&t, v->node);
		rg_table_add(&t, v->into);
		rg_table_add(&t, v->into_type);
		rg_table_add(&t, v->pass);
		rg_table_add(&t, v->reason);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* ---- JSON ---- */

static void json_groups(struct rg_json *j, const char *key, const struct rg_fusion_group *g, int n)
{
	json_t *list = rg_json_put(j, j->root, key, json_array());

	for (int i = 0; i < n; i++) {
		json_t *o = rg_json_put(j, list, NULL, json_object());

		rg_json_text(j, o, "name", g[i].name);
		rg_json_int(j, o, "count", g[i].count);
	}
}

static void json_pairs(struct rg_json *j, const char *key, const struct rg_fusion *f, int n, bool done)
{
	json_t *list = rg_json_put(j, j->root, key, json_array());

	for (int i = 0; i < n; i++) {
		json_t *o = rg_json_put(j, list, NULL, json_object());

		rg_json_text(j, o, "op_type", f[i].op_type);
		rg_json_text(j, o, "node", f[i].node);
		rg_json_text(j, o, "into", f[i].into);
		rg_json_text(j, o, "into_type", *f[i].into_type ? f[i].into_type : NULL);
		rg_json_text(j, o, "pass", *f[i].pass ? f[i].pass : NULL);
		if (!done)
			rg_json_text(j, o, "reason", f[i].reason);
	}
}

static int json(struct rg_str *out, const struct rg_analysis *a, const struct rg_fusions *f)
{
	struct rg_json j;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "run", a->rec->run.id);
	rg_report_json_recording(&j, j.root, "recording", &a->rec->run);
	rg_json_int(&j, j.root, "level", f->level);
	rg_json_num(&j, j.root, "steps", fact(a, "plan.steps"));
	rg_json_num(&j, j.root, "steps_before", fact(a, "plan.steps_before"));
	rg_json_num(&j, j.root, "views", fact(a, "plan.views"));
	rg_json_num(&j, j.root, "folded", fact(a, "plan.folded"));
	rg_json_num(&j, j.root, "dead", fact(a, "plan.dead"));
	rg_json_num(&j, j.root, "duplicates", f->level > 0 ? duplicates(f) : NAN);
	rg_json_int(&j, j.root, "transposes", f->n_transposes);
	json_groups(&j, "passes", f->passes, f->n_passes);
	json_groups(&j, "reasons", f->reasons, f->n_reasons);
	json_pairs(&j, "fused", f->done, f->n_done, true);
	json_pairs(&j, "not_fused", f->left, f->n_left, false);
	return rg_json_finish(&j, out);
}

int rg_report_compiler(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_fusions *f;
	int rc = rg_fusions_new(a->rec, &f, &err);

	if (rc)
		return -ENOMEM;
	if (st->format == RG_FORMAT_JSON) {
		rc = json(out, a, f);
	} else if (st->format == RG_FORMAT_CSV) {
		rc = csv(out, f, st);
	} else {
		header(out, a, f, st);
		reasons_line(out, f, st);
		rc = passes_table(out, f, st);
		if (!rc)
			rc = pairs_table(out, f, st);
	}
	rg_fusions_free(f);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
