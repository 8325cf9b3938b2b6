/*
 * The report of a plan that was not run (ridge report --static): work, target
 * and memory of every operator, and what is not known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/report-run.h"
#include "reports/table.h"

#define INDENT 12

bool rg_report_is_static(const struct rg_recording *r)
{
	return strcmp(rg_recording_text(r, "session.static", "no"), "yes") == 0;
}

/* ---- the header ---- */

void rg_report_static_latency(struct rg_str *s, const struct rg_analysis *a)
{
	double sum = 0;
	char num[64];
	int known = 0;

	for (int i = 0; i < a->n_ops; i++) {
		if (!isfinite(a->ops[i].roof_ns))
			continue;
		sum += a->ops[i].roof_ns;
		known++;
	}
	rg_str_add(s, "- (planned, not run)");
	if (known)
		rg_str_printf(s, "; target at least %s ~: the sum over the %d of %d steps whose work and roof are known",
			      rg_fmt_ns(num, sum), known, a->n_ops);
}

void rg_report_static_memory(struct rg_str *s, const struct rg_analysis *a)
{
	double arena = rg_recording_number(a->rec, "plan.arena_bytes");
	double bound = rg_recording_number(a->rec, "plan.arena_lower_bound_bytes");
	double packed = rg_recording_number(a->rec, "plan.prepared_bytes");
	double step = rg_recording_number(a->rec, "plan.peak_step");
	char num[64];

	rg_str_printf(s, "arena %s ~", rg_fmt_bytes(num, arena));
	rg_str_printf(s, " (at least %s are live at once", rg_fmt_bytes(num, bound));
	if (step >= 0 && step < a->n_ops)
		rg_str_printf(s, ", at '%s'", a->ops[(int)step].step->name);
	rg_str_printf(s, "), packed weights %s ~", rg_fmt_bytes(num, packed));
}

/* ---- operators ---- */

struct key {
	double roof_ns;
	int op;
};

/* Longest target first, then what has none, both in execution order. */
static int by_target(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	bool ka = isfinite(a->roof_ns), kb = isfinite(b->roof_ns);

	if (ka != kb)
		return ka ? -1 : 1;
	if (ka && a->roof_ns != b->roof_ns)
		return a->roof_ns > b->roof_ns ? -1 : 1;
	return a->op - b->op;
}

static const struct rg_column op_columns[] = {
	{ "name", RG_ALIGN_LEFT, 12, 0 },
	{ "type", RG_ALIGN_LEFT, 6, 0 },
	{ "kernel", RG_ALIGN_LEFT, 6, 2 },
	{ "shape", RG_ALIGN_LEFT, 10, 1 },
	{ "MFLOP", RG_ALIGN_RIGHT, 0, 0 },
	{ "MB", RG_ALIGN_RIGHT, 0, 0 },
	{ "FLOP\n/byte", RG_ALIGN_RIGHT, 0, 0 },
	{ "bound", RG_ALIGN_LEFT, 0, 0 },
	{ "target\nms", RG_ALIGN_RIGHT, 0, 0 },
};

static void op_row(struct rg_table *t, const struct rg_op_stat *op)
{
	char num[64];

	rg_table_add(t, op->step->name);
	rg_table_add(t, op->step->op_type);
	rg_table_add(t, op->step->kernel);
	rg_table_add(t, op->step->shape);
	rg_table_add(t, rg_num3(num, op->flops / 1e6));
	rg_table_add(t, rg_num3(num, op->bytes / 1e6));
	rg_table_add(t, rg_num3(num, op->intensity));
	rg_table_add(t, op->bound ? op->bound : "-");
	rg_table_add(t, rg_num3(num, op->roof_ns / 1e6));
}

/* What the plan could not tell, each with its reason. */
static void unknowns(struct rg_str *out, const struct rg_recording *r, const char *kind, const char *title, int most,
		     const struct rg_style *st)
{
	struct rg_str s = { 0 };
	int n = 0;

	for (int i = 0; i < r->n_notes; i++) {
		if (strcmp(r->notes[i].kind, kind) != 0 || n++ >= most)
			continue;
		rg_str_printf(&s, "'%s': %s", r->notes[i].subject, r->notes[i].text);
		rg_text_paragraph(out, st, title, INDENT, rg_str_text(&s));
		out->failed |= s.failed;
		rg_str_free(&s);
		s = (struct rg_str){ 0 };
	}
	if (n > most) {
		rg_str_printf(&s, "and %d more", n - most);
		rg_text_paragraph(out, st, title, INDENT, rg_str_text(&s));
		rg_str_free(&s);
	}
}

int rg_report_static_operators(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	struct key *order = rg_calloc((size_t)a->n_ops + 1, sizeof(*order));
	int shown = st->top > 0 && st->top < a->n_ops ? st->top : a->n_ops, rc;
	struct rg_table t;

	if (!order)
		return -ENOMEM;
	for (int i = 0; i < a->n_ops; i++)
		order[i] = (struct key){ a->ops[i].roof_ns, i };
	qsort(order, (size_t)a->n_ops, sizeof(*order), by_target);
	rg_table_init(&t, op_columns, sizeof(op_columns) / sizeof(op_columns[0]));
	for (int i = 0; i < shown; i++)
		op_row(&t, &a->ops[order[i].op]);
	rg_free(order);
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (rc)
		return rc;
	if (a->n_ops == 0)
		rg_str_add(out, "(nothing would run)\n");
	if (shown < a->n_ops)
		rg_str_printf(out, "%s(%d more operators)\n", st->format == RG_FORMAT_MD ? "\n" : "", a->n_ops - shown);
	rg_str_add(out, "\n");
	unknowns(out, a->rec, "unsupported", "cannot run", st->top > 0 ? st->top : 20, st);
	unknowns(out, a->rec, "dynamic", "not known", st->top > 0 ? st->top : 20, st);
	rg_text_paragraph(out, st, "marks", 6, RG_PROVENANCE_LEGEND
			  ". All of the table is ~: work counted from shapes; target: what the roofs of this machine "
			  "allow for it, the smaller of peak and the bandwidth of the level that holds its bytes.");
	return out->failed ? -ENOMEM : 0;
}
