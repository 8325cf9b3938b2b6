/*
 * Unique: which elements, or slices along an axis, are distinct. How many are is
 * the shape of the outputs, so that inference and kernel run the same search.
 *
 * Slices compare element by element in row-major order. NaN comes last and is
 * equal to NaN, and -0 to 0, as numpy.unique has it. Strings compare by their bytes.
 */
#ifndef RG_GRAPH_UNIQUE_H
#define RG_GRAPH_UNIQUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

struct rg_unique {
	int axis;               /* -1: over all elements */
	int64_t items;          /* elements, or slices along the axis */
	int64_t outer, inner;   /* an item is outer runs of inner elements */
	bool sorted;
	bool blank;             /* slices of no elements: any two are equal */
};
/* Types of whole bytes that compare: numbers, booleans, strings. */
int rg_unique_resolve(const struct rg_node *node, const struct rg_tensor *x, struct rg_unique *out,
		      struct rg_error *err);
/* None for blank slices, of which an empty tensor may have any number. */
size_t rg_unique_scratch_bytes(const struct rg_unique *a);
/*
 * Number of distinct items. Afterwards scratch holds, an int64 an item each:
 * first[item], the first item that it is equal to; place[item], for a first one,
 * its place in the output. Scratch is aligned to 8. Of blank slices only the
 * number is found, and first and place stay as they are.
 */
int64_t rg_unique_run(const struct rg_unique *a, const struct rg_tensor *x, void *scratch, const int64_t **first,
		      const int64_t **place);

#endif
