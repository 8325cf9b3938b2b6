/*
 * Normalisation of rows that an exporter has taken apart:
 *
 *	d = x - mean(x)                      LayerNormalization (Ba, Kiros and Hinton 2016)
 *	d = x                                RMSNormalization (Zhang and Sennrich 2019)
 *	y = d / sqrt(mean(d^2) + epsilon)  times scale, plus bias
 *
 * with d^2 as a product or a power, the root as Sqrt or a power, the quotient as a product
 * with a reciprocal, and means over the last dimension or the last few. Nine passes over a
 * tensor become one. Where the scale or the bias is not one row for all, it stays behind.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/reduced.h"
#include "compile/region.h"
#include "compile/rewrite.h"

struct pattern {
	int x, square, mean;        /* values; the node that takes the mean of squares */
	int first;                  /* of the dimensions that are normalised */
	int root, last;             /* nodes */
	float epsilon;
	bool centred;
	int scale, bias;            /* values, -1 none */
	struct rg_region r;
};

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

/* A mean over the last dimensions that keeps them as ones: the first of them; -1: it is none. */
static int mean_from(const struct rg_match *m, int node)
{
	int rank = m->g->values[node_at(m, node)->in[0]].shape.rank;
	unsigned axes;

	if (!rg_reduced_axes(m->g, node_at(m, node), &axes))
		return -1;
	for (int first = 0; first < rank; first++)
		if (axes == (1u << rank) - (1u << first))
			return first;
	return -1;
}

static bool same_mean(const struct rg_match *m, int node, int x, int first)
{
	return rg_match_is(m, node, "ReduceMean") && node_at(m, node)->in[0] == x && mean_from(m, node) == first;
}

/* The value whose squares a node makes; -1: it makes none. */
static int squared(const struct rg_match *m, int value)
{
	int at = rg_match_maker(m, value, "Mul");
	float two;

	if (at >= 0)
		return node_at(m, at)->in[0] == node_at(m, at)->in[1] ? node_at(m, at)->in[0] : -1;
	at = rg_match_maker(m, value, "Pow");
	return at >= 0 && rg_match_number(m->g, node_at(m, at)->in[1], &two) && two == 2 ? node_at(m, at)->in[0] : -1;
}

/* A node of that type that reads what `node` makes, whoever else does. */
static int reader(const struct rg_match *m, int node, const char *op_type)
{
	for (int u = m->first_use[node_at(m, node)->out[0]]; u >= 0; u = m->uses[u].next)
		if (rg_match_is(m, m->uses[u].node, op_type))
			return m->uses[u].node;
	return -1;
}

static int other_input(const struct rg_match *m, int node, int value)
{
	return node_at(m, node)->in[node_at(m, node)->in[0] == value];
}

/* x of a difference x - mean(x); -1: it is none. Adds its nodes. */
static int centre(const struct rg_match *m, int value, int first, struct rg_region *r)
{
	int at = rg_match_maker(m, value, "Sub"), mean;

	if (at < 0)
		return -1;
	mean = m->g->values[node_at(m, at)->in[1]].producer;
	if (!same_mean(m, mean, node_at(m, at)->in[0], first) || !rg_region_add(r, at) || !rg_region_add(r, mean))
		return -1;
	return node_at(m, at)->in[0];
}

/* From the mean of squares to what divides: Add epsilon, then a root. *inverse: it multiplies. */
static int find_divisor(const struct rg_match *m, struct pattern *p, bool *inverse)
{
	int add = reader(m, p->mean, "Add"), at, next;
	float power;

	*inverse = false;
	if (add < 0 || !rg_match_number(m->g, other_input(m, add, node_at(m, p->mean)->out[0]), &p->epsilon) ||
	    !(p->epsilon >= 0) || !rg_region_add(&p->r, add))
		return -1;
	at = reader(m, add, "Sqrt");
	if (at < 0) {
		at = reader(m, add, "Pow");
		if (at < 0 || node_at(m, at)->in[0] != node_at(m, add)->out[0] ||
		    !rg_match_number(m->g, node_at(m, at)->in[1], &power) || (power != 0.5f && power != -0.5f))
			return -1;
		*inverse = power < 0;
	}
	if (!rg_region_add(&p->r, at))
		return -1;
	next = *inverse ? -1 : reader(m, at, "Reciprocal");
	if (next < 0)
		return at;
	*inverse = true;
	return rg_region_add(&p->r, next) ? next : -1;
}

/* The quotient of d and the root, and x. */
static bool find(const struct rg_match *m, struct pattern *p)
{
	int d, at, from, again;
	bool inverse;

	p->square = node_at(m, p->mean)->in[0];
	p->first = mean_from(m, p->mean);
	d = squared(m, p->square);
	if (p->first < 0 || d < 0 || m->g->values[d].dtype != RG_F32 || !rg_region_add(&p->r, p->mean) ||
	    !rg_region_add(&p->r, m->g->values[p->square].producer))
		return false;
	p->x = centre(m, d, p->first, &p->r);
	p->centred = p->x >= 0;
	if (!p->centred)
		p->x = d;
	p->root = find_divisor(m, p, &inverse);
	if (p->root < 0)
		return false;
	from = node_at(m, p->root)->out[0];
	at = reader(m, p->root, inverse ? "Mul" : "Div");
	if (at < 0 || (!inverse && node_at(m, at)->in[1] != from))
		return false;
	/* the difference may have been written twice */
	again = inverse ? other_input(m, at, from) : node_at(m, at)->in[0];
	if (again != d && !(p->centred && centre(m, again, p->first, &p->r) == p->x))
		return false;
	p->last = at;
	return rg_region_add(&p->r, at);
}

/* One row for all: of the shape that is normalised. */
static bool is_row(const struct rg_match *m, const struct pattern *p, int value)
{
	const struct rg_value *v = &m->g->values[value], *x = &m->g->values[p->x];
	int rank = x->shape.rank - p->first;

	return v->shaped && !v->dynamic && v->dtype == RG_F32 && v->shape.rank == rank &&
	       !memcmp(v->shape.dim, x->shape.dim + p->first, (size_t)rank * sizeof(v->shape.dim[0]));
}

/* Mul or Add of a row behind the last node: takes it. -1: there is none, or somebody reads what is between. */
static int take_row(const struct rg_match *m, struct pattern *p, const char *op_type)
{
	enum rg_decline why;
	int at = rg_match_reader(m, p->last, op_type, true, &why), row;

	if (at < 0 || why)
		return -1;
	row = other_input(m, at, node_at(m, p->last)->out[0]);
	if (!is_row(m, p, row) || !rg_region_add(&p->r, at))
		return -1;
	p->last = at;
	return row;
}

/* A scale of ones, for one that is not there. */
static int make_ones(struct rg_match *m, const struct pattern *p, struct rg_error *err)
{
	const struct rg_shape *x = &m->g->values[p->x].shape;
	struct rg_shape shape = rg_shape_of(x->rank - p->first, x->dim + p->first);
	int64_t n = rg_shape_count(&shape);
	float *ones = rg_alloc_aligned(64, (size_t)n * sizeof(*ones));

	if (!ones)
		return rg_error_nomem(err, (size_t)n * sizeof(*ones));
	for (int64_t i = 0; i < n; i++)
		ones[i] = 1;
	return rg_rewrite_const(m->g, node_at(m, p->last)->name, ":scale", RG_F32, &shape, ones, err);
}

static int look_at(struct rg_match *m, int mean, struct rg_error *err)
{
	struct pattern p = { .mean = mean, .scale = -1, .bias = -1 };
	struct rg_attr attrs[] = {
		{ .name = "axis", .type = RG_ATTR_INT },
		{ .name = "epsilon", .type = RG_ATTR_FLOAT },
	};
	enum rg_decline why;
	int in[3];

	if (!find(m, &p) || rg_shape_count(&m->g->values[p.x].shape) == 0)
		return 0;
	why = rg_region_closed(m, &p.r, p.last);
	if (why)
		return rg_match_note(m, p.root, p.last, why, err);
	p.scale = take_row(m, &p, "Mul");
	if (p.centred)
		p.bias = take_row(m, &p, "Add");
	if (p.scale < 0)
		p.scale = make_ones(m, &p, err);
	if (p.scale < 0)
		return p.scale;
	in[0] = p.x;
	in[1] = p.scale;
	in[2] = p.bias;
	attrs[0].i = p.first - m->g->values[p.x].shape.rank;
	attrs[1].f = p.epsilon;
	return rg_region_replace(m, &p.r, p.last, &(struct rg_replacement){
		.domain = "", .op_type = p.centred ? "LayerNormalization" : "RMSNormalization",
		.opset = p.centred ? 17 : 23, .n_in = p.bias >= 0 ? 3 : 2, .in = in, .n_attrs = 2, .attrs = attrs,
	}, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_layer_norm.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "ReduceMean"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_layer_norm = {
	.name = "layer-norm",
	.what = "LayerNormalization and RMSNormalization that were taken apart into one operator",
	.level = 1,
	.run = run,
};
