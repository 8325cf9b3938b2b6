/*
 * Tables of text that become aligned columns, Markdown or CSV, and the text
 * that may stand in them. Names come from model files, so nothing that a
 * terminal obeys passes: control characters, broken UTF-8 and direction
 * overrides become '?'.
 *
 * A table is made to fit `width` columns in three steps: flexible columns are
 * shortened down to their least width (in the middle, with an ellipsis), then
 * columns that carry a drop rank are left out, highest rank first, and what was
 * left out is said below the table.
 */
#ifndef RG_REPORTS_TABLE_H
#define RG_REPORTS_TABLE_H

#include "reports/report.h"

enum rg_align { RG_ALIGN_LEFT, RG_ALIGN_RIGHT };

struct rg_column {
	const char *title;       /* a '\n' splits it over two lines */
	enum rg_align align;
	int least_width;         /* 0: never shortened */
	int drop;                /* 0: never left out; else the highest goes first */
};

struct rg_table {
	const struct rg_column *columns; /* borrowed */
	int n_columns;
	size_t n_cells, cap_cells;
	char **cells;            /* row by row */
	bool failed;             /* out of memory; printing says so */
};

void rg_table_init(struct rg_table *t, const struct rg_column *columns, int n_columns);
/* Adds the next cell, row by row. The text is cleaned. */
void rg_table_add(struct rg_table *t, const char *text);
void rg_table_addf(struct rg_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes it in st->format (text, Markdown or CSV; -EINVAL for JSON). -ENOMEM
 * when a cell could not be kept. */
int rg_table_print(struct rg_str *out, const struct rg_table *t, const struct rg_style *st);
void rg_table_free(struct rg_table *t);

/* ---- text ---- */
/* A copy fit for a terminal (rg_free); NULL: out of memory. */
char *rg_text_clean(const char *s);
/* Columns that cleaned text takes on a terminal. */
int rg_text_width(const char *s);
/* Appends s shortened in the middle to `width` columns. */
void rg_text_shorten(struct rg_str *out, const char *s, int width);
/* A paragraph: `key`, padded to `indent`, then words wrapped at st->width with a
 * hanging indent. In Markdown a list item. */
void rg_text_paragraph(struct rg_str *out, const struct rg_style *st, const char *key, int indent,
		       const char *text);
/* SGR around text when st->colour: "1" bold, "2" dim, "31" red. */
void rg_text_styled(struct rg_str *out, const struct rg_style *st, const char *sgr, const char *text);

/* ---- numbers into at least 32 bytes; NAN gives "-"; return out ---- */
/* Three significant digits without exponent where that stays short. */
char *rg_num3(char *out, double v);
/* A share 0..1 as percent without the sign: "12.3". */
char *rg_num_percent(char *out, double share);
/* A factor: "1.83x". */
char *rg_num_times(char *out, double factor);
/* With SI prefix and a unit of any length: "4.11 GFLOP/s". out: 48 bytes. */
char *rg_num_si(char *out, double v, const char *unit);
/* A figure in its stored unit ("bytes", "ns", "flop/s", "fraction", ...) for people. out: 64 bytes. */
char *rg_num_unit(char *out, double v, const char *unit);
/* "m", "s", "~", "d", "-": the mark behind a figure; rg_text_legend explains. */
const char *rg_provenance_mark(enum rg_provenance p);
#define RG_PROVENANCE_LEGEND "m measured, s simulated, ~ modelled, d declared, - unknown"

#endif
