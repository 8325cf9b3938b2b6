/* ai.onnx.ml: features picked, encoded, scaled and normalised, row by row. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/ml.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int extract(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t dim = s->dim[s->rank - 1], rows = rg_shape_count_range(s, 0, s->rank - 1);
	int64_t n = rg_shape_count(&c->in[1].shape), size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	const int64_t *index = c->in[1].data;

	for (int64_t i = 0; i < n; i++) {
		if (index[i] < 0 || index[i] >= dim)
			return rg_error_set(err, -ERANGE,
					    "index %" PRId64 " is outside of %" PRId64 " features", index[i],
					    dim);
		for (int64_t r = 0; r < rows; r++)
			memcpy((char *)c->out[0].data + (r * n + i) * size,
			       (const char *)c->in[0].data + (r * dim + index[i]) * size, (size_t)size);
	}
	return 0;
}

/* Integers above 2^53 round to double here, which moves none across a float32 threshold. */
static int binarizer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double threshold = (double)rg_node_float(c->node, "threshold", 0);
	int64_t n = rg_shape_count(&c->out[0].shape);

	for (int64_t i = 0; i < n; i++)
		rg_ref_set(&c->out[0], i, rg_ref_get(&c->in[0], i) > threshold);
	return 0;
}

/* ---- LabelEncoder ---- */

/* Equal numbers, or the same bits: a NaN finds itself. From version 4 on every NaN
 * finds every NaN. */
static bool same_label(const void *a, const void *b, enum rg_dtype t, int version)
{
	if (memcmp(a, b, rg_dtype_bytes(t)) == 0)
		return true;
	if (t == RG_STRING) {
		const char *x = *(const char *const *)a, *y = *(const char *const *)b;

		return strcmp(x ? x : "", y ? y : "") == 0;
	}
	if (t == RG_F32) {
		float x = *(const float *)a, y = *(const float *)b;

		return x == y || (version >= 4 && isnan(x) && isnan(y));
	}
	if (t == RG_F64) {
		double x = *(const double *)a, y = *(const double *)b;

		return x == y || (version >= 4 && isnan(x) && isnan(y));
	}
	return false;
}

/* Of a key that is there twice, the first counts; of numbers the last from
 * version 4 on, as in ONNX Runtime. */
static int64_t find_label(const struct rg_ml_list *keys, const void *x, int version)
{
	size_t size = rg_dtype_bytes(keys->dtype);

	for (int64_t i = 0; i < keys->n; i++) {
		int64_t k = version >= 4 && keys->dtype != RG_STRING ? keys->n - 1 - i : i;

		if (same_label((const char *)keys->data + (size_t)k * size, x, keys->dtype, version))
			return k;
	}
	return -1;
}

/* Version 1: a class has its place in the list of all. */
static void encode_classes(const struct rg_call *c)
{
	const struct rg_attr *a = rg_node_attr(c->node, "classes_strings");
	const struct rg_ml_list classes = { RG_STRING, a->count, a->strings };
	int64_t n = rg_shape_count(&c->in[0].shape), dflt = rg_node_int(c->node, "default_int64", -1);

	for (int64_t i = 0; i < n; i++) {
		if (c->in[0].dtype == RG_STRING) {
			int64_t k = find_label(&classes, (const char *const *)c->in[0].data + i, 1);

			((int64_t *)c->out[0].data)[i] = k < 0 ? dflt : k;
		} else {
			int64_t k = ((const int64_t *)c->in[0].data)[i];

			((const char **)c->out[0].data)[i] = k >= 0 && k < classes.n ? a->strings[k] :
				rg_node_string(c->node, "default_string", "_Unused");
		}
	}
}

static int label_encoder(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_ml_list keys, values, dflt;
	int64_t n = rg_shape_count(&c->in[0].shape);
	size_t from, to;
	int rc;

	if (c->node->version == 1) {
		encode_classes(c);
		return 0;
	}
	rc = rg_ml_label_map(c->node, &keys, &values, &dflt, err);
	if (rc)
		return rc;
	from = rg_dtype_bytes(keys.dtype);
	to = rg_dtype_bytes(values.dtype);
	for (int64_t i = 0; i < n; i++) {
		int64_t k = find_label(&keys, (const char *)c->in[0].data + (size_t)i * from, c->node->version);

		memcpy((char *)c->out[0].data + (size_t)i * to,
		       k < 0 ? dflt.data : (const char *)values.data + (size_t)k * to, to);
	}
	return 0;
}

/* ---- numbers ---- */

static float per_feature(const float *list, int n, int64_t feature)
{
	return list[n == 1 ? 0 : feature];
}

static int64_t last_dim(const struct rg_tensor *t)
{
	return t->shape.rank > 0 ? t->shape.dim[t->shape.rank - 1] : 1;
}

static int scaler(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const float *offset, *scale;
	int n_offset = rg_node_floats(c->node, "offset", &offset),
	    n_scale = rg_node_floats(c->node, "scale", &scale);
	int64_t n = rg_shape_count(&c->in[0].shape), features = last_dim(&c->in[0]);

	for (int64_t i = 0; i < n; i++)
		rg_ref_set(&c->out[0], i,
			   (rg_ref_get(&c->in[0], i) - (double)per_feature(offset, n_offset, i % features)) *
			       (double)per_feature(scale, n_scale, i % features));
	return 0;
}

/* MAX divides by the greatest element, not by its magnitude: as the definition says. */
static int normalizer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const char *norm = rg_node_string(c->node, "norm", "MAX");
	int64_t features = last_dim(&c->in[0]), rows = features ? rg_shape_count(&c->in[0].shape) / features : 0;
	bool max = strcmp(norm, "MAX") == 0, l1 = strcmp(norm, "L1") == 0;

	for (int64_t r = 0; r < rows; r++) {
		double by = max ? -INFINITY : 0;

		for (int64_t i = r * features; i < (r + 1) * features; i++) {
			double v = rg_ref_get(&c->in[0], i);

			by = max ? fmax(by, v) : by + (l1 ? fabs(v) : v * v);
		}
		by = max || l1 ? by : sqrt(by);
		for (int64_t i = r * features; i < (r + 1) * features; i++)
			rg_ref_set(&c->out[0], i, rg_ref_get(&c->in[0], i) / (by == 0 ? 1 : by));
	}
	return 0;
}

static int imputer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const float *floats;
	const int64_t *ints;
	int n_floats = rg_node_floats(c->node, "imputed_value_floats", &floats);
	int n_ints = rg_node_ints(c->node, "imputed_value_int64s", &ints);
	double lost = (double)rg_node_float(c->node, "replaced_value_float", 0);
	int64_t lost_int = rg_node_int(c->node, "replaced_value_int64", 0);
	int64_t n = rg_shape_count(&c->in[0].shape), features = last_dim(&c->in[0]);
	size_t size = rg_dtype_bytes(c->in[0].dtype);

	if (n == 0)
		return 0;
	memcpy(c->out[0].data, c->in[0].data, (size_t)n * size);
	for (int64_t i = 0; i < n; i++) {
		if (rg_dtype_is_float(c->in[0].dtype)) {
			double v = rg_ref_get(&c->in[0], i);

			if (v == lost || (isnan(v) && isnan(lost)))
				rg_ref_set(&c->out[0], i, (double)per_feature(floats, n_floats, i % features));
		} else {
			int64_t by = ints[n_ints == 1 ? 0 : i % features];

			if (size == 8 && ((const int64_t *)c->in[0].data)[i] == lost_int)
				((int64_t *)c->out[0].data)[i] = by;
			if (size == 4 && ((const int32_t *)c->in[0].data)[i] == lost_int)
				((int32_t *)c->out[0].data)[i] = (int32_t)by;
		}
	}
	return 0;
}

/* Floating-point categories are cut to whole numbers. */
static int64_t category(const struct rg_tensor *t, int64_t i)
{
	double v;

	if (t->dtype == RG_I64)
		return ((const int64_t *)t->data)[i];
	v = rg_ref_get(t, i);
	return fabs(v) < 0x1p62 ? (int64_t)v : INT64_MIN;
}

static int one_hot(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int64_t *cats;
	int k = rg_node_ints(c->node, "cats_int64s", &cats);
	bool zeros = rg_node_int(c->node, "zeros", 1) != 0;
	int64_t n = rg_shape_count(&c->in[0].shape);
	float *to = c->out[0].data;

	for (int64_t i = 0; i < n; i++) {
		int64_t v = category(&c->in[0], i);
		bool found = false;

		for (int j = 0; j < k; j++) {
			*to++ = cats[j] == v && !found;
			found |= cats[j] == v;
		}
		if (!found && !zeros)
			return rg_error_set(err, -ERANGE, "element %" PRId64 " is in no category", i);
	}
	return 0;
}

static int vectorizer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t all = c->out[0].shape.dim[1], first = 0;

	for (int i = 0; i < c->node->n_in; i++) {
		int64_t features = last_dim(&c->in[i]);

		for (int64_t r = 0; r < c->out[0].shape.dim[0]; r++)
			for (int64_t k = 0; k < features; k++)
				rg_ref_set(&c->out[0], r * all + first + k,
					   rg_ref_get(&c->in[i], r * features + k));
		first += features;
	}
	return 0;
}

#define ENTRY(NAME, RUN) { .op_type = NAME, .domain = "ai.onnx.ml", .name = "ref", .run = RUN }

static const struct rg_kernel kernels[] = {
	ENTRY("ArrayFeatureExtractor", extract),
	ENTRY("Binarizer", binarizer),
	ENTRY("FeatureVectorizer", vectorizer),
	ENTRY("Imputer", imputer),
	ENTRY("LabelEncoder", label_encoder),
	ENTRY("Normalizer", normalizer),
	ENTRY("OneHotEncoder", one_hot),
	ENTRY("Scaler", scaler),
};
RG_KERNEL_TABLE(rg_kernels_ref_ml, kernels);
