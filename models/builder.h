/*
 * Writes a graph tersely: what the built-in models are made with.
 *
 * Errors are sticky: after the first one every call does nothing and returns
 * -1, so a model is written straight down and rg_b_done() tells at the
 * end. Values are the graph's indices. Names follow an exporter's: a node is
 * named by its scope, its output is that name with "_output_0" behind it.
 *
 * Lists are counted by macros:
 *   rg_b_node(b, "Add", "/add", RG_B_IN(x, y), RG_B_NO_ATTRS)
 */
#ifndef RG_MODELS_BUILDER_H
#define RG_MODELS_BUILDER_H

#include <stdint.h>

#include "graph/graph.h"

struct rg_builder {
	struct rg_graph *g;
	struct rg_error *err;
	int code;          /* first error, 0 none */
	uint64_t seed;     /* of the weights */
};

/* Starts a model of the standard operator set. */
void rg_b_start(struct rg_builder *b, struct rg_graph *g, const char *name, int64_t opset,
		struct rg_error *err);
/* 0, or the first error. */
int rg_b_done(const struct rg_builder *b);

/* A dimension that is open under a symbol, and one that is fixed. */
#define RG_B_OPEN(sym) { .value = -1, .symbol = (sym) }
#define RG_B_DIM(n) { .value = (n), .symbol = NULL }
/* Several of them as the last two arguments of a call. */
#define RG_B_DIMS(...) \
	(int)(sizeof((struct rg_dim[]){ __VA_ARGS__ }) / sizeof(struct rg_dim)), (struct rg_dim[]){ __VA_ARGS__ }

int rg_b_input(struct rg_builder *b, const char *name, enum rg_dtype t, int rank,
	       const struct rg_dim *dims);
/* An output, float32, and its declared shape: rg_b_output(b, y, RG_B_DIMS(...)). */
void rg_b_output(struct rg_builder *b, int value, int rank, const struct rg_dim *dims);

/* Weights uniform in [lo, hi) from stream (seed, name). */
int rg_b_weight(struct rg_builder *b, const char *name, struct rg_shape shape, float lo, float hi);
/* He (Kaiming) uniform: keeps the second moment through a layer with ReLU.
 * He et al., ICCV 2015: var(w) = 2 / fan_in, so the bound is sqrt(6 / fan_in). */
int rg_b_he(struct rg_builder *b, const char *name, struct rg_shape shape, int64_t fan_in);
/* Glorot (Xavier) uniform: bound sqrt(6 / (fan_in + fan_out)), AISTATS 2010. */
int rg_b_glorot(struct rg_builder *b, const char *name, struct rg_shape shape, int64_t fan_in,
		int64_t fan_out);

/* Small constants, as Constant nodes of an exporter: not parameters. rank 0 or
 * 1, `count` values (1 for a scalar). */
int rg_b_const_i64(struct rg_builder *b, const char *name, int rank, int64_t count, const int64_t *v);
int rg_b_const_f32(struct rg_builder *b, const char *name, float v);

struct rg_b_in { int count; const int *v; };
struct rg_b_attrs { int count; const struct rg_attr *v; };
#define RG_B_IN(...) \
	((struct rg_b_in){ (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (int[]){ __VA_ARGS__ } })
#define RG_B_ATTRS(...) \
	((struct rg_b_attrs){ (int)(sizeof((struct rg_attr[]){ __VA_ARGS__ }) / sizeof(struct rg_attr)), \
			      (struct rg_attr[]){ __VA_ARGS__ } })
#define RG_B_NO_ATTRS ((struct rg_b_attrs){ 0, NULL })

#define RG_B_INT(nm, val) { .name = (nm), .type = RG_ATTR_INT, .i = (val) }
#define RG_B_FLOAT(nm, val) { .name = (nm), .type = RG_ATTR_FLOAT, .f = (val) }
#define RG_B_INTS(nm, ...) \
	{ .name = (nm), .type = RG_ATTR_INTS, .ints = (const int64_t[]){ __VA_ARGS__ }, \
	  .count = (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)) }

/* A node with one output; returns that output. */
int rg_b_node(struct rg_builder *b, const char *op, const char *name, struct rg_b_in in,
	      struct rg_b_attrs attrs);

/* A node with several outputs, "NAME_output_0", "NAME_output_1", ...; out gets
 * them (-1 each after an error). */
void rg_b_nodes(struct rg_builder *b, const char *op, const char *name, struct rg_b_in in,
		struct rg_b_attrs attrs, int n_out, int *out);
/* A node whose one output is called `out_name`: an output of the model. */
int rg_b_node_as(struct rg_builder *b, const char *op, const char *name, const char *out_name,
		 struct rg_b_in in, struct rg_b_attrs attrs);

/* "scope" followed by the formatted rest, in the graph's arena ("" on failure). */
const char *rg_b_name(struct rg_builder *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
