/*
 * Depthwise convolution in one and two dimensions: every output channel looks
 * at one input channel.
 *
 * A plane is first copied into the lane's scratch (plane.h); after that the loops
 * have neither borders nor gaps, and sums stay in registers over all taps.
 */
#include <math.h>

#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/generic/conv-epilogue.h"
#include "kernels/generic/plane.h"
#include "kernels/tables.h"

/* Sums at a time: enough to hide the latency of a multiply-add. */
enum { SUMS = 8 };

struct job {
	struct rg_window w;
	struct rg_plane p;
	int64_t multiplier;  /* output channels an input channel */
	int64_t lane_floats; /* the plane, and where its taps lie */
	const float *x, *wt, *bias;
	float *y, *scratch;
	struct rg_epilogue e; /* only its clip and finish */
};

/* Many output channels an input channel are a matrix product. */
enum { MAX_MULTIPLIER = 4 };

static int setup(const struct rg_call *c, struct job *j, struct rg_error *err)
{
	const struct rg_window *w = &j->w;
	int rc;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	if (w->group != w->c_in || w->group < 1 || w->c_out / w->group > MAX_MULTIPLIER)
		return rg_error_set(err, -ENOTSUP, "not a depthwise convolution");
	j->multiplier = w->c_out / w->group;
	rc = rg_plane_setup(w, &j->p, err);
	j->lane_floats = j->p.floats + (2 * w->kernel_count + 15) / 16 * 16;
	return rc;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, &j, &err) ? 0 : (size_t)j.lane_floats * sizeof(float) * (size_t)lanes;
}

/*
 * `count` rows (at most `lines`) times `vecs` vectors of columns, of which `cols` are
 * stored. Where a row is one block wide, what is stored too much falls on the next row,
 * which comes later; `room` says how many floats from y on may be written.
 */
RG_INLINE void block(const struct rg_plane *p, const int64_t *taps, const float *in, const float *wt, float bias,
		     float *y, int64_t count, int64_t cols, int64_t room, const struct rg_epilogue *e, const int lines,
		     const int vecs, const int64_t n_taps)
{
	int64_t next = rg_plane_row(p);
	const float *row[SUMS];
	rg_vec sum[SUMS];

	/* rows beyond the last one repeat it: they are computed and not stored */
	for (int l = 0; l < lines; l++)
		row[l] = in + (l < count ? l : count - 1) * next;
	for (int i = 0; i < lines * vecs; i++)
		sum[i] = rg_vec_all(bias);
	for (int64_t t = 0; t < n_taps; t++) {
		rg_vec f = rg_vec_all(wt[t]);

		for (int l = 0; l < lines; l++)
			for (int v = 0; v < vecs; v++)
				sum[l * vecs + v] = rg_vec_fma(f, rg_vec_load(row[l] + taps[t] + v * RG_VEC), sum[l * vecs + v]);
	}
	if (e->clip)
		for (int i = 0; i < lines * vecs; i++)
			sum[i] = rg_vec_clip(sum[i], rg_vec_all(e->low), rg_vec_all(e->high));
	for (int l = 0; l < lines; l++, y += p->ow, room -= p->ow) {
		if (l >= count)
			break;
		for (int v = 0; v < vecs; v++) {
			int64_t at = (int64_t)v * RG_VEC;

			if (cols - at >= RG_VEC || (cols == p->ow && at < cols && room - at >= RG_VEC))
				rg_vec_store(y + at, sum[l * vecs + v]);
			else
				for (int64_t i = 0; i < cols - at; i++)
					y[at + i] = sum[l * vecs + v][i];
		}
	}
}

RG_INLINE void rows(const struct rg_plane *p, const int64_t *taps, const float *plane, const float *wt, float bias,
		    float *y, const struct rg_epilogue *e, const int64_t n_taps)
{
	int64_t lines = p->ow > 2 * RG_VEC ? 2 : p->ow > RG_VEC ? 4 : 8, wide = SUMS / lines * RG_VEC;

	for (int64_t r = 0; r < p->oh; r += lines) {
		const float *row = plane + r * rg_plane_row(p);
		int64_t count = p->oh - r < lines ? p->oh - r : lines;

		for (int64_t at = 0; at < p->ow; at += wide) {
			int64_t cols = p->ow - at < wide ? p->ow - at : wide, room = (p->oh - r) * p->ow - at;
			float *to = y + r * p->ow + at;

			if (lines == 8)
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 8, 1, n_taps);
			else if (lines == 4)
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 4, 2, n_taps);
			else if (cols > 3 * RG_VEC)
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 4, n_taps);
			else if (cols > 2 * RG_VEC)
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 3, n_taps);
			else if (cols > RG_VEC)
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 2, n_taps);
			else
				block(p, taps, row + at, wt, bias, to, count, cols, room, e, 2, 1, n_taps);
		}
		if (e->finish)
			e->finish(y + r * p->ow, count * p->ow, e);
	}
}

/* Items are output planes: image * c_out + channel. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *plane = j->scratch + lane * j->lane_floats;
	int64_t *taps = (int64_t *)(plane + j->p.floats);
	int64_t have = -1; /* the input plane that scratch holds */

	for (int64_t t = 0; t < j->w.kernel_count; t++)
		taps[t] = rg_plane_tap(&j->p, t / j->p.kw, t % j->p.kw);
	for (int64_t i = begin; i < end; i++) {
		int64_t m = i % j->w.c_out, from = i / j->multiplier;
		const float *wt = j->wt + m * j->w.kernel_count;
		float bias = j->bias ? j->bias[m] : 0, *y = j->y + i * j->w.out_count;

		if (from != have)
			rg_plane_copy(&j->p, j->x + from * j->w.in_count, plane);
		have = from;
		if (j->p.kh == 3 && j->p.kw == 3)
			rows(&j->p, taps, plane, wt, bias, y, &j->e, 9);
		else if (j->p.kh == 5 && j->p.kw == 5)
			rows(&j->p, taps, plane, wt, bias, y, &j->e, 25);
		else
			rows(&j->p, taps, plane, wt, bias, y, &j->e, j->w.kernel_count);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int rc = setup(c, &j, err);

	if (rc || rg_shape_count(&c->out[0].shape) == 0)
		return rc;
	rg_conv_epilogue(c, &j.e);
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.w.c_out, rg_grain(j.p.floats + j.w.out_count * j.w.kernel_count / 4), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	if (c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED) /* a residual */
		return false;
	return c->in[0].dtype == RG_F32 && !setup(c, &j, &err) && rg_conv_epilogue(c, &j.e);
}

static double cost(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	double copy, sums;
	struct job j;

	if (setup(c, &j, &err))
		return INFINITY;
	copy = 11 * (double)j.p.floats / RG_VEC;
	sums = (double)j.p.oh * (double)rg_ceil_div(j.p.ow, RG_VEC) * (double)j.w.kernel_count;
	return (double)j.w.batch * (double)j.w.c_in * (copy + (double)j.multiplier * (1.8 * sums + 400));
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("depthwise"), .isa = RG_LEVEL_ISA, \
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes, .cost = cost, .run = run }

static const struct rg_kernel kernels[] = {
	K("Conv", ""),
	K("FusedConv", RG_CONTRIB_DOMAIN),
	K("FusedConv", RG_OWN_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(depthwise), kernels);
