/*
 * What follows a convolution element by element is done before its sums are stored:
 * the addition of a tensor of the same shape (a residual), then Relu or Clip. The
 * convolution becomes com.microsoft.FusedConv, which says just that. It saves
 * reading and writing the output once for each.
 */
#include <string.h>

#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/contrib.h"

/* One convolution and what goes into it. */
struct pattern {
	int conv, add, act;         /* nodes; -1: not there */
	int residual;               /* value; -1 none */
	bool clip;
	float low, high;            /* of Clip */
};

/* Kernels for more than two dimensions have no epilogue. */
static bool kernel_fuses(const struct rg_graph *g, const struct rg_node *conv)
{
	return g->values[conv->out[0]].shape.rank <= 4;
}

/* Those for few channels a group add nothing, and are faster than those that do. */
static bool kernel_adds(const struct rg_graph *g, const struct rg_node *conv)
{
	return rg_node_int(conv, "group", 1) == 1 || g->values[conv->in[1]].shape.dim[1] > 1;
}

/* Takes Relu or Clip behind `last`, whose output it alone reads. */
static int take_activation(struct rg_match *m, int last, struct pattern *p, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	enum rg_decline why;
	int act = rg_match_reader(m, last, "Relu", false, &why);
	bool clip = act < 0;

	if (clip)
		act = rg_match_reader(m, last, "Clip", false, &why);
	if (act < 0)
		return 0;
	if (!why && clip && !rg_match_clip(g, &g->nodes[act], &p->low, &p->high))
		why = RG_DECLINE_NOT_CONSTANT;
	if (why)
		return p->add >= 0 ? rg_match_note_settled(m, act, p->conv, why, err) :
				     rg_match_note(m, act, p->conv, why, err);
	p->act = act;
	p->clip = clip;
	return 0;
}

/* Takes the addition behind the convolution. */
static int take_residual(struct rg_match *m, struct pattern *p, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_value *y = &g->values[g->nodes[p->conv].out[0]], *z;
	const struct rg_node *add;
	enum rg_decline why;
	int at = rg_match_reader(m, p->conv, "Add", true, &why), other;

	if (at < 0)
		return 0;
	add = &g->nodes[at];
	other = add->in[add->in[0] == g->nodes[p->conv].out[0]];
	z = &g->values[other];
	if (!why && (!z->shaped || z->dynamic))
		why = RG_DECLINE_DYNAMIC;
	if (!why && !rg_shape_equal(&z->shape, &y->shape))
		why = RG_DECLINE_BROADCASTING;
	if (!why && !kernel_adds(g, &g->nodes[p->conv]))
		why = RG_DECLINE_KERNEL;
	if (why)
		return rg_match_note(m, at, p->conv, why, err);
	p->add = at;
	p->residual = other;
	return 0;
}

static int rewrite(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	enum { MOST = 16 };
	struct rg_graph *g = m->g;
	struct rg_node conv = g->nodes[p->conv]; /* its array moves as nodes are added */
	int last = p->act >= 0 ? p->act : p->add, out[1] = { g->nodes[last].out[0] }, rc = 0;
	int in[4] = { conv.in[0], conv.in[1], conv.n_in > 2 ? conv.in[2] : -1, p->residual }, n = conv.n_attrs;
	float bounds[2] = { p->low, p->high };
	struct rg_attr attrs[MOST];

	if (n + 2 > MOST)
		return rg_match_note(m, last, p->conv, RG_DECLINE_ATTRIBUTE, err);
	if (n)
		memcpy(attrs, conv.attrs, (size_t)n * sizeof(*attrs));
	if (p->act >= 0) {
		const char *name = p->clip ? "Clip" : "Relu";

		attrs[n++] = (struct rg_attr){ .name = "activation", .type = RG_ATTR_STRING, .s = name, .s_len = strlen(name) };
		if (p->clip)
			attrs[n++] = (struct rg_attr){ .name = "activation_params", .type = RG_ATTR_FLOATS, .count = 2,
						       .floats = bounds };
	}
	rc = rg_rewrite_import_contrib(g, err);
	if (!rc)
		rc = rg_graph_add_node(g, RG_CONTRIB_DOMAIN, "FusedConv", conv.name,
				       p->residual >= 0 ? 4 : in[2] >= 0 ? 3 : 2, in, 1, out, n, attrs, err);
	if (rc < 0)
		return rc;
	m->gone[p->conv] = 1;
	m->n_rewrites++;
	rc = 0;
	for (int k = 0; k < 2 && !rc; k++) {
		int node = k ? p->act : p->add;

		if (node < 0)
			continue;
		m->gone[node] = 1;
		rc = rg_match_note(m, node, p->conv, RG_DECLINE_NONE, err);
	}
	return rc;
}

static int look_at(struct rg_match *m, int conv, struct rg_error *err)
{
	struct pattern p = { .conv = conv, .add = -1, .act = -1, .residual = -1 };
	struct rg_graph *g = m->g;
	const struct rg_value *y = &g->values[g->nodes[conv].out[0]];
	enum rg_decline why = RG_DECLINE_NONE;
	int rc;

	if (!y->shaped || y->dynamic || y->dtype != RG_F32)
		why = y->shaped && !y->dynamic ? RG_DECLINE_TYPE : RG_DECLINE_DYNAMIC;
	else if (!kernel_fuses(g, &g->nodes[conv]))
		why = RG_DECLINE_KERNEL;
	if (why) {
		static const char *const types[] = { "Add", "Relu", "Clip" };

		for (int k = 0; k < 3; k++) {
			enum rg_decline between;
			int next = rg_match_reader(m, conv, types[k], k == 0, &between);

			if (next >= 0)
				return rg_match_note(m, next, conv, why, err);
		}
		return 0;
	}
	rc = take_residual(m, &p, err);
	if (!rc)
		rc = take_activation(m, p.add >= 0 ? p.add : conv, &p, err);
	return rc || (p.add < 0 && p.act < 0) ? rc : rewrite(m, &p, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_conv_epilogue.name, log, err);

	/* From the end: of two convolutions that are added, the later one has the other's output
	 * by the time it runs. */
	for (int i = m.n_nodes - 1; i >= 0 && !rc; i--)
		if (rg_match_is(&m, i, "Conv") && g->nodes[i].n_out == 1 && g->nodes[i].out[0] >= 0)
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_conv_epilogue = {
	.name = "conv-epilogue",
	.what = "addition of a residual, Relu and Clip into the convolution before them",
	.level = 3,
	.run = run,
};
