/*
 * Small graphs for tests of the compiler and the executor. Every function
 * fails the test when it cannot do what it says.
 */
#ifndef RG_TESTS_COMPILE_MAKE_GRAPH_H
#define RG_TESTS_COMPILE_MAKE_GRAPH_H

#include "compile/plan.h"
#include "graph/graph.h"

struct rg_graph *make_graph(void); /* opset 17 */
void make_input(struct rg_graph *g, const char *name, enum rg_dtype t, const char *shape);
/* Constants; values NULL: 0, 1, 2, ... */
void make_floats(struct rg_graph *g, const char *name, const char *shape, const float *values);
void make_ints(struct rg_graph *g, const char *name, int n, const int64_t *values);
/* in, out: names separated by ','. The node is called "n:" and its first output. */
void make_node(struct rg_graph *g, const char *op, const char *in, const char *out);
void make_node_attrs(struct rg_graph *g, const char *op, const char *in, const char *out, int n_attrs,
		     const struct rg_attr *attrs);
void make_output(struct rg_graph *g, const char *name);
void make_finish(struct rg_graph *g); /* finish and bind */

/* A plan for that many lanes with every ISA bit of this CPU; checked. */
struct rg_plan *make_plan(struct rg_graph *g, int lanes);
const struct rg_plan_tensor *plan_value(const struct rg_plan *p, const char *name);
/* The step whose first output has that name; -1: none. */
int plan_step(const struct rg_plan *p, const char *out);

/*
 * A random graph of n nodes: Relu, Neg, Abs, Add, Sub, Max, Reshape, Identity
 * over values of three sizes, with constants, dead ends and several outputs.
 * Inputs are "in0" to "in2".
 */
struct rg_graph *make_random(uint64_t seed, int n);

#endif
