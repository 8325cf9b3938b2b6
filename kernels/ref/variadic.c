/*
 * Elementwise operators that are not one loop over two operands: Max, Min,
 * Mean, Sum of any number of inputs, Where, and Pow with its mixed types.
 */
#include <math.h>
#include <string.h>

#include "graph/op-legacy.h"
#include "kernels/ref/binary.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Elements of `t`, walked as if it had the output's shape, copied out. */
static void copy_broadcast(const struct rg_tensor *t, const struct rg_tensor *out)
{
	const struct rg_shape *shapes[] = { &t->shape };
	size_t size = rg_dtype_bytes(t->dtype);
	struct rg_walk w;

	rg_walk_start(&w, &out->shape, 1, shapes);
	while (rg_walk_next(&w)) {
		const char *from = (const char *)t->data + (size_t)w.at[0] * size;
		char *to = (char *)out->data + (size_t)w.out * size;

		if (w.step[0] == 1) {
			memcpy(to, from, (size_t)w.inner * size);
			continue;
		}
		for (int64_t i = 0; i < w.inner; i++)
			memcpy(to + (size_t)i * size, from + (size_t)(i * w.step[0]) * size, size);
	}
}

static int fold(const struct rg_call *c, const struct rg_ref_binary *table)
{
	if (c->node->n_in == 1) {
		copy_broadcast(&c->in[0], &c->out[0]);
		return 0;
	}
	rg_ref_binary_run(table, &c->in[0], &c->in[1], &c->out[0]);
	for (int k = 2; k < c->node->n_in; k++)
		rg_ref_binary_run(table, &c->out[0], &c->in[k], &c->out[0]);
	return 0;
}

static int run_min(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return fold(c, &rg_ref_min);
}

static int run_max(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return fold(c, &rg_ref_max);
}

/* Sums in double and rounds once. */
static int add_all(const struct rg_call *c, double divisor)
{
	double sum[RG_REF_CHUNK], buf[RG_REF_CHUNK];
	const struct rg_tensor *out = &c->out[0];
	int64_t total = rg_shape_count(&out->shape);

	for (int64_t i = 0; i < total; i += RG_REF_CHUNK) {
		int64_t n = total - i < RG_REF_CHUNK ? total - i : RG_REF_CHUNK;

		rg_ref_load_broadcast(&c->in[0], &out->shape, i, n, sum);
		for (int k = 1; k < c->node->n_in; k++) {
			rg_ref_load_broadcast(&c->in[k], &out->shape, i, n, buf);
			for (int64_t j = 0; j < n; j++)
				sum[j] += buf[j];
		}
		for (int64_t j = 0; j < n; j++)
			sum[j] /= divisor;
		rg_ref_store(out, i, 1, n, sum);
	}
	return 0;
}

static int run_sum(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	/* Two floats rounded once are the same either way, and this is residual adds. */
	if (c->node->n_in <= 2)
		return fold(c, &rg_ref_add);
	return add_all(c, 1);
}

static int run_mean(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return add_all(c, c->node->n_in);
}

/* ---- Where ---- */

#define SELECT(SIZE, CTYPE) \
	case SIZE: { \
		const CTYPE *x = (const CTYPE *)c->in[1].data + w.at[1]; \
		const CTYPE *z = (const CTYPE *)c->in[2].data + w.at[2]; \
		CTYPE *y = (CTYPE *)c->out[0].data + w.out; \
		for (int64_t i = 0; i < w.inner; i++) \
			y[i] = p[i * w.step[0]] ? x[i * w.step[1]] : z[i * w.step[2]]; \
		break; \
	}

static int run_where(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *shapes[] = { &c->in[0].shape, &c->in[1].shape, &c->in[2].shape };
	struct rg_walk w;

	rg_walk_start(&w, &c->out[0].shape, 3, shapes);
	while (rg_walk_next(&w)) {
		const uint8_t *p = (const uint8_t *)c->in[0].data + w.at[0];

		switch (rg_dtype_bytes(c->out[0].dtype)) {
		SELECT(1, uint8_t)
		SELECT(2, uint16_t)
		SELECT(4, uint32_t)
		SELECT(8, uint64_t)
		default:
			return rg_error_set(err, -EINVAL, "no selection for this element size");
		}
	}
	return 0;
}

/* ---- Pow: the result has the base's type, the exponent may have another ---- */

/* Wraps like repeated multiplication. The inverse of 0 is what cannot be. */
static bool pow_int(int64_t base, int64_t exp, int64_t *out)
{
	uint64_t r = 1, b = (uint64_t)base;

	if (exp < 0) {
		*out = base == 1 ? 1 : base == -1 ? (exp & 1 ? -1 : 1) : 0;
		return base != 0;
	}
	for (; exp; exp >>= 1) {
		if (exp & 1)
			r *= b;
		b *= b;
	}
	*out = (int64_t)r;
	return true;
}

static int64_t get_int(const struct rg_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case RG_I64:
	case RG_U64: /* an exponent beyond 2^63 does not differ in what comes of it */
		return ((const int64_t *)t->data)[i] < 0 && t->dtype == RG_U64 ?
			       INT64_MAX - 1 + (((const int64_t *)t->data)[i] & 1) :
			       ((const int64_t *)t->data)[i];
	default:
		return (int64_t)rg_ref_get(t, i);
	}
}

static void set_int(const struct rg_tensor *t, int64_t i, int64_t v)
{
	if (t->dtype == RG_I64)
		((int64_t *)t->data)[i] = v;
	else
		((int32_t *)t->data)[i] = (int32_t)(uint32_t)(uint64_t)v;
}

static int pow_ints(const struct rg_walk *w, const struct rg_tensor *a, const struct rg_tensor *b,
		    const struct rg_tensor *y, struct rg_error *err)
{
	int64_t v;

	for (int64_t i = 0; i < w->inner; i++) {
		if (!pow_int(get_int(a, w->at[0] + i * w->step[0]), get_int(b, w->at[1] + i * w->step[1]),
			     &v))
			return rg_error_set(err, -EDOM, "integer 0 to a negative power");
		set_int(y, w->out + i, v);
	}
	return 0;
}

/* An integer base to a floating exponent: cut towards zero, held in range. */
static void store_cut(const struct rg_tensor *y, int64_t i, double v)
{
	double top = y->dtype == RG_I64 ? 0x1p63 : 0x1p31;

	if (isnan(v))
		v = 0;
	if (v >= top)
		set_int(y, i, y->dtype == RG_I64 ? INT64_MAX : INT32_MAX);
	else if (v <= -top)
		set_int(y, i, y->dtype == RG_I64 ? INT64_MIN : INT32_MIN);
	else
		set_int(y, i, (int64_t)v);
}

static void pow_f32(const struct rg_walk *w, const float *a, const float *b, float *restrict y)
{
	if (w->step[0] == 1 && w->step[1] == 0 && *b == 2) { /* the square of layer norms */
		for (int64_t i = 0; i < w->inner; i++)
			y[i] = a[i] * a[i];
		return;
	}
	for (int64_t i = 0; i < w->inner; i++)
		y[i] = powf(a[i * w->step[0]], b[i * w->step[1]]);
}

static void pow_any(const struct rg_walk *w, const struct rg_tensor *a, const struct rg_tensor *b,
		    const struct rg_tensor *y)
{
	bool cut = rg_dtype_is_int(y->dtype);

	for (int64_t i = 0; i < w->inner; i++) {
		double v = pow(rg_ref_get(a, w->at[0] + i * w->step[0]),
			       rg_ref_get(b, w->at[1] + i * w->step[1]));

		if (cut)
			store_cut(y, w->out + i, v);
		else
			rg_ref_set(y, w->out + i, v);
	}
}

static int run_pow(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_tensor a = c->in[0], b = c->in[1], y = c->out[0];
	const struct rg_shape *shapes[] = { &a.shape, &b.shape };
	struct rg_walk w;
	int rc;

	if (!rg_op_legacy_operand(c->node, &c->in[0].shape, &c->in[1].shape, &b.shape))
		return rg_error_set(err, -EINVAL, "the shapes do not broadcast");
	rg_walk_start(&w, &y.shape, 2, shapes);
	while (rg_walk_next(&w)) {
		if (a.dtype == RG_F32 && b.dtype == RG_F32) {
			pow_f32(&w, (const float *)a.data + w.at[0], (const float *)b.data + w.at[1],
				(float *)y.data + w.out);
		} else if (rg_dtype_is_int(a.dtype) && rg_dtype_is_int(b.dtype)) {
			rc = pow_ints(&w, &a, &b, &y, err);
			if (rc)
				return rc;
		} else {
			pow_any(&w, &a, &b, &y);
		}
	}
	return 0;
}

/* ---- what they take ---- */

static bool all_like_first(const struct rg_call *c, uint32_t set)
{
	for (int k = 0; k < c->node->n_in; k++)
		if (c->in[k].dtype != c->in[0].dtype)
			return false;
	return rg_in_set(c->in[0].dtype, set);
}

static bool takes_num(const struct rg_call *c)
{
	return all_like_first(c, RG_SET_NUM);
}

static bool takes_float(const struct rg_call *c)
{
	return all_like_first(c, RG_SET_FLOAT);
}

static bool takes_pow(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_I64)) &&
	       rg_in_set(c->in[1].dtype, RG_SET_NUM);
}

static bool takes_where(const struct rg_call *c)
{
	size_t size = rg_dtype_bytes(c->in[1].dtype);

	return c->in[0].dtype == RG_BOOL && c->in[1].dtype == c->in[2].dtype &&
	       (size == 1 || size == 2 || size == 4 || size == 8);
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Max", takes_num, run_max),
	K("Mean", takes_float, run_mean),
	K("Min", takes_num, run_min),
	K("Pow", takes_pow, run_pow),
	K("Sum", takes_float, run_sum),
	K("Where", takes_where, run_where),
};
RG_KERNEL_TABLE(rg_kernels_ref_variadic, kernels);
