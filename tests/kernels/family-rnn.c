/*
 * Calls of the recurrent layers. See check.h.
 *
 * The bound, u = 2^-24: what enters a gate is a sum of input + hidden + 2 products and
 * biases, whose error is as many u of the sum of their absolute values (Higham, section
 * 3.1); a gate passes on at most its own, plus some u of its function; the state is as
 * good as that of the step before, times the largest sum of the weights of a row,
 * which the weights here keep below 1. So errors add up over steps, four gates each.
 * Relu passes on what it gets, so the state may be as large as the sums.
 */
#include "check.h"

#include <math.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })
#define UNIT 0x1p-24

static int gates_of(const struct nn_case *t)
{
	return !strcmp(t->node.op_type, "LSTM") ? 4 : !strcmp(t->node.op_type, "GRU") ? 3 : 1;
}

/* Rows whose absolute values sum up to less than 0.9. */
static void recurrence(struct nn_case *t, int64_t dirs, int64_t rows, int64_t n)
{
	float *r = nn_input(t, NN_UNIFORM, 3, DIMS(dirs, rows, n));

	for (int64_t i = 0; i < dirs * rows * n; i++)
		r[i] *= 0.9f / (float)n;
}

static void rnn(struct nn_case *t, struct ck_gen *g)
{
	static const char *const directions[] = { "forward", "reverse", "bidirectional" };
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WIDE, NN_WHOLE, NN_TINY, NN_NAN };
	int gates = gates_of(t);
	const char *direction = CK_PICK(g, directions);
	int64_t seq = ck_size(g, 12), batch = ck_some(g, 12), width = ck_some(g, 40), hidden = ck_some(g, 70);
	int64_t dirs = strcmp(direction, "bidirectional") ? 1 : 2, rows = gates * hidden;
	bool first = ck_chance(g, 40);

	t->node.version = 14;
	nn_string(t, "direction", direction);
	nn_int(t, "hidden_size", hidden);
	nn_int(t, "layout", first);
	if (ck_chance(g, 30))
		nn_float(t, "clip", 0.5f);
	nn_int(t, gates == 4 ? "input_forget" : "linear_before_reset", ck_chance(g, 40));
	nn_input(t, CK_PICK(g, fills), 3, first ? DIMS(batch, seq, width) : DIMS(seq, batch, width));
	nn_input(t, NN_UNIFORM, 3, DIMS(dirs, rows, width));
	recurrence(t, dirs, rows, hidden);
	if (ck_chance(g, 70))
		nn_input(t, NN_UNIFORM, 2, DIMS(dirs, 2 * rows));
	else
		nn_absent(t);
	if (ck_chance(g, 40)) {
		int32_t *len = nn_input_typed(t, RG_I32, 1, &batch);

		for (int64_t b = 0; b < batch; b++)
			len[b] = (int32_t)ck_between(g, 0, seq);
	} else {
		nn_absent(t);
	}
	for (int i = 0; i < (gates == 4 ? 2 : 1); i++) {
		if (ck_chance(g, 50))
			nn_input(t, NN_UNIFORM, 3,
				 first ? DIMS(batch, dirs, hidden) : DIMS(dirs, batch, hidden));
		else
			nn_absent(t);
	}
	if (gates == 4 && ck_chance(g, 30))
		nn_input(t, NN_UNIFORM, 2, DIMS(dirs, 3 * hidden));
	t->weights = 6;
}

static void bound(const struct nn_case *t, const float *want, double *out)
{
	const struct rg_shape *x = &t->in[0].shape;
	bool first = rg_node_int(&t->node, "layout", 0) != 0;
	double width = (double)x->dim[2], hidden = (double)t->in[2].shape.dim[2],
	       steps = (double)x->dim[first ? 1 : 0];
	double most = 0, sum, each;
	const float *data = t->in[0].data;

	for (int64_t i = 0; i < rg_shape_count(x); i++)
		if (isfinite(data[i]))
			most = fmax(most, fabs((double)data[i]));
	sum = width * most + 4 + steps; /* biases, peepholes times a cell that a step adds 1 to at most */
	each = sum * (width + hidden + 20) * UNIT;
	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = 4 * (steps + 1) * each + 0x1p-120;
	(void)want;
}

static bool bench(struct nn_case *t, int i)
{
	static const int64_t dim[][4] = { { 1, 1, 128, 128 }, { 100, 1, 64, 64 }, { 50, 8, 256, 256 } };
	int gates = gates_of(t);

	if (i == 3)
		return false;
	nn_int(t, "hidden_size", dim[i][3]);
	nn_input(t, NN_UNIFORM, 3, dim[i]);
	nn_input(t, NN_UNIFORM, 3, DIMS(1, gates * dim[i][3], dim[i][2]));
	nn_input(t, NN_UNIFORM, 3, DIMS(1, gates * dim[i][3], dim[i][3]));
	t->weights = 6;
	return true;
}

#define OWN(OP)                                                                                              \
	{                                                                                                    \
		.domain = "", .op_type = OP, .make = rnn, .measure = CK_OWN, .tolerance = bound,             \
		.bench = bench                                                                               \
	}

static const struct ck_family families[] = {
	OWN("GRU"),
	OWN("LSTM"),
	OWN("RNN"),
};
CK_FAMILY_TABLE(ck_families_rnn, families);
