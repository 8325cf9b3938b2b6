/*
 * builtin:gpt2 with its key-value cache: a sequence taken in two parts, the
 * second with the first's keys and values as its past, or token by token,
 * gives the logits, keys and values of the sequence taken at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "models/model.h"
#include "sys/cpu.h"
#include "tests/conformance/compare.h"

#define TOKENS 9
#define VOCABULARY 50257
#define CACHES 24
#define HEADS 12
#define HEAD_SIZE 64
/* The same sums in another order. */
#define RTOL 1e-3
#define ATOL 1e-4

static struct rg_error err;

struct result {
	int64_t seq, total;          /* tokens taken now, and with the past */
	float *logits;               /* [seq, VOCABULARY] */
	float *cache[CACHES];        /* [HEADS, total, HEAD_SIZE] */
};

static void must(int code, const char *what)
{
	if (code)
		fail_msg("%s: %s: %s", what, err.where, err.message);
}

static float *copy_of(const struct rg_tensor *t)
{
	size_t bytes = (size_t)rg_tensor_bytes(t->dtype, &t->shape);
	float *p = rg_alloc_aligned(64, bytes);

	assert_non_null(p);
	memcpy(p, t->data, bytes);
	return p;
}

static void result_free(struct result *r)
{
	rg_free(r->logits);
	for (int i = 0; i < CACHES; i++)
		rg_free(r->cache[i]);
}

/* Takes tokens [from, from + seq) with what `past` (NULL: none) left. */
static void take(int64_t from, int64_t seq, const struct result *past, struct result *r)
{
	struct rg_plan_options opt = { .lanes = 2 };
	struct rg_bindings b = { 0 };
	struct rg_model *m = NULL;
	struct rg_plan *plan = NULL;
	struct rg_exec *e = NULL;
	struct rg_cpu cpu;
	struct rg_tensor t;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	b.dims = rg_calloc(2, sizeof(*b.dims));
	assert_non_null(b.dims);
	b.n_dims = 2;
	b.dims[0].symbol = "seq";
	b.dims[0].value = seq;
	b.dims[1].symbol = "past";
	b.dims[1].value = past ? past->total : 0;
	must(rg_model_open("builtin:gpt2", &b, &m, &err), "rg_model_open");
	must(rg_model_bind(m, &b, &err), "rg_model_bind");
	must(rg_plan_make(m->graph, &opt, &plan, &err), "rg_plan_make");
	must(rg_exec_new(plan, NULL, &e, &err), "rg_exec_new");
	t = rg_exec_input(e, 0);
	for (int64_t i = 0; i < seq; i++)
		((int64_t *)t.data)[i] = rg_rng_integer(rg_rng_stream(1, "tokens"), (uint64_t)(from + i), 0,
							VOCABULARY - 1);
	for (int i = 0; past && i < CACHES; i++) {
		t = rg_exec_input(e, 1 + i);
		assert_int_equal(t.shape.dim[2], past->total);
		memcpy(t.data, past->cache[i], (size_t)rg_tensor_bytes(t.dtype, &t.shape));
	}
	must(rg_exec_run(e, &err), "rg_exec_run");
	r->seq = seq;
	r->total = seq + (past ? past->total : 0);
	t = rg_exec_output(e, 0);
	r->logits = copy_of(&t);
	for (int i = 0; i < CACHES; i++) {
		t = rg_exec_output(e, 1 + i);
		assert_int_equal(t.shape.dim[2], r->total);
		r->cache[i] = copy_of(&t);
	}
	rg_exec_free(e);
	rg_plan_free(plan);
	rg_model_free(m);
	rg_free(b.dims);
}

static void same(const float *got, const float *want, int64_t n, const char *what)
{
	for (int64_t i = 0; i < n; i++)
		if (!numbers_agree((double)got[i], (double)want[i], RTOL, ATOL))
			fail_msg("%s: element %" PRId64 " is %.9g, expected %.9g", what, i, (double)got[i],
				 (double)want[i]);
}

/* `got` ends where `whole` does. */
static void same_end(const struct result *got, const struct result *whole)
{
	assert_int_equal(got->total, whole->total);
	same(got->logits, whole->logits + (whole->seq - got->seq) * VOCABULARY, got->seq * VOCABULARY, "logits");
	for (int i = 0; i < CACHES; i++)
		same(got->cache[i], whole->cache[i], HEADS * got->total * HEAD_SIZE, "cache");
}

static void test_two_parts(void **state)
{
	struct result whole, first, second;

	take(0, TOKENS, NULL, &whole);
	take(0, 5, NULL, &first);
	/* What comes later is not seen: the first part's logits are those of the whole. */
	same(first.logits, whole.logits, 5 * VOCABULARY, "logits of the first part");
	take(5, TOKENS - 5, &first, &second);
	same_end(&second, &whole);
	result_free(&whole);
	result_free(&first);
	result_free(&second);
}

static void test_token_by_token(void **state)
{
	struct result whole, now, next;

	take(0, 4, NULL, &whole);
	take(0, 1, NULL, &now);
	for (int64_t i = 1; i < 4; i++) {
		take(i, 1, &now, &next);
		result_free(&now);
		now = next;
	}
	same_end(&now, &whole);
	result_free(&whole);
	result_free(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_parts),
		cmocka_unit_test(test_token_by_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
