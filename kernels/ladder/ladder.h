/*
 * The rungs of the ladder: the classical exercise of making a matrix product fast, one
 * small loop for each idea. They are for `ridge bench ladder` and for reading; no plan
 * ever takes one.
 *
 * C (m x n) = A (m x k) * B (k x n), row-major, dense. float32, or A unsigned bytes, B
 * signed bytes and C int32, exact modulo 2^32 whatever the values.
 *
 * Scalar rungs are compiled with -O2 -fno-tree-vectorize -fno-tree-slp-vectorize
 * -ffp-contract=off and no instruction set beyond the family's base, so that what is
 * timed is what is written; the SIMD rungs with -O2 and the instructions of their level.
 */
#ifndef RG_KERNELS_LADDER_LADDER_H
#define RG_KERNELS_LADDER_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rg_ladder_product {
	int64_t m, k, n;
	const void *a, *b;
	void *c;
	const void *packed;  /* what the rung's pack() made of B; NULL where it has none */
	void *wide;          /* room for rg_ladder_rung.wide_bytes */
};

struct rg_ladder_rung {
	const char *name;    /* "ikj" */
	const char *idea;    /* what it does, one line */
	const char *level;   /* "scalar", "sse2", "avx2", "avx512", "neon" */
	bool int8;
	uint32_t isa;        /* bits needed */
	/* Rows [row0, row1) of C; rows are independent of each other. */
	void (*run)(const struct rg_ladder_product *p, int64_t row0, int64_t row1);
	/* B in the order in which it will be read, once for all products; NULL: as it lies. */
	size_t (*pack_bytes)(int64_t k, int64_t n);
	void (*pack)(int64_t k, int64_t n, const void *b, void *packed);
	/* A as 16-bit numbers, made by run() itself each time; NULL: as it lies. */
	size_t (*wide_bytes)(int64_t m, int64_t k);
};

/* In the order of the ladder: float32 from naive to fast, then int8; of one name the
 * narrower level first. */
int rg_ladder_count(void);
const struct rg_ladder_rung *rg_ladder_at(int i);
/* The widest rung of that name and type that `isa` allows, or NULL. */
const struct rg_ladder_rung *rg_ladder_find(const char *name, bool int8, uint32_t isa);

/* What every rung must give: float32 operands summed in double, bytes in int64. */
void rg_ladder_oracle_f32(int64_t m, int64_t k, int64_t n, const float *a, const float *b, double *c);
void rg_ladder_oracle_int8(int64_t m, int64_t k, int64_t n, const uint8_t *a, const int8_t *b, int64_t *c);

#endif
