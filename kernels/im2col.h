/*
 * im2col: a convolution as a matrix product (Chellapilla, Puri, Simard 2006).
 *
 * Row t of col belongs to tap t of a group: channel * kernel size + position in
 * the kernel, as the weights lie. Column p belongs to output pixel p. The
 * element is the input that the tap sees there, 0 for padding.
 */
#ifndef RG_KERNELS_IM2COL_H
#define RG_KERNELS_IM2COL_H

#include <stdint.h>

#include "graph/window.h"

/* Rows [row, end), pixels [p0, p0 + count), of the group whose first channel is
 * at x. Row t starts at col + t * ld; ld >= count. */
void rg_im2col(const struct rg_window *w, const float *x, int64_t row, int64_t end, int64_t p0, int64_t count,
	       int64_t ld, float *col);

#endif
