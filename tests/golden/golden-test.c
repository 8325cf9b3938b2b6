/*
 * Fetched and built-in models against what ONNX Runtime computes
 * (make-golden.py), on one lane and on two: outputs and inner values, element by
 * element of a seeded sample, and statistics over all elements. rtol 1e-3, atol
 * 1e-4, unless a case gives another atol and the reason for it.
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

struct golden_model {
	const char *name;
	int lanes;
	int level;                 /* of the graph passes; 0 none */
};

/* One case of a model's file. */
struct golden_case {
	const json_t *json;
	uint64_t seed;
	double atol;
	char label[96]; /* for messages */
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

static void bind_inputs(struct rg_model *m, const json_t *inputs)
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
	must(rg_model_bind(m, &b, &err), "rg_model_bind");
	rg_free(b.shapes);
}

static void put(const struct rg_tensor *t, int64_t i, int64_t v)
{
	switch (t->dtype) {
	case RG_F32: ((float *)t->data)[i] = (float)v; break;
	case RG_I64: ((int64_t *)t->data)[i] = v; break;
	case RG_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
	default: fail_msg("inputs of type %s are not filled", rg_dtype_name(t->dtype));
	}
}

/* What make_input() of make-golden.py does. */
static void fill_input(const struct rg_tensor *t, const char *name, uint64_t seed, const json_t *spec)
{
	const char *fill = string_of(spec, "fill");
	uint64_t stream = rg_rng_stream(seed, name);
	int64_t n = rg_shape_count(&t->shape);

	assert_string_equal(rg_dtype_name(t->dtype), string_of(spec, "dtype"));
	if (!strcmp(fill, "uniform")) {
		assert_int_equal(t->dtype, RG_F32);
		rg_rng_fill_f32(stream, (float)number_of(spec, "lo"), (float)number_of(spec, "hi"), t->data,
				(size_t)n);
	} else if (!strcmp(fill, "integer")) {
		int64_t lo = (int64_t)number_of(spec, "lo"), hi = (int64_t)number_of(spec, "hi");

		for (int64_t i = 0; i < n; i++)
			put(t, i, rg_rng_integer(stream, (uint64_t)i, lo, hi));
	} else if (!strcmp(fill, "value")) {
		for (int64_t i = 0; i < n; i++)
			put(t, i, (int64_t)number_of(spec, "value"));
	} else {
		int64_t last = t->shape.dim[t->shape.rank - 1];

		assert_string_equal(fill, "mask");
		for (int64_t i = 0; i < n; i++)
			put(t, i, i % last < last - (int64_t)number_of(spec, "off"));
	}
}

/* The inputs of one case, filled; what a plan may ask for. */
struct golden_inputs {
	const struct rg_graph *g;
	struct rg_tensor *t;
};

static void make_inputs(const struct rg_graph *g, const struct golden_case *c, struct golden_inputs *in)
{
	const json_t *inputs = json_object_get(c->json, "inputs");

	assert_int_equal(g->n_inputs, json_array_size(inputs));
	in->g = g;
	in->t = rg_calloc((size_t)g->n_inputs, sizeof(*in->t));
	assert_non_null(in->t);
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		const json_t *spec = NULL;

		for (size_t k = 0; k < json_array_size(inputs); k++)
			if (!strcmp(string_of(json_array_get(inputs, k), "name"), v->name))
				spec = json_array_get(inputs, k);
		if (!spec)
			fail_msg("%s: no golden input '%s'", c->label, v->name);
		in->t[i] = (struct rg_tensor){ .dtype = v->dtype, .shape = v->shape };
		in->t[i].data = rg_alloc_aligned(64, (size_t)rg_tensor_bytes(v->dtype, &v->shape) + 1);
		assert_non_null(in->t[i].data);
		fill_input(&in->t[i], v->name, c->seed, spec);
	}
}

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	const struct golden_inputs *in = ctx;

	for (int i = 0; i < in->g->n_inputs; i++)
		if (!strcmp(in->g->values[in->g->inputs[i]].name, name))
			return &in->t[i];
	return NULL;
}

/* An input whose value became part of the plan has no place of its own. */
static void stage(struct rg_exec *e, const struct golden_inputs *in)
{
	for (int i = 0; i < in->g->n_inputs; i++) {
		struct rg_tensor to = rg_exec_input(e, i);

		if (to.data)
			memcpy(to.data, in->t[i].data, (size_t)rg_tensor_bytes(to.dtype, &to.shape));
	}
}

static void free_inputs(struct golden_inputs *in)
{
	for (int i = 0; i < in->g->n_inputs; i++)
		rg_free(in->t[i].data);
	rg_free(in->t);
}

static void check_statistic(const struct golden_case *c, const json_t *golden, const char *key, double got)
{
	double want = number_of(golden, key);

	if (!numbers_agree(got, want, RTOL, c->atol))
		fail_msg("%s: '%s': %s is %.9g, expected %.9g", c->label, string_of(golden, "name"), key, got, want);
}

static void check_value(const struct golden_case *c, const json_t *golden, const struct rg_tensor *got)
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
		if (!numbers_agree(tensor_number(got, at), want, RTOL, c->atol))
			fail_msg("%s: '%s': element %" PRId64 " is %.9g, expected %.9g", c->label,
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
	check_statistic(c, golden, "min", low);
	check_statistic(c, golden, "max", high);
	check_statistic(c, golden, "mean", sum / (double)count);
	check_statistic(c, golden, "rms", sqrt(squares / (double)count));
}

static void check_outputs(const struct rg_graph *g, struct rg_exec *e, const struct golden_case *c)
{
	const json_t *outputs = json_object_get(c->json, "outputs");
	size_t i;
	json_t *o;

	assert_int_equal(g->n_outputs, json_array_size(outputs));
	/* In file order, the exposed ones behind them, as the golden file has them. */
	json_array_foreach(outputs, i, o) {
		struct rg_tensor got = rg_exec_output(e, (int)i);

		assert_string_equal(g->values[g->outputs[i]].name, string_of(o, "name"));
		check_value(c, o, &got);
	}
}

static void run_case(const char *path, const struct golden_case *c, int lanes, int level)
{
	struct rg_plan_options opt = { .lanes = lanes, .passes.level = level };
	struct rg_model *model = NULL;
	struct rg_plan *plan = NULL;
	struct rg_exec *e = NULL;
	struct golden_inputs in;
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	must(rg_model_open(path, NULL, &model, &err), c->label);
	expose(model->graph, json_object_get(c->json, "outputs"));
	bind_inputs(model, json_object_get(c->json, "inputs"));
	make_inputs(model->graph, c, &in);
	opt.input_value = input_value;
	opt.input_ctx = &in;
	must(rg_plan_make(model->graph, &opt, &plan, &err), c->label);
	must(rg_exec_new(plan, NULL, &e, &err), c->label);
	stage(e, &in);
	must(rg_exec_run(e, &err), c->label);
	check_outputs(model->graph, e, c);
	rg_exec_free(e);
	rg_plan_free(plan);
	free_inputs(&in);
	rg_model_free(model);
}

static void test_model(void **state)
{
	const struct golden_model *m = *state;
	json_t *golden = load_golden(m->name);
	const char *model = string_of(golden, "model"), *dir = getenv("RIDGE_MODELS_DIR");
	bool fetched = strncmp(model, "builtin:", strlen("builtin:")) != 0;
	char path[4096];
	size_t i;
	json_t *one;

	snprintf(path, sizeof(path), "%s%s%s", fetched ? dir ? dir : RG_SOURCE_ROOT "/models/fetched" : "",
		 fetched ? "/" : "", model);
	if (fetched && access(path, R_OK)) {
		print_message("# skip: %s is not there; run  scripts/fetch-models\n", model);
		json_decref(golden);
		skip();
	}
	assert_true(json_array_size(json_object_get(golden, "cases")) > 0);
	json_array_foreach(json_object_get(golden, "cases"), i, one) {
		const json_t *atol = json_object_get(one, "atol");
		struct golden_case c = { one, (uint64_t)number_of(golden, "seed"), atol ? json_number_value(atol) : ATOL,
					 "" };

		/* Another tolerance needs a reason. */
		assert_true(!atol || *string_of(one, "why"));
		snprintf(c.label, sizeof(c.label), "%s, case %zu", m->name, i + 1);
		run_case(path, &c, m->lanes, m->level);
	}
	json_decref(golden);
}

/* A model whose weights are made or whose sums are long runs on two lanes only. */
static struct golden_model models[] = {
	{ "ppocr-v4-det", 1 },
	{ "ppocr-v4-det", 2 },
	{ "ppocr-v4-rec", 1 },
	{ "ppocr-v4-rec", 2 },
	{ "ppocr-v2-cls", 1 },
	{ "ppocr-v2-cls", 2 },
	{ "magika", 1 },
	{ "magika", 2 },
	{ "paraphrase-minilm", 1 },
	{ "paraphrase-minilm", 2 },
	{ "minilm-int8", 1 },
	{ "minilm-int8", 2 },
	{ "basic-pitch", 1 },
	{ "basic-pitch", 2 },
	{ "silero-vad", 1 },
	{ "silero-vad", 2 },
	{ "silero-vad-op18", 1 },
	{ "silero-vad-op18", 2 },
	{ "silero-vad-op15", 1 },
	{ "silero-vad-op15", 2 },
	{ "silero-vad-half", 1 },
	{ "silero-vad-half", 2 },
	{ "silero-vad-openvino", 1 },
	{ "silero-vad-openvino", 2 },
	{ "silero-vad-sequence", 1 },
	{ "silero-vad-sequence", 2 },
	{ "builtin-mlp", 1 },
	{ "builtin-mlp", 2 },
	{ "builtin-mobilenet-v2", 2 },
	{ "builtin-resnet50", 2 },
	{ "builtin-vgg16", 2 },
	{ "builtin-vit-b16", 2 },
	{ "builtin-unet", 2 },
	{ "builtin-bert-base", 2 },
	{ "builtin-gpt2", 2 },
	{ "builtin-lstm", 2 },
	/* rewritten by the graph passes */
	{ "ppocr-v4-det", 2, RG_PASS_LEVELS },
	{ "ppocr-v4-rec", 2, RG_PASS_LEVELS },
	{ "ppocr-v2-cls", 2, RG_PASS_LEVELS },
	{ "basic-pitch", 2, RG_PASS_LEVELS },
	{ "paraphrase-minilm", 2, RG_PASS_LEVELS },
	{ "builtin-bert-base", 2, RG_PASS_LEVELS },
	{ "builtin-gpt2", 2, RG_PASS_LEVELS },
	{ "builtin-vit-b16", 2, RG_PASS_LEVELS },
	{ "builtin-mobilenet-v2", 2, RG_PASS_LEVELS },
	{ "builtin-resnet50", 2, RG_PASS_LEVELS },
	{ "builtin-unet", 2, RG_PASS_LEVELS },
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

int main(void)
{
	struct CMUnitTest tests[N_MODELS];
	char names[N_MODELS][64];

	for (size_t i = 0; i < N_MODELS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s on %d lane%s%s", models[i].name, models[i].lanes,
			 models[i].lanes == 1 ? "" : "s", models[i].level ? ", optimised" : "");
		tests[i] = (struct CMUnitTest){ .name = names[i], .test_func = test_model,
						.initial_state = &models[i] };
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
