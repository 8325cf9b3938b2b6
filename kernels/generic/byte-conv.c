/*
 * Convolutions of bytes in one and two dimensions, on the tiles of byte-tile.h: ConvInteger and
 * QLinearConv. Pixels are the rows of a tile and come from planes of four channels a dword
 * (byte-planes.h), output channels its columns. There is no im2col: a group of k is four channels at one
 * place of the window, and its pixels lie next to each other. Tiles leave pixel by pixel, and are turned
 * once a row of them is done.
 */
#include "kernels/generic/byte-planes.h"

#include "graph/contrib.h"
#include "kernels/cache.h"
#include "kernels/generic/byte-finish.h"
#include "kernels/generic/cut.h"
#include "kernels/generic/shuffle.h"
#include "kernels/tables.h"

enum { MOST_PIXELS = 192 }; /* of a row that are done at a time */

/* Where the inputs are; -1: none. */
struct places {
	int w, x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, bias;
};

struct conv {
	struct places at;
	bool to_bytes;
	struct rg_window w;
	struct rg_byte_planes in;
	int64_t taps, k, groups;     /* of one group of the convolution: places of the window, padded k, dwords of it */
	int64_t m, panels;           /* output channels of it, and in panels */
	int64_t chunk, chunks, mr;   /* pixels of a row at a time */
	struct rg_cut cut;           /* rows of chunks, panels */
	int64_t row_blocks, col_blocks;
	bool x_signed, w_signed;
	/* scratch */
	int64_t at_bytes, start_bytes, scale_bytes, sum_bytes, planes_bytes, shared_bytes, lane_bytes;
};

/* A window of one element that moves by one sees the image as one row. */
static void join_rows(struct rg_window *w)
{
	for (int d = 0; d < w->n; d++)
		if (w->kernel[d] != 1 || w->stride[d] != 1 || w->pad_begin[d] || w->pad_end[d])
			return;
	w->n = 1;
	w->in[0] = w->in_count;
	w->out[0] = w->out_count;
	w->kernel[0] = w->stride[0] = w->dilation[0] = 1;
	w->pad_begin[0] = w->pad_end[0] = 0;
}

static int64_t tile_bytes(void)
{
	return RG_BYTE_ROWS * RG_BYTE_COLS * (int64_t)sizeof(int32_t);
}

/* A chunk of results, pixel by pixel, with room for whole squares behind it. */
static int64_t result_bytes(const struct conv *v)
{
	return rg_scratch_bytes((v->chunk + 16) * RG_BYTE_COLS * (v->to_bytes ? 1 : (int64_t)sizeof(int32_t)));
}

static void cut_lanes(struct conv *v, int lanes)
{
	int64_t l2 = rg_kernel_caches()->l2_bytes;

	v->cut = (struct rg_cut){
		.all_rows = rg_max(1, v->in.p.oh * v->chunks),
		.all_cols = rg_max(1, v->panels * v->w.group),
		/* rows whose pixels stay in L2 while panels pass, but enough of them to be worth a panel's way */
		.most_rows = rg_max(1, rg_max(l2 / 4 / rg_max(1, v->chunk * v->in.quads * 4 * v->in.p.sh), 96 / rg_max(1, v->chunk))),
		.most_cols = INT32_MAX,
		.tile = (double)v->chunk,
		.row = (double)v->chunk / 4,
		.col = (double)RG_BYTE_COLS / 8,
	};
	rg_cut_blocks(&v->cut, (double)v->cut.all_rows * (double)(v->chunk * v->k) * (double)v->cut.all_cols * RG_BYTE_COLS > 1e6 ? lanes : 1);
	v->row_blocks = rg_ceil_div(v->cut.all_rows, v->cut.rows);
	v->col_blocks = rg_ceil_div(v->cut.all_cols, v->cut.cols);
}

static bool describe(const struct rg_call *c, int lanes, struct conv *v)
{
	static const struct places integer = { 1, -1, 2, -1, 3, -1, -1, -1 }, linear = { 3, 1, 2, 4, 5, 6, 7, 8 };
	struct rg_error err = RG_ERROR_INIT;
	int64_t all;

	memset(v, 0, sizeof(*v));
	v->to_bytes = c->node->op_type[0] == 'Q';
	v->at = v->to_bytes ? linear : integer;
	v->x_signed = c->in[0].dtype == RG_I8;
	v->w_signed = c->in[v->at.w].dtype == RG_I8;
	if (rg_window_conv(c->node, &c->in[0].shape, &c->in[v->at.w].shape, &v->w, &err))
		return false;
	join_rows(&v->w);
	if (rg_byte_planes_setup(&v->w, &v->in, &err))
		return false;
	v->taps = v->w.kernel_count;
	v->groups = v->taps * v->in.quads;
	v->k = 4 * v->groups;
	v->m = v->w.c_out / v->w.group;
	v->panels = rg_ceil_div(v->m, RG_BYTE_COLS);
	v->chunks = rg_max(1, rg_ceil_div(v->in.p.ow, MOST_PIXELS));
	v->chunk = rg_ceil_div(rg_max(1, v->in.p.ow), v->chunks);
	if (v->chunks > 1)
		v->chunk = rg_ceil_div(v->chunk, RG_BYTE_ROWS) * RG_BYTE_ROWS;
	v->chunks = rg_max(1, rg_ceil_div(v->in.p.ow, v->chunk));
	v->mr = rg_byte_rows_of(v->chunk);
	if (v->groups >= INT32_MAX / 16 || v->m >= INT32_MAX / 16)
		return false;
	cut_lanes(v, lanes);
	v->at_bytes = rg_scratch_bytes(v->groups * (int64_t)sizeof(int32_t));
	v->start_bytes = rg_scratch_bytes(v->w.group * v->panels * RG_BYTE_COLS * (int64_t)sizeof(int32_t));
	v->scale_bytes = v->to_bytes ? v->start_bytes : 0;
	/* sums over channels: of the negative, and of all, for each group */
	v->sum_bytes = rg_scratch_bytes(v->w.group * v->in.p.floats * (int64_t)sizeof(int32_t));
	v->planes_bytes = rg_scratch_bytes(rg_byte_planes_bytes(&v->in));
	v->shared_bytes = v->at_bytes + v->start_bytes + v->scale_bytes + 2 * v->sum_bytes + v->planes_bytes;
	v->lane_bytes = rg_scratch_bytes(v->in.row_bytes) + tile_bytes() + result_bytes(v) +
			2 * rg_scratch_bytes(v->chunk * (int64_t)sizeof(int32_t));
	return !__builtin_mul_overflow(v->lane_bytes, lanes, &all) && !__builtin_add_overflow(all, v->shared_bytes, &all);
}

static bool supports(const struct rg_call *c)
{
	struct conv v;

	if (!rg_is_bytes(c->in[0].dtype) || !describe(c, 1, &v) || !rg_is_bytes(c->in[v.at.w].dtype) || !c->in[v.at.w].data)
		return false;
	if (rg_node_int(c->node, "channels_last", 0))
		return false;
	for (int i = 1; i < c->node->n_in; i++)
		if (rg_arg_given(c, i) && !rg_is_bytes(c->in[i].dtype) && c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_I32)
			return false;
	return rg_arg_one_or(c, v.at.x_scale, 1) && rg_arg_one_or(c, v.at.x_zero, 1) && rg_arg_one_or(c, v.at.w_scale, v.w.c_out) &&
	       rg_arg_one_or(c, v.at.w_zero, v.w.c_out) && rg_arg_one_or(c, v.at.y_scale, 1) && rg_arg_one_or(c, v.at.y_zero, 1);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct conv v;

	return describe(c, lanes, &v) ? (size_t)(v.shared_bytes + lanes * v.lane_bytes) : 0;
}

/* ---- weights ---- */

static struct rg_byte_matrix weights_of(const struct rg_call *c, const struct conv *v, int64_t group)
{
	int64_t row = v->in.channels * v->taps;

	return (struct rg_byte_matrix){ .data = (const char *)c->in[v->at.w].data + group * v->m * row, .row = v->taps, .col = row,
					.is_signed = v->w_signed, .channels = v->in.channels, .tap = 1 };
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct conv v;

	return describe(c, 1, &v) ? rg_byte_pack_bytes(v.m, v.k) * (size_t)v.w.group : 0;
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct conv v;

	(void)err;
	if (!describe(c, 1, &v))
		return 0;
	for (int64_t g = 0; g < v.w.group; g++) {
		void *to = (char *)prepared + (size_t)g * rg_byte_pack_bytes(v.m, v.k);
		struct rg_byte_matrix w = weights_of(c, &v, g);

		rg_byte_pack_start(v.m, v.k, to);
		rg_byte_pack_panels(&w, 0, v.panels, to);
	}
	return 0;
}

/* ---- running ---- */

struct job {
	const struct rg_call *c;
	const struct conv *v;
	const uint8_t *x;            /* the image */
	char *y;
	uint32_t flip;
	int32_t x_zero;              /* moved as x is */
	bool needs_sums;             /* a zero point of the weights is not 0, moved as they are */
	int32_t *at, *start, *sums, *negative;
	float *scale;
	struct rg_byte_round round;
	uint32_t *planes;
	char *lanes;
};

/* Of output channel m, moved as the weights are. */
static int32_t w_zero(const struct job *j, int64_t m)
{
	int32_t moved = j->v->w_signed ? 0 : -128;
	int i = j->v->at.w_zero;

	return rg_arg_given(j->c, i) ? moved + rg_arg_byte(&j->c->in[i], rg_arg_count(j->c, i) == 1 ? 0 : m) : moved;
}

static const struct rg_bytes_packed *packed_of(const struct job *j, int64_t group)
{
	return (const void *)((const char *)j->c->prepared + (size_t)group * rg_byte_pack_bytes(j->v->m, j->v->k));
}

/* What sums begin with, and what they are multiplied by. */
static void make_channels(struct job *j)
{
	const struct rg_call *c = j->c;
	const struct conv *v = j->v;
	const int32_t *bias = rg_arg_given(c, v->at.bias) ? c->in[v->at.bias].data : NULL;
	uint32_t xz = (uint32_t)j->x_zero;

	memset(j->start, 0, (size_t)v->start_bytes);
	if (v->to_bytes)
		memset(j->scale, 0, (size_t)v->scale_bytes);
	for (int64_t m = 0; m < v->w.c_out; m++) {
		int64_t g = m / v->m, at = g * v->panels * RG_BYTE_COLS + m % v->m;
		const struct rg_bytes_packed *b = packed_of(j, g);
		const int32_t *sums = (const int32_t *)((const char *)b + b->sums);
		int32_t wz = w_zero(j, m);

		j->start[at] = (int32_t)((bias ? (uint32_t)bias[m] : 0) - xz * (uint32_t)sums[m % v->m] + (uint32_t)v->k * xz * (uint32_t)wz);
		j->needs_sums |= wz != 0;
		if (v->to_bytes) {
			const float *ws = c->in[v->at.w_scale].data;

			j->scale[at] = *(const float *)c->in[v->at.x_scale].data * ws[rg_arg_count(c, v->at.w_scale) == 1 ? 0 : m] /
				       *(const float *)c->in[v->at.y_scale].data;
		}
	}
}

static void work_planes(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	rg_byte_planes_fill(&j->v->in, j->x, j->flip, (uint8_t)j->x_zero, begin, end, j->planes, j->lanes + lane * j->v->lane_bytes);
}

/* Items: rows of all groups' planes. */
static void work_sums(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const struct rg_plane *p = &j->v->in.p;

	(void)lane;
	for (; begin < end; begin++) {
		int64_t group = begin / p->rows, row = begin % p->rows;

		rg_byte_planes_sum(&j->v->in, j->planes, group, row * p->pitch, (row + 1) * p->pitch,
				   j->needs_sums ? j->sums + group * p->floats : NULL,
				   RG_BYTE_SIGNS ? j->negative + group * p->floats : NULL);
	}
}

/* Sums over the window of n pixels in a row, from where the first tap sees the first of them. */
static void sum_window(const struct conv *v, const int32_t *from, int64_t n, int32_t *restrict to)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = 0;
	for (int64_t r = 0; r < v->in.p.kh; r++)
		for (int64_t k = 0; k < v->in.p.kw; k++) {
			const int32_t *tap = from + rg_plane_tap(&v->in.p, r, k);

			for (int64_t i = 0; i < n; i++)
				to[i] += tap[i];
		}
}

/* 16 pixels of 16 channels of bytes, `pitch` bytes from pixel to pixel and from channel to channel. */
static void turn_bytes(const uint8_t *from, uint8_t *to, int64_t pitch, int64_t pixels, int64_t channels)
{
#if defined(__SSE2__)
	__m128i x[16], t[16];

	for (int i = 0; i < 16; i++)
		x[i] = _mm_loadu_si128((const __m128i *)(from + i * RG_BYTE_COLS));
	/* neighbours at distance 8 are woven, four times: then channel i is in x[i] */
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 8; i++) {
			t[2 * i] = _mm_unpacklo_epi8(x[i], x[i + 8]);
			t[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + 8]);
		}
		memcpy(x, t, sizeof(x));
	}
	for (int64_t i = 0; i < channels; i++, to += pitch) {
		if (pixels == 16)
			_mm_storeu_si128((__m128i *)to, x[i]);
		else
			for (int64_t p = 0; p < pixels; p++)
				to[p] = ((const uint8_t *)&x[i])[p];
	}
#else
	for (int64_t i = 0; i < channels; i++, to += pitch)
		for (int64_t p = 0; p < pixels; p++)
			to[p] = from[p * RG_BYTE_COLS + i];
#endif
}

static void turn_dwords(const float *from, float *to, int64_t pitch, int64_t pixels, int64_t channels)
{
	rg_vec x[RG_VEC];

	for (int i = 0; i < RG_VEC; i++)
		x[i] = rg_vec_load(from + i * RG_BYTE_COLS);
	rg_vec_turn(x);
	for (int64_t i = 0; i < channels; i++, to += pitch) {
		if (pixels == RG_VEC)
			rg_vec_store(to, x[i]);
		else
			memcpy(to, &x[i], (size_t)pixels * sizeof(*to));
	}
}

/* A chunk of results to their planes. `y`: of the first channel, the first pixel. */
static void turn(const struct conv *v, const char *result, char *y, int64_t pixels, int64_t channels)
{
	const int64_t side = v->to_bytes ? 16 : RG_VEC, size = v->to_bytes ? 1 : 4, pitch = v->w.out_count;

	for (int64_t c = 0; c < channels; c += side)
		for (int64_t p = 0; p < pixels; p += side) {
			const char *from = result + (p * RG_BYTE_COLS + c) * size;
			char *to = y + (c * pitch + p) * size;

			if (v->to_bytes)
				turn_bytes((const uint8_t *)from, (uint8_t *)to, pitch, rg_min(side, pixels - p), rg_min(side, channels - c));
			else
				turn_dwords((const float *)from, (float *)to, pitch, rg_min(side, pixels - p), rg_min(side, channels - c));
		}
}

/* One tile of sums to the results of its chunk. */
static void keep(const struct job *j, const int32_t *sums, int64_t rows, int64_t cols, const float *scale, char *result)
{
	for (int64_t r = 0; r < rows; r++, sums += RG_BYTE_COLS)
		for (int64_t v = 0; v < cols; v += RG_VEC) {
			if (j->v->to_bytes)
				rg_ivec_store_bytes((uint8_t *)result + r * RG_BYTE_COLS + v,
						    rg_byte_requantize(rg_ivec_load(sums + v), rg_vec_load(scale + v), &j->round));
			else
				rg_ivec_store(result + (r * RG_BYTE_COLS + v) * 4, rg_ivec_load(sums + v));
		}
}

/* What the zero points of the weights take from the sums. */
static void subtract_sums(const struct job *j, const int32_t *window, int64_t rows, int64_t cols, int64_t m, int32_t *sums)
{
	for (int64_t c = 0; c < cols; c++) {
		uint32_t wz = (uint32_t)w_zero(j, m + c);

		for (int64_t r = 0; r < rows; r++)
			sums[r * RG_BYTE_COLS + c] = (int32_t)((uint32_t)sums[r * RG_BYTE_COLS + c] - wz * (uint32_t)window[r]);
	}
}

/* A panel of output channels of one chunk of a row. */
static void do_chunk(const struct job *j, int64_t panel, int64_t row, char *room)
{
	const struct conv *v = j->v;
	const struct rg_plane *p = &v->in.p;
	int64_t group = panel / v->panels, col = panel % v->panels * RG_BYTE_COLS, cols = rg_min(v->m - col, RG_BYTE_COLS);
	int64_t y = row / v->chunks, x = row % v->chunks * v->chunk, pixels = rg_min(v->chunk, p->ow - x);
	int64_t from = y * rg_plane_row(p) + x, channel = group * v->m + col, of_group = (group * v->panels) * RG_BYTE_COLS + col;
	int32_t *sums = (int32_t *)room;
	char *result = room + tile_bytes();
	int32_t *negative = (int32_t *)(result + result_bytes(v)), *window = negative + rg_scratch_bytes(v->chunk * 4) / 4;
	const struct rg_bytes_packed *b = packed_of(j, group);
	struct rg_byte_tile t = { .signs = v->in.dwords, .at = j->at, .packed = (const char *)b,
				  .panel = &b->panel[panel % v->panels], .start = j->start + of_group, .c = sums,
				  .c_row = RG_BYTE_COLS };

	if (RG_BYTE_SIGNS)
		sum_window(v, j->negative + group * p->floats + from, pixels, negative);
	if (j->needs_sums)
		sum_window(v, j->sums + group * p->floats + from, pixels, window);
	for (int64_t i = 0; i < pixels; i += v->mr) {
		int64_t rows = rg_min(v->mr, pixels - i);

		t.a = j->planes + group * v->in.quads * p->floats + from + i;
		t.row_start = negative + i;
		rg_byte_tile_do(&t, rows, cols);
		if (j->needs_sums)
			subtract_sums(j, window + i, rows, cols, channel, sums);
		keep(j, sums, rows, cols, j->scale + of_group, result + i * RG_BYTE_COLS * (v->to_bytes ? 1 : 4));
	}
	turn(v, result, j->y + (channel * v->w.out_count + y * p->ow + x) * (v->to_bytes ? 1 : 4), pixels, cols);
}

static void work_blocks(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const struct conv *v = j->v;
	char *room = j->lanes + lane * v->lane_bytes + rg_scratch_bytes(v->in.row_bytes);

	for (; begin < end; begin++) {
		int64_t r0 = begin / v->col_blocks * v->cut.rows, r1 = rg_min(r0 + v->cut.rows, v->cut.all_rows);
		int64_t c0 = begin % v->col_blocks * v->cut.cols, c1 = rg_min(c0 + v->cut.cols, v->cut.all_cols);

		for (int64_t c = c0; c < c1; c++)
			for (int64_t r = r0; r < r1; r++)
				do_chunk(j, c, r, room);
	}
}

static int64_t grain(double ops)
{
	return 1 + (int64_t)(RG_VEC * 80e3 / (ops + 1));
}

static void make_job(struct job *j, const struct rg_call *c, const struct conv *v)
{
	char *room = c->scratch;
	int32_t zero = rg_arg_given(c, v->at.x_zero) ? rg_arg_byte(&c->in[v->at.x_zero], 0) : 0;

	*j = (struct job){ .c = c, .v = v, .flip = v->x_signed == RG_BYTE_SIGNS ? 0 : 0x80808080u };
	j->x_zero = zero + (v->x_signed == RG_BYTE_SIGNS ? 0 : RG_BYTE_SIGNS ? -128 : 128);
	j->at = (int32_t *)room;
	room += v->at_bytes;
	j->start = (int32_t *)room;
	room += v->start_bytes;
	j->scale = (float *)room;
	room += v->scale_bytes;
	j->sums = (int32_t *)room;
	room += v->sum_bytes;
	j->negative = (int32_t *)room;
	room += v->sum_bytes;
	j->planes = (uint32_t *)room;
	room += v->planes_bytes;
	j->lanes = room;
	if (v->to_bytes)
		j->round = rg_byte_round_of(c->out[0].dtype == RG_I8, rg_arg_given(c, v->at.y_zero) ? rg_arg_byte(&c->in[v->at.y_zero], 0) : 0);
	for (int64_t t = 0; t < v->taps; t++)
		for (int64_t q = 0; q < v->in.quads; q++)
			j->at[t * v->in.quads + q] = (int32_t)(q * v->in.p.floats + rg_plane_tap(&v->in.p, t / v->in.p.kw, t % v->in.p.kw));
	make_channels(j);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_plane *p;
	struct conv v;
	struct job j;

	if (!describe(c, par->lanes, &v))
		return rg_error_set(err, -EOVERFLOW, "the convolution is too large");
	p = &v.in.p;
	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	make_job(&j, c, &v);
	for (int64_t n = 0; n < v.w.batch; n++) {
		double ops = 2.0 * (double)v.k * (double)(v.cut.rows * v.chunk) * (double)(v.cut.cols * RG_BYTE_COLS);

		j.x = (const uint8_t *)c->in[0].data + n * v.w.c_in * v.w.in_count;
		j.y = (char *)c->out[0].data + n * v.w.c_out * v.w.out_count * (v.to_bytes ? 1 : 4);
		par->run(par, v.in.count, rg_grain(p->floats), work_planes, &j);
		if (RG_BYTE_SIGNS || j.needs_sums)
			par->run(par, v.w.group * p->rows, rg_grain(v.in.quads * p->pitch), work_sums, &j);
		par->run(par, v.row_blocks * v.col_blocks, grain(ops), work_blocks, &j);
	}
	return 0;
}

#if defined(RG_GENERIC_AVXVNNI)
#define FLAGS RG_KERNEL_UNPROVEN
#else
#define FLAGS 0
#endif
#define K(OP, DOMAIN, W) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("bytes"), .isa = RG_LEVEL_ISA, \
	  .rank = 40 + RG_LEVEL_RANK, .flags = FLAGS, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << (W), .run = run }
static const struct rg_kernel kernels[] = {
	K("ConvInteger", "", 1),
	K("QLinearConv", "", 3),
	K("QLinearConv", RG_CONTRIB_DOMAIN, 3),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(byte_conv), kernels);
