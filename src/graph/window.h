/*
 * Sliding windows: what Conv, ConvTranspose and the pools share. The geometry
 * of a node is resolved here once, from attributes and shapes, and both shape
 * inference and every kernel read it from here, so the two cannot disagree.
 *
 * Formulas: ONNX operator documents (Conv, ConvTranspose, MaxPool, AveragePool);
 * with ceil_mode a window that would start beyond the input and its left
 * padding is dropped (ONNX 1.16 and later; older files mean the same).
 */
#ifndef RG_GRAPH_WINDOW_H
#define RG_GRAPH_WINDOW_H

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

#define RG_MAX_SPATIAL (RG_MAX_RANK - 2)

struct rg_window {
	int n;                                /* spatial dimensions: rank - 2 */
	int64_t batch;                        /* N */
	int64_t c_in, c_out;                  /* channels; equal for pools */
	int64_t group;                        /* 1 for pools */
	int64_t in[RG_MAX_SPATIAL];           /* spatial sizes of the input */
	int64_t out[RG_MAX_SPATIAL];          /* and of the output */
	int64_t kernel[RG_MAX_SPATIAL];
	int64_t stride[RG_MAX_SPATIAL];       /* >= 1 */
	int64_t dilation[RG_MAX_SPATIAL];     /* >= 1 */
	int64_t pad_begin[RG_MAX_SPATIAL];    /* >= 0 */
	int64_t pad_end[RG_MAX_SPATIAL];
	int64_t in_count, out_count, kernel_count; /* products of the above */
};

/* x: N x C x spatial; w: M x C/group x kernel. */
int rg_window_conv(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *w,
		   struct rg_window *win, struct rg_error *err);
/* x: N x C x spatial; w: C x M/group x kernel. */
int rg_window_conv_transpose(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *w,
			     struct rg_window *win, struct rg_error *err);
/* x: N x C x spatial; the window is the attribute kernel_shape. */
int rg_window_pool(const struct rg_node *node, const struct rg_shape *x, struct rg_window *win,
		   struct rg_error *err);
/* N x c_out x out. */
void rg_window_out_shape(const struct rg_window *win, struct rg_shape *out);

#endif
