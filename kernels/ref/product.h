/* The reference product of two matrices of any strides, for the operators that are built on one. */
#ifndef RG_KERNELS_REF_PRODUCT_H
#define RG_KERNELS_REF_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/dtype.h"

/* y = alpha a b + beta c; strides in elements, of rows and columns; y is dense. */
struct rg_ref_product {
	int64_t m, n, k;
	int64_t a_row, a_col, b_row, b_col, c_row, c_col;
	double alpha, beta;
	bool has_c;
};
/* t: a float type, or a 32- or 64-bit integer. */
void rg_ref_product_run(enum rg_dtype t, const struct rg_ref_product *p, const void *a, const void *b, const void *c,
			void *y);

#endif
