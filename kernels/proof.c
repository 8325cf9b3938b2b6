/*
 * See proof.h. Everything is allocated before the child starts: between fork and
 * _exit it may call next to nothing, since other threads may hold locks.
 */
#include "kernels/proof.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/proof-calls.h"

enum { LANES = 2, SECONDS = 3, MAX_PROOFS = 1024, GUARD_FLOATS = 64 };

/* ---- a call ---- */

struct trial {
	const struct rg_kernel *k, *ref;
	struct rg_node node;
	struct rg_attr attrs[RG_PROOF_ATTRS];
	struct rg_tensor in[RG_PROOF_INPUTS], out;
	/* The reference's outputs; the same of absolute values: the size of what is summed up. */
	float *want, *size, *got;
	void *prepared, *scratch;    /* for the kernel */
	size_t prepared_bytes, scratch_bytes, out_floats;
	bool packed;
};

/* Element i of an output, whose type is that of t->out: float32, int32 or bytes. */
static double element(const struct trial *t, const float *out, int64_t i)
{
	switch (t->out.dtype) {
	case RG_I32:
		return ((const int32_t *)out)[i];
	case RG_I8:
		return ((const int8_t *)out)[i];
	case RG_U8:
		return ((const uint8_t *)out)[i];
	default:
		return (double)out[i];
	}
}

/* Whole floats that an output takes. */
static size_t used_floats(const struct trial *t)
{
	return (t->out_floats * (size_t)rg_dtype_bits(t->out.dtype) / 8 + sizeof(float) - 1) / sizeof(float);
}

static const float canary = -1.2345e30f;

static void *room(size_t bytes)
{
	void *p = rg_alloc_aligned(64, bytes + 64);

	if (p)
		memset(p, 0, bytes + 64);
	return p;
}

static void close_trial(struct trial *t)
{
	for (int i = 0; i < t->node.n_in; i++)
		rg_free(t->in[i].data);
	rg_free(t->want);
	rg_free(t->size);
	rg_free(t->got);
	rg_free(t->prepared);
	rg_free(t->scratch);
}

static void describe(struct trial *t, const struct rg_proof_call *c)
{
	for (int a = 0; a < RG_PROOF_ATTRS && c->attrs[a].name; a++) {
		struct rg_attr *to = &t->attrs[t->node.n_attrs++];

		to->name = c->attrs[a].name;
		to->type = c->attrs[a].n < 0 ? RG_ATTR_STRING : c->attrs[a].n ? RG_ATTR_INTS : RG_ATTR_INT;
		to->s = c->attrs[a].s;
		to->s_len = to->s ? strlen(to->s) : 0;
		to->i = c->attrs[a].v[0];
		to->ints = c->attrs[a].v;
		to->count = c->attrs[a].n;
	}
}

static int infer(struct trial *t, struct rg_error *err)
{
	struct rg_value values[RG_PROOF_INPUTS] = { { 0 } };
	const struct rg_value *in[RG_PROOF_INPUTS];
	struct rg_infer c = { .node = &t->node, .in = in, .out = &t->out, .need_value = -1 };

	for (int i = 0; i < t->node.n_in; i++) {
		values[i].shaped = true;
		values[i].dtype = t->in[i].dtype;
		values[i].shape = t->in[i].shape;
		in[i] = &values[i];
	}
	return t->node.op->infer(&c, err);
}

static int run_reference(struct trial *t, float *out, struct rg_error *err)
{
	struct rg_tensor y = { t->out.dtype, t->out.shape, out };
	struct rg_call c = { .node = &t->node, .in = t->in, .out = &y };
	size_t bytes = t->ref->scratch_bytes ? t->ref->scratch_bytes(&c, 1) : 0;
	int rc;

	c.scratch = bytes ? room(bytes) : NULL;
	if (bytes && !c.scratch)
		return rg_error_nomem(err, bytes);
	rc = t->ref->run(&c, &rg_par_serial, err);
	rg_free(c.scratch);
	return rc;
}

/* As the planner sees it: data of weights only where `packed`. */
static struct rg_call planned(const struct trial *t, struct rg_tensor *in)
{
	memcpy(in, t->in, sizeof(t->in));
	for (int i = 0; i < t->node.n_in; i++)
		if (i == 0 || !t->packed)
			in[i].data = NULL;
	return (struct rg_call){ .node = &t->node, .in = in, .out = &t->out };
}

/* The same numbers each time, or their absolute values. */
static void fill(struct trial *t, const struct rg_proof_call *call, bool absolute)
{
	for (int i = 0; i < t->node.n_in; i++) {
		int64_t n = rg_shape_count(&t->in[i].shape);
		float *x = t->in[i].data;

		if (t->in[i].dtype != RG_F32) { /* any bytes; int32, a bias: what of it is small */
			for (int64_t k = 0; k < n; k++) {
				uint8_t b = (uint8_t)((uint64_t)(k + 7 * i) * 2654435761u >> 13);

				if (t->in[i].dtype == RG_I32)
					((int32_t *)t->in[i].data)[k] = b - 100;
				else
					((uint8_t *)t->in[i].data)[k] = b;
			}
			continue;
		}
		rg_rng_fill_f32(rg_rng_stream((uint64_t)i, t->node.op_type), call->positive ? 0.1f : -1,
				call->positive ? 1.1f : 1, x, (size_t)n);
		for (int64_t k = 0; k < n && absolute; k++)
			x[k] = fabsf(x[k]);
	}
}

static int open_trial(struct trial *t, const struct rg_kernel *k, const struct rg_proof_call *call, bool packed,
		      struct rg_error *err)
{
	static int slots[RG_PROOF_INPUTS];
	struct rg_tensor in[RG_PROOF_INPUTS];
	struct rg_call c;

	memset(t, 0, sizeof(*t));
	t->k = k;
	t->packed = packed;
	t->ref = rg_kernel_find(k->domain, k->op_type, "ref");
	t->node = (struct rg_node){ .name = "self-check", .op_type = k->op_type, .domain = k->domain ? k->domain : "",
				    .op = rg_op_find(k->domain ? k->domain : "", k->op_type), .n_in = call->n_in,
				    .n_out = 1, .in = slots, .out = slots, .attrs = t->attrs };
	t->node.version = call->version ? call->version : t->node.op->supported_to;
	describe(t, call);
	for (int i = 0; i < call->n_in; i++) {
		int64_t n;

		t->in[i].dtype = call->in[i].dtype != RG_UNDEFINED ? call->in[i].dtype : RG_F32;
		t->in[i].shape = rg_shape_of(call->in[i].rank, call->in[i].dim);
		n = rg_shape_count(&t->in[i].shape);
		t->in[i].data = room((size_t)n * sizeof(float));
		if (!t->in[i].data)
			return rg_error_nomem(err, (size_t)n * sizeof(float));
	}
	if (!t->ref || infer(t, err) ||
	    (t->out.dtype != RG_F32 && t->out.dtype != RG_I32 && t->out.dtype != RG_I8 && t->out.dtype != RG_U8))
		return rg_error_set(err, -ENOTSUP, "the operator takes no such call");
	t->out_floats = (size_t)rg_shape_count(&t->out.shape);
	t->want = room(t->out_floats * sizeof(float));
	t->size = room(t->out_floats * sizeof(float));
	t->got = room((t->out_floats + GUARD_FLOATS) * sizeof(float));
	if (!t->want || !t->size || !t->got)
		return rg_error_nomem(err, t->out_floats * sizeof(float));
	fill(t, call, true);
	if (run_reference(t, t->size, err))
		return err->code;
	fill(t, call, false);
	if (run_reference(t, t->want, err))
		return err->code;
	c = planned(t, in);
	if (k->prepared_bytes && (t->prepared_bytes = k->prepared_bytes(&c)) > 0)
		t->prepared = room(t->prepared_bytes);
	for (int lanes = 1; lanes <= LANES && k->scratch_bytes; lanes++) {
		size_t bytes = k->scratch_bytes(&c, lanes);

		t->scratch_bytes = bytes > t->scratch_bytes ? bytes : t->scratch_bytes;
	}
	if (t->scratch_bytes)
		t->scratch = room(t->scratch_bytes);
	if ((t->prepared_bytes && !t->prepared) || (t->scratch_bytes && !t->scratch))
		return rg_error_nomem(err, t->prepared_bytes + t->scratch_bytes);
	return 0;
}

/* ---- in the child ---- */

/* The last half first, on lane 1. */
static void run_halves(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg)
{
	if (n > 1)
		fn(arg, n / 2, n, 1);
	if (n > 0)
		fn(arg, 0, n > 1 ? n / 2 : n, 0);
}

/* Index of the first wrong element; -1: none; -2: it returned an error; -3: it wrote
 * past the end. */
static int64_t run_trial(struct trial *t, int lanes)
{
	const struct rg_par halves = { .lanes = LANES, .run = run_halves };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_PROOF_INPUTS], out = { t->out.dtype, t->out.shape, t->got };
	struct rg_call c = planned(t, in);

	c.prepared = t->prepared_bytes ? t->prepared : NULL;
	if (c.prepared && t->k->prepare(&c, t->prepared, &err))
		return -2;
	for (int i = 0; i < t->node.n_in; i++)
		in[i].data = c.prepared && t->packed && t->k->packs >> i & 1 ? NULL : t->in[i].data;
	c.out = &out;
	c.scratch = t->scratch_bytes ? t->scratch : NULL;
	for (size_t i = 0; i < t->out_floats + GUARD_FLOATS; i++)
		t->got[i] = canary;
	if (t->k->run(&c, lanes == 1 ? &rg_par_serial : &halves, &err))
		return -2;
	for (size_t i = used_floats(t); i < t->out_floats + GUARD_FLOATS; i++)
		if (t->got[i] != canary)
			return -3;
	return -1;
}

static int64_t first_wrong(const struct trial *t)
{
	float largest = 0;

	if (t->out.dtype != RG_F32) { /* exact */
		for (size_t i = 0; i < t->out_floats; i++)
			if (element(t, t->got, (int64_t)i) != element(t, t->want, (int64_t)i))
				return (int64_t)i;
		return -1;
	}
	/* States of recurrent operators are sums that cancel. */
	for (size_t i = 0; i < t->out_floats; i++)
		if (isfinite(t->want[i]) && fabsf(t->want[i]) > largest)
			largest = fabsf(t->want[i]);
	for (size_t i = 0; i < t->out_floats; i++) {
		float size = fabsf(t->want[i]) + (isfinite(t->size[i]) ? fabsf(t->size[i]) : 1);
		float bound = 1e-5f * size + 1e-6f * largest + 1e-30f;

		if (!(fabsf(t->got[i] - t->want[i]) <= bound) && !(isnan(t->got[i]) && isnan(t->want[i])))
			return (int64_t)i;
	}
	return -1;
}

/* What the child tells: it lies in memory that both share. */
struct verdict {
	int64_t wrong;
	double got, want;
	int lanes;
	bool done;
};

static void child(struct trial *t, struct verdict *v)
{
	alarm(SECONDS);
	for (int lanes = 1; lanes <= LANES && v->wrong == -1; lanes++) {
		v->lanes = lanes;
		v->wrong = run_trial(t, lanes);
		if (v->wrong == -1)
			v->wrong = first_wrong(t);
		if (v->wrong >= 0) {
			v->got = element(t, t->got, v->wrong);
			v->want = element(t, t->want, v->wrong);
		}
	}
	v->done = true;
	_exit(0);
}

/* ---- in the parent ---- */

static void judge(const struct trial *t, const struct verdict *v, int status, char *why, size_t size)
{
	char shape[160];

	rg_shape_text(shape, &t->out.shape);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, size, "it did not return from its self-check");
	else if (WIFSIGNALED(status))
		snprintf(why, size, "its self-check was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (!v->done)
		snprintf(why, size, "its self-check did not end");
	else if (v->wrong == -2)
		snprintf(why, size, "it returned an error in its self-check");
	else if (v->wrong == -3)
		snprintf(why, size, "it wrote past its output in its self-check");
	else if (v->wrong >= 0)
		snprintf(why, size, "in its self-check element %lld of %s is %.6g, not %.6g", (long long)v->wrong, shape,
			 v->got, v->want);
}

static void run_child(struct trial *t, char *why, size_t size)
{
	struct verdict *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (v == MAP_FAILED) {
		snprintf(why, size, "no memory for its self-check");
		return;
	}
	v->wrong = -1;
	pid = fork();
	if (pid == 0) {
		/* a handler of the program would report what is none of its own */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		signal(SIGALRM, SIG_DFL);
		child(t, v);
	}
	if (pid < 0) {
		snprintf(why, size, "no process could be started for its self-check");
	} else {
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				break;
		judge(t, v, status, why, size);
	}
	munmap(v, sizeof(*v));
}

/* Whether a call was taken; why[0] stays 0 when all is well. */
static bool check_call(const struct rg_kernel *k, const struct rg_proof_call *call, bool packed, char *why, size_t size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor in[RG_PROOF_INPUTS];
	struct rg_call c;
	struct trial t;
	bool taken;

	if (open_trial(&t, k, call, packed, &err)) {
		if (err.code != -ENOTSUP) /* else it is for another operator of that name or kind */
			snprintf(why, size, "its self-check could not be made: %.100s", err.message);
		close_trial(&t);
		return false;
	}
	c = planned(&t, in);
	taken = !k->supports || k->supports(&c);
	if (taken)
		run_child(&t, why, size);
	close_trial(&t);
	return taken;
}

static void prove(const struct rg_kernel *k, char *why, size_t size)
{
	const struct rg_op *op = rg_op_find(k->domain ? k->domain : "", k->op_type);
	const struct rg_proof_call *call;
	int taken = 0;

	why[0] = '\0';
	for (int i = 0; op && !why[0] && (call = rg_proof_call_at(op, i)); i++)
		for (int packed = 0; packed < 2 && !why[0]; packed++)
			taken += check_call(k, call, packed, why, size);
	if (!taken && !why[0])
		snprintf(why, size, "no built-in call for its self-check fits it");
}

/* ---- once a process ---- */

struct proof {
	const struct rg_kernel *k;
	char why[320]; /* "": it may be chosen */
};

static struct proof proofs[MAX_PROOFS];
static atomic_int n_proofs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct proof *find(const struct rg_kernel *k)
{
	int n = atomic_load_explicit(&n_proofs, memory_order_acquire);

	for (int i = 0; i < n; i++)
		if (proofs[i].k == k)
			return &proofs[i];
	return NULL;
}

const char *rg_kernel_refusal(const struct rg_kernel *k)
{
	const struct proof *p;
	int n;

	if (!(k->flags & RG_KERNEL_UNPROVEN))
		return NULL;
	p = find(k);
	if (!p) {
		pthread_mutex_lock(&lock);
		p = find(k);
		n = atomic_load(&n_proofs);
		if (!p && n < MAX_PROOFS) {
			proofs[n].k = k;
			prove(k, proofs[n].why, sizeof(proofs[n].why));
			p = &proofs[n];
			atomic_store_explicit(&n_proofs, n + 1, memory_order_release);
		}
		pthread_mutex_unlock(&lock);
	}
	return !p ? "there are too many kernels that need a self-check" : p->why[0] ? p->why : NULL;
}

void rg_proof_survey(uint32_t isa, struct rg_proof_summary *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *k = rg_kernel_at(i);

		if (!(k->flags & RG_KERNEL_UNPROVEN) || (k->isa & ~isa))
			continue;
		out->checked++;
		if (rg_kernel_refusal(k) && !out->refused++)
			out->first = k;
	}
}
