/*
 * Strided copies (kernels/ref/copy.h says what one is) at the speed of memory,
 * split over the lanes. What decides is how the innermost dimension of the output
 * is read: as it lies, from one element, or across; then the dimension that the
 * input has innermost becomes the one outside of it, and blocks are turned in
 * registers. No level of instructions makes this faster: it is compiled once.
 */
#ifndef RG_KERNELS_GENERIC_MOVE_H
#define RG_KERNELS_GENERIC_MOVE_H

#include "kernels/generic/generic.h"
#include "kernels/ref/copy.h"

/* Elements of 1, 2, 4, 8 or 16 bytes. The output is written densely. */
void rg_move_run(const struct rg_copy *c, const void *from, void *to, size_t size_bytes, const struct rg_par *par);

/* Items worth another lane when each moves so many bytes: 0.1 ns a byte. */
RG_INLINE int64_t rg_move_grain(int64_t bytes)
{
	return rg_grain(bytes * 2 / 5 + 8);
}

#endif
