/*
 * ONNX Runtime's elementwise operators on bytes, and ridge's LookUp.
 *
 * What depends on one byte has 256 results: the reference makes them all, and the tensor is
 * looked up. Sums and products take the reference's roundings, those of sums in double:
 * this file is compiled so that nothing is contracted (kernels/meson.build).
 */
#include <math.h>

#include "graph/contrib.h"
#include "graph/own.h"
#include "kernels/generic/generic.h"
#include "kernels/ref/byte.h"
#include "kernels/tables.h"

#define ROUND 0x1.8p23f /* adding it rounds a small number, ties to even: the low bits are the integer */
#define ROUND_BITS 0x4b400000

enum { BYTES = 256, COST_LOOK_UP = 2, COST_BINARY = 6 }; /* quarter-nanoseconds an element */

/* ---- one operand: tables ---- */

struct look_up {
	const uint8_t *table, *x;
	uint8_t *y;
};

/*
 * Sixteen tables of 16: the k-th gives its bytes where the index less 16 k is below 16, and
 * elsewhere 0, since adding 0x70 then sets the bit by which a shuffle makes 0.
 */
#if defined(RG_GENERIC_AVX512)
#define WIDE 64
typedef __m512i wide;
#define TABLE(P) _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(P)))
#define LOAD(P) _mm512_loadu_si512(P)
#define STORE(P, V) _mm512_storeu_si512(P, V)
#define ZERO() _mm512_setzero_si512()
#define ALL(X) _mm512_set1_epi8(X)
#define OR(A, B) _mm512_or_si512(A, B)
#define MINUS(A, B) _mm512_sub_epi8(A, B)
#define PLUS(A, B) _mm512_adds_epu8(A, B)
#define SHUFFLE(A, B) _mm512_shuffle_epi8(A, B)
#elif defined(RG_GENERIC_AVX2)
#define WIDE 32
typedef __m256i wide;
#define TABLE(P) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(P)))
#define LOAD(P) _mm256_loadu_si256((const __m256i *)(P))
#define STORE(P, V) _mm256_storeu_si256((__m256i *)(P), V)
#define ZERO() _mm256_setzero_si256()
#define ALL(X) _mm256_set1_epi8(X)
#define OR(A, B) _mm256_or_si256(A, B)
#define MINUS(A, B) _mm256_sub_epi8(A, B)
#define PLUS(A, B) _mm256_adds_epu8(A, B)
#define SHUFFLE(A, B) _mm256_shuffle_epi8(A, B)
#endif

#ifdef WIDE
enum { TURN = 4 }; /* vectors that a table, once loaded, serves */

static int64_t look_up_wide(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t n)
{
	int64_t i = 0;

	for (; i + TURN * WIDE <= n; i += TURN * WIDE) {
		wide index[TURN], found[TURN];

		for (int v = 0; v < TURN; v++) {
			index[v] = LOAD(x + i + v * WIDE);
			found[v] = ZERO();
		}
		for (int k = 0; k < 16; k++) {
			wide part = TABLE(table + 16 * k);

			for (int v = 0; v < TURN; v++) {
				found[v] = OR(found[v], SHUFFLE(part, PLUS(index[v], ALL(0x70))));
				index[v] = MINUS(index[v], ALL(16));
			}
		}
		for (int v = 0; v < TURN; v++)
			STORE(y + i + v * WIDE, found[v]);
	}
	return i;
}
#else
/* Eight loads of the table for one load and one store of the tensor. */
static int64_t look_up_wide(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t n)
{
	int64_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t from, to = 0;

		memcpy(&from, x + i, 8);
		for (int k = 0; k < 8; k++)
			to |= (uint64_t)table[from >> 8 * k & 255] << 8 * k;
		memcpy(y + i, &to, 8);
	}
	return i;
}
#endif

static void work_look_up(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct look_up *j = arg;
	const uint8_t *restrict table = j->table, *restrict x = j->x;
	uint8_t *restrict y = j->y;
	int64_t i = begin + look_up_wide(table, x + begin, y + begin, end - begin);

	for (; i < end; i++)
		y[i] = table[x[i]];
}

static void look_up(const uint8_t *table, const struct rg_tensor *x, const struct rg_tensor *y,
		    const struct rg_par *par)
{
	struct look_up j = { table, x->data, y->data };

	par->run(par, rg_shape_count(&x->shape), rg_grain(COST_LOOK_UP), work_look_up, &j);
}

static int run_table(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	look_up(c->in[1].data, &c->in[0], &c->out[0], par);
	return 0;
}

/* What the reference of this operator makes of every byte. */
static int make_table(const struct rg_call *c, uint8_t *table, struct rg_error *err)
{
	const struct rg_kernel *ref = rg_kernel_find(c->node->domain, c->node->op_type, "ref");
	struct rg_shape all = { .rank = 1, .dim = { BYTES } };
	struct rg_tensor in[5] = { 0 }, out = { c->out[0].dtype, all, table };
	struct rg_call every = { .node = c->node, .in = in, .out = &out };
	uint8_t bytes[BYTES];

	for (int i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)i;
	memcpy(in, c->in, (size_t)c->node->n_in * sizeof(*in));
	in[0].shape = all;
	in[0].data = bytes;
	return ref->run(&every, &rg_par_serial, err);
}

static size_t table_bytes(const struct rg_call *c, int lanes)
{
	return BYTES;
}

static int run_unary(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = make_table(c, c->scratch, err);

	if (!rc)
		look_up(c->scratch, &c->in[0], &c->out[0], par);
	return rc;
}

/* A tensor much smaller than the table is the reference's. */
static bool takes_unary(const struct rg_call *c)
{
	return rg_shape_count(&c->in[0].shape) >= BYTES / 4 && c->node->n_in <= 5;
}

/* ---- two operands ---- */

struct pair {
	float a_ratio, b_ratio, fixed;
	int32_t a_zero, b_zero, zero;
	bool a_signed, product, single;
	const uint8_t *a, *b;
	uint8_t *y;
	/* the output's rows, and how the operands walk them */
	int rank;
	int64_t dim[RG_MAX_RANK], stride[2][RG_MAX_RANK], inner, step[2];
};

/* Bounds first: they are whole, so that is as good, and keeps the number small. */
RG_INLINE uint8_t to_byte(float v, float low, float high, int32_t zero)
{
	int32_t bits;

	v = v >= low ? v : low;
	v = v <= high ? v : high;
	v += ROUND;
	memcpy(&bits, &v, sizeof(bits));
	return (uint8_t)(bits - ROUND_BITS + zero);
}

/* The product is exact in double; their sum is rounded there, then to float. */
RG_INLINE float multiply_add(int32_t x, float y, float z)
{
	return (float)((double)x * (double)y + (double)z);
}

/*
 * Whether double holds every sum exactly, so that it is rounded once, to float, which is what a fused
 * multiply-add does: all terms are multiples of the last bit of the smallest of the three numbers, and
 * sums are below 2^11 times the power of two below the largest; so at most 19 powers of
 * two may lie between the two, for 53 bits.
 */
static bool is_single(const struct pair *j)
{
	float all[3] = { j->a_ratio, j->b_ratio, j->fixed };
	int least = 200, most = -200, e;

	for (int i = 0; i < 3; i++) {
		if (!isfinite(all[i]))
			return false;
		if (all[i] == 0)
			continue;
		frexpf(all[i], &e);
		least = e < least ? e : least;
		most = e > most ? e : most;
	}
	return least > -100 && most - least <= 19; /* and nothing is denormal */
}

#if defined(RG_GENERIC_AVX512) || defined(RG_GENERIC_AVX2)
#define HAS_FMA 1
#else
#define HAS_FMA 0 /* a call: the sum in double is as good */
#endif

#define ROWS(TYPE) \
	RG_INLINE void add_single_##TYPE(const struct pair *j, const TYPE *restrict a, const TYPE *restrict b, \
					 int64_t n, const int64_t a_step, const int64_t b_step, float least, \
					 uint8_t *restrict y) \
	{ \
		const float a_ratio = j->a_ratio, b_ratio = j->b_ratio, fixed = j->fixed; \
\
		for (int64_t i = 0; i < n; i++) { \
			float z = __builtin_fmaf((float)b[i * b_step], b_ratio, fixed); \
\
			y[i] = to_byte(__builtin_fmaf((float)a[i * a_step], a_ratio, z), least, least + 255, 0); \
		} \
	} \
	RG_INLINE void add_##TYPE(const struct pair *j, const TYPE *restrict a, const TYPE *restrict b, int64_t n, \
				  const int64_t a_step, const int64_t b_step, float least, uint8_t *restrict y) \
	{ \
		const float a_ratio = j->a_ratio, b_ratio = j->b_ratio, fixed = j->fixed; \
\
		for (int64_t i = 0; i < n; i++) { \
			float z = multiply_add(b[i * b_step], b_ratio, fixed); \
\
			y[i] = to_byte(multiply_add(a[i * a_step], a_ratio, z), least, least + 255, 0); \
		} \
	} \
	RG_INLINE void multiply_##TYPE(const struct pair *j, const TYPE *restrict a, const TYPE *restrict b, int64_t n, \
				       const int64_t a_step, const int64_t b_step, float least, uint8_t *restrict y) \
	{ \
		const int32_t a_zero = j->a_zero, b_zero = j->b_zero; \
		const float ratio = j->a_ratio, zero = (float)j->zero; \
\
		for (int64_t i = 0; i < n; i++) \
			y[i] = to_byte((float)((a[i * a_step] - a_zero) * (b[i * b_step] - b_zero)) * ratio + zero, \
				       least, least + 255, 0); \
	} \
	static void row_##TYPE(const struct pair *j, const TYPE *a, const TYPE *b, float least, uint8_t *y, int64_t n) \
	{ \
		int64_t s = j->step[0], t = j->step[1]; \
\
		if (j->product) { \
			if (s && t) \
				multiply_##TYPE(j, a, b, n, 1, 1, least, y); \
			else if (s) \
				multiply_##TYPE(j, a, b, n, 1, 0, least, y); \
			else \
				multiply_##TYPE(j, a, b, n, 0, 1, least, y); \
		} else if (HAS_FMA && j->single) { \
			if (s && t) \
				add_single_##TYPE(j, a, b, n, 1, 1, least, y); \
			else if (s) \
				add_single_##TYPE(j, a, b, n, 1, 0, least, y); \
			else \
				add_single_##TYPE(j, a, b, n, 0, 1, least, y); \
		} else { \
			if (s && t) \
				add_##TYPE(j, a, b, n, 1, 1, least, y); \
			else if (s) \
				add_##TYPE(j, a, b, n, 1, 0, least, y); \
			else \
				add_##TYPE(j, a, b, n, 0, 1, least, y); \
		} \
	}
ROWS(int8_t)
ROWS(uint8_t)

static void one_row(const struct pair *j, int64_t a, int64_t b, int64_t y, int64_t n)
{
	if (j->a_signed)
		row_int8_t(j, (const int8_t *)j->a + a, (const int8_t *)j->b + b, -128, j->y + y, n);
	else
		row_uint8_t(j, j->a + a, j->b + b, 0, j->y + y, n);
}

/* Items are elements: a chunk may begin and end within a row. */
static void work_pair(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct pair *j = arg;
	int64_t n;

	for (; begin < end; begin += n) {
		int64_t row = begin / j->inner, i = begin % j->inner, at[2] = { i * j->step[0], i * j->step[1] };

		for (int d = j->rank - 1; d >= 0; d--) {
			at[0] += row % j->dim[d] * j->stride[0][d];
			at[1] += row % j->dim[d] * j->stride[1][d];
			row /= j->dim[d];
		}
		n = rg_min(j->inner - i, end - begin);
		one_row(j, at[0], at[1], begin, n);
	}
}

/* Dimensions that both operands walk in step are one; the last is the row. */
static void walk(struct pair *j, const struct rg_shape *y, const struct rg_shape *a, const struct rg_shape *b)
{
	int64_t s[2][RG_MAX_RANK], dim[RG_MAX_RANK], st[2][RG_MAX_RANK];
	int n = 0;

	rg_shape_broadcast_strides(a, y, s[0]);
	rg_shape_broadcast_strides(b, y, s[1]);
	for (int d = 0; d < y->rank; d++) {
		if (y->dim[d] == 1)
			continue;
		if (n && st[0][n - 1] == s[0][d] * y->dim[d] && st[1][n - 1] == s[1][d] * y->dim[d]) {
			dim[n - 1] *= y->dim[d];
		} else {
			dim[n++] = y->dim[d];
		}
		st[0][n - 1] = s[0][d];
		st[1][n - 1] = s[1][d];
	}
	j->inner = n ? dim[n - 1] : 1;
	for (int k = 0; k < 2; k++)
		j->step[k] = n ? st[k][n - 1] : 1;
	j->rank = n ? n - 1 : 0;
	for (int d = 0; d < j->rank; d++) {
		j->dim[d] = dim[d];
		j->stride[0][d] = st[0][d];
		j->stride[1][d] = st[1][d];
	}
}

/* As the reference reads them. */
static int run_pair(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	float a = rg_byte_scale(c, 1, 0), b = rg_byte_scale(c, 4, 0), y = rg_byte_scale(c, 6, 0);
	struct pair j = { .product = !strcmp(c->node->op_type, "QLinearMul"), .a_signed = c->in[0].dtype == RG_I8,
			  .a_zero = rg_byte_zero(c, 2, 0), .b_zero = rg_byte_zero(c, 5, 0),
			  .zero = rg_byte_zero(c, 7, 0), .a = c->in[0].data, .b = c->in[3].data,
			  .y = c->out[0].data };

	j.a_ratio = j.product ? a * b / y : a / y;
	j.b_ratio = b / y;
	j.fixed = (float)j.zero - (j.a_ratio * (float)j.a_zero + j.b_ratio * (float)j.b_zero);
	j.single = !j.product && is_single(&j);
	walk(&j, &c->out[0].shape, &c->in[0].shape, &c->in[3].shape);
	par->run(par, rg_shape_count(&c->out[0].shape), rg_grain(COST_BINARY), work_pair, &j);
	return 0;
}

/* ---- Concat ---- */

struct piece {
	const uint8_t *table, *x;
	uint8_t *y;
	int64_t n, stride;      /* bytes of a row of x, from one to the next of y */
};

static void work_piece(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct piece *p = arg;

	for (int64_t o = begin; o < end; o++) {
		struct look_up l = { p->table, p->x + o * p->n, p->y + o * p->stride };

		if (p->table)
			work_look_up(&l, 0, p->n, lane);
		else
			memcpy(l.y, l.x, (size_t)p->n);
	}
}

static bool same_params(const struct rg_call *c, int p)
{
	return rg_byte_scale(c, p + 1, 0) == rg_byte_scale(c, 0, 0) &&
	       rg_byte_zero(c, p + 2, 0) == rg_byte_zero(c, 1, 0);
}

/* From one scale to another's: as a join of the one part with itself alone. */
static int make_piece_table(const struct rg_call *c, int p, uint8_t *table, struct rg_error *err)
{
	const struct rg_kernel *ref = rg_kernel_find(RG_CONTRIB_DOMAIN, "QLinearConcat", "ref");
	struct rg_attr axis = { .name = "axis", .type = RG_ATTR_INT, .i = 0 };
	struct rg_node node = { .op_type = "QLinearConcat", .domain = RG_CONTRIB_DOMAIN, .n_in = 5, .n_out = 1,
				.n_attrs = 1, .attrs = &axis };
	struct rg_shape all = { .rank = 1, .dim = { BYTES } };
	struct rg_tensor in[5] = { c->in[0], c->in[1], c->in[p], c->in[p + 1] }, out = { c->out[0].dtype, all, table };
	struct rg_call one = { .node = &node, .in = in, .out = &out };
	uint8_t bytes[BYTES];

	for (int i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)i;
	if (p + 2 < c->node->n_in)
		in[4] = c->in[p + 2];
	in[2].shape = all;
	in[2].data = bytes;
	return ref->run(&one, &rg_par_serial, err);
}

static int run_concat(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int64_t axis = rg_node_int(c->node, "axis", 0), outer, inner;
	uint8_t *y = c->out[0].data;

	axis += axis < 0 ? s->rank : 0;
	outer = rg_shape_count_range(s, 0, (int)axis);
	inner = rg_shape_count_range(s, (int)axis + 1, s->rank);
	for (int p = 2; p < c->node->n_in; p += 3) {
		struct piece piece = { NULL, c->in[p].data, y, c->in[p].shape.dim[axis] * inner, s->dim[axis] * inner };
		int rc = same_params(c, p) ? 0 : make_piece_table(c, p, c->scratch, err);

		if (rc)
			return rc;
		if (!same_params(c, p))
			piece.table = c->scratch;
		if (piece.n && outer)
			par->run(par, outer, rg_grain(COST_LOOK_UP * piece.n), work_piece, &piece);
		y += piece.n;
	}
	return 0;
}

/* ---- the mean of planes ---- */

struct mean {
	const struct rg_call *c;
	int64_t n;
	float scale;
	int32_t zero, y_zero;
};

static void work_mean(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct mean *j = arg;

	for (int64_t p = begin; p < end; p++) {
		int64_t sum = -(int64_t)j->zero * j->n;

		for (int64_t at = 0; at < j->n; at += 1 << 20) {
			int64_t n = rg_min(1 << 20, j->n - at);
			int32_t part = 0;

			if (j->c->in[0].dtype == RG_I8) {
				const int8_t *x = (const int8_t *)j->c->in[0].data + p * j->n + at;

				for (int64_t i = 0; i < n; i++)
					part += x[i];
			} else {
				const uint8_t *x = (const uint8_t *)j->c->in[0].data + p * j->n + at;

				for (int64_t i = 0; i < n; i++)
					part += x[i];
			}
			sum += part;
		}
		rg_byte_set(&j->c->out[0], p, rintf((float)sum * j->scale) + (float)j->y_zero);
	}
}

static int run_global(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	struct mean j = { .c = c, .n = rg_shape_count_range(s, 2, s->rank), .zero = rg_byte_zero(c, 2, 0),
			  .y_zero = rg_byte_zero(c, 4, 0) };

	j.scale = rg_byte_scale(c, 1, 0) / (rg_byte_scale(c, 3, 0) * (float)j.n);
	par->run(par, rg_shape_count_range(s, 0, 2), rg_grain(j.n / 4 + 20), work_mean, &j);
	return 0;
}

static bool takes_global(const struct rg_call *c)
{
	return rg_node_int(c->node, "channels_last", 0) == 0;
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = rg_shape_count(&c->in[0].shape);
	if (c->node->n_in > 5)
		out->read_bytes = -1; /* two operands: rows that repeat are read again */
	out->write_bytes = rg_shape_count(&c->out[0].shape);
}

#define K(DOMAIN, OP, IN_PLACE, SUPPORTS, SCRATCH, RUN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .in_place = IN_PLACE, .supports = SUPPORTS, .scratch_bytes = SCRATCH, \
	  .traffic = traffic, .run = RUN }
static const struct rg_kernel kernels[] = {
	K(RG_CONTRIB_DOMAIN, "QLinearAdd", 0, NULL, NULL, run_pair),
	K(RG_CONTRIB_DOMAIN, "QLinearConcat", 0, NULL, table_bytes, run_concat),
	K(RG_CONTRIB_DOMAIN, "QLinearGlobalAveragePool", 0, takes_global, NULL, run_global),
	K(RG_CONTRIB_DOMAIN, "QLinearLeakyRelu", 0, takes_unary, table_bytes, run_unary),
	K(RG_CONTRIB_DOMAIN, "QLinearMul", 0, NULL, NULL, run_pair),
	K(RG_CONTRIB_DOMAIN, "QLinearSigmoid", 0, takes_unary, table_bytes, run_unary),
	K(RG_OWN_DOMAIN, "LookUp", 0, NULL, NULL, run_table),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(byte_ewise), kernels);
