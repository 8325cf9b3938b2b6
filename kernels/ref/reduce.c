/*
 * Reductions and ArgMax, ArgMin. Floats fold in double and round once; integers
 * fold in 64 bits and wrap.
 *
 * An operator is a table of small functions: what a fold starts from, how a run
 * of elements goes in, and what is made of it at the end. Over nothing a sum is
 * 0, a product 1, a maximum the least value, as the definitions say.
 */
#include <math.h>

#include "graph/op-reduce.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* State of one result. `shift` is what LogSumExp subtracts before exp. */
struct fold {
	double v, shift;
	uint64_t i; /* integers */
	bool is_signed;
	int64_t n;  /* elements of a result */
};

/* One of the three forms is used: floats, or integers. */
struct reduction {
	double start;
	void (*add)(struct fold *f, const double *x, int64_t n);
	double (*end)(const struct fold *f); /* NULL: the value itself */
	uint64_t int_start;                  /* NULL add_int: integers go through double */
	void (*add_int)(struct fold *f, const uint64_t *x, int64_t n);
	uint64_t (*end_int)(const struct fold *f);
	bool needs_max;  /* a pass for `shift` comes first */
	int extreme;     /* 1 maximum, -1 minimum: int_start depends on the type */
};

/* ---- floats ---- */

static void add_sum(struct fold *f, const double *x, int64_t n)
{
	f->v += rg_ref_sum(x, n);
}

static void add_prod(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->v *= x[i];
}

static void add_abs(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->v += fabs(x[i]);
}

static void add_square(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->v += x[i] * x[i];
}

static void add_exp(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->v += exp(x[i] - f->shift);
}

/* NaN wins, as in numpy. */
static void add_max(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (x[i] > f->v || isnan(x[i]))
			f->v = x[i];
}

static void add_min(struct fold *f, const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (x[i] < f->v || isnan(x[i]))
			f->v = x[i];
}

static double end_mean(const struct fold *f)
{
	return f->v / (double)f->n;
}

static double end_root(const struct fold *f)
{
	return sqrt(f->v);
}

static double end_log(const struct fold *f)
{
	return log(f->v);
}

static double end_logsumexp(const struct fold *f)
{
	return log(f->v) + f->shift;
}

/* ---- integers, as the low 64 bits of what they are ---- */

static void int_sum(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i += x[i];
}

static void int_prod(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i *= x[i];
}

static void int_abs(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i += f->is_signed && (int64_t)x[i] < 0 ? 0 - x[i] : x[i];
}

static void int_square(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i += x[i] * x[i];
}

static bool int_less(const struct fold *f, uint64_t a, uint64_t b)
{
	return f->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static void int_max(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i = int_less(f, f->i, x[i]) ? x[i] : f->i;
}

static void int_min(struct fold *f, const uint64_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		f->i = int_less(f, x[i], f->i) ? x[i] : f->i;
}

/* Cut towards zero; the mean of nothing is 0 here. */
static uint64_t int_mean(const struct fold *f)
{
	if (f->n == 0)
		return 0;
	return f->is_signed ? (uint64_t)((int64_t)f->i / f->n) : f->i / (uint64_t)f->n;
}

static const struct reduction sum = { 0, add_sum, NULL, 0, int_sum, NULL };
static const struct reduction mean = { 0, add_sum, end_mean, 0, int_sum, int_mean };
static const struct reduction prod = { 1, add_prod, NULL, 1, int_prod, NULL };
static const struct reduction l1 = { 0, add_abs, NULL, 0, int_abs, NULL };
static const struct reduction l2 = { 0, add_square, end_root };
static const struct reduction sum_square = { 0, add_square, NULL, 0, int_square, NULL };
static const struct reduction log_sum = { 0, add_sum, end_log };
static const struct reduction log_sum_exp = { 0, add_exp, end_logsumexp, .needs_max = true };
static const struct reduction max = { -HUGE_VAL, add_max, NULL, 0, int_max, NULL, .extreme = 1 };
static const struct reduction min = { HUGE_VAL, add_min, NULL, 0, int_min, NULL, .extreme = -1 };

#define LOAD_INT(TYPE, CTYPE) \
	case TYPE: \
		for (int64_t i = 0; i < n; i++) \
			buf[i] = (uint64_t)((const CTYPE *)t->data)[first + i * stride]; \
		break;

static void load_ints(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, uint64_t *buf)
{
	switch (t->dtype) {
	RG_FOR_INTS(LOAD_INT)
	default: /* bool */
		for (int64_t i = 0; i < n; i++)
			buf[i] = ((const uint8_t *)t->data)[first + i * stride] != 0;
		break;
	}
}

#define STORE_INT(TYPE, CTYPE) \
	case TYPE: \
		((CTYPE *)t->data)[i] = (CTYPE)v; \
		break;

static void store_int(const struct rg_tensor *t, int64_t i, uint64_t v)
{
	switch (t->dtype) {
	RG_FOR_INTS(STORE_INT)
	default:
		((uint8_t *)t->data)[i] = v != 0;
		break;
	}
}

/* The least value of an integer type for a maximum, the largest for a minimum. */
static uint64_t extreme_start(enum rg_dtype t, int extreme)
{
	int bits = rg_dtype_bits(t);

	if (t == RG_BOOL)
		return extreme < 0;
	if (!rg_dtype_is_signed(t))
		return extreme > 0 ? 0 : UINT64_MAX >> (64 - bits);
	return extreme > 0 ? (uint64_t)(INT64_MIN >> (64 - bits)) : (uint64_t)(INT64_MAX >> (64 - bits));
}

typedef void chunk_fn(struct fold *f, const struct rg_tensor *x, int64_t first, int64_t step, int64_t n,
		      const struct reduction *r);

static void chunk_float(struct fold *f, const struct rg_tensor *x, int64_t first, int64_t step, int64_t n,
			const struct reduction *r)
{
	double buf[RG_REF_CHUNK];

	rg_ref_load(x, first, step, n, buf);
	r->add(f, buf, n);
}

static void chunk_int(struct fold *f, const struct rg_tensor *x, int64_t first, int64_t step, int64_t n,
		      const struct reduction *r)
{
	uint64_t buf[RG_REF_CHUNK];

	load_ints(x, first, step, n, buf);
	r->add_int(f, buf, n);
}

static void fold_all(struct fold *f, const struct rg_tensor *x, const struct rg_ref_split *s, int64_t base,
		     const struct reduction *r, chunk_fn *fn)
{
	int64_t index[RG_MAX_RANK] = { 0 }, at = base, n;

	if (s->reduced.count == 0)
		return;
	do {
		for (int64_t i = 0; i < s->run; i += n) {
			n = s->run - i < RG_REF_CHUNK ? s->run - i : RG_REF_CHUNK;
			fn(f, x, at + i * s->step, s->step, n, r);
		}
	} while (rg_ref_dims_next(&s->reduced, index, &at));
}

static double fold_float(const struct rg_tensor *x, const struct rg_ref_split *s, int64_t base,
			 const struct reduction *r)
{
	struct fold f = { .v = r->start, .n = s->reduced.count };

	if (r->needs_max) {
		struct fold m = { .v = -HUGE_VAL };

		fold_all(&m, x, s, base, &max, chunk_float);
		/* infinities and NaN go through exp as they are */
		f.shift = isfinite(m.v) ? m.v : 0;
	}
	fold_all(&f, x, s, base, r, chunk_float);
	return r->end ? r->end(&f) : f.v;
}

/* A double in an integer type: cut towards zero, held in range, NaN is 0. */
static void store_cut(const struct rg_tensor *y, int64_t i, double v)
{
	int top = rg_dtype_bits(y->dtype) - rg_dtype_is_signed(y->dtype);
	double lo = rg_dtype_is_signed(y->dtype) ? -ldexp(1, top) : 0;

	if (!(v > lo))
		store_int(y, i, isnan(v) ? 0 : extreme_start(y->dtype, 1));
	else if (v >= ldexp(1, top))
		store_int(y, i, extreme_start(y->dtype, -1));
	else if (v < 0)
		store_int(y, i, (uint64_t)(int64_t)v);
	else
		store_int(y, i, (uint64_t)v);
}

static void reduce_one(const struct rg_call *c, const struct rg_ref_split *s, int64_t base, int64_t out,
		       const struct reduction *r)
{
	const struct rg_tensor *x = &c->in[0], *y = &c->out[0];
	struct fold f = { .i = r->int_start, .n = s->reduced.count,
			  .is_signed = rg_dtype_is_signed(x->dtype) };

	if (rg_dtype_is_float(x->dtype)) {
		rg_ref_set(y, out, fold_float(x, s, base, r));
	} else if (!r->add_int) {
		store_cut(y, out, fold_float(x, s, base, r));
	} else {
		if (r->extreme)
			f.i = extreme_start(x->dtype, r->extreme);
		fold_all(&f, x, s, base, r, chunk_int);
		store_int(y, out, r->end_int ? r->end_int(&f) : f.i);
	}
}

static int reduce(const struct rg_call *c, const struct reduction *r, struct rg_error *err)
{
	int64_t axes[RG_MAX_RANK], index[RG_MAX_RANK] = { 0 }, at = 0, out = 0;
	struct rg_ref_split s;
	uint32_t mask;
	int n = 0;

	if (c->node->n_in > 1 && c->in[1].dtype != RG_UNDEFINED) {
		int64_t count = rg_shape_count(&c->in[1].shape);

		if (count > RG_MAX_RANK)
			return rg_error_set(err, -EINVAL, "there are more axes than dimensions");
		for (n = 0; n < count; n++)
			axes[n] = c->in[1].dtype == RG_I64 ? ((const int64_t *)c->in[1].data)[n] :
							     ((const int32_t *)c->in[1].data)[n];
	}
	if (!rg_reduce_mask(c->node, c->in[0].shape.rank, axes, n, &mask))
		return rg_error_set(err, -EINVAL, "an axis is outside of the input, or named twice");
	rg_ref_split(&c->in[0].shape, mask, &s);
	if (s.kept.count != rg_shape_count(&c->out[0].shape))
		return rg_error_set(err, -EINVAL, "the axes are not those that the output was shaped for");
	if (s.kept.count == 0)
		return 0;
	do {
		reduce_one(c, &s, at, out++, r);
	} while (rg_ref_dims_next(&s.kept, index, &at));
	return 0;
}

#define REDUCE(NAME) \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		return reduce(c, &NAME, err); \
	}
REDUCE(sum)
REDUCE(mean)
REDUCE(prod)
REDUCE(l1)
REDUCE(l2)
REDUCE(sum_square)
REDUCE(log_sum)
REDUCE(log_sum_exp)
REDUCE(max)
REDUCE(min)

/* ---- ArgMax, ArgMin: the first or last best; a NaN is better than any ---- */

#define BETTER(X, BEST) (largest ? (X) > (BEST) : (X) < (BEST))

static int64_t find_float(const struct rg_tensor *x, int64_t first, int64_t step, int64_t n, bool largest,
			  bool last)
{
	double best = rg_ref_get(x, first), v;
	int64_t at = 0;

	for (int64_t i = 1; i < n; i++) {
		v = rg_ref_get(x, first + i * step);
		if ((isnan(v) && !isnan(best)) || BETTER(v, best) ||
		    (last && (v == best || (isnan(v) && isnan(best))))) {
			best = v;
			at = i;
		}
	}
	return at;
}

static int64_t find_int(const struct rg_tensor *x, int64_t first, int64_t step, int64_t n, bool largest,
			bool last)
{
	struct fold f = { .is_signed = rg_dtype_is_signed(x->dtype) };
	uint64_t best, v;
	int64_t at = 0;

	load_ints(x, first, 1, 1, &best);
	for (int64_t i = 1; i < n; i++) {
		load_ints(x, first + i * step, 1, 1, &v);
		if ((largest ? int_less(&f, best, v) : int_less(&f, v, best)) || (last && v == best)) {
			best = v;
			at = i;
		}
	}
	return at;
}

static int run_arg(const struct rg_call *c, bool largest, struct rg_error *err)
{
	const struct rg_tensor *x = &c->in[0];
	bool last = rg_node_int(c->node, "select_last_index", 0), is_float = rg_dtype_is_float(x->dtype);
	int64_t axis = rg_node_int(c->node, "axis", 0), *y = c->out[0].data, outer, inner, n, first;

	axis += axis < 0 ? x->shape.rank : 0;
	outer = rg_shape_count_range(&x->shape, 0, (int)axis);
	inner = rg_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
	n = x->shape.dim[axis];
	if (n == 0)
		return rg_error_set(err, -EINVAL, "there is no largest or smallest of 0 elements");
	for (int64_t o = 0; o < outer; o++) {
		for (int64_t i = 0; i < inner; i++) {
			first = o * n * inner + i;
			*y++ = is_float ? find_float(x, first, inner, n, largest, last) :
					  find_int(x, first, inner, n, largest, last);
		}
	}
	return 0;
}

static int run_argmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_arg(c, true, err);
}

static int run_argmin(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_arg(c, false, err);
}

static bool takes_num(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

static bool takes_extreme(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM | RG_BIT(RG_BOOL));
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("ArgMax", takes_num, run_argmax),
	K("ArgMin", takes_num, run_argmin),
	K("ReduceL1", takes_num, run_l1),
	K("ReduceL2", takes_num, run_l2),
	K("ReduceLogSum", takes_num, run_log_sum),
	K("ReduceLogSumExp", takes_num, run_log_sum_exp),
	K("ReduceMax", takes_extreme, run_max),
	K("ReduceMean", takes_num, run_mean),
	K("ReduceMin", takes_extreme, run_min),
	K("ReduceProd", takes_num, run_prod),
	K("ReduceSum", takes_num, run_sum),
	K("ReduceSumSquare", takes_num, run_sum_square),
};
RG_KERNEL_TABLE(rg_kernels_ref_reduce, kernels);
