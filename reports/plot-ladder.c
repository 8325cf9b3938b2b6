/*
 * The plot of the ladder: a group of columns for each shape, a column for each rung on a
 * logarithmic scale (the first rung and the last are apart by two powers of ten), float32
 * in blues and int8 in oranges, and a line for each roof.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/ladder.h"
#include "reports/plot-script.h"
#include "reports/table.h"

/* Every rung there is, in its place, its colour and its letter on a terminal. */
static const struct {
	const char *rung, *title, *colour;
	char letter;
} rungs[] = {
	{ "naive", "naive", "#C6DBEF", 'n' },
	{ "ikj", "ikj", "#9ECAE1", 'i' },
	{ "tiled", "tiled", "#6BAED6", 't' },
	{ "simd", "simd", "#3182BD", 's' },
	{ "ridge", "ridge", "#08519C", 'R' },
	{ "openblas", "openblas", "#969696", 'o' },
	{ "int8-scalar", "int8 scalar", "#FDD0A2", 'c' },
	{ "int8-simd", "int8 simd", "#FDAE6B", 'v' },
	{ "int8-blocked", "int8 blocked", "#F16913", 'b' },
	{ "int8-ridge", "int8 ridge", "#A63603", '8' },
};
#define RUNGS ((int)(sizeof(rungs) / sizeof(rungs[0])))

static bool same_shape(const struct rg_ladder_row *a, const struct rg_ladder_row *b)
{
	return a->m == b->m && a->k == b->k && a->n == b->n;
}

/* Place of row i's shape among all shapes, from 0. */
static int group_of(const struct rg_ladder_report *r, int i)
{
	int group = 0;

	for (int k = 1; k <= i; k++)
		group += !same_shape(&r->rows[k], &r->rows[k - 1]);
	return group;
}

static int rung_of(const struct rg_ladder_row *v)
{
	for (int i = 0; i < RUNGS; i++)
		if (strcmp(rungs[i].rung, v->rung) == 0)
			return i;
	return -1;
}

/* "64x64x64" as "64^3". */
static void shape_text(char out[64], const struct rg_ladder_row *v)
{
	if (v->m == v->k && v->k == v->n)
		snprintf(out, 64, "%" PRId64 "^3", v->m);
	else
		snprintf(out, 64, "%" PRId64 "x%" PRId64 "x%" PRId64, v->m, v->k, v->n);
}

static double ceiling(const struct rg_ladder_report *r, const char *level)
{
	for (int i = 0; i < r->n_ceilings; i++)
		if (strcmp(r->ceilings[i].kind, "compute") == 0 && strcmp(r->ceilings[i].level, level) == 0)
			return r->ceilings[i].value / 1e9;
	return NAN;
}

/* The roof that the rows of a type are held against. */
static const char *roof_of(const struct rg_ladder_report *r, bool int8)
{
	for (int i = 0; i < r->n_rows; i++)
		if (r->rows[i].int8 == int8 && r->rows[i].roof)
			return r->rows[i].roof;
	return NULL;
}

struct extent {
	int groups;
	double low, high;
};

static struct extent extent(const struct rg_ladder_report *r)
{
	struct extent e = { 0, INFINITY, 0 };

	for (int i = 0; i < r->n_rows; i++) {
		if (!(r->rows[i].gops > 0))
			continue;
		e.low = fmin(e.low, r->rows[i].gops);
		e.high = fmax(e.high, r->rows[i].gops);
	}
	if (!(e.high > 0))
		return e;
	e.groups = group_of(r, r->n_rows - 1) + 1;
	for (int int8 = 0; int8 < 2; int8++)
		if (roof_of(r, int8) && ceiling(r, roof_of(r, int8)) > e.high)
			e.high = ceiling(r, roof_of(r, int8));
	e.low = pow(10, floor(log10(e.low * 0.8)));
	e.high *= 1.6;
	return e;
}

static void roofs(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_canvas *c,
		  const struct extent *e)
{
	static const char *const colours[] = { "#08519C", "#A63603" };

	for (int int8 = 0; int8 < 2; int8++) {
		const char *level = roof_of(r, int8);
		double v = level ? ceiling(r, level) : NAN;
		char text[96], num[32];

		if (!(v > 0))
			continue;
		rg_str_printf(out, "set arrow from %.5g,%.8g to %.5g,%.8g nohead", -0.5, v, e->groups - 0.5, v);
		if (c->kind != RG_PLOT_TERMINAL)
			rg_str_printf(out, " dashtype 2 linewidth 1.5 linecolor rgb '%s' front", colours[int8]);
		snprintf(text, sizeof(text), "%s %s", int8 ? level : "float32 peak", rg_num3(num, v));
		rg_str_add(out, "\nset label ");
		rg_script_quote(out, text, 0);
		rg_str_printf(out, " at %.5g,%.8g left offset 0.5,0.6 front", -0.5, v);
		if (c->kind != RG_PLOT_TERMINAL)
			rg_str_printf(out, " textcolor rgb '%s'", colours[int8]);
		rg_str_add(out, "\n");
	}
}

/* Columns stand side by side within 0.9 of a group's width. */
static double place(int group, int rung)
{
	return group - 0.45 + 0.9 * (rung + 0.5) / RUNGS;
}

static void data(struct rg_str *out, const struct rg_ladder_report *r, double low, int rung, bool text)
{
	rg_str_printf(out, "$rung%d << EOD\n", rung);
	for (int i = 0; i < r->n_rows; i++) {
		const struct rg_ladder_row *v = &r->rows[i];
		double x = place(group_of(r, i), rung), half = 0.9 / RUNGS * 0.46;

		if (rung_of(v) != rung || !(v->gops > 0))
			continue;
		if (text)
			rg_str_printf(out, "%.6g %.8g\n", x, v->gops);
		else
			rg_str_printf(out, "%.6g %.8g %.6g %.6g %.8g %.8g\n", x, v->gops, x - half, x + half, low, v->gops);
	}
	rg_str_add(out, "EOD\n");
}

static bool has_rung(const struct rg_ladder_report *r, int rung)
{
	for (int i = 0; i < r->n_rows; i++)
		if (rung_of(&r->rows[i]) == rung && r->rows[i].gops > 0)
			return true;
	return false;
}

/* On a terminal the key of gnuplot would lie on the axis: a line of letters for each type below it. */
static void letters(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_canvas *c)
{
	rg_str_add(out, "unset key\n");
	for (int int8 = 0; int8 < 2; int8++) {
		struct rg_str line = { 0 };

		for (int i = 0; i < RUNGS; i++)
			if (has_rung(r, i) && (strncmp(rungs[i].rung, "int8", 4) == 0) == int8)
				rg_str_printf(&line, "%s%c %s", line.len ? "   " : "", rungs[i].letter, rungs[i].title);
		rg_str_add(out, "set label ");
		rg_script_quote(out, rg_str_text(&line), c->width - 3);
		rg_str_printf(out, " at screen %.5f,%.5f left\n", 1.5 / c->width, (1.5 - int8) / c->height);
		out->failed |= line.failed;
		rg_str_free(&line);
	}
}

static void plot(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_canvas *c, double low)
{
	bool text = c->kind == RG_PLOT_TERMINAL, first = true;

	for (int i = 0; i < RUNGS; i++)
		if (has_rung(r, i))
			data(out, r, low, i, text);
	if (text)
		letters(out, r, c);
	else
		rg_str_printf(out, "set key at screen 0.5,%.5f center center horizontal reverse Left maxrows 2 "
			      "samplen 1.5 nobox\nset style fill solid 1 noborder\n", 36.0 / c->height);
	rg_str_add(out, "plot ");
	for (int i = 0; i < RUNGS; i++) {
		if (!has_rung(r, i))
			continue;
		rg_str_printf(out, "%s$rung%d using ", first ? "" : ", \\\n", i);
		if (text)
			rg_str_printf(out, "1:2 with points pointtype '%c' title ", rungs[i].letter);
		else
			rg_str_printf(out, "1:2:3:4:5:6 with boxxyerror linecolor rgb '%s' title ", rungs[i].colour);
		rg_script_quote(out, rungs[i].title, 0);
		first = false;
	}
	rg_str_add(out, "\n");
}

int rg_plot_ladder_script(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_plot_options *o,
			  struct rg_error *err)
{
	struct rg_canvas c;
	struct extent e = extent(r);
	struct rg_str title = { 0 };
	int rc = rg_canvas_init(&c, o, err);

	if (rc)
		return rc;
	if (!e.groups)
		return rg_error_set(err, -ENODATA, "no rung was measured, so there is nothing to draw");
	if (c.kind == RG_PLOT_TERMINAL)
		c.bottom = 5.5 / c.height;
	rg_script_begin(out, &c, o);
	rg_str_printf(&title, "The ladder: matrix products, %d thread%s, %s, %s weights", r->threads,
		      r->threads == 1 ? "" : "s", r->isa, r->weights);
	rg_str_add(out, "set title ");
	rg_script_quote(out, rg_str_text(&title), (int)(c.width / c.char_w) - 2);
	rg_str_printf(out, "\nset logscale y 10\nset xrange [-0.5:%.5g]\nset yrange [%.8g:%.8g]\n", e.groups - 0.5, e.low,
		      e.high);
	rg_str_add(out, "unset xtics\nset xtics (");
	for (int i = 0, n = 0; i < r->n_rows; i++) {
		char shape[64];

		if (i && same_shape(&r->rows[i], &r->rows[i - 1]))
			continue;
		shape_text(shape, &r->rows[i]);
		rg_str_add(out, n ? ", " : "");
		rg_script_quote(out, shape, 0);
		rg_str_printf(out, " %d", n++);
	}
	rg_str_add(out, c.kind == RG_PLOT_TERMINAL ? ") scale 0\n" : ") scale 0\nset xlabel 'shape (MxKxN)'\n");
	rg_str_add(out, "set ylabel 'GOP/s, 2 a multiply-add'\n");
	roofs(out, r, &c, &e);
	plot(out, r, &c, e.low);
	out->failed |= title.failed;
	rg_str_free(&title);
	return out->failed ? rg_error_nomem(err, (unsigned long)out->len) : 0;
}
