/* Local functions: what inlining makes of a model, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "expect.h"
#include "models/onnx.h"
#include "wire.h"

enum { FUNCTION_NAME = 1, FUNCTION_INPUT = 4, FUNCTION_OUTPUT = 5, FUNCTION_ATTR = 6, FUNCTION_NODE = 7,
       FUNCTION_OPSET = 9, FUNCTION_DOMAIN = 10, FUNCTION_DEFAULT = 11, FUNCTION_OVERLOAD = 13, NODE_OVERLOAD = 8 };

/* ---- writing models ---- */

static void put_opset(struct wire *w, uint32_t field, const char *domain, int64_t version)
{
	struct wire o = { 0 };

	wire_str(&o, 1, domain);
	wire_int(&o, 2, version);
	wire_msg(w, field, &o);
}

/* "loc.NAME" with inputs and outputs named by one letter each, opset 13. */
static struct wire function(const char *name, const char *ins, const char *outs)
{
	struct wire f = { 0 };

	wire_str(&f, FUNCTION_NAME, name);
	wire_str(&f, FUNCTION_DOMAIN, "loc");
	for (; *ins; ins++)
		wire_bytes(&f, FUNCTION_INPUT, ins, 1);
	for (; *outs; outs++)
		wire_bytes(&f, FUNCTION_OUTPUT, outs, 1);
	put_opset(&f, FUNCTION_OPSET, "", 13);
	put_opset(&f, FUNCTION_OPSET, "loc", 1);
	return f;
}

static struct wire call(const char *name, const char *node, const char *in0, const char *in1, const char *out)
{
	struct wire n = wire_node(name, in0, in1, out);

	wire_str(&n, NODE_DOMAIN, "loc");
	wire_str(&n, NODE_NAME, node);
	return n;
}

static void put_node(struct wire *w, uint32_t field, const char *op, const char *in0, const char *in1,
		     const char *out)
{
	struct wire n = wire_node(op, in0, in1, out);

	wire_msg(w, field, &n);
}

static void put_ref(struct wire *node, const char *name, const char *ref, int type)
{
	struct wire a = { 0 };

	wire_str(&a, ATTR_NAME, name);
	wire_str(&a, ATTR_REF, ref);
	wire_int(&a, ATTR_TYPE, type);
	wire_msg(node, NODE_ATTR, &a);
}

static void put_int(struct wire *w, uint32_t field, const char *name, int64_t v)
{
	struct wire a = { 0 };

	wire_str(&a, ATTR_NAME, name);
	wire_int(&a, ATTR_I, v);
	wire_int(&a, ATTR_TYPE, 2);
	wire_msg(w, field, &a);
}

/* A graph without inputs and the output `out`, with the node, as an attribute. */
static void put_body(struct wire *w, const char *name, struct wire *node, const char *out)
{
	struct wire a = { 0 }, g = { 0 }, v = wire_value(out, RG_F32, -1, NULL);

	wire_msg(&g, GRAPH_NODE, node);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	wire_str(&a, ATTR_NAME, name);
	wire_msg(&a, ATTR_G, &g);
	wire_int(&a, ATTR_TYPE, 5);
	wire_msg(w, NODE_ATTR, &a);
}

/* The model whose one node is `node`, without functions yet. */
static struct wire model_of(struct wire *node)
{
	struct wire g = graph_of(node), m = wire_model(10, 18, &g);

	put_opset(&m, MODEL_OPSET, "loc", 1);
	return m;
}

static struct rg_graph *load(struct wire *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;

	if (rg_onnx_load_memory(m->p, m->len, "m", &g, &err))
		fail_msg("%s: %s", err.where, err.message);
	wire_free(m);
	return g;
}

/* "Op name in,in->out" of every node, one a line. */
static char *listing(const struct rg_graph *g)
{
	static char text[4096];
	size_t at = 0;

	text[0] = '\0';
#define PUT(...) (at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__))
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		PUT("%s %s ", n->op_type, n->name);
		for (int k = 0; k < n->n_in; k++)
			PUT("%s%s", k ? "," : "", n->in[k] < 0 ? "-" : g->values[n->in[k]].name);
		PUT("->");
		for (int k = 0; k < n->n_out; k++)
			PUT("%s%s", k ? "," : "", n->out[k] < 0 ? "-" : g->values[n->out[k]].name);
		PUT("\n");
		assert_true(at < sizeof(text));
	}
#undef PUT
	return text;
}

/* ---- what it makes ---- */

static void a_call(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), m = model_of(&n), f = function("F", "ab", "c");
	struct rg_graph *g;

	/* Written backwards: order is the graph's to find. */
	put_node(&f, FUNCTION_NODE, "Clip", "t", "b", "c");
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "t");
	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_string_equal(listing(g), "Relu call/Relu_1 x->call/t\n"
					"Clip call/Clip_0 call/t,-->y\n");
	rg_graph_free(g);
}

static void calls_in_functions(void **state)
{
	struct wire n = call("F", "one", "x", NULL, "y"), m = model_of(&n), f = function("F", "a", "c");

	n = call("G", "left", "a", NULL, "t");
	wire_msg(&f, FUNCTION_NODE, &n);
	n = call("G", "right", "t", NULL, "c");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	f = function("G", "a", "b");
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "t");
	put_node(&f, FUNCTION_NODE, "Add", "a", "t", "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	struct rg_graph *g = load(&m);

	assert_string_equal(listing(g), "Relu one/left/Relu_0 x->one/left/t\n"
					"Add one/left/Add_1 x,one/left/t->one/t\n"
					"Relu one/right/Relu_0 one/t->one/right/t\n"
					"Add one/right/Add_1 one/t,one/right/t->y\n");
	rg_graph_free(g);
}

static void attributes(void **state)
{
	struct wire g = { 0 }, v = wire_value("x", RG_F32, -1, NULL), m, n, f = function("F", "a", "b");
	const int64_t *axes = NULL;
	struct rg_graph *graph;

	wire_msg(&g, GRAPH_INPUT, &v);
	n = call("F", "given", "x", NULL, "s");
	put_int(&n, NODE_ATTR, "ax", 7);
	put_int(&n, NODE_ATTR, "dflt", 8);
	wire_msg(&g, GRAPH_NODE, &n);
	n = call("F", "left out", "s", NULL, "y");
	wire_msg(&g, GRAPH_NODE, &n);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(10, 18, &g);

	n = wire_node("Softmax", "a", NULL, "b");
	put_ref(&n, "axis", "ax", 2);
	put_ref(&n, "other", "dflt", 2);
	put_int(&n, NODE_ATTR, "plain", 3);
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_str(&f, FUNCTION_ATTR, "ax");
	put_int(&f, FUNCTION_DEFAULT, "dflt", 9);
	wire_msg(&m, MODEL_FUNCTION, &f);
	graph = load(&m);
	assert_int_equal(graph->n_nodes, 2);
	assert_int_equal(rg_node_int(&graph->nodes[0], "axis", -1), 7);
	assert_int_equal(rg_node_int(&graph->nodes[0], "other", -1), 8);
	assert_int_equal(rg_node_int(&graph->nodes[0], "plain", -1), 3);
	assert_null(rg_node_attr(&graph->nodes[1], "axis"));
	assert_int_equal(rg_node_int(&graph->nodes[1], "other", -1), 9);
	assert_int_equal(graph->nodes[1].n_attrs, 2);
	assert_int_equal(rg_node_ints(&graph->nodes[1], "none", &axes), -1);
	rg_graph_free(graph);
}

/* A Constant whose value is an attribute, and one with a tensor, called twice. */
static void constants(void **state)
{
	const int64_t two[] = { 2 };
	struct wire n = call("F", "a", "x", NULL, "t"), g = graph_of(&n), m, f = function("F", "a", "b"), t, a = { 0 };
	const float want[] = { 1, 2 };
	const struct rg_value *v;
	struct rg_graph *graph;

	n = call("F", "b", "t", NULL, "y");
	put_int(&n, NODE_ATTR, "k", 5);
	wire_msg(&g, GRAPH_NODE, &n);
	m = wire_model(10, 18, &g);
	n = wire_node("Constant", NULL, NULL, "c");
	put_ref(&n, "value_int", "k", 2);
	wire_msg(&f, FUNCTION_NODE, &n);
	put_int(&f, FUNCTION_DEFAULT, "k", 4);
	n = wire_node("Constant", NULL, NULL, "d");
	t = wire_tensor("", RG_F32, 1, two);
	wire_bytes(&t, TENSOR_RAW, want, sizeof(want));
	wire_str(&a, ATTR_NAME, "value");
	wire_msg(&a, ATTR_T, &t);
	wire_msg(&n, NODE_ATTR, &a);
	wire_msg(&f, FUNCTION_NODE, &n);
	n = wire_node("Constant", NULL, NULL, "s");
	t = wire_tensor("", RG_STRING, 1, two);
	wire_str(&t, TENSOR_STRING, "one");
	wire_str(&t, TENSOR_STRING, "two");
	wire_str(&a, ATTR_NAME, "value");
	wire_msg(&a, ATTR_T, &t);
	wire_msg(&n, NODE_ATTR, &a);
	wire_msg(&f, FUNCTION_NODE, &n);
	put_node(&f, FUNCTION_NODE, "Add", "a", "c", "e");
	put_node(&f, FUNCTION_NODE, "Add", "e", "d", "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	graph = load(&m);
	assert_int_equal(graph->n_nodes, 4);
	v = &graph->values[rg_graph_find_value(graph, "a/c")];
	assert_int_equal(*(const int64_t *)v->data, 4);
	assert_int_equal(v->origin, RG_CONST_NODE);
	v = &graph->values[rg_graph_find_value(graph, "b/c")];
	assert_int_equal(*(const int64_t *)v->data, 5);
	v = &graph->values[rg_graph_find_value(graph, "a/d")];
	assert_memory_equal(v->data, want, sizeof(want));
	assert_memory_equal(graph->values[rg_graph_find_value(graph, "b/d")].data, want, sizeof(want));
	assert_int_equal((uintptr_t)v->data % 64, 0);
	/* The function is gone by now: characters must not be its. */
	v = &graph->values[rg_graph_find_value(graph, "b/s")];
	assert_string_equal(((const char *const *)v->data)[1], "two");
	rg_graph_free(graph);
}

/* Softmax has versions 1, 11 and 13: the function's opset says which. */
static void an_opset_of_its_own(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), m = model_of(&n), f = { 0 };
	struct rg_graph *g;

	wire_str(&f, FUNCTION_NAME, "F");
	wire_str(&f, FUNCTION_DOMAIN, "loc");
	wire_str(&f, FUNCTION_INPUT, "a");
	wire_str(&f, FUNCTION_OUTPUT, "b");
	put_opset(&f, FUNCTION_OPSET, "", 11);
	put_node(&f, FUNCTION_NODE, "Softmax", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_int_equal(g->nodes[0].version, 11);
	rg_graph_free(g);

	n = call("F", "call", "x", NULL, "y");
	m = model_of(&n);
	f = function("F", "a", "b");
	f.len = 0;
	wire_str(&f, FUNCTION_NAME, "F");
	wire_str(&f, FUNCTION_DOMAIN, "loc");
	wire_str(&f, FUNCTION_INPUT, "a");
	wire_str(&f, FUNCTION_OUTPUT, "b");
	put_opset(&f, FUNCTION_OPSET, "", 99);
	put_node(&f, FUNCTION_NODE, "Softmax", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	expect_error(&m, RG_ENOTSUP_MODEL, "function loc.F: the function is of opset 99");
}

static void overloads(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), m, f;
	struct rg_graph *g;

	wire_str(&n, NODE_OVERLOAD, "float");
	m = model_of(&n);
	f = function("F", "a", "b");
	put_node(&f, FUNCTION_NODE, "Neg", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	f = function("F", "a", "b");
	wire_str(&f, FUNCTION_OVERLOAD, "float");
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_string_equal(listing(g), "Relu call/Relu_0 x->y\n");
	rg_graph_free(g);
}

/* A function that gives its inputs back: swapped, so that no value can stand for
 * both sides. */
static void outputs_that_are_inputs(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), m = model_of(&n), f = function("F", "a", "a");
	struct rg_graph *g;

	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_string_equal(listing(g), "Identity call/a x->y\n");
	rg_graph_free(g);

	n = call("F", "call", "", "x", "y");
	m = model_of(&n);
	f = function("F", "ab", "a");
	wire_msg(&m, MODEL_FUNCTION, &f);
	expect_error(&m, -EINVAL, "output 'a' is an input that the caller leaves out");
}

/* What a subgraph of a body captures is renamed with it, at every depth; names
 * that are taken outside get another. */
static void subgraphs(void **state)
{
	struct wire n = call("F", "c", "x", NULL, "y"), g = graph_of(&n), m, f = function("F", "a", "b"), deep;
	struct rg_graph *graph;
	const struct rg_graph *sub, *inner;
	const struct rg_node *host;

	put_node(&g, GRAPH_NODE, "Neg", "x", NULL, "c/t"); /* in the way */
	m = wire_model(10, 18, &g);
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "t");
	deep = wire_node("Add", "t", "a", "v");
	n = wire_node("Identity", "a", NULL, "u");
	put_body(&n, "deep", &deep, "v");
	deep = n;
	n = wire_node("Identity", "t", NULL, "b");
	put_body(&n, "body", &deep, "u");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	graph = load(&m);
	assert_string_equal(listing(graph), "Relu c/Relu_0 x->c/t.1\n"
					    "Identity c/Identity_1 c/t.1->y\n"
					    "Neg Neg_1 x->c/t\n");
	host = &graph->nodes[1];
	sub = host->attrs[0].g;
	assert_ptr_equal(sub->outer, graph);
	assert_int_equal(sub->depth, 1);
	assert_string_equal(listing(sub), "Identity c/Identity_0 x->c/u\n");
	inner = sub->nodes[0].attrs[0].g;
	assert_string_equal(listing(inner), "Add c/Add_0 c/t.1,x->c/v\n");
	assert_true(inner->values[rg_graph_find_value(inner, "c/t.1")].from_outer);
	rg_graph_free(graph);
}

/* A call in the branch of a node, inside a function, with its own subgraph. */
static void calls_in_subgraphs(void **state)
{
	struct wire n = wire_node("Identity", "x", NULL, "y"), in = call("F", "in", "x", NULL, "z"), m,
		    f = function("F", "a", "b");
	struct rg_graph *g;

	put_body(&n, "body", &in, "z");
	m = model_of(&n);
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_string_equal(listing(g->nodes[0].attrs[0].g), "Relu in/Relu_0 x->z\n");
	rg_graph_free(g);
}

/* A graph that the caller gives: it captures from the caller, not from the body. */
static void a_graph_as_an_attribute(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), in = wire_node("Neg", "x", NULL, "t"), m,
		    f = function("F", "a", "b");
	struct rg_graph *g;

	put_body(&n, "then", &in, "t");
	m = model_of(&n);
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "x"); /* not the x that is meant */
	n = wire_node("Identity", "x", NULL, "b");
	put_ref(&n, "branch", "then", 5);
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	g = load(&m);
	assert_string_equal(listing(g), "Relu call/Relu_0 x->call/x\n"
					"Identity call/Identity_1 call/x->y\n");
	assert_string_equal(g->nodes[1].attrs[0].name, "branch");
	assert_string_equal(listing(g->nodes[1].attrs[0].g), "Neg call/Neg_0 x->call/t\n");
	rg_graph_free(g);
}

/* Fields that came after IR version 8: metadata everywhere, device placement of
 * nodes and of the model. None says what is computed. */
static void newer_fields(void **state)
{
	const int64_t one[] = { 1 };
	struct wire n = wire_node("Relu", "x", NULL, "y"), g, m, t = wire_tensor("w", RG_U8, 1, one), e = { 0 };
	struct rg_graph *graph;

	wire_str(&e, 1, "key");
	wire_str(&e, 2, "value");
	wire_bytes(&n, 9, e.p, e.len);
	wire_bytes(&n, 10, e.p, e.len);
	g = graph_of(&n);
	wire_bytes(&t, TENSOR_RAW, "a", 1);
	wire_bytes(&t, 16, e.p, e.len);
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	wire_bytes(&g, 16, e.p, e.len);
	m = wire_model(14, 28, &g);
	wire_bytes(&m, 14, e.p, e.len);
	wire_msg(&m, 26, &e);
	graph = load(&m);
	assert_string_equal(listing(graph), "Relu Relu_0 x->y\n");
	assert_int_equal(graph->nodes[0].version, 14);
	rg_graph_free(graph);
}

/* ---- what it refuses ---- */

static void recursion(void **state)
{
	struct wire n = call("F", "call", "x", NULL, "y"), m = model_of(&n), f = function("F", "a", "b");

	n = call("F", "again", "a", NULL, "b");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	expect_error(&m, -EINVAL, "function loc.F calls itself");

	n = call("F", "call", "x", NULL, "y");
	m = model_of(&n);
	f = function("F", "a", "b");
	n = call("G", "g", "a", NULL, "b");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	f = function("G", "a", "b");
	struct wire in = call("F", "f", "a", NULL, "c");

	n = wire_node("Identity", "a", NULL, "b");
	put_body(&n, "body", &in, "c");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	expect_error(&m, -EINVAL, "function loc.F calls itself");
}

/* Each function calls the next twice: 2^60 nodes in 4 KB. */
static void blow_up(void **state)
{
	struct wire n = call("F0", "call", "x", NULL, "y"), m = model_of(&n), f;
	char name[16];

	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "F%d", i);
		f = function(name, "a", "c");
		snprintf(name, sizeof(name), "F%d", i + 1);
		n = i == 59 ? wire_node("Relu", "a", NULL, "b") : call(name, "l", "a", NULL, "b");
		wire_msg(&f, FUNCTION_NODE, &n);
		n = i == 59 ? wire_node("Relu", "b", NULL, "c") : call(name, "r", "b", NULL, "c");
		wire_msg(&f, FUNCTION_NODE, &n);
		wire_msg(&m, MODEL_FUNCTION, &f);
	}
	expect_error(&m, -E2BIG, "more nodes than a model of this size honestly has");

	/* The same with names: each call doubles nothing, but the prefix is long. */
	char *longest = malloc(60001);

	memset(longest, 'a', 60000);
	longest[60000] = '\0';
	n = call("F0", longest, "x", NULL, "y");
	m = model_of(&n);
	f = function("F0", "a", "b");
	for (int i = 0; i < 5000; i++)
		put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "");
	put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b");
	wire_msg(&m, MODEL_FUNCTION, &f);
	expect_error(&m, -E2BIG, "more memory than a model of this size honestly has");
	free(longest);
}

static void deep_calls(void **state)
{
	for (int levels = RG_MAX_SUBGRAPH_DEPTH; levels < 100000; levels = levels < 300 ? 300 : levels * 100) {
		struct wire n = call("F0", "call", "x", NULL, "y"), m = model_of(&n), f;
		char name[16];

		for (int i = 0; i < levels; i++) {
			snprintf(name, sizeof(name), "F%d", i);
			f = function(name, "a", "b");
			snprintf(name, sizeof(name), "F%d", i + 1);
			n = i == levels - 1 ? wire_node("Relu", "a", NULL, "b") : call(name, "n", "a", NULL, "b");
			wire_msg(&f, FUNCTION_NODE, &n);
			wire_msg(&m, MODEL_FUNCTION, &f);
		}
		if (levels >= 300) {
			expect_error(&m, RG_ENOTSUP_MODEL, "functions call functions deeper than 256");
		} else {
			struct rg_graph *g = load(&m);

			assert_int_equal(g->n_nodes, 1);
			rg_graph_free(g);
		}
	}
}

static void wrong_calls(void **state)
{
	struct wire n, m, f;

#define CASE(ins, outs, put, code, text) do { \
		n = call("F", "call", "x", NULL, "y"); \
		put_int(&n, NODE_ATTR, "k", 1); \
		m = model_of(&n); \
		f = function("F", ins, outs); \
		put; \
		wire_msg(&m, MODEL_FUNCTION, &f); \
		expect_error(&m, code, text); \
	} while (0)
	CASE("", "b", put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b"), -EINVAL,
	     "node 'call' (F): the call has 1 inputs and 1 outputs, function loc.F has 0 and 1");
	CASE("a", "", (void)0, -EINVAL, "function loc.F has 1 and 0");
	CASE("a", "b", put_node(&f, FUNCTION_NODE, "Relu", "ghost", NULL, "b"), -EINVAL,
	     "'ghost' is read, but nothing produces it");
	/* A name of the caller is not visible in a function. */
	CASE("a", "b", put_node(&f, FUNCTION_NODE, "Relu", "x", NULL, "b"), -EINVAL, "'x' is read");
	CASE("a", "b", (void)0, -EINVAL, "'b' is read");
	CASE("a", "b", (put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b"),
			put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b")), -EINVAL, "produced by two nodes");
	CASE("ab", "b", put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b"), -EINVAL,
	     "value 'b' is an input of the function and also an output");
	CASE("aa", "b", put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b"), -EINVAL, "listed twice");
	CASE("a", "b", (n = wire_node("Relu", "a", NULL, "b"), put_ref(&n, "f", "k", 1),
			wire_msg(&f, FUNCTION_NODE, &n)), -EINVAL,
	     "attribute 'f' takes the value of 'k', which is of type 2, not 1");
	CASE("a", "b", put_node(&f, FUNCTION_NODE, "Nonsense", "a", NULL, "b"), RG_ENOTSUP_MODEL,
	     "operator Nonsense (opset 13) of node 'call/Nonsense_0'");
	CASE("a", "b", wire_int(&f, FUNCTION_NODE, 5), -EBADMSG, "wrong wire type");
	/* Twice the same function. */
	CASE("a", "b", (put_node(&f, FUNCTION_NODE, "Relu", "a", NULL, "b"), wire_msg(&m, MODEL_FUNCTION, &f),
			f = function("F", "a", "b")), -EINVAL, "function loc.F is defined twice");
#undef CASE
}

/* A model with all that can go wrong in memory: nested calls, a subgraph, a
 * default, a tensor, an overload. */
static struct wire rich_model(void)
{
	const int64_t one[] = { 1 };
	struct wire n = call("F", "call", "x", NULL, "y"), m, f = function("F", "a", "b"), in, t, a = { 0 };

	wire_str(&n, NODE_OVERLOAD, "o");
	m = model_of(&n);
	wire_str(&f, FUNCTION_OVERLOAD, "o");
	n = call("G", "g", "a", NULL, "t");
	put_int(&n, NODE_ATTR, "k", 3);
	wire_msg(&f, FUNCTION_NODE, &n);
	in = call("G", "h", "t", NULL, "z");
	n = wire_node("Identity", "t", NULL, "b");
	put_body(&n, "body", &in, "z");
	wire_msg(&f, FUNCTION_NODE, &n);
	wire_msg(&m, MODEL_FUNCTION, &f);
	f = function("G", "a", "b");
	n = wire_node("Constant", NULL, NULL, "c");
	t = wire_tensor("", RG_F32, 1, one);
	wire_bytes(&t, TENSOR_RAW, "\0\0\x80?", 4);
	wire_str(&a, ATTR_NAME, "value");
	wire_msg(&a, ATTR_T, &t);
	wire_msg(&n, NODE_ATTR, &a);
	wire_msg(&f, FUNCTION_NODE, &n);
	n = wire_node("Add", "a", "c", "b");
	put_ref(&n, "axis", "k", 2);
	wire_msg(&f, FUNCTION_NODE, &n);
	put_int(&f, FUNCTION_DEFAULT, "k", 2);
	wire_msg(&m, MODEL_FUNCTION, &f);
	return m;
}

static void every_allocation_fails_once(void **state)
{
	struct wire m = rich_model();
	uint64_t n = 1;

	for (;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;
		bool failed;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_onnx_load_memory(m.p, m.len, "m", &g, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_graph_free(g);
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		if (rc != -ENOMEM)
			fail_msg("allocation %d failed: code %d, %s", (int)n, rc, err.message);
	}
	assert_true(n > 100);
	wire_free(&m);
}

static void mutated(void **state)
{
	struct wire m = rich_model();
	uint64_t stream = rg_rng_stream(1, "functions");
	int accepted = 0, refused = 0;

	for (uint64_t i = 0; i < 20000; i++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;
		size_t at = (size_t)rg_rng_integer(stream, 2 * i, 0, (int64_t)m.len - 1);
		uint8_t old = m.p[at];

		m.p[at] = (uint8_t)rg_rng_u64(stream, 2 * i + 1);
		if (rg_onnx_load_memory(m.p, m.len, "m", &g, &err) == 0) {
			accepted++;
			rg_graph_free(g);
		} else {
			assert_null(g);
			assert_true(err.message[0]);
			refused++;
		}
		m.p[at] = old;
	}
	for (size_t n = 0; n < m.len; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;

		if (rg_onnx_load_memory(m.p, n, "m", &g, &err) == 0)
			rg_graph_free(g);
		else
			assert_true(err.message[0]);
	}
	wire_free(&m);
	assert_true(accepted > 100);
	assert_true(refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call),
		cmocka_unit_test(calls_in_functions),
		cmocka_unit_test(attributes),
		cmocka_unit_test(constants),
		cmocka_unit_test(an_opset_of_its_own),
		cmocka_unit_test(overloads),
		cmocka_unit_test(outputs_that_are_inputs),
		cmocka_unit_test(subgraphs),
		cmocka_unit_test(calls_in_subgraphs),
		cmocka_unit_test(a_graph_as_an_attribute),
		cmocka_unit_test(newer_fields),
		cmocka_unit_test(recursion),
		cmocka_unit_test(blow_up),
		cmocka_unit_test(deep_calls),
		cmocka_unit_test(wrong_calls),
		cmocka_unit_test(every_allocation_fails_once),
		cmocka_unit_test(mutated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
