/*
 * The run loop. Everything that a step needs is resolved to pointers when the
 * executor is made; a run walks the steps and calls their kernels.
 */
#include "exec/exec.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/dynamic.h"
#include "exec/pool.h"
#include "sys/topology.h"

#define ALIGN_BYTES 64

struct rg_exec {
	const struct rg_plan *plan;
	struct rg_pool *pool;
	unsigned char *arena;
	void **inputs;             /* one buffer a graph input; NULL where the plan was specialised */
	struct rg_tensor *tensors; /* of all calls, one after the other */
	struct rg_call *calls;     /* one a step */
	struct rg_dynamic *dynamic; /* NULL: every step is planned */
	bool has_text;             /* some value holds strings */
	struct rg_arena *text;     /* characters that this run made */
	struct rg_exec_hook hook;  /* span NULL: nobody watches */
	bool (*stop)(void *ctx);   /* NULL: nobody stops it */
	void *stop_ctx;
	int step;                  /* that runs now, for the hook */
};

/* Kernels may form a pointer to a tensor without elements, but not from NULL. */
static _Alignas(ALIGN_BYTES) unsigned char nothing[ALIGN_BYTES];

static void *input_buffer(const struct rg_exec *e, int value)
{
	const struct rg_graph *g = e->plan->graph;
	int i;

	for (i = 0; i < g->n_inputs; i++)
		if (g->inputs[i] == value)
			return e->inputs[i];
	return NULL;
}

/* What a dynamic step made; RG_UNDEFINED when it has not, or it is no tensor. */
static struct rg_tensor dynamic_tensor(const struct rg_exec *e, int value)
{
	const struct rg_item *item = e->dynamic ? rg_dynamic_item(e->dynamic, value) : NULL;

	return item && item->kind == RG_ITEM_TENSOR ? item->t : (struct rg_tensor){ 0 };
}

static struct rg_tensor resolve(const struct rg_exec *e, int value)
{
	struct rg_tensor t = { 0 };
	const struct rg_plan_tensor *p;

	if (value < 0)
		return t;
	p = &e->plan->tensors[value];
	t.dtype = p->dtype;
	t.shape = p->shape;
	switch (p->place) {
	case RG_PLACE_ARENA:
		t.data = e->arena + p->offset_bytes;
		break;
	case RG_PLACE_CONST:
		t.data = (void *)p->data;
		break;
	case RG_PLACE_INPUT:
		t.data = input_buffer(e, p->alias_of >= 0 ? p->alias_of : value);
		if (t.data)
			t.data = (char *)t.data + p->part_bytes;
		break;
	case RG_PLACE_DYNAMIC:
		return dynamic_tensor(e, value);
	case RG_PLACE_UNUSED:
		return t;
	}
	if (!t.data && p->size_bytes == 0)
		t.data = nothing;
	return t;
}

/* ---- making one ---- */

/* What would not fit is refused here, rather than by the kernel in mid-run. */
static int check_memory(const struct rg_plan *p, struct rg_error *err)
{
	const struct rg_graph *g = p->graph;
	struct rg_topology *machine = rg_alloc(sizeof(*machine));
	int64_t total = p->arena_bytes, limit;
	int i;

	if (!machine)
		return rg_error_nomem(err, sizeof(*machine));
	rg_topology_read("", machine);
	limit = machine->memory_bytes;
	rg_free(machine);
	for (i = 0; i < g->n_inputs; i++)
		if (__builtin_add_overflow(total, p->tensors[g->inputs[i]].size_bytes, &total))
			total = INT64_MAX;
	if (limit > 0 && total > limit) {
		rg_error_set(err, -ENOMEM, "activations and inputs take %lld MiB, this machine has %lld MiB",
			     (long long)(total >> 20), (long long)(limit >> 20));
		return rg_error_hint(err, "use a smaller batch or shape (--dim, --shape)");
	}
	return 0;
}

static int new_block(int64_t size_bytes, void *out, struct rg_error *err)
{
	size_t size = size_bytes > 0 ? (size_t)size_bytes : ALIGN_BYTES;
	void *p = rg_alloc_aligned(ALIGN_BYTES, size);

	if (!p)
		return rg_error_nomem(err, size);
	/* Touches every page, so that no run is the one that meets page faults. */
	memset(p, 0, size);
	memcpy(out, &p, sizeof(p));
	return 0;
}

static int make_buffers(struct rg_exec *e, struct rg_error *err)
{
	const struct rg_plan *p = e->plan;
	const struct rg_graph *g = p->graph;
	int i, rc = new_block(p->arena_bytes, &e->arena, err);

	e->inputs = rg_calloc((size_t)g->n_inputs, sizeof(*e->inputs));
	if (!rc && !e->inputs)
		rc = rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*e->inputs));
	for (i = 0; i < g->n_inputs && !rc; i++) {
		const struct rg_plan_tensor *t = &p->tensors[g->inputs[i]];

		if (t->place == RG_PLACE_INPUT)
			rc = new_block(t->size_bytes, &e->inputs[i], err);
	}
	return rc;
}

static int make_calls(struct rg_exec *e, struct rg_error *err)
{
	const struct rg_plan *p = e->plan;
	struct rg_tensor *t;
	size_t n = 0;
	int s, k;

	for (s = 0; s < p->n_steps; s++)
		n += (size_t)p->steps[s].n_in + (size_t)p->steps[s].n_out;
	e->tensors = t = rg_calloc(n, sizeof(*t));
	e->calls = rg_calloc((size_t)p->n_steps, sizeof(*e->calls));
	if (!e->tensors || !e->calls)
		return rg_error_nomem(err, n * sizeof(*t));
	for (s = 0; s < p->n_steps; s++) {
		const struct rg_step *step = &p->steps[s];
		struct rg_call *c = &e->calls[s];

		c->node = &p->graph->nodes[step->node];
		c->in = t;
		for (k = 0; k < step->n_in; k++)
			*t++ = resolve(e, step->in[k]);
		c->out = t;
		for (k = 0; k < step->n_out; k++)
			*t++ = resolve(e, step->out[k]);
		c->prepared = step->prepared;
		if (step->scratch_bytes > 0)
			c->scratch = e->arena + step->scratch_offset_bytes;
	}
	return 0;
}

static struct rg_tensor resolve_planned(void *ctx, int value)
{
	const struct rg_exec *e = ctx;

	return e->plan->tensors[value].place == RG_PLACE_DYNAMIC ? (struct rg_tensor){ 0 } : resolve(e, value);
}

/* What only some plans need: the dynamic path, and memory for text. */
static int make_extras(struct rg_exec *e, struct rg_error *err)
{
	const struct rg_plan *p = e->plan;
	bool dynamic = p->n_dynamic > 0;

	for (int i = 0; i < p->n_tensors; i++) {
		dynamic = dynamic || (p->tensors[i].place == RG_PLACE_DYNAMIC && p->graph->values[i].is_input);
		e->has_text = e->has_text || p->tensors[i].dtype == RG_STRING;
	}
	if (!dynamic)
		return 0;
	e->has_text = true; /* what dynamic steps make is not known before */
	if (rg_dynamic_new(p, resolve_planned, e, &e->dynamic, err))
		return err->code;
	rg_dynamic_set_stop(e->dynamic, e->stop, e->stop_ctx);
	return 0;
}

int rg_exec_new(const struct rg_plan *plan, const struct rg_exec_options *opt, struct rg_exec **out,
		struct rg_error *err)
{
	const int *cpus = opt && opt->pin ? opt->cpus : NULL;
	struct rg_exec *e;
	int rc;

	*out = NULL;
	for (int s = 0; s < plan->n_steps && plan->n_unsupported; s++)
		if (plan->steps[s].unsupported)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "%s", plan->steps[s].reason);
	if (opt && opt->pin && opt->n_cpus < plan->lanes)
		return rg_error_set(err, -EINVAL, "%d threads cannot be pinned to %d CPUs", plan->lanes,
				    opt->n_cpus);
	rc = check_memory(plan, err);
	if (rc)
		return rc;
	e = rg_calloc(1, sizeof(*e));
	if (!e)
		return rg_error_nomem(err, sizeof(*e));
	e->plan = plan;
	e->stop = opt ? opt->stop : NULL;
	e->stop_ctx = opt ? opt->stop_ctx : NULL;
	rc = make_buffers(e, err);
	if (!rc)
		rc = make_calls(e, err);
	if (!rc)
		rc = make_extras(e, err);
	if (!rc)
		rc = rg_pool_new(plan->lanes, cpus, &e->pool, err);
	if (rc) {
		rg_exec_free(e);
		return rc;
	}
	*out = e;
	return 0;
}

void rg_exec_free(struct rg_exec *e)
{
	int i;

	if (!e)
		return;
	rg_pool_free(e->pool);
	for (i = 0; e->inputs && i < e->plan->graph->n_inputs; i++)
		rg_free(e->inputs[i]);
	rg_free(e->inputs);
	rg_free(e->tensors);
	rg_free(e->calls);
	rg_dynamic_free(e->dynamic);
	rg_arena_free(e->text);
	rg_free(e->arena);
	rg_free(e);
}

/* ---- looking at it ---- */

struct rg_tensor rg_exec_input(struct rg_exec *e, int i)
{
	struct rg_tensor t = resolve(e, e->plan->graph->inputs[i]);

	if (!e->inputs[i])
		t.data = NULL; /* the plan was specialised on it */
	return t;
}

struct rg_tensor rg_exec_output(struct rg_exec *e, int i)
{
	return resolve(e, e->plan->graph->outputs[i]);
}

const struct rg_item *rg_exec_output_item(struct rg_exec *e, int i)
{
	return e->dynamic ? rg_dynamic_item(e->dynamic, e->plan->graph->outputs[i]) : NULL;
}

int rg_exec_set_input(struct rg_exec *e, int i, struct rg_item *item, struct rg_error *err)
{
	const struct rg_graph *g = e->plan->graph;
	const struct rg_value *v = &g->values[g->inputs[i]];

	if (v->kind == RG_VALUE_TENSOR || !e->dynamic)
		return rg_error_set(err, -EINVAL, "input '%s' is a plain tensor", v->name);
	item = rg_item_own(rg_item_ref(item), err); /* what is only borrowed may not stay */
	if (!item)
		return err->code;
	rg_dynamic_set_input(e->dynamic, g->inputs[i], item);
	rg_item_unref(item);
	return 0;
}

struct rg_tensor rg_exec_value(struct rg_exec *e, int value)
{
	return resolve(e, value);
}

/* ---- running ---- */

static void on_share(void *ctx, int lane, uint64_t start_ns, uint64_t end_ns)
{
	const struct rg_exec *e = ctx;

	e->hook.span(e->hook.ctx, lane, e->step, start_ns, end_ns);
}

void rg_exec_set_hook(struct rg_exec *e, const struct rg_exec_hook *hook)
{
	memset(&e->hook, 0, sizeof(e->hook));
	if (hook)
		e->hook = *hook;
	rg_pool_watch(e->pool, e->hook.span ? on_share : NULL, e);
}

static int fail(const struct rg_exec *e, int step, struct rg_error *err)
{
	const struct rg_node *n = e->calls[step].node;

	return rg_error_at(err, "node '%s' (%s)", n->name, n->op_type);
}

/* Text of the last run goes only now, since its outputs stayed readable. */
static int renew_text(struct rg_exec *e, struct rg_error *err)
{
	int s;

	rg_arena_free(e->text);
	e->text = rg_arena_new();
	if (!e->text)
		return rg_error_nomem(err, sizeof(void *));
	for (s = 0; s < e->plan->n_steps; s++)
		e->calls[s].text = e->text;
	return 0;
}

static int run_step(struct rg_exec *e, int s, const struct rg_par *par, struct rg_error *err)
{
	if (e->plan->steps[s].dynamic)
		return rg_dynamic_step(e->dynamic, s, par, err); /* it has named the node */
	if (e->plan->steps[s].kernel->run(&e->calls[s], par, err))
		return fail(e, s, err);
	return 0;
}

int rg_exec_run(struct rg_exec *e, struct rg_error *err)
{
	const struct rg_par *par = rg_pool_par(e->pool);
	const struct rg_plan *p = e->plan;
	int s;

	if (e->dynamic)
		rg_dynamic_begin(e->dynamic, NULL); /* before the text that it points to goes */
	if (e->has_text && renew_text(e, err))
		return err->code;
	if (e->dynamic)
		rg_dynamic_begin(e->dynamic, e->text);
	for (s = 0; s < p->n_steps; s++) {
		uint64_t start = 0;

		e->step = s;
		if (e->stop && e->stop(e->stop_ctx))
			return rg_error_set(err, RG_EINTERRUPTED, "interrupted");
		if (e->hook.span)
			start = rg_clock_now_ns();
		if (run_step(e, s, par, err))
			return err->code;
		if (e->hook.span)
			e->hook.span(e->hook.ctx, -1, s, start, rg_clock_now_ns());
	}
	return 0;
}
