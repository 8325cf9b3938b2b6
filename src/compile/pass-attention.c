/*
 * Attention (Vaswani and others 2017) as exporters write it:
 *
 *	Softmax(Q K^T / sqrt(size) + mask) V
 *
 * with heads split off before by Reshape and Transpose, and put together again behind.
 * It becomes one operator of ONNX Runtime that reads and writes batch x sequence x width,
 * so the transposes go, and whose kernel never stores the scores (kernels/generic/attend.h):
 *
 *	Attention            where Q, K and V are the three parts of one product with constant
 *	                     weights: the product goes into it
 *	MultiHeadAttention   else, with past and present where keys and values are appended
 *
 * The scale may be a product or a quotient, of the scores or of Q or K. The mask is what is
 * added, or what Where puts below -1e9 in the place of scores; one that lets each token see
 * those before it, and is constant, becomes the attribute unidirectional, and is not read at
 * all. Where -inf masks all keys of a token, it gives 0 and not NaN.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/heads.h"
#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/contrib.h"

#define LOWEST (-1e9f)

enum { MOST_SIZE = 4096 };          /* of a head, that kernels take (attend.h) */

struct pattern {
	int softmax, last;          /* nodes */
	struct rg_heads q, k, v;
	double scale;
	int mask;                   /* value that is added, -1 none */
	int keep, lowest;           /* values of Where: these scores stay, others become that; -1 none */
	bool inverted;              /* the other way round */
	bool causal;
	int joined;                 /* value: heads side by side, batch x seq x heads x size */
	struct rg_region core;      /* all of which has to go */
};

static const struct rg_value *value_of(const struct rg_match *m, int value)
{
	return &m->g->values[value];
}

/* ---- what it is ---- */

/* A node of this type that reads the only output of `node` as its input 0, whether or not others do too. */
static int reader(const struct rg_match *m, int node, const char *op_type)
{
	int from = m->g->nodes[node].out[0];

	for (int u = m->first_use[from]; u >= 0; u = m->uses[u].next)
		if (rg_match_is(m, m->uses[u].node, op_type) && m->g->nodes[m->uses[u].node].in[0] == from)
			return m->uses[u].node;
	return -1;
}

static bool is_last_axis(const struct rg_node *n, int rank)
{
	int64_t axis = rg_node_int(n, "axis", n->version < 13 ? 1 : -1);

	return axis == -1 || axis == rank - 1;
}

/* From Softmax on: the product with V, and heads put side by side. */
static bool take_tail(const struct rg_match *m, struct pattern *p, int *v)
{
	const struct rg_graph *g = m->g;
	int product = reader(m, p->softmax, "MatMul"), turn;

	if (product < 0)
		return false;
	turn = reader(m, product, "Transpose");
	if (turn < 0 || !rg_heads_turns(m, turn, 4, (const int64_t[]){ 0, 2, 1, 3 }))
		return false;
	p->joined = g->nodes[turn].out[0];
	p->last = turn;
	*v = g->nodes[product].in[1];
	return rg_region_add(&p->core, p->softmax) && rg_region_add(&p->core, product) &&
	       rg_region_add(&p->core, turn);
}

/* From Softmax back: the mask. *scores: the value before. */
static bool take_mask(const struct rg_match *m, struct pattern *p, int *scores, enum rg_decline *why)
{
	int value = m->g->nodes[p->softmax].in[0], at = rg_match_maker(m, value, "Add");
	const struct rg_node *n;
	const struct rg_value *s;

	*scores = value;
	p->mask = p->keep = p->lowest = -1;
	if (at >= 0) {
		n = &m->g->nodes[at];
		for (int k = 0; k < 2; k++) {
			struct rg_region none = { 0 };
			double scale = 1;

			if (rg_match_maker(m, rg_heads_unscale(m, n->in[k], &scale, &none), "MatMul") < 0)
				continue;
			*scores = n->in[k];
			p->mask = n->in[1 - k];
			s = value_of(m, p->mask);
			if (!s->shaped || s->dynamic)
				*why = RG_DECLINE_DYNAMIC;
			else if (!rg_shape_equal(&value_of(m, *scores)->shape, &value_of(m, value)->shape))
				*why = RG_DECLINE_BROADCASTING;
			return rg_region_add(&p->core, at);
		}
		return false;
	}
	at = rg_match_maker(m, value, "Where");
	if (at < 0)
		return true;
	n = &m->g->nodes[at];
	for (int k = 1; k < 3; k++) {
		float f;

		if (!rg_match_number(m->g, n->in[3 - k], &f))
			continue;
		*scores = n->in[k];
		p->keep = n->in[0];
		p->lowest = n->in[3 - k];
		p->inverted = k == 2;
		s = value_of(m, p->keep);
		if (!(f <= LOWEST))
			*why = RG_DECLINE_RANGE;
		else if (!s->shaped || s->dynamic)
			*why = RG_DECLINE_DYNAMIC;
		else if (!rg_shape_equal(&value_of(m, *scores)->shape, &value_of(m, value)->shape))
			*why = RG_DECLINE_BROADCASTING;
		return rg_region_add(&p->core, at);
	}
	return false;
}

static bool take_scores(const struct rg_match *m, struct pattern *p, int *q, int *k, enum rg_decline *why)
{
	int scores, at;

	if (!take_mask(m, p, &scores, why))
		return false;
	at = rg_match_maker(m, rg_heads_unscale(m, scores, &p->scale, &p->core), "MatMul");
	if (at < 0 || !rg_region_add(&p->core, at))
		return false;
	*q = m->g->nodes[at].in[0];
	*k = m->g->nodes[at].in[1];
	return true;
}

static bool is_plain(const struct rg_value *v)
{
	return v->shaped && !v->dynamic && v->dtype == RG_F32 && v->shape.rank == 4;
}

/* false: it is no attention. *why: it is, but cannot become one operator. */
static bool find(const struct rg_match *m, struct pattern *p, enum rg_decline *why)
{
	const struct rg_value *s = value_of(m, m->g->nodes[p->softmax].in[0]), *y, *qv;
	int q, k, v;

	*why = RG_DECLINE_NONE;
	p->scale = 1;
	if (!is_plain(s) || rg_shape_count(&s->shape) == 0 || !is_last_axis(&m->g->nodes[p->softmax], 4) ||
	    !take_tail(m, p, &v) || !take_scores(m, p, &q, &k, why))
		return false;
	if (*why)
		return true;
	y = value_of(m, p->joined);
	qv = value_of(m, q);
	if (!is_plain(y) || !is_plain(qv))
		return false;
	p->q.batch = p->k.batch = p->v.batch = s->shape.dim[0];
	p->q.heads = p->k.heads = p->v.heads = s->shape.dim[1];
	p->q.seq = s->shape.dim[2];
	p->k.seq = p->v.seq = s->shape.dim[3];
	p->q.size = p->k.size = qv->shape.dim[3];
	p->v.size = y->shape.dim[3];
	if (!rg_heads_of(m, q, false, &p->q) || !rg_heads_of(m, k, true, &p->k) || !rg_heads_of(m, v, false, &p->v))
		return false;
	p->scale *= p->q.scale * p->k.scale;
	/* queries must come from somewhere, keys and values from places of one kind; V has no scale of its own */
	return p->q.size > 0 && p->v.size > 0 && !p->q.heads_first && p->q.past < 0 && p->v.scale == 1 &&
	       p->k.heads_first == p->v.heads_first && (p->k.past >= 0) == (p->v.past >= 0) &&
	       !(p->k.heads_first && p->k.past >= 0) && p->k.seq == p->v.seq;
}

/* ---- masks ---- */

static bool is_constant(const struct rg_value *v)
{
	return v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->data;
}

/* Whether a constant mask says that each token sees those up to itself, and no other. */
static bool is_causal(const struct rg_match *m, const struct pattern *p)
{
	const struct rg_value *s = value_of(m, p->mask >= 0 ? p->mask : p->keep);
	int64_t past = p->k.past >= 0 ? value_of(m, p->k.past)->shape.dim[2] : 0;
	int64_t rows = p->q.seq, total = p->k.seq + past;
	int rank = s->shape.rank;

	if (!is_constant(s) || s->dtype != (p->mask >= 0 ? RG_F32 : RG_BOOL) || rank < 2 ||
	    s->shape.dim[rank - 1] != total || s->shape.dim[rank - 2] != rows || rg_shape_count(&s->shape) != rows * total || past + rows != total)
		return false;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < total; j++) {
			int64_t at = i * total + j;
			bool sees = j <= past + i, kept;

			if (p->mask >= 0) {
				float f = ((const float *)s->data)[at];

				if (sees ? f != 0 : !(f <= LOWEST))
					return false;
				continue;
			}
			kept = (((const unsigned char *)s->data)[at] != 0) != p->inverted;
			if (kept != sees)
				return false;
		}
	return true;
}

/* A node that this pass has added with these inputs and this type; its output, or -1. */
static int added(const struct rg_match *m, const char *op_type, int n_in, const int *in, const struct rg_shape *shape)
{
	const struct rg_graph *g = m->g;

	for (int i = m->n_nodes; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!strcmp(n->op_type, op_type) && n->n_in >= n_in &&
		    !memcmp(n->in, in, (size_t)n_in * sizeof(*in)) &&
		    rg_shape_equal(&g->values[n->out[0]].shape, shape))
			return n->out[0];
	}
	return -1;
}

/* A standard node with one output of float32; its value, or a negative errno. */
static int add_node(struct rg_match *m, const char *base, const char *what, const char *op_type, int64_t opset,
		    int n_in, const int *in, const struct rg_shape *shape, struct rg_error *err)
{
	int out = rg_rewrite_value(m->g, base, what, RG_F32, shape, err), rc;

	if (out < 0)
		return out;
	rc = rg_graph_add_node(m->g, "", op_type, m->g->values[out].name, n_in, in, 1, &out, 0, NULL, err);
	if (rc < 0)
		return rc;
	if (opset > rg_graph_opset(m->g, ""))
		m->g->nodes[rc].opset = opset;
	return out;
}

/* What is added to the scores, for a mask by Where. */
static int make_added(struct rg_match *m, const struct pattern *p, const char *base, struct rg_error *err)
{
	struct rg_shape scalar = { 0 }, shape = value_of(m, p->keep)->shape;
	float *zero;
	int in[3] = { p->keep, -1, p->lowest }, there;

	/* a number of more dimensions */
	if (!rg_shape_broadcast(&shape, &value_of(m, p->lowest)->shape, &shape))
		return rg_error_set(err, -EINVAL, "the mask of '%s' has no shape", base);
	for (int i = m->n_nodes; i < m->g->n_nodes; i++) { /* the same mask of an earlier layer */
		const struct rg_node *n = &m->g->nodes[i];

		if (!strcmp(n->op_type, "Where") && n->in[0] == p->keep && n->in[p->inverted ? 1 : 2] == p->lowest)
			return n->out[0];
	}
	zero = rg_alloc_aligned(64, sizeof(*zero));
	if (!zero)
		return rg_error_nomem(err, sizeof(*zero));
	*zero = 0;
	there = rg_rewrite_const(m->g, base, ":zero", RG_F32, &scalar, zero, err);
	if (there < 0)
		return there;
	in[1] = there;
	if (p->inverted) {
		in[1] = p->lowest;
		in[2] = there;
	}
	return add_node(m, base, ":mask", "Where", 9, 3, in, &shape, err);
}

/* Four dimensions, the last two those of the scores, as the operators want it. */
static int make_bias(struct rg_match *m, const struct pattern *p, const char *base, struct rg_error *err)
{
	int mask = p->mask >= 0 ? p->mask : make_added(m, p, base, err), in[2], there;
	struct rg_shape have, want = { .rank = 4, .dim = { 1, 1, p->q.seq, p->k.seq } };

	if (mask < 0)
		return mask;
	have = value_of(m, mask)->shape;
	if (p->k.past >= 0)
		want.dim[3] += value_of(m, p->k.past)->shape.dim[2];
	if (have.rank >= 3)
		want.dim[1] = have.dim[have.rank - 3];
	if (have.rank == 4)
		want.dim[0] = have.dim[0];
	if (rg_shape_equal(&have, &want))
		return mask;
	there = added(m, "Expand", 1, &mask, &want);
	if (there >= 0)
		return there;
	in[0] = mask;
	in[1] = rg_rewrite_ints(m->g, base, ":mask-shape", want.dim, 4, err);
	return in[1] < 0 ? in[1] : add_node(m, base, ":bias", "Expand", 8, 2, in, &want, err);
}

/* ---- what it reads ---- */

/* x as batch x seq x width: itself, or through a Reshape, which moves nothing. */
static int make_rows(struct rg_match *m, const struct rg_heads *h, const char *base, const char *what,
		     struct rg_error *err)
{
	struct rg_shape want = { .rank = 3, .dim = { h->batch, h->seq, h->parts * h->heads * h->size } };
	int in[2] = { h->x, -1 };

	if (h->heads_first || rg_shape_equal(&value_of(m, h->x)->shape, &want))
		return h->x;
	in[1] = rg_rewrite_ints(m->g, base, ":shape", want.dim, 3, err);
	return in[1] < 0 ? in[1] : add_node(m, base, what, "Reshape", 5, 2, in, &want, err);
}

/* The three parts of x, one after the other in the last dimension. */
static int split(struct rg_match *m, const struct pattern *p, const char *base, int *parts, struct rg_error *err)
{
	int64_t width = p->q.heads * p->q.size, sizes[3] = { width, width, width };
	struct rg_shape shape = { .rank = 3, .dim = { p->q.batch, p->q.seq, width } };
	struct rg_attr axis = { .name = "axis", .type = RG_ATTR_INT, .i = 2 };
	int in[2] = { make_rows(m, &p->q, base, ":rows", err), -1 }, rc;

	if (in[0] < 0)
		return in[0];
	in[1] = rg_rewrite_ints(m->g, base, ":split", sizes, 3, err);
	if (in[1] < 0)
		return in[1];
	for (int k = 0; k < 3; k++) {
		parts[k] = rg_rewrite_value(m->g, base, ":part", RG_F32, &shape, err);
		if (parts[k] < 0)
			return parts[k];
	}
	rc = rg_graph_add_node(m->g, "", "Split", base, 2, in, 3, parts, 1, &axis, err);
	if (rc < 0)
		return rc;
	if (rg_graph_opset(m->g, "") < 13)
		m->g->nodes[rc].opset = 13;
	return 0;
}

/* Q, K and V as the operator reads them. */
static int make_parts(struct rg_match *m, const struct pattern *p, const char *base, int *in, struct rg_error *err)
{
	int parts[3];

	if (p->q.parts == 3) {
		int rc = split(m, p, base, parts, err);

		if (rc)
			return rc;
		in[0] = parts[p->q.part];
		in[1] = parts[p->k.part];
		in[2] = parts[p->v.part];
		return 0;
	}
	in[0] = make_rows(m, &p->q, base, ":query", err);
	in[1] = in[0] < 0 ? in[0] : make_rows(m, &p->k, base, ":key", err);
	in[2] = in[1] < 0 ? in[1] : make_rows(m, &p->v, base, ":value", err);
	return in[2] < 0 ? in[2] : 0;
}

/* One tensor for all three or one for each. */
static bool goes_together(const struct pattern *p)
{
	if (p->q.parts == 1)
		return p->k.parts == 1 && p->v.parts == 1;
	return p->k.parts == 3 && p->v.parts == 3 && p->q.x == p->k.x && p->q.x == p->v.x;
}

/* ---- the product that makes all three ---- */

struct projection {
	int x, weights, bias;       /* values */
	struct rg_region nodes;
};

/* MatMul with constant weights, and Add of a constant row. */
static bool find_projection(const struct rg_match *m, const struct pattern *p, struct projection *j)
{
	int64_t columns = 3 * p->q.heads * p->q.size, count;
	int add = rg_match_maker(m, p->q.x, "Add"), product;
	const struct rg_node *n;
	const struct rg_value *x;

	if (p->q.parts != 3 || p->q.part != 0 || p->k.part != 1 || p->v.part != 2 || p->k.past >= 0 || add < 0)
		return false;
	n = &m->g->nodes[add];
	for (int k = 0; k < 2; k++) {
		product = rg_match_maker(m, n->in[k], "MatMul");
		j->bias = n->in[1 - k];
		if (product >= 0 && rg_match_floats(m->g, j->bias, &count) && count == columns &&
		    value_of(m, j->bias)->shape.rank == 1)
			break;
		product = -1;
	}
	if (product < 0)
		return false;
	n = &m->g->nodes[product];
	j->x = n->in[0];
	j->weights = n->in[1];
	x = value_of(m, j->x);
	return rg_match_floats(m->g, j->weights, &count) && value_of(m, j->weights)->shape.rank == 2 &&
	       value_of(m, j->weights)->shape.dim[1] == columns && x->shaped && !x->dynamic && x->shape.rank == 3 &&
	       x->shape.dim[0] == p->q.batch && x->shape.dim[1] == p->q.seq && rg_region_add(&j->nodes, add) &&
	       rg_region_add(&j->nodes, product);
}

/* ---- the whole ---- */

/* Nodes on the way to Q, K and V go where nobody else needs them. */
static bool add_sides(const struct rg_match *m, const struct rg_heads *h, int last, struct rg_region *all)
{
	for (int i = 0; i < h->nodes.n; i++) {
		struct rg_region with = *all;

		if (!rg_region_add(&with, h->nodes.node[i]))
			return false;
		if (rg_region_closed(m, &with, last) == RG_DECLINE_NONE)
			*all = with;
	}
	return true;
}

static enum rg_decline may_go(const struct rg_match *m, const struct pattern *p)
{
	struct rg_region read = p->core;
	enum rg_decline why = rg_region_closed(m, &p->core, p->last);

	/* who else reads past and present together could be read by this one */
	for (int i = 0; i < 2 && !why && p->k.past >= 0; i++) {
		const struct rg_heads *h = i ? &p->v : &p->k;

		for (int k = 0; k < h->nodes.n; k++)
			if (!rg_region_add(&read, h->nodes.node[k]))
				return RG_DECLINE_ATTRIBUTE;
		for (int u = m->first_use[h->present]; u >= 0; u = m->uses[u].next)
			if (!rg_region_has(&read, m->uses[u].node))
				why = RG_DECLINE_SECOND_CONSUMER;
	}
	return why;
}

static int put(struct rg_match *m, struct pattern *p, struct rg_region *all, struct rg_replacement *by,
	       struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	struct rg_shape rows = { .rank = 3, .dim = { p->q.batch, p->q.seq, p->q.heads * p->v.size } };
	const char *base = g->nodes[p->last].name;
	int join = reader(m, p->last, "Reshape"), out[3] = { -1, -1, -1 }, in[2], y, rc;

	/* heads side by side are what it makes: as the model has it, or through a Reshape for those who read
	 * four dimensions */
	if (join >= 0 && rg_match_inside(m, p->joined) == RG_DECLINE_NONE &&
	    rg_shape_equal(&value_of(m, g->nodes[join].out[0])->shape, &rows)) {
		if (!rg_region_add(all, join))
			return 0;
		p->last = join;
		out[0] = g->nodes[join].out[0];
	} else {
		out[0] = rg_rewrite_value(m->g, base, ":joined", RG_F32, &rows, err);
		if (out[0] < 0)
			return out[0];
		in[0] = out[0];
		in[1] = rg_rewrite_ints(m->g, base, ":heads", value_of(m, p->joined)->shape.dim, 4, err);
		if (in[1] < 0)
			return in[1];
		y = p->joined;
		rc = rg_graph_add_node(m->g, "", "Reshape", value_of(m, out[0])->name, 2, in, 1, &y, 0, NULL, err);
		if (rc < 0)
			return rc;
		if (rg_graph_opset(m->g, "") < 5)
			m->g->nodes[rc].opset = 5;
	}
	by->n_out = p->k.past >= 0 ? 3 : 1;
	if (p->k.past >= 0) {
		out[1] = p->k.present;
		out[2] = p->v.present;
	}
	by->out = out;
	return rg_region_replace(m, all, p->last, by, err);
}

static int rewrite(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	struct rg_attr attrs[] = {
		{ .name = "num_heads", .type = RG_ATTR_INT, .i = p->q.heads },
		{ .name = "scale", .type = RG_ATTR_FLOAT, .f = (float)p->scale },
		{ .name = "unidirectional", .type = RG_ATTR_INT, .i = 1 },
	};
	const char *base = m->g->nodes[p->last].name;
	struct projection j = { 0 };
	struct rg_region all = p->core, with;
	int in[8] = { -1, -1, -1, -1, -1, -1, -1, -1 }, n_in = 3, rc = 0;
	bool projected;

	for (int i = 0; i < 2 && p->k.past >= 0; i++)
		if (!rg_region_keep(&all, m->g->values[i ? p->v.present : p->k.present].producer))
			return 0;
	if (!add_sides(m, &p->q, p->last, &all) || !add_sides(m, &p->k, p->last, &all) ||
	    !add_sides(m, &p->v, p->last, &all))
		return 0;
	projected = find_projection(m, p, &j);
	with = all;
	for (int i = 0; i < j.nodes.n && projected; i++)
		projected = rg_region_add(&with, j.nodes.node[i]);
	projected = projected && rg_region_closed(m, &with, p->last) == RG_DECLINE_NONE;
	if (projected) {
		all = with;
		in[0] = j.x;
		in[1] = j.weights;
		in[2] = j.bias;
	} else {
		rc = make_parts(m, p, base, in, err);
	}
	p->causal = (p->mask >= 0 || p->keep >= 0) && is_causal(m, p);
	if (!rc && !p->causal && (p->mask >= 0 || p->keep >= 0)) {
		in[5] = make_bias(m, p, base, err);
		rc = in[5] < 0 ? in[5] : 0;
		n_in = 6;
	}
	if (!rc && p->k.past >= 0) {
		in[6] = p->k.past;
		in[7] = p->v.past;
		n_in = 8;
	}
	return rc ? rc : put(m, p, &all, &(struct rg_replacement){
		.domain = RG_CONTRIB_DOMAIN, .op_type = projected ? "Attention" : "MultiHeadAttention", .n_in = n_in,
		.in = in, .n_attrs = p->causal ? 3 : 2, .attrs = attrs,
	}, err);
}

static int look_at(struct rg_match *m, int softmax, struct rg_error *err)
{
	struct pattern p = { .softmax = softmax };
	enum rg_decline why;

	if (!find(m, &p, &why) || (!why && !goes_together(&p)))
		return 0;
	if (!why)
		why = may_go(m, &p);
	if (!why && (p.q.size > MOST_SIZE || p.v.size > MOST_SIZE))
		why = RG_DECLINE_KERNEL;
	if (!why && (!((float)p.scale != 0) || !isfinite((float)p.scale)))
		why = RG_DECLINE_RANGE;
	return why ? rg_match_note(m, softmax, p.last, why, err) : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_attention.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Softmax"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_attention = {
	.name = "attention",
	.what = "softmax between two products, with its scale, mask, heads and past, into one operator",
	.level = 3,
	.run = run,
	.own_only = "ONNX Runtime takes longer with it (paraphrase-MiniLM 1.08 times), and has fusions of its own",
};
