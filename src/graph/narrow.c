/* Codes of the narrow element types. */
#include "graph/narrow.h"

#include <math.h>

/* What the codes at the end of a float format mean. */
enum special {
	IEEE,   /* infinity and NaNs have the largest exponent to themselves */
	ONE_NAN,/* the largest code of each sign is NaN, no infinity */
	UZ,     /* unsigned zero: the code of -0 is NaN, no infinity */
	NONE,   /* numbers only */
};

struct format {
	int mantissa, bias, bits;
	unsigned max;   /* code of the largest number */
	enum special special;
};

static const struct format formats[RG_DTYPE_COUNT] = {
	[RG_F8E4M3FN] = { 3, 7, 8, 0x7e, ONE_NAN },
	[RG_F8E4M3FNUZ] = { 3, 8, 8, 0x7f, UZ },
	[RG_F8E5M2] = { 2, 15, 8, 0x7b, IEEE },
	[RG_F8E5M2FNUZ] = { 2, 16, 8, 0x7f, UZ },
	[RG_F4E2M1] = { 1, 1, 4, 0x7, NONE },
};

bool rg_dtype_is_narrow(enum rg_dtype t)
{
	return t >= RG_F8E4M3FN && t <= RG_I2;
}

static float decode_float(const struct format *f, unsigned code)
{
	unsigned sign = 1u << (f->bits - 1), rest = code & (sign - 1);
	int exponent = (int)(rest >> f->mantissa);
	float v = (float)(rest & ((1u << f->mantissa) - 1));

	if (f->special == UZ && code == sign)
		return -NAN; /* its code has the sign bit */
	if (rest > f->max)
		return f->special == IEEE && rest == f->max + 1 ? (code & sign ? -INFINITY : INFINITY) :
								 (code & sign ? -NAN : NAN);
	if (exponent) /* a normal one has a hidden bit */
		v += (float)(1u << f->mantissa);
	v = ldexpf(v, (exponent ? exponent : 1) - f->bias - f->mantissa);
	return code & sign ? -v : v;
}

float rg_narrow_decode(enum rg_dtype t, unsigned code)
{
	int bits = rg_dtype_bits(t);

	if (t == RG_F8E8M0)
		return code == 0xff ? NAN : ldexpf(1, (int)code - 127);
	if (rg_dtype_is_float(t))
		return decode_float(&formats[t], code);
	return (float)(rg_dtype_is_signed(t) && code >> (bits - 1) ? (int)code - (1 << bits) : (int)code);
}

static unsigned encode_float(const struct format *f, double v, bool saturate)
{
	unsigned sign = signbit(v) ? 1u << (f->bits - 1) : 0, minus_zero = 1u << (f->bits - 1), code;
	int exponent;
	double a = fabs(v);

	if (isnan(v))
		return f->special == UZ ? minus_zero : f->special == NONE ? sign ^ minus_zero :
		       sign | (f->max + (f->special == IEEE ? 3 : 1));
	if (a == 0)
		return f->special == UZ ? 0 : sign;
	/* In units of the last place that the format has there. The code counts
	 * those units, the hidden bit included, so a carry goes where it should. */
	exponent = isinf(v) ? 1024 : ilogb(a);
	if (exponent < 1 - f->bias)
		exponent = 1 - f->bias;
	code = isinf(v) ? f->max + 1 :
	       ((unsigned)(exponent + f->bias - 1) << f->mantissa) +
	       (unsigned)rint(ldexp(a, f->mantissa - exponent));
	if (code > f->max) {
		if (saturate || f->special == NONE)
			code = f->max;
		else if (f->special == UZ)
			return minus_zero;
		else
			code = f->max + 1;
	}
	return f->special == UZ && code == 0 ? 0 : sign | code;
}

static unsigned encode_e8m0(double v, struct rg_narrow_rule rule)
{
	double a = fabs(v), rest;
	int exponent;

	if (isnan(v))
		return 0xff;
	if (a < 0x1p-127)
		return rule.saturate ? 0 : 0xff;
	if (a > 0x1p127)
		return rule.saturate ? 0xfe : 0xff;
	exponent = ilogb(a);
	rest = ldexp(a, -exponent); /* in [1, 2) */
	if (rule.round == RG_ROUND_UP ? rest > 1 : rule.round == RG_ROUND_NEAREST && rest >= 1.5)
		exponent++;
	return (unsigned)(exponent + 127);
}

unsigned rg_narrow_encode(enum rg_dtype t, double v, struct rg_narrow_rule rule)
{
	unsigned mask = (1u << rg_dtype_bits(t)) - 1;

	if (t == RG_F8E8M0)
		return encode_e8m0(v, rule);
	if (rg_dtype_is_float(t))
		return encode_float(&formats[t], v, rule.saturate);
	/* Beyond 2^63 a double is a multiple of 2^11: nothing is left of it. */
	return fabs(v) < 0x1p63 ? (unsigned)(uint64_t)(int64_t)v & mask : 0;
}
