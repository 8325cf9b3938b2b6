/*
 * Cast and CastLike among floats, integers and bool of any width, by way of
 * double or of 64-bit integers, whichever holds the source exactly.
 *
 * Integers wrap around as in C. What ONNX leaves undefined is defined here:
 * floats saturate at the ends of an integer type of a byte or more, NaN becomes
 * 0; those that go to a packed integer type wrap around, as in ONNX's test data.
 */
#include <math.h>
#include <string.h>

#include "graph/narrow.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* To float with the last bit set whenever bits were lost (round to odd), so that
 * rounding once more to a half-width type rounds right. */
static float narrow(double d)
{
	float f = (float)d;
	uint32_t u;

	if ((double)f == d || isnan(d))
		return f;
	memcpy(&u, &f, sizeof(u));
	if (fabs((double)f) > fabs(d))
		u--;
	u |= 1;
	memcpy(&f, &u, sizeof(f));
	return f;
}

/* Ends of the type as doubles: low is exact, high is one past the end. */
#define SATURATE(CTYPE, LOW, PAST, MIN, MAX) \
	(isnan(v) ? 0 : v < (LOW) ? (MIN) : v >= (PAST) ? (MAX) : (CTYPE)v)

#define FROM_FLOAT(TYPE, CTYPE, EXPR) \
	case TYPE: \
		for (int64_t i = 0; i < n; i++) { \
			double v = buf[i]; \
			((CTYPE *)to)[i] = (CTYPE)(EXPR); \
		} \
		break;

static void store_floats(const double *buf, int64_t n, enum rg_dtype t, void *to)
{
	switch (t) {
	FROM_FLOAT(RG_F32, float, v)
	FROM_FLOAT(RG_F64, double, v)
	FROM_FLOAT(RG_F16, uint16_t, rg_f32_to_f16(narrow(v)))
	FROM_FLOAT(RG_BF16, uint16_t, rg_f32_to_bf16(narrow(v)))
	FROM_FLOAT(RG_BOOL, uint8_t, v != 0)
	FROM_FLOAT(RG_I8, int8_t, SATURATE(int8_t, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX))
	FROM_FLOAT(RG_I16, int16_t, SATURATE(int16_t, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX))
	FROM_FLOAT(RG_I32, int32_t, SATURATE(int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))
	FROM_FLOAT(RG_I64, int64_t, SATURATE(int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX))
	FROM_FLOAT(RG_U8, uint8_t, SATURATE(uint8_t, 0, 0x1p8, 0, UINT8_MAX))
	FROM_FLOAT(RG_U16, uint16_t, SATURATE(uint16_t, 0, 0x1p16, 0, UINT16_MAX))
	FROM_FLOAT(RG_U32, uint32_t, SATURATE(uint32_t, 0, 0x1p32, 0, UINT32_MAX))
	FROM_FLOAT(RG_U64, uint64_t, SATURATE(uint64_t, 0, 0x1p64, 0, UINT64_MAX))
	default:
		break;
	}
}

#define FROM_INT(TYPE, CTYPE, EXPR) \
	case TYPE: \
		for (int64_t i = 0; i < n; i++) { \
			int64_t v = buf[i]; \
			((CTYPE *)to)[i] = (CTYPE)(EXPR); \
		} \
		break;
#define FROM_INT_PLAIN(TYPE, CTYPE) FROM_INT(TYPE, CTYPE, v)

/* is_unsigned: the source was uint64, whose upper half is negative in buf. */
static void store_ints(const int64_t *buf, int64_t n, bool is_unsigned, enum rg_dtype t, void *to)
{
	switch (t) {
	RG_FOR_INTS(FROM_INT_PLAIN)
	FROM_INT(RG_BOOL, uint8_t, v != 0)
	FROM_INT(RG_F32, float, is_unsigned ? (float)(uint64_t)v : (float)v)
	FROM_INT(RG_F64, double, is_unsigned ? (double)(uint64_t)v : (double)v)
	FROM_INT(RG_F16, uint16_t, rg_f32_to_f16(is_unsigned ? (float)(uint64_t)v : (float)v))
	FROM_INT(RG_BF16, uint16_t, rg_f32_to_bf16(is_unsigned ? (float)(uint64_t)v : (float)v))
	default:
		break;
	}
}

#define TO_INT(TYPE, CTYPE) \
	case TYPE: \
		for (int64_t i = 0; i < n; i++) \
			buf[i] = (int64_t)((const CTYPE *)from->data)[first + i]; \
		break;

/* Element 0 of `to` begins a byte: chunks are of whole bytes. */
static void store_narrow(const double *buf, int64_t n, enum rg_dtype t, struct rg_narrow_rule rule, void *to)
{
	int bits = rg_dtype_bits(t);

	for (int64_t i = 0; i < n; i++)
		rg_narrow_set(to, bits, i, rg_narrow_encode(t, buf[i], rule));
}

/* A double rounds integers beyond 2^53: far beyond the range of any narrow float
 * but float8e8m0. */
static void store_narrow_ints(const int64_t *buf, int64_t n, bool is_unsigned, enum rg_dtype t,
			      struct rg_narrow_rule rule, void *to)
{
	int bits = rg_dtype_bits(t);

	for (int64_t i = 0; i < n; i++) {
		double v = is_unsigned ? (double)(uint64_t)buf[i] : (double)buf[i];

		rg_narrow_set(to, bits, i, rg_dtype_is_float(t) ? rg_narrow_encode(t, v, rule) :
			      (unsigned)((uint64_t)buf[i] & ((1u << bits) - 1)));
	}
}

static struct rg_narrow_rule rule_of(const struct rg_node *n)
{
	struct rg_narrow_rule rule = { .saturate = rg_node_int(n, "saturate", 1) != 0 };
	const char *round = rg_node_string(n, "round_mode", "up");

	rule.round = !strcmp(round, "down") ? RG_ROUND_DOWN : !strcmp(round, "nearest") ? RG_ROUND_NEAREST :
		     RG_ROUND_UP;
	return rule;
}

static void load_ints(const struct rg_tensor *from, int64_t first, int64_t n, int64_t *buf)
{
	int bits = rg_dtype_bits(from->dtype);

	switch (from->dtype) {
	RG_FOR_INTS(TO_INT)
	case RG_BOOL:
		for (int64_t i = 0; i < n; i++)
			buf[i] = ((const uint8_t *)from->data)[first + i] != 0;
		break;
	default: /* packed */
		for (int64_t i = 0; i < n; i++)
			buf[i] = (int64_t)rg_narrow_decode(from->dtype, rg_narrow_get(from->data, bits, first + i));
		break;
	}
}

int rg_ref_cast(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *from = &c->in[0], *to = &c->out[0];
	const struct rg_narrow_rule rule = rule_of(c->node);
	int64_t n = rg_shape_count(&to->shape), bits = rg_dtype_bits(to->dtype);
	bool narrow = rg_dtype_is_narrow(to->dtype);

	if (from->dtype == to->dtype) {
		if (n > 0)
			memcpy(to->data, from->data, (size_t)rg_tensor_bytes(to->dtype, &to->shape));
		return 0;
	}
	rg_ref_clear(to);
	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;
		char *at = (char *)to->data + i / 8 * bits; /* a chunk is a multiple of 8 */
		union { double f[RG_REF_CHUNK]; int64_t i[RG_REF_CHUNK]; } buf;

		if (rg_dtype_is_float(from->dtype)) {
			rg_ref_load(from, i, 1, m, buf.f);
			if (narrow)
				store_narrow(buf.f, m, to->dtype, rule, at);
			else
				store_floats(buf.f, m, to->dtype, at);
		} else {
			load_ints(from, i, m, buf.i);
			if (narrow)
				store_narrow_ints(buf.i, m, from->dtype == RG_U64, to->dtype, rule, at);
			else
				store_ints(buf.i, m, from->dtype == RG_U64, to->dtype, at);
		}
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	const uint32_t set = RG_SET_NUM | RG_SET_NARROW | RG_BIT(RG_BOOL);

	return (rg_in_set(c->in[0].dtype, set) && rg_in_set(c->out[0].dtype, set)) ||
	       (c->in[0].dtype == c->out[0].dtype && rg_dtype_bytes(c->in[0].dtype) > 0);
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = 0;
	out->read_bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	out->write_bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Cast", .domain = "", .name = "ref", .supports = supports, .traffic = traffic, .run = rg_ref_cast },
	{ .op_type = "CastLike", .domain = "", .name = "ref", .supports = supports, .traffic = traffic,
	  .run = rg_ref_cast },
};
RG_KERNEL_TABLE(rg_kernels_ref_cast, kernels);
