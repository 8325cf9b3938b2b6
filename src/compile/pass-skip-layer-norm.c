/*
 * The addition of a residual before a normalisation of rows goes into it:
 *
 *	LayerNormalization(x + skip [+ bias])      SkipLayerNormalization
 *	RMSNormalization(x + skip [+ bias])        SkipSimplifiedLayerNormalization
 *
 * Who else reads the sum gets it as output 3. The sum is normalised while it is in L1: the
 * tensor is read once less.
 *
 * Not in a model that is written for others: ONNX Runtime 1.32 takes 0.49 ms on one thread
 * for SkipLayerNormalization of 128 rows of 768, and 0.06 ms for LayerNormalization.
 */
#include <string.h>

#include "compile/passes.h"
#include "compile/region.h"
#include "graph/contrib.h"

struct pattern {
	int norm, add;              /* nodes */
	int x, skip, bias;          /* values; bias -1: none */
	bool keeps;                 /* others read the sum, or it is an output */
	struct rg_region r;
};

static const struct rg_value *value_of(const struct rg_match *m, int value)
{
	return &m->g->values[value];
}

/* A constant row as long as the last dimension of x. */
static bool is_row(const struct rg_match *m, int value, const struct rg_shape *x)
{
	int64_t count;

	return rg_match_floats(m->g, value, &count) && value_of(m, value)->shape.rank == 1 &&
	       count == x->dim[x->rank - 1];
}

/* Normalises rows of the last dimension, and gives nothing but its result. */
static bool is_plain(const struct rg_match *m, const struct rg_node *n)
{
	const struct rg_value *x = value_of(m, n->in[0]);
	int64_t axis = rg_node_int(n, "axis", -1);

	for (int k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return false;
	return x->shaped && !x->dynamic && x->dtype == RG_F32 && (x->shape.rank == 2 || x->shape.rank == 3) &&
	       (axis == -1 || axis == x->shape.rank - 1) && is_row(m, n->in[1], &x->shape) &&
	       (n->n_in < 3 || n->in[2] < 0 || is_row(m, n->in[2], &x->shape));
}

/* x = y + a constant row, which nobody else reads: the operator adds it too. */
static void take_bias(const struct rg_match *m, struct pattern *p, int *value)
{
	const struct rg_shape *shape = &value_of(m, *value)->shape;
	int at = rg_match_maker(m, *value, "Add");
	const struct rg_node *n;

	if (p->bias >= 0 || at < 0 || rg_match_inside(m, *value))
		return;
	n = &m->g->nodes[at];
	for (int k = 0; k < 2; k++)
		if (is_row(m, n->in[k], shape) && rg_shape_equal(&value_of(m, n->in[1 - k])->shape, shape)) {
			if (!rg_region_add(&p->r, at))
				return;
			p->bias = n->in[k];
			*value = n->in[1 - k];
			return;
		}
}

static int rewrite(struct rg_match *m, struct pattern *p, bool simplified, struct rg_error *err)
{
	const struct rg_node *norm = &m->g->nodes[p->norm];
	struct rg_attr epsilon = {
		.name = "epsilon", .type = RG_ATTR_FLOAT, .f = rg_node_float(norm, "epsilon", 1e-5f)
	};
	int in[5] = { p->x, p->skip, norm->in[1], -1, -1 }, n_in = 3, beta = norm->n_in > 2 ? norm->in[2] : -1;
	int out[4] = { norm->out[0], -1, -1, m->g->nodes[p->add].out[0] };

	if (!simplified && beta >= 0) {
		in[3] = beta;
		n_in = 4;
	}
	if (p->bias >= 0) {
		in[simplified ? 3 : 4] = p->bias;
		n_in = simplified ? 4 : 5;
	}
	if (p->keeps ? !rg_region_keep(&p->r, p->add) : !rg_region_add(&p->r, p->add))
		return 0;
	return rg_region_replace(m, &p->r, p->norm, &(struct rg_replacement){
		.domain = RG_CONTRIB_DOMAIN,
		.op_type = simplified ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization",
		.n_in = n_in, .in = in, .n_attrs = 1, .attrs = &epsilon, .n_out = p->keeps ? 4 : 1, .out = out,
	}, err);
}

static int look_at(struct rg_match *m, int norm, bool simplified, struct rg_error *err)
{
	struct pattern p = { .norm = norm, .bias = -1 };
	const struct rg_node *n = &m->g->nodes[norm];
	const struct rg_value *sum = value_of(m, n->in[0]);

	p.add = rg_match_maker(m, n->in[0], "Add");
	if (p.add < 0 || !is_plain(m, n))
		return 0;
	p.x = m->g->nodes[p.add].in[0];
	p.skip = m->g->nodes[p.add].in[1];
	for (int k = 0; k < 2; k++) {
		const struct rg_value *v = value_of(m, k ? p.skip : p.x);

		if (!v->shaped || v->dynamic || v->origin != RG_CONST_NONE)
			return 0;
		if (!rg_shape_equal(&v->shape, &sum->shape))
			return rg_match_note(m, p.add, norm, RG_DECLINE_BROADCASTING, err);
	}
	take_bias(m, &p, &p.x);
	take_bias(m, &p, &p.skip);
	p.keeps = sum->is_output || m->n_uses[n->in[0]] > 1;
	if (!rg_region_add(&p.r, norm))
		return 0;
	return rewrite(m, &p, simplified, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_skip_layer_norm.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++) {
		bool simplified = rg_match_is(&m, i, "RMSNormalization");

		if (simplified || rg_match_is(&m, i, "LayerNormalization"))
			rc = look_at(&m, i, simplified, err);
	}
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_skip_layer_norm = {
	.name = "skip-layer-norm",
	.what = "addition of a residual into the normalisation of rows behind it",
	.level = 3,
	.run = run,
	.own_only = "ONNX Runtime takes longer with it (0.49 ms for 128 x 768, LayerNormalization alone 0.06)",
};
