/*
 * Built-in models run: the best kernels of this machine agree with the scalar
 * references over a whole network, and activations neither vanish nor overflow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "kernels/kernel.h"
#include "models/builtin.h"
#include "sys/cpu.h"
#include "tests/conformance/compare.h"

/* Sums are taken in another order, over networks of up to 53 convolutions. */
#define RTOL 1e-3
#define ATOL_OF_RMS 1e-3
#define MAX_OUTPUTS 25

static struct rg_error err;

static void must(int code, const char *what)
{
	if (code)
		fail_msg("%s: %s: %s", what, err.where, err.message);
}

static struct rg_graph *build(const char *name, const char *symbol, int64_t value)
{
	const struct rg_builtin *m = rg_builtin_find(name);
	struct rg_graph *g = rg_graph_new(NULL);
	struct rg_bindings given = { 0 }, all = { 0 };

	assert_non_null(m);
	assert_non_null(g);
	given.dims = rg_calloc(1, sizeof(*given.dims));
	all.dims = rg_calloc(9, sizeof(*all.dims));
	assert_true(given.dims && all.dims);
	given.n_dims = 1;
	given.dims[0].symbol = symbol;
	given.dims[0].value = value;
	must(m->build(g, &err), "build");
	must(rg_graph_finish(g, &err), "rg_graph_finish");
	must(rg_builtin_default_dims(m, g, &given, &all, &err), "rg_builtin_default_dims");
	must(rg_graph_bind(g, &all, &err), "rg_graph_bind");
	rg_free(given.dims);
	rg_free(all.dims);
	return g;
}

/* Every operator type of the graph to its scalar reference. */
static void force_ref(const struct rg_graph *g, struct rg_plan_options *opt)
{
	opt->overrides = rg_calloc((size_t)g->n_nodes, sizeof(*opt->overrides));
	assert_non_null(opt->overrides);
	for (int i = 0; i < g->n_nodes; i++) {
		int k = 0;

		while (k < opt->n_overrides && strcmp(opt->overrides[k].op, g->nodes[i].op_type))
			k++;
		if (k < opt->n_overrides || !rg_kernel_find("", g->nodes[i].op_type, "ref"))
			continue;
		opt->overrides[k].op = g->nodes[i].op_type;
		opt->overrides[k].kernel = "ref";
		opt->n_overrides++;
	}
}

static void fill(struct rg_exec *e, const struct rg_graph *g)
{
	for (int i = 0; i < g->n_inputs; i++) {
		const char *name = g->values[g->inputs[i]].name;
		struct rg_tensor t = rg_exec_input(e, i);
		int64_t count = rg_shape_count(&t.shape);
		uint64_t stream = rg_rng_stream(1, name);

		assert_non_null(t.data);
		if (t.dtype == RG_F32) {
			rg_rng_fill_f32(stream, 0.0f, 1.0f, t.data, (size_t)count);
			continue;
		}
		assert_int_equal(t.dtype, RG_I64);
		for (int64_t k = 0; k < count; k++) {
			int64_t *v = t.data;

			if (!strcmp(name, "attention_mask"))
				v[k] = k < count - 2; /* the last two tokens are padding */
			else
				v[k] = rg_rng_integer(stream, (uint64_t)k, 0,
						      !strcmp(name, "token_type_ids") ? 1
						      : !strcmp(name, "input") ? 9999 : 30521);
		}
	}
}

struct result {
	int n;
	struct rg_tensor out[MAX_OUTPUTS];
	int steps_not_ref;
};

static void run(const char *name, const char *symbol, int64_t value, bool ref, int lanes, struct result *r)
{
	struct rg_graph *g = build(name, symbol, value);
	struct rg_plan_options opt = { .lanes = lanes };
	struct rg_plan *plan = NULL;
	struct rg_exec *e = NULL;
	struct rg_cpu cpu;

	memset(r, 0, sizeof(*r));
	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	if (ref)
		force_ref(g, &opt);
	must(rg_plan_make(g, &opt, &plan, &err), "rg_plan_make");
	must(rg_exec_new(plan, NULL, &e, &err), "rg_exec_new");
	fill(e, g);
	must(rg_exec_run(e, &err), "rg_exec_run");
	for (int i = 0; i < plan->n_steps; i++)
		r->steps_not_ref += plan->steps[i].kernel && strcmp(plan->steps[i].kernel->name, "ref") != 0;
	r->n = g->n_outputs;
	assert_true(r->n <= MAX_OUTPUTS);
	for (int i = 0; i < r->n; i++) {
		struct rg_tensor t = rg_exec_output(e, i);
		size_t bytes = (size_t)rg_tensor_bytes(t.dtype, &t.shape);

		r->out[i] = t;
		r->out[i].data = rg_alloc_aligned(64, bytes);
		assert_non_null(r->out[i].data);
		memcpy(r->out[i].data, t.data, bytes);
	}
	rg_exec_free(e);
	rg_plan_free(plan);
	rg_free(opt.overrides);
	rg_graph_free(g);
}

static void result_free(struct result *r)
{
	for (int i = 0; i < r->n; i++)
		rg_free(r->out[i].data);
}

/* Finite, of ordinary size, and not all alike. Returns the root mean square. */
static double check_healthy(const struct rg_tensor *t)
{
	int64_t count = rg_shape_count(&t->shape);
	double squares = 0, low = INFINITY, high = -INFINITY;

	assert_true(count > 1);
	for (int64_t i = 0; i < count; i++) {
		double x = tensor_number(t, i);

		if (!isfinite(x))
			fail_msg("element %" PRId64 " is %g", i, x);
		squares += x * x;
		low = fmin(low, x);
		high = fmax(high, x);
	}
	squares = sqrt(squares / (double)count);
	if (squares < 1e-3 || squares > 1e3 || high - low < 0.1 * squares)
		fail_msg("root mean square %g, from %g to %g", squares, low, high);
	return squares;
}

static void compare(const char *name, const char *symbol, int64_t value)
{
	struct result ref, best;
	char why[400];

	run(name, symbol, value, true, 1, &ref);
	assert_int_equal(ref.steps_not_ref, 0);
	run(name, symbol, value, false, 2, &best);
	assert_int_equal(ref.n, best.n);
	for (int i = 0; i < ref.n; i++) {
		double rms = check_healthy(&ref.out[i]);

		if (!tensors_agree(&best.out[i], &ref.out[i], RTOL, ATOL_OF_RMS * rms, why, sizeof(why)))
			fail_msg("output %d: %s", i, why);
	}
	if (best.steps_not_ref == 0) {
		print_message("# skip: no kernel beside the references for %s here\n", name);
		result_free(&ref);
		result_free(&best);
		skip();
	}
	result_free(&ref);
	result_free(&best);
}

static void test_mlp(void **state)
{
	compare("mlp", "batch", 3);
}

static void test_mobilenet_v2(void **state)
{
	compare("mobilenet-v2", "batch", 1);
}

static void test_bert_base(void **state)
{
	compare("bert-base", "seq", 8);
}

static void test_gpt2(void **state)
{
	compare("gpt2", "seq", 4);
}

static void test_gpt2_with_a_past(void **state)
{
	compare("gpt2", "past", 40);
}

static void test_lstm(void **state)
{
	compare("lstm", "seq", 5);
}

static void test_unet(void **state)
{
	compare("unet", "height", 16);
}

/* The references take too long on all of these. */
static void only_healthy(const char *name)
{
	struct result r;

	run(name, "batch", 1, false, 2, &r);
	assert_int_equal(r.n, 1);
	check_healthy(&r.out[0]);
	result_free(&r);
}

static void test_resnet50(void **state)
{
	only_healthy("resnet50");
}

static void test_vgg16(void **state)
{
	only_healthy("vgg16");
}

static void test_vit_b16(void **state)
{
	only_healthy("vit-b16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mlp),
		cmocka_unit_test(test_mobilenet_v2),
		cmocka_unit_test(test_bert_base),
		cmocka_unit_test(test_gpt2),
		cmocka_unit_test(test_gpt2_with_a_past),
		cmocka_unit_test(test_lstm),
		cmocka_unit_test(test_unet),
		cmocka_unit_test(test_resnet50),
		cmocka_unit_test(test_vgg16),
		cmocka_unit_test(test_vit_b16),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
