/*
 * What the writers of this folder share.
 */
#ifndef RG_REPORTS_REPORT_RUN_H
#define RG_REPORTS_REPORT_RUN_H

#include "reports/json.h"
#include "reports/report.h"

int rg_report_run_json(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st);
/* Indices of operators, longest first (rg_free), and how many st->top shows. */
int *rg_report_order(const struct rg_analysis *a, const struct rg_style *st, int *shown);
/* UTC; "-" for a time that is unknown. format as strftime. */
void rg_report_date(char out[32], int64_t unix_ns, const char *format);
/* Facts as an array of {key, value, unit, provenance, method}. */
void rg_report_json_facts(struct rg_json *j, json_t *to, const char *key, const struct rg_fact *facts, int n);
/* Ceilings as an array. */
void rg_report_json_ceilings(struct rg_json *j, json_t *to, const char *key,
			     const struct rg_ceiling_row *rows, int n);
/* The run itself: id, tag, model, when, status. */
void rg_report_json_recording(struct rg_json *j, json_t *to, const char *key, const struct rg_run *run);

/* report-static.c: a plan that was not run. */
bool rg_report_is_static(const struct rg_recording *r);
void rg_report_static_latency(struct rg_str *s, const struct rg_analysis *a);
void rg_report_static_memory(struct rg_str *s, const struct rg_analysis *a);
int rg_report_static_operators(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st);

/* report-why.c: the kernels of the operators shown, and why the plan took each. */
int rg_report_why(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st);

/* "resnet50 (builtin:resnet50), run 12 tagged before, ..., complete" */
void rg_report_model_line(struct rg_str *s, const struct rg_recording *r);

#endif
