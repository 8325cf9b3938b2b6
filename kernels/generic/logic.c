/* Comparisons of float32, int32 and int64, logic of booleans, and Where. */
#include "kernels/generic/ewise-kernel.h"
#include "kernels/tables.h"

#define TESTS(NAME, EXPR) \
	RG_EW_PAIR(NAME##_f32, float, uint8_t, EXPR) \
	RG_EW_PAIR(NAME##_i32, int32_t, uint8_t, EXPR) \
	RG_EW_PAIR(NAME##_i64, int64_t, uint8_t, EXPR)
TESTS(equal, x == z)
TESTS(greater, x > z)
TESTS(greater_equal, x >= z)
TESTS(less, x < z)
TESTS(less_equal, x <= z)
/* Any byte but 0 is true. */
RG_EW_PAIR(equal_bool, uint8_t, uint8_t, !x == !z)
RG_EW_PAIR(and_bool, uint8_t, uint8_t, (x != 0) & (z != 0))
RG_EW_PAIR(or_bool, uint8_t, uint8_t, (x | z) != 0)
RG_EW_PAIR(xor_bool, uint8_t, uint8_t, !x != !z)

static void not_bool(void *out, const struct rg_ew_args *p, int64_t n)
{
	const uint8_t *x = p->in[0];
	uint8_t *y = out;

	RG_EW_LOOP
	for (int64_t i = 0; i < n; i++)
		y[i] = !x[i];
}

static int pair(struct rg_ew *e, const struct rg_call *c, const int *in, rg_ew_fn *fn, enum rg_dtype t)
{
	if (c->node->version < 7 || !fn || !rg_ew_is(c, 0, t) || !rg_ew_is(c, 1, t))
		return -ENOTSUP;
	return rg_ew_apply(e, fn, RG_EW_EITHER, 2, in, 0, 0, 1, 2);
}

#define NODE(NAME, BOOL) \
	static int node_##NAME(struct rg_ew *e, const struct rg_call *c, const int *in) \
	{ \
		switch (c->in[0].dtype) { \
		case RG_F32: return pair(e, c, in, NAME##_f32, RG_F32); \
		case RG_I32: return pair(e, c, in, NAME##_i32, RG_I32); \
		case RG_I64: return pair(e, c, in, NAME##_i64, RG_I64); \
		default: return pair(e, c, in, BOOL, RG_BOOL); \
		} \
	}
NODE(equal, equal_bool)
NODE(greater, NULL)
NODE(greater_equal, NULL)
NODE(less, NULL)
NODE(less_equal, NULL)

#define LOGIC(NAME) \
	static int node_##NAME(struct rg_ew *e, const struct rg_call *c, const int *in) \
	{ \
		return pair(e, c, in, NAME##_bool, RG_BOOL); \
	}
LOGIC(and)
LOGIC(or)
LOGIC(xor)

static int node_not(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	return rg_ew_is(c, 0, RG_BOOL) ? rg_ew_apply(e, not_bool, RG_EW_ROWS, 1, in, 0, 0, 1, 1) : -ENOTSUP;
}

/* ---- Where, by element size; either choice may be one element ---- */


/* Both choices are read before the condition, so that the loop vectorises. */
#define WHERE(SUFFIX, T) \
	static void where_##SUFFIX(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const uint8_t *c = p->in[0]; \
		const T *a = p->in[1], *b = p->in[2]; \
		const T va = *a, vb = *b; \
		T *y = out; \
\
		if (p->single == 0) \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i], z = b[i]; \
\
				y[i] = c[i] ? x : z; \
			} \
		else if (p->single == 2) \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T z = b[i]; \
\
				y[i] = c[i] ? va : z; \
			} \
		else if (p->single == 4) \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i]; \
\
				y[i] = c[i] ? x : vb; \
			} \
		else \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) \
				y[i] = c[i] ? va : vb; \
	}
WHERE(1, uint8_t)
WHERE(2, uint16_t)
WHERE(4, uint32_t)
WHERE(8, uint64_t)

static int node_where(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	size_t size = rg_dtype_bytes(c->out[0].dtype);
	rg_ew_fn *fn = size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : size == 8 ? where_8 : NULL;

	if (!fn || c->out[0].dtype == RG_STRING || !rg_ew_is(c, 0, RG_BOOL) || !rg_ew_is(c, 1, c->out[0].dtype) ||
	    !rg_ew_is(c, 2, c->out[0].dtype))
		return -ENOTSUP;
	return rg_ew_apply(e, fn, 1 << 0 | 1 << 2 | 1 << 4 | 1 << 6, 3, in, 0, 0, (int)size, 2);
}

#define LIST(X) \
	X("", "And", and) X("", "Equal", equal) X("", "Greater", greater) \
	X("", "GreaterOrEqual", greater_equal) X("", "Less", less) X("", "LessOrEqual", less_equal) \
	X("", "Not", not) X("", "Or", or) X("", "Where", where) X("", "Xor", xor)
RG_EW_FAMILY(logic, LIST);
