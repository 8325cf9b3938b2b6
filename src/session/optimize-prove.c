/* See optimize-prove.h. */
#include "session/optimize-prove.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "session/inputs.h"
#include "sys/cpu.h"
#include "sys/topology.h"

enum { N_SETS = 6 };

/* Large inputs amplify roundings: exponentials are near their ends, sums cancel. */
static const struct { const char *name; double slack;
} sets[N_SETS] = {
    {"seeded", 1}, {"all zeros", 1}, {"all ones", 1}, {"large", 5}, {"tiny", 1}, {"denormal", 1},
};

/* Everything that an output holds, sequences one after the other. */
struct kept {
	int n;
	struct rg_tensor *t;
};

struct rg_proof {
	int n_sets, n_inputs, n_outputs;
	struct rg_tensor *seeded;
	struct kept *want;          /* N_SETS times n_outputs */
	uint64_t threads;
	uint32_t isa;
};

int rg_proof_new(const struct rg_graph *g, const struct rg_session_options *o, bool seeded_only,
		 struct rg_proof **out, struct rg_error *err)
{
	struct rg_proof *p = rg_calloc(1, sizeof(*p));
	struct rg_topology topo;
	struct rg_cpu cpu;

	*out = NULL;
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	rg_cpu_detect("", &cpu);
	rg_topology_read("", &topo);
	p->isa = cpu.isa;
	p->threads = (uint64_t)(o->threads ? o->threads : rg_topology_default_threads(&topo));
	p->n_sets = seeded_only ? 1 : N_SETS;
	p->n_inputs = g->n_inputs;
	p->n_outputs = g->n_outputs;
	p->want = rg_calloc((size_t)N_SETS * (size_t)g->n_outputs + 1, sizeof(*p->want));
	if (!p->want)
		rg_error_nomem(err, (size_t)g->n_outputs * sizeof(*p->want));
	else
		rg_inputs_make(g, o, &p->seeded, NULL, err);
	if (err->code) {
		rg_proof_free(p);
		return err->code;
	}
	*out = p;
	return 0;
}

static void drop_kept(struct kept *k)
{
	for (int i = 0; i < k->n; i++)
		rg_free(k->t[i].data);
	rg_free(k->t);
	*k = (struct kept){ 0 };
}

void rg_proof_free(struct rg_proof *p)
{
	if (!p)
		return;
	for (int i = 0; p->want && i < N_SETS * p->n_outputs; i++)
		drop_kept(&p->want[i]);
	rg_free(p->want);
	rg_inputs_free(p->seeded, p->n_inputs, NULL);
	rg_free(p);
}

/* Element i of an input in this set. */
static double edge(int set, double seeded)
{
	switch (set) {
	case 1: return 0;
	case 2: return 1;
	case 3: return 100 * seeded;
	case 4: return 1e-12 * seeded;
	case 5: return 1e-40 * seeded;
	default: return seeded;
	}
}

static void fill(struct rg_tensor *to, const struct rg_tensor *seeded, int set)
{
	int64_t n = rg_shape_count(&to->shape), bytes = rg_tensor_bytes(to->dtype, &to->shape);

	if (bytes > 0)
		memcpy(to->data, seeded->data, (size_t)bytes);
	if (set == 0)
		return;
	for (int64_t i = 0; i < n; i++) {
		if (to->dtype == RG_F32)
			((float *)to->data)[i] = (float)edge(set, (double)((float *)to->data)[i]);
		else if (to->dtype == RG_F64)
			((double *)to->data)[i] = edge(set, ((double *)to->data)[i]);
		else if (to->dtype == RG_F16)
			((uint16_t *)to->data)[i] =
			    rg_f32_to_f16((float)edge(set, (double)rg_f16_to_f32(((uint16_t *)to->data)[i])));
	}
}

static int keep_tensor(struct kept *k, const struct rg_tensor *t, struct rg_error *err)
{
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);

	k->t[k->n] = *t;
	k->t[k->n].data = NULL;
	/* text is compared by its shape: no pass touches it */
	if (bytes > 0 && t->dtype != RG_STRING) {
		k->t[k->n].data = rg_alloc_aligned(64, (size_t)bytes);
		if (!k->t[k->n].data)
			return rg_error_nomem(err, (size_t)bytes);
		memcpy(k->t[k->n].data, t->data, (size_t)bytes);
	}
	k->n++;
	return 0;
}

static int keep_output(struct rg_exec *e, int i, struct kept *k, struct rg_error *err)
{
	const struct rg_item *item = rg_exec_output_item(e, i);
	struct rg_tensor t = rg_exec_output(e, i);
	int n = item && item->kind == RG_ITEM_SEQUENCE ? item->n : t.dtype != RG_UNDEFINED, rc = 0;

	k->t = rg_calloc((size_t)n + 1, sizeof(*k->t));
	if (!k->t)
		return rg_error_nomem(err, (size_t)n * sizeof(*k->t));
	if (n && t.dtype != RG_UNDEFINED && !(item && item->kind == RG_ITEM_SEQUENCE))
		return keep_tensor(k, &t, err);
	for (int j = 0; j < n && !rc; j++)
		rc = item->v[j]->kind == RG_ITEM_TENSOR ? keep_tensor(k, &item->v[j]->t, err) : 0;
	return rc;
}

static bool is_stopped(void *ctx)
{
	return rg_session_interrupted();
}

struct runner {
	struct rg_plan *plan;
	struct rg_exec *exec;
};

static void runner_free(struct runner *r)
{
	rg_exec_free(r->exec);
	rg_plan_free(r->plan);
}

/* Sequences and optionals are given empty, as everywhere. */
static int give_empty(struct rg_exec *e, const struct rg_graph *g, int i, struct rg_error *err)
{
	const struct rg_value *v = &g->values[g->inputs[i]];
	struct rg_item *item = v->kind == RG_VALUE_SEQUENCE
				   ? rg_item_sequence(v->declared_dtype, 0, NULL, err)
				   : rg_item_none(err);
	int rc;

	if (!item)
		return err->code;
	rc = rg_exec_set_input(e, i, item, err);
	rg_item_unref(item);
	return rc;
}

static int runner_make(const struct rg_proof *p, struct rg_graph *g, struct runner *r, struct rg_error *err)
{
	struct rg_plan_options po = { .lanes = (int)p->threads, .isa = p->isa, .any_value = true,
				      .keep_branches = true };
	struct rg_exec_options xo = { .stop = is_stopped };
	int rc = rg_plan_make(g, &po, &r->plan, err);

	if (!rc)
		rc = rg_exec_new(r->plan, &xo, &r->exec, err);
	for (int i = 0; i < g->n_inputs && !rc; i++)
		if (g->values[g->inputs[i]].kind != RG_VALUE_TENSOR)
			rc = give_empty(r->exec, g, i, err);
	return rc;
}

static int run_set(const struct rg_proof *p, const struct rg_graph *g, struct runner *r, int set,
		   struct kept *out, struct rg_error *err)
{
	int rc = 0;

	for (int i = 0; i < p->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(r->exec, i);

		if (t.data && g->values[g->inputs[i]].kind == RG_VALUE_TENSOR)
			fill(&t, &p->seeded[i], set);
	}
	rc = rg_exec_run(r->exec, err);
	for (int i = 0; i < p->n_outputs && !rc; i++)
		rc = keep_output(r->exec, i, &out[i], err);
	return rc ? rg_error_at(err, "inputs %s", sets[set].name) : 0;
}

int rg_proof_record(struct rg_proof *p, struct rg_graph *g, struct rg_error *err)
{
	struct runner r = { 0 };
	int rc = runner_make(p, g, &r, err);

	for (int set = 0; set < p->n_sets && !rc; set++)
		rc = run_set(p, g, &r, set, &p->want[set * p->n_outputs], err);
	runner_free(&r);
	return rc;
}

/* ---- comparing ---- */

static double allowed_for(enum rg_dtype t)
{
	switch (t) {
	case RG_F64: return 1e-9;
	case RG_F32: return 1e-3;
	case RG_F16: return 1e-2;
	case RG_BF16: return 5e-2;
	default: return 0; /* integers: equal */
	}
}

static double element(const struct rg_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case RG_F64: return ((const double *)t->data)[i];
	case RG_F32: return (double)((const float *)t->data)[i];
	case RG_F16: return (double)rg_f16_to_f32(((const uint16_t *)t->data)[i]);
	default: return (double)rg_bf16_to_f32(((const uint16_t *)t->data)[i]);
	}
}

/* By how much a tensor is off, of its largest number. */
static double off_by(const struct rg_tensor *want, const struct rg_tensor *got)
{
	int64_t n = rg_shape_count(&want->shape), bytes = rg_tensor_bytes(want->dtype, &want->shape);
	double largest = 1e-30, off = 0;

	if (want->dtype != got->dtype || !rg_shape_equal(&want->shape, &got->shape))
		return INFINITY;
	if (allowed_for(want->dtype) == 0)
		return want->dtype != RG_STRING && bytes > 0 && memcmp(want->data, got->data, (size_t)bytes)
			   ? INFINITY
			   : 0;
	for (int64_t i = 0; i < n; i++) {
		double a = element(want, i);

		if (isfinite(a) && fabs(a) > largest)
			largest = fabs(a);
	}
	for (int64_t i = 0; i < n; i++) {
		double a = element(want, i), b = element(got, i);

		if (isnan(a) && isnan(b))
			continue;
		if (!isfinite(a) || !isfinite(b)) {
			if (!(a == b))
				return INFINITY;
			continue;
		}
		off = fmax(off, fabs(a - b) / largest);
	}
	return off;
}

static void compare(const struct kept *want, const struct kept *got, const char *output, int set,
		    struct rg_difference *d)
{
	const char *inputs = sets[set].name;

	for (int i = 0; i < want->n && !d->wrong; i++) {
		double off = got->n == want->n ? off_by(&want->t[i], &got->t[i]) : INFINITY;
		double allowed = sets[set].slack * allowed_for(want->t[i].dtype);

		if (sets[set].slack <= 1)
			d->worst = fmax(d->worst, off);
		if (d->output && !(off > d->off) && !(off > allowed))
			continue;
		*d = (struct rg_difference){ off, allowed, d->worst, off > allowed, output, inputs };
	}
	if (got->n != want->n && !d->wrong)
		*d = (struct rg_difference){ INFINITY, 0, INFINITY, true, output, inputs };
}

int rg_proof_hold(struct rg_proof *p, struct rg_graph *g, struct rg_difference *d, struct rg_error *err)
{
	struct kept *got = rg_calloc((size_t)p->n_outputs + 1, sizeof(*got));
	struct runner r = { 0 };
	int rc = got ? runner_make(p, g, &r, err) : rg_error_nomem(err, (size_t)p->n_outputs * sizeof(*got));

	*d = (struct rg_difference){ 0 };
	for (int set = 0; set < p->n_sets && !rc && !d->wrong; set++) {
		rc = run_set(p, g, &r, set, got, err);
		for (int i = 0; i < p->n_outputs; i++) {
			if (!rc && !d->wrong)
				compare(&p->want[set * p->n_outputs + i], &got[i],
					g->values[g->outputs[i]].name, set, d);
			drop_kept(&got[i]);
		}
	}
	runner_free(&r);
	rg_free(got);
	return rc;
}
