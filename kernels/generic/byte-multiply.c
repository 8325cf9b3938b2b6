/* The loops around the tiles of bytes. See byte-multiply.h. */
#include "kernels/generic/byte-multiply.h"

#include "kernels/cache.h"
#include "kernels/generic/cut.h"

/* ---- tiles by size ---- */

typedef void tile_fn(const struct rg_byte_tile *t);

#define TILE(R) \
	static void tile_##R##_1(const struct rg_byte_tile *t) \
	{ \
		rg_byte_tile_run(t, R, 1); \
	} \
	static void tile_##R##_2(const struct rg_byte_tile *t) \
	{ \
		rg_byte_tile_run(t, R, 2); \
	}
#define ROW(R) { tile_##R##_1, tile_##R##_2 }

TILE(1) TILE(2) TILE(3)
#if RG_BYTE_ROWS >= 4
TILE(4)
#endif
#if RG_BYTE_ROWS >= 6
TILE(5) TILE(6)
#endif
#if RG_BYTE_ROWS >= 8
TILE(7) TILE(8)
#endif
#if RG_BYTE_ROWS >= 12
TILE(9) TILE(10) TILE(11) TILE(12)
#endif

static tile_fn *const tiles[RG_BYTE_ROWS][RG_BYTE_VECS] = {
	ROW(1), ROW(2), ROW(3),
#if RG_BYTE_ROWS >= 4
	ROW(4),
#endif
#if RG_BYTE_ROWS >= 6
	ROW(5), ROW(6),
#endif
#if RG_BYTE_ROWS >= 8
	ROW(7), ROW(8),
#endif
#if RG_BYTE_ROWS >= 12
	ROW(9), ROW(10), ROW(11), ROW(12),
#endif
};

void rg_byte_tile_do(const struct rg_byte_tile *t, int64_t rows, int64_t cols)
{
	tiles[rows - 1][cols > RG_VEC](t);
}

int64_t rg_byte_rows_of(int64_t m)
{
	int64_t best = RG_BYTE_ROWS, best_cost = INT64_MAX;

	if (m <= RG_BYTE_ROWS)
		return m > 0 ? m : RG_BYTE_ROWS;
	for (int64_t mr = RG_BYTE_ROWS; mr > RG_BYTE_ROWS / 2; mr--) {
		int64_t rest = m % mr, cost = m / mr * (3 * mr + 1) + (rest ? 3 * rg_max(rest, 4) + 1 : 0);

		if (cost < best_cost) {
			best = mr;
			best_cost = cost;
		}
	}
	return best;
}

/* ---- the plan ---- */

/* Where things lie in the shared scratch and in that of a lane. */
static int64_t at_bytes(const struct rg_byte_plan *p)
{
	return rg_scratch_bytes(p->groups * (int64_t)sizeof(int32_t));
}

static int64_t start_bytes(const struct rg_byte_plan *p)
{
	return rg_scratch_bytes(rg_ceil_div(p->n, RG_BYTE_COLS) * RG_BYTE_COLS * (int64_t)sizeof(int32_t));
}

static int64_t a_bytes(const struct rg_byte_plan *p)
{
	return rg_scratch_bytes(p->mc * p->groups * (RG_BYTE_SIGNS ? 2 : 1) * (int64_t)sizeof(uint32_t));
}

/* The sums of the rows, and of |A| where A is negative. */
static int64_t row_sum_bytes(const struct rg_byte_plan *p)
{
	return rg_scratch_bytes(2 * p->mc * (int64_t)sizeof(int32_t));
}

static int64_t tile_bytes(void)
{
	return RG_BYTE_ROWS * RG_BYTE_COLS * (int64_t)sizeof(int32_t);
}

static void cut_lanes(struct rg_byte_plan *p)
{
	int64_t half = rg_kernel_caches()->l2_bytes / 2, row_bytes = rg_max(1, 4 * p->groups * (RG_BYTE_SIGNS ? 2 : 1));
	struct rg_cut cut = {
		.all_rows = rg_max(1, rg_ceil_div(p->m, p->mr)),
		.all_cols = rg_max(1, rg_ceil_div(p->n, RG_BYTE_COLS)),
		.most_rows = rg_max(1, rg_min(half / row_bytes, 512) / p->mr),
		.most_cols = rg_max(1, 2048 / RG_BYTE_COLS),
		/* In times of a row of a tile; 4 bytes of A are packed, 4 of each column of B come from L3. */
		.tile = (double)p->mr,
		.row = (double)p->mr / 2,
		.col = (double)RG_BYTE_COLS / 8,
	};

	rg_cut_blocks(&cut, p->batch == 1 && (double)(p->m * p->n) * (double)p->k > 1e6 ? p->lanes : 1);
	p->mc = cut.rows * p->mr;
	p->nc = cut.cols * RG_BYTE_COLS;
	p->row_blocks = rg_ceil_div(p->m, p->mc);
	p->col_blocks = rg_ceil_div(p->n, p->nc);
}

bool rg_byte_plan_make(struct rg_byte_plan *p, int64_t m, int64_t n, int64_t k, int64_t batch, bool b_packed, int lanes)
{
	int64_t all;

	memset(p, 0, sizeof(*p));
	p->m = m, p->n = n, p->k = k, p->batch = batch, p->lanes = lanes, p->pack_b = !b_packed;
	if (m >= INT32_MAX || n >= INT32_MAX || k >= INT32_MAX - 4 || m < 0 || n < 0 || k < 0 || batch < 0 ||
	    k >= INT32_MAX / 2 / RG_BYTE_ROWS)
		return false;
	p->groups = rg_byte_groups(k);
	p->mr = rg_byte_rows_of(m);
	cut_lanes(p);
	if (p->pack_b) {
		p->packed_bytes = (int64_t)rg_byte_pack_bytes(n, k);
		if (!p->packed_bytes)
			return false;
		p->packed_bytes = rg_scratch_bytes(p->packed_bytes);
	}
	p->shared_bytes = at_bytes(p);
	p->lane_bytes = a_bytes(p) + row_sum_bytes(p) + tile_bytes();
	*(batch == 1 ? &p->shared_bytes : &p->lane_bytes) += start_bytes(p) + p->packed_bytes;
	return !__builtin_mul_overflow(p->lane_bytes, lanes, &all) && !__builtin_add_overflow(all, p->shared_bytes, &all);
}

/* ---- packing A ---- */

/* A as u8; where it comes with signs, as s8. */
static uint32_t flip_of(const struct rg_byte_matrix *a)
{
	return a->is_signed == RG_BYTE_SIGNS ? 0 : 0x80808080u;
}

/* The last bytes of a row, and nothing behind them. */
static uint32_t load_part(const uint8_t *from, int64_t col, int64_t n, uint32_t flip)
{
	uint32_t x = flip; /* so that what is not there becomes 0 */

	for (int64_t i = 0; i < n; i++)
		((uint8_t *)&x)[i] = from[i * col];
	return x ^ flip;
}

/* One panel of `rows` rows. A group is mr dwords, and mr of signs where they are needed, which come later. */
RG_INLINE void pack_rows(const struct rg_byte_matrix *a, const uint8_t *from, int64_t rows, int64_t k, int64_t mr,
			 uint32_t *restrict to)
{
	const int64_t pitch = RG_BYTE_SIGNS ? 2 * mr : mr;
	uint32_t flip = flip_of(a);
	int64_t whole = k / 4, g = 0;

	if (a->col == 1 && rows == mr)
		for (; g + 16 <= whole; g += 16) /* by blocks that stay in L1 while they are turned */
			for (int64_t r = 0; r < mr; r++)
				for (int64_t j = 0; j < 16; j++)
					to[(g + j) * pitch + r] = *(const rg_dword *)(from + r * a->row + 4 * (g + j)) ^ flip;
	for (; g < rg_byte_groups(k); g++)
		for (int64_t r = 0; r < mr; r++)
			to[g * pitch + r] = r < rows ? load_part(from + r * a->row + 4 * g * a->col, a->col,
								 rg_min(4, k - 4 * g), flip) : 0;
}

#if RG_BYTE_SIGNS
/* Makes |A| and the masks of its signs of a packed panel, and adds what is negative to that of its row. */
RG_INLINE void split_signs(int64_t groups, int64_t mr, uint32_t *restrict to, int32_t *restrict negative)
{
	for (int64_t r = 0; r < mr; r++)
		negative[r] = 0;
	for (int64_t g = 0; g < groups; g++, to += 2 * mr)
		for (int64_t r = 0; r < mr; r++) {
			uint32_t x = to[r], sign = (x >> 7 & 0x01010101u) * 255, less = x & sign, sum;

			/* |x| = (x ^ sign) + (sign & 1), byte by byte: at most 127 + 1, no carry */
			x = (x ^ sign) + (sign & 0x01010101u);
			less = x & sign;
			sum = (less & 0x00ff00ffu) + (less >> 8 & 0x00ff00ffu);
			negative[r] += (int32_t)((sum & 0xffffu) + (sum >> 16));
			to[r] = x;
			to[mr + r] = sign;
		}
}
#endif

static void pack_a(const struct rg_byte_matrix *a, int64_t mr, int64_t k, int64_t row, int64_t end, uint32_t *to,
		   int32_t *negative)
{
	int64_t groups = rg_byte_groups(k), pitch = RG_BYTE_SIGNS ? 2 * mr : mr;

	for (; row < end; row += mr, to += pitch * groups, negative += mr) {
		const uint8_t *from = (const uint8_t *)a->data + row * a->row;
		int64_t rows = rg_min(end - row, mr);

		if (mr == RG_BYTE_ROWS)
			pack_rows(a, from, rows, k, RG_BYTE_ROWS, to);
		else
			pack_rows(a, from, rows, k, mr, to);
#if RG_BYTE_SIGNS
		if (mr == RG_BYTE_ROWS)
			split_signs(groups, RG_BYTE_ROWS, to, negative);
		else
			split_signs(groups, mr, to, negative);
#endif
	}
}

/* Sums of rows as they are packed. */
static void sum_rows(const struct rg_byte_matrix *a, int64_t k, int64_t row, int64_t end, int32_t *to)
{
	uint8_t flip = (uint8_t)flip_of(a);

	for (; row < end; row++, to++) {
		const uint8_t *from = (const uint8_t *)a->data + row * a->row;
		uint32_t sum = 0;

		if (RG_BYTE_SIGNS)
			for (int64_t i = 0; i < k; i++)
				sum += (uint32_t)(int8_t)(from[i * a->col] ^ flip);
		else
			for (int64_t i = 0; i < k; i++)
				sum += (uint8_t)(from[i * a->col] ^ flip);
		*to = (int32_t)sum;
	}
}

/* ---- zero points ---- */

/* Moved as A is. */
static int32_t a_zero_at(const struct rg_byte_multiply *mul, int64_t row)
{
	int32_t moved = mul->a.is_signed == RG_BYTE_SIGNS ? 0 : RG_BYTE_SIGNS ? -128 : 128;

	if (!mul->a_zeros)
		return mul->a_zero + moved;
	return moved + (mul->a.is_signed ? ((const int8_t *)mul->a_zeros)[row] : ((const uint8_t *)mul->a_zeros)[row]);
}

static int32_t b_zero_at(const struct rg_byte_multiply *mul, int64_t col)
{
	if (!mul->b_zeros)
		return mul->b_zero - (mul->b.is_signed ? 0 : 128);
	return mul->b.is_signed ? ((const int8_t *)mul->b_zeros)[col] : ((const uint8_t *)mul->b_zeros)[col] - 128;
}

static bool needs_row_sums(const struct rg_byte_multiply *mul)
{
	if (!mul->b_zeros)
		return b_zero_at(mul, 0) != 0;
	for (int64_t j = 0; j < mul->plan.n; j++)
		if (b_zero_at(mul, j))
			return true;
	return false;
}

/* What the sums of each column begin with: all that does not depend on the row. */
static void make_start(const struct rg_byte_multiply *mul, const struct rg_bytes_packed *b, int32_t *start)
{
	const int32_t *sums = (const int32_t *)((const char *)b + b->sums);
	uint32_t za = mul->a_zeros ? 0 : (uint32_t)a_zero_at(mul, 0), kza = (uint32_t)mul->plan.k * za;

	for (int64_t j = 0; j < b->n; j++)
		start[j] = (int32_t)((mul->bias ? (uint32_t)mul->bias[j] : 0) - za * (uint32_t)sums[j] +
				     kza * (uint32_t)b_zero_at(mul, j));
	for (int64_t j = b->n; j < b->panels * RG_BYTE_COLS; j++)
		start[j] = 0;
}

/* ---- running ---- */

struct lane {
	const struct rg_byte_multiply *mul;
	struct rg_byte_matrix a;
	const int32_t *at, *start;
	const struct rg_bytes_packed *b;
	int64_t product;
	bool row_sums_needed;
	int64_t row_block;       /* what is packed; -1: nothing */
	uint32_t *room_a;
	int32_t *row_sums, *negative, *room_c;
	char *rest;              /* start and B of one product of a batch */
};

/* What depends on the row of A, where it was not in the start. */
static void add_row_terms(const struct lane *l, int64_t row, int64_t col, int64_t rows, int64_t cols, const int32_t *row_sums,
			  int32_t *c)
{
	const struct rg_byte_multiply *mul = l->mul;
	const int32_t *sums = (const int32_t *)((const char *)l->b + l->b->sums) + col;
	uint32_t zb[RG_BYTE_COLS];

	for (int64_t j = 0; j < cols; j++)
		zb[j] = (uint32_t)b_zero_at(mul, col + j);
	for (int64_t r = 0; r < rows; r++) {
		uint32_t za = mul->a_zeros ? (uint32_t)a_zero_at(mul, row + r) : 0;
		uint32_t of_row = (l->row_sums_needed ? (uint32_t)row_sums[r] : 0) - (uint32_t)mul->plan.k * za;

		for (int64_t j = 0; j < cols; j++)
			c[r * RG_BYTE_COLS + j] = (int32_t)((uint32_t)c[r * RG_BYTE_COLS + j] - za * (uint32_t)sums[j] -
							    zb[j] * of_row);
	}
}

/* Where the sums of a tile go is needed only at the end, and is far apart. */
static void fetch_out(const struct rg_byte_multiply *mul, int64_t product, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	const char *to = mul->out + ((product * mul->plan.m + row) * mul->plan.n + col) * mul->out_size;

	for (int64_t r = 0; r < rows; r++, to += mul->plan.n * mul->out_size)
		for (int64_t b = 0; b < cols * mul->out_size; b += 64)
			__builtin_prefetch(to + b, 1, RG_VEC == 16 ? 2 : 3);
}

static void do_block(struct lane *l, int64_t row_block, int64_t col_block)
{
	const struct rg_byte_multiply *mul = l->mul;
	const struct rg_byte_plan *p = &mul->plan;
	int64_t row = row_block * p->mc, end = rg_min(row + p->mc, p->m);
	int64_t first = col_block * (p->nc / RG_BYTE_COLS), last = rg_min(first + p->nc / RG_BYTE_COLS, l->b->panels);
	struct rg_byte_tile t = { .at = l->at, .packed = (const char *)l->b, .signs = p->mr, .c = l->room_c, .c_row = RG_BYTE_COLS };

	if (l->row_block != row_block) {
		pack_a(&l->a, p->mr, p->k, row, end, l->room_a, l->negative);
		if (l->row_sums_needed)
			sum_rows(&l->a, p->k, row, end, l->row_sums);
		l->row_block = row_block;
	}
	for (int64_t j = first; j < last; j++) {
		int64_t col = j * RG_BYTE_COLS, cols = rg_min(p->n - col, RG_BYTE_COLS);

		t.panel = &l->b->panel[j];
		t.start = l->start + col;
		for (int64_t i = row; i < end; i += p->mr) {
			int64_t rows = rg_min(end - i, p->mr);

			t.a = l->room_a + (i - row) * p->groups * (RG_BYTE_SIGNS ? 2 : 1);
			t.row_start = l->negative + (i - row);
			fetch_out(mul, l->product, i, col, rows, cols);
			rg_byte_tile_do(&t, rows, cols);
			if (l->row_sums_needed || mul->a_zeros)
				add_row_terms(l, i, col, rows, cols, l->row_sums + (i - row), l->room_c);
			mul->finish(mul, l->product, i, col, rows, cols, l->room_c, RG_BYTE_COLS);
		}
	}
}

static char *shared_rest(const struct rg_byte_multiply *mul)
{
	return (char *)mul->scratch + at_bytes(&mul->plan);
}

static void start_lane(struct lane *l, const struct rg_byte_multiply *mul, int lane)
{
	const struct rg_byte_plan *p = &mul->plan;
	char *room = (char *)mul->scratch + p->shared_bytes + lane * p->lane_bytes;

	*l = (struct lane){ .mul = mul, .a = mul->a, .at = mul->scratch, .row_block = -1 };
	l->row_sums_needed = needs_row_sums(mul);
	l->room_a = (uint32_t *)room;
	room += a_bytes(p);
	l->row_sums = (int32_t *)room;
	l->negative = l->row_sums + p->mc;
	room += row_sum_bytes(p);
	l->room_c = (int32_t *)room;
	l->rest = room + tile_bytes();
}

/* Rows outside: what is packed of A serves a row of blocks. */
static void work_blocks(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_byte_multiply *mul = arg;
	const struct rg_byte_plan *p = &mul->plan;
	struct lane l;

	start_lane(&l, mul, lane);
	l.start = (const int32_t *)shared_rest(mul);
	l.b = p->pack_b ? (const void *)(shared_rest(mul) + start_bytes(p)) : mul->packed;
	for (int64_t i = begin; i < end; i++)
		do_block(&l, i / p->col_blocks, i % p->col_blocks);
}

/* Items are whole products. */
static void work_products(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_byte_multiply *mul = arg;
	const struct rg_byte_plan *p = &mul->plan;
	struct rg_byte_matrix b = mul->b;
	int64_t packed = -1;
	struct lane l;

	start_lane(&l, mul, lane);
	for (int64_t i = begin; i < end; i++) {
		int32_t *start = (int32_t *)l.rest;
		int64_t a_at, b_at;

		mul->at(mul, i, &a_at, &b_at);
		l.a.data = (const char *)mul->a.data + a_at;
		l.product = i;
		l.row_block = -1;
		if (packed != b_at) { /* broadcast: the same again */
			void *to = l.rest + start_bytes(p);

			if (p->pack_b) {
				b.data = (const char *)mul->b.data + b_at;
				rg_byte_pack_start(p->n, p->k, to);
				rg_byte_pack_panels(&b, 0, rg_ceil_div(p->n, RG_BYTE_COLS), to);
			}
			l.b = p->pack_b ? to : mul->packed;
			make_start(mul, l.b, start);
			packed = b_at;
		}
		l.start = start;
		for (int64_t r = 0; r < p->row_blocks; r++)
			for (int64_t j = 0; j < p->col_blocks; j++)
				do_block(&l, r, j);
	}
}

static void work_pack(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_byte_multiply *mul = arg;

	(void)lane;
	rg_byte_pack_panels(&mul->b, begin, end, shared_rest(mul) + start_bytes(&mul->plan));
}

/* Items of work that are worth a lane: 20 us at some 64 operations a nanosecond. */
static int64_t grain(double ops)
{
	return 1 + (int64_t)(RG_VEC * 80e3 / (ops + 1));
}

void rg_byte_multiply_run(const struct rg_byte_multiply *mul, const struct rg_par *par)
{
	const struct rg_byte_plan *p = &mul->plan;
	double ops = 2.0 * (double)p->m * (double)p->n * (double)(p->k + 16);
	int64_t panels = rg_ceil_div(p->n, RG_BYTE_COLS);
	int32_t *at = mul->scratch;

	if (p->m == 0 || p->n == 0 || p->batch == 0)
		return;
	for (int64_t g = 0; g < p->groups; g++)
		at[g] = (int32_t)(g * p->mr * (RG_BYTE_SIGNS ? 2 : 1));
	if (p->batch > 1) {
		par->run(par, p->batch, grain(ops), work_products, (void *)mul);
		return;
	}
	if (p->pack_b) {
		rg_byte_pack_start(p->n, p->k, shared_rest(mul) + start_bytes(p));
		par->run(par, panels, grain(64.0 * (double)p->k * RG_BYTE_COLS), work_pack, (void *)mul);
	}
	make_start(mul, p->pack_b ? (const void *)(shared_rest(mul) + start_bytes(p)) : mul->packed,
		   (int32_t *)shared_rest(mul));
	par->run(par, p->row_blocks * p->col_blocks, grain(ops / (double)(p->row_blocks * p->col_blocks)), work_blocks, (void *)mul);
}
