/* Checks a graph and completes it: one producer a name, no cycle, nodes sorted,
 * operators bound. Nothing here recurses but the descent into subgraphs, whose
 * depth is bounded. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/own.h"
#include "graph/private.h"

/* ---- producers ---- */

static int set_producers(struct rg_graph *g, struct rg_error *err)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct rg_node *n = &g->nodes[i];

		for (int o = 0; o < n->n_out; o++) {
			struct rg_value *v;

			if (n->out[o] < 0)
				continue;
			v = &g->values[n->out[o]];
			if (v->producer >= 0)
				rg_error_set(err, -EINVAL, "value '%s' is produced by two nodes, '%s' and '%s'",
					     v->name, g->nodes[v->producer].name, n->name);
			else if (v->origin != RG_CONST_NONE)
				rg_error_set(err, -EINVAL, "value '%s' is an initialiser and also an output of "
					     "node '%s'", v->name, n->name);
			else if (v->is_input)
				rg_error_set(err, -EINVAL, "value '%s' is a graph input and also an output of "
					     "node '%s'", v->name, n->name);
			if (err->code)
				return rg_error_hint(err, "the file is damaged; export the model again");
			v->producer = i;
		}
	}
	return 0;
}

/* Inputs that have a value are none here: initialisers that are listed as inputs, too. */
static void drop_initialised_inputs(struct rg_graph *g)
{
	int kept = 0;

	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_value *v = &g->values[g->inputs[i]];

		if (v->origin != RG_CONST_NONE) {
			v->is_input = false;
			v->was_input = true;
		} else {
			g->inputs[kept++] = g->inputs[i];
		}
	}
	g->n_inputs = kept;
}

/* ---- Constant nodes ---- */

static void *copy_data(const void *from, size_t size_bytes)
{
	void *p = rg_alloc_aligned(64, size_bytes);

	if (p && size_bytes)
		memcpy(p, from, size_bytes);
	return p;
}

static int constant_error(const struct rg_node *n, struct rg_error *err)
{
	if (n->n_attrs > 0)
		rg_error_set(err, RG_ENOTSUP_MODEL, "Constant node '%s' gives its value as '%s', which is not "
			     "supported", n->name, n->attrs[0].name);
	else
		rg_error_set(err, -EINVAL, "Constant node '%s' has no value", n->name);
	return rg_error_hint(err, "value, value_float(s), value_int(s) and value_string(s) are supported");
}

/* A block of its own: pointers, and the characters behind them. */
static void *copy_strings(const char *const *from, int n)
{
	const int64_t count = n;
	void *p = rg_tensor_copy_data(&(struct rg_tensor){ RG_STRING, rg_shape_of(1, &count), (void *)from });

	return p || n > 0 ? p : rg_alloc_aligned(64, 64);
}

/* The value of a Constant node becomes data of its output. */
static int take_constant(struct rg_graph *g, struct rg_node *n, struct rg_error *err)
{
	struct rg_attr *a = n->n_attrs > 0 ? &n->attrs[0] : NULL;
	struct rg_shape scalar = { 0 }, list = { .rank = 1, .dim = { a ? a->count : 0 } };
	const struct rg_shape *shape = &list;
	enum rg_dtype type = RG_F32;
	void *data;

	if (n->n_out != 1 || n->out[0] < 0)
		return rg_error_set(err, -EINVAL, "Constant node '%s' needs one output", n->name);
	if (n->n_in != 0)
		return rg_error_set(err, -EINVAL, "Constant node '%s' has inputs", n->name);
	if (n->n_attrs > 1)
		return rg_error_set(err, -EINVAL, "Constant node '%s' has more than one value", n->name);
	if (!a)
		return constant_error(n, err);
	g->values[n->out[0]].producer = -1;
	if (a->type == RG_ATTR_TENSOR && strcmp(a->name, "value") == 0) {
		data = a->t.data;
		a->t.data = NULL;
		return rg_graph_add_const(g, n->out[0], RG_CONST_NODE, a->t.dtype, &a->t.shape, data, err);
	}
	if (a->type == RG_ATTR_FLOAT && strcmp(a->name, "value_float") == 0) {
		shape = &scalar;
		data = copy_data(&a->f, sizeof(a->f));
	} else if (a->type == RG_ATTR_INT && strcmp(a->name, "value_int") == 0) {
		shape = &scalar;
		type = RG_I64;
		data = copy_data(&a->i, sizeof(a->i));
	} else if (a->type == RG_ATTR_FLOATS && strcmp(a->name, "value_floats") == 0) {
		data = copy_data(a->floats, (size_t)a->count * sizeof(*a->floats));
	} else if (a->type == RG_ATTR_INTS && strcmp(a->name, "value_ints") == 0) {
		type = RG_I64;
		data = copy_data(a->ints, (size_t)a->count * sizeof(*a->ints));
	} else if (a->type == RG_ATTR_STRING && strcmp(a->name, "value_string") == 0) {
		if (strlen(a->s) != a->s_len)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "Constant node '%s': its string holds a NUL byte",
					    n->name);
		shape = &scalar;
		type = RG_STRING;
		data = copy_strings(&a->s, 1);
	} else if (a->type == RG_ATTR_STRINGS && strcmp(a->name, "value_strings") == 0) {
		type = RG_STRING;
		data = copy_strings(a->strings, a->count);
	} else {
		return constant_error(n, err);
	}
	if (!data)
		return rg_error_nomem(err, (unsigned long)list.dim[0] * 8);
	return rg_graph_add_const(g, n->out[0], RG_CONST_NODE, type, shape, data, err);
}

static bool is_constant(const struct rg_node *n)
{
	return n->domain[0] == '\0' && strcmp(n->op_type, "Constant") == 0;
}

static int take_constants(struct rg_graph *g, struct rg_error *err)
{
	int kept = 0, rc = 0;

	for (int i = 0; i < g->n_nodes; i++) {
		struct rg_node n = g->nodes[i];

		if (rc == 0 && is_constant(&n)) {
			rc = take_constant(g, &n, err);
			if (rc == 0) {
				rg_graph_drop_attrs(&n);
				continue;
			}
		}
		/* After an error the rest is kept, so that it is freed once. */
		for (int o = 0; o < n.n_out; o++)
			if (n.out[o] >= 0 && g->values[n.out[o]].producer == i)
				g->values[n.out[o]].producer = kept;
		g->nodes[kept++] = n;
	}
	g->n_nodes = kept;
	return rc;
}

/* ---- uses ---- */

/* A value that nothing in this graph makes: outside a main graph it may come
 * from the enclosing one, which then must have it. */
static int resolve_outer(struct rg_graph *g, int value, struct rg_error *err)
{
	struct rg_value *v = &g->values[value];

	if (v->producer >= 0 || v->is_input || v->from_outer || v->origin != RG_CONST_NONE)
		return 0;
	if (!g->outer)
		return -ENOENT;
	if (rg_graph_value(g->outer, v->name, err) < 0)
		return err->code;
	v->from_outer = true;
	return 0;
}

static int check_uses(struct rg_graph *g, struct rg_error *err)
{
	int rc;

	for (int i = 0; i < g->n_nodes; i++) {
		struct rg_node *n = &g->nodes[i];

		for (int k = 0; k < n->n_in; k++) {
			if (n->in[k] < 0)
				continue;
			rc = resolve_outer(g, n->in[k], err);
			if (rc == -ENOENT) {
				rg_error_set(err, -EINVAL, "node '%s' (%s) reads '%s' as input %d, which nothing "
					     "produces", n->name, n->op_type, g->values[n->in[k]].name, k);
				return rg_error_hint(err, "the file is damaged; export the model again");
			}
			if (rc)
				return rc;
			g->values[n->in[k]].n_consumers++;
		}
	}
	for (int i = 0; i < g->n_outputs; i++) {
		rc = resolve_outer(g, g->outputs[i], err);
		if (rc == -ENOENT) {
			rg_error_set(err, -EINVAL, "nothing produces the graph output '%s'",
				     g->values[g->outputs[i]].name);
			return rg_error_hint(err, "the file is damaged; export the model again");
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- subgraphs: what they capture counts as an input of their node ---- */

struct captures {
	int *values;    /* all of them, node by node */
	int *first;     /* n_nodes + 1 offsets into values */
	size_t n, cap;
};

static int add_capture(struct rg_graph *g, const struct rg_node *n, const struct rg_value *inner,
		       struct captures *c, struct rg_error *err)
{
	int at = rg_graph_find_value(g, inner->name), rc, *p;

	rc = resolve_outer(g, at, err);
	if (rc == -ENOENT) {
		rg_error_set(err, -EINVAL, "a subgraph of node '%s' (%s) reads '%s', which nothing produces",
			     n->name, n->op_type, inner->name);
		return rg_error_hint(err, "the file is damaged; export the model again");
	}
	if (rc)
		return rc;
	p = rg_grow(c->values, &c->cap, c->n + 1, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, (c->n + 1) * sizeof(*p));
	c->values = p;
	p[c->n++] = at;
	g->values[at].n_consumers++;
	return 0;
}

static int keep_captures(struct rg_graph *g, struct rg_node *n, const struct captures *c, int first,
			 struct rg_error *err)
{
	size_t count = c->n - (size_t)first;

	n->n_captured = 0;
	n->captured = NULL;
	if (count == 0)
		return 0;
	n->captured = rg_arena_alloc(g->arena, count, sizeof(*n->captured));
	if (!n->captured)
		return rg_error_nomem(err, count * sizeof(*n->captured));
	memcpy(n->captured, c->values + first, count * sizeof(*n->captured));
	n->n_captured = (int)count;
	return 0;
}

static int finish_subgraphs(struct rg_graph *g, struct captures *c, struct rg_error *err)
{
	c->first = rg_calloc((size_t)g->n_nodes + 1, sizeof(*c->first));
	if (!c->first)
		return rg_error_nomem(err, (size_t)g->n_nodes * sizeof(*c->first));
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		for (int a = 0; a < n->n_attrs; a++) {
			struct rg_graph *sub = n->attrs[a].g;

			if (!sub)
				continue;
			if (rg_graph_finish(sub, err)) {
				rg_error_at(err, "node '%s' attribute '%s'", n->name, n->attrs[a].name);
				return err->code;
			}
			for (int v = 0; v < sub->n_values; v++)
				if (sub->values[v].from_outer && add_capture(g, n, &sub->values[v], c, err))
					return err->code;
		}
		if (c->n > INT32_MAX)
			return rg_error_set(err, -E2BIG, "too many values are used by subgraphs");
		c->first[i + 1] = (int)c->n;
		if (keep_captures(g, &g->nodes[i], c, c->first[i], err))
			return err->code;
	}
	return 0;
}

/* ---- order ---- */

struct frame {
	int node, next; /* next dependency to look at */
};

enum { NEW, OPEN, DONE };

struct sorter {
	const struct rg_graph *g;
	const struct captures *c;
	unsigned char *state;
	struct frame *stack; /* at most one frame a node */
	int *order, n_order;
};

/* The k-th dependency of a node: a node index, -1 for none, -2 past the end. */
static int dependency(const struct sorter *s, int node, int k)
{
	const struct rg_node *n = &s->g->nodes[node];
	int value;

	if (k < n->n_in) {
		value = n->in[k];
	} else {
		k += s->c->first[node] - n->n_in;
		if (k >= s->c->first[node + 1])
			return -2;
		value = s->c->values[k];
	}
	return value < 0 ? -1 : s->g->values[value].producer;
}

/* Depth first from one node, producers before it; a node met while it is still
 * open closes a cycle. In a file that is in order already, every producer is
 * done when its reader comes, so the order stays as it is. */
static int visit(struct sorter *s, int root, struct rg_error *err)
{
	int depth = 0;

	if (s->state[root] == DONE)
		return 0;
	s->stack[depth++] = (struct frame){ root, 0 };
	s->state[root] = OPEN;
	while (depth > 0) {
		struct frame *f = &s->stack[depth - 1];
		int dep = dependency(s, f->node, f->next++);

		if (dep == -2) {
			s->state[f->node] = DONE;
			s->order[s->n_order++] = f->node;
			depth--;
		} else if (dep >= 0 && s->state[dep] == OPEN) {
			rg_error_set(err, -EINVAL, "the graph has a cycle: node '%s' (%s) depends on its own output",
				     s->g->nodes[dep].name, s->g->nodes[dep].op_type);
			return rg_error_hint(err, "the file is damaged; export the model again");
		} else if (dep >= 0 && s->state[dep] == NEW) {
			s->state[dep] = OPEN;
			s->stack[depth++] = (struct frame){ dep, 0 };
		}
	}
	return 0;
}

static void reorder(struct rg_graph *g, const int *order, struct rg_node *sorted)
{
	for (int i = 0; i < g->n_nodes; i++)
		sorted[i] = g->nodes[order[i]];
	for (int i = 0; i < g->n_nodes; i++) {
		g->nodes[i] = sorted[i];
		for (int o = 0; o < sorted[i].n_out; o++)
			if (sorted[i].out[o] >= 0)
				g->values[sorted[i].out[o]].producer = i;
	}
}

static int sort_nodes(struct rg_graph *g, const struct captures *c, struct rg_error *err)
{
	size_t n = (size_t)g->n_nodes;
	struct sorter s = { .g = g, .c = c };
	struct rg_node *sorted;
	int rc = 0;

	s.state = rg_calloc(n + 1, 1);
	s.stack = rg_calloc(n + 1, sizeof(*s.stack));
	s.order = rg_calloc(n + 1, sizeof(*s.order));
	sorted = rg_calloc(n + 1, sizeof(*sorted));
	if (!s.state || !s.stack || !s.order || !sorted)
		rc = rg_error_nomem(err, n * sizeof(*sorted));
	for (int i = 0; i < g->n_nodes && rc == 0; i++)
		rc = visit(&s, i, err);
	if (rc == 0)
		reorder(g, s.order, sorted);
	rg_free(s.state);
	rg_free(s.stack);
	rg_free(s.order);
	rg_free(sorted);
	return rc;
}

/* ---- operators ---- */

/* ONNX Runtime's own operators all have version 1, whatever number of the domain
 * a file imports. */
static bool is_contrib(const struct rg_node *n)
{
	return strcmp(n->domain, "com.microsoft") == 0;
}

/* Nodes that passes made: no file imports their domain. */
static bool is_own(const struct rg_node *n)
{
	return strcmp(n->domain, RG_OWN_DOMAIN) == 0;
}

static int bind_unknown(const struct rg_node *n, int64_t opset, struct rg_error *err)
{
	if (is_contrib(n)) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "operator %s.%s of node '%s' is not supported", n->domain,
			     n->op_type, n->name);
		return rg_error_hint(err, "it belongs to ONNX Runtime, whose optimiser writes it; export the model "
				     "without that optimisation");
	}
	if (n->domain[0]) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "operator %s.%s (opset %" PRId64 ") of node '%s' is not "
			     "supported", n->domain, n->op_type, opset, n->name);
		return rg_error_hint(err, "it is not a standard ONNX operator; export the model without '%s', "
				     "or before it was optimised for another runtime", n->domain);
	}
	rg_error_set(err, RG_ENOTSUP_MODEL, "operator %s (opset %" PRId64 ") of node '%s' is not supported",
		     n->op_type, opset, n->name);
	return rg_error_hint(err, "replace it in the model by supported operators");
}

/* The oldest and newest opset at which the implemented versions apply. */
static void supported_opsets(const struct rg_op *op, int *low, int *high)
{
	*low = op->supported_from;
	*high = RG_ONNX_OPSET_NEWEST;
	for (int i = 0; i < RG_OP_MAX_VERSIONS && op->versions[i]; i++) {
		if (op->versions[i] > op->supported_to) {
			*high = op->versions[i] - 1;
			break;
		}
	}
}

static int bind_operator(const struct rg_graph *g, struct rg_node *n, struct rg_error *err)
{
	int64_t opset = is_contrib(n) || is_own(n) ? 1 : n->opset ? n->opset : rg_graph_opset(g, n->domain);
	const struct rg_op *op = rg_op_find(n->domain, n->op_type);
	int low, high;

	if (opset == 0 && n->domain[0] == '\0') {
		rg_error_set(err, -EINVAL, "the model imports no opset of the standard domain, which node '%s' (%s) "
			     "needs", n->name, n->op_type);
		return rg_error_hint(err, "the file is damaged; export the model again");
	}
	if (!op)
		return bind_unknown(n, opset, err);
	n->op = op;
	n->version = rg_op_version(op, opset);
	if (n->version == 0) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "operator %s of node '%s' came with opset %d, but the model "
			     "is of opset %" PRId64, n->op_type, n->name, op->versions[0], opset);
		return rg_error_hint(err, "export the model with opset %d or newer", op->versions[0]);
	}
	if (n->version < op->supported_from || n->version > op->supported_to) {
		supported_opsets(op, &low, &high);
		rg_error_set(err, RG_ENOTSUP_MODEL, "operator %s version %d (opset %" PRId64 ") of node '%s' is not "
			     "supported, versions %d to %d are", n->op_type, n->version, opset, n->name,
			     op->supported_from, op->supported_to);
		return rg_error_hint(err, "export the model with an opset from %d to %d", low, high);
	}
	if (n->n_in < op->min_in || (op->max_in >= 0 && n->n_in > op->max_in) ||
	    n->n_out < op->min_out || (op->max_out >= 0 && n->n_out > op->max_out))
		return rg_error_set(err, -EINVAL, "node '%s' (%s) has %d inputs and %d outputs, which the operator "
				    "does not allow", n->name, n->op_type, n->n_in, n->n_out);
	for (int i = 0; i < op->min_in; i++)
		if (n->in[i] < 0)
			return rg_error_set(err, -EINVAL, "node '%s' (%s) lacks input %d", n->name, n->op_type, i);
	return rg_graph_check_attrs(n, err);
}

/* In a lenient graph what cannot run becomes a node that says so. */
static int bind_node(const struct rg_graph *g, struct rg_node *n, struct rg_error *err)
{
	const struct rg_graph *top = g;
	int rc = bind_operator(g, n, err);

	while (top->outer)
		top = top->outer;
	if (rc != RG_ENOTSUP_MODEL || !top->lenient)
		return rc;
	return rg_node_give_up(g, n, err);
}

int rg_node_give_up(const struct rg_graph *g, struct rg_node *n, struct rg_error *err)
{
	n->unsupported = rg_arena_strdup(g->arena, err->message);
	if (!n->unsupported)
		return rg_error_nomem(err, strlen(err->message));
	rg_error_clear(err);
	n->op = &rg_op_unsupported;
	return 0;
}

static int check_opsets(const struct rg_graph *g, struct rg_error *err)
{
	int64_t opset = rg_graph_opset(g, "");

	if (opset <= RG_ONNX_OPSET_NEWEST)
		return 0;
	rg_error_set(err, RG_ENOTSUP_MODEL, "the model is of opset %" PRId64 ", the newest known is %d", opset,
		     RG_ONNX_OPSET_NEWEST);
	return rg_error_hint(err, "export the model with opset %d or older", RG_ONNX_OPSET_NEWEST);
}

int rg_graph_finish(struct rg_graph *g, struct rg_error *err)
{
	struct captures c = { 0 };
	int rc;

	if (g->priv->finished)
		return 0;
	rg_error_clear(err);
	rc = check_opsets(g, err);
	if (rc == 0)
		rc = set_producers(g, err);
	if (rc == 0)
		rc = take_constants(g, err);
	if (rc == 0) {
		drop_initialised_inputs(g);
		rc = finish_subgraphs(g, &c, err);
	}
	if (rc == 0)
		rc = check_uses(g, err);
	if (rc == 0)
		rc = sort_nodes(g, &c, err);
	for (int i = 0; i < g->n_nodes && rc == 0; i++)
		rc = bind_node(g, &g->nodes[i], err);
	rg_free(c.values);
	rg_free(c.first);
	g->priv->finished = rc == 0;
	return rc;
}

int rg_graph_drop_nodes(struct rg_graph *g, const unsigned char *gone, int n, struct rg_error *err)
{
	struct captures c = { 0 };
	int kept = 0, rc;

	for (int i = 0; i < g->n_nodes; i++) {
		if (i < n && gone[i])
			rg_graph_drop_attrs(&g->nodes[i]);
		else
			g->nodes[kept++] = g->nodes[i];
	}
	g->n_nodes = kept;
	for (int v = 0; v < g->n_values; v++) {
		g->values[v].producer = -1;
		g->values[v].n_consumers = 0;
	}
	for (int i = 0; i < g->n_nodes; i++)
		for (int o = 0; o < g->nodes[i].n_out; o++)
			if (g->nodes[i].out[o] >= 0)
				g->values[g->nodes[i].out[o]].producer = i;
	rc = finish_subgraphs(g, &c, err);
	if (rc == 0)
		rc = check_uses(g, err);
	if (rc == 0)
		rc = sort_nodes(g, &c, err);
	for (int i = 0; i < g->n_nodes && rc == 0; i++)
		if (!g->nodes[i].op)
			rc = bind_node(g, &g->nodes[i], err);
	rg_free(c.values);
	rg_free(c.first);
	return rc;
}
