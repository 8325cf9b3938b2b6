/* The list of runs, newest first. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tui/screens.h"

static void draw(struct rg_app *a, struct rg_cells *c, int top, int rows)
{
	struct rg_list *l = &a->runs_list;
	int w = c->width, model = w - 68;

	model = model < 10 ? 10 : model > 40 ? 40 : model;
	if (a->n_runs == 0) {
		rg_cells_wrap(c, 2, top + 1, w - 4, rows - 1, RG_ROLE_NORMAL,
			      "Nothing recorded in this database yet.\nRecord something with\nridge record builtin:resnet50");
		return;
	}
	rg_cells_printf(c, 1, top, w - 2, RG_ROLE_HEAD, "%5s  %-16s %-*s %3s %8s %6s  %-11s %s", "run", "started",
			model, "model", "thr", "median", "n", "status", "tag");
	rg_list_scroll(l, rows - 1);
	for (int i = l->top; i < l->n && i - l->top < rows - 1; i++) {
		const struct rg_run *r = &a->runs[i];
		time_t t = (time_t)(r->started_unix_ns / 1000000000);
		struct tm tm;
		char when[32] = "-", p50[32];
		int y = top + 1 + i - l->top;

		if (gmtime_r(&t, &tm))
			strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
		rg_cells_printf(c, 1, y, w - 2, RG_ROLE_NORMAL, "%5" PRId64 "  %-16s %-*.*s %3d %8s %6" PRId64 "  %-11s %s",
				r->id, when, model, model, r->model_name, r->threads,
				rg_fmt_ns(p50, r->p50_ns), r->n_iterations, rg_run_status_name(r->status), r->tag);
		if (i == l->cursor)
			rg_cells_line_role(c, y, RG_ROLE_SELECTED);
	}
}

static bool key(struct rg_app *a, int k)
{
	struct rg_error err = RG_ERROR_INIT;

	if (k == RG_KEY_ENTER && a->n_runs > 0) {
		if (rg_app_open(a, a->runs[a->runs_list.cursor].id, &err))
			snprintf(a->message, sizeof(a->message), "%s", err.message);
		else
			a->screen = RG_SCREEN_OPS;
		return true;
	}
	return rg_list_key(&a->runs_list, k, a->page);
}

const struct rg_screen rg_screen_runs = { "Runs", "Enter open  R record  r reload", false, draw, key };
