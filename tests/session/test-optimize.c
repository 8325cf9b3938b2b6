/*
 * What `ridge optimize` writes: the same model for every size, with a pass that does wrong found and
 * named. Passes are injected, since the real ones do right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compile/match.h"
#include "models/npy.h"
#include "models/onnx-write.h"
#include "models/onnx.h"
#include "session/optimize.h"
#include "tests/compile/make-graph.h"
#include "tests/models/folder.h"

static struct rg_error err;

/* ---- models ---- */

static struct rg_graph *start(int64_t opset)
{
	struct rg_dim dims[] = { { -1, "n" }, { 4, NULL }, { 6, NULL }, { -1, NULL } };
	struct rg_graph *g = rg_graph_new(NULL);
	int x;

	err = (struct rg_error)RG_ERROR_INIT;
	assert_non_null(g);
	assert_int_equal(rg_graph_set_opset(g, "", opset, &err), 0);
	x = rg_graph_value(g, "x", &err);
	assert_int_equal(rg_graph_declare(g, x, RG_F32, 4, dims, &err), 0);
	assert_int_equal(rg_graph_add_input(g, x, &err), 0);
	return g;
}

static const char *finish(struct rg_graph *g, const char *name)
{
	const char *path = folder_path(name);
	struct rg_dim dims[] = { { -1, NULL } };
	int y = rg_graph_value(g, "y", &err);

	assert_int_equal(rg_graph_declare(g, y, RG_F32, -1, dims, &err), 0);
	assert_int_equal(rg_graph_add_output(g, y, &err), 0);
	if (rg_graph_finish(g, &err) || rg_onnx_write(g, path, &err))
		fail_msg("%s: %s", err.where, err.message);
	rg_graph_free(g);
	return path;
}

/* HardSwish in parts behind a convolution with a factor, in opset 11; then Softmax over `axis`, and a
 * mean whose axes have become an input since. */
static const char *swish_model(int64_t axis)
{
	static const float three = 3, zero = 0, six = 6, half = 0.5f;
	static const int64_t pads[] = { 1, 1, 1, 1 }, two = 2;
	struct rg_attr attr = { .name = "pads", .type = RG_ATTR_INTS, .count = 4, .ints = pads };
	struct rg_graph *g = start(11);

	make_floats(g, "three", "", &three);
	make_floats(g, "zero", "", &zero);
	make_floats(g, "six", "", &six);
	make_floats(g, "half", "", &half);
	make_floats(g, "spare", "", &half);
	make_floats(g, "w", "4x4x3x3", NULL);
	make_node_attrs(g, "Conv", "x,w", "a", 1, &attr);
	make_node(g, "Mul", "a,half", "b");
	make_node(g, "Add", "b,three", "c");
	make_node(g, "Clip", "c,zero,six", "d");
	make_node(g, "Mul", "b,d", "e");
	make_node(g, "Div", "e,six", "f");
	make_node(g, "Neg", "f", "nobody-reads-this");
	attr = (struct rg_attr){ .name = "axis", .type = RG_ATTR_INT, .i = axis };
	make_node_attrs(g, "Softmax", "f", "h", 1, &attr);
	attr = (struct rg_attr){ .name = "axes", .type = RG_ATTR_INTS, .count = 1, .ints = &two };
	make_node_attrs(g, "ReduceMean", "h", "y", 1, &attr);
	return finish(g, "swish.onnx");
}

/* Absolute values: of b and d they change nothing, of c they do. */
static const char *abs_model(void)
{
	static const float one = 1;
	struct rg_graph *g = start(17);

	make_floats(g, "one", "", &one);
	make_node(g, "Relu", "x", "a");
	make_node(g, "Abs", "a", "b");
	make_node(g, "Sub", "b,one", "s");
	make_node(g, "Abs", "s", "c");
	make_node(g, "Exp", "c", "e");
	make_node(g, "Abs", "e", "d");
	make_node(g, "Neg", "d", "y");
	return finish(g, "abs.onnx");
}

/* A minus that is taken back, and an If with nodes that nobody reads in its branches. */
static const char *branch_model(void)
{
	struct rg_graph *g = start(17);
	struct rg_attr attrs[2];
	int c = rg_graph_value(g, "c", &err);

	assert_int_equal(rg_graph_declare(g, c, RG_BOOL, 0, NULL, &err), 0);
	assert_int_equal(rg_graph_add_input(g, c, &err), 0);
	make_node(g, "Neg", "x", "m");
	make_node(g, "Neg", "m", "n");
	make_node(g, "Relu", "n", "a");
	for (int i = 0; i < 2; i++) {
		struct rg_graph *body = rg_graph_new(g);

		assert_non_null(body);
		make_node(body, "Exp", "a", "e");
		make_node(body, "Neg", "e", "s");
		make_node(body, i ? "Identity" : "Sqrt", "s", "t");
		make_node(body, "Abs", "s", "nobody-reads-this");
		make_output(body, "t");
		attrs[i] = (struct rg_attr){ .name = i ? "else_branch" : "then_branch", .type = RG_ATTR_GRAPH,
					     .g = body };
	}
	make_node_attrs(g, "If", "c", "y", 2, attrs);
	return finish(g, "branch.onnx");
}

/* ---- passes ---- */

/* Replaces each node of a type by one that reads the same, and `more` when it is not -1. */
static int replace(struct rg_match *m, int at, const char *op_type, int more)
{
	struct rg_node n = m->g->nodes[at];
	int in[2] = { n.in[0], more };
	int rc = rg_graph_add_node(m->g, "", op_type, n.name, more < 0 ? 1 : 2, in, 1, n.out, 0, NULL, &err);

	if (rc < 0)
		return rc;
	m->gone[at] = 1;
	m->n_rewrites++;
	return rg_match_note(m, at, at, RG_DECLINE_NONE, &err);
}

static int abs_is_nothing(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *e)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, "abs-is-nothing", log, e);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Abs"))
			rc = replace(&m, i, "Identity", -1);
	return rg_match_end(&m, rc, e);
}

/* -x as x times a constant: -1 plus how much the width is beyond 224, so that it holds at one only. */
static int width_matters(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *e)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, "width-matters", log, e);

	for (int i = 0; i < m.n_nodes && !rc; i++) {
		struct rg_shape one = { 0 };
		float *data;
		int k;

		if (!rg_match_is(&m, i, "Neg"))
			continue;
		k = rg_graph_value(g, "factor", e);
		data = rg_alloc_aligned(64, sizeof(*data));
		assert_non_null(data);
		*data = (float)(g->values[rg_graph_find_value(g, "x")].shape.dim[3] - 225);
		rc = rg_graph_add_const(g, k, RG_CONST_FOLDED, RG_F32, &one, data, e);
		if (!rc)
			rc = replace(&m, i, "Mul", k);
	}
	return rg_match_end(&m, rc, e);
}

static const struct rg_pass nothing = { "abs-is-nothing", "wrong", 1, abs_is_nothing };
static const struct rg_pass width = { "width-matters", "holds at one size", 1, width_matters };

/* ---- */

static struct rg_optimize_options options(const char *model, int level)
{
	struct rg_optimize_options o = { .level = level };

	err = (struct rg_error)RG_ERROR_INIT;
	rg_session_defaults(&o.session);
	o.session.model = model;
	o.session.threads = 1;
	return o;
}

static struct rg_optimized *optimize(const struct rg_optimize_options *o, const char *path)
{
	struct rg_optimized *r = NULL;

	if (rg_session_optimize(o, path, &r, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(access(path, F_OK), 0);
	return r;
}

static const struct rg_optimized_pass *pass_of(const struct rg_optimized *r, const char *name)
{
	for (int i = 0; i < r->n_passes; i++)
		if (strcmp(r->passes[i].pass->name, name) == 0)
			return &r->passes[i];
	fail_msg("no pass %s", name);
	return NULL;
}

static struct rg_graph *load(const char *path)
{
	struct rg_graph *g = NULL;

	if (rg_onnx_load(path, NULL, &g, &err))
		fail_msg("%s: %s", err.where, err.message);
	return g;
}

static void test_rewrites(void **state)
{
	const char *model = swish_model(3), *out = folder_path("out.onnx"),
		   *again = folder_path("again.onnx");
	struct rg_optimize_options o = options(model, 2);
	struct rg_optimized *r;
	struct rg_graph *g;

	o.verify = true;
	r = optimize(&o, out);
	assert_int_equal(r->before.steps, 8);
	assert_int_equal(r->after.steps, 4); /* Conv, HardSwish, Softmax, ReduceMean */
	assert_true(r->after.bytes > 0 && r->after.bytes < r->before.bytes);
	assert_int_equal(r->n_dead, 1);
	assert_int_equal(r->n_fixed, 0);
	assert_false(r->sizes_given);
	assert_true(r->verified);
	assert_true(r->worst < 1e-5);
	assert_int_equal(r->opset_before, 11);
	assert_int_equal(r->opset_after, 14);
	assert_int_equal(pass_of(r, "hard-swish")->n_rewritten, 3);
	rg_optimized_free(r);

	g = load(out);
	assert_int_equal(g->opsets[0].version, 14);
	assert_true(g->ir_version >= 7);
	assert_int_equal(g->n_nodes, 4);
	assert_int_equal(g->values[g->inputs[0]].declared[0].value, -1);
	assert_string_equal(g->values[g->inputs[0]].declared[0].symbol, "n");
	assert_int_equal(g->values[g->inputs[0]].declared[3].value, -1);
	assert_int_equal(rg_graph_find_value(g, "spare"), -1);
	assert_int_equal(rg_graph_find_value(g, "w"), -1); /* the convolution has other weights now */
	rg_graph_free(g);

	/* a second time changes nothing */
	o = options(out, 2);
	r = optimize(&o, again);
	assert_int_equal(r->log.n_rewritten, 0);
	assert_int_equal(r->after.steps, 4);
	assert_int_equal(r->opset_after, 14);
	rg_optimized_free(r);
}

/* What runs in a branch is a step, as elsewhere; what the two move depends on which one it is. */
static void test_branches(void **state)
{
	const char *model = branch_model(), *out = folder_path("out.onnx");
	struct rg_optimize_options o = options(model, 1);
	struct rg_optimized *r = optimize(&o, out);

	/* Neg, Neg, Relu, If; Exp, Neg, Sqrt in one branch, Exp, Neg in the other */
	assert_int_equal(r->before.steps, 9);
	assert_int_equal(r->after.steps, 7);
	assert_int_equal(r->before.bytes, -1);
	assert_int_equal(r->after.bytes, -1);
	assert_int_equal(pass_of(r, "no-op")->steps_saved, 2);
	rg_optimized_free(r);
}

/* Level 0 writes what it read. */
static void test_level_0(void **state)
{
	const char *model = swish_model(3), *out = folder_path("out.onnx");
	struct rg_optimize_options o = options(model, 0);
	struct rg_optimized *r = optimize(&o, out);
	struct rg_graph *g = load(out);

	assert_false(r->planned);
	assert_int_equal(g->n_nodes, 9);
	assert_int_equal(g->opsets[0].version, 11);
	assert_true(rg_graph_find_value(g, "spare") >= 0);
	rg_graph_free(g);
	rg_optimized_free(r);
}

/* Softmax over several dimensions is no operator of opset 14: then HardSwish stays in parts. */
static void test_opset(void **state)
{
	const char *model = swish_model(1), *out = folder_path("out.onnx");
	struct rg_optimize_options o = options(model, 2);
	struct rg_optimized *r = optimize(&o, out);
	const struct rg_optimized_pass *p = pass_of(r, "hard-swish");

	assert_int_equal(r->opset_after, 11);
	assert_int_equal(p->n_rewritten, 0);
	assert_non_null(p->left_out);
	assert_non_null(strstr(p->left_out, "opset"));
	assert_non_null(strstr(p->left_out, "Softmax"));
	assert_int_equal(pass_of(r, "conv-affine")->n_rewritten, 1);
	rg_optimized_free(r);
}

static void test_broken_pass(void **state)
{
	const char *model = abs_model(), *out = folder_path("out.onnx");
	struct rg_optimize_options o = options(model, 1);
	struct rg_optimized *r = NULL;

	rg_pass_inject(&nothing);
	o.verify = true;
	assert_int_equal(rg_session_optimize(&o, out, &r, &err), -EDOM);
	rg_pass_inject(NULL);
	assert_null(r);
	if (!strstr(err.message, "abs-is-nothing") || !strstr(err.message, "'n:c'") ||
	    !strstr(err.message, "output 'y'"))
		fail_msg("%s", err.message);
	assert_non_null(strstr(err.hint, "--disable abs-is-nothing"));
	assert_int_equal(access(out, F_OK), -1);
	assert_int_equal(access(folder_path("out.onnx.part"), F_OK), -1);
}

static void test_sizes(void **state)
{
	struct { const char *input; struct rg_shape shape; } shape = { "x", { 4, { 2, 4, 6, 32 } } };
	const char *model = abs_model(), *out = folder_path("out.onnx");
	struct rg_optimize_options o = options(model, 1);
	struct rg_optimized *r;
	struct rg_graph *g;

	rg_pass_inject(&width);
	/* nobody says a size: what depends on one stays as it is */
	r = optimize(&o, out);
	assert_int_equal(pass_of(r, "width-matters")->n_rewritten, 0);
	assert_null(pass_of(r, "width-matters")->left_out);
	assert_int_equal(r->n_pinned, 1);
	assert_string_equal(r->pinned[0], "n:y");
	assert_int_equal(r->n_fixed, 0);
	rg_optimized_free(r);

	/* somebody does: the size that matters is fixed, the other stays open */
	o = options(model, 1);
	o.session.bindings.n_shapes = 1;
	o.session.bindings.shapes = (void *)&shape;
	r = optimize(&o, out);
	assert_int_equal(pass_of(r, "width-matters")->n_rewritten, 1);
	assert_null(pass_of(r, "width-matters")->left_out);
	assert_int_equal(r->n_fixed, 1);
	assert_string_equal(r->fixed[0].name, "dimension 3 of x");
	assert_int_equal(r->fixed[0].value, 32);
	rg_optimized_free(r);
	rg_pass_inject(NULL);
	g = load(out);
	assert_int_equal(g->values[g->inputs[0]].declared[3].value, 32);
	assert_int_equal(g->values[g->inputs[0]].declared[0].value, -1);
	rg_graph_free(g);
}

/* An input from a file gives the sizes that the model is rewritten at, odd ones here, and fixes none. */
static void test_input_file(void **state)
{
	static float zeros[2 * 4 * 6 * 7];
	const struct rg_tensor x = { .dtype = RG_F32, .shape = { 4, { 2, 4, 6, 7 } }, .data = zeros };
	const char *model = swish_model(3), *out = folder_path("out.onnx");
	struct rg_input_file file = { "x", folder_path("x.npy") };
	struct rg_optimize_options o = options(model, 2);
	struct rg_optimized *r;

	assert_int_equal(rg_npy_write(file.path, &x, &err), 0);
	o.session.n_inputs = 1;
	o.session.inputs = &file;
	o.verify = true;
	r = optimize(&o, out);
	assert_string_equal(r->sizes, "x=2x4x6x7");
	assert_int_equal(r->n_fixed, 0);
	assert_int_equal(r->after.steps, 4);
	assert_true(r->verified);
	rg_optimized_free(r);

	r = NULL;
	file.path = folder_path("nowhere.npy");
	assert_int_equal(rg_session_optimize(&o, out, &r, &err), -ENOENT);
	assert_non_null(strstr(err.where, "nowhere.npy"));
	err = (struct rg_error)RG_ERROR_INIT;
	file.name = "z";
	assert_int_equal(rg_session_optimize(&o, out, &r, &err), RG_EUSAGE);
	assert_non_null(strstr(err.message, "--input z"));
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "no-such-pass" };
	const char *model = abs_model();
	struct rg_optimize_options o = options(model, 1);
	struct rg_optimized *r = NULL;

	o.n_disabled = 1;
	o.disabled = bad;
	assert_int_equal(rg_session_optimize(&o, folder_path("out.onnx"), &r, &err), RG_EUSAGE);
	assert_non_null(strstr(err.hint, "hard-swish"));
	o = options(model, 1);
	assert_int_equal(rg_session_optimize(&o, folder_path("no/such/out.onnx"), &r, &err), -ENOENT);
	o = options(folder_path("missing.onnx"), 1);
	assert_int_equal(rg_session_optimize(&o, folder_path("out.onnx"), &r, &err), -ENOENT);
}

static void test_allocation_failures(void **state)
{
	const char *model = swish_model(3), *out = folder_path("out.onnx");
	bool failed;
	uint64_t n = 0, refused = 0;

	do {
		struct rg_optimize_options o = options(model, 2);
		struct rg_optimized *r = NULL;
		int rc;

		n += 1 + n / 40; /* all of the first, then some of each part */
		rg_alloc_fail_at(n);
		rc = rg_session_optimize(&o, out, &r, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		/* what only makes the text of a hint may fail */
		if (rc && rc != -ENOMEM)
			fail_msg("allocation %d: %d %s", (int)n, rc, err.message);
		refused += rc != 0;
		assert_int_equal(access(out, F_OK) == 0, rc == 0);
		unlink(out);
		rg_optimized_free(r);
	} while (failed);
	assert_true(refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(test_rewrites),
		TEST(test_branches),
		TEST(test_level_0),
		TEST(test_opset),
		TEST(test_broken_pass),
		TEST(test_sizes),
		TEST(test_input_file),
		TEST(test_refused),
		TEST(test_allocation_failures),
#undef TEST
	};

	return cmocka_run_group_tests_name("optimize", tests, NULL, NULL);
}
