/*
 * Writers: an analysis, a path, a checklist, a list of runs, a machine, to
 * text, Markdown, JSON and CSV. A writer only appends to a buffer; the caller
 * prints. docs/json.md documents the JSON, docs/report.md the columns.
 *
 * Tables fit `width` columns: long names are shortened in the middle with an
 * ellipsis, columns keep their units in the heading. colour adds ANSI SGR only
 * to text tables.
 */
#ifndef RG_REPORTS_REPORT_H
#define RG_REPORTS_REPORT_H

#include <stdbool.h>

#include "analyzer/check.h"
#include "analyzer/ops.h"
#include "analyzer/path.h"
#include "analyzer/whatif.h"
#include "base/str.h"

enum rg_format { RG_FORMAT_TABLE, RG_FORMAT_JSON, RG_FORMAT_CSV, RG_FORMAT_MD };
bool rg_format_parse(const char *name, enum rg_format *out);

struct rg_style {
	enum rg_format format;
	bool colour;
	int width;               /* 0: unlimited (not a terminal) */
	int top;                 /* operators shown; 0: all */
	bool why;                /* and why each kernel was chosen (rg_report_run, text) */
};

/* All return 0, -ENOMEM, or -EINVAL when the format is not offered for it. */
int rg_report_runs(struct rg_str *out, const struct rg_run *runs, int n, const struct rg_style *st);
int rg_report_run(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st);
/* What the compiler did to the graph and what it left (ridge report --compiler). CSV: one row a note. */
int rg_report_compiler(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st);
int rg_report_path(struct rg_str *out, const struct rg_analysis *a, const struct rg_path *p,
		   const struct rg_style *st);
int rg_report_whatif(struct rg_str *out, const struct rg_analysis *a, const char *op,
		     const struct rg_whatif *w, const struct rg_style *st);
int rg_report_check(struct rg_str *out, const struct rg_analysis *a, const struct rg_checklist *c,
		    const struct rg_style *st);
int rg_report_ceilings(struct rg_str *out, const struct rg_fact *machine, int n_facts,
		       const struct rg_ceiling_row *rows, int n, const struct rg_style *st);

#endif
