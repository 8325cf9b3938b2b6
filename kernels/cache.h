/*
 * Sizes of the caches that kernels block their loops for, as the machine reports
 * them; a common size where it reports none. Read once in the life of the process,
 * at the first call, which planning makes (supports, scratch_bytes); later calls
 * only read them, from any thread.
 */
#ifndef RG_KERNELS_CACHE_H
#define RG_KERNELS_CACHE_H

#include <stdint.h>

struct rg_kernel_caches {
	int64_t l1_bytes;     /* data, of one core */
	int64_t l2_bytes;     /* what one core can count on: divided where it is shared */
	int64_t l3_bytes;     /* likewise; equal to l2_bytes where there is none */
};

const struct rg_kernel_caches *rg_kernel_caches(void);

#endif
