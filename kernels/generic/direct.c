/*
 * Convolution without a BLAS: for a few vectors of output pixels, the input
 * that each tap sees is gathered into a panel, and all output channels of the
 * group are computed from it, a block of them at a time in registers.
 * Any number of dimensions, strides, dilations, groups.
 */
#include "kernels/generic/generic.h"

#include "graph/window.h"
#include "kernels/generic/panel.h"
#include "kernels/im2col.h"
#include "kernels/tables.h"

struct job {
	struct rg_window w;
	int64_t taps, m;          /* of a group */
	int64_t panels;           /* of an image */
	int64_t part, parts;      /* output channels of one item; items they are cut into */
	int64_t panel_floats;
	const float *x, *wt, *bias;
	float *y, *scratch;
};

static int setup(const struct rg_call *c, int lanes, struct job *j, struct rg_error *err)
{
	int64_t items;
	int rc;

	memset(j, 0, sizeof(*j));
	if ((rc = rg_window_conv(c->node, &c->in[0].shape, &c->in[1].shape, &j->w, err)))
		return rc;
	j->m = j->w.c_out / j->w.group;
	if (__builtin_mul_overflow(j->w.c_in / j->w.group, j->w.kernel_count, &j->taps) ||
	    __builtin_mul_overflow(j->taps, RG_PANEL_WIDTH, &j->panel_floats) || j->panel_floats > INT32_MAX)
		return rg_error_set(err, -EOVERFLOW, "a panel of the convolution is too large");
	j->panels = (j->w.out_count + RG_PANEL_WIDTH - 1) / RG_PANEL_WIDTH;
	items = j->w.batch * j->w.group * j->panels;
	/* Few pixels: share the output channels too, and gather the panel again for each part. */
	j->parts = 1;
	if (items > 0 && items < 4 * (int64_t)lanes && lanes > 1)
		j->parts = 4 * (int64_t)lanes / items;
	j->part = (j->m + j->parts - 1) / j->parts;
	j->part = (j->part + RG_PANEL_ROWS - 1) / RG_PANEL_ROWS * RG_PANEL_ROWS;
	j->parts = j->part ? (j->m + j->part - 1) / j->part : 0;
	return 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return setup(c, lanes, &j, &err) ? 0 : (size_t)j.panel_floats * sizeof(float) * (size_t)lanes;
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const struct rg_window *w = &j->w;
	float *panel = j->scratch + lane * j->panel_floats;
	int64_t have = -1; /* the panel that scratch holds */

	for (int64_t i = begin; i < end; i++) {
		int64_t m0 = i % j->parts * j->part, id = i / j->parts, p0 = id % j->panels * RG_PANEL_WIDTH;
		int64_t g = id / j->panels % w->group, n = id / j->panels / w->group;
		int64_t m = j->m - m0 < j->part ? j->m - m0 : j->part, channel = g * j->m + m0;
		int64_t count = w->out_count - p0 < RG_PANEL_WIDTH ? w->out_count - p0 : RG_PANEL_WIDTH;

		if (id != have) {
			/* columns that are not there must not be garbage: it could be slow to add */
			if (count < RG_PANEL_WIDTH)
				memset(panel, 0, (size_t)j->panel_floats * sizeof(*panel));
			rg_im2col(w, j->x + (n * w->c_in + g * (w->c_in / w->group)) * w->in_count, 0, j->taps, p0,
				  count, RG_PANEL_WIDTH, panel);
		}
		have = id;
		rg_panel_multiply(j->wt + channel * j->taps, j->taps, 1, panel, j->taps,
				  j->bias ? j->bias + channel : NULL,
				  j->y + (n * w->c_out + channel) * w->out_count + p0, w->out_count, m, count);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;
	int rc = setup(c, par->lanes, &j, err);

	if (rc)
		return rc;
	j.x = c->in[0].data;
	j.wt = c->in[1].data;
	j.bias = c->node->n_in > 2 ? c->in[2].data : NULL;
	j.y = c->out[0].data;
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.w.group * j.panels * j.parts,
		 rg_grain(j.taps * RG_PANEL_WIDTH / RG_VEC * (j.part + 16) / 4), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct job j;

	return c->in[0].dtype == RG_F32 && !setup(c, 1, &j, &err);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Conv", .domain = "", .name = RG_LEVEL_NAME("direct"), .isa = RG_LEVEL_ISA,
	  .rank = 30 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(direct), kernels);
