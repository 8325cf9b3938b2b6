/*
 * Attention of the standard domain on attend.h, float32. What the reference says
 * about nonpad_kv_seqlen holds here too. Keys that causality or nonpad_kv_seqlen
 * hides are not read; qk_matmul_output is left to the reference.
 */
#include "kernels/generic/attend.h"

#include <math.h>

#include "kernels/tables.h"

struct mask_ctx {
	const struct rg_tensor *mask; /* NULL: none */
	const int64_t *lengths;       /* nonpad_kv_seqlen; NULL: none */
	struct rg_attention_mask rows;
	bool causal;
};

static const struct rg_tensor *input(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static void *wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED ? c->out[i].data : NULL;
}

static void range(const struct rg_attend *a, int64_t b, int64_t i, int64_t *from, int64_t *to)
{
	const struct mask_ctx *m = a->ctx;
	const struct rg_attention *s = &a->plan.size;
	int64_t most = s->total, seen = (m->lengths ? m->lengths[b] - s->q_seq : s->past) + i + 1;

	if (m->causal && seen < most)
		most = seen;
	if (m->lengths && m->lengths[b] < most)
		most = m->lengths[b];
	if (m->mask && !m->rows.one && m->rows.length < most)
		most = m->rows.length;
	*from = 0;
	*to = most < 0 ? 0 : most;
}

static void add_mask(const struct rg_attend *a, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
		     float *restrict scores)
{
	const struct mask_ctx *m = a->ctx;
	int64_t at = b * m->rows.batch + h * m->rows.head + i * m->rows.row, n = to - from;
	const float *restrict add = (const float *)m->mask->data + at;
	const uint8_t *restrict keep = (const uint8_t *)m->mask->data + at;

	if (m->mask->dtype == RG_BOOL && m->rows.one)
		for (int64_t j = 0; j < n; j++)
			scores[j] += keep[0] ? 0 : -INFINITY;
	else if (m->mask->dtype == RG_BOOL)
		for (int64_t j = 0; j < n; j++)
			scores[j] += keep[from + j] ? 0 : -INFINITY;
	else if (m->rows.one)
		for (int64_t j = 0; j < n; j++)
			scores[j] += add[0];
	else
		for (int64_t j = 0; j < n; j++)
			scores[j] += add[from + j];
}

static bool resolve(const struct rg_call *c, struct rg_attention *size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;

	rg_shapes_of_tensors(c->node, c->in, &in);
	return rg_attention_resolve(c->node, &in, size, &err) == 0;
}

static bool supports(const struct rg_call *c)
{
	const struct rg_tensor *mask = input(c, 3);
	struct rg_attend_plan plan;
	struct rg_attention size;

	for (int i = 0; i < 6; i++)
		if (i != 3 && input(c, i) && c->in[i].dtype != RG_F32)
			return false;
	if (mask && mask->dtype != RG_F32 && mask->dtype != RG_BOOL)
		return false;
	if (c->node->n_out > 3 && c->out[3].dtype != RG_UNDEFINED)
		return false;
	if (rg_node_int(c->node, "softmax_precision", RG_F32) == RG_F64)
		return false;
	return resolve(c, &size) && rg_attend_plan_make(&plan, &size, 1);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_attend_plan plan;
	struct rg_attention size;

	return resolve(c, &size) && rg_attend_plan_make(&plan, &size, lanes) ? rg_attend_scratch_bytes(&plan)
									     : 0;
}

static int check_lengths(const struct mask_ctx *m, const struct rg_attention *s, struct rg_error *err)
{
	for (int64_t b = 0; m->lengths && b < s->batch; b++)
		if (m->lengths[b] < 0 || m->lengths[b] > s->total)
			return rg_error_set(err, -EINVAL,
					    "nonpad_kv_seqlen[%lld] is %lld; there are %lld keys",
					    (long long)b, (long long)m->lengths[b], (long long)s->total);
	return 0;
}

static void find_rows(const struct rg_call *c, struct rg_attend *a)
{
	const struct rg_attention *s = &a->plan.size;

	a->q = rg_attend_rows_of(&c->in[0], s->q_heads, s->q_seq, s->head);
	a->k = rg_attend_rows_of(&c->in[1], s->kv_heads, s->kv_seq, s->head);
	a->v = rg_attend_rows_of(&c->in[2], s->kv_heads, s->kv_seq, s->v_head);
	a->y = rg_attend_rows_of(&c->out[0], s->q_heads, s->q_seq, s->v_head);
	if (input(c, 4)) {
		a->k_past = rg_attend_heads_first(c->in[4].data, s->kv_heads, s->past, s->head);
		a->v_past = rg_attend_heads_first(c->in[5].data, s->kv_heads, s->past, s->v_head);
	}
}

static void write_presents(const struct rg_call *c, const struct rg_attend *a, const struct rg_par *par)
{
	const struct rg_attention *s = &a->plan.size;

	for (int i = 0; i < 2; i++) {
		int64_t width = i ? s->v_head : s->head;
		struct rg_attend_copies copies = {
			.from = i ? a->v_past : a->k_past,
			.then = i ? a->v : a->k,
			.batch = s->batch,
			.heads = s->kv_heads,
			.from_seq = s->past,
			.then_seq = s->kv_seq,
			.width = width,
		};

		copies.to = rg_attend_heads_first(wanted(c, 1 + i), s->kv_heads, s->total, width);
		if (copies.to.data)
			rg_attend_copy(&copies, par);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *lengths = input(c, 6);
	struct mask_ctx m = {
		.mask = input(c, 3),
		.lengths = lengths ? lengths->data : NULL,
		.causal = rg_node_int(c->node, "is_causal", 0) != 0,
	};
	struct rg_attend a = { .range = range, .ctx = &m, .scratch = c->scratch };
	struct rg_attention size;
	int rc;

	if (!resolve(c, &size) || !rg_attend_plan_make(&a.plan, &size, par->lanes))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	rc = check_lengths(&m, &size, err);
	if (!rc && m.mask)
		rc = rg_attention_mask(c->node, &size, &m.mask->shape, &m.rows, err);
	if (rc)
		return rc;
	if (m.mask)
		a.mask = add_mask;
	find_rows(c, &a);
	a.scale = rg_node_attr(c->node, "scale") ? rg_node_float(c->node, "scale", 0) :
						   (float)(1 / sqrt((double)size.head));
	a.softcap = rg_node_float(c->node, "softcap", 0);
	write_presents(c, &a, par);
	rg_attend_run(&a, par);
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Attention", .domain = "", .name = RG_LEVEL_NAME("blocks"), .isa = RG_LEVEL_ISA,
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, .run = run },
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(attention), kernels);
