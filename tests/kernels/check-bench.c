/*
 * Times variants against the reference: one thread, in turns, medians. See check.h.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { ROUNDS = 15, MAX_CALLS = 64 };
/* Once is enough for what takes this long. */
#define LONG_NS 200000000

struct timed {
	const struct rg_kernel *k;
	struct rg_call c;
	void *prepared, *scratch;
	uint64_t ns[ROUNDS];
	int n;
};

static void *room(size_t bytes)
{
	void *p = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;

	if (bytes && !p)
		abort();
	if (p)
		memset(p, 0, bytes);
	return p;
}

/* false: it does not support the call. */
static bool open_timed(struct nn_case *t, const struct rg_kernel *k, struct timed *out)
{
	struct rg_tensor planned[NN_MAX_IO];
	struct rg_call plan = { .node = &t->node, .in = planned, .out = t->out };
	struct rg_error err = RG_ERROR_INIT;
	size_t prepared;

	memset(out, 0, sizeof(*out));
	memcpy(planned, t->in, sizeof(planned));
	for (int i = 0; i < t->node.n_in; i++)
		if (!((t->known | t->weights) >> i & 1))
			planned[i].data = NULL;
	if (k->supports && !k->supports(&plan))
		return false;
	out->k = k;
	out->c = (struct rg_call){ .node = &t->node, .in = t->in, .out = t->out };
	prepared = k->prepared_bytes ? k->prepared_bytes(&plan) : 0;
	out->c.prepared = out->prepared = room(prepared);
	if (prepared && k->prepare(&plan, out->prepared, &err))
		return false;
	out->c.scratch = out->scratch = room(k->scratch_bytes ? k->scratch_bytes(&plan, 1) : 0);
	return true;
}

static void close_timed(struct timed *t)
{
	free(t->prepared);
	free(t->scratch);
}

/* So many calls that the clock's grain does not matter. */
static int run_once(struct timed *t, struct rg_error *err)
{
	uint64_t start, took;
	int calls = 0, rc;

	if (t->n && t->ns[0] > LONG_NS)
		return 0;
	start = rg_clock_now_ns();
	do {
		rc = t->k->run(&t->c, &rg_par_serial, err);
		took = rg_clock_now_ns() - start;
		calls++;
	} while (!rc && took < 2000000 && calls < MAX_CALLS);
	t->ns[t->n++] = took / (uint64_t)calls;
	return rc;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(struct timed *t)
{
	qsort(t->ns, (size_t)t->n, sizeof(t->ns[0]), compare_ns);
	return (double)t->ns[t->n / 2];
}

static int64_t flops(const struct nn_case *t)
{
	const struct rg_cost_in in = { .node = &t->node, .in = t->in, .out = t->out };
	struct rg_cost cost;

	rg_op_cost(t->node.op, &in, &cost);
	return cost.flops;
}

static int time_call(struct nn_case *t, const struct rg_kernel *k)
{
	const struct rg_kernel *ref = rg_kernel_find(k->domain, k->op_type, "ref");
	struct rg_error err = RG_ERROR_INIT;
	struct timed ours, theirs;
	double ns, ref_ns;
	char rate[24] = "-";
	int rc = 0;

	if (!ref || !open_timed(t, ref, &theirs))
		return -1;
	if (!open_timed(t, k, &ours)) {
		close_timed(&theirs);
		return 0;
	}
	/* the first of each touches memory and caches, and does not count */
	rc = ours.k->run(&ours.c, &rg_par_serial, &err);
	for (int i = 0; i < ROUNDS && !rc; i++) {
		rc = run_once(&ours, &err);
		if (!rc)
			rc = run_once(&theirs, &err);
	}
	if (!rc) {
		ns = median(&ours);
		ref_ns = median(&theirs);
		if (flops(t) > 0)
			snprintf(rate, sizeof(rate), "%.2f", (double)flops(t) / ns);
		printf("%-18s %-16s %14.0f ns %9s GFLOP/s %8.1fx  %s\n", k->op_type, k->name, ns, rate, ref_ns / ns,
		       t->what);
		fflush(stdout);
	} else {
		fprintf(stderr, "%s %s: %s\n", k->op_type, k->name, err.message);
	}
	close_timed(&ours);
	close_timed(&theirs);
	return rc;
}

int ck_bench(const struct rg_kernel *k, uint32_t isa)
{
	const struct ck_family *f = ck_family_find(k->domain, k->op_type);
	int rc = 0;

	if (!f || !f->bench || (k->isa & ~isa))
		return 0;
	for (int i = 0; !rc; i++) {
		static struct nn_case t;
		struct rg_error err = RG_ERROR_INIT;
		void *out[NN_MAX_IO] = { 0 };

		nn_start_in(&t, k->domain ? k->domain : "", k->op_type,
			    rg_op_find(k->domain ? k->domain : "", k->op_type)->supported_to);
		if (!f->bench(&t, i)) {
			nn_free(&t);
			return 0;
		}
		rc = nn_infer(&t, t.n_out ? t.n_out : 1, &err);
		for (int o = 0; o < t.node.n_out && !rc; o++)
			t.out[o].data = out[o] = room((size_t)rg_tensor_bytes(t.out[o].dtype, &t.out[o].shape) + 1);
		rc = rc ? rc : time_call(&t, k);
		if (rc)
			fprintf(stderr, "%s: %s\n", t.what, err.message);
		for (int o = 0; o < NN_MAX_IO; o++)
			free(out[o]);
		nn_free(&t);
	}
	return rc;
}
