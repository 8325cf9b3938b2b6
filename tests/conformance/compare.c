/* Holds a tensor against the expected one; see compare.h. */
#include "tests/conformance/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool numbers_agree(double got, double want, double rtol, double atol)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (isinf(want) || isinf(got))
		return got == want;
	return fabs(got - want) <= atol + rtol * fabs(want);
}

double tensor_number(const struct rg_tensor *t, int64_t i)
{
	const void *d = t->data;

	switch (t->dtype) {
	case RG_F32:
	case RG_C64:
		return ((const float *)d)[i];
	case RG_F64:
	case RG_C128:
		return ((const double *)d)[i];
	case RG_F16:
		return rg_f16_to_f32(((const uint16_t *)d)[i]);
	case RG_BF16:
		return rg_bf16_to_f32(((const uint16_t *)d)[i]);
	case RG_U8:
	case RG_BOOL:
		return ((const uint8_t *)d)[i];
	case RG_I8:
		return ((const int8_t *)d)[i];
	case RG_U16:
		return ((const uint16_t *)d)[i];
	case RG_I16:
		return ((const int16_t *)d)[i];
	case RG_U32:
		return ((const uint32_t *)d)[i];
	case RG_I32:
		return ((const int32_t *)d)[i];
	case RG_U64:
		return (double)((const uint64_t *)d)[i];
	case RG_I64:
		return (double)((const int64_t *)d)[i];
	default:
		return NAN;
	}
}

static bool is_inexact(enum rg_dtype t)
{
	return t == RG_F32 || t == RG_F64 || t == RG_F16 || t == RG_BF16 || t == RG_C64 || t == RG_C128;
}

/* First number that differs, of `count`, or -1. */
static int64_t first_difference(const struct rg_tensor *got, const struct rg_tensor *want, int64_t count,
				double rtol, double atol)
{
	size_t size = rg_dtype_bytes(want->dtype);

	if (want->dtype == RG_STRING) {
		const char *const *x = got->data, *const *y = want->data;

		for (int64_t i = 0; i < count; i++)
			if (strcmp(x[i] ? x[i] : "", y[i] ? y[i] : ""))
				return i;
		return -1;
	}
	if (is_inexact(want->dtype)) {
		for (int64_t i = 0; i < count; i++)
			if (!numbers_agree(tensor_number(got, i), tensor_number(want, i), rtol, atol))
				return i;
		return -1;
	}
	for (size_t i = 0; i < (size_t)count; i++)
		if (memcmp((const char *)got->data + i * size, (const char *)want->data + i * size, size))
			return (int64_t)i;
	return -1;
}

bool tensors_agree(const struct rg_tensor *got, const struct rg_tensor *want, double rtol, double atol,
		   char *why, size_t why_size)
{
	char a[160], b[160];
	int64_t count, at, bytes;

	if (got->dtype != want->dtype) {
		snprintf(why, why_size, "type %s, expected %s", rg_dtype_name(got->dtype),
			 rg_dtype_name(want->dtype));
		return false;
	}
	if (!rg_shape_equal(&got->shape, &want->shape)) {
		snprintf(why, why_size, "shape %s, expected %s", rg_shape_text(a, &got->shape),
			 rg_shape_text(b, &want->shape));
		return false;
	}
	bytes = rg_tensor_bytes(want->dtype, &want->shape);
	if (bytes < 0) {
		snprintf(why, why_size, "type %s cannot be compared", rg_dtype_name(want->dtype));
		return false;
	}
	if (bytes == 0)
		return true;
	if (!got->data || !want->data) {
		snprintf(why, why_size, "no data");
		return false;
	}
	if (rg_dtype_bytes(want->dtype) == 0) { /* packed: whole bytes */
		if (memcmp(got->data, want->data, (size_t)bytes) == 0)
			return true;
		snprintf(why, why_size, "packed elements differ");
		return false;
	}
	count = rg_shape_count(&want->shape);
	if (want->dtype == RG_C64 || want->dtype == RG_C128)
		count *= 2;
	at = first_difference(got, want, count, rtol, atol);
	if (at < 0)
		return true;
	snprintf(why, why_size, "element %" PRId64 " of %" PRId64 " is %.9g, expected %.9g", at, count,
		 tensor_number(got, at), tensor_number(want, at));
	return false;
}

/* The place of a number in the order of its type: neighbours differ by one, and
 * both zeros are 0. `bits` holds a sign and a magnitude of `width` bits. */
static int64_t place_of(uint64_t bits, int width)
{
	uint64_t sign = UINT64_C(1) << (width - 1);

	return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

static int64_t place_at(const struct rg_tensor *t, int64_t i)
{
	uint64_t u64;
	uint32_t u32;

	switch (t->dtype) {
	case RG_F32:
	case RG_C64:
		memcpy(&u32, (const float *)t->data + i, sizeof(u32));
		return place_of(u32, 32);
	case RG_F64:
	case RG_C128:
		memcpy(&u64, (const double *)t->data + i, sizeof(u64));
		return place_of(u64, 64);
	default:
		return place_of(((const uint16_t *)t->data)[i], 16);
	}
}

int64_t tensors_ulp(const struct rg_tensor *got, const struct rg_tensor *want)
{
	int64_t count = rg_shape_count(&want->shape), most = -1;

	if (!is_inexact(want->dtype) || count <= 0 || !got->data || !want->data)
		return -1;
	if (want->dtype == RG_C64 || want->dtype == RG_C128)
		count *= 2;
	for (int64_t i = 0; i < count; i++) {
		int64_t a = place_at(got, i), b = place_at(want, i), d;

		if (isnan(tensor_number(got, i)) && isnan(tensor_number(want, i)))
			d = 0;
		else if (__builtin_sub_overflow(a, b, &d) || d == INT64_MIN)
			d = INT64_MAX;
		if (d < 0)
			d = -d;
		most = d > most ? d : most;
	}
	return most;
}
