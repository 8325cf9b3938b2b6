/*
 * What follows a convolution or a product element by element is done to its rows
 * before they leave L1: an activation, then a product with one number and the
 * addition of one; behind a product the addition of a tensor of the same shape
 * before all that. The producer becomes ridge's own FusedConv or FusedGemm.
 *
 * Views between a product and its activation stay behind it: a product of rank 2
 * is often a part of one of rank 3, reshaped.
 */
#include <math.h>
#include <string.h>

#include "compile/match.h"
#include "compile/passes.h"
#include "graph/op-random.h"
#include "graph/own.h"

enum { MOST_ATTRS = 16 };

struct pattern {
	int producer, view;         /* nodes; view -1: none lies between */
	int parts[4], n_parts;      /* nodes that go into it, in their order */
	int residual;               /* value; -1 none */
	struct rg_finish f;
	bool has_act, has_scale, has_shift;
};

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

static bool is_product(const struct rg_node *n)
{
	return strcmp(n->op_type, "Gemm") == 0;
}

/* The last node taken: what comes next reads its output. */
static int last_node(const struct pattern *p)
{
	return p->n_parts ? p->parts[p->n_parts - 1] : p->view >= 0 ? p->view : p->producer;
}

/* ---- activations ---- */

static bool no_params(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	(void)n;
	(void)a;
	return true;
}

static bool take_clip(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	float low, high;

	if (!rg_match_clip(m->g, n, &low, &high))
		return false;
	a->a = (double)low;
	a->b = (double)high;
	return true;
}

static bool take_hard_sigmoid(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	a->a = (double)rg_node_float(n, "alpha", 0.2f);
	a->b = (double)rg_node_float(n, "beta", 0.5f);
	return true;
}

static bool take_leaky_relu(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	a->a = (double)rg_node_float(n, "alpha", 0.01f);
	return true;
}

static bool take_gelu(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	if (strcmp(rg_node_string(n, "approximate", "none"), "tanh") == 0)
		a->kind = RG_ACT_GELU_TANH;
	return true;
}

static bool take_swish(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	a->a = (double)rg_node_float(n, "alpha", n->domain[0] ? 1.702f : 1);
	return true;
}

static bool take_fast_gelu(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a)
{
	(void)m;
	(void)a;
	return n->n_in == 1;
}

static const struct {
	const char *domain, *op_type;
	enum rg_activation_kind kind;
	bool (*take)(const struct rg_match *m, const struct rg_node *n, struct rg_activation *a);
} activations[] = {
	{ "", "Relu", RG_ACT_RELU, no_params },
	{ "", "Clip", RG_ACT_CLIP, take_clip },
	{ "", "HardSwish", RG_ACT_HARD_SWISH, no_params },
	{ "", "HardSigmoid", RG_ACT_HARD_SIGMOID, take_hard_sigmoid },
	{ "", "Sigmoid", RG_ACT_SIGMOID, no_params },
	{ "", "Tanh", RG_ACT_TANH, no_params },
	{ "", "LeakyRelu", RG_ACT_LEAKY_RELU, take_leaky_relu },
	{ "", "Gelu", RG_ACT_GELU, take_gelu },
	{ "", "Swish", RG_ACT_SWISH, take_swish },
	{ RG_CONTRIB_DOMAIN, "Gelu", RG_ACT_GELU, no_params },
	{ RG_CONTRIB_DOMAIN, "FastGelu", RG_ACT_GELU_TANH, take_fast_gelu },
	{ RG_CONTRIB_DOMAIN, "QuickGelu", RG_ACT_SWISH, take_swish },
};

/* ---- what follows ---- */

static int decline(struct rg_match *m, struct pattern *p, int node, enum rg_decline why, struct rg_error *err)
{
	return p->n_parts ? rg_match_note_settled(m, node, p->producer, why, err) :
			    rg_match_note(m, node, p->producer, why, err);
}

static int take_residual(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	int from = node_at(m, p->producer)->out[0], other;
	enum rg_decline why;
	int at = p->view >= 0 ? -1 : rg_match_reader(m, p->producer, "Add", true, &why);

	if (at < 0)
		return 0;
	other = node_at(m, at)->in[node_at(m, at)->in[0] == from];
	/* a number is a shift, which comes last */
	if (g->values[other].shaped && rg_shape_count(&g->values[other].shape) == 1 && g->values[other].origin != RG_CONST_NONE)
		return 0;
	if (!why && (!g->values[other].shaped || g->values[other].dynamic))
		why = RG_DECLINE_DYNAMIC;
	if (!why && !rg_shape_equal(&g->values[other].shape, &g->values[from].shape))
		why = RG_DECLINE_BROADCASTING;
	if (why)
		return decline(m, p, at, why, err);
	p->residual = other;
	p->parts[p->n_parts++] = at;
	return 0;
}

static int take_activation(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	for (size_t k = 0; k < sizeof(activations) / sizeof(activations[0]); k++) {
		enum rg_decline why;
		int at = rg_match_reader_of(m, last_node(p), activations[k].domain, activations[k].op_type, false, &why);
		struct rg_activation a = { .kind = activations[k].kind };

		if (at < 0)
			continue;
		if (!why && !activations[k].take(m, node_at(m, at), &a))
			why = activations[k].kind == RG_ACT_CLIP ? RG_DECLINE_NOT_CONSTANT : RG_DECLINE_ATTRIBUTE;
		if (why)
			return decline(m, p, at, why, err);
		p->f.act = a;
		p->has_act = true;
		p->parts[p->n_parts++] = at;
		return 0;
	}
	return 0;
}

/* A product with one number, or the addition of one. */
static int take_number(struct rg_match *m, struct pattern *p, const char *op_type, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	int from = node_at(m, last_node(p))->out[0], other;
	bool product = op_type[0] == 'M';
	enum rg_decline why;
	int at = rg_match_reader(m, last_node(p), op_type, true, &why);
	float number;

	if (at < 0)
		return 0;
	other = node_at(m, at)->in[node_at(m, at)->in[0] == from];
	/* two tensors: another pass's matter; more dimensions would give the result another shape */
	if (!rg_match_number(g, other, &number) || g->values[other].shape.rank > g->values[from].shape.rank)
		return 0;
	if (!why && !isfinite(number))
		why = RG_DECLINE_RANGE;
	if (why)
		return decline(m, p, at, why, err);
	if (product)
		p->f.scale = number;
	else
		p->f.shift = number;
	p->has_scale |= product;
	p->has_shift |= !product;
	p->parts[p->n_parts++] = at;
	return 0;
}

/* ---- rewriting ---- */

static int add_attrs(const struct rg_node *from, const struct pattern *p, const float params[2], struct rg_attr *attrs)
{
	const char *name = rg_activation_name(p->f.act.kind);
	enum rg_activation_kind kind;
	int n = 0;

	for (int i = 0; i < from->n_attrs; i++) {
		if (strncmp(from->attrs[i].name, "activation", 10) == 0)
			continue;
		if (n == MOST_ATTRS - 4)
			return -1;
		attrs[n++] = from->attrs[i];
	}
	if (p->f.act.kind != RG_ACT_NONE) {
		int n_params = rg_activation_find(RG_ACT_OF_OWN, name, &kind);

		attrs[n++] = (struct rg_attr){ .name = "activation", .type = RG_ATTR_STRING, .s = name, .s_len = strlen(name) };
		if (n_params > 0)
			attrs[n++] = (struct rg_attr){ .name = "activation_params", .type = RG_ATTR_FLOATS,
						       .count = n_params, .floats = params };
	}
	if (p->has_scale)
		attrs[n++] = (struct rg_attr){ .name = "scale", .type = RG_ATTR_FLOAT, .f = p->f.scale };
	if (p->has_shift)
		attrs[n++] = (struct rg_attr){ .name = "shift", .type = RG_ATTR_FLOAT, .f = p->f.shift };
	return n;
}

/* The view again, with the result behind it. */
static int move_view(struct rg_match *m, const struct pattern *p, int result, struct rg_error *err)
{
	struct rg_node view = *node_at(m, p->view);
	int rc = rg_graph_add_node(m->g, view.domain, view.op_type, view.name, view.n_in, view.in, 1, &result, view.n_attrs,
				   view.attrs, err);

	if (rc < 0)
		return rc;
	m->g->nodes[rc].opset = view.opset;
	m->gone[p->view] = 1;
	return 0;
}

static int rewrite(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	struct rg_node from = *node_at(m, p->producer); /* its array moves as nodes are added */
	int result = node_at(m, p->parts[p->n_parts - 1])->out[0], out = p->view >= 0 ? from.out[0] : result;
	int in[4] = { -1, -1, -1, -1 }, n_in = from.n_in, n, rc;
	const float params[2] = { (float)p->f.act.a, (float)p->f.act.b };
	struct rg_attr attrs[MOST_ATTRS];

	n = add_attrs(&from, p, params, attrs);
	if (n < 0)
		return rg_match_note(m, p->parts[0], p->producer, RG_DECLINE_ATTRIBUTE, err);
	memcpy(in, from.in, (size_t)n_in * sizeof(*in));
	if (p->residual >= 0) {
		in[3] = p->residual;
		n_in = 4;
	}
	rc = rg_graph_add_node(m->g, RG_OWN_DOMAIN, is_product(&from) ? "FusedGemm" : "FusedConv", from.name, n_in, in, 1,
			       &out, n, attrs, err);
	if (rc < 0)
		return rc;
	rc = p->view >= 0 ? move_view(m, p, result, err) : 0;
	m->gone[p->producer] = 1;
	m->n_rewrites++;
	for (int k = 0; k < p->n_parts && !rc; k++) {
		m->gone[p->parts[k]] = 1;
		rc = rg_match_note(m, p->parts[k], p->producer, RG_DECLINE_NONE, err);
	}
	return rc;
}

/* A view whose output alone is read, behind a product. */
static int find_view(const struct rg_match *m, int node)
{
	static const char *const views[] = { "Reshape", "Squeeze", "Unsqueeze", "Flatten" };

	for (int k = 0; k < 4; k++) {
		enum rg_decline why;
		int at = rg_match_reader(m, node, views[k], false, &why);

		if (at >= 0 && !why && rg_node_is_view(m->g, node_at(m, at)))
			return at;
	}
	return -1;
}

/* Whether this is a producer with an own form, and which activation it has already. */
static bool begins(const struct rg_match *m, int at, struct pattern *p)
{
	const struct rg_node *n = node_at(m, at);
	const struct rg_value *y;

	if (n->n_out != 1 || n->out[0] < 0 || n->n_in > 4)
		return false;
	y = &m->g->values[n->out[0]];
	if (!y->shaped || y->dynamic || y->dtype != RG_F32)
		return false;
	if (rg_match_is(m, at, "Gemm"))
		return true;
	if (y->shape.rank > 4) /* kernels of more than two dimensions finish nothing */
		return false;
	if (rg_match_is(m, at, "Conv"))
		return true;
	return rg_match_is_of(m, at, RG_CONTRIB_DOMAIN, "FusedConv") && !rg_conv_activation(n, &p->f.act);
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	struct pattern p = { .producer = at, .view = -1, .residual = -1, .f = { .scale = 1 } };
	int rc = 0;

	if (!begins(m, at, &p))
		return 0;
	if (is_product(node_at(m, at)))
		p.view = find_view(m, at);
	if (is_product(node_at(m, at)) && node_at(m, at)->n_in < 4)
		rc = take_residual(m, &p, err);
	if (!rc && p.f.act.kind == RG_ACT_NONE)
		rc = take_activation(m, &p, err);
	/* without an activation between, a convolution's factor is in its weights already */
	if (!rc && (p.has_act || p.f.act.kind != RG_ACT_NONE || is_product(node_at(m, at))))
		rc = take_number(m, &p, "Mul", err);
	if (!rc && (p.n_parts || p.f.act.kind != RG_ACT_NONE))
		rc = take_number(m, &p, "Add", err);
	return rc || !p.n_parts ? rc : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_epilogue.name, log, err);

	/* From the end: of two products that are added, the later one has the other's output
	 * by the time it runs. */
	for (int i = m.n_nodes - 1; i >= 0 && !rc; i--)
		rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_epilogue = {
	.name = "epilogue",
	.what = "activations, numbers and residuals into the convolution or product before them",
	.level = 3,
	.own_only = "it makes operators that only ridge's own executor knows",
	.run = run,
};
