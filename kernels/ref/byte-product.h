/* Products of matrices of bytes, a strip of one row at a time: sums in 32 bits that wrap. */
#ifndef RG_KERNELS_REF_BYTE_PRODUCT_H
#define RG_KERNELS_REF_BYTE_PRODUCT_H

#include "graph/op-gemm.h"
#include "kernels/ref/byte.h"

#define RG_BYTE_STRIP 64

struct rg_byte_product {
	int64_t n, k;
	const struct rg_tensor *a, *b; /* int8 or uint8 */
	int64_t a_row, a_col, b_row, b_col;
};
/*
 * sum[j] = sum over k of (a[a_at + k a_col] - a_zero) (b[b_at + k b_row + j b_col] - b_zero[j])
 * for j < w <= RG_BYTE_STRIP; a_at and b_at say where the row and the strip begin.
 */
void rg_byte_product_strip(const struct rg_byte_product *p, int64_t a_at, int32_t a_zero, int64_t b_at,
			   const int32_t *b_zero, int64_t w, int32_t *sum);

/*
 * numpy's matmul of two tensors of bytes. strip() gets the sums of elements
 * [at, at + w) of the output, which are in row i, columns j on.
 */
struct rg_byte_matmul {
	const struct rg_call *c;
	const struct rg_tensor *a, *b;
	int a_zero_input, b_zero_input; /* absent, one value, or one a row of a, a column of b; -1: a_zero */
	int32_t a_zero;
	void (*strip)(const struct rg_byte_matmul *m, int64_t at, int64_t i, int64_t j, int64_t w,
		      const int32_t *sum);
	const void *ctx;                /* for it */
};
int rg_byte_matmul_run(const struct rg_byte_matmul *m, struct rg_error *err);

#endif
