/*
 * Input values for a bound graph: files where given, else seeded values that
 * are valid for what the graph does with them.
 */
#include "session/inputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "models/npy.h"
#include "models/text.h"

static const char use_file[] = "from a file";
static const char use_range[] = "seeded, range given";
static const char use_tokens[] = "seeded, token ids inside the vocabulary";
static const char use_mask[] = "ones (a mask)";
static const char use_positions[] = "ascending positions";
static const char use_image[] = "seeded, uniform in [0, 1)";
static const char use_float[] = "seeded, uniform in [-1, 1)";
static const char use_tested[] = "a value that the model tests for";
static const char use_int[] = "seeded, 0 or 1";
static const char use_text[] = "empty strings";
static const char use_none[] = "empty (an optional)";
static const char use_sequence[] = "empty (a sequence)";

/* Operators that hand on the values of their first input, reordered or cast. */
static bool passes_values(const char *op)
{
	static const char *const names[] = { "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
					     "Transpose", "Slice", "Expand" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], op) == 0)
			return true;
	return false;
}

/*
 * Rows of the smallest table that `value` indexes by a Gather, directly or by
 * way of operators that only move it; -1 when it indexes none. One pass, since
 * nodes are in topological order. -ENOMEM.
 */
static int64_t vocabulary(const struct rg_graph *g, int value)
{
	bool *carries = rg_calloc((size_t)g->n_values, sizeof(*carries));
	int64_t least = -1;

	if (!carries)
		return -ENOMEM;
	carries[value] = true;
	for (int n = 0; n < g->n_nodes; n++) {
		const struct rg_node *node = &g->nodes[n];

		if (node->n_in > 0 && node->in[0] >= 0 && carries[node->in[0]] && node->n_out > 0 &&
		    node->out[0] >= 0 && passes_values(node->op_type)) {
			carries[node->out[0]] = true;
		} else if (strcmp(node->op_type, "Gather") == 0 && node->n_in == 2 && node->in[0] >= 0 &&
			   node->in[1] >= 0 && carries[node->in[1]]) {
			const struct rg_value *table = &g->values[node->in[0]];
			int64_t axis = rg_node_int(node, "axis", 0);

			if (!table->shaped || table->origin == RG_CONST_NONE)
				continue;
			if (axis < 0)
				axis += table->shape.rank;
			if (axis >= 0 && axis < table->shape.rank && table->shape.dim[axis] > 0 &&
			    (least < 0 || table->shape.dim[axis] < least))
				least = table->shape.dim[axis];
		}
	}
	rg_free(carries);
	return least;
}

/*
 * The number that the model compares the one element of an input with (a sampling
 * rate, a mode), directly or by way of operators that only move it. False: none.
 */
static bool tested_value(const struct rg_graph *g, int value, int64_t *number)
{
	bool *carries = rg_calloc((size_t)g->n_values, sizeof(*carries));
	bool found = false;

	if (!carries)
		return false;
	carries[value] = true;
	for (int n = 0; n < g->n_nodes && !found; n++) {
		const struct rg_node *node = &g->nodes[n];
		int a = node->n_in > 0 ? node->in[0] : -1, b = node->n_in > 1 ? node->in[1] : -1;

		if (a >= 0 && carries[a] && node->n_out > 0 && node->out[0] >= 0 &&
		    (passes_values(node->op_type) || strcmp(node->op_type, "Gather") == 0))
			carries[node->out[0]] = true;
		if (strcmp(node->op_type, "Equal") != 0 || a < 0 || b < 0 || carries[a] == carries[b])
			continue;
		if (carries[b])
			b = a;
		/* Only what stands in the file: the graph has not been folded yet. */
		if (!g->values[b].data || rg_shape_count(&g->values[b].shape) != 1)
			continue;
		found = true;
		if (g->values[b].dtype == RG_I64)
			*number = *(const int64_t *)g->values[b].data;
		else if (g->values[b].dtype == RG_I32)
			*number = *(const int32_t *)g->values[b].data;
		else
			found = false;
	}
	rg_free(carries);
	return found;
}

static bool name_has(const char *name, const char *word)
{
	return strcasestr(name, word) != NULL;
}

/* Writes v as element i of a tensor of any numeric type; false: no such type. */
static bool put(const struct rg_tensor *t, int64_t i, double v)
{
	void *p = t->data;

	switch (t->dtype) {
	case RG_F32: ((float *)p)[i] = (float)v; break;
	case RG_F64: ((double *)p)[i] = v; break;
	case RG_F16: ((uint16_t *)p)[i] = rg_f32_to_f16((float)v); break;
	case RG_BF16: ((uint16_t *)p)[i] = rg_f32_to_bf16((float)v); break;
	case RG_I8: ((int8_t *)p)[i] = (int8_t)v; break;
	case RG_I16: ((int16_t *)p)[i] = (int16_t)v; break;
	case RG_I32: ((int32_t *)p)[i] = (int32_t)v; break;
	case RG_I64: ((int64_t *)p)[i] = (int64_t)v; break;
	case RG_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
	case RG_U16: ((uint16_t *)p)[i] = (uint16_t)v; break;
	case RG_U32: ((uint32_t *)p)[i] = (uint32_t)v; break;
	case RG_U64: ((uint64_t *)p)[i] = (uint64_t)v; break;
	case RG_BOOL: ((uint8_t *)p)[i] = v != 0; break;
	default: return false;
	}
	return true;
}

/* The values of an integer type that --input-range may name. */
static bool range_fits(enum rg_dtype t, double lo, double hi)
{
	int bits = rg_dtype_bits(t);

	if (t == RG_BOOL)
		return lo >= 0 && hi <= 1;
	if (!rg_dtype_is_int(t))
		return true;
	if (rg_dtype_is_signed(t))
		return lo >= -ldexp(1, bits - 1) && hi < ldexp(1, bits - 1);
	return lo >= 0 && hi < ldexp(1, bits);
}

static const struct rg_input_range *find_range(const struct rg_session_options *o, const char *name)
{
	for (int i = 0; i < o->n_ranges; i++)
		if (strcmp(o->ranges[i].name, name) == 0)
			return &o->ranges[i];
	return NULL;
}

static int fill_seeded(const struct rg_graph *g, const struct rg_session_options *o, int value,
		       struct rg_tensor *t, const char **use, struct rg_error *err)
{
	const struct rg_value *v = &g->values[value];
	const struct rg_input_range *range = find_range(o, v->name);
	uint64_t stream = rg_rng_stream(o->seed, v->name);
	int64_t n = rg_shape_count(&t->shape);
	bool is_float = rg_dtype_is_float(t->dtype);
	double lo, hi;

	if (range) {
		*use = use_range;
		lo = range->lo;
		hi = range->hi;
		if (!range_fits(t->dtype, lo, hi)) {
			rg_error_set(err, RG_EUSAGE, "--input-range %s: %g..%g does not fit %s", v->name, lo, hi,
				     rg_dtype_name(t->dtype));
			return err->code;
		}
	} else if (is_float && name_has(v->name, "mask")) {
		*use = use_mask;
		lo = hi = 1;
	} else if (is_float) {
		/* an image: a batch of planes or of pixels with 1, 3 or 4 channels */
		bool image = t->shape.rank == 4 && (t->shape.dim[1] == 1 || t->shape.dim[1] == 3 ||
						    t->shape.dim[1] == 4 || t->shape.dim[3] == 1 ||
						    t->shape.dim[3] == 3 || t->shape.dim[3] == 4);

		*use = image ? use_image : use_float;
		lo = image ? 0 : -1;
		hi = 1;
	} else if (t->dtype == RG_STRING) {
		*use = use_text;
		memset(t->data, 0, (size_t)rg_tensor_bytes(t->dtype, &t->shape));
		return 0;
	} else {
		int64_t rows = vocabulary(g, value), number;

		if (rows == -ENOMEM)
			return rg_error_nomem(err, (unsigned long)g->n_values);

		if (name_has(v->name, "mask")) {
			*use = use_mask;
			lo = hi = 1;
		} else if (name_has(v->name, "position") && t->shape.rank > 0) {
			int64_t last = t->shape.dim[t->shape.rank - 1];

			*use = use_positions;
			for (int64_t i = 0; i < n; i++)
				put(t, i, (double)(i % last));
			return 0;
		} else if (rows > 0) {
			*use = use_tokens;
			lo = 0;
			hi = (double)(rows - 1);
		} else if (n == 1 && (t->dtype == RG_I64 || t->dtype == RG_I32) && tested_value(g, value, &number)) {
			*use = use_tested;
			lo = hi = (double)number;
		} else {
			*use = use_int;
			lo = 0;
			hi = 1;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		double x = is_float ? (double)rg_rng_uniform(stream, (uint64_t)i, (float)lo, (float)hi)
				    : (double)rg_rng_integer(stream, (uint64_t)i, (int64_t)lo, (int64_t)hi);

		if (!put(t, i, x)) {
			rg_error_set(err, RG_ENOTSUP_MODEL, "input '%s': no seeded values for type %s", v->name,
				     rg_dtype_name(t->dtype));
			return rg_error_hint(err, "give it as a file: --input %s=FILE.npy", v->name);
		}
	}
	return 0;
}

static int64_t count_nan(const struct rg_tensor *t)
{
	int64_t n = rg_shape_count(&t->shape), nan = 0;

	for (int64_t i = 0; i < n; i++) {
		if (t->dtype == RG_F32)
			nan += isnan(((const float *)t->data)[i]) != 0;
		else if (t->dtype == RG_F64)
			nan += isnan(((const double *)t->data)[i]) != 0;
	}
	return nan;
}

/* A list of n strings in the shape that the model declares: an open dimension
 * takes what the others leave, further ones are 1. */
static void shape_like(const struct rg_value *v, struct rg_shape *s)
{
	int64_t n = s->dim[0], rest = 1;
	int open = -1;

	if (v->declared_rank < 0)
		return;
	s->rank = v->declared_rank;
	for (int d = 0; d < s->rank; d++) {
		s->dim[d] = v->declared[d].value;
		if (s->dim[d] < 0) {
			s->dim[d] = 1;
			open = d;
		} else if (__builtin_mul_overflow(rest, s->dim[d], &rest)) {
			rest = 0;
		}
	}
	if (open >= 0 && rest > 0 && n % rest == 0)
		s->dim[open] = n / rest;
	if (rg_shape_count(s) != n) /* it does not fit: told as what it is */
		*s = rg_shape_of(1, &n);
}

int rg_inputs_read(const struct rg_value *v, const char *path, struct rg_tensor *t, struct rg_error *err)
{
	if (v->declared_dtype != RG_STRING)
		return rg_npy_read(path, t, err);
	if (rg_text_read(path, t, err))
		return err->code;
	shape_like(v, &t->shape);
	return 0;
}

static int fill_file(const struct rg_session_options *o, const struct rg_value *v, const char *path,
		     struct rg_tensor *t, struct rg_error *err)
{
	struct rg_tensor file;
	int64_t nan;
	int rc = rg_inputs_read(v, path, &file, err);

	if (!rc && file.dtype == RG_STRING && rg_shape_count(&file.shape) == rg_shape_count(&t->shape))
		file.shape = t->shape; /* --shape may have said another one */

	if (rc)
		return rc;
	/* bfloat16 has no NumPy type: its bits come as uint16 */
	if (file.dtype != t->dtype && !(t->dtype == RG_BF16 && file.dtype == RG_U16)) {
		rg_error_set(err, -EINVAL, "input '%s' is %s, the file holds %s", v->name, rg_dtype_name(t->dtype),
			     rg_dtype_name(file.dtype));
		rg_error_hint(err, "convert it: numpy.load(...).astype('%s')", rg_dtype_name(t->dtype));
		rc = rg_error_at(err, "%s", path);
	} else if (!rg_shape_equal(&file.shape, &t->shape)) {
		char want[160], have[160];

		rg_shape_text(want, &t->shape);
		rg_shape_text(have, &file.shape);
		rg_error_set(err, -EINVAL, "input '%s' is %s, the file holds %s", v->name, want, have);
		rg_error_hint(err, "give a file of shape %s, or --shape %s=%s if the model allows it", want, v->name,
			      have);
		rc = rg_error_at(err, "%s", path);
	}
	if (rc) {
		rg_free(file.data);
		return rc;
	}
	rg_free(t->data);
	t->data = file.data;
	nan = count_nan(t);
	if (nan && o->warn) {
		char text[512];

		snprintf(text, sizeof(text),
			 "input '%.200s': %lld of %lld values are NaN; outputs that depend on them are NaN too", v->name,
			 (long long)nan, (long long)rg_shape_count(&t->shape));
		o->warn(o->warn_ctx, text);
	}
	return 0;
}

static bool is_input(const struct rg_graph *g, const char *name)
{
	for (int i = 0; i < g->n_inputs; i++)
		if (strcmp(g->values[g->inputs[i]].name, name) == 0)
			return true;
	return false;
}

int rg_inputs_check_names(const struct rg_graph *g, const struct rg_session_options *o, struct rg_error *err)
{
	const char *bad = NULL, *option = "--input";
	char list[300] = "";
	size_t at = 0;

	for (int i = 0; i < o->n_inputs && !bad; i++)
		if (!is_input(g, o->inputs[i].name))
			bad = o->inputs[i].name;
	for (int i = 0; i < o->n_ranges && !bad; i++) {
		if (!is_input(g, o->ranges[i].name)) {
			bad = o->ranges[i].name;
			option = "--input-range";
		}
	}
	if (!bad)
		return 0;
	for (int i = 0; i < g->n_inputs && at < sizeof(list) - 1; i++) {
		int n = snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", g->values[g->inputs[i]].name);

		at += n > 0 ? (size_t)n : 0;
	}
	rg_error_set(err, RG_EUSAGE, "%s %s: the model has no such input", option, bad);
	return rg_error_hint(err, "inputs are: %s", g->n_inputs ? list : "none");
}

/* What is no plain tensor is always empty: an option for it would go unheard. */
static int check_empty(const struct rg_value *v, const struct rg_session_options *o, struct rg_error *err)
{
	const char *option = NULL;

	for (int i = 0; i < o->n_inputs; i++)
		if (strcmp(o->inputs[i].name, v->name) == 0)
			option = "--input";
	for (int i = 0; i < o->n_ranges; i++)
		if (strcmp(o->ranges[i].name, v->name) == 0)
			option = "--input-range";
	if (!option)
		return 0;
	rg_error_set(err, RG_EUSAGE, "%s %s: the input is %s, which takes no values", option, v->name,
		     v->kind == RG_VALUE_SEQUENCE ? "a sequence" : "an optional");
	return rg_error_hint(err, "without the option the model is run with an empty one");
}

int rg_inputs_make(const struct rg_graph *g, const struct rg_session_options *o, struct rg_tensor **out,
		   const char ***uses, struct rg_error *err)
{
	struct rg_tensor *t;
	const char **use;
	int rc = rg_inputs_check_names(g, o, err);

	if (rc)
		return rc;
	t = rg_calloc((size_t)g->n_inputs + 1, sizeof(*t));
	use = rg_calloc((size_t)g->n_inputs + 1, sizeof(*use));
	if (!t || !use) {
		rg_free(t);
		rg_free(use);
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*t));
	}
	for (int i = 0; i < g->n_inputs && !rc; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		const char *path = NULL;
		int64_t bytes;

		if (v->kind != RG_VALUE_TENSOR) { /* what is empty is a value, too */
			use[i] = v->kind == RG_VALUE_SEQUENCE ? use_sequence : use_none;
			rc = check_empty(v, o, err);
			continue;
		}
		bytes = rg_tensor_bytes(v->dtype, &v->shape);
		t[i].dtype = v->dtype;
		t[i].shape = v->shape;
		if (bytes < 0) {
			rg_error_set(err, RG_ENOTSUP_MODEL, "input '%s': type %s has no fixed size", v->name,
				     rg_dtype_name(v->dtype));
			rc = rg_error_hint(err, "models with such inputs cannot be run");
			break;
		}
		for (int k = 0; k < o->n_inputs; k++)
			if (strcmp(o->inputs[k].name, v->name) == 0)
				path = o->inputs[k].path;
		t[i].data = rg_alloc_aligned(64, (size_t)bytes);
		if (!t[i].data) {
			rc = rg_error_nomem(err, (unsigned long)bytes);
		} else if (path) {
			use[i] = use_file;
			rc = fill_file(o, v, path, &t[i], err);
		} else {
			rc = fill_seeded(g, o, g->inputs[i], &t[i], &use[i], err);
		}
	}
	if (rc) {
		rg_inputs_free(t, g->n_inputs, use);
		return rc;
	}
	*out = t;
	if (uses)
		*uses = use;
	else
		rg_free(use);
	return 0;
}

void rg_inputs_free(struct rg_tensor *t, int n, const char **uses)
{
	if (t)
		for (int i = 0; i < n; i++)
			rg_free(t[i].data);
	rg_free(t);
	rg_free(uses);
}

int rg_inputs_check_shape(const struct rg_value *v, const struct rg_tensor *t, struct rg_error *err)
{
	bool fits = v->declared_rank < 0 || v->declared_rank == t->shape.rank;
	char have[160], want[200] = "";
	int at = 0;

	for (int d = 0; fits && d < v->declared_rank; d++)
		fits = v->declared[d].value < 0 || v->declared[d].value == t->shape.dim[d];
	if (fits)
		return 0;
	for (int d = 0; d < v->declared_rank && at < (int)sizeof(want) - 24; d++) {
		const struct rg_dim *n = &v->declared[d];

		if (n->value >= 0)
			at += snprintf(want + at, sizeof(want) - (size_t)at, "%s%lld", d ? "x" : "",
				       (long long)n->value);
		else
			at += snprintf(want + at, sizeof(want) - (size_t)at, "%s%.16s", d ? "x" : "",
				       n->symbol ? n->symbol : "?");
	}
	return rg_error_set(err, -EINVAL, "input '%s' is %s, the file holds %s", v->name, want[0] ? want : "a scalar",
			    rg_shape_text(have, &t->shape));
}
