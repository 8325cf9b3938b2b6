/* See quantize-work.h: one model run on samples, with a look at what its steps make. */
#include <string.h>

#include "base/alloc.h"
#include "compile/fold.h"
#include "compile/opset.h"
#include "models/onnx.h"
#include "session/quantize-work.h"

/* What per-channel DequantizeLinear came with; DynamicQuantizeLinear is older. */
enum { LEAST_OPSET = 13 };

static bool is_stopped(void *ctx)
{
	return rg_session_interrupted();
}

int rg_quantize_tell(const struct quantize_work *w, const char *what, double fraction, struct rg_error *err)
{
	const struct rg_session_options *o = &w->o->session;

	if (o->progress)
		o->progress(o->progress_ctx, what, fraction);
	if (rg_session_interrupted())
		return rg_error_set(err, RG_EINTERRUPTED, "interrupted; nothing was written");
	return 0;
}

/* Every input gets the shape of its tensor. */
static int bind_to(struct rg_graph *g, const struct rg_tensor *sample, struct rg_error *err)
{
	struct rg_bindings b = { 0 };
	int rc;

	b.shapes = rg_calloc((size_t)g->n_inputs + 1, sizeof(*b.shapes));
	if (!b.shapes)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*b.shapes));
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		if (v->kind != RG_VALUE_TENSOR)
			continue;
		b.shapes[b.n_shapes].input = v->name;
		b.shapes[b.n_shapes++].shape = sample[i].shape;
	}
	rc = rg_graph_bind(g, &b, err);
	rg_free(b.shapes);
	return rc;
}

int rg_trial_open(const struct quantize_work *w, const char *file, const struct rg_tensor *sample, struct rg_graph **out,
		  struct rg_error *err)
{
	struct rg_plan_options po = { .lanes = 1, .any_value = true, .keep_branches = true };
	int rc = rg_onnx_load(file ? file : w->exact, NULL, out, err);

	if (!rc && rg_graph_opset(*out, "") < LEAST_OPSET) {
		rc = rg_opset_raise(*out, LEAST_OPSET, err);
		if (rc == RG_ENOTSUP_MODEL && !err->hint[0])
			rg_error_hint(err, "quantising needs opset 13: export the model again with that, or a later one");
	}
	if (!rc)
		rc = bind_to(*out, sample, err);
	return rc ? rc : rg_fold_graph(*out, &po, err);
}

int rg_trial_rewrite(const struct quantize_work *w, struct rg_graph *g, const bool *on, struct rg_error *err)
{
	return w->o->how.dynamic ? rg_quantize_dynamic(g, &w->o->how, &w->sites, on, err)
				 : rg_quantize_static(g, &w->o->how, &w->sites, on, w->ranges, err);
}

/* ---- watching ---- */

/* The step whose output the memory of a value is; -1: none, it is given or constant. */
static int maker(const struct rg_plan *p, int value)
{
	int root = p->tensors[value].alias_of >= 0 ? p->tensors[value].alias_of : value;

	for (int s = 0; s < p->n_steps; s++)
		for (int k = 0; k < p->steps[s].n_out; k++)
			if (p->steps[s].out[k] == root)
				return s;
	return -1;
}

static int link_watched(struct trial *t, struct rg_error *err)
{
	t->first = rg_calloc((size_t)t->plan->n_steps + 1, sizeof(*t->first));
	t->next = rg_calloc((size_t)t->n_watched + 1, sizeof(*t->next));
	if (!t->first || !t->next)
		return rg_error_nomem(err, (size_t)t->plan->n_steps * sizeof(*t->first));
	for (int s = 0; s < t->plan->n_steps; s++)
		t->first[s] = -1;
	t->given = -1;
	for (int k = 0; k < t->n_watched; k++) {
		int s = maker(t->plan, t->watched[k]), *first = s >= 0 ? &t->first[s] : &t->given;

		t->next[k] = *first;
		*first = k;
	}
	return 0;
}

static void look(const struct trial *t, int k)
{
	for (; k >= 0; k = t->next[k]) {
		struct rg_tensor v = rg_exec_value(t->exec, t->watched[k]);

		if (v.data && v.dtype == RG_F32)
			t->see(t->ctx, k, v.data, rg_shape_count(&v.shape));
	}
}

/* Lane -1: the whole step is done, and what it made is not written over yet. */
static void after_step(void *ctx, int lane, int step, uint64_t start_ns, uint64_t end_ns)
{
	const struct trial *t = ctx;

	if (lane < 0)
		look(t, t->first[step]);
}

/* ---- running ---- */

static void forget(struct trial *t)
{
	rg_exec_free(t->exec);
	rg_plan_free(t->plan);
	rg_graph_free(t->graph);
	rg_free(t->shapes);
	rg_free(t->first);
	rg_free(t->next);
	t->exec = NULL;
	t->plan = NULL;
	t->graph = NULL;
	t->shapes = NULL;
	t->first = t->next = NULL;
}

void rg_trial_free(struct trial *t)
{
	forget(t);
}

static bool is_planned_for(const struct trial *t, const struct rg_tensor *sample)
{
	bool same = t->exec != NULL;

	for (int i = 0; i < t->w->n_inputs && same; i++)
		same = rg_shape_equal(&t->shapes[i], &sample[i].shape);
	return same;
}

/* Sequences and optionals are given empty, as everywhere. */
static int give_empty(struct trial *t, int i, struct rg_error *err)
{
	const struct rg_value *v = &t->graph->values[t->graph->inputs[i]];
	struct rg_item *item = v->kind == RG_VALUE_SEQUENCE ? rg_item_sequence(v->declared_dtype, 0, NULL, err)
							    : rg_item_none(err);
	int rc;

	if (!item)
		return err->code;
	rc = rg_exec_set_input(t->exec, i, item, err);
	rg_item_unref(item);
	return rc;
}

static int prepare(struct trial *t, const struct rg_tensor *sample, struct rg_error *err)
{
	struct rg_plan_options po = { .lanes = t->w->lanes, .isa = t->w->isa, .any_value = true, .keep_branches = true,
				      .keep_inputs = true };
	struct rg_exec_options xo = { .stop = is_stopped };
	struct rg_exec_hook hook = { after_step, t };
	int rc;

	forget(t);
	t->shapes = rg_calloc((size_t)t->w->n_inputs + 1, sizeof(*t->shapes));
	if (!t->shapes)
		return rg_error_nomem(err, (size_t)t->w->n_inputs * sizeof(*t->shapes));
	for (int i = 0; i < t->w->n_inputs; i++)
		t->shapes[i] = sample[i].shape;
	rc = rg_trial_open(t->w, t->file, sample, &t->graph, err);
	if (!rc && t->on)
		rc = rg_trial_rewrite(t->w, t->graph, t->on, err);
	if (!rc)
		rc = rg_plan_make(t->graph, &po, &t->plan, err);
	if (!rc && t->see)
		rc = link_watched(t, err);
	if (!rc)
		rc = rg_exec_new(t->plan, &xo, &t->exec, err);
	for (int i = 0; !rc && i < t->graph->n_inputs; i++)
		if (t->graph->values[t->graph->inputs[i]].kind != RG_VALUE_TENSOR)
			rc = give_empty(t, i, err);
	if (!rc && t->see)
		rg_exec_set_hook(t->exec, &hook);
	return rc;
}

static int run(struct trial *t, const struct rg_tensor *sample, struct rg_error *err)
{
	int rc = is_planned_for(t, sample) ? 0 : prepare(t, sample, err);

	for (int i = 0; i < t->w->n_inputs && !rc; i++) {
		struct rg_tensor in = rg_exec_input(t->exec, i);
		int64_t bytes = rg_tensor_bytes(in.dtype, &in.shape);

		if (in.data && sample[i].data && bytes > 0)
			memcpy(in.data, sample[i].data, (size_t)bytes);
	}
	if (!rc && t->see)
		look(t, t->given);
	return rc ? rc : rg_exec_run(t->exec, err);
}

/* Samples that are generated need a graph with shapes; the first one opens it. */
static int read_sample(const struct quantize_work *w, const struct rg_samples *s, int i, const struct rg_graph *g,
		       struct rg_tensor *sample, struct rg_error *err)
{
	struct rg_graph *own = NULL;
	int rc = 0;

	if (!g) {
		for (int k = 0; k < w->n_inputs; k++)
			sample[k] = (struct rg_tensor){ .shape = w->shapes[k] };
		rc = rg_onnx_load(w->exact, NULL, &own, err);
		if (!rc && !s->folder)
			rc = bind_to(own, sample, err);
		g = own;
	}
	if (!rc)
		rc = rg_samples_read(s, i, g, &w->o->session, sample, err);
	rg_graph_free(own);
	return rc;
}

int rg_trial_run(struct trial *t, const struct rg_samples *s, int i, struct rg_error *err)
{
	struct rg_tensor *sample = rg_calloc((size_t)t->w->n_inputs + 1, sizeof(*sample));
	int rc = sample ? read_sample(t->w, s, i, t->graph, sample, err)
			: rg_error_nomem(err, (size_t)t->w->n_inputs * sizeof(*sample));

	if (!rc) {
		rc = run(t, sample, err);
		if (rc && rc != RG_EINTERRUPTED && s->folder && t->w->n_inputs)
			rg_error_at(err, "%s", s->path[i * s->n_inputs]);
		rg_samples_drop(sample, t->w->n_inputs);
	}
	rg_free(sample);
	return rc;
}

int rg_trial_open_first(const struct quantize_work *w, struct rg_graph **out, struct rg_error *err)
{
	struct rg_tensor *sample = rg_calloc((size_t)w->n_inputs + 1, sizeof(*sample));
	int rc = sample ? read_sample(w, &w->calibration, 0, NULL, sample, err)
			: rg_error_nomem(err, (size_t)w->n_inputs * sizeof(*sample));

	if (!rc) {
		rc = rg_trial_open(w, NULL, sample, out, err);
		rg_samples_drop(sample, w->n_inputs);
	}
	rg_free(sample);
	return rc;
}
