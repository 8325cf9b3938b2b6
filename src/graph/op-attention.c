/*
 * Attention, RotaryEmbedding and TensorScatter of the standard domain: types,
 * shapes, costs.
 *
 * Costs: attention as rg_attention_cost says. RotaryEmbedding: 6 flops a pair
 * of rotated elements. TensorScatter moves data.
 */
#include "graph/op-attention.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

/* ---- shared ---- */

void rg_shapes_of_infer(const struct rg_infer *c, struct rg_in_shapes *out)
{
	for (int i = 0; i < RG_SHAPES_MAX; i++)
		out->at[i] = i < c->node->n_in && c->in[i] ? &c->in[i]->shape : NULL;
}

void rg_shapes_of_tensors(const struct rg_node *n, const struct rg_tensor *in, struct rg_in_shapes *out)
{
	for (int i = 0; i < RG_SHAPES_MAX; i++)
		out->at[i] = i < n->n_in && in[i].dtype != RG_UNDEFINED ? &in[i].shape : NULL;
}

int rg_attention_fail(const struct rg_node *n, struct rg_error *err, const char *fmt, ...)
{
	char text[sizeof(err->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rg_error_set(err, -EINVAL, "%s: %s", n->op_type, text);
}

int rg_attention_divide(const struct rg_node *n, const char *what, int64_t width, int64_t parts, int64_t *size,
			struct rg_error *err)
{
	if (parts < 1 || width < parts || width % parts)
		return rg_attention_fail(n, err, "%s of %" PRId64 " elements does not split into %" PRId64 " heads", what,
					 width, parts);
	*size = width / parts;
	return 0;
}

/* Keys that all rows of one head see together. */
static int64_t count_pairs(const struct rg_attention *a, const struct rg_attention_work *w)
{
	int64_t sum = 0;

	if (!w->causal)
		return rg_cost_mul(a->q_seq, a->total);
	if (w->window < 0 && a->total == rg_cost_add(a->past, a->q_seq)) {
		/* past + 1 to past + q_seq: an arithmetic series */
		sum = rg_cost_mul(a->q_seq, rg_cost_add(a->q_seq, 1));
		return sum < 0 ? -1 : rg_cost_add(sum / 2, rg_cost_mul(a->q_seq, a->past));
	}
	if (a->q_seq > INT32_MAX)
		return -1;
	for (int64_t i = 0; i < a->q_seq && sum >= 0; i++) {
		int64_t seen = rg_cost_add(a->past, i + 1);

		if (seen > a->total)
			seen = a->total;
		if (w->window >= 0 && seen > w->window)
			seen = w->window;
		sum = rg_cost_add(sum, seen);
	}
	return sum;
}

void rg_attention_cost(const struct rg_attention *a, const struct rg_attention_work *w, struct rg_cost *out)
{
	int64_t pairs = rg_cost_mul(rg_cost_mul(a->batch, a->q_heads), count_pairs(a, w));
	int64_t each = rg_cost_add(rg_cost_mul(2, rg_cost_add(a->head, a->v_head)), 4 + w->mask + 2 * w->softcap);

	out->flops = rg_cost_mul(pairs, each);
	out->sfu = rg_cost_mul(pairs, 2 + w->softcap);
	out->iops = 0;
}

/* ---- Attention ---- */

static bool is_shape(const struct rg_shape *s, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return s->rank == 4 && s->dim[0] == a && s->dim[1] == b && s->dim[2] == c && s->dim[3] == d;
}

/* Q, K, V of batch x seq x (heads * head). */
static int resolve_3d(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_attention *a,
		      struct rg_error *err)
{
	a->q_heads = rg_node_int(n, "q_num_heads", 0);
	a->kv_heads = rg_node_int(n, "kv_num_heads", 0);
	a->q_seq = in->at[0]->dim[1];
	a->kv_seq = in->at[1]->dim[1];
	if (a->q_heads < 1 || a->kv_heads < 1)
		return rg_attention_fail(n, err, "inputs of rank 3 need the attributes q_num_heads and kv_num_heads");
	if (rg_attention_divide(n, "Q", in->at[0]->dim[2], a->q_heads, &a->head, err) ||
	    rg_attention_divide(n, "V", in->at[2]->dim[2], a->kv_heads, &a->v_head, err))
		return err->code;
	if (in->at[1]->dim[2] / a->kv_heads != a->head || in->at[1]->dim[2] % a->kv_heads)
		return rg_attention_fail(n, err, "the heads of Q have %" PRId64 " elements, those of K do not", a->head);
	if (in->at[2]->dim[1] != a->kv_seq)
		return rg_attention_fail(n, err, "K and V differ in length");
	return 0;
}

static int resolve_4d(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_attention *a,
		      struct rg_error *err)
{
	const struct rg_shape *q = in->at[0], *k = in->at[1], *v = in->at[2];

	a->q_heads = q->dim[1];
	a->kv_heads = k->dim[1];
	a->q_seq = q->dim[2];
	a->kv_seq = k->dim[2];
	a->head = q->dim[3];
	a->v_head = v->dim[3];
	if (a->head < 1 || k->dim[3] != a->head)
		return rg_attention_fail(n, err, "Q has heads of %" PRId64 " elements, K of %" PRId64, a->head, k->dim[3]);
	if (!is_shape(v, k->dim[0], a->kv_heads, a->kv_seq, a->v_head))
		return rg_attention_fail(n, err, "K and V differ in batch, heads or length");
	return 0;
}

int rg_attention_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_attention *out,
			 struct rg_error *err)
{
	const struct rg_shape *q = in->at[0], *k = in->at[1], *v = in->at[2], *pk = in->at[4], *pv = in->at[5];
	int rc;

	memset(out, 0, sizeof(*out));
	if (q->rank != k->rank || q->rank != v->rank || (q->rank != 3 && q->rank != 4))
		return rg_attention_fail(n, err, "Q, K and V must all have rank 3 or all rank 4, not %d, %d and %d",
					 q->rank, k->rank, v->rank);
	out->batch = q->dim[0];
	rc = q->rank == 3 ? resolve_3d(n, in, out, err) : resolve_4d(n, in, out, err);
	if (rc)
		return rc;
	if (k->dim[0] != out->batch || v->dim[0] != out->batch)
		return rg_attention_fail(n, err, "Q, K and V have batches of %" PRId64 ", %" PRId64 " and %" PRId64,
					 out->batch, k->dim[0], v->dim[0]);
	if (out->kv_heads < 1 || out->q_heads % out->kv_heads)
		return rg_attention_fail(n, err, "%" PRId64 " heads of Q do not share %" PRId64 " heads of K and V",
					 out->q_heads, out->kv_heads);
	if (!pk != !pv)
		return rg_attention_fail(n, err, "past_key and past_value must be given together");
	if (pk) {
		out->past = pk->rank == 4 ? pk->dim[2] : 0;
		if (!is_shape(pk, out->batch, out->kv_heads, out->past, out->head) ||
		    !is_shape(pv, out->batch, out->kv_heads, out->past, out->v_head))
			return rg_attention_fail(n, err, "past_key and past_value must be %" PRId64 "x%" PRId64
						 "xNx%" PRId64 " and xNx%" PRId64, out->batch, out->kv_heads,
						 out->head, out->v_head);
	}
	if (__builtin_add_overflow(out->past, out->kv_seq, &out->total))
		return rg_attention_fail(n, err, "the sequence is too long");
	return 0;
}

int rg_attention_mask(const struct rg_node *n, const struct rg_attention *a, const struct rg_shape *mask,
		      struct rg_attention_mask *out, struct rg_error *err)
{
	const int64_t want[3] = { a->batch, a->q_heads, a->q_seq };
	int64_t dim[3] = { 1, 1, 1 }, stride[3];
	char text[160];

	memset(out, 0, sizeof(*out));
	out->length = mask->rank > 0 ? mask->dim[mask->rank - 1] : 0;
	for (int d = mask->rank - 2, i = 2; d >= 0 && i >= 0; d--, i--)
		dim[i] = mask->dim[d];
	/* Version 24 says that a shorter row is padded, version 23 knows broadcasting alone. */
	out->one = out->length == 1 && n->version < 24;
	for (int i = 0; i < 3; i++)
		if (dim[i] != 1 && dim[i] != want[i])
			out->length = -1;
	if (mask->rank < 1 || mask->rank > 4 || out->length < 0 || out->length > a->total ||
	    (n->version < 24 && out->length != a->total && !out->one))
		return rg_attention_fail(n, err, "a mask of shape %s does not broadcast to %" PRId64 "x%" PRId64 "x%" PRId64
					 "x%" PRId64, rg_shape_text(text, mask), a->batch, a->q_heads, a->q_seq,
					 a->total);
	/* wraps only where another dimension is 0 and there is no element */
	stride[2] = out->length;
	stride[1] = (int64_t)((uint64_t)stride[2] * (uint64_t)dim[2]);
	stride[0] = (int64_t)((uint64_t)stride[1] * (uint64_t)dim[1]);
	out->row = dim[2] == 1 ? 0 : stride[2];
	out->head = dim[1] == 1 ? 0 : stride[1];
	out->batch = dim[0] == 1 ? 0 : stride[0];
	return 0;
}

static int check_attention_types(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *mask = rg_infer_in(c, 3);
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 2, RG_SET_FLOAT, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = rg_infer_like(c, 4, 0, err);
	if (!rc)
		rc = rg_infer_like(c, 5, 2, err);
	if (!rc && mask && !rg_in_set(mask->dtype, RG_SET_FLOAT | RG_BIT(RG_BOOL)))
		rc = rg_error_set(err, RG_ENOTSUP_MODEL, "Attention: a mask of %s is not supported, bool and floats are",
				  rg_dtype_name(mask->dtype));
	return rc;
}

static int check_attention_attrs(struct rg_infer *c, struct rg_error *err)
{
	int64_t mode = rg_node_int(c->node, "qk_matmul_output_mode", 0);
	int64_t precision = rg_node_int(c->node, "softmax_precision", RG_F32);

	if (mode < 0 || mode > 3)
		return rg_infer_fail(c, err, "qk_matmul_output_mode is %" PRId64 ", not 0 to 3", mode);
	if (!rg_in_set((enum rg_dtype)precision, RG_SET_FLOAT))
		return rg_infer_fail(c, err, "softmax_precision is %" PRId64 ", not a float type", precision);
	return 0;
}

static int infer_attention(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *lengths = rg_infer_in(c, 6);
	struct rg_attention_mask mask;
	struct rg_in_shapes in;
	struct rg_attention a;
	struct rg_shape s;
	int rc = check_attention_types(c, err);

	if (!rc)
		rc = check_attention_attrs(c, err);
	if (rc)
		return rc;
	rg_shapes_of_infer(c, &in);
	rc = rg_attention_resolve(c->node, &in, &a, err);
	if (!rc && in.at[3])
		rc = rg_attention_mask(c->node, &a, in.at[3], &mask, err);
	if (!rc && lengths)
		rc = rg_infer_type(c, 6, RG_BIT(RG_I64), err);
	if (!rc)
		rc = rg_infer_shape_is(c, 6, &(struct rg_shape){ .rank = 1, .dim = { a.batch } }, err);
	if (rc)
		return rc;
	if (lengths && in.at[4])
		return rg_infer_fail(c, err, "nonpad_kv_seqlen does not go with past_key and past_value");
	if (in.at[0]->rank == 3) {
		s = *in.at[0];
		if (__builtin_mul_overflow(a.q_heads, a.v_head, &s.dim[2]))
			return rg_infer_fail(c, err, "the output is too large");
	} else {
		s = rg_shape_of(4, (const int64_t[]){ a.batch, a.q_heads, a.q_seq, a.v_head });
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	s = rg_shape_of(4, (const int64_t[]){ a.batch, a.kv_heads, a.total, a.head });
	rg_infer_out(c, 1, c->in[0]->dtype, &s);
	s.dim[3] = a.v_head;
	rg_infer_out(c, 2, c->in[2]->dtype, &s);
	s = rg_shape_of(4, (const int64_t[]){ a.batch, a.q_heads, a.q_seq, a.total });
	rg_infer_out(c, 3, c->in[0]->dtype, &s);
	return 0;
}

static void cost_attention(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_attention a;
	struct rg_attention_work w = {
		.causal = rg_node_int(c->node, "is_causal", 0) != 0,
		.softcap = rg_node_float(c->node, "softcap", 0) > 0,
		.window = -1,
	};

	rg_shapes_of_tensors(c->node, c->in, &in);
	w.mask = in.at[3] != NULL;
	if (!rg_attention_resolve(c->node, &in, &a, &err))
		rg_attention_cost(&a, &w, out);
}

/* ---- RotaryEmbedding ---- */

/* The standard operator has (X, cos, sin, position_ids), ONNX Runtime's own
 * (input, position_ids, cos, sin). */
static int rotary_positions(const struct rg_node *n)
{
	return n->domain[0] ? 1 : 3;
}

static int resolve_rotary_caches(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_rotary *r,
				 struct rg_error *err)
{
	const struct rg_shape *ids = in->at[rotary_positions(n)], *cosines = in->at[n->domain[0] ? 2 : 1];
	const struct rg_shape *sines = in->at[n->domain[0] ? 3 : 2];
	bool ids_fit;
	char text[160];

	if (!rg_shape_equal(cosines, sines))
		return rg_attention_fail(n, err, "the caches of cosines and sines differ in shape");
	if (cosines->rank != (ids ? 2 : 3) || cosines->dim[cosines->rank - 1] != r->dim / 2 ||
	    (!ids && (cosines->dim[0] != r->batch || cosines->dim[1] != r->seq)))
		return rg_attention_fail(n, err, "caches of shape %s do not go with %" PRId64 " sequences of %" PRId64
					 " tokens and a rotation of %" PRId64 " elements%s", rg_shape_text(text, cosines),
					 r->batch, r->seq, r->dim, ids ? "" : " without position_ids");
	if (!ids)
		return 0;
	r->cache = cosines->dim[0];
	ids_fit = ids->rank == 2 && ids->dim[0] == r->batch && ids->dim[1] == r->seq;
	if (n->domain[0]) /* one offset: the position of the first token */
		ids_fit |= ids->rank <= 1 && rg_shape_count(ids) == 1;
	if (!ids_fit)
		return rg_attention_fail(n, err, "position_ids have shape %s, not %" PRId64 "x%" PRId64,
					 rg_shape_text(text, ids), r->batch, r->seq);
	return 0;
}

int rg_rotary_resolve(const struct rg_node *n, const struct rg_in_shapes *in, struct rg_rotary *out,
		      struct rg_error *err)
{
	const struct rg_shape *x = in->at[0], *cosines = in->at[n->domain[0] ? 2 : 1];
	int64_t declared = rg_node_int(n, "rotary_embedding_dim", 0);

	memset(out, 0, sizeof(*out));
	if (x->rank != 3 && x->rank != 4)
		return rg_attention_fail(n, err, "the input has rank %d, not 3 or 4", x->rank);
	out->heads_first = x->rank == 4;
	out->batch = x->dim[0];
	out->seq = x->dim[out->heads_first ? 2 : 1];
	out->heads = rg_node_int(n, "num_heads", 0);
	if (out->heads_first) {
		out->heads = x->dim[1];
		out->head = x->dim[3];
	} else {
		/* Without num_heads, ONNX Runtime's operator takes the head size from a full rotation. */
		if (out->heads == 0 && n->domain[0] && declared == 0 && cosines->rank > 0 &&
		    cosines->dim[cosines->rank - 1] > 0 && cosines->dim[cosines->rank - 1] <= x->dim[2] / 2)
			out->heads = x->dim[2] / (2 * cosines->dim[cosines->rank - 1]);
		if (out->heads < 1)
			return rg_attention_fail(n, err, "an input of rank 3 needs the attribute num_heads");
		if (rg_attention_divide(n, "the input", x->dim[2], out->heads, &out->head, err))
			return err->code;
	}
	out->dim = declared ? declared : out->head;
	if (out->dim < 0 || out->dim > out->head || out->dim % 2)
		return rg_attention_fail(n, err, "a rotation of %" PRId64 " elements of heads of %" PRId64 " makes no sense",
					 out->dim, out->head);
	return resolve_rotary_caches(n, in, out, err);
}

static int infer_rotary(struct rg_infer *c, struct rg_error *err)
{
	int ids = rotary_positions(c->node), rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);
	struct rg_in_shapes in;
	struct rg_rotary r;

	for (int i = 1; i <= 3 && !rc; i++)
		if (i != ids)
			rc = rg_infer_like(c, i, 0, err);
	if (!rc && rg_infer_in(c, ids))
		rc = rg_infer_type(c, ids, RG_BIT(RG_I64), err);
	if (rc)
		return rc;
	if (rg_node_int(c->node, "is_packed_batching", 0))
		return rg_error_set(err, RG_ENOTSUP_MODEL, "RotaryEmbedding of packed batches is not supported");
	rg_shapes_of_infer(c, &in);
	rc = rg_rotary_resolve(c->node, &in, &r, err);
	return rc ? rc : rg_infer_same(c, err);
}

static void cost_rotary(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_rotary r;
	int64_t pairs;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_rotary_resolve(c->node, &in, &r, &err))
		return;
	pairs = rg_cost_mul(rg_cost_mul(rg_cost_mul(r.batch, r.seq), r.heads), r.dim / 2);
	out->flops = rg_cost_mul(pairs, 6);
	out->iops = out->sfu = 0;
}

/* ---- TensorScatter ---- */

int rg_tensor_scatter_resolve(const struct rg_node *n, const struct rg_in_shapes *in,
			      struct rg_tensor_scatter *out, struct rg_error *err)
{
	const struct rg_shape *cache = in->at[0], *update = in->at[1];
	const char *mode = rg_node_string(n, "mode", "linear");
	int64_t axis = rg_node_int(n, "axis", -2);
	char a[160], b[160];

	memset(out, 0, sizeof(*out));
	out->circular = strcmp(mode, "circular") == 0;
	if (!out->circular && strcmp(mode, "linear"))
		return rg_attention_fail(n, err, "mode is '%.40s', not 'linear' or 'circular'", mode);
	if (axis < -cache->rank || axis >= cache->rank || axis == 0 || axis == -cache->rank)
		return rg_attention_fail(n, err, "axis %" PRId64 " is no sequence of a cache of rank %d", axis, cache->rank);
	axis += axis < 0 ? cache->rank : 0;
	for (int d = 0; d < cache->rank; d++)
		if (update->rank != cache->rank || (d != axis && update->dim[d] != cache->dim[d]) ||
		    update->dim[d] > cache->dim[d])
			return rg_attention_fail(n, err, "an update of shape %s does not go into a cache of %s",
						 rg_shape_text(a, update), rg_shape_text(b, cache));
	out->batch = cache->dim[0];
	out->per_batch = rg_shape_count_range(cache, 1, (int)axis);
	out->length = cache->dim[axis];
	out->rows = update->dim[axis];
	out->inner = rg_shape_count_range(cache, (int)axis + 1, cache->rank);
	return 0;
}

static int infer_tensor_scatter(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor_scatter s;
	struct rg_in_shapes in;
	int rc = rg_infer_like(c, 1, 0, err);

	if (!rc && rg_dtype_bytes(c->in[0]->dtype) == 0)
		rc = rg_error_set(err, RG_ENOTSUP_MODEL, "TensorScatter with type %s is not supported",
				  rg_dtype_name(c->in[0]->dtype));
	if (!rc && rg_infer_in(c, 2))
		rc = rg_infer_type(c, 2, RG_BIT(RG_I64), err);
	if (rc)
		return rc;
	rg_shapes_of_infer(c, &in);
	rc = rg_tensor_scatter_resolve(c->node, &in, &s, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 2, &(struct rg_shape){ .rank = 1, .dim = { s.batch } }, err);
	return rc ? rc : rg_infer_same(c, err);
}

const struct rg_op rg_ops_attention[] = {
	{ "", "Attention", RG_KIND_ATTENTION, 0, 3, 7, 1, 4, { 23, 24 }, 23, 24, infer_attention, cost_attention },
	{ "", "RotaryEmbedding", RG_KIND_ATTENTION, 0, 3, 4, 1, 1, { 23 }, 23, 23, infer_rotary, cost_rotary },
	{ "", "TensorScatter", RG_KIND_MOVE, 0, 2, 3, 1, 1, { 24 }, 24, 24, infer_tensor_scatter, NULL },
	{ "com.microsoft", "RotaryEmbedding", RG_KIND_ATTENTION, 0, 4, 4, 1, 1, { 1 }, 1, 1, infer_rotary,
	  cost_rotary },
};
RG_OP_FAMILY_END(attention);
