/*
 * What stands between DequantizeLinear and QuantizeLinear and is no product:
 *
 *	nothing, both with the same scale: the bytes themselves
 *	elementwise operators of one tensor and of numbers: LookUp, whose table their references make; one
 *	behind another is one
 *	Add, Mul of two tensors: QLinearAdd, QLinearMul
 *	Concat: Concat of bytes where all have the same scale, else QLinearConcat
 *	GlobalAveragePool, AveragePool: QLinearGlobalAveragePool, QLinearAveragePool
 *
 * A LookUp gives what the operators do, byte by byte; the others sum in another order, so
 * they may round to the next byte.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/quantised.h"
#include "graph/contrib.h"
#include "graph/own.h"
#include "kernels/kernel.h"

enum { BYTES = 256, MOST_DEEP = 12, MOST_PARTS = 32, MOST_IN = 3 };

static const struct rg_node *node_at(const struct rg_match *m, int node)
{
	return &m->g->nodes[node];
}

static const struct rg_value *value_at(const struct rg_match *m, int value)
{
	return &m->g->values[value];
}

/* ---- tables ---- */

/* The search for operators of one tensor of bytes, from its result back. */
struct search {
	struct rg_quantised x;
	bool found; /* x is known */
	int n_nodes, node[MOST_DEEP];
};

static bool visit(struct search *s, int node)
{
	for (int i = 0; i < s->n_nodes; i++)
		if (s->node[i] == node)
			return true;
	if (s->n_nodes == MOST_DEEP)
		return false;
	s->node[s->n_nodes++] = node;
	return true;
}

static bool is_number(const struct rg_match *m, int value)
{
	float f;

	return rg_match_number(m->g, value, &f);
}

/* Every operator on the way maps one element of x to one, in float32. */
static bool explore(const struct rg_match *m, int value, int deep, struct search *s)
{
	const struct rg_value *v = value_at(m, value);
	struct rg_quantised x;
	const struct rg_node *n;

	if (deep == 0 || v->dtype != RG_F32 || !v->shaped || v->dynamic)
		return false;
	if (rg_quantised_from(m, value, &x) && v->origin == RG_CONST_NONE) {
		if (x.n != 1 || (s->found && (s->x.value != x.value || !rg_quantised_same(&s->x, &x))))
			return false;
		s->x = x;
		s->found = true;
		return true;
	}
	if (v->origin != RG_CONST_NONE || v->producer < 0 || !rg_match_open(m, v->producer))
		return false;
	n = node_at(m, v->producer);
	if (n->unsupported || n->op->kind != RG_KIND_ELEMENTWISE || n->op->flags & RG_OP_IMPURE ||
	    n->n_out != 1 || n->n_in > MOST_IN || n->n_captured || !visit(s, v->producer))
		return false;
	for (int k = 0; k < n->n_in; k++)
		if (n->in[k] >= 0 && !is_number(m, n->in[k]) && !explore(m, n->in[k], deep - 1, s))
			return false;
	return true;
}

/* What becomes of the 256 bytes on the way to `value`: by the references, as folding does it. */
static int evaluate(const struct rg_match *m, int value, const struct search *s, float out[BYTES],
		    struct rg_error *err)
{
	float room[MOST_IN][BYTES];
	const struct rg_value *v = value_at(m, value);
	struct rg_shape all = {.rank = 1, .dim = {BYTES}};
	struct rg_tensor in[MOST_IN] = {0}, y = {RG_F32, all, out};
	struct rg_call c = {.in = in, .out = &y};
	const struct rg_kernel *k;
	struct rg_quantised x;

	if (rg_quantised_from(m, value, &x)) {
		for (int i = 0; i < BYTES; i++)
			out[i] = rg_quantised_float(&x, x.type == RG_I8 ? (int8_t)(uint8_t)i : i);
		return 0;
	}
	c.node = node_at(m, v->producer);
	for (int i = 0; i < c.node->n_in; i++) {
		const struct rg_value *from = c.node->in[i] >= 0 ? value_at(m, c.node->in[i]) : NULL;

		if (!from)
			continue;
		in[i] = (struct rg_tensor){RG_F32, all, room[i]};
		if (is_number(m, c.node->in[i])) {
			in[i].shape.rank = 0;
			in[i].data = (void *)from->data;
		} else {
			int rc = evaluate(m, c.node->in[i], s, room[i], err);

			if (rc)
				return rc;
		}
	}
	k = rg_kernel_find(c.node->domain, c.node->op_type, "ref");
	if (!k || k->scratch_bytes || k->prepared_bytes || (k->supports && !k->supports(&c)))
		return -ENOTSUP;
	return k->run(&c, &rg_par_serial, err);
}

static int rewrite_table(struct rg_match *m, const struct rg_quantised *y, const struct search *s,
			 struct rg_error *err)
{
	struct rg_shape shape = {.rank = 1, .dim = {BYTES}};
	const char *name = node_at(m, y->node)->name;
	int in[2] = {s->x.value, -1}, rc;
	float made[BYTES];
	uint8_t *table;

	rc = evaluate(m, node_at(m, y->node)->in[0], s, made, err);
	if (rc == -ENOTSUP && !err->code)
		return rg_match_note(m, y->node, s->x.node, RG_DECLINE_KERNEL, err);
	table = rc ? NULL : rg_alloc_aligned(64, BYTES);
	if (!table)
		return rc ? rc : rg_error_nomem(err, BYTES);
	for (int i = 0; i < BYTES; i++)
		table[i] = (uint8_t)rg_quantised_byte(y, made[i]);
	in[1] = rg_rewrite_const(m->g, name, ":table", y->type, &shape, table, err);
	if (in[1] < 0)
		return in[1];
	rc = rg_graph_add_node(m->g, RG_OWN_DOMAIN, "LookUp", name, 2, in, 1, &y->value, 0, NULL, err);
	if (rc < 0)
		return rc;
	m->gone[y->node] = 1;
	m->n_rewrites++;
	rc = rg_match_note(m, y->node, s->x.node, RG_DECLINE_NONE, err);
	for (int i = 0; i < s->n_nodes && !rc; i++)
		if (!rg_match_inside(m, node_at(m, s->node[i])->out[0])) /* else it stays, for others */
			rc = rg_match_note(m, s->node[i], s->x.node, RG_DECLINE_NONE, err);
	return rc;
}

/* Bytes of the same meaning need no pair; others are looked up. 1: there is no such thing here. */
static int try_table(struct rg_match *m, const struct rg_quantised *y, struct rg_error *err)
{
	int from = node_at(m, y->node)->in[0];
	struct search s = {.found = false};

	if (!explore(m, from, MOST_DEEP, &s) || !s.found ||
	    !rg_shape_equal(&value_at(m, s.x.value)->shape, &value_at(m, y->value)->shape))
		return 1;
	if (s.n_nodes == 0 && rg_quantised_same(&s.x, y)) {
		enum rg_decline why = rg_rewrite_may_skip(m, y->node, s.x.value);

		return why ? rg_match_note(m, y->node, s.x.node, why, err)
			   : rg_rewrite_skip(m, y->node, s.x.value, err);
	}
	return rewrite_table(m, y, &s, err);
}

static const uint8_t *table_of(const struct rg_match *m, int at)
{
	const struct rg_value *t;

	if (!rg_match_is_of(m, at, RG_OWN_DOMAIN, "LookUp"))
		return NULL;
	t = value_at(m, node_at(m, at)->in[1]);
	return t->origin != RG_CONST_NONE && t->origin != RG_CONST_BOUND ? t->data : NULL;
}

/* A table of a table. */
static int try_merge(struct rg_match *m, int at, struct rg_error *err)
{
	const struct rg_node *n = node_at(m, at);
	const uint8_t *second = table_of(m, at), *first;
	int before = second ? value_at(m, n->in[0])->producer : -1, in[2], rc;
	struct rg_shape shape = {.rank = 1, .dim = {BYTES}};
	enum rg_decline why;
	uint8_t *table;

	first = before >= 0 ? table_of(m, before) : NULL;
	if (!first)
		return 0;
	why = rg_match_inside(m, n->in[0]);
	if (why)
		return rg_match_note(m, at, before, why, err);
	table = rg_alloc_aligned(64, BYTES);
	if (!table)
		return rg_error_nomem(err, BYTES);
	for (int i = 0; i < BYTES; i++)
		table[i] = second[first[i]];
	in[0] = node_at(m, before)->in[0];
	in[1] = rg_rewrite_const(m->g, node_at(m, before)->name, ":table", value_at(m, n->out[0])->dtype,
				 &shape, table, err);
	if (in[1] < 0)
		return in[1];
	rc = rg_graph_add_node(m->g, RG_OWN_DOMAIN, "LookUp", node_at(m, before)->name, 2, in, 1,
			       (int[]){node_at(m, at)->out[0]}, 0, NULL, err);
	if (rc < 0)
		return rc;
	m->gone[before] = m->gone[at] = 1;
	m->n_rewrites++;
	return rg_match_note(m, at, before, RG_DECLINE_NONE, err);
}

/* ---- operators of several tensors, and pools ---- */

struct part {
	int n;
	struct rg_quantised x[MOST_PARTS];
};

static enum rg_decline read_parts(const struct rg_match *m, const struct rg_node *n,
				  const struct rg_quantised *y, struct part *p, bool *any)
{
	enum rg_decline why = RG_DECLINE_NONE;

	*any = false;
	p->n = n->n_in;
	if (n->n_in > MOST_PARTS)
		return RG_DECLINE_ATTRIBUTE;
	for (int k = 0; k < n->n_in; k++) {
		bool found = n->in[k] >= 0 && rg_quantised_from(m, n->in[k], &p->x[k]);

		*any = *any || (found && m->live[p->x[k].node]);
		if (!why && !found)
			why = RG_DECLINE_TYPE;
		else if (!why && (p->x[k].type != y->type))
			why = RG_DECLINE_TYPE;
		else if (!why && p->x[k].n != 1)
			why = RG_DECLINE_ATTRIBUTE;
	}
	return why;
}

/* Tensor, scale, zero point, from in[at] on. */
static int put(struct rg_match *m, const struct rg_quantised *q, int *in, struct rg_error *err)
{
	int zero = rg_quantised_zero(m, q, err);

	in[0] = q->value;
	in[1] = q->scale;
	in[2] = zero;
	return zero < 0 ? zero : 0;
}

static int note_parts(struct rg_match *m, const struct part *p, int at, const struct rg_quantised *y,
		      int clip, struct rg_error *err)
{
	int rc = 0;

	for (int k = 0; k < p->n && !rc; k++)
		if (m->live[p->x[k].node])
			rc = rg_match_note(m, p->x[k].node, at, RG_DECLINE_NONE, err);
	if (!rc && clip >= 0) {
		m->gone[clip] = 1;
		rc = rg_match_note(m, clip, at, RG_DECLINE_NONE, err);
	}
	m->gone[y->node] = 1;
	m->gone[at] = 1;
	m->n_rewrites++;
	return rc ? rc : rg_match_note(m, y->node, at, RG_DECLINE_NONE, err);
}

static int copy_attrs(const struct rg_node *n, const char *but, struct rg_attr *attrs, int most)
{
	int k = 0;

	for (int i = 0; i < n->n_attrs; i++) {
		if (but && strcmp(n->attrs[i].name, but) == 0)
			continue;
		if (k == most)
			return -1;
		attrs[k++] = n->attrs[i];
	}
	return k;
}

/* A Concat of bytes, or one that brings all to the result's scale. */
static int make_concat(struct rg_match *m, const struct rg_node *n, const struct part *p,
		       const struct rg_quantised *y, struct rg_error *err)
{
	int in[2 + 3 * MOST_PARTS], rc;
	bool same = true;

	for (int k = 0; k < p->n; k++)
		same = same && rg_quantised_same(&p->x[k], y);
	if (same) {
		for (int k = 0; k < p->n; k++)
			in[k] = p->x[k].value;
		rc = rg_graph_add_node(m->g, "", "Concat", n->name, p->n, in, 1, &y->value, n->n_attrs,
				       n->attrs, err);
		if (rc >= 0)
			m->g->nodes[rc].opset = n->opset;
		return rc;
	}
	in[0] = y->scale;
	in[1] = rg_quantised_zero(m, y, err);
	for (int k = 0; k < p->n && !err->code; k++)
		put(m, &p->x[k], in + 2 + 3 * k, err);
	if (err->code || rg_rewrite_import_contrib(m->g, err))
		return err->code;
	return rg_graph_add_node(m->g, RG_CONTRIB_DOMAIN, "QLinearConcat", n->name, 2 + 3 * p->n, in, 1,
				 &y->value, n->n_attrs, n->attrs, err);
}

/* Operands one after the other, then what the result is. */
static int make_contrib(struct rg_match *m, const char *op_type, const struct rg_node *n,
			const struct part *p, const struct rg_quantised *y, struct rg_error *err)
{
	struct rg_attr attrs[16];
	int in[8], n_attrs = copy_attrs(n, NULL, attrs, 16), k = 0;

	for (; k < p->n && !err->code; k++)
		put(m, &p->x[k], in + 3 * k, err);
	in[3 * k] = y->scale;
	in[3 * k + 1] = rg_quantised_zero(m, y, err);
	if (err->code || rg_rewrite_import_contrib(m->g, err))
		return err->code;
	return rg_graph_add_node(m->g, RG_CONTRIB_DOMAIN, op_type, n->name, 3 * k + 2, in, 1, &y->value,
				 n_attrs, attrs, err);
}

static const struct {
	const char *op_type, *becomes;
	bool arithmetic; /* Relu and Clip behind it may end where the bytes do */
} known[] = {
    {"Add", "QLinearAdd", true},
    {"Mul", "QLinearMul", true},
    {"Concat", "QLinearConcat", false},
    {"GlobalAveragePool", "QLinearGlobalAveragePool", false},
    {"AveragePool", "QLinearAveragePool", false},
};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

static int find_known(const struct rg_match *m, int value)
{
	int at = value_at(m, value)->producer;

	for (int k = 0; k < N_KNOWN; k++)
		if (rg_match_is(m, at, known[k].op_type) && node_at(m, at)->n_out == 1)
			return k;
	return -1;
}

/* The node that makes `value` bounds what it reads no more than the bytes of y do: the value before it. */
static int behind_clip(const struct rg_match *m, int value, const struct rg_quantised *y, int *clip)
{
	int at = value_at(m, value)->producer;
	int32_t least = rg_quantised_least(y->type);
	float low = 0, high = INFINITY;

	*clip = -1;
	if (!rg_match_is(m, at, "Relu") &&
	    !(rg_match_is(m, at, "Clip") && rg_match_clip(m->g, node_at(m, at), &low, &high)))
		return value;
	if (rg_match_inside(m, node_at(m, at)->in[0]) || rg_quantised_byte(y, low) != least ||
	    rg_quantised_byte(y, high) != least + 255)
		return value;
	*clip = at;
	return node_at(m, at)->in[0];
}

/* A pool that the operator of bytes knows: with ceil_mode it counts otherwise. Others than pools are. */
static bool is_pool(const struct rg_node *n)
{
	const int64_t *d;
	int n_dilations = rg_node_ints(n, "dilations", &d);

	if (rg_node_int(n, "ceil_mode", 0) != 0)
		return false;
	for (int i = 0; i < n_dilations; i++)
		if (d[i] != 1)
			return false;
	return true;
}

static int try_known(struct rg_match *m, const struct rg_quantised *y, struct rg_error *err)
{
	int value = node_at(m, y->node)->in[0], clip, before = behind_clip(m, value, y, &clip), k, at, rc;
	enum rg_decline why;
	struct part p;
	struct rg_node n;
	bool any;

	k = find_known(m, before);
	if (k < 0 || (clip >= 0 && !known[k].arithmetic))
		return 0;
	at = value_at(m, before)->producer;
	n = *node_at(m, at); /* its array moves as nodes are added */
	why = read_parts(m, &n, y, &p, &any);
	if (!any)
		return 0;
	if (!why)
		why = rg_match_inside(m, value);
	if (!why && !is_pool(&n))
		why = RG_DECLINE_ATTRIBUTE;
	if (!why && strcmp(n.op_type, "AveragePool") == 0 && value_at(m, before)->shape.rank > 4)
		why = RG_DECLINE_KERNEL;
	if (why)
		return rg_match_note(m, y->node, at, why, err);
	rc = strcmp(n.op_type, "Concat") == 0 ? make_concat(m, &n, &p, y, err)
					      : make_contrib(m, known[k].becomes, &n, &p, y, err);
	return rc < 0 ? rc : note_parts(m, &p, at, y, clip, err);
}

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	struct rg_quantised y;
	int rc;

	if (!rg_quantised_by(m, at, &y))
		return try_merge(m, at, err);
	rc = try_table(m, &y, err);
	return rc > 0 ? try_known(m, &y, err) : rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_qdq_ewise.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_qdq_ewise = {
    .name = "qdq-ewise",
    .what = "elementwise operators, Concat and means between DequantizeLinear and QuantizeLinear to "
	    "operators on bytes",
    .level = 3,
    .own_only = "ONNX Runtime makes integer operators of the pairs itself",
    .run = run,
};
