/* What `ridge plan MODEL` says. docs/json.md documents the JSON. */
#ifndef RG_REPORTS_REPORT_MEMORY_H
#define RG_REPORTS_REPORT_MEMORY_H

#include "compile/memory.h"
#include "reports/report.h"

/* CSV gives the buffers as an allocation instance. st->top: buffers a table, 0: ten.
 * 0, or -ENOMEM. */
int rg_report_memory(struct rg_str *out, const struct rg_memory *m, const char *model, const struct rg_style *st);

#endif
