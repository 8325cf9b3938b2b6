/*
 * Products of byte matrices of any size on tiles (byte-tile.h): sums of (A - a zero)(B - b zero)
 * in 32 bits, exact modulo 2^32, handed on tile by tile while they are in L1.
 *
 *	sum (A - za)(B - zb) = sum A B - za sum B - zb sum A + k za zb
 *
 * with B as s8 (u8 is packed 128 less) and A as u8 (s8: 128 more) or, where it comes with signs, as s8, and zero points
 * moved likewise.
 * Sums of columns of B come with its packing, those of rows of A are made where a zb is not 0.
 *
 * The loops are those of multiply.h, with k never cut: a panel of B is a quarter as long as one of
 * floats, and sums need no second place. A is packed, a block at a time: panels of mr rows, the group
 * g of row r at [g * mr + r], or at [2 g * mr + r] with its signs mr further.
 */
#ifndef RG_KERNELS_GENERIC_BYTE_MULTIPLY_H
#define RG_KERNELS_GENERIC_BYTE_MULTIPLY_H

#include "kernels/generic/byte-args.h"
#include "kernels/generic/byte-pack.h"

/* How a product will be done: a function of sizes, lanes and caches alone. */
struct rg_byte_plan {
	int64_t m, n, k, batch;
	int lanes;
	bool pack_b;             /* in this call */
	int64_t mr, mc, nc, row_blocks, col_blocks, groups;
	int64_t shared_bytes, lane_bytes; /* scratch */
	int64_t packed_bytes;    /* of B, where it is packed here */
};

struct rg_byte_multiply;

/*
 * What becomes of sums: `rows` rows of `cols` <= RG_BYTE_COLS, `pitch` apart, of product i of the
 * batch, from (row, col) on. They may be written over.
 */
typedef void rg_byte_finish_fn(const struct rg_byte_multiply *mul, int64_t i, int64_t row, int64_t col, int64_t rows,
			       int64_t cols, int32_t *sums, int64_t pitch);

struct rg_byte_multiply {
	struct rg_byte_plan plan;
	struct rg_byte_matrix a, b; /* of the first product */
	const void *packed;         /* B; NULL: it is packed here */
	/* Zero points as the caller has them, of A's and B's own types. One serves all, or one a row
	 * of A (a_zeros), a column of B (b_zeros). */
	int32_t a_zero, b_zero;
	const void *a_zeros, *b_zeros; /* bytes of A's, B's type; NULL: none */
	const int32_t *bias;        /* one a column, added to the sums; NULL: none */
	/* Offsets of product i in bytes; NULL with batch 1. */
	void (*at)(const struct rg_byte_multiply *mul, int64_t i, int64_t *a, int64_t *b);
	rg_byte_finish_fn *finish;
	/* Where finish writes, rows of n elements of out_size bytes, so that it can be fetched while the sums are made. */
	char *out;
	int64_t out_size;
	const void *ctx;            /* for at and finish */
	void *scratch;              /* rg_byte_multiply_scratch_bytes(), 64-aligned */
};

#define rg_byte_plan_make RG_LEVEL_FN(rg_byte_plan_make)
#define rg_byte_multiply_run RG_LEVEL_FN(rg_byte_multiply_run)
#define rg_byte_tile_do RG_LEVEL_FN(rg_byte_tile_do)
#define rg_byte_rows_of RG_LEVEL_FN(rg_byte_rows_of)

/* false: a size overflows. */
bool rg_byte_plan_make(struct rg_byte_plan *p, int64_t m, int64_t n, int64_t k, int64_t batch, bool b_packed, int lanes);

RG_INLINE size_t rg_byte_multiply_scratch_bytes(const struct rg_byte_plan *p)
{
	return (size_t)(p->shared_bytes + p->lane_bytes * p->lanes);
}

/* Runs it, on no more lanes than the plan was made for. Any thread, one at a time for each scratch. */
void rg_byte_multiply_run(const struct rg_byte_multiply *mul, const struct rg_par *par);

/* One tile of `rows` <= RG_BYTE_ROWS, and one or two vectors of columns, for those who bring A themselves. */
void rg_byte_tile_do(const struct rg_byte_tile *t, int64_t rows, int64_t cols);

/* Rows of a tile for m of them: few tiles, none of them nearly empty. */
int64_t rg_byte_rows_of(int64_t m);

#endif
