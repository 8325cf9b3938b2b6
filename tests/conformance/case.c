/* Runs one case of ONNX's test data; see case.h. */
#include "tests/conformance/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "models/onnx.h"
#include "sys/cpu.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/holder.h"

/* What ONNX's own runner uses. */
#define RTOL 1e-3
#define ATOL 1e-7
#define RTOL_BF16 0x1p-7 /* the last of its eight bits; see restore_bf16 */
#define MAX_TENSORS 64

/*
 * One case holds for no kernel that sums in another order for one channel than
 * for the next: 1,000 logits of 9.5e9, equal because all weights are, go into a
 * Softmax, where one of them that is rounded up by its last place (1024) takes
 * everything. OpenBLAS sums the last rows of a tile differently; the reference
 * kernel does not.
 */
static const struct { const char *name, *op, *kernel; } fixed_kernels[] = {
	{ "light/light_squeezenet", "Conv", "ref" },
};

/* Cases whose expected data carries rounding above ATOL where the exact result is
 * zero: sums of float32 products, where we sum in double. */
static const struct { const char *prefix; double atol; } noisy[] = {
	{ "node/test_dft_inverse", 1e-6 }, /* 1.9e-7 for 0, of sums up to 54 */
};

struct data_set {
	int n_inputs, n_outputs;
	struct rg_tensor inputs[MAX_TENSORS], outputs[MAX_TENSORS];
	struct rg_item *input_items[MAX_TENSORS], *output_items[MAX_TENSORS]; /* of what is no plain tensor */
};

/* What one data set needs, so that one place frees it. */
struct run {
	const char *name;
	struct rg_graph *graph;
	struct rg_plan *plan;
	struct rg_exec *exec;
	struct data_set *set;
};

const char *case_outcome_name(enum case_outcome o)
{
	static const char *const names[CASE_OUTCOMES] = { "crashed", "passed", "unsupported", "wrong" };

	return names[o];
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* DIR/KIND_0.pb, DIR/KIND_1.pb, ... until one is not there. `values`: the n_values
 * of the graph that they are for, whose kinds say what the files hold. */
static int load_tensors(const char *dir, const char *kind, const struct rg_graph *g, const int *values,
			int n_values, struct rg_tensor *out, struct rg_item **items, int *n, struct rg_error *err)
{
	char path[4096];

	for (*n = 0; *n < MAX_TENSORS; (*n)++) {
		enum rg_value_kind holds = *n < n_values ? g->values[values[*n]].kind : RG_VALUE_TENSOR;
		int code;

		snprintf(path, sizeof(path), "%s/%s_%d.pb", dir, kind, *n);
		if (!exists(path))
			return 0;
		if (holds != RG_VALUE_TENSOR) {
			items[*n] = holder_load(path, holds, err);
			if (!items[*n])
				return err->code;
			continue;
		}
		code = rg_onnx_load_tensor(path, &out[*n], NULL, err);
		if (code)
			return code;
	}
	return rg_error_set(err, -E2BIG, "more than %d tensors of kind %s", MAX_TENSORS, kind);
}

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	const struct run *run = ctx;

	for (int i = 0; i < run->graph->n_inputs && i < run->set->n_inputs; i++)
		if (!strcmp(run->graph->values[run->graph->inputs[i]].name, name))
			return &run->set->inputs[i];
	return NULL;
}

/*
 * Four cases (test_castlike_*BFLOAT16*) give an input another shape than their
 * model declares. ridge refuses such data, as it must; that is no wrong answer.
 */
static int check_declared(const struct rg_value *v, const struct rg_tensor *data, struct rg_error *err)
{
	bool same = v->declared_rank < 0 || v->declared_rank == data->shape.rank;
	char text[160];

	for (int d = 0; same && d < v->declared_rank; d++)
		same = v->declared[d].value < 0 || v->declared[d].value == data->shape.dim[d];
	if (same)
		return 0;
	return rg_error_set(err, RG_ENOTSUP_MODEL, "the data of input '%s' is %s, not as its model declares",
			    v->name, rg_shape_text(text, &data->shape));
}

/*
 * Debian's test data keeps bfloat16 tensors as uint16, since numpy has no
 * bfloat16; the model's declaration tells. It was also made by cutting bits off,
 * where ONNX asks for rounding to nearest, so the last bit may differ.
 */
static void restore_bf16(const struct rg_graph *g, const int *values, int n, struct rg_tensor *data)
{
	for (int i = 0; i < n && i < MAX_TENSORS; i++)
		if (data[i].dtype == RG_U16 && g->values[values[i]].declared_dtype == RG_BF16)
			data[i].dtype = RG_BF16;
}

/*
 * The outputs of one case of Debian's release were made with an epsilon that is
 * not in its model. The reference implementation of ONNX 1.22 fails it as well,
 * and the case of 1.22 has that attribute.
 */
static int check_fault(const struct run *run, struct rg_error *err)
{
	const struct rg_graph *g = run->graph;

	if (!strstr(run->name, "test_adam_multiple") || g->n_nodes != 1 || rg_node_attr(&g->nodes[0], "epsilon"))
		return 0;
	return rg_error_set(err, RG_ENOTSUP_MODEL,
			    "the expected outputs were made with epsilon 0.01, which the model does not have");
}

/* Binds every input to the shape of the data that it will get. */
static int bind_shapes(struct run *run, struct rg_error *err)
{
	struct rg_bindings b = { 0 };
	int n = run->graph->n_inputs, code = 0;

	if (n > run->set->n_inputs)
		return rg_error_set(err, -EINVAL, "the model takes %d inputs, the data has %d", n,
				    run->set->n_inputs);
	if (n) {
		b.shapes = rg_calloc((size_t)n, sizeof(*b.shapes));
		if (!b.shapes)
			return rg_error_nomem(err, (unsigned long)n * sizeof(*b.shapes));
	}
	for (int i = 0; i < n && !code; i++) {
		const struct rg_value *v = &run->graph->values[run->graph->inputs[i]];

		if (run->set->input_items[i])
			continue;
		b.shapes[b.n_shapes].input = v->name;
		b.shapes[b.n_shapes++].shape = run->set->inputs[i].shape;
		code = check_declared(v, &run->set->inputs[i], err);
	}
	if (!code)
		code = rg_graph_bind(run->graph, &b, err);
	rg_free(b.shapes);
	return code;
}

static int prepare(struct run *run, const char *model, const char *dir, struct rg_error *err)
{
	struct rg_plan_options opt = { .lanes = 1, .input_value = input_value, .input_ctx = run };
	__typeof__(*opt.overrides) fixed;
	struct rg_cpu cpu;
	int code;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	for (size_t i = 0; i < sizeof(fixed_kernels) / sizeof(fixed_kernels[0]); i++) {
		if (strcmp(fixed_kernels[i].name, run->name) != 0)
			continue;
		fixed.op = fixed_kernels[i].op;
		fixed.kernel = fixed_kernels[i].kernel;
		opt.overrides = &fixed;
		opt.n_overrides = 1;
	}
	code = rg_onnx_load(model, NULL, &run->graph, err);
	if (!code)
		code = load_tensors(dir, "input", run->graph, run->graph->inputs, run->graph->n_inputs, run->set->inputs,
				    run->set->input_items, &run->set->n_inputs, err);
	if (!code)
		code = load_tensors(dir, "output", run->graph, run->graph->outputs, run->graph->n_outputs,
				    run->set->outputs, run->set->output_items, &run->set->n_outputs, err);
	if (!code) {
		restore_bf16(run->graph, run->graph->inputs, run->graph->n_inputs, run->set->inputs);
		restore_bf16(run->graph, run->graph->outputs, run->graph->n_outputs, run->set->outputs);
		code = check_fault(run, err);
	}
	if (!code)
		code = bind_shapes(run, err);
	if (!code)
		code = rg_plan_make(run->graph, &opt, &run->plan, err);
	if (!code)
		code = rg_exec_new(run->plan, NULL, &run->exec, err);
	return code;
}

static int fill_inputs(struct run *run, struct rg_error *err)
{
	for (int i = 0; i < run->graph->n_inputs; i++) {
		const struct rg_tensor *have = &run->set->inputs[i];
		struct rg_tensor want = rg_exec_input(run->exec, i);

		if (run->set->input_items[i]) {
			if (rg_exec_set_input(run->exec, i, run->set->input_items[i], err))
				return err->code;
			continue;
		}
		if (want.dtype != have->dtype || !rg_shape_equal(&want.shape, &have->shape))
			return rg_error_set(err, -EINVAL, "input %d: the plan takes %s, the data is %s", i,
					    rg_dtype_name(want.dtype), rg_dtype_name(have->dtype));
		/* NULL: the plan was specialised on its value, or it has no elements. */
		if (want.data && have->data)
			memcpy(want.data, have->data, (size_t)rg_tensor_bytes(have->dtype, &have->shape));
	}
	return 0;
}

static double atol_of(const char *name)
{
	for (size_t i = 0; i < sizeof(noisy) / sizeof(noisy[0]); i++)
		if (!strncmp(name, noisy[i].prefix, strlen(noisy[i].prefix)))
			return noisy[i].atol;
	return ATOL;
}

/* Whether the graph draws random numbers. ONNX says of these operators that they
 * need not give the same ones elsewhere; a Dropout's come from its seed. */
static bool is_random(const struct rg_graph *g)
{
	for (int i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].op->flags & RG_OP_IMPURE)
			return true;
	return false;
}

/* Type and shape as expected, and no value that is not among the expected ones
 * (those of the suite are 0 and 1). */
static bool could_be_drawn(const struct rg_tensor *got, const struct rg_tensor *want, char *why, size_t size)
{
	int64_t n = rg_shape_count(&want->shape), k;

	if (got->dtype != want->dtype || !rg_shape_equal(&got->shape, &want->shape)) {
		snprintf(why, size, "another type or shape than expected");
		return false;
	}
	for (int64_t i = 0; i < n; i++) {
		for (k = 0; k < n && tensor_number(got, i) != tensor_number(want, k); k++)
			;
		if (k == n) {
			snprintf(why, size, "element %" PRId64 " is %.9g, which cannot be drawn", i,
				 tensor_number(got, i));
			return false;
		}
	}
	return true;
}

static void check_outputs(struct run *run, struct case_result *r)
{
	bool random = is_random(run->graph);
	char why[400];

	if (run->graph->n_outputs != run->set->n_outputs) {
		r->outcome = CASE_WRONG;
		snprintf(r->reason, sizeof(r->reason), "%d outputs, expected %d", run->graph->n_outputs,
			 run->set->n_outputs);
		return;
	}
	r->outcome = CASE_PASSED;
	for (int i = 0; i < run->set->n_outputs; i++) {
		struct rg_tensor got = rg_exec_output(run->exec, i);
		double rtol = got.dtype == RG_BF16 ? RTOL_BF16 : RTOL;

		if (run->set->output_items[i] &&
		    holders_agree(rg_exec_output_item(run->exec, i), run->set->output_items[i], rtol, ATOL, why,
				  sizeof(why)))
			continue;
		if (run->set->output_items[i])
			goto wrong;
		if (random ? could_be_drawn(&got, &run->set->outputs[i], why, sizeof(why)) :
		    tensors_agree(&got, &run->set->outputs[i], rtol, atol_of(run->name), why, sizeof(why))) {
			int64_t ulp = random ? -1 : tensors_ulp(&got, &run->set->outputs[i]);

			r->ulp = ulp > r->ulp ? ulp : r->ulp;
			continue;
		}
wrong:
		r->outcome = CASE_WRONG;
		snprintf(r->reason, sizeof(r->reason), "output %d: %s", i, why);
		return;
	}
}

static void run_free(struct run *run)
{
	rg_exec_free(run->exec);
	rg_plan_free(run->plan);
	rg_graph_free(run->graph);
	for (int i = 0; i < MAX_TENSORS; i++) {
		rg_free(run->set->inputs[i].data);
		rg_free(run->set->outputs[i].data);
		rg_item_unref(run->set->input_items[i]);
		rg_item_unref(run->set->output_items[i]);
	}
}

static void run_set(const char *name, const char *model, const char *dir, struct data_set *set,
		    struct case_result *r)
{
	struct rg_error err = RG_ERROR_INIT;
	struct run run = { .name = name, .set = set };
	int code;

	memset(set, 0, sizeof(*set));
	code = prepare(&run, model, dir, &err);
	if (!code)
		code = fill_inputs(&run, &err);
	if (!code)
		code = rg_exec_run(run.exec, &err);
	if (!code) {
		check_outputs(&run, r);
	} else {
		bool refused = code == RG_ENOTSUP_MODEL || code == RG_ENEED_VALUE;

		r->outcome = refused ? CASE_UNSUPPORTED : CASE_WRONG;
		snprintf(r->reason, sizeof(r->reason), "%s", err.message);
		snprintf(r->where, sizeof(r->where), "%s", err.where);
	}
	run_free(&run);
}

void case_run(const char *data, const char *name, struct case_result *r)
{
	static struct data_set set;
	char model[4096], dir[4096];

	memset(r, 0, sizeof(*r));
	r->outcome = CASE_WRONG;
	r->ulp = -1;
	snprintf(r->reason, sizeof(r->reason), "no test_data_set_0");
	snprintf(model, sizeof(model), "%s/%s/model.onnx", data, name);
	for (int i = 0;; i++) {
		snprintf(dir, sizeof(dir), "%s/%s/test_data_set_%d", data, name, i);
		if (!exists(dir))
			return;
		r->reason[0] = 0;
		run_set(name, model, dir, &set, r);
		if (r->outcome != CASE_PASSED)
			return;
	}
}
