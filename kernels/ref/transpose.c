/* Permuting and repeating: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth. */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int run_copy(const struct rg_copy *k, const struct rg_call *c)
{
	if (rg_shape_count(&c->out[0].shape) > 0)
		rg_copy_run(k, c->in[0].data, c->out[0].data, rg_dtype_bytes(c->out[0].dtype));
	return 0;
}

static int transpose(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	const int64_t *perm;
	struct rg_copy k = { 0 };
	int n = rg_node_ints(c->node, "perm", &perm);

	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		int src = n > 0 ? rg_args_axis(perm[i], s->rank) : s->rank - 1 - i;

		rg_copy_dim(&k, s->dim[src], from[src], to[i]);
	}
	if (rg_dtype_bytes(c->in[0].dtype) == 0) {
		rg_ref_clear(&c->out[0]);
		rg_copy_run_packed(&k, c->in[0].data, c->out[0].data, rg_dtype_bits(c->in[0].dtype));
		return 0;
	}
	return run_copy(&k, c);
}

static bool transpose_supports(const struct rg_call *c)
{
	return rg_dtype_bits(c->in[0].dtype) != 0;
}

static int expand(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	struct rg_copy k = { 0 };

	rg_shape_broadcast_strides(&c->in[0].shape, s, from);
	rg_shape_strides(s, to);
	for (int i = 0; i < s->rank; i++)
		rg_copy_dim(&k, s->dim[i], from[i], to[i]);
	return run_copy(&k, c);
}

/* Each dimension becomes two: the repeats, which read the same again, and the
 * elements. */
static int tile(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	struct rg_copy k = { 0 };

	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		int64_t d = s->dim[i];

		rg_copy_dim(&k, d ? c->out[0].shape.dim[i] / d : 0, 0, to[i] * d);
		rg_copy_dim(&k, d, from[i], to[i]);
	}
	return run_copy(&k, c);
}

static bool is_crd(const struct rg_node *n)
{
	return strcmp(rg_node_string(n, "mode", "DCR"), "CRD") == 0;
}

/*
 * Both operators pair an array [batch, depth, h, w] with the image
 * [batch, channels, h * b, w * b]. The depth axis splits into (bh, bw, channel)
 * for DCR and (channel, bh, bw) for CRD.
 */
struct blocks {
	int64_t batch, channels, b, h, w;
	int64_t channel_stride, bh_stride, bw_stride; /* in the depth array */
};

static struct blocks blocks_of(const struct rg_node *n, const struct rg_shape *deep)
{
	struct blocks k = { .b = rg_node_int(n, "blocksize", 1) };
	int64_t plane = deep->dim[2] * deep->dim[3];

	k.batch = deep->dim[0];
	k.channels = deep->dim[1] / (k.b * k.b);
	k.h = deep->dim[2];
	k.w = deep->dim[3];
	k.channel_stride = is_crd(n) ? k.b * k.b * plane : plane;
	k.bw_stride = is_crd(n) ? plane : k.channels * plane;
	k.bh_stride = k.bw_stride * k.b;
	return k;
}

/* Walks in the image's order: batch, channel, h, bh, w, bw. */
static void add_dim(struct rg_copy *k, bool to_image, int64_t dim, int64_t deep, int64_t image)
{
	rg_copy_dim(k, dim, to_image ? deep : image, to_image ? image : deep);
}

static int move_blocks(const struct rg_call *c, const struct rg_shape *deep, bool to_image)
{
	struct blocks b = blocks_of(c->node, deep);
	int64_t row = b.w * b.b, plane = row * b.h * b.b;
	struct rg_copy k = { 0 };

	add_dim(&k, to_image, b.batch, deep->dim[1] * b.h * b.w, b.channels * plane);
	add_dim(&k, to_image, b.channels, b.channel_stride, plane);
	add_dim(&k, to_image, b.h, b.w, row * b.b);
	add_dim(&k, to_image, b.b, b.bh_stride, row);
	add_dim(&k, to_image, b.w, 1, b.b);
	add_dim(&k, to_image, b.b, b.bw_stride, 1);
	return run_copy(&k, c);
}

static int depth_to_space(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return move_blocks(c, &c->in[0].shape, true);
}

static int space_to_depth(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return move_blocks(c, &c->out[0].shape, false);
}

#define COPY(NAME, RUN) { .op_type = NAME, .domain = "", .name = "ref", .supports = rg_copy_supports, \
			  .traffic = rg_copy_traffic, .run = RUN }

static const struct rg_kernel kernels[] = {
	{ .op_type = "Transpose", .domain = "", .name = "ref", .supports = transpose_supports,
	  .traffic = rg_copy_traffic, .run = transpose },
	COPY("Expand", expand),
	COPY("Tile", tile),
	COPY("DepthToSpace", depth_to_space),
	COPY("SpaceToDepth", space_to_depth),
};
RG_KERNEL_TABLE(rg_kernels_ref_transpose, kernels);
