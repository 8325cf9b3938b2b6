/*
 * The critical path of one inference, and what-if replays.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "reports/report-run.h"
#include "reports/table.h"

static const char *kind_name(enum rg_segment_kind k)
{
	switch (k) {
	case RG_SEG_STEP:
		return "step";
	case RG_SEG_RESOURCE:
		return "resource";
	case RG_SEG_GAP:
		break;
	}
	return "gap";
}

/* The step a segment is about, or NULL for a gap. */
static const struct rg_step_row *step_of(const struct rg_analysis *a, int step)
{
	return step >= 0 && step < a->rec->n_steps ? &a->rec->steps[step] : NULL;
}

static int64_t slack_of(const struct rg_path *p, const struct rg_step_row *s)
{
	return s && p->slack_ns ? p->slack_ns[s->index] : -1;
}

static int path_json(struct rg_str *out, const struct rg_analysis *a, const struct rg_path *p)
{
	struct rg_json j;
	json_t *list, *o;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "run", a->rec->run.id);
	rg_json_int(&j, j.root, "iteration", p->iteration);
	rg_json_put(&j, j.root, "cold", json_boolean(p->cold));
	rg_json_int(&j, j.root, "wall_ns", p->wall_ns);
	list = rg_json_put(&j, j.root, "segments", json_array());
	for (int i = 0; i < p->n_segments; i++) {
		const struct rg_segment *g = &p->segments[i];
		const struct rg_step_row *s = step_of(a, g->step);

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "kind", kind_name(g->kind));
		rg_json_int(&j, o, "step", s ? s->index : -1);
		rg_json_text(&j, o, "name", s ? s->name : NULL);
		rg_json_text(&j, o, "op_type", s ? s->op_type : NULL);
		rg_json_int(&j, o, "start_ns", g->start_ns);
		rg_json_int(&j, o, "end_ns", g->end_ns);
		rg_json_put(&j, o, "time_ns", json_integer(g->end_ns - g->start_ns));
		rg_json_int(&j, o, "slack_ns", slack_of(p, s));
	}
	o = rg_json_put(&j, j.root, "data_path", json_object());
	rg_json_int(&j, o, "time_ns", p->data_path_ns);
	list = rg_json_put(&j, o, "steps", json_array());
	for (int i = 0; i < p->n_data_path; i++)
		rg_json_put(&j, list, NULL, json_integer(p->data_path[i]));
	rg_json_text(&j, o, "provenance", "modelled");
	rg_json_num(&j, j.root, "parallelism", p->parallelism);
	rg_json_text(&j, j.root, "provenance", "measured");
	return rg_json_finish(&j, out);
}

static int path_csv(struct rg_str *out, const struct rg_analysis *a, const struct rg_path *p,
			const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{"kind"}, {"step"}, {"name"}, {"op_type"}, {"start_ns"}, {"end_ns"}, {"time_ns"}, {"slack_ns"},
	};
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < p->n_segments; i++) {
		const struct rg_segment *g = &p->segments[i];
		const struct rg_step_row *s = step_of(a, g->step);

		rg_table_add(&t, kind_name(g->kind));
		if (s)
			rg_table_addf(&t, "%d", s->index);
		else
			rg_table_add(&t, "-");
		rg_table_add(&t, s ? s->name : "-");
		rg_table_add(&t, s ? s->op_type : "-");
		rg_table_addf(&t, "%" PRId64, g->start_ns);
		rg_table_addf(&t, "%" PRId64, g->end_ns);
		rg_table_addf(&t, "%" PRId64, g->end_ns - g->start_ns);
		if (slack_of(p, s) >= 0)
			rg_table_addf(&t, "%" PRId64, slack_of(p, s));
		else
			rg_table_add(&t, "-");
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static void path_summary(struct rg_str *out, const struct rg_analysis *a, const struct rg_path *p,
			 const struct rg_style *st)
{
	int64_t sum[3] = { 0, 0, 0 };
	struct rg_str s = { 0 };
	char num[64], part[64];

	for (int i = 0; i < p->n_segments; i++)
		sum[p->segments[i].kind] += p->segments[i].end_ns - p->segments[i].start_ns;
	rg_str_printf(&s, "%s m, iteration %d of run %" PRId64 " (%s)",
			  rg_fmt_ns(num, (double)p->wall_ns), p->iteration, a->rec->run.id,
			  p->cold ? "recorded before the timing began: cold" : "the one nearest to the median");
	rg_text_paragraph(out, st, "wall time", 12, rg_str_text(&s));
	rg_str_free(&s);
	for (int k = 0; k < 3; k++) {
		static const char *const what[] = {
			"steps that the next one needs (data)",
			"steps waited for because the lane was busy (resource)",
			"nothing ran (dispatch, start and end)",
		};

		if (sum[k] <= 0)
			continue;
		if (s.len)
			rg_str_add(&s, "; ");
		rg_str_printf(&s, "%s (%s %%) %s", rg_fmt_ns(num, (double)sum[k]),
				  rg_num_percent(part, (double)sum[k] / (double)p->wall_ns), what[k]);
	}
	rg_text_paragraph(out, st, "of which", 12, s.len ? rg_str_text(&s) : "-");
	rg_str_free(&s);
	rg_str_printf(
		&s, "%s ~ over %d steps: no number of lanes could go below it; parallelism in the graph %s",
		rg_fmt_ns(num, (double)p->data_path_ns), p->n_data_path, rg_num_times(part, p->parallelism));
	rg_text_paragraph(out, st, "data path", 12, rg_str_text(&s));
	if (s.failed)
		out->failed = true;
	rg_str_free(&s);
	rg_str_add(out, "\n");
}

int rg_report_path(struct rg_str *out, const struct rg_analysis *a, const struct rg_path *p,
		   const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "start\nms", RG_ALIGN_RIGHT, 0, 0 },
		{ "time\nms", RG_ALIGN_RIGHT, 0, 0 },
		{ "share\n%", RG_ALIGN_RIGHT, 0, 0 },
		{ "kind", RG_ALIGN_LEFT, 0, 0 },
		{ "name", RG_ALIGN_LEFT, 14, 0 },
		{ "type", RG_ALIGN_LEFT, 8, 2 },
		{ "slack\nms", RG_ALIGN_RIGHT, 0, 1 },
	};
	struct rg_table t;
	char num[64];
	int rc, hidden = 0;
	int64_t hidden_ns = 0;

	if (st->format == RG_FORMAT_JSON)
		return path_json(out, a, p);
	if (st->format == RG_FORMAT_CSV)
		return path_csv(out, a, p, st);
	path_summary(out, a, p, st);
	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < p->n_segments; i++) {
		const struct rg_segment *g = &p->segments[i];
		const struct rg_step_row *s = step_of(a, g->step);
		double time_ns = (double)(g->end_ns - g->start_ns);

		/* A gap of some nanoseconds stands between any two steps: for people they
		 * are one line; JSON and CSV hold each. */
		if (g->kind == RG_SEG_GAP && time_ns < 0.0005 * (double)p->wall_ns) {
			hidden++;
			hidden_ns += g->end_ns - g->start_ns;
			continue;
		}
		rg_table_addf(&t, "%.3f", (double)(g->start_ns - p->segments[0].start_ns) / 1e6);
		rg_table_addf(&t, "%.3f", time_ns / 1e6);
		rg_table_add(&t, rg_num_percent(num, p->wall_ns > 0 ? time_ns / (double)p->wall_ns : NAN));
		rg_table_add(&t, kind_name(g->kind));
		rg_table_add(&t, s ? s->name : "-");
		rg_table_add(&t, s ? s->op_type : "-");
		if (slack_of(p, s) >= 0)
			rg_table_addf(&t, "%.3f", (double)slack_of(p, s) / 1e6);
		else
			rg_table_add(&t, "-");
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (rc != 0)
		return rc;
	if (hidden)
		rg_str_printf(
			out, "%s(gaps below 0.05 %% of the wall time are not listed: %d, together %s)\n",
			st->format == RG_FORMAT_MD ? "\n" : "", hidden, rg_fmt_ns(num, (double)hidden_ns));
	rg_str_add(out, "\n");
	rg_text_paragraph(
		out, st, "kinds", 6,
		"step: the next one on the path needs its result; resource: on the path because its lane was "
		"busy; gap: nothing ran. The segments sum to the wall time. slack: how much longer a step may "
		"take before the data path grows.");
	return out->failed ? -ENOMEM : 0;
}

static int whatif_json(struct rg_str *out, const struct rg_analysis *a, const char *op,
			   const struct rg_whatif *w)
{
	struct rg_json j;

	rg_json_init(&j);
	rg_json_int(&j, j.root, "run", a->rec->run.id);
	rg_json_text(&j, j.root, "op", op);
	rg_json_int(&j, j.root, "n_steps", w->n_steps);
	rg_json_num(&j, j.root, "share", w->share);
	rg_json_num(&j, j.root, "speedup", w->speedup);
	rg_json_bool(&j, j.root, "removed", isinf(w->speedup));
	rg_json_num(&j, j.root, "before_ns", w->before_ns);
	rg_json_num(&j, j.root, "after_ns", w->after_ns);
	rg_json_num(&j, j.root, "after_low_ns", w->after_low_ns);
	rg_json_num(&j, j.root, "after_high_ns", w->after_high_ns);
	rg_json_num(&j, j.root, "gain", w->gain);
	rg_json_num(&j, j.root, "amdahl_gain", w->amdahl_gain);
	rg_json_put(&j, j.root, "cold", json_boolean(w->cold));
	rg_json_num(&j, j.root, "limit_gain", w->limit_gain);
	rg_json_int(&j, j.root, "n_iterations", w->n_iterations);
	rg_json_text(&j, j.root, "provenance", "modelled");
	return rg_json_finish(&j, out);
}

int rg_report_whatif(struct rg_str *out, const struct rg_analysis *a, const char *op,
			 const struct rg_whatif *w, const struct rg_style *st)
{
	struct rg_str s = { 0 };
	char n1[64], n2[64], n3[64];

	if (st->format == RG_FORMAT_JSON)
		return whatif_json(out, a, op, w);
	if (st->format == RG_FORMAT_CSV)
		return -EINVAL;
	rg_str_printf(&s, "%s (%d step%s, %s %% of the wall time m) ", op, w->n_steps,
			  w->n_steps == 1 ? "" : "s", rg_num_percent(n1, w->share));
	if (isinf(w->speedup))
		rg_str_add(&s, "removed");
	else
		rg_str_printf(&s, "%s faster", rg_num_times(n1, w->speedup));
	rg_text_paragraph(out, st, "what if", 12, rg_str_text(&s));
	rg_str_free(&s);
	rg_str_printf(&s, "%s m, median of %d replayed iteration%s%s", rg_fmt_ns(n1, w->before_ns),
			  w->n_iterations, w->n_iterations == 1 ? "" : "s",
			  w->cold ? ", recorded before the timing began: cold" : "");
	rg_text_paragraph(out, st, "now", 12, rg_str_text(&s));
	rg_str_free(&s);
	rg_str_printf(&s, "%s ~", rg_fmt_ns(n1, w->after_ns));
	if (isfinite(w->after_low_ns) && isfinite(w->after_high_ns))
		rg_str_printf(&s, " [%s, %s]", rg_fmt_ns(n2, w->after_low_ns),
				  rg_fmt_ns(n3, w->after_high_ns));
	rg_str_printf(&s, ": %s ~ as a whole", rg_num_times(n1, w->gain));
	rg_text_paragraph(out, st, "replayed", 12, rg_str_text(&s));
	rg_str_free(&s);
	rg_str_printf(&s, "%s ~ is %s; %s ~ if it took no time at all", rg_num_times(n1, w->amdahl_gain),
			  w->speedup >= 1 ? "the bound for this share" : "what this share alone makes of it",
			  rg_num_times(n2, w->limit_gain));
	rg_text_paragraph(out, st, "Amdahl", 12, rg_str_text(&s));
	if (s.failed)
		out->failed = true;
	rg_str_free(&s);
	rg_str_add(out, "\n");
	rg_text_paragraph(out, st, "marks", 12, RG_PROVENANCE_LEGEND);
	return out->failed ? -ENOMEM : 0;
}
