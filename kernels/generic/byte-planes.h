/*
 * Input planes of a convolution of bytes: channels in groups of four, the four bytes of a pixel in one
 * dword, with the padding around them and columns sorted by their remainder modulo the stride
 * (plane.h), so that the pixels of a tile are dwords next to each other for every tap.
 *
 * What is padding, a channel that is not there included, is the zero point of the input, and
 * adds nothing to a sum of (x - zero)(w - zero).
 */
#ifndef RG_KERNELS_GENERIC_BYTE_PLANES_H
#define RG_KERNELS_GENERIC_BYTE_PLANES_H

#include "kernels/generic/byte-multiply.h"
#include "kernels/generic/plane.h"

struct rg_byte_planes {
	struct rg_plane p;       /* its unit is a dword here */
	int64_t channels;        /* of one group of the convolution */
	int64_t quads;           /* of them */
	int64_t count;           /* planes: quads of all groups of the convolution */
	int64_t dwords;          /* of all planes; signs, where they are needed, lie behind them */
	int64_t row_bytes;       /* scratch of a lane */
};

#define rg_byte_planes_fill RG_LEVEL_FN(rg_byte_planes_fill)
#define rg_byte_planes_sum RG_LEVEL_FN(rg_byte_planes_sum)

/* 0, or an error where the planes are too large or have too many dimensions. */
RG_INLINE int rg_byte_planes_setup(const struct rg_window *w, struct rg_byte_planes *b, struct rg_error *err)
{
	int rc = rg_plane_setup(w, &b->p, err);

	if (rc)
		return rc;
	b->channels = w->c_in / w->group;
	b->quads = rg_byte_groups(b->channels);
	b->count = b->quads * w->group;
	if (__builtin_mul_overflow(b->count, b->p.floats, &b->dwords) || b->dwords > INT32_MAX / 4)
		return rg_error_set(err, -EOVERFLOW, "the planes are too large");
	/* dwords of a row, and a row of nothing but padding for channels that are not there */
	b->row_bytes = rg_ceil_div(5 * rg_max(b->p.iw, 1), 64) * 64 + 128;
	return 0;
}

/* Bytes of all planes. */
RG_INLINE int64_t rg_byte_planes_bytes(const struct rg_byte_planes *b)
{
	return 4 * b->dwords * (RG_BYTE_SIGNS ? 2 : 1);
}

/*
 * Planes [first, end) of an image x, channel planes of ih x iw bytes each. `flip` is what moves a byte of it
 * as tiles want it, zero its zero point, moved. `row`: row_bytes, 64-aligned.
 */
void rg_byte_planes_fill(const struct rg_byte_planes *b, const uint8_t *x, uint32_t flip, uint8_t zero, int64_t first,
			 int64_t end, uint32_t *planes, void *row);

/*
 * Sums over the channels of one group, from dword `first` to `end` of a plane: of all bytes as they are multiplied (sums), and of
 * the sizes of the negative ones (negative; signs only). Either may be NULL.
 */
void rg_byte_planes_sum(const struct rg_byte_planes *b, const uint32_t *planes, int64_t group, int64_t first, int64_t end,
			int32_t *sums, int32_t *negative);

#endif
