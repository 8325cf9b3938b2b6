/*
 * Softmax and LogSoftmax of float32 along any axis, LpNormalization likewise. A
 * contiguous row is one item. Else columns are: up to COLUMNS of them side by side,
 * each with its maximum and sum.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/op-norm.h"
#include "kernels/generic/sum.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

enum { COLUMNS = 256, BLOCK = 1024 };

struct job {
	struct rg_rows rows;
	int64_t blocks;     /* of columns a row */
	bool flag;          /* LogSoftmax; LpNormalization: squares */
	const float *x;
	float *y;
};

/* Passes over NaN, which then comes out of exp. */
static float row_max(const float *x, int64_t n)
{
	rg_vec b[2] = { rg_vec_all(-INFINITY), rg_vec_all(-INFINITY) }, v;
	float max = -INFINITY;
	int64_t i = 0;

	for (; i + 2 * RG_VEC <= n; i += 2 * RG_VEC) {
		v = rg_vec_load(x + i);
		b[0] = rg_vec_pick((rg_mask)(v > b[0]), v, b[0]);
		v = rg_vec_load(x + i + RG_VEC);
		b[1] = rg_vec_pick((rg_mask)(v > b[1]), v, b[1]);
	}
	for (int k = 0; k < 2 * RG_VEC; k++)
		max = b[k / RG_VEC][k % RG_VEC] > max ? b[k / RG_VEC][k % RG_VEC] : max;
	for (; i < n; i++)
		max = x[i] > max ? x[i] : max;
	return max;
}

static void work_softmax(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t n = j->rows.n;

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * n;
		float *restrict y = j->y + r * n, max = row_max(x, n), factor;
		double sum = 0;

		for (int64_t i = 0, m; i < n; i += m) {
			m = n - i < BLOCK ? n - i : BLOCK;
			for (int64_t k = i; k < i + m; k++)
				y[k] = rg_vexpf(x[k] - max);
			sum += rg_sum(y + i, m);
		}
		factor = (float)(1 / sum);
		for (int64_t i = 0; i < n; i++)
			y[i] *= factor;
	}
}

static void work_logsoftmax(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t n = j->rows.n;
	float e[BLOCK];

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * n;
		float *restrict y = j->y + r * n, max = row_max(x, n), log_sum;
		double sum = 0;

		for (int64_t i = 0, m; i < n; i += m) {
			m = n - i < BLOCK ? n - i : BLOCK;
			for (int64_t k = 0; k < m; k++)
				e[k] = rg_vexpf(x[i + k] - max);
			sum += rg_sum(e, m);
		}
		log_sum = (float)log(sum);
		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] - max - log_sum;
	}
}

/* A block of columns: its first element, and how many they are. */
static int64_t column_block(const struct job *j, int64_t item, int64_t *columns)
{
	int64_t first = item % j->blocks * COLUMNS;

	*columns = j->rows.inner - first < COLUMNS ? j->rows.inner - first : COLUMNS;
	return item / j->blocks * j->rows.n * j->rows.inner + first;
}

static void work_softmax_columns(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float max[COLUMNS], factor[COLUMNS];
	double sum[COLUMNS];
	int64_t m;

	for (int64_t item = begin; item < end; item++) {
		int64_t at = column_block(j, item, &m), step = j->rows.inner, n = j->rows.n;
		const float *restrict x = j->x + at;
		float *restrict y = j->y + at;

		for (int64_t k = 0; k < m; k++) {
			max[k] = -INFINITY;
			sum[k] = 0;
		}
		for (int64_t i = 0; i < n; i++)
			for (int64_t k = 0; k < m; k++)
				max[k] = x[i * step + k] > max[k] ? x[i * step + k] : max[k];
		for (int64_t i = 0; i < n; i++) {
			for (int64_t k = 0; k < m; k++)
				y[i * step + k] = rg_vexpf(x[i * step + k] - max[k]);
			for (int64_t k = 0; k < m; k++)
				sum[k] += (double)y[i * step + k];
		}
		if (j->flag) {
			for (int64_t k = 0; k < m; k++)
				factor[k] = (float)log(sum[k]);
			for (int64_t i = 0; i < n; i++)
				for (int64_t k = 0; k < m; k++)
					y[i * step + k] = x[i * step + k] - max[k] - factor[k];
		} else {
			for (int64_t k = 0; k < m; k++)
				factor[k] = (float)(1 / sum[k]);
			for (int64_t i = 0; i < n; i++)
				for (int64_t k = 0; k < m; k++)
					y[i * step + k] *= factor[k];
		}
	}
}

static void run_columns(struct job *j, int64_t cost, rg_par_fn *fn, const struct rg_par *par)
{
	int64_t width = j->rows.inner < COLUMNS ? j->rows.inner : COLUMNS;

	j->blocks = (j->rows.inner + COLUMNS - 1) / COLUMNS;
	par->run(par, j->rows.outer * j->blocks, rg_grain(cost * j->rows.n * width + 100), fn, j);
}

static int run(const struct rg_call *c, const struct rg_par *par, bool is_log, struct rg_error *err)
{
	struct job j = { .x = c->in[0].data, .y = c->out[0].data, .flag = is_log };

	if (!rg_softmax_rows(c->node, &c->in[0].shape, &j.rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	if (rg_shape_count(&c->in[0].shape) == 0)
		return 0;
	if (j.rows.inner == 1)
		par->run(par, j.rows.outer, rg_grain(8 * j.rows.n + 40), is_log ? work_logsoftmax : work_softmax, &j);
	else
		run_columns(&j, 10, work_softmax_columns, par);
	return 0;
}

static int run_softmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run(c, par, false, err);
}

static int run_logsoftmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run(c, par, true, err);
}

static bool supports(const struct rg_call *c)
{
	struct rg_rows rows;

	return c->in[0].dtype == RG_F32 && rg_softmax_rows(c->node, &c->in[0].shape, &rows);
}

/* ---- LpNormalization ---- */

static void work_lp(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t n = j->rows.n;

	for (int64_t r = begin; r < end; r++) {
		const float *restrict x = j->x + r * n;
		float *restrict y = j->y + r * n;
		double norm = j->flag ? sqrt(rg_sum_squares(x, n)) : rg_sum_abs(x, n);
		float divisor = norm == 0 ? 1 : (float)norm; /* all are 0 then */

		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] / divisor;
	}
}

static void work_lp_columns(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float divisor[COLUMNS];
	double sum[COLUMNS];
	int64_t m;

	for (int64_t item = begin; item < end; item++) {
		int64_t at = column_block(j, item, &m), step = j->rows.inner, n = j->rows.n;
		const float *restrict x = j->x + at;
		float *restrict y = j->y + at;

		for (int64_t k = 0; k < m; k++)
			sum[k] = 0;
		for (int64_t i = 0; i < n; i++) {
			for (int64_t k = 0; k < m; k++) {
				double v = (double)x[i * step + k];

				sum[k] += j->flag ? v * v : fabs(v);
			}
		}
		for (int64_t k = 0; k < m; k++)
			divisor[k] = sum[k] == 0 ? 1 : (float)(j->flag ? sqrt(sum[k]) : sum[k]);
		for (int64_t i = 0; i < n; i++)
			for (int64_t k = 0; k < m; k++)
				y[i * step + k] = x[i * step + k] / divisor[k];
	}
}

static int run_lp(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j = { .x = c->in[0].data, .y = c->out[0].data, .flag = rg_node_int(c->node, "p", 2) == 2 };

	if (!rg_axis_rows(c->node, &c->in[0].shape, -1, &j.rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	if (rg_shape_count(&c->in[0].shape) == 0)
		return 0;
	if (j.rows.inner == 1)
		par->run(par, j.rows.outer, rg_grain(3 * j.rows.n + 40), work_lp, &j);
	else
		run_columns(&j, 4, work_lp_columns, par);
	return 0;
}

static bool supports_lp(const struct rg_call *c)
{
	struct rg_rows rows;

	return c->in[0].dtype == RG_F32 && rg_axis_rows(c->node, &c->in[0].shape, -1, &rows);
}

/* Reads and writes of the whole tensor, one a pass. */
static void traffic(const struct rg_call *c, struct rg_traffic *out, int reads, int writes)
{
	int64_t bytes = rg_tensor_bytes(RG_F32, &c->in[0].shape);

	*out = (struct rg_traffic){ -1, reads * bytes, writes * bytes };
}

/* Maximum, exponentials (written, then summed), scaled in place. */
static void traffic_softmax(const struct rg_call *c, struct rg_traffic *out)
{
	traffic(c, out, 4, 2);
}

static void traffic_lp(const struct rg_call *c, struct rg_traffic *out)
{
	traffic(c, out, 2, 1);
}

#define K(OP, SUPPORTS, TRAFFIC, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .traffic = TRAFFIC, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("LogSoftmax", supports, traffic_softmax, run_logsoftmax),
	K("LpNormalization", supports_lp, traffic_lp, run_lp),
	K("Softmax", supports, traffic_softmax, run_softmax),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(softmax), kernels);
