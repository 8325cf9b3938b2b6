/* Built-in models: published parameter counts, shapes, defaults, seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/infer.h"
#include "kernels/kernel.h"
#include "models/builder.h"
#include "models/builtin.h"

static struct rg_error err;

static struct rg_graph *build(const char *name)
{
	const struct rg_builtin *m = rg_builtin_find(name);
	struct rg_graph *g = rg_graph_new(NULL);

	assert_non_null(m);
	assert_non_null(g);
	if (m->build(g, &err))
		fail_msg("%s: %s: %s", name, err.where, err.message);
	if (rg_graph_finish(g, &err))
		fail_msg("%s: %s: %s", name, err.where, err.message);
	return g;
}

/* Evaluates shape arithmetic with the kernels, as the compiler does. */
static int eval(void *ctx, const struct rg_graph *g, const struct rg_node *node, const struct rg_tensor *in,
		struct rg_tensor *out, struct rg_error *e)
{
	struct rg_call call = { .node = node, .in = in, .out = out };
	const struct rg_kernel *k = rg_kernel_find(node->domain, node->op_type, "ref");
	void *scratch = NULL;
	size_t bytes;
	int code;

	if (!k)
		return -ENOSYS;
	bytes = k->scratch_bytes ? k->scratch_bytes(&call, 1) : 0;
	if (bytes)
		scratch = rg_alloc_aligned(64, bytes);
	call.scratch = scratch;
	code = k->run(&call, &rg_par_serial, e);
	rg_free(scratch);
	return code;
}

static void bind_and_infer(const char *name, struct rg_graph *g, int n, const char **symbols,
			   const int64_t *values)
{
	struct rg_infer_options opt = { .eval = eval };
	struct rg_bindings given = { 0 }, all = { 0 };
	int need = -1;

	given.dims = rg_calloc((size_t)n + 1, sizeof(*given.dims));
	all.dims = rg_calloc((size_t)n + 8, sizeof(*all.dims));
	assert_true(given.dims && all.dims);
	for (int i = 0; i < n; i++) {
		given.dims[i].symbol = symbols[i];
		given.dims[i].value = values[i];
	}
	given.n_dims = n;
	assert_int_equal(rg_builtin_default_dims(rg_builtin_find(name), g, &given, &all, &err), 0);
	if (rg_graph_bind(g, &all, &err) || rg_graph_infer(g, &opt, &need, &err))
		fail_msg("%s: %s: %s", name, err.where, err.message);
	rg_free(given.dims);
	rg_free(all.dims);
}

static void check_output(const struct rg_graph *g, int i, const char *shape)
{
	const struct rg_value *v = &g->values[g->outputs[i]];
	char text[160];

	assert_true(v->shaped);
	assert_int_equal(v->dtype, RG_F32);
	assert_string_equal(rg_shape_text(text, &v->shape), shape);
}

/* The figures are the published ones, not the table's own. */
static void test_resnet50(void **state)
{
	struct rg_graph *g = build("resnet50");

	assert_int_equal(rg_graph_count_params(g), 25557032);
	assert_int_equal(rg_builtin_find("resnet50")->params, 25557032);
	bind_and_infer("resnet50", g, 0, NULL, NULL);
	check_output(g, 0, "1x1000");
	rg_graph_free(g);
}

static void test_resnet50_batch(void **state)
{
	struct rg_graph *g = build("resnet50");
	int halved = -1;

	bind_and_infer("resnet50", g, 1, (const char *[]){ "batch" }, (int64_t[]){ 4 });
	check_output(g, 0, "4x1000");
	/* v1.5: the 3x3 convolution halves the image, not the 1x1 before it. */
	halved = rg_graph_find_value(g, "/layer2.0.conv1/Conv_output_0");
	assert_true(halved >= 0);
	assert_int_equal(g->values[halved].shape.dim[2], 56);
	halved = rg_graph_find_value(g, "/layer2.0.conv2/Conv_output_0");
	assert_true(halved >= 0);
	assert_int_equal(g->values[halved].shape.dim[2], 28);
	rg_graph_free(g);
}

static void test_mobilenet_v2(void **state)
{
	struct rg_graph *g = build("mobilenet-v2");

	assert_int_equal(rg_graph_count_params(g), 3504872);
	assert_int_equal(rg_builtin_find("mobilenet-v2")->params, 3504872);
	bind_and_infer("mobilenet-v2", g, 0, NULL, NULL);
	check_output(g, 0, "1x1000");
	rg_graph_free(g);
}

static void test_bert_base(void **state)
{
	struct rg_graph *g = build("bert-base");

	assert_int_equal(rg_graph_count_params(g), 109482240);
	assert_int_equal(rg_builtin_find("bert-base")->params, 109482240);
	bind_and_infer("bert-base", g, 1, (const char *[]){ "seq" }, (int64_t[]){ 17 });
	assert_int_equal(g->n_outputs, 2);
	check_output(g, 0, "1x17x768");
	check_output(g, 1, "1x768");
	rg_graph_free(g);
}

static void test_vgg16(void **state)
{
	struct rg_graph *g = build("vgg16");

	assert_int_equal(rg_graph_count_params(g), 138357544);
	assert_int_equal(rg_builtin_find("vgg16")->params, 138357544);
	bind_and_infer("vgg16", g, 1, (const char *[]){ "batch" }, (int64_t[]){ 2 });
	check_output(g, 0, "2x1000");
	rg_graph_free(g);
}

static void test_vit_b16(void **state)
{
	struct rg_graph *g = build("vit-b16");

	assert_int_equal(rg_graph_count_params(g), 86567656);
	assert_int_equal(rg_builtin_find("vit-b16")->params, 86567656);
	bind_and_infer("vit-b16", g, 1, (const char *[]){ "batch" }, (int64_t[]){ 3 });
	check_output(g, 0, "3x1000");
	rg_graph_free(g);
}

static void test_unet(void **state)
{
	struct rg_graph *g = build("unet");

	assert_int_equal(rg_graph_count_params(g), 7763041);
	assert_int_equal(rg_builtin_find("unet")->params, 7763041);
	bind_and_infer("unet", g, 2, (const char *[]){ "height", "width" }, (int64_t[]){ 48, 80 });
	check_output(g, 0, "1x1x48x80");
	rg_graph_free(g);
}

static void test_lstm(void **state)
{
	struct rg_graph *g = build("lstm");

	assert_int_equal(rg_graph_count_params(g), 10000 * 650 + 2 * 4 * (2 * 650 * 650 + 2 * 650) +
							   650 * 10000 + 10000);
	assert_int_equal(rg_builtin_find("lstm")->params, rg_graph_count_params(g));
	bind_and_infer("lstm", g, 1, (const char *[]){ "batch" }, (int64_t[]){ 2 });
	assert_int_equal(g->n_outputs, 3);
	check_output(g, 0, "35x2x10000");
	check_output(g, 1, "2x2x650");
	check_output(g, 2, "2x2x650");
	rg_graph_free(g);
}

/* Prefill and decode are one graph; nothing lies in the past of a prefill. */
static void test_gpt2(void **state)
{
	struct rg_graph *g = build("gpt2");

	assert_int_equal(rg_graph_count_params(g), 124439808);
	assert_int_equal(rg_builtin_find("gpt2")->params, 124439808);
	bind_and_infer("gpt2", g, 1, (const char *[]){ "seq" }, (int64_t[]){ 7 });
	assert_int_equal(g->n_outputs, 25);
	check_output(g, 0, "1x7x50257");
	check_output(g, 1, "1x12x7x64");
	rg_graph_free(g);
	g = build("gpt2");
	bind_and_infer("gpt2", g, 1, (const char *[]){ "past" }, (int64_t[]){ 512 });
	check_output(g, 0, "1x1x50257");
	check_output(g, 24, "1x12x513x64");
	assert_string_equal(g->values[g->outputs[24]].name, "present.11.value");
	rg_graph_free(g);
}

static void test_mlp(void **state)
{
	struct rg_graph *g = build("mlp");

	assert_int_equal(rg_graph_count_params(g), 784 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10);
	assert_int_equal(rg_builtin_find("mlp")->params, rg_graph_count_params(g));
	bind_and_infer("mlp", g, 1, (const char *[]){ "batch" }, (int64_t[]){ 3 });
	check_output(g, 0, "3x10");
	rg_graph_free(g);
}

static void test_weights_are_seeded_by_name(void **state)
{
	struct rg_graph *g = build("mlp");
	uint64_t stream = rg_rng_stream(1, "fc2.weight");
	float bound = (float)sqrt(6.0 / 2048);
	int v = rg_graph_find_value(g, "fc2.weight");
	const float *w;
	double sum = 0, squares = 0;

	assert_true(v >= 0);
	w = g->values[v].data;
	for (int64_t i = 0; i < 2048 * 2048; i++) {
		if (w[i] != rg_rng_uniform(stream, (uint64_t)i, -bound, bound))
			fail_msg("element %d is %.9g", (int)i, (double)w[i]);
		sum += w[i];
		squares += (double)w[i] * w[i];
	}
	/* He: mean 0, variance 2 / fan_in. */
	assert_true(fabs(sum / (2048 * 2048)) < 1e-4);
	assert_true(fabs(squares / (2048 * 2048) * 2048 / 2 - 1) < 0.01);
	rg_graph_free(g);
}

static void check_default(const struct rg_builtin *m, const struct rg_graph *g, const struct rg_bindings *b,
			  int n, ...)
{
	struct rg_bindings out = { 0 };
	va_list ap;

	out.dims = rg_calloc((size_t)(b ? b->n_dims : 0) + 8, sizeof(*out.dims));
	assert_non_null(out.dims);
	assert_int_equal(rg_builtin_default_dims(m, g, b, &out, &err), 0);
	assert_int_equal(out.n_dims, n);
	va_start(ap, n);
	for (int i = 0; i < n; i++) {
		assert_string_equal(out.dims[i].symbol, va_arg(ap, const char *));
		assert_int_equal(out.dims[i].value, va_arg(ap, int));
	}
	va_end(ap);
	rg_free(out.dims);
}

/* The inputs of gpt2 alone: what the defaults look at. */
static struct rg_graph *inputs_of_gpt2(void)
{
	struct rg_dim ids[] = { RG_B_OPEN("batch"), RG_B_OPEN("seq") };
	struct rg_dim past[] = { RG_B_OPEN("batch"), RG_B_DIM(12), RG_B_OPEN("past"), RG_B_DIM(64) };
	struct rg_graph *g = rg_graph_new(NULL);
	struct rg_builder b;

	assert_non_null(g);
	rg_b_start(&b, g, "inputs", 17, &err);
	rg_b_input(&b, "input_ids", RG_I64, 2, ids);
	rg_b_input(&b, "past_key_values.0.key", RG_F32, 4, past);
	assert_int_equal(rg_b_done(&b), 0);
	return g;
}

static void test_default_dims(void **state)
{
	const struct rg_builtin *bert = rg_builtin_find("bert-base"), *gpt2 = rg_builtin_find("gpt2");
	struct rg_graph *g = inputs_of_gpt2();
	struct rg_bindings b = { 0 };

	b.dims = rg_calloc(1, sizeof(*b.dims));
	b.shapes = rg_calloc(1, sizeof(*b.shapes));
	assert_true(b.dims && b.shapes);
	check_default(bert, g, NULL, 2, "batch", 1, "seq", 128);
	check_default(gpt2, g, NULL, 3, "batch", 1, "seq", 128, "past", 0);
	b.n_dims = 1;
	b.dims[0].symbol = "seq";
	b.dims[0].value = 9;
	check_default(bert, g, &b, 2, "seq", 9, "batch", 1);
	/* With a past, one token is decoded. */
	b.dims[0].symbol = "past";
	b.dims[0].value = 77;
	check_default(gpt2, g, &b, 3, "past", 77, "batch", 1, "seq", 1);
	/* The shape of one input settles the others. */
	b.n_dims = 0;
	b.n_shapes = 1;
	b.shapes[0].input = "input_ids";
	b.shapes[0].shape = rg_shape_of(2, (int64_t[]){ 2, 33 });
	check_default(bert, g, &b, 2, "batch", 2, "seq", 33);
	check_default(gpt2, g, &b, 3, "batch", 2, "seq", 33, "past", 0);
	b.shapes[0].input = "past_key_values.0.key";
	b.shapes[0].shape = rg_shape_of(4, (int64_t[]){ 3, 12, 40, 64 });
	check_default(gpt2, g, &b, 3, "batch", 3, "seq", 1, "past", 40);
	rg_free(b.dims);
	rg_free(b.shapes);
	rg_graph_free(g);
}

static void test_unknown_name(void **state)
{
	assert_null(rg_builtin_find("resnet51"));
	assert_null(rg_builtin_find(""));
	assert_null(rg_builtin_at(-1));
	assert_null(rg_builtin_at(rg_builtin_count()));
	for (int i = 0; i < rg_builtin_count(); i++)
		assert_ptr_equal(rg_builtin_find(rg_builtin_at(i)->name), rg_builtin_at(i));
}

/* Every allocation of a build fails once: an error comes back, nothing leaks
 * (the sanitized run looks). */
static void test_out_of_memory(void **state)
{
	const struct rg_builtin *m = rg_builtin_find("mlp");

	for (uint64_t n = 1;; n++) {
		struct rg_graph *g;
		int code = -ENOMEM;
		bool failed;

		rg_alloc_fail_at(n);
		g = rg_graph_new(NULL);
		if (g)
			code = m->build(g, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_graph_free(g);
		if (!failed) {
			assert_int_equal(code, 0);
			assert_true(n > 10);
			return;
		}
		assert_int_equal(code, -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resnet50),
		cmocka_unit_test(test_resnet50_batch),
		cmocka_unit_test(test_mobilenet_v2),
		cmocka_unit_test(test_bert_base),
		cmocka_unit_test(test_vgg16),
		cmocka_unit_test(test_vit_b16),
		cmocka_unit_test(test_unet),
		cmocka_unit_test(test_lstm),
		cmocka_unit_test(test_gpt2),
		cmocka_unit_test(test_mlp),
		cmocka_unit_test(test_weights_are_seeded_by_name),
		cmocka_unit_test(test_default_dims),
		cmocka_unit_test(test_unknown_name),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
