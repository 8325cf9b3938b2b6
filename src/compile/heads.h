/*
 * Where the heads of queries, keys and values come from: the way back from what a product
 * of attention reads, batch x heads x sequence x size, to the tensor that an exporter has
 * split into heads.
 */
#ifndef RG_COMPILE_HEADS_H
#define RG_COMPILE_HEADS_H

#include "compile/region.h"

struct rg_heads {
	int64_t batch, heads, seq, size; /* seq: with what is past */
	double scale;                    /* numbers that were multiplied in */
	int x;                           /* value: batch x seq x (parts x heads x size), whatever its dimensions */
	int part, parts;                 /* of the last dimension; 1 part: all of it */
	bool heads_first;                /* x is batch x heads x seq x size: nothing was split here */
	int past, present;               /* values: what seq begins with, and the whole; -1 none */
	struct rg_region nodes;          /* the nodes on the way, the near ones first */
};

/*
 * `value` has the four dimensions, or its last two the other way round (keys). false: other dimensions than
 * h->batch, h->heads, h->seq and h->size, which are the caller's, or not float32.
 */
bool rg_heads_of(const struct rg_match *m, int value, bool transposed, struct rg_heads *h);
/* Steps back over products with numbers, and quotients by them, that make `value`: they go into *scale. */
int rg_heads_unscale(const struct rg_match *m, int value, double *scale, struct rg_region *nodes);
/* Whether a node is a Transpose with this permutation. */
bool rg_heads_turns(const struct rg_match *m, int node, int rank, const int64_t *perm);

#endif
