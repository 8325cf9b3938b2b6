/*
 * OpenBLAS, loaded at run time. It is one kernel variant among others: never
 * linked, so that the program also runs where it is not installed.
 *
 * OpenBLAS runs on one thread here; parallelism comes from rg_par, each lane
 * calling it on its part. All functions are thread safe.
 */
#ifndef RG_KERNELS_BLAS_BLAS_H
#define RG_KERNELS_BLAS_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loaded, and a few odd-shaped products agree with a scalar loop. The first
 * call loads it (some milliseconds); later ones cost an atomic load. */
bool rg_blas_available(void);
/* "OpenBLAS 0.3.21 Cooperlake", or why it is unavailable. Static storage. */
const char *rg_blas_describe(void);

/*
 * C = op(A) * op(B) + beta * C * (beta 0: C is not read), all row-major, lda,
 * ldb, ldc in elements; op transposes when asked, so that op(A) is m x k and
 * op(B) is k x n. A product with one row or column goes to the matrix-vector
 * routine. Only when rg_blas_available(); sizes within int.
 */
void rg_blas_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
		   int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* Whether sizes and strides of a product fit OpenBLAS's int. */
static inline bool rg_blas_fits(int64_t v)
{
	return v >= 0 && v <= INT32_MAX;
}

/*
 * How lanes share a GEMM-like job of `units` units, each `unit_flops` long:
 * as many chunks as lanes, or fewer when a chunk would not be worth waking a
 * lane (about 20 us of a slow core).
 */
int64_t rg_blas_grain(int64_t units, double unit_flops, int lanes);

#endif
