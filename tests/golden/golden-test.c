/*
 * Fetched models against what ONNX Runtime computes (make-golden.py), on one
 * lane and on two: outputs and inner values, element by element of a seeded
 * sample, and statistics over all elements. rtol 1e-3, atol 1e-4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "models/model.h"
#include "sys/cpu.h"
#include "tests/conformance/compare.h"

#define RTOL 1e-3
#define ATOL 1e-4

struct golden_case {
	const char *name;
	int lanes;
};

static struct rg_error err;

static void must(int code, const char *what)
{
	if (code)
		fail_msg("%s: %s: %s", what, err.where, err.message);
}

static json_t *load_golden(const char *name)
{
	char path[4096];
	json_error_t je;
	json_t *golden;

	snprintf(path, sizeof(path), "%s/tests/golden/%s.json", RG_SOURCE_ROOT, name);
	golden = json_load_file(path, 0, &je);
	if (!golden)
		fail_msg("%s: line %d: %s", path, je.line, je.text);
	return golden;
}

static struct rg_shape json_shape(const json_t *array)
{
	struct rg_shape s = { .rank = (int)json_array_size(array) };

	assert_true(json_is_array(array) && s.rank <= RG_MAX_RANK);
	for (int d = 0; d < s.rank; d++)
		s.dim[d] = json_integer_value(json_array_get(array, (size_t)d));
	return s;
}

static const char *string_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	assert_non_null(s);
	return s;
}

static double number_of(const json_t *o, const char *key)
{
	const json_t *n = json_object_get(o, key);

	assert_true(json_is_number(n));
	return json_number_value(n);
}

/* Inner values become outputs, so that the planner keeps them. */
static void expose(struct rg_graph *g, const json_t *outputs)
{
	size_t i;
	json_t *o;

	json_array_foreach(outputs, i, o) {
		int v = rg_graph_find_value(g, string_of(o, "name"));

		if (v < 0)
			fail_msg("the graph has no value '%s'", string_of(o, "name"));
		if (json_is_true(json_object_get(o, "inner")))
			must(rg_graph_add_output(g, v, &err), "rg_graph_add_output");
	}
}

static void bind_inputs(struct rg_graph *g, const json_t *inputs)
{
	struct rg_bindings b = { 0 };
	size_t i;
	json_t *in;

	b.shapes = rg_calloc(json_array_size(inputs), sizeof(*b.shapes));
	assert_non_null(b.shapes);
	json_array_foreach(inputs, i, in) {
		b.shapes[b.n_shapes].input = string_of(in, "name");
		b.shapes[b.n_shapes++].shape = json_shape(json_object_get(in, "shape"));
	}
	must(rg_graph_bind(g, &b, &err), "rg_graph_bind");
	rg_free(b.shapes);
}

static void fill_inputs(const struct rg_graph *g, struct rg_exec *e, uint64_t seed)
{
	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(e, i);

		assert_int_equal(t.dtype, RG_F32);
		assert_non_null(t.data);
		rg_rng_fill_f32(rg_rng_stream(seed, g->values[g->inputs[i]].name), 0.0f, 1.0f, t.data,
				(size_t)rg_shape_count(&t.shape));
	}
}

static void check_statistic(const json_t *golden, const char *key, double got)
{
	double want = number_of(golden, key);

	if (!numbers_agree(got, want, RTOL, ATOL))
		fail_msg("'%s': %s is %.9g, expected %.9g", string_of(golden, "name"), key, got, want);
}

static void check_value(const json_t *golden, const struct rg_tensor *got)
{
	const json_t *indices = json_object_get(golden, "indices");
	const json_t *values = json_object_get(golden, "values");
	struct rg_shape want_shape = json_shape(json_object_get(golden, "shape"));
	double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
	int64_t count = rg_shape_count(&want_shape);
	char a[160], b[160];

	assert_string_equal(rg_dtype_name(got->dtype), string_of(golden, "dtype"));
	assert_string_equal(rg_shape_text(a, &got->shape), rg_shape_text(b, &want_shape));
	assert_non_null(got->data);
	assert_true(json_array_size(indices) > 0);
	assert_int_equal(json_array_size(indices), json_array_size(values));
	for (size_t i = 0; i < json_array_size(indices); i++) {
		int64_t at = json_integer_value(json_array_get(indices, i));
		double want = json_number_value(json_array_get(values, i));

		assert_true(at >= 0 && at < count);
		if (!numbers_agree(tensor_number(got, at), want, RTOL, ATOL))
			fail_msg("'%s': element %" PRId64 " is %.9g, expected %.9g",
				 string_of(golden, "name"), at, tensor_number(got, at), want);
	}
	for (int64_t i = 0; i < count; i++) {
		double x = tensor_number(got, i);

		assert_false(isnan(x));
		low = fmin(low, x);
		high = fmax(high, x);
		sum += x;
		squares += x * x;
	}
	check_statistic(golden, "min", low);
	check_statistic(golden, "max", high);
	check_statistic(golden, "mean", sum / (double)count);
	check_statistic(golden, "rms", sqrt(squares / (double)count));
}

static void check_outputs(const struct rg_graph *g, struct rg_exec *e, const json_t *outputs)
{
	size_t i;
	json_t *o;

	assert_int_equal(g->n_outputs, json_array_size(outputs));
	/* In file order, the exposed ones behind them, as the golden file has them. */
	json_array_foreach(outputs, i, o) {
		struct rg_tensor got = rg_exec_output(e, (int)i);

		assert_string_equal(g->values[g->outputs[i]].name, string_of(o, "name"));
		check_value(o, &got);
	}
}

static void test_model(void **state)
{
	const struct golden_case *c = *state;
	json_t *golden = load_golden(c->name);
	const char *dir = getenv("RIDGE_MODELS_DIR");
	struct rg_plan_options opt = { .lanes = c->lanes };
	struct rg_model *model = NULL;
	struct rg_plan *plan = NULL;
	struct rg_exec *e = NULL;
	struct rg_cpu cpu;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : RG_SOURCE_ROOT "/models/fetched",
		 string_of(golden, "model"));
	if (access(path, R_OK)) {
		print_message("# skip: %s is not there; run  scripts/fetch-models\n",
			      string_of(golden, "model"));
		json_decref(golden);
		skip();
	}
	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	must(rg_model_open(path, NULL, &model, &err), "rg_model_open");
	expose(model->graph, json_object_get(golden, "outputs"));
	bind_inputs(model->graph, json_object_get(golden, "inputs"));
	must(rg_plan_make(model->graph, &opt, &plan, &err), "rg_plan_make");
	must(rg_exec_new(plan, NULL, &e, &err), "rg_exec_new");
	fill_inputs(model->graph, e, (uint64_t)number_of(golden, "seed"));
	must(rg_exec_run(e, &err), "rg_exec_run");
	check_outputs(model->graph, e, json_object_get(golden, "outputs"));
	rg_exec_free(e);
	rg_plan_free(plan);
	rg_model_free(model);
	json_decref(golden);
}

int main(void)
{
	static struct golden_case cases[] = {
		{ "ppocr-v4-det", 1 }, { "ppocr-v4-det", 2 }, { "ppocr-v4-rec", 1 },
		{ "ppocr-v4-rec", 2 }, { "ppocr-v2-cls", 1 }, { "ppocr-v2-cls", 2 },
	};
	struct CMUnitTest tests[sizeof(cases) / sizeof(cases[0])];
	char names[sizeof(cases) / sizeof(cases[0])][64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(names[i], sizeof(names[i]), "%s on %d lane%s", cases[i].name, cases[i].lanes,
			 cases[i].lanes == 1 ? "" : "s");
		tests[i] = (struct CMUnitTest){ .name = names[i], .test_func = test_model,
						.initial_state = &cases[i] };
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
