/*
 * Activations over rows that a product or a convolution has just stored: in place,
 * with the scale and the shift that follow them.
 *
 * A row is a tile's width to a plane's, in L1. Kept out of the tiles, since there
 * are dozens of those for each level, and a dozen of these.
 */
#ifndef RG_KERNELS_GENERIC_ACTIVATE_H
#define RG_KERNELS_GENERIC_ACTIVATE_H

#include "graph/own.h"
#include "kernels/generic/tile.h"

typedef void rg_finish_fn(float *y, int64_t n, const struct rg_epilogue *e);

#define rg_activate_find RG_LEVEL_FN(rg_activate_find)

/*
 * The function for what follows the clip: *fn NULL where nothing does (no activation,
 * Relu and Clip without scale and shift). false: there is none for this activation.
 */
bool rg_activate_find(const struct rg_finish *f, rg_finish_fn **fn);

#endif
