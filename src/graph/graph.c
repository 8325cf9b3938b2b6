/* Building a graph: values, constants, nodes, and who owns what. */
#include "graph/graph.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/private.h"

struct rg_graph *rg_graph_new(struct rg_graph *outer)
{
	struct rg_graph *g = rg_calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->arena = rg_arena_new();
	g->priv = rg_calloc(1, sizeof(*g->priv));
	if (!g->arena || !g->priv) {
		rg_graph_free(g);
		return NULL;
	}
	rg_names_init(&g->priv->names);
	g->name = "";
	g->producer = "";
	g->outer = outer;
	g->depth = outer ? outer->depth + 1 : 0;
	return g;
}

/* Recursion is bounded: a graph deeper than RG_MAX_SUBGRAPH_DEPTH takes no node. */
void rg_graph_drop_attrs(struct rg_node *n)
{
	for (int i = 0; i < n->n_attrs; i++) {
		rg_free(n->attrs[i].t.data);
		rg_graph_free(n->attrs[i].g);
		n->attrs[i].t.data = NULL;
		n->attrs[i].g = NULL;
	}
}

void rg_graph_free(struct rg_graph *g)
{
	if (!g)
		return;
	for (int i = 0; i < g->n_values; i++)
		if (!g->values[i].from_outer)
			rg_free((void *)g->values[i].data);
	for (int i = 0; i < g->n_nodes; i++)
		rg_graph_drop_attrs(&g->nodes[i]);
	rg_free(g->values);
	rg_free(g->nodes);
	rg_free(g->inputs);
	rg_free(g->outputs);
	rg_free(g->opsets);
	if (g->priv)
		rg_names_free(&g->priv->names);
	rg_free(g->priv);
	rg_arena_free(g->arena);
	rg_free(g);
}

static const char *canonical_domain(const char *domain)
{
	return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int rg_graph_set_opset(struct rg_graph *g, const char *domain, int64_t version, struct rg_error *err)
{
	struct rg_opset *p;
	const char *copy;

	domain = canonical_domain(domain);
	if (version < 1) {
		rg_error_set(err, -EINVAL, "opset version %" PRId64 " of domain '%s' is not positive", version,
			     domain);
		return rg_error_hint(err, "the file is damaged; export the model again");
	}
	for (int i = 0; i < g->n_opsets; i++) {
		if (strcmp(g->opsets[i].domain, domain) != 0)
			continue;
		if (g->opsets[i].version == version)
			return 0;
		return rg_error_set(err, -EINVAL,
				    "opset of domain '%s' is imported twice: versions %" PRId64 " and %" PRId64,
				    domain, g->opsets[i].version, version);
	}
	p = rg_grow(g->opsets, &g->priv->cap_opsets, (size_t)g->n_opsets + 1, sizeof(*p));
	copy = rg_arena_strdup(g->arena, domain);
	if (p)
		g->opsets = p;
	if (!p || !copy)
		return rg_error_nomem(err, sizeof(*p));
	p[g->n_opsets].domain = copy;
	p[g->n_opsets].version = version;
	g->n_opsets++;
	return 0;
}

int64_t rg_graph_opset(const struct rg_graph *g, const char *domain)
{
	for (; g; g = g->outer) {
		for (int i = 0; i < g->n_opsets; i++)
			if (strcmp(g->opsets[i].domain, domain) == 0)
				return g->opsets[i].version;
		/* Files older than IR 3 name no opset: they mean the first. */
		if (!g->outer && g->n_opsets == 0 && domain[0] == '\0')
			return 1;
	}
	return 0;
}

int rg_graph_find_value(const struct rg_graph *g, const char *name)
{
	return rg_names_find(&g->priv->names, name);
}

int rg_graph_value(struct rg_graph *g, const char *name, struct rg_error *err)
{
	int at = rg_graph_find_value(g, name);
	struct rg_value *p;
	const char *copy;

	if (at >= 0)
		return at;
	if (name[0] == '\0')
		return rg_error_set(err, -EINVAL, "a value has no name");
	if (g->n_values >= RG_MAX_VALUES)
		return rg_error_set(err, -E2BIG, "more than %d values in one graph", RG_MAX_VALUES);
	p = rg_grow(g->values, &g->priv->cap_values, (size_t)g->n_values + 1, sizeof(*p));
	if (p)
		g->values = p;
	copy = rg_arena_strdup(g->arena, name);
	if (!p || !copy || rg_names_add(&g->priv->names, copy, g->n_values) != 0)
		return rg_error_nomem(err, sizeof(*p) + strlen(name));
	memset(&p[g->n_values], 0, sizeof(*p));
	p[g->n_values].name = copy;
	p[g->n_values].declared_rank = -1;
	p[g->n_values].producer = -1;
	return g->n_values++;
}

/* Callers pass indices that they got from us: a wrong one is their bug, but it
 * must not become a write outside. */
static int check_value(const struct rg_graph *g, int value, struct rg_error *err)
{
	if (value >= 0 && value < g->n_values)
		return 0;
	return rg_error_set(err, -EINVAL, "there is no value with index %d", value);
}

int rg_graph_declare(struct rg_graph *g, int value, enum rg_dtype dtype, int rank,
		     const struct rg_dim *dims, struct rg_error *err)
{
	struct rg_dim *copy = NULL;
	struct rg_value *v;

	if (check_value(g, value, err))
		return err->code;
	v = &g->values[value];
	if (rank > RG_MAX_RANK) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "value '%s' has %d dimensions, at most %d are supported",
			     v->name, rank, RG_MAX_RANK);
		return err->code;
	}
	if (rank > 0) {
		copy = rg_arena_alloc(g->arena, (size_t)rank, sizeof(*copy));
		if (!copy)
			return rg_error_nomem(err, (size_t)rank * sizeof(*copy));
	}
	for (int i = 0; i < rank; i++) {
		copy[i].value = dims[i].value < 0 ? -1 : dims[i].value;
		if (dims[i].symbol && dims[i].symbol[0]) {
			copy[i].symbol = rg_arena_strdup(g->arena, dims[i].symbol);
			if (!copy[i].symbol)
				return rg_error_nomem(err, strlen(dims[i].symbol));
		}
	}
	v->has_declared = true;
	v->declared_dtype = dtype;
	v->declared_rank = rank < 0 ? -1 : rank;
	v->declared = copy;
	return 0;
}

int rg_graph_declare_kind(struct rg_graph *g, int value, enum rg_value_kind kind, struct rg_error *err)
{
	if (check_value(g, value, err))
		return err->code;
	g->values[value].kind = kind;
	return 0;
}

int rg_graph_add_input(struct rg_graph *g, int value, struct rg_error *err)
{
	int *p;

	if (check_value(g, value, err))
		return err->code;
	if (g->values[value].is_input)
		return rg_error_set(err, -EINVAL, "graph input '%s' is listed twice", g->values[value].name);
	p = rg_grow(g->inputs, &g->priv->cap_inputs, (size_t)g->n_inputs + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	g->inputs = p;
	p[g->n_inputs++] = value;
	g->values[value].is_input = true;
	return 0;
}

int rg_graph_add_output(struct rg_graph *g, int value, struct rg_error *err)
{
	int *p;

	if (check_value(g, value, err))
		return err->code;
	if (g->values[value].is_output && !g->outer)
		return rg_error_set(err, -EINVAL, "graph output '%s' is listed twice", g->values[value].name);
	p = rg_grow(g->outputs, &g->priv->cap_outputs, (size_t)g->n_outputs + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	g->outputs = p;
	p[g->n_outputs++] = value;
	g->values[value].is_output = true;
	return 0;
}

static int check_const(struct rg_graph *g, int value, enum rg_dtype dtype, const struct rg_shape *shape,
		       const void *data, struct rg_error *err)
{
	const struct rg_value *v;
	int64_t n;

	if (check_value(g, value, err))
		return err->code;
	v = &g->values[value];
	if (v->origin != RG_CONST_NONE)
		return rg_error_set(err, -EINVAL, "constant '%s' is given twice", v->name);
	if (rg_dtype_bits(dtype) == 0) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "constant '%s' has element type %s", v->name,
			     rg_dtype_name(dtype));
		return rg_error_hint(err, "only tensors of numbers, booleans and strings are supported");
	}
	n = shape->rank < 0 || shape->rank > RG_MAX_RANK ? -1 : rg_tensor_bytes(dtype, shape);
	if (n < 0)
		return rg_error_set(err, -EINVAL, "the size of constant '%s' overflows", v->name);
	if (n > 0 && !data)
		return rg_error_set(err, -EINVAL, "constant '%s' has no data", v->name);
	return 0;
}

int rg_graph_add_const(struct rg_graph *g, int value, enum rg_const_origin origin,
		       enum rg_dtype dtype, const struct rg_shape *shape, void *data,
		       struct rg_error *err)
{
	struct rg_value *v;

	if (check_const(g, value, dtype, shape, data, err)) {
		rg_free(data);
		return err->code;
	}
	v = &g->values[value];
	v->origin = origin;
	v->dtype = dtype;
	v->shape = *shape;
	v->shaped = true;
	v->data = data;
	return 0;
}

static int copy_list(struct rg_graph *g, struct rg_attr *a, struct rg_error *err)
{
	size_t n = a->count > 0 ? (size_t)a->count : 0;
	const void *from = NULL;
	size_t size = 0;
	void *to;

	a->count = (int)n;
	if (a->type == RG_ATTR_FLOATS) {
		from = a->floats;
		size = sizeof(*a->floats);
	} else if (a->type == RG_ATTR_INTS) {
		from = a->ints;
		size = sizeof(*a->ints);
	} else if (a->type == RG_ATTR_STRINGS) {
		from = a->strings;
		size = sizeof(*a->strings);
	}
	if (size == 0)
		return 0;
	to = rg_arena_alloc(g->arena, n ? n : 1, size);
	if (!to)
		return rg_error_nomem(err, n * size);
	if (a->type == RG_ATTR_STRINGS) {
		const char **strings = to;

		for (size_t i = 0; i < n; i++) {
			strings[i] = rg_arena_strdup(g->arena, a->strings[i]);
			if (!strings[i])
				return rg_error_nomem(err, strlen(a->strings[i]));
		}
		a->strings = strings;
		return 0;
	}
	if (n)
		memcpy(to, from, n * size);
	if (a->type == RG_ATTR_FLOATS)
		a->floats = to;
	else
		a->ints = to;
	return 0;
}

static int copy_attr(struct rg_graph *g, struct rg_attr *to, const struct rg_attr *from,
		     struct rg_error *err)
{
	struct rg_attr a = *from;

	a.name = rg_arena_strdup(g->arena, from->name ? from->name : "");
	if (!a.name)
		return rg_error_nomem(err, strlen(from->name));
	if (a.ref) { /* there is no value yet */
		a.ref = rg_arena_strdup(g->arena, from->ref);
		a.s = NULL;
		a.s_len = 0;
		a.count = 0;
		a.floats = NULL;
		a.ints = NULL;
		a.strings = NULL;
		if (!a.ref)
			return rg_error_nomem(err, strlen(from->ref));
		*to = a;
		return 0;
	}
	if (a.type == RG_ATTR_STRING) {
		char *s = rg_arena_alloc(g->arena, a.s_len + 1, 1);

		if (!s)
			return rg_error_nomem(err, a.s_len);
		if (a.s_len)
			memcpy(s, from->s, a.s_len);
		a.s = s;
	}
	if (a.type == RG_ATTR_TENSOR) {
		int64_t bytes = a.t.shape.rank < 0 || a.t.shape.rank > RG_MAX_RANK ? -1 :
				rg_tensor_bytes(a.t.dtype, &a.t.shape);

		if (bytes < 0 || (bytes > 0 && !a.t.data))
			return rg_error_set(err, -EINVAL, "tensor attribute '%s' has element type %s and no "
					    "usable size", a.name, rg_dtype_name(a.t.dtype));
	}
	if (copy_list(g, &a, err))
		return err->code;
	*to = a;
	return 0;
}

static int fill_node(struct rg_graph *g, struct rg_node *n, const char *domain, const char *op_type,
		     const char *name, struct rg_error *err)
{
	n->op_type = rg_arena_strdup(g->arena, op_type);
	n->domain = rg_arena_strdup(g->arena, canonical_domain(domain));
	n->overload = "";
	n->name = name && name[0] ? rg_arena_strdup(g->arena, name) :
		  rg_arena_printf(g->arena, "%s_%d", op_type, g->n_nodes);
	if (!n->op_type || !n->domain || !n->name)
		return rg_error_nomem(err, strlen(op_type));
	return 0;
}

static int copy_io(struct rg_graph *g, const struct rg_node *n, int count, const int *from, int **to,
		   struct rg_error *err)
{
	if (count < 0 || count > RG_MAX_NODE_IO) {
		rg_error_set(err, -E2BIG, "%d inputs or outputs, at most %d are supported", count,
			     RG_MAX_NODE_IO);
		return rg_error_at(err, "node '%s'", n->name);
	}
	*to = rg_arena_alloc(g->arena, (size_t)count, sizeof(int));
	if (!*to)
		return rg_error_nomem(err, (size_t)count * sizeof(int));
	for (int i = 0; i < count; i++) {
		if (from[i] != -1 && check_value(g, from[i], err))
			return err->code;
		(*to)[i] = from[i];
	}
	return 0;
}

int rg_graph_add_node(struct rg_graph *g, const char *domain, const char *op_type, const char *name,
		      int n_in, const int *in, int n_out, const int *out,
		      int n_attrs, const struct rg_attr *attrs, struct rg_error *err)
{
	struct rg_node n = { 0 }, *p;

	if (g->depth > RG_MAX_SUBGRAPH_DEPTH) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "subgraphs are nested deeper than %d",
			     RG_MAX_SUBGRAPH_DEPTH);
		goto fail;
	}
	if (g->n_nodes >= RG_MAX_NODES) {
		rg_error_set(err, -E2BIG, "more than %d nodes in one graph", RG_MAX_NODES);
		goto fail;
	}
	if (fill_node(g, &n, domain, op_type, name, err) ||
	    copy_io(g, &n, n_in, in, &n.in, err) || copy_io(g, &n, n_out, out, &n.out, err))
		goto fail;
	n.n_in = n_in;
	n.n_out = n_out;
	n.n_attrs = n_attrs;
	n.attrs = rg_arena_alloc(g->arena, (size_t)n_attrs, sizeof(*n.attrs));
	p = rg_grow(g->nodes, &g->priv->cap_nodes, (size_t)g->n_nodes + 1, sizeof(*p));
	if (p)
		g->nodes = p;
	if (!n.attrs || !p) {
		rg_error_nomem(err, sizeof(*p) + (size_t)n_attrs * sizeof(*n.attrs));
		goto fail;
	}
	for (int i = 0; i < n_attrs; i++) {
		if (copy_attr(g, &n.attrs[i], &attrs[i], err))
			goto fail;
		if (attrs[i].g)
			attrs[i].g->outer = g;
	}
	p[g->n_nodes] = n;
	return g->n_nodes++;
fail:
	for (int i = 0; i < n_attrs; i++) {
		rg_free(attrs[i].t.data);
		rg_graph_free(attrs[i].g);
	}
	return err->code;
}
