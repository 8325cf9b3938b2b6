/*
 * The harness finds what it is there to find: kernels that are broken in one way
 * each, never in the registry, and right ones that it must let pass.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"

/* Which bug the kernels below have. */
enum bug {
	NONE,
	OFF_BY_ONE_ELEMENT,      /* one is computed from its neighbour */
	ONE_LANE_WRONG,
	WRITES_PAST_END,
	WRITES_FAR_PAST_END,     /* into whatever lies there */
	WRITES_BEFORE,
	READS_PAST_END,
	READS_BEFORE,
	LEAVES_LAST,             /* not written */
	LEAVES_LAST_OF_LANE,
	LOSES_NAN,
	LOSES_DENORMALS,
	CHANGES_INPUT,
	NULL_POINTER,
	DIVIDES_BY_ZERO,
	ILLEGAL_INSTRUCTION,
	ABORTS,
	EXITS,
	NEVER_ENDS,
	RETURNS_ERROR,
	SUPPORTS_NOTHING,
	SCRATCH_PAST_END,
	SCRATCH_UNINITIALISED,
	PACKS_PAST_END,
	CHANGES_PACKED,
	READS_WHAT_IT_PACKED,    /* instead of its packed copy */
	DROPS_A_TERM,
	ADDS_A_TINY_TERM,        /* relative to the sum of magnitudes 1e-4 */
	SUMS_IN_HALF,
	NOT_IN_PLACE,            /* though it says so: it writes before it has read all */
};
/* Set before the child process of the harness starts. */
static enum bug bug;

/* ---- Relu ---- */

struct relu {
	float *x, *y, *scratch;
	int64_t n;
	int lanes;
};

static volatile int zero;

/* Their bugs are for the harness to find, not for a sanitizer. */
#define BUGGY __attribute__((no_sanitize("address", "undefined")))

BUGGY static void crash(void)
{
	switch (bug) {
	case NULL_POINTER: *(volatile int *)(uintptr_t)zero = 1; break;
	case DIVIDES_BY_ZERO: zero = 100 / zero; break;
	case ILLEGAL_INSTRUCTION: __builtin_trap();
	case ABORTS: abort();
	case EXITS: exit(7);
	case NEVER_ENDS:
		while (!zero)
			continue;
		break;
	default: break;
	}
}

BUGGY static void work_relu(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct relu *j = arg;
	float *keep = j->scratch + lane;

	for (int64_t i = begin; i < end; i++) {
		float v = j->x[i];

		if (bug == OFF_BY_ONE_ELEMENT && i == j->n / 2 && i > 0)
			v = j->x[i - 1];
		if (bug == LOSES_NAN)
			v = v > 0 ? v : 0;
		if (bug == LOSES_DENORMALS && fabsf(v) < 0x1p-126f)
			v = 0;
		if (bug == LEAVES_LAST && i == j->n - 1)
			break;
		if (bug == LEAVES_LAST_OF_LANE && i == end - 1 && lane > 0)
			break;
		v = v < 0 ? 0 : v;
		j->y[i] = bug == ONE_LANE_WRONG && lane == 1 ? v + 1 : v;
		*keep = v;
	}
	if (bug == SCRATCH_UNINITIALISED && begin < end)
		j->y[begin] += j->scratch[j->lanes] > 0 ? 1 : 0;
}

BUGGY static int run_relu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct relu j = { c->in[0].data, c->out[0].data, c->scratch, rg_shape_count(&c->in[0].shape), par->lanes };

	if (bug == RETURNS_ERROR)
		return rg_error_set(err, -EINVAL, "no such luck");
	crash();
	if (bug == NOT_IN_PLACE)
		memset(j.y, 0, (size_t)j.n * sizeof(float));
	par->run(par, j.n, 1, work_relu, &j);
	if (j.n < 1)
		return 0;
	if (bug == WRITES_PAST_END)
		j.y[j.n] = 0;
	if (bug == WRITES_FAR_PAST_END)
		j.y[j.n + 3000] = 0;
	if (bug == WRITES_BEFORE)
		j.y[-1] = 0;
	if (bug == READS_PAST_END)
		j.y[0] += ((volatile float *)j.x)[j.n] * 0;
	if (bug == READS_BEFORE)
		j.y[0] += ((volatile float *)j.x)[-1] * 0;
	if (bug == CHANGES_INPUT)
		j.x[0] += 1;
	if (bug == SCRATCH_PAST_END)
		j.scratch[par->lanes + 1] = 1;
	return 0;
}

static bool supports_relu(const struct rg_call *c)
{
	return bug != SUPPORTS_NOTHING;
}

/* One float a lane, and one that nobody writes. */
static size_t relu_scratch(const struct rg_call *c, int lanes)
{
	return ((size_t)lanes + 1) * sizeof(float);
}

static const struct rg_kernel relu = { .op_type = "Relu", .domain = "", .name = "fake", .rank = 1, .supports = supports_relu,
				       .in_place = 1, .scratch_bytes = relu_scratch, .run = run_relu };

/* ---- MatMul of plain matrices, with packed weights ---- */

static bool supports_matmul(const struct rg_call *c)
{
	return c->in[0].shape.rank == 2 && c->in[1].shape.rank == 2;
}

static size_t matmul_prepared(const struct rg_call *c)
{
	return c->in[1].data ? (size_t)rg_tensor_bytes(RG_F32, &c->in[1].shape) : 0;
}

BUGGY static int matmul_prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	size_t bytes = matmul_prepared(c);

	memcpy(prepared, c->in[1].data, bytes);
	if (bug == PACKS_PAST_END)
		((float *)prepared)[bytes / sizeof(float)] = 0;
	return 0;
}

BUGGY static int run_matmul(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const float *a = c->in[0].data, *b = c->prepared ? c->prepared : c->in[1].data;
	int64_t m = c->out[0].shape.dim[0], n = c->out[0].shape.dim[1], k = c->in[0].shape.dim[1];
	float *y = c->out[0].data;

	if (bug == READS_WHAT_IT_PACKED)
		b = c->in[1].data;
	if (bug == CHANGES_PACKED && c->prepared)
		((float *)c->prepared)[0] += 1;
	for (int64_t i = 0; i < m; i++) {
		for (int64_t j = 0; j < n; j++) {
			float sum = 0;

			for (int64_t t = bug == DROPS_A_TERM && k > 30; t < k; t++)
				sum += a[i * k + t] * b[t * n + j];
			if (bug == ADDS_A_TINY_TERM && k > 0)
				sum += 1e-4f * a[i * k] * b[j];
			if (bug == SUMS_IN_HALF)
				sum = rintf(sum * 1024) / 1024;
			y[i * n + j] = sum;
		}
	}
	return 0;
}

static const struct rg_kernel matmul = { .op_type = "MatMul", .domain = "", .name = "fake", .rank = 1, .supports = supports_matmul,
				       .prepared_bytes = matmul_prepared, .prepare = matmul_prepare, .packs = 2, .run = run_matmul };

/* ---- the tests ---- */

static void check(const struct rg_kernel *k, enum bug b, int seconds, struct ck_result *r)
{
	const struct ck_options opt = { .seed = 1, .cases = 120, .isa = UINT32_MAX, .seconds = seconds };

	bug = b;
	ck_check(k, &opt, r);
	bug = NONE;
}

static const struct {
	enum bug bug;
	const struct rg_kernel *k;
	const char *says;   /* in the message */
	const char *where;  /* in the call */
} bugs[] = {
	{ OFF_BY_ONE_ELEMENT, &relu, "the reference has", "1 lane" },
	{ ONE_LANE_WRONG, &relu, "the reference has", "lanes" },
	{ WRITES_PAST_END, &relu, "wrote outside of output 0", "" },
	{ WRITES_FAR_PAST_END, &relu, "", "" },
	{ WRITES_BEFORE, &relu, "wrote outside of output 0: byte -", "" },
	{ READS_PAST_END, &relu, "of input 0", "1 lane" },
	{ READS_BEFORE, &relu, "at byte -4 of input 0", "1 lane" },
	{ LEAVES_LAST, &relu, "the reference has", "" },
	{ LEAVES_LAST_OF_LANE, &relu, "the reference has", "lanes" },
	{ LOSES_NAN, &relu, "the reference has nan", "" },
	{ LOSES_DENORMALS, &relu, "the reference has", "" },
	{ CHANGES_INPUT, &relu, "changed one of its inputs", "" },
	{ NULL_POINTER, &relu, "crashed: Segmentation fault at address (nil)", "1 lane" },
	{ DIVIDES_BY_ZERO, &relu, "crashed: Floating point exception", "1 lane" },
	{ ILLEGAL_INSTRUCTION, &relu, "crashed: ", "1 lane" },
	{ ABORTS, &relu, "crashed: Aborted", "1 lane" },
	{ EXITS, &relu, "exit status 7", "1 lane" },
	{ NEVER_ENDS, &relu, "had not returned", "1 lane" },
	{ RETURNS_ERROR, &relu, "returned an error: no such luck", "" },
	{ SCRATCH_PAST_END, &relu, "wrote outside of its scratch", "" },
	{ SCRATCH_UNINITIALISED, &relu, "the reference has", "" },
	{ PACKS_PAST_END, &matmul, "wrote outside of what it packs", "weights known" },
	{ CHANGES_PACKED, &matmul, "", "weights known" },
	{ READS_WHAT_IT_PACKED, &matmul, "crashed: Segmentation fault", "weights known" },
	{ DROPS_A_TERM, &matmul, "the reference has", "" },
	{ ADDS_A_TINY_TERM, &matmul, "the reference has", "" },
	{ SUMS_IN_HALF, &matmul, "the reference has", "" },
	{ NOT_IN_PLACE, &relu, "the reference has", "1 lane, in place of input 0" },
};

static void test_finds_bugs(void **state)
{
	static struct ck_result r;

	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		check(bugs[i].k, bugs[i].bug, bugs[i].bug == NEVER_ENDS ? 1 : 0, &r);
		if (r.status != CK_FAILED)
			fail_msg("bug %d was not found in %d runs", bugs[i].bug, r.runs);
		if (!strstr(r.message, bugs[i].says) || !strstr(r.what, bugs[i].where))
			fail_msg("bug %d: \"%s\" for %s; \"%s\" and \"%s\" were expected", bugs[i].bug, r.message, r.what,
				 bugs[i].says, bugs[i].where);
		print_message("# %s: %s\n", r.what, r.message);
	}
}

static void test_passes_right_ones(void **state)
{
	static struct ck_result r;

	check(&relu, NONE, 0, &r);
	if (r.status != CK_PASSED)
		fail_msg("Relu: %s (%s)", r.message, r.what);
	/* on 1, 2 and 3 lanes, apart and over its input */
	assert_true(r.cases == 120 && r.runs == 720 && r.in_place == 360 && r.elements > 1000 && r.worst == 0);
	check(&matmul, NONE, 0, &r);
	if (r.status != CK_PASSED)
		fail_msg("MatMul: %s (%s)", r.message, r.what);
	assert_true(r.runs > 30 && r.worst > 0 && r.worst <= 1);
}

/* The number that a failure names makes the same failure again, alone. */
static void test_replays(void **state)
{
	struct ck_options opt = { .isa = UINT32_MAX, .cases = 1 };
	static struct ck_result first, again;

	check(&relu, OFF_BY_ONE_ELEMENT, 0, &first);
	assert_int_equal(first.status, CK_FAILED);
	opt.seed = first.seed;
	bug = OFF_BY_ONE_ELEMENT;
	ck_check(&relu, &opt, &again);
	bug = NONE;
	assert_string_equal(first.message, again.message);
	assert_string_equal(first.what, again.what);
}

/* Nothing compared is no pass. */
static void test_compares_nothing(void **state)
{
	static const struct ck_options none = { .seed = 1, .cases = 5, .isa = 0 };
	struct rg_kernel k = relu;
	static struct ck_result r;

	check(&relu, SUPPORTS_NOTHING, 0, &r);
	assert_int_equal(r.status, CK_SKIPPED);
	assert_non_null(strstr(r.message, "supports none of 120 calls"));
	k.isa = 1;
	ck_check(&k, &none, &r);
	assert_int_equal(r.status, CK_SKIPPED);
	assert_non_null(strstr(r.message, "needs"));
	k.isa = 0;
	k.op_type = "NoSuchOperator";
	ck_check(&k, &none, &r);
	assert_int_equal(r.status, CK_FAILED);
	assert_non_null(strstr(r.message, "add a family"));
}

/* Families make valid calls: references run them, and agree with themselves. */
static void test_families(void **state)
{
	const struct ck_family *f;
	int n;

	for (n = 0; (f = ck_family_at(n)); n++) {
		const struct rg_kernel *ref = rg_kernel_find(f->domain ? f->domain : "", f->op_type, "ref");
		const struct ck_options opt = { .seed = 1000, .cases = 30, .isa = UINT32_MAX };
		static struct ck_result r;

		assert_non_null(ref);
		ck_check(ref, &opt, &r);
		if (r.status != CK_PASSED)
			fail_msg("%s: %s (%s, seed %llu)", f->op_type, r.message, r.what, (unsigned long long)r.seed);
		assert_int_equal(r.cases, opt.cases);
		assert_true(r.worst == 0);
	}
	assert_true(n >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passes_right_ones), cmocka_unit_test(test_finds_bugs),
		cmocka_unit_test(test_replays),           cmocka_unit_test(test_compares_nothing),
		cmocka_unit_test(test_families),
	};

	return cmocka_run_group_tests_name("check-self", tests, NULL, NULL);
}
