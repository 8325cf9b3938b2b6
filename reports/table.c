/*
 * Lays a table out: aligned text that fits the terminal, Markdown, or CSV
 * (RFC 4180).
 */
#include "reports/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_COLUMNS 24

void rg_table_init(struct rg_table *t, const struct rg_column *columns, int n_columns)
{
	memset(t, 0, sizeof(*t));
	t->columns = columns;
	t->n_columns = n_columns;
	if (n_columns > MAX_COLUMNS)
		t->failed = true;
}

static void keep(struct rg_table *t, char *cell)
{
	char **p = cell && !t->failed ? rg_grow(t->cells, &t->cap_cells, t->n_cells + 1, sizeof(*p)) : NULL;

	if (!p) {
		rg_free(cell);
		t->failed = true;
		return;
	}
	t->cells = p;
	t->cells[t->n_cells++] = cell;
}

void rg_table_add(struct rg_table *t, const char *text)
{
	keep(t, rg_text_clean(text ? text : "-"));
}

void rg_table_addf(struct rg_table *t, const char *fmt, ...)
{
	va_list ap, again;
	char small[256];
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < sizeof(small)) {
		rg_table_add(t, small);
	} else {
		char *big = len < 0 ? NULL : rg_alloc((size_t)len + 1);

		if (big) {
			vsnprintf(big, (size_t)len + 1, fmt, again);
			rg_table_add(t, big);
		} else {
			t->failed = true;
		}
		rg_free(big);
	}
	va_end(again);
}

void rg_table_free(struct rg_table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		rg_free(t->cells[i]);
	rg_free(t->cells);
	memset(t, 0, sizeof(*t));
}

/* Line 0 or 1 of a title into buf. */
static const char *title_line(const char *title, int line, char *buf, size_t cap)
{
	const char *cut = strchr(title, '\n');
	size_t len = cut ? (size_t)(cut - title) : strlen(title);

	if (line == 1)
		return cut ? cut + 1 : "";
	snprintf(buf, cap, "%.*s", (int)len, title);
	return buf;
}

static int title_width(const char *title)
{
	char buf[64];
	int a = rg_text_width(title_line(title, 0, buf, sizeof(buf)));
	int b = rg_text_width(title_line(title, 1, buf, sizeof(buf)));

	return a > b ? a : b;
}

/* A title as one line, for Markdown, CSV and the note about what is left out:
 * the break becomes a space, or nothing after a hyphen or before a slash. */
static void title_flat(struct rg_str *out, const char *title)
{
	const char *cut = strchr(title, '\n');

	if (!cut) {
		rg_str_add(out, title);
		return;
	}
	if (cut > title && cut[-1] == '-') {
		rg_str_addn(out, title, (size_t)(cut - title) - 1);
	} else {
		rg_str_addn(out, title, (size_t)(cut - title));
		if (cut[1] != '/')
			rg_str_add(out, " ");
	}
	rg_str_add(out, cut + 1);
}

/* Widths that fit; width[c] -1: left out. */
static void fit(const struct rg_table *t, int limit, int *width)
{
	int total, shown;

	for (int c = 0; c < t->n_columns; c++)
		width[c] = title_width(t->columns[c].title);
	for (size_t i = 0; i < t->n_cells; i++) {
		int w = rg_text_width(t->cells[i]), c = (int)(i % (size_t)t->n_columns);

		if (w > width[c])
			width[c] = w;
	}
	if (limit <= 0)
		return;
	for (;;) {
		int widest = -1, drop = -1;

		total = shown = 0;
		for (int c = 0; c < t->n_columns; c++) {
			if (width[c] < 0)
				continue;
			total += width[c];
			shown++;
			if (t->columns[c].least_width > 0 && width[c] > t->columns[c].least_width &&
			    (widest < 0 || width[c] > width[widest]))
				widest = c;
			if (t->columns[c].drop > 0 &&
			    (drop < 0 || t->columns[c].drop > t->columns[drop].drop))
				drop = c;
		}
		total += shown > 1 ? 2 * (shown - 1) : 0;
		if (total <= limit)
			return;
		if (widest >= 0)
			width[widest]--;
		else if (drop >= 0)
			width[drop] = -1;
		else
			return;
		/* A column that goes gives its room back to those that were shortened. */
		if (widest < 0 && drop >= 0) {
			for (int c = 0; c < t->n_columns; c++) {
				if (width[c] < 0 || t->columns[c].least_width <= 0)
					continue;
				width[c] = title_width(t->columns[c].title);
				for (size_t i = (size_t)c; i < t->n_cells; i += (size_t)t->n_columns)
					if (rg_text_width(t->cells[i]) > width[c])
						width[c] = rg_text_width(t->cells[i]);
			}
		}
	}
}

/* One line of cells; trailing blanks are not written. */
static void text_line(struct rg_str *out, const struct rg_table *t, const int *width,
		      const char *const *cells, const struct rg_style *st, const char *sgr)
{
	struct rg_str line = { 0 }, cell = { 0 };
	bool first = true;

	for (int c = 0; c < t->n_columns; c++) {
		int pad;

		if (width[c] < 0)
			continue;
		if (!first)
			rg_str_add(&line, "  ");
		first = false;
		cell.len = 0;
		if (cell.text)
			cell.text[0] = '\0';
		rg_text_shorten(&cell, cells[c], width[c]);
		pad = width[c] - rg_text_width(rg_str_text(&cell));
		if (t->columns[c].align == RG_ALIGN_RIGHT && pad > 0)
			rg_str_printf(&line, "%*s", pad, "");
		rg_str_add(&line, rg_str_text(&cell));
		if (t->columns[c].align == RG_ALIGN_LEFT && pad > 0)
			rg_str_printf(&line, "%*s", pad, "");
	}
	while (line.len && line.text[line.len - 1] == ' ')
		line.text[--line.len] = '\0';
	if (sgr)
		rg_text_styled(out, st, sgr, rg_str_text(&line));
	else
		rg_str_add(out, rg_str_text(&line));
	rg_str_add(out, "\n");
	if (line.failed || cell.failed)
		out->failed = true;
	rg_str_free(&line);
	rg_str_free(&cell);
}

static void print_text(struct rg_str *out, const struct rg_table *t, const struct rg_style *st)
{
	int width[MAX_COLUMNS];
	char buf[MAX_COLUMNS][64];
	const char *title[MAX_COLUMNS];
	bool two = false, any = false;

	fit(t, st->width, width);
	for (int c = 0; c < t->n_columns; c++)
		two = two || (width[c] >= 0 && strchr(t->columns[c].title, '\n'));
	for (int line = 0; line < (two ? 2 : 1); line++) {
		for (int c = 0; c < t->n_columns; c++)
			title[c] = title_line(t->columns[c].title, line, buf[c], sizeof(buf[c]));
		text_line(out, t, width, title, st, "1");
	}
	for (size_t i = 0; i + (size_t)t->n_columns <= t->n_cells; i += (size_t)t->n_columns)
		text_line(out, t, width, (const char *const *)t->cells + i, st, NULL);
	for (int c = 0; c < t->n_columns; c++) {
		if (width[c] >= 0)
			continue;
		rg_str_add(out, any ? ", " : "(not wide enough for: ");
		title_flat(out, t->columns[c].title);
		any = true;
	}
	if (any)
		rg_str_add(out, ")\n");
}

static void print_md(struct rg_str *out, const struct rg_table *t)
{
	for (int c = 0; c < t->n_columns; c++) {
		rg_str_add(out, c ? " | " : "| ");
		title_flat(out, t->columns[c].title);
	}
	rg_str_add(out, " |\n|");
	for (int c = 0; c < t->n_columns; c++)
		rg_str_add(out, t->columns[c].align == RG_ALIGN_RIGHT ? "---:|" : "---|");
	rg_str_add(out, "\n");
	for (size_t i = 0; i < t->n_cells; i++) {
		int c = (int)(i % (size_t)t->n_columns);

		rg_str_add(out, c ? " | " : "| ");
		for (const char *p = t->cells[i]; *p; p++) {
			if (strchr("\\`*_[]<>|", *p))
				rg_str_add(out, "\\");
			rg_str_addn(out, p, 1);
		}
		if (c == t->n_columns - 1)
			rg_str_add(out, " |\n");
	}
}

static void csv_cell(struct rg_str *out, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		rg_str_add(out, text);
		return;
	}
	rg_str_add(out, "\"");
	for (; *text; text++) {
		if (*text == '"')
			rg_str_add(out, "\"");
		rg_str_addn(out, text, 1);
	}
	rg_str_add(out, "\"");
}

/* Missing ("-") is an empty field in CSV, as spreadsheets and readers expect. */
static void print_csv(struct rg_str *out, const struct rg_table *t)
{
	for (int c = 0; c < t->n_columns; c++) {
		if (c)
			rg_str_add(out, ",");
		title_flat(out, t->columns[c].title);
	}
	rg_str_add(out, "\n");
	for (size_t i = 0; i < t->n_cells; i++) {
		int c = (int)(i % (size_t)t->n_columns);

		if (c)
			rg_str_add(out, ",");
		csv_cell(out, strcmp(t->cells[i], "-") == 0 ? "" : t->cells[i]);
		if (c == t->n_columns - 1)
			rg_str_add(out, "\n");
	}
}

int rg_table_print(struct rg_str *out, const struct rg_table *t, const struct rg_style *st)
{
	if (t->failed)
		out->failed = true;
	else if (st->format == RG_FORMAT_TABLE)
		print_text(out, t, st);
	else if (st->format == RG_FORMAT_MD)
		print_md(out, t);
	else if (st->format == RG_FORMAT_CSV)
		print_csv(out, t);
	else
		return -EINVAL;
	return out->failed ? -ENOMEM : 0;
}
