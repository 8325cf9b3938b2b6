/*
 * Reductions of float32 over any axes. Neighbouring axes of a kind are merged.
 * Where the innermost folded dimension is contiguous, an item is one result, made
 * of runs. Else the innermost kept one is: an item is a block of COLUMNS results
 * side by side, to which each folded index adds a row.
 *
 * Sums go on in double (sum.h; columns after at most four rows in float); maxima and
 * minima take a NaN, as the reference does.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/op-reduce.h"
#include "kernels/generic/sum.h"
#include "kernels/generic/vmath.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

enum kind { SUM, MEAN, SQUARES, L2, ABS, LOG_SUM, LOG_SUM_EXP, MAX, MIN, PROD };
enum { COLUMNS = 256, BLOCK = 512 };

struct job {
	struct rg_ref_split s;
	enum kind kind;
	int64_t columns, blocks; /* innermost kept dimension, and its blocks; 0: runs */
	const float *x;
	float *y;
};

/* ---- runs ---- */

/* In double: a float's exponent would not hold the partial products. */
static double product(const float *x, int64_t n)
{
	double p[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	int64_t i = 0;

	for (; i + 8 <= n; i += 8)
		for (int k = 0; k < 8; k++)
			p[k] *= (double)x[i + k];
	for (; i < n; i++)
		p[0] *= (double)x[i];
	return ((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]));
}

static double exp_sum(const float *restrict x, float shift, int64_t n)
{
	float e[BLOCK];
	double sum = 0;

	for (int64_t i = 0, m; i < n; i += m) {
		m = n - i < BLOCK ? n - i : BLOCK;
		for (int64_t k = 0; k < m; k++)
			e[k] = rg_vexpf(x[i + k] - shift);
		sum += rg_sum(e, m);
	}
	return sum;
}

static double start(enum kind kind)
{
	return kind == MAX ? -INFINITY : kind == MIN ? INFINITY : kind == PROD ? 1 : 0;
}

static double fold_run(enum kind kind, double so_far, const float *x, float shift, int64_t n)
{
	switch (kind) {
	case SQUARES:
	case L2: return so_far + rg_sum_squares(x, n);
	case ABS: return so_far + rg_sum_abs(x, n);
	case LOG_SUM_EXP: return so_far + exp_sum(x, shift, n);
	case MAX: return (double)rg_extreme(x, n, (float)so_far, true);
	case MIN: return (double)rg_extreme(x, n, (float)so_far, false);
	case PROD: return so_far * product(x, n);
	default: return so_far + rg_sum(x, n);
	}
}

static float finish(const struct job *j, double v, float shift)
{
	switch (j->kind) {
	case MEAN: return (float)(v / (double)j->s.reduced.count);
	case L2: return (float)sqrt(v);
	case LOG_SUM: return (float)log(v);
	case LOG_SUM_EXP: return (float)(log(v) + (double)shift);
	default: return (float)v;
	}
}

static double fold_all(const struct job *j, enum kind kind, int64_t base, float shift)
{
	int64_t index[RG_MAX_RANK] = { 0 }, at = base;
	double v = start(kind);

	do {
		v = fold_run(kind, v, j->x + at, shift, j->s.run);
	} while (rg_ref_dims_next(&j->s.reduced, index, &at));
	return v;
}

/* Where the elements of result i begin; index says the same. */
static int64_t locate(const struct rg_ref_dims *d, int64_t i, int64_t *index)
{
	int64_t at = 0;

	for (int k = d->n - 1; k >= 0; k--) {
		index[k] = i % d->dim[k];
		at += index[k] * d->stride[k];
		i /= d->dim[k];
	}
	return at;
}

static void work_runs(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t index[RG_MAX_RANK], at = locate(&j->s.kept, begin, index);

	for (int64_t i = begin; i < end; i++) {
		float shift = 0;

		if (j->kind == LOG_SUM_EXP) {
			shift = (float)fold_all(j, MAX, at, 0);
			/* infinities and NaN go through exp as they are */
			shift = isfinite(shift) ? shift : 0;
		}
		j->y[i] = finish(j, fold_all(j, j->kind, at, shift), shift);
		rg_ref_dims_next(&j->s.kept, index, &at);
	}
}

/* ---- columns ---- */

#define EACH(EXPR) do { \
		for (int64_t c = 0; c < n; c++) { \
			const double v = (double)x[c]; \
\
			acc[c] = (EXPR); \
		} \
	} while (0)

static void add_row(enum kind kind, double *restrict acc, const float *restrict x, int64_t n)
{
	switch (kind) {
	case SQUARES:
	case L2: EACH(acc[c] + v * v); break;
	case ABS: EACH(acc[c] + fabs(v)); break;
	case PROD: EACH(acc[c] * v); break;
	default: EACH(acc[c] + v); break;
	}
}

static void extreme_row(float *restrict best, const float *restrict x, int64_t n, bool is_max)
{
	if (is_max)
		for (int64_t c = 0; c < n; c++)
			best[c] = ((x[c] > best[c]) | (x[c] != x[c])) ? x[c] : best[c];
	else
		for (int64_t c = 0; c < n; c++)
			best[c] = ((x[c] < best[c]) | (x[c] != x[c])) ? x[c] : best[c];
}

static void exp_row(double *restrict acc, const float *restrict x, const float *restrict shift, int64_t n)
{
	float e[COLUMNS];

	for (int64_t c = 0; c < n; c++)
		e[c] = rg_vexpf(x[c] - shift[c]);
	for (int64_t c = 0; c < n; c++)
		acc[c] += (double)e[c];
}

/* Four rows of a sum at once: their sum in float, which may overflow. */
static void add_four(double *restrict acc, const float *restrict x, int64_t step, int64_t n)
{
	const float *restrict b = x + step, *restrict c = x + 2 * step, *restrict d = x + 3 * step;

	for (int64_t i = 0; i < n; i++)
		acc[i] += (double)((x[i] + b[i]) + (c[i] + d[i]));
}

/* Every folded row of a block of columns into acc, or into best. */
static void fold_rows(const struct job *j, enum kind kind, int64_t base, int64_t n, double *acc, float *best,
		      bool by_four)
{
	int64_t index[RG_MAX_RANK] = { 0 }, at = base;

	for (int64_t c = 0; c < n; c++) {
		if (kind == MAX || kind == MIN)
			best[c] = (float)start(kind);
		else
			acc[c] = start(kind);
	}
	do {
		int64_t i = 0;

		for (; by_four && i + 4 <= j->s.run; i += 4)
			add_four(acc, j->x + at + i * j->s.step, j->s.step, n);
		for (; i < j->s.run; i++) {
			const float *x = j->x + at + i * j->s.step;

			if (kind == MAX || kind == MIN)
				extreme_row(best, x, n, kind == MAX);
			else if (kind == LOG_SUM_EXP)
				exp_row(acc, x, best, n);
			else
				add_row(kind, acc, x, n);
		}
	} while (rg_ref_dims_next(&j->s.reduced, index, &at));
}

static bool all_finite(const double *acc, int64_t n)
{
	int bad = 0;

	for (int64_t c = 0; c < n; c++)
		bad |= !(acc[c] - acc[c] == 0);
	return !bad;
}

static void work_columns(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	struct rg_ref_dims outer = j->s.kept;
	int64_t index[RG_MAX_RANK];
	double acc[COLUMNS];
	float best[COLUMNS];

	bool is_sum = j->kind == SUM || j->kind == MEAN || j->kind == LOG_SUM;

	outer.n--; /* the columns */
	for (int64_t item = begin; item < end; item++) {
		int64_t row = item / j->blocks, first = item % j->blocks * COLUMNS;
		int64_t n = j->columns - first < COLUMNS ? j->columns - first : COLUMNS;
		int64_t base = locate(&outer, row, index) + first;
		float *y = j->y + row * j->columns + first;

		if (j->kind == MAX || j->kind == MIN) {
			fold_rows(j, j->kind, base, n, acc, best, false);
			memcpy(y, best, (size_t)n * sizeof(*y));
			continue;
		}
		if (j->kind == LOG_SUM_EXP) {
			fold_rows(j, MAX, base, n, acc, best, false);
			for (int64_t c = 0; c < n; c++)
				best[c] = isfinite(best[c]) ? best[c] : 0;
		}
		fold_rows(j, j->kind, base, n, acc, best, is_sum);
		if (is_sum && !all_finite(acc, n))
			fold_rows(j, j->kind, base, n, acc, best, false);
		for (int64_t c = 0; c < n; c++)
			y[c] = finish(j, acc[c], j->kind == LOG_SUM_EXP ? best[c] : 0);
	}
}

/* ---- calls ---- */

/* Axes must be known, and fold something. */
static bool setup(const struct rg_call *c, struct job *j)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t axes[RG_MAX_RANK], n = 0;
	uint32_t mask;

	if (c->in[0].dtype != RG_F32 || rg_shape_count(s) <= 0)
		return false;
	if (rg_reduce_axes_are_input(c->node) && c->node->n_in > 1 && c->in[1].dtype != RG_UNDEFINED) {
		n = rg_shape_count(&c->in[1].shape);
		if (n > RG_MAX_RANK || c->in[1].dtype != RG_I64 || (n > 0 && !c->in[1].data))
			return false;
		for (int64_t i = 0; i < n; i++)
			axes[i] = ((const int64_t *)c->in[1].data)[i];
	}
	if (!rg_reduce_mask(c->node, s->rank, axes, (int)n, &mask))
		return false;
	rg_ref_split(s, mask, &j->s);
	if (j->s.kept.count != rg_shape_count(&c->out[0].shape))
		return false;
	j->columns = j->blocks = 0;
	if (j->s.step != 1) {
		j->columns = j->s.kept.dim[j->s.kept.n - 1];
		j->blocks = (j->columns + COLUMNS - 1) / COLUMNS;
	}
	return true;
}

static int run(const struct rg_call *c, const struct rg_par *par, enum kind kind, struct rg_error *err)
{
	int64_t cost = kind == LOG_SUM_EXP ? 8 : 1, width;
	struct job j;

	if (!setup(c, &j))
		return rg_error_set(err, -EINVAL, "the axes are not those that the output was shaped for");
	j.kind = kind;
	j.x = c->in[0].data;
	j.y = c->out[0].data;
	if (!j.blocks) {
		par->run(par, j.s.kept.count, rg_grain(cost * j.s.reduced.count + 40), work_runs, &j);
		return 0;
	}
	width = j.columns < COLUMNS ? j.columns : COLUMNS;
	par->run(par, j.s.kept.count / j.columns * j.blocks, rg_grain(2 * cost * j.s.reduced.count * width + 100),
		 work_columns, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct job j;

	return setup(c, &j);
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = rg_tensor_bytes(RG_F32, &c->in[0].shape);
	out->write_bytes = rg_tensor_bytes(RG_F32, &c->out[0].shape);
}

#define REDUCE(X) \
	X("ReduceL1", ABS) X("ReduceL2", L2) X("ReduceLogSum", LOG_SUM) X("ReduceMax", MAX) X("ReduceMean", MEAN) \
	X("ReduceMin", MIN) X("ReduceProd", PROD) X("ReduceSum", SUM) X("ReduceSumSquare", SQUARES)
#define RUN(OP, KIND) \
	static int run_##KIND(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		return run(c, par, KIND, err); \
	}
#define ENTRY(OP, RUN_FN, TRAFFIC) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .traffic = TRAFFIC, .run = RUN_FN },
#define K(OP, KIND) ENTRY(OP, run_##KIND, traffic)
REDUCE(RUN)
RUN("ReduceLogSumExp", LOG_SUM_EXP)

static const struct rg_kernel kernels[] = {
	REDUCE(K)
	ENTRY("ReduceLogSumExp", run_LOG_SUM_EXP, NULL)
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(reduce), kernels);
