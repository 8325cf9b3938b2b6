/*
 * Convolutions and products between DequantizeLinear and QuantizeLinear become operators on bytes:
 *
 *	Conv        QLinearConv; behind it LookUp where a Clip is narrower than the bytes are
 *	MatMul      QLinearMatMul; without QuantizeLinear, or with a bias, MatMulIntegerToFloat
 *	Gemm        QGemm, to bytes or to float32
 *
 * Their sums are exact, so the result is the rounding of the true one; the model as it is
 * sums in float32. The two can differ where that is about half way between two bytes, by
 * one. A bias is rounded to steps of the product of the scales, as exporters store it.
 *
 * Relu and Clip before QuantizeLinear cost nothing: bytes end where they end.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/quantised.h"
#include "graph/contrib.h"
#include "graph/own.h"

enum { MOST_ATTRS = 16 };

struct pattern {
	int node;
	struct rg_quantised x, w, y; /* y.node -1: it stays float32 */
	int add, clip, bias;         /* nodes, -1: none; bias: a value */
	float low, high;             /* of what clips */
	bool declined;               /* what follows cannot be taken */
};

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

static bool is_conv(const struct rg_node *n)
{
	return strcmp(n->op_type, "Conv") == 0;
}

static bool is_gemm(const struct rg_node *n)
{
	return strcmp(n->op_type, "Gemm") == 0;
}

static int input(const struct rg_node *n, int i)
{
	return i < n->n_in ? n->in[i] : -1;
}

/* Channels of the result: of what the scales of weights may be, and of a bias. */
static int64_t channels(const struct rg_match *m, const struct rg_node *n)
{
	const struct rg_shape *y = &m->g->values[n->out[0]].shape;

	return is_conv(n) ? y->dim[1] : y->dim[y->rank - 1];
}

static int scale_axis(const struct rg_match *m, const struct rg_node *n)
{
	const struct rg_shape *w = &m->g->values[n->in[1]].shape;

	if (is_conv(n))
		return 0;
	if (is_gemm(n))
		return rg_node_int(n, "transB", 0) ? 0 : 1;
	return w->rank == 2 ? 1 : -1; /* of a batch of matrices there is one */
}

/* A constant with one number a column, or one for all, that a result of this shape can have added to it. */
static bool is_row(const struct rg_graph *g, int value, int64_t n)
{
	const struct rg_value *v = &g->values[value];
	int64_t count;

	return rg_match_floats(g, value, &count) && (count == n || count == 1) &&
	       (v->shape.rank == 0 || v->shape.dim[v->shape.rank - 1] == count);
}

static int decline(struct rg_match *m, const struct pattern *p, int node, enum rg_decline why,
		   struct rg_error *err)
{
	return rg_match_note(m, node, p->node, why, err);
}

/* ---- what follows ---- */

/* Of what follows: a product becomes one of bytes all the same, a convolution does not. */
static int decline_next(struct rg_match *m, struct pattern *p, int node, enum rg_decline why,
			struct rg_error *err)
{
	p->declined = true;
	return is_conv(node_at(m, p->node)) ? rg_match_note(m, node, p->node, why, err)
					    : rg_match_note_settled(m, node, p->node, why, err);
}

/* The addition of a constant behind MatMul. */
static int take_bias(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	const struct rg_node *n = node_at(m, p->node);
	enum rg_decline why;
	int at = rg_match_reader(m, p->node, "Add", true, &why), other;

	if (at < 0)
		return 0;
	other = node_at(m, at)->in[node_at(m, at)->in[0] == n->out[0]];
	if (!is_row(m->g, other, channels(m, n)) ||
	    m->g->values[other].shape.rank > m->g->values[n->out[0]].shape.rank)
		return 0;
	if (why)
		return decline_next(m, p, at, why, err);
	p->add = at;
	p->bias = other;
	return 0;
}

static int last_node(const struct pattern *p)
{
	return p->clip >= 0 ? p->clip : p->add >= 0 ? p->add : p->node;
}

/* Relu or Clip, only where QuantizeLinear follows: elsewhere others take it. */
static void find_clip(const struct rg_match *m, struct pattern *p)
{
	struct rg_quantised y;
	enum rg_decline why, next;
	int at = rg_match_reader(m, last_node(p), "Relu", false, &why);

	p->low = 0;
	p->high = INFINITY;
	if (at < 0) {
		at = rg_match_reader(m, last_node(p), "Clip", false, &why);
		if (at >= 0 && !rg_match_clip(m->g, node_at(m, at), &p->low, &p->high))
			return;
	}
	if (at >= 0 && !why && rg_quantised_to(m, at, &y, &next))
		p->clip = at;
}

static int take_end(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	enum rg_decline why;
	struct rg_quantised y;

	find_clip(m, p);
	if (rg_quantised_to(m, last_node(p), &y, &why)) {
		if (why)
			return decline_next(m, p, y.node, why, err);
		p->y = y;
		return 0;
	}
	p->clip = -1;
	return 0;
}

/* ---- rewriting ---- */

/* Scale of the accumulator by channel. NULL: no memory. */
static float *steps(const struct rg_match *m, const struct pattern *p, int64_t n, float alpha)
{
	float *to = rg_calloc((size_t)n + 1, sizeof(*to));
	const float *w = m->g->values[p->w.scale].data;

	for (int64_t i = 0; to && i < n; i++)
		to[i] = alpha * p->x.s * w[p->w.n == 1 ? 0 : i];
	return to;
}

/* The bias as integers: a value, -1 there is none, -ERANGE it cannot be. */
static int integer_bias(struct rg_match *m, const struct pattern *p, float alpha, struct rg_error *err)
{
	const struct rg_node *n = node_at(m, p->node);
	int64_t count = channels(m, n);
	float *step;
	int rc;

	if (p->bias < 0)
		return -1;
	step = steps(m, p, count, alpha);
	if (!step)
		return rg_error_nomem(err, (size_t)count * sizeof(*step));
	rc = rg_quantised_bias(m, p->bias, count, step, n->name, err);
	rg_free(step);
	return rc;
}

static int copy_attrs(const struct rg_node *n, const char *but, struct rg_attr *attrs)
{
	int k = 0;

	for (int i = 0; i < n->n_attrs; i++) {
		if (but && strcmp(n->attrs[i].name, but) == 0)
			continue;
		if (k == MOST_ATTRS)
			return -1;
		attrs[k++] = n->attrs[i];
	}
	return k;
}

/* The bytes where a Clip lets them lie: 0 and 255 from the type's least, where it takes nothing away. */
static void clip_bytes(const struct pattern *p, int32_t *low, int32_t *high)
{
	*low = rg_quantised_least(p->y.type);
	*high = *low + 255;
	if (p->clip < 0)
		return;
	*low = rg_quantised_byte(&p->y, p->low);
	*high = rg_quantised_byte(&p->y, p->high);
}

/* What is left of a Clip: a table. Returns the value that is to be clipped, which is the output where
 * nothing is left. */
static int add_clip(struct rg_match *m, const struct pattern *p, const char *name, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	int32_t least = rg_quantised_least(p->y.type), low, high;
	struct rg_shape shape = {.rank = 1, .dim = {256}}, out_shape = g->values[p->y.value].shape;
	uint8_t *table;
	int from, in[2], rc;

	clip_bytes(p, &low, &high);
	if (low == least && high == least + 255)
		return p->y.value;
	table = rg_alloc_aligned(64, 256);
	if (!table)
		return rg_error_nomem(err, 256);
	for (int i = 0; i < 256; i++) {
		int32_t b = p->y.type == RG_I8 ? (int8_t)(uint8_t)i : i;

		table[i] = (uint8_t)(b > high ? high : b < low ? low : b);
	}
	in[1] = rg_rewrite_const(g, name, ":clip", p->y.type, &shape, table, err);
	if (in[1] < 0)
		return in[1];
	from = in[0] = rg_rewrite_value(g, name, ":bytes", p->y.type, &out_shape, err);
	if (from < 0)
		return from;
	rc = rg_graph_add_node(g, RG_OWN_DOMAIN, "LookUp", node_at(m, p->clip)->name, 2, in, 1, &p->y.value,
			       0, NULL, err);
	return rc < 0 ? rc : from;
}

/* The new node: scales and zero points between the operands, as the operator wants them. */
static int make_conv(struct rg_match *m, const struct pattern *p, const struct rg_node *n, int x_zero,
		     int w_zero, int y_zero, struct rg_error *err)
{
	struct rg_attr attrs[MOST_ATTRS];
	int n_attrs = copy_attrs(n, NULL, attrs), bias = integer_bias(m, p, 1, err), out, rc;
	int in[9] = {p->x.value, p->x.scale, x_zero, p->w.value, p->w.scale,
		     w_zero,     p->y.scale, y_zero, bias};

	if (bias == -ERANGE || n_attrs < 0 || err->code)
		return err->code ? err->code : -ERANGE;
	out = add_clip(m, p, n->name, err);
	if (out < 0)
		return out;
	rc = rg_graph_add_node(m->g, "", "QLinearConv", n->name, bias < 0 ? 8 : 9, in, 1, &out, n_attrs,
			       attrs, err);
	if (rc >= 0)
		m->g->nodes[rc].opset = rg_rewrite_opset(m->g, n, 10);
	return rc;
}

static int make_gemm(struct rg_match *m, const struct pattern *p, const struct rg_node *n, int x_zero,
		     int w_zero, int y_zero, struct rg_error *err)
{
	bool bytes = p->y.node >= 0;
	struct rg_attr attrs[MOST_ATTRS];
	int n_attrs = copy_attrs(n, "beta", attrs), out = node_at(m, last_node(p))->out[0], rc = 0;
	int bias = integer_bias(m, p, rg_node_float(n, "alpha", 1), err);
	int in[9] = {p->x.value, p->x.scale, x_zero,     p->w.value, p->w.scale,
		     w_zero,     bias,       p->y.scale, y_zero};

	if (bias == -ERANGE || n_attrs < 0 || err->code)
		return err->code ? err->code : -ERANGE;
	if (bytes)
		out = add_clip(m, p, n->name, err);
	if (out >= 0)
		rc = rg_rewrite_import_contrib(m->g, err);
	if (out < 0 || rc)
		return out < 0 ? out : rc;
	return rg_graph_add_node(m->g, RG_CONTRIB_DOMAIN, "QGemm", n->name,
				 bytes      ? 9
				 : bias < 0 ? 6
					    : 7,
				 in, 1, &out, n_attrs, attrs, err);
}

static int make_matmul(struct rg_match *m, const struct pattern *p, const struct rg_node *n, int x_zero,
		       int w_zero, int y_zero, struct rg_error *err)
{
	int in[8] = {p->x.value, p->x.scale, x_zero, p->w.value, p->w.scale, w_zero, p->y.scale, y_zero};
	int out = add_clip(m, p, n->name, err), rc;

	if (out < 0)
		return out;
	rc = rg_graph_add_node(m->g, "", "QLinearMatMul", n->name, 8, in, 1, &out, 0, NULL, err);
	if (rc >= 0)
		m->g->nodes[rc].opset = rg_rewrite_opset(m->g, n, 10);
	return rc;
}

/* A bias of one number for all becomes a row. */
static int float_bias(struct rg_match *m, const struct pattern *p, const char *name, int64_t n,
		      struct rg_error *err)
{
	struct rg_shape row = {.rank = 1, .dim = {n}};
	int64_t count;
	const float *f = rg_match_floats(m->g, p->bias, &count);
	float *to;

	if (count == n && m->g->values[p->bias].shape.rank == 1)
		return p->bias;
	to = rg_alloc_aligned(64, (size_t)n * sizeof(*to) + 1);
	if (!to)
		return rg_error_nomem(err, (size_t)n * sizeof(*to));
	for (int64_t i = 0; i < n; i++)
		to[i] = f[count == 1 ? 0 : i];
	return rg_rewrite_const(m->g, name, ":bias", RG_F32, &row, to, err);
}

static int make_to_float(struct rg_match *m, const struct pattern *p, const struct rg_node *n, int x_zero,
			 int w_zero, struct rg_error *err)
{
	int in[7] = {p->x.value, p->w.value, p->x.scale, p->w.scale, x_zero, w_zero, -1};
	int out = node_at(m, last_node(p))->out[0], rc = rg_rewrite_import_contrib(m->g, err);

	if (!rc && p->bias >= 0) {
		in[6] = float_bias(m, p, n->name, channels(m, n), err);
		rc = in[6] < 0 ? in[6] : 0;
	}
	return rc ? rc
		  : rg_graph_add_node(m->g, RG_CONTRIB_DOMAIN, "MatMulIntegerToFloat", n->name,
				      p->bias < 0 ? 6 : 7, in, 1, &out, 0, NULL, err);
}

/* The nodes that are gone, noted. */
static int note_all(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	int parts[5] = {p->x.node, p->w.node, p->add, p->clip, p->y.node}, rc = 0;

	for (int k = 0; k < 5 && !rc; k++) {
		if (parts[k] < 0)
			continue;
		/* what dequantises may have other readers: it goes when it has none */
		if (k > 1)
			m->gone[parts[k]] = 1;
		if (k != 1 || m->live[parts[k]])
			rc = rg_match_note(m, parts[k], p->node, RG_DECLINE_NONE, err);
	}
	m->gone[p->node] = 1;
	m->n_rewrites++;
	return rc;
}

static int rewrite(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	struct rg_node n = *node_at(m, p->node); /* its array moves as nodes are added */
	bool rank2 = m->g->values[n.out[0]].shape.rank == 2, has_bias = p->bias >= 0;
	int x_zero = rg_quantised_zero(m, &p->x, err), w_zero = rg_quantised_zero(m, &p->w, err), y_zero = -1,
	    rc;

	/* bytes with a bias are QGemm's, of two matrices; else float32 is what is made, and quantised apart
	 */
	if (!is_conv(&n) && !is_gemm(&n) && has_bias && !rank2)
		p->y.node = p->clip = -1;
	if (p->y.node >= 0)
		y_zero = rg_quantised_zero(m, &p->y, err);
	if (err->code)
		return err->code;
	if (is_conv(&n))
		rc = make_conv(m, p, &n, x_zero, w_zero, y_zero, err);
	else if (is_gemm(&n) || (has_bias && rank2 && p->y.node >= 0))
		rc = make_gemm(m, p, &n, x_zero, w_zero, y_zero, err);
	else if (p->y.node >= 0)
		rc = make_matmul(m, p, &n, x_zero, w_zero, y_zero, err);
	else
		rc = make_to_float(m, p, &n, x_zero, w_zero, err);
	if (rc == -ERANGE && !err->code)
		return decline(m, p, p->x.node, RG_DECLINE_RANGE, err);
	return rc < 0 ? rc : note_all(m, p, err);
}

/* ---- looking ---- */

/* Operands that are bytes in a layout the operator knows. */
static enum rg_decline check_operands(const struct rg_match *m, const struct pattern *p)
{
	const struct rg_node *n = node_at(m, p->node);
	const struct rg_value *y = &m->g->values[n->out[0]];

	if (!y->shaped || y->dynamic)
		return RG_DECLINE_DYNAMIC;
	if (p->x.n != 1 || (p->w.n != 1 && (p->w.axis != scale_axis(m, n) || p->w.n != channels(m, n))))
		return RG_DECLINE_ATTRIBUTE;
	if (y->shape.rank < 2)
		return RG_DECLINE_BROADCASTING;
	if (is_conv(n) && m->g->values[p->w.value].origin == RG_CONST_NONE)
		return RG_DECLINE_NOT_CONSTANT;
	return is_conv(n) && y->shape.rank > 4 ? RG_DECLINE_KERNEL : RG_DECLINE_NONE;
}

static enum rg_decline check_bias(const struct rg_match *m, struct pattern *p)
{
	const struct rg_node *n = node_at(m, p->node);
	int64_t count;

	p->bias = is_conv(n) || is_gemm(n) ? input(n, 2) : -1;
	if (p->bias < 0)
		return RG_DECLINE_NONE;
	if (!rg_match_floats(m->g, p->bias, &count))
		return RG_DECLINE_NOT_CONSTANT;
	if (!is_row(m->g, p->bias, channels(m, n)))
		return RG_DECLINE_BROADCASTING;
	return is_gemm(n) && rg_node_float(n, "beta", 1) != 1 ? RG_DECLINE_ATTRIBUTE : RG_DECLINE_NONE;
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	struct pattern p = {.node = at, .add = -1, .clip = -1, .bias = -1, .y.node = -1};
	const struct rg_node *n = node_at(m, at);
	enum rg_decline why;
	int rc = 0;

	if (!rg_match_is(m, at, "Conv") && !rg_match_is(m, at, "MatMul") && !rg_match_is(m, at, "Gemm"))
		return 0;
	if (n->n_in < 2 || !rg_quantised_from(m, n->in[0], &p.x) || !rg_quantised_from(m, n->in[1], &p.w) ||
	    !rg_match_open(m, p.x.node))
		return 0;
	why = check_operands(m, &p);
	why = why ? why : check_bias(m, &p);
	if (why)
		return decline(m, &p, p.x.node, why, err);
	if (!is_conv(n) && !is_gemm(n))
		rc = take_bias(m, &p, err);
	if (!rc)
		rc = take_end(m, &p, err);
	if (!rc && is_conv(n) && p.y.node < 0) /* no operator of bytes makes floats */
		return p.declined ? 0 : decline(m, &p, p.x.node, RG_DECLINE_KERNEL, err);
	return rc ? rc : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_qdq_product.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_qdq_product = {
    .name = "qdq-product",
    .what = "convolutions and products between DequantizeLinear and QuantizeLinear to integer operators",
    .level = 3,
    .own_only = "ONNX Runtime makes integer operators of the pairs itself",
    .run = run,
};
