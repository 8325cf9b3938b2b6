/*
 * A screen as data: a grid of cells with a code point and a role each. Screens
 * draw here; curses.c copies it to the terminal; tests read it as text.
 */
#ifndef RG_TUI_CELLS_H
#define RG_TUI_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* What a cell is for; the terminal decides how it looks. Without colour the
 * roles differ by bold, reverse and dim alone, and no meaning is lost: every
 * verdict and bound is also a word or a letter. */
enum rg_role {
	RG_ROLE_NORMAL = 0,
	RG_ROLE_TITLE,    /* bars at top and bottom */
	RG_ROLE_HEAD,     /* column headings */
	RG_ROLE_SELECTED, /* the line under the cursor */
	RG_ROLE_DIM,      /* axes, hints */
	RG_ROLE_GOOD,
	RG_ROLE_WARN,
	RG_ROLE_BAD,
	RG_ROLE_ACCENT,   /* what the eye should find */
	RG_ROLE_COUNT
};

struct rg_cell {
	uint32_t code; /* Unicode; 0 counts as a space */
	uint8_t role;
};

struct rg_cells {
	int width, height;
	struct rg_cell *cell; /* height rows of width */
};

/* false: out of memory, or a size that is not positive or absurd. */
bool rg_cells_init(struct rg_cells *c, int width, int height);
void rg_cells_free(struct rg_cells *c);
void rg_cells_clear(struct rg_cells *c);
/* One code point; outside the grid it does nothing. */
void rg_cells_put(struct rg_cells *c, int x, int y, uint32_t code, enum rg_role role);
/* UTF-8 text from (x, y), clipped to `width` columns (and to the grid); text
 * that does not fit ends in "~". Control characters and broken UTF-8 become
 * '?'. Every code point counts one column. Returns the column after it. */
int rg_cells_text(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text);
/* The same for names, whose ends tell them apart: what does not fit loses its
 * middle, which becomes "~". */
void rg_cells_name(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text);
int rg_cells_printf(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* Right-aligned within [x, x + width). */
void rg_cells_right(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text);
/* Gives a whole line one role. */
void rg_cells_line_role(struct rg_cells *c, int y, enum rg_role role);
/* The grid as UTF-8 lines without trailing spaces. */
void rg_cells_dump(const struct rg_cells *c, struct rg_str *out);
/* Breaks text into lines of at most `width` columns at spaces and draws at most
 * `rows` of them; returns how many lines the text takes. */
int rg_cells_wrap(struct rg_cells *c, int x, int y, int width, int rows, enum rg_role role, const char *text);

#endif
