/*
 * What is there twice goes once: constants of the same type, shape and bytes, and nodes of the same
 * operator and attributes that read the same values. Not what is random, what has subgraphs, what is known
 * only while it runs. In one walk: a node whose inputs have just been found to be the same is the same, too.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"
#include "compile/rewrite.h"
#include "graph/op.h"

enum { SAMPLE_BYTES = 4096 };

struct table {
	int *first;                 /* by hash: index, -1 none; a power of two */
	int *next;                  /* by index: of the same hash */
	unsigned mask;
};

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 1099511628211u; /* FNV-1a */
	return h;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	return mix(h, s, strlen(s) + 1);
}

static int table_new(struct table *t, int n, struct rg_error *err)
{
	unsigned width = 64;

	while (width < (unsigned)n && width < 1u << 30)
		width *= 2;
	t->mask = width - 1;
	t->first = rg_calloc(width, sizeof(*t->first));
	t->next = rg_calloc((size_t)n + 1, sizeof(*t->next));
	if (!t->first || !t->next)
		return rg_error_nomem(err, width * sizeof(*t->first));
	memset(t->first, -1, width * sizeof(*t->first));
	return 0;
}

static void table_free(struct table *t)
{
	rg_free(t->first);
	rg_free(t->next);
}

static void table_add(struct table *t, uint64_t hash, int index)
{
	int *first = &t->first[(unsigned)(hash ^ hash >> 32) & t->mask];

	t->next[index] = *first;
	*first = index;
}

static int table_first(const struct table *t, uint64_t hash)
{
	return t->first[(unsigned)(hash ^ hash >> 32) & t->mask];
}

/* ---- constants ---- */

static bool is_candidate(const struct rg_match *m, int value)
{
	const struct rg_value *v = &m->g->values[value];

	return v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->data &&
	       v->dtype != RG_STRING && !v->is_output && !v->from_outer && !m->captured[value] &&
	       m->first_use[value] >= 0;
}

/* Of large ones only the beginning: equal hashes are compared byte by byte anyway. */
static uint64_t hash_constant(const struct rg_value *v)
{
	int64_t bytes = rg_tensor_bytes(v->dtype, &v->shape);
	uint64_t h = mix(14695981039346656037u, &v->dtype, sizeof(v->dtype));

	h = mix(h, v->shape.dim, (size_t)v->shape.rank * sizeof(v->shape.dim[0]));
	return mix(h, v->data, bytes < SAMPLE_BYTES ? (size_t)bytes : SAMPLE_BYTES);
}

static bool same_constant(const struct rg_value *a, const struct rg_value *b)
{
	return a->dtype == b->dtype && rg_shape_equal(&a->shape, &b->shape) &&
	       !memcmp(a->data, b->data, (size_t)rg_tensor_bytes(a->dtype, &a->shape));
}

static int merge_constants(struct rg_match *m, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct table t = { 0 };
	int rc = table_new(&t, m->n_values, err);

	for (int v = 0; v < m->n_values && !rc; v++) {
		struct rg_pass_note note = { .pass = m->pass,
					     .node = g->values[v].name,
					     .op_type = "constant" };
		uint64_t hash;
		int twin;

		if (!is_candidate(m, v))
			continue;
		hash = hash_constant(&g->values[v]);
		for (twin = table_first(&t, hash); twin >= 0; twin = t.next[twin])
			if (same_constant(&g->values[twin], &g->values[v]))
				break;
		if (twin < 0) {
			table_add(&t, hash, v);
			continue;
		}
		m->instead[v] = twin;
		m->n_rewrites++;
		note.into = g->values[twin].name;
		rc = rg_pass_note(m->log, &note, err);
	}
	table_free(&t);
	return rc;
}

/* ---- nodes ---- */

static bool is_repeatable(const struct rg_match *m, int at)
{
	const struct rg_node *n = &m->g->nodes[at];

	if (!rg_match_is_of(m, at, n->domain, n->op_type) || n->dynamic || !n->op ||
	    n->op->flags & (RG_OP_IMPURE | RG_OP_EXEC) || n->n_captured > 0 || n->n_in == 0)
		return false;
	for (int i = 0; i < n->n_attrs; i++)
		if (n->attrs[i].g || n->attrs[i].ref)
			return false;
	return true;
}

static uint64_t hash_node(const struct rg_match *m, const struct rg_node *n)
{
	uint64_t h = mix_text(mix_text(14695981039346656037u, n->op_type), n->domain);

	for (int k = 0; k < n->n_in; k++) {
		int v = rg_rewrite_now(m, n->in[k]);

		h = mix(h, &v, sizeof(v));
	}
	for (int i = 0; i < n->n_attrs; i++)
		h = mix(mix_text(h, n->attrs[i].name), &n->attrs[i].i, sizeof(n->attrs[i].i));
	return h;
}

static bool same_list(const void *a, const void *b, int count, size_t size)
{
	return count == 0 || !memcmp(a, b, (size_t)count * size);
}

static bool same_attr(const struct rg_attr *a, const struct rg_attr *b)
{
	if (strcmp(a->name, b->name) || a->type != b->type || a->count != b->count || a->i != b->i ||
	    a->s_len != b->s_len || memcmp(&a->f, &b->f, sizeof(a->f)))
		return false;
	switch (a->type) {
	case RG_ATTR_STRING: return same_list(a->s, b->s, (int)a->s_len, 1);
	case RG_ATTR_FLOATS: return same_list(a->floats, b->floats, a->count, sizeof(*a->floats));
	case RG_ATTR_INTS: return same_list(a->ints, b->ints, a->count, sizeof(*a->ints));
	case RG_ATTR_STRINGS:
		for (int i = 0; i < a->count; i++)
			if (strcmp(a->strings[i], b->strings[i]))
				return false;
		return true;
	case RG_ATTR_TENSOR:
		return a->t.dtype != RG_STRING && a->t.dtype == b->t.dtype &&
		       rg_shape_equal(&a->t.shape, &b->t.shape) &&
		       (!a->t.data ||
			!memcmp(a->t.data, b->t.data, (size_t)rg_tensor_bytes(a->t.dtype, &a->t.shape)));
	default: return true;
	}
}

/* The same operator on the same values; what `again` makes, `first` makes too. */
static bool same_node(const struct rg_match *m, const struct rg_node *first, const struct rg_node *again)
{
	if (strcmp(first->op_type, again->op_type) || strcmp(first->domain, again->domain) ||
	    first->op != again->op || first->version != again->version || first->n_in != again->n_in ||
	    first->n_attrs != again->n_attrs || again->n_out > first->n_out)
		return false;
	for (int k = 0; k < first->n_in; k++)
		if (rg_rewrite_now(m, first->in[k]) != rg_rewrite_now(m, again->in[k]))
			return false;
	for (int k = 0; k < again->n_out; k++)
		if (again->out[k] >= 0 && first->out[k] < 0)
			return false;
	for (int i = 0; i < first->n_attrs; i++)
		if (!same_attr(&first->attrs[i], &again->attrs[i]))
			return false;
	return true;
}

/* Takes node `again` out, all whose outputs `first` makes too. */
static int drop(struct rg_match *m, int first, int again, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[again], *twin = &g->nodes[first];
	enum rg_decline why = RG_DECLINE_NONE;
	int n_wanted = 0;

	for (int k = 0; k < n->n_out; k++) {
		if (n->out[k] < 0)
			continue;
		n_wanted++;
		if (!why && g->values[n->out[k]].is_output)
			why = RG_DECLINE_GRAPH_OUTPUT;
		if (!why && m->captured[n->out[k]])
			why = RG_DECLINE_SECOND_CONSUMER;
	}
	/* of a single one, the first may take the name */
	if (n->out[0] >= 0 && n_wanted == 1) {
		why = rg_rewrite_may_skip(m, again, twin->out[0]);
		return why ? rg_match_note(m, again, first, why, err) :
			     rg_rewrite_skip(m, again, twin->out[0], err);
	}
	if (!why) {
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0)
				m->instead[n->out[k]] = twin->out[k];
		m->gone[again] = 1;
		m->n_rewrites++;
	}
	return rg_match_note(m, again, first, why, err);
}

static int merge_nodes(struct rg_match *m, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	struct table t = { 0 };
	int rc = table_new(&t, m->n_nodes, err);

	for (int i = 0; i < m->n_nodes && !rc; i++) {
		const struct rg_node *n = &g->nodes[i];
		uint64_t hash;
		int twin;

		if (!is_repeatable(m, i))
			continue;
		hash = hash_node(m, n);
		for (twin = table_first(&t, hash); twin >= 0; twin = t.next[twin])
			if (same_node(m, &g->nodes[twin], n))
				break;
		if (twin < 0) {
			table_add(&t, hash, i);
			continue;
		}
		rc = drop(m, twin, i, err);
	}
	table_free(&t);
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_common.name, log, err);

	if (!rc && !(log->limit && log->n_rewritten >= log->limit))
		rc = merge_constants(&m, err);
	if (!rc)
		rc = merge_nodes(&m, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_common = {
	.name = "common",
	.what = "constants and nodes that are there twice",
	.level = 1,
	.run = run,
};
