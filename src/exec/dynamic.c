/* Runs nodes of the dynamic path: see dynamic.h. */
#include "exec/dynamic-internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/select.h"
#include "graph/op.h"
#include "sys/topology.h"

/* The types and shapes that a kernel was chosen for, and what it packed. */
struct choice {
	const struct rg_kernel *kernel;
	void *prepared;
	struct { enum rg_dtype dtype; struct rg_shape shape; } *sig; /* n_in, then n_out */
};

struct node_state {
	rg_exec_op_fn *exec;         /* NULL: a kernel runs it */
	struct choice choice;
	struct rg_body **bodies;     /* by attribute; NULL where it is no graph. NULL: none is */
};

struct rg_body {
	const struct rg_graph *g;
	struct rg_body *outer;
	int *outer_value;            /* by value: the same in the outer graph, or -1 */
	int *last_use;               /* by value: the node after which nobody reads it */
	struct rg_item **items;      /* by value: what it holds; NULL: nothing yet, or planned */
	struct node_state *nodes;
};

#define KEEP INT32_MAX /* last_use of outputs */

struct rg_dynamic {
	const struct rg_plan *plan;
	rg_resolve_fn *resolve;
	void *resolve_ctx;
	struct rg_body *main;
	struct rg_item **inputs;     /* by value of the main graph; NULL: none was set */
	struct rg_arena *text;
	bool (*stop)(void *ctx);
	void *stop_ctx;
	int64_t limit_bytes;         /* of one tensor: what the machine has; 0 unknown */
	/* Room for one node: the widest. */
	int max_in, max_out;
	struct rg_value *values;
	const struct rg_value **value_list;
	struct rg_tensor *in, *known, *out;
	void *scratch;
	size_t scratch_bytes;
};

/* ---- looking values up ---- */

/* Walks outward to where a value lives. Exactly one of *item and *t is set. */
static int find(const struct rg_dynamic *d, const struct rg_body *b, int value, struct rg_item **item,
		struct rg_tensor *t, bool *lasting, struct rg_error *err)
{
	const struct rg_value *v;

	*item = NULL;
	*lasting = true;
	for (;; value = b->outer_value[value], b = b->outer) {
		v = &b->g->values[value];
		if (b->items[value]) {
			*item = b->items[value];
			return 0;
		}
		if (v->origin != RG_CONST_NONE) {
			*t = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
			return 0;
		}
		if (b->outer_value[value] < 0)
			break;
	}
	*lasting = false;
	if (!b->outer) {
		*t = d->resolve(d->resolve_ctx, value);
		if (t->dtype != RG_UNDEFINED)
			return 0;
	}
	return rg_error_set(err, -EINVAL, "'%s' has no value", v->name);
}

static int find_tensor(const struct rg_dynamic *d, const struct rg_body *b, int value, struct rg_tensor *t,
		       struct rg_error *err)
{
	struct rg_item *item;
	bool lasting;

	if (find(d, b, value, &item, t, &lasting, err))
		return err->code;
	if (item && item->kind != RG_ITEM_TENSOR)
		return rg_error_set(err, -EINVAL, "'%s' is %s, a tensor is needed", b->g->values[value].name,
				    item->kind == RG_ITEM_NONE ? "an empty optional" : "a sequence");
	if (item)
		*t = item->t;
	return 0;
}

struct rg_item *rg_site_item(const struct rg_site *s, int k, struct rg_error *err)
{
	struct rg_tensor t;
	struct rg_item *item;
	bool lasting;

	if (find(s->d, s->body, s->n->in[k], &item, &t, &lasting, err))
		return NULL;
	return item ? rg_item_ref(item) : rg_item_borrow(&t, lasting, err);
}

int rg_site_tensor(const struct rg_site *s, int k, struct rg_tensor *out, struct rg_error *err)
{
	return find_tensor(s->d, s->body, s->n->in[k], out, err);
}

int rg_site_int(const struct rg_site *s, int k, int64_t *out, struct rg_error *err)
{
	struct rg_tensor t;

	if (rg_site_tensor(s, k, &t, err))
		return err->code;
	if (rg_shape_count(&t.shape) != 1)
		return rg_error_set(err, -EINVAL, "input %d has %lld elements, one is needed", k,
				    (long long)rg_shape_count(&t.shape));
	if (t.dtype == RG_I64)
		*out = *(const int64_t *)t.data;
	else if (t.dtype == RG_I32)
		*out = *(const int32_t *)t.data;
	else if (t.dtype == RG_BOOL)
		*out = *(const uint8_t *)t.data != 0;
	else
		return rg_error_set(err, -EINVAL, "input %d is %s, an integer or bool is needed", k,
				    rg_dtype_name(t.dtype));
	return 0;
}

static void set_item(struct rg_body *b, int value, struct rg_item *item)
{
	rg_item_unref(b->items[value]);
	b->items[value] = item;
}

int rg_site_room(const struct rg_site *s, int64_t bytes, struct rg_error *err)
{
	if (s->d->limit_bytes <= 0 || bytes <= s->d->limit_bytes)
		return 0;
	return rg_error_set(err, -ENOMEM, "what was collected takes %lld MiB, more than this machine has",
			    (long long)(bytes >> 20));
}

int rg_site_give(const struct rg_site *s, int k, struct rg_item *item, struct rg_error *err)
{
	if (!item)
		return err->code;
	if (k >= s->n->n_out || s->n->out[k] < 0) {
		rg_item_unref(item);
		return 0;
	}
	item = rg_item_own(item, err);
	if (!item)
		return err->code;
	set_item(s->body, s->n->out[k], item);
	return 0;
}

/* ---- one node that a kernel runs ---- */

/* Inputs as inference wants them: typed, shaped and known. */
static int gather(const struct rg_site *s, struct rg_error *err)
{
	struct rg_dynamic *d = s->d;

	for (int k = 0; k < s->n->n_in; k++) {
		struct rg_value *v = &d->values[k];
		int at = s->n->in[k];

		memset(&d->in[k], 0, sizeof(d->in[k]));
		memset(&d->known[k], 0, sizeof(d->known[k]));
		d->value_list[k] = NULL;
		if (at < 0)
			continue;
		if (find_tensor(d, s->body, at, &d->in[k], err))
			return err->code;
		d->known[k] = d->in[k];
		if (s->body->g->values[at].origin == RG_CONST_NONE)
			d->known[k].data = NULL; /* kernels may pack only what stays */
		*v = (struct rg_value){ .name = s->body->g->values[at].name, .declared_rank = -1, .shaped = true,
					.dtype = d->in[k].dtype, .shape = d->in[k].shape,
					.origin = RG_CONST_BOUND, .data = d->in[k].data, .producer = -1 };
		d->value_list[k] = v;
	}
	return 0;
}

static int infer(const struct rg_site *s, struct rg_error *err)
{
	struct rg_dynamic *d = s->d;
	struct rg_infer c = { .graph = s->body->g, .node = s->n, .in = d->value_list, .out = d->out,
			      .need_value = -1 };
	int rc;

	memset(d->out, 0, (size_t)s->n->n_out * sizeof(*d->out));
	rc = s->n->op->infer(&c, err);
	if (rc)
		return rc;
	for (int o = 0; o < s->n->n_out; o++) {
		if (s->n->out[o] < 0)
			memset(&d->out[o], 0, sizeof(d->out[o]));
		else if (d->out[o].dtype == RG_UNDEFINED)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "output %d ('%s') is not supported", o,
					    s->body->g->values[s->n->out[o]].name);
		else if (d->out[o].shape.rank < 0 || d->out[o].shape.rank > RG_MAX_RANK)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "output %d would have %d dimensions", o,
					    d->out[o].shape.rank);
	}
	return 0;
}

static bool same_signature(const struct rg_dynamic *d, const struct rg_node *n, const struct choice *c)
{
	if (!c->kernel)
		return false;
	for (int k = 0; k < n->n_in + n->n_out; k++) {
		const struct rg_tensor *t = k < n->n_in ? &d->in[k] : &d->out[k - n->n_in];

		if (t->dtype != c->sig[k].dtype)
			return false;
		if (t->dtype != RG_UNDEFINED && !rg_shape_equal(&t->shape, &c->sig[k].shape))
			return false;
	}
	return true;
}

static int remember_signature(const struct rg_dynamic *d, const struct rg_node *n, struct choice *c,
			      struct rg_error *err)
{
	if (!c->sig)
		c->sig = rg_calloc((size_t)n->n_in + (size_t)n->n_out, sizeof(*c->sig));
	if (!c->sig)
		return rg_error_nomem(err, ((size_t)n->n_in + (size_t)n->n_out) * sizeof(*c->sig));
	for (int k = 0; k < n->n_in + n->n_out; k++) {
		const struct rg_tensor *t = k < n->n_in ? &d->in[k] : &d->out[k - n->n_in];

		c->sig[k].dtype = t->dtype;
		c->sig[k].shape = t->shape;
	}
	return 0;
}

/* Selects the kernel and lets it pack, or takes what fits from the last time. */
static int choose(const struct rg_site *s, const struct choice **out, struct rg_error *err)
{
	struct rg_dynamic *d = s->d;
	struct choice *c = &s->body->nodes[s->node].choice;
	struct rg_call call = { .node = s->n, .in = d->known, .out = d->out };
	size_t bytes;

	*out = c;
	if (same_signature(d, s->n, c))
		return 0;
	rg_free(c->prepared);
	c->prepared = NULL;
	c->kernel = NULL;
	if (remember_signature(d, s->n, c, err))
		return err->code;
	/* Outputs have no memory yet, and inputs only where they stay. */
	const struct rg_kernel *kernel = rg_kernel_select_without(&call, d->plan->isa, d->plan->n_without,
								       d->plan->without);

	if (!kernel)
		return rg_select_no_kernel(&call, err);
	bytes = kernel->prepared_bytes ? kernel->prepared_bytes(&call) : 0;
	if (bytes) {
		c->prepared = rg_alloc_aligned(64, bytes);
		if (!c->prepared)
			return rg_error_nomem(err, bytes);
		if (kernel->prepare(&call, c->prepared, err))
			return err->code;
	}
	c->kernel = kernel;
	return 0;
}

static int need_scratch(struct rg_dynamic *d, size_t bytes, struct rg_error *err)
{
	if (bytes <= d->scratch_bytes)
		return 0;
	rg_free(d->scratch);
	d->scratch_bytes = 0;
	d->scratch = rg_alloc_aligned(64, bytes);
	if (!d->scratch)
		return rg_error_nomem(err, bytes);
	d->scratch_bytes = bytes;
	return 0;
}

static void swap_data(struct rg_tensor *a, struct rg_tensor *b)
{
	void *data = a->data;

	a->data = b->data;
	b->data = data;
}

/* With the values that sizes depend on, but what the kernel would pack only where it stays. */
static size_t scratch_of(const struct rg_site *s, const struct choice *c, const struct rg_call *call)
{
	struct rg_dynamic *d = s->d;
	size_t bytes;

	if (!c->kernel->scratch_bytes)
		return 0;
	for (int k = 0; k < s->n->n_in && k < 32; k++)
		if (c->kernel->packs >> k & 1)
			swap_data(&d->in[k], &d->known[k]);
	bytes = c->kernel->scratch_bytes(call, s->par->lanes);
	for (int k = 0; k < s->n->n_in && k < 32; k++)
		if (c->kernel->packs >> k & 1)
			swap_data(&d->in[k], &d->known[k]);
	return bytes;
}

static int make_outputs(const struct rg_site *s, struct rg_error *err)
{
	for (int o = 0; o < s->n->n_out; o++) {
		struct rg_tensor *t = &s->d->out[o];
		struct rg_item *item;

		if (s->n->out[o] < 0)
			continue;
		item = rg_item_new(t->dtype, &t->shape, s->d->limit_bytes, err);
		if (!item)
			return err->code;
		set_item(s->body, s->n->out[o], item);
		t->data = item->t.data;
	}
	return 0;
}

static int run_kernel(const struct rg_site *s, struct rg_error *err)
{
	struct rg_dynamic *d = s->d;
	struct rg_call call = { .node = s->n, .in = d->in, .out = d->out, .text = d->text };
	const struct choice *c;
	size_t bytes;

	if (gather(s, err) || infer(s, err) || choose(s, &c, err))
		return err->code;
	/* Kernels form pointers to tensors without elements, which must not be NULL. */
	for (int k = 0; k < s->n->n_in; k++)
		if (d->in[k].dtype != RG_UNDEFINED && !d->in[k].data)
			d->in[k].data = d->out; /* never read: there are no elements */
	call.prepared = c->prepared;
	bytes = scratch_of(s, c, &call);
	if (need_scratch(d, bytes, err) || make_outputs(s, err))
		return err->code;
	call.scratch = bytes ? d->scratch : NULL;
	return c->kernel->run(&call, s->par, err);
}

/* Identity passes on what no kernel takes. */
static bool is_passed_on(const struct rg_site *s, struct rg_item **item)
{
	struct rg_error ignored = RG_ERROR_INIT;
	struct rg_tensor t;
	bool lasting;

	return strcmp(s->n->op_type, "Identity") == 0 && s->n->domain[0] == '\0' && rg_site_has(s, 0) &&
	       find(s->d, s->body, s->n->in[0], item, &t, &lasting, &ignored) == 0 && *item &&
	       (*item)->kind != RG_ITEM_TENSOR;
}

static void release_used(const struct rg_site *s, const int *values, int n)
{
	for (int k = 0; k < n; k++)
		if (values[k] >= 0 && s->body->last_use[values[k]] == s->node)
			set_item(s->body, values[k], NULL);
}

static int run_node(const struct rg_site *s, struct rg_error *err)
{
	rg_exec_op_fn *exec = s->body->nodes[s->node].exec;
	struct rg_item *item;
	int rc;

	if (exec)
		rc = exec(s, err);
	else if (is_passed_on(s, &item))
		rc = rg_site_give(s, 0, rg_item_ref(item), err);
	else
		rc = run_kernel(s, err);
	if (rc)
		return rg_error_at(err, "node '%s' (%s)", s->n->name, s->n->op_type);
	release_used(s, s->n->in, s->n->n_in);
	release_used(s, s->n->captured, s->n->n_captured);
	release_used(s, s->n->out, s->n->n_out); /* what nobody reads */
	return 0;
}

/* ---- bodies ---- */

const struct rg_graph *rg_body_graph(const struct rg_body *b)
{
	return b->g;
}

struct rg_body *rg_site_body(const struct rg_site *s, const char *attr, struct rg_error *err)
{
	struct rg_body **bodies = s->body->nodes[s->node].bodies;

	for (int a = 0; bodies && a < s->n->n_attrs; a++)
		if (bodies[a] && strcmp(s->n->attrs[a].name, attr) == 0)
			return bodies[a];
	rg_error_set(err, -EINVAL, "the graph attribute '%s' is missing", attr);
	return NULL;
}

static void clear_items(struct rg_body *b)
{
	for (int v = 0; v < b->g->n_values; v++)
		set_item(b, v, NULL);
}

static int take_outputs(const struct rg_dynamic *d, struct rg_body *b, struct rg_item **out, struct rg_error *err)
{
	for (int o = 0; o < b->g->n_outputs; o++) {
		struct rg_item *item;
		struct rg_tensor t;
		bool lasting;

		if (find(d, b, b->g->outputs[o], &item, &t, &lasting, err))
			return err->code;
		item = item ? rg_item_ref(item) : rg_item_borrow(&t, lasting, err);
		out[o] = item ? rg_item_own(item, err) : NULL;
		if (!out[o])
			return err->code;
	}
	return 0;
}

/* Before each node of a subgraph: a person, or text without end. */
static int may_go_on(const struct rg_dynamic *d, struct rg_error *err)
{
	if (d->stop && d->stop(d->stop_ctx))
		return rg_error_set(err, RG_EINTERRUPTED, "interrupted");
	return d->text ? rg_site_room(&(struct rg_site){ .d = (struct rg_dynamic *)d },
				      (int64_t)rg_arena_bytes(d->text), err) : 0;
}

int rg_body_run(const struct rg_site *s, struct rg_body *b, int n, struct rg_item **in, struct rg_item **out,
		struct rg_error *err)
{
	const struct rg_graph *g = b->g;
	int rc;

	memset(out, 0, (size_t)g->n_outputs * sizeof(*out));
	rc = may_go_on(s->d, err);
	if (!rc && n != g->n_inputs)
		rc = rg_error_set(err, -EINVAL, "a subgraph has %d inputs, %d are given", g->n_inputs, n);
	for (int i = 0; i < n; i++) {
		if (rc)
			rg_item_unref(in[i]);
		else
			set_item(b, g->inputs[i], in[i]);
	}
	for (int i = 0; i < g->n_nodes && !rc; i++) {
		const struct rg_site site = { s->d, b, i, &g->nodes[i], s->par };

		rc = i > 0 ? may_go_on(s->d, err) : 0;
		if (!rc)
			rc = run_node(&site, err);
	}
	if (!rc)
		rc = take_outputs(s->d, b, out, err);
	for (int o = 0; rc && o < g->n_outputs; o++) {
		rg_item_unref(out[o]);
		out[o] = NULL;
	}
	clear_items(b);
	return rc;
}

/* ---- preparing bodies ---- */

static void body_free(struct rg_body *b)
{
	if (!b)
		return;
	for (int i = 0; b->nodes && i < b->g->n_nodes; i++) {
		struct node_state *s = &b->nodes[i];

		for (int a = 0; s->bodies && a < b->g->nodes[i].n_attrs; a++)
			body_free(s->bodies[a]);
		rg_free(s->bodies);
		rg_free(s->choice.prepared);
		rg_free(s->choice.sig);
	}
	if (b->items)
		clear_items(b);
	rg_free(b->items);
	rg_free(b->nodes);
	rg_free(b->outer_value);
	rg_free(b->last_use);
	rg_free(b);
}

static int body_new(struct rg_dynamic *d, const struct rg_graph *g, struct rg_body *outer, struct rg_body **out,
		    struct rg_error *err);

static int prepare_node(struct rg_dynamic *d, struct rg_body *b, int i, struct rg_error *err)
{
	const struct rg_node *n = &b->g->nodes[i];
	struct node_state *s = &b->nodes[i];

	d->max_in = n->n_in > d->max_in ? n->n_in : d->max_in;
	d->max_out = n->n_out > d->max_out ? n->n_out : d->max_out;
	if (n->op->flags & RG_OP_EXEC) {
		s->exec = rg_control_find(n->op_type);
		if (!s->exec)
			s->exec = rg_sequence_find(n->op_type);
		if (!s->exec) {
			rg_error_set(err, RG_ENOTSUP_MODEL, "nothing runs operator %s", n->op_type);
			return rg_error_at(err, "node '%s'", n->name);
		}
	}
	for (int a = 0; a < n->n_attrs; a++) {
		if (!n->attrs[a].g)
			continue;
		if (!s->bodies)
			s->bodies = rg_calloc((size_t)n->n_attrs, sizeof(*s->bodies));
		if (!s->bodies)
			return rg_error_nomem(err, (size_t)n->n_attrs * sizeof(*s->bodies));
		if (body_new(d, n->attrs[a].g, b, &s->bodies[a], err))
			return err->code;
	}
	return 0;
}

static void find_last_uses(struct rg_body *b, bool planned_too)
{
	const struct rg_graph *g = b->g;

	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0)
				b->last_use[n->out[k]] = i;
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] >= 0)
				b->last_use[n->in[k]] = i;
		for (int k = 0; k < n->n_captured; k++)
			b->last_use[n->captured[k]] = i;
	}
	for (int o = 0; o < g->n_outputs; o++)
		b->last_use[g->outputs[o]] = KEEP;
	/* An input of the main graph stays for the next inference. */
	for (int k = 0; planned_too && k < g->n_inputs; k++)
		b->last_use[g->inputs[k]] = KEEP;
}

/* Depth is bounded by RG_MAX_SUBGRAPH_DEPTH. */
static int body_new(struct rg_dynamic *d, const struct rg_graph *g, struct rg_body *outer, struct rg_body **out,
		    struct rg_error *err)
{
	struct rg_body *b = *out = rg_calloc(1, sizeof(*b));
	size_t n = (size_t)g->n_values + 1;

	if (!b)
		return rg_error_nomem(err, sizeof(*b));
	b->g = g;
	b->outer = outer;
	b->outer_value = rg_calloc(n, sizeof(*b->outer_value));
	b->last_use = rg_calloc(n, sizeof(*b->last_use));
	b->items = rg_calloc(n, sizeof(*b->items));
	b->nodes = rg_calloc((size_t)g->n_nodes + 1, sizeof(*b->nodes));
	if (!b->outer_value || !b->last_use || !b->items || !b->nodes)
		return rg_error_nomem(err, n * sizeof(*b->items));
	for (int v = 0; v < g->n_values; v++)
		b->outer_value[v] = g->values[v].from_outer ? rg_graph_find_value(g->outer, g->values[v].name) : -1;
	find_last_uses(b, !outer);
	for (int i = 0; i < g->n_nodes; i++)
		if ((outer || g->nodes[i].dynamic) && prepare_node(d, b, i, err))
			return err->code;
	return 0;
}

static int make_room(struct rg_dynamic *d, struct rg_error *err)
{
	size_t in = (size_t)d->max_in + 1, out = (size_t)d->max_out + 1;

	d->values = rg_calloc(in, sizeof(*d->values));
	d->value_list = rg_calloc(in, sizeof(*d->value_list));
	d->in = rg_calloc(in, sizeof(*d->in));
	d->known = rg_calloc(in, sizeof(*d->known));
	d->out = rg_calloc(out, sizeof(*d->out));
	if (!d->values || !d->value_list || !d->in || !d->known || !d->out)
		return rg_error_nomem(err, in * sizeof(*d->values));
	return 0;
}

static int64_t memory_of_machine(struct rg_error *err)
{
	struct rg_topology *machine = rg_alloc(sizeof(*machine));
	int64_t bytes;

	if (!machine)
		return rg_error_nomem(err, sizeof(*machine));
	rg_topology_read("", machine);
	bytes = machine->memory_bytes > 0 ? machine->memory_bytes : 0;
	rg_free(machine);
	return bytes;
}

int rg_dynamic_new(const struct rg_plan *plan, rg_resolve_fn *resolve, void *ctx, struct rg_dynamic **out,
		   struct rg_error *err)
{
	struct rg_dynamic *d = *out = rg_calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return rg_error_nomem(err, sizeof(*d));
	d->plan = plan;
	d->resolve = resolve;
	d->resolve_ctx = ctx;
	d->inputs = rg_calloc((size_t)plan->graph->n_values + 1, sizeof(*d->inputs));
	d->limit_bytes = memory_of_machine(err);
	if (!d->inputs)
		rg_error_nomem(err, (size_t)plan->graph->n_values * sizeof(*d->inputs));
	rc = err->code;
	if (!rc)
		rc = body_new(d, plan->graph, NULL, &d->main, err);
	if (!rc)
		rc = make_room(d, err);
	if (rc) {
		rg_dynamic_free(d);
		*out = NULL;
	}
	return rc;
}

void rg_dynamic_free(struct rg_dynamic *d)
{
	if (!d)
		return;
	for (int v = 0; d->inputs && v < d->plan->graph->n_values; v++)
		rg_item_unref(d->inputs[v]);
	rg_free(d->inputs);
	body_free(d->main);
	rg_free(d->values);
	rg_free(d->value_list);
	rg_free(d->in);
	rg_free(d->known);
	rg_free(d->out);
	rg_free(d->scratch);
	rg_free(d);
}

/* ---- for the executor ---- */

void rg_dynamic_set_stop(struct rg_dynamic *d, bool (*stop)(void *ctx), void *ctx)
{
	d->stop = stop;
	d->stop_ctx = ctx;
}

void rg_dynamic_begin(struct rg_dynamic *d, struct rg_arena *text)
{
	const struct rg_graph *g = d->plan->graph;

	clear_items(d->main);
	for (int i = 0; i < g->n_inputs; i++)
		if (d->inputs[g->inputs[i]])
			set_item(d->main, g->inputs[i], rg_item_ref(d->inputs[g->inputs[i]]));
	d->text = text;
}

void rg_dynamic_set_input(struct rg_dynamic *d, int value, struct rg_item *item)
{
	rg_item_unref(d->inputs[value]);
	d->inputs[value] = rg_item_ref(item);
}

int rg_dynamic_step(struct rg_dynamic *d, int step, const struct rg_par *par, struct rg_error *err)
{
	int node = d->plan->steps[step].node;
	const struct rg_site s = { d, d->main, node, &d->plan->graph->nodes[node], par };

	return run_node(&s, err);
}

const struct rg_item *rg_dynamic_item(const struct rg_dynamic *d, int value)
{
	return d->main->items[value];
}
