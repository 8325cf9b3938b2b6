/* Operators of ai.onnx.ml: versions, shapes and costs. */
#include <inttypes.h>
#include <string.h>

#include "graph/ml.h"
#include "graph/op-args.h"
#include "graph/op-families.h"
#include "graph/op-types.h"

#define ML "ai.onnx.ml"
#define SET_DATA (RG_BIT(RG_F32) | RG_BIT(RG_F64) | RG_BIT(RG_I64) | RG_BIT(RG_I32))

static int infer_extract(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s;
	int rc = rg_infer_type(c, 0, SET_DATA, err);

	if (rc || (rc = rg_infer_type(c, 1, RG_BIT(RG_I64), err)))
		return rc;
	s = c->in[0]->shape;
	if (s.rank == 0)
		return rg_infer_fail(c, err, "there is no dimension to select from");
	if (s.rank == 1)
		s = (struct rg_shape){ .rank = 2, .dim = { 1, 0 } };
	s.dim[s.rank - 1] = rg_shape_count(&c->in[1]->shape);
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

static int infer_binarizer(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, SET_DATA, err);

	return rc ? rc : rg_infer_same(c, err);
}

static int infer_label_encoder(struct rg_infer *c, struct rg_error *err)
{
	struct rg_ml_list keys, values, dflt;
	int rc;

	if (c->node->version == 1) { /* names of classes to their numbers, or the other way round */
		if (!rg_ml_strings(c->node, "classes_strings"))
			return rg_infer_fail(c, err, "classes_strings is missing");
		rc = rg_infer_type(c, 0, RG_BIT(RG_STRING) | RG_BIT(RG_I64), err);
		if (!rc)
			rg_infer_out(c, 0, c->in[0]->dtype == RG_STRING ? RG_I64 : RG_STRING, &c->in[0]->shape);
		return rc;
	}
	rc = rg_ml_label_map(c->node, &keys, &values, &dflt, err);
	if (rc || (rc = rg_infer_type(c, 0, RG_BIT(keys.dtype), err)))
		return rc;
	rg_infer_out(c, 0, values.dtype, &c->in[0]->shape);
	return 0;
}

/* A list of one value, or one a feature. */
static int per_feature(struct rg_infer *c, const char *name, int64_t n, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;

	if (n == 1 || (s->rank > 0 && n == s->dim[s->rank - 1]))
		return 0;
	return rg_infer_fail(c, err, "attribute %s must have one entry, or one a feature, not %" PRId64, name, n);
}

static int infer_scaler(struct rg_infer *c, struct rg_error *err)
{
	const float *list;
	int rc = rg_infer_type(c, 0, SET_DATA, err);

	if (rc || (rc = per_feature(c, "offset", rg_node_floats(c->node, "offset", &list), err)) ||
	    (rc = per_feature(c, "scale", rg_node_floats(c->node, "scale", &list), err)))
		return rc;
	rg_infer_out(c, 0, RG_F32, &c->in[0]->shape);
	return 0;
}

static void cost_scaler(const struct rg_cost_in *c, struct rg_cost *out)
{
	rg_cost_elementwise(c, out, 2, 0);
}

static int infer_normalizer(struct rg_infer *c, struct rg_error *err)
{
	const char *norm = rg_node_string(c->node, "norm", "MAX");
	int rc = rg_infer_type(c, 0, SET_DATA, err);

	if (rc)
		return rc;
	if (strcmp(norm, "MAX") && strcmp(norm, "L1") && strcmp(norm, "L2"))
		return rg_infer_fail(c, err, "the norm is '%.20s', not MAX, L1 or L2", norm);
	if (c->in[0]->shape.rank != 1 && c->in[0]->shape.rank != 2)
		return rg_infer_fail(c, err, "the input must have one or two dimensions");
	rg_infer_out(c, 0, RG_F32, &c->in[0]->shape);
	return 0;
}

static int infer_imputer(struct rg_infer *c, struct rg_error *err)
{
	const int64_t *ints;
	const float *floats;
	bool is_float;
	int rc = rg_infer_type(c, 0, SET_DATA, err);

	if (rc)
		return rc;
	is_float = rg_dtype_is_float(c->in[0]->dtype);
	rc = is_float ? per_feature(c, "imputed_value_floats",
				    rg_node_floats(c->node, "imputed_value_floats", &floats), err)
		      : per_feature(c, "imputed_value_int64s",
				    rg_node_ints(c->node, "imputed_value_int64s", &ints), err);
	return rc ? rc : rg_infer_same(c, err);
}

static int infer_one_hot(struct rg_infer *c, struct rg_error *err)
{
	const int64_t *list;
	struct rg_shape s;
	int n, rc;

	if (rg_ml_strings(c->node, "cats_strings"))
		return rg_error_set(err, RG_ENOTSUP_MODEL,
				    "OneHotEncoder with cats_strings: strings are not supported");
	if ((rc = rg_infer_type(c, 0, SET_DATA, err)))
		return rc;
	n = rg_node_ints(c->node, "cats_int64s", &list);
	s = c->in[0]->shape;
	if (n < 1 || s.rank == RG_MAX_RANK)
		return rg_infer_fail(c, err, "there are no categories, or too many dimensions");
	s.dim[s.rank++] = n;
	rg_infer_out(c, 0, RG_F32, &s);
	return 0;
}

static int infer_vectorizer(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { .rank = 2 };
	const int64_t *dims;
	int n = rg_node_ints(c->node, "inputdimensions", &dims);

	for (int i = 0; i < c->node->n_in; i++) {
		int64_t rows, features;
		int rc = rg_infer_type(c, i, SET_DATA, err);

		if (rc)
			return rc;
		if (!rg_ml_rows(&c->in[i]->shape, &rows, &features) || (i > 0 && rows != s.dim[0]))
			return rg_infer_fail(c, err, "the inputs must be matrices of as many rows each");
		if (n >= 0 && (n != c->node->n_in || dims[i] != features))
			return rg_error_set(err, RG_ENOTSUP_MODEL,
					    "FeatureVectorizer whose inputdimensions are not those of "
					    "its inputs is not supported");
		s.dim[0] = rows;
		if (__builtin_add_overflow(s.dim[1], features, &s.dim[1]))
			return rg_infer_fail(c, err, "there are too many features");
	}
	rg_infer_out(c, 0, RG_F32, &s);
	return 0;
}

/* ---- linear models ---- */

static int linear(struct rg_infer *c, int64_t targets, int64_t *rows, struct rg_error *err)
{
	const float *list;
	int64_t features, n;
	int coefficients = rg_node_floats(c->node, "coefficients", &list);
	int intercepts = rg_node_floats(c->node, "intercepts", &list), rc = rg_infer_type(c, 0, SET_DATA, err);

	if (rc)
		return rc;
	if (!rg_ml_rows(&c->in[0]->shape, rows, &features))
		return rg_infer_fail(c, err, "the input must be a matrix");
	if (targets < 1 || __builtin_mul_overflow(targets, features, &n) || coefficients != n ||
	    (intercepts > 0 && intercepts != targets))
		return rg_infer_fail(c, err,
				     "%d coefficients and %d intercepts do not fit %" PRId64
				     " targets of %" PRId64 " features",
				     coefficients, intercepts, targets, features);
	return 0;
}

static int infer_linear_regressor(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { .rank = 2 };
	enum rg_ml_post post;
	int rc;

	s.dim[1] = rg_node_int(c->node, "targets", 1);
	if ((rc = linear(c, s.dim[1], &s.dim[0], err)) || (rc = rg_ml_post(c->node, &post, err)))
		return rc;
	if (s.dim[1] == 1 && post != RG_POST_NONE && post != RG_POST_PROBIT)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "LinearRegressor of one target is supported with the "
				    "post_transforms NONE and PROBIT");
	rg_infer_out(c, 0, RG_F32, &s);
	return 0;
}

static int infer_linear_classifier(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape y = { .rank = 1 }, z = { .rank = 2 };
	int64_t features, targets;
	enum rg_ml_post post;
	const int64_t *list;
	const float *floats;
	int classes = rg_node_ints(c->node, "classlabels_ints", &list), rc;

	if (rg_ml_strings(c->node, "classlabels_strings"))
		return rg_error_set(err, RG_ENOTSUP_MODEL,
				    "LinearClassifier with classlabels_strings: strings are not "
				    "supported");
	if ((rc = rg_infer_type(c, 0, SET_DATA, err)) || (rc = rg_ml_post(c->node, &post, err)))
		return rc;
	if (!rg_ml_rows(&c->in[0]->shape, &y.dim[0], &features) || features < 1 || classes < 2)
		return rg_infer_fail(c, err, "a matrix and at least two classlabels_ints are needed");
	targets = rg_node_floats(c->node, "coefficients", &floats) / features;
	if (targets == 1 && classes == 2 && post != RG_POST_LOGISTIC)
		return rg_error_set(err, RG_ENOTSUP_MODEL,
				    "LinearClassifier of two classes by one score is supported with the "
				    "post_transform LOGISTIC");
	if (targets != classes && !(targets == 1 && classes == 2))
		return rg_infer_fail(c, err, "%" PRId64 " scores for %d classes", targets, classes);
	if ((rc = linear(c, targets, &y.dim[0], err)))
		return rc;
	z.dim[0] = y.dim[0];
	z.dim[1] = classes;
	rg_infer_out(c, 0, RG_I64, &y);
	rg_infer_out(c, 1, RG_F32, &z);
	return 0;
}

/* The products; a post-transform is not counted when there is none, and unknown otherwise. */
static void cost_linear(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	enum rg_ml_post post;
	const float *list;
	int64_t rows, features;
	int n = rg_node_floats(c->node, "coefficients", &list), b = rg_node_floats(c->node, "intercepts", &list);

	if (rg_ml_post(c->node, &post, &err) || post != RG_POST_NONE || n < 0 ||
	    !rg_ml_rows(&c->in[0].shape, &rows, &features))
		return;
	out->flops = rg_cost_mul(rows, 2 * (int64_t)n + (b > 0 ? b : 0));
	out->iops = out->sfu = 0;
}

/* ---- trees ---- */

static int infer_trees(struct rg_infer *c, struct rg_error *err)
{
	bool by_index = strcmp(c->node->op_type, "TreeEnsemble") == 0;
	struct rg_shape y = { .rank = 1 }, z = { .rank = 2 };
	struct rg_forest f;
	int64_t features;
	int rc = rg_infer_type(c, 0, by_index ? RG_SET_FLOAT & ~RG_BIT(RG_BF16) : SET_DATA, err);

	if (rc)
		return rc;
	if (!rg_ml_rows(&c->in[0]->shape, &y.dim[0], &features))
		return rg_infer_fail(c, err, "the input must be a matrix");
	if ((rc = rg_forest_resolve(c->node, &f, err)) || (rc = rg_forest_check(c->node, &f, features, err)))
		return rc;
	z.dim[0] = y.dim[0];
	z.dim[1] = f.n_targets;
	if (f.classifies)
		rg_infer_out(c, 0, RG_I64, &y);
	rg_infer_out(c, f.classifies ? 1 : 0, by_index ? c->in[0]->dtype : RG_F32, &z);
	return 0;
}

const struct rg_op rg_ops_ml[] = {
	{ ML, "ArrayFeatureExtractor", RG_KIND_MOVE, 0, 2, 2, 1, 1, { 1 }, 1, 1, infer_extract, NULL },
	{ ML, "Binarizer", RG_KIND_ELEMENTWISE, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_binarizer, NULL },
	{ ML, "FeatureVectorizer", RG_KIND_MOVE, 0, 1, -1, 1, 1, { 1 }, 1, 1, infer_vectorizer, NULL },
	{ ML, "Imputer", RG_KIND_ELEMENTWISE, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_imputer, NULL },
	{ ML, "LabelEncoder", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 1, 2, 4 }, 1, 4, infer_label_encoder, NULL },
	{ ML, "LinearClassifier", RG_KIND_GEMM, 0, 1, 1, 1, 2, { 1 }, 1, 1, infer_linear_classifier, cost_linear },
	{ ML, "LinearRegressor", RG_KIND_GEMM, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_linear_regressor, cost_linear },
	{ ML, "Normalizer", RG_KIND_NORM, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_normalizer, NULL },
	{ ML, "OneHotEncoder", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_one_hot, NULL },
	{ ML, "Scaler", RG_KIND_ELEMENTWISE, 0, 1, 1, 1, 1, { 1 }, 1, 1, infer_scaler, cost_scaler },
	{ ML, "TreeEnsemble", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 5 }, 5, 5, infer_trees, NULL },
	{ ML, "TreeEnsembleClassifier", RG_KIND_OTHER, 0, 1, 1, 1, 2, { 1, 3, 5 }, 1, 5, infer_trees, NULL },
	{ ML, "TreeEnsembleRegressor", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 1, 3, 5 }, 1, 5, infer_trees, NULL },
};
RG_OP_FAMILY_END(ml);
