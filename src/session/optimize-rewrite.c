/*
 * One rewriting of the model: the passes run on it at its first sizes or at its second. After each
 * that did something a stage is kept, whose digest tells later where two rewritings part. It ends where
 * a pass leaves what cannot be written or, where it is run, what computes something else.
 */
#include "session/optimize-work.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/fold.h"
#include "compile/needed.h"
#include "compile/opset.h"
#include "models/onnx-write.h"

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

int rg_optimize_needed_values(const struct rg_graph *g, unsigned char **out, struct rg_error *err)
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
	rc = rg_optimize_needed_values(t->g, &values, err);
	if (!rc)
		rc = rg_onnx_digest(t->g, values, s->digest, err);
	/* a node of a younger version than the file's opset is no reason to stop: that comes later */
	if (!rc)
		rc = rg_optimize_measure(t->g, &s->cost, err);
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
	int rc = rg_fold_graph(g, rg_optimize_plan_options(t->w, &po), err);

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

bool rg_optimize_is_disabled(const struct work *w, const struct rg_pass *pass)
{
	for (int i = 0; i < w->o->n_disabled + w->n_out; i++)
		if (strcmp(w->disabled[i], pass->name) == 0)
			return true;
	return false;
}

int rg_optimize_rewrite(struct rewriting *t, bool second, struct rg_error *err)
{
	struct work *w = t->w;
	struct rg_plan_options po;
	struct rg_pass_options ppo = { .level = w->o->level, .n_disabled = w->o->n_disabled + w->n_out,
				       .disabled = w->disabled, .n_pinned = w->r->n_pinned,
				       .pinned = w->r->pinned, .portable = true, .limit = t->limit,
				       .after = after_pass, .after_ctx = t };
	int rc;

	rc = rg_optimize_open(w, second, &t->g, err);
	if (!rc)
		rc = rg_fold_graph(t->g, rg_optimize_plan_options(w, &po), err);
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

void rg_optimize_rewriting_free(struct rewriting *t)
{
	rg_pass_log_free(&t->log);
	rg_graph_free(t->g);
	rg_free(t->stages);
	t->g = NULL;
	t->stages = NULL;
}
