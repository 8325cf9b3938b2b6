/*
 * The sizes that a model leaves open. To know whether a rewrite holds for all of them,
 * the model is rewritten at two: `first`, and `second`, which has another value for each
 * size, no two changed alike.
 */
#ifndef RG_SESSION_OPTIMIZE_SIZES_H
#define RG_SESSION_OPTIMIZE_SIZES_H

#include "graph/graph.h"

/* One open size: a symbol, wherever it stands, or a dimension without a name. */
struct rg_open_size {
	const char *symbol;         /* NULL: it has none; then it is dimension `dim` of input `input` */
	int input, dim;             /* where it stands first */
	int64_t first, second;
	bool fixed;                 /* it does not vary: second is first */
	const char *why;            /* fixed: the reason, static text */
};

struct rg_open_sizes {
	int n;
	struct rg_open_size *v;
};

/* Those of a graph that is bound: `first` is what it is bound to. Names are copied into the arena. */
int rg_open_sizes_find(const struct rg_graph *g, struct rg_arena *arena, struct rg_open_sizes *s,
		       struct rg_error *err);
void rg_open_sizes_free(struct rg_open_sizes *s);
/* Another value for size i, the k-th that can be tried; 0: there are no more. */
int64_t rg_open_size_try(const struct rg_open_sizes *s, int i, int k);
/* Binds a graph of the same model to the first sizes or the second. `bound`, n_inputs shapes, is what
 * the inputs had with the first. */
int rg_open_sizes_bind(const struct rg_open_sizes *s, bool second, const struct rg_shape *bound, struct rg_graph *g,
		       struct rg_error *err);
/* Declares the sizes that are fixed as what they are, wherever they stand in inputs. */
int rg_open_sizes_fix(const struct rg_open_sizes *s, struct rg_graph *g, struct rg_error *err);

#endif
