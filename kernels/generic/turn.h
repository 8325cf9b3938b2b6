/* Squares of 4 x 4 floats turned in registers: rows become columns, at every level of vectors. */
#ifndef RG_KERNELS_GENERIC_TURN_H
#define RG_KERNELS_GENERIC_TURN_H

#include "kernels/generic/generic.h"

/* Four floats at any address of a float. */
typedef float rg_vec4 __attribute__((vector_size(16), aligned(4), may_alias));

RG_INLINE void rg_turn4(rg_vec4 *r)
{
	rg_vec4 a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
	rg_vec4 c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);

	r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
	r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
	r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
	r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

#endif
