/* Joins the families of operators into one table, and what all of them share:
 * lookup, versions, default costs, helpers for inference. */
#include "graph/op.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op-families.h"

#define FAMILY(name) { rg_ops_##name, &rg_n_ops_##name }

/* A family adds its line when it exists. */
static const struct {
	const struct rg_op *ops;
	const int *n;
} families[] = {
	FAMILY(attention),
	FAMILY(contrib_fused),
	FAMILY(contrib_qattention),
	FAMILY(contrib_qgemm),
	FAMILY(contrib_quant),
	FAMILY(contrib_weights),
	FAMILY(distinct),
	FAMILY(control),
	FAMILY(text),
	FAMILY(gemm),
	FAMILY(geometry),
	FAMILY(gqa),
	FAMILY(index),
	FAMILY(linear_attention),
	FAMILY(logic),
	FAMILY(loss),
	FAMILY(math),
	FAMILY(mha),
	FAMILY(ml),
	FAMILY(move),
	FAMILY(nn),
	FAMILY(norm),
	FAMILY(own),
	FAMILY(pool),
	FAMILY(quant),
	FAMILY(random),
	FAMILY(reduce),
	FAMILY(rnn),
	FAMILY(skip_norm),
	FAMILY(signal),
	FAMILY(train),
};

enum { N_FAMILIES = sizeof(families) / sizeof(families[0]), MAX_OPS = 512 };

/* ---- lookup ---- */

static const struct rg_op *by_name[MAX_OPS];
static int n_ops;
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

static int compare(const char *domain, const char *name, const struct rg_op *op)
{
	int c = strcmp(name, op->name);

	return c ? c : strcmp(domain, op->domain);
}

static int compare_ops(const void *a, const void *b)
{
	const struct rg_op *x = *(const struct rg_op *const *)a;

	return compare(x->domain, x->name, *(const struct rg_op *const *)b);
}

static void sort_table(void)
{
	for (int f = 0; f < N_FAMILIES; f++)
		for (int i = 0; i < *families[f].n && n_ops < MAX_OPS; i++)
			by_name[n_ops++] = &families[f].ops[i];
	qsort(by_name, (size_t)n_ops, sizeof(by_name[0]), compare_ops);
}

const struct rg_op *rg_op_find(const char *domain, const char *name)
{
	int low = 0, high;

	if (strcmp(domain, "ai.onnx") == 0)
		domain = "";
	pthread_once(&sorted_once, sort_table);
	high = n_ops;
	while (low < high) {
		int mid = low + (high - low) / 2;
		int c = compare(domain, name, by_name[mid]);

		if (c == 0)
			return by_name[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

int rg_op_count(void)
{
	pthread_once(&sorted_once, sort_table);
	return n_ops;
}

const struct rg_op *rg_op_at(int i)
{
	pthread_once(&sorted_once, sort_table);
	return i >= 0 && i < n_ops ? by_name[i] : NULL;
}

int rg_op_version(const struct rg_op *op, int64_t opset)
{
	int v = 0;

	for (int i = 0; i < RG_OP_MAX_VERSIONS && op->versions[i]; i++)
		if (op->versions[i] <= opset)
			v = op->versions[i];
	return v;
}

const char *rg_op_kind_name(enum rg_op_kind k)
{
	static const char *const names[RG_KIND_COUNT] = {
		[RG_KIND_GEMM] = "gemm", [RG_KIND_CONV] = "conv", [RG_KIND_ATTENTION] = "attention",
		[RG_KIND_ELEMENTWISE] = "elementwise", [RG_KIND_NORM] = "norm", [RG_KIND_REDUCE] = "reduce",
		[RG_KIND_POOL] = "pool", [RG_KIND_RNN] = "rnn", [RG_KIND_MOVE] = "move",
		[RG_KIND_QUANT] = "quant", [RG_KIND_CONTROL] = "control", [RG_KIND_OTHER] = "other",
	};

	return (unsigned)k < RG_KIND_COUNT ? names[k] : "other";
}

/* ---- costs ---- */

/* Bytes of some tensors, a value that is named twice once; -1 unknown. With
 * very many inputs only near repeats are looked for. */
static int64_t sum_bytes(const struct rg_tensor *t, const int *value, int n)
{
	int64_t sum = 0, bytes;

	for (int i = 0; i < n; i++) {
		bool again = false;

		if (t[i].dtype == RG_UNDEFINED)
			continue;
		for (int k = i > 64 ? i - 64 : 0; k < i && !again; k++)
			again = value[k] == value[i];
		if (again)
			continue;
		bytes = rg_tensor_bytes(t[i].dtype, &t[i].shape);
		if (bytes < 0 || __builtin_add_overflow(sum, bytes, &sum))
			return -1;
	}
	return sum;
}

static void default_ops(const struct rg_op *op, const struct rg_cost_in *c, struct rg_cost *out)
{
	out->flops = out->iops = out->sfu = -1;
	if (op->kind == RG_KIND_MOVE) {
		out->flops = out->iops = out->sfu = 0;
	} else if (op->kind == RG_KIND_ELEMENTWISE && c->node->n_out > 0) {
		int64_t n = rg_shape_count(&c->out[0].shape);
		bool is_float = rg_dtype_is_float(c->out[0].dtype);

		out->flops = is_float ? n : 0;
		out->iops = is_float ? 0 : n;
		out->sfu = 0;
	}
}

void rg_op_cost(const struct rg_op *op, const struct rg_cost_in *c, struct rg_cost *out)
{
	out->read_bytes = sum_bytes(c->in, c->node->in, c->node->n_in);
	out->write_bytes = sum_bytes(c->out, c->node->out, c->node->n_out);
	if (op->flags & RG_OP_SHAPE_ONLY)
		out->read_bytes = 0;
	if (op->flags & RG_OP_VIEW && c->node->n_out == 1)
		out->read_bytes = out->write_bytes = 0;
	default_ops(op, c, out);
	if (op->cost)
		op->cost(c, out);
}

/* ---- helpers for inference ---- */

int rg_infer_fail(struct rg_infer *c, struct rg_error *err, const char *fmt, ...)
{
	char text[sizeof(err->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rg_error_set(err, -EINVAL, "%s: %s", c->node->op_type, text);
}

void rg_infer_out(struct rg_infer *c, int i, enum rg_dtype t, const struct rg_shape *s)
{
	if (i >= c->node->n_out || c->node->out[i] < 0)
		return;
	c->out[i].dtype = t;
	c->out[i].shape = *s;
}

int rg_infer_ints(struct rg_infer *c, int input, int64_t *vals, int cap, struct rg_error *err)
{
	const struct rg_value *v = input < c->node->n_in ? c->in[input] : NULL;
	int64_t n;

	if (!v)
		return rg_infer_fail(c, err, "input %d is missing", input);
	if (v->dtype != RG_I32 && v->dtype != RG_I64)
		return rg_infer_fail(c, err, "input %d ('%s') must be int32 or int64, not %s", input, v->name,
				     rg_dtype_name(v->dtype));
	if (v->origin == RG_CONST_NONE) {
		c->need_value = input;
		return rg_error_set(err, RG_ENEED_VALUE, "%s: the output shape depends on the value of input %d ('%s')",
				    c->node->op_type, input, v->name);
	}
	n = rg_shape_count(&v->shape);
	if (n < 0 || n > cap)
		return rg_infer_fail(c, err, "input %d ('%s') has %" PRId64 " elements, at most %d make sense", input,
				     v->name, n, cap);
	for (int64_t i = 0; i < n; i++)
		vals[i] = v->dtype == RG_I64 ? ((const int64_t *)v->data)[i] : ((const int32_t *)v->data)[i];
	return (int)n;
}

int rg_infer_axis(struct rg_infer *c, int64_t axis, int rank, struct rg_error *err)
{
	if (axis < -rank || axis >= rank)
		return rg_infer_fail(c, err, "axis %" PRId64 " is outside of a tensor of rank %d", axis, rank);
	return (int)(axis < 0 ? axis + rank : axis);
}

int rg_infer_same(struct rg_infer *c, struct rg_error *err)
{
	if (c->node->n_in < 1 || !c->in[0])
		return rg_infer_fail(c, err, "input 0 is missing");
	rg_infer_out(c, 0, c->in[0]->dtype, &c->in[0]->shape);
	return 0;
}

int rg_infer_broadcast(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { 0 };
	const struct rg_value *first = NULL;
	char a[160], b[160];

	for (int i = 0; i < c->node->n_in; i++) {
		const struct rg_value *v = c->in[i];

		if (!v)
			continue;
		if (first && v->dtype != first->dtype)
			return rg_infer_fail(c, err, "inputs '%s' (%s) and '%s' (%s) differ in type", first->name,
					     rg_dtype_name(first->dtype), v->name, rg_dtype_name(v->dtype));
		if (!rg_shape_broadcast(&s, &v->shape, &s))
			return rg_infer_fail(c, err, "shapes %s and %s do not broadcast", rg_shape_text(a, &s),
					     rg_shape_text(b, &v->shape));
		if (!first)
			first = v;
	}
	if (!first)
		return rg_infer_fail(c, err, "there is no input");
	rg_infer_out(c, 0, first->dtype, &s);
	return 0;
}
