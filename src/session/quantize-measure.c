/*
 * See quantize-work.h: what quantising costs, operator by operator and all together.
 *
 * Noise is found by running: the model as it is and with one operator quantised, on the same samples. At an operator's
 * own output up to KEPT numbers a sample are compared, evenly spaced; at the model's outputs all.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sqnr.h"
#include "session/quantize-work.h"

enum { KEPT = 16384, ALONE = 4 };

/* Every stride-th of n numbers. */
static int64_t stride_of(int64_t n)
{
	return (n + KEPT - 1) / KEPT > 1 ? (n + KEPT - 1) / KEPT : 1;
}

static bool has_noise(const struct rg_tensor *t)
{
	return t->dtype == RG_F32 && t->data && rg_shape_count(&t->shape) > 0;
}

static double least_db(const struct rg_sqnr *s, int n)
{
	double least = NAN;

	for (int i = 0; i < n; i++) {
		double db = rg_sqnr_db(&s[i]);

		if (!isnan(db) && (isnan(least) || db < least))
			least = db;
	}
	return least;
}

/* ---- operators alone ---- */

struct kept { float *v; int64_t n; };

/* What the float32 model makes of the samples that operators alone are measured on. */
struct exact {
	const struct quantize_work *w;
	int n_samples, sample;      /* how many, and which one runs */
	int *value;                 /* by site: its own output */
	struct kept *own;           /* site * n_samples + sample */
	struct kept *out;           /* output * n_samples + sample */
	bool failed;                /* out of memory */
};

static void keep(struct kept *k, const float *v, int64_t n, int64_t stride, bool *failed)
{
	if (k->v || n <= 0)
		return;
	k->n = (n + stride - 1) / stride;
	k->v = rg_alloc((size_t)k->n * sizeof(*k->v));
	if (!k->v) {
		*failed = true;
		return;
	}
	for (int64_t i = 0; i < k->n; i++)
		k->v[i] = v[i * stride];
}

static void see_own(void *ctx, int k, const float *v, int64_t n)
{
	struct exact *e = ctx;

	keep(&e->own[k * e->n_samples + e->sample], v, n, stride_of(n), &e->failed);
}

static int keep_outputs(struct exact *e, struct trial *t, struct rg_error *err)
{
	for (int i = 0; i < e->w->n_outputs; i++) {
		struct rg_tensor out = rg_exec_output(t->exec, i);

		if (has_noise(&out))
			keep(&e->out[i * e->n_samples + e->sample], out.data, rg_shape_count(&out.shape), 1, &e->failed);
	}
	return e->failed ? rg_error_nomem(err, KEPT * sizeof(float)) : 0;
}

static void exact_free(struct exact *e)
{
	for (int i = 0; e->own && i < e->w->sites.n * e->n_samples; i++)
		rg_free(e->own[i].v);
	for (int i = 0; e->out && i < e->w->n_outputs * e->n_samples; i++)
		rg_free(e->out[i].v);
	rg_free(e->own);
	rg_free(e->out);
	rg_free(e->value);
}

/* Samples for operators alone are spread over all. */
static int sample_at(const struct exact *e, int k)
{
	return (int)((int64_t)k * e->w->calibration.n / e->n_samples);
}

static int run_exact(struct quantize_work *w, struct exact *e, const struct rg_graph *g, struct rg_error *err)
{
	struct trial t = { .w = w, .n_watched = w->sites.n, .see = see_own, .ctx = e };
	size_t n = (size_t)e->n_samples;
	int rc = 0;

	e->value = rg_calloc((size_t)w->sites.n + 1, sizeof(*e->value));
	e->own = rg_calloc((size_t)w->sites.n * n + 1, sizeof(*e->own));
	e->out = rg_calloc((size_t)w->n_outputs * n + 1, sizeof(*e->out));
	if (!e->value || !e->own || !e->out)
		return rg_error_nomem(err, (size_t)w->sites.n * n * sizeof(*e->own));
	for (int i = 0; i < w->sites.n; i++)
		e->value[i] = w->sites.v[i].output >= 0 ? w->sites.v[i].output : g->nodes[w->sites.v[i].node].out[0];
	t.watched = e->value;
	for (int k = 0; k < e->n_samples && !rc; k++) {
		e->sample = k;
		rc = rg_trial_run(&t, &w->calibration, sample_at(e, k), err);
		if (!rc)
			rc = keep_outputs(e, &t, err);
	}
	rg_trial_free(&t);
	return rc;
}

struct compare { const struct kept *exact; struct rg_sqnr *s; };

static void see_quantised(void *ctx, int k, const float *v, int64_t n)
{
	const struct compare *c = ctx;
	int64_t stride = stride_of(n);

	for (int64_t i = 0; i < c->exact->n && i * stride < n; i++)
		rg_sqnr_add(c->s, &c->exact->v[i], &v[i * stride], 1);
}

static int measure_op(struct quantize_work *w, const struct exact *e, int site, bool *alone, struct rg_sqnr *outs,
		      struct rg_error *err)
{
	struct rg_sqnr own = { 0 };
	struct compare c = { .s = &own };
	struct trial t = { .w = w, .on = alone, .n_watched = 1, .watched = &e->value[site], .see = see_quantised,
			   .ctx = &c };
	int rc = 0;

	memset(outs, 0, ((size_t)w->n_outputs + 1) * sizeof(*outs));
	alone[site] = true;
	for (int k = 0; k < e->n_samples && !rc; k++) {
		c.exact = &e->own[site * e->n_samples + k];
		rc = rg_trial_run(&t, &w->calibration, sample_at(e, k), err);
		for (int i = 0; i < w->n_outputs && !rc; i++) {
			const struct kept *want = &e->out[i * e->n_samples + k];
			struct rg_tensor got = rg_exec_output(t.exec, i);

			if (has_noise(&got) && rg_shape_count(&got.shape) == want->n)
				rg_sqnr_add(&outs[i], want->v, got.data, (size_t)want->n);
		}
	}
	alone[site] = false;
	rg_trial_free(&t);
	w->r->ops[w->op[site]].own_db = rg_sqnr_db(&own);
	w->r->ops[w->op[site]].outputs_db = least_db(outs, w->n_outputs);
	return rc;
}

static void decide(struct quantize_work *w)
{
	for (int i = 0; i < w->sites.n; i++) {
		struct rg_quantized_op *op = &w->r->ops[w->op[i]];

		/* an output that is no float32 says nothing: the operator's own is what there is */
		double db = isnan(op->outputs_db) ? op->own_db : op->outputs_db;

		if (!w->on[i])
			continue;
		if (db < w->o->min_sqnr_db) {
			w->on[i] = false;
			op->why = "its error alone is too large";
		}
		op->quantized = w->on[i];
	}
}

int rg_quantize_measure_ops(struct quantize_work *w, struct rg_error *err)
{
	struct exact e = { .w = w, .n_samples = w->o->quick ? 1 : ALONE };
	bool *alone = rg_calloc((size_t)w->sites.n + 1, sizeof(*alone));
	struct rg_sqnr *outs = rg_calloc((size_t)w->n_outputs + 1, sizeof(*outs));
	struct rg_graph *g = NULL;
	int rc = alone && outs ? 0 : rg_error_nomem(err, (size_t)w->sites.n);

	if (e.n_samples > w->calibration.n)
		e.n_samples = w->calibration.n;
	w->r->n_alone = e.n_samples;
	if (!rc)
		rc = rg_trial_open_first(w, &g, err);
	if (!rc)
		rc = rg_quantize_measure_weights(w, g, err);
	if (!rc)
		rc = run_exact(w, &e, g, err);
	rg_graph_free(g);
	for (int i = 0; i < w->sites.n && !rc; i++) {
		rc = rg_quantize_tell(w, "each operator alone", (double)i / w->sites.n, err);
		if (!rc)
			rc = measure_op(w, &e, i, alone, outs, err);
	}
	if (!rc)
		decide(w);
	exact_free(&e);
	rg_free(alone);
	rg_free(outs);
	return rc;
}

/* ---- everything ---- */

/* What lies outside of the ranges, for each watched value. */
struct outside {
	struct rg_qparams *params;
	double *low, *high, *least, *most; /* the range that is not clipped; what was seen */
	int64_t *n, *out;
};

static void see_outside(void *ctx, int k, const float *v, int64_t n)
{
	struct outside *o = ctx;
	int64_t out = 0;

	for (int64_t i = 0; i < n; i++) {
		double x = (double)v[i];

		out += x < o->low[k] || x > o->high[k];
		o->least[k] = x < o->least[k] ? x : o->least[k];
		o->most[k] = x > o->most[k] ? x : o->most[k];
	}
	o->n[k] += n;
	o->out[k] += out;
}

static void outside_free(struct outside *o)
{
	rg_free(o->params);
	rg_free(o->low);
	rg_free(o->n);
}

static int outside_make(const struct quantize_work *w, struct outside *o, struct rg_error *err)
{
	size_t n = (size_t)w->n_watched + 1;
	struct rg_graph *g = NULL;
	int rc;

	o->low = rg_calloc(4 * n, sizeof(double));
	o->n = rg_calloc(2 * n, sizeof(int64_t));
	if (!o->low || !o->n)
		return rg_error_nomem(err, 4 * n * sizeof(double));
	o->high = o->low + n;
	o->least = o->high + n;
	o->most = o->least + n;
	o->out = o->n + n;
	rc = rg_trial_open_first(w, &g, err);
	for (int k = 0; k < w->n_watched && !rc; k++) {
		struct rg_qparams p = rg_quantize_params(g, &w->o->how, &w->sites, w->on, w->ranges, w->watched[k]);

		rg_qparams_range(&p, &o->low[k], &o->high[k]);
		o->least[k] = INFINITY;
		o->most[k] = -INFINITY;
		w->r->ranges[k].low = (p.least - p.zero) * (double)p.scale;
		w->r->ranges[k].high = (p.most - p.zero) * (double)p.scale;
	}
	rg_graph_free(g);
	return rc;
}

static int compare_all(struct quantize_work *w, const struct rg_samples *s, struct outside *o, const char *what,
		       double *db, struct rg_error *err)
{
	struct trial exact = { .w = w, .n_watched = w->n_watched, .watched = w->watched,
			       .see = w->n_watched ? see_outside : NULL, .ctx = o };
	struct trial all = { .w = w, .on = w->on };
	struct rg_sqnr *outs = rg_calloc((size_t)w->n_outputs + 1, sizeof(*outs));
	int rc = outs ? 0 : rg_error_nomem(err, (size_t)w->n_outputs * sizeof(*outs));

	for (int i = 0; i < s->n && !rc; i++) {
		rc = rg_quantize_tell(w, what, (double)i / s->n, err);
		if (!rc)
			rc = rg_trial_run(&exact, s, i, err);
		if (!rc)
			rc = rg_trial_run(&all, s, i, err);
		for (int k = 0; k < w->n_outputs && !rc; k++) {
			struct rg_tensor want = rg_exec_output(exact.exec, k), got = rg_exec_output(all.exec, k);

			if (has_noise(&want) && has_noise(&got) && rg_shape_equal(&want.shape, &got.shape))
				rg_sqnr_add(&outs[k], want.data, got.data, (size_t)rg_shape_count(&want.shape));
		}
	}
	if (!rc)
		*db = least_db(outs, w->n_outputs);
	rg_trial_free(&exact);
	rg_trial_free(&all);
	rg_free(outs);
	return rc;
}

static double share(const struct outside *o, int k)
{
	return o->n[k] ? (double)o->out[k] / (double)o->n[k] : (double)NAN;
}

/* The share of an operator is that of its activation that loses most. */
static void to_ops(struct quantize_work *w, bool valid)
{
	for (int i = 0; i < w->sites.n; i++) {
		const struct rg_quantize_site *s = &w->sites.v[i];
		struct rg_quantized_op *op = &w->r->ops[w->op[i]];
		double most = NAN;

		for (int k = 0; k < w->n_watched; k++) {
			double x = valid ? w->r->ranges[k].drifted : w->r->ranges[k].clipped;
			bool own = w->watched[k] == s->output;

			for (int a = 0; a < s->n_act; a++)
				own = own || w->watched[k] == s->act[a];
			if (own && !isnan(x) && !(x <= most))
				most = x;
		}
		*(valid ? &op->drifted : &op->clipped) = most;
	}
}

int rg_quantize_measure_all(struct quantize_work *w, struct rg_error *err)
{
	struct rg_quantized *r = w->r;
	struct outside o = { 0 };
	int rc = outside_make(w, &o, err);

	if (!rc)
		rc = compare_all(w, &w->calibration, &o, "all operators", &r->all_db, err);
	for (int k = 0; k < w->n_watched && !rc; k++)
		r->ranges[k].clipped = share(&o, k);
	if (!rc)
		to_ops(w, false);
	outside_free(&o);
	if (rc || !w->validation.n)
		return rc;
	o = (struct outside){ 0 };
	rc = outside_make(w, &o, err);
	if (!rc)
		rc = compare_all(w, &w->validation, &o, "validation data", &r->valid_db, err);
	for (int k = 0; k < w->n_watched && !rc; k++) {
		r->ranges[k].valid_low = o.least[k];
		r->ranges[k].valid_high = o.most[k];
		r->ranges[k].drifted = share(&o, k);
	}
	if (!rc)
		to_ops(w, true);
	outside_free(&o);
	return rc;
}

/* ---- the file ---- */

int rg_quantize_measure_file(struct quantize_work *w, const char *path, struct rg_error *err)
{
	struct trial exact = { .w = w }, all = { .w = w, .on = w->on }, file = { .w = w, .file = path };
	struct rg_sqnr *outs = rg_calloc(2 * (size_t)w->n_outputs + 1, sizeof(*outs));
	int rc = outs ? 0 : rg_error_nomem(err, (size_t)w->n_outputs * sizeof(*outs));
	double same;

	if (!rc)
		rc = rg_trial_run(&exact, &w->calibration, 0, err);
	if (!rc)
		rc = rg_trial_run(&all, &w->calibration, 0, err);
	if (!rc)
		rc = rg_trial_run(&file, &w->calibration, 0, err);
	for (int k = 0; k < w->n_outputs && !rc; k++) {
		struct rg_tensor want = rg_exec_output(exact.exec, k), got = rg_exec_output(file.exec, k);
		struct rg_tensor before = rg_exec_output(all.exec, k);

		if (!has_noise(&want) || !has_noise(&got) || !rg_shape_equal(&want.shape, &got.shape))
			continue;
		rg_sqnr_add(&outs[k], want.data, got.data, (size_t)rg_shape_count(&want.shape));
		rg_sqnr_add(&outs[w->n_outputs + k], before.data, got.data, (size_t)rg_shape_count(&want.shape));
	}
	if (!rc) {
		w->r->file_db = least_db(outs, w->n_outputs);
		same = least_db(outs + w->n_outputs, w->n_outputs);
		if (same < 60) {
			rg_error_set(err, -EDOM, "what was written computes something else than what was measured");
			rc = rg_error_hint(err, "nothing was kept; this is a mistake of ridge, please report it");
		}
	}
	rg_trial_free(&exact);
	rg_trial_free(&all);
	rg_trial_free(&file);
	rg_free(outs);
	return rc;
}
