/*
 * MaxPool and AveragePool in one and two dimensions, GlobalAveragePool and
 * GlobalMaxPool, float32. The window is taken apart: the rows of an output row are
 * folded into one first, which is contiguous, then its columns; so a window of 3x3
 * costs 3 + 3 passes. That row stands between paddings that fold to nothing.
 */
#include "kernels/generic/generic.h"

#include <math.h>

#include "graph/window.h"
#include "kernels/generic/sum.h"
#include "kernels/tables.h"

struct job {
	struct rg_window w;
	int64_t ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, top, left, bottom, right;
	int64_t wide;       /* elements of the folded row with its paddings */
	bool with_pad;
	const float *x;
	float *y;
	float *columns;     /* AveragePool: how many columns count, for each output */
	float *rows;        /* lane_floats() a lane: the folded row, its even and odd columns */
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
	j->wide = (j->ow - 1) * j->sw + (j->kw - 1) * j->dw + 1;
	j->wide = j->wide > j->left + j->iw ? j->wide : j->left + j->iw;
	j->with_pad = rg_node_int(c->node, "count_include_pad", 0) != 0;
	return 0;
}

/* NaN wins and stays. */
RG_INLINE float fold(float so_far, float v, const bool max)
{
	return max ? (((v > so_far) | (v != v)) ? v : so_far) : so_far + v;
}

RG_INLINE void fold_row(float *restrict to, const float *restrict x, int64_t n, const bool max)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = fold(to[i], x[i], max);
}

/* The columns of each output, when how many and how far apart are constants. */
RG_INLINE void columns(float *restrict y, const float *restrict row, int64_t n, const int taps, const int stride,
		       const bool max)
{
	for (int64_t i = 0; i < n; i++) {
		float v = row[i * stride];

		for (int k = 1; k < taps; k++)
			v = fold(v, row[i * stride + k], max);
		y[i] = v;
	}
}

/* Windows of 3, 2 apart: even and odd columns parted first, then all is contiguous. */
RG_INLINE void columns_3_2(float *restrict y, const float *restrict row, float *restrict even, float *restrict odd,
			   int64_t n, const bool max)
{
	for (int64_t i = 0; i < n; i++) {
		even[i] = row[2 * i];
		odd[i] = row[2 * i + 1];
	}
	even[n] = row[2 * n];
	for (int64_t i = 0; i < n; i++)
		y[i] = fold(fold(even[i], odd[i], max), even[i + 1], max);
}

RG_INLINE void any_columns(const struct job *j, float *restrict y, const float *restrict row, const bool max)
{
	for (int64_t i = 0; i < j->ow; i++)
		y[i] = row[i * j->sw];
	for (int64_t k = 1; k < j->kw; k++)
		for (int64_t i = 0; i < j->ow; i++)
			y[i] = fold(y[i], row[i * j->sw + k * j->dw], max);
}

RG_INLINE void fold_columns(const struct job *j, float *y, float *row, const bool max)
{
	int64_t shape = j->dw == 1 && j->kw <= 5 && j->sw <= 2 ? j->kw * 10 + j->sw : 0;

	switch (shape) {
	case 21: columns(y, row, j->ow, 2, 1, max); break;
	case 22: columns(y, row, j->ow, 2, 2, max); break;
	case 31: columns(y, row, j->ow, 3, 1, max); break;
	case 32: columns_3_2(y, row, row + j->wide, row + j->wide + j->ow + 1, j->ow, max); break;
	case 51: columns(y, row, j->ow, 5, 1, max); break;
	default: any_columns(j, y, row, max); break;
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

/* Folds the rows of one output row between the paddings. */
RG_INLINE void fold_rows(const struct job *j, const float *x, int64_t y0, float *row, const bool max)
{
	bool first = true;

	for (int64_t k = 0; k < j->kh; k++) {
		int64_t r = y0 + k * j->dh;

		if (r < 0 || r >= j->ih)
			continue;
		if (first)
			memcpy(row + j->left, x + r * j->iw, (size_t)j->iw * sizeof(*row));
		else
			fold_row(row + j->left, x + r * j->iw, j->iw, max);
		first = false;
	}
	for (int64_t i = 0; first && i < j->iw; i++) /* the window lies in the padding */
		row[j->left + i] = max ? -INFINITY : 0;
}

RG_INLINE void plane(const struct job *j, const float *x, float *restrict y, float *row, const bool max)
{
	for (int64_t r = 0; r < j->oh; r++, y += j->ow) {
		int64_t y0 = r * j->sh - j->top, rows;

		fold_rows(j, x, y0, row, max);
		fold_columns(j, y, row, max);
		if (max)
			continue;
		rows = j->with_pad ? below(y0, j->dh, j->kh, j->ih + j->bottom) : inside(y0, j->dh, j->kh, j->ih);
		for (int64_t i = 0; i < j->ow; i++)
			y[i] /= (float)rows * j->columns[i];
	}
}

static int64_t lane_floats(const struct job *j)
{
	return rg_lane_room(j->wide + 2 * (j->ow + 1));
}

RG_INLINE void planes(const struct job *j, int64_t begin, int64_t end, int lane, const bool max)
{
	float *row = j->rows + lane * lane_floats(j);

	for (int64_t i = 0; i < j->wide; i++)
		row[i] = max ? -INFINITY : 0;
	for (int64_t i = begin; i < end; i++)
		plane(j, j->x + i * j->w.in_count, j->y + i * j->w.out_count, row, max);
}

static void work_max(void *arg, int64_t begin, int64_t end, int lane)
{
	planes(arg, begin, end, lane, true);
}

static void work_average(void *arg, int64_t begin, int64_t end, int lane)
{
	planes(arg, begin, end, lane, false);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (setup(c, &j, &err) || j.ow < 1)
		return 0;
	return (size_t)(rg_lane_room(j.ow) + lanes * lane_floats(&j)) * sizeof(float);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool max = !strcmp(c->node->op_type, "MaxPool");
	struct job j;
	int rc = setup(c, &j, err);

	if (rc)
		return rc;
	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	j.x = c->in[0].data;
	j.y = c->out[0].data;
	j.columns = c->scratch;
	j.rows = j.columns + rg_lane_room(j.ow);
	for (int64_t i = 0; i < j.ow; i++) {
		int64_t x0 = i * j.sw - j.left;

		j.columns[i] = (float)(j.with_pad ? below(x0, j.dw, j.kw, j.iw + j.right) : inside(x0, j.dw, j.kw, j.iw));
	}
	par->run(par, j.w.batch * j.w.c_in, rg_grain(j.oh * (j.kh * j.iw + j.kw * j.ow + 40)), max ? work_max : work_average,
		 &j);
	return 0;
}

/* ---- over whole planes ---- */

struct global_job {
	int64_t n;
	const float *x;
	float *y;
};

static void work_global_average(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct global_job *j = arg;

	for (int64_t p = begin; p < end; p++)
		j->y[p] = (float)(rg_sum(j->x + p * j->n, j->n) / (double)j->n);
}

static void work_global_max(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct global_job *j = arg;

	for (int64_t p = begin; p < end; p++)
		j->y[p] = rg_extreme(j->x + p * j->n, j->n, -INFINITY, true);
}

static int run_global(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	struct global_job j = { rg_shape_count_range(s, 2, s->rank), c->in[0].data, c->out[0].data };

	par->run(par, rg_shape_count_range(s, 0, 2), rg_grain(j.n + 20),
		 strcmp(c->node->op_type, "GlobalMaxPool") ? work_global_average : work_global_max, &j);
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

static void traffic_global(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = rg_tensor_bytes(RG_F32, &c->in[0].shape);
	out->write_bytes = rg_tensor_bytes(RG_F32, &c->out[0].shape);
}

#define K(OP, SUPPORTS, SCRATCH, TRAFFIC, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = SUPPORTS, .scratch_bytes = SCRATCH, .traffic = TRAFFIC, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("AveragePool", supports, scratch_bytes, NULL, run),
	K("GlobalAveragePool", supports_global, NULL, traffic_global, run_global),
	K("GlobalMaxPool", supports_global, NULL, traffic_global, run_global),
	K("MaxPool", supports, scratch_bytes, NULL, run),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(pool), kernels);
