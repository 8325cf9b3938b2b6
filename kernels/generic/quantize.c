/*
 * Between float32 and bytes: QuantizeLinear, DequantizeLinear (of int32 too, as biases are
 * stored), DynamicQuantizeLinear. The bits are the reference's: what is divided there is
 * divided here, and this file is compiled so that nothing is contracted (kernels/meson.build).
 *
 * A quotient is bounded before it is rounded. The bounds are whole numbers, so that gives what
 * bounding the rounded one does; and a number that small is rounded, ties to even, by
 * adding 1.5 * 2^23 to it: the sum's low bits are then the integer.
 */
#include <math.h>

#include "graph/op-quant.h"
#include "kernels/generic/generic.h"
#include "kernels/ref/byte.h"
#include "kernels/tables.h"

#define ROUND 0x1.8p23f /* and its bits: */
#define ROUND_BITS 0x4b400000

enum { COST_QUANTIZE = 4, COST_DEQUANTIZE = 2 }; /* quarter-nanoseconds an element */

/* Elements with one scale, or with one each (step 1). */
struct row {
	const float *scale;
	const void *zero;       /* of the integers' type; NULL: 0 */
	bool each;
};

struct job {
	struct rg_quant q;
	enum rg_dtype type;     /* of the integers */
	const void *x;
	void *y;
	const float *scale;
	const void *zero;
};

static int32_t zero_at(enum rg_dtype t, const void *zero, int64_t i)
{
	return !zero ? 0 : t == RG_I8 ? ((const int8_t *)zero)[i] : t == RG_U8 ? ((const uint8_t *)zero)[i] :
										 ((const int32_t *)zero)[i];
}

static const void *move_zero(enum rg_dtype t, const void *zero, int64_t n)
{
	return zero ? (const char *)zero + n * (int64_t)rg_dtype_bytes(t) : NULL;
}

/* How many elements from `at` on one row holds, and its scales. */
static int64_t row_at(const struct job *j, int64_t at, struct row *row)
{
	const struct rg_quant *q = &j->q;
	int64_t inner = at % q->inner, i = at / q->inner % q->n, o = at / q->inner / q->n;
	int64_t k = o * q->so + i / q->block * q->si + inner * q->sj, left;

	if (q->sj && q->inner > 1) { /* blocks of rows */
		row->each = true;
		left = q->inner - inner;
	} else if (q->sj) { /* blocks within a row */
		row->each = false;
		left = rg_min(q->block - i % q->block, q->n - i);
	} else if (q->si && q->inner == 1) {
		row->each = true;
		left = q->n - i;
	} else {
		row->each = false;
		left = q->si ? q->inner - inner : INT64_MAX;
	}
	row->scale = j->scale + k;
	row->zero = move_zero(j->type, j->zero, k);
	return left;
}

/* ---- to bytes ---- */

RG_INLINE uint8_t to_byte(float x, float scale, float low, float high, int32_t zero)
{
	float v = x / scale;
	int32_t bits;

	v = v >= low ? v : low; /* NaN is low */
	v = v <= high ? v : high;
	v += ROUND;
	memcpy(&bits, &v, sizeof(bits));
	return (uint8_t)(bits - ROUND_BITS + zero);
}

static void quantize_row(const float *restrict x, int64_t n, float scale, int32_t zero, float least,
			 uint8_t *restrict y)
{
	const float low = least - (float)zero, high = low + 255;

	for (int64_t i = 0; i < n; i++)
		y[i] = to_byte(x[i], scale, low, high, zero);
}

#define QUANTIZE_EACH(NAME, TYPE) \
	static void NAME(const float *restrict x, int64_t n, const float *restrict scale, const TYPE *restrict zero, \
			 float least, uint8_t *restrict y) \
	{ \
		for (int64_t i = 0; i < n; i++) \
			y[i] = to_byte(x[i], scale[i], least - (float)zero[i], least + 255 - (float)zero[i], zero[i]); \
	}
QUANTIZE_EACH(quantize_each_i8, int8_t)
QUANTIZE_EACH(quantize_each_u8, uint8_t)

static void quantize_each(const float *restrict x, int64_t n, const float *restrict scale, float least,
			  uint8_t *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = to_byte(x[i], scale[i], least, least + 255, 0);
}

static void work_quantize(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float least = j->type == RG_I8 ? -128 : 0;
	struct row r;
	int64_t n;

	for (; begin < end; begin += n) {
		const float *x = (const float *)j->x + begin;
		uint8_t *y = (uint8_t *)j->y + begin;

		n = rg_min(row_at(j, begin, &r), end - begin);
		if (!r.each)
			quantize_row(x, n, *r.scale, zero_at(j->type, r.zero, 0), least, y);
		else if (!r.zero)
			quantize_each(x, n, r.scale, least, y);
		else if (j->type == RG_I8)
			quantize_each_i8(x, n, r.scale, r.zero, least, y);
		else
			quantize_each_u8(x, n, r.scale, r.zero, least, y);
	}
}

/* ---- from integers ---- */

#define DEQUANTIZE(NAME, TYPE, DIFFERENCE) \
	static void NAME(const TYPE *restrict x, int64_t n, const struct row *r, float *restrict y) \
	{ \
		const TYPE *restrict zeros = r->zero; \
		const float *restrict scales = r->scale; \
		const float scale = *scales; \
		const TYPE zero = zeros ? *zeros : 0; \
\
		if (!r->each) { \
			for (int64_t i = 0; i < n; i++) \
				y[i] = (float)DIFFERENCE(x[i], zero) * scale; \
		} else if (zeros) { \
			for (int64_t i = 0; i < n; i++) \
				y[i] = (float)DIFFERENCE(x[i], zeros[i]) * scales[i]; \
		} else { \
			for (int64_t i = 0; i < n; i++) \
				y[i] = (float)x[i] * scales[i]; \
		} \
	}
#define SMALL(A, B) ((int32_t)(A) - (int32_t)(B))
#define LARGE(A, B) ((double)(A) - (double)(B)) /* exact, rounded once to float */
DEQUANTIZE(dequantize_i8, int8_t, SMALL)
DEQUANTIZE(dequantize_u8, uint8_t, SMALL)
DEQUANTIZE(dequantize_i32, int32_t, LARGE)

static void work_dequantize(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	struct row r;
	int64_t n;

	for (; begin < end; begin += n) {
		float *y = (float *)j->y + begin;

		n = rg_min(row_at(j, begin, &r), end - begin);
		if (j->type == RG_I8)
			dequantize_i8((const int8_t *)j->x + begin, n, &r, y);
		else if (j->type == RG_U8)
			dequantize_u8((const uint8_t *)j->x + begin, n, &r, y);
		else
			dequantize_i32((const int32_t *)j->x + begin, n, &r, y);
	}
}

static const char *setup(const struct rg_call *c, enum rg_dtype type, struct job *j)
{
	*j = (struct job){ .type = type, .x = c->in[0].data, .y = c->out[0].data, .scale = c->in[1].data };
	if (c->node->n_in > 2)
		j->zero = c->in[2].data;
	return rg_quant_layout(c->node, &c->in[0].shape, &c->in[1].shape, &j->q);
}

static int run_quantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	const char *bad = setup(c, c->out[0].dtype, &j);

	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	par->run(par, rg_shape_count(&c->in[0].shape), rg_grain(COST_QUANTIZE), work_quantize, &j);
	return 0;
}

static int run_dequantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	const char *bad = setup(c, c->in[0].dtype, &j);

	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	par->run(par, rg_shape_count(&c->in[0].shape), rg_grain(COST_DEQUANTIZE), work_dequantize, &j);
	return 0;
}

/* ---- DynamicQuantizeLinear ---- */

enum { PART = 4096 }; /* elements whose extremes are found together */

struct extremes {
	const float *x;
	int64_t n;
	float (*part)[2];
};

/* NaN takes no part; 0 does. */
static void work_extremes(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct extremes *e = arg;

	for (int64_t p = begin; p < end; p++) {
		const float *x = e->x + p * PART;
		int64_t n = rg_min(PART, e->n - p * PART), i = 0;
		float low[16] = { 0 }, high[16] = { 0 };

		for (; i + 16 <= n; i += 16)
			for (int k = 0; k < 16; k++) {
				low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
				high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
			}
		for (; i < n; i++) {
			low[0] = x[i] < low[0] ? x[i] : low[0];
			high[0] = x[i] > high[0] ? x[i] : high[0];
		}
		for (int k = 1; k < 16; k++) {
			low[0] = low[k] < low[0] ? low[k] : low[0];
			high[0] = high[k] > high[0] ? high[k] : high[0];
		}
		e->part[p][0] = low[0];
		e->part[p][1] = high[0];
	}
}

static size_t dynamic_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)(rg_shape_count(&c->in[0].shape) / PART + 1) * sizeof(float[2]);
}

static int run_dynamic(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape), parts = n / PART + (n % PART != 0);
	struct extremes e = { c->in[0].data, n, c->scratch };
	struct job j = { .q = { .n = n, .inner = 1, .block = 1 }, .type = RG_U8, .x = c->in[0].data,
			 .y = c->out[0].data };
	float ends[2] = { 0, 0 }, scale;
	uint8_t zero;

	par->run(par, parts, rg_grain(PART) / 8 + 1, work_extremes, &e);
	for (int64_t p = 0; p < parts; p++) {
		ends[0] = e.part[p][0] < ends[0] ? e.part[p][0] : ends[0];
		ends[1] = e.part[p][1] > ends[1] ? e.part[p][1] : ends[1];
	}
	zero = (uint8_t)rg_byte_quantize(ends, 2, NULL, &scale); /* of the extremes as of all */
	j.scale = &scale;
	j.zero = &zero;
	if (j.y)
		par->run(par, n, rg_grain(COST_QUANTIZE), work_quantize, &j);
	if (c->node->n_out > 1 && c->out[1].data)
		*(float *)c->out[1].data = scale;
	if (c->node->n_out > 2 && c->out[2].data)
		*(uint8_t *)c->out[2].data = zero;
	return 0;
}

/* ---- registry ---- */

static bool takes_quantize(const struct rg_call *c)
{
	struct job j;

	return c->in[0].dtype == RG_F32 && c->in[1].dtype == RG_F32 && rg_in_set(c->out[0].dtype, RG_SET_INT8) &&
	       rg_quant_precision(c->node, RG_F32, RG_F32) == RG_F32 && !setup(c, c->out[0].dtype, &j);
}

static bool takes_dequantize(const struct rg_call *c)
{
	struct job j;

	return (rg_in_set(c->in[0].dtype, RG_SET_INT8) || c->in[0].dtype == RG_I32) && c->in[1].dtype == RG_F32 &&
	       c->out[0].dtype == RG_F32 && !setup(c, c->in[0].dtype, &j);
}

static bool takes_dynamic(const struct rg_call *c)
{
	return c->in[0].dtype == RG_F32;
}

/* One or two passes over it; scales and zero points stay in L1. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	int passes = c->node->n_out > 1 ? 2 : 1;

	out->executed_flops = -1;
	out->read_bytes = passes * rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	out->write_bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
}

#define K(DOMAIN, OP, SUPPORTS, SCRATCH, RUN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .scratch_bytes = SCRATCH, .traffic = traffic, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("", "DequantizeLinear", takes_dequantize, NULL, run_dequantize),
	K("", "DynamicQuantizeLinear", takes_dynamic, dynamic_scratch, run_dynamic),
	K("", "QuantizeLinear", takes_quantize, NULL, run_quantize),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(quantize), kernels);
