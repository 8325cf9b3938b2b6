/* Operators of the open run: sorted, filtered, one line each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/screens.h"

enum column { BY_TIME, BY_ORDER, BY_TYPE, BY_RATE, BY_INTENSITY, BY_HEADROOM, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = { "time", "order", "type", "GFLOP/s", "FLOP/byte", "headroom" };

/* NAN sorts last whichever way the order goes. */
static int by_number(double x, double y, bool descending)
{
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return descending ? (x < y) - (x > y) : (x > y) - (x < y);
}

static double column_value(const struct rg_op_stat *o, int column)
{
	switch (column) {
	case BY_TIME: return o->time_ns;
	case BY_RATE: return o->flop_rate;
	case BY_INTENSITY: return o->intensity;
	case BY_HEADROOM: return o->headroom;
	default: return o->step->index;
	}
}

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct rg_app *a = ctx;
	int ia = *(const int *)pa, ib = *(const int *)pb, d;
	const struct rg_op_stat *x = &a->analysis->ops[ia], *y = &a->analysis->ops[ib];

	if (a->sort == BY_TYPE) {
		d = strcmp(x->step->op_type, y->step->op_type);
		if (a->descending)
			d = -d;
	} else {
		d = by_number(column_value(x, a->sort), column_value(y, a->sort), a->descending);
	}
	return d ? d : ia - ib;
}

static bool matches(const struct rg_op_stat *o, const char *filter)
{
	return !*filter || strcasestr(o->step->name, filter) || strcasestr(o->step->op_type, filter) ||
	       strcasestr(o->step->kernel, filter) || (o->bound && strcasestr(o->bound, filter));
}

void rg_ops_refresh(struct rg_app *a)
{
	int n = 0;

	if (!a->analysis)
		return;
	for (int i = 0; i < a->analysis->n_ops; i++)
		if (matches(&a->analysis->ops[i], a->filter))
			a->order[n++] = i;
	qsort_r(a->order, (size_t)n, sizeof(*a->order), compare, a);
	a->ops_list.n = n;
	if (a->ops_list.cursor >= n)
		a->ops_list.cursor = n > 0 ? n - 1 : 0;
}

/* Three significant digits of v times scale; "-" when unknown. */
static const char *number(char *out, double v)
{
	if (isnan(v))
		return "-";
	snprintf(out, 16, fabs(v) < 9.995 ? "%.2f" : fabs(v) < 99.95 ? "%.1f" : "%.0f", v);
	return out;
}

static void draw_op(struct rg_cells *c, int y, const struct rg_op_stat *o, int name_width)
{
	char time[32], share[16], gf[16], gb[16], ai[16], head[16];
	const struct rg_step_row *s = o->step;
	int x = 1, w = c->width;

	rg_cells_name(c, x, y, name_width, RG_ROLE_NORMAL, s->name);
	x += name_width + 1;
	rg_cells_text(c, x, y, 12, RG_ROLE_NORMAL, s->op_type);
	rg_cells_text(c, x + 13, y, 9, RG_ROLE_NORMAL, s->kernel);
	x += 23;
	if (w >= 110) {
		rg_cells_text(c, x, y, 16, RG_ROLE_NORMAL, s->shape);
		x += 17;
	}
	rg_cells_right(c, x, y, 8, RG_ROLE_NORMAL, rg_fmt_ns(time, o->time_ns));
	rg_cells_right(c, x + 9, y, 5, RG_ROLE_NORMAL, number(share, 100 * o->share));
	rg_cells_right(c, x + 15, y, 5, RG_ROLE_NORMAL, number(gf, o->flop_rate / 1e9));
	x += 21;
	if (w >= 110) {
		rg_cells_right(c, x, y, 5, RG_ROLE_NORMAL, number(gb, o->byte_rate / 1e9));
		rg_cells_right(c, x + 6, y, 6, RG_ROLE_NORMAL, number(ai, o->intensity));
		x += 13;
	}
	rg_cells_text(c, x, y, 9, RG_ROLE_NORMAL, o->bound ? o->bound : "-");
	rg_cells_right(c, x + 9, y, 6, RG_ROLE_NORMAL, number(head, o->headroom));
	if (o->above_roof)
		rg_cells_put(c, x + 15, y, '!', RG_ROLE_BAD);
}

static void draw_heading(struct rg_cells *c, int y, int name_width)
{
	int x = 1, w = c->width;

	rg_cells_line_role(c, y, RG_ROLE_HEAD);
	rg_cells_text(c, x, y, name_width, RG_ROLE_HEAD, "name");
	x += name_width + 1;
	rg_cells_text(c, x, y, 12, RG_ROLE_HEAD, "type");
	rg_cells_text(c, x + 13, y, 9, RG_ROLE_HEAD, "kernel");
	x += 23;
	if (w >= 110) {
		rg_cells_text(c, x, y, 16, RG_ROLE_HEAD, "shape");
		x += 17;
	}
	rg_cells_right(c, x, y, 8, RG_ROLE_HEAD, "time");
	rg_cells_right(c, x + 9, y, 5, RG_ROLE_HEAD, "%");
	rg_cells_right(c, x + 15, y, 5, RG_ROLE_HEAD, "GF/s");
	x += 21;
	if (w >= 110) {
		rg_cells_right(c, x, y, 5, RG_ROLE_HEAD, "GB/s");
		rg_cells_right(c, x + 6, y, 6, RG_ROLE_HEAD, "F/B");
		x += 13;
	}
	rg_cells_text(c, x, y, 9, RG_ROLE_HEAD, "bound");
	rg_cells_right(c, x + 9, y, 6, RG_ROLE_HEAD, "x roof");
}

static void draw(struct rg_app *a, struct rg_cells *c, int top, int rows)
{
	struct rg_list *l = &a->ops_list;
	int fixed = c->width >= 110 ? 92 : 62;
	int name_width = c->width - fixed;

	if (name_width < 8)
		name_width = 8;
	rg_cells_printf(c, 1, top, c->width - 2, RG_ROLE_DIM, "%d of %d operators, by %s %s%s%s%s", l->n,
			a->analysis->n_ops, column_names[a->sort], a->descending ? "down" : "up",
			a->filter[0] || a->editing ? ", filter: " : "", a->filter, a->editing ? "_" : "");
	draw_heading(c, top + 1, name_width);
	rg_list_scroll(l, rows - 3);
	for (int i = l->top; i < l->n && i - l->top < rows - 3; i++) {
		int y = top + 2 + i - l->top;

		draw_op(c, y, &a->analysis->ops[a->order[i]], name_width);
		if (i == l->cursor)
			rg_cells_line_role(c, y, RG_ROLE_SELECTED);
	}
	if (l->n > 0) {
		const struct rg_step_row *s = a->analysis->ops[a->order[l->cursor]].step;

		rg_cells_printf(c, 1, top + rows - 1, c->width - 2, RG_ROLE_DIM, "%s: %s", s->kernel,
				*s->kernel_reason ? s->kernel_reason : "no reason was recorded");
	}
	if (l->n == 0)
		rg_cells_text(c, 2, top + 3, c->width - 4, RG_ROLE_NORMAL,
			      a->filter[0] ? "no operator matches the filter (Esc clears it)" : "no operators were recorded");
}

static bool edit_key(struct rg_app *a, int k)
{
	size_t len = strlen(a->filter);

	if (k == RG_KEY_ENTER) {
		a->editing = false;
	} else if (k == RG_KEY_ESCAPE) {
		a->editing = false;
		a->filter[0] = '\0';
	} else if (k == RG_KEY_BACKSPACE) {
		if (len)
			a->filter[len - 1] = '\0';
	} else if (k >= 0x20 && k < 0x7f && len + 1 < sizeof(a->filter)) {
		a->filter[len] = (char)k;
		a->filter[len + 1] = '\0';
	}
	rg_ops_refresh(a);
	return true;
}

static bool key(struct rg_app *a, int k)
{
	if (a->editing)
		return edit_key(a, k);
	switch (k) {
	case 's':
		a->sort = (a->sort + 1) % N_COLUMNS;
		a->descending = a->sort != BY_ORDER && a->sort != BY_TYPE;
		rg_ops_refresh(a);
		return true;
	case 'S':
		a->descending = !a->descending;
		rg_ops_refresh(a);
		return true;
	case '/':
		a->editing = true;
		return true;
	case RG_KEY_ESCAPE:
		a->filter[0] = '\0';
		rg_ops_refresh(a);
		return true;
	case RG_KEY_ENTER:
		if (a->ops_list.n > 0) {
			a->point = a->order[a->ops_list.cursor];
			a->screen = RG_SCREEN_ROOFLINE;
		}
		return true;
	default:
		return rg_list_key(&a->ops_list, k, a->page);
	}
}

const struct rg_screen rg_screen_ops = { "Operators", "s sort  S turn  / filter  Enter on Roofline", true, draw, key };
