/*
 * The tail plot: latency against percentile on the axis of HdrHistogram and
 * wrk2, 1 / (1 - p) on a logarithmic scale, so that each further nine takes the
 * same room. The curve is the empirical distribution: the i-th of n sorted
 * samples (from 0) stands at 1 / (1 - i/n) = n / (n - i), so it ends at n, and
 * the axis names no percentile that n samples cannot tell.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/stats.h"
#include "reports/plot-script.h"
#include "reports/table.h"

struct view {
	struct rg_canvas c;
	double scale;            /* nanoseconds in one unit of the y axis */
	const char *unit;
	double xmax, ymin, ymax; /* in axis units */
};

static void scale(struct view *v, const struct rg_analysis *a)
{
	double low = a->latency_sorted_ns[0], high = a->latency_sorted_ns[a->n_latency - 1], span;

	if (high >= 1e9)
		v->scale = 1e9, v->unit = "s";
	else if (high >= 1e6)
		v->scale = 1e6, v->unit = "ms";
	else
		v->scale = 1e3, v->unit = "us";
	if (isfinite(a->p99.high) && a->n_latency >= 100)
		high = fmax(high, a->p99.high);
	if (isfinite(a->p50.low))
		low = fmin(low, a->p50.low);
	span = high - low > high * 0.02 ? high - low : high * 0.02;
	v->ymin = fmax(0, low - span * 0.12) / v->scale;
	v->ymax = (high + span * 0.18) / v->scale;
	if (!(v->ymax > v->ymin))
		v->ymax = v->ymin + 1;
	v->xmax = fmax(a->n_latency, 4) * 1.15;
}

/* Ticks as far as n samples reach. gnuplot takes tick labels for formats, so a
 * percent sign is written twice. */
static void ticks(struct rg_str *out, int n)
{
	rg_str_add(out, "set xtics ('0%%' 1, '50%%' 2");
	if (n >= 4)
		rg_str_add(out, ", '75%%' 4");
	if (n >= 10)
		rg_str_add(out, ", '90%%' 10");
	if (n >= 20)
		rg_str_add(out, ", '95%%' 20");
	if (n >= 100)
		rg_str_add(out, ", '99%%' 100");
	for (int nines = 3; nines <= 8 && pow(10, nines) <= n; nines++) {
		rg_str_add(out, ", '99.");
		for (int k = 2; k < nines; k++)
			rg_str_add(out, "9");
		rg_str_printf(out, "%%%%' 1e%d", nines);
	}
	rg_str_add(out, ")\n");
}

/* The steps, thinned where neighbours would fall on the same pixel. */
static void curve(struct rg_str *out, const struct rg_analysis *a, const struct view *v)
{
	int n = a->n_latency;
	double last = 0;

	rg_str_add(out, "$curve << EOD\n");
	for (int i = 0; i < n; i++) {
		double x = (double)n / (n - i);

		if (i && i < n - 1 && x < last * 1.004)
			continue;
		rg_str_printf(out, "%.8g %.8g\n", x, a->latency_sorted_ns[i] / v->scale);
		last = x;
	}
	rg_str_add(out, "EOD\n");
}

/* 95 % band of the quantiles from order statistics, where both sides are known. */
static int band(struct rg_str *out, const struct rg_analysis *a, const struct view *v)
{
	int points = 0;
	struct rg_str s = { 0 };

	for (int i = 0; i <= 80; i++) {
		double x = pow(10, log10((double)a->n_latency) * i / 80), q = 1 - 1 / x;
		struct rg_interval ci =
		    rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)a->n_latency, q, 0.95);

		if (!isfinite(ci.low) || !isfinite(ci.high))
			continue;
		rg_str_printf(&s, "%.8g %.8g %.8g\n", x, ci.low / v->scale, ci.high / v->scale);
		points++;
	}
	if (points >= 2)
		rg_str_printf(out, "$band << EOD\n%sEOD\n", rg_str_text(&s));
	if (s.failed)
		out->failed = true;
	rg_str_free(&s);
	return points;
}

/* Marks and their values; a percentile that n cannot tell has no mark. */
static int marks(struct rg_str *out, const struct rg_analysis *a, const struct view *v)
{
	const struct { const char *name; double x; const struct rg_interval *q; int least; } mark[] = {
		{ "P50", 2, &a->p50, 2 }, { "P95", 20, &a->p95, 20 }, { "P99", 100, &a->p99, 100 },
	};
	struct rg_str data = { 0 };
	double width = (v->c.right - v->c.left) * v->c.width;
	bool text_mode = v->c.kind == RG_PLOT_TERMINAL;
	int n = 0;

	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]); i++) {
		double y = mark[i].q->value / v->scale, x, y_px, room;
		char text[64], num[32];
		bool right;

		if (a->n_latency < mark[i].least || !isfinite(y))
			continue;
		rg_str_printf(&data, "%.8g %.8g\n", mark[i].x, y);
		snprintf(text, sizeof(text), "%s %s", mark[i].name, rg_fmt_ns(num, mark[i].q->value));
		/* The curve only rises: below and to the right of a mark is free, and so
		 * is above and to the left, where the frame ends too soon. */
		x = v->c.left * v->c.width + log10(mark[i].x) / log10(v->xmax) * width;
		y_px = (v->c.bottom + (y - v->ymin) / (v->ymax - v->ymin) * (v->c.top - v->c.bottom)) *
		       v->c.height;
		room = (rg_text_width(text) + 2) * v->c.char_w;
		right = x + room < v->c.right * v->c.width &&
			y_px - v->c.bottom * v->c.height > 1.5 * v->c.char_h;
		rg_str_add(out, "set label ");
		rg_script_quote(out, text, 0);
		rg_str_printf(out, " at screen %.5f,%.5f %s front%s\n",
			      (x + (right ? 1 : -1) * v->c.char_w) / v->c.width,
			      (y_px + (right ? -1 : 1) * v->c.char_h) / v->c.height, right ? "left" : "right",
			      text_mode ? "" : " boxed textcolor rgb '#202020'");
		if (!text_mode)
			rg_str_printf(out,
				      "set arrow from %.8g,%.8g to %.8g,%.8g nohead dashtype 3 linewidth 1 "
				      "linecolor rgb '#808080'\n",
				      mark[i].x, v->ymin, mark[i].x, y);
		n++;
	}
	if (n)
		rg_str_printf(out, "$marks << EOD\n%sEOD\n", rg_str_text(&data));
	if (data.failed)
		out->failed = true;
	rg_str_free(&data);
	return n;
}

static void plot(struct rg_str *out, const struct view *v, const struct rg_analysis *a, int n_band,
		 int n_marks)
{
	bool text = v->c.kind == RG_PLOT_TERMINAL;
	char line[96];

	snprintf(line, sizeof(line), "%d inference%s, each timed from its start", a->n_latency,
		 a->n_latency == 1 ? "" : "s");
	if (text) {
		rg_str_add(out, "unset key\nset label ");
		rg_script_quote(out, line, 0);
		rg_str_printf(out, " at screen %.5f,%.5f left\n", 1.5 / v->c.width, 0.5 / v->c.height);
	} else {
		rg_str_printf(out,
			      "set key at screen 0.5,%.5f center center horizontal reverse Left maxrows 1 "
			      "samplen 2 nobox\n",
			      30.0 / v->c.height);
	}
	rg_str_add(out, "plot ");
	if (n_band >= 2 && !text)
		rg_str_add(
		    out,
		    "$band using 1:2:3 with filledcurves fillcolor rgb '#D0E4F2' fillstyle solid noborder "
		    "title '95 % confidence', \\\n");
	rg_str_add(out, "$curve using 1:2 with ");
	rg_str_printf(out,
		      text ? "steps linetype 1 title " : "steps linewidth 2 linecolor rgb '#0072B2' title ");
	rg_script_quote(out, line, 0);
	if (n_marks)
		rg_str_printf(
		    out, ", \\\n$marks using 1:2 with points pointtype %s linecolor rgb '#D55E00' notitle",
		    text ? "'O'" : "7 pointsize 1.1");
	rg_str_add(out, "\n");
}

int rg_plot_tail_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
			struct rg_error *err)
{
	struct view v = { 0 };
	int n_band, n_marks, rc = rg_canvas_init(&v.c, o, err);

	if (rc != 0)
		return rc;
	if (a->n_latency <= 0) {
		rg_error_set(err, -ENODATA, "the run holds no timed inference");
		return rg_error_hint(err, "record it again to its end:  ridge record MODEL");
	}
	scale(&v, a);
	rg_script_begin(out, &v.c, o);
	rg_script_title(out, &v.c, "Tail latency", a);
	rg_str_printf(out, "set logscale x 10\nset xrange [1:%.8g]\nset yrange [%.8g:%.8g]\n", v.xmax, v.ymin,
		      v.ymax);
	ticks(out, a->n_latency);
	rg_str_printf(out, "set xlabel 'percentile'\nset ylabel 'latency (%s)'\n", v.unit);
	curve(out, a, &v);
	n_band = band(out, a, &v);
	n_marks = marks(out, a, &v);
	plot(out, &v, a, n_band, n_marks);
	return out->failed ? rg_error_nomem(err, (unsigned long)out->len) : 0;
}
