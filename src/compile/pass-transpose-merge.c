/*
 * Transposes move down, through what does not care in which order dimensions lie, until two meet and become
 * one or none:
 *
 *	Neg(T(x)) = T(Neg(x)), likewise every operator element by element
 *	Concat(T(x), T(y)) = T(Concat(x, y)) along the dimension that it was, likewise Add and its like
 *	Slice(T(x)) = T(Slice(x)), likewise reductions that keep their dimensions
 *	Reshape(T(x)) = T'(Reshape(x)), where it only adds or drops dimensions of 1
 *	T(T'(x)) = T''(x)
 *
 * In one walk over the graph: a value whose Transpose is still on its way is held as the value that it is a
 * transpose of. What cannot take it that way gets the Transpose right before it. A Transpose whose output
 * several read, or that is an output of the graph, stays where it is.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* What a value is a transpose of. */
struct held {
	int base;                   /* value; -1: nothing is held */
	int node;                   /* the Transpose that is to be made, where it began */
	bool moved;                 /* it has gone through something; else the node is still there */
	signed char perm[RG_MAX_RANK];
};

struct mover {
	struct rg_match *m;
	struct held *held;          /* by value of the beginning */
};

static bool is_one_of(const char *op_type, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(op_type, *list))
			return true;
	return false;
}

static struct held *held_of(const struct mover *t, int value)
{
	return value >= 0 && value < t->m->n_values && t->held[value].base >= 0 ? &t->held[value] : NULL;
}

/* One node reads the value, and nobody else. */
static bool has_one_reader(const struct rg_match *m, int value)
{
	int u = m->first_use[value];

	if (m->g->values[value].is_output || m->captured[value] || u < 0)
		return false;
	for (int next = m->uses[u].next; next >= 0; next = m->uses[next].next)
		if (m->uses[next].node != m->uses[u].node)
			return false;
	return true;
}

static bool same_perm(const struct held *a, const struct held *b, int rank)
{
	return !memcmp(a->perm, b->perm, (size_t)rank);
}

static bool is_static(const struct rg_graph *g, int value)
{
	return g->values[value].shaped && !g->values[value].dynamic &&
	       g->values[value].kind == RG_VALUE_TENSOR;
}

/* The shape whose transpose is `s`. */
static struct rg_shape unpermuted(const struct rg_shape *s, const signed char *perm)
{
	struct rg_shape out = { .rank = s->rank };

	for (int i = 0; i < s->rank; i++)
		out.dim[perm[i]] = s->dim[i];
	return out;
}

static bool is_identity(const struct rg_shape *base, const struct held *h)
{
	int64_t perm[RG_MAX_RANK];

	for (int i = 0; i < base->rank; i++) {
		perm[i] = h->perm[i];
		if (perm[i] != i && base->dim[i] != base->dim[perm[i]])
			return false;
	}
	/* dimensions of 1 that change places leave the shape as it is only where they meet each other */
	return rg_rewrite_keeps_order(base, perm);
}

/* ---- leaving a Transpose where it has come to ---- */

static int add_transpose(struct mover *t, const struct held *h, int out, const char *name,
			 struct rg_error *err)
{
	struct rg_graph *g = t->m->g;
	int rank = g->values[h->base].shape.rank, rc;
	int64_t perm[RG_MAX_RANK];
	struct rg_attr attr = { .name = "perm", .type = RG_ATTR_INTS, .count = rank, .ints = perm };

	for (int i = 0; i < rank; i++)
		perm[i] = h->perm[i];
	rc = rg_graph_add_node(g, "", "Transpose", name, 1, &h->base, 1, &out, 1, &attr, err);
	return rc < 0 ? rc : 0;
}

/* The value has to be there: its reader needs it as it is. */
static int settle(struct mover *t, int value, struct rg_error *err)
{
	struct held *h = held_of(t, value);
	struct rg_graph *g = t->m->g;
	int rc = 0;

	if (!h)
		return 0;
	if (h->moved && !is_identity(&g->values[h->base].shape, h))
		rc = add_transpose(t, h, value, g->nodes[h->node].name, err);
	else if (h->moved && (g->values[value].is_output || t->m->captured[value]))
		rc = rg_graph_add_node(g, "", "Identity", g->nodes[h->node].name, 1, &h->base, 1, &value, 0,
				       NULL, err);
	else if (h->moved)
		t->m->instead[value] = h->base;
	h->base = -1;
	return rc < 0 ? rc : 0;
}

static int note_move(struct mover *t, const struct held *h, int through, struct rg_error *err)
{
	if (h->moved)
		return 0;
	t->m->gone[h->node] = 1;
	t->m->n_rewrites++;
	return rg_match_note(t->m, h->node, through, RG_DECLINE_NONE, err);
}

/* ---- nodes that a Transpose goes through ---- */

/* Output 0 of node `at`, which reads bases now, is a transpose of what it makes from now on. */
static int hold_output(struct mover *t, int at, const struct held *from, struct rg_error *err)
{
	struct rg_graph *g = t->m->g;
	int out = g->nodes[at].out[0], made;
	const struct rg_value *v = &g->values[out];
	struct rg_shape shape = unpermuted(&v->shape, from->perm);
	struct held h = *from;

	made = rg_rewrite_value(g, v->name, ":moved", v->dtype, &shape, err);
	if (made < 0)
		return made;
	g->nodes[at].out[0] = made;
	g->values[made].producer = at;
	h.base = made;
	h.moved = true;
	t->held[out] = h;
	return has_one_reader(t->m, out) ? 0 : settle(t, out, err);
}

static bool is_elementwise(const struct rg_node *n)
{
	static const char *const list[] = { "Abs", "Acos", "Asin", "Atan", "BitwiseNot", "Cast", "Ceil",
		"Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
		"HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal",
		"Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
		"Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Add", "Sub", "Mul", "Div", "Pow", "Max",
		"Min", "Sum", "Mean", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
		"LessOrEqual", "Where", "PRelu", "Mod", NULL };

	return is_one_of(n->op_type, list);
}

static bool is_scalar(const struct rg_graph *g, int value, int rank)
{
	return value < 0 || (is_static(g, value) && rg_shape_count(&g->values[value].shape) == 1 &&
			     g->values[value].shape.rank <= rank);
}

/* All inputs are held alike, or one number. */
static const struct held *all_alike(const struct mover *t, const struct rg_node *n, bool scalars)
{
	const struct held *first = NULL;

	for (int k = 0; k < n->n_in; k++) {
		const struct held *h = held_of(t, n->in[k]);

		if (!h) {
			if (!scalars || !is_scalar(t->m->g, n->in[k], t->m->g->values[n->out[0]].shape.rank))
				return NULL;
			continue;
		}
		if (t->m->g->values[n->in[k]].shape.rank != t->m->g->values[n->out[0]].shape.rank ||
		    (first && !same_perm(first, h, t->m->g->values[n->in[k]].shape.rank)))
			return NULL;
		first = first ? first : h;
	}
	return first;
}

static int read_bases(struct mover *t, int at, struct rg_error *err)
{
	struct rg_node *n = &t->m->g->nodes[at];
	int rc = 0;

	for (int k = 0; k < n->n_in && !rc; k++) {
		struct held *h = held_of(t, n->in[k]);

		if (!h)
			continue;
		rc = note_move(t, h, at, err);
		h->moved = true; /* the other operand may be the same value */
		n->in[k] = h->base;
	}
	return rc;
}

static int set_ints(struct rg_graph *g, int at, const char *name, const int64_t *v, int count,
		    struct rg_error *err)
{
	int64_t *copy = rg_arena_alloc(g->arena, (size_t)count, sizeof(*copy));
	struct rg_node *n = &g->nodes[at];

	if (!copy)
		return rg_error_nomem(err, (size_t)count * sizeof(*copy));
	memcpy(copy, v, (size_t)count * sizeof(*copy));
	for (int i = 0; i < n->n_attrs; i++)
		if (!strcmp(n->attrs[i].name, name)) {
			n->attrs[i].ints = copy;
			n->attrs[i].count = count;
		}
	return 0;
}

static int set_int(struct rg_node *n, const char *name, int64_t v)
{
	for (int i = 0; i < n->n_attrs; i++)
		if (!strcmp(n->attrs[i].name, name))
			n->attrs[i].i = v;
	return 0;
}

/* Axes as an attribute or a constant input, mapped into `out`; their number, -1: not known, or none given. */
static int map_axes(const struct rg_graph *g, const struct rg_node *n, int input, const struct held *h,
		    int rank, int64_t out[RG_MAX_RANK])
{
	const int64_t *axes;
	int count = rg_node_ints(n, "axes", &axes);

	if (count < 0 && input >= 0 && input < n->n_in && n->in[input] >= 0) {
		const struct rg_value *v = &g->values[n->in[input]];

		if (v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND || v->dtype != RG_I64 ||
		    !v->data)
			return -1;
		axes = v->data;
		count = (int)rg_shape_count(&v->shape);
	}
	if (count < 1 || count > RG_MAX_RANK)
		return -1;
	for (int i = 0; i < count; i++) {
		int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];

		if (a < 0 || a >= rank)
			return -1;
		out[i] = h->perm[a];
	}
	return count;
}

/* Slice and reductions that keep their dimensions: the axes are others. 1: gone through, 0: not. */
static int go_through_axes(struct mover *t, int at, int input, struct rg_error *err)
{
	struct rg_graph *g = t->m->g;
	struct rg_node *n = &g->nodes[at];
	const struct held *h = held_of(t, n->in[0]);
	int rank = h ? g->values[n->in[0]].shape.rank : 0, count, list, rc;
	int64_t axes[RG_MAX_RANK];
	struct held from;

	count = h ? map_axes(g, n, input, h, rank, axes) : -1;
	if (count < 0 || !all_alike(t, &(struct rg_node){ .n_in = 1, .in = n->in, .out = n->out }, false))
		return 0;
	if (rg_node_attr(n, "axes")) {
		rc = set_ints(g, at, "axes", axes, count, err);
	} else {
		list = rg_rewrite_ints(g, n->name, ":axes", axes, count, err);
		n = &g->nodes[at];
		if (list >= 0)
			n->in[input] = list;
		rc = list < 0 ? list : 0;
	}
	from = *h;
	if (!rc)
		rc = note_move(t, h, at, err);
	if (!rc) {
		g->nodes[at].in[0] = from.base;
		rc = hold_output(t, at, &from, err);
	}
	return rc ? rc : 1;
}

/* The positions of dimensions other than 1. */
static int find_wide(const struct rg_shape *s, int at[RG_MAX_RANK])
{
	int n = 0;

	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] != 1)
			at[n++] = i;
	return n;
}

/* Reshape that adds or drops dimensions of 1: those of the output keep their places, the others come in the
 * order of the base. */
static int go_through_reshape(struct mover *t, int at, struct rg_error *err)
{
	struct rg_graph *g = t->m->g;
	const struct rg_node n = g->nodes[at];
	const struct held *h = held_of(t, n.in[0]);
	const struct rg_shape in = g->values[n.in[0]].shape, out = g->values[n.out[0]].shape;
	struct rg_shape base = h ? g->values[h->base].shape : in, to = out;
	int wide_in[RG_MAX_RANK], wide_out[RG_MAX_RANK], wide_base[RG_MAX_RANK], list[2], made, rc;
	int n_wide = find_wide(&in, wide_in);
	struct held from;

	if (!h || rg_shape_count(&in) < 1 || find_wide(&out, wide_out) != n_wide ||
	    find_wide(&base, wide_base) != n_wide)
		return 0;
	from = *h;
	for (int i = 0; i < out.rank; i++)
		from.perm[i] = (signed char)i;
	for (int i = 0; i < n_wide; i++) {
		int k = 0;

		if (in.dim[wide_in[i]] != out.dim[wide_out[i]])
			return 0;
		while (wide_base[k] != h->perm[wide_in[i]])
			k++;
		from.perm[wide_out[i]] = (signed char)wide_out[k];
	}
	to = unpermuted(&out, from.perm);
	rc = note_move(t, h, at, err);
	if (rc)
		return rc;
	made = rg_rewrite_value(g, g->values[n.out[0]].name, ":moved", g->values[n.out[0]].dtype, &to, err);
	list[0] = h->base;
	list[1] = made < 0 ? made : rg_rewrite_shape(g, n.name, &base, &to, err);
	if (list[1] < 0)
		return list[1];
	rc = rg_graph_add_node(g, "", "Reshape", n.name, 2, list, 1, &made, 0, NULL, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = rg_rewrite_opset(g, &n, 5);
	t->m->gone[at] = 1;
	g->values[made].producer = rc;
	from.base = made;
	from.moved = true;
	t->held[n.out[0]] = from;
	rc = has_one_reader(t->m, n.out[0]) ? 0 : settle(t, n.out[0], err);
	return rc ? rc : 1;
}

/* Transpose of a transpose, or the beginning of one. */
static int take_transpose(struct mover *t, int at, struct rg_error *err)
{
	struct rg_match *m = t->m;
	struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[at];
	const struct held *before = held_of(t, n->in[0]);
	int rank = g->values[n->in[0]].shape.rank, out = n->out[0], rc = 0;
	int64_t perm[RG_MAX_RANK];
	struct held h = { .base = before ? before->base : n->in[0], .node = at };

	rg_rewrite_perm(g, n, perm);
	for (int i = 0; i < rank; i++)
		h.perm[i] = before ? before->perm[perm[i]] : (signed char)perm[i];
	if (before) {
		rc = note_move(t, before, at, err);
		m->gone[at] = 1;
		h.moved = true;
	}
	if (rc)
		return rc;
	t->held[out] = h;
	if (has_one_reader(m, out))
		return 0;
	if (!h.moved) {
		t->held[out].base = -1;
		return 0;
	}
	return settle(t, out, err);
}

static bool is_reduction(const struct rg_node *n)
{
	static const char *const list[] = { "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd",
		"ReduceSum", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", NULL };

	return is_one_of(n->op_type, list) && rg_node_int(n, "keepdims", 1);
}

/* 1: the transposes that it reads are behind it now. */
static int go_through(struct mover *t, int at, struct rg_error *err)
{
	static const char *const reshapes[] = { "Reshape", "Squeeze", "Unsqueeze", "Flatten", NULL };
	struct rg_graph *g = t->m->g;
	struct rg_node *n = &g->nodes[at];
	bool concat = !strcmp(n->op_type, "Concat");
	const struct held *h;
	struct held from;
	int rc;

	if (!rg_match_is(t->m, at, n->op_type) || !rg_rewrite_is_plain(g, n))
		return 0;
	if (!strcmp(n->op_type, "Slice"))
		return go_through_axes(t, at, n->version >= 10 ? 3 : -1, err);
	if (is_reduction(n))
		return go_through_axes(t, at, 1, err);
	if (is_one_of(n->op_type, reshapes))
		return go_through_reshape(t, at, err);
	if ((!is_elementwise(n) && !concat) || (n->version < 7 && n->n_in > 1 && !concat))
		return 0;
	h = all_alike(t, n, !concat);
	if (!h)
		return 0;
	from = *h;
	if (concat) {
		int rank = g->values[n->out[0]].shape.rank;
		int64_t axis = rg_node_int(n, "axis", 1);

		if (!rg_node_attr(n, "axis"))
			return 0;
		set_int(n, "axis", from.perm[axis < 0 ? axis + rank : axis]);
	}
	rc = read_bases(t, at, err);
	if (!rc)
		rc = hold_output(t, at, &from, err);
	return rc ? rc : 1;
}

static int move_all(struct mover *t, struct rg_error *err)
{
	struct rg_match *m = t->m;
	int rc = 0;

	for (int v = 0; v < m->n_values; v++)
		t->held[v].base = -1;
	for (int i = 0; i < m->n_nodes && rc >= 0; i++) {
		if (rg_match_is(m, i, "Transpose") && rg_rewrite_is_plain(m->g, &m->g->nodes[i]) &&
		    m->g->values[m->g->nodes[i].in[0]].origin == RG_CONST_NONE) {
			rc = take_transpose(t, i, err);
			continue;
		}
		if (!m->live[i])
			continue;
		rc = go_through(t, i, err);
		for (int k = 0; k < m->g->nodes[i].n_in && rc == 0; k++)
			rc = settle(t, m->g->nodes[i].in[k], err);
	}
	return rc < 0 ? rc : 0;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	struct mover t = { .m = &m };
	int rc = rg_match_begin(&m, g, rg_pass_transpose_merge.name, log, err);

	if (!rc) {
		t.held = rg_calloc((size_t)m.n_values + 1, sizeof(*t.held));
		rc = t.held ? move_all(&t, err) : rg_error_nomem(err, (size_t)m.n_values * sizeof(*t.held));
	}
	rg_free(t.held);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_transpose_merge = {
	.name = "transpose-merge",
	.what = "transposes that meet behind what does not mind them",
	.level = 1,
	.run = run,
};
