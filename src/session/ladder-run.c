/* See ladder-run.h. */
#include "session/ladder-run.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/blas/blas.h"
#include "kernels/kernel.h"

const struct rg_ladder_name rg_ladder_names[RG_LADDER_RUNGS] = {
	{ "naive", "naive", false },	 { "ikj", "ikj", false },	       { "tiled", "tiled", false },
	{ "simd", "simd", false },	 { "ridge", NULL, false },	       { "openblas", NULL, false },
	{ "int8-scalar", "scalar", true }, { "int8-simd", "simd", true }, { "int8-blocked", "blocked", true },
	{ "int8-ridge", NULL, true },
};

const struct rg_ladder_name *rg_ladder_name_find(const char *rung)
{
	for (int i = 0; i < RG_LADDER_RUNGS; i++)
		if (strcmp(rg_ladder_names[i].rung, rung) == 0)
			return &rg_ladder_names[i];
	return NULL;
}

static int new_loop(struct rg_ladder_run *r, const char *level, const struct rg_ladder_data *d,
		    const struct rg_bench_machine *m, struct rg_error *err)
{
	const struct rg_ladder_shape *s = &d->shape;
	size_t c_bytes = (size_t)(s->m * s->n) * 4;
	void *c;

	for (int i = 0; i < rg_ladder_count(); i++) {
		const struct rg_ladder_rung *l = rg_ladder_at(i);

		if (l->int8 == r->name->int8 && strcmp(l->name, r->name->loop) == 0 && !(l->isa & ~m->isa) &&
		    (!level || strcmp(l->level, level) == 0))
			r->loop = l;
	}
	if (!r->loop) {
		snprintf(r->reason, sizeof(r->reason), "it needs vector instructions that are not there%s",
			 level ? ", or not allowed" : "");
		return 0;
	}
	r->kernel = r->loop->level;
	r->isa = r->loop->isa;
	c = rg_alloc_aligned(64, c_bytes);
	r->product = (struct rg_ladder_product){ .m = s->m, .k = s->k, .n = s->n, .c = c };
	if (!c)
		return rg_error_nomem(err, c_bytes);
	memset(c, 0xff, c_bytes); /* NaN, or -1: what is not written shows */
	r->product.a = r->name->int8 ? (const void *)d->a8 : d->a;
	r->product.b = r->name->int8 ? (const void *)d->b8 : d->b;
	if (r->loop->pack) {
		r->packed = rg_alloc_aligned(64, r->loop->pack_bytes(s->k, s->n));
		if (!r->packed)
			return rg_error_nomem(err, r->loop->pack_bytes(s->k, s->n));
		r->loop->pack(s->k, s->n, r->product.b, r->packed);
	}
	if (r->loop->wide_bytes) {
		r->wide = rg_alloc_aligned(64, r->loop->wide_bytes(s->m, s->k));
		if (!r->wide)
			return rg_error_nomem(err, r->loop->wide_bytes(s->m, s->k));
	}
	r->product.packed = r->packed;
	r->product.wide = r->wide;
	return 0;
}

static int new_bench(struct rg_ladder_run *r, const char *kernel, const struct rg_ladder_data *d,
		     const struct rg_bench_machine *m, const struct rg_session_options *o, struct rg_error *err)
{
	const struct rg_bench_case *c = r->name->int8 ? &d->int8 : &d->set.v[0];
	bool blas = strcmp(r->name->rung, "openblas") == 0;
	struct rg_session_options ours = *o;
	const char **without;
	struct rg_tensor to;
	int rc;

	if (blas && !rg_blas_available()) {
		snprintf(r->reason, sizeof(r->reason), "%.150s", rg_blas_describe());
		return 0;
	}
	without = rg_calloc((size_t)o->n_without + 1, sizeof(*without));
	if (!without)
		return rg_error_nomem(err, ((size_t)o->n_without + 1) * sizeof(*without));
	if (o->n_without)
		memcpy(without, o->without, (size_t)o->n_without * sizeof(*without));
	without[o->n_without] = "openblas"; /* ours means ours */
	ours.without = without;
	ours.n_without = o->n_without + 1;
	rc = blas ? rg_bench_run_new(c, m, o, "openblas", &r->bench, err) :
		    rg_bench_run_new(c, m, &ours, kernel, &r->bench, err);
	rg_free(without);
	if (rc)
		return rc;
	if (!r->bench.exec) {
		snprintf(r->reason, sizeof(r->reason), "the kernel %.60s does not run this", blas ? "openblas" : kernel);
		return 0;
	}
	r->kernel = rg_step_kernel_name(&r->bench.plan->steps[0]);
	r->isa = r->bench.plan->steps[0].kernel->isa;
	to = rg_exec_input(r->bench.exec, 0);
	memcpy(to.data, r->name->int8 ? (const void *)d->a8 : d->a, (size_t)rg_tensor_bytes(to.dtype, &to.shape));
	return 0;
}

int rg_ladder_run_new(const struct rg_ladder_name *name, const char *kernel, const struct rg_ladder_data *d,
		      const struct rg_bench_machine *m, const struct rg_session_options *o, const struct rg_par *par,
		      struct rg_ladder_run *r, struct rg_error *err)
{
	memset(r, 0, sizeof(*r));
	r->name = name;
	r->kernel = "";
	r->par = par;
	r->lanes = m->threads;
	return name->loop ? new_loop(r, kernel, d, m, err) : new_bench(r, kernel, d, m, o, err);
}

void rg_ladder_run_free(struct rg_ladder_run *r)
{
	rg_bench_run_free(&r->bench);
	rg_free(r->product.c);
	rg_free(r->packed);
	rg_free(r->wide);
	memset(r, 0, sizeof(*r));
}

/* Where lane `i` of the loops begins: whole blocks of rows for each. */
static int64_t row_of(const struct rg_ladder_run *r, int64_t i)
{
	int64_t at = r->product.m * i / r->lanes;

	return i == r->lanes ? r->product.m : at / 24 * 24;
}

static void rows(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_ladder_run *r = arg;

	r->loop->run(&r->product, row_of(r, begin), row_of(r, end));
}

int rg_ladder_run_call(struct rg_ladder_run *r, struct rg_error *err)
{
	if (!r->loop)
		return rg_exec_run(r->bench.exec, err);
	r->par->run(r->par, r->lanes, 1, rows, r);
	return 0;
}

const void *rg_ladder_run_result(struct rg_ladder_run *r)
{
	return r->loop ? r->product.c : rg_exec_output(r->bench.exec, 0).data;
}
