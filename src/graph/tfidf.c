/* TfIdfVectorizer: its attributes; see tfidf.h. */
#include "graph/tfidf.h"

#include <inttypes.h>
#include <string.h>

static int bad(const struct rg_node *n, struct rg_error *err, const char *what)
{
	return rg_error_set(err, -EINVAL, "%s: %s", n->op_type, what);
}

static int read_mode(const struct rg_node *n, struct rg_tfidf *a, struct rg_error *err)
{
	static const char *const names[] = { "TF", "IDF", "TFIDF" };
	const char *mode = rg_node_string(n, "mode", "");

	for (int i = 0; i < 3; i++) {
		if (strcmp(mode, names[i]) == 0) {
			a->mode = (enum rg_tfidf_mode)i;
			return 0;
		}
	}
	return rg_error_set(err, -EINVAL, "%s: mode '%s' is not known", n->op_type, mode);
}

static int read_lengths(const struct rg_node *n, struct rg_tfidf *a, struct rg_error *err)
{
	int64_t low = rg_node_int(n, "min_gram_length", 0), high = rg_node_int(n, "max_gram_length", 0);

	a->max_skip = rg_node_int(n, "max_skip_count", -1);
	if (low < 1 || high < low)
		return rg_error_set(err, -EINVAL, "%s: n-grams of length %" PRId64 " to %" PRId64, n->op_type, low, high);
	if (a->max_skip < 0)
		return bad(n, err, "max_skip_count is missing or negative");
	if (!a->counts || high > a->counts->count)
		return bad(n, err, "ngram_counts has no entry for n-grams of max_gram_length");
	a->min_len = (int)low;
	a->max_len = (int)high;
	return 0;
}

static int check_pool(const struct rg_node *n, struct rg_tfidf *a, struct rg_error *err)
{
	for (int len = 1; len <= a->counts->count; len++) {
		int64_t from = a->counts->ints[len - 1];
		int64_t to = len < a->counts->count ? a->counts->ints[len] : a->pool->count;

		if (from < 0 || to < from || to > a->pool->count)
			return bad(n, err, "ngram_counts does not ascend within the pool");
		if ((to - from) % len)
			return rg_error_set(err, -EINVAL, "%s: the pool holds %" PRId64 " entries for n-grams of length %d",
					    n->op_type, to - from, len);
		a->n_grams += (int)((to - from) / len);
	}
	return 0;
}

static int read_columns(const struct rg_node *n, struct rg_tfidf *a, struct rg_error *err)
{
	int columns = rg_node_ints(n, "ngram_indexes", &a->columns), weights = rg_node_floats(n, "weights", &a->weights);

	if (columns < 1 || columns != a->n_grams)
		return rg_error_set(err, -EINVAL, "%s: ngram_indexes has %d entries for %d n-grams", n->op_type,
				    columns < 0 ? 0 : columns, a->n_grams);
	if (weights > 0 && weights != columns)
		return bad(n, err, "weights and ngram_indexes differ in length");
	if (weights <= 0)
		a->weights = NULL;
	for (int i = 0; i < columns; i++) {
		if (a->columns[i] < 0 || a->columns[i] == INT64_MAX)
			return rg_error_set(err, -EINVAL, "%s: ngram_indexes[%d] is %" PRId64, n->op_type, i, a->columns[i]);
		a->n_columns = a->columns[i] >= a->n_columns ? a->columns[i] + 1 : a->n_columns;
	}
	return 0;
}

int rg_tfidf_resolve(const struct rg_node *n, struct rg_tfidf *a, struct rg_error *err)
{
	const struct rg_attr *ints = rg_node_attr(n, "pool_int64s"), *strings = rg_node_attr(n, "pool_strings");
	bool has_ints = ints && ints->count > 0, has_strings = strings && strings->count > 0;

	memset(a, 0, sizeof(*a));
	a->pool = has_strings ? strings : ints;
	a->counts = rg_node_attr(n, "ngram_counts");
	if (has_ints == has_strings)
		return bad(n, err, "there must be a pool_int64s or a pool_strings, and not both");
	if (read_mode(n, a, err) || read_lengths(n, a, err) || check_pool(n, a, err))
		return err->code;
	return read_columns(n, a, err);
}

struct rg_tfidf_grams rg_tfidf_grams(const struct rg_tfidf *a, int len)
{
	struct rg_tfidf_grams g = { 0 };

	for (int l = 1; l <= len; l++) {
		int to = l < a->counts->count ? (int)a->counts->ints[l] : a->pool->count;

		g.from = (int)a->counts->ints[l - 1];
		g.first += g.count;
		g.count = (to - g.from) / l;
	}
	return g;
}
