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
#include "kernels/generic/depthwise.h"
#include "kernels/tables.h"

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
		rg_depthwise_rows(&j->p, taps, plane, wt, bias, y, &j->e);
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
