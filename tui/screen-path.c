/* The critical path of the inference nearest to the median, as segments that
 * sum to the wall time. */
#include <inttypes.h>

#include "base/str.h"
#include "tui/screens.h"

static const char *kind_name(enum rg_segment_kind k)
{
	switch (k) {
	case RG_SEG_STEP: return "data";
	case RG_SEG_RESOURCE: return "lane busy";
	case RG_SEG_GAP: break;
	}
	return "gap";
}

static void draw(struct rg_app *a, struct rg_cells *c, int top, int rows)
{
	struct rg_list *l = &a->path_list;
	const struct rg_path *p = a->path;
	char wall[32], least[32];
	int bar = c->width - 66;

	if (!p) {
		rg_cells_wrap(c, 2, top + 1, c->width - 4, rows - 1, RG_ROLE_NORMAL, a->path_why);
		return;
	}
	rg_cells_printf(c, 1, top, c->width - 2, RG_ROLE_DIM,
			"inference %d%s: %s wall; longest data chain %s, parallelism %.2f", p->iteration,
			p->cold ? " (cold)" : "", rg_fmt_ns(wall, (double)p->wall_ns), rg_fmt_ns(least, (double)p->data_path_ns),
			p->parallelism);
	rg_cells_line_role(c, top + 1, RG_ROLE_HEAD);
	rg_cells_printf(c, 1, top + 1, c->width - 2, RG_ROLE_HEAD, "%10s %10s %6s  %-9s %s", "at", "takes", "%", "why", "step");
	rg_list_scroll(l, rows - 2);
	for (int i = l->top; i < l->n && i - l->top < rows - 2; i++) {
		const struct rg_segment *s = &p->segments[i];
		double took = (double)(s->end_ns - s->start_ns), share = p->wall_ns ? took / (double)p->wall_ns : 0;
		char at[32], t[32];
		int y = top + 2 + i - l->top;

		rg_cells_printf(c, 1, y, 64, s->kind == RG_SEG_GAP ? RG_ROLE_DIM : RG_ROLE_NORMAL, "%10s %10s %6.2f  %-9s",
				rg_fmt_ns(at, (double)(s->start_ns - p->segments[0].start_ns)), rg_fmt_ns(t, took),
				100 * share, kind_name(s->kind));
		if (s->step >= 0)
			rg_cells_name(c, 41, y, 24, RG_ROLE_NORMAL, a->rec->steps[s->step].name);
		for (int x = 0; x < (int)(share * bar + 0.5) && x < bar; x++)
			rg_cells_put(c, 66 + x, y, a->utf8 ? 0x2588 : '#', RG_ROLE_ACCENT);
		if (i == l->cursor)
			rg_cells_line_role(c, y, RG_ROLE_SELECTED);
	}
}

static bool key(struct rg_app *a, int k)
{
	return rg_list_key(&a->path_list, k, a->page);
}

const struct rg_screen rg_screen_path = { "Path", "up down segment", true, draw, key };
