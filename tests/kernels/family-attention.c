/*
 * Calls of the attention operators. See check.h.
 *
 * The bound of an output, u = 2^-24: a score is a sum of `head` products, whose error
 * is (head + c) u of the sum of their absolute values (Higham, section 3.1); it is in the
 * exponent of a weight, so it is a relative error of that, as are the rounding of the
 * score itself and of its distance from the maximum; weights are divided by their sum.
 * Absolute values are taken as the largest there are.
 *
 * What a range hides from a row (causality and lengths of the standard operator) is read
 * by the reference, with weight 0, and not by others: NaN and infinities are for calls
 * without.
 */
#include "check.h"

#include <math.h>

#include "graph/contrib.h"

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })
#define UNIT 0x1p-24

static double largest(const struct rg_tensor *t)
{
	const float *x = t->data;
	double most = 0;

	for (int64_t i = 0; t->dtype == RG_F32 && x && i < rg_shape_count(&t->shape); i++)
		if (isfinite(x[i]))
			most = fmax(most, fabs((double)x[i]));
	return most;
}

struct bound {
	double q, k, v;      /* largest absolute values */
	double units;        /* error that these have already, in units of them */
	double head, total, scale, added; /* largest number that is added to a score */
	double softcap;
};

static void fill_bound(const struct nn_case *t, const struct bound *b, double *out)
{
	double sum = b->scale * b->head * b->q * b->k;
	double score = (sum * (b->head + 12 + 2 * b->units) + 6 * (sum + b->added) + 16 * b->softcap) * UNIT;
	double each = b->v * (4 * score + (4 * b->total + b->units + 64) * UNIT);

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = each + 0x1p-126;
}

static enum nn_fill fill(struct ck_gen *g, bool all_seen)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WHOLE, NN_WIDE,
					      NN_TINY,    NN_NAN,     NN_INF };
	enum nn_fill f = CK_PICK(g, fills);

	return !all_seen && (f == NN_NAN || f == NN_INF) ? NN_UNIFORM : f;
}

struct sizes {
	int64_t batch, heads, group, q, kv, past, head, v_head;
};

/* Few or many queries, caches short and long. */
static struct sizes sizes(struct ck_gen *g)
{
	struct sizes s = {
		.batch = ck_between(g, 1, 3),
		.heads = ck_between(g, 1, 3),
		.group = ck_between(g, 1, 3),
		.q = ck_chance(g, 40) ? ck_between(g, 1, 4) : ck_some(g, 70),
		.kv = ck_some(g, 150),
		.past = ck_chance(g, 60) ? 0 : ck_some(g, ck_chance(g, 30) ? 700 : 90),
		.head = ck_some(g, 40),
	};

	s.v_head = ck_chance(g, 70) ? s.head : ck_some(g, 40);
	return s;
}

/* ---- Attention of the standard domain ---- */

static void attention_mask(struct nn_case *t, struct ck_gen *g, const struct sizes *s, bool shorter)
{
	int64_t total = s->past + s->kv, width = shorter ? ck_between(g, 1, total) : total;
	int64_t dim[4] = { ck_chance(g, 50) ? 1 : s->batch, ck_chance(g, 50) ? 1 : s->heads * s->group,
			   ck_chance(g, 30) ? 1 : s->q, width };
	int skip = (int)ck_between(g, 0, 2);

	if (ck_chance(g, 20)) {
		nn_absent(t);
	} else if (ck_chance(g, 40)) {
		nn_input_bytes(t, RG_BOOL, 4 - skip, dim + skip);
	} else {
		float *x = nn_input(t, NN_WIDE, 4 - skip, dim + skip);
		int64_t n = rg_shape_count(&t->in[t->node.n_in - 1].shape);

		for (int64_t i = 0; i < n; i += ck_between(g, 1, 5))
			x[i] = -INFINITY;
	}
}

static void attention(struct nn_case *t, struct ck_gen *g)
{
	struct sizes s = sizes(g);
	bool causal = ck_chance(g, 40), flat = ck_chance(g, 50), shorter = ck_chance(g, 20);
	bool lengths = !s.past && ck_chance(g, 20);
	enum nn_fill f = fill(g, !causal && !shorter && !lengths);

	t->node.version = shorter || lengths ? 24 : 23;
	nn_int(t, "is_causal", causal);
	if (ck_chance(g, 30))
		nn_float(t, "softcap", 2.5f);
	if (ck_chance(g, 30))
		nn_float(t, "scale", 0.25f);
	if (flat) {
		nn_int(t, "q_num_heads", s.heads * s.group);
		nn_int(t, "kv_num_heads", s.heads);
		nn_input(t, f, 3, DIMS(s.batch, s.q, s.heads * s.group * s.head));
		nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.kv, s.heads * s.head));
		nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.kv, s.heads * s.v_head));
	} else {
		nn_input(t, f, 4, DIMS(s.batch, s.heads * s.group, s.q, s.head));
		nn_input(t, NN_UNIFORM, 4, DIMS(s.batch, s.heads, s.kv, s.head));
		nn_input(t, NN_UNIFORM, 4, DIMS(s.batch, s.heads, s.kv, s.v_head));
	}
	attention_mask(t, g, &s, shorter);
	for (int i = 0; i < 2; i++) {
		if (s.past)
			nn_input(t, NN_UNIFORM, 4, DIMS(s.batch, s.heads, s.past, i ? s.v_head : s.head));
		else
			nn_absent(t);
	}
	if (lengths) {
		int64_t *n = nn_input_typed(t, RG_I64, 1, &s.batch);

		for (int64_t b = 0; b < s.batch; b++)
			n[b] = ck_between(g, 0, s.kv);
	}
}

static void attention_bound(const struct nn_case *t, const float *want, double *out)
{
	const struct rg_shape *q = &t->in[0].shape, *v = &t->in[2].shape;
	int64_t kv_heads = q->rank == 4 ? 1 : rg_node_int(&t->node, "kv_num_heads", 1), past = 0;
	struct bound b = {
		.q = largest(&t->in[0]),
		.k = fmax(largest(&t->in[1]), 1),
		.v = fmax(largest(&t->in[2]), 1),
		.head = (double)(t->in[1].shape.dim[q->rank - 1] / kv_heads),
		.added = t->node.n_in > 3 ? largest(&t->in[3]) : 0,
		.softcap = (double)rg_node_float(&t->node, "softcap", 0),
	};

	(void)want;
	if (t->node.n_in > 4 && t->in[4].dtype == RG_F32)
		past = t->in[4].shape.dim[2];
	b.total = (double)(past + v->dim[q->rank == 4 ? 2 : 1]);
	b.scale = rg_node_attr(&t->node, "scale") ? (double)rg_node_float(&t->node, "scale", 0)
						  : 1 / sqrt(b.head);
	fill_bound(t, &b, out);
}

static bool bench_attention(struct nn_case *t, int i)
{
	static const int64_t dim[][4] = { { 12, 128, 128, 64 }, { 12, 512, 512, 64 }, { 32, 1, 2048, 64 } };

	if (i == 3)
		return false;
	for (int k = 0; k < 3; k++)
		nn_input(t, NN_UNIFORM, 4, DIMS(1, dim[i][0], dim[i][k ? 2 : 1], dim[i][3]));
	return true;
}

/* ---- Attention and MultiHeadAttention of ONNX Runtime ---- */

static void padding(struct nn_case *t, struct ck_gen *g, const struct sizes *s)
{
	int64_t total = s->past + s->kv, n = s->batch;
	int32_t *mask;

	switch (ck_between(g, 0, 3)) {
	case 0:
		nn_absent(t);
		return;
	case 1:
		mask = nn_input_typed(t, RG_I32, 1, &n);
		for (int64_t b = 0; b < n; b++)
			mask[b] = (int32_t)ck_between(g, 0, total);
		return;
	case 2:
		mask = nn_input_typed(t, RG_I32, 2, DIMS(s->batch, total));
		break;
	default:
		mask = nn_input_typed(t, RG_I32, 3, DIMS(s->batch, s->q, total));
		break;
	}
	n = rg_shape_count(&t->in[t->node.n_in - 1].shape);
	for (int64_t i = 0; i < n; i++)
		mask[i] = ck_chance(g, 70);
}

static void attention_bias(struct nn_case *t, struct ck_gen *g, const struct sizes *s)
{
	if (ck_chance(g, 40))
		nn_input(t, NN_UNIFORM, 4,
			 DIMS(ck_chance(g, 50) ? 1 : s->batch, ck_chance(g, 50) ? 1 : s->heads, s->q,
			      s->past + s->kv));
	else
		nn_absent(t);
}

static void projected(struct nn_case *t, struct ck_gen *g)
{
	struct sizes s = sizes(g);
	int64_t input = ck_some(g, 40), columns = 3 * s.heads * s.head;

	s.kv = s.q;
	nn_int(t, "num_heads", s.heads);
	nn_int(t, "unidirectional", ck_chance(g, 40));
	nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.q, input));
	nn_input(t, NN_UNIFORM, 2, DIMS(input, columns));
	if (ck_chance(g, 70))
		nn_input(t, NN_UNIFORM, 1, &columns);
	else
		nn_absent(t);
	padding(t, g, &s);
	if (s.past)
		nn_input(t, NN_UNIFORM, 5, DIMS(2, s.batch, s.heads, s.past, s.head));
	else
		nn_absent(t);
	attention_bias(t, g, &s);
	t->weights = 6;
}

static void multi_head(struct nn_case *t, struct ck_gen *g)
{
	struct sizes s = sizes(g);
	bool first = ck_chance(g, 30);
	int64_t columns;

	s.past = first ? 0 : s.past;
	columns = s.heads * (2 * s.head + s.v_head);
	nn_int(t, "num_heads", s.heads);
	nn_int(t, "unidirectional", ck_chance(g, 40));
	nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.q, s.heads * s.head));
	for (int i = 0; i < 2; i++) {
		int64_t width = i ? s.v_head : s.head;

		nn_input(t, NN_UNIFORM, first ? 4 : 3, first ? DIMS(s.batch, s.heads, s.kv, width) :
							       DIMS(s.batch, s.kv, s.heads * width));
	}
	if (!first && ck_chance(g, 50))
		nn_input(t, NN_UNIFORM, 1, &columns);
	else
		nn_absent(t);
	padding(t, g, &s);
	attention_bias(t, g, &s);
	for (int i = 0; i < 2 && s.past; i++)
		nn_input(t, NN_UNIFORM, 4, DIMS(s.batch, s.heads, s.past, i ? s.v_head : s.head));
}

/* What is added to a score: mask_filter_value, whose rounding counts where nothing else is left. */
static double added(const struct nn_case *t, int mask, int bias)
{
	bool masked = t->node.n_in > mask && t->in[mask].dtype != RG_UNDEFINED;

	return (masked ? 10000 : 0) + (t->node.n_in > bias ? largest(&t->in[bias]) : 0);
}

static void projected_bound(const struct nn_case *t, const float *want, double *out)
{
	double input = (double)t->in[0].shape.dim[2],
	       made = input * largest(&t->in[0]) * largest(&t->in[1]) + 1;
	struct bound b = {
		.q = made, .k = made, .v = made, .units = input + 4, .added = added(t, 3, 5),
		.head = (double)(t->in[1].shape.dim[1] / 3 / rg_node_int(&t->node, "num_heads", 1)),
		.total = (double)t->in[0].shape.dim[1],
	};

	(void)want;
	if (t->node.n_in > 4 && t->in[4].dtype == RG_F32)
		b.total += (double)t->in[4].shape.dim[3];
	b.scale = 1 / sqrt(b.head);
	fill_bound(t, &b, out);
}

static void multi_head_bound(const struct nn_case *t, const float *want, double *out)
{
	const struct rg_shape *k = &t->in[1].shape;
	struct bound b = {
		.q = 2, .k = 2, .v = 2, .units = 1, .added = added(t, 4, 5),
		.head = (double)(t->in[0].shape.dim[2] / rg_node_int(&t->node, "num_heads", 1)),
		.total = (double)k->dim[k->rank == 4 ? 2 : 1],
	};

	(void)want;
	if (t->node.n_in > 6 && t->in[6].dtype == RG_F32)
		b.total += (double)t->in[6].shape.dim[2];
	b.scale = 1 / sqrt(b.head);
	fill_bound(t, &b, out);
}

/* ---- GroupQueryAttention ---- */

static void group_query(struct nn_case *t, struct ck_gen *g)
{
	struct sizes s = sizes(g);
	bool rotary = ck_chance(g, 50), causal = ck_chance(g, 80);
	int64_t heads = s.heads * s.group, total = s.past + s.q;
	enum nn_fill f = fill(g, true);
	int32_t *lens;

	s.head = (s.head + 15) / 16 * 16;
	f = rotary && f == NN_WIDE ? NN_UNIFORM : f;
	nn_int(t, "num_heads", heads);
	nn_int(t, "kv_num_heads", s.heads);
	nn_int(t, "do_rotary", rotary);
	nn_int(t, "rotary_interleaved", ck_chance(g, 50));
	nn_int(t, "causal", causal);
	nn_int(t, "smooth_softmax", ck_chance(g, 20));
	if (causal && ck_chance(g, 30))
		nn_int(t, "local_window_size", ck_between(g, 1, total));
	nn_input(t, f, 3, DIMS(s.batch, s.q, heads * s.head));
	nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.q, s.heads * s.head));
	nn_input(t, f == NN_NAN ? NN_NAN : NN_UNIFORM, 3, DIMS(s.batch, s.q, s.heads * s.head));
	for (int i = 0; i < 2; i++) {
		if (s.past)
			nn_input(t, NN_UNIFORM, 4, DIMS(s.batch, s.heads, s.past, s.head));
		else
			nn_absent(t);
	}
	lens = nn_input_typed(t, RG_I32, 1, &s.batch);
	for (int64_t b = 0; b < s.batch; b++)
		lens[b] = (int32_t)(ck_between(g, s.past ? 1 : s.q, total) - 1);
	*(int32_t *)nn_input_typed(t, RG_I32, 0, NULL) = (int32_t)total;
	for (int i = 0; i < 2 && rotary; i++)
		nn_input(t, NN_UNIFORM, 2, DIMS(total, 8));
	t->known = 1u << 6;
}

static void group_query_bound(const struct nn_case *t, const float *want, double *out)
{
	struct bound b = {
		.q = 2 * largest(&t->in[0]), .k = 2, .v = 1, .units = 3,
		.head = (double)(t->in[0].shape.dim[2] / rg_node_int(&t->node, "num_heads", 1)),
		.total = (double)*(const int32_t *)t->in[6].data,
	};

	(void)want;
	b.scale = 1 / sqrt(b.head);
	fill_bound(t, &b, out);
}

/* ---- RotaryEmbedding ---- */

static void add_positions(struct nn_case *t, struct ck_gen *g, int64_t batch, int64_t seq, int64_t cache, bool one)
{
	int64_t *ids = one ? nn_input_typed(t, RG_I64, 1, DIMS(1)) : nn_input_typed(t, RG_I64, 2, DIMS(batch, seq));

	for (int64_t i = 0; i < (one ? 1 : batch * seq); i++)
		ids[i] = ck_between(g, 0, one ? cache - seq : cache - 1);
}

static void rotary_of(struct nn_case *t, struct ck_gen *g, bool own)
{
	struct sizes s = sizes(g);
	int64_t head = 2 * s.head, dim = ck_chance(g, 30) ? 2 * ck_between(g, 1, s.head) : head, cache = s.q + 7;
	bool ids = own || ck_chance(g, 60), heads_first = ck_chance(g, 50), one = own && ck_chance(g, 30);

	if (!heads_first)
		nn_int(t, "num_heads", s.heads);
	if (dim != head)
		nn_int(t, "rotary_embedding_dim", dim);
	nn_int(t, "interleaved", ck_chance(g, 50));
	if (heads_first)
		nn_input(t, fill(g, true), 4, DIMS(s.batch, s.heads, s.q, head));
	else
		nn_input(t, fill(g, true), 3, DIMS(s.batch, s.q, s.heads * head));
	if (own)
		add_positions(t, g, s.batch, s.q, cache, one);
	for (int i = 0; i < 2; i++) {
		if (ids)
			nn_input(t, NN_UNIFORM, 2, DIMS(cache, dim / 2));
		else
			nn_input(t, NN_UNIFORM, 3, DIMS(s.batch, s.q, dim / 2));
	}
	if (!own && ids)
		add_positions(t, g, s.batch, s.q, cache, false);
}

static void rotary(struct nn_case *t, struct ck_gen *g)
{
	rotary_of(t, g, false);
}

static void own_rotary(struct nn_case *t, struct ck_gen *g)
{
	rotary_of(t, g, true);
}

/* A sum of two products: each rounded once, and the sum. Cosines and sines are at most 1. */
static void rotary_bound(const struct nn_case *t, const float *want, double *out)
{
	double each = 2 * 3 * UNIT * largest(&t->in[0]);

	(void)want;
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = each + 0x1p-126;
}

#define OWN(DOMAIN, OP, MAKE, BOUND, BENCH)                                                                  \
	{                                                                                                    \
		.domain = DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_OWN, .tolerance = BOUND,        \
		.bench = BENCH                                                                               \
	}

static const struct ck_family families[] = {
	OWN("", "Attention", attention, attention_bound, bench_attention),
	OWN(RG_CONTRIB_DOMAIN, "Attention", projected, projected_bound, NULL),
	OWN(RG_CONTRIB_DOMAIN, "GroupQueryAttention", group_query, group_query_bound, NULL),
	OWN(RG_CONTRIB_DOMAIN, "MultiHeadAttention", multi_head, multi_head_bound, NULL),
	OWN("", "RotaryEmbedding", rotary, rotary_bound, NULL),
	OWN(RG_CONTRIB_DOMAIN, "RotaryEmbedding", own_rotary, rotary_bound, NULL),
};
CK_FAMILY_TABLE(ck_families_attention, families);
