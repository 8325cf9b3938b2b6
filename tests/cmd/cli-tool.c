/*
 * What the end-to-end tests need beside a shell: small models and arrays to give
 * to the program, and questions about the JSON and the arrays that it gives back.
 *
 *   cli-tool onnx KIND FILE           see write_onnx
 *   cli-tool npy FILE TYPE SHAPE V    an array full of V
 *   cli-tool close A.npy B.npy        equal within rtol 1e-4, atol 1e-6
 *   cli-tool json FILE ASSERTION...   see check_json; says which does not hold
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "models/npy.h"
#include "tests/models/wire.h"

static int fail(const char *what, const char *detail)
{
	fprintf(stderr, "cli-tool: %s: %s\n", what, detail);
	return 1;
}

/* ---- models ---- */

/* A float32 input "x" of n named (or, without a name, open) rows of three. */
static struct wire open_value(const char *name, const char *symbol)
{
	struct wire v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };

	if (symbol)
		wire_str(&dim, 2, symbol);
	wire_msg(&shape, 1, &dim);
	wire_int(&dim, 1, 3);
	wire_msg(&shape, 1, &dim);
	wire_int(&tensor, 1, RG_F32);
	wire_msg(&tensor, 2, &shape);
	wire_msg(&type, 1, &tensor);
	wire_str(&v, 1, name);
	wire_msg(&v, 2, &type);
	return v;
}

/* A float32 matrix, both dimensions open and without a name. */
static struct wire open_matrix(const char *name)
{
	struct wire v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };

	wire_msg(&shape, 1, &dim);
	wire_msg(&shape, 1, &dim);
	wire_int(&tensor, 1, RG_F32);
	wire_msg(&tensor, 2, &shape);
	wire_msg(&type, 1, &tensor);
	wire_str(&v, 1, name);
	wire_msg(&v, 2, &type);
	return v;
}

static int save(const char *path, struct wire *m)
{
	FILE *f = fopen(path, "wb");
	bool good = f && fwrite(m->p, 1, m->len, f) == m->len;

	good = f && fclose(f) == 0 && good;
	wire_free(m);
	return good ? 0 : fail(path, "cannot be written");
}

/* words: y = x with x appended, strings [3]. */
static int write_words(const char *path)
{
	const int64_t three = 3;
	struct wire g = { 0 }, n = wire_node("StringConcat", "x", "x", "y"), v = wire_value("x", RG_STRING, 1, &three), m;

	wire_msg(&g, GRAPH_NODE, &n);
	wire_str(&g, GRAPH_NAME, "g");
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_STRING, 1, &three);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 20, &g);
	return save(path, &m);
}

/* forever: a Loop that has no reason to end. */
static int write_forever(const char *path)
{
	const int64_t two = 2;
	struct wire g = { 0 }, body = { 0 }, loop = { 0 }, a = { 0 }, n = wire_node("Neg", "s", NULL, "t"), v, m;

	wire_msg(&body, GRAPH_NODE, &n);
	wire_str(&body, GRAPH_NAME, "body");
	v = wire_value("i", RG_I64, 0, NULL);
	wire_msg(&body, GRAPH_INPUT, &v);
	v = wire_value("go", RG_BOOL, 0, NULL);
	wire_msg(&body, GRAPH_INPUT, &v);
	v = wire_value("s", RG_F32, 1, &two);
	wire_msg(&body, GRAPH_INPUT, &v);
	v = wire_value("go", RG_BOOL, 0, NULL);
	wire_msg(&body, GRAPH_OUTPUT, &v);
	v = wire_value("t", RG_F32, 1, &two);
	wire_msg(&body, GRAPH_OUTPUT, &v);
	wire_str(&a, ATTR_NAME, "body");
	wire_msg(&a, ATTR_G, &body);
	wire_int(&a, ATTR_TYPE, 5);
	wire_str(&loop, NODE_OP, "Loop");
	wire_str(&loop, NODE_INPUT, "");
	wire_str(&loop, NODE_INPUT, "");
	wire_str(&loop, NODE_INPUT, "x");
	wire_str(&loop, NODE_OUTPUT, "y");
	wire_msg(&loop, NODE_ATTR, &a);
	wire_msg(&g, GRAPH_NODE, &loop);
	wire_str(&g, GRAPH_NAME, "g");
	v = wire_value("x", RG_F32, 1, &two);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, 1, &two);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 17, &g);
	return save(path, &m);
}

/* y = Relu(x), with one thing of it changed:
 *   relu: float32 [2, 3]   named: [batch, 3]   unnamed: [?, 3]
 *   unknown: an operator that is none   future: an opset that is not yet
 *   default: the file gives x values, too */
static int write_onnx(const char *kind, const char *path)
{
	const int64_t small[] = { 2, 3 }, large[] = { 20, 30 }, found[] = { 2, -2 };
	bool named = strcmp(kind, "named") == 0, unnamed = strcmp(kind, "unnamed") == 0;
	bool nonzero = strcmp(kind, "nonzero") == 0; /* of more than a plan computes by itself */
	const int64_t *dims = nonzero ? large : small;
	const char *op = strcmp(kind, "unknown") == 0 ? "Frobnicate" : nonzero ? "NonZero" : "Relu";
	struct wire g = { 0 }, n = wire_node(op, "x", NULL, "y"), v, m;
	FILE *f = fopen(path, "wb");
	bool good;

	if (!f)
		return fail(path, "cannot be written");
	wire_str(&n, NODE_NAME, "only");
	wire_msg(&g, GRAPH_NODE, &n);
	wire_str(&g, GRAPH_NAME, "g");
	v = named || unnamed ? open_value("x", named ? "batch" : NULL) : wire_value("x", RG_F32, 2, dims);
	wire_msg(&g, GRAPH_INPUT, &v);
	if (strcmp(kind, "default") == 0) {
		v = wire_tensor("x", RG_F32, 2, dims);
		wire_bytes(&v, TENSOR_RAW, (const float[6]){ 1, -1 }, 6 * sizeof(float));
		wire_msg(&g, GRAPH_INITIALIZER, &v);
	}
	v = named || unnamed ? open_value("y", named ? "batch" : NULL) :
	    nonzero	     ? wire_value("y", RG_I64, 2, found) :
			       wire_value("y", RG_F32, 2, dims);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, strcmp(kind, "future") == 0 ? 999 : 13, &g);
	good = fwrite(m.p, 1, m.len, f) == m.len;
	good = fclose(f) == 0 && good;
	wire_free(&m);
	return good ? 0 : fail(path, "cannot be written");
}

/* y = x + w, x of two open dimensions, w [576]: x must have 576 columns, or one.
 * `chosen` is an int64 scalar input that the model compares with 16000. */
static int write_picky(const char *path)
{
	const int64_t columns = 576;
	const float zeros[576] = { 0 };
	const int64_t rate = 16000;
	struct wire g = { 0 }, n = wire_node("Add", "x", "w", "y"), w, v, m;
	FILE *f = fopen(path, "wb");
	bool good;

	if (!f)
		return fail(path, "cannot be written");
	wire_msg(&g, GRAPH_NODE, &n);
	n = wire_node("Equal", "chosen", "rate", "fast");
	wire_msg(&g, GRAPH_NODE, &n);
	wire_str(&g, GRAPH_NAME, "g");
	w = wire_tensor("w", RG_F32, 1, &columns);
	wire_bytes(&w, TENSOR_RAW, zeros, sizeof(zeros));
	wire_msg(&g, GRAPH_INITIALIZER, &w);
	w = wire_tensor("rate", RG_I64, 0, NULL);
	wire_bytes(&w, TENSOR_RAW, &rate, sizeof(rate));
	wire_msg(&g, GRAPH_INITIALIZER, &w);
	v = open_matrix("x");
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("chosen", RG_I64, 0, NULL);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = open_matrix("y");
	wire_msg(&g, GRAPH_OUTPUT, &v);
	v = wire_value("fast", RG_BOOL, 0, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	good = fwrite(m.p, 1, m.len, f) == m.len;
	good = fclose(f) == 0 && good;
	wire_free(&m);
	return good ? 0 : fail(path, "cannot be written");
}

/* ---- arrays ---- */

static int write_npy(const char *path, const char *type, const char *shape, const char *value)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor t = { .dtype = RG_F32 };
	double v = strtod(value, NULL);
	int64_t n;
	int rc;

	if (strcmp(type, "float64") == 0)
		t.dtype = RG_F64;
	else if (strcmp(type, "float32") != 0)
		return fail(type, "is neither float32 nor float64");
	if (rg_shape_parse(shape, &t.shape, &err) != 0)
		return fail(shape, err.message);
	n = rg_shape_count(&t.shape);
	t.data = rg_calloc((size_t)n + 1, sizeof(double));
	if (!t.data)
		return fail(path, "out of memory");
	for (int64_t i = 0; i < n; i++) {
		if (t.dtype == RG_F32)
			((float *)t.data)[i] = (float)v;
		else
			((double *)t.data)[i] = v;
	}
	rc = rg_npy_write(path, &t, &err);
	rg_free(t.data);
	return rc ? fail(path, err.message) : 0;
}

static int compare(const struct rg_tensor *a, const struct rg_tensor *b)
{
	int64_t n = rg_shape_count(&a->shape);
	const float *x = a->data, *y = b->data;

	if (a->dtype != RG_F32 || b->dtype != RG_F32)
		return fail("close", "float32 only");
	if (!rg_shape_equal(&a->shape, &b->shape) || n == 0)
		return fail("close", "shapes differ, or nothing to compare");
	for (int64_t i = 0; i < n; i++) {
		if (!(fabsf(x[i] - y[i]) <= 1e-6f + 1e-4f * fabsf(y[i]))) {
			fprintf(stderr, "cli-tool: element %" PRId64 ": %g and %g\n", i, (double)x[i],
				(double)y[i]);
			return 1;
		}
	}
	return 0;
}

static int close_npy(const char *one, const char *other)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor a, b;
	int rc;

	if (rg_npy_read(one, &a, &err) != 0)
		return fail(one, err.message);
	if (rg_npy_read(other, &b, &err) != 0) {
		rg_free(a.data);
		return fail(other, err.message);
	}
	rc = compare(&a, &b);
	rg_free(a.data);
	rg_free(b.data);
	return rc;
}

/* ---- JSON ---- */

static bool is_type(const json_t *j, const char *types)
{
	char list[80], *save = NULL;

	snprintf(list, sizeof(list), "%s", types);
	for (char *t = strtok_r(list, "|", &save); t; t = strtok_r(NULL, "|", &save)) {
		if ((strcmp(t, "int") == 0 && json_is_integer(j)) ||
		    (strcmp(t, "num") == 0 && json_is_number(j)) ||
		    (strcmp(t, "str") == 0 && json_is_string(j) && json_string_value(j)[0]) ||
		    (strcmp(t, "text") == 0 && json_is_string(j)) ||
		    (strcmp(t, "bool") == 0 && json_is_boolean(j)) ||
		    (strcmp(t, "null") == 0 && json_is_null(j)) ||
		    (strcmp(t, "obj") == 0 && json_is_object(j)) ||
		    (strcmp(t, "arr") == 0 && json_is_array(j)) ||
		    (strcmp(t, "arr+") == 0 && json_is_array(j) && json_array_size(j) > 0))
			return true;
	}
	return false;
}

/* Calls each for every value that the path names: names with dots between, "[]"
 * for each element of an array. False: there is no such value, or each said so. */
static bool walk(const json_t *j, const char *path, bool (*each)(const json_t *j, void *ctx), void *ctx)
{
	char name[64];
	size_t n = strcspn(path, ".[");

	if (!*path)
		return each(j, ctx);
	if (strncmp(path, "[]", 2) == 0) {
		size_t i;
		json_t *v;

		if (!json_is_array(j))
			return false;
		json_array_foreach(j, i, v) {
			if (!walk(v, path + 2, each, ctx))
				return false;
		}
		return true;
	}
	if (*path == '.')
		return walk(j, path + 1, each, ctx);
	if (n >= sizeof(name))
		return false;
	memcpy(name, path, n);
	name[n] = '\0';
	j = json_object_get(j, name);
	return j && walk(j, path + n, each, ctx);
}

static bool has_type(const json_t *j, void *types)
{
	return is_type(j, types);
}

static bool add_integer(const json_t *j, void *sum)
{
	*(json_int_t *)sum += json_integer_value(j);
	return json_is_integer(j);
}

/* The values with blanks between; text without quotes. */
static bool add_text(const json_t *j, void *str)
{
	struct rg_str *s = str;
	char *text = json_is_string(j) ? NULL : json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);

	rg_str_printf(s, "%s%s", s->len ? " " : "", text ? text : json_string_value(j));
	free(text);
	return true;
}

/*
 *   PATH:TYPES   each is one of the types, as in "latency.p50_ns:num|null";
 *                str is text that is not empty, arr+ an array that is not empty
 *   PATH=TEXT    the values, with blanks between, are this text
 *   PATH+=PATH   the integers of the first sum to that of the second
 */
static bool holds(const json_t *root, const char *assertion)
{
	size_t n = strcspn(assertion, ":=+");
	char path[160];
	struct rg_str s = { 0 };
	json_int_t sum = 0, whole = 0;
	bool good;

	if (n >= sizeof(path) || !assertion[n])
		return false;
	memcpy(path, assertion, n);
	path[n] = '\0';
	if (assertion[n] == ':')
		return walk(root, path, has_type, (void *)(assertion + n + 1));
	if (assertion[n] == '+') {
		good = walk(root, path, add_integer, &sum) && walk(root, assertion + n + 2, add_integer, &whole) &&
		       sum == whole;
		if (!good)
			fprintf(stderr, "cli-tool: %" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT "\n", sum,
				whole);
		return good;
	}
	good = walk(root, path, add_text, &s) && strcmp(rg_str_text(&s), assertion + n + 1) == 0;
	if (!good)
		fprintf(stderr, "cli-tool: it is '%s'\n", rg_str_text(&s));
	rg_str_free(&s);
	return good;
}

static int check_json(const char *path, char **assertions, int n)
{
	json_error_t e;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	int rc = 0;

	if (!root)
		return fail(path, e.text);
	for (int i = 0; i < n; i++)
		if (!holds(root, assertions[i]))
			rc = fail("does not hold", assertions[i]);
	json_decref(root);
	return rc;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "onnx") == 0)
		return strcmp(argv[2], "picky") == 0 ? write_picky(argv[3]) :
		       strcmp(argv[2], "words") == 0 ? write_words(argv[3]) :
		       strcmp(argv[2], "forever") == 0 ? write_forever(argv[3]) : write_onnx(argv[2], argv[3]);
	if (argc == 6 && strcmp(argv[1], "npy") == 0)
		return write_npy(argv[2], argv[3], argv[4], argv[5]);
	if (argc == 4 && strcmp(argv[1], "close") == 0)
		return close_npy(argv[2], argv[3]);
	if (argc >= 3 && strcmp(argv[1], "json") == 0)
		return check_json(argv[2], argv + 3, argc - 3);
	fail("usage", "see the top of cli-tool.c");
	return 2;
}
