/*
 * Placing labels in a plot so that they cover neither each other nor the points
 * nor the frame. Pure geometry in pixels, y upward.
 */
#ifndef RG_REPORTS_PLOT_LABEL_H
#define RG_REPORTS_PLOT_LABEL_H

#include <stdbool.h>

struct rg_box {
	double x0, y0, x1, y1;
};

#define RG_PLACE_MAX 512

struct rg_placer {
	struct rg_box frame;      /* labels stay inside */
	int n_hard;               /* never covered: points and labels already placed */
	struct rg_box hard[RG_PLACE_MAX];
	int n_lines;              /* covered only when there is nothing better: roofs */
	struct { double x0, y0, x1, y1; } lines[32];
};

void rg_place_block(struct rg_placer *p, struct rg_box b);
void rg_place_line(struct rg_placer *p, double x0, double y0, double x1, double y1);
/*
 * Finds room for a label of w x h near (x, y), whose mark has `radius`. On
 * success *out is the label's box (and is blocked from now on), *far whether it
 * stands so far off that a leader line helps. false: no room.
 */
bool rg_place_label(struct rg_placer *p, double x, double y, double radius, double w, double h,
		    struct rg_box *out, bool *far);

#endif
