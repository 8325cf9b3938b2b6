/* Resolves the tree ensembles of ai.onnx.ml; see ml.h. */
#include <math.h>
#include <string.h>

#include "graph/ml.h"

static int bad_list(const struct rg_node *n, const char *name, struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "%s: attribute %s is missing or of another length", n->op_type, name);
}

/* Integers of an attribute; *count is their number when it is negative, else it must be. */
static int ints(const struct rg_node *n, const char *name, int64_t *count, const int64_t **out,
		struct rg_error *err)
{
	int have = rg_node_ints(n, name, out);

	if (have < 0 || (*count >= 0 && have != *count))
		return bad_list(n, name, err);
	*count = have;
	return 0;
}

static int numbers(const struct rg_node *n, const char *name, int64_t count, struct rg_ml_list *out,
		   struct rg_error *err)
{
	*out = rg_ml_list_or_tensor(n, name);
	return out->dtype == RG_UNDEFINED || out->n != count ? bad_list(n, name, err) : 0;
}

/* What may be left out: NULL for none. */
static int optional(const struct rg_node *n, const char *name, int64_t count, const int64_t **out,
		    struct rg_error *err)
{
	int have = rg_node_ints(n, name, out);

	if (have <= 0)
		*out = NULL;
	return have > 0 && have != count ? bad_list(n, name, err) : 0;
}

static int aggregate(const struct rg_node *n, enum rg_ml_aggregate *out, struct rg_error *err)
{
	static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
	const struct rg_attr *a = rg_node_attr(n, "aggregate_function");

	*out = RG_AGGREGATE_SUM;
	if (!a)
		return 0;
	for (int i = 0; i <= RG_AGGREGATE_MAX; i++) {
		if (a->type == RG_ATTR_INT ? a->i != i : a->type != RG_ATTR_STRING || strcmp(a->s, names[i]))
			continue;
		*out = (enum rg_ml_aggregate)i;
		return 0;
	}
	return rg_error_set(err, -EINVAL, "%s: the aggregate_function is none that the operator has", n->op_type);
}

static int targets(const struct rg_node *n, struct rg_forest *f, struct rg_error *err)
{
	f->n_targets = rg_node_int(n, "n_targets", -1);
	if (f->n_targets < 1 || f->n_targets > INT32_MAX)
		return rg_error_set(err, -EINVAL, "%s: n_targets is missing or no number of targets", n->op_type);
	return 0;
}

/* A class with no name but its index cannot be told from one: labels are needed. */
static int labels(const struct rg_node *n, struct rg_forest *f, struct rg_error *err)
{
	int64_t least = INT64_MAX, most = INT64_MIN;
	int count = rg_node_ints(n, "classlabels_int64s", &f->label);

	if (rg_ml_strings(n, "classlabels_strings"))
		return rg_error_set(err, RG_ENOTSUP_MODEL,
				    "%s with classlabels_strings: strings are not supported", n->op_type);
	if (count < 2)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s with fewer than two classes is not supported",
				    n->op_type);
	f->n_targets = count;
	f->positive = true;
	for (int64_t i = 0; i < f->n_votes; i++) {
		least = f->vote_target[i] < least ? f->vote_target[i] : least;
		most = f->vote_target[i] > most ? f->vote_target[i] : most;
		f->positive &= rg_ml_at(&f->weight, i) >= 0;
	}
	f->one_score = count == 2 && f->n_votes > 0 && least == most;
	if (f->one_score &&
	    (least != 0 || f->base.n > 1 || (f->post != RG_POST_NONE && f->post != RG_POST_LOGISTIC)))
		return rg_error_set(err, RG_ENOTSUP_MODEL,
				    "%s of two classes by one score is supported for class 0, at most "
				    "one base value, and the post_transforms NONE and LOGISTIC",
				    n->op_type);
	return 0;
}

/* What the definition and ONNX Runtime do not agree on. */
static int check_post(const struct rg_node *n, const struct rg_forest *f, struct rg_error *err)
{
	if (f->classifies || f->n_targets > 1 || f->post == RG_POST_NONE || f->post == RG_POST_PROBIT)
		return 0;
	return rg_error_set(err, RG_ENOTSUP_MODEL,
			    "%s of one target with a post_transform is supported for NONE and "
			    "PROBIT",
			    n->op_type);
}

static int by_name(const struct rg_node *n, struct rg_forest *f, struct rg_error *err)
{
	static const char *const names[2][4] = {
		{ "target_treeids", "target_nodeids", "target_ids", "target_weights" },
		{ "class_treeids", "class_nodeids", "class_ids", "class_weights" },
	};
	const char *const *vote = names[f->classifies];
	const struct rg_attr *modes = rg_node_attr(n, "nodes_modes");
	int rc;

	if ((rc = ints(n, "nodes_treeids", &f->n, &f->tree, err)) ||
	    (rc = ints(n, "nodes_nodeids", &f->n, &f->id, err)) ||
	    (rc = ints(n, "nodes_featureids", &f->n, &f->feature, err)) ||
	    (rc = ints(n, "nodes_truenodeids", &f->n, &f->yes, err)) ||
	    (rc = ints(n, "nodes_falsenodeids", &f->n, &f->no, err)) ||
	    (rc = numbers(n, "nodes_values", f->n, &f->split, err)) ||
	    (rc = optional(n, "nodes_missing_value_tracks_true", f->n, &f->missing, err)) ||
	    (rc = ints(n, vote[0], &f->n_votes, &f->vote_tree, err)) ||
	    (rc = ints(n, vote[1], &f->n_votes, &f->vote_node, err)) ||
	    (rc = ints(n, vote[2], &f->n_votes, &f->vote_target, err)) ||
	    (rc = numbers(n, vote[3], f->n_votes, &f->weight, err)))
		return rc;
	if (!modes || modes->type != RG_ATTR_STRINGS || modes->count != f->n)
		return bad_list(n, "nodes_modes", err);
	f->mode_names = modes->strings;
	f->base = rg_ml_list_or_tensor(n, "base_values");
	rc = f->classifies ? labels(n, f, err) : targets(n, f, err);
	if (rc == 0 && f->base.n > 0 && f->base.n != f->n_targets && !f->one_score)
		return bad_list(n, "base_values", err);
	return rc;
}

static int by_index(const struct rg_node *n, struct rg_forest *f, struct rg_error *err)
{
	struct rg_ml_list modes = rg_ml_list(n, "nodes_modes");
	int64_t roots = -1;
	int rc;

	if ((rc = ints(n, "nodes_featureids", &f->n, &f->feature, err)) ||
	    (rc = ints(n, "nodes_truenodeids", &f->n, &f->yes, err)) ||
	    (rc = ints(n, "nodes_falsenodeids", &f->n, &f->no, err)) ||
	    (rc = ints(n, "nodes_trueleafs", &f->n, &f->yes_leaf, err)) ||
	    (rc = ints(n, "nodes_falseleafs", &f->n, &f->no_leaf, err)) ||
	    (rc = numbers(n, "nodes_splits", f->n, &f->split, err)) ||
	    (rc = optional(n, "nodes_missing_value_tracks_true", f->n, &f->missing, err)) ||
	    (rc = ints(n, "leaf_targetids", &f->n_votes, &f->vote_target, err)) ||
	    (rc = numbers(n, "leaf_weights", f->n_votes, &f->weight, err)) ||
	    (rc = ints(n, "tree_roots", &roots, &f->root, err)) || (rc = targets(n, f, err)))
		return rc;
	if (modes.dtype != RG_U8 || modes.n != f->n)
		return bad_list(n, "nodes_modes", err);
	f->modes = modes.data;
	f->n_roots = roots;
	f->members = rg_ml_list(n, "membership_values");
	return 0;
}

int rg_forest_resolve(const struct rg_node *n, struct rg_forest *f, struct rg_error *err)
{
	int rc;

	memset(f, 0, sizeof(*f));
	f->n = f->n_votes = -1;
	f->by_index = strcmp(n->op_type, "TreeEnsemble") == 0;
	f->classifies = strcmp(n->op_type, "TreeEnsembleClassifier") == 0;
	if ((rc = aggregate(n, &f->aggregate, err)) || (rc = rg_ml_post(n, &f->post, err)) ||
	    (rc = f->by_index ? by_index(n, f, err) : by_name(n, f, err)))
		return rc;
	if (f->n < 1)
		return rg_error_set(err, -EINVAL, "%s has no nodes", n->op_type);
	if (f->n > INT32_MAX / 4 || f->n_votes > INT32_MAX / 4)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s of %lld nodes is not supported", n->op_type,
				    (long long)f->n);
	return check_post(n, f, err);
}

enum rg_ml_branch rg_forest_branch(const struct rg_forest *f, int64_t i)
{
	static const char *const names[] = {
		[RG_BRANCH_LEQ] = "BRANCH_LEQ", [RG_BRANCH_LT] = "BRANCH_LT", [RG_BRANCH_GTE] = "BRANCH_GTE",
		[RG_BRANCH_GT] = "BRANCH_GT", [RG_BRANCH_EQ] = "BRANCH_EQ", [RG_BRANCH_NEQ] = "BRANCH_NEQ",
		[RG_BRANCH_MEMBER] = "", [RG_BRANCH_LEAF] = "LEAF",
	};

	if (f->by_index)
		return f->modes[i] <= RG_BRANCH_MEMBER ? (enum rg_ml_branch)f->modes[i] : RG_BRANCH_UNKNOWN;
	for (int k = RG_BRANCH_LEQ; k <= RG_BRANCH_LEAF; k++)
		if (k != RG_BRANCH_MEMBER && strcmp(f->mode_names[i], names[k]) == 0)
			return (enum rg_ml_branch)k;
	return RG_BRANCH_UNKNOWN;
}

static bool child_exists(const struct rg_forest *f, int64_t child, int64_t is_leaf)
{
	return child >= 0 && child < (is_leaf ? f->n_votes : f->n);
}

/* As many sets of members as nodes that ask for one. */
static int check_members(const struct rg_node *n, const struct rg_forest *f, int64_t asked, struct rg_error *err)
{
	int64_t sets = 0;

	for (int64_t i = 0; i < f->members.n; i++)
		sets += isnan(rg_ml_at(&f->members, i));
	return sets < asked ? bad_list(n, "membership_values", err) : 0;
}

int rg_forest_check(const struct rg_node *n, const struct rg_forest *f, int64_t features, struct rg_error *err)
{
	int64_t member_nodes = 0;

	for (int64_t i = 0; i < f->n; i++) {
		enum rg_ml_branch b = rg_forest_branch(f, i);

		if (b == RG_BRANCH_UNKNOWN)
			return rg_error_set(err, -EINVAL, "%s: node %lld branches in a way that is not known",
					    n->op_type, (long long)i);
		if (b != RG_BRANCH_LEAF && (f->feature[i] < 0 || f->feature[i] >= features))
			return rg_error_set(err, -EINVAL, "%s: node %lld looks at feature %lld of %lld",
					    n->op_type, (long long)i, (long long)f->feature[i],
					    (long long)features);
		if (f->by_index && (!child_exists(f, f->yes[i], f->yes_leaf[i]) ||
				    !child_exists(f, f->no[i], f->no_leaf[i])))
			return rg_error_set(err, -EINVAL, "%s: a child of node %lld does not exist",
					    n->op_type, (long long)i);
		member_nodes += b == RG_BRANCH_MEMBER;
	}
	for (int64_t i = 0; i < f->n_votes; i++)
		if (f->vote_target[i] < 0 || f->vote_target[i] >= f->n_targets)
			return rg_error_set(err, -EINVAL, "%s: a leaf votes for target %lld of %lld", n->op_type,
					    (long long)f->vote_target[i], (long long)f->n_targets);
	for (int64_t i = 0; i < f->n_roots; i++)
		if (f->root[i] < 0 || f->root[i] >= f->n)
			return rg_error_set(err, -EINVAL, "%s: tree %lld has no root", n->op_type, (long long)i);
	return check_members(n, f, member_nodes, err);
}
