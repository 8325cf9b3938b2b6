/*
 * The order of the passes, and the life of a plan. What a plan points to lies
 * in one arena behind it; packed weights are single blocks, since they can be
 * large.
 */
#include "compile/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "compile/fold.h"
#include "compile/internal.h"
#include "compile/select.h"

struct owned_plan {
	struct rg_plan plan;
	struct rg_arena *arena;
};

static struct rg_tensor known(const struct rg_plan *p, int value)
{
	struct rg_tensor t = { 0 };

	if (value >= 0) {
		t.dtype = p->tensors[value].dtype;
		t.shape = p->tensors[value].shape;
		t.data = (void *)p->tensors[value].data; /* NULL unless constant */
	}
	return t;
}

const char *rg_step_kernel_name(const struct rg_step *s)
{
	return s->unsupported ? "none" : s->dynamic ? "dynamic" : s->kernel->name;
}

struct rg_call rg_plan_call(struct builder *b, const struct rg_step *s)
{
	struct rg_call c = { .node = &b->g->nodes[s->node], .in = b->in, .out = b->out };
	int k;

	for (k = 0; k < s->n_in; k++)
		b->in[k] = known(b->plan, s->in[k]);
	for (k = 0; k < s->n_out; k++)
		b->out[k] = known(b->plan, s->out[k]);
	return c;
}

static int make_room(struct builder *b, struct rg_error *err)
{
	int i, max_in = 1, max_out = 1;

	for (i = 0; i < b->g->n_nodes; i++) {
		max_in = b->g->nodes[i].n_in > max_in ? b->g->nodes[i].n_in : max_in;
		max_out = b->g->nodes[i].n_out > max_out ? b->g->nodes[i].n_out : max_out;
	}
	b->in = rg_arena_alloc(b->arena, (size_t)max_in, sizeof(*b->in));
	b->out = rg_arena_alloc(b->arena, (size_t)max_out, sizeof(*b->out));
	return b->in && b->out ? 0 : rg_error_nomem(err, (size_t)(max_in + max_out) * sizeof(*b->in));
}

static int size_to_bytes(size_t size, int64_t *out, struct rg_error *err)
{
	if (size > INT64_MAX)
		return rg_error_set(err, -EOVERFLOW, "a kernel asks for more memory than there can be");
	*out = (int64_t)size;
	return 0;
}

/* Why a node of a lenient graph cannot run, be it for what its subgraphs hold. */
static const char *obstacle(const struct rg_node *n)
{
	const char *why = n->unsupported;

	for (int i = 0; i < n->n_attrs && !why; i++) {
		const struct rg_graph *sub = n->attrs[i].g;

		for (int k = 0; sub && k < sub->n_nodes && !why; k++)
			why = obstacle(&sub->nodes[k]);
	}
	return why;
}

static void leave_open(const struct rg_graph *g, struct rg_step *s)
{
	const char *why = obstacle(&g->nodes[s->node]);

	s->unsupported = why != NULL;
	s->reason = why ? why : g->nodes[s->node].dynamic;
	s->cost = (struct rg_cost){ -1, -1, -1, -1, -1 };
	s->traffic = (struct rg_traffic){ -1, -1, -1 };
}

/* No kernel takes these types: costs come from shapes all the same. */
static int give_up(struct builder *b, struct rg_step *s, struct rg_error *err)
{
	struct rg_call c = rg_plan_call(b, s);
	struct rg_cost_in cost = { .node = c.node, .in = c.in, .out = c.out };

	s->unsupported = true;
	s->kernel = NULL;
	s->scratch_bytes = s->prepared_bytes = 0;
	s->reason = rg_arena_strdup(b->arena, err->message);
	if (!s->reason)
		return rg_error_nomem(err, strlen(err->message));
	rg_error_clear(err);
	rg_op_cost(c.node->op, &cost, &s->cost);
	s->traffic = (struct rg_traffic){ -1, -1, -1 };
	return 0;
}

/* Chooses the kernel of a step and asks it for everything but the packing. */
static int choose(struct builder *b, struct rg_step *s, struct rg_error *err)
{
	struct rg_call c = rg_plan_call(b, s);
	struct rg_cost_in cost = { .node = c.node, .in = c.in, .out = c.out };
	const struct rg_kernel *k;
	int rc = rg_select_kernel(&c, b->opt, b->arena, &s->kernel, &s->reason, err);

	k = s->kernel;
	if (!rc && k->scratch_bytes)
		rc = size_to_bytes(k->scratch_bytes(&c, b->opt->lanes), &s->scratch_bytes, err);
	if (!rc && k->prepared_bytes)
		rc = size_to_bytes(k->prepared_bytes(&c), &s->prepared_bytes, err);
	if (rc)
		return rg_error_at(err, "node '%s' (%s)", c.node->name, c.node->op_type);
	rg_op_cost(c.node->op, &cost, &s->cost);
	s->traffic = (struct rg_traffic){ -1, -1, -1 };
	if (k->traffic)
		k->traffic(&c, &s->traffic);
	return 0;
}

static int pack(struct builder *b, struct rg_step *s, struct rg_error *err)
{
	struct rg_call c;
	int rc = 0;

	if (s->prepared_bytes == 0)
		return 0;
	c = rg_plan_call(b, s);
	s->prepared = rg_alloc_aligned(64, (size_t)s->prepared_bytes);
	if (!s->prepared)
		rc = rg_error_nomem(err, (size_t)s->prepared_bytes);
	else
		rc = s->kernel->prepare(&c, s->prepared, err);
	if (rc)
		return rg_error_at(err, "node '%s' (%s)", c.node->name, c.node->op_type);
	b->plan->prepared_bytes += s->prepared_bytes;
	return 0;
}

static int list_bound_inputs(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	int i;

	p->bound_inputs = rg_arena_alloc(b->arena, (size_t)b->g->n_inputs, sizeof(p->bound_inputs[0]));
	if (!p->bound_inputs)
		return rg_error_nomem(err, (size_t)b->g->n_inputs * sizeof(p->bound_inputs[0]));
	for (i = 0; i < b->g->n_inputs; i++)
		if (b->g->values[b->g->inputs[i]].origin == RG_CONST_BOUND)
			p->bound_inputs[p->n_bound_inputs++] = b->g->values[b->g->inputs[i]].name;
	return 0;
}

static int check_whole(const struct rg_graph *g, struct rg_error *err)
{
	int i;

	for (i = 0; i < g->n_values; i++)
		if (g->values[i].released)
			return rg_error_set(err, -EINVAL, "the graph was planned before and its constants were "
					    "released then: read the model again");
	return 0;
}

/* What a kernel was asked for by name must still be there when kernels are chosen. */
static int rewrite(struct builder *b, struct rg_error *err)
{
	struct rg_pass_options o = b->opt->passes;
	const char **pinned = rg_arena_alloc(b->arena, (size_t)b->opt->n_overrides + 1, sizeof(*pinned));

	if (!pinned)
		return rg_error_nomem(err, ((size_t)b->opt->n_overrides + 1) * sizeof(*pinned));
	for (int i = 0; i < b->opt->n_overrides; i++)
		pinned[i] = b->opt->overrides[i].op;
	o.n_pinned = b->opt->n_overrides;
	o.pinned = pinned;
	return rg_passes_run(b->g, &o, &b->plan->passes, err);
}

static int build(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	uint64_t start = rg_clock_now_ns(), at;
	int i, rc;

	rc = check_whole(b->g, err);
	if (!rc)
		rc = rg_fold_graph(b->g, b->opt, err);
	p->n_steps_before = rc ? 0 : rg_plan_count_steps(b->g);
	if (!rc && p->n_steps_before < 0)
		rc = rg_error_nomem(err, (size_t)b->g->n_values);
	if (!rc && b->opt->passes.level > 0)
		rc = rewrite(b, err);
	if (!rc && p->passes.n_rewritten)
		rc = rg_fold_graph(b->g, b->opt, err); /* new nodes, new constants */
	if (!rc)
		rc = rg_plan_lower(b, err);
	if (!rc && b->opt->passes.level > 0)
		rc = rg_plan_embed(b, err);
	p->n_dead += p->passes.n_dead;
	at = rg_clock_now_ns();
	p->optimise_ns = at - start;
	if (!rc)
		rc = make_room(b, err);
	if (!rc)
		rc = rg_select_check(b->g, b->opt, err);
	for (i = 0; i < p->n_steps && !rc; i++) {
		if (p->steps[i].dynamic || obstacle(&b->g->nodes[p->steps[i].node]))
			leave_open(b->g, &p->steps[i]);
		else
			rc = choose(b, &p->steps[i], err);
		if (rc == RG_ENOTSUP_MODEL && b->g->lenient)
			rc = give_up(b, &p->steps[i], err);
		p->n_unsupported += p->steps[i].unsupported;
	}
	if (!rc && b->opt->order_for_memory)
		rc = rg_plan_order(b, err);
	if (!rc)
		rc = rg_plan_allocate(b, err);
	if (!rc)
		rc = rg_plan_edges(b, err);
	if (!rc && b->opt->passes.level > 0)
		rc = rg_plan_note_unfused(b, err);
	if (!rc)
		rc = list_bound_inputs(b, err);
	start = rg_clock_now_ns();
	p->plan_ns = start - at;
	if (!rc && b->opt->release)
		rc = rg_release_begin(b, err);
	for (i = 0; i < p->n_steps && !rc; i++) {
		rc = pack(b, &p->steps[i], err);
		if (!rc && b->opt->release)
			rg_release_step(b, &p->steps[i]);
	}
	if (!rc && b->opt->release)
		rg_release_end(b);
	p->pack_ns = rg_clock_now_ns() - start;
	return rc;
}

int rg_plan_make(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_plan **out,
		 struct rg_error *err)
{
	struct owned_plan *owned;
	struct builder b = { .g = g, .opt = opt };
	int rc;

	*out = NULL;
	if (opt->lanes < 1)
		return rg_error_set(err, -EINVAL, "a plan for %d threads", opt->lanes);
	owned = rg_calloc(1, sizeof(*owned));
	if (!owned)
		return rg_error_nomem(err, sizeof(*owned));
	owned->arena = rg_arena_new();
	if (!owned->arena) {
		rg_free(owned);
		return rg_error_nomem(err, sizeof(*owned));
	}
	owned->plan.graph = g;
	owned->plan.lanes = opt->lanes;
	owned->plan.isa = opt->isa;
	owned->plan.n_without = opt->n_without;
	owned->plan.without = opt->without;
	b.plan = &owned->plan;
	b.arena = owned->arena;
	rc = build(&b, err);
	if (rc) {
		rg_plan_free(&owned->plan);
		return rc;
	}
	*out = &owned->plan;
	return 0;
}

void rg_plan_free(struct rg_plan *p)
{
	struct owned_plan *owned = (struct owned_plan *)p; /* the plan is its first member */
	int i;

	if (!p)
		return;
	for (i = 0; i < p->n_steps; i++)
		rg_free(p->steps[i].prepared);
	rg_pass_log_free(&p->passes);
	rg_arena_free(owned->arena);
	rg_free(owned);
}
