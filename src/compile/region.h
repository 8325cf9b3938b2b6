/*
 * A pattern as a set of nodes, of which one makes the result that stays. The others may
 * go where nobody outside of the set reads what they make, however often the set itself
 * does: x in (x + 3) * x.
 */
#ifndef RG_COMPILE_REGION_H
#define RG_COMPILE_REGION_H

#include "compile/match.h"

enum { RG_REGION_MOST = 32 };

struct rg_region {
	int n, node[RG_REGION_MOST];
	bool kept[RG_REGION_MOST];  /* what the node makes, the new one makes too */
};

/* Adds a node, once. false: there is no room. */
bool rg_region_add(struct rg_region *r, int node);
bool rg_region_keep(struct rg_region *r, int node); /* the same, and its outputs stay */
bool rg_region_has(const struct rg_region *r, int node);
/* What keeps the set from going: somebody else's use of a value that is not `last`'s, or an output. */
enum rg_decline rg_region_closed(const struct rg_match *m, const struct rg_region *r, int last);

/* A node that takes the place of a set. */
struct rg_replacement {
	const char *domain, *op_type; /* domain "": opset says since which one the operator is there */
	int64_t opset;                /* at least; 0: that of the model will do */
	int n_in;
	const int *in;                /* values, -1 none */
	int n_attrs;
	const struct rg_attr *attrs;
	int n_out;                    /* 0: the one output of `last` */
	const int *out;
};
/*
 * Puts it there, under the name of `last`, and notes each of the others as having become part of it.
 * Imports ONNX Runtime's domain where that is its own.
 */
int rg_region_replace(struct rg_match *m, const struct rg_region *r, int last, const struct rg_replacement *by,
		      struct rg_error *err);

#endif
