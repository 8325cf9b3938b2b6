/* Recurrent layers: versions, shapes and costs. */
#include "graph/op.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/rnn.h"

int rg_rnn_resolve(const struct rg_node *node, const struct rg_shape *x, const struct rg_shape *w,
		   const struct rg_shape *r, struct rg_rnn *out, struct rg_error *err)
{
	const char *dir = rg_node_string(node, "direction", "forward");
	int64_t layout = rg_node_int(node, "layout", 0), declared;

	memset(out, 0, sizeof(*out));
	out->gates = !strcmp(node->op_type, "LSTM") ? 4 : !strcmp(node->op_type, "GRU") ? 3 : 1;
	if (!strcmp(dir, "forward") || !strcmp(dir, "reverse"))
		out->directions = 1;
	else if (!strcmp(dir, "bidirectional"))
		out->directions = 2;
	else
		return rg_error_set(err, -EINVAL, "attribute direction is '%.40s'", dir);
	out->reverse = !strcmp(dir, "reverse");
	if (layout != 0 && layout != 1)
		return rg_error_set(err, -EINVAL, "attribute layout is %lld; 0 and 1 are known", (long long)layout);
	out->batch_first = layout == 1;
	if (x->rank != 3 || w->rank != 3 || r->rank != 3)
		return rg_error_set(err, -EINVAL, "X, W and R must have rank 3, not %d, %d and %d", x->rank, w->rank,
				    r->rank);
	out->seq = x->dim[out->batch_first ? 1 : 0];
	out->batch = x->dim[out->batch_first ? 0 : 1];
	out->input = x->dim[2];
	out->hidden = r->dim[2];
	if (out->hidden < 1 || out->hidden > INT32_MAX)
		return rg_error_set(err, -EINVAL, "the hidden size is %lld", (long long)out->hidden);
	declared = rg_node_int(node, "hidden_size", out->hidden);
	if (declared != out->hidden)
		return rg_error_set(err, -EINVAL, "attribute hidden_size is %lld, the weights have %lld",
				    (long long)declared, (long long)out->hidden);
	if (w->dim[0] != out->directions || r->dim[0] != out->directions || w->dim[2] != out->input ||
	    w->dim[1] != out->gates * out->hidden || r->dim[1] != out->gates * out->hidden)
		return rg_error_set(err, -EINVAL, "W must be %d x %lld x %lld and R %d x %lld x %lld", out->directions,
				    (long long)(out->gates * out->hidden), (long long)out->input, out->directions,
				    (long long)(out->gates * out->hidden), (long long)out->hidden);
	return 0;
}

static bool is_shape(const struct rg_value *v, int rank, int64_t a, int64_t b, int64_t c)
{
	return v->shape.rank == rank && v->shape.dim[0] == a && (rank < 2 || v->shape.dim[1] == b) &&
	       (rank < 3 || v->shape.dim[2] == c);
}

static int infer_rnn(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *opt[8] = { NULL };
	struct rg_shape y, last;
	struct rg_rnn n;
	enum rg_dtype t = c->in[0]->dtype;
	int i, rc;

	for (i = 0; i < c->node->n_in && i < 8; i++) {
		opt[i] = c->in[i];
		if (opt[i] && i != 4 && opt[i]->dtype != t)
			return rg_infer_fail(c, err, "input %d has type %s, X has type %s", i,
					     rg_dtype_name(opt[i]->dtype), rg_dtype_name(t));
	}
	if (!rg_dtype_is_float(t))
		return rg_infer_fail(c, err, "X has type %s", rg_dtype_name(t));
	if ((rc = rg_rnn_resolve(c->node, &c->in[0]->shape, &c->in[1]->shape, &c->in[2]->shape, &n, err)))
		return rc;
	if (opt[3] && !is_shape(opt[3], 2, n.directions, 2 * n.gates * n.hidden, 0))
		return rg_infer_fail(c, err, "B must be %d x %lld", n.directions, (long long)(2 * n.gates * n.hidden));
	if (opt[4] && (opt[4]->dtype != RG_I32 || !is_shape(opt[4], 1, n.batch, 0, 0)))
		return rg_infer_fail(c, err, "sequence_lens must be a list of %lld of type int32", (long long)n.batch);
	for (i = 5; i < 7; i++)
		if (opt[i] && !(n.batch_first ? is_shape(opt[i], 3, n.batch, n.directions, n.hidden) :
						is_shape(opt[i], 3, n.directions, n.batch, n.hidden)))
			return rg_infer_fail(c, err, "an initial state (input %d) has the wrong shape", i);
	if (opt[7] && !is_shape(opt[7], 2, n.directions, 3 * n.hidden, 0))
		return rg_infer_fail(c, err, "P must be %d x %lld", n.directions, (long long)(3 * n.hidden));
	y.rank = 4;
	last.rank = 3;
	if (n.batch_first) {
		y = rg_shape_of(4, (const int64_t[]){ n.batch, n.seq, n.directions, n.hidden });
		last = rg_shape_of(3, (const int64_t[]){ n.batch, n.directions, n.hidden });
	} else {
		y = rg_shape_of(4, (const int64_t[]){ n.seq, n.directions, n.batch, n.hidden });
		last = rg_shape_of(3, (const int64_t[]){ n.directions, n.batch, n.hidden });
	}
	for (i = 0; i < c->node->n_out; i++)
		rg_infer_out(c, i, t, i ? &last : &y);
	return 0;
}

static int64_t mul(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

/*
 * A step of one sequence: gates * hidden dot products over input + hidden (2
 * operations each) and the additions and products of the cell; activations are
 * special functions, one a gate and one for the cell's output (LSTM).
 * Sequences are counted at full length.
 */
static void cost_rnn(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t cells, element;
	struct rg_rnn n;

	out->flops = out->sfu = -1;
	out->iops = 0;
	if (rg_rnn_resolve(c->node, &c->in[0].shape, &c->in[1].shape, &c->in[2].shape, &n, &err))
		return;
	cells = mul(mul(mul(n.seq, n.batch), n.directions), n.hidden);
	element = n.gates == 4 ? 4 : n.gates == 3 ? 5 : 0;
	if (c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED)
		element += 2 * n.gates;
	if (c->node->n_in > 7 && c->in[7].dtype != RG_UNDEFINED)
		element += 6;
	out->flops = mul(cells, mul(2 * n.gates, n.input + n.hidden));
	if (out->flops >= 0 && __builtin_add_overflow(out->flops, mul(cells, element), &out->flops))
		out->flops = -1;
	out->sfu = mul(cells, n.gates == 4 ? 5 : n.gates);
}

const struct rg_op rg_ops_rnn[] = {
	{ "", "GRU", RG_KIND_RNN, 0, 3, 6, 0, 2, { 1, 3, 7, 14, 22 }, 3, 22, infer_rnn, cost_rnn },
	{ "", "LSTM", RG_KIND_RNN, 0, 3, 8, 0, 3, { 1, 7, 14, 22 }, 1, 22, infer_rnn, cost_rnn },
	{ "", "RNN", RG_KIND_RNN, 0, 3, 6, 0, 2, { 1, 7, 14, 22 }, 1, 22, infer_rnn, cost_rnn },
};
RG_OP_FAMILY_END(rnn);
