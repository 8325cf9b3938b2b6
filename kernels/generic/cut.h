/*
 * How a product is cut into blocks for the lanes: the choice between few large ones,
 * which read their operands seldom, and many small ones, which keep all lanes busy.
 */
#ifndef RG_KERNELS_GENERIC_CUT_H
#define RG_KERNELS_GENERIC_CUT_H

#include "kernels/generic/generic.h"

/*
 * rows x columns of panels. A block of r x c panels takes
 *	tile * r * c      to multiply,
 *	row * r           to bring what belongs to its rows,
 *	col * c           to bring, gather or pack what belongs to its columns,
 * in any one unit. Once set, `rows` and `cols` of a block are at most most_*.
 */
struct rg_cut {
	int64_t all_rows, all_cols;
	int64_t most_rows, most_cols;
	double tile, row, col;
	int64_t rows, cols;
};

/* n parts of even size: how large. */
RG_INLINE int64_t rg_cut_part(int64_t all, int64_t n)
{
	return rg_max(1, rg_ceil_div(all, rg_max(n, 1)));
}

/*
 * What `lanes` lanes take for blocks of r x c: as many blocks one after the other as the lane
 * with the most of them has, and a quarter of one, since lanes are not equally fast. A machine
 * that does other work too makes them wait longer, so that smaller blocks are better than this
 * says.
 */
RG_INLINE double rg_cut_cost(const struct rg_cut *cut, int64_t r, int64_t c, int lanes)
{
	int64_t blocks = rg_ceil_div(cut->all_rows, r) * rg_ceil_div(cut->all_cols, c);
	double block = cut->tile * (double)(r * c) + cut->row * (double)r + cut->col * (double)c;

	return block * ((double)rg_ceil_div(blocks, lanes) + 0.25);
}

/* Sets rows and cols. With one lane: blocks as large as they may be. */
RG_INLINE void rg_cut_blocks(struct rg_cut *cut, int lanes)
{
	int64_t row_blocks = rg_ceil_div(rg_max(cut->all_rows, 1), cut->most_rows);
	int64_t col_blocks = rg_ceil_div(rg_max(cut->all_cols, 1), cut->most_cols);
	double best = 0;

	cut->rows = rg_cut_part(cut->all_rows, row_blocks);
	cut->cols = rg_cut_part(cut->all_cols, col_blocks);
	if (lanes < 2)
		return;
	for (int64_t i = row_blocks; i <= cut->all_rows && i < row_blocks + 8 * lanes; i += 1 + i / 4) {
		for (int64_t j = col_blocks; j <= cut->all_cols && j < col_blocks + 8 * lanes; j += 1 + j / 4) {
			int64_t r = rg_cut_part(cut->all_rows, i), c = rg_cut_part(cut->all_cols, j);
			double cost = rg_cut_cost(cut, r, c, lanes);

			if (best == 0 || cost < best) {
				best = cost;
				cut->rows = r;
				cut->cols = c;
			}
		}
	}
}

#endif
