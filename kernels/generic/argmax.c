/*
 * ArgMax and ArgMin of float32 along any axis. A NaN is better than any number, the
 * first one counts, or the last. A contiguous row takes two passes: what is best,
 * then where. Columns keep both, COLUMNS of them side by side.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/op-norm.h"
#include "kernels/generic/sum.h"
#include "kernels/tables.h"

enum { COLUMNS = 256 };

struct job {
	struct rg_rows rows;
	int64_t blocks;
	bool last;
	float sign;          /* -1: the least is the largest of the negated */
	const float *x;
	int64_t *y;
};

static bool is_best(float v, float best)
{
	return v == best || (v != v && best != best);
}

static void work_rows(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t n = j->rows.n;

	for (int64_t r = begin; r < end; r++) {
		const float *x = j->x + r * n;
		float best = j->sign > 0 ? rg_extreme(x, n, -INFINITY, true) : rg_extreme(x, n, INFINITY, false);
		int64_t at = j->last ? n - 1 : 0;

		while (!is_best(x[at], best))
			at += j->last ? -1 : 1;
		j->y[r] = at;
	}
}

static void work_columns(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t n = j->rows.n, step = j->rows.inner;
	float best[COLUMNS];
	int32_t at[COLUMNS];

	for (int64_t item = begin; item < end; item++) {
		int64_t first = item % j->blocks * COLUMNS, m = step - first < COLUMNS ? step - first : COLUMNS;
		const float *restrict x = j->x + item / j->blocks * n * step + first;
		int64_t *restrict y = j->y + item / j->blocks * step + first;
		const int last = j->last;

		for (int64_t c = 0; c < m; c++) {
			best[c] = j->sign * x[c];
			at[c] = 0;
		}
		for (int64_t i = 1; i < n; i++) {
			for (int64_t c = 0; c < m; c++) {
				float v = j->sign * x[i * step + c];
				int nan = v != v, had = best[c] != best[c];
				int better = (v > best[c]) | (nan & !had) | (last & ((v == best[c]) | (nan & had)));

				best[c] = better ? v : best[c];
				at[c] = better ? (int32_t)i : at[c];
			}
		}
		for (int64_t c = 0; c < m; c++)
			y[c] = at[c];
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, float sign, struct rg_error *err)
{
	struct job j = { .x = c->in[0].data, .y = c->out[0].data, .sign = sign,
			 .last = rg_node_int(c->node, "select_last_index", 0) != 0 };
	int64_t width;

	if (!rg_axis_rows(c->node, &c->in[0].shape, 0, &j.rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	if (j.rows.inner == 1) {
		par->run(par, j.rows.outer, rg_grain(2 * j.rows.n + 40), work_rows, &j);
		return 0;
	}
	width = j.rows.inner < COLUMNS ? j.rows.inner : COLUMNS;
	j.blocks = (j.rows.inner + COLUMNS - 1) / COLUMNS;
	par->run(par, j.rows.outer * j.blocks, rg_grain(3 * j.rows.n * width + 100), work_columns, &j);
	return 0;
}

static int run_max(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run(c, par, 1, err);
}

static int run_min(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run(c, par, -1, err);
}

/* Nothing has no largest: the reference says that. */
static bool supports(const struct rg_call *c)
{
	struct rg_rows rows;

	return c->in[0].dtype == RG_F32 && rg_shape_count(&c->in[0].shape) > 0 &&
	       rg_axis_rows(c->node, &c->in[0].shape, 0, &rows) && rows.n <= INT32_MAX;
}

#define K(OP, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("ArgMax", run_max),
	K("ArgMin", run_min),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(argmax), kernels);
