/*
 * Expanding calls in place. What is still to be looked at waits on a stack, so
 * that functions that call functions need no recursion; only the descent into
 * subgraphs recurses, and their depth is bounded.
 */
#include "graph/function.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/private.h"

struct inliner {
	rg_function_find *find;
	void *ctx;
	struct rg_clone_limits *limits;
	int depth; /* functions that are active */
};

struct pending {
	struct rg_node n;
	struct rg_function *leave; /* not a node: the end of this function's body */
};

struct stack {
	struct pending *p;
	size_t n, cap;
};

static int push(struct stack *s, const struct pending *p, struct rg_error *err)
{
	struct pending *grown = rg_grow(s->p, &s->cap, s->n + 1, sizeof(*grown));

	if (!grown)
		return rg_error_nomem(err, (s->n + 1) * sizeof(*grown));
	s->p = grown;
	grown[s->n++] = *p;
	return 0;
}

/* ---- one call ---- */

struct call {
	const struct rg_node *node;
	const struct rg_function *f;
};

static const struct rg_attr *argument(void *ctx, const char *name)
{
	const struct call *c = ctx;
	const struct rg_attr *a = rg_node_attr(c->node, name);

	for (int i = 0; !a && i < c->f->n_defaults; i++)
		if (strcmp(c->f->defaults[i].name, name) == 0)
			a = &c->f->defaults[i];
	return a;
}

static int check_call(const struct inliner *in, const struct rg_node *n, const struct rg_function *f,
		      struct rg_error *err)
{
	if (f->active) {
		rg_error_set(err, -EINVAL, "function %s%s%s calls itself", f->domain, f->domain[0] ? "." : "",
			     f->name);
		return rg_error_hint(err, "the file is damaged; export the model again");
	}
	if (in->depth >= RG_MAX_CALL_DEPTH)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "functions call functions deeper than %d",
				    RG_MAX_CALL_DEPTH);
	if (n->n_in > f->body->n_inputs || n->n_out > f->body->n_outputs)
		return rg_error_set(err, -EINVAL, "the call has %d inputs and %d outputs, function %s%s%s has %d "
				    "and %d", n->n_in, n->n_out, f->domain, f->domain[0] ? "." : "", f->name,
				    f->body->n_inputs, f->body->n_outputs);
	return 0;
}

static int clone_body(struct inliner *in, struct rg_graph *g, const struct rg_node *n, struct rg_function *f,
		      struct rg_error *err)
{
	struct call call = { n, f };
	struct rg_clone c = { .from = f->body, .to = g, .n_out = n->n_out, .out = n->out, .attr = argument,
			      .attr_ctx = &call, .limits = in->limits };
	size_t count = (size_t)f->body->n_values;
	char *prefix;
	int rc;

	/* A call takes this long even if the body has few nodes. */
	in->limits->bytes -= (int64_t)(count * sizeof(int));
	prefix = rg_asprintf("%s/", n->name);
	c.prefix = prefix;
	c.map = rg_calloc(count + 1, sizeof(int));
	if (!prefix || !c.map) {
		rc = rg_error_nomem(err, count * sizeof(int));
	} else {
		for (size_t i = 0; i < count; i++)
			c.map[i] = RG_CLONE_FRESH;
		for (int i = 0; i < f->body->n_inputs; i++)
			c.map[f->body->inputs[i]] = i < n->n_in && n->in[i] >= 0 ? n->in[i] : RG_CLONE_ABSENT;
		rc = rg_graph_clone_nodes(&c, err);
	}
	rg_free(prefix);
	rg_free(c.map);
	return rc;
}

/* The body's nodes go onto the stack, the first on top, below them the mark that
 * its end is reached. */
static int expand(struct inliner *in, struct rg_graph *g, struct stack *s, struct rg_node *n,
		  struct rg_function *f, struct rg_error *err)
{
	struct pending leave = { .leave = f };
	int before = g->n_nodes, rc = check_call(in, n, f, err);

	if (!rc)
		rc = push(s, &leave, err);
	if (!rc) {
		f->active = true;
		in->depth++;
		rc = clone_body(in, g, n, f, err);
	}
	while (!rc && g->n_nodes > before) {
		struct pending p = { .n = g->nodes[g->n_nodes - 1] };

		rc = push(s, &p, err);
		g->n_nodes -= !rc;
	}
	return rc ? rg_error_at(err, "node '%s' (%s)", n->name, n->op_type) : 0;
}

/* ---- a graph ---- */

static int inline_graph(struct inliner *in, struct rg_graph *g, struct rg_error *err);

static int inline_subgraphs(struct inliner *in, const struct rg_node *n, struct rg_error *err)
{
	for (int a = 0; a < n->n_attrs; a++)
		if (n->attrs[a].g && inline_graph(in, n->attrs[a].g, err))
			return rg_error_at(err, "node '%s' attribute '%s'", n->name, n->attrs[a].name);
	return 0;
}

/* Takes a node that is no call back into the graph. */
static int keep(struct rg_graph *g, const struct rg_node *n, struct rg_error *err)
{
	struct rg_node *p;

	if (g->n_nodes >= RG_MAX_NODES)
		return rg_error_set(err, -E2BIG, "more than %d nodes in one graph", RG_MAX_NODES);
	p = rg_grow(g->nodes, &g->priv->cap_nodes, (size_t)g->n_nodes + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, ((size_t)g->n_nodes + 1) * sizeof(*p));
	g->nodes = p;
	p[g->n_nodes++] = *n;
	return 0;
}

static int handle(struct inliner *in, struct rg_graph *g, struct stack *s, struct pending *p,
		  struct rg_error *err)
{
	struct rg_function *f = NULL;
	int rc;

	if (p->leave) {
		p->leave->active = false;
		in->depth--;
		return 0;
	}
	rc = in->find(in->ctx, p->n.domain, p->n.op_type, p->n.overload, &f, err);
	if (!rc && !f) {
		rc = inline_subgraphs(in, &p->n, err);
		if (!rc)
			rc = keep(g, &p->n, err);
		if (!rc)
			return 0;
	} else if (!rc) {
		rc = expand(in, g, s, &p->n, f, err);
	}
	rg_graph_drop_attrs(&p->n);
	return rc;
}

/* Whether the graph itself holds a call; most hold none and stay as they are. */
static int has_call(const struct inliner *in, const struct rg_graph *g, bool *out, struct rg_error *err)
{
	struct rg_function *f = NULL;
	int rc = 0;

	for (int i = 0; i < g->n_nodes && !rc && !f; i++)
		rc = in->find(in->ctx, g->nodes[i].domain, g->nodes[i].op_type, g->nodes[i].overload, &f, err);
	*out = f != NULL;
	return rc;
}

static int inline_graph(struct inliner *in, struct rg_graph *g, struct rg_error *err)
{
	struct rg_node *old = g->nodes;
	int n_old = g->n_nodes, i, rc;
	struct stack s = { 0 };
	bool calls;

	rc = has_call(in, g, &calls, err);
	if (!rc && !calls)
		for (i = 0; i < n_old && !rc; i++)
			rc = inline_subgraphs(in, &g->nodes[i], err);
	if (rc || !calls)
		return rc;
	g->nodes = NULL;
	g->n_nodes = 0;
	g->priv->cap_nodes = 0;
	for (i = 0; i < n_old && !rc; i++) {
		struct pending p = { .n = old[i] };

		rc = handle(in, g, &s, &p, err);
		while (!rc && s.n) {
			p = s.p[--s.n];
			rc = handle(in, g, &s, &p, err);
		}
	}
	for (; i < n_old; i++)
		rg_graph_drop_attrs(&old[i]);
	while (s.n)
		rg_graph_drop_attrs(&s.p[--s.n].n);
	rg_free(s.p);
	rg_free(old);
	return rc;
}

int rg_graph_inline_functions(struct rg_graph *g, rg_function_find *find, void *ctx,
			      struct rg_clone_limits *limits, struct rg_error *err)
{
	struct inliner in = { .find = find, .ctx = ctx, .limits = limits };

	rg_error_clear(err);
	return inline_graph(&in, g, err);
}
