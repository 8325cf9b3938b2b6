/*
 * Elementwise operators of two inputs with broadcasting: arithmetic,
 * comparison, logic, bits, PRelu.
 *
 * One loop an operator and type. Each has a contiguous form and one for a
 * scalar on either side, which is what bias and scale broadcasts turn into
 * once dimensions are merged (rg_walk), and which compilers vectorise.
 */
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "graph/op-legacy.h"
#include "kernels/ref/binary.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* x and z are the elements, T their type, R the result's. */
#define LOOP(NAME, SUFFIX, CTYPE, RTYPE, EXPR) \
	static void NAME##_##SUFFIX(const void *pa, int64_t sa, const void *pb, int64_t sb, void *py, \
				    int64_t n) \
	{ \
		typedef CTYPE T; \
		typedef RTYPE R; \
		const T *a = pa, *b = pb; \
		R *y = py; \
		if (sa == 1 && sb == 1) { \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i], z = b[i]; \
				y[i] = (R)(EXPR); \
			} \
		} else if (sa == 1 && sb == 0) { \
			const T z = *b; \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i]; \
				y[i] = (R)(EXPR); \
			} \
		} else if (sa == 0 && sb == 1) { \
			const T x = *a; \
			for (int64_t i = 0; i < n; i++) { \
				const T z = b[i]; \
				y[i] = (R)(EXPR); \
			} \
		} else { \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i * sa], z = b[i * sb]; \
				y[i] = (R)(EXPR); \
			} \
		} \
	}

#define FLOAT_LOOPS(NAME, EXPR) LOOP(NAME, f32, float, float, EXPR) LOOP(NAME, f64, double, double, EXPR)
#define FLOAT_TESTS(NAME, EXPR) LOOP(NAME, f32, float, uint8_t, EXPR) LOOP(NAME, f64, double, uint8_t, EXPR)
#define SINT_LOOPS(NAME, EXPR) \
	LOOP(NAME, i8, int8_t, int8_t, EXPR) LOOP(NAME, i16, int16_t, int16_t, EXPR) \
	LOOP(NAME, i32, int32_t, int32_t, EXPR) LOOP(NAME, i64, int64_t, int64_t, EXPR)
#define UINT_LOOPS(NAME, EXPR) \
	LOOP(NAME, u8, uint8_t, uint8_t, EXPR) LOOP(NAME, u16, uint16_t, uint16_t, EXPR) \
	LOOP(NAME, u32, uint32_t, uint32_t, EXPR) LOOP(NAME, u64, uint64_t, uint64_t, EXPR)
#define INT_LOOPS(NAME, EXPR) SINT_LOOPS(NAME, EXPR) UINT_LOOPS(NAME, EXPR)
#define INT_TESTS(NAME, EXPR) \
	LOOP(NAME, i8, int8_t, uint8_t, EXPR) LOOP(NAME, i16, int16_t, uint8_t, EXPR) \
	LOOP(NAME, i32, int32_t, uint8_t, EXPR) LOOP(NAME, i64, int64_t, uint8_t, EXPR) \
	LOOP(NAME, u8, uint8_t, uint8_t, EXPR) LOOP(NAME, u16, uint16_t, uint8_t, EXPR) \
	LOOP(NAME, u32, uint32_t, uint8_t, EXPR) LOOP(NAME, u64, uint64_t, uint8_t, EXPR)

#define FLOAT_ENTRIES(NAME) [RG_F32] = NAME##_f32, [RG_F64] = NAME##_f64
#define INT_ENTRIES(NAME) \
	[RG_I8] = NAME##_i8, [RG_I16] = NAME##_i16, [RG_I32] = NAME##_i32, [RG_I64] = NAME##_i64, \
	[RG_U8] = NAME##_u8, [RG_U16] = NAME##_u16, [RG_U32] = NAME##_u32, [RG_U64] = NAME##_u64

#define DEFINE(NAME, ...) \
	static const struct rg_ref_binary NAME##_table = { { __VA_ARGS__ } }; \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		return run_table(c, &NAME##_table, err); \
	}

/* Wrapping arithmetic: through uint64_t, whose overflow is defined, and cut. */
#define WRAP(OP) ((uint64_t)x OP (uint64_t)z)
/* numpy's minimum and maximum: NaN on either side is the result. */
#define FLOAT_MIN ((x < z) | isnan(x) ? x : z)
#define FLOAT_MAX ((x > z) | isnan(x) ? x : z)

FLOAT_LOOPS(add, x + z)
INT_LOOPS(add, WRAP(+))
FLOAT_LOOPS(sub, x - z)
INT_LOOPS(sub, WRAP(-))
FLOAT_LOOPS(mul, x * z)
INT_LOOPS(mul, WRAP(*))
FLOAT_LOOPS(div, x / z)
/* The smallest integer over -1 wraps; a zero divisor was found before. */
SINT_LOOPS(div, z == -1 ? (uint64_t)0 - (uint64_t)x : (uint64_t)(x / z))
UINT_LOOPS(div, x / z)
FLOAT_LOOPS(min, FLOAT_MIN)
INT_LOOPS(min, x < z ? x : z)
FLOAT_LOOPS(max, FLOAT_MAX)
INT_LOOPS(max, x > z ? x : z)
FLOAT_LOOPS(prelu, x < 0 ? x * z : x)
SINT_LOOPS(prelu, x < 0 ? WRAP(*) : (uint64_t)x)
UINT_LOOPS(prelu, ((void)z, x)) /* none is below 0 */

/* ---- remainders: the sign of the divisor (mod) or of the dividend (rem) ---- */

/* Python's % on floats; C's fmod is exact, so one correction is enough. */
#define FLOORMOD(F, S) \
	static S floormod_##F(S x, S z) \
	{ \
		S r = fmod(x, z); \
		if (r == 0) \
			return copysign((S)0, z); \
		return (r < 0) != (z < 0) ? r + z : r; \
	}
FLOORMOD(f32, float)
FLOORMOD(f64, double)
LOOP(mod, f32, float, float, floormod_f32(x, z))
LOOP(mod, f64, double, double, floormod_f64(x, z))
SINT_LOOPS(mod, z == -1 ? 0 : x % z && (x % z < 0) != (z < 0) ? x % z + z : x % z)
UINT_LOOPS(mod, x % z)
FLOAT_LOOPS(rem, fmod(x, z))
SINT_LOOPS(rem, z == -1 ? 0 : x % z)
UINT_LOOPS(rem, x % z)

/* ---- bits; a shift by the width or more, or by less than 0, leaves the fill ---- */

#define BITS ((T)(8 * sizeof(T)))
INT_LOOPS(bitand, x & z)
INT_LOOPS(bitor, x | z)
INT_LOOPS(bitxor, x ^ z)
SINT_LOOPS(shl, z < 0 || z >= BITS ? 0 : (uint64_t)x << z)
UINT_LOOPS(shl, z >= BITS ? 0 : (uint64_t)x << z)
SINT_LOOPS(shr, z < 0 || z >= BITS ? (x < 0 ? -1 : 0) : x >> z)
UINT_LOOPS(shr, z >= BITS ? 0 : x >> z)

/* ---- tests ---- */

FLOAT_TESTS(eq, x == z)
INT_TESTS(eq, x == z)
FLOAT_TESTS(gt, x > z)
INT_TESTS(gt, x > z)
FLOAT_TESTS(lt, x < z)
INT_TESTS(lt, x < z)
FLOAT_TESTS(ge, x >= z)
INT_TESTS(ge, x >= z)
FLOAT_TESTS(le, x <= z)
INT_TESTS(le, x <= z)
LOOP(and, b, uint8_t, uint8_t, x && z)
LOOP(or, b, uint8_t, uint8_t, x || z)
LOOP(xor, b, uint8_t, uint8_t, !x != !z)
LOOP(same, b, uint8_t, uint8_t, !x == !z)

/* float16 and bfloat16: a chunk at a time through the float loop. */
static void run_half(const struct rg_walk *w, const struct rg_tensor *a, const struct rg_tensor *b,
		     const struct rg_tensor *y, rg_ref_binary_loop *loop)
{
	float fa[RG_REF_CHUNK], fb[RG_REF_CHUNK], fy[RG_REF_CHUNK];
	const uint16_t *pa = (const uint16_t *)a->data + w->at[0], *pb = (const uint16_t *)b->data + w->at[1];
	bool f16 = a->dtype == RG_F16;

	for (int64_t i = 0; i < w->inner; i += RG_REF_CHUNK) {
		int64_t n = w->inner - i < RG_REF_CHUNK ? w->inner - i : RG_REF_CHUNK;

		for (int64_t j = 0; j < n; j++) {
			uint16_t ha = pa[(i + j) * w->step[0]], hb = pb[(i + j) * w->step[1]];

			fa[j] = f16 ? rg_f16_to_f32(ha) : rg_bf16_to_f32(ha);
			fb[j] = f16 ? rg_f16_to_f32(hb) : rg_bf16_to_f32(hb);
		}
		if (y->dtype == RG_BOOL) {
			loop(fa, 1, fb, 1, (uint8_t *)y->data + w->out + i, n);
			continue;
		}
		loop(fa, 1, fb, 1, fy, n);
		for (int64_t j = 0; j < n; j++)
			((uint16_t *)y->data)[w->out + i + j] = f16 ? rg_f32_to_f16(fy[j]) :
								      rg_f32_to_bf16(fy[j]);
	}
}

void rg_ref_binary_run(const struct rg_ref_binary *table, const struct rg_tensor *a,
		       const struct rg_tensor *b, const struct rg_tensor *y)
{
	bool half = a->dtype == RG_F16 || a->dtype == RG_BF16;
	rg_ref_binary_loop *loop = table->loops[half ? RG_F32 : a->dtype];
	const struct rg_shape *shapes[] = { &a->shape, &b->shape };
	int64_t in_bytes = (int64_t)rg_dtype_bytes(a->dtype), out_bytes = (int64_t)rg_dtype_bytes(y->dtype);
	struct rg_walk w;

	rg_walk_start(&w, &y->shape, 2, shapes);
	while (rg_walk_next(&w)) {
		if (half)
			run_half(&w, a, b, y, loop);
		else
			loop((const char *)a->data + w.at[0] * in_bytes, w.step[0],
			     (const char *)b->data + w.at[1] * in_bytes, w.step[1],
			     (char *)y->data + w.out * out_bytes, w.inner);
	}
}

static int run_table(const struct rg_call *c, const struct rg_ref_binary *table, struct rg_error *err)
{
	struct rg_tensor b = c->in[1];

	if (!rg_op_legacy_operand(c->node, &c->in[0].shape, &c->in[1].shape, &b.shape))
		return rg_error_set(err, -EINVAL, "the shapes do not broadcast");
	rg_ref_binary_run(table, &c->in[0], &b, &c->out[0]);
	return 0;
}

const struct rg_ref_binary rg_ref_add = { { FLOAT_ENTRIES(add), INT_ENTRIES(add) } };

static int run_add(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_table(c, &rg_ref_add, err);
}

DEFINE(sub, FLOAT_ENTRIES(sub), INT_ENTRIES(sub))
DEFINE(mul, FLOAT_ENTRIES(mul), INT_ENTRIES(mul))
DEFINE(bitand, INT_ENTRIES(bitand))
DEFINE(bitor, INT_ENTRIES(bitor))
DEFINE(bitxor, INT_ENTRIES(bitxor))
DEFINE(eq, FLOAT_ENTRIES(eq), INT_ENTRIES(eq), [RG_BOOL] = same_b)
DEFINE(gt, FLOAT_ENTRIES(gt), INT_ENTRIES(gt))
DEFINE(lt, FLOAT_ENTRIES(lt), INT_ENTRIES(lt))
DEFINE(ge, FLOAT_ENTRIES(ge), INT_ENTRIES(ge))
DEFINE(le, FLOAT_ENTRIES(le), INT_ENTRIES(le))
DEFINE(and, [RG_BOOL] = and_b)
DEFINE(or, [RG_BOOL] = or_b)
DEFINE(xor, [RG_BOOL] = xor_b)
const struct rg_ref_binary rg_ref_min = { { FLOAT_ENTRIES(min), INT_ENTRIES(min) } };
const struct rg_ref_binary rg_ref_max = { { FLOAT_ENTRIES(max), INT_ENTRIES(max) } };
static const struct rg_ref_binary div_table = { { FLOAT_ENTRIES(div), INT_ENTRIES(div) } };
static const struct rg_ref_binary mod_table = { { FLOAT_ENTRIES(mod), INT_ENTRIES(mod) } };
static const struct rg_ref_binary rem_table = { { FLOAT_ENTRIES(rem), INT_ENTRIES(rem) } };
static const struct rg_ref_binary shl_table = { { INT_ENTRIES(shl) } };
static const struct rg_ref_binary shr_table = { { INT_ENTRIES(shr) } };
static const struct rg_ref_binary prelu_table = { { FLOAT_ENTRIES(prelu), INT_ENTRIES(prelu) } };

#define HAS_ZERO_CASE(TYPE, CTYPE) \
	case TYPE: \
		for (int64_t i = 0; i < n; i++) \
			if (((const CTYPE *)t->data)[i] == 0) \
				return true; \
		return false;

static bool int_has_zero(const struct rg_tensor *t)
{
	int64_t n = rg_shape_count(&t->shape);

	switch (t->dtype) {
	RG_FOR_INTS(HAS_ZERO_CASE)
	default:
		return false;
	}
}

/* Integers cannot say "not a number": dividing by zero ends the run. */
static int check_divisor(const struct rg_call *c, struct rg_error *err)
{
	if (rg_shape_count(&c->out[0].shape) > 0 && int_has_zero(&c->in[1]))
		return rg_error_set(err, -EDOM, "integer division by zero");
	return 0;
}

static int run_div(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = check_divisor(c, err);

	return rc ? rc : run_table(c, &div_table, err);
}

static int run_mod(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int rc = check_divisor(c, err);

	return rc ? rc : run_table(c, rg_node_int(c->node, "fmod", 0) ? &rem_table : &mod_table, err);
}

static int run_shift(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool left = !strcmp(rg_node_string(c->node, "direction", ""), "LEFT");

	return run_table(c, left ? &shl_table : &shr_table, err);
}

static int run_prelu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_tensor slope = c->in[1];

	if (!rg_op_legacy_slope(c->node, &c->in[0].shape, &c->in[1].shape, &slope.shape))
		return rg_error_set(err, -EINVAL, "the slope does not broadcast to the input");
	rg_ref_binary_run(&prelu_table, &c->in[0], &slope, &c->out[0]);
	return 0;
}

static bool has_loop(const struct rg_call *c, const struct rg_ref_binary *table)
{
	enum rg_dtype t = c->in[0].dtype;

	if (t == RG_F16 || t == RG_BF16)
		t = RG_F32;
	return (unsigned)t < RG_DTYPE_COUNT && table->loops[t] && c->in[1].dtype == c->in[0].dtype;
}

static bool takes_num(const struct rg_call *c)
{
	return has_loop(c, &rg_ref_add);
}

static bool takes_int(const struct rg_call *c)
{
	return has_loop(c, &bitand_table);
}

static bool takes_equal(const struct rg_call *c)
{
	return has_loop(c, &eq_table);
}

static bool takes_bool(const struct rg_call *c)
{
	return has_loop(c, &and_table);
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Add", takes_num, run_add),
	K("And", takes_bool, run_and),
	K("BitShift", takes_int, run_shift),
	K("BitwiseAnd", takes_int, run_bitand),
	K("BitwiseOr", takes_int, run_bitor),
	K("BitwiseXor", takes_int, run_bitxor),
	K("Div", takes_num, run_div),
	K("Equal", takes_equal, run_eq),
	K("Greater", takes_num, run_gt),
	K("GreaterOrEqual", takes_num, run_ge),
	K("Less", takes_num, run_lt),
	K("LessOrEqual", takes_num, run_le),
	K("Mod", takes_num, run_mod),
	K("Mul", takes_num, run_mul),
	K("Or", takes_bool, run_or),
	K("PRelu", takes_num, run_prelu),
	K("Sub", takes_num, run_sub),
	K("Xor", takes_bool, run_xor),
};
RG_KERNEL_TABLE(rg_kernels_ref_binary, kernels);
