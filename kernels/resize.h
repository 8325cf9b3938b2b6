/*
 * The table behind every interpolation of Resize: which elements of the input
 * an output coordinate of an axis is made of, and with which weights. Shared by
 * the kernels, computed in double.
 */
#ifndef RG_KERNELS_RESIZE_H
#define RG_KERNELS_RESIZE_H

#include "graph/resize.h"

struct rg_resize_tap {
	int64_t at;    /* in [0, in) */
	double weight; /* never 0 */
};

/* Room that the taps of one coordinate need, from sizes alone, since scratch is
 * planned from them. */
int64_t rg_resize_width(const struct rg_node *node, int64_t in, int64_t out);
/*
 * The taps of output coordinate i of `axis`, in ascending order of `at`; where the
 * input's edge is repeated, several have the same. Returns their number, at most
 * `width`, or a negative errno. *outside: the extrapolation value takes the
 * place of the result, and there are no taps.
 */
int64_t rg_resize_taps(const struct rg_resize *r, int axis, int64_t i, struct rg_resize_tap *taps, int64_t width,
		       bool *outside, struct rg_error *err);

#endif
