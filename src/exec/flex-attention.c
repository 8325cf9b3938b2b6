/*
 * ai.onnx.preview.FlexAttention-1: attention whose scores and probabilities go
 * through subgraphs (operator document of FlexAttention-1). The products are
 * plain loops that sum in double: the operator is a preview, and its point here
 * is the right answer.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/dynamic-internal.h"
#include "graph/op.h"

struct flex {
	struct rg_tensor q, k, v;
	enum rg_dtype dtype;         /* of scores and probabilities */
	int64_t batch, heads, kv_heads, rows, cols, size, v_size;
	double scale;
};

static double number(const struct rg_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case RG_F32: return (double)((const float *)t->data)[i];
	case RG_F64: return ((const double *)t->data)[i];
	case RG_F16: return (double)rg_f16_to_f32(((const uint16_t *)t->data)[i]);
	default: return (double)rg_bf16_to_f32(((const uint16_t *)t->data)[i]);
	}
}

static void put(const struct rg_tensor *t, int64_t i, double v)
{
	switch (t->dtype) {
	case RG_F32: ((float *)t->data)[i] = (float)v; break;
	case RG_F64: ((double *)t->data)[i] = v; break;
	case RG_F16: ((uint16_t *)t->data)[i] = rg_f32_to_f16((float)v); break;
	default: ((uint16_t *)t->data)[i] = rg_f32_to_bf16((float)v); break;
	}
}

static bool is_float(enum rg_dtype t)
{
	return t == RG_F32 || t == RG_F64 || t == RG_F16 || t == RG_BF16;
}

static int read_inputs(const struct rg_site *s, struct flex *f, struct rg_error *err)
{
	const struct rg_shape *q = &f->q.shape, *k = &f->k.shape, *v = &f->v.shape;
	int64_t precision;

	if (rg_site_tensor(s, 0, &f->q, err) || rg_site_tensor(s, 1, &f->k, err) || rg_site_tensor(s, 2, &f->v, err))
		return err->code;
	if (q->rank != 4 || k->rank != 4 || v->rank != 4)
		return rg_error_set(err, -EINVAL, "Q, K and V must have rank 4, not %d, %d and %d", q->rank, k->rank,
				    v->rank);
	if (!is_float(f->q.dtype) || f->k.dtype != f->q.dtype || !is_float(f->v.dtype))
		return rg_error_set(err, -EINVAL, "Q is %s, K %s and V %s", rg_dtype_name(f->q.dtype),
				    rg_dtype_name(f->k.dtype), rg_dtype_name(f->v.dtype));
	f->batch = q->dim[0];
	f->heads = q->dim[1];
	f->rows = q->dim[2];
	f->size = q->dim[3];
	f->kv_heads = k->dim[1];
	f->cols = k->dim[2];
	f->v_size = v->dim[3];
	if (k->dim[0] != f->batch || v->dim[0] != f->batch || v->dim[1] != f->kv_heads || v->dim[2] != f->cols ||
	    k->dim[3] != f->size || f->kv_heads < 1 || f->heads % f->kv_heads)
		return rg_error_set(err, -EINVAL, "the shapes of Q, K and V do not go together");
	precision = rg_node_int(s->n, "softmax_precision", f->q.dtype == RG_F64 ? RG_F64 : RG_F32);
	f->dtype = (enum rg_dtype)precision;
	if (precision < 0 || precision >= RG_DTYPE_COUNT || !is_float(f->dtype))
		return rg_error_set(err, -EINVAL, "softmax_precision %lld is no float type", (long long)precision);
	f->scale = rg_node_attr(s->n, "scale") ? (double)rg_node_float(s->n, "scale", 1) :
		   f->size > 0 ? 1 / sqrt((double)f->size) : 1;
	return 0;
}

static struct rg_item *scores(const struct flex *f, struct rg_error *err)
{
	const struct rg_shape shape = { .rank = 4, .dim = { f->batch, f->heads, f->rows, f->cols } };
	struct rg_item *item = rg_item_new(f->dtype, &shape, 0, err);
	int64_t group = f->heads / f->kv_heads, at = 0;

	for (int64_t bh = 0; item && item->memory && bh < f->batch * f->heads; bh++) {
		int64_t kv = bh / f->heads * f->kv_heads + bh % f->heads / group;

		for (int64_t r = 0; r < f->rows; r++) {
			for (int64_t c = 0; c < f->cols; c++) {
				double sum = 0;

				for (int64_t i = 0; i < f->size; i++)
					sum += number(&f->q, (bh * f->rows + r) * f->size + i) *
					       number(&f->k, (kv * f->cols + c) * f->size + i);
				put(&item->t, at++, sum * f->scale);
			}
		}
	}
	return item;
}

/* Along the last axis, in place: the item is ours alone. */
static void softmax(const struct rg_tensor *t, int64_t rows, int64_t cols)
{
	for (int64_t r = 0; r < rows; r++) {
		double most = -INFINITY, sum = 0;

		for (int64_t c = 0; c < cols; c++)
			most = fmax(most, number(t, r * cols + c));
		for (int64_t c = 0; c < cols; c++)
			sum += exp(number(t, r * cols + c) - most);
		for (int64_t c = 0; c < cols; c++)
			put(t, r * cols + c, exp(number(t, r * cols + c) - most) / sum);
	}
}

/* Runs the subgraph of an attribute on the item, which it takes; without one the
 * item comes back. What comes back is nobody else's. */
static struct rg_item *modify(const struct rg_site *s, const char *attr, struct rg_item *item, struct rg_error *err)
{
	const struct rg_attr *a = rg_node_attr(s->n, attr);
	struct rg_item *out = NULL;
	struct rg_body *b;

	if (!item || !a)
		return item;
	b = rg_site_body(s, attr, err);
	if (!b || rg_body_graph(b)->n_outputs != 1) {
		if (b)
			rg_error_set(err, -EINVAL, "%s must have one output", attr);
		rg_item_unref(item);
		return NULL;
	}
	rg_item_ref(item);
	if (rg_body_run(s, b, 1, &item, &out, err) == 0 &&
	    (out->kind != RG_ITEM_TENSOR || out->t.dtype != item->t.dtype ||
	     !rg_shape_equal(&out->t.shape, &item->t.shape))) {
		rg_error_set(err, -EINVAL, "%s changes the type or the shape", attr);
		rg_item_unref(out);
		out = NULL;
	}
	rg_item_unref(item);
	if (out && (out->refs > 1 || !out->memory)) { /* a constant, say */
		struct rg_item *copy = rg_item_copy(&out->t, err);

		rg_item_unref(out);
		out = copy;
	}
	return out;
}

static struct rg_item *weigh(const struct flex *f, const struct rg_tensor *probs, struct rg_error *err)
{
	const struct rg_shape shape = { .rank = 4, .dim = { f->batch, f->heads, f->rows, f->v_size } };
	struct rg_item *item = rg_item_new(f->q.dtype, &shape, 0, err);
	int64_t group = f->heads / f->kv_heads, at = 0;

	for (int64_t bh = 0; item && item->memory && bh < f->batch * f->heads; bh++) {
		int64_t kv = bh / f->heads * f->kv_heads + bh % f->heads / group;

		for (int64_t r = 0; r < f->rows; r++) {
			for (int64_t i = 0; i < f->v_size; i++) {
				double sum = 0;

				for (int64_t c = 0; c < f->cols; c++)
					sum += number(probs, (bh * f->rows + r) * f->cols + c) *
					       number(&f->v, (kv * f->cols + c) * f->v_size + i);
				put(&item->t, at++, sum);
			}
		}
	}
	return item;
}

int rg_flex_attention_run(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *item, *y;
	struct flex f = { 0 };

	for (int k = 0; k < 3; k++)
		if (!rg_site_has(s, k))
			return rg_error_set(err, -EINVAL, "input %d is missing", k);
	if (read_inputs(s, &f, err))
		return err->code;
	item = modify(s, "score_mod", scores(&f, err), err);
	if (!item)
		return err->code;
	if (item->memory) /* without elements the dimensions may be as large as they like */
		softmax(&item->t, f.batch * f.heads * f.rows, f.cols);
	item = modify(s, "prob_mod", item, err);
	if (!item)
		return err->code;
	y = weigh(&f, &item->t, err);
	rg_item_unref(item);
	return rg_site_give(s, 0, y, err);
}
