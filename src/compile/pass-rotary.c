/*
 * Rotary embedding (Su and others 2021) as exporters write it, for x of
 * batch x heads x sequence x size:
 *
 *	x cos + Concat(-second half of x, first half of x) sin
 *
 * becomes RotaryEmbedding, which reads x once and needs but half of the angles. That both
 * halves of cos and of sin are equal must be seen: in a constant, or because they are made
 * by Concat(f, f). Where x is made of batch x sequence x width by splitting heads off, the
 * operator goes before that, so that attention (pass-attention.c) finds its heads behind it.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/heads.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

struct pattern {
	int last, x;                /* node; value */
	int cosines, sines;         /* values, as they are multiplied */
	int64_t batch, heads, seq, size;
	struct rg_region r;
};

/* Where the angles come from: a constant, or f of Concat(f, f). */
struct angles {
	int constant, f;            /* values, -1 none */
	const char *op_type;        /* "Cos" or "Sin" of f */
	double scale;
};

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

static const struct rg_value *value_of(const struct rg_match *m, int value)
{
	return &m->g->values[value];
}

static bool is_known(const struct rg_value *v)
{
	return v->shaped && !v->dynamic && v->dtype == RG_F32;
}

static bool is_last_axis(const struct rg_match *m, int value, int64_t axis)
{
	return axis == -1 || axis == value_of(m, value)->shape.rank - 1;
}

/* ---- halves of x ---- */

/* The only element of a constant list. */
static bool one_integer(const struct rg_match *m, const struct rg_node *n, int input, int64_t *out)
{
	const struct rg_value *v = input < n->n_in && n->in[input] >= 0 ? value_of(m, n->in[input]) : NULL;

	if (!v || v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND || v->dtype != RG_I64 || !v->data ||
	    rg_shape_count(&v->shape) != 1)
		return false;
	*out = *(const int64_t *)v->data;
	return true;
}

/* Whether `value` is the first or the second half of x along its last dimension. */
static bool is_half(const struct rg_match *m, int value, int x, bool second, struct rg_region *r)
{
	int at = value_of(m, value)->producer;
	int64_t size = value_of(m, x)->shape.dim[3], begin, end, axis, step = 1;
	const struct rg_node *n;

	if (rg_match_is(m, at, "Split")) {
		n = node_at(m, at);
		return n->in[0] == x && n->n_out == 2 && is_last_axis(m, x, rg_node_int(n, "axis", 0)) &&
		       n->out[second] == value && is_known(value_of(m, value)) &&
		       value_of(m, value)->shape.dim[3] == size / 2 && rg_region_add(r, at);
	}
	at = rg_match_maker(m, value, "Slice");
	if (at < 0 || node_at(m, at)->in[0] != x)
		return false;
	n = node_at(m, at);
	if (!one_integer(m, n, 1, &begin) || !one_integer(m, n, 2, &end) || !one_integer(m, n, 3, &axis) ||
	    (n->n_in > 4 && n->in[4] >= 0 && !one_integer(m, n, 4, &step)))
		return false;
	begin += begin < 0 ? size : 0;
	end += end < 0 ? size : 0;
	return step == 1 && is_last_axis(m, x, axis) && begin == (second ? size / 2 : 0) &&
	       (second ? end >= size : end == size / 2) && rg_region_add(r, at);
}

/* The x of Concat(-second half of x, first half of x), or -1. */
static int turned(const struct rg_match *m, int value, struct rg_region *r)
{
	int at = rg_match_maker(m, value, "Concat"), neg, half, from;
	const struct rg_node *n;

	if (at < 0 || node_at(m, at)->n_in != 2 || !is_last_axis(m, value, rg_node_int(node_at(m, at), "axis", 0)))
		return -1;
	n = node_at(m, at);
	neg = rg_match_maker(m, n->in[0], "Neg");
	if (neg < 0)
		return -1;
	half = value_of(m, node_at(m, neg)->in[0])->producer;
	if (half < 0 || node_at(m, half)->n_in < 1)
		return -1;
	from = node_at(m, half)->in[0];
	if (from < 0 || !is_known(value_of(m, from)) || value_of(m, from)->shape.rank != 4 ||
	    value_of(m, from)->shape.dim[3] % 2 || !is_half(m, node_at(m, neg)->in[0], from, true, r) ||
	    !is_half(m, n->in[1], from, false, r) || !rg_region_add(r, neg) || !rg_region_add(r, at))
		return -1;
	return from;
}

/* ---- angles ---- */

/* One row a token of all heads: [batch or 1] x 1 x sequence x size, with or without the first dimensions. */
static bool goes_with(const struct rg_match *m, const struct pattern *p, int value)
{
	const struct rg_value *v = value_of(m, value);
	int rank = v->shape.rank;

	return is_known(v) && rank >= 2 && rank <= 4 && v->shape.dim[rank - 1] == p->size &&
	       v->shape.dim[rank - 2] == p->seq && (rank < 3 || v->shape.dim[rank - 3] == 1) &&
	       (rank < 4 || v->shape.dim[0] == 1 || v->shape.dim[0] == p->batch);
}

static bool equal_halves(const float *x, int64_t rows, int64_t size)
{
	for (int64_t i = 0; i < rows; i++)
		if (memcmp(x + i * size, x + i * size + size / 2, (size_t)(size / 2) * sizeof(*x)))
			return false;
	return true;
}

/* Dimensions of one, and numbers, between the angles and what reads them. */
static int before_views(const struct rg_match *m, int value, double *scale)
{
	for (;;) {
		struct rg_region none = { 0 };
		int from = rg_heads_unscale(m, value, scale, &none), at = value_of(m, from)->producer;

		if (!rg_match_is(m, at, "Unsqueeze") && !rg_match_is(m, at, "Reshape"))
			return from;
		if (!is_known(value_of(m, node_at(m, at)->in[0])))
			return from;
		value = node_at(m, at)->in[0];
	}
}

static bool find_angles(const struct rg_match *m, const struct pattern *p, int value, const char *op_type,
			struct angles *a)
{
	const struct rg_value *v;
	const float *data;
	int64_t count;
	int at;

	*a = (struct angles){ .constant = -1, .f = -1, .op_type = op_type, .scale = 1 };
	data = rg_match_floats(m->g, value, &count);
	if (data) {
		a->constant = value;
		return equal_halves(data, count / p->size, p->size);
	}
	at = rg_match_maker(m, before_views(m, value, &a->scale), op_type);
	if (at < 0)
		return false;
	at = rg_match_maker(m, node_at(m, at)->in[0], "Concat");
	if (at < 0 || node_at(m, at)->n_in != 2 || node_at(m, at)->in[0] != node_at(m, at)->in[1] ||
	    !is_last_axis(m, node_at(m, at)->out[0], rg_node_int(node_at(m, at), "axis", 0)))
		return false;
	a->f = node_at(m, at)->in[0];
	v = value_of(m, a->f);
	return is_known(v) && (v->shape.rank == 2 || v->shape.rank == 3) &&
	       v->shape.dim[v->shape.rank - 1] == p->size / 2 &&
	       v->shape.dim[v->shape.rank - 2] == p->seq &&
	       (v->shape.rank == 2 || v->shape.dim[0] == 1 || v->shape.dim[0] == p->batch);
}

/* What a node that this round has added makes of x in that shape; -1: there is none. */
static int added(const struct rg_match *m, const char *op_type, int x, const struct rg_shape *shape)
{
	const struct rg_graph *g = m->g;

	for (int i = m->n_nodes; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!n->domain[0] && !strcmp(n->op_type, op_type) && n->in[0] == x &&
		    rg_shape_equal(&g->values[n->out[0]].shape, shape))
			return n->out[0];
	}
	return -1;
}

static int add_node(struct rg_match *m, const char *base, const char *what, const char *op_type, int n_in,
		    const int *in, const struct rg_shape *shape, struct rg_error *err)
{
	int out = rg_rewrite_value(m->g, base, what, RG_F32, shape, err), rc;

	if (out < 0)
		return out;
	rc = rg_graph_add_node(m->g, "", op_type, m->g->values[out].name, n_in, in, 1, &out, 0, NULL, err);
	return rc < 0 ? rc : out;
}

/* x in another shape, by Reshape or Expand; once for all that want it. */
static int add_shaped(struct rg_match *m, const char *base, const char *op_type, int x, const struct rg_shape *shape,
		      struct rg_error *err)
{
	int there = added(m, op_type, x, shape), in[2] = { x, -1 };

	if (there >= 0)
		return there;
	in[1] = rg_rewrite_ints(m->g, base, ":shape", shape->dim, shape->rank, err);
	return in[1] < 0 ? in[1] : add_node(m, base, ":shaped", op_type, 2, in, shape, err);
}

/* A constant of batch x sequence x half out of one of the whole. */
static int make_constant(struct rg_match *m, const struct pattern *p, const char *base, int value,
			 struct rg_error *err)
{
	struct rg_shape shape = { .rank = 3, .dim = { p->batch, p->seq, p->size / 2 } };
	int64_t half = p->size / 2, rows = p->batch * p->seq, count;
	const float *from = rg_match_floats(m->g, value, &count);
	float *to = rg_alloc_aligned(64, (size_t)(rows * half) * sizeof(*to));

	if (!to)
		return rg_error_nomem(err, (size_t)(rows * half) * sizeof(*to));
	for (int64_t i = 0; i < rows; i++) /* one for all sequences, or one each */
		memcpy(to + i * half, from + i % (count / p->size) * p->size, (size_t)half * sizeof(*to));
	return rg_rewrite_const(m->g, base, ":angles", RG_F32, &shape, to, err);
}

static int make_angles(struct rg_match *m, const struct pattern *p, const char *base, const struct angles *a,
		       struct rg_error *err)
{
	struct rg_shape shape = { .rank = 3, .dim = { p->batch, p->seq, p->size / 2 } }, number = { 0 };
	int in[2] = { a->f, -1 }, value;
	float *scale;

	if (a->constant >= 0)
		return make_constant(m, p, base, a->constant, err);
	if (!rg_shape_equal(&value_of(m, a->f)->shape, &shape))
		in[0] = add_shaped(m, base, "Expand", a->f, &shape, err);
	if (in[0] < 0)
		return in[0];
	value = added(m, a->op_type, in[0], &shape); /* of another layer, or of keys */
	if (value < 0)
		value = add_node(m, base, ":angles", a->op_type, 1, in, &shape, err);
	if (value < 0 || a->scale == 1)
		return value;
	scale = rg_alloc_aligned(64, sizeof(*scale));
	if (!scale)
		return rg_error_nomem(err, sizeof(*scale));
	*scale = (float)a->scale;
	in[0] = value;
	in[1] = rg_rewrite_const(m->g, base, ":angles-scale", RG_F32, &number, scale, err);
	return in[1] < 0 ? in[1] : add_node(m, base, ":angles", "Mul", 2, in, &shape, err);
}

/* ---- the whole ---- */

/* x cos + turned(x) sin, in either order: the node is the sum. */
static bool find(const struct rg_match *m, struct pattern *p)
{
	for (int k = 0; k < 2; k++) {
		int of_turned = rg_match_maker(m, node_at(m, p->last)->in[k], "Mul");
		int of_x = rg_match_maker(m, node_at(m, p->last)->in[1 - k], "Mul");

		for (int j = 0; j < 2 && of_turned >= 0 && of_x >= 0; j++) {
			struct rg_region r = { 0 };
			const struct rg_node *n = node_at(m, of_x);
			const struct rg_shape *s;

			p->x = turned(m, node_at(m, of_turned)->in[j], &r);
			if (p->x < 0 || (n->in[0] != p->x && n->in[1] != p->x))
				continue;
			p->sines = node_at(m, of_turned)->in[1 - j];
			p->cosines = n->in[n->in[0] == p->x];
			s = &value_of(m, p->x)->shape;
			p->batch = s->dim[0];
			p->heads = s->dim[1];
			p->seq = s->dim[2];
			p->size = s->dim[3];
			p->r = r;
			return rg_region_add(&p->r, of_turned) && rg_region_add(&p->r, of_x) &&
			       rg_region_add(&p->r, p->last) && rg_shape_count(s) > 0;
		}
	}
	return false;
}

/* Before heads are split off: on batch x sequence x width, and the split behind it. */
static int put_before_split(struct rg_match *m, struct pattern *p, const struct rg_heads *h, const int *angles,
			    struct rg_error *err)
{
	struct rg_shape rows = { .rank = 3, .dim = { p->batch, p->seq, p->heads * p->size } };
	struct rg_shape split = { .rank = 4, .dim = { p->batch, p->seq, p->heads, p->size } };
	static const int64_t perm[] = { 0, 2, 1, 3 };
	const struct rg_attr turn = { .name = "perm", .type = RG_ATTR_INTS, .count = 4, .ints = perm };
	const struct rg_attr heads = { .name = "num_heads", .type = RG_ATTR_INT, .i = p->heads };
	const char *base = node_at(m, p->last)->name;
	int in[3] = { h->x, angles[0], angles[1] }, out, y, rc;

	if (!rg_shape_equal(&value_of(m, h->x)->shape, &rows))
		in[0] = add_shaped(m, base, "Reshape", h->x, &rows, err);
	out = in[0] < 0 ? in[0] : rg_rewrite_value(m->g, base, ":rotated", RG_F32, &rows, err);
	y = out < 0 ? out : add_shaped(m, base, "Reshape", out, &split, err);
	if (y < 0)
		return y;
	rc = rg_graph_add_node(m->g, "", "Transpose", value_of(m, out)->name, 1, &y, 1, node_at(m, p->last)->out, 1,
			       &turn, err);
	return rc < 0 ? rc : rg_region_replace(m, &p->r, p->last, &(struct rg_replacement){
		.domain = "", .op_type = "RotaryEmbedding", .opset = 23, .n_in = 3, .in = in,
		.n_attrs = 1, .attrs = &heads, .n_out = 1, .out = &out,
	}, err);
}

static int rewrite(struct rg_match *m, struct pattern *p, const struct angles *cosines, const struct angles *sines,
		   struct rg_error *err)
{
	struct rg_heads h = { .batch = p->batch, .heads = p->heads, .seq = p->seq, .size = p->size };
	const char *base = node_at(m, p->last)->name;
	int in[3] = { p->x, make_angles(m, p, base, cosines, err), -1 };

	in[2] = in[1] < 0 ? in[1] : make_angles(m, p, base, sines, err);
	if (in[2] < 0)
		return in[2];
	if (rg_heads_of(m, p->x, false, &h) && !h.heads_first && h.parts == 1 && h.past < 0 && h.scale == 1)
		return put_before_split(m, p, &h, in + 1, err);
	return rg_region_replace(m, &p->r, p->last, &(struct rg_replacement){
		.domain = "", .op_type = "RotaryEmbedding", .opset = 23, .n_in = 3, .in = in,
	}, err);
}

static int look_at(struct rg_match *m, int add, struct rg_error *err)
{
	struct pattern p = { .last = add };
	struct angles cosines, sines;
	enum rg_decline why;
	int first;

	if (!find(m, &p))
		return 0;
	first = p.r.node[0];
	if (!goes_with(m, &p, p.cosines) || !goes_with(m, &p, p.sines))
		return rg_match_note(m, first, add, RG_DECLINE_BROADCASTING, err);
	if (!find_angles(m, &p, p.cosines, "Cos", &cosines) || !find_angles(m, &p, p.sines, "Sin", &sines))
		return rg_match_note(m, first, add,
				     cosines.constant >= 0 ? RG_DECLINE_ATTRIBUTE : RG_DECLINE_NOT_CONSTANT, err);
	why = rg_region_closed(m, &p.r, add);
	return why ? rg_match_note(m, first, add, why, err) : rewrite(m, &p, &cosines, &sines, err);
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_rotary.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Add"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_rotary = {
	.name = "rotary",
	.what = "rotary embedding that was taken apart into one operator, before heads are split off",
	.level = 1,
	.run = run,
};
