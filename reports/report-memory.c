/*
 * The memory of a plan (ridge plan MODEL): how high each strategy ends, what is
 * alive at the peak, the largest buffers, and where a smaller memory spills.
 */
#include "reports/report-memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/json.h"
#include "reports/table.h"

#define INDENT 12
#define DEFAULT_TOP 10
#define MAX_TOP 1000

/* The indices of the `most` largest alive at the step, or of all (step -1), largest first,
 * into order[0..most). Returns how many there are in all. */
static int largest(const struct rg_memory *m, int step, int *order, int most)
{
	int i, k, n = 0, all = 0;

	for (i = 0; i < m->n_buffers; i++) {
		const struct rg_memory_buffer *q = &m->buffers[i];

		if (step >= 0 && (q->first_step > step || q->last_step < step))
			continue;
		all++;
		/* among equals the graph's order stays */
		for (k = n; k > 0 && m->buffers[order[k - 1]].size_bytes < q->size_bytes; k--)
			if (k < most)
				order[k] = order[k - 1];
		if (k < most)
			order[k] = i;
		n += n < most;
	}
	return all;
}

static double over_bound(const struct rg_memory *m, int64_t bytes)
{
	return m->bound_bytes > 0 ? (double)bytes / (double)m->bound_bytes : 1;
}

/* Every step that makes something finds its memory as it runs: what an arena would be is unknown, not 0. */
static bool is_unknown(const struct rg_memory *m)
{
	return m->n_dynamic > 0 && m->n_buffers == 0;
}

/* ---- JSON and CSV ---- */

static void json_buffer(struct rg_json *j, json_t *to, const struct rg_memory_buffer *q)
{
	json_t *o = rg_json_put(j, to, NULL, json_object());

	rg_json_text(j, o, "name", q->name);
	rg_json_text(j, o, "kind", q->scratch ? "scratch" : q->made_by[0] ? "value" : "input");
	rg_json_text(j, o, "op_type", q->made_by[0] ? q->made_by : NULL);
	rg_json_text(j, o, "dtype", q->scratch ? NULL : q->dtype);
	rg_json_shape(j, o, "shape", q->shape);
	rg_json_int(j, o, "size_bytes", q->size_bytes);
	rg_json_int(j, o, "offset_bytes", q->offset_bytes);
	rg_json_int(j, o, "first_step", q->first_step);
	rg_json_int(j, o, "last_step", q->last_step);
}

static void json_step(struct rg_json *j, json_t *to, const struct rg_memory *m, int step)
{
	json_t *list;

	rg_json_int(j, to, "step", step);
	rg_json_text(j, to, "name", m->step_names[step]);
	rg_json_text(j, to, "op_type", m->step_types[step]);
	list = rg_json_put(j, to, "alive", json_array());
	for (int i = 0; i < m->n_buffers; i++)
		if (m->buffers[i].first_step <= step && step <= m->buffers[i].last_step)
			json_buffer(j, list, &m->buffers[i]);
}

static int json(struct rg_str *out, const struct rg_memory *m, const char *model)
{
	struct rg_json j;
	json_t *o, *list;

	rg_json_init(&j);
	rg_json_text(&j, j.root, "model", model);
	rg_json_text(&j, j.root, "planner", m->planner);
	rg_json_text(&j, j.root, "strategy", m->made_by);
	rg_json_int(&j, j.root, "alignment_bytes", m->align_bytes);
	rg_json_int(&j, j.root, "steps", m->n_steps);
	rg_json_int(&j, j.root, "dynamic_steps", m->n_dynamic);
	rg_json_int(&j, j.root, "arena_bytes", is_unknown(m) ? -1 : m->height_bytes);
	rg_json_int(&j, j.root, "lower_bound_bytes", is_unknown(m) ? -1 : m->bound_bytes);
	rg_json_num(&j, j.root, "ratio", is_unknown(m) ? NAN : over_bound(m, m->height_bytes));
	rg_json_text(&j, j.root, "order", m->reordered ? "memory" : "graph");
	rg_json_int(&j, j.root, "graph_order_lower_bound_bytes",
		    m->graph_order_bound_bytes > 0 ? m->graph_order_bound_bytes : -1);
	list = rg_json_put(&j, j.root, "strategies", json_array());
	for (int i = 0; i < m->n_tries; i++) {
		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "strategy", m->tries[i].strategy);
		rg_json_int(&j, o, "arena_bytes", m->tries[i].height_bytes);
		rg_json_num(&j, o, "ratio", m->tries[i].height_bytes < 0 ? NAN : over_bound(m, m->tries[i].height_bytes));
		rg_json_int(&j, o, "time_ns", (int64_t)m->tries[i].time_ns);
	}
	o = rg_json_put(&j, j.root, "peak", m->peak_step < 0 ? json_null() : json_object());
	if (m->peak_step >= 0)
		json_step(&j, o, m, m->peak_step);
	o = rg_json_put(&j, j.root, "capacity", m->capacity_bytes < 0 ? json_null() : json_object());
	if (m->capacity_bytes >= 0) {
		rg_json_int(&j, o, "capacity_bytes", m->capacity_bytes);
		rg_json_bool(&j, o, "fits", m->spill_step < 0);
		o = rg_json_put(&j, o, "first_spill", m->spill_step < 0 ? json_null() : json_object());
		if (m->spill_step >= 0) {
			rg_json_int(&j, o, "over_bytes", m->spill_bytes);
			json_step(&j, o, m, m->spill_step);
		}
	}
	list = rg_json_put(&j, j.root, "buffers", json_array());
	for (int i = 0; i < m->n_buffers; i++)
		json_buffer(&j, list, &m->buffers[i]);
	return rg_json_finish(&j, out);
}

/* As ridge plan --csv reads it, which passes over the offset. */
static int csv(struct rg_str *out, const struct rg_memory *m)
{
	rg_str_add(out, "id,lower,upper,size,alignment,offset\n");
	for (int i = 0; i < m->n_buffers; i++)
		rg_str_printf(out, "%d,%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", i, m->buffers[i].first_step,
			      m->buffers[i].last_step + 1, m->buffers[i].size_bytes, m->align_bytes,
			      m->buffers[i].offset_bytes);
	return out->failed ? -ENOMEM : 0;
}

/* ---- text ---- */

static void line(struct rg_str *out, const struct rg_style *st, const char *key, struct rg_str *s)
{
	out->failed |= s->failed;
	rg_text_paragraph(out, st, key, INDENT, rg_str_text(s));
	rg_str_free(s);
}

static void header(struct rg_str *out, const struct rg_memory *m, const char *model, const struct rg_style *st)
{
	struct rg_str s = { 0 };
	char num[3][64];

	rg_str_printf(&s, "%s, %d steps", model, m->n_steps);
	if (m->n_dynamic)
		rg_str_printf(&s, " (%d of them find their memory as they run: it is not planned)", m->n_dynamic);
	line(out, st, "model", &s);
	rg_str_printf(&s, "%s, %d buffers, sizes rounded up to %s", m->planner, m->n_buffers,
		      rg_fmt_bytes(num[0], (double)m->align_bytes));
	if (strcmp(m->planner, "tflm") == 0)
		rg_str_add(&s, ", inputs among them, scratch of ridge's kernels not");
	line(out, st, "planner", &s);
	if (is_unknown(m))
		rg_str_add(&s, "- (nothing is planned)");
	else
		rg_str_printf(&s, "%s ~ (%" PRId64 " bytes) by %s; %.4f times the lower bound, %s ~",
			      rg_fmt_bytes(num[0], (double)m->height_bytes), m->height_bytes, m->made_by,
			      over_bound(m, m->height_bytes), rg_fmt_bytes(num[1], (double)m->bound_bytes));
	line(out, st, "arena", &s);
	if (m->graph_order_bound_bytes > 0) {
		if (m->reordered)
			rg_str_printf(&s, "for memory; in that of the graph at least %s ~ (%" PRId64 " bytes) are alive",
				      rg_fmt_bytes(num[0], (double)m->graph_order_bound_bytes), m->graph_order_bound_bytes);
		else
			rg_str_add(&s, "of the graph; no other was found that has less alive at its peak");
		line(out, st, "order", &s);
	}
	if (m->peak_step >= 0)
		rg_str_printf(&s, "at step %d of %d, '%s' (%s)", m->peak_step, m->n_steps, m->step_names[m->peak_step],
			      m->step_types[m->peak_step]);
	else
		rg_str_add(&s, "- (nothing is alive at any step)");
	line(out, st, "peak", &s);
	if (m->capacity_bytes < 0)
		return;
	rg_fmt_bytes(num[0], (double)m->capacity_bytes);
	if (m->spill_step < 0) {
		rg_str_printf(&s, "%s: %s fits, %s ~ are left", num[0],
			      m->n_dynamic ? "what is planned" : "everything",
			      rg_fmt_bytes(num[1], (double)(m->capacity_bytes - m->height_bytes)));
	} else {
		rg_str_printf(&s, "%s: first spills at step %d of %d, '%s' (%s), by %s ~", num[0], m->spill_step,
			      m->n_steps, m->step_names[m->spill_step], m->step_types[m->spill_step],
			      rg_fmt_bytes(num[1], (double)m->spill_bytes));
		if (m->bound_bytes > m->capacity_bytes)
			rg_str_printf(&s, "; no placement fits: %s ~ are alive at the peak",
				      rg_fmt_bytes(num[2], (double)m->bound_bytes));
	}
	line(out, st, "capacity", &s);
}

static int strategies(struct rg_str *out, const struct rg_memory *m, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "strategy", RG_ALIGN_LEFT, 0, 0 },
		{ "bytes", RG_ALIGN_RIGHT, 0, 0 },
		{ "ratio", RG_ALIGN_RIGHT, 0, 0 },
		{ "ms", RG_ALIGN_RIGHT, 0, 0 },
	};
	struct rg_table t;
	char num[64];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < m->n_tries; i++) {
		rg_table_add(&t, m->tries[i].strategy);
		rg_table_add(&t, m->tries[i].height_bytes < 0 ? "-" : rg_fmt_count(num, m->tries[i].height_bytes));
		if (m->tries[i].height_bytes < 0)
			rg_table_add(&t, "-");
		else
			rg_table_addf(&t, "%.4f", over_bound(m, m->tries[i].height_bytes));
		rg_table_add(&t, rg_num3(num, (double)m->tries[i].time_ns / 1e6));
	}
	rg_str_add(out, "\n");
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* What is alive at one step, or the largest of all. */
static int buffers(struct rg_str *out, const struct rg_memory *m, const char *title, int step, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "buffer", RG_ALIGN_LEFT, 12, 0 },
		{ "made by", RG_ALIGN_LEFT, 6, 1 },
		{ "shape", RG_ALIGN_LEFT, 10, 3 },
		{ "size", RG_ALIGN_RIGHT, 0, 0 },
		{ "steps", RG_ALIGN_RIGHT, 0, 0 },
		{ "offset", RG_ALIGN_RIGHT, 0, 2 },
	};
	int most = st->top > 0 ? st->top : DEFAULT_TOP, order[MAX_TOP], n;
	struct rg_table t;
	char num[64];
	int rc;

	most = most < MAX_TOP ? most : MAX_TOP;
	n = largest(m, step, order, most);
	rg_str_printf(out, "\n%s\n%s", title, st->format == RG_FORMAT_MD ? "\n" : "");
	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n && i < most; i++) {
		const struct rg_memory_buffer *q = &m->buffers[order[i]];

		rg_table_add(&t, q->name);
		rg_table_addf(&t, "%s%s", q->made_by[0] ? q->made_by : "(input)", q->scratch ? " (scratch)" : "");
		rg_table_add(&t, q->scratch ? "-" : q->shape);
		rg_table_add(&t, rg_fmt_bytes(num, (double)q->size_bytes));
		rg_table_addf(&t, "%d-%d", q->first_step, q->last_step);
		rg_table_add(&t, rg_fmt_count(num, q->offset_bytes));
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (n > most)
		rg_str_printf(out, "%s(%d more)\n", st->format == RG_FORMAT_MD ? "\n" : "", n - most);
	return rc;
}

int rg_report_memory(struct rg_str *out, const struct rg_memory *m, const char *model, const struct rg_style *st)
{
	int rc;

	if (st->format == RG_FORMAT_JSON)
		return json(out, m, model);
	if (st->format == RG_FORMAT_CSV)
		return csv(out, m);
	header(out, m, model, st);
	rc = strategies(out, m, st);
	if (!rc && m->spill_step >= 0)
		rc = buffers(out, m, "alive where it first spills, largest first", m->spill_step, st);
	if (!rc && m->peak_step >= 0)
		rc = buffers(out, m, "alive at the peak, largest first", m->peak_step, st);
	if (!rc)
		rc = buffers(out, m, "largest of all", -1, st);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
