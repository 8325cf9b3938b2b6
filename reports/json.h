/*
 * JSON by jansson, for the writers of this layer and the verbs: missing numbers
 * are null, text is always valid UTF-8, and a failed allocation anywhere ends
 * in one -ENOMEM. docs/json.md describes what the writers make of it.
 */
#ifndef RG_REPORTS_JSON_H
#define RG_REPORTS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* One document under construction. */
struct rg_json {
	json_t *root;        /* an object */
	bool failed;
};
void rg_json_init(struct rg_json *j);
/* Takes over the reference of v, also on failure; key NULL: `to` is an array.
 * Returns v as a borrowed reference, or NULL. */
json_t *rg_json_put(struct rg_json *j, json_t *to, const char *key, json_t *v);
void rg_json_text(struct rg_json *j, json_t *to, const char *key, const char *s);  /* NULL: null */
void rg_json_num(struct rg_json *j, json_t *to, const char *key, double v);       /* not finite: null */
void rg_json_int(struct rg_json *j, json_t *to, const char *key, int64_t v);      /* negative: null */
void rg_json_bool(struct rg_json *j, json_t *to, const char *key, bool v);
/* "1x64x56x56" as an array of integers, "scalar" as []; anything else null. */
void rg_json_shape(struct rg_json *j, json_t *to, const char *key, const char *shape);
/* Appends the document with a final newline and frees it. 0 or -ENOMEM. */
int rg_json_finish(struct rg_json *j, struct rg_str *out);

#endif
