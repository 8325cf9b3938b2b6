/* Opens, binds, plans and stages a model, so that it can be run. */
#include "session/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "kernels/blas/blas.h"
#include "models/npy.h"
#include "session/inputs.h"
#include "session/suggest.h"

void rg_session_defaults(struct rg_session_options *o)
{
	memset(o, 0, sizeof(*o));
	o->iterations = -1;
	o->duration_ns = -1;
	o->warmup = -1;
	o->seed = 1;
	o->optimize = RG_PASS_LEVELS;
	o->tag = "";
	o->command = "";
}

/* Told in terms of the file, not of a --shape that nobody gave. */
static int fits_declaration(const struct rg_value *v, const struct rg_tensor *t, const char *path,
			    struct rg_error *err)
{
	if (!rg_inputs_check_shape(v, t, err))
		return 0;
	rg_error_hint(err, "give a file of that shape");
	return rg_error_at(err, "%s", path);
}

/* An input that comes from a file closes its own dimensions, so that nobody
 * has to say the shape twice. An explicit --shape still wins: rg_graph_bind
 * then complains about a file that does not fit it. */
static int shapes_from_files(const struct rg_session_options *o, const struct rg_graph *g,
			     struct rg_bindings *b, struct rg_error *err)
{
	for (int i = 0; i < o->n_inputs; i++) {
		struct rg_tensor t;
		bool given = false;
		int rc, input = -1;

		for (int k = 0; k < b->n_shapes && !given; k++)
			given = strcmp(b->shapes[k].input, o->inputs[i].name) == 0;
		for (int k = 0; k < g->n_inputs; k++)
			if (strcmp(g->values[g->inputs[k]].name, o->inputs[i].name) == 0)
				input = g->inputs[k];
		if (given || input < 0)
			continue; /* an unknown name is reported where inputs are made */
		rc = rg_inputs_read(&g->values[input], o->inputs[i].path, &t, err);
		if (rc)
			return rc;
		rg_free(t.data);
		rc = fits_declaration(&g->values[input], &t, o->inputs[i].path, err);
		if (rc)
			return rc;
		b->shapes[b->n_shapes].input = o->inputs[i].name;
		b->shapes[b->n_shapes].shape = t.shape;
		b->n_shapes++;
	}
	return 0;
}

int rg_prepare_shapes(const struct rg_session_options *o, const struct rg_graph *g, struct rg_bindings *b,
		      struct rg_error *err)
{
	const struct rg_bindings *given = &o->bindings;

	*b = *given;
	b->shapes = rg_calloc((size_t)given->n_shapes + (size_t)o->n_inputs + 1, sizeof(*b->shapes));
	if (!b->shapes)
		return rg_error_nomem(err, (size_t)given->n_shapes * sizeof(*b->shapes));
	for (int i = 0; i < given->n_shapes; i++)
		b->shapes[i] = given->shapes[i];
	return shapes_from_files(o, g, b, err);
}

static int bind(const struct rg_session_options *o, struct rg_model *m, struct rg_error *err)
{
	struct rg_bindings b;
	int rc = rg_prepare_shapes(o, m->graph, &b, err);

	if (!rc) {
		rc = rg_model_bind(m, &b, err);
		if (rc)
			rg_suggest_shapes(o, m, &b, err);
	}
	rg_free(b.shapes);
	return rc;
}

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	const struct rg_prepared *p = ctx;
	const struct rg_graph *g = p->model->graph;

	for (int i = 0; i < g->n_inputs; i++)
		if (strcmp(g->values[g->inputs[i]].name, name) == 0)
			return &p->inputs[i];
	return NULL;
}

static int choose_threads(const struct rg_session_options *o, struct rg_prepared *p, struct rg_error *err)
{
	rg_cpu_detect("", &p->cpu);
	rg_topology_read("", &p->topo);
	p->isa = o->isa ? p->cpu.isa & o->isa : p->cpu.isa;
	p->threads = o->threads ? o->threads : rg_topology_default_threads(&p->topo);
	if (p->threads < 1 || p->threads > RG_MAX_CPUS) {
		rg_error_set(err, RG_EUSAGE, "--threads %d: from 1 to %d", p->threads, RG_MAX_CPUS);
		return err->code;
	}
	/* Pinning more lanes than there are CPUs would stack them on one. */
	p->pinned = p->threads <= p->topo.n_allowed;
	if (!p->pinned && o->warn)
		o->warn(o->warn_ctx, "more threads than CPUs that this process may use: "
				     "lanes are not pinned and will wait for each other");
	return 0;
}

static bool is_interrupted(void *ctx)
{
	return rg_session_interrupted();
}

static int make_exec(struct rg_prepared *p, struct rg_error *err)
{
	struct rg_exec_options xo = { .stop = is_interrupted };
	int cpus[RG_MAX_CPUS];

	rg_topology_pin_order(&p->topo, cpus);
	xo.pin = p->pinned;
	xo.n_cpus = p->topo.n_allowed;
	xo.cpus = cpus;
	return rg_exec_new(p->plan, &xo, &p->exec, err);
}

static int plan(const struct rg_session_options *o, struct rg_prepared *p, struct rg_error *err)
{
	struct rg_plan_options po = { 0 };
	int rc = 0;

	po.lanes = p->threads;
	po.isa = p->isa;
	po.passes.level = o->optimize;
	po.input_value = input_value;
	po.input_ctx = p;
	po.order_for_memory = o->order_for_memory;
	po.release = true; /* the graph is planned once */
	po.n_without = o->n_without;
	po.without = o->without;
	po.n_overrides = o->n_overrides;
	if (o->n_overrides) {
		po.overrides = rg_calloc((size_t)o->n_overrides, sizeof(*po.overrides));
		if (!po.overrides)
			return rg_error_nomem(err, (size_t)o->n_overrides * sizeof(*po.overrides));
		for (int i = 0; i < o->n_overrides; i++) {
			po.overrides[i].op = o->overrides[i].op;
			po.overrides[i].kernel = o->overrides[i].kernel;
		}
	}
	/* loaded before the clock starts: planning must not be charged for it */
	rg_blas_available();
	p->plan_start_ns = rg_clock_now_ns();
	rc = rg_plan_make(p->model->graph, &po, &p->plan, err);
	p->plan_end_ns = rg_clock_now_ns();
	rg_free(po.overrides);
	if (rc == -EINVAL && !err->hint[0])
		rg_error_hint(err, "the model does not fit together, or not with the given shapes: export it again, "
			      "or change --shape and --dim");
	return rc;
}

/* Inputs that are sequences or optionals get empty ones. */
static int stage_empty(struct rg_prepared *p, int i, struct rg_error *err)
{
	const struct rg_value *v = &p->model->graph->values[p->model->graph->inputs[i]];
	struct rg_item *item = v->kind == RG_VALUE_SEQUENCE ? rg_item_sequence(v->declared_dtype, 0, NULL, err) :
							      rg_item_none(err);
	int rc;

	if (!item)
		return err->code;
	rc = rg_exec_set_input(p->exec, i, item, err);
	rg_item_unref(item);
	return rc;
}

static int stage_inputs(struct rg_prepared *p, struct rg_error *err)
{
	const struct rg_graph *g = p->model->graph;

	for (int i = 0; i < g->n_inputs; i++)
		if (g->values[g->inputs[i]].kind != RG_VALUE_TENSOR && stage_empty(p, i, err))
			return err->code;
	p->stage_start_ns = rg_clock_now_ns();
	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_tensor to = rg_exec_input(p->exec, i);
		int64_t n = rg_tensor_bytes(to.dtype, &to.shape);

		if (to.data && n > 0)
			memcpy(to.data, p->inputs[i].data, (size_t)n);
	}
	p->stage_end_ns = rg_clock_now_ns();
	return 0;
}

int rg_prepare(const struct rg_session_options *o, struct rg_prepared *p, struct rg_error *err)
{
	int rc;

	memset(p, 0, sizeof(*p));
	rc = choose_threads(o, p, err);
	if (rc)
		goto fail;
	p->read_start_ns = rg_clock_now_ns();
	rc = o->lenient ? rg_model_open_lenient(o->model, &o->bindings, &p->model, err) :
			  rg_model_open(o->model, &o->bindings, &p->model, err);
	p->read_end_ns = rg_clock_now_ns();
	if (rc)
		goto fail;
	p->params = rg_graph_count_params(p->model->graph);
	p->n_nodes_read = p->model->graph->n_nodes;
	rc = bind(o, p->model, err);
	if (!rc)
		rc = rg_inputs_make(p->model->graph, o, &p->inputs, &p->uses, err);
	if (!rc)
		rc = plan(o, p, err);
	if (rc) {
		rg_error_at(err, "%s", o->model);
		goto fail;
	}
	if (o->lenient) /* nothing is run */
		return 0;
	rc = make_exec(p, err);
	if (rc)
		goto fail;
	rc = stage_inputs(p, err);
	if (rc)
		goto fail;
	return 0;
fail:
	rg_prepared_free(p);
	return rc;
}

void rg_prepared_free(struct rg_prepared *p)
{
	rg_exec_free(p->exec);
	rg_plan_free(p->plan);
	if (p->model)
		rg_inputs_free(p->inputs, p->model->graph->n_inputs, p->uses);
	rg_model_free(p->model);
	memset(p, 0, sizeof(*p));
}

static void hash_tensor(struct rg_sha256 *h, const struct rg_tensor *t)
{
	int64_t n = rg_tensor_bytes(t->dtype, &t->shape);
	int32_t dtype = (int32_t)t->dtype, rank = t->shape.rank;

	rg_sha256_add(h, &dtype, sizeof(dtype));
	rg_sha256_add(h, &rank, sizeof(rank));
	rg_sha256_add(h, t->shape.dim, (size_t)rank * sizeof(t->shape.dim[0]));
	if (t->dtype == RG_STRING) { /* the characters, not where they lie */
		const char *const *v = t->data;

		for (int64_t i = 0; i < rg_shape_count(&t->shape); i++)
			rg_sha256_add(h, v[i] ? v[i] : "", (v[i] ? strlen(v[i]) : 0) + 1);
	} else if (n > 0) {
		rg_sha256_add(h, t->data, (size_t)n);
	}
}

int rg_prepared_hash_outputs(struct rg_prepared *p, char hex[65], struct rg_error *err)
{
	struct rg_sha256 *h = rg_sha256_new();
	const struct rg_graph *g = p->model->graph;

	if (!h)
		return rg_error_nomem(err, 128);
	for (int i = 0; i < g->n_outputs; i++) {
		const struct rg_item *item = rg_exec_output_item(p->exec, i);
		struct rg_tensor t = rg_exec_output(p->exec, i);

		for (int k = 0; item && item->kind == RG_ITEM_SEQUENCE && k < item->n; k++)
			hash_tensor(h, &item->v[k]->t);
		if (t.dtype != RG_UNDEFINED)
			hash_tensor(h, &t);
	}
	rg_sha256_finish(h, hex);
	return 0;
}
