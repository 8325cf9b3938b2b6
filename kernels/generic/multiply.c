/* The loops around the tiles. See multiply.h. */
#include "kernels/generic/multiply.h"

#include "kernels/cache.h"
#include "kernels/generic/cut.h"
#include "kernels/generic/shuffle.h"

/* ---- tiles by size ---- */

#define TILE(R, V) \
	static void tile_rows_##R##_##V(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_step, \
					const struct rg_tile *t) \
	{ \
		rg_tile_run(k, a, a_stride, b, b_step, t, R, V, true, 0); \
	} \
	static void tile_packed_##R##_##V(int64_t k, const float *a, int64_t a_stride, const float *b, \
					  int64_t b_step, const struct rg_tile *t) \
	{ \
		rg_tile_run(k, a, a_stride, b, b_step, t, R, V, false, 0); \
	}
#define TILES(R) TILE(R, 1) TILE(R, 2)
#define ROW(KIND, R) { tile_##KIND##_##R##_1, tile_##KIND##_##R##_2 }

TILES(1) TILES(2) TILES(3) TILES(4)
#if RG_VEC >= 8
TILES(5) TILES(6)
#endif
#if RG_VEC >= 16
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)
#endif

#if RG_VEC >= 16
#define ROWS(KIND) \
	{ ROW(KIND, 1), ROW(KIND, 2), ROW(KIND, 3), ROW(KIND, 4), ROW(KIND, 5), ROW(KIND, 6), ROW(KIND, 7), \
	  ROW(KIND, 8), ROW(KIND, 9), ROW(KIND, 10), ROW(KIND, 11), ROW(KIND, 12) }
#elif RG_VEC >= 8
#define ROWS(KIND) { ROW(KIND, 1), ROW(KIND, 2), ROW(KIND, 3), ROW(KIND, 4), ROW(KIND, 5), ROW(KIND, 6) }
#else
#define ROWS(KIND) { ROW(KIND, 1), ROW(KIND, 2), ROW(KIND, 3), ROW(KIND, 4) }
#endif

static rg_tile_fn *const tiles[2][RG_TILE_ROWS][RG_TILE_VECS] = { ROWS(packed), ROWS(rows) };

void rg_multiply_tile(int64_t rows, int64_t k, const float *a, int64_t a_stride, bool a_by_row, const float *b,
		      int64_t b_step, const struct rg_tile *t)
{
	tiles[a_by_row][rows - 1][t->cols > RG_VEC](k, a, a_stride, b, b_step, t);
}

/*
 * Few rows times packed B, which then comes from memory at the pace of memory: panels
 * are read from start to end, one after the other, with steps of k fetched ahead. One or
 * two rows have too few sums to hide the latency of a multiply-add, so the steps of k
 * are shared by four or two sets of sums.
 */
enum { AHEAD = 24 };

RG_INLINE void stream_run(int64_t k, const float *a, int64_t a_stride, const float *b, const struct rg_tile *t,
			  const int rows, const int sets, const bool by_row)
{
	rg_vec sum[4][2][RG_TILE_VECS];
	int64_t i = 0;

	_Pragma("GCC unroll 4") for (int s = 0; s < sets; s++)
		RG_TILE_EACH(rows, RG_TILE_VECS)
			sum[s][r][v] = (rg_vec){ 0 };
	for (; i + sets <= k; i += sets, b += sets * RG_TILE_COLS)
		_Pragma("GCC unroll 4") for (int s = 0; s < sets; s++) {
			const float *row = b + s * RG_TILE_COLS;

			for (int v = 0; v < RG_TILE_COLS; v += 16)
				__builtin_prefetch(row + AHEAD * RG_TILE_COLS + v, 0, 3);
			RG_TILE_EACH(rows, RG_TILE_VECS) {
				rg_vec f = rg_vec_all(by_row ? a[r * a_stride + i + s] : a[(i + s) * a_stride + r]);

				sum[s][r][v] = rg_vec_fma(f, rg_vec_load(row + v * RG_VEC), sum[s][r][v]);
			}
		}
	for (; i < k; i++, b += RG_TILE_COLS)
		RG_TILE_EACH(rows, RG_TILE_VECS)
			sum[0][r][v] = rg_vec_fma(rg_vec_all(by_row ? a[r * a_stride + i] : a[i * a_stride + r]),
						  rg_vec_load(b + v * RG_VEC), sum[0][r][v]);
	_Pragma("GCC unroll 4") for (int s = 1; s < sets; s++)
		RG_TILE_EACH(rows, RG_TILE_VECS)
			sum[0][r][v] += sum[s][r][v];
	if (t->cols > RG_VEC || RG_TILE_VECS == 1)
		rg_tile_store(t, sum[0], rows, RG_TILE_VECS);
	else
		rg_tile_store(t, sum[0], rows, 1);
}

#define STREAM(R, RUN) \
	static void stream_rows_##R(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_step, \
				    const struct rg_tile *t) \
	{ \
		RUN(true); \
	} \
	static void stream_packed_##R(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_step, \
				      const struct rg_tile *t) \
	{ \
		RUN(false); \
	}
#define ONE(BY_ROW) stream_run(k, a, a_stride, b, t, 1, 4, BY_ROW)
#define TWO(BY_ROW) stream_run(k, a, a_stride, b, t, 2, 2, BY_ROW)
#define THREE(BY_ROW) rg_tile_run(k, a, a_stride, b, b_step, t, 3, RG_TILE_VECS, BY_ROW, AHEAD)
#define FOUR(BY_ROW) rg_tile_run(k, a, a_stride, b, b_step, t, 4, RG_TILE_VECS, BY_ROW, AHEAD)
STREAM(1, ONE) STREAM(2, TWO) STREAM(3, THREE) STREAM(4, FOUR)
#if RG_VEC >= 8
#define FIVE(BY_ROW) rg_tile_run(k, a, a_stride, b, b_step, t, 5, RG_TILE_VECS, BY_ROW, AHEAD)
#define SIX(BY_ROW) rg_tile_run(k, a, a_stride, b, b_step, t, 6, RG_TILE_VECS, BY_ROW, AHEAD)
STREAM(5, FIVE) STREAM(6, SIX)
#define STREAMS(KIND) \
	{ stream_##KIND##_1, stream_##KIND##_2, stream_##KIND##_3, stream_##KIND##_4, stream_##KIND##_5, stream_##KIND##_6 }
#else
#define STREAMS(KIND) { stream_##KIND##_1, stream_##KIND##_2, stream_##KIND##_3, stream_##KIND##_4 }
#endif
enum { MOST_STREAMED = RG_VEC >= 8 ? 6 : 4 }; /* rows of a tile that streams */
static rg_tile_fn *const streams[2][MOST_STREAMED] = { STREAMS(packed), STREAMS(rows) };

/*
 * Few rows times B as it lies in rows: sums go to memory and back for every few rows of B,
 * so that B is read once, in its own order, while the next rows are fetched. Sums live in
 * scratch: rows of C are often a multiple of 4 KiB apart, where eight of them and B fall on
 * the same set of L1. They start as zeros.
 */
enum { MOST_ROWS_AS_THEY_LIE = 16, DEPTH_AS_THEY_LIE = 16, ROWS_AT_A_TIME = 4 };

/* How many rows of B at a time. One or two rows of A over, and the latency of their few sums
 * is not hidden over 16; one row alone leaves it to the hardware to look ahead, which follows
 * a few rows at once. */
static int64_t depth_as_they_lie(int64_t m)
{
	return m == 1 ? 4 : m % ROWS_AT_A_TIME == 1 || m % ROWS_AT_A_TIME == 2 ? 8 : DEPTH_AS_THEY_LIE;
}

/* `depth` rows of B times `rows` of A, two vectors of columns. Element (r, d) of A is at
 * a[d * MOST_ROWS_AS_THEY_LIE + r]. */
RG_INLINE void add_tile(const float *a, const float *b, int64_t b_row, float *c, int64_t c_row,
			const int rows, const int depth)
{
	rg_vec sum[ROWS_AT_A_TIME][RG_TILE_VECS];

	RG_TILE_EACH(rows, RG_TILE_VECS)
		sum[r][v] = rg_vec_load(c + r * c_row + v * RG_VEC);
	_Pragma("GCC unroll 16") for (int d = 0; d < depth; d++) {
		rg_vec bv[RG_TILE_VECS];

		for (int v = 0; v < RG_TILE_VECS; v++)
			bv[v] = rg_vec_load(b + d * b_row + v * RG_VEC);
		_Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
			rg_vec f = rg_vec_all(a[d * MOST_ROWS_AS_THEY_LIE + r]);

			for (int v = 0; v < RG_TILE_VECS; v++)
				sum[r][v] = rg_vec_fma(f, bv[v], sum[r][v]);
		}
	}
	RG_TILE_EACH(rows, RG_TILE_VECS)
		rg_vec_store(c + r * c_row + v * RG_VEC, sum[r][v]);
}

/* The same for n columns; `next` rows of B behind them are fetched. */
RG_INLINE void add_rows(const float *a, int64_t rows, const float *b, int64_t b_row, int64_t n, float *c, int64_t c_row,
			int64_t next, const int depth)
{
	const float *row = b + depth * b_row, *ahead = row;
	int64_t j = 0;

	for (; j + RG_TILE_COLS <= n; j += RG_TILE_COLS) {
		int64_t r = 0;

		if (next > 0) { /* for L2: L1 has no room for twice as many rows that fall on one set */
			_Pragma("GCC unroll 32") for (int v = 0; v < depth * RG_TILE_COLS; v += 16)
				__builtin_prefetch(ahead + v, 0, 2);
			ahead += depth * RG_TILE_COLS;
			if (ahead >= row + n) {
				row += b_row;
				ahead = row;
				next--;
			}
		}
		for (; r + ROWS_AT_A_TIME <= rows; r += ROWS_AT_A_TIME)
			add_tile(a + r, b + j, b_row, c + r * c_row + j, c_row, ROWS_AT_A_TIME, depth);
		if (rows - r == 1)
			add_tile(a + r, b + j, b_row, c + r * c_row + j, c_row, 1, depth);
		else if (rows - r == 2)
			add_tile(a + r, b + j, b_row, c + r * c_row + j, c_row, 2, depth);
		else if (rows - r == 3)
			add_tile(a + r, b + j, b_row, c + r * c_row + j, c_row, 3, depth);
	}
	for (; j < n; j++)
		for (int64_t r = 0; r < rows; r++)
			for (int d = 0; d < depth; d++)
				c[r * c_row + j] = rg_fma(a[d * MOST_ROWS_AS_THEY_LIE + r], b[d * b_row + j], c[r * c_row + j]);
}

/* ---- packing ---- */

/* One panel: `rows` of mr rows. */
RG_INLINE void pack_rows(const float *from, int64_t row, int64_t col, int64_t rows, const int64_t mr, int64_t k,
			 float *restrict to)
{
	int64_t i = 0;

	/* By squares turned in registers, two thirds of the time of what follows with AVX-512. A row
	 * that is turned is a vector long: what it leaves behind its mr elements the next rows cover. */
	if (RG_VEC == 16 && rows == mr && col == 1 && mr <= RG_VEC) {
		for (; i + 2 * RG_VEC <= k; i += RG_VEC) {
			rg_vec x[RG_VEC];

			_Pragma("GCC unroll 16") for (int r = 0; r < RG_VEC; r++)
				x[r] = r < mr ? rg_vec_load(from + r * row + i) : (rg_vec){ 0 };
			rg_vec_turn(x);
			_Pragma("GCC unroll 16") for (int j = 0; j < RG_VEC; j++)
				rg_vec_store(to + (i + j) * mr, x[j]);
		}
	}
	if (rows == mr && col == 1) { /* by blocks that stay in L1 while they are turned */
		for (; i + 16 <= k; i += 16)
			for (int64_t r = 0; r < mr; r++)
				for (int64_t j = 0; j < 16; j++)
					to[(i + j) * mr + r] = from[r * row + i + j];
	}
	for (; i < k; i++)
		for (int64_t r = 0; r < mr; r++)
			to[i * mr + r] = r < rows ? from[r * row + i * col] : 0;
}

void rg_multiply_pack_a(const struct rg_matrix *a, int64_t mr, int64_t k, int64_t row, int64_t end, float *to)
{
	for (; row < end; row += mr, to += mr * k) {
		const float *from = a->data + row * a->row;
		int64_t rows = end - row < mr ? end - row : mr;

		if (mr == RG_TILE_ROWS)
			pack_rows(from, a->row, a->col, rows, RG_TILE_ROWS, k, to);
		else
			pack_rows(from, a->row, a->col, rows, mr, k, to);
	}
}

enum { ROWS_AHEAD = 6 };

/* Rows [i0, i1) of panels [panel, end), `step` floats from one panel to the next. Rows are
 * read whole where they lie whole: they can be pages apart. */
static void pack_part(const struct rg_matrix *b, int64_t n, int64_t i0, int64_t i1, int64_t panel, int64_t end,
		      float *to, int64_t step)
{
	int64_t whole = b->col == 1 ? rg_min(end, n / RG_TILE_COLS) : panel;

	for (int64_t i = i0; i < i1 && whole > panel; i++) {
		const float *from = b->data + i * b->row + panel * RG_TILE_COLS;
		float *row = to + (i - i0) * RG_TILE_COLS;

		for (int64_t p = panel; p < whole; p++, from += RG_TILE_COLS, row += step) {
			/* rows can be pages apart, where no hardware looks ahead */
			for (int v = 0; v < RG_TILE_COLS; v += 16)
				__builtin_prefetch(from + ROWS_AHEAD * b->row + v, 0, 3);
			for (int v = 0; v < RG_TILE_VECS; v++)
				rg_vec_store(row + v * RG_VEC, rg_vec_load(from + v * RG_VEC));
		}
	}
	to += whole > panel ? (whole - panel) * step : 0;
	for (int64_t p = rg_max(panel, whole); p < end; p++, to += step) {
		const float *from = b->data + p * RG_TILE_COLS * b->col + i0 * b->row;
		int64_t cols = n - p * RG_TILE_COLS;

		if (cols >= RG_TILE_COLS)
			pack_rows(from, b->col, b->row, RG_TILE_COLS, RG_TILE_COLS, i1 - i0, to);
		else
			pack_rows(from, b->col, b->row, cols, RG_TILE_COLS, i1 - i0, to);
	}
}

void rg_multiply_pack_b(const struct rg_matrix *b, int64_t n, int64_t k, int64_t panel, int64_t end, float *to)
{
	/* One panel after the other where rows are short, so that what is written is whole. */
	if (b->col == 1 && n <= 8 * RG_TILE_COLS)
		for (; panel < end; panel++, to += RG_TILE_COLS * k)
			pack_part(b, n, 0, k, panel, panel + 1, to, RG_TILE_COLS * k);
	else
		for (; panel < end; panel += 8, to += 8 * RG_TILE_COLS * k)
			pack_part(b, n, 0, k, panel, rg_min(panel + 8, end), to, RG_TILE_COLS * k);
}

/* ---- the plan ---- */

/* Up to so many rows are one block: B is packed for them once, where it is used. */
enum { MOST_ROWS_OF_A_BLOCK = 256 };

/* Cuts C into blocks: of even size, small enough for the caches, and enough of them for the lanes. */
static void cut_lanes(struct rg_multiply_plan *p)
{
	const struct rg_kernel_caches *cache = rg_kernel_caches();
	int64_t fit = cache->l2_bytes / 4 / (p->kc * (int64_t)sizeof(float)); /* floats a step of k, of B */
	int64_t row_panels = rg_max(1, rg_ceil_div(p->m, p->mr));
	bool by_blocks = p->pack_b && p->pack_b_how == RG_PACK_BLOCKS;
	int64_t together = by_blocks || p->as_it_lies ? row_panels : 1; /* panels of rows that stay together */
	/* In times of a row of a tile. A float from L3 takes half of it; a panel of B has
	 * RG_TILE_COLS, and where a block packs them for itself each is stored and read again. */
	struct rg_cut cut = {
		.all_rows = row_panels / together,
		.all_cols = rg_max(1, rg_ceil_div(p->n, RG_TILE_COLS)),
		.most_rows = rg_max(1, rg_min(2 * fit, 256) / (p->mr * together)),
		.most_cols = rg_max(1, rg_min(fit, 512) / RG_TILE_COLS),
		.tile = (double)(p->mr * together),
		.row = (double)(p->mr * together) / 2,
		.col = by_blocks ? RG_TILE_COLS : RG_TILE_COLS / 2,
	};

	if (p->as_it_lies) /* rows of B as long as their sums fit, and one piece a lane: memory sets the pace */
		cut.most_cols = rg_max(1, rg_min(cache->l1_bytes / (rg_max(1, p->m) * RG_TILE_COLS * (int64_t)sizeof(float)),
						 rg_ceil_div(cut.all_cols, p->lanes)));
	/* what one lane does in some 30 us is not worth the search */
	rg_cut_blocks(&cut, p->batch == 1 && !p->as_it_lies && 2.0 * (double)(p->m * p->n) * (double)p->k > 1e6 ? p->lanes : 1);
	cut.rows *= together;
	p->mc = cut.rows * p->mr;
	p->nc = cut.cols * RG_TILE_COLS;
	p->row_blocks = rg_ceil_div(p->m, p->mc);
	p->col_blocks = rg_ceil_div(p->n, p->nc);
}

/* Room of one panel of a packed block: a line more, so that panels do not fall on the same
 * sets of a cache. */
static int64_t block_panel_floats(const struct rg_multiply_plan *p)
{
	return (p->kc + 1) * RG_TILE_COLS;
}

/* Floats from one row of sums to the next, where B is read as it lies: no power of two. */
static int64_t sums_pitch(const struct rg_multiply_plan *p)
{
	return p->nc + RG_TILE_COLS;
}

static bool small_enough(int64_t bytes)
{
	return bytes <= rg_kernel_caches()->l1_bytes / 2;
}

bool rg_multiply_plan_make(struct rg_multiply_plan *p, int64_t m, int64_t n, int64_t k, int64_t batch,
			   const struct rg_matrix *a, bool a_packed, const struct rg_matrix *b, bool b_packed,
			   int lanes)
{
	int64_t panel = rg_kernel_caches()->l1_bytes * 3 / 4, kc_most, all, each;

	memset(p, 0, sizeof(*p));
	p->m = m, p->n = n, p->k = k, p->batch = batch, p->lanes = lanes;
	if (m >= INT32_MAX || n >= INT32_MAX || k >= INT32_MAX || m < 0 || n < 0 || k < 0 || batch < 0)
		return false;
	p->mr = rg_multiply_mr(m);
	p->pack_a = !a_packed && ((a->row != 1 && a->col != 1) || (m > 2 * p->mr && n >= 512));
	p->as_it_lies = !b_packed && b->col == 1 && m <= MOST_ROWS_AS_THEY_LIE && batch == 1 &&
			!small_enough(k * b->row * (int64_t)sizeof(float));
	p->pack_b = !b_packed && !p->as_it_lies &&
		    (b->col != 1 || !small_enough(k * b->row * (int64_t)sizeof(float)));
	p->pack_b_how = batch != 1 ? RG_PACK_PRODUCT : m <= MOST_ROWS_OF_A_BLOCK ? RG_PACK_BLOCKS : RG_PACK_SHARED;
	/* A large L2 delivers panels of B as fast as they are used, and a longer k loads and stores
	 * fewer sums. Not where B is packed from rows that may be a multiple of 4 KiB apart: L2 keeps
	 * few of those. */
	if (!p->pack_b || p->pack_b_how != RG_PACK_BLOCKS)
		panel = rg_max(panel, rg_kernel_caches()->l2_bytes / 16);
	kc_most = panel / (RG_TILE_COLS * (int64_t)sizeof(float));
	/* Rows of A that pass once: no block of k is read again. */
	p->kc = m <= p->mr && !p->pack_b ? k : rg_ceil_div(k, rg_ceil_div(rg_max(k, 1), kc_most));
	p->kc = rg_max(1, p->kc);
	if (p->pack_b && p->pack_b_how == RG_PACK_BLOCKS && m <= 4 * p->mr) /* long rows of B at a time */
		p->kc = rg_min(p->kc, 96);
	cut_lanes(p);
	all = rg_multiply_packed_b_floats(n, k);
	p->pack_a = p->pack_a && !p->as_it_lies;
	if (k == 0) /* see run_empty */
		p->pack_a = p->pack_b = p->as_it_lies = false;
	each = p->pack_a ? p->mc * k : 0;
	if (p->pack_b && p->pack_b_how == RG_PACK_PRODUCT)
		each += all;
	else if (p->pack_b && p->pack_b_how == RG_PACK_BLOCKS)
		each += p->nc / RG_TILE_COLS * block_panel_floats(p);
	else if (p->as_it_lies)
		each += m * sums_pitch(p);
	else if (k && !b_packed && !p->pack_b && n % RG_TILE_COLS)
		each += RG_TILE_COLS * k;
	p->shared_floats = p->pack_b && p->pack_b_how == RG_PACK_SHARED ? all : 0;
	p->lane_floats = rg_ceil_div(each, 16) * 16;
	return !__builtin_mul_overflow(p->lane_floats, (int64_t)lanes * (int64_t)sizeof(float), &all) &&
	       !__builtin_add_overflow(all, p->shared_floats * (int64_t)sizeof(float), &all);
}

/* ---- running ---- */

/* What one lane works with: one product of the batch. */
struct lane {
	const struct rg_multiply *mul;
	struct rg_matrix a, b;
	float *c;
	const float *packed_b; /* all of it; NULL: as it lies */
	float *room_b;         /* what this lane packs of B; or the last panel, when B is read as it
	                          lies and that is not whole; or the sums of few rows */
	float *room_a;         /* for mc rows of A */
	int64_t row_block;     /* that room_a holds; -1 none */
};

static void start_lane(struct lane *l, const struct rg_multiply *mul, int lane)
{
	const struct rg_multiply_plan *p = &mul->plan;

	l->mul = mul;
	l->room_a = l->room_b = NULL;
	if (p->lane_floats) {
		l->room_a = mul->scratch + p->shared_floats + lane * p->lane_floats;
		l->room_b = l->room_a + (p->pack_a ? p->mc * p->k : 0);
	}
	l->row_block = -1;
}

/* Where the loop of a tile does not (RG_TILE_FETCHES): the part of the next panel that is fetched
 * before one tile is computed. Packed weights often come from memory, and a panel is read once by
 * the tiles of a column. */
RG_INLINE void fetch(const float *next, int64_t floats)
{
	for (int64_t i = 0; i < floats; i += 16)
		__builtin_prefetch(next + i, 0, 2);
}

/* Where the packed panels of a block of k lie: the first of them, and how far apart. */
struct packed {
	const float *panels; /* NULL: B is read as it lies */
	int64_t step;
};

/* What of B as it lies is packed next: it is fetched while the tiles before it are computed. */
struct ahead {
	const float *from;
	int64_t step, rows, floats; /* from row to row; rows left; of a row */
};

/* After columns [j0, j1) of B down to row i: the block below, or the top of the next columns. */
static struct ahead after_block(const struct lane *l, int64_t j0, int64_t j1, int64_t i)
{
	const struct rg_multiply_plan *p = &l->mul->plan;
	bool down = i < p->k;
	int64_t col = (down ? j0 : j1) * RG_TILE_COLS, row = down ? i : 0;

	if (col >= p->n || l->b.col != 1)
		return (struct ahead){ 0 };
	return (struct ahead){ .from = l->b.data + row * l->b.row + col, .step = l->b.row,
			       .rows = rg_min(p->kc, p->k - row), .floats = rg_min(p->nc, p->n - col) };
}

RG_INLINE void fetch_rows(struct ahead *a, int64_t rows)
{
	for (; rows > 0 && a->rows > 0; rows--, a->rows--, a->from += a->step)
		fetch(a->from, a->floats);
}

/* Panels [j0, j1) of one block of k, for rows [row, end). */
static void block(const struct lane *l, int64_t row, int64_t end, int64_t j0, int64_t j1, int64_t i0, int64_t kc,
		  struct packed from, struct ahead *ahead)
{
	const struct rg_multiply *mul = l->mul;
	const struct rg_multiply_plan *p = &mul->plan;
	const float *packed_a = p->pack_a ? l->room_a : l->a.packed ? l->a.packed + row * p->k : NULL;
	bool by_row = !packed_a && l->a.col == 1;
	int64_t a_stride = packed_a ? p->mr : by_row ? l->a.row : l->a.col;
	int64_t tiles_here = rg_ceil_div(end - row, p->mr), share = rg_ceil_div(kc * RG_TILE_COLS, tiles_here);
	/* the next that will be read of what came packed: the next panel, or the next block of this one */
	int64_t next = j1 - j0 > 1 ? from.step : kc * RG_TILE_COLS;
	int64_t rows_ahead = rg_ceil_div(ahead->rows, tiles_here * (j1 - j0));
	struct rg_tile t = { .c_row = mul->c_row, .add = i0 > 0, .last = i0 + kc == p->k, .e = mul->e,
			     .next_step = l->packed_b ? RG_TILE_COLS : ahead->step };

	for (int64_t j = j0; j < j1; j++) {
		int64_t col = j * RG_TILE_COLS, b_step = RG_TILE_COLS;
		const float *b;

		t.cols = rg_min(p->n - col, RG_TILE_COLS);
		if (from.panels) {
			b = from.panels + (j - j0) * from.step;
		} else if (t.cols < RG_TILE_COLS) {
			b = l->room_b + i0 * RG_TILE_COLS;
		} else {
			b = l->b.data + i0 * l->b.row + col;
			b_step = l->b.row;
		}
		for (int64_t r = row; r < end; r += p->mr) {
			int64_t rows = rg_min(end - r, p->mr);
			const float *a = packed_a ? packed_a + (r - row) * p->k + i0 * p->mr :
					 by_row ? l->a.data + r * l->a.row + i0 : l->a.data + r + i0 * l->a.col;

			t.c = l->c + r * mul->c_row + col;
			t.row = r;
			t.col = col;
			if (l->packed_b && r == row && tiles_here <= 3 && rows <= MOST_STREAMED) {
				streams[by_row][rows - 1](kc, a, a_stride, b, b_step, &t);
				continue;
			}
			if (l->packed_b && tiles_here > 3 && !RG_TILE_FETCHES)
				fetch(b + next + (r - row) / p->mr * share, share);
			t.next = NULL;
			if (RG_TILE_FETCHES && tiles_here > 3) {
				int64_t done = (r - row) / p->mr * (kc / RG_TILE_STEPS);

				if (l->packed_b && done < kc)
					t.next = b + next + done * RG_TILE_COLS;
				else if (done < ahead->rows && (j - j0) * RG_TILE_COLS < ahead->floats)
					t.next = ahead->from + (j - j0) * RG_TILE_COLS + done * ahead->step;
			} else {
				fetch_rows(ahead, rows_ahead);
			}
			tiles[by_row][rows - 1][t.cols > RG_VEC](kc, a, a_stride, b, b_step, &t);
		}
	}
}

/* A row of a tile, from memory. */
static void store_sums(const struct rg_tile *t, const float *sums)
{
	rg_vec sum[1][RG_TILE_VECS];

	if (t->cols < RG_TILE_COLS) {
		rg_tile_store_part(t, sums, 1);
		return;
	}
	for (int v = 0; v < RG_TILE_VECS; v++)
		sum[0][v] = rg_vec_load(sums + v * RG_VEC);
	rg_tile_store(t, sum, 1, RG_TILE_VECS);
}

/* Columns [j0, j1) of B as it lies. */
static void do_rows(const struct lane *l, int64_t j0, int64_t j1)
{
	const struct rg_multiply *mul = l->mul;
	const struct rg_multiply_plan *p = &mul->plan;
	struct rg_tile t = { .c_row = mul->c_row, .last = true, .e = mul->e };
	float *sums = l->room_b, a[DEPTH_AS_THEY_LIE * MOST_ROWS_AS_THEY_LIE];
	int64_t pitch = sums_pitch(p), depth = depth_as_they_lie(p->m);

	memset(sums, 0, (size_t)(p->m * pitch) * sizeof(*sums));
	for (int64_t i = 0; i < p->k; i += depth) {
		int64_t left = p->k - i, deep = rg_min(depth, left), next = rg_min(left - deep, deep);
		const float *b = l->b.data + i * l->b.row + j0;

		for (int64_t d = 0; d < deep; d++)
			for (int64_t r = 0; r < p->m; r++)
				a[d * MOST_ROWS_AS_THEY_LIE + r] = l->a.data[r * l->a.row + (i + d) * l->a.col];
		if (deep == 16)
			add_rows(a, p->m, b, l->b.row, j1 - j0, sums, pitch, next, 16);
		else if (deep == 8)
			add_rows(a, p->m, b, l->b.row, j1 - j0, sums, pitch, next, 8);
		else if (deep == 4)
			add_rows(a, p->m, b, l->b.row, j1 - j0, sums, pitch, 0, 4);
		else
			for (int64_t d = 0; d < deep; d++)
				add_rows(a + d * MOST_ROWS_AS_THEY_LIE, p->m, b + d * l->b.row, l->b.row, j1 - j0, sums, pitch, 0, 1);
	}
	/* The epilogue, tile by tile. */
	for (int64_t r = 0; r < p->m; r++) {
		for (int64_t j = j0; j < j1; j += RG_TILE_COLS) {
			t.cols = rg_min(j1 - j, RG_TILE_COLS);
			t.c = l->c + r * mul->c_row + j;
			t.row = r;
			t.col = j;
			store_sums(&t, sums + r * pitch + j - j0);
		}
	}
}

static void do_block(struct lane *l, int64_t row_block, int64_t col_block)
{
	const struct rg_multiply_plan *p = &l->mul->plan;
	int64_t row = row_block * p->mc, end = rg_min(row + p->mc, p->m);
	int64_t j0 = col_block * (p->nc / RG_TILE_COLS);
	int64_t j1 = rg_min(j0 + p->nc / RG_TILE_COLS, rg_ceil_div(p->n, RG_TILE_COLS));
	bool by_blocks = p->pack_b && p->pack_b_how == RG_PACK_BLOCKS;
	/* Packed B in its own order, as long as all of A's block stays near; else k outside. */
	bool stream = l->packed_b && (end - row) * p->k * (int64_t)sizeof(float) <= rg_kernel_caches()->l2_bytes / 2;
	int64_t step = stream ? 1 : j1 - j0;

	if (p->as_it_lies) {
		do_rows(l, j0 * RG_TILE_COLS, rg_min(j1 * RG_TILE_COLS, p->n));
		return;
	}
	if (p->pack_a && l->row_block != row_block)
		rg_multiply_pack_a(&l->a, p->mr, p->k, row, end, l->room_a);
	l->row_block = row_block;
	if (!p->pack_b && !l->packed_b && p->n % RG_TILE_COLS && j1 * RG_TILE_COLS > p->n)
		rg_multiply_pack_b(&l->b, p->n, p->k, j1 - 1, j1, l->room_b);
	for (int64_t j = j0; j < j1; j += step) {
		for (int64_t i = 0; i < p->k; i += p->kc) {
			int64_t kc = rg_min(p->kc, p->k - i);
			struct packed from = { NULL, RG_TILE_COLS * p->k };
			struct ahead ahead = { 0 };

			if (by_blocks) {
				ahead = after_block(l, j0, j1, i + kc);
				from = (struct packed){ l->room_b, block_panel_floats(p) };
				pack_part(&l->b, p->n, i, i + kc, j0, j1, l->room_b, from.step);
			} else if (l->packed_b) {
				from.panels = l->packed_b + j * from.step + i * RG_TILE_COLS;
			}
			block(l, row, end, j, rg_min(j + step, j1), i, kc, from, &ahead);
		}
	}
}

/* Items are blocks of the one product. Rows outside where A is packed: what is packed serves a
 * row of blocks. Else columns outside: a lane has columns of its own, and so a part of the
 * weights, which stays in its caches from call to call where there is room. */
static void work_blocks(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_multiply *mul = arg;
	const struct rg_multiply_plan *p = &mul->plan;
	struct lane l = { .a = mul->a, .b = mul->b, .c = mul->c };

	start_lane(&l, mul, lane);
	l.packed_b = p->pack_b ? (p->pack_b_how == RG_PACK_SHARED ? mul->scratch : NULL) : mul->b.packed;
	for (int64_t i = begin; i < end; i++) {
		if (p->pack_a)
			do_block(&l, i / p->col_blocks, i % p->col_blocks);
		else
			do_block(&l, i % p->row_blocks, i / p->row_blocks);
	}
}

/* Items are whole products. */
static void work_products(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_multiply *mul = arg;
	const struct rg_multiply_plan *p = &mul->plan;
	struct lane l = { .a = mul->a, .b = mul->b };
	int64_t packed = -1;

	start_lane(&l, mul, lane);
	for (int64_t i = begin; i < end; i++) {
		int64_t a, b, c;

		mul->at(mul, i, &a, &b, &c);
		l.a.data = mul->a.data + a;
		l.b.data = mul->b.data + b;
		l.c = mul->c + c;
		l.row_block = -1;
		if (p->pack_b) {
			if (packed != b) /* broadcast: the same again */
				rg_multiply_pack_b(&l.b, p->n, p->k, 0, rg_ceil_div(p->n, RG_TILE_COLS), l.room_b);
			packed = b;
			l.packed_b = l.room_b;
		}
		for (int64_t r = 0; r < p->row_blocks; r++)
			for (int64_t j = 0; j < p->col_blocks; j++)
				do_block(&l, r, j);
	}
}

static void work_pack(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_multiply *mul = arg;
	const struct rg_multiply_plan *p = &mul->plan;

	rg_multiply_pack_b(&mul->b, p->n, p->k, begin, end, mul->scratch + begin * RG_TILE_COLS * p->k);
}

/* Items of work that are worth a lane: 20 us at some 16 operations a nanosecond. */
static int64_t grain(double flops)
{
	return 1 + (int64_t)(320e3 / (flops + 1));
}

/* k = 0: no product at all, and operands without bytes. */
static void run_empty(const struct rg_multiply *mul)
{
	static const float zeros[RG_TILE_COLS];
	const struct rg_multiply_plan *p = &mul->plan;
	struct rg_tile t = { .last = true, .e = mul->e };

	for (int64_t i = 0; i < p->batch; i++) {
		int64_t a, b, c = 0;

		if (p->batch > 1)
			mul->at(mul, i, &a, &b, &c);
		for (t.row = 0; t.row < p->m; t.row++) {
			for (t.col = 0; t.col < p->n; t.col += RG_TILE_COLS) {
				t.c = mul->c + c + t.row * mul->c_row + t.col;
				t.cols = rg_min(p->n - t.col, RG_TILE_COLS);
				rg_tile_store_part(&t, zeros, 1);
			}
		}
	}
}

void rg_multiply_run(const struct rg_multiply *mul, const struct rg_par *par)
{
	const struct rg_multiply_plan *p = &mul->plan;
	double flops = 2.0 * (double)p->m * (double)p->n * (double)(p->k + 4);
	int64_t panels = rg_ceil_div(p->n, RG_TILE_COLS), items = p->row_blocks * p->col_blocks;

	if (p->m == 0 || p->n == 0 || p->batch == 0)
		return;
	if (p->k == 0) {
		run_empty(mul);
		return;
	}
	if (p->batch > 1) {
		par->run(par, p->batch, grain(flops), work_products, (void *)mul);
		return;
	}
	if (p->pack_b && p->pack_b_how == RG_PACK_SHARED)
		par->run(par, panels, grain(16.0 * (double)p->k * RG_TILE_COLS), work_pack, (void *)mul);
	par->run(par, items, grain(flops / (double)items), work_blocks, (void *)mul);
}
