/* Counting through a box of up to RG_MAX_RANK dimensions, last one fastest. */
#ifndef RG_KERNELS_REF_ODOMETER_H
#define RG_KERNELS_REF_ODOMETER_H

#include <stdbool.h>
#include <stdint.h>

/* Moves on by one; false when it came round to the start again. */
static inline bool rg_odometer_next(int n, const int64_t *dim, int64_t *index)
{
	for (int d = n - 1; d >= 0; d--) {
		if (++index[d] < dim[d])
			return true;
		index[d] = 0;
	}
	return false;
}

#endif
