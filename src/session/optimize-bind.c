/*
 * The sizes at which a model is rewritten: the first are those that were given, or an example's;
 * the second, another value for each that is open, if the model takes it.
 */
#include "session/optimize-work.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "compile/fold.h"
#include "models/onnx.h"
#include "session/inputs.h"
#include "session/prepare.h"
#include "session/suggest.h"

#define BUILTIN "builtin:"

const struct rg_plan_options *rg_optimize_plan_options(const struct work *w, struct rg_plan_options *po)
{
	*po = (struct rg_plan_options){ .lanes = 1, .any_value = true, .keep_branches = w->keep_branches };
	return po;
}

/* The model once more, without the hash of its bytes. */
static int open_graph(const char *name, struct rg_graph **out, struct rg_error *err)
{
	struct rg_model *m = NULL;
	int rc;

	if (strncmp(name, BUILTIN, strlen(BUILTIN)) != 0)
		return rg_onnx_load(name, NULL, out, err);
	rc = rg_model_open(name, NULL, &m, err);
	if (!rc) {
		*out = m->graph;
		m->graph = NULL;
	}
	rg_model_free(m);
	return rc;
}

int rg_optimize_open(const struct work *w, bool second, struct rg_graph **out, struct rg_error *err)
{
	int rc = open_graph(w->o->session.model, out, err);

	if (!rc)
		rc = rg_open_sizes_bind(&w->sizes, second, w->bound, *out, err);
	return rc;
}

static int remember_bound(struct work *w, const struct rg_graph *g, struct rg_error *err)
{
	rg_free(w->bound);
	rg_open_sizes_free(&w->sizes);
	w->bound = rg_calloc((size_t)g->n_inputs + 1, sizeof(*w->bound));
	if (!w->bound)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*w->bound));
	for (int i = 0; i < g->n_inputs; i++)
		w->bound[i] = g->values[g->inputs[i]].shape;
	return rg_open_sizes_find(g, w->r->arena, &w->sizes, err);
}

static bool has_file(const struct rg_session_options *o, const char *name, struct rg_input_file *file)
{
	for (int i = 0; i < o->n_inputs; i++)
		if (strcmp(o->inputs[i].name, name) == 0) {
			*file = o->inputs[i];
			return true;
		}
	return false;
}

/* A file holds an input of one size: where it has another here, values are made from the seed instead. */
int rg_optimize_proof_new(const struct work *w, const struct rg_graph *g, bool seeded_only, struct rg_proof **out,
			  struct rg_error *err)
{
	struct rg_session_options o = w->o->session;
	struct rg_input_file *files = rg_calloc((size_t)g->n_inputs + 1, sizeof(*files));
	int n = 0, rc;

	*out = NULL;
	if (!files)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*files));
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		if (rg_shape_equal(&v->shape, &w->bound[i]) && has_file(&o, v->name, &files[n]))
			n++;
	}
	o.inputs = files;
	o.n_inputs = n;
	rc = rg_proof_new(g, &o, seeded_only, out, err);
	rg_free(files);
	return rc;
}

static bool has_dynamic(const struct rg_graph *g)
{
	for (int i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].dynamic)
			return true;
	return false;
}

bool rg_optimize_can_take(const struct work *w, bool second, struct rg_error *err)
{
	struct rg_error why = RG_ERROR_INIT;
	struct rg_plan_options po;
	struct rg_proof *proof = NULL;
	struct rg_graph *g = NULL;
	bool good = !err->code && !rg_optimize_open(w, second, &g, &why) &&
		    !rg_optimize_proof_new(w, g, true, &proof, &why) &&
		    !rg_fold_graph(g, rg_optimize_plan_options(w, &po), &why) &&
		    !(has_dynamic(g) && rg_proof_record(proof, g, &why));

	rg_proof_free(proof);
	rg_graph_free(g);
	if (!err->code && (why.code == -ENOMEM || why.code == RG_EINTERRUPTED))
		*err = why;
	return good;
}

/* Sizes that the person left open, as an example has them. w->r->model is bound to them. */
static int bind_example(struct work *w, struct rg_error *err)
{
	const struct rg_bindings *given = &w->given;
	struct rg_graph *g = w->r->model->graph;
	struct rg_bindings example = { 0 };
	const struct rg_example_sizes *sizes;
	struct rg_error why = RG_ERROR_INIT;
	int n, rc = -ENOENT;

	example.shapes =
	    rg_calloc((size_t)given->n_shapes + (size_t)g->n_inputs + 1, sizeof(*example.shapes));
	if (!example.shapes)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*example.shapes));
	sizes = rg_suggest_sizes(&n);
	for (int i = 0; i < n && rc; i++) {
		if (rg_graph_example(g, given, &sizes[i], &example) < 1 || rg_graph_bind(g, &example, &why))
			break;
		rc = remember_bound(w, g, &why);
		if (!rc && !rg_optimize_can_take(w, false, &why))
			rc = -ENOENT;
		if (why.code == -ENOMEM || why.code == RG_EINTERRUPTED)
			break;
	}
	rg_free(example.shapes);
	if (why.code == -ENOMEM || why.code == RG_EINTERRUPTED)
		*err = why;
	if (rc)
		return err->code; /* what binding said, with its hint */
	rg_error_clear(err);
	return 0;
}

static int write_sizes(struct work *w, struct rg_error *err)
{
	const struct rg_graph *g = w->r->model->graph;
	struct rg_str s = { 0 };
	char text[160];

	for (int i = 0; i < g->n_inputs; i++)
		if (g->values[g->inputs[i]].kind == RG_VALUE_TENSOR)
			rg_str_printf(&s, "%s%s=%s", s.len ? ", " : "", g->values[g->inputs[i]].name,
				      rg_shape_text(text, &w->bound[i]));
	w->r->sizes = s.failed ? NULL : rg_arena_strdup(w->r->arena, rg_str_text(&s));
	if (!w->r->sizes)
		rg_error_nomem(err, s.len);
	rg_str_free(&s);
	return err->code;
}

int rg_optimize_find_sizes(struct work *w, struct rg_error *err)
{
	struct rg_model *m = w->r->model;
	int rc = rg_inputs_check_names(m->graph, &w->o->session, err);

	if (!rc)
		rc = rg_prepare_shapes(&w->o->session, m->graph, &w->given, err);
	if (rc)
		return rc;
	rc = rg_model_bind(m, &w->given, err);
	w->r->sizes_given = !rc && (w->o->session.bindings.n_shapes || w->o->session.bindings.n_dims);
	if (!rc)
		rc = remember_bound(w, m->graph, err);
	else if (rc == -EINVAL)
		rc = bind_example(w, err);
	return rc ? rc : write_sizes(w, err);
}

static bool try_all(struct work *w, int k, struct rg_error *err)
{
	for (int i = 0; i < w->sizes.n; i++) {
		int64_t v = rg_open_size_try(&w->sizes, i, k);

		if (!v)
			return false;
		w->sizes.v[i].second = v;
	}
	return rg_optimize_can_take(w, true, err);
}

/* Gives all sizes with together[i] set, whose first is the same, another one that the model takes. */
static bool vary_together(struct work *w, const bool *together, struct rg_error *err)
{
	struct rg_open_sizes *s = &w->sizes;

	for (int k = 0;; k++) {
		int64_t v = 0;

		for (int i = 0; i < s->n; i++) {
			if (!together[i])
				continue;
			v = v ? v : rg_open_size_try(s, i, k);
			s->v[i].second = v ? v : s->v[i].first;
		}
		if (!v || err->code)
			return false;
		if (rg_optimize_can_take(w, true, err))
			return true;
	}
}

/* Another value for every open size that can have one: each its own, else those together that must be
 * the same (the batch of an input and of a state). The others are fixed. */
int rg_optimize_vary_sizes(struct work *w, struct rg_error *err)
{
	struct rg_open_sizes *s = &w->sizes;
	bool *together;

	if (s->n == 0 || try_all(w, 0, err) || try_all(w, 1, err))
		return err->code;
	together = rg_calloc(2 * (size_t)s->n, sizeof(*together));
	if (!together)
		return rg_error_nomem(err, 2 * (size_t)s->n * sizeof(*together));
	for (int i = 0; i < s->n; i++)
		s->v[i].second = s->v[i].first;
	for (int i = 0; i < 2 * s->n; i++) {
		int at = i % s->n;

		if (s->v[at].second != s->v[at].first)
			continue;
		for (int k = 0; k < s->n; k++)
			together[k] = k == at || (i >= s->n && s->v[k].first == s->v[at].first &&
						  s->v[k].second == s->v[k].first);
		if (vary_together(w, together, err))
			continue;
		for (int k = 0; k < s->n; k++)
			s->v[k].second = together[k] ? s->v[k].first : s->v[k].second;
	}
	for (int i = 0; i < s->n; i++) {
		s->v[i].fixed = s->v[i].second == s->v[i].first;
		s->v[i].why = s->v[i].fixed ? "the model took no other that was tried" : NULL;
	}
	rg_free(together);
	return err->code;
}

bool rg_optimize_varies(const struct work *w)
{
	for (int i = 0; i < w->sizes.n; i++)
		if (w->sizes.v[i].second != w->sizes.v[i].first)
			return true;
	return false;
}
