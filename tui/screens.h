/* Screens: one file each, a table of functions. */
#ifndef RG_TUI_SCREENS_H
#define RG_TUI_SCREENS_H

#include "tui/app.h"

struct rg_screen {
	const char *title;
	const char *keys;    /* for the bottom line */
	bool needs_run;
	/* Draws into rows [top, top + rows). */
	void (*draw)(struct rg_app *a, struct rg_cells *c, int top, int rows);
	/* true: the key was used. */
	bool (*key)(struct rg_app *a, int key);
};

extern const struct rg_screen rg_screen_runs, rg_screen_ops, rg_screen_roofline, rg_screen_tail, rg_screen_check,
	rg_screen_path;

/* Moves a list's cursor for a key; true when it was one of the list's keys. */
bool rg_list_key(struct rg_list *l, int key, int page);
/* Scrolls so that the cursor is inside `rows` lines. */
void rg_list_scroll(struct rg_list *l, int rows);
/* Sorts and filters a->order anew. */
void rg_ops_refresh(struct rg_app *a);
enum rg_role rg_verdict_role(enum rg_verdict v);

#endif
