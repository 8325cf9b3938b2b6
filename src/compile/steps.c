/*
 * From nodes to steps. Dead nodes and folded ones go; views become aliases of
 * the memory that they look at; the rest runs, in the graph's order.
 */
#include "compile/internal.h"

#include <string.h>

#include "base/alloc.h"
#include "compile/needed.h"
#include "graph/op-random.h"

static bool is_const(const struct rg_graph *g, int value)
{
	return g->values[value].origin != RG_CONST_NONE;
}

static bool all_outputs_const(const struct rg_graph *g, const struct rg_node *n)
{
	int k;

	for (k = 0; k < n->n_out; k++)
		if (n->out[k] >= 0 && !is_const(g, n->out[k]))
			return false;
	return true;
}

/* Could output 0 be the memory of input 0? It is, but for an output of the graph outside of the arena: that must
 * neither change with the next input nor be a writable constant. */
static bool is_view(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *from, *to;
	int k;

	if (n->dynamic || !rg_node_is_view(g, n) || n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 ||
	    n->out[0] < 0)
		return false;
	for (k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return false;
	from = &g->values[n->in[0]];
	to = &g->values[n->out[0]];
	return from->dtype == to->dtype &&
	       rg_tensor_bytes(from->dtype, &from->shape) == rg_tensor_bytes(to->dtype, &to->shape);
}

static int describe_values(struct builder *b, struct rg_error *err)
{
	const struct rg_graph *g = b->g;
	int i;

	b->plan->n_tensors = g->n_values;
	b->plan->tensors = rg_arena_alloc(b->arena, (size_t)g->n_values, sizeof(b->plan->tensors[0]));
	if (!b->plan->tensors)
		return rg_error_nomem(err, (size_t)g->n_values * sizeof(b->plan->tensors[0]));
	for (i = 0; i < g->n_values; i++) {
		struct rg_plan_tensor *t = &b->plan->tensors[i];
		const struct rg_value *v = &g->values[i];

		t->alias_of = t->over = t->handed_to = t->first_step = t->last_step = -1;
		t->place = v->dynamic ? RG_PLACE_DYNAMIC : RG_PLACE_UNUSED;
		if (!v->shaped)
			continue;
		t->dtype = v->dtype;
		t->shape = v->shape;
		t->size_bytes = rg_tensor_bytes(v->dtype, &v->shape);
		if (v->origin != RG_CONST_NONE) {
			t->place = RG_PLACE_CONST;
			t->data = v->data;
		} else if (v->is_input) {
			t->place = RG_PLACE_INPUT;
			if (t->size_bytes < 0)
				return rg_error_set(err, RG_ENOTSUP_MODEL, "input '%s' has element type %s",
						    v->name,
						    rg_dtype_name(v->dtype));
		}
	}
	return 0;
}

static void make_alias(struct rg_plan *p, const struct rg_node *n)
{
	struct rg_plan_tensor *to = &p->tensors[n->out[0]];
	int root = rg_plan_root(p, n->in[0]);

	to->alias_of = root;
	to->place = p->tensors[root].place;
	to->data = p->tensors[root].data;
}

/* Its own inputs, then what its subgraphs read of this graph. */
static int take_inputs(struct builder *b, struct rg_step *s, const struct rg_node *n, struct rg_error *err)
{
	s->n_in = n->n_in;
	s->in = n->in;
	if (n->n_captured == 0)
		return 0;
	s->in = rg_arena_alloc(b->arena, (size_t)n->n_in + (size_t)n->n_captured, sizeof(*s->in));
	if (!s->in)
		return rg_error_nomem(err, ((size_t)n->n_in + (size_t)n->n_captured) * sizeof(*s->in));
	memcpy(s->in, n->in, (size_t)n->n_in * sizeof(*s->in));
	memcpy(s->in + n->n_in, n->captured, (size_t)n->n_captured * sizeof(*s->in));
	s->n_in += n->n_captured;
	return 0;
}

static int make_step(struct builder *b, int node, struct rg_error *err)
{
	struct rg_step *s = &b->plan->steps[b->plan->n_steps++];
	const struct rg_node *n = &b->g->nodes[node];
	int k;

	s->node = node;
	s->n_out = n->n_out;
	s->out = n->out;
	if (take_inputs(b, s, n, err))
		return err->code;
	s->dynamic = n->dynamic != NULL;
	if (s->dynamic) {
		b->plan->n_dynamic++;
		return 0;
	}
	for (k = 0; k < n->n_out; k++) {
		struct rg_plan_tensor *t;

		if (n->out[k] < 0)
			continue;
		t = &b->plan->tensors[n->out[k]];
		/* A sibling that was folded is computed again: into memory of its own. */
		t->place = RG_PLACE_ARENA;
		t->data = NULL;
		if (t->size_bytes >= 0)
			continue;
		rg_error_set(err, RG_ENOTSUP_MODEL, "output %d ('%s') has element type %s", k,
			     b->g->values[n->out[k]].name, rg_dtype_name(t->dtype));
		return rg_error_at(err, "node '%s' (%s)", n->name, n->op_type);
	}
	return 0;
}

/* Before there is a plan: only steps have memory of their own in the arena. */
int rg_plan_count_steps(const struct rg_graph *g)
{
	unsigned char *needed = rg_calloc((size_t)g->n_values + 1, 1),
		      *live = rg_calloc((size_t)g->n_nodes + 1, 1);
	unsigned char *in_arena = rg_calloc((size_t)g->n_values + 1, 1);
	int n_steps = needed && live && in_arena ? 0 : -1;

	if (n_steps == 0)
		rg_mark_needed(g, false, needed, live);
	for (int i = 0; i < g->n_nodes && n_steps >= 0; i++) {
		const struct rg_node *n = &g->nodes[i];
		bool view = live[i] && is_view(g, n) && (!g->values[n->out[0]].is_output || in_arena[n->in[0]]);

		if (view)
			in_arena[n->out[0]] = in_arena[n->in[0]];
		else
			for (int k = 0; k < n->n_out; k++)
				if (n->out[k] >= 0)
					in_arena[n->out[k]] = !n->dynamic;
		n_steps += live[i] && !view;
	}
	rg_free(needed);
	rg_free(live);
	rg_free(in_arena);
	return n_steps;
}

int rg_plan_lower(struct builder *b, struct rg_error *err)
{
	struct rg_graph *g = b->g;
	struct rg_plan *p = b->plan;
	unsigned char *value_needed = rg_calloc((size_t)g->n_values, 1);
	unsigned char *reached = rg_calloc((size_t)g->n_nodes, 1), *live = rg_calloc((size_t)g->n_nodes, 1);
	int i, rc = describe_values(b, err);

	p->steps = rg_arena_alloc(b->arena, (size_t)g->n_nodes, sizeof(p->steps[0]));
	p->views = rg_arena_alloc(b->arena, (size_t)g->n_nodes, sizeof(p->views[0]));
	if (!rc && (!value_needed || !reached || !live || !p->steps || !p->views))
		rc = rg_error_nomem(err, (size_t)g->n_nodes * sizeof(p->steps[0]));
	if (rc)
		goto out;
	rg_mark_needed(g, true, value_needed, reached);
	rg_mark_needed(g, false, value_needed, live);
	for (i = 0; i < g->n_nodes && !rc; i++) {
		const struct rg_node *n = &g->nodes[i];

		if (!live[i]) {
			if (reached[i] && all_outputs_const(g, n))
				p->n_folded++;
			else
				p->n_dead++;
		} else if (is_view(g, n) &&
			   (!g->values[n->out[0]].is_output || p->tensors[n->in[0]].place == RG_PLACE_ARENA)) {
			make_alias(p, n);
			p->views[p->n_views++] = i;
		} else {
			rc = make_step(b, i, err);
		}
	}
out:
	rg_free(value_needed);
	rg_free(reached);
	rg_free(live);
	return rc;
}
