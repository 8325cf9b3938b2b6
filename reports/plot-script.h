/*
 * What the gnuplot scripts share. All text in a script is single-quoted, where
 * gnuplot expands neither escapes, nor `commands`, nor @macros; noenhanced
 * terminals take no markup from it; names never stand in data blocks.
 */
#ifndef RG_REPORTS_PLOT_SCRIPT_H
#define RG_REPORTS_PLOT_SCRIPT_H

#include "reports/plot.h"

enum rg_plot_kind { RG_PLOT_TERMINAL, RG_PLOT_SVG, RG_PLOT_PNG, RG_PLOT_PDF };

/* The canvas: what the script's margins are computed from. */
struct rg_canvas {
	enum rg_plot_kind kind;
	int width, height;             /* pixels or characters */
	double left, right, bottom, top; /* of the plot area, fractions of the canvas */
	double char_w, char_h;         /* of the labels' font, in canvas units */
};

/* By the ending of o->output (.svg .png .pdf; .gp counts as .svg; "-"). */
int rg_canvas_init(struct rg_canvas *c, const struct rg_plot_options *o, struct rg_error *err);
/* set terminal, encoding, margins, grid. */
void rg_script_begin(struct rg_str *out, const struct rg_canvas *c, const struct rg_plot_options *o);
/* 'text', cleaned, shortened to at most `width` characters (0: whole). */
void rg_script_quote(struct rg_str *out, const char *text, int width);
/* Two lines above the plot: what it shows; machine, threads, date. */
void rg_script_title(struct rg_str *out, const struct rg_canvas *c, const char *what,
		     const struct rg_analysis *a);

#endif
