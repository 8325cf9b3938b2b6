/* Operators on strings: types and shapes. None of them computes: no costs but bytes. */
#include <string.h>

#include "base/alloc.h"
#include "graph/op-families.h"
#include "graph/op-types.h"
#include "graph/regex.h"
#include "graph/text.h"
#include "graph/tfidf.h"

static struct rg_tensor as_tensor(const struct rg_value *v)
{
	return (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
}

static int need_text(struct rg_infer *c, struct rg_error *err)
{
	c->need_value = 0;
	return rg_error_set(err, RG_ENEED_VALUE, "%s: the output shape depends on the value of input 0 ('%s')",
			    c->node->op_type, c->in[0]->name);
}

static int infer_concat(struct rg_infer *c, struct rg_error *err)
{
	if (rg_infer_type(c, 0, RG_BIT(RG_STRING), err) || rg_infer_type(c, 1, RG_BIT(RG_STRING), err))
		return err->code;
	return rg_infer_broadcast(c, err);
}

/* Each element becomes a row, as long as the one of most pieces. */
static int infer_split(struct rg_infer *c, struct rg_error *err)
{
	struct rg_text_split a;
	struct rg_shape y;
	struct rg_tensor x;
	int64_t count, most = 0;

	if (rg_infer_type(c, 0, RG_BIT(RG_STRING), err) || rg_text_split_resolve(c->node, &a, err))
		return err->code;
	x = as_tensor(c->in[0]);
	y = x.shape;
	if (y.rank == RG_MAX_RANK)
		return rg_infer_fail(c, err, "the output would have more than %d dimensions", RG_MAX_RANK);
	count = rg_shape_count(&x.shape);
	if (count > 0 && !rg_infer_known(c, 0))
		return need_text(c, err);
	for (int64_t i = 0; i < count; i++) {
		int64_t n = rg_text_split_count(&a, rg_text_at(&x, i));

		most = n > most ? n : most;
	}
	y.dim[y.rank++] = most;
	rg_infer_out(c, 0, RG_STRING, &y);
	rg_infer_out(c, 1, RG_I64, &x.shape);
	return 0;
}

/* [C] or [1, C]; where no word is kept, one empty string. */
static int infer_normalizer(struct rg_infer *c, struct rg_error *err)
{
	struct rg_text_normal a;
	struct rg_tensor x;
	struct rg_shape y;
	int64_t kept = 0, n;

	if (rg_infer_type(c, 0, RG_BIT(RG_STRING), err) || rg_text_normal_resolve(c->node, &a, err))
		return err->code;
	x = as_tensor(c->in[0]);
	y = x.shape;
	if (y.rank < 1 || y.rank > 2 || (y.rank == 2 && y.dim[0] != 1))
		return rg_infer_fail(c, err, "the input must have shape [C] or [1, C]");
	n = y.dim[y.rank - 1];
	if (n > 0 && a.stop && a.stop->count > 0 && !rg_infer_known(c, 0))
		return need_text(c, err);
	if (!a.stop || a.stop->count == 0)
		kept = n;
	for (int64_t i = 0; a.stop && a.stop->count > 0 && i < n; i++)
		kept += rg_text_is_kept(&a, rg_text_at(&x, i));
	y.dim[y.rank - 1] = kept > 0 ? kept : 1;
	rg_infer_out(c, 0, RG_STRING, &y);
	return 0;
}

static int infer_regex(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_attr *a = rg_node_attr(c->node, "pattern");
	struct rg_regex *r;

	if (rg_infer_type(c, 0, RG_BIT(RG_STRING), err))
		return err->code;
	if (!a || a->type != RG_ATTR_STRING)
		return rg_infer_fail(c, err, "the pattern is missing");
	if (strlen(a->s) != a->s_len)
		return rg_infer_fail(c, err, "the pattern holds a NUL byte");
	if (rg_regex_new(a->s, &r, err))
		return err->code;
	rg_free(r);
	rg_infer_out(c, 0, RG_BOOL, &c->in[0]->shape);
	return 0;
}

static int infer_tfidf(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tfidf a;
	struct rg_shape y;

	if (rg_tfidf_resolve(c->node, &a, err))
		return err->code;
	if (rg_infer_type(c, 0, a.pool->type == RG_ATTR_STRINGS ? RG_BIT(RG_STRING) : RG_BIT(RG_I32) | RG_BIT(RG_I64),
			  err))
		return err->code;
	y = c->in[0]->shape;
	if (y.rank < 1 || y.rank > 2)
		return rg_infer_fail(c, err, "the input must have shape [C] or [N, C]");
	y.dim[y.rank - 1] = a.n_columns;
	rg_infer_out(c, 0, RG_F32, &y);
	return 0;
}

#define OP(NAME, N_IN, HIGH_OUT, FIRST, INFER) \
	{ .domain = "", .name = NAME, .kind = RG_KIND_OTHER, .min_in = N_IN, .max_in = N_IN, .min_out = 1, \
	  .max_out = HIGH_OUT, .versions = { FIRST }, .supported_from = FIRST, .supported_to = FIRST, .infer = INFER }

const struct rg_op rg_ops_text[] = {
	OP("StringNormalizer", 1, 1, 10, infer_normalizer),
	OP("StringConcat", 2, 1, 20, infer_concat),
	OP("StringSplit", 1, 2, 20, infer_split),
	OP("RegexFullMatch", 1, 1, 20, infer_regex),
	OP("TfIdfVectorizer", 1, 1, 9, infer_tfidf),
};
RG_OP_FAMILY_END(text);
