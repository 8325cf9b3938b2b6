/*
 * Convolution of 3 x 3 with stride 1 by Winograd's minimal filtering F(4x4, 3x3)
 * (Winograd 1980; Lavin and Gray 2016, "Fast algorithms for convolutional neural
 * networks"): 36 multiplications for 16 output pixels instead of 144.
 *
 *	Y = A' ( sum over channels of (G g G') . (B' d B) ) A
 *
 * for tiles d of 6 x 6 input pixels that overlap by 2, with
 *
 *	B' = [ 4  0 -5  0  1  0 ]   G = [  1/4     0     0  ]  A' = [ 1  1  1  1  1  0 ]
 *	     [ 0 -4 -4  1  1  0 ]       [ -1/6  -1/6  -1/6  ]       [ 0  1 -1  2 -2  0 ]
 *	     [ 0  4 -4 -1  1  0 ]       [ -1/6   1/6  -1/6  ]       [ 0  1  1  4  4  0 ]
 *	     [ 0 -2 -1  2  1  0 ]       [ 1/24  1/12   1/6  ]       [ 0  1 -1  8 -8  1 ]
 *	     [ 0  2 -1 -2  1  0 ]       [ 1/24 -1/12   1/6  ]
 *	     [ 0  4  0 -5  0  1 ]       [    0     0     1  ]
 *
 * The sum over channels is, for each of the 36 elements of a tile, a product of
 * channels x channels with channels x tiles, on the register tiles of tile.h.
 * Weights are transformed in double and packed at plan time.
 *
 * Vectors hold tiles. Input planes are laid out (plane.h) with columns sorted by
 * their remainder modulo 4, so that tiles of a row are read side by side.
 *
 * Error: the transforms enlarge the rounding errors of the sum by the norms of A and
 * B. Held by tests/kernels/nn-conv.c to 80 times the error bound of one product,
 * 2^-24 * sum |x| |w|, on uniform inputs; seen there: 40, and 3 for the direct sum.
 */
#include <math.h>

#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/generic/conv-epilogue.h"
#include "kernels/generic/cut.h"
#include "kernels/generic/multiply.h"
#include "kernels/generic/plane.h"
#include "kernels/generic/turn.h"
#include "kernels/tables.h"

enum { OUT = 4, IN = 6, FREQ = IN * IN, PAGE_FLOATS = 1024 };

struct job {
	struct rg_window w;
	struct rg_plane p;
	int64_t tiles_x, tiles;     /* of an image */
	int64_t row;                /* floats from one channel of the transformed input to the next */
	int64_t mr, mc, row_blocks; /* output channels: a panel, an item, items */
	int64_t panel_blocks;       /* of tiles: one an item */
	int64_t v_floats, lane_floats;
	const float *x, *packed, *bias, *residual;
	float *y, *v, *lanes;
	struct rg_epilogue e;       /* only its clip and finish */
	int64_t image;
};

/* ---- the plan ---- */

static void cut_tiles(struct job *j, int lanes)
{
	/* In times of a row of a tile: weights and transformed tiles come from L2 or L3. The sums of
	 * an item are 36 x mc x 16 floats, about 100 KiB. */
	struct rg_cut cut = {
		.all_rows = rg_max(1, rg_ceil_div(j->w.c_out, j->mr)),
		.all_cols = rg_max(1, rg_ceil_div(j->tiles, RG_TILE_COLS)),
		.most_rows = 8,
		.most_cols = 1,
		.tile = (double)j->mr,
		.row = (double)j->mr / 2,
		.col = RG_TILE_COLS / 2,
	};

	rg_cut_blocks(&cut, lanes);
	j->mc = cut.rows * j->mr;
	j->row_blocks = rg_ceil_div(cut.all_rows, cut.rows);
	j->panel_blocks = cut.all_cols;
}

/* 0 or a negative errno: not for this kernel. */
static int setup(const struct rg_call *c, int lanes, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int64_t plane, sums;
	int rc;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	if (w->n != 2 || w->group != 1)
		return rg_error_set(err, -ENOTSUP, "not a plain convolution of two dimensions");
	for (int d = 0; d < 2; d++)
		if (w->kernel[d] != 3 || w->stride[d] != 1 || w->dilation[d] != 1)
			return rg_error_set(err, -ENOTSUP, "not 3 x 3 with stride 1");
	j->tiles_x = rg_ceil_div(w->out[1], OUT);
	j->tiles = j->tiles_x * rg_ceil_div(w->out[0], OUT);
	j->p = (struct rg_plane){ .ih = w->in[0], .iw = w->in[1], .sw = OUT, .top = w->pad_begin[0],
				  .left = w->pad_begin[1], .row_step = 1, .phases = OUT };
	j->p.rows = rg_ceil_div(w->out[0], OUT) * OUT + 2;
	j->p.phase = rg_ceil_div(j->tiles_x, RG_VEC) * RG_VEC + 2;
	j->p.pitch = OUT * j->p.phase;
	/* A vector may end behind the last tile. Never a power of two: channels would fall on
	 * the same sets of a cache. */
	j->row = (rg_ceil_div(j->tiles + RG_VEC, 16) | 1) * 16;
	j->mr = rg_multiply_mr(w->c_out);
	cut_tiles(j, lanes);
	if (__builtin_mul_overflow(j->p.rows, j->p.pitch, &plane) || plane > INT32_MAX ||
	    __builtin_mul_overflow(FREQ * w->c_in, j->row, &j->v_floats) || j->v_floats > INT64_MAX / 64)
		return rg_error_set(err, -EOVERFLOW, "the transformed input is too large");
	j->p.floats = rg_ceil_div(plane, 16) * 16;
	sums = FREQ * j->mc * RG_TILE_COLS;
	j->lane_floats = rg_lane_room(rg_max(j->p.floats, sums));
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, lanes, &j, &err) ? 0 : (size_t)(j.v_floats + j.lane_floats * lanes) * sizeof(float);
}

static int64_t packed_floats(const struct job *j)
{
	return rg_multiply_packed_a_floats(j->w.c_out, j->w.c_in);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (!c->in[1].data || setup(c, 1, &j, &err))
		return 0;
	return (size_t)(FREQ * packed_floats(&j)) * sizeof(float);
}

/* G g G' */
static void transform_weights(const float *g, double *u)
{
	static const double G[IN][3] = { { 0.25, 0, 0 },	       { -1 / 6.0, -1 / 6.0, -1 / 6.0 },
					 { -1 / 6.0, 1 / 6.0, -1 / 6.0 }, { 1 / 24.0, 1 / 12.0, 1 / 6.0 },
					 { 1 / 24.0, -1 / 12.0, 1 / 6.0 }, { 0, 0, 1 } };
	double half[IN][3];

	for (int i = 0; i < IN; i++)
		for (int k = 0; k < 3; k++)
			half[i][k] = G[i][0] * (double)g[k] + G[i][1] * (double)g[3 + k] + G[i][2] * (double)g[6 + k];
	for (int i = 0; i < IN; i++)
		for (int k = 0; k < IN; k++)
			u[i * IN + k] = half[i][0] * G[k][0] + half[i][1] * G[k][1] + half[i][2] * G[k][2];
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	const float *w = c->in[1].data;
	float *to = prepared;
	struct job j;
	int64_t floats, rows;
	int rc = setup(c, 1, &j, err);

	if (rc)
		return rc;
	floats = packed_floats(&j);
	rows = rg_ceil_div(j.w.c_out, j.mr) * j.mr;
	for (int64_t m = 0; m < rows; m++) { /* packed as rg_multiply_pack_a does, one matrix an element */
		for (int64_t k = 0; k < j.w.c_in; k++) {
			double u[FREQ] = { 0 };

			if (m < j.w.c_out)
				transform_weights(w + (m * j.w.c_in + k) * 9, u);
			for (int f = 0; f < FREQ; f++)
				to[f * floats + m / j.mr * j.mr * j.w.c_in + k * j.mr + m % j.mr] = (float)u[f];
		}
	}
	return 0;
}

/* ---- transforms of a vector of tiles ---- */

RG_INLINE void transform_in(const rg_vec *d, int step, rg_vec *to)
{
	rg_vec four = rg_vec_all(4), five = rg_vec_all(5), two = rg_vec_all(2);
	rg_vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
	rg_vec a = d4 - four * d2, b = d3 - four * d1, c = d4 - d2, e = two * (d3 - d1);

	to[0] = four * d0 - five * d2 + d4;
	to[1] = a + b;
	to[2] = a - b;
	to[3] = c + e;
	to[4] = c - e;
	to[5] = four * d1 - five * d3 + d5;
}

RG_INLINE void transform_out(const rg_vec *m, int step, rg_vec *to, int to_step)
{
	rg_vec two = rg_vec_all(2), four = rg_vec_all(4), eight = rg_vec_all(8);
	rg_vec s = m[step] + m[2 * step], d = m[step] - m[2 * step];
	rg_vec p = m[3 * step] + m[4 * step], q = m[3 * step] - m[4 * step];

	to[0] = m[0] + s + p;
	to[to_step] = d + two * q;
	to[2 * to_step] = s + four * p;
	to[3 * to_step] = d + eight * q + m[5 * step];
}

/* ---- the input: items are channels ---- */

static void work_in(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *plane = j->lanes + lane * j->lane_floats;
	int64_t padded = rg_ceil_div(j->tiles, RG_TILE_COLS) * RG_TILE_COLS;

	for (int64_t c = begin; c < end; c++) {
		rg_plane_copy(&j->p, j->x + (j->image * j->w.c_in + c) * j->w.in_count, plane);
		for (int64_t t = 0; t < j->tiles; t += j->tiles_x) {
			const float *from = plane + t / j->tiles_x * OUT * j->p.pitch;

			for (int64_t x = 0; x < j->tiles_x; x += RG_VEC) {
				rg_vec half[FREQ], d[IN], v[IN];

				for (int r = 0; r < IN; r++) {
					for (int k = 0; k < IN; k++)
						d[k] = rg_vec_load(from + r * j->p.pitch + k % OUT * j->p.phase + x + k / OUT);
					transform_in(d, 1, half + r * IN);
				}
				/* lanes behind the row's last tile fall on the next row's, which come later */
				for (int k = 0; k < IN; k++) {
					transform_in(half + k, IN, v);
					for (int r = 0; r < IN; r++)
						rg_vec_store(j->v + ((r * IN + k) * j->w.c_in + c) * j->row + t + x, v[r]);
				}
			}
		}
		for (int f = 0; f < FREQ; f++) /* computed with the last panel, never used */
			rg_plane_zero(j->v + (f * j->w.c_in + c) * j->row + j->tiles, padded - j->tiles);
	}
}

/* ---- products and the output: items are panels of tiles times blocks of channels ---- */

/* Four pixels of a row; `cols` of them exist. */
RG_INLINE void put(const struct job *j, rg_vec4 v, int64_t at, int64_t cols)
{
	float part[OUT];

	if (cols >= OUT && !j->residual) {
		*(rg_vec4 *)(j->y + at) = v;
		return;
	}
	*(rg_vec4 *)part = v;
	for (int64_t i = 0; i < cols && i < OUT; i++) {
		float f = part[i];

		if (j->residual) {
			f += j->residual[at + i];
			f = j->e.clip && j->e.low > f ? j->e.low : f;
			f = j->e.clip && j->e.high < f ? j->e.high : f;
		}
		j->y[at + i] = f;
	}
	if (j->residual && j->e.finish)
		j->e.finish(j->y + at, rg_min(cols, OUT), &j->e);
}

/* Where the tiles of a panel lie: the offset of the first pixel in its plane, and how many
 * of the 4 x 4 exist. */
struct places {
	int64_t n, at[RG_TILE_COLS], rows[RG_TILE_COLS], cols[RG_TILE_COLS];
};

static void find_places(const struct job *j, int64_t tile, int64_t n, struct places *p)
{
	p->n = n;
	for (int64_t i = 0; i < n; i++) {
		int64_t y = (tile + i) / j->tiles_x * OUT, x = (tile + i) % j->tiles_x * OUT;

		p->at[i] = y * j->w.out[1] + x;
		p->rows[i] = rg_min(OUT, j->w.out[0] - y);
		p->cols[i] = rg_min(OUT, j->w.out[1] - x);
	}
}

/* One channel of one panel. sums: its first element; `step` to the next of the 36. */
static void turn_out(const struct job *j, const float *sums, int64_t step, int64_t channel, const struct places *p)
{
	rg_vec bias = rg_vec_all(j->bias ? j->bias[channel] : 0);
	int64_t at = (j->image * j->w.c_out + channel) * j->w.out_count;

	for (int64_t i = 0; i < p->n; i += RG_VEC) {
		rg_vec m[IN], half[OUT * IN], y[OUT * OUT];

		for (int k = 0; k < IN; k++) {
			for (int r = 0; r < IN; r++)
				m[r] = rg_vec_load(sums + (r * IN + k) * step + i);
			transform_out(m, 1, half + k, IN);
		}
		for (int r = 0; r < OUT; r++) {
			transform_out(half + r * IN, 1, y + r * OUT, 1);
			for (int k = 0; k < OUT; k++) {
				y[r * OUT + k] += bias;
				if (j->e.clip && !j->residual)
					y[r * OUT + k] = rg_vec_clip(y[r * OUT + k], rg_vec_all(j->e.low), rg_vec_all(j->e.high));
			}
		}
		if (j->e.finish && !j->residual)
			j->e.finish((float *)y, OUT * OUT * RG_VEC, &j->e);
		for (int64_t k = 0; k < RG_VEC && i + k < p->n; k += 4) {
			for (int r = 0; r < OUT; r++) {
				rg_vec4 out[OUT]; /* columns of four tiles, then rows of each */

				for (int x = 0; x < OUT; x++)
					out[x] = *(const rg_vec4 *)((const float *)&y[r * OUT + x] + k);
				rg_turn4(out);
				for (int64_t q = i + k; q < i + k + 4 && q < p->n; q++)
					if (r < p->rows[q])
						put(j, out[q - i - k], at + p->at[q] + r * j->w.out[1], p->cols[q]);
			}
		}
	}
}

static void work_out(void *arg, int64_t begin, int64_t end, int lane)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	const struct job *j = arg;
	float *sums = j->lanes + lane * j->lane_floats;
	int64_t floats = packed_floats(j);

	for (int64_t item = begin; item < end; item++) {
		int64_t m0 = item / j->panel_blocks * j->mc, m1 = rg_min(m0 + j->mc, j->w.c_out);
		int64_t tile = item % j->panel_blocks * RG_TILE_COLS, n = rg_min(j->tiles - tile, RG_TILE_COLS);
		struct places places;
		struct rg_tile t = { .c_row = RG_TILE_COLS, .cols = n > RG_VEC ? RG_TILE_COLS : RG_VEC, .last = true,
				     .e = &none, .next_step = RG_TILE_STEPS * j->mr };

		for (int f = 0; f < FREQ; f++) {
			const float *v = j->v + f * j->w.c_in * j->row + tile, *next = v + j->w.c_in * j->row;
			int64_t k = 0, share = f + 1 < FREQ ? rg_ceil_div(j->w.c_in, rg_ceil_div(m1 - m0, j->mr)) : 0;

			for (int64_t m = m0; m < m1; m += j->mr) {
				/* of the next product: rows are too far apart for the hardware to see */
				for (int64_t to = rg_min(k + share, j->w.c_in); k < to; k++)
					__builtin_prefetch(next + k * j->row, 0, 3);
				const float *u = j->packed + f * floats + m * j->w.c_in;

				/* weights, four times as many as without the transform, often come from memory, and
				 * the hardware looks no further than a page */
				t.next = u + PAGE_FLOATS;
				t.c = sums + (f * j->mc + m - m0) * RG_TILE_COLS;
				rg_multiply_tile(rg_min(j->mr, m1 - m), j->w.c_in, u, j->mr, false, v, j->row, &t);
			}
		}
		find_places(j, tile, n, &places);
		for (int64_t m = m0; m < m1; m++)
			turn_out(j, sums + (m - m0) * RG_TILE_COLS, j->mc * RG_TILE_COLS, m, &places);
	}
}

/* ---- the call ---- */

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int64_t items;
	int rc = setup(c, par->lanes, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	rg_conv_epilogue(c, &j.e);
	j.x = c->in[0].data;
	j.packed = c->prepared;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.residual = c->node->n_in > 3 ? c->in[3].data : NULL;
	j.y = c->out[0].data;
	j.v = c->scratch;
	j.lanes = j.v + j.v_floats;
	items = j.row_blocks * j.panel_blocks;
	for (; j.image < j.w.batch; j.image++) {
		par->run(par, j.w.c_in, rg_grain(8 * j.tiles * FREQ), work_in, &j);
		par->run(par, items, rg_grain(FREQ * j.mc * (j.w.c_in + 8) / (RG_VEC / 4)), work_out, &j);
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	/* The error is that of a tile. With few channels the sum of one output's taps can be small
	 * beside those of its neighbours, and the error large beside the output. */
	return c->in[1].data && !setup(c, 1, &j, &err) && rg_conv_epilogue(c, &j.e) && j.w.c_in >= 8 && j.w.c_out;
}

/* A vector of tiles costs 36 multiply-adds a channel in and channel out, and a transform of
 * each channel in and out; few channels, or few tiles a vector, are not worth it. */
static double cost(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	double vectors, in, out, tiles;
	struct job j;

	if (setup(c, 1, &j, &err))
		return INFINITY;
	vectors = (double)rg_ceil_div(j.tiles, RG_VEC);
	in = (double)j.w.c_in;
	out = (double)j.w.c_out;
	tiles = (double)(rg_ceil_div(j.w.c_out, j.mr) * rg_ceil_div(j.tiles, RG_TILE_COLS));
	return (double)j.w.batch * (RG_TILE_SLOWER * FREQ * in * out * vectors + RG_TILE_ENDS * FREQ * tiles +
				    (740 * in + 890 * out) * vectors + 1400 * in);
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_error err = RG_ERROR_INIT;
	double flops, vectors;
	struct job j;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (setup(c, 1, &j, &err))
		return;
	vectors = (double)rg_ceil_div(j.tiles, RG_VEC);
	/* 12 transforms of 14 operations (two products fused) a tile and channel in; 10 of 12 out, and the bias */
	flops = 2.0 * FREQ * (double)j.w.c_out * (double)j.w.c_in * vectors + 12 * 18.0 * (double)j.w.c_in * vectors +
		(10 * 14.0 + 16) * (double)j.w.c_out * vectors;
	flops *= (double)RG_VEC * (double)j.w.batch;
	if (flops < 9e18)
		out->executed_flops = (int64_t)flops;
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("winograd"), .isa = RG_LEVEL_ISA, \
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << 1, .cost = cost, .traffic = traffic, \
	  .run = run }
static const struct rg_kernel kernels[] = {
	K("Conv", ""),
	K("FusedConv", RG_CONTRIB_DOMAIN),
	K("FusedConv", RG_OWN_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(winograd), kernels);
