/* The application: which screen is shown, frame, keys common to all screens. */
#include "tui/app.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tui/screens.h"

#define MIN_WIDTH 40
#define MIN_HEIGHT 10

static const struct rg_screen *const screens[RG_SCREEN_COUNT] = {
	[RG_SCREEN_RUNS] = &rg_screen_runs,   [RG_SCREEN_OPS] = &rg_screen_ops,
	[RG_SCREEN_ROOFLINE] = &rg_screen_roofline, [RG_SCREEN_TAIL] = &rg_screen_tail,
	[RG_SCREEN_CHECK] = &rg_screen_check, [RG_SCREEN_PATH] = &rg_screen_path,
};

static const char help_text[] =
	"1-6, Tab      screens: runs, operators, Roofline, tail, checklist, path\n"
	"arrows, j k   move          PgUp PgDn  a page      g G  first, last\n"
	"Enter         open the run under the cursor\n"
	"s S           operators: next column to sort by, turn the order round\n"
	"/             operators: filter by name, type or kernel; Esc clears it\n"
	"n p           Roofline: next and previous operator by time\n"
	"R             record the model that was named on the command line\n"
	"r             read the list of runs again\n"
	"?             this help     q  back, then quit\n"
	" \n"
	"m measured   ~ modelled   s simulated   d declared   - unavailable\n"
	"Times are medians; a bound names the roof that limits an operator.";

static void close_run(struct rg_app *a)
{
	rg_checklist_free(a->check);
	rg_path_free(a->path);
	rg_analysis_free(a->analysis);
	rg_recording_free(a->rec);
	rg_free(a->order);
	a->check = NULL;
	a->path = NULL;
	a->analysis = NULL;
	a->rec = NULL;
	a->order = NULL;
	a->point = -1;
	memset(&a->ops_list, 0, sizeof(a->ops_list));
	memset(&a->check_list, 0, sizeof(a->check_list));
	memset(&a->path_list, 0, sizeof(a->path_list));
}

int rg_app_open(struct rg_app *a, int64_t run, struct rg_error *err)
{
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;
	struct rg_path *path = NULL;
	struct rg_checklist *check = NULL;
	struct rg_error why = RG_ERROR_INIT;
	int *order;
	int rc = rg_store_load(a->store, run, &rec, err);

	if (!rc)
		rc = rg_analyze(rec, &an, err);
	if (!rc)
		rc = rg_check_run(an, a->opt->db, &check, err);
	order = rc ? NULL : rg_calloc((size_t)an->n_ops + 1, sizeof(*order));
	if (!rc && !order)
		rc = rg_error_nomem(err, (size_t)an->n_ops * sizeof(*order));
	if (rc) {
		rg_checklist_free(check);
		rg_analysis_free(an);
		rg_recording_free(rec);
		return rc;
	}
	/* a run without spans has no path, which the path screen says */
	if (rg_path_find(an, &path, &why))
		path = NULL;
	close_run(a);
	snprintf(a->path_why, sizeof(a->path_why), "%.290s", why.message);
	a->rec = rec;
	a->analysis = an;
	a->check = check;
	a->path = path;
	a->order = order;
	a->check_list.n = RG_CHECK_QUESTIONS;
	a->path_list.n = path ? path->n_segments : 0;
	rg_ops_refresh(a);
	if (an->n_ops > 0 && a->ops_list.n > 0)
		a->point = a->order[0];
	return 0;
}

int rg_app_reload(struct rg_app *a, struct rg_error *err)
{
	struct rg_run *runs = NULL;
	int n = 0, rc = rg_store_list_runs(a->store, &runs, &n, err);

	if (rc)
		return rc;
	rg_store_free_runs(a->runs, a->n_runs);
	a->runs = runs;
	a->n_runs = n;
	a->runs_list.n = n;
	if (a->runs_list.cursor >= n)
		a->runs_list.cursor = n > 0 ? n - 1 : 0;
	return 0;
}

int rg_app_new(struct rg_store *store, const struct rg_tui_options *o, struct rg_app **out, struct rg_error *err)
{
	struct rg_app *a = rg_calloc(1, sizeof(*a));
	int64_t run = -1;
	int rc;

	if (!a)
		return rg_error_nomem(err, sizeof(*a));
	a->store = store;
	a->opt = o;
	a->point = -1;
	a->descending = true;
	rc = rg_app_reload(a, err);
	if (!rc && o->run) {
		rc = rg_store_find_run(store, o->run, &run, err);
		if (!rc)
			rc = rg_app_open(a, run, err);
		if (!rc)
			a->screen = RG_SCREEN_OPS;
	}
	if (rc) {
		rg_app_free(a);
		return rc;
	}
	for (int i = 0; i < a->n_runs; i++)
		if (a->runs[i].id == run)
			a->runs_list.cursor = i;
	*out = a;
	return 0;
}

void rg_app_free(struct rg_app *a)
{
	if (!a)
		return;
	close_run(a);
	rg_store_free_runs(a->runs, a->n_runs);
	rg_free(a);
}

bool rg_list_key(struct rg_list *l, int key, int page)
{
	int to = l->cursor;

	switch (key) {
	case RG_KEY_UP: case 'k': to--; break;
	case RG_KEY_DOWN: case 'j': to++; break;
	case RG_KEY_PAGE_UP: to -= page > 1 ? page - 1 : 1; break;
	case RG_KEY_PAGE_DOWN: to += page > 1 ? page - 1 : 1; break;
	case RG_KEY_HOME: case 'g': to = 0; break;
	case RG_KEY_END: case 'G': to = l->n - 1; break;
	default: return false;
	}
	if (to >= l->n)
		to = l->n - 1;
	l->cursor = to < 0 ? 0 : to;
	return true;
}

void rg_list_scroll(struct rg_list *l, int rows)
{
	if (rows < 1)
		rows = 1;
	if (l->top > l->n - rows)
		l->top = l->n - rows;
	if (l->cursor < l->top)
		l->top = l->cursor;
	if (l->cursor >= l->top + rows)
		l->top = l->cursor - rows + 1;
	if (l->top < 0)
		l->top = 0;
}

enum rg_role rg_verdict_role(enum rg_verdict v)
{
	switch (v) {
	case RG_VERDICT_GOOD: return RG_ROLE_GOOD;
	case RG_VERDICT_ATTENTION: return RG_ROLE_WARN;
	case RG_VERDICT_PROBLEM: return RG_ROLE_BAD;
	case RG_VERDICT_UNKNOWN: break;
	}
	return RG_ROLE_DIM;
}

static void go(struct rg_app *a, int screen)
{
	if (screens[screen]->needs_run && !a->analysis) {
		snprintf(a->message, sizeof(a->message), "%s",
			 a->n_runs ? "open a run first: Enter" : "nothing recorded yet:  ridge record MODEL");
		return;
	}
	a->screen = (enum rg_screen_id)screen;
}

static bool common_key(struct rg_app *a, int key)
{
	struct rg_error err = RG_ERROR_INIT;

	switch (key) {
	case '?':
		a->help = true;
		return true;
	case 'q':
		if (a->screen == RG_SCREEN_RUNS)
			a->quit = true;
		else
			a->screen = RG_SCREEN_RUNS;
		return true;
	case RG_KEY_TAB:
		go(a, (a->screen + 1) % RG_SCREEN_COUNT);
		return true;
	case RG_KEY_BACKTAB:
		go(a, (a->screen + RG_SCREEN_COUNT - 1) % RG_SCREEN_COUNT);
		return true;
	case 'r':
		if (rg_app_reload(a, &err))
			snprintf(a->message, sizeof(a->message), "%s", err.message);
		return true;
	case 'R':
		if (a->opt->record)
			a->want_record = true;
		else
			snprintf(a->message, sizeof(a->message), "name a model to record one here:  ridge tui MODEL");
		return true;
	default:
		if (key >= '1' && key < '1' + RG_SCREEN_COUNT) {
			go(a, key - '1');
			return true;
		}
		return false;
	}
}

void rg_app_key(struct rg_app *a, int key)
{
	const struct rg_screen *s = screens[a->screen];

	a->message[0] = '\0';
	if (a->help) {
		a->help = false; /* any key closes it */
		return;
	}
	/* while a filter is typed, letters are text and not commands */
	if (a->editing) {
		s->key(a, key);
		return;
	}
	if (s->key(a, key))
		return;
	common_key(a, key);
}

static void draw_frame(struct rg_app *a, struct rg_cells *c)
{
	int x = 1;
	char p50[32];

	rg_cells_line_role(c, 0, RG_ROLE_TITLE);
	if (a->analysis) {
		const struct rg_run *r = &a->rec->run;

		rg_cells_printf(c, 1, 0, c->width - 2, RG_ROLE_TITLE, "ridge  run %lld  %s  %d thread%s  median %s  %s",
				(long long)r->id, r->model_name, r->threads, r->threads == 1 ? "" : "s",
				rg_fmt_ns(p50, a->analysis->p50.value),
				r->status == RG_RUN_COMPLETE ? "" : rg_run_status_name(r->status));
	} else {
		rg_cells_text(c, 1, 0, c->width - 2, RG_ROLE_TITLE, "ridge");
	}
	for (int i = 0; i < RG_SCREEN_COUNT; i++) {
		bool here = i == (int)a->screen;

		x = rg_cells_printf(c, x, 1, c->width - x, here ? RG_ROLE_SELECTED : RG_ROLE_HEAD, "%s%d %s%s",
				    here ? "[" : " ", i + 1, screens[i]->title, here ? "]" : " ");
	}
	if (a->message[0]) {
		rg_cells_text(c, 1, c->height - 2, c->width - 2, RG_ROLE_WARN, a->message);
	}
	rg_cells_line_role(c, c->height - 1, RG_ROLE_TITLE);
	rg_cells_printf(c, 1, c->height - 1, c->width - 2, RG_ROLE_TITLE, "%s  1-%d screens  ? help  q %s",
			screens[a->screen]->keys, RG_SCREEN_COUNT, a->screen == RG_SCREEN_RUNS ? "quit" : "back");
}

void rg_app_draw(struct rg_app *a, struct rg_cells *c)
{
	int rows = c->height - 4;

	rg_cells_clear(c);
	if (c->width < MIN_WIDTH || c->height < MIN_HEIGHT) {
		rg_cells_printf(c, 0, 0, c->width, RG_ROLE_NORMAL, "needs %dx%d", MIN_WIDTH, MIN_HEIGHT);
		return;
	}
	a->page = rows;
	draw_frame(a, c);
	if (a->help) {
		rg_cells_wrap(c, 2, 3, c->width - 4, rows - 1, RG_ROLE_NORMAL, help_text);
		return;
	}
	screens[a->screen]->draw(a, c, 2, rows);
}
