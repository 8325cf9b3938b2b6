/*
 * A drawing surface inside the cell buffer: dots at 2x4 to a cell as braille,
 * or one ASCII mark a cell where the terminal has no UTF-8.
 */
#ifndef RG_TUI_CANVAS_H
#define RG_TUI_CANVAS_H

#include "tui/cells.h"

struct rg_canvas {
	struct rg_cells *cells;
	int x, y, width, height; /* in cells */
	bool utf8;
	double x0, x1, y0, y1;   /* data range, already in log where the axis is */
};

/* A straight line between two data points, clipped to the canvas. */
void rg_canvas_line(struct rg_canvas *k, double ax, double ay, double bx, double by, enum rg_role role, char ascii);
/* The cell of a data point; false when outside. */
bool rg_canvas_cell(const struct rg_canvas *k, double x, double y, int *cx, int *cy);

#endif
