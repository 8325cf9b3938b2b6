/*
 * TfIdfVectorizer: which n-grams it looks for. Inference checks them, the kernel
 * counts with a sorted list of them, made once.
 */
#ifndef RG_GRAPH_TFIDF_H
#define RG_GRAPH_TFIDF_H

#include <stdint.h>

#include "base/error.h"
#include "graph/graph.h"

enum rg_tfidf_mode { RG_TFIDF_TF, RG_TFIDF_IDF, RG_TFIDF_TFIDF };

struct rg_tfidf {
	enum rg_tfidf_mode mode;
	const struct rg_attr *pool;      /* integers or strings */
	const struct rg_attr *counts;    /* where the 1-grams, 2-grams, ... begin in the pool */
	int min_len, max_len;            /* max_len is at most counts->count */
	int64_t max_skip;
	const int64_t *columns;          /* by n-gram: its place in the output */
	const float *weights;            /* by n-gram; NULL: 1 */
	int n_grams;
	int64_t n_columns;
};

/* Where the n-grams of length n begin in the pool, how many there are, and the
 * number of the first among all. */
struct rg_tfidf_grams {
	int from, count, first;
};

int rg_tfidf_resolve(const struct rg_node *n, struct rg_tfidf *out, struct rg_error *err);
struct rg_tfidf_grams rg_tfidf_grams(const struct rg_tfidf *a, int len);

#endif
