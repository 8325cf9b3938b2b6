/*
 * Operators that draw random numbers: types, shapes, costs. Each draws the same
 * numbers in every run: from its seed, or without one from its node's name.
 *
 * Costs: the draws are counted as one sfu each (two for a normal one: a
 * logarithm and a square root for a pair, and a division), and two flops to
 * scale and shift one. Dropout in training: two flops an element, one sfu.
 */
#include "graph/op-random.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

/* ---- Dropout ---- */

enum { RATIO = 1, MODE = 2, DROPOUT_IN = 3 };

/* A ratio that is known to be 0. */
static bool drops_nothing(const struct rg_node *n, const struct rg_tensor *in)
{
	static const unsigned char zero[8];
	size_t size;

	if (n->version < 12 || n->n_in <= RATIO || !in[RATIO].data)
		return false;
	size = rg_dtype_bytes(in[RATIO].dtype);
	return rg_shape_count(&in[RATIO].shape) == 1 && size <= sizeof(zero) &&
	       memcmp(in[RATIO].data, zero, size) == 0;
}

bool rg_dropout_trains(const struct rg_node *n, const struct rg_tensor *in)
{
	if (n->version < 7)
		return rg_node_int(n, "is_test", 0) == 0;
	if (n->version < 12 || n->n_in <= MODE || in[MODE].dtype != RG_BOOL || !in[MODE].data)
		return false;
	return *(const unsigned char *)in[MODE].data != 0 && !drops_nothing(n, in);
}

bool rg_node_is_view(const struct rg_graph *g, const struct rg_node *n)
{
	struct rg_tensor in[DROPOUT_IN] = { 0 };

	if (!(n->op->flags & RG_OP_VIEW))
		return false;
	if (strcmp(n->op->name, "Dropout") != 0)
		return true;
	for (int i = 0; i < n->n_in && i < DROPOUT_IN; i++) {
		if (n->in[i] < 0)
			continue;
		in[i].dtype = g->values[n->in[i]].dtype;
		in[i].shape = g->values[n->in[i]].shape;
		in[i].data = (void *)g->values[n->in[i]].data;
	}
	return !rg_dropout_trains(n, in);
}

static int infer_dropout(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_node *n = c->node;
	struct rg_tensor in[DROPOUT_IN] = { 0 };
	int rc;

	for (int i = 0; i < n->n_in && i < DROPOUT_IN; i++) {
		if (!c->in[i])
			continue;
		in[i].dtype = c->in[i]->dtype;
		in[i].shape = c->in[i]->shape;
		if (rg_infer_known(c, i))
			in[i].data = (void *)c->in[i]->data;
	}
	if (!c->in[0])
		return rg_infer_fail(c, err, "input 0 is missing");
	if (n->version >= 12 && rg_infer_in(c, RATIO)) {
		rc = rg_infer_type(c, RATIO, RG_SET_FLOAT | RG_SET_F8, err);
		if (!rc)
			rc = rg_infer_scalar(c, RATIO, err);
		if (rc)
			return rc;
	}
	if (n->version >= 12 && rg_infer_in(c, MODE)) {
		rc = rg_infer_type(c, MODE, RG_BIT(RG_BOOL), err);
		if (!rc)
			rc = rg_infer_scalar(c, MODE, err);
		if (rc)
			return rc;
		if (!rg_infer_known(c, MODE) && !drops_nothing(n, in)) {
			c->need_value = MODE;
			return rg_error_set(err, RG_ENEED_VALUE, "Dropout: training_mode is not known");
		}
	}
	if (rg_dropout_trains(n, in)) {
		rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);
		if (rc)
			return rc;
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &c->in[0]->shape);
	rg_infer_out(c, 1, n->version < 10 ? c->in[0]->dtype : RG_BOOL, &c->in[0]->shape);
	return 0;
}

static void cost_dropout(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n;

	if (!rg_dropout_trains(c->node, c->in))
		return;
	n = rg_shape_count(&c->in[0].shape);
	out->flops = rg_cost_mul(n, 2);
	out->sfu = n;
	out->read_bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	out->write_bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
	if (c->node->n_out > 1 && c->out[1].dtype != RG_UNDEFINED)
		out->write_bytes = rg_cost_add(out->write_bytes,
					       rg_tensor_bytes(c->out[1].dtype, &c->out[1].shape));
}

/* ---- the others ---- */

/* Attribute dtype, or what it is when there is none; must be in `set`. */
static int output_type(struct rg_infer *c, enum rg_dtype dflt, uint32_t set, enum rg_dtype *out,
		       struct rg_error *err)
{
	int64_t t = rg_node_int(c->node, "dtype", dflt);

	if (t <= 0 || t >= RG_DTYPE_COUNT || !rg_in_set((enum rg_dtype)t, set))
		return rg_infer_fail(c, err, "the output cannot be of type %s", t > 0 && t < RG_DTYPE_COUNT ?
				     rg_dtype_name((enum rg_dtype)t) : "undefined");
	*out = (enum rg_dtype)t;
	return 0;
}

static int infer_random(struct rg_infer *c, struct rg_error *err)
{
	const int64_t *dims;
	struct rg_shape s = { 0 };
	enum rg_dtype t = RG_UNDEFINED;
	int n = rg_node_ints(c->node, "shape", &dims), rc;

	if (n < 0)
		return rg_infer_fail(c, err, "attribute shape is missing");
	if (n > RG_MAX_RANK)
		return rg_infer_fail(c, err, "%d dimensions, at most %d are supported", n, RG_MAX_RANK);
	for (int i = 0; i < n; i++)
		if (dims[i] < 0)
			return rg_infer_fail(c, err, "dimension %d is %" PRId64, i, dims[i]);
	s = rg_shape_of(n, dims);
	rc = output_type(c, RG_F32, RG_SET_FLOAT, &t, err);
	if (!rc)
		rg_infer_out(c, 0, t, &s);
	return rc;
}

static int infer_random_like(struct rg_infer *c, struct rg_error *err)
{
	enum rg_dtype t = RG_UNDEFINED;
	int rc = output_type(c, c->in[0]->dtype, RG_SET_FLOAT, &t, err);

	if (!rc)
		rg_infer_out(c, 0, t, &c->in[0]->shape);
	return rc;
}

static int infer_bernoulli(struct rg_infer *c, struct rg_error *err)
{
	enum rg_dtype t = RG_UNDEFINED;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = output_type(c, c->in[0]->dtype, RG_SET_NUM | RG_BIT(RG_BOOL), &t, err);
	if (!rc)
		rg_infer_out(c, 0, t, &c->in[0]->shape);
	return rc;
}

static int infer_multinomial(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = c->in[0]->shape;
	enum rg_dtype t = RG_UNDEFINED;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	if (!rc)
		rc = output_type(c, RG_I32, RG_BIT(RG_I32) | RG_BIT(RG_I64), &t, err);
	if (rc)
		return rc;
	if (s.rank != 2 || s.dim[1] < 1)
		return rg_infer_fail(c, err, "the input must have 2 dimensions, batch and classes, not be empty");
	if (s.dim[1] > INT32_MAX)
		return rg_infer_fail(c, err, "there are too many classes");
	s.dim[1] = rg_node_int(c->node, "sample_size", 1);
	if (s.dim[1] < 0)
		return rg_infer_fail(c, err, "sample_size is %" PRId64, s.dim[1]);
	rg_infer_out(c, 0, t, &s);
	return 0;
}

static void cost_draws(const struct rg_cost_in *c, struct rg_cost *out, int flops, int sfu)
{
	int64_t n = rg_shape_count(&c->out[0].shape);

	out->flops = rg_cost_mul(n, flops);
	out->sfu = rg_cost_mul(n, sfu);
	out->iops = 0;
}

static void cost_uniform(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_draws(c, out, 2, 1);
}

static void cost_normal(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_draws(c, out, 2, 2);
}

static void cost_bernoulli(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_draws(c, out, 1, 1);
}

#define OTHER RG_KIND_OTHER
#define LIKE (RG_OP_IMPURE | RG_OP_SHAPE_ONLY)

const struct rg_op rg_ops_random[] = {
	{ "", "Bernoulli", OTHER, RG_OP_IMPURE, 1, 1, 1, 1, { 15, 22 }, 15, 22, infer_bernoulli, cost_bernoulli },
	{ "", "Dropout", RG_KIND_MOVE, RG_OP_VIEW, 1, 3, 1, 2, { 1, 6, 7, 10, 12, 13, 22 }, 1, 22, infer_dropout,
	  cost_dropout },
	{ "", "Multinomial", OTHER, RG_OP_IMPURE, 1, 1, 1, 1, { 7, 22 }, 7, 22, infer_multinomial, NULL },
	{ "", "RandomNormal", OTHER, RG_OP_IMPURE, 0, 0, 1, 1, { 1, 22 }, 1, 22, infer_random, cost_normal },
	{ "", "RandomNormalLike", OTHER, LIKE, 1, 1, 1, 1, { 1, 22 }, 1, 22, infer_random_like, cost_normal },
	{ "", "RandomUniform", OTHER, RG_OP_IMPURE, 0, 0, 1, 1, { 1, 22 }, 1, 22, infer_random, cost_uniform },
	{ "", "RandomUniformLike", OTHER, LIKE, 1, 1, 1, 1, { 1, 22 }, 1, 22, infer_random_like, cost_uniform },
};
RG_OP_FAMILY_END(random);
