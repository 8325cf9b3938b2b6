/*
 * What holds at every size: the model is rewritten at two, and nodes, sizes and passes that make the
 * results differ are left as they are, fixed, or left out, until they do not.
 */
#include "session/optimize-work.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "compile/opset.h"

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

/* Rewrites at the second sizes; *stage: where it parts from `a`. */
static int compare_second(struct work *w, const struct rewriting *a, int *stage, const struct rg_pass **pass,
			  struct rg_error *err)
{
	struct rewriting b = { .w = w };
	int rc = rg_optimize_rewrite(&b, true, err);

	if (!rc) {
		*stage = first_difference(a, &b);
		*pass = *stage > 0 ? blamed(a, &b, *stage) : NULL;
	}
	rg_optimize_rewriting_free(&b);
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
		if (rg_optimize_can_take(w, true, err))
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
	if (!rc && rg_optimize_varies(w))
		rc = rg_optimize_can_take(w, true, err) ? compare_second(w, a, &stage, &pass, err)
							: (stage = 0, err->code);
	for (int i = 0; i < s->n && !rc && stage >= 0; i++) {
		s->v[i].second = s->v[i].first;
		s->v[i].why = s->v[i].fixed ? s->v[i].why : "what was rewritten depends on it, with others";
		s->v[i].fixed = true;
	}
	rg_free(second);
	return rc;
}

int rg_optimize_settle(struct work *w, struct rewriting *a, struct rg_error *err)
{
	for (;;) {
		const struct rg_pass *pass = NULL;
		int stage = -1, found = 0, rc;
		int64_t opset = 0;

		*a = (struct rewriting){ .w = w, .check_opset = true };
		rc = rg_optimize_rewrite(a, false, err);
		if (rc)
			return rc;
		if (a->bad) {
			rc = leave_out(w, a->bad, a->opset_reason, err);
			rg_optimize_rewriting_free(a);
			if (rc)
				return rc;
			continue;
		}
		rc = rg_opset_needed(a->g, &opset, err);
		if (rc)
			return rc;
		if (opset > w->opset) {
			w->opset = opset;
			rg_optimize_rewriting_free(a);
			continue;
		}
		if (!rg_optimize_varies(w))
			return 0;
		rc = compare_second(w, a, &stage, &pass, err);
		if (rc || stage < 0)
			return rc;
		if (stage > 0 && w->r->sizes_given)
			return fix_what_matters(w, a, err);
		rg_optimize_rewriting_free(a);
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
		rc = rg_optimize_pin_dependent(w, stage, &found, err);
		if (!rc && !found)
			rc = leave_out(w, pass,
				       "what it rewrites depends on sizes that the file leaves open; --shape "
				       "or --dim fix them",
				       err);
		if (rc)
			return rc;
	}
}
