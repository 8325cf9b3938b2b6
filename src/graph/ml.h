/*
 * Arguments of the ai.onnx.ml operators, read the same by inference and kernels.
 * Labels of classifiers that are strings are refused.
 */
#ifndef RG_GRAPH_ML_H
#define RG_GRAPH_ML_H

#include <stdbool.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

/* A list that an attribute gives, as list or as tensor; n is 0 where there is none. */
struct rg_ml_list {
	enum rg_dtype dtype; /* RG_UNDEFINED: there is none */
	int64_t n;
	const void *data;
};
/* The attribute `name` when it is a list of numbers or a tensor of float32,
 * float64, float16, integers; none otherwise. */
struct rg_ml_list rg_ml_list(const struct rg_node *n, const char *name);
/* The first of two attributes that is there: name and name_as_tensor. */
struct rg_ml_list rg_ml_list_or_tensor(const struct rg_node *n, const char *name);
/* Whether the attribute lists strings. */
bool rg_ml_strings(const struct rg_node *n, const char *name);
/* Element i as a double. */
double rg_ml_at(const struct rg_ml_list *l, int64_t i);

/* LabelEncoder from version 2 on: keys, values of equal length, and what else becomes: one value. */
int rg_ml_label_map(const struct rg_node *n, struct rg_ml_list *keys, struct rg_ml_list *values,
		    struct rg_ml_list *dflt, struct rg_error *err);

enum rg_ml_post { RG_POST_NONE, RG_POST_SOFTMAX, RG_POST_LOGISTIC, RG_POST_SOFTMAX_ZERO, RG_POST_PROBIT };
int rg_ml_post(const struct rg_node *n, enum rg_ml_post *out, struct rg_error *err);

/* Rows and features of a matrix, or of one row. */
bool rg_ml_rows(const struct rg_shape *s, int64_t *rows, int64_t *features);

enum rg_ml_aggregate { RG_AGGREGATE_AVERAGE, RG_AGGREGATE_SUM, RG_AGGREGATE_MIN, RG_AGGREGATE_MAX };
enum rg_ml_branch { RG_BRANCH_LEQ, RG_BRANCH_LT, RG_BRANCH_GTE, RG_BRANCH_GT, RG_BRANCH_EQ, RG_BRANCH_NEQ,
		    RG_BRANCH_MEMBER, RG_BRANCH_LEAF, RG_BRANCH_UNKNOWN };

/*
 * TreeEnsembleRegressor and -Classifier: nodes named by tree and node id, in any
 * order; a tree begins at the first of its nodes. Votes name their leaf.
 * TreeEnsemble (by_index): children are indices, of nodes or of leaves; a leaf is
 * one vote.
 */
struct rg_forest {
	bool by_index;
	int64_t n, n_votes, n_targets;
	const int64_t *tree, *id;         /* not by_index */
	const int64_t *feature, *yes, *no;
	const int64_t *missing;           /* NULL: NaN takes the false branch */
	const char *const *mode_names;    /* not by_index */
	const uint8_t *modes;             /* by_index */
	struct rg_ml_list split, weight, base;
	const int64_t *vote_tree, *vote_node; /* not by_index */
	const int64_t *vote_target;
	const int64_t *yes_leaf, *no_leaf, *root; /* by_index */
	int64_t n_roots;
	struct rg_ml_list members;        /* by_index: sets, each ended by NaN */
	enum rg_ml_aggregate aggregate;
	enum rg_ml_post post;
	bool classifies;
	const int64_t *label;             /* classifies: n_targets of them */
	bool one_score;                   /* classifies two classes by the score of one */
	bool positive;                    /* and its votes are all positive: a probability */
};
/* Pointers and lengths; cheap. The lists agree in length. */
int rg_forest_resolve(const struct rg_node *n, struct rg_forest *out, struct rg_error *err);
/* Every index and mode, against so many features. */
int rg_forest_check(const struct rg_node *n, const struct rg_forest *f, int64_t features, struct rg_error *err);
/* How node i branches. */
enum rg_ml_branch rg_forest_branch(const struct rg_forest *f, int64_t i);

#endif
