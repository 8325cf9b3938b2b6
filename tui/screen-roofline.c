/* The Roofline in the terminal: log-log, a roof a memory level, operators as
 * letters by what bounds them, the chosen one marked and described. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tui/canvas.h"
#include "tui/screens.h"

#define LEFT 8 /* columns of the scale */

/* One mark for each bound, so that colour is never needed. */
static char bound_mark(const char *bound)
{
	static const struct { const char *bound; char mark; } marks[] = {
		{ "compute", 'C' }, { "L1", '1' }, { "L2", '2' }, { "L3", '3' }, { "DRAM", 'D' },
		{ "overhead", 'o' }, { "imbalance", 'i' },
	};

	for (size_t i = 0; bound && i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strcmp(bound, marks[i].bound) == 0)
			return marks[i].mark;
	return '?';
}

static bool placeable(const struct rg_op_stat *o)
{
	return o->intensity > 0 && o->flop_rate > 0 && isfinite(o->intensity) && isfinite(o->flop_rate);
}

/* Ranges that hold the roofs and all points, half a decade around. */
static bool ranges(const struct rg_analysis *a, struct rg_canvas *k)
{
	double x0 = 1e300, x1 = 0, y0 = 1e300, y1 = 0;

	for (int i = 0; i < a->n_ops; i++) {
		if (!placeable(&a->ops[i]))
			continue;
		x0 = fmin(x0, a->ops[i].intensity);
		x1 = fmax(x1, a->ops[i].intensity);
		y0 = fmin(y0, a->ops[i].flop_rate);
		y1 = fmax(y1, a->ops[i].flop_rate);
	}
	if (a->ridge_intensity > 0) {
		x0 = fmin(x0, a->ridge_intensity / 10);
		x1 = fmax(x1, a->ridge_intensity * 10);
	}
	if (a->peak.value > 0) {
		y1 = fmax(y1, a->peak.value);
		y0 = fmin(y0, a->peak.value / 1000);
	}
	if (!(x1 > 0) || !(y1 > 0))
		return false;
	k->x0 = log10(x0) - 0.2;
	k->x1 = log10(x1) + 0.2;
	k->y0 = log10(y0) - 0.2;
	k->y1 = log10(y1) + 0.3;
	return true;
}

static void draw_scales(struct rg_cells *c, const struct rg_canvas *k)
{
	int last = -100;

	for (int d = (int)ceil(k->y0); d <= (int)floor(k->y1); d++) {
		int cx, cy;
		char text[32];

		if (!rg_canvas_cell(k, k->x0, d, &cx, &cy))
			continue;
		rg_cells_right(c, 0, cy, LEFT - 1, RG_ROLE_DIM, rg_fmt_si(text, pow(10, d), ""));
	}
	for (int d = (int)ceil(k->x0); d <= (int)floor(k->x1); d++) {
		int cx, cy;

		if (!rg_canvas_cell(k, d, k->y0 + 1e-9, &cx, &cy) || cx < last + 7)
			continue;
		last = cx;
		rg_cells_printf(c, cx, k->y + k->height, 8, RG_ROLE_DIM, "%g", pow(10, d));
	}
}

static void draw_roofs(struct rg_cells *c, struct rg_canvas *k, const struct rg_analysis *a)
{
	double top = a->peak.value > 0 ? log10(a->peak.value) : k->y1;

	for (int i = 0; i < a->n_roofs; i++) {
		double bw, meet, left;
		int cx, cy;

		if (!(a->roofs[i].value > 0))
			continue;
		bw = log10(a->roofs[i].value);
		meet = top - bw;             /* where it reaches the peak */
		left = fmax(k->x0, k->y0 - bw);
		if (left < meet)
			rg_canvas_line(k, left, left + bw, fmin(meet, k->x1), fmin(meet, k->x1) + bw, RG_ROLE_DIM, '/');
		/* its name where it enters the picture, one column in */
		if (rg_canvas_cell(k, left + 0.02 * (k->x1 - k->x0), left + bw + 0.04 * (k->y1 - k->y0), &cx, &cy))
			rg_cells_text(c, cx, cy, 5, RG_ROLE_HEAD, a->roofs[i].level);
	}
	if (a->peak.value > 0) {
		char text[32];
		int cx, cy;
		double from = k->x0;

		for (int i = 0; i < a->n_roofs; i++)
			if (a->roofs[i].value > 0) {
				from = fmax(k->x0, top - log10(a->roofs[i].value));
				break;
			}
		rg_canvas_line(k, from, top, k->x1, top, RG_ROLE_DIM, '-');
		if (rg_canvas_cell(k, from, top, &cx, &cy) && cy > k->y)
			rg_cells_printf(c, c->width - 21, cy - 1, 20, RG_ROLE_HEAD, "peak %9s%s",
					rg_fmt_si(text, a->peak.value, ""), "FLOP/s");
	}
}

static void draw(struct rg_app *app, struct rg_cells *c, int top, int rows)
{
	const struct rg_analysis *a = app->analysis;
	struct rg_canvas k = { .cells = c, .x = LEFT, .y = top, .width = c->width - LEFT - 1, .height = rows - 4,
			       .utf8 = app->utf8 };
	int order_n = app->ops_list.n;
	char t[32], f[32], b[32], share[32], head[32];

	if (!ranges(a, &k)) {
		rg_cells_wrap(c, 2, top + 1, c->width - 4, rows - 1, RG_ROLE_NORMAL,
			      "No operator of this run has both known work and a time, so there is nothing to place.");
		return;
	}
	rg_cells_text(c, 1, top, LEFT, RG_ROLE_DIM, "FLOP/s");
	draw_scales(c, &k);
	draw_roofs(c, &k, a);
	/* least important first, so that the long ones end on top */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < a->n_ops; i++) {
			const struct rg_op_stat *o = &a->ops[i];
			int cx, cy;

			if (!placeable(o) || (o->share > 0.02) != (pass == 1))
				continue;
			if (rg_canvas_cell(&k, log10(o->intensity), log10(o->flop_rate), &cx, &cy))
				rg_cells_put(c, cx, cy, (uint32_t)bound_mark(o->bound), o->share > 0.02 ? RG_ROLE_ACCENT : RG_ROLE_NORMAL);
		}
	}
	rg_cells_text(c, LEFT, top + rows - 3, c->width - LEFT, RG_ROLE_DIM,
		      "FLOP/byte   C compute 1 2 3 caches D DRAM o overhead i imbalance");
	if (app->point >= 0 && app->point < a->n_ops) {
		const struct rg_op_stat *o = &a->ops[app->point];
		int cx, cy, at = 0;

		for (int i = 0; i < order_n; i++)
			if (app->order[i] == app->point)
				at = i + 1;
		if (placeable(o) && rg_canvas_cell(&k, log10(o->intensity), log10(o->flop_rate), &cx, &cy))
			rg_cells_put(c, cx, cy, '@', RG_ROLE_SELECTED);
		rg_cells_printf(c, 1, top + rows - 2, c->width - 2, RG_ROLE_ACCENT, "@ %s  %s  %s", o->step->name,
				o->step->op_type, o->step->shape);
		rg_cells_printf(c, 1, top + rows - 1, c->width - 2, RG_ROLE_NORMAL,
				"%d/%d  %s %s %%  %s  %s FLOP/byte  %s, %s x roof%s", at, order_n,
				rg_fmt_ns(t, o->time_ns), rg_fmt_si(share, 100 * o->share, ""),
				rg_fmt_si(f, o->flop_rate, "FLOP/s"), rg_fmt_si(b, o->intensity, ""),
				o->bound ? o->bound : "bound unknown", rg_fmt_si(head, o->headroom, ""),
				o->above_roof ? "  ABOVE ROOF" : "");
	}
}

static bool key(struct rg_app *a, int k)
{
	int n = a->ops_list.n, at = -1;

	for (int i = 0; i < n; i++)
		if (a->order[i] == a->point)
			at = i;
	if (k == 'n' || k == RG_KEY_DOWN || k == RG_KEY_RIGHT || k == 'j')
		at = at + 1 < n ? at + 1 : at;
	else if (k == 'p' || k == RG_KEY_UP || k == RG_KEY_LEFT || k == 'k')
		at = at > 0 ? at - 1 : 0;
	else
		return false;
	if (n > 0 && at >= 0) {
		a->point = a->order[at];
		a->ops_list.cursor = at;
	}
	return true;
}

const struct rg_screen rg_screen_roofline = { "Roofline", "n p next, previous operator", true, draw, key };
