/*
 * Cloning nodes into another graph. Names are the only link between a subgraph
 * and what it captures, so a clone has to find what each name meant where it was
 * written (lookup through the source scopes) and to give new ones that nothing in
 * any enclosing graph of the target has.
 */
#include "graph/inline.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/private.h"

enum { UNDEFINED = 0, GIVEN, CONSTANT, PRODUCED }; /* how a graph defines a value */

struct scope {
	const struct rg_clone *c;
	struct rg_graph *from, *to;
	int *map;
	unsigned char *defined;
	struct scope *outer; /* the source graph around `from`, when it is cloned too */
	bool open;           /* names that no scope defines mean the same outside */
	bool move;
};

static int spend(const struct rg_clone *c, int64_t nodes, int64_t graphs, int64_t bytes, struct rg_error *err)
{
	struct rg_clone_limits *l = c->limits;

	if (!l)
		return 0;
	l->nodes -= nodes;
	l->graphs -= graphs;
	l->bytes -= bytes;
	if (l->nodes >= 0 && l->graphs >= 0 && l->bytes >= 0)
		return 0;
	return rg_error_set(err, -E2BIG, "inlined, it would take more %s than a model of this size honestly has",
			    l->nodes < 0 ? "nodes" : l->graphs < 0 ? "subgraphs" : "memory");
}

/* ---- which names a graph defines ---- */

static unsigned char *find_defined(const struct rg_graph *g)
{
	unsigned char *d = rg_calloc((size_t)g->n_values + 1, 1);

	if (!d)
		return NULL;
	for (int i = 0; i < g->n_nodes; i++)
		for (int o = 0; o < g->nodes[i].n_out; o++)
			if (g->nodes[i].out[o] >= 0)
				d[g->nodes[i].out[o]] = PRODUCED;
	for (int v = 0; v < g->n_values; v++)
		if (g->values[v].origin != RG_CONST_NONE)
			d[v] = CONSTANT;
	for (int i = 0; i < g->n_inputs; i++)
		d[g->inputs[i]] = GIVEN;
	return d;
}

/* ---- values ---- */

static bool taken(const struct rg_graph *g, const char *name)
{
	for (; g; g = g->outer)
		if (rg_graph_find_value(g, name) >= 0)
			return true;
	return false;
}

/* What the file declares of a value; the rest belongs to the graph that it is in. */
static int copy_declared(struct rg_graph *g, int to, const struct rg_value *from, struct rg_error *err)
{
	struct rg_value *v = &g->values[to];

	v->kind = from->kind;
	v->shaped = from->shaped;
	v->dtype = from->dtype;
	v->shape = from->shape;
	if (!from->has_declared)
		return 0;
	return rg_graph_declare(g, to, from->declared_dtype, from->declared_rank, from->declared, err);
}

static int64_t characters(const char *const *strings, int64_t n)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += strings[i] ? (int64_t)strlen(strings[i]) + 1 : 0;
	return sum;
}

static int take_data(struct scope *s, void **data, enum rg_dtype type, const struct rg_shape *shape,
		     void **out, struct rg_error *err)
{
	int64_t bytes;

	*out = NULL;
	if (s->move) {
		*out = *data;
		*data = NULL;
		return 0;
	}
	bytes = rg_tensor_bytes(type, shape);
	if (bytes < 0)
		return rg_error_set(err, -EINVAL, "the size of a constant overflows");
	if (bytes == 0 || !*data)
		return 0;
	if (type == RG_STRING)
		bytes += characters(*data, rg_shape_count(shape));
	if (spend(s->c, 0, 0, bytes, err))
		return err->code;
	*out = rg_tensor_copy_data(&(struct rg_tensor){ type, *shape, *data });
	return *out ? 0 : rg_error_nomem(err, (size_t)bytes);
}

/* A value of the target with a name that nothing around it has. The number
 * behind a name only grows, so that names chosen to collide cost their writer
 * one try each. */
static int fresh(struct scope *s, int value, struct rg_error *err)
{
	struct rg_value *from = &s->from->values[value];
	uint64_t *serial = &s->to->priv->serial;
	char *name = rg_asprintf("%s%s", s->c->prefix, from->name);
	size_t len = name ? strlen(name) : 0;
	int v;

	while (name && taken(s->to, name)) {
		rg_free(name);
		name = rg_asprintf("%s%s.%" PRIu64, s->c->prefix, from->name, ++*serial);
	}
	if (!name)
		return rg_error_nomem(err, len);
	v = spend(s->c, 0, 0, (int64_t)(len + sizeof(*from)), err);
	if (!v)
		v = rg_graph_value(s->to, name, err);
	rg_free(name);
	if (v >= 0 && copy_declared(s->to, v, from, err))
		return err->code;
	if (v >= 0 && from->origin != RG_CONST_NONE) {
		void *data;

		if (take_data(s, (void **)&from->data, from->dtype, &from->shape, &data, err) ||
		    rg_graph_add_const(s->to, v, from->origin, from->dtype, &from->shape, data, err))
			return err->code;
	}
	return v;
}

/* What the name of a value that `s` does not define means. */
static int captured(struct scope *s, int value, struct rg_error *err)
{
	const char *name = s->from->values[value].name;

	for (struct scope *o = s->outer; o; o = o->outer) {
		int at = rg_graph_find_value(o->from, name);

		if (at < 0 || (!o->defined[at] && o->map[at] == RG_CLONE_FRESH))
			continue;
		if (o->map[at] < 0)
			return RG_CLONE_ABSENT; /* mapped before its nodes are cloned */
		return rg_graph_value(s->to, o->to->values[o->map[at]].name, err);
	}
	while (s->outer)
		s = s->outer;
	if (s->open)
		return rg_graph_value(s->to, name, err);
	rg_error_set(err, -EINVAL, "'%s' is read, but nothing produces it", name);
	return rg_error_hint(err, "the file is damaged; export the model again");
}

/* Captured values first: a name of our own must not hide one of theirs. */
static int map_values(struct scope *s, struct rg_error *err)
{
	for (int pass = 0; pass < 2; pass++) {
		for (int v = 0; v < s->from->n_values; v++) {
			bool own = s->defined[v] != UNDEFINED;
			int at;

			if (s->map[v] != RG_CLONE_FRESH || own != (pass == 1))
				continue;
			at = own ? fresh(s, v, err) : captured(s, v, err);
			if (err->code)
				return err->code;
			s->map[v] = at;
		}
	}
	return 0;
}

static int mapped(const struct scope *s, int value)
{
	return value < 0 || s->map[value] < 0 ? -1 : s->map[value];
}

/* ---- attributes and subgraphs ---- */

static int clone_nodes(struct scope *s, struct rg_error *err);

static int clone_io(struct scope *s, struct rg_graph *to, struct rg_error *err)
{
	const struct rg_graph *from = s->from;

	for (int i = 0; i < from->n_inputs; i++)
		if (rg_graph_add_input(to, mapped(s, from->inputs[i]), err))
			return err->code;
	for (int i = 0; i < from->n_outputs; i++) {
		int v = mapped(s, from->outputs[i]);

		if (v < 0)
			return rg_error_set(err, -EINVAL, "a subgraph gives '%s' back, which the caller leaves out",
					    from->values[from->outputs[i]].name);
		if (rg_graph_add_output(to, v, err))
			return err->code;
	}
	return 0;
}

static int clone_graph_into(struct scope *s, struct rg_error *err)
{
	struct rg_graph *to = s->to;
	const struct rg_graph *from = s->from;

	if (to->depth > RG_MAX_SUBGRAPH_DEPTH)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "subgraphs are nested deeper than %d",
				    RG_MAX_SUBGRAPH_DEPTH);
	if (spend(s->c, 0, 1, (int64_t)strlen(from->name), err))
		return err->code;
	to->name = rg_arena_strdup(to->arena, from->name);
	if (!to->name) {
		to->name = "";
		return rg_error_nomem(err, strlen(from->name));
	}
	for (int i = 0; i < from->n_opsets; i++)
		if (rg_graph_set_opset(to, from->opsets[i].domain, from->opsets[i].version, err))
			return err->code;
	if (map_values(s, err) || clone_io(s, to, err))
		return err->code;
	return clone_nodes(s, err);
}

/* A deep copy of a subgraph, below s->to. `outer` is the scope in which it was
 * written, NULL when that is the target itself (an attribute of the caller). */
static struct rg_graph *clone_graph(struct scope *s, struct rg_graph *from, struct scope *outer, bool move,
				    struct rg_error *err)
{
	struct scope inner = { .c = s->c, .from = from, .outer = outer, .open = !outer, .move = move };
	size_t n = (size_t)from->n_values + 1;
	int rc;

	inner.to = rg_graph_new(s->to);
	inner.map = rg_calloc(n, sizeof(*inner.map));
	inner.defined = find_defined(from);
	if (!inner.to || !inner.map || !inner.defined) {
		rc = rg_error_nomem(err, n * sizeof(*inner.map));
	} else {
		for (size_t i = 0; i < n; i++)
			inner.map[i] = RG_CLONE_FRESH;
		rc = clone_graph_into(&inner, err);
	}
	rg_free(inner.map);
	rg_free(inner.defined);
	if (rc) {
		rg_graph_free(inner.to);
		return NULL;
	}
	return inner.to;
}

static int64_t attr_bytes(const struct rg_attr *a)
{
	int64_t n = (int64_t)(sizeof(*a) + strlen(a->name) + a->s_len);

	if (a->type == RG_ATTR_FLOATS)
		n += 4 * (int64_t)a->count;
	if (a->type == RG_ATTR_INTS)
		n += 8 * (int64_t)a->count;
	for (int i = 0; a->type == RG_ATTR_STRINGS && i < a->count; i++)
		n += (int64_t)(strlen(a->strings[i]) + 1 + sizeof(char *));
	return n;
}

static int wrong_type(const struct rg_attr *want, const struct rg_attr *have, struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "attribute '%s' takes the value of '%s', which is of type %d, not %d",
			    want->name, want->ref, have->type, want->type);
}

/* Copies one attribute; *skip when it refers to one that nobody gives. The lists
 * and strings stay the source's: rg_graph_add_node copies them. */
static int clone_attr(struct scope *s, struct rg_attr *src, struct rg_attr *out, bool *skip,
		      struct rg_error *err)
{
	struct scope *outer = s;
	bool move = s->move;
	void *data;

	*skip = false;
	*out = *src;
	if (src->ref && s->c->attr) {
		const struct rg_attr *given = s->c->attr(s->c->attr_ctx, src->ref);

		*skip = !given;
		if (!given)
			return 0;
		if (src->type && given->type != src->type)
			return wrong_type(src, given, err);
		*out = *given;
		out->name = src->name;
		outer = NULL;
		move = false;
	}
	data = out->t.data;
	out->t.data = NULL;
	if (spend(s->c, 0, 0, attr_bytes(out), err))
		return err->code;
	if (out->g) {
		out->g = clone_graph(s, out->g, outer, move, err);
		return out->g ? 0 : err->code;
	}
	if (data) {
		struct scope how = *s;

		how.move = move;
		if (take_data(&how, &data, out->t.dtype, &out->t.shape, &out->t.data, err))
			return err->code;
		if (move)
			src->t.data = NULL;
	}
	return 0;
}

/* ---- nodes ---- */

static void drop_attrs(struct rg_attr *a, int n)
{
	for (int i = 0; i < n; i++) {
		rg_free(a[i].t.data);
		rg_graph_free(a[i].g);
	}
}

/* What rg_graph_add_node does not take: where the node came from decides it. */
static int complete_node(struct scope *s, const struct rg_node *from, struct rg_node *n, struct rg_error *err)
{
	const struct rg_graph *top = s->from;

	n->op = from->op;
	n->version = from->version;
	n->opset = from->opset;
	if (from->unsupported) { /* a branch of a lenient graph */
		n->unsupported = rg_arena_strdup(s->to->arena, from->unsupported);
		if (!n->unsupported)
			return rg_error_nomem(err, strlen(from->unsupported));
	}
	while (top->outer)
		top = top->outer;
	/* Only a function's body names opsets of its own; see rg_graph_opset. */
	if (!n->opset && !s->c->captures && top->n_opsets)
		n->opset = rg_graph_opset(top, from->domain);
	if (from->overload[0]) {
		n->overload = rg_arena_strdup(s->to->arena, from->overload);
		if (!n->overload) {
			n->overload = "";
			return rg_error_nomem(err, strlen(from->overload));
		}
	}
	return 0;
}

static int clone_node(struct scope *s, struct rg_node *from, int *io, struct rg_attr *attrs,
		      struct rg_error *err)
{
	char *name = rg_asprintf("%s%s", s->c->prefix, from->name);
	int n = 0, at = -ENOMEM;

	if (!name)
		return rg_error_nomem(err, strlen(from->name));
	if (spend(s->c, 1, 0, (int64_t)(strlen(name) + sizeof(*from)) + 4 * ((int64_t)from->n_in + from->n_out),
		  err))
		goto out;
	for (int i = 0; i < from->n_in; i++)
		io[i] = mapped(s, from->in[i]);
	for (int i = 0; i < from->n_out; i++)
		io[from->n_in + i] = mapped(s, from->out[i]);
	for (int i = 0; i < from->n_attrs; i++) {
		bool skip;

		if (clone_attr(s, &from->attrs[i], &attrs[n], &skip, err)) {
			drop_attrs(attrs, n);
			rg_error_at(err, "node '%s' (%s)", name, from->op_type);
			goto out;
		}
		n += !skip;
	}
	at = rg_graph_add_node(s->to, from->domain, from->op_type, name, from->n_in, io, from->n_out,
			       io + from->n_in, n, attrs, err);
	if (at >= 0)
		complete_node(s, from, &s->to->nodes[at], err);
out:
	rg_free(name);
	return err->code;
}

static int clone_nodes(struct scope *s, struct rg_error *err)
{
	size_t io = 1, attrs = 1;
	struct rg_attr *a;
	int *v, rc = 0;

	for (int i = 0; i < s->from->n_nodes; i++) {
		const struct rg_node *n = &s->from->nodes[i];

		io = (size_t)n->n_in + (size_t)n->n_out > io ? (size_t)n->n_in + (size_t)n->n_out : io;
		attrs = (size_t)n->n_attrs > attrs ? (size_t)n->n_attrs : attrs;
	}
	v = rg_calloc(io, sizeof(*v));
	a = rg_calloc(attrs, sizeof(*a));
	if (!v || !a)
		rc = rg_error_nomem(err, io * sizeof(*v));
	for (int i = 0; i < s->from->n_nodes && !rc; i++)
		rc = clone_node(s, &s->from->nodes[i], v, a, err);
	rg_free(v);
	rg_free(a);
	return rc;
}

/* ---- the whole ---- */

/* The outputs that nodes make are the caller's values from the start. */
static void map_outputs(struct scope *s)
{
	for (int i = 0; i < s->c->n_out; i++) {
		int v = s->from->outputs[i];

		if (s->c->out[i] >= 0 && s->defined[v] == PRODUCED && s->map[v] == RG_CLONE_FRESH)
			s->map[v] = s->c->out[i];
	}
}

/* The others are copied there. */
static int hand_through(struct scope *s, struct rg_error *err)
{
	for (int i = 0; i < s->c->n_out; i++) {
		int from = s->map[s->from->outputs[i]], to = s->c->out[i], at;
		const char *name = s->from->values[s->from->outputs[i]].name;
		char *node;

		if (to < 0 || from == to)
			continue;
		if (from < 0)
			return rg_error_set(err, -EINVAL, "output '%s' is an input that the caller leaves out", name);
		node = rg_asprintf("%s%s", s->c->prefix, name);
		if (!node)
			return rg_error_nomem(err, strlen(name));
		if (!spend(s->c, 1, 0, (int64_t)(strlen(node) + sizeof(struct rg_node)), err)) {
			at = rg_graph_add_node(s->to, "", "Identity", node, 1, &from, 1, &to, 0, NULL, err);
			if (at >= 0 && !rg_graph_opset(s->to, ""))
				s->to->nodes[at].opset = 1; /* it means the same in every version */
		}
		rg_free(node);
		if (err->code)
			return err->code;
	}
	return 0;
}

int rg_graph_clone_nodes(const struct rg_clone *c, struct rg_error *err)
{
	struct scope top = { .c = c, .from = c->from, .to = c->to, .map = c->map, .open = c->captures,
			     .move = c->move };
	int rc;

	if (c->n_out > c->from->n_outputs)
		return rg_error_set(err, -EINVAL, "%d outputs are wanted of %d", c->n_out, c->from->n_outputs);
	rg_error_clear(err); /* a code in it means that a step failed */
	top.defined = find_defined(c->from);
	if (!top.defined)
		return rg_error_nomem(err, (size_t)c->from->n_values);
	map_outputs(&top);
	rc = map_values(&top, err);
	if (!rc)
		rc = clone_nodes(&top, err);
	if (!rc)
		rc = hand_through(&top, err);
	rg_free(top.defined);
	return rc;
}
