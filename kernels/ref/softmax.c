/*
 * Softmax, LogSoftmax, Hardmax. The maximum of a row is subtracted before the
 * exponential, so that nothing overflows; sums are in double.
 */
#include <math.h>

#include "graph/op-norm.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* One row of a tensor: n elements from `first`, `step` apart. */
struct row {
	const struct rg_tensor *x, *y;
	int64_t first, step, n;
};

typedef void row_fn(const struct row *r);

static int each_row(const struct rg_call *c, row_fn *fn, struct rg_error *err)
{
	struct rg_rows rows;
	struct row r = { .x = &c->in[0], .y = &c->out[0] };

	if (!rg_softmax_rows(c->node, &c->in[0].shape, &rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	r.step = rows.inner;
	r.n = rows.n;
	for (int64_t o = 0; o < rows.outer && rows.n; o++) {
		for (int64_t j = 0; j < rows.inner; j++) {
			r.first = o * rows.n * rows.inner + j;
			fn(&r);
		}
	}
	return 0;
}

/* For chunk after chunk: i elements from the row's start, m of them in buf. */
#define EACH_CHUNK(R, I, M, BUF) \
	for (int64_t I = 0, M; \
	     I < (R)->n && (M = (R)->n - I < RG_REF_CHUNK ? (R)->n - I : RG_REF_CHUNK, \
			    rg_ref_load((R)->x, (R)->first + I * (R)->step, (R)->step, M, BUF), true); \
	     I += RG_REF_CHUNK)

static double row_max(const struct row *r)
{
	double buf[RG_REF_CHUNK], max = -HUGE_VAL;

	EACH_CHUNK(r, i, m, buf)
		for (int64_t j = 0; j < m; j++)
			max = buf[j] > max ? buf[j] : max;
	return max;
}

static double row_sum(const struct row *r, double max)
{
	double buf[RG_REF_CHUNK], sum = 0;

	EACH_CHUNK(r, i, m, buf)
		for (int64_t j = 0; j < m; j++)
			sum += exp(buf[j] - max);
	return sum;
}

/* Contiguous floats: what attention runs on. */
static void softmax_f32(const float *x, float *restrict y, int64_t n)
{
	float max = -HUGE_VALF;
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		max = x[i] > max ? x[i] : max;
	for (int64_t i = 0; i < n; i++) {
		y[i] = expf(x[i] - max);
		sum += y[i];
	}
	sum = 1 / sum;
	for (int64_t i = 0; i < n; i++)
		y[i] = (float)(y[i] * sum);
}

static void softmax_row(const struct row *r)
{
	double buf[RG_REF_CHUNK], max, sum;

	if (r->x->dtype == RG_F32 && r->step == 1) {
		softmax_f32((const float *)r->x->data + r->first, (float *)r->y->data + r->first, r->n);
		return;
	}
	max = row_max(r);
	sum = row_sum(r, max);
	EACH_CHUNK(r, i, m, buf) {
		for (int64_t j = 0; j < m; j++)
			buf[j] = exp(buf[j] - max) / sum;
		rg_ref_store(r->y, r->first + i * r->step, r->step, m, buf);
	}
}

static void logsoftmax_row(const struct row *r)
{
	double buf[RG_REF_CHUNK], max = row_max(r), log_sum = log(row_sum(r, max));

	EACH_CHUNK(r, i, m, buf) {
		for (int64_t j = 0; j < m; j++)
			buf[j] = buf[j] - max - log_sum;
		rg_ref_store(r->y, r->first + i * r->step, r->step, m, buf);
	}
}

/* One at the first largest element, a NaN being the largest. */
static void hardmax_row(const struct row *r)
{
	double buf[RG_REF_CHUNK], best = 0;
	int64_t at = -1;

	EACH_CHUNK(r, i, m, buf) {
		for (int64_t j = 0; j < m; j++) {
			if (at < 0 || buf[j] > best || (isnan(buf[j]) && !isnan(best))) {
				best = buf[j];
				at = i + j;
			}
		}
	}
	EACH_CHUNK(r, i, m, buf) {
		for (int64_t j = 0; j < m; j++)
			buf[j] = i + j == at;
		rg_ref_store(r->y, r->first + i * r->step, r->step, m, buf);
	}
}

static int run_softmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return each_row(c, softmax_row, err);
}

static int run_logsoftmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return each_row(c, logsoftmax_row, err);
}

static int run_hardmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return each_row(c, hardmax_row, err);
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

#define K(OP, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = takes_float, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Hardmax", run_hardmax),
	K("LogSoftmax", run_logsoftmax),
	K("Softmax", run_softmax),
};
RG_KERNEL_TABLE(rg_kernels_ref_softmax, kernels);
