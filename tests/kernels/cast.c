/*
 * Cast between all pairs of types: every code of up to 16 bits, and wider ones
 * spread over all exponents, against what numpy and ml_dtypes make of them
 * (hashes; make-cast-hashes.py), and the narrow floats against the definition of
 * rounding, by search over all their codes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/narrow.h"
#include "graph/op-types.h"
#include "kernels/kernel.h"

static const enum rg_dtype order[] = {
	RG_F32, RG_U8, RG_I8, RG_U16, RG_I16, RG_I32, RG_I64, RG_BOOL, RG_F16, RG_F64, RG_U32, RG_U64, RG_BF16,
	RG_F8E4M3FN, RG_F8E4M3FNUZ, RG_F8E5M2, RG_F8E5M2FNUZ, RG_U4, RG_I4, RG_F4E2M1, RG_F8E8M0, RG_U2, RG_I2,
};
enum { N_TYPES = sizeof(order) / sizeof(order[0]), MOST = 65536 };

static const struct {
	enum rg_dtype to;
	int saturate;
	const char *round;
	uint64_t hash;
} expected[] = {
#include "cast-hashes.h"
};

static uint64_t get_code(const struct rg_tensor *t, int64_t i)
{
	int bits = rg_dtype_bits(t->dtype);
	uint64_t v = 0;

	if (bits < 8)
		return rg_narrow_get(t->data, bits, i);
	memcpy(&v, (const char *)t->data + i * bits / 8, (size_t)bits / 8);
	return v;
}

static void set_code(struct rg_tensor *t, int64_t i, uint64_t v)
{
	int bits = rg_dtype_bits(t->dtype);

	if (bits < 8)
		rg_narrow_set(t->data, bits, i, (unsigned)v);
	else
		memcpy((char *)t->data + i * bits / 8, &v, (size_t)bits / 8);
}

static int64_t count_of(enum rg_dtype t)
{
	int bits = rg_dtype_bits(t);

	return t == RG_BOOL ? 2 : bits <= 16 ? 1 << bits : MOST;
}

static struct rg_tensor source(enum rg_dtype t)
{
	struct rg_tensor s = { .dtype = t, .shape = { .rank = 1, .dim = { count_of(t) } } };
	uint64_t n = (uint64_t)s.shape.dim[0];

	assert_non_null(s.data = rg_calloc(MOST, 8));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t code = i;

		if (rg_dtype_bits(t) == 32)
			code = i << 16 | (i * 40503 & 0xffff);
		else if (rg_dtype_bits(t) == 64)
			code = i << 48 | (i * 0x5851F42D4C95u & 0xffffffffffffu);
		set_code(&s, (int64_t)i, code);
	}
	return s;
}

/* All elements of `from` to type `t`; bytes that are not written would show. */
static struct rg_tensor cast(const struct rg_tensor *from, enum rg_dtype t, int saturate, const char *round)
{
	struct rg_attr attrs[] = {
		{ .name = "to", .type = RG_ATTR_INT, .i = t },
		{ .name = "saturate", .type = RG_ATTR_INT, .i = saturate },
		{ .name = "round_mode", .type = RG_ATTR_STRING, .s = round, .s_len = strlen(round) },
	};
	struct rg_tensor to = { .dtype = t, .shape = from->shape };
	struct rg_node n = { .name = "n", .op_type = "Cast", .domain = "", .version = 25, .n_in = 1, .n_out = 1,
			     .n_attrs = 3, .attrs = attrs };
	struct rg_call c = { .node = &n, .in = from, .out = &to };
	const struct rg_kernel *k = rg_kernel_find("", "Cast", "ref");
	int64_t bytes = rg_tensor_bytes(t, &to.shape);
	struct rg_error err = RG_ERROR_INIT;
	unsigned char *data;

	assert_non_null(data = malloc((size_t)bytes + 1));
	memset(data, 0xa5, (size_t)bytes + 1);
	to.data = data;
	assert_true(k->supports(&c));
	assert_int_equal(k->run(&c, &rg_par_serial, &err), 0);
	assert_int_equal(data[bytes], 0xa5);
	if (rg_dtype_bits(t) < 8 && bytes) /* what pads the last byte is zero */
		for (int64_t i = to.shape.dim[0]; i < bytes * 8 / rg_dtype_bits(t); i++)
			assert_int_equal(rg_narrow_get(data, rg_dtype_bits(t), i), 0);
	return to;
}

static double value(const struct rg_tensor *t, int64_t i)
{
	uint64_t code = get_code(t, i);
	double d;
	float f;

	switch (t->dtype) {
	case RG_F64:
		memcpy(&d, &code, sizeof(d));
		return d;
	case RG_F32:
		memcpy(&f, &code, sizeof(f));
		return (double)f;
	case RG_F16:
		return (double)rg_f16_to_f32((uint16_t)code);
	case RG_BF16:
		return (double)rg_bf16_to_f32((uint16_t)code);
	case RG_U64:
		return (double)code;
	case RG_I64:
		return (double)(int64_t)code;
	case RG_I32:
		return (int32_t)code;
	case RG_I16:
		return (int16_t)code;
	case RG_I8:
		return (int8_t)code;
	default:
		return rg_dtype_is_narrow(t->dtype) ? (double)rg_narrow_decode(t->dtype, (unsigned)code) :
						      (double)code;
	}
}

/* Whether ONNX says what element i becomes, by the rules of make-cast-hashes.py. */
static bool is_defined(const struct rg_tensor *from, int64_t i, enum rg_dtype t)
{
	double v = value(from, i);
	int bits = rg_dtype_bits(t);

	if (t == RG_F8E8M0) {
		float f = (float)v;

		/* a 64-bit integer is compared after it was rounded, here as there */
		return v >= 0x1p-126 && v < 0x1p127 && (double)f == v;
	}
	if (!rg_dtype_is_float(from->dtype) || !rg_dtype_is_int(t))
		return true;
	if (bits < 8)
		return fabs(v) < 0x1p31;
	v = trunc(v);
	return rg_dtype_is_signed(t) ? v >= -ldexp(1, bits - 1) && v < ldexp(1, bits - 1) :
				       v >= 0 && v < ldexp(1, bits);
}

static uint64_t canonical(const struct rg_tensor *t, int64_t i)
{
	uint64_t ones = UINT64_MAX >> (64 - rg_dtype_bits(t->dtype));

	if (rg_in_set(t->dtype, RG_SET_FLOAT) && isnan(value(t, i)))
		return ones;
	return get_code(t, i);
}

static void test_all_pairs(void **state)
{
	struct rg_tensor from[N_TYPES];

	for (int s = 0; s < N_TYPES; s++)
		from[s] = source(order[s]);
	for (size_t e = 0; e < sizeof(expected) / sizeof(expected[0]); e++) {
		uint64_t h = 0xCBF29CE484222325u;

		for (int s = 0; s < N_TYPES; s++) {
			struct rg_tensor to = cast(&from[s], expected[e].to, expected[e].saturate,
						   expected[e].round);

			for (int64_t i = 0; i < to.shape.dim[0]; i++)
				h = (h ^ (is_defined(&from[s], i, to.dtype) ? canonical(&to, i) : 0)) *
				    0x100000001B3u;
			free(to.data);
			if (getenv("RIDGE_TEST_VERBOSE"))
				print_message("%s %d %s %s %016llx\n", rg_dtype_name(expected[e].to),
					      expected[e].saturate, expected[e].round, rg_dtype_name(order[s]),
					      (unsigned long long)h);
		}
		if (h != expected[e].hash)
			fail_msg("to %s, saturate %d, %s: other results than ml_dtypes has",
				 rg_dtype_name(expected[e].to), expected[e].saturate, expected[e].round);
	}
	for (int s = 0; s < N_TYPES; s++)
		rg_free(from[s].data);
}

/* Every code comes back from the value that it stands for. */
static void test_codes(void **state)
{
	const struct rg_narrow_rule rule = { .saturate = false };

	for (int k = 0; k < N_TYPES; k++) {
		enum rg_dtype t = order[k];

		if (!rg_dtype_is_narrow(t))
			continue;
		for (unsigned code = 0; code < 1u << rg_dtype_bits(t); code++) {
			float v = rg_narrow_decode(t, code);
			unsigned back = rg_narrow_encode(t, (double)v, rule);

			if (isnan(v))
				assert_true(isnan(rg_narrow_decode(t, back)));
			else
				assert_int_equal(back, code);
		}
	}
}

/* The nearest value by search, ties to the even code; for magnitudes in range. */
static unsigned nearest(enum rg_dtype t, double v)
{
	unsigned best = 0;
	double least = INFINITY;

	for (unsigned code = 0; code < 1u << rg_dtype_bits(t); code++) {
		double w = (double)rg_narrow_decode(t, code), d = fabs(v - w);

		if (isnan(w) || isinf(w) || (w != 0 && (signbit(w) != 0) != (signbit(v) != 0)) || d > least)
			continue;
		if (d < least || code % 2 == 0)
			best = code;
		least = d;
	}
	return best;
}

static void test_rounding(void **state)
{
	static const enum rg_dtype floats[] = { RG_F8E4M3FN, RG_F8E4M3FNUZ, RG_F8E5M2, RG_F8E5M2FNUZ, RG_F4E2M1 };
	struct rg_tensor from = source(RG_BF16);

	for (int k = 0; k < 5; k++) {
		struct rg_tensor to = cast(&from, floats[k], 1, "up");

		for (int64_t i = 0; i < from.shape.dim[0]; i++) {
			double v = value(&from, i), w = value(&to, i);

			if (isnan(v))
				assert_true(isnan(w) || (floats[k] == RG_F4E2M1 && w == 0));
			else if (v == 0 || w == 0) /* FNUZ types have one zero */
				assert_true(w == (double)rg_narrow_decode(floats[k], nearest(floats[k], v)));
			else /* far beyond the largest there is, all differences would be one */
				assert_int_equal(get_code(&to, i),
						 nearest(floats[k], fmin(fmax(v, -1e6), 1e6)));
		}
		free(to.data);
	}
	rg_free(from.data);
}

/* The rows of the operator's table, and the ends that numpy's function leaves out. */
static void test_e8m0(void **state)
{
	const struct rg_narrow_rule up = { true, RG_ROUND_UP }, near = { false, RG_ROUND_NEAREST };
	const struct rg_narrow_rule down = { true, RG_ROUND_DOWN };
	static const double v[] = { 0, 0x1p-127, 0x1.8p-127, 0x1.4p-127, 0x1.8p0, 0x1.7ffffffffffffp0,
				    0x1.0000000000001p0, 0x1p127, 0x1.1p127, INFINITY, NAN, 0x1p-128 };
	static const unsigned is_up[] = { 0, 0, 1, 1, 128, 128, 128, 254, 254, 254, 255, 0 };
	static const unsigned is_near[] = { 255, 0, 1, 0, 128, 127, 127, 254, 255, 255, 255, 255 };
	static const unsigned is_down[] = { 0, 0, 0, 0, 127, 127, 127, 254, 254, 254, 255, 0 };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		assert_int_equal(rg_narrow_encode(RG_F8E8M0, v[i], up), is_up[i]);
		assert_int_equal(rg_narrow_encode(RG_F8E8M0, v[i], near), is_near[i]);
		assert_int_equal(rg_narrow_encode(RG_F8E8M0, v[i], down), is_down[i]);
	}
}

/* Rows whose last byte is not full, and nothing at all. */
static void test_packed_ends(void **state)
{
	static const enum rg_dtype packed[] = { RG_U4, RG_I4, RG_F4E2M1, RG_U2, RG_I2 };
	struct rg_tensor from = source(RG_I8);

	for (int k = 0; k < 5; k++) {
		for (int64_t n = 0; n < 9; n++) {
			struct rg_tensor to, back;

			from.shape.dim[0] = n;
			to = cast(&from, packed[k], 1, "up");
			back = cast(&to, RG_I8, 1, "up");
			for (int64_t i = 0; i < n; i++) {
				int wrap = packed[k] == RG_F4E2M1 ? 0 : 1 << rg_dtype_bits(packed[k]);
				int want = (int)i;

				if (wrap)
					want = (int)i % wrap;
				if (wrap && rg_dtype_is_signed(packed[k]) && want >= wrap / 2)
					want -= wrap;
				if (packed[k] == RG_F4E2M1) /* 0 1 2 3 4 6: 5 is a tie, 7 too much */
					want = i == 5 ? 4 : i >= 6 ? 6 : (int)i;
				assert_int_equal(((int8_t *)back.data)[i], want);
			}
			free(to.data);
			free(back.data);
		}
	}
	rg_free(from.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_codes), cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_e8m0), cmocka_unit_test(test_packed_ends),
	};

	return cmocka_run_group_tests_name("cast", tests, NULL, NULL);
}
