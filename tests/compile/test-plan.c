/* The plan: what runs, what does not, where it lies and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/kernel.h"
#include "sys/cpu.h"
#include "tests/compile/make-graph.h"

/* x -> Relu a -> Neg b -> Add(b, a) c -> Abs d, each of 256 bytes. */
static void test_chain(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "64");
	make_node(g, "Relu", "x", "a");
	make_node(g, "Neg", "a", "b");
	make_node(g, "Add", "b,a", "c");
	make_node(g, "Abs", "c", "d");
	make_output(g, "d");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(p->n_steps, 4);
	assert_int_equal(p->n_views + p->n_folded + p->n_dead, 0);
	assert_int_equal(plan_value(p, "x")->place, RG_PLACE_INPUT);
	assert_int_equal(plan_value(p, "a")->first_step, 0);
	assert_int_equal(plan_value(p, "a")->last_step, 2);
	assert_int_equal(plan_value(p, "b")->first_step, 1);
	assert_int_equal(plan_value(p, "d")->last_step, 3);
	/* a and b live together from step 1 on; c takes over the memory of b at step 2, and d that of c */
	assert_int_equal(plan_value(p, "b")->last_step, 1);
	assert_int_equal(plan_value(p, "c")->over, rg_graph_find_value(g, "b"));
	assert_int_equal(plan_value(p, "d")->over, rg_graph_find_value(g, "c"));
	assert_int_equal(plan_value(p, "b")->offset_bytes, plan_value(p, "d")->offset_bytes);
	assert_int_equal(p->n_in_place, 2);
	assert_int_equal(p->arena_lower_bound_bytes, 2 * 256);
	assert_int_equal(p->arena_bytes, 2 * 256);
	assert_int_equal(p->peak_step, 1);
	assert_int_equal(p->n_edges, 4);
	assert_int_equal(p->edges[0].from_step, 0);
	assert_int_equal(p->edges[0].to_step, 1);
	assert_int_equal(p->steps[2].cost.flops, 64);
	assert_int_equal(p->steps[2].cost.read_bytes, 512);
	assert_true(p->steps[2].reason[0]);
	assert_int_equal(p->n_bound_inputs, 0);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_views(void **state)
{
	const int64_t flat[] = { 64 }, square[] = { 8, 8 };
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_ints(g, "flat", 1, flat);
	make_ints(g, "square", 2, square);
	make_input(g, "x", RG_F32, "4x16");
	make_node(g, "Reshape", "x,flat", "a");     /* a view of the input */
	make_node(g, "Relu", "a", "b");
	make_node(g, "Reshape", "b,square", "c");   /* a view that is an output */
	make_node(g, "Reshape", "c,flat", "d");     /* a view of a view */
	make_node(g, "Neg", "d", "e");
	make_output(g, "c");
	make_output(g, "e");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(p->n_steps, 2);
	assert_int_equal(p->n_views, 3);
	assert_int_equal(plan_value(p, "a")->place, RG_PLACE_INPUT);
	assert_int_equal(plan_value(p, "a")->alias_of, rg_graph_find_value(g, "x"));
	assert_int_equal(plan_value(p, "d")->alias_of, rg_graph_find_value(g, "b"));
	assert_int_equal(plan_value(p, "c")->offset_bytes, plan_value(p, "b")->offset_bytes);
	assert_int_equal(plan_value(p, "b")->last_step, 1); /* an output: to the end */
	/* one edge, through two views */
	assert_int_equal(p->n_edges, 1);
	assert_int_equal(p->edges[0].from_step, 0);
	assert_int_equal(p->edges[0].to_step, 1);
	assert_int_equal(p->edges[0].value, rg_graph_find_value(g, "d"));
	rg_plan_free(p);
	rg_graph_free(g);
}

/* A view of an input as output would change with the next input: copied. */
static void test_view_of_input_is_copied(void **state)
{
	const int64_t flat[] = { 64 };
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_ints(g, "flat", 1, flat);
	make_input(g, "x", RG_F32, "4x16");
	make_node(g, "Reshape", "x,flat", "y");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(p->n_steps, 1);
	assert_int_equal(p->n_views, 0);
	assert_int_equal(plan_value(p, "y")->place, RG_PLACE_ARENA);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_dead_and_folded(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	const float *sum;

	make_input(g, "x", RG_F32, "4");
	make_floats(g, "c", "4", NULL);
	make_node(g, "Add", "c,c", "twice");
	make_node(g, "Neg", "twice", "folded");
	make_node(g, "Add", "x,folded", "y");
	make_node(g, "Relu", "x", "dead1");
	make_node(g, "Neg", "dead1", "dead2");
	make_output(g, "y");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(p->n_steps, 1);
	assert_int_equal(p->n_folded, 2);
	assert_int_equal(p->n_dead, 2);
	assert_int_equal(plan_value(p, "dead2")->place, RG_PLACE_UNUSED);
	assert_int_equal(plan_value(p, "folded")->place, RG_PLACE_CONST);
	sum = plan_value(p, "folded")->data;
	assert_float_equal(sum[3], -6, 0);
	assert_int_equal(g->values[rg_graph_find_value(g, "folded")].origin, RG_CONST_FOLDED);
	rg_plan_free(p);
	/* a second plan of the same graph comes out the same */
	p = make_plan(g, 2);
	assert_int_equal(p->n_steps, 1);
	assert_int_equal(p->n_folded, 2);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* Large results are folded only where they do not make the model larger. */
static void test_large_constants(void **state)
{
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "1");
	make_floats(g, "row", "1x1024", NULL);
	make_floats(g, "column", "1024x1", NULL);
	make_floats(g, "square", "1024x1024", NULL);
	make_node(g, "Add", "row,column", "grown");    /* 4 MiB out of 8 KiB */
	make_node(g, "Neg", "square", "same");         /* 4 MiB out of 4 MiB */
	make_node(g, "Add", "grown,x", "y");
	make_node(g, "Add", "same,x", "z");
	make_output(g, "y");
	make_output(g, "z");
	make_finish(g);
	p = make_plan(g, 1);
	assert_int_equal(plan_value(p, "grown")->place, RG_PLACE_ARENA);
	assert_int_equal(plan_value(p, "same")->place, RG_PLACE_CONST);
	assert_float_equal(((const float *)plan_value(p, "same")->data)[1000], -1000, 0);
	assert_int_equal(p->n_folded, 1);
	assert_int_equal(p->n_steps, 3);
	rg_plan_free(p);
	rg_graph_free(g);
}

struct given {
	struct rg_tensor t;
	int asked;
};

static const struct rg_tensor *give(void *ctx, const char *name)
{
	struct given *v = ctx;

	assert_string_equal(name, "shape");
	v->asked++;
	return &v->t;
}

static struct rg_graph *shape_from_input(void)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "4x16");
	make_input(g, "shape", RG_I64, "2");
	make_node(g, "Reshape", "x,shape", "a");
	make_node(g, "Relu", "a", "y");
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_bound_input(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = shape_from_input();
	int64_t shape[] = { 8, -1 };
	struct given v = { { RG_I64, { 1, { 2 } }, shape }, 0 };
	struct rg_plan_options opt = { .lanes = 1 };
	struct rg_plan *p;

	assert_int_equal(rg_plan_make(g, &opt, &p, &err), RG_ENEED_VALUE);
	assert_null(p);
	assert_non_null(strstr(err.where, "n:a"));
	assert_non_null(strstr(err.hint, "--input"));
	opt.input_value = give;
	opt.input_ctx = &v;
	v.t.dtype = RG_I32; /* not what the model takes */
	rg_error_clear(&err);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), -EINVAL);
	v.t.dtype = RG_I64;
	rg_error_clear(&err);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	assert_int_equal(v.asked, 2);
	assert_int_equal(p->n_bound_inputs, 1);
	assert_string_equal(p->bound_inputs[0], "shape");
	assert_int_equal(plan_value(p, "shape")->place, RG_PLACE_CONST);
	assert_int_equal(g->n_inputs, 2);
	assert_int_equal(plan_value(p, "y")->shape.dim[0], 8);
	assert_int_equal(plan_value(p, "y")->shape.dim[1], 8);
	rg_plan_free(p);
	rg_graph_free(g);
}

/* An input too large to be a shape: its value must not be asked for; what depends
 * on it, and only that, is left to the dynamic path. */
static void test_computed_shape(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan_options opt = { .lanes = 1 };
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "1000x1000");
	make_node(g, "Relu", "x", "r");
	make_node(g, "NonZero", "r", "y");
	make_node(g, "Neg", "y", "z");
	make_output(g, "z");
	make_output(g, "r");
	make_finish(g);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	assert_int_equal(p->n_steps, 3);
	assert_int_equal(p->n_dynamic, 2);
	assert_false(p->steps[0].dynamic);
	assert_string_equal(rg_step_kernel_name(&p->steps[1]), "dynamic");
	assert_non_null(strstr(p->steps[1].reason, "depends on the value"));
	assert_non_null(strstr(p->steps[2].reason, "it reads 'y'"));
	assert_int_equal(p->steps[1].cost.flops, -1);
	assert_int_equal(plan_value(p, "y")->place, RG_PLACE_DYNAMIC);
	assert_int_equal(plan_value(p, "r")->place, RG_PLACE_ARENA);
	assert_int_equal(p->n_edges, 2);
	rg_plan_free(p);
	rg_graph_free(g);
}

static struct rg_graph *two_matmuls(void)
{
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "4x16");
	make_floats(g, "w", "16x16", NULL);
	make_node(g, "MatMul", "x,w", "a");
	make_node(g, "MatMul", "a,w", "b");
	make_output(g, "b");
	make_finish(g);
	return g;
}

static int plan_with(struct rg_graph *g, const char *op, const char *kernel, struct rg_plan **p,
		     struct rg_error *err)
{
	struct { const char *op; const char *kernel; } one = { op, kernel };
	struct rg_plan_options opt = { .lanes = 1, .n_overrides = 1 };
	struct rg_cpu cpu;

	/* not more: supports() of a kernel is compiled for its instructions */
	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	memcpy(&opt.overrides, &(void *){ &one }, sizeof(void *));
	rg_error_clear(err);
	return rg_plan_make(g, &opt, p, err);
}

static void test_overrides(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = two_matmuls();
	struct rg_plan *p;

	assert_int_equal(plan_with(g, "MatMul", "ref", &p, &err), 0);
	assert_string_equal(p->steps[0].kernel->name, "ref");
	assert_string_equal(p->steps[1].kernel->name, "ref");
	assert_non_null(strstr(p->steps[0].reason, "type"));
	rg_plan_free(p);
	assert_int_equal(plan_with(g, "n:b", "ref", &p, &err), 0);
	assert_string_equal(p->steps[1].kernel->name, "ref");
	assert_non_null(strstr(p->steps[1].reason, "node"));
	/* the other keeps the best one */
	assert_null(strstr(p->steps[0].reason, "asked"));
	assert_string_not_equal(p->steps[0].kernel->name, "ref");
	rg_plan_free(p);
	assert_int_equal(plan_with(g, "MatMul", "magic", &p, &err), RG_EUSAGE);
	assert_non_null(strstr(err.hint, "ref"));
	assert_int_equal(plan_with(g, "Conv", "ref", &p, &err), RG_EUSAGE);
	assert_non_null(strstr(err.message, "Conv"));
	rg_graph_free(g);
}

/* A kernel that is left out is not chosen, unless it is asked for by name. */
static void test_without(void **state)
{
	const char *name[] = { "" };
	struct { const char *op; const char *kernel; } one = { "n:b", NULL };
	struct rg_plan_options opt = { .lanes = 1, .isa = 0, .n_without = 1, .without = name };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan *p;

	make_input(g, "x", RG_F32, "2x3x8x8");
	make_floats(g, "w", "4x3x3x3", NULL);
	make_node(g, "Conv", "x,w", "a");
	make_node(g, "Relu", "a", "b");
	make_output(g, "b");
	make_finish(g);
	name[0] = "nosuch";
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), RG_EUSAGE);
	rg_error_clear(&err);
	opt.n_without = 0;
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	name[0] = p->steps[1].kernel->name;
	one.kernel = name[0];
	assert_string_not_equal(name[0], "ref"); /* Relu has a portable kernel */
	rg_plan_free(p);
	opt.n_without = 1;
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	assert_string_not_equal(p->steps[1].kernel->name, name[0]);
	rg_plan_free(p);
	opt.n_overrides = 1;
	memcpy(&opt.overrides, &(void *){ &one }, sizeof(void *));
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
	assert_string_equal(p->steps[1].kernel->name, name[0]);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_no_kernel(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan_options opt = { .lanes = 0 };
	struct rg_plan *p;

	make_input(g, "x", RG_C64, "4x4"); /* there are no complex kernels */
	make_node(g, "EyeLike", "x", "y");
	make_output(g, "y");
	make_finish(g);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), -EINVAL); /* no lanes */
	opt.lanes = 1;
	rg_error_clear(&err);
	assert_int_equal(rg_plan_make(g, &opt, &p, &err), RG_ENOTSUP_MODEL);
	assert_non_null(strstr(err.where, "n:y"));
	assert_non_null(strstr(err.message, "complex64"));
	rg_graph_free(g);
}

static int64_t round_up(int64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* Live bytes at the worst step, in units of 64, from the plan's tensors alone. */
static int64_t peak_of(const struct rg_plan *p)
{
	int64_t most = 0, sum;
	int s, i;

	for (s = 0; s < p->n_steps; s++) {
		sum = round_up(p->steps[s].scratch_bytes);
		for (i = 0; i < p->n_tensors; i++)
			if (p->tensors[i].place == RG_PLACE_ARENA && p->tensors[i].alias_of < 0 &&
			    p->tensors[i].first_step <= s && s <= p->tensors[i].last_step)
				sum += round_up(p->tensors[i].size_bytes);
		most = sum > most ? sum : most;
	}
	return most;
}

static void test_random_graphs(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < 150; seed++) {
		struct rg_graph *g = make_random(seed, 5 + (int)(seed % 80));
		struct rg_plan *p = make_plan(g, 1); /* checked for overlaps */
		int i, k;

		assert_int_equal(p->n_steps + p->n_views + p->n_folded + p->n_dead, g->n_nodes);
		assert_int_equal(p->arena_lower_bound_bytes, peak_of(p));
		assert_true(p->arena_bytes >= p->arena_lower_bound_bytes);
		for (i = 0; i < p->n_edges; i++) {
			assert_true(p->edges[i].from_step < p->edges[i].to_step);
			for (k = 0; k < i; k++)
				assert_false(p->edges[i].from_step == p->edges[k].from_step &&
					     p->edges[i].to_step == p->edges[k].to_step &&
					     p->edges[i].value == p->edges[k].value);
		}
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

/* The checker itself must see an overlap. */
static void test_checker(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make_graph();
	struct rg_plan *p;
	int a;

	make_input(g, "x", RG_F32, "64");
	make_node(g, "Relu", "x", "a");
	make_node(g, "Neg", "a", "b");
	make_node(g, "Abs", "a", "c");
	make_output(g, "b");
	make_output(g, "c");
	make_finish(g);
	p = make_plan(g, 1);
	a = rg_graph_find_value(g, "a");
	p->tensors[a].offset_bytes = plan_value(p, "b")->offset_bytes;
	assert_int_equal(rg_plan_check(p, &err), -EFAULT);
	assert_non_null(strstr(err.message, "while both live"));
	/* read where it is not alive, and not by what takes it over */
	rg_error_clear(&err);
	p->tensors[a].offset_bytes = plan_value(p, "c")->offset_bytes;
	assert_int_equal(rg_plan_check(p, &err), 0);
	p->tensors[rg_graph_find_value(g, "c")].over = -1;
	assert_int_equal(rg_plan_check(p, &err), -EFAULT);
	assert_non_null(strstr(err.message, "'a' is not alive"));
	rg_error_clear(&err);
	p->tensors[a].offset_bytes = p->arena_bytes;
	assert_int_equal(rg_plan_check(p, &err), -EFAULT);
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_no_memory(void **state)
{
	struct rg_plan_options opt = { .lanes = 2 };
	int fails, rc = -1;

	for (fails = 1; fails < 2000; fails++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = make_random(3, 30);
		struct rg_plan *p;
		bool failed;

		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_plan_make(g, &opt, &p, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		if (failed) {
			assert_int_equal(rc, -ENOMEM);
			assert_null(p);
		}
		/* with memory back, the same graph can still be planned */
		if (rc) {
			rg_error_clear(&err);
			assert_int_equal(rg_plan_make(g, &opt, &p, &err), 0);
		}
		rg_plan_free(p);
		rg_graph_free(g);
		if (!failed)
			break;
	}
	assert_int_equal(rc, 0);
	assert_true(fails > 10);
}

/* Every kernel is found by its operator, and no list holds another's. */
static void test_kernels_by_operator(void **state)
{
	const struct rg_kernel *const *list;
	int i, k, n, listed = 0;

	for (i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *want = rg_kernel_at(i);
		int found = 0, first = 0;

		n = rg_kernel_list(want->domain, want->op_type, &list);
		for (k = 0; k < n; k++) {
			assert_string_equal(list[k]->op_type, want->op_type);
			found += list[k] == want;
			first += k == 0 && list[k] == want;
		}
		assert_int_equal(found, 1);
		listed += first ? n : 0;
	}
	assert_int_equal(listed, rg_kernel_count());
	assert_int_equal(rg_kernel_list("", "NoSuchOperator", &list), 0);
	assert_int_equal(rg_kernel_list("no.such.domain", "Relu", &list), 0);
	assert_int_equal(rg_kernel_list("ai.onnx", "Relu", &list), rg_kernel_list(NULL, "Relu", &list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_view_of_input_is_copied),
		cmocka_unit_test(test_dead_and_folded),
		cmocka_unit_test(test_large_constants),
		cmocka_unit_test(test_bound_input),
		cmocka_unit_test(test_computed_shape),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_no_kernel),
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_checker),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_kernels_by_operator),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
