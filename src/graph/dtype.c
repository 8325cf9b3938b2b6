/* Element types: names, sizes, and the conversions of half-width floats. */
#include "graph/dtype.h"

#include <string.h>
#include <strings.h>

enum { FLOATING = 1, INTEGER = 2, SIGNED = 4 };

static const struct {
	const char *name;
	unsigned char bits, what;
} types[RG_DTYPE_COUNT] = {
	[RG_UNDEFINED] = { "undefined", 0, 0 },
	[RG_F32] = { "float32", 32, FLOATING | SIGNED },
	[RG_U8] = { "uint8", 8, INTEGER },
	[RG_I8] = { "int8", 8, INTEGER | SIGNED },
	[RG_U16] = { "uint16", 16, INTEGER },
	[RG_I16] = { "int16", 16, INTEGER | SIGNED },
	[RG_I32] = { "int32", 32, INTEGER | SIGNED },
	[RG_I64] = { "int64", 64, INTEGER | SIGNED },
	[RG_STRING] = { "string", 8 * sizeof(char *), 0 },
	[RG_BOOL] = { "bool", 8, 0 },
	[RG_F16] = { "float16", 16, FLOATING | SIGNED },
	[RG_F64] = { "float64", 64, FLOATING | SIGNED },
	[RG_U32] = { "uint32", 32, INTEGER },
	[RG_U64] = { "uint64", 64, INTEGER },
	[RG_C64] = { "complex64", 64, 0 },
	[RG_C128] = { "complex128", 128, 0 },
	[RG_BF16] = { "bfloat16", 16, FLOATING | SIGNED },
	[RG_F8E4M3FN] = { "float8e4m3fn", 8, FLOATING | SIGNED },
	[RG_F8E4M3FNUZ] = { "float8e4m3fnuz", 8, FLOATING | SIGNED },
	[RG_F8E5M2] = { "float8e5m2", 8, FLOATING | SIGNED },
	[RG_F8E5M2FNUZ] = { "float8e5m2fnuz", 8, FLOATING | SIGNED },
	[RG_U4] = { "uint4", 4, INTEGER },
	[RG_I4] = { "int4", 4, INTEGER | SIGNED },
	[RG_F4E2M1] = { "float4e2m1", 4, FLOATING | SIGNED },
	[RG_F8E8M0] = { "float8e8m0", 8, FLOATING },
	[RG_U2] = { "uint2", 2, INTEGER },
	[RG_I2] = { "int2", 2, INTEGER | SIGNED },
};

/* Other spellings: ONNX enumerators, numpy type codes (i8 counts bytes), short forms. */
static const struct {
	const char *name;
	enum rg_dtype type;
} aliases[] = {
	{ "float", RG_F32 }, { "single", RG_F32 }, { "f32", RG_F32 }, { "f4", RG_F32 },
	{ "double", RG_F64 }, { "f64", RG_F64 }, { "f8", RG_F64 },
	{ "half", RG_F16 }, { "f16", RG_F16 }, { "f2", RG_F16 }, { "bf16", RG_BF16 },
	{ "u8", RG_U64 }, { "u1", RG_U8 }, { "ubyte", RG_U8 },
	{ "i8", RG_I64 }, { "u2", RG_U16 }, { "u16", RG_U16 }, { "u4", RG_U32 }, { "u32", RG_U32 },
	{ "u64", RG_U64 }, { "i1", RG_I8 }, { "byte", RG_I8 }, { "i2", RG_I16 }, { "i16", RG_I16 },
	{ "i4", RG_I32 }, { "i32", RG_I32 }, { "i64", RG_I64 }, { "b1", RG_BOOL }, { "bool_", RG_BOOL },
	{ "boolean", RG_BOOL }, { "c8", RG_C64 }, { "c16", RG_C128 }, { "str", RG_STRING },
	{ "float8_e4m3fn", RG_F8E4M3FN }, { "float8_e4m3fnuz", RG_F8E4M3FNUZ },
	{ "float8_e5m2", RG_F8E5M2 }, { "float8_e5m2fnuz", RG_F8E5M2FNUZ },
	{ "float4_e2m1fn", RG_F4E2M1 }, { "float8_e8m0fnu", RG_F8E8M0 },
};

static bool known(enum rg_dtype t)
{
	return (unsigned)t < RG_DTYPE_COUNT;
}

const char *rg_dtype_name(enum rg_dtype t)
{
	return types[known(t) ? t : RG_UNDEFINED].name;
}

enum rg_dtype rg_dtype_parse(const char *name)
{
	char buf[32];
	size_t n;

	/* "tensor(float)" as operator schemas write it. */
	if (strncasecmp(name, "tensor(", 7) == 0) {
		n = strlen(name + 7);
		if (n < 2 || n > sizeof(buf) || name[7 + n - 1] != ')')
			return RG_UNDEFINED;
		memcpy(buf, name + 7, n - 1);
		buf[n - 1] = '\0';
		name = buf;
	}
	/* numpy's byte order: ours is little, and '|' where there is none. */
	if (*name == '<' || *name == '|' || *name == '=')
		name++;
	for (int t = 1; t < RG_DTYPE_COUNT; t++)
		if (strcasecmp(name, types[t].name) == 0)
			return (enum rg_dtype)t;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcasecmp(name, aliases[i].name) == 0)
			return aliases[i].type;
	return RG_UNDEFINED;
}

int rg_dtype_bits(enum rg_dtype t)
{
	return known(t) ? types[t].bits : 0;
}

size_t rg_dtype_bytes(enum rg_dtype t)
{
	int bits = rg_dtype_bits(t);

	return bits % 8 ? 0 : (size_t)bits / 8;
}

bool rg_dtype_is_float(enum rg_dtype t)
{
	return known(t) && types[t].what & FLOATING;
}

bool rg_dtype_is_int(enum rg_dtype t)
{
	return known(t) && types[t].what & INTEGER;
}

bool rg_dtype_is_signed(enum rg_dtype t)
{
	return known(t) && types[t].what & SIGNED;
}

static float float_of_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint32_t bits_of_float(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

float rg_f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exp = h >> 10 & 31, frac = h & 0x3ff;

	if (exp == 31)
		return float_of_bits(sign | 0x7f800000 | frac << 13);
	if (exp == 0) { /* zero or denormal: the value is frac * 2^-24, exact in float */
		float v = (float)frac * 0x1p-24f;
		return sign ? -v : v;
	}
	return float_of_bits(sign | (exp + 112) << 23 | frac << 13);
}

uint16_t rg_f32_to_f16(float f)
{
	uint32_t u = bits_of_float(f);
	uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
	uint32_t a = u & 0x7fffffff, sig, half, rest;
	int shift;

	if (a > 0x7f800000) /* NaN: quiet, with what fits of its payload */
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
	if (a >= 0x477ff000) /* 65520 and above round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (a >= 0x38800000) { /* normal */
		sig = a - 0x38000000;
		return (uint16_t)(sign | ((sig + 0xfff + (sig >> 13 & 1)) >> 13));
	}
	if (a < 0x33000000) /* below half of the smallest denormal */
		return sign;
	/* Denormal: shift the significand so that one unit is 2^-24. */
	shift = 126 - (int)(a >> 23);
	sig = (a & 0x7fffff) | 0x800000;
	half = 1u << (shift - 1);
	rest = sig & ((1u << shift) - 1);
	sig >>= shift;
	if (rest > half || (rest == half && sig & 1))
		sig++;
	return (uint16_t)(sign | sig);
}

float rg_bf16_to_f32(uint16_t h)
{
	return float_of_bits((uint32_t)h << 16);
}

uint16_t rg_f32_to_bf16(float f)
{
	uint32_t u = bits_of_float(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
