/* See quantize.h: weights and biases in integers, and the small pieces that both forms are built of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/quantize.h"
#include "compile/rewrite.h"

int rg_quantize_value(struct rg_graph *g, const char *base, const char *what, struct rg_error *err)
{
	struct rg_shape none = { 0 };
	int v = rg_rewrite_value(g, base, what, RG_UNDEFINED, &none, err);

	if (v >= 0)
		g->values[v].shaped = false; /* inference says what it is */
	return v;
}

int rg_quantize_add_node(struct rg_graph *g, const char *op_type, const char *name, int n_in, const int *in, int out,
			 int64_t axis, struct rg_error *err)
{
	struct rg_attr attr = { .name = "axis", .type = RG_ATTR_INT, .i = axis };
	char *full = rg_asprintf("%s/%s", name, op_type);
	int at;

	if (!full)
		return rg_error_nomem(err, strlen(name));
	at = rg_graph_add_node(g, "", op_type, full, n_in, in, 1, &out, axis >= 0, &attr, err);
	rg_free(full);
	return at;
}

int rg_quantize_scalar(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype, double value,
		       struct rg_error *err)
{
	struct rg_shape scalar = { 0 };
	void *data = rg_alloc_aligned(64, 64);

	if (!data)
		return rg_error_nomem(err, 64);
	if (dtype == RG_F32)
		*(float *)data = (float)value;
	else if (dtype == RG_I8)
		*(int8_t *)data = (int8_t)value;
	else
		*(uint8_t *)data = (uint8_t)value;
	return rg_rewrite_const(g, base, what, dtype, &scalar, data, err);
}

/* Elements of a weight: [outer][channels][inner]. */
struct layout { int64_t outer, channels, inner; };

static struct layout layout_of(const struct rg_value *w, int axis)
{
	if (axis < 0)
		return (struct layout){ 1, 1, rg_shape_count(&w->shape) };
	return (struct layout){ rg_shape_count_range(&w->shape, 0, axis), w->shape.dim[axis],
				rg_shape_count_range(&w->shape, axis + 1, w->shape.rank) };
}

/* The scale of a channel, such that its bias fits into what 32 bits leave beside `terms` products of a uint8 and an
 * int8. */
static float scale_of(double most, double bias, double act_scale, double terms)
{
	double room = fmax(2147483647.0 - terms * 255 * 127, 1 << 20);
	float s = rg_qparams_s8(most).scale;

	if (act_scale > 0 && fabs(bias) > room * (double)s * act_scale)
		s = (float)(fabs(bias) / (room * act_scale) * (1 + 1e-6));
	return s;
}

static void fill(const float *w, const struct layout *l, const struct rg_shape *shape, bool transpose,
		 const float *scale, int8_t *q)
{
	for (int64_t o = 0; o < l->outer; o++)
		for (int64_t c = 0; c < l->channels; c++)
			for (int64_t i = 0; i < l->inner; i++) {
				int64_t at = (o * l->channels + c) * l->inner + i, to = at;
				struct rg_qparams p = { .scale = scale[c], .least = -127, .most = 127 };

				if (transpose)
					to = at % shape->dim[1] * shape->dim[0] + at / shape->dim[1];
				q[to] = (int8_t)rg_quantize(w[at], &p);
			}
}

/* The bias in steps of the accumulator. */
static int make_bias(struct rg_graph *g, const struct rg_quantize_site *s, const char *name, const float *scale,
		     const struct layout *l, float act_scale, struct rg_quantize_weight *out, struct rg_error *err)
{
	int64_t n = rg_shape_count(&g->values[s->bias].shape);
	struct rg_shape list = { .rank = 1, .dim = { n } }, one = { 0 };
	const float *b = g->values[s->bias].data;
	int32_t *q = rg_alloc_aligned(64, (size_t)n * sizeof(*q));
	float *step = rg_alloc_aligned(64, (size_t)l->channels * sizeof(*step));

	if (!q || !step) {
		rg_free(q);
		rg_free(step);
		return rg_error_nomem(err, (size_t)n * sizeof(*q));
	}
	for (int64_t c = 0; c < l->channels; c++)
		step[c] = act_scale * scale[c];
	for (int64_t i = 0; i < n; i++)
		q[i] = (int32_t)fmin(fmax(nearbyint((double)b[i] / (double)step[l->channels > 1 ? i : 0]), -2147483647.0),
				     2147483647.0);
	one.rank = l->channels > 1;
	one.dim[0] = l->channels;
	out->bias = rg_rewrite_const(g, name, ":bias", RG_I32, &list, q, err);
	if (out->bias < 0) {
		rg_free(step);
		return out->bias;
	}
	out->bias_scale = rg_rewrite_const(g, name, ":bias-scale", RG_F32, &one, step, err);
	return out->bias_scale < 0 ? out->bias_scale : 0;
}

static float *make_scales(const struct rg_graph *g, const struct rg_quantize_site *s, const struct layout *l,
			  float act_scale)
{
	float *scale = rg_alloc_aligned(64, (size_t)l->channels * sizeof(*scale));
	const float *w = g->values[s->weight].data, *b = s->bias >= 0 && act_scale > 0 ? g->values[s->bias].data : NULL;
	int64_t n_bias = b ? rg_shape_count(&g->values[s->bias].shape) : 0;
	double terms;

	if (!scale)
		return NULL;
	/* the sum of one output goes over all of a weight but its channels */
	terms = (double)(rg_shape_count(&g->values[s->weight].shape) / (l->channels > 1 ? l->channels : 1));
	for (int64_t c = 0; c < l->channels; c++) {
		double most = 0, bias = 0;

		for (int64_t o = 0; o < l->outer; o++)
			for (int64_t i = 0; i < l->inner; i++)
				most = fmax(most, fabs((double)w[(o * l->channels + c) * l->inner + i]));
		for (int64_t i = 0; i < n_bias; i++)
			if (l->channels == 1 || i == c)
				bias = fmax(bias, fabs((double)b[i]));
		scale[c] = scale_of(most, bias, (double)act_scale, fmin(terms, 60000));
	}
	return scale;
}

int rg_quantize_make_weight(struct rg_graph *g, const struct rg_quantize_site *s, float act_scale, bool transpose,
			    const struct rg_quantize_weight *same, struct rg_quantize_weight *out,
			    struct rg_error *err)
{
	struct layout l = layout_of(&g->values[s->weight], s->axis);
	struct rg_shape shape = g->values[s->weight].shape, per = { .rank = l.channels > 1, .dim = { l.channels } };
	const float *w = g->values[s->weight].data;
	int64_t count = rg_shape_count(&shape);
	char *name = rg_asprintf("%s", g->nodes[s->node].name); /* nodes move as values are added */
	int8_t *q = rg_alloc_aligned(64, (size_t)count), *zero = rg_alloc_aligned(64, (size_t)l.channels);
	float *scale = make_scales(g, s, &l, act_scale);
	int rc;

	*out = (struct rg_quantize_weight){ -1, -1, -1, -1, -1, l.channels };
	if (!name || !q || !zero || !scale) {
		rg_free(name);
		rg_free(q);
		rg_free(zero);
		rg_free(scale);
		return rg_error_nomem(err, (size_t)count);
	}
	memset(zero, 0, (size_t)l.channels);
	fill(w, &l, &shape, transpose, scale, q);
	rc = s->bias >= 0 && act_scale > 0 ? make_bias(g, s, name, scale, &l, act_scale, out, err) : 0;
	if (transpose) {
		int64_t rows = shape.dim[0];

		shape.dim[0] = shape.dim[1];
		shape.dim[1] = rows;
	}
	if (rc)
		goto out;
	if (same && !memcmp(g->values[same->scale].data, scale, (size_t)l.channels * sizeof(*scale))) {
		out->q = same->q;
		out->scale = same->scale;
		out->zero = same->zero;
		goto out; /* what was made is not needed */
	}
	rc = out->q = rg_rewrite_const(g, name, ":weights", RG_I8, &shape, q, err);
	q = NULL;
	if (rc < 0)
		goto out;
	rc = out->scale = rg_rewrite_const(g, name, ":scale", RG_F32, &per, scale, err);
	scale = NULL;
	if (rc < 0)
		goto out;
	rc = out->zero = rg_rewrite_const(g, name, ":zero", RG_I8, &per, zero, err);
	zero = NULL;
out:
	rg_free(name);
	rg_free(q);
	rg_free(scale);
	rg_free(zero);
	return rc < 0 ? rc : 0;
}
