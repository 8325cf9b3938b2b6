/* What the tests of the ONNX reader expect of an error, and the graphs they put
 * their faults into. */
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
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
