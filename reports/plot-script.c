/*
 * Terminals, margins, quoting and titles of gnuplot scripts.
 */
#include "reports/plot-script.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/report-run.h"
#include "reports/table.h"

static bool ends_in(const char *s, const char *ending)
{
	size_t n = strlen(s), m = strlen(ending);

	return n > m && strcmp(s + n - m, ending) == 0;
}

int rg_canvas_init(struct rg_canvas *c, const struct rg_plot_options *o, struct rg_error *err)
{
	const char *out = o->output ? o->output : "-";
	bool text;

	memset(c, 0, sizeof(*c));
	if (strcmp(out, "-") == 0)
		c->kind = RG_PLOT_TERMINAL;
	else if (ends_in(out, ".svg") || ends_in(out, ".gp"))
		c->kind = RG_PLOT_SVG;
	else if (ends_in(out, ".png"))
		c->kind = RG_PLOT_PNG;
	else if (ends_in(out, ".pdf"))
		c->kind = RG_PLOT_PDF;
	else {
		rg_error_set(err, RG_EUSAGE,
			     "the ending says the form of the picture, and this one is none of them");
		rg_error_hint(err,
			      "end it in .svg, .png, .pdf, or .gp for the script; - draws in the terminal");
		return rg_error_at(err, "%s", out);
	}
	text = c->kind == RG_PLOT_TERMINAL;
	c->width = o->width > 0 ? o->width : text ? 80 : 800;
	c->height = o->height > 0 ? o->height : text ? 23 : 600;
	if (text) {
		c->char_w = c->char_h = 1;
		c->left = 10.0 / c->width;
		c->right = 1 - 2.0 / c->width;
		c->bottom = 4.5 / c->height;
		c->top = 1 - 3.0 / c->height;
	} else {
		c->char_w = 6.2;
		c->char_h = 14;
		c->left = 76.0 / c->width;
		c->right = 1 - 18.0 / c->width;
		c->bottom = 104.0 / c->height;
		c->top = 1 - 52.0 / c->height;
	}
	return 0;
}

void rg_script_quote(struct rg_str *out, const char *text, int width)
{
	char *clean = rg_text_clean(text);
	struct rg_str s = { 0 };

	if (!clean) {
		out->failed = true;
		return;
	}
	if (width > 0)
		rg_text_shorten(&s, clean, width);
	else
		rg_str_add(&s, clean);
	/* gnuplot 5.4 takes two quotes at the beginning for an empty string, whatever follows. */
	rg_str_add(out, rg_str_text(&s)[0] == '\'' ? "' " : "'");
	for (const char *p = rg_str_text(&s); *p; p++)
		rg_str_addn(out, *p == '\'' ? "''" : p, *p == '\'' ? 2 : 1);
	rg_str_add(out, "'");
	if (s.failed)
		out->failed = true;
	rg_str_free(&s);
	rg_free(clean);
}

void rg_script_begin(struct rg_str *out, const struct rg_canvas *c, const struct rg_plot_options *o)
{
	rg_str_add(out, "# written by ridge; gnuplot 5.4 or later\nreset\nset encoding utf8\n");
	switch (c->kind) {
	case RG_PLOT_TERMINAL:
		rg_str_printf(out, "set terminal dumb nofeed noenhanced size %d,%d aspect 1 %s\n", c->width,
			      c->height, o->colour ? "ansi256" : "mono");
		break;
	case RG_PLOT_SVG:
		rg_str_printf(out,
			      "set terminal svg noenhanced size %d,%d font 'sans,11' background '#ffffff'\n",
			      c->width, c->height);
		break;
	case RG_PLOT_PNG:
		/* The one by cairo smooths its lines; the other is there without it. */
		rg_str_printf(
		    out,
		    "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
		    "  set terminal pngcairo noenhanced size %d,%d font 'sans,8.25' background '#ffffff'\n"
		    "} else {\n  set terminal png noenhanced size %d,%d background '#ffffff'\n}\n",
		    c->width, c->height, c->width, c->height);
		break;
	case RG_PLOT_PDF:
		/* 100 pixels to the inch, so that 800x600 is 8 by 6 inches. */
		rg_str_printf(
		    out,
		    "set terminal pdfcairo noenhanced size %.2fin,%.2fin font 'sans,6' fontscale 1.0 "
		    "background '#ffffff'\n",
		    c->width / 100.0, c->height / 100.0);
		break;
	}
	rg_str_printf(out, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n", c->left, c->right);
	rg_str_printf(out, "set bmargin at screen %.5f\nset tmargin at screen %.5f\n", c->bottom, c->top);
	rg_str_add(out, "set border 31 linecolor rgb '#404040'\nset minussign\n");
	if (c->kind != RG_PLOT_TERMINAL)
		rg_str_add(out,
			   "set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb '#e4e4e4'\n"
			   "set style textbox opaque noborder fillcolor rgb '#ffffff' margins 0.3,0.3\n");
	else
		rg_str_add(out, "unset grid\n");
}

void rg_script_title(struct rg_str *out, const struct rg_canvas *c, const char *what,
		     const struct rg_analysis *a)
{
	const struct rg_recording *r = a->rec;
	struct rg_str one = { 0 }, two = { 0 };
	int room = (int)(c->width / c->char_w * (c->kind == RG_PLOT_TERMINAL ? 1 : 0.95)) - 2;
	char date[32];

	rg_report_date(date, r->run.started_unix_ns, "%Y-%m-%d");
	rg_str_printf(&one, "%s: %s", what,
		      r->run.model_name && *r->run.model_name ? r->run.model_name : "(no name)");
	if (a->batch >= 0)
		rg_str_printf(&one, ", batch %lld", (long long)a->batch);
	if (rg_report_is_static(r))
		rg_str_add(&one, ", planned");
	else
		rg_str_printf(&one, ", run %lld", (long long)r->run.id);
	rg_str_printf(&two, "%s, %d thread%s, %s", rg_recording_text(r, "machine.cpu", "unknown CPU"),
		      r->run.threads, r->run.threads == 1 ? "" : "s", date);
	rg_str_add(out, "set title ");
	rg_script_quote(out, rg_str_text(&one), room);
	rg_str_add(out, ".\"\\n\".");
	rg_script_quote(out, rg_str_text(&two), room);
	rg_str_add(out, c->kind == RG_PLOT_TERMINAL ? "\n" : " offset 0,-0.3\n");
	if (one.failed || two.failed)
		out->failed = true;
	rg_str_free(&one);
	rg_str_free(&two);
}
