/*
 * Kernels that no test machine has run: each of these fakes has the highest rank of
 * its operator, and only those that pass their self-check may be chosen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/plan.h"
#include "kernels/proof.h"
#include "session/session.h"
#include "sys/cpu.h"
#include "tests/compile/make-graph.h"

/* ---- the fakes ---- */

static int run_as_ref(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_kernel_find(c->node->domain, c->node->op_type, "ref")->run(c, par, err);
}

static int run_wrong(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = run_as_ref(c, par, err);

	((float *)c->out[0].data)[rg_shape_count(&c->out[0].shape) - 1] += 0.01f;
	return rc;
}

static int run_crash(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	__builtin_trap();
}

static int run_past_end(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = run_as_ref(c, par, err);

	((float *)c->out[0].data)[rg_shape_count(&c->out[0].shape)] = 0;
	return rc;
}

static int run_for_ever(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	static volatile int go = 1;

	while (go)
		continue;
	return 0;
}

static int run_error(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "no");
}

static void spoil(void *arg, int64_t begin, int64_t end, int lane)
{
	float *y = arg;

	if (lane == 1)
		y[begin] += 1;
}

static int run_lane_wrong(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = run_as_ref(c, par, err);

	par->run(par, rg_shape_count(&c->out[0].shape), 1, spoil, c->out[0].data);
	return rc;
}

static size_t packed_bytes(const struct rg_call *c)
{
	return c->in[1].data ? (size_t)rg_tensor_bytes(RG_F32, &c->in[1].shape) : 0;
}

static int pack(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	memcpy(prepared, c->in[1].data, packed_bytes(c));
	*(float *)prepared += 1;
	return 0;
}

static int run_packed(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_tensor in[2] = { c->in[0], c->in[1] };
	struct rg_call call = *c;

	if (c->prepared)
		in[1].data = (void *)c->prepared;
	call.in = in;
	return run_as_ref(&call, par, err);
}

static bool never(const struct rg_call *c)
{
	return false;
}

#define FAKE(OP, NAME, RUN, ...) \
	{ .op_type = OP, .domain = "", .name = NAME, .rank = 1000, .flags = RG_KERNEL_UNPROVEN, .run = RUN, __VA_ARGS__ }
static const struct rg_kernel fakes[] = {
	FAKE("Relu", "fake-wrong", run_wrong),
	FAKE("Neg", "fake-right", run_as_ref),
	FAKE("Abs", "fake-crash", run_crash),
	FAKE("Sqrt", "fake-past-end", run_past_end),
	FAKE("Tanh", "fake-for-ever", run_for_ever),
	FAKE("Exp", "fake-lane", run_lane_wrong),
	FAKE("Erf", "fake-error", run_error),
	FAKE("MatMul", "fake-packs", run_packed, .prepared_bytes = packed_bytes, .prepare = pack, .packs = 2),
	FAKE("Add", "fake-right", run_as_ref),
	FAKE("Softmax", "fake-never", run_as_ref, .supports = never),
	FAKE("Gather", "fake-without-calls", run_as_ref),
	/* proven: it is wrong, and nobody asks */
	{ .op_type = "Sigmoid", .domain = "", .name = "fake-proven", .rank = 1000, .run = run_wrong },
};
RG_KERNEL_TABLE(fake_table, fakes);

/* ---- the tests ---- */

static const struct rg_kernel *fake_of(const char *op)
{
	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++)
		if (!strcmp(fakes[i].op_type, op))
			return &fakes[i];
	return NULL;
}

static void test_refusals(void **state)
{
	static const struct { const char *op, *says; } want[] = {
		{ "Relu", "in its self-check element 100 of 101 is" },
		{ "Abs", "ended by signal" },
		{ "Sqrt", "wrote past its output" },
		{ "Tanh", "did not return" },
		{ "Exp", "in its self-check element 50 of 101 is" },
		{ "Erf", "returned an error" },
		{ "MatMul", "in its self-check element" },
		{ "Softmax", "no built-in call" },
		{ "Gather", "no built-in call" },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const char *why = rg_kernel_refusal(fake_of(want[i].op));

		if (!why || !strstr(why, want[i].says))
			fail_msg("%s: \"%s\", not \"%s\"", want[i].op, why ? why : "nothing", want[i].says);
		print_message("# %s: %s\n", want[i].op, why);
		assert_ptr_equal(why, rg_kernel_refusal(fake_of(want[i].op))); /* remembered */
	}
	assert_null(rg_kernel_refusal(fake_of("Neg")));
	assert_null(rg_kernel_refusal(fake_of("Add")));
	assert_null(rg_kernel_refusal(fake_of("Sigmoid")));
}

/* Every elementwise kernel here, and those of the operators with calls, would pass: the
 * built-in calls are valid and the bound is no trap. */
static void test_real_kernels_pass(void **state)
{
	struct rg_cpu cpu;
	int checked = 0;

	rg_cpu_detect("", &cpu);
	for (int i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *k = rg_kernel_at(i);
		struct rg_kernel *as_new;
		const char *why;

		if (!k->rank || (k->isa & ~cpu.isa) || !strncmp(k->name, "fake", 4) || !strcmp(k->name, "openblas"))
			continue;
		as_new = malloc(sizeof(*as_new)); /* kept: its address is remembered */
		assert_non_null(as_new);
		*as_new = *k;
		as_new->flags |= RG_KERNEL_UNPROVEN;
		why = rg_kernel_refusal(as_new);
		if (why && !strstr(why, "no built-in call"))
			fail_msg("%s %s: %s", k->op_type, k->name, why);
		if (why)
			print_message("# %s %s: %s\n", k->op_type, k->name, why);
		checked += !why;
	}
	assert_true(checked > 30);
}

static struct rg_plan *plan_one(const char *op, struct rg_graph **g)
{
	*g = make_graph();
	make_input(*g, "x", RG_F32, "4x8");
	make_node(*g, op, "x", "y");
	make_output(*g, "y");
	make_finish(*g);
	return make_plan(*g, 1);
}

static void test_plan_says_so(void **state)
{
	static const struct { const char *op, *kernel, *reason; } want[] = {
		{ "Relu", "", "'fake-wrong' was passed over: in its self-check element 100" },
		{ "Neg", "fake-right", "rank 1000" },
		{ "Sigmoid", "fake-proven", "rank 1000" },
	};

	for (size_t i = 0; i < 3; i++) {
		struct rg_graph *g;
		struct rg_plan *p = plan_one(want[i].op, &g);

		if (want[i].kernel[0])
			assert_string_equal(rg_step_kernel_name(&p->steps[0]), want[i].kernel);
		else
			assert_null(strstr(rg_step_kernel_name(&p->steps[0]), "fake"));
		if (!strstr(p->steps[0].reason, want[i].reason))
			fail_msg("%s: %s", want[i].op, p->steps[0].reason);
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

/* Asked for by name: an error that says why not; by type: passed over. */
static void test_asked_for(void **state)
{
	for (int by_node = 0; by_node < 2; by_node++) {
		struct rg_plan_options opt = { .lanes = 1, .n_overrides = 1 };
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g;
		struct rg_plan *p = plan_one("Relu", &g);

		opt.overrides = rg_calloc(1, sizeof(*opt.overrides));
		assert_non_null(opt.overrides);
		opt.overrides[0].op = by_node ? g->nodes[0].name : "Relu";
		opt.overrides[0].kernel = "fake-wrong";
		rg_plan_free(p);
		if (by_node) {
			assert_int_equal(rg_plan_make(g, &opt, &p, &err), RG_EUSAGE);
			assert_non_null(strstr(err.message, "self-check"));
			assert_true(err.hint[0]);
		} else {
			assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
			assert_non_null(strstr(p->steps[0].reason, "was passed over"));
			rg_plan_free(p);
		}
		rg_free(opt.overrides);
		rg_graph_free(g);
	}
}

static void test_doctor(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_doctor_row *rows;
	int n, found = 0;

	assert_int_equal(rg_session_doctor(&rows, &n, &err), 0);
	for (int i = 0; i < n; i++) {
		if (strcmp(rows[i].name, "kernel self-checks"))
			continue;
		found++;
		assert_int_equal(rows[i].state, 1);
		assert_non_null(strstr(rows[i].detail, "9 of"));
		assert_non_null(strstr(rows[i].detail, "fake-wrong of Relu: in its self-check"));
		assert_true(rows[i].hint[0]);
	}
	assert_int_equal(found, 1);
	rg_free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),     cmocka_unit_test(test_real_kernels_pass),
		cmocka_unit_test(test_plan_says_so), cmocka_unit_test(test_asked_for),
		cmocka_unit_test(test_doctor),
	};

	rg_kernel_inject(&fake_table);
	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
