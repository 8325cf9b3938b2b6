/* Element types and shapes: conversions against exact arithmetic, broadcasting
 * against brute force. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "tests/graph/build.h"

static void test_dtype_names(void **state)
{
	for (int t = 0; t < RG_DTYPE_COUNT; t++)
		assert_int_equal(rg_dtype_parse(rg_dtype_name((enum rg_dtype)t)), t);
	assert_int_equal(rg_dtype_parse("tensor(float)"), RG_F32);
	assert_int_equal(rg_dtype_parse("FLOAT16"), RG_F16);
	assert_int_equal(rg_dtype_parse("DOUBLE"), RG_F64);
	assert_int_equal(rg_dtype_parse("<i8"), RG_I64);
	assert_int_equal(rg_dtype_parse("|b1"), RG_BOOL);
	assert_int_equal(rg_dtype_parse("tensor("), RG_UNDEFINED);
	assert_int_equal(rg_dtype_parse(""), RG_UNDEFINED);
	assert_string_equal(rg_dtype_name((enum rg_dtype)-1), "undefined");
	assert_string_equal(rg_dtype_name((enum rg_dtype)1000), "undefined");
	assert_int_equal(rg_dtype_bytes(RG_I4), 0);
	assert_int_equal(rg_dtype_bits(RG_I4), 4);
}

/* Every float16 goes to float and back; its value is what the bits say. */
static void test_f16_exhaustive(void **state)
{
	for (uint32_t h = 0; h < 0x10000; h++) {
		float f = rg_f16_to_f32((uint16_t)h);
		int e = h >> 10 & 31, m = h & 0x3ff;
		double want = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

		if (e == 31) {
			assert_true(m ? isnan(f) : isinf(f));
			if (m) {
				assert_true(isnan(rg_f16_to_f32(rg_f32_to_f16(f))));
				continue;
			}
		} else {
			assert_true(f == (h & 0x8000 ? -want : want));
		}
		assert_int_equal(rg_f32_to_f16(f), h);
	}
}

/* Rounding: the nearest of the two neighbours, even on a tie. */
static void test_f16_rounding(void **state)
{
	for (uint32_t h = 0; h < 0x7c00; h++) {
		double low = rg_f16_to_f32((uint16_t)h);
		double high = h + 1 == 0x7c00 ? 65536.0 : rg_f16_to_f32((uint16_t)(h + 1));
		float mid = (float)((low + high) / 2);
		uint32_t even = h & 1 ? h + 1 : h;

		assert_true((double)mid == (low + high) / 2);
		assert_int_equal(rg_f32_to_f16(mid), even);
		assert_int_equal(rg_f32_to_f16(nextafterf(mid, 0)), h);
		assert_int_equal(rg_f32_to_f16(nextafterf(mid, INFINITY)), h + 1);
		assert_int_equal(rg_f32_to_f16(-mid), even | 0x8000);
	}
	assert_int_equal(rg_f32_to_f16(1e30f), 0x7c00);
	assert_int_equal(rg_f32_to_f16(1e-30f), 0);
	assert_int_equal(rg_f32_to_f16(-1e-30f), 0x8000);
}

static void test_bf16(void **state)
{
	for (uint32_t h = 0; h < 0x10000; h++) {
		float f = rg_bf16_to_f32((uint16_t)h);

		if (isnan(f))
			assert_true(isnan(rg_bf16_to_f32(rg_f32_to_bf16(f))));
		else
			assert_int_equal(rg_f32_to_bf16(f), h);
	}
	assert_int_equal(rg_f32_to_bf16(1.00390625f), 0x3f80);  /* tie to even, down */
	assert_int_equal(rg_f32_to_bf16(1.01171875f), 0x3f82);  /* tie to even, up */
	assert_int_equal(rg_f32_to_bf16(3.4e38f), 0x7f80);
}

static void test_count(void **state)
{
	struct rg_shape s = { .rank = 3, .dim = { INT64_C(1) << 31, INT64_C(1) << 31, 2 } };

	assert_int_equal(rg_shape_count(&s), -1);
	s.dim[2] = 1;
	assert_int_equal(rg_shape_count(&s), INT64_C(1) << 62);
	assert_int_equal(rg_tensor_bytes(RG_F32, &s), -1);
	assert_int_equal(rg_tensor_bytes(RG_U4, &s), -1);
	assert_int_equal(rg_tensor_bytes(RG_U8, &s), INT64_C(1) << 62);
	s.dim[2] = 0;
	assert_int_equal(rg_shape_count(&s), 0);
	s.dim[2] = -1;
	assert_int_equal(rg_shape_count(&s), -1);
	s = (struct rg_shape){ .rank = 1, .dim = { 5 } };
	assert_int_equal(rg_tensor_bytes(RG_I4, &s), 3);
	assert_int_equal(rg_tensor_bytes(RG_I2, &s), 2);
	assert_int_equal(rg_tensor_bytes(RG_STRING, &s), (int64_t)sizeof(char *) * rg_shape_count(&s));
	s.rank = 0;
	assert_int_equal(rg_shape_count(&s), 1);
}

static void test_text(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s, back;
	char text[160];

	assert_int_equal(rg_shape_parse("1x3,640X0", &s, &err), 0);
	assert_string_equal(rg_shape_text(text, &s), "1x3x640x0");
	s.rank = 0;
	assert_string_equal(rg_shape_text(text, &s), "scalar");
	assert_int_equal(rg_shape_parse(text, &back, &err), 0);
	assert_int_equal(back.rank, 0);
	/* The longest shape stays within the promised buffer. */
	s.rank = RG_MAX_RANK;
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = INT64_MAX;
	assert_true(strlen(rg_shape_text(text, &s)) < sizeof(text));
	static const char *const bad[] = { "", "x", "1x", "1xx2", "-1", "1x-2", "1 2", "a", "1x2b",
					   "99999999999999999999", "1x1x1x1x1x1x1x1x1x1x1x1x1" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rg_error_clear(&err);
		assert_int_equal(rg_shape_parse(bad[i], &s, &err), -EINVAL);
		assert_true(err.message[0] != '\0');
	}
}

/* Broadcasting by its definition: pad with ones on the left, then look at each
 * dimension; strides checked by walking every element. */
static void test_broadcast(void **state)
{
	int possible = 0, impossible = 0;

	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t stream = rg_rng_stream(i, "broadcast"), at = 0;
		struct rg_shape s[2], out;
		int64_t want[RG_MAX_RANK], stride[RG_MAX_RANK], dense[RG_MAX_RANK], pos[RG_MAX_RANK] = { 0 };
		int rank;
		bool ok = true;

		for (int k = 0; k < 2; k++) {
			s[k] = (struct rg_shape){ .rank = (int)rg_rng_integer(stream, at++, 0, 4) };
			for (int d = 0; d < s[k].rank; d++)
				s[k].dim[d] = rg_rng_integer(stream, at++, 0, 2);
		}
		rank = s[0].rank > s[1].rank ? s[0].rank : s[1].rank;
		for (int d = 0; d < rank; d++) {
			int da = d - (rank - s[0].rank), db = d - (rank - s[1].rank);
			int64_t a = da < 0 ? 1 : s[0].dim[da], b = db < 0 ? 1 : s[1].dim[db];

			if (a == b || b == 1)
				want[d] = a;
			else if (a == 1)
				want[d] = b;
			else
				ok = false;
		}
		assert_int_equal(rg_shape_broadcast(&s[0], &s[1], &out), ok);
		ok ? possible++ : impossible++;
		if (!ok)
			continue;
		assert_int_equal(out.rank, rank);
		assert_memory_equal(out.dim, want, (size_t)rank * sizeof(want[0]));
		rg_shape_broadcast_strides(&s[0], &out, stride);
		rg_shape_strides(&s[0], dense);
		for (int64_t n = rg_shape_count(&out); n > 0; n--) {
			int64_t got = 0, expect = 0;

			for (int d = 0; d < rank; d++) {
				int da = d - (rank - s[0].rank);

				got += pos[d] * stride[d];
				if (da >= 0)
					expect += (s[0].dim[da] == 1 ? 0 : pos[d]) * dense[da];
			}
			assert_int_equal(got, expect);
			for (int d = rank - 1; d >= 0 && ++pos[d] == out.dim[d]; d--)
				pos[d] = 0;
		}
	}
	assert_true(possible > 1000 && impossible > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtype_names), cmocka_unit_test(test_f16_exhaustive),
		cmocka_unit_test(test_f16_rounding), cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_count), cmocka_unit_test(test_text),
		cmocka_unit_test(test_broadcast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
