/* Packing of byte matrices, and the proof that sums of four do not saturate. See byte-pack.h. */
#include "kernels/generic/byte-pack.h"

enum { COUPLE = 8 }; /* of k: two groups */

/* 8 of k of a panel; what is outside is 0. */
struct couple {
	int8_t w[COUPLE][RG_BYTE_COLS];
	int groups;              /* 1: the matrix ends after the first */
};

/* Row i of k; NULL: zeros. */
static const int8_t *row_at(const struct rg_byte_matrix *b, int64_t i)
{
	int64_t padded = 4 * rg_byte_groups(b->channels);

	if (!b->channels)
		return (const int8_t *)b->data + i * b->row;
	if (i % padded >= b->channels)
		return NULL;
	return (const int8_t *)b->data + i / padded * b->tap + i % padded * b->row;
}

static void gather(const struct rg_byte_matrix *b, int64_t n, int64_t k, int64_t panel, int64_t at, struct couple *x)
{
	int64_t rows = rg_min(k - at, COUPLE), cols = rg_min(n - panel * RG_BYTE_COLS, RG_BYTE_COLS);
	int8_t flip = b->is_signed ? 0 : -128;

	memset(x->w, 0, sizeof(x->w));
	x->groups = rows > 4 ? 2 : 1;
	for (int64_t i = 0; i < rows; i++) {
		const int8_t *from = row_at(b, at + i);

		if (!from)
			continue;
		from += panel * RG_BYTE_COLS * b->col;
		if (b->col == 1)
			for (int64_t j = 0; j < cols; j++)
				x->w[i][j] = (int8_t)(from[j] ^ flip);
		else
			for (int64_t j = 0; j < cols; j++)
				x->w[i][j] = (int8_t)(from[j * b->col] ^ flip);
	}
}

static int32_t up(int32_t b)
{
	int32_t most = b > 0 ? 127 * b : 0;

	return -b - 1 > 0 ? 128 * (-b - 1) : most;
}

static int32_t low(int32_t b)
{
	int32_t most = b < 0 ? -127 * b : 0;

	return b + 1 > 0 ? 128 * (b + 1) : most;
}

/* Whether no sum of four saturates, in any column: the weights k, k + 1, k + 4 and k + 5 end in one. */
static bool is_proven(const struct couple *x)
{
	int bad = x->groups != 2;

	for (int i = 0; i < 4; i += 2)
		for (int j = 0; j < RG_BYTE_COLS; j++) {
			int32_t most = up(x->w[i][j]) + up(x->w[i + 1][j]) + up(x->w[i + 4][j]) + up(x->w[i + 5][j]);
			int32_t least = low(x->w[i][j]) + low(x->w[i + 1][j]) + low(x->w[i + 4][j]) + low(x->w[i + 5][j]);

			bad |= (most > INT16_MAX) | (least > -INT16_MIN);
		}
	return !bad;
}

static bool takes_two(const struct couple *x)
{
	return RG_BYTE_SIGNS && is_proven(x);
}

static int64_t round_up(int64_t n)
{
	return rg_ceil_div(n, 64) * 64;
}

/* One group of a couple. */
static void put(const struct couple *x, int group, int8_t *to)
{
	const int8_t (*w)[RG_BYTE_COLS] = x->w + 4 * group;

	if (!RG_BYTE_WIDE) {
		for (int j = 0; j < RG_BYTE_COLS; j++)
			for (int i = 0; i < 4; i++)
				to[4 * j + i] = w[i][j];
		return;
	}
	for (int j = 0; j < RG_BYTE_COLS; j++) {
		int16_t even[2] = { w[0][j], w[2][j] }, odd[2] = { w[1][j], w[3][j] };

		memcpy(to + 4 * j, even, 4);
		memcpy(to + RG_BYTE_STEP + 4 * j, odd, 4);
	}
}

static void add_sums(const struct couple *x, int32_t *sums)
{
	for (int i = 0; i < COUPLE; i++)
		for (int j = 0; j < RG_BYTE_COLS; j++)
			sums[j] += x->w[i][j];
}

static int count_twos(const struct rg_byte_matrix *b, int64_t n, int64_t k, int64_t panel)
{
	int count = 0;

	for (int64_t at = 0; at < k && RG_BYTE_SIGNS; at += COUPLE) {
		struct couple x;

		gather(b, n, k, panel, at, &x);
		count += takes_two(&x);
	}
	return count;
}

static void pack_panel(const struct rg_byte_matrix *b, int64_t n, int64_t k, int64_t panel, char *to,
		       const struct rg_byte_panel *p, int32_t *sums)
{
	const int64_t step = RG_BYTE_WIDE ? 2 * RG_BYTE_STEP : RG_BYTE_STEP;
	int8_t *two = (int8_t *)to + p->data, *one = two + 2 * p->n_two * step;
	uint32_t *order_two = (uint32_t *)(to + p->order), *order_one = order_two + 2 * p->n_two;

	memset(sums, 0, RG_BYTE_COLS * sizeof(*sums));
	for (int64_t at = 0; at < k; at += COUPLE) {
		struct couple x;
		bool is_two;

		gather(b, n, k, panel, at, &x);
		add_sums(&x, sums);
		is_two = takes_two(&x);
		for (int g = 0; g < x.groups; g++) {
			int8_t **next = is_two ? &two : &one;
			uint32_t **order = is_two ? &order_two : &order_one;

			put(&x, g, *next);
			*next += step;
			if (RG_BYTE_SIGNS)
				*(*order)++ = (uint32_t)(at / 4 + g);
		}
	}
}

/* ---- a matrix ---- */

static int64_t order_bytes(int64_t k)
{
	return RG_BYTE_SIGNS ? round_up(rg_byte_groups(k) * (int64_t)sizeof(uint32_t)) : 0;
}

static int64_t panel_bytes(int64_t k)
{
	return order_bytes(k) + round_up(rg_byte_groups(k) * RG_BYTE_STEP * (RG_BYTE_WIDE ? 2 : 1));
}

static int64_t sums_at(int64_t panels)
{
	return round_up((int64_t)sizeof(struct rg_bytes_packed) + panels * (int64_t)sizeof(struct rg_byte_panel));
}

static int64_t panels_at(int64_t panels)
{
	return sums_at(panels) + round_up(panels * RG_BYTE_COLS * (int64_t)sizeof(int32_t));
}

size_t rg_byte_pack_bytes(int64_t n, int64_t k)
{
	int64_t panels = rg_ceil_div(n, RG_BYTE_COLS), bytes;

	if (n >= INT32_MAX || k >= INT32_MAX || __builtin_mul_overflow(panels, panel_bytes(k), &bytes) ||
	    __builtin_add_overflow(bytes, panels_at(panels), &bytes))
		return 0;
	return (size_t)bytes;
}

void rg_byte_pack_start(int64_t n, int64_t k, void *to)
{
	struct rg_bytes_packed *h = to;

	h->n = n;
	h->k = k;
	h->panels = rg_ceil_div(n, RG_BYTE_COLS);
	h->sums = sums_at(h->panels);
}

void rg_byte_pack_panels(const struct rg_byte_matrix *b, int64_t first, int64_t end, void *to)
{
	struct rg_bytes_packed *h = to;
	int32_t *sums = (int32_t *)((char *)to + h->sums);

	for (int64_t j = first; j < end; j++) {
		struct rg_byte_panel *p = &h->panel[j];

		p->n_two = count_twos(b, h->n, h->k, j);
		p->n_one = (int32_t)(rg_byte_groups(h->k) - 2 * p->n_two);
		p->order = panels_at(h->panels) + j * panel_bytes(h->k);
		p->data = p->order + order_bytes(h->k);
		pack_panel(b, h->n, h->k, j, to, p, sums + j * RG_BYTE_COLS);
	}
}
