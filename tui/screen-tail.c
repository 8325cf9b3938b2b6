/* Latency against percentile, on the axis of wrk2 and HdrHistogram: each nine
 * takes as much room as the one before. */
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "tui/canvas.h"
#include "tui/screens.h"

#define LEFT 10

static void mark(struct rg_cells *c, const struct rg_canvas *k, double q, double v, const char *name, double x1)
{
	double x = -log10(1 - q);
	int cx, cy;

	if (isnan(v) || x > x1 || !rg_canvas_cell(k, x, v, &cx, &cy))
		return;
	rg_cells_put(c, cx, cy, '*', RG_ROLE_ACCENT);
	if (cy > k->y)
		rg_cells_text(c, cx, cy - 1, 4, RG_ROLE_ACCENT, name);
}

static void interval(struct rg_cells *c, int x, int y, const char *name, const struct rg_interval *v)
{
	char a[32], b[32], d[32];

	rg_cells_printf(c, x, y, c->width - x, RG_ROLE_NORMAL, "%s %s  [%s, %s]", name, rg_fmt_ns(a, v->value),
			rg_fmt_ns(b, v->low), rg_fmt_ns(d, v->high));
}

static void draw(struct rg_app *app, struct rg_cells *c, int top, int rows)
{
	const struct rg_analysis *a = app->analysis;
	struct rg_canvas k = { .cells = c, .x = LEFT, .y = top + 1, .width = c->width - LEFT - 1, .height = rows - 6,
			       .utf8 = app->utf8 };
	static const struct { double q; const char *label; } ticks[] = {
		{ 0, "0" }, { 0.5, "50" }, { 0.9, "90" }, { 0.99, "99" }, { 0.999, "99.9" }, { 0.9999, "99.99" },
	};
	const double *v = a->latency_sorted_ns;
	int n = a->n_latency, half = c->width / 2;
	double span;
	char text[32];

	if (n < 2) {
		rg_cells_wrap(c, 2, top + 1, c->width - 4, rows - 1, RG_ROLE_NORMAL,
			      "Fewer than two timed inferences: no distribution.\nRecord again with more --iterations.");
		return;
	}
	span = v[n - 1] - v[0];
	k.x0 = 0;
	k.x1 = fmax(1, log10((double)n)); /* the last sample stands at 1 - 1/n */
	k.y0 = v[0] - 0.05 * span;
	k.y1 = v[n - 1] + 0.1 * span;
	if (!(k.y1 > k.y0))
		k.y1 = k.y0 + 1;
	for (int i = 0; i + 1 < n; i++) {
		double xa = -log10(1 - (double)i / n), xb = -log10(1 - (double)(i + 1) / n);

		if (isfinite(xb))
			rg_canvas_line(&k, xa, v[i], fmin(xb, k.x1), v[i + 1], RG_ROLE_NORMAL, '.');
	}
	for (int i = 0; i <= 4; i++) {
		double y = k.y0 + (k.y1 - k.y0) * i / 4;
		int row = k.y + k.height - 1 - (k.height - 1) * i / 4;

		rg_cells_right(c, 0, row, LEFT - 1, RG_ROLE_DIM, rg_fmt_ns(text, y));
	}
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		int cx, cy;

		if (rg_canvas_cell(&k, -log10(1 - ticks[i].q), k.y0 + 1e-9 * (k.y1 - k.y0), &cx, &cy))
			rg_cells_text(c, cx, k.y + k.height, 6, RG_ROLE_DIM, ticks[i].label);
	}
	mark(c, &k, 0.5, a->p50.value, "P50", k.x1);
	mark(c, &k, 0.95, a->p95.value, "P95", k.x1);
	mark(c, &k, 0.99, a->p99.value, "P99", k.x1);
	rg_cells_printf(c, 1, top, c->width - 2, RG_ROLE_HEAD, "latency by percentile, %d inferences without the hook, measured", n);
	interval(c, 2, top + rows - 4, "P50", &a->p50);
	interval(c, 2, top + rows - 3, "P95", &a->p95);
	interval(c, 2, top + rows - 2, "P99", &a->p99);
	rg_cells_printf(c, half, top + rows - 4, c->width - half, RG_ROLE_NORMAL, "least    %s", rg_fmt_ns(text, a->min_ns));
	rg_cells_printf(c, half, top + rows - 3, c->width - half, RG_ROLE_NORMAL, "largest  %s", rg_fmt_ns(text, a->max_ns));
	rg_cells_printf(c, half, top + rows - 2, c->width - half, RG_ROLE_NORMAL, "own overhead  x %.4f [%.4f, %.4f]",
			a->overhead.value, a->overhead.low, a->overhead.high);
	rg_cells_text(c, 2, top + rows - 1, c->width - 3, RG_ROLE_DIM,
		      "[95 % interval]; \"-\": too few samples to bound that side");
}

static bool key(struct rg_app *a, int k)
{
	return false;
}

const struct rg_screen rg_screen_tail = { "Tail", "latency distribution", true, draw, key };
