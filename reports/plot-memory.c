/*
 * The memory plot: the arena, time (steps) across and address up, a box a buffer,
 * coloured by the kind of operator that makes it. White between boxes is memory that
 * nothing uses then. In the terminal, where boxes would be too small to tell apart,
 * the sum of what is alive is drawn over the steps instead.
 *
 * Names stand in the boxes that have room for them, turned where only that fits, and
 * keep clear of the marks of peak and capacity.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/plot-script.h"
#include "reports/report-run.h"
#include "reports/table.h"

#define MAX_BOXES 20000   /* more are not to be seen; the largest are drawn */
#define N_CLASSES 8
#define SCRATCH (N_CLASSES - 1)
#define OTHER (N_CLASSES - 2)
#define MOST_ROOM 2       /* a capacity above so many arenas would leave nothing to look at */
#define LEAST_NAME 10     /* characters of a shortened one, so that it says something */

/* Okabe and Ito's colours, made lighter where the boxes are filled. */
static const struct class {
	const char *kind, *colour;
} classes[N_CLASSES] = {
	{ "conv", "#0072B2" }, { "gemm", "#E69F00" },  { "elementwise", "#56B4E9" }, { "norm", "#009E73" },
	{ "pool", "#F0E442" }, { "move", "#CC79A7" },  { "other", "#8C8C8C" },	     { "scratch", "#D55E00" },
};

struct block {
	int first, end;       /* steps, half-open */
	double low, high;     /* bytes */
	int class;
	const char *name;
};

struct box {
	double x0, y0, x1, y1; /* pixels, y upward */
};

struct view {
	struct rg_canvas c;
	const struct rg_recording *r;
	struct block *blocks;
	int n_blocks, n_left_out, n_classes[N_CLASSES];
	double unit_bytes, top_bytes, height_bytes, capacity_bytes;
	const char *unit;
	int peak_step;        /* -1: not known */
	struct box marks[4];  /* no name lies on these */
	int n_marks;
};

static int class_of(const char *kind)
{
	for (int i = 0; i < OTHER; i++)
		if (strcmp(classes[i].kind, kind) == 0)
			return i;
	return OTHER;
}

static int by_size(const void *pa, const void *pb)
{
	const struct block *a = pa, *b = pb;
	double x = a->high - a->low, y = b->high - b->low;

	if (x != y)
		return x > y ? -1 : 1;
	if (a->first != b->first)
		return a->first - b->first;
	return a->low < b->low ? -1 : a->low > b->low;
}

/* The first step that writes a tensor, or a part of it; by tensor, -1: none. */
static int *find_makers(const struct rg_recording *r)
{
	int *maker = rg_calloc((size_t)r->n_tensors + 1, sizeof(*maker));

	if (!maker)
		return NULL;
	for (int i = 0; i < r->n_tensors; i++)
		maker[i] = -1;
	for (int i = 0; i < r->n_io; i++) {
		int t = r->io[i].tensor;

		if (!r->io[i].output)
			continue;
		t = r->tensors[t].alias_of >= 0 ? r->tensors[t].alias_of : t;
		if (maker[t] < 0 || r->io[i].step < maker[t])
			maker[t] = r->io[i].step;
	}
	return maker;
}

static int collect(struct view *v, struct rg_error *err)
{
	const struct rg_recording *r = v->r;
	size_t cap = (size_t)r->n_tensors + (size_t)r->n_steps + 1;
	int *maker = find_makers(r), n = 0;

	v->blocks = rg_calloc(cap, sizeof(*v->blocks));
	if (!maker || !v->blocks) {
		rg_free(maker);
		return rg_error_nomem(err, (unsigned long)(cap * sizeof(*v->blocks)));
	}
	for (int i = 0; i < r->n_tensors; i++) {
		const struct rg_tensor_row *t = &r->tensors[i];

		if (strcmp(t->place, "arena") != 0 || t->alias_of >= 0 || t->offset_bytes < 0 || t->size_bytes <= 0 ||
		    t->first_step < 0)
			continue;
		v->blocks[n++] = (struct block){ t->first_step, t->last_step + 1, (double)t->offset_bytes,
						 (double)t->offset_bytes + (double)t->size_bytes,
						 maker[i] >= 0 ? class_of(r->steps[maker[i]].op_kind) : OTHER, t->name };
	}
	for (int i = 0; i < r->n_steps; i++) {
		const struct rg_step_row *s = &r->steps[i];

		if (s->scratch_bytes > 0 && s->scratch_offset_bytes >= 0)
			v->blocks[n++] = (struct block){ i, i + 1, (double)s->scratch_offset_bytes,
							 (double)s->scratch_offset_bytes + (double)s->scratch_bytes,
							 SCRATCH, s->name };
	}
	rg_free(maker);
	for (int i = 0; i < n; i++)
		v->height_bytes = fmax(v->height_bytes, v->blocks[i].high);
	qsort(v->blocks, (size_t)n, sizeof(v->blocks[0]), by_size);
	v->n_blocks = n < MAX_BOXES ? n : MAX_BOXES;
	v->n_left_out = n - v->n_blocks;
	for (int i = 0; i < v->n_blocks; i++)
		v->n_classes[v->blocks[i].class]++;
	return 0;
}

static double px(const struct view *v, double step)
{
	return (v->c.left + step / v->r->n_steps * (v->c.right - v->c.left)) * v->c.width;
}

static double py(const struct view *v, double bytes)
{
	return (v->c.bottom + bytes / v->top_bytes * (v->c.top - v->c.bottom)) * v->c.height;
}

static void scale(struct view *v)
{
	static const struct { double bytes; const char *name; } units[] = {
		{ 1, "bytes" }, { 1024, "KiB" }, { 1048576, "MiB" }, { 1073741824, "GiB" },
	};
	double most = fmax(v->height_bytes, v->capacity_bytes > MOST_ROOM * v->height_bytes ? 0 : v->capacity_bytes), room;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (i > 0 && most < units[i].bytes)
			break;
		v->unit_bytes = units[i].bytes;
		v->unit = units[i].name;
	}
	/* above all of it a line of text for the mark of the peak */
	room = 1.6 * v->c.char_h / ((v->c.top - v->c.bottom) * v->c.height);
	v->top_bytes = most / (1 - fmin(room, 0.5));
}

static void block_out(struct view *v, double x0, double y0, double x1, double y1)
{
	v->marks[v->n_marks++] = (struct box){ x0, y0, x1, y1 };
}

static bool covers_mark(const struct view *v, const struct box *b)
{
	for (int i = 0; i < v->n_marks; i++)
		if (b->x0 < v->marks[i].x1 && v->marks[i].x0 < b->x1 && b->y0 < v->marks[i].y1 &&
		    v->marks[i].y0 < b->y1)
			return true;
	return false;
}

static void screen_label(struct rg_str *out, const struct view *v, const char *text, double x, double y,
			 const char *how)
{
	rg_str_add(out, "set label ");
	rg_script_quote(out, text, 0);
	rg_str_printf(out, " at screen %.5f,%.5f %s front\n", x / v->c.width, y / v->c.height, how);
}

static void mark_peak(struct rg_str *out, struct view *v)
{
	double x = px(v, v->peak_step + 0.5), y = py(v, v->top_bytes) - v->c.char_h * 0.7, width;
	bool right = v->peak_step * 2 < v->r->n_steps, text = v->c.kind == RG_PLOT_TERMINAL;
	struct rg_str s = { 0 };
	char num[64], at[64];

	rg_str_printf(&s, "peak: %s alive at step %d",
		      rg_fmt_bytes(num, rg_recording_number(v->r, "plan.arena_lower_bound_bytes")), v->peak_step);
	width = rg_text_width(rg_str_text(&s)) * v->c.char_w;
	snprintf(at, sizeof(at), "%s%s", right ? "left" : "right", text ? "" : " textcolor rgb '#B00020'");
	screen_label(out, v, rg_str_text(&s), x + (right ? 0.8 : -0.8) * v->c.char_w, y, at);
	if (!text)
		rg_str_printf(out,
			      "set arrow from %.8g,graph 0 to %.8g,graph 1 nohead front dashtype 3 linewidth 1.2 "
			      "linecolor rgb '#B00020'\n",
			      v->peak_step + 0.5, v->peak_step + 0.5);
	block_out(v, x - 2, 0, x + 2, v->c.height);
	block_out(v, right ? x : x - width, y - v->c.char_h / 2, right ? x + width : x, y + v->c.char_h / 2);
	out->failed |= s.failed;
	rg_str_free(&s);
}

/* The first place along the line, above or below it, that no other text takes. */
static bool place_capacity(const struct view *v, double y, double width, struct box *b, bool *right)
{
	for (int k = 0; k < 4; k++) {
		double side = k % 2 ? -0.75 : 0.75, text_y = y + side * v->c.char_h;

		*right = (k < 2) == (v->peak_step * 2 < v->r->n_steps); /* first away from the peak's */
		b->x0 = *right ? v->c.right * v->c.width - v->c.char_w - width : v->c.left * v->c.width + v->c.char_w;
		b->x1 = b->x0 + width;
		b->y0 = text_y - v->c.char_h / 2;
		b->y1 = text_y + v->c.char_h / 2;
		if (b->y1 < v->c.top * v->c.height && b->y0 > v->c.bottom * v->c.height && !covers_mark(v, b))
			return true;
	}
	return false;
}

static void mark_capacity(struct rg_str *out, struct view *v)
{
	double y = py(v, v->capacity_bytes), width;
	bool right, text = v->c.kind == RG_PLOT_TERMINAL;
	struct rg_str s = { 0 };
	struct box b;
	char num[64];

	rg_str_printf(&s, "capacity %s", rg_fmt_bytes(num, v->capacity_bytes));
	width = rg_text_width(rg_str_text(&s)) * v->c.char_w;
	/* in the terminal it stands below the plot */
	if (!text && place_capacity(v, y, width, &b, &right)) {
		screen_label(out, v, rg_str_text(&s), right ? b.x1 : b.x0, (b.y0 + b.y1) / 2,
			     right ? "right boxed textcolor rgb '#202020'" : "left boxed textcolor rgb '#202020'");
		block_out(v, b.x0 - v->c.char_w, b.y0, b.x1 + v->c.char_w, b.y1);
	}
	rg_str_printf(out, "set arrow from graph 0,first %.8g to graph 1,first %.8g nohead front%s\n",
		      v->capacity_bytes / v->unit_bytes, v->capacity_bytes / v->unit_bytes,
		      text ? "" : " dashtype 2 linewidth 1.5 linecolor rgb '#202020'");
	block_out(v, 0, y - 2, v->c.width, y + 2);
	out->failed |= s.failed;
	rg_str_free(&s);
}

/* A name in the middle of its box, lying or turned, or none. */
static void name_block(struct rg_str *out, const struct view *v, const struct block *b)
{
	double x0 = px(v, b->first), x1 = px(v, b->end), y0 = py(v, b->low), y1 = py(v, b->high);
	double x = (x0 + x1) / 2, y = (y0 + y1) / 2;
	int width = rg_text_width(b->name), least = width < LEAST_NAME ? width : LEAST_NAME;
	bool turned = (x1 - x0) / v->c.char_w - 2 < least;
	double along = turned ? y1 - y0 : x1 - x0, across = turned ? x1 - x0 : y1 - y0;
	int room = (int)(along / v->c.char_w) - 2;
	struct box text;
	double half;

	if (room < least || room < 1 || across < v->c.char_h + 2)
		return;
	half = (width < room ? width : room) * v->c.char_w / 2 + 2;
	text = turned ? (struct box){ x - v->c.char_h / 2, y - half, x + v->c.char_h / 2, y + half } :
			(struct box){ x - half, y - v->c.char_h / 2, x + half, y + v->c.char_h / 2 };
	if (covers_mark(v, &text))
		return;
	rg_str_add(out, "set label ");
	rg_script_quote(out, b->name, room);
	rg_str_printf(out, " at screen %.5f,%.5f center front%s textcolor rgb '#202020'\n", x / v->c.width,
		      y / v->c.height, turned ? " rotate by 90" : "");
}

static void boxes(struct rg_str *out, const struct view *v)
{
	bool first = true;

	for (int k = 0; k < N_CLASSES; k++) {
		if (!v->n_classes[k])
			continue;
		rg_str_printf(out, "$%s << EOD\n", classes[k].kind);
		for (int i = 0; i < v->n_blocks; i++) {
			const struct block *b = &v->blocks[i];

			if (b->class == k)
				rg_str_printf(out, "%.8g %.8g %d %d %.8g %.8g\n", (b->first + b->end) / 2.0,
					      (b->low + b->high) / 2 / v->unit_bytes, b->first, b->end,
					      b->low / v->unit_bytes, b->high / v->unit_bytes);
		}
		rg_str_add(out, "EOD\n");
	}
	for (int i = 0; i < v->n_blocks; i++)
		name_block(out, v, &v->blocks[i]);
	rg_str_add(out, "plot ");
	for (int k = 0; k < N_CLASSES; k++) {
		if (!v->n_classes[k])
			continue;
		rg_str_printf(out,
			      "%s$%s using 1:2:3:4:5:6 with boxxyerror fillcolor rgb '%s' fillstyle solid 0.45 border "
			      "linecolor rgb '#606060' linewidth 0.4 title '%s'",
			      first ? "" : ", \\\n", classes[k].kind, classes[k].colour, classes[k].kind);
		first = false;
	}
	rg_str_add(out, "\n");
}

/* What is alive at each step, for the terminal. */
static int load(struct rg_str *out, const struct view *v, struct rg_error *err)
{
	double *change = rg_calloc((size_t)v->r->n_steps + 1, sizeof(*change)), sum = 0;

	if (!change)
		return rg_error_nomem(err, ((unsigned long)v->r->n_steps + 1) * sizeof(*change));
	for (int i = 0; i < v->n_blocks; i++) {
		change[v->blocks[i].first] += v->blocks[i].high - v->blocks[i].low;
		change[v->blocks[i].end] -= v->blocks[i].high - v->blocks[i].low;
	}
	rg_str_add(out, "$alive << EOD\n");
	for (int i = 0; i < v->r->n_steps; i++) {
		sum += change[i];
		rg_str_printf(out, "%d %.8g\n", i, sum / v->unit_bytes);
	}
	rg_str_printf(out, "%d %.8g\nEOD\nplot $alive using 1:2 with steps linetype 1 notitle\n", v->r->n_steps,
		      sum / v->unit_bytes);
	rg_free(change);
	return 0;
}

/* Below the plot: height, bound, and which step the peak is. */
static void summary(struct rg_str *out, const struct view *v)
{
	double arena = rg_recording_number(v->r, "plan.arena_bytes");
	bool text = v->c.kind == RG_PLOT_TERMINAL;
	struct rg_str s = { 0 };
	char num[64];

	rg_str_printf(&s, "%sarena %s", text ? "alive; " : "", rg_fmt_bytes(num, arena));
	if (!text)
		rg_str_printf(&s, " by %s", rg_recording_text(v->r, "plan.arena_strategy", "an older planner"));
	if (v->capacity_bytes > MOST_ROOM * v->height_bytes)
		rg_str_printf(&s, ", far below the capacity of %s", rg_fmt_bytes(num, v->capacity_bytes));
	else if (text && v->capacity_bytes > 0)
		rg_str_printf(&s, ", capacity (---) %s", rg_fmt_bytes(num, v->capacity_bytes));
	if (v->peak_step >= 0)
		rg_str_printf(&s, "; peak at '%s' (%s)", v->r->steps[v->peak_step].name,
			      v->r->steps[v->peak_step].op_type);
	if (v->n_left_out)
		rg_str_printf(&s, "; %d smaller buffers not drawn", v->n_left_out);
	rg_str_add(out, "set label ");
	rg_script_quote(out, rg_str_text(&s), (int)(v->c.width / v->c.char_w * 0.95) - 2);
	rg_str_printf(out, " at screen %.5f,%.5f %s\n", text ? 1.5 / v->c.width : 0.5,
		      (text ? 0.5 : 12.0) / v->c.height, text ? "left" : "center");
	out->failed |= s.failed;
	rg_str_free(&s);
}

static int draw(struct rg_str *out, struct view *v, const struct rg_analysis *a, const struct rg_plot_options *o,
		struct rg_error *err)
{
	double peak = rg_recording_number(v->r, "plan.peak_step");
	int rc = collect(v, err);

	if (rc)
		return rc;
	if (v->n_blocks == 0 || v->r->n_steps == 0) {
		rg_error_set(err, -ENODATA, "the run holds nothing that lies in the arena");
		return rg_error_hint(err, "a run that got as far as the plan has it:  ridge plot memory builtin:resnet50");
	}
	v->peak_step = peak >= 0 && peak < v->r->n_steps ? (int)peak : -1;
	v->capacity_bytes = o->capacity_bytes > 0 ? (double)o->capacity_bytes : 0;
	scale(v);
	rg_script_begin(out, &v->c, o);
	rg_script_title(out, &v->c, "Memory", a);
	rg_str_printf(out, "unset grid\nset xrange [0:%d]\nset yrange [0:%.8g]\nset xlabel 'step'\n", v->r->n_steps,
		      v->top_bytes / v->unit_bytes);
	rg_str_printf(out, "set ylabel '%s%s%s'\n", v->c.kind == RG_PLOT_TERMINAL ? "" : "address in the arena (", v->unit,
		      v->c.kind == RG_PLOT_TERMINAL ? "" : ")");
	if (v->peak_step >= 0)
		mark_peak(out, v);
	if (v->capacity_bytes > 0 && v->capacity_bytes <= MOST_ROOM * v->height_bytes)
		mark_capacity(out, v);
	summary(out, v);
	if (v->c.kind == RG_PLOT_TERMINAL) {
		rg_str_add(out, "unset key\n");
		return load(out, v, err);
	}
	rg_str_printf(out,
		      "set key at screen 0.5,%.5f center center horizontal reverse Left maxrows 1 samplen 1 nobox\n",
		      32.0 / v->c.height);
	boxes(out, v);
	return 0;
}

int rg_plot_memory_script(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
			  struct rg_error *err)
{
	struct view v = { .r = a->rec };
	int rc = rg_canvas_init(&v.c, o, err);

	if (rc == 0)
		rc = draw(out, &v, a, o, err);
	rg_free(v.blocks);
	if (rc)
		return rc;
	return out->failed ? rg_error_nomem(err, (unsigned long)out->len) : 0;
}
