/*
 * The normalisations that ONNX Runtime's optimiser writes into transformers:
 * SkipLayerNormalization, SkipSimplifiedLayerNormalization,
 * EmbedLayerNormalization, and SimplifiedLayerNormalization, which it registers
 * in the standard domain.
 *
 * Costs, with n elements in r rows: a layer norm 7n flops and 4r sfu, a root mean
 * square norm 4n and 3r, as in op-norm.c; in front of them 1n for each addend.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-norm.h"
#include "graph/op-types.h"

/* Input i is absent, or a list of n elements. */
static int check_list(struct rg_infer *c, int i, int64_t n, struct rg_error *err)
{
	return rg_infer_shape_is(c, i, &(struct rg_shape){ .rank = 1, .dim = { n } }, err);
}

static bool is_simplified(const struct rg_node *n)
{
	return strstr(n->op_type, "Simplified") != NULL;
}

/* ---- Skip*: input skip gamma [beta] bias; output, mean, inv_std_var, sum ---- */

/* skip is as input, or one sequence for all of the batch. */
static bool skip_fits(const struct rg_shape *x, const struct rg_shape *skip)
{
	if (rg_shape_equal(x, skip))
		return true;
	if (x->rank != 3 || (skip->rank != 2 && (skip->rank != 3 || skip->dim[0] != 1)))
		return false;
	return skip->dim[skip->rank - 2] == x->dim[1] && skip->dim[skip->rank - 1] == x->dim[2];
}

static int infer_skip(struct rg_infer *c, struct rg_error *err)
{
	int last = is_simplified(c->node) ? 3 : 4, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);
	const struct rg_shape *x;
	char a[160], b[160];

	for (int i = 1; i <= last && !rc; i++)
		rc = rg_infer_like(c, i, 0, err);
	if (rc)
		return rc;
	x = &c->in[0]->shape;
	if (x->rank != 2 && x->rank != 3)
		return rg_infer_fail(c, err, "input has rank %d, not 2 or 3", x->rank);
	if (!skip_fits(x, &c->in[1]->shape))
		return rg_infer_fail(c, err, "skip of shape %s does not go with input of shape %s",
				     rg_shape_text(a, &c->in[1]->shape), rg_shape_text(b, x));
	for (int i = 2; i <= last && !rc; i++)
		rc = check_list(c, i, x->dim[x->rank - 1], err);
	if (rc)
		return rc;
	for (int i = 1; i <= 2; i++)
		if (i < c->node->n_out && c->node->out[i] >= 0)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: the outputs mean and inv_std_var of training are not "
					    "supported", c->node->op_type);
	rg_infer_out(c, 3, c->in[0]->dtype, x);
	return rg_infer_same(c, err);
}

static void set_cost(struct rg_cost *out, const struct rg_shape *s, int addends, bool simplified)
{
	int64_t n = rg_shape_count(s), rows = rg_shape_count_range(s, 0, s->rank - 1);

	out->flops = rg_cost_mul(n, (simplified ? 4 : 7) + addends);
	out->sfu = rg_cost_mul(rows, simplified ? 3 : 4);
	out->iops = 0;
}

static bool has_in(const struct rg_cost_in *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED;
}

static void cost_skip(const struct rg_cost_in *c, struct rg_cost *out)
{
	bool simplified = is_simplified(c->node);

	set_cost(out, &c->in[0].shape, 1 + has_in(c, simplified ? 3 : 4), simplified);
}

/* ---- EmbedLayerNormalization ----
 * input_ids segment_ids word position segment gamma beta mask position_ids;
 * output, mask_index, embedding_sum */

/* Input i is an embedding: rows of `width` elements. */
static int check_table(struct rg_infer *c, int i, int64_t width, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char text[160];

	if (v && (v->shape.rank != 2 || v->shape.dim[1] != width))
		return rg_infer_fail(c, err, "input %d ('%s') has shape %s, not a list of rows of %" PRId64, i, v->name,
				     rg_shape_text(text, &v->shape), width);
	return 0;
}

static int check_embed_types(struct rg_infer *c, struct rg_error *err)
{
	static const int ids[] = { 0, 1, 7, 8 }, floats[] = { 2, 3, 4, 5, 6 };
	int rc = 0;

	for (int i = 2; i <= 6 && !rc; i++)
		if (i != 4) /* segment_embedding is optional, and so is input 1 */
			rc = rg_infer_type(c, i, RG_SET_FLOAT, err);

	for (int i = 0; i < 4 && !rc; i++)
		if (rg_infer_in(c, ids[i]))
			rc = rg_infer_type(c, ids[i], RG_BIT(RG_I32), err);
	for (int i = 0; i < 5 && !rc; i++)
		rc = rg_infer_like(c, floats[i], 2, err);
	return rc;
}

static int infer_embed(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *positions = rg_infer_in(c, 8);
	const struct rg_shape *ids;
	int64_t width;
	struct rg_shape s;
	int rc = check_embed_types(c, err);

	if (rc)
		return rc;
	ids = &c->in[0]->shape;
	if (ids->rank != 2)
		return rg_infer_fail(c, err, "input_ids have rank %d, not 2", ids->rank);
	if (!rg_infer_in(c, 1) != !rg_infer_in(c, 4))
		return rg_infer_fail(c, err, "segment_ids and segment_embedding must be given together");
	width = c->in[2]->shape.rank == 2 ? c->in[2]->shape.dim[1] : -1;
	for (int i = 2; i <= 4 && !rc; i++)
		rc = check_table(c, i, width, err);
	for (int i = 5; i <= 6 && !rc; i++)
		rc = check_list(c, i, width, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 1, ids, err);
	if (!rc)
		rc = rg_infer_shape_is(c, 7, ids, err);
	if (rc)
		return rc;
	if (positions && (positions->shape.rank != 2 || positions->shape.dim[1] != ids->dim[1] ||
			  (positions->shape.dim[0] != 1 && positions->shape.dim[0] != ids->dim[0])))
		return rg_infer_fail(c, err, "position_ids are not %" PRId64 "x%" PRId64, ids->dim[0], ids->dim[1]);
	if (!positions && c->in[3]->shape.dim[0] < ids->dim[1])
		return rg_infer_fail(c, err, "position_embedding has %" PRId64 " rows for %" PRId64 " tokens",
				     c->in[3]->shape.dim[0], ids->dim[1]);
	s = rg_shape_of(3, (const int64_t[]){ ids->dim[0], ids->dim[1], width });
	rg_infer_out(c, 0, c->in[2]->dtype, &s);
	rg_infer_out(c, 2, c->in[2]->dtype, &s);
	s = rg_shape_of(1, ids->dim);
	rg_infer_out(c, 1, RG_I32, &s);
	return 0;
}

static void cost_embed(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t row = rg_cost_mul(c->in[2].shape.dim[1], (int64_t)rg_dtype_bytes(c->in[2].dtype)), rows = 0;
	int64_t tokens = rg_shape_count(&c->in[0].shape);

	set_cost(out, &c->out[0].shape, has_in(c, 4) ? 2 : 1, false);
	/* of the tables only the rows that are looked up: at most one a token */
	for (int i = 2; i <= 4; i++)
		if (has_in(c, i))
			rows = rg_cost_add(rows, c->in[i].shape.dim[0] < tokens ? c->in[i].shape.dim[0] : tokens);
	out->read_bytes = rg_cost_mul(row, rows);
	for (int i = 0; i < c->node->n_in; i++)
		if ((i < 2 || i > 4) && has_in(c, i))
			out->read_bytes = rg_cost_add(out->read_bytes,
						      rg_tensor_bytes(c->in[i].dtype, &c->in[i].shape));
}

/* ---- SimplifiedLayerNormalization: X scale; Y, inv_std_var ---- */

static int infer_simplified(struct rg_infer *c, struct rg_error *err)
{
	int64_t stash = rg_node_int(c->node, "stash_type", RG_F32);
	struct rg_shape tail, stats;
	struct rg_rows rows;
	int axis, rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_FLOAT, err);
	if (rc)
		return rc;
	if (!rg_layernorm_rows(c->node, &c->in[0]->shape, &rows, &axis))
		return rg_infer_fail(c, err, "the axis is outside of a tensor of rank %d", c->in[0]->shape.rank);
	if (!rg_in_set((enum rg_dtype)stash, RG_SET_FLOAT))
		return rg_infer_fail(c, err, "attribute stash_type is %" PRId64 ", not a float type", stash);
	tail = rg_shape_of(c->in[0]->shape.rank - axis, c->in[0]->shape.dim + axis);
	rc = rg_infer_shape_is(c, 1, &tail, err);
	if (rc)
		return rc;
	stats = c->in[0]->shape;
	for (int d = axis; d < stats.rank; d++)
		stats.dim[d] = 1;
	rg_infer_out(c, 0, c->in[1]->dtype, &c->in[0]->shape);
	rg_infer_out(c, 1, (enum rg_dtype)stash, &stats);
	return 0;
}

static void cost_simplified(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_rows rows;
	int axis;

	if (!rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		return;
	out->flops = rg_cost_mul(rg_shape_count(&c->in[0].shape), 4);
	out->sfu = rg_cost_mul(rows.outer, 3);
	out->iops = 0;
}

#define OP(DOMAIN, NAME, MIN, MAX, MAX_OUT, INFER, COST_FN) \
	{ DOMAIN, NAME, RG_KIND_NORM, 0, MIN, MAX, 1, MAX_OUT, { 1 }, 1, 1, INFER, COST_FN }

const struct rg_op rg_ops_skip_norm[] = {
	OP("", "SimplifiedLayerNormalization", 2, 2, 2, infer_simplified, cost_simplified),
	OP("com.microsoft", "EmbedLayerNormalization", 1, 9, 3, infer_embed, cost_embed),
	OP("com.microsoft", "SkipLayerNormalization", 3, 5, 4, infer_skip, cost_skip),
	OP("com.microsoft", "SkipSimplifiedLayerNormalization", 3, 4, 4, infer_skip, cost_skip),
};
RG_OP_FAMILY_END(skip_norm);
