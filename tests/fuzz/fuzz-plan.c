/*
 * Any bytes as a model that is read, bound, inferred, planned as it is and rewritten by
 * all passes, and, where that is small, run. An error or outputs of the planned type and shape, nothing else.
 * Open dimensions become 2, or 3 in the second of a name.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "models/onnx.h"
#include "../models/wire.h"

/* Beyond these a plan is made and not run: it would only take long. */
#define MAX_ARENA_BYTES (1 << 20)
#define MAX_STEPS 64
#define MAX_NODES 300 /* of all rounds of loops; see is_enough */
#define MAX_WORK 4e6

const char *const fuzz_suffix = ".onnx";

static void check_error(int rc, const struct rg_error *err)
{
	if (rc != err->code || (rc != 0) != (err->message[0] != '\0'))
		abort();
}

/* A value for whoever asks: small whole numbers of any type. */
static void fill(const struct rg_tensor *t)
{
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);

	if (!t->data || bytes <= 0)
		return;
	memset(t->data, 0, (size_t)bytes);
	if (t->dtype == RG_BOOL || t->dtype == RG_STRING)
		return;
	for (int64_t i = 0; i * 4 + 3 < bytes; i += 2) /* halves of one, or small integers */
		((uint8_t *)t->data)[i * 4 + (t->dtype == RG_F32 ? 3 : 0)] = t->dtype == RG_F32 ? 0x3f : (uint8_t)(i & 3);
}

struct values {
	const struct rg_graph *graph;
	struct rg_tensor made;
};

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	struct values *v = ctx;
	int64_t bytes;

	for (int i = 0; i < v->graph->n_inputs; i++) {
		const struct rg_value *in = &v->graph->values[v->graph->inputs[i]];

		if (strcmp(in->name, name) != 0)
			continue;
		bytes = rg_tensor_bytes(in->dtype, &in->shape);
		if (bytes < 0 || bytes > MAX_ARENA_BYTES)
			return NULL;
		rg_free(v->made.data);
		v->made = (struct rg_tensor){ in->dtype, in->shape, rg_alloc_aligned(64, (size_t)bytes + 1) };
		if (!v->made.data)
			return NULL;
		fill(&v->made);
		return &v->made;
	}
	return NULL;
}

/* Binds every input to its declared shape with something small where it is open. */
static int bind(struct rg_graph *g, struct rg_error *err)
{
	struct rg_bindings b = { 0 };
	int rc;

	b.shapes = calloc((size_t)g->n_inputs + 1, sizeof(*b.shapes));
	if (!b.shapes)
		abort();
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		struct rg_shape *s = &b.shapes[b.n_shapes].shape;

		b.shapes[b.n_shapes++].input = v->name;
		s->rank = v->declared_rank < 0 ? 1 : v->declared_rank;
		for (int d = 0; d < s->rank; d++)
			s->dim[d] = v->declared_rank < 0 ? 2 : v->declared[d].value >= 0 ? v->declared[d].value : 2 + d % 2;
	}
	rc = rg_graph_bind(g, &b, err);
	free(b.shapes);
	return rc;
}

/* Elements of a step's values multiplied pairwise at worst: an upper bound that
 * keeps a run short, for steps that give no cost. */
static double work_of(const struct rg_plan *p, const struct rg_step *s)
{
	double in = 1, out = 1;

	if (s->cost.flops >= 0 && s->cost.iops >= 0 && s->cost.flops + s->cost.iops > 0)
		return (double)s->cost.flops + (double)s->cost.iops;
	for (int i = 0; i < s->n_in; i++)
		if (s->in[i] >= 0)
			in += (double)rg_shape_count(&p->tensors[s->in[i]].shape);
	for (int i = 0; i < s->n_out; i++)
		if (s->out[i] >= 0)
			out += (double)rg_shape_count(&p->tensors[s->out[i]].shape);
	return in * out;
}

static bool is_small(const struct rg_plan *p)
{
	double work = 0;

	if (p->arena_bytes > MAX_ARENA_BYTES || p->prepared_bytes > MAX_ARENA_BYTES || p->n_steps > MAX_STEPS)
		return false;
	for (int i = 0; i < p->graph->n_inputs; i++) {
		const struct rg_plan_tensor *t = &p->tensors[p->graph->inputs[i]];

		if (rg_tensor_bytes(t->dtype, &t->shape) > MAX_ARENA_BYTES)
			return false;
	}
	for (int i = 0; i < p->n_steps; i++)
		work += work_of(p, &p->steps[i]);
	return work <= MAX_WORK;
}

/* Reads every byte, so that a sanitizer sees what was not written or is not ours. */
static void look(const struct rg_tensor *t, const struct rg_plan_tensor *want)
{
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);
	volatile uint8_t sum = 0;

	if (want->place != RG_PLACE_DYNAMIC && (t->dtype != want->dtype || !rg_shape_equal(&t->shape, &want->shape)))
		abort();
	if (t->dtype == RG_UNDEFINED || t->dtype == RG_STRING)
		return; /* no tensor, or one of pointers */
	for (int64_t i = 0; t->data && i < bytes; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)t->data)[i]);
}

/* A Loop runs as often as the model says: as long as it likes. */
static bool is_enough(void *ctx)
{
	return ++*(int *)ctx > MAX_NODES;
}

static void run(const struct rg_plan *p)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_exec *e = NULL;
	int asked = 0;
	const struct rg_exec_options opt = { .stop = is_enough, .stop_ctx = &asked };
	int rc = rg_exec_new(p, &opt, &e, &err);

	check_error(rc, &err);
	if (rc)
		return;
	for (int i = 0; i < p->graph->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(e, i);

		fill(&t);
	}
	rc = rg_exec_run(e, &err);
	check_error(rc, &err);
	for (int i = 0; rc == 0 && i < p->graph->n_outputs; i++) {
		struct rg_tensor t = rg_exec_output(e, i);

		look(&t, &p->tensors[p->graph->outputs[i]]);
	}
	rg_exec_free(e);
}

/* At one level of the graph passes; what rg_plan_make returned. */
static int plan_and_run(const uint8_t *data, size_t size, int level)
{
	struct rg_plan_options opt = { .lanes = 1, .input_value = input_value, .passes = { .level = level } };
	struct rg_error err = RG_ERROR_INIT;
	struct values values = { 0 };
	struct rg_graph *g = NULL;
	struct rg_plan *p = NULL;
	int rc;

	if (rg_onnx_load_memory(data, size, "fuzz", &g, &err) != 0)
		return 0;
	rc = bind(g, &err);
	if (rc == 0) {
		values.graph = g;
		opt.input_ctx = &values;
		rc = rg_plan_make(g, &opt, &p, &err);
		check_error(rc, &err);
		if ((rc == 0) != (p != NULL))
			abort();
		if (p && p->n_steps <= MAX_STEPS && rg_plan_check(p, &err) != 0)
			abort();
		if (p && is_small(p))
			run(p);
	}
	rg_plan_free(p);
	rg_graph_free(g);
	rg_free(values.made.data);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* what can be planned as it is can be planned rewritten */
	if (plan_and_run(data, size, 0) == 0 && plan_and_run(data, size, RG_PASS_LEVELS) != 0)
		abort();
	return 0;
}

uint8_t *fuzz_seed(int i, size_t *size)
{
	struct wire m;

	if (i > 0)
		return NULL;
	m = wire_small_model();
	*size = m.len;
	return m.p;
}
