/* See rewrite.h. */
#include "compile/rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/contrib.h"

/* ---- values in place of others ---- */

int rg_rewrite_now(const struct rg_match *m, int value)
{
	while (value >= 0 && value < m->n_values && m->instead[value] != value)
		value = m->instead[value];
	return value;
}

/* A node of this round whose output may be given another name; -1 none. */
static int renamed_producer(const struct rg_match *m, int by)
{
	const struct rg_value *v = &m->g->values[by];
	int at = v->producer;

	if (by >= m->n_values || v->origin != RG_CONST_NONE || v->is_input || v->is_output ||
	    m->captured[by] || at < 0 || at >= m->n_nodes || m->gone[at] || !m->live[at])
		return -1;
	return at;
}

enum rg_decline rg_rewrite_may_skip(const struct rg_match *m, int node, int by)
{
	int out = m->g->nodes[node].out[0];

	by = rg_rewrite_now(m, by);
	if (m->captured[out])
		return RG_DECLINE_SECOND_CONSUMER;
	if (m->g->values[out].is_output && renamed_producer(m, by) < 0)
		return RG_DECLINE_GRAPH_OUTPUT;
	return RG_DECLINE_NONE;
}

int rg_rewrite_skip(struct rg_match *m, int node, int by, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct rg_node *n = &g->nodes[node];
	int out = n->out[0], at;
	struct rg_pass_note note = { .pass = m->pass, .node = n->name, .op_type = n->op_type };

	by = rg_rewrite_now(m, by);
	at = g->values[by].producer;
	note.into = at >= 0 ? g->nodes[at].name : g->values[by].name;
	if (g->values[out].is_output) {
		at = renamed_producer(m, by);
		for (int k = 0; k < g->nodes[at].n_out; k++)
			if (g->nodes[at].out[k] == by)
				g->nodes[at].out[k] = out;
		g->values[out].producer = at;
		m->instead[by] = out;
	} else {
		m->instead[out] = by;
	}
	m->gone[node] = 1;
	m->n_rewrites++;
	return rg_pass_note(m->log, &note, err);
}

/* ---- new constants and values ---- */

static int new_value(struct rg_graph *g, const char *base, const char *what, struct rg_error *err)
{
	size_t size = strlen(base) + strlen(what) + 12;
	char *name = rg_alloc(size);
	int value;

	if (!name)
		return rg_error_nomem(err, size);
	snprintf(name, size, "%s%s", base, what);
	for (int i = 2; rg_graph_find_value(g, name) >= 0; i++)
		snprintf(name, size, "%s%s%d", base, what, i);
	value = rg_graph_value(g, name, err);
	rg_free(name);
	return value;
}

int rg_rewrite_const(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype,
		     const struct rg_shape *shape, void *data, struct rg_error *err)
{
	int value = new_value(g, base, what, err), rc;

	if (value < 0) {
		rg_free(data);
		return value;
	}
	rc = rg_graph_add_const(g, value, RG_CONST_FOLDED, dtype, shape, data, err);
	return rc ? rc : value;
}

int rg_rewrite_value(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype,
		     const struct rg_shape *shape, struct rg_error *err)
{
	int value = new_value(g, base, what, err);

	if (value >= 0) {
		g->values[value].dtype = dtype;
		g->values[value].shape = *shape;
		g->values[value].shaped = true;
	}
	return value;
}

int rg_rewrite_ints(struct rg_graph *g, const char *base, const char *what, const int64_t *v, int n,
		    struct rg_error *err)
{
	struct rg_shape shape = { .rank = 1, .dim = { n } };
	int64_t *data = n ? rg_alloc_aligned(64, (size_t)n * sizeof(*data)) : NULL;

	if (n && !data)
		return rg_error_nomem(err, (size_t)n * sizeof(*data));
	if (n)
		memcpy(data, v, (size_t)n * sizeof(*data));
	return rg_rewrite_const(g, base, what, RG_I64, &shape, data, err);
}

int rg_rewrite_shape(struct rg_graph *g, const char *name, const struct rg_shape *from,
		     const struct rg_shape *to, struct rg_error *err)
{
	int64_t v[RG_MAX_RANK];
	int same = 0;

	while (same < to->rank && same < from->rank && to->dim[same] == from->dim[same])
		same++;
	for (int i = 0; i < to->rank; i++)
		v[i] = i < same ? 0 : to->dim[i];
	if (same == to->rank - 1)
		v[same] = -1;
	return rg_rewrite_ints(g, name, ":shape", v, to->rank, err);
}

int rg_rewrite_import_contrib(struct rg_graph *g, struct rg_error *err)
{
	int rc = 0;

	if (rg_graph_opset(g, RG_CONTRIB_DOMAIN))
		return 0;
	if (g->n_opsets == 0) /* a file older than IR 3 means the first; with another domain it would mean none */
		rc = rg_graph_set_opset(g, "", 1, err);
	return rc ? rc : rg_graph_set_opset(g, RG_CONTRIB_DOMAIN, 1, err);
}

int64_t rg_rewrite_opset(const struct rg_graph *g, const struct rg_node *n, int64_t least)
{
	int64_t own = n->domain[0] ? 0 : n->opset;

	return (own ? own : rg_graph_opset(g, "")) < least ? least : own;
}

int rg_rewrite_node(struct rg_match *m, int node, const char *op_type, int64_t least, int n_in, const int *in,
		    int n_attrs, const struct rg_attr *attrs, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct rg_node n = g->nodes[node]; /* its array moves as nodes are added */
	int at = rg_graph_add_node(g, "", op_type, n.name, n_in, in, n.n_out, n.out, n_attrs, attrs, err);

	if (at < 0)
		return at;
	g->nodes[at].opset = rg_rewrite_opset(g, &n, least);
	m->gone[node] = 1;
	m->n_rewrites++;
	return at;
}

/* ---- what a node says ---- */

bool rg_rewrite_args(const struct rg_graph *g, const struct rg_node *n,
		     struct rg_tensor in[RG_REWRITE_INPUTS])
{
	if (n->n_in > RG_REWRITE_INPUTS)
		return false;
	for (int k = 0; k < n->n_in; k++) {
		const struct rg_value *v = n->in[k] >= 0 ? &g->values[n->in[k]] : NULL;

		in[k] = (struct rg_tensor){ 0 };
		if (!v)
			continue;
		if (!v->shaped || v->dynamic)
			return false;
		in[k] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	}
	return true;
}

bool rg_rewrite_is_plain(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *from, *to;

	if (n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0 || n->dynamic)
		return false;
	for (int k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return false;
	from = &g->values[n->in[0]];
	to = &g->values[n->out[0]];
	return from->shaped && !from->dynamic && to->shaped && !to->dynamic &&
	       from->kind == RG_VALUE_TENSOR && to->kind == RG_VALUE_TENSOR;
}

void rg_rewrite_perm(const struct rg_graph *g, const struct rg_node *n, int64_t perm[RG_MAX_RANK])
{
	int rank = g->values[n->in[0]].shape.rank;
	const int64_t *given;
	bool any = rg_node_ints(n, "perm", &given) == rank;

	for (int i = 0; i < rank; i++)
		perm[i] = any ? given[i] : rank - 1 - i;
}

bool rg_rewrite_keeps_order(const struct rg_shape *s, const int64_t perm[RG_MAX_RANK])
{
	int64_t before = -1;

	for (int i = 0; i < s->rank; i++) {
		if (s->dim[perm[i]] == 1)
			continue;
		if (perm[i] < before)
			return false;
		before = perm[i];
	}
	return true;
}

bool rg_rewrite_all(const struct rg_graph *g, int value, double x)
{
	const struct rg_value *v = value >= 0 ? &g->values[value] : NULL;
	union { float f32; double f64; int32_t i32; int64_t i64; } want;
	size_t size;

	if (!v || v->origin == RG_CONST_NONE || v->origin == RG_CONST_BOUND || !v->data)
		return false;
	switch (v->dtype) {
	case RG_F32: want.f32 = (float)x; size = sizeof(want.f32); break;
	case RG_F64: want.f64 = x; size = sizeof(want.f64); break;
	case RG_I32: want.i32 = (int32_t)x; size = sizeof(want.i32); break;
	case RG_I64: want.i64 = (int64_t)x; size = sizeof(want.i64); break;
	default: return false;
	}
	for (int64_t i = 0; i < rg_shape_count(&v->shape); i++)
		if (memcmp((const char *)v->data + i * (int64_t)size, &want, size))
			return false;
	return rg_shape_count(&v->shape) > 0;
}
