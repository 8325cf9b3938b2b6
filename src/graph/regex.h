/*
 * Regular expressions in the syntax of RE2 (github.com/google/re2/wiki/Syntax),
 * for whole strings: all of it but what needs tables of Unicode (\p, (?i)) and
 * \C, which are refused by name. Matching takes time linear in the text times
 * the length of the program, whatever the pattern.
 *
 * A program is one block without pointers, so that it can be copied by memcpy.
 */
#ifndef RG_GRAPH_REGEX_H
#define RG_GRAPH_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct rg_regex;

/* The caller's to rg_free. RG_ENOTSUP_MODEL for what is not supported, -EINVAL
 * for what is no pattern. */
int rg_regex_new(const char *pattern, struct rg_regex **out, struct rg_error *err);
size_t rg_regex_bytes(const struct rg_regex *r);
size_t rg_regex_scratch_bytes(const struct rg_regex *r);
/* Does the whole of s match? scratch is aligned to 8. */
bool rg_regex_match(const struct rg_regex *r, const char *s, void *scratch);

#endif
