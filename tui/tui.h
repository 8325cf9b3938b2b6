/*
 * The terminal UI: ncurses around pure screens. A screen draws into a cell
 * buffer and reacts to keys; it never calls ncurses, so tests script keys and
 * compare the buffer as text.
 */
#ifndef RG_TUI_TUI_H
#define RG_TUI_TUI_H

#include "base/error.h"
#include "store/store.h"

struct rg_tui_options {
	const char *run;          /* run to open first; NULL: the list */
	const char *db;           /* its name for commands that are shown; NULL: ridge.db */
	/* Offered as a key when a model was named: records it and returns the run.
	 * NULL: not offered. Called with the screen suspended. */
	int (*record)(void *ctx, int64_t *run_id, struct rg_error *err);
	void *record_ctx;
};

/* Needs a terminal; the error says so where there is none. */
int rg_tui_run(struct rg_store *store, const struct rg_tui_options *o, struct rg_error *err);

#endif
