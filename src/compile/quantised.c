/* See quantised.h. */
#include "compile/quantised.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op-quant.h"
#include "graph/op-types.h"

static bool is_standard(const struct rg_node *n, const char *op_type)
{
	return !n->unsupported && !n->domain[0] && strcmp(n->op_type, op_type) == 0;
}

static int32_t zero_at(const struct rg_graph *g, int value, int64_t i)
{
	const struct rg_value *v = value >= 0 ? &g->values[value] : NULL;

	if (!v)
		return 0;
	return v->dtype == RG_I8 ? ((const int8_t *)v->data)[i] : ((const uint8_t *)v->data)[i];
}

static bool is_constant(const struct rg_value *v)
{
	return v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->data;
}

/* Scale and zero point of a node that makes or reads `bytes`, and lies along the shape of `like`. */
static bool read_params(const struct rg_match *m, int at, int bytes, int like, struct rg_quantised *out)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[at];
	const struct rg_shape *s = &g->values[like].shape;
	const float *scales;
	int64_t axis;

	*out = (struct rg_quantised){.node = at,
				     .value = bytes,
				     .type = g->values[bytes].dtype,
				     .scale = n->in[1],
				     .zero = n->n_in > 2 ? n->in[2] : -1};
	scales = rg_match_floats(g, out->scale, &out->n);
	if (!scales || out->n < 1 || rg_node_int(n, "block_size", 0) != 0 || !g->values[like].shaped ||
	    g->values[like].dynamic || g->values[bytes].dynamic)
		return false;
	if (out->zero >= 0 &&
	    (!is_constant(&g->values[out->zero]) || g->values[out->zero].dtype != out->type ||
	     rg_shape_count(&g->values[out->zero].shape) != out->n))
		return false;
	for (int64_t i = 0; i < out->n; i++)
		if (!(scales[i] > 0) || !isfinite(scales[i]))
			return false;
	if (out->n > 1) {
		axis = rg_node_int(n, "axis", 1);
		out->axis = (int)(axis < 0 ? axis + s->rank : axis);
	}
	out->s = scales[0];
	out->z = zero_at(g, out->zero, 0);
	return true;
}

bool rg_quantised_from(const struct rg_match *m, int value, struct rg_quantised *out)
{
	const struct rg_value *v = value >= 0 ? &m->g->values[value] : NULL;
	const struct rg_node *n;

	if (!v || v->dtype != RG_F32 || v->producer < 0 || v->producer >= m->n_nodes ||
	    m->gone[v->producer] || m->pinned[v->producer])
		return false;
	n = &m->g->nodes[v->producer];
	return is_standard(n, "DequantizeLinear") && n->in[0] >= 0 &&
	       rg_in_set(m->g->values[n->in[0]].dtype, RG_SET_INT8) &&
	       read_params(m, v->producer, n->in[0], value, out);
}

bool rg_quantised_by(const struct rg_match *m, int at, struct rg_quantised *out)
{
	const struct rg_node *n = &m->g->nodes[at];

	return rg_match_is(m, at, "QuantizeLinear") && n->in[0] >= 0 &&
	       m->g->values[n->in[0]].dtype == RG_F32 && n->out[0] >= 0 &&
	       rg_in_set(m->g->values[n->out[0]].dtype, RG_SET_INT8) &&
	       rg_quant_precision(n, RG_F32, RG_F32) == RG_F32 &&
	       read_params(m, at, n->out[0], n->in[0], out) && out->n == 1;
}

bool rg_quantised_to(const struct rg_match *m, int node, struct rg_quantised *out, enum rg_decline *why)
{
	int at = rg_match_reader(m, node, "QuantizeLinear", false, why);

	return at >= 0 && rg_quantised_by(m, at, out);
}

bool rg_quantised_same(const struct rg_quantised *a, const struct rg_quantised *b)
{
	return a->n == 1 && b->n == 1 && a->type == b->type && a->s == b->s && a->z == b->z;
}

int32_t rg_quantised_least(enum rg_dtype type)
{
	return type == RG_I8 ? -128 : 0;
}

int32_t rg_quantised_byte(const struct rg_quantised *q, float x)
{
	float least = (float)rg_quantised_least(q->type), v = rintf(x / q->s) + (float)q->z;

	v = v >= least ? v : least;
	return (int32_t)(v <= least + 255 ? v : least + 255);
}

float rg_quantised_float(const struct rg_quantised *q, int32_t byte)
{
	return (float)(byte - q->z) * q->s;
}

int rg_quantised_zero(struct rg_match *m, const struct rg_quantised *q, struct rg_error *err)
{
	struct rg_shape shape = m->g->values[q->scale].shape;
	void *zeros;

	if (q->zero >= 0)
		return q->zero;
	zeros = rg_alloc_aligned(64, (size_t)q->n);
	if (!zeros)
		return rg_error_nomem(err, (size_t)q->n);
	memset(zeros, 0, (size_t)q->n);
	return rg_rewrite_const(m->g, m->g->nodes[q->node].name, ":zero", q->type, &shape, zeros, err);
}

/* ---- biases ---- */

/* The integers behind a bias that was stored as int32, where its scales are these steps; NULL else. */
static const int32_t *stored(const struct rg_match *m, int value, int64_t n, const float *step)
{
	const struct rg_graph *g = m->g;
	int at = g->values[value].producer;
	const struct rg_node *d = at >= 0 && at < m->n_nodes && !m->gone[at] ? &g->nodes[at] : NULL;
	const float *scales;
	int64_t count;

	if (!d || !is_standard(d, "DequantizeLinear") || g->values[d->in[0]].dtype != RG_I32 ||
	    !is_constant(&g->values[d->in[0]]) || (d->n_in > 2 && d->in[2] >= 0) ||
	    rg_node_int(d, "block_size", 0) != 0)
		return NULL;
	scales = rg_match_floats(g, d->in[1], &count);
	if (!scales || (count != 1 && count != n) || rg_shape_count(&g->values[d->in[0]].shape) != n)
		return NULL;
	for (int64_t i = 0; i < n; i++)
		if (!(fabsf(scales[count == 1 ? 0 : i] - step[i]) <= 1e-6f * step[i]))
			return NULL;
	return g->values[d->in[0]].data;
}

int rg_quantised_bias(struct rg_match *m, int value, int64_t n, const float *step, const char *name,
		      struct rg_error *err)
{
	const int32_t *was = stored(m, value, n, step);
	struct rg_shape shape = {.rank = 1, .dim = {n}};
	int64_t count = 0;
	const float *f = was ? NULL : rg_match_floats(m->g, value, &count);
	int32_t *to;

	if (!was && (!f || (count != n && count != 1)))
		return -ERANGE;
	for (int64_t i = 0; i < n && f; i++) {
		double v = (double)f[count == 1 ? 0 : i] / (double)step[i];

		if (!(fabs(v) < 0x1p31 - 1))
			return -ERANGE;
	}
	to = rg_alloc_aligned(64, (size_t)n * sizeof(*to) + 1);
	if (!to)
		return rg_error_nomem(err, (size_t)n * sizeof(*to));
	for (int64_t i = 0; i < n; i++)
		to[i] = was ? was[i] : (int32_t)rint((double)f[count == 1 ? 0 : i] / (double)step[i]);
	return rg_rewrite_const(m->g, name, ":bias", RG_I32, &shape, to, err);
}
