/*
 * The right operand of a product of bytes, packed for byte-tile.h: panels of
 * RG_BYTE_COLS columns, each with its steps of 8 of k, where the weights allow them, and then those
 * of 4. Where the instructions need no proof all steps are of 4, and k stays in order.
 *
 * A packed matrix begins with this head, the panels' and the sums of the columns; its size does not depend
 * on the weights.
 */
#ifndef RG_KERNELS_GENERIC_BYTE_PACK_H
#define RG_KERNELS_GENERIC_BYTE_PACK_H

#include "kernels/generic/byte-tile.h"

/* k x n bytes as they lie. */
struct rg_byte_matrix {
	const void *data;
	int64_t row, col;        /* strides */
	bool is_signed;
	/* Weights of a convolution: k goes through the channels at one place of the window, to a multiple of 4 with zeros,
	 * then through the next place, which is `tap` further. 0: as it lies. */
	int64_t channels, tap;
};

struct rg_bytes_packed {
	int64_t n, k, panels;
	int64_t sums;            /* bytes from the start to int32_t[panels * RG_BYTE_COLS]: sums of columns, as s8 */
	struct rg_byte_panel panel[];
};

#define rg_byte_pack_bytes RG_LEVEL_FN(rg_byte_pack_bytes)
#define rg_byte_pack_start RG_LEVEL_FN(rg_byte_pack_start)
#define rg_byte_pack_panels RG_LEVEL_FN(rg_byte_pack_panels)

/* k in groups of four. */
RG_INLINE int64_t rg_byte_groups(int64_t k)
{
	return rg_ceil_div(k, 4);
}

/* Bytes of a packed k x n matrix; 0: too large. */
size_t rg_byte_pack_bytes(int64_t n, int64_t k);
/* The head; then panels [first, end), by any lane. `to`: 64-aligned. u8 is packed as s8: 128 less. */
void rg_byte_pack_start(int64_t n, int64_t k, void *to);
void rg_byte_pack_panels(const struct rg_byte_matrix *b, int64_t first, int64_t end, void *to);

#endif
