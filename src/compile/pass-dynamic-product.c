/*
 * What is made of a product of bytes whose scale is known only at run time:
 *
 *	DynamicQuantizeLinear - MatMulInteger - Cast - Mul(scale of A * scale of B) - Add of a bias
 *
 * is MatMulIntegerToFloat behind the same DynamicQuantizeLinear, which others may read too. It
 * computes the same: the sum in integers, times the product of the scales, plus the bias. A
 * scale that is no product of two is one times 1.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/contrib.h"

struct pattern {
	int product, cast, scale, add, bias; /* nodes; -1 none. bias: a value */
	int a_scale, b_scale;                /* values */
};

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

static int64_t columns(const struct rg_match *m, const struct rg_node *n)
{
	const struct rg_shape *y = &m->g->values[n->out[0]].shape;

	return y->dim[y->rank - 1];
}

/* A float32 of one number, or a list of one a column. */
static bool is_scale(const struct rg_graph *g, int value, int64_t n)
{
	const struct rg_value *v = &g->values[value];
	int64_t count = v->shaped && !v->dynamic ? rg_shape_count(&v->shape) : -1;

	return v->dtype == RG_F32 && (count == 1 || (count == n && v->shape.rank == 1));
}

/* The scales of both, b_scale -1: there is one for both together. */
static enum rg_decline take_scale(const struct rg_match *m, struct pattern *p, int64_t n)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *mul = node_at(m, p->scale), *times;
	int value = mul->in[mul->in[0] == node_at(m, p->cast)->out[0]], at = rg_match_maker(m, value, "Mul");

	if (!rg_shape_equal(&g->values[mul->out[0]].shape, &g->values[mul->in[mul->in[0] == value]].shape) ||
	    !is_scale(g, value, n))
		return RG_DECLINE_BROADCASTING;
	p->a_scale = value;
	p->b_scale = -1;
	if (at < 0)
		return RG_DECLINE_NONE;
	times = node_at(m, at);
	if (is_scale(g, times->in[0], n) && is_scale(g, times->in[1], n)) {
		p->a_scale = times->in[0];
		p->b_scale = times->in[1];
	}
	return RG_DECLINE_NONE;
}

static int take_bias(struct rg_match *m, struct pattern *p, int64_t n, struct rg_error *err)
{
	enum rg_decline why;
	int at = rg_match_reader(m, p->scale, "Add", true, &why), other;
	int64_t count;

	if (at < 0)
		return 0;
	other = node_at(m, at)->in[node_at(m, at)->in[0] == node_at(m, p->scale)->out[0]];
	if (!rg_match_floats(m->g, other, &count) || count != n || m->g->values[other].shape.rank != 1)
		return 0;
	if (why)
		return rg_match_note_settled(m, at, p->product, why, err);
	p->add = at;
	p->bias = other;
	return 0;
}

static int make_one(struct rg_match *m, const char *name, struct rg_error *err)
{
	const struct rg_shape number = {.rank = 0};
	float *one = rg_alloc_aligned(64, sizeof(*one));

	if (!one)
		return rg_error_nomem(err, sizeof(*one));
	*one = 1;
	return rg_rewrite_const(m->g, name, ":one", RG_F32, &number, one, err);
}

static int rewrite(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	struct rg_node n = *node_at(m, p->product); /* its array moves as nodes are added */
	int out = node_at(m, p->add >= 0 ? p->add : p->scale)->out[0],
	    rc = rg_rewrite_import_contrib(m->g, err);
	int in[7] = {
	    n.in[0], n.in[1], p->a_scale, p->b_scale, n.n_in > 2 ? n.in[2] : -1, n.n_in > 3 ? n.in[3] : -1,
	    p->bias};
	int gone[4] = {p->product, p->cast, p->scale, p->add};

	if (!rc && p->b_scale < 0)
		in[3] = make_one(m, n.name, err);
	if (!rc && in[3] < 0)
		rc = in[3];
	if (!rc)
		rc = rg_graph_add_node(m->g, RG_CONTRIB_DOMAIN, "MatMulIntegerToFloat", n.name,
				       p->bias < 0 ? 6 : 7, in, 1, &out, 0, NULL, err);
	if (rc < 0)
		return rc;
	rc = 0;
	m->n_rewrites++;
	for (int k = 0; k < 4 && !rc; k++) {
		if (gone[k] < 0)
			continue;
		m->gone[gone[k]] = 1;
		if (k > 0)
			rc = rg_match_note(m, gone[k], p->product, RG_DECLINE_NONE, err);
	}
	/* the product of scales goes by itself where no other product has it */
	return rc;
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	struct pattern p = {.product = at, .add = -1, .bias = -1};
	enum rg_decline why, next = RG_DECLINE_NONE;
	const struct rg_node *n;
	const struct rg_value *y;
	int64_t width;
	int rc;

	if (!rg_match_is(m, at, "MatMulInteger"))
		return 0;
	n = node_at(m, at);
	y = &m->g->values[n->out[0]];
	p.cast = rg_match_reader(m, at, "Cast", false, &why);
	p.scale = p.cast >= 0 ? rg_match_reader(m, p.cast, "Mul", true, &next) : -1;
	if (p.scale < 0 || rg_node_int(node_at(m, p.cast), "to", 0) != RG_F32)
		return 0;
	if (!why)
		why = next;
	if (!why && (!y->shaped || y->dynamic || y->shape.rank < 2))
		why = RG_DECLINE_DYNAMIC;
	if (why)
		return rg_match_note(m, p.cast, at, why, err);
	width = columns(m, n);
	why = take_scale(m, &p, width);
	/* one zero point of A, as DynamicQuantizeLinear has it */
	if (!why && n->n_in > 2 && n->in[2] >= 0 && rg_shape_count(&m->g->values[n->in[2]].shape) != 1)
		why = RG_DECLINE_ATTRIBUTE;
	if (!why && n->n_in > 3 && n->in[3] >= 0 && rg_shape_count(&m->g->values[n->in[3]].shape) != 1 &&
	    m->g->values[n->in[3]].shape.rank != 1)
		why = RG_DECLINE_ATTRIBUTE;
	if (why)
		return rg_match_note(m, p.scale, at, why, err);
	rc = take_bias(m, &p, width, err);
	return rc ? rc : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_dynamic_product.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_dynamic_product = {
    .name = "dynamic-product",
    .what = "MatMulInteger, Cast, the scales and a bias to MatMulIntegerToFloat",
    .level = 3,
    .own_only = "ONNX Runtime makes one operator of these itself",
    .run = run,
};
