/*
 * Runs the model before and after every pass, and as it was written. Where a pass has changed what is
 * computed, the rewrite that did is looked for, so that the message can name its node.
 */
#include "session/optimize-work.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile/fold.h"
#include "models/onnx.h"

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
		rc = rg_optimize_rewrite(&t, false, err);
		if (!rc && t.bad)
			wrong = middle;
		else
			right = middle;
		rg_optimize_rewriting_free(&t);
	}
	if (rc)
		return rc;
	t = (struct rewriting){ .w = w, .proof = proof, .limit = wrong };
	rc = rg_optimize_rewrite(&t, false, err);
	/* a pass that does not heed the limit shows all that it did */
	if (!rc)
		rc = t.bad ? tell_wrong(&t, t.bad, err) : tell_wrong(bad, bad->bad, err);
	rg_optimize_rewriting_free(&t);
	return rc;
}

static int make_proof(const struct work *w, bool second, struct rg_proof **out, struct rg_error *err)
{
	struct rg_plan_options po;
	struct rg_graph *g = NULL;
	int rc = rg_optimize_open(w, second, &g, err);

	*out = NULL;
	if (!rc)
		rc = rg_optimize_proof_new(w, g, false, out, err);
	if (!rc)
		rc = rg_fold_graph(g, rg_optimize_plan_options(w, &po), err);
	if (!rc)
		rc = rg_proof_record(*out, g, err);
	rg_graph_free(g);
	return rc;
}

int rg_optimize_prove_passes(struct work *w, struct rg_error *err)
{
	struct rewriting t = { .w = w };
	int rc = make_proof(w, false, &t.proof, err);

	if (!rc)
		rc = rg_optimize_rewrite(&t, false, err);
	if (!rc && t.bad)
		rc = bisect(w, &t, t.proof, err);
	w->r->worst = fmax(w->r->worst, t.worst);
	rg_proof_free(t.proof);
	rg_optimize_rewriting_free(&t);
	return rc;
}

int rg_optimize_prove_file(struct work *w, const char *path, bool second, struct rg_error *err)
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
		rc = rg_fold_graph(g, rg_optimize_plan_options(w, &po), err);
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
