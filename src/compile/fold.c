/*
 * Constant folding, with the reference kernels as the only arithmetic.
 *
 * A result of up to 1 MiB is always kept. A larger one is kept only when it is
 * not larger than what it was computed from: folding must not blow a model up
 * (an expanded mask, weights that the file holds as int8).
 */
#include "compile/fold.h"

#include <string.h>

#include "base/alloc.h"
#include "compile/branch.h"
#include "graph/infer.h"
#include "kernels/kernel.h"

#define SMALL_BYTES ((int64_t)1 << 20)

/* ---- one node, through a kernel ---- */

static int take_memory(size_t size_bytes, void **out, struct rg_error *err)
{
	*out = NULL;
	if (size_bytes == 0)
		return 0;
	*out = rg_alloc_aligned(64, size_bytes);
	return *out ? 0 : rg_error_nomem(err, size_bytes);
}

static int eval_node(void *ctx, const struct rg_graph *g, const struct rg_node *node,
		     const struct rg_tensor *in, struct rg_tensor *out, struct rg_error *err)
{
	struct rg_call call = { .node = node, .in = in, .out = out, .text = g->arena };
	const struct rg_kernel *k = rg_kernel_find(node->domain, node->op_type, "ref");
	void *prepared = NULL, *scratch = NULL;
	int rc;

	if (!k || (k->supports && !k->supports(&call)))
		k = rg_kernel_select(&call, 0);
	if (!k)
		return -ENOSYS;
	rc = take_memory(k->prepared_bytes ? k->prepared_bytes(&call) : 0, &prepared, err);
	if (!rc)
		rc = take_memory(k->scratch_bytes ? k->scratch_bytes(&call, 1) : 0, &scratch, err);
	if (!rc && prepared)
		rc = k->prepare(&call, prepared, err);
	call.prepared = prepared;
	call.scratch = scratch;
	if (!rc)
		rc = k->run(&call, &rg_par_serial, err);
	rg_free(prepared);
	rg_free(scratch);
	return rc;
}

/* ---- inputs whose value decides a shape ---- */

static int bind_input(struct rg_graph *g, int value, const struct rg_plan_options *opt, struct rg_error *err)
{
	const char *name = g->values[value].name;
	const struct rg_tensor *t = opt->input_value ? opt->input_value(opt->input_ctx, name) : NULL;
	char want[160], have[160];
	struct rg_shape shape;
	int64_t bytes;
	void *copy;

	if (!t)
		return err->code; /* inference has said what it needs */
	rg_error_clear(err);
	shape = g->values[value].shape;
	if (t->dtype != g->values[value].dtype || !rg_shape_equal(&t->shape, &shape))
		return rg_error_set(err, -EINVAL, "the value given for input '%s' is %s %s, the model takes "
				    "%s %s",
				    name, rg_dtype_name(t->dtype), rg_shape_text(have, &t->shape),
				    rg_dtype_name(g->values[value].dtype), rg_shape_text(want, &shape));
	bytes = rg_tensor_bytes(t->dtype, &shape);
	if (bytes < 0)
		return rg_error_set(err, -EOVERFLOW, "the size of input '%s' overflows", name);
	copy = rg_tensor_copy_data(t);
	if (bytes && !copy)
		return rg_error_nomem(err, (size_t)bytes);
	return rg_graph_add_const(g, value, RG_CONST_BOUND, t->dtype, &shape, copy, err);
}

static int infer(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err)
{
	const struct rg_infer_options io = { .eval = eval_node, .fold_limit_bytes = SMALL_BYTES,
					    .dynamic = opt->any_value ? RG_DYNAMIC_ALL : RG_DYNAMIC_COMPUTED };
	int need = -1, rc;

	/* Each turn binds one more input, so this ends. */
	while ((rc = rg_graph_infer(g, &io, &need, err)) == RG_ENEED_VALUE) {
		if (need < 0) {
			err->code = RG_ENOTSUP_MODEL;
			return err->code;
		}
		rc = bind_input(g, need, opt, err);
		if (rc)
			return rc;
	}
	return rc;
}

/* ---- larger constants ---- */

static bool is_const(const struct rg_graph *g, int value)
{
	return g->values[value].origin != RG_CONST_NONE;
}

static bool has_subgraph(const struct rg_node *n)
{
	int i;

	for (i = 0; i < n->n_attrs; i++)
		if (n->attrs[i].g)
			return true;
	return false;
}

/* Adds up the bytes of a node's values; -1 when one has no size. */
static int64_t sum_bytes(const struct rg_graph *g, const int *values, int n)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < n; i++) {
		const struct rg_value *v = values[i] >= 0 ? &g->values[values[i]] : NULL;
		int64_t bytes = v ? rg_tensor_bytes(v->dtype, &v->shape) : 0;

		if (bytes < 0 || __builtin_add_overflow(sum, bytes, &sum))
			return -1;
	}
	return sum;
}

static bool worth_folding(const struct rg_graph *g, const struct rg_node *n)
{
	int64_t in_bytes, out_bytes;
	bool pending = false;
	int i;

	if (n->op->flags & RG_OP_IMPURE || has_subgraph(n) || n->dynamic)
		return false;
	for (i = 0; i < n->n_in; i++)
		if (n->in[i] >= 0 && !is_const(g, n->in[i]))
			return false;
	for (i = 0; i < n->n_out; i++)
		if (n->out[i] >= 0 && !is_const(g, n->out[i]))
			pending = true;
	in_bytes = sum_bytes(g, n->in, n->n_in);
	out_bytes = sum_bytes(g, n->out, n->n_out);
	if (!pending || in_bytes < 0 || out_bytes < 0)
		return false;
	return out_bytes <= SMALL_BYTES || out_bytes <= in_bytes;
}

static struct rg_tensor tensor_of(const struct rg_graph *g, int value)
{
	struct rg_tensor t = { 0 };

	if (value >= 0) {
		t.dtype = g->values[value].dtype;
		t.shape = g->values[value].shape;
		t.data = (void *)g->values[value].data;
	}
	return t;
}

static int fold_node(struct rg_graph *g, const struct rg_node *n, struct rg_error *err)
{
	struct rg_tensor *t = rg_calloc((size_t)n->n_in + (size_t)n->n_out, sizeof(*t)), *out = t + n->n_in;
	int i, rc = 0;

	if (!t)
		return rg_error_nomem(err, sizeof(*t));
	for (i = 0; i < n->n_in; i++)
		t[i] = tensor_of(g, n->in[i]);
	for (i = 0; i < n->n_out; i++) {
		size_t bytes;

		if (n->out[i] < 0)
			continue;
		out[i] = tensor_of(g, n->out[i]);
		out[i].data = NULL; /* a sibling may be constant already: it is computed again */
		bytes = (size_t)rg_tensor_bytes(out[i].dtype, &out[i].shape);
		out[i].data = rg_alloc_aligned(64, bytes ? bytes : 64);
		if (!out[i].data) {
			rc = rg_error_nomem(err, bytes);
			break;
		}
		memset(out[i].data, 0, bytes ? bytes : 64);
	}
	if (!rc)
		rc = eval_node(NULL, g, n, t, out, err);
	for (i = 0; i < n->n_out; i++) {
		if (!rc && n->out[i] >= 0 && !is_const(g, n->out[i]))
			rc = rg_graph_add_const(g, n->out[i], RG_CONST_FOLDED, out[i].dtype, &out[i].shape,
						out[i].data, err);
		else
			rg_free(out[i].data);
	}
	rg_free(t);
	if (rc == -ENOSYS) { /* no kernel: selection will say so if the node is needed */
		rg_error_clear(err);
		return 0;
	}
	return rc ? rg_error_at(err, "node '%s' (%s)", n->name, n->op_type) : 0;
}

/* Branches that become known are inlined, which makes more known. */
static int infer_all(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err)
{
	int rc, inlined;

	do {
		rc = infer(g, opt, err);
		inlined = rc || opt->keep_branches ? 0 : rg_inline_branches(g, err);
	} while (!rc && inlined > 0);
	return rc ? rc : inlined;
}

int rg_fold_graph(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err)
{
	int i, rc = infer_all(g, opt, err);

	for (i = 0; i < g->n_nodes && !rc; i++)
		if (worth_folding(g, &g->nodes[i]))
			rc = fold_node(g, &g->nodes[i], err);
	return rc;
}
