/*
 * Transposed convolution in one and two dimensions, without a BLAS: each input pixel
 * is multiplied with the weights of all taps of all output channels,
 *
 *	col (channels * taps x pixels) = W' X,
 *
 * on the register tiles, and the rows of col are spread over the output by the stride.
 * It goes a piece of an input row at a time, so that col stays in the cache. Where
 * input rows do not share output rows they are items of their own; else an item is
 * a block of output channels, since two lanes must not add to one element.
 */
#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/generic/multiply.h"
#include "kernels/tables.h"

enum { PIECE = 256 }; /* pixels of a piece: a multiple of every RG_TILE_COLS */

struct job {
	struct rg_window w;
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
	int64_t m, k, taps;       /* output and input channels of a group; taps of a channel */
	int64_t mr, channels;     /* rows of a packed panel; output channels of an item */
	int64_t blocks, row_items, rows; /* items of channels, of input rows; input rows of one */
	int64_t matrix_floats;    /* packed weights of a block of channels */
	int64_t lane_floats;
	const float *x, *wt, *packed, *bias;
	float *y, *scratch;
};

static int setup(const struct rg_call *c, int lanes, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int64_t rows, want = lanes > 1 ? 6 * (int64_t)lanes : 1;
	bool apart;
	int rc, last;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv_transpose(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	if (w->n < 1 || w->n > 2 || w->group < 1)
		return rg_error_set(err, -ENOTSUP, "not a transposed convolution of one or two dimensions");
	last = w->n - 1;
	j->iw = w->in[last], j->ow = w->out[last], j->kw = w->kernel[last];
	j->sw = w->stride[last], j->dw = w->dilation[last], j->left = w->pad_begin[last];
	j->ih = j->oh = j->kh = j->sh = j->dh = 1;
	if (w->n == 2) {
		j->ih = w->in[0], j->oh = w->out[0], j->kh = w->kernel[0];
		j->sh = w->stride[0], j->dh = w->dilation[0], j->top = w->pad_begin[0];
	}
	j->m = w->c_out / w->group;
	j->k = w->c_in / w->group;
	j->taps = w->kernel_count;
	if (j->m == 0 || j->taps == 0 || j->taps > INT32_MAX / 4)
		return rg_error_set(err, -ENOTSUP, "no taps, or too many");
	/* col of a block of channels: at most 64 rows, or one channel's */
	j->channels = rg_min(j->m, j->taps >= 64 ? 1 : 64 / j->taps);
	j->blocks = rg_ceil_div(j->m, j->channels);
	j->mr = rg_multiply_mr(j->channels * j->taps);
	apart = (j->kh - 1) * j->dh < j->sh;
	rows = rg_min(j->ih, rg_ceil_div(want, w->batch * w->group * j->blocks > 0 ? w->batch * w->group * j->blocks : 1));
	j->row_items = apart && rows > 1 ? rows : 1;
	j->rows = rg_ceil_div(j->ih, j->row_items);
	j->row_items = j->rows ? rg_ceil_div(j->ih, j->rows) : 0;
	if (__builtin_mul_overflow(rg_multiply_packed_a_floats(j->channels * j->taps, 1), j->k, &j->matrix_floats) ||
	    __builtin_mul_overflow(j->k + j->channels * j->taps, PIECE, &j->lane_floats) ||
	    j->matrix_floats > INT64_MAX / 4096 || j->lane_floats > INT64_MAX / 65536)
		return rg_error_set(err, -EOVERFLOW, "the weights of a block of channels are too large");
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, lanes, &j, &err) ? 0 : (size_t)(j.lane_floats * lanes) * sizeof(float);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (!c->in[1].data || setup(c, 1, &j, &err))
		return 0;
	return (size_t)(j.w.group * j.blocks * j.matrix_floats) * sizeof(float);
}

/* Rows of W' of one block of channels of one group, as they lie: row stride 1. */
static struct rg_matrix weights_of(const struct job *j, const float *wt, int64_t group, int64_t block)
{
	int64_t row = j->m * j->taps;

	/* no bytes are left of packed weights */
	return (struct rg_matrix){ .data = wt ? wt + group * j->k * row + block * j->channels * j->taps : NULL, .row = 1,
				   .col = row };
}

static int64_t rows_of(const struct job *j, int64_t block)
{
	return rg_min(j->channels, j->m - block * j->channels) * j->taps;
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	float *to = prepared;
	struct job j;
	int rc = setup(c, 1, &j, err);

	for (int64_t i = 0; i < j.w.group * j.blocks && !rc; i++, to += j.matrix_floats) {
		struct rg_matrix a = weights_of(&j, c->in[1].data, i / j.blocks, i % j.blocks);

		rg_multiply_pack_a(&a, j.mr, j.k, 0, rows_of(&j, i % j.blocks), to);
	}
	return rc;
}

/* ---- running ---- */

/* W' times n pixels from x on, rows of X in_count apart, to col. */
static void multiply(const struct job *j, int64_t group, int64_t block, const float *x, int64_t n, float *panel, float *col)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	struct rg_matrix a = weights_of(j, j->wt, group, block), b = { .data = x, .row = j->w.in_count, .col = 1 };
	const float *packed = j->packed ? j->packed + (group * j->blocks + block) * j->matrix_floats : NULL;
	int64_t rows = rows_of(j, block);
	struct rg_tile t = { .c_row = PIECE, .last = true, .e = &none };

	rg_multiply_pack_b(&b, n, j->k, 0, rg_ceil_div(n, RG_TILE_COLS), panel);
	for (int64_t p = 0; p < n; p += RG_TILE_COLS, panel += RG_TILE_COLS * j->k) {
		t.cols = rg_min(n - p, RG_TILE_COLS);
		for (int64_t r = 0; r < rows; r += j->mr) {
			t.c = col + r * PIECE + p;
			rg_multiply_tile(rg_min(j->mr, rows - r), j->k, packed ? packed + r * j->k : a.data + r,
					 packed ? j->mr : a.col, false, panel, RG_TILE_COLS, &t);
		}
	}
}

/* Adds n pixels, spread by the stride, to a row of the output, the first to column `base`. */
static void spread(float *out, int64_t width, const float *from, int64_t n, int64_t base, int64_t stride)
{
	int64_t i = base < 0 ? (-base + stride - 1) / stride : 0;
	int64_t end = base >= width ? 0 : rg_min(n, (width - base + stride - 1) / stride);

	if (stride == 1)
		for (; i < end; i++)
			out[base + i] += from[i];
	else if (stride == 2)
		for (; i < end; i++)
			out[base + 2 * i] += from[i];
	else
		for (; i < end; i++)
			out[base + i * stride] += from[i];
}

/* Two taps next to each other with stride 2, all inside. */
static void spread_pair(float *restrict out, const float *restrict even, const float *restrict odd, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		out[2 * i] += even[i];
		out[2 * i + 1] += odd[i];
	}
}

/* A piece of input row `row` from column x on. y: the first plane of the block. */
static void spread_piece(const struct job *j, int64_t block, int64_t row, int64_t x, int64_t n, const float *col, float *y)
{
	int64_t channels = rg_min(j->channels, j->m - block * j->channels), base = x * j->sw - j->left;
	bool pairs = j->kw == 2 && j->sw == 2 && j->dw == 1 && base >= 0 && base + 2 * n <= j->ow;

	for (int64_t c = 0; c < channels; c++, y += j->w.out_count) {
		for (int64_t r = 0; r < j->kh; r++) {
			int64_t o = row * j->sh - j->top + r * j->dh;
			const float *from = col + (c * j->taps + r * j->kw) * PIECE;

			if (o < 0 || o >= j->oh)
				continue;
			if (pairs) {
				spread_pair(y + o * j->ow + base, from, from + PIECE, n);
				continue;
			}
			for (int64_t k = 0; k < j->kw; k++, from += PIECE)
				spread(y + o * j->ow, j->ow, from, n, base + k * j->dw, j->sw);
		}
	}
}

static void work_fill(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		float fill = j->bias ? j->bias[i % j->w.c_out] : 0, *y = j->y + i * j->w.out_count;

		for (int64_t p = 0; p < j->w.out_count; p++)
			y[p] = fill;
	}
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *panel = j->scratch + lane * j->lane_floats, *col = panel + j->k * PIECE;

	for (int64_t i = begin; i < end; i++) {
		int64_t r0 = i % j->row_items * j->rows, r1 = rg_min(r0 + j->rows, j->ih);
		int64_t block = i / j->row_items % j->blocks, g = i / j->row_items / j->blocks % j->w.group;
		int64_t image = i / j->row_items / j->blocks / j->w.group;
		const float *x = j->x + (image * j->w.c_in + g * j->k) * j->w.in_count;
		float *y = j->y + (image * j->w.c_out + g * j->m + block * j->channels) * j->w.out_count;

		for (int64_t r = r0; r < r1; r++) {
			for (int64_t at = 0; at < j->iw; at += PIECE) {
				int64_t n = rg_min(PIECE, j->iw - at);

				multiply(j, g, block, x + r * j->iw + at, n, panel, col);
				spread_piece(j, block, r, at, n, col, y);
			}
		}
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int64_t items;
	int rc = setup(c, par->lanes, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.packed = c->prepared;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.w.c_out, rg_grain(j.w.out_count / 4), work_fill, &j);
	items = j.w.batch * j.w.group * j.blocks * j.row_items;
	par->run(par, items, rg_grain(j.rows * j.iw * j.channels * j.taps * (j.k + 8) / RG_VEC), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	return !setup(c, 1, &j, &err);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "ConvTranspose", .domain = "", .name = RG_LEVEL_NAME("tiled"), .isa = RG_LEVEL_ISA,
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes,
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << 1, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(conv_transpose), kernels);
