/* Image geometry: Col2Im, CenterCropPad, AffineGrid. */
#include "graph/geometry.h"

#include <string.h>

#include "kernels/ref/copy.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* ---- Col2Im ---- */

/* Integers sum as they are, modulo their width; others in double. */
static uint64_t integer_at(const struct rg_tensor *t, int64_t i)
{
	if (t->dtype == RG_U64 || t->dtype == RG_I64)
		return ((const uint64_t *)t->data)[i];
	return (uint64_t)(int64_t)rg_ref_get(t, i);
}

static void set_integer(const struct rg_tensor *t, int64_t i, uint64_t v)
{
	switch (rg_dtype_bytes(t->dtype)) {
	case 8: ((uint64_t *)t->data)[i] = v; break;
	case 4: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
	case 2: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
	default: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	}
}

/* Where tap k at position o lies in the image; -1: on the padding. */
static int64_t place(const struct rg_window *w, const int64_t *o, const int64_t *k)
{
	int64_t at = 0;

	for (int d = 0; d < w->n; d++) {
		int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

		if (i < 0 || i >= w->in[d])
			return -1;
		at = at * w->in[d] + i;
	}
	return at;
}

/* Adds the columns of one channel up; sums: an 8-byte cell an element of the image. */
static void sum_plane(const struct rg_tensor *x, const struct rg_window *w, int64_t first, bool is_int,
		      void *sums)
{
	int64_t k[RG_MAX_SPATIAL] = { 0 };

	memset(sums, 0, (size_t)w->in_count * 8);
	for (int64_t q = 0; q < w->kernel_count; q++) {
		int64_t o[RG_MAX_SPATIAL] = { 0 };

		for (int64_t p = 0; p < w->out_count; p++) {
			int64_t at = place(w, o, k), from = first + q * w->out_count + p;

			if (at >= 0 && is_int)
				((uint64_t *)sums)[at] += integer_at(x, from);
			else if (at >= 0)
				((double *)sums)[at] += rg_ref_get(x, from);
			rg_odometer_next(w->n, w->out, o);
		}
		rg_odometer_next(w->n, w->kernel, k);
	}
}

static int col2im(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool is_int = rg_dtype_is_int(c->in[0].dtype);
	struct rg_shape image;
	struct rg_window w;
	int need = -1, rc = rg_col2im_resolve(c->node, c->in, &w, &image, &need, err);

	if (rc)
		return rc;
	if (!rg_shape_equal(&image, &c->out[0].shape))
		return rg_error_set(err, -EINVAL, "the sizes changed after the shapes were planned");
	if (rg_shape_count(&image) == 0)
		return 0;
	for (int64_t plane = 0; plane < w.batch * w.c_in; plane++) {
		sum_plane(&c->in[0], &w, plane * w.kernel_count * w.out_count, is_int, c->scratch);
		if (!is_int)
			rg_ref_store(&c->out[0], plane * w.in_count, 1, w.in_count, c->scratch);
		for (int64_t i = 0; is_int && i < w.in_count; i++)
			set_integer(&c->out[0], plane * w.in_count + i, ((const uint64_t *)c->scratch)[i]);
	}
	return 0;
}

static size_t col2im_scratch(const struct rg_call *c, int lanes)
{
	const struct rg_shape *s = &c->out[0].shape;

	return rg_shape_count(s) ? (size_t)rg_shape_count_range(s, 2, s->rank) * 8 : 0;
}

static bool numbers(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

/* ---- CenterCropPad ---- */

static int crop_pad(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	size_t size = rg_dtype_bytes(c->in[0].dtype);
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK], first = 0, at = 0, bytes;
	struct rg_crop_pad a;
	struct rg_copy copy = { 0 };
	int need = -1, rc = rg_crop_pad_resolve(c->node, c->in, &a, &need, err);

	if (rc)
		return rc;
	if (!rg_shape_equal(&a.out, &c->out[0].shape))
		return rg_error_set(err, -EINVAL, "the sizes changed after the shapes were planned");
	bytes = rg_tensor_bytes(c->out[0].dtype, &a.out);
	if (bytes == 0)
		return 0;
	memset(c->out[0].data, 0, (size_t)bytes);
	rg_shape_strides(s, from);
	rg_shape_strides(&a.out, to);
	for (int d = 0; d < s->rank; d++) {
		if (a.count[d] == 0)
			return 0;
		first += a.from[d] * from[d];
		at += a.to[d] * to[d];
		rg_copy_dim(&copy, a.count[d], from[d], to[d]);
	}
	rg_copy_run(&copy, (const char *)c->in[0].data + first * (int64_t)size,
		    (char *)c->out[0].data + at * (int64_t)size, size);
	return 0;
}

/* ---- AffineGrid ---- */

/* Coordinate i of n between -1 and 1: centres of elements, or with align_corners
 * from the first to the last; of a single one that is the last. */
static double coordinate(int64_t i, int64_t n, bool align)
{
	if (!align)
		return (double)(2 * i + 1) / (double)n - 1;
	return i == n - 1 ? 1 : -1 + 2 * (double)i / (double)(n - 1);
}

static int affine_grid(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	bool align = rg_node_int(c->node, "align_corners", 0) != 0;
	int n = s->rank - 2;
	int64_t points = rg_shape_count_range(s, 1, n + 1);

	for (int64_t b = 0; b < s->dim[0]; b++) {
		int64_t index[RG_MAX_RANK] = { 0 };

		for (int64_t p = 0; p < points; p++) {
			for (int row = 0; row < n; row++) {
				int64_t first = (b * n + row) * (n + 1);
				double sum = rg_ref_get(&c->in[0], first + n); /* the translation */

				for (int d = 0; d < n; d++) /* x is the last dimension */
					sum += rg_ref_get(&c->in[0], first + n - 1 - d) *
					       coordinate(index[d], s->dim[1 + d], align);
				rg_ref_set(&c->out[0], (b * points + p) * n + row, sum);
			}
			rg_odometer_next(n, s->dim + 1, index);
		}
	}
	return 0;
}

static bool floats(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "AffineGrid", .domain = "", .name = "ref", .supports = floats, .run = affine_grid },
	{ .op_type = "CenterCropPad", .domain = "", .name = "ref", .supports = rg_copy_supports, .run = crop_pad },
	{ .op_type = "Col2Im", .domain = "", .name = "ref", .supports = numbers, .scratch_bytes = col2im_scratch,
	  .run = col2im },
};
RG_KERNEL_TABLE(rg_kernels_ref_geometry, kernels);
