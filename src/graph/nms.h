/*
 * NonMaxSuppression: which boxes stay. How many do is the shape of the output,
 * so that inference and kernel run the same selection.
 *
 * Scores are taken from the best down, the lower index first among equals, NaN
 * last; a box stays unless its intersection over union with one that stays is
 * above the threshold. All in float32, as the inputs are.
 */
#ifndef RG_GRAPH_NMS_H
#define RG_GRAPH_NMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

struct rg_nms {
	int64_t batches, classes, boxes;
	const float *box, *score;
	int64_t most;         /* a batch and class */
	float iou;
	bool has_floor;       /* scores up to `floor` are out */
	float floor;
	bool centre;          /* x, y, width, height; else two corners y, x, y, x */
};

/*
 * `in` has node->n_in entries; absent ones are RG_UNDEFINED. When the value of
 * input i is needed and its data is NULL: RG_ENEED_VALUE and *need_value = i.
 */
int rg_nms_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_nms *out, int *need_value,
		   struct rg_error *err);
/* Scratch of a selection among so many boxes. */
size_t rg_nms_scratch_bytes(int64_t boxes);
/*
 * Number of boxes that stay. `out` (may be NULL) gets the first `cap` of them as
 * triples of batch, class and box. Scratch is aligned to 8.
 */
int64_t rg_nms_run(const struct rg_nms *a, void *scratch, int64_t *out, int64_t cap);

#endif
