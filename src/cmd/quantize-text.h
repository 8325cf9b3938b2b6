/* What `ridge quantize` says about what it did. */
#ifndef RG_CMD_QUANTIZE_TEXT_H
#define RG_CMD_QUANTIZE_TEXT_H

#include "reports/table.h"
#include "session/quantize.h"

/* For people. 0 or -ENOMEM. */
int rg_quantize_text(struct rg_str *out, const struct rg_quantized *r, const struct rg_style *st);
/* --format json (docs/json.md). 0 or -ENOMEM. */
int rg_quantize_json(struct rg_str *out, const struct rg_quantized *r, const char *model, const char *path);
/* The lines on standard error. */
void rg_quantize_summary(struct rg_str *out, const struct rg_quantized *r, const char *path);

#endif
