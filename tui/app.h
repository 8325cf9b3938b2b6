/*
 * The application without a terminal: state, keys in, cells out. A screen is a
 * small table of functions (screens.h); tests script keys and read cells.
 */
#ifndef RG_TUI_APP_H
#define RG_TUI_APP_H

#include "analyzer/check.h"
#include "analyzer/ops.h"
#include "analyzer/path.h"
#include "tui/cells.h"
#include "tui/tui.h"

enum rg_key { /* plain characters are themselves */
	RG_KEY_UP = 0x1000,
	RG_KEY_DOWN,
	RG_KEY_LEFT,
	RG_KEY_RIGHT,
	RG_KEY_PAGE_UP,
	RG_KEY_PAGE_DOWN,
	RG_KEY_HOME,
	RG_KEY_END,
	RG_KEY_ENTER,
	RG_KEY_BACKSPACE,
	RG_KEY_ESCAPE,
	RG_KEY_TAB,
	RG_KEY_BACKTAB,
};

enum rg_screen_id {
	RG_SCREEN_RUNS,
	RG_SCREEN_OPS,
	RG_SCREEN_ROOFLINE,
	RG_SCREEN_TAIL,
	RG_SCREEN_CHECK,
	RG_SCREEN_PATH,
	RG_SCREEN_COUNT
};

/* Where a list stands. */
struct rg_list {
	int n, cursor, top;
};

struct rg_app {
	struct rg_store *store;
	const struct rg_tui_options *opt;
	bool utf8;                     /* the terminal shows braille */
	enum rg_screen_id screen;
	bool help, quit, want_record;
	char message[600];             /* one line above the keys; "" none */
	struct rg_run *runs;
	int n_runs;
	struct rg_list runs_list;
	/* the open run, NULL: none */
	struct rg_recording *rec;
	struct rg_analysis *analysis;
	struct rg_path *path;          /* NULL: none; path_why says why */
	char path_why[300];
	struct rg_checklist *check;
	/* operators */
	int *order;                    /* indices into analysis->ops, filtered and sorted */
	struct rg_list ops_list;
	int sort;                      /* column */
	bool descending, editing;
	char filter[64];
	/* roofline: index into analysis->ops, or -1 */
	int point;
	struct rg_list check_list, path_list;
	int page;                      /* lines of the body, set by draw */
};

/* Reads the list of runs; opens o->run when given. `o` must outlive the app. */
int rg_app_new(struct rg_store *store, const struct rg_tui_options *o, struct rg_app **out, struct rg_error *err);
void rg_app_free(struct rg_app *a);
void rg_app_key(struct rg_app *a, int key);
/* Draws the whole screen; any size is survived. */
void rg_app_draw(struct rg_app *a, struct rg_cells *c);
/* Opens a run; on failure the one that was open stays and err says why. */
int rg_app_open(struct rg_app *a, int64_t run, struct rg_error *err);
/* Reads the list of runs again. */
int rg_app_reload(struct rg_app *a, struct rg_error *err);

#endif
