/*
 * Plots by gnuplot: a script with its data becomes gnuplot's standard input, the
 * picture goes to a file (svg, png, pdf by its ending) or, with "-", to the
 * terminal as text. gnuplot is found at run time; without it the error says what
 * to install. The scripts also run by hand (-o FILE.gp).
 */
#ifndef RG_REPORTS_PLOT_H
#define RG_REPORTS_PLOT_H

#include "analyzer/ops.h"
#include "base/error.h"
#include "base/str.h"

struct rg_plot_options {
	const char *output;      /* path, or "-" for the terminal */
	int width, height;       /* pixels; 0: 800x600 (terminal: its size) */
	bool colour;             /* terminal only */
	int64_t capacity_bytes;  /* memory: a line at that height; 0: none */
};

/* The gnuplot script alone. -ENODATA: the run holds nothing that could be drawn. */
int rg_plot_roofline_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
			    struct rg_error *err);
int rg_plot_tail_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
			struct rg_error *err);
int rg_plot_memory_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
			  struct rg_error *err);
/* Runs gnuplot on a script; writes o->output by way of a temporary name. With
 * "-" the text is appended to `terminal`. */
int rg_plot_render(const char *script, const struct rg_plot_options *o, struct rg_str *terminal,
		   struct rg_error *err);

#endif
