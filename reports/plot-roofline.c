/*
 * The Roofline plot: log-log, a diagonal roof a memory level, the flat roof of
 * the peak, the ridge point, operators as points whose area is their share of
 * the time. Ranges and label places are computed here, so the picture does not
 * depend on what gnuplot would guess.
 *
 * Colours are those of Okabe and Ito ("Color Universal Design", 2008), told
 * apart by most colour-blind people, and every class has its own shape as well.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/plot-label.h"
#include "reports/plot-script.h"
#include "reports/table.h"

#define N_CLASSES 8
#define MAX_LABELS 12

static const struct class {
	const char *bound;
	const char *colour;
	int point;      /* gnuplot's number of a filled shape */
	char letter;    /* in the terminal */
} classes[N_CLASSES] = {
	{"compute", "#0072B2", 7, 'C'},   {"L1", "#56B4E9", 5, '1'},      {"L2", "#009E73", 9, '2'},
	{"L3", "#E69F00", 13, '3'},       {"DRAM", "#D55E00", 11, 'D'},   {"overhead", "#CC79A7", 15, 'o'},
	{"imbalance", "#000000", 4, 'i'}, {"unknown", "#8C8C8C", 6, 'u'},
};

static int class_of(const char *bound)
{
	for (int i = 0; bound && i < N_CLASSES - 1; i++)
		if (strcmp(classes[i].bound, bound) == 0)
			return i;
	return N_CLASSES - 1;
}

struct view {
	struct rg_canvas c;
	double x0, x1, y0, y1; /* log10 of the axis ends */
	struct rg_placer placer;
};

static double px(const struct view *v, double x)
{
	return (v->c.left + (log10(x) - v->x0) / (v->x1 - v->x0) * (v->c.right - v->c.left)) * v->c.width;
}

static double py(const struct view *v, double y)
{
	return (v->c.bottom + (log10(y) - v->y0) / (v->y1 - v->y0) * (v->c.top - v->c.bottom)) * v->c.height;
}

/* Has a place on two logarithmic axes. */
static bool drawable(const struct rg_op_stat *op)
{
	return isfinite(op->intensity) && op->intensity > 0 && isfinite(op->flop_rate) && op->flop_rate > 0;
}

static bool inside(const struct view *v, const struct rg_op_stat *op)
{
	double x = drawable(op) ? log10(op->intensity) : NAN, y = drawable(op) ? log10(op->flop_rate) : NAN;

	return x >= v->x0 && x <= v->x1 && y >= v->y0 && y <= v->y1;
}

/* gnuplot's svg draws a point of the same size larger than cairo's terminals. */
static double size_of(const struct view *v, const struct rg_op_stat *op)
{
	double share = isfinite(op->share) && op->share > 0 ? op->share : 0;

	return fmax(0.8, 8 * sqrt(share)) * (v->c.kind == RG_PLOT_SVG ? 0.55 : 1);
}

/* Of the drawn mark: gnuplot's point size 1 is about 3.5 pixels here. */
static double radius_of(const struct view *v, const struct rg_op_stat *op)
{
	return v->c.kind == RG_PLOT_TERMINAL ? 0.9 : (v->c.kind == RG_PLOT_SVG ? 6.4 : 3.5) * size_of(v, op) + 1;
}

static bool usable(const struct rg_roof *r)
{
	return isfinite(r->value) && r->value > 0;
}

static void widen(double *lo, double *hi, double v)
{
	if (!(v > 0) || !isfinite(v))
		return;
	if (!(*lo <= v))
		*lo = v;
	if (!(*hi >= v))
		*hi = v;
}

/* Axis ends from the points and the ridge points; false: nothing to draw. */
static bool ranges(struct view *v, const struct rg_analysis *a)
{
	double xl = NAN, xh = NAN, yl = NAN, yh = NAN;

	for (int i = 0; i < a->n_ops; i++) {
		if (!drawable(&a->ops[i]))
			continue;
		widen(&xl, &xh, a->ops[i].intensity);
		widen(&yl, &yh, a->ops[i].flop_rate);
	}
	if (usable(&a->peak)) {
		widen(&yl, &yh, a->peak.value);
		widen(&yl, &yh, a->peak.value / 100);
		for (int i = 0; i < a->n_roofs; i++)
			if (usable(&a->roofs[i]))
				widen(&xl, &xh, a->peak.value / a->roofs[i].value);
	}
	if (!isfinite(xl) || !isfinite(yl))
		return false;
	v->x0 = log10(xl) - 0.5;
	v->x1 = log10(xh) + 0.6;
	v->y0 = log10(yl) - 0.4;
	v->y1 = log10(yh) + 0.45;
	/* A handful of odd operators must not squeeze all others into a corner. */
	if (v->x0 < v->x1 - 7)
		v->x0 = v->x1 - 7;
	if (v->y0 < v->y1 - 7)
		v->y0 = v->y1 - 7;
	if (v->x1 - v->x0 < 2)
		v->x0 -= 1;
	if (v->y1 - v->y0 < 2)
		v->y0 -= 1;
	return true;
}

static void screen_label(struct rg_str *out, const struct view *v, const struct rg_box *b, const char *text,
			 const char *colour)
{
	rg_str_add(out, "set label ");
	rg_script_quote(out, text, 0);
	rg_str_printf(out, " at screen %.5f,%.5f left front textcolor rgb '%s'%s\n", b->x0 / v->c.width,
			  (b->y0 + b->y1) / 2 / v->c.height, colour,
			  v->c.kind == RG_PLOT_TERMINAL ? "" : " boxed");
}

static void text_size(const struct view *v, const char *text, double *w, double *h)
{
	*w = rg_text_width(text) * v->c.char_w + (v->c.kind == RG_PLOT_TERMINAL ? 0 : 4);
	*h = v->c.char_h;
}

/* The two ends of a level's diagonal, inside the frame. */
static void diagonal(const struct view *v, const struct rg_analysis *a, const struct rg_roof *r, double *x0,
			 double *x1)
{
	*x0 = fmax(pow(10, v->x0), pow(10, v->y0) / r->value);
	*x1 = usable(&a->peak) ? a->peak.value / r->value : fmin(pow(10, v->x1), pow(10, v->y1) / r->value);
	*x1 = fmin(*x1, pow(10, v->x1));
}

static void roof_label(struct rg_str *out, struct view *v, const char *text, const char *colour, double x0,
			   double y0, double x1, double y1)
{
	double w, h;
	struct rg_box b;
	bool far;

	text_size(v, text, &w, &h);
	/* Along the roof from its outer end, wherever there is room first. */
	for (int i = 1; i <= 8; i++) {
		double t = i / 18.0;

		if (!rg_place_label(&v->placer, x0 + (x1 - x0) * t, y0 + (y1 - y0) * t, h / 3, w, h, &b,
					&far))
			continue;
		screen_label(out, v, &b, text, colour);
		return;
	}
}

/* Roof lines as data, their labels, and what the placer must know of them. */
static void roofs(struct rg_str *out, struct view *v, const struct rg_analysis *a)
{
	double nearest = INFINITY, x0, x1, right = pow(10, v->x1);
	char text[96], num[64];

	for (int i = 0; i < a->n_roofs; i++) {
		const struct rg_roof *r = &a->roofs[i];

		if (!usable(r))
			continue;
		diagonal(v, a, r, &x0, &x1);
		rg_str_printf(out, "$roof%d << EOD\n%.8g %.8g\n%.8g %.8g\nEOD\n", i, x0, x0 * r->value, x1,
				  x1 * r->value);
		rg_place_line(&v->placer, px(v, x0), py(v, x0 * r->value), px(v, x1), py(v, x1 * r->value));
		nearest = fmin(nearest, x1);
	}
	if (usable(&a->peak)) {
		nearest = isfinite(nearest) ? nearest : pow(10, v->x0);
		rg_str_printf(out, "$peak << EOD\n%.8g %.8g\n%.8g %.8g\nEOD\n", nearest, a->peak.value, right,
				  a->peak.value);
		rg_place_line(&v->placer, px(v, nearest), py(v, a->peak.value), px(v, right),
				  py(v, a->peak.value));
		snprintf(text, sizeof(text), "peak %s", rg_num_si(num, a->peak.value, "FLOP/s"));
		roof_label(out, v, text, "#0072B2", px(v, right), py(v, a->peak.value), px(v, nearest),
			   py(v, a->peak.value));
	}
	for (int i = 0; i < a->n_roofs; i++) {
		const struct rg_roof *r = &a->roofs[i];

		if (!usable(r))
			continue;
		diagonal(v, a, r, &x0, &x1);
		snprintf(text, sizeof(text), "%.12s %s", r->level, rg_num_si(num, r->value, "B/s"));
		roof_label(out, v, text, classes[class_of(r->level)].colour, px(v, x0), py(v, x0 * r->value),
			   px(v, x1), py(v, x1 * r->value));
	}
}

static void ridge(struct rg_str *out, struct view *v, const struct rg_analysis *a)
{
	double x = a->ridge_intensity, y = a->peak.value, w, h;
	char text[64], num[64];
	struct rg_box b;
	bool far;

	if (!isfinite(x) || !usable(&a->peak) || log10(x) < v->x0 || log10(x) > v->x1)
		return;
	rg_str_printf(out, "$ridge << EOD\n%.8g %.8g\nEOD\n", x, y);
	if (v->c.kind != RG_PLOT_TERMINAL)
		rg_str_printf(out,
				  "set arrow from %.8g,%.8g to %.8g,%.8g nohead dashtype 3 linewidth 1 linecolor "
				  "rgb '#404040'\n",
				  x, pow(10, v->y0), x, y);
	snprintf(text, sizeof(text), "ridge %s FLOP/byte", rg_num3(num, x));
	text_size(v, text, &w, &h);
	rg_place_block(&v->placer,
			   (struct rg_box){px(v, x) - 5 * v->c.char_w / 6, py(v, y) - v->c.char_h / 3,
					   px(v, x) + 5 * v->c.char_w / 6, py(v, y) + v->c.char_h / 3});
	if (rg_place_label(&v->placer, px(v, x), py(v, y), v->c.char_h / 3, w, h, &b, &far))
		screen_label(out, v, &b, text, "#000000");
}

/* Operators by class; blocks their places. Returns how many were drawn, and
 * the share of time of those that were not. */
static int points(struct rg_str *out, struct view *v, const struct rg_analysis *a, int *count, double *hidden)
{
	int drawn = 0;

	*hidden = 0;
	memset(count, 0, N_CLASSES * sizeof(*count));
	for (int k = 0; k < N_CLASSES; k++) {
		for (int i = 0; i < a->n_ops; i++) {
			const struct rg_op_stat *op = &a->ops[i];
			double r;

			if (class_of(op->bound) != k)
				continue;
			if (!inside(v, op)) {
				*hidden += isfinite(op->share) ? op->share : 0;
				continue;
			}
			if (count[k]++ == 0)
				rg_str_printf(out, "$class%d << EOD\n", k);
			rg_str_printf(out, "%.8g %.8g %.3f\n", op->intensity, op->flop_rate, size_of(v, op));
			r = radius_of(v, op) * 0.8;
			rg_place_block(&v->placer,
					   (struct rg_box){px(v, op->intensity) - r, py(v, op->flop_rate) - r,
							   px(v, op->intensity) + r, py(v, op->flop_rate) + r});
			drawn++;
		}
		if (count[k])
			rg_str_add(out, "EOD\n");
	}
	return drawn;
}

/* Names for the operators that matter; those that share a place share a label. */
static int labels(struct rg_str *out, struct view *v, const struct rg_analysis *a)
{
	bool text_mode = v->c.kind == RG_PLOT_TERMINAL;
	int limit = text_mode ? 6 : MAX_LABELS, n = 0,
		*order = rg_calloc((size_t)a->n_ops + 1, sizeof(*order));
	struct { const struct rg_op_stat *op; int more; double share; } pick[MAX_LABELS];

	if (!order)
		return -ENOMEM;
	if (a->n_ops)
		rg_analysis_by_time(a, order);
	for (int i = 0; i < a->n_ops; i++) {
		const struct rg_op_stat *op = &a->ops[order[i]];
		bool joined = false;

		if (!inside(v, op) || !isfinite(op->share))
			continue;
		for (int k = 0; k < n && !joined; k++) {
			double dx = px(v, op->intensity) - px(v, pick[k].op->intensity);
			double dy = py(v, op->flop_rate) - py(v, pick[k].op->flop_rate);

			joined = hypot(dx, dy) < (text_mode ? 1.5 : 9);
			if (joined) {
				pick[k].more++;
				pick[k].share += op->share;
			}
		}
		if (!joined && n < limit && op->share >= 0.01) {
			pick[n].op = op;
			pick[n].more = 0;
			pick[n++].share = op->share;
		}
	}
	rg_free(order);
	for (int k = 0; k < n; k++) {
		const struct rg_op_stat *op = pick[k].op;
		const char *name = op->step->name && *op->step->name ? op->step->name : op->step->op_type;
		struct rg_str text = { 0 };
		double x = px(v, op->intensity), y = py(v, op->flop_rate), w, h;
		char *clean = rg_text_clean(name);
		struct rg_box b;
		bool far;

		if (clean)
			rg_text_shorten(&text, clean, text_mode ? 16 : 26);
		if (pick[k].more)
			rg_str_printf(&text, " +%d", pick[k].more);
		rg_str_printf(&text, " %.0f %%", pick[k].share * 100);
		rg_free(clean);
		if (!clean || text.failed) {
			rg_str_free(&text);
			return -ENOMEM;
		}
		text_size(v, rg_str_text(&text), &w, &h);
		if (rg_place_label(&v->placer, x, y, radius_of(v, op), w, h, &b, &far)) {
			screen_label(out, v, &b, rg_str_text(&text), "#202020");
			if (far && !text_mode)
				rg_str_printf(
					out,
					"set arrow from screen %.5f,%.5f to screen %.5f,%.5f nohead front "
					"linewidth 0.6 linecolor rgb '#606060'\n",
					fmin(fmax(x, b.x0), b.x1) / v->c.width,
					(y > b.y1   ? b.y1
					 : y < b.y0 ? b.y0
						: (b.y0 + b.y1) / 2) /
					v->c.height,
					x / v->c.width, y / v->c.height);
		}
		rg_str_free(&text);
	}
	return 0;
}

static void axes(struct rg_str *out, const struct view *v)
{
	rg_str_printf(out, "set logscale xy 10\nset xrange [%.8g:%.8g]\nset yrange [%.8g:%.8g]\n",
			  pow(10, v->x0), pow(10, v->x1), pow(10, v->y0), pow(10, v->y1));
	rg_str_add(out, "set xlabel 'intensity (FLOP/byte)'\nset format x '%g'\nset ytics (");
	/* Decades with SI prefixes. */
	for (int d = (int)ceil(v->y0), first = 1; d <= (int)floor(v->y1); d++, first = 0) {
		static const char *const prefix[] = { "", " k", " M", " G", " T", " P" };

		if (d >= 0 && d < 18)
			rg_str_printf(out, "%s'%.0f%s' 1e%d", first ? "" : ", ", pow(10, d % 3),
					  prefix[d / 3], d);
		else
			rg_str_printf(out, "%s'1e%d' 1e%d", first ? "" : ", ", d, d);
	}
	rg_str_add(out, ")\nset ylabel 'performance (FLOP/s)'\n");
}

static void note(struct rg_str *out, const struct view *v, const struct rg_analysis *a, int drawn,
		 double hidden)
{
	char text[256], num[64];
	int room = (int)(v->c.width / v->c.char_w) - 4;

	if (drawn < a->n_ops)
		snprintf(text, sizeof(text),
			 "%s%d of %d operators not drawn (no or unknown FLOPs): %s %% of the time",
			 v->c.kind == RG_PLOT_TERMINAL ? "" : "area: share of the time. ", a->n_ops - drawn,
			 a->n_ops, rg_num_percent(num, hidden));
	else
		snprintf(text, sizeof(text), "%s",
			 v->c.kind == RG_PLOT_TERMINAL ? "" : "area: share of the time");
	if (!text[0])
		return;
	rg_str_add(out, "set label ");
	rg_script_quote(out, text, room);
	rg_str_printf(out, " at screen %.5f,%.5f left textcolor rgb '#404040'\n",
			  v->c.kind == RG_PLOT_TERMINAL ? 1.5 / v->c.width : 14.0 / v->c.width,
			  v->c.kind == RG_PLOT_TERMINAL ? 0.5 / v->c.height : 14.0 / v->c.height);
}

/* The key of the terminal: gnuplot's own takes three rows of it. */
static void letters(struct rg_str *out, const struct view *v, const int *count)
{
	int column = 1;

	for (int k = 0; k < N_CLASSES; k++) {
		if (!count[k])
			continue;
		rg_str_printf(out, "set label '%c %s' at screen %.5f,%.5f left textcolor rgb '%s'\n",
				  classes[k].letter, classes[k].bound, (column + 0.5) / v->c.width,
				  1.5 / v->c.height, classes[k].colour);
		column += (int)strlen(classes[k].bound) + 4;
	}
}

static void plot(struct rg_str *out, const struct view *v, const struct rg_analysis *a, const int *count)
{
	bool text = v->c.kind == RG_PLOT_TERMINAL, first = true;

	if (text) {
		rg_str_add(out, "unset key\n");
		letters(out, v, count);
	} else {
		rg_str_printf(out,
				  "set key at screen 0.5,%.5f center center horizontal reverse Left maxrows 1 "
				  "samplen 1.5 nobox\n",
				  36.0 / v->c.height);
	}
	rg_str_add(out, "plot ");
	for (int i = 0; i < a->n_roofs; i++) {
		if (!usable(&a->roofs[i]))
			continue;
		rg_str_printf(
			out, "%s$roof%d using 1:2 with lines linetype %d linewidth 2 linecolor rgb '%s' notitle",
			first ? "" : ", \\\n", i, text ? 0 : 1, classes[class_of(a->roofs[i].level)].colour);
		first = false;
	}
	if (usable(&a->peak)) {
		rg_str_printf(
			out,
			"%s$peak using 1:2 with lines linetype %d linewidth 2 linecolor rgb '#0072B2' notitle",
			first ? "" : ", \\\n", text ? 0 : 1);
		first = false;
	}
	for (int k = 0; k < N_CLASSES; k++) {
		if (!count[k])
			continue;
		rg_str_add(out, first ? "" : ", \\\n");
		if (text)
			rg_str_printf(
				out,
				"$class%d using 1:2 with points pointtype '%c' linecolor rgb '%s' title '%s'", k,
				classes[k].letter, classes[k].colour, classes[k].bound);
		else
			rg_str_printf(
				out,
				"$class%d using 1:2:3 with points pointtype %d pointsize variable linewidth 1.3 "
				"linecolor rgb '#30%s' title '%s'",
				k, classes[k].point, classes[k].colour + 1, classes[k].bound);
		first = false;
	}
	if (isfinite(a->ridge_intensity) && usable(&a->peak))
		rg_str_printf(out,
				  ", \\\n$ridge using 1:2 with points pointtype %s linewidth 2 linecolor rgb "
				  "'#000000' notitle",
				  text ? "'+'" : "3 pointsize 1.4");
	rg_str_add(out, "\n");
}

int rg_plot_roofline_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
				struct rg_error *err)
{
	struct view *v = rg_calloc(1, sizeof(*v));
	int count[N_CLASSES], drawn, rc;
	double hidden;

	if (!v)
		return rg_error_nomem(err, sizeof(*v));
	rc = rg_canvas_init(&v->c, o, err);
	if (rc == 0 && !ranges(v, a)) {
		rc = rg_error_set(err, -ENODATA,
				  "the run holds neither roofs nor operators with known FLOPs and times");
		rg_error_hint(err, "record it again to its end:  ridge record MODEL");
	}
	if (rc != 0) {
		rg_free(v);
		return rc;
	}
	v->placer.frame = (struct rg_box){
		v->c.left * v->c.width + 2 * v->c.char_w / 6, v->c.bottom * v->c.height + 2 * v->c.char_h / 14,
		v->c.right * v->c.width - 2 * v->c.char_w / 6, v->c.top * v->c.height - 2 * v->c.char_h / 14};
	rg_script_begin(out, &v->c, o);
	rg_script_title(out, &v->c, "Roofline", a);
	axes(out, v);
	drawn = points(out, v, a, count, &hidden);
	ridge(out, v, a);
	roofs(out, v, a);
	rc = labels(out, v, a);
	note(out, v, a, drawn, hidden);
	plot(out, v, a, count);
	if (rc != 0 || out->failed)
		rc = rg_error_nomem(err, (unsigned long)out->len);
	rg_free(v);
	return rc;
}
