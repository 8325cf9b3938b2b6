/* What `ridge optimize` says about what it did. */
#ifndef RG_CMD_OPTIMIZE_TEXT_H
#define RG_CMD_OPTIMIZE_TEXT_H

#include "reports/table.h"
#include "session/optimize.h"

/* --explain, for people. 0 or -ENOMEM. */
int rg_optimize_explain(struct rg_str *out, const struct rg_optimized *r, const struct rg_style *st);
/* --format json (docs/json.md). 0 or -ENOMEM. */
int rg_optimize_json(struct rg_str *out, const struct rg_optimized *r, const char *path);
/* The one line on standard error. */
void rg_optimize_summary(struct rg_str *out, const struct rg_optimized *r, const char *path);

#endif
