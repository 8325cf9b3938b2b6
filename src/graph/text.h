/*
 * Text as the operators on strings see it: elements of string tensors, UTF-8,
 * letter case, and how StringSplit and StringNormalizer cut. How much they cut
 * is the shape of their outputs, so that inference and kernel share it.
 *
 * Bytes that are no UTF-8 are kept as they are, each a character of its own.
 */
#ifndef RG_GRAPH_TEXT_H
#define RG_GRAPH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

/* Element i of a string tensor, never NULL. */
static inline const char *rg_text_at(const struct rg_tensor *t, int64_t i)
{
	const char *s = ((const char *const *)t->data)[i];

	return s ? s : "";
}

/* Reads one character and moves *s behind it; at the end 0, and *s stays. A byte
 * that begins no valid sequence comes as RG_TEXT_BYTE plus the byte. */
#define RG_TEXT_BYTE 0x40000000u
unsigned rg_text_next(const char **s);
/* Writes a character of rg_text_next: up to 4 bytes. Returns how many. */
int rg_text_put(char *to, unsigned c);

enum rg_text_case { RG_CASE_NONE, RG_CASE_LOWER, RG_CASE_UPPER };

/* One character for one: Unicode's simple mappings (those of Unicode 15), or of
 * ASCII letters only. */
unsigned rg_text_map(unsigned c, enum rg_text_case to, bool ascii);

/* StringNormalizer. */
struct rg_text_normal {
	enum rg_text_case change;
	bool ascii;              /* locale "C": other letters have no case */
	bool sensitive;          /* the comparison with stop words */
	const struct rg_attr *stop; /* NULL: none */
};
int rg_text_normal_resolve(const struct rg_node *n, struct rg_text_normal *out, struct rg_error *err);
/* Is s none of the stop words? */
bool rg_text_is_kept(const struct rg_text_normal *a, const char *s);

/* StringSplit. */
struct rg_text_split {
	const char *delimiter;   /* "": runs of white space */
	size_t delimiter_len;
	int64_t max;             /* cuts, at most; INT64_MAX: no limit */
};
int rg_text_split_resolve(const struct rg_node *n, struct rg_text_split *out, struct rg_error *err);
/*
 * The pieces of s, one a call: begin with *at = s and *cuts = 0; false when there
 * is none left. An empty string has no pieces; "," split at "," has two empty ones.
 */
bool rg_text_split_next(const struct rg_text_split *a, const char **at, int64_t *cuts, const char **piece,
			size_t *len);
/* How many pieces s has. */
int64_t rg_text_split_count(const struct rg_text_split *a, const char *s);

#endif
