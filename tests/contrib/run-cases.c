/*
 * Single operators against what ONNX Runtime computed (make-*.py in this
 * folder): each case of the JSON files named on the command line is a graph of
 * one node, planned and run by the executor, on one lane and on two, and then made
 * wrong in a few ways, which must end in an error or in some outputs.
 *
 * A file: { "made_by": ..., "cases": [ case ... ] }. A case:
 *   "name", "op"     "domain" ("com.microsoft"), "opset" of the standard domain (17),
 *                  "domain_opset" of that domain (1)
 *   "attrs"          { name: integer, real, string, or list of one of these }
 *   "inputs"         tensors or null; "const": true makes an initialiser of it
 *   "outputs"        tensors with "values", or null where none is wanted; a value
 *                    null may be anything
 *   "rtol", "atol"   1e-4, 1e-5
 *   "step"           integer outputs may differ by so much (0)
 *   "refused"        instead of outputs: what the planner's error says
 *   "fails"          instead of outputs: what the error of the run says
 * A tensor: "dtype", "shape", and "values" (flat; "nan", "inf", "-inf" as
 * strings; strings of dtype "string" as they are) or "uniform": [lo, hi], which fills it from stream (1, CASE/INDEX) of
 * src/base/rng.h: uniform for floats, inclusive integers for integers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "sys/cpu.h"
#include "tests/conformance/compare.h"
#include "tests/contrib/mutate.h"

enum { MAX_IO = 24, MAX_ATTRS = 24, MAX_LIST = 64, MAX_ANY_BYTES = 64 << 20 };

struct node_case {
	const json_t *json;
	struct rg_tensor in[MAX_IO];   /* with data, from rg_alloc_aligned */
	bool is_const[MAX_IO];
	int n_in, n_out;
	struct rg_attr attrs[MAX_ATTRS];
	int64_t ints[MAX_ATTRS][MAX_LIST];
	float floats[MAX_ATTRS][MAX_LIST];
	const char *strings[MAX_ATTRS][MAX_LIST];
	struct rg_error err;
};

static int mutations = 20; /* of each case; RIDGE_TEST_MUTATIONS */

/* ---- reading ---- */

static const char *string_of(const json_t *o, const char *key, const char *dflt)
{
	const json_t *s = json_object_get(o, key);

	if (!s && dflt)
		return dflt;
	assert_true(json_is_string(s));
	return json_string_value(s);
}

static double real_of(const json_t *o, const char *key, double dflt)
{
	const json_t *n = json_object_get(o, key);

	return n ? json_number_value(n) : dflt;
}

/* Where a case made wrong gives numbers for strings. */
static const char *const words[] = { "", "a", "1", "b c", NULL, "\xc3\xa9", "-2.5", "A" };

static void store(const struct rg_tensor *t, int64_t i, double v)
{
	switch (t->dtype) {
	case RG_F32: ((float *)t->data)[i] = (float)v; break;
	case RG_F64: ((double *)t->data)[i] = v; break;
	case RG_F16: ((uint16_t *)t->data)[i] = rg_f32_to_f16((float)v); break;
	case RG_BF16: ((uint16_t *)t->data)[i] = rg_f32_to_bf16((float)v); break;
	case RG_I8: ((int8_t *)t->data)[i] = (int8_t)v; break;
	case RG_U8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	case RG_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
	case RG_I16: ((int16_t *)t->data)[i] = (int16_t)v; break;
	case RG_U16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
	case RG_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
	case RG_U32: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
	case RG_I64: ((int64_t *)t->data)[i] = (int64_t)v; break;
	case RG_U64: ((uint64_t *)t->data)[i] = (uint64_t)v; break;
	case RG_I4:
	case RG_U4: /* two a byte, the low half first */
		((uint8_t *)t->data)[i / 2] &= (uint8_t)(i % 2 ? 0x0f : 0xf0);
		((uint8_t *)t->data)[i / 2] |= (uint8_t)(((int)v & 15) << (i % 2 ? 4 : 0));
		break;
	case RG_STRING: ((const char **)t->data)[i] = words[(uint64_t)(int64_t)v % 8]; break;
	default: fail_msg("no such type in a case: %s", rg_dtype_name(t->dtype));
	}
}

static double number(const json_t *v)
{
	const char *s = json_string_value(v);

	if (s)
		return strtod(s, NULL);
	if (json_is_null(v))
		return NAN;
	assert_true(json_is_number(v));
	return json_number_value(v);
}

static void fill(const json_t *json, const char *stream_name, const struct rg_tensor *t)
{
	const json_t *values = json_object_get(json, "values"), *range = json_object_get(json, "uniform");
	int64_t n = rg_shape_count(&t->shape);

	if (values) {
		assert_int_equal(json_array_size(values), n);
		for (int64_t i = 0; i < n && t->dtype == RG_STRING; i++)
			((const char **)t->data)[i] = json_string_value(json_array_get(values, (size_t)i));
		if (t->dtype == RG_STRING)
			return;
		for (int64_t i = 0; i < n; i++)
			store(t, i, number(json_array_get(values, (size_t)i)));
		return;
	}
	assert_int_equal(json_array_size(range), 2);
	for (int64_t i = 0; i < n; i++) {
		uint64_t stream = rg_rng_stream(1, stream_name);
		double lo = number(json_array_get(range, 0)), hi = number(json_array_get(range, 1));

		store(t, i, rg_dtype_is_float(t->dtype) ?
			    (double)rg_rng_uniform(stream, (uint64_t)i, (float)lo, (float)hi) :
			    (double)rg_rng_integer(stream, (uint64_t)i, (int64_t)lo, (int64_t)hi));
	}
}

static void read_tensor(const json_t *json, const char *stream_name, struct rg_tensor *t)
{
	const json_t *shape = json_object_get(json, "shape");

	t->dtype = rg_dtype_parse(string_of(json, "dtype", NULL));
	assert_true(t->dtype != RG_UNDEFINED && json_array_size(shape) <= RG_MAX_RANK);
	t->shape.rank = (int)json_array_size(shape);
	for (int d = 0; d < t->shape.rank; d++)
		t->shape.dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
	t->data = rg_alloc_aligned(64, (size_t)rg_tensor_bytes(t->dtype, &t->shape) + 1);
	assert_non_null(t->data);
	fill(json, stream_name, t);
}

static void read_list(struct node_case *c, int at, const json_t *list)
{
	struct rg_attr *a = &c->attrs[at];
	bool is_real = false;
	size_t i;
	json_t *v;

	assert_true(json_array_size(list) <= MAX_LIST);
	json_array_foreach(list, i, v) {
		is_real |= json_is_real(v);
		c->ints[at][i] = json_integer_value(v);
		c->floats[at][i] = (float)json_number_value(v);
		c->strings[at][i] = json_string_value(v);
	}
	a->count = (int)json_array_size(list);
	a->type = is_real ? RG_ATTR_FLOATS : a->count && c->strings[at][0] ? RG_ATTR_STRINGS : RG_ATTR_INTS;
	a->ints = c->ints[at];
	a->floats = c->floats[at];
	a->strings = c->strings[at];
}

static int read_attrs(struct node_case *c)
{
	const char *name;
	json_t *v;
	int n = 0;

	json_object_foreach(json_object_get(c->json, "attrs"), name, v) {
		struct rg_attr *a = &c->attrs[n];

		assert_true(n < MAX_ATTRS);
		a->name = name;
		if (json_is_array(v)) {
			read_list(c, n, v);
		} else if (json_is_string(v)) {
			a->type = RG_ATTR_STRING;
			a->s = json_string_value(v);
			a->s_len = strlen(a->s);
		} else {
			a->type = json_is_real(v) ? RG_ATTR_FLOAT : RG_ATTR_INT;
			a->f = (float)json_number_value(v);
			a->i = json_integer_value(v);
		}
		n++;
	}
	return n;
}

/* ---- the graph of one node ---- */

static void must(struct node_case *c, int code, const char *what)
{
	if (code < 0)
		fail_msg("%s: %s: %s: %s", string_of(c->json, "name", NULL), what, c->err.where, c->err.message);
}

static int add_input(struct node_case *c, struct rg_graph *g, int i)
{
	struct rg_tensor *t = &c->in[i];
	struct rg_dim dims[RG_MAX_RANK] = { { 0 } };
	char name[16];
	int v;

	snprintf(name, sizeof(name), "in%d", i);
	v = rg_graph_value(g, name, &c->err);
	must(c, v, "rg_graph_value");
	if (c->is_const[i]) {
		size_t bytes = (size_t)rg_tensor_bytes(t->dtype, &t->shape);
		void *copy = bytes ? rg_alloc_aligned(64, bytes) : NULL;

		if (bytes)
			memcpy(copy, t->data, bytes);
		must(c, rg_graph_add_const(g, v, RG_CONST_INITIALIZER, t->dtype, &t->shape, copy, &c->err),
		     "rg_graph_add_const");
		return v;
	}
	for (int d = 0; d < t->shape.rank; d++)
		dims[d].value = t->shape.dim[d];
	must(c, rg_graph_declare(g, v, t->dtype, t->shape.rank, dims, &c->err), "rg_graph_declare");
	must(c, rg_graph_add_input(g, v, &c->err), "rg_graph_add_input");
	return v;
}

static struct rg_graph *build(struct node_case *c)
{
	const json_t *ins = json_object_get(c->json, "inputs"), *outs = json_object_get(c->json, "outputs");
	const char *domain = string_of(c->json, "domain", "com.microsoft");
	const char *case_name = string_of(c->json, "name", NULL);
	int in[MAX_IO], out[MAX_IO], n_attrs = read_attrs(c);
	struct rg_graph *g = rg_graph_new(NULL);
	char name[256];

	assert_non_null(g);
	c->n_in = (int)json_array_size(ins);
	c->n_out = outs ? (int)json_array_size(outs) : 1;
	assert_true(c->n_in <= MAX_IO && c->n_out <= MAX_IO);
	must(c, rg_graph_set_opset(g, "", (int64_t)real_of(c->json, "opset", 17), &c->err), "rg_graph_set_opset");
	if (domain[0])
		must(c, rg_graph_set_opset(g, domain, (int64_t)real_of(c->json, "domain_opset", 1), &c->err),
		     "rg_graph_set_opset");
	for (int i = 0; i < c->n_in; i++) {
		const json_t *t = json_array_get(ins, (size_t)i);

		in[i] = -1;
		if (json_is_null(t))
			continue;
		snprintf(name, sizeof(name), "%s/%d", case_name, i);
		read_tensor(t, name, &c->in[i]);
		c->is_const[i] = json_is_true(json_object_get(t, "const"));
		in[i] = add_input(c, g, i);
	}
	for (int i = 0; i < c->n_out; i++) {
		out[i] = -1;
		if (outs && json_is_null(json_array_get(outs, (size_t)i)))
			continue;
		snprintf(name, sizeof(name), "out%d", i);
		out[i] = rg_graph_value(g, name, &c->err);
		must(c, out[i], "rg_graph_value");
		must(c, rg_graph_add_output(g, out[i], &c->err), "rg_graph_add_output");
	}
	must(c, rg_graph_add_node(g, domain, string_of(c->json, "op", NULL), "node", c->n_in, in, c->n_out, out,
				  n_attrs, c->attrs, &c->err), "rg_graph_add_node");
	return g;
}

/* ---- running ---- */

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	struct node_case *c = ctx;

	return &c->in[atoi(name + strlen("in"))];
}

static void expect_error(struct node_case *c, const char *part)
{
	if (!strstr(c->err.message, part))
		fail_msg("%s: the error is '%s', which does not contain '%s'", string_of(c->json, "name", NULL),
			 c->err.message, part);
}

/* Integers of one type and shape that differ by `step` at most. */
static bool within(const struct rg_tensor *got, const struct rg_tensor *want, double step)
{
	if (step <= 0 || !rg_dtype_is_int(want->dtype) || got->dtype != want->dtype ||
	    !rg_shape_equal(&got->shape, &want->shape))
		return false;
	for (int64_t i = 0; i < rg_shape_count(&want->shape); i++)
		if (fabs(tensor_number(got, i) - tensor_number(want, i)) > step)
			return false;
	return true;
}

/* What the case leaves open is as it came out. */
static void fill_open(const json_t *json, const struct rg_tensor *got, const struct rg_tensor *want)
{
	const json_t *values = json_object_get(json, "values");

	if (got->dtype != want->dtype || !rg_shape_equal(&got->shape, &want->shape))
		return;
	for (size_t i = 0; i < json_array_size(values); i++)
		if (json_is_null(json_array_get(values, i)))
			store(want, (int64_t)i, tensor_number(got, (int64_t)i));
}

static void check_outputs(struct node_case *c, struct rg_exec *e)
{
	const json_t *outs = json_object_get(c->json, "outputs");
	double rtol = real_of(c->json, "rtol", 1e-4), atol = real_of(c->json, "atol", 1e-5);

	for (int i = 0, k = 0; i < c->n_out; i++) {
		const json_t *json = json_array_get(outs, (size_t)i);
		struct rg_tensor got, want;
		char why[256];

		if (json_is_null(json))
			continue;
		got = rg_exec_output(e, k++);
		read_tensor(json, "", &want);
		fill_open(json, &got, &want);
		if (!within(&got, &want, real_of(c->json, "step", 0)) &&
		    !tensors_agree(&got, &want, rtol, atol, why, sizeof(why)))
			fail_msg("%s: output %d: %s", string_of(c->json, "name", NULL), i, why);
		rg_free(want.data);
	}
}

static void run(struct node_case *c, struct rg_exec *e, const struct rg_graph *g)
{
	const json_t *fails = json_object_get(c->json, "fails");
	int code;

	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(e, i);
		const struct rg_tensor *from = input_value(c, g->values[g->inputs[i]].name);

		if (t.data)
			memcpy(t.data, from->data, (size_t)rg_tensor_bytes(t.dtype, &t.shape));
	}
	code = rg_exec_run(e, &c->err);
	if (fails) {
		assert_int_not_equal(code, 0);
		expect_error(c, json_string_value(fails));
		return;
	}
	if (json_object_get(c->json, "any"))
		return;
	must(c, code, "rg_exec_run");
	check_outputs(c, e);
}

static void run_on(const json_t *json, int lanes)
{
	struct node_case c = { .json = json, .err = RG_ERROR_INIT };
	struct rg_plan_options opt = { .lanes = lanes, .input_value = input_value, .input_ctx = &c };
	const json_t *refused = json_object_get(json, "refused");
	struct rg_graph *g = build(&c);
	struct rg_plan *plan = NULL;
	struct rg_exec *e = NULL;
	struct rg_cpu cpu;
	int code;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	code = rg_graph_finish(g, &c.err);
	if (!code)
		code = rg_graph_bind(g, NULL, &c.err);
	if (!code)
		code = rg_plan_make(g, &opt, &plan, &c.err);
	if (refused) {
		assert_int_not_equal(code, 0);
		expect_error(&c, json_string_value(refused));
	} else if (!json_object_get(json, "any") || (code == 0 && plan->arena_bytes < MAX_ANY_BYTES)) {
		must(&c, code, "rg_plan_make");
		must(&c, rg_exec_new(plan, NULL, &e, &c.err), "rg_exec_new");
		run(&c, e, g);
	}
	rg_exec_free(e);
	rg_plan_free(plan);
	rg_graph_free(g);
	for (int i = 0; i < MAX_IO; i++)
		rg_free(c.in[i].data);
}

static void test_case(void **state)
{
	run_on(*state, 1);
	run_on(*state, 2);
	for (int i = 0; i < mutations; i++) {
		json_t *wrong = mutate_case(*state, (uint64_t)i);

		run_on(wrong, 1);
		json_decref(wrong);
	}
}

int main(int argc, char **argv)
{
	const char *env = getenv("RIDGE_TEST_MUTATIONS");
	int failed = 0;

	if (env)
		mutations = atoi(env);
	for (int f = 1; f < argc; f++) {
		json_error_t je;
		json_t *file = json_load_file(argv[f], 0, &je);
		const json_t *cases = json_object_get(file, "cases");
		size_t n = json_array_size(cases);
		struct CMUnitTest *tests = calloc(n + 1, sizeof(*tests));

		if (!file || !tests || n == 0) {
			fprintf(stderr, "%s: line %d: %s\n", argv[f], je.line, file ? "no cases" : je.text);
			return 2;
		}
		for (size_t i = 0; i < n; i++) {
			json_t *c = json_array_get(cases, i);

			tests[i] = (struct CMUnitTest){ .name = string_of(c, "name", NULL), .test_func = test_case,
							.initial_state = c };
		}
		failed += _cmocka_run_group_tests(argv[f], tests, n, NULL, NULL);
		free(tests);
		json_decref(file);
	}
	return failed != 0 || argc < 2;
}
