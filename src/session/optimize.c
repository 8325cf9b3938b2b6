/* See optimize.h. */
#include "session/optimize.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "compile/fold.h"
#include "compile/needed.h"
#include "compile/opset.h"
#include "graph/op-random.h"
#include "graph/op.h"
#include "models/onnx-write.h"
#include "models/onnx.h"
#include "session/optimize-prove.h"
#include "session/optimize-sizes.h"
#include "session/suggest.h"

#define BUILTIN "builtin:"

/* Models of this opset run where most people deploy. */
enum { USUAL_OPSET = 17 };

/* A pass that is left out, and why: for its sizes, its opset. */
struct left_out {
	const struct rg_pass *pass;
	const char *why;
};

struct work {
	const struct rg_optimize_options *o;
	struct rg_optimized *r;
	struct rg_open_sizes sizes;
	struct rg_shape *bound;     /* of every input, at the first sizes */
	bool keep_branches;
	int n_out;
	struct left_out *out;       /* room for every pass */
	const char **disabled;      /* by the person, then those left out */
	int64_t opset; /* that the passes need: the model is carried to it before they begin, so that
			  they see what that leaves */
	int64_t most_opset;
	size_t cap_pinned;          /* of r->pinned */
};

/* What one rewriting of the model left behind. */
struct stage {
	const struct rg_pass *pass; /* NULL: before the first */
	char digest[65];
	int n_rewritten;            /* so far */
	struct rg_optimize_cost cost;
};

struct rewriting {
	struct work *w;
	struct rg_graph *g;
	struct rg_pass_log log;
	int n_stages;
	size_t cap_stages;
	struct stage *stages;       /* one each time that a pass has done something */
	bool check_opset;           /* whether what a pass leaves can be written */
	struct rg_proof *proof;     /* NULL: nothing is run */
	int limit;                  /* of rewrites; 0: none */
	int stop_stage;             /* the graph is left as it is then; 0: never */
	bool stopped;
	const struct rg_pass *bad;  /* the pass behind which something was wrong */
	int n_before_bad;           /* rewrites before it */
	struct rg_difference difference;
	char opset_reason[528];     /* why what `bad` left cannot be written; "" it can */
	double worst;
};

static const struct rg_plan_options *plan_options(const struct work *w, struct rg_plan_options *po)
{
	*po = (struct rg_plan_options){ .lanes = 1, .any_value = true, .keep_branches = w->keep_branches };
	return po;
}

/* ---- reading ---- */

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

static int open_bound(const struct work *w, bool second, struct rg_graph **out, struct rg_error *err)
{
	int rc = open_graph(w->o->session.model, out, err);

	if (!rc)
		rc = rg_open_sizes_bind(&w->sizes, second, w->bound, *out, err);
	return rc;
}

/* ---- sizes ---- */

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

static bool has_dynamic(const struct rg_graph *g)
{
	for (int i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].dynamic)
			return true;
	return false;
}

/* Whether the model takes these sizes: shapes fit, and where not all are known before, it runs. Sets err only
 * where memory is out or a person has had enough. */
static bool can_be_taken(const struct work *w, bool second, struct rg_error *err)
{
	struct rg_error why = RG_ERROR_INIT;
	struct rg_plan_options po;
	struct rg_proof *proof = NULL;
	struct rg_graph *g = NULL;
	bool good = !err->code && !open_bound(w, second, &g, &why) &&
		    !rg_proof_new(g, &w->o->session, true, &proof, &why) &&
		    !rg_fold_graph(g, plan_options(w, &po), &why) &&
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
	const struct rg_bindings *given = &w->o->session.bindings;
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
		if (!rc && !can_be_taken(w, false, &why))
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

/* Gives the inputs of the model their first sizes. */
static int find_sizes(struct work *w, struct rg_error *err)
{
	struct rg_model *m = w->r->model;
	int rc = rg_model_bind(m, &w->o->session.bindings, err), at = 0;
	char text[160];

	w->r->sizes_given = !rc && (w->o->session.bindings.n_shapes || w->o->session.bindings.n_dims);
	if (!rc)
		rc = remember_bound(w, m->graph, err);
	else if (rc == -EINVAL)
		rc = bind_example(w, err);
	for (int i = 0; i < m->graph->n_inputs && !rc && at < (int)sizeof(w->r->sizes) - 200; i++)
		if (m->graph->values[m->graph->inputs[i]].kind == RG_VALUE_TENSOR)
			at += snprintf(w->r->sizes + at, sizeof(w->r->sizes) - (size_t)at, "%s%.100s=%s",
				       at ? ", " : "", m->graph->values[m->graph->inputs[i]].name,
				       rg_shape_text(text, &w->bound[i]));
	return rc;
}

static bool try_all(struct work *w, int k, struct rg_error *err)
{
	for (int i = 0; i < w->sizes.n; i++) {
		int64_t v = rg_open_size_try(&w->sizes, i, k);

		if (!v)
			return false;
		w->sizes.v[i].second = v;
	}
	return can_be_taken(w, true, err);
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
		if (can_be_taken(w, true, err))
			return true;
	}
}

/* Another value for every open size that can have one: each its own, else those together that must be
 * the same (the batch of an input and of a state). The others are fixed. */
static int vary_sizes(struct work *w, struct rg_error *err)
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

/* ---- rewriting ---- */

static bool folded(const struct rg_graph *g, const struct rg_node *n)
{
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k] >= 0 && g->values[n->out[k]].origin == RG_CONST_NONE)
			return false;
	return true;
}

static void add_bytes(const struct rg_graph *g, const struct rg_node *n, struct rg_tensor *room,
		      struct rg_optimize_cost *c)
{
	struct rg_cost_in in = { n, room, room + n->n_in };
	struct rg_cost cost;

	for (int k = 0; k < n->n_in + n->n_out; k++) {
		int value = k < n->n_in ? n->in[k] : n->out[k - n->n_in];

		room[k] = (struct rg_tensor){ 0 };
		if (value < 0)
			continue;
		if (!g->values[value].shaped) {
			c->bytes = -1;
			return;
		}
		room[k] = (struct rg_tensor){ g->values[value].dtype, g->values[value].shape,
					      (void *)(uintptr_t)g->values[value].data };
	}
	rg_op_cost(n->op, &in, &cost);
	if (cost.read_bytes < 0 || cost.write_bytes < 0)
		c->bytes = -1;
	else
		c->bytes += cost.read_bytes + cost.write_bytes;
}

static int measure(const struct rg_graph *g, struct rg_optimize_cost *c, struct rg_error *err)
{
	unsigned char *values = rg_calloc((size_t)g->n_values + 1, 1),
		      *nodes = rg_calloc((size_t)g->n_nodes + 1, 1);
	struct rg_tensor *room = NULL;
	int widest = 1, rc = 0;

	*c = (struct rg_optimize_cost){ 0 };
	for (int i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].n_in + g->nodes[i].n_out > widest)
			widest = g->nodes[i].n_in + g->nodes[i].n_out;
	room = rg_calloc((size_t)widest, sizeof(*room));
	if (!values || !nodes || !room)
		rc = rg_error_nomem(err, (size_t)g->n_values);
	else
		rg_mark_needed(g, false, values, nodes);
	for (int i = 0; i < g->n_nodes && !rc; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!nodes[i] || folded(g, n) || (!n->dynamic && rg_node_is_view(g, n)))
			continue;
		c->steps++;
		if (c->bytes >= 0)
			add_bytes(g, n, room, c);
	}
	rg_free(values);
	rg_free(nodes);
	rg_free(room);
	return rc;
}

/* Takes out what no output needs, of constants and of what they are computed from too. */
static int drop_unneeded(struct rg_graph *g, int *n_dropped, struct rg_error *err)
{
	unsigned char *values = rg_calloc((size_t)g->n_values + 1, 1),
		      *nodes = rg_calloc((size_t)g->n_nodes + 1, 1);
	int before = g->n_nodes, rc = 0;

	if (!values || !nodes)
		rc = rg_error_nomem(err, (size_t)g->n_values);
	if (!rc) {
		rg_mark_needed(g, true, values, nodes);
		for (int i = 0; i < before; i++)
			nodes[i] = !nodes[i];
		rc = rg_graph_drop_nodes(g, nodes, before, err);
	}
	if (!rc && n_dropped)
		*n_dropped += before - g->n_nodes;
	rg_free(values);
	rg_free(nodes);
	return rc;
}

/* Which constants are written: those that are read, or given out. */
static int needed_values(const struct rg_graph *g, unsigned char **out, struct rg_error *err)
{
	unsigned char *nodes = rg_calloc((size_t)g->n_nodes + 1, 1);

	*out = rg_calloc((size_t)g->n_values + 1, 1);
	if (!*out || !nodes)
		rg_error_nomem(err, (size_t)g->n_values);
	else
		rg_mark_needed(g, true, *out, nodes);
	rg_free(nodes);
	return err->code;
}

static int take_stage(struct rewriting *t, const struct rg_pass *pass, struct rg_error *err)
{
	struct stage *s = rg_grow(t->stages, &t->cap_stages, (size_t)t->n_stages + 1, sizeof(*s));
	unsigned char *values = NULL;
	int rc;

	if (!s)
		return rg_error_nomem(err, (size_t)t->n_stages * sizeof(*s));
	t->stages = s;
	s += t->n_stages++;
	s->pass = pass;
	s->n_rewritten = t->log.n_rewritten;
	rc = needed_values(t->g, &values, err);
	if (!rc)
		rc = rg_onnx_digest(t->g, &(struct rg_onnx_parts){ NULL, values }, s->digest, err);
	/* a node of a younger version than the file's opset is no reason to stop: that comes later */
	if (!rc)
		rc = measure(t->g, &s->cost, err);
	rg_free(values);
	return rc;
}

/* Ends the passes; told apart from a failure by t->bad. */
static int stop_at(struct rewriting *t, const struct rg_pass *pass)
{
	t->bad = pass;
	t->n_before_bad = t->stages[t->n_stages - 1].n_rewritten;
	return -ECANCELED;
}

static int after_pass(void *ctx, const struct rg_pass *pass, struct rg_graph *g,
		      const struct rg_pass_log *log, struct rg_error *err)
{
	struct rewriting *t = ctx;
	struct rg_plan_options po;
	int64_t opset;
	int rc = rg_fold_graph(g, plan_options(t->w, &po), err);

	if (!rc)
		rc = drop_unneeded(g, &t->log.n_dead, err);
	if (!rc && t->check_opset && rg_opset_needed(g, &opset, err)) {
		if (err->code != RG_ENOTSUP_MODEL)
			return err->code;
		snprintf(t->opset_reason, sizeof(t->opset_reason), "opset: %s", err->message);
		rg_error_clear(err);
		return stop_at(t, pass);
	}
	if (!rc && t->check_opset && opset > t->w->most_opset) {
		snprintf(t->opset_reason, sizeof(t->opset_reason),
			 "opset: it makes operators of opset %" PRId64 ", which --opset %" PRId64
			 " would allow",
			 opset, opset);
		return stop_at(t, pass);
	}
	if (!rc && t->proof) {
		rc = rg_proof_hold(t->proof, g, &t->difference, err);
		if (!rc && t->difference.wrong)
			return stop_at(t, pass);
		t->worst = fmax(t->worst, t->difference.worst);
		if (rc)
			return rg_error_at(err, "after pass '%s'", pass->name);
	}
	if (!rc)
		rc = take_stage(t, pass, err);
	if (!rc && t->stop_stage && t->n_stages > t->stop_stage) {
		t->stopped = true;
		rc = -ECANCELED;
	}
	return rc;
}

static bool is_disabled(const struct work *w, const struct rg_pass *pass)
{
	for (int i = 0; i < w->o->n_disabled + w->n_out; i++)
		if (strcmp(w->disabled[i], pass->name) == 0)
			return true;
	return false;
}

/* Runs the passes on the model at its first sizes or at its second. 0 also when one of them left
 * something wrong: t->bad. The caller frees, also on failure. */
static int rewrite(struct rewriting *t, bool second, struct rg_error *err)
{
	struct work *w = t->w;
	struct rg_plan_options po;
	struct rg_pass_options ppo = { .level = w->o->level, .n_disabled = w->o->n_disabled + w->n_out,
				       .disabled = w->disabled, .n_pinned = w->r->n_pinned,
				       .pinned = w->r->pinned, .portable = true, .limit = t->limit,
				       .after = after_pass, .after_ctx = t };
	int rc;

	rc = open_bound(w, second, &t->g, err);
	if (!rc)
		rc = rg_fold_graph(t->g, plan_options(w, &po), err);
	if (!rc && w->opset > rg_graph_opset(t->g, ""))
		rc = rg_opset_raise(t->g, w->opset, err);
	if (!rc)
		rc = drop_unneeded(t->g, &t->log.n_dead, err);
	if (!rc)
		rc = take_stage(t, NULL, err);
	if (!rc)
		rc = rg_passes_run(t->g, &ppo, &t->log, err);
	if (rc == -ECANCELED && (t->bad || t->stopped))
		rc = 0;
	return rc;
}

static void rewriting_free(struct rewriting *t)
{
	rg_pass_log_free(&t->log);
	rg_graph_free(t->g);
	rg_free(t->stages);
	t->g = NULL;
	t->stages = NULL;
}

/* ---- what holds at every size ---- */

static int leave_out(struct work *w, const struct rg_pass *pass, const char *why, struct rg_error *err)
{
	struct left_out *l = &w->out[w->n_out];

	l->pass = pass;
	l->why = rg_arena_strdup(w->r->arena, why);
	if (!l->why)
		return rg_error_nomem(err, strlen(why));
	w->disabled[w->o->n_disabled + w->n_out++] = pass->name;
	return 0;
}

/* The first stage at which two rewritings part; -1: they are the same model. */
static int first_difference(const struct rewriting *a, const struct rewriting *b)
{
	int n = a->n_stages < b->n_stages ? a->n_stages : b->n_stages;

	for (int i = 0; i < n; i++)
		if (a->stages[i].pass != b->stages[i].pass ||
		    strcmp(a->stages[i].digest, b->stages[i].digest) != 0)
			return i;
	return a->n_stages == b->n_stages ? -1 : n;
}

/* The pass to blame for stage i: the one that came first, in the order of passes. */
static const struct rg_pass *blamed(const struct rewriting *a, const struct rewriting *b, int i)
{
	const struct rg_pass *pa = i < a->n_stages ? a->stages[i].pass : NULL;
	const struct rg_pass *pb = i < b->n_stages ? b->stages[i].pass : NULL;

	for (int k = 0; k < rg_pass_count(); k++)
		if (rg_pass_at(k) == pa || rg_pass_at(k) == pb)
			return rg_pass_at(k);
	return NULL;
}

static bool any_varies(const struct work *w)
{
	for (int i = 0; i < w->sizes.n; i++)
		if (w->sizes.v[i].second != w->sizes.v[i].first)
			return true;
	return false;
}

/* Rewrites at the second sizes; *stage: where it parts from `a`. */
static int compare_second(struct work *w, const struct rewriting *a, int *stage, const struct rg_pass **pass,
			  struct rg_error *err)
{
	struct rewriting b = { .w = w };
	int rc = rewrite(&b, true, err);

	if (!rc) {
		*stage = first_difference(a, &b);
		*pass = *stage > 0 ? blamed(a, &b, *stage) : NULL;
	}
	rewriting_free(&b);
	return rc;
}

/* ---- which nodes depend on sizes ---- */

struct named { const char *name; int node; };

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *sort_names(const struct rg_graph *g, struct rg_error *err)
{
	struct named *list = rg_calloc((size_t)g->n_nodes + 1, sizeof(*list));

	if (!list) {
		rg_error_nomem(err, (size_t)g->n_nodes * sizeof(*list));
		return NULL;
	}
	for (int i = 0; i < g->n_nodes; i++)
		list[i] = (struct named){ g->nodes[i].name, i };
	qsort(list, (size_t)g->n_nodes, sizeof(*list), by_name);
	return list;
}

static int pin(struct work *w, const char *name, struct rg_error *err)
{
	struct rg_optimized *r = w->r;
	const char **p;

	for (int i = 0; i < r->n_pinned; i++)
		if (strcmp(r->pinned[i], name) == 0)
			return 0;
	p = rg_grow(r->pinned, &w->cap_pinned, (size_t)r->n_pinned + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	r->pinned = p;
	p[r->n_pinned] = rg_arena_strdup(r->arena, name);
	if (!p[r->n_pinned])
		return rg_error_nomem(err, strlen(name));
	r->n_pinned++;
	return 0;
}

/* Whether the last stage rewrote a node of that name, or something into it. */
static bool was_rewritten(const struct rewriting *t, const char *name)
{
	const struct rg_pass_log *log = &t->log;
	int begin = t->stages[t->n_stages - 2].n_rewritten, n = 0;

	for (int i = 0; i < log->n_notes; i++)
		if (!log->notes[i].decline && n++ >= begin &&
		    (strcmp(log->notes[i].node, name) == 0 || strcmp(log->notes[i].into, name) == 0))
			return true;
	return false;
}

/* Pins what became this node: itself by its name, or one beside it, since a pass may make more than one of
 * one. */
static int pin_origin(struct work *w, const struct rewriting *t, int at, struct rg_error *err)
{
	const struct rg_graph *g = t->g;
	const struct rg_node *n = &g->nodes[at];
	int rc = 0;

	if (was_rewritten(t, n->name))
		return pin(w, n->name, err);
	for (int k = 0; k < n->n_in && !rc; k++) {
		int from = n->in[k] >= 0 ? g->values[n->in[k]].producer : -1;

		if (from >= 0 && was_rewritten(t, g->nodes[from].name))
			rc = pin(w, g->nodes[from].name, err);
	}
	for (int i = at + 1; i < g->n_nodes && !rc; i++)
		for (int k = 0; k < g->nodes[i].n_in && !rc; k++)
			if (n->n_out > 0 && g->nodes[i].in[k] == n->out[0] && n->out[0] >= 0 &&
			    was_rewritten(t, g->nodes[i].name))
				rc = pin(w, g->nodes[i].name, err);
	return rc;
}

/* Pins where the nodes of `t` come from that `other` has not, or has in another way. */
static int pin_others(struct work *w, const struct rewriting *t, const struct rewriting *other,
		      struct rg_error *err)
{
	const struct rg_graph *a = t->g, *b = other->g;
	struct named *names = sort_names(b, err);
	int rc = names ? 0 : err->code;

	for (int i = 0; i < a->n_nodes && !rc; i++) {
		const struct named key = { a->nodes[i].name, i };
		const struct named *same = bsearch(&key, names, (size_t)b->n_nodes, sizeof(key), by_name);
		char da[65] = "", db[65] = "";

		if (same) {
			rc = rg_onnx_node_digest(a, i, da, err);
			if (!rc)
				rc = rg_onnx_node_digest(b, same->node, db, err);
		}
		if (!rc && (!same || strcmp(da, db) != 0))
			rc = pin_origin(w, t, i, err);
	}
	rg_free(names);
	return rc;
}

/* Looks at both graphs as they are behind that stage. *found: how many nodes were pinned. */
static int pin_dependent(struct work *w, int stage, int *found, struct rg_error *err)
{
	struct rewriting a = { .w = w, .stop_stage = stage }, b = { .w = w, .stop_stage = stage };
	int before = w->r->n_pinned, rc = rewrite(&a, false, err);

	if (!rc)
		rc = rewrite(&b, true, err);
	if (!rc && a.stopped)
		rc = pin_others(w, &a, &b, err);
	if (!rc && b.stopped)
		rc = pin_others(w, &b, &a, err);
	rewriting_free(&a);
	rewriting_free(&b);
	*found = w->r->n_pinned - before;
	return rc;
}

/* Fixes each size that the model depends on: alone, then what only shows together. */
static int fix_what_matters(struct work *w, const struct rewriting *a, struct rg_error *err)
{
	struct rg_open_sizes *s = &w->sizes;
	const struct rg_pass *pass;
	int stage = -1, rc = 0;
	int64_t *second = rg_calloc((size_t)s->n + 1, sizeof(*second));

	if (!second)
		return rg_error_nomem(err, (size_t)s->n * sizeof(*second));
	for (int i = 0; i < s->n; i++)
		second[i] = s->v[i].second;
	for (int i = 0; i < s->n && !rc; i++) {
		if (s->v[i].fixed)
			continue;
		for (int k = 0; k < s->n; k++)
			s->v[k].second = k == i ? second[k] : s->v[k].first;
		if (can_be_taken(w, true, err))
			rc = compare_second(w, a, &stage, &pass, err);
		else
			rc = err->code, stage = 0;
		if (!rc && stage >= 0) {
			s->v[i].fixed = true;
			s->v[i].why = "what was rewritten depends on it";
		}
	}
	for (int i = 0; i < s->n; i++)
		s->v[i].second = s->v[i].fixed ? s->v[i].first : second[i];
	stage = -1;
	if (!rc && any_varies(w))
		rc = can_be_taken(w, true, err) ? compare_second(w, a, &stage, &pass, err)
						: (stage = 0, err->code);
	for (int i = 0; i < s->n && !rc && stage >= 0; i++) {
		s->v[i].second = s->v[i].first;
		s->v[i].why = s->v[i].fixed ? s->v[i].why : "what was rewritten depends on it, with others";
		s->v[i].fixed = true;
	}
	rg_free(second);
	return rc;
}

static bool given_by_person(const struct work *w)
{
	return w->r->sizes_given;
}

/* Leaves out what cannot be written or does not hold at every size, until all that is left does. *a is
 * the rewriting at the first sizes, without having been run. */
static int settle(struct work *w, struct rewriting *a, struct rg_error *err)
{
	for (;;) {
		const struct rg_pass *pass = NULL;
		int stage = -1, found = 0, rc;
		int64_t opset = 0;

		*a = (struct rewriting){ .w = w, .check_opset = true };
		rc = rewrite(a, false, err);
		if (rc)
			return rc;
		if (a->bad) {
			rc = leave_out(w, a->bad, a->opset_reason, err);
			rewriting_free(a);
			if (rc)
				return rc;
			continue;
		}
		rc = rg_opset_needed(a->g, &opset, err);
		if (rc)
			return rc;
		if (opset > w->opset) {
			w->opset = opset;
			rewriting_free(a);
			continue;
		}
		if (!any_varies(w))
			return 0;
		rc = compare_second(w, a, &stage, &pass, err);
		if (rc || stage < 0)
			return rc;
		if (stage > 0 && given_by_person(w))
			return fix_what_matters(w, a, err);
		rewriting_free(a);
		if (stage == 0 && w->keep_branches) {
			rg_error_set(err, RG_ENOTSUP_MODEL,
				     "the model is another one at other sizes, before anything is "
				     "rewritten");
			return rg_error_hint(err, "use --level 0");
		}
		if (stage == 0) {
			w->keep_branches = true; /* an If takes another branch */
			continue;
		}
		rc = pin_dependent(w, stage, &found, err);
		if (!rc && !found)
			rc = leave_out(w, pass,
				       "what it rewrites depends on sizes that the file leaves open; --shape "
				       "or --dim fix them",
				       err);
		if (rc)
			return rc;
	}
}

/* ---- proving ---- */

static const struct rg_pass_note *last_rewrite(const struct rg_pass_log *log, const struct rg_pass *pass)
{
	for (int i = log->n_notes - 1; i >= 0; i--)
		if (!log->notes[i].decline && strcmp(log->notes[i].pass, pass->name) == 0)
			return &log->notes[i];
	return NULL;
}

static int tell_wrong(const struct rewriting *t, const struct rg_pass *pass, struct rg_error *err)
{
	const struct rg_difference *d = &t->difference;
	const struct rg_pass_note *n = last_rewrite(&t->log, pass);
	char off[48];

	if (isfinite(d->off))
		snprintf(off, sizeof(off), "is off by %.2g of its largest number", d->off);
	else
		snprintf(off, sizeof(off), "is another one");
	rg_error_set(err, -EDOM,
		     "pass '%s' changes what the model computes: taking '%.80s' (%.40s) into '%.80s', output "
		     "'%.60s' %s (inputs: %s; allowed: %.2g)",
		     pass->name, n ? n->node : "?", n ? n->op_type : "?", n ? n->into : "?", d->output, off,
		     d->inputs, d->allowed);
	return rg_error_hint(err, "nothing was written; --disable %s leaves the pass out", pass->name);
}

/* The fewest rewrites with which what `bad` left is wrong: the last of them is to blame. */
static int bisect(struct work *w, const struct rewriting *bad, struct rg_proof *proof, struct rg_error *err)
{
	int right = bad->n_before_bad, wrong = bad->log.n_rewritten, rc = 0;
	struct rewriting t = { 0 };

	while (wrong - right > 1 && !rc) {
		int middle = right + (wrong - right) / 2;

		t = (struct rewriting){ .w = w, .proof = proof, .limit = middle };
		rc = rewrite(&t, false, err);
		if (!rc && t.bad)
			wrong = middle;
		else
			right = middle;
		rewriting_free(&t);
	}
	if (rc)
		return rc;
	t = (struct rewriting){ .w = w, .proof = proof, .limit = wrong };
	rc = rewrite(&t, false, err);
	/* a pass that does not heed the limit shows all that it did */
	if (!rc)
		rc = t.bad ? tell_wrong(&t, t.bad, err) : tell_wrong(bad, bad->bad, err);
	rewriting_free(&t);
	return rc;
}

static int make_proof(const struct work *w, bool second, struct rg_proof **out, struct rg_error *err)
{
	struct rg_plan_options po;
	struct rg_graph *g = NULL;
	int rc = open_bound(w, second, &g, err);

	*out = NULL;
	if (!rc)
		rc = rg_proof_new(g, &w->o->session, false, out, err);
	if (!rc)
		rc = rg_fold_graph(g, plan_options(w, &po), err);
	if (!rc)
		rc = rg_proof_record(*out, g, err);
	rg_graph_free(g);
	return rc;
}

/* Runs the model before and after every pass. */
static int prove_passes(struct work *w, struct rg_error *err)
{
	struct rewriting t = { .w = w };
	int rc = make_proof(w, false, &t.proof, err);

	if (!rc)
		rc = rewrite(&t, false, err);
	if (!rc && t.bad)
		rc = bisect(w, &t, t.proof, err);
	w->r->worst = fmax(w->r->worst, t.worst);
	rg_proof_free(t.proof);
	rewriting_free(&t);
	return rc;
}

/* Reads what was written, and runs that. */
static int prove_file(struct work *w, const char *path, bool second, struct rg_error *err)
{
	struct rg_plan_options po;
	struct rg_proof *proof = NULL;
	struct rg_difference d = { 0 };
	struct rg_graph *g = NULL;
	int rc = make_proof(w, second, &proof, err);

	if (!rc)
		rc = rg_onnx_load(path, NULL, &g, err);
	if (!rc)
		rc = rg_open_sizes_bind(&w->sizes, second, w->bound, g, err);
	if (!rc)
		rc = rg_fold_graph(g, plan_options(w, &po), err);
	if (!rc)
		rc = rg_proof_hold(proof, g, &d, err);
	if (!rc && d.wrong) {
		rg_error_set(err, -EDOM,
			     "what was written computes something else: output '%.60s' is off by %.2g of its "
			     "largest number (inputs: %s%s)",
			     d.output, d.off, d.inputs, second ? "; other sizes" : "");
		rc = rg_error_hint(err, "nothing was kept; --level 1 or --disable leave passes out");
	}
	w->r->worst = fmax(w->r->worst, d.worst);
	rg_proof_free(proof);
	rg_graph_free(g);
	return rc;
}

/* ---- writing ---- */

static int write_graph(struct work *w, struct rg_graph *g, const char *path, struct rg_error *err)
{
	unsigned char *values = NULL;
	char *part = rg_asprintf("%s.part", path);
	int rc = part ? 0 : rg_error_nomem(err, strlen(path));

	if (!rc && w->o->level > 0)
		rc = needed_values(g, &values, err);
	if (!rc)
		rc = rg_onnx_write_parts(g, &(struct rg_onnx_parts){ NULL, values }, part, err);
	if (!rc && w->o->verify && w->r->planned)
		rc = prove_file(w, part, false, err);
	if (!rc && w->o->verify && w->r->planned && any_varies(w))
		rc = prove_file(w, part, true, err);
	if (!rc && rename(part, path) < 0) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		rg_error_hint(err, "name another place with -o FILE.onnx");
		rc = rg_error_at(err, "%s", path);
	}
	if (rc && part)
		unlink(part);
	rg_free(part);
	rg_free(values);
	return rc;
}

static void report_pass(const struct work *w, const struct rewriting *a, struct rg_optimized_pass *p)
{
	if (p->pass->internal)
		p->left_out = "it makes operators that only ridge's own executor knows";
	else if (p->pass->own_only)
		p->left_out = p->pass->own_only;
	else if (is_disabled(w, p->pass))
		p->left_out = "--disable";
	for (int i = 0; i < w->n_out; i++)
		if (w->out[i].pass == p->pass)
			p->left_out = w->out[i].why;
	p->bytes_known = true;
	for (int i = 1; i < a->n_stages; i++) {
		const struct stage *then = &a->stages[i], *before = then - 1;

		if (then->pass != p->pass)
			continue;
		p->n_rewritten += then->n_rewritten - before->n_rewritten;
		p->steps_saved += before->cost.steps - then->cost.steps;
		p->bytes_saved += before->cost.bytes - then->cost.bytes;
		p->bytes_known = p->bytes_known && before->cost.bytes >= 0 && then->cost.bytes >= 0;
	}
}

/* What people read: which passes there were, what each did. */
static int report(struct work *w, struct rewriting *a, struct rg_error *err)
{
	struct rg_optimized *r = w->r;

	r->passes = rg_arena_alloc(r->arena, (size_t)rg_pass_count() + 1, sizeof(*r->passes));
	r->fixed = rg_arena_alloc(r->arena, (size_t)w->sizes.n + 1, sizeof(*r->fixed));
	if (!r->passes || !r->fixed)
		return rg_error_nomem(err, (size_t)rg_pass_count() * sizeof(*r->passes));
	r->before = a->stages[0].cost;
	r->after = a->stages[a->n_stages - 1].cost;
	for (int k = 0; k < rg_pass_count(); k++) {
		if (rg_pass_at(k)->level > r->level)
			continue;
		r->passes[r->n_passes] = (struct rg_optimized_pass){ .pass = rg_pass_at(k) };
		report_pass(w, a, &r->passes[r->n_passes++]);
	}
	for (int i = 0; i < w->sizes.n; i++) {
		const struct rg_open_size *s = &w->sizes.v[i];
		const char *input = r->model->graph->values[r->model->graph->inputs[s->input]].name;
		const char *name = s->symbol ? rg_arena_strdup(r->arena, s->symbol) :
				   rg_arena_printf(r->arena, "dimension %d of %s", s->dim, input);

		if (!name)
			return rg_error_nomem(err, strlen(input));
		if (s->fixed)
			r->fixed[r->n_fixed++] = (struct rg_optimized_size){ name, s->first, s->why };
	}
	return 0;
}

/* Hands the rewritten graph to the result. */
static void keep(struct rg_optimized *r, struct rewriting *a)
{
	rg_graph_free(r->model->graph);
	r->model->graph = a->g;
	r->log = a->log;
	r->n_dead = a->log.n_dead;
	a->g = NULL;
	a->log = (struct rg_pass_log){ 0 };
}

static int rewrite_model(struct work *w, struct rg_error *err)
{
	struct rewriting a = { 0 };
	int rc = find_sizes(w, err);

	if (rc)
		return rc;
	rc = vary_sizes(w, err);
	if (!rc)
		rc = settle(w, &a, err);
	w->r->planned = true;
	if (!rc && w->o->verify)
		rc = prove_passes(w, err);
	if (!rc)
		rc = report(w, &a, err);
	if (!rc)
		rc = rg_open_sizes_fix(&w->sizes, a.g, err);
	if (!rc)
		keep(w->r, &a);
	rewriting_free(&a);
	return rc;
}

static int make_room(struct work *w, struct rg_error *err)
{
	size_t n = (size_t)rg_pass_count() + 1;

	w->out = rg_calloc(n, sizeof(*w->out));
	w->disabled = rg_calloc(n + (size_t)w->o->n_disabled, sizeof(*w->disabled));
	if (!w->out || !w->disabled)
		return rg_error_nomem(err, n * sizeof(*w->out));
	for (int i = 0; i < w->o->n_disabled; i++) {
		bool found = false;

		for (int k = 0; k < rg_pass_count(); k++)
			found = found || strcmp(rg_pass_at(k)->name, w->o->disabled[i]) == 0;
		if (!found) {
			struct rg_str names = { 0 };

			for (int k = 0; k < rg_pass_count(); k++)
				rg_str_printf(&names, "%s%s", k ? ", " : "", rg_pass_at(k)->name);
			rg_error_set(err, RG_EUSAGE, "--disable %.60s: there is no such pass",
				     w->o->disabled[i]);
			rg_error_hint(err, "one of: %s", rg_str_text(&names));
			rg_str_free(&names);
			return err->code;
		}
		w->disabled[i] = w->o->disabled[i];
	}
	return 0;
}

static int optimize(struct work *w, const char *path, struct rg_error *err)
{
	struct rg_optimized *r = w->r;
	int rc = make_room(w, err);

	if (!rc)
		rc = rg_model_open(w->o->session.model, &w->o->session.bindings, &r->model, err);
	if (rc)
		return rc;
	r->opset_before = rg_graph_opset(r->model->graph, "");
	w->opset = r->opset_before;
	w->most_opset = w->o->opset ? w->o->opset : USUAL_OPSET;
	if (w->most_opset < r->opset_before)
		w->most_opset = r->opset_before;
	r->n_nodes_before = r->model->graph->n_nodes;
	r->weight_bytes_before = rg_graph_weight_bytes(r->model->graph);
	if (r->level > 0)
		rc = rewrite_model(w, err);
	if (!rc)
		rc = rg_opset_raise(r->model->graph, 0, err);
	if (rc)
		return rg_error_at(err, "%s", w->o->session.model);
	r->opset_after = rg_graph_opset(r->model->graph, "");
	r->n_nodes_after = r->model->graph->n_nodes;
	r->weight_bytes_after = rg_graph_weight_bytes(r->model->graph);
	rc = write_graph(w, r->model->graph, path, err);
	r->verified = !rc && w->o->verify && r->planned;
	return rc;
}

int rg_session_optimize(const struct rg_optimize_options *o, const char *path, struct rg_optimized **out,
			struct rg_error *err)
{
	struct rg_optimized *r = rg_calloc(1, sizeof(*r));
	struct work w = { .o = o, .r = r };

	*out = NULL;
	if (!r)
		return rg_error_nomem(err, sizeof(*r));
	r->level = o->level;
	r->arena = rg_arena_new();
	if (!r->arena)
		rg_error_nomem(err, sizeof(*r));
	else
		optimize(&w, path, err);
	rg_free(w.bound);
	rg_open_sizes_free(&w.sizes);
	rg_free(w.out);
	rg_free(w.disabled);
	if (err->code) {
		rg_optimized_free(r);
		return err->code;
	}
	*out = r;
	return 0;
}

void rg_optimized_free(struct rg_optimized *r)
{
	if (!r)
		return;
	rg_pass_log_free(&r->log);
	rg_free(r->pinned);
	rg_model_free(r->model);
	rg_arena_free(r->arena);
	rg_free(r);
}
