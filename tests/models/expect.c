/* What the tests of the ONNX reader expect of an error, and the graphs they put
 * their faults into. */
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/onnx.h"

void expect_in(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not contain '%s'", text, part);
}

void expect_code(int rc, const struct rg_error *err, int code, const char *part)
{
	char all[1024];

	snprintf(all, sizeof(all), "%s: %s", err->where, err->message);
	if (rc == 0)
		fail_msg("accepted, although: %s", part);
	if (rc != code || err->code != code)
		fail_msg("code %d instead of %d: %s", rc, code, all);
	expect_in(all, part);
	for (const char *p = all; *p; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* Loads from memory and frees the bytes; must fail with code and text. */
void expect_error(struct wire *m, int code, const char *part)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	int rc = rg_onnx_load_memory(m->p, m->len, "m", &g, &err);

	wire_free(m);
	rg_graph_free(g);
	expect_code(rc, &err, code, part);
	assert_null(g);
}

void expect_file_error(const char *path, int code, const char *part)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	int rc = rg_onnx_load(path, NULL, &g, &err);

	rg_graph_free(g);
	expect_code(rc, &err, code, part);
	expect_in(err.where, path);
}

struct wire graph_of(struct wire *node)
{
	struct wire g = { 0 }, v = wire_value("x", RG_F32, -1, NULL);

	wire_msg(&g, GRAPH_INPUT, &v);
	if (node)
		wire_msg(&g, GRAPH_NODE, node);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	return g;
}

struct wire relu_graph(void)
{
	struct wire n = wire_node("Relu", "x", NULL, "y");

	return graph_of(&n);
}

struct wire model_with_tensor(struct wire *t)
{
	struct wire g = relu_graph();

	wire_msg(&g, GRAPH_INITIALIZER, t);
	return wire_model(8, 13, &g);
}

static size_t varint_len(size_t v)
{
	size_t n = 1;

	for (; v > 0x7f; v >>= 7)
		n++;
	return n;
}

/* The inner graph stands last in each message, so that only lengths have to be
 * known, from the inside out. */
struct wire nested_model(const char *op, const char *name, int levels)
{
	struct wire g = { 0 }, inner = relu_graph(), node = wire_node(op, "x", NULL, "y"), head = { 0 }, v;
	size_t *len = calloc((size_t)levels + 1, sizeof(*len)), attr, body;

	v = wire_value("x", RG_F32, -1, NULL);
	wire_msg(&head, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, -1, NULL);
	wire_msg(&head, GRAPH_OUTPUT, &v);
#define ATTR_LEN(n) (2 + strlen(name) + 1 + varint_len(n) + (n)) /* name, then g */
#define NODE_LEN(n) (node.len + 1 + varint_len(n) + (n))      /* its fields, then the attribute */
	len[0] = inner.len;
	for (int i = 1; i <= levels; i++) {
		body = NODE_LEN(ATTR_LEN(len[i - 1]));
		len[i] = head.len + 1 + varint_len(body) + body;
	}
	for (int i = levels; i > 0; i--) {
		attr = ATTR_LEN(len[i - 1]);
		wire_raw(&g, head.p, head.len);
		wire_tag(&g, GRAPH_NODE, 2);
		wire_varint(&g, NODE_LEN(attr));
		wire_raw(&g, node.p, node.len);
		wire_tag(&g, NODE_ATTR, 2);
		wire_varint(&g, attr);
		wire_str(&g, ATTR_NAME, name);
		wire_tag(&g, ATTR_G, 2);
		wire_varint(&g, len[i - 1]);
	}
#undef ATTR_LEN
#undef NODE_LEN
	wire_raw(&g, inner.p, inner.len);
	assert_int_equal(g.len, len[levels]);
	wire_free(&inner);
	wire_free(&node);
	wire_free(&head);
	free(len);
	return wire_model(8, 13, &g);
}
