/*
 * Every operator of the mathematical families with random versions, types,
 * shapes, attributes and absent inputs: inference refuses or the reference runs
 * within its memory; and the registry as a whole. Most useful under a
 * sanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "graph/op-families.h"
#include "math-case.h"

enum { TRIES = 300 };

struct dice {
	uint64_t stream, at;
};

static int64_t roll(struct dice *d, int64_t lo, int64_t hi)
{
	return rg_rng_integer(d->stream, d->at++, lo, hi);
}

static void add_attrs(struct math_case *t, struct dice *d)
{
	static const char *const ints[] = {"axis",       "keepdims",
					   "transA",     "transB",
					   "broadcast",  "fmod",
					   "size",       "p",
					   "num_groups", "block_size",
					   "stash_type", "output_dtype",
					   "is_test",    "noop_with_empty_axes",
					   "spatial"};
	static const char *const equations[] = {"ij,jk->ik", "...i->...", "ii", "a...,b...",
						"i->ij",     ",->",       "abc"};
	int64_t list[3];

	for (int i = 0; i < 3; i++) {
		const char *name = ints[roll(d, 0, (int64_t)(sizeof(ints) / sizeof(ints[0])) - 1)];

		mc_int(t, name, roll(d, 0, 9) ? roll(d, -2, 4) : roll(d, INT64_MIN / 2, INT64_MAX / 2));
	}
	if (roll(d, 0, 1)) {
		for (int i = 0; i < 3; i++)
			list[i] = roll(d, -3, 3);
		mc_ints(t, "axes", (int)roll(d, 0, 3), list);
	}
	mc_string(t, "equation", equations[roll(d, 0, 6)]);
	mc_string(t, "direction", roll(d, 0, 1) ? "LEFT" : "RIGHT");
	mc_string(t, "reduction", roll(d, 0, 1) ? "none" : "mean");
}

/* Mostly one type and one shape with ones and zeros, so that many calls are valid. */
static void add_inputs(struct math_case *t, struct dice *d, int n)
{
	static const enum rg_dtype types[] = { RG_F32, RG_F64, RG_F16, RG_BF16, RG_I8, RG_U8, RG_I16, RG_U16,
					       RG_I32, RG_I64, RG_U32, RG_U64, RG_BOOL };
	enum rg_dtype main_type = types[roll(d, 0, 12)], type;
	int rank = (int)roll(d, 0, 4), r;
	int64_t dims[6], own[6];

	for (int k = 0; k < 6; k++)
		dims[k] = roll(d, 0, 3);
	for (int i = 0; i < n; i++) {
		if (roll(d, 0, 15) == 0) {
			mc_absent(t);
			continue;
		}
		type = roll(d, 0, 7) ? main_type : types[roll(d, 0, 12)];
		r = roll(d, 0, 3) ? rank : (int)roll(d, 0, 5);
		for (int k = 0; k < r; k++)
			own[k] = roll(d, 0, 5) ? dims[k] : roll(d, 0, 3);
		mc_in_random(t, type, r, own, 0, 4);
		/* the input that Reduce and the losses read as integers */
		if (i == 1 && roll(d, 0, 3) == 0)
			t->variable[1] = true;
	}
}

static int try_op(const struct rg_op *op, int seed)
{
	struct dice d = { .stream = rg_rng_stream((uint64_t)seed, op->name) };
	int n_versions = 0, max_in = op->max_in < 0 ? 3 : op->max_in, rc;
	struct math_case t;

	while (n_versions < RG_OP_MAX_VERSIONS && op->versions[n_versions])
		n_versions++;
	mc_start(&t, op->name, op->versions[roll(&d, 0, n_versions - 1)]);
	add_attrs(&t, &d);
	add_inputs(&t, &d, (int)roll(&d, op->min_in, max_in));
	rc = mc_run(&t, (int)roll(&d, op->min_out, op->max_out));
	if (rc && rc != -ENOSYS)
		assert_true(t.err.code == rc && t.err.message[0]);
	mc_free(&t);
	return rc == 0;
}

static void test_random_calls(void **state)
{
	static const struct {
		const struct rg_op *ops;
		const int *n;
	} families[] = {
		{ rg_ops_math, &rg_n_ops_math },     { rg_ops_logic, &rg_n_ops_logic },
		{ rg_ops_reduce, &rg_n_ops_reduce }, { rg_ops_norm, &rg_n_ops_norm },
		{ rg_ops_gemm, &rg_n_ops_gemm },     { rg_ops_quant, &rg_n_ops_quant },
		{ rg_ops_loss, &rg_n_ops_loss },
	};
	int ran = 0;

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
		for (int i = 0; i < *families[f].n; i++)
			for (int seed = 0; seed < TRIES; seed++)
				ran += try_op(&families[f].ops[i], seed);
	assert_true(ran > 6000); /* not everything was refused */
}

/* What is prepared there is what attributes say (a pattern, n-grams), not weights. */
static bool reads_attributes(const char *op)
{
	return strcmp(op, "RegexFullMatch") == 0 || strcmp(op, "TfIdfVectorizer") == 0;
}

/* Each name once, each kernel for an operator of the table, each run() there. */
static void test_registry(void **state)
{
	int n = rg_kernel_count();

	assert_true(n > 0);
	assert_null(rg_kernel_at(-1));
	assert_null(rg_kernel_at(n));
	for (int i = 0; i < n; i++) {
		const struct rg_kernel *k = rg_kernel_at(i);

		assert_non_null(k);
		assert_non_null(k->run);
		if (!rg_op_find(k->domain, k->op_type))
			fail_msg("kernel %s is for %s, which is no operator", k->name, k->op_type);
		if (rg_kernel_find(k->domain, k->op_type, k->name) != k)
			fail_msg("%s of %s is there twice", k->name, k->op_type);
		if (!rg_kernel_find(k->domain, k->op_type, "ref"))
			fail_msg("%s has %s but no reference", k->op_type, k->name);
		if (!strcmp(k->name, "ref"))
			assert_true(k->rank == 0 && k->isa == 0 && (!k->prepare || reads_attributes(k->op_type)));
	}
	assert_null(rg_kernel_find("", "Add", "no such kernel"));
	assert_ptr_equal(rg_kernel_find("ai.onnx", "Add", "ref"), rg_kernel_find("", "Add", "ref"));
}

static void test_select(void **state)
{
	const struct rg_kernel *best;
	struct math_case t;
	struct rg_call c = { .node = &t.node, .in = t.in, .out = t.out };

	mc_start(&t, "MatMul", 13);
	mc_in(&t, RG_I64, 2, MC_DIMS(2, 3));
	mc_in(&t, RG_I64, 2, MC_DIMS(3, 2));
	mc_must_run(&t, 1);
	best = rg_kernel_select(&c, 0);
	assert_non_null(best);
	assert_string_equal(best->name, "ref"); /* nothing else multiplies int64 */
	for (int i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *k = rg_kernel_at(i);

		if (!strcmp(k->op_type, "MatMul") && k->isa == 0 && (!k->supports || k->supports(&c)))
			assert_true(k->rank <= best->rank);
	}
	t.node.op_type = "NoSuchOperator";
	assert_null(rg_kernel_select(&c, 0xffffffffu));
	mc_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_calls),
		cmocka_unit_test(test_registry),
		cmocka_unit_test(test_select),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
