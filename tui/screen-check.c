/* The checklist: 24 questions in a list, the one under the cursor in full. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "tui/screens.h"

static char provenance_mark(enum rg_provenance p)
{
	switch (p) {
	case RG_PROV_MEASURED: return 'm';
	case RG_PROV_MODELLED: return '~';
	case RG_PROV_SIMULATED: return 's';
	case RG_PROV_DECLARED: return 'd';
	case RG_PROV_UNAVAILABLE: break;
	}
	return '-';
}

static int draw_figures(struct rg_cells *c, int y, int end, const struct rg_answer *q)
{
	char value[32];

	for (int i = 0; i < q->n_figures && y < end; i++, y++) {
		const struct rg_figure *f = &q->figures[i];

		if (f->text)
			rg_cells_printf(c, 4, y, c->width - 6, RG_ROLE_DIM, "%c %s: %s", provenance_mark(f->provenance),
					f->name, f->text);
		else
			rg_cells_printf(c, 4, y, c->width - 6, RG_ROLE_DIM, "%c %s: %s", provenance_mark(f->provenance),
					f->name, rg_fmt_si(value, f->value, f->unit));
	}
	return y;
}

static void draw(struct rg_app *a, struct rg_cells *c, int top, int rows)
{
	struct rg_list *l = &a->check_list;
	int list_rows = rows / 2, y, end = top + rows;
	const struct rg_answer *q = &a->check->answers[l->cursor];
	int binding = a->check->binding;

	if (binding >= 0 && binding < 5)
		rg_cells_printf(c, 1, top, c->width - 2, RG_ROLE_HEAD, "binds: %s. %s", a->check->dimensions[binding].name,
				a->check->dimensions[binding].change);
	else
		rg_cells_text(c, 1, top, c->width - 2, RG_ROLE_HEAD, "which dimension binds is not known");
	list_rows = list_rows < 3 ? 3 : list_rows;
	rg_list_scroll(l, list_rows - 1);
	for (int i = l->top; i < l->n && i - l->top < list_rows - 1; i++) {
		const struct rg_answer *w = &a->check->answers[i];
		int row = top + 1 + i - l->top;

		rg_cells_printf(c, 1, row, 3, RG_ROLE_NORMAL, "%2d", i + 1);
		rg_cells_text(c, 4, row, 24, RG_ROLE_NORMAL, w->id);
		rg_cells_text(c, 29, row, 10, rg_verdict_role(w->verdict), rg_verdict_name(w->verdict));
		rg_cells_text(c, 40, row, c->width - 41, RG_ROLE_NORMAL, w->answer);
		if (i == l->cursor)
			rg_cells_line_role(c, row, RG_ROLE_SELECTED);
	}
	y = top + 1 + list_rows;
	y += rg_cells_wrap(c, 2, y, c->width - 4, end - y, RG_ROLE_HEAD, q->question);
	y += rg_cells_wrap(c, 2, y, c->width - 4, end - y, RG_ROLE_NORMAL, q->answer);
	if (q->missing && y < end)
		y += rg_cells_wrap(c, 2, y, c->width - 4, end - y, RG_ROLE_WARN, q->missing);
	y = draw_figures(c, y, end - 1, q);
	if (y < end && q->evidence)
		rg_cells_printf(c, 2, y, c->width - 4, RG_ROLE_DIM, "evidence: %s", q->evidence);
}

static bool key(struct rg_app *a, int k)
{
	return rg_list_key(&a->check_list, k, a->page / 2);
}

const struct rg_screen rg_screen_check = { "Checklist", "up down question", true, draw, key };
