/*
 * Col2Im and CenterCropPad: what a node means, resolved once for shape inference
 * and kernels alike. DeformConv is a window (graph/window.h) with offsets.
 */
#ifndef RG_GRAPH_GEOMETRY_H
#define RG_GRAPH_GEOMETRY_H

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/window.h"

/*
 * `in` has node->n_in entries; absent ones are RG_UNDEFINED. When the value of
 * input i is needed and its data is NULL: RG_ENEED_VALUE and *need_value = i.
 */

/* The convolution whose columns are summed up: its input is the image (c_in
 * channels), its output positions are the columns. `image` is the output shape. */
int rg_col2im_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_window *out,
		      struct rg_shape *image, int *need_value, struct rg_error *err);

/* Of each dimension, `count` elements are kept, from `from` in the input to `to`
 * in the output. */
struct rg_crop_pad {
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK], count[RG_MAX_RANK];
	struct rg_shape out;
};
int rg_crop_pad_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_crop_pad *out,
			int *need_value, struct rg_error *err);

#endif
