/* What the tests of the dynamic path share: graphs with subgraphs, and running them. */
#ifndef RG_TESTS_EXEC_MAKE_DYNAMIC_H
#define RG_TESTS_EXEC_MAKE_DYNAMIC_H

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "tests/compile/make-graph.h"

/* A graph that is planned and can be run. */
struct made {
	struct rg_graph *g;
	struct rg_plan *p;
	struct rg_exec *e;
};

static inline struct rg_graph *make_graph_of(int64_t opset)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = rg_graph_new(NULL);

	assert_non_null(g);
	assert_int_equal(rg_graph_set_opset(g, "", opset, &err), 0);
	return g;
}

static inline struct rg_graph *make_body(struct rg_graph *outer)
{
	struct rg_graph *g = rg_graph_new(outer);

	assert_non_null(g);
	return g;
}

/* A copy of a value that the planner takes for computed: what depends on it is
 * dynamic, and not specialised to an input. */
static inline void make_computed(struct rg_graph *g, const char *from, const char *to)
{
	char optional[64];

	snprintf(optional, sizeof(optional), "%s-optional", to);
	make_node(g, "Optional", from, optional);
	make_node(g, "OptionalGetElement", optional, to);
}

/* A formal input of a body, or an output, of which nothing is declared. */
static inline void make_formal(struct rg_graph *g, const char *name)
{
	struct rg_error err = RG_ERROR_INIT;

	assert_int_equal(rg_graph_add_input(g, rg_graph_value(g, name, &err), &err), 0);
}

/* A main input that is a sequence or an optional. */
static inline void make_holder(struct rg_graph *g, const char *name, enum rg_value_kind kind)
{
	struct rg_error err = RG_ERROR_INIT;
	int v = rg_graph_value(g, name, &err);

	assert_int_equal(rg_graph_declare(g, v, RG_F32, -1, NULL, &err), 0);
	assert_int_equal(rg_graph_declare_kind(g, v, kind, &err), 0);
	assert_int_equal(rg_graph_add_input(g, v, &err), 0);
}

static inline struct rg_attr graph_attr(const char *name, struct rg_graph *g)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_GRAPH, .g = g };
}

static inline struct rg_attr int_attr(const char *name, int64_t i)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = i };
}

static inline struct rg_attr ints_attr(const char *name, int n, const int64_t *v)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INTS, .count = n, .ints = v };
}

static inline struct made make_run(struct rg_graph *g, int lanes, const struct rg_exec_options *opt)
{
	struct rg_error err = RG_ERROR_INIT;
	struct made m = { .g = g };

	make_finish(g);
	m.p = make_plan(g, lanes);
	if (rg_exec_new(m.p, opt, &m.e, &err))
		fail_msg("%s: %s", err.where, err.message);
	return m;
}

static inline void made_free(struct made *m)
{
	rg_exec_free(m->e);
	rg_plan_free(m->p);
	rg_graph_free(m->g);
}

/* The memory of input NAME. */
static inline void *made_input(const struct made *m, const char *name)
{
	for (int i = 0; i < m->g->n_inputs; i++)
		if (!strcmp(m->g->values[m->g->inputs[i]].name, name))
			return rg_exec_input(m->e, i).data;
	fail_msg("no input '%s'", name);
	return NULL;
}

static inline void made_run(const struct made *m)
{
	struct rg_error err = RG_ERROR_INIT;

	if (rg_exec_run(m->e, &err))
		fail_msg("%s: %s", err.where, err.message);
}

/* Must fail, with this in its message. */
static inline void made_fails(const struct made *m, const char *part, struct rg_error *err)
{
	*err = (struct rg_error)RG_ERROR_INIT;
	assert_int_not_equal(rg_exec_run(m->e, err), 0);
	if (!strstr(err->message, part))
		fail_msg("the error is '%s: %s', which does not contain '%s'", err->where, err->message, part);
}

static inline void check_floats(struct rg_tensor t, const char *shape, const float *want)
{
	char text[160];

	assert_int_equal(t.dtype, RG_F32);
	assert_string_equal(rg_shape_text(text, &t.shape), shape);
	for (int64_t i = 0; i < rg_shape_count(&t.shape); i++)
		if (((const float *)t.data)[i] != want[i])
			fail_msg("element %d is %g, expected %g", (int)i, (double)((const float *)t.data)[i],
				 (double)want[i]);
}

#define FLOATS(...) ((const float[]){ __VA_ARGS__ })
#define INTS(...) ((const int64_t[]){ __VA_ARGS__ })
#define ATTRS(...) ((const struct rg_attr[]){ __VA_ARGS__ })

#endif
