/*
 * builtin:lstm: the medium model of Zaremba, Sutskever, Vinyals,
 * "Recurrent Neural Network Regularization" (2014): 10,000 words, an embedding
 * of 650, two LSTM layers of 650 units, a linear layer to the words. State goes
 * in (h0, c0) and comes out. With two biases a gate, as ONNX and PyTorch have them:
 *
 *   10000*650 + 2 * 4*(2*650*650 + 2*650) + 650*10000 + 10000 = 19,780,400
 */
#include <math.h>

#include "models/builtin-layers.h"
#include "models/builtin-list.h"

#define WORDS 10000
#define UNITS 650
#define LAYERS 2

struct lstm {
	struct rg_builder b;
	int squeeze_axis, slice_axis, index[LAYERS + 1];
	int state[2]; /* h0, c0: [layers, batch, units] */
};

/* Row `layer` of a state, as [1, batch, units]. */
static int initial(struct lstm *m, int which, int layer)
{
	struct rg_builder *b = &m->b;

	return rg_b_node(b, "Slice", rg_b_name(b, "/rnn/Slice_%c%d", "hc"[which], layer),
			 RG_B_IN(m->state[which], m->index[layer], m->index[layer + 1], m->slice_axis),
			 RG_B_NO_ATTRS);
}

/* x [seq, batch, units] to the same; last[0], last[1]: the state behind it. */
static int layer(struct lstm *m, int x, int l, int last[2])
{
	struct rg_builder *b = &m->b;
	float bound = (float)(1 / sqrt(UNITS));
	struct rg_shape weights = rg_shape_of(3, (int64_t[]){ 1, 4 * UNITS, UNITS });
	struct rg_shape biases = rg_shape_of(2, (int64_t[]){ 1, 8 * UNITS });
	int w = rg_b_weight(b, rg_b_name(b, "rnn.weight_ih_l%d", l), weights, -bound, bound);
	int r = rg_b_weight(b, rg_b_name(b, "rnn.weight_hh_l%d", l), weights, -bound, bound);
	int bias = rg_b_weight(b, rg_b_name(b, "rnn.bias_l%d", l), biases, -bound, bound);
	int out[3];

	rg_b_nodes(b, "LSTM", rg_b_name(b, "/rnn/LSTM_%d", l),
		   RG_B_IN(x, w, r, bias, -1, initial(m, 0, l), initial(m, 1, l)),
		   RG_B_ATTRS(RG_B_INT("hidden_size", UNITS)), 3, out);
	last[0] = out[1];
	last[1] = out[2];
	return rg_b_node(b, "Squeeze", rg_b_name(b, "/rnn/Squeeze_%d", l), RG_B_IN(out[0], m->squeeze_axis),
			 RG_B_NO_ATTRS);
}

int rg_builtin_lstm(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim dims[] = { RG_B_OPEN("seq"), RG_B_OPEN("batch") };
	struct rg_dim state[] = { RG_B_DIM(LAYERS), RG_B_OPEN("batch"), RG_B_DIM(UNITS) };
	struct lstm m;
	struct rg_builder *b = &m.b;
	int words, table, x, last[LAYERS][2];

	rg_b_start(b, g, "lstm", 17, err);
	words = rg_b_input(b, "input", RG_I64, 2, dims);
	m.state[0] = rg_b_input(b, "h0", RG_F32, 3, state);
	m.state[1] = rg_b_input(b, "c0", RG_F32, 3, state);
	m.squeeze_axis = rg_b_const_i64(b, "direction_axis", 1, 1, (int64_t[]){ 1 });
	m.slice_axis = rg_b_const_i64(b, "layer_axis", 1, 1, (int64_t[]){ 0 });
	for (int64_t i = 0; i <= LAYERS; i++)
		m.index[i] = rg_b_const_i64(b, rg_b_name(b, "layer_%d", (int)i), 1, 1, &i);

	/* Of variance 1, as an untrained embedding has. */
	table = rg_b_weight(b, "encoder.weight", rg_shape_of(2, (int64_t[]){ WORDS, UNITS }), -1.732f, 1.732f);
	x = rg_b_node(b, "Gather", "/encoder/Gather", RG_B_IN(table, words), RG_B_NO_ATTRS);
	for (int l = 0; l < LAYERS; l++)
		x = layer(&m, x, l, last[l]);
	rg_b_output(b, rg_b_linear(b, x, "decoder", UNITS, WORDS),
		    RG_B_DIMS(RG_B_OPEN("seq"), RG_B_OPEN("batch"), RG_B_DIM(WORDS)));
	for (int i = 0; i < 2; i++)
		rg_b_output(b, rg_b_node_as(b, "Concat", rg_b_name(b, "/rnn/Concat_%d", i), i ? "cn" : "hn",
					    RG_B_IN(last[0][i], last[1][i]), RG_B_ATTRS(RG_B_INT("axis", 0))), 3, state);
	return rg_b_done(b);
}
