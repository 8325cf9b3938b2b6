/* A model with operators that cannot run is planned all the same (--static). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/session.h"
#include "tests/models/folder.h"
#include "tests/models/wire.h"

/* MatMul, an operator of nobody, Relu, the same again, Neg: the file declares what
 * the first unknown one gives and says nothing of the second. */
static const char *odd_model(void)
{
	static const int64_t open[2] = { -1, 8 }, square[2] = { 8, 8 };
	static const float weights[64];
	struct wire g = { 0 }, v, m;
	const char *path;

	v = wire_value("x", RG_F32, 2, open);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_tensor("w", RG_F32, 2, square);
	wire_bytes(&v, TENSOR_RAW, weights, sizeof(weights));
	wire_msg(&g, GRAPH_INITIALIZER, &v);
	v = wire_node("MatMul", "x", "w", "a");
	wire_msg(&g, GRAPH_NODE, &v);
	v = wire_node("Frobnicate", "a", NULL, "b");
	wire_msg(&g, GRAPH_NODE, &v);
	v = wire_node("Relu", "b", NULL, "c");
	wire_msg(&g, GRAPH_NODE, &v);
	v = wire_node("Frobnicate", "c", NULL, "d");
	wire_msg(&g, GRAPH_NODE, &v);
	v = wire_node("Neg", "d", NULL, "e");
	wire_msg(&g, GRAPH_NODE, &v);
	v = wire_value("e", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	v = wire_value("b", RG_F32, 2, square);
	wire_msg(&g, 13, &v); /* value_info */
	m = wire_model(8, 17, &g);
	path = folder_write("odd.onnx", m.p, m.len);
	wire_free(&m);
	return path;
}

static void what_cannot_run_is_named(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_session_options o;
	struct rg_run_result *result;
	struct rg_recording *r;
	struct rg_store *s;
	int64_t run;
	int unsupported = 0, dynamic = 0;

	rg_session_defaults(&o);
	o.model = odd_model();
	o.no_ceilings = true;
	o.bindings.n_shapes = 1;
	o.bindings.shapes = calloc(1, sizeof(*o.bindings.shapes));
	assert_non_null(o.bindings.shapes);
	o.bindings.shapes[0].input = "x";
	o.bindings.shapes[0].shape = (struct rg_shape){ .rank = 2, .dim = { 8, 8 } };
	assert_int_equal(rg_session_run(&o, NULL, &result, &err), RG_ENOTSUP_MODEL);
	rg_error_clear(&err);
	assert_int_equal(rg_store_open("scratch", RG_STORE_SCRATCH, &s, &err), 0);
	o.lenient = true;
	if (rg_session_plan(s, &o, &run, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(rg_store_load(s, run, &r, &err), 0);
	assert_string_equal(rg_recording_text(r, "session.static", ""), "yes");
	assert_int_equal(r->n_iterations, 0);
	assert_int_equal(r->n_steps, 5);
	assert_int_equal(r->steps[0].flops, 2 * 8 * 8 * 8);
	assert_string_equal(r->steps[1].kernel, "none");
	assert_int_equal(r->steps[1].flops, -1);
	assert_string_equal(r->steps[1].shape, "8x8");  /* as declared */
	assert_int_equal(r->steps[2].flops, 64);        /* so what follows is known */
	assert_string_equal(r->steps[3].kernel, "none");
	assert_string_equal(r->steps[3].shape, "");
	assert_string_equal(r->steps[4].kernel, "dynamic");
	assert_int_equal(r->steps[4].flops, -1);
	for (int i = 0; i < r->n_notes; i++) {
		unsupported += strcmp(r->notes[i].kind, "unsupported") == 0;
		dynamic += strcmp(r->notes[i].kind, "dynamic") == 0;
		if (strcmp(r->notes[i].kind, "unsupported") == 0)
			assert_non_null(strstr(r->notes[i].text, "Frobnicate"));
	}
	assert_int_equal(unsupported, 2);
	assert_int_equal(dynamic, 1);
	assert_true(rg_recording_number(r, "plan.unsupported") == 2);
	assert_true(rg_recording_number(r, "plan.arena_bytes") >= 2 * 8 * 8 * 4);
	rg_recording_free(r);
	rg_store_close(s);
	free(o.bindings.shapes);
}

/* An If that always takes its first branch, and a Loop: both hold what nobody has. */
static const char *hidden_model(void)
{
	static const int64_t four[1] = { 4 };
	static const struct { const char *op, *attr[2]; } kind[2] = {
		{ "If", { "then_branch", "else_branch" } },
		{ "Loop", { "body", NULL } },
	};
	const unsigned char yes = 1;
	struct wire g = { 0 }, v, m;
	const char *path;

	v = wire_value("x", RG_F32, 1, four);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_tensor("yes", RG_BOOL, 0, NULL);
	wire_bytes(&v, TENSOR_RAW, &yes, 1);
	wire_msg(&g, GRAPH_INITIALIZER, &v);
	for (int k = 0; k < 2; k++) {
		struct wire n = { 0 };

		wire_str(&n, NODE_INPUT, k ? "" : "yes");
		if (k) {
			wire_str(&n, NODE_INPUT, "yes");
			wire_str(&n, NODE_INPUT, "a");
		}
		wire_str(&n, NODE_OUTPUT, k ? "b" : "a");
		wire_str(&n, NODE_OP, kind[k].op);
		for (int i = 0; i < 2 && kind[k].attr[i]; i++) {
			struct wire sub = { 0 }, attr = { 0 };

			if (k) {
				v = wire_value("i", RG_I64, 0, NULL);
				wire_msg(&sub, GRAPH_INPUT, &v);
				v = wire_value("c", RG_BOOL, 0, NULL);
				wire_msg(&sub, GRAPH_INPUT, &v);
				v = wire_value("s", RG_F32, 1, four);
				wire_msg(&sub, GRAPH_INPUT, &v);
				v = wire_node("Identity", "c", NULL, "d");
				wire_msg(&sub, GRAPH_NODE, &v);
				v = wire_value("d", RG_BOOL, 0, NULL);
				wire_msg(&sub, GRAPH_OUTPUT, &v);
			}
			v = wire_node(i ? "Neg" : "Frobnicate", k ? "s" : "x", NULL, "y");
			wire_msg(&sub, GRAPH_NODE, &v);
			v = wire_value("y", RG_F32, 1, four);
			wire_msg(&sub, GRAPH_OUTPUT, &v);
			wire_str(&attr, ATTR_NAME, kind[k].attr[i]);
			wire_int(&attr, ATTR_TYPE, 5);
			wire_msg(&attr, ATTR_G, &sub);
			wire_msg(&n, NODE_ATTR, &attr);
		}
		wire_msg(&g, GRAPH_NODE, &n);
	}
	v = wire_value("b", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 17, &g);
	path = folder_write("hidden.onnx", m.p, m.len);
	wire_free(&m);
	return path;
}

/* What cannot run is named where it lies in a subgraph, too, inlined or not. */
static void subgraphs_hide_nothing(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_session_options o;
	struct rg_recording *r;
	struct rg_store *s;
	int64_t run;
	int unsupported = 0;

	rg_session_defaults(&o);
	o.model = hidden_model();
	o.no_ceilings = true;
	o.lenient = true;
	assert_int_equal(rg_store_open("scratch", RG_STORE_SCRATCH, &s, &err), 0);
	if (rg_session_plan(s, &o, &run, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(rg_store_load(s, run, &r, &err), 0);
	assert_int_equal(r->n_steps, 2);
	assert_string_equal(r->steps[0].op_type, "Frobnicate"); /* the branch taken */
	assert_string_equal(r->steps[0].kernel, "none");
	assert_string_equal(r->steps[1].op_type, "Loop");
	assert_string_equal(r->steps[1].kernel, "none");
	for (int i = 0; i < r->n_notes; i++) {
		if (strcmp(r->notes[i].kind, "unsupported") != 0)
			continue;
		unsupported++;
		assert_non_null(strstr(r->notes[i].text, "Frobnicate"));
	}
	assert_int_equal(unsupported, 2);
	rg_recording_free(r);
	rg_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_cannot_run_is_named, folder_setup, folder_teardown),
		cmocka_unit_test_setup_teardown(subgraphs_hide_nothing, folder_setup, folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
