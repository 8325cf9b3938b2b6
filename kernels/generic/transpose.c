/*
 * Transpose of 4-byte elements. Dimensions that stay neighbours are merged
 * first. Where the last dimension stays last, rows are copied; else the two
 * dimensions that are last in the input and in the output are walked in square
 * blocks, so that both sides use whole cache lines.
 */
#include "kernels/generic/generic.h"

#include "kernels/tables.h"

enum { BLOCK = 16 };

struct job {
	int rank;
	int64_t dim[RG_MAX_RANK];   /* of the output */
	int64_t from[RG_MAX_RANK];  /* input strides in the output's order */
	int64_t to[RG_MAX_RANK];    /* output strides */
	int fast;                   /* output dimension that is the input's last */
	int64_t tiles, total;       /* BLOCKs along `fast`; items */
	const uint32_t *x;
	uint32_t *y;
};

static bool setup(const struct rg_call *c, struct job *j)
{
	const struct rg_shape *in = &c->in[0].shape;
	int64_t strides[RG_MAX_RANK], at = 1;
	const int64_t *perm;
	int n = rg_node_ints(c->node, "perm", &perm);

	memset(j, 0, sizeof(*j));
	rg_shape_strides(in, strides);
	for (int d = 0; d < in->rank; d++) {
		int64_t p = n == in->rank ? perm[d] : in->rank - 1 - d;

		p += p < 0 ? in->rank : 0;
		if (p < 0 || p >= in->rank)
			return false;
		if (in->dim[p] == 1)
			continue;
		if (j->rank && j->from[j->rank - 1] == strides[p] * in->dim[p]) {
			j->dim[j->rank - 1] *= in->dim[p];
			j->from[j->rank - 1] = strides[p];
		} else {
			j->dim[j->rank] = in->dim[p];
			j->from[j->rank++] = strides[p];
		}
	}
	if (!j->rank) {
		j->dim[0] = j->from[0] = 1;
		j->rank = 1;
	}
	for (int d = j->rank - 1; d >= 0; d--) {
		j->to[d] = at;
		at *= j->dim[d];
		if (j->from[d] == 1)
			j->fast = d;
	}
	return true;
}

static void block(const struct job *j, const uint32_t *restrict x, uint32_t *restrict y, int64_t rows, int64_t columns)
{
	int64_t from = j->from[j->rank - 1], to = j->to[j->fast];

	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < columns; i++)
			y[r * to + i] = x[r + i * from];
}

/* Items: every index but the last output dimension, with `fast` in BLOCKs. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int last = j->rank - 1;
	int64_t width = j->dim[last];

	for (int64_t item = begin; item < end; item++) {
		const uint32_t *x = j->x;
		uint32_t *y = j->y;
		int64_t rest = item, rows = 1;

		for (int d = last - 1; d >= 0; d--) {
			int64_t n = d == j->fast ? j->tiles : j->dim[d], i = rest % n;

			rest /= n;
			if (d == j->fast) {
				i *= BLOCK;
				rows = j->dim[d] - i < BLOCK ? j->dim[d] - i : BLOCK;
			}
			x += i * j->from[d];
			y += i * j->to[d];
		}
		if (j->fast == last) {
			memcpy(y, x, (size_t)width * sizeof(*y));
			continue;
		}
		for (int64_t i = 0; i < width; i += BLOCK)
			block(j, x + i * j->from[last], y + i, rows, width - i < BLOCK ? width - i : BLOCK);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape);
	struct job j;

	if (!setup(c, &j))
		return rg_error_set(err, -EINVAL, "perm has an axis outside of the input");
	if (n == 0)
		return 0;
	j.x = c->in[0].data;
	j.y = c->out[0].data;
	j.tiles = (j.dim[j.fast] + BLOCK - 1) / BLOCK;
	j.total = 1;
	for (int d = 0; d < j.rank - 1; d++)
		j.total *= d == j.fast ? j.tiles : j.dim[d];
	par->run(par, j.total, rg_grain(2 * n / j.total + 20), work, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct job j;

	return rg_dtype_bytes(c->in[0].dtype) == 4 && setup(c, &j);
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = 0;
	out->read_bytes = out->write_bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Transpose", .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .traffic = traffic, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(transpose), kernels);
