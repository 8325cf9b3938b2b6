/*
 * Convolution as a matrix product that is never laid out whole ("implicit GEMM"),
 * on NCHW as the model has it, in one and two dimensions.
 *
 * Two ways, by the number of output pixels:
 *
 * Pixels in vectors (many pixels):   Y (channels x pixels) = W (channels x taps) X
 *	An item of work is a block of pixels times a block of channels. For a block of
 *	taps the pixels are gathered into panels (RG_TILE_COLS pixels a panel, tap after
 *	tap), which stay in L2 while the rows of W, packed at plan time, pass.
 * Channels in vectors (few pixels, constant weights):  Y' (pixels x channels) = X' W'
 *	7 x 7 pixels fill four panels of 16 by three quarters, but nine tiles of six
 *	rows almost whole. W' is packed at plan time; X' is gathered once, or read as it
 *	lies; Y' is turned on the way out.
 *
 * Why NCHW and not a blocked layout: gathering costs about taps * pixels moves
 * against taps * pixels * channels multiply-adds, some percent from 64 channels on,
 * and a model needs no reorder anywhere.
 *
 * With padding or strides the input is first copied (plane.h): then no tap leaves
 * its plane, and pixels of a row are contiguous whatever the stride.
 */
#include <math.h>

#include "kernels/generic/generic.h"

#include "kernels/cache.h"
#include "kernels/generic/conv-epilogue.h"
#include "kernels/generic/cut.h"
#include "kernels/generic/multiply.h"
#include "kernels/generic/plane.h"
#include "kernels/generic/shuffle.h"
#include "kernels/tables.h"

enum { MAX_PANELS = 32 };

struct job {
	struct rg_window w;
	struct rg_plane p;
	bool copies;              /* the input is copied to planes first */
	bool by_channels;         /* channels in vectors */
	int64_t m, taps;          /* of a group */
	int64_t row, plane;       /* floats from one output row, one channel, to the next as they are read */
	/* pixels in vectors */
	int64_t mr, mc, kc, panels, pixel_blocks, channel_blocks;
	/* channels in vectors */
	bool gathers;             /* X' is gathered; else read as it lies */
	int64_t turn_row;         /* floats from one row of Y' to the next */
	struct rg_multiply_plan mul;
	/* scratch in floats */
	int64_t copy_floats, taps_floats, gather_floats, turn_floats, lane_floats;
	/* the call */
	const float *x, *wt, *packed;
	float *y, *copy, *gathered, *turned, *lanes;
	int32_t *tap_column;      /* where the tap of a column sees the first pixel */
	struct rg_epilogue e;
	const float *residual;
	int64_t image;
};

/* ---- the plan ---- */

/* Multiply-adds that each way executes, as vectors of pixels or rows of them. To turn the
 * result takes as long as ten taps (a Xeon, model 207, AVX-512: 14 x 14 pixels, of which 12 are
 * saved in 208, lose 12 % with 96 taps and win 4 % with 256). */
static bool few_pixels(const struct job *j)
{
	int64_t pixels = j->w.out_count, rest = pixels % RG_TILE_COLS;
	int64_t in_vectors = pixels - rest + (rest > RG_VEC ? RG_TILE_COLS : rest ? RG_VEC : 0);

	return j->w.group == 1 && j->m >= RG_VEC && pixels <= 8 * RG_TILE_COLS && in_vectors * 100 > pixels * 106 &&
	       (in_vectors - pixels) * j->taps > 10 * pixels;
}

/* Room of a panel: a line more than it has, for what is copied too much, and so that
 * panels do not fall on the same sets of a cache. */
RG_INLINE int64_t panel_floats(const struct job *j)
{
	return (j->kc + 1) * RG_TILE_COLS;
}

static void cut_pixels(struct job *j, int lanes)
{
	const struct rg_kernel_caches *cache = rg_kernel_caches();
	int64_t kc_most = cache->l1_bytes / 2 / (RG_TILE_COLS * (int64_t)sizeof(float)), groups = rg_max(1, j->w.group);
	struct rg_cut cut;

	j->kc = rg_max(1, rg_ceil_div(j->taps, rg_ceil_div(rg_max(j->taps, 1), kc_most)));
	j->mr = rg_multiply_mr(j->m);
	/* In times of a row of a tile: a weight comes from L2 or L3, a panel is gathered. */
	cut = (struct rg_cut){
		.all_rows = rg_max(1, rg_ceil_div(j->m, j->mr)),
		.all_cols = rg_max(1, rg_ceil_div(j->w.out_count, RG_TILE_COLS)),
		.most_cols = rg_max(1, rg_min(MAX_PANELS, cache->l2_bytes / 4 / (j->kc * RG_TILE_COLS * (int64_t)sizeof(float)))),
		.tile = (double)j->mr,
		.row = (double)j->mr / 2,
		.col = 10,
	};
	cut.most_rows = cut.all_rows;
	rg_cut_blocks(&cut, groups >= 4 * lanes ? 1 : (int)rg_ceil_div(lanes, groups));
	j->panels = cut.cols;
	j->mc = cut.rows * j->mr;
	j->pixel_blocks = rg_ceil_div(cut.all_cols, cut.cols);
	j->channel_blocks = rg_ceil_div(cut.all_rows, cut.rows);
	j->lane_floats = j->panels * panel_floats(j);
}

static bool cut_channels(struct job *j, int lanes)
{
	struct rg_matrix a = { .row = 1, .col = j->plane }, b = { .row = 1, .col = j->taps };

	j->gathers = j->copies || j->w.kernel_count != 1;
	if (j->gathers)
		j->gather_floats = rg_ceil_div(rg_multiply_packed_a_floats(j->w.out_count, j->taps), 16) * 16;
	/* never a power of two from pixel to pixel: all would fall on the same sets of a cache */
	j->turn_row = (rg_ceil_div(j->m, 16) | 1) * 16;
	j->turn_floats = j->w.out_count * j->turn_row;
	if (!rg_multiply_plan_make(&j->mul, j->w.out_count, j->m, j->taps, 1, &a, j->gathers, &b, true, lanes))
		return false;
	j->lane_floats = 0;
	return true;
}

/* A picture of one column is a row: one dimension written as two. Its pixels then lie behind each other. */
static void as_row(struct rg_window *w)
{
	if (w->n == 2 && w->in[1] == 1 && w->kernel[1] == 1 && w->out[1] == 1 && !w->pad_begin[1] && !w->pad_end[1])
		w->n = 1;
}

/* constant: the weights are packed at plan time. 0 or a negative errno. */
static int setup(const struct rg_call *c, bool constant, int lanes, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	bool pads = false, strides = false;
	int rc;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	as_row(&j->w);
	if ((rc = rg_plane_setup(w, &j->p, err)))
		return rc;
	if (w->group < 1 || __builtin_mul_overflow(w->c_in / w->group, w->kernel_count, &j->taps) || j->taps > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "the number of taps overflows");
	for (int d = 0; d < w->n; d++) {
		pads = pads || w->pad_begin[d] || w->pad_end[d];
		strides = strides || w->stride[d] != 1;
	}
	j->m = w->c_out / w->group;
	j->copies = pads || strides;
	if (j->copies) {
		j->row = rg_plane_row(&j->p);
		j->plane = j->p.floats;
		/* Strides and pads beyond measure would copy much more than they read. */
		if (__builtin_mul_overflow(w->c_in, j->plane, &j->copy_floats) ||
		    j->copy_floats / 16 > w->c_in * w->in_count + w->c_out * w->out_count + (1 << 16))
			return rg_error_set(err, -EOVERFLOW, "the padded input is too large");
		j->copy_floats += RG_TILE_COLS; /* vectors that start at the last pixel may end behind it */
	} else if (w->kernel_count == 1) { /* rows and columns are one */
		j->p.ow = w->out_count;
		j->p.oh = 1;
		j->row = j->plane = w->in_count;
	} else {
		j->p.pitch = j->p.phase = j->row = j->p.iw;
		j->plane = w->in_count;
	}
	j->taps_floats = rg_ceil_div(j->p.kw, 16) * 16;
	j->by_channels = constant && few_pixels(j) && cut_channels(j, lanes);
	if (!j->by_channels)
		cut_pixels(j, lanes);
	return 0;
}

static int64_t scratch_floats(const struct job *j, int lanes)
{
	int64_t mul = j->by_channels ? (int64_t)(rg_multiply_scratch_bytes(&j->mul) / sizeof(float)) : 0;

	return j->copy_floats + j->taps_floats + j->gather_floats + j->turn_floats + mul + j->lane_floats * lanes;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;
	int64_t floats;

	if (setup(c, false, lanes, &j, &err))
		return 0;
	floats = scratch_floats(&j, lanes);
	/* Whether the weights are packed by then does not show in the call. */
	if (!setup(c, true, lanes, &j, &err))
		floats = rg_max(floats, scratch_floats(&j, lanes));
	return (size_t)floats * sizeof(float);
}

static int64_t packed_floats(const struct job *j)
{
	return j->by_channels ? rg_multiply_packed_b_floats(j->m, j->taps) :
				j->w.group * rg_multiply_packed_a_floats(j->m, j->taps);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (!c->in[1].data || setup(c, true, 1, &j, &err))
		return 0;
	return (size_t)packed_floats(&j) * sizeof(float);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct rg_matrix wt = { .data = c->in[1].data };
	struct job j;
	int rc = setup(c, true, 1, &j, err);

	if (rc)
		return rc;
	if (j.by_channels) {
		wt.row = 1, wt.col = j.taps;
		rg_multiply_pack_b(&wt, j.m, j.taps, 0, rg_ceil_div(j.m, RG_TILE_COLS), prepared);
		return 0;
	}
	wt.row = j.taps, wt.col = 1;
	for (int64_t g = 0; g < j.w.group; g++, wt.data += j.m * j.taps)
		rg_multiply_pack_a(&wt, j.mr, j.taps, 0, j.m,
				   (float *)prepared + g * rg_multiply_packed_a_floats(j.m, j.taps));
	return 0;
}

/* ---- gathering ---- */

/* Pixels that lie behind each other, of one panel. */
struct run {
	int64_t from;    /* offset of the first, as the first tap sees it */
	int32_t at, n;
};

struct panel {
	int n_runs;
	bool whole;      /* one run of RG_TILE_COLS */
	struct run runs[RG_TILE_COLS];
};

static int find_runs(const struct job *j, int64_t pixel, int64_t count, struct run *runs)
{
	int64_t y = pixel / j->p.ow, x = pixel % j->p.ow, at = 0;
	int n = 0;

	while (at < count) {
		int64_t part = rg_min(j->p.ow - x, count - at);

		runs[n++] = (struct run){ y * j->row + x, (int32_t)at, (int32_t)part };
		at += part;
		x = 0;
		y++;
	}
	return n;
}

static void find_panel(const struct job *j, int64_t pixel, struct panel *p)
{
	int64_t count = rg_min(j->w.out_count - pixel, RG_TILE_COLS);

	p->n_runs = find_runs(j, pixel, count, p->runs);
	p->whole = p->n_runs == 1 && count == RG_TILE_COLS;
}

/* The place of a tap: channel, row and column of the kernel. */
struct tap {
	const float *channel, *at; /* `at`: of its row */
	int64_t r, k;
};

static struct tap tap_start(const struct job *j, const float *x, int64_t t)
{
	struct tap tap = { .k = t % j->p.kw, .r = t / j->p.kw % j->p.kh };

	tap.channel = x + t / j->w.kernel_count * j->plane;
	tap.at = tap.channel + tap.r * j->p.dh * j->p.pitch;
	return tap;
}

RG_INLINE void tap_next(const struct job *j, struct tap *t)
{
	if (++t->k < j->p.kw)
		return;
	t->k = 0;
	t->at += j->p.dh * j->p.pitch;
	if (++t->r < j->p.kh)
		return;
	t->r = 0;
	t->channel += j->plane;
	t->at = t->channel;
}

/* From a copy of the input, which has room behind it: whole vectors, what is too much is
 * overwritten by the next run or the next row of the panel. */
RG_INLINE void gather_runs(const float *in, const struct panel *p, float *to)
{
	for (const struct run *r = p->runs; r < p->runs + p->n_runs; r++)
		for (int v = 0; v < RG_TILE_VECS; v++)
			rg_vec_store(to + r->at + v * RG_VEC, rg_vec_load(in + r->from + v * RG_VEC));
}

/* From the input itself, of which nothing else may be read. */
static void gather_runs_exactly(const float *in, const struct panel *p, float *to)
{
	const struct run *last = &p->runs[p->n_runs - 1];

	/* columns that are not there must not be garbage: it could be slow to add */
	for (int64_t i = last->at + last->n; i < RG_TILE_COLS; i++)
		to[i] = 0;
	for (const struct run *r = p->runs; r <= last; r++) {
		const float *from = in + r->from;
		int64_t i = 0;

		for (; i + RG_VEC <= r->n; i += RG_VEC)
			rg_vec_store(to + r->at + i, rg_vec_load(from + i));
		if (i < r->n && r->n >= RG_VEC) /* again the end of it */
			rg_vec_store(to + r->at + r->n - RG_VEC, rg_vec_load(from + r->n - RG_VEC));
		else
			for (; i < r->n; i++)
				to[r->at + i] = from[i];
	}
}

/* Taps [t0, t1) of `n` panels; taps outside, since pixels of a tap lie together. */
static void gather(const struct job *j, const float *x, const struct panel *panels, int64_t n, int64_t t0, int64_t t1,
		   float *to)
{
	struct tap tap = tap_start(j, x, t0);
	int64_t step = panel_floats(j);

	for (int64_t t = t0; t < t1; t++, to += RG_TILE_COLS, tap_next(j, &tap)) {
		const float *in = tap.at + j->tap_column[tap.k];
		float *row = to;

		for (int64_t i = 0; i < n; i++, row += step) {
			if (panels[i].whole)
				for (int v = 0; v < RG_TILE_VECS; v++)
					rg_vec_store(row + v * RG_VEC, rg_vec_load(in + panels[i].runs[0].from + v * RG_VEC));
			else if (j->copies)
				gather_runs(in, &panels[i], row);
			else
				gather_runs_exactly(in, &panels[i], row);
		}
	}
}

/* ---- pixels in vectors ---- */

/* The packed weights after those of channel m, taps from t0 on, which the first panel of pixels
 * brings from memory; NULL: none. */
static const float *next_weights(const struct job *j, const float *wt, int64_t m0, int64_t m1, int64_t m, int64_t t0)
{
	if (m + j->mr < m1)
		return wt + (m + j->mr) * j->taps + t0 * j->mr;
	return t0 + j->kc < j->taps ? wt + m0 * j->taps + (t0 + j->kc) * j->mr : NULL;
}

static void work_pixels(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *room = j->lanes + lane * j->lane_floats;
	struct panel panels[MAX_PANELS];
	struct rg_epilogue e = j->e;

	for (int64_t item = begin; item < end; item++) {
		int64_t block = item % j->pixel_blocks, m0 = item / j->pixel_blocks % j->channel_blocks * j->mc;
		int64_t g = item / j->pixel_blocks / j->channel_blocks, m1 = rg_min(m0 + j->mc, j->m);
		int64_t first = block * j->panels * RG_TILE_COLS;
		int64_t n = rg_min(j->panels, rg_ceil_div(j->w.out_count - first, RG_TILE_COLS));
		const float *x = (j->copies ? j->copy : j->x + j->image * j->w.c_in * j->w.in_count) +
				 g * (j->w.c_in / j->w.group) * j->plane;
		const float *wt = j->packed ? j->packed + g * rg_multiply_packed_a_floats(j->m, j->taps) :
					      j->wt + g * j->m * j->taps;
		int64_t channel = j->image * j->w.c_out + g * j->m;
		struct rg_tile t = { .c_row = j->w.out_count, .e = &e,
				     .next_step = RG_TILE_STEPS * j->mr };

		e.bias = j->e.bias ? j->e.bias + g * j->m : NULL;
		e.residual = j->residual ? j->residual + channel * j->w.out_count : NULL;
		e.residual_row = j->w.out_count;
		for (int64_t i = 0; i < n; i++)
			find_panel(j, first + i * RG_TILE_COLS, &panels[i]);
		for (int64_t t0 = 0; t0 < j->taps || t0 == 0; t0 += j->kc) {
			int64_t kc = rg_min(j->kc, j->taps - t0);

			gather(j, x, panels, n, t0, t0 + kc, room);
			t.add = t0 > 0;
			t.last = t0 + kc == j->taps;
			for (int64_t i = 0; i < n; i++) {
				t.col = first + i * RG_TILE_COLS;
				t.cols = rg_min(j->w.out_count - t.col, RG_TILE_COLS);
				for (int64_t m = m0; m < m1; m += j->mr) {
					t.row = m;
					t.c = j->y + (channel + m) * j->w.out_count + t.col;
					t.next = j->packed && i == 0 ? next_weights(j, wt, m0, m1, m, t0) : NULL;
					rg_multiply_tile(rg_min(j->mr, m1 - m), kc,
							 j->packed ? wt + m * j->taps + t0 * j->mr : wt + m * j->taps + t0,
							 j->packed ? j->mr : j->taps, !j->packed,
							 room + i * panel_floats(j), RG_TILE_COLS, &t);
				}
			}
		}
	}
}

/* ---- channels in vectors ---- */

/* Items are taps: the pixels as panels of rows. */
static void work_gather(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const float *x = j->copies ? j->copy : j->x + j->image * j->w.c_in * j->w.in_count;
	int64_t mr = j->mul.mr;

	for (int64_t p0 = 0; p0 < j->w.out_count; p0 += mr) {
		int64_t count = rg_min(mr, j->w.out_count - p0), from[RG_TILE_ROWS];
		struct tap tap = tap_start(j, x, begin);
		float *to = j->gathered + p0 * j->taps + begin * mr;

		for (int64_t i = 0; i < mr; i++) { /* rows that are not there repeat the last one */
			int64_t p = p0 + rg_min(i, count - 1);

			from[i] = p / j->p.ow * j->row + p % j->p.ow;
		}
		for (int64_t t = begin; t < end; t++, to += mr, tap_next(j, &tap)) {
			const float *in = tap.at + j->tap_column[tap.k];

			if (mr == 6)
				for (int i = 0; i < 6 && i < RG_TILE_ROWS; i++)
					to[i] = in[from[i]];
			else
				for (int64_t i = 0; i < mr; i++)
					to[i] = in[from[i]];
		}
	}
}

/* Channels a block: whole lines of Y'. */
enum { TURN = 16 };

/* RG_VEC pixels of RG_VEC channels. */
RG_INLINE void turn_square(const float *from, int64_t from_row, float *to, int64_t to_row)
{
	rg_vec x[RG_VEC];

	_Pragma("GCC unroll 16") for (int i = 0; i < RG_VEC; i++)
		x[i] = rg_vec_load(from + i * from_row);
	rg_vec_turn(x);
	_Pragma("GCC unroll 16") for (int i = 0; i < RG_VEC; i++)
		rg_vec_store(to + i * to_row, x[i]);
}

/* TURN channels: reads along Y', so that a line is read once; what is written of a block fits L1. */
static void turn_block(const struct job *j, const float *from, float *y)
{
	int64_t pixels = j->w.out_count, last = pixels - RG_VEC;

	for (int64_t p = 0; p < pixels; p += RG_VEC) {
		int64_t at = rg_min(p, last); /* the end again, whole */

		for (int c = 0; c < TURN; c += RG_VEC)
			turn_square(from + at * j->turn_row + c, j->turn_row, y + c * pixels + at, pixels);
	}
}

/* Items are blocks of output channels: turns Y', with what of the epilogue lies by pixels. */
static void work_turn(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t pixels = j->w.out_count, m1 = rg_min(end * TURN, j->m);

	for (int64_t m = begin * TURN; m < m1; m += TURN) {
		int64_t at = (j->image * j->w.c_out + m) * pixels, n = rg_min(TURN, m1 - m);
		float *y = j->y + at;

		if (n == TURN && pixels >= RG_VEC)
			turn_block(j, j->turned + m, y);
		else
			for (int64_t p = 0; p < pixels; p++)
				for (int64_t i = 0; i < n; i++)
					y[i * pixels + p] = j->turned[p * j->turn_row + m + i];
		if (!j->residual)
			continue;
		for (int64_t i = 0; i < n * pixels; i++) {
			float v = y[i] + j->residual[at + i];

			v = j->e.clip && j->e.low > v ? j->e.low : v;
			y[i] = j->e.clip && j->e.high < v ? j->e.high : v;
		}
		if (j->e.finish)
			j->e.finish(y, n * pixels, &j->e);
	}
}

static void run_channels(struct job *j, const struct rg_par *par)
{
	struct rg_epilogue e = j->e;
	struct rg_multiply mul = { .plan = j->mul, .e = &e, .scratch = j->lanes };

	e.bias_row = 0;
	e.bias_col = 1;
	e.clip = e.clip && !j->residual; /* those come after the residual, which lies by pixels */
	e.finish = j->residual ? NULL : e.finish;
	mul.a = (struct rg_matrix){ .row = 1, .col = j->plane };
	if (j->gathers)
		mul.a.packed = j->gathered;
	else
		mul.a.data = j->x + j->image * j->w.c_in * j->w.in_count;
	mul.b = (struct rg_matrix){ .row = 1, .col = j->taps, .packed = j->packed };
	/* one pixel: the channels of Y' are those of Y */
	mul.c = j->w.out_count == 1 && !j->residual ? j->y + j->image * j->w.c_out : j->turned;
	mul.c_row = j->turn_row;
	if (j->gathers)
		par->run(par, j->taps, rg_grain(8 * j->w.out_count), work_gather, j);
	rg_multiply_run(&mul, par);
	if (mul.c == j->turned)
		par->run(par, rg_ceil_div(j->m, TURN), rg_grain(4 * TURN * j->w.out_count), work_turn, j);
}

/* ---- the call ---- */

/* Items are planes. */
static void work_copy(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const float *x = j->x + j->image * j->w.c_in * j->w.in_count;

	for (int64_t i = begin; i < end; i++)
		rg_plane_copy(&j->p, x + i * j->w.in_count, j->copy + i * j->plane);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int64_t items;
	int rc = setup(c, c->prepared != NULL, par->lanes, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	rg_conv_epilogue(c, &j.e);
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.packed = c->prepared;
	j.e.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.residual = c->node->n_in > 3 ? c->in[3].data : NULL;
	j.y = c->out[0].data;
	j.copy = c->scratch;
	j.tap_column = (int32_t *)(j.copy + j.copy_floats);
	j.gathered = j.copy + j.copy_floats + j.taps_floats;
	j.turned = j.gathered + j.gather_floats;
	j.lanes = j.turned + j.turn_floats;
	for (int64_t k = 0; k < j.p.kw; k++)
		j.tap_column[k] = (int32_t)(j.copies ? rg_plane_tap(&j.p, 0, k) : k * j.p.dw);
	items = j.w.group * j.channel_blocks * j.pixel_blocks;
	for (; j.image < j.w.batch; j.image++) {
		if (j.copies)
			par->run(par, j.w.c_in, rg_grain(j.plane), work_copy, &j);
		if (j.by_channels)
			run_channels(&j, par);
		else
			par->run(par, items,
				 rg_grain(j.mc * j.panels * RG_TILE_COLS / RG_VEC * (j.taps + 8) / 2), work_pixels, &j);
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_epilogue e;
	struct job j;

	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	return rg_conv_epilogue(c, &e) && !setup(c, false, 1, &j, &err);
}

/* Factors measured on AVX2 (EPYC family 23), as those of winograd.c and the depthwise kernels. */
static double cost(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	double taps, panels, tiles, all;
	struct job j;

	if (setup(c, c->in[1].data != NULL, 1, &j, &err))
		return INFINITY;
	taps = (double)j.taps;
	if (j.by_channels) {
		double rows = (double)j.w.out_count;

		panels = (double)rg_ceil_div(j.m, RG_TILE_COLS);
		tiles = (double)rg_ceil_div(j.w.out_count, j.mul.mr) * panels;
		/* gathered element by element, turned on the way out */
		all = rows * taps * panels * RG_TILE_VECS + (j.gathers ? 1.6 * rows * taps : 0) + rows * (double)j.m;
	} else {
		double vectors = (double)rg_ceil_div(j.w.out_count, RG_VEC);

		panels = (double)rg_ceil_div(j.w.out_count, RG_TILE_COLS);
		tiles = (double)rg_ceil_div(j.m, j.mr) * panels;
		all = (double)j.m * taps * vectors + 20 * taps * panels;
	}
	all = RG_TILE_SLOWER * all + RG_TILE_ENDS * tiles * (double)rg_ceil_div(rg_max(j.taps, 1), 256);
	if (j.copies)
		all += 11 * (double)j.plane / RG_VEC * (double)j.w.c_in / (double)j.w.group;
	return all * (double)j.w.batch * (double)j.w.group;
}

/* Multiplied: whole vectors of pixels or of channels. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;
	double flops, rest;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (setup(c, c->in[1].data != NULL, 1, &j, &err))
		return;
	rest = (double)(j.by_channels ? rg_ceil_div(j.m, RG_VEC) * RG_VEC * j.w.out_count :
					rg_ceil_div(j.w.out_count, RG_VEC) * RG_VEC * j.m);
	flops = 2.0 * (double)j.w.batch * (double)j.w.group * (double)j.taps * rest;
	if (flops < 9e18)
		out->executed_flops = (int64_t)flops;
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("tiled"), .isa = RG_LEVEL_ISA, \
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << 1, .cost = cost, .traffic = traffic, \
	  .run = run }
static const struct rg_kernel kernels[] = {
	K("Conv", ""),
	K("FusedConv", RG_CONTRIB_DOMAIN),
	K("FusedConv", RG_OWN_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(conv), kernels);
