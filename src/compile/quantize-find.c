/* See quantize.h: which operators can be quantised. */
#include <string.h>

#include "base/alloc.h"
#include "compile/needed.h"
#include "compile/quantize.h"

/* Integer kernels of these exist (QLinearAdd and its like); they gain less than products do, and cost as much
 * accuracy, so they are quantised on request. */
static const char *const may[] = { "Add", "Mul", "AveragePool", "GlobalAveragePool", "Sigmoid", "LeakyRelu" };

bool rg_quantize_may(const char *op_type)
{
	for (size_t i = 0; i < sizeof(may) / sizeof(may[0]); i++)
		if (strcmp(may[i], op_type) == 0)
			return true;
	return false;
}

const char *rg_quantize_may_list(void)
{
	return "Add, Mul, AveragePool, GlobalAveragePool, Sigmoid, LeakyRelu";
}

struct finder {
	const struct rg_graph *g;
	const struct rg_quantize_options *o;
	struct rg_quantize_sites *s;
	size_t cap_sites, cap_left;
	int *reader;                /* by value: the node that reads it; -1 none, -2 several, a subgraph or an output */
	unsigned char *live;        /* by node */
};

static const struct rg_value *input(const struct rg_graph *g, const struct rg_node *n, int k)
{
	return k < n->n_in && n->in[k] >= 0 ? &g->values[n->in[k]] : NULL;
}

static bool is_weight(const struct rg_value *v)
{
	return v && v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->dtype == RG_F32 && v->data &&
	       !v->released;
}

static bool is_act(const struct rg_value *v)
{
	return v && v->kind == RG_VALUE_TENSOR && v->origin == RG_CONST_NONE && v->shaped && !v->dynamic &&
	       v->dtype == RG_F32;
}

static const char *why_no_act(const struct rg_value *v)
{
	if (!v || v->origin != RG_CONST_NONE)
		return "it reads constants alone";
	if (!v->shaped || v->dynamic)
		return "its input is known only while it runs";
	return "its input is not float32";
}

static int add_site(struct finder *f, const struct rg_quantize_site *site, struct rg_error *err)
{
	struct rg_quantize_site *v =
	    rg_grow(f->s->v, &f->cap_sites, (size_t)f->s->n + 1, sizeof(*v));

	if (!v)
		return rg_error_nomem(err, (size_t)f->s->n * sizeof(*v));
	f->s->v = v;
	v[f->s->n++] = *site;
	return 0;
}

static int leave(struct finder *f, int node, const char *why, struct rg_error *err)
{
	struct rg_quantize_left *v = rg_grow(f->s->left, &f->cap_left, (size_t)f->s->n_left + 1, sizeof(*v));

	if (!v)
		return rg_error_nomem(err, (size_t)f->s->n_left * sizeof(*v));
	f->s->left = v;
	v[f->s->n_left++] = (struct rg_quantize_left){ node, why };
	return 0;
}

static void find_readers(struct finder *f)
{
	const struct rg_graph *g = f->g;

	for (int v = 0; v < g->n_values; v++)
		f->reader[v] = g->values[v].is_output ? -2 : -1;
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!f->live[i])
			continue;
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] >= 0)
				f->reader[n->in[k]] = f->reader[n->in[k]] == -1 ? i : -2;
		for (int k = 0; k < n->n_captured; k++)
			f->reader[n->captured[k]] = -2;
	}
}

/* What is quantised behind an operator: a Relu or Clip takes part in the rounding, so the range is that behind
 * it. */
static void set_output(const struct finder *f, struct rg_quantize_site *s)
{
	const struct rg_node *n = &f->g->nodes[s->node];
	int by = n->out[0] >= 0 ? f->reader[n->out[0]] : -1;
	const struct rg_node *next = by >= 0 ? &f->g->nodes[by] : NULL;

	s->last = s->node;
	s->output = n->out[0];
	if (next && !next->domain[0] && next->in[0] == s->output && next->n_out == 1 && next->out[0] >= 0 &&
	    (strcmp(next->op_type, "Relu") == 0 || strcmp(next->op_type, "Clip") == 0)) {
		s->last = by;
		s->output = next->out[0];
	}
}

/* The bias of a Gemm or a convolution, if it is one number a channel. */
static int bias_of(const struct rg_graph *g, const struct rg_node *n, int64_t channels)
{
	const struct rg_value *b = input(g, n, 2);

	return is_weight(b) && rg_shape_count(&b->shape) == channels &&
		       (b->shape.rank == 0 || b->shape.dim[b->shape.rank - 1] == channels)
		   ? n->in[2]
		   : -1;
}

/* 0, or the error; a site that cannot be quantised says why. */
static const char *product(const struct finder *f, struct rg_quantize_site *s)
{
	const struct rg_graph *g = f->g;
	const struct rg_node *n = &g->nodes[s->node];
	const struct rg_value *a = input(g, n, 0), *b = input(g, n, 1);
	bool gemm = strcmp(n->op_type, "Gemm") == 0, flip = gemm && rg_node_int(n, "transB", 0);

	if (!is_act(a))
		return a && a->origin != RG_CONST_NONE && is_act(b) ? "the constant stands on the left" : why_no_act(a);
	if (is_act(b)) {
		if (f->o->dynamic)
			return "it multiplies two activations";
		s->n_act = 2;
		s->slot[1] = 1;
		s->act[1] = n->in[1];
		return NULL;
	}
	if (!is_weight(b))
		return b && b->origin == RG_CONST_NONE ? why_no_act(b) : "its weights are not float32";
	if (rg_shape_count(&b->shape) == 0)
		return "its weights are empty";
	s->weight = n->in[1];
	if (b->shape.rank == 2 && !f->o->per_tensor)
		s->axis = flip ? 0 : 1;
	if (f->o->dynamic && b->shape.rank != 2)
		return "its weights are not a matrix";
	if (gemm && f->o->dynamic && rg_node_int(n, "transA", 0))
		return "its input is transposed";
	if (gemm && f->o->dynamic && n->n_in > 2 && n->in[2] >= 0 && rg_node_float(n, "beta", 1) != 1)
		return "its bias has a factor";
	if (gemm && rg_node_float(n, "alpha", 1) == 1 && rg_node_float(n, "beta", 1) == 1)
		s->bias = bias_of(g, n, b->shape.dim[flip ? 0 : 1]);
	return NULL;
}

static const char *convolution(const struct finder *f, struct rg_quantize_site *s)
{
	const struct rg_graph *g = f->g;
	const struct rg_node *n = &g->nodes[s->node];
	const struct rg_value *w = input(g, n, 1);

	if (f->o->dynamic)
		return "convolutions stay as they are in the dynamic form";
	if (!is_act(input(g, n, 0)))
		return why_no_act(input(g, n, 0));
	if (!is_weight(w))
		return "its weights are no float32 constant";
	if (rg_shape_count(&w->shape) == 0)
		return "its weights are empty";
	s->weight = n->in[1];
	s->axis = f->o->per_tensor ? -1 : 0;
	s->bias = bias_of(g, n, w->shape.dim[0]);
	set_output(f, s);
	return NULL;
}

/* An operator of one or two activations that has no weights. */
static const char *other(const struct finder *f, struct rg_quantize_site *s)
{
	const struct rg_node *n = &f->g->nodes[s->node];

	if (f->o->dynamic)
		return "the dynamic form has no operator for it";
	s->n_act = n->n_in;
	for (int k = 0; k < n->n_in; k++) {
		if (k == RG_QUANTIZE_ACTS || !is_act(input(f->g, n, k)))
			return "one of its inputs is constant, or not float32";
		s->slot[k] = k;
		s->act[k] = n->in[k];
	}
	set_output(f, s);
	return NULL;
}

static bool is_asked(const struct rg_quantize_options *o, const char *op_type)
{
	for (int i = 0; i < o->n_also; i++)
		if (strcmp(o->also[i], op_type) == 0)
			return true;
	return false;
}

static int look_at(struct finder *f, int i, struct rg_error *err)
{
	const struct rg_node *n = &f->g->nodes[i];
	struct rg_quantize_site s = { .node = i, .n_act = 1, .act = { n->n_in ? n->in[0] : -1, -1 }, .weight = -1,
				      .axis = -1, .bias = -1, .output = -1, .last = i };
	const char *why = NULL;

	if (n->domain[0] || !f->live[i] || n->n_in < 1 || n->n_out < 1 || n->out[0] < 0)
		return 0;
	if (strcmp(n->op_type, "Conv") == 0)
		why = convolution(f, &s);
	else if (strcmp(n->op_type, "MatMul") == 0 || strcmp(n->op_type, "Gemm") == 0)
		why = product(f, &s);
	else if (strcmp(n->op_type, "ConvTranspose") == 0)
		why = "no runtime has an integer kernel for it";
	else if (is_asked(f->o, n->op_type))
		why = other(f, &s);
	else
		return 0;
	return why ? leave(f, i, why, err) : add_site(f, &s, err);
}

int rg_quantize_find(const struct rg_graph *g, const struct rg_quantize_options *o, struct rg_quantize_sites *out,
		     struct rg_error *err)
{
	struct finder f = { .g = g, .o = o, .s = out };
	unsigned char *values = rg_calloc((size_t)g->n_values + 1, 1);
	int rc = 0;

	*out = (struct rg_quantize_sites){ 0 };
	f.live = rg_calloc((size_t)g->n_nodes + 1, 1);
	f.reader = rg_calloc((size_t)g->n_values + 1, sizeof(*f.reader));
	if (!values || !f.live || !f.reader)
		rc = rg_error_nomem(err, (size_t)g->n_values * sizeof(*f.reader));
	if (!rc) {
		rg_mark_needed(g, false, values, f.live);
		find_readers(&f);
	}
	for (int i = 0; i < g->n_nodes && !rc; i++)
		rc = look_at(&f, i, err);
	rg_free(values);
	rg_free(f.live);
	rg_free(f.reader);
	return rc;
}

void rg_quantize_sites_free(struct rg_quantize_sites *s)
{
	rg_free(s->v);
	rg_free(s->left);
	*s = (struct rg_quantize_sites){ 0 };
}
