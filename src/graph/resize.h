/*
 * Resize and Upsample: what a node means, resolved once for shape inference
 * and kernels alike.
 *
 * Formulas: ONNX operator document of Resize; where document and published
 * test data differ (align_corners with a fractional output size), the test
 * data is followed: the length is in * scale, not rounded.
 */
#ifndef RG_GRAPH_RESIZE_H
#define RG_GRAPH_RESIZE_H

#include <stdbool.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

enum rg_resize_mode { RG_RESIZE_NEAREST, RG_RESIZE_LINEAR, RG_RESIZE_CUBIC };

enum rg_resize_coord {
	RG_COORD_HALF_PIXEL,
	RG_COORD_HALF_PIXEL_SYMMETRIC,
	RG_COORD_PYTORCH_HALF_PIXEL,
	RG_COORD_ALIGN_CORNERS,
	RG_COORD_ASYMMETRIC,
	RG_COORD_TF_HALF_PIXEL_FOR_NN,
	RG_COORD_TF_CROP_AND_RESIZE,
};

enum rg_resize_nearest {
	RG_NEAREST_ROUND_PREFER_FLOOR,
	RG_NEAREST_ROUND_PREFER_CEIL,
	RG_NEAREST_FLOOR,
	RG_NEAREST_CEIL,
	RG_NEAREST_SIMPLE, /* before version 11: floor when growing, ceil when shrinking */
};

struct rg_resize {
	int rank;
	int64_t in[RG_MAX_RANK], out[RG_MAX_RANK];
	double scale[RG_MAX_RANK];
	double roi_begin[RG_MAX_RANK], roi_end[RG_MAX_RANK];
	bool axis_kept[RG_MAX_RANK]; /* copied as it is: same size, scale 1, no crop */
	enum rg_resize_mode mode;
	enum rg_resize_coord coord;
	enum rg_resize_nearest nearest;
	bool antialias, exclude_outside;
	double cubic_a;
	double extrapolation_value;
};

/*
 * `in` has node->n_in entries; absent ones are RG_UNDEFINED. When the value of
 * input i is needed and its data is NULL: RG_ENEED_VALUE and *need_value = i.
 */
int rg_resize_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_resize *r,
		      int *need_value, struct rg_error *err);

/* Where output coordinate x of an axis lies in the input. *outside (may not be
 * NULL): the extrapolation value takes the place of the result. */
double rg_resize_source(const struct rg_resize *r, int axis, int64_t x, bool *outside);

#endif
