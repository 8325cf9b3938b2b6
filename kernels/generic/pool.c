/*
 * MaxPool, AveragePool (one and two dimensions) and GlobalAveragePool, float32.
 * An output row is kept while all taps pass over it: each tap is one loop over
 * the pixels for which it lies inside the input.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/window.h"
#include "kernels/tables.h"

struct job {
	struct rg_window w;
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left, bottom, right;
	bool with_pad;
	const float *x;
	float *y;
};

static int setup(const struct rg_call *c, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int rc, l;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_pool(c->node, &c->in[0].shape, &j->w, err)))
		return rc;
	if (w->n > 2)
		return rg_error_set(err, -ENOTSUP, "more than two spatial dimensions");
	l = w->n - 1;
	j->iw = w->in[l];
	j->ow = w->out[l];
	j->kw = w->kernel[l];
	j->sw = w->stride[l];
	j->dw = w->dilation[l];
	j->left = w->pad_begin[l];
	j->right = w->pad_end[l];
	j->ih = w->n == 2 ? w->in[0] : 1;
	j->oh = w->n == 2 ? w->out[0] : 1;
	j->kh = w->n == 2 ? w->kernel[0] : 1;
	j->sh = w->n == 2 ? w->stride[0] : 1;
	j->dh = w->n == 2 ? w->dilation[0] : 1;
	j->top = w->n == 2 ? w->pad_begin[0] : 0;
	j->bottom = w->n == 2 ? w->pad_end[0] : 0;
	j->with_pad = rg_node_int(c->node, "count_include_pad", 0) != 0;
	return 0;
}

RG_INLINE void tap(float *restrict y, const float *restrict x, int64_t n, const int64_t stride, const bool max)
{
	for (int64_t i = 0; i < n; i++) {
		float v = x[i * stride];

		if (max)
			y[i] = v > y[i] || v != v ? v : y[i]; /* NaN wins and stays */
		else
			y[i] += v;
	}
}

/* Taps at start, start + step, ... (n of them) that are below `limit`. */
static int64_t below(int64_t start, int64_t step, int64_t n, int64_t limit)
{
	int64_t count = start >= limit ? 0 : (limit - start + step - 1) / step;

	return count > n ? n : count;
}

static int64_t inside(int64_t start, int64_t step, int64_t n, int64_t limit)
{
	return below(start, step, n, limit) - below(start, step, n, 0);
}

RG_INLINE void plane(const struct job *j, const float *x, float *y, const bool max)
{
	for (int64_t r = 0; r < j->oh; r++, y += j->ow) {
		int64_t y0 = r * j->sh - j->top;

		for (int64_t i = 0; i < j->ow; i++)
			y[i] = max ? -INFINITY : 0;
		for (int64_t kr = 0; kr < j->kh; kr++) {
			int64_t row = y0 + kr * j->dh;

			if (row < 0 || row >= j->ih)
				continue;
			for (int64_t k = 0; k < j->kw; k++) {
				int64_t base = k * j->dw - j->left, first = below(base, j->sw, j->ow, 0);
				int64_t n = below(base, j->sw, j->ow, j->iw) - first;
				const float *in = x + row * j->iw + base + first * j->sw;

				if (n <= 0)
					continue;
				if (j->sw == 1)
					tap(y + first, in, n, 1, max);
				else if (j->sw == 2)
					tap(y + first, in, n, 2, max);
				else
					tap(y + first, in, n, j->sw, max);
			}
		}
		if (max)
			continue;
		for (int64_t i = 0; i < j->ow; i++) {
			int64_t x0 = i * j->sw - j->left, count;

			if (j->with_pad)
				count = below(y0, j->dh, j->kh, j->ih + j->bottom) *
					below(x0, j->dw, j->kw, j->iw + j->right);
			else
				count = inside(y0, j->dh, j->kh, j->ih) * inside(x0, j->dw, j->kw, j->iw);
			y[i] /= (float)count;
		}
	}
}

static void work_max(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		plane(j, j->x + i * j->w.in_count, j->y + i * j->w.out_count, true);
}

static void work_average(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		plane(j, j->x + i * j->w.in_count, j->y + i * j->w.out_count, false);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool max = !strcmp(c->node->op_type, "MaxPool");
	struct job j;
	int rc = setup(c, &j, err);

	if (rc)
		return rc;
	j.x = c->in[0].data;
	j.y = c->out[0].data;
	par->run(par, j.w.batch * j.w.c_in, rg_grain(j.w.out_count * (j.w.kernel_count + (max ? 0 : 16))),
		 max ? work_max : work_average, &j);
	return 0;
}

/* ---- GlobalAveragePool ---- */

struct global_job {
	int64_t n;
	const float *x;
	float *y;
};

/* Sixteen sums side by side: less rounding than one, and it vectorises. */
static void work_global(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct global_job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		const float *x = j->x + p * j->n;
		float sum[16] = { 0 };
		double total = 0;
		int64_t i = 0;

		for (; i + 16 <= j->n; i += 16)
			for (int k = 0; k < 16; k++)
				sum[k] += x[i + k];
		for (; i < j->n; i++)
			sum[i % 16] += x[i];
		for (int k = 0; k < 16; k++)
			total += (double)sum[k];
		j->y[p] = (float)(total / (double)j->n);
	}
}

static int run_global(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	struct global_job j = { rg_shape_count_range(s, 2, s->rank), c->in[0].data, c->out[0].data };

	par->run(par, rg_shape_count_range(s, 0, 2), rg_grain(j.n + 20), work_global, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return c->in[0].dtype == RG_F32 && (c->node->n_out < 2 || c->out[1].dtype == RG_UNDEFINED) &&
	       !setup(c, &j, &err);
}

static bool supports_global(const struct rg_call *c)
{
	return c->in[0].dtype == RG_F32;
}

#define K(OP, SUPPORTS, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("AveragePool", supports, run),
	K("GlobalAveragePool", supports_global, run_global),
	K("MaxPool", supports, run),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(pool), kernels);
