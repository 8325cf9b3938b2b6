/* Types and shapes of a whole graph, folding integer arithmetic on the way. */
#include "graph/infer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "graph/private.h"

/* One pass over the graph; the vectors hold one node's inputs and outputs. */
struct pass {
	struct rg_graph *g;
	const struct rg_infer_options *opt;
	int64_t fold_limit_bytes;
	const struct rg_value **in;
	struct rg_tensor *in_tensors, *out;
};

static int at_node(const struct rg_node *n, struct rg_error *err)
{
	return rg_error_at(err, "node '%s' (%s)", n->name, n->op_type);
}

static bool has_subgraph(const struct rg_node *n)
{
	for (int i = 0; i < n->n_attrs; i++)
		if (n->attrs[i].g)
			return true;
	return false;
}

/* ---- which graph input must be bound ---- */

/* What sizes, scales, axes, lengths and rates have at most; a larger input is
 * data, and a plan made for one value of it would be of no use. */
#define SHAPE_LIKE 16

/*
 * Follows a value back to what is not known. When all of it comes from graph
 * inputs no larger than a shape, through values small enough to be folded, binding those makes the
 * value known: the first of them is the answer, the next comes up in the next
 * call. -1 otherwise, and when memory runs out.
 */
static int find_root(const struct pass *p, int value)
{
	const struct rg_graph *g = p->g;
	unsigned char *seen = rg_calloc((size_t)g->n_values + 1, 1);
	int *stack = rg_calloc((size_t)g->n_values + 1, sizeof(*stack));
	int n = 0, root = -1;

	if (!seen || !stack)
		goto out;
	stack[n++] = value;
	seen[value] = 1;
	while (n > 0) {
		int at = stack[--n];
		const struct rg_value *v = &g->values[at];
		const struct rg_node *node;
		int64_t bytes;

		if (v->origin != RG_CONST_NONE)
			continue;
		bytes = v->shaped ? rg_tensor_bytes(v->dtype, &v->shape) : -1;
		if (bytes < 0 || bytes > p->fold_limit_bytes) {
			root = -1;
			break;
		}
		if (v->is_input && rg_shape_count(&v->shape) > SHAPE_LIKE) {
			root = -1;
			break;
		}
		if (v->is_input) {
			root = root < 0 || at < root ? at : root;
			continue;
		}
		node = v->producer >= 0 ? &g->nodes[v->producer] : NULL;
		if (!node || node->op->flags & (RG_OP_IMPURE | RG_OP_SHAPE_ONLY) || has_subgraph(node)) {
			root = -1;
			break;
		}
		for (int i = 0; i < node->n_in; i++) {
			if (node->in[i] >= 0 && !seen[node->in[i]]) {
				seen[node->in[i]] = 1;
				stack[n++] = node->in[i];
			}
		}
	}
out:
	rg_free(seen);
	rg_free(stack);
	return root;
}

/* From now on until the model runs nothing is known of what the node makes. */
static int mark_dynamic(const struct pass *p, struct rg_node *n, const char *why, struct rg_error *err)
{
	n->dynamic = rg_arena_strdup(p->g->arena, why);
	if (!n->dynamic)
		return rg_error_nomem(err, strlen(why));
	for (int o = 0; o < n->n_out; o++) {
		struct rg_value *v = n->out[o] >= 0 ? &p->g->values[n->out[o]] : NULL;

		if (v && v->origin == RG_CONST_NONE) {
			v->dynamic = true;
			v->shaped = false;
		}
	}
	return 0;
}

static int report_need(const struct pass *p, struct rg_node *n, int input, int *need_value,
		       struct rg_error *err)
{
	int root = input >= 0 && input < n->n_in && n->in[input] >= 0 ? find_root(p, n->in[input]) : -1;
	char why[sizeof(err->message)];

	if (p->opt->dynamic == RG_DYNAMIC_ALL || (p->opt->dynamic == RG_DYNAMIC_COMPUTED && root < 0)) {
		memcpy(why, err->message, sizeof(why));
		rg_error_clear(err);
		return mark_dynamic(p, n, why, err) ? at_node(n, err) : 0;
	}
	if (need_value)
		*need_value = root;
	if (root >= 0)
		rg_error_hint(err, "give the value of '%s' with --input %s=FILE.npy", p->g->values[root].name,
			      p->g->values[root].name);
	else
		rg_error_hint(err, "shapes that depend on computed data are not supported; export the model with "
			      "fixed shapes");
	return at_node(n, err);
}

/* ---- folding ---- */

static bool can_fold(const struct pass *p, const struct rg_node *n)
{
	if (!p->opt->eval || n->op->flags & RG_OP_IMPURE || has_subgraph(n))
		return false;
	for (int i = 0; i < n->n_in && !(n->op->flags & RG_OP_SHAPE_ONLY); i++)
		if (n->in[i] >= 0 && p->g->values[n->in[i]].origin == RG_CONST_NONE)
			return false;
	for (int o = 0; o < n->n_out; o++) {
		const struct rg_tensor *t = &p->out[o];
		int64_t bytes;

		if (n->out[o] < 0)
			continue;
		bytes = rg_tensor_bytes(t->dtype, &t->shape);
		if (bytes < 0 || bytes > p->fold_limit_bytes)
			return false;
	}
	return true;
}

static int evaluate(struct pass *p, const struct rg_node *n, struct rg_error *err)
{
	for (int i = 0; i < n->n_in; i++) {
		const struct rg_value *v = n->in[i] >= 0 ? &p->g->values[n->in[i]] : NULL;

		memset(&p->in_tensors[i], 0, sizeof(p->in_tensors[i]));
		if (!v)
			continue;
		p->in_tensors[i].dtype = v->dtype;
		p->in_tensors[i].shape = v->shape;
		p->in_tensors[i].data = (void *)v->data;
	}
	for (int o = 0; o < n->n_out; o++) {
		size_t bytes;

		if (n->out[o] < 0)
			continue;
		bytes = (size_t)rg_tensor_bytes(p->out[o].dtype, &p->out[o].shape);
		p->out[o].data = rg_alloc_aligned(64, bytes ? bytes : 64);
		if (!p->out[o].data)
			return rg_error_nomem(err, bytes);
		memset(p->out[o].data, 0, bytes ? bytes : 64);
	}
	return p->opt->eval(p->opt->eval_ctx, p->g, n, p->in_tensors, p->out, err);
}

/* Outputs become constants; a node that no kernel can run stays as it is. */
static int fold(struct pass *p, const struct rg_node *n, struct rg_error *err)
{
	int rc = evaluate(p, n, err);

	for (int o = 0; o < n->n_out; o++) {
		void *data = p->out[o].data;

		p->out[o].data = NULL;
		if (n->out[o] < 0)
			continue;
		if (rc == 0)
			rc = rg_graph_add_const(p->g, n->out[o], RG_CONST_FOLDED, p->out[o].dtype,
						&p->out[o].shape, data, err);
		else
			rg_free(data);
	}
	if (rc == -ENOSYS) {
		rg_error_clear(err);
		return 0;
	}
	return rc;
}

/* ---- one node ---- */

static bool is_folded(const struct rg_graph *g, const struct rg_node *n)
{
	for (int o = 0; o < n->n_out; o++)
		if (n->out[o] >= 0 && g->values[n->out[o]].origin == RG_CONST_NONE)
			return false;
	return true;
}

static int check_output(const struct rg_node *n, int o, const struct rg_value *v, const struct rg_tensor *t,
			struct rg_error *err)
{
	char text[160];

	if (t->dtype == RG_UNDEFINED)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: output %d ('%s') is not supported", n->op_type, o,
				    v->name);
	if (t->shape.rank < 0 || t->shape.rank > RG_MAX_RANK)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: output %d ('%s') would have %d dimensions, at most "
				    "%d are supported", n->op_type, o, v->name, t->shape.rank, RG_MAX_RANK);
	if (rg_shape_count(&t->shape) < 0 ||
	    (rg_dtype_bits(t->dtype) && rg_tensor_bytes(t->dtype, &t->shape) < 0))
		return rg_error_set(err, -EINVAL, "%s: output %d ('%s') would have the impossible shape %s",
				    n->op_type, o, v->name, rg_shape_text(text, &t->shape));
	return 0;
}

/* Whether it reads what is known only while the model runs; then it is marked. */
static bool reads_dynamic(const struct pass *p, struct rg_node *n, struct rg_error *err)
{
	char why[200];

	for (int i = 0; i < n->n_in + n->n_captured; i++) {
		int at = i < n->n_in ? n->in[i] : n->captured[i - n->n_in];
		const struct rg_value *v = at >= 0 ? &p->g->values[at] : NULL;

		if (!v || !v->dynamic)
			continue;
		snprintf(why, sizeof(why), "it reads '%.120s', known only while the model runs", v->name);
		mark_dynamic(p, n, why, err);
		return true;
	}
	return false;
}

static int infer_node(struct pass *p, struct rg_node *n, int *need_value, struct rg_error *err)
{
	struct rg_infer c = { .graph = p->g, .node = n, .in = p->in, .out = p->out, .need_value = -1 };
	int rc;

	n->dynamic = NULL;
	if (p->opt->dynamic != RG_DYNAMIC_REFUSE && reads_dynamic(p, n, err))
		return err->code ? at_node(n, err) : 0;
	for (int i = 0; i < n->n_in; i++) {
		p->in[i] = n->in[i] >= 0 ? &p->g->values[n->in[i]] : NULL;
		if (p->in[i] && !p->in[i]->shaped) {
			rg_error_set(err, -EINVAL, "input %d ('%s') has no known shape", i, p->in[i]->name);
			return at_node(n, err);
		}
	}
	memset(p->out, 0, (size_t)n->n_out * sizeof(*p->out));
	rc = n->op->infer(&c, err);
	if (rc == RG_ENOTSUP_MODEL && p->g->lenient) { /* a mode of it that nobody implements */
		if (rg_node_give_up(p->g, n, err))
			return err->code;
		memset(p->out, 0, (size_t)n->n_out * sizeof(*p->out));
		rc = n->op->infer(&c, err);
	}
	if (rc == RG_ENEED_VALUE)
		return report_need(p, n, c.need_value, need_value, err);
	for (int o = 0; o < n->n_out && rc == 0; o++) {
		struct rg_value *v;

		if (n->out[o] < 0)
			continue;
		v = &p->g->values[n->out[o]];
		rc = check_output(n, o, v, &p->out[o], err);
		if (rc)
			break;
		if (v->origin != RG_CONST_NONE)
			continue;
		v->dtype = p->out[o].dtype;
		v->shape = p->out[o].shape;
		v->shaped = true;
		v->dynamic = false;
	}
	if (rc == 0 && can_fold(p, n))
		rc = fold(p, n, err);
	return rc ? at_node(n, err) : 0;
}

int rg_graph_infer(struct rg_graph *g, const struct rg_infer_options *opt, int *need_value,
		   struct rg_error *err)
{
	static const struct rg_infer_options no_options;
	struct pass p = { .g = g, .opt = opt ? opt : &no_options };
	int max_in = 1, max_out = 1, rc = 0;

	if (need_value)
		*need_value = -1;
	for (int i = 0; i < g->n_inputs; i++)
		g->values[g->inputs[i]].dynamic = g->values[g->inputs[i]].kind != RG_VALUE_TENSOR;
	p.fold_limit_bytes = p.opt->fold_limit_bytes ? p.opt->fold_limit_bytes : 64 * 1024;
	for (int i = 0; i < g->n_nodes; i++) {
		max_in = g->nodes[i].n_in > max_in ? g->nodes[i].n_in : max_in;
		max_out = g->nodes[i].n_out > max_out ? g->nodes[i].n_out : max_out;
	}
	p.in = rg_calloc((size_t)max_in, sizeof(*p.in));
	p.in_tensors = rg_calloc((size_t)max_in, sizeof(*p.in_tensors));
	p.out = rg_calloc((size_t)max_out, sizeof(*p.out));
	if (!p.in || !p.in_tensors || !p.out)
		rc = rg_error_nomem(err, (size_t)max_in * sizeof(*p.in_tensors));
	for (int i = 0; i < g->n_nodes && rc == 0; i++)
		if (!is_folded(g, &g->nodes[i]))
			rc = infer_node(&p, &g->nodes[i], need_value, err);
	rg_free(p.in);
	rg_free(p.in_tensors);
	rg_free(p.out);
	return rc;
}
