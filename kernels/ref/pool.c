/*
 * Pooling over windows and over whole planes, in double, and MaxUnpool.
 * A NaN in a window is the window's maximum, as in a sum.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

#include "graph/window.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

enum pool { POOL_MAX, POOL_AVERAGE, POOL_LP };

struct tally {
	enum pool kind;
	double value, p;
	int64_t count, at; /* taps seen; where the maximum was, -1 none */
};

static void tally_start(struct tally *t, enum pool kind, double p)
{
	t->kind = kind;
	t->p = p;
	t->value = kind == POOL_MAX ? -INFINITY : 0;
	t->count = 0;
	t->at = -1;
}

static void tally_add(struct tally *t, double v, int64_t at)
{
	t->count++;
	if (t->kind == POOL_AVERAGE) {
		t->value += v;
	} else if (t->kind == POOL_LP) {
		t->value += pow(fabs(v), t->p);
	} else if (t->at < 0 || v > t->value || (isnan(v) && !isnan(t->value))) {
		t->value = v;
		t->at = at;
	}
}

static double tally_end(const struct tally *t)
{
	if (t->kind == POOL_AVERAGE)
		return t->value / (double)t->count;
	return t->kind == POOL_LP ? pow(t->value, 1 / t->p) : t->value;
}

static enum pool kind_of(const struct rg_node *node)
{
	return strstr(node->op_type, "Max") ? POOL_MAX : strstr(node->op_type, "Lp") ? POOL_LP : POOL_AVERAGE;
}

/* Index of an element of a plane when its first dimension runs fastest. */
static int64_t column_major(const struct rg_window *w, int64_t at)
{
	int64_t index = 0, scale = 1, coord[RG_MAX_SPATIAL];

	for (int d = w->n - 1; d >= 0; d--) {
		coord[d] = at % w->in[d];
		at /= w->in[d];
	}
	for (int d = 0; d < w->n; d++) {
		index += coord[d] * scale;
		scale *= w->in[d];
	}
	return index;
}

/* One window. Returns the taps that lie inside input and padding together. */
static int64_t visit(const struct rg_call *c, const struct rg_window *w, int64_t plane, const int64_t *o,
		     struct tally *t)
{
	int64_t k[RG_MAX_SPATIAL] = { 0 }, padded = 0;

	for (int64_t q = 0; q < w->kernel_count; q++) {
		bool inside = true, in_pad = true;
		int64_t at = 0;

		for (int d = 0; d < w->n; d++) {
			int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

			inside = inside && i >= 0 && i < w->in[d];
			in_pad = in_pad && i < w->in[d] + w->pad_end[d];
			at = at * w->in[d] + i;
		}
		padded += in_pad;
		if (inside)
			tally_add(t, rg_ref_get(&c->in[0], plane * w->in_count + at), at);
		rg_odometer_next(w->n, w->kernel, k);
	}
	return padded;
}

static int run_pool(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool with_pad = rg_node_int(c->node, "count_include_pad", 0) != 0;
	bool columns = rg_node_int(c->node, "storage_order", 0) != 0;
	double p = (double)rg_node_int(c->node, "p", 2);
	enum pool kind = kind_of(c->node);
	int64_t *indices = c->node->n_out > 1 ? c->out[1].data : NULL;
	struct rg_window w;
	struct tally t;
	int rc = rg_window_pool(c->node, &c->in[0].shape, &w, err);

	if (rc)
		return rc;
	for (int64_t plane = 0; plane < w.batch * w.c_in; plane++) {
		int64_t o[RG_MAX_SPATIAL] = { 0 };

		for (int64_t i = 0; i < w.out_count; i++) {
			int64_t to = plane * w.out_count + i, padded;

			tally_start(&t, kind, p);
			padded = visit(c, &w, plane, o, &t);
			if (with_pad)
				t.count = padded;
			if (kind == POOL_MAX && t.at < 0 && !rg_dtype_is_float(c->out[0].dtype))
				t.value = c->out[0].dtype == RG_U8 ? 0 : -128;
			rg_ref_set(&c->out[0], to, tally_end(&t));
			if (indices)
				indices[to] = t.at < 0 ? -1 : plane * w.in_count +
							      (columns ? column_major(&w, t.at) : t.at);
			rg_odometer_next(w.n, w.out, o);
		}
	}
	return 0;
}

static int run_global(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *x = &c->in[0].shape;
	int64_t planes = rg_shape_count_range(x, 0, 2), n = rg_shape_count_range(x, 2, x->rank);
	double p = (double)rg_node_int(c->node, "p", 2);
	struct tally t;

	for (int64_t plane = 0; plane < planes; plane++) {
		tally_start(&t, kind_of(c->node), p);
		for (int64_t i = 0; i < n; i++)
			tally_add(&t, rg_ref_get(&c->in[0], plane * n + i), i);
		rg_ref_set(&c->out[0], plane, tally_end(&t));
	}
	return 0;
}

/* The shape whose flat positions the indices mean: what kernel, strides and
 * pads give, which a requested output shape may enlarge at the end. */
static void unpool_shape(const struct rg_call *c, struct rg_shape *s)
{
	const int64_t *kernel = NULL, *stride = NULL, *pads = NULL;
	int n_kernel = rg_node_ints(c->node, "kernel_shape", &kernel);
	int n_stride = rg_node_ints(c->node, "strides", &stride);
	int n_pads = rg_node_ints(c->node, "pads", &pads);
	int n = c->in[0].shape.rank - 2;

	*s = c->out[0].shape;
	if (n_kernel != n || (n_stride > 0 && n_stride != n) || (n_pads > 0 && n_pads != 2 * n))
		return;
	for (int i = 0; i < n; i++)
		s->dim[2 + i] = (c->in[0].shape.dim[2 + i] - 1) * (n_stride > 0 ? stride[i] : 1) + kernel[i] -
				(n_pads > 0 ? pads[i] + pads[n + i] : 0);
}

static int run_unpool(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int64_t *indices = c->in[1].data;
	int64_t n = rg_shape_count(&c->in[0].shape), total, strides[RG_MAX_RANK];
	size_t size = rg_dtype_bytes(c->in[0].dtype);
	struct rg_shape s;

	unpool_shape(c, &s);
	total = rg_shape_count(&s);
	rg_shape_strides(&c->out[0].shape, strides);
	memset(c->out[0].data, 0, (size_t)rg_shape_count(&c->out[0].shape) * size);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = indices[i], to = 0;
		bool inside = at >= 0 && at < total;

		for (int d = s.rank - 1; d >= 0 && inside; d--) {
			inside = at % s.dim[d] < c->out[0].shape.dim[d];
			to += at % s.dim[d] * strides[d];
			at /= s.dim[d];
		}
		if (!inside)
			return rg_error_set(err, -EINVAL, "index %lld lies outside the output", (long long)indices[i]);
		memcpy((char *)c->out[0].data + (size_t)to * size, (const char *)c->in[0].data + (size_t)i * size, size);
	}
	return 0;
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static bool takes_max(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT | RG_BIT(RG_I8) | RG_BIT(RG_U8));
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("AveragePool", takes_float, run_pool),
	K("GlobalAveragePool", takes_float, run_global),
	K("GlobalLpPool", takes_float, run_global),
	K("GlobalMaxPool", takes_float, run_global),
	K("LpPool", takes_float, run_pool),
	K("MaxPool", takes_max, run_pool),
	K("MaxUnpool", takes_float, run_unpool),
};
RG_KERNEL_TABLE(rg_kernels_ref_pool, kernels);
